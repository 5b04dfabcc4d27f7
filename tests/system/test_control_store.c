/* SPDX-License-Identifier: MIT */
/* GET /v1/events with a store that keeps the stream: events that a client has missed are read from the store, which
 * may be away. */
#include <check.h>
#include <cjson/cJSON.h>
#include <string.h>

#include "../suite.h"
#include "control_rig.h"
#include "control_stream.h"

static void set_up_store(void)
{
	server_start_with_store(&s);
	server_see(&s);
}

/* The store answers with the events from `from` on, at most 200, of `to` in all. */
static void answer(unsigned from, unsigned to, struct hw_stream_id after)
{
	static char ids[200][32];
	struct hw_event events[200];
	struct hw_event_page page = {.events = events, .ok = true, .last = after};
	for (; from < to && page.n < 200; from++) {
		events[page.n] = event(ids[page.n], from);
		page.last = events[page.n++].at;
	}
	page.more = from < to;
	hw_control_page(s.control, &page);
}

static void answer_gone(void)
{
	hw_control_page(s.control, &(struct hw_event_page){.ok = true, .gone = true});
}

START_TEST(the_past_comes_from_the_store)
{
	struct stream t;
	stream_open(&t, "/v1/events", NULL); /* before the store is there */
	expect_open(&t);
	hw_control_store(s.control, true);
	ck_assert_uint_eq(s.asked_last, 1);
	answer(0, 50, place(0));
	ck_assert_int_eq(strncmp(ids_of("/v1/transitions"), "d49,d48", 7), 0);
	settle(&t);
	ck_assert_uint_eq(count(&t, "event:"), 0);
	tell(50, 60);
	expect_devices(&t, 50, 60);
	stream_close(&t);
	ck_assert_uint_eq(s.asked_after, 0);
}
END_TEST

START_TEST(what_was_missed_is_read)
{
	struct stream t;
	hw_control_store(s.control, true);
	answer(0, 5, place(0));
	stream_open(&t, "/v1/events", NULL);
	expect_open(&t);
	tell(5, 6);
	expect_devices(&t, 5, 6);
	hw_control_store(s.control, false);
	hw_control_store(s.control, true);
	ck_assert_uint_eq(s.asked_after, 1);
	ck_assert_uint_eq(s.after.seq, 5);
	answer(6, 250, s.after);
	ck_assert_uint_eq(s.asked_after, 2); /* there is more */
	ck_assert_uint_eq(s.after.seq, 205);
	tell(250, 260); /* these events are after the requested ones, and are in the store */
	answer(206, 260, s.after);
	tell(260, 261);
	expect_devices(&t, 5, 261);
	ck_assert_uint_eq(count(&t, "reset"), 0);
	stream_close(&t);
}
END_TEST

/* The first was written by somebody who did not hear of it any more. */
START_TEST(an_empty_stream_has_a_begin)
{
	struct stream t;
	hw_control_store(s.control, true);
	answer(0, 0, (struct hw_stream_id){0, 0});
	stream_open(&t, "/v1/events", NULL);
	expect_open(&t);
	hw_control_store(s.control, false);
	hw_control_store(s.control, true);
	ck_assert_uint_eq(s.asked_last, 1);
	ck_assert_uint_eq(s.asked_after, 1);
	answer(0, 3, s.after);
	expect_devices(&t, 0, 3);
	stream_close(&t);
}
END_TEST

START_TEST(an_emptied_store_resets_all)
{
	struct stream t, u;
	hw_control_store(s.control, true);
	answer(0, 5, place(0));
	stream_open(&t, "/v1/events", NULL);
	expect_open(&t);
	stream_open(&u, "/v1/events", NULL);
	expect_open(&u);
	hw_control_store(s.control, false);
	hw_control_store(s.control, true);
	answer_gone();
	ck_assert_uint_eq(s.asked_last, 2);
	answer(7, 9, place(0));
	expect_count(&t, "event: reset\nid: 1700000000000-8\n", 1);
	expect_count(&u, "event: reset\nid: 1700000000000-8\n", 1);
	tell(9, 10);
	expect_devices(&t, 9, 10);
	stream_close(&t);
	stream_close(&u);
}
END_TEST

START_TEST(a_client_resumes_from_the_store)
{
	struct stream t, u;
	hw_control_store(s.control, true);
	answer(400, 500, place(0));
	stream_open(&t, "/v1/events", "1700000000000-99");
	stream_open(&u, "/v1/events", "1700000000000-499");
	expect_open(&t);
	expect_open(&u);
	settle(&t);
	ck_assert_uint_eq(s.asked_after, 1); /* one at a time */
	ck_assert_uint_eq(s.after.seq, 99);
	answer(100, 500, s.after);
	settle(&t);
	ck_assert_uint_eq(s.asked_after, 2);
	ck_assert_uint_eq(s.after.seq, 499); /* the other's turn */
	tell(500, 510);
	answer(500, 510, s.after);
	settle(&t);
	ck_assert_uint_eq(s.asked_after, 3);
	ck_assert_uint_eq(s.after.seq, 299);
	answer(300, 510, s.after);
	settle(&t);
	answer(500, 510, s.after);
	tell(510, 511);
	expect_devices(&t, 100, 511);
	expect_devices(&u, 500, 511);
	ck_assert_uint_eq(hw_control_clients(s.control).lagging, 0);
	stream_close(&t);
	stream_close(&u);
}
END_TEST

/* With several nodes, reported events arrive over another connection than the pages. */
START_TEST(a_page_may_be_behind_what_is_told)
{
	struct stream t;
	hw_control_store(s.control, true);
	answer(0, 5, place(0));
	stream_open(&t, "/v1/events", "1700000000000-2");
	expect_open(&t);
	settle(&t);
	ck_assert_uint_eq(s.asked_after, 1);
	tell(5, 6);
	answer(3, 5, s.after);
	settle(&t);
	ck_assert_uint_eq(s.asked_after, 2);
	ck_assert_uint_eq(s.after.seq, 4);
	answer(5, 6, s.after);
	expect_devices(&t, 3, 6);
	settle(&t);
	ck_assert_uint_eq(s.asked_after, 2);
	stream_close(&t);
}
END_TEST

START_TEST(a_page_may_be_ahead_of_what_is_told)
{
	struct stream t;
	hw_control_store(s.control, true);
	answer(0, 5, place(0));
	stream_open(&t, "/v1/events", "1700000000000-2");
	expect_open(&t);
	settle(&t);
	answer(3, 8, s.after);
	expect_devices(&t, 3, 5);
	tell(5, 8);
	expect_devices(&t, 3, 8);
	ck_assert_uint_eq(s.asked_after, 1);
	stream_close(&t);
}
END_TEST

/* A client has received more at another node than this node has read: it receives no event twice. */
START_TEST(a_client_may_be_ahead_of_what_is_told)
{
	struct stream t;
	hw_control_store(s.control, true);
	answer(0, 5, place(0));
	stream_open(&t, "/v1/events", "1700000000000-7");
	expect_open(&t);
	settle(&t);
	answer(8, 8, s.after);
	tell(5, 7);
	settle(&t);
	ck_assert_uint_eq(s.asked_after, 1);
	tell(7, 9);
	settle(&t);
	ck_assert_uint_eq(s.asked_after, 2);
	ck_assert_uint_eq(s.after.seq, 7);
	answer(8, 9, s.after);
	tell(9, 10);
	expect_devices(&t, 8, 10);
	ck_assert_uint_eq(hw_control_clients(s.control).lagging, 0);
	stream_close(&t);
}
END_TEST

/* ... unless this store never comes so far. */
START_TEST(a_client_waits_for_another_store)
{
	struct stream t;
	hw_control_store(s.control, true);
	answer(0, 5, place(0));
	stream_open(&t, "/v1/events", "1700000000000-7");
	expect_open(&t);
	settle(&t);
	answer(8, 8, s.after);
	settle(&t);
	hw_control_store(s.control, false);
	hw_control_store(s.control, true);
	answer(5, 5, s.after);
	settle(&t);
	ck_assert_uint_eq(s.after.seq, 7);
	answer_gone();
	settle(&t);
	ck_assert_uint_eq(hw_control_clients(s.control).lagging, 0);
	stream_close(&t);
}
END_TEST

START_TEST(what_is_told_while_it_reads_is_read)
{
	struct stream t;
	hw_control_store(s.control, true);
	answer(0, 5, place(0));
	stream_open(&t, "/v1/events", NULL);
	expect_open(&t);
	hw_control_store(s.control, false);
	hw_control_store(s.control, true);
	tell(9, 11);
	answer(5, 9, s.after);
	ck_assert_uint_eq(s.asked_after, 2);
	ck_assert_uint_eq(s.after.seq, 8);
	answer(9, 11, s.after);
	ck_assert_uint_eq(s.asked_after, 2);
	tell(10, 12); /* the first was read */
	expect_devices(&t, 5, 12);
	hw_control_missed(s.control, place(14));
	ck_assert_uint_eq(s.asked_after, 3);
	answer(0, 0, s.after); /* what was told of is not there any more */
	ck_assert_uint_eq(s.asked_after, 3);
	tell(20, 21);
	stream_close(&t);
}
END_TEST

START_TEST(a_client_waits_for_the_store)
{
	struct stream t, u;
	stream_open(&t, "/v1/events", "1700000000000-3");
	expect_open(&t);
	stream_open(&u, "/v1/events", "1700000000000-1");
	expect_open(&u);
	ck_assert_uint_eq(s.asked_after, 0);
	hw_control_store(s.control, true);
	answer(0, 5, place(0));
	ck_assert_uint_eq(s.asked_after, 1);
	ck_assert_uint_eq(s.after.seq, 3);
	hw_control_store(s.control, false); /* no answer will come */
	hw_control_store(s.control, true);
	answer(5, 5, s.after); /* for the hub */
	ck_assert_uint_eq(s.asked_after, 3);
	answer(4, 5, s.after);
	expect_devices(&t, 4, 5);
	answer_gone();
	expect_count(&u, "event: reset\n", 1);
	stream_close(&t);
	stream_close(&u);
}
END_TEST

START_TEST(a_client_leaves_while_it_is_asked_for)
{
	struct stream t, u;
	long long since = clock_ms();
	hw_control_store(s.control, true);
	answer(0, 5, place(0));
	stream_open(&t, "/v1/events", "1700000000000-3");
	expect_open(&t);
	settle(&t);
	ck_assert_uint_eq(s.asked_after, 1);
	stream_close(&t);
	while (hw_control_clients(s.control).now > 0) {
		server_turn(&s);
		ck_assert(!too_late(since));
	}
	stream_open(&u, "/v1/events", "1700000000000-2");
	expect_open(&u);
	answer(4, 5, s.after); /* for nobody */
	settle(&u);
	ck_assert_uint_eq(count(&u, "event:"), 0);
	ck_assert_uint_eq(s.after.seq, 2);
	answer(3, 5, s.after);
	expect_devices(&u, 3, 5);
	stream_close(&u);
}
END_TEST

START_TEST(a_store_that_refuses)
{
	struct stream t;
	s.store_fails = true;
	hw_control_store(s.control, true);
	stream_open(&t, "/v1/events", NULL);
	expect_open(&t);
	tell(0, 1);
	expect_devices(&t, 0, 1);
	s.store_fails = false;
	hw_control_store(s.control, false);
	hw_control_store(s.control, true);
	ck_assert_uint_eq(s.asked_last, 1);
	hw_control_page(s.control, &(struct hw_event_page){.ok = false});
	tell(1, 2);
	expect_devices(&t, 0, 2);
	stream_close(&t);
}
END_TEST

/* Device d`n` goes offline, and waits for the store. */
static void await(unsigned n)
{
	char id[32];
	struct hw_event e = event(id, n);
	e.at = (struct hw_stream_id){0};
	hw_control_pending(s.control, &e);
}

START_TEST(what_waits_is_told_aside)
{
	struct stream t, u;
	hw_control_store(s.control, true);
	answer(0, 1, place(0));
	await(1);
	stream_open(&t, "/v1/events", NULL);
	expect_open(&t);
	hw_control_late(s.control, true);
	await(2);
	expect_count(&t, "event: pending\n", 1); /* the other one was before it came */
	expect_devices(&t, 2, 3);
	/* Who comes back may have missed some. */
	stream_open(&u, "/v1/events", "1700000000000-0");
	expect_count(&u, "event: pending\n", 2);
	expect_devices(&u, 1, 3);
	stream_close(&u);
	/* One of them is written, the other one is given up. */
	tell(2, 3);
	hw_control_settled(s.control);
	expect_count(&t, "event: transition\n", 1);
	stream_open(&u, "/v1/events", "1700000000000-2");
	expect_open(&u);
	await(3);
	expect_count(&u, "event: pending\n", 1);
	expect_devices(&u, 3, 4);
	stream_close(&u);
	stream_close(&t);
	ck_assert_str_eq(ids_of("/v1/transitions"), "d3,d2,d1,d0");
}
END_TEST

/* With several nodes another connection may report it, and a new master gets again what it lacks. */
START_TEST(a_transition_is_remembered_once)
{
	char id[32];
	hw_control_store(s.control, true);
	answer(0, 0, (struct hw_stream_id){0, 0});
	await(0);
	hw_control_settled(s.control);
	tell(0, 3);
	struct hw_event e = event(id, 1);
	e.at = place(7);
	hw_control_event(s.control, &e);
	ck_assert_str_eq(ids_of("/v1/transitions"), "d2,d1,d0");
	reply_fini(&r);
	get(&s, "/v1/devices/d1/events", &r);
	ck_assert_ptr_nonnull(strstr(r.body, "\"event_id\":\"1700000000000-7\""));
	/* Another change of it is another transition; and whoever was found has gone, when the oldest give way. */
	e.state = HW_STATE_ONLINE;
	e.at = place(8);
	hw_control_event(s.control, &e);
	ck_assert_str_eq(ids_of("/v1/transitions"), "d1,d2,d1,d0");
	tell(10, 10 + 10000);
	e.at = place(20000);
	hw_control_event(s.control, &e);
	ck_assert_str_eq(ids_of("/v1/devices/d1/events"), "d1");
}
END_TEST

/* A mass death that is faster than the store: the oldest events have left the ring before the store has them. */
START_TEST(what_gave_way_is_no_news)
{
	char id[32];
	hw_control_store(s.control, true);
	answer(0, 0, (struct hw_stream_id){0, 0});
	struct hw_event first = event(id, 0);
	for (unsigned i = 0; i < 10001; i++) {
		char other[32];
		struct hw_event e = event(other, i);
		e.at = (struct hw_stream_id){0};
		e.time_ms += i;
		hw_control_pending(s.control, &e);
	}
	hw_control_event(s.control, &first);
	ck_assert_str_eq(ids_of("/v1/transitions?limit=2"), "d10000,d9999");
}
END_TEST

/* ... and another node's events are new, whatever its clock shows. */
START_TEST(anothers_clock_hides_nothing)
{
	char id[32];
	hw_control_store(s.control, true);
	answer(0, 0, (struct hw_stream_id){0, 0});
	for (unsigned i = 0; i < 10001; i++) {
		struct hw_event e = event(id, i);
		e.node = "b";
		e.node_len = 1;
		e.time_ms += 3600000;
		hw_control_event(s.control, &e);
	}
	struct hw_event e = event(id, 10001);
	e.node = "c";
	e.node_len = 1;
	hw_control_event(s.control, &e);
	ck_assert_str_eq(ids_of("/v1/transitions?limit=2"), "d10001,d10000");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("control_store");
	TCase *tc = tcase_create("store");
	tcase_add_checked_fixture(tc, set_up_store, rig_tear_down);
	tcase_set_timeout(tc, 40);
	tcase_add_test(tc, the_past_comes_from_the_store);
	tcase_add_test(tc, what_was_missed_is_read);
	tcase_add_test(tc, an_empty_stream_has_a_begin);
	tcase_add_test(tc, an_emptied_store_resets_all);
	tcase_add_test(tc, a_client_resumes_from_the_store);
	tcase_add_test(tc, a_page_may_be_behind_what_is_told);
	tcase_add_test(tc, a_page_may_be_ahead_of_what_is_told);
	tcase_add_test(tc, a_client_may_be_ahead_of_what_is_told);
	tcase_add_test(tc, a_client_waits_for_another_store);
	tcase_add_test(tc, what_is_told_while_it_reads_is_read);
	tcase_add_test(tc, a_client_waits_for_the_store);
	tcase_add_test(tc, a_client_leaves_while_it_is_asked_for);
	tcase_add_test(tc, a_store_that_refuses);
	tcase_add_test(tc, what_waits_is_told_aside);
	tcase_add_test(tc, a_transition_is_remembered_once);
	tcase_add_test(tc, what_gave_way_is_no_news);
	tcase_add_test(tc, anothers_clock_hides_nothing);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

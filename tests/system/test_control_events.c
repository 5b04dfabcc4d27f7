/* SPDX-License-Identifier: MIT */
/*
 * GET /v1/events, and its ring of events without a store: no event is skipped or repeated, also with clients that do
 * not read, do not stop or no longer exist.
 */
#include <check.h>
#include <cjson/cJSON.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "../suite.h"
#include "bound.h"
#include "control_rig.h"
#include "control_stream.h"

START_TEST(an_event_says_all)
{
	struct stream t;
	char at[HW_STREAM_ID_TEXT], want[512];
	stream_open(&t, "/v1/events", NULL);
	expect_open(&t);
	ck_assert_ptr_nonnull(strstr(t.text, "Content-Type: text/event-stream\r\n"));
	ck_assert_ptr_nonnull(strstr(t.text, "Cache-Control: no-store\r\n"));
	server_beat(&s, 0, "d0", NULL);
	tell(0, 2);
	expect_devices(&t, 0, 2);
	text_of(&t, 0, at);
	snprintf(want, sizeof(want),
	         "\n\nevent: transition\nid: %s\ndata: {\"id\":\"d0\",\"state\":\"offline\",\"since_ms\":1234,"
	         "\"last_seen_ms\":1000,\"timeout_ms\":30000,\"reason\":\"timeout\",\"group\":\"default\","
	         "\"source\":\"mqtt\",\"seq\":1}\n\n",
	         at);
	ck_assert_msg(strstr(t.text, want) != NULL, "%s\nin %s", want, t.text);
	/* d1 is not known (any more). */
	ck_assert_ptr_nonnull(strstr(t.text, "\"timeout_ms\":null,\"reason\":\"timeout\",\"group\":\"default\","
	                                     "\"source\":null,\"seq\":2}\n\n"));
	stream_close(&t);
}
END_TEST

START_TEST(nobody_hears_the_past)
{
	struct stream t;
	tell(0, 3);
	stream_open(&t, "/v1/events", NULL);
	expect_open(&t);
	tell(3, 5);
	expect_devices(&t, 3, 5);
	stream_close(&t);
}
END_TEST

START_TEST(resumes_where_it_was)
{
	struct stream t;
	char at[HW_STREAM_ID_TEXT], target[128];
	stream_open(&t, "/v1/events", NULL);
	expect_open(&t);
	tell(0, 5);
	expect_devices(&t, 0, 5);
	text_of(&t, 2, at);
	stream_close(&t);
	tell(5, 1000);
	stream_open(&t, "/v1/events", at);
	expect_devices(&t, 3, 1000);
	tell(1000, 1001);
	expect_devices(&t, 3, 1001);
	stream_close(&t);
	snprintf(target, sizeof(target), "/v1/events?after=%s", at);
	stream_open(&t, target, NULL);
	expect_devices(&t, 3, 1001);
	stream_close(&t);
	stream_open(&t, "/v1/events?after=0-0", NULL);
	expect_devices(&t, 0, 1001);
	ck_assert_uint_eq(count(&t, "event: reset"), 0);
	stream_close(&t);
	/* The Last-Event-ID that a browser sends counts more than the offset in its address. */
	stream_open(&t, "/v1/events?after=0-0", at);
	expect_devices(&t, 3, 1001);
	stream_close(&t);
}
END_TEST

START_TEST(resumes_at_the_end)
{
	struct stream t;
	char at[HW_STREAM_ID_TEXT];
	stream_open(&t, "/v1/events", NULL);
	expect_open(&t);
	tell(0, 1);
	expect_devices(&t, 0, 1);
	text_of(&t, 0, at);
	stream_close(&t);
	stream_open(&t, "/v1/events", at);
	expect_open(&t);
	settle(&t);
	ck_assert_uint_eq(count(&t, "event: "), 0);
	tell(1, 2);
	expect_devices(&t, 1, 2);
	stream_close(&t);
}
END_TEST

START_TEST(what_is_gone_gives_a_reset)
{
	static const char *const places[] = {"1-1", "nonsense", "9999999999999-1", "1700000000000-99999999", "-"};
	struct stream t;
	char at[HW_STREAM_ID_TEXT];
	tell(0, 3);
	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		stream_open(&t, "/v1/events", places[i]);
		expect_count(&t, "event: reset\nid: ", 1);
		ck_assert_ptr_nonnull(strstr(t.text, "\ndata: {}\n\n"));
		tell(3 + i, 4 + i);
		expect_devices(&t, 3 + i, 4 + i);
		text_of(&t, 0, at); /* and the place that it gives is good */
		stream_close(&t);
		stream_open(&t, "/v1/events", at);
		expect_devices(&t, 3 + i, 4 + i);
		stream_close(&t);
	}
	stream_open(&t, "/v1/events", at);
	expect_open(&t);
	settle(&t);
	stream_close(&t);
	tell(100, 100 + 10001);
	stream_open(&t, "/v1/events", at);
	expect_count(&t, "event: reset\n", 1);
	ck_assert_uint_eq(count(&t, "event: transition"), 0);
	stream_close(&t);
	stream_open(&t, "/v1/events?after=0-0", NULL);
	expect_count(&t, "event: reset\n", 1);
	stream_close(&t);
}
END_TEST

START_TEST(wrong_requests)
{
	ck_assert_int_eq(get(&s, "/v1/events?since=1", &r), 400);
	reply_fini(&r);
	ck_assert_int_eq(get(&s, "/v1/events?after=%zz", &r), 400);
	reply_fini(&r);
	ask(&s, "POST", "/v1/events", NULL, &r);
	ck_assert_int_eq(r.code, 405);
	ck_assert_uint_eq(hw_control_clients(s.control).now, 0);
}
END_TEST

START_TEST(there_is_room_for_64)
{
	struct stream t[64];
	long long since = clock_ms();
	for (int i = 0; i < 64; i++) {
		stream_open(&t[i], "/v1/events", NULL);
		expect_open(&t[i]);
	}
	ck_assert_uint_eq(hw_control_clients(s.control).now, 64);
	ck_assert_int_eq(get(&s, "/v1/events", &r), 503);
	ck_assert_ptr_nonnull(strstr(r.body, "\"error\":"));
	ck_assert_uint_eq(hw_control_clients(s.control).refused, 1);
	tell(0, 10);
	for (int i = 0; i < 64; i++)
		expect_devices(&t[i], 0, 10);
	stream_close(&t[31]);
	stream_close(&t[0]);
	while (hw_control_clients(s.control).now > 62) {
		server_turn(&s);
		ck_assert(!too_late(since));
	}
	stream_open(&t[0], "/v1/events", NULL);
	stream_open(&t[31], "/v1/events", NULL);
	expect_open(&t[0]);
	expect_open(&t[31]);
	tell(10, 11);
	expect_devices(&t[0], 10, 11);
	expect_devices(&t[63], 0, 11);
	for (int i = 0; i < 64; i++)
		stream_close(&t[i]);
}
END_TEST

/* More events at once than are kept for a follower: the client falls behind, and gets all of them nevertheless. */
START_TEST(a_burst_is_taken_page_by_page)
{
	struct stream t, slow;
	stream_open(&t, "/v1/events", NULL);
	expect_open(&t);
	stream_open(&slow, "/v1/events", NULL);
	expect_open(&slow);
	tell(0, 9000); /* about 2 MB */
	for (long long since = clock_ms(), i = 0; i < 200 && clock_ms() - since < 5000; i++) {
		server_turn(&s);
		stream_take(&t);
	}
	ck_assert_uint_ge(hw_control_clients(s.control).lagging, 1);
	t.beside = &slow;
	expect_devices(&t, 0, 9000);
	t.beside = NULL;
	expect_devices(&slow, 0, 9000);
	settle(&slow);
	ck_assert_uint_eq(hw_control_clients(s.control).lagging, 0);
	tell(9000, 9001);
	expect_devices(&t, 0, 9001);
	expect_devices(&slow, 0, 9001);
	stream_close(&t);
	stream_close(&slow);
}
END_TEST

/* Such a client costs no more than a few pages, and is disconnected after ten seconds in which it read nothing. */
START_TEST(who_never_reads_is_cut_off)
{
	struct stream t, deaf;
	long long since = clock_ms();
	unsigned told = 0;
	stream_open(&deaf, "/v1/events", NULL);
	expect_open(&deaf);
	stream_open(&t, "/v1/events", NULL);
	expect_open(&t);
	while (hw_control_clients(s.control).now == 2) {
		struct pollfd wait = {.fd = -1};
		poll(&wait, 1, 20);
		tell(told, told + 20);
		told += 20;
		server_turn(&s);
		stream_take(&t);
		ck_assert_within(clock_ms() - since, 25000, "ms");
	}
	ck_assert_int_ge(clock_ms() - since, 9000);
	expect_devices(&t, 0, told);
	stream_take(&deaf);
	ck_assert_uint_lt(deaf.n, 2 << 20);
	stream_close(&t);
	stream_close(&deaf);
}
END_TEST

START_TEST(who_talks_is_heard_no_further)
{
	struct stream t;
	char junk[4096];
	memset(junk, 'x', sizeof(junk));
	stream_open(&t, "/v1/events", NULL);
	expect_open(&t);
	for (int i = 0; i < 1000; i++) {
		if (send(t.fd, junk, sizeof(junk), MSG_NOSIGNAL) < 0)
			break;
		server_turn(&s);
	}
	tell(0, 1);
	expect_devices(&t, 0, 1);
	stream_close(&t);
}
END_TEST

START_TEST(the_server_stops_with_clients)
{
	struct stream t, late;
	tell(0, 100);
	stream_open(&t, "/v1/events", NULL);
	expect_open(&t);
	stream_open(&late, "/v1/events", "0-0");
	tell(100, 5000);
	server_turn(&s);
	hw_control_free(s.control);
	s.control = NULL;
	stream_take(&t);
	ck_assert(t.closed);
	stream_close(&t);
	stream_close(&late);
}
END_TEST

/* --- what happened lately */

START_TEST(transitions_newest_first)
{
	ck_assert_str_eq(ids_of("/v1/transitions"), "");
	tell(0, 12);
	ck_assert_str_eq(ids_of("/v1/transitions"), "d11,d10,d9,d8,d7,d6,d5,d4,d3,d2,d1,d0");
	ck_assert_str_eq(ids_of("/v1/transitions?limit=2"), "d11,d10");
	tell(5, 6);
	ck_assert_str_eq(ids_of("/v1/devices/d5/events"), "d5,d5");
	ck_assert_str_eq(ids_of("/v1/devices/d5/events?limit=1"), "d5");
	ck_assert_str_eq(ids_of("/v1/devices/nobody/events"), "");
	ck_assert_ptr_nonnull(strstr(r.body, "{\"transitions\":[],\"complete\":true}"));
	tell(100, 100 + 10000);
	ck_assert_str_eq(ids_of("/v1/devices/d5/events"), "");
	ck_assert_str_eq(ids_of("/v1/devices/d100/events"), "d100");
	static const char *const bad[] = {"/v1/transitions?limit=0", "/v1/transitions?limit=1001",
	                                  "/v1/transitions?limit=x", "/v1/transitions?a=b",
	                                  "/v1/transitions?a",       "/v1/devices/%ff/events"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		reply_fini(&r);
		ck_assert_int_eq(get(&s, bad[i], &r), 400);
	}
	reply_fini(&r);
	ck_assert_int_eq(get(&s, "/v1/devices/a/event", &r), 404);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("control_events");
	TCase *tc = tcase_create("memory");
	tcase_add_checked_fixture(tc, rig_set_up, rig_tear_down);
	tcase_set_timeout(tc, 40);
	tcase_add_test(tc, an_event_says_all);
	tcase_add_test(tc, nobody_hears_the_past);
	tcase_add_test(tc, resumes_where_it_was);
	tcase_add_test(tc, resumes_at_the_end);
	tcase_add_test(tc, what_is_gone_gives_a_reset);
	tcase_add_test(tc, wrong_requests);
	tcase_add_test(tc, there_is_room_for_64);
	tcase_add_test(tc, a_burst_is_taken_page_by_page);
	tcase_add_test(tc, who_never_reads_is_cut_off);
	tcase_add_test(tc, who_talks_is_heard_no_further);
	tcase_add_test(tc, the_server_stops_with_clients);
	tcase_add_test(tc, transitions_newest_first);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

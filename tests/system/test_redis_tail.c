/* SPDX-License-Identifier: MIT */
/* Following the event stream: each entry in order, or a gap that is reported. */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/tail.h"
#include "redis_fixture.h"

#define LONG_MS PATIENCE_MS

static struct {
	struct event_base *base;
	struct event *tick;
	struct hw_tail *tail;
	unsigned ups, downs, gaps, troubles;
	enum hw_tail_gap gap;
	struct hw_stream_id gap_from, last;
	char trouble[512], why[512];
	char server[2][64];    /* which it is of, when the link went and when it came */
	uint64_t events, next; /* how many events came; the number that the next one must have */
	bool disorder;
	char node[16];
	uint64_t epoch;
} w;

static void on_link(void *arg, bool up, const char *why)
{
	(void)arg;
	*(up ? &w.ups : &w.downs) += 1;
	snprintf(w.server[up], sizeof(w.server[up]), "%s", w.tail ? hw_tail_server(w.tail) : "");
	snprintf(w.why, sizeof(w.why), "%s", why);
}

/* Devices are numbered by `write_entries`. */
static void on_page(void *arg, const struct hw_event_page *page)
{
	(void)arg;
	for (size_t i = 0; i < page->n; i++) {
		const struct hw_event *e = &page->events[i];
		w.disorder |= strtoull(e->id + 1, NULL, 10) != w.next++;
		w.events++;
		w.epoch = e->epoch;
		snprintf(w.node, sizeof(w.node), "%.*s", (int)e->node_len, e->node);
	}
	w.last = page->last;
}

static void on_gap(void *arg, enum hw_tail_gap gap, struct hw_stream_id from, const char *why)
{
	(void)arg;
	ck_assert(why[0]);
	w.gaps++;
	w.gap = gap;
	w.gap_from = from;
}

static void on_trouble(void *arg, const char *what)
{
	(void)arg;
	w.troubles++;
	snprintf(w.trouble, sizeof(w.trouble), "%s", what);
}

static const struct hw_tail_ops ops = {on_link, on_page, on_gap, on_trouble};

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	hw_tail_tick(w.tail);
}

static void set_up(void)
{
	struct timeval every = {0, 20000};
	memset(&w, 0, sizeof(w));
	rig_serve(g, NULL);
	w.base = event_base_new();
	ck_assert_ptr_nonnull(w.base);
	w.tail = hw_tail_new(w.base, &(struct hw_tail_conf){.at = g->conf.at, .key_prefix = "device:", .seed = 1}, &ops,
	                     NULL);
	ck_assert_ptr_nonnull(w.tail);
	w.tick = event_new(w.base, -1, EV_PERSIST, on_tick, NULL);
	ck_assert_int_eq(event_add(w.tick, &every), 0);
}

static void tear_down(void)
{
	hw_tail_free(w.tail);
	event_free(w.tick);
	event_base_free(w.base);
	rig_kill_server(g);
}

static void until(bool (*done)(void))
{
	int64_t end = rig_now().mono.ns + LONG_MS * HW_NS_PER_MS;
	while (!done()) {
		ck_assert_msg(rig_now().mono.ns < end, "not within %d ms; link: %s; trouble: %s", LONG_MS, w.why,
		              w.trouble);
		ck_assert_int_ge(event_base_loop(w.base, EVLOOP_ONCE), 0);
	}
}

static uint64_t wanted;

static bool has_all(void)
{
	return w.events >= wanted && hw_tail_at_end(w.tail);
}

static bool has_gap(void)
{
	return w.gaps > 0 && hw_tail_at_end(w.tail);
}

static bool has_trouble(void)
{
	return w.troubles > 0;
}

static bool is_up(void)
{
	return hw_tail_up(w.tail);
}

static bool is_away(void)
{
	return w.downs > 0;
}

/* Entries from...to, pipelined. */
static void write_entries(uint64_t from, uint64_t to, const char *id)
{
	for (uint64_t i = from; i <= to; i++)
		ck_assert_int_eq(redisAppendCommand(g->look,
		                                    "XADD device:events %s id d%llu state online reason heartbeat "
		                                    "node n%d epoch %llu",
		                                    id, (unsigned long long)i, (int)(i % 2), (unsigned long long)i + 7),
		                 REDIS_OK);
	for (uint64_t i = from; i <= to; i++) {
		redisReply *reply;
		ck_assert_int_eq(redisGetReply(g->look, (void **)&reply), REDIS_OK);
		ck_assert_msg(reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS, "%s", reply->str);
		freeReplyObject(reply);
	}
}

static void follow_to(uint64_t n)
{
	wanted = n;
	until(has_all);
	ck_assert_uint_eq(w.events, n);
	ck_assert(!w.disorder);
}

/* --- without a gap ------------------------------------------------------------------------------------------------ */

START_TEST(everybodys_entries_in_their_order)
{
	write_entries(0, 449, "*");
	hw_tail_from(w.tail, (struct hw_stream_id){0, 0});
	follow_to(450);
	ck_assert_str_eq(w.node, "n1");
	ck_assert_uint_eq(w.epoch, 456);
	for (uint64_t i = 450; i < 470; i++) { /* each alone, waited for */
		write_entries(i, i, "*");
		follow_to(i + 1);
	}
	write_entries(470, 1269, "*"); /* while it waits: many at once, pages of them */
	follow_to(1270);
	ck_assert_uint_eq(w.gaps, 0);
	ck_assert_uint_eq(hw_tail_stats(w.tail)->entries, 1270);
}
END_TEST

START_TEST(from_a_place_in_the_middle)
{
	write_entries(0, 0, "5-1");
	write_entries(1, 1, "5-2");
	write_entries(2, 2, "6-1");
	w.next = 2;
	hw_tail_from(w.tail, (struct hw_stream_id){5, 2});
	follow_to(1);
	struct hw_stream_id at = hw_tail_offset(w.tail);
	ck_assert(at.ms == 6 && at.seq == 1 && w.gaps == 0);
	w.next = 1;
	w.events = 0;
	hw_tail_from(w.tail, (struct hw_stream_id){5, 1}); /* again, while it waits */
	follow_to(2);
}
END_TEST

/* An entry that is no transition is skipped, and is no gap. */
START_TEST(what_is_no_entry)
{
	hw_tail_from(w.tail, (struct hw_stream_id){0, 0});
	rig_do(g, "XADD device:events 5-1 what ever");
	write_entries(0, 0, "5-2");
	rig_do(g, "XADD device:events 5-3 id d1 state nowhere reason heartbeat");
	follow_to(1);
	write_entries(1, 1, "5-4");
	follow_to(2);
	ck_assert_uint_eq(w.gaps, 0);
}
END_TEST

START_TEST(a_connection_that_is_lost)
{
	hw_tail_from(w.tail, (struct hw_stream_id){0, 0});
	write_entries(0, 9, "*");
	follow_to(10);
	rig_do(g, "CLIENT KILL TYPE normal SKIPME yes");
	write_entries(10, 19, "*");
	follow_to(20);
	ck_assert_uint_eq(w.gaps, 0);
	ck_assert_uint_ge(w.ups, 2);
}
END_TEST

/* --- gaps --------------------------------------------------------------------------------------------------------- */

START_TEST(trimmed_past)
{
	write_entries(0, 99, "*");
	hw_tail_from(w.tail, (struct hw_stream_id){0, 0});
	follow_to(100);
	write_entries(100, 109, "*"); /* nothing turns the loop meanwhile */
	rig_do(g, "XTRIM device:events MAXLEN 5");
	until(has_gap);
	ck_assert_int_eq(w.gap, HW_TAIL_LOST);
	ck_assert_uint_eq(w.events, 100);
	w.next = 110;
	write_entries(110, 112, "*");
	follow_to(103);
	ck_assert_uint_eq(w.gaps, 1);
}
END_TEST

/* XREAD would wait for ever: new entries have smaller offsets. */
START_TEST(deleted_and_begun_anew_with_lower_places)
{
	write_entries(0, 9, "*");
	hw_tail_from(w.tail, (struct hw_stream_id){0, 0});
	follow_to(10);
	rig_do(g, "DEL device:events");
	write_entries(10, 10, "7-1");
	until(has_gap);
	ck_assert_int_eq(w.gap, HW_TAIL_LOST);
	ck_assert(w.gap_from.ms == 7 && w.gap_from.seq == 1);
	w.next = 11;
	write_entries(11, 11, "7-2");
	follow_to(11);
	rig_do(g, "DEL device:events");
	w.gaps = 0;
	until(has_gap);
	ck_assert(w.gap_from.ms == 0 && w.gap_from.seq == 0);
	w.next = 12;
	write_entries(12, 12, "3-1");
	follow_to(12);
}
END_TEST

START_TEST(a_place_that_never_was)
{
	write_entries(0, 9, "5-*");
	hw_tail_from(w.tail, (struct hw_stream_id){4, 4});
	until(has_gap);
	ck_assert_uint_eq(w.events, 0);
	ck_assert_uint_eq(w.gap_from.ms, 5);
}
END_TEST

/* It has all that was told, and still: nobody knows that. */
START_TEST(another_server)
{
	hw_tail_from(w.tail, (struct hw_stream_id){0, 0});
	write_entries(0, 0, "5-1");
	follow_to(1);
	rig_kill_server(g);
	until(is_away);
	rig_serve_again(g, NULL);
	write_entries(0, 0, "5-1");
	until(has_gap);
	ck_assert_int_eq(w.gap, HW_TAIL_SERVER);
	ck_assert_uint_eq(w.gap_from.ms, 5);
	ck_assert_uint_eq(w.gaps, 1);
	write_entries(1, 1, "5-2");
	follow_to(2);
}
END_TEST

/* Until that is told it is nobody's stream. */
START_TEST(another_server_is_told_before_it_is_followed)
{
	hw_tail_from(w.tail, (struct hw_stream_id){0, 0});
	write_entries(0, 0, "5-1");
	follow_to(1);
	ck_assert_uint_eq(strlen(w.server[true]), 40);
	rig_kill_server(g);
	until(is_away);
	ck_assert_str_eq(w.server[false], w.server[true]);
	rig_serve_again(g, NULL);
	until(has_gap);
	ck_assert_str_eq(w.server[true], "");
	ck_assert_uint_eq(strlen(hw_tail_server(w.tail)), 40);
	ck_assert_str_ne(hw_tail_server(w.tail), w.server[false]);
}
END_TEST

/* A place was missing, and its stream's end could not be had, at the server before. */
START_TEST(another_server_within_a_gap)
{
	hw_tail_from(w.tail, (struct hw_stream_id){0, 0});
	write_entries(0, 0, "5-1");
	follow_to(1);
	rig_do(g, "ACL SETUSER default -xrevrange");
	rig_do(g, "DEL device:events");
	until(has_trouble);
	ck_assert_uint_eq(w.gaps, 0);
	rig_kill_server(g);
	until(is_away);
	rig_serve_again(g, NULL);
	until(has_gap);
	ck_assert_int_eq(w.gap, HW_TAIL_SERVER);
}
END_TEST

/* A client that may not query the server's identity takes each connection for one to another server. */
START_TEST(a_server_that_does_not_say_who_it_is)
{
	until(is_up);
	rig_do(g, "ACL SETUSER default -info");
	rig_do(g, "CLIENT KILL TYPE normal SKIPME yes");
	until(is_away);
	until(is_up);
	hw_tail_from(w.tail, (struct hw_stream_id){0, 0});
	write_entries(0, 9, "*");
	follow_to(10);
	w.downs = 0;
	rig_do(g, "CLIENT KILL TYPE normal SKIPME yes");
	until(has_gap);
	ck_assert_int_eq(w.gap, HW_TAIL_SERVER);
}
END_TEST

START_TEST(another_type_is_named)
{
	rig_do(g, "SET device:events x");
	hw_tail_from(w.tail, (struct hw_stream_id){0, 0});
	until(has_trouble);
	ck_assert_msg(strstr(w.trouble, "device:events"), "%s", w.trouble);
	rig_do(g, "DEL device:events");
	write_entries(0, 9, "*");
	follow_to(10);
}
END_TEST

static bool is_denied(void)
{
	return hw_tail_is_denied(w.tail);
}

static bool is_not_denied(void)
{
	return !is_denied();
}

/* The read is retried each second, and reported once; and again after it has worked, even if that was short. */
START_TEST(the_right_to_read_is_taken_away)
{
	hw_tail_from(w.tail, (struct hw_stream_id){0, 0});
	write_entries(0, 9, "*");
	follow_to(10);
	ck_assert(!is_denied());
	for (unsigned k = 1; k <= 2; k++) {
		rig_do(g, "ACL SETUSER default -xrange");
		until(is_denied);
		ck_assert_uint_eq(w.troubles, k);
		ck_assert_msg(strstr(w.trouble, "xrange"), "%s", w.trouble);
		for (int64_t end = rig_now().mono.ns + 2500 * HW_NS_PER_MS; rig_now().mono.ns < end;)
			ck_assert_int_ge(event_base_loop(w.base, EVLOOP_ONCE), 0);
		ck_assert_uint_eq(w.troubles, k);
		ck_assert(is_denied());
		rig_do(g, "ACL SETUSER default +xrange");
		until(is_not_denied);
		write_entries(10 * k, 10 * k + 9, "*");
		follow_to(10 * k + 10);
	}
	ck_assert_uint_eq(w.gaps, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("redis tail");
	TCase *one = tcase_create("tail");
	tcase_add_checked_fixture(one, set_up, tear_down);
	tcase_set_timeout(one, 60);
	tcase_add_test(one, everybodys_entries_in_their_order);
	tcase_add_test(one, from_a_place_in_the_middle);
	tcase_add_test(one, what_is_no_entry);
	tcase_add_test(one, a_connection_that_is_lost);
	tcase_add_test(one, trimmed_past);
	tcase_add_test(one, deleted_and_begun_anew_with_lower_places);
	tcase_add_test(one, a_place_that_never_was);
	tcase_add_test(one, another_server);
	tcase_add_test(one, another_server_is_told_before_it_is_followed);
	tcase_add_test(one, another_server_within_a_gap);
	tcase_add_test(one, a_server_that_does_not_say_who_it_is);
	tcase_add_test(one, another_type_is_named);
	tcase_add_test(one, the_right_to_read_is_taken_away);
	suite_add_tcase(suite, one);
	return rig_run(suite);
}

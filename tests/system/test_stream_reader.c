/* SPDX-License-Identifier: MIT */
/* src/stream against a real Redis: the reader, polling and waiting, and members of a consumer group. test_redis_tail.c
 * has the gaps. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "redis_fixture.h"
#include "stream/group.h"
#include "stream/reader.h"

#define KEY   "stream"
#define COUNT 10

static struct {
	struct event_base *base;
	struct event *tick;
	struct hw_redis_link link;
	struct hw_stream_reader reader;
	struct hw_stream_group group;
	bool reads; /* the reader is the link's user, and not the group */
	uint64_t n, refuse, gaps;
	struct hw_stream_id after_gap, last;
	size_t delivered[3];
	struct hw_stream_id ids[100];
	bool idle;
} w;

static void add(uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i <= to; i++) {
		char command[80];
		snprintf(command, sizeof(command), "XADD " KEY " %llu-1 n %llu", (unsigned long long)i,
		         (unsigned long long)i);
		rig_do(g, command);
	}
}

/* --- the reader --------------------------------------------------------------------------------------------------- */

static bool on_page(void *arg, const struct hw_stream_page *page)
{
	(void)arg;
	if (w.refuse && page->n) {
		w.refuse--;
		return false;
	}
	for (size_t i = 0; i < page->n; i++) {
		struct hw_stream_id id;
		ck_assert(hw_stream_entry_id(page->entries[i], &id));
		ck_assert_int_gt(hw_stream_id_compare(id, w.last), 0);
		w.last = id;
	}
	ck_assert_uint_le(page->n, COUNT);
	w.n += page->n;
	return true;
}

static struct hw_stream_id on_gap(void *arg, struct hw_stream_id offset, struct hw_stream_id end)
{
	(void)arg, (void)offset;
	w.gaps++;
	return w.after_gap.ms ? w.after_gap : end;
}

static void on_reader_refused(void *arg, const char *error, bool reads)
{
	(void)arg, (void)reads;
	ck_abort_msg("%s", error);
}

static const struct hw_stream_reader_ops reader_ops = {on_page, on_gap, on_reader_refused};

/* --- the group ---------------------------------------------------------------------------------------------------- */

static void on_entries(void *arg, redisReply *const *entries, size_t n, enum hw_stream_delivery delivery)
{
	(void)arg;
	for (size_t i = 0; i < n; i++)
		ck_assert(hw_stream_entry_id(entries[i], &w.ids[w.n++]));
	w.delivered[delivery] += n;
}

static void on_idle(void *arg)
{
	(void)arg;
	w.idle = true;
}

static void on_group_refused(void *arg, const char *error)
{
	(void)arg;
	ck_abort_msg("%s", error);
}

static const struct hw_stream_group_ops group_ops = {on_entries, on_idle, on_group_refused};

/* --- the link ----------------------------------------------------------------------------------------------------- */

static void on_ready(void *arg)
{
	(void)arg;
	hw_redis_link_settled(&w.link);
	if (w.reads)
		hw_stream_reader_up(&w.reader);
	else
		hw_stream_group_up(&w.group);
}

static void on_lost(void *arg, const char *why)
{
	(void)arg, (void)why;
	hw_stream_reader_down(&w.reader);
	hw_stream_group_down(&w.group);
}

static const struct hw_redis_link_ops link_ops = {on_ready, on_lost, NULL};

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	hw_stream_reader_tick(&w.reader);
	if (!w.reads)
		hw_stream_group_read(&w.group);
}

static void begin(bool reads, int poll_ms, const char *member)
{
	struct timeval every = {0, 20000};
	const struct hw_stream_reader_conf reader = {&w.link, KEY, COUNT, poll_ms};
	const struct hw_stream_group_conf group = {&w.link, KEY, "readers", member, COUNT, 1};
	const struct hw_redis_link_conf link = {.at = g->conf.at, .seed = 1};
	w.reads = reads;
	ck_assert_int_eq(hw_stream_reader_init(&w.reader, w.base, &reader, &reader_ops, NULL), 0);
	hw_stream_group_init(&w.group, &group, &group_ops, NULL);
	ck_assert_int_eq(hw_redis_link_init(&w.link, w.base, &link, &link_ops, NULL), 0);
	w.tick = event_new(w.base, -1, EV_PERSIST, on_tick, NULL);
	ck_assert_int_eq(event_add(w.tick, &every), 0);
}

static void end(void)
{
	hw_redis_link_fini(&w.link);
	hw_stream_reader_fini(&w.reader);
	event_free(w.tick);
}

static void set_up(void)
{
	memset(&w, 0, sizeof(w));
	rig_serve(g, NULL);
	w.base = event_base_new();
}

static void tear_down(void)
{
	end();
	event_base_free(w.base);
	rig_kill_server(g);
}

static void until(uint64_t n)
{
	int64_t by = rig_now().mono.ns + PATIENCE_MS * HW_NS_PER_MS;
	while (w.n < n) {
		ck_assert_msg(rig_now().mono.ns < by, "%llu of %llu entries", (unsigned long long)w.n,
		              (unsigned long long)n);
		ck_assert_int_ge(event_base_loop(w.base, EVLOOP_ONCE), 0);
	}
	ck_assert_uint_eq(w.n, n);
}

/* --- tests -------------------------------------------------------------------------------------------------------- */

/* By polling, and by waiting at Redis. */
START_TEST(each_entry_once)
{
	begin(true, _i ? 5 : 0, "");
	add(1, 35);
	hw_stream_reader_from(&w.reader, (struct hw_stream_id){3, 1});
	until(32);
	add(36, 50);
	until(47);
	ck_assert_uint_eq(w.gaps, 0);
	ck_assert_uint_eq(hw_stream_reader_offset(&w.reader).ms, 50);
}
END_TEST

START_TEST(a_page_that_was_not_accepted_comes_again)
{
	begin(true, 0, "");
	add(1, 15);
	w.refuse = 1;
	hw_stream_reader_from(&w.reader, (struct hw_stream_id){0, 0});
	until(15);
	ck_assert_uint_eq(w.refuse, 0);
}
END_TEST

/* The owner goes on from an offset whose entry was trimmed: that is one gap, and not one for each page. */
START_TEST(on_from_an_offset_without_an_entry)
{
	begin(true, _i ? 5 : 0, "");
	add(1, 10);
	hw_stream_reader_from(&w.reader, (struct hw_stream_id){0, 0});
	until(10);
	add(11, 30);
	rig_do(g, "XTRIM " KEY " MAXLEN 15");
	w.after_gap = (struct hw_stream_id){10, 1};
	until(25);
	ck_assert_uint_eq(w.gaps, 1);
	add(31, 31);
	until(26);
	ck_assert_uint_eq(w.gaps, 1);
}
END_TEST

START_TEST(from_the_end_and_after_a_stop)
{
	begin(true, 5, "");
	add(1, 10);
	hw_stream_reader_recover(&w.reader);
	while (w.gaps == 0)
		ck_assert_int_ge(event_base_loop(w.base, EVLOOP_ONCE), 0);
	add(11, 12);
	until(2);
	hw_stream_reader_stop(&w.reader);
	add(13, 14);
	ck_assert(!hw_stream_reader_is_started(&w.reader));
	hw_stream_reader_from(&w.reader, (struct hw_stream_id){12, 1});
	until(4);
}
END_TEST

/* What was not acknowledged comes again: to the member itself, and to another one. */
START_TEST(pending_entries_are_read_again)
{
	struct hw_stream_acks acks = {.argc = 0};
	begin(false, 0, "a");
	add(1, 15);
	until(15);
	ck_assert_uint_eq(w.delivered[HW_STREAM_FRESH], 15);
	for (int i = 0; i < 5; i++)
		ck_assert(!hw_stream_acks_add(&acks, &w.group, w.ids[i]));
	redisReply *reply = redisCommandArgv(g->look, acks.argc, acks.argv, acks.len);
	ck_assert_int_eq(reply->integer, 5);
	freeReplyObject(reply);
	hw_stream_group_up(&w.group);
	until(25);
	ck_assert_uint_eq(w.delivered[HW_STREAM_OWN], 10);
	end();
	begin(false, 0, "b");
	until(35);
	ck_assert_uint_eq(w.delivered[HW_STREAM_TAKEN_OVER], 10);
}
END_TEST

START_TEST(a_group_that_was_deleted_is_made_again)
{
	begin(false, 0, "a");
	add(1, 3);
	until(3);
	rig_do(g, "DEL " KEY);
	add(1, 4);
	until(7);
	ck_assert_uint_eq(w.delivered[HW_STREAM_FRESH], 7);
}
END_TEST

START_TEST(acks_are_full)
{
	struct hw_stream_acks acks = {.argc = 0};
	begin(false, 0, "a");
	for (uint64_t i = 1; i < HW_STREAM_ACKS; i++)
		ck_assert(!hw_stream_acks_add(&acks, &w.group, (struct hw_stream_id){i, 1}));
	ck_assert(hw_stream_acks_add(&acks, &w.group, (struct hw_stream_id){HW_STREAM_ACKS, 1}));
	ck_assert_int_eq(acks.argc, 3 + HW_STREAM_ACKS);
	ck_assert_str_eq(acks.argv[3], "1-1");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("stream reader");
	TCase *tc = tcase_create("stream reader");
	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_loop_test(tc, each_entry_once, 0, 2);
	tcase_add_test(tc, a_page_that_was_not_accepted_comes_again);
	tcase_add_loop_test(tc, on_from_an_offset_without_an_entry, 0, 2);
	tcase_add_test(tc, from_the_end_and_after_a_stop);
	tcase_add_test(tc, pending_entries_are_read_again);
	tcase_add_test(tc, a_group_that_was_deleted_is_made_again);
	tcase_add_test(tc, acks_are_full);
	suite_add_tcase(s, tc);
	return rig_run(s);
}

/* SPDX-License-Identifier: MIT */
/* The event stream: the offset of each transition, and reading it again, by page, with entries that do not belong
 * there. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../sink_state.h"
#include "redis_fixture.h"

static void set_up(void)
{
	fixture_up();
	hw_redis_load(g->r);
	rig_until(g, rig_is_loaded, IDLE_MS);
}

static struct hw_transition transit(uint32_t i, enum hw_state state, enum hw_reason reason)
{
	struct hw_transition t = rig_transit(g, i, state, reason);
	rig_until(g, rig_is_idle, IDLE_MS);
	return t;
}

static bool has_page(struct rig *rig)
{
	return rig->pages > 0;
}

static void after(struct hw_stream_id at)
{
	g->pages = 0;
	ck_assert_int_eq(hw_redis_events_after(g->r, at), 0);
	rig_until(g, has_page, IDLE_MS);
}

static const struct hw_stream_id start = {0, 0};

static struct hw_stream_id newest(void)
{
	struct hw_stream_id at;
	redisReply *reply = rig_ask(g, "XREVRANGE device:events + - COUNT 1");
	const redisReply *text = reply->element[0]->element[0];
	ck_assert_int_eq(hw_stream_id_parse(text->str, text->len, &at), 0);
	freeReplyObject(reply);
	return at;
}

static bool same(struct hw_stream_id a, struct hw_stream_id b)
{
	return hw_stream_id_compare(a, b) == 0;
}

START_TEST(an_edge_tells_its_place)
{
	uint32_t i = rig_device(g, GROUP_PLAIN, "a");
	struct hw_transition t = transit(i, HW_STATE_ONLINE, HW_REASON_HEARTBEAT);
	ck_assert_uint_eq(g->events, 1);
	ck_assert(same(g->event_at, newest()));
	ck_assert_uint_eq(g->event.seq, t.seq);
	ck_assert_int_eq(g->event.state, HW_STATE_ONLINE);
	t = transit(i, HW_STATE_FORGOTTEN, HW_REASON_OPERATOR);
	ck_assert_uint_eq(g->events, 2);
	ck_assert(same(g->event_at, newest()));
	ck_assert_int_eq(g->event.state, HW_STATE_FORGOTTEN);
	ck_assert_int_eq(g->event.reason, HW_REASON_OPERATOR);
}
END_TEST

/* A transition that is there already has no offset to report, and neither has a snapshot. */
START_TEST(nothing_is_told_twice)
{
	uint32_t i = rig_device(g, GROUP_PLAIN, "a");
	struct hw_transition t = transit(i, HW_STATE_ONLINE, HW_REASON_HEARTBEAT);
	hw_redis_transition(g->r, rig_now(), &t);
	sink_rewrite(g->r, t.device);
	rig_until(g, rig_is_idle, IDLE_MS);
	ck_assert_uint_eq(g->events, 1);
	ck_assert_int_eq(rig_number(g, "XLEN device:events"), 1);
}
END_TEST

START_TEST(a_page_says_all)
{
	uint32_t i = rig_device(g, GROUP_PLAIN, "\xc3\xa9 \"x\"");
	struct hw_transition t = transit(i, HW_STATE_ONLINE, HW_REASON_HEARTBEAT);
	transit(i, HW_STATE_OFFLINE, HW_REASON_WILL);
	after(start);
	ck_assert(g->page.ok && !g->page.gone && !g->page.more);
	ck_assert_uint_eq(g->page.n, 2);
	const struct hw_event *e = &g->page.events[0];
	ck_assert_str_eq(g->page_ids[0], "\xc3\xa9 \"x\"");
	ck_assert_str_eq(g->page_group, "plain");
	ck_assert_int_eq(e->state, HW_STATE_ONLINE);
	ck_assert_int_eq(e->reason, HW_REASON_HEARTBEAT);
	ck_assert_int_eq(e->time_ms, t.time_ms);
	ck_assert_int_eq(e->last_seen_ms, t.last_seen_ms);
	ck_assert_uint_eq(e->seq, t.seq);
	ck_assert_int_eq(e[1].reason, HW_REASON_WILL);
	ck_assert(same(g->page.last, newest()) && same(e[1].at, newest()));
	after(e->at);
	ck_assert_uint_eq(g->page.n, 1);
	ck_assert_int_eq(g->page.events[0].state, HW_STATE_OFFLINE);
	struct hw_stream_id last = g->page.last;
	after(last);
	ck_assert(g->page.ok && !g->page.gone && !g->page.more && same(g->page.last, last));
	ck_assert_uint_eq(g->page.n, 0);
}
END_TEST

START_TEST(pages_follow_each_other)
{
	struct hw_stream_id at = start;
	unsigned found = 0;
	char id[16];
	for (int i = 0; i < 3 * HW_EVENTS_PAGE; i++) {
		snprintf(id, sizeof(id), "d%d", i);
		rig_transit(g, rig_device(g, GROUP_PLAIN, id), HW_STATE_ONLINE, HW_REASON_HEARTBEAT);
	}
	rig_until(g, rig_is_idle, IDLE_MS);
	ck_assert_uint_eq(g->events, 3 * HW_EVENTS_PAGE);
	do {
		after(at);
		ck_assert(g->page.ok && !g->page.gone);
		for (size_t i = 0; i < g->page.n; i++) {
			snprintf(id, sizeof(id), "d%u", found++);
			ck_assert_str_eq(g->page_ids[i], id);
		}
		at = g->page.last;
	} while (g->page.more);
	ck_assert_uint_eq(found, 3 * HW_EVENTS_PAGE);
	g->pages = 0;
	ck_assert_int_eq(hw_redis_events_last(g->r), 0);
	rig_until(g, has_page, IDLE_MS);
	ck_assert_uint_eq(g->page.n, HW_EVENTS_PAGE);
	ck_assert(same(g->page.last, newest()) && !g->page.gone && g->page.more);
	snprintf(id, sizeof(id), "d%d", 2 * HW_EVENTS_PAGE);
	ck_assert_str_eq(g->page_ids[0], id); /* oldest first here too */
}
END_TEST

START_TEST(a_place_that_is_gone)
{
	uint32_t i = rig_device(g, GROUP_PLAIN, "a");
	transit(i, HW_STATE_ONLINE, HW_REASON_HEARTBEAT);
	struct hw_stream_id first = g->event_at;
	transit(i, HW_STATE_OFFLINE, HW_REASON_TIMEOUT);
	rig_do(g, "XTRIM device:events MAXLEN 1");
	after(first);
	ck_assert(g->page.ok && g->page.gone);
	after((struct hw_stream_id){1, 1});
	ck_assert(g->page.gone);
	after((struct hw_stream_id){UINT64_MAX, UINT64_MAX});
	ck_assert(g->page.gone);
	rig_do(g, "DEL device:events");
	after(first);
	ck_assert(g->page.ok && g->page.gone);
	after(start);
	ck_assert(g->page.ok && !g->page.gone && g->page.n == 0 && same(g->page.last, start));
}
END_TEST

/* Entries of another monitor, and of any other program. */
START_TEST(strangers_are_passed_over)
{
	static const char *const bad[] = {
		"id x state online reason heartbeat node node-2",
		"id x state online reason heartbeat",
		"id x state sleeping reason heartbeat node node-1",
		"id x state online reason boredom node node-1",
		"id a+b state online reason heartbeat node node-1",
		"state online reason heartbeat node node-1",
		"what ever",
	};
	char command[256];
	transit(rig_device(g, GROUP_PLAIN, "a"), HW_STATE_ONLINE, HW_REASON_HEARTBEAT);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(command, sizeof(command), "XADD device:events * %s", bad[i]);
		rig_do(g, command);
	}
	after(start);
	ck_assert(g->page.ok && !g->page.more);
	ck_assert_uint_eq(g->page.n, 1);
	ck_assert(same(g->page.last, newest()));
	after(g->page.last);
	ck_assert(!g->page.gone);
}
END_TEST

START_TEST(a_stream_that_is_none)
{
	rig_do(g, "DEL device:events");
	rig_do(g, "SET device:events x");
	after(start);
	ck_assert(!g->page.ok);
	ck_assert_uint_eq(g->troubles, 1);
	g->pages = 0;
	ck_assert_int_eq(hw_redis_events_last(g->r), 0);
	rig_until(g, has_page, IDLE_MS);
	ck_assert(!g->page.ok);
}
END_TEST

START_TEST(a_lost_link_answers_nothing)
{
	rig_do(g, "CLIENT PAUSE 100000");
	ck_assert_int_eq(hw_redis_events_after(g->r, start), 0);
	rig_kill_server(g);
	rig_until(g, is_down, 20000);
	ck_assert_uint_eq(g->pages, 0);
	ck_assert_int_eq(hw_redis_events_after(g->r, start), -ENOTCONN);
	ck_assert_int_eq(hw_redis_events_last(g->r), -ENOTCONN);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("redis_events");
	TCase *t = tcase_create("all");
	tcase_add_checked_fixture(t, set_up, fixture_down);
	tcase_set_timeout(t, 30);
	tcase_add_test(t, an_edge_tells_its_place);
	tcase_add_test(t, nothing_is_told_twice);
	tcase_add_test(t, a_page_says_all);
	tcase_add_test(t, pages_follow_each_other);
	tcase_add_test(t, a_place_that_is_gone);
	tcase_add_test(t, strangers_are_passed_over);
	tcase_add_test(t, a_stream_that_is_none);
	tcase_add_test(t, a_lost_link_answers_nothing);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return rig_run(suite());
}

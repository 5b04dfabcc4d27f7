/* SPDX-License-Identifier: MIT */
/* Redis is stopped, loses data or hangs: no pending write is lost, and no transition is written twice. */
#include <check.h>
#include <hiredis/sds.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../sink_state.h"
#include "bound.h"
#include "link/link.h"
#include "redis/inner.h"
#include "redis_fixture.h"

static bool is_emptied(struct rig *r)
{
	return r->emptied > 0;
}

/* --- timers without memory -----------------------------------------------------------------------------------------
 */

int __real_event_add(struct event *ev, const struct timeval *tv);
int __wrap_event_add(struct event *ev, const struct timeval *tv);

static bool timers_fail;

int __wrap_event_add(struct event *ev, const struct timeval *tv)
{
	return timers_fail && tv ? -1 : __real_event_add(ev, tv);
}

static bool has_failed_thrice(struct rig *r)
{
	static int turns;
	return !hw_redis_up(r->r) && ++turns > 3;
}

/* The only timer that connects again, the one that sends, and that of the sweep find no memory: they go on with the
 * next tick. */
START_TEST(timers_that_cannot_be_armed)
{
	make_devices(300);
	g->marking = true;
	rig_until(g, is_marked, IDLE_MS);
	settle();
	timers_fail = true;
	rig_kill_server(g);
	rig_until(g, has_failed_thrice, IDLE_MS);
	online(0);
	rig_serve_again(g, NULL);
	timers_fail = false;
	rig_until(g, rig_is_up, 15000);
	settle();
	timers_fail = true;
	online(1);
	timers_fail = false;
	settle();
	compare_all();
}
END_TEST

/* --- no buffer -----------------------------------------------------------------------------------------------------
 */

static unsigned lost;

static bool is_back(struct rig *r)
{
	return r->downs > lost && hw_redis_up(r->r);
}

/* hiredis 0.14 leaves the connection without an output buffer if its allocation fails after a write. */
static void take_buffer(void)
{
	redisContext *c = &g->r->link.ac->c;
	sdsfree(c->obuf);
	c->obuf = NULL;
	lost = g->downs;
}

/* The buffer is missing at the next command, or at the next write. The connection is lost, and nothing else is. */
START_TEST(no_memory_for_the_output_buffer)
{
	make_devices(300);
	settle();
	take_buffer();
	online(0);
	rig_until(g, is_back, IDLE_MS);
	settle();
	compare_all();
	take_buffer();
	g->r->link.ac->ev.addWrite(g->r->link.ac->ev.data);
	rig_until(g, is_back, IDLE_MS);
	online(1);
	settle();
	compare_all();
	ck_assert_uint_eq(g->downs, 2);
}
END_TEST

/* --- forgetting ----------------------------------------------------------------------------------------------------
 */

START_TEST(scripts_are_loaded_again)
{
	make_devices(3);
	settle();
	g->marking = true;
	for (int k = 0; k < 3; k++) {
		rig_do(g, "SCRIPT FLUSH");
		make_devices(300);
		hw_redis_refresh(g->r, hw_registry_ref(hw_monitor_registry(g->m), 1));
		settle();
	}
	compare_all();
	ck_assert_int_eq(events(), 903);
	ck_assert_uint_eq(g->troubles, 0);
	ck_assert_uint_eq(g->downs, 0);
}
END_TEST

START_TEST(emptied_under_a_live_link)
{
	make_devices(3000);
	g->marking = true;
	rig_until(g, is_marked, IDLE_MS);
	settle();
	rig_do(g, "FLUSHALL");
	rig_until(g, is_emptied, IDLE_MS);
	settle();
	compare_all();
	ck_assert_uint_eq(g->emptied, 1);
	ck_assert_uint_eq(hw_redis_stats(g->r)->snapshots, 3000);
	ck_assert_int_eq(rig_number(g, "EXISTS device:events device:outbox"), 0);
}
END_TEST

static char older[128]; /* a mark of this run */

static bool mark_has_moved(struct rig *r)
{
	redisReply *mark = rig_ask(r, "GET device:monitor:node-1");
	bool moved = mark->type == REDIS_REPLY_STRING && strcmp(mark->str, older) != 0;
	freeReplyObject(mark);
	return moved;
}

static bool half_is_rewritten(struct rig *r)
{
	return hw_redis_stats(r->r)->snapshots >= 150;
}

/* Of an idle monitor: it writes nothing but its sight record. */
START_TEST(the_marks_script_is_loaded_again)
{
	g->marking = true;
	rig_until(g, is_marked, IDLE_MS);
	settle();
	rig_do(g, "SCRIPT FLUSH");
	redisReply *mark = rig_ask(g, "GET device:monitor:node-1");
	snprintf(older, sizeof(older), "%s", mark->str);
	freeReplyObject(mark);
	rig_until(g, mark_has_moved, IDLE_MS);
	ck_assert_uint_eq(g->downs, 0);
}
END_TEST

static unsigned downs;

static bool is_up_again(struct rig *r)
{
	return r->downs > downs && hw_redis_up(r->r);
}

/* Whether it waits longer each time depends on the tries since it was up, not on those since the start. The best of
 * several: one may have to wait for a processor. */
START_TEST(a_lost_link_is_soon_back_however_often)
{
	int64_t best_ms = INT64_MAX;
	for (int round = 0; round < 10; round++) {
		settle();
		downs = g->downs;
		int64_t began = rig_now().mono.ns;
		rig_do(g, "CLIENT KILL TYPE normal SKIPME yes");
		rig_until(g, is_up_again, IDLE_MS);
		int64_t ms = (rig_now().mono.ns - began) / HW_NS_PER_MS;
		if (round >= 5 && ms < best_ms)
			best_ms = ms;
	}
	ck_assert_within(best_ms, HW_LINK_BACKOFF_MAX_MS / 2, "ms");
}
END_TEST

/* A Redis that comes back with an older copy has this run's mark, and it says an earlier time than was written. */
START_TEST(rolled_back_under_a_live_link)
{
	make_devices(300);
	g->marking = true;
	rig_until(g, is_marked, IDLE_MS);
	settle();
	older[0] = '\0';
	rig_until(g, mark_has_moved, IDLE_MS);
	redisReply *mark = rig_ask(g, "GET device:monitor:node-1");
	snprintf(older, sizeof(older), "%s", mark->str);
	freeReplyObject(mark);
	for (int k = 0; k < 2; k++) { /* the next one may have been on its way already */
		rig_until(g, mark_has_moved, IDLE_MS);
		rig_do(g, "SET device:monitor:node-1 %s", older);
	}
	for (uint32_t k = 0; k < 150; k++) {
		struct hw_id id = hw_device_id(rig_at(g, k));
		rig_do(g, "DEL device:state:%b", id.text, id.len);
	}
	rig_until(g, half_is_rewritten, IDLE_MS);
	settle();
	compare_all();
	ck_assert_uint_eq(g->emptied, 0);
}
END_TEST

START_TEST(restarted_empty)
{
	make_devices(300);
	g->marking = true;
	rig_until(g, is_marked, IDLE_MS);
	settle();
	rig_kill_server(g);
	rig_until(g, is_down, IDLE_MS);
	ck_assert(!hw_redis_up(g->r));
	ck_assert_int_gt(hw_redis_down_since(g->r).ns, 0);
	/* Edges wait for it meanwhile; those of the time before are gone with the stream. */
	struct hw_transition t = online(0);
	ck_assert(!sink_is_idle(g->r));
	ck_assert_uint_eq(hw_redis_stats(g->r)->transitions_waiting, 1);
	ck_assert_int_gt(hw_redis_stats(g->r)->oldest_transition_ms, 0);
	rig_serve_again(g, NULL);
	rig_until(g, rig_is_up, 15000);
	settle();
	compare_all();
	ck_assert_uint_eq(g->emptied, 1);
	ck_assert_int_eq(events(), 1);
	ck_assert_int_eq(rig_number(g, "HGET device:state:d0 seq"), (long long)t.seq);
	ck_assert_uint_eq(hw_redis_stats(g->r)->reconnects, 1);
	ck_assert_int_eq(hw_redis_down_since(g->r).ns, 0);
}
END_TEST

/* --- a link that is cut again and again ----------------------------------------------------------------------------
 */

#define CUT_EDGES   5000
#define CUT_DEVICES 150

static uint64_t random_state;

static unsigned dice(unsigned n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (unsigned)(random_state % n);
}

/* The stream holds exactly `want`, each device's entries in their order. */
static void compare_stream(const struct hw_transition *want, size_t n)
{
	char id[16];
	redisReply *reply = rig_ask(g, "XRANGE device:events - +");
	ck_assert_uint_eq(reply->elements, n);
	size_t *next = calloc(CUT_DEVICES, sizeof(*next));
	for (size_t k = 0; k < n; k++) {
		const redisReply *fields = reply->element[k]->element[1];
		unsigned device = (unsigned)strtoul(fields->element[1]->str + 1, NULL, 10);
		size_t *at = &next[device];
		while (*at < n && want[*at].device.index != device)
			++*at;
		snprintf(id, sizeof(id), "%llu", *at < n ? (unsigned long long)want[*at].seq : 0);
		ck_assert_str_eq(fields->element[15]->str, id);
		++*at;
	}
	free(next);
	freeReplyObject(reply);
}

START_TEST(cut_at_random)
{
	struct hw_transition *made = calloc(CUT_EDGES, sizeof(*made));
	size_t n = 0;
	random_state = rig_seed();
	make_devices(CUT_DEVICES);
	settle();
	rig_do(g, "DEL device:events");
	while (n < CUT_EDGES) {
		for (unsigned burst = 1 + dice(600); burst && n < CUT_EDGES; burst--) {
			uint32_t i = dice(CUT_DEVICES);
			bool to = dice(2);
			made[n++] = rig_transit(g, i, to ? HW_STATE_ONLINE : HW_STATE_OFFLINE,
			                        to ? HW_REASON_HEARTBEAT : HW_REASON_TIMEOUT);
			if (dice(4) == 0)
				hw_redis_refresh(g->r, made[n - 1].device);
		}
		for (unsigned turns = dice(6); turns; turns--)
			event_base_loop(g->base, EVLOOP_NONBLOCK);
		rig_do(g, "CLIENT KILL TYPE normal SKIPME yes");
		if (dice(2))
			rig_until(g, rig_is_up, IDLE_MS);
	}
	settle();
	ck_assert_uint_gt(hw_redis_stats(g->r)->reconnects, 2);
	compare_stream(made, n);
	compare_all();
	ck_assert_uint_eq(g->newer, 0);
	ck_assert_uint_eq(hw_redis_stats(g->r)->transitions_dropped, 0);
	free(made);
}
END_TEST

/* --- standing still ------------------------------------------------------------------------------------------------
 */

START_TEST(a_pause_is_waited_for)
{
	make_devices(10);
	settle();
	rig_do(g, "CLIENT PAUSE 1200");
	make_devices(10);
	g->marking = true;
	settle();
	ck_assert_uint_eq(g->downs, 0);
	ck_assert_int_eq(events(), 20);
	ck_assert_int_gt(hw_redis_stats(g->r)->script_ns, 0);
}
END_TEST

START_TEST(a_standstill_drops_the_link)
{
	make_devices(10);
	settle();
	kill(g->server, SIGSTOP);
	make_devices(10); /* with nothing else to do, PING would tell */
	rig_until(g, is_down, IDLE_MS);
	ck_assert_ptr_nonnull(strstr(g->why, "5 s"));
	kill(g->server, SIGCONT);
	rig_until(g, rig_is_up, IDLE_MS);
	settle();
	compare_all();
	ck_assert_int_eq(events(), 20);
}
END_TEST

START_TEST(a_quiet_link_is_asked)
{
	rig_do(g, "CONFIG RESETSTAT");
	int64_t until = rig_now().mono.ns + 3500 * HW_NS_PER_MS;
	while (rig_now().mono.ns < until)
		event_base_loop(g->base, EVLOOP_ONCE);
	redisReply *reply = rig_ask(g, "INFO commandstats");
	ck_assert_ptr_nonnull(strstr(reply->str, "cmdstat_ping"));
	freeReplyObject(reply);
}
END_TEST

/* --- more than the ring holds --------------------------------------------------------------------------------------
 */

/* The entry of the stream after which this many follow. */
static void expect_entry(unsigned behind, const char *id, const char *reason, uint64_t seq)
{
	redisReply *reply = rig_ask(g, "XREVRANGE device:events + - COUNT %u", behind + 1);
	ck_assert_uint_eq(reply->elements, behind + 1);
	const redisReply *fields = reply->element[behind]->element[1];
	char text[32];
	snprintf(text, sizeof(text), "%llu", (unsigned long long)seq);
	ck_assert_str_eq(fields->element[1]->str, id); /* id, state, reason, ..., seq: see redis.md */
	ck_assert_str_eq(fields->element[5]->str, reason);
	ck_assert_str_eq(fields->element[15]->str, text);
	freeReplyObject(reply);
}

static bool ring_is_empty(struct rig *rig)
{
	return hw_redis_stats(rig->r)->transitions_waiting == 0;
}

static bool is_refused(struct rig *rig)
{
	return hw_redis_refusal(rig->r);
}

/* What finds no room is entered behind all that did, as the transition that it was, also if Redis refuses it at first;
 * but of one device only the last. Alone, and as one of several nodes, where a transition to the state that is stored
 * has no entry.
 */
START_TEST(overflow_is_made_good)
{
	const unsigned mark = 262144;
	g->several = _i == 1;
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		g->epoch[p] = 7;
	g->conf.events_max = 1000;
	rig_start(g);
	uint32_t a = rig_device(g, GROUP_PLAIN, "a"), b = rig_device(g, GROUP_PLAIN, "b");
	for (unsigned k = 0; k < mark; k++)
		online(a);
	rig_transit(g, b, HW_STATE_OFFLINE, HW_REASON_WILL);
	ck_assert_uint_eq(hw_redis_stats(g->r)->transitions_dropped, 0);
	rig_transit(g, b, HW_STATE_ONLINE, HW_REASON_HEARTBEAT);
	struct hw_transition last = rig_transit(g, b, HW_STATE_OFFLINE, HW_REASON_TIMEOUT);
	rig_transit(g, a, HW_STATE_OFFLINE, HW_REASON_WILL);
	ck_assert_uint_eq(hw_redis_stats(g->r)->transitions_dropped, 2);
	ck_assert_uint_eq(hw_redis_stats(g->r)->transitions_waiting, mark);
	g->r->sink.held = HW_HOLD(HW_CALL_SNAPSHOT);
	rig_until(g, ring_is_empty, 200000); /* patience, no bound: 4,096 calls, one after the other */
	ck_assert_int_eq(rig_number(g, "ZCARD device:offline"), 0);
	rig_do(g, "CONFIG SET maxmemory 1");
	g->r->sink.held = 0;
	hw_plan_pump(g->r);
	rig_until(g, is_refused, IDLE_MS);
	rig_do(g, "CONFIG SET maxmemory 0");
	rig_until(g, rig_is_idle, IDLE_MS);
	compare_all();
	ck_assert_uint_eq(hw_redis_stats(g->r)->transitions_written, mark + 2);
	ck_assert_uint_eq(hw_redis_stats(g->r)->transitions_dropped, 2);
	ck_assert_uint_eq(hw_redis_stats(g->r)->transitions_waiting, 0);
	ck_assert_uint_eq(hw_redis_stats(g->r)->snapshots, 0);
	ck_assert_uint_eq(g->newer, 0);
	ck_assert_uint_eq(g->events, g->several ? 3 : mark + 2);
	ck_assert_int_ge(events(), g->several ? 3 : 1000);
	ck_assert_int_lt(events(), g->several ? 4 : 2000);
	expect_entry(1, "b", "timeout", last.seq);
	expect_entry(0, "a", "will", rig_at(g, a)->seq);
}
END_TEST

/* A stream whose greatest id is used up takes no entry: that is told as a refusal of all writes, the state stands in
 * its hash even so, and nothing is given up. Once the stream is deleted all entries are written. */
START_TEST(overflow_that_the_stream_refuses)
{
	uint32_t a = rig_device(g, GROUP_PLAIN, "a");
	online(a);
	settle();
	sink_fill(g->r);
	offline(a);
	rig_do(g, "XSETID device:events 18446744073709551615-18446744073709551615");
	rig_until(g, is_refused, IDLE_MS);
	ck_assert_str_eq(hw_redis_refusal_name(g->r), "STREAMFULL");
	ck_assert_ptr_nonnull(strstr(hw_redis_refusal(g->r), "delete its key"));
	ck_assert_ptr_nonnull(strstr(hw_redis_refusal(g->r), "device:events"));
	ck_assert_int_eq(rig_number(g, "EXISTS device:disconnected:a"), 1);
	rig_do(g, "DEL device:events");
	settle();
	compare_all();
	ck_assert_uint_eq(hw_redis_stats(g->r)->transitions_dropped, 0);
	ck_assert_int_eq(events(), 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("redis_faults");
	TCase *tc = tcase_create("live");
	tcase_add_checked_fixture(tc, fixture_up, fixture_down);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, scripts_are_loaded_again);
	tcase_add_test(tc, the_marks_script_is_loaded_again);
	tcase_add_test(tc, a_lost_link_is_soon_back_however_often);
	tcase_add_test(tc, timers_that_cannot_be_armed);
	tcase_add_test(tc, no_memory_for_the_output_buffer);
	tcase_add_test(tc, emptied_under_a_live_link);
	tcase_add_test(tc, rolled_back_under_a_live_link);
	tcase_add_test(tc, restarted_empty);
	tcase_add_test(tc, cut_at_random);
	tcase_add_test(tc, a_pause_is_waited_for);
	tcase_add_test(tc, a_standstill_drops_the_link);
	tcase_add_test(tc, a_quiet_link_is_asked);
	tcase_add_test(tc, overflow_that_the_stream_refuses);
	suite_add_tcase(suite, tc);
	tc = tcase_create("start");
	tcase_add_checked_fixture(tc, fixture_serve, fixture_down);
	tcase_set_timeout(tc, 240);
	tcase_add_loop_test(tc, overflow_is_made_good, 0, 2);
	suite_add_tcase(suite, tc);
	return rig_run(suite);
}

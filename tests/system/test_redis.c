/* SPDX-License-Identifier: MIT */
/* The Redis sink: what each transition writes, and the sight record, which proves since when the store is ours. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../sink_state.h"
#include "redis_fixture.h"

/* The value of a field of the last stream entry. */
static void expect_event(const char *field, const char *want)
{
	redisReply *reply = rig_ask(g, "XREVRANGE device:events + - COUNT 1");
	ck_assert_int_eq((int)reply->elements, 1);
	const redisReply *fields = reply->element[0]->element[1];
	for (size_t i = 0; i + 1 < fields->elements; i += 2)
		if (strcmp(fields->element[i]->str, field) == 0) {
			ck_assert_str_eq(fields->element[i + 1]->str, want);
			freeReplyObject(reply);
			return;
		}
	ck_abort_msg("no field %s", field);
}

static void number_text(char buf[32], int64_t n)
{
	snprintf(buf, 32, "%lld", (long long)n);
}

/* --- transitions ---------------------------------------------------------------------------------------------------
 */

START_TEST(online_writes_all)
{
	uint32_t i = rig_device(g, GROUP_PLAIN, "a");
	char text[32];
	struct hw_transition t = rig_transit(g, i, HW_STATE_ONLINE, HW_REASON_HEARTBEAT);
	settle();
	rig_expect(g, "a", "GET device:connected:a");
	long long ttl = rig_number(g, "PTTL device:connected:a");
	ck_assert_msg(ttl > 85000 && ttl <= 90000, "TTL %lld", ttl);
	ck_assert_int_eq(rig_number(g, "EXISTS device:disconnected:a"), 0);
	ck_assert_int_eq(rig_number(g, "ZCARD device:offline"), 0);
	rig_expect(g, "online", "HGET device:state:a state");
	number_text(text, t.time_ms);
	rig_expect(g, text, "HGET device:state:a since");
	expect_event("time_ms", text);
	number_text(text, t.last_seen_ms);
	rig_expect(g, text, "HGET device:state:a last_seen");
	expect_event("last_seen_ms", text);
	number_text(text, (int64_t)t.seq);
	rig_expect(g, text, "HGET device:state:a seq");
	expect_event("seq", text);
	ck_assert_int_eq(rig_number(g, "EXISTS device:outbox"), 0);
	rig_expect(g, "30000", "HGET device:state:a timeout");
	rig_expect(g, "heartbeat", "HGET device:state:a reason");
	rig_expect(g, "plain", "HGET device:state:a group");
	rig_expect(g, "node-1", "HGET device:state:a node");
	rig_expect(g, "mqtt", "HGET device:state:a source");
	rig_expect(g, NULL, "HGET device:state:a own_timeout");
	expect_event("id", "a");
	expect_event("state", "online");
	expect_event("reason", "heartbeat");
	expect_event("group", "plain");
	expect_event("node", "node-1");
	ck_assert_int_eq(events(), 1);
	ck_assert_int_eq((int)g->confirmed, 1);
	ck_assert_uint_eq(hw_redis_stats(g->r)->transitions_written, 1);
}
END_TEST

START_TEST(offline_writes_all)
{
	uint32_t i = rig_device(g, GROUP_PLAIN, "a");
	char text[32];
	online(i);
	struct hw_transition t = rig_transit(g, i, HW_STATE_OFFLINE, HW_REASON_WILL);
	settle();
	ck_assert_int_eq(rig_number(g, "EXISTS device:connected:a"), 0);
	rig_expect(g, "a", "GET device:disconnected:a");
	ck_assert_int_eq(rig_number(g, "PTTL device:disconnected:a"), -1);
	number_text(text, t.time_ms);
	rig_expect(g, text, "ZSCORE device:offline a");
	rig_expect(g, "offline", "HGET device:state:a state");
	rig_expect(g, "will", "HGET device:state:a reason");
	ck_assert_int_eq(events(), 2);
	expect_event("reason", "will");
	online(i);
	settle();
	ck_assert_int_eq(rig_number(g, "EXISTS device:disconnected:a"), 0);
	ck_assert_int_eq(rig_number(g, "ZCARD device:offline"), 0);
	ck_assert_int_eq(rig_number(g, "EXISTS device:connected:a"), 1);
}
END_TEST

START_TEST(reported_fields)
{
	uint32_t i = rig_device(g, GROUP_FAST, "a");
	static char ip[] = "10.0.0.1", version[] = "1.2", data[] = "{\"t\":21}";
	static const struct hw_report all = {
		.has = 0x3f, .battery = 87, .rssi = -60.5, .uptime = 12, .ip = ip, .version = version, .data = data};
	ck_assert_int_eq(hw_registry_report(hw_monitor_registry(g->m), i, &all), 0);
	struct hw_extra *x = hw_device_extra(rig_at(g, i));
	x->own_timeout_ms = 310000;
	rig_at(g, i)->flags |= HW_FLAG_ONCE;
	online(i);
	settle();
	rig_expect(g, "87", "HGET device:state:a battery");
	rig_expect(g, "-60.5", "HGET device:state:a rssi");
	rig_expect(g, "12", "HGET device:state:a uptime");
	rig_expect(g, "10.0.0.1", "HGET device:state:a ip");
	rig_expect(g, "1.2", "HGET device:state:a version");
	rig_expect(g, "{\"t\":21}", "HGET device:state:a data");
	rig_expect(g, "310000", "HGET device:state:a own_timeout");
	rig_expect(g, "310000", "HGET device:state:a timeout");
	rig_expect(g, "1", "HGET device:state:a once");
	/* A field that a device no longer reports is removed from the hash. */
	memset(x->report, 0, HW_REPORT_PACKED_MIN);
	x->own_timeout_ms = 0;
	rig_at(g, i)->flags &= (uint16_t)~HW_FLAG_ONCE;
	offline(i);
	settle();
	ck_assert_int_eq(rig_number(g, "HLEN device:state:a"), 10);
	rig_expect(g, "1000", "HGET device:state:a timeout");
}
END_TEST

START_TEST(short_timeouts_keep_ten_seconds)
{
	online(rig_device(g, GROUP_FAST, "a"));
	online(rig_device(g, GROUP_SLOW, "b"));
	settle();
	long long ttl = rig_number(g, "PTTL device:connected:a");
	ck_assert_msg(ttl > 9000 && ttl <= 10000, "TTL %lld", ttl);
	ck_assert_int_gt(rig_number(g, "PTTL device:connected:b"), 3 * HW_TIMEOUT_MAX_MS - 10000);
}
END_TEST

START_TEST(a_mute_group_owes_no_publish)
{
	uint32_t i = rig_device(g, GROUP_MUTE, "a");
	online(i);
	rig_transit(g, i, HW_STATE_FORGOTTEN, HW_REASON_OPERATOR);
	settle();
	ck_assert_int_eq(rig_number(g, "EXISTS device:outbox"), 0);
}
END_TEST

START_TEST(an_edge_sent_again_changes_nothing)
{
	uint32_t i = rig_device(g, GROUP_PLAIN, "a");
	struct hw_transition t = rig_transit(g, i, HW_STATE_ONLINE, HW_REASON_HEARTBEAT);
	settle();
	rig_do(g, "DEL device:outbox");
	hw_redis_transition(g->r, rig_now(), &t);
	settle();
	ck_assert_int_eq(events(), 1);
	ck_assert_int_eq(rig_number(g, "EXISTS device:outbox"), 0);
	ck_assert_int_eq((int)g->confirmed, 2);
}
END_TEST

START_TEST(an_older_edge_of_ours_is_skipped)
{
	uint32_t i = rig_device(g, GROUP_PLAIN, "a");
	struct hw_transition first = rig_change(g, i, HW_STATE_ONLINE, HW_REASON_HEARTBEAT);
	offline(i);
	settle();
	hw_redis_transition(g->r, rig_now(), &first);
	settle();
	rig_expect(g, "offline", "HGET device:state:a state");
	ck_assert_int_eq(events(), 1);
	/* Nor is the stored seq a stranger's while the record is further still. */
	rig_change(g, i, HW_STATE_ONLINE, HW_REASON_HEARTBEAT);
	hw_redis_transition(g->r, rig_now(), &first);
	settle();
	ck_assert_uint_eq(g->newer, 0);
}
END_TEST

/* The status of a transition that is not the last will never be published. */
START_TEST(an_older_edge_owes_no_publish)
{
	uint32_t i = rig_device(g, GROUP_PLAIN, "a");
	online(i);
	rig_change(g, i, HW_STATE_OFFLINE, HW_REASON_TIMEOUT);
	settle();
	rig_expect(g, "online", "HGET device:state:a state");
	ck_assert_int_eq(rig_number(g, "EXISTS device:outbox"), 0);
}
END_TEST

START_TEST(a_newer_seq_is_adopted)
{
	uint32_t i = rig_device(g, GROUP_PLAIN, "a");
	uint64_t theirs = (uint64_t)rig_now().wall_ms + 1000000;
	rig_do(g, "HSET device:state:a seq %llu state offline", (unsigned long long)theirs);
	online(i);
	rig_until(g, rig_is_idle, IDLE_MS);
	ck_assert_uint_eq(g->newer, 1);
	ck_assert_uint_eq(g->newer_seq, theirs);
	/* Only now is the record written again, with a higher seq than theirs, and without a transition. */
	rig_expect(g, "online", "HGET device:state:a state");
	ck_assert_uint_eq((uint64_t)rig_number(g, "HGET device:state:a seq"), rig_at(g, i)->seq);
	ck_assert_uint_gt(rig_at(g, i)->seq, theirs);
	ck_assert_int_eq(rig_number(g, "EXISTS device:events"), 0);
}
END_TEST

START_TEST(garbage_in_place_of_a_hash)
{
	static const char *const seqs[] = {"abc", "-5", "1e300", "999999999999999999999", "0x7fffffffffff", ""};
	char id[8];
	for (size_t k = 0; k < sizeof(seqs) / sizeof(seqs[0]); k++) {
		snprintf(id, sizeof(id), "g%zu", k);
		rig_do(g, "HSET device:state:%s seq %s", id, seqs[k]);
		online(rig_device(g, GROUP_PLAIN, id));
	}
	rig_do(g, "SET device:state:str nonsense");
	rig_do(g, "RPUSH device:connected:str x");
	online(rig_device(g, GROUP_PLAIN, "str"));
	settle();
	ck_assert_int_eq(events(), 7);
	ck_assert_uint_eq(g->newer, 0);
	rig_expect(g, "online", "HGET device:state:str state");
	rig_expect(g, "str", "GET device:connected:str");
	rig_expect(g, "online", "HGET device:state:g3 state");
}
END_TEST

START_TEST(forgotten_takes_all_away_once)
{
	uint32_t i = rig_device(g, GROUP_PLAIN, "a");
	online(i);
	offline(i);
	settle();
	hw_device_note(rig_at(g, i), HW_PENDING_STATUS, true);
	struct hw_transition t = rig_transit(g, i, HW_STATE_FORGOTTEN, HW_REASON_OPERATOR);
	settle();
	ck_assert_int_eq(rig_number(g, "EXISTS device:connected:a device:disconnected:a device:state:a"), 0);
	ck_assert_int_eq(rig_number(g, "ZCARD device:offline"), 0);
	rig_expect(g, "", "HGET device:outbox a");
	ck_assert_int_eq(events(), 3);
	expect_event("state", "forgotten");
	expect_event("reason", "operator");
	hw_redis_transition(g->r, rig_now(), &t);
	settle();
	ck_assert_int_eq(events(), 3);
	/* The broker has the clearing. */
	hw_redis_cleared(g->r, "a", 1);
	settle();
	ck_assert_int_eq(rig_number(g, "EXISTS device:outbox"), 0);
}
END_TEST

START_TEST(a_forgetting_older_than_the_store)
{
	uint32_t i = rig_device(g, GROUP_PLAIN, "a");
	struct hw_transition t = rig_change(g, i, HW_STATE_FORGOTTEN, HW_REASON_FORGET_AFTER);
	rig_do(g, "HSET device:state:a seq %llu", (unsigned long long)t.seq + 5);
	hw_device_note(rig_at(g, i), HW_PENDING_STATUS, true);
	hw_redis_transition(g->r, rig_now(), &t);
	settle();
	/* Not forgotten by that transition; adopted and rewritten as forgotten after it. */
	ck_assert_uint_eq(g->newer, 1);
	ck_assert_int_eq(rig_number(g, "EXISTS device:state:a"), 0);
	ck_assert_int_eq(rig_number(g, "EXISTS device:events"), 0);
	rig_expect(g, "", "HGET device:outbox a");
}
END_TEST

/* A forgotten device sends a heartbeat before the broker has cleared its messages. Its new status replaces them. */
START_TEST(a_device_that_is_back_needs_no_clearing)
{
	uint32_t i = rig_device(g, GROUP_PLAIN, "a");
	online(i);
	hw_device_note(rig_at(g, i), HW_PENDING_STATUS, true);
	rig_transit(g, i, HW_STATE_FORGOTTEN, HW_REASON_OPERATOR);
	settle();
	rig_expect(g, "", "HGET device:outbox a");
	rig_transit(g, i, HW_STATE_ONLINE, HW_REASON_HEARTBEAT);
	settle();
	ck_assert_int_eq(rig_number(g, "EXISTS device:outbox"), 0);
}
END_TEST

/* --- the mark ------------------------------------------------------------------------------------------------------
 */

static bool is_marked_ours(struct rig *r)
{
	redisReply *reply = rig_ask(r, "GET device:monitor:node-1");
	bool ours = reply->str && strncmp(reply->str, "abcdef0123456789 ", 17) == 0;
	freeReplyObject(reply);
	return ours;
}

START_TEST(the_mark_tells_since_when)
{
	rig_start(g);
	rig_until(g, rig_is_up, IDLE_MS);
	int64_t before = rig_now().wall_ms;
	g->marking = true;
	rig_until(g, is_marked, IDLE_MS);
	redisReply *reply = rig_ask(g, "GET device:monitor:node-1");
	ck_assert_int_eq(strncmp(reply->str, "abcdef0123456789 ", 17), 0);
	ck_assert_int_ge(strtoll(reply->str + 17, NULL, 10), before);
	freeReplyObject(reply);
	ck_assert_int_eq(rig_number(g, "PTTL device:monitor:node-1"), -1);
	ck_assert_uint_eq(g->emptied, 0);
}
END_TEST

/* A blind monitor has seen nothing: the sight record of the run before stays. */
START_TEST(a_blind_monitor_moves_no_mark)
{
	rig_do(g, "SET device:monitor:node-1 %s", "00000000000000aa 12345");
	g->blind = g->marking = true;
	rig_start(g);
	rig_until(g, is_marked_ours, IDLE_MS);
	settle();
	rig_expect(g, "abcdef0123456789 12345", "GET device:monitor:node-1");
	ck_assert_uint_eq(g->troubles, 0); /* another run before this one is no stranger */
}
END_TEST

static int64_t watched_ms(void)
{
	redisReply *reply = rig_ask(g, "GET device:watched");
	int64_t ms = reply->str ? strtoll(reply->str, NULL, 10) : -1;
	freeReplyObject(reply);
	return ms;
}

static int64_t watched_before;

static bool has_watched_on(struct rig *r)
{
	(void)r;
	return watched_ms() > watched_before;
}

static bool watches_anew(struct rig *r)
{
	int64_t ms = watched_ms();
	(void)r;
	return ms > 0 && ms <= 20000;
}

/* It runs while a monitor sees; no jump of Redis' time, and no time without a monitor, counts for more than a step. */
START_TEST(the_clock_of_watching)
{
	const long long long_ago = rig_now().wall_ms - INT64_C(40) * 86400000;
	const long long ahead = rig_now().wall_ms + INT64_C(40) * 86400000;
	g->marking = true;
	rig_start(g);
	rig_until(g, has_watched_on, IDLE_MS);
	static const char *const lost[] = {"0 0", "no number", "34000000000000 0", "-5 0"};
	rig_do(g, "SET device:watched %s", lost[_i]);
	rig_until(g, watches_anew, IDLE_MS);
	rig_do(g, "EVAL %s 1 device:watched %lld", "redis.call('SET', KEYS[1], '1000000 ' .. ARGV[1])",
	       _i % 2 ? long_ago : ahead);
	watched_before = 1000000;
	rig_until(g, has_watched_on, IDLE_MS);
	ck_assert_int_le(watched_ms(), 1020000);
}
END_TEST

START_TEST(a_blind_monitor_watches_nothing)
{
	rig_do(g, "SET device:watched %s", "5000 1");
	g->blind = g->marking = true;
	rig_start(g);
	rig_until(g, is_marked_ours, IDLE_MS);
	settle();
	rig_expect(g, "5000 1", "GET device:watched");
}
END_TEST

START_TEST(a_strange_mark_is_told_and_swept)
{
	uint32_t i = rig_device(g, GROUP_PLAIN, "a");
	online(i);
	g->marking = true;
	rig_until(g, is_marked, IDLE_MS);
	settle();
	rig_do(g, "DEL device:state:a");
	rig_do(g, "SET device:monitor:node-1 %s", "00000000000000aa 12345");
	rig_until(g, is_troubled, IDLE_MS);
	settle();
	ck_assert_ptr_nonnull(strstr(g->trouble, "node_id"));
	rig_expect(g, "online", "HGET device:state:a state");
	ck_assert_uint_eq(g->emptied, 0);
}
END_TEST

static bool is_rewritten(struct rig *r)
{
	return rig_number(r, "EXISTS device:state:a") == 1;
}

/* A copy of an hour ago under the same run. */
START_TEST(a_mark_from_the_past_is_swept)
{
	online(rig_device(g, GROUP_PLAIN, "a"));
	g->marking = true;
	rig_until(g, is_marked, IDLE_MS);
	settle();
	rig_do(g, "DEL device:state:a");
	rig_do(g, "SET device:monitor:node-1 %s", "abcdef0123456789 12345");
	rig_until(g, is_rewritten, IDLE_MS);
	ck_assert_uint_eq(g->emptied, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("redis");
	TCase *tc = tcase_create("sink");
	tcase_add_checked_fixture(tc, fixture_up, fixture_down);
	tcase_set_timeout(tc, 30);
	tcase_add_test(tc, online_writes_all);
	tcase_add_test(tc, offline_writes_all);
	tcase_add_test(tc, reported_fields);
	tcase_add_test(tc, short_timeouts_keep_ten_seconds);
	tcase_add_test(tc, a_mute_group_owes_no_publish);
	tcase_add_test(tc, an_edge_sent_again_changes_nothing);
	tcase_add_test(tc, an_older_edge_of_ours_is_skipped);
	tcase_add_test(tc, an_older_edge_owes_no_publish);
	tcase_add_test(tc, a_newer_seq_is_adopted);
	tcase_add_test(tc, garbage_in_place_of_a_hash);
	tcase_add_test(tc, forgotten_takes_all_away_once);
	tcase_add_test(tc, a_forgetting_older_than_the_store);
	tcase_add_test(tc, a_device_that_is_back_needs_no_clearing);
	tcase_add_test(tc, a_strange_mark_is_told_and_swept);
	tcase_add_test(tc, a_mark_from_the_past_is_swept);
	suite_add_tcase(suite, tc);
	tc = tcase_create("start");
	tcase_add_checked_fixture(tc, fixture_serve, fixture_down);
	tcase_set_timeout(tc, 30);
	tcase_add_test(tc, the_mark_tells_since_when);
	tcase_add_test(tc, a_blind_monitor_moves_no_mark);
	tcase_add_loop_test(tc, the_clock_of_watching, 0, 4);
	tcase_add_test(tc, a_blind_monitor_watches_nothing);
	suite_add_tcase(suite, tc);
	return rig_run(suite);
}

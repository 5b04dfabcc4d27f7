/* SPDX-License-Identifier: MIT */
/* Refreshes of the Redis sink: keys stay while their devices are online, and a changed record is written again. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "../sink_state.h"
#include "redis_fixture.h"

static bool is_up_again(struct rig *r)
{
	return r->ups == 2;
}

START_TEST(refresh_keeps_an_online_device)
{
	uint32_t i = rig_device(g, GROUP_PLAIN, "a");
	rig_at(g, i)->flags |= HW_FLAG_ONCE;
	online(i);
	settle();
	rig_do(g, "DEL device:connected:a");
	rig_do(g, "SET device:disconnected:a x");
	rig_do(g, "ZADD device:offline 1 a");
	rig_do(g, "HSET device:state:a last_seen 1 group other timeout 5 own_timeout 7");
	rig_at(g, i)->flags &= (uint16_t)~HW_FLAG_ONCE;
	hw_redis_refresh(g->r, hw_registry_ref(hw_monitor_registry(g->m), i));
	hw_redis_refresh(g->r, hw_registry_ref(hw_monitor_registry(g->m), i));
	settle();
	ck_assert_uint_eq(hw_redis_stats(g->r)->refreshes, 1);
	ck_assert_int_gt(rig_number(g, "PTTL device:connected:a"), 80000);
	ck_assert_int_eq(rig_number(g, "EXISTS device:disconnected:a device:offline"), 0);
	ck_assert_int_gt(rig_number(g, "HGET device:state:a last_seen"), 1);
	rig_expect(g, "plain", "HGET device:state:a group");
	rig_expect(g, "30000", "HGET device:state:a timeout");
	rig_expect(g, NULL, "HGET device:state:a own_timeout");
	rig_expect(g, NULL, "HGET device:state:a once");
	ck_assert_int_eq(events(), 1);
}
END_TEST

static void refresh(uint32_t i)
{
	hw_redis_refresh(g->r, hw_registry_ref(hw_monitor_registry(g->m), i));
	settle();
}

/* A device that was refreshed in full last. It can be told what a refresh leaves alone: a light one keeps `x` there. */
static uint32_t refreshed(uint16_t group, const char *id)
{
	uint32_t i = rig_device(g, group, id);
	online(i);
	settle();
	refresh(i);
	rig_do(g, "SET device:disconnected:%s x", id);
	rig_do(g, "HSET device:state:%s last_seen 1 timeout 5 group other source other", id);
	rig_do(g, "PEXPIRE device:connected:%s 20000", id);
	return i;
}

static bool was_light(const char *id)
{
	bool light = rig_number(g, "EXISTS device:disconnected:%s", id) == 1;
	rig_do(g, "SET device:disconnected:%s x", id);
	return light;
}

static void expect_fresh(const char *id, const char *group, const char *timeout)
{
	ck_assert_int_gt(rig_number(g, "HGET device:state:%s last_seen", id), 1);
	ck_assert_int_gt(rig_number(g, "PTTL device:connected:%s", id), 80000);
	rig_expect(g, timeout, "HGET device:state:%s timeout", id);
	rig_expect(g, group, "HGET device:state:%s group", id);
	rig_expect(g, "mqtt", "HGET device:state:%s source", id);
}

/* With several nodes, each refreshes the devices that it owns. */
START_TEST(another_nodes_devices_are_left_to_it)
{
	unsigned p = hw_partition_of("b", 1);
	uint32_t a = rig_device(g, GROUP_PLAIN, "a"), b = rig_device(g, GROUP_PLAIN, "b");
	online(a);
	online(b);
	settle();
	hw_monitor_role(g->m, p, HW_ROLE_WATCHES, 0);
	rig_do(g, "DEL device:connected:a device:connected:b");
	hw_plan_sweep(g->r);
	settle();
	ck_assert_int_eq(rig_number(g, "EXISTS device:connected:a"), 1);
	ck_assert_uint_eq(hw_redis_stats(g->r)->refreshes, 1);
	hw_redis_refresh(g->r, hw_registry_ref(hw_monitor_registry(g->m), b)); /* it was on its way already */
	sink_rewrite(g->r, hw_registry_ref(hw_monitor_registry(g->m), b));
	settle();
	ck_assert_int_eq(rig_number(g, "EXISTS device:connected:b"), 0);
	hw_monitor_role(g->m, p, HW_ROLE_OWNS, 1);
	hw_plan_sweep(g->r);
	settle();
	ck_assert_int_eq(rig_number(g, "EXISTS device:connected:b"), 1);
}
END_TEST

START_TEST(a_second_refresh_is_light)
{
	uint32_t i = refreshed(GROUP_PLAIN, "a");
	refresh(i);
	expect_fresh("a", "plain", "30000");
	ck_assert(was_light("a"));
	ck_assert_uint_eq(hw_redis_stats(g->r)->refreshes, 2);
	ck_assert_uint_eq(hw_redis_stats(g->r)->snapshots, 0);
	ck_assert_int_eq(events(), 1);
}
END_TEST

/* Each device gets its own group's fields, although calls are shared with other groups. */
START_TEST(light_refreshes_of_a_mixed_fleet)
{
	enum { N = 130 };
	uint32_t index[N];
	char id[16];
	for (int k = 0; k < N; k++) {
		snprintf(id, sizeof(id), "d%d", k);
		index[k] = refreshed(k % 5 < 3 ? GROUP_PLAIN : GROUP_MUTE, id);
		if (k % 7 == 0) {
			struct hw_report said = {.has = HW_HAS_BATTERY | HW_HAS_RSSI, .battery = k, .rssi = -k};
			ck_assert_int_eq(hw_registry_report(hw_monitor_registry(g->m), index[k], &said), 0);
		}
	}
	for (int k = 0; k < N; k++)
		hw_redis_refresh(g->r, hw_registry_ref(hw_monitor_registry(g->m), index[k]));
	settle();
	for (int k = 0; k < N; k++) {
		snprintf(id, sizeof(id), "d%d", k);
		expect_fresh(id, k % 5 < 3 ? "plain" : "mute", "30000");
		ck_assert_int_eq(rig_number(g, "HEXISTS device:state:%s battery", id), k % 7 == 0);
		if (k % 7 == 0)
			ck_assert_int_eq(rig_number(g, "HGET device:state:%s rssi", id), -k);
		ck_assert(was_light(id));
	}
	ck_assert_uint_eq(hw_redis_stats(g->r)->refreshes, 2 * N);
}
END_TEST

START_TEST(a_light_refresh_takes_no_field_away)
{
	uint32_t i = refreshed(GROUP_PLAIN, "a");
	struct hw_extra *x = hw_registry_extra(hw_monitor_registry(g->m), i);
	x->own_timeout_ms = 31000;
	refresh(i);
	rig_expect(g, "31000", "HGET device:state:a own_timeout");
	ck_assert(was_light("a"));
	x->own_timeout_ms = 0;
	refresh(i);
	rig_expect(g, NULL, "HGET device:state:a own_timeout");
	ck_assert(!was_light("a"));
	rig_at(g, i)->flags |= HW_FLAG_ONCE;
	refresh(i);
	ck_assert(was_light("a"));
	rig_at(g, i)->flags &= (uint16_t)~HW_FLAG_ONCE;
	refresh(i);
	rig_expect(g, NULL, "HGET device:state:a once");
	ck_assert(!was_light("a"));
}
END_TEST

START_TEST(a_light_refresh_that_finds_something_else)
{
	uint32_t a = refreshed(GROUP_PLAIN, "a"), b = refreshed(GROUP_PLAIN, "b"), c = refreshed(GROUP_PLAIN, "c"),
		 d = refreshed(GROUP_PLAIN, "d"), e = refreshed(GROUP_PLAIN, "e");
	uint64_t before = hw_redis_stats(g->r)->refreshes;
	rig_do(g, "DEL device:connected:a");
	rig_do(g, "HSET device:state:b seq 5");
	rig_do(g, "SET device:state:c x");
	rig_do(g, "HSET device:state:d state offline");
	uint32_t all[] = {a, b, c, d, e};
	for (unsigned k = 0; k < 5; k++)
		hw_redis_refresh(g->r, hw_registry_ref(hw_monitor_registry(g->m), all[k]));
	settle();
	rig_expect(g, "a", "GET device:connected:a");
	ck_assert(!was_light("a")); /* a full one followed */
	ck_assert_uint_eq(hw_redis_stats(g->r)->refreshes, before + 2);
	ck_assert_uint_eq(hw_redis_stats(g->r)->snapshots, 3);
	ck_assert_int_eq(rig_number(g, "HGET device:state:b seq"), (long long)rig_at(g, b)->seq);
	rig_expect(g, "online", "HGET device:state:c state");
	rig_expect(g, "online", "HGET device:state:d state");
	ck_assert(was_light("e"));
}
END_TEST

/* After a transition, a snapshot, or anything that may have lost data, the next refresh is a full one. */
START_TEST(what_a_full_refresh_follows)
{
	uint32_t i = refreshed(GROUP_PLAIN, "a");
	offline(i);
	online(i);
	settle();
	was_light("a");
	refresh(i);
	ck_assert(!was_light("a"));
	sink_rewrite(g->r, hw_registry_ref(hw_monitor_registry(g->m), i));
	settle();
	was_light("a");
	refresh(i);
	ck_assert(!was_light("a"));
	refresh(i);
	ck_assert(was_light("a"));
	rig_do(g, "CLIENT KILL TYPE normal SKIPME yes");
	rig_until(g, is_up_again, IDLE_MS);
	settle();
	ck_assert(!was_light("a"));
}
END_TEST

enum { MANY = 64 };

/* Devices that report nothing, each refreshed in full, and then once more. Returns of how many last_seen was left. */
static int refresh_many(void)
{
	char id[16];
	uint32_t index[MANY];
	int left = 0;
	for (int k = 0; k < MANY; k++) {
		snprintf(id, sizeof(id), "d%d", k);
		index[k] = rig_device(g, GROUP_PLAIN, id);
		rig_at(g, index[k])->flags &= (uint16_t)~HW_FLAG_ONCE;
		online(index[k]);
		settle();
		refresh(index[k]);
		rig_do(g, "HSET device:state:%s last_seen 1", id);
		rig_do(g, "PEXPIRE device:connected:%s 20000", id);
	}
	rig_do(g, "DEL device:connected:d9");
	for (int k = 0; k < MANY; k++)
		hw_redis_refresh(g->r, hw_registry_ref(hw_monitor_registry(g->m), index[k]));
	settle();
	for (int k = 0; k < MANY; k++) {
		snprintf(id, sizeof(id), "d%d", k);
		ck_assert_int_gt(rig_number(g, "PTTL device:connected:%s", id), 80000);
		left += rig_number(g, "HGET device:state:%s last_seen", id) == 1;
	}
	ck_assert_int_gt(rig_number(g, "HGET device:state:d9 last_seen"), 1); /* in full, since its key was gone */
	ck_assert_uint_eq(hw_redis_stats(g->r)->refreshes, 2 * MANY);
	return left;
}

START_TEST(a_reload_is_written_to_all)
{
	refresh_many();
	hw_redis_reconfigured(g->r);
	for (uint32_t i = 0; i < MANY; i++)
		hw_redis_refresh(g->r, hw_registry_ref(hw_monitor_registry(g->m), i));
	settle();
	for (int k = 0; k < MANY; k++)
		ck_assert_int_gt(rig_number(g, "HGET device:state:d%d last_seen", k), 1);
}
END_TEST

/* One in sixteen has its turn, another sixteenth if the time of the next ones begins meanwhile. */
START_TEST(who_reports_nothing_lives_on)
{
	int left = refresh_many();
	ck_assert_msg(left >= MANY - 1 - 2 * 8 && left <= MANY - 2, "%d", left);
}
END_TEST

START_TEST(last_seen_is_written_each_time_if_that_is_asked_for)
{
	rig_stop(g);
	rig_serve(g, NULL);
	g->conf.refresh_last_seen = true;
	rig_start(g);
	ck_assert_int_eq(refresh_many(), 0);
}
END_TEST

static uint64_t looked_at(uint32_t i, struct hw_now now)
{
	uint64_t before = hw_redis_stats(g->r)->refreshes;
	hw_redis_refresh_light(g->r, now, hw_registry_ref(hw_monitor_registry(g->m), i));
	settle();
	return hw_redis_stats(g->r)->refreshes - before;
}

/* A light refresh leaves out plain keys alone: it writes unknown keys, reported fields, and last_seen in its turn. */
START_TEST(a_look_leaves_out_what_is_plain_alone)
{
	static char ip[] = "192.0.2.1";
	const struct hw_report said = {.has = HW_HAS_IP, .ip = ip};
	uint32_t a = rig_device(g, GROUP_PLAIN, "a");
	struct hw_now now = rig_now();
	rig_at(g, a)->flags &= (uint16_t)~HW_FLAG_ONCE;
	online(a);
	settle();
	ck_assert_uint_eq(looked_at(a, now), 1); /* it has never been refreshed in full */
	unsigned turns = 0;
	for (int k = 0; k < 16; k++) {
		turns += looked_at(a, now) == 1;
		now.mono.ns += 30 * HW_NS_PER_S;
	}
	ck_assert_uint_eq(turns, 1);
	ck_assert_int_eq(hw_registry_report(hw_monitor_registry(g->m), a, &said), 0);
	ck_assert_uint_eq(looked_at(a, now), 1);
	ck_assert_uint_eq(looked_at(a, now), 1);
}
END_TEST

/* A refresh that fails does not affect the others in its call. */
START_TEST(a_light_refresh_that_fails)
{
	uint32_t a = refreshed(GROUP_PLAIN, "a"), b = refreshed(GROUP_PLAIN, "b"), c = refreshed(GROUP_PLAIN, "c");
	static char ip[] = "192.0.2.1";
	const struct hw_report said = {.has = HW_HAS_IP, .ip = ip};
	ck_assert_int_eq(hw_registry_report(hw_monitor_registry(g->m), b, &said), 0);
	rig_do(g, "ACL SETUSER default resetkeys ~device:* -hset");
	uint32_t all[] = {a, b, c};
	for (unsigned k = 0; k < 3; k++)
		hw_redis_refresh(g->r, hw_registry_ref(hw_monitor_registry(g->m), all[k]));
	rig_until(g, is_troubled, IDLE_MS);
	rig_do(g, "ACL SETUSER default +hset");
	settle();
	const char *const ids[] = {"a", "b", "c"};
	for (unsigned k = 0; k < 3; k++)
		expect_fresh(ids[k], "plain", "30000");
	rig_expect(g, "192.0.2.1", "HGET device:state:b ip");
	ck_assert_uint_eq(hw_redis_stats(g->r)->snapshots, 0);
}
END_TEST

START_TEST(refresh_keeps_an_offline_device)
{
	uint32_t i = rig_device(g, GROUP_PLAIN, "a");
	offline(i);
	settle();
	rig_do(g, "DEL device:disconnected:a device:offline");
	rig_do(g, "SET device:connected:a x");
	hw_redis_refresh(g->r, hw_registry_ref(hw_monitor_registry(g->m), i));
	settle();
	rig_expect(g, "a", "GET device:disconnected:a");
	ck_assert_int_eq(rig_number(g, "ZSCORE device:offline a"), rig_at(g, i)->since_ms);
	ck_assert_int_eq(rig_number(g, "EXISTS device:connected:a"), 0);
}
END_TEST

START_TEST(refresh_of_what_is_not_ours_writes_snapshots)
{
	uint32_t a = rig_device(g, GROUP_PLAIN, "a"), b = rig_device(g, GROUP_PLAIN, "b"),
		 c = rig_device(g, GROUP_PLAIN, "c");
	online(a);
	online(b);
	offline(c);
	settle();
	rig_do(g, "DEL device:state:a device:outbox");
	rig_do(g, "HSET device:state:b seq 5");
	rig_do(g, "DEL device:state:c");
	rig_do(g, "SET device:state:c x");
	for (uint32_t i = 0; i < 3; i++)
		hw_redis_refresh(g->r, hw_registry_ref(hw_monitor_registry(g->m), (uint32_t[]){a, b, c}[i]));
	settle();
	ck_assert_uint_eq(hw_redis_stats(g->r)->snapshots, 3);
	ck_assert_int_eq(rig_number(g, "HGET device:state:a seq"), (long long)rig_at(g, a)->seq);
	ck_assert_int_eq(rig_number(g, "HGET device:state:b seq"), (long long)rig_at(g, b)->seq);
	rig_expect(g, "offline", "HGET device:state:c state");
	ck_assert_int_eq(events(), 3);
	ck_assert_int_eq(rig_number(g, "EXISTS device:outbox"), 0);
}
END_TEST

START_TEST(rewrite_repairs_the_same_seq)
{
	uint32_t i = rig_device(g, GROUP_PLAIN, "a");
	online(i);
	settle();
	rig_do(g, "HSET device:state:a state offline reason x");
	rig_do(g, "DEL device:connected:a");
	sink_rewrite(g->r, hw_registry_ref(hw_monitor_registry(g->m), i));
	settle();
	rig_expect(g, "online", "HGET device:state:a state");
	rig_expect(g, "heartbeat", "HGET device:state:a reason");
	rig_expect(g, "a", "GET device:connected:a");
	ck_assert_int_eq(events(), 1);
	ck_assert_int_eq((int)g->confirmed, 2);
}
END_TEST

static bool has_bitten(struct rig *r)
{
	return r->r->sink.sweep_at > 0;
}

/* Behind a restart, or while Redis was away, keys may have come to have no more than a timeout left. */
START_TEST(a_sweep_of_a_large_fleet_is_over_before_keys_end)
{
	enum { DEVICES = 100000 };
	char id[16];
	for (int k = 0; k < DEVICES; k++) {
		snprintf(id, sizeof(id), "d%d", k);
		rig_device(g, GROUP_PLAIN, id);
	}
	ck_assert_int_le(hw_monitor_refresh_within_ms(g->m), 8000);
	hw_plan_sweep(g->r);
	rig_until(g, has_bitten, 5000);
	ck_assert_int_ge(g->r->sink.sweep_at, DEVICES * HW_SWEEP_EVERY_MS / hw_monitor_refresh_within_ms(g->m));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("redis_refresh");
	TCase *tc = tcase_create("sink");
	tcase_add_checked_fixture(tc, fixture_up, fixture_down);
	tcase_set_timeout(tc, 30);
	tcase_add_test(tc, refresh_keeps_an_online_device);
	tcase_add_test(tc, another_nodes_devices_are_left_to_it);
	tcase_add_test(tc, a_second_refresh_is_light);
	tcase_add_test(tc, light_refreshes_of_a_mixed_fleet);
	tcase_add_test(tc, a_light_refresh_takes_no_field_away);
	tcase_add_test(tc, a_light_refresh_that_finds_something_else);
	tcase_add_test(tc, what_a_full_refresh_follows);
	tcase_add_test(tc, who_reports_nothing_lives_on);
	tcase_add_test(tc, a_reload_is_written_to_all);
	tcase_add_test(tc, last_seen_is_written_each_time_if_that_is_asked_for);
	tcase_add_test(tc, a_look_leaves_out_what_is_plain_alone);
	tcase_add_test(tc, a_sweep_of_a_large_fleet_is_over_before_keys_end);
	tcase_add_test(tc, a_light_refresh_that_fails);
	tcase_add_test(tc, refresh_keeps_an_offline_device);
	tcase_add_test(tc, refresh_of_what_is_not_ours_writes_snapshots);
	tcase_add_test(tc, rewrite_repairs_the_same_seq);
	suite_add_tcase(suite, tc);
	return rig_run(suite);
}

/* SPDX-License-Identifier: MIT */
/* Devices that are known by keys: while one of both ways is blind, after a start, paced, and where keys are not
 * listened to. */
#include "../suite.h"
#include "key_world.h"

/* --- blindness -------------------------------------------------------------------------------------------------------
 */

START_TEST(keys_are_judged_without_a_broker)
{
	hw_monitor_link(w->m, w->now, 0, false);
	world_drain(w);
	ck_assert(hw_blind_now(hw_monitor_blind(w->m)));
	int64_t at = w->now.mono.ns;
	put("a", 3000);
	pass(10 * S);
	offline_between(at + 3 * S, at + 3 * S + SOON);
}
END_TEST

START_TEST(a_store_that_was_away)
{
	put("a", 3000);
	put("kept", 3000);
	pass(S);
	hw_monitor_key_sight(w->m, w->now, false);
	pass(20 * S);
	ck_assert_uint_eq(checks, 0);
	ck_assert_uint_eq(transitions(HW_STATE_OFFLINE), 0);
	int64_t at = w->now.mono.ns;
	hw_monitor_key_sight(w->m, w->now, true);
	look("a", 0);
	look("kept", 0);
	look("a", HW_KEY_EXPIRED);
	pass(2 * S);
	ck_assert_uint_eq(transitions(HW_STATE_OFFLINE), 0);
	put("kept", 30000);
	pass(5 * S);
	offline_between(at + 3 * S, at + 3 * S + SOON);
	ck_assert(world_is(w, "kept", HW_STATE_ONLINE));
	/* Removing it is no matter of time. */
	hw_monitor_key_loss(w->m, w->now);
	drop("kept", HW_KEY_REMOVED);
	ck_assert(world_is(w, "kept", HW_STATE_OFFLINE));
}
END_TEST

START_TEST(recurring_blindness_is_bounded)
{
	int64_t at = w->now.mono.ns;
	put("a", 3000);
	for (int i = 0; i < 30; i++) {
		pass(S);
		hw_monitor_key_loss(w->m, w->now);
		look("a", 0);
	}
	offline_between(at + 9 * S, at + 9 * S + SOON + S);
}
END_TEST

START_TEST(all_keys_lost_at_once)
{
	put("a", 5000);
	put("b", -1);
	pass(S);
	store[find("a")].there = store[find("b")].there = false;
	int64_t at = w->now.mono.ns;
	hw_monitor_key_loss(w->m, w->now);
	look("a", 0);
	look("b", 0);
	pass(4 * S);
	ck_assert_uint_eq(transitions(HW_STATE_OFFLINE), 0);
	pass(60 * S);
	ck_assert_uint_eq(transitions(HW_STATE_OFFLINE), 2);
	offline_between(at + 30 * S, at + 30 * S + SOON); /* without a time to live: a timeout */
}
END_TEST

START_TEST(a_removal_that_was_not_told)
{
	put("a", 60000);
	pass(S);
	int64_t at = w->now.mono.ns;
	drop("a", 0);
	offline_between(at, at);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->keys_missed, 1);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->keys_repaired, 1);
	put_quietly("a", 60000);
	look("a", 0);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert_uint_eq(hw_monitor_stats(w->m)->keys_missed, 2);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->keys_repaired, 2);
}
END_TEST

START_TEST(an_evicted_key)
{
	put("a", 5000);
	pass(4 * S);
	int64_t at = w->now.mono.ns;
	drop("a", HW_KEY_EVICTED);
	pass(20 * S);
	offline_between(at + 5 * S, at + 5 * S + SOON);
}
END_TEST

START_TEST(the_machine_slept)
{
	put("a", 5000);
	pass(3 * S);
	struct hw_mono since = w->now.mono;
	w->now.mono.ns += 3 * S;
	hw_monitor_suspended(w->m, w->now, since);
	int64_t at = w->now.mono.ns;
	pass(20 * S);
	offline_between(at + 5 * S, at + 5 * S + SOON);
}
END_TEST

/* --- the store, pacing, off ------------------------------------------------------------------------------------------
 */

static void load(const char *id, unsigned source)
{
	struct hw_stored s = {.id = id,
	                      .id_len = strlen(id),
	                      .state = HW_STATE_ONLINE,
	                      .reason = HW_REASON_HEARTBEAT,
	                      .since_ms = w->now.wall_ms - 100000,
	                      .last_seen_ms = w->now.wall_ms - 100000,
	                      .source = source,
	                      .seq = 7};
	ck_assert_int_eq(hw_monitor_load(w->m, w->now, &s), 0);
	world_drain(w);
}

START_TEST(loaded_from_the_store)
{
	int64_t at = w->now.mono.ns;
	put_quietly("kept", 1000000);
	load("kept", HW_SOURCE_KEY);
	load("gone", HW_SOURCE_KEY);
	look("kept", 0);
	look("gone", 0);
	pass(200 * S);
	ck_assert_uint_eq(transitions(HW_STATE_OFFLINE), 1);
	ck_assert(world_is(w, "gone", HW_STATE_OFFLINE) && world_is(w, "kept", HW_STATE_ONLINE));
	offline_between(at + 30 * S, at + 30 * S + SOON);
}
END_TEST

START_TEST(paced)
{
	struct hw_group_spec g = world_group("default", 30000);
	char id[16];
	g.max_offline_rate = 10;
	key_tear_down();
	key_begin(&g, false); /* no broker: that paces keys as well */
	for (int i = 0; i < 20; i++) {
		snprintf(id, sizeof(id), "d%d", i);
		put(id, 1000);
	}
	pass(S + SOON);
	ck_assert_uint_le(transitions(HW_STATE_OFFLINE), 2);
	pass(S);
	ck_assert_uint_ge(transitions(HW_STATE_OFFLINE), 9);
	ck_assert_uint_le(transitions(HW_STATE_OFFLINE), 12);
	pass(2 * S);
	ck_assert_uint_eq(transitions(HW_STATE_OFFLINE), 20);
}
END_TEST

/* A key that is gone shows no deadline any more: those that wait for their turn keep theirs. */
START_TEST(the_delay_of_those_that_waited)
{
	struct hw_group_spec g = world_group("default", 30000);
	char id[16];
	int64_t sum_ns = 0, turns = 0;
	g.max_offline_rate = 10;
	key_tear_down();
	key_begin(&g, true);
	for (int i = 0; i < 20; i++) {
		snprintf(id, sizeof(id), "d%d", i);
		put(id, i < 10 ? 1000 : -1);
	}
	pass(S);
	for (int i = 10; i < 20; i++) {
		snprintf(id, sizeof(id), "d%d", i);
		drop(id, HW_KEY_REMOVED);
	}
	pass(S / 2);
	for (int i = 0; i < 20; i++) {
		snprintf(id, sizeof(id), "d%d", i);
		if (world_is(w, id, HW_STATE_ONLINE))
			ck_assert_int_ge(hw_monitor_due_in_ms(w->m, w->now, world_device(w, id)), -500);
	}
	pass(3 * S);
	ck_assert_uint_eq(transitions(HW_STATE_OFFLINE), 20);
	for (size_t k = 0; k < w->n_log; k++) {
		const struct hw_transition *t = &w->log[k].transition;
		if (w->log[k].kind != HW_OUT_TRANSITION || t->state != HW_STATE_OFFLINE || t->delay_ns < 0)
			continue;
		sum_ns += t->delay_ns; /* as whoever shows a mean does */
		turns++;
		ck_assert_int_le(t->delay_ns, 2 * S + SOON);
	}
	ck_assert_int_ge(turns, 19);
	ck_assert_int_ge(sum_ns, turns * S / 2);
}
END_TEST

START_TEST(off)
{
	struct hw_monitor_conf conf = world_conf();
	key_tear_down();
	w = world_of_one(&conf);
	world_connect(w);
	hw_monitor_key(w->m, w->now, HW_KEY_WRITTEN, "a", 1, 1000);
	hw_monitor_key_back(w->m, w->now, "a", 1);
	world_drain(w);
	ck_assert_ptr_null(world_device(w, "a"));
	/* One that was known by a key is judged by its heartbeats, of which there are none. */
	load("b", HW_SOURCE_KEY);
	world_pass(w, 100 * S);
	last_ns(HW_STATE_OFFLINE, HW_REASON_TIMEOUT);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("monitor_key_blind");
	TCase *tc = tcase_create("all");
	tcase_add_checked_fixture(tc, key_set_up, key_tear_down);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, keys_are_judged_without_a_broker);
	tcase_add_test(tc, a_store_that_was_away);
	tcase_add_test(tc, recurring_blindness_is_bounded);
	tcase_add_test(tc, all_keys_lost_at_once);
	tcase_add_test(tc, a_removal_that_was_not_told);
	tcase_add_test(tc, an_evicted_key);
	tcase_add_test(tc, the_machine_slept);
	tcase_add_test(tc, loaded_from_the_store);
	tcase_add_test(tc, paced);
	tcase_add_test(tc, the_delay_of_those_that_waited);
	tcase_add_test(tc, off);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

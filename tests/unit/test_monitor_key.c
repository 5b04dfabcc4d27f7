/* SPDX-License-Identifier: MIT */
/* Devices that are known by keys, rule by rule: those of which only keys tell, and those that send heartbeats as well.
 */
#include <stdlib.h>

#include "../suite.h"
#include "key_world.h"

/* --- the key alone ---------------------------------------------------------------------------------------------------
 */

START_TEST(lives_as_long_as_its_key)
{
	int64_t start = w->now.mono.ns;
	put("a", 3000);
	last_ns(HW_STATE_ONLINE, HW_REASON_HEARTBEAT);
	ck_assert_uint_eq(hw_device_source(world_device(w, "a")), HW_SOURCE_KEY);
	ck_assert(world_device(w, "a")->flags & HW_FLAG_KEYED);
	pass(10 * S);
	offline_between(start + 3 * S, start + 3 * S + SOON);
	ck_assert_uint_eq(transitions(HW_STATE_OFFLINE), 1);
	ck_assert_uint_eq(checks, 1);
	ck_assert_int_ge(world_last(w, NULL)->delay_ns, 0);
	ck_assert_int_le(world_last(w, NULL)->delay_ns, TICK + STEP_NS);
	put("a", 3000);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert_uint_eq(hw_monitor_stats(w->m)->keys_missed, 0);
}
END_TEST

START_TEST(a_renewed_key_costs_a_relink_a_time_to_live)
{
	for (int i = 0; i < 300; i++) {
		put("a", 3000);
		pass(S);
	}
	ck_assert_uint_eq(transitions(HW_STATE_OFFLINE), 0);
	ck_assert_uint_eq(checks, 0);
	ck_assert_uint_le(hw_monitor_stats(w->m)->relinks, 151);
	ck_assert_uint_eq(world_count(w, HW_OUT_REFRESH, 0) + world_count(w, HW_OUT_REFRESH_LIGHT, 0),
	                  hw_monitor_stats(w->m)->relinks);
	ck_assert_int_le(hw_monitor_due_in_ms(w->m, w->now, world_device(w, "a")), 2002);
}
END_TEST

START_TEST(a_changed_time_to_live)
{
	put("a", 60000);
	put("b", 2000);
	pass(S);
	int64_t at = w->now.mono.ns;
	put_quietly("a", 500);
	look("a", HW_KEY_TTL);
	put_quietly("b", -1);
	look("b", HW_KEY_TTL);
	pass(3 * S);
	offline_between(at + S / 2, at + S / 2 + SOON);
	ck_assert(world_is(w, "b", HW_STATE_ONLINE));
	/* Without one: until it is removed. */
	checks = 0;
	pass((getenv("HW_FEW_ROUNDS") ? 20 : 400) * 86400 * S);
	ck_assert(world_is(w, "b", HW_STATE_ONLINE));
	ck_assert_uint_eq(checks, 0);
	ck_assert_int_eq(hw_monitor_due_in_ms(w->m, w->now, world_device(w, "b")), INT64_MAX);
	drop("b", HW_KEY_REMOVED);
	offline_between(w->now.mono.ns, w->now.mono.ns);
}
END_TEST

/* It was renewed, and the notification was lost: the look when it is due says so. */
START_TEST(a_renewal_that_was_not_told)
{
	put("a", 3000);
	pass(2 * S);
	put_quietly("a", 10000);
	int64_t until = w->now.mono.ns + 10 * S;
	pass(5 * S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert_uint_eq(hw_monitor_stats(w->m)->keys_missed, 1);
	pass(10 * S);
	offline_between(until, until + SOON);
}
END_TEST

/* An answer may never come: it is asked for again. */
START_TEST(a_look_without_an_answer)
{
	put("a", 1000);
	store[find("a")].there = false;
	world_pass(w, 2 * S);
	size_t asked = world_count(w, HW_OUT_KEY_CHECK, 0);
	ck_assert_uint_eq(asked, 1);
	world_pass(w, 5 * S);
	ck_assert_uint_eq(world_count(w, HW_OUT_KEY_CHECK, 0), 2);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
}
END_TEST

START_TEST(back_for_one_timeout)
{
	put("a", 1000);
	drop("a", HW_KEY_REMOVED);
	pass(S);
	int64_t at = w->now.mono.ns;
	hw_monitor_key_back(w->m, w->now, "a", 1);
	world_drain(w);
	last_ns(HW_STATE_ONLINE, HW_REASON_HEARTBEAT);
	pass(60 * S);
	offline_between(at + 30 * S, at + 30 * S + SOON);
	/* Also one whose key had no time to live. */
	put("a", -1);
	drop("a", HW_KEY_REMOVED);
	at = w->now.mono.ns;
	hw_monitor_key_back(w->m, w->now, "a", 1);
	pass(60 * S);
	offline_between(at + 30 * S, at + 30 * S + SOON);
	/* A key written meanwhile counts instead. */
	hw_monitor_key_back(w->m, w->now, "a", 1);
	world_drain(w);
	at = w->now.mono.ns;
	put("a", 2000);
	pass(60 * S);
	offline_between(at + 2 * S, at + 2 * S + SOON);
	/* A device that only beats is offline, and the key is to say so. */
	world_beat(w, "b", "");
	pass(60 * S);
	size_t refreshes = world_count(w, HW_OUT_REFRESH, 0);
	hw_monitor_key_back(w->m, w->now, "b", 1);
	world_drain(w);
	ck_assert(world_is(w, "b", HW_STATE_OFFLINE));
	ck_assert_uint_eq(world_count(w, HW_OUT_REFRESH, 0), refreshes + 1);
}
END_TEST

START_TEST(what_is_not_taken)
{
	hw_monitor_key(w->m, w->now, HW_KEY_WRITTEN, "a+b", 3, 1000);
	hw_monitor_key(w->m, w->now, HW_KEY_REMOVED, "gone", 4, HW_KEY_GONE);
	hw_monitor_key_back(w->m, w->now, "gone", 4);
	world_drain(w);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->refused[HW_REFUSED_ID], 1);
	ck_assert_uint_eq(hw_registry_count(hw_monitor_registry(w->m)), 0);
	hw_monitor_key(w->m, w->now, HW_KEY_WRITTEN, "long", 4, INT64_MAX);
	world_drain(w);
	pass(5 * S);
	ck_assert(world_is(w, "long", HW_STATE_ONLINE));
}
END_TEST

START_TEST(devices_by_mqtt_alone_do_not_grow)
{
	ck_assert_uint_eq(sizeof(struct hw_device), 64);
	world_beat(w, "a", "");
	pass(60 * S);
	look("a", HW_KEY_REMOVED);
	ck_assert_ptr_null(hw_device_extra(world_device(w, "a")));
	world_beat(w, "b", "{\"battery\":5}");
	ck_assert_ptr_null(hw_device_key(world_device(w, "b")));
}
END_TEST

START_TEST(forgotten_and_back)
{
	put("a", -1);
	ck_assert(hw_monitor_forget(w->m, w->now, "a", 1));
	world_drain(w);
	ck_assert(world_is(w, "a", HW_STATE_FORGOTTEN));
	put("a", 1000);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	pass(3 * S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
}
END_TEST

/* --- both paths ------------------------------------------------------------------------------------------------------
 */

START_TEST(offline_when_both_are_silent)
{
	/* The key outlives the heartbeats ... */
	int64_t at = w->now.mono.ns;
	put("a", 50000);
	world_beat(w, "a", "");
	ck_assert_uint_eq(hw_device_source(world_device(w, "a")), HW_SOURCE_MQTT | HW_SOURCE_KEY);
	pass(49 * S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	pass(20 * S);
	offline_between(at + 50 * S, at + 50 * S + SOON + 4 * w->rtt_ns + TICK);
	/* ... and they the key. */
	put("a", 5000);
	pass(S);
	at = w->now.mono.ns;
	world_beat(w, "a", "");
	pass(60 * S);
	int64_t off = last_ns(HW_STATE_OFFLINE, HW_REASON_TIMEOUT);
	ck_assert(off >= at + 30 * S && off <= at + 30 * S + SOON + 4 * w->rtt_ns + TICK);
	ck_assert_uint_eq(transitions(HW_STATE_OFFLINE), 2);
}
END_TEST

START_TEST(heartbeats_resume)
{
	put("a", -1);
	world_beat(w, "a", "");
	pass(100 * S); /* by its key alone */
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	world_beat(w, "a", "");
	drop("a", HW_KEY_REMOVED);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	int64_t at = w->now.mono.ns;
	pass(60 * S);
	int64_t off = last_ns(HW_STATE_OFFLINE, HW_REASON_TIMEOUT);
	ck_assert(off >= at + 30 * S && off <= at + 30 * S + SOON + 4 * w->rtt_ns + TICK);
}
END_TEST

/* The key of a device that lives by its heartbeats is the monitor's own: put back, never taken for a sign of life. */
START_TEST(its_own_key)
{
	world_beat(w, "a", "");
	put_quietly("a", 90000);
	look("a", 0);
	look("a", HW_KEY_TTL);
	ck_assert_uint_eq(hw_device_source(world_device(w, "a")), HW_SOURCE_MQTT);
	size_t refreshes = world_count(w, HW_OUT_REFRESH, 0);
	drop("a", HW_KEY_REMOVED);
	ck_assert_uint_eq(world_count(w, HW_OUT_REFRESH, 0), refreshes + 1);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert(!hw_device_key_is_foreign(world_device(w, "a")));
	put("a", 2000);
	ck_assert(hw_device_key_is_foreign(world_device(w, "a")));
	for (int i = 0; i < 4; i++) {
		pass(S);
		world_beat(w, "a", "");
	}
	/* The writer's has expired, and was touched in time: the monitor's own is in its place. */
	ck_assert(!hw_device_key_is_foreign(world_device(w, "a")));
	put_quietly("a", 90000);
	look("a", 0);
	look("a", HW_KEY_EXPIRED);
	ck_assert(!hw_device_key_is_foreign(world_device(w, "a")));
	pass(40 * S);
	last_ns(HW_STATE_OFFLINE, HW_REASON_TIMEOUT);
	/* It expired while the monitor wrote: what is there is the monitor's. */
	world_beat(w, "a", "");
	put("a", 60000);
	put_quietly("a", 90000);
	look("a", HW_KEY_EXPIRED);
	ck_assert(!hw_device_key_is_foreign(world_device(w, "a")));
}
END_TEST

START_TEST(a_goodbye_while_the_key_is_there)
{
	put("a", 20000);
	world_beat(w, "a", "");
	world_beat(w, "a", "{\"online\":false}");
	pass(5 * S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert_uint_eq(hw_monitor_stats(w->m)->goodbyes_void, 1);
	ck_assert_uint_eq(world_count(w, HW_OUT_STATUS, 0), 1);
}
END_TEST

/* Written while the monitor wrote that it is offline, which removed the key: the writing itself was a sign of life. */
START_TEST(written_and_lost_in_between)
{
	put("a", 1000);
	world_beat(w, "a", "");
	pass(60 * S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	look("a", HW_KEY_WRITTEN | HW_KEY_EXPIRED);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	look("a", HW_KEY_WRITTEN);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	pass(60 * S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
}
END_TEST

/* A node that does not decide notes what it learns of the key, and looks at the key again when it decides. */
START_TEST(another_nodes_key)
{
	unsigned p = hw_partition_of("a", 1);
	put("a", 20000);
	hw_monitor_role(w->m, p, HW_ROLE_WATCHES, 0);
	drop("a", HW_KEY_REMOVED);
	ck_assert(world_device(w, "a")->flags & HW_FLAG_SILENT);
	ck_assert_int_eq(world_device(w, "a")->node.place, HW_PLACE_NONE);
	pass(S);
	put("a", 20000);
	ck_assert(!(world_device(w, "a")->flags & HW_FLAG_SILENT));
	pass(S);
	drop("a", HW_KEY_REMOVED);
	pass(S);
	ck_assert_uint_eq(transitions(HW_STATE_OFFLINE), 0);
	hw_monitor_role(w->m, p, HW_ROLE_AUTHORITATIVE, 1);
	pass(S);
	last_ns(HW_STATE_OFFLINE, HW_REASON_KEYSPACE);
	ck_assert_uint_eq(transitions(HW_STATE_OFFLINE), 1);
	ck_assert_uint_eq(transitions(HW_STATE_ONLINE), 1);
}
END_TEST

/* The stream does not tell that it is known by a key alone, the store does; before it is due, and when it was. */
START_TEST(another_nodes_device_that_has_a_key_alone)
{
	unsigned p = hw_partition_of("a", 1);
	struct hw_event e = {.id = "a",
	                     .id_len = 1,
	                     .group = "default",
	                     .group_len = 7,
	                     .state = HW_STATE_ONLINE,
	                     .time_ms = w->now.wall_ms,
	                     .seq = 5};
	struct hw_stored s = {.id = "a", .id_len = 1, .state = HW_STATE_ONLINE, .source = HW_SOURCE_KEY, .seq = 5};
	hw_monitor_role(w->m, p, HW_ROLE_WATCHES, 0);
	put_quietly("a", -1);
	ck_assert_int_eq(hw_monitor_stream(w->m, w->now, &e), 0);
	if (_i)
		pass(60 * S);
	ck_assert_int_eq(hw_monitor_load(w->m, w->now, &s), 0);
	pass(60 * S);
	hw_monitor_role(w->m, p, HW_ROLE_AUTHORITATIVE, 1);
	pass(60 * S);
	ck_assert_uint_eq(transitions(HW_STATE_OFFLINE), 0);
	drop("a", HW_KEY_REMOVED);
	pass(S);
	last_ns(HW_STATE_OFFLINE, HW_REASON_KEYSPACE);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("monitor_key");
	TCase *tc = tcase_create("all");
	tcase_add_checked_fixture(tc, key_set_up, key_tear_down);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, lives_as_long_as_its_key);
	tcase_add_test(tc, a_renewed_key_costs_a_relink_a_time_to_live);
	tcase_add_test(tc, a_changed_time_to_live);
	tcase_add_test(tc, a_renewal_that_was_not_told);
	tcase_add_test(tc, a_look_without_an_answer);
	tcase_add_test(tc, back_for_one_timeout);
	tcase_add_test(tc, what_is_not_taken);
	tcase_add_test(tc, devices_by_mqtt_alone_do_not_grow);
	tcase_add_test(tc, forgotten_and_back);
	tcase_add_test(tc, offline_when_both_are_silent);
	tcase_add_test(tc, heartbeats_resume);
	tcase_add_test(tc, its_own_key);
	tcase_add_test(tc, a_goodbye_while_the_key_is_there);
	tcase_add_test(tc, written_and_lost_in_between);
	tcase_add_test(tc, another_nodes_key);
	tcase_add_loop_test(tc, another_nodes_device_that_has_a_key_alone, 0, 2);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

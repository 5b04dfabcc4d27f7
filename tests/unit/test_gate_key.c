/* SPDX-License-Identifier: MIT */
/* Devices that are known by a key, on one of several nodes: what a watcher believes about a key, and what it knows
 * when it takes over. */
#include <check.h>
#include <string.h>

#include "../suite.h"
#include "gate_world.h"

static void set_up(void)
{
	struct hw_monitor_conf conf = world_conf();
	conf.several = true;
	conf.key_group = "default";
	p = hw_partition_of("a", 1);
	w = world_of_one(&conf);
	world_connect(w);
	hw_monitor_key_sight(w->m, w->now, true);
}

static void key(unsigned why, int64_t ttl_ms)
{
	hw_monitor_key(w->m, w->now, why, "a", 1, ttl_ms);
	world_drain(w);
}

static unsigned source(void)
{
	return hw_device_source(world_device(w, "a"));
}

static void load(enum hw_state state, uint64_t seq, unsigned of)
{
	struct hw_stored s = {.id = "a",
	                      .id_len = 1,
	                      .state = state,
	                      .seq = seq,
	                      .since_ms = 1,
	                      .last_seen_ms = 1,
	                      .group = "default",
	                      .source = of,
	                      .known_by_stream = true};
	ck_assert_int_eq(hw_monitor_load(w->m, w->now, &s), 0);
	world_drain(w);
}

START_TEST(a_touch_is_noted_and_nothing_is_told)
{
	key(HW_KEY_WRITTEN, 60000);
	ck_assert_uint_eq(outs_of_devices(), 0);
	ck_assert(world_is(w, "a", HW_STATE_PROVISIONAL));
	ck_assert_uint_eq(source(), HW_SOURCE_KEY);
	role(HW_ROLE_AUTHORITATIVE);
	ck_assert_uint_eq(transitions(HW_STATE_ONLINE), 1);
}
END_TEST

/* The owner may have written the key for a device whose transition has not arrived in the stream yet. */
START_TEST(a_key_that_nobody_was_told_of)
{
	key(0, 60000);
	ck_assert_uint_eq(hw_registry_find(hw_monitor_registry(w->m), "a", 1), HW_NIL);
	stream("a", HW_STATE_OFFLINE, 5);
	key(0, 60000);
	ck_assert_uint_eq(source(), HW_SOURCE_MQTT);
	ck_assert(!(world_device(w, "a")->flags & HW_FLAG_HEARD));
	role(HW_ROLE_AUTHORITATIVE);
	key(0, 60000);
	ck_assert_uint_eq(transitions(HW_STATE_ONLINE), 1);
	ck_assert(source() & HW_SOURCE_KEY);
}
END_TEST

START_TEST(a_key_that_nobody_was_told_of_of_a_device_that_has_one)
{
	key(HW_KEY_WRITTEN, 60000);
	stream("a", HW_STATE_ONLINE, 5);
	stream("a", HW_STATE_OFFLINE, 6);
	key(0, 60000);
	ck_assert(world_device(w, "a")->flags & HW_FLAG_HEARD);
	role(HW_ROLE_AUTHORITATIVE);
	ck_assert_uint_eq(transitions(HW_STATE_ONLINE), 1);
}
END_TEST

START_TEST(a_key_that_ended_while_nobody_decided)
{
	key(HW_KEY_WRITTEN, 60000);
	stream("a", HW_STATE_ONLINE, 5);
	key(HW_KEY_REMOVED, HW_KEY_GONE);
	ck_assert_uint_eq(outs_of_devices(), 0);
	ck_assert(world_device(w, "a")->flags & HW_FLAG_SILENT);
	role(HW_ROLE_AUTHORITATIVE);
	world_pass(w, S);
	ck_assert_uint_ge(world_count(w, HW_OUT_KEY_CHECK, 0), 1);
	key(0, HW_KEY_GONE);
	ck_assert_uint_eq(transitions(HW_STATE_OFFLINE), 1);
}
END_TEST

START_TEST(a_key_that_ended_and_is_there_again)
{
	key(HW_KEY_WRITTEN, 60000);
	stream("a", HW_STATE_ONLINE, 5);
	key(HW_KEY_REMOVED, HW_KEY_GONE);
	key(HW_KEY_WRITTEN, 60000);
	role(HW_ROLE_AUTHORITATIVE);
	world_pass(w, 50 * S);
	ck_assert_uint_eq(transitions(HW_STATE_OFFLINE) + transitions(HW_STATE_ONLINE), 0);
}
END_TEST

/* The stream does not tell of a key. */
START_TEST(what_is_known_by_hearsay)
{
	struct hw_event e = entry("a", HW_STATE_ONLINE, 5);
	ck_assert(hw_monitor_is_known_by_stream(w->m, &e));
	stream("a", HW_STATE_ONLINE, 5);
	ck_assert(!hw_monitor_is_known_by_stream(w->m, &e)); /* no news */
	load(HW_STATE_ONLINE, 5, HW_SOURCE_KEY);
	ck_assert_uint_eq(source(), HW_SOURCE_KEY);
	stream("a", HW_STATE_OFFLINE, 6);
	e = entry("a", HW_STATE_ONLINE, 7);
	ck_assert(hw_monitor_is_known_by_stream(w->m, &e));
	key(HW_KEY_WRITTEN, 60000);
	ck_assert(!hw_monitor_is_known_by_stream(w->m, &e)); /* it was heard here */
	e = entry("a", HW_STATE_OFFLINE, 7);
	ck_assert(!hw_monitor_is_known_by_stream(w->m, &e));
	role(HW_ROLE_AUTHORITATIVE);
	e = entry("a", HW_STATE_ONLINE, 7);
	ck_assert(!hw_monitor_is_known_by_stream(w->m, &e));
}
END_TEST

/* The stream, the key, and the hash, in this order: that it beats over MQTT was only supposed. */
START_TEST(a_key_before_the_hash)
{
	stream("a", HW_STATE_ONLINE, 5);
	key(HW_KEY_WRITTEN, 60000);
	load(HW_STATE_ONLINE, 5, HW_SOURCE_KEY);
	ck_assert_uint_eq(source(), HW_SOURCE_KEY);
	load(HW_STATE_ONLINE, 5, HW_SOURCE_MQTT); /* the owner has not seen the key yet */
	ck_assert_uint_eq(source(), HW_SOURCE_MQTT | HW_SOURCE_KEY);
}
END_TEST

/* The hash was asked for by a watcher, and answers to an owner. */
START_TEST(what_the_hash_says_when_it_is_ours)
{
	stream("a", HW_STATE_ONLINE, 5);
	role(HW_ROLE_AUTHORITATIVE);
	load(HW_STATE_ONLINE, 5, HW_SOURCE_KEY);
	ck_assert_uint_eq(source(), HW_SOURCE_KEY);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("gate_key");
	TCase *t = tcase_create("keys");
	tcase_add_checked_fixture(t, set_up, teardown);
	tcase_add_test(t, a_touch_is_noted_and_nothing_is_told);
	tcase_add_test(t, a_key_that_nobody_was_told_of);
	tcase_add_test(t, a_key_that_nobody_was_told_of_of_a_device_that_has_one);
	tcase_add_test(t, a_key_that_ended_while_nobody_decided);
	tcase_add_test(t, a_key_that_ended_and_is_there_again);
	tcase_add_test(t, what_is_known_by_hearsay);
	tcase_add_test(t, a_key_before_the_hash);
	tcase_add_test(t, what_the_hash_says_when_it_is_ours);
	suite_add_tcase(suite, t);
	return suite_run(suite);
}

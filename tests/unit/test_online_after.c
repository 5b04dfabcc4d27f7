/* SPDX-License-Identifier: MIT */
/* Heartbeats that bring an offline device back (online_after): see needs_more() in src/core/beat.c. */
#include "../suite.h"
#include "gate_world.h"

#define AFTER 3

static size_t refreshed; /* HW_OUT_REFRESH before the device was offline */

static struct hw_group_spec group(void)
{
	struct hw_group_spec g = world_group("default", 30000);
	g.online_after = AFTER;
	return g;
}

static struct world *fresh(const struct hw_monitor_conf *conf)
{
	struct hw_group_spec g = group();
	struct world *one = world_new(conf, &g, 1);
	world_connect(one);
	return one;
}

static void setup_one(void)
{
	struct hw_monitor_conf conf = world_conf();
	w = fresh(&conf);
}

static void beats(unsigned n, int64_t apart_ns)
{
	for (unsigned k = 0; k < n; k++) {
		world_pass(w, apart_ns);
		world_beat(w, "a", "");
	}
}

static void go_offline(void)
{
	world_beat(w, "a", "");
	world_pass(w, TIMEOUT + S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
}

START_TEST(test_heartbeats_in_a_row_bring_it_back)
{
	world_beat(w, "a", "");
	ck_assert(world_is(w, "a", HW_STATE_ONLINE)); /* a new device needs one */
	world_pass(w, TIMEOUT + S);
	beats(AFTER - 1, 29 * S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	beats(1, 29 * S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	world_pass(w, TIMEOUT + S); /* and it is judged as ever */
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	beats(1, S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
}
END_TEST

START_TEST(test_a_longer_gap_begins_the_count_again)
{
	go_offline();
	for (int k = 0; k < 4; k++) {
		beats(AFTER - 1, 20 * S);
		world_pass(w, TIMEOUT + S);
		ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	}
	beats(AFTER, 20 * S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
}
END_TEST

START_TEST(test_a_goodbye_begins_the_count_again)
{
	world_beat(w, "a", "");
	world_beat(w, "a", "{\"online\":false}");
	world_pass(w, S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	for (int k = 0; k < 3; k++) {
		beats(AFTER - 1, S);
		world_beat(w, "a", "{\"online\":false}");
		ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	}
	beats(AFTER, S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
}
END_TEST

/* The period of a goodbye shares its field with the count, and is no count. */
START_TEST(test_the_period_of_a_goodbye_is_no_count)
{
	for (int k = 0; k < 5; k++) { /* so many blind periods */
		hw_monitor_link(w->m, w->now, 0, false);
		world_pass(w, S);
		hw_monitor_link(w->m, w->now, 0, true);
		world_pass(w, S);
	}
	world_beat(w, "a", "");
	world_beat(w, "a", "{\"online\":false}");
	world_pass(w, S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	beats(1, S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
}
END_TEST

/* How often the offline device was stored. */
static size_t refreshes(void)
{
	return world_count(w, HW_OUT_REFRESH, 0) - refreshed;
}

START_TEST(test_it_is_not_forgotten_while_it_sends)
{
	struct hw_monitor_conf conf = world_conf();
	world_free(w);
	conf.forget_after_ms = conf.forget_once_after_ms = 100000;
	w = fresh(&conf);
	go_offline();
	refreshed = world_count(w, HW_OUT_REFRESH, 0);
	for (size_t k = 0; k < 10; k++) {
		beats(1, 40 * S);
		ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
		ck_assert_int_eq(hw_device_last_seen_ms(world_device(w, "a"), w->now), w->now.wall_ms);
		ck_assert_int_eq(hw_monitor_gone_ms(w->m, w->now, world_device(w, "a")), 0);
		ck_assert_uint_eq(refreshes(), k + 1); /* for a restart */
	}
	beats(1, S); /* a second one of the row, which is not stored */
	ck_assert_uint_eq(refreshes(), 10);
	world_pass(w, 101 * S);
	ck_assert(!world_is(w, "a", HW_STATE_OFFLINE));
}
END_TEST

static void load(enum hw_state state, enum hw_reason reason, unsigned source)
{
	struct hw_stored s = {.id = "a",
	                      .id_len = 1,
	                      .state = state,
	                      .reason = reason,
	                      .since_ms = w->now.wall_ms - 5000,
	                      .last_seen_ms = w->now.wall_ms - 40000,
	                      .source = source,
	                      .seq = 5};
	ck_assert_int_eq(hw_monitor_load(w->m, w->now, &s), 0);
	world_drain(w);
}

START_TEST(test_a_restart_begins_the_count_again)
{
	struct hw_monitor_conf conf = world_conf();
	world_free(w);
	conf.loading = true;
	w = fresh(&conf);
	beats(AFTER + 2, S);
	load(HW_STATE_OFFLINE, HW_REASON_TIMEOUT, HW_SOURCE_MQTT);
	hw_monitor_loaded(w->m);
	world_drain(w);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	ck_assert_int_eq(hw_device_last_seen_ms(world_device(w, "a"), w->now), w->now.wall_ms);
	beats(AFTER - 1, S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	beats(1, S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
}
END_TEST

START_TEST(test_some_return_at_once)
{
	struct hw_monitor_conf conf = world_conf();
	world_free(w);
	conf.key_group = "default";
	w = fresh(&conf);
	load(HW_STATE_OFFLINE, _i ? HW_REASON_PARENT : HW_REASON_TIMEOUT,
	     _i ? HW_SOURCE_MQTT : HW_SOURCE_MQTT | HW_SOURCE_KEY);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	beats(1, S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
}
END_TEST

static void setup_several(void)
{
	struct hw_monitor_conf conf = world_conf();
	conf.several = true;
	p = hw_partition_of("a", 1);
	w = fresh(&conf);
	world_beat(w, "a", "");
	stream("a", HW_STATE_ONLINE, 1);
	stream("a", HW_STATE_OFFLINE, 2);
}

/* A node that does not decide counts by itself, and notes what it has counted. */
START_TEST(test_each_node_counts)
{
	setup_several();
	beats(AFTER - 1, S);
	ck_assert(!(world_device(w, "a")->flags & HW_FLAG_HEARD));
	beats(1, S);
	ck_assert(world_device(w, "a")->flags & HW_FLAG_HEARD);
	beats(1, TIMEOUT + S); /* the row is broken, so it would not call it online any more */
	ck_assert(!(world_device(w, "a")->flags & HW_FLAG_HEARD));
	beats(AFTER - 1, S);
	ck_assert(world_device(w, "a")->flags & HW_FLAG_HEARD);
	ck_assert_uint_eq(outs_of_devices(), 0);
	role(HW_ROLE_AUTHORITATIVE);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
}
END_TEST

START_TEST(test_a_take_over_begins_the_count_again)
{
	setup_several();
	beats(AFTER - 1, S);
	role(HW_ROLE_AUTHORITATIVE);
	beats(AFTER - 1, S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	beats(1, S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
}
END_TEST

START_TEST(test_a_reload_changes_the_number)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec g = group();
	go_offline();
	beats(1, S);
	g.online_after = 2;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &g, 1), 0);
	beats(1, S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
}
END_TEST

/* Copies of one message: another filter or another reader delivers it too, or a list names the device twice. */
START_TEST(test_copies_of_a_message_count_once)
{
	go_offline();
	for (unsigned k = 0; k < AFTER - 1; k++) {
		beats(1, S);
		beats(4, 60 * S / 1000);
		beats(2, 0);
		ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	}
	beats(1, S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
}
END_TEST

/* A device that sends all the time returns nevertheless: the distance is from the heartbeat that was counted last. */
START_TEST(test_quick_heartbeats_count_at_a_distance)
{
	go_offline();
	beats(1, S);
	beats(4, S / 10);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	beats(2, S / 10);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
}
END_TEST

/* The wall clock is set back by nearly the time between two heartbeats: the second one is no copy of the first. */
START_TEST(test_a_heartbeat_after_the_clock_was_set_back_counts)
{
	go_offline();
	beats(AFTER - 1, 2 * S);
	w->now.wall_ms -= 1900;
	beats(1, 2 * S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("online_after");
	TCase *t = tcase_create("one");
	tcase_add_checked_fixture(t, setup_one, teardown);
	tcase_add_test(t, test_heartbeats_in_a_row_bring_it_back);
	tcase_add_test(t, test_copies_of_a_message_count_once);
	tcase_add_test(t, test_quick_heartbeats_count_at_a_distance);
	tcase_add_test(t, test_a_heartbeat_after_the_clock_was_set_back_counts);
	tcase_add_test(t, test_a_longer_gap_begins_the_count_again);
	tcase_add_test(t, test_a_goodbye_begins_the_count_again);
	tcase_add_test(t, test_the_period_of_a_goodbye_is_no_count);
	tcase_add_test(t, test_it_is_not_forgotten_while_it_sends);
	tcase_add_test(t, test_a_restart_begins_the_count_again);
	tcase_add_loop_test(t, test_some_return_at_once, 0, 2);
	tcase_add_test(t, test_a_reload_changes_the_number);
	suite_add_tcase(s, t);
	t = tcase_create("nodes");
	tcase_add_checked_fixture(t, NULL, teardown);
	tcase_add_test(t, test_each_node_counts);
	tcase_add_test(t, test_a_take_over_begins_the_count_again);
	suite_add_tcase(s, t);
	return suite_run(s);
}

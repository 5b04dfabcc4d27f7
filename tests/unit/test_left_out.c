/* SPDX-License-Identifier: MIT */
/* Devices without a record: random notes and removals against a list, and what becomes of them when there is room. */
#include "../random.h"
#include "../suite.h"
#include "core/left_out.h"
#include "gate_world.h"

#define IDS 300

static const char *id_of(unsigned k)
{
	static char id[16];
	snprintf(id, sizeof(id), "x%u", k);
	return id;
}

static void note(unsigned k, enum hw_state state)
{
	hw_left_out_note(w->m, 0, id_of(k), strlen(id_of(k)), state);
}

static void removed(unsigned k)
{
	hw_left_out_remove(w->m, id_of(k), strlen(id_of(k)));
}

/* The partitions and the number of a list. */
static void compare(const bool *in)
{
	struct hw_partitions set = {{0}}, is = hw_monitor_left_out_in(w->m);
	uint32_t n = 0;
	for (unsigned k = 0; k < IDS; k++)
		if (in[k]) {
			hw_partitions_add(&set, hw_partition_of(id_of(k), strlen(id_of(k))));
			n++;
		}
	ck_assert_uint_eq(hw_monitor_left_out(w->m), n);
	ck_assert_mem_eq(&set, &is, sizeof(set));
}

START_TEST(what_is_noted_and_removed_is_known)
{
	bool in[IDS] = {false}, found[IDS] = {false};
	for (int step = 0; step < 20000; step++) {
		unsigned k = (unsigned)random64() % IDS, what = (unsigned)random64() % 100;
		if (what < 48) {
			note(k, what < 20 ? HW_STATE_ONLINE : HW_STATE_OFFLINE);
			in[k] = found[k] = true;
		} else if (what < 96) {
			removed(k);
			in[k] = false;
		} else if (what < 98) {
			hw_monitor_left_out_begin(w->m, w->now);
			memset(found, 0, sizeof(found));
		} else {
			hw_monitor_left_out_end(w->m);
			for (unsigned i = 0; i < IDS; i++)
				in[i] &= found[i];
		}
		ck_assert_int_eq(hw_left_out_is_stored(w->m, id_of(k), strlen(id_of(k))), in[k]);
		if (step % 50 == 0 || what >= 96)
			compare(in);
	}
}
END_TEST

/* Beyond the bound only the partitions are known, until a reading that finds room. */
START_TEST(their_number_is_bounded)
{
	for (unsigned k = 0; k < HW_LEFT_OUT_MAX + 5000; k++)
		note(k, HW_STATE_OFFLINE);
	ck_assert_uint_eq(hw_monitor_left_out(w->m), HW_LEFT_OUT_MAX);
	const struct hw_partitions all = hw_monitor_left_out_in(w->m);
	ck_assert_uint_eq(hw_partitions_count(&all), HW_PARTITIONS);
	ck_assert(hw_monitor_left_out_fits(w->m, w->now));
	hw_monitor_left_out_begin(w->m, w->now);
	ck_assert(!hw_monitor_left_out_fits(w->m, w->now));
	hw_monitor_left_out_end(w->m);
	const struct hw_partitions none = hw_monitor_left_out_in(w->m);
	ck_assert(!hw_partitions_any(&none) && hw_monitor_left_out(w->m) == 0);
}
END_TEST

static void limit(uint32_t max_devices)
{
	struct hw_monitor_conf conf = world_conf();
	const struct hw_group_spec g = world_group("default", 30000);
	conf.max_devices = max_devices;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &g, 1), 0);
}

static uint32_t unjudged(void)
{
	while (!hw_monitor_count_unjudged(w->m, w->now, 10))
		;
	return hw_monitor_unjudged(w->m);
}

START_TEST(a_device_without_room_is_unjudged_at_its_owner)
{
	limit(1);
	stream("b", HW_STATE_ONLINE, 5);
	const struct hw_event a = entry("a", HW_STATE_ONLINE, 5);
	ck_assert_int_eq(hw_monitor_stream(w->m, w->now, &a), -ENOSPC);
	ck_assert_uint_eq(hw_monitor_left_out(w->m), 1);
	ck_assert_uint_eq(unjudged(), 0); /* its owner knows it */
	role(HW_ROLE_AUTHORITATIVE);
	ck_assert_uint_eq(unjudged(), 1);
	ck_assert_uint_eq(hw_monitor_left_out_of(w->m, 0), 1);
	world_beat(w, "a", "");
	ck_assert_uint_eq(unjudged(), 1);
	limit(2);
	ck_assert(hw_monitor_left_out_fits(w->m, w->now));
	world_beat(w, "a", ""); /* not a new device: its record is read first */
	ck_assert_uint_eq(transitions(HW_STATE_ONLINE), 0);
	role(HW_ROLE_WATCHES);
	stream("a", HW_STATE_ONLINE, 6);
	ck_assert_uint_eq(hw_monitor_left_out(w->m), 0);
	role(HW_ROLE_AUTHORITATIVE);
	ck_assert_uint_eq(unjudged(), 0);
	ck_assert(!hw_monitor_may_be_unjudged(w->m));
}
END_TEST

START_TEST(a_refused_heartbeat_counts_in_a_cluster_and_a_forgotten_device_does_not)
{
	limit(1);
	stream("b", HW_STATE_ONLINE, 5);
	world_beat(w, "a", "");
	const struct hw_partitions in = hw_monitor_left_out_in(w->m);
	ck_assert(hw_partitions_has(&in, p) && hw_partitions_count(&in) == 1);
	role(HW_ROLE_AUTHORITATIVE);
	ck_assert_uint_eq(unjudged(), 0); /* it has no state */
	role(HW_ROLE_WATCHES);
	stream("a", HW_STATE_FORGOTTEN, 7);
	ck_assert_uint_eq(hw_monitor_left_out(w->m), 0);
}
END_TEST

int main(void)
{
	random_begin(random_seed_of_now());
	Suite *suite = suite_create("left out");
	TCase *tc = tcase_create("left out");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, what_is_noted_and_removed_is_known);
	tcase_add_test(tc, their_number_is_bounded);
	tcase_add_test(tc, a_device_without_room_is_unjudged_at_its_owner);
	tcase_add_test(tc, a_refused_heartbeat_counts_in_a_cluster_and_a_forgotten_device_does_not);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

/* SPDX-License-Identifier: MIT */
/* One of several nodes: what it does with devices about which another node decides, and when it takes them over. */
#include "../suite.h"
#include "gate_world.h"

/* --- a watcher ----------------------------------------------------------------- */

START_TEST(what_another_node_decides_does_not_come_out)
{
	world_beat(w, "a", "");
	ck_assert(world_is(w, "a", HW_STATE_PROVISIONAL));
	stream("a", HW_STATE_ONLINE, 5);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	world_beat(w, "a", "{\"timeout\":20}");
	world_beat(w, "a", "{\"online\":false}");
	world_pass(w, S);
	world_beat(w, "a", "");
	world_beat(w, "a", "{\"online\":false}");
	world_beat(w, "a", "");
	world_pass(w, 2 * TIMEOUT);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	stream("a", HW_STATE_OFFLINE, 6);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	world_beat(w, "a", "");
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	ck_assert(!hw_monitor_forget(w->m, w->now, "a", 1));
	world_pass(w, 31 * 86400 * S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	ck_assert_uint_eq(outs_of_devices(), 0);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->count[HW_STATE_OFFLINE], 1);
}
END_TEST

START_TEST(refreshes_while_blind_are_the_owners)
{
	stream("a", HW_STATE_ONLINE, 5);
	hw_monitor_link(w->m, w->now, 0, false);
	world_pass(w, 60 * S);
	ck_assert_uint_eq(world_count(w, HW_OUT_REFRESH, 0), 0);
	role(HW_ROLE_OWNS);
	world_pass(w, 60 * S);
	ck_assert_uint_gt(world_count(w, HW_OUT_REFRESH, 0), 0);
}
END_TEST

START_TEST(the_stream_sets_the_state)
{
	stream("a", HW_STATE_ONLINE, 5);
	ck_assert_uint_eq(world_device(w, "a")->seq, 5);
	ck_assert_int_eq(world_device(w, "a")->since_ms, w->now.wall_ms);
	ck_assert_int_eq(hw_device_last_seen_ms(world_device(w, "a"), w->now), w->now.wall_ms - 1000);
	stream("a", HW_STATE_OFFLINE, 4); /* older than what is known */
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	stream("a", HW_STATE_OFFLINE, 6);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	ck_assert_int_eq(hw_device_last_seen_ms(world_device(w, "a"), w->now), w->now.wall_ms - 1000);
	stream("a", HW_STATE_FORGOTTEN, 7);
	ck_assert(world_is(w, "a", HW_STATE_FORGOTTEN));
	hw_monitor_reap(w->m, hw_registry_ref(hw_monitor_registry(w->m), 0));
	ck_assert_ptr_null(world_device(w, "a"));
	stream("a", HW_STATE_FORGOTTEN, 7);
	ck_assert_ptr_null(world_device(w, "a"));
	struct hw_event bad = entry("a", HW_STATE_PROVISIONAL, 8), none = entry("a", HW_STATE_ONLINE, 0);
	ck_assert_int_eq(hw_monitor_stream(w->m, w->now, &bad), -EINVAL);
	ck_assert_int_eq(hw_monitor_stream(w->m, w->now, &none), -EINVAL);
}
END_TEST

START_TEST(who_decides_does_not_follow)
{
	role(HW_ROLE_AUTHORITATIVE);
	world_beat(w, "a", "");
	ck_assert_uint_eq(transitions(HW_STATE_ONLINE), 1);
	stream("a", HW_STATE_OFFLINE, world_device(w, "a")->seq + 1);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert(hw_monitor_is_authoritative(w->m, world_device(w, "a")));
	ck_assert_uint_eq(hw_monitor_epoch(w->m, world_device(w, "a")), 7);
	role(HW_ROLE_WATCHES);
	ck_assert(!hw_monitor_owns(w->m, world_device(w, "a")));
	ck_assert_uint_eq(hw_monitor_epoch(w->m, world_device(w, "a")), 0);
}
END_TEST

/* Another machine's clock may be an hour ahead. */
START_TEST(a_device_that_the_stream_calls_online_has_a_timeout_to_be_heard)
{
	struct hw_event e = entry("a", HW_STATE_ONLINE, 5);
	world_pass(w, 3 * TIMEOUT);
	e.time_ms -= 3600000;
	e.last_seen_ms -= 3600000;
	ck_assert_int_eq(hw_monitor_stream(w->m, w->now, &e), 0);
	role(HW_ROLE_AUTHORITATIVE);
	world_pass(w, TIMEOUT - S);
	ck_assert_uint_eq(transitions(HW_STATE_OFFLINE), 0);
	world_pass(w, 2 * S);
	ck_assert_uint_eq(transitions(HW_STATE_OFFLINE), 1);
}
END_TEST

/* --- taking over --------------------------------------------------------------- */

START_TEST(what_was_silent_is_judged_by_new_barriers)
{
	stream("a", HW_STATE_ONLINE, 5);
	world_pass(w, 2 * TIMEOUT);
	ck_assert(world_device(w, "a")->flags & HW_FLAG_SILENT);
	w->swallow = true;
	role(HW_ROLE_AUTHORITATIVE);
	world_pass(w, S / 2);
	ck_assert_uint_eq(transitions(HW_STATE_OFFLINE), 0);
	w->swallow = false;
	world_pass(w, 10 * S);
	ck_assert_uint_eq(transitions(HW_STATE_OFFLINE), 0); /* that was a blindness */
	world_pass(w, TIMEOUT);
	ck_assert_uint_eq(transitions(HW_STATE_OFFLINE), 1);
	ck_assert_int_eq(world_last(w, NULL)->reason, HW_REASON_TIMEOUT);
	ck_assert_uint_gt(world_last(w, NULL)->seq, 5);
}
END_TEST

START_TEST(what_was_silent_is_offline_at_once)
{
	int64_t at, from;
	stream("a", HW_STATE_ONLINE, 5);
	world_pass(w, 2 * TIMEOUT);
	from = w->now.mono.ns;
	role(HW_ROLE_AUTHORITATIVE);
	world_pass(w, S);
	ck_assert_uint_eq(transitions(HW_STATE_OFFLINE), 1);
	world_last(w, &at);
	ck_assert_int_lt(at - from, S / 2);
}
END_TEST

START_TEST(what_was_silent_and_is_heard_lives)
{
	stream("a", HW_STATE_ONLINE, 5);
	world_pass(w, 2 * TIMEOUT);
	world_beat(w, "a", "");
	ck_assert(!(world_device(w, "a")->flags & HW_FLAG_SILENT));
	role(HW_ROLE_AUTHORITATIVE);
	world_pass(w, TIMEOUT - S);
	ck_assert_uint_eq(outs_of_devices(), 0);
	world_pass(w, 2 * S);
	ck_assert_uint_eq(transitions(HW_STATE_OFFLINE), 1);
}
END_TEST

START_TEST(a_goodbye_that_nobody_judged_is)
{
	stream("a", HW_STATE_ONLINE, 5);
	world_beat(w, "a", "{\"online\":false}");
	world_pass(w, S);
	ck_assert(world_device(w, "a")->flags & HW_FLAG_SILENT);
	role(HW_ROLE_AUTHORITATIVE);
	world_pass(w, S);
	ck_assert_uint_eq(transitions(HW_STATE_OFFLINE), 1);
	ck_assert_int_eq(world_last(w, NULL)->reason, HW_REASON_WILL);
}
END_TEST

/* As every goodbye that blindness touched. */
START_TEST(a_goodbye_before_a_blindness_counts_for_nothing)
{
	stream("a", HW_STATE_ONLINE, 5);
	world_beat(w, "a", "{\"online\":false}");
	world_pass(w, S);
	hw_monitor_link(w->m, w->now, 0, false);
	world_pass(w, S);
	hw_monitor_link(w->m, w->now, 0, true);
	role(HW_ROLE_AUTHORITATIVE);
	world_pass(w, 2 * S);
	ck_assert_uint_eq(transitions(HW_STATE_OFFLINE), 0);
	ck_assert_uint_eq(world_count(w, HW_OUT_STATUS, 0), 1);
	world_pass(w, TIMEOUT);
	ck_assert_uint_eq(transitions(HW_STATE_OFFLINE), 1);
}
END_TEST

/* The second one is void, since it is read in a blindness; the first one with it. */
START_TEST(a_goodbye_in_a_blindness_leaves_a_silent_device_to_its_deadline)
{
	stream("a", HW_STATE_ONLINE, 5);
	world_beat(w, "a", "{\"online\":false}");
	world_pass(w, S);
	hw_monitor_link(w->m, w->now, 0, false);
	world_beat(w, "a", "{\"online\":false}");
	ck_assert(!(world_device(w, "a")->flags & (HW_FLAG_SILENT | HW_FLAG_GOODBYE)));
	hw_monitor_link(w->m, w->now, 0, true);
	world_pass(w, 2 * TIMEOUT);
	ck_assert(world_device(w, "a")->flags & HW_FLAG_SILENT);
}
END_TEST

START_TEST(what_was_heard_is_online)
{
	stream("a", HW_STATE_OFFLINE, 5);
	role(HW_ROLE_OWNS);
	world_beat(w, "a", "");
	int64_t heard_ms = w->now.wall_ms;
	world_pass(w, S);
	ck_assert_uint_eq(outs_of_devices(), 0);
	ck_assert_int_eq(hw_device_last_seen_ms(world_device(w, "a"), w->now), heard_ms);
	role(HW_ROLE_AUTHORITATIVE);
	ck_assert_uint_eq(transitions(HW_STATE_ONLINE), 1);
	ck_assert_int_eq(world_last(w, NULL)->last_seen_ms, heard_ms);
	ck_assert_uint_gt(world_last(w, NULL)->seq, 5);
}
END_TEST

/* It waited behind a cut that has healed: the first barrier that comes back is from before it, too. */
START_TEST(what_is_heard_late_may_be_from_before_it_was_called_offline)
{
	world_beat(w, "a", "");
	world_pass(w, S);
	w->rtt_ns = TIMEOUT;
	uint64_t sent = w->barriers;
	world_pass(w, TIMEOUT - S);
	ck_assert_uint_gt(w->barriers, sent);
	stream("a", HW_STATE_OFFLINE, 5);
	world_pass(w, 2 * S); /* the first of those is back */
	ck_assert(!hw_monitor_blind(w->m)->active || w->n_out);
	world_beat(w, "a", "");
	ck_assert_int_eq(hw_device_last_seen_ms(world_device(w, "a"), w->now), w->now.wall_ms);
	role(HW_ROLE_AUTHORITATIVE);
	ck_assert_uint_eq(transitions(HW_STATE_ONLINE), 0);
	world_beat(w, "a", "");
	ck_assert_uint_eq(transitions(HW_STATE_ONLINE), 1);
}
END_TEST

/* A lost publisher, whose barriers are no longer awaited, does not make it newer either. */
START_TEST(what_is_heard_late_is_not_newer_for_a_lost_publisher)
{
	world_pass(w, S);
	w->swallow = true;
	world_pass(w, TIMEOUT);
	stream("a", HW_STATE_OFFLINE, 5);
	hw_monitor_publisher(w->m, w->now, false);
	world_drain(w);
	world_beat(w, "a", "");
	role(HW_ROLE_AUTHORITATIVE);
	ck_assert_uint_eq(transitions(HW_STATE_ONLINE), 0);
}
END_TEST

START_TEST(what_was_heard_and_went_again_stays_as_it_was)
{
	stream("a", HW_STATE_OFFLINE, 5);
	world_beat(w, "a", "");
	int64_t heard_ms = w->now.wall_ms;
	world_pass(w, TIMEOUT + S);
	role(HW_ROLE_AUTHORITATIVE);
	world_pass(w, S);
	ck_assert_uint_eq(outs_of_devices(), 0);
	ck_assert_int_eq(hw_device_last_seen_ms(world_device(w, "a"), w->now), heard_ms);
	world_beat(w, "a", "");
	ck_assert_uint_eq(transitions(HW_STATE_ONLINE), 1);
}
END_TEST

START_TEST(what_was_heard_and_said_goodbye_stays_as_it_was)
{
	stream("a", HW_STATE_OFFLINE, 5);
	world_beat(w, "a", "");
	world_beat(w, "a", "{\"online\":false}");
	role(HW_ROLE_AUTHORITATIVE);
	world_pass(w, S);
	ck_assert_uint_eq(transitions(HW_STATE_ONLINE), 0);
	ck_assert_uint_eq(world_count(w, HW_OUT_STATUS, 0), 1); /* it stands where the owner's was */
}
END_TEST

START_TEST(what_is_new_is_online)
{
	world_beat(w, "a", "");
	role(HW_ROLE_AUTHORITATIVE);
	ck_assert_uint_eq(transitions(HW_STATE_ONLINE), 1);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
}
END_TEST

START_TEST(what_was_new_and_is_silent_by_now_is_dropped)
{
	world_beat(w, "a", "");
	world_pass(w, TIMEOUT + S);
	role(HW_ROLE_AUTHORITATIVE);
	ck_assert_uint_eq(outs_of_devices(), 0);
	ck_assert_ptr_null(world_device(w, "a"));
	ck_assert_uint_eq(hw_monitor_stats(w->m)->count[HW_STATE_PROVISIONAL], 0);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->count[HW_STATE_FORGOTTEN], 0);
}
END_TEST

START_TEST(what_agrees_makes_no_transition)
{
	stream("a", HW_STATE_ONLINE, 5);
	world_beat(w, "a", "");
	role(HW_ROLE_AUTHORITATIVE);
	world_pass(w, S);
	ck_assert_uint_eq(outs_of_devices(), 0);
}
END_TEST

START_TEST(forgetting_is_taken_over)
{
	stream("a", HW_STATE_OFFLINE, 5);
	world_pass(w, 40 * 86400 * S);
	role(HW_ROLE_AUTHORITATIVE);
	world_pass(w, S);
	ck_assert_uint_eq(transitions(HW_STATE_FORGOTTEN), 1);
}
END_TEST

/* A sweep over other partitions is under way; both end. */
START_TEST(partitions_that_come_during_a_sweep_are_taken_over_too)
{
	char id[16];
	for (int i = 0; i < 2000; i++) {
		snprintf(id, sizeof(id), "d%d", i);
		stream(id, HW_STATE_OFFLINE, 5);
		world_beat(w, id, "");
	}
	for (unsigned k = 0; k < HW_PARTITIONS; k++) {
		struct hw_out out;
		unsigned budget = 3;
		hw_monitor_role(w->m, k, HW_ROLE_AUTHORITATIVE, 7);
		while (hw_monitor_next(w->m, w->now, &budget, &out))
			world_take(w, &out);
	}
	world_drain(w);
	ck_assert_uint_eq(transitions(HW_STATE_ONLINE), 2000);
	struct hw_mono due;
	world_pass(w, S);
	ck_assert(!hw_monitor_due(w->m, w->now, &due) || due.ns > w->now.mono.ns);
}
END_TEST

/* A message that is read while nothing can be proven does not count. */
START_TEST(a_goodbye_in_a_blindness_does_not_void_what_was_heard)
{
	stream("a", HW_STATE_OFFLINE, 5);
	world_beat(w, "a", "");
	hw_monitor_link(w->m, w->now, 0, false);
	world_drain(w);
	world_beat(w, "a", "{\"online\":false}");
	hw_monitor_link(w->m, w->now, 0, true);
	world_pass(w, S);
	role(HW_ROLE_AUTHORITATIVE);
	ck_assert_uint_eq(transitions(HW_STATE_ONLINE), 1);
}
END_TEST

/* It was to be forgotten at the same moment, and is due before its turn. */
START_TEST(what_lives_is_not_forgotten)
{
	unsigned budget = 4;
	struct hw_out out;
	stream("b", HW_STATE_OFFLINE, 5);
	stream("a", HW_STATE_OFFLINE, 5);
	world_pass(w, 30 * 86400 * S - S);
	world_beat(w, "a", "");
	hw_monitor_role(w->m, p, HW_ROLE_AUTHORITATIVE, 7);
	w->now.mono.ns += 2 * S;
	w->now.wall_ms += 2000;
	while (hw_monitor_next(w->m, w->now, &budget, &out))
		world_take(w, &out);
	world_pass(w, S);
	ck_assert_uint_eq(transitions(HW_STATE_FORGOTTEN), 0);
	ck_assert_uint_eq(transitions(HW_STATE_ONLINE), 1);
}
END_TEST

/* --- giving up ----------------------------------------------------------------- */

START_TEST(a_suspect_of_a_partition_that_was_given_up_is_only_noted)
{
	role(HW_ROLE_AUTHORITATIVE);
	world_beat(w, "a", "");
	world_beat(w, "a", "{\"online\":false}");
	role(HW_ROLE_OWNS);
	world_pass(w, S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	role(HW_ROLE_AUTHORITATIVE);
	world_pass(w, S);
	ck_assert_uint_eq(transitions(HW_STATE_OFFLINE), 1);
}
END_TEST

START_TEST(a_word_that_was_refused_gives_way_to_the_stream)
{
	role(HW_ROLE_AUTHORITATIVE);
	world_beat(w, "a", "");
	role(HW_ROLE_WATCHES);
	stream("a", HW_STATE_OFFLINE, 5);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	hw_monitor_withdraw(w->m, hw_registry_ref(hw_monitor_registry(w->m), 0));
	stream("a", HW_STATE_OFFLINE, 5);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
}
END_TEST

/* Its transition was withdrawn, and the store does not know the device: it is ours again, and has to be written. */
START_TEST(a_word_that_was_refused_is_written_once_it_is_ours)
{
	role(HW_ROLE_AUTHORITATIVE);
	world_beat(w, "a", "");
	role(HW_ROLE_WATCHES);
	hw_monitor_withdraw(w->m, hw_registry_ref(hw_monitor_registry(w->m), 0));
	ck_assert_uint_eq(world_count(w, HW_OUT_UNWRITTEN, 0), 0);
	role(HW_ROLE_OWNS);
	ck_assert_uint_eq(world_count(w, HW_OUT_UNWRITTEN, 0), 0);
	role(HW_ROLE_AUTHORITATIVE);
	ck_assert_uint_eq(world_count(w, HW_OUT_UNWRITTEN, 0), 1);
	ck_assert(hw_monitor_adopt_seq(w->m, hw_registry_ref(hw_monitor_registry(w->m), 0), 0));
	role(HW_ROLE_OWNS);
	role(HW_ROLE_AUTHORITATIVE);
	ck_assert_uint_eq(world_count(w, HW_OUT_UNWRITTEN, 0), 1);
}
END_TEST

/* While a write about a device is pending, its record is kept, although nothing else is reported about it. */
START_TEST(what_is_owed_of_keeps_its_record)
{
	const struct hw_registry *r = hw_monitor_registry(w->m);
	world_beat(w, "a", "");
	hw_device_note(hw_registry_at(r, 0), HW_NOTE(1), true);
	world_pass(w, TIMEOUT + S);
	role(HW_ROLE_AUTHORITATIVE);
	ck_assert_uint_eq(hw_registry_count(r), 1);
	ck_assert_int_eq(hw_device_state(hw_registry_at(r, 0)), HW_STATE_FORGOTTEN);
	hw_monitor_reap(w->m, hw_registry_ref(r, 0));
	ck_assert_uint_eq(hw_registry_count(r), 0);
}
END_TEST

/* A sweep is spent from the budget. */
START_TEST(what_is_not_taken_over_yet_is_known)
{
	struct hw_partitions left;
	unsigned budget = 1;
	struct hw_out out;
	stream("a", HW_STATE_ONLINE, 5);
	stream("b", HW_STATE_ONLINE, 5);
	hw_monitor_role(w->m, p, HW_ROLE_AUTHORITATIVE, 7);
	while (hw_monitor_next(w->m, w->now, &budget, &out))
		;
	left = hw_monitor_takes_over(w->m);
	ck_assert(hw_partitions_has(&left, p) && hw_partitions_count(&left) == 1);
	world_drain(w);
	left = hw_monitor_takes_over(w->m);
	ck_assert(!hw_partitions_any(&left));
}
END_TEST

START_TEST(the_store_is_read_again)
{
	struct hw_stored s = {.id = "a", .id_len = 1, .state = HW_STATE_OFFLINE, .since_ms = 1, .seq = 6};
	stream("a", HW_STATE_ONLINE, 5);
	ck_assert_int_eq(hw_monitor_load(w->m, w->now, &s), 0);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	s.seq = 4;
	s.state = HW_STATE_ONLINE;
	ck_assert_int_eq(hw_monitor_load(w->m, w->now, &s), 0);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	world_drain(w);
	ck_assert_uint_eq(outs_of_devices(), 0);
}
END_TEST

/* It is ours, and the store has another state under a greater seq: what we say instead is owed as any transition is,
 * for if we lose it before that is written nobody has it. */
START_TEST(what_surpasses_the_store_is_owed_until_it_is_written)
{
	struct hw_stored s = {.id = "a", .id_len = 1, .state = HW_STATE_OFFLINE, .since_ms = 1, .seq = 6};
	struct hw_ref ref = {0};
	stream("a", HW_STATE_ONLINE, 5);
	role(HW_ROLE_AUTHORITATIVE);
	world_beat(w, "a", "");
	ck_assert_int_eq(hw_monitor_load(w->m, w->now, &s), 0);
	world_drain(w);
	ref = hw_registry_ref(hw_monitor_registry(w->m), 0);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert_uint_eq(world_count(w, HW_OUT_UNWRITTEN, 0), 1);
	ck_assert(hw_monitor_adopt_seq(w->m, ref, world_device(w, "a")->seq));
	ck_assert_uint_eq(world_device(w, "a")->seq, 7);
	hw_monitor_load(w->m, w->now, &s); /* which is older by now */
	world_drain(w);
	ck_assert_uint_eq(world_count(w, HW_OUT_UNWRITTEN, 0), 1);
}
END_TEST

/* --- a newer owner --------------------------------------------------------------- */

START_TEST(an_entry_of_a_newer_owner_says_that_the_partition_is_lost)
{
	role(_i ? HW_ROLE_AUTHORITATIVE : HW_ROLE_OWNS);
	stream("b", HW_STATE_ONLINE, 5);
	if (_i)
		world_beat(w, "a", "");
	else
		stream("a", HW_STATE_ONLINE, 5);
	struct hw_event e = entry("a", HW_STATE_FORGOTTEN, world_device(w, "a")->seq + 1);
	e.epoch = 8;
	ck_assert_int_eq(hw_monitor_stream(w->m, w->now, &e), -ESTALE);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	role(HW_ROLE_WATCHES);
	ck_assert_int_eq(hw_monitor_stream(w->m, w->now, &e), 0);
	ck_assert(world_is(w, "a", HW_STATE_FORGOTTEN));
	e = entry("b", HW_STATE_OFFLINE, 6); /* nobody's partition here */
	e.epoch = 9;
	ck_assert_int_eq(hw_monitor_stream(w->m, w->now, &e), 0);
}
END_TEST

START_TEST(an_entry_of_an_older_owner_is_passed_over)
{
	role(HW_ROLE_AUTHORITATIVE);
	world_beat(w, "a", "");
	struct hw_event e = entry("a", HW_STATE_OFFLINE, world_device(w, "a")->seq + 1);
	for (e.epoch = 6; e.epoch <= 7; e.epoch++)
		ck_assert_int_eq(hw_monitor_stream(w->m, w->now, &e), 0);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("gate");
	TCase *watch = tcase_create("watching"), *over = tcase_create("taking over"), *up = tcase_create("giving up");
	tcase_add_checked_fixture(watch, setup, teardown);
	tcase_add_checked_fixture(over, setup, teardown);
	tcase_add_checked_fixture(up, setup, teardown);
	tcase_add_test(watch, what_another_node_decides_does_not_come_out);
	tcase_add_test(watch, refreshes_while_blind_are_the_owners);
	tcase_add_test(watch, the_stream_sets_the_state);
	tcase_add_test(watch, who_decides_does_not_follow);
	tcase_add_test(watch, a_device_that_the_stream_calls_online_has_a_timeout_to_be_heard);
	tcase_add_test(over, what_was_silent_is_judged_by_new_barriers);
	tcase_add_test(over, what_was_silent_is_offline_at_once);
	tcase_add_test(over, what_was_silent_and_is_heard_lives);
	tcase_add_test(over, a_goodbye_that_nobody_judged_is);
	tcase_add_test(over, a_goodbye_before_a_blindness_counts_for_nothing);
	tcase_add_test(over, a_goodbye_in_a_blindness_leaves_a_silent_device_to_its_deadline);
	tcase_add_test(over, what_was_heard_is_online);
	tcase_add_test(over, what_is_heard_late_may_be_from_before_it_was_called_offline);
	tcase_add_test(over, what_is_heard_late_is_not_newer_for_a_lost_publisher);
	tcase_add_test(over, what_was_heard_and_went_again_stays_as_it_was);
	tcase_add_test(over, what_was_heard_and_said_goodbye_stays_as_it_was);
	tcase_add_test(over, what_is_new_is_online);
	tcase_add_test(over, what_was_new_and_is_silent_by_now_is_dropped);
	tcase_add_test(over, what_agrees_makes_no_transition);
	tcase_add_test(over, forgetting_is_taken_over);
	tcase_add_test(over, partitions_that_come_during_a_sweep_are_taken_over_too);
	tcase_add_test(up, a_suspect_of_a_partition_that_was_given_up_is_only_noted);
	tcase_add_test(up, a_word_that_was_refused_gives_way_to_the_stream);
	tcase_add_test(up, a_word_that_was_refused_is_written_once_it_is_ours);
	tcase_add_test(over, what_is_owed_of_keeps_its_record);
	tcase_add_test(over, what_is_not_taken_over_yet_is_known);
	tcase_add_test(up, the_store_is_read_again);
	tcase_add_test(up, what_surpasses_the_store_is_owed_until_it_is_written);
	tcase_add_test(over, a_goodbye_in_a_blindness_does_not_void_what_was_heard);
	tcase_add_test(over, what_lives_is_not_forgotten);
	tcase_add_loop_test(up, an_entry_of_a_newer_owner_says_that_the_partition_is_lost, 0, 2);
	tcase_add_test(up, an_entry_of_an_older_owner_is_passed_over);
	suite_add_tcase(suite, watch);
	suite_add_tcase(suite, over);
	suite_add_tcase(suite, up);
	return suite_run(suite);
}

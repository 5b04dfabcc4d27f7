/* SPDX-License-Identifier: MIT */
/* One of several nodes: what it takes from the store of devices that another one decides about, and reading all of it
 * again. */
#include "../suite.h"
#include "gate_world.h"

/* --- what the store says beside ------------------------------------------------- */

static struct hw_stored stored(const char *id, enum hw_state state, uint64_t seq)
{
	return (struct hw_stored){.id = id,
	                          .id_len = strlen(id),
	                          .state = state,
	                          .since_ms = w->now.wall_ms,
	                          .last_seen_ms = w->now.wall_ms,
	                          .source = HW_SOURCE_MQTT,
	                          .seq = seq};
}

static void load(struct hw_stored s)
{
	ck_assert_int_eq(hw_monitor_load(w->m, w->now, &s), 0);
	world_drain(w);
}

/* Only its owner has heard it, and the stream does not tell. The hash is as new as the entry, or older. */
START_TEST(its_own_timeout_counts)
{
	struct hw_stored s = stored("a", HW_STATE_ONLINE, 5);
	s.own_timeout_ms = 3600000;
	stream("a", HW_STATE_ONLINE, _i ? 6 : 5);
	int64_t from = w->now.mono.ns, at;
	world_pass(w, 2 * TIMEOUT); /* does not matter: a device marked as silent is found to live, too */
	ck_assert(world_device(w, "a")->flags & HW_FLAG_SILENT);
	load(s);
	ck_assert(!(world_device(w, "a")->flags & HW_FLAG_SILENT));
	ck_assert_uint_eq(world_device(w, "a")->seq, _i ? 6 : 5);
	world_pass(w, 2 * TIMEOUT);
	role(HW_ROLE_AUTHORITATIVE);
	world_pass(w, 7200 * S);
	ck_assert_uint_eq(transitions(HW_STATE_OFFLINE), 1);
	world_last(w, &at);
	ck_assert_int_ge(at - from, 3600 * S);
}
END_TEST

#define DAY_MS (INT64_C(86400) * 1000)

static int64_t gone_days(void)
{
	return (hw_monitor_gone_ms(w->m, w->now, world_device(w, "a")) + DAY_MS / 2) / DAY_MS;
}

/* The owner's clock is years behind, or years ahead. */
START_TEST(another_nodes_clock_forgets_no_device)
{
	struct hw_event e = entry("a", HW_STATE_OFFLINE, 5);
	e.time_ms += _i ? 4000 * DAY_MS : -4000 * DAY_MS;
	ck_assert_int_eq(hw_monitor_stream(w->m, w->now, &e), 0);
	role(HW_ROLE_AUTHORITATIVE);
	world_pass(w, 29 * 86400 * S);
	ck_assert_uint_eq(transitions(HW_STATE_FORGOTTEN), 0);
	world_pass(w, 2 * 86400 * S);
	ck_assert_uint_eq(transitions(HW_STATE_FORGOTTEN), 1);
}
END_TEST

/* What this node has seen pass, or what the store knows of others: the longer of both, of the same time offline. */
START_TEST(reading_again_keeps_how_long_a_device_is_gone)
{
	struct hw_stored s = stored("a", HW_STATE_OFFLINE, 5);
	stream("a", HW_STATE_OFFLINE, 5);
	world_pass(w, 10 * 86400 * S);
	load(s);
	ck_assert_int_eq(gone_days(), 10);
	s.gone_ms = 20 * DAY_MS;
	w->now.wall_ms += 15 * DAY_MS; /* this machine's wall clock was behind */
	load(s);
	ck_assert_int_eq(gone_days(), 20);
	s.seq = 4; /* of an earlier time offline */
	s.since_ms -= 25 * DAY_MS;
	s.gone_ms = 25 * DAY_MS;
	load(s);
	ck_assert_int_eq(gone_days(), 20);
	s.seq = 9; /* it was online meanwhile, and its stream was missed */
	s.since_ms = w->now.wall_ms - 2 * DAY_MS;
	s.gone_ms = 1 * DAY_MS;
	load(s);
	ck_assert_int_eq(gone_days(), 1);
	struct hw_event e = entry("a", HW_STATE_OFFLINE, 11);
	e.time_ms += 1;
	ck_assert_int_eq(hw_monitor_stream(w->m, w->now, &e), 0);
	ck_assert_int_eq(gone_days(), 0);
}
END_TEST

START_TEST(a_shorter_timeout_of_its_own_counts)
{
	struct hw_stored s = stored("a", HW_STATE_ONLINE, 5);
	s.own_timeout_ms = 5000;
	stream("a", HW_STATE_ONLINE, 5);
	load(s);
	world_pass(w, 6 * S);
	ck_assert(world_device(w, "a")->flags & HW_FLAG_SILENT);
}
END_TEST

/* Which one was said last is not known. */
START_TEST(of_two_timeouts_of_its_own_the_longer_one_counts)
{
	struct hw_stored s = stored("a", HW_STATE_ONLINE, 5);
	stream("a", HW_STATE_ONLINE, 5);
	world_beat(w, "a", "{\"timeout\":60}");
	s.own_timeout_ms = 50000;
	load(s);
	ck_assert_int_eq(hw_monitor_timeout_ms(w->m, world_device(w, "a")), 60000);
	s.own_timeout_ms = 70000;
	load(s);
	ck_assert_int_eq(hw_monitor_timeout_ms(w->m, world_device(w, "a")), 70000);
}
END_TEST

START_TEST(what_else_the_hash_says_counts)
{
	struct hw_stored s = stored("a", HW_STATE_OFFLINE, 5);
	s.once = true;
	s.source = HW_SOURCE_KEY;
	s.report.has = HW_HAS_BATTERY;
	s.report.battery = 7;
	stream("a", HW_STATE_OFFLINE, 5);
	load(s);
	const struct hw_device *d = world_device(w, "a");
	ck_assert_uint_eq(hw_device_source(d), HW_SOURCE_KEY);
	ck_assert(hw_device_report(d).has & HW_HAS_BATTERY);
	world_pass(w, 86400 * S / 2);
	role(HW_ROLE_AUTHORITATIVE);
	world_pass(w, 86400 * S);
	ck_assert_uint_eq(transitions(HW_STATE_FORGOTTEN), 1); /* so early, as it was heard once */
}
END_TEST

START_TEST(what_is_known_by_both_stays_so)
{
	stream("a", HW_STATE_ONLINE, 5);
	struct hw_stored s = stored("a", HW_STATE_ONLINE, 5);
	s.source = HW_SOURCE_KEY;
	load(s);
	world_beat(w, "a", "");
	ck_assert_uint_eq(hw_device_source(world_device(w, "a")), HW_SOURCE_KEY | HW_SOURCE_MQTT);
	load(s);
	ck_assert_uint_eq(hw_device_source(world_device(w, "a")), HW_SOURCE_KEY | HW_SOURCE_MQTT);
}
END_TEST

/* The store was away for so long at the start that what is heard was news; then it was read. What was noted of the
 * device meanwhile must not keep it from being judged. */
START_TEST(what_was_heard_before_a_late_load_is_judged)
{
	struct hw_stored s = stored("a", _i ? HW_STATE_OFFLINE : HW_STATE_ONLINE, 5);
	world_beat(w, "a", "");
	world_beat(w, "a", "");
	ck_assert(world_device(w, "a")->flags & HW_FLAG_HEARD);
	load(s);
	role(HW_ROLE_AUTHORITATIVE);
	ck_assert_uint_eq(transitions(HW_STATE_ONLINE), (unsigned)_i);
	world_pass(w, 4 * TIMEOUT);
	ck_assert_uint_eq(transitions(HW_STATE_OFFLINE), 1);
}
END_TEST

/* --- reading the store again ------------------------------------------------------ */

/* The devices that are gone, each reaped; as a text. */
static const char *gone(void)
{
	static char text[64];
	struct hw_ref ref;
	unsigned budget = 1000;
	text[0] = '\0';
	while (hw_monitor_reread_end(w->m, w->now, &budget, &ref)) {
		struct hw_id id = hw_device_id(hw_registry_get(hw_monitor_registry(w->m), ref));
		strncat(text, id.text, id.len);
		hw_monitor_reap(w->m, ref);
		ck_assert_ptr_null(hw_registry_get(hw_monitor_registry(w->m), ref));
	}
	return text;
}

START_TEST(what_is_not_read_again_is_gone)
{
	static const char *const ids[] = {"b", "c", "d", "e"};
	role(HW_ROLE_AUTHORITATIVE);
	world_beat(w, "a", ""); /* decided here */
	world_beat(w, "n", ""); /* nobody has decided yet */
	for (int k = 0; k < 4; k++)
		stream(ids[k], k % 2 ? HW_STATE_OFFLINE : HW_STATE_ONLINE, 5);
	ck_assert_int_eq(hw_monitor_reread_begin(w->m, false), 0);
	load(stored("b", HW_STATE_ONLINE, 5));
	stream("c", HW_STATE_ONLINE, 6);
	stream("new", HW_STATE_ONLINE, 6);
	ck_assert_str_eq(gone(), "de");
	ck_assert_uint_eq(hw_registry_count(hw_monitor_registry(w->m)), 5);
	ck_assert_uint_eq(outs_of_devices(), 1); /* of "a" */
	ck_assert_uint_eq(hw_monitor_stats(w->m)->count[HW_STATE_FORGOTTEN], 0);
	ck_assert_str_eq(gone(), ""); /* nothing is read again */
}
END_TEST

/* Their records are those of devices that went. */
START_TEST(what_came_meanwhile_is_not_gone)
{
	stream("b", HW_STATE_ONLINE, 5);
	stream("c", HW_STATE_ONLINE, 5);
	ck_assert_int_eq(hw_monitor_reread_begin(w->m, false), 0);
	for (uint32_t i = 0; i < 2; i++) {
		stream(i ? "c" : "b", HW_STATE_FORGOTTEN, 6);
		hw_monitor_reap(w->m, hw_registry_ref(hw_monitor_registry(w->m), i));
	}
	ck_assert_int_eq(hw_monitor_reread_begin(w->m, false), 0); /* once more */
	load(stored("x", HW_STATE_ONLINE, 5));
	stream("y", HW_STATE_ONLINE, 5);
	ck_assert_uint_eq(hw_registry_bound(hw_monitor_registry(w->m)), 2);
	ck_assert_str_eq(gone(), "");
}
END_TEST

/* What was decided here, and is written: the stream says so, though it decides nothing here. */
START_TEST(what_was_decided_here_and_is_written_is_not_gone)
{
	role(HW_ROLE_AUTHORITATIVE);
	world_beat(w, "a", "");
	ck_assert_int_eq(hw_monitor_reread_begin(w->m, false), 0);
	stream("a", HW_STATE_ONLINE, world_device(w, "a")->seq);
	role(HW_ROLE_WATCHES);
	ck_assert_str_eq(gone(), "");
	ck_assert_int_eq(hw_monitor_reread_begin(w->m, false), 0);
	ck_assert_str_eq(gone(), "a"); /* it was refused */
}
END_TEST

/* A master that was lost had a word of which the new one knows nothing: what that says counts, and seq grows from
 * there. */
START_TEST(the_first_word_of_another_store_counts)
{
	stream("a", HW_STATE_ONLINE, 9);
	ck_assert_int_eq(hw_monitor_reread_begin(w->m, true), 0);
	if (_i)
		stream("a", HW_STATE_OFFLINE, 5);
	else
		load(stored("a", HW_STATE_OFFLINE, 5));
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	ck_assert_uint_eq(world_device(w, "a")->seq, 5);
	load(stored("a", HW_STATE_ONLINE, 4));
	stream("a", HW_STATE_ONLINE, 4);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	stream("a", HW_STATE_ONLINE, 6);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
}
END_TEST

START_TEST(an_older_word_of_the_same_store_does_not_count)
{
	stream("a", HW_STATE_ONLINE, 9);
	ck_assert_int_eq(hw_monitor_reread_begin(w->m, false), 0);
	if (_i)
		stream("a", HW_STATE_OFFLINE, 5);
	else
		load(stored("a", HW_STATE_OFFLINE, 5));
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert_uint_eq(world_device(w, "a")->seq, 9);
}
END_TEST

/* Of what is decided here no store knows better. */
START_TEST(another_store_does_not_overrule_the_owner)
{
	role(HW_ROLE_AUTHORITATIVE);
	world_beat(w, "a", "");
	uint64_t seq = world_device(w, "a")->seq;
	if (_i) /* it is being handed over */
		role(HW_ROLE_OWNS);
	ck_assert_int_eq(hw_monitor_reread_begin(w->m, true), 0);
	if (_i < 2)
		load(stored("a", HW_STATE_OFFLINE, seq - 1));
	else
		stream("a", HW_STATE_OFFLINE, seq - 1);
	ck_assert_str_eq(gone(), "");
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert_uint_eq(world_device(w, "a")->seq, seq);
}
END_TEST

/* It may have been heard, and forgotten, a moment ago. */
START_TEST(what_is_read_later_has_a_timeout_from_then_on)
{
	int64_t at;
	world_pass(w, 10 * TIMEOUT);
	load(stored("a", HW_STATE_ONLINE, 5));
	int64_t from = w->now.mono.ns;
	role(HW_ROLE_OWNS);
	role(HW_ROLE_AUTHORITATIVE);
	world_pass(w, 2 * TIMEOUT);
	ck_assert_uint_eq(transitions(HW_STATE_OFFLINE), 1);
	world_last(w, &at);
	ck_assert_int_ge(at - from, TIMEOUT);
}
END_TEST

/* It had taken an older word of another Redis, to which its own has been sent again since. */
START_TEST(an_owner_outdoes_a_newer_word_of_the_stream)
{
	stream("a", HW_STATE_OFFLINE, 5);
	role(HW_ROLE_OWNS);
	role(HW_ROLE_AUTHORITATIVE);
	world_drain(w);
	world_pass(w, S / 10);
	size_t before = world_count(w, HW_OUT_UNWRITTEN, 0);
	stream("a", HW_STATE_ONLINE, _i ? 5 : 6);
	ck_assert_uint_eq(world_count(w, HW_OUT_UNWRITTEN, 0), before + !_i);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	ck_assert_uint_eq(world_device(w, "a")->seq, _i ? 5 : 6); /* it is written with a newer one */
}
END_TEST

/* What it knows alone may be refused before it is written: then it has lost the device, and the next owner's word
 * counts, whatever seq that has begun at. */
START_TEST(what_another_store_lacked_of_its_owner_is_lacked_behind_that)
{
	role(HW_ROLE_AUTHORITATIVE);
	world_beat(w, "a", "");
	uint64_t seq = world_device(w, "a")->seq;
	ck_assert_int_eq(hw_monitor_reread_begin(w->m, true), 0);
	if (_i % 2)
		load(stored("a", HW_STATE_OFFLINE, seq - 9));
	else
		stream("a", HW_STATE_OFFLINE, seq - 9);
	ck_assert_str_eq(gone(), "");
	if (_i / 2) /* it was written in time */
		stream("a", HW_STATE_ONLINE, seq);
	role(HW_ROLE_WATCHES);
	stream("a", HW_STATE_OFFLINE, seq - 5);
	ck_assert(world_is(w, "a", _i / 2 ? HW_STATE_ONLINE : HW_STATE_OFFLINE));
}
END_TEST

/* It owns it and has not decided yet, or does not own it any more. */
START_TEST(another_store_overrules_who_has_not_decided)
{
	if (_i) {
		role(HW_ROLE_AUTHORITATIVE);
		world_beat(w, "a", "");
		role(HW_ROLE_WATCHES);
	} else {
		stream("a", HW_STATE_ONLINE, 9);
	}
	role(HW_ROLE_OWNS);
	ck_assert_int_eq(hw_monitor_reread_begin(w->m, true), 0);
	load(stored("a", HW_STATE_OFFLINE, 5));
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	ck_assert_uint_eq(world_device(w, "a")->seq, 5);
}
END_TEST

/* The store was emptied, and the owner started after that and does not know the device. When it hands the partition
 * over, it owes nothing, and has published nothing of the device. If the store has a record of the device by then, the
 * node that wrote the record has published it. */
START_TEST(what_another_store_lacks_is_owed_by_who_takes_it_over)
{
	static const enum hw_state states[] = {HW_STATE_ONLINE, HW_STATE_OFFLINE};
	stream("a", states[_i % 2], 9);
	ck_assert_int_eq(hw_monitor_reread_begin(w->m, true), 0);
	if (_i / 2 == 1)
		load(stored("a", states[_i % 2], 9));
	ck_assert_str_eq(gone(), "");
	if (_i / 2 == 2)
		stream("a", states[_i % 2], 9);
	ck_assert_uint_eq(outs_of_devices(), 0);
	role(HW_ROLE_OWNS);
	role(HW_ROLE_AUTHORITATIVE);
	world_drain(w);
	world_pass(w, S / 10);
	ck_assert_uint_eq(world_count(w, HW_OUT_STATUS, 0), _i / 2 == 0);
	ck_assert_uint_eq(world_count(w, HW_OUT_REFRESH, 0), _i / 2 == 0);
	ck_assert(world_is(w, "a", states[_i % 2]));
}
END_TEST

/* A store that was emptied is read by the node that decides. Redis refuses the node's rewrite, as another node owns the
 * partition by then, and that node does not know the device. */
START_TEST(what_its_owner_could_not_write_is_owed_once_it_is_the_owner_again)
{
	role(HW_ROLE_AUTHORITATIVE);
	world_beat(w, "a", "");
	uint64_t seq = world_device(w, "a")->seq;
	ck_assert_int_eq(hw_monitor_reread_begin(w->m, true), 0);
	ck_assert_str_eq(gone(), "");
	if (_i) /* the next reading finds the device: Redis has taken the write */
		load(stored("a", HW_STATE_ONLINE, seq));
	role(HW_ROLE_WATCHES);
	unsigned statuses = (unsigned)world_count(w, HW_OUT_STATUS, 0);
	unsigned refreshes = (unsigned)world_count(w, HW_OUT_REFRESH, 0);
	role(HW_ROLE_OWNS);
	role(HW_ROLE_AUTHORITATIVE);
	world_drain(w);
	world_pass(w, S / 10);
	ck_assert_uint_eq(world_count(w, HW_OUT_STATUS, 0) - statuses, _i == 0);
	ck_assert_uint_eq(world_count(w, HW_OUT_REFRESH, 0) - refreshes, _i == 0);
}
END_TEST

/* Its last word was lost with the store before, and the broker has it still. */
START_TEST(what_another_store_has_in_another_state_is_owed_by_who_takes_it_over)
{
	stream("a", HW_STATE_OFFLINE, 9);
	ck_assert_int_eq(hw_monitor_reread_begin(w->m, true), 0);
	if (_i % 2)
		load(stored("a", HW_STATE_ONLINE, 5));
	else
		stream("a", HW_STATE_ONLINE, 5);
	ck_assert_str_eq(gone(), "");
	if (_i / 2) /* and its owner has published a transition of it again */
		stream("a", HW_STATE_OFFLINE, 6);
	role(HW_ROLE_OWNS);
	role(HW_ROLE_AUTHORITATIVE);
	world_drain(w);
	world_pass(w, S / 10);
	ck_assert_uint_eq(world_count(w, HW_OUT_STATUS, 0), _i / 2 == 0);
	ck_assert(world_is(w, "a", _i / 2 ? HW_STATE_OFFLINE : HW_STATE_ONLINE));
}
END_TEST

/* A record that the store lacked at the end of one reading comes in the next one, from the stream or in its hash: the
 * node that wrote it has published it. If the next reading is of yet another store, its hash may be as old as what was
 * noted. */
START_TEST(what_was_lacked_and_comes_in_the_next_reading_is_not_owed)
{
	bool other = _i / 2;
	stream("a", HW_STATE_ONLINE, 9);
	ck_assert_int_eq(hw_monitor_reread_begin(w->m, true), 0);
	ck_assert_str_eq(gone(), "");
	ck_assert(world_device(w, "a")->flags & HW_FLAG_TOUCHED);
	ck_assert_int_eq(hw_monitor_reread_begin(w->m, other), 0);
	if (_i % 2)
		load(stored("a", HW_STATE_ONLINE, 9));
	else
		stream("a", HW_STATE_ONLINE, 9);
	ck_assert_str_eq(gone(), "");
	role(HW_ROLE_OWNS);
	role(HW_ROLE_AUTHORITATIVE);
	world_pass(w, S / 10);
	ck_assert_uint_eq(world_count(w, HW_OUT_STATUS, 0), other);
}
END_TEST

/* A second reading comes before its owner has written it. What the store has had a word of, it can forget. */
START_TEST(what_another_store_lacks_is_not_gone_at_the_next_reading_either)
{
	stream("a", HW_STATE_OFFLINE, 9);
	ck_assert_int_eq(hw_monitor_reread_begin(w->m, true), 0);
	ck_assert_str_eq(gone(), "");
	for (int k = 0; k < 2; k++) {
		ck_assert_int_eq(hw_monitor_reread_begin(w->m, false), 0);
		ck_assert_str_eq(gone(), "");
	}
	stream("a", HW_STATE_ONLINE, 7); /* still the first */
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert_int_eq(hw_monitor_reread_begin(w->m, false), 0);
	ck_assert_str_eq(gone(), "a");
}
END_TEST

START_TEST(the_end_of_reading_again_is_bounded)
{
	struct hw_ref ref;
	for (int i = 0; i < 100; i++) {
		char id[16];
		snprintf(id, sizeof(id), "d%d", i);
		stream(id, HW_STATE_ONLINE, 5);
	}
	ck_assert_int_eq(hw_monitor_reread_begin(w->m, false), 0);
	for (int i = 0; i < 99; i++) {
		char id[16];
		snprintf(id, sizeof(id), "d%d", i);
		load(stored(id, HW_STATE_ONLINE, 5));
	}
	for (int calls = 0; calls < 9; calls++) {
		unsigned budget = 10;
		ck_assert(!hw_monitor_reread_end(w->m, w->now, &budget, &ref));
		ck_assert_uint_eq(budget, 0);
	}
	unsigned budget = 10;
	ck_assert(hw_monitor_reread_end(w->m, w->now, &budget, &ref));
	ck_assert_uint_eq(budget, 0);
	ck_assert(world_is(w, "d99", HW_STATE_FORGOTTEN));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("reread");
	TCase *beside = tcase_create("hashes"), *again = tcase_create("again");
	tcase_add_checked_fixture(beside, setup, teardown);
	tcase_add_checked_fixture(again, setup, teardown);
	tcase_add_loop_test(beside, its_own_timeout_counts, 0, 2);
	tcase_add_loop_test(beside, another_nodes_clock_forgets_no_device, 0, 2);
	tcase_add_test(beside, reading_again_keeps_how_long_a_device_is_gone);
	tcase_add_test(beside, a_shorter_timeout_of_its_own_counts);
	tcase_add_test(beside, of_two_timeouts_of_its_own_the_longer_one_counts);
	tcase_add_test(beside, what_else_the_hash_says_counts);
	tcase_add_test(beside, what_is_known_by_both_stays_so);
	tcase_add_loop_test(beside, what_was_heard_before_a_late_load_is_judged, 0, 2);
	tcase_add_test(again, what_is_not_read_again_is_gone);
	tcase_add_test(again, what_came_meanwhile_is_not_gone);
	tcase_add_test(again, what_was_decided_here_and_is_written_is_not_gone);
	tcase_add_loop_test(again, the_first_word_of_another_store_counts, 0, 2);
	tcase_add_loop_test(again, an_older_word_of_the_same_store_does_not_count, 0, 2);
	tcase_add_loop_test(again, another_store_does_not_overrule_the_owner, 0, 3);
	tcase_add_loop_test(again, another_store_overrules_who_has_not_decided, 0, 2);
	tcase_add_test(again, what_is_read_later_has_a_timeout_from_then_on);
	tcase_add_loop_test(again, an_owner_outdoes_a_newer_word_of_the_stream, 0, 2);
	tcase_add_loop_test(again, what_another_store_lacked_of_its_owner_is_lacked_behind_that, 0, 4);
	tcase_add_loop_test(again, what_another_store_has_in_another_state_is_owed_by_who_takes_it_over, 0, 4);
	tcase_add_loop_test(again, what_another_store_lacks_is_owed_by_who_takes_it_over, 0, 6);
	tcase_add_loop_test(again, what_its_owner_could_not_write_is_owed_once_it_is_the_owner_again, 0, 2);
	tcase_add_loop_test(again, what_was_lacked_and_comes_in_the_next_reading_is_not_owed, 0, 4);
	tcase_add_test(again, what_another_store_lacks_is_not_gone_at_the_next_reading_either);
	tcase_add_test(again, the_end_of_reading_again_is_bounded);
	suite_add_tcase(suite, beside);
	suite_add_tcase(suite, again);
	return suite_run(suite);
}

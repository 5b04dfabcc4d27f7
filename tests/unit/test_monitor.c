/* SPDX-License-Identifier: MIT */
/* The state machine, rule by rule, in virtual time. */
#include "world.h"

static struct world *w;

static void setup(void)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec g = world_group("default", 30000);
	w = world_new(&conf, &g, 1);
	world_connect(w);
}

static void teardown(void)
{
	world_free(w);
}

#define TICK (S / 31 + 1)

START_TEST(test_silence_takes_offline_in_time)
{
	world_pass(w, S);
	world_beat(w, "a", "");
	int64_t beat = w->now.mono.ns, at;
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert_int_eq(world_last(w, NULL)->reason, HW_REASON_HEARTBEAT);
	world_until(w, beat + 30 * S - 1);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	world_pass(w, S);
	const struct hw_transition *t = world_last(w, &at);
	ck_assert_int_eq(t->state, HW_STATE_OFFLINE);
	ck_assert_int_eq(t->reason, HW_REASON_TIMEOUT);
	ck_assert_int_ge(at, beat + 30 * S);
	ck_assert_int_le(at, beat + 30 * S + TICK + 2 * w->rtt_ns);
	ck_assert_int_eq(t->delay_ns, at - beat - 30 * S);
	ck_assert_int_eq(t->last_seen_ms, 1700000000000 + 1000);
	ck_assert_uint_eq(world_count(w, HW_OUT_TRANSITION, HW_STATE_OFFLINE), 1);
	world_beat(w, "a", "");
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert_uint_gt(world_last(w, NULL)->seq, t->seq);
}
END_TEST

START_TEST(test_beats_keep_online_and_relink_once_a_timeout)
{
	for (int k = 0; k < 600; k++) {
		world_beat(w, "a", "");
		world_pass(w, S);
	}
	ck_assert_uint_eq(world_count(w, HW_OUT_TRANSITION, HW_STATE_OFFLINE), 0);
	/* 600 s at one a timeout less the interval. */
	ck_assert_uint_le(hw_monitor_stats(w->m)->relinks, 600 / 29 + 1);
	ck_assert_uint_eq(world_count(w, HW_OUT_REFRESH, 0), hw_monitor_stats(w->m)->relinks);
}
END_TEST

START_TEST(test_nobody_is_judged_without_two_barriers)
{
	world_beat(w, "a", "");
	world_pass(w, 29 * S);
	w->swallow = true;
	world_say(w, "nodes/b/heartbeat", "", false);
	for (int k = 0; k < 40; k++) { /* messages keep arriving: no standstill, and no judgement either */
		world_pass(w, 100 * MS);
		world_beat(w, "b", "");
	}
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert(!hw_blind_now(hw_monitor_blind(w->m)));
	uint64_t sent = hw_monitor_stats(w->m)->barriers_sent;
	hw_monitor_barrier(w->m, w->now, 0, hw_monitor_stats(w->m)->barriers_back + 1);
	world_drain(w);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	for (uint64_t n = hw_monitor_stats(w->m)->barriers_back + 1; n <= sent; n++)
		hw_monitor_barrier(w->m, w->now, 0, n);
	world_drain(w);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
}
END_TEST

START_TEST(test_heard_between_deadline_and_judgement)
{
	world_beat(w, "a", "");
	w->rtt_ns = 100 * MS;
	world_pass(w, 30 * S + 150 * MS);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->candidates, 1);
	world_beat(w, "a", "");
	world_pass(w, 5 * S);
	ck_assert_uint_eq(world_count(w, HW_OUT_TRANSITION, HW_STATE_OFFLINE), 0);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->candidates, 0);
}
END_TEST

START_TEST(test_goodbye)
{
	world_beat(w, "a", "{\"battery\":50}");
	world_pass(w, S);
	world_beat(w, "a", "{\"online\":false,\"battery\":49}");
	ck_assert(world_is(w, "a", HW_STATE_ONLINE)); /* not before its barriers */
	world_pass(w, S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	ck_assert_int_eq(world_last(w, NULL)->reason, HW_REASON_WILL);
	ck_assert_int_eq(world_last(w, NULL)->last_seen_ms, 1700000000000);
	ck_assert(world_device(w, "a")->extra->report.battery == 49);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->heartbeats, 1); /* a goodbye proves nobody alive */
}
END_TEST

START_TEST(test_goodbye_is_void_after_a_heartbeat)
{
	world_beat(w, "a", "");
	world_pass(w, S);
	world_beat(w, "a", "{\"online\":false}");
	world_beat(w, "a", "");
	world_pass(w, 5 * S);
	ck_assert_uint_eq(world_count(w, HW_OUT_TRANSITION, HW_STATE_OFFLINE), 0);
	ck_assert_uint_eq(world_count(w, HW_OUT_STATUS, 0), 1);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->goodbyes_void, 1);
}
END_TEST

START_TEST(test_goodbye_is_void_after_blindness)
{
	world_beat(w, "a", "");
	world_pass(w, S);
	w->swallow = true;
	world_beat(w, "a", "{\"online\":false}");
	w->n_out = 0;
	hw_monitor_link(w->m, w->now, 0, false);
	world_pass(w, 100 * MS);
	w->swallow = false;
	hw_monitor_link(w->m, w->now, 0, true);
	int64_t up = w->now.mono.ns;
	world_pass(w, 5 * S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert_uint_eq(world_count(w, HW_OUT_STATUS, 0), 1);
	world_pass(w, 40 * S);
	int64_t at;
	ck_assert_int_eq(world_last(w, &at)->reason, HW_REASON_TIMEOUT);
	ck_assert_int_ge(at, up + 30 * S); /* a lost link is lossy: silence counts anew */
	/* ... and while blind a goodbye is void at once. */
	hw_monitor_link(w->m, w->now, 0, false);
	world_beat(w, "a", "");
	world_beat(w, "a", "{\"online\":false}");
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert_uint_eq(hw_monitor_stats(w->m)->goodbyes_void, 2);
}
END_TEST

START_TEST(test_first_message_is_a_goodbye)
{
	world_beat(w, "a", "{\"online\":false}");
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	ck_assert_int_eq(world_last(w, NULL)->reason, HW_REASON_WILL);
	ck_assert_int_eq(world_last(w, NULL)->last_seen_ms, 0);
}
END_TEST

START_TEST(test_goodbye_delay)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec g = world_group("default", 30000);
	g.goodbye_delay_ms = 2000;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &g, 1), 0);
	world_beat(w, "a", "");
	world_beat(w, "b", "");
	world_beat(w, "a", "{\"online\":false}");
	world_beat(w, "b", "{\"online\":false}");
	world_pass(w, 1500 * MS);
	world_beat(w, "b", "");
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	world_pass(w, 600 * MS);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	ck_assert(world_is(w, "b", HW_STATE_ONLINE));
	world_pass(w, 20 * S);
	ck_assert(world_is(w, "b", HW_STATE_ONLINE));
}
END_TEST

START_TEST(test_own_timeout)
{
	world_beat(w, "a", "{\"timeout\":310}");
	world_pass(w, 300 * S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	world_beat(w, "a", "{\"timeout\":1.5}"); /* shorter: in force at once, though the entry was armed for later */
	int64_t beat = w->now.mono.ns, at;
	world_pass(w, 2 * S);
	ck_assert_int_eq(world_last(w, &at)->state, HW_STATE_OFFLINE);
	ck_assert_int_ge(at, beat + 1500 * MS);
	ck_assert_int_le(at, beat + 1500 * MS + TICK + 10 * MS);
	world_beat(w, "a", "{\"timeout\":0}");
	ck_assert_int_eq(hw_monitor_timeout_ms(w->m, world_device(w, "a")), 30000);
	world_beat(w, "a", "{\"timeout\":0.001}");
	ck_assert_int_eq(hw_monitor_timeout_ms(w->m, world_device(w, "a")), 100);
	world_beat(w, "a", "{\"timeout\":1e18}");
	ck_assert_int_eq(hw_monitor_timeout_ms(w->m, world_device(w, "a")), 86400000);
	world_beat(w, "a", "{\"timeout\":-1}");
	world_beat(w, "a", "{\"timeout\":\"soon\"}");
	ck_assert_uint_eq(hw_monitor_stats(w->m)->refused[HW_REFUSED_TIMEOUT], 2);
	ck_assert_int_eq(hw_monitor_timeout_ms(w->m, world_device(w, "a")), 86400000);
}
END_TEST

/* b beats for so long; how many barriers the monitor sent meanwhile. */
static uint64_t barriers_in(int64_t ns)
{
	uint64_t before = hw_monitor_stats(w->m)->barriers_sent;
	for (int64_t end = w->now.mono.ns + ns; w->now.mono.ns < end; world_pass(w, 5 * S)) {
		w->n_log = 0;
		world_beat(w, "b", "");
	}
	return hw_monitor_stats(w->m)->barriers_sent - before;
}

START_TEST(test_barriers_keep_pace_with_the_shortest_timeout_in_use)
{
	world_beat(w, "b", "{\"timeout\":8}");
	world_beat(w, "a", "{\"timeout\":0.1}");
	ck_assert_uint_ge(barriers_in(60 * S), 230);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	barriers_in(7300 * S);
	ck_assert(world_is(w, "b", HW_STATE_ONLINE));
	uint64_t n = barriers_in(600 * S); /* every 2 s, for b, and a pair when it is looked at */
	ck_assert_uint_ge(n, 300);
	ck_assert_uint_le(n, 500);
}
END_TEST

START_TEST(test_reload_shortens_a_day_to_a_second)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec day = world_group("default", 86400000), second = world_group("default", 1000);
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &day, 1), 0);
	char id[16];
	for (int k = 0; k < 3000; k++) {
		snprintf(id, sizeof id, "d%d", k);
		world_beat(w, id, "");
	}
	world_pass(w, 100 * MS);
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &second, 1), 0);
	world_pass(w, 1100 * MS);
	ck_assert_uint_eq(world_count(w, HW_OUT_TRANSITION, HW_STATE_OFFLINE), 3000);
}
END_TEST

START_TEST(test_extreme_timeouts)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec g = world_group("default", 100);
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &g, 1), 0);
	world_beat(w, "a", "");
	int64_t beat = w->now.mono.ns, at;
	world_pass(w, S);
	ck_assert_int_eq(world_last(w, &at)->state, HW_STATE_OFFLINE);
	ck_assert_int_ge(at, beat + 100 * MS);
	ck_assert_int_le(at, beat + 100 * MS + TICK + 10 * MS);
	g.timeout_ms = g.timeout_max_ms = HW_TIMEOUT_MAX_MS;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &g, 1), 0);
	world_beat(w, "b", "");
	beat = w->now.mono.ns;
	w->rtt_ns = 0;
	/* Ten years in steps; barriers of the steady pace are not played, only time. */
	w->swallow = true;
	hw_monitor_publisher(w->m, w->now, false);
	for (int day = 0; day < 3650; day++) {
		w->now.mono.ns += 86400 * S - (day == 3649 ? MS : 0);
		world_drain(w);
		w->n_log = 0;
		ck_assert(world_is(w, "b", HW_STATE_ONLINE));
		ck_assert_uint_eq(hw_monitor_stats(w->m)->candidates, 0);
	}
	w->swallow = false;
	hw_monitor_publisher(w->m, w->now, true);
	world_pass(w, S);
	ck_assert_int_eq(world_last(w, &at)->state, HW_STATE_OFFLINE);
	ck_assert_int_ge(at, beat + 3650 * INT64_C(86400) * S);
	ck_assert_int_le(at, beat + 3650 * INT64_C(86400) * S + TICK + 10 * MS);
}
END_TEST

START_TEST(test_start_is_blind_until_grace_is_over)
{
	struct hw_monitor_conf conf = world_conf();
	conf.grace_ms = 15000;
	struct hw_group_spec g = world_group("default", 2000);
	struct world *v = world_new(&conf, &g, 1);
	ck_assert(hw_blind_now(hw_monitor_blind(v->m)));
	world_beat(v, "a", "");
	world_pass(v, 5 * S);
	world_connect(v);
	int64_t up = v->now.mono.ns, at;
	world_pass(v, 14 * S);
	ck_assert(hw_blind_now(hw_monitor_blind(v->m)));
	ck_assert(world_is(v, "a", HW_STATE_ONLINE));
	world_pass(v, 4 * S);
	ck_assert_int_eq(world_last(v, &at)->state, HW_STATE_OFFLINE);
	ck_assert_int_ge(at, up + 17 * S);
	world_free(v);
}
END_TEST

START_TEST(test_recurring_blindness_cannot_put_a_death_off_for_ever)
{
	world_beat(w, "a", "");
	int64_t seen = 0, at;
	for (int k = 0; k < 100 && world_is(w, "a", HW_STATE_ONLINE); k++) {
		world_pass(w, 20 * S);
		seen += 20 * S;
		hw_monitor_link(w->m, w->now, 0, false);
		w->n_out = 0;
		world_pass(w, S);
		hw_monitor_link(w->m, w->now, 0, true);
	}
	ck_assert_int_eq(world_last(w, &at)->reason, HW_REASON_TIMEOUT);
	ck_assert_int_ge(seen, 90 * S);
	ck_assert_int_le(seen, 100 * S);
}
END_TEST

START_TEST(test_loading)
{
	struct hw_monitor_conf conf = world_conf();
	conf.loading = true;
	struct hw_group_spec g = world_group("default", 30000);
	struct world *v = world_new(&conf, &g, 1);
	world_connect(v);
	world_beat(v, "known-online", "");
	world_beat(v, "known-offline", "");
	world_beat(v, "new", "");
	world_beat(v, "new-goodbye", "{\"online\":false}");
	ck_assert_uint_eq(v->n_log, 1); /* the end of the start's blindness */
	struct hw_stored s = {.id = "known-online",
	                      .id_len = 12,
	                      .state = HW_STATE_ONLINE,
	                      .seq = 5,
	                      .since_ms = 5,
	                      .last_seen_ms = 1699999990000};
	ck_assert_int_eq(hw_monitor_load(v->m, v->now, &s), 0);
	s.id = "known-offline";
	s.id_len = 13;
	s.state = HW_STATE_OFFLINE;
	ck_assert_int_eq(hw_monitor_load(v->m, v->now, &s), 0);
	s.id = "silent";
	s.id_len = 6;
	s.state = HW_STATE_ONLINE;
	ck_assert_int_eq(hw_monitor_load(v->m, v->now, &s), 0);
	s.seq = 0;
	ck_assert_int_eq(hw_monitor_load(v->m, v->now, &s), -EINVAL);
	world_drain(v);
	ck_assert_uint_eq(world_count(v, HW_OUT_TRANSITION, HW_STATE_ONLINE), 1);
	ck_assert(world_is(v, "known-online", HW_STATE_ONLINE));
	ck_assert_uint_eq(world_device(v, "known-online")->seq, 5);
	ck_assert(world_is(v, "known-offline", HW_STATE_ONLINE));
	ck_assert(world_is(v, "new", HW_STATE_PROVISIONAL));
	hw_monitor_loaded(v->m);
	world_drain(v);
	ck_assert(world_is(v, "new", HW_STATE_ONLINE));
	ck_assert(world_is(v, "new-goodbye", HW_STATE_OFFLINE));
	/* Silent for 10 s when this run began, so 20 s are left: but the start was lossy, so silence counts anew. */
	int64_t at;
	world_pass(v, 31 * S);
	ck_assert(world_is(v, "silent", HW_STATE_OFFLINE));
	ck_assert_int_eq(world_last(v, &at)->last_seen_ms > 0, 1);
	world_free(v);
}
END_TEST

START_TEST(test_forgetting)
{
	world_beat(w, "a", "");
	world_beat(w, "b", "");
	world_beat(w, "b", "");
	ck_assert(hw_monitor_forget(w->m, w->now, "a", 1));
	world_drain(w);
	const struct hw_transition *t = world_last(w, NULL);
	ck_assert_int_eq(t->state, HW_STATE_FORGOTTEN);
	ck_assert_int_eq(t->reason, HW_REASON_OPERATOR);
	world_say(w, "nodes/a/status", "", false); /* our own clearing comes back */
	ck_assert(world_is(w, "a", HW_STATE_FORGOTTEN));
	ck_assert(!hw_monitor_forget(w->m, w->now, "a", 1));
	hw_monitor_reap(w->m, t->device);
	ck_assert_ptr_null(world_device(w, "a"));
	ck_assert(!hw_monitor_forget(w->m, w->now, "a", 1));
	hw_monitor_reap(
		w->m, hw_registry_ref(hw_monitor_registry(w->m), hw_registry_find(hw_monitor_registry(w->m), "b", 1)));
	ck_assert(world_is(w, "b", HW_STATE_ONLINE));
}
END_TEST

START_TEST(test_forget_after)
{
	struct hw_monitor_conf conf = world_conf();
	conf.forget_after_ms = 600000;
	conf.forget_once_after_ms = 60000;
	struct hw_group_spec g = world_group("default", 30000);
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &g, 1), 0);
	world_beat(w, "once", "");
	world_beat(w, "twice", "");
	world_pass(w, S);
	world_beat(w, "twice", "");
	world_pass(w, 95 * S);
	ck_assert(world_is(w, "once", HW_STATE_FORGOTTEN));
	ck_assert(world_is(w, "twice", HW_STATE_OFFLINE));
	ck_assert_int_eq(world_last(w, NULL)->reason, HW_REASON_FORGET_AFTER);
	conf.forget_after_ms = 120000;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &g, 1), 0);
	world_pass(w, 50 * S);
	ck_assert(world_is(w, "twice", HW_STATE_OFFLINE));
	world_pass(w, 10 * S);
	ck_assert(world_is(w, "twice", HW_STATE_FORGOTTEN));
}
END_TEST

START_TEST(test_what_is_no_heartbeat)
{
	world_say(w, "nodes/a/heartbeat", "", true); /* history */
	world_say(w, "nodes/a/status", "", false);   /* a clearing */
	world_say(w, "nodes/a/status", "{\"by\":\"x\",\"seq\":5,\"online\":true}", false);
	world_say(w, "other/a", "", false);
	world_say(w, "nodes//heartbeat", "", false);
	world_say(w, "nodes/\xff/heartbeat", "", false);
	ck_assert_uint_eq(hw_registry_count(hw_monitor_registry(w->m)), 0);
	const struct hw_monitor_stats *s = hw_monitor_stats(w->m);
	ck_assert_uint_eq(s->refused[HW_REFUSED_RETAINED], 1);
	ck_assert_uint_eq(s->refused[HW_REFUSED_MONITOR], 1);
	ck_assert_uint_eq(s->refused[HW_REFUSED_TOPIC], 1);
	ck_assert_uint_eq(s->refused[HW_REFUSED_ID], 2);
	world_beat(w, "a", "{broken");
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert_uint_eq(s->payload_errors, 1);
}
END_TEST

START_TEST(test_max_devices)
{
	struct hw_monitor_conf conf = world_conf();
	conf.max_devices = 10;
	struct hw_group_spec g = world_group("default", 30000);
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &g, 1), 0);
	char id[16];
	for (int k = 0; k < 1000; k++) {
		snprintf(id, sizeof id, "d%d", k);
		world_beat(w, id, "");
	}
	ck_assert_uint_eq(hw_registry_count(hw_monitor_registry(w->m)), 10);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->refused[HW_REFUSED_MAX_DEVICES], 990);
	world_beat(w, "d3", "");
	ck_assert(world_is(w, "d3", HW_STATE_ONLINE));
}
END_TEST

START_TEST(test_max_age)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec g = world_group("default", 30000);
	g.max_age_ms = 60000;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &g, 1), 0);
	world_beat(w, "a", "{\"time\":1699999939}");
	ck_assert_ptr_null(world_device(w, "a"));
	ck_assert_uint_eq(hw_monitor_stats(w->m)->refused[HW_REFUSED_STALE], 1);
	world_beat(w, "a", "{\"time\":1699999941}");
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	world_beat(w, "a", "{\"time\":1,\"online\":false}");
	world_pass(w, S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
}
END_TEST

START_TEST(test_max_offline_rate)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec g = world_group("default", 30000);
	g.max_offline_rate = 10;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &g, 1), 0);
	char id[16];
	for (int k = 0; k < 100; k++) {
		snprintf(id, sizeof id, "d%d", k);
		world_beat(w, id, "");
	}
	world_pass(w, 32 * S);
	size_t n = world_count(w, HW_OUT_TRANSITION, HW_STATE_OFFLINE);
	ck_assert_uint_ge(n, 18);
	ck_assert_uint_le(n, 21);
	world_beat(w, "d99", "");
	world_pass(w, 10 * S);
	ck_assert_uint_eq(world_count(w, HW_OUT_TRANSITION, HW_STATE_OFFLINE), 99);
	ck_assert(world_is(w, "d99", HW_STATE_ONLINE));
}
END_TEST

START_TEST(test_groups_by_file_order)
{
	static const char *const fast[] = {"fast/{id}/hb"};
	struct hw_group_spec g[2] = {world_group("default", 30000), world_group("fast", 1000)};
	g[1].heartbeat = fast;
	g[1].n_heartbeat = 1;
	g[1].id_prefix = "f-";
	struct hw_monitor_conf conf = world_conf();
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, g, 2), 0);
	world_say(w, "fast/a/hb", "", false);
	world_beat(w, "a", "");
	ck_assert(world_is(w, "f-a", HW_STATE_ONLINE));
	world_pass(w, 2 * S);
	ck_assert(world_is(w, "f-a", HW_STATE_OFFLINE));
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	/* Known to the second group, then heard on the first: the first in the file takes it. */
	world_beat(w, "f-a", "");
	ck_assert_int_eq(hw_monitor_timeout_ms(w->m, world_device(w, "f-a")), 30000);
	world_say(w, "fast/a/hb", "", false);
	ck_assert_int_eq(hw_monitor_timeout_ms(w->m, world_device(w, "f-a")), 30000);
	ck_assert_uint_eq(hw_monitor_group_stats(w->m, 0)->count[HW_STATE_ONLINE], 2);
	ck_assert_uint_eq(hw_monitor_group_stats(w->m, 1)->count[HW_STATE_ONLINE], 0);
}
END_TEST

START_TEST(test_without_a_store_own_statuses_are_adopted)
{
	struct hw_monitor_conf conf = world_conf();
	conf.adopt_by = "me";
	struct hw_group_spec g = world_group("default", 30000);
	struct world *v = world_new(&conf, &g, 1);
	world_connect(v);
	world_say(v, "nodes/a/status",
	          "{\"time\":1699990000,\"online\":true,\"reason\":\"heartbeat\",\"last_seen\":1699990000,\"by\":"
	          "\"me\",\"seq\":7}",
	          true);
	world_say(v, "nodes/b/status",
	          "{\"time\":1699990000,\"online\":false,\"reason\":\"timeout\",\"last_seen\":1699990000,\"by\":\"me\","
	          "\"seq\":8}",
	          true);
	world_say(v, "nodes/c/status", "{\"time\":1699990000,\"online\":false,\"by\":\"other\",\"seq\":8}", true);
	ck_assert(world_is(v, "a", HW_STATE_ONLINE));
	ck_assert(world_is(v, "b", HW_STATE_OFFLINE));
	ck_assert_ptr_null(world_device(v, "c"));
	ck_assert_uint_eq(world_count(v, HW_OUT_TRANSITION, HW_STATE_ONLINE) +
	                          world_count(v, HW_OUT_TRANSITION, HW_STATE_OFFLINE),
	                  0);
	world_pass(v, 31 * S);
	ck_assert(world_is(v, "a", HW_STATE_OFFLINE));
	world_free(v);
}
END_TEST

/* A loss is over when it is found out: it is told all the same, its begin and its end. */
START_TEST(test_a_loss_is_told)
{
	world_beat(w, "a", "");
	world_pass(w, 3 * S);
	for (int k = 0; k < 2; k++) {
		size_t from = w->n_log;
		hw_monitor_loss(w->m, w->now, 0);
		world_drain(w);
		const struct hw_out *told[2] = {NULL, NULL};
		for (size_t i = from, n = 0; i < w->n_log; i++)
			if (w->log[i].kind == HW_OUT_BLIND) {
				ck_assert_uint_lt(n, 2);
				told[n++] = &w->log[i];
			}
		ck_assert_ptr_nonnull(told[1]);
		ck_assert(told[0]->blind.begun && !told[1]->blind.begun);
		ck_assert_int_eq(told[0]->blind.cause, HW_CAUSE_LOSS);
		ck_assert_int_eq(told[1]->blind.cause, HW_CAUSE_LOSS);
		ck_assert(told[1]->blind.lossy);
		ck_assert_int_gt(told[1]->blind.length_ns, 0);
		world_pass(w, S);
	}
}
END_TEST

START_TEST(test_own_statuses_are_adopted_where_no_heartbeat_comes)
{
	static const char *const hb[] = {"hb/{id}"};
	struct hw_monitor_conf conf = world_conf();
	conf.adopt_by = "me";
	struct hw_group_spec g = world_group("default", 30000);
	g.heartbeat = hb;
	g.n_heartbeat = 1;
	g.id_prefix = "p-";
	struct world *v = world_new(&conf, &g, 1);
	world_connect(v);
	world_say(v, "nodes/a/status", "{\"time\":1699990000,\"online\":true,\"by\":\"me\",\"seq\":7}", true);
	world_say(v, "nodes/b/status", "{\"time\":1699990000,\"online\":true,\"by\":\"me\",\"seq\":7}", false);
	world_say(v, "nodes/c/status", "{\"online\":true}", false);
	ck_assert(world_is(v, "p-a", HW_STATE_ONLINE));
	ck_assert_uint_eq(hw_registry_count(hw_monitor_registry(v->m)), 1);
	ck_assert_uint_eq(hw_monitor_stats(v->m)->refused[HW_REFUSED_MONITOR], 2);
	ck_assert_uint_eq(hw_monitor_stats(v->m)->refused[HW_REFUSED_TOPIC], 1);
	world_free(v);
}
END_TEST

START_TEST(test_wall_clock_steps_cause_nothing)
{
	world_beat(w, "a", "");
	w->now.wall_ms += 86400000;
	world_pass(w, 20 * S);
	ck_assert_int_eq(hw_device_last_seen_ms(world_device(w, "a"), w->now), w->now.wall_ms - 20000);
	world_beat(w, "a", "");
	w->now.wall_ms -= 2 * 86400000;
	world_pass(w, 20 * S);
	ck_assert_int_eq(hw_device_last_seen_ms(world_device(w, "a"), w->now), w->now.wall_ms - 20000);
	ck_assert_uint_eq(world_count(w, HW_OUT_TRANSITION, HW_STATE_OFFLINE), 0);
	uint64_t seq = world_device(w, "a")->seq;
	world_pass(w, 20 * S);
	ck_assert_uint_eq(world_last(w, NULL)->seq, seq + 1); /* the wall clock is behind: the seq still grows */
}
END_TEST

/* What was told of a device that is gone is told the same way ever after: the clock moves, and so does the monitor. */
START_TEST(test_last_seen_of_the_gone_is_as_it_was_told)
{
	world_beat(w, "a", "");
	world_pass(w, 40 * S);
	int64_t told = world_last(w, NULL)->last_seen_ms;
	ck_assert_int_eq(told, w->now.wall_ms - 40000);
	w->now.wall_ms += 86400000;
	world_pass(w, S);
	ck_assert_int_eq(hw_device_last_seen_ms(world_device(w, "a"), w->now), told);
	ck_assert(hw_monitor_forget(w->m, w->now, "a", 1));
	ck_assert_int_eq(hw_device_last_seen_ms(world_device(w, "a"), w->now), told);
	world_beat(w, "a", "");
	world_pass(w, S);
	ck_assert_int_eq(hw_device_last_seen_ms(world_device(w, "a"), w->now), w->now.wall_ms - 1000);
	struct hw_stored s = {.id = "b",
	                      .id_len = 1,
	                      .state = HW_STATE_OFFLINE,
	                      .reason = HW_REASON_TIMEOUT,
	                      .since_ms = told + 30000,
	                      .last_seen_ms = told,
	                      .seq = 7};
	ck_assert_int_eq(hw_monitor_load(w->m, w->now, &s), 0);
	w->now.wall_ms -= 86400000;
	ck_assert_int_eq(hw_device_last_seen_ms(world_device(w, "b"), w->now), told);
	world_beat(w, "b", "");
	ck_assert_int_eq(hw_device_last_seen_ms(world_device(w, "b"), w->now), w->now.wall_ms);
}
END_TEST

/* A monitor with one group that is not the usual one. */
static void world_of(struct hw_group_spec g)
{
	struct hw_monitor_conf conf = world_conf();
	world_free(w);
	w = world_new(&conf, &g, 1);
	world_connect(w);
}

static const char *const homie_filters[] = {"homie/{id}/$state", "homie/{id}/+/+"};

START_TEST(test_homie)
{
	struct hw_group_spec g = world_group("homie", 30000);
	g.heartbeat = homie_filters;
	g.status = "hw/{id}";
	g.format = HW_FORMAT_HOMIE;
	g.timeout_max_ms = 3600000;
	world_of(g);
	const struct hw_monitor_stats *stats = hw_monitor_stats(w->m);
	world_say(w, "homie/a/$state", "init", false);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	world_say(w, "homie/a/$state", "lost", false);
	world_pass(w, S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	ck_assert_int_eq(world_last(w, NULL)->reason, HW_REASON_WILL);
	world_say(w, "homie/a/$state", "ready", true); /* history */
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	world_say(w, "homie/a/$state", "", false); /* cleared */
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	ck_assert_uint_eq(stats->payload_errors, 0);
	/* A property is a heartbeat, whatever it says, and says nothing of the device. */
	world_say(w, "homie/a/lamp/power", "lost", false);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	world_say(w, "homie/a/lamp/state", "{\"online\":false,\"timeout\":3600}", false);
	world_say(w, "homie/a/lamp/state", "{", false);
	world_pass(w, S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert_int_eq(hw_monitor_timeout_ms(w->m, world_device(w, "a")), 30000);
	ck_assert_uint_eq(stats->payload_errors, 0);
	world_say(w, "homie/a/$state", "dancing", false);
	world_say(w, "homie/a/$state", "{\"by\":\"m\",\"seq\":5}", false);
	ck_assert_uint_eq(stats->payload_errors, 1);
	ck_assert_uint_eq(stats->refused[HW_REFUSED_MONITOR], 1);
	ck_assert_uint_eq(stats->heartbeats, 5);
	/* A sleeper may be silent for as long as the group allows, and its waking ends that. */
	world_say(w, "homie/a/$state", "sleeping", false);
	ck_assert_int_eq(hw_monitor_timeout_ms(w->m, world_device(w, "a")), 3600000);
	world_pass(w, 3599 * S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	world_say(w, "homie/a/$state", "disconnected", false);
	world_pass(w, S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	world_say(w, "homie/a/$state", "ready", false);
	ck_assert_int_eq(hw_monitor_timeout_ms(w->m, world_device(w, "a")), 30000);
	world_pass(w, 31 * S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
}
END_TEST

static const char *const batch_filters[] = {"gw/+/heard"};

static void batch_world(void)
{
	struct hw_group_spec g = world_group("radio", 30000);
	g.heartbeat = batch_filters;
	g.n_heartbeat = 1;
	g.id_prefix = "r-";
	g.batch = true;
	world_of(g);
}

START_TEST(test_batch)
{
	batch_world();
	const struct hw_monitor_stats *stats = hw_monitor_stats(w->m);
	world_say(w, "gw/1/heard", " [\"a\", {\"id\":\"b\",\"battery\":7}, {\"id\":\"c\",\"online\":false}, \"a\"] ",
	          false);
	ck_assert(world_is(w, "r-a", HW_STATE_ONLINE));
	ck_assert(world_is(w, "r-b", HW_STATE_ONLINE));
	ck_assert(world_is(w, "r-c", HW_STATE_OFFLINE));
	ck_assert_uint_eq(world_device(w, "r-b")->extra->report.has, HW_HAS_BATTERY);
	ck_assert_uint_eq(stats->heartbeats, 3);
	/* What names no device is refused by itself. */
	world_say(w, "gw/1/heard", "[5,null,[\"x\"],{},{\"id\":1},\"\",\"a+\",{\"id\":\"d\",\"timeout\":-1,\"ip\":5}]",
	          false);
	ck_assert_uint_eq(stats->refused[HW_REFUSED_BATCH], 5);
	ck_assert_uint_eq(stats->refused[HW_REFUSED_ID], 2);
	ck_assert_uint_eq(stats->refused[HW_REFUSED_TIMEOUT], 1);
	ck_assert_uint_eq(stats->payload_errors, 1);
	ck_assert(world_is(w, "r-d", HW_STATE_ONLINE));
	ck_assert_uint_eq(stats->heartbeats, 4);
	world_say(w, "gw/1/heard", "[]", false);
	ck_assert_uint_eq(stats->refused[HW_REFUSED_BATCH], 5);
	world_pass(w, 31 * S);
	ck_assert(world_is(w, "r-a", HW_STATE_OFFLINE));
	world_say(w, "gw/1/heard", "[{\"id\":\"a\",\"by\":\"m\",\"seq\":4}]", false);
	world_say(w, "gw/1/heard", "[\"a\"]", true);
	ck_assert(world_is(w, "r-a", HW_STATE_OFFLINE));
	ck_assert_uint_eq(stats->refused[HW_REFUSED_MONITOR], 1);
	ck_assert_uint_eq(stats->refused[HW_REFUSED_RETAINED], 1);
}
END_TEST

/* A batch is taken whole or not at all. */
START_TEST(test_batch_that_is_none)
{
	static const struct {
		const char *payload;
		unsigned errors;
	} none[] = {{"[\"a\"", 1},
	            {"[\"a\",]", 1},
	            {"[\"a\"] x", 1},
	            {"[\"a\",{\"id\":\"b\",}]", 1},
	            {"{\"id\":\"a\"", 1},
	            {"{\"id\":\"a\"}", 0},
	            {"\"a\"", 0},
	            {"a", 0},
	            {"", 0},
	            {"7", 0}};
	batch_world();
	const struct hw_monitor_stats *stats = hw_monitor_stats(w->m);
	for (size_t k = 0; k < sizeof none / sizeof *none; k++) {
		uint64_t errors = stats->payload_errors;
		world_say(w, "gw/1/heard", none[k].payload, false);
		ck_assert_msg(stats->refused[HW_REFUSED_BATCH] == k + 1, "%s", none[k].payload);
		ck_assert_msg(stats->payload_errors == errors + none[k].errors, "%s", none[k].payload);
	}
	world_say(w, "gw/1/heard", "{\"by\":\"m\",\"seq\":4}", false);
	ck_assert_uint_eq(stats->refused[HW_REFUSED_MONITOR], 1);
	struct hw_message cut = {
		.topic = "gw/1/heard", .topic_len = 10, .payload = "[\"a\"]", .payload_len = 5, .truncated = true};
	uint64_t errors = stats->payload_errors;
	ck_assert_uint_eq(hw_monitor_messages(w->m, w->now, &cut, 1), 1);
	ck_assert_uint_eq(stats->payload_errors, errors + 1);
	ck_assert_uint_eq(hw_registry_count(hw_monitor_registry(w->m)), 0);
}
END_TEST

/* More elements than the core takes in one go: nothing is lost, and what is read behind it waits. */
START_TEST(test_large_batches)
{
	enum { N = 6000 };
	char *text = malloc(N * 10), id[16];
	size_t len = 1;
	ck_assert_ptr_nonnull(text);
	text[0] = '[';
	for (int k = 0; k < N; k++)
		len += (size_t)sprintf(text + len, "%s\"%d\"", k ? "," : "", k);
	text[len++] = ']';
	batch_world();
	struct hw_message both[2];
	for (int k = 0; k < 2; k++)
		both[k] = (struct hw_message){
			.topic = "gw/1/heard", .topic_len = 10, .payload = text, .payload_len = len};
	both[1].payload = "[\"last\"]";
	both[1].payload_len = 8;
	size_t done = 0, calls = 0;
	while (done < 2) {
		size_t log = w->n_log, k = hw_monitor_messages(w->m, w->now, both + done, 2 - done);
		ck_assert(done + k == 2 || !world_device(w, "r-last"));
		done += k;
		world_drain(w);
		ck_assert_uint_le(w->n_log - log, 256);
		calls++;
	}
	ck_assert_uint_ge(calls, N / 256);
	ck_assert_uint_eq(world_count(w, HW_OUT_TRANSITION, HW_STATE_ONLINE), N + 1);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->heartbeats, N + 1);
	for (int k = 0; k < N; k += 599) {
		snprintf(id, sizeof id, "r-%d", k);
		ck_assert(world_is(w, id, HW_STATE_ONLINE));
	}
	free(text);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("monitor");
	TCase *t = tcase_create("rules");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 20);
	tcase_add_test(t, test_silence_takes_offline_in_time);
	tcase_add_test(t, test_beats_keep_online_and_relink_once_a_timeout);
	tcase_add_test(t, test_nobody_is_judged_without_two_barriers);
	tcase_add_test(t, test_heard_between_deadline_and_judgement);
	tcase_add_test(t, test_goodbye);
	tcase_add_test(t, test_goodbye_is_void_after_a_heartbeat);
	tcase_add_test(t, test_goodbye_is_void_after_blindness);
	tcase_add_test(t, test_first_message_is_a_goodbye);
	tcase_add_test(t, test_goodbye_delay);
	tcase_add_test(t, test_own_timeout);
	tcase_add_test(t, test_barriers_keep_pace_with_the_shortest_timeout_in_use);
	tcase_add_test(t, test_reload_shortens_a_day_to_a_second);
	tcase_add_test(t, test_extreme_timeouts);
	tcase_add_test(t, test_start_is_blind_until_grace_is_over);
	tcase_add_test(t, test_recurring_blindness_cannot_put_a_death_off_for_ever);
	tcase_add_test(t, test_loading);
	tcase_add_test(t, test_forgetting);
	tcase_add_test(t, test_forget_after);
	tcase_add_test(t, test_what_is_no_heartbeat);
	tcase_add_test(t, test_max_devices);
	tcase_add_test(t, test_max_age);
	tcase_add_test(t, test_max_offline_rate);
	tcase_add_test(t, test_groups_by_file_order);
	tcase_add_test(t, test_without_a_store_own_statuses_are_adopted);
	tcase_add_test(t, test_a_loss_is_told);
	tcase_add_test(t, test_own_statuses_are_adopted_where_no_heartbeat_comes);
	tcase_add_test(t, test_wall_clock_steps_cause_nothing);
	tcase_add_test(t, test_last_seen_of_the_gone_is_as_it_was_told);
	tcase_add_test(t, test_homie);
	tcase_add_test(t, test_batch);
	tcase_add_test(t, test_batch_that_is_none);
	tcase_add_test(t, test_large_batches);
	suite_add_tcase(s, t);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

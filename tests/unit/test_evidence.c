/* SPDX-License-Identifier: MIT */
/* The evidence rule in its least obvious cases, which a simulation of many troubles at once has found. */
#include "../suite.h"
#include "world.h"

static struct world *w;

static void setup(void)
{
	w = world_past_grace();
}

static void teardown(void)
{
	world_free(w);
}

/* Otherwise a monitor that restarts during a sleeper's nap would call it offline. */
START_TEST(test_a_new_timeout_is_stored_at_once)
{
	world_beat(w, "a", "");
	world_beat(w, "a", "{\"timeout\":310}");
	ck_assert_uint_eq(world_count(w, HW_OUT_REFRESH, 0), 1);
	world_beat(w, "a", "{\"timeout\":310}");
	ck_assert_uint_eq(world_count(w, HW_OUT_REFRESH, 0), 1);
	world_beat(w, "a", "{\"timeout\":0}");
	ck_assert_uint_eq(world_count(w, HW_OUT_REFRESH, 0), 2);
	world_beat(w, "b", "{\"timeout\":310}"); /* its transition tells */
	ck_assert_uint_eq(world_count(w, HW_OUT_REFRESH, 0), 2);
}
END_TEST

/* A backlog of 3 s: the pair for the first silence comes back when the second, too, is longer than the timeout; but it
 * was sent before what may still be on its way. */
START_TEST(test_a_pair_proves_only_what_was_sent_before_it)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec g = world_group("default", 1000);
	struct world *v = world_new(&conf, &g, 1);
	world_connect(v);
	world_pass(v, S);
	v->rtt_ns = 3 * S;
	world_beat(v, "a", "");
	int64_t at = v->now.mono.ns;
	for (int k = 1; k <= 38; k++) { /* something always flows */
		world_until(v, at + k * 100 * MS);
		world_beat(v, k == 14 ? "a" : "b", "");
	}
	ck_assert(!hw_blind_now(hw_monitor_blind(v->m)));
	for (int k = 39; k <= 52; k++) {
		world_until(v, at + k * 100 * MS);
		world_beat(v, "b", "");
	}
	ck_assert_uint_eq(world_count(v, HW_OUT_TRANSITION, HW_STATE_OFFLINE), 0);
	world_beat(v, "a", "");
	for (int k = 53; k <= 160; k++) {
		world_until(v, at + k * 100 * MS);
		world_beat(v, "b", "");
		if (k < 122) /* 5.2 + 1 s is the deadline, and then a pair, 3 s each */
			ck_assert(world_is(v, "a", HW_STATE_ONLINE));
	}
	ck_assert(world_is(v, "a", HW_STATE_OFFLINE));
	world_free(v);
}
END_TEST

/* Devices fall due in every tick, and each waits for a pair: barriers that come back do not bring forth others without
 * end. */
START_TEST(test_who_waits_in_turn_shares_barriers)
{
	static const int64_t rtts_ms[] = {2, 10, 20, 60, 300, 1500};
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec g = world_group("default", 1000);
	conf.barrier_slow_ms = 5000;
	struct world *v = world_new(&conf, &g, 1);
	world_connect(v);
	world_pass(v, S);
	v->rtt_ns = rtts_ms[_i] * MS;
	for (int k = 0; k < 600; k++) {
		char id[16];
		snprintf(id, sizeof(id), "d%d", k);
		world_beat(v, id, "");
		world_pass(v, 10 * MS);
	}

	ck_assert_uint_le(v->barriers, 7 * (2 * 31 + 4));
	world_pass(v, 2 * S + 4 * v->rtt_ns);

	ck_assert_uint_eq(world_count(v, HW_OUT_TRANSITION, HW_STATE_OFFLINE), 600);
	world_free(v);
}
END_TEST

/*
 * A broker that stands still, for less than makes a standstill, while something falls due: all barriers of that time
 * lie in one socket of it side by side, and may be read in one turn, before the socket in which a heartbeat lies.
 */
START_TEST(test_barriers_that_waited_side_by_side_prove_nothing)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec g = world_group("default", 1000);
	conf.barrier_slow_ms = 2000;
	for (int stood = 20; stood <= 900; stood += 40) {
		struct world *v = world_new(&conf, &g, 1);
		world_connect(v);
		world_pass(v, S);
		world_beat(v, "a", "");
		int64_t from = v->now.mono.ns + S - 10 * MS, to = from + stood * MS;
		world_until(v, from);
		for (int64_t at = from; at < to; at += MS) {
			v->rtt_ns = to - at;
			world_until(v, at);
		}
		v->rtt_ns = 2 * MS;
		world_until(v, to);
		world_beat(v, "a", ""); /* it lay there since before the barriers */
		world_pass(v, 900 * MS);
		ck_assert_uint_eq(world_count(v, HW_OUT_TRANSITION, HW_STATE_OFFLINE), 0);
		world_pass(v, 100 * MS + S / 31 + 10 * MS);
		ck_assert(world_is(v, "a", HW_STATE_OFFLINE));
		world_free(v);
	}
}
END_TEST

static const struct hw_out *blind_out(size_t k) /* the k-th that was told since the start */
{
	for (size_t n = 0; n < w->n_log; n++)
		if (w->log[n].kind == HW_OUT_BLIND && k-- == 0)
			return &w->log[n];
	ck_abort_msg("not told");
	return NULL;
}

/* A period that is over when it is noticed has a begin and an end like any other. */
START_TEST(test_every_period_is_told)
{
	int64_t planned = w->now.mono.ns;
	w->n_log = 0;
	w->now.mono.ns += 700 * MS;
	hw_monitor_stall(w->m, w->now, (struct hw_mono){planned});
	hw_monitor_drained(w->m, w->now);
	world_drain(w);
	ck_assert_uint_eq(world_count(w, HW_OUT_BLIND, 0), 2);
	ck_assert(blind_out(0)->blind.begun && blind_out(0)->blind.cause == HW_CAUSE_STALL);
	ck_assert(!blind_out(1)->blind.begun && blind_out(1)->blind.cause == HW_CAUSE_STALL);
	ck_assert(!blind_out(1)->blind.lossy);
	ck_assert_int_eq(blind_out(1)->blind.length_ns, 700 * MS);
	/* One blind period ends and another begins before either is reported: two begins and two ends are reported,
	 * with the right causes and lengths. */
	world_pass(w, 10 * S);
	w->n_log = 0;
	hw_monitor_link(w->m, w->now, 0, false);
	world_drain(w);
	w->n_out = 0;
	hw_monitor_link(w->m, w->now, 0, true);
	int64_t up = w->now.mono.ns;
	for (int k = 1; k <= 149; k++) {
		world_until(w, up + k * 100 * MS);
		world_beat(w, "a", "");
		w->swallow = k >= 60;
	}
	w->now.mono.ns = up + 15 * S + 300 * MS; /* the grace is over, and nothing came for 400 ms */
	world_drain(w);
	ck_assert_uint_eq(world_count(w, HW_OUT_BLIND, 0), 3);
	ck_assert(!blind_out(1)->blind.begun && blind_out(1)->blind.cause == HW_CAUSE_LINK);
	ck_assert(blind_out(1)->blind.lossy);
	ck_assert_int_eq(blind_out(1)->blind.length_ns, 15 * S);
	ck_assert(blind_out(2)->blind.begun && blind_out(2)->blind.cause == HW_CAUSE_STANDSTILL);
}
END_TEST

static void stall(int64_t length_ns)
{
	int64_t planned = w->now.mono.ns;
	w->now.mono.ns += length_ns;
	w->n_out = 0;
	hw_monitor_stall(w->m, w->now, (struct hw_mono){planned});
	world_drain(w);
	hw_monitor_drained(w->m, w->now);
	world_drain(w);
}

/* Otherwise short pauses, each within the grace of the one before, would blind for ever. */
START_TEST(test_a_short_pause_does_not_begin_a_grace_anew)
{
	stall(6 * S);
	int64_t end = w->now.mono.ns + 15 * S;
	for (int k = 0; k < 4; k++) {
		world_pass(w, 3 * S);
		stall(600 * MS);
		ck_assert(hw_blind_now(hw_monitor_blind(w->m)));
	}
	world_until(w, end - MS);
	ck_assert(hw_blind_now(hw_monitor_blind(w->m)));
	world_until(w, end + MS);
	ck_assert(!hw_blind_now(hw_monitor_blind(w->m)));
	ck_assert(hw_monitor_blind(w->m)->ended_lossy);
	stall(600 * MS);
	ck_assert(!hw_blind_now(hw_monitor_blind(w->m)));
	/* A long stall within the grace starts the grace again; a stall longer than the grace ends it. */
	stall(6 * S);
	world_pass(w, 10 * S);
	stall(6 * S);
	world_pass(w, 14 * S);
	ck_assert(hw_blind_now(hw_monitor_blind(w->m)));
	stall(2 * S);
	ck_assert(!hw_blind_now(hw_monitor_blind(w->m)));
}
END_TEST

/* A loop that wakes a little after the end of a grace reads heartbeats before it looks at the clock: they are heard
 * then, and not when the grace was to end. */
START_TEST(test_a_heartbeat_that_is_read_late_counts_from_then)
{
	world_beat(w, "a", "");
	stall(6 * S);
	int64_t at;
	w->now.mono.ns += 15 * S + 400 * MS;
	w->now.wall_ms += 15400;
	int64_t read = w->now.mono.ns;
	world_beat(w, "a", "");
	world_pass(w, 60 * S);
	ck_assert_uint_eq(world_count(w, HW_OUT_TRANSITION, HW_STATE_OFFLINE), 1);
	world_last(w, &at);
	ck_assert_int_ge(at - read, 30 * S);
}
END_TEST

/* Messages that did not arrive while the monitor itself was stopped are no sign of the broker's silence. */
START_TEST(test_a_stall_is_not_the_brokers_silence)
{
	world_pass(w, 20 * S);
	w->swallow = true;
	uint64_t sent = hw_monitor_stats(w->m)->barriers_sent;
	while (hw_monitor_stats(w->m)->barriers_sent == sent) /* a barrier is out ... */
		world_pass(w, 50 * MS);
	w->n_log = 0;
	stall(90 * S);
	ck_assert_int_eq(hw_monitor_blind(w->m)->active, 1u << HW_CAUSE_STALL);
	ck_assert_uint_eq(world_count(w, HW_OUT_RECONNECT, 0), 0);
	world_pass(w, 4900 * MS);
	ck_assert_uint_eq(world_count(w, HW_OUT_RECONNECT, 0), 0);
	world_pass(w, 200 * MS); /* ... and nothing at all since */
	ck_assert_uint_eq(world_count(w, HW_OUT_RECONNECT, 0), 1);
}
END_TEST

/* Heartbeats continue, ten a second, and no barrier returns. */
static void beat_for(int64_t ns)
{
	for (int64_t until = w->now.mono.ns + ns; w->now.mono.ns < until; world_pass(w, 100 * MS))
		world_beat(w, "other", "");
}

/* The barriers' connection carries nothing more, and the readers' do: blind within barrier_timeout. */
START_TEST(test_a_silent_connection_of_barriers_blinds)
{
	beat_for(20 * S);
	w->swallow = w->silent = true;
	uint64_t sent = hw_monitor_stats(w->m)->barriers_sent;
	while (hw_monitor_stats(w->m)->barriers_sent == sent)
		beat_for(50 * MS);
	struct hw_mono out = w->now.mono;
	w->n_log = 0;
	beat_for(4700 * MS);
	ck_assert_uint_eq(world_count(w, HW_OUT_REOPEN, 0), 0);
	ck_assert_int_eq(hw_monitor_blind(w->m)->active, 0);
	beat_for(400 * MS);
	ck_assert_uint_eq(world_count(w, HW_OUT_REOPEN, 0), 1);
	ck_assert_int_eq(hw_monitor_blind(w->m)->active, 1u << HW_CAUSE_BARRIER);
	ck_assert_int_le(hw_monitor_blind(w->m)->since.ns, out.ns);
	ck_assert(hw_monitor_blind(w->m)->lossy);
	beat_for(4 * S); /* later each time */
	ck_assert_uint_eq(world_count(w, HW_OUT_REOPEN, 0), 1);
	beat_for(2 * S);
	ck_assert_uint_eq(world_count(w, HW_OUT_REOPEN, 0), 2);
	hw_monitor_publisher(w->m, w->now, false);
	w->swallow = w->silent = false;
	hw_monitor_publisher(w->m, w->now, true);
	beat_for(6 * S);
	ck_assert(hw_monitor_in_grace(w->m) || hw_monitor_blind(w->m)->active == 0);
}
END_TEST

/* The broker acknowledges barriers and returns them late: it is slow. */
START_TEST(test_a_slow_broker_does_not_blind)
{
	beat_for(20 * S);
	w->swallow = true;
	w->n_log = 0;
	beat_for(30 * S);
	ck_assert_uint_eq(world_count(w, HW_OUT_REOPEN, 0), 0);
	ck_assert_int_eq(hw_monitor_blind(w->m)->active, 0);
}
END_TEST

/* A barrier that waited for the monitor itself does not show the broker's pace. */
START_TEST(test_a_stall_is_no_round_trip)
{
	world_pass(w, 10 * S);
	uint64_t sent = hw_monitor_stats(w->m)->barriers_sent, back = hw_monitor_stats(w->m)->barriers_back;
	int64_t rtt = hw_monitor_stats(w->m)->barrier_rtt_ns;
	w->rtt_ns = 7 * S;
	while (hw_monitor_stats(w->m)->barriers_sent == sent)
		world_pass(w, 10 * MS);
	int64_t planned = w->now.mono.ns;
	w->now.mono.ns += 7 * S;
	hw_monitor_stall(w->m, w->now, (struct hw_mono){planned});
	world_pass(w, MS);
	ck_assert_uint_gt(hw_monitor_stats(w->m)->barriers_back, back);
	ck_assert_int_eq(hw_monitor_stats(w->m)->barrier_rtt_ns, rtt);
}
END_TEST

/* However slow the broker was: when the connection is given up, nothing has been seen since it fell silent. */
START_TEST(test_a_connection_is_given_up_blind)
{
	w->rtt_ns = 4 * S;
	for (int k = 0; k < 1000; k++) {
		world_pass(w, 100 * MS);
		world_beat(w, "a", "");
	}
	ck_assert_int_gt(4 * hw_monitor_stats(w->m)->barrier_rtt_ns, 6 * S);
	ck_assert(!hw_blind_now(hw_monitor_blind(w->m)));
	ck_assert_uint_eq(world_count(w, HW_OUT_RECONNECT, 0), 0);
	w->n_out = 0;
	w->swallow = true;
	int64_t last = w->now.mono.ns;
	while (world_count(w, HW_OUT_RECONNECT, 0) == 0)
		world_pass(w, 100 * MS);
	ck_assert(hw_blind_now(hw_monitor_blind(w->m)));
	ck_assert_int_eq(hw_monitor_blind(w->m)->since.ns, last);
}
END_TEST

/* The time lies between two attempts to open the connection again. */
START_TEST(test_due_knows_when_barriers_count_as_denied)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec g = world_group("default", 30000);
	conf.barrier_timeout_ms = 1000;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &g, 1), 0);
	world_pass(w, 10 * S);
	w->swallow = true;
	uint64_t sent = hw_monitor_stats(w->m)->barriers_sent;
	while (hw_monitor_stats(w->m)->barriers_sent == sent)
		world_pass(w, 10 * MS);
	int64_t out = w->now.mono.ns, told = 0;
	world_until(w, out + 14 * S);
	for (size_t n = 0; n < w->n_log; n++)
		if (w->log[n].kind == HW_OUT_BLIND && w->log[n].blind.cause == HW_CAUSE_BARRIER)
			told = w->log_ns[n];
	ck_assert_int_ge(told, out + 12 * S - 10 * MS);
	ck_assert_int_le(told, out + 12 * S);
}
END_TEST

/* Devices are heard meanwhile, so that nothing else shows it. */
START_TEST(test_refused_barriers_blind_after_a_barrier_timeout)
{
	world_pass(w, 10 * S);
	w->swallow = true;
	hw_monitor_barriers_refused(w->m, true);
	uint64_t sent = hw_monitor_stats(w->m)->barriers_sent;
	while (hw_monitor_stats(w->m)->barriers_sent == sent)
		world_pass(w, 10 * MS);
	int64_t out = w->now.mono.ns, named = 0;
	for (int k = 0; k < 100; k++) {
		world_pass(w, 100 * MS);
		world_beat(w, "a", "");
		if (!named && hw_monitor_blind(w->m)->active & 1u << HW_CAUSE_BARRIER)
			named = w->now.mono.ns;
	}
	ck_assert_int_ge(named, out + 5 * S - 100 * MS);
	ck_assert_int_le(named, out + 5 * S + 200 * MS);
	w->swallow = false;
	hw_monitor_barriers_refused(w->m, false);
	world_pass(w, 25 * S); /* with the grace */
	ck_assert(!hw_blind_now(hw_monitor_blind(w->m)));
}
END_TEST

/* What is published hangs, and devices are heard with gaps between them: one standstill, and soon it has its name. */
START_TEST(test_barriers_that_stay_out_while_devices_are_heard)
{
	world_pass(w, 10 * S);
	size_t said = world_count(w, HW_OUT_BLIND, 0);
	uint64_t sent = hw_monitor_stats(w->m)->barriers_sent;
	w->swallow = true;
	while (hw_monitor_stats(w->m)->barriers_sent == sent)
		world_pass(w, 10 * MS);
	int64_t out = w->now.mono.ns, named = 0;
	for (int k = 0; k < 20; k++) {
		world_pass(w, 500 * MS);
		world_beat(w, "a", "");
		if (!named && hw_monitor_blind(w->m)->active & 1u << HW_CAUSE_BARRIER)
			named = w->now.mono.ns;
	}
	ck_assert_int_ge(named, out + 5 * S);
	ck_assert_int_le(named, out + 6 * S);
	ck_assert(hw_blind_now(hw_monitor_blind(w->m)));
	/* The first gap begins and ends, the next one begins, and gets its name. */
	ck_assert_uint_le(world_count(w, HW_OUT_BLIND, 0) - said, 4);
	ck_assert_uint_eq(world_count(w, HW_OUT_RECONNECT, 0), 0);
	w->swallow = false;
	world_pass(w, 25 * S); /* with the grace */
	ck_assert(!hw_blind_now(hw_monitor_blind(w->m)));
	ck_assert(hw_monitor_blind(w->m)->ended_lossy);
}
END_TEST

/* The barriers after the first that is back must not put the end of the grace off. */
START_TEST(test_the_grace_after_denied_barriers_ends)
{
	w->swallow = true;
	for (int k = 0; k < 700; k++) { /* other things flow for longer than any backlog lasts */
		world_pass(w, 100 * MS);
		world_beat(w, "a", "");
	}
	ck_assert(hw_monitor_blind(w->m)->active & 1u << HW_CAUSE_BARRIER);
	w->swallow = false;
	hw_monitor_link(w->m, w->now, 0, false);
	hw_monitor_link(w->m, w->now, 0, true);
	world_pass(w, 14 * S);
	ck_assert(hw_blind_now(hw_monitor_blind(w->m)));
	world_pass(w, 7 * S); /* the first barrier waits for its turn in the steady pace, then comes the grace */
	ck_assert(!hw_blind_now(hw_monitor_blind(w->m)));
}
END_TEST

/* For nearly as long as the pace of barriers it stood before one was sent: seed 500301 of the simulation. */
START_TEST(test_a_standstill_began_when_something_came_last)
{
	world_beat(w, "a", "");
	uint64_t sent = hw_monitor_stats(w->m)->barriers_sent;
	while (hw_monitor_stats(w->m)->barriers_sent == sent)
		world_pass(w, 10 * MS);
	world_pass(w, S);
	w->swallow = true; /* the broker stands, from now on */
	sent = hw_monitor_stats(w->m)->barriers_sent;
	while (hw_monitor_stats(w->m)->barriers_sent == sent)
		world_pass(w, 10 * MS);
	world_pass(w, 150 * MS); /* too short for a standstill */
	ck_assert(!hw_blind_now(hw_monitor_blind(w->m)));
	w->swallow = false;
	hw_monitor_barrier(w->m, w->now, 0, sent + 1);
	ck_assert(!hw_blind_now(hw_monitor_blind(w->m)));
	world_beat(w, "a", "{\"online\":false}");
	world_pass(w, 2 * S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert_uint_eq(hw_monitor_stats(w->m)->goodbyes_void, 1);
}
END_TEST

static void expect_blind(const struct world *v, bool blind)
{
	const struct hw_blind *b = hw_monitor_blind(v->m);
	ck_assert_int_eq(hw_blind_now(b), blind);
	ck_assert(!blind || (b->first == HW_CAUSE_BARRIER && b->lossy));
}

/* No barrier can go out: blind after barrier_timeout, from when the first was due, until one is back. */
START_TEST(test_without_a_publisher)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec g = world_group("default", 2000);
	struct world *v = world_new(&conf, &g, 1);
	int64_t timeout = conf.barrier_timeout_ms * MS;
	hw_monitor_link(v->m, v->now, 0, true); /* it is never there */
	world_pass(v, timeout - MS);
	expect_blind(v, false);
	world_pass(v, 2 * MS);
	expect_blind(v, true);
	hw_monitor_publisher(v->m, v->now, true);
	world_pass(v, S);
	expect_blind(v, false);
	world_beat(v, "dead", "");
	world_pass(v, S);
	hw_monitor_publisher(v->m, v->now, false);
	struct hw_mono down = v->now.mono;
	v->swallow = true;
	for (int i = 0; i < 3; i++) { /* it comes, and goes before a barrier is back */
		world_pass(v, timeout / 4);
		expect_blind(v, false);
		hw_monitor_publisher(v->m, v->now, true);
		world_pass(v, MS);
		hw_monitor_publisher(v->m, v->now, false);
	}
	v->swallow = false;
	world_pass(v, timeout / 4 + S);
	expect_blind(v, true);
	ck_assert_int_ge(hw_monitor_blind(v->m)->since.ns, down.ns);
	ck_assert_int_le(hw_monitor_blind(v->m)->since.ns, down.ns + S);
	world_pass(v, 60 * S);
	ck_assert(world_is(v, "dead", HW_STATE_ONLINE));
	hw_monitor_publisher(v->m, v->now, true);
	world_pass(v, 100 * MS);
	expect_blind(v, false);
	world_pass(v, 1800 * MS);
	ck_assert(world_is(v, "dead", HW_STATE_ONLINE)); /* the timeout starts again */
	world_pass(v, timeout); /* by which the clock was put back: the wheel only goes on from there */
	ck_assert(world_is(v, "dead", HW_STATE_OFFLINE));
	world_free(v);
}
END_TEST

/* What the publisher had sent or not when it was lost is not known: both barriers of a pair must be of its next link.
 */
START_TEST(test_barriers_that_were_lost_with_the_publisher_prove_nothing)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec g = world_group("default", 2000);
	struct world *v = world_new(&conf, &g, 1);
	world_connect(v);
	world_pass(v, S);
	world_beat(v, "a", "");
	world_pass(v, 1990 * MS);
	v->swallow = true;
	world_pass(v, 100 * MS);
	uint64_t sent = v->barriers;
	hw_monitor_publisher(v->m, v->now, false);
	hw_monitor_publisher(v->m, v->now, true);
	world_pass(v, 100 * MS);
	ck_assert(world_is(v, "a", HW_STATE_ONLINE));
	ck_assert_uint_gt(v->barriers, sent);
	v->swallow = false;
	hw_monitor_publisher(v->m, v->now, false);
	hw_monitor_publisher(v->m, v->now, true);
	world_pass(v, 200 * MS);
	ck_assert(world_is(v, "a", HW_STATE_OFFLINE));
	world_free(v);
}
END_TEST

/* The first of the pair was back, and the second is lost with the publisher: what never came back proves nothing. */
START_TEST(test_a_second_barrier_that_was_lost_proves_nothing)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec g = world_group("default", 2000);
	struct world *v = world_new(&conf, &g, 1);
	world_connect(v);
	world_pass(v, S);
	v->rtt_ns = 100 * MS;
	world_beat(v, "a", "");
	world_pass(v, 2000 * MS);
	uint64_t sent = v->barriers;
	while (v->barriers < sent + 2) {
		world_pass(v, MS);
		ck_assert(world_is(v, "a", HW_STATE_ONLINE));
	}
	v->n_out = 0;
	hw_monitor_publisher(v->m, v->now, false);
	hw_monitor_publisher(v->m, v->now, true);
	world_pass(v, 150 * MS); /* one round trip, and not two */
	ck_assert(world_is(v, "a", HW_STATE_ONLINE));
	world_pass(v, 150 * MS);
	ck_assert(world_is(v, "a", HW_STATE_OFFLINE));
	world_free(v);
}
END_TEST

/* Connections broke while the machine slept, and the messages of that time are lost: after the grace, the timeouts
 * start again. */
START_TEST(test_silence_counts_anew_after_a_sleep_of_the_machine)
{
	world_beat(w, "a", "");
	world_pass(w, 20 * S);
	hw_monitor_suspended(w->m, w->now, w->now.mono);
	world_pass(w, 15 * S + 29 * S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	world_pass(w, 2 * S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
}
END_TEST

/* The broker has dropped a barrier: then perhaps heartbeats as well, since the last one that came. */
START_TEST(test_a_gap_in_the_barriers_is_a_loss)
{
	world_beat(w, "a", "");
	world_pass(w, 3 * S);
	while (w->n_out == 0) {
		world_beat(w, "b", "");
		w->now.mono.ns += 100 * MS;
		w->now.wall_ms += 100;
		world_drain(w);
	}
	w->n_out = 0;
	for (int k = 0; k < 60; k++) {
		world_beat(w, "b", "");
		world_pass(w, 100 * MS);
	}
	size_t lossy = 0;
	for (size_t k = 0; k < w->n_log; k++)
		lossy += w->log[k].kind == HW_OUT_BLIND && !w->log[k].blind.begun &&
		         w->log[k].blind.cause == HW_CAUSE_LOSS && w->log[k].blind.lossy;
	ck_assert_uint_eq(lossy, 1);
	ck_assert_int_gt(hw_monitor_blind(w->m)->cause_ns[HW_CAUSE_LOSS], 0);
	world_pass(w, 24 * S); /* 33 s after its heartbeat: the timeout has started again */
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
}
END_TEST

/* So long after a barrier was sent, with nothing at all arriving, it is a standstill: not before, and not much later.
 */
static void expect_standstill(int64_t rtt_ns, int64_t after_ns)
{
	w->rtt_ns = rtt_ns;
	for (int k = 0; k < 6000; k++) {
		world_pass(w, 100 * MS);
		world_beat(w, "a", "");
	}
	ck_assert(!hw_blind_now(hw_monitor_blind(w->m)));
	while (w->n_out > 0)
		world_pass(w, MS);
	w->swallow = true;
	uint64_t barriers = w->barriers;
	while (w->barriers == barriers)
		world_pass(w, MS);
	world_pass(w, after_ns * 9 / 10);
	ck_assert(!hw_blind_now(hw_monitor_blind(w->m)));
	world_pass(w, after_ns / 5);
	ck_assert(hw_blind_now(hw_monitor_blind(w->m)));
	ck_assert_int_eq(hw_monitor_blind(w->m)->first, HW_CAUSE_STANDSTILL);
	ck_assert(!hw_monitor_blind(w->m)->lossy);
}

START_TEST(test_a_standstill_takes_four_round_trips)
{
	static const int64_t rtt_ms[] = {1, 60, 100, 300, 600}, after_ms[] = {250, 250, 400, 1200, 2400};
	expect_standstill(rtt_ms[_i] * MS, after_ms[_i] * MS);
}
END_TEST

/* Up to 5 s a pause only lengthens deadlines; beyond it keepalives have lapsed. */
START_TEST(test_how_long_a_pause_is_lossless)
{
	static const int64_t late_ms[] = {1000, 3500, 4900, 5100, 9000};
	for (unsigned k = 0; k < sizeof(late_ms) / sizeof(*late_ms); k++) {
		world_pass(w, 20 * S);
		world_beat(w, "a", "");
		struct hw_mono planned = w->now.mono;
		w->now.mono.ns += late_ms[k] * MS;
		w->now.wall_ms += late_ms[k];
		hw_monitor_stall(w->m, w->now, planned);
		world_drain(w);
		world_beat(w, "a", "");
		hw_monitor_drained(w->m, w->now);
		world_pass(w, 16 * S); /* with the grace */
		ck_assert(!hw_blind_now(hw_monitor_blind(w->m)));
		ck_assert_int_eq(hw_monitor_blind(w->m)->ended_lossy, late_ms[k] > 5000);
	}
}
END_TEST

/* Twice as long after each, from barrier_timeout to a minute. */
START_TEST(test_reconnects_back_off_to_a_minute)
{
	int64_t before = 0, gap_ms = 0;
	size_t n = 0;
	w->swallow = true;
	world_pass(w, 600 * S);
	for (size_t k = 0; k < w->n_log; k++) {
		if (w->log[k].kind != HW_OUT_RECONNECT)
			continue;
		int64_t expected_ms = 5000 * (INT64_C(1) << (n > 0 ? n - 1 : 0));
		gap_ms = (w->log_ns[k] - before) / MS;
		if (n > 0)
			ck_assert_int_eq((gap_ms + 50) / 100, (expected_ms < 60000 ? expected_ms : 60000) / 100);
		before = w->log_ns[k];
		n++;
	}
	ck_assert_int_eq((gap_ms + 50) / 100, 600);
	ck_assert_uint_ge(n, 10);
}
END_TEST

/* Otherwise the keys would expire: all devices are refreshed in a third of the shortest time to live, however many
 * they are. */
START_TEST(test_everybody_is_refreshed_while_blind)
{
	enum { DEVICES = 1500 };
	static unsigned refreshed[DEVICES];
	char id[16];
	for (int k = 0; k < DEVICES; k++) {
		snprintf(id, sizeof(id), "d%d", k);
		world_beat(w, id, "");
	}
	hw_monitor_link(w->m, w->now, 0, false);
	world_drain(w);
	size_t from = w->n_log;
	world_pass(w, 31 * S);
	memset(refreshed, 0, sizeof(refreshed));
	for (size_t k = from; k < w->n_log; k++) {
		if (w->log[k].kind != HW_OUT_REFRESH)
			continue;
		struct hw_id of = hw_device_id(hw_registry_get(hw_monitor_registry(w->m), w->log[k].device));
		snprintf(id, sizeof(id), "%.*s", (int)of.len, of.text);
		if (id[0] == 'd')
			refreshed[atoi(id + 1)]++;
	}
	for (int k = 0; k < DEVICES; k++)
		ck_assert_msg(refreshed[k] >= 1 && refreshed[k] <= 2, "d%d was refreshed %u times", k, refreshed[k]);
}
END_TEST

/* The device `a` sends a heartbeat each `every_ns` for a time, and another device each 100 ms. Returns how often the
 * keys of `a` were refreshed in this time. */
static unsigned refreshes_in(struct world *v, int64_t every_ns, int64_t ns)
{
	unsigned n = 0;
	v->n_log = 0;
	for (int64_t past = 0; past < ns; past += 100 * MS) {
		if (past % every_ns == 0)
			world_beat(v, "a", "");
		world_beat(v, "b", "");
		world_pass(v, 100 * MS);
	}
	uint32_t a = hw_registry_find(hw_monitor_registry(v->m), "a", 1);
	for (size_t k = 0; k < v->n_log; k++)
		n += v->log[k].kind == HW_OUT_REFRESH && v->log[k].device.index == a;
	return n;
}

static struct world *world_of_short_timeouts(void)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec group = world_group("default", 1000);
	struct world *v = world_new(&conf, &group, 1);
	world_connect(v);
	return v;
}

/* A device that sends a little late is a suspect, and its barriers are late, too: its keys are refreshed all the same.
 */
START_TEST(test_keys_live_while_barriers_are_late)
{
	struct world *v = world_of_short_timeouts();
	ck_assert_uint_ge(refreshes_in(v, 100 * MS, 8 * S), 4);
	v->swallow = true;
	refreshes_in(v, 1100 * MS, 1100 * MS);
	ck_assert_uint_ge(refreshes_in(v, 1100 * MS, 2200 * MS), 1);
	ck_assert(!hw_blind_now(hw_monitor_blind(v->m)) && world_is(v, "a", HW_STATE_ONLINE));
	world_free(v);
}
END_TEST

/* The barriers of four seconds are lost, which the monitor notices only when a later one comes back. The seeing clock
 * goes back, and the wheel waits for as long: the keys of a device that sends are refreshed all the same. */
START_TEST(test_keys_live_while_the_wheel_waits)
{
	struct world *v = world_of_short_timeouts();
	ck_assert_uint_ge(refreshes_in(v, 100 * MS, 8 * S), 4);
	v->swallow = true;
	refreshes_in(v, 100 * MS, 4 * S);
	v->swallow = false;
	hw_monitor_barrier(v->m, v->now, 0, hw_monitor_stats(v->m)->barriers_sent);
	ck_assert(hw_monitor_blind(v->m)->ended_lossy);
	ck_assert_uint_ge(refreshes_in(v, 100 * MS, 3500 * MS), 1);
	ck_assert(!hw_blind_now(hw_monitor_blind(v->m)) && world_is(v, "a", HW_STATE_ONLINE));
	world_free(v);
}
END_TEST

/* The upstream of a group has just returned, so a goodbye is held for the grace, which is longer than the keys live.
 * The device sends again: its keys are refreshed all the same. */
START_TEST(test_keys_live_after_a_goodbye_that_was_held)
{
	static const char *const whiles[] = {"br 1"};
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec group = world_group("default", 1000);
	conf.grace_ms = 15000;
	group.whiles = whiles;
	group.n_whiles = 1;
	struct world *v = world_new(&conf, &group, 1);
	world_connect(v);
	world_say(v, "br", "1", false);
	world_pass(v, 20 * S);
	ck_assert_uint_ge(refreshes_in(v, 100 * MS, 8 * S), 4);
	world_say(v, "br", "0", false);
	world_pass(v, S);
	world_say(v, "br", "1", false);
	world_beat(v, "a", "{\"online\":false}");
	ck_assert(world_device(v, "a")->flags & HW_FLAG_HELD);
	ck_assert_uint_ge(refreshes_in(v, 100 * MS, 10 * S), 4);
	ck_assert(world_is(v, "a", HW_STATE_ONLINE) && hw_monitor_blindness(v->m).blind);
	world_free(v);
}
END_TEST

/* The pair of a suspect is back, but the loop stood still meanwhile: the device is judged when the sockets are read
 * empty, because its heartbeat may wait there. */
START_TEST(test_no_suspect_is_judged_in_a_stall)
{
	struct world *v = world_of_short_timeouts();
	world_pass(v, 8 * S);
	world_beat(v, "a", "");
	world_pass(v, 900 * MS);
	v->swallow = true;
	uint64_t sent = hw_monitor_stats(v->m)->barriers_sent;
	world_pass(v, 300 * MS); /* it is a suspect now */
	uint64_t first = hw_monitor_stats(v->m)->barriers_sent;
	ck_assert_uint_gt(first, sent);
	for (uint64_t n = sent + 1; n <= first; n++)
		hw_monitor_barrier(v->m, v->now, 0, n);
	world_drain(v);
	uint64_t second = hw_monitor_stats(v->m)->barriers_sent;
	ck_assert_uint_gt(second, first);
	hw_monitor_stall(v->m, v->now, (struct hw_mono){v->now.mono.ns - 10 * MS});
	for (uint64_t n = first + 1; n <= second; n++)
		hw_monitor_barrier(v->m, v->now, 0, n);
	world_drain(v);
	ck_assert(world_is(v, "a", HW_STATE_ONLINE));
	hw_monitor_drained(v->m, v->now);
	v->swallow = false;
	world_pass(v, 2 * S);
	ck_assert(world_is(v, "a", HW_STATE_OFFLINE));
	world_free(v);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("evidence");
	TCase *tc = tcase_create("rules");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 20);
	tcase_add_test(tc, test_a_new_timeout_is_stored_at_once);
	tcase_add_test(tc, test_a_pair_proves_only_what_was_sent_before_it);
	tcase_add_test(tc, test_barriers_that_waited_side_by_side_prove_nothing);
	tcase_add_loop_test(tc, test_who_waits_in_turn_shares_barriers, 0, 6);
	tcase_add_test(tc, test_every_period_is_told);
	tcase_add_test(tc, test_a_short_pause_does_not_begin_a_grace_anew);
	tcase_add_test(tc, test_a_heartbeat_that_is_read_late_counts_from_then);
	tcase_add_test(tc, test_a_stall_is_not_the_brokers_silence);
	tcase_add_test(tc, test_a_stall_is_no_round_trip);
	tcase_add_test(tc, test_a_connection_is_given_up_blind);
	tcase_add_test(tc, test_refused_barriers_blind_after_a_barrier_timeout);
	tcase_add_test(tc, test_due_knows_when_barriers_count_as_denied);
	tcase_add_test(tc, test_barriers_that_stay_out_while_devices_are_heard);
	tcase_add_test(tc, test_the_grace_after_denied_barriers_ends);
	tcase_add_test(tc, test_a_standstill_began_when_something_came_last);
	tcase_add_test(tc, test_silence_counts_anew_after_a_sleep_of_the_machine);
	tcase_add_test(tc, test_without_a_publisher);
	tcase_add_test(tc, test_barriers_that_were_lost_with_the_publisher_prove_nothing);
	tcase_add_test(tc, test_a_second_barrier_that_was_lost_proves_nothing);
	tcase_add_test(tc, test_a_gap_in_the_barriers_is_a_loss);
	tcase_add_loop_test(tc, test_a_standstill_takes_four_round_trips, 0, 5);
	tcase_add_test(tc, test_how_long_a_pause_is_lossless);
	tcase_add_test(tc, test_reconnects_back_off_to_a_minute);
	tcase_add_test(tc, test_a_silent_connection_of_barriers_blinds);
	tcase_add_test(tc, test_a_slow_broker_does_not_blind);
	tcase_add_test(tc, test_everybody_is_refreshed_while_blind);
	tcase_add_test(tc, test_keys_live_while_barriers_are_late);
	tcase_add_test(tc, test_keys_live_while_the_wheel_waits);
	tcase_add_test(tc, test_keys_live_after_a_goodbye_that_was_held);
	tcase_add_test(tc, test_no_suspect_is_judged_in_a_stall);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

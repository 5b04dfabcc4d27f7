/* SPDX-License-Identifier: MIT */
/* The evidence rule where it is least obvious: what a simulation of many troubles at once has found. */
#include "world.h"

static struct world *w;

static void setup(void)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec g = world_group("default", 30000);
	conf.grace_ms = 15000;
	w = world_new(&conf, &g, 1);
	world_connect(w);
	world_pass(w, 16 * S);
	ck_assert(!hw_blind_now(hw_monitor_blind(w->m)));
}

static void teardown(void)
{
	world_free(w);
}

static void load(struct world *v, const char *id, int64_t last_seen_ms, int64_t own_timeout_ms)
{
	struct hw_stored s = {.id = id,
	                      .id_len = strlen(id),
	                      .state = HW_STATE_ONLINE,
	                      .seq = 5,
	                      .last_seen_ms = last_seen_ms,
	                      .own_timeout_ms = own_timeout_ms};
	ck_assert_int_eq(hw_monitor_load(v->m, v->now, &s), 0);
}

/* The age of what is stored may be blindness or a step of the wall clock: one timeout of sight is left in any case. */
START_TEST(test_a_stored_device_has_one_timeout_to_be_heard)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec g = world_group("default", 30000);
	conf.loading = true;
	struct world *v = world_new(&conf, &g, 1);
	load(v, "beats", v->now.wall_ms - 86400000, 0);
	load(v, "sleeps", v->now.wall_ms - 86400000, 300000);
	load(v, "dead", v->now.wall_ms - 86400000, 0);
	hw_monitor_loaded(v->m);
	world_connect(v);
	world_pass(v, 29 * S);
	ck_assert_uint_eq(world_count(v, HW_OUT_TRANSITION, HW_STATE_OFFLINE), 0);
	world_beat(v, "beats", "");
	world_pass(v, 2 * S);
	ck_assert(world_is(v, "dead", HW_STATE_OFFLINE));
	ck_assert(world_is(v, "beats", HW_STATE_ONLINE));
	world_pass(v, 268 * S);
	ck_assert(world_is(v, "sleeps", HW_STATE_ONLINE));
	world_pass(v, 2 * S);
	ck_assert(world_is(v, "sleeps", HW_STATE_OFFLINE));
	world_free(v);
}
END_TEST

/* Redis may come late; the blindness there was since the run began is no silence. */
START_TEST(test_loaded_late)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec g = world_group("default", 30000);
	struct world *v = world_new(&conf, &g, 1);
	world_connect(v);
	for (int k = 0; k < 5; k++) {
		world_pass(v, 5 * S);
		hw_monitor_link(v->m, v->now, 0, false);
		v->n_out = 0;
		world_pass(v, 100 * S);
		hw_monitor_link(v->m, v->now, 0, true);
	}
	load(v, "a", v->now.wall_ms, 0);
	world_pass(v, 29 * S);
	ck_assert(world_is(v, "a", HW_STATE_ONLINE));
	world_pass(v, 2 * S);
	ck_assert(world_is(v, "a", HW_STATE_OFFLINE));
	world_free(v);
}
END_TEST

/* A sleeper that wakes before its record is read says so once. */
START_TEST(test_what_is_said_in_the_load_goes_over_what_is_stored)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec g = world_group("default", 30000);
	conf.loading = true;
	struct world *v = world_new(&conf, &g, 1);
	world_connect(v);
	world_beat(v, "woke", "{\"timeout\":0}");
	world_beat(v, "naps", "{\"timeout\":400}");
	world_beat(v, "silent", "");
	world_beat(v, "new", "{\"timeout\":0}");
	load(v, "woke", v->now.wall_ms, 310000);
	load(v, "naps", v->now.wall_ms, 310000);
	load(v, "silent", v->now.wall_ms, 310000);
	hw_monitor_loaded(v->m);
	world_drain(v);
	ck_assert_int_eq(hw_monitor_timeout_ms(v->m, world_device(v, "woke")), 30000);
	ck_assert_int_eq(world_device(v, "woke")->extra->own_timeout_ms, 0);
	ck_assert_int_eq(world_device(v, "new")->extra->own_timeout_ms, 0);
	ck_assert_int_eq(hw_monitor_timeout_ms(v->m, world_device(v, "naps")), 400000);
	ck_assert_int_eq(hw_monitor_timeout_ms(v->m, world_device(v, "silent")), 310000);
	world_free(v);
}
END_TEST

/* Otherwise a monitor that is started again in a sleeper's nap would take it offline. */
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
	for (int k = 53; k <= 120; k++) {
		world_until(v, at + k * 100 * MS);
		world_beat(v, "b", "");
		if (k < 93) /* 5.2 + 1 s is the deadline, and then a pair of 3 s */
			ck_assert(world_is(v, "a", HW_STATE_ONLINE));
	}
	ck_assert(world_is(v, "a", HW_STATE_OFFLINE));
	world_free(v);
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

/* What is over when it is found out has a begin and an end like any other. */
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
	/* One ends and another begins before anybody is told: two of each, with the right causes and lengths. */
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

/* Or else short pauses, each in the grace of the one before, would blind for ever. */
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
	/* A long one in the grace does begin it anew; one that outlasts it ends it. */
	stall(6 * S);
	world_pass(w, 10 * S);
	stall(6 * S);
	world_pass(w, 14 * S);
	ck_assert(hw_blind_now(hw_monitor_blind(w->m)));
	stall(2 * S);
	ck_assert(!hw_blind_now(hw_monitor_blind(w->m)));
}
END_TEST

/* What did not come while the monitor itself stood still says nothing of the broker. */
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

/* A barrier that waited for the monitor itself says nothing of the broker's pace. */
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

/* It lies between two attempts to open the connection anew. */
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

/* A broker that stood still publishes wills of clients that live, before anything else; how long it stood is known only
 * from when a barrier was sent. */
START_TEST(test_goodbyes_after_a_standstill_are_doubted)
{
	world_beat(w, "a", "");
	world_beat(w, "b", "");
	world_pass(w, 8 * S);
	w->swallow = true; /* the broker stands */
	while (!hw_blind_now(hw_monitor_blind(w->m)))
		world_pass(w, 100 * MS);
	uint64_t out = hw_monitor_stats(w->m)->barriers_sent;
	ck_assert_int_eq(hw_monitor_blind(w->m)->first, HW_CAUSE_STANDSTILL);
	w->swallow = false;
	w->n_log = 0;
	world_beat(w, "a", "{\"online\":false}");
	ck_assert(!hw_blind_now(hw_monitor_blind(w->m)));
	ck_assert_uint_eq(hw_monitor_stats(w->m)->goodbyes_void, 1);
	ck_assert_uint_eq(world_count(w, HW_OUT_STATUS, 0), 1);
	hw_monitor_barrier(w->m, w->now, 0, out);
	world_pass(w, 2 * S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	world_beat(w, "b", "{\"online\":false}");
	world_pass(w, 2 * S);
	ck_assert(world_is(w, "b", HW_STATE_OFFLINE));
}
END_TEST

/* A goodbye, then whatever the broker sends back: is it believed? */
static bool believed(struct world *v, const char *id)
{
	world_beat(v, id, "");
	world_beat(v, id, "{\"online\":false}");
	world_pass(v, S);
	return world_is(v, id, HW_STATE_OFFLINE);
}

START_TEST(test_goodbyes_are_doubted_after_what_may_hide_a_standstill)
{
	struct hw_monitor_conf conf = world_conf(); /* without a grace */
	struct hw_group_spec g = world_group("default", 30000);
	struct world *v = world_new(&conf, &g, 1);
	world_connect(v);
	world_pass(v, 7 * S);
	ck_assert(believed(v, "a"));
	hw_monitor_suspended(v->m, v->now, v->now.mono);
	ck_assert(!hw_blind_now(hw_monitor_blind(v->m)));
	ck_assert(!believed(v, "b"));
	world_pass(v, 5 * S); /* a steady barrier is back */
	ck_assert(believed(v, "c"));
	int64_t planned = v->now.mono.ns;
	v->now.mono.ns += 6 * S;
	hw_monitor_stall(v->m, v->now, (struct hw_mono){planned});
	hw_monitor_drained(v->m, v->now);
	ck_assert(!hw_blind_now(hw_monitor_blind(v->m)));
	world_beat(v, "d", "");
	world_beat(v, "d", "{\"online\":false}");
	ck_assert_uint_eq(hw_monitor_stats(v->m)->goodbyes_void, 2);
	world_pass(v, 6 * S);
	hw_monitor_publisher(v->m, v->now, false);
	world_beat(v, "e", "");
	world_beat(v, "e", "{\"online\":false}");
	ck_assert_uint_eq(hw_monitor_stats(v->m)->goodbyes_void, 3);
	hw_monitor_publisher(v->m, v->now, true);
	world_pass(v, 6 * S);
	ck_assert(world_is(v, "e", HW_STATE_ONLINE));
	ck_assert(believed(v, "f"));
	world_free(v);
}
END_TEST

/* A short standstill does not end the doubts that a long stall has left. */
START_TEST(test_doubts_do_not_shrink)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec g = world_group("default", 30000);
	struct world *v = world_new(&conf, &g, 1);
	world_connect(v);
	world_pass(v, 7 * S);
	world_beat(v, "a", "");
	int64_t planned = v->now.mono.ns;
	v->now.mono.ns += 6 * S;
	hw_monitor_stall(v->m, v->now, (struct hw_mono){planned});
	hw_monitor_drained(v->m, v->now);
	v->swallow = true;
	world_drain(v);
	while (!hw_blind_now(hw_monitor_blind(v->m)))
		world_pass(v, 100 * MS);
	hw_monitor_barrier(v->m, v->now, 0, hw_monitor_stats(v->m)->barriers_sent);
	world_drain(v);
	ck_assert(!hw_blind_now(hw_monitor_blind(v->m)));
	world_beat(v, "a", "{\"online\":false}");
	ck_assert_uint_eq(hw_monitor_stats(v->m)->goodbyes_void, 1);
	world_free(v);
}
END_TEST

START_TEST(test_a_goodbye_in_the_load_proves_nothing_of_who_was_heard)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec g = world_group("default", 30000);
	conf.loading = true;
	struct world *v = world_new(&conf, &g, 1);
	world_beat(v, "heard", "");
	world_beat(v, "heard", "{\"online\":false}"); /* the broker ends */
	world_beat(v, "only", "{\"online\":false}");
	hw_monitor_loaded(v->m);
	world_drain(v);
	ck_assert(world_is(v, "heard", HW_STATE_ONLINE));
	ck_assert(world_is(v, "only", HW_STATE_OFFLINE));
	ck_assert_uint_eq(hw_monitor_stats(v->m)->goodbyes_void, 1);
	world_connect(v);
	world_pass(v, 31 * S); /* left to its timeout */
	ck_assert(world_is(v, "heard", HW_STATE_OFFLINE));
	ck_assert_int_eq(world_last(v, NULL)->reason, HW_REASON_TIMEOUT);
	world_free(v);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("evidence");
	TCase *t = tcase_create("rules");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 20);
	tcase_add_test(t, test_a_stored_device_has_one_timeout_to_be_heard);
	tcase_add_test(t, test_loaded_late);
	tcase_add_test(t, test_what_is_said_in_the_load_goes_over_what_is_stored);
	tcase_add_test(t, test_a_new_timeout_is_stored_at_once);
	tcase_add_test(t, test_a_pair_proves_only_what_was_sent_before_it);
	tcase_add_test(t, test_every_period_is_told);
	tcase_add_test(t, test_a_short_pause_does_not_begin_a_grace_anew);
	tcase_add_test(t, test_a_stall_is_not_the_brokers_silence);
	tcase_add_test(t, test_a_stall_is_no_round_trip);
	tcase_add_test(t, test_a_connection_is_given_up_blind);
	tcase_add_test(t, test_due_knows_when_barriers_count_as_denied);
	tcase_add_test(t, test_the_grace_after_denied_barriers_ends);
	tcase_add_test(t, test_goodbyes_after_a_standstill_are_doubted);
	tcase_add_test(t, test_goodbyes_are_doubted_after_what_may_hide_a_standstill);
	tcase_add_test(t, test_doubts_do_not_shrink);
	tcase_add_test(t, test_a_goodbye_in_the_load_proves_nothing_of_who_was_heard);
	suite_add_tcase(s, t);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

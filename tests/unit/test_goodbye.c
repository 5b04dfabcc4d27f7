/* SPDX-License-Identifier: MIT */
/* Goodbyes: what they cause, and when they are doubted: after all events that may hide a later heartbeat. */
#include "../suite.h"
#include "world.h"

static struct world *w;

static void setup(void)
{
	struct hw_monitor_conf conf = world_conf();
	w = world_of_one(&conf);
	world_connect(w);
}

static void setup_after_grace(void)
{
	w = world_past_grace();
}

static void teardown(void)
{
	world_free(w);
}

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
	ck_assert(hw_device_report(world_device(w, "a")).battery == 49);
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
	ck_assert_int_ge(at, up + 30 * S); /* a lost connection is lossy: the timeout starts again */
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

/* Two clients with one id disconnect each other again and again, and each of them is heard. */
START_TEST(test_goodbyes_put_no_refresh_off)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec g = world_group("default", 30000);
	g.goodbye_delay_ms = 2000 * _i;
	world_free(w);
	w = world_new(&conf, &g, 1);
	world_connect(w);
	world_beat(w, "a", "");
	for (unsigned k = 1; k <= 3; k++) {
		for (int n = 0; n < 20; n++) {
			world_beat(w, "a", "{\"online\":false}");
			world_beat(w, "a", "");
			world_pass(w, 1500 * MS);
		}
		ck_assert_uint_ge(world_count(w, HW_OUT_REFRESH, 0), k);
	}
	ck_assert_uint_eq(world_count(w, HW_OUT_TRANSITION, HW_STATE_OFFLINE), 0);
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
	world_pass(w, 11 * S); /* two barriers in their pace */
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	world_beat(w, "b", "{\"online\":false}");
	world_pass(w, 2 * S);
	ck_assert(world_is(w, "b", HW_STATE_OFFLINE));
}
END_TEST

/* A goodbye, and then all that the broker returns: is the goodbye believed? */
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
	struct world *v = world_of_one(&conf);
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

/* A world with two readers, of which world_beat() uses the first. */
static struct world *world_of_two_readers(void)
{
	struct hw_monitor_conf conf = world_conf();
	conf.readers = 2;
	struct world *v = world_of_one(&conf);
	world_connect(v);
	hw_monitor_link(v->m, v->now, 1, true);
	return v;
}

/* Time passes in which the second reader's barriers return at once as well. */
static void pass_for_both(struct world *v, int64_t ns, uint64_t *sent)
{
	for (int64_t end = v->now.mono.ns + ns; v->now.mono.ns < end;) {
		world_pass(v, 10 * MS);
		for (; *sent < hw_monitor_stats(v->m)->barriers_sent; ++*sent)
			hw_monitor_barrier(v->m, v->now, 1, *sent + 1);
	}
}

/* What the slow reader reads may be older than what the other has read: seed 505502 of the simulation. */
START_TEST(test_a_goodbye_is_held_while_another_reader_is_behind)
{
	struct world *v = world_of_two_readers();
	uint64_t sent = 0;
	pass_for_both(v, 7 * S, &sent);
	world_beat(v, "before", "");
	pass_for_both(v, 80 * MS, &sent); /* a barrier shows that all later messages are newer */
	world_beat(v, "a", "");
	world_beat(v, "b", "");
	while (hw_monitor_stats(v->m)->barriers_sent == sent)
		world_pass(v, 10 * MS);
	world_pass(v, 100 * MS); /* this one does not come back on the second reader */
	ck_assert(!hw_blind_now(hw_monitor_blind(v->m)));
	world_beat(v, "a", "{\"online\":false}");
	world_beat(v, "b", "{\"online\":false}");
	world_beat(v, "before", "{\"online\":false}");
	ck_assert_uint_eq(hw_monitor_stats(v->m)->goodbyes_void, 0);
	int64_t said = v->now.mono.ns;
	pass_for_both(v, 2 * S, &sent);
	ck_assert(world_is(v, "before", HW_STATE_OFFLINE)); /* heard before a barrier that both have brought back */
	ck_assert(world_is(v, "a", HW_STATE_ONLINE));
	world_beat(v, "b", "");
	ck_assert_uint_eq(hw_monitor_stats(v->m)->goodbyes_void, 1);
	pass_for_both(v, 15 * S, &sent);
	int64_t at;
	ck_assert_int_eq(world_last(v, &at)->reason, HW_REASON_WILL);
	ck_assert_int_ge(at, said + 15 * S); /* half its timeout */
	ck_assert(world_is(v, "a", HW_STATE_OFFLINE) && world_is(v, "b", HW_STATE_ONLINE));
	world_free(v);
}
END_TEST

/* Either may be the older one until a barrier that was sent after the heartbeat is back. Such a barrier is sent 50 ms
 * after the last one. */
START_TEST(test_a_goodbye_right_behind_a_heartbeat_is_held)
{
	struct world *v = world_of_two_readers();
	uint64_t sent = 0;
	pass_for_both(v, 7 * S, &sent);
	world_beat(v, "a", "");
	world_beat(v, "b", "");
	pass_for_both(v, 40 * MS, &sent);
	world_beat(v, "a", "{\"online\":false}");
	pass_for_both(v, 40 * MS, &sent);
	world_beat(v, "b", "{\"online\":false}");
	pass_for_both(v, 14 * S, &sent);
	ck_assert(world_is(v, "a", HW_STATE_ONLINE) && world_is(v, "b", HW_STATE_OFFLINE));
	ck_assert_uint_eq(hw_monitor_stats(v->m)->goodbyes_void, 0);
	pass_for_both(v, 2 * S, &sent);
	ck_assert(world_is(v, "a", HW_STATE_OFFLINE));
	ck_assert_int_eq(world_last(v, NULL)->reason, HW_REASON_WILL);
	world_free(v);
}
END_TEST

/* The broker queues a last will of QoS 1, and delivers the QoS 0 messages of the device's next connection first. A
 * barrier waits in the queue too. */
START_TEST(test_a_goodbye_of_qos_1_that_was_overtaken_is_held)
{
	struct hw_monitor_conf conf = world_conf();
	conf.qos = (unsigned)_i;
	struct world *v = world_of_one(&conf);
	world_connect(v);
	world_pass(v, 7 * S);
	world_beat(v, "before", "");
	world_pass(v, 80 * MS);
	v->swallow = true;
	uint64_t back = hw_monitor_stats(v->m)->barriers_sent;
	world_beat(v, "a", "");
	world_pass(v, 120 * MS);
	world_beat(v, "a", "{\"online\":false}");
	world_beat(v, "before", "{\"online\":false}");
	v->swallow = false;
	while (back < hw_monitor_stats(v->m)->barriers_sent)
		hw_monitor_barrier(v->m, v->now, 0, ++back);
	world_pass(v, 1 * S);
	ck_assert(world_is(v, "before", HW_STATE_OFFLINE));
	ck_assert(world_is(v, "a", _i ? HW_STATE_ONLINE : HW_STATE_OFFLINE));
	world_beat(v, "a", "");
	world_pass(v, 20 * S);
	ck_assert(world_is(v, "a", HW_STATE_ONLINE));
	world_free(v);
}
END_TEST

/* A short standstill does not end the doubts that a long stall has left. */
START_TEST(test_doubts_do_not_shrink)
{
	struct hw_monitor_conf conf = world_conf();
	struct world *v = world_of_one(&conf);
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
	conf.loading = true;
	struct world *v = world_of_one(&conf);
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

/* A session that dies, and its gateway, may both say it: the first goodbye is judged when its own pair is back. */
START_TEST(test_a_goodbye_said_again_is_not_put_off)
{
	w->rtt_ns = 100 * MS;
	world_beat(w, "a", "");
	world_pass(w, S);
	int64_t began = w->now.mono.ns, at;
	for (int k = 0; k < 20; k++) {
		world_beat(w, "a", "{\"online\":false}");
		world_pass(w, 50 * MS);
	}
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	ck_assert_int_eq(world_last(w, &at)->reason, HW_REASON_WILL);
	ck_assert_int_le(at, began + 300 * MS);
}
END_TEST

/* The goodbye may have been published on the topic of our retained status. */
START_TEST(test_a_goodbye_of_who_is_offline_has_its_status_told_again)
{
	world_beat(w, "a", "");
	world_pass(w, 31 * S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	size_t told = world_count(w, HW_OUT_STATUS, 0);
	world_beat(w, "a", "{\"online\":false}");
	ck_assert_uint_eq(world_count(w, HW_OUT_STATUS, 0), told + 1);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
}
END_TEST

/* One that turns out to be void leaves the deadline where the last heartbeat had put it: what was blind is added alone.
 */
START_TEST(test_a_goodbye_is_no_sign_of_life)
{
	world_beat(w, "a", "");
	int64_t beat = w->now.mono.ns, at;
	world_pass(w, 20 * S);
	world_beat(w, "a", "{\"online\":false}");
	hw_monitor_stall(w->m, w->now, w->now.mono); /* before its barriers are back */
	w->now.mono.ns += S;
	w->now.wall_ms += 1000;
	hw_monitor_drained(w->m, w->now);
	world_pass(w, 10 * S - 100 * MS);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->goodbyes_void, 1);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	world_pass(w, S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	ck_assert_int_eq(world_last(w, &at)->reason, HW_REASON_TIMEOUT);
	ck_assert_int_ge(at, beat + 31 * S);
	ck_assert_int_le(at, beat + 31 * S + 100 * MS);
}
END_TEST

/* The record counts blind periods modulo 64: as many as that since the goodbye are blindness all the same. */
START_TEST(test_a_held_goodbye_and_64_blind_periods)
{
	struct world *v = world_of_two_readers();
	uint64_t sent = 0;
	pass_for_both(v, 7 * S, &sent);
	world_beat(v, "a", "");
	world_pass(v, 4 * MS);
	world_beat(v, "a", "{\"online\":false}");
	uint64_t periods = hw_monitor_blind(v->m)->periods;
	for (int k = 0; k < 64; k++) {
		hw_monitor_link(v->m, v->now, 1, false);
		pass_for_both(v, 10 * MS, &sent);
		hw_monitor_link(v->m, v->now, 1, true);
		pass_for_both(v, 20 * MS, &sent);
	}
	ck_assert_uint_eq(hw_monitor_blind(v->m)->periods, periods + 64);
	pass_for_both(v, 20 * S, &sent);
	ck_assert(world_is(v, "a", HW_STATE_ONLINE));
	world_free(v);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("goodbye");
	TCase *tc = tcase_create("rules");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 20);
	tcase_add_test(tc, test_goodbye);
	tcase_add_test(tc, test_goodbye_is_void_after_a_heartbeat);
	tcase_add_test(tc, test_goodbye_is_void_after_blindness);
	tcase_add_test(tc, test_first_message_is_a_goodbye);
	tcase_add_test(tc, test_goodbye_delay);
	tcase_add_loop_test(tc, test_goodbyes_put_no_refresh_off, 0, 2);
	suite_add_tcase(suite, tc);
	tc = tcase_create("doubts");
	tcase_add_checked_fixture(tc, setup_after_grace, teardown);
	tcase_set_timeout(tc, 20);
	tcase_add_test(tc, test_goodbyes_after_a_standstill_are_doubted);
	tcase_add_test(tc, test_goodbyes_are_doubted_after_what_may_hide_a_standstill);
	tcase_add_test(tc, test_a_goodbye_is_held_while_another_reader_is_behind);
	tcase_add_test(tc, test_a_goodbye_right_behind_a_heartbeat_is_held);
	tcase_add_test(tc, test_a_held_goodbye_and_64_blind_periods);
	tcase_add_test(tc, test_doubts_do_not_shrink);
	tcase_add_loop_test(tc, test_a_goodbye_of_qos_1_that_was_overtaken_is_held, 0, 2);
	tcase_add_test(tc, test_a_goodbye_said_again_is_not_put_off);
	tcase_add_test(tc, test_a_goodbye_of_who_is_offline_has_its_status_told_again);
	tcase_add_test(tc, test_a_goodbye_is_no_sign_of_life);
	tcase_add_test(tc, test_a_goodbye_in_the_load_proves_nothing_of_who_was_heard);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

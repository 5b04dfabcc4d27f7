/* SPDX-License-Identifier: MIT */
/* Canaries: which filters have them, what is reported when they are missing, and how filters are judged on which none
 * ever came back. */
#include "../suite.h"
#include "hearing_world.h"

static struct world *w;

static void setup(void)
{
	w = hearing_world(10000, true);
	world_connect(w);
	world_pass(w, S);
}

static void teardown(void)
{
	world_free(w);
}

static size_t told(enum hw_out_kind kind)
{
	return world_count(w, kind, 0);
}

START_TEST(test_a_canary_on_every_filter_after_the_subscription)
{
	ck_assert_uint_eq(w->canaries, 3);
	ck_assert_uint_eq(told(HW_OUT_CANARY_MISSING), 0);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->refused[HW_REFUSED_MONITOR], 0);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->heartbeats, 0);
	ck_assert_ptr_null(world_device(w, "heartwheel-w"));
	hw_monitor_link(w->m, w->now, 0, false);
	world_pass(w, S);
	hw_monitor_link(w->m, w->now, 0, true);
	world_pass(w, S);
	ck_assert_uint_eq(w->canaries, 6);
}
END_TEST

/* A connected world with one group of this many filters. */
static struct world *world_of_filters(int n)
{
	static char text[250][32];
	static const char *filter[250];
	struct hw_monitor_conf conf = hearing_conf();
	struct hw_group_spec g = world_group("many", 10000);
	for (int k = 0; k < n; k++) {
		snprintf(text[k], sizeof(text[k]), "filter/number/%d/{id}", k);
		filter[k] = text[k];
	}
	g.heartbeat = filter;
	g.n_heartbeat = (size_t)n;
	g.status = "filter/status/{id}";
	g.canary = true;
	struct world *v = world_new(&conf, &g, 1);
	world_connect(v);
	return v;
}

/* The bytes of canaries that are under way. */
static size_t canary_bytes(const struct world *v)
{
	size_t n = 0;
	for (int k = 0; k < v->n_out; k++)
		if (v->out[k].topic[0])
			n += strlen(v->out[k].topic) +
			     strlen("{\"by\":\"w\",\"seq\":1700000000000000,\"canary\":true}") + 7;
	return n;
}

/* Canaries share a connection with barriers: less than 4 KiB of them may be before a barrier. */
START_TEST(test_few_canaries_are_out_at_once)
{
	struct world *v = world_of_filters(250);
	int64_t began = v->now.mono.ns;
	v->rtt_ns = 5 * MS;
	ck_assert_uint_lt(canary_bytes(v), 4096);
	for (int k = 0; k < 1000 && v->canaries < 250; k++) {
		world_pass(v, MS);
		ck_assert_uint_lt(canary_bytes(v), 4096);
	}
	ck_assert_uint_eq(v->canaries, 250);
	ck_assert_int_le(v->now.mono.ns - began, 250 * MS); /* the next ones go out soon */
	world_pass(v, S);
	ck_assert_uint_eq(v->canaries, 250);
	world_free(v);
}
END_TEST

/* However many filters a group has, and while another of its devices sends on one of them. */
START_TEST(test_a_death_among_many_filters)
{
	static const int n[] = {1, 16, 40, 250};
	struct world *v = world_of_filters(n[_i]);
	world_pass(v, S);
	world_say(v, "filter/number/0/a", "", false);
	for (int k = 0; k < 100 && !world_is(v, "a", HW_STATE_OFFLINE); k++) {
		ck_assert_int_lt(k, 90);
		world_say(v, "filter/number/0/b", "", false);
		world_pass(v, 20 * MS);
		if (k == 20)
			world_say(v, "filter/number/0/a", "{\"online\":false}", false);
	}
	ck_assert(world_is(v, "a", HW_STATE_OFFLINE));
	world_free(v);
}
END_TEST

/* What stands on it would be somebody else's message: others read it there, and cannot know that it is not theirs. */
START_TEST(test_no_canary_on_a_filter_that_is_a_topic)
{
	static const char *const literal[] = {"frigate/stats", "frigate/events"};
	struct hw_monitor_conf conf = hearing_conf();
	struct hw_group_spec g = {.name = "frigate",
	                          .heartbeat = literal,
	                          .n_heartbeat = 2,
	                          .id = "frigate",
	                          .timeout_ms = 10000,
	                          .timeout_max_ms = 86400000,
	                          .format = HW_FORMAT_PLAIN,
	                          .canary = true};
	struct world *v = world_new(&conf, &g, 1);
	world_connect(v);
	world_say(v, "frigate/stats", "{}", false);
	world_pass(v, 9 * S);
	ck_assert_uint_eq(world_count(v, HW_OUT_TRANSITION, HW_STATE_ONLINE), 1);
	ck_assert_uint_eq(world_count(v, HW_OUT_TRANSITION, HW_STATE_OFFLINE), 0);
	world_pass(v, 2 * S);
	ck_assert_uint_eq(world_count(v, HW_OUT_TRANSITION, HW_STATE_OFFLINE), 1);
	hw_monitor_link(v->m, v->now, 0, false);
	world_pass(v, S);
	hw_monitor_link(v->m, v->now, 0, true);
	world_pass(v, 60 * S);
	ck_assert_uint_eq(v->canaries, 0);
	ck_assert_uint_eq(world_count(v, HW_OUT_CANARY, 0), 0);
	ck_assert_uint_eq(world_count(v, HW_OUT_CANARY_MISSING, 0), 0);
	world_free(v);
}
END_TEST

START_TEST(test_a_missing_right_is_told_within_seconds_and_once)
{
	struct world *v = hearing_world(10000, true);
	v->deny = "nodes/";
	world_connect(v);
	world_pass(v, 12 * S);
	ck_assert_uint_eq(world_count(v, HW_OUT_CANARY_MISSING, 0), 2);
	world_pass(v, 100 * S);
	ck_assert_uint_eq(world_count(v, HW_OUT_CANARY_MISSING, 0), 2);
	ck_assert(!hw_monitor_blindness(v->m).blind);
	world_free(v);
}
END_TEST

START_TEST(test_a_refused_canary_is_told_soon)
{
	struct world *v = hearing_world(10000, true);
	v->deny = "heartbeat";
	world_connect(v);
	hw_monitor_canary_answer(v->m, 0, 0, HW_CANARY_REFUSED);
	world_pass(v, 5 * S);
	ck_assert_uint_eq(world_count(v, HW_OUT_CANARY_MISSING, 0), 1);
	world_free(v);
}
END_TEST

/* No canary can be had: three timeouts, at least 30 s, after the filter brought something last. */
START_TEST(test_without_a_canary_silence_is_believed_in_the_end)
{
	struct world *v = hearing_world(15000, _i == 0);
	int64_t at;
	v->deny = "nodes";
	world_connect(v);
	world_pass(v, 60 * S);
	for (int k = 0; k < 20; k++) {
		world_beat(v, "a", "");
		world_beat(v, "b", "");
		world_pass(v, 2 * S);
	}
	int64_t died = v->now.mono.ns - 2 * S;
	world_pass(v, 20 * S);
	ck_assert(hw_monitor_group_is_deaf(v->m, 0));
	world_pass(v, 40 * S);
	ck_assert(!hw_monitor_group_is_deaf(v->m, 0));
	ck_assert_uint_eq(world_count(v, HW_OUT_TRANSITION, HW_STATE_OFFLINE), 2);
	world_last(v, &at);
	ck_assert_int_ge(at - died, 44 * S);
	ck_assert_int_le(at - died, 47 * S);
	world_free(v);
}
END_TEST

START_TEST(test_without_a_canary_silence_is_not_believed_before_30_seconds)
{
	struct world *v = hearing_world(1000, false);
	int64_t at;
	world_connect(v);
	for (int k = 0; k < 20; k++) {
		world_beat(v, "a", "");
		world_beat(v, "b", "");
		world_pass(v, 500 * MS);
	}
	int64_t died = v->now.mono.ns - 500 * MS;
	world_pass(v, 28 * S);
	ck_assert(hw_monitor_group_is_deaf(v->m, 0));
	world_pass(v, 5 * S);
	ck_assert_uint_eq(world_count(v, HW_OUT_TRANSITION, HW_STATE_OFFLINE), 2);
	world_last(v, &at);
	ck_assert_int_ge(at - died, 29 * S);
	ck_assert_int_le(at - died, 32 * S);
	world_free(v);
}
END_TEST

/* And while others beat, one that does not is found by what they bring. */
START_TEST(test_without_a_canary_one_death_is_found)
{
	struct world *v = hearing_world(10000, false);
	world_connect(v);
	world_beat(v, "c", "");
	for (int k = 0; k < 30; k++) {
		world_beat(v, "a", "");
		world_beat(v, "b", "");
		world_pass(v, 2 * S);
	}
	ck_assert(world_is(v, "c", HW_STATE_OFFLINE));
	ck_assert(world_is(v, "a", HW_STATE_ONLINE));
	world_beat(v, "c", "");
	int64_t died = v->now.mono.ns, at;
	for (int k = 0; k < 8; k++) {
		world_beat(v, "a", "");
		world_pass(v, 2 * S);
	}
	world_last(v, &at);
	ck_assert(world_is(v, "c", HW_STATE_OFFLINE));
	ck_assert_int_le(at - died, 14 * S);
	world_free(v);
}
END_TEST

/* The broker took it, and nothing of a whole group comes: then it can only be the right to read. */
START_TEST(test_a_canary_that_was_taken_and_never_came)
{
	struct world *v = hearing_world(10000, true);
	v->deny = "heartbeat";
	hearing_load_fleet(v);
	world_connect(v);
	if (_i == 0)
		hw_monitor_canary_answer(v->m, 0, 0, HW_CANARY_TAKEN);
	world_pass(v, 18 * S);
	ck_assert(hw_monitor_group_is_deaf(v->m, 0));
	world_pass(v, 100 * S);
	ck_assert(hw_monitor_group_is_deaf(v->m, 0) == (_i == 0));
	ck_assert_uint_eq(world_count(v, HW_OUT_TRANSITION, HW_STATE_OFFLINE), _i == 0 ? 0 : 3);
	world_free(v);
}
END_TEST

/* Devices are heard, and the canary's topic is one that this monitor may not read: what it says nothing of must not
 * keep a dead fleet online for ever. */
START_TEST(test_a_canary_that_never_came_where_devices_did)
{
	struct world *v = hearing_world(10000, true);
	v->deny = "heartbeat";
	world_connect(v);
	hw_monitor_canary_answer(v->m, 0, 0, HW_CANARY_TAKEN);
	for (int k = 0; k < 10; k++) {
		for (const char *const *id = fleet; *id; id++)
			world_beat(v, *id, "");
		world_pass(v, 2 * S);
	}
	world_pass(v, 12 * S);
	ck_assert(hw_monitor_group_is_deaf(v->m, 0));
	ck_assert_int_lt(last_in(v, HW_OUT_DEAF)->deaf.bound_ns, 30 * S);
	world_pass(v, 25 * S);
	ck_assert(!hw_monitor_group_is_deaf(v->m, 0));
	ck_assert_uint_eq(world_count(v, HW_OUT_TRANSITION, HW_STATE_OFFLINE), 3);
	world_free(v);
}
END_TEST

/* Given for the moment of a heartbeat, and taken again: the canary that went out then was back, and is waited for. */
START_TEST(test_a_canary_goes_out_as_soon_as_the_right_is_there)
{
	struct world *v = hearing_world(10000, true);
	v->deny = "heartbeat";
	hearing_load_fleet(v);
	world_connect(v);
	hw_monitor_canary_answer(v->m, 0, 0, HW_CANARY_TAKEN);
	world_pass(v, 40 * S);
	ck_assert(hw_monitor_group_is_deaf(v->m, 0));
	v->deny = NULL;
	world_beat(v, "a", "");
	world_pass(v, S / 10);
	ck_assert(!hw_monitor_group_is_deaf(v->m, 0));
	v->deny = "heartbeat";
	world_pass(v, 100 * S);
	ck_assert(hw_monitor_group_is_deaf(v->m, 0));
	ck_assert_uint_eq(world_count(v, HW_OUT_TRANSITION, HW_STATE_OFFLINE), 0);
	world_free(v);
}
END_TEST

/* The right to read is lost while no monitor runs: what the run before knew keeps the fleet from being called offline.
 */
START_TEST(test_a_canary_that_the_run_before_had)
{
	ck_assert_uint_eq(canaries_had(w), 3);
	for (int recalled = 0; recalled < 3; recalled++) {
		struct world *v = hearing_world(10000, true);
		struct hw_canaries had;
		v->deny = "";
		hearing_load_fleet(v);
		ck_assert_uint_eq(canaries_had(v), 0);
		hw_monitor_canaries(w->m, &had);
		for (int k = 0; k < HW_CANARY_PARTS && recalled != 1; k++)
			had.part[k] += recalled == 2; /* of other filters */
		if (recalled > 0)
			hw_monitor_recall_canaries(v->m, &had);
		ck_assert_uint_eq(canaries_had(v), recalled == 1 ? 3 : 0);
		world_connect(v);
		world_pass(v, 100 * S);
		ck_assert(hw_monitor_group_is_deaf(v->m, 0) == (recalled == 1));
		ck_assert_uint_eq(world_count(v, HW_OUT_TRANSITION, HW_STATE_OFFLINE), recalled == 1 ? 0 : 3);
		world_free(v);
	}
}
END_TEST

/* A filter whose canary never came back (0), or a filter that is new since the last run (1), does not make the next run
 * forget the others. */
START_TEST(test_one_canary_that_the_run_before_lacked)
{
	static const char *const more[] = {"slow/{id}/heartbeat", "new/{id}/heartbeat"};
	struct hw_monitor_conf conf = hearing_conf();
	struct hw_canaries had;
	struct world *u = hearing_world(10000, true), *v;
	u->deny = _i == 0 ? "slow" : NULL;
	world_connect(u);
	world_pass(u, 5 * S);
	ck_assert_uint_eq(canaries_had(u), _i == 0 ? 2 : 3);
	hw_monitor_canaries(u->m, &had);
	world_free(u);
	v = hearing_world(10000, true);
	groups[1].heartbeat = more;
	groups[1].n_heartbeat = _i == 0 ? 1 : 2;
	ck_assert_int_eq(hw_monitor_reconfigure(v->m, v->now, &conf, groups, 2), 0);
	v->deny = "heartbeat"; /* of the statuses, the group is heard */
	hearing_load_fleet(v);
	hw_monitor_recall_canaries(v->m, &had);
	ck_assert_uint_eq(canaries_had(v), _i == 0 ? 2 : 3);
	world_connect(v);
	world_say(v, "nodes/d/status", "{}", false);
	world_pass(v, 100 * S);
	ck_assert(hw_monitor_group_is_deaf(v->m, 0));
	ck_assert_uint_eq(world_count(v, HW_OUT_TRANSITION, HW_STATE_OFFLINE), 0);
	world_free(v);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("canary");
	TCase *tc = tcase_create("hearing");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, test_few_canaries_are_out_at_once);
	tcase_add_loop_test(tc, test_a_death_among_many_filters, 0, 4);
	tcase_add_test(tc, test_a_canary_on_every_filter_after_the_subscription);
	tcase_add_test(tc, test_no_canary_on_a_filter_that_is_a_topic);
	tcase_add_test(tc, test_a_missing_right_is_told_within_seconds_and_once);
	tcase_add_test(tc, test_a_refused_canary_is_told_soon);
	tcase_add_loop_test(tc, test_without_a_canary_silence_is_believed_in_the_end, 0, 2);
	tcase_add_test(tc, test_without_a_canary_silence_is_not_believed_before_30_seconds);
	tcase_add_test(tc, test_without_a_canary_one_death_is_found);
	tcase_add_loop_test(tc, test_a_canary_that_was_taken_and_never_came, 0, 2);
	tcase_add_test(tc, test_a_canary_that_never_came_where_devices_did);
	tcase_add_test(tc, test_a_canary_goes_out_as_soon_as_the_right_is_there);
	tcase_add_test(tc, test_a_canary_that_the_run_before_had);
	tcase_add_loop_test(tc, test_one_canary_that_the_run_before_lacked, 0, 2);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

/* SPDX-License-Identifier: MIT */
/* Which expected ids a monitor calls unseen: the group of the entry decides. */
#include "../suite.h"
#include "heartwheel/unseen.h"
#include "world.h"

static struct world *w;
static struct hw_monitor_conf conf;

static void start(bool canary, const char *deny, bool several)
{
	conf = world_conf();
	conf.several = several;
	conf.node = "w";
	conf.canaries = true;
	struct hw_group_spec group = world_group("fast", 2000);
	group.first_within_ms = 2000;
	group.canary = canary;
	w = world_new(&conf, &group, 1);
	w->deny = deny;
	world_connect(w);
	world_pass(w, S);
}

static void setup(void)
{
	start(false, "w", false);
}

static void setup_canaries(void)
{
	start(true, NULL, false);
}

static void setup_denied(void)
{
	start(true, "heartbeat", false);
}

static void setup_several(void)
{
	start(false, "w", true);
}

static void teardown(void)
{
	world_free(w);
}

static void expect(const char *id, const char *group)
{
	uint32_t i;
	int k = hw_monitor_entry_group(w->m, group);
	ck_assert_int_ge(k, 0);
	struct hw_expected_view v = {.id = {id, strlen(id)},
	                             .text = {"{}", 2},
	                             .source = "",
	                             .since_ms = w->now.wall_ms,
	                             .group = (uint16_t)k};
	ck_assert_int_eq(hw_expected_put(hw_monitor_expected(w->m), &v, &i), 0);
	hw_monitor_expect(w->m, w->now, i);
}

/* Passes the time, a second at a time, and returns how many ids became unseen in this time. */
static unsigned pass(unsigned seconds)
{
	unsigned n = 0, budget;
	uint32_t i;
	for (unsigned k = 0; k < seconds; k++) {
		world_pass(w, S);
		for (budget = 100; hw_monitor_next_unseen(w->m, w->now, &budget, &i); n++)
			ck_assert_int_eq(hw_expected_set_unseen(hw_monitor_expected(w->m), i, w->now.wall_ms), 0);
	}
	return n;
}

/* A reload to the group `fast` and another one, whose name is NULL if there is none. */
static void reload(const char *other, int64_t first_within_ms)
{
	static const char *const filter[] = {"other/{id}/heartbeat"};
	struct hw_group_spec group[] = {world_group("fast", 2000), world_group(other, 3000)};
	group[0].first_within_ms = 2000;
	group[1].heartbeat = filter;
	group[1].n_heartbeat = 1;
	group[1].status = NULL;
	group[1].first_within_ms = first_within_ms;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, group, other ? 2 : 1), 0);
	world_pass(w, S);
}

/* As the driver does after a reload. */
static void expect_again(const char *id)
{
	hw_monitor_expect(w->m, w->now, hw_expected_find(hw_monitor_expected(w->m), id, strlen(id)));
}

START_TEST(only_an_empty_group_is_the_first_one)
{
	expect("none", "");
	expect("of_fast", "fast");
	expect("of_fresh", "fresh");
	ck_assert_uint_eq(pass(60), 2);
	ck_assert_uint_eq(hw_monitor_unseen_of(w->m, 0), 2);
}
END_TEST

START_TEST(a_reload_that_brings_the_group)
{
	expect("a", "fresh");
	ck_assert_uint_eq(pass(10), 0);
	reload("fresh", 60000);
	expect_again("a");
	ck_assert_uint_eq(pass(40), 0);
	ck_assert_uint_eq(pass(20), 1);
	ck_assert_uint_eq(hw_monitor_unseen_of(w->m, 1), 1);
}
END_TEST

/* Also before the driver has looked at the entry again. */
START_TEST(a_reload_that_takes_the_group)
{
	reload("fresh", 10000);
	expect("a", "fresh");
	reload(_i ? "renamed" : NULL, 2000);
	ck_assert_uint_eq(pass(30), 0);
	reload("fresh", 10000);
	expect_again("a");
	ck_assert_uint_eq(pass(10), 1);
}
END_TEST

START_TEST(first_within_0_is_never)
{
	reload("fresh", 0);
	expect("a", "fresh");
	ck_assert_uint_eq(pass(100), 0);
	reload("fresh", 2000);
	expect_again("a");
	ck_assert_uint_eq(pass(10), 1);
}
END_TEST

static enum hw_expected_state state_of(const char *id)
{
	return hw_expected_at(hw_monitor_expected(w->m), hw_expected_find(hw_monitor_expected(w->m), id, strlen(id)))
	        .state;
}

/* The table is full: a device that sends heartbeats is not unseen, also after its entry was put again. */
START_TEST(refused_for_want_of_room)
{
	unsigned n = 0;
	world_beat(w, "known", "");
	conf.max_devices = 1;
	reload(NULL, 0);
	expect("a", "fast");
	expect("b", "fast");
	for (int k = 0; k < 10; k++) {
		world_beat(w, "known", "");
		world_beat(w, "a", "");
		n += pass(1);
		expect_again("a");
	}
	ck_assert_uint_eq(n, 1);
	ck_assert_uint_eq(pass(10), 0);
	conf.max_devices = 2;
	reload(NULL, 0);
	world_beat(w, "a", "");
	expect_again("a");
	ck_assert_int_eq(state_of("a"), HW_EXPECTED_RESTS);
}
END_TEST

/* The device is refused and stops. While the table is full, it is not unseen. When there is room, its first_within
 * begins again, and a change of its entry neither shortens nor prolongs it. A second refusal begins it once more. */
START_TEST(refused_and_stopped)
{
	world_beat(w, "known", "");
	conf.max_devices = 1;
	reload(NULL, 0);
	expect("a", "fast");
	world_beat(w, "a", "");
	ck_assert_uint_eq(pass(20), 0);
	ck_assert_int_eq(state_of("a"), HW_EXPECTED_REFUSED);
	if (_i == 1) { /* the group that has no time gets one */
		reload("fresh", 0);
		expect("b", "fresh");
		world_beat(w, "b", "");
		ck_assert_uint_eq(pass(20), 0);
		reload("fresh", 2000);
		expect_again("b");
	}
	conf.max_devices = 2;
	reload(_i == 1 ? "fresh" : NULL, 2000);
	expect_again("a");
	ck_assert_uint_eq(pass(1), 0);
	expect_again("a");
	ck_assert_uint_eq(pass(1), 0);
	conf.max_devices = 1;
	reload(_i == 1 ? "fresh" : NULL, 2000);
	world_beat(w, "a", "");
	conf.max_devices = 2;
	reload(_i == 1 ? "fresh" : NULL, 2000);
	ck_assert_uint_eq(pass(2), 0);
	ck_assert_uint_eq(pass(3), _i == 1 ? 2 : 1);
	ck_assert_int_eq(state_of("a"), HW_EXPECTED_UNSEEN);
}
END_TEST

/* The right to read is lost, and no device is online. The ids become unseen only after canaries are back. */
START_TEST(a_right_to_read_that_is_lost)
{
	ck_assert_uint_eq(w->canaries, 2);
	w->deny = "heartbeat";
	world_pass(w, 10 * S);
	expect("a", "fast");
	expect("b", "fast");
	ck_assert_uint_eq(pass(100), 0);
	ck_assert_uint_eq(world_count(w, HW_OUT_DEAF, 0), 1);
	ck_assert(hw_monitor_blindness(w->m).blind);
	w->deny = NULL;
	world_beat(w, "b", "");
	ck_assert_uint_eq(pass(15), 1);
	ck_assert_ptr_null(world_device(w, "a"));
	ck_assert_uint_eq(world_count(w, HW_OUT_DEAF, 0), 2);
	ck_assert(!hw_monitor_blindness(w->m).blind);
}
END_TEST

/* The right to read is missing from the start. An MQTT 5 broker shows this, because it accepts the canary. Otherwise
 * perhaps only the canary cannot be sent: the group is deaf for a time. */
START_TEST(a_right_to_read_that_was_never_there)
{
	bool accepts = _i;
	if (accepts)
		hw_monitor_canary_answer(w->m, 0, 0, HW_CANARY_TAKEN);
	expect("a", "fast");
	ck_assert_uint_eq(pass(25), 0);
	ck_assert_uint_eq(world_count(w, HW_OUT_DEAF, 0), 1);
	ck_assert_uint_eq(pass(60), !accepts);
}
END_TEST

/* The id may send in any group: while the bridge of another group is away, the id is not unseen. An id that does not
 * fit that group does not wait for it. */
START_TEST(an_entry_without_a_group_and_another_group_that_is_blind)
{
	static const char *const whiles[] = {"hub on"}, *const filter[] = {"other/{id}/heartbeat"};
	struct hw_group_spec group[] = {world_group("fast", 2000), world_group("other", 3000)};
	group[0].first_within_ms = 2000;
	group[0].canary = false;
	group[1].heartbeat = filter;
	group[1].n_heartbeat = 1;
	group[1].canary = false;
	group[1].status = NULL;
	group[1].whiles = whiles;
	group[1].n_whiles = 1;
	group[1].id_prefix = _i ? "o-" : NULL;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, group, 2), 0);
	hw_monitor_upstreams_asked(w->m);
	hw_monitor_upstreams_granted(w->m, false);
	world_say(w, "hub", "off", true);
	world_pass(w, 10 * S);
	expect("a", "");
	expect("b", "fast");
	ck_assert_uint_eq(pass(60), _i ? 2 : 1);
	world_say(w, "hub", "on", false);
	ck_assert_uint_eq(pass(20), _i ? 0 : 1);
}
END_TEST

/* With many groups, a check of an id without a group costs more of the budget. */
START_TEST(a_check_of_many_groups_costs_more)
{
	enum { GROUPS = 400, IDS = 100 };
	static struct hw_group_spec group[GROUPS];
	static char names[GROUPS][16], filters[GROUPS][32];
	static const char *filter[GROUPS];
	char id[16];
	for (int k = 0; k < GROUPS; k++) {
		snprintf(names[k], sizeof(names[k]), "g%d", k);
		snprintf(filters[k], sizeof(filters[k]), "g%d/{id}/heartbeat", k);
		filter[k] = filters[k];
		group[k] = world_group(names[k], 2000);
		group[k].heartbeat = &filter[k];
		group[k].n_heartbeat = 1;
		group[k].status = NULL;
		group[k].canary = false;
		group[k].first_within_ms = 2000;
	}
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, group, GROUPS), 0);
	world_pass(w, 10 * S);
	for (int k = 0; k < IDS; k++) {
		snprintf(id, sizeof(id), "d%d", k);
		expect(id, _i ? "g0" : "");
	}
	world_pass(w, 5 * S);
	unsigned budget = IDS, n = 0;
	for (uint32_t i; hw_monitor_next_unseen(w->m, w->now, &budget, &i); n++)
		ck_assert_int_eq(hw_expected_set_unseen(hw_monitor_expected(w->m), i, w->now.wall_ms), 0);
	ck_assert_uint_eq(n, _i ? IDS : 2);
	ck_assert_uint_eq(pass(60), IDS - n);
}
END_TEST

/* Ids that are due together share the canaries. */
START_TEST(one_round_of_canaries)
{
	char id[16];
	world_pass(w, 10 * S);
	uint64_t before = w->canaries;
	for (int k = 0; k < 1000; k++) {
		snprintf(id, sizeof(id), "d%d", k);
		expect(id, "fast");
	}
	ck_assert_uint_eq(pass(20), 1000);
	ck_assert_uint_eq(world_count(w, HW_OUT_DEAF, 0), 0);
	ck_assert_uint_ge(w->canaries - before, 2);
	ck_assert_uint_le(w->canaries - before, 6);
	before = w->canaries;
	ck_assert_uint_eq(pass(20), 0);
	ck_assert_uint_eq(w->canaries, before);
}
END_TEST

/* Without canaries, an id is unseen in time, although the filters deliver nothing. */
START_TEST(a_group_without_canaries)
{
	expect("a", "fast");
	ck_assert_uint_eq(pass(4), 1);
	ck_assert_uint_eq(w->canaries, 0);
}
END_TEST

/* The last round of a node among several: whether the partition of this id is to be judged by another node (online),
 * and whether a node that can judge it must take it (late). */
static void check_judging(const char *id, bool online, bool late)
{
	unsigned p = hw_partition_of(id, strlen(id));
	while (!hw_monitor_count_unjudged(w->m, w->now, 1))
		;
	const struct hw_group_judging is = hw_monitor_judging(w->m, 0);
	ck_assert_msg(hw_partitions_has(&is.online, p) == online && hw_partitions_has(&is.late, p) == late,
	              "%s want %d %d has %d %d", id, online, late, hw_partitions_has(&is.online, p),
	              hw_partitions_has(&is.late, p));
}

/* Another node judges the ids of a group that this node cannot hear, as it judges the group's devices. */
START_TEST(ids_of_a_group_whose_upstream_is_away)
{
	static const char *const whiles[] = {"hub on"}, *const filter[] = {"other/{id}/heartbeat"};
	struct hw_group_spec group[] = {world_group("fast", 2000), world_group("other", 3000)};
	group[0].first_within_ms = group[1].first_within_ms = 600000;
	group[0].whiles = whiles;
	group[0].n_whiles = 1;
	group[1].heartbeat = filter;
	group[1].n_heartbeat = 1;
	group[1].status = NULL;
	conf.blind_lasts_ms = 4000;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, group, 2), 0);
	expect("a", "");
	expect("b", "other");
	expect("c", "fast");
	expect("d", "gone");
	world_pass(w, S);
	check_judging("a", true, false); /* no value yet: this node may not know that the upstream is away */
	check_judging("b", false, false);
	world_say(w, "hub", "on", false);
	check_judging("a", false, false);
	world_beat(w, "c", "");
	world_say(w, "hub", "off", false);
	for (int k = 0; k < 2; k++) {
		check_judging("a", true, k == 1);
		check_judging("b", false, false);
		check_judging("d", false, false);
		world_pass(w, 5 * S);
	}
	world_say(w, "hub", "on", false);
	world_pass(w, 10 * S);
	check_judging("a", false, false);
	check_judging("c", false, false);
}
END_TEST

/* An id without a group counts in each group that is away, and that it fits. */
START_TEST(an_id_without_a_group_and_another_group_whose_upstream_is_away)
{
	static const char *const whiles[] = {"hub on"}, *const filter[] = {"other/{id}/heartbeat"};
	struct hw_group_spec group[] = {world_group("fast", 2000), world_group("other", 3000)};
	group[0].first_within_ms = group[1].first_within_ms = 600000;
	group[1].whiles = whiles;
	group[1].n_whiles = 1;
	group[1].heartbeat = filter;
	group[1].n_heartbeat = 1;
	group[1].status = NULL;
	group[1].id_prefix = _i ? "o-" : NULL;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, group, 2), 0);
	expect("a", "");
	world_say(w, "hub", "off", false);
	world_pass(w, S);
	while (!hw_monitor_count_unjudged(w->m, w->now, 1))
		;
	const struct hw_group_judging is = hw_monitor_judging(w->m, 1);
	ck_assert(hw_partitions_has(&is.online, hw_partition_of("a", 1)) == !_i);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unseen");
	TCase *tc = tcase_create("unseen");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, only_an_empty_group_is_the_first_one);
	tcase_add_test(tc, a_reload_that_brings_the_group);
	tcase_add_loop_test(tc, a_reload_that_takes_the_group, 0, 2);
	tcase_add_test(tc, first_within_0_is_never);
	tcase_add_test(tc, refused_for_want_of_room);
	tcase_add_loop_test(tc, refused_and_stopped, 0, 2);
	tcase_add_test(tc, a_group_without_canaries);
	tcase_add_loop_test(tc, an_entry_without_a_group_and_another_group_that_is_blind, 0, 2);
	tcase_add_loop_test(tc, a_check_of_many_groups_costs_more, 0, 2);
	suite_add_tcase(s, tc);
	tc = tcase_create("canaries");
	tcase_add_checked_fixture(tc, setup_canaries, teardown);
	tcase_add_test(tc, a_right_to_read_that_is_lost);
	tcase_add_test(tc, one_round_of_canaries);
	suite_add_tcase(s, tc);
	tc = tcase_create("denied");
	tcase_add_checked_fixture(tc, setup_denied, teardown);
	tcase_add_loop_test(tc, a_right_to_read_that_was_never_there, 0, 2);
	suite_add_tcase(s, tc);
	tc = tcase_create("several");
	tcase_add_checked_fixture(tc, setup_several, teardown);
	tcase_add_test(tc, ids_of_a_group_whose_upstream_is_away);
	tcase_add_loop_test(tc, an_id_without_a_group_and_another_group_whose_upstream_is_away, 0, 2);
	suite_add_tcase(s, tc);
	return suite_run(s);
}

/* SPDX-License-Identifier: MIT */
/* Parents that the inventory gives to a device, in the core. */
#include "../suite.h"
#include "heartwheel/unseen.h"
#include "world.h"

static struct world *w;
static struct hw_group_spec groups[2];

static void setup(void)
{
	static const char *const gateways[] = {"gw/{id}/up"}, *const valves[] = {"plant/{gw}/{id}/up"};
	static const char *const parent[] = {"gateway-{gw}"};
	groups[0] = world_group("gateways", 30000);
	groups[0].heartbeat = gateways;
	groups[0].n_heartbeat = 1;
	groups[0].status = NULL;
	groups[1] = world_group("valves", 20000);
	groups[1].heartbeat = valves;
	groups[1].n_heartbeat = 1;
	groups[1].status = NULL;
	groups[1].parents = parent;
	groups[1].n_parents = 1;
}

static void start(void)
{
	struct hw_monitor_conf conf = world_conf();
	w = world_new(&conf, groups, 2);
	world_connect(w);
}

static void drop_pattern(void)
{
	static const char *const plain[] = {"plant/+/{id}/up"};
	groups[1].heartbeat = plain;
	groups[1].n_parents = 0;
}

/* The inventory alone gives parents. */
static void start_without_pattern(enum hw_parent_death death)
{
	drop_pattern();
	groups[1].parent_death = death;
	start();
}

static void reload_without_pattern(void)
{
	struct hw_monitor_conf conf = world_conf();
	drop_pattern();
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, groups, 2), 0);
	world_pass(w, S);
}

static void teardown(void)
{
	world_free(w);
}

/* The inventory names these parents, separated by newlines; "": it names none. */
static void list(const char *id, const char *parents)
{
	uint32_t i;
	struct hw_expected_view v = {.id = {id, strlen(id)},
	                             .text = {"{}", 2},
	                             .parents = {parents, strlen(parents)},
	                             .source = "",
	                             .since_ms = w->now.wall_ms,
	                             .group = HW_EXPECTED_NO_GROUP};
	ck_assert_int_eq(hw_expected_put(hw_monitor_expected(w->m), &v, &i), 0);
	hw_monitor_expect(w->m, w->now, i);
	world_drain(w);
}

static void unlist(const char *id)
{
	hw_monitor_expect_no_more(w->m, w->now, hw_expected_find(hw_monitor_expected(w->m), id, strlen(id)));
	world_drain(w);
}

static void beat(const char *topic)
{
	world_say(w, topic, "", false);
}

START_TEST(test_the_inventory_wins_over_the_pattern)
{
	start();
	list("v", "x\ny");
	beat("plant/a/v/up"); /* a new device has the parents of the inventory from the start */
	ck_assert_str_eq(world_parents(w, "v"), "x? y?");
	ck_assert_uint_eq(world_count(w, HW_OUT_PARENTS, 0), 0); /* the transition writes them */
	list("v", "y");
	ck_assert_str_eq(world_parents(w, "v"), "y?");
	ck_assert_uint_eq(world_count(w, HW_OUT_PARENTS, 0), 1);
	list("v", "y");
	beat("plant/b/v/up");
	ck_assert_str_eq(world_parents(w, "v"), "y?");
	ck_assert_uint_eq(world_count(w, HW_OUT_PARENTS, 0), 1);
	list("v", "");
	beat("plant/b/v/up"); /* the same captures as before */
	ck_assert_str_eq(world_parents(w, "v"), "gateway-b?");
	list("v", "x");
	unlist("v");
	beat("plant/b/v/up");
	ck_assert_str_eq(world_parents(w, "v"), "gateway-b?");
}
END_TEST

START_TEST(test_without_a_pattern)
{
	start_without_pattern(HW_PARENT_NOTE);
	beat("plant/a/v/up");
	list("v", "x");
	ck_assert_str_eq(world_parents(w, "v"), "x?");
	ck_assert_uint_eq(world_count(w, HW_OUT_PARENTS, 0), 1);
	beat("plant/b/v/up");
	ck_assert_str_eq(world_parents(w, "v"), "x?");
	list("v", "");
	ck_assert_str_eq(world_parents(w, "v"), "");
	list("v", "z");
	unlist("v");
	ck_assert_str_eq(world_parents(w, "v"), "");
	ck_assert_uint_eq(world_count(w, HW_OUT_PARENTS, 0), 4);
	list("v", "");
	ck_assert_uint_eq(world_count(w, HW_OUT_PARENTS, 0), 4);
}
END_TEST

START_TEST(test_a_reload_keeps_them)
{
	start();
	list("v", "x");
	beat("plant/a/v/up");
	reload_without_pattern();
	ck_assert_str_eq(world_parents(w, "v"), "x?");
	unlist("v");
	ck_assert_str_eq(world_parents(w, "v"), "");
}
END_TEST

/* 1: an entry without parents came after the device's last heartbeat. */
START_TEST(test_a_reload_removes_those_of_the_pattern)
{
	start();
	beat("plant/a/v/up");
	if (_i == 1)
		list("v", "");
	ck_assert_str_eq(world_parents(w, "v"), "gateway-a?");
	reload_without_pattern();
	ck_assert_str_eq(world_parents(w, "v"), "");
	beat("plant/a/v/up");
	ck_assert_str_eq(world_parents(w, "v"), "");
}
END_TEST

/* A device that was loaded with the parents of its pattern. */
START_TEST(test_stored_parents_do_not_win)
{
	struct hw_monitor_conf conf = world_conf();
	conf.loading = true;
	w = world_new(&conf, groups, 2);
	world_connect(w);
	list("v", "x");
	struct hw_stored s = {.id = "v",
	                      .id_len = 1,
	                      .state = HW_STATE_ONLINE,
	                      .group = "valves",
	                      .parents = "gateway-a",
	                      .seq = 7,
	                      .since_ms = w->now.wall_ms,
	                      .last_seen_ms = w->now.wall_ms,
	                      .source = HW_SOURCE_MQTT};
	ck_assert_int_eq(hw_monitor_load(w->m, w->now, &s), 0);
	ck_assert_str_eq(world_parents(w, "v"), "x?");
}
END_TEST

START_TEST(test_a_circle_is_ignored)
{
	start_without_pattern(HW_PARENT_NOTE);
	list("a", "b");
	list("b", "a");
	list("c", "c");
	beat("plant/x/a/up");
	ck_assert_str_eq(world_parents(w, "a"), "b?"); /* of an id that is no device */
	beat("plant/x/b/up");
	beat("plant/x/c/up");
	ck_assert_str_eq(world_parents(w, "b"), "");
	ck_assert_str_eq(world_parents(w, "c"), "");
	ck_assert_uint_eq(hw_monitor_stats(w->m)->refused[HW_REFUSED_PARENT], 2);
	world_pass(w, 60 * S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE) && world_is(w, "b", HW_STATE_OFFLINE));
}
END_TEST

START_TEST(test_a_parent_of_the_inventory_takes_its_children)
{
	start_without_pattern(HW_PARENT_TAKE);
	beat("gw/g/up");
	beat("plant/x/v1/up");
	beat("plant/x/v2/up");
	list("v1", "g");
	world_say(w, "gw/g/up", "{\"online\":false}", false);
	world_pass(w, S);
	ck_assert(world_is(w, "v1", HW_STATE_OFFLINE) && world_is(w, "v2", HW_STATE_ONLINE));
	ck_assert_int_eq(hw_device_reason(world_device(w, "v1")), HW_REASON_PARENT);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("listed parents");
	TCase *t = tcase_create("inventory");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, test_the_inventory_wins_over_the_pattern);
	tcase_add_test(t, test_without_a_pattern);
	tcase_add_test(t, test_a_reload_keeps_them);
	tcase_add_loop_test(t, test_a_reload_removes_those_of_the_pattern, 0, 2);
	tcase_add_test(t, test_stored_parents_do_not_win);
	tcase_add_test(t, test_a_circle_is_ignored);
	tcase_add_test(t, test_a_parent_of_the_inventory_takes_its_children);
	suite_add_tcase(s, t);
	return suite_run(s);
}

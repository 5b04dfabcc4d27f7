/* SPDX-License-Identifier: MIT */
/* The timeout in force: which source counts, and that a shorter one counts at once. */
#include "../suite.h"
#include "world.h"

static struct world *w;

static void setup(void)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec g = world_group("default", 30000);
	g.timeout_max_ms = 600000;
	w = world_new(&conf, &g, 1);
	world_connect(w);
}

static void teardown(void)
{
	world_free(w);
}

static void inventory(const char *id, int64_t ms)
{
	struct hw_registry *r = hw_monitor_registry(w->m);
	struct hw_ref ref = hw_registry_ref(r, hw_registry_find(r, id, strlen(id)));
	ck_assert_int_eq(hw_monitor_set_inventory_timeout(w->m, w->now, ref, ms), 0);
}

static void is(const char *id, int64_t ms, const char *from)
{
	struct hw_timeout t = hw_monitor_timeout(w->m, world_device(w, id));
	ck_assert_int_eq(t.ms, ms);
	ck_assert_str_eq(hw_timeout_from_name(t.from), from);
}

START_TEST(the_first_source_counts)
{
	world_beat(w, "a", "");
	is("a", 30000, "group");
	inventory("a", 900000);
	is("a", 900000, "inventory"); /* timeout_max limits only the timeout for which a device asks */
	world_beat(w, "a", "{\"timeout\":7}");
	is("a", 7000, "device");
	world_beat(w, "a", "{\"timeout\":1000}");
	is("a", 600000, "device");
	world_beat(w, "a", "{\"timeout\":0}");
	is("a", 900000, "inventory");
	inventory("a", 0);
	is("a", 30000, "group");
}
END_TEST

START_TEST(a_shorter_inventory_timeout_counts_at_once)
{
	int64_t at;
	world_beat(w, "a", "");
	inventory("a", 300000);
	world_pass(w, 100 * S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	world_beat(w, "a", "");
	int64_t beat = w->now.mono.ns;
	inventory("a", 2000);
	world_pass(w, 5 * S);
	ck_assert_int_eq(world_last(w, &at)->state, HW_STATE_OFFLINE);
	ck_assert_int_ge(at, beat + 2 * S);
	ck_assert_int_le(at, beat + 2 * S + 50 * MS);
	inventory("a", 4000);
	is("a", 4000, "inventory");
	world_beat(w, "a", "");
	world_pass(w, 3 * S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
}
END_TEST

/* The report moves the side block of the device. */
START_TEST(the_inventory_timeout_stays_after_a_report)
{
	world_beat(w, "a", "");
	inventory("a", 5000);
	world_beat(w, "a", "{\"battery\":70,\"version\":\"1.2.3\",\"data\":{\"a\":1}}");
	is("a", 5000, "inventory");
	hw_monitor_forget(w->m, w->now, "a", 1);
	world_beat(w, "a", "");
	is("a", 5000, "inventory");
}
END_TEST

/* Barriers follow the shortest timeout in use. */
START_TEST(barriers_follow_the_inventory)
{
	world_beat(w, "a", "");
	world_pass(w, 10 * S);
	uint64_t before = hw_monitor_stats(w->m)->barriers_sent;
	world_pass(w, 10 * S);
	ck_assert_uint_le(hw_monitor_stats(w->m)->barriers_sent - before, 4);
	world_beat(w, "a", "");
	inventory("a", 2000);
	before = hw_monitor_stats(w->m)->barriers_sent;
	for (int k = 0; k < 10; k++) {
		world_beat(w, "a", "");
		world_pass(w, S);
	}
	ck_assert_uint_ge(hw_monitor_stats(w->m)->barriers_sent - before, 15);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("timeout");
	TCase *tc = tcase_create("timeout");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, the_first_source_counts);
	tcase_add_test(tc, a_shorter_inventory_timeout_counts_at_once);
	tcase_add_test(tc, the_inventory_timeout_stays_after_a_report);
	tcase_add_test(tc, barriers_follow_the_inventory);
	suite_add_tcase(s, tc);
	return suite_run(s);
}

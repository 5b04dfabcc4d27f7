/* SPDX-License-Identifier: MIT */
/* Classes, opening, joining, mass, flapping and closing: a test for each rule of the tables. */
#include "../suite.h"
#include "incident_rig.h"

START_TEST(a_device_alone_is_down_at_once)
{
	rig_start();
	rig_off("p1");
	ck_assert_int_eq(rig_class("p1"), HW_CLASS_DOWN);
	rig_wait(200);
	ck_assert_str_eq(rig_sent(), "opened p1; ");
	rig_on("p1");
	ck_assert_int_eq(rig_class("p1"), HW_CLASS_NONE);
	rig_wait(200);
	ck_assert_str_eq(rig_sent(), "closed p1; ");
}
END_TEST

static void named_entry(const char *name, enum hw_incident_fact fact)
{
	struct hw_incident_entry entry = {.id = "p1",
	                                  .group = "pumps",
	                                  .name = name,
	                                  .fact = fact,
	                                  .time_ms = BEGIN_MS + now_ms,
	                                  .timeout_ms = 30 * S,
	                                  .wait_ms = -1,
	                                  .seq = ++seq};
	ck_assert_int_eq(hw_incidents_entry(engine, rig_now(), &entry), 0);
}

/* Expects the name of an incident in memory, and that it is written. NULL: none. */
static void expect_name(const char *id, const char *name)
{
	struct hw_incident_view v;
	struct hw_change c;
	bool written = false;
	ck_assert(hw_incidents_find(engine, id, &v));
	ck_assert_pstr_eq(v.name, name);
	while (hw_incidents_change(engine, &c))
		if (c.kind == HW_CHANGE_INCIDENT) {
			ck_assert_pstr_eq(c.incident.name, name);
			written = true;
		}
	ck_assert(written);
}

START_TEST(an_incident_has_the_present_name)
{
	char id[HW_INCIDENT_ID + 1];
	conf.clear_after_ms = MIN;
	rig_start();
	named_entry("Pump 7", HW_FACT_OFFLINE);
	snprintf(id, sizeof(id), "%s", rig_in("p1"));
	expect_name(id, "Pump 7");
	ck_assert_str_eq(hw_incidents_name(engine, "p1"), "Pump 7");
	rig_wait(200);
	named_entry("Pump 8", HW_FACT_ONLINE); /* the incident is open for a minute more */
	expect_name(id, "Pump 8");
	named_entry(NULL, HW_FACT_OFFLINE);
	ck_assert_str_eq(rig_in("p1"), id);
	expect_name(id, NULL);
	ck_assert_ptr_null(hw_incidents_name(engine, "p1"));
	named_entry("Pump 9", HW_FACT_ONLINE);
	expect_name(id, "Pump 9");
	rig_wait(2 * MIN);
	ck_assert_str_eq(rig_sent(), "opened p1; closed p1; ");
}
END_TEST

/* After a start, the state of the device has the present name, and the incident may have an older one. */
START_TEST(a_loaded_name)
{
	static const char *const names[] = {"Pump 8", NULL};
	for (int k = 0; k < 2; k++) {
		struct hw_incident_view v = {.id = "0mwzeeskwg1a", .device = "p1", .group = "pumps", .name = "Pump 7"};
		struct hw_incident_entry entry = {
			.id = "p1", .group = "pumps", .name = names[k], .fact = HW_FACT_OFFLINE, .seq = 1};
		engine = hw_incidents_new(&conf, rig_now());
		ck_assert_int_eq(hw_incidents_load(engine, &v), 0);
		ck_assert(hw_incidents_find(engine, "0mwzeeskwg1a", &v));
		ck_assert_str_eq(v.name, "Pump 7");
		ck_assert_int_eq(hw_incidents_load_device(engine, &entry), 0);
		ck_assert_int_eq(hw_incidents_load_member(engine, v.id, "p1", HW_CLASS_DOWN, BEGIN_MS, 1), 0);
		ck_assert_int_eq(hw_incidents_loaded(engine, rig_now(), false), 0);
		expect_name("0mwzeeskwg1a", names[k]);
		rig_end();
	}
}
END_TEST

START_TEST(a_child_waits_for_its_parent)
{
	rig_start();
	rig_off_behind("c1", "ga", 20 * S);
	ck_assert_int_eq(rig_class("c1"), HW_CLASS_PENDING);
	rig_wait(15 * S);
	rig_off("ga");
	ck_assert_int_eq(rig_class("c1"), HW_CLASS_UNREACHABLE);
	ck_assert_str_eq(rig_in("c1"), rig_in("ga"));
	rig_off_behind("c2", "ga", -1); /* after its parent */
	ck_assert_str_eq(rig_in("c2"), rig_in("ga"));
	rig_wait(S);
	ck_assert_str_eq(rig_sent(), "opened ga; ");
}
END_TEST

START_TEST(a_pending_device_is_down_ten_seconds_after_its_wait)
{
	rig_start();
	rig_off_behind("c1", "ga", 20 * S);
	rig_wait(29900);
	ck_assert_int_eq(rig_class("c1"), HW_CLASS_PENDING);
	rig_wait(200);
	ck_assert_int_eq(rig_class("c1"), HW_CLASS_DOWN);
}
END_TEST

START_TEST(a_node_after_many_others_stops_the_wait)
{
	char name[16];
	rig_start();
	for (int k = 0; k < 5 * HW_INCIDENT_NODES; k++) {
		snprintf(name, sizeof(name), "pod-%d", k);
		hw_incidents_sight(engine, rig_now(), name, k % 3 > 0);
		now_ms += 10;
	}
	rig_off_behind("c1", "ga", 20 * S);
	hw_incidents_sight(engine, rig_now(), "n1", true);
	rig_wait(60 * S);
	ck_assert_int_eq(rig_class("c1"), HW_CLASS_PENDING);
	/* Its name leaves, too; the device then waits on for the node in its place. */
	for (int k = 0; k < 2 * HW_INCIDENT_NODES; k++) {
		snprintf(name, sizeof(name), "new-%d", k);
		hw_incidents_sight(engine, rig_now(), name, false);
		now_ms += 10;
	}
	rig_wait(27 * S);
	ck_assert_int_eq(rig_class("c1"), HW_CLASS_PENDING);
	rig_wait(5 * S);
	ck_assert_int_eq(rig_class("c1"), HW_CLASS_DOWN);
}
END_TEST

START_TEST(blindness_stops_the_wait)
{
	rig_start();
	rig_off_behind("c1", "ga", 20 * S);
	hw_incidents_sight(engine, rig_now(), "n1", true);
	rig_wait(60 * S);
	ck_assert_int_eq(rig_class("c1"), HW_CLASS_PENDING);
	hw_incidents_sight(engine, rig_now(), "n1", false);
	rig_wait(29 * S);
	ck_assert_int_eq(rig_class("c1"), HW_CLASS_PENDING);
	rig_wait(2 * S);
	ck_assert_int_eq(rig_class("c1"), HW_CLASS_DOWN);
}
END_TEST

START_TEST(parent_heard_ends_the_wait)
{
	rig_start();
	rig_off_behind("c1", "ga", 20 * S);
	hw_incidents_parent_heard(engine, rig_now(), "c1", seq - 1, 0);
	ck_assert_int_eq(rig_class("c1"), HW_CLASS_PENDING); /* of another transition */
	hw_incidents_parent_heard(engine, rig_now(), "c1", seq, 0);
	ck_assert_int_eq(rig_class("c1"), HW_CLASS_DOWN);
	rig_off_behind("c2", "ga", 20 * S);
	hw_incidents_parent_heard(engine, rig_now(), "c2", seq, 40 * S);
	ck_assert_int_eq(rig_class("c2"), HW_CLASS_UNREACHABLE);
	rig_wait(39 * S);
	ck_assert_int_eq(rig_class("c2"), HW_CLASS_UNREACHABLE);
	rig_wait(2 * S);
	ck_assert_int_eq(rig_class("c2"), HW_CLASS_DOWN);
}
END_TEST

START_TEST(after_the_parents_return_a_child_settles)
{
	rig_start();
	rig_off("ga");
	rig_off_behind("c1", "ga", -1);
	rig_off_behind("c2", "ga", -1);
	rig_wait(S);
	rig_on("ga"); /* settle: 30 s + 30 s + 10 s */
	ck_assert_str_eq(rig_in("c1"), "");
	rig_on("c1");
	rig_wait(69 * S);
	ck_assert_int_eq(rig_class("c2"), HW_CLASS_UNREACHABLE);
	rig_wait(2 * S);
	ck_assert_int_eq(rig_class("c2"), HW_CLASS_DOWN);
	rig_wait(S);
	ck_assert_str_eq(rig_sent(), "opened ga; closed ga; opened c2; ");
}
END_TEST

START_TEST(a_forgotten_parent_counts_as_absent)
{
	rig_start();
	rig_off("ga");
	rig_off_behind("c1", "ga", -1);
	rig_entry("ga", "pumps", HW_FACT_FORGOTTEN, NULL, -1);
	ck_assert_int_eq(rig_class("c1"), HW_CLASS_UNREACHABLE);
	rig_wait(71 * S);
	ck_assert_int_eq(rig_class("c1"), HW_CLASS_DOWN);
}
END_TEST

START_TEST(a_child_joins_the_parent_that_went_offline_last)
{
	rig_start();
	rig_off("ga");
	rig_wait(S);
	rig_off_behind("c1", "ga\ngb", 20 * S);
	ck_assert_int_eq(rig_class("c1"), HW_CLASS_PENDING);
	rig_wait(S);
	rig_off("gb");
	ck_assert_str_eq(rig_in("c1"), rig_in("gb"));
}
END_TEST

START_TEST(an_incident_follows_through_levels)
{
	rig_start();
	rig_off_behind("c1", "gb", 20 * S);
	rig_off_behind("gb", "ga", 20 * S);
	ck_assert_int_eq(rig_class("c1"), HW_CLASS_UNREACHABLE);
	ck_assert_str_eq(rig_in("c1"), ""); /* its parent is pending */
	rig_off("ga");
	ck_assert_str_ne(rig_in("ga"), "");
	ck_assert_str_eq(rig_in("gb"), rig_in("ga"));
	ck_assert_str_eq(rig_in("c1"), rig_in("ga"));
}
END_TEST

START_TEST(a_down_device_moves_if_no_receiver_knows_its_incident)
{
	receivers[0].interval_ms = 10 * S;
	rig_start();
	rig_off_behind("c1", "ga", -1); /* it became down without a wait */
	rig_off_behind("c2", "c1", -1);
	ck_assert_int_eq(rig_class("c1"), HW_CLASS_DOWN);
	rig_wait(S);
	rig_off("ga");
	ck_assert_str_eq(rig_in("c1"), rig_in("ga"));
	ck_assert_str_eq(rig_in("c2"), rig_in("ga"));
	rig_wait(20 * S);
	ck_assert_str_eq(rig_sent(), "opened ga; ");
}
END_TEST

START_TEST(a_down_device_stays_if_a_receiver_knows_its_incident)
{
	rig_start();
	rig_off_behind("c1", "ga", -1);
	rig_wait(S);
	rig_off("ga");
	ck_assert_int_eq(rig_class("c1"), HW_CLASS_DOWN);
	rig_wait(S);
	rig_on("c1");
	rig_wait(S);
	ck_assert_str_eq(rig_sent(), "opened c1; opened ga; closed c1; ");
}
END_TEST

START_TEST(a_circle_of_parents_loses_its_last_link)
{
	rig_start();
	rig_off_behind("a", "b", -1);
	rig_off_behind("b", "a", -1);
	ck_assert_int_eq(rig_class("b"), HW_CLASS_DOWN); /* its parent would be behind it */
	rig_off_behind("s", "s", -1);
	ck_assert_int_eq(rig_class("s"), HW_CLASS_DOWN);
}
END_TEST

static void off_many(const char *prefix, unsigned n)
{
	char id[16];
	for (unsigned k = 0; k < n; k++) {
		snprintf(id, sizeof(id), "%s%u", prefix, k);
		rig_off(id);
	}
}

static void on_many(const char *prefix, unsigned n)
{
	char id[16];
	for (unsigned k = 0; k < n; k++) {
		snprintf(id, sizeof(id), "%s%u", prefix, k);
		rig_on(id);
	}
}

START_TEST(many_devices_of_a_group_are_one_mass_incident)
{
	receivers[0].interval_ms = 10 * S;
	rig_start();
	off_many("p", 4);
	ck_assert_str_ne(rig_in("p0"), rig_in("p1"));
	rig_off_behind("c", "p0", -1);
	rig_off("p4");
	ck_assert_str_eq(rig_in("p0"), rig_in("p4"));
	ck_assert_str_eq(rig_in("c"), rig_in("p4")); /* what is behind a member goes along */
	rig_off("p5");
	ck_assert_str_eq(rig_in("p5"), rig_in("p4"));
	rig_wait(11 * S);
	ck_assert_str_eq(rig_sent(), "opened mass; ");
	on_many("p", 6);
	rig_wait(11 * S);
	ck_assert_str_eq(rig_sent(), "closed mass; ");
}
END_TEST

START_TEST(known_incidents_are_merged_into_a_mass_incident)
{
	rig_start();
	off_many("p", 2);
	rig_wait(S);
	rig_sent();
	off_many("q", 3);
	rig_wait(S);
	const char *news = rig_sent();
	ck_assert_ptr_nonnull(strstr(news, "merged p0; "));
	ck_assert_ptr_nonnull(strstr(news, "merged p1; "));
	ck_assert_ptr_nonnull(strstr(news, "opened mass; "));
	ck_assert_ptr_null(strstr(news, "q"));
}
END_TEST

START_TEST(a_mass_incident_needs_its_share_and_its_window)
{
	rig_start();
	hw_incidents_group(engine, rig_now(), "pumps", 95, 5, 0); /* 5 are 5 %, and 20 % are asked for */
	off_many("p", 5);
	ck_assert_str_ne(rig_in("p0"), rig_in("p4"));
	rig_wait(61 * S);
	hw_incidents_group(engine, rig_now(), "pumps", 5, 5, 0);
	rig_off("q"); /* the others are older than mass_window */
	ck_assert_str_ne(rig_in("p0"), rig_in("q"));
}
END_TEST

START_TEST(a_small_mass_incident_splits_after_five_minutes)
{
	rig_start();
	off_many("p", 30);
	rig_wait(S);
	on_many("p", 28);
	rig_wait(S);
	ck_assert_str_eq(rig_in("p28"), rig_in("p29"));
	rig_sent();
	rig_wait(5 * MIN);
	ck_assert_str_ne(rig_in("p28"), rig_in("p29"));
	const char *news = rig_sent();
	ck_assert_ptr_nonnull(strstr(news, "closed mass; "));
	ck_assert_ptr_nonnull(strstr(news, "opened p28; "));
	ck_assert_ptr_nonnull(strstr(news, "opened p29; "));
}
END_TEST

/* Loads the stored incident of a device, which became down `age_ms` ago. `before_ms`: the incident began so long before
 * that. */
static void load_own(const char *id, int64_t age_ms, int64_t before_ms)
{
	struct hw_incident_entry entry = {.id = id,
	                                  .group = "pumps",
	                                  .fact = HW_FACT_OFFLINE,
	                                  .time_ms = BEGIN_MS + now_ms - age_ms,
	                                  .wait_ms = -1,
	                                  .seq = ++seq};
	struct hw_incident_view v = {.id = "000000000000",
	                             .device = id,
	                             .group = "pumps",
	                             .since_ms = entry.time_ms - before_ms,
	                             .opened_ms = entry.time_ms - before_ms};
	memcpy(v.id + HW_INCIDENT_ID - strlen(id), id, strlen(id));
	ck_assert_int_eq(hw_incidents_load(engine, &v), 0);
	ck_assert_int_eq(hw_incidents_load_device(engine, &entry), 0);
	ck_assert_int_eq(hw_incidents_load_member(engine, v.id, id, HW_CLASS_DOWN, entry.time_ms, seq), 0);
}

static void load_many(const char *prefix, unsigned n, int64_t age_ms)
{
	char id[HW_INCIDENT_ID];
	for (unsigned k = 0; k < n; k++) {
		snprintf(id, sizeof(id), "%s%u", prefix, k);
		load_own(id, age_ms, 0);
	}
}

/* Ends the load, while the group has `online` online devices. */
static void load_end(uint64_t online)
{
	hw_incidents_group(engine, rig_now(), "pumps", online, 5, 0);
	hw_incidents_load_receiver(engine, "ops", 17, BEGIN_MS - MIN);
	ck_assert_int_eq(hw_incidents_loaded(engine, rig_now(), false), 0);
}

START_TEST(devices_before_a_load_count_for_a_mass_incident_after_it)
{
	engine = hw_incidents_new(&conf, rig_now());
	load_many("p", 4, 5 * S);
	load_own("old", 61 * S, 0);
	load_own("again", 5 * S, MIN); /* its incident has been open since an earlier outage */
	hw_incidents_load_sent(engine, "0000000000p0", "ops", HW_NEWS_OPENED, false, false, 1, BEGIN_MS);
	load_end(5);
	ck_assert_str_ne(rig_in("p0"), rig_in("p1"));
	rig_off("q");
	ck_assert_str_eq(rig_in("p0"), rig_in("q"));
	ck_assert_str_eq(rig_in("p3"), rig_in("q"));
	ck_assert_str_eq(rig_in("old"), "000000000old");
	ck_assert_str_eq(rig_in("again"), "0000000again");
	rig_wait(S);
	const char *news = rig_sent();
	ck_assert_ptr_nonnull(strstr(news, "merged p0; "));
	ck_assert_ptr_nonnull(strstr(news, "opened mass; "));
	ck_assert_ptr_null(strstr(news, "opened p"));
}
END_TEST

/* The last commit had the mass incident, and only a part of the moves into it. */
START_TEST(a_load_moves_the_rest_into_an_open_mass_incident)
{
	struct hw_incident_view v, mass = {.id = "00000000mass",
	                                   .kind = HW_INCIDENT_MASS,
	                                   .group = "pumps",
	                                   .since_ms = BEGIN_MS,
	                                   .opened_ms = BEGIN_MS};
	engine = hw_incidents_new(&conf, rig_now());
	ck_assert_int_eq(hw_incidents_load(engine, &mass), 0);
	load_many("p", 2, 5 * S);
	load_own("old", 61 * S, 0);
	load_own("again", 5 * S, MIN);
	load_end(5);
	ck_assert_str_eq(rig_in("p0"), mass.id);
	ck_assert_str_eq(rig_in("p1"), mass.id);
	ck_assert_str_eq(rig_in("old"), "000000000old");
	ck_assert_str_eq(rig_in("again"), "0000000again");
	ck_assert(hw_incidents_find(engine, mass.id, &v));
	ck_assert_int_eq(v.since_ms, BEGIN_MS + now_ms - 5 * S);
	ck_assert(!hw_incidents_find(engine, "0000000000p1", &v));
}
END_TEST

/* The last commit did not have the mass incident, and no further device stops. */
START_TEST(a_load_opens_a_mass_incident)
{
	for (int enough = 0; enough < 2; enough++) {
		engine = hw_incidents_new(&conf, rig_now());
		load_many("p", 5, 5 * S);
		load_end(enough ? 5 : 95);
		ck_assert_int_eq(strcmp(rig_in("p0"), rig_in("p4")) == 0, enough);
		rig_end();
	}
}
END_TEST

START_TEST(loaded_devices_leave_the_window_in_time)
{
	conf.mass = 40;
	engine = hw_incidents_new(&conf, rig_now());
	load_many("p", 20, 50 * S);
	load_many("q", 19, 5 * S);
	load_end(5);
	rig_wait(15 * S);
	off_many("r", 20); /* 39 in the window */
	ck_assert_str_ne(rig_in("q0"), rig_in("r0"));
	rig_off("s");
	ck_assert_str_eq(rig_in("q0"), rig_in("s"));
	ck_assert_str_ne(rig_in("p0"), rig_in("s"));
}
END_TEST

START_TEST(without_room_a_group_shares_an_incident)
{
	conf.mass = 0;
	conf.max_incidents = 2;
	rig_start();
	off_many("p", 5);
	ck_assert_str_ne(rig_in("p0"), rig_in("p1"));
	ck_assert_str_eq(rig_in("p2"), rig_in("p4"));
	ck_assert_uint_eq(hw_incidents_count(engine).refused, 1);
}
END_TEST

START_TEST(an_incident_closes_after_clear_after)
{
	conf.clear_after_ms = 30 * S;
	rig_start();
	rig_off("p");
	rig_wait(S);
	rig_on("p");
	rig_wait(20 * S);
	rig_off("p"); /* it joins the incident that is still open */
	rig_wait(S);
	rig_on("p");
	rig_wait(29 * S);
	ck_assert_str_eq(rig_sent(), "opened p; ");
	rig_wait(3 * S);
	ck_assert_str_eq(rig_sent(), "closed p; ");
}
END_TEST

static void flap(const char *id, unsigned times)
{
	for (unsigned k = 0; k < times; k++) {
		rig_off(id);
		rig_wait(S);
		rig_on(id);
		rig_wait(S);
	}
}

START_TEST(a_flapping_device_gets_one_incident)
{
	rig_start();
	flap("p", 3);
	ck_assert_str_eq(rig_sent(), "opened p; closed p; opened p; closed p; opened p; closed p; ");
	flap("p", 20); /* six transitions weigh a little less than 6, the seventh makes it flapping */
	ck_assert_str_eq(rig_sent(), "flapping p; ");
	ck_assert(hw_incidents_weight(engine, "p") <= 12);
	rig_wait(50 * MIN);
	ck_assert_str_eq(rig_sent(), "");
	rig_wait(3 * MIN); /* 12 falls to 2 in 51.7 min */
	ck_assert_str_eq(rig_sent(), "closed p; ");
}
END_TEST

START_TEST(a_flapping_device_that_stays_down_becomes_steady)
{
	rig_start();
	flap("p", 4);
	rig_off("p");
	rig_wait(S);
	rig_sent();
	rig_wait(60 * MIN);
	ck_assert_str_eq(rig_sent(), "steady p; ");
	rig_on("p");
	rig_wait(S);
	ck_assert_str_eq(rig_sent(), "closed p; ");
}
END_TEST

START_TEST(unseen_devices_of_a_minute_share_an_incident)
{
	rig_start();
	rig_entry("u1", "pumps", HW_FACT_UNSEEN, NULL, -1);
	rig_wait(50 * S);
	rig_entry("u2", "pumps", HW_FACT_UNSEEN, NULL, -1);
	rig_wait(50 * S);
	rig_entry("u3", "pumps", HW_FACT_UNSEEN, NULL, -1);
	ck_assert_str_eq(rig_in("u1"), rig_in("u3"));
	rig_wait(61 * S);
	rig_entry("u4", "pumps", HW_FACT_UNSEEN, NULL, -1);
	ck_assert_str_ne(rig_in("u1"), rig_in("u4"));
	rig_wait(S);
	rig_sent();
	rig_on("u1");
	rig_on("u2");
	rig_on("u3");
	rig_wait(S);
	ck_assert_str_eq(rig_sent(), "closed unseen; ");
}
END_TEST

START_TEST(a_device_behind_an_unseen_parent_is_unreachable)
{
	rig_start();
	rig_entry("ga", "pumps", HW_FACT_UNSEEN, NULL, -1);
	rig_off_behind("c", "ga", -1);
	ck_assert_int_eq(rig_class("c"), HW_CLASS_UNREACHABLE);
	ck_assert_str_eq(rig_in("c"), rig_in("ga"));
}
END_TEST

START_TEST(an_entry_with_a_known_seq_is_skipped)
{
	rig_start();
	rig_off("p");
	seq--;
	rig_on("p");
	ck_assert_int_eq(rig_class("p"), HW_CLASS_DOWN);
}
END_TEST

START_TEST(records_go_when_nothing_needs_them)
{
	rig_start();
	rig_off("ga");
	rig_off_behind("c", "ga\ngb", -1);
	rig_wait(S);
	rig_on("ga");
	rig_on("c");
	rig_wait(S);
	ck_assert_uint_eq(hw_incidents_count(engine).incidents, 0);
	ck_assert_uint_eq(hw_incidents_count(engine).links, 0);
	rig_wait(120 * MIN);
	ck_assert_uint_eq(hw_incidents_count(engine).devices, 0);
	ck_assert_uint_eq(hw_incidents_count(engine).bytes, 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_device_alone_is_down_at_once,
		an_incident_has_the_present_name,
		a_loaded_name,
		a_child_waits_for_its_parent,
		a_pending_device_is_down_ten_seconds_after_its_wait,
		blindness_stops_the_wait,
		a_node_after_many_others_stops_the_wait,
		parent_heard_ends_the_wait,
		after_the_parents_return_a_child_settles,
		a_forgotten_parent_counts_as_absent,
		a_child_joins_the_parent_that_went_offline_last,
		an_incident_follows_through_levels,
		a_down_device_moves_if_no_receiver_knows_its_incident,
		a_down_device_stays_if_a_receiver_knows_its_incident,
		a_circle_of_parents_loses_its_last_link,
		many_devices_of_a_group_are_one_mass_incident,
		known_incidents_are_merged_into_a_mass_incident,
		a_mass_incident_needs_its_share_and_its_window,
		a_small_mass_incident_splits_after_five_minutes,
		devices_before_a_load_count_for_a_mass_incident_after_it,
		a_load_moves_the_rest_into_an_open_mass_incident,
		a_load_opens_a_mass_incident,
		loaded_devices_leave_the_window_in_time,
		without_room_a_group_shares_an_incident,
		an_incident_closes_after_clear_after,
		a_flapping_device_gets_one_incident,
		a_flapping_device_that_stays_down_becomes_steady,
		unseen_devices_of_a_minute_share_an_incident,
		a_device_behind_an_unseen_parent_is_unreachable,
		an_entry_with_a_known_seq_is_skipped,
		records_go_when_nothing_needs_them,
	};
	Suite *suite = suite_create("classes of incidents");
	TCase *tc = tcase_create("rules");
	tcase_add_checked_fixture(tc, rig_begin, rig_end);
	for (size_t k = 0; k < sizeof(tests) / sizeof(*tests); k++)
		tcase_add_test(tc, tests[k]);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

/* SPDX-License-Identifier: MIT */
/* The table of groups: what it matches, and how a reload changes it. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../suite.h"
#include "heartwheel/group.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))
#define HB(...)                                                                                                        \
	.heartbeat = (const char *const[]){__VA_ARGS__},                                                               \
	.n_heartbeat = sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)

static struct hw_groups groups;

static void set(const struct hw_group_spec *specs, size_t n)
{
	ck_assert_int_eq(hw_groups_set(&groups, specs, n), 0);
}

static void setup(void)
{
	/* Devices of "valves" are on topics that "all" would take as well. "keys" has its status on topics of "all". */
	const struct hw_group_spec specs[] = {
		{.name = "valves",
	         HB("plant/{id}/valve", "plant/{id}/status"),
	         .status = "plant/{id}/status",
	         .id_prefix = "v-",
	         .timeout_ms = 5000},
		{.name = "all", HB("plant/{id}/#"), .timeout_ms = 30000, .timeout_max_ms = 60000},
		{.name = "late", HB("plant/{id}/valve"), .timeout_ms = 1},
		{.name = "keys", HB("keys/{id}"), .status = "plant/{id}/told", .timeout_ms = 7},
	};
	memset(&groups, 0xff, sizeof(groups));
	hw_groups_init(&groups);
	set(specs, COUNT(specs));
}

static void teardown(void)
{
	hw_groups_fini(&groups);
	ck_assert_uint_eq(groups.n, 0);
}

static const struct {
	const char *topic;
	bool empty;
	enum hw_match match;
	uint16_t group;
	const char *id;
} matches[] = {
	{"plant/a/valve", false, HW_MATCH_HEARTBEAT, 0, "a"},
	{"plant/a/valve", true, HW_MATCH_HEARTBEAT, 0, "a"}, /* any payload is a heartbeat */
	{"plant/a/status", false, HW_MATCH_HEARTBEAT, 0, "a"},
	{"plant/a/status", true, HW_MATCH_CLEARING, 0, "a"},
	{"plant/a/pump", false, HW_MATCH_HEARTBEAT, 1, "a"},
	{"plant/a/pump", true, HW_MATCH_HEARTBEAT, 1, "a"},
	{"plant/a", false, HW_MATCH_HEARTBEAT, 1, "a"},
	{"plant//valve", false, HW_MATCH_HEARTBEAT, 0, ""},
	{"plant/a/told", false, HW_MATCH_HEARTBEAT, 1, "a"},
	{"plant/a/told", true, HW_MATCH_CLEARING, 3, "a"}, /* though "all" expects heartbeats there */
	{"keys/k", true, HW_MATCH_HEARTBEAT, 3, "k"},
	{"plant", false, HW_MATCH_NONE, 0, NULL},
	{"other/a", false, HW_MATCH_NONE, 0, NULL},
	{"other/a", true, HW_MATCH_NONE, 0, NULL},
};

START_TEST(match)
{
	uint16_t group = 99;
	const char *id = NULL, *topic = matches[_i].topic;
	size_t id_len = 99;
	const struct hw_topic *by = NULL;
	ck_assert_int_eq(hw_groups_match(&groups, topic, strlen(topic), matches[_i].empty, &group, &id, &id_len, &by),
	                 matches[_i].match);
	if (matches[_i].match == HW_MATCH_NONE)
		return;
	ck_assert_uint_eq(group, matches[_i].group);
	ck_assert_uint_eq(id_len, strlen(matches[_i].id));
	ck_assert_mem_eq(id, matches[_i].id, id_len);
	ck_assert(id >= topic && id + id_len <= topic + strlen(topic));
}
END_TEST

/* What a group says of a topic: those it ignores, then goodbyes, then heartbeats; the first group in the file decides.
 */
static const struct {
	const char *topic, *payload;
	enum hw_match match;
	uint16_t group;
	const char *id;
	bool goodbye;
} sorted[] = {
	{"tele/a/STATE", "{}", HW_MATCH_HEARTBEAT, 4, "a", false},
	{"tele/a/LWT", "Offline", HW_MATCH_GOODBYE, 4, "a", true},
	{"tele/a/LWT", "Online", HW_MATCH_GOODBYE, 4, "a", false},
	{"tele/a/LWT", "offline", HW_MATCH_GOODBYE, 4, "a", false},
	{"tele/a/LWT", "Offline ", HW_MATCH_GOODBYE, 4, "a", false},
	{"tele/a/LWT", "gone away", HW_MATCH_GOODBYE, 4, "a", true},
	{"tele/a/LWT", "", HW_MATCH_CLEARING, 4, NULL, false},
	{"tele/a/any", "x", HW_MATCH_GOODBYE, 4, "a", true},
	{"tele/a/json", "{\"a\":{\"b\":\"off\"}}", HW_MATCH_GOODBYE, 4, "a", true},
	{"tele/a/json", "{\"a\":{\"b\":\"on\"}}", HW_MATCH_GOODBYE, 4, "a", false},
	{"tele/a/json", "a.b=off", HW_MATCH_GOODBYE, 4, "a", false},
	{"tele/a/cmd", "x", HW_MATCH_IGNORED, 4, NULL, false},
	{"tele/a/cmd", "", HW_MATCH_IGNORED, 4, NULL, false},
	{"tele/x/y/cmd", "x", HW_MATCH_IGNORED, 4, NULL, false}, /* also for the group behind */
	{"tele/a/both", "", HW_MATCH_HEARTBEAT, 4, "a", false},
	{"tele/a/both", "bye", HW_MATCH_GOODBYE, 4, "a", true},
	{"tele/x/y/z", "x", HW_MATCH_HEARTBEAT, 5, "x", false},
	{"late/a", "Offline", HW_MATCH_HEARTBEAT, 5, "a", false},
};

START_TEST(sorting)
{
	const struct hw_group_spec specs[] = {
		{.name = "plugs",
	         HB("tele/{id}/+", "tele/{id}/both"),
	         .goodbye = (const char *const[]){"tele/{id}/LWT Offline", "tele/{id}/LWT   gone away", "tele/{id}/any",
	                                          "tele/{id}/json a.b=off", "tele/{id}/both bye"},
	         .n_goodbye = 5,
	         .ignore = (const char *const[]){"tele/+/cmd", "tele/{id...}/cmd"},
	         .n_ignore = 2},
		{.name = "rest",
	         HB("tele/{id}/#", "late/{id}"),
	         .goodbye = (const char *const[]){"late/x Offline"},
	         .n_goodbye = 0},
	};
	const char *topic = sorted[_i].topic, *payload = sorted[_i].payload, *id = NULL;
	uint16_t group = 99;
	size_t id_len = 99;
	const struct hw_topic *by = NULL;
	bool no_memory;
	set(specs, 2);
	ck_assert_int_eq(hw_groups_match(&groups, topic, strlen(topic), !*payload, &group, &id, &id_len, &by),
	                 sorted[_i].match);
	ck_assert_uint_eq(group, sorted[_i].group);
	if (sorted[_i].id) {
		ck_assert_uint_eq(id_len, strlen(sorted[_i].id));
		ck_assert_mem_eq(id, sorted[_i].id, id_len);
	}
	if (sorted[_i].match == HW_MATCH_GOODBYE)
		ck_assert(hw_group_is_goodbye(groups.all[group], topic, strlen(topic), payload, strlen(payload),
		                              &no_memory) == sorted[_i].goodbye);
}
END_TEST

static const char *const bad_goodbyes[] = {"", " ", "a/{id", "a/{id} =x", "a/{id} x=", "a/#/b c"};

START_TEST(goodbyes_that_are_none)
{
	struct hw_goodbye g;
	const char *why = NULL;
	ck_assert_int_eq(hw_goodbye_compile(&g, bad_goodbyes[_i], &why), -EINVAL);
	ck_assert_ptr_nonnull(why);
	ck_assert_ptr_null(g.topic.filter);
}
END_TEST

/* Ids that consist of several values: which topic gives which id, and on which topic the status is published. */
static const struct {
	const char *id, *heartbeat, *status, *prefix; /* status NULL: nowhere */
	const char *topic, *has, *told;               /* has "": no id; NULL: no match */
} ids[] = {
	{"{site}/{id}", "s/{site}/{id}/hb", "t/{site}/x/{id}", "", "s/a/b/hb", "a/b", "t/a/x/b"},
	{"{site}/{id}", "s/{site}/{id}/hb", NULL, "", "s/a/b/hb", "a/b", ""},
	{"{site}/{id}", "s/{id}/{site}", "t/{id}/{site}", "", "s/a/b", "b/a", "t/a/b"},
	{"{site}/{id}", "s/{site}/{id}", "t/{id}/{site}", "p-", "s/a/b", "p-a/b", "t/b/a"},
	{"{site}/{id}", "s/{site}/{id}", NULL, "", "s//b", "", NULL},
	{"{site}/{id}", "s/{site}/{id}", NULL, "", "s/a/", "", NULL},
	{"{site}/{id}", "s/{site}/{id}", NULL, "", "s/a", NULL, NULL},
	{"{site}/{id}", "s/{site}/{id...}", NULL, "", "s/a//b", "", NULL},
	{"{site}/{id}", "s/{site}/{id...}", NULL, "", "s/a/b/", "", NULL},
	{"{site}/{id}", "s/{site}/{id...}", NULL, "", "s/a/b//c", "", NULL},
	{"x/{id}/y", "s/{id}", "t/{id}", "", "s/a", "x/a/y", "t/a"},
	{"{site}", "s/{site}/{id}", "t/{site}", "", "s/a/b", "a", "t/a"},
	{"{place}", "s/{place}/hb", "t/{place}", "q", "s/a/hb", "qa", "t/a"},
	{"{id}", "z/{id...}", "t/{id}/s", "", "z/a/b", "a/b", "t/a/b/s"},
	{"{id...}", "z/{id...}/set", "t/{id...}", "", "z/a/b/set", "a/b", "t/a/b"},
	{"{site}/{id}", "z/{site}/{id...}", "t/{id}/s/{site}", "", "z/a/b/c", "a/b/c", "t/b/c/s/a"},
	{"{id}/{site}", "z/{site}/{id...}", "t/{id}/{site}", "", "z/a/b/c", "b/c/a", "t/b/c/a"},
	{"nvr", "nvr/stats", "t/nvr", "", "nvr/stats", "nvr", "t/nvr"},
};

START_TEST(ids_are_put_together)
{
	const struct hw_group_spec spec = {.name = "g",
	                                   HB(ids[_i].heartbeat),
	                                   .id = ids[_i].id,
	                                   .status = ids[_i].status,
	                                   .id_prefix = ids[_i].prefix};
	const char *topic = ids[_i].topic, *id;
	char room[HW_ID_MAX], told[64] = "";
	const struct hw_topic *by = NULL;
	uint16_t group;
	size_t len;
	set(&spec, 1);
	enum hw_match kind = hw_groups_match(&groups, topic, strlen(topic), false, &group, &id, &len, &by);
	ck_assert_int_eq(kind, ids[_i].has ? HW_MATCH_HEARTBEAT : HW_MATCH_NONE);
	if (!ids[_i].has)
		return;
	const struct hw_group *g = groups.all[group];
	len = hw_group_id(g, by, topic, strlen(topic), room);
	ck_assert_uint_eq(len, strlen(ids[_i].has));
	ck_assert_mem_eq(room, ids[_i].has, len);
	if (len == 0)
		return;
	ck_assert(hw_group_fits(g, room, len));
	ck_assert_int_eq(hw_group_status_topic(g, room, len, told, sizeof(told)), (int)strlen(ids[_i].told));
	ck_assert_str_eq(told, ids[_i].told);
}
END_TEST

START_TEST(ids_of_another_form)
{
	const struct hw_group_spec specs[] = {
		{.name = "two", HB("s/{site}/{id}"), .id = "{site}/{id}", .status = "t/{site}/{id}", .id_prefix = "p-"},
		{.name = "one", HB("o/{id}"), .status = "o/{id}/s"}};
	char told[64], topic[HW_ID_MAX + 8], room[HW_ID_MAX];
	const struct hw_topic *by;
	const char *id;
	uint16_t group;
	size_t len;
	set(specs, 2);
	const struct hw_group *two = groups.all[4], *one = groups.all[5];
	ck_assert_int_eq(hw_group_status_topic(two, "p-a", 3, told, sizeof(told)), 0);
	ck_assert_int_eq(hw_group_status_topic(two, "a/b", 3, told, sizeof(told)), 5); /* from before it had a prefix */
	ck_assert(!hw_group_fits(two, "a/b", 3) && hw_group_fits(two, "p-a/b", 5) && !hw_group_fits(two, "p-a/b/c", 7));
	ck_assert(hw_group_fits(one, "a", 1) && !hw_group_fits(one, "a/b", 3));
	/* As long as an id can be, and a byte more. */
	for (int more = 0; more < 2; more++) {
		int n = snprintf(topic, sizeof(topic), "s/a/%0*d", HW_ID_MAX - 4 + more, 0);
		ck_assert_int_eq(hw_groups_match(&groups, topic, (size_t)n, false, &group, &id, &len, &by),
		                 HW_MATCH_HEARTBEAT);
		ck_assert_uint_eq(hw_group_id(two, by, topic, (size_t)n, room), more ? 0 : HW_ID_MAX);
	}
}
END_TEST

START_TEST(fields_are_copied)
{
	char name[] = "n", beat[] = "a/{id}", status[] = "b/{id}", prefix[] = "p-", field[] = "ip a.b";
	const struct hw_group_spec spec = {.name = name,
	                                   HB(beat),
	                                   .status = status,
	                                   .id_prefix = prefix,
	                                   .field = (const char *const[]){field},
	                                   .n_field = 1,
	                                   .format = HW_FORMAT_PLAIN,
	                                   .timeout_ms = 1,
	                                   .timeout_max_ms = 2,
	                                   .goodbye_delay_ms = 3,
	                                   .max_age_ms = 4,
	                                   .max_offline_rate = 5};
	set(&spec, 1);
	memset(name, 'x', 1);
	memset(beat, 'x', 1);
	memset(status, 'x', 1);
	memset(prefix, 'x', 1);
	memset(field, 'x', 6);
	int at = hw_groups_find(&groups, "n");
	ck_assert_int_eq(at, 4);
	const struct hw_group *g = groups.all[at];
	ck_assert_str_eq(g->name, "n");
	ck_assert_uint_eq(g->n_heartbeat, 1);
	ck_assert_str_eq(g->heartbeat[0].filter, "a/+");
	ck_assert_str_eq(g->status.filter, "b/+");
	ck_assert_str_eq(g->id_prefix, "p-");
	ck_assert_uint_eq(g->id_prefix_len, 2);
	ck_assert_uint_eq(g->reading.n, 1);
	ck_assert_uint_eq(g->reading.fields[0].has, HW_HAS_IP);
	ck_assert_str_eq(g->reading.fields[0].path, "a.b");
	ck_assert(g->reading.plain && !groups.all[0]->reading.plain);
	ck_assert_int_eq(g->timeout_ms, 1);
	ck_assert_int_eq(g->timeout_max_ms, 2);
	ck_assert_int_eq(g->goodbye_delay_ms, 3);
	ck_assert_int_eq(g->max_age_ms, 4);
	ck_assert_uint_eq(g->max_offline_rate, 5);
	ck_assert(!g->retired);
	ck_assert_str_eq(groups.all[1]->id_prefix, "");
	ck_assert_ptr_null(groups.all[1]->status.filter);
}
END_TEST

/* A broker that stops publishes its clients' wills before its bridge's state, below $SYS/, changes. */
START_TEST(a_bridged_group_holds_goodbyes)
{
	static const char *const whiles[] = {"hub/state on", "$SYS/broker/connection/site/state 1"};
	static const int64_t asked_ms[] = {0, 1999, 2001}, bridge_ms[] = {2000, 2000, 2001};
	for (unsigned k = 0; k < 3; k++) {
		const struct hw_group_spec specs[] = {{.name = "hub",
		                                       HB("h/{id}"),
		                                       .goodbye_delay_ms = asked_ms[k],
		                                       .whiles = whiles,
		                                       .n_whiles = 1,
		                                       .timeout_ms = 1},
		                                      {.name = "bridge",
		                                       HB("b/{id}"),
		                                       .goodbye_delay_ms = asked_ms[k],
		                                       .whiles = whiles,
		                                       .n_whiles = 2,
		                                       .timeout_ms = 1}};
		set(specs, 2);
		ck_assert_int_eq(groups.all[hw_groups_find(&groups, "hub")]->goodbye_delay_ms, asked_ms[k]);
		ck_assert_int_eq(groups.all[hw_groups_find(&groups, "bridge")]->goodbye_delay_ms, bridge_ms[k]);
	}
}
END_TEST

START_TEST(reload)
{
	const struct hw_group_spec second[] = {{.name = "new", HB("plant/{id}/valve"), .timeout_ms = 1},
	                                       {.name = "all", HB("plant/{id}/valve", "x/{id}"), .timeout_ms = 9}};
	struct hw_group *valves = groups.all[0], *all = groups.all[1];
	uint16_t group;
	const char *id;
	size_t id_len;
	const struct hw_topic *by;
	set(second, 2);
	/* Indices stay, and so do the groups' places. */
	ck_assert_uint_eq(groups.n, 5);
	ck_assert_ptr_eq(groups.all[0], valves);
	ck_assert_ptr_eq(groups.all[1], all);
	ck_assert_int_eq(hw_groups_find(&groups, "valves"), 0);
	ck_assert_int_eq(hw_groups_find(&groups, "all"), 1);
	ck_assert_int_eq(hw_groups_find(&groups, "new"), 4);
	ck_assert_int_eq(hw_groups_find(&groups, "nobody"), -1);
	/* What is in force is new. */
	ck_assert_int_eq(all->timeout_ms, 9);
	ck_assert_uint_eq(all->n_heartbeat, 2);
	ck_assert_uint_eq(all->rank, 1);
	ck_assert_uint_eq(groups.all[4]->rank, 0);
	ck_assert_uint_eq(groups.n_order, 2);
	ck_assert_uint_eq(groups.order[0], 4);
	ck_assert_uint_eq(groups.order[1], 1);
	ck_assert(valves->retired && groups.all[2]->retired && groups.all[3]->retired);
	ck_assert(!all->retired && !groups.all[4]->retired);
	/* The order of the file decides, a retired group takes nothing, and keeps what its devices need. */
	ck_assert_int_eq(hw_groups_match(&groups, "plant/a/valve", 13, false, &group, &id, &id_len, &by),
	                 HW_MATCH_HEARTBEAT);
	ck_assert_uint_eq(group, 4);
	ck_assert_int_eq(hw_groups_match(&groups, "keys/a", 6, false, &group, &id, &id_len, &by), HW_MATCH_NONE);
	ck_assert_int_eq(valves->timeout_ms, 5000);
	ck_assert_str_eq(valves->id_prefix, "v-");
	ck_assert_str_eq(valves->status.filter, "plant/+/status");
}
END_TEST

START_TEST(retired_groups_still_clear)
{
	const struct hw_group_spec spec = {.name = "all", HB("plant/{id}/#")};
	uint16_t group;
	const char *id;
	size_t id_len;
	const struct hw_topic *by;
	set(&spec, 1);
	ck_assert_int_eq(hw_groups_match(&groups, "plant/a/status", 14, true, &group, &id, &id_len, &by),
	                 HW_MATCH_CLEARING);
	ck_assert_uint_eq(group, 0);
	ck_assert_int_eq(hw_groups_match(&groups, "plant/a/status", 14, false, &group, &id, &id_len, &by),
	                 HW_MATCH_HEARTBEAT);
	ck_assert_uint_eq(group, 1);
}
END_TEST

/* With a search through all filters, the matches take 2 s or more; with the index, some milliseconds. */
START_TEST(a_match_does_not_depend_on_the_number_of_groups)
{
	enum { GROUPS = 4000, FILTERS = 10, MATCHES = 20000 };
	static struct hw_group_spec specs[GROUPS];
	static char names[GROUPS][12], texts[GROUPS][FILTERS][48];
	static const char *lists[GROUPS][FILTERS];
	uint16_t group;
	const char *id;
	size_t id_len;
	const struct hw_topic *by;
	for (int g = 0; g < GROUPS; g++) {
		snprintf(names[g], sizeof(names[g]), "%d", g);
		for (int k = 0; k < FILTERS; k++) {
			snprintf(texts[g][k], sizeof(texts[g][k]), "site/%d/%d/{id}/up", g, k);
			lists[g][k] = texts[g][k];
		}
		specs[g] = (struct hw_group_spec){.name = names[g], .heartbeat = lists[g], .n_heartbeat = FILTERS};
	}
	ck_assert_int_eq(hw_groups_set(&groups, specs, GROUPS), 0);
	clock_t before = clock();
	for (int i = 0; i < MATCHES; i++) {
		static const char topic[] = "site/3999/9/pump/up";
		if (hw_groups_match(&groups, topic, sizeof(topic) - 1, i % 2, &group, &id, &id_len, &by) !=
		    HW_MATCH_HEARTBEAT)
			ck_abort();
	}
	ck_assert(clock() - before < CLOCKS_PER_SEC);
	ck_assert_str_eq(groups.all[group]->name, "3999");
}
END_TEST

START_TEST(revival)
{
	const struct hw_group_spec other = {.name = "other", HB("o/{id}")};
	const struct hw_group_spec back = {.name = "valves", HB("v/{id}"), .timeout_ms = 3};
	set(&other, 1);
	ck_assert(groups.all[0]->retired);
	set(&back, 1);
	ck_assert_uint_eq(groups.n, 5);
	ck_assert(!groups.all[0]->retired);
	ck_assert_int_eq(groups.all[0]->timeout_ms, 3);
	ck_assert_ptr_null(groups.all[0]->status.filter);
	ck_assert_str_eq(groups.all[0]->id_prefix, "");
	ck_assert(groups.all[4]->retired);
	set(NULL, 0);
	ck_assert_uint_eq(groups.n_order, 0);
	ck_assert(groups.all[0]->retired);
	ck_assert_uint_eq(groups.n, 5);
}
END_TEST

START_TEST(all_or_nothing)
{
	const struct hw_group_spec good = {.name = "fresh", HB("f/{id}"), .timeout_ms = 1};
	const struct hw_group_spec bad[] = {
		{.name = "valves", HB("v/{id}", "v/id")},
		{.name = "valves", HB("v/{id}"), .status = "v/{id}/+"},
		{.name = "valves", HB("$share/g/{id}")},
		{.name = "fresh", HB("v/{id}")}, /* twice */
		{.name = "valves", HB("v/{id}"), .goodbye = (const char *const[]){"v x"}, .n_goodbye = 1},
		{.name = "valves", HB("v/{id}"), .ignore = (const char *const[]){"v/#/x"}, .n_ignore = 1},
		{.name = "valves",
	         HB("v"),
	         .batch = true,
	         .goodbye = (const char *const[]){"v/{id} x"},
	         .n_goodbye = 1},
	};
	for (int i = 0; i < COUNT(bad); i++) {
		const struct hw_group_spec specs[] = {good, bad[i]};
		ck_assert_int_eq(hw_groups_set(&groups, specs, 2), -EINVAL);
		ck_assert_uint_eq(groups.n, 4);
		ck_assert_uint_eq(groups.n_order, 4);
		ck_assert_int_eq(hw_groups_find(&groups, "fresh"), -1);
		ck_assert(!groups.all[0]->retired);
		ck_assert_int_eq(groups.all[0]->timeout_ms, 5000);
		ck_assert_str_eq(groups.all[0]->heartbeat[0].filter, "plant/+/valve");
	}
}
END_TEST

START_TEST(table_is_bounded)
{
	enum { MORE = HW_GROUPS_MAX - 4 };
	static struct hw_group_spec specs[HW_GROUPS_MAX + 1];
	static char names[HW_GROUPS_MAX + 1][16];

	for (int i = 0; i <= HW_GROUPS_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "g%d", i);
		specs[i] = (struct hw_group_spec){.name = names[i]};
	}
	ck_assert_int_eq(hw_groups_set(&groups, specs, HW_GROUPS_MAX + 1), -ENOSPC);
	/* Four are in it, retired or not. */
	ck_assert_int_eq(hw_groups_set(&groups, specs, MORE + 1), -ENOSPC);
	ck_assert_uint_eq(groups.n, 4);
	set(specs, MORE);
	ck_assert_uint_eq(groups.n, HW_GROUPS_MAX);
	ck_assert_uint_eq(groups.order[MORE - 1], HW_GROUPS_MAX - 1);
	ck_assert_int_eq(hw_groups_set(&groups, specs + 1, MORE), -ENOSPC);
	set(specs, MORE);
	specs[0].name = "valves"; /* the first of the table is no new one */
	set(specs, MORE);
}
END_TEST

START_TEST(status_topic)
{
	const struct hw_group *valves = groups.all[0];
	char buf[64], big[400], id[HW_ID_MAX];
	ck_assert_int_eq(hw_group_status_topic(valves, "v-aXX", 3, buf, sizeof(buf)), 14);
	ck_assert_str_eq(buf, "plant/a/status");
	ck_assert_int_eq(hw_group_status_topic(valves, "v-a", 3, buf, 15), 14);
	ck_assert_int_eq(hw_group_status_topic(valves, "v-a", 3, buf, 14), -ENAMETOOLONG);
	/* Without the prefix, or with nothing after it. */
	ck_assert_int_eq(hw_group_status_topic(valves, "w-a", 3, buf, sizeof(buf)), 16);
	ck_assert_str_eq(buf, "plant/w-a/status");
	ck_assert_int_eq(hw_group_status_topic(valves, "v", 1, buf, sizeof(buf)), 14);
	ck_assert_str_eq(buf, "plant/v/status");
	ck_assert_int_eq(hw_group_status_topic(valves, "v-", 2, buf, sizeof(buf)), 15);
	ck_assert_str_eq(buf, "plant/v-/status");
	/* Only once. */
	ck_assert_int_gt(hw_group_status_topic(valves, "v-v-a", 5, buf, sizeof(buf)), 0);
	ck_assert_str_eq(buf, "plant/v-a/status");

	memset(id, 'i', sizeof(id));
	ck_assert_int_eq(hw_group_status_topic(groups.all[3], id, sizeof(id), big, sizeof(big)), 11 + HW_ID_MAX);
	ck_assert_int_eq(hw_group_status_topic(groups.all[1], "a", 1, buf, sizeof(buf)), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("group");
	TCase *tc = tcase_create("table");
	tcase_set_timeout(tc, 60); /* the bounded table under valgrind */
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, match, 0, COUNT(matches));
	tcase_add_loop_test(tc, sorting, 0, COUNT(sorted));
	tcase_add_loop_test(tc, goodbyes_that_are_none, 0, COUNT(bad_goodbyes));
	tcase_add_loop_test(tc, ids_are_put_together, 0, COUNT(ids));
	tcase_add_test(tc, ids_of_another_form);
	tcase_add_test(tc, fields_are_copied);
	tcase_add_test(tc, a_bridged_group_holds_goodbyes);
	tcase_add_test(tc, reload);
	tcase_add_test(tc, retired_groups_still_clear);
	tcase_add_test(tc, a_match_does_not_depend_on_the_number_of_groups);
	tcase_add_test(tc, revival);
	tcase_add_test(tc, all_or_nothing);
	tcase_add_test(tc, table_is_bounded);
	tcase_add_test(tc, status_topic);
	suite_add_tcase(s, tc);
	return suite_run(s);
}

/* SPDX-License-Identifier: MIT */
/* Forms of groups: what changes them and what does not, and which devices one of several nodes judges. */
#include "../suite.h"
#include "gate_world.h"

#define OTHER 0x12345 /* a form that no group here has */

/* --- what the form is made of --------------------------------------------------- */

static const char *const two[] = {"a/{id}/x", "b/{id}/y"}, *const reversed[] = {"b/{id}/y", "a/{id}/x"},
			 *const more[] = {"a/{id}/x", "b/{id}/y", "c/{id}"}, *const dots[] = {"a/{id...}"},
			 *const bye[] = {"a/{id}/bye"}, *const bye_word[] = {"a/{id}/bye offline"},
			 *const noise[] = {"a/+/noise", "a/+/cmd"}, *const noise_reversed[] = {"a/+/cmd", "a/+/noise"},
			 *const batch[] = {"batches"}, *const on[] = {"site/state 1"},
			 *const rssi[] = {"rssi Wifi.RSSI"};

#define OF(...)                                                                                                        \
	{                                                                                                              \
		.heartbeat = two, .n_heartbeat = 2, __VA_ARGS__                                                        \
	}

static uint64_t form_behind(const struct hw_group_spec *before, struct hw_group_spec spec)
{
	struct hw_groups g;
	struct hw_group_spec specs[2];
	size_t n = 0;
	hw_groups_init(&g);
	if (before)
		specs[n++] = *before;
	specs[n++] = spec;
	ck_assert_msg(hw_groups_set(&g, specs, n) == 0, "id %s", spec.id ? spec.id : "-");
	uint64_t form = g.all[n - 1]->form_hash;
	hw_groups_fini(&g);
	return form;
}

static uint64_t form(struct hw_group_spec spec)
{
	spec.name = spec.name ? spec.name : "g";
	spec.timeout_ms = spec.timeout_ms ? spec.timeout_ms : 1000;
	return form_behind(NULL, spec);
}

START_TEST(what_decides_whether_a_device_is_heard_changes_the_form)
{
	const struct hw_group_spec specs[] = {
		OF(.name = "g"),
		{.heartbeat = two, .n_heartbeat = 1},
		{.heartbeat = more, .n_heartbeat = 3},
		{.heartbeat = dots, .n_heartbeat = 1},
		OF(.goodbye = bye, .n_goodbye = 1),
		OF(.goodbye = bye_word, .n_goodbye = 1),
		OF(.ignore = bye, .n_ignore = 1),
		OF(.ignore = noise, .n_ignore = 2),
		OF(.id = "dev/{id}"),
		OF(.id_prefix = "dev-"),
		OF(.max_age_ms = 60000),
		OF(.format = HW_FORMAT_HOMIE),
		OF(.format = HW_FORMAT_PLAIN),
		OF(.retained = true),
		{.heartbeat = batch, .n_heartbeat = 1, .batch = true},
	};
	enum { N = sizeof(specs) / sizeof(*specs) };
	uint64_t forms[N];
	for (int i = 0; i < N; i++) {
		forms[i] = form(specs[i]);
		ck_assert_uint_ne(forms[i], 0);
		ck_assert_uint_le(forms[i], UINT32_MAX);
		for (int k = 0; k < i; k++)
			ck_assert_msg(forms[i] != forms[k], "%d and %d have one form", i, k);
	}
}
END_TEST

START_TEST(what_does_not_leaves_it)
{
	const struct hw_group_spec same[] = {
		OF(.name = "g"),
		OF(.name = "other"),
		OF(.timeout_ms = 7, .timeout_max_ms = 8, .goodbye_delay_ms = 9),
		OF(.max_offline_rate = 3, .canary = true),
		OF(.probe = "are you there", .probe_after_ms = 1, .probes = 2),
		OF(.status = "told/{id}"),
		OF(.whiles = on, .n_whiles = 1),
		OF(.field = rssi, .n_field = 1),
		OF(.id = "{id}", .id_prefix = ""),
		{.heartbeat = reversed, .n_heartbeat = 2},
	};
	const struct hw_group_spec ignoring[] = {OF(.ignore = noise, .n_ignore = 2),
	                                         OF(.ignore = noise_reversed, .n_ignore = 2)};
	for (size_t i = 1; i < sizeof(same) / sizeof(*same); i++)
		ck_assert_msg(form(same[i]) == form(same[0]), "%zu", i);
	ck_assert_uint_eq(form(ignoring[0]), form(ignoring[1]));
}
END_TEST

/* A topic that a group ignores does not reach the groups after it. */
START_TEST(what_an_earlier_group_ignores_changes_the_form)
{
	const struct hw_group_spec spec = OF(.name = "g", .timeout_ms = 1000);
	const char *const ignored[] = {"a/+/x", "a/#", "+/{id}/y", "a/+/z", "c/#", "#"};
	const bool changes[] = {true, true, true, false, false, true};
	struct hw_group_spec before = {.name = "first", .heartbeat = batch, .n_heartbeat = 1, .batch = true};
	before.timeout_ms = 1000;
	uint64_t plain = form_behind(&before, spec);
	ck_assert_uint_eq(plain, form_behind(NULL, spec));
	before.n_ignore = 1;
	for (int i = 0; i < 6; i++) {
		before.ignore = &ignored[i];
		ck_assert_msg((form_behind(&before, spec) != plain) == changes[i], "%s", ignored[i]);
	}
}
END_TEST

/* Nor does a device whose messages an earlier group takes. */
START_TEST(what_an_earlier_group_takes_changes_the_form)
{
	const struct hw_group_spec spec = OF(.name = "g", .timeout_ms = 1000);
	const char *const taken[] = {"a/{id}/x", "+/{id}/x", "a/{id}/z", "c/{id}"};
	struct hw_group_spec before = {.name = "first", .n_heartbeat = 1, .timeout_ms = 1000};
	struct hw_group_spec ignoring = {.name = "first", .heartbeat = batch, .n_heartbeat = 1, .batch = true};
	for (int i = 0; i < 4; i++) {
		before.heartbeat = &taken[i];
		ck_assert_msg((form_behind(&before, spec) != form_behind(NULL, spec)) == (i < 2), "%s", taken[i]);
	}
	ignoring.timeout_ms = 1000;
	ignoring.ignore = taken;
	ignoring.n_ignore = 1;
	before.heartbeat = taken;
	ck_assert_uint_ne(form_behind(&before, spec), form_behind(&ignoring, spec));
}
END_TEST

/* A random filter of few levels. `id`: what follows its first level. */
static void draw_filter(uint64_t *x, const char *id, char *to, size_t size)
{
	static const char *const level[] = {"a", "b", "ab", "+", "a!", ""};
	*x = *x * 6364136223846793005u + 1442695040888963407u;
	int at = snprintf(to, size, "%s%s", level[(*x >> 40) % 4], id);
	unsigned levels = (unsigned)(*x >> 60) % 4;
	for (unsigned k = 0; k < levels; k++)
		at += snprintf(to + at, size - (size_t)at, "/%s", level[(*x >> (20 + 8 * k)) % 6]);
	if (*x >> 50 & 1)
		snprintf(to + at, size - (size_t)at, "/#");
}

static bool takes(const struct hw_group *by, const struct hw_group *from)
{
	bool any = false;
	for (size_t i = 0; i < 1 + from->n_goodbye; i++) {
		const char *f = i == 0 ? from->heartbeat->filter : from->goodbye->topic.filter;
		any |= hw_topic_filters_overlap(by->heartbeat->filter, f);
		any |= by->n_goodbye > 0 && hw_topic_filters_overlap(by->goodbye->topic.filter, f);
		any |= by->n_ignore > 0 && hw_topic_filters_overlap(by->ignore->filter, f);
	}
	return any;
}

/* A group's form depends on the earlier groups that take topics from it, and on no other: the sorted look-up finds
 * those that a comparison of each pair of random filters finds. */
START_TEST(the_takers_found_are_those_of_each_pair)
{
	enum { GROUPS = 60 };
	char text[GROUPS][64], other[GROUPS][64], name[GROUPS][16];
	const char *filter[GROUPS], *second[GROUPS];
	struct hw_group_spec specs[GROUPS] = {{0}};
	uint64_t x = (uint64_t)_i + 1;
	for (int i = 0; i < GROUPS; i++) {
		draw_filter(&x, "/{id}", text[i], sizeof(text[i]));
		draw_filter(&x, i % 3 == 0 ? "" : "/{id}", other[i], sizeof(other[i]));
		filter[i] = text[i];
		second[i] = other[i];
		snprintf(name[i], sizeof(name[i]), "g%d", i);
		specs[i] = (struct hw_group_spec){.name = name[i],
		                                  .timeout_ms = 1000,
		                                  .heartbeat = &filter[i],
		                                  .n_heartbeat = 1,
		                                  .ignore = &second[i],
		                                  .n_ignore = i % 3 == 0,
		                                  .goodbye = &second[i],
		                                  .n_goodbye = i % 3 == 1};
	}
	struct hw_groups g;
	hw_groups_init(&g);
	ck_assert_int_eq(hw_groups_set(&g, specs, GROUPS), 0);
	for (int i = 0; i < GROUPS; i++) {
		struct hw_group_spec alone[GROUPS];
		size_t n = 0;
		for (int k = 0; k < i; k++)
			if (takes(g.all[k], g.all[i]))
				alone[n++] = specs[k];
		alone[n] = specs[i];
		struct hw_groups few;
		hw_groups_init(&few);
		ck_assert_int_eq(hw_groups_set(&few, alone, n + 1), 0);
		ck_assert_msg(few.all[n]->form_hash == g.all[i]->form_hash, "%s", text[i]);
		if (n > 0)
			ck_assert_msg(form_behind(NULL, specs[i]) != g.all[i]->form_hash, "%s", text[i]);
		hw_groups_fini(&few);
	}
	hw_groups_fini(&g);
}
END_TEST

/* --- which devices are judged ---------------------------------------------------- */

static const struct hw_group *ours(void)
{
	return hw_monitor_groups(w->m)->all[0];
}

/* Another node reports "a", which it heard in that form of a group. */
static void told_in(const char *group, uint64_t in_form, uint64_t seq)
{
	struct hw_event e = entry("a", HW_STATE_ONLINE, seq);
	e.group = group;
	e.group_len = strlen(group);
	e.form = in_form;
	ck_assert_int_eq(hw_monitor_stream(w->m, w->now, &e), 0);
}

static uint32_t unjudged(void)
{
	while (!hw_monitor_count_unjudged(w->m, w->now, 1))
		;
	return hw_monitor_unjudged(w->m);
}

static void reload(const struct hw_group_spec *groups, size_t n, int64_t grace_ms)
{
	struct hw_monitor_conf conf = world_conf();
	conf.several = true;
	conf.grace_ms = grace_ms;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, groups, n), 0);
	world_drain(w);
}

START_TEST(a_device_that_was_heard_in_our_form_is_judged)
{
	told_in("default", _i ? ours()->form_hash : 0, 5); /* 0: the other node does not say */
	role(HW_ROLE_AUTHORITATIVE);
	ck_assert_uint_eq(unjudged(), 0);
	world_pass(w, 2 * TIMEOUT);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
}
END_TEST

START_TEST(a_device_that_was_heard_in_another_form_is_not_until_it_is_heard_here)
{
	told_in("default", OTHER, 5);
	ck_assert(!hw_monitor_judges(w->m, world_device(w, "a")));
	ck_assert_uint_eq(hw_monitor_form(w->m, world_device(w, "a")), OTHER);
	role(HW_ROLE_AUTHORITATIVE);
	world_pass(w, 10 * TIMEOUT);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert_uint_eq(unjudged(), 1);
	ck_assert_uint_eq(hw_monitor_unjudged_of(w->m, 0), 1);
	struct hw_partitions in = hw_monitor_unjudged_in(w->m);
	ck_assert(hw_partitions_has(&in, p));
	struct hw_group_judging is = hw_monitor_judging(w->m, 0);
	ck_assert_uint_eq(is.unjudged[1].form, OTHER);
	ck_assert(hw_partitions_has(&is.unjudged[1].in, p) && !is.judged);
	world_beat(w, "a", "");
	ck_assert_uint_eq(unjudged(), 0);
	ck_assert_uint_eq(hw_monitor_form(w->m, world_device(w, "a")), ours()->form_hash);
	world_pass(w, 2 * TIMEOUT);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
}
END_TEST

START_TEST(nor_are_devices_of_a_group_that_is_not_configured)
{
	const struct hw_group_spec groups[] = {
		world_group("default", 30000),
		{.name = "pumps", .heartbeat = dots, .n_heartbeat = 1, .timeout_ms = 1000}};
	told_in("pumps", OTHER, 5);
	ck_assert_str_eq(hw_monitor_group_of(w->m, world_device(w, "a"))->name, "pumps");
	role(HW_ROLE_AUTHORITATIVE);
	world_pass(w, 10 * TIMEOUT);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert_uint_eq(unjudged(), 1);
	ck_assert_uint_eq(hw_monitor_unjudged_of(w->m, 1), 1);
	struct hw_group_judging is = hw_monitor_judging(w->m, 1);
	ck_assert_uint_eq(is.unjudged[0].form, OTHER);
	ck_assert(hw_partitions_has(&is.unjudged[0].in, p) && !is.judged);
	reload(groups, 2, 0); /* in another form: it is heard first, then judged */
	world_pass(w, 10 * TIMEOUT);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert_uint_eq(unjudged(), 1);
	world_say(w, "a/a", "", false);
	ck_assert_uint_eq(unjudged(), 0);
	world_pass(w, 2 * S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
}
END_TEST

static const struct {
	const char *group;
	uint64_t form; /* 1: ours */
	enum hw_state ends;
} stored[] = {
	{"default", OTHER, HW_STATE_ONLINE}, {"default", 1, HW_STATE_OFFLINE}, {"default", 0, HW_STATE_OFFLINE},
	{"pumps", OTHER, HW_STATE_ONLINE},   {"pumps", 0, HW_STATE_ONLINE},
};

START_TEST(the_store_says_in_which_form_a_device_was_heard)
{
	struct hw_stored s = {.id = "a",
	                      .id_len = 1,
	                      .state = HW_STATE_ONLINE,
	                      .since_ms = 1,
	                      .seq = 5,
	                      .group = stored[_i].group,
	                      .form = stored[_i].form == 1 ? ours()->form_hash : stored[_i].form};
	ck_assert_int_eq(hw_monitor_load(w->m, w->now, &s), 0);
	ck_assert_str_eq(hw_monitor_group_of(w->m, world_device(w, "a"))->name, stored[_i].group);
	role(HW_ROLE_AUTHORITATIVE);
	world_pass(w, 10 * TIMEOUT);
	ck_assert(world_is(w, "a", stored[_i].ends));
	ck_assert_uint_eq(unjudged(), stored[_i].ends == HW_STATE_ONLINE);
}
END_TEST

/* An online device is past its deadline, as this node counts: the grace of a reload is part of that. */
START_TEST(an_unjudged_device_is_late_after_its_deadline)
{
	struct hw_group_spec same = world_group("default", 30000), changed = same;
	changed.n_heartbeat = 1;
	reload(&same, 1, 5000); /* sets the grace of the next one */
	told_in("default", ours()->form_hash, 5);
	world_beat(w, "a", "");
	world_pass(w, S);
	reload(&changed, 1, 5000);
	ck_assert_uint_eq(unjudged(), 0); /* its owner counts it */
	struct hw_group_judging is = hw_monitor_judging(w->m, 0);
	ck_assert(hw_partitions_has(&is.online, p) && !hw_partitions_any(&is.late));
	world_pass(w, TIMEOUT + 4 * S);
	unjudged();
	is = hw_monitor_judging(w->m, 0);
	ck_assert(hw_partitions_has(&is.online, p) && !hw_partitions_any(&is.late));
	world_pass(w, 2 * S);
	unjudged();
	is = hw_monitor_judging(w->m, 0);
	ck_assert(hw_partitions_has(&is.online, p) && hw_partitions_has(&is.late, p));
	ck_assert_uint_eq(hw_partitions_count(&is.late), 1);
	struct hw_event e = entry("a", HW_STATE_OFFLINE, world_device(w, "a")->seq + 1);
	ck_assert_int_eq(hw_monitor_stream(w->m, w->now, &e), 0);
	unjudged();
	is = hw_monitor_judging(w->m, 0);
	ck_assert(!hw_partitions_any(&is.online) && !hw_partitions_any(&is.late));
}
END_TEST

static bool is_unstored(void)
{
	unjudged();
	const struct hw_partitions in = hw_monitor_unstored_in(w->m);
	return hw_partitions_has(&in, p);
}

/* Only nodes with other groups may fail to hear a device. One round may count what the owner is about to report. */
START_TEST(an_offline_device_that_is_heard_here_is_unstored)
{
	const struct hw_peer_group peer = {.name = "default", .timeout_ms = 30000, .timeout_max_ms = 100000};
	told_in("default", 0, 5);
	struct hw_event e = entry("a", HW_STATE_OFFLINE, 6);
	ck_assert_int_eq(hw_monitor_stream(w->m, w->now, &e), 0);
	hw_monitor_peer_groups(w->m, &peer, 1, true);
	ck_assert(!is_unstored() && !is_unstored());
	world_beat(w, "a", "");
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	ck_assert(!is_unstored() && is_unstored());
	e = entry("a", HW_STATE_ONLINE, 7);
	ck_assert_int_eq(hw_monitor_stream(w->m, w->now, &e), 0);
	ck_assert(!is_unstored());
}
END_TEST

/* Nothing was expected on the new filters before: after the grace, the timeouts start again. Until a device is heard
 * on them, its silence proves nothing. */
START_TEST(a_reload_that_changes_the_form_has_devices_heard_again)
{
	struct hw_group_spec changed = world_group("default", 30000), longer = world_group("default", 31000);
	changed.n_heartbeat = 1;
	role(HW_ROLE_AUTHORITATIVE);
	world_beat(w, "a", "");
	world_pass(w, S);
	reload(&longer, 1, 5000);
	ck_assert(hw_monitor_judges(w->m, world_device(w, "a")));
	reload(&changed, 1, 5000);
	ck_assert(!hw_monitor_judges(w->m, world_device(w, "a")));
	world_pass(w, 10 * TIMEOUT);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert_uint_eq(unjudged(), 1);
	told_in("default", ours()->form_hash, world_device(w, "a")->seq); /* seq is no newer: nothing is said */
	ck_assert_uint_eq(unjudged(), 1);
	world_beat(w, "a", "");
	ck_assert_uint_eq(unjudged(), 0);
	world_pass(w, 2 * TIMEOUT);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
}
END_TEST

static const char *const all_sites[] = {"s/+/{id}"}, *const one_site[] = {"s/a/{id}"};
static const struct hw_group_spec catch_all = {
	.name = "c", .heartbeat = all_sites, .n_heartbeat = 1, .timeout_ms = 20000, .timeout_max_ms = 60000};
static const struct hw_group_spec split[] = {
	{.name = "a", .heartbeat = one_site, .n_heartbeat = 1, .timeout_ms = 20000, .timeout_max_ms = 60000},
	{.name = "c", .heartbeat = all_sites, .n_heartbeat = 1, .timeout_ms = 4000, .timeout_max_ms = 4000}};

/* A reload moves slow devices to a group of their own, and shortens the timeout of the rest. Until a device is heard,
 * this monitor does not know of which group it is: the timeout from before is in force. */
START_TEST(a_shorter_timeout_waits_until_the_device_is_heard)
{
	struct hw_monitor_conf conf = world_conf();
	struct world *one = world_new(&conf, &catch_all, 1);
	world_connect(one);
	world_say(one, "s/a/slow", "", false);
	world_say(one, "s/a/own", "{\"timeout\":30000}", false);
	world_say(one, "s/b/dead", "", false);
	world_pass(one, 3 * S);
	for (int k = 0; k < 2; k++) { /* the second one changes the form once more */
		struct hw_group_spec next[2] = {split[0], split[1]};
		next[1].retained = k == 1;
		ck_assert_int_eq(hw_monitor_reconfigure(one->m, one->now, &conf, next, 2), 0);
		world_drain(one);
		world_pass(one, 8 * S);
	}
	world_pass(one, 9 * S);
	ck_assert(world_is(one, "slow", HW_STATE_ONLINE) && world_is(one, "own", HW_STATE_ONLINE));
	ck_assert_str_eq(hw_monitor_group_of(one->m, world_device(one, "slow"))->name, "c");
	world_say(one, "s/a/slow", "", false);
	ck_assert_str_eq(hw_monitor_group_of(one->m, world_device(one, "slow"))->name, "a");
	world_say(one, "s/b/fast", "", false);
	ck_assert_int_eq(hw_monitor_timeout_ms(one->m, world_device(one, "fast")), 4000);
	world_pass(one, 6 * S);
	ck_assert(world_is(one, "dead", HW_STATE_OFFLINE) && world_is(one, "slow", HW_STATE_ONLINE));
	ck_assert(world_is(one, "fast", HW_STATE_OFFLINE));
	/* Much later another change of the form has the timeout of the last one only. */
	world_say(one, "s/b/fast", "", false);
	world_pass(one, 60 * S);
	world_say(one, "s/b/fast", "", false);
	world_pass(one, S);
	ck_assert_int_eq(hw_monitor_reconfigure(one->m, one->now, &conf, split, 2), 0);
	ck_assert_int_eq(hw_monitor_timeout_ms(one->m, world_device(one, "fast")), 4000);
	world_free(one);
}
END_TEST

static const char *const both_filters[] = {"a/{id}", "b/{id}"}, *const b_filter[] = {"b/{id}"};
static const struct hw_group_spec lamps = {
	.name = "lamps", .heartbeat = both_filters, .n_heartbeat = 2, .timeout_ms = 60000, .timeout_max_ms = 60000};

static const char *group_of(struct world *one, const char *id)
{
	return hw_monitor_group_of(one->m, world_device(one, id))->name;
}

/* The second filter of "lamps" goes to a new group after it in the file. */
static void split_lamps(struct world *one, int64_t timeout_ms)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec next[] = {lamps, {.name = "slow", .heartbeat = b_filter, .n_heartbeat = 1}};
	next[0].n_heartbeat = 1;
	next[1].timeout_ms = next[1].timeout_max_ms = timeout_ms;
	world_pass(one, S);
	ck_assert_int_eq(hw_monitor_reconfigure(one->m, one->now, &conf, next, 2), 0);
	world_drain(one);
}

/* A device that its group no longer hears moves with its next heartbeat, also after the restart of a monitor whose
 * store names the old group. A device that both groups hear stays with the first. */
START_TEST(a_filter_that_goes_to_a_later_group_takes_its_devices_along)
{
	struct hw_monitor_conf conf = world_conf();
	struct world *one = world_new(&conf, &lamps, 1);
	world_connect(one);
	world_say(one, "b/only", "", false);
	world_say(one, "b/both", "", false);
	struct hw_stored s = {.id = "old", .id_len = 3, .state = HW_STATE_ONLINE, .group = "lamps", .seq = 5};
	ck_assert_int_eq(hw_monitor_load(one->m, one->now, &s), 0);
	split_lamps(one, 90000);
	ck_assert_str_eq(group_of(one, "only"), "lamps");
	for (int k = 0; k < 3; k++) {
		world_say(one, "b/only", "", false);
		world_say(one, "b/old", "", false);
		world_say(one, "b/both", "", false);
		ck_assert_str_eq(group_of(one, "only"), "slow");
		ck_assert_str_eq(group_of(one, "old"), "slow");
		ck_assert_str_eq(group_of(one, "both"), k == 0 ? "slow" : "lamps");
		world_say(one, "a/both", "", false);
		ck_assert_str_eq(group_of(one, "both"), "lamps");
		ck_assert_int_eq(hw_monitor_timeout_ms(one->m, world_device(one, "only")), 90000);
		world_pass(one, S);
	}
	world_free(one);
}
END_TEST

/* The group that the device has left may still hear it, and less often than the timeout of the new one. */
START_TEST(a_move_to_a_later_group_keeps_the_longer_timeout_for_that_long)
{
	struct hw_monitor_conf conf = world_conf();
	struct world *one = world_new(&conf, &lamps, 1);
	world_connect(one);
	world_say(one, "a/both", "", false);
	world_say(one, "b/only", "", false);
	split_lamps(one, 10000);
	world_say(one, "b/both", "", false);
	for (int k = 0; k < 5; k++) {
		world_say(one, "b/only", "", false);
		ck_assert_int_eq(hw_monitor_timeout_ms(one->m, world_device(one, "only")), 60000);
		world_pass(one, 11 * S);
	}
	ck_assert(world_is(one, "only", HW_STATE_ONLINE) && world_is(one, "both", HW_STATE_ONLINE));
	ck_assert_str_eq(group_of(one, "both"), "slow");
	world_say(one, "a/both", "", false);
	ck_assert_str_eq(group_of(one, "both"), "lamps");
	world_pass(one, 6 * S);
	world_say(one, "b/only", "", false);
	ck_assert_int_eq(hw_monitor_timeout_ms(one->m, world_device(one, "only")), 10000);
	world_pass(one, 11 * S);
	ck_assert(world_is(one, "only", HW_STATE_OFFLINE) && world_is(one, "both", HW_STATE_ONLINE));
	world_free(one);
}
END_TEST

/* A monitor that starts with other groups finds the devices of the groups that the file named otherwise. */
static struct world *restarted(const struct hw_group_spec *groups, size_t n)
{
	struct hw_monitor_conf conf = world_conf();
	struct world *one = world_new(&conf, groups, n);
	world_connect(one);
	return one;
}

static void load(struct world *one, const char *id, const char *group, uint64_t form)
{
	struct hw_stored s = {.id = id,
	                      .id_len = strlen(id),
	                      .state = HW_STATE_ONLINE,
	                      .reason = HW_REASON_HEARTBEAT,
	                      .group = group,
	                      .form = form,
	                      .seq = 5};
	ck_assert_int_eq(hw_monitor_load(one->m, one->now, &s), 0);
	world_drain(one);
}

START_TEST(after_a_restart_the_form_shows_which_group_was_renamed)
{
	struct hw_group_spec was[] = {lamps, {.name = "slow", .heartbeat = b_filter, .n_heartbeat = 1}};
	was[0].n_heartbeat = 1;
	was[1].timeout_ms = was[1].timeout_max_ms = 5000;
	struct world *one = restarted(was, 2);
	world_say(one, "a/a", "", false);
	world_say(one, "b/b", "", false);
	uint64_t a_form = hw_monitor_form(one->m, world_device(one, "a")),
		 b_form = hw_monitor_form(one->m, world_device(one, "b"));
	ck_assert(a_form && b_form && a_form != b_form);
	world_free(one);
	was[0].name = "slow"; /* the name of the other one */
	was[1].name = "pumps";
	one = restarted(was, 2);
	load(one, "a", "lamps", a_form);
	load(one, "b", "slow", b_form);
	load(one, "old", "lamps", 0); /* an older version has stored no form */
	load(one, "other", "slow", OTHER);
	ck_assert_str_eq(group_of(one, "a"), "slow");
	ck_assert_str_eq(group_of(one, "b"), "pumps");
	ck_assert_str_eq(group_of(one, "old"), "lamps");
	ck_assert_str_eq(group_of(one, "other"), "slow");
	ck_assert_uint_eq(hw_monitor_form(one->m, world_device(one, "a")), a_form); /* it is stored again */
	ck_assert_uint_eq(hw_monitor_form(one->m, world_device(one, "other")), OTHER);
	world_pass(one, 6 * S);
	ck_assert(world_is(one, "a", HW_STATE_ONLINE) && world_is(one, "b", HW_STATE_OFFLINE));
	world_pass(one, 60 * S);
	ck_assert(world_is(one, "a", HW_STATE_OFFLINE) && world_is(one, "other", HW_STATE_OFFLINE));
	ck_assert(world_is(one, "old", HW_STATE_ONLINE));
	hw_monitor_count_unjudged(one->m, one->now, UINT32_MAX);
	ck_assert_uint_eq(hw_monitor_unjudged(one->m), 1);
	world_free(one);
}
END_TEST

/* The names of two groups are exchanged, and exchanged back. Which form a silent device was heard in is then not known,
 * so none is stored for it. After its next heartbeat, the form is known again. */
START_TEST(after_two_reloads_the_form_of_a_silent_device_is_unknown)
{
	struct hw_group_spec file[] = {lamps, {.name = "slow", .heartbeat = b_filter, .n_heartbeat = 1}};
	file[0].n_heartbeat = 1;
	file[1].timeout_ms = file[1].timeout_max_ms = 5000;
	struct hw_group_spec swapped[] = {file[0], file[1]};
	swapped[0].name = file[1].name;
	swapped[1].name = file[0].name;
	struct hw_monitor_conf conf = world_conf();
	struct world *one = restarted(file, 2);
	world_pass(one, 5 * S); /* the monitor is not blind any more */
	world_say(one, "b/b", "", false);
	world_pass(one, S);
	uint64_t form = hw_monitor_form(one->m, world_device(one, "b"));
	ck_assert_uint_ne(form, 0);
	ck_assert_int_eq(hw_monitor_reconfigure(one->m, one->now, &conf, swapped, 2), 0);
	world_drain(one);
	ck_assert_uint_eq(hw_monitor_form(one->m, world_device(one, "b")), form);
	ck_assert_int_eq(hw_monitor_reconfigure(one->m, one->now, &conf, file, 2), 0);
	world_drain(one);
	ck_assert_uint_eq(hw_monitor_form(one->m, world_device(one, "b")), 0);
	world_pass(one, S);
	world_say(one, "b/b", "", false);
	ck_assert_uint_eq(hw_monitor_form(one->m, world_device(one, "b")), form);
	world_free(one);
}
END_TEST

/* As many names as there may be groups: a device of one more is still watched. */
START_TEST(names_of_too_many_groups_are_guessed)
{
	struct world *one = restarted(&lamps, 1);
	char name[16], id[16];
	for (int k = 0; k <= HW_GROUPS_MAX; k++) {
		snprintf(name, sizeof(name), "g%d", k);
		snprintf(id, sizeof(id), "d%d", k);
		load(one, id, name, 0);
	}
	ck_assert_str_eq(group_of(one, "d0"), "g0");
	ck_assert_str_eq(group_of(one, id), "lamps");
	ck_assert_uint_eq(hw_monitor_stats(one->m)->refused[HW_REFUSED_STORED], 2);
	world_pass(one, 61 * S);
	ck_assert(world_is(one, id, HW_STATE_OFFLINE) && world_is(one, "d0", HW_STATE_ONLINE));
	world_free(one);
}
END_TEST

/* --- timeouts --------------------------------------------------------------------- */

START_TEST(of_the_timeouts_that_nodes_have_the_longest_is_in_force)
{
	const struct hw_peer_group peers[] = {{.name = "default", .timeout_ms = 90000, .timeout_max_ms = 100000},
	                                      {.name = "default", .timeout_ms = 60000, .timeout_max_ms = 90000000},
	                                      {.name = "none", .timeout_ms = 1, .timeout_max_ms = 1}};
	role(HW_ROLE_AUTHORITATIVE);
	world_beat(w, "a", "");
	hw_monitor_peer_groups(w->m, peers, 3, true);
	world_drain(w);
	ck_assert_int_eq(hw_monitor_timeout_ms(w->m, world_device(w, "a")), 90000);
	world_pass(w, 89 * S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	world_pass(w, 2 * S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	world_beat(w, "a", "{\"timeout\":90000}"); /* more than timeout_max here */
	ck_assert_int_eq(hw_monitor_timeout_ms(w->m, world_device(w, "a")), 90000000);
	world_beat(w, "a", "{\"timeout\":0}");
	hw_monitor_peer_groups(w->m, peers + 2, 1, false); /* the others have let go of the longer one */
	world_pass(w, 29 * S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	world_pass(w, 2 * S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
}
END_TEST

START_TEST(a_shorter_timeout_elsewhere_is_not_in_force)
{
	const struct hw_peer_group peer = {.name = "default", .timeout_ms = 1000, .timeout_max_ms = 1000};
	role(HW_ROLE_AUTHORITATIVE);
	world_beat(w, "a", "");
	hw_monitor_peer_groups(w->m, &peer, 1, true);
	world_pass(w, 29 * S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	world_pass(w, 2 * S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("form");
	TCase *made = tcase_create("what it is made of"), *judged = tcase_create("judged"),
	      *longest = tcase_create("timeouts");
	tcase_add_test(made, what_decides_whether_a_device_is_heard_changes_the_form);
	tcase_add_test(made, what_does_not_leaves_it);
	tcase_add_test(made, what_an_earlier_group_ignores_changes_the_form);
	tcase_add_test(made, what_an_earlier_group_takes_changes_the_form);
	tcase_add_loop_test(made, the_takers_found_are_those_of_each_pair, 0, 40);
	tcase_add_checked_fixture(judged, setup, teardown);
	tcase_add_loop_test(judged, a_device_that_was_heard_in_our_form_is_judged, 0, 2);
	tcase_add_test(judged, a_device_that_was_heard_in_another_form_is_not_until_it_is_heard_here);
	tcase_add_test(judged, nor_are_devices_of_a_group_that_is_not_configured);
	tcase_add_loop_test(judged, the_store_says_in_which_form_a_device_was_heard, 0, 5);
	tcase_add_test(judged, an_unjudged_device_is_late_after_its_deadline);
	tcase_add_test(judged, an_offline_device_that_is_heard_here_is_unstored);
	tcase_add_test(judged, after_two_reloads_the_form_of_a_silent_device_is_unknown);
	tcase_add_test(judged, a_reload_that_changes_the_form_has_devices_heard_again);
	tcase_add_test(judged, a_shorter_timeout_waits_until_the_device_is_heard);
	tcase_add_test(judged, a_filter_that_goes_to_a_later_group_takes_its_devices_along);
	tcase_add_test(judged, a_move_to_a_later_group_keeps_the_longer_timeout_for_that_long);
	tcase_add_test(judged, after_a_restart_the_form_shows_which_group_was_renamed);
	tcase_add_test(judged, names_of_too_many_groups_are_guessed);
	tcase_add_checked_fixture(longest, setup, teardown);
	tcase_add_test(longest, of_the_timeouts_that_nodes_have_the_longest_is_in_force);
	tcase_add_test(longest, a_shorter_timeout_elsewhere_is_not_in_force);
	suite_add_tcase(suite, made);
	suite_add_tcase(suite, judged);
	suite_add_tcase(suite, longest);
	return suite_run(suite);
}

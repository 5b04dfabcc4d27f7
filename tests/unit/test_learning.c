/* SPDX-License-Identifier: MIT */
/* Learned timeouts in the monitor: which gaps are learned, when a timeout is in force, and what the store keeps. */
#include "../random.h"
#include "../suite.h"
#include "world.h"

static struct world *w;
static struct hw_monitor_conf conf;
static struct hw_group_spec group;

static void begin(enum hw_learn learn, int64_t timeout_ms)
{
	conf = world_conf();
	group = world_group("default", timeout_ms);
	group.learn = learn;
	group.timeout_min_ms = 1000;
	group.mistakes = 1;
	group.mistakes_per_ms = INT64_C(30) * 86400000;
	group.learn_gaps = 2;
	w = world_new(&conf, &group, 1);
	world_connect(w);
	world_pass(w, S);
}

static void setup(void)
{
	begin(HW_LEARN_YES, 50000); /* 20 gaps of ten seconds are enough */
}

static void teardown(void)
{
	world_free(w);
}

/* The device sends `n` heartbeats, one each `gap_ns` after a silence of that length. */
static void beats(const char *id, int64_t gap_ns, unsigned n)
{
	for (unsigned k = 0; k < n; k++) {
		world_pass(w, gap_ns);
		world_beat(w, id, "");
	}
}

static struct hw_learned learned(const char *id)
{
	struct hw_learned l;
	ck_assert(hw_monitor_learned(w->m, world_device(w, id), &l));
	return l;
}

static struct hw_timeout timeout(const char *id)
{
	return hw_monitor_timeout(w->m, world_device(w, id));
}

/* What the store has of an online device with an id of one character. */
static struct hw_stored stored(const char *id, const char *gaps)
{
	return (struct hw_stored){.id = id,
	                          .id_len = 1,
	                          .state = HW_STATE_ONLINE,
	                          .reason = HW_REASON_HEARTBEAT,
	                          .group = "default",
	                          .gaps = gaps,
	                          .seq = 5,
	                          .since_ms = w->now.wall_ms - 100000,
	                          .last_seen_ms = w->now.wall_ms - 1000};
}

static size_t deaths(void)
{
	return world_count(w, HW_OUT_TRANSITION, HW_STATE_OFFLINE);
}

static void reload(void)
{
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &group, 1), 0);
	world_pass(w, S);
}

/* A group whose devices are probed once. */
static void begin_probed(int64_t timeout_ms, int64_t probe_after_ms)
{
	begin(HW_LEARN_YES, timeout_ms);
	group.probe = "ping";
	group.probe_after_ms = probe_after_ms;
	group.probes = 1;
	conf.probe_answers = "nodes/w/ack";
	reload();
	world_beat(w, "a", "");
}

START_TEST(a_learned_timeout_is_in_force)
{
	int64_t at;
	world_beat(w, "a", "");
	beats("a", 10 * S, 19);
	ck_assert_int_eq(timeout("a").from, HW_TIMEOUT_GROUP);
	ck_assert_int_eq(learned("a").timeout_ms, 0);
	beats("a", 10 * S, 1);
	ck_assert_int_eq(timeout("a").from, HW_TIMEOUT_LEARNED);
	ck_assert_int_ge(timeout("a").ms, 20000);
	ck_assert_int_le(timeout("a").ms, 22000);
	ck_assert_int_eq(learned("a").timeout_ms, timeout("a").ms);
	ck_assert_uint_eq(learned("a").gaps_seen, 20);
	ck_assert_int_ge(learned("a").median_gap_ms, 10000);
	ck_assert_int_le(learned("a").median_gap_ms, 10100);
	ck_assert_int_ge(learned("a").largest_gap_ms, 10000);
	ck_assert_int_le(learned("a").largest_gap_ms, 10100);
	/* The wheel's entry stood at 50 seconds. */
	int64_t beat = w->now.mono.ns, ms = timeout("a").ms;
	world_pass(w, 30 * S);
	ck_assert_int_eq(world_last(w, &at)->state, HW_STATE_OFFLINE);
	ck_assert_int_ge(at, beat + ms * MS);
	ck_assert_int_le(at, beat + ms * MS + 50 * MS);
}
END_TEST

/* The heartbeats have a payload, so they do not take the short path of empty ones. */
START_TEST(heartbeats_with_a_payload)
{
	world_beat(w, "a", "{\"battery\":50}");
	for (unsigned k = 0; k < 20; k++) {
		world_pass(w, 10 * S);
		world_beat(w, "a", "{\"battery\":50}");
	}
	ck_assert_uint_eq(learned("a").gaps_seen, 20);
	ck_assert_int_eq(timeout("a").from, HW_TIMEOUT_LEARNED);
	world_pass(w, 30 * S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
}
END_TEST

START_TEST(show_decides_nothing)
{
	teardown();
	begin(HW_LEARN_SHOW, 600000);
	world_beat(w, "a", "");
	beats("a", 10 * S, 240);
	ck_assert_int_eq(timeout("a").ms, 600000);
	ck_assert_int_eq(timeout("a").from, HW_TIMEOUT_GROUP);
	ck_assert_int_le(learned("a").timeout_ms, 22000);
	ck_assert_uint_eq(learned("a").mistakes, 0);
	beats("a", 100 * S, 1);
	ck_assert_uint_eq(learned("a").mistakes, 1);
	ck_assert_uint_eq(deaths(), 0);
}
END_TEST

/* Nine messages within a second say nothing about how long the device may be silent. */
static void burst(const char *id)
{
	beats(id, 20 * MS, 9);
}

static const struct {
	int64_t gap_ns, jitter_ns;
	bool each;
} bursts[] = {{15 * S, 0, false},    {15 * S, 0, true},       {45 * S, 2 * S, false},
              {45 * S, 2 * S, true}, {45 * S, 10 * S, false}, {45 * S, 10 * S, true}};
#define N_BURSTS ((int)(sizeof(bursts) / sizeof(*bursts)))

START_TEST(a_burst_is_not_enough)
{
	teardown();
	begin(HW_LEARN_YES, 60000);
	world_beat(w, "a", "");
	burst("a");
	ck_assert_int_eq(timeout("a").from, HW_TIMEOUT_GROUP);
	for (unsigned k = 0; k < 40; k++) {
		int64_t jitter_ms = bursts[_i].jitter_ns / MS;
		beats("a", bursts[_i].gap_ns + (int64_t)random_below((uint32_t)jitter_ms + 1) * MS, 1);
		if (bursts[_i].each)
			burst("a");
	}
	ck_assert_uint_eq(deaths(), 0);
	ck_assert_int_eq(timeout("a").from, HW_TIMEOUT_LEARNED);
	ck_assert_int_le(timeout("a").ms, 5 * bursts[_i].gap_ns / MS);
	/* One lost report is no mistake. */
	beats("a", 2 * bursts[_i].gap_ns, 1);
	ck_assert_uint_eq(deaths(), 0);
	/* An outage covers one timeout, however long it is. */
	world_beat(w, "b", "");
	burst("b");
	beats("b", 2000 * S, 1);
	burst("b");
	ck_assert_int_eq(timeout("b").from, HW_TIMEOUT_GROUP);
}
END_TEST

START_TEST(a_group_that_does_not_learn)
{
	struct hw_learned l;
	teardown();
	begin(HW_LEARN_NO, 600000);
	world_beat(w, "a", "");
	beats("a", 10 * S, 20);
	ck_assert(!hw_monitor_learned(w->m, world_device(w, "a"), &l));
	ck_assert_int_eq(timeout("a").from, HW_TIMEOUT_GROUP);
	/* The store has what was learned before the group's `learn` was changed. */
	char text[HW_GAPS_TEXT];
	teardown();
	setup();
	world_beat(w, "a", "");
	beats("a", 10 * S, 20);
	ck_assert(hw_monitor_gaps(w->m, world_device(w, "a"), text));
	teardown();
	begin(HW_LEARN_NO, 600000);
	struct hw_stored s = stored("a", text);
	ck_assert_int_eq(hw_monitor_load(w->m, w->now, &s), 0);
	ck_assert(!hw_monitor_learned(w->m, world_device(w, "a"), &l));
	ck_assert_int_eq(timeout("a").from, HW_TIMEOUT_GROUP);
}
END_TEST

/* A device that is called offline in its gaps, because the group's timeout is too short for it. */
START_TEST(a_longer_interval_is_learned)
{
	teardown();
	begin(HW_LEARN_YES, 30000);
	world_beat(w, "a", "");
	beats("a", 60 * S, 8);
	ck_assert_uint_eq(deaths(), 8);
	beats("a", 60 * S, 50);
	ck_assert_uint_eq(deaths(), 8);
	ck_assert_int_le(timeout("a").ms, 135000);
	ck_assert_int_ge(timeout("a").ms, 60000);
	world_beat(w, "b", "");
	beats("b", 600 * S, 8);
	size_t before = deaths();
	beats("b", 600 * S, 50);
	ck_assert_uint_eq(deaths(), before);
}
END_TEST

/* Before the eighth gap and after it. */
START_TEST(an_outage_is_not_learned)
{
	unsigned before = _i ? 100 : 3;
	teardown();
	begin(HW_LEARN_YES, 30000);
	world_beat(w, "a", "");
	beats("a", 10 * S, before);
	beats("a", 20000 * S, 1);
	ck_assert_uint_eq(deaths(), 1);
	beats("a", 10 * S, 20);
	ck_assert_int_le(timeout("a").ms, 23000);
	ck_assert_uint_eq(learned("a").mistakes, 1);
}
END_TEST

static const struct {
	int times;
	size_t deaths;
} habits[] = {{2, 1}, {4, 3}};

START_TEST(a_new_habit)
{
	world_beat(w, "a", "");
	beats("a", 10 * S, 200);
	beats("a", habits[_i].times * 10 * S, 200);
	ck_assert_uint_le(deaths(), habits[_i].deaths);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
}
END_TEST

/* What happens in a gap that is not learned. */
static void link_down(void)
{
	hw_monitor_link(w->m, w->now, 0, false);
	world_pass(w, S);
	hw_monitor_link(w->m, w->now, 0, true);
}

static void stall(void)
{
	struct hw_mono planned = w->now.mono;
	w->now.mono.ns += S;
	w->now.wall_ms += 1000;
	hw_monitor_stall(w->m, w->now, planned);
	hw_monitor_drained(w->m, w->now);
}

static void loss(void)
{
	hw_monitor_loss(w->m, w->now, 0);
}

static void suspended(void)
{
	struct hw_mono since = w->now.mono;
	w->now.mono.ns += S;
	w->now.wall_ms += 100000;
	hw_monitor_suspended(w->m, w->now, since);
}

static void barriers_are_lost(void)
{
	w->swallow = true;
	world_pass(w, 20 * S);
	w->swallow = false;
	hw_monitor_link(w->m, w->now, 0, false);
	hw_monitor_link(w->m, w->now, 0, true); /* as HW_OUT_RECONNECT requires */
	world_pass(w, 3 * S);
	ck_assert(!hw_blind_now(hw_monitor_blind(w->m)));
}

static void goodbye(void)
{
	world_beat(w, "a", "{\"online\":false}");
}

static void own_timeout(void)
{
	world_beat(w, "a", "{\"timeout\":1000}");
	world_pass(w, S);
}

/* A heartbeat comes before the barriers of the goodbye are back. */
static void goodbye_with_heartbeat(void)
{
	world_beat(w, "a", "{\"online\":false}");
	world_until(w, w->now.mono.ns + MS);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	world_beat(w, "a", "");
}

static void (*const never[])(void) = {link_down,         stall,   loss,        suspended,
                                      barriers_are_lost, goodbye, own_timeout, goodbye_with_heartbeat};
#define N_NEVER ((int)(sizeof(never) / sizeof(*never)))

START_TEST(a_gap_is_not_learned)
{
	world_beat(w, "a", "");
	beats("a", 10 * S, 20);
	unsigned seen = learned("a").gaps_seen;
	world_pass(w, 2 * S);
	if (never[_i] == own_timeout)
		seen++; /* the gap before the message was not announced */
	never[_i]();
	ck_assert_uint_eq(learned("a").gaps_seen, seen);
	if (never[_i] != goodbye_with_heartbeat)
		beats("a", 5 * S, 1);
	ck_assert_uint_eq(learned("a").gaps_seen, seen);
	if (never[_i] == own_timeout)
		world_beat(w, "a", "{\"timeout\":0}");
	ck_assert_uint_eq(learned("a").gaps_seen, seen);
	beats("a", 10 * S, 1);
	ck_assert_uint_eq(learned("a").gaps_seen, seen + 1);
}
END_TEST

/* A short blindness in a long outage: of the monitor (0), or of the group, whose upstream is away (1). */
START_TEST(an_outage_with_blindness_is_not_learned)
{
	static const char *const whiles[] = {"$SYS/bridge on"};
	group.whiles = whiles;
	group.n_whiles = (size_t)_i;
	reload();
	world_say(w, "$SYS/bridge", "on", false);
	world_pass(w, S);
	world_beat(w, "a", "");
	beats("a", 10 * S, 20);
	unsigned seen = learned("a").gaps_seen;
	world_pass(w, 1000 * S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	if (_i) {
		world_say(w, "$SYS/bridge", "off", false);
		world_pass(w, S);
		world_say(w, "$SYS/bridge", "on", false);
	} else {
		stall();
	}
	beats("a", 1000 * S, 1);
	ck_assert_uint_eq(learned("a").gaps_seen, seen);
	ck_assert_uint_eq(learned("a").mistakes, 0);
	beats("a", 1000 * S, 1);
	ck_assert_uint_eq(learned("a").gaps_seen, seen + 1);
	ck_assert_uint_eq(learned("a").mistakes, 1);
}
END_TEST

/* A heartbeat in the grace after a reconnect begins no gap that counts: the grace is blindness. */
START_TEST(a_gap_with_grace_is_not_learned)
{
	teardown();
	conf = world_conf();
	begin(HW_LEARN_YES, 600000);
	world_free(w);
	conf.grace_ms = 15000;
	w = world_new(&conf, &group, 1);
	world_connect(w);
	world_pass(w, 5 * S);
	world_beat(w, "a", "");
	beats("a", 5 * S, 1);
	beats("a", 10 * S, 1);
	ck_assert_uint_eq(learned("a").gaps_seen, 0);
	beats("a", 10 * S, 1);
	ck_assert_uint_eq(learned("a").gaps_seen, 1);
}
END_TEST

START_TEST(an_answer_to_a_probe_ends_no_gap)
{
	teardown();
	begin_probed(30000, 20000);
	beats("a", 10 * S, 5);
	ck_assert_uint_eq(learned("a").gaps_seen, 5);
	world_pass(w, 29 * S);
	ck_assert_uint_eq(world_count(w, HW_OUT_PROBE, 0), 1);
	if (_i) {
		struct hw_registry *r = hw_monitor_registry(w->m);
		hw_monitor_answered(w->m, w->now, hw_registry_ref(r, hw_registry_find(r, "a", 1)));
	} else {
		world_beat(w, "a", "");
	}
	beats("a", 10 * S, 1);
	ck_assert_uint_eq(learned("a").gaps_seen, 5);
	beats("a", 10 * S, 1);
	ck_assert_uint_eq(learned("a").gaps_seen, 6);
}
END_TEST

/* The first probe comes after the same share of the timeout in force. */
START_TEST(probes_follow_the_learned_timeout)
{
	teardown();
	begin_probed(50000, 25000);
	beats("a", 10 * S, 20);
	ck_assert_uint_eq(world_count(w, HW_OUT_PROBE, 0), 0);
	world_pass(w, timeout("a").ms * MS - 50 * MS);
	ck_assert_uint_eq(world_count(w, HW_OUT_PROBE, 0), 1);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
}
END_TEST

START_TEST(a_forgotten_device_begins_again)
{
	world_beat(w, "a", "");
	beats("a", 10 * S, 20);
	hw_monitor_forget(w->m, w->now, "a", 1);
	world_drain(w);
	ck_assert_uint_eq(learned("a").gaps_seen, 0);
	world_beat(w, "a", "");
	ck_assert_uint_eq(learned("a").gaps_seen, 0);
	ck_assert_int_eq(timeout("a").from, HW_TIMEOUT_GROUP);
}
END_TEST

START_TEST(a_reload_turns_learning_on_and_off)
{
	struct hw_learned l;
	world_beat(w, "a", "");
	beats("a", 10 * S, 20);
	group.learn = HW_LEARN_SHOW;
	reload();
	ck_assert_int_eq(timeout("a").from, HW_TIMEOUT_GROUP);
	ck_assert_uint_eq(learned("a").gaps_seen, 20);
	group.learn = HW_LEARN_YES;
	reload();
	ck_assert_int_eq(timeout("a").from, HW_TIMEOUT_LEARNED);
	world_pass(w, 25 * S); /* the shorter timeout counts at once */
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	group.learn = HW_LEARN_NO;
	reload();
	ck_assert(!hw_monitor_learned(w->m, world_device(w, "a"), &l));
	group.learn = HW_LEARN_YES;
	reload();
	ck_assert_uint_eq(learned("a").gaps_seen, 0);
	ck_assert_int_eq(timeout("a").from, HW_TIMEOUT_GROUP);
}
END_TEST

/* A renamed group keeps what was learned, before and after the device's next heartbeat; so does one with other rules.
 */
START_TEST(a_reload_renames_the_group)
{
	teardown();
	begin(HW_LEARN_YES, 5000);
	world_beat(w, "a", "");
	beats("a", 8 * S, 50);
	int64_t ms = timeout("a").ms;
	ck_assert_int_ge(ms, 16000);
	unsigned seen = learned("a").gaps_seen;
	size_t before = deaths();
	group.name = "other";
	if (_i)
		group.mistakes_per_ms /= 120;
	reload();
	ck_assert_int_eq(timeout("a").from, HW_TIMEOUT_LEARNED);
	ck_assert_int_eq(timeout("a").ms, ms);
	beats("a", 7 * S, 1);
	ck_assert_uint_eq(learned("a").gaps_seen, seen);
	ck_assert_int_eq(timeout("a").from, HW_TIMEOUT_LEARNED);
	beats("a", 8 * S, 50);
	ck_assert_uint_eq(deaths(), before);
	ck_assert_uint_gt(learned("a").gaps_seen, seen);
	/* When no group learns any more, nothing is left. */
	struct hw_learned l;
	group.name = "third";
	group.learn = HW_LEARN_NO;
	reload();
	ck_assert(!hw_monitor_learned(w->m, world_device(w, "a"), &l));
	world_beat(w, "a", "");
	ck_assert_int_eq(timeout("a").from, HW_TIMEOUT_GROUP);
}
END_TEST

/* A device that goes to another group, which other filters bring, begins again. */
START_TEST(another_group_begins_again)
{
	static const char *const filters[] = {"pumps/{id}/up"};
	struct hw_group_spec two[2] = {group, group};
	two[1].name = "pumps";
	two[1].heartbeat = filters;
	two[1].n_heartbeat = 1;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, two, 2), 0);
	world_pass(w, S);
	world_say(w, "pumps/a/up", "", false);
	for (int k = 0; k < 20; k++) {
		world_pass(w, 10 * S);
		world_say(w, "pumps/a/up", "", false);
	}
	ck_assert_int_eq(timeout("a").from, HW_TIMEOUT_LEARNED);
	beats("a", 10 * S, 1);
	ck_assert_uint_eq(learned("a").gaps_seen, 0);
	ck_assert_int_eq(timeout("a").from, HW_TIMEOUT_GROUP);
}
END_TEST

/* Other rules have windows of another length. */
START_TEST(a_reload_changes_the_rules)
{
	world_beat(w, "a", "");
	beats("a", 10 * S, 300);
	int64_t strict = timeout("a").ms;
	group.mistakes = 24;
	group.mistakes_per_ms = 86400000;
	group.learn_gaps = 1;
	reload();
	beats("a", 10 * S, 30);
	ck_assert_int_lt(timeout("a").ms, strict);
	group.timeout_min_ms = 60000;
	reload();
	ck_assert_int_eq(timeout("a").ms, 60000);
	ck_assert_uint_eq(deaths(), 0);
}
END_TEST

/* A restart instead of a reload changes the length of the windows: the stored gaps are taken as a reload takes them. 1:
 * an older version wrote the text, which does not name the length. With the same rules the gaps are as they were. */
START_TEST(a_restart_changes_the_rules)
{
	char text[HW_GAPS_TEXT], reloaded[HW_GAPS_TEXT], loaded[HW_GAPS_TEXT];
	group.mistakes = 24;
	group.mistakes_per_ms = 86400000;
	reload();
	world_beat(w, "a", "");
	beats("a", 10 * S, 1000);
	ck_assert(hw_monitor_gaps(w->m, world_device(w, "a"), text));
	struct hw_stored same = stored("b", text), other = stored("c", text);
	ck_assert_int_eq(hw_monitor_load(w->m, w->now, &same), 0);
	ck_assert(hw_monitor_gaps(w->m, world_device(w, "b"), loaded));
	ck_assert_str_eq(loaded, text);
	group.mistakes = 1;
	group.mistakes_per_ms *= 30;
	reload();
	ck_assert(hw_monitor_gaps(w->m, world_device(w, "a"), reloaded));
	if (_i)
		memcpy(text + 34, "==", 3);
	ck_assert_int_eq(hw_monitor_load(w->m, w->now, &other), 0);
	ck_assert(hw_monitor_gaps(w->m, world_device(w, "c"), loaded));
	ck_assert_str_eq(loaded, reloaded);
}
END_TEST

/* The store's text in another run: in force before the first heartbeat. */
START_TEST(the_store_keeps_the_gaps)
{
	char text[HW_GAPS_TEXT], wrong[HW_GAPS_TEXT];
	world_beat(w, "a", "");
	ck_assert(!hw_monitor_gaps(w->m, world_device(w, "a"), text));
	beats("a", 10 * S, 20);
	int64_t ms = timeout("a").ms;
	ck_assert(hw_monitor_gaps(w->m, world_device(w, "a"), text));
	ck_assert_uint_eq(strlen(text), HW_GAPS_TEXT - 1);
	world_free(w);
	conf.loading = true;
	w = world_new(&conf, &group, 1);
	world_connect(w);
	memcpy(wrong, text, sizeof(wrong));
	wrong[0] = wrong[0] == 'B' ? 'C' : 'B'; /* another version */
	const char *const texts[] = {text, wrong, "", "AQ==", NULL};
	for (int k = 0; k < 5; k++) {
		struct hw_stored s = stored(&"abcde"[k], texts[k]);
		ck_assert_int_eq(hw_monitor_load(w->m, w->now, &s), 0);
	}
	ck_assert_int_eq(timeout("a").ms, ms);
	ck_assert_int_eq(timeout("a").from, HW_TIMEOUT_LEARNED);
	for (int k = 1; k < 5; k++)
		ck_assert_uint_eq(learned((char[2]){"abcde"[k], 0}).gaps_seen, 0);
	hw_monitor_loaded(w->m);
	world_pass(w, 3 * S);
	world_beat(w, "a", ""); /* the gap that ends now began in the other run */
	ck_assert_uint_eq(learned("a").gaps_seen, 20);
	beats("a", 10 * S, 1);
	ck_assert_uint_eq(learned("a").gaps_seen, 21);
	/* What this node has learned is newer than what the store has. */
	beats("a", 10 * S, 1);
	struct hw_stored s = stored("a", text);
	ck_assert_int_eq(hw_monitor_load(w->m, w->now, &s), 0);
	ck_assert_uint_eq(learned("a").gaps_seen, 22);
	world_pass(w, 22 * S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
}
END_TEST

/* A node that watches the device takes the longer timeout of its own and the stored one. 1: the device has become
 * slower while this node was blind. */
START_TEST(a_watcher_takes_the_longer_timeout)
{
	char text[HW_GAPS_TEXT];
	world_beat(w, "a", "");
	beats("a", _i ? 30 * S : 10 * S, 40);
	int64_t stored_ms = timeout("a").ms;
	ck_assert(hw_monitor_gaps(w->m, world_device(w, "a"), text));
	world_free(w);
	conf.several = true;
	w = world_new(&conf, &group, 1);
	world_connect(w);
	hw_monitor_role(w->m, hw_partition_of("a", 1), HW_ROLE_WATCHES, 0);
	struct hw_stored s = stored("a", NULL);
	ck_assert_int_eq(hw_monitor_load(w->m, w->now, &s), 0);
	beats("a", 20 * S, 40);
	int64_t own_ms = timeout("a").ms;
	ck_assert(_i ? stored_ms > own_ms : stored_ms < own_ms);
	s = stored("a", text);
	ck_assert_int_eq(hw_monitor_load(w->m, w->now, &s), 0);
	ck_assert_int_eq(timeout("a").ms, _i ? stored_ms : own_ms);
}
END_TEST

/* Notes the timeout that the store has after the outputs so far. Returns it. */
static int64_t written_ms(int64_t was_ms)
{
	for (size_t k = 0; k < w->n_log; k++)
		if (w->log[k].kind == HW_OUT_REFRESH || w->log[k].kind == HW_OUT_TRANSITION)
			was_ms = learned("a").timeout_ms;
	w->n_log = 0;
	return was_ms;
}

/* A new habit makes the timeout long for some gaps. When the timeout falls, the store gets it at once: after a restart
 * a device that has stopped must not stay online for the long timeout. */
START_TEST(the_store_follows_a_timeout_that_falls)
{
	int64_t ms = 0, most_ms = 0;
	world_beat(w, "a", "");
	beats("a", 10 * S, 2000); /* hours, so that the tail of the gaps is known */
	for (unsigned k = 0; k < 60; k++) {
		world_pass(w, k < 30 ? 40 * S : 15 * S);
		ms = written_ms(ms);
		world_beat(w, "a", k % 2 ? "" : "{\"battery\":50}");
		ms = written_ms(ms);
		int64_t is_ms = learned("a").timeout_ms;
		most_ms = is_ms > most_ms ? is_ms : most_ms;
		ck_assert_int_lt(ms, 2 * is_ms);
	}
	ck_assert_int_gt(most_ms, 3 * learned("a").timeout_ms);
}
END_TEST

/* While messages arrive before the store was read, no gap is learned. */
START_TEST(nothing_is_learned_while_loading)
{
	world_free(w);
	conf.loading = true;
	w = world_new(&conf, &group, 1);
	world_connect(w);
	world_beat(w, "a", "");
	beats("a", 10 * S, 20);
	hw_monitor_loaded(w->m);
	world_pass(w, S);
	ck_assert_uint_eq(learned("a").gaps_seen, 0);
	beats("a", 10 * S, 1);
	ck_assert_uint_eq(learned("a").gaps_seen, 0);
	beats("a", 10 * S, 1);
	ck_assert_uint_eq(learned("a").gaps_seen, 1);
}
END_TEST

/* The array grows with the records, and a new record that reuses an index has learned nothing. */
START_TEST(many_devices)
{
	char id[16];
	w->budget = 100000;
	for (int round = 0; round < 3; round++) {
		for (int k = 0; k < 10000; k++) {
			snprintf(id, sizeof(id), "d%d", k);
			world_beat(w, id, "");
		}
		w->n_log = 0;
		world_pass(w, 10 * S);
	}
	ck_assert_uint_eq(learned("d0").gaps_seen, 2);
	ck_assert_uint_eq(learned("d9999").gaps_seen, 2);
	struct hw_registry *r = hw_monitor_registry(w->m);
	uint32_t i = hw_registry_find(r, "d77", 3);
	hw_monitor_forget(w->m, w->now, "d77", 3);
	world_drain(w);
	hw_monitor_reap(w->m, hw_registry_ref(r, i));
	world_beat(w, "new", "");
	ck_assert_uint_eq(hw_registry_find(r, "new", 3), i);
	ck_assert_uint_eq(learned("new").gaps_seen, 0);
}
END_TEST

/* timeout_min counts as the shortest timeout of the group. */
START_TEST(barriers_keep_pace_with_timeout_min)
{
	teardown();
	begin(HW_LEARN_YES, 600000);
	uint64_t before = hw_monitor_stats(w->m)->barriers_sent;
	world_pass(w, 10 * S);
	ck_assert_uint_ge(hw_monitor_stats(w->m)->barriers_sent - before, 35);
	ck_assert_int_eq(hw_monitor_refresh_within_ms(w->m), HW_TTL_MIN_MS / 3);
	group.learn = HW_LEARN_SHOW;
	reload();
	before = hw_monitor_stats(w->m)->barriers_sent;
	world_pass(w, 10 * S);
	ck_assert_uint_le(hw_monitor_stats(w->m)->barriers_sent - before, 3);
	ck_assert_int_eq(hw_monitor_refresh_within_ms(w->m), 600000);
}
END_TEST

/* Any intervals, outages and blindness: a device is never called offline before the timeout that was in force at its
 * last heartbeat, and never later than that and a tick. */
START_TEST(deaths_come_at_the_timeout_in_force)
{
	for (unsigned round = 0; round < 30; round++) {
		int64_t usual = (1 + (int64_t)random_below(60)) * S;
		world_beat(w, "a", "");
		for (unsigned k = 0; k < 300; k++) {
			int64_t gap = usual + (int64_t)random_below((uint32_t)(usual / 4 / MS)) * MS;
			if (random_below(40) == 0)
				gap *= 1 + (int64_t)random_below(6);
			int64_t beat = w->now.mono.ns, ms = timeout("a").ms, at = 0;
			size_t died = deaths();
			world_pass(w, gap);
			if (deaths() > died) {
				world_last(w, &at);
				ck_assert_int_ge(at, beat + ms * MS);
				ck_assert_int_le(at, beat + ms * MS + 50 * MS);
			} else {
				ck_assert_int_le(gap, ms * MS + 50 * MS);
			}
			world_beat(w, "a", "");
			w->n_log = 0;
		}
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("learning");
	TCase *tc = tcase_create("learning");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_learned_timeout_is_in_force);
	tcase_add_test(tc, heartbeats_with_a_payload);
	tcase_add_test(tc, show_decides_nothing);
	tcase_add_loop_test(tc, a_burst_is_not_enough, 0, N_BURSTS);
	tcase_add_test(tc, a_group_that_does_not_learn);
	tcase_add_test(tc, a_longer_interval_is_learned);
	tcase_add_loop_test(tc, an_outage_is_not_learned, 0, 2);
	tcase_add_loop_test(tc, a_new_habit, 0, 2);
	tcase_add_loop_test(tc, a_gap_is_not_learned, 0, N_NEVER);
	tcase_add_loop_test(tc, an_outage_with_blindness_is_not_learned, 0, 2);
	tcase_add_test(tc, a_gap_with_grace_is_not_learned);
	tcase_add_loop_test(tc, an_answer_to_a_probe_ends_no_gap, 0, 2);
	tcase_add_test(tc, probes_follow_the_learned_timeout);
	tcase_add_test(tc, a_forgotten_device_begins_again);
	tcase_add_test(tc, a_reload_turns_learning_on_and_off);
	tcase_add_test(tc, another_group_begins_again);
	tcase_add_test(tc, a_reload_changes_the_rules);
	tcase_add_loop_test(tc, a_restart_changes_the_rules, 0, 2);
	tcase_add_loop_test(tc, a_reload_renames_the_group, 0, 2);
	tcase_add_test(tc, the_store_keeps_the_gaps);
	tcase_add_loop_test(tc, a_watcher_takes_the_longer_timeout, 0, 2);
	tcase_add_test(tc, the_store_follows_a_timeout_that_falls);
	tcase_add_test(tc, nothing_is_learned_while_loading);
	tcase_add_test(tc, many_devices);
	tcase_add_test(tc, barriers_keep_pace_with_timeout_min);
	tcase_add_test(tc, deaths_come_at_the_timeout_in_force);
	suite_add_tcase(s, tc);
	return suite_run(s);
}

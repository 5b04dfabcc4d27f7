/* SPDX-License-Identifier: MIT */
/* Devices that are known by keys, rule by rule, in virtual time: a store of keys with times to live answers the looks.
 */
#include <time.h>

#include "world.h"

#define KEYS    64
#define STEP_NS (2 * MS)
#define TICK    (S / 31 + 1)
#define SOON    (TICK + 2 * STEP_NS + 4 * MS) /* a tick, the steps of this test, the margin of the time to live */

static struct world *w;
static size_t answered; /* how much of the log has been looked through for looks to answer */
static unsigned checks;

static struct {
	char id[16];
	bool there;
	int64_t until_ns; /* monotonic; INT64_MAX: no TTL */
} store[KEYS];
static int64_t written_ns[KEYS];

static void begin(const struct hw_group_spec *g, bool connect)
{
	struct hw_monitor_conf conf = world_conf();
	conf.key_group = "default";
	w = world_new(&conf, g, 1);
	answered = checks = 0;
	memset(store, 0, sizeof(store));
	if (connect)
		world_connect(w);
	hw_monitor_key_sight(w->m, w->now, true);
}

static void setup(void)
{
	struct hw_group_spec g = world_group("default", 30000);
	begin(&g, true);
}

static void teardown(void)
{
	world_free(w);
}

static int find(const char *id)
{
	int i = 0;
	while (i < KEYS - 1 && store[i].id[0] && strcmp(store[i].id, id) != 0)
		i++;
	snprintf(store[i].id, sizeof(store[i].id), "%s", id);
	return i;
}

static void look(const char *id, unsigned why)
{
	int i = find(id);
	int64_t ttl = HW_KEY_GONE;
	if (store[i].there && store[i].until_ns <= w->now.mono.ns)
		store[i].there = false;
	if (store[i].there)
		ttl = store[i].until_ns == INT64_MAX ? HW_KEY_NO_TTL : (store[i].until_ns - w->now.mono.ns) / MS;
	hw_monitor_key(w->m, w->now, why, id, strlen(id), ttl);
	world_drain(w);
}

static void put_quietly(const char *id, int64_t ttl_ms)
{
	int i = find(id);
	written_ns[i] = w->now.mono.ns;
	store[i].there = true;
	store[i].until_ns = ttl_ms < 0 ? INT64_MAX : w->now.mono.ns + ttl_ms * MS;
}

static void put(const char *id, int64_t ttl_ms)
{
	put_quietly(id, ttl_ms);
	look(id, HW_KEY_WRITTEN);
}

static void drop(const char *id, unsigned why)
{
	store[find(id)].there = false;
	look(id, why);
}

static void answer_checks(void)
{
	for (; answered < w->n_log; answered++) {
		if (w->log[answered].kind != HW_OUT_KEY_CHECK)
			continue;
		const struct hw_device *d = hw_registry_get(hw_monitor_registry(w->m), w->log[answered].device);
		char id[16];
		ck_assert_ptr_nonnull(d);
		snprintf(id, sizeof(id), "%.*s", (int)hw_device_id(d).len, hw_device_id(d).text);
		checks++;
		look(id, 0);
	}
}

/* Time passes, and the looks that are asked for are answered. */
static void pass(int64_t ns)
{
	int64_t end = w->now.mono.ns + ns;
	while (w->now.mono.ns < end) {
		struct hw_mono due;
		world_drain(w);
		answer_checks();
		int64_t next = w->now.mono.ns + STEP_NS;
		/* An hour in which nothing is due goes by at once. */
		if (w->n_out == 0 && hw_monitor_due(w->m, w->now, &due) && due.ns > next)
			next = due.ns;
		world_until(w, next < end ? next : end);
	}
	answer_checks();
}

static size_t edges(enum hw_state s)
{
	return world_count(w, HW_OUT_TRANSITION, s);
}

static int64_t last_ns(enum hw_state s, enum hw_reason r)
{
	int64_t at;
	const struct hw_transition *t = world_last(w, &at);
	ck_assert_ptr_nonnull(t);
	ck_assert_int_eq(t->state, s);
	ck_assert_int_eq(t->reason, r);
	return at;
}

static void offline_between(int64_t from, int64_t to)
{
	int64_t at = last_ns(HW_STATE_OFFLINE, HW_REASON_KEYSPACE);
	ck_assert_msg(at >= from && at <= to, "%.3f s after the first moment that is right, at most %.3f s",
	              (double)(at - from) / 1e9, (double)(to - from) / 1e9);
}

/* --- the key alone ---------------------------------------------------------------------------------------------------
 */

START_TEST(lives_as_long_as_its_key)
{
	int64_t start = w->now.mono.ns;
	put("a", 3000);
	last_ns(HW_STATE_ONLINE, HW_REASON_HEARTBEAT);
	ck_assert_uint_eq(hw_device_source(world_device(w, "a")), HW_SOURCE_KEY);
	ck_assert(world_device(w, "a")->flags & HW_FLAG_KEYED);
	pass(10 * S);
	offline_between(start + 3 * S, start + 3 * S + SOON);
	ck_assert_uint_eq(edges(HW_STATE_OFFLINE), 1);
	ck_assert_uint_eq(checks, 1);
	ck_assert_int_ge(world_last(w, NULL)->delay_ns, 0);
	ck_assert_int_le(world_last(w, NULL)->delay_ns, TICK + STEP_NS);
	put("a", 3000);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert_uint_eq(hw_monitor_stats(w->m)->keys_missed, 0);
}
END_TEST

START_TEST(a_renewed_key_costs_a_relink_a_time_to_live)
{
	for (int i = 0; i < 300; i++) {
		put("a", 3000);
		pass(S);
	}
	ck_assert_uint_eq(edges(HW_STATE_OFFLINE), 0);
	ck_assert_uint_eq(checks, 0);
	ck_assert_uint_le(hw_monitor_stats(w->m)->relinks, 151);
	ck_assert_uint_eq(world_count(w, HW_OUT_REFRESH, 0), hw_monitor_stats(w->m)->relinks);
	ck_assert_int_le(hw_monitor_due_in_ms(w->m, w->now, world_device(w, "a")), 2002);
}
END_TEST

START_TEST(a_changed_time_to_live)
{
	put("a", 60000);
	put("b", 2000);
	pass(S);
	int64_t at = w->now.mono.ns;
	put_quietly("a", 500);
	look("a", HW_KEY_TTL);
	put_quietly("b", -1);
	look("b", HW_KEY_TTL);
	pass(3 * S);
	offline_between(at + S / 2, at + S / 2 + SOON);
	ck_assert(world_is(w, "b", HW_STATE_ONLINE));
	/* Without one: until it is removed. */
	checks = 0;
	pass(400 * 86400 * S);
	ck_assert(world_is(w, "b", HW_STATE_ONLINE));
	ck_assert_uint_eq(checks, 0);
	ck_assert_int_eq(hw_monitor_due_in_ms(w->m, w->now, world_device(w, "b")), INT64_MAX);
	drop("b", HW_KEY_REMOVED);
	offline_between(w->now.mono.ns, w->now.mono.ns);
}
END_TEST

/* It was renewed, and the notification was lost: the look when it is due says so. */
START_TEST(a_renewal_that_was_not_told)
{
	put("a", 3000);
	pass(2 * S);
	put_quietly("a", 10000);
	int64_t until = w->now.mono.ns + 10 * S;
	pass(5 * S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert_uint_eq(hw_monitor_stats(w->m)->keys_missed, 1);
	pass(10 * S);
	offline_between(until, until + SOON);
}
END_TEST

/* An answer may never come: it is asked for again. */
START_TEST(a_look_without_an_answer)
{
	put("a", 1000);
	store[find("a")].there = false;
	world_pass(w, 2 * S);
	size_t asked = world_count(w, HW_OUT_KEY_CHECK, 0);
	ck_assert_uint_eq(asked, 1);
	world_pass(w, 5 * S);
	ck_assert_uint_eq(world_count(w, HW_OUT_KEY_CHECK, 0), 2);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
}
END_TEST

START_TEST(back_for_one_timeout)
{
	put("a", 1000);
	drop("a", HW_KEY_REMOVED);
	pass(S);
	int64_t at = w->now.mono.ns;
	hw_monitor_key_back(w->m, w->now, "a", 1);
	world_drain(w);
	last_ns(HW_STATE_ONLINE, HW_REASON_HEARTBEAT);
	pass(60 * S);
	offline_between(at + 30 * S, at + 30 * S + SOON);
	/* Also one whose key had no time to live. */
	put("a", -1);
	drop("a", HW_KEY_REMOVED);
	at = w->now.mono.ns;
	hw_monitor_key_back(w->m, w->now, "a", 1);
	pass(60 * S);
	offline_between(at + 30 * S, at + 30 * S + SOON);
	/* A key written meanwhile counts instead. */
	hw_monitor_key_back(w->m, w->now, "a", 1);
	world_drain(w);
	at = w->now.mono.ns;
	put("a", 2000);
	pass(60 * S);
	offline_between(at + 2 * S, at + 2 * S + SOON);
	/* A device that only beats is offline, and the key is to say so. */
	world_beat(w, "b", "");
	pass(60 * S);
	size_t refreshes = world_count(w, HW_OUT_REFRESH, 0);
	hw_monitor_key_back(w->m, w->now, "b", 1);
	world_drain(w);
	ck_assert(world_is(w, "b", HW_STATE_OFFLINE));
	ck_assert_uint_eq(world_count(w, HW_OUT_REFRESH, 0), refreshes + 1);
}
END_TEST

START_TEST(what_is_not_taken)
{
	hw_monitor_key(w->m, w->now, HW_KEY_WRITTEN, "a+b", 3, 1000);
	hw_monitor_key(w->m, w->now, HW_KEY_REMOVED, "gone", 4, HW_KEY_GONE);
	hw_monitor_key_back(w->m, w->now, "gone", 4);
	world_drain(w);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->refused[HW_REFUSED_ID], 1);
	ck_assert_uint_eq(hw_registry_count(hw_monitor_registry(w->m)), 0);
	hw_monitor_key(w->m, w->now, HW_KEY_WRITTEN, "long", 4, INT64_MAX);
	world_drain(w);
	pass(5 * S);
	ck_assert(world_is(w, "long", HW_STATE_ONLINE));
}
END_TEST

START_TEST(devices_by_mqtt_alone_do_not_grow)
{
	ck_assert_uint_eq(sizeof(struct hw_device), 64);
	world_beat(w, "a", "");
	pass(60 * S);
	look("a", HW_KEY_REMOVED);
	ck_assert_ptr_null(world_device(w, "a")->extra);
	world_beat(w, "b", "{\"battery\":5}");
	ck_assert_ptr_null(world_device(w, "b")->extra->key);
}
END_TEST

START_TEST(forgotten_and_back)
{
	put("a", -1);
	ck_assert(hw_monitor_forget(w->m, w->now, "a", 1));
	world_drain(w);
	ck_assert(world_is(w, "a", HW_STATE_FORGOTTEN));
	put("a", 1000);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	pass(3 * S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
}
END_TEST

/* --- both paths ------------------------------------------------------------------------------------------------------
 */

START_TEST(offline_when_both_are_silent)
{
	/* The key outlives the heartbeats ... */
	int64_t at = w->now.mono.ns;
	put("a", 50000);
	world_beat(w, "a", "");
	ck_assert_uint_eq(hw_device_source(world_device(w, "a")), HW_SOURCE_MQTT | HW_SOURCE_KEY);
	pass(49 * S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	pass(20 * S);
	offline_between(at + 50 * S, at + 50 * S + SOON + 4 * w->rtt_ns + TICK);
	/* ... and they the key. */
	put("a", 5000);
	pass(S);
	at = w->now.mono.ns;
	world_beat(w, "a", "");
	pass(60 * S);
	int64_t off = last_ns(HW_STATE_OFFLINE, HW_REASON_TIMEOUT);
	ck_assert(off >= at + 30 * S && off <= at + 30 * S + SOON + 4 * w->rtt_ns + TICK);
	ck_assert_uint_eq(edges(HW_STATE_OFFLINE), 2);
}
END_TEST

START_TEST(heartbeats_resume)
{
	put("a", -1);
	world_beat(w, "a", "");
	pass(100 * S); /* by its key alone */
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	world_beat(w, "a", "");
	drop("a", HW_KEY_REMOVED);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	int64_t at = w->now.mono.ns;
	pass(60 * S);
	int64_t off = last_ns(HW_STATE_OFFLINE, HW_REASON_TIMEOUT);
	ck_assert(off >= at + 30 * S && off <= at + 30 * S + SOON + 4 * w->rtt_ns + TICK);
}
END_TEST

/* The key of a device that lives by its heartbeats is the monitor's own: put back, never taken for a sign of life. */
START_TEST(its_own_key)
{
	world_beat(w, "a", "");
	put_quietly("a", 90000);
	look("a", 0);
	look("a", HW_KEY_TTL);
	ck_assert_uint_eq(hw_device_source(world_device(w, "a")), HW_SOURCE_MQTT);
	size_t refreshes = world_count(w, HW_OUT_REFRESH, 0);
	drop("a", HW_KEY_REMOVED);
	ck_assert_uint_eq(world_count(w, HW_OUT_REFRESH, 0), refreshes + 1);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert(!hw_device_key_is_foreign(world_device(w, "a")));
	put("a", 2000);
	ck_assert(hw_device_key_is_foreign(world_device(w, "a")));
	for (int i = 0; i < 4; i++) {
		pass(S);
		world_beat(w, "a", "");
	}
	/* The writer's has expired, and was touched in time: the monitor's own is in its place. */
	ck_assert(!hw_device_key_is_foreign(world_device(w, "a")));
	put_quietly("a", 90000);
	look("a", 0);
	look("a", HW_KEY_EXPIRED);
	ck_assert(!hw_device_key_is_foreign(world_device(w, "a")));
	pass(40 * S);
	last_ns(HW_STATE_OFFLINE, HW_REASON_TIMEOUT);
	/* It expired while the monitor wrote: what is there is the monitor's. */
	world_beat(w, "a", "");
	put("a", 60000);
	put_quietly("a", 90000);
	look("a", HW_KEY_EXPIRED);
	ck_assert(!hw_device_key_is_foreign(world_device(w, "a")));
}
END_TEST

START_TEST(a_goodbye_while_the_key_is_there)
{
	put("a", 20000);
	world_beat(w, "a", "");
	world_beat(w, "a", "{\"online\":false}");
	pass(5 * S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert_uint_eq(hw_monitor_stats(w->m)->goodbyes_void, 1);
	ck_assert_uint_eq(world_count(w, HW_OUT_STATUS, 0), 1);
}
END_TEST

/* Written while the monitor wrote that it is offline, which removed the key: the writing itself was a sign of life. */
START_TEST(written_and_lost_in_between)
{
	put("a", 1000);
	world_beat(w, "a", "");
	pass(60 * S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	look("a", HW_KEY_WRITTEN | HW_KEY_EXPIRED);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	look("a", HW_KEY_WRITTEN);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	pass(60 * S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
}
END_TEST

/* --- blindness -------------------------------------------------------------------------------------------------------
 */

START_TEST(keys_are_judged_without_a_broker)
{
	hw_monitor_link(w->m, w->now, 0, false);
	world_drain(w);
	ck_assert(hw_blind_now(hw_monitor_blind(w->m)));
	int64_t at = w->now.mono.ns;
	put("a", 3000);
	pass(10 * S);
	offline_between(at + 3 * S, at + 3 * S + SOON);
}
END_TEST

START_TEST(a_store_that_was_away)
{
	put("a", 3000);
	put("kept", 3000);
	pass(S);
	hw_monitor_key_sight(w->m, w->now, false);
	pass(20 * S);
	ck_assert_uint_eq(checks, 0);
	ck_assert_uint_eq(edges(HW_STATE_OFFLINE), 0);
	int64_t at = w->now.mono.ns;
	hw_monitor_key_sight(w->m, w->now, true);
	look("a", 0);
	look("kept", 0);
	look("a", HW_KEY_EXPIRED);
	pass(2 * S);
	ck_assert_uint_eq(edges(HW_STATE_OFFLINE), 0);
	put("kept", 30000);
	pass(5 * S);
	offline_between(at + 3 * S, at + 3 * S + SOON);
	ck_assert(world_is(w, "kept", HW_STATE_ONLINE));
	/* Removing it is no matter of time. */
	hw_monitor_key_loss(w->m, w->now);
	drop("kept", HW_KEY_REMOVED);
	ck_assert(world_is(w, "kept", HW_STATE_OFFLINE));
}
END_TEST

START_TEST(recurring_blindness_is_bounded)
{
	int64_t at = w->now.mono.ns;
	put("a", 3000);
	for (int i = 0; i < 30; i++) {
		pass(S);
		hw_monitor_key_loss(w->m, w->now);
		look("a", 0);
	}
	offline_between(at + 9 * S, at + 9 * S + SOON + S);
}
END_TEST

START_TEST(all_keys_lost_at_once)
{
	put("a", 5000);
	put("b", -1);
	pass(S);
	store[find("a")].there = store[find("b")].there = false;
	int64_t at = w->now.mono.ns;
	hw_monitor_key_loss(w->m, w->now);
	look("a", 0);
	look("b", 0);
	pass(4 * S);
	ck_assert_uint_eq(edges(HW_STATE_OFFLINE), 0);
	pass(60 * S);
	ck_assert_uint_eq(edges(HW_STATE_OFFLINE), 2);
	offline_between(at + 30 * S, at + 30 * S + SOON); /* without a time to live: a timeout */
}
END_TEST

START_TEST(a_removal_that_was_not_told)
{
	put("a", 60000);
	pass(S);
	int64_t at = w->now.mono.ns;
	drop("a", 0);
	offline_between(at, at);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->keys_missed, 1);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->keys_repaired, 1);
	put_quietly("a", 60000);
	look("a", 0);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert_uint_eq(hw_monitor_stats(w->m)->keys_missed, 2);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->keys_repaired, 2);
}
END_TEST

START_TEST(an_evicted_key)
{
	put("a", 5000);
	pass(4 * S);
	int64_t at = w->now.mono.ns;
	drop("a", HW_KEY_EVICTED);
	pass(20 * S);
	offline_between(at + 5 * S, at + 5 * S + SOON);
}
END_TEST

START_TEST(the_machine_slept)
{
	put("a", 5000);
	pass(3 * S);
	struct hw_mono since = w->now.mono;
	w->now.mono.ns += 3 * S;
	hw_monitor_suspended(w->m, w->now, since);
	int64_t at = w->now.mono.ns;
	pass(20 * S);
	offline_between(at + 5 * S, at + 5 * S + SOON);
}
END_TEST

/* --- the store, pacing, off ------------------------------------------------------------------------------------------
 */

static void load(const char *id, unsigned source)
{
	struct hw_stored s = {.id = id,
	                      .id_len = strlen(id),
	                      .state = HW_STATE_ONLINE,
	                      .reason = HW_REASON_HEARTBEAT,
	                      .since_ms = w->now.wall_ms - 100000,
	                      .last_seen_ms = w->now.wall_ms - 100000,
	                      .source = source,
	                      .seq = 7};
	ck_assert_int_eq(hw_monitor_load(w->m, w->now, &s), 0);
	world_drain(w);
}

START_TEST(loaded_from_the_store)
{
	int64_t at = w->now.mono.ns;
	put_quietly("kept", 1000000);
	load("kept", HW_SOURCE_KEY);
	load("gone", HW_SOURCE_KEY);
	look("kept", 0);
	look("gone", 0);
	pass(200 * S);
	ck_assert_uint_eq(edges(HW_STATE_OFFLINE), 1);
	ck_assert(world_is(w, "gone", HW_STATE_OFFLINE) && world_is(w, "kept", HW_STATE_ONLINE));
	offline_between(at + 30 * S, at + 30 * S + SOON);
}
END_TEST

START_TEST(paced)
{
	struct hw_group_spec g = world_group("default", 30000);
	char id[16];
	g.max_offline_rate = 10;
	teardown();
	begin(&g, false); /* no broker: that paces keys as well */
	for (int i = 0; i < 20; i++) {
		snprintf(id, sizeof(id), "d%d", i);
		put(id, 1000);
	}
	pass(S + SOON);
	ck_assert_uint_le(edges(HW_STATE_OFFLINE), 2);
	pass(S);
	ck_assert_uint_ge(edges(HW_STATE_OFFLINE), 9);
	ck_assert_uint_le(edges(HW_STATE_OFFLINE), 12);
	pass(2 * S);
	ck_assert_uint_eq(edges(HW_STATE_OFFLINE), 20);
}
END_TEST

/* A key that is gone shows no deadline any more: those that wait for their turn keep theirs. */
START_TEST(the_delay_of_those_that_waited)
{
	struct hw_group_spec g = world_group("default", 30000);
	char id[16];
	int64_t sum_ns = 0, turns = 0;
	g.max_offline_rate = 10;
	teardown();
	begin(&g, true);
	for (int i = 0; i < 20; i++) {
		snprintf(id, sizeof(id), "d%d", i);
		put(id, i < 10 ? 1000 : -1);
	}
	pass(S);
	for (int i = 10; i < 20; i++) {
		snprintf(id, sizeof(id), "d%d", i);
		drop(id, HW_KEY_REMOVED);
	}
	pass(S / 2);
	for (int i = 0; i < 20; i++) {
		snprintf(id, sizeof(id), "d%d", i);
		if (world_is(w, id, HW_STATE_ONLINE))
			ck_assert_int_ge(hw_monitor_due_in_ms(w->m, w->now, world_device(w, id)), -500);
	}
	pass(3 * S);
	ck_assert_uint_eq(edges(HW_STATE_OFFLINE), 20);
	for (size_t k = 0; k < w->n_log; k++) {
		const struct hw_transition *t = &w->log[k].transition;
		if (w->log[k].kind != HW_OUT_TRANSITION || t->state != HW_STATE_OFFLINE || t->delay_ns < 0)
			continue;
		sum_ns += t->delay_ns; /* as whoever shows a mean does */
		turns++;
		ck_assert_int_le(t->delay_ns, 2 * S + SOON);
	}
	ck_assert_int_ge(turns, 19);
	ck_assert_int_ge(sum_ns, turns * S / 2);
}
END_TEST

START_TEST(off)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec g = world_group("default", 30000);
	teardown();
	w = world_new(&conf, &g, 1);
	world_connect(w);
	hw_monitor_key(w->m, w->now, HW_KEY_WRITTEN, "a", 1, 1000);
	hw_monitor_key_back(w->m, w->now, "a", 1);
	world_drain(w);
	ck_assert_ptr_null(world_device(w, "a"));
	/* One that was known by a key is judged by its heartbeats, of which there are none. */
	load("b", HW_SOURCE_KEY);
	world_pass(w, 100 * S);
	last_ns(HW_STATE_OFFLINE, HW_REASON_TIMEOUT);
}
END_TEST

/* --- at random -------------------------------------------------------------------------------------------------------
 */

static uint64_t rnd_state;

static unsigned rnd(unsigned n)
{
	rnd_state ^= rnd_state << 13;
	rnd_state ^= rnd_state >> 7;
	rnd_state ^= rnd_state << 17;
	return (unsigned)(rnd_state >> 33) % n;
}

static void touch_at_random(const char *id)
{
	unsigned what = rnd(10);
	bool told = rnd(3) > 0;
	if (what < 6) {
		put_quietly(id, what ? (int64_t)rnd(5000) + 1 : -1);
		if (told)
			look(id, HW_KEY_WRITTEN);
	} else if (what < 8) {
		store[find(id)].there = false;
		if (told)
			look(id, HW_KEY_REMOVED);
	} else {
		look(id, 0);
	}
}

/* Whatever is told or not: nobody goes offline while its key is there, and after a look at each all are as their keys.
 */
START_TEST(at_random)
{
	const char *env = getenv("HW_SEED");
	rnd_state = env ? strtoull(env, NULL, 0) : (uint64_t)time(NULL);
	printf("HW_SEED=%llu\n", (unsigned long long)rnd_state);
	rnd_state = rnd_state * 2862933555777941757u + 3037000493u;
	char id[16];
	size_t seen_log = 0;
	const int rounds = getenv("HW_VALGRIND") ? 150 : 3000;
	for (int round = 0; round < rounds; round++) {
		snprintf(id, sizeof(id), "d%u", rnd(20));
		touch_at_random(id);
		pass((int64_t)rnd(300) * MS);
		for (; seen_log < w->n_log; seen_log++) {
			if (w->log[seen_log].kind != HW_OUT_TRANSITION ||
			    w->log[seen_log].transition.state != HW_STATE_OFFLINE)
				continue;
			const struct hw_device *d =
				hw_registry_get(hw_monitor_registry(w->m), w->log[seen_log].transition.device);
			snprintf(id, sizeof(id), "%.*s", (int)hw_device_id(d).len, hw_device_id(d).text);
			int i = find(id);
			ck_assert_msg(!store[i].there || store[i].until_ns <= w->log_ns[seen_log] ||
			                      written_ns[i] >= w->log_ns[seen_log],
			              "%s was called offline and had its key", id);
		}
	}
	for (int k = 0; k < 2; k++) {
		for (int i = 0; i < 20; i++) {
			snprintf(id, sizeof(id), "d%d", i);
			look(id, 0);
		}
		pass(3 * S);
	}
	for (int i = 0; i < 20; i++) {
		snprintf(id, sizeof(id), "d%d", i);
		look(id, 0);
		bool there = store[find(id)].there;
		ck_assert_msg(!world_device(w, id) || world_is(w, id, HW_STATE_ONLINE) == there ||
		                      (!there && hw_monitor_due_in_ms(w->m, w->now, world_device(w, id)) > 0),
		              "%s is %s", id, there ? "offline and has its key" : "online without");
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("monitor_key");
	TCase *t = tcase_create("all");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, lives_as_long_as_its_key);
	tcase_add_test(t, a_renewed_key_costs_a_relink_a_time_to_live);
	tcase_add_test(t, a_changed_time_to_live);
	tcase_add_test(t, a_renewal_that_was_not_told);
	tcase_add_test(t, a_look_without_an_answer);
	tcase_add_test(t, back_for_one_timeout);
	tcase_add_test(t, what_is_not_taken);
	tcase_add_test(t, devices_by_mqtt_alone_do_not_grow);
	tcase_add_test(t, forgotten_and_back);
	tcase_add_test(t, offline_when_both_are_silent);
	tcase_add_test(t, heartbeats_resume);
	tcase_add_test(t, its_own_key);
	tcase_add_test(t, a_goodbye_while_the_key_is_there);
	tcase_add_test(t, written_and_lost_in_between);
	tcase_add_test(t, keys_are_judged_without_a_broker);
	tcase_add_test(t, a_store_that_was_away);
	tcase_add_test(t, recurring_blindness_is_bounded);
	tcase_add_test(t, all_keys_lost_at_once);
	tcase_add_test(t, a_removal_that_was_not_told);
	tcase_add_test(t, an_evicted_key);
	tcase_add_test(t, the_machine_slept);
	tcase_add_test(t, loaded_from_the_store);
	tcase_add_test(t, paced);
	tcase_add_test(t, the_delay_of_those_that_waited);
	tcase_add_test(t, off);
	tcase_add_test(t, at_random);
	suite_add_tcase(s, t);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? 1 : 0;
}

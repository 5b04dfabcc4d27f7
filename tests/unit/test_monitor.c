/* SPDX-License-Identifier: MIT */
/* The state machine, rule by rule, in virtual time. */
#include "../suite.h"
#include "world.h"

static struct world *w;

static void setup(void)
{
	struct hw_monitor_conf conf = world_conf();
	conf.ttl_factor = 4; /* refreshes may be left out */
	w = world_of_one(&conf);
	world_connect(w);
}

static void teardown(void)
{
	world_free(w);
}

#define TICK (S / 31 + 1)

START_TEST(test_silence_takes_offline_in_time)
{
	world_pass(w, S);
	world_beat(w, "a", "");
	int64_t beat = w->now.mono.ns, at;
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert_int_eq(world_last(w, NULL)->reason, HW_REASON_HEARTBEAT);
	world_until(w, beat + 30 * S - 1);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	world_pass(w, S);
	const struct hw_transition *t = world_last(w, &at);
	ck_assert_int_eq(t->state, HW_STATE_OFFLINE);
	ck_assert_int_eq(t->reason, HW_REASON_TIMEOUT);
	ck_assert_int_ge(at, beat + 30 * S);
	ck_assert_int_le(at, beat + 30 * S + TICK + 2 * w->rtt_ns);
	ck_assert_int_eq(t->delay_ns, at - beat - 30 * S);
	ck_assert_int_eq(t->last_seen_ms, 1700000000000 + 1000);
	ck_assert_uint_eq(world_count(w, HW_OUT_TRANSITION, HW_STATE_OFFLINE), 1);
	world_beat(w, "a", "");
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert_uint_gt(world_last(w, NULL)->seq, t->seq);
}
END_TEST

START_TEST(test_beats_keep_online_and_relink_once_a_timeout)
{
	for (int k = 0; k < 600; k++) {
		world_beat(w, "a", "");
		world_pass(w, S);
	}
	ck_assert_uint_eq(world_count(w, HW_OUT_TRANSITION, HW_STATE_OFFLINE), 0);
	/* 600 s at one a timeout less the interval. */
	ck_assert_uint_le(hw_monitor_stats(w->m)->relinks, 600 / 29 + 1);
	ck_assert_uint_eq(world_count(w, HW_OUT_REFRESH, 0) + world_count(w, HW_OUT_REFRESH_LIGHT, 0),
	                  hw_monitor_stats(w->m)->relinks);
}
END_TEST

/* Looks and refreshes of a device since the last time that this was asked. */
static void count_looks(const char *id, size_t *from, unsigned *looks, unsigned *refreshes)
{
	*looks = *refreshes = 0;
	for (; *from < w->n_log; ++*from) {
		const struct hw_out *out = &w->log[*from];
		if ((out->kind != HW_OUT_REFRESH_LIGHT && out->kind != HW_OUT_REFRESH) ||
		    hw_registry_get(hw_monitor_registry(w->m), out->device) != world_device(w, id))
			continue;
		*(out->kind == HW_OUT_REFRESH_LIGHT ? looks : refreshes) += 1;
	}
}

/* An interval of 16 s, and looks as often at a timeout of 30 s. */
static void beat_each_16_s(int times)
{
	for (int k = 0; k < times; k++) {
		world_pass(w, 16 * S);
		world_beat(w, "z", "");
	}
}

START_TEST(test_every_other_look_leaves_the_refresh_out)
{
	unsigned looks, refreshes;
	size_t from = 0;
	world_beat(w, "z", "");
	beat_each_16_s(40);
	count_looks("z", &from, &looks, &refreshes);
	ck_assert_uint_ge(looks, 18);
	ck_assert_uint_le(looks, 20);
	ck_assert_uint_ge(refreshes, 18);
	ck_assert_uint_le(refreshes, 40 * 16 / 30);
}
END_TEST

/* The keys that the last refresh wrote live for four timeouts of the group that the device has left. */
START_TEST(test_no_refresh_is_left_out_after_a_move_to_another_group)
{
	static const char *const slow[] = {"slow/{id}"};
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec groups[] = {world_group("slow", 120000), world_group("fast", 30000)};
	unsigned looks, refreshes = 0;
	size_t from = 0;
	groups[0].heartbeat = slow;
	groups[0].n_heartbeat = 1;
	groups[0].status = "";
	conf.ttl_factor = 4;
	world_free(w);
	w = world_new(&conf, groups, 2);
	world_connect(w);
	world_beat(w, "z", "");
	beat_each_16_s(20);
	count_looks("z", &from, &looks, &refreshes);
	ck_assert_uint_ge(looks, 8);
	for (refreshes = 0; refreshes == 0; count_looks("z", &from, &looks, &refreshes))
		beat_each_16_s(1);
	world_say(w, "slow/z", "", false);
	do {
		world_pass(w, S);
		count_looks("z", &from, &looks, &refreshes);
	} while (looks + refreshes == 0);
	ck_assert_uint_eq(refreshes, 1);
}
END_TEST

/* Keys go on ending while nobody is judged, and a sweep comes to a large fleet's last devices late. */
START_TEST(test_no_refresh_is_left_out_right_after_blindness)
{
	char id[16];
	unsigned looks = 0, refreshes = 0;
	size_t from = 0;
	for (int k = 0; k < 4000; k++) {
		snprintf(id, sizeof(id), "d%d", k);
		world_beat(w, id, "");
	}
	world_beat(w, "z", "");
	beat_each_16_s(4);
	count_looks("z", &from, &looks, &refreshes);
	refreshes = 0;
	for (int k = 0; k < 40 && refreshes == 0; k++) {
		world_pass(w, S);
		if (k % 16 == 15)
			world_beat(w, "z", "");
		count_looks("z", &from, &looks, &refreshes);
	}
	ck_assert_uint_eq(refreshes, 1);
	hw_monitor_link(w->m, w->now, 0, false);
	world_drain(w);
	world_pass(w, S);
	hw_monitor_link(w->m, w->now, 0, true);
	world_drain(w);
	for (int k = 0; k < 60 && looks + refreshes == 1; k++) {
		world_pass(w, S);
		world_beat(w, "z", "");
		unsigned more, again;
		count_looks("z", &from, &more, &again);
		looks += more;
		refreshes += again;
	}
	ck_assert_uint_eq(looks, 0);
	ck_assert_uint_eq(refreshes, 2);
}
END_TEST

/* When each device was refreshed last, or went online; it is named by its number. */
static void take_refreshes(int64_t *refreshed_ns)
{
	for (size_t k = 0; k < w->n_log; k++) {
		const struct hw_out *out = &w->log[k];
		struct hw_ref ref = out->kind == HW_OUT_TRANSITION ? out->transition.device : out->device;
		if (out->kind == HW_OUT_REFRESH || out->kind == HW_OUT_TRANSITION)
			refreshed_ns[atoi(hw_device_id(hw_registry_get(hw_monitor_registry(w->m), ref)).text)] =
				w->log_ns[k];
	}
	w->n_log = 0;
}

static void say_all(int devices, const char *payload)
{
	char id[16];
	for (int k = 0; k < devices; k++) {
		snprintf(id, sizeof(id), "%d", k);
		world_beat(w, id, payload);
	}
}

/* They beat just ahead of their timeout, so that every other look leaves the refresh out; until they have not been
 * refreshed for nearly two timeouts, and are about to be. */
static void beat_until_refreshes_are_due(int devices, int64_t *refreshed_ns)
{
	do {
		say_all(devices, "");
		world_pass(w, 29900 * MS);
		take_refreshes(refreshed_ns);
	} while (w->now.mono.ns - refreshed_ns[devices - 1] < 59 * S);
}

static void check_keys(int devices, int64_t *refreshed_ns)
{
	take_refreshes(refreshed_ns);
	for (int k = 0; k < devices; k++)
		if (w->now.mono.ns - refreshed_ns[k] > 120 * S / 6 * 5)
			ck_abort_msg("%d was refreshed %.1f s ago", k,
			             (double)(w->now.mono.ns - refreshed_ns[k]) / 1e9);
}

/* The loop comes 90 ms late to each chunk. */
START_TEST(test_a_sixth_of_each_key_is_left_while_a_large_fleet_is_blind)
{
	enum { DEVICES = 20000 };
	static int64_t refreshed_ns[DEVICES];
	beat_until_refreshes_are_due(DEVICES, refreshed_ns);
	hw_monitor_link(w->m, w->now, 0, false);
	for (int64_t end = w->now.mono.ns + 60 * S; w->now.mono.ns < end; w->now.mono.ns += 90 * MS) {
		world_drain(w);
		check_keys(DEVICES, refreshed_ns);
	}
}
END_TEST

/* A broker that is stopped publishes every will; it is back before the round of the blindness is over. */
START_TEST(test_a_sixth_of_each_key_is_left_behind_goodbyes_that_are_void)
{
	enum { DEVICES = 2000 };
	static int64_t refreshed_ns[DEVICES];
	beat_until_refreshes_are_due(DEVICES, refreshed_ns);
	say_all(DEVICES, "{\"online\":false}");
	hw_monitor_link(w->m, w->now, 0, false);
	world_pass(w, S);
	hw_monitor_link(w->m, w->now, 0, true);
	for (int beats = 0; beats < 4; beats++)
		for (int k = 0; k < 29; k++) {
			world_pass(w, S);
			if (k == 0)
				say_all(DEVICES, "");
			check_keys(DEVICES, refreshed_ns);
		}
}
END_TEST

/* Not as was planned when there was one device. */
START_TEST(test_a_fleet_that_has_grown_since_a_blindness_is_refreshed_in_time)
{
	enum { DEVICES = 1000 };
	static int64_t refreshed_ns[DEVICES];
	say_all(1, "");
	hw_monitor_link(w->m, w->now, 0, false);
	world_drain(w);
	hw_monitor_link(w->m, w->now, 0, true);
	say_all(DEVICES, "");
	int64_t began_ns = w->now.mono.ns;
	world_pass(w, S);
	hw_monitor_link(w->m, w->now, 0, false);
	world_pass(w, 41 * S);
	take_refreshes(refreshed_ns);
	for (int k = 1; k < DEVICES; k++)
		ck_assert_int_gt(refreshed_ns[k], began_ns);
}
END_TEST

START_TEST(test_nobody_is_judged_without_two_barriers)
{
	world_beat(w, "a", "");
	world_pass(w, 29 * S);
	w->swallow = true;
	world_say(w, "nodes/b/heartbeat", "", false);
	for (int k = 0; k < 40; k++) { /* messages keep arriving: no standstill, and no judgement either */
		world_pass(w, 100 * MS);
		world_beat(w, "b", "");
	}
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert(!hw_blind_now(hw_monitor_blind(w->m)));
	uint64_t sent = hw_monitor_stats(w->m)->barriers_sent;
	hw_monitor_barrier(w->m, w->now, 0, hw_monitor_stats(w->m)->barriers_back + 1);
	world_drain(w);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	for (uint64_t n = hw_monitor_stats(w->m)->barriers_back + 1; n <= sent; n++)
		hw_monitor_barrier(w->m, w->now, 0, n);
	world_drain(w);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE)); /* none was sent behind one that was back */
	ck_assert_uint_gt(hw_monitor_stats(w->m)->barriers_sent, sent);
	for (uint64_t n = sent + 1; n <= hw_monitor_stats(w->m)->barriers_sent; n++)
		hw_monitor_barrier(w->m, w->now, 0, n);
	world_drain(w);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
}
END_TEST

START_TEST(test_heard_between_deadline_and_judgement)
{
	world_beat(w, "a", "");
	w->rtt_ns = 100 * MS;
	world_pass(w, 30 * S + 150 * MS);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->suspects, 1);
	world_beat(w, "a", "");
	world_pass(w, 5 * S);
	ck_assert_uint_eq(world_count(w, HW_OUT_TRANSITION, HW_STATE_OFFLINE), 0);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->suspects, 0);
}
END_TEST

START_TEST(test_own_timeout)
{
	world_beat(w, "a", "{\"timeout\":310}");
	world_pass(w, 300 * S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	world_beat(w, "a", "{\"timeout\":1.5}"); /* shorter: in force at once, though the entry was armed for later */
	int64_t beat = w->now.mono.ns, at;
	world_pass(w, 2 * S);
	ck_assert_int_eq(world_last(w, &at)->state, HW_STATE_OFFLINE);
	ck_assert_int_ge(at, beat + 1500 * MS);
	ck_assert_int_le(at, beat + 1500 * MS + TICK + 10 * MS);
	world_beat(w, "a", "{\"timeout\":0}");
	ck_assert_int_eq(hw_monitor_timeout_ms(w->m, world_device(w, "a")), 30000);
	world_beat(w, "a", "{\"timeout\":0.001}");
	ck_assert_int_eq(hw_monitor_timeout_ms(w->m, world_device(w, "a")), 100);
	world_beat(w, "a", "{\"timeout\":1e18}");
	ck_assert_int_eq(hw_monitor_timeout_ms(w->m, world_device(w, "a")), 86400000);
	world_beat(w, "a", "{\"timeout\":-1}");
	world_beat(w, "a", "{\"timeout\":\"soon\"}");
	ck_assert_uint_eq(hw_monitor_stats(w->m)->refused[HW_REFUSED_TIMEOUT], 2);
	ck_assert_int_eq(hw_monitor_timeout_ms(w->m, world_device(w, "a")), 86400000);
}
END_TEST

/* b beats for so long; how many barriers the monitor sent meanwhile. */
static uint64_t barriers_in(int64_t ns)
{
	uint64_t before = hw_monitor_stats(w->m)->barriers_sent;
	for (int64_t end = w->now.mono.ns + ns; w->now.mono.ns < end; world_pass(w, 5 * S)) {
		w->n_log = 0;
		world_beat(w, "b", "");
	}
	return hw_monitor_stats(w->m)->barriers_sent - before;
}

START_TEST(test_barriers_keep_pace_with_the_shortest_timeout_in_use)
{
	world_beat(w, "b", "{\"timeout\":8}");
	world_beat(w, "a", "{\"timeout\":0.1}");
	ck_assert_uint_ge(barriers_in(60 * S), 230);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	barriers_in(7300 * S);
	ck_assert(world_is(w, "b", HW_STATE_ONLINE));
	uint64_t n = barriers_in(600 * S); /* every 2 s, for b, and a pair when it is looked at */
	ck_assert_uint_ge(n, 300);
	ck_assert_uint_le(n, 500);
}
END_TEST

START_TEST(test_reload_shortens_a_day_to_a_second)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec day = world_group("default", 86400000), second = world_group("default", 1000);
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &day, 1), 0);
	char id[16];
	for (int k = 0; k < 3000; k++) {
		snprintf(id, sizeof(id), "d%d", k);
		world_beat(w, id, "");
	}
	world_pass(w, 100 * MS);
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &second, 1), 0);
	world_pass(w, 1100 * MS);
	ck_assert_uint_eq(world_count(w, HW_OUT_TRANSITION, HW_STATE_OFFLINE), 3000);
}
END_TEST

START_TEST(test_extreme_timeouts)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec g = world_group("default", 100);
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &g, 1), 0);
	world_beat(w, "a", "");
	int64_t beat = w->now.mono.ns, at;
	world_pass(w, S);
	ck_assert_int_eq(world_last(w, &at)->state, HW_STATE_OFFLINE);
	ck_assert_int_ge(at, beat + 100 * MS);
	ck_assert_int_le(at, beat + 100 * MS + TICK + 10 * MS);
	g.timeout_ms = g.timeout_max_ms = HW_TIMEOUT_MAX_MS;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &g, 1), 0);
	world_beat(w, "b", "");
	beat = w->now.mono.ns;
	w->rtt_ns = 0;
	/* Ten years in steps, and a barrier after each. */
	for (int day = 0; day < 3650; day++) {
		w->now.mono.ns += 86400 * S - (day == 3649 ? MS : 0);
		world_pass(w, 0);
		w->n_log = 0;
		ck_assert(world_is(w, "b", HW_STATE_ONLINE));
		ck_assert_uint_eq(hw_monitor_stats(w->m)->suspects, 0);
	}
	world_pass(w, S);
	ck_assert_int_eq(world_last(w, &at)->state, HW_STATE_OFFLINE);
	ck_assert_int_ge(at, beat + 3650 * INT64_C(86400) * S);
	ck_assert_int_le(at, beat + 3650 * INT64_C(86400) * S + TICK + 10 * MS);
}
END_TEST

START_TEST(test_start_is_blind_until_grace_is_over)
{
	struct hw_monitor_conf conf = world_conf();
	conf.grace_ms = 15000;
	struct hw_group_spec g = world_group("default", 2000);
	struct world *v = world_new(&conf, &g, 1);
	ck_assert(hw_blind_now(hw_monitor_blind(v->m)));
	world_beat(v, "a", "");
	world_pass(v, 5 * S);
	world_connect(v);
	int64_t up = v->now.mono.ns, at;
	world_pass(v, 14 * S);
	ck_assert(hw_blind_now(hw_monitor_blind(v->m)));
	ck_assert(world_is(v, "a", HW_STATE_ONLINE));
	world_pass(v, 4 * S);
	ck_assert_int_eq(world_last(v, &at)->state, HW_STATE_OFFLINE);
	ck_assert_int_ge(at, up + 17 * S);
	world_free(v);
}
END_TEST

START_TEST(test_recurring_blindness_cannot_put_a_death_off_for_ever)
{
	world_beat(w, "a", "");
	int64_t seen = 0, at;
	for (int k = 0; k < 100 && world_is(w, "a", HW_STATE_ONLINE); k++) {
		world_pass(w, 20 * S);
		seen += 20 * S;
		hw_monitor_link(w->m, w->now, 0, false);
		w->n_out = 0;
		world_pass(w, S);
		hw_monitor_link(w->m, w->now, 0, true);
	}
	ck_assert_int_eq(world_last(w, &at)->reason, HW_REASON_TIMEOUT);
	ck_assert_int_ge(seen, 90 * S);
	ck_assert_int_le(seen, 100 * S);
}
END_TEST

/* A loss is already over when it is found. Its begin and its end are reported nevertheless. */
START_TEST(test_a_loss_is_told)
{
	world_beat(w, "a", "");
	world_pass(w, 3 * S);
	for (int k = 0; k < 2; k++) {
		size_t from = w->n_log;
		hw_monitor_loss(w->m, w->now, 0);
		world_drain(w);
		const struct hw_out *told[2] = {NULL, NULL};
		for (size_t i = from, n = 0; i < w->n_log; i++)
			if (w->log[i].kind == HW_OUT_BLIND) {
				ck_assert_uint_lt(n, 2);
				told[n++] = &w->log[i];
			}
		ck_assert_ptr_nonnull(told[1]);
		ck_assert(told[0]->blind.begun && !told[1]->blind.begun);
		ck_assert_int_eq(told[0]->blind.cause, HW_CAUSE_LOSS);
		ck_assert_int_eq(told[1]->blind.cause, HW_CAUSE_LOSS);
		ck_assert(told[1]->blind.lossy);
		ck_assert_int_gt(told[1]->blind.length_ns, 0);
		world_pass(w, S);
	}
}
END_TEST

START_TEST(test_wall_clock_steps_cause_nothing)
{
	world_beat(w, "a", "");
	w->now.wall_ms += 86400000;
	world_pass(w, 20 * S);
	ck_assert_int_eq(hw_device_last_seen_ms(world_device(w, "a"), w->now), w->now.wall_ms - 20000);
	world_beat(w, "a", "");
	w->now.wall_ms -= 2 * 86400000;
	world_pass(w, 20 * S);
	ck_assert_int_eq(hw_device_last_seen_ms(world_device(w, "a"), w->now), w->now.wall_ms - 20000);
	ck_assert_uint_eq(world_count(w, HW_OUT_TRANSITION, HW_STATE_OFFLINE), 0);
	uint64_t seq = world_device(w, "a")->seq;
	world_pass(w, 20 * S);
	ck_assert_uint_eq(world_last(w, NULL)->seq, seq + 1); /* the wall clock is behind: the seq still grows */
}
END_TEST

/* Another node has written the device's record in the meantime. The next seq of this node is higher: with the same seq,
 * the two records could not be distinguished. */
START_TEST(test_a_newer_seq_is_adopted)
{
	world_beat(w, "a", "");
	const struct hw_registry *devices = hw_monitor_registry(w->m);
	struct hw_ref ref = hw_registry_ref(devices, hw_registry_find(devices, "a", 1));
	uint64_t seq = world_device(w, "a")->seq;
	ck_assert(!hw_monitor_adopt_seq(w->m, ref, seq - 1));
	ck_assert_uint_eq(world_device(w, "a")->seq, seq);
	ck_assert(hw_monitor_adopt_seq(w->m, ref, seq));
	ck_assert_uint_eq(world_device(w, "a")->seq, seq + 1);
	seq += 1000000000;
	ck_assert(hw_monitor_adopt_seq(w->m, ref, seq));
	ck_assert_uint_eq(world_device(w, "a")->seq, seq + 1);
	world_pass(w, 40 * S);
	ck_assert_uint_eq(world_last(w, NULL)->seq, seq + 2);
	ck_assert_msg(!hw_monitor_adopt_seq(w->m, ref, (UINT64_C(1) << 48) - 1), "no room for the next one");
}
END_TEST

/* The last-seen time that was reported for an offline device does not change when the wall clock is set. */
START_TEST(test_last_seen_of_the_gone_is_as_it_was_told)
{
	world_beat(w, "a", "");
	world_pass(w, 40 * S);
	int64_t told = world_last(w, NULL)->last_seen_ms;
	ck_assert_int_eq(told, w->now.wall_ms - 40000);
	w->now.wall_ms += 86400000;
	world_pass(w, S);
	ck_assert_int_eq(hw_device_last_seen_ms(world_device(w, "a"), w->now), told);
	ck_assert(hw_monitor_forget(w->m, w->now, "a", 1));
	ck_assert_int_eq(hw_device_last_seen_ms(world_device(w, "a"), w->now), told);
	world_beat(w, "a", "");
	world_pass(w, S);
	ck_assert_int_eq(hw_device_last_seen_ms(world_device(w, "a"), w->now), w->now.wall_ms - 1000);
	struct hw_stored s = {.id = "b",
	                      .id_len = 1,
	                      .state = HW_STATE_OFFLINE,
	                      .reason = HW_REASON_TIMEOUT,
	                      .since_ms = told + 30000,
	                      .last_seen_ms = told,
	                      .seq = 7};
	ck_assert_int_eq(hw_monitor_load(w->m, w->now, &s), 0);
	w->now.wall_ms -= 86400000;
	ck_assert_int_eq(hw_device_last_seen_ms(world_device(w, "b"), w->now), told);
	world_beat(w, "b", "");
	ck_assert_int_eq(hw_device_last_seen_ms(world_device(w, "b"), w->now), w->now.wall_ms);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("monitor");
	TCase *tc = tcase_create("rules");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 20);
	tcase_add_test(tc, test_silence_takes_offline_in_time);
	tcase_add_test(tc, test_beats_keep_online_and_relink_once_a_timeout);
	tcase_add_test(tc, test_every_other_look_leaves_the_refresh_out);
	tcase_add_test(tc, test_no_refresh_is_left_out_after_a_move_to_another_group);
	tcase_add_test(tc, test_no_refresh_is_left_out_right_after_blindness);
	tcase_add_test(tc, test_a_sixth_of_each_key_is_left_while_a_large_fleet_is_blind);
	tcase_add_test(tc, test_a_sixth_of_each_key_is_left_behind_goodbyes_that_are_void);
	tcase_add_test(tc, test_a_fleet_that_has_grown_since_a_blindness_is_refreshed_in_time);
	tcase_add_test(tc, test_nobody_is_judged_without_two_barriers);
	tcase_add_test(tc, test_heard_between_deadline_and_judgement);
	tcase_add_test(tc, test_own_timeout);
	tcase_add_test(tc, test_barriers_keep_pace_with_the_shortest_timeout_in_use);
	tcase_add_test(tc, test_reload_shortens_a_day_to_a_second);
	tcase_add_test(tc, test_extreme_timeouts);
	tcase_add_test(tc, test_start_is_blind_until_grace_is_over);
	tcase_add_test(tc, test_recurring_blindness_cannot_put_a_death_off_for_ever);
	tcase_add_test(tc, test_a_loss_is_told);
	tcase_add_test(tc, test_wall_clock_steps_cause_nothing);
	tcase_add_test(tc, test_a_newer_seq_is_adopted);
	tcase_add_test(tc, test_last_seen_of_the_gone_is_as_it_was_told);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

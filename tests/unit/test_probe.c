/* SPDX-License-Identifier: MIT */
/* Probes: who is asked, when and how often, what counts as an answer, and that asking changes nothing else. */
#include "../suite.h"
#include "world.h"

#define ANSWERS "nodes/w/ack"
#define FLEET   1000

static struct world *w;
static struct hw_monitor_conf conf;
static struct hw_group_spec group;

static void begin(int64_t timeout_ms, int64_t after_ms, unsigned probes, unsigned rate)
{
	conf = world_conf();
	conf.probe_rate = rate;
	conf.probe_answers = ANSWERS;
	group = world_group("default", timeout_ms);
	group.probe = "ping";
	group.probe_after_ms = after_ms;
	group.probes = probes;
	w = world_new(&conf, &group, 1);
	world_connect(w);
}

static void setup(void)
{
	begin(30000, 20000, 1, 0);
}

static void teardown(void)
{
	world_free(w);
}

static int64_t now_ns(void)
{
	return w->now.mono.ns;
}

/* How many probes there were. */
static size_t probes(void)
{
	return world_count(w, HW_OUT_PROBE, 0);
}

/* The nth probe's time. */
static int64_t probe_at(size_t nth)
{
	for (size_t k = 0; k < w->n_log; k++)
		if (w->log[k].kind == HW_OUT_PROBE && nth-- == 0)
			return w->log_ns[k];
	ck_abort_msg("there were fewer probes");
	return 0;
}

static void msg_id_of(const char *id, char msg_id[HW_PROBE_ID_SIZE])
{
	uint32_t i = hw_registry_find(hw_monitor_registry(w->m), id, strlen(id));
	ck_assert(hw_probe_id(w->m, hw_registry_ref(hw_monitor_registry(w->m), i), msg_id));
}

static void ack(const char *msg_id, bool retained)
{
	char payload[128];
	snprintf(payload, sizeof(payload), "{\"msg_id\":\"%s\"}", msg_id);
	world_say(w, ANSWERS, payload, retained);
}

static uint64_t refused(void)
{
	return hw_monitor_stats(w->m)->refused[HW_REFUSED_PROBE];
}

START_TEST(test_a_silent_device_is_asked_and_its_deadline_stays)
{
	int64_t begun = now_ns(), offline_at;
	world_beat(w, "a", "");
	world_until(w, begun + 20 * S - MS);
	ck_assert_uint_eq(probes(), 0);
	world_until(w, begun + 25 * S);
	ck_assert_uint_eq(probes(), 1);
	world_until(w, begun + 40 * S);
	ck_assert_uint_eq(probes(), 1);
	ck_assert(world_last(w, &offline_at)->state == HW_STATE_OFFLINE);
	ck_assert_int_ge(offline_at, begun + 30 * S);
	ck_assert_int_le(offline_at, begun + 30 * S + 50 * MS);
	world_pass(w, 100 * S);
	ck_assert_uint_eq(probes(), 1); /* nobody asks the dead */
	ck_assert_uint_eq(hw_monitor_stats(w->m)->probes_sent, 1);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->probes_answered, 0);
}
END_TEST

START_TEST(test_what_a_probe_says)
{
	int64_t begun = now_ns();
	world_beat(w, "a", "");
	world_until(w, begun + 25 * S);
	for (size_t k = 0; k < w->n_log; k++)
		if (w->log[k].kind == HW_OUT_PROBE) {
			struct hw_ref ref = w->log[k].probe.device;
			ck_assert_ptr_eq(hw_registry_get(hw_monitor_registry(w->m), ref), world_device(w, "a"));
			ck_assert_int_eq(w->log[k].probe.left_ns, begun + 30 * S - w->log_ns[k]);
			int64_t left_ns;
			ck_assert(hw_probe_is_wanted(w->m, w->now, ref, &left_ns));
			ck_assert_int_eq(left_ns, begun + 30 * S - now_ns());
			world_beat(w, "a", "");
			ck_assert(!hw_probe_is_wanted(w->m, w->now, ref, &left_ns));
		}
}
END_TEST

START_TEST(test_who_beats_is_never_asked)
{
	for (int k = 0; k < 100; k++) {
		world_beat(w, "a", "");
		world_pass(w, 19 * S);
	}
	ck_assert_uint_eq(probes(), 0);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
}
END_TEST

START_TEST(test_any_heartbeat_is_an_answer)
{
	for (int k = 0; k < 10; k++) {
		world_beat(w, "a", "");
		world_pass(w, 26 * S);
	}
	ck_assert_uint_eq(probes(), 10);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->probes_answered, 9);
	ck_assert_uint_eq(world_count(w, HW_OUT_TRANSITION, HW_STATE_OFFLINE), 0);
}
END_TEST

START_TEST(test_an_ack_is_a_heartbeat)
{
	char msg_id[HW_PROBE_ID_SIZE];
	world_beat(w, "a", "");
	for (int k = 0; k < 10; k++) {
		world_pass(w, 26 * S);
		msg_id_of("a", msg_id);
		ack(msg_id, false);
	}
	ck_assert_uint_eq(hw_monitor_stats(w->m)->probes_answered, 10);
	ck_assert_uint_eq(world_count(w, HW_OUT_TRANSITION, HW_STATE_OFFLINE), 0);
	ck_assert_uint_eq(refused(), 0);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->heartbeats, 11);
	ck_assert_int_eq(hw_monitor_due_in_ms(w->m, w->now, world_device(w, "a")), 30000);
	world_pass(w, 40 * S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
}
END_TEST

START_TEST(test_forged_and_stale_acks_are_refused)
{
	char msg_id[HW_PROBE_ID_SIZE], other[HW_PROBE_ID_SIZE];
	world_beat(w, "a", "");
	world_beat(w, "b", "");
	world_pass(w, 26 * S);
	msg_id_of("a", msg_id);
	memcpy(other, msg_id, sizeof(other));
	other[29] = other[29] == '0' ? '1' : '0'; /* of the tag */
	ack(other, false);
	memcpy(other, msg_id, sizeof(other));
	other[7] = other[7] == '0' ? '1' : '0'; /* another device with a's tag */
	ack(other, false);
	memcpy(other, msg_id, sizeof(other));
	other[12]++; /* another generation */
	ack(other, false);
	ack("", false);
	world_say(w, ANSWERS, "", false);
	world_say(w, ANSWERS, "{\"msg_id\":7}", false);
	ck_assert_uint_eq(refused(), 6);
	ack(msg_id, true);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->refused[HW_REFUSED_RETAINED], 1);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->heartbeats, 2);
	ack(msg_id, false);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->heartbeats, 3);
	world_pass(w, S);
	ack(msg_id, false); /* its silence is over */
	ck_assert_uint_eq(refused(), 7);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->heartbeats, 3);
}
END_TEST

START_TEST(test_an_ack_that_comes_late_brings_a_device_back_for_a_timeout)
{
	char msg_id[HW_PROBE_ID_SIZE];
	world_beat(w, "a", "");
	world_beat(w, "b", "");
	world_pass(w, 59 * S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	msg_id_of("a", msg_id);
	ack(msg_id, false);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	msg_id_of("b", msg_id);
	world_pass(w, 2 * S);
	ack(msg_id, false);
	ck_assert(world_is(w, "b", HW_STATE_OFFLINE));
	ck_assert_uint_eq(refused(), 1);
}
END_TEST

/* Also a group that would take its topic hears nothing of it. */
START_TEST(test_the_topic_of_answers_is_no_devices)
{
	static const char *const all[] = {"nodes/{id}/#"};
	group.heartbeat = all;
	group.n_heartbeat = 1;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &group, 1), 0);
	ack("x", false);
	ck_assert_ptr_null(world_device(w, "w"));
	ck_assert_uint_eq(refused(), 1);
	conf.probe_answers = NULL; /* nobody is asked over MQTT */
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &group, 1), 0);
	ack("x", false);
	ck_assert_ptr_nonnull(world_device(w, "w"));
}
END_TEST

START_TEST(test_by_another_way_an_answer_is_a_heartbeat_too)
{
	world_beat(w, "a", "");
	uint32_t i = hw_registry_find(hw_monitor_registry(w->m), "a", 1);
	struct hw_ref ref = hw_registry_ref(hw_monitor_registry(w->m), i), gone = {ref.index, (uint16_t)(ref.gen + 1)};
	world_pass(w, 26 * S);
	hw_monitor_answered(w->m, w->now, gone);
	ck_assert_int_eq(hw_monitor_due_in_ms(w->m, w->now, world_device(w, "a")), 4000);
	hw_monitor_answered(w->m, w->now, ref);
	ck_assert_int_eq(hw_monitor_due_in_ms(w->m, w->now, world_device(w, "a")), 30000);
	world_pass(w, 40 * S);
	hw_monitor_answered(w->m, w->now, ref);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert(hw_monitor_forget(w->m, w->now, "a", 1));
	hw_monitor_answered(w->m, w->now, ref);
	ck_assert(world_is(w, "a", HW_STATE_FORGOTTEN));
	world_drain(w);
}
END_TEST

START_TEST(test_several_come_evenly_up_to_the_deadline)
{
	teardown();
	begin(30000, 15000, 3, 0);
	int64_t begun = now_ns();
	world_beat(w, "a", "");
	world_until(w, begun + 31 * S);
	ck_assert_uint_eq(probes(), 3);
	int64_t step = (begun + 30 * S - probe_at(0)) / 3;
	ck_assert_int_ge(probe_at(0), begun + 15 * S);
	ck_assert_int_le(probe_at(0), begun + 22500 * MS + 40 * MS);
	ck_assert_int_le(llabs(probe_at(1) - probe_at(0) - step), 40 * MS);
	ck_assert_int_le(llabs(probe_at(2) - probe_at(1) - step), 40 * MS);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
}
END_TEST

static void beat_all(int n)
{
	char id[16];
	for (int k = 0; k < n; k++) {
		snprintf(id, sizeof(id), "d%d", k);
		world_beat(w, id, "");
	}
}

START_TEST(test_they_are_spread_over_half_of_what_is_left)
{
	int64_t begun = now_ns();
	int in_tenth[10] = {0};
	beat_all(FLEET);
	world_until(w, begun + 30 * S - MS);
	ck_assert_uint_eq(probes(), FLEET);
	for (int k = 0; k < FLEET; k++) {
		int64_t after = probe_at((size_t)k) - begun - 20 * S;
		ck_assert_int_ge(after, 0);
		ck_assert_int_le(after, 5 * S + 40 * MS);
		in_tenth[after / (500 * MS) > 9 ? 9 : after / (500 * MS)]++;
	}
	for (int k = 0; k < 10; k++)
		ck_assert_int_gt(in_tenth[k], FLEET / 10 * 6 / 10);
}
END_TEST

START_TEST(test_the_rate_is_kept_and_the_rest_dropped)
{
	teardown();
	begin(30000, 20000, 1, 50);
	int64_t begun = now_ns();
	beat_all(FLEET);
	world_until(w, begun + 40 * S);
	size_t n = probes();
	ck_assert_uint_ge(n, 450); /* 10 s of it, less where its first come by chance */
	ck_assert_uint_le(n, 500);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->probes_dropped, FLEET - n);
	for (size_t k = 0; k + 53 < n; k++)
		ck_assert_int_gt(probe_at(k + 53) - probe_at(k), S - 2 * MS);
	ck_assert_uint_eq(world_count(w, HW_OUT_TRANSITION, HW_STATE_OFFLINE), FLEET);
	for (size_t k = 0; k < w->n_log; k++)
		if (w->log[k].kind == HW_OUT_TRANSITION && w->log[k].transition.state == HW_STATE_OFFLINE)
			ck_assert_int_le(w->log_ns[k], begun + 30 * S + 100 * MS);
}
END_TEST

/* While it waits for its turn it is heard: its next silence has all its moments. */
START_TEST(test_who_waits_for_a_turn_and_is_heard_is_asked_in_the_next_silence)
{
	teardown();
	begin(30000, 2000, 1, 1);
	int64_t begun = now_ns();
	beat_all(20);
	world_until(w, begun + 25 * S);
	beat_all(20);
	int64_t again = now_ns();
	size_t n = probes();
	ck_assert_uint_ge(n, 10);
	world_until(w, again + 29 * S);
	ck_assert_uint_ge(probes(), n + 12);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->probes_answered, n);
}
END_TEST

/* Its entry comes due for a probe, and not for what refreshes it otherwise. */
START_TEST(test_who_waits_for_a_turn_and_is_heard_is_refreshed)
{
	char id[16];
	teardown();
	begin(30000, 20000, 1, 10);
	for (int k = 0; k < 10; k++) {
		beat_all(200);
		world_pass(w, 26 * S);
	}
	for (int k = 0; k < 200; k++) {
		size_t refreshes = 0;
		snprintf(id, sizeof(id), "d%d", k);
		const struct hw_device *d = world_device(w, id);
		for (size_t at = 0; at < w->n_log; at++)
			refreshes += w->log[at].kind == HW_OUT_REFRESH &&
			             hw_registry_get(hw_monitor_registry(w->m), w->log[at].device) == d;
		ck_assert_msg(refreshes >= 3, "%s: %zu refreshes in nine timeouts", id, refreshes);
	}
}
END_TEST

/* A filter that is wide enough brings the probe itself. */
START_TEST(test_its_own_probe_is_no_sign_of_a_devices_life)
{
	static const char *const wide[] = {"nodes/{id}/#"};
	struct hw_group_spec all = group;
	teardown();
	all.heartbeat = wide;
	all.n_heartbeat = 1;
	w = world_new(&conf, &all, 1);
	world_connect(w);
	world_beat(w, "a", "");
	for (int k = 0; k < 60; k++) {
		world_pass(w, S);
		world_say(w, "nodes/a/pending", "{\"sender\":\"w\",\"receiver\":\"a\",\"msg_id\":\"x\"}", false);
	}
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	ck_assert_uint_eq(world_count(w, HW_OUT_TRANSITION, HW_STATE_ONLINE), 1);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->heartbeats, 1);
}
END_TEST

START_TEST(test_nobody_is_asked_while_blind_or_before_silence_counts)
{
	int64_t begun = now_ns();
	world_beat(w, "a", "");
	world_until(w, begun + 15 * S);
	hw_monitor_link(w->m, w->now, 0, false);
	world_pass(w, 60 * S);
	ck_assert_uint_eq(probes(), 0);
	conf.grace_ms = 10000;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &group, 1), 0);
	hw_monitor_link(w->m, w->now, 0, true);
	world_pass(w, 9 * S);
	ck_assert(hw_blind_now(hw_monitor_blind(w->m)));
	world_pass(w, 2 * S);
	int64_t seeing = now_ns() - S;
	ck_assert(!hw_blind_now(hw_monitor_blind(w->m)));
	world_until(w, seeing + 20 * S - 100 * MS);
	ck_assert_uint_eq(probes(), 0); /* the timeout starts again */
	world_until(w, seeing + 25 * S + 100 * MS);
	ck_assert_uint_eq(probes(), 1);
	world_until(w, seeing + 29 * S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
}
END_TEST

START_TEST(test_a_stall_puts_probe_and_deadline_off_alike)
{
	int64_t begun = now_ns();
	world_beat(w, "a", "");
	world_until(w, begun + 19 * S);
	hw_monitor_stall(w->m, w->now, w->now.mono);
	world_pass(w, 4 * S);
	ck_assert_uint_eq(probes(), 0);
	hw_monitor_drained(w->m, w->now);
	world_until(w, begun + 24 * S - MS);
	ck_assert_uint_eq(probes(), 0);
	world_until(w, begun + 29 * S + 40 * MS);
	ck_assert_uint_eq(probes(), 1);
}
END_TEST

START_TEST(test_who_said_goodbye_is_not_asked)
{
	group.goodbye_delay_ms = 60000;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &group, 1), 0);
	world_beat(w, "a", "");
	world_pass(w, S);
	world_beat(w, "a", "{\"online\":false}");
	world_pass(w, 28 * S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert_uint_eq(probes(), 0);
}
END_TEST

START_TEST(test_a_timeout_of_its_own_has_the_same_share)
{
	int64_t begun = now_ns();
	world_beat(w, "a", "{\"timeout\":300}");
	world_until(w, begun + 200 * S - MS);
	ck_assert_uint_eq(probes(), 0);
	world_until(w, begun + 250 * S + 40 * MS);
	ck_assert_uint_eq(probes(), 1);
}
END_TEST

START_TEST(test_a_reload_turns_them_on_and_off)
{
	struct hw_group_spec off = group;
	off.probe = "";
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &off, 1), 0);
	world_beat(w, "a", "");
	world_pass(w, 10 * S);
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &group, 1), 0);
	world_pass(w, 15 * S + 40 * MS);
	ck_assert_uint_eq(probes(), 1);
	world_beat(w, "a", "");
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &off, 1), 0);
	world_pass(w, 29 * S);
	ck_assert_uint_eq(probes(), 1);
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &group, 1), 0);
	world_beat(w, "a", "");
	struct hw_group_spec other = world_group("other", 30000);
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &other, 1), 0); /* its group has gone */
	world_pass(w, 29 * S);
	ck_assert_uint_eq(probes(), 1);
}
END_TEST

/* An entry that was looked at while its device is asked stands where the next silence may need it. */
START_TEST(test_who_lives_by_answers_alone_is_asked_each_time)
{
	char msg_id[HW_PROBE_ID_SIZE];
	teardown();
	begin(30000, 1000, 1, 0);
	world_beat(w, "a", "");
	for (size_t k = 1; k <= 50; k++) {
		int64_t silent = now_ns();
		while (probes() < k && now_ns() < silent + 29 * S)
			world_pass(w, 100 * MS);
		ck_assert_uint_eq(probes(), k);
		ck_assert_int_le(now_ns() - silent, 15500 * MS + 200 * MS);
		msg_id_of("a", msg_id);
		ack(msg_id, false);
	}
}
END_TEST

/* Of several nodes the owner asks; another, when it takes over, does before it judges. */
START_TEST(test_the_owner_asks_and_who_takes_over_does_first)
{
	teardown();
	conf = world_conf();
	conf.several = true;
	group.probe = "ping";
	w = world_new(&conf, &group, 1);
	world_connect(w);
	world_beat(w, "a", "");
	struct hw_event e = {.id = "a",
	                     .id_len = 1,
	                     .group = "default",
	                     .group_len = 7,
	                     .state = HW_STATE_ONLINE,
	                     .time_ms = w->now.wall_ms,
	                     .seq = 5};
	ck_assert_int_eq(hw_monitor_stream(w->m, w->now, &e), 0);
	world_pass(w, 100 * S);
	ck_assert_uint_eq(probes(), 0);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	int64_t taken = now_ns();
	hw_monitor_role(w->m, hw_partition_of("a", 1), HW_ROLE_AUTHORITATIVE, 1);
	world_until(w, taken + 6 * S);
	ck_assert_uint_eq(probes(), 1);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	world_until(w, taken + 11 * S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
}
END_TEST

START_TEST(test_nobody_is_asked_while_the_store_is_loaded)
{
	teardown();
	conf = world_conf();
	conf.loading = true;
	w = world_new(&conf, &group, 1);
	world_connect(w);
	struct hw_stored s = {.id = "a",
	                      .id_len = 1,
	                      .state = HW_STATE_ONLINE,
	                      .since_ms = w->now.wall_ms,
	                      .last_seen_ms = w->now.wall_ms,
	                      .seq = 1};
	ck_assert_int_eq(hw_monitor_load(w->m, w->now, &s), 0);
	world_pass(w, 29 * S);
	ck_assert_uint_eq(probes(), 0);
}
END_TEST

/* Without probes nothing is looked at more often. */
START_TEST(test_a_group_without_probes_is_looked_at_once_per_timeout)
{
	struct hw_group_spec off = group;
	teardown();
	off.probe = NULL;
	w = world_new(&conf, &off, 1);
	world_connect(w);
	for (int k = 0; k < 300; k++) {
		world_beat(w, "a", "");
		world_pass(w, S);
	}
	ck_assert_uint_le(hw_monitor_stats(w->m)->relinks, 11);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("probe");
	TCase *t = tcase_create("probe");
	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, test_a_silent_device_is_asked_and_its_deadline_stays);
	tcase_add_test(t, test_what_a_probe_says);
	tcase_add_test(t, test_who_beats_is_never_asked);
	tcase_add_test(t, test_any_heartbeat_is_an_answer);
	tcase_add_test(t, test_an_ack_is_a_heartbeat);
	tcase_add_test(t, test_forged_and_stale_acks_are_refused);
	tcase_add_test(t, test_an_ack_that_comes_late_brings_a_device_back_for_a_timeout);
	tcase_add_test(t, test_the_topic_of_answers_is_no_devices);
	tcase_add_test(t, test_by_another_way_an_answer_is_a_heartbeat_too);
	tcase_add_test(t, test_several_come_evenly_up_to_the_deadline);
	tcase_add_test(t, test_they_are_spread_over_half_of_what_is_left);
	tcase_add_test(t, test_the_rate_is_kept_and_the_rest_dropped);
	tcase_add_test(t, test_who_waits_for_a_turn_and_is_heard_is_asked_in_the_next_silence);
	tcase_add_test(t, test_who_waits_for_a_turn_and_is_heard_is_refreshed);
	tcase_add_test(t, test_its_own_probe_is_no_sign_of_a_devices_life);
	tcase_add_test(t, test_nobody_is_asked_while_blind_or_before_silence_counts);
	tcase_add_test(t, test_a_stall_puts_probe_and_deadline_off_alike);
	tcase_add_test(t, test_who_said_goodbye_is_not_asked);
	tcase_add_test(t, test_a_timeout_of_its_own_has_the_same_share);
	tcase_add_test(t, test_a_reload_turns_them_on_and_off);
	tcase_add_test(t, test_who_lives_by_answers_alone_is_asked_each_time);
	tcase_add_test(t, test_the_owner_asks_and_who_takes_over_does_first);
	tcase_add_test(t, test_nobody_is_asked_while_the_store_is_loaded);
	tcase_add_test(t, test_a_group_without_probes_is_looked_at_once_per_timeout);
	suite_add_tcase(s, t);
	return suite_run(s);
}

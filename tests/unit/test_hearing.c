/* SPDX-License-Identifier: MIT */
/* Deaf groups: when the group is silent and not the device, and when the silence is believed all the same. */
#include <time.h>

#include "../suite.h"
#include "core/monitor_priv.h"
#include "hearing_world.h"

static struct world *w;

static void setup(void)
{
	w = hearing_world(10000, true);
	world_connect(w);
	world_pass(w, S);
}

static void teardown(void)
{
	world_free(w);
}

static void beat_all(const char *const *ids)
{
	for (; *ids; ids++)
		world_beat(w, *ids, "");
}

/* They beat every two seconds for so long. */
static void live(int64_t seconds)
{
	for (int64_t k = 0; k < seconds; k += 2) {
		beat_all(fleet);
		world_pass(w, 2 * S);
	}
}

static bool deaf(void)
{
	return hw_monitor_group_is_deaf(w->m, 0);
}

static size_t told(enum hw_out_kind kind)
{
	return world_count(w, kind, 0);
}

static size_t offline(void)
{
	return world_count(w, HW_OUT_TRANSITION, HW_STATE_OFFLINE);
}

/* No message arrives on any heartbeat filter any more; everything else works as before. */
static void lose_right(void)
{
	w->deny = "heartbeat";
}

static const struct hw_out *last_of(enum hw_out_kind kind)
{
	return last_in(w, kind);
}

START_TEST(test_a_real_death_of_all_is_found_in_time)
{
	int64_t at;
	live(20);
	beat_all(fleet);
	int64_t died = w->now.mono.ns;
	world_pass(w, 9900 * MS);
	ck_assert_uint_eq(offline(), 0);
	world_pass(w, 200 * MS);
	ck_assert_uint_eq(offline(), 3);
	world_last(w, &at);
	ck_assert_int_le(at - died, 10 * S + 50 * MS);
	ck_assert_uint_eq(told(HW_OUT_DEAF), 0);
}
END_TEST

/* The device that was silent longest is due while the filter was still heard a moment ago. */
START_TEST(test_a_right_that_is_lost_while_connected)
{
	live(20);
	world_beat(w, "b", "");
	world_pass(w, 6 * S);
	world_beat(w, "a", "");
	world_beat(w, "c", "");
	lose_right();
	world_pass(w, 300 * S);
	ck_assert_uint_eq(offline(), 0);
	ck_assert(deaf());
	ck_assert(!hw_monitor_group_is_deaf(w->m, 1));
	ck_assert_uint_eq(told(HW_OUT_DEAF), 1);
	ck_assert_uint_eq(told(HW_OUT_CANARY_MISSING), 0); /* the missing canaries are reported as deafness instead */
	ck_assert_int_eq(hw_monitor_blindness(w->m).cause, HW_CAUSE_DEAF);
	ck_assert(hw_monitor_blindness(w->m).blind);
	ck_assert(!hw_blind_now(hw_monitor_blind(w->m)));
	ck_assert_int_eq(last_of(HW_OUT_DEAF)->deaf.bound_ns, INT64_MAX);
	ck_assert_str_eq(last_of(HW_OUT_DEAF)->deaf.topic, HEARTBEAT);
}
END_TEST

/* Everybody beats, and nothing of it is heard until after the first device's deadline: however long that was, nobody is
 * called offline by the canary or the heartbeat that comes when the right is back. */
START_TEST(test_a_right_that_is_lost_for_less_than_a_timeout)
{
	static const char *const others[] = {"b", "c", NULL};
	live(20);
	world_beat(w, "a", "");
	world_pass(w, 6 * S);
	beat_all(others);
	lose_right();
	world_pass(w, 4 * S + _i / 2 * 100 * MS);
	w->deny = NULL;
	if (_i % 2)
		world_beat(w, "c", "");
	world_pass(w, S);
	ck_assert_uint_eq(offline(), 0);
	world_pass(w, 5 * S);
	ck_assert_uint_eq(offline(), 0);
	ck_assert_uint_eq(told(HW_OUT_DEAF), 2);
	ck_assert(!deaf());
	ck_assert_int_ge(last_of(HW_OUT_DEAF)->deaf.length_ns, 4 * S);
	world_pass(w, 10 * S);
	ck_assert_uint_eq(offline(), 3);
}
END_TEST

/* The canaries that are under way come back in one batch; returns how many. */
static size_t come_back_together(void)
{
	struct hw_message msgs[8];
	char payload[8][64];
	size_t n = 0;
	for (int k = 0; k < w->n_out && n < 8; k++) {
		if (!w->out[k].topic[0])
			continue;
		int len = snprintf(payload[n], sizeof(payload[n]), "{\"by\":\"w\",\"seq\":%lld,\"canary\":true}",
		                   (long long)w->out[k].seq);
		msgs[n] = (struct hw_message){.topic = w->out[k].topic,
		                              .topic_len = strlen(w->out[k].topic),
		                              .payload = payload[n],
		                              .payload_len = (size_t)len};
		n++;
	}
	ck_assert_uint_eq(hw_monitor_messages(w->m, w->now, msgs, n), n);
	return n;
}

/* A canary of each filter is lost, and the next of both come back together: one deafness of the group is reported,
 * with one begin and one end. */
START_TEST(test_two_filters_are_told_as_one_deafness)
{
	static const char *const others[] = {"b", "c", NULL};
	bool is_told = false;
	w->rtt_ns = 20 * MS;
	live(20);
	world_beat(w, "a", "");
	world_pass(w, 6 * S);
	beat_all(others);
	w->deny = "nodes/";
	world_pass(w, 4100 * MS);
	w->deny = NULL;
	for (int k = 0; k < 2000 && come_back_together() < 2; k++)
		world_pass(w, MS);
	world_pass(w, 3 * S);
	for (size_t k = 0; k < w->n_log; k++) {
		if (w->log[k].kind != HW_OUT_DEAF)
			continue;
		ck_assert(w->log[k].deaf.begun != is_told);
		is_told = w->log[k].deaf.begun;
	}
	ck_assert_uint_eq(told(HW_OUT_DEAF), 2);
	ck_assert(!is_told && !deaf());
}
END_TEST

/* A filter hears again, and a judgement finds that another filter of the group is deaf. If the end of the first
 * deafness has not been reported yet (0), the group stays deaf, and nothing is reported. Otherwise (1) it is news. */
START_TEST(test_a_deafness_in_the_turn_in_which_another_ends_is_no_news)
{
	struct hw_hearing *h = &w->m->hearing;
	struct hw_hearing_group *g = &h->group[0];
	size_t k = g->first, filter;
	int64_t wait_ns;
	live(20);
	lose_right();
	world_pass(w, 15 * S);
	ck_assert(h->filter[k].deaf && g->deaf_filters == 1 && h->filter[k].lost.ns > 0);
	h->filter[k].deaf = false;
	g->deaf_filters = 0;
	h->deaf_groups = 0;
	g->over = _i == 0;
	enum hw_hearing_verdict v =
		hw_hearing_judge(h, &w->m->sight, w->now.mono, 0, h->filter[k].lost, 3, &wait_ns, &filter);
	ck_assert_int_eq(v, _i == 0 ? HW_HEARING_STILL_DEAF : HW_HEARING_DEAF);
	ck_assert(deaf() && !g->over);
}
END_TEST

/* Only the topic of the canaries is lost, and this is reported. The messages of devices still prove that the filter
 * hears. */
START_TEST(test_canaries_that_do_not_come_while_heartbeats_do)
{
	static const char *const others[] = {"b", "c", NULL};
	live(20);
	lose_right();
	for (int k = 0; k < 32; k++) {
		beat_all(others);
		world_pass(w, S / 2);
	}
	ck_assert_uint_eq(offline(), 1);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	ck_assert_uint_eq(told(HW_OUT_DEAF), 0);
	ck_assert_uint_eq(told(HW_OUT_CANARY_MISSING), 1);
	/* And from then on nobody waits for them. */
	int64_t died = w->now.mono.ns, at;
	world_beat(w, "a", "");
	for (int k = 0; k < 120; k++) {
		beat_all(others);
		world_pass(w, 100 * MS);
	}
	ck_assert_uint_eq(offline(), 2);
	world_last(w, &at);
	ck_assert_int_le(at - died, 10 * S + 500 * MS);
}
END_TEST

/* Removes the first canary from what returns; its seq, or -1. */
static int64_t hold_canary(void)
{
	for (int k = 0; k < w->n_out; k++) {
		if (!strstr(w->out[k].topic, "heartbeat"))
			continue;
		int64_t seq = w->out[k].seq;
		memmove(w->out + k, w->out + k + 1, (size_t)(--w->n_out - k) * sizeof(*w->out));
		return seq;
	}
	return -1;
}

START_TEST(test_a_canary_that_is_slower_than_barriers_is_not_lost)
{
	char payload[80];
	int64_t seq = -1;
	live(20);
	w->rtt_ns = 20 * MS;
	beat_all(fleet);
	int64_t died = w->now.mono.ns, at;
	for (int ms = 0; ms < 10100 && seq < 0; ms++) {
		world_pass(w, MS);
		seq = hold_canary();
	}
	ck_assert_int_ge(seq, 0);
	lose_right();
	world_pass(w, 300 * MS);
	w->deny = NULL;
	snprintf(payload, sizeof(payload), "{\"by\":\"w\",\"seq\":%lld,\"canary\":true}", (long long)seq);
	world_say(w, HEARTBEAT, payload, false);
	world_pass(w, S);
	ck_assert_uint_eq(told(HW_OUT_DEAF), 0);
	ck_assert_uint_eq(offline(), 3);
	world_last(w, &at);
	ck_assert_int_le(at - died, 11 * S);
}
END_TEST

/* A group's own timeout decides how often its devices' keys are refreshed while it is deaf. */
START_TEST(test_refreshes_go_on)
{
	live(20);
	lose_right();
	world_pass(w, 30 * S);
	ck_assert(deaf());
	size_t before = told(HW_OUT_REFRESH);
	world_pass(w, 30 * S);
	ck_assert_uint_ge(told(HW_OUT_REFRESH) - before, 6);
	ck_assert_uint_le(told(HW_OUT_REFRESH) - before, 12);
}
END_TEST

START_TEST(test_a_heartbeat_ends_it_and_silence_counts_anew)
{
	live(20);
	lose_right();
	world_pass(w, 100 * S);
	ck_assert(deaf());
	w->deny = NULL;
	uint64_t canaries = w->canaries;
	world_beat(w, "a", "");
	world_pass(w, 100 * MS);
	ck_assert_uint_eq(w->canaries, canaries + 1); /* it was lost, and may be had again */
	world_pass(w, 900 * MS);
	ck_assert(!deaf());
	ck_assert(!last_of(HW_OUT_DEAF)->deaf.begun);
	ck_assert_int_gt(last_of(HW_OUT_DEAF)->deaf.length_ns, 90 * S);
	ck_assert(!hw_monitor_blindness(w->m).blind);
	ck_assert_int_gt(hw_monitor_blindness(w->m).deaf_ns, 90 * S);
	world_pass(w, 8 * S);
	ck_assert_uint_eq(offline(), 0);
	world_pass(w, 5 * S); /* deafness began at the barrier before the last heartbeats */
	ck_assert_uint_eq(offline(), 3);
}
END_TEST

START_TEST(test_all_died_while_it_was_deaf)
{
	live(20);
	lose_right();
	world_pass(w, 100 * S);
	w->deny = NULL;
	world_pass(w, 16 * S);
	ck_assert(!deaf());
	ck_assert_uint_eq(offline(), 3);
}
END_TEST

static void live_on(const char *const *ids, int64_t seconds)
{
	for (int64_t k = 0; k < seconds; k += 2) {
		beat_all(ids);
		world_pass(w, 2 * S);
	}
}

/* Only the canary of a filter is lost (its topic may not be written any more) while another filter brings heartbeats:
 * after a timeout the loss is believed to be the canary's own, and silent devices are offline one timeout later.
 * Devices that send heartbeats stay online. The broker says that it refuses the canary (1), or not (0). */
START_TEST(test_a_lost_canary_does_not_deny_what_other_filters_bring)
{
	static const char *const others[] = {"b", "c", NULL};
	live(_i < 2 ? 4 : 600);
	w->deny = "status";
	w->refuses = _i % 2 == 1;
	live_on(others, 14);
	ck_assert(deaf());
	ck_assert_int_eq(last_of(HW_OUT_DEAF)->deaf.bound_ns, INT64_MAX);
	ck_assert_int_ge(last_of(HW_OUT_DEAF)->deaf.others_ns, 10 * S);
	ck_assert_int_le(last_of(HW_OUT_DEAF)->deaf.others_ns, 20 * S);
	ck_assert_uint_eq(offline(), 0);
	live_on(others, 14);
	ck_assert(!deaf());
	ck_assert_uint_eq(offline(), 0);
	live_on(others, 12);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	ck_assert_uint_eq(offline(), 1);
	/* From then on this canary does not delay a death, nor the death of all devices. */
	live_on(others, 60);
	int64_t died = w->now.mono.ns - 2 * S, at;
	world_pass(w, 13 * S);
	ck_assert_uint_eq(offline(), 3);
	world_last(w, &at);
	ck_assert_int_le(at - died, 11 * S);
	ck_assert_uint_eq(told(HW_OUT_DEAF), 2);
	ck_assert_uint_eq(canaries_had(w), 2); /* the next run need not expect it either, but that of the others */
}
END_TEST

/* The devices send for this long, c on the other filter, if that delivers anything. */
static void live_on_both(const char *const *ids, int64_t seconds, bool c)
{
	for (int64_t k = 0; k < seconds; k += 2) {
		beat_all(ids);
		if (c)
			world_say(w, "nodes/c/status", "{}", false);
		world_pass(w, 2 * S);
	}
}

/* A canary was refused once, and nobody was judged since the right to write was given back. When the right to read is
 * lost for a little more than a timeout, that refusal says nothing of it: the canary that is lost then is missed. */
START_TEST(test_a_refusal_of_the_past_does_not_explain_a_lost_canary)
{
	static const char *const all[] = {"a", "b", NULL}, *const others[] = {"b", NULL};
	live_on_both(all, 20, true);
	w->deny = "heartwheel-w/status";
	w->refuses = true;
	live_on_both(others, 30, true);
	ck_assert_uint_eq(offline(), 1); /* a */
	ck_assert_uint_eq(told(HW_OUT_CANARY_MISSING), 1);
	w->deny = NULL;
	live_on_both(others, 30, true);
	w->deny = "heartwheel-w/status";
	w->refuses = false;
	live_on_both(others, 8, false);
	world_pass(w, _i == 0 ? 300 * MS : 1500 * MS);
	ck_assert_uint_eq(offline(), 1);
	w->deny = NULL;
	live_on_both(others, 20, true);
	ck_assert_uint_eq(offline(), 1);
	ck_assert_uint_eq(told(HW_OUT_DEAF), 2);
	ck_assert(!deaf());
}
END_TEST

/* The broker refuses many canaries with the same reason: it is reported once. */
START_TEST(test_a_refusal_that_lasts_is_told_once)
{
	live_on_both(fleet, 20, true);
	w->deny = "heartwheel-w/status";
	w->refuses = true;
	for (int k = 0; k < 6; k++) {
		static const char *const others[] = {"b", NULL};
		world_beat(w, "a", "");
		live_on_both(others, 14, true);
	}
	ck_assert_uint_eq(told(HW_OUT_CANARY_MISSING), 1);
}
END_TEST

/* The broker has taken the canary, so that it is the right to read that is missing: what else comes bounds nothing. Nor
 * do a few messages of the many that devices which are online would send. */
START_TEST(test_what_other_filters_bring_bounds_nothing)
{
	static const char *const others[] = {"b", "c", NULL}, *const few[] = {NULL};
	live(20);
	w->deny = "status";
	if (_i == 0) {
		for (int k = 0; k < 100; k++) {
			beat_all(others);
			hw_monitor_canary_answer(w->m, 0, 1, HW_CANARY_TAKEN);
			world_pass(w, 2 * S);
		}
	} else {
		live_on(others, 8);
		world_pass(w, 4 * S);
		ck_assert(deaf());
		for (int k = 0; k < 10; k++) {
			live_on(few, 20);
			world_beat(w, "b", "");
		}
	}
	ck_assert(deaf());
	ck_assert_uint_eq(offline(), 0);
	ck_assert_uint_eq(told(HW_OUT_DEAF), 1);
}
END_TEST

/* A filter on which only canaries come was heard ten minutes ago: its deafness goes back to then, but not by so much
 * are deaths found later that happen in it. */
START_TEST(test_deafness_that_is_found_out_late_postpones_by_its_length_alone)
{
	static const char *const others[] = {"b", "c", NULL};
	live(600);
	w->deny = "status";
	live_on(others, 16);
	ck_assert(deaf());
	w->deny = NULL;
	world_pass(w, 6 * S);
	ck_assert(!deaf());
	ck_assert_int_gt(last_of(HW_OUT_DEAF)->deaf.length_ns, 500 * S);
	ck_assert_uint_eq(offline(), 0);
	world_pass(w, 10 * S + S / 2);
	ck_assert_uint_eq(offline(), 3);
}
END_TEST

/* Nothing is brought since the subscription, which lies in the blindness of the start (0) or of a lost link (1); then
 * the monitor stalls. Deafness takes no moment off the group's clock that blindness has taken off the monitor's. */
START_TEST(test_deafness_begins_no_earlier_than_the_clock_of_its_subscription)
{
	struct hw_monitor_conf conf = hearing_conf();
	conf.grace_ms = 5000;
	live(20);
	struct world *v = hearing_world(10000, true);
	ck_assert_int_eq(hw_monitor_reconfigure(v->m, v->now, &conf, groups, 2), 0);
	struct hw_canaries had;
	hw_monitor_canaries(w->m, &had);
	hw_monitor_recall_canaries(v->m, &had);
	hearing_load_fleet(v);
	v->deny = "nodes/";
	world_connect(v);
	if (_i == 1) {
		world_pass(v, 8 * S);
		hw_monitor_link(v->m, v->now, 0, false);
		v->n_out = 0;
		world_pass(v, S);
		hw_monitor_link(v->m, v->now, 0, true);
	}
	int64_t seen_ns = hw_blind_seen(hw_monitor_blind(v->m), v->now.mono).ns;
	world_pass(v, 6 * S);
	v->now.mono.ns += S;
	hw_monitor_stall(v->m, v->now, (struct hw_mono){v->now.mono.ns - S});
	hw_monitor_drained(v->m, v->now);
	world_pass(v, 30 * S);
	ck_assert(hw_monitor_group_is_deaf(v->m, 0));
	ck_assert_int_eq(v->m->hearing.group[0].blind.begun.ns, seen_ns);
	ck_assert_uint_eq(v->m->sight.blind.active, 0);
	world_free(v);
}
END_TEST

/* Time that a deaf period took does not count against a device; the silence that was seen between two deaf periods
 * does. */
START_TEST(test_deafness_that_recurs_postpones_for_ever_nothing)
{
	live(20);
	int k;
	for (k = 0; k < 40 && !offline(); k++) {
		lose_right();
		world_pass(w, 60 * S);
		w->deny = NULL;
		world_pass(w, 6 * S);
		world_beat(w, "a", "");
		world_beat(w, "b", "");
	}
	ck_assert_uint_eq(offline(), 1);
	ck_assert(world_is(w, "c", HW_STATE_OFFLINE));
	ck_assert_int_ge(k, 5); /* of three timeouts at most six seconds each time */
}
END_TEST

START_TEST(test_goodbyes_are_void_while_deaf)
{
	live(20);
	lose_right();
	world_pass(w, 30 * S);
	ck_assert(deaf());
	size_t pending = told(HW_OUT_STATUS);
	world_say(w, "nodes/a/status", "{\"online\":false}", false);
	world_pass(w, 5 * S);
	ck_assert_uint_eq(offline(), 0);
	ck_assert_uint_eq(told(HW_OUT_STATUS), pending + 1);
}
END_TEST

/* The right is lost just after the canary for one device's silence was let through: another's, which is longer than its
 * timeout only when that canary comes back, may be that. */
START_TEST(test_a_canary_proves_only_what_was_sent_before_it)
{
	live(20);
	w->rtt_ns = 200 * MS;
	world_beat(w, "a", "");
	world_pass(w, 100 * MS);
	world_beat(w, "b", "");
	world_beat(w, "c", "");
	uint64_t canaries = w->canaries;
	for (int ms = 0; ms < 9990 && w->canaries == canaries; ms++)
		world_pass(w, MS);
	ck_assert_uint_gt(w->canaries, canaries);
	lose_right();
	world_pass(w, 30 * S);
	ck_assert(deaf());
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	ck_assert_uint_eq(offline(), 1);
}
END_TEST

/* Even if the group hears again before the barriers are back: what its device has said since may not have been heard.
 */
START_TEST(test_a_goodbye_is_void_though_deafness_ends_with_it)
{
	live(20);
	lose_right();
	world_pass(w, 30 * S);
	ck_assert(deaf());
	world_say(w, "nodes/a/status", "{\"online\":false}", false);
	w->deny = NULL;
	world_beat(w, "b", "");
	world_pass(w, 5 * S);
	ck_assert(!deaf());
	ck_assert_uint_eq(offline(), 0);
}
END_TEST

/* Without canaries a goodbye waits for what others bring, which here is seldom. Past their deadlines all who said one
 * are judged by the same message: it shows that the group heard, and that they were silent. */
START_TEST(test_goodbyes_that_only_others_prove_are_judged_together_past_their_deadlines)
{
	static const char *const dead[] = {"a", "b", "c", "d", "e", NULL};
	char topic[32];
	struct world *v = hearing_world(10000, false);
	world_connect(v);
	for (int k = -1; k < 4; k++) {
		world_say(v, "slow/x/heartbeat", "", false);
		for (const char *const *id = dead; k < 1 && *id; id++) {
			snprintf(topic, sizeof(topic), "slow/%s/heartbeat", *id);
			world_say(v, topic, k < 0 ? "" : "{\"online\":false}", false);
		}
		world_pass(v, 4 * S);
		/* of some 4 s of silence; then of 8 s; then of more than their timeout */
		ck_assert_uint_eq(world_count(v, HW_OUT_TRANSITION, HW_STATE_OFFLINE), k < 1 ? 0 : k == 1 ? 1 : 5);
	}
	world_free(v);
}
END_TEST

/* A will comes on a filter that is heard, while the heartbeats of who comes back after it are not. */
START_TEST(test_a_goodbye_is_not_believed_of_a_group_that_does_not_hear)
{
	live(20);
	lose_right();
	world_say(w, "nodes/a/status", "{\"online\":false}", false);
	world_pass(w, 30 * S);
	ck_assert(deaf());
	ck_assert_uint_eq(offline(), 0);
}
END_TEST

START_TEST(test_a_goodbye_is_believed_at_once_otherwise)
{
	live(20);
	w->rtt_ns = 50 * MS;
	world_say(w, "nodes/a/status", "{\"online\":false}", false);
	world_pass(w, S / 2);
	ck_assert_uint_eq(offline(), 1);
	ck_assert_int_eq(world_last(w, NULL)->reason, HW_REASON_WILL);
}
END_TEST

START_TEST(test_one_device_alone_is_judged_by_its_own_silence)
{
	struct world *v = hearing_world(10000, true);
	v->deny = "nodes";
	world_connect(v);
	world_beat(v, "a", "");
	world_pass(v, 15 * S);
	ck_assert(world_is(v, "a", HW_STATE_OFFLINE));
	world_free(v);
}
END_TEST

START_TEST(test_nobody_is_deaf_while_barriers_are_away)
{
	live(20);
	w->swallow = true;
	world_pass(w, 100 * S);
	ck_assert(!deaf());
	ck_assert_uint_eq(told(HW_OUT_CANARY_MISSING), 0);
	hw_monitor_publisher(w->m, w->now, false);
	world_pass(w, 30 * S);
	ck_assert(!deaf());
}
END_TEST

START_TEST(test_lost_with_the_broker)
{
	live(20);
	hw_monitor_link(w->m, w->now, 0, false);
	w->n_out = 0;
	world_pass(w, 5 * S);
	lose_right();
	hw_monitor_link(w->m, w->now, 0, true);
	world_pass(w, 200 * S);
	ck_assert(deaf());
	ck_assert_uint_eq(offline(), 0);
	/* And it stays so over one more connection. */
	hw_monitor_link(w->m, w->now, 0, false);
	w->n_out = 0;
	world_pass(w, 5 * S);
	hw_monitor_link(w->m, w->now, 0, true);
	world_pass(w, 200 * S);
	ck_assert(deaf());
	ck_assert_uint_eq(offline(), 0);
	w->deny = NULL;
	world_pass(w, 30 * S);
	ck_assert_uint_eq(offline(), 3);
}
END_TEST

START_TEST(test_a_reload_ends_it_with_the_filter)
{
	static const char *const other[] = {"nodes/{id}/status"};
	struct hw_monitor_conf conf = hearing_conf();
	live(20);
	lose_right();
	world_pass(w, 30 * S);
	ck_assert(deaf());
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, groups, 2), 0);
	world_pass(w, S);
	ck_assert(deaf());
	groups[0].heartbeat = other;
	groups[0].n_heartbeat = 1;
	uint64_t canaries = w->canaries;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, groups, 2), 0);
	world_pass(w, S);
	ck_assert(!deaf());
	ck_assert_uint_eq(w->canaries, canaries);
	ck_assert(!last_of(HW_OUT_DEAF)->deaf.begun);
	groups[0] = world_group("default", 10000);
	groups[0].canary = true;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, groups, 2), 0);
	world_pass(w, 100 * MS);
	ck_assert_uint_eq(w->canaries, canaries + 1);
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, groups + 1, 1), 0);
	world_pass(w, 100 * S);
	ck_assert(!deaf());
	ck_assert_uint_eq(offline(), 0); /* their group is no longer in the file: they are not judged */
	ck_assert(hw_monitor_count_unjudged(w->m, w->now, 100));
	ck_assert_uint_eq(hw_monitor_unjudged_of(w->m, 0), 3);
	w->deny = NULL;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, groups, 2), 0);
	world_pass(w, 9 * S);
	ck_assert_uint_eq(offline(), 0); /* the timeout starts again */
	world_pass(w, 2 * S);
	ck_assert_uint_eq(offline(), 3);
}
END_TEST

/* A reload renames a deaf group (0), or the right is lost at the reload (1). Nothing is heard that would move the
 * devices to the group that has their filters now. */
START_TEST(test_a_renamed_group_stays_deaf)
{
	struct hw_monitor_conf conf = hearing_conf();
	live(20);
	if (_i == 0) {
		lose_right();
		world_pass(w, 30 * S);
		ck_assert(deaf());
	}
	for (int k = 0; k < 2; k++) {
		groups[0].name = k == 0 ? "renamed" : "again";
		ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, groups, 2), 0);
		lose_right();
		world_pass(w, 60 * S);
		ck_assert(!deaf());
		ck_assert(hw_monitor_group_is_deaf(w->m, 2 + (size_t)k));
		ck_assert_uint_eq(offline(), 0);
	}
	w->deny = NULL;
	world_pass(w, 9 * S);
	ck_assert(!hw_monitor_group_is_deaf(w->m, 3));
	ck_assert_uint_eq(offline(), 0);
	world_beat(w, "a", "");
	ck_assert_str_eq(hw_monitor_group_of(w->m, world_device(w, "a"))->name, "again");
	world_pass(w, 9 * S);
	ck_assert_uint_eq(offline(), 2);
	world_pass(w, 2 * S);
	ck_assert_uint_eq(offline(), 3);
}
END_TEST

/* The first group is renamed, and its old name stands for other filters. */
static void reuse_name(struct hw_group_spec next[2])
{
	static const char *const other[] = {"other/{id}"};
	next[0] = next[1] = groups[0];
	next[1].name = "renamed";
	next[0].heartbeat = other;
	next[0].n_heartbeat = 1;
}

/* The next reload uses the old name for other filters, while the devices are still of it. */
START_TEST(test_the_name_of_a_renamed_group_is_used_again)
{
	struct hw_monitor_conf conf = hearing_conf();
	struct hw_group_spec next[2];
	reuse_name(next);
	live(20);
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, next + 1, 1), 0);
	world_pass(w, S);
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, next, 2), 0);
	lose_right();
	world_pass(w, 60 * S);
	ck_assert_uint_eq(offline(), 0);
	w->deny = NULL;
	world_pass(w, 60 * S);
	ck_assert_uint_eq(offline(), 3);
}
END_TEST

/* The group is deaf, so its clock stands. A reload gives its name to other filters, and its filters to another name. */
START_TEST(test_the_name_of_a_deaf_group_is_used_again)
{
	struct hw_monitor_conf conf = hearing_conf();
	struct hw_group_spec next[2];
	reuse_name(next);
	live(20);
	lose_right();
	world_pass(w, 30 * S);
	ck_assert(deaf());
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, next, 2), 0);
	lose_right();
	world_pass(w, 60 * S);
	ck_assert(!deaf());
	ck_assert_uint_eq(offline(), 0);
}
END_TEST

/* A reload gives a filter to a later group, which hears nothing: it is deaf (0), or its upstream is away (1). */
START_TEST(test_a_filter_goes_to_a_group_that_does_not_hear)
{
	static const char *const keeps[] = {"nodes/{id}/status"}, *const gives[] = {"nodes/{id}/heartbeat"};
	static const char *const whiles[] = {"$SYS/bridge on"};
	struct hw_monitor_conf conf = hearing_conf();
	struct hw_group_spec next[] = {groups[0], groups[1]};
	next[0].heartbeat = keeps;
	next[1].heartbeat = gives;
	next[0].n_heartbeat = next[1].n_heartbeat = 1;
	next[1].whiles = whiles;
	next[1].n_whiles = _i == 1;
	live(20);
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, next, 2), 0);
	if (_i == 0)
		lose_right();
	world_say(w, "$SYS/bridge", "off", false);
	world_say(w, "nodes/d/status", "up", false); /* its group's own filter brings it */
	world_pass(w, 60 * S);
	ck_assert(world_is(w, "d", HW_STATE_OFFLINE));
	ck_assert_uint_eq(offline(), 1);
	ck_assert(hw_monitor_blindness(w->m).blind);
	w->deny = NULL;
	world_say(w, "$SYS/bridge", "on", false);
	world_pass(w, 9 * S);
	ck_assert_uint_eq(offline(), 1);
	world_beat(w, "a", "");
	ck_assert_str_eq(hw_monitor_group_of(w->m, world_device(w, "a"))->name, "slow");
	world_pass(w, 60 * S);
	ck_assert_uint_eq(offline(), 4);
}
END_TEST

/* Its clock is another than that of the group that it comes from. */
START_TEST(test_a_device_that_moves_takes_its_silence_along)
{
	struct hw_monitor_conf conf = hearing_conf();
	live(20);
	lose_right();
	world_pass(w, 500 * S);
	ck_assert(deaf());
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, groups + 1, 1), 0);
	w->deny = NULL;
	world_say(w, "slow/a/heartbeat", "", false);
	world_say(w, "slow/b/heartbeat", "", false);
	world_pass(w, 9 * S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	world_pass(w, 2 * S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
}
END_TEST

START_TEST(test_another_monitors_canary_is_no_proof_of_time)
{
	live(20);
	lose_right();
	world_pass(w, 30 * S);
	ck_assert(deaf());
	world_say(w, HEARTBEAT, "{\"by\":\"w\",\"seq\":7,\"canary\":true}", true);
	world_pass(w, S);
	ck_assert(deaf());
	world_say(w, "nodes/other/heartbeat", "{\"by\":\"other\",\"seq\":7,\"canary\":true}", false);
	world_pass(w, S);
	ck_assert(deaf());
	world_say(w, HEARTBEAT, "{\"by\":\"w\",\"seq\":7,\"canary\":true}", false);
	world_pass(w, S);
	ck_assert(!deaf());
}
END_TEST

/* A group is deaf, and its upstream is away. The end of one of the two does not end its blindness: the upstream is back
 * first (0), or the right to read (1). */
START_TEST(test_a_group_that_is_blind_for_two_causes)
{
	static const char *const whiles[] = {"$SYS/bridge on"};
	struct hw_monitor_conf conf = hearing_conf();
	groups[0].whiles = whiles;
	groups[0].n_whiles = 1;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, groups, 2), 0);
	world_say(w, "$SYS/bridge", "on", false);
	live(20);
	lose_right();
	world_pass(w, 30 * S);
	ck_assert(deaf());
	world_say(w, "$SYS/bridge", "off", false);
	world_pass(w, S);
	if (_i == 0)
		world_say(w, "$SYS/bridge", "on", false);
	else
		w->deny = NULL;
	world_pass(w, 20 * S);
	ck_assert(deaf() == (_i == 0));
	ck_assert(hw_monitor_blindness(w->m).blind);
	ck_assert_int_eq(_i == 0 ? last_of(HW_OUT_UPSTREAM)->upstream.length_ns : last_of(HW_OUT_DEAF)->deaf.length_ns,
	                 -1);
	world_say(w, "$SYS/bridge", "on", false);
	w->deny = NULL;
	world_pass(w, 20 * S);
	ck_assert(!hw_monitor_blindness(w->m).blind);
	ck_assert_int_gt(_i == 0 ? last_of(HW_OUT_DEAF)->deaf.length_ns : last_of(HW_OUT_UPSTREAM)->upstream.length_ns,
	                 20 * S);
}
END_TEST

/* The upstream of a group is away: its devices are not judged, and goodbyes do not count. When the upstream is back and
 * the grace has passed, their timeouts start again. Another group is judged as before. */
START_TEST(test_an_upstream_that_is_away)
{
	static const char *const whiles[] = {"$SYS/bridge on", "hub health.up=true"};
	struct hw_monitor_conf conf = hearing_conf();
	conf.grace_ms = 3000;
	groups[0].whiles = whiles;
	groups[0].n_whiles = 2;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, groups, 2), 0);
	ck_assert_str_eq(hw_monitor_group_unknown(w->m, 0)->topic, "$SYS/bridge");
	live(20);
	world_say(w, "slow/x/heartbeat", "", false);
	world_say(w, "$SYS/bridge", _i == 0 ? "off" : "{\"state\":\"off\"}", _i == 1);
	world_say(w, "hub", "{\"health\":{\"up\":true}}", false);
	ck_assert(!hw_monitor_group_unknown(w->m, 0));
	ck_assert_uint_eq(told(HW_OUT_UPSTREAM), 1);
	ck_assert_int_eq(last_of(HW_OUT_UPSTREAM)->upstream.index, 0);
	ck_assert_int_eq(hw_monitor_blindness(w->m).cause, HW_CAUSE_UPSTREAM);
	ck_assert_str_eq(hw_monitor_group_upstream(w->m, 0)->value, "on");
	world_say(w, "nodes/a/status", "{\"online\":false}", false);
	world_pass(w, 60 * S);
	ck_assert_uint_eq(offline(), 1); /* x, of the other group */
	ck_assert(world_is(w, "x", HW_STATE_OFFLINE));
	ck_assert(!deaf());
	/* A reload keeps the last value. */
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, groups, 2), 0);
	world_pass(w, S);
	ck_assert(hw_monitor_blindness(w->m).blind);
	world_say(w, "$SYS/bridge", _i == 0 ? "on" : "{\"state\":\"on\"}", false);
	world_pass(w, 2900 * MS);
	ck_assert(hw_monitor_blindness(w->m).blind);
	world_pass(w, 200 * MS);
	ck_assert(!hw_monitor_blindness(w->m).blind);
	ck_assert(!last_of(HW_OUT_UPSTREAM)->upstream.begun);
	ck_assert_int_ge(last_of(HW_OUT_UPSTREAM)->upstream.length_ns, 63 * S);
	ck_assert_int_ge(hw_monitor_blindness(w->m).upstream_ns, 63 * S);
	world_pass(w, 9 * S);
	ck_assert_uint_eq(offline(), 1);
	world_pass(w, 2 * S);
	ck_assert_uint_eq(offline(), 4);
	/* A reload takes it away. */
	beat_all(fleet);
	world_say(w, "hub", "{\"health\":{\"up\":false}}", false);
	ck_assert_int_eq(last_of(HW_OUT_UPSTREAM)->upstream.index, 1);
	groups[0].n_whiles = 0;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, groups, 2), 0);
	world_pass(w, 100 * MS);
	ck_assert(!hw_monitor_blindness(w->m).blind);
	ck_assert_uint_eq(told(HW_OUT_UPSTREAM), 4);
}
END_TEST

/* A reload renames a group while its upstream is away (0), or it goes away after the reload (1). The devices are still
 * those of the old name, and its filters are those of the new one. */
START_TEST(test_an_upstream_of_a_renamed_group)
{
	static const char *const whiles[] = {"$SYS/bridge on"};
	struct hw_monitor_conf conf = hearing_conf();
	conf.grace_ms = 3000;
	groups[0].whiles = whiles;
	groups[0].n_whiles = 1;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, groups, 2), 0);
	live(20);
	world_say(w, "$SYS/bridge", _i == 0 ? "off" : "on", false);
	world_pass(w, S);
	groups[0].name = "renamed";
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, groups, 2), 0);
	world_pass(w, S);
	world_say(w, "$SYS/bridge", "off", false);
	world_pass(w, 60 * S);
	ck_assert_uint_eq(offline(), 0);
	ck_assert_str_eq(hw_monitor_group_upstream(w->m, 2)->value, "on");
	world_say(w, "nodes/a/heartbeat", "", false); /* the device is one of the new group from now on */
	world_pass(w, 60 * S);
	ck_assert_uint_eq(offline(), 0);
	world_say(w, "$SYS/bridge", "on", false);
	world_pass(w, 12 * S);
	ck_assert_uint_eq(offline(), 0); /* the grace and the timeout */
	world_pass(w, 3 * S);
	ck_assert_uint_eq(offline(), 3);
	ck_assert(!hw_monitor_blindness(w->m).blind);
}
END_TEST

/* Without an index, every message would be compared with all topics. */
START_TEST(test_many_upstreams)
{
	enum { MANY = 40 };
	static char topics[MANY][24];
	const char *whiles[MANY];
	struct hw_monitor_conf conf = hearing_conf();
	for (int k = 0; k < MANY; k++) {
		snprintf(topics[k], sizeof(topics[k]), "up/%d on", k);
		whiles[k] = topics[k];
	}
	groups[0].whiles = whiles;
	groups[0].n_whiles = MANY;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, groups, 2), 0);
	world_say(w, "up/39", "off", false);
	ck_assert_int_eq(last_of(HW_OUT_UPSTREAM)->upstream.index, 39);
	world_say(w, "up/3", "off", false);
	world_say(w, "up/39", "on", false);
	ck_assert_str_eq(hw_monitor_group_upstream(w->m, 0)->topic, "up/3");
	world_say(w, "up/3", "on", false);
	world_pass(w, 100 * MS);
	ck_assert(!hw_monitor_blindness(w->m).blind);
}
END_TEST

static void say_from(unsigned source, const char *topic, const char *payload)
{
	struct hw_message msg = {.topic = topic,
	                         .topic_len = strlen(topic),
	                         .payload = payload,
	                         .payload_len = strlen(payload),
	                         .source = source};
	ck_assert_uint_eq(hw_monitor_messages(w->m, w->now, &msg, 1), 1);
	world_drain(w);
}

/* The topic matches a group's filter, too, so another source delivers it, perhaps an older value later. */
START_TEST(test_a_value_of_an_upstream_from_another_source)
{
	static const char *const whiles[] = {"slow/hub/heartbeat on"};
	struct hw_monitor_conf conf = hearing_conf();
	groups[0].whiles = whiles;
	groups[0].n_whiles = 1;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, groups, 2), 0);
	say_from(0, "slow/hub/heartbeat", "on");
	say_from(1, "slow/hub/heartbeat", "off");
	ck_assert_uint_eq(told(HW_OUT_UPSTREAM), 0);
	ck_assert(world_is(w, "hub", HW_STATE_ONLINE));
	say_from(0, "slow/hub/heartbeat", "off");
	say_from(1, "slow/hub/heartbeat", "on");
	ck_assert_int_eq(hw_monitor_blindness(w->m).cause, HW_CAUSE_UPSTREAM);
}
END_TEST

/* The member may stand behind many others. */
START_TEST(test_a_long_value_of_an_upstream)
{
	static const char *const whiles[] = {"hub on"};
	static char text[60000];
	struct hw_monitor_conf conf = hearing_conf();
	int n = snprintf(text, sizeof(text), "{\"devices\":[");
	while (n < 50000)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%d,", n);
	snprintf(text + n, sizeof(text) - (size_t)n, "0],\"state\":\"on\"}");
	groups[0].whiles = whiles;
	groups[0].n_whiles = 1;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, groups, 2), 0);
	world_say(w, "hub", text, false);
	ck_assert_uint_eq(told(HW_OUT_UPSTREAM), 0);
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, groups, 2), 0);
	ck_assert_uint_eq(told(HW_OUT_UPSTREAM), 0);
}
END_TEST

/* A gateway that is back says which devices it has lost: that counts when the grace is over, unless the device is heard
 * after it. Of a bridge ($SYS), what comes with the retain flag then is history. */
START_TEST(test_a_goodbye_in_the_grace_of_an_upstream)
{
	static const char *const gateway[] = {"hub on"}, *const bridge[] = {"$SYS/bridge on"};
	struct hw_monitor_conf conf = hearing_conf();
	conf.grace_ms = 3000;
	conf.as_published = true;
	groups[0].whiles = _i == 0 ? gateway : bridge;
	groups[0].n_whiles = 1;
	groups[0].timeout_ms = 3600000;
	const char *topic = _i == 0 ? "hub" : "$SYS/bridge";
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, groups, 2), 0);
	world_say(w, topic, "on", false);
	world_pass(w, 10 * S);
	static const char *const ids[] = {"a", "b", "c", "d"};
	for (int k = 0; k < 4; k++)
		world_beat(w, ids[k], "");
	world_say(w, topic, "off", false);
	world_pass(w, S);
	world_say(w, "nodes/d/status", "{\"online\":false}", false);
	world_say(w, topic, "on", false);
	world_pass(w, S);
	uint64_t pending = world_count(w, HW_OUT_STATUS, 0);
	world_say(w, "nodes/a/status", "{\"online\":false}", true);
	ck_assert_uint_eq(world_count(w, HW_OUT_STATUS, 0), pending + (_i == 1));
	world_say(w, "nodes/b/status", "{\"online\":false}", false);
	world_say(w, "nodes/c/status", "{\"online\":false}", true);
	world_say(w, "nodes/c/status", "{\"online\":false}", false);
	world_pass(w, S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE) && world_is(w, "b", HW_STATE_ONLINE));
	world_beat(w, "c", "");
	world_pass(w, 900 * MS);
	ck_assert(world_is(w, "b", HW_STATE_ONLINE));
	world_pass(w, 5 * S);
	ck_assert(world_is(w, "a", _i == 0 ? HW_STATE_OFFLINE : HW_STATE_ONLINE));
	ck_assert(world_is(w, "b", HW_STATE_OFFLINE));
	ck_assert(world_is(w, "c", HW_STATE_ONLINE) && world_is(w, "d", HW_STATE_ONLINE));
}
END_TEST

/* A broker that stops publishes its clients' wills before its bridge's state changes. A will counts after two seconds
 * if the bridge's state does not change in them. */
START_TEST(test_a_goodbye_just_before_its_upstream_is_away)
{
	static const char *const bridge[] = {"$SYS/bridge on"};
	struct hw_monitor_conf conf = hearing_conf();
	conf.as_published = true;
	groups[0].whiles = bridge;
	groups[0].n_whiles = 1;
	groups[0].timeout_ms = 60000;
	conf.grace_ms = _i == 0 ? 3000 : 0;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, groups, 2), 0);
	world_say(w, "$SYS/bridge", "on", false);
	world_pass(w, 10 * S);
	static const char *const ids[] = {"a", "b", "c"};
	for (int k = 0; k < 3; k++)
		world_beat(w, ids[k], "");
	world_pass(w, S);
	for (int k = 0; k < 2; k++) {
		char topic[32];
		snprintf(topic, sizeof(topic), "nodes/%s/status", ids[k]);
		world_say(w, topic, "{\"online\":false}", _i == 0);
	}
	world_pass(w, 1500 * MS);
	world_say(w, "$SYS/bridge", "off", false);
	world_pass(w, 400 * MS);
	world_say(w, "$SYS/bridge", "on", false); /* before the hold is over */
	world_pass(w, 10 * S);
	ck_assert(!hw_monitor_blindness(w->m).blind);
	ck_assert_uint_eq(offline(), 0);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->goodbyes_void, 2);
	world_beat(w, "a", "");
	world_beat(w, "c", "");
	world_say(w, "nodes/c/status", "{\"online\":false}", false);
	world_pass(w, 1900 * MS);
	ck_assert_uint_eq(offline(), 0);
	world_pass(w, 300 * MS);
	ck_assert_uint_eq(offline(), 1);
	ck_assert(world_is(w, "c", HW_STATE_OFFLINE));
	world_pass(w, 52 * S); /* b died with its broker */
	ck_assert(world_is(w, "b", HW_STATE_OFFLINE));
	ck_assert_int_eq(world_last(w, NULL)->reason, HW_REASON_TIMEOUT);
}
END_TEST

/* After the retained values were requested, a value that the broker does not have any more is unknown. */
START_TEST(test_a_value_that_does_not_come_again)
{
	static const char *const whiles[] = {"hub on", "hub2 on"};
	struct hw_monitor_conf conf = hearing_conf();
	groups[0].whiles = whiles;
	groups[0].n_whiles = 2;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, groups, 2), 0);
	world_pass(w, 10 * S);
	world_say(w, "hub", "off", false);
	world_say(w, "hub2", "on", false);
	world_pass(w, 10 * S);
	hw_monitor_upstreams_asked(w->m);
	world_pass(w, 10 * S);
	ck_assert_ptr_nonnull(hw_monitor_group_upstream(w->m, 0)); /* not granted yet */
	hw_monitor_upstreams_granted(w->m, false);
	ck_assert_ptr_nonnull(hw_monitor_group_upstream(w->m, 0));
	world_say(w, "hub2", "on", true);
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, groups, 2), 0);
	world_pass(w, 10 * S);
	ck_assert_ptr_null(hw_monitor_group_upstream(w->m, 0));
	ck_assert_str_eq(hw_monitor_group_unknown(w->m, 0)->topic, "hub");
	/* One that comes again is what it was. */
	world_say(w, "hub", "off", false);
	hw_monitor_upstreams_asked(w->m);
	world_say(w, "hub", "off", true);
	hw_monitor_upstreams_granted(w->m, false);
	world_pass(w, 10 * S);
	ck_assert_str_eq(hw_monitor_group_upstream(w->m, 0)->topic, "hub");
	ck_assert_ptr_nonnull(hw_monitor_group_unknown(w->m, 0));
}
END_TEST

/* A renewal with the barriers after it. `answer` NULL: the broker does not send the value. */
static void renew(const char *answer)
{
	ck_assert(hw_monitor_renew_upstreams(w->m, true));
	ck_assert(!hw_monitor_renew_upstreams(w->m, true));
	if (answer)
		world_say(w, "hub", answer, true);
	hw_monitor_upstreams_granted(w->m, true);
	world_pass(w, 10 * S);
}

static const char *away(void)
{
	const struct hw_while *x = hw_monitor_group_upstream(w->m, 0);
	return x ? x->topic : "";
}

static void hub(void)
{
	static const char *const whiles[] = {"hub on"};
	struct hw_monitor_conf conf = hearing_conf();
	ck_assert(!hw_monitor_renew_upstreams(w->m, true)); /* no topic */
	groups[0].whiles = whiles;
	groups[0].n_whiles = 1;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, groups, 2), 0);
	hw_monitor_upstreams_granted(w->m, false);
	world_pass(w, 10 * S);
}

/* A broker that has sent a value at a renewal, and does not send it at two: this monitor may not read it any more. */
START_TEST(test_a_value_that_two_renewals_do_not_bring)
{
	hub();
	world_say(w, "hub", "off", true);
	renew("off");
	for (int i = 0; i < 3; i++) { /* one renewal without it is not enough */
		renew(NULL);
		ck_assert_str_eq(away(), "hub");
		ck_assert_uint_eq(told(HW_OUT_WHILE_UNKNOWN), 0);
		if (i == 0)
			world_say(w, "hub", "off", true); /* late: its broker is slow */
		else if (i == 1)
			renew("off");
	}
	renew(NULL);
	ck_assert_str_eq(away(), "");
	ck_assert_uint_eq(told(HW_OUT_WHILE_UNKNOWN), 1);
	ck_assert_uint_eq(last_of(HW_OUT_WHILE_UNKNOWN)->upstream.index, 0);
	ck_assert_str_eq(hw_monitor_group_unknown(w->m, 0)->topic, "hub");
	renew(NULL);
	ck_assert_uint_eq(told(HW_OUT_WHILE_UNKNOWN), 1);
	renew("off"); /* the right is back */
	ck_assert_str_eq(away(), "hub");
	renew("on");
	world_pass(w, 60 * S);
	ck_assert_str_eq(away(), "");
	ck_assert_ptr_null(hw_monitor_group_unknown(w->m, 0));
}
END_TEST

/* If a broker sends no value at renewals, the monitor keeps the value of the last message. After a lost connection, a
 * value that does not arrive again is unknown. */
START_TEST(test_a_broker_that_sends_no_value_at_renewals)
{
	hub();
	world_say(w, "hub", "off", _i);
	for (int i = 0; i < 5; i++) {
		renew(NULL);
		ck_assert_str_eq(away(), "hub");
	}
	ck_assert_uint_eq(told(HW_OUT_WHILE_UNKNOWN), 0);
	hw_monitor_upstreams_asked(w->m);
	hw_monitor_upstreams_granted(w->m, true); /* of the connection before */
	world_pass(w, 10 * S);
	ck_assert_str_eq(away(), "hub");
	hw_monitor_upstreams_granted(w->m, false);
	world_pass(w, 10 * S);
	ck_assert_str_eq(away(), "");
	ck_assert_uint_eq(told(HW_OUT_WHILE_UNKNOWN), 1);
}
END_TEST

/* The broker still retains an older value than the one that was published without the retain flag. */
START_TEST(test_a_renewal_does_not_bring_an_older_value_back)
{
	hub();
	world_say(w, "hub", "on", true);
	renew("on");
	world_say(w, "hub", "off", false);
	for (int i = 0; i < 3; i++) {
		renew("on");
		ck_assert_str_eq(away(), "hub");
	}
	world_say(w, "hub", "off", true);
	renew("on");
	world_pass(w, 60 * S);
	ck_assert_str_eq(away(), "");
}
END_TEST

/* Some brokers send the retained value, which was read before, after a newer message. Then a renewal follows soon. */
START_TEST(test_a_renewal_that_brings_the_value_from_before_a_change)
{
	hub();
	world_say(w, "hub", "on", true);
	renew("on");
	ck_assert(!hw_monitor_renew_upstreams(w->m, false));
	ck_assert(hw_monitor_renew_upstreams(w->m, true));
	world_say(w, "hub", "off", _i);
	world_say(w, "hub", "on", true);
	hw_monitor_upstreams_granted(w->m, true);
	world_pass(w, 10 * S);
	ck_assert(hw_monitor_renew_upstreams(w->m, false));
	world_say(w, "hub", "off", true);
	hw_monitor_upstreams_granted(w->m, true);
	world_pass(w, 10 * S);
	ck_assert_str_eq(away(), "hub");
	ck_assert(!hw_monitor_renew_upstreams(w->m, false));
}
END_TEST

/* The topic is a device's own, whose value is retained. The late answer to a renewal is no heartbeat. */
START_TEST(test_a_late_answer_to_a_renewal_is_no_heartbeat)
{
	static const char *const whiles[] = {"nodes/g/heartbeat on"};
	struct hw_monitor_conf conf = hearing_conf();
	conf.as_published = true;
	groups[0].whiles = whiles;
	groups[0].n_whiles = 1;
	groups[0].retained = true;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, groups, 2), 0);
	hw_monitor_upstreams_granted(w->m, false);
	world_pass(w, 10 * S);
	world_say(w, "nodes/g/heartbeat", "on", true);
	ck_assert(hw_monitor_renew_upstreams(w->m, true));
	world_say(w, "nodes/g/heartbeat", "on", true);
	hw_monitor_upstreams_granted(w->m, true);
	for (int i = 0; i < 60; i++) {
		world_beat(w, "other", "");
		world_pass(w, S);
	}
	ck_assert(world_is(w, "g", HW_STATE_OFFLINE));
	ck_assert(hw_monitor_renew_upstreams(w->m, true));
	hw_monitor_upstreams_granted(w->m, true);
	for (int i = 0; i < 10; i++) {
		world_beat(w, "other", "");
		world_pass(w, S);
	}
	world_say(w, "nodes/g/heartbeat", "on", true);
	ck_assert(world_is(w, "g", HW_STATE_OFFLINE));
	world_say(w, "nodes/g/heartbeat", "on", true);
	ck_assert(world_is(w, "g", HW_STATE_ONLINE));
}
END_TEST

#define MANY_GROUPS  1000
#define MANY_FILTERS 20 /* of each */

static struct hw_group_spec many_groups[MANY_GROUPS];
static char many_names[2][MANY_GROUPS][16], many_texts[MANY_GROUPS][MANY_FILTERS][40];
static const char *many_filters[MANY_GROUPS][MANY_FILTERS];

static void name_many(int of)
{
	for (int g = 0; g < MANY_GROUPS; g++) {
		for (int k = 0; k < MANY_FILTERS; k++) {
			snprintf(many_texts[g][k], sizeof(many_texts[g][k]), "s%d/t%d/{id}", g, k);
			many_filters[g][k] = many_texts[g][k];
		}
		snprintf(many_names[of][g], sizeof(many_names[of][g]), "%c%d", "ab"[of], g);
		many_groups[g] = (struct hw_group_spec){.name = many_names[of][g],
		                                        .heartbeat = many_filters[g],
		                                        .n_heartbeat = MANY_FILTERS,
		                                        .timeout_ms = 10000,
		                                        .timeout_max_ms = 10000,
		                                        .canary = true};
	}
}

/* No filter of a renamed group is in the old table with its group. A search for each one through the whole table took
 * seconds; a reload of as many groups with nothing renamed shows what the rest of a reload takes. */
START_TEST(test_a_reload_that_renames_many_groups_is_not_slow)
{
	double took_s[2];
	struct hw_monitor_conf conf = world_conf();
	conf.node = "m";
	conf.canaries = true;
	name_many(0);
	struct world *one = world_new(&conf, many_groups, MANY_GROUPS);
	for (int of = 0; of < 2; of++) {
		name_many(of);
		clock_t began = clock();
		ck_assert_int_eq(hw_monitor_reconfigure(one->m, one->now, &conf, many_groups, MANY_GROUPS), 0);
		took_s[of] = (double)(clock() - began) / CLOCKS_PER_SEC;
	}
	ck_assert_msg(took_s[1] < 6 * took_s[0], "%f s, otherwise %f s", took_s[1], took_s[0]);
	world_free(one);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hearing");
	TCase *tc = tcase_create("hearing");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, test_a_real_death_of_all_is_found_in_time);
	tcase_add_test(tc, test_a_right_that_is_lost_while_connected);
	tcase_add_loop_test(tc, test_a_right_that_is_lost_for_less_than_a_timeout, 0, 80);
	tcase_add_test(tc, test_two_filters_are_told_as_one_deafness);
	tcase_add_loop_test(tc, test_a_deafness_in_the_turn_in_which_another_ends_is_no_news, 0, 2);
	tcase_add_test(tc, test_canaries_that_do_not_come_while_heartbeats_do);
	tcase_add_test(tc, test_a_canary_that_is_slower_than_barriers_is_not_lost);
	tcase_add_test(tc, test_refreshes_go_on);
	tcase_add_test(tc, test_a_heartbeat_ends_it_and_silence_counts_anew);
	tcase_add_test(tc, test_all_died_while_it_was_deaf);
	tcase_add_test(tc, test_deafness_that_is_found_out_late_postpones_by_its_length_alone);
	tcase_add_loop_test(tc, test_a_lost_canary_does_not_deny_what_other_filters_bring, 0, 4);
	tcase_add_loop_test(tc, test_what_other_filters_bring_bounds_nothing, 0, 2);
	tcase_add_loop_test(tc, test_a_refusal_of_the_past_does_not_explain_a_lost_canary, 0, 2);
	tcase_add_test(tc, test_a_refusal_that_lasts_is_told_once);
	tcase_add_loop_test(tc, test_an_upstream_that_is_away, 0, 2);
	tcase_add_loop_test(tc, test_a_group_that_is_blind_for_two_causes, 0, 2);
	tcase_add_loop_test(tc, test_an_upstream_of_a_renamed_group, 0, 2);
	tcase_add_test(tc, test_many_upstreams);
	tcase_add_test(tc, test_a_value_of_an_upstream_from_another_source);
	tcase_add_test(tc, test_a_long_value_of_an_upstream);
	tcase_add_test(tc, test_a_value_that_does_not_come_again);
	tcase_add_test(tc, test_a_value_that_two_renewals_do_not_bring);
	tcase_add_loop_test(tc, test_a_broker_that_sends_no_value_at_renewals, 0, 2);
	tcase_add_test(tc, test_a_renewal_does_not_bring_an_older_value_back);
	tcase_add_loop_test(tc, test_a_renewal_that_brings_the_value_from_before_a_change, 0, 2);
	tcase_add_test(tc, test_a_late_answer_to_a_renewal_is_no_heartbeat);
	tcase_add_loop_test(tc, test_a_goodbye_in_the_grace_of_an_upstream, 0, 2);
	tcase_add_loop_test(tc, test_a_goodbye_just_before_its_upstream_is_away, 0, 2);
	tcase_add_loop_test(tc, test_deafness_begins_no_earlier_than_the_clock_of_its_subscription, 0, 2);
	tcase_add_test(tc, test_deafness_that_recurs_postpones_for_ever_nothing);
	tcase_add_test(tc, test_goodbyes_are_void_while_deaf);
	tcase_add_test(tc, test_a_goodbye_is_void_though_deafness_ends_with_it);
	tcase_add_test(tc, test_a_canary_proves_only_what_was_sent_before_it);
	tcase_add_test(tc, test_goodbyes_that_only_others_prove_are_judged_together_past_their_deadlines);
	tcase_add_test(tc, test_a_goodbye_is_not_believed_of_a_group_that_does_not_hear);
	tcase_add_test(tc, test_a_goodbye_is_believed_at_once_otherwise);
	tcase_add_test(tc, test_one_device_alone_is_judged_by_its_own_silence);
	tcase_add_test(tc, test_nobody_is_deaf_while_barriers_are_away);
	tcase_add_test(tc, test_lost_with_the_broker);
	tcase_add_test(tc, test_a_reload_ends_it_with_the_filter);
	tcase_add_loop_test(tc, test_a_renamed_group_stays_deaf, 0, 2);
	tcase_add_test(tc, test_the_name_of_a_renamed_group_is_used_again);
	tcase_add_test(tc, test_the_name_of_a_deaf_group_is_used_again);
	tcase_add_loop_test(tc, test_a_filter_goes_to_a_group_that_does_not_hear, 0, 2);
	tcase_add_test(tc, test_a_device_that_moves_takes_its_silence_along);
	tcase_add_test(tc, test_another_monitors_canary_is_no_proof_of_time);
	tcase_add_test(tc, test_a_reload_that_renames_many_groups_is_not_slow);
	tcase_set_timeout(tc, 60);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

/* SPDX-License-Identifier: MIT */
/*
 * The state machine with all events that can happen: heartbeats, goodbyes, barriers (late, lost, doubled, with a number
 * that was never sent), every cause of blindness, sources that come and go, loss of the publisher, reloads, loads,
 * forgetting, any budget. A twin writes down what was put in and when, keeps a seeing clock as a list of what was
 * blind, and holds every transition against the rules:
 *
 *   - nobody goes offline before min(max(last seen, lossy end) + timeout, last seen + 3 x timeout), nor while blind,
 * nor without two barriers that were sent after that (or after the goodbye) and are back on every reader;
 *   - a goodbye that a heartbeat followed, or blindness touched, takes nobody offline;
 *   - the monitor is blind while a link is down, through the grace after it, and from a stall until all is drained;
 *   - each transition changes the state, and seq grows;
 *   - in quiet times, a silent device is judged at most a tick and a pair of barriers after the deadline;
 *   - until the moment that hw_monitor_due() names there is nothing to do, and then there is;
 *   - who is asked (probes) is online, silent for long enough, and before its deadline, no more often than its group
 *     says, nor faster than probe_rate; in quiet, everybody is; what it answers counts while its silence lasts;
 *   - the counts agree with a walk.
 *
 * The seed is printed; HW_SEED sets it.
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../suite.h"
#include "twin_monitor.h"

#define ROUNDS 1000
#define STEPS  300

/* --- time passes ------------------------------------------------------------- */

static void set_time(int64_t ns)
{
	t.now.wall_ms += ns / MS - t.now.mono.ns / MS;
	t.now.mono.ns = ns;
}

static int next_back(void)
{
	int k = -1;
	for (int i = 0; i < t.n_waiting; i++)
		if (k < 0 || t.waiting[i].at < t.waiting[k].at)
			k = i;
	return k;
}

static void barrier_back(int k)
{
	uint64_t number = t.waiting[k].number;
	unsigned r = t.waiting[k].source;
	t.waiting[k] = t.waiting[--t.n_waiting];
	if (t.up[r] && number > t.back[r])
		t.back[r] = number;
	hw_monitor_barrier(t.m, t.now, r, number);
	watch();
}

/* No output may come before the time that hw_monitor_due() named. */
static void look_in_between(int64_t until)
{
	struct hw_out out;
	unsigned budget = 64;
	if (until - t.now.mono.ns < 2 || !one_in(4))
		return;
	set_time(one_in(2) ? until - 1 : t.now.mono.ns + 1 + below(until - t.now.mono.ns - 1));
	MUST(!hw_monitor_next(t.m, t.now, &budget, &out));
	watch();
	check_blind();
}

static void pass(int64_t ns)
{
	int64_t end = t.now.mono.ns + ns;
	int still = 0;
	for (;;) {
		uint64_t before = t.outs;
		drain();
		struct hw_mono due;
		int64_t next = end;
		int k = next_back();
		bool any = hw_monitor_due(t.m, t.now, &due);
		if (any && due.ns < next)
			next = due.ns;
		if (k >= 0 && t.waiting[k].at < next)
			next = t.waiting[k].at;
		look_in_between(next);
		still = next <= t.now.mono.ns && t.outs == before ? still + 1 : 0;
		MUST(still < 200); /* asked for at once, and nothing done */
		if (next > t.now.mono.ns)
			set_time(next);
		if (k >= 0 && t.waiting[k].at <= t.now.mono.ns)
			barrier_back(k);
		else if (t.now.mono.ns >= end && !(any && due.ns <= end))
			break;
		else if (t.now.mono.ns >= end && still > 3)
			break;
	}
	drain();
}

/* --- what is put in ---------------------------------------------------------- */

static void say(struct device *d, const char *payload, bool goodbye, int64_t own_ms)
{
	char topic[32];
	snprintf(topic, sizeof(topic), "n/%s/hb", d->id);
	struct hw_message msg = {
		.topic = topic, .topic_len = strlen(topic), .payload = payload, .payload_len = strlen(payload)};
	if (own_ms >= 0)
		d->own_ms = own_ms && own_ms < 100 ? 100 : own_ms;
	hw_monitor_arrived(t.m, t.now, some_source());
	watch();
	if (goodbye && !d->goodbye) {
		d->goodbye = d->state == HW_STATE_ONLINE && !hw_blind_now(hw_monitor_blind(t.m));
		d->goodbye_step = ++t.step;
	} else if (!goodbye) {
		d->goodbye = false;
		d->read_at = t.now.mono.ns;
	}
	hw_monitor_messages(t.m, t.now, &msg, 1);
	watch();
	drain();
}

static void beat(struct device *d)
{
	char payload[40] = "";
	int64_t own_ms = -1;
	if (one_in(6)) {
		own_ms = one_in(3) ? 0 : 250 * (1 + below(20));
		snprintf(payload, sizeof(payload), "{\"timeout\":%" PRId64 ".%02d}", own_ms / 1000,
		         (int)(own_ms % 1000 / 10));
	}
	say(d, payload, false, own_ms);
}

static uint64_t acks_refused(void)
{
	return hw_monitor_stats(t.m)->refused[HW_REFUSED_PROBE];
}

/* The msg_id of the present silence; or another one, which belongs to no device. */
static void answer(struct device *d)
{
	uint32_t i = hw_registry_find(hw_monitor_registry(t.m), d->id, strlen(d->id));
	char msg_id[HW_PROBE_ID_SIZE], payload[64];
	if (i == HW_NIL || d->read_at < 0 || (d->state != HW_STATE_ONLINE && d->state != HW_STATE_OFFLINE))
		return;
	MUST(hw_probe_id(t.m, hw_registry_ref(hw_monitor_registry(t.m), i), msg_id));
	bool forged = one_in(4);
	int64_t late_ns = d->state == HW_STATE_OFFLINE ? seen(t.now.mono.ns) - deadline(d) - timeout_ns(d) : 0;
	bool late = late_ns > 0;
	if (late && late_ns <= twin_put_back(&t.clock))
		return; /* the clock may have been put back since the end of a blindness */
	if (forged)
		msg_id[HW_PROBE_ID_SIZE - 2 - below(16)] ^= 1;
	snprintf(payload, sizeof(payload), "{\"msg_id\":\"%s\"}", msg_id);
	struct hw_message msg = {
		.topic = ANSWERS, .topic_len = strlen(ANSWERS), .payload = payload, .payload_len = strlen(payload)};
	uint64_t refused = acks_refused();
	if (!forged && !late) {
		d->goodbye = false;
		d->read_at = t.now.mono.ns;
		t.acks++;
	}
	hw_monitor_messages(t.m, t.now, &msg, 1);
	MUST(acks_refused() == refused + (forged || late));
	drain();
	MUST(forged || late || d->state == HW_STATE_ONLINE);
}

static void stall(int64_t length_ns)
{
	struct hw_mono planned = t.now.mono;
	set_time(t.now.mono.ns + length_ns);
	hw_monitor_stall(t.m, t.now, planned);
	watch();
	t.stalled = true;
	if (length_ns > 5 * S)
		t.clock.must_be_lossy = true;
	if (one_in(3))
		pass(below(100 * MS));
	for (int k = next_back(); k >= 0 && t.waiting[k].at <= t.now.mono.ns; k = next_back())
		barrier_back(k);
	hw_monitor_drained(t.m, t.now);
	t.stalled = false;
	watch();
}

static void suspend(void)
{
	struct hw_mono since = {t.now.mono.ns - below(S)};
	t.clock.must_be_lossy = true;
	t.now.wall_ms += below(100000);
	hw_monitor_suspended(t.m, t.now, since.ns < t.started ? t.now.mono : since);
	if (t.conf.grace_ms && t.now.mono.ns + t.conf.grace_ms * MS > t.grace_until)
		t.grace_until = t.now.mono.ns + t.conf.grace_ms * MS;
	watch();
}

/* What is under way on the publisher's or a reader's connection is lost with the connection. */
static void lose(bool readers)
{
	if (!readers) {
		t.publisher = !t.publisher;
		if (!t.publisher) {
			t.floor = t.sent;
			t.n_waiting = 0;
		}
		hw_monitor_publisher(t.m, t.now, t.publisher);
		watch();
		return;
	}
	unsigned r = some_source();
	if (r < SOURCES)
		link_to(r, !t.up[r]);
}

static const char *const filter[] = {"n/{id}/hb"};

static struct hw_group_spec group(void)
{
	return (struct hw_group_spec){.name = "default",
	                              .heartbeat = filter,
	                              .n_heartbeat = 1,
	                              .timeout_ms = t.timeout_ms,
	                              .timeout_max_ms = 86400000,
	                              .probe = t.probes ? "ping" : NULL,
	                              .probe_after_ms = t.after_ms,
	                              .probes = t.probes};
}

static void draw_group(void)
{
	t.timeout_ms = 500 + 250 * below(40);
	t.probes = (unsigned)below(HW_PROBES_MAX + 1);
	t.after_ms = 1 + below(t.timeout_ms - 1);
}

static void reload(void)
{
	draw_group();
	t.reloads++;
	struct hw_group_spec g = group();
	MUST(hw_monitor_reconfigure(t.m, t.now, &t.conf, &g, 1) == 0);
	drain();
}

static void load(struct device *d)
{
	struct hw_stored s = {.id = d->id,
	                      .id_len = strlen(d->id),
	                      .state = one_in(2) ? HW_STATE_ONLINE : HW_STATE_OFFLINE,
	                      .reason = HW_REASON_HEARTBEAT,
	                      .since_ms = t.now.wall_ms - below(100000),
	                      .last_seen_ms = t.now.wall_ms - below(20000),
	                      .down_ms = below(20000),
	                      .seq = 1 + (uint64_t)below(1000000)};
	bool known = hw_registry_find(hw_monitor_registry(t.m), d->id, strlen(d->id)) != HW_NIL;
	int64_t run_ms = (t.now.mono.ns - t.started) / MS, silence_ms = t.now.wall_ms - run_ms - s.last_seen_ms;
	if (known)
		return;
	silence_ms = (silence_ms > 0 ? silence_ms : 0) - s.down_ms;
	silence_ms = silence_ms < 0 ? 0 : silence_ms < t.timeout_ms ? silence_ms : t.timeout_ms;
	d->state = s.state;
	d->seq = s.seq;
	d->read_at = -1;
	d->loaded = silence_ms * MS;
	d->loaded_at = t.now.mono.ns;
	t.loads++;
	d->own_ms = 0;
	d->goodbye = false;
	MUST(hw_monitor_load(t.m, t.now, &s) == 0);
}

static void forget(struct device *d)
{
	bool known = d->state == HW_STATE_ONLINE || d->state == HW_STATE_OFFLINE;
	MUST(hw_monitor_forget(t.m, t.now, d->id, strlen(d->id)) == known);
	drain();
}

static void act(void)
{
	struct device *d = &t.device[below(DEVICES)];
	switch (below(40)) {
	case 0:
		say(d, "{\"online\":false}", true, -1);
		break;
	case 1:
		stall(below(one_in(4) ? 10 * S : S));
		break;
	case 2:
		if (one_in(4))
			suspend();
		break;
	case 3:
		if (all_up())
			hw_monitor_loss(t.m, t.now, some_source());
		t.floor = all_up() ? t.sent : t.floor;
		watch();
		break;
	case 4:
		lose(one_in(2));
		break;
	case 5:
		if (one_in(4))
			reload();
		break;
	case 6:
		load(d);
		break;
	case 7:
		if (one_in(3))
			forget(d);
		break;
	case 8: /* no number that was sent */
		hw_monitor_barrier(t.m, t.now, (unsigned)below(SOURCES + 2), t.sent + 1 + (uint64_t)below(100));
		watch();
		break;
	case 11:
		if (one_in(2))
			source_comes();
		else if (some_source() < SOURCES)
			source_goes(some_source());
		break;
	case 12:
	case 13:
		answer(d);
		break;
	case 9:
		t.now.wall_ms += below(2 * 86400000) - 86400000;
		break;
	case 10: /* silence of the broker */
		t.n_waiting = 0;
		break;
	default:
		beat(d);
	}
}

/* --- the rules that need quiet ----------------------------------------------- */

static void count(void)
{
	const struct hw_registry *r = hw_monitor_registry(t.m);
	uint32_t n[HW_STATES] = {0};
	for (uint32_t i = 0; i < hw_registry_bound(r); i++) {
		const struct hw_device *d = hw_registry_at(r, i);
		if (!d)
			continue;
		n[hw_device_state(d)]++;
		MUST(hw_device_state(d) == device_of(d)->state);
	}
	for (int k = 0; k < HW_STATES; k++) {
		MUST(hw_monitor_stats(t.m)->count[k] == n[k]);
		MUST(hw_monitor_group_stats(t.m, 0)->count[k] == n[k]);
	}
}

/* All links are up, the broker loses nothing, and no device sends: after a while each device is offline, and none
 * was judged long after its deadline. */
static void quiet(void)
{
	if (!t.publisher)
		lose(false);
	if (some_source() == SOURCES)
		source_comes();
	for (unsigned r = 0; r < SOURCES; r++)
		link_to(r, true);
	t.n_waiting = 0;
	t.faithful = true;
	t.quiet_since = INT64_MAX;
	/* A loss from before may still be found, and close a connection once more. */
	for (int k = 0; k < 6 || (k < 60 && hw_blind_now(hw_monitor_blind(t.m))); k++) {
		pass(S);
		for (unsigned r = 0; r < SOURCES; r++)
			link_to(r, true);
	}
	MUST(!hw_blind_now(hw_monitor_blind(t.m)));
	t.quiet_since = seen(t.now.mono.ns) + twin_put_back(&t.clock); /* the wheel does not turn back */
	for (int k = 0; k < 40; k++) {
		pass(below(S));
		int64_t late_ns = twin_put_back(&t.clock) + TICK_NS + 4 * RTT_NS + 2 * MS + 200 * MS;
		MUST(!hw_blind_now(hw_monitor_blind(t.m)));
		for (int i = 0; i < DEVICES; i++)
			MUST(t.device[i].state != HW_STATE_ONLINE ||
			     seen(t.now.mono.ns) < latest(&t.device[i]) + late_ns);
	}
	t.faithful = false;
}

static void begin(void)
{
	static const uint8_t key[16] = {9};
	memset(&t, 0, sizeof(t));
	t.now = (struct hw_now){.mono = {1000 * S + below(S)}, .wall_ms = 1700000000000};
	t.started = t.now.mono.ns;
	t.clock.lossy_end = INT64_MIN / 4;
	draw_group();
	t.conf = (struct hw_monitor_conf){.max_devices = 1000,
	                                  .forget_after_ms = one_in(2) ? 0 : 20000,
	                                  .forget_once_after_ms = one_in(2) ? 0 : 10000,
	                                  .grace_ms = one_in(2) ? 0 : below(4000),
	                                  .barrier_slow_ms = 100 + below(400),
	                                  .barrier_timeout_ms = 1000 + below(4000),
	                                  .readers = 1 + (unsigned)below(READERS),
	                                  .ttl_factor = 3,
	                                  .probe_answers = ANSWERS,
	                                  .probe_rate = one_in(2) ? 0 : 1 + (unsigned)below(20)};
	for (int i = 0; i < DEVICES; i++) {
		t.device[i] = (struct device){.state = HW_STATE_FORGOTTEN, .read_at = -1, .loaded = -1};
		snprintf(t.device[i].id, sizeof(t.device[i].id), "d%02d", i);
	}
	struct hw_group_spec g = group();
	t.m = hw_monitor_new(&t.conf, &g, 1, key, t.now);
	MUST(t.m != NULL);
	watch();
	lose(false);
	for (unsigned r = 0; r < t.conf.readers; r++) {
		t.there[r] = true;
		link_to(r, true);
	}
}

START_TEST(the_rules_hold_whatever_happens)
{
	const unsigned rounds = getenv("HW_FEW_ROUNDS") ? ROUNDS / 4 : ROUNDS;
	uint64_t offline = 0, asked = 0, acks = 0;
	for (unsigned round = 0; round < rounds; round++) {
		begin();
		for (int step = 0; step < STEPS; step++) {
			act();
			pass(one_in(10) ? below(3 * S) : below(100 * MS));
			if (step % 100 == 99) {
				count();
				quiet();
			}
		}
		count();
		offline += hw_monitor_stats(t.m)->transitions[HW_REASON_TIMEOUT] +
		           hw_monitor_stats(t.m)->transitions[HW_REASON_WILL];
		MUST(t.probes_out == hw_monitor_stats(t.m)->probes_sent);
		asked += t.probes_out;
		acks += t.acks;
		hw_monitor_free(t.m);
	}
	/* A device or two of one round may lack a probe together: three more than one in twenty may, however few there
	 * are. A short run may have hardly any such death (6 at least in 200 runs of a quarter), a whole one has a
	 * hundred. */
	MUST(quiet_deaths - fully_asked <= 3 + quiet_deaths / 20);
	MUST(rounds < ROUNDS || quiet_deaths > ROUNDS / 50);
	MUST(offline > 10 * rounds && asked > 10 * rounds && acks > 2 * rounds);
}
END_TEST

int main(void)
{
	random_begin(random_seed_of_now());

	Suite *suite = suite_create("monitor (random)");
	TCase *tc = tcase_create("twin");
	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, the_rules_hold_whatever_happens);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

/* SPDX-License-Identifier: MIT */
/*
 * The twin of the state machine for prop_monitor.c: the input with its times, a seeing clock, and the checks of every
 * transition and every barrier.
 */
#ifndef HW_TEST_TWIN_MONITOR_H
#define HW_TEST_TWIN_MONITOR_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../random.h"
#include "heartwheel/monitor.h"

/* ck_assert() writes to a pipe each time that it holds: too slow for so many. */
#define MUST(truth)                                                                                                    \
	do {                                                                                                           \
		if (!(truth))                                                                                          \
			ck_abort_msg("not true: %s", #truth);                                                          \
	} while (0)

#include "twin_clock.h"

#define MS      HW_NS_PER_MS
#define S       HW_NS_PER_S
#define TICK_NS (S / HW_TICKS_PER_S + 1)
#define DEVICES 12
#define READERS 3 /* at the start */
#define SOURCES 5
#define NUMBERS 8192
#define WAITING 512
#define PROBES  64
#define ANSWERS "nodes/twin/ack"
#define RTT_NS  (2 * MS)

struct device {
	char id[16];
	enum hw_state state; /* HW_STATE_FORGOTTEN: also not there */
	uint64_t seq;
	int64_t read_at; /* monotonic; -1: not in this run */
	int64_t loaded;  /* seen silence when the run began; -1: the device was not loaded */
	int64_t loaded_at;
	int64_t own_ms;
	bool goodbye; /* one waits: no heartbeat since, no blindness */
	uint64_t goodbye_step;
	unsigned asked; /* probes since `asked_for` */
	struct {
		int64_t read_at, lossy_end;
		uint64_t reloads, loads;
	} asked_for; /* the silence, and the other values from which its deadline follows */
};

struct twin {
	struct hw_monitor *m;
	struct hw_monitor_conf conf;
	struct hw_now now;
	int64_t started;
	int64_t timeout_ms;
	struct device device[DEVICES];
	struct twin_clock clock;
	bool there[SOURCES], fresh[SOURCES], up[SOURCES]; /* fresh: it has not been up yet, and came late */
	bool publisher, stalled;
	int64_t grace_until;
	uint64_t step, sent, floor, back[SOURCES];
	uint64_t sent_step[NUMBERS];
	int64_t sent_at[NUMBERS];
	struct {
		uint64_t number;
		int64_t at;
		unsigned source;
	} waiting[WAITING]; /* barriers on their way back, in any order */
	int n_waiting;
	unsigned probes;  /* in a silence; 0: none */
	int64_t after_ms; /* ... and the silence before them */
	uint64_t reloads, loads;
	int64_t quiet_since; /* on the seeing clock */
	struct {
		int64_t at[PROBES]; /* on the seeing clock */
		uint64_t n, periods;
	} probe;
	uint64_t probes_out, acks;
	bool faithful; /* the broker sends every barrier back, at once and once */
	uint64_t outs;
};

static struct twin t;
static uint64_t quiet_deaths, fully_asked; /* in all rounds */

static int64_t below(int64_t n)
{
	return (int64_t)(random64() % (uint64_t)n);
}

static bool one_in(int64_t n)
{
	return below(n) == 0;
}

/* --- the twin's clock -------------------------------------------------------- */

static int64_t seen(int64_t at)
{
	return twin_seen(&t.clock, at);
}

/* After each call. */
static void watch(void)
{
	if (!twin_watch(&t.clock, hw_monitor_blind(t.m), t.now.mono.ns))
		return;
	for (int i = 0; i < DEVICES; i++)
		t.device[i].goodbye = false; /* touched */
}

/* Without any source nothing is up. */
static bool all_up(void)
{
	bool any = false;
	for (unsigned r = 0; r < SOURCES; r++) {
		any |= t.there[r];
		if (t.there[r] && !t.up[r])
			return false;
	}
	return any;
}

/* A random connected source; if there is none, a number that no source has. */
static unsigned some_source(void)
{
	unsigned r = (unsigned)below(SOURCES);
	for (unsigned k = 0; k < SOURCES; k++, r = (r + 1) % SOURCES)
		if (t.there[r])
			return r;
	return SOURCES;
}

static void check_blind(void)
{
	if (!all_up() || t.stalled || t.now.mono.ns < t.grace_until)
		MUST(hw_blind_now(hw_monitor_blind(t.m)));
	MUST(hw_blind_seen(hw_monitor_blind(t.m), t.now.mono).ns == seen(t.now.mono.ns));
}

/* --- what comes out ---------------------------------------------------------- */

static struct device *device_of(const struct hw_device *d)
{
	const char *id = hw_device_id(d).text;
	return &t.device[(id[1] - '0') * 10 + id[2] - '0'];
}

static struct device *by_ref(struct hw_ref ref)
{
	const struct hw_device *d = hw_registry_get(hw_monitor_registry(t.m), ref);
	MUST(d != NULL);
	return device_of(d);
}

static int64_t timeout_ns(const struct device *d)
{
	return (d->own_ms ? d->own_ms : t.timeout_ms) * MS;
}

static int64_t deadline(const struct device *d)
{
	int64_t timeout = timeout_ns(d), lossy = seen(t.clock.lossy_end);
	int64_t last = d->read_at >= 0 ? seen(d->read_at) : seen(t.started) - d->loaded;
	int64_t anew = (lossy > last ? lossy : last) + timeout;
	return anew < last + 3 * timeout ? anew : last + 3 * timeout;
}

/* A device that is loaded late may be overdue already. */
static int64_t latest(const struct device *d)
{
	int64_t due = deadline(d), loaded = seen(d->loaded_at);
	return due > loaded ? due : loaded;
}

/* The first of the last two barriers that are back on every source. */
static uint64_t first_of_pair(void)
{
	uint64_t back = UINT64_MAX;
	for (unsigned r = 0; r < SOURCES; r++)
		back = t.there[r] && t.back[r] < back ? t.back[r] : back;
	MUST(back >= t.floor + 2);
	return back - 1;
}

/* --- probes ------------------------------------------------------------------ */

/* How much of its timeout is left when a device may be probed first. */
static int64_t window(const struct device *d)
{
	return (int64_t)((double)timeout_ns(d) * (double)(t.timeout_ms - t.after_ms) / (double)t.timeout_ms);
}

static void count_probe(struct device *d)
{
	bool same = d->asked_for.read_at == d->read_at && d->asked_for.lossy_end == t.clock.lossy_end &&
	            d->asked_for.reloads == t.reloads && d->asked_for.loads == t.loads;
	if (!same)
		d->asked = 0;
	d->asked++;
	d->asked_for.read_at = d->read_at;
	d->asked_for.lossy_end = t.clock.lossy_end;
	d->asked_for.reloads = t.reloads;
	d->asked_for.loads = t.loads;
}

/* In a second of the seeing clock, which blindness may put back. */
static void check_rate(void)
{
	uint64_t most = t.conf.probe_rate + t.conf.probe_rate / HW_TICKS_PER_S + 2,
		 periods = hw_monitor_blind(t.m)->periods;
	if (t.probe.periods != periods)
		t.probe.n = 0;
	t.probe.periods = periods;
	int64_t now = seen(t.now.mono.ns);
	if (t.conf.probe_rate && t.probe.n >= most)
		MUST(now - t.probe.at[(t.probe.n - most) % PROBES] >= S - TICK_NS);
	t.probe.at[t.probe.n++ % PROBES] = now;
}

static void on_probe(struct device *d, int64_t left_ns)
{
	int64_t now = seen(t.now.mono.ns);
	MUST(t.probes > 0);
	MUST(d->state == HW_STATE_ONLINE);
	MUST(!hw_blind_now(hw_monitor_blind(t.m)));
	MUST(left_ns > 0 && left_ns >= deadline(d) - now);
	MUST(left_ns <= window(d) + 1);
	count_probe(d);
	MUST(d->asked <= t.probes);
	check_rate();
	t.probes_out++;
}

/*
 * A device that was silent only in quiet times gets all probes before it is judged. A few devices get fewer, whose
 * deadlines came nearer because the begin of a blind period was put back. So both are counted.
 */
static void count_asked(const struct device *d)
{
	if (!t.faithful || !t.probes || t.conf.probe_rate || window(d) < S || deadline(d) - window(d) <= t.quiet_since)
		return;
	quiet_deaths++;
	fully_asked += d->asked == t.probes;
}

static void check_offline(struct device *d, const struct hw_transition *tr)
{
	if (d->state != HW_STATE_ONLINE) {
		MUST(tr->reason == HW_REASON_WILL); /* all that is known of it */
		return;
	}
	MUST(!hw_blind_now(hw_monitor_blind(t.m)));
	uint64_t first = first_of_pair();
	if (tr->reason == HW_REASON_WILL) {
		MUST(d->goodbye);
		MUST(t.sent_step[first % NUMBERS] > d->goodbye_step);
		return;
	}
	MUST(tr->reason == HW_REASON_TIMEOUT);
	int64_t due = deadline(d);
	MUST(seen(t.now.mono.ns) >= due);
	count_asked(d);
	MUST(seen(t.sent_at[first % NUMBERS]) >= due);
	MUST(tr->delay_ns >= 0);
}

static void on_transition(const struct hw_transition *tr)
{
	struct device *d = by_ref(tr->device);
	MUST(tr->seq > d->seq);
	MUST(tr->state != d->state);
	if (tr->state == HW_STATE_OFFLINE)
		check_offline(d, tr);
	if (tr->state == HW_STATE_ONLINE)
		MUST(d->read_at >= 0);
	d->seq = tr->seq;
	d->state = tr->state;
	d->goodbye = false;
	if (tr->state == HW_STATE_FORGOTTEN)
		d->own_ms = 0;
	if (tr->state == HW_STATE_FORGOTTEN && one_in(2)) {
		hw_monitor_reap(t.m, tr->device);
		MUST(hw_registry_get(hw_monitor_registry(t.m), tr->device) == NULL);
		d->seq = 0;
		d->read_at = d->loaded = -1;
	}
}

static void on_barrier(uint64_t number)
{
	MUST(number == t.sent + 1);
	MUST(t.publisher);
	t.sent = number;
	t.sent_step[number % NUMBERS] = ++t.step;
	t.sent_at[number % NUMBERS] = t.now.mono.ns;
	for (unsigned r = 0; r < SOURCES; r++) {
		int copies = t.faithful ? 1 : one_in(12) ? 0 : one_in(12) ? 2 : 1;
		for (int k = 0; t.there[r] && k < copies && t.n_waiting < WAITING; k++) {
			t.waiting[t.n_waiting].number = number;
			t.waiting[t.n_waiting].source = r;
			t.waiting[t.n_waiting++].at = t.now.mono.ns + (t.faithful ? RTT_NS : below(800 * MS));
		}
	}
}

static void link_to(unsigned r, bool up)
{
	if (!t.there[r] || t.up[r] == up)
		return;
	t.up[r] = up;
	t.back[r] = 0;
	t.floor = t.sent;
	if (!up || !t.fresh[r])
		t.clock.must_be_lossy = true;
	if (up && !t.fresh[r])
		t.grace_until = t.now.mono.ns + t.conf.grace_ms * MS;
	t.fresh[r] = false;
	hw_monitor_link(t.m, t.now, r, up);
	watch();
}

static void source_comes(void)
{
	int r = 0;
	while (r < SOURCES && t.there[r])
		r++;
	if (r == SOURCES)
		return;
	t.there[r] = t.fresh[r] = true;
	t.up[r] = false;
	t.back[r] = 0;
	t.floor = t.sent;
	MUST(hw_monitor_add_source(t.m, t.now) == r);
	watch();
}

/* A message on its way back through the source may still arrive after the source is gone, or after another source
 * has its number. */
static void source_goes(unsigned r)
{
	bool last = true;
	for (unsigned k = 0; k < SOURCES; k++)
		last &= k == r || !t.there[k];
	if (last || t.up[r])
		t.clock.must_be_lossy = true;
	else if (!t.fresh[r])
		t.grace_until = t.now.mono.ns + t.conf.grace_ms * MS;
	t.there[r] = t.up[r] = false;
	t.floor = t.sent;
	hw_monitor_remove_source(t.m, t.now, r);
	watch();
}

static void take(const struct hw_out *out)
{
	t.outs++;
	if (out->kind == HW_OUT_TRANSITION)
		on_transition(&out->transition);
	else if (out->kind == HW_OUT_BARRIER)
		hw_monitor_barrier_taken(t.m, t.now.mono), on_barrier(out->barrier);
	else if (out->kind == HW_OUT_PROBE)
		on_probe(by_ref(out->probe.device), out->probe.left_ns);
	else if (out->kind == HW_OUT_RECONNECT)
		link_to(out->source, false);
}

/* Until nothing is left to do at this moment, in turns with any budget. */
static void drain(void)
{
	struct hw_out out;
	unsigned left;
	int turns = 0;
	do {
		left = one_in(3) ? 1 + (unsigned)below(3) : 64;
		while (hw_monitor_next(t.m, t.now, &left, &out)) {
			watch();
			take(&out);
		}
		watch();
		MUST(++turns < 10000);
	} while (left == 0);
	check_blind();
}

#endif

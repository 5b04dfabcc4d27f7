/* SPDX-License-Identifier: MIT */
/* The oracle's judgement. See sim_oracle.h. */
#include <inttypes.h>

#include "sim.h"

#define TICK_NS     (HW_NS_PER_S / HW_TICKS_PER_S + 1)
#define LATE_NS     (300 * HW_NS_PER_MS) /* beside a tick and round trips */
#define ROUNDING_NS (2 * HW_NS_PER_MS)

/* By what the monitor has read. */
static int64_t timeout_ns(const struct sim *s, uint32_t i)
{
	int64_t own_ms = s->oracle.watched[i].own_ms;
	return own_ms > 0 ? own_ms * HW_NS_PER_MS : s->plan.timeout_ns[s->fleet.device[i].group];
}

/* When the first of the last two barriers that are back on every reader was sent; -1 if there are no two. */
static int64_t pair_sent(const struct sim *s)
{
	uint64_t back = UINT64_MAX;
	for (uint32_t r = 0; r < s->plan.readers; r++)
		if (s->oracle.back[r] < back)
			back = s->oracle.back[r];
	return back < 2 ? -1 : s->oracle.sent_at[(back - 1) % SIM_NUMBERS];
}

/* When the latest got through not after `by`; -1: none. *next: the one after it, or `end`. */
static int64_t last_by(const struct sim_watched *w, int64_t by, int64_t end, int64_t *next)
{
	*next = end;
	for (uint32_t k = w->arrivals; k > 0 && w->arrivals - k < SIM_ARRIVALS; k--) {
		int64_t at = w->arrival[(k - 1) % SIM_ARRIVALS];
		if (at <= by)
			return at;
		*next = at;
	}
	return -1;
}

/*
 * All that got through before the pair was sent has been read. So what justifies the judgement is a gap after the last
 * of these, up to the next one or to now, that is as long as the timeout.
 */
static void check_silence(struct sim *s, uint32_t i, int64_t now, int64_t sent)
{
	const struct sim_oracle *o = &s->oracle;
	int64_t next, at = last_by(&o->watched[i], sent, now, &next);
	if (at < 0)
		return;
	int64_t gap_ns = sim_oracle_seen(o, next) - sim_oracle_seen(o, at), timeout = timeout_ns(s, i);
	if (gap_ns < timeout)
		sim_breach(s, "d%u: false offline: a heartbeat got through %.6f s ago, silence %.6f s of %.3f s", i,
		           (double)(now - at) / 1e9, (double)gap_ns / 1e9, (double)timeout / 1e9);
}

/*
 * How much later deadlines may be because the clock was put back: what was heard before counts from later on, and the
 * wheel, which does not turn back, waits until the clock has come to where it was.
 */
static int64_t put_back_since(const struct sim_oracle *o, int64_t since)
{
	int64_t sum = 0, seen = sim_oracle_seen(o, since);
	for (size_t k = o->blind.n; k > 0; k--) {
		const struct sim_span *x = &o->blind.span[k - 1];
		int64_t before_ns = seen - (x->from - x->before);
		if (before_ns > 120 * HW_NS_PER_S)
			break;
		if (before_ns < x->put_back)
			sum += x->put_back;
	}
	return sum;
}

static void check_time(struct sim *s, uint32_t i, int64_t now, int64_t sent)
{
	const struct sim_oracle *o = &s->oracle;
	const struct sim_watched *w = &o->watched[i];
	int64_t timeout = timeout_ns(s, i), lossy = sim_oracle_seen(o, o->lossy_end);
	int64_t read = w->read ? sim_oracle_seen(o, w->read_at) : INT64_MIN / 4;
	int64_t due = (lossy > read ? lossy : read) + timeout;
	if (w->read && due > read + 3 * timeout)
		due = read + 3 * timeout;
	int64_t late_ns = sim_oracle_seen(o, now) - due;
	if (w->read && late_ns < 0)
		sim_breach(s, "d%u: offline %.6f s before its deadline", i, (double)-late_ns / 1e9);
	if (w->read && sim_oracle_seen(o, sent) < due)
		sim_breach(s, "d%u: offline without two barriers sent after its deadline", i);
	if (late_ns <= 0)
		return;
	int64_t due_at = sim_oracle_unseen(o, due);
	int64_t may_ns = TICK_NS + LATE_NS + ROUNDING_NS + 6 * (s->plan.delay_ns + s->plan.service_ns * 40) +
	                 sim_oracle_troubled(o, due_at, now) + put_back_since(o, w->read ? w->read_at : 0);
	if (late_ns > may_ns)
		sim_breach(s, "d%u: offline %.6f s after its deadline, %.6f s are explained", i, (double)late_ns / 1e9,
		           (double)may_ns / 1e9);
}

static void check_offline(struct sim *s, uint32_t i, const struct hw_transition *t)
{
	const struct sim_watched *w = &s->oracle.watched[i];
	int64_t now = sim_oracle_mono(s), sent = pair_sent(s), next;
	if (w->state != HW_STATE_ONLINE)
		return; /* a first message that is a goodbye */
	if (hw_blind_now(hw_monitor_blind(s->host.m)))
		sim_breach(s, "d%u: offline while blind", i);
	if (sent < 0) {
		sim_breach(s, "d%u: offline without two barriers", i);
		return;
	}
	if (t->reason == HW_REASON_TIMEOUT) {
		check_silence(s, i, now, sent);
		check_time(s, i, now, sent);
		return;
	}
	if (w->alive && (w->goodbye_at < 0 || last_by(w, sent, now, &next) > w->goodbye_at))
		sim_breach(s, "d%u: offline on a goodbye that is none", i);
}

void sim_oracle_transition(struct sim *s, uint32_t i, const struct hw_transition *t)
{
	struct sim_watched *w = &s->oracle.watched[i];
	sim_trace(s, hw_state_name(t->state), i, (int64_t)t->seq);
	if (t->seq <= w->seq)
		sim_breach(s, "d%u: seq %" PRIu64 " after %" PRIu64, i, t->seq, w->seq);
	if (t->state == w->state)
		sim_breach(s, "d%u: %s twice", i, hw_state_name(t->state));
	if (t->state == HW_STATE_ONLINE && !w->read)
		sim_breach(s, "d%u: online, and no heartbeat was read", i);
	if (t->state == HW_STATE_OFFLINE)
		check_offline(s, i, t);
	w->state = t->state;
	w->seq = t->seq;
	if (t->state == HW_STATE_FORGOTTEN) /* with all that was known of it */
		w->own_ms = 0, w->seq = 0;
	sim_oracle_changed(s, i, t);
}

void sim_oracle_stored(struct sim *s, const struct sim_order *o, const struct sim_record *was)
{
	if (was->known && was->state == o->record.state && !s->oracle.amnesia)
		sim_breach(s, "d%u: the store is told twice that it is %s", o->device, hw_state_name(was->state));
}

/* --- in the end -------------------------------------------------------------- */

static void check_kept(struct sim *s, uint32_t i, const struct hw_device *d)
{
	struct sim_record newest = sim_store_newest(s, i), *r = &newest;
	const struct sim_retained *kept = &s->broker.retained[i];
	bool known = d && hw_device_state(d) != HW_STATE_FORGOTTEN;
	if (r->known != known || (known && (r->state != hw_device_state(d) || r->seq != d->seq)))
		sim_breach(s, "d%u: the store has %s, seq %" PRIu64 ", the monitor %s, seq %" PRIu64, i,
		           r->known ? hw_state_name(r->state) : "nothing", r->seq,
		           known ? hw_state_name(hw_device_state(d)) : "nothing", d ? (uint64_t)d->seq : 0);
	if (!known || sim_host_now(s).wall_ms - d->since_ms < 1000) /* the status is on its way */
		return;
	if (!kept->any || !kept->by_monitor || kept->seq != d->seq ||
	    kept->online != (hw_device_state(d) == HW_STATE_ONLINE))
		sim_breach(s, "d%u is %s, what is retained says %s%s, seq %" PRIu64, i,
		           hw_state_name(hw_device_state(d)),
		           kept->any ? "" : "nothing: ", kept->online ? "online" : "offline", kept->seq);
}

void sim_oracle_finish(struct sim *s)
{
	if (!s->host.m) {
		sim_breach(s, "the monitor is not there in the end");
		return;
	}
	if (hw_blind_now(hw_monitor_blind(s->host.m)) && s->plan.calm_ns)
		sim_breach(s, "blind in the end: %s", hw_cause_name(hw_monitor_blind(s->host.m)->first));
	for (uint32_t i = 0; i < s->plan.devices; i++) {
		const struct sim_device *f = &s->fleet.device[i];
		const struct hw_device *d = sim_host_device(s, i);
		bool online = d && hw_device_state(d) == HW_STATE_ONLINE;
		bool lives = f->beating && f->reachable && f->connected && f->loss <= 0;
		sim_oracle_count(s, i);
		if (s->metrics)
			s->metrics->beats += f->beats;
		if (!s->plan.calm_ns)
			continue;
		if (lives && !online)
			sim_breach(s, "d%u lives, and is taken for dead in the end", i);
		if (!f->beating && online)
			sim_breach(s, "d%u is dead, and is taken for alive in the end", i);
		check_kept(s, i, d);
		sim_trace(s, "end", i, online);
	}
}

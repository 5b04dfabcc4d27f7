/* SPDX-License-Identifier: MIT */
/* See sim_host.h. This file is the loop and the way out; sim_host_in.c is the way in, the start and the end. */
#include <string.h>

#include "sim.h"
#include "sim_host_priv.h"

#define BUDGET        2048
#define STALL_NS      (500 * HW_NS_PER_MS)
#define TIMER_LATE_NS 50000
#define SPINS_MAX     200

struct hw_now sim_host_now(const struct sim *s)
{
	const struct sim_host *h = &s->host;
	int64_t asleep_ns = h->slept_ns + (h->asleep ? s->now - h->asleep_since : 0);
	return (struct hw_now){.mono = {SIM_BOOTED_NS + s->now - asleep_ns},
	                       .wall_ms = SIM_WALL_MS + s->now / HW_NS_PER_MS + h->wall_offset_ms};
}

bool sim_host_is_behind(const struct sim *s)
{
	for (uint32_t r = 0; r < s->plan.readers; r++)
		if (sim_feed_has_left(s, r))
			return true;
	return false;
}

static uint32_t find(const struct sim *s, uint32_t device)
{
	char id[16];
	int len = snprintf(id, sizeof(id), "d%u", device);
	return hw_registry_find(hw_monitor_registry(s->host.m), id, (size_t)len);
}

const struct hw_device *sim_host_device(const struct sim *s, uint32_t device)
{
	uint32_t i = find(s, device);
	return i == HW_NIL ? NULL : hw_registry_at(hw_monitor_registry(s->host.m), i);
}

uint32_t sim_host_number(const struct hw_device *d)
{
	struct hw_id id = hw_device_id(d);
	uint32_t n = 0;
	for (size_t k = 1; k < id.len; k++)
		n = n * 10 + (uint32_t)(id.text[k] - '0');
	return n;
}

/* --- what is owed ------------------------------------------------------------ */

static struct hw_device *by_ref(const struct sim *s, struct hw_ref ref)
{
	return hw_registry_get(hw_monitor_registry(s->host.m), ref);
}

static void reap_if_done(struct sim *s, uint32_t n, struct hw_ref ref)
{
	if (!s->host.pending[n].store && !s->host.pending[n].status)
		hw_monitor_reap(s->host.m, ref);
}

/* It is owed until the broker has said that it holds just this one. */
static void sim_host_acked(struct sim *s, uint32_t n, uint64_t seq)
{
	const struct hw_registry *r = hw_monitor_registry(s->host.m);
	uint32_t i = find(s, n);
	if (i == HW_NIL || hw_registry_at(r, i)->seq != seq)
		return;
	s->host.pending[n].status = s->host.pending[n].flies = false;
	reap_if_done(s, n, hw_registry_ref(r, i));
}

void sim_host_read_acks(struct sim *s)
{
	struct sim_packet p;
	while (sim_broker_read(s, s->plan.readers, &p))
		hw_monitor_barrier_taken(s->host.m, sim_host_now(s).mono);
	while (sim_broker_read(s, s->plan.readers + 1, &p))
		sim_host_acked(s, p.device, p.number);
}

static void publish(struct sim *s, struct hw_ref ref)
{
	const struct hw_device *d = by_ref(s, ref);
	uint32_t n = sim_host_number(d);
	enum hw_state state = hw_device_state(d);
	if (!s->host.link[s->plan.readers + 1].up || state == HW_STATE_PROVISIONAL)
		return;
	struct sim_packet p = {.what = state == HW_STATE_FORGOTTEN ? SIM_CLEARING : SIM_STATUS,
	                       .device = n,
	                       .online = state == HW_STATE_ONLINE,
	                       .number = d->seq};
	if (s->lie != SIM_UNSENT_STATUS)
		sim_broker_send(s, s->plan.devices + s->plan.readers + 1, p, s->plan.delay_ns);
	s->host.pending[n].flies = true;
	s->host.pending[n].since = s->now;
	if (s->lie == SIM_UNSENT_STATUS)
		sim_host_acked(s, n, d->seq);
}

static void give(struct sim *s, struct hw_ref ref, enum sim_order_kind kind)
{
	const struct hw_device *d = by_ref(s, ref);
	uint32_t n = sim_host_number(d);
	sim_store_give(s, (struct sim_order){.kind = kind, .device = n, .ref = ref, .record = sim_store_picture(s, d)});
}

void sim_host_confirmed(struct sim *s, uint32_t n, struct hw_ref ref, uint64_t seq)
{
	const struct hw_device *d = by_ref(s, ref);
	if (!d || d->seq != seq)
		return;
	s->host.pending[n].store = false;
	if (s->host.pending[n].status)
		publish(s, ref);
	else
		reap_if_done(s, n, ref);
}

void sim_host_rewrite(struct sim *s, struct hw_ref ref)
{
	const struct hw_device *d = by_ref(s, ref);
	if (d && hw_device_state(d) != HW_STATE_PROVISIONAL)
		give(s, ref, SIM_REWRITE);
}

void sim_host_newer(struct sim *s, struct hw_ref ref, uint64_t stored_seq)
{
	const struct hw_device *d = by_ref(s, ref);
	if (!d || !hw_monitor_adopt_seq(s->host.m, ref, stored_seq))
		return;
	struct sim_owed *pending = &s->host.pending[sim_host_number(d)];
	pending->store = pending->status = true;
	give(s, ref, SIM_REWRITE);
}

/* Everything is owed to the broker again. */
void sim_host_republish(struct sim *s)
{
	const struct hw_registry *r = hw_monitor_registry(s->host.m);
	for (uint32_t i = 0; i < hw_registry_bound(r); i++) {
		const struct hw_device *d = hw_registry_at(r, i);
		if (!d)
			continue;
		s->host.pending[sim_host_number(d)].status = true;
		s->host.pending[sim_host_number(d)].flies = false;
		if (!s->host.pending[sim_host_number(d)].store)
			publish(s, hw_registry_ref(r, i));
	}
}

/* --- out of the core --------------------------------------------------------- */

static void on_transition(struct sim *s, const struct hw_transition *t)
{
	uint32_t n = sim_host_number(by_ref(s, t->device));
	sim_oracle_transition(s, n, t);
	if (s->lie == SIM_TWICE && t->state == HW_STATE_OFFLINE)
		sim_oracle_transition(s, n, t);
	s->host.pending[n] = (struct sim_owed){.store = true, .status = true};
	give(s, t->device, SIM_EDGE);
}

static void on_status(struct sim *s, struct hw_ref ref)
{
	const struct hw_device *d = by_ref(s, ref);
	if (!d)
		return;
	struct sim_owed *pending = &s->host.pending[sim_host_number(d)];
	pending->status = true;
	if (!pending->store)
		publish(s, ref);
}

/* The client that carries what the monitor sends to itself. */
static uint32_t of_barriers(const struct sim *s)
{
	return s->plan.devices + s->plan.readers + (s->lie == SIM_TOGETHER);
}

static void dispatch(struct sim *s, const struct hw_out *out)
{
	switch (out->kind) {
	case HW_OUT_TRANSITION:
		on_transition(s, &out->transition);
		break;
	case HW_OUT_REFRESH:
		if (by_ref(s, out->device) && !s->store.away)
			give(s, out->device, SIM_REFRESH);
		break;
	case HW_OUT_LOOK: /* nothing reports here */
		break;
	case HW_OUT_STATUS:
		on_status(s, out->device);
		break;
	case HW_OUT_BARRIER:
		sim_oracle_barrier(s, out->barrier);
		if (s->lie == SIM_FORGED)
			s->host.to_forge = out->barrier;
		else
			sim_broker_send(s, of_barriers(s),
			                (struct sim_packet){.what = SIM_BARRIER, .number = out->barrier},
			                s->plan.delay_ns);
		break;
	case HW_OUT_BLIND:
		sim_oracle_told(s, out);
		/* A will that was lost with the rest has replaced what is retained. */
		if (!out->blind.begun && out->blind.lossy)
			sim_host_republish(s);
		break;
	case HW_OUT_CANARY:
		sim_note(s, "canary", out->canary.group, out->canary.filter);
		sim_broker_send(s, of_barriers(s),
		                (struct sim_packet){.what = SIM_CANARY,
		                                    .number = (uint64_t)out->canary.seq,
		                                    .device = 2u * out->canary.group + out->canary.filter},
		                s->plan.delay_ns);
		hw_monitor_canary_answer(s->host.m, out->canary.group, out->canary.filter, HW_CANARY_TAKEN);
		break;
	case HW_OUT_DEAF:
		sim_trace(s, out->deaf.begun ? "deaf" : "hears", out->deaf.group, out->deaf.length_ns);
		sim_oracle_deaf(s, out->deaf.group, out->deaf.begun);
		if (!out->deaf.begun)
			sim_host_republish(s);
		break;
	case HW_OUT_UPSTREAM:
		sim_oracle_upstream(s, out->upstream.group, out->upstream.begun);
		if (!out->upstream.begun)
			sim_host_republish(s);
		break;
	case HW_OUT_REOPEN:
		if (s->lie == SIM_ANSWERED)
			break;
		sim_trace(s, "reopen", 0, 0);
		sim_broker_leave(s, s->plan.devices + s->plan.readers);
		sim_host_down(s, s->plan.readers);
		break;
	case HW_OUT_RECONNECT:
		sim_trace(s, "reconnect", out->source, 0);
		sim_world_gives_up(s, out->source);
		sim_broker_leave(s, s->plan.devices + out->source);
		sim_host_down(s, out->source);
		break;
	default: /* no second path in this world */
		break;
	}
}

bool sim_host_drain(struct sim *s, unsigned budget)
{
	struct hw_out out;
	unsigned left = budget, n = 0;
	if (s->lie == SIM_IDLE && s->now > s->plan.trouble_ns / 2)
		return false;
	while (hw_monitor_next(s->host.m, sim_host_now(s), &left, &out)) {
		sim_oracle_watch(s);
		dispatch(s, &out);
		n++;
	}
	sim_oracle_watch(s);
	s->host.spins = n || (budget && left < budget) ? 0 : s->host.spins;
	return budget > 0 && left == 0;
}

/* --- the loop ---------------------------------------------------------------- */

/* Not in the moment in which it was sent: that proves nothing to the core, which asks for another, thousands of times.
 */
static void forge(struct sim *s, struct hw_now now)
{
	for (uint32_t r = 0; s->host.to_forge && r < s->plan.readers; r++)
		hw_monitor_barrier(s->host.m, now, r, s->host.to_forge);
	s->host.to_forge = 0;
}

struct hw_now sim_host_woke(struct sim *s)
{
	struct sim_host *h = &s->host;
	struct hw_now now = sim_host_now(s);
	struct hw_pace_woke w = hw_pace_woke(&h->pace, now.mono, h->slept_ns, STALL_NS);
	if (w.suspended)
		hw_monitor_suspended(h->m, now, w.since);
	sim_oracle_watch(s);
	if (w.stalled)
		hw_monitor_stall(h->m, now, w.planned);
	sim_oracle_watch(s);
	forge(s, now);
	if (s->lie == SIM_ANSWERED)
		hw_monitor_barrier_taken(h->m, now.mono);
	return now;
}

void sim_host_turn(struct sim *s)
{
	struct sim_host *h = &s->host;
	struct hw_now now = sim_host_now(s);
	bool more = sim_host_drain(s, s->plan.budget);
	int64_t wait_ns = more ? 0 : hw_pace_wait_ns(h->m, now);
	if (wait_ns == 0 && !more && ++h->spins > SPINS_MAX)
		sim_breach(s, "asks to be woken at once, again and again, and does nothing");
	sim_at(s, s->now + wait_ns + TIMER_LATE_NS, SIM_DUE, 0, ++h->due_stamp, 0);
	hw_pace_sleeps(&h->pace, now.mono, wait_ns < s->plan.tick_ns ? wait_ns : s->plan.tick_ns);
}

static bool awake(const struct sim *s)
{
	return s->host.m && !s->host.stopped && !s->host.asleep;
}

void sim_host_on_due(struct sim *s, uint32_t stamp)
{
	if (!awake(s) || stamp != s->host.due_stamp)
		return;
	sim_host_woke(s);
	sim_host_turn(s);
}

static void mark(struct sim *s, struct hw_now now)
{
	if (!hw_blind_now(hw_monitor_blind(s->host.m)) && !s->host.load_wanted)
		s->host.mark_told_ms = now.wall_ms;
	if (!s->store.away && s->host.mark_told_ms)
		sim_store_give(s, (struct sim_order){.kind = SIM_MARK, .mark_ms = s->host.mark_told_ms});
}

void sim_host_tick(struct sim *s)
{
	struct sim_host *h = &s->host;
	struct hw_now now = sim_host_woke(s);
	if (s->lie == SIM_BLINDED && s->now > s->plan.trouble_ns / 2) {
		hw_monitor_stall(h->m, now, hw_mono_add(now.mono, -HW_NS_PER_S));
		sim_oracle_watch(s);
		sim_host_note_empty(s);
	}
	if (h->store_lost && !s->store.away && !h->load_wanted) {
		h->store_lost = false;
		sim_host_reconcile(s);
	}
	mark(s, now);
	if (s->plan.sparse && sim_chance(&s->random, 0.9) && s->now < sim_length(s) - 4 * s->plan.tick_ns)
		sim_host_rest_publisher(s);
	sim_host_turn(s);
	sim_at(s, s->now + s->plan.tick_ns, SIM_TICK, 0, ++s->host.tick_stamp, 0);
}

void sim_host_on_tick(struct sim *s, uint32_t stamp)
{
	if (awake(s) && stamp == s->host.tick_stamp)
		sim_host_tick(s);
}

void sim_host_on_pipe(struct sim *s, uint32_t r)
{
	const struct sim_fifo *q = &s->broker.pipe[r].q;
	bool left = r < s->plan.readers && sim_feed_has_left(s, r);
	if (!awake(s) || (!left && (q->n == 0 || sim_fifo_at(q, 0)->at > s->now)))
		return;
	sim_host_woke(s);
	if (r >= s->plan.readers)
		sim_host_read_acks(s);
	else
		sim_host_read(s, r);
	if (r < s->plan.readers)
		sim_host_note_empty(s);
	sim_host_turn(s);
}

void sim_host_on_republish(struct sim *s)
{
	if (awake(s))
		sim_host_republish(s);
}

bool sim_host_stop_reader(struct sim *s, uint32_t r)
{
	if (!s->host.m || s->host.reader_stopped[r] >= 0)
		return false;
	s->host.reader_stopped[r] = sim_oracle_mono(s);
	return true;
}

/* It says since when it stood, and is read empty. */
void sim_host_go_on_reader(struct sim *s, uint32_t r)
{
	struct sim_host *h = &s->host;
	int64_t since = h->reader_stopped[r];
	h->reader_stopped[r] = -1;
	if (!awake(s) || since < 0)
		return;
	sim_host_woke(s);
	if (sim_oracle_mono(s) - since > STALL_NS)
		hw_monitor_stall(h->m, sim_host_now(s), (struct hw_mono){since});
	sim_oracle_watch(s);
	sim_host_read(s, r);
	sim_host_note_empty(s);
	sim_host_turn(s);
}

void sim_host_freeze(struct sim *s, bool suspended)
{
	struct sim_host *h = &s->host;
	if (suspended) {
		h->asleep = true;
		h->asleep_since = s->now;
	} else {
		h->stopped = true;
	}
}

/* The timer may be served before the sockets are, or after. */
void sim_host_thaw(struct sim *s)
{
	struct sim_host *h = &s->host;
	if (h->asleep)
		h->slept_ns += s->now - h->asleep_since;
	h->asleep = h->stopped = false;
	if (!h->m)
		return;
	sim_host_woke(s);
	if (sim_chance(&s->random, 0.5))
		sim_host_turn(s);
	for (uint32_t r = 0; r < s->plan.readers; r++)
		sim_host_read(s, r);
	sim_host_read_acks(s);
	sim_host_note_empty(s);
	sim_host_turn(s);
	/* A timer of the monotonic clock goes on where it was. */
	sim_at(s, s->now + sim_below(&s->random, HW_NS_PER_S < s->plan.tick_ns ? HW_NS_PER_S : s->plan.tick_ns),
	       SIM_TICK, 0, ++h->tick_stamp, 0);
}

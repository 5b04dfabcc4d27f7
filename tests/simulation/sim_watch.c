/* SPDX-License-Identifier: MIT */
/*
 * Shows the oracle the input and output of the core, by the linker's --wrap. Changes nothing, with three exceptions: a
 * lie (enum sim_lie) that is possible only here, turns that take longer than a millisecond, and the length of a tick in
 * runs of years.
 */
#include <string.h>

#include "heartwheel/pace.h"
#include "sim.h"

#define LONG_TURN_NS (11 * HW_NS_PER_MS / 10)
#define TURN_OVER    0.1 /* the probability that a turn takes that long while the core has work left */

bool __real_hw_monitor_next(struct hw_monitor *m, struct hw_now now, unsigned *budget, struct hw_out *out);
bool __wrap_hw_monitor_next(struct hw_monitor *m, struct hw_now now, unsigned *budget, struct hw_out *out);
size_t __real_hw_monitor_messages(struct hw_monitor *m, struct hw_now now, struct hw_message *msgs, size_t n);
size_t __wrap_hw_monitor_messages(struct hw_monitor *m, struct hw_now now, struct hw_message *msgs, size_t n);
bool __real_hw_blind_begin(struct hw_blind *b, enum hw_cause cause, struct hw_mono at, bool lossy);
bool __wrap_hw_blind_begin(struct hw_blind *b, enum hw_cause cause, struct hw_mono at, bool lossy);
bool __real_hw_blind_end(struct hw_blind *b, enum hw_cause cause, struct hw_mono at);
bool __wrap_hw_blind_end(struct hw_blind *b, enum hw_cause cause, struct hw_mono at);
void __real_hw_monitor_link(struct hw_monitor *m, struct hw_now now, unsigned source, bool up);
void __wrap_hw_monitor_link(struct hw_monitor *m, struct hw_now now, unsigned source, bool up);
void __real_hw_monitor_publisher(struct hw_monitor *m, struct hw_now now, bool up);
void __wrap_hw_monitor_publisher(struct hw_monitor *m, struct hw_now now, bool up);
void __real_hw_monitor_barrier(struct hw_monitor *m, struct hw_now now, unsigned source, uint64_t number);
void __wrap_hw_monitor_barrier(struct hw_monitor *m, struct hw_now now, unsigned source, uint64_t number);
void __real_hw_monitor_loaded(struct hw_monitor *m);
void __wrap_hw_monitor_loaded(struct hw_monitor *m);
struct hw_pace_woke __real_hw_pace_woke(struct hw_pace *p, struct hw_mono now, int64_t ahead_ns,
                                        int64_t stall_after_ns);
struct hw_pace_woke __wrap_hw_pace_woke(struct hw_pace *p, struct hw_mono now, int64_t ahead_ns,
                                        int64_t stall_after_ns);
void __real_hw_pace_sleeps(struct hw_pace *p, struct hw_mono now, int64_t wait_ns);
void __wrap_hw_pace_sleeps(struct hw_pace *p, struct hw_mono now, int64_t wait_ns);

/* --- blindness --------------------------------------------------------------- */

/* While the monitor is created, the oracle does not know it yet. */
static void watch(void)
{
	if (sim_running->host.m)
		sim_oracle_watch(sim_running);
}

bool __wrap_hw_blind_begin(struct hw_blind *b, enum hw_cause cause, struct hw_mono at, bool lossy)
{
	bool changed = __real_hw_blind_begin(b, cause, at, lossy);
	watch();
	return changed;
}

bool __wrap_hw_blind_end(struct hw_blind *b, enum hw_cause cause, struct hw_mono at)
{
	bool changed = __real_hw_blind_end(b, cause, at);
	watch();
	return changed;
}

/* --- out of the core --------------------------------------------------------- */

static void show_transition(struct sim *s, const struct hw_transition *t)
{
	uint32_t n = sim_host_number(hw_registry_get(hw_monitor_registry(s->host.m), t->device));
	s->host.shown = *t;
	sim_oracle_transition(s, n, t);
	if (s->lie == SIM_TWICE && t->state == HW_STATE_OFFLINE)
		sim_oracle_transition(s, n, t);
}

static void show(struct sim *s, const struct hw_out *out)
{
	switch (out->kind) {
	case HW_OUT_TRANSITION:
		show_transition(s, &out->transition);
		break;
	case HW_OUT_BARRIER:
		sim_oracle_barrier(s, out->barrier);
		break;
	case HW_OUT_BLIND:
		sim_oracle_told(s, out);
		break;
	case HW_OUT_CANARY:
		sim_note(s, "canary", out->canary.group, out->canary.filter);
		break;
	case HW_OUT_DEAF:
		sim_trace(s, out->deaf.begun ? "deaf" : "hears", out->deaf.group, out->deaf.length_ns);
		sim_oracle_deaf(s, out->deaf.group, out->deaf.begun);
		break;
	case HW_OUT_UPSTREAM:
		sim_oracle_upstream(s, out->upstream.group, out->upstream.begun);
		break;
	case HW_OUT_REOPEN:
		sim_trace(s, "reopen", 0, 0);
		break;
	case HW_OUT_RECONNECT:
		sim_trace(s, "reconnect", out->source, 0);
		sim_world_gives_up(s, out->source);
		break;
	default:
		break;
	}
}

bool __wrap_hw_monitor_next(struct hw_monitor *m, struct hw_now now, unsigned *budget, struct hw_out *out)
{
	struct sim *s = sim_running;
	unsigned before = *budget;
	if (s->lie == SIM_IDLE && s->now > s->plan.trouble_ns / 2)
		return false;
	bool any = __real_hw_monitor_next(m, now, budget, out);
	watch();
	if (any || *budget < before)
		s->host.spins = 0;
	if (any)
		show(s, out);
	return any;
}

/* --- into the core: messages ------------------------------------------------- */

typedef void visitor(struct sim *s, const struct sim_element *e);

static void note_read(struct sim *s, const struct sim_element *e)
{
	if (e->goodbye)
		sim_oracle_read_goodbye(s, e->device);
	else
		sim_oracle_read(s, e->device, e->timeout_ms);
}

static void note_goodbye(struct sim *s, const struct sim_element *e)
{
	if (e->goodbye)
		sim_oracle_took_goodbye(s, e->device);
}

/* Returns how many elements of a list the core has handled: as many as it reports, or all if it has finished the
 * list. */
static size_t gone_through(const struct sim_list *l, const struct hw_message *msg, bool done)
{
	size_t k = done ? l->n : 0;
	while (k < l->n && l->element[k].end <= msg->done)
		k++;
	return k;
}

/* Visits each heartbeat and goodbye in the first `taken` messages that the core has not handled before, and those of
 * the next message as far as the core has handled it. */
static void each_taken(struct sim *s, const struct hw_message *msgs, size_t n, size_t taken, visitor *visit)
{
	for (size_t k = 0; k < n && k <= taken; k++) {
		const struct sim_read *x = sim_mqtt_read(msgs[k].topic);
		const struct sim_packet *p = &x->packet;
		bool done = k < taken, said = p->what == SIM_HEARTBEAT || p->what == SIM_GOODBYE;
		if (p->what == SIM_LIST) {
			const struct sim_list *l = sim_list_of(s, p);
			size_t end = gone_through(l, &msgs[k], done);
			for (size_t at = k == 0 ? s->host.elements_taken[x->reader] : 0; at < end; at++)
				visit(s, &l->element[at]);
		} else if (done && p->what == SIM_STATE) {
			sim_oracle_bridge(s, p->device, p->online);
		} else if (done && said && !p->retained) {
			visit(s, &(struct sim_element){.device = p->device,
			                               .timeout_ms = p->timeout_ms,
			                               .goodbye = p->what == SIM_GOODBYE});
		}
	}
}

size_t __wrap_hw_monitor_messages(struct hw_monitor *m, struct hw_now now, struct hw_message *msgs, size_t n)
{
	struct sim *s = sim_running;
	const struct sim_read *first = sim_mqtt_read(msgs[0].topic), *next = NULL;
	uint32_t r = first->reader;
	size_t taken = __real_hw_monitor_messages(m, now, msgs, n);
	bool left = taken < n;
	watch();
	s->host.leftovers += left;
	if (left && s->lie == SIM_LEFT_OUT)
		taken = n;
	each_taken(s, msgs, n, taken, note_read);
	each_taken(s, msgs, n, taken, note_goodbye);
	s->host.left[r] = taken < n;
	if (taken < n)
		next = sim_mqtt_read(msgs[taken].topic);
	s->host.elements_taken[r] = next && next->packet.what == SIM_LIST
	                                    ? gone_through(sim_list_of(s, &next->packet), &msgs[taken], false)
	                                    : 0;
	if (taken < n && sim_chance(&s->random, TURN_OVER)) {
		sim_world_look(s);
		s->now += LONG_TURN_NS;
	}
	return taken;
}

/* --- into the core: signs ---------------------------------------------------- */

void __wrap_hw_monitor_link(struct hw_monitor *m, struct hw_now now, unsigned source, bool up)
{
	struct sim *s = sim_running;
	s->host.link[source].up = up;
	sim_oracle_link(s, source, up);
	__real_hw_monitor_link(m, now, source, up);
}

void __wrap_hw_monitor_publisher(struct hw_monitor *m, struct hw_now now, bool up)
{
	struct sim *s = sim_running;
	s->host.link[s->plan.readers].up = up;
	sim_oracle_link(s, s->plan.readers, up);
	__real_hw_monitor_publisher(m, now, up);
}

void __wrap_hw_monitor_barrier(struct hw_monitor *m, struct hw_now now, unsigned source, uint64_t number)
{
	sim_oracle_back(sim_running, source, number);
	__real_hw_monitor_barrier(m, now, source, number);
}

/* Called when the load has ended, or the monitor does not wait for it any longer. */
void __wrap_hw_monitor_loaded(struct hw_monitor *m)
{
	if (sim_running->host.load_wanted)
		sim_oracle_amnesia(sim_running);
	__real_hw_monitor_loaded(m);
}

/* --- the loop ---------------------------------------------------------------- */

/* Does not forge a barrier at the moment at which it was sent. Such a barrier proves nothing to the core, which
 * would request another one, thousands of times. */
static void forge(struct sim *s, struct hw_mono at)
{
	struct hw_now now = {.mono = at, .wall_ms = sim_host_now(s).wall_ms};
	for (uint32_t r = 0; s->host.to_forge && r < s->plan.readers; r++)
		__real_hw_monitor_barrier(s->host.m, now, r, s->host.to_forge);
	s->host.to_forge = 0;
}

struct hw_pace_woke __wrap_hw_pace_woke(struct hw_pace *p, struct hw_mono now, int64_t ahead_ns, int64_t stall_after_ns)
{
	struct sim *s = sim_running;
	struct hw_pace_woke w = __real_hw_pace_woke(p, now, ahead_ns, stall_after_ns);
	s->host.slept_known_ns = ahead_ns;
	forge(s, now);
	if (s->host.to_blind) {
		w.stalled = true;
		w.planned = hw_mono_add(now, -HW_NS_PER_S);
	}
	s->host.to_blind = false;
	return w;
}

/* The loop sleeps until its timer or its tick, whichever comes first. */
void __wrap_hw_pace_sleeps(struct hw_pace *p, struct hw_mono now, int64_t wait_ns)
{
	const struct sim *s = sim_running;
	bool long_tick = s->plan.tick_ns > HW_NS_PER_S;
	int64_t until_ns = s->host.timer_ns < s->plan.tick_ns ? s->host.timer_ns : s->plan.tick_ns;
	__real_hw_pace_sleeps(p, now, long_tick ? until_ns : wait_ns);
}

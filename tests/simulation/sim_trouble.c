/* SPDX-License-Identifier: MIT */
/* The troubles of the plan. Troubles overlap at random. A trouble that does not fit the present ones does not
 * happen: for example, a broker that is down cannot be stopped. */
#include "sim.h"

enum place { AT_BROKER, AT_HOST, AT_STORE };

static const struct {
	const char *name;
	enum place place;
} kinds[SIM_TROUBLE_KINDS] = {
	[SIM_BROKER_STANDS] = {"broker stands", AT_BROKER},
	[SIM_BROKER_RESTART] = {"broker restarts", AT_BROKER},
	[SIM_BROKER_DIES] = {"broker dies", AT_BROKER},
	[SIM_HOST_STANDS] = {"monitor stands", AT_HOST},
	[SIM_HOST_SLEEPS] = {"monitor sleeps", AT_HOST},
	[SIM_HOST_DIES] = {"monitor dies", AT_HOST},
	[SIM_NET_CUT] = {"net cut", AT_BROKER},
	[SIM_PUBLISHER_LOST] = {"publisher lost", AT_HOST},
	[SIM_RIGHT_LOST] = {"right lost", AT_BROKER},
	[SIM_SOCKETS_SLOW] = {"sockets slow", AT_BROKER},
	[SIM_PIPES_SLOW] = {"pipes slow", AT_BROKER},
	[SIM_STORE_AWAY] = {"store away", AT_STORE},
	[SIM_WALL_STEP] = {"wall clock", AT_HOST},
	[SIM_STORE_EMPTIED] = {"store emptied", AT_STORE},
	[SIM_STORE_ROLLED_BACK] = {"store rolled back", AT_STORE},
	[SIM_STORE_FULL] = {"store full", AT_STORE},
	[SIM_STORE_HALF] = {"store half", AT_STORE},
	[SIM_FORGET] = {"forget", AT_HOST},
	[SIM_READER_STANDS] = {"reader stands", AT_HOST},
	[SIM_TWICE_DELIVERED] = {"twice delivered", AT_BROKER},
	[SIM_RELOAD] = {"reload", AT_HOST},
	[SIM_BROKER_PAUSES] = {"broker pauses", AT_BROKER},
	[SIM_READS_ON] = {"broker reads on", AT_BROKER},
	[SIM_BARRIERS_LOST] = {"barriers lost", AT_BROKER},
	[SIM_BRIDGE_AWAY] = {"bridge away", AT_BROKER},
};

const char *sim_trouble_name(enum sim_trouble_kind kind)
{
	return kinds[kind].name;
}

/* --- reloads ----------------------------------------------------------------- */

static void take_configuration(struct sim *s)
{
	s->oracle.reloaded_at = sim_oracle_mono(s);
	sim_host_reload(s);
}

static void reload(struct sim *s, int64_t arg)
{
	static const double factors[] = {0.5, 0.75, 1.5, 2};
	static const int64_t delays_ms[] = {0, 1000, 3000, 8000};
	struct sim_plan *p = &s->plan;
	p->reloaded = true;
	for (unsigned g = 0; g < SIM_GROUPS_MAX; g++) {
		p->timeout_was_ns[g] = p->timeout_ns[g];
		p->timeout_ns[g] = (int64_t)((double)p->timeout_ns[g] * factors[(arg >> 2 * g) % 4]);
		p->timeout_ns[g] -= p->timeout_ns[g] % HW_NS_PER_MS;
	}
	p->goodbye_delay_was_ms = p->goodbye_delay_ms;
	p->goodbye_delay_ms = delays_ms[(arg >> 2 * SIM_GROUPS_MAX) % 4];
	take_configuration(s);
}

static void swap(int64_t *a, int64_t *b)
{
	int64_t was = *a;
	*a = *b;
	*b = was;
}

static void reload_back(struct sim *s)
{
	struct sim_plan *p = &s->plan;
	p->reloaded = false;
	for (unsigned g = 0; g < SIM_GROUPS_MAX; g++)
		swap(&p->timeout_ns[g], &p->timeout_was_ns[g]);
	swap(&p->goodbye_delay_ms, &p->goodbye_delay_was_ms);
	take_configuration(s);
}

/* --- begin: whether it can happen now; and happens ---------------------------- */

static bool begin_at_host(struct sim *s, const struct sim_trouble *t)
{
	struct sim_host *h = &s->host;
	bool awake = !h->stopped && !h->asleep;
	switch (t->kind) {
	case SIM_HOST_STANDS:
		return awake && h->m && (sim_host_freeze(s, false), true);
	case SIM_HOST_SLEEPS:
		return awake && (sim_host_freeze(s, true), true);
	case SIM_HOST_DIES:
		return h->m && !h->asleep && (sim_host_crash(s), true);
	case SIM_READER_STANDS:
		return awake && sim_host_stop_reader(s, (uint32_t)t->arg % s->plan.readers);
	case SIM_RELOAD:
		return awake && h->m && !s->plan.reloaded && (reload(s, t->arg), true);
	case SIM_PUBLISHER_LOST:
		sim_mqtt_lose(s, (t->arg >> 1) % 3 != 1, (t->arg >> 1) % 3 != 2);
		return true;
	case SIM_FORGET:
		sim_host_forget(s, (uint32_t)t->arg % s->plan.devices);
		return true;
	default:
		h->wall_offset_ms += t->arg; /* SIM_WALL_STEP */
		return true;
	}
}

static bool begin_at_store(struct sim *s, const struct sim_trouble *t)
{
	switch (t->kind) {
	case SIM_STORE_EMPTIED:
		return !s->store.away && (sim_store_empty(s), true);
	case SIM_STORE_FULL:
		return !s->store.full && (s->store.full = true);
	case SIM_STORE_HALF:
		return !s->store.half && (s->store.half = true);
	default:
		return !s->store.away && (sim_store_leave(s, true), true);
	}
}

static bool begin_at_broker(struct sim *s, const struct sim_trouble *t)
{
	bool running = s->broker.state == SIM_RUNNING;
	switch (t->kind) {
	case SIM_BROKER_STANDS:
		return running && (sim_broker_stop(s), true);
	case SIM_NET_CUT:
		return !s->broker.cut && (sim_broker_cut(s, true), true);
	case SIM_RIGHT_LOST:
		s->broker.mute[t->arg % s->plan.groups]++;
		return true;
	case SIM_SOCKETS_SLOW:
		s->broker.service_ns = t->arg;
		return true;
	case SIM_PIPES_SLOW:
		s->broker.delay_ns = t->arg;
		return true;
	case SIM_BROKER_PAUSES:
		return !s->broker.pauses_until && (sim_broker_pause(s, s->now + t->length_ns), true);
	case SIM_READS_ON:
		if (s->broker.pauses_until)
			return false;
		s->broker.reads_on = true;
		sim_broker_pause(s, s->now + t->length_ns);
		return true;
	case SIM_BRIDGE_AWAY:
		sim_broker_bridge(s, (unsigned)(t->arg % s->plan.groups), true);
		return true;
	case SIM_BARRIERS_LOST:
		sim_broker_lose(s, s->plan.devices + s->plan.readers);
		return true;
	case SIM_TWICE_DELIVERED:
		return !s->broker.twice && (s->broker.twice = true);
	default:
		return running && (sim_broker_down(s, t->kind == SIM_BROKER_RESTART), true);
	}
}

void sim_trouble_begin(struct sim *s, uint32_t k)
{
	static bool (*const begin[])(struct sim *, const struct sim_trouble *) = {
		[AT_BROKER] = begin_at_broker, [AT_HOST] = begin_at_host, [AT_STORE] = begin_at_store};
	struct sim_trouble *t = &s->plan.trouble[k];
	sim_trace(s, kinds[t->kind].name, k, t->length_ns / HW_NS_PER_MS);
	t->taken = begin[kinds[t->kind].place](s, t);
	if (t->taken && t->arg & 1 && !s->store.away)
		sim_store_save(s);
	if (t->taken)
		sim_at(s, s->now + t->length_ns, SIM_TROUBLE_OVER, k, 0, 0);
}

/* --- end --------------------------------------------------------------------- */

static void end_at_host(struct sim *s, uint32_t k)
{
	const struct sim_trouble *t = &s->plan.trouble[k];
	bool awake = !s->host.stopped && !s->host.asleep;
	switch (t->kind) {
	case SIM_HOST_STANDS:
		if (s->host.stopped && !s->host.asleep)
			sim_host_thaw(s);
		break;
	case SIM_HOST_SLEEPS:
		sim_host_thaw(s);
		break;
	case SIM_HOST_DIES:
		sim_host_on_start(s);
		break;
	case SIM_READER_STANDS:
		sim_host_go_on_reader(s, (uint32_t)t->arg % s->plan.readers);
		break;
	case SIM_RELOAD:
		if (awake)
			reload_back(s);
		else
			sim_at(s, s->now + HW_NS_PER_S, SIM_TROUBLE_OVER, k, 0, 0);
		break;
	default: /* what was over at once */
		break;
	}
}

static void end_at_store(struct sim *s, uint32_t k)
{
	switch (s->plan.trouble[k].kind) {
	case SIM_STORE_AWAY:
		sim_store_leave(s, false);
		break;
	case SIM_STORE_ROLLED_BACK:
		sim_store_roll_back(s);
		sim_store_leave(s, false);
		break;
	case SIM_STORE_FULL:
		s->store.full = false;
		sim_store_on_due(s);
		break;
	case SIM_STORE_HALF:
		s->store.half = false;
		break;
	default: /* what was over at once */
		break;
	}
}

static void end_at_broker(struct sim *s, uint32_t k)
{
	const struct sim_trouble *t = &s->plan.trouble[k];
	uint32_t group = (uint32_t)(t->arg % s->plan.groups);
	switch (t->kind) {
	case SIM_BROKER_STANDS:
		sim_broker_resume(s);
		break;
	case SIM_NET_CUT:
		sim_broker_cut(s, false);
		break;
	case SIM_RIGHT_LOST:
		if (--s->broker.mute[group] == 0)
			sim_oracle_unmuted(s, group);
		break;
	case SIM_SOCKETS_SLOW:
		s->broker.service_ns = s->plan.service_ns;
		break;
	case SIM_PIPES_SLOW:
		s->broker.delay_ns = s->plan.delay_ns;
		break;
	case SIM_READS_ON:
		s->broker.reads_on = false;
		break;
	case SIM_BRIDGE_AWAY:
		sim_broker_bridge(s, group, false);
		break;
	case SIM_BARRIERS_LOST: /* until the connection is opened again */
	case SIM_BROKER_PAUSES: /* it sees by itself that it is over */
		break;
	case SIM_TWICE_DELIVERED:
		s->broker.twice = false;
		break;
	default:
		sim_broker_up(s, t->arg & 1);
	}
}

void sim_trouble_end(struct sim *s, uint32_t k)
{
	static void (*const end[])(struct sim *, uint32_t) = {
		[AT_BROKER] = end_at_broker, [AT_HOST] = end_at_host, [AT_STORE] = end_at_store};
	sim_trace(s, "over", k, 0);
	end[kinds[s->plan.trouble[k].kind].place](s, k);
}

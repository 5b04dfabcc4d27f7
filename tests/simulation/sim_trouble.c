/* SPDX-License-Identifier: MIT */
/* What goes wrong, as the plan says. Troubles overlap as chance has it; one that does not fit to what is wrong already
 * (a broker that is down cannot be stopped) does not happen. */
#include "sim.h"

static const char *const names[SIM_TROUBLE_KINDS] = {
	"broker stands", "broker restarts", "broker dies",    "monitor stands", "monitor sleeps",
	"monitor dies",  "net cut",         "publisher lost", "sockets slow",   "pipes slow",
	"store away",    "wall clock",      "forget"};

const char *sim_trouble_name(enum sim_trouble_kind kind)
{
	return names[kind];
}

/* Whether it can happen now; and happens. */
static bool begin(struct sim *s, struct sim_trouble *t)
{
	struct sim_host *h = &s->host;
	bool free_host = !h->stopped && !h->asleep, running = s->broker.state == SIM_RUNNING;
	switch (t->kind) {
	case SIM_BROKER_STANDS:
		return running && (sim_broker_stop(s), true);
	case SIM_BROKER_RESTART:
	case SIM_BROKER_DIES:
		return running && (sim_broker_down(s, t->kind == SIM_BROKER_RESTART), true);
	case SIM_HOST_STANDS:
		return free_host && h->m && (sim_host_freeze(s, false), true);
	case SIM_HOST_SLEEPS:
		return free_host && (sim_host_freeze(s, true), true);
	case SIM_HOST_DIES:
		return h->m && !h->asleep && (sim_host_crash(s), true);
	case SIM_NET_CUT:
		return !s->broker.cut && (sim_broker_cut(s, true), true);
	case SIM_PUBLISHER_LOST:
		sim_host_lose_publisher(s);
		return true;
	case SIM_SOCKETS_SLOW:
		s->broker.service_ns = t->arg;
		return true;
	case SIM_PIPES_SLOW:
		s->broker.delay_ns = t->arg;
		return true;
	case SIM_STORE_AWAY:
		return !s->store.away && (sim_store_leave(s, true), true);
	case SIM_WALL_STEP:
		h->wall_offset_ms += t->arg;
		return true;
	default:
		sim_host_forget(s, (uint32_t)t->arg % s->plan.devices);
		return true;
	}
}

void sim_trouble_begin(struct sim *s, uint32_t k)
{
	struct sim_trouble *t = &s->plan.trouble[k];
	sim_trace(s, names[t->kind], k, t->length_ns / HW_NS_PER_MS);
	t->taken = begin(s, t);
	if (!t->taken)
		return;
	if (t->kind < SIM_STORE_AWAY)
		sim_oracle_trouble(s, t);
	sim_at(s, s->now + t->length_ns, SIM_TROUBLE_OVER, k, 0, 0);
}

void sim_trouble_end(struct sim *s, uint32_t k)
{
	struct sim_trouble *t = &s->plan.trouble[k];
	sim_trace(s, "over", k, 0);
	switch (t->kind) {
	case SIM_BROKER_STANDS:
		sim_broker_resume(s);
		break;
	case SIM_BROKER_RESTART:
	case SIM_BROKER_DIES:
		sim_broker_up(s, t->arg & 1);
		break;
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
	case SIM_NET_CUT:
		sim_broker_cut(s, false);
		break;
	case SIM_SOCKETS_SLOW:
		s->broker.service_ns = s->plan.service_ns;
		break;
	case SIM_PIPES_SLOW:
		s->broker.delay_ns = s->plan.delay_ns;
		break;
	case SIM_STORE_AWAY:
		sim_store_leave(s, false);
		break;
	default:
		break;
	}
}

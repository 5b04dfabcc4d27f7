/* SPDX-License-Identifier: MIT */
#include "nodes_world.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

const char *const nw_names[NW_HOSTS] = {"a", "b", "c", "d", "e"};

void *nw_alloc(size_t size)
{
	void *p = calloc(1, size);
	if (!p) {
		fprintf(stderr, "simulate: out of memory\n");
		exit(2);
	}
	return p;
}

void nw_breach(struct nw_world *w, const char *format, ...)
{
	va_list ap;
	if (w->breaches++ > 0)
		return;
	va_start(ap, format);
	vsnprintf(w->breach, sizeof(w->breach), format, ap);
	va_end(ap);
	if (w->tell)
		fprintf(w->tell, "seed %" PRIu64 ": %.2f s: %s\n", w->seed, (double)w->t / 1e9, w->breach);
}

void nw_trace(struct nw_world *w, const char *format, ...)
{
	va_list ap;
	if (!w->trace)
		return;
	fprintf(w->trace, "%9.2f ", (double)w->t / 1e9);
	va_start(ap, format);
	vfprintf(w->trace, format, ap);
	va_end(ap);
	fputc('\n', w->trace);
}

/* --- wires ------------------------------------------------------------------------------------------------------ */

void nw_msg_fini(struct nw_msg *msg)
{
	if (msg->what == NW_PRESENCE)
		nw_presence_unref(msg->body);
	else
		free(msg->body);
	msg->body = NULL;
}

struct nw_msg *nw_wire_push(struct nw_wire *wire, struct nw_msg msg)
{
	if (wire->n == wire->cap) {
		size_t cap = wire->cap ? 2 * wire->cap : 16;
		struct nw_msg *ring = nw_alloc(cap * sizeof(*ring));
		for (size_t i = 0; i < wire->n; i++)
			ring[i] = wire->ring[(wire->head + i) % wire->cap];
		free(wire->ring);
		wire->ring = ring;
		wire->cap = cap;
		wire->head = 0;
	}
	struct nw_msg *at = &wire->ring[(wire->head + wire->n++) % wire->cap];
	*at = msg;
	return at;
}

struct nw_msg nw_wire_pop(struct nw_wire *wire)
{
	struct nw_msg msg = wire->ring[wire->head];
	wire->head = (wire->head + 1) % wire->cap;
	wire->n--;
	return msg;
}

void nw_wire_clear(struct nw_wire *wire)
{
	while (wire->n) {
		struct nw_msg msg = nw_wire_pop(wire);
		nw_msg_fini(&msg);
	}
}

void nw_send(struct nw_world *w, struct nw_host *h, enum nw_wires k, struct nw_msg msg)
{
	struct nw_wire *wire = &h->wire[k];
	int64_t late = sim_chance(&w->random, 0.02) ? 400 : sim_chance(&w->random, 0.2) ? 60 : 15;
	msg.at = w->t + sim_between(&w->random, 1, late) * HW_NS_PER_MS;
	msg.at = msg.at > wire->last ? msg.at : wire->last;
	wire->last = msg.at;
	nw_wire_push(wire, msg);
}

/* --- time ------------------------------------------------------------------------------------------------------- */

static bool redis_reachable(const struct nw_world *w, const struct nw_host *h)
{
	return h->cut_redis <= w->t && w->redis_stands <= w->t;
}

/* Serves what has arrived at the far end of a wire. */
static void serve(struct nw_world *w, struct nw_host *h, enum nw_wires k)
{
	struct nw_wire *wire = &h->wire[k];
	while (wire->n && wire->ring[wire->head].at <= w->t) {
		bool redis = k == NW_TO_REDIS;
		if (redis ? !redis_reachable(w, h) : !nw_broker_reachable(w, h))
			return;
		struct nw_msg msg = nw_wire_pop(wire);
		if (redis)
			nw_redis_serve(w, h, &msg);
		else
			nw_broker_serve(w, h, &msg);
		nw_msg_fini(&msg);
	}
}

static void live(struct nw_world *w)
{
	for (int d = 0; d < w->plan.devices; d++) {
		struct nw_life *life = &w->device[d];
		if (life->alive && w->t >= life->next_beat) {
			nw_broker_beat(w, d);
			life->next_beat = w->t + life->interval;
		}
	}
	if (w->t < w->trouble_end + w->plan.calm_ns / 2 && sim_chance(&w->random, w->plan.turns * NW_STEP_NS / 1e9)) {
		struct nw_life *life = &w->device[sim_below(&w->random, w->plan.devices)];
		life->alive = !life->alive;
		life->since = w->t;
		life->next_beat = w->t;
		w->count.deaths += !life->alive;
	}
}

static void step(struct nw_world *w)
{
	int order[NW_HOSTS];
	nw_trouble_step(w);
	live(w);
	nw_broker_step(w);
	for (int i = 0; i < w->plan.hosts; i++)
		order[i] = i;
	for (int i = w->plan.hosts - 1; i > 0; i--) {
		int j = (int)sim_below(&w->random, i + 1), k = order[i];
		order[i] = order[j];
		order[j] = k;
	}
	for (int i = 0; i < w->plan.hosts; i++) {
		struct nw_host *h = &w->host[order[i]];
		serve(w, h, NW_TO_REDIS);
		serve(w, h, NW_TO_BROKER);
		serve(w, h, NW_TO_EVICT);
		nw_host_step(w, h);
	}
	nw_oracle_step(w);
}

void nw_init(struct nw_world *w, uint64_t seed)
{
	memset(w, 0, sizeof(*w));
	w->seed = seed;
	w->random.state = seed * UINT64_C(0x9e3779b97f4a7c15);
	w->broker.ids = 1;
	for (int i = 0; i < NW_HOSTS; i++)
		w->broker.lapse[i] = INT64_MAX;
	nw_plan_draw(w);
}

static void begin(struct nw_world *w)
{
	w->t = HW_NS_PER_S;
	w->trouble_end = w->t + w->plan.trouble_ns;
	w->redis[0].up = true;
	w->instances = 1;
	w->last_event = w->t;
	w->good_since = INT64_MAX;
	for (int i = 0; i < w->plan.hosts; i++) {
		struct nw_host *h = &w->host[i];
		h->index = h->name = i;
		h->instance = -1;
		h->drift = (sim_unit(&w->random) - 0.5) * 1e-4;
		h->mono_off = sim_between(&w->random, 1, 1000000) * HW_NS_PER_S;
		h->wall_off = (int64_t)((sim_unit(&w->random) - 0.5) * 20e9);
		h->starts_at = w->t + sim_below(&w->random, 2 * w->plan.lease_ms) * HW_NS_PER_MS;
	}
	if (w->plan.namesake)
		w->host[w->plan.hosts - 1].name = 0;
	for (int d = 0; d < w->plan.devices; d++) {
		char id[16];
		int len = snprintf(id, sizeof(id), "dev-%d", d);
		w->part[d] = hw_partition_of(id, (size_t)len);
		w->device[d].alive = true;
		w->device[d].since = w->t;
		w->device[d].interval = w->plan.timeout_ms * HW_NS_PER_MS / 3;
		w->device[d].next_beat = w->t + sim_below(&w->random, w->device[d].interval);
	}
}

void nw_run(struct nw_world *w)
{
	begin(w);
	int64_t end = w->trouble_end + w->plan.calm_ns;
	for (; w->t < end && !w->breaches; w->t += NW_STEP_NS)
		step(w);
	if (!w->breaches)
		nw_oracle_end(w);
}

void nw_fini(struct nw_world *w)
{
	for (int i = 0; i < NW_HOSTS; i++) {
		struct nw_host *h = &w->host[i];
		hw_nodes_free(h->n);
		for (int k = 0; k < NW_WIRES; k++) {
			nw_wire_clear(&h->wire[k]);
			nw_wire_clear(&h->sent[k]);
			free(h->wire[k].ring);
			free(h->sent[k].ring);
		}
		nw_presence_unref(w->broker.presence[i]);
	}
	for (int i = 0; i < NW_INSTANCES; i++)
		free(w->redis[i].entry);
	free(w->broker.held);
	free(w->grant);
	free(w->seen);
}

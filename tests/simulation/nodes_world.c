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

/* --- texts ------------------------------------------------------------------------------------------------------ */

struct nw_text *nw_text_new(const char *topic, const char *payload, size_t len)
{
	size_t topic_len = strlen(topic);
	struct nw_text *t = nw_alloc(sizeof(*t) + topic_len + len + 2);
	t->refs = 1;
	t->name = t->device = -1;
	t->topic_len = topic_len;
	t->len = len;
	memcpy(t->bytes, topic, topic_len);
	memcpy(t->bytes + topic_len + 1, payload, len);
	return t;
}

struct nw_text *nw_text_ref(struct nw_text *t)
{
	t->refs++;
	return t;
}

void nw_text_unref(struct nw_text *t)
{
	if (t && --t->refs == 0)
		free(t);
}

const char *nw_payload(const struct nw_text *t)
{
	return t->bytes + t->topic_len + 1;
}

/* --- wires ------------------------------------------------------------------------------------------------------ */

void nw_msg_fini(struct nw_msg *msg)
{
	nw_text_unref(msg->text);
	free(msg->body);
	msg->text = NULL;
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

bool nw_arrived(const struct nw_world *w, const struct nw_wire *wire)
{
	return wire->n && wire->ring[wire->head].at <= w->t;
}

/* Serves what has arrived at the far end of a wire. */
static void serve_redis(struct nw_world *w, struct nw_host *h, enum nw_links k)
{
	struct nw_wire *wire = &h->wire[NW_TO_REDIS + k];
	while (nw_arrived(w, wire) && nw_redis_reachable(w, h)) {
		struct nw_msg msg = nw_wire_pop(wire);
		nw_redis_serve(w, h, k, &msg);
		nw_msg_fini(&msg);
	}
}

static void serve_broker(struct nw_world *w, struct nw_host *h, enum nw_wires k)
{
	struct nw_wire *wire = &h->wire[k];
	while (nw_arrived(w, wire) && nw_broker_reachable(w, h)) {
		struct nw_msg msg = nw_wire_pop(wire);
		nw_broker_serve(w, h, k, &msg);
		nw_msg_fini(&msg);
	}
}

static void step(struct nw_world *w)
{
	int order[NW_HOSTS];
	nw_trouble_step(w);
	nw_fleet_step(w);
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
		for (int k = 0; k < NW_LINKS; k++)
			serve_redis(w, h, (enum nw_links)k);
		serve_broker(w, h, NW_TO_BROKER);
		serve_broker(w, h, NW_TO_BARRIERS);
		serve_broker(w, h, NW_TO_READER);
		serve_broker(w, h, NW_TO_EVICT);
		nw_host_step(w, h);
	}
	nw_oracle_step(w);
}

void nw_init(struct nw_world *w, uint64_t seed)
{
	memset(w, 0, sizeof(*w));
	w->seed = seed;
	w->random.state = seed;
	w->random.state = sim_draw(&w->random); /* otherwise the run of a seed would be that of the seed before,
	                                         * shifted by one number */
	w->broker.ids = 1;
	for (int i = 0; i < NW_HOSTS; i++)
		w->broker.session[i].lapse = w->broker.reader[i].lapse = w->broker.barriers[i].lapse = INT64_MAX;
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
		h->w = w;
		h->index = h->name = i;
		h->drift = (sim_unit(&w->random) - 0.5) * 1e-4;
		h->mono_off = sim_between(&w->random, 1, 1000000) * HW_NS_PER_S;
		h->wall_off = (int64_t)((sim_unit(&w->random) - 0.5) * 20e9);
		h->starts_at = w->t + sim_below(&w->random, 2 * w->plan.lease_ms) * HW_NS_PER_MS;
	}
	if (w->plan.namesake)
		w->host[w->plan.hosts - 1].name = 0;
	nw_fleet_begin(w);
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
		if (h->app)
			nw_host_end(w, h);
		for (int k = 0; k < NW_WIRES; k++) {
			nw_wire_clear(&h->wire[k]);
			nw_wire_clear(&h->sent[k]);
			free(h->wire[k].ring);
			free(h->sent[k].ring);
		}
	}
	for (int i = 0; i < NW_INSTANCES; i++)
		free(w->redis[i].entry);
	nw_broker_fini(w);
	nw_fleet_fini(w);
	free(w->grant);
	free(w->seen);
}

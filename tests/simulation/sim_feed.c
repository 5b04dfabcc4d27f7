/* SPDX-License-Identifier: MIT */
/*
 * The host's way from the pipes into the core, the real one (heartwheel/inflow.h), with what src/daemon/feed.c has
 * around it.
 */
#include <string.h>

#include "heartwheel/inflow.h"
#include "sim.h"
#include "sim_host_priv.h"

#define NEARLY_FULL 90
#define RELIEVED    50
#define TURN_NS     HW_NS_PER_MS
#define TURN_OVER   0.1 /* how often it is so where something is left */

/* Of a reader: what its inflow points to. */
struct sim_gathered {
	struct sim *s;
	struct hw_inflow inflow;
	struct sim_packet packet[HW_BATCH];
	char topic[HW_BATCH][40], payload[HW_BATCH][112];
	size_t told; /* of the first message that is left the core has taken so many elements */
	bool left;   /* until the next turn */
	struct sim_packet held;
};

void sim_feed_forget(struct sim *s, uint32_t r)
{
	struct sim_gathered *g = &s->host.gathered[r];
	g->inflow.first = g->inflow.n = g->told = 0;
	g->left = g->inflow.holding = false;
}

bool sim_feed_has_left(const struct sim *s, uint32_t r)
{
	return s->host.gathered[r].left;
}

/* --- out of it: what the core has taken -------------------------------------- */

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

/* How many elements of a list the core has gone through: as far as it says, or all of one that it is done with. */
static size_t gone_through(const struct sim_list *l, const struct hw_message *msg, bool done)
{
	size_t k = done ? l->n : 0;
	while (k < l->n && l->element[k].end <= msg->done)
		k++;
	return k;
}

/* Each heartbeat and goodbye that was new to the core in the messages from `from` on, and in the first that is left as
 * far as it came. */
static void each_taken(struct sim *s, const struct sim_gathered *g, size_t from, visitor *visit)
{
	for (size_t k = from; k < g->inflow.n && k <= g->inflow.first; k++) {
		const struct sim_packet *p = &g->packet[k];
		bool done = k < g->inflow.first, said = p->what == SIM_HEARTBEAT || p->what == SIM_GOODBYE;
		if (p->what == SIM_LIST) {
			const struct sim_list *l = sim_list_of(s, p);
			size_t end = gone_through(l, &g->inflow.message[k], done);
			for (size_t at = k == from ? g->told : 0; at < end; at++)
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

static void note_taken(struct sim *s, struct sim_gathered *g, size_t from)
{
	const struct hw_inflow *f = &g->inflow;
	each_taken(s, g, from, note_read);
	each_taken(s, g, from, note_goodbye);
	bool within = hw_inflow_left(f) && g->packet[f->first].what == SIM_LIST;
	g->told = within ? gone_through(sim_list_of(s, &g->packet[f->first]), &f->message[f->first], false) : 0;
}

static bool on_taken(void *arg, struct hw_now now, size_t n)
{
	struct sim_gathered *g = arg;
	struct hw_inflow *f = &g->inflow;
	struct sim *s = g->s;
	size_t from = f->first - n;
	(void)now;
	s->host.leftovers += hw_inflow_left(f);
	if (s->lie == SIM_LEFT_OUT)
		f->first = f->n;
	sim_oracle_watch(s);
	note_taken(s, g, from);
	sim_host_drain(s, 0);
	return hw_inflow_left(f) && sim_chance(&s->random, TURN_OVER);
}

/* --- into it ----------------------------------------------------------------- */

static int payload_of(const struct sim_packet *p, char *buf, size_t cap)
{
	if (p->what == SIM_CANARY)
		return snprintf(buf, cap, "{\"by\":\"sim\",\"seq\":%llu,\"canary\":true}",
		                (unsigned long long)p->number);
	if (p->what == SIM_STATE)
		return snprintf(buf, cap, p->online ? "1" : "0");
	if (p->what == SIM_GOODBYE)
		return snprintf(buf, cap, "{\"online\":false}");
	if (p->what == SIM_STATUS)
		return snprintf(buf, cap, "{\"time\":1,\"online\":%s,\"reason\":\"%s\",\"by\":\"sim\",\"seq\":%llu}",
		                p->online ? "true" : "false", p->online ? "heartbeat" : "timeout",
		                (unsigned long long)p->number);
	if (p->what == SIM_HEARTBEAT && p->timeout_ms >= 0)
		return snprintf(buf, cap, "{\"timeout\":%lld.%03lld}", (long long)(p->timeout_ms / 1000),
		                (long long)(p->timeout_ms % 1000));
	return 0;
}

/* A canary is back on the filter that it was sent for. */
static int topic_of(const struct sim *s, const struct sim_packet *p, char *buf, size_t cap)
{
	static const char *const space[] = {"nodes", "slow"};
	bool canary = p->what == SIM_CANARY;
	if (p->what == SIM_STATE)
		return snprintf(buf, cap, "bridge/%u/state", p->device);
	unsigned group = canary ? p->device / 2 : s->fleet.device[p->device].group;
	const char *leaf = s->plan.batch[group]                                       ? "heard"
	                   : (canary ? p->device % 2 == 0 : p->what == SIM_HEARTBEAT) ? "heartbeat"
	                                                                              : "status";
	if (canary)
		return snprintf(buf, cap, "%s/heartwheel-sim/%s", space[group], leaf);
	return snprintf(buf, cap, "%s/d%u/%s", space[group], p->device, leaf);
}

/* A lie's: the first element stands for the list. */
static size_t cut_list(const struct sim_list *l, char *buf, size_t cap)
{
	return (size_t)snprintf(buf, cap, "%.*s]", (int)l->element[0].end, l->text);
}

static void gather(struct sim *s, struct sim_gathered *g, const struct sim_packet *p)
{
	if (s->lie == SIM_DEAF && p->what != SIM_CANARY && s->now > s->plan.trouble_ns / 2)
		return;
	if (s->lie == SIM_UNTOLD && p->what == SIM_STATE) {
		sim_oracle_bridge(s, p->device, p->online);
		return;
	}
	size_t k = g->inflow.n;
	const char *payload = g->payload[k];
	size_t len = (size_t)topic_of(s, p, g->topic[k], sizeof(g->topic[k])), size;
	if (p->what == SIM_LIST && s->lie == SIM_FIRST_ALONE && sim_list_of(s, p)->n > 0) {
		size = cut_list(sim_list_of(s, p), g->payload[k], sizeof(g->payload[k]));
	} else if (p->what == SIM_LIST) {
		payload = sim_list_of(s, p)->text;
		size = sim_list_of(s, p)->len;
	} else {
		size = (size_t)payload_of(p, g->payload[k], sizeof(g->payload[k]));
	}
	g->packet[k] = *p;
	*hw_inflow_slot(&g->inflow) = (struct hw_message){.topic = g->topic[k],
	                                                  .topic_len = len,
	                                                  .retained = p->retained,
	                                                  .payload = payload,
	                                                  .payload_len = size};
}

static void note_fill(struct sim *s, uint32_t r)
{
	struct sim_pipe *pipe = &s->broker.pipe[r];
	unsigned percent = sim_broker_fill(s, r);
	if (percent > NEARLY_FULL && !pipe->filled) {
		pipe->filled = true;
		hw_monitor_loss(s->host.m, sim_host_now(s), r);
		sim_oracle_watch(s);
	} else if (percent < RELIEVED) {
		pipe->filled = false;
	}
}

/* Everything but a message. */
static void on_sign(struct sim *s, uint32_t r, const struct sim_packet *p)
{
	if (p->what == SIM_CLOSE) {
		sim_host_down(s, r);
		return;
	}
	sim_oracle_back(s, r, p->number);
	hw_monitor_barrier(s->host.m, sim_host_now(s), r, p->number);
	sim_oracle_watch(s);
}

/* Whether all that has come is done with, beginning with what had to wait. */
static bool take_packets(struct sim *s, uint32_t r)
{
	struct sim_gathered *g = &s->host.gathered[r];
	struct hw_inflow *f = &g->inflow;
	struct hw_now now = sim_host_now(s);
	if (!hw_inflow_begin(f, s->host.m, now))
		return false;
	while (f->holding || sim_broker_read(s, r, &g->held)) {
		bool message = g->held.what != SIM_CLOSE && g->held.what != SIM_BARRIER;
		if (!hw_inflow_takes(f, s->host.m, now, message))
			return false;
		sim_oracle_watch(s);
		if (message)
			gather(s, g, &g->held);
		else
			on_sign(s, r, &g->held);
		if (g->held.what == SIM_CLOSE)
			return true;
	}
	return hw_inflow_flush(f, s->host.m, now);
}

void sim_feed_init(struct sim *s)
{
	s->host.gathered = sim_calloc(SIM_READERS_MAX, sizeof(*s->host.gathered));
	for (unsigned r = 0; r < SIM_READERS_MAX; r++) {
		struct sim_gathered *g = &s->host.gathered[r];
		g->s = s;
		g->inflow = (struct hw_inflow){.source = r, .on_taken = on_taken, .arg = g};
	}
}

void sim_feed_fini(struct sim *s)
{
	free(s->host.gathered);
}

void sim_host_read(struct sim *s, uint32_t r)
{
	struct sim_gathered *g = &s->host.gathered[r];
	if (s->host.reader_stopped[r] >= 0)
		return;
	note_fill(s, r);
	g->left = !take_packets(s, r);
	if (g->left)
		sim_at(s, s->now + TURN_NS, SIM_PIPE, r, 0, 0);
}

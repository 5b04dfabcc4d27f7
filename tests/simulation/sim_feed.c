/* SPDX-License-Identifier: MIT */
/*
 * The host's way from the pipes into the core, as src/daemon/feed.c goes it: in batches, in order. What the core has
 * not worked off of a list when the turn is over waits for the next one, and whatever was read behind it waits too.
 */
#include <string.h>

#include "sim.h"
#include "sim_host_priv.h"

#define NEARLY_FULL 90
#define RELIEVED    50
#define TURN_NS     HW_NS_PER_MS
#define TURN_OVER   0.1 /* how often it is so where something is left */

/* Of a reader. Invariant: nothing is added while something is left of before (first > 0). */
struct sim_gathered {
	struct hw_message message[HW_BATCH];
	struct sim_packet packet[HW_BATCH];
	char topic[HW_BATCH][40], payload[HW_BATCH][112];
	size_t first, n; /* those from first on wait for the core */
	size_t told;     /* so many elements of the first one it has taken */
	bool left;       /* until the next turn */
	bool holding;    /* this one waits behind them */
	struct sim_packet held;
};

void sim_feed_init(struct sim *s)
{
	s->host.gathered = sim_calloc(SIM_READERS_MAX, sizeof(*s->host.gathered));
}

void sim_feed_fini(struct sim *s)
{
	free(s->host.gathered);
}

void sim_feed_forget(struct sim *s, uint32_t r)
{
	struct sim_gathered *g = &s->host.gathered[r];
	g->first = g->n = g->told = 0;
	g->left = g->holding = false;
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

/* Each heartbeat and goodbye that was new to the core in the first `n` messages, and in the next as far as it came. */
static void each_taken(struct sim *s, const struct sim_gathered *g, size_t n, visitor *visit)
{
	for (size_t k = g->first; k < g->n && k <= g->first + n; k++) {
		const struct sim_packet *p = &g->packet[k];
		bool done = k < g->first + n, said = p->what == SIM_HEARTBEAT || p->what == SIM_GOODBYE;
		if (p->what == SIM_LIST) {
			const struct sim_list *l = sim_list_of(s, p);
			size_t end = gone_through(l, &g->message[k], done);
			for (size_t at = k == g->first ? g->told : 0; at < end; at++)
				visit(s, &l->element[at]);
		} else if (done && said && !p->retained) {
			visit(s, &(struct sim_element){.device = p->device,
			                               .timeout_ms = p->timeout_ms,
			                               .goodbye = p->what == SIM_GOODBYE});
		}
	}
}

static void note_taken(struct sim *s, struct sim_gathered *g, size_t n)
{
	each_taken(s, g, n, note_read);
	each_taken(s, g, n, note_goodbye);
	g->first += n;
	bool within = g->first < g->n && g->packet[g->first].what == SIM_LIST;
	g->told = within ? gone_through(sim_list_of(s, &g->packet[g->first]), &g->message[g->first], false) : 0;
}

/* Gives the core what was gathered. False if the turn is over before that is worked off. */
static bool flush(struct sim *s, uint32_t r)
{
	struct sim_gathered *g = &s->host.gathered[r];
	bool late = false;
	while (g->first < g->n && !late) {
		size_t n = g->n - g->first;
		size_t done = hw_monitor_messages(s->host.m, sim_host_now(s), g->message + g->first, n);
		s->host.leftovers += done < n;
		if (s->lie == SIM_LEFT_OUT)
			done = n;
		sim_oracle_watch(s);
		note_taken(s, g, done);
		sim_host_drain(s, 0);
		late = g->first < g->n && sim_chance(&s->random, TURN_OVER);
	}
	if (g->first == g->n)
		g->first = g->n = 0;
	return g->n == 0;
}

/* --- into it ----------------------------------------------------------------- */

static int payload_of(const struct sim_packet *p, char *buf, size_t cap)
{
	if (p->what == SIM_CANARY)
		return snprintf(buf, cap, "{\"by\":\"sim\",\"seq\":%llu,\"canary\":true}",
		                (unsigned long long)p->number);
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
	size_t k = g->n++;
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
	g->message[k] = (struct hw_message){.topic = g->topic[k],
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

static void note_arrived(struct sim *s, uint32_t r)
{
	hw_monitor_arrived(s->host.m, sim_host_now(s), r);
	sim_oracle_watch(s);
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
	bool arrived = g->n > 0;
	if (arrived)
		note_arrived(s, r);
	if (!flush(s, r))
		return false;
	while (g->holding || sim_broker_read(s, r, &g->held)) {
		bool message = g->held.what != SIM_CLOSE && g->held.what != SIM_BARRIER;
		g->holding = true;
		if ((!message || g->n == HW_BATCH) && !flush(s, r))
			return false;
		g->holding = false;
		if (!message) {
			on_sign(s, r, &g->held);
			if (g->held.what == SIM_CLOSE)
				return true;
			continue;
		}
		if (!arrived)
			note_arrived(s, r);
		arrived = true;
		gather(s, g, &g->held);
	}
	return flush(s, r);
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

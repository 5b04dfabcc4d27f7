/* SPDX-License-Identifier: MIT */
/* See sim_broker.h. Invariant: a client is on the list of ready sockets exactly if `ready`. */
#include "sim_broker.h"

#include <string.h>

#include "sim.h"

#define CHUNK 4096 /* bytes that are read at once */
#define NOTICE_NS                                                                                                      \
	(5 * HW_NS_PER_MS) /* the time after which a client notices that the other end has closed the                  \
	                    * connection */

void sim_broker_init(struct sim *s)
{
	struct sim_broker *b = &s->broker;
	b->n_clients = s->plan.devices + s->plan.readers + 2;
	b->client = sim_calloc(b->n_clients, sizeof(*b->client));
	b->retained = sim_calloc(s->plan.devices, sizeof(*b->retained));
	b->most_seq = sim_calloc(s->plan.devices, sizeof(*b->most_seq));
	b->ready = sim_calloc(b->n_clients, sizeof(*b->ready));
	b->service_ns = s->plan.service_ns;
	b->delay_ns = s->plan.delay_ns;
}

void sim_broker_fini(struct sim *s)
{
	struct sim_broker *b = &s->broker;
	for (uint32_t c = 0; c < b->n_clients; c++)
		sim_fifo_fini(&b->client[c].in);
	for (uint32_t r = 0; r < SIM_READERS_MAX + 2; r++)
		sim_fifo_fini(&b->pipe[r].q);
	free(b->client);
	free(b->retained);
	free(b->most_seq);
	free(b->ready);
}

/* Whether packets to this client go through a pipe: it is one of the monitor's own connections. */
static bool has_pipe(const struct sim *s, uint32_t c)
{
	return c >= s->plan.devices;
}

static bool is_reader(const struct sim *s, uint32_t c)
{
	return c >= s->plan.devices && c < s->plan.devices + s->plan.readers;
}

/* --- out to the readers ------------------------------------------------------ */

static unsigned group_of(const struct sim *s, const struct sim_packet *p)
{
	bool of_none = p->what == SIM_BARRIER || p->what == SIM_STATE || p->what == SIM_SHARE;
	return p->what == SIM_CANARY ? p->device / 2 : of_none ? SIM_GROUPS_MAX : s->fleet.device[p->device].group;
}

static void drop(struct sim *s, const struct sim_packet *p)
{
	sim_note(s, "dropped", p->device, p->what);
	if (p->what == SIM_GOODBYE && !p->retained && !p->again)
		s->broker.retained[p->device].unheard = true;
	if (p->what == SIM_HEARTBEAT && !p->again)
		sim_oracle_lost(s, p->device, (uint32_t)p->number, false);
	if (p->what == SIM_LIST && !p->again)
		sim_list_lost(s, p, false);
	sim_world_loses(s, group_of(s, p));
}

static void pipe_push(struct sim *s, uint32_t r, struct sim_packet p)
{
	struct sim_broker *b = &s->broker;
	struct sim_pipe *pipe = &b->pipe[r];
	if (!pipe->open || b->client[s->plan.devices + r].lost)
		return;
	bool small = p.what == SIM_CLOSE || p.what == SIM_ACK || p.what == SIM_TAKEN || p.what == SIM_STATE ||
	             p.what == SIM_REPLAYED || p.what == SIM_RENEWED;
	if (pipe->q.n >= s->plan.pipe_bound && !small) {
		b->dropped++;
		drop(s, &p);
		return;
	}
	p.at = s->now + b->delay_ns;
	if (p.at < pipe->last_at)
		p.at = pipe->last_at;
	pipe->last_at = p.at;
	if (b->cut)
		p.at = SIM_NEVER;
	else
		sim_at(s, p.at, SIM_PIPE, r, 0, 0);
	sim_fifo_push(&pipe->q, &p);
}

static bool is_mute(const struct sim *s, const struct sim_packet *p)
{
	return s->broker.mute[group_of(s, p)] > 0;
}

/* Marks a packet as the second of two equal ones: if it is lost, the other one still arrives. */
static struct sim_packet again(struct sim_packet p)
{
	p.again = true;
	return p;
}

/* A status of a group of batches is published on a topic that has no heartbeats, so no client subscribes to it. */
static bool is_subscribed(const struct sim *s, const struct sim_packet *p)
{
	bool status = p->what == SIM_STATUS || p->what == SIM_CLEARING;
	return !status || !s->plan.batch[s->fleet.device[p->device].group];
}

/* Several readers share the subscription: each message goes to one of them. */
static void route(struct sim *s, struct sim_packet p)
{
	struct sim_broker *b = &s->broker;
	if (!is_subscribed(s, &p))
		return;
	if (p.what == SIM_CANARY)
		sim_oracle_canary(s, group_of(s, &p), !is_mute(s, &p));
	if (is_mute(s, &p)) {
		if (p.what == SIM_GOODBYE)
			s->broker.retained[p.device].unheard = true;
		if (p.what == SIM_HEARTBEAT)
			sim_oracle_lost(s, p.device, (uint32_t)p.number, true);
		if (p.what == SIM_LIST)
			sim_list_lost(s, &p, true);
		return;
	}
	for (uint32_t k = 0; k < s->plan.readers; k++) {
		uint32_t r = b->turn++ % s->plan.readers;
		if (b->pipe[r].open) {
			pipe_push(s, r, p);
			if (b->twice && (p.what == SIM_HEARTBEAT || p.what == SIM_GOODBYE || p.what == SIM_LIST))
				pipe_push(s, r, again(p)); /* two filters overlap, or the broker sends a QoS 1
				                            * message again */
			return;
		}
	}
}

bool sim_broker_read(struct sim *s, uint32_t r, struct sim_packet *p)
{
	struct sim_fifo *q = &s->broker.pipe[r].q;
	if (q->n == 0 || sim_fifo_at(q, 0)->at > s->now)
		return false;
	*p = sim_fifo_pop(q);
	return true;
}

unsigned sim_broker_fill(const struct sim *s, uint32_t r)
{
	return (unsigned)(s->broker.pipe[r].q.n * 100 / s->plan.buffer_bound);
}

/* --- connections ------------------------------------------------------------- */

static void publish_will(struct sim *s, uint32_t c, bool evidence)
{
	if (c >= s->plan.devices || !s->broker.client[c].will)
		return;
	if (s->fleet.device[c].speaks) {
		struct sim_packet list = sim_gateway_goodbyes(s, c);
		if (evidence)
			sim_list_arrived(s, &list);
		route(s, list);
		return;
	}
	if (evidence)
		sim_oracle_goodbye(s, c);
	s->broker.retained[c] = (struct sim_retained){.any = true};
	route(s, (struct sim_packet){.what = SIM_GOODBYE, .device = c});
}

/* Packets that waited in the client's socket are lost with it: mosquitto checks keepalives before it reads what
 * arrived meanwhile. */
static void forget_connection(struct sim *s, uint32_t c)
{
	struct sim_client *k = &s->broker.client[c];
	for (size_t i = 0; i < k->arrived; i++) {
		const struct sim_packet *p = sim_fifo_at(&k->in, i);
		if (p->what == SIM_HEARTBEAT)
			sim_oracle_lost(s, p->device, (uint32_t)p->number, false);
		else if (p->what == SIM_LIST)
			sim_list_lost(s, p, false);
	}
	k->connected = k->lapsed = k->lost = k->cut_packet = false;
	k->taken = 0;
	k->conn++;
	k->in.n = 0;
	k->arrived = 0;
	k->last_at = 0;
}

/* Breaks one of the monitor's own connections, so that no end notices it at once. The monitor notices it by its
 * keepalive at the latest. */
static void carry_nothing(struct sim *s, uint32_t c)
{
	struct sim_client *k = &s->broker.client[c];
	k->lost = true;
	sim_at(s, s->now + 2 * k->keepalive_ns, SIM_HOST_CLOSED, c - s->plan.devices, k->conn, 0);
}

/* The broker closes a connection; the client notices later. */
static void kick(struct sim *s, uint32_t c)
{
	struct sim_broker *b = &s->broker;
	if (!b->client[c].connected)
		return;
	bool lost = b->client[c].lost;
	forget_connection(s, c);
	if (lost) {
		carry_nothing(s, c); /* the client does not know yet that the connection is closed */
	} else if (c < s->plan.devices) {
		sim_at(s, s->now + NOTICE_NS, SIM_CLOSED, c, b->client[c].conn, 0);
	} else if (is_reader(s, c)) {
		pipe_push(s, c - s->plan.devices, (struct sim_packet){.what = SIM_CLOSE});
		b->pipe[c - s->plan.devices].open = false;
	} else {
		b->pipe[c - s->plan.devices].open = false;
		b->pipe[c - s->plan.devices].q.n = 0;
		sim_at(s, s->now + NOTICE_NS, SIM_HOST_CLOSED, c - s->plan.devices, b->client[c].conn, 0);
	}
}

/* Delivers all retained messages to a new subscription, as MQTT 3.1.1 demands. */
static void replay(struct sim *s, uint32_t r)
{
	for (uint32_t i = 0; i < s->plan.devices; i++) {
		const struct sim_retained *x = &s->broker.retained[i];
		struct sim_packet p = {.what = x->by_monitor ? SIM_STATUS : SIM_GOODBYE,
		                       .device = i,
		                       .online = x->online,
		                       .number = x->seq,
		                       .retained = true};
		if (x->any && !is_mute(s, &p) && !s->plan.batch[s->fleet.device[i].group])
			pipe_push(s, r, p);
	}
}

/* Sends the state of a group's bridge, which is retained. */
static void tell_bridge(struct sim *s, unsigned g, bool retained)
{
	if (s->plan.bridge[g])
		pipe_push(s, 0,
		          (struct sim_packet){.what = SIM_STATE,
		                              .device = g,
		                              .online = s->broker.away[g] == 0,
		                              .retained = retained});
}

void sim_broker_replay(struct sim *s, enum sim_what end)
{
	for (unsigned g = 0; g < s->plan.groups; g++)
		tell_bridge(s, g, true);
	pipe_push(s, 0, (struct sim_packet){.what = end});
}

void sim_broker_bridge(struct sim *s, unsigned g, bool away)
{
	s->broker.away[g] += away ? 1 : -1u;
	tell_bridge(s, g, false);
}

bool sim_broker_connect(struct sim *s, uint32_t c, int64_t keepalive_ns, bool will)
{
	struct sim_broker *b = &s->broker;
	struct sim_client *k = &b->client[c];
	bool ours = c >= s->plan.devices;
	if (b->state != SIM_RUNNING || (ours && b->cut))
		return false;
	if (k->connected && s->plan.takeover_wills)
		publish_will(s, c, true);
	forget_connection(s, c);
	k->connected = true;
	k->keepalive_ns = keepalive_ns;
	k->will = will;
	if (has_pipe(s, c)) {
		struct sim_pipe *pipe = &b->pipe[c - s->plan.devices];
		pipe->q.n = 0;
		pipe->last_at = 0;
		pipe->filled = false;
		pipe->open = true;
	}
	for (unsigned g = 0; c == s->plan.devices && g < s->plan.groups; g++)
		tell_bridge(s, g, true);
	if (is_reader(s, c) && s->plan.replays)
		replay(s, c - s->plan.devices);
	return true;
}

void sim_broker_leave(struct sim *s, uint32_t c)
{
	forget_connection(s, c);
	if (has_pipe(s, c)) {
		s->broker.pipe[c - s->plan.devices].open = false;
		s->broker.pipe[c - s->plan.devices].q.n = 0;
	}
}

/* --- in from the clients ----------------------------------------------------- */

static void plan_turn(struct sim *s)
{
	struct sim_broker *b = &s->broker;
	if (b->serving || b->ready_n == 0 || b->state != SIM_RUNNING)
		return;
	b->serving = true;
	sim_at(s, s->now + b->service_ns, SIM_SERVE, 0, ++b->serve_stamp, 0);
}

static void make_ready(struct sim *s, uint32_t c)
{
	struct sim_broker *b = &s->broker;
	if (!b->client[c].ready) {
		b->client[c].ready = true;
		b->ready[(b->ready_head + b->ready_n++) % b->n_clients] = c;
	}
	plan_turn(s);
}

void sim_broker_send(struct sim *s, uint32_t c, struct sim_packet p, int64_t delay_ns)
{
	struct sim_client *k = &s->broker.client[c];
	if (!k->connected || k->lost)
		return;
	p.at = s->now + delay_ns;
	if (p.at < k->last_at)
		p.at = k->last_at;
	k->last_at = p.at;
	if (c >= s->plan.devices && s->broker.cut)
		p.at = SIM_NEVER;
	else
		sim_at(s, p.at, SIM_IN, c, k->conn, 0);
	sim_fifo_push(&k->in, &p);
}

void sim_broker_on_in(struct sim *s, uint32_t c, uint32_t conn)
{
	struct sim_client *k = &s->broker.client[c];
	if (k->conn != conn)
		return;
	struct sim_packet *p = sim_fifo_at(&k->in, k->arrived++);
	if (p->what == SIM_HEARTBEAT)
		p->number = sim_oracle_arrived(s, p->device);
	else if (p->what == SIM_GOODBYE)
		sim_oracle_goodbye(s, p->device);
	else if (p->what == SIM_LIST)
		sim_list_arrived(s, p);
	make_ready(s, c);
}

/* Acknowledges a packet of the publisher, which sends with QoS 1. */
static void acknowledge(struct sim *s, const struct sim_packet *p)
{
	pipe_push(s, s->plan.readers + 1,
	          (struct sim_packet){.what = SIM_ACK, .device = p->device, .number = p->publish_id});
}

static void process(struct sim *s, uint32_t c, struct sim_packet p)
{
	struct sim_broker *b = &s->broker;
	switch (p.what) {
	case SIM_BARRIER:
		for (uint32_t r = 0; r < s->plan.readers; r++)
			pipe_push(s, r, p);
		pipe_push(s, s->plan.readers, (struct sim_packet){.what = SIM_TAKEN});
		break;
	case SIM_GOODBYE:
		b->retained[p.device] = (struct sim_retained){.any = true};
		route(s, p);
		break;
	case SIM_STATUS:
		if (p.number > b->most_seq[p.device])
			b->most_seq[p.device] = p.number;
		b->retained[p.device] =
			(struct sim_retained){.any = true, .online = p.online, .by_monitor = true, .seq = p.number};
		route(s, p);
		acknowledge(s, &p);
		break;
	case SIM_CLEARING:
		b->retained[p.device].any = false;
		route(s, p);
		acknowledge(s, &p);
		break;
	case SIM_ABORT:
		publish_will(s, c, true);
		forget_connection(s, c);
		break;
	case SIM_DISCONNECT:
		forget_connection(s, c);
		break;
	default:
		route(s, p);
	}
}

/* Returns the approximate size of a packet in bytes. */
static int size_of(const struct sim_packet *p)
{
	return p->what == SIM_STATUS ? 250 : p->what == SIM_CANARY ? 150 : 100;
}

/*
 * mosquitto 2.1 reads 4 KiB of a socket. If the last packet in them is incomplete it reads on in the same turn,
 * including packets that arrived after the turn began.
 */
static bool goes_on(const struct sim *s, struct sim_client *k)
{
	if (!s->broker.reads_on || s->plan.reads_whole)
		return false;
	if (k->taken > 0)
		k->taken--;
	else
		k->cut_packet = true; /* the first packet of a turn */
	if (k->taken > 0 || !k->cut_packet)
		return k->taken > 0;
	int bytes = 0;
	while (k->taken < k->arrived && bytes < CHUNK)
		bytes += size_of(sim_fifo_at(&k->in, k->taken++));
	k->cut_packet = bytes >= CHUNK;
	return k->taken > 0;
}

static void make_first(struct sim *s, uint32_t c)
{
	struct sim_broker *b = &s->broker;
	b->client[c].ready = true;
	b->ready_head = (b->ready_head + b->n_clients - 1) % b->n_clients;
	b->ready[b->ready_head] = c;
	b->ready_n++;
}

void sim_broker_on_serve(struct sim *s, uint32_t stamp)
{
	struct sim_broker *b = &s->broker;
	if (stamp != b->serve_stamp || !b->serving)
		return;
	b->serving = false;
	uint32_t c = b->ready[b->ready_head];
	b->ready_head = (b->ready_head + 1) % b->n_clients;
	b->ready_n--;
	struct sim_client *k = &b->client[c];
	k->ready = false;
	for (bool first = true; k->arrived > 0 && (first || s->plan.reads_whole); first = false) {
		k->arrived--;
		process(s, c, sim_fifo_pop(&k->in));
	}
	if (goes_on(s, k))
		make_first(s, c);
	else if (k->arrived > 0)
		make_ready(s, c);
	plan_turn(s);
}

void sim_broker_on_lapse(struct sim *s, uint32_t c, uint32_t conn)
{
	struct sim_client *k = &s->broker.client[c];
	const struct sim_device *d = &s->fleet.device[c];
	if (k->conn != conn || !k->connected || (d->powered && d->reachable))
		return;
	k->lapsed = true;
	if (s->broker.state == SIM_RUNNING) {
		publish_will(s, c, true);
		kick(s, c);
	}
}

/* --- trouble ----------------------------------------------------------------- */

void sim_broker_stop(struct sim *s)
{
	struct sim_broker *b = &s->broker;
	b->state = SIM_STOPPED;
	b->stopped_at = s->now;
	b->taken = b->ready_n;
	b->serving = false;
}

/* Shuffles the sockets that became ready in a standstill: a broker that reads whole sockets gets them in no reliable
 * order. The sockets of the turn in which the broker was stopped stay in front. */
static void shuffle_ready(struct sim *s)
{
	struct sim_broker *b = &s->broker;
	uint32_t first = b->ready_head + b->taken;
	for (uint32_t left = b->ready_n - b->taken; left > 1; left--) {
		uint32_t *a = &b->ready[(first + left - 1) % b->n_clients];
		uint32_t *with = &b->ready[(first + (uint32_t)sim_below(&s->random, left)) % b->n_clients];
		uint32_t was = *a;
		*a = *with;
		*with = was;
	}
}

/* The broker first disconnects each client from which it has received nothing for 1.5 keepalives. The last packet of
 * a client may be a keepalive older than the standstill. Then the broker reads what is left in the sockets. */
void sim_broker_resume(struct sim *s)
{
	struct sim_broker *b = &s->broker;
	b->state = SIM_RUNNING;
	for (uint32_t c = 0; c < b->n_clients; c++) {
		struct sim_client *k = &b->client[c];
		if (!k->connected)
			continue;
		int64_t age_ns = s->now - b->stopped_at + sim_below(&s->random, k->keepalive_ns);
		if (!k->lapsed && age_ns <= k->keepalive_ns * 3 / 2)
			continue;
		publish_will(s, c, k->lapsed);
		kick(s, c);
	}
	if (s->plan.reads_whole)
		shuffle_ready(s);
	plan_turn(s);
}

void sim_broker_pause(struct sim *s, int64_t until)
{
	s->broker.pauses_until = until;
	sim_at(s, s->now, SIM_PAUSE, 0, 0, 0);
}

void sim_broker_on_pause(struct sim *s)
{
	struct sim_broker *b = &s->broker;
	int64_t next_ns = sim_spread(&s->random, 100 * HW_NS_PER_MS, 4 * HW_NS_PER_S);
	bool over = s->now >= b->pauses_until;
	if (b->paused) {
		b->paused = false;
		sim_broker_resume(s);
	} else if (b->state == SIM_RUNNING && !over) {
		b->paused = true;
		next_ns = sim_spread(&s->random, 40 * HW_NS_PER_MS, 600 * HW_NS_PER_MS);
		sim_broker_stop(s);
		/* During the pause, statuses are published again, so the sockets contain them when the pause ends. */
		for (int64_t at = 1; b->reads_on && at < next_ns; at += 20 * HW_NS_PER_MS)
			sim_at(s, s->now + at, SIM_REPUBLISH, 0, 0, 0);
	}
	if (over)
		b->pauses_until = 0;
	else
		sim_at(s, s->now + next_ns, SIM_PAUSE, 0, 0, 0);
}

void sim_broker_down(struct sim *s, bool politely)
{
	struct sim_broker *b = &s->broker;
	for (uint32_t c = 0; politely && c < b->n_clients; c++)
		if (b->client[c].connected)
			publish_will(s, c, b->client[c].lapsed);
	for (uint32_t c = 0; c < b->n_clients; c++)
		kick(s, c);
	for (uint32_t c = 0; c < b->n_clients; c++)
		b->client[c].ready = false;
	b->ready_n = 0;
	b->serving = false;
	b->state = SIM_DOWN;
}

void sim_broker_up(struct sim *s, bool remembers)
{
	s->broker.state = SIM_RUNNING;
	if (!remembers)
		memset(s->broker.retained, 0, s->plan.devices * sizeof(*s->broker.retained));
}

void sim_broker_lose(struct sim *s, uint32_t c)
{
	if (s->broker.client[c].connected)
		carry_nothing(s, c);
}

/* Delivers the packets that TCP has held back. */
static void release(struct sim *s, struct sim_fifo *f, int64_t *last_at, enum sim_kind kind, uint32_t who,
                    uint32_t stamp)
{
	for (size_t i = 0; i < f->n; i++) {
		struct sim_packet *p = sim_fifo_at(f, i);
		if (p->at != SIM_NEVER)
			continue;
		p->at = s->now + s->broker.delay_ns;
		if (p->at < *last_at)
			p->at = *last_at;
		*last_at = p->at;
		sim_at(s, p->at, kind, who, stamp, 0);
	}
}

void sim_broker_cut(struct sim *s, bool cut)
{
	struct sim_broker *b = &s->broker;
	b->cut = cut;
	if (cut)
		return;
	for (uint32_t r = 0; r < s->plan.readers + 2; r++)
		release(s, &b->pipe[r].q, &b->pipe[r].last_at, SIM_PIPE, r, 0);
	for (uint32_t c = s->plan.devices; c < b->n_clients; c++)
		release(s, &b->client[c].in, &b->client[c].last_at, SIM_IN, c, b->client[c].conn);
}

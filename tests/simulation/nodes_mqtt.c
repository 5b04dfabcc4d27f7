/* SPDX-License-Identifier: MIT */
/* Replaces src/mqtt for the wiring: a reader with its ring, a publisher, evictions (src/mqtt/mqtt.h, evict.h). Their
 * threads act in the steps of the process. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/cluster/cluster.h"
#include "mqtt/evict.h"
#include "mqtt/mqtt.h"
#include "nodes_world.h"

#define WINDOW       20
#define STALL_NS     (500 * HW_NS_PER_MS)
#define FD_READER    1
#define FD_PUBLISHER 2
#define FD_BARRIERS  3
#define FD_EVICT     4

struct hw_reader {
	struct nw_host *h;
	uint64_t conn; /* 0: none */
	bool up;
	int64_t dial_at, dialed, silent_at; /* silent_at: since when the client cannot reach the broker; 0: it can */
	bool replays, drains;
	bool expects;         /* a barrier is expected, so the thread passes each message on at once */
	struct nw_wire ring;  /* messages that the thread has read, and its reports */
	struct nw_wire taken; /* messages that the loop has taken and not released */
	struct nw_text *now;
};

struct hw_publisher {
	struct nw_host *h;
	enum nw_clients kind;
	enum nw_wires to, from;
	int64_t answered_ns;
	bool reconnects; /* the client must close its connection */
	uint64_t conn, dialing;
	int64_t dial_at, dialed, silent_at;
	unsigned in_flight;
	struct nw_text *will;
	struct nw_wire answers;
};

struct hw_evict {
	struct nw_host *h;
	struct hw_evict *next;
	uint64_t number;
	int fd;
	int64_t until;
	bool over;
	enum hw_eviction how;
};

/* --- texts ------------------------------------------------------------------------------------------------------- */

int nw_name_of(const char *node, size_t len)
{
	for (int name = 0; name < NW_HOSTS; name++)
		if (strlen(nw_names[name]) == len && memcmp(nw_names[name], node, len) == 0)
			return name;
	return -1;
}

/* Reads the node or the device from a topic: "heartwheel/NODE/..." or "nodes/dev-N/...". */
static struct nw_text *read_topic(struct nw_text *t)
{
	const char *topic = t->bytes, *first = strchr(topic, '/') + 1, *last = strchr(first, '/');
	if (strncmp(topic, "heartwheel/", 11) == 0) {
		t->name = nw_name_of(first, (size_t)(last - first));
		t->kind = strcmp(last, "/known") == 0 ? NW_KNOWN : NW_PRESENCE;
	} else if (strncmp(first, "dev-", 4) == 0) {
		t->device = nw_device_of(first, (size_t)(last - first));
		t->kind = NW_STATUS;
	} else {
		t->kind = NW_CANARY;
	}
	return t;
}

/* --- the reader -------------------------------------------------------------------------------------------------- */

int hw_reader_start(struct hw_reader **out, const struct hw_mqtt_conf *conf, const struct hw_mqtt_filter *filters,
                    size_t n_filters, const char *share_group, size_t ring_bytes, int64_t stall_after_ms)
{
	struct hw_reader *r = nw_alloc(sizeof(*r));
	(void)conf, (void)filters, (void)n_filters, (void)share_group, (void)ring_bytes, (void)stall_after_ms;
	r->h = nw_running;
	r->h->reader = *out = r;
	return 0;
}

void hw_reader_stop(struct hw_reader *r)
{
	nw_wire_clear(&r->ring);
	nw_wire_clear(&r->taken);
	free(r->ring.ring);
	free(r->taken.ring);
	r->h->reader = NULL;
	free(r);
}

int hw_reader_fd(const struct hw_reader *r)
{
	(void)r;
	return FD_READER;
}

/* Updates what the oracle knows about the messages that this process has received from a device. */
static void note(struct nw_host *h, const struct nw_text *t)
{
	int64_t now = h->w->t;
	if (nw_is_deaf(h, t->device))
		return;
	if (t->kind == NW_BEAT) {
		/* The longest timeout of all nodes is in force. A second is added, because a pause that the host has
		 * noticed may be a part of the silence. Time in which the host calls itself blind is no silence to it,
		 * even if it could read: the grace after a lost connection, and the time before a barrier was found
		 * missing. */
		const struct nw_plan *p = &h->w->plan;
		int64_t seen = hw_blind_seen(hw_monitor_blind(h->app->monitor), nw_host_now(h->w, h).mono).ns,
			sight = h->sight - h->heard_sight[t->device], own = seen - h->heard_seen[t->device],
			silent = sight < own ? sight : own,
			timeout_ms = p->timeout_ms + (p->other_timeouts ? (p->hosts - 1) * 700 : 0),
			most = timeout_ms * HW_NS_PER_MS + HW_NS_PER_S;
		h->in_a_row[t->device] = silent <= most ? h->in_a_row[t->device] + 1 : 1;
		h->heard[t->device] = now;
		h->heard_sight[t->device] = h->sight;
		h->heard_seen[t->device] = seen;
	} else if (t->kind == NW_GOODBYE) {
		*(t->genuine ? &h->bye[t->device] : &h->false_bye[t->device]) = now;
	}
}

static const enum hw_reader_event_kind signs[] = {
	[NW_SUBACK] = HW_READER_UP,         [NW_CLOSED] = HW_READER_DOWN,     [NW_STALL] = HW_READER_STALL,
	[NW_REPLAYED] = HW_READER_REPLAYED, [NW_BARRIER] = HW_READER_BARRIER, [NW_EVICTED] = HW_READER_DRAINED,
	[NW_MESSAGE] = HW_READER_MESSAGE};

bool hw_reader_take(struct hw_reader *r, struct hw_reader_event *ev)
{
	if (!r->ring.n)
		return false;
	struct nw_msg msg = nw_wire_pop(&r->ring);
	*ev = (struct hw_reader_event){.kind = signs[msg.what],
	                               .number = msg.number,
	                               .run_id = msg.mark,
	                               .planned_ns = (int64_t)msg.number,
	                               .retained = msg.retained,
	                               .text = "the broker has closed the connection"};
	if (msg.text) {
		ev->topic = msg.text->bytes;
		ev->topic_len = msg.text->topic_len;
		ev->payload = nw_payload(msg.text);
		ev->payload_len = msg.text->len;
		note(r->h, msg.text);
		nw_wire_push(&r->taken, msg);
	}
	return true;
}

void hw_reader_release(struct hw_reader *r)
{
	nw_wire_clear(&r->taken);
}

bool hw_reader_rest(struct hw_reader *r)
{
	return r->ring.n == 0;
}

void hw_reader_replay(struct hw_reader *r)
{
	r->replays = true;
}

void hw_reader_drain(struct hw_reader *r)
{
	r->drains = true;
}

void hw_reader_expect(struct hw_reader *r, int64_t until_ns)
{
	r->expects = until_ns > 0;
}

void hw_reader_retry(struct hw_reader *r)
{
	if (!r->conn && r->dial_at > r->h->w->t)
		r->dial_at = r->h->w->t;
}

/* Called when the reader's connection is lost. */
static void reader_down(struct hw_reader *r)
{
	struct nw_world *w = r->h->w;
	if (r->up)
		nw_wire_push(&r->ring, (struct nw_msg){.what = NW_CLOSED});
	r->conn = 0;
	r->up = r->replays = false;
	r->silent_at = 0;
	r->dial_at = w->t + sim_between(&w->random, 20, 1000) * HW_NS_PER_MS;
}

void hw_reader_reconnect(struct hw_reader *r)
{
	if (r->conn)
		nw_put(r->h, NW_TO_READER, (struct nw_msg){.what = NW_CLOSED, .conn = r->conn});
	nw_trace(r->h->w, "%s: reconnects its reader", nw_names[r->h->name]);
	reader_down(r);
}

static bool is_peers(const struct nw_host *h, const struct nw_msg *msg)
{
	return msg->text && (msg->text->kind == NW_PRESENCE || msg->text->kind == NW_KNOWN) &&
	       msg->text->name != h->name;
}

/* Moves messages from the socket into the ring. */
static void read_socket(struct nw_world *w, struct hw_reader *r)
{
	struct nw_wire *wire = &r->h->wire[NW_READ];
	while (nw_broker_reachable(w, r->h) && nw_arrived(w, wire)) {
		struct nw_msg msg = nw_wire_pop(wire);
		if (msg.conn != r->conn || (w->lie == NW_LIE_PEERS && is_peers(r->h, &msg))) {
			if (msg.text && msg.text->kind == NW_BEAT)
				nw_oracle_misses(w, -1, r->h->index, msg.text->device);
			nw_msg_fini(&msg);
		} else if (msg.what == NW_CLOSED) {
			reader_down(r);
		} else {
			r->up |= msg.what == NW_SUBACK;
			nw_wire_push(&r->ring, msg);
		}
	}
}

/* `planned`: the time at which the reader's thread should have woken; 0: it woke in time. */
void nw_mqtt_reader_step(struct nw_world *w, struct nw_host *h, int64_t planned)
{
	struct hw_reader *r = h->reader;
	if (!r)
		return;
	bool late = planned && nw_host_now(w, h).mono.ns - planned > STALL_NS && nw_arrived(w, &h->wire[NW_READ]) &&
	            w->lie != NW_LIE_STALL;
	if (late)
		nw_wire_push(&r->ring, (struct nw_msg){.what = NW_STALL, .number = (uint64_t)planned});
	read_socket(w, r);
	if (late || r->drains)
		nw_wire_push(&r->ring, (struct nw_msg){.what = NW_EVICTED});
	r->drains = false;
}

/* Whether the client has noticed that it does not reach the broker. It notices within twice the keepalive. */
static bool is_mute(struct nw_world *w, const struct nw_host *h, int64_t *silent_at)
{
	if (nw_broker_reachable(w, h))
		*silent_at = 0;
	else if (!*silent_at)
		*silent_at = w->t;
	return *silent_at && w->t - *silent_at > w->plan.keepalive_ms * 7 / 4 * HW_NS_PER_MS;
}

static void dial_reader(struct nw_world *w, struct hw_reader *r)
{
	struct nw_host *h = r->h;
	bool late = r->conn && !r->up && w->t - r->dialed > 3 * HW_NS_PER_S;
	if (r->conn && (late || is_mute(w, h, &r->silent_at)))
		reader_down(r);
	if (r->replays && r->up) {
		r->replays = false;
		nw_put(h, NW_TO_READER, (struct nw_msg){.what = NW_REPLAY, .conn = r->conn});
	}
	if (r->conn || w->t < r->dial_at || !nw_broker_reachable(w, h))
		return;
	r->conn = ++w->broker.ids;
	r->dialed = w->t;
	nw_put(h, NW_TO_READER, (struct nw_msg){.what = NW_SUBSCRIBE, .conn = r->conn});
}

/* --- the publisher ----------------------------------------------------------------------------------------------- */

int hw_publisher_start(struct hw_publisher **out, const struct hw_mqtt_conf *conf, const char *will_topic,
                       const void *will_payload, size_t will_len)
{
	struct hw_publisher *p = nw_alloc(sizeof(*p));
	(void)conf;
	p->h = nw_running;
	p->kind = will_topic ? NW_C_SESSION : NW_C_BARRIERS;
	p->to = will_topic ? NW_TO_BROKER : NW_TO_BARRIERS;
	p->from = will_topic ? NW_FROM_BROKER : NW_FROM_BARRIERS;
	p->will = will_topic ? read_topic(nw_text_new(will_topic, will_payload, will_len)) : NULL;
	*(will_topic ? &p->h->publisher : &p->h->barriers) = *out = p;
	return 0;
}

void hw_publisher_stop(struct hw_publisher *p, int64_t timeout_ms)
{
	(void)timeout_ms;
	nw_wire_clear(&p->answers);
	free(p->answers.ring);
	nw_text_unref(p->will);
	*(p->kind == NW_C_SESSION ? &p->h->publisher : &p->h->barriers) = NULL;
	free(p);
}

int hw_publisher_fd(const struct hw_publisher *p)
{
	return p->kind == NW_C_SESSION ? FD_PUBLISHER : FD_BARRIERS;
}

bool hw_publisher_take(struct hw_publisher *p, struct hw_publisher_event *ev)
{
	if (!p->answers.n)
		return false;
	struct nw_msg msg = nw_wire_pop(&p->answers);
	ev->kind = msg.what == NW_CONNACK  ? HW_PUBLISHER_UP
	           : msg.what == NW_PUBACK ? HW_PUBLISHER_ACKED
	                                   : HW_PUBLISHER_DOWN;
	ev->publish_id = msg.number;
	ev->reason = 0;
	snprintf(ev->text, sizeof(ev->text), "the connection is lost");
	if (ev->kind == HW_PUBLISHER_ACKED)
		p->in_flight--;
	else
		p->in_flight = 0;
	return true;
}

unsigned hw_publisher_room(const struct hw_publisher *p)
{
	return p->conn && p->in_flight < WINDOW ? WINDOW - p->in_flight : 0;
}

bool hw_publisher_publish(struct hw_publisher *p, const struct hw_publication *what)
{
	struct nw_host *h = p->h;
	if (hw_publisher_room(p) == 0)
		return false;
	struct nw_text *t = read_topic(nw_text_new(what->topic, what->payload, what->len));
	struct nw_msg msg = {.what = NW_PUBLISH, .conn = p->conn, .number = what->publish_id, .text = t};
	p->in_flight++;
	if (h->w->lie == NW_LIE_ACK && t->kind == NW_PRESENCE && sim_chance(&h->w->random, 0.5)) {
		nw_wire_push(&p->answers, (struct nw_msg){.what = NW_PUBACK, .number = what->publish_id});
		nw_msg_fini(&msg); /* the message is lost */
		return true;
	}
	nw_put(h, p->to, msg);
	return true;
}

void hw_publisher_barrier(struct hw_publisher *p, uint64_t mark, uint64_t number)
{
	struct nw_msg msg = {.what = NW_BARRIER, .conn = p->conn, .number = number, .mark = mark};
	struct hw_reader *r = p->h->reader;
	if (!p->conn)
		return;
	if (number < HW_CLUSTER_BARRIER && r && !r->expects)
		nw_breach(p->h->w, "10: %s sends a barrier that its reader does not know of", nw_names[p->h->name]);
	if (p->h->w->lie == NW_LIE_BARRIER && r && r->up)
		nw_wire_push(&r->ring, msg);
	nw_put(p->h, p->to, msg);
}

void hw_publisher_share(struct hw_publisher *p, uint64_t mark, uint64_t number)
{
	(void)p, (void)mark, (void)number;
}

bool hw_publisher_canary(struct hw_publisher *p, const char *topic, const void *payload, size_t len, uint64_t token)
{
	(void)token;
	if (!p->conn)
		return false;
	struct nw_text *t = read_topic(nw_text_new(topic, payload, len));
	nw_put(p->h, p->to, (struct nw_msg){.what = NW_PUBLISH, .conn = p->conn, .mark = 1, .text = t});
	return true;
}

void hw_publisher_retry(struct hw_publisher *p)
{
	if (p && !p->conn && p->dial_at > p->h->w->t)
		p->dial_at = p->h->w->t;
}

void hw_publisher_reconnect(struct hw_publisher *p)
{
	p->reconnects = true;
}

int64_t hw_publisher_answered_ns(const struct hw_publisher *p)
{
	return p->answered_ns;
}

static void publisher_down(struct hw_publisher *p)
{
	struct nw_world *w = p->h->w;
	if (p->conn)
		nw_wire_push(&p->answers, (struct nw_msg){.what = NW_CLOSED});
	p->conn = p->dialing = 0;
	p->silent_at = 0;
	p->dial_at = w->t + sim_between(&w->random, 20, 1000) * HW_NS_PER_MS;
	nw_wire_clear(&p->h->sent[p->to]);
}

static void hear_broker(struct hw_publisher *p, const struct nw_msg *msg)
{
	if (msg->what == NW_CONNACK && msg->conn == p->dialing) {
		p->conn = p->dialing;
		p->dialing = 0;
		nw_wire_push(&p->answers, *msg);
	} else if (msg->what == NW_CLOSED && (msg->conn == p->conn || msg->conn == p->dialing)) {
		publisher_down(p);
	} else if (msg->what == NW_PUBACK && msg->conn == p->conn) {
		if (p->kind == NW_C_BARRIERS)
			p->answered_ns = nw_host_now(p->h->w, p->h).mono.ns;
		else
			nw_wire_push(&p->answers, *msg);
	}
}

static void step_publisher(struct nw_world *w, struct hw_publisher *p)
{
	struct nw_host *h = p->h;
	bool reach = nw_broker_reachable(w, h);
	while (reach && nw_arrived(w, &h->wire[p->from])) {
		struct nw_msg msg = nw_wire_pop(&h->wire[p->from]);
		hear_broker(p, &msg);
		nw_msg_fini(&msg);
	}
	if (p->conn && p->reconnects)
		nw_put(h, p->to, (struct nw_msg){.what = NW_CLOSED, .conn = p->conn});
	if (p->conn && (p->reconnects || is_mute(w, h, &p->silent_at)))
		publisher_down(p);
	p->reconnects = false;
	if (p->conn || w->t < p->dial_at || !reach || (p->dialing && w->t - p->dialed < 3 * HW_NS_PER_S))
		return;
	p->dialing = ++w->broker.ids;
	p->dialed = w->t;
	nw_put(h, p->to,
	       (struct nw_msg){.what = NW_CONNECT, .conn = p->dialing, .text = p->will ? nw_text_ref(p->will) : NULL});
}

/* --- evictions --------------------------------------------------------------------------------------------------- */

int hw_evict_start(struct hw_evict **out, const struct hw_mqtt_conf *conf, const char *topic, const void *payload,
                   size_t len, int64_t timeout_ms)
{
	struct nw_host *h = nw_running;
	struct hw_evict *e = nw_alloc(sizeof(*e));
	(void)conf;
	*e = (struct hw_evict){.h = h, .next = h->evicts, .number = ++h->w->broker.ids, .fd = FD_EVICT + h->fds++};
	e->until = h->w->t + timeout_ms * HW_NS_PER_MS;
	e->how = HW_EVICTION_FAILED;
	h->evicts = *out = e;
	if (!nw_broker_reachable(h->w, h))
		e->over = true;
	else
		nw_put(h, NW_TO_EVICT,
		       (struct nw_msg){.what = NW_EVICT,
		                       .number = e->number,
		                       .text = read_topic(nw_text_new(topic, payload, len))});
	return 0;
}

int hw_evict_fd(const struct hw_evict *e)
{
	return e->fd;
}

bool hw_evict_is_over(const struct hw_evict *e, enum hw_eviction *how, const char **why)
{
	*how = e->how;
	*why = "it is so";
	return e->over;
}

void hw_evict_end(struct hw_evict *e)
{
	if (!e)
		return;
	struct hw_evict **at = &e->h->evicts;
	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	free(e);
}

static void step_evictions(struct nw_world *w, struct nw_host *h)
{
	struct nw_wire *wire = &h->wire[NW_FROM_EVICT];
	while (nw_broker_reachable(w, h) && nw_arrived(w, wire)) {
		struct nw_msg msg = nw_wire_pop(wire);
		for (struct hw_evict *e = h->evicts; e; e = e->next)
			if (e->number == msg.number && !e->over) {
				e->over = true;
				e->how = msg.what == NW_EVICTED ? HW_EVICTION_TAKEN : HW_EVICTION_REFUSED;
			}
	}
	for (struct hw_evict *e = h->evicts; e; e = e->next)
		e->over |= w->t >= e->until;
}

/* --- all --------------------------------------------------------------------------------------------------------- */

bool nw_mqtt_readable(const struct nw_host *h, int fd)
{
	if (fd == FD_READER)
		return h->reader && h->reader->ring.n;
	if (fd == FD_PUBLISHER)
		return h->publisher && h->publisher->answers.n;
	if (fd == FD_BARRIERS)
		return h->barriers && h->barriers->answers.n;
	for (const struct hw_evict *e = h->evicts; e; e = e->next)
		if (e->fd == fd)
			return e->over;
	return false;
}

int64_t nw_pace_ms(const struct nw_host *h)
{
	int64_t pace = h->groups[0].timeout_ms / 4;
	return pace < 250 ? 250 : pace > 5000 ? 5000 : pace;
}

/*
 * Counts, for the oracle, the time in which this host could read. If the publisher is not connected, no barrier can be
 * sent that would reveal a cut. The host becomes blind because of that only when the next barrier has been due for
 * barrier_timeout. Before that, time in which the broker is out of reach counts as `unasked`.
 */
static void count_sight(struct nw_world *w, struct nw_host *h)
{
	int64_t step = w->t - h->looped < NW_STEP_NS ? w->t - h->looped : NW_STEP_NS;
	if (!h->barriers || h->barriers->conn)
		h->mute_since = w->t;
	if (!h->reader->up)
		return;
	if (nw_broker_reachable(w, h))
		h->sight += step;
	else if (w->t - h->mute_since < (nw_pace_ms(h) + h->settings.mqtt.barrier_timeout_ms) * HW_NS_PER_MS)
		h->unasked += w->t > h->mute_since ? step : 0;
}

void nw_mqtt_step(struct nw_world *w, struct nw_host *h)
{
	if (h->reader) {
		nw_mqtt_reader_step(w, h, 0);
		dial_reader(w, h->reader);
		count_sight(w, h);
	}
	h->looped = w->t;
	if (h->publisher)
		step_publisher(w, h->publisher);
	if (h->barriers)
		step_publisher(w, h->barriers);
	step_evictions(w, h);
}

void nw_mqtt_drop(struct nw_world *w, struct nw_host *h, enum nw_clients kind)
{
	struct hw_publisher *p = kind == NW_C_SESSION ? h->publisher : kind == NW_C_BARRIERS ? h->barriers : NULL;
	uint64_t conn = p ? p->conn : kind == NW_C_READER && h->reader ? h->reader->conn : 0;
	if (!conn)
		return;
	nw_send(w, h, p ? p->to : NW_TO_READER, (struct nw_msg){.what = NW_CLOSED, .conn = conn});
	if (p)
		publisher_down(p);
	else
		reader_down(h->reader);
}

/* SPDX-License-Identifier: MIT */
/* Replaces src/mqtt (src/mqtt/mqtt.h) for the wiring: readers and publishers at the simulated broker. Lies about
 * readers and publishers are implemented here. */
#include "mqtt/mqtt.h"

#include <string.h>

#include "daemon/context.h"
#include "sim.h"

#define BACKOFF_MAX_NS (60 * HW_NS_PER_S)
#define KEEPALIVE_NS   (30 * HW_NS_PER_S)
#define NEARLY_FULL    90
#define RELIEVED       50
#define WINDOW         1000 /* statuses under way */

struct hw_reader {
	struct sim *s;
	uint32_t k;             /* index of its link in sim_host.link */
	struct sim_read **read; /* owned, for each reader: messages that the loop has taken and not released */
	size_t n, cap;
};

struct hw_publisher {
	struct sim *s;
	uint32_t k;
	unsigned in_flight;
};

static struct sim_link *link_of(struct sim *s, uint32_t k)
{
	return &s->host.link[k];
}

/* --- connections ------------------------------------------------------------- */

static void tell(struct sim *s, uint32_t k, enum sim_what what, uint64_t number)
{
	sim_fifo_push(&link_of(s, k)->signs, &(struct sim_packet){.what = what, .number = number});
	sim_at(s, s->now, SIM_PIPE, k, 0, 0);
}

static void plan_dial(struct sim *s, uint32_t k, int64_t wait_ns)
{
	sim_at(s, s->now + wait_ns, SIM_HOST_DIAL, k, ++link_of(s, k)->stamp, 0);
}

static void redial(struct sim *s, uint32_t k)
{
	struct sim_link *l = link_of(s, k);
	l->wait_ns = l->wait_ns == 0 ? HW_NS_PER_S : 2 * l->wait_ns < BACKOFF_MAX_NS ? 2 * l->wait_ns : BACKOFF_MAX_NS;
	plan_dial(s, k, l->wait_ns / 2 + sim_below(&s->random, l->wait_ns));
}

/* Called when the client finds its connection lost. */
static void down(struct sim *s, uint32_t k)
{
	if (!link_of(s, k)->open)
		return;
	link_of(s, k)->open = false;
	tell(s, k, SIM_CLOSE, 0);
	redial(s, k);
}

static void lose(struct sim *s, uint32_t k)
{
	if (!link_of(s, k)->open)
		return;
	sim_broker_leave(s, s->plan.devices + k);
	down(s, k);
}

void sim_mqtt_lose(struct sim *s, bool barriers, bool statuses)
{
	if (!sim_host_is_awake(s))
		return;
	if (barriers)
		lose(s, s->plan.readers);
	if (statuses)
		lose(s, s->plan.readers + 1);
}

void sim_mqtt_rest(struct sim *s)
{
	uint32_t k = s->plan.readers;
	if (!link_of(s, k)->open)
		return;
	lose(s, k);
	int64_t wait_ns = sim_below(&s->random, s->plan.timeout_ns[0] / 8);
	int64_t latest_ns = sim_length(s) - 3 * s->plan.tick_ns - s->now;
	plan_dial(s, k, wait_ns < latest_ns ? wait_ns : latest_ns);
}

void sim_mqtt_start(struct sim *s)
{
	s->host.readers_started = 0;
	s->host.answered_ns = 0;
	for (uint32_t k = 0; k < s->plan.readers + 2; k++) {
		struct sim_link *l = link_of(s, k);
		l->up = l->open = l->drains = false;
		l->wait_ns = 0;
		l->signs.n = 0;
	}
}

void sim_mqtt_on_dial(struct sim *s, uint32_t k, uint32_t stamp)
{
	struct sim_link *l = link_of(s, k);
	if (!s->host.m || stamp != l->stamp || l->open)
		return;
	bool stands = k < s->plan.readers && s->host.reader_stopped[k] >= 0;
	if (!sim_host_is_awake(s) || stands || !sim_broker_connect(s, s->plan.devices + k, KEEPALIVE_NS, false)) {
		redial(s, k);
		return;
	}
	l->open = true;
	l->wait_ns = 0;
	tell(s, k, SIM_UP, 0);
}

void sim_mqtt_on_closed(struct sim *s, uint32_t k, uint32_t conn)
{
	if (!s->host.m || s->broker.client[s->plan.devices + k].conn != conn)
		return;
	if (sim_host_is_awake(s))
		down(s, k);
	else
		sim_at(s, s->now + HW_NS_PER_S / 4, SIM_HOST_CLOSED, k, conn, 0);
}

/* Another connection has reached the broker. */
static void retry(struct sim *s, uint32_t k)
{
	if (!link_of(s, k)->open && !s->plan.sparse)
		plan_dial(s, k, HW_NS_PER_MS);
}

/* --- messages ---------------------------------------------------------------- */

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

/* A canary has returned on the filter for which it was sent. */
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

/* For a lie: writes only the first element of the list. */
static size_t cut_list(const struct sim_list *l, char *buf, size_t cap)
{
	return (size_t)snprintf(buf, cap, "%.*s]", (int)l->element[0].end, l->text);
}

const struct sim_read *sim_mqtt_read(const char *topic)
{
	return (const struct sim_read *)(const void *)(topic - offsetof(struct sim_read, topic));
}

static struct sim_read *next_read(struct hw_reader *r)
{
	if (r->n == r->cap) {
		struct sim_read **more = sim_calloc(r->cap + HW_BATCH, sizeof(*more));
		if (r->cap)
			memcpy(more, r->read, r->cap * sizeof(*more));
		free(r->read);
		r->read = more;
		for (size_t k = 0; k < HW_BATCH; k++)
			more[r->cap++] = sim_calloc(1, sizeof(**more));
	}
	return r->read[r->n++];
}

static void take_message(struct hw_reader *r, const struct sim_packet *p, struct hw_reader_event *ev)
{
	struct sim *s = r->s;
	struct sim_read *x = next_read(r);
	x->packet = *p;
	x->reader = r->k;
	*ev = (struct hw_reader_event){
		.kind = HW_READER_MESSAGE, .topic = x->topic, .payload = x->payload, .retained = p->retained};
	ev->topic_len = (size_t)topic_of(s, p, x->topic, sizeof(x->topic));
	if (p->what == SIM_LIST && s->lie == SIM_FIRST_ALONE && sim_list_of(s, p)->n > 0) {
		ev->payload_len = cut_list(sim_list_of(s, p), x->payload, sizeof(x->payload));
	} else if (p->what == SIM_LIST) {
		ev->payload = sim_list_of(s, p)->text;
		ev->payload_len = sim_list_of(s, p)->len;
	} else {
		ev->payload_len = (size_t)payload_of(p, x->payload, sizeof(x->payload));
	}
}

/* --- the readers ------------------------------------------------------------- */

int hw_reader_start(struct hw_reader **out, const struct hw_mqtt_conf *conf, const struct hw_mqtt_filter *filters,
                    size_t n_filters, const char *share_group, size_t ring_bytes, int64_t stall_after_ms)
{
	struct hw_reader *r = *out = sim_calloc(1, sizeof(*r));
	(void)conf, (void)filters, (void)n_filters, (void)share_group, (void)ring_bytes, (void)stall_after_ms;
	*r = (struct hw_reader){.s = sim_running, .k = sim_running->host.readers_started++};
	plan_dial(r->s, r->k, sim_below(&r->s->random, HW_NS_PER_S / 20));
	return 0;
}

void hw_reader_stop(struct hw_reader *r)
{
	for (size_t k = 0; k < r->cap; k++)
		free(r->read[k]);
	free(r->read);
	free(r);
}

int hw_reader_fd(const struct hw_reader *r)
{
	return (int)r->k;
}

static bool has_arrived(const struct sim *s, uint32_t k)
{
	const struct sim_fifo *q = &s->broker.pipe[k].q;
	return q->n > 0 && sim_fifo_at(q, 0)->at <= s->now;
}

static void note_fill(struct sim *s, uint32_t r)
{
	struct sim_pipe *pipe = &s->broker.pipe[r];
	unsigned percent = sim_broker_fill(s, r);
	if (percent > NEARLY_FULL && !pipe->filled) {
		pipe->filled = true;
		tell(s, r, SIM_FULL, 0);
	} else if (percent < RELIEVED) {
		pipe->filled = false;
	}
}

/* Reads the acknowledgements of barriers, which only the client's thread uses. */
static void read_answers(struct sim *s)
{
	struct sim_packet p;
	while (sim_broker_read(s, s->plan.readers, &p))
		s->host.answered_ns = sim_oracle_mono(s);
}

bool sim_mqtt_is_readable(struct sim *s, uint32_t k)
{
	const struct sim_link *l = link_of(s, k);
	if (k == s->plan.readers) {
		read_answers(s);
		return l->signs.n > 0;
	}
	if (k < s->plan.readers && s->host.reader_stopped[k] >= 0)
		return false;
	if (k < s->plan.readers)
		note_fill(s, k);
	return l->signs.n > 0 || has_arrived(s, k) || l->drains;
}

void sim_mqtt_stalled(struct sim *s, uint32_t r, int64_t since)
{
	tell(s, r, SIM_STALLED, (uint64_t)since);
	link_of(s, r)->drains = true;
}

static const enum hw_reader_event_kind kinds[] = {[SIM_UP] = HW_READER_UP,
                                                  [SIM_CLOSE] = HW_READER_DOWN,
                                                  [SIM_STALLED] = HW_READER_STALL,
                                                  [SIM_FULL] = HW_READER_NEARLY_FULL,
                                                  [SIM_BARRIER] = HW_READER_BARRIER,
                                                  [SIM_SHARE] = HW_READER_SHARE,
                                                  [SIM_REPLAYED] = HW_READER_REPLAYED,
                                                  [SIM_RENEWED] = HW_READER_RENEWED};

static bool take_sign(const struct hw_reader *r, const struct sim_packet *p, struct hw_reader_event *ev)
{
	*ev = (struct hw_reader_event){.kind = kinds[p->what],
	                               .number = p->number,
	                               .run_id = r->s->host.app->life.run_id,
	                               .planned_ns = (int64_t)p->number,
	                               .text = "the broker has closed the connection"};
	return true;
}

static bool is_sign(const struct sim_packet *p)
{
	return p->what == SIM_CLOSE || p->what == SIM_BARRIER || p->what == SIM_SHARE || p->what == SIM_REPLAYED ||
	       p->what == SIM_RENEWED;
}

/* Whether a lie hides the packet from the wiring. */
static bool is_kept_back(struct sim *s, const struct sim_packet *p)
{
	if (s->lie == SIM_UNTOLD && p->what == SIM_STATE)
		sim_oracle_bridge(s, p->device, p->online);
	return (s->lie == SIM_UNTOLD && p->what == SIM_STATE) ||
	       (s->lie == SIM_DEAF && p->what != SIM_CANARY && s->now > s->plan.trouble_ns / 2);
}

bool hw_reader_take(struct hw_reader *r, struct hw_reader_event *ev)
{
	struct sim *s = r->s;
	struct sim_link *l = link_of(s, r->k);
	struct sim_packet p;
	if (s->host.reader_stopped[r->k] >= 0)
		return false;
	s->host.spins = 0;
	if (l->signs.n > 0) {
		p = sim_fifo_pop(&l->signs);
		return take_sign(r, &p, ev);
	}
	while (sim_broker_read(s, r->k, &p)) {
		if (p.what == SIM_CLOSE) {
			l->open = false;
			redial(s, r->k);
		}
		if (is_sign(&p))
			return take_sign(r, &p, ev);
		if (is_kept_back(s, &p))
			continue;
		take_message(r, &p, ev);
		return true;
	}
	*ev = (struct hw_reader_event){.kind = HW_READER_DRAINED};
	bool drained = l->drains;
	l->drains = false;
	return drained;
}

void hw_reader_release(struct hw_reader *r)
{
	r->n = 0;
}

/* Packets that a stopped thread has not read are not visible to the loop. */
bool hw_reader_rest(struct hw_reader *r)
{
	if (r->s->host.reader_stopped[r->k] >= 0)
		return true;
	return link_of(r->s, r->k)->signs.n == 0 && !has_arrived(r->s, r->k);
}

void hw_reader_replay(struct hw_reader *r)
{
	sim_broker_replay(r->s, SIM_REPLAYED);
}

void hw_reader_renew(struct hw_reader *r)
{
	sim_broker_replay(r->s, SIM_RENEWED);
}

void hw_reader_reconnect(struct hw_reader *r)
{
	lose(r->s, r->k);
}

void hw_reader_drain(struct hw_reader *r)
{
	link_of(r->s, r->k)->drains = true;
	sim_at(r->s, r->s->now, SIM_PIPE, r->k, 0, 0);
}

void hw_reader_retry(struct hw_reader *r)
{
	retry(r->s, r->k);
}

void hw_reader_expect(struct hw_reader *r, int64_t until_ns)
{
	(void)r, (void)until_ns;
}

/* --- the publishers ---------------------------------------------------------- */

int hw_publisher_start(struct hw_publisher **out, const struct hw_mqtt_conf *conf, const char *will_topic,
                       const void *will_payload, size_t will_len)
{
	struct hw_publisher *p = *out = sim_calloc(1, sizeof(*p));
	struct sim *s = sim_running;
	(void)conf, (void)will_payload, (void)will_len;
	*p = (struct hw_publisher){.s = s, .k = s->plan.readers + (will_topic ? 1 : 0)};
	plan_dial(s, p->k, will_topic ? HW_NS_PER_S / 40 : sim_below(&s->random, HW_NS_PER_S / 20));
	return 0;
}

void hw_publisher_stop(struct hw_publisher *p, int64_t timeout_ms)
{
	(void)timeout_ms;
	free(p);
}

int hw_publisher_fd(const struct hw_publisher *p)
{
	return (int)p->k;
}

static bool take_answer(struct hw_publisher *p, struct sim_packet *packet)
{
	struct sim_link *l = link_of(p->s, p->k);
	if (l->signs.n > 0) {
		*packet = sim_fifo_pop(&l->signs);
		return true;
	}
	return p->k > p->s->plan.readers && sim_broker_read(p->s, p->k, packet);
}

bool hw_publisher_take(struct hw_publisher *p, struct hw_publisher_event *ev)
{
	struct sim_packet x;
	if (!take_answer(p, &x))
		return false;
	*ev = (struct hw_publisher_event){.kind = x.what == SIM_UP       ? HW_PUBLISHER_UP
	                                          : x.what == SIM_CLOSE  ? HW_PUBLISHER_DOWN
	                                          : x.what == SIM_CANARY ? HW_PUBLISHER_CANARY
	                                                                 : HW_PUBLISHER_ACKED,
	                                  .publish_id = x.what == SIM_CLOSE ? 0 : x.number};
	if (ev->kind == HW_PUBLISHER_ACKED)
		p->in_flight--;
	else if (ev->kind == HW_PUBLISHER_DOWN)
		p->in_flight = 0;
	if (ev->kind == HW_PUBLISHER_DOWN)
		snprintf(ev->text, sizeof(ev->text), "the connection is lost");
	return true;
}

unsigned hw_publisher_room(const struct hw_publisher *p)
{
	return link_of(p->s, p->k)->open && p->in_flight < WINDOW ? WINDOW - p->in_flight : 0;
}

/* Payloads end in a NUL. */
static uint64_t number_behind(const char *payload, const char *key)
{
	const char *at = strstr(payload, key);
	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/* No client in this world reads the monitor's presence. */
bool hw_publisher_publish(struct hw_publisher *p, const struct hw_publication *what)
{
	struct sim *s = p->s;
	const char *device = strstr(what->topic, "/d");
	if (hw_publisher_room(p) == 0)
		return false;
	s->host.spins = 0;
	if (!device)
		return true;
	struct sim_packet x = {.what = what->len ? SIM_STATUS : SIM_CLEARING,
	                       .device = (uint32_t)strtoul(device + 2, NULL, 10),
	                       .publish_id = what->publish_id,
	                       .online = what->len && strstr(what->payload, "\"online\":true") != NULL,
	                       .number = what->len ? number_behind(what->payload, "\"seq\":") : 0};
	p->in_flight++;
	s->host.published_at[x.device] = s->now;
	if (s->lie == SIM_UNSENT_STATUS)
		tell(s, p->k, SIM_ACK, what->publish_id);
	else
		sim_broker_send(s, s->plan.devices + p->k, x, s->plan.delay_ns);
	return true;
}

/* The client that carries the messages that the monitor sends to itself. */
static uint32_t carrier(const struct hw_publisher *p)
{
	return p->s->plan.devices + p->k + (p->s->lie == SIM_TOGETHER);
}

static void send_own(const struct hw_publisher *p, struct sim_packet x)
{
	if (link_of(p->s, p->k)->open)
		sim_broker_send(p->s, carrier(p), x, p->s->plan.delay_ns);
}

void hw_publisher_barrier(struct hw_publisher *p, uint64_t mark, uint64_t number)
{
	(void)mark;
	if (p->s->lie == SIM_FORGED)
		p->s->host.to_forge = number;
	else
		send_own(p, (struct sim_packet){.what = SIM_BARRIER, .number = number});
}

void hw_publisher_share(struct hw_publisher *p, uint64_t mark, uint64_t number)
{
	(void)mark;
	send_own(p, (struct sim_packet){.what = SIM_SHARE, .number = number});
	send_own(p, (struct sim_packet){.what = SIM_BARRIER, .number = HW_FENCE + number});
}

/* The number of a canary's packet contains the group and the filter. */
bool hw_publisher_canary(struct hw_publisher *p, const char *topic, const void *payload, size_t len,
                         uint64_t publish_id)
{
	(void)topic, (void)len;
	if (!link_of(p->s, p->k)->open)
		return false;
	send_own(p, (struct sim_packet){.what = SIM_CANARY,
	                                .number = number_behind(payload, "\"seq\":"),
	                                .device = 2 * (uint32_t)(publish_id >> 16) + (uint32_t)(publish_id & 0xffff)});
	tell(p->s, p->k, SIM_CANARY, publish_id);
	return true;
}

void hw_publisher_retry(struct hw_publisher *p)
{
	if (p)
		retry(p->s, p->k);
}

void hw_publisher_reconnect(struct hw_publisher *p)
{
	if (p->s->lie != SIM_ANSWERED)
		lose(p->s, p->k);
}

int64_t hw_publisher_answered_ns(const struct hw_publisher *p)
{
	return p->s->lie == SIM_ANSWERED ? sim_oracle_mono(p->s) : p->s->host.answered_ns;
}

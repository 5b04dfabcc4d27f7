/* SPDX-License-Identifier: MIT */
/*
 * See broker.h. Messages wait here while the publisher has no room; so the number of messages in the publisher is
 * limited. The publish_id of a message is its address, so no search is needed when the broker's answer comes.
 */
#include "tasks/mqtt/broker.h"

#include <errno.h>
#include <event2/event.h>
#include <mqtt_protocol.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "heartwheel/fnv.h"
#include "link/clock.h"
#include "mqtt/mqtt.h"
#include "tasks/allow.h"
#include "tasks/app.h"

#define SESSION_S    3600
#define RING_BYTES   (4 << 20)
#define EVENTS_A_RUN 256  /* per run; then other events of the loop are handled */
#define BARRIER_MS   5000 /* interval of the barriers */
/* if a barrier has come back, and then no other one for this long, the connection counts as lost */
#define SILENT_MS 20000
/* For hw_reader_start(): so long that no stall of the reader is reported, because a stall does not matter here. */
#define NEVER_MS (INT64_C(366) * 86400000)

struct put {
	TAILQ_ENTRY(put) link;
	struct hw_tasks_broker *broker;
	hw_put_fn *fn;
	void *arg;
	size_t topic_size, len;
	uint64_t subject;
	uint32_t expiry_s;
	int64_t until_ns;
	bool retain;
	int qos;
	char bytes[]; /* topic with its NUL, then payload */
};
TAILQ_HEAD(puts, put);

struct listener {
	struct listener *next;
	hw_got_fn *fn;
	void *arg;
	bool own;
	char filter[];
};

struct hw_tasks_broker {
	struct hw_tasks_app *app;
	struct hw_mqtt_conf reads, publishes;
	char *reader_id, *publisher_id, *barrier, *share, *group;
	struct hw_reader *reader;
	struct hw_publisher *publisher;
	struct event *on_reader, *on_publisher, *go_on; /* go_on: reads more in the next turn of the loop */
	struct puts waiting, out;                       /* not yet passed to the publisher; passed to it */
	size_t n, bytes;
	struct listener *listeners, **listeners_end;
	bool publisher_up, reader_up, open, filters_due, ending;
	bool ended, read_out; /* ended: the reader has ended; read_out: none of its messages waits any more */
	uint64_t barriers, run_id;
	int64_t barrier_ms, heard_ms; /* monotonic. barrier_ms: when the last barrier was sent; heard_ms: when one
	                               * came back on this connection, 0: none */
	char why[300], reader_why[300];
};

static int64_t now_ms(void)
{
	return hw_clock_mono().ns / HW_NS_PER_MS;
}

/* --- publishing --------------------------------------------------------------------------------------------------- */

static void answer(struct hw_tasks_broker *b, struct put *p, struct puts *from, enum hw_put what, const char *text)
{
	TAILQ_REMOVE(from, p, link);
	b->n--;
	b->bytes -= p->topic_size + p->len;
	if (p->fn)
		p->fn(p->arg, what, text);
	free(p);
}

static void lose_all(struct hw_tasks_broker *b)
{
	struct puts lost = TAILQ_HEAD_INITIALIZER(lost);
	TAILQ_CONCAT(&lost, &b->out, link);
	TAILQ_CONCAT(&lost, &b->waiting, link);
	while (!TAILQ_EMPTY(&lost))
		answer(b, TAILQ_FIRST(&lost), &lost, HW_PUT_LOST, "");
}

/* Returns how long the message is still valid, in s. */
static uint32_t expiry_of(const struct put *p, int64_t now_ns)
{
	int64_t left_s = p->until_ns ? (p->until_ns - now_ns) / HW_NS_PER_S : p->expiry_s;
	return p->until_ns && left_s < 1 ? 1 : (uint32_t)left_s;
}

static bool hand_over(struct hw_tasks_broker *b, struct put *p)
{
	const struct hw_publication what = {.topic = p->bytes,
	                                    .payload = p->bytes + p->topic_size,
	                                    .len = p->len,
	                                    .retain = p->retain,
	                                    .qos = p->qos,
	                                    .expiry_s = expiry_of(p, hw_tasks_now().ns),
	                                    .publish_id = (uint64_t)(uintptr_t)p,
	                                    .subject = p->subject};
	return hw_publisher_publish(b->publisher, &what);
}

void hw_tasks_broker_flush(struct hw_tasks_broker *b)
{
	struct put *p;
	if (!b->publisher)
		return;
	while ((p = TAILQ_FIRST(&b->waiting)) != NULL) {
		if (p->until_ns && hw_tasks_now().ns >= p->until_ns) {
			answer(b, p, &b->waiting, HW_PUT_LOST, "");
			continue;
		}
		if (!hand_over(b, p))
			break;
		TAILQ_REMOVE(&b->waiting, p, link);
		TAILQ_INSERT_TAIL(&b->out, p, link);
	}
	hw_publisher_flush(b->publisher);
}

uint64_t hw_tasks_subject(struct hw_text a, struct hw_text b)
{
	uint64_t h = hw_fnv64(hw_fnv64(HW_FNV64_BEGIN, a.at, a.len), "", 1);
	return hw_fnv64(h, b.at, b.len) | 1;
}

int hw_tasks_broker_publish(struct hw_tasks_broker *b, const struct hw_tasks_put *m, hw_put_fn *fn, void *arg)
{
	if (!b->publisher_up)
		return -ENOTCONN;
	if (b->n >= HW_BROKER_WAITING_MAX || b->bytes >= HW_BROKER_BYTES_MAX)
		return -EBUSY;
	struct put *p = malloc(sizeof(*p) + m->topic.len + 1 + m->payload.len);
	if (!p)
		return -ENOMEM;
	*p = (struct put){.broker = b,
	                  .fn = fn,
	                  .arg = arg,
	                  .topic_size = m->topic.len + 1,
	                  .len = m->payload.len,
	                  .subject = m->subject,
	                  .expiry_s = m->expiry_s,
	                  .until_ns = m->until_ns,
	                  .retain = m->retain,
	                  .qos = m->qos > 0};
	memcpy(p->bytes, m->topic.at, m->topic.len);
	p->bytes[m->topic.len] = '\0';
	if (m->payload.len)
		memcpy(p->bytes + p->topic_size, m->payload.at, m->payload.len);
	TAILQ_INSERT_TAIL(&b->waiting, p, link);
	b->n++;
	b->bytes += p->topic_size + p->len;
	hw_tasks_schedule_turn(b->app);
	return 0;
}

static void publisher_up(struct hw_tasks_broker *b)
{
	b->publisher_up = true;
	b->why[0] = '\0';
	hw_log(b->app->log, HW_LOG_NOTICE, "broker: publishing to %s:%d", b->publishes.host, b->publishes.port);
	if (b->reader && !b->reader_up)
		hw_reader_retry(b->reader);
	hw_tasks_on_broker(b->app);
}

static void publisher_down(struct hw_tasks_broker *b, const char *text)
{
	b->publisher_up = false;
	snprintf(b->why, sizeof(b->why), "%s", text);
	hw_log_limited(b->app->log, HW_TASKS_LIMIT_BROKER, HW_LOG_ERROR, "broker: %s", text);
	lose_all(b);
	hw_tasks_on_broker(b->app);
}

static void answered(struct hw_tasks_broker *b, const struct hw_publisher_event *ev)
{
	struct put *p = (struct put *)(uintptr_t)ev->publish_id;
	bool too_long = ev->reason == MQTT_RC_PACKET_TOO_LARGE;
	/* without a text: the publisher did not send the message, and sends none with this subject for a while */
	if (ev->kind == HW_PUBLISHER_REFUSED && !ev->text[0] && !too_long)
		answer(b, p, &b->out, HW_PUT_LOST, "");
	else if (ev->kind == HW_PUBLISHER_REFUSED)
		answer(b, p, &b->out, HW_PUT_REFUSED, ev->text[0] ? ev->text : "it is longer than the broker's limit");
	else
		answer(b, p, &b->out, ev->reason == 0x10 ? HW_PUT_NOBODY : HW_PUT_TAKEN, "");
}

static void take_answers(struct hw_tasks_broker *b)
{
	struct hw_publisher_event ev;
	while (hw_publisher_take(b->publisher, &ev)) {
		switch (ev.kind) {
		case HW_PUBLISHER_UP:
			publisher_up(b);
			break;
		case HW_PUBLISHER_DOWN:
			publisher_down(b, ev.text);
			break;
		case HW_PUBLISHER_ACKED:
		case HW_PUBLISHER_REFUSED:
			answered(b, &ev);
			break;
		case HW_PUBLISHER_LIMIT:
			hw_log(b->app->log, HW_LOG_WARNING, "broker: %s", ev.text);
			break;
		case HW_PUBLISHER_CANARY:
		case HW_PUBLISHER_BARRIERS:
			break;
		}
	}
	hw_tasks_schedule_turn(b->app);
}

static void on_publisher(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	take_answers(arg);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static void hand_out(struct hw_tasks_broker *b, const struct hw_reader_event *ev)
{
	const struct hw_tasks_got m = {.topic = {ev->topic, ev->topic_len},
	                               .payload = {ev->payload, ev->payload_len},
	                               .retained = ev->retained,
	                               .truncated = ev->truncated};
	for (struct listener *l = b->listeners, *next; l; l = next) {
		next = l->next;
		if (hw_filter_has(l->filter, m.topic))
			l->fn(l->arg, &m);
	}
}

static void reader_is(struct hw_tasks_broker *b, bool up, const char *text)
{
	b->reader_up = up;
	b->heard_ms = 0;
	snprintf(b->reader_why, sizeof(b->reader_why), "%s", text);
	if (up)
		hw_log(b->app->log, HW_LOG_NOTICE, "broker: subscribed at %s:%d", b->reads.host, b->reads.port);
	else
		hw_log_limited(b->app->log, HW_TASKS_LIMIT_BROKER, HW_LOG_ERROR, "broker: %s", text);
	hw_tasks_schedule_turn(b->app);
}

static void take_message(struct hw_tasks_broker *b, const struct hw_reader_event *ev)
{
	switch (ev->kind) {
	case HW_READER_MESSAGE:
		hand_out(b, ev);
		break;
	case HW_READER_BARRIER:
		if (ev->run_id == b->run_id)
			b->heard_ms = now_ms();
		break;
	case HW_READER_TOO_LONG:
		b->app->counts.refused[HW_REFUSED_TOO_LARGE]++;
		hw_log_limited(b->app->log, HW_TASKS_LIMIT_REFUSED, HW_LOG_WARNING, "broker: %s", ev->text);
		break;
	case HW_READER_UP:
		reader_is(b, true, "");
		break;
	case HW_READER_DOWN:
	case HW_READER_REFUSED:
		reader_is(b, false, ev->text);
		break;
	default:
		break;
	}
}

/* Schedules a reading with a timer. With event_active(), an event that activates itself would keep the loop in the same
 * turn. */
static void read_soon(struct hw_tasks_broker *b)
{
	(void)event_add(b->go_on, &(struct timeval){0, 0}); /* if there is no memory the tick does it */
}

/* Takes at most EVENTS_A_RUN events. */
static void on_reader(evutil_socket_t fd, short what, void *arg)
{
	struct hw_tasks_broker *b = arg;
	struct hw_reader_event ev;
	unsigned n = 0;
	(void)fd, (void)what;
	b->read_out = false;
	for (;;) {
		while (b->open && n < EVENTS_A_RUN && hw_reader_take(b->reader, &ev)) {
			take_message(b, &ev);
			n++;
		}
		hw_reader_release(b->reader);
		if (!b->open || n == EVENTS_A_RUN)
			break;
		b->read_out = hw_reader_rest(b->reader);
		if (b->read_out)
			break;
	}
	if (b->open && n == EVENTS_A_RUN)
		read_soon(b);
	hw_tasks_schedule_turn(b->app);
}

void hw_tasks_broker_open(struct hw_tasks_broker *b, bool open)
{
	if (!b->reader || b->open == open)
		return;
	b->open = open;
	if (!open) {
		event_del(b->on_reader);
		event_del(b->go_on);
	} else if (event_add(b->on_reader, NULL) == 0) {
		read_soon(b);
	} else {
		b->open = false; /* the next turn tries again */
	}
}

void hw_tasks_broker_end(struct hw_tasks_broker *b)
{
	if (!b->reader)
		return;
	hw_reader_end(b->reader);
	b->ending = true;
}

bool hw_tasks_broker_has_ended(struct hw_tasks_broker *b)
{
	if (!b->reader)
		return true;
	if (!b->ending || !hw_reader_ended(b->reader))
		return false;
	if (b->ended && b->read_out)
		return true;
	b->ended = true; /* its remaining messages are read from here on */
	b->read_out = false;
	if (b->open)
		read_soon(b);
	return false;
}

/* --- subscriptions ------------------------------------------------------------------------------------------------ */

/* Whether another filter covers the filter of `l`. If so, this instance does not subscribe to the filter of `l`,
 * because a broker may send a message that matches both filters twice. */
static bool is_covered(const struct hw_tasks_broker *b, const struct listener *l)
{
	for (const struct listener *o = b->listeners; o; o = o->next)
		if (o->own == l->own && strcmp(o->filter, l->filter) != 0 && hw_filter_covers(o->filter, l->filter))
			return true;
	return false;
}

/* Returns the filters to subscribe, each once. The caller frees the array. */
static struct hw_mqtt_filter *filters_of(struct hw_tasks_broker *b, size_t *n)
{
	size_t count = 0;
	for (struct listener *l = b->listeners; l; l = l->next)
		count++;
	struct hw_mqtt_filter *f = calloc(count + 1, sizeof(*f));
	*n = 0;
	for (struct listener *l = b->listeners; f && l; l = l->next) {
		size_t k = 0;
		if (is_covered(b, l))
			continue;
		while (k < *n && (strcmp(f[k].filter, l->filter) != 0 || f[k].plain != l->own))
			k++;
		f[k] = (struct hw_mqtt_filter){.filter = l->filter, .plain = l->own};
		if (k == *n)
			++*n;
	}
	return f;
}

static void set_filters(struct hw_tasks_broker *b)
{
	size_t n;
	struct hw_mqtt_filter *f = filters_of(b, &n);
	b->filters_due = !f || hw_reader_set_filters(b->reader, f, n) != 0;
	free(f);
}

int hw_tasks_broker_listen(struct hw_tasks_broker *b, const char *filter, bool own, hw_got_fn *fn, void *arg)
{
	size_t size = strlen(filter) + 1;
	struct listener *l = malloc(sizeof(*l) + size);
	if (!l)
		return -ENOMEM;
	*l = (struct listener){.fn = fn, .arg = arg, .own = own && b->app->conf->several};
	memcpy(l->filter, filter, size);
	*b->listeners_end = l;
	b->listeners_end = &l->next;
	if (b->reader)
		set_filters(b);
	return 0;
}

/* --- start and stop ----------------------------------------------------------------------------------------------- */

bool hw_tasks_broker_publishes(const struct hw_tasks_broker *b)
{
	return b->publisher_up;
}

bool hw_tasks_broker_reads(const struct hw_tasks_broker *b)
{
	return b->reader_up;
}

const char *hw_tasks_broker_why(const struct hw_tasks_broker *b)
{
	return b->publisher_up ? b->reader_why : b->why;
}

bool hw_tasks_broker_has_room(const struct hw_tasks_broker *b)
{
	return b->bytes < HW_BROKER_BYTES_MAX / 2;
}

size_t hw_tasks_broker_waiting(const struct hw_tasks_broker *b)
{
	return b->n;
}

/* Called each second. Gives up a connection that is broken but was not closed: its barriers do not come back. While
 * this instance does not read, no barrier can arrive, so that time does not count. */
void hw_tasks_broker_tick(struct hw_tasks_broker *b)
{
	int64_t now = now_ms();
	if (!b->reader)
		return;
	if (b->filters_due)
		set_filters(b);
	if (b->open && !b->read_out)
		read_soon(b);
	if (!b->open)
		b->heard_ms = 0;
	if (!b->reader_up || !b->publisher_up || !b->open || b->ending)
		return;
	if (b->heard_ms && now - b->heard_ms > SILENT_MS) {
		b->heard_ms = 0;
		hw_reader_reconnect(b->reader);
	}
	if (now - b->barrier_ms < BARRIER_MS)
		return;
	b->barrier_ms = now;
	hw_publisher_barrier(b->publisher, b->run_id, ++b->barriers);
	hw_publisher_flush(b->publisher);
}

static int watch(struct hw_tasks_broker *b)
{
	struct event_base *base = b->app->loop.base;
	b->on_reader = event_new(base, hw_reader_fd(b->reader), EV_READ | EV_PERSIST, on_reader, b);
	b->go_on = evtimer_new(base, on_reader, b);
	b->on_publisher = event_new(base, hw_publisher_fd(b->publisher), EV_READ | EV_PERSIST, on_publisher, b);
	return b->on_reader && b->go_on && b->on_publisher && event_add(b->on_publisher, NULL) == 0 ? 0 : -ENOMEM;
}

static int start_reader(struct hw_tasks_broker *b)
{
	size_t n;
	struct hw_mqtt_filter *f = filters_of(b, &n);
	int rc = f ? hw_reader_start(&b->reader, &b->reads, f, n, b->group, RING_BYTES, NEVER_MS) : -ENOMEM;
	free(f);
	return rc;
}

int hw_tasks_broker_start(struct hw_tasks_broker *b, const char *password)
{
	const struct hw_conf_mqtt *c = &b->app->conf->mqtt;
	b->reads = (struct hw_mqtt_conf){.host = c->host,
	                                 .port = (int)c->port,
	                                 .protocol = c->protocol,
	                                 .keepalive_s = (int)(c->keepalive_ms / 1000),
	                                 .username = c->username,
	                                 .password = password,
	                                 .tls_ca = c->tls_ca,
	                                 .tls_cert = c->tls_cert,
	                                 .tls_key = c->tls_key,
	                                 .client_id = b->reader_id,
	                                 .barrier_topic = b->barrier,
	                                 .share_topic = b->share,
	                                 .qos = 1,
	                                 .session_s = b->app->conf->several ? 0 : SESSION_S};
	b->publishes = b->reads;
	b->publishes.client_id = b->publisher_id;
	b->publishes.session_s = 0;
	int rc = start_reader(b);
	if (!rc)
		rc = hw_publisher_start(&b->publisher, &b->publishes, NULL, NULL, 0);
	return rc ? rc : watch(b);
}

static char *text(const char *format, const char *a, const char *b)
{
	char *out = NULL;
	return asprintf(&out, format, a, b) < 0 ? NULL : out;
}

struct hw_tasks_broker *hw_tasks_broker_new(struct hw_tasks_app *app)
{
	struct hw_tasks_broker *b = calloc(1, sizeof(*b));
	const struct hw_tasks_settings *c = app->conf;
	if (!b)
		return NULL;
	b->app = app;
	b->listeners_end = &b->listeners;
	b->run_id = (uint64_t)hw_clock_now().wall_ms * 1000003 ^ (uint64_t)(uintptr_t)b;
	TAILQ_INIT(&b->waiting);
	TAILQ_INIT(&b->out);
	b->reader_id = text("%s-%s-tasks-r0", c->mqtt.client_id_prefix, c->node_id);
	b->publisher_id = text("%s-%s-tasks-pub", c->mqtt.client_id_prefix, c->node_id);
	b->barrier = text("heartwheel/%s/tasks%s", c->node_id, "/barrier");
	b->share = text("heartwheel/%s/tasks%s", c->node_id, "/share");
	b->group = c->several ? text("%s-tasks-%s", c->mqtt.client_id_prefix, c->name) : NULL;
	if (b->reader_id && b->publisher_id && b->barrier && b->share && (b->group || !c->several))
		return b;
	hw_tasks_broker_free(b, 0);
	return NULL;
}

void hw_tasks_broker_free(struct hw_tasks_broker *b, int64_t timeout_ms)
{
	if (!b)
		return;
	if (b->on_reader)
		event_free(b->on_reader);
	if (b->go_on)
		event_free(b->go_on);
	hw_reader_stop(b->reader);
	hw_tasks_broker_flush(b);
	hw_publisher_stop(b->publisher, timeout_ms);
	if (b->on_publisher)
		event_free(b->on_publisher);
	lose_all(b);
	for (struct listener *l = b->listeners, *next; l; l = next) {
		next = l->next;
		free(l);
	}
	free(b->reader_id);
	free(b->publisher_id);
	free(b->barrier);
	free(b->share);
	free(b->group);
	free(b);
}

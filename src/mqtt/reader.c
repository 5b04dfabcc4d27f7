/* SPDX-License-Identifier: MIT */
/*
 * A reader: one thread that moves heartbeats from one connection into one ring.
 *
 * Invariant: the ring contains messages, barriers and connection events in the order in which they happened. None is
 * dropped for lack of room. Before each read the ring must have room for the largest record. Otherwise the thread does
 * not read, the socket fills, and the broker must wait.
 *
 * Cost: a wake-up costs more than a message, so each wake-up handles many messages. At a high message rate, the thread
 * waits 2 ms before it reads, and then reads until no data is left, ahead of the library if possible (ahead.h). At a
 * low rate the wait would save little, and would delay a goodbye by 2 ms. When idle, the thread wakes only for barriers
 * and its keepalive.
 */
#include <errno.h>
#include <mosquitto.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/time.h"
#include "mqtt/ahead.h"
#include "mqtt/barrier.h"
#include "mqtt/clock.h"
#include "mqtt/filters.h"
#include "mqtt/link.h"
#include "mqtt/mqtt.h"
#include "mqtt/orders.h"
#include "mqtt/packet.h"
#include "mqtt/receive.h"
#include "mqtt/records.h"
#include "mqtt/ring.h"
#include "mqtt/thread.h"

#define READ_BUDGET  4096 /* packets, before orders and the ring are checked again */
#define GATHER_MS    2
#define GATHER_BELOW 16384               /* with more bytes in the socket, the thread does not wait for more */
#define COUNT_NS     (50 * HW_NS_PER_MS) /* the period over which messages are counted */
#define HIGH_RATE    25                  /* this many messages in COUNT_NS, or one in 2 ms, are a high rate */
/* poll timeout between messages; if it ends late, the thread was stopped */
#define LULL_MS 500
/* after this many timeouts without a message, the reader is idle, and a late wake-up is no stall */
#define LULLS             2
#define HANDSHAKE_MS      100
#define STOP_MS           2000
#define NEARLY_FULL       90 /* percent of the receive buffer */
#define RELIEVED          50
#define FILL_WORTH_ASKING 16384

struct hw_reader {
	struct hw_ring *ring;
	atomic_int owners; /* the loop's side and the thread: the last owner frees */
	pthread_t thread;
	char *share_group; /* or NULL */
	bool ends;         /* the thread was ordered to end */

	struct hw_orders orders;
	_Atomic int64_t expect_until_ns;    /* see hw_reader_expect() */
	atomic_bool taken;                  /* see struct hw_reader_stats */
	atomic_bool gathering;              /* the thread waits in gather(); `orders.fd` ends the wait */
	struct hw_filters *_Atomic ordered; /* a new set of filters for the thread, or NULL */

	/* used by the thread only */
	struct hw_link link;
	struct hw_ahead *ahead; /* NULL: the library reads everything */
	struct hw_filters *filters;
	int64_t stall_after_ns;
	int64_t planned_ns;        /* when watch_clock() was to run next */
	int64_t counted_ns;        /* when the message rate was last computed */
	uint64_t messages_counted; /* `messages` at that time */
	bool high_rate;            /* the rate was high */
	uint64_t messages_seen;    /* `messages` at the last check for new messages */
	unsigned lulls;            /* consecutive timeouts without a message */
	bool more;                 /* there may be more data than poll() reports */
	bool no_room;              /* the ring is full */
	bool stalled, filled;      /* reported, and not over yet */
	bool was_up;               /* the link was up before */
	bool replaying;            /* retained messages were requested again */
	bool renewing;             /* the same by hw_reader_renew() */
	char refused[HW_WHY_TEXT];
	size_t barrier_len; /* length of the barrier topic */
	size_t share_len;   /* length of the share topic; 0 without a group */

	atomic_uint_least64_t messages, bytes, wakeups, reconnects, ring_waits, junk_barriers, gathered;
};

/* Adds to a counter. No locked instruction is needed, because only one thread writes. */
static void count(atomic_uint_least64_t *counter, uint64_t by)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + by, memory_order_relaxed);
}

static uint64_t counted(const atomic_uint_least64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

/* --- adding to the ring */

static bool has_room(void *owner)
{
	return hw_records_have_room(((struct hw_reader *)owner)->ring);
}

/*
 * Waits for room in the ring. Needed for events while the ring is full. Also needed for messages that the library
 * delivers after it was asked to stop. Returns false if the thread must end.
 */
static bool wait_for_room(struct hw_reader *r)
{
	hw_ring_wait_room(r->ring);
	if (has_room(r))
		return true;
	count(&r->ring_waits, 1);
	hw_orders_wait(&r->orders, hw_ring_room_fd(r->ring), -1);
	return !hw_orders_stop(&r->orders);
}

static void emit(struct hw_reader *r, enum hw_reader_event_kind kind, const void *data, size_t size)
{
	while (!hw_records_event(r->ring, kind, data, size))
		if (!wait_for_room(r))
			return;
}

/* Adds a message to the ring. Returns false if there is no room now. Most messages come directly from the socket: see
 * ahead.h. */
static bool take(void *owner, const struct hw_packet *p)
{
	struct hw_reader *r = owner;
	const struct hw_mqtt_conf *c = &r->link.conf;
	struct hw_barrier b;
	bool barrier = p->topic_len == r->barrier_len && memcmp(p->topic, c->barrier_topic, p->topic_len) == 0;
	if (!barrier && (p->topic_len != r->share_len || memcmp(p->topic, c->share_topic, p->topic_len) != 0)) {
		if (!hw_records_message(r->ring, p))
			return false;
		count(&r->messages, 1);
		count(&r->bytes, p->payload_len);
		return true;
	}
	if (!p->retained && hw_barrier_parse(p->payload, p->payload_len, &b))
		return hw_records_event(r->ring, barrier ? HW_READER_BARRIER : HW_READER_SHARE, &b, sizeof(b));
	count(&r->junk_barriers, 1);
	return true;
}

static void on_message(struct mosquitto *m, void *arg, const struct mosquitto_message *msg)
{
	struct hw_link *l = arg;
	struct hw_reader *r = l->owner;
	(void)m;
	l->progress++;
	const struct hw_packet p = {.topic = msg->topic,
	                            .topic_len = strlen(msg->topic),
	                            .payload = msg->payload,
	                            .payload_len = (size_t)msg->payloadlen,
	                            .retained = msg->retain};
	while (!take(r, &p))
		if (!wait_for_room(r))
			break;
	/* The library may have more packets in memory (TLS, QoS 2), and would deliver them in the same call. If the
	 * ring has no room, EAGAIN makes the library stop first. */
	errno = has_room(r) ? 0 : EAGAIN;
}

static void on_subscribe(struct mosquitto *m, void *arg, int mid, int n, const int *codes)
{
	struct hw_link *l = arg;
	struct hw_reader *r = l->owner;
	(void)m;
	l->progress++;
	bool renewal = false;
	const char *filter = n > 0 ? hw_filters_answer(r->filters, mid, codes[0], &renewal) : NULL;
	const char *user = l->conf.username[0] ? l->conf.username : "anonymous clients";
	if (!filter || r->refused[0])
		return;
	snprintf(r->refused, sizeof(r->refused),
	         "subscription to '%.120s' refused by the broker (%s): give %.32s the right to subscribe to it and to "
	         "read it",
	         filter, mosquitto_reason_string(codes[0]), user);
	if (renewal) {
		emit(r, HW_READER_REFUSED, r->refused, strlen(r->refused) + 1);
		r->refused[0] = '\0';
	}
}

static void on_too_long(void *owner, const struct hw_too_long *m)
{
	char text[384];
	snprintf(text, sizeof(text),
	         "a %smessage of %zu bytes on topic '%s' was discarded, because its MQTT 5 properties are longer "
	         "than %d KiB; %s",
	         m->retained ? "retained " : "", m->size, m->topic, HW_GUARD_PROPERTIES_KIB,
	         m->retained ? "publish an empty retained message there to remove it from the broker"
	                     : "its sender must send fewer properties");
	emit(owner, HW_READER_TOO_LONG, text, strlen(text) + 1);
}

static int prepare(struct hw_link *l)
{
	mosquitto_message_callback_set(l->m, on_message);
	mosquitto_subscribe_callback_set(l->m, on_subscribe);
	return 0;
}

/* --- events of the connection */

/*
 * Reads the clock, and reports a stall if this call is later than planned. Sets the planned time of the next call to
 * now. A caller that is about to wait sets it to the end of the wait. So no stall is missed.
 */
static int64_t watch_clock(struct hw_reader *r)
{
	int64_t now = hw_mqtt_clock_ns();
	if (!r->stalled && r->link.up_ns && now - r->planned_ns > r->stall_after_ns) {
		r->stalled = true;
		emit(r, HW_READER_STALL, &r->planned_ns, sizeof(r->planned_ns));
	}
	r->planned_ns = now;
	return now;
}

static void note_drained(struct hw_reader *r)
{
	if (r->stalled)
		emit(r, HW_READER_DRAINED, NULL, 0);
	r->stalled = false;
}

static void note_fill(struct hw_reader *r, int fd, size_t waiting)
{
	if (waiting < FILL_WORTH_ASKING) { /* the usual case; this saves the system call */
		r->filled = false;
		return;
	}
	unsigned percent = hw_receive_percent(fd, waiting);
	if (percent > NEARLY_FULL && !r->filled && r->link.up_ns) {
		r->filled = true;
		emit(r, HW_READER_NEARLY_FULL, NULL, 0);
	} else if (percent < RELIEVED) {
		r->filled = false;
	}
}

#define ONE_READER "with more than one reader; set [mqtt] readers = 1"

static void lost(struct hw_reader *r)
{
	char why[HW_WHY_TEXT];
	if (r->share_group && r->link.state == HW_LINK_OPEN && !r->link.up_ns && r->link.why.fault == HW_FAULT_CLOSED)
		hw_why_refuse(&r->link.why,
		              "%s:%d closed the connection at a shared subscription: without shared subscriptions "
		              "heartwheeld cannot work " ONE_READER,
		              r->link.conf.host, r->link.conf.port);
	memcpy(why, r->link.why.text, sizeof(why));
	atomic_store(&r->taken, r->link.why.fault == HW_FAULT_TAKEN);
	bool news = hw_link_down(&r->link, hw_mqtt_clock_ns());
	note_drained(r); /* nothing is left to read */
	if (news)
		emit(r, HW_READER_DOWN, why, strlen(why) + 1);
	r->filled = r->no_room = r->more = r->replaying = r->renewing = false;
	r->refused[0] = '\0';
	hw_ring_publish(r->ring);
}

/* Called when the broker refuses a right. This is reported as an event of its own, and also as DOWN if the
 * connection was up. */
static void refused(struct hw_reader *r)
{
	struct hw_link *l = &r->link;
	hw_why_refuse(&l->why, "%s", r->refused);
	if (l->up_ns || strcmp(l->why.reported, l->why.text) != 0)
		emit(r, HW_READER_REFUSED, l->why.text, strlen(l->why.text) + 1);
	memcpy(l->why.reported, l->why.text, sizeof(l->why.reported));
	lost(r);
}

static void open_link(struct hw_reader *r)
{
	hw_filters_forget(r->filters);
	if (hw_link_open(&r->link)) {
		lost(r);
		return;
	}
	if (r->ahead)
		hw_ahead_begin(r->ahead);
	hw_receive_widen(hw_link_socket(&r->link));
}

/* Continues after a read: requests subscriptions, reports UP, or gives the connection up. */
static void advance(struct hw_reader *r)
{
	struct hw_link *l = &r->link;
	if (l->state == HW_LINK_OPEN && r->share_group && !l->granted.shared && !r->refused[0])
		snprintf(r->refused, sizeof(r->refused),
		         "the broker has no shared subscriptions: without them heartwheeld cannot work " ONE_READER);
	if (r->refused[0]) {
		refused(r);
	} else if (l->state == HW_LINK_OPEN && hw_filters_ask(r->filters, l)) {
		lost(r);
	} else if (!l->up_ns && hw_filters_granted(r->filters)) {
		hw_link_up(l, hw_mqtt_clock_ns());
		count(&r->reconnects, r->was_up);
		r->was_up = true;
		emit(r, HW_READER_UP, NULL, 0);
	} else if (r->replaying && hw_filters_granted(r->filters)) {
		r->replaying = false;
		emit(r, HW_READER_REPLAYED, NULL, 0);
	} else if (r->renewing && hw_filters_granted(r->filters)) {
		r->renewing = false;
		emit(r, HW_READER_RENEWED, NULL, 0);
	} else if (hw_link_overdue(l, hw_mqtt_clock_ns())) {
		lost(r);
	}
}

/* --- the thread */

/* Waits until the ring has room, without reading. Returns true when it has. */
static bool room_again(struct hw_reader *r)
{
	if (!has_room(r)) {
		hw_ring_wait_room(r->ring);
		if (!has_room(r))
			return false;
	}
	r->no_room = false;
	if (!r->link.up_ns)
		r->link.opened_ns = hw_mqtt_clock_ns(); /* the broker's answer could not be read meanwhile */
	return true;
}

/* Whether the message rate was high at the last count. False at the start and after a silence. */
static bool is_rate_high(struct hw_reader *r)
{
	uint64_t spans = (uint64_t)(watch_clock(r) - r->counted_ns) / (uint64_t)COUNT_NS;
	uint64_t n = counted(&r->messages) - r->messages_counted;
	if (spans > 0 || n >= HIGH_RATE)
		r->high_rate = n >= HIGH_RATE * (spans > 0 ? spans : 1);
	if (spans > 0) {
		r->counted_ns = r->planned_ns;
		r->messages_counted += n;
	}
	return r->high_rate;
}

/* At a high rate, waits for more messages in the socket before the read. If a barrier is in flight, reads at once,
 * because the judgement of a silent device waits for the barrier. */
static void gather(struct hw_reader *r, size_t waiting)
{
	if (r->more || !r->link.up_ns || waiting >= GATHER_BELOW || !is_rate_high(r))
		return;
	struct pollfd fd = {r->orders.fd, POLLIN, 0};
	atomic_store(&r->gathering, true);
	if (atomic_load(&r->expect_until_ns) <= r->planned_ns) {
		count(&r->gathered, 1);
		r->planned_ns += GATHER_MS * HW_NS_PER_MS;
		poll(&fd, 1, GATHER_MS);
		watch_clock(r);
	}
	atomic_store(&r->gathering, false);
}

static void read_all(struct hw_reader *r)
{
	int fd = hw_link_socket(&r->link);
	size_t waiting = hw_receive_waiting(fd);
	note_fill(r, fd, waiting);
	gather(r, waiting);
	bool ahead = r->ahead && r->link.state == HW_LINK_OPEN;
	enum hw_link_read got = ahead ? hw_ahead_read(r->ahead, READ_BUDGET) : hw_link_read(&r->link, READ_BUDGET);
	if (got == HW_LINK_LOST) {
		lost(r);
		return;
	}
	watch_clock(r);
	r->more = got != HW_LINK_DRAINED;
	if (got == HW_LINK_DRAINED) {
		hw_receive_acknowledge(fd);
		note_drained(r);
	}
	if (got == HW_LINK_NO_ROOM) {
		count(&r->ring_waits, 1);
		r->no_room = true; /* no stall: the clock is not checked until there is room */
	}
}

/* Returns the timeout of poll(). An open connection without data gets LULL_MS, or, if the reader is idle (LULLS), the
 * time until hw_link_tend() is due. A device's message ends the idle state; a barrier does not end it. */
static int timeout_ms(struct hw_reader *r, int64_t now)
{
	uint64_t messages = counted(&r->messages);
	if (messages != r->messages_seen)
		r->lulls = 0;
	r->messages_seen = messages;
	if (r->more || r->stalled)
		return 0;
	if (!r->link.up_ns)
		return HANDSHAKE_MS;
	return r->lulls < LULLS ? LULL_MS : hw_link_rest_ms(&r->link, now);
}

/*
 * Handles one wake-up. The socket is polled for reading only while the ring has room; otherwise a full ring would make
 * the thread spin.
 */
static void turn(struct hw_reader *r)
{
	struct hw_link *l = &r->link;
	enum { ORDERS, ROOM, SOCKET };
	bool blocked = r->no_room && !room_again(r), write = hw_link_wants_write(l);
	int events = (blocked ? 0 : POLLIN) | (write ? POLLOUT : 0);
	struct pollfd fds[] = {{r->orders.fd, POLLIN, 0},
	                       {blocked ? hw_ring_room_fd(r->ring) : -1, POLLIN, 0},
	                       {events ? hw_link_socket(l) : -1, (short)events, 0}};
	int64_t now = blocked ? hw_mqtt_clock_ns() : watch_clock(r);
	int timeout = blocked ? LULL_MS : timeout_ms(r, now);
	if (!blocked)
		r->planned_ns = now + timeout * HW_NS_PER_MS;
	if (poll(fds, 3, timeout) == 0)
		r->lulls++;
	count(&r->wakeups, 1);
	if (fds[ORDERS].revents)
		hw_wake_fd_clear(r->orders.fd);
	blocked = blocked && !room_again(r);
	if (!blocked) {
		watch_clock(r);
		if (r->more || r->stalled || fds[SOCKET].revents || !l->up_ns)
			read_all(r);
	}
	if (l->m && ((hw_link_wants_write(l) && hw_link_write(l)) || hw_link_tend(l, hw_mqtt_clock_ns(), !r->more)))
		lost(r);
	if (l->m && !blocked)
		advance(r);
	hw_ring_publish(r->ring);
}

static void take_over(struct hw_reader *r, struct hw_filters *ordered)
{
	struct hw_filters *old = r->filters;
	r->filters = ordered;
	if (r->link.state == HW_LINK_OPEN && hw_filters_replace(ordered, old, &r->link))
		lost(r);
	hw_filters_free(old);
}

static void obey(struct hw_reader *r)
{
	unsigned orders = hw_orders_take(&r->orders);
	struct hw_filters *ordered = atomic_exchange(&r->ordered, NULL);
	if ((orders & HW_ORDER_RETRY) && r->link.why.fault != HW_FAULT_TAKEN)
		r->link.retry_ns = 0;
	if (ordered)
		take_over(r, ordered);
	if ((orders & HW_ORDER_RENEW) && r->link.up_ns && !r->replaying)
		r->renewing = hw_filters_replay(r->filters, true);
	if ((orders & HW_ORDER_REPLAY) && r->link.up_ns) {
		r->replaying = hw_filters_replay(r->filters, false);
		r->renewing = false;
	}
	/* the loop has noticed that the process was stopped, and waits for HW_READER_DRAINED */
	if (orders & HW_ORDER_DRAIN) {
		r->stalled = true;
		if (!r->link.up_ns)
			note_drained(r);
		hw_ring_publish(r->ring);
	}
	if ((orders & HW_ORDER_RECONNECT) && r->link.m) {
		hw_why_set(&r->link.why, "connection to %s:%d closed by the monitor, which reconnects now",
		           r->link.conf.host, r->link.conf.port);
		r->link.why.fault = HW_FAULT_AWAY;
		lost(r);
	}
}

static void let_go(struct hw_reader *r)
{
	if (atomic_fetch_sub(&r->owners, 1) > 1)
		return;
	hw_link_fini(&r->link);
	hw_filters_free(r->filters);
	hw_filters_free(atomic_load(&r->ordered));
	hw_ring_free(r->ring);
	hw_orders_fini(&r->orders);
	free(r->ahead);
	free(r->share_group);
	free(r);
}

static void *run(void *arg)
{
	struct hw_reader *r = arg;
	for (obey(r); !hw_orders_stop(&r->orders); obey(r)) {
		int64_t wait_ns = r->link.retry_ns - hw_mqtt_clock_ns();
		if (r->link.m)
			turn(r);
		else if (wait_ns <= 0)
			open_link(r);
		else
			hw_orders_wait(&r->orders, -1, (int)(wait_ns / HW_NS_PER_MS) + 1);
	}
	hw_link_leave(&r->link);
	let_go(r);
	return NULL;
}

/* --- the loop's side */

/* "hw-reader-0" for a client id that ends in "-r0". */
static void thread_name(char name[16], const char *client_id)
{
	const char *dash = strrchr(client_id, '-');
	unsigned number = dash && dash[1] == 'r' ? (unsigned)strtoul(dash + 2, NULL, 10) % 1000 : 0;
	snprintf(name, 16, "hw-reader-%u", number);
}

int hw_reader_start(struct hw_reader **out, const struct hw_mqtt_conf *conf, const struct hw_mqtt_filter *filters,
                    size_t n_filters, const char *share_group, size_t ring_bytes, int64_t stall_after_ms)
{
	struct hw_reader *r = calloc(1, sizeof(*r));
	if (!r || hw_link_init(&r->link, conf)) {
		free(r);
		return -ENOMEM;
	}
	atomic_init(&r->owners, 1);
	r->link.owner = r;
	r->link.prepare = prepare;
	r->link.has_room = has_room;
	r->link.on_too_long = on_too_long;
	r->barrier_len = strlen(r->link.conf.barrier_topic);
	r->share_len = share_group ? strlen(r->link.conf.share_topic) : 0;
	r->stall_after_ns = stall_after_ms * HW_NS_PER_MS;
	r->share_group = share_group ? strdup(share_group) : NULL;
	r->filters = hw_filters_new(filters, n_filters, share_group, conf->barrier_topic, r->link.conf.share_topic);
	r->ring = hw_ring_new(ring_bytes < HW_RECORDS_RING_MIN ? HW_RECORDS_RING_MIN : ring_bytes);
	r->ahead = hw_ahead_new(&r->link, take);
	int rc = hw_orders_init(&r->orders) ? -ENOMEM : 0;
	if (!rc && (!r->filters || !r->ring || (share_group && !r->share_group)))
		rc = -ENOMEM;
	if (!rc) {
		char name[16];
		thread_name(name, conf->client_id);
		atomic_store(&r->owners, 2);
		rc = hw_thread_start(&r->thread, run, r, name);
	}
	if (rc) {
		atomic_store(&r->owners, 1);
		let_go(r);
		return rc;
	}
	*out = r;
	return 0;
}

void hw_reader_end(struct hw_reader *r)
{
	r->ends = true;
	hw_orders_give(&r->orders, HW_ORDER_STOP);
}

bool hw_reader_ended(struct hw_reader *r)
{
	return atomic_load(&r->owners) == 1;
}

void hw_reader_stop(struct hw_reader *r)
{
	if (!r)
		return;
	int64_t patience_ms = r->ends ? 0 : STOP_MS;
	hw_reader_end(r);
	hw_thread_end(r->thread, patience_ms);
	let_go(r);
}

int hw_reader_fd(const struct hw_reader *r)
{
	return hw_ring_fd(r->ring);
}

bool hw_reader_take(struct hw_reader *r, struct hw_reader_event *ev)
{
	return hw_records_take(r->ring, ev);
}

void hw_reader_release(struct hw_reader *r)
{
	hw_ring_release(r->ring);
}

bool hw_reader_rest(struct hw_reader *r)
{
	return hw_ring_rest(r->ring);
}

int hw_reader_set_filters(struct hw_reader *r, const struct hw_mqtt_filter *filters, size_t n_filters)
{
	struct hw_filters *f = hw_filters_new(filters, n_filters, r->share_group, r->link.conf.barrier_topic,
	                                      r->link.conf.share_topic);
	if (!f)
		return -ENOMEM;
	hw_filters_free(atomic_exchange(&r->ordered, f)); /* a set that the thread has not taken */
	hw_orders_give(&r->orders, 0);
	return 0;
}

void hw_reader_retry(struct hw_reader *r)
{
	hw_orders_give(&r->orders, HW_ORDER_RETRY);
}

void hw_reader_expect(struct hw_reader *r, int64_t until_ns)
{
	atomic_store(&r->expect_until_ns, until_ns);
	if (until_ns && atomic_load(&r->gathering))
		hw_wake_fd_signal(r->orders.fd);
}

void hw_reader_replay(struct hw_reader *r)
{
	hw_orders_give(&r->orders, HW_ORDER_REPLAY);
}

void hw_reader_renew(struct hw_reader *r)
{
	hw_orders_give(&r->orders, HW_ORDER_RENEW);
}

void hw_reader_drain(struct hw_reader *r)
{
	hw_orders_give(&r->orders, HW_ORDER_DRAIN);
}

void hw_reader_reconnect(struct hw_reader *r)
{
	hw_orders_give(&r->orders, HW_ORDER_RECONNECT);
}

struct hw_reader_stats hw_reader_stats(const struct hw_reader *r)
{
	return (struct hw_reader_stats){.messages = counted(&r->messages),
	                                .bytes = counted(&r->bytes),
	                                .wakeups = counted(&r->wakeups),
	                                .reconnects = counted(&r->reconnects),
	                                .ring_waits = counted(&r->ring_waits),
	                                .junk_barriers = counted(&r->junk_barriers),
	                                .gathered = counted(&r->gathered),
	                                .taken = atomic_load(&r->taken)};
}

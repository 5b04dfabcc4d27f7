/* SPDX-License-Identifier: MIT */
/*
 * A reader: one thread that moves heartbeats from one connection into one ring.
 *
 * Invariant: the ring holds, in the order in which they happened, messages, barriers and what befell the connection.
 * Nothing is dropped for want of room: there is room for the largest record before each read, and without it the
 * socket, and with it the broker, waits.
 *
 * Cost: a wake-up a message would cost more than the message. Here one serves all that gathered: while messages come
 * thick, it waits 2 ms before it reads, and then reads until nothing is left, ahead of the library where that can be
 * (ahead.h). Idle, it wakes for barriers and for its keepalive alone.
 */
#include <errno.h>
#include <mosquitto.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "heartwheel/time.h"
#include "mqtt/barrier.h"
#include "mqtt/filters.h"
#include "mqtt/link.h"
#include "mqtt/mqtt.h"
#include "mqtt/packet.h"
#include "mqtt/receive.h"
#include "mqtt/ring.h"

#define RING_MIN          (1 << 20)
#define READ_BUDGET       4096 /* packets, before orders and the ring are looked after again */
#define GATHER_MS         2
#define GATHER_BELOW      16384               /* bytes that wait: with more, reading at once is worth it */
#define GATHER_RECENT_NS  (10 * HW_NS_PER_MS) /* read this lately: messages come thick */
#define LULL_MS           500                 /* between messages: how late the thread is then is noticed this soon */
#define LULLS             2 /* without a message, and it is idle: how late it is makes no difference */
#define HANDSHAKE_MS      100
#define STOP_MS           2000
#define NEARLY_FULL       90 /* percent of the receive buffer */
#define RELIEVED          50
#define FILL_WORTH_ASKING 16384

/* In the ring. After a message come topic and payload; after others a barrier, a time, or a text with its NUL. */
struct record {
	uint8_t kind;
	bool retained, truncated;
	uint16_t topic_len;
	uint32_t size; /* of the payload or what stands there */
};

#define RECORD_MAX (sizeof(struct record) + UINT16_MAX + HW_READER_PAYLOAD_MAX)
_Static_assert(RECORD_MAX <= RING_MIN / 4, "the ring takes records up to a quarter of it");

struct hw_reader {
	struct hw_ring *ring;
	atomic_int owners; /* the loop's side and the thread: the last one frees */
	pthread_t thread;
	char *share_group; /* or NULL */

	pthread_mutex_t lock; /* over the orders to the thread */
	bool stop, reconnect, hurry, drain;
	struct hw_filters *ordered; /* a set that the thread has not taken over yet, or NULL */
	int orders_fd;

	/* the thread's own */
	struct hw_link link;
	struct hw_filters *filters;
	int64_t stall_after_ns;
	int64_t planned_ns; /* when it meant to look at the clock next */
	int64_t last_read_ns;
	uint64_t messages_seen; /* when it was last looked whether messages come, */
	unsigned lulls;         /* ... and how often in a row none had */
	bool stopping;
	bool more;            /* there may be more to read than poll() knows */
	bool no_room;         /* waits for the ring */
	bool stalled, filled; /* said, and not over yet */
	bool was_up;          /* ever */
	char refused[HW_LINK_WHY];
	size_t barrier_len; /* of the barrier topic */

	atomic_uint_least64_t messages, bytes, wakeups, reconnects, ring_waits, junk_barriers;
};

/* One writer: no locked instruction needed. */
static void count(atomic_uint_least64_t *counter, uint64_t by)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + by, memory_order_relaxed);
}

static uint64_t counted(const atomic_uint_least64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static void hush_orders(struct hw_reader *r)
{
	uint64_t n;
	ssize_t got = read(r->orders_fd, &n, sizeof(n));
	(void)got; /* what is ordered stands under the lock, and is looked at every turn */
}

/* --- into the ring */

/*
 * Room for a record, waited for if need be: here only for what the library hands over in one call although it was asked
 * to stop, and for events in a full ring. NULL only when the thread shall end.
 */
static struct record *reserve(struct hw_reader *r, size_t size)
{
	struct record *rec = hw_ring_reserve(r->ring, sizeof(*rec) + size);
	while (!rec) {
		hw_ring_wait_room(r->ring);
		rec = hw_ring_reserve(r->ring, sizeof(*rec) + size);
		if (rec)
			break;
		count(&r->ring_waits, 1);
		struct pollfd fds[] = {{hw_ring_room_fd(r->ring), POLLIN, 0}, {r->orders_fd, POLLIN, 0}};
		poll(fds, 2, -1);
		hush_orders(r);
		pthread_mutex_lock(&r->lock);
		r->stopping = r->stop;
		pthread_mutex_unlock(&r->lock);
		if (r->stopping)
			return NULL;
	}
	return rec;
}

static void emit(struct hw_reader *r, enum hw_reader_event_kind kind, const void *data, size_t size)
{
	struct record *rec = reserve(r, size);
	if (!rec)
		return;
	*rec = (struct record){.kind = (uint8_t)kind, .size = (uint32_t)size};
	if (size)
		memcpy(rec + 1, data, size);
	hw_ring_commit(r->ring, sizeof(*rec) + size);
}

static bool has_room(void *owner)
{
	struct hw_reader *r = owner;
	return hw_ring_reserve(r->ring, RECORD_MAX) != NULL;
}

static void put_message(struct hw_reader *r, const struct hw_packet *p)
{
	size_t len = p->payload_len, kept = len > HW_READER_PAYLOAD_MAX ? HW_READER_PAYLOAD_MAX : len;
	struct record *rec = reserve(r, p->topic_len + kept);
	if (!rec)
		return;
	*rec = (struct record){.kind = HW_READER_MESSAGE,
	                       .retained = p->retained,
	                       .truncated = kept < len,
	                       .topic_len = (uint16_t)p->topic_len,
	                       .size = (uint32_t)kept};
	char *to = (char *)(rec + 1);
	memcpy(to, p->topic, p->topic_len);
	if (kept)
		memcpy(to + p->topic_len, p->payload, kept);
	hw_ring_commit(r->ring, sizeof(*rec) + p->topic_len + kept);
	count(&r->messages, 1);
	count(&r->bytes, len);
}

static void put(struct hw_reader *r, const struct hw_packet *p)
{
	struct hw_barrier b;
	if (p->topic_len != r->barrier_len || memcmp(p->topic, r->link.conf.barrier_topic, p->topic_len) != 0)
		put_message(r, p);
	else if (!p->retained && hw_barrier_parse(p->payload, p->payload_len, &b))
		emit(r, HW_READER_BARRIER, &b, sizeof(b));
	else
		count(&r->junk_barriers, 1);
}

/* Most messages come this way: see ahead.h. */
static bool take(void *owner, const struct hw_packet *p)
{
	if (!has_room(owner))
		return false;
	put(owner, p);
	return true;
}

static void on_message(struct mosquitto *m, void *arg, const struct mosquitto_message *msg)
{
	struct hw_link *l = arg;
	struct hw_reader *r = l->owner;
	(void)m;
	l->progress++;
	put(r, &(struct hw_packet){.topic = msg->topic,
	                           .topic_len = strlen(msg->topic),
	                           .payload = msg->payload,
	                           .payload_len = (size_t)msg->payloadlen,
	                           .retained = msg->retain});
	/* The library may hold more packets (TLS, QoS 2) and hand them over in the same call: this ends it. */
	errno = has_room(r) ? 0 : EAGAIN;
}

static void on_subscribe(struct mosquitto *m, void *arg, int mid, int n, const int *codes)
{
	struct hw_link *l = arg;
	struct hw_reader *r = l->owner;
	(void)m;
	l->progress++;
	const char *filter = n > 0 ? hw_filters_answer(r->filters, mid, codes[0]) : NULL;
	const char *user = l->conf.username[0] ? l->conf.username : "anonymous clients";
	if (filter && !r->refused[0])
		snprintf(r->refused, sizeof(r->refused),
		         "subscription to '%.120s' refused by the broker (%s): give %.32s the right to subscribe to it "
		         "and to read it",
		         filter, mosquitto_reason_string(codes[0]), user);
}

static int prepare(struct hw_link *l)
{
	mosquitto_message_callback_set(l->m, on_message);
	mosquitto_subscribe_callback_set(l->m, on_subscribe);
	return 0;
}

/* --- what befalls the connection */

/*
 * Looks at the clock. Each look says until when the next one is due (now, unless the caller knows of a wait), so that
 * no moment lies between two watches.
 */
static int64_t look(struct hw_reader *r)
{
	int64_t now = hw_link_clock();
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
	if (waiting < FILL_WORTH_ASKING) { /* nearly always: spares the system call */
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

static void lost(struct hw_reader *r)
{
	char why[HW_LINK_WHY];
	memcpy(why, r->link.why, sizeof(why));
	bool news = hw_link_down(&r->link, hw_link_clock());
	note_drained(r); /* nothing is left to be read */
	if (news)
		emit(r, HW_READER_DOWN, why, strlen(why) + 1);
	r->filled = r->no_room = r->more = false;
	r->refused[0] = '\0';
	hw_ring_publish(r->ring);
}

/* A right is missing: told in an event of its own, and as DOWN too if the link had been up. */
static void refused(struct hw_reader *r)
{
	struct hw_link *l = &r->link;
	hw_link_say(l, "%s", r->refused);
	if (l->up_ns || strcmp(l->said, l->why) != 0)
		emit(r, HW_READER_REFUSED, l->why, strlen(l->why) + 1);
	memcpy(l->said, l->why, sizeof(l->said));
	lost(r);
}

static void open_link(struct hw_reader *r)
{
	hw_filters_forget(r->filters);
	if (hw_link_open(&r->link)) {
		lost(r);
		return;
	}
	hw_receive_widen(hw_link_socket(&r->link));
}

/* What follows from what was just read: ask for subscriptions, be up, or give up. */
static void advance(struct hw_reader *r)
{
	struct hw_link *l = &r->link;
	if (l->state == HW_LINK_OPEN && hw_filters_ask(r->filters, l)) {
		lost(r);
	} else if (r->refused[0]) {
		refused(r);
	} else if (!l->up_ns && hw_filters_granted(r->filters)) {
		hw_link_up(l, hw_link_clock());
		count(&r->reconnects, r->was_up);
		r->was_up = true;
		emit(r, HW_READER_UP, NULL, 0);
	} else if (hw_link_overdue(l, hw_link_clock())) {
		lost(r);
	}
}

/* --- the thread */

/* Waits for room without reading. True once there is some. */
static bool room_again(struct hw_reader *r)
{
	if (!has_room(r)) {
		hw_ring_wait_room(r->ring);
		if (!has_room(r))
			return false;
	}
	r->no_room = false;
	if (!r->link.up_ns)
		r->link.opened_ns = hw_link_clock(); /* the broker could not have answered meanwhile */
	return true;
}

/* While messages come thick, lets some gather. */
static void gather(struct hw_reader *r, size_t waiting)
{
	if (r->more || !r->link.up_ns || waiting >= GATHER_BELOW || look(r) - r->last_read_ns > GATHER_RECENT_NS)
		return;
	struct pollfd fd = {r->orders_fd, POLLIN, 0};
	r->planned_ns += GATHER_MS * HW_NS_PER_MS;
	poll(&fd, 1, GATHER_MS);
	look(r);
}

static void read_all(struct hw_reader *r)
{
	int fd = hw_link_socket(&r->link);
	size_t waiting = hw_receive_waiting(fd);
	note_fill(r, fd, waiting);
	gather(r, waiting);
	enum hw_link_read got = hw_link_read(&r->link, READ_BUDGET);
	if (got == HW_LINK_LOST) {
		lost(r);
		return;
	}
	r->last_read_ns = look(r);
	r->more = got != HW_LINK_DRAINED;
	if (got == HW_LINK_DRAINED)
		note_drained(r);
	if (got == HW_LINK_NO_ROOM) {
		count(&r->ring_waits, 1);
		r->no_room = true; /* a delay like any other: nobody looks at the clock before there is room */
	}
}

/* How long to wait for something to happen. A barrier does not end an idle time, a message does. */
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
 * One wake-up. A connection is watched for reading only while there is room: a full ring would turn the thread round
 * and round.
 */
static void turn(struct hw_reader *r)
{
	struct hw_link *l = &r->link;
	enum { ORDERS, ROOM, SOCKET };
	bool blocked = r->no_room && !room_again(r), write = hw_link_wants_write(l);
	int events = (blocked ? 0 : POLLIN) | (write ? POLLOUT : 0);
	struct pollfd fds[] = {{r->orders_fd, POLLIN, 0},
	                       {blocked ? hw_ring_room_fd(r->ring) : -1, POLLIN, 0},
	                       {events ? hw_link_socket(l) : -1, (short)events, 0}};
	int64_t now = blocked ? hw_link_clock() : look(r);
	int timeout = blocked ? LULL_MS : timeout_ms(r, now);
	if (!blocked)
		r->planned_ns = now + timeout * HW_NS_PER_MS;
	if (poll(fds, 3, timeout) == 0)
		r->lulls++;
	count(&r->wakeups, 1);
	if (fds[ORDERS].revents)
		hush_orders(r);
	blocked = blocked && !room_again(r);
	if (!blocked) {
		look(r);
		if (r->more || r->stalled || fds[SOCKET].revents || !l->up_ns)
			read_all(r);
	}
	if (l->m && ((hw_link_wants_write(l) && hw_link_write(l)) || hw_link_tend(l, hw_link_clock(), !r->more)))
		lost(r);
	if (l->m && !blocked)
		advance(r);
	hw_ring_publish(r->ring);
}

static void obey(struct hw_reader *r)
{
	pthread_mutex_lock(&r->lock);
	bool reconnect = r->reconnect;
	struct hw_filters *ordered = r->ordered;
	r->stopping = r->stop;
	if (r->hurry)
		r->link.retry_ns = 0;
	bool drain = r->drain;
	r->reconnect = r->hurry = r->drain = false;
	r->ordered = NULL;
	pthread_mutex_unlock(&r->lock);
	if (ordered) {
		struct hw_filters *old = r->filters;
		r->filters = ordered;
		if (r->link.state == HW_LINK_OPEN && hw_filters_replace(ordered, old, &r->link))
			lost(r);
		hw_filters_free(old);
	}
	if (drain) {
		r->stalled = true; /* to be told when it is over; that it began is known */
		if (!r->link.up_ns)
			note_drained(r);
		hw_ring_publish(r->ring);
	}
	if (reconnect && r->link.m) {
		hw_link_say(&r->link, "connection to %s:%d closed by the monitor, to be opened again",
		            r->link.conf.host, r->link.conf.port);
		lost(r);
	}
}

static void let_go(struct hw_reader *r)
{
	if (atomic_fetch_sub(&r->owners, 1) > 1)
		return;
	hw_link_fini(&r->link);
	hw_filters_free(r->filters);
	hw_filters_free(r->ordered);
	hw_ring_free(r->ring);
	if (r->orders_fd >= 0)
		close(r->orders_fd);
	pthread_mutex_destroy(&r->lock);
	free(r->share_group);
	free(r);
}

static void *run(void *arg)
{
	struct hw_reader *r = arg;
	for (;;) {
		obey(r);
		if (r->stopping)
			break;
		int64_t wait_ns = r->link.retry_ns - hw_link_clock();
		if (r->link.m) {
			turn(r);
		} else if (wait_ns <= 0) {
			open_link(r);
		} else {
			struct pollfd fd = {r->orders_fd, POLLIN, 0};
			poll(&fd, 1, (int)(wait_ns / HW_NS_PER_MS) + 1);
			hush_orders(r);
		}
	}
	hw_link_leave(&r->link);
	let_go(r);
	return NULL;
}

/* --- the loop's side */

static void order(struct hw_reader *r)
{
	uint64_t one = 1;
	ssize_t n = write(r->orders_fd, &one, sizeof(one));
	(void)n;
}

/* "hw-reader-0" of a client id that ends in "-r0". */
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
	pthread_mutex_init(&r->lock, NULL);
	r->link.owner = r;
	r->link.prepare = prepare;
	r->link.has_room = has_room;
	r->link.take = take;
	r->barrier_len = strlen(r->link.conf.barrier_topic);
	r->stall_after_ns = stall_after_ms * HW_NS_PER_MS;
	r->share_group = share_group ? strdup(share_group) : NULL;
	r->filters = hw_filters_new(filters, n_filters, share_group, conf->barrier_topic);
	r->ring = hw_ring_new(ring_bytes < RING_MIN ? RING_MIN : ring_bytes);
	r->orders_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	int rc = -ENOMEM;
	if (r->filters && r->ring && r->orders_fd >= 0 && (r->share_group || !share_group)) {
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

void hw_reader_stop(struct hw_reader *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	pthread_mutex_unlock(&r->lock);
	order(r);
	hw_thread_end(r->thread, STOP_MS);
	let_go(r);
}

int hw_reader_fd(const struct hw_reader *r)
{
	return hw_ring_fd(r->ring);
}

bool hw_reader_take(struct hw_reader *r, struct hw_reader_event *ev)
{
	size_t size;
	const struct record *rec = hw_ring_take(r->ring, &size);
	if (!rec)
		return false;
	const char *data = (const char *)(rec + 1);
	*ev = (struct hw_reader_event){.kind = (enum hw_reader_event_kind)rec->kind, .topic = "", .text = ""};
	struct hw_barrier b;
	switch (ev->kind) {
	case HW_READER_MESSAGE:
		ev->topic = data;
		ev->topic_len = rec->topic_len;
		ev->payload = data + rec->topic_len;
		ev->payload_len = rec->size;
		ev->retained = rec->retained;
		ev->truncated = rec->truncated;
		break;
	case HW_READER_BARRIER:
		memcpy(&b, data, sizeof(b));
		ev->mark = b.mark;
		ev->number = b.number;
		break;
	case HW_READER_STALL:
		memcpy(&ev->planned_ns, data, sizeof(ev->planned_ns));
		break;
	default:
		ev->text = rec->size ? data : "";
	}
	return true;
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
	struct hw_filters *f = hw_filters_new(filters, n_filters, r->share_group, r->link.conf.barrier_topic);
	if (!f)
		return -ENOMEM;
	pthread_mutex_lock(&r->lock);
	struct hw_filters *unused = r->ordered;
	r->ordered = f;
	pthread_mutex_unlock(&r->lock);
	hw_filters_free(unused);
	order(r);
	return 0;
}

void hw_reader_hurry(struct hw_reader *r)
{
	pthread_mutex_lock(&r->lock);
	r->hurry = true;
	pthread_mutex_unlock(&r->lock);
	order(r);
}

void hw_reader_drain(struct hw_reader *r)
{
	pthread_mutex_lock(&r->lock);
	r->drain = true;
	pthread_mutex_unlock(&r->lock);
	order(r);
}

void hw_reader_reconnect(struct hw_reader *r)
{
	pthread_mutex_lock(&r->lock);
	r->reconnect = true;
	pthread_mutex_unlock(&r->lock);
	order(r);
}

struct hw_reader_stats hw_reader_stats(const struct hw_reader *r)
{
	return (struct hw_reader_stats){.messages = counted(&r->messages),
	                                .bytes = counted(&r->bytes),
	                                .wakeups = counted(&r->wakeups),
	                                .reconnects = counted(&r->reconnects),
	                                .ring_waits = counted(&r->ring_waits),
	                                .junk_barriers = counted(&r->junk_barriers)};
}

size_t hw_reader_backlog(const struct hw_reader *r)
{
	return hw_ring_used(r->ring);
}

/* SPDX-License-Identifier: MIT */
/*
 * The publisher: one thread between the loop's statuses and the broker's acknowledgements.
 *
 * Three rings: statuses and barriers come from the loop, answers go back. A connection has a number, which the loop
 * learns with UP and puts on whatever it hands over: what was meant for an earlier connection is thrown away, and what
 * was not acknowledged when the connection went needs no answer, since DOWN says it of all at once.
 *
 * Invariant: at most `window` statuses are in flight, so that the library never queues one by itself (its queue is
 * unbounded, is scanned for each publish, and survives a reconnect), and a bounded number is handed over.
 * Every one of them gets one answer, or a DOWN.
 *
 * Cost: one write() a message (two with libmosquitto's own wake-up pipe) and a scan of at most 100 packet ids an
 * acknowledgement. Idle, it wakes for barriers and for its keepalive alone; with statuses in flight and a silent
 * broker, once a second as well.
 */
#include <errno.h>
#include <mosquitto.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "heartwheel/time.h"
#include "mqtt/barrier.h"
#include "mqtt/link.h"
#include "mqtt/mqtt.h"
#include "mqtt/ring.h"

/*
 * How many statuses wait for their acknowledgement at a time. More is no faster: mosquitto answers one packet a turn,
 * and the library walks the list of those in flight for each. MQTT 5 brokers may grant fewer (mosquitto:
 * max_inflight_messages, 20 by default).
 */
#define WINDOW_MAX    100
#define ASK_NS        HW_NS_PER_S
#define BARRIER_SLOTS 2 /* of what the broker grants: a QoS 1 barrier must not queue behind statuses */
#define AHEAD         2 /* windows that may be handed over; AHEAD_MIN statuses where that is more */
#define AHEAD_MIN     512
#define ANSWERS       64 /* told together while statuses wait: the loop need not wake for each */
#define PUBACK_BYTES  4  /* at least */

#define LOW_WATER_MS     2
#define LOW_WATER_LOOKS  2  /* in a row that find nothing: then the first byte wakes */
#define LOW_WATER_WEIGHT 16 /* of a wait in vain, next to one that was not */
#define LOW_WATER_MOST   48 /* then no more are tried on this connection */

#define STATUS_BYTES  (2 << 20)
#define BARRIER_BYTES 4096
#define ANSWER_BYTES  (1 << 18)
#define STATUS_MAX    (STATUS_BYTES / 4) /* topic and payload together, with their record */

#define READ_BUDGET   1024
#define WAITING_MS    1000 /* for an acknowledgement */
#define BUSY_MS       100  /* while a handshake or the end is under way */
#define LINGER_MS     2000
#define UNANSWERED_NS (30 * HW_NS_PER_S) /* an acknowledgement that takes this long will not come */

struct status {
	uint64_t token;
	uint32_t connection;
	uint32_t topic_size; /* with its NUL; the payload follows it. 0: too long, refuse it */
	uint32_t payload_size;
};

struct barrier {
	struct hw_barrier barrier;
	uint32_t connection;
};

struct answer {
	uint64_t token;
	uint32_t kind, connection, window;
	char text[]; /* with its NUL */
};

struct in_flight {
	int mid;
	uint64_t token;
	int64_t since_ns;
};

struct hw_publisher {
	struct hw_ring *statuses, *barriers, *answers;
	atomic_int owners; /* the loop's side and the thread: the last one frees */
	pthread_t thread;
	int orders_fd;
	atomic_bool stop, hurry;
	atomic_int_least64_t stop_by_ns;

	/* the loop's own */
	bool up;
	uint32_t up_connection;
	unsigned up_window, handed_over;

	/* the thread's own */
	struct hw_link link;
	char *will_topic;
	void *will_payload;
	size_t will_len;
	uint32_t connection; /* counts the times it was up */
	unsigned window, n_in_flight;
	unsigned untold; /* answers */
	int low_water;   /* the socket's: it is readable once so many bytes wait */
	unsigned low_water_failed;
	unsigned vain_looks; /* since a status was last answered */
	bool more;
	enum { BARRIERS_UNKNOWN, BARRIERS_REFUSED, BARRIERS_TAKEN } barriers_fare;
	int asked; /* mid of the barrier that is out with QoS 1 only in order to be answered; 0: none */
	int64_t asked_ns;
	struct in_flight in_flight[WINDOW_MAX];
};

static void hush_orders(struct hw_publisher *p)
{
	uint64_t n;
	ssize_t got = read(p->orders_fd, &n, sizeof(n));
	(void)got;
}

/* --- answers */

/*
 * All that is handed over fits in the ring of answers; what could fill it is a connection that comes and goes while the
 * loop stands still. Then this waits.
 */
static void answer(struct hw_publisher *p, enum hw_publisher_event_kind kind, uint64_t token, const char *text)
{
	size_t size = sizeof(struct answer) + strlen(text) + 1;
	struct answer *a = hw_ring_reserve(p->answers, size);
	while (!a) {
		hw_ring_wait_room(p->answers);
		a = hw_ring_reserve(p->answers, size);
		if (a)
			break;
		struct pollfd fds[] = {{hw_ring_room_fd(p->answers), POLLIN, 0}, {p->orders_fd, POLLIN, 0}};
		poll(fds, 2, -1);
		hush_orders(p);
		if (atomic_load(&p->stop))
			return; /* nobody reads answers any more */
	}
	*a = (struct answer){.token = token, .kind = (uint32_t)kind, .connection = p->connection, .window = p->window};
	memcpy(a->text, text, strlen(text) + 1);
	hw_ring_commit(p->answers, size);
	p->untold++;
}

static void tell(struct hw_publisher *p)
{
	hw_ring_publish(p->answers);
	p->untold = 0;
}

static void lost(struct hw_publisher *p)
{
	char why[HW_LINK_WHY];
	memcpy(why, p->link.why, sizeof(why));
	p->n_in_flight = 0;
	p->more = false;
	if (hw_link_down(&p->link, hw_link_clock()))
		answer(p, HW_PUBLISHER_DOWN, 0, why);
	tell(p);
}

/* Whether a barrier is taken. A broker may be told another ACL at any time. */
static void on_barrier_answered(struct hw_publisher *p, int mid, int reason)
{
	bool taken = reason < 0x80;
	if (mid == p->asked)
		p->asked = 0;
	if (p->link.conf.protocol != 5 || p->barriers_fare == (taken ? BARRIERS_TAKEN : BARRIERS_REFUSED))
		return; /* before MQTT 5 a refusal looks like any other acknowledgement */
	p->barriers_fare = taken ? BARRIERS_TAKEN : BARRIERS_REFUSED;
	answer(p, HW_PUBLISHER_BARRIERS, taken, "");
}

static void on_publish(struct mosquitto *m, void *arg, int mid, int reason, const mosquitto_property *properties)
{
	struct hw_link *l = arg;
	struct hw_publisher *p = l->owner;
	(void)m;
	(void)properties;
	l->progress++;
	unsigned i = 0;
	while (i < p->n_in_flight && p->in_flight[i].mid != mid)
		i++;
	if (i == p->n_in_flight) {
		/* QoS 0 is "acknowledged" too: by the library, when it is sent */
		if (p->link.conf.qos > 0 || mid == p->asked)
			on_barrier_answered(p, mid, reason);
		return;
	}
	uint64_t token = p->in_flight[i].token;
	p->vain_looks = 0;
	p->n_in_flight--;
	memmove(&p->in_flight[i], &p->in_flight[i + 1], (p->n_in_flight - i) * sizeof(p->in_flight[0]));
	if (reason < 0x80) { /* 0x10, nobody is subscribed, is as good as 0 */
		answer(p, HW_PUBLISHER_ACKED, token, "");
		return;
	}
	char text[HW_LINK_WHY];
	const char *user = l->conf.username[0] ? l->conf.username : "anonymous clients";
	snprintf(text, sizeof(text), "refused by the broker: %s: has %.64s the right to publish it, retained?",
	         mosquitto_reason_string(reason), user);
	answer(p, HW_PUBLISHER_REFUSED, token, text);
}

/* --- to the broker */

static int prepare(struct hw_link *l)
{
	struct hw_publisher *p = l->owner;
	mosquitto_publish_v5_callback_set(l->m, on_publish);
	int rc = mosquitto_int_option(l->m, MOSQ_OPT_SEND_MAXIMUM, WINDOW_MAX + BARRIER_SLOTS);
	if (!rc && p->will_topic)
		rc = mosquitto_will_set(l->m, p->will_topic, (int)p->will_len, p->will_payload, 1, true);
	if (rc)
		hw_link_say(l, "the last will on '%.160s' cannot be set: %s", p->will_topic ? p->will_topic : "",
		            mosquitto_strerror(rc));
	return rc ? -1 : 0;
}

/* Whether what mosquitto_publish() returned means the message, rather than the connection. */
static bool is_of_message(int rc)
{
	return rc == MOSQ_ERR_INVAL || rc == MOSQ_ERR_MALFORMED_UTF8 || rc == MOSQ_ERR_PAYLOAD_SIZE ||
	       rc == MOSQ_ERR_OVERSIZE_PACKET || rc == MOSQ_ERR_QOS_NOT_SUPPORTED || rc == MOSQ_ERR_NOMEM;
}

/* 0, or -1 when the connection is lost. */
static int publish_status(struct hw_publisher *p, const struct status *s)
{
	const char *topic = (const char *)(s + 1);
	int mid = 0, rc = MOSQ_ERR_PAYLOAD_SIZE, err = 0;
	if (s->connection != p->connection)
		return 0;
	if (s->topic_size) {
		errno = 0;
		rc = mosquitto_publish(p->link.m, &mid, topic, (int)s->payload_size, topic + s->topic_size, 1, true);
		err = errno;
	}
	if (is_of_message(rc)) {
		char text[HW_LINK_WHY];
		snprintf(text, sizeof(text), "cannot be published: %s", mosquitto_strerror(rc));
		answer(p, HW_PUBLISHER_REFUSED, s->token, text);
		return 0;
	}
	if (rc) {
		hw_link_lost(&p->link, rc, err);
		return -1;
	}
	p->in_flight[p->n_in_flight++] = (struct in_flight){mid, s->token, hw_link_clock()};
	return 0;
}

/* The QoS of the next barrier. */
static int barrier_qos(struct hw_publisher *p)
{
	int64_t now = hw_link_clock();
	const struct hw_mqtt_conf *c = &p->link.conf;
	if (c->qos > 0 || c->protocol != 5 || p->asked || now - p->asked_ns < ASK_NS)
		return c->qos;
	p->asked_ns = now;
	return 1;
}

static int publish_barriers(struct hw_publisher *p)
{
	const struct barrier *b;
	size_t size;
	int rc = 0;
	while (!rc && (b = hw_ring_take(p->barriers, &size)) != NULL) {
		char text[HW_BARRIER_MAX];
		int len = (int)hw_barrier_print(&b->barrier, text);
		if (b->connection != p->connection)
			continue;
		int mid = 0, qos = barrier_qos(p);
		errno = 0;
		rc = mosquitto_publish(p->link.m, &mid, p->link.conf.barrier_topic, len, text, qos, false);
		int err = errno;
		if (!rc && qos > p->link.conf.qos)
			p->asked = mid;
		if (is_of_message(rc))
			rc = 0; /* it does not come back, which says it all */
		else if (rc)
			hw_link_lost(&p->link, rc, err);
	}
	hw_ring_release(p->barriers);
	return rc ? -1 : 0;
}

/* Whether what is written waits until it is let go: the library writes each message by itself. */
static void hold_back(struct hw_publisher *p, int on)
{
	setsockopt(hw_link_socket(&p->link), IPPROTO_TCP, TCP_CORK, &on, sizeof(on));
}

/* Barriers first, then statuses while the window is open. 0, or -1 when the connection is lost. */
static int publish_all(struct hw_publisher *p)
{
	const struct status *s;
	size_t size;
	unsigned n = 0;
	int rc = publish_barriers(p);
	while (!rc && p->n_in_flight < p->window && (s = hw_ring_take(p->statuses, &size)) != NULL) {
		if (++n == 2)
			hold_back(p, 1);
		rc = publish_status(p, s);
	}
	if (n > 0)
		hw_ring_release(p->statuses);
	if (n > 1 && !rc)
		hold_back(p, 0);
	return rc;
}

/* --- the thread */

static void be_up(struct hw_publisher *p)
{
	struct hw_link *l = &p->link;
	unsigned reserved = l->conf.qos > 0 || l->conf.protocol == 5 ? BARRIER_SLOTS : 0;
	unsigned granted = l->receive_max > reserved ? l->receive_max - reserved : 1;
	p->window = granted < WINDOW_MAX ? granted : WINDOW_MAX;
	p->connection++;
	p->low_water = 1;
	p->low_water_failed = 0;
	p->barriers_fare = BARRIERS_UNKNOWN;
	p->asked = 0;
	p->asked_ns = 0;
	hw_link_up(l, hw_link_clock());
	answer(p, HW_PUBLISHER_UP, 0, "");
}

/* An acknowledgement that does not come would keep its place for ever. */
static bool unanswered(struct hw_publisher *p, int64_t now_ns)
{
	if (p->n_in_flight == 0 || now_ns - p->in_flight[0].since_ns < UNANSWERED_NS)
		return false;
	hw_link_say(&p->link, "%s:%d has not acknowledged a message for %d s: connection closed", p->link.conf.host,
	            p->link.conf.port, (int)(UNANSWERED_NS / HW_NS_PER_S));
	return true;
}

static int read_all(struct hw_publisher *p)
{
	enum hw_link_read got = hw_link_read(&p->link, READ_BUDGET);
	p->more = got != HW_LINK_DRAINED;
	return got == HW_LINK_LOST ? -1 : 0;
}

/* What there is to do on an open connection. 0, or -1 when it is lost. */
static int serve(struct hw_publisher *p)
{
	struct hw_link *l = &p->link;
	if (l->state == HW_LINK_OPEN && !l->up_ns)
		be_up(p);
	if (l->up_ns && publish_all(p))
		return -1;
	if (hw_link_wants_write(l) && hw_link_write(l))
		return -1;
	int64_t now = hw_link_clock();
	return hw_link_tend(l, now, !p->more) || hw_link_overdue(l, now) || unanswered(p, now) ? -1 : 0;
}

/*
 * While the window is full, half of it must be acknowledged before the thread wakes: a wake-up for each acknowledgement
 * takes the time of the broker, which then has one message to read where it could have had ten.
 *
 * A broker that has not set TCP_NODELAY (mosquitto as it comes) sends the second acknowledgement only when it knows
 * that the first has arrived, which it learns from the next message. With such a one nothing is to be gained: its
 * acknowledgements come in bunches by themselves.
 *
 * Nor with one that says nothing at all: to look for less than the mark all the while would be to wake for nothing,
 * until it is given up. Its first byte is waited for, and what follows that is gathered again.
 */
static void set_low_water(struct hw_publisher *p)
{
	bool full = p->window > 1 && p->n_in_flight >= p->window;
	bool gathers = full && p->low_water_failed < LOW_WATER_MOST && p->vain_looks < LOW_WATER_LOOKS;
	int bytes = gathers ? (int)(p->window / 2) * PUBACK_BYTES : 1;
	if (bytes == p->low_water)
		return;
	p->low_water = bytes;
	setsockopt(hw_link_socket(&p->link), SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes));
}

/* After the wait for so many bytes: whether they came, or only some of them. */
static void judge_low_water(struct hw_publisher *p, bool came)
{
	int some = 0;
	if (p->low_water <= 1 || p->low_water_failed >= LOW_WATER_MOST)
		return;
	if (came)
		p->low_water_failed -= p->low_water_failed > 0;
	else if (ioctl(hw_link_socket(&p->link), FIONREAD, &some) == 0 && some > 0)
		p->low_water_failed += LOW_WATER_WEIGHT;
	else
		p->vain_looks++;
}

/* Answers may wait for others only while there is something that brings them, and it does. */
static void tell_some(struct hw_publisher *p, bool waited_in_vain)
{
	bool flows = !waited_in_vain && p->n_in_flight > 0 && hw_ring_used(p->statuses) > 0;
	if (p->untold > 0 && (!flows || p->untold >= ANSWERS))
		tell(p);
}

static void turn(struct hw_publisher *p)
{
	struct hw_link *l = &p->link;
	bool up = l->up_ns != 0, open = up && p->n_in_flight < p->window;
	/* A full window leaves the statuses where they are, unwatched: it is an acknowledgement that must come. */
	bool idle = !p->more && !(up && !hw_ring_rest(p->barriers)) && !(open && !hw_ring_rest(p->statuses));
	int events = POLLIN | (hw_link_wants_write(l) ? POLLOUT : 0);
	int rest_ms = !up || atomic_load(&p->stop) ? BUSY_MS : hw_link_rest_ms(l, hw_link_clock());
	if (p->n_in_flight > 0 && rest_ms > WAITING_MS)
		rest_ms = WAITING_MS;
	struct pollfd fds[] = {{p->orders_fd, POLLIN, 0},
	                       {hw_link_socket(l), (short)events, 0},
	                       {up ? hw_ring_fd(p->barriers) : -1, POLLIN, 0},
	                       {open ? hw_ring_fd(p->statuses) : -1, POLLIN, 0}};
	set_low_water(p);
	if (p->low_water > 1)
		rest_ms = LOW_WATER_MS;
	int ready = poll(fds, 4, idle ? rest_ms : 0);
	if (fds[0].revents)
		hush_orders(p);
	judge_low_water(p, fds[1].revents);
	/* Without anything ready it looks all the same: fewer bytes than the low water may wait. */
	if (((fds[1].revents || ready == 0 || p->more || !up) && read_all(p)) || serve(p))
		lost(p);
	tell_some(p, ready == 0);
}

static bool has_ended(struct hw_publisher *p)
{
	if (!atomic_load(&p->stop))
		return false;
	bool busy = p->link.up_ns && (p->n_in_flight > 0 || hw_ring_used(p->statuses) > 0);
	return !busy || hw_link_clock() >= atomic_load(&p->stop_by_ns);
}

static void let_go(struct hw_publisher *p)
{
	if (atomic_fetch_sub(&p->owners, 1) > 1)
		return;
	hw_link_fini(&p->link);
	hw_ring_free(p->statuses);
	hw_ring_free(p->barriers);
	hw_ring_free(p->answers);
	if (p->orders_fd >= 0)
		close(p->orders_fd);
	free(p->will_topic);
	free(p->will_payload);
	free(p);
}

static void *run(void *arg)
{
	struct hw_publisher *p = arg;
	while (!has_ended(p)) {
		if (atomic_exchange(&p->hurry, false))
			p->link.retry_ns = 0;
		int64_t wait_ns = p->link.retry_ns - hw_link_clock();
		if (p->link.m) {
			turn(p);
		} else if (wait_ns > 0) {
			struct pollfd fd = {p->orders_fd, POLLIN, 0};
			poll(&fd, 1, (int)(wait_ns / HW_NS_PER_MS) + 1);
			hush_orders(p);
		} else if (hw_link_open(&p->link)) {
			lost(p);
		}
	}
	hw_link_leave(&p->link);
	let_go(p);
	return NULL;
}

/* --- the loop's side */

static int copy_will(struct hw_publisher *p, const char *topic, const void *payload, size_t len)
{
	if (!topic || !topic[0])
		return 0;
	p->will_topic = strdup(topic);
	p->will_payload = malloc(len + 1);
	if (!p->will_topic || !p->will_payload)
		return -ENOMEM;
	if (len)
		memcpy(p->will_payload, payload, len);
	p->will_len = len;
	return 0;
}

int hw_publisher_start(struct hw_publisher **out, const struct hw_mqtt_conf *conf, const char *will_topic,
                       const void *will_payload, size_t will_len)
{
	struct hw_publisher *p = will_len > UINT16_MAX ? NULL : calloc(1, sizeof(*p));
	if (!p || hw_link_init(&p->link, conf)) {
		free(p);
		return will_len > UINT16_MAX ? -EMSGSIZE : -ENOMEM;
	}
	atomic_init(&p->owners, 1);
	p->link.owner = p;
	p->link.prepare = prepare;
	p->statuses = hw_ring_new(STATUS_BYTES);
	p->barriers = hw_ring_new(BARRIER_BYTES);
	p->answers = hw_ring_new(ANSWER_BYTES);
	p->orders_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	int rc = copy_will(p, will_topic, will_payload, will_len);
	if (!p->statuses || !p->barriers || !p->answers || p->orders_fd < 0)
		rc = -ENOMEM;
	if (!rc) {
		atomic_store(&p->owners, 2);
		rc = hw_thread_start(&p->thread, run, p, "hw-publisher");
	}
	if (rc) {
		atomic_store(&p->owners, 1);
		let_go(p);
		return rc;
	}
	*out = p;
	return 0;
}

static void order(struct hw_publisher *p)
{
	uint64_t one = 1;
	ssize_t n = write(p->orders_fd, &one, sizeof(one));
	(void)n;
}

void hw_publisher_hurry(struct hw_publisher *p)
{
	atomic_store(&p->hurry, true);
	order(p);
}

void hw_publisher_stop(struct hw_publisher *p, int64_t timeout_ms)
{
	if (!p)
		return;
	hw_publisher_flush(p);
	atomic_store(&p->stop_by_ns, hw_link_clock() + timeout_ms * HW_NS_PER_MS);
	atomic_store(&p->stop, true);
	order(p);
	hw_thread_end(p->thread, timeout_ms + LINGER_MS);
	let_go(p);
}

int hw_publisher_fd(const struct hw_publisher *p)
{
	return hw_ring_fd(p->answers);
}

bool hw_publisher_take(struct hw_publisher *p, struct hw_publisher_event *ev)
{
	size_t size;
	const struct answer *a = hw_ring_take(p->answers, &size);
	while (!a) {
		if (hw_ring_rest(p->answers))
			return false;
		a = hw_ring_take(p->answers, &size);
	}
	ev->kind = (enum hw_publisher_event_kind)a->kind;
	ev->token = a->token;
	snprintf(ev->text, sizeof(ev->text), "%s", a->text);
	if (ev->kind == HW_PUBLISHER_ACKED || ev->kind == HW_PUBLISHER_REFUSED) {
		p->handed_over--;
	} else if (ev->kind != HW_PUBLISHER_BARRIERS) {
		p->up = ev->kind == HW_PUBLISHER_UP;
		p->up_connection = a->connection;
		p->up_window = a->window;
		p->handed_over = 0;
	}
	hw_ring_release(p->answers);
	return true;
}

unsigned hw_publisher_room(const struct hw_publisher *p)
{
	unsigned most = AHEAD * p->up_window > AHEAD_MIN ? AHEAD * p->up_window : AHEAD_MIN;
	return p->up && p->handed_over < most ? most - p->handed_over : 0;
}

bool hw_publisher_send(struct hw_publisher *p, const char *topic, const void *payload, size_t len, uint64_t token)
{
	if (hw_publisher_room(p) == 0)
		return false;
	size_t topic_size = strlen(topic) + 1;
	bool fits = topic_size <= STATUS_MAX / 2 && len <= STATUS_MAX / 2 - sizeof(struct status);
	size_t size = sizeof(struct status) + (fits ? topic_size + len : 0);
	struct status *s = hw_ring_reserve(p->statuses, size);
	if (!s)
		return false;
	*s = (struct status){.token = token, .connection = p->up_connection};
	if (fits) {
		s->topic_size = (uint32_t)topic_size;
		s->payload_size = (uint32_t)len;
		memcpy(s + 1, topic, topic_size);
		if (len)
			memcpy((char *)(s + 1) + topic_size, payload, len);
	}
	hw_ring_commit(p->statuses, size);
	p->handed_over++;
	return true;
}

void hw_publisher_barrier(struct hw_publisher *p, uint64_t mark, uint64_t number)
{
	struct barrier *b = p->up ? hw_ring_reserve(p->barriers, sizeof(*b)) : NULL;
	if (!b)
		return;
	*b = (struct barrier){.barrier = {mark, number}, .connection = p->up_connection};
	hw_ring_commit(p->barriers, sizeof(*b));
}

void hw_publisher_flush(struct hw_publisher *p)
{
	hw_ring_publish(p->barriers);
	hw_ring_publish(p->statuses);
}

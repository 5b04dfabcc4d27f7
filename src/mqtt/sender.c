/* SPDX-License-Identifier: MIT */
/*
 * See sender.h.
 *
 * Cost past the library (outlet.h, acks.h): a few system calls for each wake-up, whatever the number of messages and
 * acknowledgements. With the library: one write() for each message and three read() for each acknowledgement. When
 * idle, the thread wakes only for barriers and its keepalive; if statuses are in flight and the broker is silent, also
 * once a second.
 */
#include "mqtt/sender.h"

#include <errno.h>
#include <limits.h>
#include <mosquitto.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "mqtt/clock.h"
#include "mqtt/receive.h"

/* places of the broker's window that are not for statuses, so that barriers with QoS 1 need not wait */
#define BARRIER_SLOTS 2
/* while statuses wait, this many answers are reported together, so that the loop wakes up less often */
#define ANSWERS       64
#define READ_BUDGET   1024
#define BRIEF_WAIT_NS 6000 /* how long to wait for each message of a full window: less than any broker needs */
#define BRIEF_WINDOW  10   /* with a smaller window, the thread does not wait briefly */
#define WAITING_MS    1000 /* while an acknowledgement is awaited */
#define BUSY_MS       100  /* during a handshake, or while stopping */

static void report_limits(struct hw_sender *s)
{
	enum hw_missing_feature which;
	char text[HW_WHY_TEXT];
	while ((which = hw_limits_news(&s->limits)) != 0) {
		hw_limits_text(&s->limits, which, text, sizeof(text));
		hw_handover_answer(s->handover, HW_PUBLISHER_LIMIT, 0, 0, text);
	}
}

/* --- the connection */

/* Learns the broker's limits from the loss of a connection. Returns true if a limit fully explains the loss: the next
 * attempt then respects that limit. */
static bool learn(struct hw_sender *s, int64_t now)
{
	const struct hw_link *l = &s->link;
	const struct hw_statuses *st = &s->statuses;
	if (l->up_ns && l->why.fault == HW_FAULT_CLOSED && st->n > 0)
		hw_limits_closed(&s->limits, st->n, st->in_flight[0].subject, st->in_flight[0].bytes, now);
	else if (!l->up_ns && (l->why.fault == HW_FAULT_UNANSWERED || l->why.refusal))
		return hw_limits_failed(&s->limits, l->why.refusal);
	else if (!l->up_ns && l->why.fault == HW_FAULT_AWAY)
		hw_limits_forget(&s->limits);
	return false;
}

/* Learns from the loss of a connection which canaries the broker refuses. If a canary is the cause, changes `why`.
 * Returns true if the next attempt must follow at once. */
static bool learn_of_canaries(struct hw_sender *s, int64_t now, char why[HW_WHY_TEXT])
{
	const struct hw_link *l = &s->link;
	bool away = !l->up_ns && l->why.fault == HW_FAULT_AWAY;
	if (away || l->why.fault == HW_FAULT_TAKEN)
		hw_refused_topics_forget(&s->echoes.refused);
	return l->up_ns && l->why.fault == HW_FAULT_CLOSED && hw_echoes_closed(&s->echoes, now, why);
}

static void lost(struct hw_sender *s)
{
	char why[HW_WHY_TEXT];
	int64_t now = hw_mqtt_clock_ns();
	memcpy(why, s->link.why.text, sizeof(why));
	bool again = learn(s, now), taken = s->link.why.fault == HW_FAULT_TAKEN;
	bool at_once = learn_of_canaries(s, now, why);
	s->statuses.n = 0;
	hw_outlet_begin(&s->outlet);
	hw_acks_begin(&s->acks);
	s->more = false;
	if (again)
		hw_link_again(&s->link, now);
	else if (hw_link_down(&s->link, now))
		hw_handover_answer(s->handover, HW_PUBLISHER_DOWN, taken, 0, why);
	if (at_once)
		s->link.retry_ns = now;
	report_limits(s);
	hw_handover_notify(s->handover);
}

/* Whether a status or a canary in flight may be the reason if the broker closes the connection now. */
static bool is_suspect(void *owner)
{
	const struct hw_sender *s = owner;
	return s->statuses.n > 0 || hw_open_canaries_any(&s->echoes.canaries);
}

/* Whether only a part of a packet may have been written, past the library. The library must not write then. */
static bool is_midway(void *owner)
{
	const struct hw_sender *s = owner;
	return hw_outlet_waits(&s->outlet);
}

static void answered(struct hw_sender *s, int mid, int reason)
{
	if (hw_statuses_answered(&s->statuses, mid, reason))
		hw_low_water_answered(&s->low_water);
	else
		hw_echoes_answered(&s->echoes, mid, reason);
}

static void on_written(void *owner, int mid)
{
	answered(owner, mid, 0);
}

static void on_ack(void *owner, uint16_t id, uint8_t reason)
{
	struct hw_sender *s = owner;
	if (hw_outlet_answered(&s->outlet, id))
		answered(s, id, reason);
}

static void on_publish(struct mosquitto *m, void *arg, int mid, int reason, const mosquitto_property *properties)
{
	struct hw_link *l = arg;
	(void)m;
	(void)properties;
	l->progress++;
	answered(l->owner, mid, reason);
}

static int prepare(struct hw_link *l)
{
	struct hw_sender *s = l->owner;
	if (atomic_load(&s->handover->broker_answers))
		hw_why_answered(&l->why);
	mosquitto_publish_v5_callback_set(l->m, on_publish);
	bool retain;
	int qos, rc = mosquitto_int_option(l->m, MOSQ_OPT_SEND_MAXIMUM, HW_STATUSES_WINDOW + BARRIER_SLOTS);
	if (hw_limits_will(&s->limits, &retain, &qos) && !rc && s->will_topic)
		rc = mosquitto_will_set(l->m, s->will_topic, (int)s->will_len, s->will_payload, qos, retain);
	if (rc)
		hw_why_set(&l->why, "the last will on '%.160s' cannot be set: %s", s->will_topic ? s->will_topic : "",
		           mosquitto_strerror(rc));
	return rc ? -1 : 0;
}

/* Called when the connection is accepted. If a will was wanted but this CONNECT had none, the connection was only a
 * test: see limits.h. */
static void be_up(struct hw_sender *s)
{
	struct hw_link *l = &s->link;
	const struct hw_granted *g = &l->granted;
	if (!hw_limits_answered(&s->limits, g->retain, g->qos_max, g->packet_max)) {
		hw_link_leave(l);
		return;
	}
	unsigned reserved = l->conf.qos > 0 || l->conf.protocol == 5 ? BARRIER_SLOTS : 0;
	unsigned granted = g->receive_max > reserved ? g->receive_max - reserved : 1;
	s->handover->window = granted < HW_STATUSES_WINDOW ? granted : HW_STATUSES_WINDOW;
	s->handover->connection++;
	hw_low_water_begin(&s->low_water);
	hw_outlet_begin(&s->outlet);
	hw_acks_begin(&s->acks);
	hw_echoes_begin(&s->echoes);
	if (s->will_topic)
		atomic_store(&s->handover->lacks_qos, s->limits.known & HW_MISSING_QOS);
	hw_link_up(l, hw_mqtt_clock_ns());
	hw_handover_answer(s->handover, HW_PUBLISHER_UP, 0, 0, "");
	report_limits(s);
}

/* --- a turn */

/* Makes the kernel hold small writes back, so that several messages are sent together although the library writes
 * each separately. */
static void hold_back(struct hw_sender *s, int on)
{
	if (!s->outlet.past)
		setsockopt(hw_link_socket(&s->link), IPPROTO_TCP, TCP_CORK, &on, sizeof(on));
}

/* Returns how many messages may be unanswered when an echo is sent. So echoes never use all places of the window, and
 * statuses can be sent. */
static unsigned echoes_most(const struct hw_sender *s)
{
	unsigned quota = s->outlet.quota, window = s->handover->window;
	return !s->outlet.past ? UINT_MAX : s->statuses.n + (quota > window ? quota - window : 1);
}

/* Sends barriers first, then statuses while the window is open. Returns -1 if the connection is lost. */
static int send_all(struct hw_sender *s)
{
	const struct hw_handover_status *status;
	size_t size;
	unsigned n = 0;
	int rc = hw_echoes_send(&s->echoes, echoes_most(s));
	while (!rc && s->statuses.n < hw_statuses_window(&s->statuses) && hw_outlet_room(&s->outlet) &&
	       (status = hw_ring_take(s->handover->statuses, &size)) != NULL) {
		if (++n == 2)
			hold_back(s, 1);
		rc = hw_statuses_send(&s->statuses, status);
	}
	if (n > 0)
		hw_ring_release(s->handover->statuses);
	if (n > 1 && !rc)
		hold_back(s, 0);
	return rc;
}

/* Returns -1 if the connection is lost. */
static int read_all(struct hw_sender *s)
{
	bool past = s->outlet.past && s->link.state == HW_LINK_OPEN;
	enum hw_link_read got = past ? hw_acks_read(&s->acks) : hw_link_read(&s->link, READ_BUDGET);
	s->more = got != HW_LINK_DRAINED;
	return got == HW_LINK_LOST ? -1 : 0;
}

/*
 * Keeps the connection alive. Past the library, hw_link_tend() is not called while data is left to read: it would send
 * a packet with a packet id of the library. Nor is it needed then, because the data shows that the connection works.
 * Returns -1 if the connection is lost.
 */
static int tend(struct hw_sender *s, int64_t now)
{
	return s->outlet.past && s->more ? 0 : hw_link_tend(&s->link, now, !s->more);
}

/* Does all work on an open connection. Returns -1 if the connection is lost. */
static int serve(struct hw_sender *s)
{
	struct hw_link *l = &s->link;
	if (l->state == HW_LINK_OPEN && !l->up_ns)
		be_up(s);
	if (!l->m)
		return 0;
	if (l->up_ns && send_all(s))
		return -1;
	if (hw_link_wants_write(l) && hw_link_write(l))
		return -1;
	int64_t now = hw_mqtt_clock_ns();
	if (hw_outlet_write(&s->outlet, now))
		return -1;
	bool over = hw_outlet_overdue(&s->outlet, now) || tend(s, now) || hw_link_overdue(l, now);
	over = over || hw_statuses_overdue(&s->statuses, now);
	return over || hw_echoes_overdue(&s->echoes, echoes_most(s), now) ? -1 : 0;
}

/* Reports answers to the loop. While further acknowledgements arrive, reports answers only when ANSWERS of them
 * wait, so that the loop wakes up less often. */
static void report_some(struct hw_sender *s, bool waited_in_vain)
{
	struct hw_handover *h = s->handover;
	bool flows = !waited_in_vain && s->statuses.n > 0 && hw_ring_used(h->statuses) > 0;
	if (h->unannounced > 0 && (!flows || h->unannounced >= ANSWERS))
		hw_handover_notify(h);
}

/* The timeout of poll(), once low water is set. */
static int rest_ms(const struct hw_sender *s)
{
	if (s->low_water.gathers)
		return HW_LOW_WATER_MS;
	if (!s->link.up_ns || hw_orders_stop(&s->handover->orders))
		return BUSY_MS;
	int ms = hw_link_rest_ms(&s->link, hw_mqtt_clock_ns());
	bool waits = s->statuses.n > 0 || s->outlet.unanswered > 0;
	return waits && ms > WAITING_MS ? WAITING_MS : ms;
}

/*
 * Waits a little if the broker's acknowledgements cannot be gathered (low_water.h). Otherwise each acknowledgement
 * would wake this thread to send one message, while the broker is busy with a full window. During the wait, only a
 * barrier or an order wakes the thread.
 *
 * Called in every other turn only. A broker whose acknowledgements cannot be gathered sends the next ones only when
 * another message shows that the first was read.
 */
static void wait_briefly(struct hw_sender *s, const struct pollfd *orders, const struct pollfd *barriers)
{
	struct pollfd fds[] = {*orders, *barriers};
	struct timespec t = {0, (long)s->handover->window * BRIEF_WAIT_NS};
	ppoll(fds, 2, &t, NULL);
}

/* Acknowledges the broker's data at once. Usually the next message does this. Without a next message the kernel would
 * wait 40 ms, and barriers and statuses that need a place in the window would wait too. */
static void acknowledge_at_once(const struct hw_sender *s, int fd)
{
	if (s->outlet.past && s->outlet.unanswered > 0)
		hw_receive_acknowledge(fd);
}

static void turn(struct hw_sender *s)
{
	struct hw_link *l = &s->link;
	struct hw_handover *h = s->handover;
	unsigned window = hw_statuses_window(&s->statuses);
	bool up = l->up_ns != 0, room = up && hw_outlet_room(&s->outlet), open = room && s->statuses.n < window;
	int held_ms = hw_echoes_held_ms(&s->echoes, hw_mqtt_clock_ns());
	bool echoes = room && !held_ms && s->outlet.unanswered < echoes_most(s);
	/* With a full window the thread does not wake up for new statuses, because only an acknowledgement makes
	 * room for them. */
	bool idle = !s->more && !(echoes && !hw_ring_rest(h->barriers)) && !(open && !hw_ring_rest(h->statuses));
	bool full = window > 1 && s->statuses.n >= h->window;
	bool writes = hw_link_wants_write(l) || hw_outlet_waits(&s->outlet);
	int events = POLLIN | (writes ? POLLOUT : 0), fd = hw_link_socket(l);
	struct pollfd fds[] = {{h->orders.fd, POLLIN, 0},
	                       {fd, (short)events, 0},
	                       {echoes ? hw_ring_fd(h->barriers) : -1, POLLIN, 0},
	                       {open ? hw_ring_fd(h->statuses) : -1, POLLIN, 0}};
	hw_low_water_set(&s->low_water, fd, full ? h->window / 2 : 0, s->outlet.past ? s->acks.awaited : 1);
	s->waited = s->outlet.past && full && idle && !s->waited && !s->low_water.gathers && h->window >= BRIEF_WINDOW;
	if (s->waited)
		wait_briefly(s, &fds[0], &fds[2]);
	if (idle)
		acknowledge_at_once(s, fd);
	int ms = rest_ms(s);
	int ready = poll(fds, 4, !idle ? 0 : held_ms > 0 && held_ms < ms ? held_ms : ms);
	if (fds[0].revents)
		hw_wake_fd_clear(h->orders.fd);
	hw_low_water_judge(&s->low_water, fd, fds[1].revents);
	/* Below the low-water mark, the socket does not become readable although it may contain bytes. So while the
	 * mark is set, the thread reads at each wake-up. */
	bool reads = fds[1].revents || ready == 0 || s->low_water.bytes > 1 || s->more || !up;
	if ((reads && read_all(s)) || serve(s))
		lost(s);
	report_some(s, ready == 0);
}

static bool has_ended(struct hw_sender *s)
{
	struct hw_handover *h = s->handover;
	if (!hw_orders_stop(&h->orders))
		return false;
	bool busy = s->link.up_ns && (s->statuses.n > 0 || hw_ring_used(h->statuses) > 0);
	return !busy || hw_mqtt_clock_ns() >= atomic_load(&h->stop_by_ns);
}

static void reconnect(struct hw_sender *s)
{
	const struct hw_mqtt_conf *c = &s->link.conf;
	hw_why_set(&s->link.why, "connection to %s:%d closed by the monitor, which reconnects now", c->host, c->port);
	s->link.why.fault = HW_FAULT_AWAY;
	lost(s);
}

void hw_sender_run(struct hw_sender *s)
{
	while (!has_ended(s)) {
		unsigned orders = hw_orders_take(&s->handover->orders);
		if ((orders & HW_ORDER_RETRY) && s->link.why.fault != HW_FAULT_TAKEN)
			s->link.retry_ns = 0;
		if ((orders & HW_ORDER_RECONNECT) && s->link.m)
			reconnect(s);
		int64_t wait_ns = s->link.retry_ns - hw_mqtt_clock_ns();
		if (s->link.m)
			turn(s);
		else if (wait_ns > 0)
			hw_orders_wait(&s->handover->orders, -1, (int)(wait_ns / HW_NS_PER_MS) + 1);
		else if (hw_link_open(&s->link))
			lost(s);
	}
	hw_link_leave(&s->link);
}

/* --- in the loop's thread */

static int copy_will(struct hw_sender *s, const char *topic, const void *payload, size_t len)
{
	if (!topic || !topic[0])
		return 0;
	s->will_topic = strdup(topic);
	s->will_payload = malloc(len + 1);
	if (!s->will_topic || !s->will_payload)
		return -ENOMEM;
	if (len)
		memcpy(s->will_payload, payload, len);
	s->will_len = len;
	return 0;
}

int hw_sender_init(struct hw_sender *s, struct hw_handover *handover, const struct hw_mqtt_conf *conf,
                   const char *will_topic, const void *will_payload, size_t will_len)
{
	int rc = hw_link_init(&s->link, conf);
	if (rc)
		return rc;
	s->handover = handover;
	s->link.owner = s;
	s->link.prepare = prepare;
	s->link.is_suspect = is_suspect;
	s->link.is_midway = is_midway;
	s->acks = (struct hw_acks){.link = &s->link, .take = on_ack, .awaited = 1};
	s->statuses = (struct hw_statuses){
		.link = &s->link, .outlet = &s->outlet, .limits = &s->limits, .handover = handover};
	s->echoes =
		(struct hw_echoes){.link = &s->link, .outlet = &s->outlet, .limits = &s->limits, .handover = handover};
	rc = hw_outlet_init(&s->outlet, &s->link, on_written);
	if (!rc)
		rc = copy_will(s, will_topic, will_payload, will_len);
	if (rc)
		hw_sender_fini(s);
	return rc;
}

void hw_sender_fini(struct hw_sender *s)
{
	hw_link_fini(&s->link);
	hw_outlet_fini(&s->outlet);
	free(s->will_topic);
	free(s->will_payload);
}

/* SPDX-License-Identifier: MIT */
/* See evict.h. Invariant: an eviction makes one attempt and has one result. There is no second attempt, because the
 * evicted node may reconnect at once, and the two connections would disconnect each other again and again. */
#include "mqtt/evict.h"

#include <errno.h>
#include <mosquitto.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mqtt/clock.h"
#include "mqtt/link.h"
#include "mqtt/orders.h"
#include "mqtt/thread.h"

#define READ_BUDGET 64
#define LINGER_MS   500 /* wait for the thread, unless it is in the resolver */

/* CONNACK codes for a temporary refusal. */
#define UNAVAILABLE_311 3
#define UNAVAILABLE     0x88
#define BUSY            0x89

struct hw_evict {
	atomic_int owners; /* the loop's side and the thread: the last owner frees */
	pthread_t thread;
	struct hw_orders orders;
	int done_fd;
	atomic_bool over; /* `how` and `why` are set */
	enum hw_eviction how;
	char why[HW_WHY_TEXT];

	/* used by the thread only */
	struct hw_link link;
	char *topic;
	void *payload;
	size_t len;
	int64_t until_ns;
	int mid;
	bool answered;
	int reason;
};

static void let_go(struct hw_evict *e)
{
	if (atomic_fetch_sub(&e->owners, 1) > 1)
		return;
	hw_link_fini(&e->link);
	hw_orders_fini(&e->orders);
	if (e->done_fd >= 0)
		close(e->done_fd);
	free(e->topic);
	free(e->payload);
	free(e);
}

/* --- the thread */

static void on_publish(struct mosquitto *m, void *arg, int mid, int reason, const mosquitto_property *properties)
{
	struct hw_link *l = arg;
	struct hw_evict *e = l->owner;
	(void)m;
	(void)properties;
	l->progress++;
	e->answered |= mid == e->mid;
	e->reason = reason;
}

static int prepare(struct hw_link *l)
{
	mosquitto_publish_v5_callback_set(l->m, on_publish);
	return 0;
}

static void conclude(struct hw_evict *e, enum hw_eviction how, const char *why)
{
	e->how = how;
	snprintf(e->why, sizeof(e->why), "%s", why);
	atomic_store(&e->over, true);
	hw_wake_fd_signal(e->done_fd);
}

static void conclude_lost(struct hw_evict *e)
{
	const struct hw_why *why = &e->link.why;
	bool later = why->refusal == UNAVAILABLE_311 || why->refusal == UNAVAILABLE || why->refusal == BUSY;
	bool refused = why->refusal && !later;
	conclude(e, refused ? HW_EVICTION_REFUSED : HW_EVICTION_FAILED, why->text);
}

static void conclude_answered(struct hw_evict *e)
{
	char text[HW_WHY_TEXT] = "";
	const struct hw_mqtt_conf *c = &e->link.conf;
	bool refused = e->reason >= 0x80;
	if (refused)
		snprintf(text, sizeof(text), "%s: allow %.64s to write %.120s, retained",
		         mosquitto_reason_string(e->reason), c->username[0] ? c->username : "anonymous clients",
		         e->topic);
	conclude(e, refused ? HW_EVICTION_REFUSED : HW_EVICTION_TAKEN, text);
}

/* Publishes the presence. Returns -1 if the connection is lost. */
static int publish(struct hw_evict *e)
{
	struct hw_link *l = &e->link;
	int qos = l->granted.qos_max > 0;
	hw_link_up(l, hw_mqtt_clock_ns());
	errno = 0;
	int rc = mosquitto_publish(l->m, &e->mid, e->topic, (int)e->len, e->payload, qos, l->granted.retain),
	    err = errno;
	if (rc)
		hw_link_lost(l, rc, err);
	return rc ? -1 : 0;
}

/* One wake-up. Returns -1 if the connection is lost. */
static int turn(struct hw_evict *e, int64_t left_ns)
{
	struct hw_link *l = &e->link;
	int events = POLLIN | (hw_link_wants_write(l) ? POLLOUT : 0);
	struct pollfd fds[] = {{e->orders.fd, POLLIN, 0}, {hw_link_socket(l), (short)events, 0}};
	poll(fds, 2, (int)(left_ns / HW_NS_PER_MS) + 1);
	if (hw_link_read(l, READ_BUDGET) == HW_LINK_LOST)
		return -1;
	if (l->state == HW_LINK_OPEN && !l->up_ns && publish(e))
		return -1;
	return hw_link_wants_write(l) ? hw_link_write(l) : 0;
}

static void attempt(struct hw_evict *e)
{
	int64_t left_ns = 1;
	int rc = hw_link_open(&e->link);
	while (!rc && !e->answered && !hw_orders_stop(&e->orders) && left_ns > 0) {
		left_ns = e->until_ns - hw_mqtt_clock_ns();
		if (left_ns > 0)
			rc = turn(e, left_ns);
	}
	if (e->answered)
		conclude_answered(e);
	else if (rc)
		conclude_lost(e);
	else
		conclude(e, HW_EVICTION_FAILED, "the broker did not answer in time");
	hw_link_leave(&e->link);
}

static void *run(void *arg)
{
	struct hw_evict *e = arg;
	attempt(e);
	let_go(e);
	return NULL;
}

/* --- the loop's side */

static int make(struct hw_evict *e, const char *topic, const void *payload, size_t len)
{
	e->topic = strdup(topic);
	e->payload = malloc(len + 1);
	e->len = len;
	e->done_fd = hw_wake_fd_new();
	if (hw_orders_init(&e->orders) || e->done_fd < 0 || !e->topic || !e->payload)
		return -ENOMEM;
	if (len)
		memcpy(e->payload, payload, len);
	return 0;
}

int hw_evict_start(struct hw_evict **out, const struct hw_mqtt_conf *conf, const char *topic, const void *payload,
                   size_t len, int64_t timeout_ms)
{
	struct hw_evict *e = calloc(1, sizeof(*e));
	if (!e || hw_link_init(&e->link, conf)) {
		free(e);
		return -ENOMEM;
	}
	atomic_init(&e->owners, 1);
	atomic_init(&e->over, false);
	e->link.owner = e;
	e->link.prepare = prepare;
	e->until_ns = hw_mqtt_clock_ns() + timeout_ms * HW_NS_PER_MS;
	int rc = make(e, topic, payload, len);
	if (!rc) {
		atomic_store(&e->owners, 2);
		rc = hw_thread_start(&e->thread, run, e, "hw-evict");
	}
	if (rc) {
		atomic_store(&e->owners, 1);
		let_go(e);
		return rc;
	}
	*out = e;
	return 0;
}

int hw_evict_fd(const struct hw_evict *e)
{
	return e->done_fd;
}

bool hw_evict_is_over(const struct hw_evict *e, enum hw_eviction *how, const char **why)
{
	if (!atomic_load(&e->over))
		return false;
	*how = e->how;
	*why = e->why;
	return true;
}

void hw_evict_end(struct hw_evict *e)
{
	if (!e)
		return;
	hw_orders_give(&e->orders, HW_ORDER_STOP);
	hw_thread_end(e->thread, LINGER_MS);
	let_go(e);
}

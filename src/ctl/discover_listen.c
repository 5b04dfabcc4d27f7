/* SPDX-License-Identifier: MIT */
/*
 * See discover_listen.h. One thread and one connection: a link (mqtt/link.h) as the daemon's readers have, with the
 * same limits and error texts. If possible, QoS 0 messages are read without the library (mqtt/ahead.h).
 */
#include "ctl/discover_listen.h"

#include <errno.h>
#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "mqtt/ahead.h"
#include "mqtt/clock.h"
#include "mqtt/link.h"
#include "mqtt/receive.h"

#define BUDGET    1024 /* packets of a read */
#define WAIT_MS   100
#define SILENT_MS 5000
#define REFUSED   0x80
#define TOO_OLD   0x84 /* MQTT 5: unsupported protocol version; in 3.1.1 it is 1 */

/* A client without the right to subscribe to `#` may have the right to subscribe to each number of levels. */
static const char *const by_levels[] = {
	"+",           "+/+",           "+/+/+",           "+/+/+/+",           "+/+/+/+/+",
	"+/+/+/+/+/+", "+/+/+/+/+/+/+", "+/+/+/+/+/+/+/+", "+/+/+/+/+/+/+/+/+", "+/+/+/+/+/+/+/+/+/+"};
static const char *const everything[] = {"#"};

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	(void)number;
	stopped = 1;
}

struct listener {
	struct hw_listen *how;
	struct hw_topics *topics;
	struct hw_link link;
	struct hw_ahead *ahead;
	int mids[HW_LISTEN_FILTERS];
	size_t answers; /* SUBACKs */
	uint32_t now_ms;
	uint64_t messages;
	bool warned;
	int error; /* -ENOMEM */
};

/* --- callbacks ---------------------------------------------------------------------------------------------------- */

static bool take(void *owner, const struct hw_packet *p)
{
	struct listener *x = owner;
	x->messages++;
	int rc = hw_topics_add(x->topics, p->topic, p->topic_len, p->payload, p->payload_len, p->retained, x->now_ms);
	x->error = rc ? rc : x->error;
	return true;
}

static void on_message(struct mosquitto *m, void *arg, const struct mosquitto_message *msg)
{
	struct hw_link *l = arg;
	(void)m;
	l->progress++;
	const struct hw_packet p = {.topic = msg->topic,
	                            .topic_len = strlen(msg->topic),
	                            .payload = msg->payload ? msg->payload : "",
	                            .payload_len = (size_t)msg->payloadlen,
	                            .retained = msg->retain};
	take(l->owner, &p);
	errno = 0;
}

static void on_subscribe(struct mosquitto *m, void *arg, int mid, int n, const int *codes)
{
	struct hw_link *l = arg;
	struct listener *x = l->owner;
	(void)m;
	l->progress++;
	for (size_t i = 0; i < x->how->n_subscribed; i++)
		if (x->mids[i] == mid && n > 0) {
			x->answers++;
			x->how->refused[i] = codes[0] >= REFUSED;
		}
}

static void on_too_long(void *owner, const struct hw_too_long *m)
{
	struct hw_listen *how = ((struct listener *)owner)->how;
	how->too_long++;
	snprintf(how->too_long_topic, sizeof(how->too_long_topic), "%s", m->topic);
}

static int prepare(struct hw_link *l)
{
	mosquitto_message_callback_set(l->m, on_message);
	mosquitto_subscribe_callback_set(l->m, on_subscribe);
	return 0;
}

/* --- the connection ----------------------------------------------------------------------------------------------- */

static int subscribe(struct listener *x, const char *const *filters, size_t n)
{
	x->how->n_subscribed = n;
	x->answers = 0;
	hw_topics_replays(x->topics, x->how->n_filters ? (unsigned)n : 1);
	for (size_t i = 0; i < n; i++) {
		x->how->subscribed[i] = filters[i];
		x->how->refused[i] = false;
		int rc = mosquitto_subscribe_v5(x->link.m, &x->mids[i], filters[i], 0,
		                                MQTT_SUB_OPT_SEND_RETAIN_ALWAYS | MQTT_SUB_OPT_RETAIN_AS_PUBLISHED,
		                                NULL);
		if (rc) {
			hw_why_set(&x->link.why, "cannot subscribe to '%s': %s", filters[i], mosquitto_strerror(rc));
			return -1;
		}
	}
	return 0;
}

static enum hw_link_read read_some(struct listener *x)
{
	x->now_ms = (uint32_t)(hw_mqtt_clock_ns() / HW_NS_PER_MS);
	if (x->ahead && x->link.state == HW_LINK_OPEN)
		return hw_ahead_read(x->ahead, BUDGET);
	return hw_link_read(&x->link, BUDGET);
}

/* Waits for the socket and handles it, for at most WAIT_MS. If the connection is lost, returns -1, with the reason
 * in the link. */
static int turn(struct listener *x)
{
	struct pollfd p = {.fd = hw_link_socket(&x->link), .events = POLLIN};
	enum hw_link_read got = HW_LINK_DRAINED;
	if (hw_link_wants_write(&x->link))
		p.events |= POLLOUT;
	int n = poll(&p, 1, WAIT_MS);
	if (n > 0 && (p.revents & POLLOUT) && hw_link_write(&x->link))
		return -1;
	/* TLS may hold decrypted data that poll() does not show */
	if (n > 0 || x->link.conf.tls_ca[0])
		got = read_some(x);
	if (got == HW_LINK_LOST || hw_link_tend(&x->link, hw_mqtt_clock_ns(), got == HW_LINK_DRAINED))
		return -1;
	return hw_link_overdue(&x->link, hw_mqtt_clock_ns()) ? -1 : 0;
}

static void close_link(struct listener *x)
{
	hw_link_leave(&x->link);
	hw_link_fini(&x->link);
	free(x->ahead);
	x->ahead = NULL;
}

/* Connects with this version of the protocol, until the CONNACK. Returns 0, or -1 with the reason in `why`. */
static int open_link(struct listener *x, int protocol)
{
	struct hw_mqtt_conf conf = x->how->conf;
	conf.protocol = protocol;
	if (hw_link_init(&x->link, &conf)) {
		x->error = -ENOMEM;
		return -1;
	}
	x->link.owner = x;
	x->link.prepare = prepare;
	x->link.on_too_long = on_too_long;
	x->ahead = hw_ahead_new(&x->link, take);
	int rc = hw_link_open(&x->link);
	if (rc == 0)
		hw_receive_widen(hw_link_socket(&x->link));
	while (rc == 0 && !stopped && x->link.state == HW_LINK_OPENING)
		rc = turn(x);
	if (rc == 0 && x->link.state != HW_LINK_OPEN)
		rc = -1;
	if (rc == 0) {
		hw_link_up(&x->link, hw_mqtt_clock_ns());
		if (x->ahead)
			hw_ahead_begin(x->ahead);
	}
	snprintf(x->how->why, sizeof(x->how->why), "%s", x->link.why.text);
	return rc;
}

/* Whether the broker may not support MQTT 5. Some of these brokers close the connection, others refuse it. */
static bool may_be_too_old(const struct listener *x)
{
	int refusal = x->link.why.refusal;
	return refusal == 1 || refusal == TOO_OLD || (refusal == 0 && x->link.why.fault == HW_FAULT_UNANSWERED);
}

static int connect_broker(struct listener *x)
{
	int protocol = x->how->conf.protocol, rc = open_link(x, protocol);
	if (rc == 0 || x->error)
		return rc;
	bool again = protocol == 5 && !stopped && may_be_too_old(x);
	close_link(x);
	if (again && (rc = open_link(x, 311)) != 0)
		close_link(x);
	if (rc == 0)
		x->how->conf.protocol = 311;
	return rc;
}

/* --- listening ---------------------------------------------------------------------------------------------------- */

/* Whether the broker has refused all subscriptions. */
static bool is_refused(const struct listener *x)
{
	for (size_t i = 0; i < x->how->n_subscribed; i++)
		if (!x->how->refused[i])
			return false;
	return true;
}

/* Subscribes to these filters and receives messages. Returns 0 at the end of the time, and -1 if the connection was
 * lost. Returns 1 if the broker refuses all filters, or closes the connection before it has granted one of them. */
static int listen_on(struct listener *x, const char *const *filters, size_t n)
{
	int64_t began = hw_mqtt_clock_ns();
	int rc = subscribe(x, filters, n);
	while (rc == 0 && !stopped && !x->error) {
		int64_t passed_ms = (hw_mqtt_clock_ns() - began) / HW_NS_PER_MS;
		x->how->listened_ms = passed_ms;
		if (is_refused(x))
			return 1;
		if (passed_ms >= x->how->lasts_ms)
			return 0;
		if (passed_ms > SILENT_MS && x->messages == 0 && !x->warned) {
			x->warned = true;
			fprintf(stderr,
			        "heartwheelctl: no message for %d s yet: nothing publishes, or this user may read "
			        "nothing\n",
			        SILENT_MS / 1000);
		}
		rc = turn(x);
	}
	if (rc)
		snprintf(x->how->why, sizeof(x->how->why), "%s", x->link.why.text);
	return rc && x->answers == 0 && x->messages == 0 ? 1 : rc;
}

static void name_silent(const struct listener *x)
{
	for (size_t i = 0; i < x->how->n_subscribed; i++) {
		bool matches = false;
		for (size_t k = 0; k < hw_topics_n(x->topics) && !matches; k++)
			if (mosquitto_topic_matches_sub(x->how->subscribed[i], hw_topics_at(x->topics, k)->text,
			                                &matches))
				matches = false;
		x->how->silent[i] = !matches && !x->how->refused[i] && x->how->listened_ms >= SILENT_MS;
	}
}

static int listen_all(struct listener *x)
{
	struct hw_listen *how = x->how;
	bool all = how->n_filters == 0;
	int rc = listen_on(x, all ? everything : how->filters, all ? 1 : how->n_filters);
	if (rc != 1 || !all)
		return rc;
	how->all_refused = true;
	if (x->answers == 0) {
		/* it closed the connection */
		close_link(x);
		if (connect_broker(x))
			return -2;
	}
	return listen_on(x, by_levels, sizeof(by_levels) / sizeof(by_levels[0]));
}

int hw_listen_run(struct hw_listen *l, struct hw_topics *topics)
{
	struct listener x = {.how = l, .topics = topics};
	struct sigaction on = {.sa_handler = on_signal}, was_int, was_term;
	uint32_t random = 0;
	char id[32];
	if (getrandom(&random, sizeof(random), 0) < 0)
		random = (uint32_t)hw_mqtt_clock_ns();
	snprintf(id, sizeof(id), "hwdiscover-%08x", (unsigned)random);
	l->conf.client_id = id;
	stopped = 0;
	sigaction(SIGINT, &on, &was_int);
	sigaction(SIGTERM, &on, &was_term);
	int rc = connect_broker(&x);
	if (rc == 0) {
		l->was_up = true;
		rc = listen_all(&x);
		name_silent(&x);
		if (rc != -2)
			close_link(&x);
	}
	if (rc == 1 && !l->why[0])
		snprintf(l->why, sizeof(l->why),
		         "the broker refuses every subscription: give this user the right to read");
	l->failed = rc != 0 && !stopped;
	l->conf.client_id = NULL;
	sigaction(SIGINT, &was_int, NULL);
	sigaction(SIGTERM, &was_term, NULL);
	return x.error;
}

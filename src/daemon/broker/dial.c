/* SPDX-License-Identifier: MIT */
/* Opens the connections to the broker, once. */
#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "broker_priv.h"
#include "daemon/loop/clock.h"
#include "daemon/retained/presence.h"
#include "daemon/retained/retained.h"

#define RING_BYTES (8u << 20) /* bytes of messages between a reader and the loop */

static struct hw_mqtt_conf mqtt_conf(const struct hw_app *a, const char *client_id)
{
	const struct hw_settings *c = a->start;
	return (struct hw_mqtt_conf){.host = c->mqtt.host,
	                             .port = (int)c->mqtt.port,
	                             .protocol = c->mqtt.protocol,
	                             .keepalive_s = (int)((c->mqtt.keepalive_ms + 999) / 1000),
	                             .username = c->mqtt.username,
	                             .password = a->life.mqtt_password ? a->life.mqtt_password : "",
	                             .tls_ca = c->mqtt.tls_ca,
	                             .tls_cert = c->mqtt.tls_cert,
	                             .tls_key = c->mqtt.tls_key,
	                             .client_id = client_id,
	                             .barrier_topic = a->broker->barrier_topic,
	                             .share_topic = a->broker->share.topic,
	                             .qos = (int)c->mqtt.qos};
}

static int start_reader(struct hw_app *a, unsigned i, const struct hw_mqtt_filter *filters, size_t n)
{
	struct hw_app_reader *r = &a->broker->reader[i];
	r->app = a;
	r->number = i;
	hw_app_feed_init(r);
	snprintf(r->client_id, sizeof(r->client_id), "%s-%s-r%u", a->start->mqtt.client_id_prefix, a->start->node_id,
	         i);
	r->conf = mqtt_conf(a, r->client_id);
	int rc = hw_reader_start(&r->reader, &r->conf, filters, n,
	                         a->broker->n_readers > 1 ? a->broker->share_group : NULL, RING_BYTES,
	                         a->start->stall_after_ms);
	if (rc)
		return rc;
	r->readable = event_new(a->loop.base, hw_reader_fd(r->reader), EV_READ | EV_PERSIST, hw_app_on_reader, r);
	return r->readable && event_add(r->readable, NULL) == 0 ? 0 : -ENOMEM;
}

/* Names the group of the shared subscriptions. The name is random: a client that knew it could subscribe under it, and
 * the broker would then deliver a part of the heartbeats to that client alone. */
static int name_share_group(struct hw_app *a)
{
	uint64_t random;
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -errno;
	snprintf(a->broker->share_group, sizeof(a->broker->share_group), "heartwheel-%s-%016" PRIx64, a->start->node_id,
	         random);
	return 0;
}

static int start_barriers(struct hw_app *a)
{
	struct hw_app_barriers *b = &a->broker->barriers;
	snprintf(b->client_id, sizeof(b->client_id), "%s-%s-bar", a->start->mqtt.client_id_prefix, a->start->node_id);
	b->conf = mqtt_conf(a, b->client_id);
	int rc = hw_publisher_start(&b->publisher, &b->conf, NULL, NULL, 0);
	if (rc)
		return rc;
	b->readable =
		event_new(a->loop.base, hw_publisher_fd(b->publisher), EV_READ | EV_PERSIST, hw_app_on_barriers, a);
	return b->readable && event_add(b->readable, NULL) == 0 ? 0 : -ENOMEM;
}

/*
 * Logs how heartbeats are read, so that operators understand why two machines differ: with a newer libmosquitto, TLS or
 * QoS 1, each heartbeat costs more.
 */
static void log_path(const struct hw_app *a)
{
	char text[HW_READER_PATH_TEXT];
	hw_reader_path(&a->broker->publisher_conf, text, sizeof(text));
	hw_log(a->log, HW_LOG_INFO, "broker: heartbeats are %s", text);
}

int hw_app_dial(struct hw_app *a)
{
	char will[HW_PRESENCE_MAX];
	snprintf(a->broker->publisher_id, sizeof(a->broker->publisher_id), "%s-%s-pub", a->start->mqtt.client_id_prefix,
	         a->start->node_id);
	a->broker->publisher_conf = mqtt_conf(a, a->broker->publisher_id);
	a->broker->publisher_conf.evictable = a->cluster != NULL;
	int len = hw_app_presence_payload(a, hw_app_now(), false, will, sizeof(will));
	if (len < 0)
		return -EINVAL;
	int rc = hw_publisher_start(&a->broker->publisher, &a->broker->publisher_conf, hw_app_presence_topic(a), will,
	                            (size_t)len);
	if (rc)
		return rc;
	hw_app_retained_connect(a, a->broker->publisher);
	a->broker->publisher_readable = event_new(a->loop.base, hw_publisher_fd(a->broker->publisher),
	                                          EV_READ | EV_PERSIST, hw_app_on_publisher, a);
	if (!a->broker->publisher_readable || event_add(a->broker->publisher_readable, NULL))
		return -ENOMEM;
	struct hw_app_filters f;
	rc = start_barriers(a);
	if (!rc)
		rc = name_share_group(a);
	if (!rc)
		rc = hw_app_filters(a, &f);
	if (rc)
		return rc;
	rc = hw_app_expect_copies(a, &f);
	for (unsigned i = 0; i < a->broker->n_readers && !rc; i++)
		rc = start_reader(a, i, i ? f.shared : f.all, i ? f.n_shared : f.n);
	free(f.all);
	if (!rc)
		log_path(a);
	return rc;
}

/* Connects in the loop. If memory for the connections cannot be allocated, the daemon cannot work, and stops. */
void hw_app_dial_late(struct hw_app *a)
{
	if (a->broker->publisher || a->life.stopping || a->life.failed)
		return;
	int rc = hw_app_dial(a);
	if (!rc)
		return;
	hw_log(a->log, HW_LOG_ERROR, "cannot start: %s", strerror(-rc));
	a->life.failed = EXIT_FAILURE;
	hw_loop_stop(&a->loop);
}

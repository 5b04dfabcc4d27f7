/* SPDX-License-Identifier: MIT */
/* See broker.h. Handles the publisher's events, and everything that is about all connections. */
#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker_priv.h"
#include "daemon/cluster/cluster.h"
#include "daemon/loop/turn.h"
#include "daemon/retained/discovery.h"
#include "daemon/retained/presence.h"
#include "daemon/retained/retained.h"
#include "daemon/visibility/probes.h"
#include "heartwheel/print.h"

int hw_app_broker_new(struct hw_app *a)
{
	struct hw_app_broker *b = a->broker = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	b->n_readers = (unsigned)a->start->mqtt.readers;
	snprintf(b->barrier_topic, sizeof(b->barrier_topic), "heartwheel/%s/barrier", a->start->node_id);
	b->discovery_len = hw_print(b->discovery, sizeof(b->discovery), "%s" HW_DISCOVERY_BEFORE,
	                            a->start->mqtt.homeassistant_prefix);
	hw_share_init(a);
	return 0;
}

static void free_event(struct event *e)
{
	if (e)
		event_free(e);
}

void hw_app_broker_close(struct hw_app *a)
{
	struct hw_app_broker *b = a->broker;
	if (!b)
		return;
	for (unsigned i = 0; i < b->n_readers; i++) {
		free_event(b->reader[i].readable);
		hw_copies_of_fini(&b->reader[i].copies);
		if (b->reader[i].reader)
			hw_reader_stop(b->reader[i].reader);
	}
	free_event(b->publisher_readable);
	if (b->publisher)
		hw_publisher_stop(b->publisher, 1000);
	free_event(b->barriers.readable);
	if (b->barriers.publisher)
		hw_publisher_stop(b->barriers.publisher, 0);
}

void hw_app_broker_free(struct hw_app *a)
{
	if (a->broker)
		hw_copies_fini(&a->broker->copies);
	free(a->broker);
}

/* --- the publisher ---------------------------------------------------------------------------------------------- */

struct hw_publisher *hw_app_publisher(const struct hw_app *a)
{
	return a->broker->publisher;
}

bool hw_app_publisher_is_up(const struct hw_app *a)
{
	return a->broker->publisher_up;
}

struct hw_mono hw_app_publisher_lost(const struct hw_app *a)
{
	return a->broker->publisher_lost;
}

const struct hw_mqtt_conf *hw_app_publisher_conf(const struct hw_app *a)
{
	return &a->broker->publisher_conf;
}

static void publisher_up(struct hw_app *a, struct hw_now now)
{
	a->broker->publisher_up = true;
	a->broker->publisher_reconnects += a->broker->publisher_ever_up;
	a->broker->publisher_ever_up = true;
	a->broker->publisher_why[0] = '\0';
	hw_publisher_set_broker(a->broker->barriers.publisher, hw_publisher_is_without_qos(a->broker->publisher));
	hw_app_presence_set_due(a, true);
	hw_log(a->log, HW_LOG_NOTICE, "publisher: connected to %s:%d", a->broker->publisher_conf.host,
	       a->broker->publisher_conf.port);
	hw_app_cluster_session(a, now, true);
	if (!a->life.loading) /* otherwise on_loaded() does it */
		hw_app_republish(a, now);
	hw_app_retry_links(a);
}

static void publisher_down(struct hw_app *a, struct hw_now now, const char *text, bool taken)
{
	if (a->broker->publisher_up)
		a->broker->publisher_lost = now.mono;
	a->broker->publisher_up = false;
	hw_app_log_broker(a, text, taken && !a->broker->publisher_conf.evictable);
	snprintf(a->broker->publisher_why, sizeof(a->broker->publisher_why), "%s", text);
	hw_app_cluster_session(a, now, false);
	hw_app_retained_down(a);
}

/* Whether the publish id belongs to a node's presence. */
static bool is_nodes(uint64_t publish_id)
{
	return (publish_id & HW_RETAINED_PUBLISH_ID_KIND) == HW_CLUSTER_PUBLISH_ID;
}

static void acked(struct hw_app *a, struct hw_now now, const struct hw_publisher_event *ev)
{
	if (is_nodes(ev->publish_id))
		hw_app_cluster_answered(a, now, ev);
	else if (ev->publish_id != HW_PROBE_PUBLISH_ID)
		hw_app_retained_acked(a, ev->publish_id);
}

static void refused(struct hw_app *a, struct hw_now now, const struct hw_publisher_event *ev)
{
	if (ev->publish_id == HW_PROBE_PUBLISH_ID) {
		hw_app_probe_refused(a, ev->text);
		return;
	}
	if (is_nodes(ev->publish_id)) {
		hw_app_cluster_answered(a, now, ev);
		return;
	}
	hw_app_retained_refused(a, now, ev);
}

void hw_app_on_publisher(int fd, short what, void *arg)
{
	struct hw_app *a = arg;
	(void)fd;
	(void)what;
	struct hw_now now = hw_app_woke(a);
	struct hw_publisher_event ev;
	while (hw_publisher_take(a->broker->publisher, &ev)) {
		switch (ev.kind) {
		case HW_PUBLISHER_UP:
			publisher_up(a, now);
			break;
		case HW_PUBLISHER_DOWN:
			publisher_down(a, now, ev.text, ev.publish_id != 0);
			break;
		case HW_PUBLISHER_ACKED:
			acked(a, now, &ev);
			break;
		case HW_PUBLISHER_REFUSED:
			refused(a, now, &ev);
			break;
		case HW_PUBLISHER_LIMIT:
			hw_log(a->log, HW_LOG_WARNING, "broker: %s", ev.text);
			break;
		case HW_PUBLISHER_BARRIERS:
		case HW_PUBLISHER_CANARY: /* only on the barriers' connection */
			break;
		}
	}
	hw_app_turn(a);
}

/* --- all connections -------------------------------------------------------------------------------------------- */

/* Whether this failure was already logged for another connection. If the broker cannot be reached, all connections
 * fail for the same reason, and one line is enough. */
bool hw_app_is_reported(const struct hw_app *a, const char *text)
{
	bool reported = !a->broker->publisher_up && strcmp(a->broker->publisher_why, text) == 0;
	reported |= !a->broker->barriers.up && strcmp(a->broker->barriers.why, text) == 0;
	for (unsigned i = 0; i < a->broker->n_readers; i++)
		reported |= !a->broker->reader[i].up && strcmp(a->broker->reader[i].why, text) == 0;
	return reported;
}

void hw_app_log_broker(struct hw_app *a, const char *text, bool taken)
{
	if (taken)
		hw_log_limited(a->log, HW_LIMIT_RIVAL, HW_LOG_ERROR, "broker: %s", text);
	else if (!hw_app_is_reported(a, text))
		hw_log_limited(a->log, HW_LIMIT_BROKER, HW_LOG_WARNING, "broker: %s", text);
}

void hw_app_retry_links(struct hw_app *a)
{
	hw_publisher_retry(a->broker->publisher);
	if (a->broker->barriers.publisher)
		hw_publisher_retry(a->broker->barriers.publisher);
	for (unsigned i = 0; i < a->broker->n_readers; i++)
		if (a->broker->reader[i].reader)
			hw_reader_retry(a->broker->reader[i].reader);
}

static bool is_each_reader_up(const struct hw_app *a)
{
	for (unsigned i = 0; i < a->broker->n_readers; i++)
		if (!a->broker->reader[i].up)
			return false;
	return true;
}

bool hw_app_readers_are_up(const struct hw_app *a)
{
	return is_each_reader_up(a) && !hw_share_why(a);
}

bool hw_app_links_are_up(const struct hw_app *a)
{
	return is_each_reader_up(a) && a->broker->publisher_up && a->broker->barriers.up;
}

bool hw_app_barriers_are_up(const struct hw_app *a)
{
	return a->broker->barriers.up;
}

/* Returns a text about a connection that the broker refuses although the readers are up. The client id shows which
 * connection it is. */
static const char *lacks_text(struct hw_app *a, const char *client_id, const char *why)
{
	snprintf(a->broker->lacks, sizeof(a->broker->lacks), "'%s' is not connected: %s", client_id,
	         why[0] ? why : "connecting");
	return a->broker->lacks;
}

const char *hw_app_broker_text(struct hw_app *a)
{
	for (unsigned i = 0; i < a->broker->n_readers; i++)
		if (!a->broker->reader[i].up)
			return a->broker->reader[i].why[0] ? a->broker->reader[i].why : "connecting";
	if (a->broker->publisher_up && a->broker->barriers.up && hw_share_why(a))
		return hw_share_why(a);
	if (!a->broker->publisher_up)
		return lacks_text(a, a->broker->publisher_id, a->broker->publisher_why);
	if (!a->broker->barriers.up)
		return lacks_text(a, a->broker->barriers.client_id, a->broker->barriers.why);
	return "up";
}

struct hw_app_broker_counts hw_app_broker_counts(const struct hw_app *a)
{
	struct hw_app_broker_counts n = {.publisher_reconnects = a->broker->publisher_reconnects,
	                                 .barriers_reconnects = a->broker->barriers.reconnects};
	for (unsigned i = 0; i < a->broker->n_readers && a->broker->reader[i].reader; i++) {
		struct hw_reader_stats s = hw_reader_stats(a->broker->reader[i].reader);
		n.reader_reconnects += s.reconnects;
		n.reader_wakeups += s.wakeups;
		n.waiting += s.messages > a->broker->reader[i].taken ? s.messages - a->broker->reader[i].taken : 0;
	}
	return n;
}

void hw_app_broker_answers(struct hw_app *a)
{
	if (a->broker->barriers.publisher)
		hw_monitor_barrier_taken(a->monitor,
		                         (struct hw_mono){hw_publisher_answered_ns(a->broker->barriers.publisher)});
}

void hw_app_broker_flush(struct hw_app *a)
{
	hw_publisher_flush(a->broker->publisher);
	hw_publisher_flush(a->broker->barriers.publisher);
}

void hw_app_broker_tick(struct hw_app *a, struct hw_now now)
{
	hw_share_tick(a, now);
}

/* --- the end, before the daemon starts over ---------------------------------------------------------------------- */

void hw_app_readers_end(struct hw_app *a)
{
	for (unsigned i = 0; i < a->broker->n_readers && a->broker->reader[i].reader; i++)
		hw_reader_end(a->broker->reader[i].reader);
}

void hw_app_publishers_end(struct hw_app *a, int linger_ms)
{
	if (a->broker->publisher)
		hw_publisher_end(a->broker->publisher, linger_ms);
	if (a->broker->barriers.publisher)
		hw_publisher_end(a->broker->barriers.publisher, 0);
}

bool hw_app_broker_has_ended(const struct hw_app *a)
{
	for (unsigned i = 0; i < a->broker->n_readers; i++)
		if (a->broker->reader[i].reader && !hw_reader_ended(a->broker->reader[i].reader))
			return false;
	return (!a->broker->publisher || hw_publisher_ended(a->broker->publisher)) &&
	       (!a->broker->barriers.publisher || hw_publisher_ended(a->broker->barriers.publisher));
}

/* SPDX-License-Identifier: MIT */
/* See broker.h. */
#include "broker.h"

#include <stdio.h>

#include "cluster_broker.h"
#include "connections.h"
#include "deaf.h"
#include "pending.h"
#include "probes.h"
#include "turn.h"
#include "wake.h"

/* The outbox keeps a clearing until everything is cleared: that is what finds the rest after a crash. */
static void published(struct hw_app *a, struct hw_ref ref, bool cleared, int other)
{
	const struct hw_device *d = hw_app_device(a, ref);
	if (!d)
		return;
	struct hw_id id = hw_device_id(d);
	if (a->redis && !(cleared && hw_device_noted(d, other)))
		hw_redis_published(a->redis, id.text, id.len, d->seq, cleared);
	hw_app_reap_if_done(a, ref, d);
}

void hw_app_dropped(void *arg, struct hw_ref ref)
{
	const struct hw_device *d = hw_app_device(arg, ref);
	if (d)
		hw_app_reap_if_done(arg, ref, d);
}

void hw_app_published(void *arg, struct hw_ref ref, bool cleared)
{
	published(arg, ref, cleared, HW_PENDING_DISCOVERY);
}

void hw_app_discovered(void *arg, struct hw_ref ref, bool cleared)
{
	if (cleared)
		published(arg, ref, cleared, HW_PENDING_STATUS);
}

static void publisher_up(struct hw_app *a, struct hw_now now)
{
	a->publisher_up = true;
	a->publisher_reconnects += a->publisher_ever_up;
	a->publisher_ever_up = true;
	a->publisher_why[0] = '\0';
	hw_publisher_tell_broker(a->barriers.publisher, hw_publisher_lacks_qos(a->publisher));
	a->presence_due = true;
	hw_log(a->log, HW_LOG_NOTICE, "publisher: connected to %s:%d", a->publisher_conf.host, a->publisher_conf.port);
	hw_app_cluster_session(a, now, true);
	if (!a->loading) /* otherwise the end of that does it */
		hw_app_republish(a, now);
	hw_app_hurry(a);
}

static void publisher_down(struct hw_app *a, struct hw_now now, const char *text, bool taken)
{
	if (a->publisher_up)
		a->publisher_lost = now.mono;
	a->publisher_up = false;
	hw_app_tell_broker(a, text, taken && !a->publisher_conf.evictable);
	snprintf(a->publisher_why, sizeof(a->publisher_why), "%s", text);
	hw_app_cluster_session(a, now, false);
	hw_retained_down(&a->status);
	hw_retained_down(&a->discovery);
}

/* The presence of a monitor that is alone has token 0, which is neither sink's. */
static struct hw_retained_sink *sink_of(struct hw_app *a, uint64_t token)
{
	return (token & HW_RETAINED_TOKEN_KIND) == a->discovery.kind->token ? &a->discovery : &a->status;
}

/* One of several nodes says who it is. */
static bool is_nodes(uint64_t token)
{
	return (token & HW_RETAINED_TOKEN_KIND) == HW_CLUSTER_TOKEN;
}

static void acked(struct hw_app *a, struct hw_now now, const struct hw_publisher_event *ev)
{
	if (is_nodes(ev->token))
		hw_app_cluster_answered(a, now, ev);
	else if (ev->token != HW_PROBE_TOKEN)
		hw_retained_acked(sink_of(a, ev->token), ev->token);
}

static void refused(struct hw_app *a, struct hw_now now, const struct hw_publisher_event *ev)
{
	if (ev->token == HW_PROBE_TOKEN) {
		hw_app_probe_refused(a, ev->text);
		return;
	}
	if (is_nodes(ev->token)) {
		hw_app_cluster_answered(a, now, ev);
		return;
	}
	struct hw_retained_sink *sink = sink_of(a, ev->token);
	bool status = sink == &a->status;
	if (ev->text[0])
		hw_log_limited(a->log, status ? HW_LIMIT_STATUS_REFUSED : HW_LIMIT_DISCOVERY_REFUSED, HW_LOG_ERROR,
		               "the broker refused a retained %s: %s; it is tried again each minute",
		               status ? "status" : "message for Home Assistant", ev->text);
	hw_retained_refused(sink, ev->token, now.mono.ns / HW_NS_PER_MS);
}

void hw_app_on_publisher(int fd, short what, void *arg)
{
	struct hw_app *a = arg;
	(void)fd;
	(void)what;
	struct hw_now now = hw_app_woke(a);
	struct hw_publisher_event ev;
	while (hw_publisher_take(a->publisher, &ev)) {
		switch (ev.kind) {
		case HW_PUBLISHER_UP:
			publisher_up(a, now);
			break;
		case HW_PUBLISHER_DOWN:
			publisher_down(a, now, ev.text, ev.token != 0);
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
		case HW_PUBLISHER_CANARY: /* of the other connection alone */
			break;
		}
	}
	hw_app_turn(a);
}

/* --- the barriers' connection */

static void barriers_up(struct hw_app *a, struct hw_now now)
{
	struct hw_app_barriers *b = &a->barriers;
	b->up = true;
	b->reconnects += b->ever_up;
	b->ever_up = true;
	b->why[0] = '\0';
	hw_log(a->log, HW_LOG_INFO, "barriers: connected to %s:%d", b->conf.host, b->conf.port);
	hw_monitor_publisher(a->monitor, now, true);
	hw_share_publisher(a, now);
	hw_app_cluster_barriers_up(a, now);
	hw_app_hurry(a);
}

static void barriers_down(struct hw_app *a, struct hw_now now, const char *text, bool taken)
{
	struct hw_app_barriers *b = &a->barriers;
	b->up = false;
	b->taken = HW_BARRIERS_UNKNOWN;
	hw_app_tell_broker(a, text, taken);
	snprintf(b->why, sizeof(b->why), "%s", text);
	hw_monitor_publisher(a->monitor, now, false);
	hw_share_publisher(a, now);
}

void hw_app_on_barriers(int fd, short what, void *arg)
{
	struct hw_app *a = arg;
	(void)fd;
	(void)what;
	struct hw_now now = hw_app_woke(a);
	struct hw_publisher_event ev;
	while (hw_publisher_take(a->barriers.publisher, &ev)) {
		switch (ev.kind) {
		case HW_PUBLISHER_UP:
			barriers_up(a, now);
			break;
		case HW_PUBLISHER_DOWN:
			barriers_down(a, now, ev.text, ev.token != 0);
			break;
		case HW_PUBLISHER_LIMIT: /* the publisher's connection says the same */
		case HW_PUBLISHER_ACKED:
		case HW_PUBLISHER_REFUSED:
			break;
		case HW_PUBLISHER_BARRIERS:
			a->barriers.taken = ev.token ? HW_BARRIERS_TAKEN : HW_BARRIERS_REFUSED;
			hw_monitor_barriers_refused(a->monitor, !ev.token);
			break;
		case HW_PUBLISHER_CANARY:
			hw_app_canary_answered(a, &ev);
		}
	}
	hw_app_turn(a);
}

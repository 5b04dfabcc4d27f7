/* SPDX-License-Identifier: MIT */
#include "retained.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/cluster/cluster.h"
#include "daemon/loop/clock.h"
#include "daemon/store/pending.h"
#include "discovery.h"
#include "published.h"
#include "retained_priv.h"
#include "status.h"

#define DISCOVERIES_A_SECOND 1000 /* Home Assistant makes an entity for each */
#define REFUSED_RETRY_MS     60000

/* --- what the sinks report -------------------------------------------------------------------------------------- */

void hw_app_reap_if_done(struct hw_app *a, struct hw_ref ref, const struct hw_device *d)
{
	if (!hw_device_noted(d, HW_PENDING_STORE | HW_PENDING_STATUS | HW_PENDING_DISCOVERY))
		hw_monitor_reap(a->monitor, ref);
}

/* Called when the broker has a device's message. The outbox keeps the id of a forgotten device until all messages of
 * the device are cleared. So after a crash, the next run knows which devices it must clear. */
static void published(struct hw_app *a, struct hw_ref ref, bool cleared, int other)
{
	const struct hw_device *d = hw_app_device(a, ref);
	if (!d)
		return;
	struct hw_id id = hw_device_id(d);
	if (a->redis && cleared && !hw_device_noted(d, other))
		hw_redis_cleared(a->redis, id.text, id.len);
	hw_app_reap_if_done(a, ref, d);
}

static void on_settled(void *arg, const struct hw_device *d)
{
	hw_app_published_settled(arg, d);
}

static void on_refused(void *arg, const struct hw_device *d)
{
	hw_app_published_refused(arg, d);
}

static void on_dropped(void *arg, struct hw_ref ref)
{
	const struct hw_device *d = hw_app_device(arg, ref);
	if (d)
		hw_app_reap_if_done(arg, ref, d);
}

static void on_status(void *arg, struct hw_ref ref, bool cleared)
{
	published(arg, ref, cleared, HW_PENDING_DISCOVERY);
}

static void on_discovery(void *arg, struct hw_ref ref, bool cleared)
{
	if (cleared)
		published(arg, ref, cleared, HW_PENDING_STATUS);
}

static bool may_publish(void *arg, const struct hw_device *d)
{
	return hw_app_may_publish(arg, d);
}

/* --- both sinks ------------------------------------------------------------------------------------------------- */

int hw_app_retained_new(struct hw_app *a)
{
	struct hw_app_retained *r = a->retained = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	hw_retained_init(&r->status, &hw_status_kind);
	hw_retained_init(&r->discovery, &hw_discovery_kind);
	r->status.m = r->discovery.m = a->monitor;
	r->status.arg = r->discovery.arg = a;
	r->status.node_id = a->start->node_id;
	r->status.no_store = a->start->store == HW_STORE_MEMORY;
	r->status.sweep.rate = a->start->mqtt.republish_rate;
	r->discovery.sweep.rate = r->discovery.line.rate = DISCOVERIES_A_SECOND;
	r->status.on_published = on_status;
	r->status.on_settled = on_settled;
	r->status.on_refused = on_refused;
	r->discovery.on_published = on_discovery;
	r->status.on_dropped = r->discovery.on_dropped = on_dropped;
	r->status.may_go = r->discovery.may_go = may_publish;
	snprintf(r->presence_topic, sizeof(r->presence_topic), "heartwheel/%s/status", a->start->node_id);
	return hw_app_published_new(a);
}

void hw_app_retained_free(struct hw_app *a)
{
	if (!a->retained)
		return;
	hw_retained_fini(&a->retained->status);
	hw_retained_fini(&a->retained->discovery);
	hw_app_published_free(a);
	hw_old_topics_fini(&a->retained->old);
	free(a->retained);
}

struct hw_retained_sink *hw_app_status_sink(const struct hw_app *a)
{
	return &a->retained->status;
}

struct hw_retained_sink *hw_app_discovery_sink(const struct hw_app *a)
{
	return &a->retained->discovery;
}

void hw_app_retained_connect(struct hw_app *a, struct hw_publisher *p)
{
	a->retained->status.publisher = a->retained->discovery.publisher = p;
}

void hw_app_retained_down(struct hw_app *a)
{
	hw_retained_down(&a->retained->status);
	hw_retained_down(&a->retained->discovery);
	hw_old_topics_down(&a->retained->old);
}

void hw_app_republish(struct hw_app *a, struct hw_now now)
{
	if (a->life.stopping) /* while stopping, only pending messages are sent; the next run publishes all other
	                       * statuses again */
		return;
	hw_retained_republish(&a->retained->status, now.mono.ns / HW_NS_PER_MS);
	hw_retained_republish(&a->retained->discovery, now.mono.ns / HW_NS_PER_MS);
}

void hw_app_set_status_pending(struct hw_app *a, struct hw_now now, struct hw_ref ref)
{
	const struct hw_device *d = hw_app_device(a, ref);
	if (!d)
		return;
	hw_retained_add(&a->retained->status, ref.index);
	if (!hw_app_waits_for_store(a, d))
		hw_retained_release(&a->retained->status, ref, now.mono.ns / HW_NS_PER_MS);
}

void hw_app_discover(struct hw_app *a, struct hw_now now, struct hw_ref ref, struct hw_device *d)
{
	bool gone = hw_device_state(d) == HW_STATE_FORGOTTEN;
	if (!gone && hw_device_noted(d, HW_DISCOVERED))
		return;
	hw_device_note(d, HW_DISCOVERED, !gone);
	hw_retained_add(&a->retained->discovery, ref.index);
	hw_retained_release(&a->retained->discovery, ref, now.mono.ns / HW_NS_PER_MS);
}

bool hw_app_retained_pump(struct hw_app *a, struct hw_now now, unsigned *budget)
{
	bool more = hw_retained_pump(&a->retained->status, now, budget);
	hw_old_topics_pump(a, budget);
	return hw_retained_pump(&a->retained->discovery, now, budget) || more;
}

int64_t hw_app_retained_wait_ms(const struct hw_app *a)
{
	int64_t status_ms = hw_retained_wait_ms(&a->retained->status);
	int64_t discovery_ms = hw_retained_wait_ms(&a->retained->discovery);
	return status_ms < 0 || (discovery_ms >= 0 && discovery_ms < status_ms) ? discovery_ms : status_ms;
}

bool hw_app_retained_idle(const struct hw_app *a)
{
	return hw_retained_idle(&a->retained->status) && hw_retained_idle(&a->retained->discovery) &&
	       !a->retained->presence_due;
}

void hw_app_retained_end(struct hw_app *a)
{
	hw_retained_end_sweeps(&a->retained->status);
	hw_retained_end_sweeps(&a->retained->discovery);
	a->retained->discovery.line.rate = 0; /* messages in line are published without a pace */
}

static void retry_refused(struct hw_retained_sink *s, int64_t now_ms)
{
	if (s->refused_since_ms && now_ms - s->refused_since_ms > REFUSED_RETRY_MS)
		hw_retained_republish(s, now_ms);
}

void hw_app_retained_tick(struct hw_app *a, struct hw_now now)
{
	retry_refused(&a->retained->status, now.mono.ns / HW_NS_PER_MS);
	retry_refused(&a->retained->discovery, now.mono.ns / HW_NS_PER_MS);
}

/* --- the publisher's answers ------------------------------------------------------------------------------------ */

/* Returns the sink of a publish id. The presence of a single monitor has publish id 0, which no message of a sink has.
 */
static struct hw_retained_sink *sink_of(struct hw_app *a, uint64_t publish_id)
{
	return (publish_id & HW_RETAINED_PUBLISH_ID_KIND) == a->retained->discovery.kind->publish_id
	               ? &a->retained->discovery
	               : &a->retained->status;
}

void hw_app_retained_acked(struct hw_app *a, uint64_t publish_id)
{
	char *old = hw_old_topics_answered(&a->retained->old, publish_id);
	if (!old)
		hw_retained_acked(sink_of(a, publish_id), publish_id);
	free(old);
}

void hw_app_retained_refused(struct hw_app *a, struct hw_now now, const struct hw_publisher_event *ev)
{
	struct hw_retained_sink *sink = sink_of(a, ev->publish_id);
	char *old = hw_old_topics_answered(&a->retained->old, ev->publish_id);
	if (old) {
		hw_log_limited(a->log, HW_LIMIT_STATUS_REFUSED, HW_LOG_ERROR,
		               "the broker refused to remove an old retained status on %.120s: %s; remove it, because "
		               "without Redis the next start may take the device's state from it",
		               old, ev->text);
		free(old);
		return;
	}
	if (ev->text[0] && sink == &a->retained->status) {
		const struct hw_group *g = ev->publish_id ? hw_retained_group(sink, ev->publish_id) : NULL;
		hw_log_limited(a->log, HW_LIMIT_STATUS_REFUSED, HW_LOG_ERROR,
		               "the broker refused a retained status on %.120s: %s; heartwheeld publishes it again "
		               "each minute",
		               g && g->status.filter ? g->status.filter : a->retained->presence_topic, ev->text);
	} else if (ev->text[0]) {
		hw_log_limited(a->log, HW_LIMIT_DISCOVERY_REFUSED, HW_LOG_ERROR,
		               "the broker refused a retained message for Home Assistant on "
		               "%.120s/binary_sensor/+/config: %s; heartwheeld publishes it again each minute",
		               a->start->mqtt.homeassistant_prefix, ev->text);
	}
	hw_retained_refused(sink, ev->publish_id, now.mono.ns / HW_NS_PER_MS);
}

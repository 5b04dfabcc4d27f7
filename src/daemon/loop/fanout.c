/* SPDX-License-Identifier: MIT */
/* The fan-out: passes the core's output to the sinks. A transition becomes pending at the store and at the broker. */
#include "fanout.h"

#include <string.h>

#include "daemon/broker/broker.h"
#include "daemon/inventory/inventory.h"
#include "daemon/retained/old_topics.h"
#include "daemon/retained/published.h"
#include "daemon/retained/retained.h"
#include "daemon/store/pending.h"
#include "daemon/visibility/probes.h"
#include "daemon/visibility/visibility.h"
#include "turn.h"

/* --- the core's output ------------------------------------------------------- */

/* Returns the event of a transition. Writes the ids of the device's parents to `parents`, which the event borrows. */
static struct hw_event event_of(const struct hw_app *a, struct hw_stream_id at, const struct hw_device *d,
                                const struct hw_transition *t, char parents[HW_PARENTS_TEXT])
{
	size_t parents_len = hw_monitor_known_parents(a->monitor, d, parents);
	bool offline = parents_len > 0 && t->state == HW_STATE_OFFLINE;
	struct hw_id id = hw_device_id(d);
	const char *group = hw_monitor_group_of(a->monitor, d)->name;
	return (struct hw_event){.at = at,
	                         .id = id.text,
	                         .id_len = id.len,
	                         .group = group,
	                         .group_len = strlen(group),
	                         .node = a->start->node_id,
	                         .node_len = strlen(a->start->node_id),
	                         .state = t->state,
	                         .reason = t->reason,
	                         .time_ms = t->time_ms,
	                         .last_seen_ms = t->last_seen_ms,
	                         .parents = parents,
	                         .parents_len = parents_len,
	                         .timeout_ms = offline ? hw_monitor_timeout_ms(a->monitor, d) : -1,
	                         .wait_ms = offline ? t->wait_ms : -1,
	                         .seq = t->seq};
}

void hw_app_publish_to_clients(struct hw_app *a, struct hw_stream_id at, const struct hw_transition *t)
{
	const struct hw_device *d = hw_app_device(a, t->device);
	if (!d)
		return;
	char parents[HW_PARENTS_TEXT];
	struct hw_event e = event_of(a, at, d, t, parents);
	hw_control_event(a->control, &e);
}

/* Passes a transition that the store has not confirmed yet to the control API, which does not wait for the store. */
static void await_store(struct hw_app *a, const struct hw_device *d, const struct hw_transition *t)
{
	char parents[HW_PARENTS_TEXT];
	struct hw_event e = event_of(a, (struct hw_stream_id){0}, d, t, parents);
	if (hw_device_noted(d, HW_PENDING_STORE))
		hw_control_pending(a->control, &e);
}

static void on_transition(struct hw_app *a, struct hw_now now, const struct hw_transition *t)
{
	struct hw_device *d = hw_app_device(a, t->device);
	struct hw_id id = hw_device_id(d);
	hw_log(a->log, HW_LOG_DEBUG, "%.*s: %s (%s), seq %llu", (int)id.len, id.text, hw_state_name(t->state),
	       hw_reason_name(t->reason), (unsigned long long)t->seq);
	if (t->delay_ns >= 0) {
		hw_app_turn_detected(a, t->delay_ns);
		hw_control_detected(a->control, t->delay_ns);
	}
	hw_app_inventory_state(a, id, t->state);
	hw_retained_add(hw_app_status_sink(a), t->device.index);
	hw_app_published_pending(a, d);
	hw_app_discover(a, now, t->device, d);
	if (a->redis) {
		hw_app_set_store_pending(a, now, d, t);
		await_store(a, d, t);
	} else {
		hw_app_publish_to_clients(a, (struct hw_stream_id){0}, t);
	}
	if (!hw_app_waits_for_store(a, d))
		hw_retained_release(hw_app_status_sink(a), t->device, now.mono.ns / HW_NS_PER_MS);
	hw_app_reap_if_done(a, t->device, d);
}

static void set_pending_again(struct hw_app *a, struct hw_ref ref)
{
	const struct hw_device *d = hw_app_device(a, ref);
	if (d)
		hw_app_store_newer(a, ref, d->seq);
}

static void on_parent_heard(struct hw_app *a, const struct hw_out *out)
{
	const struct hw_device *d = hw_app_device(a, out->parent_heard.device);
	const struct hw_device *parent = hw_app_device(a, out->parent_heard.parent);
	if (!d || !parent)
		return;
	struct hw_id id = hw_device_id(d), parent_id = hw_device_id(parent);
	if (a->redis)
		hw_redis_parent_heard(a->redis, id, out->parent_heard.seq, parent_id, out->parent_heard.settle_ms);
	hw_control_parent_heard(a->control, id, out->parent_heard.seq, parent_id, out->parent_heard.settle_ms);
}

static void write_to_redis(struct hw_app *a, struct hw_now now, const struct hw_out *out)
{
	if (!a->redis)
		return;
	if (out->kind == HW_OUT_REFRESH)
		hw_redis_refresh(a->redis, out->device);
	else if (out->kind == HW_OUT_REFRESH_LIGHT)
		hw_redis_refresh_light(a->redis, now, out->device);
	else
		hw_redis_rewrite(a->redis, out->device);
}

void hw_app_dispatch(struct hw_app *a, struct hw_now now, const struct hw_out *out)
{
	switch (out->kind) {
	case HW_OUT_TRANSITION:
		on_transition(a, now, &out->transition);
		break;
	case HW_OUT_REFRESH:
	case HW_OUT_REFRESH_LIGHT:
	case HW_OUT_PARENTS:
		write_to_redis(a, now, out);
		break;
	case HW_OUT_STATUS:
		hw_app_set_status_pending(a, now, out->device);
		break;
	case HW_OUT_MOVED:
		hw_old_topics_moved(a, now, out->device, out->left);
		break;
	case HW_OUT_BARRIER:
		hw_app_barrier(a, now, out->barrier);
		break;
	case HW_OUT_BLIND:
		hw_app_on_blind(a, now, out);
		break;
	case HW_OUT_RECONNECT:
		hw_app_reopen_reader(a, out->source);
		break;
	case HW_OUT_REOPEN:
		hw_app_reopen_barriers(a);
		break;
	case HW_OUT_KEY_CHECK:
		if (a->keyspace)
			hw_keyspace_check(a->keyspace, out->device);
		break;
	case HW_OUT_CANARY:
		hw_app_canary(a, out);
		break;
	case HW_OUT_CANARY_MISSING:
		hw_app_canary_missing(a, out);
		break;
	case HW_OUT_DEAF:
		hw_app_deaf(a, now, out);
		break;
	case HW_OUT_UPSTREAM:
		hw_app_upstream(a, now, out);
		break;
	case HW_OUT_WHILE_UNKNOWN:
		hw_app_while_unknown(a, out);
		break;
	case HW_OUT_UNWRITTEN:
		set_pending_again(a, out->device);
		break;
	case HW_OUT_PARENT_HEARD:
		on_parent_heard(a, out);
		break;
	case HW_OUT_PROBE:
		hw_app_probe(a, now, out);
	}
}

/* SPDX-License-Identifier: MIT */
/*
 * The fan-out: what the core says goes to the sinks. A transition owes the store and the broker.
 */
#include "fanout.h"

#include <string.h>

#include "cluster_broker.h"
#include "cluster_standby.h"
#include "deaf.h"
#include "pending.h"
#include "probes.h"
#include "sightings.h"

#define BARRIER_SOON_NS (5 * HW_NS_PER_MS) /* if it takes longer, messages come so thick that it hardly matters */

/* --- out of the core --------------------------------------------------------- */

static struct hw_event event_of(const struct hw_app *a, struct hw_event_id at, const struct hw_device *d,
                                const struct hw_transition *t)
{
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
	                         .seq = t->seq};
}

void hw_app_tell_clients(struct hw_app *a, struct hw_event_id at, const struct hw_transition *t)
{
	const struct hw_device *d = hw_app_device(a, t->device);
	if (!d)
		return;
	struct hw_event e = event_of(a, at, d, t);
	hw_control_event(a->control, &e);
}

/* It is known here at once, whatever the store does. */
static void await_store(struct hw_app *a, const struct hw_device *d, const struct hw_transition *t)
{
	struct hw_event e = event_of(a, (struct hw_event_id){0}, d, t);
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
		hw_histogram_add(&a->detection, (double)t->delay_ns / 1e9);
		hw_control_detected(a->control, t->delay_ns);
	}
	hw_retained_add(&a->status, t->device.index);
	hw_app_discover(a, now, t->device, d);
	hw_notifier_transition(a->notifier, now, t);
	if (a->redis) {
		hw_app_set_store_pending(a, now, d, t);
		await_store(a, d, t);
	} else {
		hw_app_tell_clients(a, (struct hw_event_id){0}, t);
	}
	if (!hw_device_noted(d, HW_PENDING_STORE) || a->redis_late.ns)
		hw_retained_release(&a->status, t->device, now.mono.ns / HW_NS_PER_MS);
	hw_app_reap_if_done(a, t->device, d);
}

/* One line that says which right is missing, as far as the broker lets that be known. */
static void tell_denied(struct hw_app *a, struct hw_now now)
{
	static const char *const what[] = {[HW_BARRIERS_UNKNOWN] = "does not come back",
	                                   [HW_BARRIERS_REFUSED] = "is refused by the broker",
	                                   [HW_BARRIERS_TAKEN] = "is taken by the broker and does not come back"};
	static const char *const right[] = {[HW_BARRIERS_UNKNOWN] = "write and to read",
	                                    [HW_BARRIERS_REFUSED] = "write (and to read)",
	                                    [HW_BARRIERS_TAKEN] = "read"};
	if (!a->barriers.up) {
		hw_log(a->log, HW_LOG_ERROR,
		       "blind (barrier): nothing can be published as '%s', so nothing is proven: %s",
		       a->barriers.client_id, a->barriers.why[0] ? a->barriers.why : "it is still connecting");
		return;
	}
	if (hw_monitor_barriers_silent(a->monitor, now)) {
		hw_log(a->log, HW_LOG_ERROR,
		       "blind (barrier): the broker answers nothing to '%s', so nothing is proven; that connection is "
		       "opened again",
		       a->barriers.client_id);
		return;
	}
	hw_log(a->log, HW_LOG_ERROR,
	       "blind (barrier): what is published on %s %s: allow this monitor's user to %s that topic",
	       a->barrier_topic, what[a->barriers.taken], right[a->barriers.taken]);
}

/* The readers do not let anything gather while it is on its way. */
static void on_barrier(struct hw_app *a, struct hw_now now, uint64_t number)
{
	a->barrier_out = number;
	for (unsigned i = 0; i < a->n_readers; i++)
		if (a->reader[i].reader)
			hw_reader_expect(a->reader[i].reader, now.mono.ns + BARRIER_SOON_NS);
	hw_publisher_barrier(a->barriers.publisher, a->run_mark, number);
}

/* While barriers are denied each attempt fares the same, and the one line has been said. */
static void on_reconnect(struct hw_app *a, unsigned reader)
{
	const struct hw_blind *b = hw_monitor_blind(a->monitor);
	bool denied = hw_blind_now(b) && b->first == HW_CAUSE_BARRIER;
	a->reader[reader].renewed = denied;
	if (!denied)
		hw_log_limited(a->log, HW_LIMIT_READER, HW_LOG_WARNING,
		               "reader %u: barriers do not come back; opening its connection anew", reader);
	hw_reader_reconnect(a->reader[reader].reader);
}

static void on_reopen(struct hw_app *a)
{
	if (!hw_blind_now(hw_monitor_blind(a->monitor)))
		hw_log_limited(a->log, HW_LIMIT_READER, HW_LOG_WARNING,
		               "barriers: the broker answers nothing to '%s'; opening its connection again",
		               a->barriers.client_id);
	hw_publisher_reconnect(a->barriers.publisher);
}

/* A value of `while` may be among the messages that were lost: what is retained there is asked for once more. Several
 * nodes ask by themselves. */
static void ask_upstreams(struct hw_app *a)
{
	const struct hw_groups *g = hw_monitor_groups(a->monitor);
	bool any = false;
	for (size_t k = 0; k < g->n_order; k++)
		any |= g->all[g->order[k]]->n_whiles > 0;
	if (any && !a->cluster && a->reader[0].up)
		hw_reader_replay(a->reader[0].reader);
}

/* Presence follows at once: a period that was over when it was found out shows in it too. */
static void on_blind(struct hw_app *a, struct hw_now now, const struct hw_out *out)
{
	int64_t length_ns = hw_app_standby_since(a, now, out->blind.length_ns);
	const char *cause = hw_cause_name(out->blind.cause);
	a->fleet_blind = out->blind.begun;
	a->fleet_cause = out->blind.cause;
	hw_app_sightings_turn(a, now);
	struct hw_out told = *out; /* without the time in which it stood by */
	told.blind.length_ns = length_ns;
	hw_notifier_blind(a->notifier, now, &told);
	if (out->blind.begun && out->blind.cause == HW_CAUSE_BARRIER)
		tell_denied(a, now);
	else if (out->blind.begun)
		hw_log(a->log, HW_LOG_WARNING, "blind (%s): nobody is judged until this is over", cause);
	else
		hw_log(a->log, HW_LOG_NOTICE, "seeing again after %.3f s blind (%s%s)", (double)length_ns / 1e9, cause,
		       out->blind.lossy ? ", silence counts anew" : "");
	/* A will that was lost meanwhile may stand where a retained status was. */
	if (!out->blind.begun && out->blind.lossy && !a->loading)
		hw_app_republish(a, now);
	if (!out->blind.begun && out->blind.lossy)
		ask_upstreams(a);
	hw_app_tell_blind(a, now);
	hw_control_sight(a->control);
	if (!out->blind.begun)
		hw_app_cluster_sees(a, now, out->blind.lossy);
}

static void owe_anew(struct hw_app *a, struct hw_ref ref)
{
	const struct hw_device *d = hw_app_device(a, ref);
	if (d)
		hw_app_store_newer(a, ref, d->seq);
}

void hw_app_dispatch(struct hw_app *a, struct hw_now now, const struct hw_out *out)
{
	switch (out->kind) {
	case HW_OUT_TRANSITION:
		on_transition(a, now, &out->transition);
		break;
	case HW_OUT_REFRESH:
		if (a->redis)
			hw_redis_refresh(a->redis, out->device);
		break;
	case HW_OUT_LOOK:
		if (a->redis)
			hw_redis_look(a->redis, now, out->device);
		break;
	case HW_OUT_STATUS:
		hw_app_set_status_pending(a, now, out->device);
		break;
	case HW_OUT_BARRIER:
		on_barrier(a, now, out->barrier);
		break;
	case HW_OUT_BLIND:
		on_blind(a, now, out);
		break;
	case HW_OUT_RECONNECT:
		on_reconnect(a, out->source);
		break;
	case HW_OUT_REOPEN:
		on_reopen(a);
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
	case HW_OUT_UNWRITTEN:
		owe_anew(a, out->device);
		break;
	case HW_OUT_PROBE:
		hw_app_probe(a, now, out);
	}
}

/* SPDX-License-Identifier: MIT */
/*
 * The fan-out: what the core says goes to the sinks, and what the sinks confirm comes back.
 *
 * A transition owes the store and the broker. The status is published once the store holds it, so that the outbox
 * covers it; but when Redis has not answered for REDIS_PATIENCE, statuses stop waiting for it. A forgotten device's
 * record lives until both have confirmed.
 */
#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "app.h"

#define REDIS_PATIENCE_NS HW_NS_PER_S
#define RELEASE_LOOKS     8192 /* records a turn of the sweep that lets statuses go */

static struct hw_device *device_of(struct hw_app *a, struct hw_ref ref)
{
	return hw_registry_get(hw_monitor_registry(a->monitor), ref);
}

/* --- out of the core --------------------------------------------------------- */

static void owe_store(struct hw_app *a, struct hw_device *d)
{
	if (d->flags & HW_FLAG_OWED_STORE)
		return;
	d->flags |= HW_FLAG_OWED_STORE;
	a->owed_store++;
}

static void reap_if_done(struct hw_app *a, struct hw_ref ref, const struct hw_device *d)
{
	if (!(d->flags & (HW_FLAG_OWED_STORE | HW_FLAG_OWED_STATUS | HW_FLAG_OWED_DISCOVERY)))
		hw_monitor_reap(a->monitor, ref);
}

/* For the event stream's clients. The record of a forgotten device is there until the store has confirmed. */
static void tell_clients(struct hw_app *a, struct hw_event_id at, const struct hw_transition *t)
{
	const struct hw_device *d = device_of(a, t->device);
	if (!d)
		return;
	struct hw_id id = hw_device_id(d);
	const char *group = hw_monitor_group_of(a->monitor, d)->name;
	hw_control_event(a->control, &(struct hw_event){.at = at,
	                                                .id = id.text,
	                                                .id_len = id.len,
	                                                .group = group,
	                                                .group_len = strlen(group),
	                                                .state = t->state,
	                                                .reason = t->reason,
	                                                .time_ms = t->time_ms,
	                                                .last_seen_ms = t->last_seen_ms,
	                                                .seq = t->seq});
}

/* Home Assistant has to hear of a device once, and once more when it is forgotten. */
static void discover(struct hw_app *a, struct hw_now now, struct hw_ref ref, struct hw_device *d)
{
	bool gone = hw_device_state(d) == HW_STATE_FORGOTTEN;
	if (!gone && d->flags & HW_FLAG_DISCOVERED)
		return;
	d->flags = gone ? d->flags & (uint16_t)~HW_FLAG_DISCOVERED : d->flags | HW_FLAG_DISCOVERED;
	hw_owed_add(&a->discovery, ref.index);
	hw_owed_release(&a->discovery, ref, now.mono.ns / HW_NS_PER_MS);
}

static void on_transition(struct hw_app *a, struct hw_now now, const struct hw_transition *t)
{
	struct hw_device *d = device_of(a, t->device);
	struct hw_id id = hw_device_id(d);
	hw_log(a->log, HW_LOG_DEBUG, "%.*s: %s (%s), seq %llu", (int)id.len, id.text, hw_state_name(t->state),
	       hw_reason_name(t->reason), (unsigned long long)t->seq);
	if (t->delay_ns >= 0) {
		hw_histogram_add(&a->detection, (double)t->delay_ns / 1e9);
		hw_control_detected(a->control, t->delay_ns);
	}
	hw_owed_add(&a->status, t->device.index);
	discover(a, now, t->device, d);
	hw_notifier_transition(a->notifier, now, t);
	if (a->redis) {
		owe_store(a, d);
		hw_redis_transition(a->redis, now, t);
	} else {
		tell_clients(a, (struct hw_event_id){0}, t);
	}
	if (!a->redis || a->redis_late.ns)
		hw_owed_release(&a->status, t->device, now.mono.ns / HW_NS_PER_MS);
	reap_if_done(a, t->device, d);
}

static void on_status(struct hw_app *a, struct hw_now now, struct hw_ref ref)
{
	const struct hw_device *d = device_of(a, ref);
	if (!d)
		return;
	hw_owed_add(&a->status, ref.index);
	if (!(d->flags & HW_FLAG_OWED_STORE) || a->redis_late.ns)
		hw_owed_release(&a->status, ref, now.mono.ns / HW_NS_PER_MS);
}

/* One line that says which right is missing, as far as the broker lets that be known. */
static void tell_denied(struct hw_app *a)
{
	static const char *const what[] = {[HW_BARRIERS_UNKNOWN] = "does not come back",
	                                   [HW_BARRIERS_REFUSED] = "is refused by the broker",
	                                   [HW_BARRIERS_TAKEN] = "is taken by the broker and does not come back"};
	static const char *const right[] = {[HW_BARRIERS_UNKNOWN] = "write and to read",
	                                    [HW_BARRIERS_REFUSED] = "write (and to read)",
	                                    [HW_BARRIERS_TAKEN] = "read"};
	hw_log(a->log, HW_LOG_ERROR,
	       "blind (barrier): what is published on %s %s: allow this monitor's user to %s that topic",
	       a->barrier_topic, what[a->barriers], right[a->barriers]);
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

/* Presence follows at once: a period that was over when it was found out shows in it too. */
static void on_blind(struct hw_app *a, struct hw_now now, const struct hw_out *out)
{
	const char *cause = hw_cause_name(out->blind.cause);
	a->blind_told = out->blind.begun;
	a->blind_cause = out->blind.cause;
	a->presence_due = true;
	hw_notifier_blind(a->notifier, now, out);
	if (out->blind.begun && out->blind.cause == HW_CAUSE_BARRIER)
		tell_denied(a);
	else if (out->blind.begun)
		hw_log(a->log, HW_LOG_WARNING, "blind (%s): nobody is judged until this is over", cause);
	else
		hw_log(a->log, HW_LOG_NOTICE, "seeing again after %.3f s blind (%s%s)",
		       (double)out->blind.length_ns / 1e9, cause, out->blind.lossy ? ", silence counts anew" : "");
	/* A will that was lost meanwhile may stand where a retained status was. */
	if (!out->blind.begun && out->blind.lossy && !a->loading)
		hw_app_republish(a, now);
	hw_app_presence(a, now);
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
	case HW_OUT_STATUS:
		on_status(a, now, out->device);
		break;
	case HW_OUT_BARRIER:
		hw_publisher_barrier(a->publisher, a->run_mark, out->barrier);
		break;
	case HW_OUT_BLIND:
		on_blind(a, now, out);
		break;
	case HW_OUT_RECONNECT:
		on_reconnect(a, out->reader);
		break;
	case HW_OUT_KEY_CHECK:
		if (a->keyspace)
			hw_keyspace_check(a->keyspace, out->device);
	}
}

/* --- back from Redis --------------------------------------------------------- */

static void on_confirmed(void *arg, struct hw_ref ref, uint64_t seq)
{
	struct hw_app *a = arg;
	struct hw_device *d = device_of(a, ref);
	if (!d || d->seq != seq || !(d->flags & HW_FLAG_OWED_STORE))
		return;
	d->flags &= (uint16_t)~HW_FLAG_OWED_STORE;
	a->owed_store--;
	hw_owed_release(&a->status, ref, hw_app_now().mono.ns / HW_NS_PER_MS);
	reap_if_done(a, ref, d);
	/* Publish what was released in this turn of the loop, once for all that one reply confirms. */
	event_active(a->due, EV_TIMEOUT, 0);
}

static void on_event(void *arg, struct hw_event_id at, const struct hw_transition *t)
{
	tell_clients(arg, at, t);
}

static void on_events(void *arg, const struct hw_event_page *page)
{
	hw_control_page(((struct hw_app *)arg)->control, page);
}

static void on_newer(void *arg, struct hw_ref ref, uint64_t stored_seq)
{
	struct hw_app *a = arg;
	struct hw_device *d = device_of(a, ref);
	if (!d || !hw_monitor_adopt_seq(a->monitor, ref, stored_seq))
		return;
	struct hw_now now = hw_app_now();
	struct hw_transition anew = {.device = ref,
	                             .state = hw_device_state(d),
	                             .reason = hw_device_reason(d),
	                             .time_ms = d->since_ms,
	                             .last_seen_ms = hw_device_last_seen_ms(d, now),
	                             .seq = d->seq,
	                             .delay_ns = -1};
	owe_store(a, d);
	hw_owed_add(&a->status, ref.index);
	hw_redis_transition(a->redis, now, &anew);
	event_active(a->due, EV_TIMEOUT, 0);
}

static void on_link(void *arg, bool up, const char *why)
{
	struct hw_app *a = arg;
	if (up) {
		hw_log(a->log, HW_LOG_NOTICE, "Redis: %s", why);
		a->redis_why[0] = '\0';
	} else {
		hw_log_limited(a->log, HW_LIMIT_REDIS, HW_LOG_WARNING, "Redis: %s", why);
		snprintf(a->redis_why, sizeof a->redis_why, "%s", why);
	}
	a->redis_up = up;
	a->redis_ever_up |= up;
	hw_control_store(a->control, up);
	hw_app_turn(a);
}

static void on_device(void *arg, struct hw_stored *device)
{
	struct hw_app *a = arg;
	struct hw_now now = hw_app_now();
	int rc = hw_monitor_load(a->monitor, now, device);
	if (rc)
		hw_log_limited(a->log, HW_LIMIT_REDIS_TROUBLE, HW_LOG_WARNING,
		               "a device in Redis could not be loaded: %s",
		               rc == -ENOSPC ? "the table is full; raise [monitor] max_devices" : strerror(-rc));
	hw_app_drain(a, now);
}

/*
 * What an earlier run still owes. A device that is there owes its status, which says at least what the outbox does. One
 * that is not was forgotten: its clearing is owed.
 */
static void on_outbox(void *arg, const char *id, size_t id_len, const char *payload, size_t len)
{
	struct hw_app *a = arg;
	struct hw_now now = hw_app_now();
	struct hw_ref ref;
	(void)payload;
	uint32_t i = hw_registry_find(hw_monitor_registry(a->monitor), id, id_len);
	if (i != HW_NIL) {
		on_status(a, now, hw_registry_ref(hw_monitor_registry(a->monitor), i));
	} else if (len == 0 && hw_monitor_load_forgotten(a->monitor, id, id_len, &ref) == 0) {
		hw_owed_add(&a->status, ref.index);
		hw_owed_release(&a->status, ref, now.mono.ns / HW_NS_PER_MS);
		discover(a, now, ref, device_of(a, ref));
		reap_if_done(a, ref, device_of(a, ref));
	}
}

static void on_loaded(void *arg, uint64_t devices, uint64_t unusable, bool complete)
{
	struct hw_app *a = arg;
	hw_log(a->log, HW_LOG_NOTICE, "Redis: %llu devices loaded%s", (unsigned long long)devices,
	       complete ? "" : ", not all: the link was lost");
	if (unusable)
		hw_log(a->log, HW_LOG_WARNING, "Redis: %llu records could not be used", (unsigned long long)unusable);
	a->loading = false;
	hw_monitor_loaded(a->monitor);
	if (a->keyspace)
		hw_keyspace_loaded(a->keyspace);
	struct hw_now now = hw_app_now();
	hw_app_republish(a, now);
	/* From now on a store that is emptied is found to be. */
	hw_redis_seen(a->redis, now, hw_blind_now(hw_monitor_blind(a->monitor)));
	hw_app_turn(a);
}

static int status_payload(void *arg, const struct hw_device *device, char *buf, size_t cap)
{
	struct hw_app *a = arg;
	return hw_status_payload(a->monitor, a->conf->node_id, hw_app_now(), device, buf, cap);
}

static void on_trouble(void *arg, const char *what)
{
	struct hw_app *a = arg;
	hw_log_limited(a->log, HW_LIMIT_REDIS_TROUBLE, HW_LOG_ERROR, "Redis: %s", what);
}

static void on_emptied(void *arg)
{
	struct hw_app *a = arg;
	hw_log(a->log, HW_LOG_WARNING, "Redis came back without our data: writing every device anew");
	hw_monitor_key_loss(a->monitor, hw_app_now());
	if (a->keyspace)
		hw_keyspace_emptied(a->keyspace);
}

const struct hw_redis_ops hw_app_redis_ops = {.on_link = on_link,
                                              .on_device = on_device,
                                              .on_outbox = on_outbox,
                                              .on_loaded = on_loaded,
                                              .on_confirmed = on_confirmed,
                                              .on_newer = on_newer,
                                              .on_event = on_event,
                                              .on_events = on_events,
                                              .status_payload = status_payload,
                                              .on_trouble = on_trouble,
                                              .on_emptied = on_emptied};

/* --- back from the broker ---------------------------------------------------- */

/* The outbox keeps a clearing until everything is cleared: that is what finds the rest after a crash. */
static void published(struct hw_app *a, struct hw_ref ref, bool cleared, uint16_t other)
{
	const struct hw_device *d = device_of(a, ref);
	if (!d)
		return;
	struct hw_id id = hw_device_id(d);
	if (a->redis && !(cleared && d->flags & other))
		hw_redis_published(a->redis, id.text, id.len, d->seq, cleared);
	reap_if_done(a, ref, d);
}

void hw_app_published(void *arg, struct hw_ref ref, bool cleared)
{
	published(arg, ref, cleared, HW_FLAG_OWED_DISCOVERY);
}

void hw_app_discovered(void *arg, struct hw_ref ref, bool cleared)
{
	if (cleared)
		published(arg, ref, cleared, HW_FLAG_OWED_STATUS);
}

void hw_app_republish(struct hw_app *a, struct hw_now now)
{
	hw_owed_republish(&a->status, now.mono.ns / HW_NS_PER_MS);
	hw_owed_republish(&a->discovery, now.mono.ns / HW_NS_PER_MS);
}

static void publisher_up(struct hw_app *a, struct hw_now now)
{
	a->publisher_up = true;
	a->publisher_reconnects += a->publisher_ever_up;
	a->publisher_ever_up = true;
	a->publisher_why[0] = '\0';
	a->presence_due = true;
	hw_log(a->log, HW_LOG_NOTICE, "publisher: connected to %s:%d", a->publisher_conf.host, a->publisher_conf.port);
	hw_monitor_publisher(a->monitor, now, true);
	if (!a->loading) /* otherwise the end of that does it */
		hw_app_republish(a, now);
	hw_app_hurry(a);
}

static void publisher_down(struct hw_app *a, struct hw_now now, const char *text)
{
	a->publisher_up = false;
	a->barriers = HW_BARRIERS_UNKNOWN;
	hw_app_tell_broker(a, text);
	snprintf(a->publisher_why, sizeof a->publisher_why, "%s", text);
	hw_monitor_publisher(a->monitor, now, false);
	hw_owed_down(&a->status);
	hw_owed_down(&a->discovery);
}

/* The monitor's presence has token 0, which is neither sink's. */
static struct hw_owed *sink_of(struct hw_app *a, uint64_t token)
{
	return (token & HW_OWED_TOKEN_KIND) == a->discovery.kind->token ? &a->discovery : &a->status;
}

static void refused(struct hw_app *a, struct hw_now now, const struct hw_publisher_event *ev)
{
	struct hw_owed *sink = sink_of(a, ev->token);
	bool status = sink == &a->status;
	hw_log_limited(a->log, status ? HW_LIMIT_STATUS_REFUSED : HW_LIMIT_DISCOVERY_REFUSED, HW_LOG_ERROR,
	               "the broker refused a retained %s: %s; it is tried again each minute",
	               status ? "status" : "message for Home Assistant", ev->text);
	hw_owed_refused(sink, ev->token, now.mono.ns / HW_NS_PER_MS);
}

void hw_app_on_publisher(struct hw_app *a)
{
	struct hw_now now = hw_app_woke(a);
	struct hw_publisher_event ev;
	while (hw_publisher_take(a->publisher, &ev)) {
		switch (ev.kind) {
		case HW_PUBLISHER_UP:
			publisher_up(a, now);
			break;
		case HW_PUBLISHER_DOWN:
			publisher_down(a, now, ev.text);
			break;
		case HW_PUBLISHER_ACKED:
			hw_owed_acked(sink_of(a, ev.token), ev.token);
			break;
		case HW_PUBLISHER_REFUSED:
			refused(a, now, &ev);
			break;
		case HW_PUBLISHER_BARRIERS:
			a->barriers = ev.token ? HW_BARRIERS_TAKEN : HW_BARRIERS_REFUSED;
		}
	}
	hw_app_turn(a);
}

/* --- statuses that waited for Redis ------------------------------------------ */

/* Whether Redis has been away, or silent, for longer than statuses wait for it. */
static bool redis_is_late(const struct hw_app *a, struct hw_now now)
{
	if (!a->redis || a->owed_store == 0)
		return false;
	struct hw_mono down = hw_redis_down_since(a->redis);
	if (!hw_redis_up(a->redis) && now.mono.ns - down.ns > REDIS_PATIENCE_NS)
		return true;
	return hw_redis_stats(a->redis)->oldest_edge_ms > REDIS_PATIENCE_NS / HW_NS_PER_MS;
}

bool hw_app_release(struct hw_app *a, struct hw_now now)
{
	bool late = redis_is_late(a, now);
	if (late && !a->redis_late.ns) {
		a->redis_late = now.mono;
		a->releasing = true;
		a->release_at = 0;
	} else if (!late) {
		a->redis_late.ns = 0;
	}
	if (!a->releasing)
		return false;
	const struct hw_registry *r = hw_monitor_registry(a->monitor);
	uint32_t bound = hw_registry_bound(r);
	for (int looks = 0; looks < RELEASE_LOOKS && a->release_at < bound; looks++, a->release_at++)
		if (hw_registry_at(r, a->release_at))
			hw_owed_release(&a->status, hw_registry_ref(r, a->release_at), now.mono.ns / HW_NS_PER_MS);
	a->releasing = a->release_at < bound;
	return a->releasing;
}

uint64_t hw_app_owed(const struct hw_app *a, struct hw_now now, int64_t *oldest_ms)
{
	int64_t status = hw_owed_oldest_ms(&a->status, now.mono.ns / HW_NS_PER_MS);
	int64_t store = a->redis ? hw_redis_stats(a->redis)->oldest_edge_ms : 0;
	*oldest_ms = status > store ? status : store;
	/* A device may be owed to both: the larger debt is a lower bound of the devices owed, and exact in all but
	 * mixed failures. */
	return a->status.owed > a->owed_store ? a->status.owed : a->owed_store;
}

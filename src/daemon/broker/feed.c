/* SPDX-License-Identifier: MIT */
/*
 * Passes the events in a reader's ring to the core, in batches and in order. In a turn, all callbacks together take at
 * most EVENTS_A_TURN events of each reader. So a burst of messages delays neither the wheel nor Redis nor the API. A
 * reader with events left is marked as unread.
 *
 * If a long message is not finished after TURN_NS, its rest waits for the next turn (inflow.h). The events stay in the
 * ring until then, so nothing is copied.
 */
#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "broker_priv.h"
#include "daemon/cluster/cluster.h"
#include "daemon/loop/reports.h"
#include "daemon/loop/turn.h"
#include "daemon/retained/discovery.h"
#include "daemon/retained/retained.h"
#include "mqtt/barrier.h"

#define EVENTS_A_TURN 4096
#define TURN_NS       HW_NS_PER_MS

static bool on_taken(void *arg, struct hw_now now, size_t n)
{
	struct hw_app_reader *r = arg;
	r->taken += n;
	hw_app_drain(r->app, now, 0);
	return hw_inflow_left(&r->inflow) && hw_app_now().mono.ns - now.mono.ns > TURN_NS;
}

static void on_barrier(struct hw_app_reader *r, struct hw_now now, const struct hw_reader_event *ev)
{
	struct hw_app *a = r->app;
	if (ev->run_id == a->life.run_id && ev->number >= HW_FENCE) {
		hw_share_fence(r, now, ev->number - HW_FENCE);
		return;
	}
	if (ev->run_id == a->life.run_id && ev->number >= HW_CLUSTER_BARRIER) {
		hw_app_cluster_back(a, r->number, now, ev->number - HW_CLUSTER_BARRIER);
		return;
	}
	if (ev->run_id == a->life.run_id) {
		if (ev->number == a->broker->barrier_out)
			hw_reader_expect(r->reader, 0);
		hw_monitor_barrier(a->monitor, now, r->number, ev->number);
		return;
	}
	hw_log_limited(a->log, HW_LIMIT_FOREIGN, HW_LOG_ERROR,
	               "another monitor uses node_id '%s' on this broker: its barriers arrive on %s; give each monitor "
	               "its own [monitor] node_id",
	               a->conf->node_id, a->broker->barrier_topic);
}

static void on_up(struct hw_app_reader *r, struct hw_now now)
{
	r->up = true;
	r->why[0] = '\0';
	hw_log(r->app->log, HW_LOG_NOTICE, "reader %u: connected to %s:%d and subscribed", r->number, r->conf.host,
	       r->conf.port);
	if (r->number == 0)
		hw_monitor_upstreams_granted(r->app->monitor, false);
	hw_share_reader(r, now, true);
	hw_app_cluster_reader(r->app, r->number, now, true);
	/* wills that were published while the reader was not connected may have replaced our retained statuses */
	if (r->ever_up)
		hw_retained_republish(hw_app_status_sink(r->app), now.mono.ns / HW_NS_PER_MS);
	r->ever_up = true;
	hw_app_retry_links(r->app);
}

static void on_down(struct hw_app_reader *r, struct hw_now now, const char *text)
{
	r->up = false;
	if (!r->renewed)
		hw_app_log_broker(r->app, text, hw_reader_stats(r->reader).taken);
	r->renewed = false;
	snprintf(r->why, sizeof(r->why), "%s", text);
	hw_copies_of_forget(&r->copies);
	if (r->number == 0)
		hw_monitor_upstreams_asked(r->app->monitor);
	hw_share_reader(r, now, false);
	hw_app_cluster_reader(r->app, r->number, now, false);
}

static void on_refused(struct hw_app_reader *r, const char *text)
{
	if (r->up || !hw_app_is_reported(r->app, text))
		hw_log_limited(r->app->log, HW_LIMIT_READER, HW_LOG_ERROR, "reader %u: %s", r->number, text);
	if (!r->up)
		snprintf(r->why, sizeof(r->why), "%s", text);
}

static void on_stall(struct hw_app_reader *r, struct hw_now now, int64_t planned_ns)
{
	r->stalled = true;
	hw_monitor_stall(r->app->monitor, now, (struct hw_mono){planned_ns});
}

/* Handles every event except a message. */
static void on_sign(struct hw_app_reader *r, struct hw_now now, const struct hw_reader_event *ev)
{
	switch (ev->kind) {
	case HW_READER_MESSAGE:
		break;
	case HW_READER_BARRIER:
		on_barrier(r, now, ev);
		break;
	case HW_READER_SHARE:
		if (ev->run_id == r->app->life.run_id)
			hw_share_message(r, now, ev->number);
		break;
	case HW_READER_UP:
		on_up(r, now);
		break;
	case HW_READER_DOWN:
		on_down(r, now, ev->text);
		break;
	case HW_READER_REFUSED:
		on_refused(r, ev->text);
		break;
	case HW_READER_STALL:
		on_stall(r, now, ev->planned_ns);
		break;
	case HW_READER_DRAINED:
		r->stalled = false;
		break;
	case HW_READER_REPLAYED:
		if (r->number != 0)
			break;
		hw_monitor_upstreams_granted(r->app->monitor, false);
		hw_app_cluster_replayed(r->app, now);
		break;
	case HW_READER_RENEWED:
		hw_monitor_upstreams_granted(r->app->monitor, true);
		break;
	case HW_READER_TOO_LONG:
		hw_app_reports_too_long(r->app, ev->text);
		break;
	case HW_READER_NEARLY_FULL:
		if (r->number == 0)
			hw_app_cluster_lossy(r->app, now);
		hw_monitor_loss(r->app->monitor, now, r->number);
	}
}

/* Called when a reader's ring is empty. The stall of the loop ends when each ring was empty once since it began, and
 * each reader that woke late has emptied its socket. */
static void note_empty(struct hw_app_reader *r, struct hw_now now)
{
	struct hw_app *a = r->app;
	r->behind = false;
	for (unsigned i = 0; i < a->broker->n_readers; i++)
		if (a->broker->reader[i].behind || a->broker->reader[i].stalled)
			return;
	hw_monitor_drained(a->monitor, now);
}

/* Whether a topic consists of `before`, one level, and `after`. */
static bool is_level_between(const struct hw_reader_event *ev, const char *before, size_t n_before, const char *after,
                             size_t n_after)
{
	return ev->topic_len > n_before + n_after && memcmp(ev->topic, before, n_before) == 0 &&
	       memcmp(ev->topic + ev->topic_len - n_after, after, n_after) == 0 &&
	       !memchr(ev->topic + n_before, '/', ev->topic_len - n_before - n_after);
}

static bool is_barrier_of_another(const struct hw_reader_event *ev)
{
	static const char before[] = "heartwheel/", after[] = "/barrier";
	struct hw_barrier barrier;
	return is_level_between(ev, before, sizeof(before) - 1, after, sizeof(after) - 1) &&
	       hw_barrier_parse(ev->payload, ev->payload_len, &barrier);
}

/* Whether this is a discovery message that a heartwheeld has published for Home Assistant. */
static bool is_discovery(const struct hw_app *a, const struct hw_reader_event *ev)
{
	static const char after[] = HW_DISCOVERY_AFTER;
	return is_level_between(ev, a->broker->discovery, a->broker->discovery_len, after, sizeof(after) - 1);
}

/*
 * Whether this is a monitor's message that the core cannot recognise by its payload. A filter such as +/{id}/# also
 * matches the topics of these messages, but a monitor is not a device.
 */
static bool is_monitors(struct hw_app *a, const struct hw_reader_event *ev)
{
	bool discovery = is_discovery(a, ev);
	if (!discovery && !is_barrier_of_another(ev))
		return false;
	if (!a->cluster && !(discovery && a->start->mqtt.homeassistant))
		hw_monitor_count_refused(a->monitor, HW_REFUSED_MONITOR, 1);
	return true;
}

static struct hw_message message_of(const struct hw_reader_event *ev, unsigned source)
{
	return (struct hw_message){.topic = ev->topic,
	                           .topic_len = ev->topic_len,
	                           .payload = ev->payload,
	                           .payload_len = ev->payload_len,
	                           .retained = ev->retained,
	                           .truncated = ev->truncated,
	                           .source = source};
}

/* Takes and processes events; an event that was not finished comes first. Returns whether all of them are finished. */
static bool take_events(struct hw_app_reader *r, struct hw_now now)
{
	struct hw_inflow *f = &r->inflow;
	struct hw_monitor *m = r->app->monitor;
	int64_t now_ms = now.mono.ns / HW_NS_PER_MS;
	if (!hw_inflow_begin(f, m, now))
		return false;
	for (; r->in_turn < EVENTS_A_TURN && (f->holding || hw_reader_take(r->reader, &r->held)); r->in_turn++) {
		bool message = r->held.kind == HW_READER_MESSAGE;
		if (!hw_inflow_takes(f, m, now, message))
			return false;
		if (!message)
			on_sign(r, now, &r->held);
		else if (!is_monitors(r->app, &r->held) && !hw_app_cluster_message(r->app, r->number, now, &r->held) &&
		         !hw_copies_is_one(&r->app->broker->copies, &r->copies, &r->held, now_ms))
			*hw_inflow_slot(f) = message_of(&r->held, r->number);
	}
	return hw_inflow_flush(f, m, now);
}

static void read_on(struct hw_app_reader *r)
{
	struct hw_app *a = r->app;
	struct hw_now now = hw_app_woke(a);
	bool done = take_events(r, now);
	if (done)
		hw_reader_release(r->reader);
	bool empty = done && r->in_turn < EVENTS_A_TURN && hw_reader_rest(r->reader);
	r->unread = !empty;
	if (empty)
		note_empty(r, now);
	hw_app_turn(a);
}

void hw_app_feed_init(struct hw_app_reader *r)
{
	r->inflow = (struct hw_inflow){.source = r->number, .on_taken = on_taken, .arg = r};
}

void hw_app_on_reader(int fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	read_on(arg);
}

bool hw_app_feed_is_spent(const struct hw_app *a)
{
	for (unsigned i = 0; i < a->broker->n_readers; i++)
		if (a->broker->reader[i].in_turn >= EVENTS_A_TURN)
			return true;
	return false;
}

bool hw_app_read_on(struct hw_app *a)
{
	bool any = false;
	for (unsigned i = 0; i < a->broker->n_readers && !a->life.stopping; i++)
		if (a->broker->reader[i].unread) {
			any = true;
			read_on(&a->broker->reader[i]);
		}
	return any;
}

/* Whether a reader has events that this turn did not process. The loop first polls for other input, and then processes
 * them. */
bool hw_app_feed_is_unread(const struct hw_app *a)
{
	for (unsigned i = 0; i < a->broker->n_readers && !a->life.stopping; i++)
		if (a->broker->reader[i].unread)
			return true;
	return false;
}

void hw_app_feed_begin_turn(struct hw_app *a)
{
	for (unsigned i = 0; i < a->broker->n_readers; i++)
		a->broker->reader[i].in_turn = 0;
}

void hw_app_feed_stalled(struct hw_app *a)
{
	for (unsigned i = 0; i < a->broker->n_readers && a->broker->reader[i].reader; i++) {
		a->broker->reader[i].behind = a->broker->reader[i].stalled = a->broker->reader[i].unread = true;
		hw_reader_drain(a->broker->reader[i].reader);
	}
}

void hw_app_feed_stop(struct hw_app *a)
{
	for (unsigned i = 0; i < a->broker->n_readers; i++)
		if (a->broker->reader[i].readable)
			event_del(a->broker->reader[i].readable);
}

/* --- single readers --------------------------------------------------------------------------------------------- */

bool hw_app_reader_is_up(const struct hw_app *a, unsigned reader)
{
	return a->broker->reader[reader].up;
}

/* Reconnects a reader. While the broker refuses barriers, each reconnect fails in the same way, and is logged only
 * once. */
void hw_app_reopen_reader(struct hw_app *a, unsigned reader)
{
	const struct hw_blind *b = hw_monitor_blind(a->monitor);
	bool denied = hw_blind_now(b) && b->first == HW_CAUSE_BARRIER;
	a->broker->reader[reader].renewed = denied;
	if (!denied)
		hw_log_limited(a->log, HW_LIMIT_READER, HW_LOG_WARNING,
		               "reader %u: barriers do not come back; heartwheeld reopens its connection", reader);
	hw_reader_reconnect(a->broker->reader[reader].reader);
}

void hw_app_replay(struct hw_app *a)
{
	struct hw_app_reader *r = &a->broker->reader[0];
	hw_copies_of_forget(&r->copies);
	hw_monitor_upstreams_asked(a->monitor);
	hw_reader_replay(r->reader);
}

void hw_app_reread(struct hw_app *a)
{
	hw_reader_reconnect(a->broker->reader[0].reader);
}

void hw_app_ask_upstreams(struct hw_app *a)
{
	const struct hw_groups *g = hw_monitor_groups(a->monitor);
	bool any = false;
	for (size_t k = 0; k < g->n_order; k++)
		any |= g->all[g->order[k]]->n_whiles > 0;
	if (any && !a->cluster && a->broker->reader[0].up)
		hw_app_replay(a);
}

void hw_app_renew_upstreams(struct hw_app *a, bool is_time)
{
	struct hw_app_reader *r = &a->broker->reader[0];
	if (hw_app_stands_by(a) || !r->up || !hw_monitor_renew_upstreams(a->monitor, is_time))
		return;
	hw_copies_of_forget(&r->copies);
	hw_reader_renew(r->reader);
}

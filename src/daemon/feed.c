/* SPDX-License-Identifier: MIT */
/*
 * From a reader's ring into the core, in batches, in order. A turn takes at most EVENTS_A_TURN events of a reader, in
 * however many callbacks, so that a storm never keeps the wheel, Redis or the API waiting; for what is left the reader
 * is marked as unread.
 *
 * What the core has not worked off of a long message when TURN_NS is over waits for the next turn (inflow.h). Until
 * then nothing is given back to the ring, so that nothing has to be copied.
 */
#include "feed.h"

#include <stdio.h>

#include "cluster_broker.h"
#include "connections.h"
#include "turn.h"
#include "wake.h"

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
	if (ev->mark == a->run_mark && ev->number >= HW_FENCE) {
		hw_share_fence(r, now, ev->number - HW_FENCE);
		return;
	}
	if (ev->mark == a->run_mark && ev->number >= HW_CLUSTER_BARRIER) {
		hw_app_cluster_back(r, now, ev->number - HW_CLUSTER_BARRIER);
		return;
	}
	if (ev->mark == a->run_mark) {
		if (ev->number == a->barrier_out)
			hw_reader_expect(r->reader, 0);
		hw_monitor_barrier(a->monitor, now, r->number, ev->number);
		return;
	}
	hw_log_limited(a->log, HW_LIMIT_FOREIGN, HW_LOG_ERROR,
	               "another monitor uses node_id '%s' on this broker: its barriers arrive on %s; give each monitor "
	               "its own [monitor] node_id",
	               a->conf->node_id, a->barrier_topic);
}

static void on_up(struct hw_app_reader *r, struct hw_now now)
{
	r->up = true;
	r->why[0] = '\0';
	hw_log(r->app->log, HW_LOG_NOTICE, "reader %u: connected to %s:%d and subscribed", r->number, r->conf.host,
	       r->conf.port);
	hw_share_reader(r, now, true);
	hw_app_cluster_reader(r, now, true);
	/* Wills that were published while it was away may stand where our retained statuses did. */
	if (r->ever_up)
		hw_retained_republish(&r->app->status, now.mono.ns / HW_NS_PER_MS);
	r->ever_up = true;
	hw_app_hurry(r->app);
}

static void on_down(struct hw_app_reader *r, struct hw_now now, const char *text)
{
	r->up = false;
	if (!r->renewed)
		hw_app_tell_broker(r->app, text, hw_reader_stats(r->reader).taken);
	r->renewed = false;
	snprintf(r->why, sizeof(r->why), "%s", text);
	hw_share_reader(r, now, false);
	hw_app_cluster_reader(r, now, false);
}

static void on_refused(struct hw_app_reader *r, const char *text)
{
	if (r->up || !hw_app_is_told(r->app, text))
		hw_log_limited(r->app->log, HW_LIMIT_READER, HW_LOG_ERROR, "reader %u: %s", r->number, text);
	snprintf(r->why, sizeof(r->why), "%s", text);
}

static void on_stall(struct hw_app_reader *r, struct hw_now now, int64_t planned_ns)
{
	r->stalled = true;
	hw_monitor_stall(r->app->monitor, now, (struct hw_mono){planned_ns});
}

/* Everything but a message. */
static void on_sign(struct hw_app_reader *r, struct hw_now now, const struct hw_reader_event *ev)
{
	switch (ev->kind) {
	case HW_READER_MESSAGE:
		break;
	case HW_READER_BARRIER:
		on_barrier(r, now, ev);
		break;
	case HW_READER_SHARE:
		if (ev->mark == r->app->run_mark)
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
		hw_app_cluster_replayed(r, now);
		break;
	case HW_READER_NEARLY_FULL:
		hw_app_cluster_lossy(r, now);
		hw_monitor_loss(r->app->monitor, now, r->number);
	}
}

/* A stall is over once every ring was seen empty, and every reader that slept too has read its socket empty. */
static void note_empty(struct hw_app_reader *r, struct hw_now now)
{
	struct hw_app *a = r->app;
	r->behind = false;
	for (unsigned i = 0; i < a->n_readers; i++)
		if (a->reader[i].behind || a->reader[i].stalled)
			return;
	hw_monitor_drained(a->monitor, now);
}

static struct hw_message message_of(const struct hw_reader_event *ev)
{
	return (struct hw_message){.topic = ev->topic,
	                           .topic_len = ev->topic_len,
	                           .payload = ev->payload,
	                           .payload_len = ev->payload_len,
	                           .retained = ev->retained,
	                           .truncated = ev->truncated};
}

/*
 * Takes events, beginning with the one that had to wait, and works them off. Whether all that was taken is done with.
 */
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
		else if (!hw_app_cluster_message(r, now, &r->held) &&
		         !hw_copies_is_one(&r->app->copies, &r->copies, &r->held, now_ms))
			*hw_inflow_slot(f) = message_of(&r->held);
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
	for (unsigned i = 0; i < a->n_readers; i++)
		if (a->reader[i].in_turn >= EVENTS_A_TURN)
			return true;
	return false;
}

bool hw_app_read_on(struct hw_app *a)
{
	bool any = false;
	for (unsigned i = 0; i < a->n_readers && !a->stopping; i++)
		if (a->reader[i].unread) {
			any = true;
			read_on(&a->reader[i]);
		}
	return any;
}

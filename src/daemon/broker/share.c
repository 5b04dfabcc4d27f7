/* SPDX-License-Identifier: MIT */
/* See share.h. */
#include <stdio.h>

#include "broker_priv.h"

#define WAIT_MAX_MS 60000

/* Reports a reader to the core. On a node that stands by, readers receive only the messages of other nodes, so they do
 * not count as connections to the fleet. */
static void link_reader(struct hw_app *a, struct hw_now now, unsigned reader, bool up)
{
	hw_monitor_link(a->monitor, now, reader, up && !hw_app_stands_by(a));
}

static bool can_ask(const struct hw_app *a)
{
	for (unsigned i = 0; i < a->broker->n_readers; i++)
		if (!a->broker->reader[i].up)
			return false;
	return a->broker->barriers.up;
}

static void ask(struct hw_app *a, struct hw_now now)
{
	struct hw_share *s = &a->broker->share;
	s->due.ns = 0;
	s->asking = false;
	if (s->proven || !can_ask(a))
		return;
	s->asking = true;
	s->number++;
	s->copies = 0;
	s->fenced = 0;
	hw_publisher_share(a->broker->barriers.publisher, a->life.run_id, s->number);
	hw_publisher_flush(a->broker->barriers.publisher);
	s->due = hw_mono_add(now.mono, a->start->mqtt.barrier_timeout_ms * HW_NS_PER_MS);
}

static void prove(struct hw_app *a, struct hw_now now)
{
	struct hw_share *s = &a->broker->share;
	s->due.ns = 0;
	s->proven = true;
	s->asking = s->reported = false;
	s->wait_ms = 0;
	for (unsigned i = 0; i < a->broker->n_readers; i++)
		link_reader(a, now, i, true);
}

/* Called when shared subscriptions do not work. Logs this once until a test succeeds, and plans the next test. The time
 * before the next test grows with each failure. */
static void fail(struct hw_app *a, struct hw_now now)
{
	struct hw_share *s = &a->broker->share;
	s->asking = false;
	if (!s->reported)
		hw_log(a->log, HW_LOG_ERROR,
		       "blind (link): a message on %s reached %s of the %u readers instead of one: the broker has no "
		       "shared subscriptions, or this monitor's user may not write and read that topic; allow that, or "
		       "set [mqtt] readers = 1",
		       s->topic, s->copies ? "more than one" : "none", a->broker->n_readers);
	s->reported = true;
	s->wait_ms = s->wait_ms ? 2 * s->wait_ms : a->start->mqtt.barrier_timeout_ms;
	if (s->wait_ms > WAIT_MAX_MS)
		s->wait_ms = WAIT_MAX_MS;
	s->due = hw_mono_add(now.mono, s->wait_ms * HW_NS_PER_MS);
}

static void judge(struct hw_app *a, struct hw_now now, bool late)
{
	struct hw_share *s = &a->broker->share;
	bool fenced = s->fenced == (UINT32_C(1) << a->broker->n_readers) - 1;
	if (s->copies > 1)
		fail(a, now);
	else if (s->copies == 1 && (fenced || late))
		prove(a, now);
	else if (late)
		fail(a, now);
}

void hw_share_init(struct hw_app *a)
{
	snprintf(a->broker->share.topic, sizeof(a->broker->share.topic), "heartwheel/%s/share", a->start->node_id);
}

void hw_share_tick(struct hw_app *a, struct hw_now now)
{
	const struct hw_share *s = &a->broker->share;
	if (!s->due.ns || now.mono.ns < s->due.ns)
		return;
	if (s->asking)
		judge(a, now, true);
	else
		ask(a, now);
}

void hw_share_reader(struct hw_app_reader *r, struct hw_now now, bool up)
{
	struct hw_app *a = r->app;
	if (a->broker->n_readers < 2 || !up)
		link_reader(a, now, r->number, up);
	if (a->broker->n_readers < 2)
		return;
	a->broker->share.proven = false;
	if (up) /* it may be another broker, so test at once */
		a->broker->share.wait_ms = 0;
	ask(a, now);
}

void hw_share_publisher(struct hw_app *a, struct hw_now now)
{
	if (a->broker->n_readers > 1)
		ask(a, now);
}

void hw_share_message(struct hw_app_reader *r, struct hw_now now, uint64_t number)
{
	struct hw_share *s = &r->app->broker->share;
	if (!s->asking || number != s->number)
		return;
	s->copies++;
	judge(r->app, now, false);
}

void hw_share_fence(struct hw_app_reader *r, struct hw_now now, uint64_t number)
{
	struct hw_share *s = &r->app->broker->share;
	if (!s->asking || number != s->number)
		return;
	s->fenced |= UINT32_C(1) << r->number;
	judge(r->app, now, false);
}

const char *hw_share_why(const struct hw_app *a)
{
	if (a->broker->n_readers < 2 || a->broker->share.proven)
		return NULL;
	return a->broker->share.reported
	               ? "shared subscriptions do not work: allow the topic, or set [mqtt] readers = 1"
	               : "testing whether shared subscriptions work";
}

/* SPDX-License-Identifier: MIT */
#include "share.h"

#include <stdio.h>

#include "context.h"

#define WAIT_MAX_MS 60000

/* A node that stands by hears other nodes by its readers, and not the fleet. */
static void link_reader(struct hw_app *a, struct hw_now now, unsigned reader, bool up)
{
	hw_monitor_link(a->monitor, now, reader, up && !hw_app_stands_by(a));
}

static bool can_ask(const struct hw_app *a)
{
	for (unsigned i = 0; i < a->n_readers; i++)
		if (!a->reader[i].up)
			return false;
	return a->barriers.up;
}

static void ask(struct hw_app *a, struct hw_now now)
{
	struct hw_share *s = &a->share;
	s->due.ns = 0;
	s->asking = false;
	if (s->proven || !can_ask(a))
		return;
	s->asking = true;
	s->number++;
	s->copies = 0;
	s->fenced = 0;
	hw_publisher_share(a->barriers.publisher, a->run_mark, s->number);
	hw_publisher_flush(a->barriers.publisher);
	s->due = hw_mono_add(now.mono, a->start->mqtt.barrier_timeout_ms * HW_NS_PER_MS);
}

static void prove(struct hw_app *a, struct hw_now now)
{
	struct hw_share *s = &a->share;
	s->due.ns = 0;
	s->proven = true;
	s->asking = s->told = false;
	s->wait_ms = 0;
	for (unsigned i = 0; i < a->n_readers; i++)
		link_reader(a, now, i, true);
}

/* Shared subscriptions do not work: one log line for as long as that lasts, and another try, later each time. */
static void fail(struct hw_app *a, struct hw_now now)
{
	struct hw_share *s = &a->share;
	s->asking = false;
	if (!s->told)
		hw_log(a->log, HW_LOG_ERROR,
		       "blind (link): a message on %s came to %s of the %u readers, not to one: the broker has no "
		       "shared subscriptions, or this monitor's user may not write and read that topic: allow it, or "
		       "set [mqtt] readers = 1",
		       s->topic, s->copies ? "more than one" : "none", a->n_readers);
	s->told = true;
	s->wait_ms = s->wait_ms ? 2 * s->wait_ms : a->start->mqtt.barrier_timeout_ms;
	if (s->wait_ms > WAIT_MAX_MS)
		s->wait_ms = WAIT_MAX_MS;
	s->due = hw_mono_add(now.mono, s->wait_ms * HW_NS_PER_MS);
}

static void judge(struct hw_app *a, struct hw_now now, bool late)
{
	struct hw_share *s = &a->share;
	bool fenced = s->fenced == (UINT32_C(1) << a->n_readers) - 1;
	if (s->copies > 1)
		fail(a, now);
	else if (s->copies == 1 && (fenced || late))
		prove(a, now);
	else if (late)
		fail(a, now);
}

void hw_share_init(struct hw_app *a)
{
	snprintf(a->share.topic, sizeof(a->share.topic), "heartwheel/%s/share", a->start->node_id);
}

void hw_share_tick(struct hw_app *a, struct hw_now now)
{
	const struct hw_share *s = &a->share;
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
	if (a->n_readers < 2 || !up)
		link_reader(a, now, r->number, up);
	if (a->n_readers < 2)
		return;
	a->share.proven = false;
	if (up) /* another broker perhaps: at once */
		a->share.wait_ms = 0;
	ask(a, now);
}

void hw_share_publisher(struct hw_app *a, struct hw_now now)
{
	if (a->n_readers > 1)
		ask(a, now);
}

void hw_share_message(struct hw_app_reader *r, struct hw_now now, uint64_t number)
{
	struct hw_share *s = &r->app->share;
	if (!s->asking || number != s->number)
		return;
	s->copies++;
	judge(r->app, now, false);
}

void hw_share_fence(struct hw_app_reader *r, struct hw_now now, uint64_t number)
{
	struct hw_share *s = &r->app->share;
	if (!s->asking || number != s->number)
		return;
	s->fenced |= UINT32_C(1) << r->number;
	judge(r->app, now, false);
}

const char *hw_share_why(const struct hw_app *a)
{
	if (a->n_readers < 2 || a->share.proven)
		return NULL;
	return a->share.told ? "shared subscriptions do not work: allow the topic, or set [mqtt] readers = 1"
	                     : "proving that shared subscriptions work";
}

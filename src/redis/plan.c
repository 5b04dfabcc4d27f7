/* SPDX-License-Identifier: MIT */
/* Four timers that schedule the work of the sink: pump, gather, retry and sweep. sink.c does the work. */
#include <event2/event.h>

#include "redis/inner.h"

void hw_plan_pump(struct hw_redis *r)
{
	struct timeval now = {0, 0};
	if (r->up && !event_pending(r->sink.pump, EV_TIMEOUT, NULL))
		r->sink.unarmed = event_add(r->sink.pump, &now) != 0;
}

void hw_plan_refreshes(struct hw_redis *r)
{
	struct hw_sink *s = &r->sink;
	struct timeval wait = {0, HW_GATHER_MS * 1000};
	s->gathered |= s->refresh.len >= HW_GATHER_ITEMS;
	if (!s->gathered && !event_pending(s->gather, EV_TIMEOUT, NULL))
		s->gathered = event_add(s->gather, &wait) != 0;
	if (s->gathered)
		hw_plan_pump(r);
}

void hw_plan_retry(struct hw_redis *r, unsigned kinds)
{
	struct hw_sink *s = &r->sink;
	if (s->held) {
		s->held |= kinds; /* `retry` is already scheduled */
		return;
	}
	s->retry_ms = s->retry_ms ? s->retry_ms * 2 : HW_RETRY_MIN_MS;
	if (s->retry_ms > HW_RETRY_MAX_MS)
		s->retry_ms = HW_RETRY_MAX_MS;
	struct timeval tv = {s->retry_ms / 1000, (suseconds_t)(s->retry_ms % 1000 * 1000)};
	s->held = event_add(s->retry, &tv) == 0 ? kinds : 0;
}

/* If there is no memory, hw_plan_tick() tries again. */
static void arm_sweep(struct hw_redis *r)
{
	struct timeval every = {0, HW_SWEEP_EVERY_MS * 1000};
	if (!event_pending(r->sink.sweep_timer, EV_TIMEOUT, NULL))
		(void)event_add(r->sink.sweep_timer, &every);
}

void hw_plan_sweep(struct hw_redis *r)
{
	r->sink.sweep = r->sink.comparing = true;
	r->sink.sweep_at = 0;
	hw_dues_in_full(r); /* the contents of the store are not known */
	arm_sweep(r);
}

void hw_plan_tick(struct hw_redis *r)
{
	if (r->up && r->sink.sweep)
		arm_sweep(r);
	if (r->sink.unarmed)
		hw_plan_pump(r);
	hw_kept_expire(&r->sink.kept, hw_clock_now().mono.ns);
}

void hw_plan_up(struct hw_redis *r, bool again)
{
	hw_sink_send_again(r);
	if (again || r->sink.sweep)
		hw_plan_sweep(r);
	hw_plan_pump(r);
}

/* SPDX-License-Identifier: MIT */
/* See redis_clock.h. */
#include "tasks/schedule/redis_clock.h"

#include "tasks/schedule/schedule.h"

static struct hw_mono after_ms(struct hw_mono t, int64_t ms)
{
	return hw_mono_add(t, ms * HW_NS_PER_MS);
}

static void forget_offsets(struct hw_redis_clock *c)
{
	c->n_offsets = c->next_offset = 0;
}

/* Holds the clock after it seems to have stepped ahead. Only an answer ends the hold: an answer after `hold_until`,
 * or one with the time from before the step. If no answer comes for HW_ORDER_PATIENCE_MS, the hold starts again.
 * This process may have been stopped, and the clock may have been set back and ahead again in that time. */
static void hold_clock(struct hw_redis_clock *c, struct hw_mono now, int64_t offset)
{
	if (!c->held && c->n_offsets && offset - c->offset_ms > HW_CLOCK_STEP_MS) {
		c->holds++;
		c->believed_ms = c->offset_ms;
		c->hold_until = after_ms(now, c->hold_ms);
		c->held = c->hold_ms > 0;
		forget_offsets(c);
	} else if (c->held && offset - c->believed_ms <= HW_CLOCK_STEP_MS) {
		c->held = false;
		forget_offsets(c);
	} else if (c->held && now.ns > after_ms(c->reported_at, HW_ORDER_PATIENCE_MS).ns) {
		c->hold_until = after_ms(now, c->hold_ms);
	}
	if (c->held && now.ns >= c->hold_until.ns)
		c->held = false;
	c->reported_at = now;
}

bool hw_redis_clock_take(struct hw_redis_clock *c, struct hw_mono now, int64_t redis_ms)
{
	int64_t offset = redis_ms - now.ns / HW_NS_PER_MS;
	if (redis_ms <= 0)
		return false;
	hold_clock(c, now, offset);
	c->offsets[c->next_offset++ % HW_REDIS_CLOCK_SAMPLES] = offset;
	if (c->n_offsets < HW_REDIS_CLOCK_SAMPLES)
		c->n_offsets++;
	c->offset_ms = c->offsets[0];
	for (unsigned k = 1; k < c->n_offsets; k++)
		if (c->offsets[k] > c->offset_ms)
			c->offset_ms = c->offsets[k];
	return true;
}

void hw_redis_clock_hold_on(struct hw_redis_clock *c, struct hw_mono now)
{
	if (c->held)
		c->hold_until = after_ms(now, c->hold_ms);
}

/* SPDX-License-Identifier: MIT */
#include "wall_clock.h"

#include <errno.h>
#include <stdlib.h>

#include "clock.h"

#define STEP_MS       1000
#define READ_MS       100 /* if reading both clocks takes longer than this, their difference is not used */
#define DIFFERS_MS    60000
#define AGREES_MS     30000
#define MS_PER_S      1e3
#define BY_THIS_CLOCK "; no device goes offline, and no heartbeat is refused as too old (max_age), by this clock alone"

struct hw_app_wall_clock {
	bool known, differs;   /* known: boot_ms is known; differs: it was logged that the wall clock and Redis'
	                        * clock differ */
	int64_t boot_ms;       /* the time of the boot by the wall clock */
	int64_t good_boot_ms;  /* boot_ms as it would be without the changes of the wall clock that Redis' clock has not
	                          confirmed */
	int64_t redis_boot_ms; /* ... by Redis' clock */
	int64_t trusted_boot_ms; /* redis_boot_ms as it would be without the jumps forward that this machine's clock has
	                            not confirmed */
	struct hw_mono asked;    /* the time of Redis' last clock reading; 0: none */
};

int hw_app_wall_clock_new(struct hw_app *a)
{
	a->wall_clock = calloc(1, sizeof(*a->wall_clock));
	return a->wall_clock ? 0 : -ENOMEM;
}

static void find_step(struct hw_app *a)
{
	struct hw_app_wall_clock *c = a->wall_clock;
	int64_t began_ms = hw_app_booted_ns() / HW_NS_PER_MS, wall_ms = hw_app_now().wall_ms;
	int64_t booted_ms = hw_app_booted_ns() / HW_NS_PER_MS, boot_ms = wall_ms - booted_ms;
	if (booted_ms - began_ms > READ_MS)
		return;
	int64_t step_ms = c->known ? boot_ms - c->boot_ms : 0;
	bool steps = llabs(step_ms) >= STEP_MS;
	if (!c->known || llabs(boot_ms - c->good_boot_ms) < STEP_MS)
		c->good_boot_ms = boot_ms;
	else if (!steps)
		c->good_boot_ms += step_ms;
	c->known = true;
	c->boot_ms = boot_ms;
	if (steps)
		hw_log(a->log, HW_LOG_WARNING,
		       "the wall clock was set %s by %.1f s: durations that contain this moment are shown and stored "
		       "wrong by that much" BY_THIS_CLOCK,
		       step_ms > 0 ? "forward" : "back", (double)llabs(step_ms) / MS_PER_S);
}

static int64_t booted_ms(void)
{
	return hw_app_booted_ns() / HW_NS_PER_MS;
}

/* Returns the time of the boot by Redis' clock; 0: Redis' clock was not read yet. */
static int64_t redis_boot_ms(const struct hw_app *a, struct hw_mono *at)
{
	int64_t reported_ms = hw_redis_clock(a->redis, at);
	return reported_ms ? reported_ms + (hw_app_now().mono.ns - at->ns) / HW_NS_PER_MS - booted_ms() : 0;
}

static void compare_with_redis(struct hw_app *a)
{
	struct hw_app_wall_clock *c = a->wall_clock;
	struct hw_mono at;
	int64_t boot_ms = redis_boot_ms(a, &at);
	if (!c->known || boot_ms == 0 || at.ns == c->asked.ns)
		return;
	bool first = c->asked.ns == 0;
	c->asked = at;
	c->redis_boot_ms = boot_ms;
	int64_t ahead_ms = c->boot_ms - c->redis_boot_ms;
	if (first || boot_ms - c->trusted_boot_ms < DIFFERS_MS || llabs(ahead_ms) < AGREES_MS)
		c->trusted_boot_ms = boot_ms;
	if (llabs(ahead_ms) < AGREES_MS)
		c->good_boot_ms = c->boot_ms;
	if (!c->differs && llabs(ahead_ms) >= DIFFERS_MS)
		hw_log(a->log, HW_LOG_WARNING,
		       "this machine's clock is %.0f s %s Redis' clock: times that are shown or stored are wrong by "
		       "that much" BY_THIS_CLOCK "; check NTP on both machines",
		       (double)llabs(ahead_ms) / MS_PER_S, ahead_ms > 0 ? "ahead of" : "behind");
	else if (c->differs && llabs(ahead_ms) < AGREES_MS)
		hw_log(a->log, HW_LOG_NOTICE, "this machine's clock agrees with Redis' clock again");
	c->differs = llabs(ahead_ms) >= (c->differs ? AGREES_MS : DIFFERS_MS);
}

void hw_app_wall_clock_tick(struct hw_app *a)
{
	struct hw_app_wall_clock *c = a->wall_clock;
	find_step(a);
	if (a->redis)
		compare_with_redis(a);
	if (!c->known)
		return;
	bool redis = c->asked.ns != 0 && c->redis_boot_ms < c->good_boot_ms;
	hw_monitor_trust_wall(a->monitor, hw_app_now(),
	                      hw_app_booted_ns() / HW_NS_PER_MS + (redis ? c->redis_boot_ms : c->good_boot_ms));
}

int64_t hw_app_trusted_ms(const struct hw_app *a)
{
	const struct hw_app_wall_clock *c = a->wall_clock;
	struct hw_mono at;
	if (!a->redis)
		return hw_app_now().wall_ms;
	int64_t boot_ms = c->asked.ns ? c->trusted_boot_ms : redis_boot_ms(a, &at);
	if (boot_ms == 0)
		boot_ms = c->known ? c->good_boot_ms : hw_app_now().wall_ms - booted_ms();
	return boot_ms + booted_ms();
}

bool hw_app_trusted_is_known(const struct hw_app *a)
{
	struct hw_mono at;
	return !a->redis || hw_redis_clock(a->redis, &at) != 0;
}

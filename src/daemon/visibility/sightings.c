/* SPDX-License-Identifier: MIT */
/* See sightings.h. The wall-clock time of an instant is the present wall clock, minus the monotonic time since that
 * instant. */
#include "sightings.h"

#include "visibility_priv.h"

#define PAUSE_MAX_S 300

static int64_t wall_of(struct hw_now now, struct hw_mono at)
{
	return now.wall_ms - (now.mono.ns - at.ns) / HW_NS_PER_MS;
}

static void report(struct hw_app *a, enum hw_sight_state state, const char *cause, int64_t from_ms, int64_t to_ms)
{
	if (a->redis && to_ms >= from_ms)
		hw_redis_sighting(a->redis, &(struct hw_sighting){state, cause, from_ms, to_ms});
}

/* Writes the current period up to `to_ms`. */
static void report_period(struct hw_app *a, int64_t to_ms)
{
	const struct hw_sightings *s = &a->visibility->sightings;
	if (s->blind)
		report(a, HW_SIGHT_BLIND, hw_cause_name(s->cause), s->from_ms, to_ms);
	else
		report(a, HW_SIGHT_SEEING, "", s->from_ms, to_ms);
}

static void begin(struct hw_app *a, struct hw_now now, int64_t from_ms)
{
	struct hw_sightings *s = &a->visibility->sightings;
	s->from_ms = from_ms;
	s->blind = a->visibility->fleet_blind;
	s->cause = a->visibility->fleet_cause;
	s->pause_s = 1;
	s->next = hw_mono_add(now.mono, HW_NS_PER_S);
}

void hw_app_sightings_init(struct hw_app *a, struct hw_now now)
{
	a->visibility->sightings = (struct hw_sightings){
		.from_ms = now.wall_ms, .blind = true, .cause = HW_CAUSE_LINK, .ended = hw_app_stands_by(a)};
}

void hw_app_sightings_begin(struct hw_app *a, struct hw_now now)
{
	a->visibility->sightings = (struct hw_sightings){.from_ms = now.wall_ms,
	                                                 .floor_ms = now.wall_ms,
	                                                 .blind = true,
	                                                 .cause = HW_CAUSE_LINK,
	                                                 .down_reported = true};
}

void hw_app_sightings_turn(struct hw_app *a, struct hw_now now)
{
	struct hw_sightings *s = &a->visibility->sightings;
	const struct hw_blind *b = hw_monitor_blind(a->monitor);
	if (s->ended)
		return;
	int64_t at_ms = wall_of(now, a->visibility->fleet_blind ? b->since : b->until);
	/* While the blindness lasted, its begin may have been corrected to an earlier instant. */
	if (s->blind && wall_of(now, b->since) < s->from_ms)
		s->from_ms = wall_of(now, b->since);
	if (s->from_ms < s->floor_ms)
		s->from_ms = s->floor_ms;
	report_period(a, at_ms);
	begin(a, now, at_ms);
}

void hw_app_sightings_tick(struct hw_app *a, struct hw_now now)
{
	struct hw_sightings *s = &a->visibility->sightings;
	if (!a->redis || s->ended)
		return;
	int64_t before_ms = hw_redis_up(a->redis) ? hw_redis_old_seen_ms(a->redis) : 0;
	if (hw_redis_up(a->redis) && !s->down_reported) {
		s->down_reported = true;
		int64_t started_ms = wall_of(now, a->life.started);
		if (before_ms && before_ms < started_ms)
			report(a, HW_SIGHT_DOWN, "", before_ms, started_ms);
	}
	if (s->blind || now.mono.ns < s->next.ns)
		return;
	report_period(a, now.wall_ms);
	s->pause_s = s->pause_s * 2 < PAUSE_MAX_S ? s->pause_s * 2 : PAUSE_MAX_S;
	s->next = hw_mono_add(now.mono, s->pause_s * HW_NS_PER_S);
}

void hw_app_sightings_end(struct hw_app *a, struct hw_now now)
{
	if (a->visibility->sightings.ended)
		return;
	report_period(a, now.wall_ms);
	report(a, HW_SIGHT_STOPPED, "", now.wall_ms, now.wall_ms);
	a->visibility->sightings.ended = true;
}

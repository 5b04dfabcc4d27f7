/* SPDX-License-Identifier: MIT */
/* See sightings.h. Times are the wall clock's, each taken back from now by what the monotonic clock says. */
#include "sightings.h"

#define PAUSE_MAX_S 300

static int64_t wall_of(struct hw_now now, struct hw_mono at)
{
	return now.wall_ms - (now.mono.ns - at.ns) / HW_NS_PER_MS;
}

static void tell(struct hw_app *a, enum hw_sight_state state, const char *cause, int64_t from_ms, int64_t to_ms)
{
	if (a->redis && to_ms >= from_ms)
		hw_redis_sighting(a->redis, &(struct hw_sighting){state, cause, from_ms, to_ms});
}

/* The period that lasts, as far as it has come. */
static void tell_period(struct hw_app *a, int64_t to_ms)
{
	const struct hw_app_sightings *s = &a->sightings;
	if (s->blind)
		tell(a, HW_SIGHT_BLIND, hw_cause_name(s->cause), s->from_ms, to_ms);
	else
		tell(a, HW_SIGHT_SEEING, "", s->from_ms, to_ms);
}

static void begin(struct hw_app *a, struct hw_now now, int64_t from_ms)
{
	struct hw_app_sightings *s = &a->sightings;
	s->from_ms = from_ms;
	s->blind = a->fleet_blind;
	s->cause = a->fleet_cause;
	s->pause_s = 1;
	s->next = hw_mono_add(now.mono, HW_NS_PER_S);
}

void hw_app_sightings_init(struct hw_app *a, struct hw_now now)
{
	a->sightings = (struct hw_app_sightings){
		.from_ms = now.wall_ms, .blind = true, .cause = HW_CAUSE_LINK, .ended = hw_app_stands_by(a)};
}

void hw_app_sightings_begin(struct hw_app *a, struct hw_now now)
{
	a->sightings = (struct hw_app_sightings){.from_ms = now.wall_ms,
	                                         .floor_ms = now.wall_ms,
	                                         .blind = true,
	                                         .cause = HW_CAUSE_LINK,
	                                         .down_told = true};
}

void hw_app_sightings_turn(struct hw_app *a, struct hw_now now)
{
	struct hw_app_sightings *s = &a->sightings;
	const struct hw_blind *b = hw_monitor_blind(a->monitor);
	if (s->ended)
		return;
	int64_t at_ms = wall_of(now, a->fleet_blind ? b->since : b->until);
	/* While it lasted its begin may have been found to be earlier. */
	if (s->blind && wall_of(now, b->since) < s->from_ms)
		s->from_ms = wall_of(now, b->since);
	if (s->from_ms < s->floor_ms)
		s->from_ms = s->floor_ms;
	tell_period(a, at_ms);
	begin(a, now, at_ms);
}

void hw_app_sightings_tick(struct hw_app *a, struct hw_now now)
{
	struct hw_app_sightings *s = &a->sightings;
	if (!a->redis || s->ended)
		return;
	int64_t before_ms = hw_redis_up(a->redis) ? hw_redis_old_seen_ms(a->redis) : 0;
	if (hw_redis_up(a->redis) && !s->down_told) {
		s->down_told = true;
		int64_t started_ms = wall_of(now, a->started);
		if (before_ms && before_ms < started_ms)
			tell(a, HW_SIGHT_DOWN, "", before_ms, started_ms);
	}
	if (s->blind || now.mono.ns < s->next.ns)
		return;
	tell_period(a, now.wall_ms);
	s->pause_s = s->pause_s * 2 < PAUSE_MAX_S ? s->pause_s * 2 : PAUSE_MAX_S;
	s->next = hw_mono_add(now.mono, s->pause_s * HW_NS_PER_S);
}

void hw_app_sightings_end(struct hw_app *a, struct hw_now now)
{
	if (a->sightings.ended)
		return;
	tell_period(a, now.wall_ms);
	tell(a, HW_SIGHT_STOPPED, "", now.wall_ms, now.wall_ms);
	a->sightings.ended = true;
}

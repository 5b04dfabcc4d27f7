/* SPDX-License-Identifier: MIT */
/*
 * The clock of watching: for how many milliseconds monitors have seen the fleet. Redis keeps it
 * (scripts/sight_record.lua). The time after which an offline device is forgotten is measured by this clock, not by a
 * wall clock. So the time continues over restarts and from node to node.
 *
 * Between two answers of Redis, this code advances the clock by the monotonic clock. So the value here is never behind
 * that in Redis. If Redis could not be reached, a device counts as offline for a shorter time than it was, and is
 * forgotten later.
 *
 * The hash of an offline device has the field `watched`, "MS SEQ": the value of this clock when the device became
 * offline. The field is valid only if SEQ is the hash's seq: an old version of heartwheel does not know the field, and
 * changes seq alone.
 *
 * While one group is blind, this clock stands still for all groups, but the offline devices of other groups age. So a
 * device may have been offline for longer than this clock shows. Its `watched` is then 0, and the device is forgotten
 * later after a restart.
 *
 * Other programs may write these values, so they are limited. The clock is at most the time since CLOCK_SINCE_MS. A
 * device's `watched` is at most a day ahead of the clock, because another node's clock may have advanced while Redis
 * could not be reached. If a value is beyond its limit, the device counts as offline since now, and is forgotten later.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "heartwheel/bounds.h"
#include "heartwheel/print.h"
#include "redis/inner.h"

#define ANSWER_SOON_MS 5000                   /* an answer that took longer than this does not show the present time */
#define CLOCK_SINCE_MS INT64_C(1704067200000) /* 2024-01-01; sight_record.lua has the same value */
#define STEP_MS        10000                  /* the same in sight_record.lua */
/* if the clock of watching starts over and loses more than this, that is logged */
#define BACK_MS INT64_C(60000)

static void report_lost(struct hw_redis *r)
{
	r->ops->on_trouble(r->arg, "key 'watched', the time for which this fleet has been watched, was missing or out "
	                           "of bounds; it starts again; "
	                           "offline devices are forgotten later; check which program writes that key");
}

/* Whether the clock of watching can have this value: at most the time from CLOCK_SINCE_MS until now. If the wall clock
 * is before CLOCK_SINCE_MS, it is wrong, and any value is possible. */
static bool is_possible(struct hw_now now, int64_t ms)
{
	int64_t most = now.wall_ms > CLOCK_SINCE_MS ? now.wall_ms - CLOCK_SINCE_MS + HW_BOUNDS_AHEAD_MS : HW_SINCE_MAX;
	return ms >= 0 && ms <= most;
}

static int64_t watched_ms(const struct hw_redis *r, struct hw_now now)
{
	return r->watched.ms + (now.mono.ns - r->watched.at.ns) / HW_NS_PER_MS;
}

void hw_watched_set(struct hw_redis *r, struct hw_now now, int64_t ms)
{
	if (r->watched.known && ms >= 0 && ms <= STEP_MS && watched_ms(r, now) - ms > BACK_MS)
		report_lost(r);
	r->watched.known = is_possible(now, ms);
	r->watched.ms = ms;
	r->watched.at = now.mono;
}

void hw_watched_clock(struct hw_redis *r, struct hw_now now, int64_t redis_ms)
{
	r->watched.clock_ms = redis_ms;
	r->watched.clock_at = now.mono;
}

void hw_watched_compare(struct hw_redis *r, struct hw_now now, int64_t asked_ms, int64_t redis_ms)
{
	if (redis_ms > 0 && now.mono.ns / HW_NS_PER_MS - asked_ms < ANSWER_SOON_MS)
		hw_watched_clock(r, now, redis_ms);
}

int64_t hw_redis_clock(const struct hw_redis *r, struct hw_mono *at)
{
	*at = r->watched.clock_at;
	return r->watched.clock_ms;
}

int hw_watched_print(const struct hw_redis *r, const struct hw_device *d, uint64_t seq, char text[HW_WATCHED_MAX])
{
	struct hw_now now = hw_clock_now();
	int64_t gone_ms = hw_monitor_gone_ms(r->m, now, d);
	if (!r->watched.known || gone_ms < 0)
		return 0;
	int64_t went_ms = watched_ms(r, now) - gone_ms;
	return (int)hw_print(text, HW_WATCHED_MAX, "%" PRId64 " %" PRIu64, went_ms > 0 ? went_ms : 0, seq);
}

int64_t hw_watched_gone_ms(const struct hw_redis *r, const char *text, size_t len, uint64_t seq)
{
	int64_t went_ms;
	uint64_t of;
	int end = 0;
	if (!r->watched.known)
		return 0;
	if (sscanf(text, "%15" SCNd64 " %15" SCNu64 "%n", &went_ms, &of, &end) != 2 || (size_t)end != len)
		return -1;
	if (of != seq)
		return 0;
	int64_t gone_ms = watched_ms(r, hw_clock_now()) - went_ms;
	if (went_ms < 0 || gone_ms < -HW_BOUNDS_AHEAD_MS)
		return -1;
	return gone_ms > 0 ? gone_ms : 0;
}

static void on_read(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_redis *r = arg;
	const redisReply *reply = answer;
	int64_t ms = -1, last;
	(void)ac;
	if (!reply)
		return;
	hw_redis_link_got(&r->link);
	if (reply->type == REDIS_REPLY_STRING && sscanf(reply->str, "%15" SCNd64 " %15" SCNd64, &ms, &last) != 2)
		ms = -1;
	struct hw_now now = hw_clock_now();
	if (reply->type == REDIS_REPLY_STRING && !is_possible(now, ms))
		report_lost(r);
	hw_watched_set(r, now, ms);
}

int hw_watched_read(struct hw_redis *r)
{
	const char *argv[] = {"GET", r->keys.watched};
	const size_t len[] = {3, strlen(r->keys.watched)};
	return hw_redis_link_command(&r->link, on_read, r, 2, argv, len);
}

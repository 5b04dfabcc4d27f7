/* SPDX-License-Identifier: MIT */
/*
 * The loop, a turn at a time. A turn is what happens between two looks at what is readable: several callbacks, each of
 * which may end in hw_app_turn(). What they may spend is bounded for the turn as a whole; the rest goes on in the next
 * one.
 */
#include "turn.h"

#include <event2/event.h>
#include <limits.h>

#include "cluster.h"
#include "fanout.h"
#include "feed.h"
#include "pending.h"
#include "presence.h"
#include "wake.h"

#define LOOKS_A_TURN    1024 /* at devices: about a millisecond */
#define STATUSES_A_TURN 512
#define STORE_AHEAD                                                                                                    \
	16384 /* devices whose end waits for Redis while others are judged: some tenths of a second's worth */
#define STORE_PATIENCE_NS HW_NS_PER_S
#define HELD_NS           (5 * HW_NS_PER_MS) /* mostly Redis' next answer comes before */

/* A reader that was not done with in its part of the turn goes on after everything readable was looked at. */
static bool is_unread(const struct hw_app *a)
{
	for (unsigned i = 0; i < a->n_readers && !a->stopping; i++)
		if (a->reader[i].unread)
			return true;
	return false;
}

/* Sets the one timer; and notes by when the loop should be back. */
static void plan(struct hw_app *a, struct hw_now now, bool soon)
{
	int64_t wait_ns = a->stopping ? HW_PACE_WAIT_MAX_NS : hw_pace_wait_ns(a->monitor, now);
	int64_t status_ms = hw_retained_wait_ms(&a->status), discovery_ms = hw_retained_wait_ms(&a->discovery);
	if (status_ms < 0 || (discovery_ms >= 0 && discovery_ms < status_ms))
		status_ms = discovery_ms;
	if (status_ms >= 0 && status_ms * HW_NS_PER_MS < wait_ns)
		wait_ns = status_ms * HW_NS_PER_MS;
	if (a->held && wait_ns < HELD_NS)
		wait_ns = HELD_NS;
	if (soon || is_unread(a))
		wait_ns = 0;
	struct timeval tv = {wait_ns / HW_NS_PER_S, (wait_ns % HW_NS_PER_S + 999) / 1000};
	/* The tick of each second is planned too; without memory for this timer it is what the loop wakes by. */
	bool set = event_add(a->due, &tv) == 0;
	hw_pace_sleeps(&a->pace, now.mono, set && wait_ns < HW_NS_PER_S ? wait_ns : HW_NS_PER_S);
}

/*
 * A monitor that stops has stopped listening: whatever it would conclude from silence now would be wrong. But what it
 * is told until its end, a DELETE above all, is carried out and owed like anything else.
 */
unsigned hw_app_drain(struct hw_app *a, struct hw_now now, unsigned budget)
{
	struct hw_out out;
	if (a->barriers.publisher)
		hw_monitor_barrier_taken(a->monitor, (struct hw_mono){hw_publisher_answered_ns(a->barriers.publisher)});
	while (a->stopping ? hw_monitor_caused(a->monitor, &out) : hw_monitor_next(a->monitor, now, &budget, &out))
		hw_app_dispatch(a, now, &out);
	return budget;
}

/*
 * How many devices may be judged before Redis has written more. What is judged goes through a bounded ring, and a
 * device that is not judged yet may still be heard: so a million deaths wait here and not there. But that holds only
 * while Redis gets on; the wheel does not wait for one that is away, or stands still. Nor does it wait for what
 * heartbeats have put there: when everybody returns, those who die beside it are found as ever, while there is room.
 */
static unsigned store_room(struct hw_app *a, struct hw_now now)
{
	if (!a->redis)
		return UINT_MAX;
	const struct hw_redis_stats *s = hw_redis_stats(a->redis);
	if (s->waiting == 0 || s->done != a->store_done) {
		a->store_done = s->done;
		a->store_moved = now.mono;
	}
	if (!hw_redis_up(a->redis) || now.mono.ns - a->store_moved.ns > STORE_PATIENCE_NS)
		return UINT_MAX;
	uint64_t room = s->waiting_ends < STORE_AHEAD ? STORE_AHEAD - s->waiting_ends : 0;
	return (unsigned)(room < s->room ? room : s->room);
}

/* Lets the core judge as many devices as may be judged in this turn. Whether there is more to do right away. */
static bool judge(struct hw_app *a, struct hw_now now)
{
	unsigned room = store_room(a, now), budget = room < a->looks_left ? room : a->looks_left;
	a->held = room == 0 && !a->stopping;
	unsigned left = hw_app_drain(a, now, budget);
	a->looks_left -= budget - left;
	return left == 0 && !a->held && !a->stopping;
}

/* What Redis answers may be the first that is looked at behind a standstill: that is noticed before anything is judged,
 * and before the next wake-up is planned. */
void hw_app_turn(struct hw_app *a)
{
	struct hw_now now = a->turn_began.ns ? hw_app_now() : hw_app_woke(a);
	bool more = judge(a, now);
	if (a->releasing)
		more |= hw_app_release(a, now);
	hw_app_cluster_turn(a, now);
	if (a->publisher) {
		hw_app_presence(a, now);
		more |= hw_retained_pump(&a->status, now, &a->statuses_left);
		more |= hw_retained_pump(&a->discovery, now, &a->statuses_left);
		hw_publisher_flush(a->publisher);
		hw_publisher_flush(a->barriers.publisher);
	}
	if (a->turn_began.ns)
		hw_histogram_add(&a->turn, (double)(hw_app_now().mono.ns - a->turn_began.ns) / 1e9);
	a->turn_began.ns = 0;
	plan(a, now, more);
	if (a->looks_left == 0 || a->statuses_left == 0 || hw_app_feed_is_spent(a))
		hw_loop_end_turn(&a->loop);
}

void hw_app_turn_begins(void *arg)
{
	struct hw_app *a = arg;
	a->looks_left = LOOKS_A_TURN;
	a->statuses_left = STATUSES_A_TURN;
	for (unsigned i = 0; i < a->n_readers; i++)
		a->reader[i].in_turn = 0;
}

void hw_app_turned(void *arg, double cpu_s)
{
	struct hw_app *a = arg;
	hw_histogram_add(&a->turn_cpu, cpu_s);
}

int hw_app_run(struct hw_app *a)
{
	hw_log(a->log, HW_LOG_NOTICE,
	       "heartwheeld " HW_VERSION " watches as node '%s', %zu group%s, broker %s:%d, store %s",
	       a->start->node_id, a->start->n_groups, a->start->n_groups == 1 ? "" : "s", a->start->mqtt.host,
	       (int)a->start->mqtt.port, a->start->store == HW_STORE_REDIS ? "redis" : "memory");
	hw_app_turn(a);
	int rc = hw_loop_run(&a->loop);
	if (rc < 0)
		hw_log(a->log, HW_LOG_ERROR, "the event loop failed");
	else
		hw_log(a->log, HW_LOG_NOTICE, "stopped");
	return rc < 0 ? 1 : a->failed;
}

/* SPDX-License-Identifier: MIT */
/* The turns of the loop. A turn lasts from one poll for events to the next. Several callbacks may run in it, and
 * each may call hw_app_turn() at its end. The budgets are for the whole turn. What is left is done in the next turn. */
#include "turn.h"

#include <errno.h>
#include <event2/event.h>
#include <limits.h>
#include <stdlib.h>

#include "daemon/broker/broker.h"
#include "daemon/cluster/cluster.h"
#include "daemon/retained/presence.h"
#include "daemon/retained/published.h"
#include "daemon/retained/retained.h"
#include "daemon/store/pending.h"
#include "fanout.h"
#include "heartwheel/pace.h"
#include "wall_clock.h"

#define CHECKS_A_TURN   1024 /* devices checked per turn: about a millisecond */
#define STATUSES_A_TURN 512
/* While at most this many transitions to offline wait for Redis, other devices are judged. Redis writes them in some
 * tenths of a second. */
#define STORE_AHEAD       16384
#define STORE_PATIENCE_NS HW_NS_PER_S
#define HELD_NS           (5 * HW_NS_PER_MS) /* Redis usually answers earlier, which ends the wait */

static const double detection_bounds[] = {.01, .02, .033, .05, .1, .25, 1, 5};
static const double turn_bounds[] = {.0001, .0005, .001, .005, .01, .05, .1, .5, 1};
static const double cpu_bounds[] = {.0005, .001, .002, .003, .004, .005, .006, .008, .01, .02, .05, .1};

struct hw_app_turn {
	struct event *due; /* owned */
	struct hw_pace pace;
	struct hw_mono began; /* when the first callback of this turn began; 0: hw_app_turn() has run since then */
	unsigned checks_left, statuses_left; /* left in this turn: checks of devices, statuses */
	uint64_t store_done;                 /* the count of Redis' confirmations at the last check */
	struct hw_mono store_moved;          /* when the count of stored writes last grew, or when no write was
	                                      * pending */
	bool held;                           /* no device is judged until Redis has confirmed more writes */
	struct hw_app_turn_metrics metrics;
};

int hw_app_turn_new(struct hw_app *a, event_callback_fn on_due)
{
	struct hw_app_turn *t = a->turn = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->metrics = (struct hw_app_turn_metrics){
		.detection = {.bounds = detection_bounds, .n = sizeof(detection_bounds) / sizeof(*detection_bounds)},
		.turn = {.bounds = turn_bounds, .n = sizeof(turn_bounds) / sizeof(*turn_bounds)},
		.cpu = {.bounds = cpu_bounds, .n = sizeof(cpu_bounds) / sizeof(*cpu_bounds)}};
	t->due = evtimer_new(a->loop.base, on_due, a);
	return t->due ? 0 : -ENOMEM;
}

void hw_app_turn_free(struct hw_app *a)
{
	if (a->turn && a->turn->due)
		event_free(a->turn->due);
	free(a->turn);
}

const struct hw_app_turn_metrics *hw_app_turn_metrics(const struct hw_app *a)
{
	return &a->turn->metrics;
}

void hw_app_turn_detected(struct hw_app *a, int64_t delay_ns)
{
	hw_histogram_add(&a->turn->metrics.detection, (double)delay_ns / 1e9);
}

/* --- waking up ------------------------------------------------------------------------------------------------- */

static void was_suspended(struct hw_app *a, struct hw_now now, const struct hw_pace_woke *w)
{
	hw_log(a->log, HW_LOG_WARNING, "the machine was suspended for %.1f s", (double)w->slept_ns / 1e9);
	hw_monitor_suspended(a->monitor, now, w->since);
	hw_app_wall_clock_tick(a); /* the monotonic clock does not count the suspension */
}

static void has_stalled(struct hw_app *a, struct hw_now now, const struct hw_pace_woke *w)
{
	hw_monitor_stall(a->monitor, now, w->planned);
	hw_app_feed_stalled(a);
}

/* After a suspension, BOOTTIME is ahead of MONOTONIC. */
struct hw_now hw_app_woke(struct hw_app *a)
{
	struct hw_now now = hw_app_now();
	a->turn->metrics.wakeups++;
	a->turn->began = now.mono;
	struct hw_pace_woke w = hw_pace_woke(&a->turn->pace, now.mono, hw_app_booted_ns() - now.mono.ns,
	                                     a->start->stall_after_ms * HW_NS_PER_MS);
	if (w.suspended)
		was_suspended(a, now, &w);
	if (w.stalled)
		has_stalled(a, now, &w);
	return now;
}

void hw_app_schedule_turn(struct hw_app *a)
{
	event_active(a->turn->due, EV_TIMEOUT, 0);
}

/* --- a turn --------------------------------------------------------------------------------------------------- */

/* Sets the timer, and stores when the loop should be back. */
static void plan(struct hw_app *a, struct hw_now now, bool soon)
{
	int64_t wait_ns = a->life.stopping ? HW_PACE_WAIT_MAX_NS : hw_pace_wait_ns(a->monitor, now);
	int64_t status_ms = hw_app_retained_wait_ms(a);
	if (status_ms >= 0 && status_ms * HW_NS_PER_MS < wait_ns)
		wait_ns = status_ms * HW_NS_PER_MS;
	int64_t published_ms = hw_app_published_wait_ms(a, now);
	if (published_ms >= 0 && published_ms * HW_NS_PER_MS < wait_ns)
		wait_ns = published_ms * HW_NS_PER_MS;
	if (a->turn->held && wait_ns < HELD_NS)
		wait_ns = HELD_NS;
	if (soon || hw_app_feed_is_unread(a))
		wait_ns = 0;
	struct timeval tv = {wait_ns / HW_NS_PER_S, (wait_ns % HW_NS_PER_S + 999) / 1000};
	/* If there is no memory for the timer, the loop wakes up at the next tick, within a second. */
	bool set = event_add(a->turn->due, &tv) == 0;
	hw_pace_sleeps(&a->turn->pace, now.mono, set && wait_ns < HW_NS_PER_S ? wait_ns : HW_NS_PER_S);
}

/* Takes the core's output and passes it on. A monitor that is stopping reads no heartbeats, so silence proves
 * nothing and no device is judged. But requests that it still receives, such as a DELETE, are carried out, and their
 * writes are pending as usual. */
unsigned hw_app_drain(struct hw_app *a, struct hw_now now, unsigned budget)
{
	struct hw_out out;
	hw_app_broker_answers(a);
	while (a->life.stopping ? hw_monitor_caused(a->monitor, &out) : hw_monitor_next(a->monitor, now, &budget, &out))
		hw_app_dispatch(a, now, &out);
	return budget;
}

/*
 * Returns how many devices may be judged before Redis has confirmed more writes. Transitions pass through a ring of
 * limited size, and a device that waits to be judged may still send a heartbeat. So if a million devices are due, they
 * wait in the core, and not in the ring.
 *
 * The core waits only while Redis makes progress, and not while Redis is unreachable or stands still. Nor does it wait
 * for writes that heartbeats caused. So when a whole fleet returns, other devices still become offline in time, as long
 * as the ring has room.
 */
static unsigned store_room(struct hw_app *a, struct hw_now now)
{
	if (!a->redis)
		return UINT_MAX;
	const struct hw_redis_stats *s = hw_redis_stats(a->redis);
	if (s->waiting == 0 || s->done != a->turn->store_done) {
		a->turn->store_done = s->done;
		a->turn->store_moved = now.mono;
	}
	if (!hw_redis_up(a->redis) || now.mono.ns - a->turn->store_moved.ns > STORE_PATIENCE_NS)
		return UINT_MAX;
	uint64_t room = s->waiting_ends < STORE_AHEAD ? STORE_AHEAD - s->waiting_ends : 0;
	return (unsigned)(room < s->room ? room : s->room);
}

/* Lets the core judge as many devices as this turn allows. Returns whether more can be done at once. */
static bool judge(struct hw_app *a, struct hw_now now)
{
	unsigned room = store_room(a, now), budget = room < a->turn->checks_left ? room : a->turn->checks_left;
	a->turn->held = room == 0 && !a->life.stopping;
	unsigned left = hw_app_drain(a, now, budget);
	a->turn->checks_left -= budget - left;
	return left == 0 && !a->turn->held && !a->life.stopping;
}

/* Runs the rest of a turn. After this process stood still, an answer of Redis may be the first event. So
 * hw_app_woke() must detect the stall before any device is judged, and before the next wake-up is planned. */
void hw_app_turn(struct hw_app *a)
{
	struct hw_now now = a->turn->began.ns ? hw_app_now() : hw_app_woke(a);
	bool more = judge(a, now);
	more |= hw_app_release_on(a, now);
	hw_app_cluster_turn(a, now);
	if (hw_app_publisher(a)) {
		hw_app_presence(a, now);
		more |= hw_app_retained_pump(a, now, &a->turn->statuses_left);
		hw_app_broker_flush(a);
	}
	more |= hw_app_published_turn(a, now);
	if (a->turn->began.ns)
		hw_histogram_add(&a->turn->metrics.turn, (double)(hw_app_now().mono.ns - a->turn->began.ns) / 1e9);
	a->turn->began.ns = 0;
	plan(a, now, more);
	if (a->turn->checks_left == 0 || a->turn->statuses_left == 0 || hw_app_feed_is_spent(a))
		hw_loop_end_turn(&a->loop);
}

void hw_app_turn_begins(void *arg)
{
	struct hw_app *a = arg;
	a->turn->checks_left = CHECKS_A_TURN;
	a->turn->statuses_left = STATUSES_A_TURN;
	hw_app_feed_begin_turn(a);
}

void hw_app_turned(void *arg, double cpu_s)
{
	struct hw_app *a = arg;
	hw_histogram_add(&a->turn->metrics.cpu, cpu_s);
}

int hw_app_run(struct hw_app *a)
{
	hw_log(a->log, HW_LOG_NOTICE,
	       "heartwheeld " HW_VERSION " is running: node '%s', %zu group%s, broker %s:%d, store %s",
	       a->start->node_id, a->start->n_groups, a->start->n_groups == 1 ? "" : "s", a->start->mqtt.host,
	       (int)a->start->mqtt.port, a->start->store == HW_STORE_REDIS ? "redis" : "memory");
	hw_app_turn(a);
	int rc = hw_loop_run(&a->loop);
	if (rc < 0)
		hw_log(a->log, HW_LOG_ERROR, "the event loop failed: heartwheeld ends");
	else
		hw_log(a->log, HW_LOG_NOTICE, "stopped");
	return rc < 0 ? 1 : a->life.failed;
}

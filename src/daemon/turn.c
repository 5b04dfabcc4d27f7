/* SPDX-License-Identifier: MIT */
/*
 * The loop, a turn at a time. A turn is what happens between two looks at what is readable: several callbacks, each of
 * which may end in hw_app_turn(). What they may spend is bounded for the turn as a whole; the rest goes on in the next
 * one.
 */
#include <event2/event.h>
#include <limits.h>
#include <string.h>
#include <time.h>

#include "app.h"

#define LOOKS_A_TURN      1024 /* at devices: about a millisecond */
#define STATUSES_A_TURN   512
#define STORE_AHEAD       16384 /* entries that wait for Redis while devices are judged: some tenths of a second's worth */
#define STORE_PATIENCE_NS HW_NS_PER_S
#define HELD_NS           (5 * HW_NS_PER_MS) /* mostly Redis' next answer comes before */

/* Sets the one timer; and notes by when the loop should be back. */
static void plan(struct hw_app *a, struct hw_now now, bool soon)
{
	struct hw_mono at;
	int64_t wait_ns = 60 * HW_NS_PER_S, status_ms = hw_owed_wait_ms(&a->status);
	int64_t discovery_ms = hw_owed_wait_ms(&a->discovery);
	if (hw_monitor_due(a->monitor, now, &at))
		wait_ns = at.ns - now.mono.ns;
	if (status_ms < 0 || (discovery_ms >= 0 && discovery_ms < status_ms))
		status_ms = discovery_ms;
	if (status_ms >= 0 && status_ms * HW_NS_PER_MS < wait_ns)
		wait_ns = status_ms * HW_NS_PER_MS;
	if (a->held && wait_ns < HELD_NS)
		wait_ns = HELD_NS;
	if (soon || wait_ns < 0)
		wait_ns = 0;
	struct timeval tv = {wait_ns / HW_NS_PER_S, (wait_ns % HW_NS_PER_S + 999) / 1000};
	event_add(a->due, &tv);
	/* The tick of each second is planned too. */
	a->planned = hw_mono_add(now.mono, wait_ns < HW_NS_PER_S ? wait_ns : HW_NS_PER_S);
}

static void drain(struct hw_app *a, struct hw_now now, unsigned *left)
{
	struct hw_out out;
	while (hw_monitor_next(a->monitor, now, left, &out))
		hw_app_dispatch(a, now, &out);
}

void hw_app_drain(struct hw_app *a, struct hw_now now)
{
	unsigned none = 0;
	drain(a, now, &none);
}

/*
 * How many devices may be judged before Redis has written more. What is judged goes through a bounded ring, and who is
 * not judged yet may still be heard: so a million deaths wait here and not there. But that holds only while Redis gets
 * on; the wheel does not wait for one that is away, or stands still.
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
	return s->waiting < STORE_AHEAD ? (unsigned)(STORE_AHEAD - s->waiting) : 0;
}

/* Whether there is more right away. */
static bool look(struct hw_app *a, struct hw_now now)
{
	unsigned room = store_room(a, now), budget = room < a->looks_left ? room : a->looks_left, left = budget;
	a->held = room == 0;
	drain(a, now, &left);
	a->looks_left -= budget - left;
	return left == 0 && !a->held;
}

void hw_app_turn(struct hw_app *a)
{
	struct hw_now now = hw_app_now();
	/* A monitor that stops has stopped listening: whatever it would conclude from silence now would be wrong. */
	bool more = !a->stopping && look(a, now);
	if (a->releasing)
		more |= hw_app_release(a, now);
	if (a->publisher) {
		hw_app_presence(a, now);
		more |= hw_owed_pump(&a->status, now, &a->statuses_left);
		more |= hw_owed_pump(&a->discovery, now, &a->statuses_left);
		hw_publisher_flush(a->publisher);
	}
	if (a->turn_began.ns)
		hw_histogram_add(&a->turn, (double)(hw_app_now().mono.ns - a->turn_began.ns) / 1e9);
	a->turn_began.ns = 0;
	plan(a, now, more);
}

static double cpu_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* One turn by one, so that each is timed. CPU time, since how long the machine was busy with others is their doing. */
static int run(struct hw_app *a)
{
	int rc = 0;
	double before = cpu_s();
	while (rc == 0 && !event_base_got_break(a->base)) {
		a->looks_left = LOOKS_A_TURN;
		a->statuses_left = STATUSES_A_TURN;
		rc = event_base_loop(a->base, EVLOOP_ONCE);
		double after = cpu_s();
		hw_histogram_add(&a->turn_cpu, after - before);
		before = after;
	}
	return rc;
}

int hw_app_run(struct hw_app *a)
{
	hw_log(a->log, HW_LOG_NOTICE,
	       "heartwheeld " HW_VERSION " watches as node '%s', %zu group%s, broker %s:%d, store %s",
	       a->start->node_id, a->start->n_groups, a->start->n_groups == 1 ? "" : "s", a->start->mqtt_host,
	       (int)a->start->mqtt_port, a->start->store == HW_STORE_REDIS ? "redis" : "memory");
	hw_app_turn(a);
	int rc = run(a);
	if (rc < 0)
		hw_log(a->log, HW_LOG_ERROR, "the event loop failed");
	else
		hw_log(a->log, HW_LOG_NOTICE, "stopped");
	return rc < 0 ? 1 : 0;
}

/* SPDX-License-Identifier: MIT */
/* See alone.h. */
#include "alone.h"

#include "wake.h"

#define SLOWEST_NS (13 * HW_NS_PER_S) /* a lease is at most a minute, and a node renews five times in it */

static void load(struct hw_app *a)
{
	a->alone.waits = false;
	hw_redis_load(a->redis);
}

static void wait_for_life(struct hw_app *a, struct hw_now now, uint64_t hash)
{
	a->alone.seen = true;
	a->alone.hash = hash;
	a->alone.until = hw_mono_add(now.mono, SLOWEST_NS);
	hw_log(a->log, HW_LOG_NOTICE,
	       "Redis: nodes of a cluster are entered in %snodes: looking for up to %d s whether they live",
	       a->start->redis.key_prefix, (int)(SLOWEST_NS / HW_NS_PER_S));
}

static void refuse(struct hw_app *a)
{
	hw_log(a->log, HW_LOG_ERROR,
	       "nodes of a cluster watch with [redis] key_prefix = %s: set [cluster] mode = mirror as they have it, or "
	       "another key_prefix",
	       a->start->redis.key_prefix);
	a->failed = true;
	hw_loop_stop(&a->loop);
}

static void on_nodes(void *arg, bool any, uint64_t hash)
{
	struct hw_app *a = arg;
	struct hw_now now = hw_app_now();
	if (!a->alone.waits)
		return;
	if (!any || (a->alone.seen && hash == a->alone.hash && now.mono.ns >= a->alone.until.ns))
		load(a);
	else if (!a->alone.seen)
		wait_for_life(a, now, hash);
	else if (hash != a->alone.hash)
		refuse(a);
}

void hw_app_alone_start(struct hw_app *a)
{
	a->alone.waits = true;
}

void hw_app_alone_look(struct hw_app *a)
{
	if (a->alone.waits)
		(void)hw_redis_look_at_nodes(a->redis, on_nodes);
}

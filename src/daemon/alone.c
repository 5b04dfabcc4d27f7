/* SPDX-License-Identifier: MIT */
/* See alone.h. */
#include "alone.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "dial.h"
#include "heartwheel/fnv.h"
#include "run/options.h"
#include "wake.h"

#define SLOWEST_NS  (13 * HW_NS_PER_S) /* a lease is at most a minute, and a node renews five times in it */
#define PATIENCE_NS (15 * HW_NS_PER_S) /* a Redis that answers once in some seconds never shows whether one lives */

/* --- going on ----------------------------------------------------------------------------------------------------- */

static void load(struct hw_app *a)
{
	if (a->alone.nodes || a->alone.monitors || a->failed)
		return;
	if (a->alone.late)
		hw_redis_load_late(a->redis); /* it has not watched until now */
	else
		hw_redis_load(a->redis);
}

/* Its entry is removed first, so that no successor waits for it; that takes until the next tick at most. */
static void stop(struct hw_app *a, int status)
{
	a->failed = status;
	if (hw_app_alone_left(a))
		hw_loop_stop(&a->loop);
}

/* --- nodes of a cluster ------------------------------------------------------------------------------------------- */

static void nodes_known(struct hw_app *a)
{
	a->alone.nodes = false;
	load(a);
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
	stop(a, EXIT_FAILURE);
}

static void on_nodes(void *arg, bool any, uint64_t hash)
{
	struct hw_app *a = arg;
	struct hw_now now = hw_app_now();
	if (!a->alone.nodes || a->failed)
		return;
	if (!any || (a->alone.seen && hash == a->alone.hash && now.mono.ns >= a->alone.until.ns))
		nodes_known(a);
	else if (!a->alone.seen)
		wait_for_life(a, now, hash);
	else if (hash != a->alone.hash)
		refuse(a);
}

/* --- another monitor ---------------------------------------------------------------------------------------------- */

static void monitors_known(struct hw_app *a)
{
	if (!a->alone.monitors)
		return;
	a->alone.monitors = false;
	a->alone.late = a->alone.told && !a->publisher;
	hw_app_dial_late(a);
	load(a);
}

static void wait_for_monitor(struct hw_app *a, const struct hw_redis_monitor *older)
{
	struct hw_now now = hw_app_now();
	if (!a->alone.monitors)
		return;
	if (!a->alone.told) {
		a->alone.told = true;
		a->alone.waits_for = hw_mono_add(now.mono, PATIENCE_NS);
		hw_log(a->log, HW_LOG_NOTICE,
		       "Redis: monitor '%s' (pid %ld on %s) is entered in %smonitors: looking for some seconds "
		       "whether it still runs",
		       older->node_id, older->pid, older->host, a->start->redis.key_prefix);
	}
	if (now.mono.ns >= a->alone.waits_for.ns)
		monitors_known(a);
}

static void meet(struct hw_app *a, const struct hw_redis_monitor *older)
{
	const char *prefix = a->start->redis.key_prefix;
	if (a->start->redis.exclusive) {
		hw_log(a->log, HW_LOG_ERROR,
		       "monitor '%s' (pid %ld on %s) already works with [redis] key_prefix '%s'; this one stops. "
		       "Stop the other one, set another key_prefix and node_id, or make both nodes by [cluster] mode = "
		       "mirror",
		       older->node_id, older->pid, older->host, prefix);
		stop(a, HW_EXIT_IN_USE);
	} else if (!a->alone.shared_told) {
		a->alone.shared_told = true;
		hw_log(a->log, HW_LOG_WARNING,
		       "monitor '%s' (pid %ld on %s) also works with [redis] key_prefix '%s'; each transition is "
		       "written and published twice; see [redis] exclusive",
		       older->node_id, older->pid, older->host, prefix);
	}
}

static void on_monitors(void *arg, enum hw_exclusive_verdict v, const struct hw_redis_monitor *older)
{
	struct hw_app *a = arg;
	if (a->failed && hw_app_alone_left(a))
		hw_loop_stop(&a->loop);
	if (a->stopping || a->failed)
		return;
	if (v == HW_EXCLUSIVE_LATER)
		meet(a, older);
	else if (v == HW_EXCLUSIVE_WAIT)
		wait_for_monitor(a, older);
	else
		monitors_known(a);
}

/*
 * The lock of the pid file, which only one run holds at a time: the machine's boot, and the file with the time at which
 * it was made. 0: no such thing is known. The service's sandbox may hide the boot's id; the file's time is enough then.
 */
static uint64_t place_of(const char *pid_file)
{
	struct {
		char boot[40];
		uint64_t device, inode, made_s, made_ns;
	} place = {0};
	struct statx st;
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	bool known = f && fgets(place.boot, sizeof(place.boot), f);
	if (f)
		fclose(f);
	if (statx(AT_FDCWD, pid_file, 0, STATX_INO | STATX_BTIME, &st) != 0)
		return 0;
	place.device = makedev(st.stx_dev_major, st.stx_dev_minor);
	place.inode = st.stx_ino;
	if (st.stx_mask & STATX_BTIME) {
		known = true;
		place.made_s = (uint64_t)st.stx_btime.tv_sec;
		place.made_ns = st.stx_btime.tv_nsec;
	}
	return known ? hw_fnv64(HW_FNV64_BEGIN, &place, sizeof(place)) : 0;
}

/* --- alone.h ------------------------------------------------------------------------------------------------------ */

void hw_app_alone_start(struct hw_app *a)
{
	a->alone.nodes = true;
	a->alone.monitors = a->start->redis.exclusive;
}

uint64_t hw_app_alone_place(const struct hw_app *a)
{
	return place_of(a->start->pid_file);
}

void hw_app_alone_look(struct hw_app *a)
{
	if (a->start->cluster_mode != HW_CLUSTER_OFF)
		return;
	hw_redis_enter(a->redis, on_monitors);
	if (a->alone.nodes)
		(void)hw_redis_look_at_nodes(a->redis, on_nodes);
}

void hw_app_alone_tick(struct hw_app *a)
{
	if (a->failed)
		hw_loop_stop(&a->loop);
	else if (a->redis)
		hw_app_alone_look(a);
}

void hw_app_alone_unlinked(struct hw_app *a)
{
	a->alone.told = false;
	if (a->alone.monitors)
		hw_app_dial_late(a);
}

bool hw_app_alone_left(struct hw_app *a)
{
	return !a->redis || hw_redis_leave(a->redis);
}

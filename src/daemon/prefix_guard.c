/* SPDX-License-Identifier: MIT */
/* See prefix_guard.h. */
#include "prefix_guard.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "cluster.h"
#include "cluster_redis.h"
#include "dial.h"
#include "heartwheel/fnv.h"
#include "run/options.h"
#include "turn.h"
#include "wake.h"

#define SLOWEST_NS  (13 * HW_NS_PER_S) /* a lease is at most a minute, and a node renews five times in it */
#define PATIENCE_NS (15 * HW_NS_PER_S) /* a Redis that answers once in some seconds never shows whether one lives */

static bool is_node(const struct hw_app *a)
{
	return a->start->cluster_mode != HW_CLUSTER_OFF;
}

/* --- going on ----------------------------------------------------------------------------------------------------- */

static void load(struct hw_app *a)
{
	if (a->alone.late)
		hw_redis_load_late(a->redis); /* it has not watched until now */
	else
		hw_redis_load(a->redis);
}

/* What it looked for is known. */
static void go_on(struct hw_app *a)
{
	if (a->alone.nodes || a->alone.monitors || a->failed)
		return;
	if (is_node(a)) {
		hw_app_soon(a);
		return;
	}
	a->alone.late = (a->alone.told || a->alone.seen) && !a->publisher;
	hw_app_dial_late(a);
	load(a);
}

static bool has_left(struct hw_app *a)
{
	return hw_app_cluster_stopped(a) && hw_prefix_guard_has_left(a);
}

/* Its entry is removed first, so that no other run waits for it; that takes a tick or two at most. */
static void stop(struct hw_app *a, int status)
{
	a->failed = status;
	hw_app_cluster_stop(a, hw_app_now());
	if (has_left(a))
		hw_loop_stop(&a->loop);
	else
		hw_app_soon(a);
}

/* --- nodes of a cluster ------------------------------------------------------------------------------------------- */

static void nodes_known(struct hw_app *a)
{
	a->alone.nodes = false;
	go_on(a);
}

static void wait_for_life(struct hw_app *a, struct hw_now now)
{
	a->alone.until = hw_mono_add(now.mono, SLOWEST_NS);
	hw_log(a->log, HW_LOG_NOTICE,
	       "Redis: nodes of a cluster are entered in %snodes: looking for up to %d s whether they live",
	       a->start->redis.key_prefix, (int)(SLOWEST_NS / HW_NS_PER_S));
}

static void meet_nodes(struct hw_app *a)
{
	const char *prefix = a->start->redis.key_prefix;
	if (a->alone.nodes) {
		hw_log(a->log, HW_LOG_ERROR,
		       "nodes of a cluster already work with [redis] key_prefix '%s'; this monitor stops. "
		       "Set [cluster] mode as they have it, or stop them, or set another key_prefix and node_id",
		       prefix);
		stop(a, HW_EXIT_IN_USE);
	} else if (!a->alone.nodes_told) {
		a->alone.nodes_told = true;
		hw_log(a->log, HW_LOG_ERROR,
		       "nodes of a cluster also work with [redis] key_prefix '%s'; each transition is written and "
		       "published twice; stop them or this monitor, or set another key_prefix and node_id",
		       prefix);
	}
}

/* Entries that change between two looks are renewed. */
static void on_nodes(void *arg, bool any, uint64_t hash)
{
	struct hw_app *a = arg;
	struct hw_now now = hw_app_now();
	if (a->stopping || a->failed)
		return;
	bool seen = a->alone.seen, live = any && seen && hash != a->alone.hash;
	a->alone.seen |= any;
	a->alone.hash = hash;
	a->alone.nodes_told &= any;
	if (live)
		meet_nodes(a);
	else if (a->alone.nodes && any && !seen)
		wait_for_life(a, now);
	else if (a->alone.nodes && (!any || now.mono.ns >= a->alone.until.ns))
		nodes_known(a);
}

/* --- another monitor ---------------------------------------------------------------------------------------------- */

/* A node looks once more after it has joined: of a node and a monitor that start together one sees the other then. */
static void monitors_known(struct hw_app *a)
{
	if (!a->alone.monitors)
		return;
	if (is_node(a) && !a->alone.joins) {
		a->alone.joins = true;
		hw_app_cluster_join(a);
	} else if (!is_node(a) || a->alone.as_member) {
		a->alone.monitors = false;
		go_on(a);
	}
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

/* A node that has begun its work goes on: a single monitor that starts then is the one that stops. */
static void meet(struct hw_app *a, const struct hw_redis_monitor *older)
{
	const char *prefix = a->start->redis.key_prefix, *kind = is_node(a) ? " without [cluster]" : "";
	bool works = is_node(a) && !a->alone.monitors, exclusive = a->start->redis.exclusive;
	if (exclusive && !works) {
		hw_log(a->log, HW_LOG_ERROR,
		       "monitor '%s' (pid %ld on %s)%s already works with [redis] key_prefix '%s'; this one stops. "
		       "Stop the other one, set another key_prefix and node_id, or make both nodes by [cluster] mode = "
		       "mirror",
		       older->node_id, older->pid, older->host, kind, prefix);
		stop(a, HW_EXIT_IN_USE);
	} else if (!a->alone.shared_told) {
		a->alone.shared_told = true;
		hw_log(a->log, exclusive ? HW_LOG_ERROR : HW_LOG_WARNING,
		       "monitor '%s' (pid %ld on %s)%s also works with [redis] key_prefix '%s'; each transition is "
		       "written and published twice; see [redis] exclusive",
		       older->node_id, older->pid, older->host, kind, prefix);
	}
}

static void on_monitors(void *arg, enum hw_exclusive_verdict v, const struct hw_redis_monitor *older)
{
	struct hw_app *a = arg;
	if (a->failed && has_left(a))
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

/* --- prefix_guard.h
 * ------------------------------------------------------------------------------------------------------ */

void hw_prefix_guard_start(struct hw_app *a)
{
	a->alone.nodes = !is_node(a);
	a->alone.monitors = a->start->redis.exclusive;
	a->alone.joins = !a->alone.monitors;
}

bool hw_prefix_guard_is_waiting(const struct hw_app *a)
{
	return a->alone.nodes || a->alone.monitors;
}

void hw_prefix_guard_rejoin(struct hw_app *a)
{
	a->alone.monitors = false;
	a->alone.joins = true;
}

bool hw_prefix_guard_blocks(const struct hw_app *a)
{
	return a->alone.monitors && a->redis_up && (!a->alone.joins || hw_nodes_is_member(hw_app_nodes(a)));
}

uint64_t hw_prefix_guard_host(const struct hw_app *a)
{
	return place_of(a->start->pid_file);
}

void hw_prefix_guard_check(struct hw_app *a)
{
	if (!is_node(a)) {
		hw_redis_enter(a->redis, on_monitors);
		(void)hw_redis_look_at_nodes(a->redis, on_nodes);
	} else if (hw_redis_look_at_monitors(a->redis, on_monitors)) {
		a->alone.as_member = a->cluster && hw_nodes_is_member(hw_app_nodes(a));
	}
}

void hw_prefix_guard_tick(struct hw_app *a)
{
	if (a->failed && (a->alone.ends || has_left(a)))
		hw_loop_stop(&a->loop);
	a->alone.ends = a->failed != 0;
	if (a->redis)
		hw_prefix_guard_check(a);
}

void hw_prefix_guard_unlinked(struct hw_app *a)
{
	a->alone.told = false;
	if (!is_node(a) && hw_prefix_guard_is_waiting(a))
		hw_app_dial_late(a);
}

bool hw_prefix_guard_has_left(struct hw_app *a)
{
	return !a->redis || hw_redis_leave(a->redis);
}

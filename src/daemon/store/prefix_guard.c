/* SPDX-License-Identifier: MIT */
#include "prefix_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "daemon/broker/broker.h"
#include "daemon/cluster/cluster.h"
#include "daemon/loop/turn.h"
#include "heartwheel/fnv.h"
#include "run/options.h"
#include "store.h"

/* A lease is at most a minute, and a node renews its entry five times in a lease. */
#define SLOWEST_NS  (13 * HW_NS_PER_S)
#define PATIENCE_NS (15 * HW_NS_PER_S) /* bounds the wait if Redis answers too slowly to decide */

struct hw_prefix_guard {
	bool nodes, monitors;  /* checks that are not finished: for nodes of a cluster, and for an older monitor on
	                        * this prefix */
	bool joins, as_member; /* joins: this node may join; as_member: the node had joined before the last check for
	                        * monitors began */
	bool reported, shared_reported; /* what was logged: that this monitor waits for an older one; that another
	                                 * monitor uses the prefix */
	bool nodes_reported;            /* logged: nodes of a cluster on the prefix */
	bool ends;                      /* the daemon stops, and has waited for one tick */
	bool late;                      /* the daemon receives no messages before the checks are finished */
	struct hw_mono waits_for;       /* the end of the wait for an older monitor */
	bool seen;                      /* device:nodes has had entries */
	uint64_t hash;
	struct hw_mono until;
};

static bool is_node(const struct hw_app *a)
{
	return a->start->cluster_mode != HW_CLUSTER_OFF;
}

/* --- after the checks --------------------------------------------------------------------------------------------- */

static void load(struct hw_app *a)
{
	if (a->guard->late)
		hw_redis_load_late(a->redis); /* this node received no messages until now */
	else
		hw_redis_load(a->redis);
}

/* Continues the start once all checks are finished. */
static void go_on(struct hw_app *a)
{
	if (a->guard->nodes || a->guard->monitors || a->life.failed)
		return;
	if (is_node(a)) {
		hw_app_schedule_turn(a);
		return;
	}
	a->guard->late = (a->guard->reported || a->guard->seen) && !hw_app_publisher(a);
	hw_app_dial_late(a);
	load(a);
}

static bool has_left(struct hw_app *a)
{
	return hw_app_cluster_stopped(a) && hw_prefix_guard_has_left(a);
}

/* Removes this run's entry before the daemon stops, so that no other run waits for it. This takes at most two ticks. */
static void stop(struct hw_app *a, int status)
{
	a->life.failed = status;
	hw_app_cluster_stop(a, hw_app_now());
	if (has_left(a))
		hw_loop_stop(&a->loop);
	else
		hw_app_schedule_turn(a);
}

/* --- nodes of a cluster ------------------------------------------------------------------------------------------- */

static void nodes_known(struct hw_app *a)
{
	a->guard->nodes = false;
	go_on(a);
}

static void wait_for_life(struct hw_app *a, struct hw_now now)
{
	a->guard->until = hw_mono_add(now.mono, SLOWEST_NS);
	hw_log(a->log, HW_LOG_NOTICE,
	       "Redis: %snodes lists nodes of a cluster; this monitor watches for up to %d s whether they still run",
	       a->start->redis.key_prefix, (int)(SLOWEST_NS / HW_NS_PER_S));
}

static void meet_nodes(struct hw_app *a)
{
	const char *prefix = a->start->redis.key_prefix;
	if (a->guard->nodes) {
		hw_log(a->log, HW_LOG_ERROR,
		       "nodes of a cluster already work with [redis] key_prefix '%s'; this monitor stops. Set "
		       "[cluster] mode as those nodes have it, or stop those nodes, or set another key_prefix and "
		       "node_id",
		       prefix);
		stop(a, HW_EXIT_IN_USE);
	} else if (!a->guard->nodes_reported) {
		a->guard->nodes_reported = true;
		hw_log(a->log, HW_LOG_ERROR,
		       "nodes of a cluster also work with [redis] key_prefix '%s'; each transition is written and "
		       "published twice; stop those nodes or this monitor, or set another key_prefix and node_id",
		       prefix);
	}
}

/* Handles the result of a check for nodes. If entries have changed between two checks, nodes run and have renewed
 * them. */
static void on_nodes(void *arg, bool any, uint64_t hash)
{
	struct hw_app *a = arg;
	struct hw_now now = hw_app_now();
	if (a->life.stopping || a->life.failed)
		return;
	bool seen = a->guard->seen, live = any && seen && hash != a->guard->hash;
	a->guard->seen |= any;
	a->guard->hash = hash;
	a->guard->nodes_reported &= any;
	if (live)
		meet_nodes(a);
	else if (a->guard->nodes && any && !seen)
		wait_for_life(a, now);
	else if (a->guard->nodes && (!any || now.mono.ns >= a->guard->until.ns))
		nodes_known(a);
}

/* --- another monitor ---------------------------------------------------------------------------------------------- */

/* Called when a check for monitors has ended. After the first check a node joins, and then it checks once more. So if a
 * node and a single monitor start at the same time, one of the two finds the other. */
static void monitors_known(struct hw_app *a)
{
	if (!a->guard->monitors)
		return;
	if (is_node(a) && !a->guard->joins) {
		a->guard->joins = true;
		hw_app_cluster_join(a);
	} else if (!is_node(a) || a->guard->as_member) {
		a->guard->monitors = false;
		go_on(a);
	}
}

static void wait_for_monitor(struct hw_app *a, const struct hw_redis_monitor *older)
{
	struct hw_now now = hw_app_now();
	if (!a->guard->monitors)
		return;
	if (!a->guard->reported) {
		a->guard->reported = true;
		a->guard->waits_for = hw_mono_add(now.mono, PATIENCE_NS);
		hw_log(a->log, HW_LOG_NOTICE,
		       "Redis: monitor '%s' (pid %ld on %s) is listed in %smonitors; this monitor watches for some "
		       "seconds whether that one still runs",
		       older->node_id, older->pid, older->host, a->start->redis.key_prefix);
	}
	if (now.mono.ns >= a->guard->waits_for.ns)
		monitors_known(a);
}

/* Called when an older monitor without [cluster] uses the prefix. A node that already works continues. A single monitor
 * that starts later must stop. */
static void meet(struct hw_app *a, const struct hw_redis_monitor *older)
{
	const char *prefix = a->start->redis.key_prefix, *kind = is_node(a) ? " without [cluster]" : "";
	bool works = is_node(a) && !a->guard->monitors, exclusive = a->start->redis.exclusive;
	if (exclusive && !works) {
		hw_log(a->log, HW_LOG_ERROR,
		       "monitor '%s' (pid %ld on %s)%s already works with [redis] key_prefix '%s'; this monitor stops. "
		       "Stop the other one, or set another key_prefix and node_id, or run both as nodes with [cluster] "
		       "mode = mirror",
		       older->node_id, older->pid, older->host, kind, prefix);
		stop(a, HW_EXIT_IN_USE);
	} else if (!a->guard->shared_reported) {
		a->guard->shared_reported = true;
		hw_log(a->log, exclusive ? HW_LOG_ERROR : HW_LOG_WARNING,
		       "monitor '%s' (pid %ld on %s)%s also works with [redis] key_prefix '%s'; each transition is "
		       "written and published twice; see [redis] exclusive",
		       older->node_id, older->pid, older->host, kind, prefix);
	}
}

static void on_monitors(void *arg, enum hw_exclusive_verdict v, const struct hw_redis_monitor *older)
{
	struct hw_app *a = arg;
	if (a->life.failed && has_left(a))
		hw_loop_stop(&a->loop);
	if (a->life.stopping || a->life.failed)
		return;
	if (v == HW_EXCLUSIVE_FIRST)
		hw_redis_withhold(a->redis, false);
	if (v == HW_EXCLUSIVE_LATER)
		meet(a, older);
	else if (v == HW_EXCLUSIVE_WAIT)
		wait_for_monitor(a, older);
	else
		monitors_known(a);
}

/*
 * Identifies the lock on the pid file, which only one run can hold at a time: a hash of the machine's boot id, the
 * file, and its creation time. 0: unknown. If the sandbox of a service hides the boot id, the creation time is enough.
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

/* --- prefix_guard.h --------------------------------------------------------------------------------------------- */

int hw_prefix_guard_new(struct hw_app *a)
{
	a->guard = calloc(1, sizeof(*a->guard));
	return a->guard ? 0 : -ENOMEM;
}

void hw_prefix_guard_start(struct hw_app *a)
{
	a->guard->nodes = !is_node(a);
	a->guard->monitors = a->start->redis.exclusive;
	a->guard->joins = !a->guard->monitors;
}

bool hw_prefix_guard_is_waiting(const struct hw_app *a)
{
	return a->guard->nodes || a->guard->monitors;
}

void hw_prefix_guard_rejoin(struct hw_app *a)
{
	a->guard->monitors = false;
	a->guard->joins = true;
}

bool hw_prefix_guard_lets_join(const struct hw_app *a)
{
	return a->guard->joins;
}

bool hw_prefix_guard_blocks(const struct hw_app *a)
{
	return a->guard->monitors && hw_app_redis_is_up(a) && (!a->guard->joins || hw_nodes_is_member(hw_app_nodes(a)));
}

uint64_t hw_prefix_guard_host(const struct hw_app *a)
{
	return place_of(a->start->pid_file);
}

void hw_prefix_guard_check(struct hw_app *a)
{
	if (!is_node(a)) {
		hw_redis_enter(a->redis, on_monitors);
		(void)hw_redis_read_nodes(a->redis, on_nodes);
	} else if (hw_redis_read_monitors(a->redis, on_monitors)) {
		a->guard->as_member = a->cluster && hw_nodes_is_member(hw_app_nodes(a));
	}
}

void hw_prefix_guard_tick(struct hw_app *a)
{
	if (a->life.failed && (a->guard->ends || has_left(a)))
		hw_loop_stop(&a->loop);
	a->guard->ends = a->life.failed != 0;
	if (a->redis)
		hw_prefix_guard_check(a);
}

void hw_prefix_guard_linked(struct hw_app *a)
{
	if (!is_node(a) && a->start->redis.exclusive && hw_redis_may_be_replaced(a->redis))
		hw_redis_withhold(a->redis, true);
	hw_prefix_guard_check(a);
}

void hw_prefix_guard_unlinked(struct hw_app *a)
{
	a->guard->reported = false;
	if (!is_node(a) && hw_prefix_guard_is_waiting(a))
		hw_app_dial_late(a);
}

bool hw_prefix_guard_has_left(struct hw_app *a)
{
	return !a->redis || hw_redis_leave(a->redis);
}

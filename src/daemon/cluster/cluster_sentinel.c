/* SPDX-License-Identifier: MIT */
/*
 * See cluster_sentinel.h. A Sentinel's answer counts until 3/5 of a lease after its request. After a network split, a
 * node needs longer to find another node silent. For readiness, older answers count too, so that one late answer does
 * not change the preferred owner.
 */
#include "cluster_sentinel.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "cluster_priv.h"
#include "daemon/loop/turn.h"
#include "daemon/store/store.h"
#include "link/sentinel.h"
#include "link/voices.h"

#define READY_LEASES   2
#define READY_LEAST_MS 5000

static struct hw_cluster_sentinel *sentinel_of(const struct hw_app *a)
{
	return &a->cluster->sentinel;
}

static void on_answer(void *arg)
{
	hw_app_schedule_turn(arg);
}

int hw_app_cluster_sentinel_start(struct hw_app *a)
{
	struct hw_cluster_sentinel *s = sentinel_of(a);
	const struct hw_redis_address *at = &hw_app_redis_conf(a)->at;
	*s = (struct hw_cluster_sentinel){.to_write = -1, .lag_s = -1, .confirmed = hw_app_now().mono};
	if (!hw_redis_address_is_asked_for(at))
		return 0;
	s->voices =
		hw_voices_new(a->loop.base, at->sentinels, at->master, a->start->cluster_lease_ms / 5, on_answer, a);
	return s->voices ? 0 : -ENOMEM;
}

void hw_app_cluster_sentinel_free(struct hw_app *a)
{
	hw_voices_free(sentinel_of(a)->voices);
}

/* --- which server is the master ----------------------------------------------------------------------------------- */

bool hw_app_cluster_voices(const struct hw_app *a, unsigned *confirm, unsigned *all)
{
	const struct hw_cluster_sentinel *s = sentinel_of(a);
	*all = *confirm = 0;
	if (!s->voices)
		return false;
	*all = hw_voices_all(s->voices);
	*confirm = hw_voices_for(s->voices, &a->cluster->redis.link.master, a->start->cluster_lease_ms * 3 / 5);
	return s->doubts;
}

bool hw_app_cluster_confirmed(struct hw_app *a, struct hw_now now)
{
	struct hw_cluster_sentinel *s = sentinel_of(a);
	unsigned confirm, all;
	hw_app_cluster_voices(a, &confirm, &all);
	if (!all)
		return true;
	bool most = 2 * confirm > all;
	if (most)
		s->confirmed = now.mono;
	hw_nodes_doubt(a->cluster->nodes, now, !most);
	int64_t bound_ms = READY_LEASES * a->start->cluster_lease_ms;
	bound_ms = bound_ms > READY_LEAST_MS ? bound_ms : READY_LEAST_MS;
	bool lately = now.mono.ns - s->confirmed.ns < bound_ms * HW_NS_PER_MS;
	if (lately == s->doubts) {
		s->doubts = !lately;
		hw_log(a->log, lately ? HW_LOG_NOTICE : HW_LOG_WARNING,
		       lately ? "nodes: %u of %u Sentinels confirm the master at %s: this node may claim again"
		              : "nodes: %u of %u Sentinels confirm the master at %s: this node claims no partition "
		                "until "
		                "more than half of them do; see [redis] sentinels",
		       confirm, all, a->cluster->redis.link.where);
	}
	return lately;
}

/* --- settings that stop an old master from accepting writes ------------------------------------------------------- */

static void on_config(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_app *a = arg;
	struct hw_cluster_sentinel *s = sentinel_of(a);
	const redisReply *reply = answer;
	(void)ac;
	if (!reply)
		return;
	hw_redis_link_got(&a->cluster->redis.link);
	s->to_write = hw_sentinel_read_number(reply, "min-replicas-to-write");
	s->lag_s = hw_sentinel_read_number(reply, "min-replicas-max-lag");
	s->asked = true;
	s->checked = false;
}

void hw_app_cluster_sentinel_linked(struct hw_app *a)
{
	const char *argv[] = {"CONFIG", "GET", "min-replicas-*"};
	const size_t lens[] = {6, 3, 14};
	if (sentinel_of(a)->voices)
		hw_redis_link_command(&a->cluster->redis.link, on_config, a, 3, argv, lens);
}

static void check(struct hw_app *a, int64_t down_after_ms)
{
	const struct hw_cluster_sentinel *s = sentinel_of(a);
	const char *where = a->cluster->redis.link.where;
	if (s->to_write < 0 || s->lag_s < 0)
		hw_log(a->log, HW_LOG_NOTICE,
		       "nodes: cannot read min-replicas-to-write and min-replicas-max-lag of Redis at %s: give this "
		       "node's Redis user the right +config|get, or check both settings yourself",
		       where);
	else if (s->to_write == 0)
		hw_log(a->log, HW_LOG_WARNING,
		       "nodes: min-replicas-to-write of Redis at %s is 0: a master without its replicas still accepts "
		       "writes, and a fail-over loses them; set it to 1 if the master has two replicas",
		       where);
	else if (s->lag_s == 0)
		hw_log(a->log, HW_LOG_WARNING,
		       "nodes: min-replicas-max-lag of Redis at %s is 0, so Redis does not check its replicas; after a "
		       "fail-over, the old master may accept writes that are then lost; set it to 1 s or more, below "
		       "the %" PRId64 " ms of down-after-milliseconds of the Sentinels",
		       where, down_after_ms);
	else if (s->lag_s * 1000 >= down_after_ms)
		hw_log(a->log, HW_LOG_WARNING,
		       "nodes: min-replicas-max-lag of Redis at %s is %" PRId64
		       " s, but down-after-milliseconds of the Sentinels is %" PRId64
		       " ms; after a fail-over, the old master may accept writes that are then lost; set "
		       "min-replicas-max-lag below down-after-milliseconds",
		       where, s->lag_s, down_after_ms);
}

void hw_app_cluster_sentinel_tick(struct hw_app *a)
{
	struct hw_cluster_sentinel *s = sentinel_of(a);
	if (!s->voices)
		return;
	hw_voices_tick(s->voices);
	int64_t down_after_ms = hw_voices_down_after_ms(s->voices);
	if (!s->asked || s->checked || down_after_ms < 0)
		return;
	s->checked = true;
	check(a, down_after_ms);
}

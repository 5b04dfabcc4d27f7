/* SPDX-License-Identifier: MIT */
/* Passes the keyspace listener's events to the core. */
#include "keys.h"

#include <errno.h>

#include "daemon/loop/turn.h"
#include "store.h"

/* Passes the core's output on at once. The rest of the turn runs once, after all answers that arrive together. */
static void follow(struct hw_app *a, struct hw_now now)
{
	hw_app_drain(a, now, 0);
	hw_app_schedule_turn(a);
}

static void on_link(void *arg, bool up, const char *why)
{
	struct hw_app *a = arg;
	if (up)
		hw_log(a->log, HW_LOG_NOTICE, "keyspace: %s", why);
	else
		hw_log_limited(a->log, HW_LIMIT_KEYSPACE, HW_LOG_WARNING, "keyspace: %s", why);
}

static void on_sight(void *arg, bool sees)
{
	struct hw_app *a = arg;
	hw_monitor_key_sight(a->monitor, hw_app_now(), sees);
	hw_app_schedule_turn(a);
}

static void on_key(void *arg, unsigned why, const char *id, size_t id_len, int64_t ttl_ms)
{
	struct hw_app *a = arg;
	struct hw_now now = hw_app_now();
	if (a->life.stopping)
		return;
	hw_monitor_key(a->monitor, now, why, id, id_len, ttl_ms);
	follow(a, now);
}

static void on_loss(void *arg)
{
	struct hw_app *a = arg;
	hw_monitor_key_loss(a->monitor, hw_app_now());
}

static void on_back(void *arg, const char *id, size_t id_len)
{
	struct hw_app *a = arg;
	struct hw_now now = hw_app_now();
	if (a->life.stopping)
		return;
	hw_monitor_key_back(a->monitor, now, id, id_len);
	follow(a, now);
}

static void on_trouble(void *arg, const char *what)
{
	struct hw_app *a = arg;
	hw_log_limited(a->log, HW_LIMIT_KEYSPACE_TROUBLE, HW_LOG_WARNING, "keyspace: %s", what);
}

static const struct hw_keyspace_ops ops = {.on_link = on_link,
                                           .on_sight = on_sight,
                                           .on_key = on_key,
                                           .on_loss = on_loss,
                                           .on_back = on_back,
                                           .on_trouble = on_trouble};

int hw_app_start_keyspace(struct hw_app *a)
{
	const struct hw_settings *c = a->start;
	if (!c->keyspace_enabled)
		return 0;
	const struct hw_keyspace_conf conf = {.redis = hw_app_redis_conf(a),
	                                      .configure = c->keyspace_configure,
	                                      .several = a->start->cluster_mode == HW_CLUSTER_MIRROR};
	a->keyspace = hw_keyspace_new(a->loop.base, &conf, a->redis, a->monitor, &ops, a);
	return a->keyspace ? 0 : -ENOMEM;
}

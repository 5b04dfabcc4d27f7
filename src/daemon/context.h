/* SPDX-License-Identifier: MIT */
/* The context of the running daemon: what all its files share, and its parts. Each part belongs to certain files. app.c
 * creates the context and connects the parts. */
#ifndef HW_CONTEXT_H
#define HW_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "control/control.h"
#include "daemon/config/settings.h"
#include "heartwheel/monitor.h"
#include "limits.h"
#include "redis/keyspace.h"
#include "redis/redis.h"
#include "run/loop.h"

struct event;
struct hw_app_broker;
struct hw_app_cluster;
struct hw_app_inventory;
struct hw_app_probes;
struct hw_app_reports;
struct hw_app_retained;
struct hw_app_store;
struct hw_app_turn;
struct hw_app_visibility;
struct hw_app_wall_clock;
struct hw_prefix_guard;

/* The state of this run. Only app.c changes a member, unless the comment of the member names another file. */
struct hw_app_life {
	uint64_t run_id; /* the run id: random, one per run */
	struct hw_mono started;
	bool loading;   /* the store is not loaded yet (store.c) */
	bool stands_by; /* see hw_app_stands_by() (cluster_standby.c) */
	bool stopping;
	bool restarts; /* after the stop, main starts the daemon over: see hw_app_restart() (cluster_standby.c) */
	int failed;    /* exit status of a daemon that cannot continue; 0: it can continue. Any file may set it */
	char *mqtt_password, *redis_password; /* owned; NULL: none */
	struct hw_mono second;                /* the time of the last run of the tasks of each second */
	struct hw_mono stop_by;               /* the end of stop_timeout */
};

struct hw_app {
	struct hw_log *log;       /* borrowed from main */
	struct hw_settings *conf; /* owned: the running configuration */
	/* Owned: the configuration from the start. It keeps the values that only a restart can change. */
	struct hw_settings *start;
	struct hw_loop loop;
	struct hw_monitor *monitor;
	struct hw_control *control;
	struct hw_redis *redis;       /* NULL: store = memory */
	struct hw_keyspace *keyspace; /* NULL: other programs' keys are not used */
	struct hw_app_life life;

	/* Owned. Only the files that a part's header names know the part's struct. Other files call the functions of
	 * the header. */
	struct hw_app_turn *turn;             /* turn.h */
	struct hw_app_broker *broker;         /* broker.h */
	struct hw_app_store *store;           /* store.h, pending.h */
	struct hw_app_retained *retained;     /* retained.h, presence.h */
	struct hw_app_visibility *visibility; /* visibility.h, sightings.h, unjudged.h */
	struct hw_app_probes *probes;         /* probes.h */
	struct hw_app_reports *reports;       /* reports.h */
	struct hw_app_wall_clock *wall_clock; /* wall_clock.h */
	struct hw_prefix_guard *guard;        /* prefix_guard.h */
	struct hw_app_inventory *inventory;   /* inventory.h */
	struct hw_app_cluster *cluster;       /* cluster.h; NULL: [cluster] mode = off */
};

/* Whether this node stands by: another node receives the fleet's messages, and this one subscribes to no heartbeats and
 * knows no device. Always false unless mode = standby. */
static inline bool hw_app_stands_by(const struct hw_app *a)
{
	return a->life.stands_by;
}

/* NULL: the device was removed. */
static inline struct hw_device *hw_app_device(const struct hw_app *a, struct hw_ref ref)
{
	return hw_registry_get(hw_monitor_registry(a->monitor), ref);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The running daemon's context: what it owns, and what its files remember of it. app.c makes it and wires its parts
 * together; each other file has one task, and knows only those below it:
 *
 *     app             makes and frees the context, and wires its parts
 *     feed, store, broker, keys, observe
 *                     what readers, Redis, the publisher, the keyspace listener and the control API say or ask
 *     turn            the loop, a turn at a time: what the core says is pulled out,
 *     fanout          ... and handed on to the sinks
 *     deaf, probes, reload
 *                     groups that do not hear; silent devices that are asked; a new configuration
 *     cluster         ... and cluster_*: one of several nodes
 *     debts, presence, share, subscriptions, connections, hooks, wall_clock
 *     wake            the time, and what the loop is woken by
 */
#ifndef HW_CONTEXT_H
#define HW_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "control/control.h"
#include "discovery.h"
#include "heartwheel/inflow.h"
#include "heartwheel/monitor.h"
#include "heartwheel/pace.h"
#include "http/metrics.h"
#include "limits.h"
#include "mqtt/copies.h"
#include "mqtt/mqtt.h"
#include "notify/devices.h"
#include "redis/keyspace.h"
#include "redis/redis.h"
#include "run/loop.h"
#include "settings.h"
#include "share.h"
#include "status.h"

struct event;
struct hw_app_cluster;
struct hw_app_probes;

/* A reader and what the loop knows of it. */
struct hw_app_reader {
	struct hw_app *app;
	unsigned number;
	struct hw_reader *reader; /* owned */
	struct event *readable;   /* owned */
	bool unread;              /* its ring is to be looked at in the next turn, also if nothing makes it readable */
	char client_id[256];
	struct hw_mqtt_conf conf;
	bool up, ever_up;
	bool stalled; /* it slept too long, and has not read its socket empty since */
	bool renewed; /* the connection is closed because barriers do not come back */
	bool behind;  /* the loop slept too long, and has not seen the ring empty since */
	uint64_t taken;
	int in_turn;   /* events taken in this turn of the loop */
	char why[512]; /* it is down */

	struct hw_inflow inflow;     /* of messages that lie in the ring */
	struct hw_reader_event held; /* what was taken from it last */
	struct hw_copies_of copies;
};

/* prefix_guard.h's */
struct hw_prefix_guard {
	bool nodes, monitors;     /* it is not known yet whether nodes of a cluster, or an older monitor, work here */
	bool joins, as_member;    /* a node: it may join; it was a member when it looked for the latter last */
	bool told, shared_told;   /* that it waits for the latter; that it works beside one */
	bool nodes_told;          /* that it works beside the former */
	bool ends;                /* it is to stop, and has waited for a tick */
	bool late;                /* it has not watched until the latter was known */
	struct hw_mono waits_for; /* that is waited for until then */
	bool seen;                /* nodes are entered */
	uint64_t hash;
	struct hw_mono until;
};

/* sightings.h's: the period that lasts, as the stream device:sight is told of it. */
struct hw_app_sightings {
	int64_t from_ms;  /* wall clock */
	int64_t floor_ms; /* nothing before is told of */
	bool blind;
	enum hw_cause cause;   /* of blindness */
	struct hw_mono next;   /* when it is told of again */
	int64_t pause_s;       /* until then, since it was told last */
	bool down_told, ended; /* what was before this run; the run's end */
};

/* wall_clock.h's */
struct hw_app_wall_clock {
	bool known, differs;   /* boot_ms is; from Redis' clock, which is logged */
	int64_t boot_ms;       /* the wall clock's time of the boot */
	int64_t good_boot_ms;  /* ... before steps of that clock which Redis' clock has not confirmed */
	int64_t redis_boot_ms; /* by Redis' clock */
	struct hw_mono asked;  /* when Redis told its clock last; 0: never */
};

/*
 * The connection that carries what the monitor sends to itself: barriers, canaries, the share topic. It carries no
 * statuses: a broker may read on within a turn while more lies in a socket, and a pair of barriers behind statuses
 * would then be read in one turn, which proves nothing.
 */
struct hw_app_barriers {
	struct hw_publisher *publisher;
	struct event *readable;
	struct hw_mqtt_conf conf;
	char client_id[256], why[512];
	enum { HW_BARRIERS_UNKNOWN, HW_BARRIERS_REFUSED, HW_BARRIERS_TAKEN } taken; /* by the broker's ACL */
	bool up, ever_up;
	uint64_t reconnects;
};

/* unjudged.h's: of which groups it is told that devices are not judged. */
struct hw_app_unjudged {
	bool *told; /* owned; an element a group */
	size_t n;
	bool known; /* all devices were looked at once since the load */
};

struct hw_app {
	struct hw_log *log;        /* borrowed from main */
	struct hw_settings *conf;  /* owned: the running configuration */
	struct hw_settings *start; /* owned: the first one; what only a restart changes is lent out from it */
	struct hw_loop loop;
	struct hw_monitor *monitor;
	struct hw_control *control;
	struct hw_redis *redis;       /* NULL: store = memory */
	struct hw_keyspace *keyspace; /* NULL: keys of other programs are not looked at */
	struct hw_redis_conf redis_conf;
	struct hw_publisher *publisher;
	struct hw_app_barriers barriers;
	struct hw_app_reader reader[HW_READERS_MAX];
	unsigned n_readers;
	uint64_t barrier_out; /* the last that was sent */
	struct hw_retained_sink status, discovery;
	struct hw_notifier *notifier;
	struct hw_share share;
	struct hw_prefix_guard alone;
	struct hw_app_sightings sightings;
	struct hw_app_wall_clock wall_clock;
	struct hw_app_unjudged unjudged;
	struct hw_app_probes *probes;   /* owned; NULL: none was asked yet */
	struct hw_app_cluster *cluster; /* owned; NULL: [cluster] mode = off */

	struct event *due, *publisher_readable;

	/* Texts that the parts borrow for as long as they live. */
	char *mqtt_password, *redis_password;
	char barrier_topic[256], presence_topic[256], probe_answers[128], publisher_id[256], share_group[128];
	struct hw_mqtt_conf publisher_conf;

	uint64_t run_mark; /* random, of this run */
	struct hw_mono started;
	struct hw_pace pace;

	struct hw_mono publisher_lost; /* while it is not up: since when; 0: since the start */
	bool publisher_up, publisher_ever_up, redis_up, redis_ever_up, loading;
	char publisher_why[512], redis_why[512], mqtt_lacks[800];
	uint64_t pending_store;    /* devices with HW_PENDING_STORE */
	struct hw_mono redis_late; /* since when Redis has not confirmed: 0: it does */
	bool releasing;            /* statuses no longer wait for Redis: sweep under way */
	uint32_t release_at;

	bool fleet_blind; /* what the core has said last of the fleet as a whole */
	enum hw_cause fleet_cause;
	bool presence_due, blind_told; /* what presence says: of that, or of groups */
	enum hw_cause blind_cause;
	bool upstream_told; /* which `while` has brought no value */
	struct hw_mono upstream_asked;
	char manager_told[128]; /* the status that the service manager was told last */
	uint64_t presence_seq;
	int64_t presence_ms; /* monotonic, of the last one; 0: none */

	struct hw_copies copies;
	bool stands_by; /* see hw_app_stands_by() */
	bool stopping;
	int failed;            /* it stops because it cannot go on: the exit status; else 0 */
	bool anew;             /* it stops to be made anew: see hw_app_anew() */
	struct hw_mono second; /* what is done each second was done then */
	struct hw_mono stop_by;

	uint64_t refused_told[HW_REFUSED_KINDS];
	char odd_id[HW_ID_MAX + 1]; /* the first device since then whose record in the store was corrected; "": none */
	int refused_quiet_s[HW_REFUSED_KINDS]; /* until more of the kind are told of */
	uint64_t faults_told;                  /* payload errors */
	uint64_t closings_told;                /* addresses that were closed to who guesses tokens */
	int faults_quiet_s;
	uint64_t publisher_reconnects;
	uint64_t wakeups;
	struct hw_histogram detection, turn;
	struct hw_mono turn_began;
	struct hw_histogram turn_cpu;       /* of whole turns, by the thread's CPU time */
	unsigned looks_left, statuses_left; /* in this turn */
	uint64_t store_done;                /* what Redis had confirmed when it was looked at last */
	struct hw_mono store_moved;         /* when that was seen to grow last, or nothing was owed */
	bool held;                          /* nobody is judged until Redis has written more */
};

/* Whether another node is to hear the fleet: nothing is subscribed or known. False where mode is not standby. */
static inline bool hw_app_stands_by(const struct hw_app *a)
{
	return a->stands_by;
}

/* NULL: it is gone. */
static inline struct hw_device *hw_app_device(const struct hw_app *a, struct hw_ref ref)
{
	return hw_registry_get(hw_monitor_registry(a->monitor), ref);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The running daemon: one context that owns everything else, wired together here and nowhere else. main() makes one and
 * frees it.
 *
 * The loop: whatever wakes it (a reader's ring, Redis, a timer) feeds the core, then hw_app_turn() pulls out what
 * follows, hands it to the sinks, and sets the one timer for when the core has work again.
 */
#ifndef HW_APP_H
#define HW_APP_H

#include <stdbool.h>
#include <stdint.h>

#include "conf/conf.h"
#include "control/control.h"
#include "control/metrics.h"
#include "discovery.h"
#include "heartwheel/monitor.h"
#include "log.h"
#include "mqtt/mqtt.h"
#include "notify/notify.h"
#include "redis/keyspace.h"
#include "redis/redis.h"
#include "status.h"

struct event;
struct event_base;

/* A reader and what the loop knows of it. */
struct hw_app_reader {
	struct hw_app *app;
	unsigned number;
	struct hw_reader *reader; /* owned */
	struct event *readable;   /* owned */
	struct event *again;      /* owned: goes on in the next turn */
	char client_id[256];
	struct hw_mqtt_conf conf;
	bool up, ever_up;
	bool stalled; /* it slept too long, and has not read its socket empty since */
	bool renewed; /* the connection is closed because barriers do not come back */
	bool behind;  /* the loop slept too long, and has not seen the ring empty since */
	uint64_t taken;
	char why[512]; /* it is down */

	struct hw_message gathered[HW_BATCH]; /* taken, and not yet worked off by the core: they point into the ring */
	size_t n_gathered;
	struct hw_reader_event held; /* taken, and waits until those are */
	bool holding;
};

struct hw_app {
	struct hw_log *log;    /* borrowed from main */
	struct hw_conf *conf;  /* owned: the running configuration */
	struct hw_conf *start; /* owned: the first one; what only a restart changes is lent out from it */
	struct event_base *base;
	struct hw_monitor *monitor;
	struct hw_control *control;
	struct hw_redis *redis;       /* NULL: store = memory */
	struct hw_keyspace *keyspace; /* NULL: keys of other programs are not looked at */
	struct hw_redis_conf redis_conf;
	struct hw_publisher *publisher;
	struct hw_app_reader reader[HW_READERS_MAX];
	unsigned n_readers;
	struct hw_owed status, discovery;
	struct hw_notifier *notifier;

	struct event *due, *tick, *watchdog, *publisher_readable;
	struct event *on_term, *on_int, *on_hup, *on_usr1;

	/* Texts that the parts borrow for as long as they live. */
	char *mqtt_password, *redis_password;
	char barrier_topic[256], presence_topic[256], publisher_id[256], share_group[128];
	struct hw_mqtt_conf publisher_conf;

	uint64_t run_mark;               /* random, of this run */
	struct hw_mono started, planned; /* planned: when the loop should wake at the latest; 0: unknown */
	int64_t boot_ahead_ns;           /* BOOTTIME less MONOTONIC, when it was looked at last */
	struct hw_mono boot_checked;

	enum { HW_BARRIERS_UNKNOWN, HW_BARRIERS_REFUSED, HW_BARRIERS_TAKEN } barriers; /* by the broker's ACL */
	bool publisher_up, publisher_ever_up, redis_up, redis_ever_up, loading;
	char publisher_why[512], redis_why[256];
	uint64_t owed_store;       /* devices with HW_FLAG_OWED_STORE */
	struct hw_mono redis_late; /* since when Redis has not confirmed: 0: it does */
	bool releasing;            /* statuses no longer wait for Redis: sweep under way */
	uint32_t release_at;

	bool presence_due, blind_told; /* what the core has said last */
	enum hw_cause blind_cause;
	char manager_told[128]; /* the status that the service manager was told last */
	uint64_t presence_seq;
	int64_t presence_ms; /* monotonic, of the last one; 0: none */

	bool stopping;
	struct hw_mono stop_by;

	uint64_t refused_told[HW_REFUSED_KINDS];
	int refused_quiet_s[HW_REFUSED_KINDS]; /* until more of the kind are told of */
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

/* Builds what needs no rights and no connection. Owns `conf` from here on. NULL after logging what failed. */
struct hw_app *hw_app_new(struct hw_log *log, struct hw_conf *conf);
void hw_app_free(struct hw_app *a);

/* Opens the control socket; apart, because it may need rights that the rest must not have. 0, or -errno after logging.
 */
int hw_app_listen(struct hw_app *a);
/* Connects to everything. 0, or -errno after logging. */
int hw_app_start(struct hw_app *a);
/* --- shared by the daemon's files -------------------------------------------- */

struct hw_now hw_app_now(void);
/* Called first by every callback of the loop: counts the wake-up, and notices a stall. */
struct hw_now hw_app_woke(struct hw_app *a);

/* turn.c: runs the loop until a signal stops it. Returns the exit status. */
int hw_app_run(struct hw_app *a);
/* Called last by every callback of the loop that changed anything: pulls, pumps, plans. */
void hw_app_turn(struct hw_app *a);
/* Pulls what the core has to say without working for it, and hands it on. */
void hw_app_drain(struct hw_app *a, struct hw_now now);

/* feed.c: a reader's ring into the core. */
void hw_app_on_reader(struct hw_app_reader *r);
/* One connection has found the broker: the others need not wait for their back-off to find it too. */
void hw_app_hurry(struct hw_app *a);
/* Logs why a connection to the broker is down, unless another one has said the same. */
void hw_app_tell_broker(struct hw_app *a, const char *text);
/* The filters to subscribe to, on the heap; their texts belong to the groups. 0 or -ENOMEM. */
int hw_app_filters(struct hw_app *a, struct hw_mqtt_filter **out, size_t *n_out);

/* fanout.c: transitions into the sinks. */
void hw_app_dispatch(struct hw_app *a, struct hw_now now, const struct hw_out *out);
extern const struct hw_redis_ops hw_app_redis_ops;
void hw_app_on_publisher(struct hw_app *a);
void hw_app_published(void *arg, struct hw_ref device, bool cleared);
void hw_app_discovered(void *arg, struct hw_ref device, bool cleared);
/* Everybody's retained messages are owed again. */
void hw_app_republish(struct hw_app *a, struct hw_now now);
/* Each second, and while it says true more often: lets statuses go that have waited for Redis for too long. */
bool hw_app_release(struct hw_app *a, struct hw_now now);
/* Devices whose current state some sink has not confirmed, and for how long the oldest. */
uint64_t hw_app_owed(const struct hw_app *a, struct hw_now now, int64_t *oldest_ms);

/* keys.c: the keyspace listener into the core. */
extern const struct hw_keyspace_ops hw_app_keyspace_ops;

/* hooks.c: what notify is told of the configuration. 0 or -ENOMEM. */
int hw_app_configure_notifier(struct hw_app *a, const struct hw_conf *c);
void hw_app_notify_trouble(void *arg, enum hw_notifier_kind kind, const char *text);

/* presence.c */
int hw_app_presence_payload(struct hw_app *a, struct hw_now now, bool online, char *buf, size_t cap);
void hw_app_presence(struct hw_app *a, struct hw_now now);

/* observe.c: what the control API asks. */
extern const struct hw_control_ops hw_app_control_ops;
extern const struct hw_control_ops hw_app_control_ops_memory; /* no store keeps the event stream */

/* reload.c */
struct evbuffer;
int hw_app_reload(struct hw_app *a, struct evbuffer *body);
void hw_app_reload_on_signal(struct hw_app *a);
struct hw_group_spec *hw_app_group_specs(const struct hw_conf *c);
struct hw_monitor_conf hw_app_monitor_conf(const struct hw_conf *c);
int hw_app_template_check(const char *text, enum hw_conf_template kind, const char **why);

#endif

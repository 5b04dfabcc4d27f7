/* SPDX-License-Identifier: MIT */
/*
 * heartwheel-alert: the struct that holds all parts, and the functions that run them.
 *
 *   settings   the configuration             follow   reads the streams of the monitors
 *   store      Redis                         watch    which monitors see the fleet
 *   holder     which instance works          turn     engine -> commit -> messages
 *   loader     the state at a start          outbox   messages until a receiver has accepted them
 *   commit     what has changed, to Redis    senders  the receivers (alert/send)
 *   api        HTTP on the socket            engine   src/incident
 *
 * The engine, the outbox and the senders exist only while this instance holds the lease and has loaded the state. main
 * owns the struct. Only a part's own files know the members of its struct; other files call its header's functions.
 */
#ifndef HW_ALERT_APP_H
#define HW_ALERT_APP_H

#include "alert/counts.h"
#include "alert/send/send.h"
#include "alert/settings.h"
#include "alert/state/holder.h"
#include "alert/state/store.h"
#include "heartwheel/time.h"
#include "http/server.h"
#include "incident/incidents.h"
#include "run/log.h"
#include "run/loop.h"

/* Kinds of log lines that outside events can repeat: run/log.h limits each kind. */
enum hw_alert_limit {
	HW_ALERT_LIMIT_REDIS,
	HW_ALERT_LIMIT_EVENTS,
	HW_ALERT_LIMIT_UNUSABLE,
	HW_ALERT_LIMIT_SEND,
	HW_ALERT_LIMIT_LEASE
};

struct hw_alert_api;
struct hw_alert_commit;
struct hw_alert_fleet;
struct hw_alert_follow;
struct hw_alert_loader;
struct hw_alert_outbox;
struct hw_alert_turn;
struct hw_alert_watch;

/* What was found when the lease was taken. */
struct hw_alert_taken {
	bool first, clean; /* first: no state was ever stored; clean: the last holder of the lease stopped cleanly */
	uint64_t commits;  /* the number of the last commit */
};

struct hw_alert_app {
	struct hw_log *log;              /* borrowed */
	struct hw_alert_settings *conf;  /* owned */
	struct hw_alert_settings *first; /* owned; the settings of the start: the connection borrows their texts */
	char *redis_password;            /* owned */
	struct hw_loop loop;
	struct hw_http http;
	struct hw_alert_store *store;
	struct hw_alert_holder *holder;
	struct hw_alert_follow *follow;
	struct hw_alert_watch *watch;
	struct hw_alert_fleet *fleet; /* NULL: the monitors write to Redis */
	struct hw_alert_loader *loader;
	struct hw_alert_commit *commit;
	struct hw_alert_outbox *outbox;
	struct hw_alert_turn *turn;
	struct hw_alert_api *api;
	struct hw_senders *senders;
	struct hw_incidents *engine; /* NULL: this instance stands by, or loads */
	struct hw_alert_counts counts;
	int64_t started_ms; /* monotonic */
	struct hw_alert_taken taken;
	unsigned load_fails, load_wait; /* load_fails: failed loads in a row, up to a limit; load_wait: how many
	                                 * renewals to skip before the next load */
	bool reload;                    /* the state must be loaded again when the running commit has ended */
	bool away_news;                 /* messages were made while Redis is away */
	bool stopping, released, failed;
	int64_t stop_by_ms; /* monotonic */
};

/* Returns the time of CLOCK_BOOTTIME. */
struct hw_mono hw_alert_mono(void);
/* CLOCK_BOOTTIME and the wall clock. If this machine's wall clock differs from Redis' clock by HW_ALERT_DIFFERS_MS,
 * Redis' clock is used. The other daemons and instances also know Redis' clock, so their times stay comparable. */
#define HW_ALERT_DIFFERS_MS 60000
#define HW_ALERT_AGREES_MS  30000
struct hw_now hw_alert_now(const struct hw_alert_app *a);
/* Returns by how much this machine's wall clock is ahead of Redis' clock; 0: Redis' clock is not known. */
int64_t hw_alert_ahead_ms(const struct hw_alert_app *a);
/* Returns the latest time that another daemon may have written: the wall clock of this machine or of Redis,
 * whichever is later, because either may be behind. */
int64_t hw_alert_bound_ms(const struct hw_alert_app *a);
/* Returns a random number. */
uint64_t hw_alert_seed(void);

/* Counts a value in Redis that cannot be used, and logs the text at a limited rate. */
void hw_alert_unusable(struct hw_alert_app *a, enum hw_alert_unusable kind, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* --- what happens: each part calls these, and app.c passes them on --- */

/* Called when this instance has taken the lease. */
void hw_alert_on_taken(struct hw_alert_app *a, const struct hw_alert_taken *taken);
void hw_alert_on_renewed(struct hw_alert_app *a);
/* Called when another run holds the lease. `ours`: that run uses the name of this node. */
void hw_alert_on_fenced(struct hw_alert_app *a, bool ours);
/* Called when Redis has an older state than the last commit. */
void hw_alert_on_behind(struct hw_alert_app *a);
void hw_alert_on_store(struct hw_alert_app *a, bool up);
/* Called when the load has ended. `engine` is complete; NULL: the load failed and must begin again. */
void hw_alert_on_loaded(struct hw_alert_app *a, struct hw_incidents *engine);
/* Called when entries of a stream are missing from which the devices' states follow. The state is loaded again. */
void hw_alert_on_gap(struct hw_alert_app *a);
/* Called when the engine has no memory. The process then ends. */
void hw_alert_on_no_memory(struct hw_alert_app *a);
/* Called when Redis has confirmed a commit. */
void hw_alert_on_committed(struct hw_alert_app *a);
/* Called when the engine may have something to do. */
void hw_alert_schedule_turn(struct hw_alert_app *a);

/* Creates all parts. Before the call, main sets `log`, `conf`, `loop`, `http` and the password. Returns 0 or -errno.
 * main calls hw_alert_app_fini() in any case. */
int hw_alert_app_start(struct hw_alert_app *a);
/* Called each second. */
void hw_alert_app_tick(struct hw_alert_app *a);
/* Begins a clean stop. The loop ends when everything is stored, or after `timeout_ms`. */
void hw_alert_app_stop(struct hw_alert_app *a, int64_t timeout_ms);
void hw_alert_app_fini(struct hw_alert_app *a);
/* Logs a warning for each matcher that matches nothing: at the start and after a reload. */
void hw_alert_app_lint(struct hw_alert_app *a);
/* Applies the settings that a reload may change. Returns 0; or -errno with the reason in `why`, and nothing has
 * changed. */
int hw_alert_app_configure(struct hw_alert_app *a, const struct hw_alert_settings *c, char *why, size_t cap);

#endif

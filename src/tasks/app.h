/* SPDX-License-Identifier: MIT */
/*
 * heartwheel-tasks, put together: what its parts have in common, and its turn.
 *
 *   settings  what the file says             desk    requests, gathered into calls of the scripts
 *   store     Redis                          turn    what is due: claims, sending
 *   broker    MQTT                           tell    the submitters
 *   inbox     messages to us                 told    each transition, to who wants to know
 *   api       HTTP on the socket             call    POST /v1/call
 *   sessions  followers over MQTT            wills   held wills
 *   watch     tasks of others                    ends    those of them that came to nothing, to the notifier
 *
 * main owns it. Parts find each other here and nowhere else; none calls another one before hw_tasks_app_start().
 */
#ifndef HW_TASKS_APP_H
#define HW_TASKS_APP_H

#include "heartwheel/schedule.h"
#include "http/server.h"
#include "notify/notify.h"
#include "run/log.h"
#include "run/loop.h"
#include "tasks/broker.h"
#include "tasks/counts.h"
#include "tasks/dispatcher.h"
#include "tasks/inbox.h"
#include "tasks/settings.h"
#include "tasks/store.h"
#include "tasks/stream_reader.h"
#include "tasks/submitters.h"
#include "tasks/task.h"

/* Kinds of lines that outside events can repeat: see run/log.h. */
enum hw_tasks_limit {
	HW_TASKS_LIMIT_REDIS,
	HW_TASKS_LIMIT_BROKER,
	HW_TASKS_LIMIT_REFUSED,
	HW_TASKS_LIMIT_PUT,
	HW_TASKS_LIMIT_TELL,
	HW_TASKS_LIMIT_CLOCK,
	HW_TASKS_LIMIT_EVENTS,
	HW_TASKS_LIMIT_FOLLOW, /* sessions.c, wills.c, watch.c */
	HW_TASKS_LIMIT_CALL,   /* call.c */
	HW_TASKS_LIMIT_NOTIFY,
	HW_TASKS_LIMIT_UNUSABLE,
	HW_TASKS_LIMITS
};

struct hw_tasks_api;
struct hw_tasks_call;
struct hw_tasks_sessions;
struct hw_tasks_turn;
struct hw_tasks_watch;
struct hw_tasks_wills;

struct hw_tasks_app {
	struct hw_log *log;             /* borrowed */
	struct hw_tasks_settings *conf; /* owned */
	struct hw_loop loop;
	struct hw_http http;
	struct hw_task_rules rules; /* borrows from conf and device_prefix */
	char device_prefix[256];    /* device:disconnected: and id_prefix */
	struct hw_schedule *schedule;
	struct hw_tasks_store *store;
	struct hw_dispatcher *dispatcher;
	struct hw_tasks_broker *broker;
	struct hw_tasks_inbox *inbox;
	struct hw_tasks_turn *turn;
	struct hw_submitters *submitters;
	struct hw_stream_reader *stream_reader;
	struct hw_tasks_api *api;
	struct hw_tasks_call *call;
	struct hw_tasks_wills *wills;
	struct hw_tasks_sessions *sessions;
	struct hw_tasks_watch *watch;
	struct hw_notifier *notifier;
	struct hw_tasks_counts counts;
	int64_t started_ms; /* monotonic */
	bool stopping;      /* nothing new is begun */
	int64_t stop_by_ms; /* monotonic; so is */
	int64_t second_ms;  /* ... when what is done each second was done last */
	bool clock_was_held;
	bool without_aof;   /* of Redis: advice.c */
	int64_t advised_ms; /* monotonic; 0: not on this connection */
	char *redis_password, *mqtt_password;
};

/* CLOCK_BOOTTIME, as the schedule wants it. */
struct hw_mono hw_tasks_now(void);

/* Counts `n` values in Redis that cannot be used, and logs what the text says, at most one line per kind in 10 s. */
void hw_tasks_unusable(struct hw_tasks_app *a, enum hw_tasks_unusable kind, uint64_t n, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Something was put somewhere: the turn runs once, after what is under way. */
void hw_tasks_stir(struct hw_tasks_app *a);

/* By main: makes all parts, of a struct whose log, conf, loop, http and passwords are there. 0 or -errno;
 * hw_tasks_app_fini() in any case. */
int hw_tasks_app_start(struct hw_tasks_app *a);
/* Tells people as this says from now on; what is unchanged goes on as it was. 0, or -ENOMEM with all as it was. */
int hw_tasks_app_notify_by(struct hw_tasks_app *a, const struct hw_notify_settings *c);
/* Each second. */
void hw_tasks_app_tick(struct hw_tasks_app *a);
/* Nothing new is begun; the loop ends when what is on its way has arrived, or after that time. */
void hw_tasks_app_stop(struct hw_tasks_app *a, int64_t timeout_ms);
void hw_tasks_app_fini(struct hw_tasks_app *a, int64_t timeout_ms);

/* Told by store and broker. */
void hw_tasks_on_store(struct hw_tasks_app *a, bool up);
void hw_tasks_on_broker(struct hw_tasks_app *a);

#endif

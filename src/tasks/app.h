/* SPDX-License-Identifier: MIT */
/*
 * heartwheel-tasks: the struct that contains all parts, and the functions that run them.
 *
 * - settings: the configuration
 * - dispatcher: requests, gathered into calls of the scripts
 * - store: Redis
 * - turn: claims due tasks and sends them
 * - broker: MQTT
 * - submitters: notices to the submitters
 * - inbox: messages to heartwheel-tasks
 * - device_reader: device:events, for wills and followers
 * - api: HTTP on the socket
 * - call: POST /v1/call
 * - sessions: followers over MQTT
 * - wills: held wills
 * - watch: tasks that other clients send to one another
 * - advice: warnings about Redis' setup
 * - counts: what the metrics count
 *
 * main owns the struct. Only a part's own files know its content; the other parts call the functions of its header.
 * Parts reach each other only through the struct, and only from hw_tasks_app_start() on.
 */
#ifndef HW_TASKS_APP_H
#define HW_TASKS_APP_H

#include "http/server.h"
#include "run/log.h"
#include "run/loop.h"
#include "tasks/counts.h"
#include "tasks/follow/device_reader.h"
#include "tasks/mqtt/broker.h"
#include "tasks/mqtt/inbox.h"
#include "tasks/queue/dispatcher.h"
#include "tasks/queue/store.h"
#include "tasks/schedule/schedule.h"
#include "tasks/settings.h"
#include "tasks/task.h"
#include "tasks/watch/submitters.h"

/* Kinds of log lines that input can repeat without end. run/log.h limits each kind. */
enum hw_tasks_limit {
	HW_TASKS_LIMIT_REDIS,
	HW_TASKS_LIMIT_BROKER,
	HW_TASKS_LIMIT_REFUSED,
	HW_TASKS_LIMIT_PUT,
	HW_TASKS_LIMIT_SUBMITTERS,
	HW_TASKS_LIMIT_CLOCK,
	HW_TASKS_LIMIT_EVENTS,
	HW_TASKS_LIMIT_FOLLOW, /* sessions.c, wills.c, watch.c */
	HW_TASKS_LIMIT_CALL,   /* call.c */
	HW_TASKS_LIMIT_UNUSABLE,
	HW_TASKS_LIMITS
};

struct hw_tasks_advice;
struct hw_tasks_api;
struct hw_tasks_call;
struct hw_tasks_sessions;
struct hw_tasks_turn;
struct hw_tasks_watch;
struct hw_tasks_wills;

/* The life of this run. app.c changes it. */
struct hw_tasks_life {
	char *redis_password, *mqtt_password; /* owned, from main; NULL: none */
	char device_prefix[256];              /* device:disconnected: and id_prefix */
	int64_t started_ms;                   /* monotonic */
	bool stopping;                        /* no new work is begun */
	int64_t stop_by_ms;                   /* monotonic: when the stop ends at the latest */
	int64_t second_ms;                    /* monotonic: when the tasks of each second last ran */
};

struct hw_tasks_app {
	struct hw_log *log;             /* borrowed */
	struct hw_tasks_settings *conf; /* owned */
	struct hw_loop loop;
	struct hw_http http;
	struct hw_task_rules rules; /* borrows from conf and life */
	struct hw_schedule *schedule;
	struct hw_tasks_store *store;
	struct hw_dispatcher *dispatcher;
	struct hw_tasks_broker *broker;
	struct hw_tasks_inbox *inbox;
	struct hw_tasks_turn *turn;
	struct hw_submitters *submitters;
	struct hw_device_reader *device_reader;
	struct hw_tasks_api *api;
	struct hw_tasks_call *call;
	struct hw_tasks_wills *wills;
	struct hw_tasks_sessions *sessions;
	struct hw_tasks_watch *watch;
	struct hw_tasks_advice *advice;
	struct hw_tasks_counts counts;
	struct hw_tasks_life life;
};

/* Returns the time of CLOCK_BOOTTIME, the clock of the schedule. */
struct hw_mono hw_tasks_now(void);

/* Counts `n` values in Redis that cannot be used, and logs the text. All kinds together log at most one line in 10 s.
 */
void hw_tasks_unusable(struct hw_tasks_app *a, enum hw_tasks_unusable kind, uint64_t n, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Schedules one turn, which runs after the callbacks of the loop that are active now. */
void hw_tasks_schedule_turn(struct hw_tasks_app *a);

/* Creates all parts. Before that, main sets `log`, `conf`, `loop`, `http` and the passwords. Returns 0 or -errno. main
 * calls hw_tasks_app_fini() in both cases. */
int hw_tasks_app_start(struct hw_tasks_app *a);
/* Called each second. */
void hw_tasks_app_tick(struct hw_tasks_app *a);
/* Begins no new work from now on. The loop ends when all pending work is done, or after `timeout_ms`. */
void hw_tasks_app_stop(struct hw_tasks_app *a, int64_t timeout_ms);
void hw_tasks_app_fini(struct hw_tasks_app *a, int64_t timeout_ms);

/* The store and the broker call these functions when their connection becomes usable or is lost. */
void hw_tasks_on_store(struct hw_tasks_app *a, bool up);
void hw_tasks_on_broker(struct hw_tasks_app *a);

#endif

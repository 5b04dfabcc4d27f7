/* SPDX-License-Identifier: MIT */
/*
 * Decides when each task is tried: the finer levels of a schedule whose coarsest level is a sorted set in Redis.
 *
 * Every half horizon, the next horizon is read from Redis into the wheel (wheel.h), which runs on Redis' wall clock.
 * Due tasks are claimed, HW_CLAIM_MAX tasks per call, HW_CLAIMS_OUT calls at a time, at a limited rate. Only the answer
 * to a claim decides whether a task is sent. The schedule's data about the task may be out of date, and the answer
 * corrects it. The loss of a schedule therefore loses no task: each second it reads the overdue tasks from Redis, and
 * adds the unknown ones.
 *
 * All instances know all tasks. An instance tries the tasks of a receiver its rank x 1 s late. The rank is its position
 * among the running instances in rendezvous order (Thaler, Ravishankar, "Using name-based mappings to increase hit
 * rates", IEEE/ACM Trans. Networking 6(1), 1998).
 *
 * Pure, as the core is: the caller passes in time and answers and pulls orders (hw_schedule_next); there are no
 * callbacks. `now` is of CLOCK_BOOTTIME, a clock that is never set and includes suspend, as a reference for Redis'
 * clock. If Redis' clock gains more than HW_CLOCK_STEP_MS on CLOCK_BOOTTIME at once, Redis' clock is not trusted. Then
 * nothing is claimed until Redis' clock has stayed ahead for `clock_hold_ms`, or has gone back. A clock that goes back
 * only delays tasks.
 *
 * Cost: 48 bytes per task and 4 to 8 for the index; the array grows by an eighth. O(1) to put, drop or fire a task;
 * O(instances) for a rank; O(tasks) once when Redis' clock goes back.
 */
#ifndef HW_TASKS_SCHEDULE_H
#define HW_TASKS_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/time.h"
#include "tasks/task_id.h"

#define HW_CLAIM_MAX         64 /* tasks per claim */
#define HW_CLAIMS_OUT        2  /* unanswered claims */
#define HW_PAGE_MAX          512
#define HW_CLOCK_STEP_MS     60000
#define HW_INSTANCES_MAX     64
#define HW_CHECK_EVERY_MS    1000
#define HW_RANK_MS           1000
#define HW_ORDER_PATIENCE_MS 10000 /* an order without an answer for this long has failed */

struct hw_schedule_conf {
	int64_t horizon_ms;    /* at least 1 s */
	int64_t clock_hold_ms; /* 0: a step of Redis' clock is trusted at once */
	unsigned rate;         /* messages per second; 0: no limit */
};

struct hw_schedule; /* opaque */

/* On the heap; NULL if there is no memory. `seed` keys the index, so that names of tasks cannot be chosen to collide.
 */
struct hw_schedule *hw_schedule_new(const struct hw_schedule_conf *conf, uint64_t seed);
void hw_schedule_free(struct hw_schedule *s);
/* Takes effect at once; no other setting can change. */
void hw_schedule_set_rate(struct hw_schedule *s, unsigned rate);

/* --- Redis and its clock ------------------------------------------------------------------------------------------ */

/* hw_schedule_up(): called when Redis accepts commands and its scripts are loaded. The schedule then reads all tasks
 * again. hw_schedule_down(): called when Redis can no longer be used. Drops unanswered orders, and ignores their late
 * answers. */
void hw_schedule_up(struct hw_schedule *s, struct hw_mono now);
void hw_schedule_down(struct hw_schedule *s, struct hw_mono now);

/* Called with the time in a Redis script's reply that answers no order; the answers to orders have this time as a
 * parameter. Ignored before the first answer to an order. */
void hw_schedule_clock(struct hw_schedule *s, struct hw_mono now, int64_t redis_ms);
/* Returns the argument for every script call: a time that Redis' clock cannot have reached if it is right. 0 while
 * the clock is not trusted; the greatest value before any answer. */
int64_t hw_schedule_latest_ms(const struct hw_schedule *s, struct hw_mono now);
/* Whether the clock is not trusted now: then no claim and no expiry may be ordered. */
bool hw_schedule_clock_held(const struct hw_schedule *s, struct hw_mono now);
/* Returns the estimate of Redis' wall clock at `now`; 0 before any answer. */
int64_t hw_schedule_redis_ms(const struct hw_schedule *s, struct hw_mono now);

/* --- the other instances ------------------------------------------------------------------------------------------ */

/* Sets the running instances by name; `self` may be among them. Uses the first HW_INSTANCES_MAX. */
void hw_schedule_instances(struct hw_schedule *s, const char *const *names, size_t n, const char *self);
/* Returns how many seconds late this instance tries the tasks of a receiver: 0 .. instances - 1. */
unsigned hw_schedule_rank(const struct hw_schedule *s, uint32_t receiver);
/* Returns the number that stands for a receiver: a hash of its name. */
uint32_t hw_schedule_receiver(const char *name, size_t len);

/* --- tasks -------------------------------------------------------------------------------------------------------- */

/*
 * Called when a task must be tried at `due_ms` (Redis' wall clock): it was submitted, an answer made room for it, or
 * its receiver came online. A known task moves to that time. If the time is past the end of what was read, the task is
 * left to a later read. If there is no memory, the failure is counted, and a read of overdue tasks finds the task.
 */
void hw_schedule_put(struct hw_schedule *s, struct hw_mono now, struct hw_task_id task, uint32_t receiver,
                     int64_t due_ms);
/* Called when a task has ended, so that it is not tried again. The call is optional, because the answer to a claim also
 * shows that the task has ended. */
void hw_schedule_drop(struct hw_schedule *s, struct hw_task_id task);

/* --- orders ------------------------------------------------------------------------------------------------------- */

enum hw_schedule_kind {
	HW_SCHEDULE_CLAIM, /* claim tasks[0 .. n) now; answer with hw_schedule_claimed() */
	HW_SCHEDULE_READ,  /* read a page of what is due; answer with hw_schedule_page() */
};

struct hw_schedule_order {
	enum hw_schedule_kind kind;
	uint64_t serial;
	/* CLAIM */
	struct hw_task_id tasks[HW_CLAIM_MAX];
	size_t n;
	/* READ: at most `count` tasks with from_ms <= due <= until_ms, in that order, after skipping the first `skip`.
	 * INT64_MAX as until_ms stands for Redis' current time. */
	int64_t from_ms, until_ms;
	size_t skip, count;
};

/* Returns true and the next order in *out, or false. The caller repeats the call until it returns false. Each order
 * must be answered, by its answer function or by hw_schedule_failed(). Turns the wheel by at most some thousand
 * steps per call. */
bool hw_schedule_next(struct hw_schedule *s, struct hw_mono now, struct hw_schedule_order *out);

/* The result of a claim for one task. */
struct hw_schedule_claimed {
	struct hw_task_id task;
	bool sent;      /* sent: counts against the rate */
	int64_t due_ms; /* when to try it again; 0: never, the task ended or does not exist */
};
void hw_schedule_claimed(struct hw_schedule *s, struct hw_mono now, uint64_t serial, int64_t redis_ms,
                         const struct hw_schedule_claimed *tasks, size_t n);

struct hw_schedule_found {
	struct hw_task_id task;
	uint32_t receiver;
	int64_t due_ms;
	bool is_none; /* no task: counts only as an entry of the page */
};
/* Answers an order HW_SCHEDULE_READ. `tasks` is in the order of due_ms. If it has fewer than `count` tasks, this is
 * the last page. */
void hw_schedule_page(struct hw_schedule *s, struct hw_mono now, uint64_t serial, int64_t redis_ms,
                      const struct hw_schedule_found *tasks, size_t n);

/* Called when an order has failed, or its result is unknown. The order is given again a second later. */
void hw_schedule_failed(struct hw_schedule *s, struct hw_mono now, uint64_t serial);

/* Returns the latest time at which hw_schedule_next() must be called again. */
struct hw_mono hw_schedule_due(const struct hw_schedule *s, struct hw_mono now);

struct hw_schedule_stats {
	uint64_t claims, claimed, sent, pages, found, overdue; /* overdue: unknown until the read of overdue tasks */
	uint64_t failed, no_memory, clock_holds, rebuilt;
	size_t known;   /* tasks, now */
	size_t waiting; /* tasks that are due and not claimed yet */
	size_t bytes;   /* held in memory */
};
void hw_schedule_stats(const struct hw_schedule *s, struct hw_schedule_stats *out);

#endif

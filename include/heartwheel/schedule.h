/* SPDX-License-Identifier: MIT */
/*
 * When which task is tried: the finer levels of a schedule whose coarsest level is a sorted set in Redis.
 *
 * Every half horizon the next horizon is read from there into the wheel (wheel.h), which runs on Redis' wall clock.
 * What comes due is claimed, HW_CLAIM_MAX tasks a call, HW_CLAIMS_OUT calls at a time, at a bounded rate. Only a claim
 * decides: what this file knows of a task may be out of date, and is then put right by the claim's answer. So nothing
 * is lost with it: each second the schedule asks for what is overdue, and finds there what it does not know yet.
 *
 * With several instances all of them know all tasks. An instance tries those of a receiver its rank x 1 s late, its
 * rank being its place among the live instances in rendezvous order (Thaler, Ravishankar, "Using name-based mappings to
 * increase hit rates", IEEE/ACM Trans. Networking 6(1), 1998).
 *
 * As pure as the rest of the core: time comes in, orders are pulled out (hw_schedule_next), answers are pushed in; it
 * never calls back. `now` is of CLOCK_BOOTTIME, so that Redis' clock can be held against one that nobody sets and that
 * runs on in a suspended machine. A Redis clock that is ahead of it by more than HW_CLOCK_STEP_MS at once is not
 * believed: nothing is claimed for `clock_hold_ms`, through which it has to be seen ahead, unless it goes back before.
 * One that went back only delays.
 *
 * Cost: 48 bytes a task and 4 to 8 of an index, of which the array is grown by an eighth; O(1) for what is put in,
 * taken out or fires; O(instances) for a rank; when Redis' clock goes back, once O(tasks).
 */
#ifndef HEARTWHEEL_SCHEDULE_H
#define HEARTWHEEL_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/time.h"

#define HW_CLAIM_MAX         64 /* tasks a claim */
#define HW_CLAIMS_OUT        2  /* claims that wait for their answer */
#define HW_PAGE_MAX          512
#define HW_CLOCK_STEP_MS     60000
#define HW_INSTANCES_MAX     64
#define HW_TASK_TEXT         36 /* bytes of a task's name: a UUID */
#define HW_LOOK_EVERY_MS     1000
#define HW_RANK_MS           1000
#define HW_ORDER_PATIENCE_MS 10000 /* an order that was not answered for so long is taken for failed */

struct hw_task_id {
	uint8_t bytes[16];
};

/* Writes the 36 characters, lower case, and a NUL. */
void hw_task_id_text(const struct hw_task_id *id, char text[HW_TASK_TEXT + 1]);
/* From exactly these 36 characters; false if they are not. */
bool hw_task_id_parse(struct hw_task_id *id, const char *text, size_t len);

struct hw_schedule_conf {
	int64_t horizon_ms;    /* at least 1 s */
	int64_t clock_hold_ms; /* 0: a step is believed at once */
	unsigned rate;         /* messages a second; 0: no bound */
};

struct hw_schedule; /* opaque */

/* On the heap; NULL without memory. `seed` keys the index, so that nobody can choose tasks that collide. */
struct hw_schedule *hw_schedule_new(const struct hw_schedule_conf *conf, uint64_t seed);
void hw_schedule_free(struct hw_schedule *s);
/* The rate alone changes at once. */
void hw_schedule_set_rate(struct hw_schedule *s, unsigned rate);

/* --- Redis and its clock ------------------------------------------------------------------------------------------ */

/* Redis can be asked (its scripts are loaded), or cannot. Whenever it can again, all that is known is read anew; what
 * was asked and not answered is forgotten, answers to it are ignored. */
void hw_schedule_up(struct hw_schedule *s, struct hw_mono now);
void hw_schedule_down(struct hw_schedule *s, struct hw_mono now);

/* An answer of Redis says what time it has: every script's does. Orders' answers say it themselves, and one of them
 * first.
 */
void hw_schedule_clock(struct hw_schedule *s, struct hw_mono now, int64_t redis_ms);
/* What every call of a script is told: the time that Redis cannot have yet, its clock being believed. 0 while it is
 * not; as late as can be before any answer. */
int64_t hw_schedule_latest_ms(const struct hw_schedule *s, struct hw_mono now);
/* Whether the clock is not believed now: nothing may be claimed or expired by anybody's order. */
bool hw_schedule_clock_held(const struct hw_schedule *s, struct hw_mono now);
/* Redis' wall clock as it is guessed to be at `now`; 0 before any answer. */
int64_t hw_schedule_redis_ms(const struct hw_schedule *s, struct hw_mono now);

/* --- the other instances ------------------------------------------------------------------------------------------ */

/* The live instances by name, `self` among them or not. Takes the first HW_INSTANCES_MAX. */
void hw_schedule_instances(struct hw_schedule *s, const char *const *names, size_t n, const char *self);
/* How many seconds late this instance tries the tasks of a receiver: 0 .. instances - 1. */
unsigned hw_schedule_rank(const struct hw_schedule *s, uint32_t receiver);
/* How a receiver is known here. */
uint32_t hw_schedule_receiver(const char *name, size_t len);

/* --- tasks -------------------------------------------------------------------------------------------------------- */

/*
 * A task is to be looked at at `due_ms` (Redis' wall clock): it was submitted, its answer made room for it, its
 * receiver came online. One that is known is moved there. What is not due before the end of what was read is left to a
 * later read. Without memory it is left to the look for overdue ones, and counted.
 */
void hw_schedule_put(struct hw_schedule *s, struct hw_mono now, struct hw_task_id task, uint32_t receiver,
                     int64_t due_ms);
/* A task has ended: it need not be tried. Optional: a claim would say the same. */
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
	/* READ: at most `count` tasks with from_ms <= due <= until_ms, in that order, behind the first `skip` of them.
	 * An until_ms of INT64_MAX stands for Redis' present. */
	int64_t from_ms, until_ms;
	size_t skip, count;
};

/* The next order, if there is one: pull until there is none. An order must be answered: by its answer, or by
 * hw_schedule_failed(). Turns the wheel, at most some thousand steps a call. */
bool hw_schedule_next(struct hw_schedule *s, struct hw_mono now, struct hw_schedule_order *out);

/* What became of a task of a claim. */
struct hw_schedule_claimed {
	struct hw_task_id task;
	bool sent;      /* it counts against the rate */
	int64_t due_ms; /* when to look at it again; 0: never, it ended or is gone */
};
void hw_schedule_claimed(struct hw_schedule *s, struct hw_mono now, uint64_t serial, int64_t redis_ms,
                         const struct hw_schedule_claimed *tasks, size_t n);

struct hw_schedule_found {
	struct hw_task_id task;
	uint32_t receiver;
	int64_t due_ms;
	bool is_none; /* no task: it counts as one of the page, nothing more */
};
/* In their order; fewer than `count` were the last. */
void hw_schedule_page(struct hw_schedule *s, struct hw_mono now, uint64_t serial, int64_t redis_ms,
                      const struct hw_schedule_found *tasks, size_t n);

/* The order failed, or nobody knows what became of it: it is given again, a second later. */
void hw_schedule_failed(struct hw_schedule *s, struct hw_mono now, uint64_t serial);

/* When hw_schedule_next() should be called again at the latest. */
struct hw_mono hw_schedule_due(const struct hw_schedule *s, struct hw_mono now);

struct hw_schedule_stats {
	uint64_t claims, claimed, sent, pages, found,
		overdue; /* overdue: found by the look, and not known until then */
	uint64_t failed, no_memory, clock_holds, rebuilt;
	size_t known;   /* tasks, now */
	size_t waiting; /* of them due, and not claimed yet */
	size_t bytes;   /* held in memory */
};
void hw_schedule_stats(const struct hw_schedule *s, struct hw_schedule_stats *out);

#endif

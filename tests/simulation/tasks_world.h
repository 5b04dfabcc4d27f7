/* SPDX-License-Identifier: MIT */
/*
 * A world of tasks in virtual time: instances, each with the real scheduler, and the scripts' naive twin in place of
 * Redis (tests/property/twin_tasks.h; test_tasks_twin compares it with the scripts). Around them are models of the
 * network, of devices that answer or not and come and go, of submitters that repeat requests, and of troubles. An
 * oracle watches the messages and the events. It does not know the rules of the twin or of the scheduler.
 */
#ifndef TASKS_WORLD_H
#define TASKS_WORLD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "../property/twin_tasks.h"
#include "sim_random.h"
#include "tasks/schedule/schedule.h"

#define TW_STEP_MS   25
#define TW_INSTANCES 3
#define TW_DEVICES   5
#define TW_TASKS     48
#define TW_PACKETS   1024
#define TW_BEGIN_MS  INT64_C(1790000000000)

enum tw_trouble {
	TW_CRASH,  /* an instance dies, and comes back or not */
	TW_PAUSE,  /* an instance is suspended */
	TW_REDIS,  /* Redis cannot be reached: calls, or their answers, are lost */
	TW_CLOCK,  /* Redis' clock is set ahead, and back */
	TW_BACK,   /* Redis' clock goes back */
	TW_FLUSH,  /* Redis is emptied */
	TW_FLAP,   /* devices come and go fast */
	TW_LOSS,   /* messages are lost, delayed, doubled */
	TW_EVENTS, /* online events are lost */
	TW_TROUBLES
};
const char *tw_trouble_name(enum tw_trouble k);

/* Lies: what the wiring does wrong on purpose. The lies of the twin follow. */
enum tw_lie {
	TW_HONEST,
	TW_LIE_LOOK,    /* the tasks that a check finds are discarded */
	TW_LIE_HOLD,    /* clock_hold is off */
	TW_LIE_SHORT,   /* clock_hold is half as long */
	TW_LIE_EXPIRED, /* a message is sent although its exp has passed */
	TW_LIE_TWICE,   /* a device does each message that it gets */
	TW_LIES
};

struct tw_packet {
	enum tw_packet_kind { TW_CALL, TW_REPLY, TW_MESSAGE, TW_RESPONSE, TW_SUBMIT, TW_ONLINE } kind;
	int64_t at;
	unsigned instance, run; /* the instance, and its run, that sent the packet or must receive it */
	bool lost;              /* the call is carried out, its answer is lost */
	struct hw_schedule_order order;
	int64_t latest, redis_ms, asked; /* asked: of a call, and of its reply */
	struct hw_schedule_claimed claimed[HW_CLAIM_MAX];
	struct tw_send {
		unsigned task; /* the submission to send; TW_TASKS: none */
		int64_t at, exp;
	} send[HW_CLAIM_MAX];
	struct twin_wake found[TW_TASKS * 2];
	size_t n;
	unsigned task, device;
	int64_t exp;
	enum hw_task_answer_kind answer;
};

struct tw_instance {
	bool alive;
	unsigned run;
	struct hw_schedule *schedule;
	int64_t paused_until, back_at; /* 0: it does not come back by itself */
	char name[16];
};

struct tw_device {
	char name[16];
	bool online, known_offline;
	bool unseen_return;           /* the device has come online, and no instance knows this yet */
	int64_t changes_at, known_at; /* changes_at: when the device next stops or returns. known_at: when the
	                               * monitor will know of its last change; 0: it knows */
	int64_t known_online_at;      /* the last online event that reached an instance */
	double answers;               /* the probability that the device answers a message */
	bool acks, slow, rogue;       /* rogue: answers for others */
};

struct tw_task {
	struct hw_task_submission s;
	char msg_id[16];
	struct hw_task_id id;
	int64_t submit_at, resubmit_at, cancel_at;
	unsigned device;
	bool told, flushed, repeats;
	unsigned effects; /* how often its device has carried it out */
	bool has_effect;
	/* as the oracle saw it */
	enum hw_task_state state;
	bool exists;
	int64_t at, exp, run, sent_at, acked_at, sent_redis;
	unsigned tries;
	bool woken; /* an online event was written since the task was last sent */
	int64_t window_since;
	enum hw_task_answer_kind said; /* its device's last answer, once it has_effect */
};

struct tw_count {
	uint64_t tasks, sends, retries, held, complete, failed, expired, cancelled, late, deaths, calls, overdue, holds;
};

struct tw_world {
	uint64_t seed;
	struct sim_random random;
	enum tw_lie lie;
	bool troubles[TW_TROUBLES];
	double rate; /* how often each kind of trouble begins, per second */
	FILE *tell, *trace;
	unsigned breaches;

	int64_t now;        /* ms since the machine's start: BOOTTIME */
	int64_t quiet_from; /* no trouble begins after this time */
	int64_t end;
	int64_t clock_ms;          /* by how much Redis' clock is ahead of the true time */
	int64_t clock_back_at;     /* when the clock will be set back; 0: never */
	int64_t clock_was_back_at; /* when the clock was last set back; 0: never */
	int64_t redis_until;       /* Redis cannot be reached before this time */
	int64_t calm_since;        /* when the last trouble that may cause a delay occurred */
	bool flushed;
	struct twin twin;
	struct hw_task_rules rules;
	struct hw_schedule_conf conf;
	struct tw_instance instances[TW_INSTANCES];
	unsigned n_instances, n_devices, n_tasks;
	struct tw_device devices[TW_DEVICES];
	struct tw_task tasks[TW_TASKS];
	struct tw_packet packets[TW_PACKETS];
	unsigned active[TW_PACKETS], spare[TW_PACKETS]; /* of the packets: under way, and free */
	unsigned n_active, n_spare;
	uint64_t seen_events; /* how many events of the twin the oracle has seen */
	struct tw_count count;
};

void tw_init(struct tw_world *w, uint64_t seed);
/* Plans only this kind of trouble. */
void tw_only(struct tw_world *w, enum tw_trouble k);
/* Sets what is done wrong on purpose. */
void tw_lie(struct tw_world *w, enum tw_lie lie, enum twin_lie twin);
void tw_run(struct tw_world *w);
void tw_fini(struct tw_world *w);

/* --- among the files ---------------------------------------------------------------------------------------------- */

int64_t tw_redis_ms(const struct tw_world *w);
int64_t tw_true_ms(const struct tw_world *w);
struct tw_task *tw_task_of(struct tw_world *w, const struct hw_task_id *id);
struct hw_text tw_text(const char *s);
void tw_delay(struct tw_world *w); /* notes that something happened that may cause a delay */

void tw_breach(struct tw_world *w, const struct tw_task *t, const char *what);
/* These functions tell the oracle: a claim was answered with SEND; a message leaves; a device carries a task out;
 * events were written; time has passed. */
void tw_saw_send(struct tw_world *w, struct tw_task *t);
void tw_saw_message(struct tw_world *w, const struct tw_send *m);
void tw_saw_effect(struct tw_world *w, struct tw_task *t);
void tw_saw_events(struct tw_world *w);
void tw_watch(struct tw_world *w);
void tw_judge(struct tw_world *w);

/* Makes the trouble of this step. */
void tw_make_trouble(struct tw_world *w);
void tw_start(struct tw_world *w, unsigned i);
void tw_kill(struct tw_world *w, unsigned i);
/* Some instances die, or are suspended, just after Redis has carried out their call. */
void tw_between_claim_and_send(struct tw_world *w, unsigned i);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The events that will happen: a heap ordered by time and, for equal times, by the order in which they were planned. An
 * event cannot be removed. Instead it has a stamp, which its planner compares when the event comes.
 */
#ifndef SIM_QUEUE_H
#define SIM_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sim_kind {
	SIM_BEAT,         /* device `who`: time for a heartbeat */
	SIM_DIAL,         /* ... tries to connect */
	SIM_CLOSED,       /* ... finds its connection closed */
	SIM_LIFE,         /* ... dies, returns, loses its network or gets it back: `arg` an enum sim_turn */
	SIM_IN,           /* a packet arrives in the broker's socket of client `who` */
	SIM_SERVE,        /* the broker serves the next socket */
	SIM_LAPSE,        /* the broker checks whether client `who` has exceeded its keepalive */
	SIM_PIPE,         /* connection `who` of the monitor can be read */
	SIM_DUE,          /* timer `who` of the monitor */
	SIM_TICK,         /* the monitor's second */
	SIM_HOST_DIAL,    /* the monitor's connection `who` tries to connect */
	SIM_HOST_CLOSED,  /* the monitor's publisher finds its connection closed */
	SIM_START,        /* the monitor starts */
	SIM_LOAD,         /* the next devices come from the store */
	SIM_REDIS,        /* the monitor looks at its link to the store */
	SIM_STORE,        /* the store answers */
	SIM_TROUBLE,      /* trouble `who` begins */
	SIM_TROUBLE_OVER, /* ... ends */
	SIM_PAUSE,        /* the broker pauses, or goes on */
	SIM_REPUBLISH,    /* the monitor publishes every status again */
	SIM_END
};

struct sim_event {
	int64_t at;
	uint64_t order;
	int64_t arg;
	uint32_t who, stamp;
	enum sim_kind kind;
};

struct sim_queue {
	struct sim_event *heap; /* owned */
	size_t n, cap;
	uint64_t planned;
};

void sim_queue_fini(struct sim_queue *q);
/* Ends the program if there is no memory: a simulation has nothing better to do then. */
void sim_queue_push(struct sim_queue *q, struct sim_event ev);
bool sim_queue_pop(struct sim_queue *q, struct sim_event *ev);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A simulated world around the real core: a broker, a fleet of devices, a store, and a host that drives the core like a
 * daemon. All have one virtual clock and one seed. The oracle knows what truly happened, and checks all outputs of the
 * core. See README.md in this directory.
 *
 * A run depends only on its plan and its seed: the same seed gives the same trace, with the same hash.
 */
#ifndef SIM_H
#define SIM_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "heartwheel/time.h"
#include "sim_broker.h"
#include "sim_fleet.h"
#include "sim_gateway.h"
#include "sim_host.h"
#include "sim_metrics.h"
#include "sim_oracle.h"
#include "sim_plan.h"
#include "sim_queue.h"
#include "sim_random.h"
#include "sim_store.h"
#include "sim_world.h"

#define SIM_BOOTED_NS (1000 * HW_NS_PER_S)
#define SIM_WALL_MS   INT64_C(1700000000000)

/* Lies: what the host or the store does wrong on purpose, so that a test sees whether the oracle notices it. */
enum sim_lie {
	SIM_NO_LIE,
	SIM_DEAF,          /* no message is passed on after a while */
	SIM_IDLE,          /* the core gets no call when its time has come */
	SIM_FORGED,        /* every barrier is reported as returned when the loop next wakes, and none is sent */
	SIM_TWICE,         /* a transition is passed on twice */
	SIM_LOST_WRITE,    /* the store does not write that a device is offline */
	SIM_UNSENT_STATUS, /* a status is reported as acknowledged, and is not sent */
	SIM_BLINDED,       /* a stall of the loop is reported that did not happen */
	SIM_HASTY,         /* timeouts are a fifth shorter than configured */
	SIM_SLUGGISH,      /* ... half again as long, and a second longer */
	SIM_KEYLESS,       /* a plain refresh that finds no key counts as one that has extended it */
	SIM_LEFT_OUT,      /* the elements of a list that the core has not handled are not passed to it again */
	SIM_FIRST_ALONE,   /* only the first element of a list is passed on */
	SIM_LIES,
	/* Lies that are found only with a certain kind of trouble. */
	SIM_TOGETHER = SIM_LIES, /* barriers and canaries are sent on the connection of the statuses */
	SIM_ANSWERED,            /* barriers are reported as acknowledged, and their connection is not opened again */
	SIM_UNTOLD,              /* the state of a bridge is not passed on */
	/* The following lies can be found only in a fleet with online_after, with parents, or with learned timeouts. */
	SIM_RETURNS_LIES,
	SIM_EAGER = SIM_RETURNS_LIES, /* one heartbeat brings every device back */
	SIM_COY,                      /* it takes two heartbeats more than configured */
	SIM_PARENT_LIES,
	SIM_PROVEN = SIM_PARENT_LIES, /* children prove their parent, although child_proves is off */
	SIM_ORPHANED,                 /* children go offline with their parent, although parent_death is off */
	SIM_ALL_LIES,
	/* Lies that are found only in a fleet that learns its timeouts. */
	SIM_LEARNING_LIES = SIM_ALL_LIES,
	SIM_LAVISH = SIM_LEARNING_LIES, /* the core is configured with more mistakes a day than it may make */
	SIM_LENIENT,                    /* no learned timeout is shorter than an hour */
	SIM_SHOWN,                      /* learned timeouts are not in force */
	SIM_LEARNING_LIES_END
};

struct sim {
	uint64_t seed;
	struct sim_random random;
	int64_t now; /* true time, since the run's begin */
	struct sim_queue queue;
	struct sim_plan plan;
	struct sim_broker broker;
	struct sim_fleet fleet;
	struct sim_host host;
	struct sim_store store;
	struct sim_world world;
	struct sim_oracle oracle;
	struct sim_metrics *metrics; /* borrowed; NULL: none wanted */
	uint64_t hash, events;
	FILE *trace; /* borrowed; NULL: no trace */
	FILE *tell;  /* borrowed; breaches are written to it; NULL: not written */
	enum sim_lie lie;
	bool over;
	unsigned breaches;
};

/* The run under way. The wiring's functions for time and logs have no other access to it. NULL: there is no run. */
extern struct sim *sim_running;

/* Draws the plan of a seed; the caller may then change s->plan. */
void sim_init(struct sim *s, uint64_t seed);
/* Runs the plan to its end, or to the first breach. */
void sim_run(struct sim *s);
void sim_fini(struct sim *s);

static inline int64_t sim_length(const struct sim *s)
{
	return s->plan.trouble_ns + s->plan.calm_ns;
}

static inline void sim_at(struct sim *s, int64_t at, enum sim_kind kind, uint32_t who, uint32_t stamp, int64_t arg)
{
	sim_queue_push(&s->queue, (struct sim_event){.at = at, .arg = arg, .who = who, .stamp = stamp, .kind = kind});
}

/* Adds an event to the hash, and to the trace if there is one. */
void sim_trace(struct sim *s, const char *what, int64_t a, int64_t b);
/* Adds an event to the trace only. */
void sim_note(const struct sim *s, const char *what, int64_t a, int64_t b);
/* Reports a breach, and ends the run. */
void sim_breach(struct sim *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline void *sim_calloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);
	if (!p) {
		fprintf(stderr, "simulate: out of memory\n");
		exit(2);
	}
	return p;
}

#endif

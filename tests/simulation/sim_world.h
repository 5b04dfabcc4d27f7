/* SPDX-License-Identifier: MIT */
/*
 * What truly prevents the monitor from receiving the fleet's messages. It is determined after every event, from the
 * broker, the network, and the monitor's process and connections, but never from the core. The oracle compares the
 * core's blindness with it in both directions: each period of blindness must lie within hindrances, and each hindrance
 * that a monitor must notice must lie within blindness.
 *
 * All times are the monitor's monotonic clock, which stands still while its machine is suspended.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim_broker.h"

struct sim;

enum sim_hindrance {
	SIM_PROCESS,   /* the monitor's process is stopped, or does not exist */
	SIM_THREAD,    /* one of its readers stands still, but not the others */
	SIM_MACHINE,   /* its machine is suspended */
	SIM_READER,    /* one of its readers is not connected */
	SIM_PUBLISHER, /* its publisher is not connected, or no barrier has returned since it was connected */
	SIM_UNSENT,    /* ... its publisher alone is not connected */
	SIM_SILENCE,   /* the broker does not run, or the network is cut: nothing gets through */
	SIM_SLOWNESS,  /* a barrier has been under way for longer than barrier_slow */
	SIM_LOSS,      /* the broker drops packets that a reader does not take, or is about to */
	SIM_BACKLOG,   /* after one of these: the monitor has not yet handled all that it has read */
	SIM_LOAD_HIGH, /* broker or network are slower than usual */
	SIM_UNCARRIED, /* the connection of its barriers is open, and carries nothing */
	SIM_HINDRANCES
};

struct sim_span {
	int64_t from, to;
	int64_t before; /* how long all spans before it are together */
	int64_t put_back;
};

struct sim_spans {
	struct sim_span *span; /* owned */
	size_t n, cap;
};

/* Appends a span; *before of the new span is computed from the last one. */
struct sim_span *sim_spans_add(struct sim_spans *x, int64_t from, int64_t to);

struct sim_world {
	int64_t from[SIM_HINDRANCES]; /* -1: it does not hinder now */
	/* Both are in order and disjoint, and contain the time that each hindrance allows before and after it.
	 * blinding: the hindrances that blind. hindered: all of them. */
	struct sim_spans blinding, hindered;
	int64_t slowest_ns;                     /* of the delays in this SIM_LOAD_HIGH */
	int64_t slow_lead_ns;                   /* by how much SIM_SLOWNESS began after the last good barrier */
	bool absent;                            /* in this SIM_PROCESS no process existed for a while */
	uint64_t loss_number;                   /* messages were lost; the monitor knows that when this barrier is
	                                         * back */
	int64_t up_at;                          /* all readers were connected again then */
	int64_t slept_ns;                       /* how long the machine had been suspended when SIM_MACHINE began */
	struct sim_spans muted[SIM_GROUPS_MAX]; /* a group's filters brought nothing */
	int64_t mute_from[SIM_GROUPS_MAX];      /* ... nor do they now; -1: they do */
	int64_t lost_of[SIM_GROUPS_MAX];        /* when a packet of this group was last dropped; -1: never */
	int64_t good_at[SIM_READERS_MAX];       /* when a barrier last returned on a reader, or the reader was
	                                         * connected */
	uint64_t sent, back[SIM_READERS_MAX], sent_before_up; /* barriers */
	bool proven;             /* a barrier that was sent since the publisher was connected has returned */
	int64_t uncarried_alone; /* since when there has been no other hindrance while barriers were not carried */
	size_t checked;          /* how many of the oracle's periods of blindness were explained so far */
};

void sim_world_init(struct sim *s);
void sim_world_fini(struct sim *s);
/* Called when a monitor starts. */
void sim_world_started(struct sim *s);
/* After every event. */
void sim_world_look(struct sim *s);

/* sim_world_barrier(): a barrier was sent on a connection. sim_world_back(): it is back on a reader. */
void sim_world_barrier(struct sim *s, uint64_t number);
void sim_world_back(struct sim *s, uint32_t reader, uint64_t number);
void sim_world_link(struct sim *s, uint32_t link, bool up);
/* Called when the broker has dropped a packet of this group (SIM_GROUPS_MAX: of no group), or when a reader's buffer
 * is nearly full. */
void sim_world_loses(struct sim *s, unsigned group);

/* Whether the monitor certainly receives nothing now, and has had the time to notice. */
bool sim_world_is_deafened(const struct sim *s);
/* How much of the time between two moments had any hindrance. */
int64_t sim_world_hindered_ns(const struct sim *s, int64_t from, int64_t to);
/* Returns for how long a group's filters delivered nothing between two moments, until the time at which the monitor
 * can know that this is over. */
int64_t sim_world_muted_ns(const struct sim *s, unsigned group, int64_t from, int64_t to);
/* Called when the monitor closes a reader's connection. This is a breach if nothing is wrong with that connection. */
void sim_world_gives_up(struct sim *s, uint32_t reader);
/* Whether the monitor may believe a group's silence although its filters deliver nothing, because hardly any device
 * sends on them. */
bool sim_world_is_believed(const struct sim *s, unsigned group);
/* Whether a group that the core reports as deaf may be deaf. */
bool sim_world_may_be_deaf(const struct sim *s, unsigned group);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The oracle knows what truly happened: when each heartbeat got through to the broker, who died when, which goodbye was
 * evidence, when the monitor was blind. It keeps a seeing clock of its own, as a list of what was blind, and looks at
 * every transition and at what is stored in the end. A breach is
 *
 *   - a false offline: a device is taken offline although no gap between the heartbeats that got through was as long
 *     as its timeout, by seen time; or on a goodbye that was none, or that a heartbeat followed;
 *   - one that is too early by the rule, or while blind, or without two barriers back on every reader;
 *   - a missed death: late by more than a tick, a few round trips, and what trouble there was since the deadline;
 *   - a transition that is none (the state before), or whose seq does not grow; also over restarts, in the store;
 *   - a monitor that is blind for longer than its troubles explain;
 *   - in the end: a device that is not what it should be in the core, the store or the retained status.
 *
 * All times are the monitor's monotonic clock, which stands still while its machine is suspended.
 */
#ifndef SIM_ORACLE_H
#define SIM_ORACLE_H

#include "heartwheel/monitor.h"
#include "sim_broker.h"
#include "sim_plan.h"
#include "sim_store.h"

struct sim;

#define SIM_ARRIVALS 128
#define SIM_NUMBERS  4096

struct sim_watched {
	int64_t arrival[SIM_ARRIVALS]; /* a ring of the latest that got through to the broker */
	uint32_t arrivals;
	int64_t goodbye_at; /* the last that was evidence; -1: none */
	/* as the monitor of this run read it */
	bool read, said_own;
	int64_t read_at, own_ms;
	/* what it said */
	enum hw_state state; /* HW_STATE_PROVISIONAL: nothing in this run */
	uint64_t seq;
	/* true time, for the metrics */
	enum hw_state told; /* last, in whichever run */
	bool alive;
	int64_t died_at, mistaken_at, counted_at; /* -1: not */
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

struct sim_oracle {
	struct sim_watched *watched; /* owned; a device */
	struct sim_spans blind;      /* one after another */
	struct sim_spans trouble;    /* each with what it leaves behind; they may overlap */
	bool blind_open;
	int64_t blind_from, put_back, lossy_end;
	uint64_t periods, periods_told;
	int64_t sent_at[SIM_NUMBERS];
	uint64_t back[SIM_READERS_MAX];
	int64_t down_at[SIM_READERS_MAX + 1]; /* a link of the host; -1: up */
	int64_t started;                      /* true time */
	bool told_blind, amnesia;
};

void sim_oracle_init(struct sim *s);
void sim_oracle_fini(struct sim *s);

/* What truly happens. */
void sim_oracle_arrived(struct sim *s, uint32_t device);
void sim_oracle_goodbye(struct sim *s, uint32_t device);
void sim_oracle_died(struct sim *s, uint32_t device);
void sim_oracle_returned(struct sim *s, uint32_t device);
void sim_oracle_trouble(struct sim *s, const struct sim_trouble *t);

/* What the host sees. */
void sim_oracle_started(struct sim *s);
void sim_oracle_crashed(struct sim *s);
void sim_oracle_amnesia(struct sim *s);
void sim_oracle_link(struct sim *s, uint32_t link, bool up);
void sim_oracle_read(struct sim *s, uint32_t device, int64_t timeout_ms);
void sim_oracle_barrier(struct sim *s, uint64_t number);
void sim_oracle_back(struct sim *s, uint32_t reader, uint64_t number);
void sim_oracle_loaded(struct sim *s, uint32_t device, const struct sim_record *r);
/* After every input and output: follows the periods of blindness. */
void sim_oracle_watch(struct sim *s);

/* The oracle's own seeing clock: the monotonic clock less all that was blind. */
int64_t sim_oracle_seen(const struct sim_oracle *o, int64_t mono);
/* ... and back: the first moment at which it showed this. */
int64_t sim_oracle_unseen(const struct sim_oracle *o, int64_t seen);
/* How long troubles lasted between two moments, those that overlap counted each. */
int64_t sim_oracle_troubled(const struct sim_oracle *o, int64_t from, int64_t to);
int64_t sim_oracle_mono(const struct sim *s);
void sim_oracle_count(struct sim *s, uint32_t device);
/* For the metrics: a transition was said. */
void sim_oracle_changed(struct sim *s, uint32_t device, const struct hw_transition *t);

/* What the core says, and what the store is given. */
void sim_oracle_told(struct sim *s, const struct hw_out *out);
void sim_oracle_transition(struct sim *s, uint32_t device, const struct hw_transition *t);
void sim_oracle_stored(struct sim *s, const struct sim_order *o, const struct sim_record *was);
void sim_oracle_finish(struct sim *s);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The oracle knows what truly happened: when each heartbeat got through to the broker, who died when, which goodbye was
 * evidence. It keeps a seeing clock of its own, as a list of what was blind: the core's, each period of which is held
 * against what was truly in the way (sim_world.h). It looks at every transition and at what is stored in the end. A
 * breach is
 *
 *   - a false offline: a device is taken offline although no gap between the heartbeats that got through was as long
 *     as its timeout, by seen time; or on a goodbye that was none, or that a heartbeat followed;
 *   - a deadline, as the core tells it, that a goodbye has put off;
 *   - one that is too early by the rule, a goodbye's that was not held long enough, or while blind, or without two
 * barriers back on every reader;
 *   - a missed death: late by more than a tick, a few round trips, and what trouble there was since the deadline;
 *   - a transition that is none (the state before), or whose seq does not grow; also over restarts, in the store;
 *   - a monitor that is blind, gives up a connection or takes a group for deaf where nothing is wrong, or that sees
 * where it cannot (sim_world.h);
 *   - in the end: a device that is not what it should be in the core, the store or the retained status.
 *
 * All times are the monitor's monotonic clock, which stands still while its machine is suspended.
 */
#ifndef SIM_ORACLE_H
#define SIM_ORACLE_H

#include "core/learn.h"
#include "heartwheel/monitor.h"
#include "sim_broker.h"
#include "sim_plan.h"
#include "sim_store.h"
#include "sim_world.h"

struct sim;

#define SIM_ARRIVALS 128
#define SIM_NUMBERS  4096

/* The fate of a heartbeat that reached the broker. */
enum sim_fate {
	SIM_HEARD,   /* the broker passes the heartbeat on, as far as is known */
	SIM_UNHEARD, /* the filters of the device's group still bring nothing */
	SIM_LOST     /* the broker has dropped the heartbeat, so the monitor cannot learn of the heartbeat */
};

struct sim_arrival {
	int64_t at;
	enum sim_fate fate;
};

struct sim_watched {
	struct sim_arrival arrival[SIM_ARRIVALS]; /* a ring of the latest that got through to the broker */
	uint32_t arrivals;
	int64_t goodbye_at; /* the last that was evidence; -1: none */
	/* as the monitor of this run read it */
	bool read, said_own;
	int64_t read_at, own_ms;
	int64_t goodbye_read_at,
		hold_ns;             /* of the goodbyes since the last heartbeat: the first end of a hold; -1: none */
	unsigned counted, may_count; /* consecutive heartbeats of an offline device: at least, and at most */
	int64_t count_at;            /* the last of them */
	int64_t count_true_at;       /* the same in true time, which goes on while the machine is suspended */
	int64_t loaded_at; /* the store has known the device since then, or a transition if the store knew nothing */
	int64_t silent_ns; /* by the store when this run began, without the time in which no monitor ran */
	/* what it said */
	enum hw_state state; /* HW_STATE_PROVISIONAL: nothing in this run */
	uint64_t seq;
	/* in a fleet that learns: sim_learning.c */
	struct hw_gaps gaps;
	bool timed, announced; /* announced: a goodbye was read while it was not offline */
	unsigned mistakes;     /* it was called offline and worked; without the first quarter of the run */
	/* true time, for the metrics */
	enum hw_state told; /* last, in whichever run */
	bool alive;
	int64_t died_at, mistaken_at, counted_at; /* -1: not */
};

struct sim_oracle {
	struct sim_watched *watched;           /* owned; a device */
	struct sim_spans blind;                /* one after another */
	struct sim_spans deaf[SIM_GROUPS_MAX]; /* a group, one after another */
	int64_t deaf_from[SIM_GROUPS_MAX];     /* -1: it hears */
	int64_t unanswered[SIM_GROUPS_MAX];    /* the time at which a canary was lost, and none has arrived since;
	                                        * -1: none */
	bool differs[SIM_GROUPS_MAX];          /* the last state of its bridge that was read */
	struct sim_spans away[SIM_GROUPS_MAX]; /* blind because of that, one after another */
	int64_t away_from[SIM_GROUPS_MAX];     /* -1: not now */
	bool blind_open;
	int64_t blind_from, put_back, lossy_end;
	uint64_t periods, periods_told;
	int64_t sent_at[SIM_NUMBERS];
	uint64_t behind[SIM_NUMBERS]; /* the last barrier that was back on every reader when this one was sent */
	uint64_t back[SIM_READERS_MAX];
	int64_t started; /* true time */
	int64_t started_at;
	bool told_blind, amnesia;
	bool damaged;        /* the store is not what this run has written */
	int64_t reloaded_at; /* timeouts have changed then */
	struct hw_learn_rules rules;
	uint64_t excused; /* mistakes that the broker caused by dropping heartbeats */
	uint64_t bounded; /* ... that recurring blindness delays by three timeouts at most */
};

void sim_oracle_init(struct sim *s);
void sim_oracle_fini(struct sim *s);

/* What truly happens. */
/* A heartbeat got through to the broker; returns its number, of this device. */
uint32_t sim_oracle_arrived(struct sim *s, uint32_t device);
/* It goes no further. */
void sim_oracle_lost(struct sim *s, uint32_t device, uint32_t number, bool muted);
void sim_oracle_goodbye(struct sim *s, uint32_t device);
void sim_oracle_died(struct sim *s, uint32_t device);
void sim_oracle_returned(struct sim *s, uint32_t device);

/* What the host sees. */
void sim_oracle_started(struct sim *s);
void sim_oracle_crashed(struct sim *s);
void sim_oracle_amnesia(struct sim *s);
void sim_oracle_link(struct sim *s, uint32_t link, bool up);
void sim_oracle_read(struct sim *s, uint32_t device, int64_t timeout_ms);
void sim_oracle_read_goodbye(struct sim *s, uint32_t device);
/* ... the state of a group's bridge. */
void sim_oracle_bridge(struct sim *s, uint32_t group, bool up);
/* The core was given a goodbye: it does not count as a heartbeat. */
void sim_oracle_took_goodbye(struct sim *s, uint32_t device);
void sim_oracle_barrier(struct sim *s, uint64_t number);
void sim_oracle_back(struct sim *s, uint32_t reader, uint64_t number);
/* The store has no record of the device, or no longer. */
void sim_oracle_unknown(struct sim *s, uint32_t device);
void sim_oracle_loaded(struct sim *s, uint32_t device, const struct sim_record *r);
/* A heartbeat is read: whether it is one of those that bring an offline device back. Judged in sim_judge.c. */
void sim_oracle_count_return(struct sim *s, uint32_t device);
/* The timeout of a device's group, or the learned one that must be in force. */
int64_t sim_learning_timeout_ms(const struct sim *s, uint32_t device);
void sim_learning_begin(struct sim *s);
/* A heartbeat is read, and the one before is still the last. */
void sim_learning_read(struct sim *s, uint32_t device);
void sim_learning_loaded(struct sim *s, uint32_t device, const struct sim_record *r);
void sim_learning_forgotten(struct sim *s, uint32_t device);
void sim_learning_offline(struct sim *s, uint32_t device);
/* After every input and output: follows the periods of blindness. */
void sim_oracle_watch(struct sim *s);

/* The oracle's own seeing clock: the monotonic clock less all that was blind. */
int64_t sim_oracle_seen(const struct sim_oracle *o, int64_t mono);
/* ... and back: the first moment at which the seeing clock had this value. */
int64_t sim_oracle_unseen(const struct sim_oracle *o, int64_t seen);
int64_t sim_oracle_mono(const struct sim *s);
void sim_oracle_count(struct sim *s, uint32_t device);
/* For the metrics: a transition was said. */
void sim_oracle_changed(struct sim *s, uint32_t device, const struct hw_transition *t);

/* The outputs of the core, and what the store is given. */
void sim_oracle_told(struct sim *s, const struct hw_out *out);
void sim_oracle_deaf(struct sim *s, uint32_t group, bool begun);
void sim_oracle_upstream(struct sim *s, uint32_t group, bool begun);
/* A canary of a group reaches its broker, which delivers it or does not. */
void sim_oracle_canary(struct sim *s, uint32_t group, bool through);
/* The last barrier that is back on every reader; 0: none since all readers are connected. */
uint64_t sim_oracle_back_on_all(const struct sim *s);
/* When the first of the last pair was sent: two barriers that are back on every reader, the second sent when the first
 * was back. -1 if there is none. */
int64_t sim_oracle_pair_sent(const struct sim *s);
/* What is published on this group's filters comes again. If nobody was to be judged meanwhile, the monitor cannot know
 * that it did not. */
void sim_oracle_unmuted(struct sim *s, uint32_t group);
/* How long a group was deaf, or its bridge away, between two moments. */
int64_t sim_oracle_deaf_ns(const struct sim_oracle *o, uint32_t group, int64_t from, int64_t to);
void sim_oracle_transition(struct sim *s, uint32_t device, const struct hw_transition *t);
void sim_oracle_stored(struct sim *s, const struct sim_order *o, const struct sim_record *was);
void sim_oracle_finish(struct sim *s);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The oracle knows what truly happened: when each heartbeat reached the broker, when each device died, and which
 * goodbye was evidence. It has a seeing clock of its own, which stands still while the core is blind. It compares each
 * blindness of the core with what truly prevented the monitor from receiving (sim_world.h). It checks every transition,
 * and at the end what is stored. Each of these is a breach:
 *
 *   - a false offline: no gap between the heartbeats that reached the broker was as long as the device's timeout, by
 *     the seeing clock; or the goodbye was none, or a heartbeat followed it
 *   - a deadline, as the core reports it, that a goodbye has moved to a later time
 *   - an offline that is too early by the rule: a goodbye was not held long enough, the monitor was blind, or two
 *     barriers were not back on every reader
 *   - a missed death: the offline is later than a tick, a few round trips, and the troubles since the deadline explain
 *   - a transition to the state that the device already had, or whose seq does not grow, also over restarts
 *   - a monitor that is blind, gives up a connection or calls a group deaf without a reason, or that sees although it
 *     cannot (sim_world.h)
 *   - at the end, a device with a wrong state in the core, the store or the retained status
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
	struct sim_arrival arrival[SIM_ARRIVALS]; /* a ring of the last heartbeats that reached the broker */
	uint32_t arrivals;
	int64_t goodbye_at; /* when the last goodbye that was evidence reached the broker; -1: none */
	/* what the monitor of this run has read of the device */
	bool read, said_own;
	int64_t read_at, own_ms;
	int64_t goodbye_read_at, hold_ns; /* hold_ns: by the goodbyes since the last heartbeat, the earliest time at
	                                   * which a hold may end; -1: none */
	unsigned counted, may_count; /* how many heartbeats in a row the offline device has sent; counted: at least;
	                              * may_count: at most */
	int64_t count_at;            /* when the last of them was read */
	int64_t count_true_at;       /* the same time in true time, which goes on while the machine is suspended */
	int64_t loaded_at; /* since when the store knows the device; if the store did not know it, the time of its
	                    * first transition */
	int64_t silent_ns; /* how long the device had been silent when this run began, by the store; time without a
	                    * monitor does not count */
	/* what the core has reported about the device */
	enum hw_state state; /* HW_STATE_PROVISIONAL: it has reported nothing in this run */
	uint64_t seq;
	/* in a fleet that learns: sim_learning.c */
	struct hw_gaps gaps;
	bool timed, announced; /* announced: a goodbye was read while the device was not offline */
	unsigned mistakes;     /* how often it worked and was called offline; mistakes in the first quarter of the
	                        * run do not count */
	/* true time, for the metrics */
	enum hw_state told; /* the last reported state, of any run */
	bool alive;
	int64_t died_at, mistaken_at, counted_at; /* -1: it has not */
};

struct sim_oracle {
	struct sim_watched *watched;           /* owned; one for each device */
	struct sim_spans blind;                /* periods of blindness, in order */
	struct sim_spans deaf[SIM_GROUPS_MAX]; /* of each group: periods of deafness, in order */
	int64_t deaf_from[SIM_GROUPS_MAX];     /* since when the group has been deaf; -1: it is not */
	int64_t unanswered[SIM_GROUPS_MAX];    /* the time at which a canary was lost, if no canary has arrived
	                                        * since; -1: none was lost */
	bool differs[SIM_GROUPS_MAX]; /* the last state of the group's bridge that was read differs from the value of
	                                 `while` */
	struct sim_spans away[SIM_GROUPS_MAX]; /* periods in which the group was blind for that reason, in order */
	int64_t away_from[SIM_GROUPS_MAX];     /* since when; -1: the group is not */
	bool blind_open;
	int64_t blind_from, put_back, lossy_end;
	uint64_t periods, periods_told;
	int64_t sent_at[SIM_NUMBERS];
	uint64_t behind[SIM_NUMBERS]; /* for each barrier: the last barrier that was back on every reader when this
	                               * one was sent */
	uint64_t back[SIM_READERS_MAX];
	int64_t started; /* true time */
	int64_t started_at;
	bool told_blind, amnesia;
	bool damaged;        /* the store has lost or replaced what this run has written */
	int64_t reloaded_at; /* when a reload last changed timeouts */
	struct hw_learn_rules rules;
	uint64_t excused; /* mistakes that the broker caused by dropping heartbeats */
	uint64_t bounded; /* mistakes that are allowed because recurring blindness delays a death by at most three
	                   * timeouts */
};

void sim_oracle_init(struct sim *s);
void sim_oracle_fini(struct sim *s);

/* What truly happens. */
/* Called when a heartbeat has reached the broker. Returns the heartbeat's number, counted for each device. */
uint32_t sim_oracle_arrived(struct sim *s, uint32_t device);
/* Called when the heartbeat is lost at the broker. */
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
/* Called when a goodbye was passed to the core. A goodbye does not count as a heartbeat. */
void sim_oracle_took_goodbye(struct sim *s, uint32_t device);
void sim_oracle_barrier(struct sim *s, uint64_t number);
void sim_oracle_back(struct sim *s, uint32_t reader, uint64_t number);
/* The store has no record of the device, or no longer. */
void sim_oracle_unknown(struct sim *s, uint32_t device);
void sim_oracle_loaded(struct sim *s, uint32_t device, const struct sim_record *r);
/* Called when a heartbeat is read. Determines whether it counts among those that bring an offline device back. See
 * sim_judge.c. */
void sim_oracle_count_return(struct sim *s, uint32_t device);
/* Returns the timeout of the device's group, or the learned timeout that must be in force. */
int64_t sim_learning_timeout_ms(const struct sim *s, uint32_t device);
void sim_learning_begin(struct sim *s);
/* Called when a heartbeat is read, before it replaces the last one. */
void sim_learning_read(struct sim *s, uint32_t device);
void sim_learning_loaded(struct sim *s, uint32_t device, const struct sim_record *r);
void sim_learning_forgotten(struct sim *s, uint32_t device);
void sim_learning_offline(struct sim *s, uint32_t device);
/* Called after every input and output: follows the periods of blindness. */
void sim_oracle_watch(struct sim *s);

/* Returns the time of the oracle's own seeing clock: the monotonic clock without all periods of blindness. */
int64_t sim_oracle_seen(const struct sim_oracle *o, int64_t mono);
/* Returns the first moment of the monotonic clock at which the seeing clock had this value. */
int64_t sim_oracle_unseen(const struct sim_oracle *o, int64_t seen);
int64_t sim_oracle_mono(const struct sim *s);
void sim_oracle_count(struct sim *s, uint32_t device);
/* Called for each transition. For the metrics. */
void sim_oracle_changed(struct sim *s, uint32_t device, const struct hw_transition *t);

/* Called for each output of the core, and for each order to the store. */
void sim_oracle_told(struct sim *s, const struct hw_out *out);
void sim_oracle_deaf(struct sim *s, uint32_t group, bool begun);
void sim_oracle_upstream(struct sim *s, uint32_t group, bool begun);
/* Called when a canary of a group reaches the broker. `through`: the broker delivers it. */
void sim_oracle_canary(struct sim *s, uint32_t group, bool through);
/* Returns the last barrier that is back on every reader; 0: none since all readers were connected. */
uint64_t sim_oracle_back_on_all(const struct sim *s);
/* Returns when the first barrier of the last pair was sent; -1: there is no pair. A pair is two barriers that are
 * back on every reader, where the second was sent after the first was back. */
int64_t sim_oracle_pair_sent(const struct sim *s);
/* Called when this group's filters deliver again. If the monitor could not notice that the filters did not deliver, the
 * heartbeats of that time count as lost. */
void sim_oracle_unmuted(struct sim *s, uint32_t group);
/* Returns for how long the group was deaf, or its bridge away, between two moments. */
int64_t sim_oracle_deaf_ns(const struct sim_oracle *o, uint32_t group, int64_t from, int64_t to);
void sim_oracle_transition(struct sim *s, uint32_t device, const struct hw_transition *t);
void sim_oracle_published(struct sim *s);
void sim_oracle_stored(struct sim *s, const struct sim_order *o, const struct sim_record *was);
void sim_oracle_finish(struct sim *s);

#endif

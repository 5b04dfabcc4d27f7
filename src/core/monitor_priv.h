/* SPDX-License-Identifier: MIT */
/*
 * The monitor's insides, shared by its files. From the ground up, each knows those before it: monitor.c (the object,
 * its records, questions), form.c (which devices it can hear), out.c (what waits to be pulled out), arm.c (both
 * wheels), key.c (keys), verdict.c (what follows from evidence), gate.c (what another node decides), door.c (every
 * change of a state that is decided here); and above the door what comes in: intake.c (messages), evidence.c
 * (connections), key_intake.c (keys), follow.c (other nodes' decisions), load.c (the store), due.c (time). Private to
 * the core.
 */
#ifndef HW_MONITOR_PRIV_H
#define HW_MONITOR_PRIV_H

#include "hearing.h"
#include "heartwheel/monitor.h"
#include "sight.h"
#include "upstream.h"

#define HW_OUTS       1024 /* what inputs may cause between two drains: at most 3 a message or element of a batch */
#define HW_ELEMENTS   128  /* of batches that are taken between two drains */
#define HW_ARM_MAX_NS (3600 * HW_NS_PER_S) /* an online device is looked at, and refreshed, at least this often */
/* own_timeout_ms of a provisional device that asked for the group's timeout, whatever is stored. */
#define HW_OWN_TIMEOUT_OVER (-1)
#define HW_SEQ_MAX          ((UINT64_C(1) << 48) - 1)

/* A walk over all records, a few at a time. */
struct hw_sweep {
	bool active;
	uint32_t at;
};

/* The store is read again: which of the records that were there when that began have been put in since. And, also when
 * that is over, which of them the store has never said a word of since it was another one: what it lacks of those it
 * has not forgotten, and its first word of each counts, also with a lesser seq. A bit each, by index. */
struct hw_reread {
	uint64_t *said;      /* owned; NULL: nothing is read again */
	uint64_t *lacks;     /* owned; NULL: there is none */
	bool other;          /* it is read for the first time since it was another one */
	uint32_t n, n_lacks; /* indices are below these */
	uint32_t at;         /* of the walk at its end */
};

/* What is known of a group's form (form.h). */
struct hw_form {
	int64_t heard_ns;  /* a device that was heard before was heard in another form; the group's seeing clock */
	uint64_t other;    /* another form that a device of the group was heard in; 0: none is known */
	int64_t silent_ns; /* silence of a device that was not heard since heard_ns counts from here */
	int64_t timeout_ms, timeout_max_ms; /* the longest that another node has for the group; 0: none is known */
	int64_t was_timeout_ms, was_timeout_max_ms; /* before heard_ns; a device has them until it is heard */
	uint32_t unjudged, counted;                 /* devices, by the last round, and by the present one */
	struct hw_group_judging is, found;          /* likewise; without the forms */
};

/* Which devices cannot be judged here: counted in rounds, while there may be any. */
struct hw_unjudged {
	bool any;    /* there may be some */
	bool differ; /* other nodes have other groups: so long there may always be some */
	uint32_t at; /* the next record of the present round */
	uint64_t rounds;
	uint32_t found;                    /* in the present round, of whatever node */
	uint32_t n;                        /* of this node's devices, by the last round */
	struct hw_partitions in, found_in; /* where they are: by the last round, and by the present one */
	/* Where this node hears devices that no node has told of: likewise, and by the last two rounds together. */
	struct hw_partitions heard_in, found_heard, untold_in;
};

/* What is this node's (gate.h). */
struct hw_gate {
	bool all;                            /* it decides about every partition */
	struct hw_partitions owned, decided; /* decided: a part of owned */
	struct hw_partitions spoken;         /* owned, and decided about now or until they began to be handed over */
	uint64_t epoch[HW_PARTITIONS];
	struct hw_sweep sweep; /* takes the devices of `swept` over */
	struct hw_partitions swept;
	struct hw_partitions waiting; /* to be swept after that */
	struct hw_reread reread;
};

struct hw_monitor {
	struct hw_monitor_conf conf;
	struct hw_gate gate;
	struct hw_registry *registry;
	struct hw_wheel wheel;
	struct hw_groups groups;
	struct hw_group_stats *group_stats; /* an element a group, as many as groups.n */
	struct hw_form *form;               /* likewise */
	struct hw_unjudged unjudged;
	int64_t *offline_free_ns; /* a group: when max_offline_rate has its next turn free, seeing clock */
	struct hw_sight sight;
	struct hw_hearing hearing;
	struct hw_upstream upstream;
	struct hw_blind key_blind;  /* the seeing clock of keys */
	struct hw_wheel key_wheel;  /* online devices that their key's deadline comes first for */
	struct hw_queue candidates; /* tags: the barrier that must be proven first; never fall along the queue */
	struct hw_monitor_stats stats;
	struct hw_mono started;

	struct {
		bool begun; /* what the last HW_OUT_BLIND said */
		enum hw_cause cause;
		uint64_t period;      /* the count of the period it spoke of */
		struct hw_mono since; /* when that began */
	} told;
	/*
	 * The shortest timeout that a device asks for itself; INT64_MAX: none. Each one that is in use is noted at
	 * least once in HW_ARM_MAX_NS, when its device is armed: what was noted in one such window is in force until
	 * the end of the next.
	 */
	struct {
		int64_t in_force_ms, noted_ms;
		int64_t until_ns; /* seeing clock: the window ends */
	} own_timeout;

	struct hw_sweep relink;   /* after a reload: deadlines that moved earlier */
	struct hw_sweep anew;     /* after deafness: deadlines that are nearer than where its devices were put */
	struct hw_sweep settle;   /* after loading: provisional devices become what was heard of them */
	uint32_t refresh_at;      /* while blind: refreshes go on, paced */
	struct hw_mono refreshed; /* when the last chunk was due */
	int64_t within_was_ms;    /* a round of them before a reload, which counts for as long as keys live by it: */
	struct hw_mono was_until;
	struct hw_mono spares_from; /* before it no refresh is left out: timeouts were others when it was planned */
	int64_t forget_was_ms, forget_once_was_ms; /* before the reload that the relink sweep serves */

	struct {
		uint8_t key[16]; /* of the tags */
		int64_t free_ns; /* seeing clock: when probe_rate has its next turn free */
	} probe;

	struct {
		bool known;
		int64_t ms; /* hw_monitor_trust_wall() */
		struct hw_mono at;
	} wall;

	struct hw_mono stepped; /* the turn in which sight was looked at last */
	int64_t pace_ns;        /* of steady barriers */
	unsigned outs_head, outs_n;
	struct hw_out outs[HW_OUTS];
	uint64_t peer_messages; /* last: what each transition touches stays where it is */
	struct {
		struct hw_mono at;
		struct hw_ref device;
	} again; /* the last goodbye with the retain flag that may be an earlier one once more (intake.c) */
};

/* Makes a record for an id in a group, HW_STATE_PROVISIONAL and counted as that. 0, -ENOSPC (counted as refused) or
 * -ENOMEM (likewise). */
int hw_monitor_add(struct hw_monitor *m, uint16_t group, const char *id, size_t len, uint32_t *i);

/* A device is armed, and has a timeout of its own or (0) not: the steady pace of barriers follows the shortest in use.
 */
void hw_monitor_note_own_timeout(struct hw_monitor *m, struct hw_now now, int64_t timeout_ms);

/* Grows the arrays that go along with the groups: there will be `n`. 0 or -ENOMEM. */
int hw_monitor_fit_groups(struct hw_monitor *m, size_t n);
/* Deadlines may have moved: a sweep looks at all of them. */
void hw_monitor_begin_relink(struct hw_monitor *m);

void hw_monitor_move(struct hw_monitor *m, struct hw_now now, uint32_t i, uint16_t group);
static inline struct hw_seen hw_monitor_seen(const struct hw_monitor *m, struct hw_now now)
{
	return hw_blind_seen(&m->sight.blind, now.mono);
}

/* What the clock of a device's group shows. */
static inline struct hw_seen hw_monitor_group_seen(const struct hw_monitor *m, struct hw_now now, uint16_t group)
{
	return hw_hearing_seen(&m->hearing, group, hw_monitor_seen(m, now));
}

/* How often a device of this group may have gone unheard: what a goodbye must find again when it is judged. */
static inline uint8_t hw_monitor_periods(const struct hw_monitor *m, uint16_t group)
{
	return (m->sight.blind.periods + m->hearing.group[group].blind.periods) & 0x3f;
}

static inline struct hw_seen hw_monitor_key_seen(const struct hw_monitor *m, struct hw_now now)
{
	return hw_blind_seen(&m->key_blind, now.mono);
}

/* Whether a device is known by a key; and whether by nothing else. Where nobody looks at keys, neither is so: then
 * heartbeats are all that it can be judged by. */
static inline bool hw_monitor_has_key(const struct hw_monitor *m, const struct hw_device *d)
{
	return m->conf.key_group && (hw_device_source(d) & HW_SOURCE_KEY);
}

static inline bool hw_monitor_is_keyed(const struct hw_monitor *m, const struct hw_device *d)
{
	return m->conf.key_group && hw_device_source(d) == HW_SOURCE_KEY;
}

/* The wheel knows where the registry's array is: no call. */
static inline struct hw_device *hw_monitor_at(const struct hw_monitor *m, uint32_t i)
{
	return (struct hw_device *)(void *)m->wheel.nodes + i;
}

/* A bit-field takes no cast that keeps -Wconversion quiet; the range is the caller's to check. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
static inline void hw_device_set_heard_ms(struct hw_device *d, int64_t ms)
{
	d->last_heard_ms = ms;
}
#pragma GCC diagnostic pop

/* Whether its last heartbeat is kept by the wall clock. */
static inline bool hw_state_is_gone(enum hw_state state)
{
	return state == HW_STATE_OFFLINE || state == HW_STATE_FORGOTTEN;
}

static inline bool hw_gate_decides_id(const struct hw_monitor *m, const char *id, size_t len)
{
	return m->gate.all || hw_partitions_has(&m->gate.decided, hw_partition_of(id, len));
}

static inline bool hw_gate_decides(const struct hw_monitor *m, const struct hw_device *d)
{
	return m->gate.all || hw_partitions_has(&m->gate.decided, hw_device_partition(d));
}

/* What is known of a device of p is this node's own word, which neither stream nor store can correct: nobody else
 * writes there, and a master after a failover may only lack it. */
static inline bool hw_gate_speaks(const struct hw_monitor *m, unsigned p)
{
	return m->gate.all || hw_partitions_has(&m->gate.spoken, p);
}

static inline bool hw_gate_owns(const struct hw_monitor *m, const struct hw_device *d)
{
	return m->gate.all || hw_partitions_has(&m->gate.owned, hw_device_partition(d));
}

/* Whether the store has not said a word of a record since it was another one, or was emptied: its owners may have to
 * write it yet, and whoever owns it by then may not know of it. The first word counts also with a lesser seq: what was
 * known of the device may be what that store has lost. */
static inline bool hw_gate_lacks(const struct hw_monitor *m, uint32_t i)
{
	const struct hw_reread *r = &m->gate.reread;
	return i < r->n_lacks && r->lacks[i / 64] >> i % 64 & 1;
}

/* Store or stream has spoken of a record, with this seq. Where this node speaks, an older word is not taken, and what
 * is known here is lacked still: it may lose the device before that is written. Behind the end of the first reading of
 * another store, who wrote it has told the broker as well. */
static inline void hw_gate_said(struct hw_monitor *m, uint32_t i, uint64_t seq)
{
	struct hw_reread *r = &m->gate.reread;
	const struct hw_device *d = hw_monitor_at(m, i);
	uint64_t bit = UINT64_C(1) << i % 64;
	if (i < r->n)
		r->said[i / 64] |= bit;
	if (!hw_gate_lacks(m, i) || (seq < d->seq && hw_gate_speaks(m, hw_device_partition(d))))
		return;
	r->lacks[i / 64] &= ~bit;
	if (!r->other)
		hw_monitor_at(m, i)->flags &= (uint16_t)~HW_FLAG_TOUCHED;
}

/* Whether keys live so long that of two looks less than a timeout apart the second may leave its refresh out: as
 * shipped they live three timeouts, of which two are to be left whenever the monitor dies, for as long as it takes to
 * start again. */
static inline bool hw_monitor_spares(const struct hw_monitor *m)
{
	return m->conf.ttl_factor >= 4;
}

/* What is known of its upstream has changed, perhaps. */
void hw_monitor_note_upstream(struct hw_monitor *m, struct hw_now now);

static inline bool hw_monitor_is_blind(const struct hw_monitor *m)
{
	return hw_blind_now(&m->sight.blind);
}

#endif

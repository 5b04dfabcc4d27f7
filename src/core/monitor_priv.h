/* SPDX-License-Identifier: MIT */
/*
 * The monitor's insides, shared by its files: monitor.c (the object, the door, questions), intake.c (messages,
 * heartbeats, goodbyes), due.c (the wheel, the judgement, the sweeps), key.c (keys), load.c (the store). Private to the
 * core.
 */
#ifndef HW_MONITOR_PRIV_H
#define HW_MONITOR_PRIV_H

#include "heartwheel/monitor.h"
#include "sight.h"

#define HW_OUTS       1024 /* what inputs may cause between two drains: at most 2 a message or element of a batch */
#define HW_ELEMENTS   128  /* of batches that are taken between two drains */
#define HW_ARM_MAX_NS (3600 * HW_NS_PER_S) /* an online device is looked at, and refreshed, at least this often */
/* Of a provisional device: it asked for the group's timeout, whatever is stored. */
#define HW_OWN_TIMEOUT_OVER (-1)
#define HW_SEQ_MAX          ((UINT64_C(1) << 48) - 1)

/* A walk over all records, a few at a time. */
struct hw_sweep {
	bool active;
	uint32_t at;
};

struct hw_monitor {
	struct hw_monitor_conf conf;
	struct hw_registry *registry;
	struct hw_wheel wheel;
	struct hw_groups groups;
	struct hw_group_stats *group_stats; /* an element a group, as many as groups.n */
	int64_t *offline_free_ns;           /* a group: when max_offline_rate has its next turn free, seeing clock */
	struct hw_sight sight;
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

	struct hw_sweep relink; /* after a reload: deadlines that moved earlier */
	struct hw_sweep settle; /* after loading: provisional devices become what was heard of them */
	uint32_t refresh_at;    /* while blind: refreshes go on, paced */
	struct hw_mono refresh_next;
	int64_t forget_was_ms, forget_once_was_ms; /* before the reload that the relink sweep serves */

	struct hw_mono stepped; /* the turn in which sight was looked at last */
	int64_t pace_ns;        /* of steady barriers */
	unsigned outs_head, outs_n;
	struct hw_out outs[HW_OUTS];
};

/* What an input causes, kept until hw_monitor_next() hands it out. */
void hw_monitor_emit(struct hw_monitor *m, const struct hw_out *out);
void hw_monitor_emit_device(struct hw_monitor *m, enum hw_out_kind kind, uint32_t i);

/* The door: the one place where a device's state changes. `delay_ns` as in struct hw_transition. */
void hw_monitor_transition(struct hw_monitor *m, struct hw_now now, uint32_t i, enum hw_state state,
                           enum hw_reason reason, int64_t delay_ns);
/* Gives a record that is being made its first state, without a transition. */
void hw_monitor_place(struct hw_monitor *m, uint32_t i, enum hw_state state, enum hw_reason reason);

/* Makes a record for an id in a group, HW_STATE_PROVISIONAL and counted as that. 0, -ENOSPC (counted as refused) or
 * -ENOMEM (likewise). */
int hw_monitor_add(struct hw_monitor *m, uint16_t group, const char *id, size_t len, uint32_t *i);

struct hw_seen hw_monitor_deadline(const struct hw_monitor *m, const struct hw_device *d);
/* (Re-)arms a device for its state: its deadline, its forgetting, or nothing. Takes it off wherever it is. */
void hw_monitor_arm(struct hw_monitor *m, struct hw_now now, uint32_t i);
/* Re-links an online device only if its deadline is now before the tick that it is armed for. */
void hw_monitor_arm_earlier(struct hw_monitor *m, struct hw_now now, uint32_t i);
/* Takes a record's node off the wheel or the candidates. */
void hw_monitor_unlink(struct hw_monitor *m, uint32_t i);
/* Arms for a moment of the seeing clock. */
void hw_monitor_arm_at(struct hw_monitor *m, uint32_t i, struct hw_seen at);
/* A device is armed, and has a timeout of its own or (0) not: the steady pace of barriers follows the shortest in use.
 */
void hw_monitor_note_own_timeout(struct hw_monitor *m, struct hw_now now, int64_t timeout_ms);
void hw_monitor_candidate(struct hw_monitor *m, uint32_t i);
/* Under max_offline_rate: whether this device has to wait for its turn; if so it is armed for it. */
bool hw_monitor_paced(struct hw_monitor *m, struct hw_now now, uint32_t i);
/* Where an online device's entry belongs: at its deadline, but never more than HW_ARM_MAX_NS ahead. */
struct hw_seen hw_monitor_arm_point(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d);

/* key.c */
/* Arms an online device with HW_SOURCE_KEY: for its key's deadline or for that of its heartbeats, whichever is first.
 */
void hw_monitor_key_arm(struct hw_monitor *m, struct hw_now now, uint32_t i);
/* In the keys' wheel, for a moment of the keys' clock. */
void hw_monitor_key_arm_at(struct hw_monitor *m, uint32_t i, struct hw_seen at);
/* Its entry in the keys' wheel came due. */
void hw_monitor_key_due(struct hw_monitor *m, struct hw_now now, uint32_t i);
/* Whether a device that is silent over MQTT stays online by its key; if so it is armed for that. */
bool hw_monitor_key_keeps(struct hw_monitor *m, struct hw_now now, uint32_t i);
/* Whether it was the key that it lived by last. */
bool hw_monitor_key_was_last(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d);
/* Until its key's deadline, on the keys' clock. */
int64_t hw_monitor_key_left_ns(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d);

void hw_monitor_move(struct hw_monitor *m, uint32_t i, uint16_t group);
/* A provisional device becomes what was heard of it. */
void hw_monitor_settle(struct hw_monitor *m, struct hw_now now, uint32_t i);

static inline struct hw_seen hw_monitor_seen(const struct hw_monitor *m, struct hw_now now)
{
	return hw_blind_seen(&m->sight.blind, now.mono);
}

static inline struct hw_seen hw_monitor_key_seen(const struct hw_monitor *m, struct hw_now now)
{
	return hw_blind_seen(&m->key_blind, now.mono);
}

/* Known by a key, or by nothing else. Where nobody looks at keys, a device can only be judged by its heartbeats. */
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

static inline bool hw_monitor_is_blind(const struct hw_monitor *m)
{
	return hw_blind_now(&m->sight.blind);
}

#endif

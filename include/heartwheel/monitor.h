/* SPDX-License-Identifier: MIT */
/*
 * The monitor: evidence in, transitions out. It owns the registry, the wheel, the groups and the seeing clock, and it
 * is the only place that changes a device's state (one door, transition() in monitor.c).
 *
 * Pure: no socket, clock, log or thread. Whoever drives it passes the time in, hands over what was read, and pulls out
 * what follows:
 *
 *     hw_monitor_messages(m, now, batch, n);               after each batch of the ring, until all are worked off
 *     while (hw_monitor_next(m, now, &budget, &out)) ...   after each input and whenever hw_monitor_due() says so
 *
 * The evidence rule: a device goes offline when its deadline, min(max(last seen, end of the last lossy blindness) +
 * timeout, last seen + 3 x timeout) on the seeing clock, has passed, and then two barriers, each sent after that, have
 * come back through every reader, and it is still passed, and the monitor is not blind. A goodbye makes a candidate
 * without a deadline; a heartbeat read after it, or a blindness or grace that touches it before it is judged, voids it.
 *
 * Keys: a device may also be known by a key in the store that another program writes, with a time to live
 * (HW_SOURCE_KEY). Whoever drives the monitor looks at keys, when somebody touched one and when HW_OUT_KEY_CHECK asks
 * for it, and puts the answers in. Such a device is offline when its key is gone; one that beats over MQTT as well,
 * when both are silent. What the store answers is the evidence itself: no barrier proves it further; but if the store
 * was emptied, that is to be said first (hw_monitor_key_loss()). Keys have a seeing clock and a wheel of their own,
 * because a broker that is away does not keep anybody from seeing keys, nor the other way round. Their blindness is
 * lossy always: a key that is missing after it gets its device one more time to live, counted from its end.
 *
 * Cost: a heartbeat is a look-up and two stores; the wheel is touched once per timeout (lazy re-arm). All other work is
 * spent from the caller's budget, a unit per device looked at.
 */
#ifndef HEARTWHEEL_MONITOR_H
#define HEARTWHEEL_MONITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/blind.h"
#include "heartwheel/group.h"
#include "heartwheel/registry.h"
#include "heartwheel/time.h"
#include "heartwheel/transition.h"

#define HW_BATCH          128
#define HW_READERS_MAX    16
#define HW_TIMEOUT_MIN_MS INT64_C(100)
#define HW_TIMEOUT_MAX_MS (INT64_C(3650) * 86400 * 1000)

struct hw_monitor; /* opaque */

struct hw_monitor_conf {
	uint32_t max_devices;
	int64_t forget_after_ms, forget_once_after_ms; /* 0: never */
	int64_t grace_ms;                              /* [mqtt] reconnect_grace */
	int64_t barrier_slow_ms, barrier_timeout_ms;
	unsigned readers;      /* 1 .. HW_READERS_MAX */
	int ttl_factor;        /* how many timeouts a refresh lasts: paces the sweep while blind */
	const char *adopt_by;  /* NULL, or the node whose retained statuses make devices known; borrowed */
	bool loading;          /* a store will be loaded: unknown ids are provisional until hw_monitor_loaded() */
	const char *key_group; /* NULL: keys are not looked at; or the group of devices known by keys alone; borrowed */
};

struct hw_message {
	const char *topic;
	size_t topic_len;
	const void *payload;
	size_t payload_len;
	bool retained;  /* delivered with the retain flag: history */
	bool truncated; /* the payload was too long to be kept whole: counted as malformed */
	size_t done;    /* 0; the core's place in a batch that it has not worked off yet */
};

enum hw_out_kind {
	HW_OUT_TRANSITION, /* .transition */
	HW_OUT_REFRESH,    /* .device: its keys in the store are due for a refresh */
	HW_OUT_STATUS,     /* .device: its retained status may have been replaced, and is owed again */
	HW_OUT_BARRIER,    /* .barrier: publish this number on the barrier topic */
	HW_OUT_BLIND, /* .blind: a period of blindness began or ended, or is found out to be one of denied barriers */
	HW_OUT_RECONNECT, /* .reader: nothing arrives on this connection, close it and open it again */
	HW_OUT_KEY_CHECK  /* .device: look at its key, and say so with hw_monitor_key() */
};

struct hw_out {
	enum hw_out_kind kind;
	union {
		struct hw_transition transition;
		struct hw_ref device;
		uint64_t barrier;
		unsigned reader;
		struct {
			bool begun;
			enum hw_cause cause; /* that began the period */
			bool lossy;
			int64_t length_ns; /* of a period that ended */
		} blind;
	};
};

/* What was refused or passed over. */
enum hw_refused {
	HW_REFUSED_ID,          /* not a valid id */
	HW_REFUSED_MAX_DEVICES, /* the table is full */
	HW_REFUSED_TIMEOUT,     /* `timeout` is not a finite number >= 0 */
	HW_REFUSED_STALE,       /* `time` is older than the group's max_age */
	HW_REFUSED_RETAINED,    /* history: delivered with the retain flag */
	HW_REFUSED_MONITOR,     /* a monitor's own message */
	HW_REFUSED_TOPIC,       /* on no group's topic */
	HW_REFUSED_MEMORY,      /* no memory for a new device */
	HW_REFUSED_BATCH,       /* a batch that is no JSON array, or is cut off; or an element that names no device */
	HW_REFUSED_KINDS
};

/* "id", "max_devices", "timeout", "stale", "retained", "monitor", "topic", "memory", "batch". */
const char *hw_refused_name(enum hw_refused k);

#define HW_STATES  4
#define HW_REASONS 6

struct hw_monitor_stats {
	uint64_t heartbeats;
	uint64_t transitions[HW_REASONS];
	uint64_t refused[HW_REFUSED_KINDS];
	uint64_t payload_errors;
	uint64_t goodbyes_void;
	uint64_t barriers_sent, barriers_back;
	uint64_t relinks;          /* entries put elsewhere in the wheel when they came due */
	int64_t barrier_rtt_ns;    /* smoothed; 0: none yet */
	uint32_t count[HW_STATES]; /* devices in each state */
	uint32_t candidates;       /* waiting for their barriers */
	uint64_t keys_missed;      /* a look of our own found a key otherwise than any notification had said */
	uint64_t keys_repaired;    /* ... and changed its device's state */
};

struct hw_group_stats {
	uint64_t heartbeats;
	uint32_t count[HW_STATES];
};

/* Takes `groups` as the first set, `key` (16 random bytes) for the registry's hash. The monitor starts blind, with
 * cause link. NULL without memory or if a group is wrong. */
struct hw_monitor *hw_monitor_new(const struct hw_monitor_conf *conf, const struct hw_group_spec *groups,
                                  size_t n_groups, const uint8_t key[16], struct hw_now now);
void hw_monitor_free(struct hw_monitor *m);

/* A reload: both may change at any time. A timeout that became shorter is in force within `budget`-bounded sweeps. As
 * hw_groups_set() on error. */
int hw_monitor_reconfigure(struct hw_monitor *m, struct hw_now now, const struct hw_monitor_conf *conf,
                           const struct hw_group_spec *groups, size_t n_groups);

/* --- evidence
 * ------------------------------------------------------------------------------------------------------------------------
 */

/*
 * At most HW_BATCH messages, in the order in which they were read, from any topic but the barrier's. Returns how many
 * were worked off: fewer than n when one of them is a batch with more elements than one call takes. Then drain, and
 * call again with it and those behind it, as they were left, before anything else that was read after it: a barrier
 * must not overtake it.
 */
size_t hw_monitor_messages(struct hw_monitor *m, struct hw_now now, struct hw_message *msgs, size_t n);

/* One heartbeat, or goodbye, of a device by its id, past topic and payload: what hw_monitor_messages() comes down to.
 * `p` may be NULL: a plain heartbeat. Moves p's report. */
void hw_monitor_heartbeat(struct hw_monitor *m, struct hw_now now, uint16_t group, const char *id, size_t id_len,
                          struct hw_payload *p);

/* Barrier `number` came back on a reader. */
void hw_monitor_barrier(struct hw_monitor *m, struct hw_now now, unsigned reader, uint64_t number);

/* Something, anything, arrived on a reader's connection. Call it once per batch. */
void hw_monitor_arrived(struct hw_monitor *m, struct hw_now now, unsigned reader);

/* A reader's connection is subscribed, or lost. All start lost. */
void hw_monitor_link(struct hw_monitor *m, struct hw_now now, unsigned reader, bool up);

/* The connection that publishes barriers is there, or lost: what was not delivered by then never will be. Starts lost.
 */
void hw_monitor_publisher(struct hw_monitor *m, struct hw_now now, bool up);

/* The loop, or a reader, should have woken at `planned` and did not until now. Lasts until hw_monitor_drained(). */
void hw_monitor_stall(struct hw_monitor *m, struct hw_now now, struct hw_mono planned);
/* Every ring and socket has been read empty once since the last hw_monitor_stall(). */
void hw_monitor_drained(struct hw_monitor *m, struct hw_now now);
/* The machine was suspended, and woke between `since` and now. */
void hw_monitor_suspended(struct hw_monitor *m, struct hw_now now, struct hw_mono since);
/* Messages may have been lost on a reader since its last good barrier: its receive buffer was nearly full. */
void hw_monitor_loss(struct hw_monitor *m, struct hw_now now, unsigned reader);

/* --- keys
 * ----------------------------------------------------------------------------------------------------------------------------
 */

/* Why a key was looked at: bits. 0: the monitor asked, or it was found by going through all keys. */
enum {
	HW_KEY_WRITTEN = 1, /* another program has written it */
	HW_KEY_TTL = 2,     /* ... has changed its time to live */
	HW_KEY_REMOVED = 4, /* ... has removed it */
	HW_KEY_EXPIRED = 8, /* it has expired */
	HW_KEY_EVICTED = 16 /* the store has dropped it for want of memory */
};

#define HW_KEY_GONE   INT64_C(-2) /* instead of a time to live: there is no such key */
#define HW_KEY_NO_TTL INT64_C(-1)

/* The store's answer to a look at a device's key, with the time that it still has to live. A key that is there makes an
 * unknown device known. */
void hw_monitor_key(struct hw_monitor *m, struct hw_now now, unsigned why, const char *id, size_t id_len,
                    int64_t ttl_ms);

/* Another program has removed the sign that this device is offline: a device known by a key is online for a timeout. */
void hw_monitor_key_back(struct hw_monitor *m, struct hw_now now, const char *id, size_t id_len);

/* Keys cannot be looked at, or can be again. Starts blind. */
void hw_monitor_key_sight(struct hw_monitor *m, struct hw_now now, bool sees);
/* All keys were lost at once, by no doing of their writers. */
void hw_monitor_key_loss(struct hw_monitor *m, struct hw_now now);

/* Whether the key is another program's, as far as is known: it is there, or the device is known by it alone. */
bool hw_device_key_is_foreign(const struct hw_device *d);

/* --- the store
 * -----------------------------------------------------------------------------------------------------------------------
 */

struct hw_stored {
	const char *id;
	size_t id_len;
	enum hw_state state; /* HW_STATE_ONLINE or HW_STATE_OFFLINE */
	enum hw_reason reason;
	int64_t since_ms, last_seen_ms; /* wall clock; last_seen_ms 0: never */
	int64_t own_timeout_ms;         /* 0: none */
	int64_t down_ms;                /* how long no monitor was there to hear it: not counted as silence */
	const char *group;              /* NULL or unknown: the first group */
	unsigned source;                /* HW_SOURCE_*; 0: mqtt */
	uint64_t seq;
	bool once;
	struct hw_report report; /* moved */
};

/*
 * A device from the store. Unknown: it is created as stored, without a transition. Heard meanwhile: it keeps what was
 * heard, and its seq grows past the stored one. Returns 0, -EINVAL (id, seq or state unusable), -ENOSPC (max_devices)
 * or -ENOMEM.
 */
int hw_monitor_load(struct hw_monitor *m, struct hw_now now, struct hw_stored *s);

/*
 * A device that was forgotten before this run, but whose clearing the broker had not acknowledged: makes a record that
 * is forgotten already, for the clearing to be owed, and names it in *device. Its group can only be guessed, by the
 * longest id_prefix that fits. -EEXIST if the id is known (then its own status replaces what was to be cleared);
 * otherwise as hw_monitor_load().
 */
int hw_monitor_load_forgotten(struct hw_monitor *m, const char *id, size_t id_len, struct hw_ref *device);

/* Loading is over (or is given up for now): provisional devices become what was heard of them. Never blocks: the sweep
 * is spent from the budget. */
void hw_monitor_loaded(struct hw_monitor *m);
bool hw_monitor_loading(const struct hw_monitor *m);

/* The store holds a newer seq for this device: grow past it. Returns whether the device is there and was behind; its
 * state is then owed anew. */
bool hw_monitor_adopt_seq(struct hw_monitor *m, struct hw_ref device, uint64_t seq);

/* --- operator
 * ------------------------------------------------------------------------------------------------------------------------
 */

/* Makes the device forgotten. False if there is none of that id. The record stays until hw_monitor_reap(). */
bool hw_monitor_forget(struct hw_monitor *m, struct hw_now now, const char *id, size_t id_len);

/* Frees the record of a forgotten device that nothing is owed for any more; does nothing for any other. */
void hw_monitor_reap(struct hw_monitor *m, struct hw_ref device);

/* --- out
 * -----------------------------------------------------------------------------------------------------------------------------
 */

/*
 * The next thing to be done, or false when nothing is left now or *budget is used up (*budget == 0: call again soon).
 * What inputs caused comes first and costs nothing from the budget.
 */
bool hw_monitor_next(struct hw_monitor *m, struct hw_now now, unsigned *budget, struct hw_out *out);

/* When hw_monitor_next() has work again if nothing is put in; false: never. */
bool hw_monitor_due(const struct hw_monitor *m, struct hw_now now, struct hw_mono *at);

/* --- questions
 * -----------------------------------------------------------------------------------------------------------------------
 */

struct hw_registry *hw_monitor_registry(const struct hw_monitor *m);
/* The wheel of heartbeats; that of keys, NULL where no key is looked at; and the one that this device is armed in, if
 * it is. */
const struct hw_wheel *hw_monitor_wheel(const struct hw_monitor *m);
const struct hw_wheel *hw_monitor_key_wheel(const struct hw_monitor *m);
const struct hw_wheel *hw_monitor_wheel_of(const struct hw_monitor *m, const struct hw_device *d);
const struct hw_groups *hw_monitor_groups(const struct hw_monitor *m);
const struct hw_group *hw_monitor_group_of(const struct hw_monitor *m, const struct hw_device *d);
const struct hw_blind *hw_monitor_blind(const struct hw_monitor *m);
const struct hw_monitor_stats *hw_monitor_stats(const struct hw_monitor *m);
const struct hw_group_stats *hw_monitor_group_stats(const struct hw_monitor *m, size_t group);

/* The timeout in force for a device. */
int64_t hw_monitor_timeout_ms(const struct hw_monitor *m, const struct hw_device *d);
/* Wall time of its last heartbeat; 0: never heard. */
int64_t hw_device_last_seen_ms(const struct hw_device *d, struct hw_now now);
/* Until an online device's deadline if it stays silent and the monitor sees, or an offline one's forgetting; INT64_MAX:
 * never. May be negative. */
int64_t hw_monitor_due_in_ms(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The monitor: evidence in, transitions out. It owns the registry, the wheel, the groups and the seeing clock, and it
 * is the only place that changes a device's state (one verdict, verdict.c, and one door, door.c).
 *
 * Pure: no socket, clock, log or thread. Whoever drives it passes the time in, hands over what was read, and pulls out
 * what follows:
 *
 *     hw_monitor_messages(m, now, batch, n);               after each batch of the ring, until all are worked off
 *     while (hw_monitor_next(m, now, &budget, &out)) ...   after each input and whenever hw_monitor_due() says so
 *
 * The evidence rule: a device goes offline when its deadline, min(max(last seen, end of the last lossy blindness) +
 * timeout, last seen + 3 x timeout) on the seeing clock, has passed, and then two barriers, each sent after that, have
 * come back through every source, and it is still passed, and the monitor is not blind. A goodbye makes a candidate
 * without a deadline; a heartbeat read after it, or a blindness or grace that touches it before it is judged, voids it.
 *
 * A group is deaf when a device of it would be called offline although one of its filters may bring nothing: then
 * nobody of that group is judged, its seeing clock stands still, and after it silence counts anew (core/hearing.h).
 *
 * Keys: a device may also be known by a key in the store that another program writes, with a time to live
 * (HW_SOURCE_KEY). Whoever drives the monitor looks at keys, when somebody touched one and when HW_OUT_KEY_CHECK asks
 * for it, and puts the answers in. Such a device is offline when its key is gone; one that beats over MQTT as well,
 * when both are silent. What the store answers is the evidence itself: no barrier proves it further; but if the store
 * was emptied, that is to be said first (hw_monitor_key_loss()). Keys have a seeing clock and a wheel of their own,
 * because a broker that is away does not keep anybody from seeing keys, nor the other way round. Their blindness is
 * lossy always: a key that is missing after it gets its device one more time to live, counted from its end.
 *
 * Several nodes: of each partition of the fleet one node decides. Where this one does not, a device's state is what the
 * event stream says, nothing comes out, and what would have is noted; so it can take over at any moment.
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
#include "heartwheel/event.h"
#include "heartwheel/group.h"
#include "heartwheel/partition.h"
#include "heartwheel/registry.h"
#include "heartwheel/time.h"
#include "heartwheel/topic.h"
#include "heartwheel/transition.h"

#define HW_BATCH          128
#define HW_READERS_MAX    16
#define HW_SOURCES_MAX    64
#define HW_TIMEOUT_MIN_MS INT64_C(100)
#define HW_TTL_MIN_MS     INT64_C(10000)
#define HW_TIMEOUT_MAX_MS (INT64_C(3650) * 86400 * 1000)

struct hw_monitor; /* opaque */

struct hw_monitor_conf {
	uint32_t max_devices;
	int64_t forget_after_ms, forget_once_after_ms; /* 0: never */
	int64_t grace_ms;                              /* [mqtt] reconnect_grace */
	int64_t barrier_slow_ms, barrier_timeout_ms;
	unsigned readers;  /* 1 .. HW_READERS_MAX: sources that are there from the start */
	int ttl_factor;    /* how many timeouts a refresh lasts: paces the sweep while blind */
	const char *node;  /* whose messages are this monitor's own, by their `by`; NULL: unknown; borrowed */
	bool canaries;     /* filters must prove that they bring something; false: no group is ever deaf */
	bool as_published; /* a message has the retain flag as it was published: it is no history, but on status topics
	                      where these are adopted */
	const char *adopt_by;      /* NULL, or the node whose retained statuses make devices known; borrowed */
	bool several;              /* one of several nodes: it decides about nothing until hw_monitor_role() says so */
	bool loading;              /* a store will be loaded: unknown ids are provisional until hw_monitor_loaded() */
	unsigned probe_rate;       /* probes a second, of all groups; 0: no bound */
	const char *probe_answers; /* the topic on which the msg_id of a probe is its answer; NULL: none; borrowed */
	const char *key_group; /* NULL: keys are not looked at; or the group of devices known by keys alone; borrowed */
};

struct hw_message {
	const char *topic;
	size_t topic_len;
	const void *payload;
	size_t payload_len;
	bool retained;  /* delivered with the retain flag: history, unless conf.as_published */
	bool truncated; /* the payload was too long to be kept whole: counted as malformed */
	size_t done;    /* 0; the core's place in a batch that it has not worked off yet */
};

enum hw_out_kind {
	HW_OUT_TRANSITION, /* .transition */
	HW_OUT_REFRESH,    /* .device: its keys in the store are due for a refresh */
	HW_OUT_LOOK,       /* .device: the same, but what ends by itself was refreshed so lately that it outlives the
	                      next one: only what the device reports need be written */
	HW_OUT_STATUS,     /* .device: its retained status may have been replaced, and is owed again */
	HW_OUT_BARRIER,    /* .barrier: publish this number on the barrier topic */
	HW_OUT_BLIND, /* .blind: a period of blindness began or ended, or is found out to be one of denied barriers */
	HW_OUT_RECONNECT,      /* .source: nothing arrives on this connection, close it and open it again */
	HW_OUT_REOPEN,         /* the broker answers nothing on the barriers' connection: close it and open it again */
	HW_OUT_KEY_CHECK,      /* .device: look at its key, and say so with hw_monitor_key() */
	HW_OUT_CANARY,         /* .canary: publish it (QoS 1, not retained) */
	HW_OUT_CANARY_MISSING, /* .canary: it does not come back although barriers do. Once, until one does */
	HW_OUT_DEAF,           /* .deaf: a group became deaf, or is so no more */
	HW_OUT_UPSTREAM,       /* .upstream: what a group is heard through went away, or is back */
	HW_OUT_UNWRITTEN, /* .device: its state is one that the store may not have, under its seq or a lesser one: have
	                     it grow past that with hw_monitor_adopt_seq(), and owe it */
	HW_OUT_PROBE      /* .probe: ask the device, as its group says. Lost, nothing is owed */
};

/* What the broker said to a canary. */
enum hw_canary_answer {
	HW_CANARY_UNKNOWN, /* nothing that can be told apart */
	HW_CANARY_TAKEN,
	HW_CANARY_REFUSED, /* this user may not publish it */
	HW_CANARY_UNSENT   /* it is not as the broker takes messages: too large, above all */
};

struct hw_out {
	enum hw_out_kind kind;
	union {
		struct hw_transition transition;
		struct hw_ref device;
		uint64_t barrier;
		unsigned source;
		struct {
			struct hw_ref device; /* as in .device */
			int64_t left_ns;      /* until the device's deadline; above 0 */
		} probe;
		struct {
			bool begun;
			enum hw_cause cause; /* that began the period */
			bool lossy;
			int64_t length_ns; /* of a period that ended */
		} blind;
		struct {
			uint16_t group, filter; /* the group, and which of its heartbeat filters */
			const char *topic;      /* valid until the next call */
			int64_t seq;            /* of HW_OUT_CANARY */
			enum hw_canary_answer answer;
		} canary;
		struct {
			bool begun;
			uint16_t group, index; /* the group, and which of its `whiles`, of one that began */
			int64_t length_ns;     /* of one that is over, on the monitor's seeing clock */
		} upstream;
		struct {
			bool begun;
			uint16_t group, filter;
			int64_t length_ns; /* of one that is over, on the monitor's seeing clock */
			int64_t bound_ns;  /* of one that began: how long it lasts if nothing comes; INT64_MAX: until
			                      then */
			int64_t others_ns; /* the same if the group's other filters bring its devices' heartbeats;
			                      INT64_MAX: these make no difference */
			const char *topic; /* of the canary; valid until the next call; NULL: none is sent */
			enum hw_canary_answer answer;
		} deaf;
	};
};

/* What was refused or passed over. */
enum hw_refused {
	HW_REFUSED_ID,          /* not a valid id */
	HW_REFUSED_MAX_DEVICES, /* the table is full */
	HW_REFUSED_TIMEOUT,     /* `timeout` is not a finite number >= 0 */
	HW_REFUSED_STALE,       /* `time` is older than the group's max_age */
	HW_REFUSED_RETAINED,    /* history: delivered with the retain flag */
	HW_REFUSED_FLAGGED,     /* published with the retain flag in a group that does not count it: a bridge that has
	                           reconnected publishes so what the other broker retains */
	HW_REFUSED_MONITOR,     /* another monitor's message, unless it is one of several: what is this one's own is not
	                           refused */
	HW_REFUSED_TOPIC,       /* on no group's topic */
	HW_REFUSED_MEMORY,      /* no memory for a new device */
	HW_REFUSED_PROBE,       /* a probe's answer that no probe asked for: forged, or its silence is over */
	HW_REFUSED_BATCH,       /* a batch that is no JSON array, or is cut off; or an element that names no device */
	HW_REFUSED_STRANGER,    /* of several nodes: the presence of a node that is no member */
	HW_REFUSED_EPOCH,       /* ... a token with an epoch that is too far ahead, in a presence or in Redis */
	HW_REFUSED_STORED,      /* a value in the store is out of bounds: see hw_monitor_load() */
	HW_REFUSED_KINDS
};

/* "id", "max_devices", "timeout", "stale", "retained", "flagged", "monitor", "topic", "memory", "probe", "batch",
 * "stranger", "epoch", "stored". */
const char *hw_refused_name(enum hw_refused k);
/* Counts what the caller has refused itself. */
void hw_monitor_count_refused(struct hw_monitor *m, enum hw_refused k, uint64_t n);

#define HW_STATES  4
#define HW_REASONS 6

struct hw_monitor_stats {
	uint64_t heartbeats;
	uint64_t transitions[HW_REASONS];
	uint64_t refused[HW_REFUSED_KINDS];
	uint64_t payload_errors;
	uint64_t own_messages; /* what this monitor published itself, back on a filter: no heartbeat, and nothing wrong
	                        */
	uint64_t goodbyes_void;
	uint64_t probes_sent;     /* handed out with HW_OUT_PROBE */
	uint64_t probes_answered; /* silences in which the device was heard after a probe, in whatever way */
	uint64_t probes_dropped;  /* that probe_rate could not have sent before the deadline */
	uint64_t barriers_sent, barriers_back;
	uint64_t relinks;          /* entries put elsewhere in the wheel when they came due */
	int64_t barrier_rtt_ns;    /* smoothed; 0: none yet */
	uint32_t count[HW_STATES]; /* devices in each state */
	uint32_t candidates;       /* waiting for their barriers */
	uint64_t keys_missed;      /* a look of our own found a key otherwise than any notification had said */
	uint64_t keys_repaired;    /* ... and changed its device's state */

	/* The last payload error: whose, "" if that is no valid id; and the name of the member that is wrong, "$state"
	 * of an unknown state of Homie, NULL if it was no JSON at all, or cut off. */
	char fault_id[HW_ID_MAX + 1];
	const char *fault;
	uint16_t flagged_group; /* of the last HW_REFUSED_FLAGGED */
};

struct hw_group_stats {
	uint64_t heartbeats;
	uint32_t count[HW_STATES];
};

/* Takes `groups` as the first set, `key` (16 random bytes) for the registry's hash and the tags of probes. The monitor
 * starts blind, with cause link. NULL without memory or if a group is wrong. */
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
 * `p` may be NULL: a plain heartbeat. It stays the caller's. */
void hw_monitor_heartbeat(struct hw_monitor *m, struct hw_now now, uint16_t group, const char *id, size_t id_len,
                          struct hw_payload *p);

/*
 * Sources of evidence: whatever brings heartbeats, and barriers behind them. Those of the readers are there from the
 * start, numbered from 0; others (a peer) come and go while the monitor runs. Each must bring a barrier back before
 * anybody is judged by it.
 *
 * hw_monitor_add_source(): one more, to be called before anything can come on it alone. It is not up yet, and until it
 * is (hw_monitor_link()) nobody is judged; its coming makes no silence count anew. Its number, which another has had
 * that was removed, or -ENOSPC beyond HW_SOURCES_MAX. hw_monitor_remove_source(): one less, whatever became of it. What
 * was on its way through it is lost, so silence counts anew; whoever waits for a barrier waits for two that are sent
 * from now on and come back through those that stay.
 */
int hw_monitor_add_source(struct hw_monitor *m, struct hw_now now);
void hw_monitor_remove_source(struct hw_monitor *m, struct hw_now now, unsigned source);

/* Barrier `number` came back on a source. */
void hw_monitor_barrier(struct hw_monitor *m, struct hw_now now, unsigned source, uint64_t number);

/* Something, anything, arrived on a source's connection. Call it once per batch. */
void hw_monitor_arrived(struct hw_monitor *m, struct hw_now now, unsigned source);

/* A source's connection is there (a reader's: subscribed), or lost. All start lost. */
void hw_monitor_link(struct hw_monitor *m, struct hw_now now, unsigned source, bool up);

/* What the next run is to be told with hw_monitor_recall_canaries(): that a canary of each filter could be had, as a
 * number; 0: it is not known. So a right to read that is lost while no monitor runs is noticed after the start. */
uint64_t hw_monitor_canaries(const struct hw_monitor *m);
void hw_monitor_recall_canaries(struct hw_monitor *m, uint64_t canaries);

/* The connection that publishes barriers is there, or lost: what was not delivered by then never will be. Starts lost.
 */
void hw_monitor_publisher(struct hw_monitor *m, struct hw_now now, bool up);
/*
 * When the broker acknowledged a barrier last: to be given before the time goes on. A barrier that is late after that
 * was read by the broker and is only slow. If nothing is acknowledged for barrier_timeout, the connection is silent.
 */
void hw_monitor_barrier_taken(struct hw_monitor *m, struct hw_mono at);
/* Whether the broker refused the last barrier, as MQTT 5 tells: a barrier that is out for barrier_timeout is then lost.
 */
void hw_monitor_barriers_refused(struct hw_monitor *m, bool refused);
bool hw_monitor_barriers_silent(const struct hw_monitor *m, struct hw_now now);

/* The broker's answer to the canary on this filter of this group, where it can be told apart (MQTT 5). */
void hw_monitor_canary_answer(struct hw_monitor *m, uint16_t group, uint16_t filter, enum hw_canary_answer answer);

/* The loop, or a reader, should have woken at `planned` and did not until now. Lasts until hw_monitor_drained(). */
void hw_monitor_stall(struct hw_monitor *m, struct hw_now now, struct hw_mono planned);
/* Every ring and socket has been read empty once since the last hw_monitor_stall(). */
void hw_monitor_drained(struct hw_monitor *m, struct hw_now now);
/* A wall clock that can be relied on shows `good_ms` now: a heartbeat is too old (max_age) only if it is so by this
 * clock, carried on by the monotonic one, and by the wall clock that comes with the messages. */
void hw_monitor_trust_wall(struct hw_monitor *m, struct hw_now now, int64_t good_ms);
/* The machine was suspended, and woke between `since` and now. */
void hw_monitor_suspended(struct hw_monitor *m, struct hw_now now, struct hw_mono since);
/* Messages may have been lost on a source since its last good barrier: its receive buffer was nearly full. */
void hw_monitor_loss(struct hw_monitor *m, struct hw_now now, unsigned source);

/* --- probes
 * --------------------------------------------------------------------------------------------------------------------------
 */

/*
 * A device that is online and silent, in a group with probes, is handed out with HW_OUT_PROBE before its deadline, for
 * whoever drives the monitor to ask it (probe.h in src/core has the rule). A probe is no evidence and moves no
 * deadline; an answer is a heartbeat like any other: on a heartbeat filter; on the topic `probe_answers`, with the
 * msg_id that hw_probe_id() gave; or by whatever other way, with hw_monitor_answered().
 */
#define HW_PROBE_ID_SIZE 31 /* with the NUL */

/* conf.probe_answers. */
const char *hw_monitor_probe_answers(const struct hw_monitor *m);
/* Writes the msg_id of a probe of this silence of a device: its index, generation, and a keyed tag over both and the
 * silence. False: the device is not there. */
bool hw_probe_id(const struct hw_monitor *m, struct hw_ref device, char id[HW_PROBE_ID_SIZE]);
/* Whether a probe of a device is still of use: it is online, its deadline is ahead, and the monitor sees. False too if
 * it was heard since it was asked. `left_ns` as in HW_OUT_PROBE. */
bool hw_probe_is_wanted(const struct hw_monitor *m, struct hw_now now, struct hw_ref device, int64_t *left_ns);
/* The device has answered a probe: a heartbeat. Does nothing if it is not there, or was forgotten. */
void hw_monitor_answered(struct hw_monitor *m, struct hw_now now, struct hw_ref device);

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
	enum hw_state state; /* HW_STATE_ONLINE or HW_STATE_OFFLINE; any other: the record has none */
	enum hw_reason reason;
	int64_t since_ms, last_seen_ms; /* wall clock; last_seen_ms 0: never */
	int64_t own_timeout_ms;         /* 0: none */
	int64_t down_ms;                /* how long no monitor was there to hear it: not counted as silence */
	int64_t gone_ms;                /* offline: how long monitors have watched since; 0: not known; < 0: unusable */
	bool hearsay;                   /* asked for since only the stream had told of it: hw_monitor_is_hearsay() */
	const char *group; /* NULL: the first group. One that is not configured is kept by its name; no name: guessed */
	uint64_t form;     /* of several nodes: it was heard in this form of its group; 0: not known */
	unsigned source;   /* HW_SOURCE_*; 0: mqtt */
	uint64_t seq;      /* 0: the record has none */
	bool once;
	int64_t ahead_ms; /* how far the store's clock is ahead of this machine's; 0 if it is behind, or not known */
	struct hw_report report; /* the caller's, but what is newer here may be taken out of it */
};

/*
 * A device from the store. Unknown: it is created as stored, without a transition. Heard meanwhile: it keeps what was
 * heard, and its seq grows past the stored one; where another node decides, it is as stored, unless something newer was
 * read, and of two timeouts of its own it has the longer one. A value that is out of bounds is counted
 * (HW_REFUSED_STORED) and replaced: a time more than a day ahead of both clocks by now; such a seq, or none, by the one
 * that is known of the device, or by now; no state by the known one, or by online, so that the device is judged; a
 * timeout that no payload could have asked for by the group's; a gone_ms that is a day longer than the time since
 * since_ms by 0. Such a device is refreshed, which corrects the store.
 * Returns 0, -EINVAL (id unusable), -ENOSPC (max_devices) or -ENOMEM.
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

/* The store holds a newer seq for this device: grow past it. Returns whether the device is there and was behind; its
 * state is then owed anew. */
bool hw_monitor_adopt_seq(struct hw_monitor *m, struct hw_ref device, uint64_t seq);

/* --- several nodes
 * -----------------------------------------------------------------------------------------------------------------------
 */

/* What this node is to a partition. Refreshes and owed statuses come out for what it owns, transitions for what it
 * decides about. A single node decides about all from the start. */
enum hw_role { HW_ROLE_WATCHES, HW_ROLE_OWNS, HW_ROLE_DECIDES };

/*
 * The role in partition `p`, and the epoch of its owner's token (a watcher's is 0). Once it decides, a sweep that is
 * spent from the budget takes the partition's devices over: have the stream followed to its end before. What was read
 * out of the monitor before it lost a partition may be dropped: see hw_monitor_unsay().
 */
void hw_monitor_role(struct hw_monitor *m, unsigned p, enum hw_role role, uint64_t epoch);
bool hw_monitor_owns(const struct hw_monitor *m, const struct hw_device *d);
/* Messages of other nodes that a filter brought: their statuses come by all the time. */
uint64_t hw_monitor_peer_messages(const struct hw_monitor *m);
/* The partitions of which not all devices have been taken over yet. */
struct hw_partitions hw_monitor_takes_over(const struct hw_monitor *m);
bool hw_monitor_decides(const struct hw_monitor *m, const struct hw_device *d);
/* 0: a single node, or a watcher. */
uint64_t hw_monitor_epoch(const struct hw_monitor *m, const struct hw_device *d);

/*
 * An entry of the stream, in its order. It makes an unknown device known, and counts where this node does not decide
 * and has read nothing newer. Nothing comes out. The record of a device that is forgotten by it stays until
 * hw_monitor_reap(). 0, -EINVAL (id, state or seq unusable), -ENOSPC (max_devices) or -ENOMEM; or -ESTALE: its epoch is
 * above that of hw_monitor_role(), so another node has claimed the partition, which is lost. Nothing of the entry was
 * taken: it is to be put in once more, after the role was changed, or it is missed. A seq more than a day ahead of the
 * clock is counted (HW_REFUSED_STORED) and says nothing: the entry's place in the stream says its order.
 */
int hw_monitor_stream(struct hw_monitor *m, struct hw_now now, const struct hw_event *e);

/*
 * This node's last word of a device was refused, because another one owns it: whatever of it is read next from stream
 * or store counts, also with a lesser seq. Until then the device stands as the refused word had it. The stream may have
 * passed already, and may never speak of it again: so its hash is to be read once more and put in with
 * hw_monitor_load(), or, if there is none, an entry that says that it is forgotten with hw_monitor_stream(), also while
 * all of the store is read again.
 */
void hw_monitor_unsay(struct hw_monitor *m, struct hw_ref device);

/* Of several nodes: an entry that hw_monitor_stream() has not been given yet says that a device is online of which this
 * node has seen no sign itself. Where keys are listened to, its hash says whether it is known by one. */
bool hw_monitor_is_hearsay(const struct hw_monitor *m, const struct hw_event *e);

/*
 * All of the store is read again, because a part of the stream was missed (a gap, another master): of what was
 * forgotten meanwhile neither says anything. Between begin and end every device of the store is put in with
 * hw_monitor_load(), and the stream from where it ended at the begin; and no partition becomes this node's to decide
 * about. A store that was emptied is written anew by the owners first.
 *
 * hw_monitor_reread_begin(): 0, or -ENOMEM, then nothing is found to be gone. Begun once more, it is begun anew.
 * `other`: the store may lack what was read before, as a master after a failover does, or one that was emptied. Its
 * first word of each device counts even if its seq is less than that of a word that was lost, and until that has come,
 * also in later readings, the device is not forgotten: an owner may still have to write it. If none does, because those
 * that own it by then have never heard of it, it is owed to store and broker by this node once that takes it over.
 * hw_monitor_reread_end(): the next device that another node decides about and that was not put in. It is forgotten by
 * that, and its record stays until hw_monitor_reap(). False: none is left, and the reading is over, or *budget is used
 * up (call again soon).
 */
int hw_monitor_reread_begin(struct hw_monitor *m, bool other);
bool hw_monitor_reread_end(struct hw_monitor *m, struct hw_now now, unsigned *budget, struct hw_ref *gone);

/* --- forms
 * -----------------------------------------------------------------------------------------------------------------------
 */

/*
 * Which devices this node may judge: nodes may have different groups. A device whose group is not configured here, or
 * that only another node has heard, in another form of its group (struct hw_group.form_hash), is not judged: it keeps
 * its state. A single monitor judges every device of its groups.
 */
bool hw_monitor_judges(const struct hw_monitor *m, const struct hw_device *d);
/* The form in which the device was heard, to be written to the store with it; 0: not known, what is stored stays. */
uint64_t hw_monitor_form(const struct hw_monitor *m, const struct hw_device *d);

/* Groups of other nodes: of the timeouts that nodes have for one group the longest is in force on all of them. */
struct hw_peer_group {
	const char *name;
	int64_t timeout_ms, timeout_max_ms;
};
/* All that are known now; what was said before does not count any more. `differ`: a member has other groups. */
void hw_monitor_peer_groups(struct hw_monitor *m, const struct hw_peer_group *peers, size_t n, bool differ);

/*
 * Counts the devices that are not judged, `budget` records a call. True: a round is over, or there is nothing to count.
 * What is said of them is as of the last round: in which partitions any such device is, whosever the partition is, and
 * how many devices of this node's own partitions, in all and of a group.
 */
bool hw_monitor_count_unjudged(struct hw_monitor *m, struct hw_now now, unsigned budget);
bool hw_monitor_may_be_unjudged(const struct hw_monitor *m); /* false: there is none, and nothing to count */
struct hw_partitions hw_monitor_unjudged_in(const struct hw_monitor *m);
/*
 * What the last round found of a group: whether this node judges a device of the group; the forms in which its unjudged
 * devices were heard, and their partitions. Form 0: the store does not name it. If
 * devices of a group were heard in several other forms, the form that was read last stands for all of them.
 */
struct hw_group_judging {
	bool judged;
	struct {
		uint64_t form;
		struct hw_partitions in;
	} unjudged[2]; /* in the form that the group has here, although the configuration lacks the group; in another */
	struct hw_partitions online; /* partitions with unjudged devices that are online */
	struct hw_partitions late;   /* of these, those with such a device past its deadline */
};
struct hw_group_judging hw_monitor_judging(const struct hw_monitor *m, size_t group);
/* Where this node hears devices that the owner has told nothing of for two rounds: the owner may not hear them. Empty
 * while all members have the same groups. */
struct hw_partitions hw_monitor_untold_in(const struct hw_monitor *m);
uint32_t hw_monitor_unjudged(const struct hw_monitor *m);
uint32_t hw_monitor_unjudged_of(const struct hw_monitor *m, size_t group);

/* --- operator
 * ------------------------------------------------------------------------------------------------------------------------
 */

/* Makes the device forgotten. False if there is none of that id, or another node decides about it. The record stays
 * until hw_monitor_reap(). */
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

/*
 * The next thing that inputs have caused already, or false: nobody is judged and no time is looked at. For a monitor
 * that has stopped listening and is only to pass on what it was told.
 */
bool hw_monitor_caused(struct hw_monitor *m, struct hw_out *out);

/* When hw_monitor_next() has work again if nothing is put in; false: never. */
bool hw_monitor_due(const struct hw_monitor *m, struct hw_now now, struct hw_mono *at);

/* How long what says that a device is online outlives its last refresh. */
static inline int64_t hw_ttl_ms(int64_t timeout_ms, int ttl_factor)
{
	int64_t ttl = timeout_ms * ttl_factor;
	return ttl > HW_TTL_MIN_MS ? ttl : HW_TTL_MIN_MS;
}

/* Within what time every device has to be refreshed, where looks have not done it, so that no key of one that is online
 * ends. While blind the monitor sees to that by itself. */
int64_t hw_monitor_refresh_within_ms(const struct hw_monitor *m);

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
/* Whether it is blind for nothing but the grace after a loss: what devices send is read. */
bool hw_monitor_in_grace(const struct hw_monitor *m);
/* When the last barrier that is back on every source was sent; {0}: none is back, or it is not known any more. */
struct hw_mono hw_monitor_barrier_back(const struct hw_monitor *m);
/* For how much longer, in that case, if nothing comes between; or -1. */
int64_t hw_monitor_grace_left_ms(const struct hw_monitor *m, struct hw_mono now);

/* What is not heard now: everything, or, with cause HW_CAUSE_DEAF, some groups. */
struct hw_blindness {
	bool blind;
	enum hw_cause cause;
	struct hw_mono since;
	unsigned deaf_groups; /* now */
	struct hw_mono deaf_since;
	unsigned upstream_groups; /* the same of groups that are blind with cause upstream */
	struct hw_mono upstream_since;
	int64_t upstream_ns;
	int64_t deaf_ns; /* how long some group was deaf in all, without what is still lasting */
};
struct hw_blindness hw_monitor_blindness(const struct hw_monitor *m);
/* The `while` of a group that is blind with cause upstream; NULL: it is not. */
const struct hw_while *hw_monitor_group_upstream(const struct hw_monitor *m, size_t group);
/* The first `while` of which no value has come, and its group; NULL: there is none. */
const struct hw_while *hw_monitor_unknown_upstream(const struct hw_monitor *m, size_t *group);
bool hw_monitor_group_is_deaf(const struct hw_monitor *m, size_t group);
const struct hw_monitor_stats *hw_monitor_stats(const struct hw_monitor *m);
const struct hw_group_stats *hw_monitor_group_stats(const struct hw_monitor *m, size_t group);

/* The timeout in force for a device. */
int64_t hw_monitor_timeout_ms(const struct hw_monitor *m, const struct hw_device *d);
/* Wall time of its last heartbeat; 0: never heard. */
int64_t hw_device_last_seen_ms(const struct hw_device *d, struct hw_now now);
/* How much of forget_after, or forget_once_after, has passed for an offline device: time in which a monitor could have
 * heard it. No wall clock counts. -1: that is not known (a device in another state; it is never forgotten; a reload of
 * these options is under way). */
int64_t hw_monitor_gone_ms(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d);
/* Until an online device's deadline if it stays silent and the monitor sees, or an offline one's forgetting; INT64_MAX:
 * never. May be negative. */
int64_t hw_monitor_due_in_ms(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The monitor: evidence in, transitions out. It owns the registry, the wheel, the groups and the seeing clock. No other
 * code changes a device's state (verdict.c decides, door.c carries out).
 *
 * Pure: no socket, clock, log or thread. The driver of the monitor passes in the time and the input, and pulls out the
 * results:
 *
 *     hw_monitor_messages(m, now, batch, n);               after each batch of the ring, until all are processed
 *     while (hw_monitor_next(m, now, &budget, &out)) ...   after each input and whenever hw_monitor_due() says so
 *
 * The evidence rule: a device is a suspect when its deadline has passed. The deadline is min(max(last seen, end of the
 * last lossy blindness) + timeout, last seen + 3 x timeout) on the seeing clock. The suspect then waits for two
 * barriers: the first is sent after that, the second after the first is back on every source. The device goes offline
 * if its deadline is still past and the monitor is not blind. A goodbye makes a device a suspect before its deadline.
 * The goodbye does not count if a heartbeat follows, or if there is blindness or grace before the judgement.
 *
 * A group becomes deaf when one of its devices would go offline, but one of the group's filters may deliver nothing.
 * While the group is deaf, none of its devices is judged, and the group's seeing clock stands still. Afterwards silence
 * counts from zero (core/hearing.h).
 *
 * Keys: a device may also be known by a key with a time to live that another program keeps in the store
 * (HW_SOURCE_KEY). The driver checks a key when another program has changed it, or on HW_OUT_KEY_CHECK, and passes the
 * answer in. Such a device is offline when its key is missing. A device that also sends heartbeats is offline when its
 * key is missing and its heartbeats have stopped. The store's answer is evidence without a barrier. After a loss of the
 * store's data, the driver first calls hw_monitor_key_loss(). Keys have a seeing clock and a wheel of their own,
 * because the store and the broker fail independently. Blindness for keys is always lossy: a device whose key is
 * missing afterwards gets one more time to live, counted from the end of the blindness.
 *
 * Several nodes: one node decides for each partition of the fleet. For all other partitions, a device's state is that
 * in the event stream, and this node only stores its own verdict on the device. So it can take over at any moment.
 *
 * Cost: a heartbeat is a look-up and two stores. A device moves in the wheel at most once per timeout (lazy re-arm).
 * All other work is spent from the caller's budget, one unit per device checked.
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
	unsigned readers, qos;     /* readers: 1 .. HW_READERS_MAX, sources that exist from the start */
	int ttl_factor;            /* time to live of keys, in timeouts; determines the pace of refreshes while blind */
	const char *node;          /* a message with this `by` is this monitor's own; NULL: unknown; borrowed */
	bool canaries;             /* filters must prove that they deliver; false: no group is ever deaf */
	bool as_published;         /* the broker keeps the sender's retain flag (MQTT 5). So only on the status topics
	                            * of adopt_by does the flag show that a message is old */
	const char *adopt_by;      /* the node whose retained statuses are adopted at the start; NULL: none; borrowed */
	int64_t blind_lasts_ms;    /* several nodes: if a group alone is blind for this long, its devices go to other
	                            * nodes */
	bool several;              /* one of several nodes: it decides for no partition until hw_monitor_role() */
	bool loading;              /* a store will be loaded: unknown ids are provisional until hw_monitor_loaded() */
	unsigned probe_rate;       /* probes per second, all groups together; 0: no limit */
	const char *probe_answers; /* the topic of the answers to probes, which contain the probe's msg_id; NULL:
	                            * none; borrowed */
	const char *key_group;     /* the group of devices known by keys alone; NULL: keys are not checked; borrowed */
};

struct hw_message {
	const char *topic;
	size_t topic_len;
	const void *payload;
	size_t payload_len;
	bool retained;   /* delivered with the retain flag: an old message, unless conf.as_published */
	bool truncated;  /* the payload was too long and was cut: counted as malformed */
	unsigned source; /* the connection that brought it, as for hw_monitor_barrier() */
	size_t done;     /* 0 at first; the core's progress in a batch that is not finished */
};

#define HW_UPSTREAM_SOURCE 0 /* only this source's messages are values of `while` topics */

enum hw_out_kind {
	HW_OUT_TRANSITION,     /* .transition */
	HW_OUT_REFRESH,        /* .device: its keys in the store are due for a refresh */
	HW_OUT_REFRESH_LIGHT,  /* .device: write only its fields: its keys outlive the next refresh */
	HW_OUT_STATUS,         /* .device: its retained status may have been replaced, and is pending again */
	HW_OUT_MOVED,          /* .device, .left: without a store: HW_OUT_STATUS, and remove the old group's status */
	HW_OUT_BARRIER,        /* .barrier: publish this number on the barrier topic */
	HW_OUT_BLIND,          /* .blind: blindness began or ended, or the broker is found to refuse the barriers */
	HW_OUT_RECONNECT,      /* .source: nothing arrives on this connection; close and reopen it */
	HW_OUT_REOPEN,         /* the broker does not answer on the barriers' connection; close and reopen it */
	HW_OUT_KEY_CHECK,      /* .device: check its key, and pass the answer to hw_monitor_key() */
	HW_OUT_CANARY,         /* .canary: publish it (QoS 1, not retained) */
	HW_OUT_CANARY_MISSING, /* .canary: not back although barriers are; reported again only after one is back */
	HW_OUT_DEAF,           /* .deaf: deafness of a group began or ended */
	HW_OUT_UPSTREAM,       /* .upstream: the upstream of a group went down, or is up again */
	HW_OUT_WHILE_UNKNOWN,  /* .upstream: the broker does not have the value of this topic any more */
	HW_OUT_UNWRITTEN,      /* .device: the store may lack its state, even if it has this seq: raise the seq with
	                          hw_monitor_adopt_seq(), and make the state pending */
	HW_OUT_PARENTS,        /* .device: the store has its old parents, or the old labels of its group */
	HW_OUT_PARENT_HEARD,   /* .parent_heard: the first heartbeat of a parent after the device went offline */
	HW_OUT_PROBE           /* .probe: send the device its group's probe; a lost probe is not repeated */
};

/* The broker's answer to a canary. */
enum hw_canary_answer {
	HW_CANARY_UNKNOWN, /* no answer that can be attributed */
	HW_CANARY_TAKEN,
	HW_CANARY_REFUSED, /* this user may not publish it */
	HW_CANARY_UNSENT   /* the broker does not accept the packet, most likely for its size */
};

struct hw_out {
	enum hw_out_kind kind;
	uint16_t left; /* of HW_OUT_MOVED: the old group */
	union {
		struct hw_transition transition;
		struct hw_ref device;
		uint64_t barrier;
		unsigned source;
		struct {
			struct hw_ref device;
			uint64_t seq; /* of the device's last transition */
			struct hw_ref parent;
			int64_t settle_ms; /* 0: the device stopped by itself; else the time in which it may still
			                    *    return with the parent */
		} parent_heard;
		struct {
			struct hw_ref device;
			int64_t left_ns; /* time until the device's deadline; above 0 */
		} probe;
		struct {
			bool begun;
			enum hw_cause cause; /* cause that began the period */
			bool lossy;
			int64_t length_ns; /* length of a period that ended */
		} blind;
		struct {
			uint16_t group, filter; /* the group, and the index of a heartbeat filter of the group */
			const char *topic;      /* valid until the next call */
			int64_t seq;            /* of HW_OUT_CANARY */
			enum hw_canary_answer answer;
		} canary;
		struct {
			bool begun;
			uint16_t group, index; /* the group; at the begin, also the index of the `while` */
			int64_t length_ns; /* when the deafness ends: its length on the monitor's seeing clock; -1: the
			                    * group is still blind, because it is deaf */
		} upstream;
		struct {
			bool begun;
			uint16_t group, filter;
			int64_t length_ns; /* when the blindness ends: its length on the monitor's seeing clock; -1: the
			                    * group is still blind, because its upstream is down */
			int64_t bound_ns;  /* when the deafness begins: its longest duration if no message arrives;
			                    * INT64_MAX: no limit */
			int64_t others_ns; /* when the deafness begins: its longest duration if the group's other
			                    * filters deliver; INT64_MAX: no limit */
			const char *topic; /* of the canary; NULL: none is sent; valid until the next call */
			enum hw_canary_answer answer;
		} deaf;
	};
};

/* Why input was refused or ignored. */
enum hw_refused {
	HW_REFUSED_ID,          /* not a valid id */
	HW_REFUSED_MAX_DEVICES, /* the table is full */
	HW_REFUSED_TIMEOUT,     /* `timeout` is not a finite number >= 0 */
	HW_REFUSED_STALE,       /* `time` is older than the group's max_age */
	HW_REFUSED_RETAINED,    /* history: delivered with the retain flag */
	HW_REFUSED_FLAGGED,     /* has the retain flag, and its group does not count such messages. When a bridge
	                           reconnects, it publishes all retained messages of the other broker with this flag */
	HW_REFUSED_MONITOR,     /* message of another monitor, although this is the only node */
	HW_REFUSED_TOPIC,       /* on no group's topic */
	HW_REFUSED_MEMORY,      /* no memory for a new device */
	HW_REFUSED_PROBE,       /* an answer that matches no current probe: it is forged, or the silence is over */
	HW_REFUSED_BATCH,       /* a batch that is no JSON array or is cut off, or an element without an id */
	HW_REFUSED_STRANGER,    /* several nodes: presence of a node that is no member */
	HW_REFUSED_EPOCH,  /* several nodes: a fencing token whose epoch is too far ahead, in a presence or in Redis */
	HW_REFUSED_PARENT, /* a parent was ignored: invalid id, a circle, or HW_ANCESTORS_MAX ancestors or more */
	HW_REFUSED_STORED, /* a value in the store is out of bounds: see hw_monitor_load() */
	HW_REFUSED_PROPERTIES, /* a message that was discarded because its MQTT 5 properties are too long */
	HW_REFUSED_STATUS,     /* without a store: after the start, a newer retained status of this node */
	HW_REFUSED_KINDS
};

/* Returns the name of a kind of refusal in metrics and logs; never NULL. */
const char *hw_refused_name(enum hw_refused k);
/* Adds refusals by the caller to the count. */
void hw_monitor_count_refused(struct hw_monitor *m, enum hw_refused k, uint64_t n);
/* Clears `left_out` in the statistics, so that the next message of a monitor on a heartbeat filter sets it again.
 * `logged`: no further message of this group sets it. */
void hw_monitor_left_out_logged(struct hw_monitor *m, bool logged);

#define HW_STATES  4 /* that a record can have */
#define HW_REASONS 8

struct hw_monitor_stats {
	uint64_t heartbeats;
	uint64_t transitions[HW_REASONS];
	uint64_t refused[HW_REFUSED_KINDS];
	uint64_t payload_errors;
	uint64_t own_messages; /* this monitor's own messages that came back on a filter: expected */
	uint64_t goodbyes_void;
	uint64_t probes_sent;     /* handed out with HW_OUT_PROBE */
	uint64_t probes_answered; /* silences that ended after a probe, by any message of the device */
	uint64_t probes_dropped;  /* not sent, because probe_rate gave no turn before the deadline */
	uint64_t barriers_sent, barriers_back;
	uint64_t relinks;          /* entries that moved in the wheel when they came due */
	int64_t barrier_rtt_ns;    /* smoothed; 0: none yet */
	uint32_t count[HW_STATES]; /* devices in each state */
	uint32_t suspects;         /* waiting for their barriers */
	uint64_t keys_missed;      /* checked keys in a state that no notification had reported */
	uint64_t keys_repaired;    /* such keys that changed their device's state */

	/* The last payload error. fault_id: the device; "": no valid id. fault: the name of the wrong member; "$state":
	 * an unknown Homie state; "$size": cut off; NULL: no JSON. */
	char fault_id[HW_ID_MAX + 1];
	const char *fault;
	/* The last parent that was ignored: the device, and the reason. */
	char parent_of[HW_ID_MAX + 1];
	const char *parent_fault;
	char status_id[HW_ID_MAX + 1]; /* in the last HW_REFUSED_STATUS */
	uint16_t flagged_group;        /* group of the last HW_REFUSED_FLAGGED */
	/* A message of another monitor or node on a heartbeat filter, for hw_monitor_left_out_logged(). */
	bool left_out;
	uint16_t left_out_group;
	char left_out_by[65]; /* the name of that monitor; "": too long */
};

struct hw_group_stats {
	uint64_t heartbeats;
	uint32_t count[HW_STATES];
	bool left_out_logged; /* see hw_monitor_left_out_logged() */
};

/* Makes a monitor with the first set of `groups`. `key`: 16 random bytes for the registry's hash and the tags of
 * probes. The monitor starts blind, with cause link. Returns NULL if there is no memory, or if a group is invalid. */
struct hw_monitor *hw_monitor_new(const struct hw_monitor_conf *conf, const struct hw_group_spec *groups,
                                  size_t n_groups, const uint8_t key[16], struct hw_now now);
void hw_monitor_free(struct hw_monitor *m);

/* Called at a reload. `conf` and `groups` may both change, at any time. Sweeps, within the budget, put a shorter
 * timeout into force. Returns the same as hw_groups_set(). */
int hw_monitor_reconfigure(struct hw_monitor *m, struct hw_now now, const struct hw_monitor_conf *conf,
                           const struct hw_group_spec *groups, size_t n_groups);

/* --- evidence ----------------------------------------------------------------- */

/*
 * Takes at most HW_BATCH messages in the order in which they were read, from any topic except that of barriers.
 *
 * Returns how many were processed. The result is less than n if a message is a batch with more elements than one call
 * takes. The caller then drains the monitor, and calls again with that message and all that follow, unchanged. Nothing
 * that was read later may be passed in before them: a barrier must not overtake heartbeats.
 */
size_t hw_monitor_messages(struct hw_monitor *m, struct hw_now now, struct hw_message *msgs, size_t n);

/* Takes one heartbeat or goodbye of a device by its id, without a topic, as hw_monitor_messages() does for each
 * message. `p` NULL: a plain heartbeat. The caller keeps `p`. */
void hw_monitor_heartbeat(struct hw_monitor *m, struct hw_now now, uint16_t group, const char *id, size_t id_len,
                          struct hw_payload *p);

/*
 * A source of evidence brings heartbeats and, after them, barriers. The readers are sources from the start, numbered
 * from 0. Other sources (a peer) are added and removed while the monitor runs. A device is judged only after every
 * source has brought its barriers back.
 *
 * hw_monitor_add_source(): call it before any message can arrive on this source alone. The source starts down, and no
 * device is judged until hw_monitor_link() says that it is up. Adding a source does not make any silence count from
 * zero. Returns the source's number, which may be that of a removed one; -ENOSPC beyond HW_SOURCES_MAX.
 *
 * hw_monitor_remove_source(): for a source in any state. Messages in flight on it are lost, so silence counts again
 * from zero. Suspects wait for two new barriers through the remaining sources.
 */
int hw_monitor_add_source(struct hw_monitor *m, struct hw_now now);
void hw_monitor_remove_source(struct hw_monitor *m, struct hw_now now, unsigned source);

/* Called when barrier `number` has come back on a source. */
void hw_monitor_barrier(struct hw_monitor *m, struct hw_now now, unsigned source, uint64_t number);

/* Called when bytes have arrived on a source's connection, once for each batch of bytes that was read. */
void hw_monitor_arrived(struct hw_monitor *m, struct hw_now now, unsigned source);

/* Called when a source's connection is up (a reader: subscribed) or lost. Initially all are lost. */
void hw_monitor_link(struct hw_monitor *m, struct hw_now now, unsigned source, bool up);

/* The values of `while` topics come on source 0; those that the broker has retained come first.
 * hw_monitor_upstreams_asked(): source 0 has lost its connection, or has requested the retained values again.
 * hw_monitor_renew_upstreams(): whether source 0, which is connected, must request the values again: a renewal.
 * hw_monitor_upstreams_granted(): the broker has granted the request. If a value has not arrived again when the next
 * barrier is back, the value is unknown. After a renewal, this needs a second one without the value. */
void hw_monitor_upstreams_asked(struct hw_monitor *m);
bool hw_monitor_renew_upstreams(struct hw_monitor *m, bool is_time);
void hw_monitor_upstreams_granted(struct hw_monitor *m, bool renewal);

/*
 * For the next run: the filters whose canary came back in this run, or in an earlier one. With their help, the next run
 * notices if the right to read was lost while no monitor ran. A hash of a canary's topic assigns its filter to a part.
 * A part is 0 if a canary of one of its filters never came back; otherwise the part is a hash of its filters. If the
 * filters change, the part is forgotten.
 */
#define HW_CANARY_PARTS 256
struct hw_canaries {
	uint32_t part[HW_CANARY_PARTS];
};
void hw_monitor_canaries(const struct hw_monitor *m, struct hw_canaries *had);
void hw_monitor_recall_canaries(struct hw_monitor *m, const struct hw_canaries *had);

/* Called when the connection that publishes barriers is up or lost. Barriers that the connection has not delivered by
 * then are lost. At the start the connection counts as lost. */
void hw_monitor_publisher(struct hw_monitor *m, struct hw_now now, bool up);
/*
 * Called when the broker has acknowledged a barrier at `at`. Must be called before any call with a later time. A
 * barrier that is late although it is acknowledged is only slow, because the broker has read it. If the broker
 * acknowledges nothing for barrier_timeout, the connection is silent.
 */
void hw_monitor_barrier_taken(struct hw_monitor *m, struct hw_mono at);
/* Sets whether the broker has refused the last barrier, which MQTT 5 reports. If this barrier is not back after
 * barrier_timeout, it counts as lost, not as late. */
void hw_monitor_barriers_refused(struct hw_monitor *m, bool refused);
bool hw_monitor_barriers_silent(const struct hw_monitor *m, struct hw_now now);

/* Called with the broker's answer to the canary on this filter of this group, if the answer can be attributed (MQTT
 * 5). */
void hw_monitor_canary_answer(struct hw_monitor *m, uint16_t group, uint16_t filter, enum hw_canary_answer answer);

/* Called for a stall: the loop or a reader should have woken up at `planned`, but woke up only now. The stall lasts
 * until hw_monitor_drained(). */
void hw_monitor_stall(struct hw_monitor *m, struct hw_now now, struct hw_mono planned);
/* Called when every ring and socket has been read empty once since the last hw_monitor_stall(). */
void hw_monitor_drained(struct hw_monitor *m, struct hw_now now);
/* Called when a reliable wall clock shows `good_ms`. max_age uses the earlier of two times. One is `good_ms`,
 * continued by the monotonic clock. The other is the wall clock that is passed with the messages. So a clock that
 * was set ahead makes no heartbeat too old. */
void hw_monitor_trust_wall(struct hw_monitor *m, struct hw_now now, int64_t good_ms);
/* Called when the machine was suspended, and woke between `since` and now. */
void hw_monitor_suspended(struct hw_monitor *m, struct hw_now now, struct hw_mono since);
/* Called when a source may have lost messages since its last good barrier, because its receive buffer was nearly
 * full. */
void hw_monitor_loss(struct hw_monitor *m, struct hw_now now, unsigned source);

/* --- probes ------------------------------------------------------------------- */

/*
 * Before the deadline of a silent online device in a group with probes, the monitor emits HW_OUT_PROBE, and the driver
 * asks the device (rule: src/core/probe.h). A probe is no evidence and moves no deadline. An answer is a heartbeat. The
 * answer arrives on a heartbeat filter; on topic `probe_answers`, with the msg_id from hw_probe_id(); or in another
 * way, through hw_monitor_answered().
 */
#define HW_PROBE_ID_SIZE 31 /* with the NUL */

/* Returns conf.probe_answers. */
const char *hw_monitor_probe_answers(const struct hw_monitor *m);
/* Writes the msg_id of a probe for the present silence of a device: its index, its generation, and a tag of these
 * and the silence, made with a secret key. Returns false if the device does not exist. */
bool hw_probe_id(const struct hw_monitor *m, struct hw_ref device, char id[HW_PROBE_ID_SIZE]);
/* Whether a probe of a device is still useful: the device is online, has sent no heartbeat since HW_OUT_PROBE, and is
 * not past its deadline; monitor and group are not blind. `left_ns` as in HW_OUT_PROBE. */
bool hw_probe_is_wanted(const struct hw_monitor *m, struct hw_now now, struct hw_ref device, int64_t *left_ns);
/* Called when a device has answered a probe. The answer is a heartbeat. Ignored if the device does not exist or was
 * forgotten. */
void hw_monitor_answered(struct hw_monitor *m, struct hw_now now, struct hw_ref device);

/* --- keys --------------------------------------------------------------------- */

/* Why a key was checked: bits. 0: the monitor asked, or a scan of all keys found it. */
enum {
	HW_KEY_WRITTEN = 1, /* another program has written it */
	HW_KEY_TTL = 2,     /* another program has changed its time to live */
	HW_KEY_REMOVED = 4, /* another program has removed it */
	HW_KEY_EXPIRED = 8, /* it has expired */
	HW_KEY_EVICTED = 16 /* the store has evicted it for lack of memory */
};

#define HW_KEY_GONE   INT64_C(-2) /* instead of a time to live: the key does not exist */
#define HW_KEY_NO_TTL INT64_C(-1)

/* Called with the store's answer to a check of a device's key, and with the remaining time to live. A key that
 * exists makes an unknown device known. */
void hw_monitor_key(struct hw_monitor *m, struct hw_now now, unsigned why, const char *id, size_t id_len,
                    int64_t ttl_ms);

/* Called when another program has removed the device's disconnected key. A device known by a key is then online for
 * one timeout. */
void hw_monitor_key_back(struct hw_monitor *m, struct hw_now now, const char *id, size_t id_len);

/* Sets whether the store's keys can be checked. At first they cannot, so the monitor starts blind for keys. */
void hw_monitor_key_sight(struct hw_monitor *m, struct hw_now now, bool sees);
/* Called when all keys were lost at once, and not removed by the programs that wrote them. */
void hw_monitor_key_loss(struct hw_monitor *m, struct hw_now now);

/* Whether the key belongs to another program, as far as is known: the key exists, or the device is known by its key
 * alone. */
bool hw_device_key_is_foreign(const struct hw_device *d);

/* --- the store ---------------------------------------------------------------- */

struct hw_stored {
	const char *id;
	size_t id_len;
	enum hw_state state; /* online or offline; any other value: the record has no state */
	enum hw_reason reason;
	int64_t since_ms, last_seen_ms; /* wall clock; last_seen_ms 0: never */
	int64_t own_timeout_ms;         /* 0: none */
	int64_t down_ms;                /* how long no monitor ran; does not count as silence */
	int64_t gone_ms;                /* of an offline device: for how long monitors have seen it offline; 0:
	                                 * unknown; < 0: unusable */
	bool known_by_stream;           /* the device was read because only the stream had named it:
	                                 * hw_monitor_is_known_by_stream() */
	const char *group; /* NULL: the first group. An unconfigured one is kept by name; an invalid name is replaced by
	                      a guess */
	uint64_t form;     /* the form of its group in which the device was last heard; 0: unknown */
	unsigned source;   /* HW_SOURCE_*; 0: mqtt */
	uint64_t seq;      /* 0: the record has none */
	bool once, guessed; /* guessed: without a store, the device may be in any group with the same status topics */
	int64_t ahead_ms; /* by how much the store's clock is ahead of this machine's; 0: the clock is not ahead, or the
	                     difference is unknown */
	const char *gaps; /* as written by hw_monitor_gaps(); NULL: none */
	const char *captures; /* as hw_monitor_captured(); NULL: none */
	const char *parents;  /* ids, each but the last followed by a newline; NULL: none. For a group with parents */
	struct hw_report report; /* the caller's; the monitor may take fields out */
};

/*
 * Loads a device from the store. An unknown device is created as stored, without a transition. A device that has sent a
 * message since then keeps the newer data, and its seq grows past the stored one. If another node decides for the
 * device, the stored state counts unless a newer one was read. Of two timeouts of the device's own, the longer counts.
 *
 * A value out of bounds is counted (HW_REFUSED_STORED) and replaced. A time more than a day ahead of both clocks
 * becomes now. An invalid or missing seq becomes the known one, or now. A missing state becomes the known one, or
 * online, so that the device is judged. An invalid timeout becomes the group's. A gone_ms that is negative, or exceeds
 * the time since since_ms by a day, becomes 0. The device is then refreshed, which corrects the store.
 *
 * Returns 0, -EINVAL (invalid id), -ENOSPC (max_devices) or -ENOMEM.
 */
int hw_monitor_load(struct hw_monitor *m, struct hw_now now, struct hw_stored *s);

/*
 * Makes a forgotten record in *device, for a device that was forgotten before this run. The broker has not acknowledged
 * the message that clears the device's status. With this record, the message can be pending again. The group with the
 * longest id_prefix that fits is assumed. -EEXIST: the id is known, and its own status replaces the status to be
 * cleared. Otherwise returns the same as hw_monitor_load().
 */
int hw_monitor_load_forgotten(struct hw_monitor *m, const char *id, size_t id_len, struct hw_ref *device);

/* Called when loading has ended or was given up. A sweep within the budget makes each provisional device online if
 * it has sent a heartbeat, and offline otherwise. */
void hw_monitor_loaded(struct hw_monitor *m);

/* Called when the store has a newer seq of this device. Makes the device's seq greater than that. Returns whether
 * the device exists and its seq was not greater. The caller then makes its state pending again. */
bool hw_monitor_adopt_seq(struct hw_monitor *m, struct hw_ref device, uint64_t seq);

/* --- several nodes ------------------------------------------------------------ */

/* This node's role in a partition. The monitor emits refreshes and pending statuses of devices that it owns, and
 * transitions where it is authoritative. A single node is authoritative for all partitions from the start. */
enum hw_role { HW_ROLE_WATCHES, HW_ROLE_OWNS, HW_ROLE_AUTHORITATIVE };

/*
 * Sets the role in partition `p`, and the epoch of its owner's fencing token (0 for a watcher). Before this node
 * becomes authoritative, the caller must follow the stream to its end. A sweep within the budget then takes the devices
 * over. If the node loses the partition, outputs that were returned before may be dropped: see hw_monitor_withdraw().
 */
void hw_monitor_role(struct hw_monitor *m, unsigned p, enum hw_role role, uint64_t epoch);
bool hw_monitor_owns(const struct hw_monitor *m, const struct hw_device *d);
bool hw_monitor_owns_partition(const struct hw_monitor *m, unsigned p);
/* Returns how many messages of other nodes came in on the filters. Other nodes publish statuses all the time. */
uint64_t hw_monitor_peer_messages(const struct hw_monitor *m);
/* Returns the partitions whose devices are not all taken over yet. */
struct hw_partitions hw_monitor_takes_over(const struct hw_monitor *m);
bool hw_monitor_is_authoritative(const struct hw_monitor *m, const struct hw_device *d);
/* Returns the epoch of the fencing token with which this node owns the device; 0: a single node, or a watcher. */
uint64_t hw_monitor_epoch(const struct hw_monitor *m, const struct hw_device *d);

/*
 * Takes an entry of the stream, in the stream's order. An unknown device becomes known. The entry is applied if this
 * node does not decide for the device and has read no newer state. Nothing is emitted. The record of a device that the
 * entry forgets stays until hw_monitor_reap().
 *
 * Returns 0, -EINVAL (invalid id, state or seq), -ENOSPC (max_devices), -ENOMEM or -ESTALE. -ESTALE: the entry's epoch
 * is above that of hw_monitor_role(), so another node has taken the partition. The entry was not applied: change the
 * role, and pass the entry in again. A seq more than a day ahead of the clock is counted (HW_REFUSED_STORED) and
 * replaced: the entry's offset gives its order.
 */
int hw_monitor_stream(struct hw_monitor *m, struct hw_now now, const struct hw_event *e);

/*
 * Called when the store has refused this node's last write of a device, because another node owns the device. The next
 * state from stream or store counts, even with a lower seq. Until then the device keeps the refused state. The stream
 * may have passed the device already, so the caller reads its hash again, for hw_monitor_load(). If there is no hash,
 * the caller passes an entry with state forgotten to hw_monitor_stream(). The caller does so during a re-read of the
 * store, too.
 */
void hw_monitor_withdraw(struct hw_monitor *m, struct hw_ref device);

/*
 * Several nodes: whether a new entry, not yet passed to hw_monitor_stream(), reports a device online that this node has
 * not heard itself. Where keys are used, the caller then reads the device's hash to find out whether the device has a
 * key.
 */
bool hw_monitor_is_known_by_stream(const struct hw_monitor *m, const struct hw_event *e);

/*
 * A re-read of the whole store, after a part of the stream was missed (a gap, another master). Neither stream nor store
 * names the devices that were forgotten meanwhile. Between begin and end, the caller passes every stored device to
 * hw_monitor_load(), and the stream from its end at the begin. In that time, this node must not become authoritative
 * for a partition. If a store was emptied, the owners write it first.
 *
 * hw_monitor_reread_begin(): 0 or -ENOMEM; if there is no memory, no missing device is found. A second begin restarts.
 * `other`: the store may lack entries that were read before, because it is another master or was emptied. Its first
 * state of each device then counts even with a lower seq. Until that state arrives, also in later re-reads, the device
 * is not forgotten: an owner may still have to write it. If no owner knows the device, this node writes and publishes
 * it when it takes the device over.
 *
 * hw_monitor_reread_end(): returns the next device that another node decides for and that was not passed in. The device
 * is now forgotten, and its record stays until hw_monitor_reap(). False: the re-read is over, or *budget is used up
 * (call again soon).
 */
int hw_monitor_reread_begin(struct hw_monitor *m, bool other);
bool hw_monitor_reread_end(struct hw_monitor *m, struct hw_now now, unsigned *budget, struct hw_ref *gone);

/* --- parents ------------------------------------------------------------------- */

/*
 * The parents of a device are the devices whose ids its group's `parents` give for its last heartbeat. A parent is
 * known while it is online or offline. The index of parents is this node's own (src/core/parents.h).
 *
 * In a group with child_proves, a child's heartbeat counts for the deadline of an online parent like a heartbeat of the
 * parent itself; the parent's last_seen does not change.
 *
 * In a group with parent_death = take, an online child goes offline when no known parent is online any more. Exception:
 * the child was heard after the parent's goodbye or deadline. A load or a take-over makes no child go offline, and a
 * lossy blindness ends the sweep over the children (src/core/parent_death.c).
 */
#define HW_ANCESTORS_MAX 8

struct hw_parent_view {
	struct hw_id id; /* valid until the next call that takes input */
	bool known;
	enum hw_state state; /* if known */
	int64_t since_ms;    /* if known */
};
/* Returns the captures that the labels of a device's group use and that its id does not contain: lines NAME=VALUE from
 * the topic of its last heartbeat. Of no length: there are none. */
struct hw_id hw_monitor_captured(const struct hw_monitor *m, const struct hw_device *d);

/* Returns the number of a device's parents, and the parents in the order of the configuration. */
unsigned hw_monitor_parents(const struct hw_monitor *m, const struct hw_device *d,
                            struct hw_parent_view parents[HW_PARENTS_MAX]);
/* Writes the ids of the known parents, separated by newlines, without a NUL. Returns the length; 0: no parent is
 * known. */
#define HW_PARENTS_TEXT (HW_PARENTS_MAX * (HW_ID_MAX + 1))
size_t hw_monitor_known_parents(const struct hw_monitor *m, const struct hw_device *d, char text[HW_PARENTS_TEXT]);
/* If all known parents are offline, finds the parent that went offline last. Returns false otherwise. */
bool hw_monitor_dead_parent(const struct hw_monitor *m, const struct hw_device *d, struct hw_parent_view *parent);
/* Returns the number of devices that have this one as a parent. */
uint32_t hw_monitor_children(const struct hw_monitor *m, const struct hw_device *d);

/* --- forms -------------------------------------------------------------------- */

/*
 * Whether this node may judge a device. A device that this node may not judge keeps its state. Nodes may have different
 * groups. This node may not judge a device whose group is not configured here. It also may not judge a device that only
 * another node has heard, in another form of the group (struct hw_group.form_hash). A single monitor judges every
 * device of its groups.
 */
bool hw_monitor_judges(const struct hw_monitor *m, const struct hw_device *d);
/* Returns the form in which the device was heard, for the store. 0: unknown; the stored value then stays. */
uint64_t hw_monitor_form(const struct hw_monitor *m, const struct hw_device *d);

/* Groups of other nodes. The longest timeout of a group on any node is in force on all nodes. */
struct hw_peer_group {
	const char *name;
	int64_t timeout_ms, timeout_max_ms;
	uint64_t form;
	uint32_t proves;             /* hw_group_proves() */
	struct hw_partitions proven; /* hw_monitor_proven_in() */
};
/* Sets all groups of other nodes that are known now. `differ`: a member has other groups than this node. */
void hw_monitor_peer_groups(struct hw_monitor *m, const struct hw_peer_group *peers, size_t n, bool differ);

/*
 * Parents that children prove (group.child_proves).
 *
 * hw_monitor_proven_in(): returns the partitions with an online device of this group that an online child proves. These
 * partitions change with each check of the parents, once a second. hw_monitor_proven_known(): whether all parents have
 * been checked since loading.
 *
 * hw_monitor_peer_proofs(): passes the groups of other nodes; called after hw_monitor_peer_groups(). While this node
 * lacks a group of another node that proves parents, it does not judge an overdue device if another node proves a
 * parent of the same group and partition. Such a device counts as unjudged. Returns whether the caller should read the
 * store again, because this node now has the groups that it lacked.
 */
struct hw_partitions hw_monitor_proven_in(const struct hw_monitor *m, size_t group);
bool hw_monitor_proven_known(const struct hw_monitor *m);
bool hw_monitor_peer_proofs(struct hw_monitor *m, struct hw_now now, const struct hw_peer_group *peers, size_t n);

/*
 * Counts the devices that are not judged, `budget` records in each call. Returns true when a round is complete, or when
 * there is nothing to count. The results are those of the last round. The partitions are those of all nodes. The
 * numbers of devices, in total and for each group, are about this node's own partitions.
 */
bool hw_monitor_count_unjudged(struct hw_monitor *m, struct hw_now now, unsigned budget);
bool hw_monitor_may_be_unjudged(const struct hw_monitor *m); /* false: no such device exists, and nothing is counted */
struct hw_partitions hw_monitor_unjudged_in(const struct hw_monitor *m);
/*
 * Results of the last round for a group. `judged`: this node judges a device of the group. `form`: the form in which
 * the unjudged devices were heard; 0: the store does not name it. If they were heard in several other forms, the form
 * that was read last stands for all of them. While the group alone is blind (deaf, or its upstream is down), its
 * devices and expected ids are in `online`, whatever their state. After conf.blind_lasts_ms they are in `late` too.
 * While a value of the group's `while` is unknown, its devices are in `online`, too.
 */
struct hw_group_judging {
	bool judged;
	struct {
		uint64_t form;
		struct hw_partitions in;
	} unjudged[2]; /* [0]: devices that a node heard in this node's form, although the group is not configured
	                * here; [1]: in another form */
	struct hw_partitions online; /* partitions with unjudged devices that are online */
	struct hw_partitions late;   /* those of `online` that have an online unjudged device past its deadline */
	bool deaf;                   /* the group has been deaf for conf.blind_lasts_ms */
};
struct hw_group_judging hw_monitor_judging(const struct hw_monitor *m, size_t group);
/* Returns partitions in which this node hears devices, but their owner has not reported them for two rounds, and so
 * may not hear them. Empty while all members have the same groups. */
struct hw_partitions hw_monitor_unstored_in(const struct hw_monitor *m);
/* hw_monitor_unjudged(): returns the number of unjudged devices, including those without a record here.
 * hw_monitor_unjudged_of(): the same for one group. */
uint32_t hw_monitor_unjudged(const struct hw_monitor *m);
uint32_t hw_monitor_unjudged_of(const struct hw_monitor *m, size_t group);

/* --- devices without a record -------------------------------------------------- */

/*
 * Devices that exist in the store or for other nodes, and have no record here, because there was no room (max_devices)
 * or no memory. hw_monitor_left_out() and hw_monitor_left_out_in() are about the devices of all nodes. The online
 * devices among them in this node's partitions are unjudged devices. hw_monitor_left_out_of(): their number in a group,
 * in the last round of hw_monitor_count_unjudged().
 */
uint32_t hw_monitor_left_out(const struct hw_monitor *m);
/* Like hw_monitor_left_out(), without devices of which only refused heartbeats are known. Cost: a walk over the
 * devices that are left out. */
uint32_t hw_monitor_left_out_stored(const struct hw_monitor *m);
struct hw_partitions hw_monitor_left_out_in(const struct hw_monitor *m);
uint32_t hw_monitor_left_out_of(const struct hw_monitor *m, size_t group);
/* Whether the caller should read the store again, because there may be room now. The caller then calls
 * hw_monitor_left_out_begin() before the reading and, if the reading was complete, hw_monitor_left_out_end() after
 * it. */
bool hw_monitor_left_out_fits(const struct hw_monitor *m, struct hw_now now);
void hw_monitor_left_out_begin(struct hw_monitor *m, struct hw_now now);
void hw_monitor_left_out_end(struct hw_monitor *m);

/* --- learned timeouts --------------------------------------------------------- */

/* The values that were learned from the gaps between a device's heartbeats. Times: 0 if too little was seen. */
struct hw_learned {
	int64_t timeout_ms;           /* learned, whether it is in force or not */
	unsigned gaps_seen, mistakes; /* both up to 63; mistakes: gaps that were longer than the timeout in force */
	int64_t median_gap_ms;
	int64_t largest_gap_ms; /* of the last two days, or of the last 20 to 40 gaps if these took longer */
};
/* Whether any group learns. */
bool hw_monitor_learns(const struct hw_monitor *m);
/* Returns false if the device's group does not learn. */
bool hw_monitor_learned(const struct hw_monitor *m, const struct hw_device *d, struct hw_learned *to);

/* Writes the gaps as text for struct hw_stored.gaps. Returns false if there are none. */
#define HW_GAPS_TEXT 41
bool hw_monitor_gaps(const struct hw_monitor *m, const struct hw_device *d, char text[HW_GAPS_TEXT]);

/* --- inventory ---------------------------------------------------------------- */

/* Sets the timeout that the inventory has for a device; 0: none. The timeout is in force at once, also if it is shorter
 * than the present one. The timeout stays when the device is forgotten, until the record is freed. timeout_ms:
 * HW_TIMEOUT_MIN_MS to HW_TIMEOUT_MAX_MS. Returns 0, also for a device that no longer exists, or -ENOMEM. */
int hw_monitor_set_inventory_timeout(struct hw_monitor *m, struct hw_now now, struct hw_ref device, int64_t timeout_ms);

/* --- operator ----------------------------------------------------------------- */

/* Makes the device forgotten. False if there is no device of that id, or another node decides for it. The record stays
 * until hw_monitor_reap(). */
bool hw_monitor_forget(struct hw_monitor *m, struct hw_now now, const char *id, size_t id_len);

/* Frees the record of a forgotten device for which nothing is pending; ignores any other device. */
void hw_monitor_reap(struct hw_monitor *m, struct hw_ref device);

/* --- out ---------------------------------------------------------------------- */

/* Returns the next output. Outputs that inputs have caused come first, and cost no budget. Returns false if nothing
 * is left now, or if the budget is used up (*budget == 0: call again soon). */
bool hw_monitor_next(struct hw_monitor *m, struct hw_now now, unsigned *budget, struct hw_out *out);

/* Returns the next output that inputs have already caused, or false. Judges no device and checks no time. For a monitor
 * that receives nothing any more, and only passes on its remaining output. */
bool hw_monitor_caused(struct hw_monitor *m, struct hw_out *out);

/* Sets the time at which hw_monitor_next() has work again, if there is no further input. Returns false if it never
 * has. */
bool hw_monitor_due(const struct hw_monitor *m, struct hw_now now, struct hw_mono *at);

/* Returns for how long the keys of an online device outlive their last refresh. */
static inline int64_t hw_ttl_ms(int64_t timeout_ms, int ttl_factor)
{
	int64_t ttl = timeout_ms * ttl_factor;
	return ttl > HW_TTL_MIN_MS ? ttl : HW_TTL_MIN_MS;
}

/* Returns the time within which every device must be refreshed, by its checks or otherwise, so that no key of an
 * online device expires. While the monitor is blind, it refreshes all devices within this time by itself. */
int64_t hw_monitor_refresh_within_ms(const struct hw_monitor *m);

/* --- questions ---------------------------------------------------------------- */

struct hw_registry *hw_monitor_registry(const struct hw_monitor *m);
/* hw_monitor_wheel(): the wheel of heartbeats. hw_monitor_key_wheel(): the wheel of keys; NULL: keys are not
 * checked. hw_monitor_wheel_of(): the wheel for this device's entry. */
const struct hw_wheel *hw_monitor_wheel(const struct hw_monitor *m);
const struct hw_wheel *hw_monitor_key_wheel(const struct hw_monitor *m);
const struct hw_wheel *hw_monitor_wheel_of(const struct hw_monitor *m, const struct hw_device *d);
const struct hw_groups *hw_monitor_groups(const struct hw_monitor *m);
const struct hw_group *hw_monitor_group_of(const struct hw_monitor *m, const struct hw_device *d);
const struct hw_blind *hw_monitor_blind(const struct hw_monitor *m);
/* Whether the monitor is blind only because a grace after a loss is not over. Messages are read during the grace. */
bool hw_monitor_in_grace(const struct hw_monitor *m);
/* Returns when the last barrier that is back on every source was sent; {0}: none is back, or this is unknown. */
struct hw_mono hw_monitor_barrier_back(const struct hw_monitor *m);
/* Returns how long the blindness still lasts if nothing else happens; -1: hw_monitor_in_grace() is false. */
int64_t hw_monitor_grace_left_ms(const struct hw_monitor *m, struct hw_mono now);

/* The present blindness: of the whole fleet, or, with the cause HW_CAUSE_DEAF or HW_CAUSE_UPSTREAM, of some groups. */
struct hw_blindness {
	bool blind;
	enum hw_cause cause;
	struct hw_mono since;
	unsigned deaf_groups; /* number of groups that are deaf now */
	struct hw_mono deaf_since;
	unsigned upstream_groups; /* the same for groups that are blind with cause upstream */
	struct hw_mono upstream_since;
	int64_t upstream_ns;
	int64_t deaf_ns; /* total time in which some group was deaf, without the current deafness */
};
struct hw_blindness hw_monitor_blindness(const struct hw_monitor *m);
/* Returns the `while` because of which a group is blind with cause upstream; NULL: the group is not. */
const struct hw_while *hw_monitor_group_upstream(const struct hw_monitor *m, size_t group);
/* Returns the first `while` of this group that has no value; NULL: there is none. */
const struct hw_while *hw_monitor_group_unknown(const struct hw_monitor *m, size_t group);
bool hw_monitor_group_is_deaf(const struct hw_monitor *m, size_t group);
/* Returns since when the group is deaf, monotonic; {0}: it is not deaf. */
struct hw_mono hw_monitor_group_deaf_since(const struct hw_monitor *m, size_t group);
const struct hw_monitor_stats *hw_monitor_stats(const struct hw_monitor *m);
const struct hw_group_stats *hw_monitor_group_stats(const struct hw_monitor *m, size_t group);

/* The source of a device's timeout. The first of these sources that has a timeout for the device counts. */
enum hw_timeout_from {
	HW_TIMEOUT_DEVICE,    /* the device has asked for it; at most the group's timeout_max */
	HW_TIMEOUT_INVENTORY, /* hw_monitor_set_inventory_timeout() */
	HW_TIMEOUT_LEARNED,
	HW_TIMEOUT_GROUP
};
/* Returns the name of a source in the API; never NULL. */
const char *hw_timeout_from_name(enum hw_timeout_from from);

/* Returns the timeout that is in force for a device, with its source. */
struct hw_timeout {
	int64_t ms;
	enum hw_timeout_from from;
};
struct hw_timeout hw_monitor_timeout(const struct hw_monitor *m, const struct hw_device *d);
int64_t hw_monitor_timeout_ms(const struct hw_monitor *m, const struct hw_device *d);
/* Returns the wall time of a device's last heartbeat; 0: never. */
int64_t hw_device_last_seen_ms(const struct hw_device *d, struct hw_now now);
/*
 * Returns how much of forget_after, or of forget_once_after, an offline device has used up. Only time in which a
 * monitor could have heard the device counts, not the wall clock. -1: the device is in another state or is never
 * forgotten, or a reload is changing these options.
 */
int64_t hw_monitor_gone_ms(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d);
/* Returns the time until an online device's deadline, if the device stays silent and the monitor is not blind; or
 * the time until an offline device is forgotten. INT64_MAX: never. May be negative. */
int64_t hw_monitor_due_in_ms(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d);

#endif

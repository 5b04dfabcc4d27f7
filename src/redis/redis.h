/* SPDX-License-Identifier: MIT */
/*
 * The interface to all code of the monitor that uses hiredis, on the libevent loop: the connection, the scripts, the
 * sink of the store (transitions, refreshes, P), the loader and the sight record. This code reads devices from
 * the core's registry and never changes one. Redis' answers reach the owner through struct hw_redis_ops.
 *
 * The sight record is the value of device:monitor:NODE_ID: this run's id, and until when this run has seen the fleet
 * (sight_record.c).
 *
 * Transitions pass through a bounded ring in their order. A transition leaves the ring when Redis has confirmed it.
 * After a lost connection, transitions that are not confirmed are sent again; this is harmless, because the script
 * compares seq. If the ring is full, the device's snapshot is written later as this transition; if the device makes
 * another transition before that, the first one is dropped and counted. If Sentinels name the master, a failed master
 * may have confirmed transitions that its successor never received. So after each reconnect, the transitions that were
 * confirmed in the last minute are sent again too. This code logs nothing and never blocks.
 */
#ifndef HW_REDIS_H
#define HW_REDIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/event.h"
#include "heartwheel/monitor.h"
#include "link/address.h"
#include "nodes/exclusive.h"
#include "nodes/fencing_token.h"
#include "redis/page.h"

struct event_base;
struct hw_redis;

struct hw_redis_conf {
	struct hw_redis_address at;
	const char *key_prefix;
	const char *node_id;
	int ttl_factor;
	int64_t events_max;
	bool refresh_last_seen; /* true: each refresh writes last_seen; false: only one in several does */
	uint64_t run_id;        /* random run id of this run */
	/* number of the pid file's lock, which only one run can hold at a time; 0: not known */
	uint64_t place;
	/* added to the TTL of connected keys: a take-over by another node may take this long */
	int64_t ttl_more_ms;
	/* a keyspace listener runs: the scripts announce this monitor's writes, and do not overwrite keys of other
	 * programs */
	bool keyspace;
};

/* Flags in a device's record: its state is pending at the store, or its status or discovery at the broker. The sink for
 * each sets and clears its flag. */
enum { HW_PENDING_STORE = HW_NOTE(0), HW_PENDING_STATUS = HW_NOTE(1), HW_PENDING_DISCOVERY = HW_NOTE(4) };

/* A device's partition, and the fencing token with which this node owns it. */
struct hw_ownership {
	unsigned partition;
	struct hw_fencing_token token;
};

struct hw_redis_ops {
	/* Called when the connection is usable (authenticated, database selected, scripts loaded), when it was lost,
	 * and when it could not be opened. `why` names the reason and the remedy. */
	void (*on_link)(void *arg, bool up, const char *why);
	/* Called with a device from the store. The callback may take over its members. `down_ms` is set. */
	void (*on_device)(void *arg, struct hw_stored *device);
	/* Called with an id of the outbox, after all devices: a device that was forgotten, and whose messages at
	 * the broker are not cleared yet. `status`: the entry is from an earlier version, and the id is that of a
	 * device whose status was not acknowledged. */
	void (*on_outbox)(void *arg, const char *id, size_t id_len, bool status);
	/* Called with the answer to hw_redis_read_published(): HW_PARTITIONS values, HW_PUBLISHED_UNKNOWN where
	 * Redis has none, 0 where the value is no P. NULL: Redis cannot serve now. Not called if the connection is
	 * lost. */
	void (*on_published)(void *arg, const uint64_t *p);
	/* Called when the load has ended, with the number of devices, the number of unusable records, the id of the
	 * first of these, and whether everything was read. */
	void (*on_loaded)(void *arg, uint64_t devices, uint64_t unusable, const char *first, bool complete);
	/* The store holds this device's state as of `seq`. */
	void (*on_confirmed)(void *arg, struct hw_ref device, uint64_t seq);
	/* The store holds a newer seq than ours. */
	void (*on_newer)(void *arg, struct hw_ref device, uint64_t stored_seq);
	/* Called when a transition was written to the event stream with this id, before on_confirmed() for the same
	 * transition. Not called if the answer was lost: the entry is then returned by hw_redis_events_after(). May
	 * be NULL. */
	void (*on_event)(void *arg, struct hw_stream_id at, const struct hw_transition *t);
	/* Called with the answer to hw_redis_events_after() or hw_redis_events_last(). May be NULL if neither
	 * function is called. */
	void (*on_events)(void *arg, const struct hw_event_page *page);
	/* Called when Redis has answered with an error that shows that it cannot serve now (OOM, READONLY, LOADING,
	 * MISCONF, NOPERM and others), at most once in 10 s for each kind. */
	void (*on_trouble)(void *arg, const char *what);
	/* Called once when a Sentinel does not work as it should, until it works again. The text has the remedy. May
	 * be NULL. */
	void (*on_sentinel)(void *arg, const char *what);
	/* Called when Redis accepts writes again, after a refusal that on_trouble() reported. `ms`: how long Redis
	 * refused them. */
	void (*on_writable)(void *arg, int64_t ms);
	/*
	 * Called only if Sentinels name the master: the connection came back, and `n` confirmed transitions were sent
	 * again. The store lacked `lacking` of them. May be NULL.
	 */
	void (*on_sent_again)(void *arg, uint32_t n, uint32_t lacking);
	/* Called when the sight record is missing, so Redis came back empty. Every device is written again. */
	void (*on_emptied)(void *arg);
	/*
	 * Returns whether this node owns the device. Pending writes of other devices are dropped. NULL: a standalone
	 * monitor, which does not use the members below. Within a turn of the loop, the answer may change only inside
	 * callbacks.
	 */
	bool (*owner)(void *arg, const char *id, size_t id_len, struct hw_ownership *out);
	/* Returns this node's fencing token of a partition; epoch 0: it does not own the partition. NULL together with
	 * `owner`. */
	struct hw_fencing_token (*token)(void *arg, unsigned partition);
	/* Called when Redis has a greater fencing token for this partition. Redis has refused our writes for the
	 * partition, and they will not be repeated. */
	void (*on_fenced)(void *arg, unsigned partition, const struct hw_fencing_token *newer);
	/* Called when this device's states up to `seq` were not written and never will be, because another node owns
	 * the device, or owned the device in between. Must not call a function of this header. May be NULL. */
	void (*on_dropped)(void *arg, struct hw_ref device, uint64_t seq);
	/* Called when a request of hw_redis_read_device() failed: the connection was lost, or Redis cannot serve it.
	 * Must not call a function of this header. May be NULL. */
	void (*on_read_device_failed)(void *arg);
};

struct hw_redis_stats {
	uint64_t commands, scripts, transitions_written, transitions_dropped, refreshes, snapshots, reconnects;
	uint32_t transitions_waiting, refreshes_waiting;
	int64_t script_ns; /* smoothed round trip of a transition script */
	uint64_t fenced;   /* items refused because of another node's greater token */
	/* waiting: entries of the ring, without those that are sent again. waiting_ends: how many of these lead to
	 * another state than online. done: position of the ring's head. room: how many more entries fit. */
	uint64_t waiting, waiting_ends, done, room;
	int64_t oldest_transition_ms; /* age of the oldest unconfirmed transition; 0: none */
};

/* Starts to connect, and never blocks: names are resolved in another thread. `m` and `ops` are borrowed. Returns NULL
 * if there is no memory. */
struct hw_redis *hw_redis_new(struct event_base *base, const struct hw_redis_conf *conf, const struct hw_monitor *m,
                              const struct hw_redis_ops *ops, void *arg);
/* Must not be called from a callback. */
void hw_redis_free(struct hw_redis *r);

/* Reads every device and the outbox when the connection is up. Must be called before any transition. A node of a
 * cluster calls it again if it cannot follow the stream, but not before on_loaded(). */
void hw_redis_load(struct hw_redis *r);
/* Begins the first load of a monitor that has delayed it, perhaps for long and while connected. Reads the sight
 * records again, as a new object would. */
void hw_redis_load_late(struct hw_redis *r);

/* In a cluster: reads the stored state of a device. `again`: otherwise this node knows the device only from other
 * nodes' transitions. on_device() or on_read_device_failed() follows, unless the store does not have the device. On
 * -ENOTCONN, -ENOMEM or -ENOBUFS (too many requests in flight) neither is called. */
#define HW_READ_DEVICES_MAX 1024
int hw_redis_read_device(struct hw_redis *r, const char *id, size_t id_len, bool again);
/* Whether a request with `again` is in flight. */
bool hw_redis_is_reading_again(const struct hw_redis *r);

/* Checks whether a cluster uses this prefix. `fn` is called with the ops' argument. `any`: the cluster has a member.
 * `hash` changes as long as a member runs. On -ENOTCONN or -ENOMEM, or if the connection is lost, `fn` is not
 * called. */
typedef void hw_redis_nodes_seen(void *arg, bool any, uint64_t hash);
int hw_redis_read_nodes(struct hw_redis *r, hw_redis_nodes_seen *fn);

/* Another standalone monitor that uses this prefix. */
struct hw_redis_monitor {
	char node_id[HW_NODE_ID_MAX + 1], host[65]; /* any bytes but spaces */
	long pid;
};
/*
 * Called each second: adds this run to the standalone monitors of this prefix, or renews its entry. Returns whether a
 * command was sent; none is sent while an answer is awaited.
 *
 * `fn` is called with the ops' argument, the verdict on the entries, and the older monitor (NULL if this one is the
 * first). It is not called if the connection is lost. If Redis refuses the entry, this monitor counts as the first.
 */
typedef void hw_redis_monitors_seen(void *arg, enum hw_exclusive_verdict v, const struct hw_redis_monitor *older);
bool hw_redis_enter(struct hw_redis *r, hw_redis_monitors_seen *fn);
/* Like hw_redis_enter(), for a node of a cluster, which has no entry. Each standalone monitor counts as older. */
bool hw_redis_read_monitors(struct hw_redis *r, hw_redis_monitors_seen *fn);
/* Whether this run's entry was not renewed for so long that another monitor may have taken its place. */
bool hw_redis_may_be_replaced(const struct hw_redis *r);
/* Stops the writes while `withheld`: no transition, refresh or snapshot is written, and each pending write stays
 * pending. */
void hw_redis_withhold(struct hw_redis *r, bool withheld);
/* Removes the entry for good. Returns true if it is removed, or if it cannot be removed. The caller repeats the call
 * until then. After the removal, the `fn` of hw_redis_enter() is called once more. */
bool hw_redis_leave(struct hw_redis *r);

/* Called when another node has ended, perhaps with pending writes. Reads the outbox again, and gradually compares
 * every device that this node owns with the store. */
void hw_redis_compare(struct hw_redis *r);
/* Whether a comparison of all devices still runs: by hw_redis_compare(), or after a reconnect. */
bool hw_redis_is_comparing(const struct hw_redis *r);

/* Called when the configuration of devices has changed. The next refresh of each device writes all fields of its
 * hash. */
void hw_redis_reconfigured(struct hw_redis *r);

/* Makes this transition pending at the store. Returns false if another node owns the device: then nothing is pending.
 */
bool hw_redis_transition(struct hw_redis *r, struct hw_now now, const struct hw_transition *t);
/* Queues a refresh of an online device's keys. Several requests for a device become one refresh. A refresh that changes
 * little waits for others, for a quarter of a second at most. */
void hw_redis_refresh(struct hw_redis *r, struct hw_ref device);
/* Like hw_redis_refresh(), but does nothing if the refresh would only extend the TTL of the connected key. */
void hw_redis_refresh_light(struct hw_redis *r, struct hw_now now, struct hw_ref device);
/* Called when data of a device have changed that only a full refresh writes, such as its parents. Queues a refresh
 * that writes all fields of the device's hash. */
void hw_redis_rewrite(struct hw_redis *r, struct hw_ref device);
/* hw_redis_parent_heard() adds an entry to the stream device:parent_heard (see struct hw_out). hw_redis_groups() writes
 * the hash device:groups. A write that Redis does not accept is not sent again. */
void hw_redis_parent_heard(struct hw_redis *r, struct hw_id id, uint64_t seq, struct hw_id parent, int64_t settle_ms);
void hw_redis_groups(struct hw_redis *r, struct hw_now now);
/* Called when the broker has cleared the retained messages of a device that was forgotten, or has nothing to clear.
 * Removes the id from the outbox. */
void hw_redis_cleared(struct hw_redis *r, const char *id, size_t id_len);

/*
 * P of a partition (of the whole fleet, index 0, for a standalone monitor): the broker has acknowledged or refused each
 * status of a transition with a seq less than P. Kept in the hash device:published.
 */
#define HW_PUBLISHED_UNKNOWN UINT64_MAX
/* Reads P; on_published() follows. Returns 0, -ENOTCONN or -ENOMEM. A standalone monitor's load also reads P, before
 * on_loaded(). */
int hw_redis_read_published(struct hw_redis *r);
/* Writes P before all transitions that are pending now. Nothing else waits for the write. It is repeated until Redis
 * has it, or another node owns the partition. */
void hw_redis_write_published(struct hw_redis *r, unsigned partition, uint64_t p);
/* Whether Redis has every P that was written, or refuses them. */
bool hw_redis_published_idle(const struct hw_redis *r);

/*
 * Requests a part of the event stream, at most HW_EVENTS_PAGE entries: hw_redis_events_after() those after an id ({0,
 * 0}: from the start), hw_redis_events_last() the newest. Returns 0, -ENOTCONN or -ENOMEM. After 0, on_events() is
 * called, in the order of the requests, unless the connection is lost.
 */
int hw_redis_events_after(struct hw_redis *r, struct hw_stream_id after);
int hw_redis_events_last(struct hw_redis *r);

bool hw_redis_up(const struct hw_redis *r);
/*
 * hw_redis_refusal(): while Redis refuses writes, the reason and the remedy. hw_redis_refusal_name(): the kind of
 * refusal, by hw_trouble_name(). Both return NULL while writes succeed, and after the connection was lost for another
 * reason. A refusal ends only with a successful write, even if the connection was closed because of the refusal. The
 * sight record is written each second, so an idle monitor notices a refusal too.
 */
const char *hw_redis_refusal(const struct hw_redis *r);
const char *hw_redis_refusal_name(const struct hw_redis *r);
/* Returns the names that hw_redis_refusal_name() can return, by index; NULL after the last. */
const char *hw_redis_refusal_names(unsigned i);
/* Returns when the link went down, monotonic; {0} while it is up. */
struct hw_mono hw_redis_down_since(const struct hw_redis *r);
/* Writes to device:monitor:NODE_ID until when this monitor has seen the fleet. Called each second with the wall-clock
 * time, and before a clean stop. */
void hw_redis_seen(struct hw_redis *r, struct hw_now now, bool blind);

/* The state of a monitor in a period, for the stream device:sight; times are wall-clock milliseconds. */
enum hw_sight_state { HW_SIGHT_BLIND, HW_SIGHT_SEEING, HW_SIGHT_STOPPED, HW_SIGHT_DOWN };
struct hw_sighting {
	enum hw_sight_state state;
	const char *cause; /* of blindness: hw_cause_name(); else "". Static text */
	int64_t from_ms, to_ms;
};
/* Queues a period for the stream. A period that continues may be queued again, with the same from_ms and a later to_ms.
 * While Redis cannot be reached, HW_SIGHTINGS_MAX periods wait, and then the oldest are dropped. */
void hw_redis_sighting(struct hw_redis *r, const struct hw_sighting *e);
/* Whether no period is pending, or no period can be written now. */
bool hw_redis_sightings_idle(const struct hw_redis *r);
/* Returns until when the previous run saw the fleet, by the sight record that was found at the first connect; 0:
 * there was none. */
int64_t hw_redis_old_seen_ms(const struct hw_redis *r);

/* Called each second: starts timers for which there was no memory before. */
void hw_redis_tick(struct hw_redis *r);
/* hw_redis_keep_canaries(): stores the value of hw_monitor_canaries() in the sight record, for the next run.
 * hw_redis_old_canaries(): returns the value of the previous run; valid after the connection was up once. */
void hw_redis_keep_canaries(struct hw_redis *r, const struct hw_canaries *canaries);
const struct hw_canaries *hw_redis_old_canaries(const struct hw_redis *r);
/* Whether Redis should have a sight record: Redis has confirmed one of this run, or another run with our name has
 * written its own. If the sight record is then missing, Redis was emptied. */
bool hw_redis_has_sight_record(const struct hw_redis *r);
/* Whether a sight record is being written. Its answer shows whether Redis was emptied before. */
bool hw_redis_is_writing_sight_record(const struct hw_redis *r);
/* Whether an old sight record of this run, or one of another run, was found since the last call. The store may then
 * have been emptied or replaced unnoticed. */
bool hw_redis_doubts(struct hw_redis *r);
/*
 * Reads the sight record after all commands that were sent before. If Redis was emptied by then, on_emptied() is called
 * first. Then `fn` is called. `has_record`: the sight record exists, or is not expected yet. `known`: false if the
 * connection was lost. On -ENOTCONN or -ENOMEM, `fn` is not called. Otherwise it is called once, at the latest by
 * hw_redis_free().
 */
typedef void hw_redis_fenced(void *arg, bool known, bool has_record);
int hw_redis_fence(struct hw_redis *r, hw_redis_fenced *fn, void *arg);
/* Returns the run id of the server of the present connection (server_run_id.h), with ops.owner; "" if there is no
 * connection, or if Redis does not report it. */
const char *hw_redis_server(const struct hw_redis *r);
/* Returns Redis' clock when it was last read. *at receives when that was (monotonic). 0: not read yet. */
int64_t hw_redis_clock(const struct hw_redis *r, struct hw_mono *at);
const struct hw_redis_stats *hw_redis_stats(const struct hw_redis *r);

#endif

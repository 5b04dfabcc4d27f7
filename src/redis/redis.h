/* SPDX-License-Identifier: MIT */
/*
 * Everything that hiredis does, on the libevent loop: the link, the scripts, the store sink (transitions, refreshes,
 * the outbox), the loader and the mark. It reads devices from the core's registry and never changes one: what Redis
 * says comes back through struct hw_redis_ops.
 *
 * Transitions go through a bounded ring of edges, in order; an edge leaves it when Redis has confirmed it, so a lost
 * connection resends and the script's seq rules make that harmless. Overflow is counted, and the device is reconciled
 * instead. Where Sentinels name the master, what was confirmed in the last minute is sent again after each reconnect:
 * a master that fails may have confirmed what its successor never got. Nothing here logs or blocks.
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
#include "nodes/token.h"
#include "redis/page.h"

struct event_base;
struct hw_redis;

struct hw_redis_conf {
	struct hw_redis_address at;
	const char *key_prefix;
	const char *node_id;
	int ttl_factor;
	int64_t events_max;
	bool refresh_last_seen; /* each refresh writes when a device was last seen, not one in several */
	uint64_t run_mark;      /* random, of this run */
	uint64_t place;         /* of the lock that only one run holds at a time; 0: not known */
	int64_t ttl_more_ms;    /* what says that a device is online lives so much longer: another node may have to take
	                           over */
	bool keyspace; /* a keyspace listener is to know what the scripts do themselves, and whose keys are whose */
};

/* The device's state is owed to the store, or to the broker: set and cleared by whoever owes it. */
enum { HW_PENDING_STORE = HW_NOTE(0), HW_PENDING_STATUS = HW_NOTE(1) };

/* Where a device belongs, and what we own that with. */
struct hw_ownership {
	unsigned partition;
	struct hw_token token;
};

struct hw_redis_ops {
	/* The link is usable (authenticated, db selected, scripts loaded), or lost, or could not be had: `why` says
	 * what and what to do. */
	void (*on_link)(void *arg, bool up, const char *why);
	/* One device from the store; may be moved from. `down_ms` is filled in. */
	void (*on_device)(void *arg, struct hw_stored *device);
	/* One outbox entry at load, after all devices: the exact payload that the broker has not acknowledged ("" : a
	 * clearing). Not NUL-terminated. */
	void (*on_outbox)(void *arg, const char *id, size_t id_len, const char *payload, size_t len);
	/* Loading ended, with how many devices, how many records that could not be used and the first one's id, and
	 * whether all were read. */
	void (*on_loaded)(void *arg, uint64_t devices, uint64_t unusable, const char *first, bool complete);
	/* The store holds this device's state as of `seq`. */
	void (*on_confirmed)(void *arg, struct hw_ref device, uint64_t seq);
	/* The store holds a newer seq than ours. */
	void (*on_newer)(void *arg, struct hw_ref device, uint64_t stored_seq);
	/* An edge has been written to the event stream, where it has this place. Comes before its on_confirmed(); not
	 * at all if the answer to the writing was lost: hw_redis_events_after() finds it then. May be NULL. */
	void (*on_event)(void *arg, struct hw_event_id at, const struct hw_transition *t);
	/* The answer to hw_redis_events_after() or hw_redis_events_last(). May be NULL if neither is called. */
	void (*on_events)(void *arg, const struct hw_event_page *page);
	/* The payload of a device's retained status, exactly as it will be published: written into the outbox. Returns
	 * its length, 0 for a clearing, -1 if the group publishes none. */
	int (*status_payload)(void *arg, const struct hw_device *device, char *buf, size_t cap);
	/* A reply that says that Redis cannot serve now (OOM, READONLY, LOADING, MISCONF, NOPERM ...): at most one a
	 * kind in 10 s. */
	void (*on_trouble)(void *arg, const char *what);
	/* What is wrong with a Sentinel, and what to do: once, until it is well again. May be NULL. */
	void (*on_sentinel)(void *arg, const char *what);
	/* After hw_redis_refusal(), which on_trouble() has told: Redis writes again. `ms`: for how long it did not. */
	void (*on_writable)(void *arg, int64_t ms);
	/*
	 * Where Sentinels name the master: the link came back, and this many transitions that had been confirmed were
	 * sent again, of which so many were not there. May be NULL.
	 */
	void (*on_sent_again)(void *arg, uint32_t n, uint32_t lacking);
	/* The mark is missing: Redis came back empty; everything is being written anew. */
	void (*on_emptied)(void *arg);
	/*
	 * Only of one of several nodes; NULL: this monitor is by itself, and all below is left out. Whether we own this
	 * device: what of others' is owed is dropped. The answer stays the same but from within callbacks, and between
	 * turns of the loop.
	 */
	bool (*owner)(void *arg, const char *id, size_t id_len, struct hw_ownership *out);
	/* Redis has a greater token of this partition: what was sent of it was not written, and will not be. */
	void (*on_fenced)(void *arg, unsigned partition, const struct hw_token *newer);
	/* This device's state as of `seq` was not written, and will not be: another node owns it, or did meanwhile.
	 * Nothing of this header is to be called from here. May be NULL. */
	void (*on_dropped)(void *arg, struct hw_ref device, uint64_t seq);
	/* What hw_redis_look_at_device() asked for is not told: the link was lost, or Redis cannot serve it. Nothing of
	 * this header is to be called from here. May be NULL. */
	void (*on_unlooked)(void *arg);
};

struct hw_redis_stats {
	uint64_t commands, scripts, edges_written, edges_dropped, refreshes, rewrites, reconnects;
	uint32_t edges_waiting, refreshes_waiting;
	int64_t script_ns; /* smoothed round trip of a transition script */
	uint64_t fenced;   /* edges, refreshes and rewrites that another node's token was greater for */
	/* Entries of the ring but those that are sent again; of these, edges of devices that are not online; the first
	 * one's place, which moves on; and how many more there is room for. */
	uint64_t waiting, waiting_ends, done, room;
	int64_t oldest_edge_ms; /* age of the oldest unconfirmed edge, 0: none; in monotonic time */
};

/* Starts connecting; never blocks (names are resolved off the loop). `m` and `ops` are borrowed. NULL without memory.
 */
struct hw_redis *hw_redis_new(struct event_base *base, const struct hw_redis_conf *conf, const struct hw_monitor *m,
                              const struct hw_redis_ops *ops, void *arg);
/* Not from one of the callbacks. */
void hw_redis_free(struct hw_redis *r);

/* Reads every device and the outbox once the link is up. Call it before any transition; and again, of one of several
 * nodes, when the stream was not to be followed: not before on_loaded(). */
void hw_redis_load(struct hw_redis *r);
/* The first load, of one that did nothing until now although the link may be up for long: as if it was made now. */
void hw_redis_load_late(struct hw_redis *r);

/* Of several nodes, of a device that is known by hearsay: on_device() tells what the store has of it, or on_unlooked()
 * is called. 0; or -ENOTCONN, -ENOMEM, or -ENOBUFS where so many are under way: neither follows. */
#define HW_LOOKED_AT_MAX 1024
int hw_redis_look_at_device(struct hw_redis *r, const char *id, size_t id_len);

/* Looks at who is a member of a cluster on this prefix: `fn` is called with the ops' argument, `any` says whether
 * anybody is, and `hash` changes while one of them lives. 0; or -ENOTCONN or -ENOMEM; `fn` is not called if the link is
 * lost. */
typedef void hw_redis_nodes_seen(void *arg, bool any, uint64_t hash);
int hw_redis_look_at_nodes(struct hw_redis *r, hw_redis_nodes_seen *fn);

/* A monitor that is by itself and has this prefix, too. */
struct hw_redis_monitor {
	char node_id[HW_NODE_ID_MAX + 1], host[65]; /* any bytes but spaces */
	long pid;
};
/*
 * Enters this run among the monitors that are by themselves and have this prefix, or renews its entry: called each
 * second. Whether it asks Redis: not while it waits for an answer. `fn` is called with the ops' argument, what follows
 * from the entries, and the older monitor, NULL where this one is the first; not at all where the link is lost. If
 * Redis refuses the entry, this one counts as the first.
 */
typedef void hw_redis_monitors_seen(void *arg, enum hw_exclusive_verdict v, const struct hw_redis_monitor *older);
bool hw_redis_enter(struct hw_redis *r, hw_redis_monitors_seen *fn);
/* The same for a node of a cluster, which is not entered: each of those monitors is an older one. */
bool hw_redis_look_at_monitors(struct hw_redis *r, hw_redis_monitors_seen *fn);
/* Removes the entry, for good. Whether that is done, or cannot be; call it again until then. When it is done, `fn` of
 * hw_redis_enter() is called once more. */
bool hw_redis_leave(struct hw_redis *r);

/* Another node has ended, and may have owed something: the outbox is gone through once more, and every device that we
 * own is compared with the store, a part at a time. */
void hw_redis_compare(struct hw_redis *r);
/* Whether that, or the like after a reconnect, is still under way. */
bool hw_redis_is_comparing(const struct hw_redis *r);

/* What the configuration says of devices has changed: the next refresh of each writes all that its hash has. */
void hw_redis_reconfigured(struct hw_redis *r);

/* Owes the store this transition. False: another node owns the device, and nothing is owed. */
bool hw_redis_transition(struct hw_redis *r, struct hw_now now, const struct hw_transition *t);
/* Owes the store a refresh of the keys of an online device (coalesced). */
void hw_redis_refresh(struct hw_redis *r, struct hw_ref device);
/* The same, if there is more to refresh than that its connected key lives on. */
void hw_redis_look(struct hw_redis *r, struct hw_now now, struct hw_ref device);
/* The broker acknowledged a device's retained status as of `seq`: takes it out of the outbox if it is still current.
 * `id` because the device may be gone. */
void hw_redis_published(struct hw_redis *r, const char *id, size_t id_len, uint64_t seq, bool cleared);

/*
 * Asks for the event stream: what is behind a place in it ({0, 0}: from its start), or the newest entries, at most
 * HW_EVENTS_PAGE at once. 0, or -ENOTCONN or -ENOMEM. on_events() answers, in the order of the asking, unless the link
 * is lost first.
 */
int hw_redis_events_after(struct hw_redis *r, struct hw_event_id after);
int hw_redis_events_last(struct hw_redis *r);

bool hw_redis_up(const struct hw_redis *r);
/*
 * What Redis answers to writes, in words that say what to do, and its kind by hw_trouble_name(); NULL while they
 * succeed, and once the link was lost for another reason. It lasts over connections that were given up for it: only a
 * write that succeeds ends it. Each second one is tried, the mark, so an idle monitor knows too.
 */
const char *hw_redis_refusal(const struct hw_redis *r);
const char *hw_redis_refusal_name(const struct hw_redis *r);
/* All names that hw_redis_refusal_name() can give, one by one: NULL behind the last. */
const char *hw_redis_refusal_names(unsigned i);
/* Since when the link has been down, monotonic; {0} while up. */
struct hw_mono hw_redis_down_since(const struct hw_redis *r);
/* Says in device:monitor:NODE_ID until when this monitor has seen: called each second with the wall time, and before a
 * clean stop. */
void hw_redis_seen(struct hw_redis *r, struct hw_now now, bool blind);

/* A period of this monitor's, for the stream device:sight, in wall milliseconds. */
enum hw_sight_state { HW_SIGHT_BLIND, HW_SIGHT_SEEING, HW_SIGHT_STOPPED, HW_SIGHT_DOWN };
struct hw_sighting {
	enum hw_sight_state state;
	const char *cause; /* of blindness: hw_cause_name(); else "". Never freed */
	int64_t from_ms, to_ms;
};
/* Owes the stream this period. One that goes on may be told again, with its from_ms and a later to_ms. Some hundreds
 * wait while Redis is away; then the oldest are dropped. */
void hw_redis_sighting(struct hw_redis *r, const struct hw_sighting *e);
/* Whether nothing is owed there, or nothing of it can be written now. */
bool hw_redis_sightings_idle(const struct hw_redis *r);
/* Until when the run before has seen, by the mark as it was found at the first connect; 0: there was none. */
int64_t hw_redis_old_seen_ms(const struct hw_redis *r);

/* Each second: what a timer that found no memory has left undone. */
void hw_redis_tick(struct hw_redis *r);
/* hw_monitor_canaries(), which the mark keeps for the next run; and what the run before left, once the link was up. */
void hw_redis_keep_canaries(struct hw_redis *r, uint64_t canaries);
uint64_t hw_redis_old_canaries(const struct hw_redis *r);
/* Whether Redis has confirmed a mark of this run, or left that of the run which has our name, so that one that is
 * missing means that Redis was emptied. */
bool hw_redis_is_marked(const struct hw_redis *r);
/* Whether a mark is on its way: if Redis was emptied before, that is known when its answer is here. */
bool hw_redis_is_marking(const struct hw_redis *r);
/* Whether another run's mark, or an older one of ours, has been in its place since this was asked last: between the two
 * the store may have been emptied, and it was not told. */
bool hw_redis_doubts(struct hw_redis *r);
/*
 * Asks for the mark after all that was sent before, so that `fn` is called after on_emptied() for whatever had happened
 * by now. `marked`: it is there, or cannot be yet. `known` is false if the link was lost. `who`: `server` is the run id
 * of the Redis that answers (run_id.h), by INFO; "" if it does not tell. 0; or -ENOTCONN or -ENOMEM and fn is not
 * called. It is called by hw_redis_free() at the latest.
 */
typedef void hw_redis_fenced(void *arg, bool known, bool marked, const char *server);
int hw_redis_fence(struct hw_redis *r, bool who, hw_redis_fenced *fn, void *arg);
/* What Redis' clock showed when Redis told it last, and when that was; 0: it has not told it yet. */
int64_t hw_redis_clock(const struct hw_redis *r, struct hw_mono *at);
const struct hw_redis_stats *hw_redis_stats(const struct hw_redis *r);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The parts of the Redis code share this header and one struct hw_redis, which redis.c owns. Each part has a member of
 * the struct and changes only that member. For the members of other parts, it calls the functions below.
 *
 * When the connection is lost, hiredis calls all callbacks with NULL, and they only free their own memory. Then the
 * *_lost() function of each part restores its state.
 */
#ifndef HW_REDIS_INNER_H
#define HW_REDIS_INNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/monitor.h"
#include "inventory/entry.h"
#include "link/clock.h"
#include "link/eval.h"
#include "link/link.h"
#include "link/scripts.h"
#include "link/trouble.h"
#include "nodes/exclusive.h"
#include "redis/kept.h"
#include "redis/keys.h"
#include "redis/pending_writes.h"
#include "redis/redis.h"
#include "redis/script.h"
#include "redis/server_run_id.h"

#define HW_CALL_ITEMS       64
#define HW_CALL_BYTES       (256 * 1024) /* no item is added to a longer call */
#define HW_TRANSITION_CALLS 8            /* in flight, at most; likewise for the other kinds */
#define HW_REFRESH_CALLS    4
#define HW_SNAPSHOT_CALLS   2
#define HW_PASSED_OVER_MAX  1024 /* ring entries that are checked for one call, at most */
#define HW_TRANSITION_TRIES 16   /* the most calls of transitions that one pump tries to build */
#define HW_PLAIN_ITEMS      256  /* plain refreshes in one write */
#define HW_CALLS            (HW_TRANSITION_CALLS + HW_REFRESH_CALLS + HW_SNAPSHOT_CALLS)

#define HW_RETRY_MIN_MS 100
#define HW_RETRY_MAX_MS 1000 /* short, so that writes begin again within about a second after Redis works again */
/* When the retry delay is this long and Redis is a read-only replica, the connection is closed: the server's name
 * may lead to the new master by now. */
#define HW_REPLICA_MS   1000
#define HW_POISON_TRIES 5 /* a transition that failed alone this many times is given up */

/* Refreshes that are not urgent wait until this many are queued, or for this long. Redis then wakes once for many. The
 * core leaves each key at least a sixth of its TTL (hw_monitor_refresh_within_ms()), so a key outlives the wait. */
#define HW_GATHER_ITEMS 256
#define HW_GATHER_MS    250
_Static_assert(HW_GATHER_MS < HW_TTL_MIN_MS / 6, "no key expires while its refresh waits");

/* One of this many refreshes writes last_seen, if the device has no reported fields. */
#define HW_PLAIN_TURNS    16
#define HW_REFRESH_MAX_MS 3600000 /* a device is refreshed at least this often */

#define HW_SWEEP_EVERY_MS    50
#define HW_SWEEP_STEP_MIN    1000 /* devices per step: at least 20,000 devices a second */
#define HW_SWEEP_WAITING_MAX 4096 /* the sweep waits while more refreshes are queued */

/* A queue of indices of devices, each at most once. An entry stands for the device that has this index when the entry
 * is taken from the queue. */
struct hw_dues {
	uint32_t *at;
	uint32_t cap, head, len;
	uint8_t bit; /* the bit of this queue in hw_sink.noted */
};

/* Bits for each index of a device.
 *
 * FULL: since the device's last full refresh, only light or plain ones have followed. The next bits are valid only
 * with FULL: they show whether that refresh contained the fields ONCE and OWN_TIMEOUT, and, with FORM, this node's
 * `form`.
 *
 * AS_TRANSITION: the ring was full at the device's last transition, so the device's snapshot will be written as that
 * transition. */
enum {
	HW_NOTED_REFRESH = 1,
	HW_NOTED_SNAPSHOT = 2,
	HW_NOTED_IN_FLIGHT = 4,
	HW_NOTED_FULL = 8,
	HW_NOTED_ONCE = 16,
	HW_NOTED_OWN_TIMEOUT = 32,
	HW_NOTED_AS_TRANSITION = 64,
	HW_NOTED_FORM = 128,
	HW_NOTED_FIELDS = HW_NOTED_ONCE | HW_NOTED_OWN_TIMEOUT
};

enum hw_call_kind { HW_CALL_FREE, HW_CALL_TRANSITIONS, HW_CALL_REFRESH, HW_CALL_SNAPSHOT };

#define HW_HOLD(kind) (1U << (kind))
#define HW_HOLD_ALL   (HW_HOLD(HW_CALL_TRANSITIONS) | HW_HOLD(HW_CALL_REFRESH) | HW_HOLD(HW_CALL_SNAPSHOT))

struct hw_call {
	struct hw_redis *r;
	enum hw_call_kind kind;
	unsigned n;
	int64_t sent_ns;
	uint64_t end; /* HW_CALL_TRANSITIONS: the position in the ring after the last entry of the call */
	struct {
		struct hw_ref ref;
		uint64_t seq;
		uint64_t at;        /* HW_CALL_TRANSITIONS: position in the ring */
		bool stateless;     /* the item writes no device's state, so its success confirms no device's state */
		bool as_transition; /* HW_CALL_SNAPSHOT: the snapshot is written as this transition */
		struct hw_pending_write pending; /* of an `as_transition` item */
	} items[HW_CALL_ITEMS];
};

/* The arguments that the last items of a call have in common. */
struct hw_common {
	unsigned n; /* number of these items; 0: the next item begins a new group */
	char kind;
	size_t begin, at, len, count_at; /* positions in the bytes of the arguments: of the group, of its common
	                                    arguments, of its count */
	unsigned n_args;                 /* number of arguments before the group */
};

/* The values that the light refreshes in a call have in common. */
struct hw_light {
	unsigned n; /* 0: the next light refresh begins a new group */
	size_t count_at;
	int64_t ttl_ms, timeout_ms;
	const struct hw_group *group;
	const char *source;
	unsigned extra;
};

/* Plain refreshes that were sent in one write: a PEXPIRE for each device, answered in the same order. */
struct hw_plain_call {
	struct hw_redis *r;
	unsigned n, answered; /* n is 0: the slot is free */
	bool refused;         /* an answer was an error of Redis as a whole */
	uint32_t index[HW_PLAIN_ITEMS];
};

/* The fencing tokens of the call that is being built. */
struct hw_call_owner {
	unsigned n;
	struct hw_ownership at[HW_CALL_ITEMS];
	size_t letters_at, tokens_at;
	uint64_t epoch; /* of the item that was added last; 0: no cluster */
};

struct hw_sink {
	struct hw_pending_writes pending_writes;
	bool keeps; /* Sentinels are configured, so the master may change, and confirmed transitions are kept */
	struct hw_kept kept;
	/* transitions that are being sent again, and how many of them the new master lacked */
	uint32_t sent_again, lacking;
	struct hw_dues refresh, snapshot;
	uint8_t *noted; /* by device index, HW_NOTED_* */
	uint32_t n_noted;
	struct hw_eval eval;
	struct hw_common common;
	struct hw_light light;
	struct hw_call_owner owner;
	char *key; /* buffer for the name of a device's key */
	struct hw_call calls[HW_CALLS];
	struct hw_plain_call plain[HW_REFRESH_CALLS];
	unsigned in_flight[HW_CALL_SNAPSHOT + 1]; /* plain calls count as HW_CALL_REFRESH */
	bool rewind;        /* a transition has failed: when all answers are in, everything from the ring's head on
	                     * is sent again */
	unsigned held;      /* HW_HOLD() bits of the kinds of calls that wait for the timer `retry` */
	unsigned retry_ms;  /* the last delay; 0: no failure */
	uint64_t poison_at; /* position of the transition that last failed alone; poison_tries: how often it failed */
	unsigned poison_tries;
	int64_t poison_reported_ms;
	bool sweep;
	uint32_t sweep_at;
	bool comparing; /* a sweep runs, or refreshes and snapshots that it caused are queued */
	bool gathered;  /* the queued refreshes are sent without a further wait */
	bool unarmed;   /* `pump` could not be armed: hw_plan_tick() does */
	bool withheld;  /* by hw_redis_withhold() */
	struct event *pump, *retry, *sweep_timer, *gather;
};

/* Used by published.c: P of each partition. The P of a standalone monitor has index 0. */
struct hw_published {
	uint64_t value[HW_PARTITIONS];
	struct hw_partitions written; /* P was passed to hw_redis_write_published() */
	struct hw_partitions due;     /* Redis may lack this P */
	struct hw_partitions refused; /* Redis did not take it: another try in the next second */
	unsigned in_flight;
	bool has_strangers; /* the hash has a P of single partitions; a standalone monitor removes them with its first
	                       write */
	/* has_old: the outbox has entries of an earlier version. removes_old: the outbox is being read, to remove
	 * them */
	bool has_old, removes_old;
	int64_t reported_ms, unusable_ms; /* when a refused write, and a value that is not a P, were last reported */
};

struct hw_load {
	/* HW_LOAD_AGAIN: only the outbox is read again. This is necessary after a reconnect, because Redis may be a
	 * restored copy whose outbox lists clearings that the broker has acknowledged since. A second reading is also
	 * necessary for hw_redis_compare(), because another node may have left clearings pending. */
	enum { HW_LOAD_NONE, HW_LOAD_WANTED, HW_LOAD_STATES, HW_LOAD_OUTBOX, HW_LOAD_DONE, HW_LOAD_AGAIN } stage;
	char cursor[32];
	bool scanning;        /* a page is requested */
	unsigned waiting;     /* replies of devices that are awaited */
	unsigned reads;       /* queries for single devices that are in flight ... */
	unsigned again_reads; /* ... and how many of them read a device again */
	bool failed;          /* an error showed that Redis cannot serve now */
	bool next;            /* during AGAIN: a whole load follows */
	uint64_t devices, unusable;
	char first_unusable[HW_ID_MAX + 1]; /* id of the first unusable record */
	int64_t ahead_ms;                   /* how far Redis' clock is ahead of ours; 0 if it is not */
	bool unarmed;                       /* `again` could not be armed: hw_load_tick() starts it */
	struct event *again;
};

struct hw_sight_record {
	int64_t saw_ms;    /* until when this monitor has seen the fleet, in this run or the previous run; 0: never */
	int64_t old_ms;    /* as found at the first connect */
	int64_t newest_ms; /* at the first connect: the newest time until which any node had seen the fleet */
	bool searched;     /* the sight records of all nodes have been read */
	struct hw_canaries old_canaries;
	struct hw_canaries canaries; /* to be written */
	bool read;                   /* old_ms is valid */
	int64_t written_ms;          /* MS in the sight record that Redis confirmed last */
	bool written;                /* Redis has confirmed a sight record of this run */
	/* another run with our name has written a sight record, so this run did not write its own */
	bool left;
	/* the sight record that was found is old, or is another run's: this may be another store, or the store was
	 * emptied in between */
	bool doubted;
	bool sees; /* the monitor is not blind, and the load has ended */
	bool in_flight;
	int64_t asked_ms;             /* monotonic, when the sight record in flight was sent */
	int64_t sent_ms;              /* MS in the sight record in flight */
	bool sent_new;                /* the sight record in flight is written even if the store has none */
	int64_t stranger_reported_ms; /* when the other run was reported last */
	struct hw_eval eval;
	void (*then)(struct hw_redis *r); /* called once the sight record has been read */
};

/* watched.c: the clock of watching, as Redis last reported it. */
struct hw_watched {
	bool known;
	int64_t ms;
	struct hw_mono at;
	int64_t clock_ms; /* Redis' clock as last read, at `clock_at`; 0: not known */
	struct hw_mono clock_at;
};

#define HW_MONITOR_ENTRY_MAX 256
#define HW_MONITORS_DEAD     8

/* monitors.c */
struct hw_monitors {
	struct hw_exclusive exclusive;
	uint64_t count; /* number of renewals of this run's entry */
	uint64_t born;  /* BORN of this run's entry; 0: none yet */
	/* asked: when the last renewal was sent; renewed: when the last renewal with an answer was sent */
	struct hw_mono asked, renewed;
	bool in_flight, leaves, left;
	bool reported; /* the refusal of the entry has been reported */
	unsigned n_dead;
	struct {
		char run[17], entry[HW_MONITOR_ENTRY_MAX];
	} dead[HW_MONITORS_DEAD]; /* entries of ended runs, which the next renewal removes */
	hw_redis_monitors_seen *fn;
	struct hw_eval eval;
};

#define HW_REFUSED_SIGHT_RECORD HW_HOLD(HW_CALL_FREE)
#define HW_REFUSED_INVENTORY    (HW_HOLD(HW_CALL_SNAPSHOT) << 1)

/* The writes that Redis refused at the last attempt: HW_HOLD() bits of call kinds, HW_REFUSED_SIGHT_RECORD, or
 * HW_REFUSED_INVENTORY. */
struct hw_refusal {
	unsigned writes;
	enum hw_trouble kind;
	bool reported;
	bool of_inventory;       /* `text` names the inventory: nothing else was refused */
	int64_t of_inventory_ms; /* when such a text was reported last */
	struct hw_mono since;
	char text[HW_TROUBLE_TEXT + 64];
};

#define HW_HINTS_MAX 10000

/* parent_heard.c */
struct hw_hints {
	unsigned in_flight;
	bool groups_cleared;
	int64_t reported_ms;
};

#define HW_SIGHTINGS_MAX 1024

struct hw_sightings {
	struct hw_sighting waiting[HW_SIGHTINGS_MAX]; /* a ring; its first entry is in flight or is sent next */
	unsigned head, n;
	bool in_flight;
	unsigned pause_s, wait_s; /* after a refusal: the delay, and how much of it is left */
	int64_t reported_ms;
	uint64_t lost;
};

struct hw_redis {
	struct event_base *base;
	struct hw_redis_conf conf; /* its strings are copies */
	const struct hw_monitor *m;
	const struct hw_redis_ops *ops;
	void *arg;
	struct hw_keys keys;
	char *self; /* the channel on which the scripts announce this monitor's own writes; "": none */
	struct hw_redis_link link;
	struct hw_troubles troubles;
	struct hw_refusal refusal;
	struct hw_sink sink;
	struct hw_load load;
	struct hw_published published;
	struct hw_sight_record sight_record;
	struct hw_watched watched;
	struct hw_monitors monitors;
	struct hw_sightings sightings;
	struct hw_hints hints;
	struct hw_inventory *inventory; /* inventory.c; NULL: not started */
	struct hw_scripts scripts;
	bool up, was_up;
	char server[HW_SERVER_RUN_ID + 1]; /* hw_redis_server() */
	struct hw_mono down_since;
	int64_t started_wall_ms;
	char reported[512]; /* the last text of on_link() while down */
	struct hw_redis_stats *stats;
	hw_redis_nodes_seen *on_nodes; /* beside.c */
};

/* redis.c */
/* Returns the id that must be kept for a transition to `forgotten`, because the transition may be sent again when
 * the device's record no longer exists (pending_writes.h). NULL: no id is needed, or there is no memory. The caller
 * owns it. */
uint8_t *hw_redis_outlive(const struct hw_redis *r, const struct hw_transition *t);

/* refusal.c */
/* Reports an error reply, at most once per kind in HW_TROUBLE_EVERY_MS. Returns its kind. */
enum hw_trouble hw_refusal_trouble(struct hw_redis *r, const char *reply);
/* Reports a text if the last report, at *reported_ms, is long enough ago. Returns whether the text was reported. */
bool hw_refusal_log(struct hw_redis *r, int64_t *reported_ms, const char *text);
/* Called when Redis has refused all writes of a call with this error. Reports the error when the refusal begins, and
 * when the kind of error changes. Returns the kind. */
enum hw_trouble hw_refusal_begin(struct hw_redis *r, unsigned write, const char *reply);
/* Called when a write of this kind (HW_HOLD(), or HW_REFUSED_SIGHT_RECORD) has succeeded. */
void hw_refusal_end(struct hw_redis *r, unsigned write);

/* plan.c: when the sink acts */
/* Schedules the pump for the end of this turn of the loop. */
void hw_plan_pump(struct hw_redis *r);
/* Schedules the pump for the queued refreshes: at the end of this turn if enough have gathered, else when they have
 * waited for HW_GATHER_MS. */
void hw_plan_refreshes(struct hw_redis *r);
/* Called when calls of these kinds (HW_HOLD() bits) have failed. Calls of these kinds wait for the retry delay. */
void hw_plan_retry(struct hw_redis *r, unsigned kinds);
/* Starts a sweep, which compares every device with the store at a limited rate. A sweep that is running starts over. */
void hw_plan_sweep(struct hw_redis *r);
/* The link is up; `again`: not for the first time. */
void hw_plan_up(struct hw_redis *r, bool again);
/* Called each second: starts timers for which there was no memory before. */
void hw_plan_tick(struct hw_redis *r);

/* dues.c */
/* Makes room for the bits of this index in hw_sink.noted. Returns false if there is no memory. Every index in a queue
 * or in the ring has bits there. */
bool hw_dues_have_room(struct hw_redis *r, uint32_t index);
/* Makes the next refresh of each device a full one. */
void hw_dues_in_full(struct hw_redis *r);
/* Queues a device. Returns false if there is no memory, and starts a sweep, which visits the device. */
bool hw_dues_add(struct hw_redis *r, struct hw_dues *q, uint32_t index);
/* Takes the next queued device that exists and may be written. Returns NULL if there is none. */
const struct hw_device *hw_dues_take(struct hw_redis *r, struct hw_dues *q, bool snapshot, struct hw_ref *ref);

/* The fencing tokens of a call in a cluster (call_owner.c). For a standalone monitor, these functions add nothing. */
/* Begins a call: after its common arguments, and before its items and their keys. */
void hw_call_owner_begin(struct hw_redis *r);
/* Sets the fencing token of item `item`, which is about this device. Returns false if another node owns the device, or
 * if our epoch is not `epoch` any more (0: any epoch). */
bool hw_call_owner_add(struct hw_redis *r, unsigned item, const char *id, size_t len, uint64_t epoch);
/* Like hw_call_owner_add(), for an item about a whole partition, in a cluster. Returns false if another node owns the
 * partition. */
bool hw_call_owner_add_partition(struct hw_redis *r, unsigned item, unsigned partition);
/* All items have been added. */
void hw_call_owner_end(struct hw_redis *r);
/* Whether this node owns the device, and with which epoch. */
bool hw_call_owner_epoch(const struct hw_redis *r, const char *id, size_t len, uint64_t *epoch);
/* Whether an item was refused because Redis has a greater fencing token. If so, reports that token. Such an item is
 * not sent again. */
bool hw_call_owner_refused(struct hw_redis *r, const redisReply *item);
/* Reports that another node owns this device now. The pending writes of the device, up to `seq`, are dropped. */
void hw_call_owner_drop(struct hw_redis *r, struct hw_ref ref, uint64_t seq);

/* call.c */
/* Begins a call. The caller has checked that there may be one more call of this kind in flight. */
struct hw_call *hw_call_new(struct hw_redis *r, enum hw_call_kind kind);
/* Sends the call in the sink's `eval`. Returns false if it could not be sent; it is then undone. */
bool hw_call_send(struct hw_redis *r, struct hw_call *c, enum hw_script script, redisCallbackFn *fn);
/* Puts the call's items back into their queue or ring, so that they are sent again. */
void hw_call_undo(struct hw_redis *r, struct hw_call *c);
/* Queues a full refresh of a device. The refresh does not wait for others. */
bool hw_call_in_full(struct hw_redis *r, uint32_t index);
/* Returns a free slot. The caller has checked that there may be one more call of refreshes in flight. */
struct hw_plain_call *hw_plain_call_new(struct hw_redis *r);
/* Sends the plain refresh of a device. Returns false if it could not be sent; it is then queued again. */
bool hw_plain_call_send(struct hw_plain_call *p, const struct hw_device *d, uint32_t index);
/* The answers of the call are lost: its devices are queued again. */
void hw_plain_call_undo(struct hw_plain_call *p);
/* Queues an item of a refresh or a snapshot again. */
void hw_call_put_back(struct hw_redis *r, const struct hw_call *c, unsigned i);

/* Each function builds and sends one call (calls.c). Returns false if there is nothing to send, or if the call could
 * not be sent. */
bool hw_call_transitions(struct hw_redis *r);
bool hw_call_refreshes(struct hw_redis *r);
bool hw_call_snapshots(struct hw_redis *r);

/* answers.c */
void hw_call_on_transitions(redisAsyncContext *ac, void *answer, void *arg);
void hw_call_on_refreshes(redisAsyncContext *ac, void *answer, void *arg);
void hw_call_on_snapshots(redisAsyncContext *ac, void *answer, void *arg);
void hw_call_on_plain(redisAsyncContext *ac, void *answer, void *arg);

/* sink.c */
int hw_sink_init(struct hw_redis *r);
void hw_sink_fini(struct hw_redis *r);
void hw_sink_lost(struct hw_redis *r);
/* Called when the connection is up again and no call is in flight. Puts the kept transitions before all others. */
void hw_sink_send_again(struct hw_redis *r);
/* Called when Redis has confirmed all entries of the ring that are before this position. */
void hw_sink_confirm(struct hw_redis *r, uint64_t place);
/* Called when Redis has confirmed a transition that was written from a snapshot. Keeps that transition. */
void hw_sink_keep(struct hw_redis *r, const struct hw_pending_write *e);

/* items.c. A function hw_item_...() without a result appends an item and its keys to the call that is being built. */
/* The name of a device, and its labels as a JSON object. */
struct hw_description {
	char name[HW_ENTRY_NAME_MAX + 1]; /* "": none */
	size_t len;                       /* of `labels`; 0: none */
	char labels[HW_ENTRY_JSON_MAX];
};

/* `g`: the group of the device, or the group in which the id is expected. */
void hw_describe(const struct hw_redis *r, struct hw_id id, const struct hw_group *g, struct hw_description *out);

/* Appends a transition. `kind`: "E" adds an entry to the event stream, "W" (a snapshot) does not. */
void hw_item_write(struct hw_redis *r, const char *kind, const struct hw_device *d, const struct hw_transition *t);
/* Appends a snapshot. With `as_transition`, it is written as a transition, which is then stored in `*pending`. */
void hw_item_snapshot(struct hw_redis *r, const struct hw_device *d, struct hw_ref ref, struct hw_now now,
                      bool as_transition, struct hw_pending_write *pending);
/* Whether Redis has all values of the device except last_seen and the TTL. */
bool hw_item_is_known(const struct hw_redis *r, const struct hw_device *d, uint32_t index);
/* How long the device's connected key lives after a refresh. */
int64_t hw_item_ttl_ms(const struct hw_redis *r, const struct hw_device *d);
/* Whether the device's refresh would be plain: it only extends the TTL of the connected key. */
bool hw_item_is_plain(const struct hw_redis *r, const struct hw_device *d, uint32_t index, struct hw_now now);
/* Appends a refresh that is not plain. */
void hw_item_refresh(struct hw_redis *r, const struct hw_device *d, uint32_t index, struct hw_now now);
void hw_item_acknowledge(struct hw_redis *r, const struct hw_pending_write *e);
/* Appends the transition of a forgotten device, whose record no longer exists. */
void hw_item_forgotten(struct hw_redis *r, const struct hw_pending_write *e);

/* load.c */
int hw_load_init(struct hw_redis *r);
void hw_load_fini(struct hw_redis *r);
void hw_load_up(struct hw_redis *r);
/* Requests Redis' clock before devices or entries, because their times are compared with it. Returns 0 or -errno. */
int hw_load_ask_clock(struct hw_redis *r);
void hw_load_lost(struct hw_redis *r);
void hw_load_tick(struct hw_redis *r);
/* Whether a load was requested and has not ended. */
bool hw_load_pending(const struct hw_redis *r);

/* sightings.c */
/* Sends the next entry unless one is in flight. */
void hw_sightings_send(struct hw_redis *r);
/* Called each second. */
void hw_sightings_tick(struct hw_redis *r);
void hw_sightings_lost(struct hw_redis *r);

/* published.c */
/* Sends each P that is due. Called before transitions are sent. */
void hw_published_send(struct hw_redis *r);
void hw_published_lost(struct hw_redis *r);
void hw_published_tick(struct hw_redis *r);
/* Redis was emptied. */
void hw_published_again(struct hw_redis *r);

/* parent_heard.c */
void hw_hints_lost(struct hw_redis *r);

/* inventory.c */
void hw_inventory_up(struct hw_redis *r);
void hw_inventory_lost(struct hw_redis *r);
void hw_inventory_tick(struct hw_redis *r);
/* Whether the inventory cannot be read or its unseen ids cannot be written, as far as is known. */
bool hw_inventory_is_refused(const struct hw_redis *r);
void hw_inventory_fini(struct hw_redis *r);

/* sight_record.c */
/* Reads the sight record before this run writes one; then calls `then`. */
void hw_sight_record_read(struct hw_redis *r, void (*then)(struct hw_redis *r));
void hw_sight_record_lost(struct hw_redis *r);
/* Returns the time until which the writer of a sight record has seen the fleet; 0: there is none. */
int64_t hw_sight_record_ms(const struct hw_redis *r, const redisReply *reply);

/* monitors.c */
void hw_monitors_lost(struct hw_redis *r);

/* watched.c */
#define HW_WATCHED_MAX 48
/* Requests the clock of watching. Called before the load. Returns 0 or -errno. */
int hw_watched_read(struct hw_redis *r);
/* Sets the clock to `ms`; negative: not known. */
void hw_watched_set(struct hw_redis *r, struct hw_now now, int64_t ms);
/* Takes Redis' clock from the answer to a command that was sent at `asked_ms` (monotonic). Ignores the answer if it
 * took too long. */
void hw_watched_compare(struct hw_redis *r, struct hw_now now, int64_t asked_ms, int64_t redis_ms);
void hw_watched_clock(struct hw_redis *r, struct hw_now now, int64_t redis_ms);
/* Writes the field `watched` of an offline device. Returns its length; 0 if the clock is not known or the device is not
 * offline. */
int hw_watched_print(const struct hw_redis *r, const struct hw_device *d, uint64_t seq, char text[HW_WATCHED_MAX]);
/* Parses a field `watched`. `seq`: the seq in the same hash. Returns a value for struct hw_stored.gone_ms. */
int64_t hw_watched_gone_ms(const struct hw_redis *r, const char *text, size_t len, uint64_t seq);

/* Reads the sight records of all nodes, then calls the `then` of hw_sight_record_read(), unless the connection is
 * lost (sight_records.c). */
void hw_sight_records_read(struct hw_redis *r);

#endif

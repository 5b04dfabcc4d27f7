/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the Redis side share: one struct hw_redis, owned by redis.c, of which each part has its own member.
 * A part changes only its own, and speaks to the others through the functions below.
 *
 * hiredis calls back with NULL when the link goes: callbacks then release what is theirs and touch nothing else; each
 * part's *_lost() comes afterwards and puts it right.
 */
#ifndef HW_REDIS_INNER_H
#define HW_REDIS_INNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/monitor.h"
#include "redis/edges.h"
#include "redis/keys.h"
#include "redis/link.h"
#include "redis/redis.h"
#include "redis/script.h"
#include "redis/trouble.h"

#define HW_CALL_ITEMS    64
#define HW_CALL_BYTES    (256 * 1024) /* a call is closed once it is longer */
#define HW_EDGE_CALLS    8            /* in flight, of each kind */
#define HW_REFRESH_CALLS 4
#define HW_REWRITE_CALLS 2
#define HW_CALLS         (HW_EDGE_CALLS + HW_REFRESH_CALLS + HW_REWRITE_CALLS)

#define HW_RETRY_MIN_MS 100
#define HW_RETRY_MAX_MS 1000 /* what it refused is written within about a second of its change of mind */
#define HW_REPLICA_MS   1000 /* once the retries are so far apart, a replica is left for whoever its name means now */
#define HW_POISON_TRIES 5    /* so often may one edge fail for its own sake before it is given up */

#define HW_SWEEP_EVERY_MS 50
#define HW_SWEEP_BITE     1000 /* 20,000 devices a second */
#define HW_SWEEP_MARK     4096 /* as many refreshes may wait before the sweep does */

#define HW_STATUS_PAYLOAD_MAX 16384

/* A queue of devices by index, each at most once: whoever has that index when its turn comes is meant. */
struct hw_dues {
	uint32_t *at;
	uint32_t cap, head, len;
	uint8_t bit; /* in hw_sink.marks */
};

/* FULL: a full refresh was the last that was sent of the device, or light ones behind it; then ONCE and OWN_TIMEOUT say
 * whether it had these fields. */
enum {
	HW_MARK_REFRESH = 1,
	HW_MARK_REWRITE = 2,
	HW_MARK_IN_FLIGHT = 4,
	HW_MARK_FULL = 8,
	HW_MARK_ONCE = 16,
	HW_MARK_OWN_TIMEOUT = 32
};

enum hw_call_kind { HW_CALL_FREE, HW_CALL_EDGES, HW_CALL_REFRESH, HW_CALL_REWRITE };

#define HW_HOLD(kind) (1U << (kind))
#define HW_HOLD_ALL   (HW_HOLD(HW_CALL_EDGES) | HW_HOLD(HW_CALL_REFRESH) | HW_HOLD(HW_CALL_REWRITE))

struct hw_call {
	struct hw_redis *r;
	enum hw_call_kind kind;
	unsigned n;
	int64_t sent_ns;
	uint64_t end; /* HW_CALL_EDGES: the ring is sent up to here */
	struct {
		struct hw_ref ref;
		uint64_t seq;
		uint64_t at;      /* HW_CALL_EDGES: its place in the ring */
		bool acknowledge; /* no device's state: nothing is confirmed */
	} items[HW_CALL_ITEMS];
};

/* What the light refreshes that are being put into a call have in common. */
struct hw_light {
	unsigned n; /* 0: the next one begins anew */
	size_t count_at;
	int64_t ttl_ms, timeout_ms;
	const struct hw_group *group;
	const char *source;
	unsigned extra;
};

struct hw_sink {
	struct hw_edges edges;
	struct hw_dues refresh, rewrite;
	uint8_t *marks; /* by device index, HW_MARK_* */
	uint32_t n_marks;
	struct hw_eval eval;
	struct hw_light light;
	char *key; /* for a device's key name */
	struct hw_call calls[HW_CALLS];
	unsigned in_flight[HW_CALL_REWRITE + 1];
	bool rewind;        /* an edge has failed: send from the head again once every answer is in */
	unsigned held;      /* calls that wait for `retry`: bits, HW_HOLD() */
	unsigned retry_ms;  /* the last delay; 0: all is well */
	uint64_t poison_at; /* the edge that failed last for its own sake, and how often */
	unsigned poison_tries;
	bool sweep;
	uint32_t sweep_at;
	struct event *pump, *retry, *sweep_timer;
};

struct hw_load {
	/* AGAIN: after the load, the outbox of a Redis that is back; it may be older than what was acknowledged. */
	enum { HW_LOAD_NONE, HW_LOAD_WANTED, HW_LOAD_STATES, HW_LOAD_OUTBOX, HW_LOAD_DONE, HW_LOAD_AGAIN } stage;
	char cursor[32];
	bool scanning;    /* a page is asked for */
	unsigned waiting; /* devices' replies */
	bool failed;      /* something said that Redis cannot serve */
	uint64_t devices, unusable;
	struct event *again;
};

struct hw_mark {
	int64_t saw_ms;     /* until when this monitor, or the run before it, has seen; 0: never */
	int64_t old_ms;     /* as found at the first connect */
	bool read;          /* old_ms has been */
	int64_t written_ms; /* in the mark that Redis confirmed last */
	bool written;       /* Redis has confirmed a mark of this run */
	bool in_flight;
	int64_t sent_ms; /* in the mark that is in flight */
};

struct hw_redis {
	struct event_base *base;
	struct hw_redis_conf conf; /* its strings are copies */
	const struct hw_monitor *m;
	const struct hw_redis_ops *ops;
	void *arg;
	struct hw_keys keys;
	char *self; /* the scripts' channel; "": none */
	struct hw_redis_link link;
	struct hw_troubles troubles;
	struct hw_sink sink;
	struct hw_load load;
	struct hw_mark mark;
	char sha[HW_SCRIPTS][HW_SHA_LEN + 1];
	unsigned scripts_awaited; /* replies to SCRIPT LOAD; 0: none in flight */
	bool up, was_up;
	struct hw_mono down_since;
	int64_t started_wall_ms;
	char told[512]; /* what on_link() said last while down */
	struct hw_redis_stats *stats;
};

/* redis.c */
struct hw_now hw_redis_now(void);
/* Tells of an error reply if its turn has come; returns its kind. */
enum hw_trouble hw_redis_trouble(struct hw_redis *r, const char *reply);
/* Tells of something else. */
void hw_redis_tell(struct hw_redis *r, enum hw_trouble kind, const char *text);
/* Loads the scripts again; hw_sink_scripts_loaded() follows. */
void hw_redis_load_scripts(struct hw_redis *r);
/* What the handshake waited for is there: the link is usable. */
void hw_redis_settled(struct hw_redis *r);

/* sink.c, calls.c, answers.c */
int hw_sink_init(struct hw_redis *r);
void hw_sink_fini(struct hw_redis *r);
void hw_sink_up(struct hw_redis *r, bool again);
void hw_sink_lost(struct hw_redis *r);
void hw_sink_scripts_loaded(struct hw_redis *r);
/* Pumps at the end of this turn of the loop. */
void hw_sink_wake(struct hw_redis *r);
/* Calls of these kinds fare badly (bits, HW_HOLD()): none of them is sent for a while. */
void hw_sink_hold(struct hw_redis *r, unsigned kinds);
/* Compares every device with the store, paced; over again if it is under way. */
void hw_sink_sweep(struct hw_redis *r);
/* Whether there is room for this device's marks now: every index that is on a queue or the ring has it. */
bool hw_sink_has_marks(struct hw_redis *r, uint32_t index);
/* Queues a device; false without memory: a sweep will find it then. */
bool hw_sink_due(struct hw_redis *r, struct hw_dues *q, uint32_t index);
bool hw_sink_idle(const struct hw_redis *r);
/* Build and send one call each; false if there was nothing to send, or it could not be. */
bool hw_call_edges(struct hw_redis *r);
bool hw_call_refreshes(struct hw_redis *r);
bool hw_call_rewrites(struct hw_redis *r);
/* Puts what was in flight back where it came from. */
void hw_call_undo(struct hw_redis *r, struct hw_call *c);
void hw_call_on_edges(redisAsyncContext *ac, void *answer, void *arg);
void hw_call_on_refreshes(redisAsyncContext *ac, void *answer, void *arg);
void hw_call_on_rewrites(redisAsyncContext *ac, void *answer, void *arg);

/* items.c: append one item and its keys to the call under construction */
void hw_item_edge(struct hw_redis *r, const struct hw_device *d, const struct hw_transition *t);
void hw_item_rewrite(struct hw_redis *r, const struct hw_device *d, struct hw_now now);
void hw_item_refresh(struct hw_redis *r, const struct hw_device *d, uint32_t index, struct hw_now now);
void hw_item_acknowledge(struct hw_redis *r, const struct hw_edge *e);

/* load.c */
int hw_load_init(struct hw_redis *r);
void hw_load_fini(struct hw_redis *r);
void hw_load_up(struct hw_redis *r);
void hw_load_lost(struct hw_redis *r);
/* Whether a load was asked for and has not ended. */
bool hw_load_pending(const struct hw_redis *r);

/* mark.c */
/* Reads the mark before it is ever written; hw_redis_settled() follows. */
void hw_mark_read(struct hw_redis *r);
void hw_mark_lost(struct hw_redis *r);
void hw_mark_seen(struct hw_redis *r, struct hw_now now, bool blind);

#endif

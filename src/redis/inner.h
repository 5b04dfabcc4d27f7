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
#include "link/clock.h"
#include "link/eval.h"
#include "link/link.h"
#include "link/scripts.h"
#include "link/trouble.h"
#include "nodes/exclusive.h"
#include "redis/edges.h"
#include "redis/kept.h"
#include "redis/keys.h"
#include "redis/redis.h"
#include "redis/script.h"

#define HW_CALL_ITEMS    64
#define HW_CALL_BYTES    (256 * 1024) /* a call is closed once it is longer */
#define HW_EDGE_CALLS    8            /* in flight, of each kind */
#define HW_REFRESH_CALLS 4
#define HW_REWRITE_CALLS 2
#define HW_EDGE_LOOKS    1024 /* entries of the ring that are passed over for a call; and calls so tried in one go */
#define HW_EDGE_TRIES    16
#define HW_CALLS         (HW_EDGE_CALLS + HW_REFRESH_CALLS + HW_REWRITE_CALLS)

#define HW_RETRY_MIN_MS 100
#define HW_RETRY_MAX_MS 1000 /* what it refused is written within about a second of its change of mind */
#define HW_REPLICA_MS   1000 /* once the retries are so far apart, a replica is left for whoever its name means now */
#define HW_POISON_TRIES 5    /* so often may one edge fail for its own sake before it is given up */

#define HW_PLAIN_TURNS    16      /* of so many refreshes of a device that reports nothing one has its last_seen */
#define HW_REFRESH_MAX_MS 3600000 /* how often one is refreshed at least */

#define HW_SWEEP_EVERY_MS 50
#define HW_SWEEP_BITE     1000 /* 20,000 devices a second at least */
#define HW_SWEEP_MARK     4096 /* as many refreshes may wait before the sweep does */

#define HW_STATUS_PAYLOAD_MAX 16384

/* A queue of devices by index, each at most once: whoever has that index when its turn comes is meant. */
struct hw_dues {
	uint32_t *at;
	uint32_t cap, head, len;
	uint8_t bit; /* in hw_sink.marks */
};

/* FULL: a full refresh was the last that was sent of the device, or light ones behind it; then ONCE and OWN_TIMEOUT say
 * whether it had these fields, and FORM whether `form` was among those that were sent, and this node's. UNTOLD: its
 * last edge found no room in the ring, so its rewrite is that edge. */
enum {
	HW_MARK_REFRESH = 1,
	HW_MARK_REWRITE = 2,
	HW_MARK_IN_FLIGHT = 4,
	HW_MARK_FULL = 8,
	HW_MARK_ONCE = 16,
	HW_MARK_OWN_TIMEOUT = 32,
	HW_MARK_UNTOLD = 64,
	HW_MARK_FORM = 128,
	HW_MARKS_FIELDS = HW_MARK_ONCE | HW_MARK_OWN_TIMEOUT
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
		uint64_t at;         /* HW_CALL_EDGES: its place in the ring */
		bool stateless;      /* no device's state: nothing is confirmed */
		bool untold;         /* HW_CALL_REWRITE: it is an edge, */
		struct hw_edge edge; /* ... this one */
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

/* The same of plain ones. */
struct hw_plain {
	unsigned n;
	size_t count_at;
	int64_t ttl_ms;
};

/* The tokens of the call that is being put together. */
struct hw_tokens {
	unsigned n;
	struct hw_ownership at[HW_CALL_ITEMS];
	size_t letters_at, tokens_at;
	uint64_t epoch; /* of the item that was added last; 0: there are no several nodes */
};

struct hw_sink {
	struct hw_edges edges;
	bool keeps; /* Redis' master may change: edges are kept once they are confirmed */
	struct hw_kept kept;
	uint32_t sent_again, lacking; /* of what is being sent again: all, and those that were not there */
	struct hw_dues refresh, rewrite;
	uint8_t *marks; /* by device index, HW_MARK_* */
	uint32_t n_marks;
	struct hw_eval eval;
	struct hw_light light;
	struct hw_plain plain;
	struct hw_tokens tokens;
	char *key; /* for a device's key name */
	struct hw_call calls[HW_CALLS];
	unsigned in_flight[HW_CALL_REWRITE + 1];
	bool rewind;        /* an edge has failed: send from the head again once every answer is in */
	unsigned held;      /* calls that wait for `retry`: bits, HW_HOLD() */
	unsigned retry_ms;  /* the last delay; 0: all is well */
	uint64_t poison_at; /* the edge that failed last for its own sake, and how often */
	unsigned poison_tries;
	int64_t poison_told_ms;
	bool sweep;
	uint32_t sweep_at;
	bool comparing; /* since the sweep began until after its end nothing waits for its turn */
	bool unarmed;   /* `pump` could not be armed: hw_plan_tick() pumps */
	struct event *pump, *retry, *sweep_timer;
};

struct hw_load {
	/* AGAIN: after the load, the outbox of a Redis that is back; it may be older than what was acknowledged. */
	enum { HW_LOAD_NONE, HW_LOAD_WANTED, HW_LOAD_STATES, HW_LOAD_OUTBOX, HW_LOAD_DONE, HW_LOAD_AGAIN } stage;
	char cursor[32];
	bool scanning;    /* a page is asked for */
	unsigned waiting; /* devices' replies */
	unsigned looks;   /* at devices that are known by hearsay, under way */
	bool failed;      /* something said that Redis cannot serve */
	bool next;        /* during AGAIN: all is to be read after it */
	uint64_t devices, unusable;
	char first_unusable[HW_ID_MAX + 1]; /* the id of the first that is unusable */
	int64_t ahead_ms;                   /* how far Redis' clock is ahead of ours; 0 if it is behind */
	bool unarmed;                       /* `again` could not be armed: hw_load_tick() begins */
	struct event *again;
};

struct hw_mark {
	int64_t saw_ms;    /* until when this monitor, or the run before it, has seen; 0: never */
	int64_t old_ms;    /* as found at the first connect */
	int64_t newest_ms; /* until when any node had seen then */
	bool searched;     /* all nodes' marks have been looked for */
	uint64_t old_canaries;
	uint64_t canaries;  /* to be written */
	bool read;          /* old_ms has been */
	int64_t written_ms; /* in the mark that Redis confirmed last */
	bool written;       /* Redis has confirmed a mark of this run */
	bool left;          /* ... or has left that of another one, which has our name */
	bool doubted; /* what was in its place was another's, or older: the store may have been another meanwhile */
	bool sees;    /* it is written for a monitor that sees */
	bool in_flight;
	int64_t asked_ms;         /* monotonic, when that was sent */
	int64_t sent_ms;          /* in the mark that is in flight */
	bool sent_new;            /* ... which may be put where there is none */
	int64_t stranger_told_ms; /* when it was told that another run writes it */
	struct hw_eval eval;
	void (*then)(struct hw_redis *r); /* what the reading of the mark was for */
};

/* watched.c: the clock of watching, at the last answer of Redis. */
struct hw_watched {
	bool known;
	int64_t ms;
	struct hw_mono at;
	int64_t clock_ms; /* what Redis' clock showed last; 0: not known */
	struct hw_mono clock_at;
};

#define HW_MONITOR_ENTRY_MAX 256
#define HW_MONITORS_DEAD     8

/* monitors.c */
struct hw_monitors {
	struct hw_exclusive exclusive;
	uint64_t count;                /* of the renewals */
	uint64_t born;                 /* as this run was entered; 0: not yet */
	struct hw_mono asked, renewed; /* the last renewal was sent; the last that was answered was sent */
	bool in_flight, leaves, left;
	bool told; /* that Redis refuses the entry */
	unsigned n_dead;
	struct {
		char run[17], entry[HW_MONITOR_ENTRY_MAX];
	} dead[HW_MONITORS_DEAD]; /* to be removed by the next renewal */
	hw_redis_monitors_seen *fn;
	struct hw_eval eval;
};

#define HW_REFUSED_MARK HW_HOLD(HW_CALL_FREE)

/* Which writes Redis refused when they were tried last: bits, HW_HOLD() of the kind of call, or HW_REFUSED_MARK. */
struct hw_refusal {
	unsigned writes;
	enum hw_trouble kind;
	bool told;
	struct hw_mono since;
	char text[HW_TROUBLE_TEXT + 32];
};

#define HW_SIGHTINGS_MAX 1024

struct hw_sightings {
	struct hw_sighting waiting[HW_SIGHTINGS_MAX]; /* a ring; the first is in flight, or the next to be sent */
	unsigned head, n;
	bool in_flight;
	unsigned pause_s, wait_s; /* after a refusal: how long it waits, and still has to */
	int64_t told_ms;
	uint64_t lost;
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
	struct hw_refusal refusal;
	struct hw_sink sink;
	struct hw_load load;
	struct hw_mark mark;
	struct hw_watched watched;
	struct hw_monitors monitors;
	struct hw_sightings sightings;
	struct hw_scripts scripts;
	bool up, was_up;
	struct hw_mono down_since;
	int64_t started_wall_ms;
	char told[512]; /* what on_link() said last while down */
	struct hw_redis_stats *stats;
	hw_redis_nodes_seen *on_nodes; /* beside.c */
};

/* redis.c */
/* The id of what is sent again of a device that was forgotten (edges.h): all that is left of it then. NULL: it needs
 * none, or there is no memory. The caller owns it. */
uint8_t *hw_redis_outlive(const struct hw_redis *r, const struct hw_transition *t);

/* refusal.c */
/* Tells of an error reply if its turn has come; returns its kind. */
enum hw_trouble hw_refusal_trouble(struct hw_redis *r, const char *reply);
/* Tells of something, if its turn has come, and returns whether it had. `told_ms`: when it was told of last. */
bool hw_refusal_tell(struct hw_redis *r, int64_t *told_ms, const char *text);
/* Redis has refused a write as a whole, with this error reply: told when it begins and when its kind changes. Returns
 * the error's kind. */
enum hw_trouble hw_refusal_begin(struct hw_redis *r, unsigned write, const char *reply);
/* A write of this kind has succeeded. */
void hw_refusal_end(struct hw_redis *r, unsigned write);

/* plan.c: when the sink acts */
/* It pumps at the end of this turn of the loop. */
void hw_plan_pump(struct hw_redis *r);
/* Calls of these kinds fare badly (bits, HW_HOLD()): none of them is sent for a while. */
void hw_plan_retry(struct hw_redis *r, unsigned kinds);
/* It compares every device with the store, paced; over again if that is under way. */
void hw_plan_sweep(struct hw_redis *r);
/* The link is up, `again`: it was before. */
void hw_plan_up(struct hw_redis *r, bool again);
/* Each second: what a timer that found no memory has left undone; hw_load_tick() likewise. */
void hw_plan_tick(struct hw_redis *r);

/* dues.c */
/* Whether there is room for this device's marks now: every index that is on a queue or the ring has it. */
bool hw_dues_have_marks(struct hw_redis *r, uint32_t index);
/* The next refresh of each device is a full one. */
void hw_dues_in_full(struct hw_redis *r);
/* Queues a device; false without memory: a sweep will find it then. */
bool hw_dues_add(struct hw_redis *r, struct hw_dues *q, uint32_t index);
/* Takes the next device on a queue that is there and whose state the store is to know; NULL if there is none. */
const struct hw_device *hw_dues_take(struct hw_redis *r, struct hw_dues *q, bool rewrite, struct hw_ref *ref);

/* tokens.c: what one of several nodes says of itself with each call; nothing of it is done by a monitor by itself */
/* The call under construction begins: behind what it has in common, before its items and their keys. */
void hw_tokens_begin(struct hw_redis *r);
/* Item `item` is about this device: false if it is not ours to write, or no longer with this epoch (0: any). */
bool hw_tokens_add(struct hw_redis *r, unsigned item, const char *id, size_t len, uint64_t epoch);
/* All items are in it. */
void hw_tokens_end(struct hw_redis *r);
/* Whether we own this device, and the epoch with which. */
bool hw_tokens_epoch(const struct hw_redis *r, const char *id, size_t len, uint64_t *epoch);
/* Whether an item was refused because another node is newer, which is then told: it is not to be sent again. */
bool hw_tokens_refused(struct hw_redis *r, const redisReply *item);
/* What was owed of this device as of `seq` is another node's: it is told. */
void hw_tokens_drop(struct hw_redis *r, struct hw_ref ref, uint64_t seq);

/* call.c */
/* Begins one. There is room for it while fewer than are allowed of its kind are in flight. */
struct hw_call *hw_call_new(struct hw_redis *r, enum hw_call_kind kind);
/* Sends it, as the sink's `eval` has it. One that could not be sent has not happened: false, and it is undone. */
bool hw_call_send(struct hw_redis *r, struct hw_call *c, enum hw_script script, redisCallbackFn *fn);
/* Puts what was in flight back where it came from. */
void hw_call_undo(struct hw_redis *r, struct hw_call *c);
/* Owes again what an item of a refresh or rewrite was to write. */
void hw_call_put_back(struct hw_redis *r, const struct hw_call *c, unsigned i);

/* calls.c: build and send one call each; false if there was nothing to send, or it could not be */
bool hw_call_edges(struct hw_redis *r);
bool hw_call_refreshes(struct hw_redis *r);
bool hw_call_rewrites(struct hw_redis *r);

/* answers.c */
void hw_call_on_edges(redisAsyncContext *ac, void *answer, void *arg);
void hw_call_on_refreshes(redisAsyncContext *ac, void *answer, void *arg);
void hw_call_on_rewrites(redisAsyncContext *ac, void *answer, void *arg);

/* sink.c */
int hw_sink_init(struct hw_redis *r);
void hw_sink_fini(struct hw_redis *r);
void hw_sink_lost(struct hw_redis *r);
/* The link is up again, and nothing is in flight: what another master may not have got is sent again first. */
void hw_sink_send_again(struct hw_redis *r);
/* All before this place in the ring is confirmed. */
void hw_sink_confirm(struct hw_redis *r, uint64_t place);
/* So is an edge that was in no ring. */
void hw_sink_keep(struct hw_redis *r, const struct hw_edge *e);

/* items.c: append one item and its keys to the call under construction */
/* A transition, as `kind` "E" (an edge, with an entry in the stream) or "W" (a rewrite). `payload`: the outbox gets the
 * device's status. */
void hw_item_write(struct hw_redis *r, const char *kind, const struct hw_device *d, const struct hw_transition *t,
                   bool payload);
/* `untold`: as the edge that it is, which is left in `edge`. */
void hw_item_rewrite(struct hw_redis *r, const struct hw_device *d, struct hw_ref ref, struct hw_now now, bool untold,
                     struct hw_edge *edge);
/* Whether a refresh of it would be a plain one: that its key lives on is all. */
bool hw_item_is_plain(const struct hw_redis *r, const struct hw_device *d, uint32_t index, struct hw_now now);
void hw_item_refresh(struct hw_redis *r, const struct hw_device *d, uint32_t index, struct hw_now now);
void hw_item_acknowledge(struct hw_redis *r, const struct hw_edge *e);
/* That a device was forgotten, of which nothing but this edge is left. */
void hw_item_forgotten(struct hw_redis *r, const struct hw_edge *e);

/* load.c */
int hw_load_init(struct hw_redis *r);
void hw_load_fini(struct hw_redis *r);
void hw_load_up(struct hw_redis *r);
void hw_load_lost(struct hw_redis *r);
void hw_load_tick(struct hw_redis *r);
/* Whether a load was asked for and has not ended. */
bool hw_load_pending(const struct hw_redis *r);

/* sightings.c */
/* Sends the next one if none is in flight. */
void hw_sightings_send(struct hw_redis *r);
/* Each second. */
void hw_sightings_tick(struct hw_redis *r);
void hw_sightings_lost(struct hw_redis *r);

/* mark.c */
/* Reads the mark before it is ever written; `then` is called when it is here. */
void hw_mark_read(struct hw_redis *r, void (*then)(struct hw_redis *r));
void hw_mark_lost(struct hw_redis *r);
/* Until when its writer has seen, as a mark says it; 0: it says nothing. */
int64_t hw_mark_ms(const struct hw_redis *r, const redisReply *reply);

/* monitors.c */
void hw_monitors_lost(struct hw_redis *r);

/* watched.c */
#define HW_WATCHED_MAX 48
/* Reads the clock of watching, before anything is loaded. 0 or -errno. */
int hw_watched_read(struct hw_redis *r);
/* The clock shows `ms`; negative: it is not known. */
void hw_watched_set(struct hw_redis *r, struct hw_now now, int64_t ms);
/* What the time of Redis was, by an answer to what was asked at `asked_ms` (monotonic). */
void hw_watched_compare(struct hw_redis *r, struct hw_now now, int64_t asked_ms, int64_t redis_ms);
void hw_watched_clock(struct hw_redis *r, struct hw_now now, int64_t redis_ms);
/* Writes the field `watched` of an offline device; returns its length, or 0: it is not known, or it is not offline. */
int hw_watched_print(const struct hw_redis *r, const struct hw_device *d, uint64_t seq, char text[HW_WATCHED_MAX]);
/* What such a field says of a device whose hash has this seq: struct hw_stored.gone_ms. */
int64_t hw_watched_gone_ms(const struct hw_redis *r, const char *text, size_t len, uint64_t seq);

/* marks.c: looks for all nodes' marks, and calls what hw_mark_read() was told to, unless the link is lost first */
void hw_marks_read(struct hw_redis *r);

#endif

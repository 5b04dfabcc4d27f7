/* SPDX-License-Identifier: MIT */
/*
 * The registry: from a device's id to its record, and back.
 *
 * Records are 64 bytes, one cache line, in one array that grows in place. They are named by index. An id is stored
 * once: in the record if it is short and the device has no side block, otherwise outside. A side block holds the data
 * that few devices have (reported fields, their own timeout, a key).
 *
 * The table from ids to indices is open-addressed, with 8-byte slots (record index, 32 bits of hash) and linear
 * probing, at most 3/4 full. It doubles by moving a few slots at each insertion, so that no insertion pays for all of
 * them. The hash is SipHash-1-3 (Aumasson and Bernstein, 2012) under a random key, so that chosen ids cannot slow it
 * down.
 *
 * Cost: a look-up reads two cache lines, the slot and the record, and a third for an id outside.
 * hw_registry_find_prefetched() overlaps these reads.
 */
#ifndef HEARTWHEEL_REGISTRY_H
#define HEARTWHEEL_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/partition.h"
#include "heartwheel/payload.h"
#include "heartwheel/time.h"
#include "heartwheel/transition.h"
#include "heartwheel/wheel.h"

/* A device's key in the store, if another program keeps one. Instants are on the keys' seeing clock (monitor.h)
 * unless stated otherwise. */
struct hw_key {
	int64_t until_ns;       /* end of its time to live; HW_KEY_FOREVER: no time to live */
	int64_t proved_ns;      /* last sign of its writer; HW_KEY_NEVER: none */
	int64_t excused_ns;     /* before this, a missing key is no evidence against the device */
	int64_t ttl_ms;         /* time to live as the writer sets it */
	int64_t silent_ns;      /* last_seen_ns when the device was found silent over MQTT; while last_seen_ns still has
	                         * this value, only the key keeps the device online */
	struct hw_mono checked; /* monotonic: last answer of the store */
	bool present;           /* the key existed in that answer */
};

#define HW_KEY_FOREVER (INT64_MAX / 4)
#define HW_KEY_NEVER   (INT64_MIN / 4)

/* Side block: allocated when a device first reports a field or a timeout, is known by a key, or has a timeout in the
 * inventory. */
struct hw_extra {
	int64_t own_timeout_ms;       /* as the device asks for it; 0: it asks for none */
	int64_t inventory_timeout_ms; /* 0: none */
	struct hw_key *key;           /* owned by the registry; NULL: none */
	uint8_t report[];             /* packed (report.h) */
};

enum { HW_SOURCE_MQTT = 1, HW_SOURCE_KEY = 2 };

#define HW_ID_NEAR 15 /* longest id, in bytes, that a record holds */

struct hw_device {
	struct hw_node node;  /* 16 bytes; node.user holds enum hw_state (2 bits), enum hw_reason (3), source (2),
	                         HW_USER_PROBED */
	int64_t last_seen_ns; /* struct hw_seen of the last heartbeat, on the clock of its group */
	/* Length byte, then the id. */
	union {
		uint8_t near[1 + HW_ID_NEAR]; /* length 0: a free record */
		struct {
			uint8_t *id;            /* owned by the registry */
			struct hw_extra *extra; /* owned by the registry; NULL: none */
		} far;
	} is;
	uint64_t seq : 48;     /* of the last transition; 0: none yet */
	uint64_t flags : 16;   /* HW_FLAG_* */
	int64_t since_ms : 43; /* wall clock of the last transition */
	uint64_t will_on : 3;  /* number of the filter that delivered its last goodbye with the retain flag; 0: none, or
	                          a later message replaced the goodbye (retained_intake.c) */
	uint64_t is_far : 1;   /* which member of `is` is in use */
	uint64_t skips_refresh : 1; /* the next check comes so soon that it needs no refresh */
	uint64_t gen : 16;          /* grows each time the record is reused */
	/*
	 * Time of the last heartbeat; HW_NEVER_MS: none. On the monotonic clock while the device is online or
	 * provisional, so that a step of the wall clock does not change its age. Otherwise on the wall clock, so that
	 * the reported time stays the same.
	 */
	int64_t last_heard_ms : 44;
	uint64_t group : 12;
	/* Online: number of blind periods, modulo 64, when its goodbye was read. Offline: number of its heartbeats that
	 * count for the group's online_after. */
	uint64_t goodbye_period : 6;
	uint64_t form : 2; /* enum hw_form_heard */
};

/* The form of its group (struct hw_group.form_hash) in which a device was heard last. */
enum hw_form_heard {
	HW_FORM_UNKNOWN, /* unknown: the store does not name it */
	HW_FORM_OURS,    /* the form on this node, heard by this node or by the node that wrote it to the store */
	HW_FORM_OTHER,   /* another node has heard the device in another form, in which this node may not receive it;
	                  * without a store, the device's group may be another one, too (hw_form_is_guessed()) */
	HW_FORM_MOVED /* as OURS, after a move to a later group of the file; the timeout of the old one still counts */
};

#define HW_WILL_ANYWHERE 7 /* will_on: beyond the sixth filter of the group, or unknown */

#define HW_NEVER_MS  (-(INT64_C(1) << 43))
#define HW_SINCE_MAX ((INT64_C(1) << 42) - 1) /* limit of since_ms: in the year 2109 */

/* struct hw_device.flags. The core owns the low byte; most flags of the high byte are of the monitor's driver
 * (HW_NOTE()). */
enum {
	HW_FLAG_ONCE = 1 << 0,    /* one heartbeat so far */
	HW_FLAG_GOODBYE = 1 << 1, /* a goodbye waits to be judged */
	HW_FLAG_HELD = 1 << 2,    /* the goodbye waits for the group's goodbye_delay first */
	HW_FLAG_PACED = 1 << 3, /* the device is armed for a turn that is reserved for it: under max_offline_rate if its
	                           deadline has passed, otherwise under probe_rate */
	HW_FLAG_KEYED = 1 << 4, /* it is armed in the wheel of keys */

	/* A device that another node decides for: */
	HW_FLAG_SILENT = 1 << 5, /* this node's verdict is offline, but another node decides; not armed until the
	                          * device sends a message */
	HW_FLAG_HEARD = 1 << 6,  /* this node's verdict is online, but another node decides; last_heard_ms is
	                          * monotonic */
	HW_FLAG_TOUCHED = 1 << 7 /* the retained status may have been replaced since the owner's last transition; or the
	                            store lacks the device, and its owner may not know the device */
};

/* Flags of the monitor's driver: 0, 1 and 3 to 6. The core keeps them, and does not free a record by itself while one
 * is set. A new record has none. */
#define HW_NOTE(n)   (1 << (8 + (n)))
#define HW_NOTES_ALL 0x7b00

/* More flags of the core, for a device whose group learns (core/learning.h). */
enum {
	HW_FLAG_TIMED = HW_NOTE(2),  /* its last heartbeat may begin a gap that is learned */
	HW_FLAG_LEARNED = HW_NOTE(7) /* the learned timeout has changed since its last write to the store */
};

struct hw_registry; /* opaque */

/* `key` is 16 random bytes. Returns NULL if there is no memory. */
struct hw_registry *hw_registry_new(const uint8_t key[16]);
void hw_registry_free(struct hw_registry *r);

/* Returns the index of an id, or HW_NIL. */
uint32_t hw_registry_find(const struct hw_registry *r, const char *id, size_t len);

struct hw_id {
	const char *text;
	size_t len;
};

/*
 * These functions look up `n` ids in two steps. The caller can work between them, while memory loads the first cache
 * lines; the cache misses of the ids overlap. Call hw_registry_prefetch() for each id, then
 * hw_registry_find_prefetched() with the results. Nothing may be added or removed between the steps. out[i] is the same
 * as from hw_registry_find().
 */
uint32_t hw_registry_prefetch(const struct hw_registry *r, const char *id, size_t len);
void hw_registry_find_prefetched(const struct hw_registry *r, const struct hw_id *ids, const uint32_t *asked, size_t n,
                                 uint32_t *out);

/*
 * Makes a record for a new id (1 to HW_ID_MAX bytes). The record is zeroed except for id, gen and node; the node is
 * nowhere. Returns 0 and *index; or -EINVAL (length) or -ENOMEM with nothing changed. May move the array: all hw_device
 * pointers become invalid, and the caller must call hw_wheel_rebase() with hw_registry_base().
 */
int hw_registry_add(struct hw_registry *r, const char *id, size_t len, uint32_t *index);

/* Frees the record, whose node must be nowhere, with its id and side block. */
void hw_registry_remove(struct hw_registry *r, uint32_t index);

/* Returns the side block of a device, and makes the block if it is missing; NULL if there is no memory. The call may
 * move the device's id, and the next report may move the block. */
struct hw_extra *hw_registry_extra(struct hw_registry *r, uint32_t index);
/* Merges the fields that `reported` has into the device's report; the caller keeps `reported`. Returns 0, or -ENOMEM,
 * after which some fields may be unchanged. */
int hw_registry_report(struct hw_registry *r, uint32_t index, const struct hw_report *reported);
/* Returns the data of a device's key, and makes them if they are missing; *made: they are new and zeroed. Returns
 * NULL if there is no memory. */
struct hw_key *hw_registry_key(struct hw_registry *r, uint32_t index, bool *made);

/* Returns a hash of any id under the table's random key. */
uint64_t hw_registry_hash(const struct hw_registry *r, const char *id, size_t len);

/* Returns the array, for hw_wheel_rebase(); its stride is sizeof(struct hw_device). */
struct hw_device *hw_registry_base(const struct hw_registry *r);

/* Returns a number that is greater than each index in use. */
uint32_t hw_registry_bound(const struct hw_registry *r);
uint32_t hw_registry_count(const struct hw_registry *r);

/* Returns the longest probe sequence of a known id in one table, a measure of the hash. Walks the tables: for tests
 * and diagnosis. */
uint32_t hw_registry_longest_probe(const struct hw_registry *r);

/* Returns the device at `index`, or NULL if the record is free or there is none. Valid until the next
 * hw_registry_add(). */
struct hw_device *hw_registry_at(const struct hw_registry *r, uint32_t index);

/* Returns the device that `ref` names, or NULL if it has been removed since. */
struct hw_device *hw_registry_get(const struct hw_registry *r, struct hw_ref ref);

struct hw_ref hw_registry_ref(const struct hw_registry *r, uint32_t index);

/* Returns the device's id, without a NUL. Valid until a record is added or removed, or until this record gets a side
 * block. */
static inline struct hw_id hw_device_id(const struct hw_device *d)
{
	const uint8_t *id = d->is_far ? d->is.far.id : d->is.near;
	return (struct hw_id){(const char *)id + 1, id[0]};
}

/* Returns the side block of a device; NULL: it has none. */
static inline struct hw_extra *hw_device_extra(const struct hw_device *d)
{
	return d->is_far ? d->is.far.extra : NULL;
}

/* Returns the fields that the device reports, as a view (report.h) that is valid until its next report. */
static inline struct hw_report hw_device_report(const struct hw_device *d)
{
	const struct hw_extra *x = hw_device_extra(d);
	return x ? hw_report_view(x->report) : (struct hw_report){0};
}

/* Returns the timeout that the device has set for itself; 0: none. */
static inline int64_t hw_device_own_timeout_ms(const struct hw_device *d)
{
	const struct hw_extra *x = hw_device_extra(d);
	return x ? x->own_timeout_ms : 0;
}

static inline unsigned hw_device_partition(const struct hw_device *d)
{
	struct hw_id id = hw_device_id(d);
	return hw_partition_of(id.text, id.len);
}

/* In node.user of an online device: a probe was sent, and no heartbeat has come since. A new state clears it. */
#define HW_USER_PROBED 0x80

static inline bool hw_device_is_probed(const struct hw_device *d)
{
	return d->node.user & HW_USER_PROBED;
}

static inline enum hw_state hw_device_state(const struct hw_device *d)
{
	return (enum hw_state)(d->node.user & 3);
}

static inline enum hw_reason hw_device_reason(const struct hw_device *d)
{
	return (enum hw_reason)(d->node.user >> 2 & 7);
}

/* Whether a device is online, and does not wait for the answer to a probe. */
static inline bool hw_device_is_plainly_online(const struct hw_device *d)
{
	return (d->node.user & (HW_USER_PROBED | 3)) == HW_STATE_ONLINE;
}

/* Returns the bits HW_SOURCE_* of a device. */
static inline unsigned hw_device_source(const struct hw_device *d)
{
	return d->node.user >> 5 & 3;
}

static inline void hw_device_set_state(struct hw_device *d, enum hw_state state, enum hw_reason reason)
{
	d->node.user = (uint8_t)((d->node.user & 0x60) | (unsigned)state | (unsigned)reason << 2);
}

static inline void hw_device_set_source(struct hw_device *d, unsigned source)
{
	d->node.user = (uint8_t)((d->node.user & 0x9f) | (source & 3) << 5);
}

/* Whether the device has any of these flags HW_NOTE(). */
static inline bool hw_device_noted(const struct hw_device *d, int notes)
{
	return d->flags & (notes & HW_NOTES_ALL);
}

static inline void hw_device_note(struct hw_device *d, int notes, bool on)
{
	notes &= HW_NOTES_ALL;
	d->flags = (uint16_t)(on ? d->flags | notes : d->flags & ~notes);
}

/* Returns the key data of a device; NULL: no key of another program is known. */
static inline struct hw_key *hw_device_key(const struct hw_device *d)
{
	const struct hw_extra *x = hw_device_extra(d);
	return x ? x->key : NULL;
}

#endif

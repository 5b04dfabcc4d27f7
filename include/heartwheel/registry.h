/* SPDX-License-Identifier: MIT */
/*
 * The registry: from a device's id to its record, and back.
 *
 * Records are 64 bytes, one cache line, in one array that grows in place; they are named by index. An id is stored
 * once: in its record if it is short and nothing else is kept of its device, otherwise outside. What only some devices
 * have (reported fields, a timeout of their own) is in a side block.
 * The index is found through an open-addressed table of 8-byte slots (record index, 32 bits of hash), with linear
 * probing, at most 3/4 full. It doubles by moving a few slots at each insertion, so that no insertion pays for all of
 * them. The hash is SipHash-1-3 (Aumasson and Bernstein, 2012) under a random key: ids chosen by an attacker cannot
 * make it slow.
 *
 * Cost: a found id touches its slot and its record, and its id where that is outside: two cache lines or three, which
 * hw_registry_find_asked() overlaps.
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

/* What is known of a device's key in the store, if another program keeps one. Instants are of the keys' seeing clock
 * (monitor.h), except where it is said. */
struct hw_key {
	int64_t until_ns;  /* its time to live ends then; HW_KEY_FOREVER: it has none */
	int64_t proved_ns; /* its writer was heard of last; HW_KEY_NEVER */
	int64_t spare_ns;  /* a missing key is not held against the device before this */
	int64_t ttl_ms;    /* what its writer gives it to live */
	int64_t silent_ns; /* the device's last_seen_ns when it was found silent over MQTT: since then it lives by the
	                      key alone */
	struct hw_mono looked; /* monotonic: the store was asked last */
	bool present;          /* it was there then */
};

#define HW_KEY_FOREVER (INT64_MAX / 4)
#define HW_KEY_NEVER   (INT64_MIN / 4)

/* Side block: allocated for a device when it first says more than "alive", or is known by a key. */
struct hw_extra {
	int64_t own_timeout_ms; /* 0: the group's is in force */
	struct hw_key *key;     /* owned by the registry; NULL: none */
	uint8_t report[];       /* packed (report.h) */
};

enum { HW_SOURCE_MQTT = 1, HW_SOURCE_KEY = 2 };

#define HW_ID_NEAR 15 /* bytes of an id that a record has room for */

struct hw_device {
	struct hw_node node;  /* 16 bytes; node.user holds enum hw_state (2 bits), enum hw_reason (3), source (2),
	                         HW_USER_PROBED */
	int64_t last_seen_ns; /* struct hw_seen of the last heartbeat, by the clock of its group */
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
	uint64_t will_on : 3;  /* the filter that a goodbye with the retain flag was last read on; 0: none, or a later
	                          message has replaced it (intake.c) */
	uint64_t is_far : 1;   /* which of `is` */
	uint64_t spares : 1;   /* its next look comes so soon that nothing need be refreshed then */
	uint64_t gen : 16;     /* grows each time the record is reused */
	/* Of the last heartbeat; HW_NEVER_MS: never heard. While the device is online the monotonic clock, so that no
	 * step of the wall clock makes its age wrong; afterwards the wall clock, so that it is always told as it was.
	 */
	int64_t last_heard_ms : 44;
	uint64_t group : 12;
	uint64_t goodbye_period : 6; /* the count of blind periods, modulo 64, when its goodbye was read */
	uint64_t form : 2;           /* enum hw_form_heard */
};

/* In which form of its group (struct hw_group.form_hash) a device was heard last. */
enum hw_form_heard {
	HW_FORM_UNSAID, /* not known: read from a store that does not say it */
	HW_FORM_OURS, /* in the form that the group has here: by this node, or by the node that wrote it to the store */
	HW_FORM_OTHER /* by another node, in another form: this node may not hear the device */
};

#define HW_WILL_ANYWHERE 7 /* of will_on: after the sixth filter of its group, or not known which */

#define HW_NEVER_MS  (-(INT64_C(1) << 43))
#define HW_SINCE_MAX ((INT64_C(1) << 42) - 1) /* of since_ms: in the year 2109 */

/* struct hw_device.flags. The core owns the low byte; the high one is whoever drives the monitor's (HW_NOTE()). */
enum {
	HW_FLAG_ONCE = 1 << 0,    /* heard only once so far */
	HW_FLAG_GOODBYE = 1 << 1, /* a goodbye is waiting to be judged */
	HW_FLAG_HELD = 1 << 2,    /* ... and is held for the group's goodbye_delay first */
	HW_FLAG_PACED = 1 << 3,   /* its turn is reserved: the wheel holds it until then. Past its deadline that is one
	                             under max_offline_rate, before it one under probe_rate */
	HW_FLAG_KEYED = 1 << 4,   /* the wheel that it is armed in is the keys' */

	/* What is noted of a device that another node decides about. */
	HW_FLAG_SILENT = 1 << 5, /* it would be offline: armed nowhere until it is heard */
	HW_FLAG_HEARD = 1 << 6,  /* it would be online; its last_heard_ms is on the monotonic clock */
	HW_FLAG_TOUCHED = 1 << 7 /* its retained status may have been replaced since the owner's last word; or the
	                            store lacks it, and its owner may not know of it */
};

/* Note 0 to 7 of a device: the core keeps it, and keeps a record that has any. A new record has none. */
#define HW_NOTE(n)   (1 << (8 + (n)))
#define HW_NOTES_ALL 0xff00

struct hw_registry; /* opaque */

/* `key` is 16 random bytes. Returns NULL without memory. */
struct hw_registry *hw_registry_new(const uint8_t key[16]);
void hw_registry_free(struct hw_registry *r);

/* The index of an id, or HW_NIL. */
uint32_t hw_registry_find(const struct hw_registry *r, const char *id, size_t len);

struct hw_id {
	const char *text;
	size_t len;
};

/* Looks `n` ids up with their cache misses overlapped, in two steps, so that the caller can do other work while memory
 * is asked for the first cache line: a call for each id, then one for all of them, with what those said and nothing
 * added or removed in between. out[i] is as hw_registry_find() would say. */
uint32_t hw_registry_ask(const struct hw_registry *r, const char *id, size_t len);
void hw_registry_find_asked(const struct hw_registry *r, const struct hw_id *ids, const uint32_t *asked, size_t n,
                            uint32_t *out);

/*
 * Makes a record for an id (1 to HW_ID_MAX bytes) that is not there. The record is zeroed but for id, gen and node,
 * which is nowhere. Returns 0 and *index, or -EINVAL (length) or -ENOMEM with nothing changed. May move the array:
 * hw_device pointers are invalid after it; the caller rebases its wheel with hw_registry_base().
 */
int hw_registry_add(struct hw_registry *r, const char *id, size_t len, uint32_t *index);

/* Frees the record, whose node must be nowhere, with its id and side block. */
void hw_registry_remove(struct hw_registry *r, uint32_t index);

/* The side block of a device, made if need be; NULL without memory. Where the device's id stands may change with it,
 * and the block itself may move with the next report. */
struct hw_extra *hw_registry_extra(struct hw_registry *r, uint32_t index);
/* Puts the fields that `said` has over what is kept of the device; `said` stays the caller's. 0, or -ENOMEM: some of
 * the fields are as before. */
int hw_registry_report(struct hw_registry *r, uint32_t index, const struct hw_report *said);
/* The same for its key's data; *made says whether it is new, and zeroed. */
struct hw_key *hw_registry_key(struct hw_registry *r, uint32_t index, bool *made);

/* The array, for hw_wheel_rebase(); its stride is sizeof(struct hw_device). */
struct hw_device *hw_registry_base(const struct hw_registry *r);

/* Indices are below this. */
uint32_t hw_registry_bound(const struct hw_registry *r);
uint32_t hw_registry_count(const struct hw_registry *r);

/* The most slots that a look-up of a known id goes through in one table: how well the hash spreads. Walks the tables:
 * for tests and diagnosis. */
uint32_t hw_registry_longest_probe(const struct hw_registry *r);

/* The device at `index`, or NULL if the record is free or there is none. Valid until the next hw_registry_add(). */
struct hw_device *hw_registry_at(const struct hw_registry *r, uint32_t index);

/* The device that `ref` names, or NULL if it has been removed since. */
struct hw_device *hw_registry_get(const struct hw_registry *r, struct hw_ref ref);

struct hw_ref hw_registry_ref(const struct hw_registry *r, uint32_t index);

/* The device's id; not NUL-terminated. Valid until a record is added or removed, or this one gets a side block. */
static inline struct hw_id hw_device_id(const struct hw_device *d)
{
	const uint8_t *id = d->is_far ? d->is.far.id : d->is.near;
	return (struct hw_id){(const char *)id + 1, id[0]};
}

/* NULL: it has none. */
static inline struct hw_extra *hw_device_extra(const struct hw_device *d)
{
	return d->is_far ? d->is.far.extra : NULL;
}

/* What it reports of itself: a view (report.h), valid until it reports again. */
static inline struct hw_report hw_device_report(const struct hw_device *d)
{
	const struct hw_extra *x = hw_device_extra(d);
	return x ? hw_report_view(x->report) : (struct hw_report){0};
}

/* 0: it asks for none. */
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

/* In node.user of a device that is online: it was asked, and has not been heard since. A new state clears it. */
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

/* Online, and no probe of it is out. */
static inline bool hw_device_is_plainly_online(const struct hw_device *d)
{
	return (d->node.user & (HW_USER_PROBED | 3)) == HW_STATE_ONLINE;
}

/* HW_SOURCE_* bits. */
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

/* Whether it has any of these HW_NOTE()s. */
static inline bool hw_device_noted(const struct hw_device *d, int notes)
{
	return d->flags & (notes & HW_NOTES_ALL);
}

static inline void hw_device_note(struct hw_device *d, int notes, bool on)
{
	notes &= HW_NOTES_ALL;
	d->flags = (uint16_t)(on ? d->flags | notes : d->flags & ~notes);
}

/* NULL: nothing is known of a key of another program's. */
static inline struct hw_key *hw_device_key(const struct hw_device *d)
{
	const struct hw_extra *x = hw_device_extra(d);
	return x ? x->key : NULL;
}

#endif

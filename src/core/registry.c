/* SPDX-License-Identifier: MIT */
/*
 * The registry: see registry.h for its contract and cost.
 *
 * Records are in one array, which grows by half. The memory of records that were never used is not touched. Free
 * records are a list, linked through node.next.
 *
 * The index of the ids has one or two hash tables of 8-byte slots with linear probing. A slot contains 32 bits of the
 * id's hash. They give its position, and are compared before the record is read. When table `young` would be more than
 * 3/4 full, it becomes `old`, and a table of twice its size becomes `young`. Each later insertion moves a few slots
 * from `old`. After size/8 insertions all are moved; the next doubling comes later, after 3/4 size insertions.
 *
 * Invariant: each record in use is in exactly one of the tables. In `young`, all slots from an entry's hash position to
 * its slot are used, because a deletion moves later entries back. Nothing is inserted in `old`, and a moved or deleted
 * entry leaves a tombstone there.
 */
#include "heartwheel/registry.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "core/idstore.h"
#include "core/pages.h"
#include "heartwheel/siphash.h"
#include "heartwheel/topic.h"

#define RECORDS_FIRST 64
#define RECORDS_MAX   (UINT32_C(1) << 30)
#define TABLE_FIRST   128
#define MOVES         8 /* slots a cache line */
#define TOMBSTONE     UINT32_MAX
#define LOOKAHEAD     128 /* look-ups whose cache misses overlap */

_Static_assert(sizeof(struct hw_device) == 64, "a record is a cache line");

/* An empty slot is all zero. So the pages of a new table are untouched until they are used. */
struct slot {
	uint32_t name; /* index + 1; 0: empty; TOMBSTONE: moved or deleted */
	uint32_t hash;
};

struct table {
	struct slot *slots; /* NULL: no table */
	uint32_t mask;      /* number of slots (a power of two) less one */
};

struct hw_registry {
	uint8_t key[16];
	struct hw_device *devices; /* owned */
	uint32_t capacity;         /* records that the array has room for */
	uint32_t bound;            /* records that were ever in use */
	uint32_t count;            /* records in use */
	uint32_t free;             /* first free record below `bound`; HW_NIL: none */
	struct table young, old;   /* owned */
	struct table next;         /* owned; empty */
	size_t touched;            /* bytes of `next` that were touched, from its start */
	uint32_t moved;            /* slots of `old` that were moved, from its start */
	struct hw_idstore ids;
};

uint64_t hw_registry_hash(const struct hw_registry *r, const char *id, size_t len)
{
	return hw_siphash(1, 3, r->key, id, len);
}

static uint32_t hash_of(const struct hw_registry *r, const char *id, size_t len)
{
	return (uint32_t)hw_registry_hash(r, id, len);
}

/* --- one table ---------------------------------------------------------------------------------------------------- */

/* `size` is a power of two. */
static bool table_make(struct table *t, uint32_t size)
{
	struct slot *slots = hw_pages_grow(NULL, 0, size * sizeof(*slots));
	if (slots == NULL)
		return false;
	*t = (struct table){.slots = slots, .mask = size - 1};
	return true;
}

static size_t table_bytes(const struct table *t)
{
	return ((size_t)t->mask + 1) * sizeof(*t->slots);
}

static void table_drop(struct table *t)
{
	if (t->slots != NULL)
		hw_pages_free(t->slots, table_bytes(t));
	*t = (struct table){NULL, 0};
}

/*
 * Searches for a slot with this hash from position `*at` on. Returns the slot's record, or HW_NIL, and sets `*at` to
 * the position after the slot. The first search for a hash begins with `*at` equal to the hash.
 */
static uint32_t table_seek(const struct table *t, uint32_t hash, uint32_t *at)
{
	if (t->slots == NULL)
		return HW_NIL;
	for (;;) {
		const struct slot *s = &t->slots[(*at)++ & t->mask];
		if (s->name == 0)
			return HW_NIL;
		if (s->hash == hash && s->name != TOMBSTONE)
			return s->name - 1;
	}
}

static void table_put(struct table *t, uint32_t hash, uint32_t index)
{
	uint32_t at = hash & t->mask;
	while (t->slots[at].name != 0)
		at = (at + 1) & t->mask;
	t->slots[at] = (struct slot){.name = index + 1, .hash = hash};
}

static struct slot *table_slot(const struct table *t, uint32_t hash, uint32_t index)
{
	uint32_t at = hash, found;
	while ((found = table_seek(t, hash, &at)) != HW_NIL)
		if (found == index)
			return &t->slots[(at - 1) & t->mask];
	return NULL;
}

/* Empties a slot. Moves back later entries that a search would no longer find after the empty slot (Knuth, TAOCP 6.4,
 * algorithm R). */
static void table_close(struct table *t, struct slot *s)
{
	uint32_t gap = (uint32_t)(s - t->slots), at = gap;
	for (;;) {
		at = (at + 1) & t->mask;
		if (t->slots[at].name == 0)
			break;
		uint32_t from_home = (at - t->slots[at].hash) & t->mask, from_gap = (at - gap) & t->mask;
		if (from_home >= from_gap) {
			t->slots[gap] = t->slots[at];
			gap = at;
		}
	}
	t->slots[gap] = (struct slot){0, 0};
}

/* --- both tables -------------------------------------------------------------------------------------------------- */

static bool is_id(const struct hw_device *d, const char *id, size_t len)
{
	struct hw_id own = hw_device_id(d);
	return own.len == len && hw_bytes_equal(own.text, id, len);
}

static uint32_t find_in(const struct hw_registry *r, const struct table *t, uint32_t hash, const char *id, size_t len)
{
	uint32_t at = hash, index;
	while ((index = table_seek(t, hash, &at)) != HW_NIL)
		if (is_id(&r->devices[index], id, len))
			break;
	return index;
}

static uint32_t find_hashed(const struct hw_registry *r, uint32_t hash, const char *id, size_t len)
{
	uint32_t index = find_in(r, &r->young, hash, id, len);
	return index != HW_NIL ? index : find_in(r, &r->old, hash, id, len);
}

/* Moves a few slots of `old` to `young`, and frees `old` after the last. */
static void move_some(struct hw_registry *r)
{
	if (r->old.slots == NULL)
		return;
	for (int i = 0; i < MOVES; i++) {
		struct slot *s = &r->old.slots[r->moved];
		if (s->name != 0 && s->name != TOMBSTONE) {
			table_put(&r->young, s->hash, s->name - 1);
			s->name = TOMBSTONE;
		}
		if (r->moved++ == r->old.mask) {
			table_drop(&r->old);
			break;
		}
	}
}

static bool make_next(struct hw_registry *r)
{
	uint64_t size = (uint64_t)r->young.mask + 1;
	if (r->next.slots != NULL)
		return true;
	r->touched = 0;
	return size <= UINT32_MAX / 2 && table_make(&r->next, (uint32_t)(size * 2));
}

static int reserve_slot(struct hw_registry *r)
{
	uint64_t size = (uint64_t)r->young.mask + 1;
	if ((uint64_t)r->count + 1 <= size / 4 * 3)
		return 0;
	assert(r->old.slots == NULL);
	if (!make_next(r))
		return -ENOMEM;
	r->old = r->young;
	r->young = r->next;
	r->next = (struct table){NULL, 0};
	r->moved = 0;
	return 0;
}

/* Touches a part of the next table after an insertion, so that no single insertion pays for all page faults.
 * Touching begins when the table is 11/16 full, so that memory is not used early. It ends before the doubling at
 * 12/16. */
static void touch_next(struct hw_registry *r)
{
	uint64_t size = (uint64_t)r->young.mask + 1;
	if (r->count < size / 16 * 11 || !make_next(r) || r->touched >= table_bytes(&r->next))
		return;
	*((volatile uint8_t *)r->next.slots + r->touched) = 0;
	r->touched += 2 * sizeof(struct slot) * 16;
}

static void unindex(struct hw_registry *r, uint32_t index)
{
	struct hw_id id = hw_device_id(&r->devices[index]);
	uint32_t hash = hash_of(r, id.text, id.len);
	struct slot *s = table_slot(&r->young, hash, index);
	if (s != NULL) {
		table_close(&r->young, s);
		return;
	}
	s = table_slot(&r->old, hash, index);
	assert(s != NULL);
	s->name = TOMBSTONE;
}

/* --- records ------------------------------------------------------------------------------------------------------ */

static int reserve_record(struct hw_registry *r)
{
	if (r->free != HW_NIL || r->bound < r->capacity)
		return 0;
	if (r->capacity >= RECORDS_MAX)
		return -ENOMEM;
	uint32_t capacity = r->capacity == 0 ? RECORDS_FIRST : r->capacity + r->capacity / 2;
	void *devices =
		hw_pages_grow(r->devices, r->capacity * sizeof(struct hw_device), capacity * sizeof(struct hw_device));
	if (devices == NULL)
		return -ENOMEM;
	r->devices = devices;
	r->capacity = capacity;
	return 0;
}

static bool is_free(const struct hw_device *d)
{
	return !d->is_far && d->is.near[0] == 0;
}

/* Takes a free record. The caller has reserved one. */
static uint32_t take_record(struct hw_registry *r)
{
	uint32_t index = r->free;
	uint16_t gen = 0;
	if (index != HW_NIL) {
		r->free = r->devices[index].node.next;
		gen = (uint16_t)(r->devices[index].gen + 1);
	} else {
		index = r->bound++;
	}
	struct hw_device *d = &r->devices[index];
	*d = (struct hw_device){.gen = gen};
	hw_node_init(&d->node);
	r->count++;
	return index;
}

static void free_extra(struct hw_extra *extra)
{
	if (extra == NULL)
		return;
	free(extra->key);
	free(extra);
}

/* Frees the record's memory outside of the record. The record is then free. */
static void drop_far(struct hw_registry *r, struct hw_device *d)
{
	if (d->is_far) {
		free_extra(d->is.far.extra);
		hw_idstore_drop(&r->ids, d->is.far.id);
	}
	d->is_far = 0;
	d->is.near[0] = 0;
}

/* Moves the id out of the record, if it is still inside. */
static bool go_far(struct hw_registry *r, struct hw_device *d)
{
	struct hw_id id = hw_device_id(d);
	uint8_t *own = d->is_far ? d->is.far.id : hw_idstore_put(&r->ids, id.text, id.len);
	if (own == NULL || d->is_far)
		return own != NULL;
	d->is.far.id = own;
	d->is.far.extra = NULL;
	d->is_far = 1;
	return true;
}

static struct hw_extra *make_extra(size_t packed)
{
	return calloc(1, sizeof(struct hw_extra) + packed);
}

/* --- the interface ------------------------------------------------------------------------------------------------ */

struct hw_registry *hw_registry_new(const uint8_t key[16])
{
	struct hw_registry *r = calloc(1, sizeof(*r));
	if (r == NULL)
		return NULL;
	if (!table_make(&r->young, TABLE_FIRST)) {
		free(r);
		return NULL;
	}
	memcpy(r->key, key, sizeof(r->key));
	r->free = HW_NIL;
	hw_idstore_init(&r->ids);
	return r;
}

void hw_registry_free(struct hw_registry *r)
{
	if (r == NULL)
		return;
	for (uint32_t i = 0; i < r->bound; i++)
		drop_far(r, &r->devices[i]);
	table_drop(&r->next);
	table_drop(&r->old);
	table_drop(&r->young);
	hw_pages_free(r->devices, r->capacity * sizeof(struct hw_device));
	free(r);
}

uint32_t hw_registry_find(const struct hw_registry *r, const char *id, size_t len)
{
	return find_hashed(r, hash_of(r, id, len), id, len);
}

uint32_t hw_registry_prefetch(const struct hw_registry *r, const char *id, size_t len)
{
	uint32_t hash = hash_of(r, id, len);
	__builtin_prefetch(&r->young.slots[hash & r->young.mask]);
	if (r->old.slots != NULL)
		__builtin_prefetch(&r->old.slots[hash & r->old.mask]);
	return hash;
}

/* Returns the record of the first slot with this hash. It is nearly always the right record. Branches are faster
 * here than a fixed number of compares: the CPU predicts them, and begins the next look-ups while memory is being
 * fetched. */
static uint32_t guess(const struct hw_registry *r, uint32_t hash)
{
	uint32_t at = hash, index = table_seek(&r->young, hash, &at);
	if (index != HW_NIL || r->old.slots == NULL)
		return index;
	at = hash;
	return table_seek(&r->old, hash, &at);
}

/*
 * Finds the records of a block of ids in several passes. Each pass prefetches the cache lines that the next pass reads:
 * first the records of the slots with the right hash, then ids that are outside of the record. The last pass finds all
 * of them in the cache. A wrong guess costs only time.
 */
static void find_block(const struct hw_registry *r, const struct hw_id *ids, const uint32_t *hash, size_t n,
                       uint32_t *out)
{
	for (size_t i = 0; i < n; i++) {
		out[i] = guess(r, hash[i]);
		if (out[i] != HW_NIL)
			__builtin_prefetch(&r->devices[out[i]], 1);
	}
	for (size_t i = 0; i < n; i++)
		if (out[i] != HW_NIL && r->devices[out[i]].is_far)
			__builtin_prefetch(r->devices[out[i]].is.far.id);
	for (size_t i = 0; i < n; i++)
		if (out[i] != HW_NIL && !is_id(&r->devices[out[i]], ids[i].text, ids[i].len))
			out[i] = find_hashed(r, hash[i], ids[i].text, ids[i].len);
}

void hw_registry_find_prefetched(const struct hw_registry *r, const struct hw_id *ids, const uint32_t *asked, size_t n,
                                 uint32_t *out)
{
	for (size_t done = 0; done < n; done += LOOKAHEAD) {
		size_t block = n - done < LOOKAHEAD ? n - done : LOOKAHEAD;
		find_block(r, ids + done, asked + done, block, out + done);
	}
}

/* Stores an id in a record. `far`: the id's memory outside of the record; NULL: the id is stored in the record. */
static void put_id(struct hw_device *d, const char *id, size_t len, uint8_t *far)
{
	if (far != NULL) {
		d->is.far.id = far;
		d->is_far = 1;
		return;
	}
	d->is.near[0] = (uint8_t)len;
	memcpy(d->is.near + 1, id, len);
}

int hw_registry_add(struct hw_registry *r, const char *id, size_t len, uint32_t *index)
{
	if (len == 0 || len > HW_ID_MAX)
		return -EINVAL;
	int err = reserve_record(r);
	if (err == 0)
		err = reserve_slot(r);
	if (err != 0)
		return err;
	uint8_t *own = len > HW_ID_NEAR ? hw_idstore_put(&r->ids, id, len) : NULL;
	if (own == NULL && len > HW_ID_NEAR)
		return -ENOMEM;

	move_some(r);
	*index = take_record(r);
	put_id(&r->devices[*index], id, len, own);
	table_put(&r->young, hash_of(r, id, len), *index);
	touch_next(r);
	return 0;
}

void hw_registry_remove(struct hw_registry *r, uint32_t index)
{
	struct hw_device *d = &r->devices[index];
	assert(d->node.place == HW_PLACE_NONE);
	unindex(r, index);
	drop_far(r, d);
	d->node.next = r->free;
	r->free = index;
	r->count--;
}

struct hw_extra *hw_registry_extra(struct hw_registry *r, uint32_t index)
{
	struct hw_device *d = &r->devices[index];
	if (!go_far(r, d))
		return NULL;
	if (d->is.far.extra == NULL)
		d->is.far.extra = make_extra(HW_REPORT_PACKED_MIN);
	return d->is.far.extra;
}

/* Replaces the report of a device. Most new reports have fields of the same lengths as the report before, and then
 * no memory is allocated. */
int hw_registry_report(struct hw_registry *r, uint32_t index, const struct hw_report *reported)
{
	struct hw_extra *x = hw_registry_extra(r, index);
	if (x == NULL)
		return -ENOMEM;
	if (hw_report_renew(x->report, reported))
		return 0;
	struct hw_report kept = hw_report_view(x->report), all = hw_report_over(&kept, reported);
	struct hw_extra *news = make_extra(hw_report_packed_size(&all));
	if (news == NULL)
		return -ENOMEM;
	news->own_timeout_ms = x->own_timeout_ms;
	news->inventory_timeout_ms = x->inventory_timeout_ms;
	news->key = x->key;
	hw_report_pack(&all, news->report);
	r->devices[index].is.far.extra = news;
	free(x);
	return 0;
}

struct hw_key *hw_registry_key(struct hw_registry *r, uint32_t index, bool *made)
{
	struct hw_extra *x = hw_registry_extra(r, index);
	*made = false;
	if (x == NULL || x->key != NULL)
		return x ? x->key : NULL;
	x->key = calloc(1, sizeof(*x->key));
	*made = x->key != NULL;
	return x->key;
}

struct hw_device *hw_registry_base(const struct hw_registry *r)
{
	return r->devices;
}

uint32_t hw_registry_bound(const struct hw_registry *r)
{
	return r->bound;
}

uint32_t hw_registry_count(const struct hw_registry *r)
{
	return r->count;
}

struct hw_device *hw_registry_at(const struct hw_registry *r, uint32_t index)
{
	if (index >= r->bound || is_free(&r->devices[index]))
		return NULL;
	return &r->devices[index];
}

struct hw_device *hw_registry_get(const struct hw_registry *r, struct hw_ref ref)
{
	struct hw_device *d = hw_registry_at(r, ref.index);
	return d != NULL && d->gen == ref.gen ? d : NULL;
}

struct hw_ref hw_registry_ref(const struct hw_registry *r, uint32_t index)
{
	return (struct hw_ref){.index = index, .gen = r->devices[index].gen};
}

static uint32_t longest_probe(const struct table *t)
{
	uint32_t longest = 0;
	for (uint64_t at = 0; t->slots != NULL && at <= t->mask; at++) {
		const struct slot *s = &t->slots[at];
		uint32_t probe = (((uint32_t)at - s->hash) & t->mask) + 1;
		if (s->name != 0 && s->name != TOMBSTONE && probe > longest)
			longest = probe;
	}
	return longest;
}

uint32_t hw_registry_longest_probe(const struct hw_registry *r)
{
	uint32_t young = longest_probe(&r->young), old = longest_probe(&r->old);
	return young > old ? young : old;
}

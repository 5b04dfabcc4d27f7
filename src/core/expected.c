/* SPDX-License-Identifier: MIT */
/* See expected.h. Invariant: e->place[i] of an id that waits or is refused is its index in the heap, of an unseen id
 * its index in the list of unseen ids. */
#include "heartwheel/expected.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/siphash.h"
#include "heartwheel/topic.h"
#include "pages.h"

/* The greatest number of a reading of the list. After this number, the numbers begin again. By then a complete reading
 * has removed each id that an earlier reading with the same number left. */
#define ROUNDS 0x7fff

/* One id. A free entry has no `data`, and its `next` is the next free entry. */
struct entry {
	uint8_t *data; /* owned: length of the id, length of the text (2 bytes), id, text; with `parents` also the
	                * length of the parents (2 bytes) and the parents */
	int64_t at_ms : 48;
	uint64_t state : 2;
	uint64_t group : 12;
	uint64_t parents : 1;
	int64_t since_ms : 44;
	uint64_t source : 16;
	uint64_t described : 1;
	int64_t timeout_ms : 48;
	uint64_t round : 15; /* the reading that has named it last */
	uint32_t next;       /* in its bucket */
	uint32_t place;      /* in the heap, or in the list of unseen ids */
};

struct indices {
	uint32_t *at;
	uint32_t n, cap;
};

struct hw_expected {
	uint8_t key[16];
	struct entry *all; /* owned; `bound` of them were ever in use */
	uint32_t bound, cap, count, free;
	struct indices buckets; /* linear hashing: `level` doublings; buckets below `split` are split */
	unsigned level;
	uint32_t split;
	struct indices heap, unseen;
	uint32_t unseen_of[HW_EXPECTED_GROUPS];
	char **sources; /* owned */
	uint32_t n_sources, last_source;
	uint16_t round;
};

/* The caller checks the ranges: a cast into a bit-field does not silence -Wconversion. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
static void set_values(struct hw_expected *e, struct entry *x, const struct hw_expected_view *v, uint32_t source)
{
	x->since_ms = v->since_ms;
	x->timeout_ms = v->timeout_ms;
	x->source = source;
	x->parents = v->parents.len > 0;
	x->described = v->is_described;
	x->round = e->round;
}

static void set_state(struct entry *x, enum hw_expected_state state, int64_t at_ms, uint32_t place)
{
	const int64_t most = (INT64_C(1) << 47) - 1;
	x->state = state;
	x->at_ms = at_ms > most ? most : at_ms < 0 ? 0 : at_ms;
	x->place = place;
}

void hw_expected_set_group(struct hw_expected *e, uint32_t i, uint16_t group)
{
	bool unseen = e->all[i].state == HW_EXPECTED_UNSEEN;
	e->unseen_of[e->all[i].group] -= unseen;
	e->all[i].group = group;
	e->unseen_of[group] += unseen;
}

void hw_expected_found(struct hw_expected *e, uint32_t i)
{
	e->all[i].round = e->round;
}
#pragma GCC diagnostic pop

static int append(struct indices *l, uint32_t i)
{
	if (l->n == l->cap) {
		uint32_t cap = l->cap + l->cap / 2 + 16;
		uint32_t *at = hw_pages_grow(l->at, l->cap * sizeof(*at), cap * sizeof(*at));
		if (!at)
			return -ENOMEM;
		l->at = at;
		l->cap = cap;
	}
	l->at[l->n++] = i;
	return 0;
}

static void free_indices(struct indices *l)
{
	hw_pages_free(l->at, l->cap * sizeof(*l->at));
}

/* --- the heap ----------------------------------------------------------------- */

static void put_at(struct hw_expected *e, uint32_t k, uint32_t i)
{
	e->heap.at[k] = i;
	e->all[i].place = k;
}

static bool earlier(const struct hw_expected *e, uint32_t a, uint32_t b)
{
	return e->all[a].at_ms < e->all[b].at_ms;
}

static void sift_up(struct hw_expected *e, uint32_t k)
{
	uint32_t i = e->heap.at[k];
	for (; k > 0 && earlier(e, i, e->heap.at[(k - 1) / 2]); k = (k - 1) / 2)
		put_at(e, k, e->heap.at[(k - 1) / 2]);
	put_at(e, k, i);
}

static void sift_down(struct hw_expected *e, uint32_t k)
{
	uint32_t i = e->heap.at[k], n = e->heap.n;
	for (uint32_t c; (c = 2 * k + 1) < n; k = c) {
		if (c + 1 < n && earlier(e, e->heap.at[c + 1], e->heap.at[c]))
			c++;
		if (!earlier(e, e->heap.at[c], i))
			break;
		put_at(e, k, e->heap.at[c]);
	}
	put_at(e, k, i);
}

/* Removes an id from the heap or from the unseen ids. */
static void leave(struct hw_expected *e, uint32_t i)
{
	struct entry *x = &e->all[i];
	uint32_t k = x->place, last;
	if (x->state == HW_EXPECTED_WAITS || x->state == HW_EXPECTED_REFUSED) {
		last = e->heap.at[--e->heap.n];
		if (last != i) {
			put_at(e, k, last);
			sift_up(e, k);
			sift_down(e, e->all[last].place);
		}
	} else if (x->state == HW_EXPECTED_UNSEEN) {
		last = e->unseen.at[--e->unseen.n];
		e->unseen_of[x->group]--;
		e->unseen.at[k] = last;
		e->all[last].place = k;
	}
	set_state(x, HW_EXPECTED_RESTS, 0, 0);
}

void hw_expected_rest(struct hw_expected *e, uint32_t i)
{
	leave(e, i);
}

static int enter_heap(struct hw_expected *e, uint32_t i, enum hw_expected_state state, int64_t at_ms)
{
	leave(e, i);
	int rc = append(&e->heap, i);
	if (rc)
		return rc;
	set_state(&e->all[i], state, at_ms, e->heap.n - 1);
	sift_up(e, e->heap.n - 1);
	return 0;
}

int hw_expected_wait(struct hw_expected *e, uint32_t i, int64_t at_ms)
{
	return enter_heap(e, i, HW_EXPECTED_WAITS, at_ms);
}

int hw_expected_refuse(struct hw_expected *e, uint32_t i, int64_t at_ms)
{
	return enter_heap(e, i, HW_EXPECTED_REFUSED, at_ms);
}

int hw_expected_set_unseen(struct hw_expected *e, uint32_t i, int64_t since_ms)
{
	leave(e, i);
	int rc = append(&e->unseen, i);
	if (rc)
		return rc;
	set_state(&e->all[i], HW_EXPECTED_UNSEEN, since_ms, e->unseen.n - 1);
	e->unseen_of[e->all[i].group]++;
	return 0;
}

uint32_t hw_expected_first(const struct hw_expected *e, int64_t *at_ms)
{
	if (e->heap.n == 0)
		return HW_NIL;
	*at_ms = e->all[e->heap.at[0]].at_ms;
	return e->heap.at[0];
}

uint32_t hw_expected_unseen(const struct hw_expected *e)
{
	return e->unseen.n;
}

uint32_t hw_expected_unseen_of(const struct hw_expected *e, uint16_t group)
{
	return e->unseen_of[group];
}

uint32_t hw_expected_unseen_at(const struct hw_expected *e, uint32_t k)
{
	return e->unseen.at[k];
}

/* --- the table ---------------------------------------------------------------- */

static uint32_t bucket_of(const struct hw_expected *e, const uint8_t *id, size_t len)
{
	uint64_t hash = hw_siphash(1, 3, e->key, id, len);
	uint32_t b = (uint32_t)(hash & ((UINT64_C(1) << e->level) - 1));
	return b < e->split ? (uint32_t)(hash & ((UINT64_C(2) << e->level) - 1)) : b;
}

static const uint8_t *id_of(const struct entry *x)
{
	return x->data + 3;
}

/* Splits the next bucket in two. If memory cannot be allocated, nothing is split and the buckets become longer. */
static void grow(struct hw_expected *e)
{
	uint32_t b = e->split, i = e->buckets.at[b];
	if (append(&e->buckets, HW_NIL) != 0)
		return;
	e->buckets.at[b] = HW_NIL;
	if (++e->split == UINT32_C(1) << e->level) {
		e->split = 0;
		e->level++;
	}
	for (uint32_t next; i != HW_NIL; i = next) {
		uint32_t to = bucket_of(e, id_of(&e->all[i]), e->all[i].data[0]);
		next = e->all[i].next;
		e->all[i].next = e->buckets.at[to];
		e->buckets.at[to] = i;
	}
}

uint32_t hw_expected_find(const struct hw_expected *e, const char *id, size_t len)
{
	if (e->count == 0 || len == 0 || len > HW_ID_MAX)
		return HW_NIL;
	uint32_t i = e->buckets.at[bucket_of(e, (const uint8_t *)id, len)];
	while (i != HW_NIL && (e->all[i].data[0] != len || memcmp(id_of(&e->all[i]), id, len) != 0))
		i = e->all[i].next;
	return i;
}

static int source_of(struct hw_expected *e, const char *name, uint32_t *k)
{
	*k = e->last_source;
	if (*k < e->n_sources && strcmp(e->sources[*k], name) == 0)
		return 0;
	for (*k = 0; *k < e->n_sources && strcmp(e->sources[*k], name) != 0;)
		++*k;
	if (*k == HW_EXPECTED_SOURCES)
		return -ENOSPC;
	if (*k == e->n_sources) {
		char **all = realloc(e->sources, (e->n_sources + 1) * sizeof(*all));
		if (!all)
			return -ENOMEM;
		e->sources = all;
		if (!(all[*k] = strdup(name)))
			return -ENOMEM;
		e->n_sources++;
	}
	e->last_source = *k;
	return 0;
}

static uint32_t new_entry(struct hw_expected *e)
{
	uint32_t i = e->free;
	if (i != HW_NIL) {
		e->free = e->all[i].next;
		return i;
	}
	if (e->bound == e->cap) {
		uint32_t cap = e->cap + e->cap / 2 + 16;
		struct entry *all = hw_pages_grow(e->all, e->cap * sizeof(*all), cap * sizeof(*all));
		if (!all)
			return HW_NIL;
		e->all = all;
		e->cap = cap;
	}
	return e->bound++;
}

static void put_length(uint8_t *at, size_t len)
{
	at[0] = (uint8_t)(len & 0xff);
	at[1] = (uint8_t)(len >> 8);
}

static size_t length_at(const uint8_t *at)
{
	return at[0] | (size_t)at[1] << 8;
}

/* Returns heap memory. */
static uint8_t *pack(const struct hw_expected_view *v)
{
	size_t end = 3 + v->id.len + v->text.len;
	uint8_t *data = malloc(end + (v->parents.len > 0 ? 2 + v->parents.len : 0));
	if (!data)
		return NULL;
	data[0] = (uint8_t)v->id.len;
	put_length(data + 1, v->text.len);
	memcpy(data + 3, v->id.text, v->id.len);
	if (v->text.len > 0)
		memcpy(data + 3 + v->id.len, v->text.text, v->text.len);
	if (v->parents.len > 0) {
		put_length(data + end, v->parents.len);
		memcpy(data + end + 2, v->parents.text, v->parents.len);
	}
	return data;
}

static uint32_t add(struct hw_expected *e, uint8_t *data)
{
	uint32_t i = new_entry(e);
	if (i == HW_NIL)
		return HW_NIL;
	struct entry *x = &e->all[i];
	memset(x, 0, sizeof(*x));
	x->data = data;
	set_state(x, HW_EXPECTED_RESTS, 0, 0);
	uint32_t b = bucket_of(e, id_of(x), data[0]);
	x->next = e->buckets.at[b];
	e->buckets.at[b] = i;
	if (++e->count > e->buckets.n)
		grow(e);
	return i;
}

int hw_expected_put(struct hw_expected *e, const struct hw_expected_view *v, uint32_t *i)
{
	uint32_t source;
	if (v->id.len == 0 || v->id.len > HW_ID_MAX || v->text.len > HW_EXPECTED_TEXT_MAX ||
	    v->parents.len > HW_EXPECTED_TEXT_MAX)
		return -EINVAL;
	int rc = source_of(e, v->source ? v->source : "", &source);
	if (rc)
		return rc;
	uint8_t *data = pack(v);
	if (!data)
		return -ENOMEM;
	*i = hw_expected_find(e, v->id.text, v->id.len);
	if (*i != HW_NIL) {
		free(e->all[*i].data);
		e->all[*i].data = data;
	} else if ((*i = add(e, data)) == HW_NIL) {
		free(data);
		return -ENOMEM;
	}
	set_values(e, &e->all[*i], v, source);
	hw_expected_set_group(e, *i, v->group);
	return 0;
}

void hw_expected_remove(struct hw_expected *e, uint32_t i)
{
	struct entry *x = &e->all[i];
	uint32_t *at = &e->buckets.at[bucket_of(e, id_of(x), x->data[0])];
	leave(e, i);
	while (*at != i)
		at = &e->all[*at].next;
	*at = x->next;
	free(x->data);
	x->data = NULL;
	x->next = e->free;
	e->free = i;
	e->count--;
}

/* --- questions ---------------------------------------------------------------- */

struct hw_expected_view hw_expected_at(const struct hw_expected *e, uint32_t i)
{
	const struct entry *x = &e->all[i];
	const char *id = (const char *)id_of(x);
	struct hw_id text = {id + x->data[0], length_at(x->data + 1)};
	const char *end = text.text + text.len;
	return (struct hw_expected_view){
		.id = {id, x->data[0]},
		.text = text,
		.parents = x->parents ? (struct hw_id){end + 2, length_at((const uint8_t *)end)} : (struct hw_id){0},
		.source = e->sources[x->source],
		.since_ms = x->since_ms,
		.timeout_ms = x->timeout_ms,
		.group = x->group,
		.is_described = x->described,
		.state = (enum hw_expected_state)x->state,
		.at_ms = x->at_ms,
		.place = x->place};
}

bool hw_expected_is_used(const struct hw_expected *e, uint32_t i)
{
	return i < e->bound && e->all[i].data;
}

uint32_t hw_expected_bound(const struct hw_expected *e)
{
	return e->bound;
}

uint32_t hw_expected_count(const struct hw_expected *e)
{
	return e->count;
}

void hw_expected_reading(struct hw_expected *e)
{
	e->round = (uint16_t)((e->round + 1) & ROUNDS);
}

bool hw_expected_is_missing(const struct hw_expected *e, uint32_t i)
{
	return hw_expected_is_used(e, i) && e->all[i].round != e->round;
}

/* --- life --------------------------------------------------------------------- */

struct hw_expected *hw_expected_new(const uint8_t key[16])
{
	struct hw_expected *e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	memcpy(e->key, key, sizeof(e->key));
	e->free = HW_NIL;
	if (append(&e->buckets, HW_NIL) == 0)
		return e;
	free(e);
	return NULL;
}

void hw_expected_free(struct hw_expected *e)
{
	if (!e)
		return;
	for (uint32_t i = 0; i < e->bound; i++)
		free(e->all[i].data);
	for (uint32_t k = 0; k < e->n_sources; k++)
		free(e->sources[k]);
	free(e->sources);
	hw_pages_free(e->all, e->cap * sizeof(*e->all));
	free_indices(&e->buckets);
	free_indices(&e->heap);
	free_indices(&e->unseen);
	free(e);
}

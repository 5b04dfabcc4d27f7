/* SPDX-License-Identifier: MIT */
/* See parents.h. Cost: constant for each bond. A parent that is new for a child also costs a look-up of its id. */
#include "parents.h"

#include <errno.h>
#include <string.h>

#include "pages.h"

#define BONDS_MIN 256

void hw_parents_fini(struct hw_parents *p)
{
	hw_registry_free(p->names);
	hw_pages_free(p->parent, p->n_parents * sizeof(*p->parent));
	hw_pages_free(p->bond, p->n_bonds * sizeof(*p->bond));
	hw_pages_free(p->block_of, p->n_block_of * sizeof(*p->block_of));
	hw_pages_free(p->block, p->n_blocks * sizeof(*p->block));
	hw_registry_free(p->texts);
	hw_pages_free(p->uses, p->n_uses * sizeof(*p->uses));
	hw_pages_free(p->text_of, p->n_text_of * sizeof(*p->text_of));
	*p = (struct hw_parents){.names = NULL};
}

/* Grows an array of `*n` elements so that the index `at` is valid. Returns false if there is no memory. */
static bool fit(void **array, uint32_t *n, uint32_t at, size_t size)
{
	if (at < *n)
		return true;
	uint32_t more = *n + *n / 2 > at ? *n + *n / 2 : at + BONDS_MIN;
	void *grown = hw_pages_grow(*array, *n * size, more * size);
	if (!grown)
		return false;
	*array = grown;
	*n = more;
	return true;
}

static struct hw_parent_cell *make_cell(struct hw_parents *p, uint32_t record)
{
	uint32_t at = record / HW_PARENT_CELLS;
	if (!fit((void **)&p->block_of, &p->n_block_of, at, sizeof(*p->block_of)))
		return NULL;
	if (!p->block_of[at]) {
		if (!fit((void **)&p->block, &p->n_blocks, p->used_blocks, sizeof(*p->block)))
			return NULL;
		p->block_of[at] = ++p->used_blocks;
	}
	return hw_parents_cell(p, record);
}

/* --- ids of parents ----------------------------------------------------------- */

uint32_t hw_parents_find(const struct hw_parents *p, struct hw_id id)
{
	return p->names ? hw_registry_find(p->names, id.text, id.len) : HW_NIL;
}

struct hw_id hw_parents_id(const struct hw_parents *p, uint32_t parent)
{
	return hw_device_id(hw_registry_base(p->names) + parent);
}

static int make_parent(struct hw_parents *p, const struct hw_registry *records, const uint8_t key[16], struct hw_id id,
                       uint32_t *parent)
{
	if (!p->names && !(p->names = hw_registry_new(key)))
		return -ENOMEM;
	*parent = hw_parents_find(p, id);
	if (*parent != HW_NIL)
		return 0;
	int rc = hw_registry_add(p->names, id.text, id.len, parent);
	if (rc == 0 && !fit((void **)&p->parent, &p->n_parents, *parent, sizeof(*p->parent))) {
		hw_registry_remove(p->names, *parent);
		rc = -ENOMEM;
	}
	if (rc != 0)
		return rc;
	p->parent[*parent] = (struct hw_parent){.record = hw_registry_find(records, id.text, id.len),
	                                        .next = HW_NIL,
	                                        .heard_ms = INT64_MIN,
	                                        .returned_ms = INT64_MIN,
	                                        .goodbye_ms = INT64_MIN,
	                                        .down_ms = INT64_MIN};
	return 0;
}

/* Removes a parent without children. A parent that is in the queue is removed only when it leaves the queue. */
static void drop_unused(struct hw_parents *p, uint32_t parent)
{
	if (p->parent[parent].children == 0 && !p->parent[parent].queued)
		hw_registry_remove(p->names, parent);
}

void hw_parents_unqueued(struct hw_parents *p, uint32_t parent)
{
	p->parent[parent].queued = false;
	p->parent[parent].next = HW_NIL;
	drop_unused(p, parent);
}

/* --- bonds -------------------------------------------------------------------- */

/* The index of a new bond, from 1; 0: no memory. */
static uint32_t take_bond(struct hw_parents *p)
{
	uint32_t bond = p->free_bond;
	if (bond) {
		p->free_bond = p->bond[bond - 1].next;
		return bond;
	}
	if (!fit((void **)&p->bond, &p->n_bonds, p->used_bonds, sizeof(*p->bond)))
		return 0;
	return ++p->used_bonds;
}

/* Inserts a new bond before the first bond of the parent's ring. So a scan that began at the first bond ends before it
 * reaches the new one. */
static void join(struct hw_parents *p, uint32_t bond, uint32_t parent)
{
	struct hw_parent *to = &p->parent[parent];
	struct hw_parent_bond *e = &p->bond[bond - 1];
	e->parent = parent;
	if (to->children++ == 0) {
		to->first = e->succ = e->pred = bond;
		return;
	}
	e->succ = to->first;
	e->pred = p->bond[to->first - 1].pred;
	p->bond[e->pred - 1].succ = p->bond[e->succ - 1].pred = bond;
}

static void leave(struct hw_parents *p, uint32_t bond)
{
	struct hw_parent_bond *e = &p->bond[bond - 1];
	struct hw_parent *from = &p->parent[e->parent];
	if (from->sweep.at == bond)
		from->sweep.at = e->succ;
	if (from->scan.at == bond)
		from->scan.at = e->succ;
	if (from->first == bond)
		from->first = e->succ;
	p->bond[e->pred - 1].succ = e->succ;
	p->bond[e->succ - 1].pred = e->pred;
	from->children--;
	drop_unused(p, e->parent);
	*e = (struct hw_parent_bond){.child = HW_NIL, .next = p->free_bond};
	p->free_bond = bond;
}

void hw_parents_walk(const struct hw_parent *p, struct hw_parent_walk *w)
{
	*w = (struct hw_parent_walk){.at = p->first, .left = p->children};
}

uint32_t hw_parents_step(const struct hw_parents *p, uint32_t parent, struct hw_parent_walk *w)
{
	if (w->left > p->parent[parent].children) /* some have left the ring */
		w->left = p->parent[parent].children;
	if (w->left == 0)
		return 0;
	uint32_t bond = w->at;
	w->at = p->bond[bond - 1].succ;
	w->left--;
	__builtin_prefetch(&p->bond[w->at - 1]);
	return bond;
}

static bool is_same(const struct hw_parents *p, const struct hw_parent_cell *c, const struct hw_id *ids, unsigned n)
{
	const struct hw_parent_bond *e = hw_parents_next(p, c->first);
	for (unsigned k = 0; k < n; k++, e = hw_parents_next(p, e->next)) {
		struct hw_id id = e ? hw_parents_id(p, e->parent) : (struct hw_id){"", 0};
		if (id.len != ids[k].len || memcmp(id.text, ids[k].text, id.len) != 0)
			return false;
	}
	return !e;
}

static void drop_bonds(struct hw_parents *p, struct hw_parent_cell *c)
{
	while (c->first) {
		uint32_t bond = c->first;
		c->first = p->bond[bond - 1].next;
		leave(p, bond);
	}
}

/* Sets the parents of a child. Old bonds are removed last. Their parents may be removed with them, and `ids` may
 * point to the ids of these parents. */
int hw_parents_set(struct hw_parents *p, const struct hw_registry *records, const uint8_t key[16], uint32_t child,
                   const struct hw_id *ids, unsigned n, uint32_t hash, bool *changed)
{
	struct hw_parent_cell *c = make_cell(p, child);
	uint32_t bonds[HW_PARENTS_MAX];
	*changed = false;
	if (!c)
		return -ENOMEM;
	if (is_same(p, c, ids, n)) {
		c->hash = hash;
		return 0;
	}
	*changed = true;
	struct hw_parent_cell was = {.first = c->first};
	int rc = 0;
	unsigned made = 0;
	for (; made < n && rc == 0; made++) {
		uint32_t parent;
		rc = make_parent(p, records, key, ids[made], &parent);
		bonds[made] = rc == 0 ? take_bond(p) : 0;
		if (rc == 0 && !bonds[made]) {
			drop_unused(p, parent);
			rc = -ENOMEM;
		}
		if (rc != 0)
			break;
		p->bond[bonds[made] - 1] = (struct hw_parent_bond){.child = child};
		join(p, bonds[made], parent);
	}
	c->first = 0;
	for (unsigned k = made; k > 0; k--) {
		p->bond[bonds[k - 1] - 1].next = c->first;
		c->first = bonds[k - 1];
	}
	c->hash = rc == 0 ? hash : 0;
	drop_bonds(p, &was);
	return rc;
}

void hw_parents_clear(struct hw_parents *p, uint32_t child)
{
	struct hw_parent_cell *c = hw_parents_cell(p, child);
	if (!c)
		return;
	drop_bonds(p, c);
	c->hash = 0;
}

/* --- texts -------------------------------------------------------------------- */

struct hw_id hw_parents_text(const struct hw_parents *p, uint32_t record)
{
	uint32_t text = record < p->n_text_of ? p->text_of[record] : 0;
	return text ? hw_device_id(hw_registry_base(p->texts) + text - 1) : (struct hw_id){0};
}

static void drop_text(struct hw_parents *p, uint32_t record)
{
	if (record >= p->n_text_of || !p->text_of[record])
		return;
	uint32_t at = p->text_of[record] - 1;
	if (--p->uses[at] == 0)
		hw_registry_remove(p->texts, at);
	p->text_of[record] = 0;
}

/* Finds or makes a text. Returns the text's index, or HW_NIL if there is no memory. */
static uint32_t make_text(struct hw_parents *p, const uint8_t key[16], struct hw_id text)
{
	if (!p->texts && !(p->texts = hw_registry_new(key)))
		return HW_NIL;
	uint32_t at = hw_registry_find(p->texts, text.text, text.len);
	if (at != HW_NIL)
		return at;
	if (hw_registry_add(p->texts, text.text, text.len, &at) != 0)
		return HW_NIL;
	if (!fit((void **)&p->uses, &p->n_uses, at, sizeof(*p->uses))) {
		hw_registry_remove(p->texts, at);
		return HW_NIL;
	}
	p->uses[at] = 0;
	return at;
}

int hw_parents_set_text(struct hw_parents *p, const uint8_t key[16], uint32_t record, struct hw_id text, bool *changed)
{
	struct hw_id old = hw_parents_text(p, record);
	*changed = old.len != text.len || (text.len > 0 && memcmp(old.text, text.text, text.len) != 0);
	if (!*changed)
		return 0;
	bool room = fit((void **)&p->text_of, &p->n_text_of, record, sizeof(*p->text_of));
	uint32_t at = room && text.len > 0 ? make_text(p, key, text) : HW_NIL;
	if (at != HW_NIL)
		p->uses[at]++; /* counted before the old text is removed, because `text` may point into the old text */
	drop_text(p, record);
	if (at == HW_NIL)
		return text.len > 0 ? -ENOMEM : 0;
	p->text_of[record] = at + 1;
	return 0;
}

void hw_parents_added(struct hw_parents *p, uint32_t record, struct hw_id id)
{
	uint32_t parent = hw_parents_find(p, id);
	if (parent != HW_NIL)
		p->parent[parent].record = record;
}

void hw_parents_removed(struct hw_parents *p, uint32_t record, struct hw_id id)
{
	uint32_t parent = hw_parents_find(p, id);
	if (parent != HW_NIL)
		p->parent[parent].record = HW_NIL;
	hw_parents_clear(p, record);
	drop_text(p, record);
}

size_t hw_parents_bytes(const struct hw_parents *p)
{
	return p->used_bonds * sizeof(*p->bond) + p->n_block_of * sizeof(*p->block_of) +
	       p->used_blocks * sizeof(*p->block) + p->n_text_of * sizeof(*p->text_of) +
	       (p->names ? hw_registry_bound(p->names) * sizeof(*p->parent) : 0);
}

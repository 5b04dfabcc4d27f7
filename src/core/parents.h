/* SPDX-License-Identifier: MIT */
/*
 * The index of parents: which devices depend on which. A child is a device of the monitor's registry. A parent is an
 * id; a device with that id need not exist. A bond joins a child and a parent. Private to the core.
 *
 * Invariants: each bond is in the list of its child and in the ring of its parent. A parent without children is
 * removed. If it is queued, it is removed when it leaves the queue.
 *
 * Cost: a cell of 8 bytes for each child, and a bond of 20 bytes for each parent of a child. Cells are allocated in
 * blocks for 16 neighbouring records, so a block with one child costs 16 cells. A monitor without parents has no index.
 */
#ifndef HW_PARENTS_H
#define HW_PARENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "heartwheel/group.h"
#include "heartwheel/registry.h"

#define HW_PARENT_CELLS 16

/* What the index stores for each record: the hash of the text from which the ids of the device's parents were
 * composed (0: unknown), and the device's first bond. */
struct hw_parent_cell {
	uint32_t hash;
	uint32_t first; /* index of the bond, from 1; 0: it has no parent */
};

struct hw_parent_bond {
	uint32_t child;      /* index of its record; HW_NIL: a free bond */
	uint32_t parent;     /* index of the parent */
	uint32_t next;       /* the child's next bond, or the next free bond; counted from 1; 0: there is none */
	uint32_t succ, pred; /* the parent's ring of bonds */
};

/* A walk through the children of a parent, which can stop after each: the next bond, and the number of bonds left. */
struct hw_parent_walk {
	uint32_t at, left;
};

/* A parent. Instants in ms are monotonic; INT64_MIN: never. */
struct hw_parent {
	uint32_t record;   /* of the device with this id; HW_NIL: there is none */
	uint32_t first;    /* the bond with which a scan of the children begins */
	uint32_t children; /* 0: a free parent */
	uint32_t next;     /* the next parent in the queue of offline parents; HW_NIL: this is the last, or not in
	                    * the queue */
	bool queued;
	bool silent;  /* at the last check, it was silent for over half its timeout */
	bool unheard; /* the scan has found a child that cannot be heard here */
	bool rests;   /* it was not judged at the last scan, because a child may prove that it is online */
	bool unsure;  /* it is not known yet whether the children's groups hear */
	struct hw_parent_walk sweep; /* takes the children of an offline parent */
	struct hw_parent_walk scan;  /* looks for the child that proves an online parent */
	int64_t wait_ns;             /* with `unsure`: for how long to wait */
	int64_t heard_ms;            /* its last heartbeat, as of the last check */
	int64_t returned_ms;         /* when the parent was last heard again, after being offline or silent for over
	                              * half its timeout */
	int64_t goodbye_ms;          /* when its last goodbye was read */
	int64_t before_ms;           /* a heartbeat that was read up to this time was sent before that goodbye */
	int64_t down_ms;             /* when the parent went offline in this run: `before_ms` or its deadline */
	int64_t down_seen_ns;        /* monitor's seeing clock, when this node learned that */
	uint64_t end_seq;            /* of its last transition to offline; 0: none in this run */
	int64_t end_ms, end_seen_ns; /* down_ms and down_seen_ns of that transition, also while the parent is online
	                              * again */
};

struct hw_parents {
	struct hw_registry *names;   /* owned: the ids of the parents, with the same indexes as `parent`; NULL: there
	                              * is no parent */
	struct hw_parent *parent;    /* owned */
	uint32_t n_parents;          /* room in `parent` */
	struct hw_parent_bond *bond; /* owned */
	uint32_t n_bonds, used_bonds, free_bond;
	uint32_t *block_of; /* owned: for each HW_PARENT_CELLS records the number of their block, from 1; 0: no block */
	uint32_t n_block_of;
	struct hw_parent_cell (*block)[HW_PARENT_CELLS]; /* owned */
	uint32_t n_blocks, used_blocks;
	/* Texts of devices: each once, with the number of cells that have it. */
	struct hw_registry *texts; /* owned; NULL: there are none */
	uint32_t *uses;            /* owned */
	uint32_t n_uses;
	uint32_t *text_of; /* owned: for each record the index of its text, from 1; 0: it has none */
	uint32_t n_text_of;
};

void hw_parents_fini(struct hw_parents *p);

/* Returns the cell of a record, or NULL. */
static inline struct hw_parent_cell *hw_parents_cell(const struct hw_parents *p, uint32_t record)
{
	uint32_t at = record / HW_PARENT_CELLS;
	if (at >= p->n_block_of || !p->block_of[at])
		return NULL;
	return &p->block[p->block_of[at] - 1][record % HW_PARENT_CELLS];
}

/* hw_parents_first(): returns the first bond of a child, or NULL. hw_parents_next(): returns the bond with this
 * number, which counts from 1; 0: NULL. */
static inline struct hw_parent_bond *hw_parents_next(const struct hw_parents *p, uint32_t bond)
{
	return bond ? &p->bond[bond - 1] : NULL;
}

static inline struct hw_parent_bond *hw_parents_first(const struct hw_parents *p, uint32_t record)
{
	const struct hw_parent_cell *c = hw_parents_cell(p, record);
	return c ? hw_parents_next(p, c->first) : NULL;
}

/* Returns the parent of this id, or HW_NIL. */
uint32_t hw_parents_find(const struct hw_parents *p, struct hw_id id);
struct hw_id hw_parents_id(const struct hw_parents *p, uint32_t parent);

/*
 * Makes the ids, which are all different, the parents of a child, in this order. `key` is the key for the hashes of
 * ids. `hash` is stored in the child's cell. `records` finds the record of a parent that is new. *changed: whether the
 * child had other parents before. Returns 0 or -ENOMEM; after -ENOMEM the child has some old and some new parents.
 */
int hw_parents_set(struct hw_parents *p, const struct hw_registry *records, const uint8_t key[16], uint32_t child,
                   const struct hw_id *ids, unsigned n, uint32_t hash, bool *changed);

/* hw_parents_added(): a record is new, and its device may be a parent. hw_parents_removed(): a record is removed. */
void hw_parents_added(struct hw_parents *p, uint32_t record, struct hw_id id);
void hw_parents_removed(struct hw_parents *p, uint32_t record, struct hw_id id);
/* Sets a text of the device, at most HW_ID_MAX bytes long; of no length: the device has no text. Devices with the same
 * text share the memory. *changed: whether the device had another text before. Returns 0; or -ENOMEM, and the device
 * has no text. */
int hw_parents_set_text(struct hw_parents *p, const uint8_t key[16], uint32_t record, struct hw_id text, bool *changed);
/* Returns the text of a device; of no length: the device has no text. */
struct hw_id hw_parents_text(const struct hw_parents *p, uint32_t record);

/* Removes all bonds of the child. */
void hw_parents_clear(struct hw_parents *p, uint32_t child);

/* hw_parents_walk() begins a walk. hw_parents_step() returns the next bond, counted from 1; 0: the walk is over. If
 * a child leaves during the walk, the walk may return another child twice. It never omits a child, except those that
 * join during the walk. */
void hw_parents_walk(const struct hw_parent *p, struct hw_parent_walk *w);
uint32_t hw_parents_step(const struct hw_parents *p, uint32_t parent, struct hw_parent_walk *w);
/* Called when the parent has left the queue. Removes a parent without children. */
void hw_parents_unqueued(struct hw_parents *p, uint32_t parent);

/* Bytes in use. For tests and the benchmark. */
size_t hw_parents_bytes(const struct hw_parents *p);

#endif

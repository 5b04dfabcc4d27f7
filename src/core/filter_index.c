/* SPDX-License-Identifier: MIT */
/*
 * See filter_index.h. A node of the tree stands for the levels from the root to it. Node 0 is the root. The root is no
 * node's child, so 0 also means "no node". In `ends` and `next_end`, 0 means "no entry", and n > 0 means entry n - 1.
 */
#include "heartwheel/filter_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/fnv.h"
#include "heartwheel/topic.h"

#define LEVELS_MAX 256 /* in the tree, which limits the recursion */

struct hw_filter_node {
	const char *level; /* borrowed */
	uint32_t len, parent;
	uint32_t plus, hash;  /* the children `+` and `#` */
	uint32_t first, next; /* the list of all children */
	uint32_t ends;        /* the entries of the filter that ends here */
};

struct hw_filter_entry {
	const char *filter; /* borrowed */
	size_t value;
	uint32_t next;
};

struct search {
	const struct hw_filter_index *x;
	hw_filter_found *found;
	void *arg;
};

void hw_filter_index_fini(struct hw_filter_index *x)
{
	free(x->nodes);
	free(x->entries);
	free(x->slots);
	*x = (struct hw_filter_index){0};
}

/* --- nodes ----------------------------------------------------------------------------------------------------------
 */

static bool is(const char *level, size_t len, char c)
{
	return len == 1 && *level == c;
}

static size_t level_length(const char *s)
{
	size_t n = 0;
	while (s[n] && s[n] != '/')
		n++;
	return n;
}

static const char *level_after(const char *level, size_t len)
{
	return level[len] ? level + len + 1 : NULL;
}

/* Returns the slot of a child, or the free slot where it belongs. */
static uint32_t *slot_of(const struct hw_filter_index *x, uint32_t parent, const char *level, size_t len)
{
	uint64_t h = hw_fnv64(hw_fnv64(HW_FNV64_BEGIN, &parent, sizeof(parent)), level, len);
	for (size_t at = (size_t)(h ^ h >> 32);; at++) {
		uint32_t *slot = &x->slots[at & (x->n_slots - 1)];
		const struct hw_filter_node *n = &x->nodes[*slot];
		if (*slot == 0 || (n->parent == parent && n->len == len && memcmp(n->level, level, len) == 0))
			return slot;
	}
}

static uint32_t child(const struct hw_filter_index *x, uint32_t parent, const char *level, size_t len)
{
	return *slot_of(x, parent, level, len);
}

/* Makes room for `more` nodes. The table of slots is at most half full. */
static int reserve_nodes(struct hw_filter_index *x, size_t more)
{
	size_t cap = x->nodes_cap ? x->nodes_cap : 64;
	while (cap < x->n_nodes + more + 1)
		cap *= 2;
	if (cap == x->nodes_cap)
		return 0;
	uint32_t *slots = cap < UINT32_MAX / 2 ? calloc(2 * cap, sizeof(*slots)) : NULL;
	struct hw_filter_node *nodes = slots ? reallocarray(x->nodes, cap, sizeof(*nodes)) : NULL;
	if (!nodes) {
		free(slots);
		return -ENOMEM;
	}
	free(x->slots);
	x->slots = slots;
	x->n_slots = 2 * cap;
	x->nodes = nodes;
	x->nodes_cap = cap;
	if (x->n_nodes == 0)
		x->nodes[x->n_nodes++] = (struct hw_filter_node){.level = ""};
	for (uint32_t k = 1; k < x->n_nodes; k++)
		*slot_of(x, nodes[k].parent, nodes[k].level, nodes[k].len) = k;
	return 0;
}

static int reserve_entry(struct hw_filter_index *x)
{
	size_t cap = x->entries_cap ? 2 * x->entries_cap : 64;
	if (x->n_entries < x->entries_cap)
		return 0;
	struct hw_filter_entry *entries = cap < UINT32_MAX ? reallocarray(x->entries, cap, sizeof(*entries)) : NULL;
	if (!entries)
		return -ENOMEM;
	x->entries = entries;
	x->entries_cap = cap;
	return 0;
}

static uint32_t add_child(struct hw_filter_index *x, uint32_t parent, const char *level, size_t len)
{
	uint32_t *slot = slot_of(x, parent, level, len);
	if (*slot)
		return *slot;
	struct hw_filter_node *p = &x->nodes[parent];
	uint32_t at = (uint32_t)x->n_nodes++;
	x->nodes[at] =
		(struct hw_filter_node){.level = level, .len = (uint32_t)len, .parent = parent, .next = p->first};
	p->first = *slot = at;
	if (is(level, len, '+'))
		p->plus = at;
	else if (is(level, len, '#'))
		p->hash = at;
	return at;
}

static size_t count_levels(const char *filter)
{
	size_t n = 1;
	for (; *filter; filter++)
		n += *filter == '/';
	return n;
}

int hw_filter_index_add(struct hw_filter_index *x, const char *filter, size_t value)
{
	size_t levels = count_levels(filter);
	if (reserve_nodes(x, levels <= LEVELS_MAX ? levels : 0) != 0 || reserve_entry(x) != 0)
		return -ENOMEM;
	uint32_t at = 0, *ends = &x->deep;
	for (const char *s = filter; levels <= LEVELS_MAX && s;) {
		size_t len = level_length(s);
		at = add_child(x, at, s, len);
		ends = &x->nodes[at].ends;
		s = level_after(s, len);
	}
	x->entries[x->n_entries++] = (struct hw_filter_entry){filter, value, *ends};
	*ends = (uint32_t)x->n_entries;
	return 0;
}

/* --- searches -------------------------------------------------------------------------------------------------------
 */

static bool visit(const struct search *s, uint32_t entry)
{
	for (; entry; entry = s->x->entries[entry - 1].next)
		if (!s->found || s->found(s->arg, s->x->entries[entry - 1].value))
			return true;
	return false;
}

static bool visit_at(const struct search *s, uint32_t node)
{
	return node && visit(s, s->x->nodes[node].ends);
}

static bool covers(const char *wide, const char *narrow)
{
	const struct hw_topic w = {.filter = (char *)(uintptr_t)wide, .filter_len = strlen(wide)},
			      n = {.filter = (char *)(uintptr_t)narrow, .filter_len = strlen(narrow)};
	return hw_topic_covers(&w, &n);
}

static bool equals(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

/* Compares the searched filter with every stored filter one by one, or only with the filters that are not in the
 * tree. */
static bool compare(const struct search *s, const char *filter, bool each,
                    bool (*fits)(const char *stored, const char *filter))
{
	const struct hw_filter_entry *e = s->x->entries;
	for (size_t k = 0; each && k < s->x->n_entries; k++)
		if (fits(e[k].filter, filter) && (!s->found || s->found(s->arg, e[k].value)))
			return true;
	for (uint32_t k = each ? 0 : s->x->deep; k; k = e[k - 1].next)
		if (fits(e[k - 1].filter, filter) && (!s->found || s->found(s->arg, e[k - 1].value)))
			return true;
	return false;
}

/* Visits the stored filters below a node that cover the rest of the searched filter. `rest`: its remaining levels;
 * NULL: there are none. Returns whether a visit has returned true. */
static bool find_covers(const struct search *s, uint32_t at, const char *rest)
{
	const struct hw_filter_node *n = &s->x->nodes[at];
	bool special = at == 0 && *rest == '$'; /* no wildcard matches it */
	if (!special && visit_at(s, n->hash))
		return true;
	if (!rest)
		return visit_at(s, at);
	size_t len = level_length(rest);
	const char *next = level_after(rest, len);
	if (is(rest, len, '#'))
		return false;
	if (n->plus && !special && find_covers(s, n->plus, next))
		return true;
	uint32_t same = is(rest, len, '+') ? 0 : child(s->x, at, rest, len);
	return same && find_covers(s, same, next);
}

/* `topic`: its levels that follow; NULL: none. */
static bool find_topic(const struct search *s, uint32_t at, const char *topic, const char *end)
{
	const struct hw_filter_node *n = &s->x->nodes[at];
	bool special = at == 0 && *topic == '$';
	if (!special && visit_at(s, n->hash))
		return true;
	if (!topic)
		return visit_at(s, at);
	const char *slash = memchr(topic, '/', (size_t)(end - topic)), *next = slash ? slash + 1 : NULL;
	if (n->plus && !special && find_topic(s, n->plus, next, end))
		return true;
	uint32_t same = n->first ? child(s->x, at, topic, (size_t)((slash ? slash : end) - topic)) : 0;
	return same && same != n->plus && same != n->hash && find_topic(s, same, next, end);
}

static bool visit_below(const struct search *s, uint32_t at)
{
	if (visit_at(s, at))
		return true;
	for (uint32_t c = s->x->nodes[at].first; c; c = s->x->nodes[c].next)
		if (visit_below(s, c))
			return true;
	return false;
}

static bool find_overlaps(const struct search *s, uint32_t at, const char *rest)
{
	const struct hw_filter_node *n = &s->x->nodes[at];
	size_t len = rest ? level_length(rest) : 0;
	if (rest && is(rest, len, '#'))
		return visit_below(s, at);
	if (visit_at(s, n->hash))
		return true;
	if (!rest)
		return visit_at(s, at);
	const char *next = level_after(rest, len);
	if (is(rest, len, '+')) {
		for (uint32_t c = n->first; c; c = s->x->nodes[c].next)
			if (c != n->hash && find_overlaps(s, c, next))
				return true;
		return false;
	}
	if (n->plus && find_overlaps(s, n->plus, next))
		return true;
	uint32_t same = child(s->x, at, rest, len);
	return same && find_overlaps(s, same, next);
}

static bool find_equal(const struct search *s, uint32_t at, const char *rest)
{
	while (rest) {
		size_t len = level_length(rest);
		at = child(s->x, at, rest, len);
		if (!at)
			return false;
		rest = level_after(rest, len);
	}
	return visit_at(s, at);
}

static bool find(const struct search *s, const char *filter,
                 bool (*in_tree)(const struct search *, uint32_t, const char *),
                 bool (*fits)(const char *stored, const char *filter))
{
	if (s->x->n_entries == 0)
		return false;
	bool deep = count_levels(filter) > LEVELS_MAX;
	return compare(s, filter, deep, fits) || (!deep && in_tree(s, 0, filter));
}

bool hw_filter_index_equal(const struct hw_filter_index *x, const char *filter, hw_filter_found *found, void *arg)
{
	return find(&(struct search){x, found, arg}, filter, find_equal, equals);
}

bool hw_filter_index_topic(const struct hw_filter_index *x, const char *topic, size_t len, hw_filter_found *found,
                           void *arg)
{
	const struct search s = {x, found, arg};
	if (x->n_entries == 0 || len == 0)
		return false;
	return visit(&s, x->deep) || find_topic(&s, 0, topic, topic + len);
}

bool hw_filter_index_covers(const struct hw_filter_index *x, const char *filter, hw_filter_found *found, void *arg)
{
	return find(&(struct search){x, found, arg}, filter, find_covers, covers);
}

bool hw_filter_index_overlaps(const struct hw_filter_index *x, const char *filter, hw_filter_found *found, void *arg)
{
	return find(&(struct search){x, found, arg}, filter, find_overlaps, hw_topic_filters_overlap);
}

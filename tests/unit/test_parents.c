/* SPDX-License-Identifier: MIT */
/* The index of parents (src/core/parents.h) beside a naive twin, and the patterns of their ids. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../suite.h"
#include "core/parents.h"
#include "heartwheel/pattern.h"

#define CHILDREN 400
#define PARENTS  30

static const uint8_t key[16] = {7};
static struct hw_parents all;
static struct hw_registry *records;

/* The twin: the parents of each child, as numbers. */
static struct {
	unsigned n;
	int parent[HW_PARENTS_MAX];
	uint32_t hash;
} twin[CHILDREN];

static uint64_t state;

static unsigned below(unsigned n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(state >> 33) % n;
}

static struct hw_id name(int k, char buf[16])
{
	return (struct hw_id){buf, (size_t)snprintf(buf, 16, "gateway-%d", k)};
}

static void set(uint32_t child, unsigned n, const int *parent, uint32_t hash)
{
	char text[HW_PARENTS_MAX][16];
	struct hw_id ids[HW_PARENTS_MAX];
	bool changed, differs = twin[child].n != n || memcmp(twin[child].parent, parent, n * sizeof(int)) != 0;
	for (unsigned k = 0; k < n; k++)
		ids[k] = name(parent[k], text[k]);
	ck_assert_int_eq(hw_parents_set(&all, records, key, child, ids, n, hash, &changed), 0);
	ck_assert(changed == differs);
	twin[child].n = n;
	twin[child].hash = hash;
	memcpy(twin[child].parent, parent, n * sizeof(int));
}

static void compare_child(uint32_t child)
{
	const struct hw_parent_cell *c = hw_parents_cell(&all, child);
	ck_assert_uint_eq(c ? c->hash : 0, twin[child].hash);
	const struct hw_parent_bond *e = hw_parents_first(&all, child);
	for (unsigned k = 0; k < twin[child].n; k++, e = hw_parents_next(&all, e->next)) {
		char buf[16];
		struct hw_id id = name(twin[child].parent[k], buf);
		ck_assert_ptr_nonnull(e);
		ck_assert_uint_eq(e->child, child);
		ck_assert_uint_eq(e->parent, hw_parents_find(&all, id));
	}
	ck_assert_ptr_null(e);
}

/* The ring of a parent has each of its children once. */
static void compare_parent(int parent)
{
	char buf[16];
	unsigned n = 0, found = 0;
	uint32_t at = hw_parents_find(&all, name(parent, buf));
	for (uint32_t i = 0; i < CHILDREN; i++)
		for (unsigned k = 0; k < twin[i].n; k++)
			n += twin[i].parent[k] == parent;
	ck_assert((at == HW_NIL) == (n == 0));
	if (n == 0)
		return;
	bool met[CHILDREN] = {false};
	struct hw_parent_walk w;
	hw_parents_walk(&all.parent[at], &w);
	for (uint32_t bond; (bond = hw_parents_step(&all, at, &w)) != 0; found++) {
		ck_assert(!met[all.bond[bond - 1].child]);
		met[all.bond[bond - 1].child] = true;
	}
	ck_assert_uint_eq(found, n);
	ck_assert_uint_eq(all.parent[at].children, n);
}

static void setup(void)
{
	all = (struct hw_parents){.names = NULL};
	records = hw_registry_new(key);
	memset(twin, 0, sizeof(twin));
}

static void teardown(void)
{
	hw_parents_fini(&all);
	hw_registry_free(records);
}

START_TEST(test_twin)
{
	state = 0x5eed0000u + (unsigned)_i;
	for (int round = 0; round < 3000; round++) {
		uint32_t child = below(CHILDREN);
		int parent[HW_PARENTS_MAX];
		unsigned n = below(4) ? 1 : below(HW_PARENTS_MAX + 1);
		for (unsigned k = 0; k < n; k++)
			parent[k] = (int)(below(PARENTS / HW_PARENTS_MAX) * HW_PARENTS_MAX + k);
		if (below(8) == 0) {
			hw_parents_clear(&all, child);
			twin[child].n = twin[child].hash = 0;
		} else {
			set(child, n, parent, below(5) + 1);
		}
		compare_child(child);
		if (round % 50 == 0)
			for (int k = 0; k < PARENTS; k++)
				compare_parent(k);
	}
}
END_TEST

/* A walk in pieces meets each child that stays, also while others leave. */
START_TEST(test_walk_while_children_leave)
{
	char buf[16];
	int parent = 3;
	bool met[CHILDREN] = {false}, gone[CHILDREN] = {false};
	struct hw_parent *p;
	for (uint32_t i = 0; i < CHILDREN; i++)
		set(i, 1, &parent, 1);
	uint32_t at = hw_parents_find(&all, name(parent, buf));
	p = &all.parent[at];
	hw_parents_walk(p, &p->sweep);
	state = 0x5eed;
	for (uint32_t bond; (bond = hw_parents_step(&all, at, &p->sweep)) != 0;) {
		met[all.bond[bond - 1].child] = true;
		uint32_t leaver = below(CHILDREN);
		gone[leaver] = true;
		hw_parents_clear(&all, leaver);
	}
	for (uint32_t i = 0; i < CHILDREN; i++)
		ck_assert(met[i] || gone[i]);
}
END_TEST

START_TEST(test_a_parent_finds_its_record)
{
	uint32_t before, after;
	int parent[2] = {1, 2};
	char a[16], b[16];
	ck_assert_int_eq(hw_registry_add(records, "gateway-1", 9, &before), 0);
	set(9, 2, parent, 1);
	ck_assert_int_eq(hw_registry_add(records, "gateway-2", 9, &after), 0);
	ck_assert_uint_eq(all.parent[hw_parents_find(&all, name(1, a))].record, before);
	ck_assert_uint_eq(all.parent[hw_parents_find(&all, name(2, b))].record, HW_NIL);
	hw_parents_added(&all, after, name(2, b));
	hw_parents_removed(&all, before, name(1, a));
	ck_assert_uint_eq(all.parent[hw_parents_find(&all, name(1, a))].record, HW_NIL);
	ck_assert_uint_eq(all.parent[hw_parents_find(&all, name(2, b))].record, after);
}
END_TEST

/* At most 40 bytes a child, also where every second record is one. */
START_TEST(test_bytes_of_a_child)
{
	uint32_t n = 100000;
	for (uint32_t i = 0; i < n; i++) {
		char buf[16];
		struct hw_id id = name((int)i / 1000, buf);
		bool changed;
		ck_assert_int_eq(hw_parents_set(&all, records, key, 2 * i, &id, 1, 1, &changed), 0);
	}
	ck_assert_uint_le(hw_parents_bytes(&all), 40 * n);
}
END_TEST

static const struct {
	const char *text;
	unsigned names; /* UINT_MAX: refused */
	const char *composed;
} patterns[] = {
	{"gateway-{gw}", 1, "gateway-A"},
	{"{gw}", 1, "A"},
	{"{gw}{id}x", 2, "ABx"},
	{"a/{gw}/b", 1, "a/A/b"},
	{"fixed", 0, "fixed"},
	{"", UINT_MAX, NULL},
	{"a{", UINT_MAX, NULL},
	{"a}", UINT_MAX, NULL},
	{"{}", UINT_MAX, NULL},
	{"{a{b}}", UINT_MAX, NULL},
	{"{a b}", UINT_MAX, NULL},
	{"a+", UINT_MAX, NULL},
	{"#", UINT_MAX, NULL},
	{"\x01", UINT_MAX, NULL},
	{"\xff", UINT_MAX, NULL},
	{"{a}{b}{c}{d}{e}{f}{g}{h}{i}", UINT_MAX, NULL},
};

START_TEST(test_pattern)
{
	const struct hw_value values[] = {{"A", 1}, {"B", 1}};
	struct hw_pattern p;
	const char *why = NULL;
	char buf[64];
	int rc = hw_pattern_compile(&p, patterns[_i].text, &why);
	if (patterns[_i].names == UINT_MAX) {
		ck_assert_int_eq(rc, -EINVAL);
		ck_assert_ptr_nonnull(why);
		return;
	}
	ck_assert_int_eq(rc, 0);
	ck_assert_uint_eq(p.n_names, patterns[_i].names);
	for (unsigned k = 0; k < p.n_names; k++)
		p.slot[k] = (uint8_t)k;
	size_t len = hw_pattern_compose(&p, values, buf, sizeof(buf));
	ck_assert_uint_eq(len, strlen(patterns[_i].composed));
	ck_assert_mem_eq(buf, patterns[_i].composed, len);
	ck_assert_uint_eq(hw_pattern_compose(&p, values, buf, len - 1), 0);
	hw_pattern_fini(&p);
}
END_TEST

START_TEST(test_an_empty_capture_gives_no_id)
{
	const struct hw_value values[] = {{"", 0}};
	struct hw_pattern p;
	const char *why;
	char buf[64];
	ck_assert_int_eq(hw_pattern_compile(&p, "gateway-{gw}", &why), 0);
	p.slot[0] = 0;
	ck_assert_uint_eq(hw_pattern_compose(&p, values, buf, sizeof(buf)), 0);
	hw_pattern_fini(&p);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("parents");
	TCase *t = tcase_create("index");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, test_twin, 0, 10);
	tcase_add_test(t, test_walk_while_children_leave);
	tcase_add_test(t, test_a_parent_finds_its_record);
	tcase_add_test(t, test_bytes_of_a_child);
	suite_add_tcase(s, t);
	t = tcase_create("patterns");
	tcase_add_loop_test(t, test_pattern, 0, sizeof(patterns) / sizeof(*patterns));
	tcase_add_test(t, test_an_empty_capture_gives_no_id);
	suite_add_tcase(s, t);
	return suite_run(s);
}

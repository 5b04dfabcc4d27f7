/* SPDX-License-Identifier: MIT */
#include "nodes/exclusive.h"

#include <inttypes.h>

#include "heartwheel/print.h"

#define RUN_TEXT 17

static const char *name_of(uint64_t run, char name[RUN_TEXT])
{
	hw_print(name, RUN_TEXT, "%016" PRIx64, run);
	return name;
}

static const struct hw_member *find(const struct hw_exclusive *x, uint64_t run)
{
	char name[RUN_TEXT];
	return hw_members_find(&x->seen, name_of(run, name));
}

void hw_exclusive_init(struct hw_exclusive *x, uint64_t run)
{
	x->run = run;
	hw_members_init(&x->seen, HW_EXCLUSIVE_LEASE_NS);
}

/* Reports all entries to the table of members, as ready members. A run then counts as settled when its count has
 * grown twice. */
static void note(struct hw_exclusive *x, struct hw_mono now, const struct hw_exclusive_entry *entries, size_t n)
{
	struct hw_member_entry members[HW_MEMBERS_MAX];
	char names[HW_MEMBERS_MAX][RUN_TEXT];
	for (size_t i = 0; i < n; i++)
		members[i] = (struct hw_member_entry){.node = name_of(entries[i].run, names[i]),
		                                      .run = entries[i].run,
		                                      .count = entries[i].count,
		                                      .ready = true};
	hw_members_update(&x->seen, now, members, n);
}

static bool is_older(const struct hw_exclusive_entry *e, const struct hw_exclusive_entry *than)
{
	return e->born < than->born || (e->born == than->born && e->run < than->run);
}

enum hw_exclusive_verdict hw_exclusive_check(struct hw_exclusive *x, struct hw_mono now,
                                             const struct hw_exclusive_entry *entries, size_t n, size_t *older)
{
	const struct hw_exclusive_entry *own = NULL;
	enum hw_exclusive_verdict verdict = HW_EXCLUSIVE_FIRST;
	note(x, now, entries, n);
	for (size_t i = 0; i < n; i++)
		if (entries[i].run == x->run)
			own = &entries[i];
	for (size_t i = 0; i < n && (own || x->run == 0) && verdict != HW_EXCLUSIVE_LATER; i++) {
		const struct hw_member *seen = find(x, entries[i].run);
		if (!seen || (own && !is_older(&entries[i], own)))
			continue;
		verdict = hw_member_is_settled(seen) ? HW_EXCLUSIVE_LATER : HW_EXCLUSIVE_WAIT;
		*older = i;
	}
	return verdict;
}

bool hw_exclusive_is_dead(const struct hw_exclusive *x, const struct hw_exclusive_entry *e)
{
	const struct hw_member *seen = find(x, e->run);
	return e->run != x->run && seen && hw_member_is_silent(&x->seen, seen);
}

void hw_exclusive_forget(struct hw_exclusive *x)
{
	hw_members_forget(&x->seen);
}

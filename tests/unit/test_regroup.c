/* SPDX-License-Identifier: MIT */
/* A reload of groups that runs out of memory at any of its allocations changes nothing, and the next one succeeds. */
#include "../suite.h"
#include "world.h"

#define GROUPS 40

static unsigned fails_in; /* the allocation after so many fails; 0: none does */

static bool fails(void)
{
	return fails_in && --fails_in == 0;
}

/* By the linker's --wrap. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return fails() ? NULL : __real_realloc(old, size);
}

char *__wrap_strdup(const char *text)
{
	return fails() ? NULL : __real_strdup(text);
}

static char names[GROUPS][16], filters[GROUPS][32];
static const char *filter[GROUPS];
static struct hw_group_spec groups[GROUPS];

static void make_groups(void)
{
	for (int k = 0; k < GROUPS; k++) {
		snprintf(names[k], sizeof(names[k]), k ? "g%d" : "default", k);
		snprintf(filters[k], sizeof(filters[k]), "new%d/{id}/hb", k);
		filter[k] = filters[k];
		groups[k] = world_group(names[k], 20000);
		groups[k].heartbeat = &filter[k];
		groups[k].n_heartbeat = 1;
		groups[k].canary = true;
	}
}

/* All is as before the reload: the old filters count, the new ones are no group's. */
static void expect_old(struct world *w, unsigned nth)
{
	const struct hw_monitor_stats *s = hw_monitor_stats(w->m);
	uint64_t refused = s->refused[HW_REFUSED_TOPIC];
	world_beat(w, "a", "");
	world_say(w, "new0/b/hb", "", false);
	world_say(w, "new39/c/hb", "", false);
	world_pass(w, S);
	ck_assert_msg(s->refused[HW_REFUSED_TOPIC] == refused + 2, "failed allocation %u: a new filter counts", nth);
	ck_assert_ptr_null(world_device(w, "b"));
	ck_assert_ptr_null(world_device(w, "c"));
	ck_assert_int_eq(hw_monitor_timeout_ms(w->m, world_device(w, "a")), 30000);
	ck_assert_uint_eq(hw_monitor_groups(w->m)->n, 1);
}

START_TEST(without_memory_nothing_changes)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec first = world_group("default", 30000);
	conf.node = "me";
	conf.canaries = true;
	first.canary = true;
	struct world *w = world_new(&conf, &first, 1);
	world_connect(w);
	world_beat(w, "a", "");
	make_groups();
	unsigned nth = 0;
	for (int rc = -1; rc;) {
		fails_in = ++nth;
		rc = hw_monitor_reconfigure(w->m, w->now, &conf, groups, GROUPS);
		fails_in = 0;
		if (!rc)
			break;
		ck_assert_int_eq(rc, -ENOMEM);
		expect_old(w, nth);
	}
	ck_assert_uint_gt(nth, 4 * GROUPS);
	ck_assert_uint_eq(hw_monitor_groups(w->m)->n, GROUPS);
	world_say(w, "new0/a/hb", "", false);
	ck_assert_int_eq(hw_monitor_timeout_ms(w->m, world_device(w, "a")), 20000);
	world_say(w, "new39/c/hb", "", false);
	ck_assert(world_is(w, "c", HW_STATE_ONLINE));
	world_pass(w, 30 * S);
	ck_assert(world_is(w, "c", HW_STATE_OFFLINE));
	/* A group that the file no longer has is kept, and gone back to. */
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &first, 1), 0);
	world_say(w, "new39/d/hb", "", false);
	ck_assert_ptr_null(world_device(w, "d"));
	world_free(w);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("regroup");
	TCase *tc = tcase_create("memory");
	tcase_set_timeout(tc, 120); /* under valgrind */
	tcase_add_test(tc, without_memory_nothing_changes);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

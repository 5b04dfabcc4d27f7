/* SPDX-License-Identifier: MIT */
/* The table of followers against a plain walk over all of them: random filters, transitions, new filters, removals. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../random.h"
#include "../suite.h"
#include "tasks/follow/followers.h"

#define MANY   400
#define ROUNDS 4000

struct one {
	struct hw_follower base;
	char name[16];
	bool in;
	unsigned met;
};

static struct one ones[MANY];
static struct hw_followers table;

static const char *a_name(char out[16], const char *letter)
{
	snprintf(out, 16, "%s%u", letter, (unsigned)random_below(30));
	return out;
}

static void a_filter(char out[400])
{
	char n[5][16];
	size_t len = 1;
	strcpy(out, "{");
	switch (random_below(4)) {
	case 0:
		len += (size_t)sprintf(out + len, "\"ids\":[],");
		break;
	case 1:
		len += (size_t)sprintf(out + len, "\"ids\":[\"%s\",\"%s\"],", a_name(n[0], "d"), a_name(n[1], "d"));
		break;
	case 2:
		len += (size_t)sprintf(out + len, "\"ids\":[\"%s\",\"*\"],", a_name(n[0], "d"));
		break;
	default:
		break;
	}
	if (random_below(2))
		len += (size_t)sprintf(out + len, "\"group\":\"%s\",", a_name(n[2], "g"));
	if (random_below(2))
		len += (size_t)sprintf(out + len, "\"prefix\":\"%.*s\",", (int)random_below(4), a_name(n[3], "d"));
	out[len == 1 ? len++ : len - 1] = '}';
	out[len] = '\0';
}

static void meet(void *arg, struct hw_follower *f)
{
	(void)arg;
	((struct one *)f)->met++;
}

static void check_transition(void)
{
	char device[16], group[16];
	struct hw_device_transition d = {.id = {1, 0}};
	d.device.at = a_name(device, "d");
	d.device.len = strlen(device);
	d.group.at = a_name(group, "g");
	d.group.len = strlen(group);
	for (size_t i = 0; i < MANY; i++)
		ones[i].met = 0;
	hw_followers_match(&table, &d, meet, NULL);
	for (size_t i = 0; i < MANY; i++)
		ck_assert_uint_eq(ones[i].met,
		                  ones[i].in && ones[i].base.filter && hw_filter_matches(ones[i].base.filter, &d));
}

static void change(struct one *o)
{
	char filter[400];
	if (!o->in) {
		memset(&o->base, 0, sizeof(o->base));
		o->base.client = o->name;
		ck_assert_int_eq(hw_followers_add(&table, &o->base), 0);
		o->in = true;
	} else if (random_below(3) == 0) {
		struct hw_follower **at = &table.first;
		while (*at != &o->base)
			at = &(*at)->next;
		hw_followers_remove(&table, at);
		o->in = false;
	} else {
		a_filter(filter);
		ck_assert_int_eq(hw_followers_set_filter(&table, &o->base, filter), 0);
	}
}

START_TEST(test_a_transition_meets_who_wants_it_and_nobody_else)
{
	random_begin(random_seed_of_now());
	ck_assert_int_eq(hw_followers_init(&table), 0);
	for (size_t i = 0; i < MANY; i++)
		snprintf(ones[i].name, sizeof(ones[i].name), "client%zu", i);
	for (size_t round = 0; round < ROUNDS; round++) {
		struct one *o = &ones[random_below(MANY)];
		change(o);
		struct hw_text name = {o->name, strlen(o->name)};
		ck_assert_ptr_eq(hw_followers_find(&table, name), o->in ? &o->base : NULL);
		if (round % 10 == 0)
			check_transition();
	}
	while (table.first)
		hw_followers_remove(&table, &table.first);
	ck_assert_uint_eq(table.clients.n + table.keys.n, 0);
	hw_followers_fini(&table);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("task_followers");
	TCase *tc = tcase_create("table");
	tcase_set_timeout(tc, 120); /* under valgrind */
	tcase_add_test(tc, test_a_transition_meets_who_wants_it_and_nobody_else);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

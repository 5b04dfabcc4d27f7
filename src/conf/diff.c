/* SPDX-License-Identifier: MIT */
/*
 * What a reload changes: two configurations compared key by key, over the table. Groups are told apart by their names;
 * their order counts, because the first that matches takes a device. Quadratic in the number of groups.
 */
#include <stdio.h>
#include <string.h>

#include "conf/conf.h"
#include "conf/options.h"
#include "conf/value.h"

struct diff {
	void (*each)(void *arg, const char *key, bool live);
	void *arg;
};

static const struct hw_conf_group *find(const struct hw_conf *c, const char *name)
{
	for (size_t i = 0; i < c->n_groups; i++)
		if (strcmp(c->groups[i].name, name) == 0)
			return &c->groups[i];
	return NULL;
}

/* "SECTION.KEY", or "group NAME.KEY"; without a key the group alone. */
static void tell(const struct diff *d, const char *section, const char *group, const char *key, bool live)
{
	char name[160];

	snprintf(name, sizeof(name), "%s%s%s%s%s", section, group ? " " : "", group ? group : "", key ? "." : "",
	         key ? key : "");
	d->each(d->arg, name, live);
}

static void diff_keys(const struct diff *d, const char *group, const void *from, const void *to)
{
	for (size_t i = 0; i < hw_conf_n_options; i++) {
		const struct hw_conf_option *o = &hw_conf_options[i];
		if (hw_conf_option_in_group(o) == (group != NULL) && !hw_conf_value_equal(o, from, to))
			tell(d, o->section, group, o->key, o->live);
	}
}

/* The next group of `c` from `*at` on that `other` has as well, or NULL. */
static const struct hw_conf_group *next_common(const struct hw_conf *c, const struct hw_conf *other, size_t *at)
{
	while (*at < c->n_groups) {
		const struct hw_conf_group *g = &c->groups[(*at)++];
		if (find(other, g->name))
			return g;
	}
	return NULL;
}

/* A group that has appeared or gone moves no other: only the order of those that both have is compared. */
static void diff_common_groups(const struct diff *d, const struct hw_conf *from, const struct hw_conf *to)
{
	const struct hw_conf_group *a, *b;
	size_t ia = 0, ib = 0;

	while ((a = next_common(from, to, &ia)) && (b = next_common(to, from, &ib))) {
		if (strcmp(a->name, b->name) != 0)
			tell(d, "group", b->name, NULL, true);
		diff_keys(d, b->name, find(from, b->name), b);
	}
}

static void diff_missing_groups(const struct diff *d, const struct hw_conf *in, const struct hw_conf *missing)
{
	for (size_t i = 0; i < in->n_groups; i++)
		if (!find(missing, in->groups[i].name))
			tell(d, "group", in->groups[i].name, NULL, true);
}

void hw_conf_diff(const struct hw_conf *from, const struct hw_conf *to,
                  void (*each)(void *arg, const char *key, bool live), void *arg)
{
	struct diff d = {each, arg};

	diff_keys(&d, NULL, from, to);
	diff_missing_groups(&d, from, to);
	diff_missing_groups(&d, to, from);
	diff_common_groups(&d, from, to);
}

int hw_conf_keep_restart_values(const struct hw_conf *from, struct hw_conf *to)
{
	int rc = 0;

	for (size_t i = 0; i < hw_conf_n_options && !rc; i++) {
		const struct hw_conf_option *o = &hw_conf_options[i];
		if (!hw_conf_option_in_group(o) && !o->live)
			rc = hw_conf_value_copy(o, from, to);
	}
	return rc;
}

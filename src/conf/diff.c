/* SPDX-License-Identifier: MIT */
/*
 * Compares two configurations key by key, using the table. Named sections are matched by name, and their order matters.
 * The cost is linear in the number of named sections if their order is the same, otherwise quadratic.
 */
#include <stdio.h>
#include <string.h>

#include "conf/conf.h"
#include "conf/table.h"
#include "conf/value.h"

struct diff {
	const struct hw_conf_table *table;
	const struct hw_conf_named *kind; /* kind of the named sections that are compared now; NULL: keys outside
	                                   * named sections */
	void (*each)(void *arg, const char *key, enum hw_conf_change change, bool live);
	void *arg;
};

/* Finds the named section of that name, or NULL. The search begins at `*hint`, which becomes the index after the found
 * section, because most sections have the same order in both files. */
static const void *find(const struct diff *d, const void *conf, const char *name, size_t *hint)
{
	size_t n = hw_conf_named_count(d->kind, conf);
	for (size_t i = 0; i < n; i++) {
		const void *section = hw_conf_named_at(d->kind, conf, (*hint + i) % n);
		if (strcmp(hw_conf_named_name(section), name) != 0)
			continue;
		*hint = (*hint + i) % n + 1;
		return section;
	}
	return NULL;
}

/* Reports a change as "SECTION.KEY" or "KIND NAME.KEY"; without a key only "KIND NAME". */
static void report(const struct diff *d, const char *section, const char *own_name, const char *key,
                   enum hw_conf_change change, bool live)
{
	char name[160];
	snprintf(name, sizeof(name), "%s%s%s%s%s", section, own_name ? " " : "", own_name ? own_name : "",
	         key ? "." : "", key ? key : "");
	d->each(d->arg, name, change, live);
}

/* Compares the keys of two structs and reports the differences. `own_name` NULL: the structs are two configurations of
 * the program. Otherwise they are two sections of d->kind, and `own_name` is the name of both sections. */
static void diff_keys(const struct diff *d, const char *own_name, const void *from, const void *to)
{
	for (size_t i = 0; i < d->table->n_options; i++) {
		const struct hw_conf_option *o = &d->table->options[i];
		if (hw_conf_kind_find(d->table, o->section) == d->kind && !hw_conf_value_equal(o, from, to))
			report(d, o->section, own_name, o->key, HW_CONF_CHANGED, o->live);
	}
}

/* Returns the name of the next section of `conf`, from *at on, that `other` also has; or NULL. `hint` as for find(). */
static const char *next_common(const struct diff *d, const void *conf, const void *other, size_t *at, size_t *hint)
{
	while (*at < hw_conf_named_count(d->kind, conf)) {
		const char *name = hw_conf_named_name(hw_conf_named_at(d->kind, conf, (*at)++));
		if (find(d, other, name, hint))
			return name;
	}
	return NULL;
}

/* Compares the named sections that both configurations have, in their order. Other sections are skipped, so a section
 * that was added or removed does not count as a change of the order. */
static void diff_common(const struct diff *d, const void *from, const void *to)
{
	const char *a, *b;
	size_t ia = 0, ib = 0, of_a = 0, of_b = 0, in_from = 0, in_to = 0;
	while ((a = next_common(d, from, to, &ia, &of_a)) && (b = next_common(d, to, from, &ib, &of_b))) {
		if (strcmp(a, b) != 0)
			report(d, d->kind->kind, b, NULL, HW_CONF_CHANGED, true);
		diff_keys(d, b, find(d, from, b, &in_from), find(d, to, b, &in_to));
	}
}

static void diff_missing(const struct diff *d, const void *in, const void *missing, enum hw_conf_change change)
{
	size_t hint = 0;
	for (size_t i = 0; i < hw_conf_named_count(d->kind, in); i++) {
		const char *name = hw_conf_named_name(hw_conf_named_at(d->kind, in, i));
		if (!find(d, missing, name, &hint))
			report(d, d->kind->kind, name, NULL, change, true);
	}
}

void hw_conf_diff(const void *from, const void *to,
                  void (*each)(void *arg, const char *key, enum hw_conf_change change, bool live), void *arg)
{
	const struct hw_conf_table *t = ((const struct hw_conf_head *)from)->table;
	struct diff d = {t, NULL, each, arg};
	diff_keys(&d, NULL, from, to);
	for (d.kind = t->named; d.kind < t->named + HW_CONF_KINDS_MAX && d.kind->kind; d.kind++) {
		diff_missing(&d, from, to, HW_CONF_REMOVED);
		diff_missing(&d, to, from, HW_CONF_ADDED);
		diff_common(&d, from, to);
	}
}

int hw_conf_keep_restart_values(const void *from, void *to)
{
	const struct hw_conf_table *t = ((const struct hw_conf_head *)from)->table;
	int rc = 0;
	for (size_t i = 0; i < t->n_options && !rc; i++) {
		const struct hw_conf_option *o = &t->options[i];
		if (!hw_conf_option_is_named(t, o) && !o->live)
			rc = hw_conf_value_copy(o, from, to);
	}
	return rc;
}

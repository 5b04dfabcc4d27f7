/* SPDX-License-Identifier: MIT */
/*
 * What a reload changes: two configurations compared key by key, over the table. Named sections are told
 * apart by their names; their order counts. Quadratic in their number.
 */
#include <stdio.h>
#include <string.h>

#include "conf/conf.h"
#include "conf/table.h"
#include "conf/value.h"

struct diff {
	const struct hw_conf_table *table;
	void (*each)(void *arg, const char *key, enum hw_conf_change change, bool live);
	void *arg;
};

/* The named section of `conf` that is called so, or NULL. */
static const void *find(const struct diff *d, const void *conf, const char *name)
{
	for (size_t i = 0; i < hw_conf_named_count(d->table, conf); i++) {
		const void *section = hw_conf_named_at(d->table, conf, i);
		if (strcmp(hw_conf_named_name(section), name) == 0)
			return section;
	}
	return NULL;
}

/* "SECTION.KEY", or "KIND NAME.KEY"; without a key the named section alone. */
static void tell(const struct diff *d, const char *section, const char *own_name, const char *key,
                 enum hw_conf_change change, bool live)
{
	char name[160];
	snprintf(name, sizeof(name), "%s%s%s%s%s", section, own_name ? " " : "", own_name ? own_name : "",
	         key ? "." : "", key ? key : "");
	d->each(d->arg, name, change, live);
}

/* `own_name`: of the named section whose structs these are; NULL: they are the programs'. */
static void diff_keys(const struct diff *d, const char *own_name, const void *from, const void *to)
{
	for (size_t i = 0; i < d->table->n_options; i++) {
		const struct hw_conf_option *o = &d->table->options[i];
		if (hw_conf_option_is_named(d->table, o) == (own_name != NULL) && !hw_conf_value_equal(o, from, to))
			tell(d, o->section, own_name, o->key, HW_CONF_CHANGED, o->live);
	}
}

/* The name of the next section of `conf` from `*at` on that `other` has as well, or NULL. */
static const char *next_common(const struct diff *d, const void *conf, const void *other, size_t *at)
{
	while (*at < hw_conf_named_count(d->table, conf)) {
		const char *name = hw_conf_named_name(hw_conf_named_at(d->table, conf, (*at)++));
		if (find(d, other, name))
			return name;
	}
	return NULL;
}

/* A section that has appeared or gone moves no other: only the order of those that both have is compared. */
static void diff_common(const struct diff *d, const void *from, const void *to)
{
	const char *a, *b;
	size_t ia = 0, ib = 0;
	while ((a = next_common(d, from, to, &ia)) && (b = next_common(d, to, from, &ib))) {
		if (strcmp(a, b) != 0)
			tell(d, d->table->named.kind, b, NULL, HW_CONF_CHANGED, true);
		diff_keys(d, b, find(d, from, b), find(d, to, b));
	}
}

static void diff_missing(const struct diff *d, const void *in, const void *missing, enum hw_conf_change change)
{
	for (size_t i = 0; i < hw_conf_named_count(d->table, in); i++) {
		const char *name = hw_conf_named_name(hw_conf_named_at(d->table, in, i));
		if (!find(d, missing, name))
			tell(d, d->table->named.kind, name, NULL, change, true);
	}
}

void hw_conf_diff(const void *from, const void *to,
                  void (*each)(void *arg, const char *key, enum hw_conf_change change, bool live), void *arg)
{
	struct diff d = {((const struct hw_conf_head *)from)->table, each, arg};
	diff_keys(&d, NULL, from, to);
	diff_missing(&d, from, to, HW_CONF_REMOVED);
	diff_missing(&d, to, from, HW_CONF_ADDED);
	diff_common(&d, from, to);
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

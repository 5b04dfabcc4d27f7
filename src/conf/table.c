/* SPDX-License-Identifier: MIT */
/* See table.h. A look-up scans the table, which is used only at the start and at a reload. */
#include "conf/table.h"

#include <string.h>

const struct hw_conf_family hw_conf_family[] = {
	{"monitor", false},  {"mqtt", false},  {"store", false},  {"redis", false},   {"cluster", false},
	{"keyspace", false}, {"http", false},  {"notify", false}, {"group", true},    {"tasks", false},
	{"history", false},  {"alert", false}, {"silence", true}, {"receiver", true}, {NULL, false}};
_Static_assert(sizeof(hw_conf_family) / sizeof(hw_conf_family[0]) <= HW_CONF_FAMILY_MAX, "a line is kept of each");

bool hw_conf_option_is_named(const struct hw_conf_table *t, const struct hw_conf_option *o)
{
	return hw_conf_kind_find(t, o->section) != NULL;
}

const struct hw_conf_named *hw_conf_kind_find(const struct hw_conf_table *t, const char *section)
{
	for (size_t i = 0; i < HW_CONF_KINDS_MAX && t->named[i].kind; i++)
		if (strcmp(section, t->named[i].kind) == 0)
			return &t->named[i];
	return NULL;
}

int hw_conf_option_find(const struct hw_conf_table *t, const char *section, const char *key)
{
	for (size_t i = 0; i < t->n_options; i++) {
		const struct hw_conf_option *o = &t->options[i];
		if (strcmp(o->section, section) == 0 && (key ? strcmp(o->key, key) == 0 : !o->borrowed))
			return (int)i;
	}
	return -1;
}

int hw_conf_family_find(const char *header)
{
	for (int i = 0; hw_conf_family[i].section; i++) {
		const char *section = hw_conf_family[i].section;
		size_t n = strlen(section);
		if (strncmp(header, section, n) != 0)
			continue;
		if (hw_conf_family[i].named ? header[n] == ' ' || header[n] == '\t' : !header[n])
			return i;
	}
	return -1;
}

bool hw_conf_is_foreign(const struct hw_conf_table *t, int family)
{
	return hw_conf_option_find(t, hw_conf_family[family].section, NULL) < 0;
}

size_t hw_conf_named_count(const struct hw_conf_named *kind, const void *conf)
{
	size_t n;
	memcpy(&n, (const char *)conf + kind->count, sizeof(n));
	return n;
}

void *hw_conf_named_at(const struct hw_conf_named *kind, const void *conf, size_t i)
{
	char *list;
	memcpy(&list, (const char *)conf + kind->list, sizeof(list));
	return list ? list + i * kind->size : NULL;
}

const char *hw_conf_named_name(const void *section)
{
	return *(char *const *)section;
}

/* SPDX-License-Identifier: MIT */
/*
 * Suggests the intended key or section for an unknown one: the same key in another section, or a name that differs by
 * at most two edits. Runs only for a wrong file, and searches the whole table.
 */
#include "conf/suggest.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "conf/draft.h"
#include "heartwheel/print.h"

#define NAME_LEN 32 /* longer than any key */
#define EDITS    2

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t ab = a < b ? a : b;
	return ab < c ? ab : c;
}

/* Returns the Levenshtein distance, calculated row by row. Returns NAME_LEN if a name is too long. */
static size_t distance(const char *a, const char *b)
{
	size_t la = strlen(a), lb = strlen(b), row[NAME_LEN + 1];
	if (la > NAME_LEN || lb > NAME_LEN)
		return NAME_LEN;
	for (size_t j = 0; j <= lb; j++)
		row[j] = j;
	for (size_t i = 1; i <= la; i++) {
		size_t corner = row[0];
		row[0] = i;
		for (size_t j = 1; j <= lb; j++) {
			size_t above = row[j];
			row[j] = min3(above + 1, row[j - 1] + 1, corner + (a[i - 1] != b[j - 1]));
			corner = above;
		}
	}
	return row[lb];
}

/* Whether a known name fits better than the best one so far. Short names must be more similar: if half of a word
 * differs, it is another word and no typing error. */
static bool better(const char *wrong, const char *known, size_t *best)
{
	size_t d = distance(wrong, known);
	if (d > EDITS || 2 * d > strlen(known) || d >= *best)
		return false;
	*best = d;
	return true;
}

const char *hw_conf_nearest(const char *wrong, const char *const *known)
{
	const char *near = NULL;
	for (size_t best = EDITS + 1; *known; known++)
		if (better(wrong, *known, &best))
			near = *known;
	return near;
}

/* The text after a section's name in its header. */
static const char *tail(const char *section)
{
	for (const struct hw_conf_family *f = hw_conf_family; f->section; f++)
		if (strcmp(f->section, section) == 0)
			return f->named ? " NAME" : "";
	return "";
}

void hw_conf_sections_of(const struct hw_conf_table *t, const char *key, char *buf, size_t cap)
{
	size_t at = 0;
	buf[0] = '\0';
	for (size_t i = 0; i < t->n_options && at < cap; i++) {
		const struct hw_conf_option *o = &t->options[i];
		if (strcmp(o->key, key) == 0)
			at += hw_print(buf + at, cap - at, "%s[%s%s]", at ? " or " : "", o->section, tail(o->section));
	}
}

void hw_conf_unknown_key(const struct hw_conf_table *t, const char *section, const char *key, char *why, size_t cap)
{
	const char *near = NULL;
	size_t best = EDITS + 1;
	char where[128];
	hw_conf_sections_of(t, key, where, sizeof(where));
	if (where[0]) {
		snprintf(why, cap, "unknown in [%s%s]: move it to %s, where it belongs", section, tail(section), where);
		return;
	}
	for (size_t i = 0; i < t->n_options; i++) {
		const struct hw_conf_option *o = &t->options[i];
		if (strcmp(o->section, section) == 0 && better(key, o->key, &best))
			near = o->key;
	}
	if (near)
		snprintf(why, cap, "unknown in [%s%s]: did you mean '%s'?", section, tail(section), near);
	else
		snprintf(why, cap, "unknown in [%s%s]: remove it; monitor.conf(5) lists all keys", section,
		         tail(section));
}

void hw_conf_unknown_section(const struct hw_conf_table *t, const char *name, char *why, size_t cap)
{
	const char *near = NULL;
	size_t best = EDITS + 1, at;
	for (size_t i = 0; i < t->n_options; i++)
		if (better(name, t->options[i].section, &best))
			near = t->options[i].section;
	for (const struct hw_conf_family *f = hw_conf_family; f->section; f++)
		if (better(name, f->section, &best))
			near = f->section;
	if (near) {
		snprintf(why, cap, "unknown section: did you mean [%s%s]?", near, tail(near));
		return;
	}
	at = hw_print(why, cap, "unknown section; there are");
	for (size_t i = 0; i < t->n_options && at < cap; i++) {
		const char *section = t->options[i].section;
		if (hw_conf_option_find(t, section, NULL) == (int)i)
			at += hw_print(why + at, cap - at, " [%s%s]", section, tail(section));
	}
}

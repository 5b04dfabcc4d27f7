/* SPDX-License-Identifier: MIT */
/* See draft.h. If memory runs out, the functions here record that in the list of errors. Their callers need not
 * report -ENOMEM again. */
#include "conf/draft.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf/value.h"

/* Returns the array of named sections, with room for one more; or NULL. */
static char *grow(struct hw_conf_draft *d, const struct hw_conf_named *kind, size_t n)
{
	char *field = (char *)d->conf + kind->list, *list;
	memcpy(&list, field, sizeof(list));
	list = reallocarray(list, n + 1, kind->size);
	if (list)
		memcpy(field, &list, sizeof(list));
	return list;
}

int hw_conf_draft_add(struct hw_conf_draft *d, const struct hw_conf_named *kind, const char *name, unsigned line)
{
	size_t n = hw_conf_named_count(kind, d->conf), more = n + 1;
	char *list = grow(d, kind, n);
	struct hw_conf_origins ***all = &d->named[kind - d->table->named];
	if (!list)
		return -ENOMEM;
	struct hw_conf_origins **origins = reallocarray(*all, n + 1, sizeof(struct hw_conf_origins *));
	if (!origins)
		return -ENOMEM;
	*all = origins;
	struct hw_conf_origins *own = calloc(1, sizeof(*own));
	char *copy = strdup(name), *section = list + n * kind->size;
	if (!own || !copy) {
		free(own);
		free(copy);
		return -ENOMEM;
	}
	memset(section, 0, kind->size);
	memcpy(section, &copy, sizeof(copy));
	memcpy(section + kind->line, &line, sizeof(line));
	own->section = line;
	origins[n] = own;
	memcpy((char *)d->conf + kind->count, &more, sizeof(more));
	return 0;
}

/* Stores the line of a value that was appended to a list. */
static int note_line(struct hw_conf_origins *origins, const struct hw_conf_option *o, int at, const void *base,
                     unsigned line)
{
	size_t n = *(const size_t *)(const void *)((const char *)base + o->count_offset);
	unsigned *lines = reallocarray(origins->lines[at], n, sizeof(*lines));
	if (!lines)
		return -ENOMEM;
	origins->lines[at] = lines;
	lines[n - 1] = line;
	return 0;
}

int hw_conf_draft_set(struct hw_conf_draft *d, void *base, struct hw_conf_origins *origins, int at, const char *text,
                      unsigned line, char *why, size_t cap)
{
	const struct hw_conf_option *o = &d->table->options[at];
	int rc = hw_conf_value_set(o, text, base, why, cap);
	if (rc == 0 && line && o->type == HW_CONF_TOPICS)
		rc = note_line(origins, o, at, base, line);
	d->errors.no_memory |= rc == -ENOMEM;
	return rc;
}

void hw_conf_draft_defaults(struct hw_conf_draft *d, const struct hw_conf_named *kind, void *base,
                            struct hw_conf_origins *origins)
{
	char why[512];
	for (size_t i = 0; i < d->table->n_options; i++) {
		const struct hw_conf_option *o = &d->table->options[i];
		if (hw_conf_kind_find(d->table, o->section) != kind || !o->dflt ||
		    (origins->key[i].line && !origins->key[i].bad))
			continue;
		int rc = hw_conf_draft_set(d, base, origins, (int)i, o->dflt, 0, why, sizeof(why));
		if (rc == -EINVAL && !origins->key[i].line)
			hw_conf_wrong(&d->errors, 0, "key", o->key, "%s", why);
	}
}

struct hw_conf_origin *hw_conf_draft_origin(const struct hw_conf_draft *d, struct hw_conf_origins *origins,
                                            const char *section, const char *key)
{
	return &origins->key[hw_conf_option_find(d->table, section, key)];
}

void hw_conf_draft_require(struct hw_conf_draft *d, bool holds, const char *section, const char *key, const char *other,
                           const char *why)
{
	const struct hw_conf_origin *k = hw_conf_draft_origin(d, &d->origins, section, key),
				    *o = hw_conf_draft_origin(d, &d->origins, section, other);
	if (!holds && !k->bad && !o->bad)
		hw_conf_wrong(&d->errors, k->line ? k->line : o->line, "key", k->line ? key : other, "%s", why);
}

void hw_conf_draft_fini(struct hw_conf_draft *d)
{
	for (size_t k = 0; k < d->table->n_options; k++)
		free(d->origins.lines[k]);
	for (size_t kind = 0; kind < HW_CONF_KINDS_MAX && d->table->named[kind].kind; kind++) {
		for (size_t i = 0; i < hw_conf_named_count(&d->table->named[kind], d->conf); i++) {
			for (size_t k = 0; k < d->table->n_options; k++)
				free(d->named[kind][i]->lines[k]);
			free(d->named[kind][i]);
		}
		free(d->named[kind]);
	}
}

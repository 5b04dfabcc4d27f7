/* SPDX-License-Identifier: MIT */
/* Compares the names in braces in a group's templates with the names in its id. Each template must already be valid
 * by itself. */
#ifndef HW_NAMES_H
#define HW_NAMES_H

#include <stdbool.h>
#include <stddef.h>

enum hw_names_of {
	HW_NAMES_FILTER,  /* the names of the id, and also {id} */
	HW_NAMES_GOODBYE, /* the same; the filter ends at the first space */
	HW_NAMES_STATUS,  /* the names of the id */
	HW_NAMES_IGNORE   /* some names of the id, and also {id} */
};

/* The end of the filter in a template. */
const char *hw_names_filter_end(const char *text, enum hw_names_of of);

/* Finds the next level `{name}` or `{name...}` from `*text` on, and moves `*text` past it. Returns false if there is
 * none. */
bool hw_names_next(const char **text, const char *end, const char **name, size_t *len, bool *several);

bool hw_names_any(const char *text);
/* Whether a template, up to `end`, has this name. */
bool hw_names_has(const char *text, const char *end, const char *name, size_t len);

/* Returns true, with the reason in `why`, if the names in a template do not match the names in the id. For filters,
 * `id` also contains the names of the parents. */
bool hw_names_wrong(const char *text, const char *id, enum hw_names_of of, char *why, size_t cap);

#endif

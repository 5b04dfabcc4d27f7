/* SPDX-License-Identifier: MIT */
/*
 * The names in braces of a group's templates, as text: which of them has which. Each template is right by itself when
 * it comes here.
 */
#ifndef HW_NAMES_H
#define HW_NAMES_H

#include <stdbool.h>
#include <stddef.h>

enum hw_names_of {
	HW_NAMES_FILTER,  /* those of the id, and {id} besides */
	HW_NAMES_GOODBYE, /* the same; the filter ends at the first space */
	HW_NAMES_STATUS,  /* those of the id */
	HW_NAMES_IGNORE   /* some of the id, and {id} besides */
};

/* Where the filter of a template ends. */
const char *hw_names_filter_end(const char *text, enum hw_names_of of);

/* The name in the first `{name}` or `{name...}` that is a level at `*text`, which moves behind it; false: none. */
bool hw_names_next(const char **text, const char *end, const char **name, size_t *len, bool *several);

bool hw_names_any(const char *text);

/* Whether the names of a template do not fit those of the id; then `why` says so. */
bool hw_names_wrong(const char *text, const char *id, enum hw_names_of of, char *why, size_t cap);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A configuration that is being read: its values so far, their line numbers, and the errors. Used by src/conf, and by
 * the rules of the programs' tables.
 */
#ifndef HW_CONF_DRAFT_H
#define HW_CONF_DRAFT_H

#include <stdbool.h>
#include <stddef.h>

#include "conf/errors.h"
#include "conf/table.h"

/* The line number of a key (0: the file does not have it), and whether its value was refused. Rules skip refused
 * values. */
struct hw_conf_origin {
	unsigned line;
	bool bad;
};

/* The origins of the keys of one named section, or of all keys outside named sections. The index is that of the
 * table. */
struct hw_conf_origins {
	unsigned section; /* line of the named section's header */
	struct hw_conf_origin key[HW_CONF_OPTIONS_MAX];
	unsigned *lines[HW_CONF_OPTIONS_MAX]; /* for each option that is a list: the line of each value; owned; NULL:
	                                       * the values are defaults */
};

struct hw_conf_draft {
	const struct hw_conf_table *table; /* borrowed */
	struct hw_conf_head *conf;         /* the program's struct; passed to the caller at the end */
	struct hw_conf_errlist errors;
	struct hw_conf_origins origins;                    /* of all keys outside of named sections */
	struct hw_conf_origins **named[HW_CONF_KINDS_MAX]; /* by kind: one per section, in the order of the file */
};

/* Adds a named section of a kind of the table. `line`: the line of its header (0: none). Returns 0 or -ENOMEM. */
int hw_conf_draft_add(struct hw_conf_draft *d, const struct hw_conf_named *kind, const char *name, unsigned line);

/*
 * Checks a value and stores it in the field of option `at`. `base` and `origins` belong to the section of the key.
 * Stores the line number of a list's value, unless it is 0. Returns 0, -ENOMEM, or -EINVAL with the reason in `why`.
 */
int hw_conf_draft_set(struct hw_conf_draft *d, void *base, struct hw_conf_origins *origins, int at, const char *text,
                      unsigned line, char *why, size_t cap);

/*
 * Sets the default of each key that the file does not have or whose value was refused, so that each field has a value.
 * `base` is the struct of a named section of `kind`. If `base` is NULL, the keys outside named sections get their
 * defaults.
 */
void hw_conf_draft_defaults(struct hw_conf_draft *d, const struct hw_conf_named *kind, void *base,
                            struct hw_conf_origins *origins);

struct hw_conf_origin *hw_conf_draft_origin(const struct hw_conf_draft *d, struct hw_conf_origins *origins,
                                            const char *section, const char *key);

/*
 * Applies a rule about two keys of a section, unless one of their values was refused. If `holds` is false, reports
 * `why` for `key`, or for `other` if the file does not have `key`.
 */
void hw_conf_draft_require(struct hw_conf_draft *d, bool holds, const char *section, const char *key, const char *other,
                           const char *why);

/* Returns the word of `known` (which ends with NULL) that differs from a wrong word by at most two edits; or NULL. */
const char *hw_conf_nearest(const char *wrong, const char *const *known);

/* Frees everything except `conf` and `errors`. */
void hw_conf_draft_fini(struct hw_conf_draft *d);

#endif

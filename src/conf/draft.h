/* SPDX-License-Identifier: MIT */
/*
 * A configuration while it is made: the values read so far, where each was given, and what is wrong. For src/conf, and
 * for the rules of the programs' tables.
 */
#ifndef HW_CONF_DRAFT_H
#define HW_CONF_DRAFT_H

#include <stdbool.h>
#include <stddef.h>

#include "conf/errors.h"
#include "conf/table.h"

/* Where a key was given (0: not), and whether its value was refused: then nothing is concluded from it. */
struct hw_conf_mark {
	unsigned line;
	bool bad;
};

/* The marks of the keys of a named section, or of all the others, by their place in the table. */
struct hw_conf_marks {
	unsigned section; /* the line of a named section's header */
	struct hw_conf_mark key[HW_CONF_OPTIONS_MAX];
	unsigned *lines[HW_CONF_OPTIONS_MAX]; /* of a list: of each of its values; on the heap; NULL: defaults */
};

struct hw_conf_draft {
	const struct hw_conf_table *table; /* borrowed */
	struct hw_conf_head *conf;         /* the program's struct; the loader's in the end */
	struct hw_conf_errlist errors;
	struct hw_conf_marks marks;   /* of all keys that are not a named section's */
	struct hw_conf_marks **named; /* of a named section each, in the order of the file */
};

/* Adds a named section whose header is in that line (0: in none). 0 or -ENOMEM. */
int hw_conf_draft_add(struct hw_conf_draft *d, const char *name, unsigned line);

/*
 * Judges a value and puts it into the field of the option at `at`; `base` and `marks` are those of its section. Notes
 * the line of a list's value, unless it is 0. Returns 0, -ENOMEM, or -EINVAL with the reason in `why`.
 */
int hw_conf_draft_set(struct hw_conf_draft *d, void *base, struct hw_conf_marks *marks, int at, const char *text,
                      unsigned line, char *why, size_t cap);

/*
 * Gives what was not given its default, of the section kind that is named (`named`, of the one at `base`) or of all
 * others. A value that was refused is replaced, too, so that no field is left without one.
 */
void hw_conf_draft_defaults(struct hw_conf_draft *d, bool named, void *base, struct hw_conf_marks *marks);

struct hw_conf_mark *hw_conf_draft_mark(const struct hw_conf_draft *d, struct hw_conf_marks *marks, const char *section,
                                        const char *key);

/*
 * Of two keys of one section: the rule `holds`, unless it rests on a value that was refused. `why` is said of `key`, or
 * of `other` where `key` is not in the file.
 */
void hw_conf_draft_require(struct hw_conf_draft *d, bool holds, const char *section, const char *key, const char *other,
                           const char *why);

/* The one of `known` (NULL ends them) that is an edit or two away from a word that is none of them, or NULL. */
const char *hw_conf_nearest(const char *wrong, const char *const *known);

/* Releases all but `conf` and `errors`. */
void hw_conf_draft_fini(struct hw_conf_draft *d);

#endif

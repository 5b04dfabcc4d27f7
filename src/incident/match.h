/* SPDX-License-Identifier: MIT */
/*
 * Which devices a silence or a receiver is for. A matcher has lines, and a line has terms: `group:GLOB`, `id:GLOB` and
 * `label:NAME=GLOB`. A device matches a line if it matches all terms of the line. It matches the matcher if it matches
 * at least one line. A matcher without lines matches every device.
 *
 * In a glob, `*` stands for any text and `?` for one byte. If a value contains blanks, the term or the value is in
 * double quotes.
 */
#ifndef HW_INCIDENT_MATCH_H
#define HW_INCIDENT_MATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "heartwheel/glob.h"

#define HW_MATCH_TERMS 64   /* in all lines */
#define HW_MATCH_TEXT  4096 /* bytes of all lines */

struct hw_match; /* opaque */

/* The values of a device that are compared. `labels` has a line NAME=VALUE for each label. NULL: unknown or none. */
struct hw_match_subject {
	const char *id, *group, *labels;
};

/* Parses the lines of `text`, which are separated by newlines. Returns 0, -EINVAL or -ENOMEM. The caller frees *out. */
int hw_match_parse(const char *text, struct hw_match **out);
void hw_match_free(struct hw_match *m);
/* Returns the glob of the first term `group:` from term *k on, and sets *k to the term after it; NULL: there is
 * none. */
const char *hw_match_group(const struct hw_match *m, size_t *k);
/* Returns the name of the first term `label:` from term *k on, likewise. */
const char *hw_match_label(const struct hw_match *m, size_t *k);
/* A matcher of NULL matches every device. */
bool hw_match_is(const struct hw_match *m, const struct hw_match_subject *subject);

#endif

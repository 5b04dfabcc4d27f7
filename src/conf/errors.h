/* SPDX-License-Identifier: MIT */
/* The list of errors while a file is parsed. Internal to src/conf. */
#ifndef HW_CONF_ERRORS_H
#define HW_CONF_ERRORS_H

#include <stdbool.h>
#include <stddef.h>

#include "conf/conf.h"

struct hw_conf_found {
	unsigned line; /* 0: no line */
	size_t order;  /* order of discovery, to sort errors of one line */
	char *text;
};

struct hw_conf_errlist {
	const char *path; /* borrowed */
	struct hw_conf_found *found;
	size_t n, cap;
	size_t more; /* errors beyond HW_CONF_ERRORS_MAX */
	bool no_memory;
};

/* Adds an error. `what` is "key" or "section", and `name` is its name, which is made printable. If both are NULL, the
 * error is about the whole file. */
void hw_conf_wrong(struct hw_conf_errlist *l, unsigned line, const char *what, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* Whether there was any error, or a lack of memory. */
bool hw_conf_any_wrong(const struct hw_conf_errlist *l);

/* Sorts the list by line, moves it to `out` and empties it. */
void hw_conf_hand_over(struct hw_conf_errlist *l, struct hw_conf_errors *out);

/*
 * Copies at most `cap` - 1 bytes of a text for a message. If the text is longer, the copy ends with "...". All bytes
 * except printable ASCII become '?', because the message may be shown on a terminal or in JSON. Returns `buf`.
 */
const char *hw_conf_shown(const char *text, char *buf, size_t cap);

#endif

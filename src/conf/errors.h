/* SPDX-License-Identifier: MIT */
/*
 * The list of what is wrong, while it grows. Internal to src/conf.
 */
#ifndef HW_CONF_ERRORS_H
#define HW_CONF_ERRORS_H

#include <stdbool.h>
#include <stddef.h>

#include "conf/conf.h"

#define HW_CONF_ERRORS_MAX 1000 /* more are counted: somebody gave us another file than he meant */

struct hw_conf_found {
	unsigned line; /* 0: none to name */
	size_t order;  /* of discovery, to sort by where lines are the same */
	char *text;
};

struct hw_conf_errlist {
	const char *path; /* borrowed */
	struct hw_conf_found *found;
	size_t n, cap;
	size_t more; /* beyond HW_CONF_ERRORS_MAX */
	bool no_memory;
};

/* `what` is "key" or "section", and `name` its name, made fit to print here; or both NULL: the file as a whole. */
void hw_conf_wrong(struct hw_conf_errlist *l, unsigned line, const char *what, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* Whether anything was wrong, lack of memory included. */
bool hw_conf_any_wrong(const struct hw_conf_errlist *l);

/* Sorts the list by line, moves it to `out` and empties it. */
void hw_conf_hand_over(struct hw_conf_errlist *l, struct hw_conf_errors *out);

/*
 * Copies text for a message, at most `cap` - 1 bytes of it ("..." tells that it was cut): what is not printable ASCII
 * becomes '?', because the message may end on a terminal or in JSON. Returns `buf`.
 */
const char *hw_conf_shown(const char *text, char *buf, size_t cap);

#endif

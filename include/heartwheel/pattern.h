/* SPDX-License-Identifier: MIT */
/* A pattern: text with names in braces, which stand for the captures of a topic template. The result is no topic, so a
 * name may stand anywhere in it: `gateway-{gw}`. */
#ifndef HEARTWHEEL_PATTERN_H
#define HEARTWHEEL_PATTERN_H

#include <stddef.h>
#include <stdint.h>

#include "heartwheel/topic.h"

struct hw_pattern {
	char *text; /* owned */
	unsigned n_names;
	uint8_t slot[HW_CAPTURES_MAX]; /* per name, in order: the index of its value */
};

/* Compiles `text`. Returns 0, -ENOMEM, or -EINVAL with `*why`, a static sentence without a full stop. */
int hw_pattern_compile(struct hw_pattern *p, const char *text, const char **why);
void hw_pattern_fini(struct hw_pattern *p);

/* Returns the name at position `k`. */
struct hw_value hw_pattern_name(const struct hw_pattern *p, unsigned k);

/* Writes the text with its values, without a NUL. Returns its length; 0: it does not fit, or a value is empty. */
size_t hw_pattern_compose(const struct hw_pattern *p, const struct hw_value *values, char *buf, size_t cap);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Topic templates: MQTT topic filters in which exactly one level is `{id}`. A template is compiled once, then gives the
 * filter to subscribe to (`{id}` becomes `+`), finds the id in a topic, or (without wildcards) makes a topic from an
 * id. Those of batches, whose ids are in the payload, have no `{id}`.
 */
#ifndef HEARTWHEEL_TOPIC_H
#define HEARTWHEEL_TOPIC_H

#include <stdbool.h>
#include <stddef.h>

#define HW_ID_MAX    255
#define HW_TOPIC_MAX 65535

struct hw_topic {
	char *filter; /* owned: the MQTT filter, `+` in the place of `{id}` */
	size_t filter_len;
	size_t id_at; /* where in `filter` the id's `+` stands; filter_len: there is none */
	bool plain;   /* no wildcard but the id's: matched by comparing what stands before and after */
	char last;    /* the byte that a topic ends with, if it matches; NUL: any */
};

/*
 * Compiles `text`. Returns 0, or -EINVAL with `*why` (a static sentence without a full stop, such as "needs exactly one
 * {id} level") or -ENOMEM. Refused: not exactly one `{id}` level, `{id}` that is not a whole level, a malformed
 * wildcard, an empty text, more than HW_TOPIC_MAX - HW_ID_MAX bytes, a control character, invalid UTF-8, `$share/` (who
 * subscribes adds it). With `publishable` wildcards are refused too. On error there is nothing to release.
 */
int hw_topic_compile(struct hw_topic *t, const char *text, bool publishable, const char **why);
/* The same for a template without `{id}`, which is refused here. It cannot be rendered. */
int hw_topic_compile_batch(struct hw_topic *t, const char *text, const char **why);
void hw_topic_fini(struct hw_topic *t);

/* Whether `topic` (`len` bytes, no NUL needed) matches; if so `*id`, `*id_len` name the bytes of its id level (possibly
 * 0 of them: `a//b`; always for a template without one). Otherwise both are left alone. A template of zeroes matches
 * nothing. */
bool hw_topic_match(const struct hw_topic *t, const char *topic, size_t len, const char **id, size_t *id_len);

/* Whether its last byte alone tells that a topic does not match: cheap, and nearly always so for a template that it is
 * not of. */
static inline bool hw_topic_excludes(const struct hw_topic *t, const char *topic, size_t len)
{
	return t->last != '\0' && len > 0 && topic[len - 1] != t->last;
}

/* Writes the topic for an id into `buf` with a NUL. Returns its length, or -ENAMETOOLONG; -EINVAL for a
 * template that is not publishable. `id` is not judged. */
int hw_topic_render(const struct hw_topic *t, const char *id, size_t id_len, char *buf, size_t cap);

/* Whether `id` may name a device: 1-255 bytes of valid UTF-8 without control characters (C0, DEL, C1), `+` or `#`. */
bool hw_id_valid(const char *id, size_t len);

#endif

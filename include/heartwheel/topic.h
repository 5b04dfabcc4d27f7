/* SPDX-License-Identifier: MIT */
/*
 * Topic templates: MQTT topic filters in which levels may be captures. `{name}` captures one level, `{name...}` one or
 * more; `{id}` alone is by far the most common. A template is compiled once, then gives the filter to subscribe to (`+`
 * in the place of a capture, `#` in that of `{name...}` and what follows it), finds the captured values in a topic, or
 * (without wildcards) makes a topic of values. Those of batches, whose ids are in the payload, have no captures.
 */
#ifndef HEARTWHEEL_TOPIC_H
#define HEARTWHEEL_TOPIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HW_ID_MAX    255
#define HW_TOPIC_MAX 65535

#define HW_CAPTURES_MAX 8
#define HW_CAPTURE_NAME 32 /* bytes of a name: ASCII letters, digits, '_' and '-' */

/* What stands in the place of a capture. It is borrowed. */
struct hw_value {
	const char *text;
	size_t len;
};

#define HW_SLOT_NONE 0xff

struct hw_topic {
	char *filter; /* owned: the MQTT filter */
	size_t filter_len;
	size_t id_at; /* where in `filter` the `+` of the only capture stands; filter_len: there is none, or `walked` */
	bool plain;   /* no wildcard but that `+`: matched by comparing what stands before and after */
	char last;    /* the byte that a topic ends with, if it matches; NUL: any */

	bool walked; /* several captures, or a {name...}: matched level by level along `text` */
	bool wild;   /* it has `+` or `#` */
	char *text;  /* owned: the template */
	unsigned n_captures;
	unsigned tail;                 /* levels behind the {name...} */
	uint8_t slot[HW_CAPTURES_MAX]; /* of its captures, in their order: which value each is; HW_SLOT_NONE: none */
};

enum hw_topic_kind {
	HW_TOPIC_HEARTBEAT, /* at least one capture */
	HW_TOPIC_STATUS,    /* the same, without wildcards: it is published on */
	HW_TOPIC_BATCH,     /* no captures */
	HW_TOPIC_ANY,       /* with captures or without */
	HW_TOPIC_FORM       /* of an id: the same, without wildcards */
};

/*
 * Compiles `text`. Returns 0, or -EINVAL with `*why` (a static sentence without a full stop, such as "needs exactly one
 * {id} level") or -ENOMEM. Refused: captures that `kind` does not allow, or more than HW_CAPTURES_MAX, a name that
 * stands twice, two {name...}, a brace that is no part of a capture that is a whole level, a malformed wildcard, a `#`
 * behind {name...}, an empty text, more than HW_TOPIC_MAX - HW_ID_MAX bytes, a control character, invalid UTF-8,
 * `$share/` (who subscribes adds it). On error there is nothing to release. A capture's value is first its place among
 * the captures of this template.
 */
int hw_topic_compile(struct hw_topic *t, const char *text, enum hw_topic_kind kind, const char **why);
void hw_topic_fini(struct hw_topic *t);

/* The name of its capture `k`, and whether that is a {name...}. */
struct hw_value hw_topic_capture(const struct hw_topic *t, unsigned k, bool *several);

/*
 * Gives its captures the values that captures of the same names have in `form`. Returns 0, or -EINVAL with `*why`:
 * one of the form's is missing, or it has one that the form has not and that is not {id}.
 */
int hw_topic_bind(struct hw_topic *t, const struct hw_topic *form, const char **why);

/* Whether `topic` (`len` bytes, no NUL needed) matches; if so `*id`, `*id_len` name the bytes of its first value
 * (possibly 0 of them: `a//b`; always for a template without one). Otherwise both are left alone. A template of zeroes
 * matches nothing. */
bool hw_topic_match(const struct hw_topic *t, const char *topic, size_t len, const char **id, size_t *id_len);

/* The same with all of its values, which `values` has room for. Those that it has no captures for are left alone. A
 * first level that begins with `$` is like any other here. */
bool hw_topic_values(const struct hw_topic *t, const char *topic, size_t len, struct hw_value *values);

/* Whether each topic that `narrow` matches is one that `wide` matches. May say no of a {name...} with levels behind it,
 * though it be so. */
bool hw_topic_covers(const struct hw_topic *wide, const struct hw_topic *narrow);

/* Whether there is a topic that both MQTT filters match. */
bool hw_topic_filters_overlap(const char *a, const char *b);

/* Whether its last byte alone tells that a topic does not match: cheap, and nearly always so for a template that it is
 * not of. */
static inline bool hw_topic_excludes(const struct hw_topic *t, const char *topic, size_t len)
{
	return t->last != '\0' && len > 0 && topic[len - 1] != t->last;
}

/* Writes the topic for an id into `buf` with a NUL. Returns its length, or -ENAMETOOLONG; -EINVAL for a
 * template that is not publishable, or `walked`. `id` is not judged. */
int hw_topic_render(const struct hw_topic *t, const char *id, size_t id_len, char *buf, size_t cap);

/* The same for any template without wildcards, of values. */
int hw_topic_compose(const struct hw_topic *t, const struct hw_value *values, char *buf, size_t cap);

/*
 * The topic on which a monitor that is called `node` proves to itself that the filter brings what is published on it:
 * `heartwheel-NODE` in the place of every capture and wildcard, also of a `#`; NODE has no `/`. On the heap; NULL
 * without memory.
 */
char *hw_topic_canary(const struct hw_topic *t, const char *node);

/* Whether `id` may name a device: 1-255 bytes of valid UTF-8 without control characters (C0, DEL, C1), `+` or `#`. */
bool hw_id_valid(const char *id, size_t len);

#endif

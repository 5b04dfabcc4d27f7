/* SPDX-License-Identifier: MIT */
/*
 * Topic templates: MQTT topic filters in which levels may be captures. `{name}` captures one level, `{name...}` one or
 * more; `{id}` alone is by far the most common. A template is compiled once. It gives the filter to subscribe to: `+`
 * for a capture, `#` for `{name...}` and all levels after it. It finds the captured values in a topic. Without
 * wildcards, it can also make a topic from values. Templates of batches, whose ids are in the payload, have no
 * captures.
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

/* The value of a capture; borrowed. */
struct hw_value {
	const char *text;
	size_t len;
};

#define HW_SLOT_NONE 0xff

struct hw_topic {
	char *filter; /* owned: the MQTT filter */
	size_t filter_len;
	size_t id_at;    /* position in `filter` of the `+` of the only capture; filter_len: none, or `walked` */
	size_t value_at; /* position in `filter` of the `+` of the first value's capture, if there are several
	                  * captures */
	bool by_levels;  /* `walked`, and can be matched by its filter, because it has no {name...} */
	bool plain;      /* no other wildcard: matched by comparing the text before and after the `+` */
	char last;       /* last byte of every matching topic; NUL: any */

	bool walked; /* several captures or a {name...}: matched level by level along `text` */
	bool wild;   /* it has `+` or `#` */
	char *text;  /* owned: the template */
	unsigned n_captures;
	/* Where the template's captures begin and end, for hw_topic_span(): in bytes of the text, or in levels if
	 * the template has wildcards. */
	uint16_t before, after, levels;
	bool wild_before, wild_after;
	unsigned tail;                 /* number of levels after the {name...} */
	uint8_t slot[HW_CAPTURES_MAX]; /* per capture, in order: the index of its value; HW_SLOT_NONE: none */
};

enum hw_topic_kind {
	HW_TOPIC_HEARTBEAT, /* at least one capture */
	HW_TOPIC_STATUS,    /* at least one capture, no wildcards: it is published on */
	HW_TOPIC_BATCH,     /* no captures */
	HW_TOPIC_ANY,       /* with captures or without */
	HW_TOPIC_FORM       /* of an id: at least one capture, no wildcards */
};

/*
 * Compiles `text`. Returns 0, -ENOMEM, or -EINVAL with `*why` (a static sentence without a full stop, such as "needs
 * exactly one {id} level"). After an error there is nothing to release. The value index of a capture is at first its
 * position among the captures.
 *
 * Refused: captures that `kind` does not allow; more than HW_CAPTURES_MAX; a name that occurs twice; two {name...}; a
 * brace outside a capture that fills its level; a malformed wildcard; a `#` after {name...}; an empty text; more than
 * HW_TOPIC_MAX - HW_ID_MAX bytes; a control character; invalid UTF-8; `$share/` (the subscriber adds it).
 */
int hw_topic_compile(struct hw_topic *t, const char *text, enum hw_topic_kind kind, const char **why);
void hw_topic_fini(struct hw_topic *t);

/* Whether a level of the value is empty. */
bool hw_value_lacks_level(struct hw_value v);

/* Returns the name of capture `k`, and whether it is a {name...}. */
struct hw_value hw_topic_capture(const struct hw_topic *t, unsigned k, bool *several);

/* Returns the value index of a name among the captures of a form and the names of `more`, or HW_SLOT_NONE. */
uint8_t hw_topic_find_value(const struct hw_topic *form, const struct hw_value *more, unsigned n_more,
                            struct hw_value name);

/* Gives each capture the value index of the capture of the same name in `form`, or of the same name in `more`, whose
 * indices follow those of the form. Returns 0, or -EINVAL with `*why`: one of these names is missing, or the template
 * has one that is neither of them nor {id}. */
int hw_topic_bind(struct hw_topic *t, const struct hw_topic *form, const struct hw_value *more, unsigned n_more,
                  const char **why);

/* Returns the part of a topic from its first capture to its last. The topic must match. If a wildcard stands between
 * them, or levels follow a {name...}, the part contains more than the captures. */
struct hw_value hw_topic_span(const struct hw_topic *t, const char *topic, size_t len);

/*
 * Whether `topic` (`len` bytes, no NUL needed) matches. If so, `*id` and `*id_len` are set to the first value, which is
 * empty if a level of the value is empty (`a//b`), or if the template has no captures. If the topic does not match,
 * both stay unchanged. A template of zeroes matches nothing.
 */
bool hw_topic_match(const struct hw_topic *t, const char *topic, size_t len, const char **id, size_t *id_len);

/* Like hw_topic_match(), for all values; `values` has room for them. A value without a capture stays unchanged. A
 * first level that begins with `$` is not special here. */
bool hw_topic_values(const struct hw_topic *t, const char *topic, size_t len, struct hw_value *values);

/* Whether `wide` matches every topic that `narrow` matches. May wrongly return false if `wide` has a {name...} with
 * levels after it. */
bool hw_topic_covers(const struct hw_topic *wide, const struct hw_topic *narrow);

/* Whether there is a topic that both MQTT filters match. */
bool hw_topic_filters_overlap(const char *a, const char *b);

/* Whether the last byte of a topic already rules out a match. Cheap, and nearly always true for a topic of another
 * template. */
static inline bool hw_topic_excludes(const struct hw_topic *t, const char *topic, size_t len)
{
	return t->last != '\0' && len > 0 && topic[len - 1] != t->last;
}

/* Writes the topic for an id into `buf` with a NUL. Returns its length; -ENAMETOOLONG; or -EINVAL for a template that
 * has wildcards or is `walked`. `id` is not checked. */
int hw_topic_render(const struct hw_topic *t, const char *id, size_t id_len, char *buf, size_t cap);

/* Like hw_topic_render(), but from values, for any template without wildcards. */
int hw_topic_compose(const struct hw_topic *t, const struct hw_value *values, char *buf, size_t cap);

/* Returns the topic of a monitor's canaries, which prove that the filter delivers: `heartwheel-NODE` replaces every
 * capture and wildcard, also `#`. The name `node` has no `/`. On the heap; NULL if there is no memory. */
char *hw_topic_canary(const struct hw_topic *t, const char *node);

/* Whether `id` may name a device: 1-255 bytes of valid UTF-8 without control characters (C0, DEL, C1), `+` or `#`. */
bool hw_id_valid(const char *id, size_t len);

#endif

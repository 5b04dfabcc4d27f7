/* SPDX-License-Identifier: MIT */
/*
 * The table of options, and what is asked of it. Internal to src/conf.
 */
#ifndef HW_CONF_OPTIONS_H
#define HW_CONF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HW_CONF_OPTIONS_MAX 96
#define HW_CONF_LINE_MAX    197  /* bytes; what inih takes, less CR, LF and NUL. Also the bound of what has none */
#define HW_CONF_GROUPS_MAX  4096 /* as many as a device record can name */

enum hw_conf_type {
	HW_CONF_INT,      /* int64_t, from min to max */
	HW_CONF_DURATION, /* int64_t of milliseconds, from min to max, a multiple of `step` unless that is 0 */
	HW_CONF_BOOL,     /* bool: yes, no */
	HW_CONF_ENUM,     /* int: one of `choices` */
	HW_CONF_STRING,   /* char *, min to max bytes */
	HW_CONF_WORD,     /* the same without white space */
	HW_CONF_PATH,     /* the same, absolute (or empty where min is 0) */
	HW_CONF_LOG,      /* char *: syslog, stderr or an absolute path */
	HW_CONF_ADDRESS,  /* char *: a numeric ADDRESS:PORT to listen on, or empty */
	HW_CONF_NODE_ID,  /* char *: a word that can be one level of a topic; auto: the host name */
	HW_CONF_ID,       /* char *: a word that can be part of an id, or empty */
	HW_CONF_TOPIC,    /* char *: a template that can be published on, or empty */
	HW_CONF_TOPICS    /* char **, with its count at `count_offset`: a template each time the key is given */
};

struct hw_conf_choice {
	const char *name; /* NULL ends the list */
	int value;
};

struct hw_conf_option {
	const char *section; /* "group" stands for every [group NAME] */
	const char *key;
	enum hw_conf_type type;
	size_t offset, size; /* of its field in struct hw_conf, or in struct hw_conf_group */
	int64_t min, max;
	int64_t step;
	const char *unit; /* of a HW_CONF_INT, for the reader */
	const struct hw_conf_choice *choices;
	const char *dflt; /* as it would be written in the file; NULL: there is none, the key must be given */
	bool live;        /* a reload applies it */
	size_t count_offset;
};

extern const struct hw_conf_option hw_conf_options[];
extern const size_t hw_conf_n_options;

bool hw_conf_option_in_group(const struct hw_conf_option *o);

/* The place in the table of a key of a section (`key` NULL: of the section's first key), or -1. */
int hw_conf_option_find(const char *section, const char *key);

/* Says of a key that `section` does not know what its author may have meant; of a section likewise. `why` is filled. */
void hw_conf_unknown_key(const char *section, const char *key, char *why, size_t cap);
void hw_conf_unknown_section(const char *name, char *why, size_t cap);

/* Writes where a key that stands before every section belongs; "" if nowhere. */
void hw_conf_sections_of(const char *key, char *buf, size_t cap);

#endif

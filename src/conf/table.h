/* SPDX-License-Identifier: MIT */
/*
 * A program's table of options. Parsing, defaults, the diff of a reload, printing and error messages use this table: a
 * new key is one row and one field in a struct.
 *
 * Several programs read one file. Each has a table of its own sections and skips the sections of the others.
 */
#ifndef HW_CONF_TABLE_H
#define HW_CONF_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HW_CONF_OPTIONS_MAX 96  /* options per table */
#define HW_CONF_TEXT_MAX    255 /* bytes of a text value, unless the option has its own limit */
#define HW_CONF_NAME_MAX    64  /* bytes of a named section's name */
#define HW_CONF_KINDS_MAX   2   /* kinds of named sections per table */

enum hw_conf_type {
	HW_CONF_INT,      /* int64_t, min to max */
	HW_CONF_DURATION, /* int64_t in ms, min to max, a multiple of `step` unless 0 */
	HW_CONF_BOOL,     /* bool: yes, no */
	HW_CONF_ENUM,     /* int: one of `choices` */
	HW_CONF_STRING,   /* char *, min to max bytes */
	HW_CONF_WORD,     /* like STRING, without white space */
	HW_CONF_PATH,     /* like WORD, an absolute path (or empty if min is 0) */
	HW_CONF_LOG,      /* char *: syslog, stderr or an absolute path */
	HW_CONF_ADDRESS,  /* char *: a numeric ADDRESS:PORT to listen on, or empty */
	HW_CONF_NODE_ID,  /* char *: a word that fits one topic level; auto: the host name */
	HW_CONF_ID,       /* char *: a word that can be part of an id, or empty */
	HW_CONF_TOPIC,    /* char *: a topic template to publish to, or empty */
	HW_CONF_TOPICS    /* char ** with its count at `count_offset`: a topic template or another repeatable key, one
	                     element per line. Only for live options: hw_conf_keep_restart_values() does not copy lists */
};

struct hw_conf_choice {
	const char *name; /* NULL ends the list */
	int value;
};

struct hw_conf_option {
	const char *section; /* a kind of named sections stands for every [KIND NAME] */
	const char *key;
	enum hw_conf_type type;
	size_t offset, size; /* of the field, in the program's struct or in a named section's struct */
	int64_t min, max;
	int64_t step;
	const char *unit; /* unit of a HW_CONF_INT, for messages */
	const struct hw_conf_choice *choices;
	const char *dflt; /* written as in the file; NULL: none, the key is required */
	bool live;        /* a reload applies it */
	bool borrowed;    /* the only key that is read of another program's section */
	size_t count_offset;
};

/* For table rows: the offset and size of a field. */
#define HW_CONF_AT(type, field) .offset = offsetof(type, field), .size = sizeof(((type *)0)->field)

#define HW_CONF_SECOND INT64_C(1000)
#define HW_CONF_MINUTE (60 * HW_CONF_SECOND)
#define HW_CONF_HOUR   (60 * HW_CONF_MINUTE)
#define HW_CONF_DAY    (24 * HW_CONF_HOUR)

/*
 * [KIND NAME]: a section that a file may have several times, each with its own struct whose first member is `char
 * *name`. The program's struct has a pointer to the array of them, and a size_t with their number.
 */
struct hw_conf_named {
	const char *kind;   /* NULL: none */
	size_t list, count; /* offsets in the program's struct */
	size_t size;        /* of one element */
	size_t line;        /* offset in an element of an unsigned: the header's line */
	size_t max;
	const char *dflt; /* name of the section that exists if the file has none */
};

struct hw_conf_draft;

struct hw_conf_table {
	const struct hw_conf_option *options; /* options of a section are adjacent; named sections come last */
	size_t n_options;
	size_t size; /* of the program's struct, which begins with struct hw_conf_head */
	struct hw_conf_named named[HW_CONF_KINDS_MAX]; /* a kind of NULL ends the list */
	/*
	 * Rules about more than one key, applied after the last line (draft.h). All fields have a value by then, except
	 * in named sections, whose defaults the rules must set.
	 */
	void (*judge)(struct hw_conf_draft *d);
};

bool hw_conf_option_is_named(const struct hw_conf_table *t, const struct hw_conf_option *o);
/* The kind of named sections that `section` is, or NULL. */
const struct hw_conf_named *hw_conf_kind_find(const struct hw_conf_table *t, const char *section);

/* The index of a key in the table, or -1. `key` NULL: the first key of the section that is not borrowed. */
int hw_conf_option_find(const struct hw_conf_table *t, const char *section, const char *key);

/*
 * The sections of all programs that read the file. A program skips the sections that its own table lacks. The sections
 * of planned programs are listed as soon as they are agreed.
 */
struct hw_conf_family {
	const char *section; /* NULL ends the list */
	bool named;          /* [SECTION NAME] */
};
extern const struct hw_conf_family hw_conf_family[];
#define HW_CONF_FAMILY_MAX 16

/* The family's index of a section header that another program reads; or -1. */
int hw_conf_foreign_find(const struct hw_conf_table *t, const char *header);

/* The named sections of a kind in a configuration, in the order of the file. */
size_t hw_conf_named_count(const struct hw_conf_named *kind, const void *conf);
void *hw_conf_named_at(const struct hw_conf_named *kind, const void *conf, size_t i);
const char *hw_conf_named_name(const void *section);

#endif

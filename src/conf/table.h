/* SPDX-License-Identifier: MIT */
/*
 * A program's table of options. Parsing, defaults, the comparison at a reload, printing and error messages use this
 * table. So a new key needs one row and one field in a struct.
 *
 * Several programs read one file. Each has a table of its own sections, and skips the sections of the others.
 */
#ifndef HW_CONF_TABLE_H
#define HW_CONF_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HW_CONF_OPTIONS_MAX 96  /* options per table */
#define HW_CONF_TEXT_MAX    255 /* bytes of a text value, unless the option sets another limit */
#define HW_CONF_NAME_MAX    64  /* bytes of a named section's name */
#define HW_CONF_KINDS_MAX   2   /* kinds of named sections per table */

enum hw_conf_type {
	HW_CONF_INT,      /* int64_t, min to max */
	HW_CONF_DURATION, /* int64_t in ms, from min to max; a multiple of `step` unless that is 0 */
	HW_CONF_BOOL,     /* bool: yes, no */
	HW_CONF_ENUM,     /* int: one of `choices` */
	HW_CONF_STRING,   /* char *, min to max bytes */
	HW_CONF_WORD,     /* like STRING, without white space */
	HW_CONF_PATH,     /* like WORD, an absolute path (or empty if min is 0) */
	HW_CONF_LOG,      /* char *: syslog, stderr or an absolute path */
	HW_CONF_ADDRESS,  /* char *: a numeric ADDRESS:PORT to listen on, or empty */
	HW_CONF_NODE_ID,  /* char *: a word that can be one level of a topic; "auto" means the host name */
	HW_CONF_ID,       /* char *: a word that can be part of an id, or empty */
	HW_CONF_TOPIC,    /* char *: a topic template to publish to, or empty */
	HW_CONF_TOPICS    /* char **, with the count at `count_offset`: a topic template or another repeatable key, one
	                     element a line. Only for keys that a reload applies, because hw_conf_keep_restart_values()
	                     does not copy lists */
};

struct hw_conf_choice {
	const char *name; /* NULL ends the list */
	int value;
};

struct hw_conf_option {
	const char *section; /* a kind of named sections stands for every [KIND NAME] */
	const char *key;
	enum hw_conf_type type;
	size_t offset, size; /* position and size of the option's field, in the program's struct or in that of a
	                      * named section */
	int64_t min, max;
	int64_t step;
	const char *unit; /* unit of a HW_CONF_INT, for messages */
	const struct hw_conf_choice *choices;
	const char *dflt; /* the default, written as in the file; NULL: there is none, and the key is required */
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
 * [KIND NAME]: a section that a file may have several times. Each has its own struct, whose first member is `char
 * *name`. The program's struct contains a pointer to the array of these structs, and their number as a size_t.
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
	const struct hw_conf_option
		*options; /* the options of one section stand together; the options of named sections come last */
	size_t n_options;
	size_t size; /* size of the program's struct, which begins with a struct hw_conf_head */
	struct hw_conf_named named[HW_CONF_KINDS_MAX]; /* a kind of NULL ends the list */
	/*
	 * Applies rules about several keys, after the last line (draft.h). All fields have a value then, except in
	 * named sections, whose defaults the rules must set.
	 */
	void (*judge)(struct hw_conf_draft *d);
};

bool hw_conf_option_is_named(const struct hw_conf_table *t, const struct hw_conf_option *o);
/* The kind of named sections that `section` is, or NULL. */
const struct hw_conf_named *hw_conf_kind_find(const struct hw_conf_table *t, const char *section);

/* Returns the index of a key in the table, or -1. If `key` is NULL, returns the index of the section's first key
 * that is not borrowed. */
int hw_conf_option_find(const struct hw_conf_table *t, const char *section, const char *key);

/*
 * The sections of all programs that read the file. A program skips the sections that its own table does not have. The
 * sections of a planned program are in this list as soon as their names are decided.
 */
struct hw_conf_family {
	const char *section; /* NULL ends the list */
	bool named;          /* [SECTION NAME] */
};
extern const struct hw_conf_family hw_conf_family[];
#define HW_CONF_FAMILY_MAX 16

/* The family's index of a section header; or -1. */
int hw_conf_family_find(const char *header);
/* Whether only other programs read this section of the family. */
bool hw_conf_is_foreign(const struct hw_conf_table *t, int family);

/* Returns the named sections of a kind in a configuration, in the order of the file. */
size_t hw_conf_named_count(const struct hw_conf_named *kind, const void *conf);
void *hw_conf_named_at(const struct hw_conf_named *kind, const void *conf, size_t i);
const char *hw_conf_named_name(const void *section);

#endif

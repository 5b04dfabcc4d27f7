/* SPDX-License-Identifier: MIT */
/*
 * What a program's file may hold: its table of options. Parsing, defaults, the diff for a reload, the printed form and
 * what is said of a wrong line all run over that table: a new key is one line there and one field in a struct.
 *
 * Several programs read one file. Each has the table of what it reads, and passes over the sections that are others'.
 */
#ifndef HW_CONF_TABLE_H
#define HW_CONF_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HW_CONF_OPTIONS_MAX 96  /* of a table */
#define HW_CONF_TEXT_MAX    255 /* bytes of a value that is text, where nothing else bounds it */
#define HW_CONF_NAME_MAX    64  /* bytes of the name of a named section */

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
	HW_CONF_TOPICS    /* char **, with its count at `count_offset`: a template, or what else a section has several
	                     of, each time the key is given. Live ones alone: a reload does not keep them */
};

struct hw_conf_choice {
	const char *name; /* NULL ends the list */
	int value;
};

struct hw_conf_option {
	const char *section; /* a kind of named sections stands for every [KIND NAME] */
	const char *key;
	enum hw_conf_type type;
	size_t offset, size; /* of its field in the program's struct, or in the struct of a named section */
	int64_t min, max;
	int64_t step;
	const char *unit; /* of a HW_CONF_INT, for the reader */
	const struct hw_conf_choice *choices;
	const char *dflt; /* as it would be written in the file; NULL: there is none, the key must be given */
	bool live;        /* a reload applies it */
	bool borrowed;    /* of another program's section, of which nothing else is looked at */
	size_t count_offset;
};

/* For the rows of a table: where a field is in a struct. */
#define HW_CONF_AT(type, field) .offset = offsetof(type, field), .size = sizeof(((type *)0)->field)

#define HW_CONF_SECOND INT64_C(1000)
#define HW_CONF_MINUTE (60 * HW_CONF_SECOND)
#define HW_CONF_HOUR   (60 * HW_CONF_MINUTE)
#define HW_CONF_DAY    (24 * HW_CONF_HOUR)

/*
 * [KIND NAME]: sections of which a file may have several, each with a struct of its own whose first member is
 * `char *name`. The program's struct has a pointer to the array of them, and a size_t that counts them.
 */
struct hw_conf_named {
	const char *kind;   /* NULL: the program has none */
	size_t list, count; /* offsets in the program's struct */
	size_t size;        /* of one */
	size_t line;        /* offset in one, of an unsigned: the line of its header */
	size_t max;
	const char *dflt; /* the name of the one that there is if the file has none */
};

struct hw_conf_draft;

struct hw_conf_table {
	const struct hw_conf_option *options; /* those of a section next to each other; named ones last */
	size_t n_options;
	size_t size; /* of the program's struct, whose first member is struct hw_conf_head */
	struct hw_conf_named named;
	/*
	 * The rules that concern more than one key, judged after the last line (draft.h), when all fields have a value
	 * but those of named sections: their defaults are left to it.
	 */
	void (*judge)(struct hw_conf_draft *d);
};

bool hw_conf_option_is_named(const struct hw_conf_table *t, const struct hw_conf_option *o);

/* The place in the table of a key of a section, or -1; `key` NULL: of the first that is not borrowed. */
int hw_conf_option_find(const struct hw_conf_table *t, const char *section, const char *key);

/*
 * The sections of all programs that read the file. A program passes over those that its own table does not have. One
 * that is not built yet has its sections here once they are settled.
 */
struct hw_conf_family {
	const char *section; /* NULL ends the list */
	bool named;          /* [SECTION NAME] */
};
extern const struct hw_conf_family hw_conf_family[];
#define HW_CONF_FAMILY_MAX 16

/* The place in the family of the section with that header, if another program reads it; or -1. */
int hw_conf_foreign_find(const struct hw_conf_table *t, const char *header);

/* The named sections of a configuration, in the order of the file. */
size_t hw_conf_named_count(const struct hw_conf_table *t, const void *conf);
void *hw_conf_named_at(const struct hw_conf_table *t, const void *conf, size_t i);
const char *hw_conf_named_name(const void *section);

#endif

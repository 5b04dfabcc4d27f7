/* SPDX-License-Identifier: MIT */
/*
 * A file while it is read: what was read so far, and where. Internal to src/conf.
 */
#ifndef HW_CONF_PARSE_H
#define HW_CONF_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "conf/conf.h"
#include "conf/errors.h"
#include "conf/options.h"

/* Where a key was given (0: not), and whether its value was refused: then nothing is concluded from it. */
struct hw_conf_mark {
	unsigned line;
	bool bad;
};

/* The marks of a section's keys, by their place in the table. */
struct hw_conf_marks {
	unsigned section; /* the line of a group's header */
	struct hw_conf_mark key[HW_CONF_OPTIONS_MAX];
	unsigned *heartbeat; /* the line of each of a group's heartbeats; on the heap */
};

struct hw_conf_parse {
	struct hw_conf *conf;
	struct hw_conf_errlist errors;
	hw_conf_template_check *check; /* or NULL */
	FILE *file;
	size_t bytes;  /* read so far */
	unsigned line; /* the last that was read */

	const char *section;                   /* the table's name for the one we are in; NULL before the first */
	bool skip;                             /* in a section that makes no sense: its keys are not judged */
	unsigned headers[HW_CONF_OPTIONS_MAX]; /* the line of a section's header, by the place of its first key */
	struct hw_conf_marks marks;            /* of all keys that are not a group's */
	struct hw_conf_marks **group_marks;    /* a group each, like conf->groups */
};

/* Reads the file through inih, to its end. All that is wrong with single lines is in p->errors afterwards. */
void hw_conf_parse_file(struct hw_conf_parse *p);

/* Adds a group. Returns 0 or -ENOMEM. */
int hw_conf_parse_add_group(struct hw_conf_parse *p, const char *name);

/* Releases all but `conf` and `errors`. */
void hw_conf_parse_fini(struct hw_conf_parse *p);

/* Puts in the defaults of what was not given, then judges what concerns several keys. */
void hw_conf_complete(struct hw_conf_parse *p);

#endif

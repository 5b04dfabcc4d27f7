/* SPDX-License-Identifier: MIT */
/*
 * Reads monitor.conf into a program's struct, or into a list of all errors of the file.
 *
 * The program's table (table.h) has for each key its section, type, unit, range, default and field, and whether a
 * reload applies it. `conf` is the program's struct, whose first member is a struct hw_conf_head. It is read-only after
 * loading.
 */
#ifndef HW_CONF_H
#define HW_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "conf/table.h"

#define HW_CONF_ERRORS_MAX 1000 /* more are only counted: it is probably the wrong file */

struct hw_conf_head {
	const struct hw_conf_table *table;     /* borrowed */
	char *path;                            /* path of the file; owned */
	unsigned *lines;                       /* line of each key: see hw_conf_line(); owned */
	unsigned sections[HW_CONF_FAMILY_MAX]; /* the first line of each section that the family of programs knows; 0:
	                                          the file does not have the section */
	char **groups; /* the names of the sections [group NAME], then NULL, if only another program reads these
	                  sections; owned */
	size_t n_groups;
	char **labels; /* the names of the labels in these sections, then NULL; owned */
	size_t n_labels;
};

/*
 * The errors of a file, one in each line, in the order of the file: "FILE:LINE: key 'KEY': what is wrong", or "section
 * 'NAME'" for a section. If there is no line number, ":LINE" is omitted. Owned by the caller.
 */
struct hw_conf_errors {
	char **lines;
	size_t n;
	bool no_memory; /* memory ran out: errors may be missing from the list; if it is empty, the file may be right */
	/* The program's struct, for checks of values that depend on the machine, such as a user or a file. It has
	 * the values that could be read, and defaults for the others. NULL: no value could be read. */
	void *rest;
};

/*
 * Reads a file. Returns the program's struct, which the caller frees with hw_conf_free(). Or returns NULL, with all
 * errors in `errors` (one line without a number if the file cannot be opened). `errors` must be zeroed before. The
 * caller frees it with hw_conf_errors_fini().
 */
void *hw_conf_load(const struct hw_conf_table *table, const char *path, struct hw_conf_errors *errors);
/* Like hw_conf_load(), but for a reload, which must not block: it reads only a regular file of at most HW_FILE_MAX
 * bytes (conf/file.h). */
void *hw_conf_load_again(const struct hw_conf_table *table, const char *path, struct hw_conf_errors *errors);
void hw_conf_free(void *conf);

/* Returns the line of a key that is outside named sections; 0: the file does not have the key. The caller uses it to
 * report a value that does not fit the machine. */
unsigned hw_conf_line(const void *conf, const char *section, const char *key);

/* Prints an error about a value that does not fit the machine to stderr, in the form of struct hw_conf_errors.
 * `path` is the configuration file. */
void hw_conf_report_wrong(const void *conf, const char *path, const char *section, const char *key, const char *format,
                          ...) __attribute__((format(printf, 5, 6)));

void hw_conf_errors_fini(struct hw_conf_errors *e);

/* Parses "30s" and the like into milliseconds. Returns 0, -EINVAL (not a duration) or -ERANGE (over an int64_t). */
int hw_conf_duration_parse(const char *text, int64_t *ms);

/* ADDED and REMOVED only apply to named sections. */
enum hw_conf_change { HW_CONF_CHANGED, HW_CONF_ADDED, HW_CONF_REMOVED };

/*
 * Compares two configurations of one table. Calls `each` for every key with different values, as "section.key" or "KIND
 * NAME.key". A section that was added or removed is reported as "KIND NAME". `live`: a reload applies the change;
 * otherwise it needs a restart.
 */
void hw_conf_diff(const void *from, const void *to,
                  void (*each)(void *arg, const char *key, enum hw_conf_change change, bool live), void *arg);

/*
 * Writes the running configuration, including defaults, as a file that hw_conf_load() reads back with the same values.
 * The file contains no secrets, only the names of their files.
 */
void hw_conf_print(const void *conf, FILE *out);

/* Writes a comment for each section that only another program reads. */
void hw_conf_print_foreign(const void *conf, FILE *out);

/*
 * Called after a reload. Copies the old values of all keys that need a restart to `to`, so that `to` describes the
 * running program. Returns 0, or -ENOMEM, and the caller can then only free `to`.
 */
int hw_conf_keep_restart_values(const void *from, void *to);

/*
 * Returns the first line of a secret file, without its line end, in heap memory. Returns NULL with errno set if the
 * file is unreadable, has more than 4095 bytes (EFBIG) or contains a NUL byte (EINVAL).
 */
char *hw_conf_read_secret(const char *path);
/* Whether the content of the secret file `path` ("": none) differs from `running`, which was read from it before. */
bool hw_conf_secret_changed(const char *path, const char *running);

#endif

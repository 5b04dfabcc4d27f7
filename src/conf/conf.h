/* SPDX-License-Identifier: MIT */
/*
 * monitor.conf: from a file to a program's struct, or to the list of everything that is wrong with it.
 *
 * The program's table (table.h) says of every key its section, type, unit, range, default and whether a reload applies
 * it, and where its value goes. What is called `conf` here is the program's struct, whose first member is a struct
 * hw_conf_head; it is read-only once loaded.
 */
#ifndef HW_CONF_H
#define HW_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "conf/table.h"

struct hw_conf_head {
	const struct hw_conf_table *table;    /* borrowed */
	char *path;                           /* the file that it came from; owned */
	unsigned *lines;                      /* where each key stands in it: ask hw_conf_line(); owned */
	unsigned foreign[HW_CONF_FAMILY_MAX]; /* the lines of other programs' sections; 0: not in the file */
};

/*
 * What is wrong, a line each, in the order of the file: "FILE:LINE: key 'KEY': what is wrong", or "section 'NAME'"
 * where it is a section that is wrong. Where there is no line to name, ":LINE" is left out. Owned by the caller.
 */
struct hw_conf_errors {
	char **lines;
	size_t n;
	bool no_memory; /* for the rest: what stands in the file need not be wrong */
	/* What could be read, with defaults for what could not: for those whose values are judged elsewhere, such as
	 * whether there is that user, that file. NULL: nothing could. */
	void *rest;
};

/*
 * Reads a file. Returns the program's struct, to be freed with hw_conf_free(); or NULL with every wrong line in
 * `errors` (also when the file cannot be opened: then one line says so, without a line number). `errors` must be zeroed
 * or fresh; release with hw_conf_errors_fini().
 */
void *hw_conf_load(const struct hw_conf_table *table, const char *path, struct hw_conf_errors *errors);
/* The same for a reload, which must not block: only a regular file of at most HW_FILE_MAX is read (conf/file.h). */
void *hw_conf_load_again(const struct hw_conf_table *table, const char *path, struct hw_conf_errors *errors);
void hw_conf_free(void *conf);

/* The line of a key outside of the named sections; 0: it is not in the file. For what only the program can find out of
 * a value: whether there is such a user, such a file. */
unsigned hw_conf_line(const void *conf, const char *section, const char *key);

/* Says on stderr, in the form of those lines, what is wrong with a value that only this machine can judge. `path`: the
 * file's. */
void hw_conf_say_wrong(const void *conf, const char *path, const char *section, const char *key, const char *format,
                       ...) __attribute__((format(printf, 5, 6)));

void hw_conf_errors_fini(struct hw_conf_errors *e);

/* Milliseconds of "30s" and the like. Returns 0, -EINVAL (not a duration) or -ERANGE (more than an int64_t holds). */
int hw_conf_duration_parse(const char *text, int64_t *ms);

/* ADDED and REMOVED are named sections alone. */
enum hw_conf_change { HW_CONF_CHANGED, HW_CONF_ADDED, HW_CONF_REMOVED };

/*
 * Compares two configurations of one table. Calls `each` for every key whose value differs, named "section.key"
 * ("KIND NAME.key"; "KIND NAME" alone for one that appeared or went), with whether a reload applies it (`live`) or a
 * restart is needed.
 */
void hw_conf_diff(const void *from, const void *to,
                  void (*each)(void *arg, const char *key, enum hw_conf_change change, bool live), void *arg);

/*
 * Writes the configuration in force, defaults included, in the form of a file: what hw_conf_load() reads back to the
 * same values. Secrets are not in it, only the names of their files.
 */
void hw_conf_print(const void *conf, FILE *out);

/* Writes a comment for each section that was passed over, because another program reads it. */
void hw_conf_print_foreign(const void *conf, FILE *out);

/*
 * After a reload: makes `to` hold the old values of everything that only a restart changes, so that the running
 * configuration is told as it is. Returns 0, or -ENOMEM with `to` fit only to be freed.
 */
int hw_conf_keep_restart_values(const void *from, void *to);

/*
 * The first line of a secret file, without its line end, on the heap; NULL with errno if it cannot be read, is longer
 * than 4095 bytes (EFBIG) or holds a NUL byte (EINVAL).
 */
char *hw_conf_read_secret(const char *path);
/* Whether the secret file `path` ("": none) says something else than `running`, which was read from it before. */
bool hw_conf_secret_changed(const char *path, const char *running);

#endif

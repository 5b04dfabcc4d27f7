/* SPDX-License-Identifier: MIT */
/*
 * A daemon's main(), from the command line to the exit status. struct hw_program has the program's own parts; the rest
 * is common to all our daemons.
 */
#ifndef HW_RUN_PROGRAM_H
#define HW_RUN_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#include "conf/conf.h"
#include "run/daemon.h"
#include "run/options.h"

/* Settings that every program has; borrowed from the configuration. */
struct hw_program_conf {
	const char *user, *pid_file, *log;
	int log_level;
};

struct hw_program {
	struct hw_options_help help; /* includes the program's name */
	const char *section;         /* section of the file with user, pid_file and log */
	const struct hw_conf_table *table;
	bool reloads; /* the file is read again at SIGHUP, so its path must be absolute */
	struct hw_program_conf (*conf)(const void *conf);
	/* Checks that depend on the machine. Returns whether all is right, after printing the errors to stderr. */
	bool (*is_right)(const char *path, const void *conf);
	/* May be NULL. The same for the readable values of a file with errors. */
	void (*judge_rest)(const char *path, const void *rest);
	/* May be NULL. For -t: prints warnings about settings that are allowed but probably unintended. */
	void (*warn)(const char *path, const void *conf);
	/* Runs from the locked pid file to the end. Owns `conf`. Returns the exit status. */
	int (*serve)(void *conf, struct hw_daemon *d);
};

/* Returns the exit status, or exits with HW_EXIT_USAGE after printing the errors. */
int hw_program_main(const struct hw_program *p, int argc, char **argv);

/* Finds the configured user; false after printing to stderr that there is none. */
bool hw_program_find_user(const char *path, const void *conf, const char *section, const char *name,
                          struct hw_user *user);

/* A file named by a key; path "": none. */
struct hw_program_file {
	const char *section, *key, *path;
};

/* Whether all files are readable; prints to stderr those that are not. */
bool hw_program_can_read(const char *path, const void *conf, const struct hw_program_file *files, size_t n);

/* Reads a password from the file that `key` names; "" if there is no file. Returns 0 with *out, which the caller frees,
 * or -errno after logging. */
int hw_program_read_secret(struct hw_daemon *d, const char *key, const char *path, char **out);

#endif

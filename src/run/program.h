/* SPDX-License-Identifier: MIT */
/*
 * A daemon's main(), from the command line to the exit status: what a program has of its own it says in a struct
 * hw_program, the rest is the same for all of ours.
 */
#ifndef HW_RUN_PROGRAM_H
#define HW_RUN_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#include "conf/conf.h"
#include "run/daemon.h"
#include "run/options.h"

/* What every program's configuration has; all borrowed of it. */
struct hw_program_conf {
	const char *user, *pid_file, *log;
	int log_level;
};

struct hw_program {
	struct hw_options_help help; /* the program's name too */
	const char *section;         /* of its file, where user, pid_file and log stand */
	const struct hw_conf_table *table;
	bool reloads; /* the file is read again: it has to be found also from the directory of a daemon */
	struct hw_program_conf (*conf)(const void *conf);
	/* What only this machine can tell of a configuration: whether it is right, after saying on stderr what is not.
	 */
	bool (*is_right)(const char *path, const void *conf);
	/* NULL: nothing. The same of those values of a file that could be read although others are wrong. */
	void (*judge_rest)(const char *path, const void *rest);
	/* NULL: nothing. With -t: what is allowed and hardly meant. */
	void (*warn)(const char *path, const void *conf);
	/* From the locked pid file to the end. Owns `conf`. Returns the exit status. */
	int (*serve)(void *conf, struct hw_daemon *d);
};

/* Returns the exit status; or exits with HW_EXIT_USAGE after saying what is wrong. */
int hw_program_main(const struct hw_program *p, int argc, char **argv);

/* Finds a configuration's user; false after saying on stderr that there is none. */
bool hw_program_find_user(const char *path, const void *conf, const char *section, const char *name,
                          struct hw_user *user);

/* A file that a key names; an empty path is none. */
struct hw_program_file {
	const char *section, *key, *path;
};

/* Whether all can be read, after saying on stderr which cannot. */
bool hw_program_can_read(const char *path, const void *conf, const struct hw_program_file *files, size_t n);

/* A password from the file that `key` names; without one "". 0 with *out, to be freed; or -errno after logging. */
int hw_program_read_secret(struct hw_daemon *d, const char *key, const char *path, char **out);

#endif

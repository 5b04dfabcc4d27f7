/* SPDX-License-Identifier: MIT */
/*
 * The main() of a daemon, from the command line to the exit status. struct hw_program contains what differs between our
 * daemons.
 */
#ifndef HW_RUN_PROGRAM_H
#define HW_RUN_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#include "conf/conf.h"
#include "run/daemon.h"
#include "run/options.h"

struct hw_http;

/* Settings that every daemon has; borrowed from the configuration. */
struct hw_program_conf {
	const char *user, *pid_file, *log;
	int log_level;
};

struct hw_program {
	struct hw_options_help help; /* includes the program's name */
	const char *section;         /* section of the file with user, pid_file and log */
	const struct hw_conf_table *table;
	bool reloads; /* the daemon reads the file again at SIGHUP, so its path must be absolute */
	struct hw_program_conf (*conf)(const void *conf);
	/* Checks settings that depend on the machine. Prints errors to stderr. Returns whether there were none. */
	bool (*is_right)(const char *path, const void *conf);
	/* Like is_right(), for a file with errors: gets the values that could be read. May be NULL. */
	void (*judge_rest)(const char *path, const void *rest);
	/* Prints warnings about settings that are allowed but probably not intended, for -t. May be NULL. */
	void (*warn)(const char *path, const void *conf);
	/* Runs the daemon, from the locked pid file to the end. Owns `conf`. Returns the exit status. */
	int (*serve)(void *conf, struct hw_daemon *d);
};

/* Returns the exit status, or exits with HW_EXIT_USAGE after printing the errors. */
int hw_program_main(const struct hw_program *p, int argc, char **argv);

/* Finds the configured user. Returns false, after a message on stderr, if there is no such user. */
bool hw_program_find_user(const char *path, const void *conf, const char *section, const char *name,
                          struct hw_user *user);

/* Whether the group of the key `socket_group` exists, or is "". Prints to stderr if it does not. */
bool hw_program_find_group(const char *path, const void *conf, const char *section, const char *name);

/* Listens on the unix socket, which becomes the user's (hw_daemon_give_socket()). Returns 0, or -errno after logging.
 */
int hw_program_listen(struct hw_daemon *d, struct hw_http *http, const char *socket, const char *group);

/* A file named by a key; path "": none. */
struct hw_program_file {
	const char *section, *key, *path;
};

/* Whether all files are readable. Prints the names of unreadable files to stderr. */
bool hw_program_can_read(const char *path, const void *conf, const struct hw_program_file *files, size_t n);

/* Reads a password from the file that `key` names; "" if no file is configured. Returns 0, with the password in *out,
 * which the caller frees. Or returns -errno after logging. */
int hw_program_read_secret(struct hw_daemon *d, const char *key, const char *path, char **out);

#endif

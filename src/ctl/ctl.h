/* SPDX-License-Identifier: MIT */
/* heartwheelctl's parts: what a command is given, and how it says that something failed. */
#ifndef HW_CTL_CTL_H
#define HW_CTL_CTL_H

#include <stdbool.h>
#include <stdint.h>

#include "ctl/client.h"
#include "ctl/text.h"

enum { HW_EXIT_DONE = 0, HW_EXIT_FAILED = 1, HW_EXIT_USAGE = 2, HW_EXIT_UNKNOWN = 3 /* check */ };

struct hw_ctl {
	struct hw_client *client;
	const char *socket; /* borrowed */
	struct hw_screen screen;
};

struct hw_args {
	bool json;
	bool names;                                  /* nothing but ids, or names */
	bool test;                                   /* notify's; `id` is a channel then, or NULL */
	const char *state, *group, *prefix, *search; /* NULL: any */
	const char *sort;                            /* NULL: the command's own */
	uint64_t limit;                              /* 0: all */
	const char *warning, *critical, *blind;      /* check's; NULL: the default */
	char *id;                                    /* of commands that take one; theirs to change */
	char **ids;                                  /* of commands that take several */
	int n_ids;
};

/* A command. Returns the exit status. */
typedef int hw_command(struct hw_ctl *ctl, const struct hw_args *args);
hw_command hw_cmd_status, hw_cmd_list, hw_cmd_groups, hw_cmd_nodes, hw_cmd_show, hw_cmd_watch, hw_cmd_wheel,
	hw_cmd_forget, hw_cmd_notify, hw_cmd_reload, hw_cmd_version, hw_cmd_check, hw_cmd_top;

/* Whom a command asks, as the command line says. */
struct hw_whom {
	const char *socket; /* NULL: none is named */
	const char *config; /* where sockets are looked up */
};

/* A command that asks another daemon, or none, and reads its own options: `argv[0]` is its name. Returns the exit
 * status. */
typedef int hw_command_main(const struct hw_whom *whom, int argc, char **argv);
hw_command_main hw_user_main, hw_history_main, hw_task_main;

/* "heartwheelctl: ...", with what is not to be trusted made safe; returns HW_EXIT_FAILED. */
int hw_failed(const struct hw_ctl *ctl, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Asks, and insists on an answer with that status (and a JSON body, if `want` is 200). 0; or HW_EXIT_FAILED after
 * having said why, with the answer released.
 */
int hw_ask(struct hw_ctl *ctl, const char *method, const char *path, long want, struct hw_answer *a);

/* Asks for what a path under construction names, and frees that. As hw_ask(), with 200. */
int hw_ask_path(struct hw_ctl *ctl, const char *method, struct hw_path *path, struct hw_answer *a);
/* Asks for `path` and prints the answer: as JSON, or by `show`. The exit status. */
int hw_ask_and_show(struct hw_ctl *ctl, const char *path, bool json,
                    void (*show)(const struct hw_ctl *ctl, const cJSON *answer));

/* 0 if `group` is NULL, or the daemon has such a group; or HW_EXIT_FAILED after having said that not, and which may be
 * meant. */
int hw_need_group(struct hw_ctl *ctl, const char *group);

/* "/v1/devices/ID", percent-encoded; .text is NULL without memory. */
struct hw_path hw_device_path(const char *id);

/* A number times `factor`, as an integer; 0 if it is none, or beyond 9e15: so that sums and products of two do not
 * overflow. */
int64_t hw_number_int(const cJSON *item, double factor);
/* Members of a JSON object: "" or 0 if it is not there or something else. */
const char *hw_member_text(const cJSON *object, const char *key);
int64_t hw_member_int(const cJSON *object, const char *key);
/* Whether it is there and not null. */
bool hw_member_has(const cJSON *object, const char *key);

/* Prints an object or value on a line of its own, as JSON. 0 or HW_EXIT_FAILED. */
int hw_print_json(const struct hw_ctl *ctl, const cJSON *value);

#endif

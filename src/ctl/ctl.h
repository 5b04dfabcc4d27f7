/* SPDX-License-Identifier: MIT */
/* Shared by the files of heartwheelctl: the arguments of a command, and how it handles errors. */
#ifndef HW_CTL_CTL_H
#define HW_CTL_CTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/client.h"
#include "ctl/text.h"

enum { HW_EXIT_DONE = 0, HW_EXIT_FAILED = 1, HW_EXIT_USAGE = 2, HW_EXIT_UNKNOWN = 3 /* check */ };

struct hw_ctl {
	struct hw_client *client;
	const char *socket; /* borrowed */
	const char *config; /* the path of monitor.conf; borrowed */
	struct hw_screen screen;
	bool warned; /* hw_warn_if_lapsed() */
};

struct hw_command;

#define HW_FILTERS_MAX 32

#define HW_LEARNED_COUNT_MAX 63 /* the API's counts of learned gaps and mistakes end here */

/* What a command line says. */
struct hw_args {
	const struct hw_command *command;
	/* the values of the options (options.c); NULL, false or 0: the option was not given */
	bool prune, skip_bad, dry_run;
	bool json, names, test, csv, no_hold, watched, force, all, until_online, planned;
	const char *state, *group, *prefix, *search, *sort, *columns, *warning, *critical, *blind;
	const char *since, *until, *month, *min;
	const char *at, *after, *exp, *msg_id, *wait, *receiver;
	const char *role, *expires, *file;
	const char *source, *label;
	const char *note, *lasts; /* --message; --for */
	const char *broker, *tls_ca, *user, *password_file, *write;
	const char *filters[HW_FILTERS_MAX]; /* each --filter */
	size_t n_filters;
	const char *most; /* --limit, and as a number: */
	uint64_t limit;
	/* What follows the options. Commands may modify the texts. */
	char **words;
	int n_words;
	char *id; /* the first word: a device, a receiver, a user, a task, an incident or a silence; NULL: there is none
	           */
};

/* A command. Returns the exit status. */
typedef int hw_command(struct hw_ctl *ctl, const struct hw_args *args);
hw_command hw_cmd_status, hw_cmd_list, hw_cmd_groups, hw_cmd_nodes, hw_cmd_show, hw_cmd_watch, hw_cmd_wheel,
	hw_cmd_forget, hw_cmd_notify, hw_cmd_reload, hw_cmd_version, hw_cmd_check, hw_cmd_top;
hw_command hw_cmd_history, hw_cmd_outages, hw_cmd_uptime; /* history.c */
hw_command hw_cmd_task_send, hw_cmd_task_list, hw_cmd_task_show, hw_cmd_task_cancel, hw_cmd_task_watch,
	hw_cmd_task_status;                                       /* task.c */
hw_command hw_cmd_user_add, hw_cmd_user_list, hw_cmd_user_remove; /* user.c */
hw_command hw_cmd_incidents, hw_cmd_incident, hw_cmd_ack, hw_cmd_unack, hw_cmd_silence, hw_cmd_silences,
	hw_cmd_unsilence; /* incident.c */
hw_command hw_cmd_devices_import, hw_cmd_devices_export, hw_cmd_devices_set, hw_cmd_devices_remove,
	hw_cmd_devices_unseen; /* inventory.c */
hw_command hw_cmd_discover;    /* discover.c */
/* Returns how the sentence of an incident is painted: dim if the incident is acknowledged or silenced. */
enum hw_paint hw_incident_paint(const cJSON *incident);
/* Return what is wrong with the arguments, or NULL. */
const char *hw_history_judge(const struct hw_args *args);
const char *hw_silence_judge(const struct hw_args *args);
const char *hw_discover_judge(const struct hw_args *args);

/* Prints what is wrong with a command line, and how to get help. NULL: the command is not known. Returns HW_EXIT_USAGE.
 */
int hw_usage(const struct hw_command *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints "heartwheelctl: ..." with untrusted text escaped. Returns HW_EXIT_FAILED. */
int hw_failed(const struct hw_ctl *ctl, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Ends the object that is the body of a request. Returns its text, which the caller frees. On an error returns NULL,
 * with the reason in *why. */
struct hw_json;
char *hw_body_end(struct hw_json *body, const char **why);

/*
 * Sends a request and requires the status `want`, and JSON if `want` is 200. Returns 0, or HW_EXIT_FAILED after it has
 * printed the error and freed the answer.
 */
int hw_ask(struct hw_ctl *ctl, const char *method, const char *path, long want, struct hw_answer *a);

/* If the last answer or stream came from a node whose entry in Redis has lapsed, prints a warning on stderr.
 * hw_ask() does so once. */
void hw_warn_if_lapsed(const struct hw_ctl *ctl);

/* Like hw_ask(), for a path on the heap, and requires status 200. Frees the path. */
int hw_ask_path(struct hw_ctl *ctl, const char *method, struct hw_path *path, struct hw_answer *a);
/* Requests `path` and prints the answer, as JSON or with `show`. Returns the exit status. */
int hw_ask_and_show(struct hw_ctl *ctl, const char *path, bool json,
                    void (*show)(const struct hw_ctl *ctl, const cJSON *answer));

/* Returns 0 if `group` is NULL or exists. Otherwise prints an error with a similar name, and returns HW_EXIT_FAILED. */
int hw_need_group(struct hw_ctl *ctl, const char *group);

/* Returns "/v1/devices/ID", percent-encoded; .text is NULL if there is no memory. */
struct hw_path hw_device_path(const char *id);

/* Returns a number times `factor` as an integer. Returns 0 if it is no number, or over 9e15, so that the sum or product
 * of two results does not overflow. */
int64_t hw_number_int(const cJSON *item, double factor);
/* Return the value of a member of a JSON object. If the member is missing or of another type, return "" or 0. */
const char *hw_member_text(const cJSON *object, const char *key);
int64_t hw_member_int(const cJSON *object, const char *key);
/* Whether the member exists and is not null. */
bool hw_member_has(const cJSON *object, const char *key);

/* Prints a value as one line of JSON. Returns 0 or HW_EXIT_FAILED. */
int hw_print_json(const struct hw_ctl *ctl, const cJSON *value);

#endif

/* SPDX-License-Identifier: MIT */
/* The settings of monitor.conf that heartwheel-alert reads. Strings are owned and never NULL; durations are in ms. */
#ifndef HW_ALERT_SETTINGS_H
#define HW_ALERT_SETTINGS_H

#include "alert/send/settings.h"
#include "conf/conf.h"
#include "conf/shared.h"
#include "incident/incidents.h"

#define HW_ALERT_INCIDENTS_MAX 100000 /* open at a time; more devices share one of their group */

/* [silence NAME]. */
struct hw_silence_settings {
	char *name;
	unsigned line;
	char **match; /* lines for hw_match_parse() */
	size_t n_match;
	char **when; /* texts for hw_window_parse() */
	size_t n_when;
	int utc;
	char *reason;
};

struct hw_alert_settings {
	struct hw_conf_head head;
	char *socket, *socket_group;
	char *pid_file, *user, *log;
	int log_level;
	int64_t clear_after_ms, mass_window_ms, flap_half_ms, blind_after_ms, keep_ms;
	int64_t mass, mass_share, flap_start, flap_end;
	struct hw_silence_settings *silences;
	size_t n_silences;
	struct hw_receiver_settings *receivers;
	size_t n_receivers;

	char *node_id;                     /* of [monitor] */
	char *task_prefix;                 /* [tasks] key_prefix */
	char *state_file, *monitor_socket; /* for [store] type = memory; monitor_socket: [http] socket */
	int store;
	struct hw_conf_redis redis;
	struct hw_notify_settings notify;
};

extern const struct hw_conf_table hw_alert_table;

/* Calls `report` for each term `group:` of a section that no [group NAME] of the file matches. `line`: of the section's
 * header. A file without groups is not checked: the monitors read another one. */
void hw_alert_lint(const struct hw_alert_settings *c, void (*report)(void *arg, unsigned line, const char *text),
                   void *arg);

/*
 * The settings in the form for the engine and the senders. `receivers` has the sections [receiver NAME], and then
 * `exec` and `webhook` if [notify] sets them. The texts are borrowed from the settings.
 */
struct hw_alert_plan {
	struct hw_incidents_conf engine;
	struct hw_receiver_settings receivers[HW_INCIDENT_RECEIVERS];
	size_t n_receivers;
	struct hw_receiver_conf *engine_receivers; /* owned, as all below */
	struct hw_silence_conf *engine_silences;
	struct hw_window *windows;
	char **texts;
	size_t n_texts;
};

/* Lists the receivers of the file: its sections, and `exec` and `webhook` of [notify]. */
size_t hw_alert_receivers(const struct hw_alert_settings *c, struct hw_receiver_settings list[HW_INCIDENT_RECEIVERS]);

/* Returns 0 or -ENOMEM; hw_alert_plan_fini() is needed in both cases. Settings that were loaded without error make a
 * plan that the engine accepts. */
int hw_alert_plan(struct hw_alert_plan *p, const struct hw_alert_settings *c);
void hw_alert_plan_fini(struct hw_alert_plan *p);

#endif

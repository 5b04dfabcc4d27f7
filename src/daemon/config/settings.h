/* SPDX-License-Identifier: MIT */
/*
 * The keys of monitor.conf that heartwheeld reads: the table of options, and the struct that conf/conf.h fills from it.
 *
 * Strings are owned and never NULL ("" if not set). Durations are in milliseconds.
 */
#ifndef HW_SETTINGS_H
#define HW_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf/conf.h"
#include "conf/presets.h"
#include "conf/shared.h"

struct hw_settings_group {
	char *name;
	int preset;       /* enum hw_preset; the preset's lines are also in the other members */
	unsigned line;    /* of its header */
	char **heartbeat; /* never empty */
	size_t n_heartbeat;
	char **goodbye; /* "FILTER", "FILTER WORD" or "FILTER MEMBER=VALUE" */
	size_t n_goodbye;
	char **ignore;
	size_t n_ignore;
	char **whiles; /* "TOPIC VALUE"; or "none" alone */
	size_t n_whiles;
	char **field; /* "NAME PATH" */
	size_t n_field;
	char *status;    /* "": nowhere */
	char *id;        /* the template of an id */
	char *id_prefix; /* "" : none */
	int64_t first_within_ms;
	int64_t timeout_ms, timeout_max_ms, goodbye_delay_ms, max_age_ms;
	int learn; /* enum hw_learn */
	int64_t timeout_min_ms;
	char *mistakes;      /* N/DURATION, from 1/3650d to 24/1d */
	unsigned n_mistakes; /* N of `mistakes` */
	int64_t mistakes_per_ms;
	int64_t learn_gaps;
	int64_t max_offline_rate; /* per second; 0: off */
	char **parents;           /* ids with names in braces */
	size_t n_parents;
	char **labels; /* "NAME VALUE" */
	size_t n_labels;
	int parent_death; /* enum hw_parent_death */
	bool child_proves;
	int64_t online_after;   /* heartbeats that bring an offline device back */
	char *probe;            /* an action or an http(s) URL; "": none */
	int64_t probe_after_ms; /* 0: see hw_settings_probe_after_ms() */
	int64_t probes;
	int payload; /* enum hw_format */
	bool batch;
	bool canary;
	int retained; /* 1: heartbeats with the retain flag count */
};

enum hw_cluster_mode { HW_CLUSTER_OFF, HW_CLUSTER_MIRROR, HW_CLUSTER_STANDBY };

struct hw_settings {
	struct hw_conf_head head;

	/* [monitor] */
	char *node_id; /* never "auto": the host name is filled in */
	char *pid_file, *user, *inventory;
	char *log; /* "syslog", "stderr" or an absolute path */
	int log_level;
	int64_t max_devices;
	int64_t forget_after_ms, forget_once_after_ms, stop_timeout_ms, stall_after_ms;

	struct hw_conf_mqtt mqtt;
	int store; /* [store] type: enum hw_store_type */
	struct hw_conf_redis redis;

	/* [cluster] */
	int cluster_mode; /* enum hw_cluster_mode */
	char *cluster_name;
	int64_t cluster_lease_ms;

	/* [keyspace] */
	bool keyspace_enabled, keyspace_configure;
	char *keyspace_group; /* the name of one of `groups` if keyspace_enabled */

	/* [http] */
	char *http_socket, *http_socket_group;
	char *http_listen; /* ADDRESS:PORT; "": none */
	char *http_users, *http_tls_cert, *http_tls_key;
	char *http_names;           /* allowed host names of `listen`: see http/origin.h */
	char *http_trusted_proxies; /* see http/proxies.h */

	/* Sockets of the other daemons, to which their requests are proxied. */
	char *tasks_socket, *history_socket, *alert_socket;

	/* [group NAME], in the order of the file; never empty */
	struct hw_settings_group *groups;
	size_t n_groups;
};

extern const struct hw_conf_table hw_settings_table;

/* Whether a group sets `while = none`, which also removes its preset's condition. */
bool hw_settings_no_whiles(const struct hw_settings_group *g);

/* Whether a group's probe is a URL, not an action for a probe over MQTT. */
bool hw_settings_is_url(const char *text);
/* Returns the silence after which a group's first probe is sent. The default is two thirds of the timeout, or the
 * timeout less HW_PROBE_WINDOW_MS, whichever is shorter. */
int64_t hw_settings_probe_after_ms(const struct hw_settings_group *g);
#define HW_PROBE_WINDOW_MS 1000

/* The users and the TLS files of `listen`, borrowed from the settings. */
#define HW_SETTINGS_SAFETY(c)                                                                                          \
	((struct hw_http_safety){.users = (c)->http_users,                                                             \
	                         .tls_cert = (c)->http_tls_cert,                                                       \
	                         .tls_key = (c)->http_tls_key,                                                         \
	                         .names = (c)->http_names,                                                             \
	                         .trusted_proxies = (c)->http_trusted_proxies})

#endif

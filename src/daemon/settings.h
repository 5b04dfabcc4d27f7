/* SPDX-License-Identifier: MIT */
/*
 * What heartwheeld reads of monitor.conf: its table of options, and the struct that conf/conf.h fills by it.
 *
 * Strings are owned and never NULL ("" where nothing was set). Durations are milliseconds.
 */
#ifndef HW_SETTINGS_H
#define HW_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf/conf.h"
#include "conf/shared.h"
#include "notify/settings.h"

struct hw_settings_group {
	char *name;
	int preset;       /* enum hw_preset; its lines are in the other members */
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
	char *id;        /* what the id is put together of */
	char *id_prefix; /* "" : none */
	int64_t timeout_ms, timeout_max_ms, goodbye_delay_ms, max_age_ms;
	int64_t max_offline_rate; /* per second; 0: off */
	char *probe;              /* an action or an http(s) URL; "": none */
	int64_t probe_after_ms;   /* 0: hw_settings_probe_after_ms() says */
	int64_t probes;
	int payload; /* enum hw_format */
	bool batch;
	bool canary;
	int retained; /* 1: heartbeats with the retain flag count */
};

enum hw_preset {
	HW_PRESET_NONE,
	HW_PRESET_TASMOTA,
	HW_PRESET_ESPHOME,
	HW_PRESET_SHELLY,
	HW_PRESET_SHELLY2,
	HW_PRESET_ZIGBEE2MQTT,
	HW_PRESET_OPENMQTTGATEWAY,
	HW_PRESET_FRIGATE,
	HW_PRESET_HOMIE,
	HW_PRESET_HOMIE5
};

enum hw_cluster_mode { HW_CLUSTER_OFF, HW_CLUSTER_MIRROR, HW_CLUSTER_STANDBY };

struct hw_settings {
	struct hw_conf_head head;

	/* [monitor] */
	char *node_id; /* never "auto": the host name has been put in */
	char *pid_file, *user;
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
	char *keyspace_group; /* the name of one of `groups`, if it is enabled */

	/* [http] */
	char *http_socket, *http_socket_group;
	char *http_listen; /* ADDRESS:PORT; "": nowhere */
	char *http_users, *http_tls_cert, *http_tls_key;
	char *http_names;           /* of `listen`: see http/origin.h */
	char *http_trusted_proxies; /* see http/proxies.h */

	/* What belongs to the other daemons is handed on to their sockets. */
	char *tasks_socket, *history_socket;

	/* [notify] */
	struct hw_notify_settings notify;

	/* [group NAME], in the order of the file; never empty */
	struct hw_settings_group *groups;
	size_t n_groups;
};

extern const struct hw_conf_table hw_settings_table;

/* Whether a group says that it has no `while`, not that of its preset either. */
bool hw_settings_no_whiles(const struct hw_settings_group *g);

/* Whether a group's probe is a URL, and no action asked with over MQTT. */
bool hw_settings_is_url(const char *text);
/* The silence before a group's first probe: two thirds of the timeout if the file does not say, but at least
 * HW_PROBE_WINDOW_MS less than it. */
int64_t hw_settings_probe_after_ms(const struct hw_settings_group *g);
#define HW_PROBE_WINDOW_MS 1000

/* What [http] says of the users of `listen`, and of its TLS; borrows. */
#define HW_SETTINGS_SAFETY(c)                                                                                          \
	((struct hw_http_safety){.users = (c)->http_users,                                                             \
	                         .tls_cert = (c)->http_tls_cert,                                                       \
	                         .tls_key = (c)->http_tls_key,                                                         \
	                         .names = (c)->http_names,                                                             \
	                         .trusted_proxies = (c)->http_trusted_proxies})

#endif

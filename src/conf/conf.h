/* SPDX-License-Identifier: MIT */
/*
 * monitor.conf: from a file to one struct, or to the list of everything that is wrong with it.
 *
 * The table of options (options.c) says of every key its section, type, unit, range, default and whether a reload
 * applies it. Parsing, the diff for a reload, and the test of conf/monitor.conf all run over that table: a new key is
 * one line there. A struct hw_conf is read-only once loaded. Its owner frees it with hw_conf_free().
 */
#ifndef HW_CONF_H
#define HW_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct hw_conf_group {
	char *name;
	char **heartbeat; /* never empty */
	size_t n_heartbeat;
	char *status;    /* "": nowhere */
	char *id_prefix; /* "" : none */
	int64_t timeout_ms, timeout_max_ms, goodbye_delay_ms, max_age_ms;
	int64_t max_offline_rate; /* per second; 0: off */
	int payload;              /* enum hw_conf_payload */
	bool batch;
};

enum hw_conf_payload { HW_CONF_PAYLOAD_JSON, HW_CONF_PAYLOAD_HOMIE };

enum hw_store_type { HW_STORE_REDIS, HW_STORE_MEMORY };
enum hw_log_level { HW_LOG_DEBUG, HW_LOG_INFO, HW_LOG_NOTICE, HW_LOG_WARNING, HW_LOG_ERROR };

/* Strings are owned and never NULL ("" where nothing was set). Durations are milliseconds. */
struct hw_conf {
	char *path;      /* the file that it came from */
	unsigned *lines; /* where each key stands in it: ask hw_conf_line() */

	/* [monitor] */
	char *node_id; /* never "auto": the host name has been put in */
	char *pid_file, *user;
	char *log; /* "syslog", "stderr" or an absolute path */
	int log_level;
	int64_t max_devices;
	int64_t forget_after_ms, forget_once_after_ms, stop_timeout_ms, stall_after_ms;

	/* [mqtt] */
	char *mqtt_host;
	int64_t mqtt_port;
	int protocol; /* 5 or 311 */
	int64_t readers, qos;
	int64_t keepalive_ms, barrier_slow_ms, barrier_timeout_ms, reconnect_grace_ms;
	int64_t republish_rate;
	char *mqtt_username, *mqtt_password_file;
	char *tls_ca, *tls_cert, *tls_key;
	char *client_id_prefix;
	bool homeassistant;
	char *homeassistant_prefix; /* levels of a topic, without a slash at either end */

	/* [store], [redis] */
	int store; /* enum hw_store_type */
	char *redis_host, *redis_unix_socket;
	int64_t redis_port, redis_db;
	char *redis_username, *redis_password_file;
	char *key_prefix;
	int64_t ttl_factor, events_max;

	/* [keyspace] */
	bool keyspace_enabled, keyspace_configure;
	char *keyspace_group; /* the name of one of `groups`, if it is enabled */

	/* [http] */
	char *http_socket, *http_socket_group;
	char *http_listen; /* ADDRESS:PORT; "": nowhere */

	/* [notify] */
	char *notify_exec, *notify_webhook;
	int64_t notify_interval_ms;

	/* [group NAME], in the order of the file; never empty */
	struct hw_conf_group *groups;
	size_t n_groups;
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
	struct hw_conf *rest;
};

enum hw_conf_template {
	HW_CONF_TEMPLATE_HEARTBEAT,
	HW_CONF_TEMPLATE_STATUS, /* is published on: without wildcards */
	HW_CONF_TEMPLATE_BATCH   /* of heartbeats that name their devices in the payload: without {id} */
};

/*
 * Judges a topic template: 0, -ENOMEM, or not, with `*why` a static sentence. The parser knows nothing of topics; its
 * caller lends it this.
 */
typedef int hw_conf_template_check(const char *text, enum hw_conf_template kind, const char **why);

/*
 * Reads a file. Returns the configuration; or NULL with every wrong line in `errors` (also when the file cannot be
 * opened: then one line says so, without a line number). `errors` must be zeroed or fresh; release with
 * hw_conf_errors_fini().
 */
struct hw_conf *hw_conf_load(const char *path, hw_conf_template_check *check, struct hw_conf_errors *errors);
void hw_conf_free(struct hw_conf *c);

/* The line of a key outside of the groups; 0: it is not in the file. For what only the daemon can find out of a value:
 * whether there is such a user, such a file. */
unsigned hw_conf_line(const struct hw_conf *c, const char *section, const char *key);

void hw_conf_errors_fini(struct hw_conf_errors *e);

/*
 * Compares two configurations. Calls `each` for every key whose value differs, named "section.key" ("group NAME.key";
 * "group NAME" alone for one that appeared or went), with whether a reload applies it (`live`) or a restart is needed.
 */
void hw_conf_diff(const struct hw_conf *from, const struct hw_conf *to,
                  void (*each)(void *arg, const char *key, bool live), void *arg);

/*
 * Writes the configuration in force, defaults included, in the form of a file: what hw_conf_load() reads back to the
 * same values. Secrets are not in it, only the names of their files.
 */
void hw_conf_print(const struct hw_conf *c, FILE *out);

/*
 * After a reload: makes `to` hold the old values of everything that only a restart changes, so that the running
 * configuration is told as it is. Returns 0, or -ENOMEM with `to` fit only to be freed.
 */
int hw_conf_keep_restart_values(const struct hw_conf *from, struct hw_conf *to);

/*
 * The first line of a secret file, without its line end, on the heap; NULL with errno if it cannot be read, is longer
 * than 4095 bytes (EFBIG) or holds a NUL byte (EINVAL).
 */
char *hw_conf_read_secret(const char *path);

#endif

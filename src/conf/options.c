/* SPDX-License-Identifier: MIT */
/*
 * Every key of monitor.conf: a new one is one line here and its field in struct hw_conf.
 *
 * Invariant: defaults are written as in the file and go through the same parser as the file, so that a default cannot
 * be what the file could not say. Lookups walk the table: it is read at start and at a reload, never in between.
 */
#include "conf/options.h"

#include <string.h>

#include "conf/conf.h"

#define AT(field)  .offset = offsetof(struct hw_conf, field), .size = sizeof(((struct hw_conf *)0)->field)
#define GAT(field) .offset = offsetof(struct hw_conf_group, field), .size = sizeof(((struct hw_conf_group *)0)->field)

#define INT      HW_CONF_INT
#define DURATION HW_CONF_DURATION
#define BOOL     HW_CONF_BOOL
#define ENUM     HW_CONF_ENUM
#define STRING   HW_CONF_STRING
#define WORD     HW_CONF_WORD
#define PATH     HW_CONF_PATH

#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

#define SOCKET_LEN 107 /* sun_path, less its NUL */

static const struct hw_conf_choice log_levels[] = {{"debug", HW_LOG_DEBUG},   {"info", HW_LOG_INFO},
                                                   {"notice", HW_LOG_NOTICE}, {"warning", HW_LOG_WARNING},
                                                   {"error", HW_LOG_ERROR},   {NULL, 0}};
static const struct hw_conf_choice protocols[] = {{"5", 5}, {"3.1.1", 311}, {NULL, 0}};
static const struct hw_conf_choice stores[] = {{"redis", HW_STORE_REDIS}, {"memory", HW_STORE_MEMORY}, {NULL, 0}};

static const struct hw_conf_choice payloads[] = {
	{"json", HW_CONF_PAYLOAD_JSON}, {"homie", HW_CONF_PAYLOAD_HOMIE}, {NULL, 0}};

/* clang-format off */
const struct hw_conf_option hw_conf_options[] = {
	{"monitor", "node_id", HW_CONF_NODE_ID, AT(node_id), .min = 1, .max = 64, .dflt = "auto"},
	{"monitor", "pid_file", PATH, AT(pid_file), .min = 1, .max = HW_CONF_LINE_MAX, .dflt = "/run/heartwheel/heartwheeld.pid"},
	{"monitor", "user", WORD, AT(user), .max = 32, .dflt = "heartwheel"},
	{"monitor", "log", HW_CONF_LOG, AT(log), .min = 1, .max = HW_CONF_LINE_MAX, .dflt = "syslog", .live = true},
	{"monitor", "log_level", ENUM, AT(log_level), .choices = log_levels, .dflt = "info", .live = true},
	{"monitor", "max_devices", INT, AT(max_devices), .min = 1, .max = 100000000, .unit = "devices", .dflt = "1000000", .live = true},
	{"monitor", "forget_after", DURATION, AT(forget_after_ms), .min = 0, .max = 3650 * DAY, .dflt = "30d", .live = true},
	{"monitor", "forget_once_after", DURATION, AT(forget_once_after_ms), .min = 0, .max = 3650 * DAY, .dflt = "1d", .live = true},
	{"monitor", "stop_timeout", DURATION, AT(stop_timeout_ms), .min = 0, .max = HOUR, .dflt = "10s"},
	{"monitor", "stall_after", DURATION, AT(stall_after_ms), .min = 50, .max = MINUTE, .dflt = "500ms"},

	{"mqtt", "host", WORD, AT(mqtt_host), .min = 1, .max = HW_CONF_LINE_MAX, .dflt = "127.0.0.1"},
	{"mqtt", "port", INT, AT(mqtt_port), .min = 1, .max = 65535, .unit = "a TCP port", .dflt = "1883"},
	{"mqtt", "protocol", ENUM, AT(protocol), .choices = protocols, .dflt = "5"},
	{"mqtt", "readers", INT, AT(readers), .min = 1, .max = 16, .unit = "connections", .dflt = "1"},
	{"mqtt", "qos", INT, AT(qos), .min = 0, .max = 1, .unit = "an MQTT QoS", .dflt = "0"},
	{"mqtt", "keepalive", DURATION, AT(keepalive_ms), .min = 5 * SECOND, .max = 65535 * SECOND, .step = SECOND, .dflt = "30s"},
	{"mqtt", "barrier_slow", DURATION, AT(barrier_slow_ms), .min = 10, .max = MINUTE, .dflt = "250ms"},
	{"mqtt", "barrier_timeout", DURATION, AT(barrier_timeout_ms), .min = 100, .max = HOUR, .dflt = "5s"},
	{"mqtt", "reconnect_grace", DURATION, AT(reconnect_grace_ms), .min = 0, .max = DAY, .dflt = "15s"},
	{"mqtt", "republish_rate", INT, AT(republish_rate), .min = 0, .max = 1000000, .unit = "statuses a second", .dflt = "5000"},
	{"mqtt", "username", STRING, AT(mqtt_username), .max = HW_CONF_LINE_MAX, .dflt = ""},
	{"mqtt", "password_file", PATH, AT(mqtt_password_file), .max = HW_CONF_LINE_MAX, .dflt = ""},
	{"mqtt", "tls_ca", PATH, AT(tls_ca), .max = HW_CONF_LINE_MAX, .dflt = ""},
	{"mqtt", "tls_cert", PATH, AT(tls_cert), .max = HW_CONF_LINE_MAX, .dflt = ""},
	{"mqtt", "tls_key", PATH, AT(tls_key), .max = HW_CONF_LINE_MAX, .dflt = ""},
	{"mqtt", "client_id_prefix", WORD, AT(client_id_prefix), .min = 1, .max = 64, .dflt = "heartwheel"},
	{"mqtt", "homeassistant", BOOL, AT(homeassistant), .dflt = "no"},
	{"mqtt", "homeassistant_prefix", WORD, AT(homeassistant_prefix), .min = 1, .max = 128, .dflt = "homeassistant"},

	{"store", "type", ENUM, AT(store), .choices = stores, .dflt = "redis"},

	{"redis", "host", WORD, AT(redis_host), .min = 1, .max = HW_CONF_LINE_MAX, .dflt = "127.0.0.1"},
	{"redis", "unix_socket", PATH, AT(redis_unix_socket), .max = SOCKET_LEN, .dflt = ""},
	{"redis", "port", INT, AT(redis_port), .min = 1, .max = 65535, .unit = "a TCP port", .dflt = "6379"},
	{"redis", "db", INT, AT(redis_db), .min = 0, .max = 65535, .unit = "a database number", .dflt = "0"},
	{"redis", "username", STRING, AT(redis_username), .max = HW_CONF_LINE_MAX, .dflt = ""},
	{"redis", "password_file", PATH, AT(redis_password_file), .max = HW_CONF_LINE_MAX, .dflt = ""},
	{"redis", "key_prefix", WORD, AT(key_prefix), .min = 1, .max = 64, .dflt = "device:"},
	{"redis", "ttl_factor", INT, AT(ttl_factor), .min = 2, .max = 1000, .unit = "timeouts", .dflt = "3"},
	{"redis", "events_max", INT, AT(events_max), .min = 1, .max = 1000000000, .unit = "events", .dflt = "1000000"},

	{"keyspace", "enabled", HW_CONF_BOOL, AT(keyspace_enabled), .dflt = "no"},
	{"keyspace", "configure", HW_CONF_BOOL, AT(keyspace_configure), .dflt = "no"},
	{"keyspace", "group", STRING, AT(keyspace_group), .min = 1, .max = 64, .dflt = "default"},

	{"http", "socket", PATH, AT(http_socket), .min = 1, .max = SOCKET_LEN, .dflt = "/run/heartwheel/control.sock"},
	{"http", "socket_group", WORD, AT(http_socket_group), .max = 32, .dflt = ""},
	{"http", "listen", HW_CONF_ADDRESS, AT(http_listen), .max = HW_CONF_LINE_MAX, .dflt = ""},

	{"notify", "exec", PATH, AT(notify_exec), .max = HW_CONF_LINE_MAX, .dflt = "", .live = true},
	{"notify", "webhook", WORD, AT(notify_webhook), .max = HW_CONF_LINE_MAX, .dflt = "", .live = true},
	{"notify", "notify_interval", DURATION, AT(notify_interval_ms), .min = 100, .max = DAY, .dflt = "10s", .live = true},

	{"group", "heartbeat", HW_CONF_TOPICS, GAT(heartbeat), .min = 1, .max = HW_CONF_LINE_MAX, .live = true, .count_offset = offsetof(struct hw_conf_group, n_heartbeat)},
	{"group", "status", HW_CONF_TOPIC, GAT(status), .max = HW_CONF_LINE_MAX, .dflt = "nodes/{id}/status", .live = true},
	{"group", "id_prefix", HW_CONF_ID, GAT(id_prefix), .max = 64, .dflt = "", .live = true},
	{"group", "timeout", DURATION, GAT(timeout_ms), .min = 100, .max = 3650 * DAY, .dflt = "30s", .live = true},
	{"group", "timeout_max", DURATION, GAT(timeout_max_ms), .min = 100, .max = 3650 * DAY, .dflt = "1d", .live = true},
	{"group", "goodbye_delay", DURATION, GAT(goodbye_delay_ms), .min = 0, .max = DAY, .dflt = "0", .live = true},
	{"group", "max_age", DURATION, GAT(max_age_ms), .min = 0, .max = 3650 * DAY, .dflt = "0", .live = true},
	{"group", "max_offline_rate", INT, GAT(max_offline_rate), .min = 0, .max = 1000000, .unit = "statuses a second", .dflt = "0", .live = true},
	{"group", "payload", ENUM, GAT(payload), .choices = payloads, .dflt = "json", .live = true},
	{"group", "batch", BOOL, GAT(batch), .dflt = "no", .live = true},
};
/* clang-format on */

#define N_OPTIONS (sizeof(hw_conf_options) / sizeof(hw_conf_options[0]))
_Static_assert(N_OPTIONS <= HW_CONF_OPTIONS_MAX, "marks are kept in arrays of this size");

const size_t hw_conf_n_options = N_OPTIONS;

bool hw_conf_option_in_group(const struct hw_conf_option *o)
{
	return strcmp(o->section, "group") == 0;
}

int hw_conf_option_find(const char *section, const char *key)
{
	for (size_t i = 0; i < N_OPTIONS; i++) {
		const struct hw_conf_option *o = &hw_conf_options[i];
		if (strcmp(o->section, section) == 0 && (!key || strcmp(o->key, key) == 0))
			return (int)i;
	}
	return -1;
}

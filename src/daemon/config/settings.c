/* SPDX-License-Identifier: MIT */
/*
 * All keys of monitor.conf that heartwheeld reads. A new key needs one line here and a member in struct hw_settings.
 *
 * Invariant: defaults are written as in the file and pass the same parser. So each default is a value that the file
 * could contain.
 */
#include "settings.h"

#include "conf/table.h"
#include "heartwheel/group.h"
#include "heartwheel/monitor.h"
#include "http/origin.h"
#include "http/proxies.h"
#include "rules.h"
#include "run/log.h"

#define AT(field)  HW_CONF_AT(struct hw_settings, field)
#define GAT(field) HW_CONF_AT(struct hw_settings_group, field)

#define URL_MAX 2048

static const struct hw_conf_choice payloads[] = {
	{"json", HW_FORMAT_JSON}, {"homie", HW_FORMAT_HOMIE}, {"plain", HW_FORMAT_PLAIN}, {NULL, 0}};

static const struct hw_conf_choice retained[] = {{"ignore", 0}, {"count", 1}, {NULL, 0}};

static const struct hw_conf_choice parent_deaths[] = {{"note", HW_PARENT_NOTE}, {"take", HW_PARENT_TAKE}, {NULL, 0}};

static const struct hw_conf_choice learns[] = {
	{"no", HW_LEARN_NO}, {"show", HW_LEARN_SHOW}, {"yes", HW_LEARN_YES}, {NULL, 0}};

static const struct hw_conf_choice cluster_modes[] = {
	{"off", HW_CLUSTER_OFF}, {"mirror", HW_CLUSTER_MIRROR}, {"standby", HW_CLUSTER_STANDBY}, {NULL, 0}};

/* clang-format off */
static const struct hw_conf_option options[] = {
	{"monitor", "node_id", HW_CONF_NODE_ID, AT(node_id), .min = 1, .max = 64, .dflt = "auto"},
	{"monitor", "pid_file", HW_CONF_PATH, AT(pid_file), .min = 1, .max = HW_CONF_TEXT_MAX, .dflt = "/run/heartwheel/heartwheeld.pid"},
	{"monitor", "user", HW_CONF_WORD, AT(user), .max = 32, .dflt = "heartwheel"},
	{"monitor", "log", HW_CONF_LOG, AT(log), .min = 1, .max = HW_CONF_TEXT_MAX, .dflt = "syslog", .live = true},
	{"monitor", "log_level", HW_CONF_ENUM, AT(log_level), .choices = hw_log_levels, .dflt = "info", .live = true},
	{"monitor", "max_devices", HW_CONF_INT, AT(max_devices), .min = 1, .max = 100000000, .unit = "devices", .dflt = "1000000", .live = true},
	{"monitor", "forget_after", HW_CONF_DURATION, AT(forget_after_ms), .min = 0, .max = 3650 * HW_CONF_DAY, .dflt = "30d", .live = true},
	{"monitor", "forget_once_after", HW_CONF_DURATION, AT(forget_once_after_ms), .min = 0, .max = 3650 * HW_CONF_DAY, .dflt = "1d", .live = true},
	{"monitor", "inventory", HW_CONF_PATH, AT(inventory), .max = HW_CONF_TEXT_MAX, .dflt = ""},
	{"monitor", "stop_timeout", HW_CONF_DURATION, AT(stop_timeout_ms), .min = 0, .max = HW_CONF_HOUR, .dflt = "10s"},
	{"monitor", "stall_after", HW_CONF_DURATION, AT(stall_after_ms), .min = 50, .max = HW_CONF_MINUTE, .dflt = "500ms"},

	HW_CONF_MQTT_ROWS(struct hw_settings, mqtt),

	HW_CONF_STORE_ROWS(struct hw_settings, store),

	HW_CONF_REDIS_ROWS(struct hw_settings, redis),

	{"cluster", "mode", HW_CONF_ENUM, AT(cluster_mode), .choices = cluster_modes, .dflt = "off"},
	{"cluster", "name", HW_CONF_WORD, AT(cluster_name), .min = 1, .max = HW_CONF_NAME_MAX, .dflt = "heartwheel"},
	{"cluster", "lease", HW_CONF_DURATION, AT(cluster_lease_ms), .min = 1000, .max = HW_CONF_MINUTE, .dflt = "5s"},

	{"keyspace", "enabled", HW_CONF_BOOL, AT(keyspace_enabled), .dflt = "no"},
	{"keyspace", "configure", HW_CONF_BOOL, AT(keyspace_configure), .dflt = "no"},
	{"keyspace", "group", HW_CONF_STRING, AT(keyspace_group), .min = 1, .max = HW_CONF_NAME_MAX, .dflt = "default"},

	{"http", "socket", HW_CONF_PATH, AT(http_socket), .min = 1, .max = HW_CONF_SOCKET_MAX, .dflt = "/run/heartwheel/control.sock"},
	{"http", "socket_group", HW_CONF_WORD, AT(http_socket_group), .max = 32, .dflt = ""},
	{"http", "listen", HW_CONF_ADDRESS, AT(http_listen), .max = HW_CONF_TEXT_MAX, .dflt = ""},
	{"http", "users", HW_CONF_PATH, AT(http_users), .max = HW_CONF_TEXT_MAX, .dflt = "", .live = true},
	{"http", "tls_cert", HW_CONF_PATH, AT(http_tls_cert), .max = HW_CONF_TEXT_MAX, .dflt = "", .live = true},
	{"http", "tls_key", HW_CONF_PATH, AT(http_tls_key), .max = HW_CONF_TEXT_MAX, .dflt = "", .live = true},

	{"http", "names", HW_CONF_STRING, AT(http_names), .max = HW_ORIGIN_NAMES_MAX, .dflt = "", .live = true},
	{"http", "trusted_proxies", HW_CONF_STRING, AT(http_trusted_proxies), .max = HW_PROXIES_TEXT_MAX, .dflt = "", .live = true},

	{"tasks", "socket", HW_CONF_PATH, AT(tasks_socket), .min = 1, .max = HW_CONF_SOCKET_MAX, .dflt = "/run/heartwheel/tasks.sock", .borrowed = true},
	{"history", "socket", HW_CONF_PATH, AT(history_socket), .min = 1, .max = HW_CONF_SOCKET_MAX, .dflt = "/run/heartwheel/history.sock", .borrowed = true},
	{"alert", "socket", HW_CONF_PATH, AT(alert_socket), .min = 1, .max = HW_CONF_SOCKET_MAX, .dflt = "/run/heartwheel/alert.sock", .borrowed = true},

	{"group", "preset", HW_CONF_ENUM, GAT(preset), .choices = hw_presets, .dflt = "", .live = true},
	{"group", "heartbeat", HW_CONF_TOPICS, GAT(heartbeat), .min = 1, .max = HW_CONF_TEXT_MAX, .live = true, .count_offset = offsetof(struct hw_settings_group, n_heartbeat)},
	{"group", "goodbye", HW_CONF_TOPICS, GAT(goodbye), .min = 1, .max = HW_CONF_TEXT_MAX, .live = true, .count_offset = offsetof(struct hw_settings_group, n_goodbye)},
	{"group", "ignore", HW_CONF_TOPICS, GAT(ignore), .min = 1, .max = HW_CONF_TEXT_MAX, .live = true, .count_offset = offsetof(struct hw_settings_group, n_ignore)},
	{"group", "while", HW_CONF_TOPICS, GAT(whiles), .min = 1, .max = HW_CONF_TEXT_MAX, .live = true, .count_offset = offsetof(struct hw_settings_group, n_whiles)},
	{"group", "field", HW_CONF_TOPICS, GAT(field), .min = 1, .max = HW_CONF_TEXT_MAX, .live = true, .count_offset = offsetof(struct hw_settings_group, n_field)},
	{"group", "status", HW_CONF_TOPIC, GAT(status), .max = HW_CONF_TEXT_MAX, .dflt = "nodes/{id}/status", .live = true},
	{"group", "id", HW_CONF_TOPIC, GAT(id), .min = 1, .max = HW_CONF_TEXT_MAX, .dflt = "{id}", .live = true},
	{"group", "id_prefix", HW_CONF_ID, GAT(id_prefix), .max = 64, .dflt = "", .live = true},
	{"group", "timeout", HW_CONF_DURATION, GAT(timeout_ms), .min = HW_TIMEOUT_MIN_MS, .max = HW_TIMEOUT_MAX_MS, .dflt = "30s", .live = true},
	{"group", "timeout_max", HW_CONF_DURATION, GAT(timeout_max_ms), .min = HW_TIMEOUT_MIN_MS, .max = HW_TIMEOUT_MAX_MS, .dflt = "1d", .live = true},
	{"group", "first_within", HW_CONF_DURATION, GAT(first_within_ms), .min = 0, .max = 30 * HW_CONF_DAY, .dflt = "1h", .live = true},
	{"group", "learn", HW_CONF_ENUM, GAT(learn), .choices = learns, .dflt = "no", .live = true},
	{"group", "timeout_min", HW_CONF_DURATION, GAT(timeout_min_ms), .min = HW_TIMEOUT_MIN_MS, .max = HW_TIMEOUT_MAX_MS, .dflt = "10s", .live = true},
	{"group", "mistakes", HW_CONF_WORD, GAT(mistakes), .min = 1, .max = HW_CONF_TEXT_MAX, .dflt = "1/30d", .live = true},
	{"group", "learn_gaps", HW_CONF_INT, GAT(learn_gaps), .min = 1, .max = 10, .unit = "gaps", .dflt = "2", .live = true},
	{"group", "goodbye_delay", HW_CONF_DURATION, GAT(goodbye_delay_ms), .min = 0, .max = HW_CONF_DAY, .dflt = "0", .live = true},
	{"group", "max_age", HW_CONF_DURATION, GAT(max_age_ms), .min = 0, .max = 3650 * HW_CONF_DAY, .dflt = "0", .live = true},
	{"group", "max_offline_rate", HW_CONF_INT, GAT(max_offline_rate), .min = 0, .max = 1000000, .unit = "statuses a second", .dflt = "0", .live = true},
	{"group", "parent", HW_CONF_TOPICS, GAT(parents), .min = 1, .max = HW_CONF_TEXT_MAX, .live = true, .count_offset = offsetof(struct hw_settings_group, n_parents)},
	{"group", "label", HW_CONF_TOPICS, GAT(labels), .min = 1, .max = HW_CONF_TEXT_MAX, .live = true, .count_offset = offsetof(struct hw_settings_group, n_labels)},
	{"group", "parent_death", HW_CONF_ENUM, GAT(parent_death), .choices = parent_deaths, .dflt = "note", .live = true},
	{"group", "child_proves", HW_CONF_BOOL, GAT(child_proves), .dflt = "no", .live = true},
	{"group", "online_after", HW_CONF_INT, GAT(online_after), .min = 1, .max = HW_ONLINE_AFTER_MAX, .unit = "heartbeats", .dflt = "1", .live = true},
	{"group", "probe", HW_CONF_WORD, GAT(probe), .max = URL_MAX, .dflt = "", .live = true},
	{"group", "probe_after", HW_CONF_DURATION, GAT(probe_after_ms), .min = 0, .max = HW_TIMEOUT_MAX_MS, .dflt = "0", .live = true},
	{"group", "probes", HW_CONF_INT, GAT(probes), .min = 1, .max = HW_PROBES_MAX, .unit = "probes", .dflt = "1", .live = true},
	{"group", "payload", HW_CONF_ENUM, GAT(payload), .choices = payloads, .dflt = "json", .live = true},
	{"group", "batch", HW_CONF_BOOL, GAT(batch), .dflt = "no", .live = true},
	{"group", "retained", HW_CONF_ENUM, GAT(retained), .choices = retained, .dflt = "ignore", .live = true},
	{"group", "canary", HW_CONF_BOOL, GAT(canary), .dflt = "yes", .live = true},
};
/* clang-format on */

#define N_OPTIONS (sizeof(options) / sizeof(options[0]))
_Static_assert(N_OPTIONS <= HW_CONF_OPTIONS_MAX, "struct hw_conf_origins has arrays of this size");
_Static_assert(HW_CONF_READERS_MAX == HW_READERS_MAX, "the configuration's limits are those of the core");

const struct hw_conf_table hw_settings_table = {.options = options,
                                                .n_options = N_OPTIONS,
                                                .size = sizeof(struct hw_settings),
                                                .named = {{.kind = "group",
                                                           .list = offsetof(struct hw_settings, groups),
                                                           .count = offsetof(struct hw_settings, n_groups),
                                                           .size = sizeof(struct hw_settings_group),
                                                           .line = offsetof(struct hw_settings_group, line),
                                                           .max = HW_GROUPS_MAX,
                                                           .dflt = "default"}},
                                                .judge = hw_settings_judge};

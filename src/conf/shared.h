/* SPDX-License-Identifier: MIT */
/*
 * The sections that several programs read: [mqtt], [store] and [redis]. Each section has a struct and rows of a table
 * here. Every program accepts all keys of a section, including those that it does not use, because the file is shared.
 *
 * Strings are owned and never NULL ("": not set). Durations are milliseconds.
 */
#ifndef HW_CONF_SHARED_H
#define HW_CONF_SHARED_H

#include <stdbool.h>
#include <sys/un.h>

#include "conf/draft.h"
#include "conf/table.h"

#define HW_CONF_READERS_MAX   16
#define HW_CONF_SOCKET_MAX    (sizeof(((struct sockaddr_un *)0)->sun_path) - 1) /* bytes of a path */
#define HW_CONF_SENTINELS_MAX 2048                                              /* bytes of the list */

struct hw_conf_mqtt {
	char *host;
	int64_t port;
	int protocol; /* 5 or 311 */
	int64_t readers, qos;
	int64_t keepalive_ms, barrier_slow_ms, barrier_timeout_ms, reconnect_grace_ms;
	int64_t republish_rate, probe_rate;
	char *username, *password_file;
	char *tls_ca, *tls_cert, *tls_key;
	char *client_id_prefix;
	bool homeassistant;
	char *homeassistant_prefix; /* topic levels, without a slash at either end */
};

enum hw_store_type { HW_STORE_REDIS, HW_STORE_MEMORY };

struct hw_conf_redis {
	char *host, *unix_socket;
	char *sentinels, *master; /* sentinels: a list for hw_hosts_parse() */
	int64_t port, db;
	char *username, *password_file;
	char *key_prefix;
	int64_t ttl_factor, events_max;
	bool refresh_last_seen, exclusive;
};

extern const struct hw_conf_choice hw_conf_protocols[], hw_conf_stores[];

/* The keys of a section, as rows of a program's table of options. Each program that reads the section includes them.
 * `type`: the program's settings struct. `member`: its member for this section. */
/* clang-format off */
#define HW_CONF_MQTT_ROWS(type, member) \
	{"mqtt", "host", HW_CONF_WORD, HW_CONF_AT(type, member.host), .min = 1, .max = HW_CONF_TEXT_MAX, .dflt = "127.0.0.1"}, \
	{"mqtt", "port", HW_CONF_INT, HW_CONF_AT(type, member.port), .min = 1, .max = 65535, .unit = "a TCP port", .dflt = "1883"}, \
	{"mqtt", "protocol", HW_CONF_ENUM, HW_CONF_AT(type, member.protocol), .choices = hw_conf_protocols, .dflt = "5"}, \
	{"mqtt", "readers", HW_CONF_INT, HW_CONF_AT(type, member.readers), .min = 1, .max = HW_CONF_READERS_MAX, .unit = "connections", .dflt = "1"}, \
	{"mqtt", "qos", HW_CONF_INT, HW_CONF_AT(type, member.qos), .min = 0, .max = 1, .unit = "an MQTT QoS", .dflt = "0"}, \
	{"mqtt", "keepalive", HW_CONF_DURATION, HW_CONF_AT(type, member.keepalive_ms), .min = 5 * HW_CONF_SECOND, .max = 65535 * HW_CONF_SECOND, .step = HW_CONF_SECOND, .dflt = "30s"}, \
	{"mqtt", "barrier_slow", HW_CONF_DURATION, HW_CONF_AT(type, member.barrier_slow_ms), .min = 10, .max = HW_CONF_MINUTE, .dflt = "250ms"}, \
	{"mqtt", "barrier_timeout", HW_CONF_DURATION, HW_CONF_AT(type, member.barrier_timeout_ms), .min = 100, .max = HW_CONF_HOUR, .dflt = "5s"}, \
	{"mqtt", "reconnect_grace", HW_CONF_DURATION, HW_CONF_AT(type, member.reconnect_grace_ms), .min = 0, .max = HW_CONF_DAY, .dflt = "15s"}, \
	{"mqtt", "republish_rate", HW_CONF_INT, HW_CONF_AT(type, member.republish_rate), .min = 0, .max = 1000000, .unit = "statuses a second", .dflt = "5000"}, \
	{"mqtt", "probe_rate", HW_CONF_INT, HW_CONF_AT(type, member.probe_rate), .min = 1, .max = 1000000, .unit = "probes a second", .dflt = "1000", .live = true}, \
	{"mqtt", "username", HW_CONF_STRING, HW_CONF_AT(type, member.username), .max = HW_CONF_TEXT_MAX, .dflt = ""}, \
	{"mqtt", "password_file", HW_CONF_PATH, HW_CONF_AT(type, member.password_file), .max = HW_CONF_TEXT_MAX, .dflt = ""}, \
	{"mqtt", "tls_ca", HW_CONF_PATH, HW_CONF_AT(type, member.tls_ca), .max = HW_CONF_TEXT_MAX, .dflt = ""}, \
	{"mqtt", "tls_cert", HW_CONF_PATH, HW_CONF_AT(type, member.tls_cert), .max = HW_CONF_TEXT_MAX, .dflt = ""}, \
	{"mqtt", "tls_key", HW_CONF_PATH, HW_CONF_AT(type, member.tls_key), .max = HW_CONF_TEXT_MAX, .dflt = ""}, \
	{"mqtt", "client_id_prefix", HW_CONF_WORD, HW_CONF_AT(type, member.client_id_prefix), .min = 1, .max = 64, .dflt = "heartwheel"}, \
	{"mqtt", "homeassistant", HW_CONF_BOOL, HW_CONF_AT(type, member.homeassistant), .dflt = "no"}, \
	{"mqtt", "homeassistant_prefix", HW_CONF_WORD, HW_CONF_AT(type, member.homeassistant_prefix), .min = 1, .max = 128, .dflt = "homeassistant"}

/* The member is an int: enum hw_store_type. */
#define HW_CONF_STORE_ROWS(type, member) \
	{"store", "type", HW_CONF_ENUM, HW_CONF_AT(type, member), .choices = hw_conf_stores, .dflt = "redis"}

#define HW_CONF_REDIS_ROWS(type, member) \
	{"redis", "host", HW_CONF_WORD, HW_CONF_AT(type, member.host), .min = 1, .max = HW_CONF_TEXT_MAX, .dflt = "127.0.0.1"}, \
	{"redis", "unix_socket", HW_CONF_PATH, HW_CONF_AT(type, member.unix_socket), .max = HW_CONF_SOCKET_MAX, .dflt = ""}, \
	{"redis", "port", HW_CONF_INT, HW_CONF_AT(type, member.port), .min = 1, .max = 65535, .unit = "a TCP port", .dflt = "6379"}, \
	{"redis", "sentinels", HW_CONF_STRING, HW_CONF_AT(type, member.sentinels), .max = HW_CONF_SENTINELS_MAX, .dflt = ""}, \
	{"redis", "master", HW_CONF_WORD, HW_CONF_AT(type, member.master), .max = 128, .dflt = ""}, \
	{"redis", "db", HW_CONF_INT, HW_CONF_AT(type, member.db), .min = 0, .max = 65535, .unit = "a database number", .dflt = "0"}, \
	{"redis", "username", HW_CONF_STRING, HW_CONF_AT(type, member.username), .max = HW_CONF_TEXT_MAX, .dflt = ""}, \
	{"redis", "password_file", HW_CONF_PATH, HW_CONF_AT(type, member.password_file), .max = HW_CONF_TEXT_MAX, .dflt = ""}, \
	{"redis", "key_prefix", HW_CONF_WORD, HW_CONF_AT(type, member.key_prefix), .min = 1, .max = 64, .dflt = "device:"}, \
	{"redis", "ttl_factor", HW_CONF_INT, HW_CONF_AT(type, member.ttl_factor), .min = 2, .max = 1000, .unit = "timeouts", .dflt = "3"}, \
	{"redis", "events_max", HW_CONF_INT, HW_CONF_AT(type, member.events_max), .min = 1, .max = 1000000000, .unit = "events", .dflt = "1000000"}, \
	{"redis", "refresh_last_seen", HW_CONF_BOOL, HW_CONF_AT(type, member.refresh_last_seen), .dflt = "no"}, \
	{"redis", "exclusive", HW_CONF_BOOL, HW_CONF_AT(type, member.exclusive), .dflt = "yes"}
/* clang-format on */

/* Whether `text` is an http:// or https:// URL that has a host. */
bool hw_conf_is_url(const char *text);

/* Applies the rules of [mqtt] and [redis], for a table's `judge`. */
void hw_conf_judge_mqtt(struct hw_conf_draft *d, const struct hw_conf_mqtt *c);
void hw_conf_judge_redis(struct hw_conf_draft *d, const struct hw_conf_redis *c);

#endif

/* SPDX-License-Identifier: MIT */
/* monitor.conf: the values of single keys, and of keys that need each other. */
#include <check.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../suite.h"
#include "conf/table.h"
#include "conf/value.h"
#include "conf_rig.h"
#include "heartwheel/group.h"
#include "run/log.h"

static void expect_group(const struct hw_settings_group *g, const char *name, int64_t timeout_ms,
                         int64_t timeout_max_ms)
{
	ck_assert_str_eq(g->name, name);
	ck_assert_int_eq(g->timeout_ms, timeout_ms);
	ck_assert_int_eq(g->timeout_max_ms, timeout_max_ms);
}

#define GROUP "[group a]\nheartbeat = a/{id}\n"

START_TEST(empty_file_has_the_documented_defaults)
{
	struct hw_settings *c = load("");
	ck_assert_str_eq(c->node_id, "box.example");
	ck_assert_str_eq(c->pid_file, "/run/heartwheel/heartwheeld.pid");
	ck_assert_str_eq(c->user, "heartwheel");
	ck_assert_str_eq(c->log, "syslog");
	ck_assert_int_eq(c->log_level, HW_LOG_INFO);
	ck_assert_int_eq(c->max_devices, 1000000);
	ck_assert_int_eq(c->forget_after_ms, INT64_C(30) * 86400000);
	ck_assert_int_eq(c->forget_once_after_ms, 86400000);
	ck_assert_int_eq(c->stop_timeout_ms, 10000);
	ck_assert_int_eq(c->stall_after_ms, 500);
	ck_assert_str_eq(c->mqtt.host, "127.0.0.1");
	ck_assert_int_eq(c->mqtt.port, 1883);
	ck_assert_int_eq(c->mqtt.protocol, 5);
	ck_assert_int_eq(c->mqtt.readers, 1);
	ck_assert_int_eq(c->mqtt.qos, 0);
	ck_assert_int_eq(c->mqtt.keepalive_ms, 30000);
	ck_assert_int_eq(c->mqtt.barrier_slow_ms, 250);
	ck_assert_int_eq(c->mqtt.barrier_timeout_ms, 5000);
	ck_assert_int_eq(c->mqtt.reconnect_grace_ms, 15000);
	ck_assert_int_eq(c->mqtt.republish_rate, 5000);
	ck_assert_str_eq(c->mqtt.username, "");
	ck_assert_str_eq(c->mqtt.password_file, "");
	ck_assert_str_eq(c->mqtt.tls_ca, "");
	ck_assert_str_eq(c->mqtt.tls_cert, "");
	ck_assert_str_eq(c->mqtt.tls_key, "");
	ck_assert_str_eq(c->mqtt.client_id_prefix, "heartwheel");
	ck_assert(!c->mqtt.homeassistant);
	ck_assert_str_eq(c->mqtt.homeassistant_prefix, "homeassistant");
	ck_assert_int_eq(c->store, HW_STORE_REDIS);
	ck_assert_str_eq(c->redis.host, "127.0.0.1");
	ck_assert_str_eq(c->redis.unix_socket, "");
	ck_assert_str_eq(c->redis.sentinels, "");
	ck_assert_str_eq(c->redis.master, "");
	ck_assert_int_eq(c->redis.port, 6379);
	ck_assert_int_eq(c->redis.db, 0);
	ck_assert_str_eq(c->redis.username, "");
	ck_assert_str_eq(c->redis.password_file, "");
	ck_assert_str_eq(c->redis.key_prefix, "device:");
	ck_assert_int_eq(c->redis.ttl_factor, 3);
	ck_assert_int_eq(c->redis.events_max, 1000000);
	ck_assert_int_eq(c->cluster_mode, HW_CLUSTER_OFF);
	ck_assert_str_eq(c->cluster_name, "heartwheel");
	ck_assert_int_eq(c->cluster_lease_ms, 5000);
	ck_assert_str_eq(c->http_socket, "/run/heartwheel/control.sock");
	ck_assert_str_eq(c->http_socket_group, "");
	ck_assert_str_eq(c->http_listen, "");
	ck_assert_uint_eq(c->n_groups, 1);
	expect_group(&c->groups[0], "default", 30000, 86400000);
	ck_assert_uint_eq(c->groups[0].n_heartbeat, 2);
	ck_assert_str_eq(c->groups[0].heartbeat[0], "nodes/{id}/heartbeat");
	ck_assert_str_eq(c->groups[0].heartbeat[1], "nodes/{id}/status");
	ck_assert_str_eq(c->groups[0].status, "nodes/{id}/status");
	ck_assert_str_eq(c->groups[0].id_prefix, "");
	ck_assert_int_eq(c->groups[0].goodbye_delay_ms, 0);
	ck_assert_int_eq(c->groups[0].max_age_ms, 0);
	ck_assert_int_eq(c->groups[0].max_offline_rate, 0);
	ck_assert_int_eq(c->groups[0].payload, HW_FORMAT_JSON);
	ck_assert(!c->groups[0].batch);
	hw_conf_free(c);
	/* The group default keeps its topics when only something else of it is set. */
	c = load("[group default]\ntimeout = 2s\n");
	expect_group(&c->groups[0], "default", 2000, 86400000);
	ck_assert_uint_eq(c->groups[0].n_heartbeat, 2);
	ck_assert_str_eq(c->groups[0].heartbeat[0], "nodes/{id}/heartbeat");
	ck_assert_str_eq(c->groups[0].status, "nodes/{id}/status");
	hw_conf_free(c);
	c = load("[group default]\nheartbeat = x/{id}\nstatus =\n");
	ck_assert_uint_eq(c->groups[0].n_heartbeat, 1);
	ck_assert_str_eq(c->groups[0].status, "");
	hw_conf_free(c);
}
END_TEST

START_TEST(homeassistant_prefixes)
{
	static const char *const bad[] = {"a/#", "+", "/a", "a/", "$SYS", "/"};
	char text[64];
	struct hw_settings *c = load("[mqtt]\nhomeassistant = yes\nhomeassistant_prefix = a/b$\n");
	ck_assert(c->mqtt.homeassistant);
	ck_assert_str_eq(c->mqtt.homeassistant_prefix, "a/b$");
	hw_conf_free(c);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "[mqtt]\nhomeassistant_prefix = %s\n", bad[i]);
		REFUSE(text, ":2: key 'homeassistant_prefix': must be one or more levels");
	}
}
END_TEST

START_TEST(probes)
{
	static const struct {
		const char *lines, *wrong;
	} bad[] = {{"probe = http://a/b\n", ":2: key 'probe': a URL must be http:// or https:// and have {id}"},
	           {"probe = ftp://{id}/b\n", ":2: key 'probe': a URL must be http:// or https:// and have {id}"},
	           {"probe = a/b\n", ":2: key 'probe': must be an action"},
	           {"probe = \"\n", ":2: key 'probe': must be an action"},
	           {"probe = ping\ntimeout = 1s\n", ":2: key 'probe': this group's timeout is too short"},
	           {"probe = ping\nprobe_after = 29001ms\n",
	            ":3: key 'probe_after': must be at least 1s less than this "
	            "group's timeout: give 29s or less"},
	           {"probes = 4\n", ":2: key 'probes': "}};
	char text[128];
	struct hw_settings *c = load("[group default]\nprobe = http://{id}.example/\nprobe_after = 29s\nprobes = 3\n"
	                             "[group b]\nheartbeat = b/{id}\nprobe = Ping_1.x-y\ntimeout = 1m\n"
	                             "[group c]\nheartbeat = c/{id}\nprobe = ping\ntimeout = 2s\n"
	                             "[group d]\nheartbeat = d/{id}\nprobe_after = 5m\n");
	ck_assert(hw_settings_is_url(c->groups[0].probe) && !hw_settings_is_url(c->groups[1].probe));
	ck_assert_int_eq(c->groups[0].probes, 3);
	ck_assert_int_eq(hw_settings_probe_after_ms(&c->groups[0]), 29000);
	ck_assert_int_eq(c->groups[1].probes, 1);
	ck_assert_int_eq(hw_settings_probe_after_ms(&c->groups[1]), 40000);
	ck_assert_int_eq(hw_settings_probe_after_ms(&c->groups[2]), 1000);
	ck_assert_int_eq(c->mqtt.probe_rate, 1000);
	hw_conf_free(c);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "[group default]\n%s", bad[i].lines);
		REFUSE(text, bad[i].wrong);
	}
}
END_TEST

START_TEST(values_of_every_type)
{
	struct hw_settings *c =
		load("[monitor]\nnode_id=n-1.example\nlog = /var/log/hw.log\nlog_level = warning\nuser =\n"
	             "[mqtt]\nprotocol = 3.1.1\nqos: 1\nport = 65535\nusername = ein Mensch \xc3\xa9\n"
	             "password_file = /a b\ntls_ca = /ca\ntls_cert = /c\ntls_key = /k\n"
	             "[store]\ntype = memory\n[redis]\nkey_prefix = {x}*:\nunix_socket = /run/r.sock\n"
	             "[group b c]\nheartbeat = b/{id}/#\nheartbeat = +/{id}\nid_prefix = b-\ntimeout = 2d\n"
	             "[group a]\nheartbeat = a/{id}\nstatus = a/{id}/s\nmax_offline_rate = 7\nmax_age = 5\n"
	             "goodbye_delay = 3s\ntimeout = 10m\ntimeout_max = 1h\n");
	ck_assert_str_eq(c->node_id, "n-1.example");
	ck_assert_str_eq(c->log, "/var/log/hw.log");
	ck_assert_int_eq(c->log_level, HW_LOG_WARNING);
	ck_assert_str_eq(c->user, "");
	ck_assert_int_eq(c->mqtt.protocol, 311);
	ck_assert_int_eq(c->mqtt.qos, 1);
	ck_assert_int_eq(c->mqtt.port, 65535);
	ck_assert_str_eq(c->mqtt.username, "ein Mensch \xc3\xa9");
	ck_assert_str_eq(c->mqtt.password_file, "/a b");
	ck_assert_int_eq(c->store, HW_STORE_MEMORY);
	ck_assert_str_eq(c->redis.key_prefix, "{x}*:");
	ck_assert_str_eq(c->redis.unix_socket, "/run/r.sock");
	ck_assert_uint_eq(c->n_groups, 2);
	expect_group(&c->groups[0], "b c", 2 * 86400000, 2 * 86400000); /* timeout_max follows a longer timeout */
	ck_assert_uint_eq(c->groups[0].n_heartbeat, 2);
	ck_assert_str_eq(c->groups[0].heartbeat[1], "+/{id}");
	ck_assert_str_eq(c->groups[0].status, "nodes/{id}/status");
	ck_assert_str_eq(c->groups[0].id_prefix, "b-");
	expect_group(&c->groups[1], "a", 600000, 3600000);
	ck_assert_str_eq(c->groups[1].status, "a/{id}/s");
	ck_assert_int_eq(c->groups[1].max_offline_rate, 7);
	ck_assert_int_eq(c->groups[1].max_age_ms, 5000);
	ck_assert_int_eq(c->groups[1].goodbye_delay_ms, 3000);
	hw_conf_free(c);
}
END_TEST

/* The table is consistent: field sizes, defaults and choices; and a number just outside its range is refused. */
START_TEST(table)
{
	char text[128], expected[128], number[40], range[80] = "~";
	for (size_t i = 0; i < hw_settings_table.n_options; i++) {
		const struct hw_conf_option *o = &hw_settings_table.options[i];
		bool number_like = o->type == HW_CONF_INT || o->type == HW_CONF_DURATION;
		size_t size = number_like               ? sizeof(int64_t)
		              : o->type == HW_CONF_ENUM ? sizeof(int)
		              : o->type == HW_CONF_BOOL ? sizeof(bool)
		                                        : sizeof(char *);
		ck_assert_msg(o->size == size, "%s", o->key);
		ck_assert_msg(o->type != HW_CONF_INT || o->unit, "%s", o->key);
		ck_assert_msg(o->type != HW_CONF_TOPICS || o->live, "%s: hw_conf_value_copy() knows no lists", o->key);
		ck_assert_int_eq(hw_conf_option_find(&hw_settings_table, o->section, o->key), (int)i);
		for (int above = 0; number_like && above < 2; above++) {
			if (!above && o->min == 0)
				continue;
			snprintf(number, sizeof(number), "%lld%s", (long long)(above ? o->max + 1 : o->min - 1),
			         o->type == HW_CONF_INT ? "" : "ms");
			snprintf(text, sizeof(text), "[%s%s]\n%s%s = %s\n", o->section,
			         hw_conf_option_is_named(&hw_settings_table, o) ? " a" : "",
			         hw_conf_option_is_named(&hw_settings_table, o) ? "heartbeat = {id}\n" : "", o->key,
			         number);
			snprintf(expected, sizeof(expected), ":%d: key '%s': '%s' is out of range: give ",
			         hw_conf_option_is_named(&hw_settings_table, o) ? 3 : 2, o->key, number);
			hw_conf_range(o, range + 1, sizeof(range) - 1);
			REFUSE(text, expected, range);
		}
	}
}
END_TEST

START_TEST(wrong_values)
{
	REFUSE("[monitor]\nmax_devices = many\n", ":2: key 'max_devices': 'many' is not a whole number",
	       "~1 to 100000000 (devices)");
	REFUSE("[mqtt]\nport = 1883x\n", ":2: key 'port': '1883x' is not a whole number", "~1 to 65535");
	REFUSE("[mqtt]\nport = -1\n", ":2: key 'port': '-1' is not a whole number");
	REFUSE("[redis]\nevents_max = 99999999999999999999999999\n", ":2: key 'events_max': '999", "~is out of range");
	REFUSE("[monitor]\nstall_after = 99999999999999999999999999d\n", ":2: key 'stall_after': ", "~is out of range",
	       "~50ms to 1m");
	REFUSE("[mqtt]\nkeepalive = 5500ms\n", ":2: key 'keepalive': '5500ms' is not a multiple of 1s");
	REFUSE("[mqtt]\nkeepalive = soon\n", ":2: key 'keepalive': 'soon' is not a duration", "~ms, s, m, h or d");
	REFUSE("[mqtt]\nqos = 12345678901234567890123456789012345678901234567890\n",
	       ":2: key 'qos': '12345678901234567890123456789012345678901234...' is out of range");
	REFUSE("[mqtt]\nqos = 2\n", ":2: key 'qos': '2' is out of range: give 0 to 1");
	REFUSE("[mqtt]\nprotocol = 4\n", ":2: key 'protocol': '4' is unknown: give 5 or 3.1.1");
	REFUSE("[monitor]\nlog_level = loud\n",
	       ":2: key 'log_level': 'loud' is unknown: give debug, info, notice, warning or error");
	REFUSE("[monitor]\nlog = file.log\n", ":2: key 'log': 'file.log' must be syslog, stderr or an absolute path");
	REFUSE("[monitor]\nlog =\n", ":2: key 'log': is empty", "~syslog");
	REFUSE("[mqtt]\ntls_ca = ca.pem\n", ":2: key 'tls_ca': 'ca.pem' must be an absolute path");
	REFUSE("[mqtt]\nhost =\n", ":2: key 'host': is empty: give a value, such as 127.0.0.1");
	REFUSE("[mqtt]\nhost = a b\n", ":2: key 'host': 'a b' must not hold white space");
	REFUSE("[redis]\nkey_prefix = a\x01\n", ":2: key 'key_prefix': 'a?' holds a control character");
	REFUSE("[redis]\nkey_prefix =\n", ":2: key 'key_prefix': is empty");
	REFUSE("[mqtt]\nusername = \"me\"\n", ":2: key 'username': '\"me\"' is in quotes");
	REFUSE("[mqtt]\nport = 1883 # TLS: 8883\n", ":2: key 'port': ", "~a comment after a value starts with ' ;'");
	REFUSE("[mqtt]\nusername = # none\n", ":2: key 'username': ", "~a comment after a value starts with ' ;'");
}
END_TEST

START_TEST(text_is_utf8_without_control_characters)
{
	static const char *const bad[] = {"\xff",
	                                  "\x80",
	                                  "\xc3",
	                                  "\xc3(",
	                                  "\xc0\xaf",
	                                  "\xe0\x80\x80",
	                                  "\xed\xa0\x80",
	                                  "\xf0\x80\x80\x80",
	                                  "\xf4\x90\x80\x80",
	                                  "\xf5\x80\x80\x80",
	                                  "a\tb",
	                                  "\x7f",
	                                  "\xc2\x85",
	                                  "\xe2\x82"};
	static const char *const good[] = {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf",
	                                   "\xc2\xa0"};
	char text[64];
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "[mqtt]\nusername = x%sx\n", bad[i]);
		REFUSE(text, ":2: key 'username': ", "~holds a control character, or is not UTF-8");
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct hw_settings *c;
		snprintf(text, sizeof(text), "[mqtt]\nusername = %s\n", good[i]);
		c = load(text);
		ck_assert_str_eq(c->mqtt.username, good[i]);
		hw_conf_free(c);
	}
}
END_TEST

START_TEST(node_ids)
{
	char text[128], longest[66];
	struct hw_settings *c;
	REFUSE("[monitor]\nnode_id = a/b\n", ":2: key 'node_id': 'a/b' must be usable as one level of a topic");
	REFUSE("[monitor]\nnode_id = a+b\n", ":2: key 'node_id': ");
	REFUSE("[monitor]\nnode_id = a#b\n", ":2: key 'node_id': ");
	REFUSE("[monitor]\nnode_id = a b\n", ":2: key 'node_id': 'a b' must not hold white space");
	REFUSE("[monitor]\nnode_id =\n", ":2: key 'node_id': is empty: give a value, such as auto");
	memset(longest, 'n', 65);
	longest[65] = '\0';
	snprintf(text, sizeof(text), "[monitor]\nnode_id = %s\n", longest);
	REFUSE(text, ":2: key 'node_id': is 65 bytes long: the limit is 64");
	snprintf(text, sizeof(text), "[monitor]\nnode_id = %s\n", longest + 1);
	c = load(text);
	ck_assert_str_eq(c->node_id, longest + 1);
	hw_conf_free(c);
}
END_TEST

START_TEST(node_id_auto_is_the_host_name)
{
	static const char too_long[] = "123456789012345678901234567890123456789012345678901234567890.long";
	const char *const bad[] = {"a/b", "a b", "\xff", "", too_long, NULL};
	struct hw_settings *c = load("[monitor]\nnode_id = auto\n");
	ck_assert_str_eq(c->node_id, "box.example");
	hw_conf_free(c);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		rig_host_name = bad[i];
		REFUSE("[mqtt]\n", ": key 'node_id': the host name '",
		       "~' cannot be used here: give a name of 1 to 64 bytes");
		REFUSE("[monitor]\nnode_id = auto\n", ":2: key 'node_id': the host name '", "~' cannot be used here");
		hw_conf_free(load("[monitor]\nnode_id = n\n"));
	}
}
END_TEST

START_TEST(sentinels_are_a_list_with_a_name)
{
	char text[3000], list[2100];
	struct hw_settings *c = load("[redis]\nsentinels = a.example:26379, [::1]:26379\nmaster = m\n");
	ck_assert_str_eq(c->redis.sentinels, "a.example:26379, [::1]:26379");
	ck_assert_str_eq(c->redis.master, "m");
	hw_conf_free(c);
	REFUSE("[redis]\nmaster = m\nsentinels = a:1, b\n",
	       ":3: key 'sentinels': 'b' is not host:port: give a list such as");
	REFUSE("[redis]\nmaster = m\nsentinels = a:1, b:2, a:1\n", ":3: key 'sentinels': 'a:1' is listed twice");
	REFUSE("[redis]\nsentinels = a:1\n", ":2: key 'sentinels': needs master as well");
	REFUSE("[redis]\n\nmaster = m\n", ":3: key 'master': needs sentinels as well");
	REFUSE("[redis]\nmaster = m m\nsentinels = a:1\n", ":2: key 'master': 'm m' must not hold white space");
	REFUSE("[redis]\nmaster = m\nunix_socket = /r\nsentinels = a:1\n",
	       ":4: key 'sentinels': with sentinels the master is reached by its address: remove unix_socket, or "
	       "sentinels");
	memset(list, 'a', sizeof(list));
	snprintf(text, sizeof(text), "[redis]\nmaster = m\nsentinels = %.2049s\n", list);
	REFUSE(text, ":3: key 'sentinels': is 2049 bytes long");
}
END_TEST

START_TEST(several_nodes_need_redis)
{
	struct hw_settings *c = load("[cluster]\nmode = mirror\nname = yard\nlease = 1s\n");
	ck_assert_int_eq(c->cluster_mode, HW_CLUSTER_MIRROR);
	ck_assert_str_eq(c->cluster_name, "yard");
	ck_assert_int_eq(c->cluster_lease_ms, 1000);
	hw_conf_free(c);
	REFUSE("[store]\ntype = memory\n[cluster]\nmode = mirror\n", ":4: key 'mode': needs [store] type = redis");
	hw_conf_free(load("[keyspace]\nenabled = yes\n[cluster]\nmode = mirror\n"));
	REFUSE("[store]\ntype = memory\n[cluster]\nmode = standby\n", ":4: key 'mode': needs [store] type = redis");
	c = load("[keyspace]\nenabled = yes\n[cluster]\nmode = standby\n");
	ck_assert_int_eq(c->cluster_mode, HW_CLUSTER_STANDBY);
	hw_conf_free(c);
}
END_TEST

START_TEST(socket_paths_fit_an_address)
{
	char text[256], path[110] = "/";
	struct hw_settings *c;
	memset(path + 1, 'p', 107);
	snprintf(text, sizeof(text), "[http]\nsocket = %s\n", path);
	REFUSE(text, ":2: key 'socket': is 108 bytes long: the limit is 107");
	snprintf(text, sizeof(text), "[redis]\nunix_socket = %s\n", path);
	REFUSE(text, ":2: key 'unix_socket': is 108 bytes long");
	path[107] = '\0';
	snprintf(text, sizeof(text), "[http]\nsocket = %s\n", path);
	c = load(text);
	ck_assert_str_eq(c->http_socket, path);
	hw_conf_free(c);
}
END_TEST

START_TEST(listen_takes_a_numeric_address)
{
	static const char *const good[] = {"127.0.0.1:8731", "[::1]:8731", "0.0.0.0:1", "[::]:65535",
	                                   "[::ffff:1.2.3.4]:80"};
	char text[128], why[160];

	static const char *const wrong[] = {
		"8731",       "localhost:8731", "127.0.0.1",      "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536",
		"127.1:8731", "::1:8731",       "[127.0.0.1]:80", "[::1]",      "[]:1",        ":8731",
		"*:8731",     "[::1]:8731x",    "a.b.c.d:123",    "[::1]:"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		snprintf(text, sizeof(text), "[http]\nlisten = %s\n", wrong[i]);
		snprintf(why, sizeof(why), ":2: key 'listen': '%s' is not an address to listen on", wrong[i]);
		REFUSE(text, why);
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		snprintf(text, sizeof(text), "[http]\nlisten = %s\n", good[i]);
		struct hw_settings *c = load(text);
		ck_assert_str_eq(c->http_listen, good[i]);
		hw_conf_free(c);
	}
}
END_TEST

START_TEST(a_key_may_be_wrong_and_long)
{
	char text[400];
	snprintf(text, sizeof(text), "[mqtt]\n%0300d = 1\nqos = 7\n", 0);
	REFUSE(text, ":2: key '000", "~no key is that long", ":3: key 'qos': ");
}
END_TEST

/* With `while`, a learned timeout that is shorter than the group's might pass before the topic shows a cut. */
START_TEST(shortest_learned_timeout)
{
	static const struct {
		const char *lines;
		int64_t min_ms;
	} cases[] = {
		{"learn = yes\ntimeout = 30s\n", 10000},
		{"learn = yes\ntimeout = 4s\n", 4000},
		{"learn = yes\ntimeout = 30s\nwhile = bridge/state 1\n", 30000},
		{"learn = show\ntimeout = 30s\nwhile = bridge/state 1\n", 30000},
		{"learn = yes\ntimeout = 30s\nwhile = bridge/state 1\ntimeout_min = 12s\n", 12000},
		{"learn = yes\ntimeout = 30s\nwhile = none\n", 10000},
		{"learn = yes\npreset = zigbee2mqtt\n", 25 * 3600 * 1000},
		{"learn = yes\npreset = zigbee2mqtt\nwhile = none\n", 10000},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char text[256];
		snprintf(text, sizeof(text), "%s%s", strstr(cases[i].lines, "preset") ? "[group x]\n" : GROUP,
		         cases[i].lines);
		struct hw_settings *c = load(text);
		ck_assert_msg(c->groups[0].timeout_min_ms == cases[i].min_ms, "%s: %" PRId64 " ms", cases[i].lines,
		              c->groups[0].timeout_min_ms);
		hw_conf_free(c);
	}
}
END_TEST

START_TEST(keys_that_need_each_other)
{
	REFUSE("[mqtt]\npassword_file = /p\n", ":2: key 'password_file': needs username as");
	REFUSE("[mqtt]\ntls_ca = /ca\ntls_cert = /c\n", ":3: key 'tls_cert': needs tls_key");
	REFUSE("[mqtt]\ntls_ca = /ca\ntls_key = /k\n", ":3: key 'tls_key': needs tls_cert");
	REFUSE("[mqtt]\ntls_key = /k\ntls_cert = /c\n", ":3: key 'tls_cert': needs tls_ca");
	REFUSE("[mqtt]\nbarrier_timeout = 1s\nbarrier_slow = 2s\n", ":2: key 'barrier_timeout': ");
	REFUSE("[mqtt]\nbarrier_slow = 6s\n", ":2: key 'barrier_slow': barrier_timeout must not be shorter");
	REFUSE(GROUP "timeout = 10m\ntimeout_max = 1m\n",
	       ":4: key 'timeout_max': 1m is less than this group's timeout: give 10m or more");
	REFUSE(GROUP "first_within = 999ms\n", ":3: key 'first_within': must be 1s to 30d, or 0");
	hw_conf_free(load(GROUP "first_within = 0\n"));
	REFUSE(GROUP "timeout = 10m\ntimeout_max = 1h\ntimeout_min = 61m\n",
	       ":5: key 'timeout_min': 61m is more than this group's timeout_max: give 1h or less, or a longer "
	       "timeout_max");
	static const char *const mistakes[] = {"0/1d",  "1",     "/1d",   "1/",      "x/1d",
	                                       "1/0",   "25/1d", "2/1h",  "1/3651d", "-1/1d",
	                                       "1/1dx", "1/-1d", "1//1d", "2/7301d", "99999999999999999999/1d"};
	for (size_t k = 0; k < sizeof(mistakes) / sizeof(*mistakes); k++) {
		char text[256], why[256];
		snprintf(text, sizeof(text), GROUP "mistakes = %s\n", mistakes[k]);
		snprintf(why, sizeof(why),
		         ":3: key 'mistakes': '%s' is not a number of mistakes in a time: give NUMBER/DURATION, from "
		         "1/3650d to 24/1d (as in 1/30d)",
		         mistakes[k]);
		REFUSE(text, why);
	}
	REFUSE(GROUP "learn = maybe\n", ":3: key 'learn': ");
	REFUSE(GROUP "learn_gaps = 11\n", ":3: key 'learn_gaps': ");
	REFUSE(GROUP "timeout_max = 29s\n", ":3: key 'timeout_max': 29s is less than this group's timeout: give 30s");
	/* nothing is concluded from what was refused */
	REFUSE(GROUP "timeout = x\ntimeout_max = 1s\n", ":3: key 'timeout': ");
	REFUSE(GROUP "timeout = 10s\ntimeout_max = 1x\n", ":4: key 'timeout_max': ");
	REFUSE("[mqtt]\ntls_ca = ca\ntls_cert = /c\ntls_key = k\n", ":2: key 'tls_ca': ", ":4: key 'tls_key': ");
	hw_conf_free(load("[mqtt]\nusername = u\n[redis]\npassword_file = /p\nusername = u\n"));
	hw_conf_free(load("[mqtt]\ntls_ca = /ca\nbarrier_slow = 5s\n" GROUP "timeout = 1m\ntimeout_max = 1m\n"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("conf_values");
	TCase *t = tcase_create("all");
	tcase_add_test(t, empty_file_has_the_documented_defaults);
	tcase_add_test(t, homeassistant_prefixes);
	tcase_add_test(t, probes);
	tcase_add_test(t, values_of_every_type);
	tcase_add_test(t, table);
	tcase_add_test(t, wrong_values);
	tcase_add_test(t, text_is_utf8_without_control_characters);
	tcase_add_test(t, node_ids);
	tcase_add_test(t, node_id_auto_is_the_host_name);
	tcase_add_test(t, sentinels_are_a_list_with_a_name);
	tcase_add_test(t, several_nodes_need_redis);
	tcase_add_test(t, socket_paths_fit_an_address);
	tcase_add_test(t, listen_takes_a_numeric_address);
	tcase_add_test(t, a_key_may_be_wrong_and_long);
	tcase_add_test(t, shortest_learned_timeout);
	tcase_add_test(t, keys_that_need_each_other);
	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);
	return suite_run(s);
}

/* SPDX-License-Identifier: MIT */
/*
 * monitor.conf: values, every kind of error with its line, the reload's diff, the shipped file and its man page.
 * Needs $srcdir (or to run in the top directory) for the shipped files.
 */
#include <check.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "conf/conf.h"
#include "conf/errors.h"
#include "conf/options.h"
#include "conf/value.h"

#define GROUP "[group a]\nheartbeat = a/{id}\n"

/* Stands before libc's, so that a test can say what the machine is called. Each test is a process of its own. */
static const char *host_name = "box.example";

int gethostname(char *name, size_t len)
{
	if (!host_name) {
		errno = ENAMETOOLONG;
		return -1;
	}
	snprintf(name, len, "%s", host_name);
	return 0;
}

/* Stands in for the core's judgement: exactly one {id}, none for a batch, wildcards unless it is published on. */
static int template_check(const char *text, enum hw_conf_template kind, const char **why)
{
	const char *id = strstr(text, "{id}");

	*why = "must not have {id}";
	if (kind == HW_CONF_TEMPLATE_BATCH)
		return id ? -EINVAL : 0;
	*why = "needs exactly one {id} level";
	if (!id || strstr(id + 1, "{id}"))
		return -EINVAL;
	*why = "wildcards cannot be published on";
	return kind == HW_CONF_TEMPLATE_STATUS && strpbrk(text, "+#") ? -EINVAL : 0;
}

/* A file without a name, so that a test that fails leaves none behind. Returns its descriptor and a path to it. */
static int temp_file(const void *text, size_t len, char *path, size_t cap)
{
	int fd = memfd_create("monitor.conf", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, len), (ssize_t)len);
	snprintf(path, cap, "/proc/self/fd/%d", fd);
	return fd;
}

static struct hw_conf *load_bytes(const void *text, size_t len, struct hw_conf_errors *errors)
{
	char path[64];
	int fd = temp_file(text, len, path, sizeof(path));
	struct hw_conf *c = hw_conf_load(path, template_check, errors);

	close(fd);
	for (size_t i = 0; i < errors->n; i++) { /* the path is none of the tests' business */
		ck_assert_msg(strncmp(errors->lines[i], path, strlen(path)) == 0, "%s", errors->lines[i]);
		memmove(errors->lines[i], errors->lines[i] + strlen(path), strlen(errors->lines[i] + strlen(path)) + 1);
	}
	return c;
}

static struct hw_conf *load(const char *text)
{
	struct hw_conf_errors errors = {0};
	struct hw_conf *c = load_bytes(text, strlen(text), &errors);

	ck_assert_msg(c != NULL, "refused: %s", errors.n ? errors.lines[0] : "");
	ck_assert_uint_eq(errors.n, 0);
	ck_assert_ptr_null(errors.lines);
	return c;
}

/* `expected`: what each error line starts with, or (after '~') what the error before holds as well. NULL ends it. */
static void refuse_bytes(const void *text, size_t len, const char *const *expected)
{
	struct hw_conf_errors errors = {0};
	size_t n = 0;

	ck_assert_ptr_null(load_bytes(text, len, &errors));
	for (size_t i = 0; expected[i]; i++) {
		if (expected[i][0] != '~') {
			ck_assert_msg(n < errors.n, "not reported: %s", expected[i]);
			ck_assert_msg(strncmp(errors.lines[n], expected[i], strlen(expected[i])) == 0,
			              "'%s' instead of '%s'", errors.lines[n], expected[i]);
			n++;
		} else {
			ck_assert_msg(strstr(errors.lines[n - 1], expected[i] + 1) != NULL, "'%s' lacks '%s'",
			              errors.lines[n - 1], expected[i] + 1);
		}
	}
	ck_assert_msg(n == errors.n, "too many: %s", n < errors.n ? errors.lines[n] : "");
	hw_conf_errors_fini(&errors);
	ck_assert_uint_eq(errors.n, 0);
}

#define REFUSE(text, ...) refuse_bytes(text, strlen(text), (const char *const[]){__VA_ARGS__, NULL})

static void expect_group(const struct hw_conf_group *g, const char *name, int64_t timeout_ms, int64_t timeout_max_ms)
{
	ck_assert_str_eq(g->name, name);
	ck_assert_int_eq(g->timeout_ms, timeout_ms);
	ck_assert_int_eq(g->timeout_max_ms, timeout_max_ms);
}

START_TEST(empty_file_has_the_documented_defaults)
{
	struct hw_conf *c = load("");

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
	ck_assert_str_eq(c->mqtt_host, "127.0.0.1");
	ck_assert_int_eq(c->mqtt_port, 1883);
	ck_assert_int_eq(c->protocol, 5);
	ck_assert_int_eq(c->readers, 1);
	ck_assert_int_eq(c->qos, 0);
	ck_assert_int_eq(c->keepalive_ms, 30000);
	ck_assert_int_eq(c->barrier_slow_ms, 250);
	ck_assert_int_eq(c->barrier_timeout_ms, 5000);
	ck_assert_int_eq(c->reconnect_grace_ms, 15000);
	ck_assert_int_eq(c->republish_rate, 5000);
	ck_assert_str_eq(c->mqtt_username, "");
	ck_assert_str_eq(c->mqtt_password_file, "");
	ck_assert_str_eq(c->tls_ca, "");
	ck_assert_str_eq(c->tls_cert, "");
	ck_assert_str_eq(c->tls_key, "");
	ck_assert_str_eq(c->client_id_prefix, "heartwheel");
	ck_assert(!c->homeassistant);
	ck_assert_str_eq(c->homeassistant_prefix, "homeassistant");
	ck_assert_int_eq(c->store, HW_STORE_REDIS);
	ck_assert_str_eq(c->redis_host, "127.0.0.1");
	ck_assert_str_eq(c->redis_unix_socket, "");
	ck_assert_int_eq(c->redis_port, 6379);
	ck_assert_int_eq(c->redis_db, 0);
	ck_assert_str_eq(c->redis_username, "");
	ck_assert_str_eq(c->redis_password_file, "");
	ck_assert_str_eq(c->key_prefix, "device:");
	ck_assert_int_eq(c->ttl_factor, 3);
	ck_assert_int_eq(c->events_max, 1000000);
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
	ck_assert_int_eq(c->groups[0].payload, HW_CONF_PAYLOAD_JSON);
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

/* What a heartbeat's template must be depends on a key that may stand below it. */
START_TEST(batches_and_homie)
{
	struct hw_conf *c = load("[group a]\nheartbeat = gw/+/heard\nheartbeat = all\nbatch = yes\nstatus = a/{id}\n"
	                         "[group b]\npayload = homie\nheartbeat = homie/{id}/$state\nstatus = b/{id}/state\n");

	ck_assert(c->groups[0].batch);
	ck_assert_uint_eq(c->groups[0].n_heartbeat, 2);
	ck_assert_int_eq(c->groups[0].payload, HW_CONF_PAYLOAD_JSON);
	ck_assert_int_eq(c->groups[1].payload, HW_CONF_PAYLOAD_HOMIE);
	ck_assert(!c->groups[1].batch);
	hw_conf_free(c);
	REFUSE("[group a]\nheartbeat = a/{id}\nheartbeat = b\nheartbeat = c/{id}\nbatch = yes\n",
	       ":2: key 'heartbeat': must not have {id}", ":4: key 'heartbeat': must not have {id}");
	REFUSE("[group a]\nbatch = no\nheartbeat = a/{id}\nheartbeat = b\n", ":4: key 'heartbeat': needs exactly one");
	REFUSE("[group default]\nbatch = yes\n", ":1: section 'group default': has no heartbeat");
	REFUSE("[group a]\nheartbeat = a\nbatch = maybe\n", ":3: key 'batch': 'maybe' is neither yes nor no");
	REFUSE("[group a]\nheartbeat = a\nbatch = yes\nstatus = a\n", ":4: key 'status': needs exactly one");
	REFUSE("[group a]\nheartbeat = a\nbatch = yes\npayload = homie\n", ":3: key 'batch': a batch is JSON");
	REFUSE("[group a]\nheartbeat = homie/{id}/$state\npayload = homie\nstatus = homie/{id}/$state\n",
	       ":4: key 'status': $state is the device's own");
	REFUSE(GROUP "payload = xml\n", ":3: key 'payload': 'xml' is unknown: give json or homie");
}
END_TEST

START_TEST(homeassistant_prefixes)
{
	static const char *const bad[] = {"a/#", "+", "/a", "a/", "$SYS", "/"};
	char text[64];
	struct hw_conf *c = load("[mqtt]\nhomeassistant = yes\nhomeassistant_prefix = a/b$\n");

	ck_assert(c->homeassistant);
	ck_assert_str_eq(c->homeassistant_prefix, "a/b$");
	hw_conf_free(c);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "[mqtt]\nhomeassistant_prefix = %s\n", bad[i]);
		REFUSE(text, ":2: key 'homeassistant_prefix': must be levels of a topic");
	}
}
END_TEST

START_TEST(notify)
{
	static const char *const bad[] = {"example.org", "ftp://a/b",          "http://",
	                                  "https:///x",  "file:///etc/passwd", "-"};
	char text[64];
	struct hw_conf *c = load("[notify]\nexec = /bin/tell\nwebhook = https://a.example/b?c=d\n");

	ck_assert_str_eq(c->notify_exec, "/bin/tell");
	ck_assert_str_eq(c->notify_webhook, "https://a.example/b?c=d");
	ck_assert_int_eq(c->notify_interval_ms, 10000);
	hw_conf_free(c);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "[notify]\nwebhook = %s\n", bad[i]);
		REFUSE(text, ":2: key 'webhook': must be an http:// or https:// URL");
	}
	REFUSE("[notify]\nexec = tell\n", ":2: key 'exec': 'tell' must be an absolute path");
}
END_TEST

START_TEST(values_of_every_type)
{
	struct hw_conf *c = load("[monitor]\nnode_id=n-1.example\nlog = /var/log/hw.log\nlog_level = warning\nuser =\n"
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
	ck_assert_int_eq(c->protocol, 311);
	ck_assert_int_eq(c->qos, 1);
	ck_assert_int_eq(c->mqtt_port, 65535);
	ck_assert_str_eq(c->mqtt_username, "ein Mensch \xc3\xa9");
	ck_assert_str_eq(c->mqtt_password_file, "/a b");
	ck_assert_int_eq(c->store, HW_STORE_MEMORY);
	ck_assert_str_eq(c->key_prefix, "{x}*:");
	ck_assert_str_eq(c->redis_unix_socket, "/run/r.sock");
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

START_TEST(comments_line_ends_and_byte_order_mark)
{
	char text[2048], longest[256];
	struct hw_conf *c;

	memset(longest, 'x', sizeof(longest));
	longest[255] = '\0';
	/* A comment may be of any length, and stand in from the left; 197 bytes of a line are taken. */
	snprintf(text, sizeof(text),
	         "\xef\xbb\xbf[mqtt] ; the broker\r\n; c\r\n   # c %s%s\r\n   \t\r\n;%s\n"
	         "host = h ; the = host\r\nusername = a;b # is not seen ; c#\r\npassword_file = ;\n"
	         "[group a]\t; x\nheartbeat = a/{id}\t;y\nstatus = ; none\nheartbeat = {id}/%.*s\r\n",
	         longest, longest, longest, 197 - 17, longest);
	memcpy(strstr(text, " # is"), " * is", 5);
	c = load(text);
	ck_assert_str_eq(c->mqtt_host, "h");
	ck_assert_str_eq(c->mqtt_username, "a;b * is not seen");
	ck_assert_str_eq(c->mqtt_password_file, "");
	ck_assert_str_eq(c->groups[0].heartbeat[0], "a/{id}");
	ck_assert_uint_eq(strlen(c->groups[0].heartbeat[1]), 185);
	hw_conf_free(c);
	snprintf(text, sizeof(text), "\xef\xbb\xbf[mqtt] ;%.*s\r\nport = 8\n", 197 - 8, longest);
	c = load(text);
	ck_assert_int_eq(c->mqtt_port, 8);
	hw_conf_free(c);
	c = load("[mqtt]\nport = 7"); /* no line end */
	ck_assert_int_eq(c->mqtt_port, 7);
	hw_conf_free(c);
}
END_TEST

/* The table is consistent: field sizes, defaults and choices; and a number just outside its range is refused. */
START_TEST(table)
{
	char text[128], expected[128], number[40], range[80] = "~";

	for (size_t i = 0; i < hw_conf_n_options; i++) {
		const struct hw_conf_option *o = &hw_conf_options[i];
		bool number_like = o->type == HW_CONF_INT || o->type == HW_CONF_DURATION;
		size_t size = number_like               ? sizeof(int64_t)
		              : o->type == HW_CONF_ENUM ? sizeof(int)
		              : o->type == HW_CONF_BOOL ? sizeof(bool)
		                                        : sizeof(char *);
		ck_assert_msg(o->size == size, "%s", o->key);
		ck_assert_msg(o->type != HW_CONF_INT || o->unit, "%s", o->key);
		ck_assert_msg(o->type != HW_CONF_TOPICS || o->live, "%s: hw_conf_value_copy() knows no lists", o->key);
		ck_assert_int_eq(hw_conf_option_find(o->section, o->key), (int)i);
		for (int above = 0; number_like && above < 2; above++) {
			if (!above && o->min == 0)
				continue;
			snprintf(number, sizeof(number), "%lld%s", (long long)(above ? o->max + 1 : o->min - 1),
			         o->type == HW_CONF_INT ? "" : "ms");
			snprintf(text, sizeof(text), "[%s%s]\n%s%s = %s\n", o->section,
			         hw_conf_option_in_group(o) ? " a" : "",
			         hw_conf_option_in_group(o) ? "heartbeat = {id}\n" : "", o->key, number);
			snprintf(expected, sizeof(expected), ":%d: key '%s': '%s' is out of range: give ",
			         hw_conf_option_in_group(o) ? 3 : 2, o->key, number);
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
	REFUSE("[mqtt]\nusername = \"me\"\n", ":2: key 'username': '\"me\"' stands in quotes");
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
		struct hw_conf *c;
		snprintf(text, sizeof(text), "[mqtt]\nusername = %s\n", good[i]);
		c = load(text);
		ck_assert_str_eq(c->mqtt_username, good[i]);
		hw_conf_free(c);
	}
}
END_TEST

START_TEST(node_ids)
{
	char text[128], longest[66];
	struct hw_conf *c;

	REFUSE("[monitor]\nnode_id = a/b\n", ":2: key 'node_id': 'a/b' must be fit for one level of a topic");
	REFUSE("[monitor]\nnode_id = a+b\n", ":2: key 'node_id': ");
	REFUSE("[monitor]\nnode_id = a#b\n", ":2: key 'node_id': ");
	REFUSE("[monitor]\nnode_id = a b\n", ":2: key 'node_id': 'a b' must not hold white space");
	REFUSE("[monitor]\nnode_id =\n", ":2: key 'node_id': is empty: give a value, such as auto");
	memset(longest, 'n', 65);
	longest[65] = '\0';
	snprintf(text, sizeof(text), "[monitor]\nnode_id = %s\n", longest);
	REFUSE(text, ":2: key 'node_id': is 65 bytes long: at most 64 are possible");
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
	struct hw_conf *c = load("[monitor]\nnode_id = auto\n");

	ck_assert_str_eq(c->node_id, "box.example");
	hw_conf_free(c);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		host_name = bad[i];
		REFUSE("[mqtt]\n", ": key 'node_id': the host name '", "~' cannot serve: give a name of 1 to 64 bytes");
		REFUSE("[monitor]\nnode_id = auto\n", ":2: key 'node_id': the host name '", "~' cannot serve");
		hw_conf_free(load("[monitor]\nnode_id = n\n"));
	}
}
END_TEST

START_TEST(socket_paths_fit_an_address)
{
	char text[256], path[110] = "/";
	struct hw_conf *c;

	memset(path + 1, 'p', 107);
	snprintf(text, sizeof(text), "[http]\nsocket = %s\n", path);
	REFUSE(text, ":2: key 'socket': is 108 bytes long: at most 107 are possible");
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
		snprintf(why, sizeof(why), ":2: key 'listen': '%s' is no address to listen on", wrong[i]);
		REFUSE(text, why);
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		snprintf(text, sizeof(text), "[http]\nlisten = %s\n", good[i]);
		struct hw_conf *c = load(text);
		ck_assert_str_eq(c->http_listen, good[i]);
		hw_conf_free(c);
	}
}
END_TEST

START_TEST(unknown_keys)
{
	REFUSE("[mqtt]\nprot = 1\n", ":2: key 'prot': unknown in [mqtt]: did you mean 'port'?");
	REFUSE("[monitor]\nmaxdevices = 1\n", ":2: key 'maxdevices': ", "~did you mean 'max_devices'?");
	REFUSE("[monitor]\nport = 1\n",
	       ":2: key 'port': unknown in [monitor]: it belongs in [mqtt] or [redis], move it there");
	REFUSE("[mqtt]\ntimeout = 1\n", ":2: key 'timeout': unknown in [mqtt]: it belongs in [group NAME]");
	REFUSE("[redis]\nsomething = 1\n", ":2: key 'something': unknown in [redis]: remove it");
	REFUSE(GROUP "payloads = json\n", ":3: key 'payloads': unknown in [group NAME]: did you mean 'payload'?");
	REFUSE("port = 1\n", ":1: key 'port': stands before the first section: move it to [mqtt] or [redis]");
	REFUSE("what = 1\n", ":1: key 'what': stands before the first section");
	REFUSE("[mqtt]\n= 1\n", ":2: key '': unknown in [mqtt]");
	REFUSE("[mqtt]\nDB = 1\n", ":2: key 'DB': unknown in [mqtt]: remove it"); /* two edits of two letters */
	REFUSE("[mqtt]\nabcdefghijklmnopqrstuvwxyzabcdefghijk = 1\n", ":2: key 'abc", "~unknown in [mqtt]: remove it");
	REFUSE("[mqtt]\n\x1b[2J\xff = 1\n", ":2: key '?[2J?': unknown");
}
END_TEST

START_TEST(keyspace)
{
	struct hw_conf *c = load("");
	ck_assert(!c->keyspace_enabled && !c->keyspace_configure);
	ck_assert_str_eq(c->keyspace_group, "default");
	hw_conf_free(c);
	c = load("[keyspace]\nenabled = yes\nconfigure = yes\ngroup = gw\n[group gw]\nheartbeat = a/{id}\n");
	ck_assert(c->keyspace_enabled && c->keyspace_configure);
	ck_assert_str_eq(c->keyspace_group, "gw");
	hw_conf_free(c);
	hw_conf_free(load("[keyspace]\nenabled = yes\n"));
	hw_conf_free(load("[keyspace]\ngroup = gone\n")); /* of no consequence */
	REFUSE("[keyspace]\ngroup = gone\nenabled = yes\n", ":2: key 'group': there is no [group gone] in this file");
	REFUSE("[keyspace]\nenabled = yes\n[group gw]\nheartbeat = a/{id}\n",
	       ":2: key 'enabled': there is no [group default] in this file");
	REFUSE("[store]\ntype = memory\n[keyspace]\nenabled = yes\n", ":4: key 'enabled': needs [store] type = redis");
}
END_TEST

START_TEST(sections)
{
	REFUSE("[mqttt]\nport = x\n", ":1: section 'mqttt': unknown section: did you mean [mqtt]?");
	REFUSE("[cluster]\n", ":1: section 'cluster': unknown section; there are [monitor] [mqtt] [store] [redis] "
	                      "[keyspace] [http] [notify] [group NAME]");
	REFUSE("[]\n", ":1: section '': unknown section");
	REFUSE("[mqtt\nport = x\n", ":1: section 'mqtt': the closing ] is missing");
	REFUSE("[mqtt ;]\n", ":1: section 'mqtt': the closing ] is missing");
	REFUSE("[mqtt] port = 1\n", ":1: section 'mqtt': something follows the ]");
	REFUSE("[mqtt]\nport = 1\n[redis]\n[ mqtt ]\nport = 2\nqos = 9\n",
	       ":4: section 'mqtt': stands in line 1 already", ":6: key 'qos': ");
	REFUSE(GROUP "[group a]\nheartbeat = b/{id}\ntimeout = x\n", ":3: section 'group a': stands in line 1 already",
	       ":5: key 'timeout': ");
	REFUSE("[group]\nx\n", ":1: section 'group': a group needs a name: write [group NAME]",
	       ":2: key 'x': not 'key");
	REFUSE("[group \xc3\xa9]\n", ":1: section 'group ?"
	                             "?': the group's name must be printable ASCII");
	REFUSE("[group 123456789 123456789 123456789 123456789 123456789 123456789 12345]\n", ":1: section 'group 123",
	       "~longer than 64 bytes");
	REFUSE("\n[group a]\ntimeout = 1\n", ":2: section 'group a': has no heartbeat: give at least one");
	REFUSE("[group a]\n[mqtt]\n", ":1: section 'group a': has no heartbeat");
	REFUSE("[groups]\n", ":1: section 'groups': unknown section: did you mean [group NAME]?");
}
END_TEST

START_TEST(group_names_are_told_apart_as_written)
{
	struct hw_conf *c = load("[group 123456789 123456789 123456789 123456789 123456789 123456789 1234]\n"
	                         "heartbeat = a/{id}\n"
	                         "[group 123456789 123456789 123456789 123456789 123456789 123456789 1235 ] ; c\n"
	                         "heartbeat = b/{id}\n[group\tc]\nheartbeat = c/{id}\n");

	ck_assert_uint_eq(c->n_groups, 3);
	ck_assert_uint_eq(strlen(c->groups[0].name), 64);
	ck_assert_str_eq(c->groups[1].name + 60, "1235");
	ck_assert_str_eq(c->groups[2].name, "c");
	hw_conf_free(c);
}
END_TEST

START_TEST(lines_that_are_no_lines)
{
	char text[1024];

	REFUSE("[mqtt]\nport\n", ":2: key 'port': not 'key = value'");
	REFUSE("[mqtt]\nport 1 ; = 2\n", ":2: key 'port': not 'key = value'");
	REFUSE("[mqtt]\nhost = a\n   b.example\n  port = 2\n",
	       ":3: key 'b.example': the line is indented: a value goes on one line",
	       ":4: key 'port': the line is indented");
	REFUSE("[redis]\n [mqtt]\nkeepalive = 10s\nqos = x\n", ":2: section 'mqtt': the line is indented",
	       ":4: key 'qos': ");
	snprintf(text, sizeof(text), "[mqtt]\nusername = %0187d\n%0300d\n[%0300d]\nport = x\n", 0, 0, 0);
	REFUSE(text, ":2: key 'username': the line is 198 bytes long: at most 197 are possible", ":3: key '000",
	       "~the line is 300 bytes long", ":4: key '[000");
	snprintf(text, sizeof(text), "[mqtt]\nport = 1 ; %0300d\nqos = x\n", 0);
	REFUSE(text, ":2: key 'port': the line is 311 bytes long", ":3: key 'qos': ");
	refuse_bytes("[mqtt]\nport = 1\0\nqos\0 = 1\nqos = 7\n", 33,
	             (const char *const[]){":2: key 'port': the line holds a NUL byte",
	                                   ":3: key 'qos': the line holds a NUL", ":4: key 'qos': ", NULL});
}
END_TEST

START_TEST(keys_given_twice)
{
	REFUSE("[mqtt]\nport = 1\nqos = 1\nport = 1\n", ":4: key 'port': given in line 2 already");
	REFUSE(GROUP "timeout = 1\ntimeout = x\n", ":4: key 'timeout': given in line 3 already");
	REFUSE(GROUP "heartbeat = b/{id}\nheartbeat = a/{id}\n", ":4: key 'heartbeat': the same value stands above");
	/* the same key in two sections is two keys */
	hw_conf_free(load("[mqtt]\nport = 1\n[redis]\nport = 1\n" GROUP "timeout = 1\n[group b]\nheartbeat = {id}\n"
	                  "timeout = 1\n"));
}
END_TEST

START_TEST(keys_that_need_each_other)
{
	REFUSE("[mqtt]\npassword_file = /p\n", ":2: key 'password_file': needs a username");
	REFUSE("[mqtt]\ntls_ca = /ca\ntls_cert = /c\n", ":3: key 'tls_cert': needs tls_key");
	REFUSE("[mqtt]\ntls_ca = /ca\ntls_key = /k\n", ":3: key 'tls_key': needs tls_cert");
	REFUSE("[mqtt]\ntls_key = /k\ntls_cert = /c\n", ":3: key 'tls_cert': needs tls_ca");
	REFUSE("[mqtt]\nbarrier_timeout = 1s\nbarrier_slow = 2s\n", ":2: key 'barrier_timeout': ");
	REFUSE("[mqtt]\nbarrier_slow = 6s\n", ":2: key 'barrier_slow': barrier_timeout must not be shorter");
	REFUSE(GROUP "timeout = 10m\ntimeout_max = 1m\n",
	       ":4: key 'timeout_max': 1m is less than this group's timeout: give 10m or more");
	REFUSE(GROUP "timeout_max = 29s\n", ":3: key 'timeout_max': 29s is less than this group's timeout: give 30s");
	/* nothing is concluded from what was refused */
	REFUSE(GROUP "timeout = x\ntimeout_max = 1s\n", ":3: key 'timeout': ");
	REFUSE(GROUP "timeout = 10s\ntimeout_max = 1x\n", ":4: key 'timeout_max': ");
	REFUSE("[mqtt]\ntls_ca = ca\ntls_cert = /c\ntls_key = k\n", ":2: key 'tls_ca': ", ":4: key 'tls_key': ");
	hw_conf_free(load("[mqtt]\nusername = u\n[redis]\npassword_file = /p\nusername = u\n"));
	hw_conf_free(load("[mqtt]\ntls_ca = /ca\nbarrier_slow = 5s\n" GROUP "timeout = 1m\ntimeout_max = 1m\n"));
}
END_TEST

START_TEST(templates_are_judged_by_the_caller)
{
	struct hw_conf_errors errors = {0};
	static const char text[] = "[group a]\nheartbeat = a\n";
	char path[64];
	int fd = temp_file(text, strlen(text), path, sizeof(path));
	struct hw_conf *c;

	REFUSE("[group a]\nheartbeat = a/b\nheartbeat = a/{id}\nstatus = +/{id}\n[group b]\nheartbeat = x\nheartbeat "
	       "=\n",
	       ":2: key 'heartbeat': needs exactly one {id} level",
	       ":4: key 'status': wildcards cannot be published on", ":6: key 'heartbeat': needs",
	       ":7: key 'heartbeat': is empty");
	c = hw_conf_load(path, NULL, &errors); /* nobody judges */
	close(fd);
	ck_assert_ptr_nonnull(c);
	ck_assert_str_eq(c->groups[0].heartbeat[0], "a");
	hw_conf_free(c);
}
END_TEST

START_TEST(every_wrong_line_is_reported_in_order)
{
	REFUSE("stray = 1\n"         /* 1 */
	       "[monitor]\n"         /* 2 */
	       "max_devices = 0\n"   /* 3 */
	       "node_id = a/b ; c\n" /* 4 */
	       "   indented\n"       /* 5 */
	       "[mqtt]\n"            /* 6 */
	       "tls_cert = /c\n"     /* 7: found after the last line */
	       "port = 99999\n"      /* 8 */
	       "colour = red\n"      /* 9 */
	       "[colours]\n"         /* 10 */
	       "red = 1\n"           /* not judged */
	       "[group a]\n"         /* 12: found after the last line */
	       "timeout = 1ms\n"     /* 13 */
	       "[monitor]\n"         /* 14 */
	       "log = x\n",          /* 15 */
	       ":1: key 'stray': ", ":3: key 'max_devices': ", ":4: key 'node_id': ", ":5: key 'indented': ",
	       ":7: key 'tls_cert': needs tls_key", ":7: key 'tls_cert': needs tls_ca",
	       ":8: key 'port': ", ":9: key 'colour': ", ":10: section 'colours': ", ":12: section 'group a': ",
	       ":13: key 'timeout': ", ":14: section 'monitor': stands in line 2", ":15: key 'log': ");
}
END_TEST

START_TEST(the_number_of_errors_is_bounded)
{
	enum { LINES = HW_CONF_ERRORS_MAX + 23 };
	struct hw_conf_errors errors = {0};
	char *text = malloc(LINES * 2 + 1);

	for (size_t i = 0; i < LINES; i++)
		memcpy(text + 2 * i, "x\n", 3);
	ck_assert_ptr_null(load_bytes(text, 2 * LINES, &errors));
	ck_assert_uint_eq(errors.n, HW_CONF_ERRORS_MAX + 1);
	ck_assert_str_eq(errors.lines[HW_CONF_ERRORS_MAX], ": 23 more mistakes; is it the right file?");
	hw_conf_errors_fini(&errors);
	free(text);
}
END_TEST

START_TEST(the_number_of_groups_is_bounded)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	for (int i = 0; i < HW_CONF_GROUPS_MAX + 1; i++)
		fprintf(f, "[group %d]\nheartbeat = %d/{id}\n", i, i);
	fclose(f);
	REFUSE(text, ":8193: section 'group 4096': there are 4096 groups already");
	free(text);
}
END_TEST

START_TEST(files_that_cannot_be_read)
{
	struct hw_conf_errors errors = {0};
	char big[4096], path[64];
	int fd = temp_file("", 0, path, sizeof(path));

	ck_assert_ptr_null(hw_conf_load("/nonexistent/monitor.conf", NULL, &errors));
	ck_assert_uint_eq(errors.n, 1);
	ck_assert_str_eq(errors.lines[0], "/nonexistent/monitor.conf: cannot be opened: No such file or directory");
	hw_conf_errors_fini(&errors);
	ck_assert_ptr_null(hw_conf_load("/tmp", NULL, &errors));
	ck_assert_uint_eq(errors.n, 1);
	ck_assert_str_eq(errors.lines[0], "/tmp: cannot be read: Is a directory");
	hw_conf_errors_fini(&errors);
	memset(big, '#', sizeof(big));
	for (int i = 0; i < 4097; i++)
		ck_assert_int_eq(write(fd, big, sizeof(big)), sizeof(big));
	ck_assert_ptr_null(hw_conf_load(path, NULL, &errors));
	close(fd);
	ck_assert_uint_eq(errors.n, 1);
	ck_assert_ptr_nonnull(strstr(errors.lines[0], ": longer than 16 MiB"));
	hw_conf_errors_fini(&errors);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("conf");
	TCase *t = tcase_create("all");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_test(t, empty_file_has_the_documented_defaults);
	tcase_add_test(t, batches_and_homie);
	tcase_add_test(t, homeassistant_prefixes);
	tcase_add_test(t, notify);
	tcase_add_test(t, values_of_every_type);
	tcase_add_test(t, comments_line_ends_and_byte_order_mark);
	tcase_add_test(t, table);
	tcase_add_test(t, wrong_values);
	tcase_add_test(t, text_is_utf8_without_control_characters);
	tcase_add_test(t, node_ids);
	tcase_add_test(t, node_id_auto_is_the_host_name);
	tcase_add_test(t, socket_paths_fit_an_address);
	tcase_add_test(t, listen_takes_a_numeric_address);
	tcase_add_test(t, listen_takes_a_numeric_address);
	tcase_add_test(t, unknown_keys);
	tcase_add_test(t, sections);
	tcase_add_test(t, keyspace);
	tcase_add_test(t, group_names_are_told_apart_as_written);
	tcase_add_test(t, lines_that_are_no_lines);
	tcase_add_test(t, keys_given_twice);
	tcase_add_test(t, keys_that_need_each_other);
	tcase_add_test(t, templates_are_judged_by_the_caller);
	tcase_add_test(t, every_wrong_line_is_reported_in_order);
	tcase_add_test(t, the_number_of_errors_is_bounded);
	tcase_add_test(t, the_number_of_groups_is_bounded);
	tcase_add_test(t, files_that_cannot_be_read);
	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

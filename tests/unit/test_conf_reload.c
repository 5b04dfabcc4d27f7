/* SPDX-License-Identifier: MIT */
/*
 * monitor.conf beyond one load: single values, the reload's diff, printing, secrets, and the shipped files. $srcdir
 * names the top of the sources (default: the directory that it runs in).
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../suite.h"
#include "conf/value.h"
#include "conf_rig.h"

/* Stand before libc's: the allocation after so many fails, in the process of one test. 0: none does. */
static unsigned fails_in;

static bool fails(void)
{
	return fails_in && --fails_in == 0;
}

char *strdup(const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = fails() ? NULL : malloc(size);
	return copy ? memcpy(copy, text, size) : NULL;
}

void *reallocarray(void *old, size_t n, size_t size)
{
	return fails() ? NULL : realloc(old, n * size);
}

static struct hw_settings *load_file(const char *path)
{
	struct hw_conf_errors errors = {0};
	struct hw_settings *c = hw_conf_load(&hw_settings_table, path, &errors);
	ck_assert_msg(c != NULL, "%s", errors.n ? errors.lines[0] : "no reason");
	return c;
}

START_TEST(duration_units)
{
	static const struct {
		const char *text;
		int64_t ms;
		const char *shortest;
	} good[] = {{"0", 0, "0"},
	            {"0ms", 0, "0"},
	            {"7", 7000, "7s"},
	            {"7ms", 7, "7ms"},
	            {"1500ms", 1500, "1500ms"},
	            {"90s", 90000, "90s"},
	            {"120s", 120000, "2m"},
	            {"7m", 420000, "7m"},
	            {"36h", 129600000, "36h"},
	            {"3650d", INT64_C(315360000000), "3650d"},
	            {"9223372036854775807ms", INT64_MAX, "9223372036854775807ms"}};
	static const char *const bad[] = {"",   "s",  "ms",  "-1s",  "+1s", "1.5s", "1 s",
	                                  "1S", "1w", "1sm", "0x10", "1s2", "1d ",  "\xd9\xa1s"};
	static const char *const huge[] = {"9223372036854775808ms", "9223372036854775807", "106751991168d",
	                                   "18446744073709551616", "99999999999999999999999999999999999999h"};
	int64_t ms = -1;
	char buf[32];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		ck_assert_int_eq(hw_conf_duration_parse(good[i].text, &ms), 0);
		ck_assert_int_eq(ms, good[i].ms);
		ck_assert_str_eq(hw_conf_duration_format(ms, buf, sizeof(buf)), good[i].shortest);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(hw_conf_duration_parse(bad[i], &ms) == -EINVAL, "'%s'", bad[i]);
	for (size_t i = 0; i < sizeof(huge) / sizeof(huge[0]); i++)
		ck_assert_msg(hw_conf_duration_parse(huge[i], &ms) == -ERANGE, "'%s'", huge[i]);
}
END_TEST

/* No key of today is a bool; the type has to work all the same. */
START_TEST(bools)
{
	const struct hw_conf_option o = {.section = "s", .key = "k", .type = HW_CONF_BOOL, .size = sizeof(bool)};
	bool value = false, other = true;
	char why[256], out[32] = "";
	FILE *f = fmemopen(out, sizeof(out), "w");
	ck_assert_int_eq(hw_conf_value_set(&o, "yes", &value, why, sizeof(why)), 0);
	ck_assert(value);
	ck_assert(hw_conf_value_equal(&o, &value, &other));
	hw_conf_value_print(&o, &value, f);
	ck_assert_int_eq(hw_conf_value_set(&o, "no", &value, why, sizeof(why)), 0);
	ck_assert(!value);
	ck_assert(!hw_conf_value_equal(&o, &value, &other));
	hw_conf_value_print(&o, &value, f);
	ck_assert_int_eq(hw_conf_value_set(&o, "true", &value, why, sizeof(why)), -EINVAL);
	ck_assert_str_eq(why, "'true' is not yes or no");
	fclose(f);
	ck_assert_str_eq(out, "k = yes\nk = no\n");
}
END_TEST

struct told {
	char text[4096];
};

static void on_difference(void *arg, const char *key, enum hw_conf_change change, bool live)
{
	struct told *t = arg;
	size_t at = strlen(t->text);
	snprintf(t->text + at, sizeof(t->text) - at, "%s%s%s\n",
	         change == HW_CONF_ADDED     ? "+"
	         : change == HW_CONF_REMOVED ? "-"
	                                     : "",
	         key, live ? "" : "!");
}

static void expect_diff(const struct hw_settings *a, const struct hw_settings *b, const char *expected)
{
	struct told t = {""};
	hw_conf_diff(a, b, on_difference, &t);
	ck_assert_str_eq(t.text, expected);
}

static void expect_text_diff(const char *from, const char *to, const char *expected)
{
	struct hw_settings *a = load(from), *b = load(to);
	expect_diff(a, b, expected);
	expect_diff(a, a, "");
	hw_conf_free(a);
	hw_conf_free(b);
}

/* A valid value that is not the default, for each type. */
static void other_value(const struct hw_conf_option *o, char *buf, size_t cap)
{
	switch (o->type) {
	case HW_CONF_INT:
		snprintf(buf, cap, "%lld", (long long)o->max);
		break;
	case HW_CONF_DURATION:
		hw_conf_duration_format(o->max, buf, cap);
		break;
	case HW_CONF_BOOL:
		snprintf(buf, cap, "%s", strcmp(o->dflt, "no") == 0 ? "yes" : "no");
		break;
	case HW_CONF_ENUM:
		snprintf(buf, cap, "%s", o->choices[strcmp(o->choices[0].name, o->dflt) == 0].name);
		break;
	case HW_CONF_PATH:
	case HW_CONF_LOG:
		snprintf(buf, cap, "/other");
		break;
	case HW_CONF_ADDRESS:
		snprintf(buf, cap, "127.0.0.1:8731");
		break;
	case HW_CONF_STRING:
	case HW_CONF_WORD:
	case HW_CONF_NODE_ID:
	case HW_CONF_ID:
		snprintf(buf, cap, "%s",
		         strcmp(o->key, "webhook") == 0           ? "http://other/"
		         : strcmp(o->key, "mistakes") == 0        ? "2/1d"
		         : strcmp(o->key, "sentinels") == 0       ? "other:1"
		         : strcmp(o->key, "trusted_proxies") == 0 ? "192.0.2.1"
		                                                  : "other");
		break;
	case HW_CONF_TOPIC:
	case HW_CONF_TOPICS:
		snprintf(buf, cap, "%s",
		         strcmp(o->key, "id") == 0      ? "other/{id}"
		         : strcmp(o->key, "field") == 0 ? "ip other"
		         : strcmp(o->key, "label") == 0 ? "site other"
		         : strcmp(o->key, "while") == 0 ? "other yes"
		                                        : "other/{id}");
		break;
	}
}

/* The keys that must be set together with a key, so that it is accepted alone. */
static const char *company(const struct hw_conf_option *o)
{
	if (strcmp(o->key, "payload") == 0) /* whose default of retained depends on it */
		return "timeout_max = 3650d\nretained = ignore\n";
	if (strcmp(o->key, "parent_death") == 0 || strcmp(o->key, "child_proves") == 0)
		return "parent = p\n";
	if (hw_conf_option_is_named(&hw_settings_table, o))
		return "timeout_max = 3650d\n";
	if (strcmp(o->section, "mqtt") == 0)
		return "barrier_timeout = 2m\nusername = u\ntls_ca = /a\ntls_cert = /c\ntls_key = /k\n";
	if (strcmp(o->section, "http") == 0)
		return "tls_cert = /c\ntls_key = /k\n";
	if (strcmp(o->key, "sentinels") == 0 || strcmp(o->key, "master") == 0)
		return "sentinels = s:1\nmaster = m\n";
	return "";
}

static struct hw_settings *load_with(const struct hw_conf_option *o, const char *value)
{
	char text[1024], line[256] = "", rest[512] = "", start[64];
	if (value)
		snprintf(line, sizeof(line), "%s = %s\n", o->key, value);
	snprintf(rest, sizeof(rest), "%s", company(o));
	snprintf(start, sizeof(start), "\n%s =", o->key);
	snprintf(text, sizeof(text), "[%s%s]\n%s%s", o->section,
	         hw_conf_option_is_named(&hw_settings_table, o) ? " g" : "",
	         !hw_conf_option_is_named(&hw_settings_table, o) ? ""
	         : value && strcmp(o->key, "batch") == 0         ? "heartbeat = a\n"
	                                                         : "heartbeat = a/{id}\n",
	         rest);
	if (value && strstr(text, start)) { /* it is one of the company: replace it */
		char *from = strstr(text, start) + 1, *end = strchr(from, '\n') + 1;
		if (o->type == HW_CONF_TOPICS)
			from = end;
		memmove(from, end, strlen(end) + 1);
	}
	strcat(text, line);
	return load(text);
}

/* Every key of the table: if it alone changes, it alone is reported, with its name. A key that needs a restart keeps
 * its value at a reload. */
START_TEST(every_key_is_compared_and_kept)
{
	static const char *const live[] = {"monitor.log",
	                                   "monitor.log_level",
	                                   "monitor.max_devices",
	                                   "monitor.forget_after",
	                                   "monitor.forget_once_after",
	                                   "http.users",
	                                   "http.tls_cert",
	                                   "http.names",
	                                   "http.trusted_proxies",
	                                   "http.tls_key",
	                                   "mqtt.probe_rate"};
	char value[64], expected[128];
	for (size_t i = 0; i < hw_settings_table.n_options; i++) {
		const struct hw_conf_option *o = &hw_settings_table.options[i];
		struct hw_settings *a, *b;
		bool group = hw_conf_option_is_named(&hw_settings_table, o), is_live = group;
		snprintf(expected, sizeof(expected), "%s%s.%s", o->section, group ? " g" : "", o->key);
		for (size_t j = 0; j < sizeof(live) / sizeof(live[0]); j++)
			is_live |= strcmp(live[j], expected) == 0;
		strcat(expected, is_live ? "\n" : "!\n");
		if (strcmp(o->key, "preset") == 0)
			continue;              /* it changes whatever it stands for */
		if (strcmp(o->key, "id") == 0) /* and where the status goes by default */
			strcpy(expected, "group g.status\ngroup g.id\n");
		if (strcmp(o->key, "batch") == 0) /* the ids of a batch are not in its topic */
			strcpy(expected, "group g.heartbeat\ngroup g.batch\n");
		a = load_with(o, NULL);
		other_value(o, value, sizeof(value));
		if (strcmp(o->key, "timeout_max") == 0)
			strcpy(value, "30s");
		b = load_with(o, value);
		expect_diff(a, b, expected);
		ck_assert_int_eq(hw_conf_keep_restart_values(a, b), 0);
		expect_diff(a, b, is_live ? expected : "");
		hw_conf_free(a);
		hw_conf_free(b);
	}
}
END_TEST

#define A "[group a]\nheartbeat = a/{id}\n"
#define B "[group b]\nheartbeat = b/{id}\n"
#define C "[group c]\nheartbeat = c/{id}\n"

START_TEST(groups_are_compared_by_name_and_order)
{
	expect_text_diff(A B, A B, "");
	expect_text_diff(A B, A, "-group b\n");
	expect_text_diff(B, A B, "+group a\n"); /* what stays has not moved */
	expect_text_diff(A B C, B A C, "group b\ngroup a\n");
	expect_text_diff(A B C, C B, "-group a\ngroup c\ngroup b\n");
	expect_text_diff(A B, B "timeout = 1s\n" A, "group b\ngroup b.timeout\ngroup a\n");
	expect_text_diff(A, A "heartbeat = b/{id}\n", "group a.heartbeat\n");
	expect_text_diff("", A, "-group default\n+group a\n");
	expect_text_diff("",
	                 "[group default]\nheartbeat = nodes/{id}/heartbeat\nheartbeat = nodes/{id}/status\nstatus =\n",
	                 "group default.status\n");
	expect_text_diff(A, A "[mqtt]\nport = 1\n[monitor]\nmax_devices = 5\n", "monitor.max_devices\nmqtt.port!\n");
}
END_TEST

START_TEST(what_is_printed_reads_back)
{
	char conf[1024], *text = NULL;
	struct hw_settings *a, *b;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	/* among them a value that starts like a comment, and one that leaves no room for spaces */
	snprintf(conf, sizeof(conf),
	         "[monitor]\nnode_id = n\nlog_level = error\nstall_after = 1500ms\nuser =\n"
	         "[mqtt]\nprotocol = 3.1.1\nusername=;a;b\nqos = 1\n[redis]\nusername=%0255d\n" A
	         "heartbeat = x/{id}\ntimeout = 90s\n" B "status = b/{id}/s\n",
	         0);
	a = load(conf);
	hw_conf_print(a, f);
	fclose(f);
	ck_assert_ptr_nonnull(strstr(text, "[monitor]\nnode_id = n\n"));
	ck_assert_ptr_nonnull(strstr(text, "\nuser =\n"));
	ck_assert_ptr_nonnull(strstr(text, "\nstall_after = 1500ms\n"));
	ck_assert_ptr_nonnull(strstr(text, "\nprotocol = 3.1.1\n"));
	ck_assert_ptr_nonnull(strstr(
		text, "\n[group a]\npreset =\nheartbeat = a/{id}\nheartbeat = x/{id}\nstatus = nodes/{id}/status\n"));
	b = load(text);
	expect_diff(a, b, "");
	free(text);
	hw_conf_free(a);
	hw_conf_free(b);
}
END_TEST

static char *secret_of(const void *text, size_t len)
{
	char path[64], *secret;
	int err, fd = rig_file(text, len, path, sizeof(path));
	errno = 0;
	secret = hw_conf_read_secret(path);
	err = errno;
	close(fd);
	errno = err;
	return secret;
}

static void expect_secret(const void *text, size_t len, const char *expected)
{
	char *secret = secret_of(text, len);
	ck_assert_ptr_nonnull(secret);
	ck_assert_str_eq(secret, expected);
	free(secret);
}

START_TEST(secrets)
{
	char longest[5000], expected[4096];
	expect_secret("", 0, "");
	expect_secret("pass word", 9, "pass word");
	expect_secret("pass \nnext\n", 11, "pass ");
	expect_secret("pass\r\n", 6, "pass");
	memset(longest, 's', sizeof(longest));
	memset(expected, 's', sizeof(expected));
	expected[4095] = '\0';
	expect_secret(longest, 4095, expected);
	memcpy(longest + 4095, "\r\n", 2);
	expect_secret(longest, sizeof(longest), expected);
	ck_assert_ptr_null(secret_of("a\0b\n", 4));
	ck_assert_int_eq(errno, EINVAL);
	memset(longest, 's', sizeof(longest));
	ck_assert_ptr_null(secret_of(longest, 4096));
	ck_assert_int_eq(errno, EFBIG);
	ck_assert_ptr_null(secret_of(longest, sizeof(longest)));
	ck_assert_int_eq(errno, EFBIG);
	ck_assert_ptr_null(hw_conf_read_secret("/nonexistent"));
	ck_assert_int_eq(errno, ENOENT);
	ck_assert_ptr_null(hw_conf_read_secret("/tmp"));
	ck_assert_int_eq(errno, EISDIR);
	ck_assert_ptr_null(hw_conf_read_secret("/dev/null"));
	ck_assert_int_eq(errno, EMEDIUMTYPE);
}
END_TEST

/* Loads again and again, and each time the next allocation fails: the reason must be reported. Ends when no allocation
 * fails; returns how many failed. */
static unsigned starve(const char *path, struct hw_settings **loaded)
{
	unsigned n = 0;
	do {
		struct hw_conf_errors errors = {0};
		fails_in = ++n;
		*loaded = hw_conf_load(&hw_settings_table, path, &errors);
		ck_assert_uint_eq(errors.n, *loaded ? 0 : 1);
		if (!*loaded)
			ck_assert_str_eq(errors.lines[0] + strlen(path), ": cannot be checked: out of memory");
		ck_assert_int_eq(errors.no_memory, *loaded == NULL);
		hw_conf_errors_fini(&errors);
	} while (!*loaded);
	fails_in = 0;
	return n - 1;
}

/* No memory leaks either, which the sanitizers check. */
START_TEST(lack_of_memory)
{
	static const char text[] = A B "heartbeat = x/{id}\nstatus = b/{id}/s\n[mqtt]\nhost = h\n";
	struct hw_settings *from, *to;
	struct hw_conf_errors errors = {0};
	char path[64];
	int fd = rig_file(text, strlen(text), path, sizeof(path));
	ck_assert_uint_gt(starve("/dev/null", &from), 20);
	ck_assert_uint_gt(starve(path, &to), 20);
	fails_in = 1;
	ck_assert_int_eq(hw_conf_keep_restart_values(from, to), -ENOMEM);
	fails_in = 1;
	ck_assert_ptr_null(hw_conf_read_secret(path));
	ck_assert_int_eq(errno, ENOMEM);
	close(fd);
	fails_in = 2; /* after the path, the list of errors itself */
	ck_assert_ptr_null(hw_conf_load(&hw_settings_table, "/nonexistent", &errors));
	ck_assert_uint_eq(errors.n, 1);
	ck_assert_str_eq(errors.lines[0], "/nonexistent: cannot be checked: out of memory");
	hw_conf_errors_fini(&errors);
	hw_conf_free(from);
	hw_conf_free(to);
}
END_TEST

static const char *source(const char *name, char *path, size_t cap)
{
	const char *dir = getenv("srcdir");
	snprintf(path, cap, "%s/%s", dir ? dir : ".", name);
	return path;
}

START_TEST(shipped_files_say_the_defaults)
{
	static const char *const names[] = {"conf/monitor.conf", "conf/monitor.conf.example"};
	char path[4096];
	struct hw_settings *builtin = load("");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct hw_settings *shipped = load_file(source(names[i], path, sizeof(path)));
		expect_diff(builtin, shipped, "");
		hw_conf_free(shipped);
	}
	hw_conf_free(builtin);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("conf_reload");
	TCase *t = tcase_create("all");
	tcase_add_test(t, duration_units);
	tcase_add_test(t, bools);
	tcase_add_test(t, every_key_is_compared_and_kept);
	tcase_add_test(t, groups_are_compared_by_name_and_order);
	tcase_add_test(t, what_is_printed_reads_back);
	tcase_add_test(t, secrets);
	tcase_add_test(t, lack_of_memory);
	tcase_add_test(t, shipped_files_say_the_defaults);
	suite_add_tcase(s, t);
	return suite_run(s);
}

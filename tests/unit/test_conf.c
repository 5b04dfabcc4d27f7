/* SPDX-License-Identifier: MIT */
/* monitor.conf: its lines, sections and keys, and the message for each mistake in them. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../suite.h"
#include "conf/errors.h"
#include "conf_rig.h"

#define GROUP "[group a]\nheartbeat = a/{id}\n"

START_TEST(comments_line_ends_and_byte_order_mark)
{
	char text[16384], longest[4096];
	struct hw_settings *c;
	memset(longest, 'x', sizeof(longest));
	longest[4095] = '\0';
	/* A comment may be of any length, and stand in from the left; 4095 bytes of a line are taken. */
	snprintf(text, sizeof(text),
	         "\xef\xbb\xbf[mqtt] ; the broker\r\n; c\r\n   # c %s%s\r\n   \t\r\n;%s\n"
	         "host = h ; the = host\r\nusername = a;b # is not seen ; c#\r\npassword_file = ;\n"
	         "[group a]\t; x\nheartbeat = a/{id}\t;y\nstatus = ; none\nheartbeat = {id}/%.*s\r\n",
	         longest, longest, longest, 185 - 5, longest);
	memcpy(strstr(text, " # is"), " * is", 5);
	c = load(text);
	ck_assert_str_eq(c->mqtt.host, "h");
	ck_assert_str_eq(c->mqtt.username, "a;b * is not seen");
	ck_assert_str_eq(c->mqtt.password_file, "");
	ck_assert_str_eq(c->groups[0].heartbeat[0], "a/{id}");
	ck_assert_uint_eq(strlen(c->groups[0].heartbeat[1]), 185);
	hw_conf_free(c);
	snprintf(text, sizeof(text), "\xef\xbb\xbf[mqtt] ;%.*s\r\nport = 8\n", 4095 - 8, longest);
	c = load(text);
	ck_assert_int_eq(c->mqtt.port, 8);
	hw_conf_free(c);
	c = load("[mqtt]\nport = 7"); /* no line end */
	ck_assert_int_eq(c->mqtt.port, 7);
	hw_conf_free(c);
}
END_TEST

START_TEST(unknown_keys)
{
	REFUSE("[mqtt]\nprot = 1\n", ":2: key 'prot': unknown in [mqtt]: did you mean 'port'?");
	REFUSE("[monitor]\nmaxdevices = 1\n", ":2: key 'maxdevices': ", "~did you mean 'max_devices'?");
	REFUSE("[monitor]\nport = 1\n",
	       ":2: key 'port': unknown in [monitor]: move it to [mqtt] or [redis], where it belongs");
	REFUSE("[mqtt]\ntimeout = 1\n", ":2: key 'timeout': unknown in [mqtt]: move it to [group NAME]");
	REFUSE("[redis]\nsomething = 1\n", ":2: key 'something': unknown in [redis]: remove it");
	REFUSE(GROUP "payloads = json\n", ":3: key 'payloads': unknown in [group NAME]: did you mean 'payload'?");
	REFUSE("port = 1\n", ":1: key 'port': is above the first section: move it to [mqtt] or [redis]");
	REFUSE("what = 1\n", ":1: key 'what': is above the first section");
	REFUSE("[mqtt]\n= 1\n", ":2: key '': unknown in [mqtt]");
	REFUSE("[mqtt]\nDB = 1\n", ":2: key 'DB': unknown in [mqtt]: remove it"); /* two edits of two letters */
	REFUSE("[mqtt]\nabcdefghijklmnopqrstuvwxyzabcdefghijk = 1\n", ":2: key 'abc", "~unknown in [mqtt]: remove it");
	REFUSE("[mqtt]\n\x1b[2J\xff = 1\n", ":2: key '?[2J?': unknown");
}
END_TEST

START_TEST(sections)
{
	REFUSE("[mqttt]\nport = x\n", ":1: section 'mqttt': unknown section: did you mean [mqtt]?");
	REFUSE("[bundle]\n", ":1: section 'bundle': unknown section; there are [monitor] [mqtt] [store] [redis] "
	                     "[cluster] [keyspace] [http] [group NAME]");
	REFUSE("[]\n", ":1: section '': unknown section");
	REFUSE("[mqtt\nport = x\n", ":1: section 'mqtt': the closing ] is missing");
	REFUSE("[mqtt ;]\n", ":1: section 'mqtt': the closing ] is missing");
	REFUSE("[mqtt] port = 1\n", ":1: section 'mqtt': there is text after the ]");
	REFUSE("[mqtt]\nport = 1\n[redis]\n[ mqtt ]\nport = 2\nqos = 9\n", ":4: section 'mqtt': is already in line 1",
	       ":6: key 'qos': ");
	REFUSE(GROUP "[group a]\nheartbeat = b/{id}\ntimeout = x\n", ":3: section 'group a': is already in line 1",
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

START_TEST(lines_that_are_no_lines)
{
	char text[16384];
	REFUSE("[mqtt]\nport\n", ":2: key 'port': not 'key = value'");
	REFUSE("[mqtt]\nport 1 ; = 2\n", ":2: key 'port': not 'key = value'");
	REFUSE("[mqtt]\nhost = a\n   b.example\n  port = 2\n",
	       ":3: key 'b.example': the line is indented: a value stays on one line",
	       ":4: key 'port': the line is indented");
	REFUSE("[redis]\n [mqtt]\nkeepalive = 10s\nqos = x\n", ":2: section 'mqtt': the line is indented",
	       ":4: key 'qos': ");
	snprintf(text, sizeof(text), "[mqtt]\nusername = %04085d\n%05000d\n[%05000d]\nport = x\n", 0, 0, 0);
	REFUSE(text, ":2: key 'username': the line is 4096 bytes long: the limit is 4095", ":3: key '000",
	       "~the line is 5000 bytes long", ":4: key '[000");
	snprintf(text, sizeof(text), "[mqtt]\nport = 1 ; %05000d\nqos = x\n", 0);
	REFUSE(text, ":2: key 'port': the line is 5011 bytes long", ":3: key 'qos': ");
	rig_refuse(&hw_settings_table, "[mqtt]\nport = 1\0\nqos\0 = 1\nqos = 7\n", 33,
	           (const char *const[]){":2: key 'port': the line holds a NUL byte",
	                                 ":3: key 'qos': the line holds a NUL", ":4: key 'qos': ", NULL});
}
END_TEST

START_TEST(keys_given_twice)
{
	REFUSE("[mqtt]\nport = 1\nqos = 1\nport = 1\n", ":4: key 'port': is already in line 2");
	REFUSE(GROUP "timeout = 1\ntimeout = x\n", ":4: key 'timeout': is already in line 3");
	REFUSE(GROUP "heartbeat = b/{id}\nheartbeat = a/{id}\n", ":4: key 'heartbeat': the same value is already");
	/* the same key in two sections is two keys */
	hw_conf_free(load("[mqtt]\nport = 1\n[redis]\nport = 1\n" GROUP "timeout = 1\n[group b]\nheartbeat = {id}\n"
	                  "timeout = 1\n"));
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
	       ":13: key 'timeout': ", ":14: section 'monitor': is already in line 2", ":15: key 'log': ");
}
END_TEST

START_TEST(the_number_of_errors_is_bounded)
{
	enum { LINES = HW_CONF_ERRORS_MAX + 23 };
	struct hw_conf_errors errors = {0};
	char *text = malloc(LINES * 2 + 1);

	for (size_t i = 0; i < LINES; i++)
		memcpy(text + 2 * i, "x\n", 3);
	ck_assert_ptr_null(rig_load_bytes(&hw_settings_table, text, 2 * LINES, &errors));
	ck_assert_uint_eq(errors.n, HW_CONF_ERRORS_MAX + 1);
	ck_assert_str_eq(errors.lines[HW_CONF_ERRORS_MAX], ": 23 more errors; is it the right file?");
	hw_conf_errors_fini(&errors);
	free(text);
}
END_TEST

START_TEST(files_that_cannot_be_read)
{
	struct hw_conf_errors errors = {0};
	char big[4096], path[64];
	int fd = rig_file("", 0, path, sizeof(path));
	ck_assert_ptr_null(hw_conf_load(&hw_settings_table, "/nonexistent/monitor.conf", &errors));
	ck_assert_uint_eq(errors.n, 1);
	ck_assert_str_eq(errors.lines[0], "/nonexistent/monitor.conf: cannot be opened: No such file or directory");
	hw_conf_errors_fini(&errors);
	ck_assert_ptr_null(hw_conf_load(&hw_settings_table, "/tmp", &errors));
	ck_assert_uint_eq(errors.n, 1);
	ck_assert_str_eq(errors.lines[0], "/tmp: cannot be read: Is a directory");
	hw_conf_errors_fini(&errors);
	memset(big, '#', sizeof(big));
	for (int i = 0; i < 4097; i++)
		ck_assert_int_eq(write(fd, big, sizeof(big)), sizeof(big));
	ck_assert_ptr_null(hw_conf_load(&hw_settings_table, path, &errors));
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
	tcase_add_test(t, comments_line_ends_and_byte_order_mark);
	tcase_add_test(t, unknown_keys);
	tcase_add_test(t, sections);
	tcase_add_test(t, lines_that_are_no_lines);
	tcase_add_test(t, keys_given_twice);
	tcase_add_test(t, every_wrong_line_is_reported_in_order);
	tcase_add_test(t, the_number_of_errors_is_bounded);
	tcase_add_test(t, files_that_cannot_be_read);
	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);
	return suite_run(s);
}

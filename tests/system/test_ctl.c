/* SPDX-License-Identifier: MIT */
/* heartwheelctl as a user runs it: its commands, the errors for wrong ones, and its exit status. */
#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl_rig.h"

START_TEST(status)
{
	server_beat(&s, 0, "a", NULL);
	s.status.mqtt = "refused\x1b[31m";
	ck_assert_int_eq(ctl("status"), 0);
	ck_assert_str_eq(out, "node        node \"1\", version 1.2.3, up 1h18m\n"
	                      "watching    yes\n"
	                      "devices     1: 1 online, 0 offline\n"
	                      "groups      default: 1 online, 0 offline\n"
	                      "            fast: 0 online, 0 offline\n"
	                      "heartbeats  0.0 a second, 1 since the start\n"
	                      "transitions 1 since the start\n"
	                      "mqtt        refused\\x1b[31m\n"
	                      "redis       off\n"
	                      "pending     0 writes\n");
	hw_monitor_link(s.monitor, s.now, 0, false);
	s.now.mono.ns += 12 * HW_NS_PER_S;
	s.status.loading = true;
	s.status.pending = 12345;
	s.status.pending_oldest_ms = 61000;
	transition("a", HW_STATE_OFFLINE, HW_REASON_TIMEOUT);
	ck_assert_int_eq(ctl("status"), 0);
	ck_assert_ptr_nonnull(strstr(
		out, "\nwatching    cannot hear devices: broker connection lost 12s ago; no device is judged\n"));
	ck_assert_ptr_nonnull(strstr(out, "\nloading     yes"));
	ck_assert_ptr_nonnull(strstr(out, "\npending     12,345 writes, the oldest for 1m1s\n"));
	ck_assert_ptr_nonnull(strstr(out, "\nlast        a offline, "));
	ck_assert_ptr_nonnull(strstr(out, " ago (timeout)\n"));
	ck_assert_int_eq(ctl("status --json"), 0);
	ck_assert_ptr_nonnull(strstr(out, "\"blind_cause\":\"link\""));
	ck_assert_ptr_nonnull(strstr(out, "refused\\u001b[31m"));
	ck_assert_str_eq(strchr(out, '\n'), "\n");
}
END_TEST

START_TEST(show)
{
	server_beat(&s, 0, "a/b c",
	            "{\"battery\":87,\"rssi\":-60.5,\"uptime\":93784,\"data\":{\"x\":\"\\u001b[31m\\u009b\\u202e\"},"
	            "\"timeout\":310}");
	ck_assert_int_eq(ctl("show 'a/b c'"), 0);
	ck_assert_int_eq(strncmp(out, "a/b c\n  state      online since 20", 33), 0);
	ck_assert_ptr_nonnull(strstr(out, "\n  timeout    5m10s, for which the device asks\n  offline    in 5m10s, if "
	                                  "no heartbeat arrives\n  wheel      level "));
	ck_assert_ptr_nonnull(strstr(out, "\n  battery    87 %\n  rssi       -60.5 dBm\n  uptime     1d2h\n"));
	ck_assert_ptr_null(strstr(out, "lately"));
	ck_assert_ptr_nonnull(strstr(out, "\n  data       {\"x\":\"\\u001b[31m\\u009b\\u202e\"}\n"));
	ck_assert_int_eq(ctl("show --json 'a/b c'"), 0);
	ck_assert_ptr_nonnull(strstr(out, "\"data\":{\"x\":\"\\u001b[31m\\u009b\\u202e\"}"));
	ck_assert_ptr_null(strchr(out, '\x1b'));
	ck_assert_int_eq(ctl("show nobody"), 1);
	ck_assert_str_eq(err, "heartwheelctl: nobody: no such device\n");
	ck_assert_int_eq(ctl("show 'a\033[31m+'"), 1);
	ck_assert_str_eq(err, "heartwheelctl: a\\x1b[31m+: not a valid device id\n");
}
END_TEST

START_TEST(show_lately)
{
	server_beat(&s, 0, "a b", NULL);
	transition("a b", HW_STATE_ONLINE, HW_REASON_HEARTBEAT);
	transition("other", HW_STATE_OFFLINE, HW_REASON_TIMEOUT);
	transition("a b", HW_STATE_OFFLINE, HW_REASON_WILL);
	ck_assert_int_eq(ctl("show 'a b'"), 0);
	const char *lately = strstr(out, "\n  lately     20");
	ck_assert_ptr_nonnull(lately);
	ck_assert_ptr_nonnull(strstr(lately, "  offline    will\n             20"));
	ck_assert_ptr_nonnull(strstr(lately, "  online     heartbeat\n"));
	ck_assert_ptr_null(strstr(lately, "timeout"));
	ck_assert_ptr_nonnull(strstr(out, "  the cursor is at slot "));
	ck_assert_int_eq(ctl("show --json 'a b'"), 0);
	ck_assert_ptr_nonnull(strstr(out, ",\"transitions\":[{\"id\":\"a b\",\"state\":\"offline\""));
	ck_assert_str_eq(strchr(out, '\n'), "\n");
}
END_TEST

START_TEST(wheel)
{
	for (int i = 0; i < 3; i++) {
		char id[16];
		snprintf(id, sizeof(id), "d%d", i);
		server_beat(&s, 0, id, NULL);
	}
	ck_assert_int_eq(ctl("wheel"), 0);
	ck_assert_ptr_nonnull(strstr(out, "level 0  0 in 31 slots of 1/31 s, one round is 1s\n"));
	ck_assert_ptr_nonnull(strstr(out, "level 1  3 in 31 slots of 1s, one round is 31s; at most 3 in one\n"));
	ck_assert_ptr_nonnull(strstr(out, "level 3  0 in 31 slots of 16m1s, one round is 8h16m\n"));
	ck_assert_ptr_nonnull(strstr(out, "\n3 in the wheel\n"));
	ck_assert_ptr_nonnull(strstr(out, "\u2588\u2588")); /* a bar */
	ck_assert_ptr_nonnull(strstr(out, "\u25b2\u25b2")); /* the cursor */
	ck_assert_int_eq(ctl("wheel --json"), 0);
	ck_assert_int_eq(strncmp(out, "{\"ticks_per_s\":31,", 18), 0);
	ck_assert_str_eq(strchr(out, '\n'), "\n");
}
END_TEST

START_TEST(wheel_of_keys)
{
	server_stop(&s);
	server_start_with_keys(&s);
	hw_monitor_key_sight(s.monitor, s.now, true);
	server_key(&s, "one", 5000);
	server_key(&s, "two", 5000);
	server_beat(&s, 0, "beats", NULL);
	ck_assert_int_eq(ctl("wheel"), 0);
	const char *first = strstr(out, "\n1 in the wheel\n\nlevel 0  ");
	ck_assert_ptr_nonnull(first);
	ck_assert_ptr_nonnull(strstr(first, "\nlevel 1  2 in 31 slots of 1s, one round is 31s; at most 2 in one\n"));
	ck_assert_ptr_nonnull(strstr(first, "\n2 in the wheel of keys\n"));
	/* The monitor is blind to heartbeats, so the other wheel stands still. */
	s.now.mono.ns += 3 * HW_NS_PER_S;
	server_core(&s);
	ck_assert_int_eq(ctl("show one"), 0);
	ck_assert_ptr_nonnull(strstr(out, ", rounds 0, in the wheel of keys\n"));
	ck_assert_ptr_nonnull(strstr(out, "  the cursor is at slot 11\n"));
	ck_assert_int_eq(ctl("show beats"), 0);
	ck_assert_ptr_nonnull(strstr(out, "  the cursor is at slot 8\n"));
	ck_assert_ptr_null(strstr(out, "wheel of keys"));
}
END_TEST

/* Runs `watch` until so many lines have come, then closes its output. */
static void watch(const char *args, int lines)
{
	long long since = clock_ms();
	int o[2], n, how;
	char command[8192];
	bool told = false;
	ck_assert_int_eq(pipe2(o, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(o[1], 1);
		snprintf(command, sizeof(command), "exec '%s' -s '%s' watch %s", ctl_program, s.path, args);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	close(o[1]);
	fcntl(o[0], F_SETFL, O_NONBLOCK);
	*out = '\0';
	do {
		struct pollfd p = {.fd = o[0], .events = POLLIN};
		server_turn(&s);
		if (!told && hw_control_clients(s.control).now == 1) {
			transition("a", HW_STATE_ONLINE, HW_REASON_HEARTBEAT);
			transition("b\x1b", HW_STATE_OFFLINE, HW_REASON_TIMEOUT);
			transition("a", HW_STATE_ONLINE, HW_REASON_HEARTBEAT); /* as a new master is sent it */
			transition("c", HW_STATE_FORGOTTEN, HW_REASON_OPERATOR);
			told = true;
		}
		poll(&p, 1, 1);
		drain(o[0], out, sizeof(out));
		n = 0;
		for (char *at = out; (at = strchr(at, '\n')); at++)
			n++;
		ck_assert_msg(!too_late(since), "%d lines: %s", n, out);
	} while (n < lines);
	kill(pid, SIGINT);
	ck_assert_int_eq(waitpid(pid, &how, 0), pid);
	close(o[0]);
	while (hw_control_clients(s.control).now > 0)
		server_turn(&s);
}

START_TEST(watch_tells)
{
	watch("", 3);
	ck_assert_ptr_nonnull(strstr(out, "  online     heartbeat     a  fast\n"));
	ck_assert_ptr_nonnull(strstr(out, "  offline    timeout       b\\x1b  fast, silent for 2s\n"));
	ck_assert_ptr_nonnull(strstr(out, "  forgotten  operator      c  fast\n"));
	ck_assert_int_eq(strncmp(out, "20", 2), 0); /* with its day */
	ck_assert_ptr_null(strstr(strstr(out, "  a  fast\n") + 1, "  a  fast\n"));
	watch("--json", 3);
	ck_assert_int_eq(strncmp(out, "{\"id\":\"a\",\"state\":\"online\"", 26), 0);
	watch("--state offline --group fast --prefix b", 1);
	ck_assert_ptr_nonnull(strstr(out, "  offline    timeout"));
	ck_assert_ptr_null(strstr(out, "online"));
}
END_TEST

START_TEST(odd_ids_are_encoded)
{
	static const char *const ids[] = {"..",           ".",  "a%41",    "a?b",  "a b",
	                                  "\xe6\x97\xa5", "-x", "a;b&c=d", "a\\b", "a\"b"};
	char args[64];
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		server_beat(&s, 0, ids[i], NULL);
		snprintf(args, sizeof(args), "show -- '%s'", ids[i]);
		ck_assert_msg(ctl(args) == 0, "%s: %s", args, err);
		ck_assert_int_eq(strncmp(out, ids[i], strlen(ids[i])), 0);
	}
}
END_TEST

START_TEST(forget)
{
	server_beat(&s, 0, "a", NULL);
	ck_assert_int_eq(ctl("forget a"), 0);
	ck_assert_str_eq(out, "");
	ck_assert_uint_eq(s.forgets, 1);
	ck_assert_int_eq(ctl("forget a"), 1);
	ck_assert_str_eq(err, "heartwheelctl: a: no such device\n");
}
END_TEST

/* The worst of what is wrong, and all of it. */
START_TEST(check)
{
	server_beat(&s, 0, "a|b", "{\"online\":false}");
	server_beat(&s, 0, "c\xe2\x80\xae", "{\"online\":false}");
	server_beat(&s, 0, "d", NULL);
	server_beat(&s, 1, "f", NULL);
	ck_assert_int_eq(ctl("check -c 2"), 1);
	ck_assert_ptr_nonnull(strstr(out, "HEARTWHEEL WARNING - 4 devices: 2 online, 2 offline ("));
	ck_assert(strstr(out, "a/b") && strstr(out, "c\\u202e"));
	ck_assert_ptr_nonnull(strstr(out, ") | offline=2;0;2;0;4 online=2;;;0;4\n"));
	ck_assert_ptr_eq(strchr(out, '|'), strrchr(out, '|'));
	s.status.redis = "away";
	s.status.mqtt = "away";
	s.status.pending = 3;
	s.status.pending_oldest_ms = 11000;
	ck_assert_int_eq(ctl("check --group fast"), 1);
	ck_assert_str_eq(
		out, "HEARTWHEEL WARNING - 1 devices of fast: 1 online, 0 offline; Redis: away; 3 writes are pending, "
		     "the oldest for 11s | offline=0;0;0;0;1 online=1;;;0;1\n");
	s.status.pending = 1;
	ck_assert_int_eq(ctl("check --group fast"), 1);
	ck_assert_ptr_nonnull(strstr(out, "; 1 write is pending, the oldest for 11s"));
	ck_assert_int_eq(ctl("status"), 0);
	ck_assert_ptr_nonnull(strstr(out, "\npending     1 write, the oldest for 11s\n"));
	s.status.pending = 3;
	hw_monitor_link(s.monitor, s.now, 0, false);
	s.now.mono.ns += 12 * HW_NS_PER_S;
	ck_assert_int_eq(ctl("check -c 3"), 3);
	ck_assert_ptr_nonnull(strstr(out, "UNKNOWN - 4 devices"));
	ck_assert_ptr_nonnull(
		strstr(out, "; cannot hear devices: broker connection lost 12s ago; no device is judged; "));
	ck_assert_int_eq(ctl("check -c 3 --blind warning"), 1);
	/* A blindness hides no outage. */
	ck_assert_int_eq(ctl("check -c 1"), 2);
	s.status.loading = true;
	ck_assert_int_eq(ctl("check -w 100% -c 100% --blind warning"), 3);
}
END_TEST

START_TEST(reload)
{
	ck_assert_int_eq(ctl("reload"), 0);
	ck_assert_str_eq(out, "nothing changed\n");
	s.reload_body = "{\"changed\":[\"monitor.log\",\"group a\"],\"restart_needed\":[\"mqtt.host\"]}";
	ck_assert_int_eq(ctl("reload"), 0);
	ck_assert_str_eq(out,
	                 "changed:\n  monitor.log\n  group a\nchanged in the file, needs a restart:\n  mqtt.host\n");
	s.reload_body = "{\"changed\":[\"group a\",\"group b\"],\"restart_needed\":[],\"added\":[\"group b\"],"
			"\"removed\":[\"group a\"]}";
	ck_assert_int_eq(ctl("reload"), 0);
	ck_assert_str_eq(out, "changed:\n  group a (removed)\n  group b (added)\n");
	s.reload_code = 400;
	s.reload_body = "{\"error\":\"2 errors\",\"lines\":[\"f:1: key 'a': no\",\"f:2: key 'b': no\"]}";
	ck_assert_int_eq(ctl("reload"), 1);
	ck_assert_str_eq(out, "");
	ck_assert_str_eq(err, "f:1: key 'a': no\nf:2: key 'b': no\nheartwheelctl: reload refused: 2 errors\n");
}
END_TEST

START_TEST(version)
{
	ck_assert_int_eq(ctl("version"), 0);
	ck_assert_int_eq(strncmp(out, "heartwheelctl ", 14), 0);
	ck_assert_str_eq(strchr(out, '\n'), "\nheartwheeld 1.2.3\n");
	ck_assert_int_eq(ctl("-V"), 0);
	ck_assert_int_eq(strncmp(out, "heartwheelctl ", 14), 0);
}
END_TEST

/* --- usage and failures */

START_TEST(usage)
{
	static const char *const wrong[] = {"",
	                                    "nonsense",
	                                    "--bogus status",
	                                    "-x",
	                                    "show",
	                                    "show a b",
	                                    "forget",
	                                    "list x",
	                                    "list --bogus",
	                                    "list --state",
	                                    "list --state on",
	                                    "status --state online",
	                                    "forget --json a",
	                                    "reload now",
	                                    "show ''",
	                                    "-s '' status",
	                                    "-s",
	                                    "version -x",
	                                    "list --sort age",
	                                    "list --limit 0",
	                                    "list --limit x",
	                                    "list --limit -1",
	                                    "list --names --json",
	                                    "watch a",
	                                    "watch --sort id",
	                                    "wheel 1",
	                                    "groups --state online",
	                                    "show a --names"};
	static const char *const help[] = {"-h",           "--help",        "status --help", "list -h",
	                                   "show --help",  "forget --help", "reload -h",     "version --help",
	                                   "watch --help", "wheel -h",      "groups --help"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		ck_assert_msg(ctl(wrong[i]) == 2, "%s", wrong[i]);
		ck_assert_int_eq(strncmp(err, "heartwheelctl: ", 15), 0);
		ck_assert_str_eq(out, "");
	}
	for (size_t i = 0; i < sizeof(help) / sizeof(help[0]); i++) {
		ck_assert_msg(ctl(help[i]) == 0, "%s", help[i]);
		ck_assert_int_eq(strncmp(out, "usage: heartwheelctl ", 21), 0);
		ck_assert_str_eq(err, "");
	}
}
END_TEST

START_TEST(no_daemon)
{
	ck_assert_int_eq(ctl("-s /nowhere/sock status"), 1);
	ck_assert_str_eq(
		err,
		"heartwheelctl: cannot reach heartwheeld at /nowhere/sock: No such file or directory; is the daemon "
		"running?\n");
	ck_assert_int_eq(ctl("-s /nowhere/sock version"), 1);
	ck_assert_int_eq(strncmp(out, "heartwheelctl ", 14), 0);
}
END_TEST

/* -s goes before the environment. */
START_TEST(socket_of_the_environment)
{
	char command[8192];
	snprintf(command, sizeof(command), "-V | HEARTWHEEL_SOCKET='%s' '%s' status", s.path, ctl_program);
	ck_assert_int_eq(ctl(command), 0);
	snprintf(command, sizeof(command), "-V | HEARTWHEEL_SOCKET=/nowhere '%s' -s '%s' status", ctl_program, s.path);
	ck_assert_int_eq(ctl(command), 0);
	snprintf(command, sizeof(command), "-V | HEARTWHEEL_SOCKET=/nowhere '%s' status", ctl_program);
	ck_assert_int_eq(ctl(command), 1);
	ck_assert_ptr_nonnull(strstr(err, "/nowhere"));
}
END_TEST

START_TEST(mistyped_commands)
{
	static const char *const typed[][2] = {
		{"stauts", "status"}, {"lst", "list"}, {"frget", "forget"}, {"watc", "watch"}, {"shwo", "show"}};
	char want[64];
	for (size_t i = 0; i < sizeof(typed) / sizeof(typed[0]); i++) {
		ck_assert_int_eq(ctl(typed[i][0]), 2);
		snprintf(want, sizeof(want), "did you mean '%s'?\n", typed[i][1]);
		ck_assert_msg(strstr(err, want), "%s", err);
	}
	ck_assert_int_eq(ctl("nonsense"), 2);
	ck_assert_ptr_null(strstr(err, "mean"));
}
END_TEST

START_TEST(output_that_fails)
{
	ck_assert_int_eq(ctl("status >/dev/full"), 1);
	ck_assert_str_eq(err, "heartwheelctl: cannot write: No space left on device\n");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ctl");
	TCase *tc = tcase_create("ctl");
	tcase_add_checked_fixture(tc, rig_set_up, rig_tear_down);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, status);
	tcase_add_test(tc, show);
	tcase_add_test(tc, show_lately);
	tcase_add_test(tc, wheel);
	tcase_add_test(tc, wheel_of_keys);
	tcase_add_test(tc, watch_tells);
	tcase_add_test(tc, odd_ids_are_encoded);
	tcase_add_test(tc, forget);
	tcase_add_test(tc, check);
	tcase_add_test(tc, reload);
	tcase_add_test(tc, version);
	tcase_add_test(tc, usage);
	tcase_add_test(tc, no_daemon);
	tcase_add_test(tc, socket_of_the_environment);
	tcase_add_test(tc, mistyped_commands);
	tcase_add_test(tc, output_that_fails);
	suite_add_tcase(suite, tc);
	return ctl_run(suite);
}

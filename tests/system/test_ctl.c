/* SPDX-License-Identifier: MIT */
/*
 * heartwheelctl as a user runs it: the built program ($HW_CTL, or heartwheelctl in $HW_BUILDDIR) against a real control
 * socket served by this process.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control_server.h"

static struct server s;
static char program[4096];
static char out[1 << 20], err[65536];

static void setup(void)
{
	server_start(&s, false);
	server_see(&s);
	/* ctl reckons with the machine's wall clock. */
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	s.now.wall_ms = (int64_t)t.tv_sec * 1000;
}

static void teardown(void)
{
	server_stop(&s);
}

/* Adds what waits in a pipe or terminal; false at its end. */
static bool drain(int fd, char *text, size_t cap)
{
	size_t n = strlen(text);
	ssize_t got = read(fd, text + n, cap - 1 - n);

	if (got > 0)
		text[n + (size_t)got] = '\0';
	return got > 0 || (got < 0 && errno == EAGAIN);
}

/* Waits for the program with the loop turning; its exit status. */
static int await(pid_t pid, int out_fd, int err_fd)
{
	long long since = clock_ms();
	bool out_open = true, err_open = err_fd >= 0;
	int status;

	*out = *err = '\0';
	fcntl(out_fd, F_SETFL, O_NONBLOCK);
	if (err_fd >= 0)
		fcntl(err_fd, F_SETFL, O_NONBLOCK);
	while (out_open || err_open) {
		struct pollfd p[2] = {{.fd = out_open ? out_fd : -1, .events = POLLIN},
		                      {.fd = err_open ? err_fd : -1, .events = POLLIN}};
		server_turn(&s);
		poll(p, 2, 1);
		out_open = out_open && drain(out_fd, out, sizeof(out));
		err_open = err_open && drain(err_fd, err, sizeof(err));
		ck_assert(!too_late(since));
	}
	close(out_fd);
	if (err_fd >= 0)
		close(err_fd);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status), "died by signal %d: %s", WTERMSIG(status), err);
	return WEXITSTATUS(status);
}

/* Runs `heartwheelctl -s SOCKET ARGS`; the arguments are the shell's. */
static int ctl(const char *args)
{
	int o[2], e[2];
	char command[8192];

	ck_assert_int_eq(pipe2(o, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(e, O_CLOEXEC), 0);
	snprintf(command, sizeof(command), "exec '%s' -s '%s' %s", program, s.path, args);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(o[1], 1);
		dup2(e[1], 2);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	close(o[1]);
	close(e[1]);
	return await(pid, o[0], e[0]);
}

/* The same, on a terminal of that many columns. */
static int ctl_on_terminal(const char *args, int columns, const char *locale)
{
	char command[8192];
	int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};

	ck_assert_int_ge(terminal, 0);
	ck_assert_int_eq(grantpt(terminal), 0);
	ck_assert_int_eq(unlockpt(terminal), 0);
	int inner = open(ptsname(terminal), O_RDWR | O_NOCTTY);
	ck_assert_int_ge(inner, 0);
	ck_assert_int_eq(ioctl(inner, TIOCSWINSZ, &size), 0);
	snprintf(command, sizeof(command), "LC_ALL=%s exec '%s' -s '%s' %s", locale, program, s.path, args);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(inner, 1);
		dup2(inner, 2);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	close(inner);
	return await(pid, terminal, -1);
}

/* --- commands */

/* What clients of the events are told. */
static void transition(const char *id, enum hw_state state, enum hw_reason reason)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	int64_t now_ms = (int64_t)t.tv_sec * 1000;
	hw_control_event(s.control, &(struct hw_event){.id = id,
	                                               .id_len = strlen(id),
	                                               .group = "fast",
	                                               .group_len = 4,
	                                               .state = state,
	                                               .reason = reason,
	                                               .time_ms = now_ms - 5000,
	                                               .last_seen_ms = now_ms - 7000,
	                                               .seq = 1});
}

START_TEST(status)
{
	server_beat(&s, 0, "a", NULL);
	s.status.mqtt = "refused\x1b[31m";
	ck_assert_int_eq(ctl("status"), 0);
	ck_assert_str_eq(out, "node        node \"1\", version 1.2.3, up 1h18m\n"
	                      "blind       no\n"
	                      "devices     1: 1 online, 0 offline\n"
	                      "groups      default: 1 online, 0 offline\n"
	                      "            fast: 0 online, 0 offline\n"
	                      "heartbeats  0.0 a second, 1 since the start\n"
	                      "transitions 1 since the start\n"
	                      "mqtt        refused\\x1b[31m\n"
	                      "redis       off\n"
	                      "owed        0\n");
	hw_monitor_link(s.monitor, s.now, 0, false);
	s.now.mono.ns += 12 * HW_NS_PER_S;
	s.status.loading = true;
	s.status.owed = 12345;
	s.status.owed_oldest_ms = 61000;
	transition("a", HW_STATE_OFFLINE, HW_REASON_TIMEOUT);
	ck_assert_int_eq(ctl("status"), 0);
	ck_assert_ptr_nonnull(strstr(out, "\nblind       yes, cause: link, for 12s; no device is judged meanwhile\n"));
	ck_assert_ptr_nonnull(strstr(out, "\nloading     yes"));
	ck_assert_ptr_nonnull(strstr(out, "\nowed        12,345, the oldest for 1m1s\n"));
	ck_assert_ptr_nonnull(strstr(out, "\nlast        a offline, "));
	ck_assert_ptr_nonnull(strstr(out, " ago (timeout)\n"));
	ck_assert_int_eq(ctl("status --json"), 0);
	ck_assert_ptr_nonnull(strstr(out, "\"blind_cause\":\"link\""));
	ck_assert_ptr_nonnull(strstr(out, "refused\\u001b[31m"));
	ck_assert_str_eq(strchr(out, '\n'), "\n");
}
END_TEST

START_TEST(list)
{
	server_beat(&s, 0, "sensor-1", NULL);
	server_beat(&s, 1, "f/a b", "{\"online\":false}");
	s.now.mono.ns += 133 * HW_NS_PER_S; /* seen 133 s ago */
	hw_monitor_heartbeat(s.monitor, s.now, 0, "s2", 2, NULL);
	ck_assert_int_eq(ctl("list --sort known"), 0);
	char *save = NULL, *line = strtok_r(out, "\n", &save);
	ck_assert_str_eq(line, "ID        STATE    SINCE  LAST-SEEN  TIMEOUT  REASON     GROUP");
	line = strtok_r(NULL, "\n", &save);
	ck_assert_ptr_nonnull(strstr(line, "sensor-1  online   "));
	ck_assert_ptr_nonnull(strstr(line, "  2m1")); /* the test itself takes time */
	ck_assert_ptr_nonnull(strstr(line, "  30s      heartbeat  default"));
	line = strtok_r(NULL, "\n", &save);
	ck_assert_ptr_nonnull(strstr(line, "f/a b     offline  "));
	ck_assert_ptr_nonnull(strstr(line, "  never      2s       will       fast"));
	ck_assert_ptr_nonnull(strtok_r(NULL, "\n", &save));
	ck_assert_ptr_null(strtok_r(NULL, "\n", &save));
}
END_TEST

START_TEST(list_filters)
{
	server_beat(&s, 0, "a&limit=1", NULL);
	server_beat(&s, 0, "b", "{\"online\":false}");
	server_beat(&s, 1, "f/a", NULL);
	ck_assert_int_eq(ctl("list --state offline --json"), 0);
	ck_assert_int_eq(strncmp(out, "{\"id\":\"b\",", 10), 0);
	ck_assert_int_eq(ctl("list --json --group=fast"), 0);
	ck_assert_int_eq(strncmp(out, "{\"id\":\"f/a\",", 12), 0);
	ck_assert_int_eq(ctl("list --json --prefix 'a&limit='"), 0);
	ck_assert_int_eq(strncmp(out, "{\"id\":\"a&limit=1\",", 18), 0);
	ck_assert_str_eq(strchr(out, '\n'), "\n");
	ck_assert_int_eq(ctl("list --group none"), 1);
	ck_assert_str_eq(err, "heartwheelctl: no such group\n");
	ck_assert_str_eq(out, "");
}
END_TEST

START_TEST(list_in_order)
{
	server_beat(&s, 0, "b", NULL);
	server_beat(&s, 0, "c", NULL);
	server_beat(&s, 0, "a", NULL);
	ck_assert_int_eq(ctl("list --names"), 0);
	ck_assert_str_eq(out, "a\nb\nc\n");
	ck_assert_int_eq(ctl("list --names --sort known"), 0);
	ck_assert_str_eq(out, "b\nc\na\n");
	ck_assert_int_eq(ctl("list --names --limit 2"), 0);
	ck_assert_str_eq(out, "a\nb\n");
	ck_assert_int_eq(ctl("list --names --search B"), 0);
	ck_assert_str_eq(out, "b\n");
	ck_assert_int_eq(ctl("list"), 0);
	ck_assert(strstr(out, "\na ") && strstr(out, "\na ") < strstr(out, "\nb "));
	ck_assert_int_eq(ctl("list --json"), 0);
	ck_assert_int_eq(strncmp(out, "{\"id\":\"b\",", 10), 0); /* the quickest order */
	ck_assert_int_eq(ctl("groups --names"), 0);
	ck_assert_str_eq(out, "default\nfast\n");
	ck_assert_int_eq(ctl("groups"), 0);
	ck_assert_str_eq(out, "GROUP        ONLINE     OFFLINE  TIMEOUT\n"
	                      "default           3           0      30s\n"
	                      "fast              0           0       2s\n");
	ck_assert_int_eq(ctl("groups --json"), 0);
	ck_assert_int_eq(strncmp(out, "{\"groups\":[{", 12), 0);
}
END_TEST

/* Over several pages too. */
START_TEST(list_up_to_a_limit)
{
	char id[32];

	for (int i = 0; i < 2500; i++) {
		snprintf(id, sizeof(id), "d%04d", i);
		server_beat(&s, 0, id, NULL);
	}
	ck_assert_int_eq(ctl("list --names --limit 2001"), 0);
	ck_assert_uint_eq(strlen(out), 2001 * 6);
	ck_assert_str_eq(out + 2000 * 6, "d2000\n");
	ck_assert_int_eq(ctl("list --names --limit 1000"), 0);
	ck_assert_uint_eq(strlen(out), 1000 * 6);
}
END_TEST

START_TEST(list_pages_through)
{
	char id[32];
	int lines = 0, headers = 0;

	for (int i = 0; i < 2500; i++) {
		snprintf(id, sizeof(id), "d%d", i);
		server_beat(&s, 0, id, NULL);
	}
	ck_assert_int_eq(ctl("list --json"), 0);
	for (char *at = out; (at = strchr(at, '\n')); at++)
		lines++;
	ck_assert_int_eq(lines, 2500);
	ck_assert_int_eq(ctl("list"), 0);
	lines = 0;
	for (char *at = out; (at = strchr(at, '\n')); at++)
		lines++;
	for (char *at = out; (at = strstr(at, "STATE")); at++)
		headers++;
	ck_assert_int_eq(lines, 2501);
	ck_assert_int_eq(headers, 1);
	ck_assert_ptr_nonnull(strstr(out, "\nd2499  "));
}
END_TEST

START_TEST(show)
{
	server_beat(&s, 0, "a/b c",
	            "{\"battery\":87,\"rssi\":-60.5,\"uptime\":93784,\"data\":{\"x\":\"\\u001b[31m\\u009b\\u202e\"},"
	            "\"timeout\":310}");
	ck_assert_int_eq(ctl("show 'a/b c'"), 0);
	ck_assert_int_eq(strncmp(out, "a/b c\n  state      online since 20", 33), 0);
	ck_assert_ptr_nonnull(
		strstr(out, "\n  timeout    5m10s\n  offline    in 5m10s, if not heard\n  wheel      level "));
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
	ck_assert_ptr_nonnull(strstr(out, "level 0  0 in 31 slots of 1/31 s, a turn is 1s\n"));
	ck_assert_ptr_nonnull(strstr(out, "level 1  3 in 31 slots of 1s, a turn is 31s; at most 3 in one\n"));
	ck_assert_ptr_nonnull(strstr(out, "level 3  0 in 31 slots of 16m1s, a turn is 8h16m\n"));
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
	ck_assert_ptr_nonnull(strstr(first, "\nlevel 1  2 in 31 slots of 1s, a turn is 31s; at most 2 in one\n"));
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
		snprintf(command, sizeof(command), "exec '%s' -s '%s' watch %s", program, s.path, args);
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

START_TEST(reload)
{
	ck_assert_int_eq(ctl("reload"), 0);
	ck_assert_str_eq(out, "nothing changed\n");
	s.reload_body = "{\"changed\":[\"monitor.log\",\"group a\"],\"restart_needed\":[\"mqtt.host\"]}";
	ck_assert_int_eq(ctl("reload"), 0);
	ck_assert_str_eq(out,
	                 "changed:\n  monitor.log\n  group a\nchanged in the file, needs a restart:\n  mqtt.host\n");
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
	ck_assert_str_eq(err,
	                 "heartwheelctl: cannot reach heartwheeld at /nowhere/sock: No such file or directory; is it "
	                 "running?\n");
	ck_assert_int_eq(ctl("-s /nowhere/sock version"), 1);
	ck_assert_int_eq(strncmp(out, "heartwheelctl ", 14), 0);
}
END_TEST

START_TEST(output_that_fails)
{
	ck_assert_int_eq(ctl("status >/dev/full"), 1);
	ck_assert_str_eq(err, "heartwheelctl: cannot write: No space left on device\n");
}
END_TEST

/* --- on a terminal */

START_TEST(table_fits_the_terminal)
{
	static const int widths[] = {70, 80, 100};
	char id[256];

	memset(id, 'x', 255);
	id[255] = '\0';
	server_beat(&s, 0, id, NULL);
	server_beat(&s, 0, "k\xc3\xbchlschrank", NULL);
	for (size_t i = 0; i < 3; i++) {
		ck_assert_int_eq(ctl_on_terminal("list", widths[i], "C.UTF-8"), 0);
		ck_assert_ptr_nonnull(strstr(out, "x\u2026  \x1b[32monline\x1b[0m "));
		ck_assert_ptr_nonnull(strstr(out, "k\xc3\xbchl"));
		for (char *save = NULL, *line = strtok_r(out, "\r\n", &save); line;
		     line = strtok_r(NULL, "\r\n", &save)) {
			size_t columns = 0;
			for (char *c = line; *c; c++)
				if (*c == '\x1b')
					c = strchr(c, 'm');
				else
					columns += (*c & 0xc0) != 0x80;
			ck_assert_uint_le(columns, (size_t)widths[i]);
		}
	}
	/* Not a terminal: nothing is cut. */
	ck_assert_int_eq(ctl("list"), 0);
	ck_assert_ptr_nonnull(strstr(out, id));
}
END_TEST

START_TEST(picture_in_colour)
{
	static const int widths[] = {40, 80, 120, 200};

	server_beat(&s, 0, "a", NULL);
	server_beat(&s, 0, "b", "{\"online\":false}");
	for (size_t i = 0; i < 4; i++) {
		ck_assert_int_eq(ctl_on_terminal("wheel", widths[i], "C.UTF-8"), 0);
		for (char *save = NULL, *line = strtok_r(out, "\r\n", &save); line;
		     line = strtok_r(NULL, "\r\n", &save)) {
			size_t columns = 0;
			if (line[0] != ' ')
				continue; /* only what is drawn */
			for (char *c = line; *c; c++) {
				if (*c == '\x1b')
					c = strchr(c, 'm');
				else
					columns += (*c & 0xc0) != 0x80;
			}
			ck_assert_uint_le(columns, (size_t)widths[i]);
			ck_assert_uint_ge(columns, 33);
		}
	}
	ck_assert_int_eq(ctl_on_terminal("status", 80, "C.UTF-8"), 0);
	ck_assert_ptr_nonnull(strstr(out, "\x1b[31m1 offline\x1b[0m"));
	ck_assert_ptr_nonnull(strstr(out, "\u2588"));
	setenv("NO_COLOR", "1", 1);
	ck_assert_int_eq(ctl_on_terminal("status", 80, "C.UTF-8"), 0);
	unsetenv("NO_COLOR");
	ck_assert_ptr_null(strchr(out, '\x1b'));
	ck_assert_int_eq(ctl_on_terminal("wheel", 80, "C"), 0);
	for (const char *c = out; *c; c++)
		ck_assert(!(*c & 0x80));
}
END_TEST

START_TEST(terminal_without_utf8)
{
	server_beat(&s, 0, "k\xc3\xbchl", NULL);
	ck_assert_int_eq(ctl_on_terminal("list", 80, "C"), 0);
	ck_assert_ptr_nonnull(strstr(out, "k\\u00fchl  \x1b[32monline\x1b[0m "));
	for (const char *c = out; *c; c++)
		ck_assert(!(*c & 0x80));
}
END_TEST

static bool find_program(void)
{
	const char *named = getenv("HW_CTL"), *build = getenv("HW_BUILDDIR");

	snprintf(program, sizeof(program), "%s%s", named ? named : build ? build : ".", named ? "" : "/heartwheelctl");
	return access(program, X_OK) == 0;
}

int main(void)
{
	Suite *suite = suite_create("ctl");
	TCase *tc = tcase_create("ctl");

	if (!find_program()) {
		fprintf(stderr, "%s is not there\n", program);
		return 77;
	}
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, status);
	tcase_add_test(tc, list);
	tcase_add_test(tc, list_filters);
	tcase_add_test(tc, list_in_order);
	tcase_add_test(tc, list_up_to_a_limit);
	tcase_add_test(tc, list_pages_through);
	tcase_add_test(tc, show);
	tcase_add_test(tc, show_lately);
	tcase_add_test(tc, wheel);
	tcase_add_test(tc, wheel_of_keys);
	tcase_add_test(tc, watch_tells);
	tcase_add_test(tc, picture_in_colour);
	tcase_add_test(tc, odd_ids_are_encoded);
	tcase_add_test(tc, forget);
	tcase_add_test(tc, reload);
	tcase_add_test(tc, version);
	tcase_add_test(tc, usage);
	tcase_add_test(tc, no_daemon);
	tcase_add_test(tc, output_that_fails);
	tcase_add_test(tc, table_fits_the_terminal);
	tcase_add_test(tc, terminal_without_utf8);
	suite_add_tcase(suite, tc);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

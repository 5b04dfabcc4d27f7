/* SPDX-License-Identifier: MIT */
/*
 * heartwheelctl as a user runs it: the built program ($HW_CTL, or heartwheelctl in $HW_BUILDDIR) against a real control
 * socket served by this process.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
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

START_TEST(status)
{
	server_beat(&s, 0, "a", NULL);
	s.status.mqtt = "refused\x1b[31m";
	ck_assert_int_eq(ctl("status"), 0);
	ck_assert_str_eq(out, "node        node \"1\", version 1.2.3, up 1h18m\n"
	                      "devices     1: 1 online, 0 offline\n"
	                      "heartbeats  1\n"
	                      "mqtt        refused\\x1b[31m\n"
	                      "redis       off\n"
	                      "owed        0\n"
	                      "blind       no\n");
	hw_monitor_link(s.monitor, s.now, 0, false);
	s.status.loading = true;
	ck_assert_int_eq(ctl("status"), 0);
	ck_assert_ptr_nonnull(strstr(out, "\nblind       yes, cause: link"));
	ck_assert_ptr_nonnull(strstr(out, "\nloading     yes"));
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
	ck_assert_int_eq(ctl("list"), 0);
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
	                                    "version -x"};
	static const char *const help[] = {"-h",          "--help",        "status --help", "list -h",
	                                   "show --help", "forget --help", "reload -h",     "version --help"};

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
		ck_assert_ptr_nonnull(strstr(out, "x\u2026  online "));
		ck_assert_ptr_nonnull(strstr(out, "k\xc3\xbchl"));
		for (char *save = NULL, *line = strtok_r(out, "\r\n", &save); line;
		     line = strtok_r(NULL, "\r\n", &save)) {
			size_t columns = 0;
			for (char *c = line; *c; c++)
				columns += (*c & 0xc0) != 0x80;
			ck_assert_uint_le(columns, (size_t)widths[i]);
		}
	}
	/* Not a terminal: nothing is cut. */
	ck_assert_int_eq(ctl("list"), 0);
	ck_assert_ptr_nonnull(strstr(out, id));
}
END_TEST

START_TEST(terminal_without_utf8)
{
	server_beat(&s, 0, "k\xc3\xbchl", NULL);
	ck_assert_int_eq(ctl_on_terminal("list", 80, "C"), 0);
	ck_assert_ptr_nonnull(strstr(out, "k\\u00fchl  online "));
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
	tcase_add_test(tc, list_pages_through);
	tcase_add_test(tc, show);
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

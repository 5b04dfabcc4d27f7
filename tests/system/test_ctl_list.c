/* SPDX-License-Identifier: MIT */
/* heartwheelctl list: filters, order, limits and pages; and its tables and pictures on a terminal. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_rig.h"

START_TEST(list)
{
	server_beat(&s, 0, "sensor-1", NULL);
	server_beat(&s, 1, "f/a b", "{\"online\":false}");
	s.now.mono.ns += 133 * HW_NS_PER_S; /* seen 133 s ago */
	hw_monitor_heartbeat(s.monitor, s.now, 0, "s2", 2, NULL);
	ck_assert_int_eq(ctl("list --sort known"), 0);
	char *save = NULL, *line = strtok_r(out, "\n", &save);
	ck_assert_int_eq(strncmp(line, "ID        STATE    SINCE  ", 26), 0); /* "now", or "1s ago" */
	ck_assert_ptr_nonnull(strstr(line, "  LAST-SEEN  TIMEOUT  REASON     GROUP"));
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
	ck_assert_str_eq(err, "heartwheelctl: no such group: 'none'; 'heartwheelctl groups' lists all groups\n");
	ck_assert_str_eq(out, "");
	ck_assert_int_eq(ctl("list --names --group defualt"), 1);
	ck_assert_str_eq(err, "heartwheelctl: no such group: 'defualt'; did you mean 'default'?\n");
	ck_assert_int_eq(ctl("watch --group fas"), 1);
	ck_assert_str_eq(err, "heartwheelctl: no such group: 'fas'; did you mean 'fast'?\n");
}
END_TEST

/* Words stand beside what a program may read. */
START_TEST(list_of_nobody)
{
	ck_assert_int_eq(ctl("list"), 0);
	ck_assert_str_eq(out, "");
	ck_assert_str_eq(err, "no device is known yet: no heartbeat has arrived on the groups' topics\n");
	ck_assert_int_eq(ctl("list --state offline --names"), 0);
	ck_assert_str_eq(out, "");
	ck_assert_str_eq(err, "no device is offline\n");
	ck_assert_int_eq(ctl("list --group fast --prefix x"), 0);
	ck_assert_str_eq(err, "no device matches\n");
	ck_assert_int_eq(ctl("list --json"), 0);
	ck_assert_str_eq(out, "");
	ck_assert_str_eq(err, "");
}
END_TEST

/* forget reads what --names writes, whatever the ids are; and how a terminal shows them. */
START_TEST(names_are_what_forget_reads)
{
	static const char *const ids[] = {"a\342\200\256b", "a\\u202eb", "-", " c ", "k\xc3\xbchl"};
	char command[8192];
	for (size_t i = 0; i < 5; i++)
		server_beat(&s, 0, ids[i], NULL);
	server_beat(&s, 1, "stays", NULL);
	ck_assert_int_eq(ctl("list --names --group default"), 0);
	ck_assert_ptr_nonnull(strstr(out, "a\xe2\x80\xae"
	                                  "b\n"));
	ck_assert_int_eq(ctl_on_terminal("list --names --group default", 80, "C.UTF-8"), 0);
	ck_assert_ptr_nonnull(strstr(out, "a\\u202eb\r\na\\u202eb\r\n"));
	snprintf(command, sizeof(command), "list --names --group default | '%s' -s '%s' forget -", ctl_program, s.path);
	ck_assert_int_eq(ctl(command), 0);
	ck_assert_int_eq(ctl("list --names"), 0);
	ck_assert_str_eq(out, "stays\n");
	/* An id that does not exist does not keep others from being forgotten. */
	server_beat(&s, 0, ids[0], NULL);
	ck_assert_int_eq(ctl("forget 'a\\u202eb' nobody stays"), 1);
	ck_assert_str_eq(err, "heartwheelctl: nobody: no such device\n");
	ck_assert_int_eq(ctl("list --names"), 0);
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

/* --- nodes */

START_TEST(nodes_alone)
{
	ck_assert_int_eq(ctl("nodes"), 0);
	ck_assert_str_eq(out, "this monitor is the only node ([cluster] mode = off)\n");
	ck_assert_int_eq(ctl("nodes --json"), 0);
	ck_assert_int_eq(strncmp(out, "{\"mode\":\"off\",\"nodes\":[],", 25), 0);
}
END_TEST

START_TEST(nodes_of_several)
{
	server_stop(&s);
	server_start_with_nodes(&s);
	ck_assert_int_eq(ctl("nodes"), 0);
	ck_assert_str_eq(out, "NODE      STATE        SINCE      OWNS        DEVICES  PENDING  VERSION\n"
	                      "a (this)  ready        1m ago     131 (51 %)  -        -        1.2.3\n"
	                      "b         blind: link  1h ago     125 (49 %)  3        0        1.2.4\n"
	                      "c         lost         2m13s ago  -           -        -        -\n"
	                      "node c was lost 2m13s ago; the other nodes watch its devices\n"
	                      "node b differs from this one: version, config\n");
	s.nodes.at[2].owns = 7;
	s.nodes.at[2].node = "c\x1b[31m";
	s.nodes.unowned = 9;
	s.nodes.lapsed = true;
	s.nodes.as_of_ms = s.now.wall_ms - 133000;
	ck_assert_int_eq(ctl("nodes"), 0);
	ck_assert_ptr_nonnull(
		strstr(out, "\nnode c\\x1b[31m was lost 2m13s ago, and 7 of its partitions have no new owner yet\n"));
	ck_assert_ptr_nonnull(strstr(out, "\n9 of 256 partitions have no owner\n"));
	ck_assert_ptr_nonnull(strstr(out, "\nthis node last reached Redis 2m13s ago: "));
	s.nodes.member = false;
	ck_assert_int_eq(ctl("nodes"), 0);
	ck_assert_ptr_nonnull(strstr(out, "\nthis node is not a member of 'heartwheel'\n"));
	ck_assert_int_eq(ctl("nodes --json"), 0);
	ck_assert_int_eq(strncmp(out, "{\"mode\":\"mirror\",", 17), 0);
	ck_assert_str_eq(strchr(out, '\n'), "\n");
}
END_TEST

/* The columns that a line takes on the screen: without colours, each character once. */
static size_t columns_of(const char *line)
{
	size_t columns = 0;
	for (const char *c = line; *c; c++)
		if (*c == '\x1b')
			c = strchr(c, 'm');
		else
			columns += (*c & 0xc0) != 0x80;
	return columns;
}

/* On a narrow terminal: the node, its state and what it owns. */
START_TEST(nodes_on_a_narrow_terminal)
{
	static const int widths[] = {30, 40, 64, 90};
	static const char *const there[] = {"OWNS", "OWNS", "PENDING", "VERSION"}, *const gone[] = {"SINCE", "SINCE",
	                                                                                            "VERSION", "none"};
	server_stop(&s);
	server_start_with_nodes(&s);
	s.nodes.at[1].node = "a-node-with-a-long-name";
	for (size_t i = 0; i < 4; i++) {
		ck_assert_int_eq(ctl_on_terminal("nodes", widths[i], "C.UTF-8"), 0);
		ck_assert_msg(strstr(out, there[i]) && !strstr(out, gone[i]), "%d columns: %s", widths[i], out);
		int rows = 0;
		for (char *save = NULL, *line = strtok_r(out, "\r\n", &save); line && rows < 4;
		     line = strtok_r(NULL, "\r\n", &save), rows++) {
			size_t columns = columns_of(line);
			ck_assert_msg(columns <= (size_t)widths[i], "%d columns: %s", widths[i], line);
		}
		ck_assert_int_eq(rows, 4);
	}
	ck_assert_int_eq(ctl("nodes"), 0); /* not a terminal: nothing is cut */
	ck_assert_ptr_nonnull(strstr(out, "a-node-with-a-long-name"));
	ck_assert_ptr_nonnull(strstr(out, "VERSION"));
}
END_TEST

START_TEST(several_in_status_and_show)
{
	server_stop(&s);
	server_start_with_nodes(&s);
	server_see(&s);
	server_beat(&s, 0, "d", NULL);
	ck_assert_int_eq(ctl("status"), 0);
	ck_assert_ptr_nonnull(strstr(out, "\nnodes       1 ready of 2; this node owns 131 of 256; 1 lost\n"));
	s.nodes.lapsed = true;
	ck_assert_int_eq(ctl("status"), 0);
	ck_assert_ptr_nonnull(
		strstr(out, "\nnodes       Redis is out of reach, so as last known: 1 ready of 2; this node "));
	s.nodes.lapsed = false;
	ck_assert_int_eq(ctl("show d"), 0);
	ck_assert_ptr_nonnull(strstr(out, "\n  owner      a\n"));
	s.owner = "";
	ck_assert_int_eq(ctl("show d"), 0);
	ck_assert_ptr_nonnull(strstr(out, "\n  owner      none\n"));
	ck_assert_int_eq(ctl("forget d"), 1);
	ck_assert_str_eq(err, "heartwheelctl: d: no node owns this device now: try again\n");
	s.owner = "b";
	ck_assert_int_eq(ctl("forget d"), 1);
	ck_assert_str_eq(err, "heartwheelctl: d: node 'b' owns this device and does not answer\n");
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

/* --- on a terminal */

START_TEST(table_fits_the_terminal)
{
	static const int widths[] = {30, 46, 74, 90, 100};
	static const char *const there[] = {"STATE", "SINCE", "LAST-SEEN", "TIMEOUT", "TIMEOUT"},
				 *const gone[] = {"SINCE", "REASON", "TIMEOUT", "none", "none"};
	char id[256];
	memset(id, 'x', 255);
	strcpy(id + 248, "-end-12");
	server_beat(&s, 0, id, NULL);
	server_beat(&s, 0, "k\xc3\xbchlschrank", NULL);
	for (size_t i = 0; i < 5; i++) {
		ck_assert_int_eq(ctl_on_terminal("list", widths[i], "C.UTF-8"), 0);
		ck_assert_ptr_nonnull(strstr(out, "x\u2026xx"));
		ck_assert_ptr_nonnull(strstr(out, "-end-12  \x1b[32monline\x1b[0m"));
		ck_assert_ptr_nonnull(strstr(out, "k\xc3\xbchl"));
		ck_assert_msg(strstr(out, there[i]) && !strstr(out, gone[i]), "%d columns: %s", widths[i], out);
		for (char *save = NULL, *line = strtok_r(out, "\r\n", &save); line;
		     line = strtok_r(NULL, "\r\n", &save)) {
			size_t columns = columns_of(line);
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
			if (line[0] != ' ')
				continue; /* only what is drawn */
			size_t columns = columns_of(line);
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
	hw_monitor_link(s.monitor, s.now, 0, false);
	ck_assert_int_eq(ctl_on_terminal("status", 80, "C.UTF-8"), 0);
	ck_assert_ptr_nonnull(strstr(out, "no device is judged")); /* what is from before is no alarm */
	ck_assert_ptr_nonnull(strstr(out, "\x1b[2m1 online\x1b[0m, \x1b[2m1 offline\x1b[0m"));
	ck_assert_ptr_null(strstr(out, "\x1b[32m\u2588"));
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

/* Text for a reader follows the locale; output for programs does not. */
START_TEST(pipe_without_utf8)
{
	static const char *const people[] = {"list", "show k\xc3\xbchl", "status", "wheel", "check"};
	server_see(&s);
	server_beat(&s, 0, "k\xc3\xbchl", "{\"version\":\"\xc3\xa9\"}");
	server_beat(&s, 0, "\xc3\xa4", "{\"online\":false}");
	for (size_t i = 0; i < sizeof(people) / sizeof(people[0]); i++) {
		int rc = ctl_in("C", people[i]);
		ck_assert_msg(rc == 0 || rc == 1, "%s: %d %s", people[i], rc, err);
		for (const char *c = out; *c; c++)
			ck_assert_msg(!(*c & 0x80), "%s: %s", people[i], out);
	}
	ck_assert_int_eq(ctl_in("C", "list --names --state online"), 0);
	ck_assert_str_eq(out, "k\xc3\xbchl\n");
	ck_assert_int_eq(ctl_in("C", "list --json --state online"), 0);
	ck_assert_ptr_nonnull(strstr(out, "\"id\":\"k\xc3\xbchl\""));
	ck_assert_int_eq(ctl("show k\xc3\xbchl"), 0);
	ck_assert_ptr_nonnull(strstr(out, "k\xc3\xbchl\n"));
	ck_assert_ptr_nonnull(strstr(out, "\u25cf"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ctl_list");
	TCase *tc = tcase_create("ctl");
	tcase_add_checked_fixture(tc, rig_set_up, rig_tear_down);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, list);
	tcase_add_test(tc, list_filters);
	tcase_add_test(tc, list_of_nobody);
	tcase_add_test(tc, names_are_what_forget_reads);
	tcase_add_test(tc, list_in_order);
	tcase_add_test(tc, nodes_alone);
	tcase_add_test(tc, nodes_of_several);
	tcase_add_test(tc, nodes_on_a_narrow_terminal);
	tcase_add_test(tc, several_in_status_and_show);
	tcase_add_test(tc, list_up_to_a_limit);
	tcase_add_test(tc, list_pages_through);
	tcase_add_test(tc, picture_in_colour);
	tcase_add_test(tc, table_fits_the_terminal);
	tcase_add_test(tc, terminal_without_utf8);
	tcase_add_test(tc, pipe_without_utf8);
	suite_add_tcase(suite, tc);
	return ctl_run(suite);
}

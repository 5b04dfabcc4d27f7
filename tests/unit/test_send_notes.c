/* SPDX-License-Identifier: MIT */
/* Formats, and a message in the form of a template: no name of a device leaves its place in a header, in JSON or in a
 * mail. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../suite.h"
#include "alert/send/note.h"
#include "alert/send/words.h"
#include "heartwheel/topic.h"

#define NOW_MS INT64_C(1700000000000)

static struct hw_fields f;

/* The fields of a message about this device. */
static void set_device(const char *id, bool bad)
{
	char summary[8 * HW_ID_MAX];
	hw_fields_fini(&f);
	f.bad = bad;
	for (int k = 0; k < HW_NOTIFY_FIELDS; k++)
		f.of[k] = strdup("");
	free(f.of[HW_NOTIFY_DEVICE]);
	f.of[HW_NOTIFY_DEVICE] = hw_words_shown(id);
	snprintf(summary, sizeof(summary), "device %s of group water is offline", f.of[HW_NOTIFY_DEVICE]);
	free(f.of[HW_NOTIFY_SUMMARY]);
	f.of[HW_NOTIFY_SUMMARY] = strdup(summary);
	free(f.of[HW_NOTIFY_GROUP]);
	f.of[HW_NOTIFY_GROUP] = strdup("water");
	free(f.of[HW_NOTIFY_STATUS]);
	f.of[HW_NOTIFY_STATUS] = strdup("opened");
	ck_assert_int_eq(hw_fields_are_whole(&f), 0);
}

static void set_up(void)
{
	setenv("TZ", "UTC", 1);
	tzset();
}

static void tear_down(void)
{
	hw_fields_fini(&f);
}

/* --- formats */

static void into(void *arg, const char *text, size_t len)
{
	strncat(arg, text, len);
}

START_TEST(formats_are_filled)
{
	static const struct {
		const char *format, *text;
	} cases[] = {
		{"", ""},
		{"plain", "plain"},
		{"{device} is {status}", "D is T"},
		{"{{{device}}}", "{D}"},
		{"{{device}}", "{device}"},
		{"a\\nb\\\\n", "a\nb\\n"},
		{"{summary}{list}{now}{node}{time}{count}{device}{group}{status}{silent}", "SLNOICDGTX"},
	};
	static const char *const values[] = {"S", "L", "N", "O", "I", "C", "D", "G", "T", "X"};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char out[100] = "", name[16];
		ck_assert_int_eq(hw_notify_judge(cases[i].format, name, sizeof(name)), HW_NOTIFY_GOOD);
		hw_notify_fill(cases[i].format, values, into, out);
		ck_assert_str_eq(out, cases[i].text);
	}
}
END_TEST

START_TEST(formats_are_judged)
{
	static const struct {
		const char *format;
		enum hw_notify_fault fault;
		const char *name;
	} cases[] = {
		{"{devcie}", HW_NOTIFY_UNKNOWN, "devcie"},
		{"{}", HW_NOTIFY_UNKNOWN, ""},
		{"{Device}", HW_NOTIFY_UNKNOWN, "Device"},
		{"{a name far too long for it}", HW_NOTIFY_UNKNOWN, "a name far too "},
		{"{device", HW_NOTIFY_BRACE, ""},
		{"{", HW_NOTIFY_BRACE, ""},
		{"}", HW_NOTIFY_BRACE, ""},
		{"a} b", HW_NOTIFY_BRACE, ""},
		{"{{}", HW_NOTIFY_BRACE, ""},
		{"{a{b}", HW_NOTIFY_BRACE, ""},
		{"\\", HW_NOTIFY_ESCAPE, ""},
		{"\\t", HW_NOTIFY_ESCAPE, ""},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char name[16];
		ck_assert_msg(hw_notify_judge(cases[i].format, name, sizeof(name)) == cases[i].fault, "%s",
		              cases[i].format);
		ck_assert_str_eq(name, cases[i].name);
	}
}
END_TEST

/* --- lists */

START_TEST(a_list_is_short)
{
	struct hw_lines l;
	char line[32];
	int lines = 1;
	ck_assert_int_eq(hw_lines_init(&l), 0);
	for (int k = 0; k < 2000; k++) {
		snprintf(line, sizeof(line), "d%d is offline", k);
		hw_lines_add(&l, line);
	}
	char *list = hw_lines_take(&l);
	for (const char *at = list; (at = strchr(at, '\n')); at++)
		lines++;
	ck_assert_int_eq(lines, HW_LINES_MAX + 1);
	ck_assert_ptr_nonnull(strstr(list, "d19 is offline"));
	ck_assert_str_eq(strrchr(list, '\n'), "\n... and 1,980 more");
	free(list);
	hw_lines_fini(&l);
}
END_TEST

/* A server may refuse a long message as a whole. The end is left out: no short line follows a long one that was. */
START_TEST(a_list_of_long_names_is_shorter)
{
	char name[131], more[32];
	struct hw_lines l;
	ck_assert_int_eq(hw_lines_init(&l), 0);
	memset(name, 'x', 130);
	name[130] = '\0';
	for (int k = 0; k < 15; k++)
		hw_lines_add(&l, name);
	hw_lines_add(&l, "short");
	char *list = hw_lines_take(&l);
	const char *end = strrchr(list, '\n');
	ck_assert_uint_eq((size_t)(end + 1 - list), HW_LINES_BYTES / 131 * 131);
	snprintf(more, sizeof(more), "\n... and %d more", 16 - HW_LINES_BYTES / 131);
	ck_assert_str_eq(end, more);
	free(list);
	/* The next list is empty at first. */
	hw_lines_add(&l, "short");
	list = hw_lines_take(&l);
	ck_assert_str_eq(list, "short");
	free(list);
	hw_lines_fini(&l);
}
END_TEST

START_TEST(numbers_and_times_are_readable)
{
	char buf[48];
	ck_assert_str_eq(hw_words_number(2000000, buf), "2,000,000");
	ck_assert_str_eq(hw_words_number(999, buf), "999");
	ck_assert_str_eq(hw_words_span(0, buf), "0 s");
	ck_assert_str_eq(hw_words_span(7250, buf), "7.2 s");
	ck_assert_str_eq(hw_words_span(61000, buf), "1 min 1 s");
	ck_assert_str_eq(hw_words_span(INT64_C(90000000), buf), "1 d 1 h");
	char *text = hw_words_time(NOW_MS);
	ck_assert_str_eq(text, "2023-11-14 22:13:20 +0000");
	free(text);
}
END_TEST

/* --- templates */

static struct hw_note *note_as(enum hw_notify_template as, const char *title, const char *text)
{
	struct hw_style style = {as,  title, text, "=?UTF-8?B?V8OkY2h0ZXI=?= <hub@example.org>", "ops@example.org",
	                         "id"};
	struct hw_note *note = hw_note_new(&style, &f, NULL, NOW_MS);
	ck_assert_ptr_nonnull(note);
	return note;
}

/* Marks of every format are in this name. What cannot be seen is escaped before it comes to any template. */
#define HOSTILE "a\"b\\<c>&\u202ed\u00e4=?UTF-8?Q?x?="

START_TEST(names_stay_in_their_place)
{
	set_device(HOSTILE, true);
	ck_assert_str_eq(f.of[HW_NOTIFY_DEVICE], "a\"b\\<c>&\\u202ed\u00e4=?UTF-8?Q?x?=");
	struct hw_note *note = note_as(HW_NOTIFY_SLACK, "{device}", "x");
	ck_assert_str_eq(note->text, "{\"text\":\"a\\\"b\\\\&lt;c&gt;&amp;\\\\u202ed\u00e4=?UTF-8?Q?x?=\\nx\"}");
	ck_assert_str_eq(note->type, "application/json");
	hw_note_free(note);
	note = note_as(HW_NOTIFY_TEXT, "{device}", "{group}");
	ck_assert_str_eq(note->text, "a\"b\\<c>&\\u202ed\u00e4=?UTF-8?Q?x?=\n\nwater\n");
	hw_note_free(note);
	/* A device of that name does not notify everyone. */
	set_device("@everyone", true);
	note = note_as(HW_NOTIFY_SLACK, "{device}", "{status} {device}");
	ck_assert_str_eq(note->text, "{\"text\":\"@\u200beveryone\\nopened @\u200beveryone\"}");
	hw_note_free(note);
}
END_TEST

START_TEST(a_title_is_one_header)
{
	set_device("a", true);
	/* A line end in a title is the operator's own, and yet it ends no header. */
	struct hw_note *note = note_as(HW_NOTIFY_NTFY, "{device}\\nX-Evil: 1", "{status}");
	ck_assert_str_eq(note->headers, "Title: a X-Evil: 1\nPriority: high\nTags: warning\n");
	ck_assert_str_eq(note->text, "opened");
	hw_note_free(note);
	set_device("a", false);
	note = note_as(HW_NOTIFY_NTFY, "h\u00e4 {device}", "");
	ck_assert_str_eq(note->headers, "Title: =?UTF-8?B?aMOkIGE=?=\nPriority: default\nTags: white_check_mark\n");
	ck_assert_str_eq(note->text, "h\u00e4 a");
	hw_note_free(note);
}
END_TEST

/* The headers end where they should, and no line is too long for a mail server. */
static void expect_mail(const char *text)
{
	const char *end = strstr(text, "\r\n\r\n");
	ck_assert_ptr_nonnull(end);
	for (const char *at = text; *at;) {
		size_t len = strcspn(at, "\r\n");
		ck_assert_msg(len <= 78 || at < end, "%.*s", (int)len, at);
		ck_assert_uint_le(len, 998);
		ck_assert_msg(at[len] == '\r' && at[len + 1] == '\n', "%.*s", (int)len, at);
		at += len + 2;
	}
	for (const char *at = text; *at; at++)
		ck_assert_msg((*at >= ' ' && *at <= '~') || *at == '\r' || *at == '\n', "%02x", (unsigned char)*at);
}

START_TEST(a_mail_is_whole)
{
	set_device("a", true);
	struct hw_note *note = note_as(HW_NOTIFY_MAIL, "{device}\\n\\nBcc: x@y", "=. {device} \\n.\\n{device}\u00e4");
	expect_mail(note->text);
	ck_assert_ptr_eq(strstr(note->text,
	                        "From: =?UTF-8?B?V8OkY2h0ZXI=?= <hub@example.org>\r\nTo: ops@example.org\r\n"
	                        "Subject: a  Bcc: x@y\r\nDate: Tue, 14 Nov 2023 22:13:20 +0000\r\n"
	                        "Message-ID: <id@example.org>\r\nAuto-Submitted: auto-generated\r\n"),
	                 note->text);
	ck_assert_str_eq(strstr(note->text, "\r\n\r\n"), "\r\n\r\n=3D. a=20\r\n.\r\na=C3=A4\r\n");
	hw_note_free(note);
}
END_TEST

START_TEST(long_subjects_are_folded)
{
	char id[HW_ID_MAX + 1] = "";
	while (strlen(id) + 3 <= HW_ID_MAX)
		strcat(id, "\u20ac");
	set_device(id, true);
	struct hw_note *note = note_as(HW_NOTIFY_MAIL, "{summary} {summary} {summary}", "{list}");
	expect_mail(note->text);
	const char *subject = strstr(note->text, "Subject: ");
	for (const char *at = subject; strncmp(at, "Date: ", 6) != 0; at = strstr(at, "\r\n") + 2)
		ck_assert_uint_le(strcspn(at, "\r"), 76);
	hw_note_free(note);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("send_notes");
	TCase *t = tcase_create("all");
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, formats_are_filled);
	tcase_add_test(t, formats_are_judged);
	tcase_add_test(t, a_list_is_short);
	tcase_add_test(t, a_list_of_long_names_is_shorter);
	tcase_add_test(t, numbers_and_times_are_readable);
	tcase_add_test(t, names_stay_in_their_place);
	tcase_add_test(t, a_title_is_one_header);
	tcase_add_test(t, a_mail_is_whole);
	tcase_add_test(t, long_subjects_are_folded);
	suite_add_tcase(s, t);
	return suite_run(s);
}

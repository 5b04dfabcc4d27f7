/* SPDX-License-Identifier: MIT */
/* What notifications say: formats, the sentence for what happened, and that nothing a device is called leaves its place
 * in a header, in JSON or in a mail. */
#include <check.h>
#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../suite.h"
#include "heartwheel/monitor.h"
#include "notify/digest.h"
#include "notify/note.h"
#include "notify/template.h"

static const char *const filters[] = {"a/{id}"}, *const others[] = {"b/{id}"};
static struct hw_monitor *m;
static struct hw_digest d;
static struct hw_fields f;
static int64_t wall_ms;

static void set_up(void)
{
	static const uint8_t key[16];
	struct hw_monitor_conf conf = {.max_devices = 10000, .readers = 1, .ttl_factor = 3, .barrier_timeout_ms = 5000};
	struct hw_group_spec groups[] = {{.name = "water", .heartbeat = filters, .n_heartbeat = 1, .timeout_ms = 30000},
	                                 {.name = "air", .heartbeat = others, .n_heartbeat = 1, .timeout_ms = 30000}};
	setenv("TZ", "UTC", 1);
	tzset();
	m = hw_monitor_new(&conf, groups, 2, key, (struct hw_now){.mono = {HW_NS_PER_S}});
	ck_assert_ptr_nonnull(m);
	ck_assert_int_eq(hw_digest_init(&d, m), 0);
	f = (struct hw_fields){.bad = false};
	wall_ms = INT64_C(1700000000000);
}

static void tear_down(void)
{
	hw_fields_fini(&f);
	hw_digest_fini(&d);
	hw_monitor_free(m);
}

/* The device has come to that state, after that silence. */
static void happens(const char *id, uint16_t group, enum hw_state state, enum hw_reason reason, int64_t silent_ms)
{
	struct hw_registry *r = hw_monitor_registry(m);
	uint32_t index = hw_registry_find(r, id, strlen(id));
	if (index == HW_NIL)
		ck_assert_int_eq(hw_registry_add(r, id, strlen(id), &index), 0);
	struct hw_device *device = hw_registry_at(r, index);
	device->group = group & 0xfffu;
	struct hw_transition t = {.device = {index, 0},
	                          .state = state,
	                          .reason = reason,
	                          .time_ms = wall_ms,
	                          .last_seen_ms = wall_ms - silent_ms};
	hw_digest_transition(&d, (struct hw_now){.wall_ms = wall_ms}, device, &t);
}

static void goes_offline(const char *id)
{
	happens(id, 0, HW_STATE_OFFLINE, HW_REASON_TIMEOUT, 30000);
}

static void comes_back(const char *id)
{
	happens(id, 0, HW_STATE_ONLINE, HW_REASON_HEARTBEAT, 1);
}

static void turns_blind(bool begun, enum hw_cause cause, int64_t length_ms)
{
	struct hw_out out = {.kind = HW_OUT_BLIND,
	                     .blind = {.begun = begun, .cause = cause, .length_ns = length_ms * HW_NS_PER_MS}};
	hw_digest_blind(&d, (struct hw_now){.wall_ms = wall_ms}, &out);
}

static const char *sealed(enum hw_notify_field field)
{
	hw_fields_fini(&f);
	ck_assert_int_eq(hw_digest_seal(&d, "hub", wall_ms, &f), 0);
	return f.of[field];
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

/* --- the sentence */

START_TEST(one_device_is_named)
{
	goes_offline("pump-7");
	ck_assert_str_eq(sealed(HW_NOTIFY_SUMMARY), "pump-7 of water is offline: silent for 30 s");
	ck_assert(f.bad);
	ck_assert_str_eq(f.of[HW_NOTIFY_LIST], "22:13:20 pump-7 of water is offline: silent for 30 s");
	ck_assert_str_eq(f.of[HW_NOTIFY_DEVICE], "pump-7");
	ck_assert_str_eq(f.of[HW_NOTIFY_GROUP], "water");
	ck_assert_str_eq(f.of[HW_NOTIFY_STATUS], "offline");
	ck_assert_str_eq(f.of[HW_NOTIFY_COUNT], "1");
	ck_assert_str_eq(f.of[HW_NOTIFY_SILENT], "30 s");
	ck_assert_str_eq(f.of[HW_NOTIFY_NODE], "hub");
	ck_assert_str_eq(f.of[HW_NOTIFY_TIME], "2023-11-14 22:13:20 +0000");
	ck_assert_int_eq(strncmp(f.of[HW_NOTIFY_NOW], "Now 0 online, 0 offline; monitor cannot hear devices", 51), 0);
	/* What comes next begins anew. */
	comes_back("pump-7");
	ck_assert_str_eq(sealed(HW_NOTIFY_SUMMARY), "pump-7 of water is online");
	ck_assert(!f.bad);
	ck_assert_str_eq(f.of[HW_NOTIFY_SILENT], "0 s");
	happens("v", 1, HW_STATE_OFFLINE, HW_REASON_WILL, 5);
	ck_assert_str_eq(sealed(HW_NOTIFY_SUMMARY), "v of air is offline: said goodbye");
	happens("v", 1, HW_STATE_OFFLINE, HW_REASON_KEYSPACE, 5);
	ck_assert_str_eq(sealed(HW_NOTIFY_SUMMARY), "v of air is offline: its key expired");
	happens("v", 1, HW_STATE_FORGOTTEN, HW_REASON_OPERATOR, 5);
	ck_assert_str_eq(sealed(HW_NOTIFY_SUMMARY), "v of air is forgotten: an operator forgot it");
	happens("n", 1, HW_STATE_OFFLINE, HW_REASON_TIMEOUT, wall_ms);
	ck_assert_str_eq(sealed(HW_NOTIFY_SUMMARY), "n of air is offline");
}
END_TEST

START_TEST(a_mass_death_is_one_sentence)
{
	char id[16];
	for (int k = 0; k < 2000; k++) {
		snprintf(id, sizeof(id), "d%d", k);
		goes_offline(id);
		wall_ms += k % 2 ? 0 : 1;
	}
	ck_assert_str_eq(sealed(HW_NOTIFY_SUMMARY), "2,000 devices of water offline within 1 s");
	ck_assert_str_eq(f.of[HW_NOTIFY_DEVICE], "2,000 devices");
	ck_assert_str_eq(f.of[HW_NOTIFY_COUNT], "2,000");
	ck_assert_str_eq(f.of[HW_NOTIFY_STATUS], "offline");
	/* The list is short, and says how much it leaves out. */
	const char *list = f.of[HW_NOTIFY_LIST];
	int lines = 1;
	for (const char *at = list; (at = strchr(at, '\n')); at++)
		lines++;
	ck_assert_int_eq(lines, HW_NOTIFIER_LINES + 1);
	ck_assert_ptr_nonnull(strstr(list, " d19 of water is offline"));
	ck_assert_str_eq(strrchr(list, '\n'), "\n... and 1,980 more");
}
END_TEST

/* A server may refuse a long message as a whole. What is left out is the end: nothing short comes behind it. */
START_TEST(a_list_of_long_names_is_shorter)
{
	char id[131];
	memset(id, 'x', 130);
	id[130] = '\0';
	for (int k = 0; k < 15; k++) {
		id[0] = (char)('a' + k);
		goes_offline(id);
	}
	goes_offline("short");
	turns_blind(true, HW_CAUSE_LINK, 0);
	sealed(HW_NOTIFY_LIST);
	const char *list = f.of[HW_NOTIFY_LIST], *end = strrchr(list, '\n');
	size_t line = strcspn(list, "\n") + 1;
	ck_assert_uint_eq((size_t)(end + 1 - list), HW_NOTIFIER_BYTES / line * line);
	char more[32];
	snprintf(more, sizeof(more), "\n... and %zu more", 17 - HW_NOTIFIER_BYTES / line);
	ck_assert_str_eq(end, more);
	/* What comes next begins anew. */
	goes_offline("short");
	ck_assert_str_eq(sealed(HW_NOTIFY_LIST), "22:13:20 short of water is offline: silent for 30 s");
}
END_TEST

START_TEST(what_differs_is_counted_apart)
{
	goes_offline("a");
	goes_offline("b");
	wall_ms += 7200;
	comes_back("c");
	happens("d", 0, HW_STATE_FORGOTTEN, HW_REASON_FORGET_AFTER, 0);
	ck_assert_str_eq(sealed(HW_NOTIFY_SUMMARY),
	                 "4 devices of water changed within 8 s: 2 offline, 1 online, 1 forgotten");
	ck_assert_str_eq(f.of[HW_NOTIFY_STATUS], "2 offline, 1 online, 1 forgotten");
	goes_offline("a");
	happens("b", 1, HW_STATE_OFFLINE, HW_REASON_TIMEOUT, 61000);
	ck_assert_str_eq(sealed(HW_NOTIFY_SUMMARY), "2 devices of several groups offline within 1 s");
	ck_assert_str_eq(f.of[HW_NOTIFY_GROUP], "several groups");
	ck_assert_str_eq(f.of[HW_NOTIFY_SILENT], "1 min 1 s");
}
END_TEST

/* A device that comes and goes is one device. */
START_TEST(a_device_counts_once)
{
	for (int k = 0; k < 3; k++) {
		goes_offline("a");
		comes_back("a");
	}
	ck_assert_str_eq(sealed(HW_NOTIFY_SUMMARY), "a of water changed 6 times within 1 s and is now online");
	for (int k = 0; k < 3; k++) {
		goes_offline("a");
		comes_back("a");
	}
	goes_offline("b");
	ck_assert_str_eq(sealed(HW_NOTIFY_SUMMARY), "2 devices of water changed within 1 s: 2 offline, 1 online");
	ck_assert_str_eq(f.of[HW_NOTIFY_COUNT], "2");
}
END_TEST

START_TEST(blindness_is_said)
{
	turns_blind(true, HW_CAUSE_LINK, 0);
	ck_assert_str_eq(sealed(HW_NOTIFY_SUMMARY),
	                 "monitor cannot hear devices: broker connection lost; no device is judged");
	ck_assert(f.bad);
	ck_assert_str_eq(f.of[HW_NOTIFY_STATUS], "blind");
	ck_assert_str_eq(f.of[HW_NOTIFY_DEVICE], "0 devices");
	ck_assert_str_eq(f.of[HW_NOTIFY_GROUP], "no group");
	turns_blind(false, HW_CAUSE_LINK, 17250);
	ck_assert_str_eq(sealed(HW_NOTIFY_SUMMARY), "monitor hears devices again, after 17 s");
	ck_assert(!f.bad);
	ck_assert_str_eq(f.of[HW_NOTIFY_STATUS], "seeing");
	goes_offline("a");
	turns_blind(true, HW_CAUSE_DEAF, 0);
	ck_assert_str_eq(sealed(HW_NOTIFY_SUMMARY),
	                 "a of water is offline: silent for 30 s; monitor cannot hear a group's "
	                 "devices: no message arrives on a group's topics; no device of it is judged");
}
END_TEST

/* --- templates */

static struct hw_note *note_as(enum hw_notify_template as, const char *title, const char *text)
{
	struct hw_style style = {as,  title, text, "=?UTF-8?B?V8OkY2h0ZXI=?= <hub@example.org>", "ops@example.org",
	                         NULL};
	struct hw_note *note = hw_note_new(&style, &f, NULL, wall_ms);
	ck_assert_ptr_nonnull(note);
	return note;
}

/* A name that would be more than one: what of it is not to be seen is escaped before it comes to any template. */
#define HOSTILE "a\"b\\<c>&\u202ed\u00e4=?UTF-8?Q?x?="

START_TEST(names_stay_in_their_place)
{
	happens(HOSTILE, 0, HW_STATE_OFFLINE, HW_REASON_WILL, 5);
	ck_assert_str_eq(sealed(HW_NOTIFY_DEVICE), "a\"b\\<c>&\\u202ed\u00e4=?UTF-8?Q?x?=");
	struct hw_note *note = note_as(HW_NOTIFY_SLACK, "{device}", "x");
	ck_assert_str_eq(note->text, "{\"text\":\"a\\\"b\\\\&lt;c&gt;&amp;\\\\u202ed\u00e4=?UTF-8?Q?x?=\\nx\"}");
	ck_assert_str_eq(note->type, "application/json");
	hw_note_free(note);
	note = note_as(HW_NOTIFY_TEXT, "{device}", "{group}");
	ck_assert_str_eq(note->text, "a\"b\\<c>&\\u202ed\u00e4=?UTF-8?Q?x?=\n\nwater\n");
	hw_note_free(note);
	/* Nor is everyone called because of one that is called so. */
	happens("@everyone", 0, HW_STATE_OFFLINE, HW_REASON_WILL, 5);
	sealed(HW_NOTIFY_DEVICE);
	note = note_as(HW_NOTIFY_SLACK, "{device}", "{status} {device}");
	ck_assert_str_eq(note->text, "{\"text\":\"@\u200beveryone\\noffline @\u200beveryone\"}");
	hw_note_free(note);
}
END_TEST

START_TEST(a_title_is_one_header)
{
	goes_offline("a");
	sealed(HW_NOTIFY_SUMMARY);
	/* A line end in a title is the operator's own, and yet no header's end. */
	struct hw_note *note = note_as(HW_NOTIFY_NTFY, "{device}\\nX-Evil: 1", "{status}");
	ck_assert_str_eq(note->headers, "Title: a X-Evil: 1\nPriority: high\nTags: warning\n");
	ck_assert_str_eq(note->text, "offline");
	hw_note_free(note);
	comes_back("a");
	sealed(HW_NOTIFY_SUMMARY);
	note = note_as(HW_NOTIFY_NTFY, "h\u00e4 {device}", "");
	ck_assert_str_eq(note->headers, "Title: =?UTF-8?B?aMOkIGE=?=\nPriority: default\nTags: white_check_mark\n");
	ck_assert_str_eq(note->text, "h\u00e4 a");
	hw_note_free(note);
}
END_TEST

/* The headers' end is where it should be, and no line is too long for a mail server. */
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
	goes_offline("a");
	sealed(HW_NOTIFY_SUMMARY);
	struct hw_note *note = note_as(HW_NOTIFY_MAIL, "{device}\\n\\nBcc: x@y", "=. {device} \\n.\\n{device}\u00e4");
	expect_mail(note->text);
	ck_assert_ptr_eq(strstr(note->text,
	                        "From: =?UTF-8?B?V8OkY2h0ZXI=?= <hub@example.org>\r\nTo: ops@example.org\r\n"
	                        "Subject: a  Bcc: x@y\r\nDate: Tue, 14 Nov 2023 22:13:20 +0000\r\n"
	                        "Message-ID: <"),
	                 note->text);
	ck_assert_ptr_nonnull(strstr(note->text, "@example.org>\r\nAuto-Submitted: auto-generated\r\n"));
	ck_assert_str_eq(strstr(note->text, "\r\n\r\n"), "\r\n\r\n=3D. a=20\r\n.\r\na=C3=A4\r\n");
	hw_note_free(note);
}
END_TEST

START_TEST(long_subjects_are_folded)
{
	char id[HW_ID_MAX + 1] = "";
	while (strlen(id) + 3 <= HW_ID_MAX)
		strcat(id, "\u20ac");
	goes_offline(id);
	sealed(HW_NOTIFY_SUMMARY);
	struct hw_note *note = note_as(HW_NOTIFY_MAIL, "{summary} {summary} {summary}", "{list}");
	expect_mail(note->text);
	const char *subject = strstr(note->text, "Subject: ");
	for (const char *at = subject; strncmp(at, "Date: ", 6) != 0; at = strstr(at, "\r\n") + 2)
		ck_assert_uint_le(strcspn(at, "\r"), 76);
	hw_note_free(note);
}
END_TEST

START_TEST(a_test_says_what_it_is)
{
	goes_offline("a");
	ck_assert_int_eq(hw_digest_test(&d, "hub", wall_ms, &f), 0);
	ck_assert_str_eq(f.of[HW_NOTIFY_SUMMARY], "test: this is how heartwheel's notifications arrive");
	ck_assert_str_eq(f.of[HW_NOTIFY_STATUS], "test");
	ck_assert(!f.bad);
	for (int k = 0; k < HW_NOTIFY_FIELDS; k++)
		ck_assert_ptr_nonnull(f.of[k]);
	/* What is gathered waits for its own message. */
	ck_assert_str_eq(sealed(HW_NOTIFY_DEVICE), "a");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("notify");
	TCase *t = tcase_create("all");
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, formats_are_filled);
	tcase_add_test(t, formats_are_judged);
	tcase_add_test(t, one_device_is_named);
	tcase_add_test(t, a_mass_death_is_one_sentence);
	tcase_add_test(t, a_list_of_long_names_is_shorter);
	tcase_add_test(t, what_differs_is_counted_apart);
	tcase_add_test(t, a_device_counts_once);
	tcase_add_test(t, blindness_is_said);
	tcase_add_test(t, names_stay_in_their_place);
	tcase_add_test(t, a_title_is_one_header);
	tcase_add_test(t, a_mail_is_whole);
	tcase_add_test(t, long_subjects_are_folded);
	tcase_add_test(t, a_test_says_what_it_is);
	suite_add_tcase(s, t);
	return suite_run(s);
}

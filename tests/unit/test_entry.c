/* SPDX-License-Identifier: MIT */
/* Entries of the inventory: JSON, patches, every limit and its message. */
#include "../random.h"
#include "../suite.h"
#include "inventory/entry.h"
#include "inventory/value.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct hw_entry_error error;

/* The entry that a stored text gives, printed. */
static const char *printed(const char *json)
{
	static char buf[HW_ENTRY_JSON_MAX];
	struct hw_expected_entry e;
	ck_assert_msg(hw_entry_parse(&e, json, strlen(json), &error) == 0, "%s: %s", json, error.message);
	ck_assert_uint_eq(hw_entry_print(&e, buf, sizeof(buf)), strlen(buf));
	return buf;
}

/* A stored text after a patch; or "COLUMN: MESSAGE". */
static const char *patched(const char *stored, const char *patch, bool merge)
{
	static char buf[HW_ENTRY_JSON_MAX];
	struct hw_expected_entry e;
	struct hw_patch p;
	ck_assert_int_eq(hw_entry_parse(&e, stored, strlen(stored), &error), 0);
	if (hw_patch_parse(&p, patch, strlen(patch), merge, NULL, &error) == 0 && hw_entry_merge(&e, &p, &error) == 0)
		hw_entry_print(&e, buf, sizeof(buf));
	else
		snprintf(buf, sizeof(buf), "%s: %s", error.column, error.message);
	return buf;
}

/* An empty entry after the cell of a column; or "COLUMN: MESSAGE". */
static const char *cell(enum hw_column column, const char *label, const char *text)
{
	static char buf[HW_ENTRY_JSON_MAX];
	struct hw_expected_entry e;
	struct hw_patch p;
	hw_entry_init(&e);
	hw_patch_init(&p);
	if (hw_patch_set(&p, column, label, text, strlen(text), &error) == 0 && hw_entry_merge(&e, &p, &error) == 0)
		hw_entry_print(&e, buf, sizeof(buf));
	else
		snprintf(buf, sizeof(buf), "%s: %s", error.column, error.message);
	return buf;
}

START_TEST(equal_entries_print_equal)
{
	const char *full =
		"{\"name\":\"Pump \\\"7\\\"\",\"group\":\"valves\",\"parent\":[\"gw-1\",\"gw-2\"],\"labels\":{"
		"\"floor\":\"2\",\"site\":\"north\"},\"timeout_ms\":300000,\"note\":\"a\\nb\",\"source\":"
		"\"a.csv\",\"since_ms\":1764000000000}";
	ck_assert_str_eq(printed(full), full);
	ck_assert_str_eq(printed("{}"), "{}");
	ck_assert_str_eq(
		printed(" { \"labels\" : { \"site\" : \" north \", \"a\" : null, \"floor\" : 2 }, \"name\":\"\","
	                "\"parent\":\"gw-1|gw-2\", \"later\":{\"x\":[1]},\"timeout\":\"5m\"} "),
		"{\"parent\":[\"gw-1\",\"gw-2\"],\"labels\":{\"floor\":\"2\",\"site\":\"north\"},"
		"\"timeout_ms\":300000}");
}
END_TEST

START_TEST(patch_merges_and_null_clears)
{
	const char *old =
		"{\"name\":\"P\",\"labels\":{\"old\":\"1\",\"site\":\"s\"},\"timeout_ms\":1000,\"source\":\"f\","
		"\"since_ms\":5}";
	ck_assert_str_eq(patched(old, "{}", true), old);
	ck_assert_str_eq(patched(old, "{\"name\":null,\"timeout\":null,\"labels\":{\"old\":null,\"new\":\"n\"}}", true),
	                 "{\"labels\":{\"new\":\"n\",\"site\":\"s\"},\"source\":\"f\",\"since_ms\":5}");
	ck_assert_str_eq(patched(old, "{\"labels\":{\"new\":\"n\"},\"timeout_ms\":null}", false),
	                 "{\"name\":\"P\",\"labels\":{\"new\":\"n\"},\"source\":\"f\",\"since_ms\":5}");
	ck_assert_str_eq(
		patched(old, "{\"labels\":null,\"label.site\":\"t\"}", true),
		"{\"name\":\"P\",\"labels\":{\"site\":\"t\"},\"timeout_ms\":1000,\"source\":\"f\",\"since_ms\":5}");
	ck_assert_str_eq(
		patched(old, "{\"label.old\":null,\"source\":\"x\",\"since_ms\":9}", true),
		"{\"name\":\"P\",\"labels\":{\"site\":\"s\"},\"timeout_ms\":1000,\"source\":\"f\",\"since_ms\":5}");
	ck_assert_str_eq(patched("{\"parent\":[\"a\",\"b\"]}", "{\"parent\":[\"c\"]}", true), "{\"parent\":[\"c\"]}");
	ck_assert_str_eq(patched("{\"parent\":[\"a\",\"b\"]}", "{\"parent\":null}", true), "{}");
	ck_assert_str_eq(patched("{\"parent\":[\"a\",\"b\"]}", "{\"parent\":[]}", true), "{}");
}
END_TEST

START_TEST(cells_are_read)
{
	ck_assert_str_eq(cell(HW_COLUMN_NAME, NULL, " Pump 7\t"), "{\"name\":\"Pump 7\"}");
	ck_assert_str_eq(cell(HW_COLUMN_NAME, NULL, "  "), "{}");
	ck_assert_str_eq(cell(HW_COLUMN_PARENT, NULL, "a | b"), "{\"parent\":[\"a\",\"b\"]}");
	ck_assert_str_eq(cell(HW_COLUMN_TIMEOUT, NULL, "90"), "{\"timeout_ms\":90000}");
	ck_assert_str_eq(cell(HW_COLUMN_TIMEOUT, NULL, "100ms"), "{\"timeout_ms\":100}");
	ck_assert_str_eq(cell(HW_COLUMN_TIMEOUT, NULL, "3650d"), "{\"timeout_ms\":315360000000}");
	ck_assert_str_eq(cell(HW_COLUMN_LABELS, NULL, "site = north; floor=2;;"),
	                 "{\"labels\":{\"floor\":\"2\",\"site\":\"north\"}}");
	ck_assert_str_eq(cell(HW_COLUMN_LABELS, NULL, "a=\"x;\"\"y\"\"\" ; b=c=d ; e=\"\""),
	                 "{\"labels\":{\"a\":\"x;\\\"y\\\"\",\"b\":\"c=d\"}}");
	ck_assert_str_eq(cell(HW_COLUMN_LABEL, "site", "north"), "{\"labels\":{\"site\":\"north\"}}");
	ck_assert_str_eq(cell(HW_COLUMN_NOTE, NULL, "a\r\nb"), "{\"note\":\"a\\nb\"}");
}
END_TEST

/* What is wrong, and the part of the message that says so. */
static const struct {
	enum hw_column column;
	const char *label, *text, *says;
} wrong[] = {
	{HW_COLUMN_NAME, NULL, "a\x01", "name: control character U+0001"},
	{HW_COLUMN_NAME, NULL, "K\374che", "name: byte 0xfc is not UTF-8"},
	{HW_COLUMN_NAME, NULL, "a\nb", "name: control character U+000A"},
	{HW_COLUMN_PARENT, NULL, "a|", "parent: the id is missing"},
	{HW_COLUMN_PARENT, NULL, "a|a", "parent: 'a' is named twice"},
	{HW_COLUMN_PARENT, NULL, "a|b|c|d|e", "parent: more than 4 parents"},
	{HW_COLUMN_PARENT, NULL, "a/#", "parent: 'a/#' cannot be the id of a device"},
	{HW_COLUMN_TIMEOUT, NULL, "5 minutes", "timeout: '5 minutes' is not a duration"},
	{HW_COLUMN_TIMEOUT, NULL, "0", "timeout: out of range: give a duration of 100ms to 3650d"},
	{HW_COLUMN_TIMEOUT, NULL, "3651d", "timeout: out of range"},
	{HW_COLUMN_TIMEOUT, NULL, "99999999999999999999d", "timeout: out of range"},
	{HW_COLUMN_LABELS, NULL, "north", "labels: 'north' has no =: write NAME=VALUE;NAME=VALUE"},
	{HW_COLUMN_LABELS, NULL, "a=1;a=2", "labels: label 'a' is named twice"},
	{HW_COLUMN_LABELS, NULL, "Site=1", "labels: 'Site' cannot be the name of a label"},
	{HW_COLUMN_LABELS, NULL, "1a=1", "labels: '1a' cannot be the name of a label"},
	{HW_COLUMN_LABELS, NULL, "=1", "labels: '' cannot be the name of a label"},
	{HW_COLUMN_LABELS, NULL, "a=\"x", "labels: the value of label 'a' is too long, or its quotes"},
	{HW_COLUMN_LABELS, NULL, "a=\"x\"y", "labels: the value of label 'a' is too long, or its quotes"},
	{HW_COLUMN_LABEL, "site", "a\tb", "label.site: control character U+0009"},
};

START_TEST(wrong_cells_are_named)
{
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		const char *got = cell(wrong[i].column, wrong[i].label, wrong[i].text);
		ck_assert_msg(strncmp(got, wrong[i].says, strlen(wrong[i].says)) == 0, "%s: %s", wrong[i].text, got);
	}
}
END_TEST

/* A text of `n` bytes. */
static const char *of_length(size_t n)
{
	static char buf[2000];
	memset(buf, 'x', n);
	buf[n] = '\0';
	return buf;
}

START_TEST(limits_are_exact)
{
	ck_assert_ptr_eq(strstr(cell(HW_COLUMN_NAME, NULL, of_length(128)), "most"), NULL);
	ck_assert_str_eq(cell(HW_COLUMN_NAME, NULL, of_length(129)), "name: has 129 bytes, 128 is the most");
	ck_assert_ptr_eq(strstr(cell(HW_COLUMN_NOTE, NULL, of_length(1024)), "most"), NULL);
	ck_assert_str_eq(cell(HW_COLUMN_NOTE, NULL, of_length(1025)), "note: has 1025 bytes, 1024 is the most");
	ck_assert_ptr_eq(strstr(cell(HW_COLUMN_LABEL, "a", of_length(128)), "most"), NULL);
	ck_assert_str_eq(cell(HW_COLUMN_LABEL, "a", of_length(129)), "label.a: has 129 bytes, 128 is the most");
	ck_assert_ptr_eq(strstr(cell(HW_COLUMN_PARENT, NULL, of_length(255)), "most"), NULL);
	ck_assert_str_eq(cell(HW_COLUMN_PARENT, NULL, of_length(256)), "parent: the id has 256 bytes, 255 is the most");
	ck_assert(hw_label_name_valid("a23456789012345678901234567890_2", 32));
	ck_assert(!hw_label_name_valid("a23456789012345678901234567890_23", 33));
}
END_TEST

START_TEST(an_entry_has_sixteen_labels)
{
	char json[400], *at = json;
	at += sprintf(at, "{\"labels\":{");
	for (int i = 0; i < 16; i++)
		at += sprintf(at, "%s\"l%02d\":\"v\"", i ? "," : "", i);
	sprintf(at, "}}");
	ck_assert_str_eq(printed(json), json);
	ck_assert_str_eq(patched(json, "{\"labels\":{\"more\":\"v\"}}", true), "label.more: more than 16 labels");
	ck_assert_ptr_ne(strstr(patched(json, "{\"labels\":{\"more\":\"v\",\"l03\":null}}", true), "\"more\":\"v\""),
	                 NULL);
	ck_assert_str_eq(patched(json, "{\"labels\":{\"more\":\"v\"}}", false), "{\"labels\":{\"more\":\"v\"}}");
}
END_TEST

START_TEST(wrong_json_is_named)
{
	ck_assert_str_eq(
		patched("{}", "{\"nmae\":1}", true),
		"nmae: unknown column: there are id, name, group, parent, labels, label.NAME, timeout and note");
	ck_assert_str_eq(patched("{}", "[]", true), ": this is not a JSON object in UTF-8");
	ck_assert_str_eq(patched("{}", "{\"name\":\"\xff\"}", true), ": this is not a JSON object in UTF-8");
	ck_assert_str_eq(patched("{}", "{\"name\":[]}", true), "name: is an array, and must be a text or null");
	ck_assert_str_eq(patched("{}", "{\"labels\":[]}", true), "labels: must be an object or null");
	ck_assert_str_eq(patched("{}", "{\"labels\":{\"a\":{}}}", true),
	                 "label.a: is an object, and must be a text or null");
	ck_assert_str_eq(patched("{}", "{\"timeout_ms\":1.5}", true),
	                 "timeout_ms: must be a whole number of milliseconds, or null");
	ck_assert_str_eq(patched("{}", "{\"timeout_ms\":\"5m\"}", true),
	                 "timeout_ms: must be a whole number of milliseconds, or null");
	ck_assert_str_eq(patched("{}", "{\"timeout_ms\":99}", true),
	                 "timeout: out of range: give a duration of 100ms to 3650d");
	ck_assert_str_eq(patched("{}", "{\"name\":\"a\\u0000\"}", true), "name: control character U+0000: remove it");
	ck_assert_str_eq(patched("{}", "{\"parent\":[1,[]]}", true), "parent: is an array, and must be a text or null");
	ck_assert_str_eq(patched("{}", "{\"id\":\"a\"}", true), "id: the id is in the path: remove it from the body");
}
END_TEST

START_TEST(ids_are_checked_for_what_spreadsheets_do)
{
	static const struct {
		const char *id, *says; /* NULL: right */
	} ids[] = {
		{"pump-1", NULL},
		{"a b", NULL},
		{"1E5", NULL},
		{"\xd9\x85\xe2\x80\x8c\xd8\xb1", NULL}, /* a joiner inside of a word */
		{"", "the id is missing"},
		{"1.23457E+14", "is a number that a spreadsheet has shortened: format the column as text"},
		{"1,23457E+14", "is a number that a spreadsheet has shortened"},
		{"a+b", "cannot be the id of a device"},
		{" a", "white space at an end, or an invisible character (U+0020)"},
		{"a\xc2\xa0", "white space at an end, or an invisible character (U+00A0)"},
		{"a\xe2\x80\x8b"
	         "b",
	         "white space at an end, or an invisible character (U+200B)"},
		{"\xef\xbb\xbf"
	         "a",
	         "white space at an end, or an invisible character (U+FEFF)"},
		{"K\374che", "cannot be the id of a device"},
	};
	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
		int rc = hw_entry_check_id("id", ids[i].id, strlen(ids[i].id), &error);
		ck_assert_msg(rc == (ids[i].says ? -EINVAL : 0), "'%s'", ids[i].id);
		ck_assert_msg(!ids[i].says || strstr(error.message, ids[i].says), "'%s': %s", ids[i].id, error.message);
	}
}
END_TEST

/* A random text of at most `max` bytes, with what must be escaped in it. */
static size_t any_text(char *buf, size_t max)
{
	static const char *const some[] = {"a", "Z", "\"", "\\", ";", "=", ",", " ", "\xc3\xa9", "\xf0\x9f\x90\x98",
	                                   "'", "x"};
	size_t n = 0, len = random_below((uint32_t)max + 1);
	while (n < len) {
		const char *s = some[random_below(sizeof(some) / sizeof(*some))];
		if (n + strlen(s) > max)
			break;
		memcpy(buf + n, s, strlen(s));
		n += strlen(s);
	}
	buf[n] = '\0';
	return n;
}

static size_t any_id(char *buf, unsigned k)
{
	buf[0] = (char)('p' + k);
	return 1 + any_text(buf + 1, 60);
}

/* The outline of a printed entry has what hw_entry_parse() reads, and the values end where source and since_ms begin.
 */
START_TEST(an_outline_is_what_is_parsed)
{
	for (int round = 0; round < 3000; round++) {
		struct hw_expected_entry e, outline;
		char text[2000], json[HW_ENTRY_JSON_MAX], values[HW_ENTRY_JSON_MAX];
		hw_entry_init(&e);
		any_text(e.name, random_below(2) ? 128 : 0);
		any_text(e.group, random_below(2) ? 64 : 0);
		any_text(e.note, random_below(2) ? 1024 : 0);
		for (unsigned k = 0, n = (unsigned)random_below(5); k < n; k++)
			any_id(e.parents[e.n_parents++], k);
		for (uint64_t k = 0, n = random_below(4); k < n; k++)
			ck_assert_int_eq(
				hw_entry_set_label(&e, k ? "since_ms" : "source", text, any_text(text, 128), &error),
				0);
		e.timeout_ms = (int64_t)random_below(3) * 1000;
		size_t len = hw_entry_print(&e, values, sizeof(values));
		any_text(e.source, random_below(4) ? 128 : 0);
		e.since_ms = (int64_t)random_below(3) * 1764000000000;
		size_t n = hw_entry_print(&e, json, sizeof(json));
		ck_assert_uint_eq(hw_entry_outline(&outline, json, n), len - 1);
		ck_assert_mem_eq(json, values, len - 1);
		ck_assert_str_eq(outline.name, e.name);
		ck_assert_str_eq(outline.group, e.group);
		ck_assert_str_eq(outline.source, e.source);
		ck_assert_int_eq(outline.since_ms, e.since_ms);
		ck_assert_int_eq(outline.timeout_ms, e.timeout_ms);
		ck_assert_int_eq(outline.n_labels > 0, e.n_labels > 0);
		ck_assert_uint_eq(outline.n_parents, e.n_parents);
		for (unsigned k = 0; k < e.n_parents; k++)
			ck_assert_str_eq(outline.parents[k], e.parents[k]);
	}
}
END_TEST

/* Cells and JSON give the same entry again, whatever the texts are. */
START_TEST(an_entry_survives_each_format)
{
	for (int round = 0; round < 3000; round++) {
		struct hw_expected_entry e, again;
		struct hw_patch p;
		char a[HW_ENTRY_JSON_MAX], b[HW_ENTRY_JSON_MAX], cells[HW_ENTRY_JSON_MAX], text[2000];
		hw_entry_init(&e);
		hw_patch_init(&p);
		ck_assert_int_eq(hw_patch_set(&p, HW_COLUMN_NAME, NULL, text, any_text(text, 128), &error), 0);
		ck_assert_int_eq(hw_patch_set(&p, HW_COLUMN_NOTE, NULL, text, any_text(text, 1024), &error), 0);
		for (uint64_t n = random_below(17), i = 0; i < n; i++) {
			char label[8];
			snprintf(label, sizeof(label), "l%d", (int)random_below(30));
			size_t len = any_text(text, 128);
			ck_assert_int_eq(hw_patch_set(&p, HW_COLUMN_LABEL, label, text, len, &error), 0);
		}
		ck_assert_int_eq(hw_entry_merge(&e, &p, &error), 0);
		size_t n = hw_entry_print(&e, a, sizeof(a));
		ck_assert_msg(hw_entry_parse(&again, a, n, &error) == 0, "%s: %s", a, error.message);
		hw_entry_print(&again, b, sizeof(b));
		ck_assert_str_eq(a, b);
		hw_patch_init(&p);
		n = hw_entry_print_labels(&e, cells, sizeof(cells));
		ck_assert_msg(hw_patch_set(&p, HW_COLUMN_LABELS, NULL, cells, n, &error) == 0, "%s: %s", cells,
		              error.message);
		ck_assert_int_eq(hw_entry_merge(&again, &p, &error), 0);
		hw_entry_print(&again, b, sizeof(b));
		ck_assert_str_eq(a, b);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("entry");
	TCase *t = tcase_create("all");
	random_begin(random_seed_of_now());
	tcase_add_test(t, equal_entries_print_equal);
	tcase_add_test(t, patch_merges_and_null_clears);
	tcase_add_test(t, cells_are_read);
	tcase_add_test(t, wrong_cells_are_named);
	tcase_add_test(t, limits_are_exact);
	tcase_add_test(t, an_entry_has_sixteen_labels);
	tcase_add_test(t, wrong_json_is_named);
	tcase_add_test(t, ids_are_checked_for_what_spreadsheets_do);
	tcase_add_test(t, an_outline_is_what_is_parsed);
	tcase_add_test(t, an_entry_survives_each_format);
	suite_add_tcase(s, t);
	return suite_run(s);
}

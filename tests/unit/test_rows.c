/* SPDX-License-Identifier: MIT */
/* Files of the inventory, with the bytes that spreadsheets write, right ones and wrong ones. */
#include "../suite.h"
#include "inventory/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the rows do to an entry that has a name, a timeout and a label: "LINE ID JSON" or "LINE COLUMN: MESSAGE". */
static char got[1 << 20];

static void say(const char *text)
{
	ck_assert_uint_lt(strlen(got) + strlen(text), sizeof(got));
	strcat(got, text);
}

static void on_row(void *arg, uint64_t line, const char *id, const struct hw_patch *p)
{
	static const char stored[] = "{\"name\":\"N\",\"labels\":{\"l\":\"1\"},\"timeout_ms\":1000}";
	char json[HW_ENTRY_JSON_MAX], text[HW_ENTRY_JSON_MAX + 300];
	struct hw_entry_error error;
	struct hw_expected_entry e;
	(void)arg;
	ck_assert_int_eq(hw_entry_parse(&e, stored, strlen(stored), &error), 0);
	ck_assert_int_eq(hw_entry_merge(&e, p, &error), 0);
	hw_entry_print(&e, json, sizeof(json));
	snprintf(text, sizeof(text), "%d %s %s\n", (int)line, id, json);
	say(text);
}

static void on_wrong(void *arg, uint64_t line, const struct hw_entry_error *error)
{
	char text[400];
	(void)arg;
	snprintf(text, sizeof(text), "%d %s: %s\n", (int)line, error->column, error->message);
	say(text);
}

static const char *read_bytes(enum hw_rows_format format, const char *bytes, size_t len)
{
	static const struct hw_rows_ops ops = {on_row, on_wrong};
	struct hw_rows *r = hw_rows_new(format, &ops, NULL);
	*got = '\0';
	hw_rows_feed(r, bytes, len);
	hw_rows_end(r);
	hw_rows_free(r);
	return got;
}

static const char *csv(const char *text)
{
	return read_bytes(HW_ROWS_CSV, text, strlen(text));
}

static const char *json(const char *text)
{
	return read_bytes(HW_ROWS_NDJSON, text, strlen(text));
}

#define REST "\"labels\":{\"l\":\"1\"},\"timeout_ms\":1000}\n"
#define BOM  "\xef\xbb\xbf"

START_TEST(spreadsheets_are_read)
{
	static const char one[] = "2 pump-1 {\"name\":\"Pump 1\"," REST;
	/* Excel, "CSV UTF-8", with , and with ; as in half of Europe */
	ck_assert_str_eq(csv(BOM "id,name\r\npump-1,Pump 1\r\n"), one);
	ck_assert_str_eq(csv(BOM "id;name\r\npump-1;Pump 1\r\n"), one);
	ck_assert_str_eq(csv(BOM "Id; NAME \r\npump-1;Pump 1"), one);
	/* LibreOffice, "quote all text cells" */
	ck_assert_str_eq(csv("\"id\",\"name\"\n\"pump-1\",\"Pump 1\"\n"), one);
	ck_assert_str_eq(csv("\"name\";\"id\"\n\"Pump 1\";\"pump-1\"\n"), one);
	ck_assert_str_eq(csv("sep=;\r\nid;name\r\npump-1;Pump 1\r\n"), "3 pump-1 {\"name\":\"Pump 1\"," REST);
	/* rows and columns that were emptied, and cells at the end that Excel leaves out */
	ck_assert_str_eq(csv("id,name,,\r\npump-1,Pump 1,,\r\n,,,\r\n\r\n"), one);
	ck_assert_str_eq(csv("id,name\npump-1\n"), "2 pump-1 {" REST);
	ck_assert_str_eq(csv("\n\nid,name\npump-1,\n"), "4 pump-1 {" REST);
}
END_TEST

START_TEST(an_empty_cell_clears_and_a_missing_column_leaves)
{
	ck_assert_str_eq(csv("id,timeout\na,\nb,5m\n"),
	                 "2 a {\"name\":\"N\",\"labels\":{\"l\":\"1\"}}\n"
	                 "3 b {\"name\":\"N\",\"labels\":{\"l\":\"1\"},\"timeout_ms\":300000}\n");
	ck_assert_str_eq(csv("id,label.l,labels\na,,x=1\nb,2,\nc,,\n"),
	                 "2 a {\"name\":\"N\",\"labels\":{\"x\":\"1\"},\"timeout_ms\":1000}\n"
	                 "3 b {\"name\":\"N\",\"labels\":{\"l\":\"2\"},\"timeout_ms\":1000}\n"
	                 "4 c {\"name\":\"N\",\"timeout_ms\":1000}\n");
	ck_assert_str_eq(csv("id,label.x\na,1\n"),
	                 "2 a {\"name\":\"N\",\"labels\":{\"l\":\"1\",\"x\":\"1\"},\"timeout_ms\":1000}\n");
	ck_assert_str_eq(csv("id;labels\na;\"x=1;y=2\"\n"),
	                 "2 a {\"name\":\"N\",\"labels\":{\"x\":\"1\",\"y\":\"2\"},\"timeout_ms\":1000}\n");
	ck_assert_str_eq(csv("id,labels\na,x=1;y=2\n"),
	                 "2 a {\"name\":\"N\",\"labels\":{\"x\":\"1\",\"y\":\"2\"},\"timeout_ms\":1000}\n");
}
END_TEST

START_TEST(quotes_are_those_of_rfc_4180)
{
	ck_assert_str_eq(csv("id,name\na,\"x,\"\"y\"\";z\"\n"), "2 a {\"name\":\"x,\\\"y\\\";z\"," REST);
	ck_assert_str_eq(csv("id,name\na,19\" rack\nb,\"\"\n"), "2 a {\"name\":\"19\\\" rack\"," REST "3 b {" REST);
	ck_assert_str_eq(csv("id,note\na,\"one\r\ntwo\"\nb,\n"),
	                 "2 a {\"name\":\"N\",\"labels\":{\"l\":\"1\"},\"timeout_ms\":1000,\"note\":\"one\\ntwo\"}\n"
	                 "4 b {\"name\":\"N\"," REST);
	ck_assert_str_eq(csv("id,name\na,\"x\"y\nb,B\n"),
	                 "2 name: the quotes are wrong: one is not closed or not doubled, or white space is outside of "
	                 "them\n3 b {\"name\":\"B\"," REST);
	ck_assert_ptr_ne(strstr(csv("id,name\na, \"x\"\n"), "2 name: the quotes are wrong"), NULL);
	ck_assert_ptr_ne(strstr(csv("id,name\na,\"x\nb,y\n"), "2 name: the quotes are wrong"), NULL);
}
END_TEST

/* A file, and how its messages begin. */
static const struct {
	const char *text, *says;
} files[] = {
	{"", "1 : the file is empty: its first line must name the columns"},
	{"\r\n\r\n", "1 : the file is empty"},
	{"pump-1,Pump 1\n", "1 pump-1: unknown column: there are id, name"},
	{"id,nmae\n", "1 nmae: unknown column; did you mean 'name'?"},
	{"name,note\n", "1 id: the header lacks the column 'id'"},
	{"id,name,Name\n", "1 : column 'name' is there twice"},
	{"id,label.a,label.a\n", "1 : column 'label.a' is there twice"},
	{"id,label.1\n", "1 label.1: after label. a name of a to z"},
	{"id\tname\r\na\tb\r\n", "1 : the cells are separated by tabs: save the file with , or ;"},
	{"sep=\t\r\n", "1 : the separator must be , or ;"},
	{"id,name\ra,b\rc,d\r", "1 : the lines end with CR alone: save the file as CSV UTF-8"},
	{"PK\x03\x04\x14", "1 : this is a spreadsheet's own file (xlsx, ods)"},
	{"\xd0\xcf\x11\xe0\xa1", "1 : this is a spreadsheet's own file (xls)"},
	{"\xff\xfeid", "1 : the file is UTF-16: save it as CSV UTF-8"},
	{"{\"id\":\"a\"}\n", "1 : this is JSON: name the file .ndjson"},
	{"id,name\na,K\xfc"
         "che\n",
         "2 name: byte 0xfc is not UTF-8: save the file as CSV UTF-8"},
	{"id,note\nb,\na,\"x\n\nK\xfc"
         "che\"\n",
         "2 b {\"name\":\"N\"," REST "5 note: byte 0xfc is not UTF-8"},
	{"id,name\na,b,c\n", "2 : the row has 3 cells, the header has 2 columns"},
	{"id,,name\na,b,c\n", "2 2: the header has no name for this column"},
	{"id,name\n,Pump\n", "2 id: the id is missing"},
	{"id,name\n1.23457E+14,Pump\n", "2 id: '1.23457E+14' is a number that a spreadsheet has shortened"},
	{"id,parent\na,b|a\n", "2 parent: 'a' cannot be its own parent"},
	{"id,timeout\na,5 min\nb,2s\n", "2 timeout: '5 min' is not a duration"},
};

START_TEST(wrong_files_are_named)
{
	const char *text = files[_i].text, *found = csv(text);
	ck_assert_msg(strncmp(found, files[_i].says, strlen(files[_i].says)) == 0, "%s\n%s", text, found);
}
END_TEST

START_TEST(json_lines_are_read)
{
	ck_assert_str_eq(json(BOM "{\"id\":\"a\",\"name\":\"A\"}\r\n\n {\"id\":7,\"timeout\":null}"),
	                 "1 a {\"name\":\"A\"," REST "3 7 {\"name\":\"N\",\"labels\":{\"l\":\"1\"}}\n");
	ck_assert_str_eq(
		json("{\"id\":\"a\"\n{\"name\":\"x\"}\n{\"id\":\"a\",\"x\":1}\n"),
		"1 : this is not a JSON object in UTF-8\n2 id: the id is missing\n3 x: unknown column: there are id, "
		"name, group, parent, labels, label.NAME, timeout and note\n");
	ck_assert_str_eq(json("[\n{\"id\":\"a\"},\n"),
	                 "1 : this is a JSON array: write one object a line, without commas between\n");
	ck_assert_str_eq(json("{\"id\":\"a\",\"labels\":{\"m\":\"2\"}}"),
	                 "1 a {\"name\":\"N\",\"labels\":{\"m\":\"2\"},\"timeout_ms\":1000}\n");
	ck_assert_str_eq(json(""), "");
}
END_TEST

/* A row of `n` bytes: an id, and spaces in the cell of the name. */
static const char *with_row_of(size_t n, const char *end)
{
	static char text[HW_ROW_MAX + 100];
	int at = snprintf(text, sizeof(text), "id,name\na,");
	memset(text + at, ' ', n - 2);
	snprintf(text + at + n - 2, 20, "%sb,B\n", end);
	return text;
}

START_TEST(a_row_has_at_most_64_KiB)
{
	static const char after[] = "3 b {\"name\":\"B\"," REST;
	char expected[200];
	snprintf(expected, sizeof(expected), "2 a {%s%s", REST, after);
	ck_assert_str_eq(csv(with_row_of(HW_ROW_MAX, "\n")), expected);
	ck_assert_str_eq(csv(with_row_of(HW_ROW_MAX, "\r\n")), expected);
	snprintf(expected, sizeof(expected), "2 : the row is longer than 64 KiB\n%s", after);
	ck_assert_str_eq(csv(with_row_of(HW_ROW_MAX + 1, "\n")), expected);
	ck_assert_str_eq(csv(with_row_of(HW_ROW_MAX + 1, "\r\n")), expected);
}
END_TEST

START_TEST(a_quote_that_is_not_closed_costs_64_KiB)
{
	char *text = malloc(200000), *at = text;
	at += sprintf(at, "id,name\na,\"A\n");
	for (int i = 0; i < 10000; i++)
		at += sprintf(at, "d%d,D\n", i);
	csv(text);
	ck_assert_ptr_eq(strstr(got, "2 : the row is longer than 64 KiB: is a quote not closed?\n"), got);
	ck_assert_ptr_ne(strstr(got, "10002 d9999 {\"name\":\"D\""), NULL);
	free(text);
}
END_TEST

START_TEST(what_is_written_is_read)
{
	static const char stored[] =
		"{\"name\":\"a,\\\"b\\\"\",\"group\":\"g;\",\"parent\":[\"p\",\"q,\"],\"labels\":{"
		"\"l\":\"x;y\"},\"timeout_ms\":300000,\"note\":\"one\\ntwo\",\"source\":\"s\",\"since_ms\":7}";
	static const char expected[] =
		"{\"name\":\"a,\\\"b\\\"\",\"group\":\"g;\",\"parent\":[\"p\",\"q,\"],\"labels\":{"
		"\"l\":\"x;y\"},\"timeout_ms\":300000,\"note\":\"one\\ntwo\"}";
	char text[2 * HW_LINE_MAX], lines[400];
	struct hw_entry_error error;
	struct hw_expected_entry e;
	ck_assert_int_eq(hw_entry_parse(&e, stored, strlen(stored), &error), 0);
	size_t n = hw_rows_print_header(text, sizeof(text));
	hw_rows_print_csv("i;d", &e, text + n, HW_LINE_MAX);
	snprintf(lines, sizeof(lines), "2 i;d %s\n", expected);
	ck_assert_str_eq(csv(text), lines);
	hw_rows_print_json("i;d", &e, text, HW_LINE_MAX);
	snprintf(lines, sizeof(lines), "1 i;d %s\n", expected);
	ck_assert_str_eq(json(text), lines);
	hw_entry_init(&e);
	hw_rows_print_json("a\"", &e, text, HW_LINE_MAX);
	ck_assert_str_eq(text, "{\"id\":\"a\\\"\"}\n");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("rows");
	TCase *t = tcase_create("all");
	tcase_add_test(t, spreadsheets_are_read);
	tcase_add_test(t, an_empty_cell_clears_and_a_missing_column_leaves);
	tcase_add_test(t, quotes_are_those_of_rfc_4180);
	tcase_add_loop_test(t, wrong_files_are_named, 0, sizeof(files) / sizeof(*files));
	tcase_add_test(t, json_lines_are_read);
	tcase_add_test(t, a_row_has_at_most_64_KiB);
	tcase_add_test(t, a_quote_that_is_not_closed_costs_64_KiB);
	tcase_add_test(t, what_is_written_is_read);
	suite_add_tcase(s, t);
	return suite_run(s);
}

/* SPDX-License-Identifier: MIT */
/*
 * Files of the inventory against a naive twin, the writer: random tables are written as CSV in every way that a
 * spreadsheet may, and as NDJSON. The reader must find each row with its line and its values, however the bytes are cut
 * into pieces; and each row that was made wrong, with its line.
 */
#include "../random.h"
#include "../suite.h"
#include "inventory/rows.h"

#include <string.h>

#define ROWS_MAX    40
#define COLUMNS_MAX 10
#define TEXT_MAX    60

/* One column of a table: as hw_patch_set() takes it. */
struct column {
	enum hw_column column;
	char name[16], label[8];
};

struct table {
	size_t n_rows, n_columns, id_at;
	struct column columns[COLUMNS_MAX];
	char cells[ROWS_MAX][COLUMNS_MAX][TEXT_MAX];
	bool wrong[ROWS_MAX]; /* the row has a byte that is no UTF-8 */
	uint64_t lines[ROWS_MAX], wrong_lines[ROWS_MAX];
};

static struct table table;
static char file[1 << 18];
static size_t size, next; /* bytes of the file; the row that the reader must find next */

static bool chance(unsigned one_of)
{
	return random_below(one_of) == 0;
}

static void any_text(char *to, size_t max, bool lines)
{
	static const char *const parts[] = {"a", "B", "7", "\"", ",", ";", "=", " ", "\xc3\xbc", "\xf0\x9f\x90\x98",
	                                    "'", "\n"};
	size_t n = 0, len = random_below((uint32_t)max);
	while (n < len) {
		const char *part = parts[random_below(lines ? 12 : 11)];
		if (n + strlen(part) > max)
			break;
		memcpy(to + n, part, strlen(part));
		n += strlen(part);
	}
	to[n] = '\0';
}

static void make_columns(struct table *t)
{
	static const struct column all[COLUMNS_MAX] = {
		{HW_COLUMN_ID, "id", ""},           {HW_COLUMN_NAME, "name", ""},
		{HW_COLUMN_GROUP, "group", ""},     {HW_COLUMN_PARENT, "parent", ""},
		{HW_COLUMN_TIMEOUT, "timeout", ""}, {HW_COLUMN_NOTE, "note", ""},
		{HW_COLUMN_LABEL, "label.a", "a"},  {HW_COLUMN_LABEL, "label.b", "b"},
		{HW_COLUMN_LABELS, "labels", ""},   {HW_COLUMN_LABEL, "label.c_9", "c_9"},
	};
	t->n_columns = 0;
	for (size_t i = 0; i < COLUMNS_MAX; i++) {
		if (i > 0 && chance(3))
			continue;
		size_t at = random_below((uint32_t)t->n_columns + 1);
		memmove(t->columns + at + 1, t->columns + at, (t->n_columns++ - at) * sizeof(*all));
		t->columns[at] = all[i];
	}
	for (size_t i = 0; i < t->n_columns; i++)
		if (t->columns[i].column == HW_COLUMN_ID)
			t->id_at = i;
}

static void make_cell(const struct column *c, size_t row, char *to)
{
	static const char *const timeouts[] = {"5m", "100ms", "90", "1d", ""};
	static const char *const parents[] = {"g-1", "g-1|g 2", "g;3", "", "a,b|\"q\""};
	static const char *const labels[] = {"a=1;b=2", "a=\"x;\"\"y\"\"\"", "", "z=,", "c_9=u"};
	unsigned any = random_below(5);
	if (c->column == HW_COLUMN_ID)
		snprintf(to, TEXT_MAX, "%s%zu", any == 0 ? "a,b" : any == 1 ? "x\"" : any == 2 ? "d;" : "d", row);
	else if (c->column == HW_COLUMN_TIMEOUT)
		strcpy(to, timeouts[any]);
	else if (c->column == HW_COLUMN_PARENT)
		strcpy(to, parents[any]);
	else if (c->column == HW_COLUMN_LABELS)
		strcpy(to, labels[any]);
	else
		any_text(to, TEXT_MAX - 5, c->column == HW_COLUMN_NOTE);
}

static void put(const char *text)
{
	ck_assert_uint_lt(size + strlen(text), sizeof(file));
	memcpy(file + size, text, strlen(text));
	size += strlen(text);
}

/* Whether the cell cannot stand without quotes. White space before a quote is refused there. */
static bool needs_quotes(const char *text, char separator)
{
	const char *first = text + strspn(text, " \n");
	return strchr(text, separator) || strchr(text, '\n') || *first == '"';
}

static void put_cell(const char *text, char separator, bool quote_all)
{
	if (!quote_all && !needs_quotes(text, separator) && !chance(4)) {
		put(text);
		return;
	}
	put("\"");
	for (; *text; text++)
		put(*text == '"' ? "\"\"" : (char[2]){*text, '\0'});
	put("\"");
}

static uint64_t lines_so_far(void)
{
	uint64_t n = 1;
	for (size_t i = 0; i < size; i++)
		n += file[i] == '\n';
	return n;
}

/* Writes the row; a last row perhaps without its line end, and empty cells at the end perhaps not at all. */
static void put_row(struct table *t, size_t row, char separator, const char *end, bool quote_all)
{
	char between[2] = {separator, '\0'};
	size_t n = t->n_columns;
	t->lines[row] = lines_so_far();
	t->wrong[row] = chance(15);
	while (n > t->id_at + 1 && !*t->cells[row][n - 1] && chance(2))
		n--;
	for (size_t i = 0; i < n; i++) {
		put(i ? between : "");
		if (i == t->id_at && t->wrong[row]) {
			put("K\374");
			t->wrong_lines[row] = lines_so_far();
		}
		put_cell(t->cells[row][i], separator, quote_all && !(i == t->id_at && t->wrong[row]));
	}
	if (row + 1 < t->n_rows || chance(2))
		put(end);
}

static void make_table(struct table *t)
{
	memset(t, 0, sizeof(*t));
	make_columns(t);
	t->n_rows = random_below(ROWS_MAX);
	for (size_t row = 0; row < t->n_rows; row++)
		for (size_t i = 0; i < t->n_columns; i++)
			make_cell(&t->columns[i], row, t->cells[row][i]);
}

static void write_csv(struct table *t)
{
	char separator = chance(2) ? ',' : ';', between[2] = {separator, '\0'};
	const char *end = chance(2) ? "\r\n" : "\n";
	bool quote_all = chance(3);
	size = 0;
	put(chance(2) ? "\xef\xbb\xbf" : "");
	if (chance(4)) {
		put("sep=");
		put(between);
		put(end);
	}
	for (size_t i = 0; i < t->n_columns; i++) {
		put(i ? between : "");
		put_cell(t->columns[i].name, separator, quote_all);
	}
	put(end);
	for (size_t row = 0; row < t->n_rows; row++) {
		put(chance(20) ? end : "");
		put_row(t, row, separator, end, quote_all);
	}
}

/* The entry that a row changes. A line of NDJSON lacks what is empty, and so leaves it. */
static const char *stored;
static const char full[] =
	"{\"name\":\"N\",\"group\":\"G\",\"parent\":[\"p\"],\"labels\":{\"a\":\"0\",\"c_9\":\"0\",\"z\":\"0\"},"
	"\"timeout_ms\":1000,\"note\":\"O\"}";

static void print_patch(const struct hw_patch *p, char *json)
{
	struct hw_entry_error error;
	struct hw_expected_entry e;
	ck_assert_int_eq(hw_entry_parse(&e, stored, strlen(stored), &error), 0);
	ck_assert_int_eq(hw_entry_merge(&e, p, &error), 0);
	hw_entry_print(&e, json, HW_ENTRY_JSON_MAX);
}

/* What the cells of a row mean, from the cells themselves. */
static void expect_row(const struct table *t, size_t row, char *json)
{
	struct hw_entry_error error;
	struct hw_patch p;
	hw_patch_init(&p);
	for (int single = 0; single < 2; single++)
		for (size_t i = 0; i < t->n_columns; i++) {
			const struct column *c = &t->columns[i];
			const char *text = t->cells[row][i];
			if (c->column == HW_COLUMN_ID || (c->column == HW_COLUMN_LABELS) == single)
				continue;
			ck_assert_int_eq(
				hw_patch_set(&p, c->column, *c->label ? c->label : NULL, text, strlen(text), &error),
				0);
		}
	print_patch(&p, json);
}

static void on_row(void *arg, uint64_t line, const char *id, const struct hw_patch *p)
{
	struct table *t = arg;
	char a[HW_ENTRY_JSON_MAX], b[HW_ENTRY_JSON_MAX];
	ck_assert_uint_lt(next, t->n_rows);
	ck_assert_msg(!t->wrong[next], "row %zu is wrong", next);
	ck_assert_uint_eq(line, t->lines[next]);
	ck_assert_str_eq(id, t->cells[next][t->id_at]);
	print_patch(p, a);
	expect_row(t, next, b);
	ck_assert_str_eq(a, b);
	next++;
}

static void on_wrong(void *arg, uint64_t line, const struct hw_entry_error *error)
{
	struct table *t = arg;
	ck_assert_uint_lt(next, t->n_rows);
	ck_assert_msg(t->wrong[next], "line %d: %s: %s", (int)line, error->column, error->message);
	ck_assert_uint_eq(line, t->wrong_lines[next]);
	next++;
}

static void read_file(struct table *t, enum hw_rows_format format)
{
	static const struct hw_rows_ops ops = {on_row, on_wrong};
	unsigned most = chance(2) ? 3 : chance(2) ? 100 : sizeof(file);
	struct hw_rows *r = hw_rows_new(format, &ops, t);
	next = 0;
	for (size_t at = 0, n; at < size; at += n) {
		n = 1 + random_below(most);
		n = n < size - at ? n : size - at;
		hw_rows_feed(r, file + at, n);
	}
	hw_rows_end(r);
	hw_rows_free(r);
	ck_assert_uint_eq(next, t->n_rows);
}

START_TEST(each_row_of_a_csv_file_is_found)
{
	for (int round = 0; round < 1500; round++) {
		make_table(&table);
		stored = full;
		write_csv(&table);
		read_file(&table, HW_ROWS_CSV);
	}
}
END_TEST

/* Exported entries give the same entries again; all columns are given then. */
START_TEST(an_export_is_an_import_that_changes_nothing)
{
	for (int round = 0; round < 600; round++) {
		char line[HW_LINE_MAX], empty[HW_ENTRY_JSON_MAX];
		enum hw_rows_format format = chance(2) ? HW_ROWS_CSV : HW_ROWS_NDJSON;
		stored = format == HW_ROWS_CSV ? full : "{}";
		make_table(&table);
		size = 0;
		hw_rows_print_header(line, sizeof(line));
		put(format == HW_ROWS_CSV ? line : "");
		for (size_t row = 0; row < table.n_rows; row++) {
			struct hw_entry_error error;
			struct hw_expected_entry e;
			expect_row(&table, row, empty);
			ck_assert_int_eq(hw_entry_parse(&e, empty, strlen(empty), &error), 0);
			table.lines[row] = lines_so_far();
			if (format == HW_ROWS_CSV)
				hw_rows_print_csv(table.cells[row][table.id_at], &e, line, sizeof(line));
			else
				hw_rows_print_json(table.cells[row][table.id_at], &e, line, sizeof(line));
			put(line);
		}
		read_file(&table, format);
	}
}
END_TEST

int main(void)
{
	random_begin(random_seed_of_now());
	Suite *suite = suite_create("rows");
	TCase *tc = tcase_create("rows");
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, each_row_of_a_csv_file_is_found);
	tcase_add_test(tc, an_export_is_an_import_that_changes_nothing);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

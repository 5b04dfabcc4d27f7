/* SPDX-License-Identifier: MIT */
/* See csv.h. A quote opens a quoted cell only if the cell begins with the quote. Elsewhere a quote is a character
 * like any other, as in 19" rack. */
#include "inventory/csv.h"

#include <errno.h>
#include <string.h>

#include "conf/draft.h"
#include "heartwheel/print.h"
#include "heartwheel/utf8.h"
#include "inventory/value.h"

static bool separates(const struct hw_csv *c, char byte)
{
	return c->separator ? byte == c->separator : byte == ',' || byte == ';';
}

bool hw_csv_step(struct hw_csv *c, char byte)
{
	if (c->state == HW_CSV_QUOTED) {
		if (byte == '"')
			c->state = HW_CSV_CLOSED;
		return false;
	}
	if (byte == '"' && c->state != HW_CSV_PLAIN)
		c->state = HW_CSV_QUOTED; /* in state CLOSED: a doubled quote */
	else
		c->state = separates(c, byte) || byte == '\n' ? HW_CSV_CELL : HW_CSV_PLAIN;
	return byte == '\n';
}

/* Whether white space stands before the quote that was meant to open the cell. */
static bool is_quoted_late(const struct hw_csv_cell *cell)
{
	const char *text = cell->text;
	size_t len = cell->len;
	hw_inventory_trim(&text, &len);
	return len > 0 && text > cell->text && *text == '"';
}

/* Reads the cell at *at in place, and moves *at after the separator that follows. Returns -EINVAL if a quoted cell
 * is not closed, if text follows its closing quote, or if white space stands before a quote. */
static int read_cell(const struct hw_csv *c, char *row, size_t len, size_t *at, struct hw_csv_cell *cell)
{
	size_t from = *at, to = from;
	bool quoted = from < len && row[from] == '"';
	cell->text = row + from;
	while (!quoted && from < len && !separates(c, row[from]))
		to = ++from;
	for (from += quoted; quoted && from < len; from++) {
		if (row[from] == '"') {
			if (from + 1 == len || row[from + 1] != '"')
				break;
			from++;
		}
		row[to++] = row[from];
	}
	if (quoted && from >= len)
		return -EINVAL;
	from += quoted;
	cell->len = to - *at;
	if (!quoted && is_quoted_late(cell))
		return -EINVAL;
	*at = from + 1;
	return from == len || separates(c, row[from]) ? 0 : -EINVAL;
}

/* Splits the row into cells. *n is their number; the first HW_CSV_COLUMNS_MAX of them are in c->cells. Returns 0, or
 * -EINVAL if a cell is malformed; *n is then the number of that cell. */
static int split(struct hw_csv *c, char *row, size_t len, size_t *n)
{
	struct hw_csv_cell beyond;
	*n = 0;
	for (size_t at = 0; at <= len; ++*n)
		if (read_cell(c, row, len, &at, *n < HW_CSV_COLUMNS_MAX ? &c->cells[*n] : &beyond) < 0)
			return -EINVAL;
	return 0;
}

static void lower(struct hw_csv_cell *cell)
{
	const char *text = cell->text;
	hw_inventory_trim(&text, &cell->len);
	memmove(cell->text, text, cell->len);
	for (size_t i = 0; i < cell->len; i++)
		if (cell->text[i] >= 'A' && cell->text[i] <= 'Z')
			cell->text[i] = (char)(cell->text[i] + 'a' - 'A');
}

/* By enum hw_column. */
static const char *const names[] = {"id", "name", "group", "parent", "labels", "timeout", "note", NULL};

static int unknown_column(const struct hw_csv_cell *cell, struct hw_entry_error *error)
{
	char shown[HW_SHOWN_MAX];
	const char *near = hw_conf_nearest(hw_inventory_show(cell->text, cell->len, shown), names);
	if (memchr(cell->text, '\t', cell->len))
		return hw_entry_wrong(error, "", "the cells are separated by tabs: save the file with , or ; instead");
	if (near)
		return hw_entry_wrong(error, shown, "unknown column; did you mean '%s'?", near);
	return hw_entry_wrong(
		error, shown,
		"unknown column: there are id, name, group, parent, labels, label.NAME, timeout and note");
}

static int read_column(struct hw_csv_column *to, struct hw_csv_cell *cell, struct hw_entry_error *error)
{
	char shown[HW_SHOWN_MAX];
	lower(cell);
	*to = (struct hw_csv_column){.unnamed = cell->len == 0};
	if (to->unnamed)
		return 0;
	for (unsigned i = 0; names[i]; i++)
		if (strlen(names[i]) == cell->len && memcmp(names[i], cell->text, cell->len) == 0) {
			to->column = (enum hw_column)i;
			return 0;
		}
	if (cell->len <= 6 || memcmp(cell->text, "label.", 6) != 0)
		return unknown_column(cell, error);
	if (!hw_label_name_valid(cell->text + 6, cell->len - 6))
		return hw_entry_wrong(error, hw_inventory_show(cell->text, cell->len, shown),
		                      "after label. a name of a to z, 0 to 9 and _, at most %d, no digit first",
		                      HW_LABEL_NAME_MAX);
	to->column = HW_COLUMN_LABEL;
	memcpy(to->label, cell->text + 6, cell->len - 6);
	return 0;
}

static bool is_same(const struct hw_csv_column *a, const struct hw_csv_column *b)
{
	return !a->unnamed && !b->unnamed && a->column == b->column && strcmp(a->label, b->label) == 0;
}

static int read_columns(struct hw_csv *c, size_t n, struct hw_entry_error *error)
{
	bool has_id = false;
	if (n > HW_CSV_COLUMNS_MAX)
		return hw_entry_wrong(error, "", "the header has %zu columns, %d is the most", n, HW_CSV_COLUMNS_MAX);
	for (size_t i = 0; i < n; i++) {
		if (read_column(&c->columns[i], &c->cells[i], error) < 0)
			return -EINVAL;
		has_id |= !c->columns[i].unnamed && c->columns[i].column == HW_COLUMN_ID;
		for (size_t k = 0; k < i; k++)
			if (is_same(&c->columns[i], &c->columns[k]))
				return hw_entry_wrong(error, "", "column '%.*s' is there twice", (int)c->cells[i].len,
				                      c->cells[i].text);
	}
	if (!has_id)
		return hw_entry_wrong(error, "id",
		                      "the header lacks the column 'id': the first line must name the columns");
	c->n_columns = n;
	return 0;
}

/* If the file is no CSV in UTF-8 but another known format, returns a message that names the format; otherwise NULL. */
static const char *foreign(const char *row, size_t len)
{
	if (len >= 4 && memcmp(row, "PK\3\4", 4) == 0)
		return "this is a spreadsheet's own file (xlsx, ods): save it as CSV UTF-8";
	if (len >= 4 && memcmp(row, "\xd0\xcf\x11\xe0", 4) == 0)
		return "this is a spreadsheet's own file (xls): save it as CSV UTF-8";
	if (len >= 2 && (memcmp(row, "\xff\xfe", 2) == 0 || memcmp(row, "\xfe\xff", 2) == 0 || memchr(row, '\0', len)))
		return "the file is UTF-16: save it as CSV UTF-8";
	if (len >= 1 && (*row == '{' || *row == '['))
		return "this is JSON: name the file .ndjson";
	if (memchr(row, '\r', len))
		return "the lines end with CR alone: save the file as CSV UTF-8";
	return NULL;
}

/* Returns the first separator outside of quotes. If the header has only one cell, returns ','. */
static char find_separator(const char *row, size_t len)
{
	bool quoted = false;
	for (size_t i = 0; i < len; i++) {
		quoted ^= row[i] == '"';
		if (!quoted && (row[i] == ',' || row[i] == ';'))
			return row[i];
	}
	return ',';
}

static int read_header(struct hw_csv *c, char *row, size_t len, struct hw_entry_error *error)
{
	const char *what = foreign(row, len);
	size_t n;
	if (what)
		return hw_entry_wrong(error, "", "%s", what);
	if (len >= 4 && strncmp(row, "sep=", 4) == 0) {
		if (len != 5 || (row[4] != ',' && row[4] != ';'))
			return hw_entry_wrong(error, "", "the separator must be , or ;");
		c->separator = row[4];
		return 0;
	}
	if (!c->separator)
		c->separator = find_separator(row, len);
	if (split(c, row, len, &n) < 0)
		return hw_entry_wrong(error, "", "the quotes of the header are wrong");
	if (n == 1 && c->cells[0].len == 0) /* an empty line */
		return 0;
	if (read_columns(c, n, error) < 0)
		return -EINVAL;
	c->has_header = true;
	return 0;
}

static const char *column_name(const struct hw_csv *c, size_t i, char buf[64])
{
	if (i >= c->n_columns || c->columns[i].unnamed)
		hw_print(buf, 64, "%zu", i + 1);
	else if (c->columns[i].column == HW_COLUMN_LABEL)
		hw_print(buf, 64, "label.%s", c->columns[i].label);
	else
		hw_print(buf, 64, "%s", names[c->columns[i].column]);
	return buf;
}

/* Checks that a cell is valid UTF-8. Adds the number of lines before the wrong byte, or of all lines in the cell, to
 * *line. */
static int check_encoding(const struct hw_csv_cell *cell, struct hw_entry_error *error, uint64_t *line)
{
	uint64_t lines = 0;
	for (size_t i = 0, n; i < cell->len; i += n) {
		uint32_t c;
		n = hw_utf8_next((const unsigned char *)cell->text + i, cell->len - i, &c);
		if (n == 0) {
			*line += lines;
			return hw_entry_wrong(error, "",
			                      "byte 0x%02x is not UTF-8: save the file as CSV UTF-8, not in the "
			                      "encoding of Windows or Latin-1",
			                      (unsigned char)cell->text[i]);
		}
		lines += c == '\n';
	}
	*line += lines;
	return 0;
}

static int set_cell(struct hw_csv *c, size_t i, struct hw_patch *p, struct hw_entry_error *error)
{
	const struct hw_csv_column *column = &c->columns[i];
	return hw_patch_set(p, column->column, column->column == HW_COLUMN_LABEL ? column->label : NULL,
	                    c->cells[i].text, c->cells[i].len, error);
}

static bool is_column(const struct hw_csv *c, size_t i, enum hw_column column)
{
	return !c->columns[i].unnamed && c->columns[i].column == column;
}

/* Stores the cells in the patch. The column "labels" comes before the columns of single labels, so a single label
 * takes precedence. */
static int read_values(struct hw_csv *c, char id[HW_ID_MAX + 1], struct hw_patch *p, struct hw_entry_error *error)
{
	hw_patch_init(p);
	for (size_t i = 0; i < c->n_columns; i++) {
		struct hw_csv_cell *cell = &c->cells[i];
		if (is_column(c, i, HW_COLUMN_ID)) {
			if (hw_entry_check_id("id", cell->text, cell->len, error) < 0)
				return -EINVAL;
			memcpy(id, cell->text, cell->len);
			id[cell->len] = '\0';
		} else if (is_column(c, i, HW_COLUMN_LABELS) && set_cell(c, i, p, error) < 0) {
			return -EINVAL;
		}
	}
	for (size_t i = 0; i < c->n_columns; i++)
		if (!c->columns[i].unnamed && !is_column(c, i, HW_COLUMN_ID) && !is_column(c, i, HW_COLUMN_LABELS) &&
		    set_cell(c, i, p, error) < 0)
			return -EINVAL;
	return 0;
}

/* Checks the cells of a row, before their values are parsed. Returns 1; 0 if all cells are empty; or -EINVAL. */
static int check_cells(struct hw_csv *c, size_t n, struct hw_entry_error *error, uint64_t *line)
{
	char column[64];
	bool any = false;
	for (size_t i = 0; i < n && i < HW_CSV_COLUMNS_MAX; i++) {
		const char *text = c->cells[i].text;
		size_t len = c->cells[i].len;
		hw_inventory_trim(&text, &len);
		any |= len > 0;
		if (check_encoding(&c->cells[i], error, line) < 0) {
			memcpy(error->column, column_name(c, i, column), sizeof(column));
			return -EINVAL;
		}
		if (len > 0 && i >= c->n_columns)
			return hw_entry_wrong(error, "", "the row has %zu cells, the header has %zu columns", n,
			                      c->n_columns);
		if (len > 0 && c->columns[i].unnamed)
			return hw_entry_wrong(error, column_name(c, i, column),
			                      "the header has no name for this column");
	}
	return any;
}

int hw_csv_row(struct hw_csv *c, char *row, size_t len, char id[HW_ID_MAX + 1], struct hw_patch *p,
               struct hw_entry_error *error, uint64_t *line)
{
	char column[64];
	size_t n;
	*line = 0;
	c->state = HW_CSV_CELL;
	if (len > 0 && row[len - 1] == '\r')
		len--;
	if (!c->has_header)
		return read_header(c, row, len, error);
	if (split(c, row, len, &n) < 0)
		return hw_entry_wrong(
			error, column_name(c, n, column),
			"the quotes are wrong: one is not closed or not doubled, or white space is outside of them");
	int any = check_cells(c, n, error, line);
	if (any <= 0)
		return any;
	if (n > HW_CSV_COLUMNS_MAX)
		return hw_entry_wrong(error, "", "the row has %zu cells, the header has %zu columns", n, c->n_columns);
	for (; n < c->n_columns; n++)
		c->cells[n] = (struct hw_csv_cell){row, 0};
	*line = 0;
	return read_values(c, id, p, error) < 0 ? -EINVAL : 1;
}

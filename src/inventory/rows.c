/* SPDX-License-Identifier: MIT */
/*
 * See rows.h. The bytes of a row are collected until the row ends. Invariant: `row` has the first `n` bytes of the
 * present row, unless `skips` is set. In that case the row was too long; it was reported, and its rest is skipped.
 */
#include "inventory/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf/value.h"
#include "heartwheel/json_writer.h"
#include "heartwheel/print.h"
#include "heartwheel/report.h"
#include "inventory/csv.h"
#include "inventory/value.h"

struct hw_rows {
	enum hw_rows_format format;
	const struct hw_rows_ops *ops; /* borrowed */
	void *arg;
	uint64_t line, begun; /* the number of the present line, and of the row's first */
	bool skips, stopped, has_rows;
	size_t n;
	struct hw_csv csv;
	struct hw_patch patch;
	char id[HW_ID_MAX + 1];
	char row[HW_ROW_MAX + 2]; /* the line end may have two bytes */
};

struct hw_rows *hw_rows_new(enum hw_rows_format format, const struct hw_rows_ops *ops, void *arg)
{
	struct hw_rows *r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->format = format;
	r->ops = ops;
	r->arg = arg;
	r->line = r->begun = 1;
	return r;
}

void hw_rows_free(struct hw_rows *r)
{
	free(r);
}

static int read_json(struct hw_rows *r, const char *text, size_t len, struct hw_entry_error *error)
{
	hw_inventory_trim(&text, &len);
	if (len == 0)
		return 0;
	if (*text == '[' && !r->has_rows) {
		r->stopped = true;
		return hw_entry_wrong(error, "",
		                      "this is a JSON array: write one object a line, without commas between");
	}
	return hw_patch_parse(&r->patch, text, len, false, r->id, error) < 0 ? -EINVAL : 1;
}

/* Whether the device would be its own parent. */
static int check_parents(struct hw_rows *r, struct hw_entry_error *error)
{
	for (unsigned i = 0; i < r->patch.to.n_parents; i++)
		if (strcmp(r->patch.to.parents[i], r->id) == 0)
			return hw_entry_wrong(error, "parent", "'%s' cannot be its own parent", r->id);
	return 0;
}

static void end_row(struct hw_rows *r)
{
	struct hw_entry_error error;
	uint64_t line = 0;
	char *row = r->row;
	size_t len = r->n;
	bool header = r->format == HW_ROWS_CSV && !r->csv.has_header;
	if (r->begun == 1 && len >= 3 && memcmp(row, "\xef\xbb\xbf", 3) == 0) {
		row += 3;
		len -= 3;
	}
	int rc = r->format == HW_ROWS_CSV ? hw_csv_row(&r->csv, row, len, r->id, &r->patch, &error, &line)
	                                  : read_json(r, row, len, &error);
	if (rc > 0 && check_parents(r, &error) < 0)
		rc = -EINVAL;
	r->stopped |= rc < 0 && header;
	r->has_rows |= rc != 0;
	if (rc < 0)
		r->ops->wrong(r->arg, r->begun + line, &error);
	else if (rc > 0)
		r->ops->row(r->arg, r->begun, r->id, &r->patch);
}

/* Called if a row is too long. If a quote that is not closed makes the row so long, the next line begins a new row. */
static void skip_row(struct hw_rows *r)
{
	struct hw_entry_error error;
	bool quoted = r->format == HW_ROWS_CSV && r->csv.state == HW_CSV_QUOTED;
	bool header = r->format == HW_ROWS_CSV && !r->csv.has_header;
	r->skips = true;
	if (quoted)
		r->csv.state = HW_CSV_PLAIN;
	if (header && memchr(r->row, '\r', r->n) && !memchr(r->row, '\n', r->n))
		hw_entry_wrong(&error, "", "the lines end with CR alone: save the file as CSV UTF-8");
	else
		hw_entry_wrong(&error, "", "the row is longer than 64 KiB%s", quoted ? ": is a quote not closed?" : "");
	r->stopped |= header;
	r->ops->wrong(r->arg, r->begun, &error);
}

/* Takes a whole line that has no quote, if the bytes begin with one and the last row has ended. Returns its length
 * with the line end, or 0. Nearly every row is such a line. */
static size_t take_line(struct hw_rows *r, const char *bytes, size_t len)
{
	if (r->n > 0 || r->skips || r->csv.state == HW_CSV_QUOTED)
		return 0;
	const char *end = memchr(bytes, '\n', len < HW_ROW_MAX ? len : HW_ROW_MAX);
	size_t n = end ? (size_t)(end - bytes) : 0;
	if (n == 0 || (r->format == HW_ROWS_CSV && memchr(bytes, '"', n)))
		return 0;
	memcpy(r->row, bytes, n);
	r->n = n;
	return n + 1;
}

void hw_rows_feed(struct hw_rows *r, const char *bytes, size_t len)
{
	for (size_t i = 0, n; i < len && !r->stopped; i++) {
		n = take_line(r, bytes + i, len - i);
		if (n > 0) {
			r->line++;
			end_row(r);
			r->n = 0;
			r->begun = r->line;
			i += n - 1;
			continue;
		}
		bool ends = r->format == HW_ROWS_CSV ? hw_csv_step(&r->csv, bytes[i]) : bytes[i] == '\n';
		if (!ends && !r->skips) {
			if (r->n > HW_ROW_MAX || (r->n == HW_ROW_MAX && bytes[i] != '\r'))
				skip_row(r);
			else
				r->row[r->n++] = bytes[i];
		}
		r->line += bytes[i] == '\n';
		if (!ends)
			continue;
		if (!r->skips)
			end_row(r);
		r->skips = false;
		r->n = 0;
		r->begun = r->line;
	}
}

void hw_rows_end(struct hw_rows *r)
{
	struct hw_entry_error error;
	if (!r->stopped && !r->skips && r->n > 0)
		end_row(r);
	r->n = 0;
	if (r->stopped || r->format != HW_ROWS_CSV || r->csv.has_header)
		return;
	r->stopped = true;
	hw_entry_wrong(&error, "", "the file is empty: its first line must name the columns, as in id,name");
	r->ops->wrong(r->arg, 1, &error);
}

/* --- writing --- */

size_t hw_rows_print_header(char *buf, size_t cap)
{
	return hw_print(buf, cap, "id,name,group,parent,labels,timeout,note\r\n");
}

/* Appends a cell and then the text `after`. If the cell needs quotes, it gets them. */
static size_t put_cell(char *buf, size_t cap, const char *text, const char *after)
{
	if (!strpbrk(text, ",;\"\r\n\t"))
		return hw_print(buf, cap, "%s%s", text, after);
	size_t n = hw_print(buf, cap, "\"");
	for (; *text && n + 2 < cap; text++) {
		if (*text == '"')
			buf[n++] = '"';
		buf[n++] = *text;
	}
	return n + hw_print(buf + n, cap - n, "\"%s", after);
}

size_t hw_rows_print_csv(const char *id, const struct hw_expected_entry *e, char *buf, size_t cap)
{
	char cell[HW_ENTRY_JSON_MAX], timeout[32] = "";
	size_t n = put_cell(buf, cap, id, ",");
	n += put_cell(buf + n, cap - n, e->name, ",");
	n += put_cell(buf + n, cap - n, e->group, ",");
	hw_entry_print_parents(e, cell, sizeof(cell));
	n += put_cell(buf + n, cap - n, cell, ",");
	hw_entry_print_labels(e, cell, sizeof(cell));
	n += put_cell(buf + n, cap - n, cell, ",");
	if (e->timeout_ms)
		hw_conf_duration_format(e->timeout_ms, timeout, sizeof(timeout));
	n += put_cell(buf + n, cap - n, timeout, ",");
	return n + put_cell(buf + n, cap - n, e->note, "\r\n");
}

size_t hw_rows_print_json(const char *id, const struct hw_expected_entry *e, char *buf, size_t cap)
{
	char json[HW_ENTRY_JSON_MAX];
	size_t n = hw_entry_print(e, json, sizeof(json));
	struct hw_json j;
	hw_json_begin_text(&j, buf, cap - 1);
	hw_json_open(&j, '{');
	hw_json_text(&j, "id", id);
	hw_json_members(&j, json, n);
	hw_json_close(&j, '}');
	hw_json_end_text(&j);
	return j.n + hw_print(buf + j.n, cap - j.n, "\n");
}

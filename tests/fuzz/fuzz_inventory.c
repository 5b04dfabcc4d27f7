/* SPDX-License-Identifier: MIT */
/*
 * A file of the inventory: any bytes, as CSV or NDJSON by the first byte. The pieces do not matter; each row keeps
 * every limit, and is read as the same row after it was written; each error has a line of the file.
 */
#include <string.h>

#include "fuzz.h"
#include "heartwheel/topic.h"
#include "inventory/rows.h"

struct rows {
	uint64_t hash, lines, last;
	bool writes;
};

static void add(struct rows *r, const char *text)
{
	for (; *text; text++)
		r->hash = (r->hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
}

static void on_row(void *arg, uint64_t line, const char *id, const struct hw_patch *p);

static void on_wrong(void *arg, uint64_t line, const struct hw_entry_error *error)
{
	struct rows *r = arg;
	MUST(*error->message && line >= 1 && line <= r->lines);
	add(r, error->column);
	add(r, error->message);
}

static const struct hw_rows_ops ops = {on_row, on_wrong};

static struct rows read_all(enum hw_rows_format format, const char *text, size_t len, size_t piece, bool writes)
{
	struct rows r = {.lines = 1, .writes = writes};
	struct hw_rows *reader = hw_rows_new(format, &ops, &r);
	MUST(reader);
	for (size_t i = 0; i < len; i++)
		r.lines += text[i] == '\n';
	for (size_t at = 0; at < len; at += piece)
		hw_rows_feed(reader, text + at, piece < len - at ? piece : len - at);
	hw_rows_end(reader);
	hw_rows_free(reader);
	return r;
}

/* The row is written in both formats; each must give the id and the entry again, and no error. */
static void write_again(const char *id, const struct hw_expected_entry *e)
{
	static char line[HW_LINE_MAX + 64];
	size_t n = hw_rows_print_header(line, sizeof(line));
	n += hw_rows_print_csv(id, e, line + n, HW_LINE_MAX);
	struct rows a = read_all(HW_ROWS_CSV, line, n, n, false);
	n = hw_rows_print_json(id, e, line, HW_LINE_MAX);
	struct rows b = read_all(HW_ROWS_NDJSON, line, n, n, false);
	MUST(a.hash == b.hash && a.hash && a.last == 2 && b.last == 1);
}

static void on_row(void *arg, uint64_t line, const char *id, const struct hw_patch *p)
{
	static char json[HW_ENTRY_JSON_MAX];
	struct hw_entry_error error;
	struct rows *r = arg;
	struct hw_expected_entry e;
	MUST(hw_id_valid(id, strlen(id)) && line > r->last && line <= r->lines);
	r->last = line;
	hw_entry_init(&e);
	MUST(hw_entry_merge(&e, p, &error) == 0);
	hw_entry_print(&e, json, sizeof(json));
	add(r, id);
	add(r, json);
	if (r->writes)
		write_again(id, &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	enum hw_rows_format format = data[0] == 'j' ? HW_ROWS_NDJSON : HW_ROWS_CSV;
	char *text = malloc(size);
	MUST(text);
	memcpy(text, data + 1, size - 1);
	struct rows whole = read_all(format, text, size - 1, size, true);
	struct rows bytes = read_all(format, text, size - 1, 1, false);
	MUST(whole.hash == bytes.hash);
	free(text);
	return 0;
}

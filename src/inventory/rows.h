/* SPDX-License-Identifier: MIT */
/*
 * Reads a file of the inventory, as CSV or NDJSON, from pieces of any size. For each row, the caller gets an id and a
 * patch, or the error of the row with its line. Pure.
 *
 * CSV is RFC 4180 as spreadsheets write it: UTF-8 with or without a byte order mark; CRLF or LF; cells separated by ','
 * or ';', whichever the header has; a first line "sep=;". The names of the columns may have capital letters. Rows
 * without any value are skipped. If a row has too few cells, the missing ones count as empty, because spreadsheets
 * leave empty cells out. If the file has another known format, one message names that format.
 *
 * Cost: 80 KB, one pass over the bytes; no other allocation.
 */
#ifndef HW_INVENTORY_ROWS_H
#define HW_INVENTORY_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inventory/entry.h"

#define HW_ROW_MAX 65536 /* bytes of a row without its line end */

enum hw_rows_format { HW_ROWS_CSV, HW_ROWS_NDJSON };

struct hw_rows;

struct hw_rows_ops {
	/* Called with a row that has no error of its own. `line`: the first line of the row, counted from 1. The
	 * arguments are borrowed for the call. */
	void (*row)(void *arg, uint64_t line, const char *id, const struct hw_patch *p);
	/* Called with the first error of a wrong row, or with an error of the whole file. After an error of the
	 * whole file, no more rows are read. */
	void (*wrong)(void *arg, uint64_t line, const struct hw_entry_error *error);
};

/* NULL if there is no memory. `ops` is borrowed. */
struct hw_rows *hw_rows_new(enum hw_rows_format format, const struct hw_rows_ops *ops, void *arg);
void hw_rows_free(struct hw_rows *r);

/* Reads the next piece of the file. Calls row() or wrong() for each row that ends in this piece. */
void hw_rows_feed(struct hw_rows *r, const char *bytes, size_t len);
/* Called at the end of the file. Reads a last row that has no line end. If a CSV file has no header, reports that. */
void hw_rows_end(struct hw_rows *r);

/* Write the header of a CSV file, and an entry as a row of CSV or as a line of NDJSON, with line end and NUL.
 * hw_rows_feed() can read them. Return the length. `cap` is at least HW_LINE_MAX. */
#define HW_LINE_MAX (3 * HW_ENTRY_JSON_MAX)
size_t hw_rows_print_header(char *buf, size_t cap);
size_t hw_rows_print_csv(const char *id, const struct hw_expected_entry *e, char *buf, size_t cap);
size_t hw_rows_print_json(const char *id, const struct hw_expected_entry *e, char *buf, size_t cap);

#endif

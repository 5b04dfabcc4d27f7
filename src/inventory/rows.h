/* SPDX-License-Identifier: MIT */
/*
 * Reads a file of the inventory, as CSV or NDJSON, from pieces of any size. Each row gives an id and a patch, or what
 * is wrong with it and in which line. Pure.
 *
 * CSV is RFC 4180 as spreadsheets write it: UTF-8 with or without a byte order mark; CRLF or LF; cells separated by ','
 * or ';', whichever the header has; a first line "sep=;". Column names in any case. Rows without any value are skipped.
 * Cells that a row lacks at its end are empty: spreadsheets leave them out. A file that is not one of these gets one
 * message that says what it is.
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
	/* A row that is right in itself. `line`: its first line, from 1. Borrowed for the call. */
	void (*row)(void *arg, uint64_t line, const char *id, const struct hw_patch *p);
	/* A row that is wrong; its first error. Or the file is wrong, and no more rows are read. */
	void (*wrong)(void *arg, uint64_t line, const struct hw_entry_error *error);
};

/* NULL without memory. `ops` is borrowed. */
struct hw_rows *hw_rows_new(enum hw_rows_format format, const struct hw_rows_ops *ops, void *arg);
void hw_rows_free(struct hw_rows *r);

/* Reads the next piece; calls back for each row that ends in it. */
void hw_rows_feed(struct hw_rows *r, const char *bytes, size_t len);
/* The file is at its end: reads a last row without a line end. A CSV file without a header is wrong. */
void hw_rows_end(struct hw_rows *r);

/* The header of a CSV file, and an entry as a row of it or as a line of NDJSON, with their line ends and a NUL, as
 * hw_rows_feed() reads them. Return the length. `cap` is at least HW_LINE_MAX. */
#define HW_LINE_MAX (3 * HW_ENTRY_JSON_MAX)
size_t hw_rows_print_header(char *buf, size_t cap);
size_t hw_rows_print_csv(const char *id, const struct hw_expected_entry *e, char *buf, size_t cap);
size_t hw_rows_print_json(const char *id, const struct hw_expected_entry *e, char *buf, size_t cap);

#endif

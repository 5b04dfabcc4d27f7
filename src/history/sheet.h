/* SPDX-License-Identifier: MIT */
/*
 * The rows of a report in the client's format: objects of a JSON array, or lines of CSV (RFC 4180). The cells of a row
 * are written in the order of the columns. In JSON, each cell has the name of its column.
 */
#ifndef HW_HISTORY_SHEET_H
#define HW_HISTORY_SHEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/json.h"

struct evbuffer;

struct hw_sheet {
	struct hw_json j;     /* a JSON object; the caller writes its members other than the rows */
	struct evbuffer *out; /* borrowed */
	bool csv;
	bool fresh; /* the next cell is the first of its row */
};

/* Begins a sheet. `rows`: name of the array; `head`: names of the columns, separated by commas */
void hw_sheet_begin(struct hw_sheet *s, struct evbuffer *out, bool csv);
void hw_sheet_open(struct hw_sheet *s, const char *rows, const char *head);
void hw_sheet_row(struct hw_sheet *s);
void hw_sheet_text(struct hw_sheet *s, const char *key, const char *text, size_t len);
void hw_sheet_int(struct hw_sheet *s, const char *key, int64_t v);
void hw_sheet_bool(struct hw_sheet *s, const char *key, bool v);
/* Takes milliseconds and writes seconds. */
void hw_sheet_seconds(struct hw_sheet *s, const char *key, int64_t ms);
/* Writes over / under × unit, or null (in CSV an empty cell) if `under` is 0. `decimals` is used only in CSV. */
void hw_sheet_ratio(struct hw_sheet *s, const char *key, int64_t over, int64_t under, double unit, int decimals);
/* Writes null; in CSV an empty cell. */
void hw_sheet_null(struct hw_sheet *s, const char *key);
void hw_sheet_row_end(struct hw_sheet *s);
void hw_sheet_close(struct hw_sheet *s);
/* Returns 0 or -ENOMEM. */
int hw_sheet_end(struct hw_sheet *s);

#endif

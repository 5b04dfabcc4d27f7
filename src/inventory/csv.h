/* SPDX-License-Identifier: MIT */
/* Rows of a CSV file: where a row ends, its cells, and the columns of the header. Internal to src/inventory. */
#ifndef HW_INVENTORY_CSV_H
#define HW_INVENTORY_CSV_H

#include "inventory/entry.h"

#define HW_CSV_COLUMNS_MAX 128

struct hw_csv_cell {
	char *text; /* points into the row */
	size_t len;
};

struct hw_csv_column {
	enum hw_column column;
	bool unnamed; /* the header's cell is empty; so must be all others */
	char label[HW_LABEL_NAME_MAX + 1];
};

struct hw_csv {
	char separator; /* NUL: not known before the header */
	bool has_header;
	enum { HW_CSV_CELL, HW_CSV_PLAIN, HW_CSV_QUOTED, HW_CSV_CLOSED } state; /* before the next byte */
	size_t n_columns;
	struct hw_csv_column columns[HW_CSV_COLUMNS_MAX];
	struct hw_csv_cell cells[HW_CSV_COLUMNS_MAX];
};

/* Advances by a byte. Returns whether the row ends with it. */
bool hw_csv_step(struct hw_csv *c, char byte);

/*
 * Parses a whole row, without its LF; changes the bytes of the row. Returns 1 with `id` and `p`. Returns 0 if the row
 * is the header or has no values. Returns -EINVAL with `*error`; *line is then the number of lines between the first
 * line of the row and the error.
 */
int hw_csv_row(struct hw_csv *c, char *row, size_t len, char id[HW_ID_MAX + 1], struct hw_patch *p,
               struct hw_entry_error *error, uint64_t *line);

#endif

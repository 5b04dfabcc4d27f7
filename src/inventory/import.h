/* SPDX-License-Identifier: MIT */
/*
 * An import: the rows of a file, checked, and compared with the stored entries. The caller drives it in these steps:
 *
 * 1. hw_import_feed() for each piece of the file, then hw_import_end(): rows are read and checked.
 * 2. hw_import_compare() once for each row, with the stored entry of its id.
 * 3. hw_import_merge(): applies each row that differs to the stored entry. Then row.state and row.json are final.
 *
 * Steps 1 and 3 take long and may run in a thread, if the loop does not use the object meanwhile. Pure.
 *
 * Cost: about 60 bytes a row, its id and its entry as JSON, and a copy of each stored entry that differs.
 */
#ifndef HW_INVENTORY_IMPORT_H
#define HW_INVENTORY_IMPORT_H

#include <stdatomic.h>

#include "inventory/rows.h"

#define HW_IMPORT_ROWS_MAX   10000000
#define HW_IMPORT_ERRORS_MAX 100 /* listed; all are counted */

enum hw_import_state {
	HW_IMPORT_NEW,  /* the id was not expected */
	HW_IMPORT_SAME, /* the row changes nothing */
	HW_IMPORT_DIFFERS,
	HW_IMPORT_WRONG /* found wrong in step 3 */
};

struct hw_import_row {
	const char *id, *json; /* owned by the import; `json`: the entry to write, unless `state` is SAME or WRONG */
	const char *cleared;   /* internal */
	uint32_t json_len, line, hash;
	uint8_t id_len, given;
	uint8_t state; /* enum hw_import_state */
	bool same_source;
	int64_t since_ms; /* of the stored entry, which keeps it; of a new one, hw_import.now_ms */
};

struct hw_import_error {
	uint64_t line;
	struct hw_entry_error what;
};

struct hw_import {
	char source[HW_ENTRY_SOURCE_MAX + 1];
	int64_t now_ms;           /* wall time: since_ms of new ids */
	char **groups;            /* owned; the groups that entries may name, followed by NULL */
	uint64_t n_rows, n_wrong; /* all rows, and wrong ones among them */
	size_t n_errors;
	struct hw_import_error errors[HW_IMPORT_ERRORS_MAX]; /* by line after step 1, and after step 3 */
	bool no_memory;                                      /* the import must be given up */
	atomic_bool cancelled; /* the caller may set it at any time: step 1 then takes no more rows, and step 3 ends
	                          early */
	size_t n;              /* right rows */
	uint64_t n_new, n_differ, n_same; /* after step 3: right rows by their state */
	struct hw_import_row *rows;
	/* internal */
	struct hw_rows *reader;
	char tail[6 * HW_ENTRY_SOURCE_MAX + 64]; /* "source":"NAME","since_ms":N} */
	size_t tail_len, source_len;             /* source_len: without N and what follows */
	size_t cap;
	uint8_t key[16]; /* of the index */
	uint32_t *index; /* open addressing: numbers of rows plus 1 */
	size_t index_cap;
	char **blocks; /* memory of texts */
	size_t n_blocks, block_at;
};

/* Creates an import. `groups`: the names of the groups, then NULL; copied. `key`: random, so that no file can make its
 * ids collide in the index. NULL if there is no memory. */
struct hw_import *hw_import_new(enum hw_rows_format format, const char *source, int64_t now_ms,
                                const char *const *groups, const uint8_t key[16]);
void hw_import_free(struct hw_import *m);

void hw_import_feed(struct hw_import *m, const char *bytes, size_t len);
void hw_import_end(struct hw_import *m);

/* Compares a row with the stored entry of its id. `values`: the stored entry as hw_entry_print() writes it, without
 * source and since_ms, which follow. NULL: the id is not expected. */
void hw_import_compare(struct hw_import *m, size_t row, const char *values, size_t len, const char *source,
                       int64_t since_ms);
void hw_import_merge(struct hw_import *m);
/* After step 3: whether the stored entry (`values`, `source`) is the one that the row writes. */
bool hw_import_is_stored(const struct hw_import *m, size_t row, const char *values, size_t len, const char *source);

/* Whether a row names the id. */
bool hw_import_names(const struct hw_import *m, const char *id, size_t len);

#endif

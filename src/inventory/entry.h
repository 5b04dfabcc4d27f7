/* SPDX-License-Identifier: MIT */
/*
 * An entry of the inventory: what an operator knows about an expected device. And a patch: the values that a row of a
 * file, or a request, sets or clears. Pure.
 *
 * An entry that these functions have made keeps every limit. Texts are valid UTF-8 without control characters (a note
 * may have line ends and tabs), and no text begins or ends with white space. Labels are sorted by name. So equal
 * entries are printed as equal JSON.
 *
 * Cost: no allocation. An entry has 5 KB, a patch 8 KB: for the stack, not for a table.
 */
#ifndef HW_INVENTORY_ENTRY_H
#define HW_INVENTORY_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/group.h"

/* In bytes. */
#define HW_ENTRY_NAME_MAX   128
#define HW_ENTRY_GROUP_MAX  64
#define HW_ENTRY_NOTE_MAX   1024
#define HW_ENTRY_SOURCE_MAX 128
#define HW_LABEL_NAME_MAX   32
#define HW_LABEL_VALUE_MAX  128

#define HW_LABELS_MAX           16 /* of an entry */
#define HW_PATCH_LABELS_MAX     64 /* that a patch clears */
#define HW_ENTRY_TIMEOUT_MIN_MS INT64_C(100)
#define HW_ENTRY_TIMEOUT_MAX_MS (INT64_C(3650) * 86400 * 1000)

#define HW_ENTRY_JSON_MAX 12288 /* longest JSON of an entry, with the NUL: each byte of a text may be escaped */

struct hw_label {
	char name[HW_LABEL_NAME_MAX + 1], value[HW_LABEL_VALUE_MAX + 1];
};

/* An empty text, a timeout of 0 and no parents mean: the inventory does not say. */
struct hw_expected_entry {
	int64_t timeout_ms;
	int64_t since_ms; /* wall time at which the id became expected */
	unsigned n_parents, n_labels;
	char name[HW_ENTRY_NAME_MAX + 1], group[HW_ENTRY_GROUP_MAX + 1], note[HW_ENTRY_NOTE_MAX + 1];
	char source[HW_ENTRY_SOURCE_MAX + 1]; /* the last import that named the id; "local": a request */
	char parents[HW_PARENTS_MAX][HW_ID_MAX + 1];
	struct hw_label labels[HW_LABELS_MAX]; /* sorted by name */
};

/* The columns of a file. */
enum hw_column {
	HW_COLUMN_ID,
	HW_COLUMN_NAME,
	HW_COLUMN_GROUP,
	HW_COLUMN_PARENT,
	HW_COLUMN_LABELS, /* all labels: those that are not named are cleared */
	HW_COLUMN_TIMEOUT,
	HW_COLUMN_NOTE,
	HW_COLUMN_LABEL /* label.NAME: one label */
};

struct hw_patch {
	unsigned given;     /* bits 1 << enum hw_column: set, or cleared if the value in `to` is empty */
	unsigned n_cleared; /* labels to clear */
	char cleared[HW_PATCH_LABELS_MAX][HW_LABEL_NAME_MAX + 1];
	struct hw_expected_entry to;
};

/* What is wrong, as "column 'COLUMN': MESSAGE". The column may be "": the row as a whole is wrong. */
struct hw_entry_error {
	char column[64], message[256];
};

/* Makes the entry empty. Texts beyond their lengths are not cleared, so entries cannot be compared by memcmp(). */
void hw_entry_init(struct hw_expected_entry *e);

/* Reads an entry from JSON, as hw_entry_print() writes it, or as it is in another version: unknown members are skipped.
 * Returns 0, or -EINVAL with `*error`. */
int hw_entry_parse(struct hw_expected_entry *e, const char *json, size_t len, struct hw_entry_error *error);

/* Writes the entry as compact JSON without its empty members, with a NUL. Returns its length. `cap` is at least
 * HW_ENTRY_JSON_MAX. */
size_t hw_entry_print(const struct hw_expected_entry *e, char *buf, size_t cap);

/* The value of a label; NULL: the entry does not have it. */
const char *hw_entry_label(const struct hw_expected_entry *e, const char *name);

/* A patch that changes nothing. */
void hw_patch_init(struct hw_patch *p);

/*
 * Adds the value of a column, as text: parents are separated by '|', labels are written "site=north;floor=2" (a value
 * with ';' in double quotes, its own quotes doubled), a timeout is written as in monitor.conf. `label`: the name for
 * HW_COLUMN_LABEL, otherwise NULL. White space around the value is removed; nothing left: the value is cleared. Not for
 * HW_COLUMN_ID. Returns 0, or -EINVAL with `*error`; the patch must not be used then.
 */
int hw_patch_set(struct hw_patch *p, enum hw_column column, const char *label, const char *text, size_t len,
                 struct hw_entry_error *error);

/*
 * Reads a patch from a JSON object with the names of the columns; null clears. "parent" is a text or an array,
 * "labels" an object. "timeout_ms" is a number. "source" and "since_ms" are skipped, so that an exported entry can be
 * read. `merge`: labels that are not named stay, as in PATCH /v1/devices/ID; otherwise they are cleared.
 *
 * `id` NULL: a member "id" is an error. Otherwise it is required, checked as by hw_entry_check_id() and written there.
 * Returns 0, or -EINVAL with `*error`.
 */
int hw_patch_parse(struct hw_patch *p, const char *json, size_t len, bool merge, char id[HW_ID_MAX + 1],
                   struct hw_entry_error *error);

/* Applies a patch. The source and since_ms stay. Returns 0, or -EINVAL with `*error` and an entry that must not be
 * used: it has too many labels. */
int hw_entry_merge(struct hw_expected_entry *e, const struct hw_patch *p, struct hw_entry_error *error);

/* Checks an id, with the faults that spreadsheets bring into ids. `column`: the name to report. Returns 0, or -EINVAL
 * with `*error`. */
int hw_entry_check_id(const char *column, const char *id, size_t len, struct hw_entry_error *error);

/* Whether the name can be that of a label: [a-z_][a-z0-9_]*, at most HW_LABEL_NAME_MAX bytes. */
bool hw_label_name_valid(const char *name, size_t len);

/* Writes the cell of the column "labels" or "parent" as hw_patch_set() reads it, with a NUL. Returns its length. `cap`
 * is at least HW_ENTRY_JSON_MAX. */
size_t hw_entry_print_labels(const struct hw_expected_entry *e, char *buf, size_t cap);
size_t hw_entry_print_parents(const struct hw_expected_entry *e, char *buf, size_t cap);

/* Fills `*error`, for checks of the callers. Returns -EINVAL. */
int hw_entry_wrong(struct hw_entry_error *error, const char *column, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif

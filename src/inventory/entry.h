/* SPDX-License-Identifier: MIT */
/*
 * An entry of the inventory: what an operator knows about an expected device. A patch is the set of values that a row
 * of a file, or a request, sets or clears. Pure.
 *
 * Every entry that these functions have made is within all limits. Texts are valid UTF-8 without control characters (a
 * note may have line ends and tabs), and no text begins or ends with white space. Labels are sorted by name. So equal
 * entries are printed as equal JSON.
 *
 * Cost: no allocation. An entry has 5 KB and a patch 8 KB, so they are meant for the stack and not for a table.
 */
#ifndef HW_INVENTORY_ENTRY_H
#define HW_INVENTORY_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/label.h"

/* In bytes. */
#define HW_ENTRY_NAME_MAX   128
#define HW_ENTRY_GROUP_MAX  64
#define HW_ENTRY_NOTE_MAX   1024
#define HW_ENTRY_SOURCE_MAX 128

#define HW_LABELS_MAX           16 /* of an entry */
#define HW_PATCH_LABELS_MAX     64 /* that a patch clears */
#define HW_ENTRY_TIMEOUT_MIN_MS INT64_C(100)
#define HW_ENTRY_TIMEOUT_MAX_MS (INT64_C(3650) * 86400 * 1000)

#define HW_ENTRY_JSON_MAX 12288 /* the longest JSON of an entry, with the NUL; each byte may need an escape */

struct hw_label {
	char name[HW_LABEL_NAME_MAX + 1], value[HW_LABEL_VALUE_MAX + 1];
};

/* If a text is empty, a timeout is 0, or there are no parents, the inventory has no value there. */
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
	unsigned given;     /* bits 1 << enum hw_column of the values that the patch changes: a value is set, or
	                     * cleared if it is empty in `to` */
	unsigned n_cleared; /* labels to clear */
	char cleared[HW_PATCH_LABELS_MAX][HW_LABEL_NAME_MAX + 1];
	struct hw_expected_entry to;
};

/* The error, as "column 'COLUMN': MESSAGE". If the column is "", the message is about the whole row. */
struct hw_entry_error {
	char column[64], message[256];
};

/* Makes the entry empty. Texts beyond their lengths are not cleared, so entries cannot be compared by memcmp(). */
void hw_entry_init(struct hw_expected_entry *e);

/* Parses an entry from JSON, as hw_entry_print() of this or another version writes it: unknown members are skipped.
 * Returns 0, or -EINVAL with `*error`. */
int hw_entry_parse(struct hw_expected_entry *e, const char *json, size_t len, struct hw_entry_error *error);
/* Like hw_entry_parse(), but without checks, for JSON that hw_entry_print() of this process has written. */
int hw_entry_read(struct hw_expected_entry *e, const char *json, size_t len, struct hw_entry_error *error);

/* Reads only the members name, group, parent, timeout_ms, source and since_ms of an entry that hw_entry_print() has
 * written. e->n_labels is 1 if there are labels; their texts, and the note, are not read. Returns the length of the
 * JSON up to the member source or since_ms, without the comma before it, or up to the closing brace. */
size_t hw_entry_outline(struct hw_expected_entry *e, const char *json, size_t len);

/* Writes the entry as compact JSON without its empty members, with a NUL. Returns its length. `cap` is at least
 * HW_ENTRY_JSON_MAX. */
size_t hw_entry_print(const struct hw_expected_entry *e, char *buf, size_t cap);

/* Returns the value of a label; NULL: the entry does not have that label. */
const char *hw_entry_label(const struct hw_expected_entry *e, const char *name);

/* A patch that changes nothing. */
void hw_patch_init(struct hw_patch *p);

/*
 * Adds the value of a column to the patch. The value is a text: parents are separated by '|'; labels are written as in
 * "site=north;floor=2" (a value with a ';' stands in double quotes, and quotes within it are doubled); a timeout is
 * written as in monitor.conf. White space around the value is removed. If nothing is left, the patch clears the value.
 * `label`: the name for HW_COLUMN_LABEL, otherwise NULL. Must not be called for HW_COLUMN_ID. Returns 0, or -EINVAL
 * with `*error`, and the patch must not be used then.
 */
int hw_patch_set(struct hw_patch *p, enum hw_column column, const char *label, const char *text, size_t len,
                 struct hw_entry_error *error);

/*
 * Parses a patch from a JSON object whose members are the columns. "parent" is a text or an array, "labels" an object,
 * and "timeout_ms" a number. The value null clears a column. "source" and "since_ms" are skipped, so that an exported
 * entry can be parsed. `merge`: labels that the object does not name stay, as in PATCH /v1/devices/ID; otherwise they
 * are cleared.
 *
 * `id` NULL: a member "id" is an error. Otherwise "id" is required; it is checked like in hw_entry_check_id() and
 * copied to `id`. Returns 0, or -EINVAL with `*error`.
 */
int hw_patch_parse(struct hw_patch *p, const char *json, size_t len, bool merge, char id[HW_ID_MAX + 1],
                   struct hw_entry_error *error);

/* Applies a patch to an entry, which keeps its source and since_ms. Returns 0. If the entry would have too many
 * labels, returns -EINVAL with `*error`, and the entry must not be used then. */
int hw_entry_merge(struct hw_expected_entry *e, const struct hw_patch *p, struct hw_entry_error *error);

/* Checks an id, also for the damage that spreadsheets do to ids. `column`: the name for the error message. Returns
 * 0, or -EINVAL with `*error`. */
int hw_entry_check_id(const char *column, const char *id, size_t len, struct hw_entry_error *error);

/* Writes the cell of the column "labels" or "parent" as hw_patch_set() reads it, with a NUL. Returns its length. `cap`
 * is at least HW_ENTRY_JSON_MAX. */
size_t hw_entry_print_labels(const struct hw_expected_entry *e, char *buf, size_t cap);
size_t hw_entry_print_parents(const struct hw_expected_entry *e, char *buf, size_t cap);

/* Writes an error to `*error`, for checks that the callers make. Returns -EINVAL. */
int hw_entry_wrong(struct hw_entry_error *error, const char *column, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The codec of the event stream: the names and the order of an entry's fields, and the conversion of fields into a
 * transition. A reader of the stream passes the fields of an entry one by one:
 *
 *   hw_entry_begin(&e); hw_entry_field() for each field; `e` is a transition if hw_entry_is_whole()
 *
 * The entry's offset is not a field: see hw_stream_id_parse().
 */
#ifndef HEARTWHEEL_ENTRY_H
#define HEARTWHEEL_ENTRY_H

#include <stdbool.h>
#include <stddef.h>

#include "heartwheel/event.h"

enum hw_entry_name {
	HW_ENTRY_ID,
	HW_ENTRY_STATE,
	HW_ENTRY_REASON,
	HW_ENTRY_TIME,
	HW_ENTRY_LAST_SEEN,
	HW_ENTRY_GROUP,
	HW_ENTRY_NODE,
	HW_ENTRY_SEQ,
	HW_ENTRY_EPOCH,
	HW_ENTRY_PARENT,
	HW_ENTRY_TIMEOUT,
	HW_ENTRY_WAIT,
	HW_ENTRY_FORM,
	HW_ENTRY_NAMES
};

/* "id", "state", "reason", "time_ms", "last_seen_ms", "group", "node", "seq", "epoch", "parent", "timeout_ms",
 * "wait_ms", "form". Programs of operators read these names, so they must not change. */
const char *hw_entry_name(enum hw_entry_name n);

struct hw_entry {
	struct hw_event event; /* its texts are borrowed from the fields; "": none */
	unsigned has;          /* a bit per enum hw_entry_name that had a valid value */
};

void hw_entry_begin(struct hw_entry *e);
/* Parses a group's form (core/form.h): at most 8 hexadecimal digits. Returns false, with *form undefined, if the text
 * is no form. */
bool hw_entry_form(const char *text, size_t len, uint64_t *form);
/* Ignores an unknown name, and a value that is invalid for its name. */
void hw_entry_field(struct hw_entry *e, const char *name, size_t name_len, const char *value, size_t len);
/* Whether the entry has a device, its new state and the reason. */
bool hw_entry_is_whole(const struct hw_entry *e);

#endif

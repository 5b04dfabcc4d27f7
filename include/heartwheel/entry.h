/* SPDX-License-Identifier: MIT */
/*
 * The codec of the event stream: what the fields of an entry are called, in which order they are written, and how they
 * are read back into a transition. Whoever follows the stream takes the fields of an entry one by one:
 *
 *   hw_entry_begin(&e); then hw_entry_field() for each; then `e` is one if hw_entry_is_whole()
 *
 * The entry's place is not among the fields: hw_event_id_parse().
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
	HW_ENTRY_NAMES
};

/* "id", "state", "reason", "time_ms", "last_seen_ms", "group", "node", "seq", "epoch": others' scripts read them. */
const char *hw_entry_name(enum hw_entry_name n);

struct hw_entry {
	struct hw_event event; /* texts are borrowed from the fields; "" if there is none */
	unsigned has;          /* bits: which names had a value that is one */
};

void hw_entry_begin(struct hw_entry *e);
/* A name that is unknown, and a value that is none of its name's, are left out. */
void hw_entry_field(struct hw_entry *e, const char *name, size_t name_len, const char *value, size_t len);
/* Whether it says which device went to which state, and why. */
bool hw_entry_is_whole(const struct hw_entry *e);

#endif

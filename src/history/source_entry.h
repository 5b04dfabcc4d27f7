/* SPDX-License-Identifier: MIT */
/*
 * Reads an entry of a stream from Redis' reply, and checks it, because another program may have written it. Pure. For
 * source.c.
 */
#ifndef HW_HISTORY_SOURCE_ENTRY_H
#define HW_HISTORY_SOURCE_ENTRY_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>

#include "history/source.h"

bool hw_source_is_text(const redisReply *r);
/* Parses a decimal number; -1 for anything else. */
void hw_source_read_number(int64_t *to, const redisReply *from);

/* Reads the fields of an entry into *e, which is zero except for `at` and `clock_ms`. Returns what is wrong with the
 * entry; HW_ODD_KINDS: nothing is. *usable: whether the entry counts, because it is right or was corrected. */
enum hw_source_odd hw_source_entry_read(struct hw_entry *e, enum hw_stream stream, const redisReply *fields,
                                        bool *usable);
/* Checks an entry whose fields and `clock_ms` the caller has set. Returns what is wrong with it; HW_ODD_KINDS: nothing
 * is. */
enum hw_source_odd hw_source_entry_check(struct hw_entry *e, enum hw_stream stream);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What is written into SQL: batches of entries, in one transaction each with the place that they move a stream to.
 * Whoever finds the place moved by another has written nothing.
 *
 *   hw_ledger_begin()   takes the right to write and moves the place: 1, or 0 if another worker was quicker
 *   hw_ledger_...()     what the batch says
 *   hw_ledger_commit()
 *
 * Of a device's transitions one with a seq that is not newer than the device's changes nothing but, if it is not there,
 * its own row. The times of outages never fall within a device, whatever the clock did.
 */
#ifndef HW_HISTORY_LEDGER_H
#define HW_HISTORY_LEDGER_H

#include "history/entry.h"
#include "history/sql.h"

struct hw_ledger; /* opaque */

/* Connects and makes the tables ready. NULL with the reason in `why`. */
struct hw_ledger *hw_ledger_open(const struct hw_sql_conf *c, char why[HW_SQL_WHY]);
void hw_ledger_close(struct hw_ledger *l);
const char *hw_ledger_error(struct hw_ledger *l);

/* How many rows that were read since the last call had an impossible time, state, seq or place; and one of them: a
 * device's or a stream's name. Such values count as unknown: a device then has the state of its next transition, and a
 * stream is read from its start. */
uint64_t hw_ledger_odd(struct hw_ledger *l, char row[HW_ENTRY_NAME]);

/* Where a stream has been read to. 0 or -EIO. */
int hw_ledger_place(struct hw_ledger *l, enum hw_stream stream, struct hw_place *out);

/* 1: it is ours; 0: it stood elsewhere, and nothing has begun; -EIO. */
int hw_ledger_begin(struct hw_ledger *l, enum hw_stream stream, const struct hw_place *from, const struct hw_place *to);
/* The same within a transaction, for what follows. 0: the place is not the one that it was moved to; -EIO. */
int hw_ledger_move(struct hw_ledger *l, enum hw_stream stream, const struct hw_place *from, const struct hw_place *to);
/* 1: it was new; 0: it was there; -EIO. `found`: read back from a hash, not from the stream. */
int hw_ledger_event(struct hw_ledger *l, const struct hw_entry *e, bool found);
int hw_ledger_sight(struct hw_ledger *l, const struct hw_entry *e);
int hw_ledger_task(struct hw_ledger *l, const struct hw_entry *e);
/* Of a gap in the events the hashes have to be read back: noted too. 0 or -EIO. */
int hw_ledger_gap(struct hw_ledger *l, enum hw_stream stream, const struct hw_gap *gap, int64_t now_ms);
/* 0; -EIO: nobody knows whether it happened. */
int hw_ledger_commit(struct hw_ledger *l);

/* The gap for which hashes have to be read back, 0: none; and whether one of those since was another stream's begin:
 * then a device without a hash may only not have been written again yet. 0 or -EIO. */
int hw_ledger_owes(struct hw_ledger *l, int64_t *gap_ms, bool *emptied);
/*
 * Devices behind *dev, which moves on, that are known and of which nothing has come since before the end of that gap:
 * each as the entry that it was forgotten, when the gap began, to be written (hw_ledger_event(), found) if Redis has it
 * no more. *n 0: no more of them. 0 or -EIO.
 */
int hw_ledger_silent(struct hw_ledger *l, int64_t gap_ms, int64_t *dev, struct hw_entry *out, size_t cap, size_t *n);
/* A transaction without a stream's place, for what hashes say. */
int hw_ledger_begin_found(struct hw_ledger *l);
/* All hashes were read back for the gap of that time. 0 or -EIO. */
int hw_ledger_paid(struct hw_ledger *l, int64_t gap_ms);

/* How many gaps there are, and what was lost in those of which that is known. 0 or -EIO. */
int hw_ledger_gaps(struct hw_ledger *l, int64_t *gaps, int64_t *lost);

/* Takes away a piece of what is older: 1: there may be more; 0: not; -EIO. 0 keeps all. */
int hw_ledger_expire(struct hw_ledger *l, int64_t before_ms, int64_t outages_before_ms);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Writes batches of entries to SQL. One transaction contains the batch and the new offset of its stream. If another
 * worker has moved the offset, nothing is written.
 *
 * - hw_ledger_begin() begins the transaction and moves the offset; returns 0 if another worker has moved it
 * - other functions, such as hw_ledger_event(), write the batch
 * - hw_ledger_commit() ends the transaction
 *
 * A transition from the stream gets a row of its own, unless that row exists. It changes the device's row only if its
 * seq is newer than that in the row. The times of a device's outages never decrease, even if a clock goes back.
 */
#ifndef HW_HISTORY_LEDGER_H
#define HW_HISTORY_LEDGER_H

#include "history/entry.h"
#include "history/sql.h"

struct hw_ledger; /* opaque */

/* Connects, and creates or upgrades the tables. On an error returns NULL, with the reason in `why`. */
struct hw_ledger *hw_ledger_open(const struct hw_sql_conf *c, char why[HW_SQL_WHY]);
void hw_ledger_close(struct hw_ledger *l);
const char *hw_ledger_error(struct hw_ledger *l);

/* Returns how many rows with an impossible time, state, seq or offset were read since the last call. `row` names one of
 * them: a device or a stream. Such a value counts as unknown: the device gets the state of its next transition, and the
 * stream is read from its start. */
uint64_t hw_ledger_odd(struct hw_ledger *l, char row[HW_ENTRY_NAME]);

/* Reads the stored offset of a stream. Returns 0 or -EIO. */
int hw_ledger_cursor(struct hw_ledger *l, enum hw_stream stream, struct hw_stream_cursor *out);

/* Begins a transaction, compares the stored offset with `from` and sets it. Returns 1 if they were equal; the
 * transaction is then open. Returns 0 if they were not, and -EIO on an error; no transaction is open then. */
int hw_ledger_begin(struct hw_ledger *l, enum hw_stream stream, const struct hw_stream_cursor *from,
                    const struct hw_stream_cursor *to);
/* Moves the offset again for a further page in the open transaction. Returns 0 if the stored offset is not `from`. */
int hw_ledger_move(struct hw_ledger *l, enum hw_stream stream, const struct hw_stream_cursor *from,
                   const struct hw_stream_cursor *to);
/* Each writes a row, and returns 1 if the row is new, 0 if it existed, or -EIO. `found`: the entry is from a hash,
 * not from the stream. */
int hw_ledger_event(struct hw_ledger *l, const struct hw_entry *e, bool found);
int hw_ledger_sight(struct hw_ledger *l, const struct hw_entry *e);
int hw_ledger_task(struct hw_ledger *l, const struct hw_entry *e);
int hw_ledger_incident(struct hw_ledger *l, const struct hw_entry *e);
/* Records a gap. After a gap in the events, the hashes must be read. Returns 0 or -EIO. */
int hw_ledger_gap(struct hw_ledger *l, enum hw_stream stream, const struct hw_stream_gap *gap, int64_t now_ms);
/* Commits the transaction. Returns 0, or -EIO, and it is then unknown whether the transaction was committed. */
int hw_ledger_commit(struct hw_ledger *l);

/* Sets *gap_ms to the time of the gap after which the hashes must still be read; 0: there is none. *emptied: a
 * stream was also replaced since that time. A known device may then have no hash only because it was not written
 * again yet. Returns 0 or -EIO. */
int hw_ledger_read_pending(struct hw_ledger *l, int64_t *gap_ms, bool *emptied);
/*
 * Lists the known devices after *dev that had no transition since the end of the gap. Moves *dev to the last of them.
 * Each device is returned as an entry `forgotten` with the time at which the gap begins. If Redis has no hash of the
 * device, the caller passes this entry to hw_ledger_event() with `found`. *n is 0 after the last device. Returns 0 or
 * -EIO.
 */
int hw_ledger_silent(struct hw_ledger *l, int64_t gap_ms, int64_t *dev, struct hw_entry *out, size_t cap, size_t *n);
/* Begins a transaction for entries that come from hashes. It moves no offset. */
int hw_ledger_begin_found(struct hw_ledger *l);
/* Records that all hashes were read after the gap with that time. Returns 0 or -EIO. */
int hw_ledger_clear_pending(struct hw_ledger *l, int64_t gap_ms);

/* Counts the recorded gaps, and the entries lost in them as far as that is known. Returns 0 or -EIO. */
int hw_ledger_gaps(struct hw_ledger *l, int64_t *gaps, int64_t *lost);

/* Deletes rows that are older than these times (0: keeps all), a limited number in each call. Returns 1 if there may
 * be more, 0 if not, or -EIO. */
int hw_ledger_expire(struct hw_ledger *l, int64_t before_ms, int64_t outages_before_ms);

#endif

/* SPDX-License-Identifier: MIT */
/* See ledger.h: gaps of the streams, and the devices that may have been forgotten in a gap. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "heartwheel/bounds.h"
#include "history/ledger_priv.h"

int hw_ledger_gap(struct hw_ledger *l, enum hw_stream stream, const struct hw_stream_gap *gap, int64_t now_ms)
{
	char after[HW_STREAM_ID_TEXT], before[HW_STREAM_ID_TEXT];
	struct hw_sql_stmt *q = l->q[GAP_NEW];
	hw_ledger_offset_text(gap->after, after);
	hw_ledger_offset_text(gap->before, before);
	hw_sql_text(q, 1, hw_entry_stream_name(stream));
	hw_sql_text(q, 2, after);
	hw_sql_text(q, 3, before);
	hw_ledger_bind_if(q, 4, gap->lost >= 0, gap->lost);
	hw_sql_int(q, 5, now_ms);
	if (hw_sql_do(q) < 0)
		return -EIO;
	if (stream != HW_STREAM_EVENTS)
		return 0;
	hw_sql_text(l->q[SET_PENDING], 1, gap->other ? "emptied" : "owed");
	hw_sql_int(l->q[SET_PENDING], 2, now_ms);
	return hw_sql_do(l->q[SET_PENDING]) < 0 ? -EIO : 0;
}

int hw_ledger_read_pending(struct hw_ledger *l, int64_t *gap_ms, bool *emptied)
{
	size_t len;
	int rc = hw_sql_step(l->q[READ_PENDING]);
	*gap_ms = rc == 1 ? hw_sql_column_int(l->q[READ_PENDING], 0) : 0;
	*emptied = rc == 1 && hw_ledger_is(hw_sql_column_text(l->q[READ_PENDING], 1, &len), "emptied");
	hw_sql_reset(l->q[READ_PENDING]);
	return rc < 0 ? -EIO : 0;
}

/* Reads the begin and the end of a gap, as ms in the stream's ids; 0: unknown. Returns 1, 0 if there is no such gap, or
 * -EIO. */
static int find_gap(struct hw_ledger *l, int64_t gap_ms, int64_t *after_ms, int64_t *before_ms)
{
	struct hw_sql_stmt *q = l->q[GAP];
	int64_t *const ends[] = {after_ms, before_ms};
	struct hw_stream_id at;
	size_t len;
	hw_sql_int(q, 1, gap_ms);
	int rc = hw_sql_step(q);
	for (int i = 0; rc == 1 && i < 2; i++) {
		const char *text = hw_sql_column_text(q, i, &len);
		bool good = hw_ledger_offset_parse(text, len, &at) == 0 &&
		            hw_bounds_time((int64_t)at.ms, hw_ledger_now_ms(l));
		*ends[i] = good ? (int64_t)at.ms : 0;
	}
	hw_sql_reset(q);
	return rc;
}

int hw_ledger_silent(struct hw_ledger *l, int64_t gap_ms, int64_t *dev, struct hw_entry *out, size_t cap, size_t *n)
{
	struct hw_sql_stmt *q = l->q[SILENT];
	int64_t after_ms = 0, before_ms = 0;
	size_t len;
	int rc = find_gap(l, gap_ms, &after_ms, &before_ms);
	*n = 0;
	if (rc <= 0)
		return rc;
	hw_sql_int(q, 1, *dev);
	hw_sql_int(q, 2, before_ms);
	hw_sql_int(q, 3, (int64_t)cap);
	while ((rc = hw_sql_step(q)) == 1 && *n < cap) {
		struct hw_entry *e = &out[(*n)++];
		*e = (struct hw_entry){.state = "forgotten", .why = "gap", .time_ms = after_ms};
		*dev = hw_sql_column_int(q, 0);
		snprintf(e->id, sizeof(e->id), "%s", hw_sql_column_text(q, 1, &len));
		snprintf(e->group, sizeof(e->group), "%s", hw_sql_column_text(q, 2, &len));
		int64_t seq = hw_sql_column_int(q, 3);
		e->seq = seq > 0 && hw_bounds_seq((uint64_t)seq, hw_ledger_now_ms(l)) ? seq + 1 : 1;
		e->at.ms = (uint64_t)after_ms;
	}
	hw_sql_reset(q);
	return rc < 0 ? -EIO : 0;
}

int hw_ledger_clear_pending(struct hw_ledger *l, int64_t gap_ms)
{
	hw_sql_int(l->q[PAID], 1, gap_ms);
	return hw_sql_do(l->q[PAID]) < 0 ? -EIO : 0;
}

int hw_ledger_gaps(struct hw_ledger *l, int64_t *gaps, int64_t *lost)
{
	struct hw_sql_stmt *q = l->q[GAPS];
	int rc = hw_sql_step(q);
	if (rc == 1) {
		*gaps = hw_sql_column_int(q, 0);
		*lost = hw_sql_column_int(q, 1);
	}
	hw_sql_reset(q);
	return rc < 0 ? -EIO : 0;
}

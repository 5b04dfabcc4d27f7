/* SPDX-License-Identifier: MIT */
/* See outages.h. */
#include "history/outages.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "heartwheel/event.h"
#include "history/calendar.h"

/* Reads a row with the columns from_ms, to_ms, reason, which begin at `column`. */
static void take_row(struct hw_sql_stmt *q, int64_t dev, int column, const struct hw_outages_ops *ops)
{
	size_t len;
	if (hw_sql_column_is_null(q, column + 1))
		return;
	struct hw_outage o = {dev, hw_sql_column_ms(q, column), hw_sql_column_ms(q, column + 1),
	                      strcmp(hw_sql_column_text(q, column + 2, &len), "forgotten") == 0};
	ops->take(ops->arg, &o);
}

/* Reads the rows of a table that begin in the window. */
static int read_begun(struct hw_sql *sql, const char *device, int64_t from_ms, int64_t to_ms, bool planned,
                      const struct hw_outages_ops *ops)
{
	static const char *const all[] = {
		"SELECT dev, from_ms, to_ms, reason FROM outage WHERE from_ms >= ? AND from_ms < ?",
		"SELECT dev, from_ms, to_ms, '' FROM planned WHERE from_ms >= ? AND from_ms < ?"};
	static const char *const one[] = {
		"SELECT o.dev, o.from_ms, o.to_ms, o.reason FROM device d JOIN outage o ON o.dev = d.dev"
		" WHERE o.from_ms >= ? AND o.from_ms < ? AND d.id = ?",
		"SELECT p.dev, p.from_ms, p.to_ms, '' FROM device d JOIN planned p ON p.dev = d.dev"
		" WHERE p.from_ms >= ? AND p.from_ms < ? AND d.id = ?"};
	struct hw_sql_stmt *q = hw_sql_prepare(sql, (*device ? one : all)[planned]);
	int row = -EIO;
	if (!q)
		return -EIO;
	hw_sql_int(q, 1, from_ms);
	hw_sql_int(q, 2, to_ms);
	if (*device)
		hw_sql_text(q, 3, device);
	while ((row = hw_sql_step(q)) == 1)
		take_row(q, hw_sql_column_int(q, 0), 1, ops);
	return row;
}

/* Reads the outages that began before `at_ms` and ended after it. Such an outage is the device's last one before
 * `at_ms`. So one query is made for each device that was down or forgotten in the month of `at_ms`. */
static int read_crossing(struct hw_sql *sql, int64_t at_ms, const struct hw_outages_ops *ops)
{
	struct hw_sql_stmt *those =
		hw_sql_prepare(sql, "SELECT dev FROM month WHERE month = ? AND (down_ms > 0 OR gone_ms > 0)");
	struct hw_sql_stmt *last = hw_sql_prepare(sql, "SELECT from_ms, to_ms, reason FROM outage WHERE dev = ? AND "
	                                               "from_ms < ? ORDER BY from_ms DESC LIMIT 1");
	int row = -EIO, one = 0;
	if (!those || !last)
		return -EIO;
	hw_sql_int(those, 1, hw_month_of(at_ms));
	while (one >= 0 && (row = hw_sql_step(those)) == 1) {
		int64_t dev = hw_sql_column_int(those, 0);
		if (ops->wants && !ops->wants(ops->arg, dev))
			continue;
		hw_sql_int(last, 1, dev);
		hw_sql_int(last, 2, at_ms);
		one = hw_sql_step(last);
		if (one == 1)
			take_row(last, dev, 0, ops);
		hw_sql_reset(last);
	}
	return one < 0 ? one : row;
}

int hw_outages_read(struct hw_sql *sql, const char *device, int64_t from_ms, int64_t to_ms,
                    const struct hw_outages_ops *ops)
{
	int rc = read_begun(sql, device, from_ms, to_ms, false, ops);
	return rc < 0 ? rc : read_crossing(sql, from_ms, ops);
}

int hw_planned_read(struct hw_sql *sql, const char *device, int64_t from_ms, int64_t to_ms,
                    const struct hw_outages_ops *ops)
{
	return read_begun(sql, device, hw_day_begin(from_ms), to_ms, true, ops);
}

int hw_gaps_read(struct hw_sql *sql, int64_t from_ms, int64_t to_ms, hw_gap_taker *take, void *arg)
{
	struct hw_sql_stmt *q =
		hw_sql_prepare(sql, "SELECT `after`, `before`, lost FROM gap WHERE stream = 'device:events'");
	struct hw_stream_id after, before;
	int row;
	size_t len;
	if (!q)
		return -EIO;
	while ((row = hw_sql_step(q)) == 1) {
		const char *text = hw_sql_column_text(q, 0, &len);
		bool fine = hw_stream_id_parse(text, len, &after) == 0;
		text = hw_sql_column_text(q, 1, &len);
		fine &= hw_stream_id_parse(text, len, &before) == 0;
		/* If the stream was restored, it continues with an earlier id. The gap then covers the time between
		 * the two ids. */
		uint64_t first = after.ms < before.ms ? after.ms : before.ms;
		uint64_t last = after.ms < before.ms ? before.ms : after.ms;
		int64_t from = first < INT64_MAX ? (int64_t)first : INT64_MAX - 1;
		int64_t to = last < INT64_MAX ? (int64_t)last : INT64_MAX - 1;
		if (fine && from < to_ms && to >= from_ms)
			take(arg, from, to, hw_sql_column_ms(q, 2));
	}
	return row;
}

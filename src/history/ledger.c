/* SPDX-License-Identifier: MIT */
/*
 * See ledger.h. Cost of a transition: five or six prepared statements, each with a search in a tree that is mostly in
 * memory.
 */
#include "history/ledger.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/bounds.h"
#include "history/calendar.h"
#include "history/schema.h"
#include "link/clock.h"

#define PIECE "1000" /* rows deleted per statement */

/* A column that is summed up. Another program may have written a value so large that MariaDB refuses the sum because
 * it overflows. */
#define SANE(column) "CASE WHEN " column " BETWEEN 0 AND 1000000000000000 THEN " column " ELSE 0 END"

enum query {
	PLACE_NEW,
	PLACE,
	PLACE_RESET,
	MOVE,
	DEVICE,
	DEVICE_NEW,
	DEVICE_SET,
	TRANSITION_NEW,
	OUTAGE_NEW,
	OUTAGE_AGAIN,
	OUTAGE_END,
	OUTAGE_CLOSE,
	MONTH_ADD,
	SIGHT_PUT,
	TASK_NEW,
	TASK_SET,
	INCIDENT_NEW,
	INCIDENT_SET,
	INCIDENT_DROP,
	PLANNED_NEW,
	PLANNED_LAST,
	GAP_NEW,
	SET_PENDING,
	READ_PENDING,
	PAID,
	GAP,
	SILENT,
	GAPS,
	EXPIRE_TRANSITIONS,
	EXPIRE_TASKS,
	EXPIRE_OUTAGES,
	EXPIRE_SIGHT,
	EXPIRE_PLANNED,
	EXPIRE_INCIDENTS,
	QUERIES
};

/* clang-format off */
static const char *const texts[QUERIES][2] = {
	[PLACE_NEW] = {"INSERT INTO position (stream, at, n) VALUES (?, ?, -1) ON CONFLICT DO NOTHING",
		"INSERT INTO position (stream, at, n) VALUES (?, ?, -1) ON DUPLICATE KEY UPDATE stream = stream"},
	[PLACE] = {"SELECT at, n FROM position WHERE stream = ?", NULL},
	[PLACE_RESET] = {"UPDATE position SET at = '0-0', n = -1 WHERE stream = ?", NULL},
	/* A column in SQLite may contain a value of any type, and SQLite compares the type as well. */
	[MOVE] = {"UPDATE position SET at = ?, n = ? WHERE stream = ? AND CAST(at AS TEXT) = ? AND CAST(n AS INTEGER) = ?",
		"UPDATE position SET at = ?, n = ? WHERE stream = ? AND at = ? AND n = ?"},
	[DEVICE] = {"SELECT dev, state, since_ms, seq FROM device WHERE id = ?", NULL},
	[DEVICE_NEW] = {"INSERT INTO device (id, grp, first_ms, gone_ms, state, since_ms, seq) VALUES (?, ?, ?, ?, ?, ?, ?)", NULL},
	[DEVICE_SET] = {"UPDATE device SET grp = ?, gone_ms = ?, state = ?, since_ms = ?, seq = ? WHERE dev = ?", NULL},
	[TRANSITION_NEW] = {"INSERT INTO transition (dev, seq, at_ms, state, reason, last_seen_ms, grp, node, found, entry)"
		" VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
		"INSERT INTO transition (dev, seq, at_ms, state, reason, last_seen_ms, grp, node, found, entry)"
		" VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON DUPLICATE KEY UPDATE dev = dev"},
	[OUTAGE_NEW] = {"INSERT INTO outage (dev, from_ms, to_ms, reason) VALUES (?, ?, NULL, ?) ON CONFLICT DO NOTHING",
		"INSERT INTO outage (dev, from_ms, to_ms, reason) VALUES (?, ?, NULL, ?) ON DUPLICATE KEY UPDATE dev = dev"},
	[OUTAGE_AGAIN] = {"UPDATE outage SET to_ms = NULL, reason = ? WHERE dev = ? AND from_ms = ?", NULL},
	[OUTAGE_END] = {"UPDATE outage SET to_ms = ? WHERE dev = ? AND from_ms = ?", NULL},
	[OUTAGE_CLOSE] = {"UPDATE outage SET to_ms = from_ms WHERE dev = ? AND to_ms IS NULL", NULL},
	[MONTH_ADD] = {"INSERT INTO month (dev, month, outages, down_ms, gone_ms, planned_ms) VALUES (?, ?, ?, ?, ?, ?)"
		" ON CONFLICT (month, dev) DO UPDATE SET outages = " SANE("outages") " + excluded.outages,"
		" down_ms = " SANE("down_ms") " + excluded.down_ms, gone_ms = " SANE("gone_ms") " + excluded.gone_ms,"
		" planned_ms = " SANE("planned_ms") " + excluded.planned_ms",
		"INSERT INTO month (dev, month, outages, down_ms, gone_ms, planned_ms) VALUES (?, ?, ?, ?, ?, ?)"
		" ON DUPLICATE KEY UPDATE outages = " SANE("outages") " + VALUES(outages),"
		" down_ms = " SANE("down_ms") " + VALUES(down_ms), gone_ms = " SANE("gone_ms") " + VALUES(gone_ms),"
		" planned_ms = " SANE("planned_ms") " + VALUES(planned_ms)"},
	/* If two entries begin at the same time, the time counts as blind. */
	[SIGHT_PUT] = {"INSERT INTO sight (node, from_ms, to_ms, cause) VALUES (?, ?, ?, ?) ON CONFLICT (node, from_ms) DO UPDATE SET"
		" to_ms = max(to_ms, excluded.to_ms), cause = CASE WHEN cause = '' THEN excluded.cause ELSE cause END",
		"INSERT INTO sight (node, from_ms, to_ms, cause) VALUES (?, ?, ?, ?) ON DUPLICATE KEY UPDATE"
		" to_ms = GREATEST(to_ms, VALUES(to_ms)), cause = CASE WHEN cause = '' THEN VALUES(cause) ELSE cause END"},
	[TASK_NEW] = {"INSERT INTO task (task, receiver, sender, action, at_ms, state, tries, why, entry)"
		" VALUES (?, ?, ?, NULL, ?, '', 0, '', -1) ON CONFLICT DO NOTHING",
		"INSERT INTO task (task, receiver, sender, action, at_ms, state, tries, why, entry)"
		" VALUES (?, ?, ?, NULL, ?, '', 0, '', -1) ON DUPLICATE KEY UPDATE task = task"},
	[TASK_SET] = {"UPDATE task SET state = ?, why = ?, sent_ms = COALESCE(sent_ms, ?), acked_ms = COALESCE(acked_ms, ?),"
		" ended_ms = ?, tries = " SANE("tries") " + ?, entry = ? WHERE task = ? AND entry < ? AND ended_ms IS NULL", NULL},
	[INCIDENT_NEW] = {"INSERT INTO incident (incident, kind, grp, device, opened_ms, state, messages, entry)"
		" VALUES (?, ?, ?, ?, ?, 'open', 0, -1) ON CONFLICT DO NOTHING",
		"INSERT INTO incident (incident, kind, grp, device, opened_ms, state, messages, entry)"
		" VALUES (?, ?, ?, ?, ?, 'open', 0, -1) ON DUPLICATE KEY UPDATE incident = incident"},
	[INCIDENT_SET] = {"UPDATE incident SET state = COALESCE(?, state), closed_ms = COALESCE(closed_ms, ?),"
		" acked_ms = COALESCE(acked_ms, ?), acked_by = COALESCE(acked_by, ?), messages = " SANE("messages") " + ?,"
		" entry = ? WHERE incident = ? AND entry < ?", NULL},
	[INCIDENT_DROP] = {"DELETE FROM incident WHERE incident = ?", NULL},
	[PLANNED_NEW] = {"INSERT INTO planned (dev, from_ms, to_ms, silence) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
		"INSERT INTO planned (dev, from_ms, to_ms, silence) VALUES (?, ?, ?, ?) ON DUPLICATE KEY UPDATE dev = dev"},
	[PLANNED_LAST] = {"SELECT to_ms FROM planned WHERE dev = ? AND from_ms <= ? ORDER BY from_ms DESC LIMIT 1", NULL},
	[GAP_NEW] = {"INSERT INTO gap (stream, `after`, `before`, lost, found_ms) VALUES (?, ?, ?, ?, ?)", NULL},
	/* `emptied` is kept: it means that a missing hash does not prove that the device was forgotten. */
	[SET_PENDING] = {"UPDATE position SET at = CASE WHEN at = 'emptied' THEN at ELSE ? END, n = ? WHERE stream = 'device:state'", NULL},
	[READ_PENDING] = {"SELECT n, at FROM position WHERE stream = 'device:state' AND at <> 'paid'", NULL},
	[PAID] = {"UPDATE position SET at = 'paid' WHERE stream = 'device:state' AND at <> 'paid' AND CAST(n AS INTEGER) = ?",
		"UPDATE position SET at = 'paid' WHERE stream = 'device:state' AND at <> 'paid' AND n = ?"},
	[GAP] = {"SELECT `after`, `before` FROM gap WHERE stream = 'device:events' AND found_ms = ?", NULL},
	[SILENT] = {"SELECT dev, id, grp, seq FROM device WHERE dev > ? AND gone_ms IS NULL AND since_ms < ? ORDER BY dev LIMIT ?", NULL},
	[GAPS] = {"SELECT COUNT(*), COALESCE(SUM(lost), 0) FROM gap", NULL},
	[EXPIRE_TRANSITIONS] = {"DELETE FROM transition WHERE (dev, seq) IN"
		" (SELECT dev, seq FROM transition WHERE at_ms < ? ORDER BY at_ms LIMIT " PIECE ")",
		"DELETE FROM transition WHERE at_ms < ? ORDER BY at_ms LIMIT " PIECE},
	[EXPIRE_TASKS] = {"DELETE FROM task WHERE task IN (SELECT task FROM task WHERE ended_ms < ? LIMIT " PIECE ")",
		"DELETE FROM task WHERE ended_ms < ? LIMIT " PIECE},
	[EXPIRE_OUTAGES] = {"DELETE FROM outage WHERE (dev, from_ms) IN"
		" (SELECT dev, from_ms FROM outage WHERE from_ms < ? AND to_ms < ? ORDER BY from_ms LIMIT " PIECE ")",
		"DELETE FROM outage WHERE from_ms < ? AND to_ms < ? ORDER BY from_ms LIMIT " PIECE},
	[EXPIRE_SIGHT] = {"DELETE FROM sight WHERE (node, from_ms) IN"
		" (SELECT node, from_ms FROM sight WHERE to_ms < ? LIMIT " PIECE ")",
		"DELETE FROM sight WHERE to_ms < ? LIMIT " PIECE},
	[EXPIRE_PLANNED] = {"DELETE FROM planned WHERE (dev, from_ms) IN"
		" (SELECT dev, from_ms FROM planned WHERE from_ms < ? AND to_ms < ? ORDER BY from_ms LIMIT " PIECE ")",
		"DELETE FROM planned WHERE from_ms < ? AND to_ms < ? ORDER BY from_ms LIMIT " PIECE},
	[EXPIRE_INCIDENTS] = {"DELETE FROM incident WHERE incident IN"
		" (SELECT incident FROM incident WHERE closed_ms < ? LIMIT " PIECE ")",
		"DELETE FROM incident WHERE closed_ms < ? LIMIT " PIECE},
};
/* clang-format on */

struct hw_ledger {
	struct hw_sql *sql; /* owned */
	struct hw_sql_stmt *q[QUERIES];
	int64_t clock_ms;            /* of the last entry that had a clock; 0: none yet */
	uint64_t odd;                /* rows with impossible values since hw_ledger_odd() */
	char odd_row[HW_ENTRY_NAME]; /* name of one of these rows */
};

/* A device as its row has it. */
struct device {
	int64_t dev, since_ms, seq;
	char state[HW_ENTRY_WORD]; /* "": unknown, and since_ms is 0 */
};

const char *hw_ledger_error(struct hw_ledger *l)
{
	return hw_sql_error(l->sql);
}

/* --- bounds ----------------------------------------------------------------------------------------------------- */

static int64_t now_ms(const struct hw_ledger *l)
{
	return l->clock_ms ? l->clock_ms : hw_clock_now().wall_ms;
}

static void note_odd(struct hw_ledger *l, const char *row)
{
	l->odd++;
	snprintf(l->odd_row, sizeof(l->odd_row), "%s", row);
}

uint64_t hw_ledger_odd(struct hw_ledger *l, char row[HW_ENTRY_NAME])
{
	uint64_t n = l->odd;
	l->odd = 0;
	memcpy(row, l->odd_row, sizeof(l->odd_row));
	return n;
}

/* --- start and stop --------------------------------------------------------------------------------------------- */

static int add_offset(struct hw_ledger *l, const char *stream, const char *at)
{
	hw_sql_text(l->q[PLACE_NEW], 1, stream);
	hw_sql_text(l->q[PLACE_NEW], 2, at);
	return hw_sql_do(l->q[PLACE_NEW]) < 0 ? -EIO : 0;
}

static int ready(struct hw_ledger *l, char why[HW_SQL_WHY])
{
	int rc = hw_schema_ready(l->sql, why);
	for (int i = 0; rc == 0 && i < QUERIES; i++) {
		const char *mysql = texts[i][1] ? texts[i][1] : texts[i][0];
		l->q[i] = hw_sql_prepare(l->sql, hw_sql_pick(l->sql, texts[i][0], mysql));
		if (!l->q[i])
			rc = -EIO;
	}
	for (int i = 0; rc == 0 && i < HW_STREAMS; i++)
		rc = add_offset(l, hw_entry_stream_name((enum hw_stream)i), "0-0");
	if (rc == 0)
		rc = add_offset(l, "device:state", "paid");
	if (rc == -EIO && !*why)
		snprintf(why, HW_SQL_WHY, "%.500s", hw_sql_error(l->sql));
	return rc;
}

struct hw_ledger *hw_ledger_open(const struct hw_sql_conf *c, char why[HW_SQL_WHY])
{
	struct hw_ledger *l = calloc(1, sizeof(*l));
	why[0] = '\0';
	if (!l) {
		snprintf(why, HW_SQL_WHY, "out of memory");
		return NULL;
	}
	l->sql = hw_sql_open(c, why);
	if (l->sql && ready(l, why) == 0)
		return l;
	hw_ledger_close(l);
	return NULL;
}

void hw_ledger_close(struct hw_ledger *l)
{
	if (!l)
		return;
	hw_sql_close(l->sql);
	free(l);
}

/* --- offsets ---------------------------------------------------------------------------------------------------- */

/* Writes an offset as text. The largest ids do not fit into the column in decimal digits, so they are stored in
 * hexadecimal digits. */
static void offset_text(struct hw_stream_id at, char buf[HW_STREAM_ID_TEXT])
{
	if (strlen(hw_stream_id_print(at, buf)) > HW_ENTRY_WORD)
		snprintf(buf, HW_STREAM_ID_TEXT, "x%" PRIx64 "-%" PRIx64, at.ms, at.seq);
}

static int offset_parse(const char *text, size_t len, struct hw_stream_id *out)
{
	if (len > 0 && *text == 'x')
		return sscanf(text, "x%" SCNx64 "-%" SCNx64, &out->ms, &out->seq) == 2 ? 0 : -EINVAL;
	return hw_stream_id_parse(text, len, out);
}

/* Whether a stored offset can be used: its text is the one that offset_text() writes, and its count is possible.
 * hw_ledger_move() compares the texts, so it would never find a row with another text. */
static bool is_offset(const char *at, size_t len, const struct hw_stream_cursor *p)
{
	char text[HW_STREAM_ID_TEXT];
	offset_text(p->id, text);
	return strlen(text) == len && memcmp(text, at, len) == 0 && p->added >= -1 && p->added <= HW_ENTRIES_MAX;
}

int hw_ledger_cursor(struct hw_ledger *l, enum hw_stream stream, struct hw_stream_cursor *out)
{
	struct hw_sql_stmt *q = l->q[PLACE];
	size_t len;
	hw_sql_text(q, 1, hw_entry_stream_name(stream));
	int rc = hw_sql_step(q) == 1 ? 0 : -EIO;
	bool good = true;
	if (rc == 0) {
		const char *at = hw_sql_column_text(q, 0, &len);
		out->added = hw_sql_column_int(q, 1);
		good = offset_parse(at, len, &out->id) == 0 && is_offset(at, len, out);
	}
	hw_sql_reset(q);
	if (good)
		return rc;
	note_odd(l, hw_entry_stream_name(stream));
	*out = (struct hw_stream_cursor){{0, 0}, -1};
	hw_sql_text(l->q[PLACE_RESET], 1, hw_entry_stream_name(stream));
	return hw_sql_do(l->q[PLACE_RESET]) < 0 ? -EIO : 0;
}

int hw_ledger_move(struct hw_ledger *l, enum hw_stream stream, const struct hw_stream_cursor *from,
                   const struct hw_stream_cursor *to)
{
	char old[HW_STREAM_ID_TEXT], new[HW_STREAM_ID_TEXT];
	struct hw_sql_stmt *q = l->q[MOVE];
	offset_text(from->id, old);
	offset_text(to->id, new);
	hw_sql_text(q, 1, new);
	hw_sql_int(q, 2, to->added);
	hw_sql_text(q, 3, hw_entry_stream_name(stream));
	hw_sql_text(q, 4, old);
	hw_sql_int(q, 5, from->added);
	int64_t n = hw_sql_do(q);
	return n < 0 ? -EIO : n > 0;
}

int hw_ledger_begin(struct hw_ledger *l, enum hw_stream stream, const struct hw_stream_cursor *from,
                    const struct hw_stream_cursor *to)
{
	if (hw_sql_begin(l->sql) != 0)
		return -EIO;
	int moved = hw_ledger_move(l, stream, from, to);
	if (moved == 0)
		hw_sql_rollback(l->sql);
	return moved;
}

int hw_ledger_commit(struct hw_ledger *l)
{
	return hw_sql_commit(l->sql);
}

int hw_ledger_begin_found(struct hw_ledger *l)
{
	return hw_sql_begin(l->sql);
}

/* --- outages and months ----------------------------------------------------------------------------------------- */

/* What is added to the row of a month. */
struct month_sums {
	int64_t outages, down_ms, gone_ms, planned_ms;
};

static int add_month(struct hw_ledger *l, int64_t dev, int month, struct month_sums sums)
{
	struct hw_sql_stmt *q = l->q[MONTH_ADD];
	hw_sql_int(q, 1, dev);
	hw_sql_int(q, 2, month);
	hw_sql_int(q, 3, sums.outages);
	hw_sql_int(q, 4, sums.down_ms);
	hw_sql_int(q, 5, sums.gone_ms);
	hw_sql_int(q, 6, sums.planned_ms);
	return hw_sql_do(q) < 0 ? -EIO : 0;
}

/* Returns the end of the part of [from, to) that is in the month of `from`. */
static int64_t end_in_month(int64_t from_ms, int64_t to_ms)
{
	int64_t end_ms = hw_month_begin(hw_month_next(hw_month_of(from_ms)));
	return end_ms < to_ms ? end_ms : to_ms;
}

/* Adds a row in `outage` that has no end yet, because a device becomes offline or is forgotten. */
static int open_outage(struct hw_ledger *l, int64_t dev, int64_t at_ms, const char *reason, bool is_outage)
{
	struct hw_sql_stmt *q = l->q[OUTAGE_NEW];
	hw_sql_int(q, 1, dev);
	hw_sql_int(q, 2, at_ms);
	hw_sql_text(q, 3, reason);
	int64_t n = hw_sql_do(q);
	if (n ==
	    0) { /* If a row of length 0 began in the same millisecond, that row is opened again with the new reason. */
		q = l->q[OUTAGE_AGAIN];
		hw_sql_text(q, 1, reason);
		hw_sql_int(q, 2, dev);
		hw_sql_int(q, 3, at_ms);
		n = hw_sql_do(q);
	}
	if (n < 0)
		return -EIO;
	return is_outage ? add_month(l, dev, hw_month_of(at_ms), (struct month_sums){.outages = 1}) : 0;
}

/* Closes the device's rows that have no end. Their real length is not known, so they get length 0 and are not added
 * to a month. */
static int close_outages(struct hw_ledger *l, int64_t dev)
{
	hw_sql_int(l->q[OUTAGE_CLOSE], 1, dev);
	return hw_sql_do(l->q[OUTAGE_CLOSE]) < 0 ? -EIO : 0;
}

/* Ends an outage, or the time for which a device was forgotten, and adds its length to each month. A row that began at
 * from_ms is missing only if another program has changed it. */
static int end_outage(struct hw_ledger *l, int64_t dev, int64_t from_ms, int64_t to_ms, bool is_outage)
{
	struct hw_sql_stmt *q = l->q[OUTAGE_END];
	hw_sql_int(q, 1, to_ms);
	hw_sql_int(q, 2, dev);
	hw_sql_int(q, 3, from_ms);
	int64_t ended = hw_sql_do(q);
	int rc = ended < 0 ? -EIO : ended == 0 ? close_outages(l, dev) : 0;
	for (int64_t end_ms; rc == 0 && from_ms < to_ms; from_ms = end_ms) {
		end_ms = end_in_month(from_ms, to_ms);
		int64_t ms = end_ms - from_ms;
		rc = add_month(l, dev, hw_month_of(from_ms),
		               is_outage ? (struct month_sums){.down_ms = ms} : (struct month_sums){.gone_ms = ms});
	}
	return rc;
}

/* --- transitions ------------------------------------------------------------------------------------------------ */

static bool is(const char *state, const char *name)
{
	return strcmp(state, name) == 0;
}

/* Whether the device was forgotten, or has never sent a heartbeat. Neither is an outage. The time counts as time in
 * which the device was forgotten, so it is in no uptime. */
static bool is_gone(const char *state)
{
	return is(state, "forgotten") || is(state, "unseen");
}

/* Discards impossible values that another program may have written. With an impossible time, an outage would have
 * thousands of months. With an impossible seq, every transition would count as old. */
static void check_device(struct hw_ledger *l, const struct hw_entry *e, struct device *d)
{
	int64_t earliest_ms = e->time_ms >= HW_EARLIEST_MS ? HW_EARLIEST_MS : 0;
	bool state = is(d->state, "online") || is(d->state, "offline") || is_gone(d->state);
	bool good = state && d->since_ms >= earliest_ms && hw_bounds_time(d->since_ms, now_ms(l));
	bool seq = d->seq > 0 && hw_bounds_seq((uint64_t)d->seq, now_ms(l));
	if (!good || !seq)
		note_odd(l, e->id);
	if (!seq)
		d->seq = 0;
	if (good)
		return;
	d->state[0] = '\0';
	d->since_ms = 0;
}

/* Returns 1: the device is known; 0: it is not; or -EIO. */
static int find_device(struct hw_ledger *l, const struct hw_entry *e, struct device *d)
{
	struct hw_sql_stmt *q = l->q[DEVICE];
	size_t len;
	hw_sql_text(q, 1, e->id);
	int rc = hw_sql_step(q);
	if (rc == 1) {
		d->dev = hw_sql_column_int(q, 0);
		snprintf(d->state, sizeof(d->state), "%s", hw_sql_column_text(q, 1, &len));
		d->since_ms = hw_sql_column_int(q, 2);
		d->seq = hw_sql_column_int(q, 3);
		check_device(l, e, d);
	}
	hw_sql_reset(q);
	return rc;
}

static void bind_gone(struct hw_sql_stmt *q, int i, const struct hw_entry *e, int64_t at_ms)
{
	if (is_gone(e->state))
		hw_sql_int(q, i, at_ms);
	else
		hw_sql_null(q, i);
}

static int add_device(struct hw_ledger *l, const struct hw_entry *e, struct device *d)
{
	struct hw_sql_stmt *q = l->q[DEVICE_NEW];
	hw_sql_text(q, 1, e->id);
	hw_sql_text(q, 2, e->group);
	hw_sql_int(q, 3, e->time_ms);
	bind_gone(q, 4, e, e->time_ms);
	hw_sql_text(q, 5, e->state);
	hw_sql_int(q, 6, e->time_ms);
	hw_sql_int(q, 7, e->seq);
	if (hw_sql_do(q) < 0)
		return -EIO;
	*d = (struct device){.dev = hw_sql_inserted(q), .since_ms = e->time_ms, .seq = e->seq};
	if (is(e->state, "online"))
		return 0;
	return open_outage(l, d->dev, e->time_ms, is(e->state, "offline") ? e->why : "forgotten",
	                   is(e->state, "offline"));
}

static int set_device(struct hw_ledger *l, const struct device *d, const struct hw_entry *e, int64_t since_ms)
{
	struct hw_sql_stmt *q = l->q[DEVICE_SET];
	hw_sql_text(q, 1, e->group);
	bind_gone(q, 2, e, since_ms);
	hw_sql_text(q, 3, e->state);
	hw_sql_int(q, 4, since_ms);
	hw_sql_int(q, 5, e->seq);
	hw_sql_int(q, 6, d->dev);
	return hw_sql_do(q) < 0 ? -EIO : 0;
}

/* Applies a change of state: ends the old row in `outage` and begins a new one. If the state is the same, since_ms does
 * not change. */
static int change(struct hw_ledger *l, const struct device *d, const struct hw_entry *e)
{
	int64_t at_ms = e->time_ms > d->since_ms ? e->time_ms : d->since_ms;
	int rc = 0;
	if (is(d->state, e->state))
		return set_device(l, d, e, d->since_ms);
	if (!*d->state)
		rc = close_outages(l, d->dev);
	else if (!is(d->state, "online"))
		rc = end_outage(l, d->dev, d->since_ms, at_ms, is(d->state, "offline"));
	if (rc == 0 && is(e->state, "offline"))
		rc = open_outage(l, d->dev, at_ms, e->why, true);
	else if (rc == 0 && is_gone(e->state))
		rc = open_outage(l, d->dev, at_ms, "forgotten", false);
	return rc ? rc : set_device(l, d, e, at_ms);
}

/* Returns 1: the row is new; 0: it was there; or -EIO. */
static int add_transition(struct hw_ledger *l, int64_t dev, const struct hw_entry *e, bool found)
{
	struct hw_sql_stmt *q = l->q[TRANSITION_NEW];
	hw_sql_int(q, 1, dev);
	hw_sql_int(q, 2, e->seq);
	hw_sql_int(q, 3, e->time_ms);
	hw_sql_text(q, 4, e->state);
	hw_sql_text(q, 5, e->why);
	hw_sql_int(q, 6, e->last_seen_ms);
	hw_sql_text(q, 7, e->group);
	hw_sql_text(q, 8, e->node);
	hw_sql_int(q, 9, found);
	hw_sql_int(q, 10, hw_entry_number(e->at));
	int64_t n = hw_sql_do(q);
	return n < 0 ? -EIO : n > 0;
}

int hw_ledger_event(struct hw_ledger *l, const struct hw_entry *e, bool found)
{
	struct device d;
	if (e->clock_ms)
		l->clock_ms = e->clock_ms;
	int known = find_device(l, e, &d);
	if (known < 0 || (known == 0 && add_device(l, e, &d) != 0))
		return -EIO;
	if (found && known && e->seq <= d.seq)
		return 0;
	int fresh = add_transition(l, d.dev, e, found);
	if (fresh == 1 && known && e->seq > d.seq && change(l, &d, e) != 0)
		return -EIO;
	return fresh;
}

/* --- sight and tasks -------------------------------------------------------------------------------------------- */

int hw_ledger_sight(struct hw_ledger *l, const struct hw_entry *e)
{
	struct hw_sql_stmt *q = l->q[SIGHT_PUT];
	bool stop = is(e->state, "stopped"), down = is(e->state, "down");
	if (e->time_ms >= e->last_seen_ms && !stop)
		return 0; /* of length 0 */
	hw_sql_text(q, 1, e->node);
	hw_sql_int(q, 2, e->time_ms);
	hw_sql_int(q, 3, e->last_seen_ms);
	hw_sql_text(q, 4, stop || down ? e->state : is(e->state, "seeing") ? "" : *e->why ? e->why : "blind");
	int64_t n = hw_sql_do(q);
	return n < 0 ? -EIO : n > 0;
}

static void bind_if(struct hw_sql_stmt *q, int i, bool holds, int64_t v)
{
	if (holds)
		hw_sql_int(q, i, v);
	else
		hw_sql_null(q, i);
}

int hw_ledger_task(struct hw_ledger *l, const struct hw_entry *e)
{
	static const char *const ends[] = {"complete", "failed", "expired", "cancelled"};
	struct hw_sql_stmt *q = l->q[TASK_NEW];
	bool sent = is(e->state, "sent"), ended = false;
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		ended |= is(e->state, ends[i]);
	hw_sql_text(q, 1, e->group);
	hw_sql_text(q, 2, e->id);
	hw_sql_text(q, 3, e->node);
	hw_sql_int(q, 4, e->time_ms);
	if (hw_sql_do(q) < 0)
		return -EIO;
	q = l->q[TASK_SET];
	hw_sql_text(q, 1, e->state);
	hw_sql_text(q, 2, e->why);
	bind_if(q, 3, sent, e->time_ms);
	bind_if(q, 4, is(e->state, "acked"), e->time_ms);
	bind_if(q, 5, ended, e->time_ms);
	hw_sql_int(q, 6, sent);
	hw_sql_int(q, 7, hw_entry_number(e->at));
	hw_sql_text(q, 8, e->group);
	hw_sql_int(q, 9, hw_entry_number(e->at));
	int64_t n = hw_sql_do(q);
	return n < 0 ? -EIO : n > 0;
}

/* --- incidents and planned outages ------------------------------------------------------------------------------ */

static int add_planned_part(struct hw_ledger *l, int64_t dev, int64_t from_ms, int64_t to_ms, const char *silence)
{
	struct hw_sql_stmt *q = l->q[PLANNED_NEW];
	hw_sql_int(q, 1, dev);
	hw_sql_int(q, 2, from_ms);
	hw_sql_int(q, 3, to_ms);
	hw_sql_text(q, 4, silence);
	int64_t n = hw_sql_do(q);
	if (n <= 0)
		return n < 0 ? -EIO : 0;
	return add_month(l, dev, hw_month_of(from_ms), (struct month_sums){.planned_ms = to_ms - from_ms}) ? -EIO : 1;
}

/* Writes a planned part of an outage. A part that an earlier row has, for example because a restored Redis repeats
 * an entry, is not written again. A device without a row was never down. */
static int add_planned(struct hw_ledger *l, const struct hw_entry *e)
{
	struct device d;
	int64_t from_ms = e->time_ms, to_ms = e->last_seen_ms;
	int rc = find_device(l, e, &d), fresh = 0;
	if (rc <= 0)
		return rc;
	struct hw_sql_stmt *q = l->q[PLANNED_LAST];
	hw_sql_int(q, 1, d.dev);
	hw_sql_int(q, 2, from_ms);
	rc = hw_sql_step(q);
	if (rc == 1 && hw_sql_column_int(q, 0) > from_ms)
		from_ms = hw_sql_column_int(q, 0);
	hw_sql_reset(q);
	for (int64_t end_ms; rc >= 0 && from_ms < to_ms; from_ms = end_ms) {
		end_ms = hw_day_begin(from_ms) + HW_DAY_MS;
		end_ms = end_ms < to_ms ? end_ms : to_ms;
		rc = add_planned_part(l, d.dev, from_ms, end_ms, e->why);
		fresh |= rc > 0;
	}
	return rc < 0 ? rc : fresh;
}

static void bind_text_if(struct hw_sql_stmt *q, int i, bool holds, const char *text)
{
	if (holds)
		hw_sql_text(q, i, text);
	else
		hw_sql_null(q, i);
}

/* Applies an entry about an incident. If the entry has no receiver, `what` is a change of the incident. If it has one,
 * the entry is about a message to that receiver. */
int hw_ledger_incident(struct hw_ledger *l, const struct hw_entry *e)
{
	bool message = *e->receiver, ends = !message && (is(e->state, "closed") || is(e->state, "merged"));
	bool acked = !message && is(e->state, "acknowledged");
	int64_t n = 0;
	if (is(e->state, "planned"))
		return add_planned(l, e);
	if (is(e->state, "silenced") || is(e->state, "unsilenced"))
		return 0;              /* of a silence */
	if (is(e->state, "dropped")) { /* before any receiver was sent a message */
		hw_sql_text(l->q[INCIDENT_DROP], 1, e->incident);
		return hw_sql_do(l->q[INCIDENT_DROP]) < 0 ? -EIO : 0;
	}
	struct hw_sql_stmt *q = l->q[INCIDENT_NEW];
	const char *const about[] = {e->incident, e->why, e->group, e->id};
	for (int i = 0; i < 4; i++)
		hw_sql_text(q, i + 1, about[i]);
	hw_sql_int(q, 5, e->time_ms);
	if (hw_sql_do(q) < 0)
		return -EIO;
	q = l->q[INCIDENT_SET];
	bind_text_if(q, 1, ends, e->state);
	bind_if(q, 2, ends, e->time_ms);
	bind_if(q, 3, acked, e->time_ms);
	bind_text_if(q, 4, acked, e->node);
	hw_sql_int(q, 5, message);
	hw_sql_int(q, 6, hw_entry_number(e->at));
	hw_sql_text(q, 7, e->incident);
	hw_sql_int(q, 8, hw_entry_number(e->at));
	n = hw_sql_do(q);
	return n < 0 ? -EIO : n > 0;
}

/* --- gaps ------------------------------------------------------------------------------------------------------- */

int hw_ledger_gap(struct hw_ledger *l, enum hw_stream stream, const struct hw_stream_gap *gap, int64_t now_ms)
{
	char after[HW_STREAM_ID_TEXT], before[HW_STREAM_ID_TEXT];
	struct hw_sql_stmt *q = l->q[GAP_NEW];
	offset_text(gap->after, after);
	offset_text(gap->before, before);
	hw_sql_text(q, 1, hw_entry_stream_name(stream));
	hw_sql_text(q, 2, after);
	hw_sql_text(q, 3, before);
	bind_if(q, 4, gap->lost >= 0, gap->lost);
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
	*emptied = rc == 1 && is(hw_sql_column_text(l->q[READ_PENDING], 1, &len), "emptied");
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
		bool good = offset_parse(text, len, &at) == 0 && hw_bounds_time((int64_t)at.ms, now_ms(l));
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
		e->seq = seq > 0 && hw_bounds_seq((uint64_t)seq, now_ms(l)) ? seq + 1 : 1;
		e->at.ms = (uint64_t)after_ms;
	}
	hw_sql_reset(q);
	return rc < 0 ? -EIO : 0;
}

int hw_ledger_paid(struct hw_ledger *l, int64_t gap_ms)
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

/* --- expiry ----------------------------------------------------------------------------------------------------- */

static int64_t expire(struct hw_ledger *l, enum query which, int64_t before_ms, int n_params)
{
	for (int i = 1; i <= n_params; i++)
		hw_sql_int(l->q[which], i, before_ms);
	return before_ms ? hw_sql_do(l->q[which]) : 0;
}

int hw_ledger_expire(struct hw_ledger *l, int64_t before_ms, int64_t outages_before_ms)
{
	int64_t n = expire(l, EXPIRE_TRANSITIONS, before_ms, 1);
	int64_t all = n;
	if (n >= 0)
		n = expire(l, EXPIRE_TASKS, before_ms, 1);
	all = n > all ? n : all;
	if (n >= 0)
		n = expire(l, EXPIRE_OUTAGES, outages_before_ms, 2);
	all = n > all ? n : all;
	if (n >= 0)
		n = expire(l, EXPIRE_SIGHT, outages_before_ms, 1);
	all = n > all ? n : all;
	if (n >= 0)
		n = expire(l, EXPIRE_PLANNED, outages_before_ms, 2);
	all = n > all ? n : all;
	if (n >= 0)
		n = expire(l, EXPIRE_INCIDENTS, outages_before_ms, 1);
	all = n > all ? n : all;
	if (n < 0 || (all > 0 && !hw_sql_is_mysql(l->sql) && hw_sql_run(l->sql, "PRAGMA incremental_vacuum(256)") != 0))
		return -EIO;
	return all >= atoi(PIECE);
}

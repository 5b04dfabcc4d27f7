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
#include "history/ledger_priv.h"
#include "history/schema.h"
#include "link/clock.h"

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

int64_t hw_ledger_now_ms(const struct hw_ledger *l)
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
		const char *mysql = hw_ledger_texts[i][1] ? hw_ledger_texts[i][1] : hw_ledger_texts[i][0];
		l->q[i] = hw_sql_prepare(l->sql, hw_sql_pick(l->sql, hw_ledger_texts[i][0], mysql));
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

void hw_ledger_offset_text(struct hw_stream_id at, char buf[HW_STREAM_ID_TEXT])
{
	if (strlen(hw_stream_id_print(at, buf)) > HW_ENTRY_WORD)
		snprintf(buf, HW_STREAM_ID_TEXT, "x%" PRIx64 "-%" PRIx64, at.ms, at.seq);
}

int hw_ledger_offset_parse(const char *text, size_t len, struct hw_stream_id *out)
{
	if (len > 0 && *text == 'x')
		return sscanf(text, "x%" SCNx64 "-%" SCNx64, &out->ms, &out->seq) == 2 ? 0 : -EINVAL;
	return hw_stream_id_parse(text, len, out);
}

/* Whether a stored offset can be used: its text is as hw_ledger_offset_text() writes it, and its count is possible.
 * hw_ledger_move() compares the texts, so it would never find a row with another text. */
static bool is_offset(const char *at, size_t len, const struct hw_stream_cursor *p)
{
	char text[HW_STREAM_ID_TEXT];
	hw_ledger_offset_text(p->id, text);
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
		good = hw_ledger_offset_parse(at, len, &out->id) == 0 && is_offset(at, len, out);
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
	hw_ledger_offset_text(from->id, old);
	hw_ledger_offset_text(to->id, new);
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
	/* If the device has a row of length 0 that began in this millisecond, this row is opened again with the new
	 * reason. */
	if (n == 0) {
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

/* Whether the device was forgotten, or has never sent a heartbeat. Neither is an outage. Both count as time in which
 * the device was forgotten, which is in no uptime. */
static bool is_gone(const char *state)
{
	return hw_ledger_is(state, "forgotten") || hw_ledger_is(state, "unseen");
}

/* Discards impossible values that another program may have written. With an impossible time, an outage would have
 * thousands of months. With an impossible seq, every transition would count as old. */
static void check_device(struct hw_ledger *l, const struct hw_entry *e, struct device *d)
{
	int64_t earliest_ms = e->time_ms >= HW_EARLIEST_MS ? HW_EARLIEST_MS : 0;
	bool state = hw_ledger_is(d->state, "online") || hw_ledger_is(d->state, "offline") || is_gone(d->state);
	bool good = state && d->since_ms >= earliest_ms && hw_bounds_time(d->since_ms, hw_ledger_now_ms(l));
	bool seq = d->seq > 0 && hw_bounds_seq((uint64_t)d->seq, hw_ledger_now_ms(l));
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
	if (hw_ledger_is(e->state, "online"))
		return 0;
	return open_outage(l, d->dev, e->time_ms, hw_ledger_is(e->state, "offline") ? e->why : "forgotten",
	                   hw_ledger_is(e->state, "offline"));
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
	if (hw_ledger_is(d->state, e->state))
		return set_device(l, d, e, d->since_ms);
	if (!*d->state)
		rc = close_outages(l, d->dev);
	else if (!hw_ledger_is(d->state, "online"))
		rc = end_outage(l, d->dev, d->since_ms, at_ms, hw_ledger_is(d->state, "offline"));
	if (rc == 0 && hw_ledger_is(e->state, "offline"))
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
	bool stop = hw_ledger_is(e->state, "stopped"), down = hw_ledger_is(e->state, "down");
	if (e->time_ms >= e->last_seen_ms && !stop)
		return 0; /* of length 0 */
	hw_sql_text(q, 1, e->node);
	hw_sql_int(q, 2, e->time_ms);
	hw_sql_int(q, 3, e->last_seen_ms);
	hw_sql_text(q, 4, stop || down ? e->state : hw_ledger_is(e->state, "seeing") ? "" : *e->why ? e->why : "blind");
	int64_t n = hw_sql_do(q);
	return n < 0 ? -EIO : n > 0;
}

void hw_ledger_bind_if(struct hw_sql_stmt *q, int i, bool holds, int64_t v)
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
	bool sent = hw_ledger_is(e->state, "sent"), ended = false;
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		ended |= hw_ledger_is(e->state, ends[i]);
	hw_sql_text(q, 1, e->group);
	hw_sql_text(q, 2, e->id);
	hw_sql_text(q, 3, e->node);
	hw_sql_int(q, 4, e->time_ms);
	if (hw_sql_do(q) < 0)
		return -EIO;
	q = l->q[TASK_SET];
	hw_sql_text(q, 1, e->state);
	hw_sql_text(q, 2, e->why);
	hw_ledger_bind_if(q, 3, sent, e->time_ms);
	hw_ledger_bind_if(q, 4, hw_ledger_is(e->state, "acked"), e->time_ms);
	hw_ledger_bind_if(q, 5, ended, e->time_ms);
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

/* Applies an entry about an incident. If the entry names a receiver, it is about a message to that receiver. Otherwise
 * `what` is a change of the incident. */
int hw_ledger_incident(struct hw_ledger *l, const struct hw_entry *e)
{
	bool message = *e->receiver,
	     ends = !message && (hw_ledger_is(e->state, "closed") || hw_ledger_is(e->state, "merged"));
	bool acked = !message && hw_ledger_is(e->state, "acknowledged");
	int64_t n = 0;
	if (hw_ledger_is(e->state, "planned"))
		return add_planned(l, e);
	if (hw_ledger_is(e->state, "silenced") || hw_ledger_is(e->state, "unsilenced"))
		return 0;                        /* of a silence */
	if (hw_ledger_is(e->state, "dropped")) { /* before any receiver was sent a message */
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
	hw_ledger_bind_if(q, 2, ends, e->time_ms);
	hw_ledger_bind_if(q, 3, acked, e->time_ms);
	bind_text_if(q, 4, acked, e->node);
	hw_sql_int(q, 5, message);
	hw_sql_int(q, 6, hw_entry_number(e->at));
	hw_sql_text(q, 7, e->incident);
	hw_sql_int(q, 8, hw_entry_number(e->at));
	n = hw_sql_do(q);
	return n < 0 ? -EIO : n > 0;
}

/* --- expiry ----------------------------------------------------------------------------------------------------- */

static int64_t expire(struct hw_ledger *l, enum hw_ledger_query which, int64_t before_ms, int n_params)
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
	return all >= HW_LEDGER_PIECE;
}

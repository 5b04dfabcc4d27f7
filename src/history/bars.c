/* SPDX-License-Identifier: MIT */
/*
 * See bars.h. Each length in a bar is measured in one of four sets of times: known; known and seen; seen and down; down
 * and not planned. A current outage, and the time since the device was forgotten, are in the device's row, which is
 * never deleted.
 */
#include "history/bars.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "history/outages.h"
#include "history/seen.h"
#include "history/spans.h"

/* A monitor that sees the fleet writes a sighting every five minutes. If its last sighting ended less than this ago,
 * the monitor counts as still seeing the fleet. */
#define SHOWN_MS INT64_C(360000)

struct reading {
	struct hw_sql *sql;
	const struct hw_report_asked *a;
	int64_t dev, first_ms, end_ms;
	struct hw_spans unseen, down, gone, planned;  /* as read */
	struct hw_spans known, seen, away, unplanned; /* the sets that the bars are measured with */
	bool failed;
	int64_t *begins; /* begins of outages, sorted */
	size_t n, cap;
};

static int read_device(struct reading *r)
{
	size_t len;
	int rc = 0;
	struct hw_sql_stmt *q =
		hw_sql_prepare(r->sql, "SELECT dev, first_ms, gone_ms, state, since_ms FROM device WHERE id = ?");
	if (!q)
		return -EIO;
	hw_sql_text(q, 1, r->a->device);
	int row = hw_sql_step(q);
	if (row <= 0) {
		hw_sql_reset(q);
		return row < 0 ? row : -ENOENT;
	}
	r->dev = hw_sql_column_int(q, 0);
	r->first_ms = hw_sql_column_ms(q, 1);
	r->end_ms = r->a->until_ms;
	if (!hw_sql_column_is_null(q, 2) && hw_sql_column_ms(q, 2) < r->end_ms)
		r->end_ms = hw_sql_column_ms(q, 2);
	if (strcmp(hw_sql_column_text(q, 3, &len), "offline") == 0)
		rc = hw_spans_add(&r->down, hw_sql_column_ms(q, 4), r->end_ms);
	hw_sql_reset(q);
	return rc;
}

static int note_begin(struct reading *r, int64_t from_ms)
{
	if (r->n == r->cap) {
		size_t cap = r->cap ? 2 * r->cap : 64;
		int64_t *begins = realloc(r->begins, cap * sizeof(*begins));
		if (!begins)
			return -ENOMEM;
		r->begins = begins;
		r->cap = cap;
	}
	r->begins[r->n++] = from_ms;
	return 0;
}

static int read_outages(struct reading *r)
{
	struct hw_sql_stmt *q =
		hw_sql_prepare(r->sql, "SELECT from_ms, to_ms, reason FROM outage WHERE dev = ? AND from_ms < ? AND"
	                               " (to_ms IS NULL OR to_ms > ?) ORDER BY from_ms");
	int rc = q ? 0 : -EIO, row = 0;
	size_t len;
	if (q) {
		hw_sql_int(q, 1, r->dev);
		hw_sql_int(q, 2, r->a->until_ms);
		hw_sql_int(q, 3, r->a->since_ms);
	}
	while (rc == 0 && (row = hw_sql_step(q)) == 1) {
		int64_t from = hw_sql_column_ms(q, 0);
		int64_t to = hw_sql_column_is_null(q, 1) ? from : hw_sql_column_ms(q, 1);
		if (strcmp(hw_sql_column_text(q, 2, &len), "forgotten") == 0) {
			rc = hw_spans_add(&r->gone, from, to);
			continue;
		}
		rc = note_begin(r, from);
		if (rc == 0)
			rc = hw_spans_add(&r->down, from, to);
	}
	return rc ? rc : row;
}

static void take_planned(void *arg, const struct hw_outage *o)
{
	struct reading *r = arg;
	r->failed |= hw_spans_add(&r->planned, o->from_ms, o->to_ms) != 0;
}

static int read_planned(struct reading *r)
{
	const struct hw_outages_ops ops = {NULL, take_planned, r};
	int rc = hw_planned_read(r->sql, r->a->device, r->a->since_ms, r->a->until_ms, &ops);
	hw_spans_order(&r->planned);
	return r->failed ? -ENOMEM : rc;
}

static int read_unseen(struct reading *r)
{
	const struct hw_report_asked *a = r->a;
	struct hw_spans seen = {0};
	int64_t sees_until;
	int rc = hw_seen_read(r->sql, a->since_ms, a->until_ms, &seen, &sees_until);
	if (rc == 0 && a->live && sees_until > 0 && a->until_ms - sees_until < SHOWN_MS)
		rc = hw_spans_add(&seen, sees_until, a->until_ms);
	hw_spans_order(&seen);
	if (rc == 0)
		rc = hw_spans_rest(&seen, a->since_ms, a->until_ms, &r->unseen);
	hw_spans_fini(&seen);
	return rc;
}

static int put_together(struct reading *r)
{
	struct hw_spans rest = {0}; /* unseen or unknown */
	hw_spans_order(&r->gone);
	hw_spans_order(&r->down);
	int rc = hw_spans_rest(&r->gone, r->first_ms, r->end_ms, &r->known);
	if (rc == 0)
		rc = hw_spans_minus(&r->known, &r->unseen, &r->seen);
	hw_spans_order(&r->seen);
	if (rc == 0)
		rc = hw_spans_rest(&r->seen, r->a->since_ms, r->a->until_ms, &rest);
	if (rc == 0)
		rc = hw_spans_minus(&r->down, &rest, &r->away);
	hw_spans_order(&r->away);
	if (rc == 0)
		rc = hw_spans_minus(&r->away, &r->planned, &r->unplanned);
	hw_spans_order(&r->unplanned);
	hw_spans_fini(&rest);
	return rc;
}

static int measure(const struct reading *r, struct hw_bars *out)
{
	const struct hw_report_asked *a = r->a;
	size_t k = 0;
	out->at = calloc((size_t)((a->until_ms - a->since_ms) / a->step_ms) + 1, sizeof(*out->at));
	if (!out->at)
		return -ENOMEM;
	for (int64_t from = a->since_ms; from < a->until_ms; from += a->step_ms) {
		struct hw_bar *b = &out->at[out->n++];
		b->from_ms = from;
		b->to_ms = from + a->step_ms < a->until_ms ? from + a->step_ms : a->until_ms;
		b->known_ms = hw_spans_measure(&r->known, b->from_ms, b->to_ms);
		b->seen_ms = hw_spans_measure(&r->seen, b->from_ms, b->to_ms);
		b->down_ms = hw_spans_measure(&r->away, b->from_ms, b->to_ms);
		b->planned_ms = b->down_ms - hw_spans_measure(&r->unplanned, b->from_ms, b->to_ms);
		for (; k < r->n && r->begins[k] < b->to_ms; k++)
			b->outages += r->begins[k] >= b->from_ms;
	}
	return 0;
}

int hw_bars_read(struct hw_sql *sql, const struct hw_report_asked *asked, struct hw_bars *out)
{
	struct reading r = {.sql = sql, .a = asked};
	*out = (struct hw_bars){0};
	/* One snapshot of the database for the whole report. */
	int rc = hw_sql_run(sql, hw_sql_pick(sql, "BEGIN", "START TRANSACTION WITH CONSISTENT SNAPSHOT"));
	if (rc == 0)
		rc = read_device(&r);
	if (rc == 0)
		rc = read_outages(&r);
	if (rc == 0)
		rc = read_planned(&r);
	if (rc == 0)
		rc = read_unseen(&r);
	if (rc == 0)
		rc = put_together(&r);
	if ((rc == 0 || rc == -ENOENT) && hw_sql_commit(sql) != 0)
		rc = -EIO;
	if (rc == 0)
		rc = measure(&r, out);
	struct hw_spans *all[] = {&r.unseen, &r.down, &r.gone, &r.planned, &r.known, &r.seen, &r.away, &r.unplanned};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		hw_spans_fini(all[i]);
	free(r.begins);
	return rc;
}

void hw_bars_fini(struct hw_bars *b)
{
	free(b->at);
	b->at = NULL;
}

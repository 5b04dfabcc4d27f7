/* SPDX-License-Identifier: MIT */
/*
 * See counts.h. Each span of a device's time adds 1 at the first sample in it, and subtracts 1 at the first sample
 * after it. Summing these numbers up to a sample gives the count there.
 */
#include "history/counts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "history/outages.h"
#include "history/seen.h"
#include "history/spans.h"

struct reading {
	struct hw_sql *sql;
	const struct hw_report_asked *a;
	struct hw_count *at; /* the difference of each sample from the previous sample; `online` counts all known
	                        devices, until sum_up() subtracts the devices that are down */
	size_t n;
	struct hw_spans seen, missing;
	int rc; /* result of a callback */
};

/* The first sample at or after a time; n: none. */
static size_t first_at(const struct reading *r, int64_t ms)
{
	if (ms <= r->a->since_ms)
		return 0;
	if (ms >= r->a->until_ms)
		return r->n;
	return (size_t)((ms - r->a->since_ms - 1) / r->a->step_ms + 1);
}

static void add_known(struct reading *r, int64_t from_ms, int64_t to_ms, int sign)
{
	r->at[first_at(r, from_ms)].online += sign;
	r->at[first_at(r, to_ms)].online -= sign;
}

static void add_down(struct reading *r, int64_t from_ms, int64_t to_ms)
{
	r->at[first_at(r, from_ms)].offline++;
	r->at[first_at(r, to_ms)].offline--;
}

static int read_devices(struct reading *r)
{
	struct hw_sql_stmt *q =
		hw_sql_prepare(r->sql, "SELECT first_ms, gone_ms, state, since_ms FROM device WHERE first_ms < ?");
	int row = -EIO;
	size_t len;
	if (!q)
		return -EIO;
	hw_sql_int(q, 1, r->a->until_ms);
	while ((row = hw_sql_step(q)) == 1) {
		int64_t to_ms = hw_sql_column_is_null(q, 1) ? INT64_MAX : hw_sql_column_ms(q, 1);
		add_known(r, hw_sql_column_ms(q, 0), to_ms, 1);
		if (strcmp(hw_sql_column_text(q, 2, &len), "offline") == 0)
			add_down(r, hw_sql_column_ms(q, 3), to_ms);
	}
	return row;
}

static void take_outage(void *arg, const struct hw_outage *o)
{
	if (o->gone)
		add_known(arg, o->from_ms, o->to_ms, -1);
	else
		add_down(arg, o->from_ms, o->to_ms);
}

static void take_gap(void *arg, int64_t from_ms, int64_t to_ms, int64_t lost)
{
	struct reading *r = arg;
	(void)lost;
	if (r->rc == 0)
		r->rc = hw_spans_add(&r->missing, from_ms, to_ms + 1);
}

static int read_rows(struct reading *r)
{
	const struct hw_report_asked *a = r->a;
	const struct hw_outages_ops ops = {NULL, take_outage, r};
	int rc = read_devices(r);
	if (rc == 0)
		rc = hw_outages_read(r->sql, "", a->since_ms, a->until_ms, &ops);
	if (rc == 0)
		rc = hw_seen_read(r->sql, a->since_ms, a->until_ms, &r->seen, NULL);
	if (rc == 0)
		rc = hw_gaps_read(r->sql, a->since_ms, a->until_ms, take_gap, r);
	return rc ? rc : r->rc;
}

static bool has(const struct hw_spans *s, int64_t ms)
{
	return hw_spans_measure(s, ms, ms + 1) > 0;
}

static void sum_up(struct reading *r, int64_t as_of_ms)
{
	int64_t known = 0, down = 0;
	hw_spans_order(&r->missing);
	for (size_t i = 0; i < r->n; i++) {
		struct hw_count *c = &r->at[i];
		known += c->online;
		down += c->offline;
		c->time_ms = r->a->since_ms + (int64_t)i * r->a->step_ms;
		c->known = c->time_ms <= as_of_ms && has(&r->seen, c->time_ms) && !has(&r->missing, c->time_ms);
		c->online = c->known ? known - down : 0;
		c->offline = c->known ? down : 0;
	}
}

int hw_counts_read(struct hw_sql *sql, const struct hw_report_asked *a, int64_t as_of_ms, struct hw_counts *out)
{
	struct reading r = {.sql = sql, .a = a};
	r.n = a->until_ms > a->since_ms ? (size_t)((a->until_ms - a->since_ms - 1) / a->step_ms + 1) : 0;
	r.at = calloc(r.n + 1, sizeof(*r.at)); /* the last element: after all samples */
	*out = (struct hw_counts){r.at, r.n};
	if (!r.at)
		return -ENOMEM;
	/* One snapshot of the database for the whole report. */
	int rc = hw_sql_run(sql, hw_sql_pick(sql, "BEGIN", "START TRANSACTION WITH CONSISTENT SNAPSHOT"));
	if (rc == 0)
		rc = read_rows(&r);
	if (rc == 0)
		rc = hw_sql_commit(sql);
	if (rc == 0)
		sum_up(&r, as_of_ms);
	hw_spans_fini(&r.seen);
	hw_spans_fini(&r.missing);
	return rc;
}

void hw_counts_fini(struct hw_counts *c)
{
	free(c->at);
	c->at = NULL;
}

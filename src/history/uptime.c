/* SPDX-License-Identifier: MIT */
/*
 * See uptime.h. Ended outages are read from `outage`; for a whole month, their sums are read from `month`. A current
 * outage, and the time since a device was forgotten, are in the device's row.
 */
#include "history/uptime.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "history/calendar.h"
#include "history/outages.h"
#include "history/seen.h"
#include "history/spans.h"

#define UNSEEN_MAX 8 /* if a month has more unseen spans than this, its outages are read one by one, not as sums */

/* A device of the report. */
struct subject {
	struct hw_uptime u;
	int64_t gone_ms; /* how long the device was forgotten before it was known again */
};

struct reading {
	struct hw_sql *sql;
	const struct hw_uptime_window *w;
	struct hw_spans seen, unseen;
	const struct hw_span *span; /* the unseen span that is being subtracted */
	struct subject *subjects;
	size_t n, cap;
	struct hw_uptimes *out;
};

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t sooner(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* --- devices ---------------------------------------------------------------------------------------------------- */

/* Fills in a device from its row, with the columns dev, first_ms, gone_ms, state, since_ms. */
static void begin_subject(const struct reading *r, struct hw_sql_stmt *q, struct subject *s)
{
	size_t len;
	bool gone = !hw_sql_column_is_null(q, 2);
	int64_t end = gone ? sooner(hw_sql_column_ms(q, 2), r->w->until_ms) : r->w->until_ms;
	*s = (struct subject){.u = {.dev = hw_sql_column_int(q, 0)}};
	s->u.from_ms = later(hw_sql_column_ms(q, 1), r->w->since_ms);
	s->u.to_ms = later(end, s->u.from_ms);
	s->u.seen_ms = hw_spans_measure(&r->seen, s->u.from_ms, s->u.to_ms);
	int64_t since = hw_sql_column_ms(q, 4);
	if (strcmp(hw_sql_column_text(q, 3, &len), "offline") == 0)
		s->u.down_ms = hw_spans_measure(&r->seen, later(since, s->u.from_ms), s->u.to_ms);
}

static int grow(struct reading *r)
{
	size_t cap = r->cap ? 2 * r->cap : 1024;
	struct subject *s = realloc(r->subjects, cap * sizeof(*s));
	if (!s)
		return -ENOMEM;
	r->subjects = s;
	r->cap = cap;
	return 0;
}

static int read_devices(struct reading *r)
{
	static const char whole[] = "SELECT dev, first_ms, gone_ms, state, since_ms FROM device WHERE first_ms < ?";
	char text[256];
	const char *name = *r->w->device ? r->w->device : r->w->group;
	strcpy(text, whole);
	if (*name)
		strcat(text, *r->w->device ? " AND id = ?" : " AND grp = ?");
	strcat(text, " ORDER BY dev");
	struct hw_sql_stmt *q = hw_sql_prepare(r->sql, text);
	int rc = q ? 0 : -EIO, row = 0;
	if (q)
		hw_sql_int(q, 1, r->w->until_ms);
	if (q && *name)
		hw_sql_text(q, 2, name);
	while (rc == 0 && (row = hw_sql_step(q)) == 1) {
		if (r->n == r->cap)
			rc = grow(r);
		if (rc == 0)
			begin_subject(r, q, &r->subjects[r->n++]);
	}
	return rc ? rc : row;
}

static struct subject *find(const struct reading *r, int64_t dev)
{
	size_t low = 0, high = r->n;
	while (low < high) {
		size_t mid = (low + high) / 2;
		if (r->subjects[mid].u.dev < dev)
			low = mid + 1;
		else
			high = mid;
	}
	return low < r->n && r->subjects[low].u.dev == dev ? &r->subjects[low] : NULL;
}

/* --- outages ---------------------------------------------------------------------------------------------------- */

static bool is_subject(const void *arg, int64_t dev)
{
	return find(arg, dev) != NULL;
}

/* Any window: adds the seen part of an outage. */
static void take_seen(void *arg, const struct hw_outage *o)
{
	const struct reading *r = arg;
	struct subject *s = find(r, o->dev);
	if (!s)
		return;
	int64_t begin = later(o->from_ms, s->u.from_ms), end = sooner(o->to_ms, s->u.to_ms);
	int64_t seen_ms = hw_spans_measure(&r->seen, begin, end);
	if (o->gone) {
		s->gone_ms += later(end - begin, 0);
		s->u.seen_ms -= seen_ms;
	} else {
		s->u.down_ms += seen_ms;
		s->u.outages += o->from_ms >= r->w->since_ms && o->from_ms < r->w->until_ms;
	}
}

static void take_planned(void *arg, const struct hw_outage *o)
{
	const struct reading *r = arg;
	struct subject *s = find(r, o->dev);
	if (s)
		s->u.planned_ms +=
			hw_spans_measure(&r->seen, later(o->from_ms, s->u.from_ms), sooner(o->to_ms, s->u.to_ms));
}

static int take_lasting(const struct reading *r)
{
	struct hw_sql_stmt *q = hw_sql_prepare(r->sql, "SELECT dev, from_ms FROM outage WHERE from_ms >= ? AND from_ms "
	                                               "< ? AND to_ms IS NULL AND reason <> 'forgotten'");
	int row;
	if (!q)
		return -EIO;
	hw_sql_int(q, 1, r->w->since_ms);
	hw_sql_int(q, 2, r->w->until_ms);
	while ((row = hw_sql_step(q)) == 1) {
		struct subject *s = find(r, hw_sql_column_int(q, 0));
		if (s)
			s->u.outages++;
	}
	return row;
}

static int read_outages(struct reading *r)
{
	const struct hw_outages_ops ops = {is_subject, take_seen, r};
	const struct hw_outages_ops planned = {is_subject, take_planned, r};
	int rc = hw_outages_read(r->sql, r->w->device, r->w->since_ms, r->w->until_ms, &ops);
	if (rc == 0)
		rc = hw_planned_read(r->sql, r->w->device, r->w->since_ms, r->w->until_ms, &planned);
	return rc < 0 ? rc : take_lasting(r);
}

/* --- a whole month ---------------------------------------------------------------------------------------------- */

/* Returns the length of the part of an outage that is in the unseen span. */
static int64_t unseen_ms(const struct reading *r, const struct hw_outage *o, const struct subject *s)
{
	int64_t from = later(later(o->from_ms, r->span->from), s->u.from_ms);
	return later(0, sooner(sooner(o->to_ms, r->span->to), s->u.to_ms) - from);
}

static void take_planned_unseen(void *arg, const struct hw_outage *o)
{
	const struct reading *r = arg;
	struct subject *s = find(r, o->dev);
	if (s)
		s->u.planned_ms -= unseen_ms(r, o, s);
}

/* Subtracts from the sums the part of an outage that no monitor saw, because the sums in `month` contain the whole
 * outage. */
static void take_unseen(void *arg, const struct hw_outage *o)
{
	const struct reading *r = arg;
	struct subject *s = find(r, o->dev);
	if (!s)
		return;
	int64_t ms = unseen_ms(r, o, s);
	if (o->gone)
		s->u.seen_ms += ms;
	else
		s->u.down_ms -= ms;
}

static int read_month(struct reading *r)
{
	struct hw_sql_stmt *q =
		hw_sql_prepare(r->sql, "SELECT dev, outages, down_ms, gone_ms, planned_ms FROM month WHERE month = ?");
	int row;
	if (!q)
		return -EIO;
	hw_sql_int(q, 1, hw_month_of(r->w->since_ms));
	while ((row = hw_sql_step(q)) == 1) {
		struct subject *s = find(r, hw_sql_column_int(q, 0));
		if (!s)
			continue;
		s->u.outages += hw_sql_column_ms(q, 1);
		s->u.down_ms += hw_sql_column_ms(q, 2);
		s->gone_ms += hw_sql_column_ms(q, 3);
		s->u.seen_ms -= hw_sql_column_ms(q, 3);
		s->u.planned_ms += hw_sql_column_ms(q, 4);
	}
	const struct hw_outages_ops ops = {is_subject, take_unseen, r}, planned = {is_subject, take_planned_unseen, r};
	for (size_t i = 0; row == 0 && i < r->unseen.n; i++) {
		r->span = &r->unseen.at[i];
		row = hw_outages_read(r->sql, "", r->span->from, r->span->to, &ops);
		if (row == 0)
			row = hw_planned_read(r->sql, "", r->span->from, r->span->to, &planned);
	}
	return row;
}

/* --- gaps, sums ------------------------------------------------------------------------------------------------- */

static void take_gap(void *arg, int64_t from_ms, int64_t to_ms, int64_t lost)
{
	struct reading *r = arg;
	(void)from_ms, (void)to_ms;
	r->out->gaps++;
	r->out->lost += lost;
}

static int sum_up(struct reading *r)
{
	struct hw_uptimes *out = r->out;
	out->at = calloc(r->n + 1, sizeof(*out->at));
	if (!out->at)
		return -ENOMEM;
	out->all = (struct hw_uptime){.from_ms = r->w->since_ms, .to_ms = r->w->until_ms};
	for (size_t i = 0; i < r->n; i++) {
		struct hw_uptime *u = &r->subjects[i].u;
		u->known_ms = u->to_ms - u->from_ms - r->subjects[i].gone_ms;
		if (u->known_ms <= 0)
			continue;
		u->planned_ms = later(0, sooner(u->planned_ms, u->down_ms));
		out->at[out->n++] = *u;
		out->all.known_ms += u->known_ms;
		out->all.seen_ms += u->seen_ms;
		out->all.down_ms += u->down_ms;
		out->all.planned_ms += u->planned_ms;
		out->all.outages += u->outages;
	}
	return 0;
}

int hw_uptimes_read(struct hw_sql *sql, const struct hw_uptime_window *w, struct hw_uptimes *out)
{
	struct reading r = {.sql = sql, .w = w, .out = out};
	*out = (struct hw_uptimes){0};
	/* One snapshot of the database for the whole report. */
	int rc = hw_sql_run(sql, hw_sql_pick(sql, "BEGIN", "START TRANSACTION WITH CONSISTENT SNAPSHOT"));
	if (rc == 0)
		rc = hw_seen_read(sql, w->since_ms, w->until_ms, &r.seen, NULL);
	if (rc == 0)
		rc = hw_spans_rest(&r.seen, w->since_ms, w->until_ms, &r.unseen);
	if (rc == 0)
		rc = read_devices(&r);
	if (rc == 0)
		rc = w->month && !*w->device && r.unseen.n <= UNSEEN_MAX ? read_month(&r) : read_outages(&r);
	if (rc == 0)
		rc = hw_gaps_read(sql, w->since_ms, w->until_ms, take_gap, &r);
	if (rc == 0)
		rc = hw_sql_commit(sql);
	if (rc == 0)
		rc = sum_up(&r);
	hw_spans_fini(&r.seen);
	hw_spans_fini(&r.unseen);
	free(r.subjects);
	return rc;
}

void hw_uptimes_fini(struct hw_uptimes *u)
{
	free(u->at);
	u->at = NULL;
}

/* SPDX-License-Identifier: MIT */
/*
 * See uptime.h. Outages that are over come from their table, or of a whole month summed up from `month`; the one that
 * lasts, and that a device is forgotten, from the device's own row.
 */
#include "history/uptime.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/event.h"
#include "history/calendar.h"
#include "history/seen.h"
#include "history/spans.h"

#define UNSEEN_MAX 8 /* with more spans that nobody saw, a month's outages are gone through one by one */

/* A device of the report. */
struct subject {
	struct hw_uptime u;
	int64_t gone_ms; /* how long it was forgotten amid what it is known for */
};

struct reading {
	struct hw_sql *sql;
	const struct hw_uptime_window *w;
	struct hw_spans seen, unseen;
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

/* --- devices ------------------------------------------------------------------------------------------------------ */

/* What lasts of a device, from its row: columns dev first_ms gone_ms state since_ms. */
static void begin_subject(const struct reading *r, struct hw_sql_stmt *q, struct subject *s)
{
	size_t len;
	bool gone = !hw_sql_column_is_null(q, 2);
	int64_t end = gone ? sooner(hw_sql_column_int(q, 2), r->w->until_ms) : r->w->until_ms;
	*s = (struct subject){.u = {.dev = hw_sql_column_int(q, 0)}};
	s->u.from_ms = later(hw_sql_column_int(q, 1), r->w->since_ms);
	s->u.to_ms = later(end, s->u.from_ms);
	s->u.seen_ms = hw_spans_measure(&r->seen, s->u.from_ms, s->u.to_ms);
	int64_t since = hw_sql_column_int(q, 4);
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

/* --- outages ------------------------------------------------------------------------------------------------------ */

/* One that is over, of a device of the report. `arg`: a struct hw_span or NULL. */
typedef void taker(const struct reading *r, struct subject *s, int64_t from, int64_t to, bool gone, const void *arg);

static void take_row(const struct reading *r, struct hw_sql_stmt *q, int64_t dev, int column, taker *take,
                     const void *arg)
{
	struct subject *s = find(r, dev);
	size_t len;
	if (s && !hw_sql_column_is_null(q, column + 1))
		take(r, s, hw_sql_column_int(q, column), hw_sql_column_int(q, column + 1),
		     strcmp(hw_sql_column_text(q, column + 2, &len), "forgotten") == 0, arg);
}

/* Those that begin within a span. */
static int take_begun(const struct reading *r, const struct hw_span *span, taker *take, const void *arg)
{
	struct hw_sql_stmt *q = hw_sql_prepare(
		r->sql,
		*r->w->device
			? "SELECT o.dev, o.from_ms, o.to_ms, o.reason FROM device d JOIN outage o ON o.dev = d.dev"
			  " WHERE o.from_ms >= ? AND o.from_ms < ? AND d.id = ?"
			: "SELECT dev, from_ms, to_ms, reason FROM outage WHERE from_ms >= ? AND from_ms < ?");
	int row = -EIO;
	if (!q)
		return -EIO;
	hw_sql_int(q, 1, span->from);
	hw_sql_int(q, 2, span->to);
	if (*r->w->device)
		hw_sql_text(q, 3, r->w->device);
	while ((row = hw_sql_step(q)) == 1)
		take_row(r, q, hw_sql_column_int(q, 0), 1, take, arg);
	return row;
}

/* Those that lasted when a span began: of devices that were down, or forgotten, in that month, the last before. */
static int take_crossing(const struct reading *r, const struct hw_span *span, taker *take, const void *arg)
{
	struct hw_sql_stmt *those =
		hw_sql_prepare(r->sql, "SELECT dev FROM month WHERE month = ? AND (down_ms > 0 OR gone_ms > 0)");
	struct hw_sql_stmt *last = hw_sql_prepare(r->sql, "SELECT from_ms, to_ms, reason FROM outage WHERE dev = ? AND "
	                                                  "from_ms < ? ORDER BY from_ms DESC LIMIT 1");
	int row = -EIO, one = 0;
	if (!those || !last)
		return -EIO;
	hw_sql_int(those, 1, hw_month_of(span->from));
	while (one >= 0 && (row = hw_sql_step(those)) == 1) {
		int64_t dev = hw_sql_column_int(those, 0);
		if (!find(r, dev))
			continue;
		hw_sql_int(last, 1, dev);
		hw_sql_int(last, 2, span->from);
		one = hw_sql_step(last);
		if (one == 1)
			take_row(r, last, dev, 0, take, arg);
		hw_sql_reset(last);
	}
	return one < 0 ? one : row;
}

/* All that are over and touch a span. */
static int take_touching(const struct reading *r, const struct hw_span *span, taker *take, const void *arg)
{
	int rc = take_begun(r, span, take, arg);
	return rc < 0 ? rc : take_crossing(r, span, take, arg);
}

/* Any window: what of an outage was seen. */
static void take_seen(const struct reading *r, struct subject *s, int64_t from, int64_t to, bool gone, const void *arg)
{
	(void)arg;
	int64_t begin = later(from, s->u.from_ms), end = sooner(to, s->u.to_ms);
	int64_t seen_ms = hw_spans_measure(&r->seen, begin, end);
	if (gone) {
		s->gone_ms += later(end - begin, 0);
		s->u.seen_ms -= seen_ms;
	} else {
		s->u.down_ms += seen_ms;
		s->u.outages += from >= r->w->since_ms && from < r->w->until_ms;
	}
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
	const struct hw_span window = {r->w->since_ms, r->w->until_ms, 0};
	int rc = take_touching(r, &window, take_seen, NULL);
	return rc < 0 ? rc : take_lasting(r);
}

/* --- a whole month -------------------------------------------------------------------------------------------------
 */

/* `month` counts all of an outage: what nobody saw of it is taken off again. */
static void take_unseen(const struct reading *r, struct subject *s, int64_t from, int64_t to, bool gone,
                        const void *arg)
{
	const struct hw_span *span = arg;
	int64_t ms = later(0, sooner(sooner(to, span->to), s->u.to_ms) - later(later(from, span->from), s->u.from_ms));
	(void)r;
	if (gone)
		s->u.seen_ms += ms;
	else
		s->u.down_ms -= ms;
}

static int read_month(struct reading *r)
{
	struct hw_sql_stmt *q =
		hw_sql_prepare(r->sql, "SELECT dev, outages, down_ms, gone_ms FROM month WHERE month = ?");
	int row;
	if (!q)
		return -EIO;
	hw_sql_int(q, 1, hw_month_of(r->w->since_ms));
	while ((row = hw_sql_step(q)) == 1) {
		struct subject *s = find(r, hw_sql_column_int(q, 0));
		if (!s)
			continue;
		s->u.outages += hw_sql_column_int(q, 1);
		s->u.down_ms += hw_sql_column_int(q, 2);
		s->gone_ms += hw_sql_column_int(q, 3);
		s->u.seen_ms -= hw_sql_column_int(q, 3);
	}
	for (size_t i = 0; row == 0 && i < r->unseen.n; i++)
		row = take_touching(r, &r->unseen.at[i], take_unseen, &r->unseen.at[i]);
	return row;
}

/* --- gaps, sums ----------------------------------------------------------------------------------------------------
 */

static int read_gaps(struct reading *r)
{
	struct hw_sql_stmt *q =
		hw_sql_prepare(r->sql, "SELECT `after`, `before`, lost FROM gap WHERE stream = 'device:events'");
	struct hw_event_id after, before;
	int row;
	size_t len;
	if (!q)
		return -EIO;
	while ((row = hw_sql_step(q)) == 1) {
		const char *text = hw_sql_column_text(q, 0, &len);
		bool fine = hw_event_id_parse(text, len, &after) == 0;
		text = hw_sql_column_text(q, 1, &len);
		fine &= hw_event_id_parse(text, len, &before) == 0;
		/* One that was put back goes on with an earlier id: it touches what lies between. */
		int64_t from = (int64_t)(after.ms < before.ms ? after.ms : before.ms);
		int64_t to = (int64_t)(after.ms < before.ms ? before.ms : after.ms);
		if (!fine || from >= r->w->until_ms || to < r->w->since_ms)
			continue;
		r->out->gaps++;
		r->out->lost += hw_sql_column_int(q, 2);
	}
	return row;
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
		out->at[out->n++] = *u;
		out->all.known_ms += u->known_ms;
		out->all.seen_ms += u->seen_ms;
		out->all.down_ms += u->down_ms;
		out->all.outages += u->outages;
	}
	return 0;
}

int hw_uptimes_read(struct hw_sql *sql, const struct hw_uptime_window *w, struct hw_uptimes *out)
{
	struct reading r = {.sql = sql, .w = w, .out = out};
	*out = (struct hw_uptimes){0};
	/* A report is of one moment, whatever is written meanwhile. */
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
		rc = read_gaps(&r);
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

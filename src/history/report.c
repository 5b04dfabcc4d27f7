/* SPDX-License-Identifier: MIT */
/* See report.h. A report is a page of at most HW_LIMIT_MAX rows. Only uptime as CSV has all rows at once. */
#include "history/report.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/http.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/event.h"
#include "history/bars.h"
#include "history/counts.h"
#include "history/entry.h"
#include "history/sheet.h"
#include "history/uptime.h"

#define OLD_MS 5000 /* if the database ends more than this before now, a report up to now counts as not up to date */

static void put_column(struct hw_sheet *s, const char *key, struct hw_sql_stmt *q, int i)
{
	size_t len;
	const char *text = hw_sql_column_text(q, i, &len);
	hw_sheet_text(s, key, text, len);
}

static void put_ms(struct hw_sheet *s, const char *key, struct hw_sql_stmt *q, int i)
{
	if (hw_sql_column_is_null(q, i))
		hw_sheet_null(s, key);
	else
		hw_sheet_int(s, key, hw_sql_column_ms(q, i));
}

static void begin(struct hw_query_result *out, struct hw_sheet *s, bool csv)
{
	if (csv)
		out->type = "text/csv; charset=utf-8";
	hw_sheet_begin(s, out->body, csv);
}

static void note_old(struct hw_query_result *out, const struct hw_report_asked *a)
{
	out->old = out->as_of_ms > 0 && out->as_of_ms < a->until_ms - OLD_MS;
}

/* Writes the time up to which the database is complete. A report that ends before that time is complete. */
static void put_as_of(struct hw_query_result *out, struct hw_sheet *s, const struct hw_report_asked *a)
{
	note_old(out, a);
	if (!s->csv && out->as_of_ms > 0)
		hw_json_int(&s->j, "as_of_ms", out->as_of_ms);
	else if (!s->csv)
		hw_json_null(&s->j, "as_of_ms");
}

/* Ends the report, with the begin of the next page if there is one. `number`: `next` is written as a number in JSON. */
static int finish(struct hw_query_result *out, struct hw_sheet *s, const struct hw_report_asked *a, bool more,
                  const char *next, bool number)
{
	put_as_of(out, s, a);
	if (more)
		snprintf(out->next, sizeof(out->next), "%s", next);
	if (more && !s->csv && number)
		hw_json_int(&s->j, "next", strtoll(next, NULL, 10));
	else if (more && !s->csv)
		hw_json_text(&s->j, "next", next);
	return hw_sheet_end(s);
}

static int no_such_device(struct hw_query_result *out)
{
	out->code = HTTP_NOTFOUND;
	out->why = "no such device";
	return 0;
}

/* --- transitions ------------------------------------------------------------------------------------------------ */

#define TRANSITION      "t.seq, t.at_ms, t.state, t.reason, t.last_seen_ms, t.grp, t.node, t.found, t.entry"
#define TRANSITION_HEAD "state,time_ms,reason,last_seen_ms,group,node,seq,found,event"

/* Writes a row whose columns begin with TRANSITION. */
static void put_transition(struct hw_sheet *s, struct hw_sql_stmt *q)
{
	char event[HW_STREAM_ID_TEXT];
	put_column(s, "state", q, 2);
	put_ms(s, "time_ms", q, 1);
	put_column(s, "reason", q, 3);
	put_ms(s, "last_seen_ms", q, 4);
	put_column(s, "group", q, 5);
	put_column(s, "node", q, 6);
	put_ms(s, "seq", q, 0);
	bool found = hw_sql_column_int(q, 7) != 0;
	hw_sheet_bool(s, "found", found);
	hw_stream_id_print(hw_entry_id(hw_sql_column_int(q, 8)), event);
	if (found)
		hw_sheet_null(s, "event");
	else
		hw_sheet_text(s, "event", event, strlen(event));
}

/* Writes a device's data before its transitions. The columns are dev, id, grp, state, since_ms, first_ms, gone_ms. */
static void put_device(struct hw_sheet *s, struct hw_sql_stmt *d)
{
	put_column(s, "id", d, 1);
	put_column(s, "group", d, 2);
	put_column(s, "state", d, 3);
	put_ms(s, "since_ms", d, 4);
	put_ms(s, "first_ms", d, 5);
	put_ms(s, "gone_ms", d, 6);
}

int hw_report_transitions(struct hw_sql *sql, const void *args, struct hw_query_result *out)
{
	const struct hw_report_asked *a = args;
	struct hw_sheet s;
	char next[32] = "";
	unsigned n = 0;
	struct hw_sql_stmt *d =
		hw_sql_prepare(sql, "SELECT dev, id, grp, state, since_ms, first_ms, gone_ms FROM device WHERE id = ?");
	struct hw_sql_stmt *q =
		hw_sql_prepare(sql, "SELECT " TRANSITION " FROM transition t WHERE t.dev = ? AND t.seq < ?"
	                            " AND t.at_ms >= ? AND t.at_ms < ? ORDER BY t.seq DESC LIMIT ?");
	if (!d || !q)
		return -EIO;
	hw_sql_text(d, 1, a->device);
	int row = hw_sql_step(d);
	if (row <= 0)
		return row < 0 ? row : no_such_device(out);
	begin(out, &s, a->csv);
	if (!a->csv)
		put_device(&s, d);
	hw_sheet_open(&s, "transitions", TRANSITION_HEAD);
	hw_sql_int(q, 1, hw_sql_column_int(d, 0));
	hw_sql_int(q, 2, a->after);
	hw_sql_int(q, 3, a->since_ms);
	hw_sql_int(q, 4, a->until_ms);
	hw_sql_int(q, 5, a->limit + 1);
	while ((row = hw_sql_step(q)) == 1 && n++ < a->limit) {
		snprintf(next, sizeof(next), "%" PRId64, hw_sql_column_int(q, 0));
		hw_sheet_row(&s);
		put_transition(&s, q);
		hw_sheet_row_end(&s);
	}
	hw_sheet_close(&s);
	return row < 0 ? row : finish(out, &s, a, row == 1, next, true);
}

/* --- events ----------------------------------------------------------------------------------------------------- */

/*
 * Shows how complete a page of events is. `at` is the offset that the importer has reached, and `from` is the oldest
 * stored entry. Both are read before the rows of the page. So if an entry is written or expires meanwhile, it may be
 * reported as missing although it is in the page. But an entry that is missing in the page is always reported. The gaps
 * after the begin of the page are also written.
 */
struct reach {
	char at[HW_STREAM_ID_TEXT], from[HW_STREAM_ID_TEXT]; /* "": none */
};

static int read_reach(struct hw_sql *sql, struct reach *r)
{
	struct hw_sql_stmt *at = hw_sql_prepare(sql, "SELECT at FROM position WHERE stream = 'device:events'");
	/* Rows that were read from hashes have no id in the stream, so their `entry` is 0. There may be many such rows,
	 * and the index skips them by the condition on `entry`. */
	struct hw_sql_stmt *from = hw_sql_prepare(
		sql, "SELECT entry FROM transition WHERE entry > 0 AND found = 0 ORDER BY entry LIMIT 1");
	size_t len;
	*r = (struct reach){"", ""};
	if (!at || !from)
		return -EIO;
	int row = hw_sql_step(at);
	if (row == 1)
		snprintf(r->at, sizeof(r->at), "%.*s", HW_STREAM_ID_TEXT - 1, hw_sql_column_text(at, 0, &len));
	if (row >= 0 && (row = hw_sql_step(from)) == 1)
		hw_stream_id_print(hw_entry_id(hw_sql_column_int(from, 0)), r->from);
	return row < 0 ? row : 0;
}

/* Writes the gaps that end after the entry with number `after`. */
static int put_gaps(struct hw_sheet *s, struct hw_sql *sql, int64_t after)
{
	struct hw_sql_stmt *q =
		hw_sql_prepare(sql, "SELECT `after`, `before`, lost FROM gap WHERE stream = 'device:events'");
	int row = q ? 0 : -EIO;
	hw_sheet_open(s, "gaps", "");
	while (q && (row = hw_sql_step(q)) == 1) {
		struct hw_stream_id before;
		size_t len;
		const char *text = hw_sql_column_text(q, 1, &len);
		if (hw_stream_id_parse(text, len, &before) != 0 || hw_entry_number(before) <= after)
			continue;
		hw_sheet_row(s);
		put_column(s, "after", q, 0);
		put_column(s, "before", q, 1);
		put_ms(s, "lost", q, 2);
		hw_sheet_row_end(s);
	}
	hw_sheet_close(s);
	return row;
}

static int put_reach(struct hw_sheet *s, struct hw_sql *sql, const struct reach *r, int64_t after)
{
	const char *const names[] = {"at", "from"}, *const texts[] = {r->at, r->from};
	for (int k = 0; k < 2; k++)
		if (*texts[k])
			hw_sheet_text(s, names[k], texts[k], strlen(texts[k]));
		else
			hw_sheet_null(s, names[k]);
	return put_gaps(s, sql, after);
}

int hw_report_events(struct hw_sql *sql, const void *args, struct hw_query_result *out)
{
	const struct hw_report_asked *a = args;
	struct hw_sheet s;
	struct reach reach;
	char next[HW_STREAM_ID_TEXT] = "";
	unsigned n = 0;
	int row;
	struct hw_sql_stmt *q =
		hw_sql_prepare(sql, "SELECT " TRANSITION ", d.id FROM transition t JOIN device d ON d.dev = t.dev"
	                            " WHERE t.entry > ? AND t.found = 0 ORDER BY t.entry LIMIT ?");
	if (!q || read_reach(sql, &reach) != 0)
		return -EIO;
	hw_sql_int(q, 1, a->after);
	hw_sql_int(q, 2, a->limit + 1);
	begin(out, &s, a->csv);
	hw_sheet_open(&s, "events", "id," TRANSITION_HEAD);
	while ((row = hw_sql_step(q)) == 1 && n++ < a->limit) {
		hw_stream_id_print(hw_entry_id(hw_sql_column_int(q, 8)), next);
		hw_sheet_row(&s);
		put_column(&s, "id", q, 9);
		put_transition(&s, q);
		hw_sheet_row_end(&s);
	}
	hw_sheet_close(&s);
	bool more = row == 1;
	if (row >= 0 && !a->csv)
		row = put_reach(&s, sql, &reach, a->after);
	return row < 0 ? row : finish(out, &s, a, more, next, false);
}

/* --- outages ---------------------------------------------------------------------------------------------------- */

static struct hw_sql_stmt *ask_outages(struct hw_sql *sql, const struct hw_report_asked *a)
{
	char text[640];
	const char *name = *a->device ? a->device : a->group;
	int i = 1;
	snprintf(text, sizeof(text),
	         "SELECT d.id, d.grp, o.from_ms, o.to_ms, o.reason, o.dev FROM %s ON d.dev = o.dev WHERE o.from_ms < ? "
	         "AND"
	         " (o.to_ms IS NULL OR o.to_ms > ?) AND (o.from_ms < ? OR (o.from_ms = ? AND o.dev < ?)) AND"
	         " COALESCE(o.to_ms, ?) - o.from_ms >= ? AND o.reason <> 'forgotten'%s%s ORDER BY o.from_ms DESC, "
	         "o.dev DESC"
	         " LIMIT ?",
	         *a->device ? "device d JOIN outage o" : "outage o JOIN device d", *a->device ? " AND d.id = ?" : "",
	         *a->device || !*a->group ? "" : " AND d.grp = ?");
	struct hw_sql_stmt *q = hw_sql_prepare(sql, text);
	if (!q)
		return NULL;
	const int64_t numbers[] = {a->until_ms, a->since_ms, a->after, a->after, a->after_dev, a->until_ms, a->min_ms};
	for (; i <= 7; i++)
		hw_sql_int(q, i, numbers[i - 1]);
	if (*name)
		hw_sql_text(q, i++, name);
	hw_sql_int(q, i, a->limit + 1);
	return q;
}

/* The time until which a current outage certainly lasts. */
static int64_t lasts_to(const struct hw_report_asked *a, const struct hw_query_result *out, int64_t from)
{
	int64_t to = out->as_of_ms > 0 && out->as_of_ms < a->until_ms ? out->as_of_ms : a->until_ms;
	return to > from ? to : from;
}

/* Sums the planned parts of an outage. Returns 1, 0 or -EIO, as hw_sql_step(). */
static int read_planned(struct hw_sql_stmt *q, int64_t dev, int64_t from_ms, int64_t to_ms, int64_t *ms)
{
	hw_sql_int(q, 1, dev);
	hw_sql_int(q, 2, from_ms);
	hw_sql_int(q, 3, to_ms);
	int row = hw_sql_step(q);
	*ms = row == 1 ? hw_sql_column_ms(q, 0) : 0;
	hw_sql_reset(q);
	return row;
}

int hw_report_outages(struct hw_sql *sql, const void *args, struct hw_query_result *out)
{
	const struct hw_report_asked *a = args;
	struct hw_sheet s;
	char next[48] = "";
	unsigned n = 0;
	int row, sum = 0;
	int64_t planned_ms;
	struct hw_sql_stmt *q = ask_outages(sql, a);
	struct hw_sql_stmt *planned = hw_sql_prepare(sql, "SELECT COALESCE(SUM(to_ms - from_ms), 0) FROM planned WHERE"
	                                                  " dev = ? AND from_ms >= ? AND from_ms < ?");
	if (!q || !planned)
		return -EIO;
	begin(out, &s, a->csv);
	hw_sheet_open(&s, "outages", "id,group,from_ms,to_ms,down_s,reason,planned_s");
	while (sum >= 0 && (row = hw_sql_step(q)) == 1 && n++ < a->limit) {
		int64_t begin = hw_sql_column_int(q, 2), from = hw_sql_column_ms(q, 2);
		bool lasts = hw_sql_column_is_null(q, 3);
		int64_t to = lasts ? lasts_to(a, out, from) : hw_sql_column_ms(q, 3);
		sum = read_planned(planned, hw_sql_column_int(q, 5), begin, to, &planned_ms);
		snprintf(next, sizeof(next), "%" PRId64 ".%" PRId64, begin, hw_sql_column_int(q, 5));
		hw_sheet_row(&s);
		put_column(&s, "id", q, 0);
		put_column(&s, "group", q, 1);
		hw_sheet_int(&s, "from_ms", from);
		put_ms(&s, "to_ms", q, 3);
		hw_sheet_seconds(&s, "down_s", to - from);
		put_column(&s, "reason", q, 4);
		hw_sheet_seconds(&s, "planned_s", planned_ms < to - from ? planned_ms : to - from);
		hw_sheet_row_end(&s);
	}
	hw_sheet_close(&s);
	row = sum < 0 ? sum : row;
	return row < 0 ? row : finish(out, &s, a, row == 1, next, false);
}

/* --- incidents ------------------------------------------------------------------------------------------------- */

/* Reports incidents in the order of their ids, which is the order in which they opened. */
int hw_report_incidents(struct hw_sql *sql, const void *args, struct hw_query_result *out)
{
	const struct hw_report_asked *a = args;
	static const char *const texts[] = {"id", "kind", "group", "device", "state", "acked_by"};
	static const char *const times[] = {"opened_ms", "closed_ms", "acked_ms", "messages"};
	const char *name = *a->device ? a->device : a->group;
	char text[512], next[sizeof(a->incident)] = "";
	struct hw_sheet s;
	unsigned n = 0;
	size_t len;
	int row, i = 1;
	snprintf(text, sizeof(text),
	         "SELECT incident, kind, grp, device, state, acked_by, opened_ms, closed_ms, acked_ms, messages FROM "
	         "incident WHERE opened_ms < ? AND (closed_ms IS NULL OR closed_ms > ?)%s%s ORDER BY incident DESC "
	         "LIMIT ?",
	         *a->incident ? " AND incident < ?" : "",
	         *a->device  ? " AND device = ?"
	         : *a->group ? " AND grp = ?"
	                     : "");
	struct hw_sql_stmt *q = hw_sql_prepare(sql, text);
	if (!q)
		return -EIO;
	hw_sql_int(q, i++, a->until_ms);
	hw_sql_int(q, i++, a->since_ms);
	if (*a->incident)
		hw_sql_text(q, i++, a->incident);
	if (*name)
		hw_sql_text(q, i++, name);
	hw_sql_int(q, i, a->limit + 1);
	begin(out, &s, a->csv);
	hw_sheet_open(&s, "incidents", "id,kind,group,device,state,acked_by,opened_ms,closed_ms,acked_ms,messages");
	while ((row = hw_sql_step(q)) == 1 && n++ < a->limit) {
		snprintf(next, sizeof(next), "%s", hw_sql_column_text(q, 0, &len));
		hw_sheet_row(&s);
		for (int k = 0; k < 6; k++)
			if (hw_sql_column_is_null(q, k))
				hw_sheet_null(&s, texts[k]);
			else
				put_column(&s, texts[k], q, k);
		for (int k = 0; k < 4; k++)
			put_ms(&s, times[k], q, 6 + k);
		hw_sheet_row_end(&s);
	}
	hw_sheet_close(&s);
	return row < 0 ? row : finish(out, &s, a, row == 1, next, false);
}

/* --- uptime ----------------------------------------------------------------------------------------------------- */

static int by_down(const void *a, const void *b)
{
	const struct hw_uptime *x = a, *y = b;
	if (x->down_ms != y->down_ms)
		return x->down_ms < y->down_ms ? 1 : -1;
	return (x->dev > y->dev) - (x->dev < y->dev);
}

static int by_outages(const void *a, const void *b)
{
	const struct hw_uptime *x = a, *y = b;
	if (x->outages != y->outages)
		return x->outages < y->outages ? 1 : -1;
	return by_down(a, b);
}

static void put_uptime(struct hw_sheet *s, const struct hw_uptime *u)
{
	hw_sheet_ratio(s, "uptime", u->seen_ms - u->down_ms, u->seen_ms, 1, 9);
	hw_sheet_ratio(s, "seen", u->seen_ms, u->known_ms, 1, 9);
	if (!s->csv)
		hw_sheet_seconds(s, "window_s", u->seen_ms);
	hw_sheet_seconds(s, "down_s", u->down_ms);
	hw_sheet_int(s, "outages", u->outages);
	hw_sheet_ratio(s, "mtbf_s", u->seen_ms - u->down_ms, u->outages, 1e3, 3);
	hw_sheet_ratio(s, "mttr_s", u->down_ms, u->outages, 1e3, 3);
}

static int put_devices(struct hw_sheet *s, struct hw_sql *sql, size_t from, size_t to, const struct hw_uptimes *u)
{
	struct hw_sql_stmt *q = hw_sql_prepare(sql, "SELECT id, grp FROM device WHERE dev = ?");
	int row = q ? 0 : -EIO;
	hw_sheet_open(s, "devices", "id,group,uptime,seen,down_s,outages,mtbf_s,mttr_s,gaps,planned_s");
	for (size_t i = from; row >= 0 && i < to; i++) {
		hw_sql_int(q, 1, u->at[i].dev);
		row = hw_sql_step(q);
		if (row == 1) {
			hw_sheet_row(s);
			put_column(s, "id", q, 0);
			put_column(s, "group", q, 1);
			put_uptime(s, &u->at[i]);
			if (s->csv)
				hw_sheet_int(s, "gaps", u->gaps);
			hw_sheet_seconds(s, "planned_s", u->at[i].planned_ms);
			hw_sheet_row_end(s);
		}
		hw_sql_reset(q);
	}
	hw_sheet_close(s);
	return row < 0 ? row : 0;
}

static int put_report(struct hw_query_result *out, struct hw_sql *sql, const struct hw_report_asked *a,
                      const struct hw_uptimes *u)
{
	struct hw_sheet s;
	size_t from = a->offset < u->n ? a->offset : u->n, to = u->n - from > a->limit ? from + a->limit : u->n;
	begin(out, &s, a->csv);
	put_as_of(out, &s, a);
	if (a->csv) {
		int rc = put_devices(&s, sql, 0, u->n, u);
		return rc ? rc : hw_sheet_end(&s);
	}
	hw_json_int(&s.j, "since_ms", a->since_ms);
	hw_json_int(&s.j, "until_ms", a->until_ms);
	hw_json_int(&s.j, "gaps", u->gaps);
	hw_json_int(&s.j, "lost", u->lost);
	hw_json_key(&s.j, "all");
	hw_json_open(&s.j, '{');
	hw_json_uint(&s.j, "devices", u->n);
	put_uptime(&s, &u->all);
	hw_sheet_seconds(&s, "planned_s", u->all.planned_ms);
	hw_json_close(&s.j, '}');
	int rc = put_devices(&s, sql, from, to, u);
	if (to < u->n)
		hw_json_uint(&s.j, "next_offset", to);
	return rc ? rc : hw_sheet_end(&s);
}

static int read_uptimes(struct hw_sql *sql, const struct hw_report_asked *a, struct hw_uptimes *u)
{
	const struct hw_uptime_window w = {a->since_ms, a->until_ms, a->month, a->device, a->group};
	return hw_uptimes_read(sql, &w, u);
}

/* The worst devices come first. */
int hw_report_uptime(struct hw_sql *sql, const void *args, struct hw_query_result *out)
{
	const struct hw_report_asked *a = args;
	struct hw_uptimes u;
	int rc = read_uptimes(sql, a, &u);
	if (rc == 0 && *a->device && u.n == 0) {
		hw_uptimes_fini(&u);
		out->code = HTTP_NOTFOUND;
		out->why = "the database has nothing about this device at that time";
		return 0;
	}
	if (rc == 0 && u.n > 1)
		qsort(u.at, u.n, sizeof(*u.at), a->by_outages ? by_outages : by_down);
	if (rc == 0)
		rc = put_report(out, sql, a, &u);
	hw_uptimes_fini(&u);
	return rc;
}

/* --- bars ------------------------------------------------------------------------------------------------------- */

static void put_bar(struct hw_sheet *s, const struct hw_bar *b)
{
	hw_sheet_row(s);
	hw_sheet_int(s, "from_ms", b->from_ms);
	hw_sheet_int(s, "to_ms", b->to_ms);
	hw_sheet_seconds(s, "known_s", b->known_ms);
	hw_sheet_seconds(s, "seen_s", b->seen_ms);
	hw_sheet_seconds(s, "down_s", b->down_ms);
	hw_sheet_int(s, "outages", b->outages);
	hw_sheet_seconds(s, "planned_s", b->planned_ms);
	hw_sheet_row_end(s);
}

int hw_report_bars(struct hw_sql *sql, const void *args, struct hw_query_result *out)
{
	const struct hw_report_asked *a = args;
	struct hw_bars bars;
	struct hw_sheet s;
	int rc = hw_bars_read(sql, a, &bars);
	if (rc == -ENOENT) {
		rc = no_such_device(out);
	} else if (rc == 0) {
		begin(out, &s, a->csv);
		put_as_of(out, &s, a);
		if (!a->csv) {
			hw_json_int(&s.j, "since_ms", a->since_ms);
			hw_json_int(&s.j, "until_ms", a->until_ms);
		}
		hw_sheet_open(&s, "bars", "from_ms,to_ms,known_s,seen_s,down_s,outages,planned_s");
		for (size_t i = 0; i < bars.n; i++)
			put_bar(&s, &bars.at[i]);
		hw_sheet_close(&s);
		rc = hw_sheet_end(&s);
	}
	hw_bars_fini(&bars);
	return rc;
}

/* --- counts ----------------------------------------------------------------------------------------------------- */

static void put_count(struct hw_sheet *s, const struct hw_count *c)
{
	const char *const names[] = {"online", "offline"};
	const int64_t counts[] = {c->online, c->offline};
	hw_sheet_row(s);
	hw_sheet_int(s, "time_ms", c->time_ms);
	for (int i = 0; i < 2; i++)
		if (c->known)
			hw_sheet_int(s, names[i], counts[i]);
		else
			hw_sheet_null(s, names[i]);
	hw_sheet_row_end(s);
}

int hw_report_counts(struct hw_sql *sql, const void *args, struct hw_query_result *out)
{
	const struct hw_report_asked *a = args;
	struct hw_counts counts;
	struct hw_sheet s;
	int rc = hw_counts_read(sql, a, out->as_of_ms, &counts);
	if (rc == 0) {
		begin(out, &s, a->csv);
		put_as_of(out, &s, a);
		hw_sheet_open(&s, "counts", "time_ms,online,offline");
		for (size_t i = 0; i < counts.n; i++)
			put_count(&s, &counts.at[i]);
		hw_sheet_close(&s);
		rc = hw_sheet_end(&s);
	}
	hw_counts_fini(&counts);
	return rc;
}

/* --- the badge -------------------------------------------------------------------------------------------------- */

int hw_report_badge(struct hw_sql *sql, const void *args, struct hw_query_result *out)
{
	static const char svg[] =
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"150\" height=\"20\" role=\"img\" aria-label=\"%s: "
		"%s\">"
		"<title>%s: %s</title><rect width=\"88\" height=\"20\" fill=\"#555\"/><rect x=\"88\" width=\"62\" "
		"height=\"20\""
		" fill=\"%s\"/><g fill=\"#fff\" text-anchor=\"middle\" font-family=\"Verdana,Geneva,DejaVu "
		"Sans,sans-serif\""
		" font-size=\"11\"><text x=\"44\" y=\"14\">%s</text><text x=\"119\" y=\"14\">%s</text></g></svg>\n";
	const struct hw_report_asked *a = args;
	struct hw_uptimes u;
	char label[32], value[32] = "unknown";
	const char *colour = "#777";
	int rc = read_uptimes(sql, a, &u);
	if (rc == 0 && u.n == 1 && u.at[0].seen_ms > 0) {
		/* Rounded down, so that a device with an outage never shows 100 %. */
		int64_t parts = (u.at[0].seen_ms - u.at[0].down_ms) * 10000 / u.at[0].seen_ms;
		snprintf(value, sizeof(value), "%d.%02d %%", (int)(parts / 100), (int)(parts % 100));
		colour = parts >= 9950 ? "#2a7a2a" : parts >= 9500 ? "#8a6d00" : "#b02a1a";
	}
	snprintf(label, sizeof(label), "up in %d d", (int)((a->until_ms - a->since_ms) / 86400000));
	hw_uptimes_fini(&u);
	note_old(out, a);
	out->type = "image/svg+xml";
	if (rc == 0 && evbuffer_add_printf(out->body, svg, label, value, label, value, colour, label, value) < 0)
		rc = -ENOMEM;
	return rc;
}

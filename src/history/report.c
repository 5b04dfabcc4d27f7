/* SPDX-License-Identifier: MIT */
/* See report.h. Each is a page of at most HW_LIMIT_MAX rows but for CSV, which has them all. */
#include "history/report.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/http.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/event.h"
#include "history/entry.h"
#include "history/uptime.h"
#include "http/json.h"

static struct hw_sql_stmt *prepare(struct hw_sql *sql, const char *text)
{
	return hw_sql_prepare(sql, text);
}

static void begin(struct hw_answer *out, struct hw_json *j)
{
	hw_json_begin(j, out->body);
	hw_json_open(j, '{');
}

/* 0 or -ENOMEM. */
static int finish(struct hw_answer *out, struct hw_json *j)
{
	hw_json_close(j, '}');
	return hw_json_end(j) != 0 || evbuffer_add(out->body, "\n", 1) != 0 ? -ENOMEM : 0;
}

static void put_column(struct hw_json *j, const char *key, struct hw_sql_stmt *q, int i)
{
	size_t len;
	const char *text = hw_sql_column_text(q, i, &len);
	hw_json_bytes(j, key, text, len);
}

static void put_ms(struct hw_json *j, const char *key, struct hw_sql_stmt *q, int i)
{
	if (hw_sql_column_is_null(q, i))
		hw_json_null(j, key);
	else
		hw_json_int(j, key, hw_sql_column_int(q, i));
}

static int no_such_device(struct hw_answer *out)
{
	out->code = HTTP_NOTFOUND;
	out->why = "no such device";
	return 0;
}

/* --- transitions ---------------------------------------------------------------------------------------------------
 */

#define TRANSITION "t.seq, t.at_ms, t.state, t.reason, t.last_seen_ms, t.grp, t.node, t.found, t.entry"

/* Of a row whose columns are TRANSITION, from `i` on. */
static void put_transition(struct hw_json *j, struct hw_sql_stmt *q, int i)
{
	char event[HW_EVENT_ID_TEXT];
	put_column(j, "state", q, i + 2);
	put_ms(j, "time_ms", q, i + 1);
	put_column(j, "reason", q, i + 3);
	put_ms(j, "last_seen_ms", q, i + 4);
	put_column(j, "group", q, i + 5);
	put_column(j, "node", q, i + 6);
	put_ms(j, "seq", q, i);
	bool found = hw_sql_column_int(q, i + 7) != 0;
	hw_json_bool(j, "found", found);
	hw_event_id_text(hw_entry_id(hw_sql_column_int(q, i + 8)), event);
	hw_json_text(j, "event", found ? NULL : event);
}

int hw_report_transitions(struct hw_sql *sql, const void *args, struct hw_answer *out)
{
	const struct hw_report_asked *a = args;
	struct hw_json j;
	int64_t last = 0;
	unsigned n = 0;
	struct hw_sql_stmt *d =
		prepare(sql, "SELECT dev, id, grp, state, since_ms, first_ms, gone_ms FROM device WHERE id = ?");
	struct hw_sql_stmt *q = prepare(sql, "SELECT " TRANSITION " FROM transition t WHERE t.dev = ? AND t.seq < ?"
	                                     " AND t.at_ms >= ? AND t.at_ms < ? ORDER BY t.seq DESC LIMIT ?");
	if (!d || !q)
		return -EIO;
	hw_sql_text(d, 1, a->device);
	int row = hw_sql_step(d);
	if (row <= 0)
		return row < 0 ? row : no_such_device(out);
	begin(out, &j);
	put_column(&j, "id", d, 1);
	put_column(&j, "group", d, 2);
	put_column(&j, "state", d, 3);
	put_ms(&j, "since_ms", d, 4);
	put_ms(&j, "first_ms", d, 5);
	put_ms(&j, "gone_ms", d, 6);
	hw_json_key(&j, "transitions");
	hw_json_open(&j, '[');
	hw_sql_int(q, 1, hw_sql_column_int(d, 0));
	hw_sql_int(q, 2, a->after);
	hw_sql_int(q, 3, a->since_ms);
	hw_sql_int(q, 4, a->until_ms);
	hw_sql_int(q, 5, a->limit + 1);
	while ((row = hw_sql_step(q)) == 1 && n++ < a->limit) {
		last = hw_sql_column_int(q, 0);
		hw_json_open(&j, '{');
		put_transition(&j, q, 0);
		hw_json_close(&j, '}');
	}
	hw_json_close(&j, ']');
	if (row == 1)
		hw_json_int(&j, "next", last);
	return row < 0 ? row : finish(out, &j);
}

int hw_report_events(struct hw_sql *sql, const void *args, struct hw_answer *out)
{
	const struct hw_report_asked *a = args;
	struct hw_json j;
	char next[HW_EVENT_ID_TEXT] = "";
	unsigned n = 0;
	int row;
	struct hw_sql_stmt *q =
		prepare(sql, "SELECT " TRANSITION ", d.id FROM transition t JOIN device d ON d.dev = t.dev"
	                     " WHERE t.entry > ? AND t.found = 0 ORDER BY t.entry LIMIT ?");
	if (!q)
		return -EIO;
	hw_sql_int(q, 1, a->after);
	hw_sql_int(q, 2, a->limit + 1);
	begin(out, &j);
	hw_json_key(&j, "events");
	hw_json_open(&j, '[');
	while ((row = hw_sql_step(q)) == 1 && n++ < a->limit) {
		hw_event_id_text(hw_entry_id(hw_sql_column_int(q, 8)), next);
		hw_json_open(&j, '{');
		put_column(&j, "id", q, 9);
		put_transition(&j, q, 0);
		hw_json_close(&j, '}');
	}
	hw_json_close(&j, ']');
	if (row == 1)
		hw_json_text(&j, "next", next);
	return row < 0 ? row : finish(out, &j);
}

/* --- outages -------------------------------------------------------------------------------------------------------
 */

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
	struct hw_sql_stmt *q = prepare(sql, text);
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

int hw_report_outages(struct hw_sql *sql, const void *args, struct hw_answer *out)
{
	const struct hw_report_asked *a = args;
	struct hw_json j;
	char next[48] = "";
	unsigned n = 0;
	int row;
	struct hw_sql_stmt *q = ask_outages(sql, a);
	if (!q)
		return -EIO;
	begin(out, &j);
	hw_json_key(&j, "outages");
	hw_json_open(&j, '[');
	while ((row = hw_sql_step(q)) == 1 && n++ < a->limit) {
		int64_t from = hw_sql_column_int(q, 2);
		bool lasts = hw_sql_column_is_null(q, 3);
		snprintf(next, sizeof(next), "%" PRId64 ".%" PRId64, from, hw_sql_column_int(q, 5));
		hw_json_open(&j, '{');
		put_column(&j, "id", q, 0);
		put_column(&j, "group", q, 1);
		hw_json_int(&j, "from_ms", from);
		put_ms(&j, "to_ms", q, 3);
		hw_json_number(&j, "down_s", (double)((lasts ? a->until_ms : hw_sql_column_int(q, 3)) - from) / 1e3);
		put_column(&j, "reason", q, 4);
		hw_json_close(&j, '}');
	}
	hw_json_close(&j, ']');
	if (row == 1)
		hw_json_text(&j, "next", next);
	return row < 0 ? row : finish(out, &j);
}

/* --- uptime --------------------------------------------------------------------------------------------------------
 */

static int by_down(const void *a, const void *b)
{
	const struct hw_uptime *x = a, *y = b;
	if (x->down_ms != y->down_ms)
		return x->down_ms < y->down_ms ? 1 : -1;
	return (x->dev > y->dev) - (x->dev < y->dev);
}

static void put_ratio(struct hw_json *j, const char *key, int64_t over, int64_t under, double unit)
{
	if (under <= 0)
		hw_json_null(j, key);
	else
		hw_json_number(j, key, (double)over / (double)under / unit);
}

static void put_uptime(struct hw_json *j, const struct hw_uptime *u)
{
	put_ratio(j, "uptime", u->seen_ms - u->down_ms, u->seen_ms, 1);
	put_ratio(j, "seen", u->seen_ms, u->known_ms, 1);
	hw_json_number(j, "window_s", (double)u->seen_ms / 1e3);
	hw_json_number(j, "down_s", (double)u->down_ms / 1e3);
	hw_json_int(j, "outages", u->outages);
	put_ratio(j, "mtbf_s", u->seen_ms - u->down_ms, u->outages, 1e3);
	put_ratio(j, "mttr_s", u->down_ms, u->outages, 1e3);
}

/* Columns id grp of a device of the report. */
static struct hw_sql_stmt *ask_name(struct hw_sql *sql)
{
	return prepare(sql, "SELECT id, grp FROM device WHERE dev = ?");
}

static int put_devices(struct hw_json *j, struct hw_sql *sql, const struct hw_report_asked *a,
                       const struct hw_uptimes *u)
{
	struct hw_sql_stmt *q = ask_name(sql);
	int row = q ? 0 : -EIO;
	hw_json_key(j, "devices");
	hw_json_open(j, '[');
	for (size_t i = a->offset; row >= 0 && i < u->n && i - a->offset < a->limit; i++) {
		hw_sql_int(q, 1, u->at[i].dev);
		row = hw_sql_step(q);
		if (row == 1) {
			hw_json_open(j, '{');
			put_column(j, "id", q, 0);
			put_column(j, "group", q, 1);
			put_uptime(j, &u->at[i]);
			hw_json_close(j, '}');
		}
		hw_sql_reset(q);
	}
	hw_json_close(j, ']');
	return row < 0 ? row : 0;
}

static int put_report(struct hw_answer *out, struct hw_sql *sql, const struct hw_report_asked *a,
                      const struct hw_uptimes *u)
{
	struct hw_json j;
	begin(out, &j);
	hw_json_int(&j, "since_ms", a->since_ms);
	hw_json_int(&j, "until_ms", a->until_ms);
	hw_json_int(&j, "gaps", u->gaps);
	hw_json_int(&j, "lost", u->lost);
	hw_json_key(&j, "all");
	hw_json_open(&j, '{');
	hw_json_uint(&j, "devices", u->n);
	put_uptime(&j, &u->all);
	hw_json_close(&j, '}');
	int rc = put_devices(&j, sql, a, u);
	if (a->offset + a->limit < u->n)
		hw_json_uint(&j, "next_offset", a->offset + a->limit);
	return rc ? rc : finish(out, &j);
}

/* A field with what RFC 4180 would take as special is quoted. */
static void put_field(struct evbuffer *b, const char *text, size_t len)
{
	bool plain = !memchr(text, ',', len) && !memchr(text, '"', len) && !memchr(text, '\n', len) &&
	             !memchr(text, '\r', len);
	if (plain) {
		evbuffer_add(b, text, len);
		return;
	}
	evbuffer_add(b, "\"", 1);
	for (size_t i = 0; i < len; i++)
		evbuffer_add(b, text[i] == '"' ? "\"\"" : &text[i], text[i] == '"' ? 2 : 1);
	evbuffer_add(b, "\"", 1);
}

static void put_csv_ratio(struct evbuffer *b, int64_t over, int64_t under, double unit, const char *format)
{
	char text[48];
	evbuffer_add(b, ",", 1);
	if (under > 0)
		evbuffer_add(b, text,
		             (size_t)snprintf(text, sizeof(text), format, (double)over / (double)under / unit));
}

static int put_csv(struct hw_answer *out, struct hw_sql *sql, const struct hw_uptimes *u)
{
	static const char head[] = "id,group,uptime,seen,down_s,outages,mtbf_s,mttr_s,gaps\r\n";
	struct hw_sql_stmt *q = ask_name(sql);
	int row = q ? 0 : -EIO;
	out->type = "text/csv; charset=utf-8";
	evbuffer_add(out->body, head, sizeof(head) - 1);
	for (size_t i = 0; row >= 0 && i < u->n; i++) {
		const struct hw_uptime *one = &u->at[i];
		size_t len;
		hw_sql_int(q, 1, one->dev);
		row = hw_sql_step(q);
		for (int k = 0; row == 1 && k < 2; k++) {
			const char *text = hw_sql_column_text(q, k, &len);
			put_field(out->body, text, len);
			evbuffer_add(out->body, ",", k == 0);
		}
		put_csv_ratio(out->body, one->seen_ms - one->down_ms, one->seen_ms, 1, "%.9f");
		put_csv_ratio(out->body, one->seen_ms, one->known_ms, 1, "%.9f");
		evbuffer_add_printf(out->body, ",%" PRId64 ".%03d,%" PRId64, one->down_ms / 1000,
		                    (int)(one->down_ms % 1000), one->outages);
		put_csv_ratio(out->body, one->seen_ms - one->down_ms, one->outages, 1e3, "%.3f");
		put_csv_ratio(out->body, one->down_ms, one->outages, 1e3, "%.3f");
		evbuffer_add_printf(out->body, ",%" PRId64 "\r\n", u->gaps);
		hw_sql_reset(q);
	}
	return row < 0 ? row : 0;
}

static int read_uptimes(struct hw_sql *sql, const struct hw_report_asked *a, struct hw_uptimes *u)
{
	const struct hw_uptime_window w = {a->since_ms, a->until_ms, a->month, a->device, a->group};
	return hw_uptimes_read(sql, &w, u);
}

/* The worst first. */
int hw_report_uptime(struct hw_sql *sql, const void *args, struct hw_answer *out)
{
	const struct hw_report_asked *a = args;
	struct hw_uptimes u;
	int rc = read_uptimes(sql, a, &u);
	if (rc == 0 && *a->device && u.n == 0) {
		hw_uptimes_fini(&u);
		out->code = HTTP_NOTFOUND;
		out->why = "nothing is known of this device then";
		return 0;
	}
	if (rc == 0 && u.n > 1)
		qsort(u.at, u.n, sizeof(*u.at), by_down);
	if (rc == 0)
		rc = a->csv ? put_csv(out, sql, &u) : put_report(out, sql, a, &u);
	hw_uptimes_fini(&u);
	return rc;
}

/* --- the badge -----------------------------------------------------------------------------------------------------
 */

int hw_report_badge(struct hw_sql *sql, const void *args, struct hw_answer *out)
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
		/* Rounded down: what was away was not there all the time. */
		int64_t parts = (u.at[0].seen_ms - u.at[0].down_ms) * 10000 / u.at[0].seen_ms;
		snprintf(value, sizeof(value), "%d.%02d %%", (int)(parts / 100), (int)(parts % 100));
		colour = parts >= 9950 ? "#2a7a2a" : parts >= 9500 ? "#8a6d00" : "#b02a1a";
	}
	snprintf(label, sizeof(label), "up in %d d", (int)((a->until_ms - a->since_ms) / 86400000));
	hw_uptimes_fini(&u);
	out->type = "image/svg+xml";
	if (rc == 0 && evbuffer_add_printf(out->body, svg, label, value, label, value, colour, label, value) < 0)
		rc = -ENOMEM;
	return rc;
}

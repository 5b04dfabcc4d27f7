/* SPDX-License-Identifier: MIT */
/* See seen.h. */
#include "history/seen.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

struct reading {
	struct hw_spans saw, blind; /* of one node */
	struct hw_spans *seen;
	int64_t last_ms; /* end of the latest sighting of any node */
	bool sees;       /* at last_ms, no node was blind */
};

/* Adds the times in which a node saw the fleet, less the times in which this node was blind. */
static int end_node(struct reading *r)
{
	hw_spans_order(&r->saw);
	hw_spans_order(&r->blind);
	int rc = hw_spans_minus(&r->saw, &r->blind, r->seen);
	r->saw.n = r->blind.n = 0;
	return rc;
}

static void note_last(struct reading *r, int64_t to_ms, bool saw)
{
	if (to_ms > r->last_ms)
		r->sees = saw;
	else if (to_ms == r->last_ms)
		r->sees &= saw;
	r->last_ms = to_ms > r->last_ms ? to_ms : r->last_ms;
}

/* Reads rows with the columns node, from_ms, to_ms, cause; sorted by node. */
static int read_rows(struct reading *r, struct hw_sql_stmt *q, int64_t since_ms, int64_t until_ms)
{
	char node[256] = "";
	size_t len;
	int rc = 0, row = 0;
	while (rc == 0 && (row = hw_sql_step(q)) == 1) {
		const char *of = hw_sql_column_text(q, 0, &len);
		if (strcmp(of, node) != 0)
			rc = end_node(r);
		strncpy(node, of, sizeof(node) - 1);
		int64_t from = hw_sql_column_ms(q, 1), to = hw_sql_column_ms(q, 2);
		(void)hw_sql_column_text(q, 3, &len);
		note_last(r, to, len == 0);
		if (rc == 0)
			rc = hw_spans_add(len == 0 ? &r->saw : &r->blind, from > since_ms ? from : since_ms,
			                  to < until_ms ? to : until_ms);
	}
	return rc ? rc : row;
}

int hw_seen_read(struct hw_sql *sql, int64_t since_ms, int64_t until_ms, struct hw_spans *seen, int64_t *sees_until)
{
	struct reading r = {.seen = seen};
	struct hw_sql_stmt *q = hw_sql_prepare(
		sql,
		"SELECT node, from_ms, to_ms, cause FROM sight WHERE from_ms < ? AND to_ms > ? ORDER BY node, from_ms");
	int rc = -EIO;
	if (q) {
		hw_sql_int(q, 1, until_ms);
		hw_sql_int(q, 2, since_ms);
		rc = read_rows(&r, q, since_ms, until_ms);
	}
	if (rc == 0)
		rc = end_node(&r);
	hw_spans_order(seen);
	if (sees_until)
		*sees_until = r.sees ? r.last_ms : 0;
	hw_spans_fini(&r.saw);
	hw_spans_fini(&r.blind);
	return rc;
}

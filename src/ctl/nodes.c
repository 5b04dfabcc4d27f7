/* SPDX-License-Identifier: MIT */
/* heartwheelctl nodes: the nodes, their states, how many partitions each owns, and problems. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"
#include "heartwheel/print.h"

enum { COL_NODE, COL_STATE, COL_SINCE, COL_OWNS, COL_DEVICES, COL_PENDING, COL_VERSION, COLS };
#define GAP 2
#define MAX 64 /* above the API's limit */

static const char *const titles[COLS] = {"NODE", "STATE", "SINCE", "OWNS", "DEVICES", "PENDING", "VERSION"};

/* The order in which columns are omitted on a narrow terminal. Name, state and ownership are always shown. */
static const int least_important[] = {COL_VERSION, COL_DEVICES, COL_SINCE, COL_PENDING};
#define NODE_LEAST 5 /* minimal columns of a name, which is shortened last */

struct row {
	char *cell[COLS]; /* owned */
	enum hw_paint paint;
};

static char *format_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
static char *format_text(const char *format, ...)
{
	char text[512];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return strdup(text);
}

static char *make_node(const cJSON *node)
{
	bool self = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(node, "self"));
	return format_text("%s%s", hw_member_text(node, "node"), self ? " (this)" : "");
}

static char *make_state(const cJSON *node)
{
	const char *cause = hw_member_text(node, "blind_cause");
	return format_text("%s%s%s", hw_member_text(node, "state"), *cause ? ": " : "", cause);
}

static char *make_count(const cJSON *node, const char *key)
{
	char count[HW_SPAN_MAX];
	return hw_member_has(node, key) ? strdup(hw_text_count(hw_member_int(node, key), count)) : strdup("-");
}

static char *make_owns(const cJSON *node, int64_t partitions)
{
	int64_t owns = hw_member_int(node, "owns");
	if (strcmp(hw_member_text(node, "state"), "lost") == 0) /* its former share belongs to other nodes */
		return strdup("-");
	return format_text("%" PRId64 " (%" PRId64 " %%)", owns,
	                   partitions > 0 ? (owns * 200 + partitions) / (2 * partitions) : 0);
}

static char *make_cell(const cJSON *node, int column, const cJSON *answer)
{
	char span[HW_SPAN_MAX];
	switch (column) {
	case COL_NODE:
		return make_node(node);
	case COL_STATE:
		return make_state(node);
	case COL_SINCE:
		return strdup(hw_text_ago(hw_member_int(answer, "now_ms") - hw_member_int(node, "since_ms"), span));
	case COL_OWNS:
		return make_owns(node, hw_member_int(answer, "partitions"));
	case COL_DEVICES:
		return make_count(node, "devices");
	case COL_PENDING:
		return make_count(node, "owed");
	default:
		return strdup(hw_member_has(node, "version") ? hw_member_text(node, "version") : "-");
	}
}

static enum hw_paint paint_of(const cJSON *node)
{
	const char *state = hw_member_text(node, "state");
	return strcmp(state, "ready") == 0 ? HW_GOOD
	       : strcmp(state, "lost") == 0 || strcmp(state, "lapsed") == 0 || strncmp(state, "blind", 5) == 0
	               ? HW_BAD
	               : HW_WARN;
}

/* Returns how many columns of the terminal a line takes. An omitted column of the table has width 0. */
static size_t line_width(const size_t *widths)
{
	size_t line = 0;
	for (int c = 0; c < COLS; c++)
		line += widths[c] ? widths[c] + (c > 0 ? GAP : 0) : 0;
	return line;
}

static void fit(const struct hw_screen *s, size_t *widths)
{
	for (size_t i = 0; i < sizeof(least_important) / sizeof(least_important[0]); i++)
		if (s->width > 0 && line_width(widths) > s->width)
			widths[least_important[i]] = 0;
	size_t line = line_width(widths), room = widths[COL_NODE] > NODE_LEAST ? widths[COL_NODE] - NODE_LEAST : 0;
	if (s->width > 0 && line > s->width)
		widths[COL_NODE] -= line - s->width < room ? line - s->width : room;
}

static void print_row(const struct hw_screen *s, const struct row *row, const size_t *widths)
{
	size_t gap = 0; /* after the columns printed so far */
	for (int c = 0; c < COLS; c++) {
		size_t width = 0;
		if (widths[c] == 0)
			continue;
		char *text = hw_text_clean(s, row->cell[c] ? row->cell[c] : "?", widths[c], &width);
		bool painted = c == COL_STATE && row->paint != HW_PLAIN;
		printf("%*s%s%s%s", (int)gap, "", painted ? hw_paint(s, row->paint) : "", text ? text : "?",
		       painted ? hw_paint(s, HW_PLAIN) : "");
		gap = (widths[c] > width ? widths[c] - width : 0) + GAP;
		free(text);
	}
	fputc('\n', stdout);
}

static void print_rows(const struct hw_screen *s, const struct row *rows, size_t n)
{
	size_t widths[COLS] = {0};
	for (size_t i = 0; i < n; i++)
		for (int c = 0; c < COLS; c++) {
			size_t width = 0;
			free(hw_text_clean(s, rows[i].cell[c] ? rows[i].cell[c] : "?", 0, &width));
			widths[c] = width > widths[c] ? width : widths[c];
		}
	fit(s, widths);
	for (size_t i = 0; i < n; i++)
		print_row(s, &rows[i], widths);
}

static void print_table(const struct hw_ctl *ctl, const cJSON *answer, const cJSON *nodes)
{
	struct row rows[MAX + 1] = {{{0}, HW_PLAIN}};
	size_t n = 1;
	const cJSON *node;
	for (int c = 0; c < COLS; c++)
		rows[0].cell[c] = strdup(titles[c]);
	cJSON_ArrayForEach(node, nodes)
	{
		if (n > MAX)
			break;
		for (int c = 0; c < COLS; c++)
			rows[n].cell[c] = make_cell(node, c, answer);
		rows[n++].paint = paint_of(node);
	}
	print_rows(&ctl->screen, rows, n);
	for (size_t i = 0; i < n; i++)
		for (int c = 0; c < COLS; c++)
			free(rows[i].cell[c]);
}

/* --- what is wrong, in words */

static void note(const struct hw_ctl *ctl, enum hw_paint paint, char *text)
{
	fputs(hw_paint(&ctl->screen, paint), stdout);
	hw_text_print(stdout, &ctl->screen, text ? text : "?");
	puts(hw_paint(&ctl->screen, HW_PLAIN));
	free(text);
}

static void note_lost(const struct hw_ctl *ctl, const cJSON *answer, const cJSON *node)
{
	char ago[HW_SPAN_MAX];
	int64_t owns = hw_member_int(node, "owns");
	hw_text_ago(hw_member_int(answer, "now_ms") - hw_member_int(node, "since_ms"), ago);
	if (strcmp(hw_member_text(node, "state"), "lost") != 0)
		return;
	if (owns > 0)
		note(ctl, HW_BAD,
		     format_text("node %s was lost %s, and %" PRId64 " of its partitions have no new owner yet",
		                 hw_member_text(node, "node"), ago, owns));
	else
		note(ctl, HW_BAD,
		     format_text("node %s was lost %s; the other nodes watch its devices", hw_member_text(node, "node"),
		                 ago));
}

static void note_differences(const struct hw_ctl *ctl, const cJSON *node)
{
	const cJSON *what;
	char text[256] = "";
	size_t n = 0;
	cJSON_ArrayForEach(what, cJSON_GetObjectItemCaseSensitive(node, "differs")) if (cJSON_IsString(what) && n < 200)
		n += hw_print(text + n, sizeof(text) - n, "%s%.20s", n ? ", " : "", what->valuestring);
	if (n > 0)
		note(ctl, HW_WARN,
		     format_text("node %s differs from this one: %s", hw_member_text(node, "node"), text));
}

static void note_unjudged(const struct hw_ctl *ctl, const cJSON *node)
{
	const cJSON *name;
	char text[256] = "";
	size_t n = 0;
	int64_t count = hw_member_int(node, "unjudged");
	cJSON_ArrayForEach(name, cJSON_GetObjectItemCaseSensitive(node, "unjudged_groups"))
	{
		if (cJSON_IsString(name))
			n += hw_print(text + n, sizeof(text) - n, "%s%s", n ? ", " : "", name->valuestring);
	}
	if (count > 0)
		note(ctl, HW_BAD,
		     format_text("node %s owns %" PRId64
		                 " unjudged device%s, whose heartbeats it does not receive, of %s",
		                 hw_member_text(node, "node"), count, count == 1 ? "" : "s", text));
}

static void note_lapse(const struct hw_ctl *ctl, const cJSON *answer)
{
	char ago[HW_SPAN_MAX];
	hw_text_ago(hw_member_int(answer, "now_ms") - hw_member_int(answer, "as_of_ms"), ago);
	note(ctl, HW_BAD, format_text("this node last reached Redis %s: states and shares are from then", ago));
}

static void print_notes(const struct hw_ctl *ctl, const cJSON *answer, const cJSON *nodes)
{
	const cJSON *node;
	int64_t unowned = hw_member_int(answer, "unowned");
	cJSON_ArrayForEach(node, nodes) note_lost(ctl, answer, node);
	cJSON_ArrayForEach(node, nodes) note_differences(ctl, node);
	cJSON_ArrayForEach(node, nodes) note_unjudged(ctl, node);
	if (unowned > 0)
		note(ctl, HW_BAD,
		     format_text("%" PRId64 " of %" PRId64 " partitions have no owner", unowned,
		                 hw_member_int(answer, "partitions")));
	if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(answer, "member")))
		note(ctl, HW_BAD, format_text("this node is not a member of '%s'", hw_member_text(answer, "name")));
	else if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(answer, "lapsed")))
		note_lapse(ctl, answer);
}

static void print_nodes(const struct hw_ctl *ctl, const cJSON *answer)
{
	const cJSON *nodes = cJSON_GetObjectItemCaseSensitive(answer, "nodes");
	if (strcmp(hw_member_text(answer, "mode"), "off") == 0) {
		puts("this monitor is the only node ([cluster] mode = off)");
		return;
	}
	print_table(ctl, answer, nodes);
	print_notes(ctl, answer, nodes);
}

int hw_cmd_nodes(struct hw_ctl *ctl, const struct hw_args *args)
{
	return hw_ask_and_show(ctl, "/v1/nodes", args->json, print_nodes);
}

/* SPDX-License-Identifier: MIT */
/*
 * heartwheelctl history, outages, uptime: reports of heartwheel-history. The default socket is the one in section
 * [history] of monitor.conf. heartwheeld's socket works too, because heartwheeld forwards the requests. Rows are
 * requested and shown page by page.
 */
#include "ctl/history.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/options.h"

#define PAGE 1000u

/* --- what is asked ---------------------------------------------------------------------------------------------- */

static struct hw_path begin_path(const char *text, const char *id)
{
	struct hw_path path = {0};
	hw_path_add(&path, text);
	if (id)
		hw_path_add_encoded(&path, id);
	return path;
}

static void add(struct hw_path *path, char sign, const char *key, const char *value)
{
	const char text[] = {sign, '\0'};
	if (!value)
		return;
	hw_path_add(path, text);
	hw_path_add(path, key);
	hw_path_add(path, "=");
	hw_path_add_encoded(path, value);
}

/* `left`: rows still to show; 0: all. */
static void add_query(struct hw_path *path, const struct hw_args *args, uint64_t left)
{
	char limit[16];
	snprintf(limit, sizeof(limit), "%u", left > 0 && left < PAGE ? (unsigned)left : PAGE);
	add(path, '?', "limit", limit);
	add(path, '&', "since", args->since);
	add(path, '&', "until", args->until);
	add(path, '&', "month", args->month);
	add(path, '&', "min", args->min);
	add(path, '&', "group", args->group);
}

/* Prints lines of CSV after the first `skip`, at most `most` (0: all). Returns how many it has printed. */
static uint64_t print_csv(const struct hw_ctl *ctl, const char *text, size_t skip, uint64_t most)
{
	uint64_t n = 0;
	const char *end;
	for (; text && (end = strstr(text, "\r\n")) && (most == 0 || n < most); text = end + 2) {
		char *line = strndup(text, (size_t)(end - text));
		if (line && skip == 0) {
			if (ctl->screen.terminal)
				hw_text_print(stdout, &ctl->screen, line);
			else
				fputs(line, stdout);
			fputs("\r\n", stdout);
			n++;
		}
		skip -= skip > 0;
		free(line);
	}
	return n;
}

static int print_rows(const struct hw_ctl *ctl, const cJSON *rows)
{
	const cJSON *row;
	int rc = 0;
	for (row = rows ? rows->child : NULL; row && rc == 0; row = row->next)
		rc = hw_print_json(ctl, row);
	return rc;
}

/* Warns on stderr, because programs read the rows on stdout. */
static void warn_if_old(const struct hw_ctl *ctl, const struct hw_answer *a)
{
	char clock[HW_SPAN_MAX], span[HW_SPAN_MAX];
	if (a->as_of_ms > 0)
		hw_failed(ctl,
		          "this report is as of %s, %s: heartwheel-history has not read later entries; 'heartwheelctl "
		          "history status' shows why",
		          hw_text_clock(a->as_of_ms, clock), hw_text_ago(hw_wall_ms() - a->as_of_ms, span));
}

/* --- transitions, outages --------------------------------------------------------------------------------------- */

/* A list that is requested and shown page by page. */
struct list {
	const char *path, *rows;
	bool of_device; /* the id is part of the path */
	int64_t before_ms;
	uint64_t pages;
};

static void show(const struct hw_ctl *ctl, struct list *l, const cJSON *answer)
{
	const cJSON *rows = cJSON_GetObjectItemCaseSensitive(answer, l->rows);
	if (!l->of_device) {
		hw_show_outages(ctl, rows, l->pages == 0);
		return;
	}
	if (l->pages == 0)
		hw_show_device_head(ctl, answer);
	hw_show_transitions(ctl, rows, &l->before_ms);
}

/* Prints a page and counts its rows. Returns 0 or HW_EXIT_FAILED. */
static int take_page(const struct hw_ctl *ctl, const struct hw_args *args, struct list *l, const struct hw_answer *a,
                     uint64_t *n)
{
	const cJSON *rows = cJSON_GetObjectItemCaseSensitive(a->json, l->rows);
	int rc = 0;
	if (args->csv) {
		*n = print_csv(ctl, a->text, l->pages > 0, 0);
		*n -= l->pages == 0 && *n > 0;
	} else {
		*n = (uint64_t)cJSON_GetArraySize(rows);
		if (args->json)
			rc = print_rows(ctl, rows);
		else
			show(ctl, l, a->json);
	}
	l->pages++;
	return rc;
}

static int list_all(struct hw_ctl *ctl, const struct hw_args *args, struct list *l)
{
	char after[sizeof(((struct hw_answer *)0)->next)] = "";
	uint64_t left = args->limit, n = 0;
	bool more;
	int rc;
	hw_client_want(ctl->client, args->csv ? "text/csv" : NULL);
	do {
		struct hw_path path = begin_path(l->path, l->of_device ? args->id : NULL);
		struct hw_answer a;
		add_query(&path, args, left);
		add(&path, '&', "device", l->of_device ? NULL : args->id);
		add(&path, '&', "after", *after ? after : NULL);
		rc = hw_ask_path(ctl, "GET", &path, &a);
		if (rc)
			break;
		if (l->pages == 0) {
			warn_if_old(ctl, &a);
			if (l->before_ms > 0 && a.as_of_ms > 0)
				l->before_ms = a.as_of_ms;
		}
		rc = take_page(ctl, args, l, &a, &n);
		more = *a.next && (left == 0 || left > n) && n > 0;
		left -= left > 0 && more ? n : 0;
		snprintf(after, sizeof(after), "%s", a.next);
		hw_answer_fini(&a);
	} while (rc == 0 && more && !ferror(stdout));
	return rc;
}

/* Whether the command is 'history status'. For a device named 'status', the user writes -- before the name. */
static bool is_status(const struct hw_args *args)
{
	return strcmp(args->command->name, "history") == 0 && strcmp(args->id, "status") == 0 &&
	       strcmp(args->words[-1], "--") != 0;
}

const char *hw_history_judge(const struct hw_args *args)
{
	if (args->id && args->group)
		return "give a device or --group, not both";
	if (args->id && is_status(args) && (args->csv || args->since || args->until || args->limit))
		return "the only option of 'history status' is --json";
	return NULL;
}

int hw_cmd_history(struct hw_ctl *ctl, const struct hw_args *args)
{
	struct list l = {.path = "/v1/history/devices/", .rows = "transitions", .of_device = true};
	/* If the window ends before now, it is not known when the state in its newest row ended. */
	if (is_status(args))
		return hw_ask_and_show(ctl, "/v1/history/status", args->json, hw_show_history_status);
	l.before_ms = args->until ? 0 : hw_wall_ms();
	return list_all(ctl, args, &l);
}

int hw_cmd_outages(struct hw_ctl *ctl, const struct hw_args *args)
{
	struct list l = {.path = "/v1/history/outages", .rows = "outages"};
	return list_all(ctl, args, &l);
}

/* --- uptime ----------------------------------------------------------------------------------------------------- */

/* Requests a page of uptimes. All pages are about the same window, which ended when the first page was requested. */
static int ask_uptime(struct hw_ctl *ctl, const struct hw_args *args, const cJSON *first, uint64_t left,
                      struct hw_answer *a)
{
	char since[32], until[32], offset[32];
	struct hw_args same = *args;
	struct hw_path path = begin_path("/v1/history/uptime", NULL);
	if (first) {
		snprintf(since, sizeof(since), "%" PRId64, hw_member_int(first, "since_ms"));
		snprintf(until, sizeof(until), "%" PRId64, hw_member_int(first, "until_ms"));
		snprintf(offset, sizeof(offset), "%d",
		         cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(first, "devices")));
		same.month = NULL;
		same.since = since;
		same.until = until;
	}
	add_query(&path, &same, left);
	add(&path, '&', "offset", first ? offset : NULL);
	add(&path, '&', "device", args->id);
	return hw_ask_path(ctl, "GET", &path, a);
}

/* Moves the devices of a page to the first page. Returns their number. */
static uint64_t move_devices(cJSON *from, cJSON *to)
{
	cJSON *rows = cJSON_GetObjectItemCaseSensitive(from, "devices"),
	      *all = cJSON_GetObjectItemCaseSensitive(to, "devices"), *row;
	uint64_t n = 0;
	while (rows && (row = cJSON_DetachItemFromArray(rows, 0))) {
		if (!cJSON_AddItemToArray(all, row))
			cJSON_Delete(row);
		n++;
	}
	return n;
}

int hw_cmd_uptime(struct hw_ctl *ctl, const struct hw_args *args)
{
	struct hw_answer first, page;
	hw_client_want(ctl->client, args->csv ? "text/csv" : NULL);
	int rc = ask_uptime(ctl, args, NULL, args->limit, &first);
	if (rc)
		return rc;
	warn_if_old(ctl, &first);
	if (args->csv) {
		print_csv(ctl, first.text, 0, args->limit ? args->limit + 1 : 0);
		hw_answer_fini(&first);
		return HW_EXIT_DONE;
	}
	uint64_t n = (uint64_t)cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(first.json, "devices"));
	if (n == 0 && args->group)
		rc = hw_failed(ctl, "the database has nothing about group '%s' at that time", args->group);
	/* The next page must begin after the devices that were read so far. If the answer named another offset, the
	 * loop might never end. */
	bool more = hw_member_int(first.json, "next_offset") == (int64_t)n;
	while (rc == 0 && n > 0 && more && (args->limit == 0 || n < args->limit)) {
		rc = ask_uptime(ctl, args, first.json, args->limit ? args->limit - n : 0, &page);
		if (rc)
			break;
		uint64_t moved = move_devices(page.json, first.json);
		n += moved;
		more = moved > 0 && hw_member_int(page.json, "next_offset") == (int64_t)n;
		hw_answer_fini(&page);
	}
	cJSON_DeleteItemFromObjectCaseSensitive(first.json, "next_offset");
	if (rc == 0 && args->json)
		rc = hw_print_json(ctl, first.json);
	else if (rc == 0)
		hw_show_uptime(ctl, first.json, args->id != NULL);
	hw_answer_fini(&first);
	return rc;
}

/* SPDX-License-Identifier: MIT */
/*
 * heartwheelctl history, outages, uptime: what heartwheel-history keeps. Its socket is that of [history] in
 * monitor.conf, unless one is named: heartwheeld's will do as well, which hands on what is asked. Rows come a page at a
 * time, and are shown so.
 */
#include "ctl/history.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/other.h"

#define PAGE 1000u

/* --- what is asked ------------------------------------------------------------------------------------------------ */

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

/* `left` rows are still wanted; 0: all. */
static void add_query(struct hw_path *path, const struct hw_history_args *args, uint64_t left)
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

/* Prints lines of CSV but for the first `skip`, and `most` at most (0: all). Returns how many. */
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

/* On stderr, once for each report: rows on stdout stay as they are for a program. */
static void warn_if_old(const struct hw_ctl *ctl, const struct hw_answer *a)
{
	char clock[HW_SPAN_MAX], span[HW_SPAN_MAX];
	if (a->as_of_ms > 0)
		hw_failed(ctl,
		          "this is as of %s, %s: heartwheel-history has not read later entries; 'heartwheelctl history "
		          "status' "
		          "says why",
		          hw_text_clock(a->as_of_ms, clock), hw_text_ago(hw_wall_ms() - a->as_of_ms, span));
}

/* --- transitions, outages ----------------------------------------------------------------------------------------- */

/* A list, of which a page is asked for and shown. */
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

/* What of an answer is wanted, and how many rows it has. 0 or HW_EXIT_FAILED. */
static int take_page(const struct hw_ctl *ctl, const struct hw_history_args *args, struct list *l,
                     const struct hw_answer *a, uint64_t *n)
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

static int list_all(struct hw_ctl *ctl, const struct hw_history_args *args, struct list *l)
{
	char after[sizeof(((struct hw_answer *)0)->next)] = "";
	uint64_t left = args->limit, n = 0;
	bool more;
	int rc;
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

static int list_transitions(struct hw_ctl *ctl, const struct hw_history_args *args)
{
	struct list l = {.path = "/v1/history/devices/", .rows = "transitions", .of_device = true};
	/* The latest one lasts until now; of an earlier window that is not told. */
	l.before_ms = args->until ? 0 : hw_wall_ms();
	return list_all(ctl, args, &l);
}

static int list_outages(struct hw_ctl *ctl, const struct hw_history_args *args)
{
	struct list l = {.path = "/v1/history/outages", .rows = "outages"};
	return list_all(ctl, args, &l);
}

/* --- uptime ------------------------------------------------------------------------------------------------------- */

/* A page; those behind the first are of the window that the first one says, which ends now. */
static int ask_uptime(struct hw_ctl *ctl, const struct hw_history_args *args, const cJSON *first, uint64_t left,
                      struct hw_answer *a)
{
	char since[32], until[32], offset[32];
	struct hw_history_args same = *args;
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

/* Moves the devices of a page to those of the first. How many. */
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

static int report_uptime(struct hw_ctl *ctl, const struct hw_history_args *args)
{
	struct hw_answer first, page;
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
		rc = hw_failed(ctl, "nothing is known of a group '%s' then", args->group);
	/* The offset of the next page is how many devices came so far: a server that says otherwise would have no end.
	 */
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

static int show_status(struct hw_ctl *ctl, const struct hw_history_args *args)
{
	return hw_ask_and_show(ctl, "/v1/history/status", args->json, hw_show_history_status);
}

/* --- the command line --------------------------------------------------------------------------------------------- */

enum { TAKES_GROUP = 1, TAKES_MONTH = 2, TAKES_MIN = 4, NEEDS_ID = 8 };
enum { OPT_GROUP = 256, OPT_SINCE, OPT_UNTIL, OPT_MONTH, OPT_MIN, OPT_LIMIT, OPT_JSON, OPT_CSV };

static const struct command {
	const char *name;
	unsigned takes;
	int (*run)(struct hw_ctl *ctl, const struct hw_history_args *args);
	const char *synopsis, *more;
} commands[] = {
	{"history", NEEDS_ID, list_transitions, "history [OPTION]... ID | history status [--json]",
         "Shows a device's transitions, the latest first, as heartwheel-history keeps them;\n"
         "or how that one is: its database, how far it has read, what was lost. A device\n"
         "that is called status goes behind '--'.\n"},
	{"outages", TAKES_GROUP | TAKES_MIN, list_outages, "outages [OPTION]... [ID]",
         "Shows when devices were offline, the latest first.\n"},
	{"uptime", TAKES_GROUP | TAKES_MONTH, report_uptime, "uptime [OPTION]... [ID]",
         "Shows for which share of the time that a monitor saw devices were online, those\n"
         "down longest first: of this month, unless another time is named.\n"},
};

static void print_help(const struct command *c)
{
	printf("usage: heartwheelctl [-s SOCKET | -c FILE] %s\n\n%s\noptions:\n", c->synopsis, c->more);
	if (c->takes & TAKES_GROUP)
		puts("  --group G   only devices of that group");
	if (c->takes & TAKES_MONTH)
		puts("  --month M   of a month of UTC: 2026-11");
	puts("  --since T   from then on: 2026-11-01, 2026-11-01T12:00:00Z (UTC), or 30d ago\n"
	     "  --until T   up to then");
	if (c->takes & TAKES_MIN)
		puts("  --min D     only those that were at least so long: 5m");
	puts("  --limit N   at most N of them");
	printf("  --json      %s\n",
	       c->run == report_uptime ? "as JSON, on one line" : "a JSON object for each, one a line");
	puts("  --csv       as CSV\n"
	     "  -h, --help  this text");
}

static int __attribute__((format(printf, 2, 3))) usage(const struct command *c, const char *format, ...)
{
	va_list args;
	fputs("heartwheelctl: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\nusage: heartwheelctl [-s SOCKET | -c FILE] %s\n", c->synopsis);
	return HW_EXIT_USAGE;
}

static bool takes(const struct command *c, int option)
{
	return option == OPT_GROUP   ? c->takes & TAKES_GROUP
	       : option == OPT_MONTH ? c->takes & TAKES_MONTH
	       : option == OPT_MIN   ? c->takes & TAKES_MIN
	                             : option != '?' && option != ':';
}

static void take_option(struct hw_history_args *a, int o, const char **limit)
{
	const char **const texts[] = {&a->group, &a->since, &a->until, &a->month, &a->min, limit};
	a->json |= o == OPT_JSON;
	a->csv |= o == OPT_CSV;
	if (o >= OPT_GROUP && o <= OPT_LIMIT)
		*texts[o - OPT_GROUP] = optarg;
}

/* What is wrong with what was read, or NULL. */
static const char *judge(const struct command *c, struct hw_history_args *a, const char *limit, int n)
{
	a->limit = limit ? strtoull(limit, NULL, 10) : 0;
	if (limit && (a->limit == 0 || strspn(limit, "0123456789") != strlen(limit) || strlen(limit) > 9))
		return "--limit is a number from 1 on";
	if (a->json && a->csv)
		return "--json and --csv exclude each other";
	if (a->month && (a->since || a->until))
		return "--month is a time of its own: no --since, no --until";
	if (a->id && a->group)
		return "a device, or --group";
	if (a->id && !*a->id)
		return "an empty id names no device";
	if (!a->id && c->takes & NEEDS_ID)
		return "which device? Of a group there are outages --group and uptime --group";
	return n > 1 ? "too many arguments" : NULL;
}

/* -1, or an exit status. */
static int read_args(const struct command *c, int argc, char **argv, struct hw_history_args *a, bool *status)
{
	static const struct option options[] = {{"group", required_argument, NULL, OPT_GROUP},
	                                        {"since", required_argument, NULL, OPT_SINCE},
	                                        {"until", required_argument, NULL, OPT_UNTIL},
	                                        {"month", required_argument, NULL, OPT_MONTH},
	                                        {"min", required_argument, NULL, OPT_MIN},
	                                        {"limit", required_argument, NULL, OPT_LIMIT},
	                                        {"json", no_argument, NULL, OPT_JSON},
	                                        {"csv", no_argument, NULL, OPT_CSV},
	                                        {"help", no_argument, NULL, 'h'},
	                                        {NULL, 0, NULL, 0}};
	const char *limit = NULL;
	int o;
	optind = 0; /* GNU: start over, with another array */
	while ((o = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		if (o == 'h') {
			print_help(c);
			return HW_EXIT_DONE;
		}
		if (o == ':')
			return usage(c, "option '%s' needs a value", argv[optind - 1]);
		if (!takes(c, o))
			return usage(c, "unknown option '%s'",
			             argv[optind - 1 - (o != '?' && optarg == argv[optind - 1])]);
		take_option(a, o, &limit);
	}
	a->id = optind < argc ? argv[optind] : NULL;
	*status = c->takes & NEEDS_ID && a->id && strcmp(a->id, "status") == 0 && strcmp(argv[optind - 1], "--") != 0;
	const char *wrong = judge(c, a, limit, argc - optind);
	if (!wrong && *status && (a->csv || a->since || a->until || a->limit))
		wrong = "'history status' takes --json alone";
	return wrong ? usage(c, "%s", wrong) : -1;
}

struct call {
	int (*run)(struct hw_ctl *ctl, const struct hw_history_args *args);
	struct hw_history_args args;
};

static int run(struct hw_ctl *ctl, void *arg)
{
	const struct call *c = arg;
	hw_client_want(ctl->client, c->args.csv ? "text/csv" : NULL);
	return c->run(ctl, &c->args);
}

int hw_history_main(const struct hw_whom *whom, int argc, char **argv)
{
	const struct command *c = commands;
	struct call call = {.run = NULL};
	bool status = false;
	while (strcmp(c->name, argv[0]) != 0)
		c++;
	int rc = read_args(c, argc, argv, &call.args, &status);
	if (rc >= 0)
		return rc;
	call.run = status ? show_status : c->run;
	return hw_ask_other(whom, "heartwheel-history", "history", run, &call);
}

/* SPDX-License-Identifier: MIT */
/* See options.h. */
#include "ctl/options.h"

#include <getopt.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define AT(member) offsetof(struct hw_args, member)
#define FIRST      256 /* for an option without a letter, getopt_long() returns FIRST + its index */

static const struct row {
	const char *name;
	size_t at;        /* offset of the option's member in struct hw_args: a bool, or a text if the option has a
	                   * value */
	bool flag;        /* has no value */
	bool list;        /* may be given several times: `filters` */
	char letter;      /* 0: none */
	const char *help; /* the option's help text; the help of some commands consists of the help texts of their
	                     options */
	const char *help_lines;       /* the help text for commands with HW_OPT_LINES; NULL: `help` */
	const char *const choices[9]; /* the values; none: any */
	const char *wrong;            /* the error for another value */
} rows[HW_OPTIONS] = {
	[HW_OPT_STATE] = {"state", AT(state), .help = "  --state S   only devices that are online, or offline",
                          .choices = {"online", "offline"}, .wrong = "--state must be 'online' or 'offline'"},
	[HW_OPT_TASK_STATE] = {"state", AT(state),
                               .choices = {"scheduled", "held", "sent", "acked", "complete", "failed", "expired",
                                           "cancelled"},
                               .wrong = "--state must be scheduled, held, sent, acked, complete, failed, expired or "
                                        "cancelled"},
	[HW_OPT_GROUP] = {"group", AT(group), .help = "  --group G   only devices of that group"},
	[HW_OPT_PREFIX] = {"prefix", AT(prefix), .help = "  --prefix P  only devices whose id begins with P"},
	[HW_OPT_WARNING] = {"warning", AT(warning), .letter = 'w',
                            .help = "  --warning N, -w N   WARNING if more than N devices are offline, or N%\n"
                                    "                      of them (0)"},
	[HW_OPT_CRITICAL] = {"critical", AT(critical), .letter = 'c',
                             .help = "  --critical N, -c N  CRITICAL, in the same way (50%)"},
	[HW_OPT_BLIND] = {"blind", AT(blind),
                          .help = "  --blind S           the result while the monitor is blind: unknown,\n"
                                  "                      warning or critical (unknown)",
                          .choices = {"unknown", "warning", "critical"},
                          .wrong = "--blind must be 'unknown', 'warning' or 'critical'"},
	[HW_OPT_SEARCH] = {"search", AT(search),
                           .help = "  --search T  only devices whose id, name, note or label contains T; case\n"
                                   "              is ignored"},
	[HW_OPT_LABEL] = {"label", AT(label),
                          .help = "  --label L   only devices with that label: site=north, site=nor*"},
	[HW_OPT_SORT] = {"sort", AT(sort),
                         .help = "  --sort S    id; newest, oldest: by the last change of state; known: in the order\n"
                                 "              of their first heartbeats, which is the quickest",
                         .choices = {"id", "newest", "oldest", "known"},
                         .wrong = "--sort must be 'id', 'newest', 'oldest' or 'known'"},
	[HW_OPT_COLUMNS] = {"columns", AT(columns),
                            .help = "  --columns C learned: the learned timeouts, and what they come from",
                            .choices = {"learned"}, .wrong = "--columns must be 'learned'"},
	[HW_OPT_MONTH] = {"month", AT(month), .help = "  --month M   of a month of UTC: 2026-11"},
	[HW_OPT_SINCE] = {"since", AT(since),
                          .help = "  --since T   from T on: 2026-11-01, 2026-11-01T12:00:00Z (UTC), or 30d ago"},
	[HW_OPT_UNTIL] = {"until", AT(until), .help = "  --until T   up to T"},
	[HW_OPT_MIN] = {"min", AT(min), .help = "  --min D     only outages of at least D: 5m"},
	[HW_OPT_LIMIT] = {"limit", AT(most), .help = "  --limit N   at most N lines"},
	[HW_OPT_DEVICES] = {"limit", AT(most), .help = "  --limit N   at most N devices"},
	[HW_OPT_NAMES] = {"names", AT(names), true, .help = "  --names     only names, one a line",
                          .help_lines = "  --names     only ids, one a line"},
	[HW_OPT_TEST] = {"test", AT(test), true, .help = "  --test [RECEIVER] send a test now"},
	[HW_OPT_JSON] = {"json", AT(json), true, .help = "  --json      as JSON, on one line",
                         .help_lines = "  --json      one JSON object a line"},
	[HW_OPT_CSV] = {"csv", AT(csv), true, .help = "  --csv       as CSV"},
	[HW_OPT_AT] = {"at", AT(at)},
	[HW_OPT_AFTER] = {"after", AT(after)},
	[HW_OPT_EXP] = {"exp", AT(exp)},
	[HW_OPT_NO_HOLD] = {"no-hold", AT(no_hold), true},
	[HW_OPT_ID] = {"id", AT(msg_id)},
	[HW_OPT_WAIT] = {"wait", AT(wait)},
	[HW_OPT_RECEIVER] = {"receiver", AT(receiver)},
	[HW_OPT_WATCHED] = {"watched", AT(watched), true},
	[HW_OPT_FORCE] = {"force", AT(force), true},
	[HW_OPT_ROLE] = {"role", AT(role)},
	[HW_OPT_EXPIRES] = {"expires", AT(expires)},
	[HW_OPT_FILE] = {"file", AT(file)},
	[HW_OPT_ALL] = {"all", AT(all), true, .help = "  --all       closed incidents too"},
	[HW_OPT_FOR] = {"for", AT(lasts), .help = "  --for D     for so long: 30m, 2h, 7d"},
	[HW_OPT_UNTIL_ONLINE] = {"until-online", AT(until_online), true,
                                 .help = "  --until-online  until a device that was offline is online again"},
	[HW_OPT_PLANNED] = {"planned", AT(planned), true, .help = "  --planned   the outages are planned"},
	[HW_OPT_BROKER] = {"broker", AT(broker),
                           .help = "  --broker HOST[:PORT]  the broker (default: that of [mqtt] in monitor.conf)"},
	[HW_OPT_TLS_CA] = {"tls-ca", AT(tls_ca), .help = "  --tls-ca F  use TLS; F has the authorities' certificates"},
	[HW_OPT_USER] = {"user", AT(user), .help = "  --user U    the user at the broker"},
	[HW_OPT_PASSWORD_FILE] = {"password-file", AT(password_file),
                                  .help = "  --password-file F  a file whose first line is the password"},
	[HW_OPT_FILTER] = {"filter", AT(filters), .list = true,
                           .help = "  --filter F  only topics of this filter; may be given several times (#)"},
	[HW_OPT_LISTEN] = {"for", AT(lasts), .help = "  --for D     how long to listen: 60s, 10m (60s)"},
	[HW_OPT_WRITE] = {"write", AT(write), .help = "  --write FILE  write the sections to a new file"},
	[HW_OPT_REPLACE] = {"force", AT(force), true, .help = "  --force     replace FILE if it exists"},
	[HW_OPT_SOURCE] = {"source", AT(source)},
	[HW_OPT_PRUNE] = {"prune", AT(prune), true},
	[HW_OPT_SKIP_BAD] = {"skip-bad", AT(skip_bad), true},
	[HW_OPT_DRY_RUN] = {"dry-run", AT(dry_run), true},
	[HW_OPT_MESSAGE] = {"message", AT(note), .letter = 'm', .help = "  -m, --message TEXT  a note, or the reason"},
};

/* Options of which a command takes only one. */
static const struct {
	enum hw_option a, b;
	const char *wrong;
} pairs[] = {{HW_OPT_JSON, HW_OPT_NAMES, "--json and --names exclude each other"},
             {HW_OPT_JSON, HW_OPT_COLUMNS, "--json and --columns exclude each other: --json has all of them"},
             {HW_OPT_NAMES, HW_OPT_COLUMNS, "--names and --columns exclude each other"},
             {HW_OPT_JSON, HW_OPT_CSV, "--json and --csv exclude each other"},
             {HW_OPT_MONTH, HW_OPT_SINCE, "--month excludes --since and --until"},
             {HW_OPT_MONTH, HW_OPT_UNTIL, "--month excludes --since and --until"},
             {HW_OPT_AT, HW_OPT_AFTER, "--at and --after exclude each other"}};

static bool has(uint64_t set, int option)
{
	return set >> option & 1;
}

static const char *where(const struct hw_command *c)
{
	return c->family->section ? "-s SOCKET | -c FILE" : c->family->alone ? "-c FILE" : "-s SOCKET";
}

static int print_help(const struct hw_command *c)
{
	if (c->family->help)
		return fputs(c->family->help, stdout) < 0 ? HW_EXIT_FAILED : HW_EXIT_DONE;
	printf("usage: heartwheelctl [%s] %s\n"
	       "\n"
	       "%s\n"
	       "options:\n",
	       where(c), c->synopsis, c->more);
	for (int i = 0; i < HW_OPTIONS; i++)
		if (has(c->takes, i))
			puts(has(c->takes, HW_OPT_LINES) && rows[i].help_lines ? rows[i].help_lines : rows[i].help);
	puts("  -h, --help  this text");
	return HW_EXIT_DONE;
}

int hw_usage(const struct hw_command *c, const char *format, ...)
{
	const char *of = c ? c->family->name : NULL;
	va_list args;
	fprintf(stderr, "heartwheelctl: %s%s", of ? of : "", of ? ": " : "");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	if (c && !of)
		fprintf(stderr, "\nusage: heartwheelctl [%s] %s\n", where(c), c->synopsis);
	else
		fprintf(stderr, "\nTry 'heartwheelctl %s%s--help'.\n", of ? of : "", of ? " " : "");
	return HW_EXIT_USAGE;
}

const char *hw_command_meant(const struct hw_command *table, const struct hw_command_family *family, const char *name)
{
	for (const struct hw_command *c = table; c->name; c++) {
		const char *word = !family && c->family->name ? c->family->name : c->name;
		if ((!family || c->family == family) && hw_text_may_mean(name, word))
			return word;
	}
	return NULL;
}

/* --- options ------------------------------------------------------------------------------------------------------ */

/* Fills the array for getopt_long(). The array also contains the options of the family's other commands, so that an
 * error about one of them can show its full name. */
static void list_options(uint64_t known, struct option *out)
{
	for (int i = 0; i < HW_OPTIONS; i++)
		if (has(known, i))
			*out++ = (struct option){rows[i].name, rows[i].flag ? no_argument : required_argument, NULL,
			                         rows[i].letter ? rows[i].letter : FIRST + i};
	*out++ = (struct option){"help", no_argument, NULL, 'h'};
	*out = (struct option){0};
}

static int row_of(int o)
{
	int i = o - FIRST;
	if (o < FIRST)
		for (i = 0; rows[i].letter != o; i++) {
		}
	return i;
}

/* Sets the members of *args and the bits of *given. Returns -1, or an exit status. */
static int read_options(const struct hw_command *c, uint64_t known, int argc, char **argv, struct hw_args *args,
                        uint64_t *given)
{
	struct option options[HW_OPTIONS + 2];
	int o;
	list_options(known, options);
	optind = 0; /* GNU extension: restarts with another array */
	const char *letters = has(known, HW_OPT_WARNING) ? ":hw:c:" : has(known, HW_OPT_MESSAGE) ? ":hm:" : ":h";
	while ((o = getopt_long(argc, argv, letters, options, NULL)) != -1) {
		if (o == 'h')
			return print_help(c);
		if (o == ':')
			return hw_usage(c, "option '%s' needs a value", argv[optind - 1]);
		if (o == '?' && optopt > 0 && optopt < FIRST)
			return hw_usage(c, "unknown option '-%c'", optopt);
		if (o == '?')
			return hw_usage(c, "unknown option '%s'", argv[optind - 1]);
		int i = row_of(o);
		char *member = (char *)args + rows[i].at;
		if (rows[i].list && args->n_filters == HW_FILTERS_MAX)
			return hw_usage(c, "--%s is given more than %d times", rows[i].name, HW_FILTERS_MAX);
		if (rows[i].flag)
			*(bool *)(void *)member = true;
		else if (rows[i].list)
			args->filters[args->n_filters++] = optarg;
		else
			*(const char **)(void *)member = optarg;
		*given |= UINT64_C(1) << i;
	}
	return -1;
}

static bool is_choice(const struct row *r, const char *value)
{
	size_t i = 0;
	while (r->choices[i] && strcmp(r->choices[i], value) != 0)
		i++;
	return r->choices[i] || i == 0;
}

/* Checks the values of options. Returns what is wrong, or NULL. */
static const char *judge_values(struct hw_args *args, uint64_t given)
{
	const char *limit = args->most;
	for (int i = 0; i < HW_OPTIONS; i++)
		if (has(given, i) && !rows[i].flag &&
		    !is_choice(&rows[i], *(const char **)(void *)((char *)args + rows[i].at)))
			return rows[i].wrong;
	args->limit = limit ? strtoull(limit, NULL, 10) : 0;
	if (limit && (args->limit == 0 || strspn(limit, "0123456789") != strlen(limit) || strlen(limit) > 9))
		return "--limit must be a number from 1 on";
	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++)
		if (has(given, pairs[i].a) && has(given, pairs[i].b))
			return pairs[i].wrong;
	return NULL;
}

/* Returns what is wrong with the words, or NULL. */
static const char *judge_words(const struct hw_command *c, const struct hw_args *args)
{
	const struct hw_command_words *w = c->words;
	if (args->n_words < w->least)
		return w->missing;
	if (args->n_words > w->most)
		return "too many arguments";
	for (int i = 0; i < args->n_words && w->empty; i++)
		if (!*args->words[i])
			return w->empty;
	return c->judge ? c->judge(args) : NULL;
}

/* --- the command line --------------------------------------------------------------------------------------------- */

/* Finds the command of a family by the word after the family's name. NULL: there is none, and *rc is the exit status.
 */
static const struct hw_command *find_of_family(const struct hw_command *table, const struct hw_command *any,
                                               const char *name, int *rc)
{
	const struct hw_command_family *family = any->family;
	for (const struct hw_command *c = table; name && c->name; c++)
		if (c->family == family && strcmp(c->name, name) == 0)
			return c;
	const char *meant = name ? hw_command_meant(table, family, name) : NULL;
	*rc = !name ? hw_usage(any, "give a command: %s", family->choices)
	            : hw_usage(any, meant ? "unknown command '%s'; did you mean '%s'?" : "unknown command '%s'", name,
	                       meant);
	return NULL;
}

int hw_options_read(const struct hw_command *table, const struct hw_command *c, int argc, char **argv,
                    struct hw_args *args)
{
	uint64_t known = 0, given = 0;
	for (const struct hw_command *of = table; of->name; of++)
		known |= of->family == c->family ? of->takes : 0;
	int rc = read_options(c, known, argc, argv, args, &given);
	if (rc >= 0)
		return rc;
	if (c->family->name && !(c = find_of_family(table, c, argv[optind], &rc)))
		return rc;
	optind += c->family->name != NULL;
	for (int i = 0; i < HW_OPTIONS; i++)
		if (has(given & ~c->takes, i))
			return hw_usage(c, "unknown option '--%s'", rows[i].name);
	args->command = c;
	args->words = argv + optind;
	args->n_words = argc - optind;
	args->id = args->n_words > 0 ? args->words[0] : NULL;
	const char *wrong = judge_values(args, given);
	wrong = wrong ? wrong : judge_words(c, args);
	return wrong ? hw_usage(c, "%s", wrong) : -1;
}

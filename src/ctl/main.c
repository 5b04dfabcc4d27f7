/* SPDX-License-Identifier: MIT */
/*
 * heartwheelctl: asks a running heartwheeld, through its control socket, and shows the answer. Options and help of all
 * commands come from one table.
 */
#include <errno.h>
#include <getopt.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"

#define DEFAULT_SOCKET HW_RUNSTATEDIR "/control.sock"
#define DEFAULT_CONFIG HW_SYSCONFDIR "/monitor.conf"

/* Which options a command takes. */
enum {
	TAKES_JSON = 1,
	TAKES_FILTER = 2,
	TAKES_ID = 4,
	TAKES_LIST = 8,
	TAKES_NAMES = 16,
	TAKES_IDS = 32,
	TAKES_GROUP = 64,
	TAKES_BOUNDS = 128,
	TAKES_TEST = 256,
};

static const struct command {
	const char *name;
	hw_command *run;
	unsigned takes;
	const char *synopsis;
	const char *brief; /* one line */
	const char *more;
	hw_command_main *main; /* reads its options itself; NULL: the members above say what it takes */
} commands[] = {
	{"status", hw_cmd_status, TAKES_JSON, "status [--json]", "how the daemon and the fleet are",
         "Shows on one screen how many devices are online and offline, whether the\n"
         "monitor sees or is blind and why, its connections, and what it owes.\n",
         NULL},
	{"top", hw_cmd_top, 0, "top", "the fleet, live, on the whole terminal",
         "Shows counts, groups, who is offline and what changed last, until q is pressed.\n"
         "'/' filters by what ids contain, Enter opens a device, 'a' shows all devices.\n",
         NULL},
	{"list", hw_cmd_list, TAKES_JSON | TAKES_FILTER | TAKES_LIST | TAKES_NAMES, "list [OPTION]...",
         "all devices, or some", "Lists devices, by their ids unless --sort says otherwise.\n", NULL},
	{"show", hw_cmd_show, TAKES_JSON | TAKES_ID, "show ID [--json]", "everything about one device",
         "Shows a device's state, what it reported last, its recent transitions, and where\n"
         "it sits in the wheel.\n",
         NULL},
	{"watch", hw_cmd_watch, TAKES_JSON | TAKES_FILTER, "watch [OPTION]...", "transitions as they happen",
         "Prints a line for each device that comes, goes or is forgotten, until it is\n"
         "interrupted. When the daemon is restarted it goes on where it was.\n",
         NULL},
	{"wheel", hw_cmd_wheel, TAKES_JSON, "wheel [--json]", "the timing wheel, drawn",
         "Draws the four levels of the wheel: a bar for each slot, as high as it is full,\n"
         "and where the cursor stands; below it the wheel of keys, if keys are listened to.\n",
         NULL},
	{"groups", hw_cmd_groups, TAKES_JSON | TAKES_NAMES, "groups [--json]", "the groups of devices",
         "Lists the groups with their timeouts and how many devices they have.\n", NULL},
	{"nodes", hw_cmd_nodes, TAKES_JSON, "nodes [--json]", "the nodes that watch this fleet together",
         "Lists the nodes of [cluster], this one included, as it sees them: which state each\n"
         "is in, since when, and how many of the partitions it owns; then what is wrong.\n",
         NULL},
	{"check", hw_cmd_check, TAKES_GROUP | TAKES_BOUNDS, "check [OPTION]...", "a line and an exit status for Nagios",
         "Says in one line whether the fleet and its monitor are well, with figures. Exit\n"
         "status: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.\n",
         NULL},
	{"forget", hw_cmd_forget, TAKES_IDS, "forget ID... | -", "forget devices",
         "Takes the devices out of the monitor, the store and the broker's retained\n"
         "messages. One that is heard again is a new device. '-' stands for ids on standard\n"
         "input, one a line, as list --names writes them.\n",
         NULL},
	{"notify", hw_cmd_notify, TAKES_JSON | TAKES_TEST, "notify [--test [CHANNEL]] [--json]",
         "what was told to whom, and a test of it",
         "Lists the last notifications of [notify]: when each was sent, what it said, and\n"
         "whether it arrived. With --test one goes out now through each channel, or through\n"
         "the one named (exec or webhook), and its result decides the exit status.\n",
         NULL},
	{"reload", hw_cmd_reload, 0, "reload", "read the configuration again",
         "Prints what changed, and what needs a restart. A file with errors changes\n"
         "nothing: every wrong line is printed.\n",
         NULL},
	{"version", hw_cmd_version, 0, "version", "the versions of heartwheelctl and of the daemon",
         "Shows the versions of heartwheelctl and of the daemon.\n", NULL},
	{"history", NULL, 0, "history ID ...", "a device's transitions, of years", NULL, hw_history_main},
	{"outages", NULL, 0, "outages ...", "when devices were offline", NULL, hw_history_main},
	{"uptime", NULL, 0, "uptime ...", "how long they were online", NULL, hw_history_main},
	{"task", NULL, 0, "task send|list|show|cancel|watch|status ...", "commands to devices", NULL, hw_task_main},
	{"user", NULL, 0, "user add|list|remove ...", "who may come in over [http] listen", NULL, hw_user_main},
};
#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void print_help(void)
{
	puts("usage: heartwheelctl [-s SOCKET] COMMAND ...\n\ncommands:");
	for (size_t i = 0; i < N_COMMANDS; i++)
		printf("  %-8s %s\n", commands[i].name, commands[i].brief);
	puts("\noptions:\n"
	     "  -s, --socket SOCKET  the daemon's control socket (default: that in HEARTWHEEL_SOCKET,\n"
	     "                       or " DEFAULT_SOCKET ")\n"
	     "  -c, --config FILE    where history, outages, uptime and task look their socket up\n"
	     "                       (default " DEFAULT_CONFIG ")\n"
	     "  -V, --version        the version of heartwheelctl\n"
	     "  -h, --help           this text; after a command: that command's\n"
	     "\nexit status: 0 done, 1 failed, 2 wrong usage");
}

static void print_command_help(const struct command *c)
{
	printf("usage: heartwheelctl [-s SOCKET] %s\n\n%s\noptions:\n", c->synopsis, c->more);
	if (c->takes & TAKES_FILTER)
		puts("  --state S   only devices that are online, or offline\n"
		     "  --group G   only devices of that group\n"
		     "  --prefix P  only devices whose id begins with P");
	if (c->takes & TAKES_GROUP)
		puts("  --group G   only devices of that group");
	if (c->takes & TAKES_BOUNDS)
		puts("  --warning N, -w N   WARNING if more than N devices are offline, or N%\n"
		     "                      of them (0)\n"
		     "  --critical N, -c N  CRITICAL, likewise (50%)\n"
		     "  --blind S           what it is if devices cannot be heard: unknown,\n"
		     "                      warning or critical (unknown)");
	if (c->takes & TAKES_LIST)
		puts("  --search T  only devices whose id contains T, in capitals or not\n"
		     "  --sort S    id; newest, oldest: by the last change of state; known: as they\n"
		     "              became known, which is the quickest\n"
		     "  --limit N   at most N devices");
	if (c->takes & TAKES_NAMES)
		printf("  --names     nothing but %s, one a line\n", c->takes & TAKES_LIST ? "ids" : "names");
	if (c->takes & TAKES_TEST)
		puts("  --test [CHANNEL]  send a test now");
	if (c->takes & TAKES_JSON)
		printf("  --json      %s\n",
		       c->takes & TAKES_FILTER ? "a JSON object for each, one a line" : "as JSON, on one line");
	puts("  -h, --help  this text");
}

static int __attribute__((format(printf, 2, 3))) usage(const struct command *c, const char *format, ...)
{
	va_list args;
	fputs("heartwheelctl: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	if (c)
		fprintf(stderr, "\nusage: heartwheelctl [-s SOCKET] %s\n", c->synopsis);
	else
		fputs("\nTry 'heartwheelctl --help'.\n", stderr);
	return HW_EXIT_USAGE;
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

static int unknown_command(const char *name)
{
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (hw_text_may_mean(name, commands[i].name))
			return usage(NULL, "unknown command '%s'; did you mean '%s'?", name, commands[i].name);
	return usage(NULL, "unknown command '%s'", name);
}

enum {
	OPT_JSON = 256,
	OPT_STATE,
	OPT_GROUP,
	OPT_PREFIX,
	OPT_SEARCH,
	OPT_SORT,
	OPT_LIMIT,
	OPT_NAMES,
	OPT_BLIND,
	OPT_TEST
};

/* Whether the command takes that option. */
static bool takes(const struct command *c, int option)
{
	static const unsigned needs[] = {TAKES_JSON,   TAKES_FILTER, TAKES_FILTER | TAKES_GROUP,
	                                 TAKES_FILTER, TAKES_LIST,   TAKES_LIST,
	                                 TAKES_LIST,   TAKES_NAMES,  TAKES_BOUNDS,
	                                 TAKES_TEST};
	if (option == 'w' || option == 'c')
		return c->takes & TAKES_BOUNDS;
	return option == 'h' || (option >= OPT_JSON && option <= OPT_TEST && (c->takes & needs[option - OPT_JSON]));
}

static const struct option command_options[] = {
	{"json", no_argument, NULL, OPT_JSON},
	{"state", required_argument, NULL, OPT_STATE},
	{"group", required_argument, NULL, OPT_GROUP},
	{"prefix", required_argument, NULL, OPT_PREFIX},
	{"search", required_argument, NULL, OPT_SEARCH},
	{"sort", required_argument, NULL, OPT_SORT},
	{"limit", required_argument, NULL, OPT_LIMIT},
	{"names", no_argument, NULL, OPT_NAMES},
	{"warning", required_argument, NULL, 'w'},
	{"critical", required_argument, NULL, 'c'},
	{"blind", required_argument, NULL, OPT_BLIND},
	{"test", no_argument, NULL, OPT_TEST},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

/* What getopt_long() did not like, or an option that this command does not take. */
static int bad_option(const struct command *c, int o, const char *last)
{
	if (o == ':')
		return usage(c, "option '%s' needs a value", last);
	for (const struct option *known = command_options; known->name; known++)
		if (o != '?' && known->val == o)
			return usage(c, "unknown option '--%s'", known->name);
	if (optopt > 0 && optopt < OPT_JSON)
		return usage(c, "unknown option '-%c'", optopt);
	return usage(c, "unknown option '%s'", last);
}

static bool one_of(const char *text, const char *const *words)
{
	while (*words && strcmp(*words, text) != 0)
		words++;
	return *words != NULL;
}

/* What is wrong with the values of the options, or NULL. */
static const char *judge(const struct hw_args *args, const char *limit)
{
	static const char *const states[] = {"online", "offline", NULL},
				 *const sorts[] = {"id", "newest", "oldest", "known", NULL},
				 *const levels[] = {"unknown", "warning", "critical", NULL};
	if (args->state && !one_of(args->state, states))
		return "--state is 'online' or 'offline'";
	if (args->sort && !one_of(args->sort, sorts))
		return "--sort is 'id', 'newest', 'oldest' or 'known'";
	if (args->blind && !one_of(args->blind, levels))
		return "--blind is 'unknown', 'warning' or 'critical'";
	if (limit && (args->limit == 0 || strspn(limit, "0123456789") != strlen(limit) || strlen(limit) > 9))
		return "--limit is a number from 1 on";
	if (args->json && args->names)
		return "--json and --names exclude each other";
	return NULL;
}

static void take_option(struct hw_args *args, int o, const char **limit)
{
	args->json |= o == OPT_JSON;
	args->names |= o == OPT_NAMES;
	args->test |= o == OPT_TEST;
	if (o == OPT_STATE)
		args->state = optarg;
	else if (o == OPT_GROUP)
		args->group = optarg;
	else if (o == OPT_PREFIX)
		args->prefix = optarg;
	else if (o == OPT_SEARCH)
		args->search = optarg;
	else if (o == OPT_SORT)
		args->sort = optarg;
	else if (o == 'w')
		args->warning = optarg;
	else if (o == 'c')
		args->critical = optarg;
	else if (o == OPT_BLIND)
		args->blind = optarg;
	else if (o == OPT_LIMIT)
		args->limit = strtoull(*limit = optarg, NULL, 10);
}

/* What stands behind the options. -1, or an exit status. */
static int read_ids(const struct command *c, int n, char **ids, struct hw_args *args)
{
	int least = c->takes & (TAKES_ID | TAKES_IDS) ? 1 : 0;
	if (n < least)
		return usage(c, "which device?");
	if (n > least + args->test && !(c->takes & TAKES_IDS))
		return usage(c, "too many arguments");
	for (int i = 0; i < n; i++)
		if (!*ids[i])
			return usage(c, args->test ? "an empty name names no channel" : "an empty id names no device");
	args->id = n > 0 ? ids[0] : NULL;
	args->ids = ids;
	args->n_ids = n;
	return -1;
}

/* Reads what follows the command's name. -1 if it is to be run, or an exit status. */
static int read_args(const struct command *c, int argc, char **argv, struct hw_args *args)
{
	const char *limit = NULL;
	int o;
	optind = 0; /* GNU: start over, with another array */
	while ((o = getopt_long(argc, argv, ":hw:c:", command_options, NULL)) != -1) {
		if (!takes(c, o))
			return bad_option(c, o, argv[optind - 1]);
		if (o == 'h') {
			print_command_help(c);
			return HW_EXIT_DONE;
		}
		take_option(args, o, &limit);
	}
	const char *wrong = judge(args, limit);
	if (wrong)
		return usage(c, "%s", wrong);
	return read_ids(c, argc - optind, argv + optind, args);
}

static int run(const char *socket, const struct command *c, const struct hw_args *args)
{
	struct hw_ctl ctl = {.socket = socket};
	hw_screen_init(&ctl.screen);
	ctl.client = hw_client_new(socket);
	if (!ctl.client)
		return hw_failed(&ctl, "out of memory");
	int rc = c->run(&ctl, args);
	hw_client_free(ctl.client);
	return rc;
}

/* Output that did not get out is not done. */
static int finish(int rc)
{
	bool failed_before = ferror(stdout);
	errno = failed_before ? EIO : 0;
	if (fflush(stdout) == 0 && !failed_before)
		return rc;
	fprintf(stderr, "heartwheelctl: cannot write: %s\n", strerror(errno));
	return HW_EXIT_FAILED;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"socket", required_argument, NULL, 's'},
		{"config", required_argument, NULL, 'c'},
		{"version", no_argument, NULL, 'V'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	const char *named = getenv("HEARTWHEEL_SOCKET");
	struct hw_whom whom = {named && *named ? named : NULL, DEFAULT_CONFIG};
	struct hw_args args = {0};
	int o;
	setlocale(LC_CTYPE, "");
	opterr = 0;
	while ((o = getopt_long(argc, argv, "+:s:c:Vh", options, NULL)) != -1) {
		switch (o) {
		case 's':
			whom.socket = optarg;
			break;
		case 'c':
			whom.config = optarg;
			whom.socket = whom.socket == named ? NULL : whom.socket;
			break;
		case 'V':
			puts("heartwheelctl " HW_VERSION);
			return finish(HW_EXIT_DONE);
		case 'h':
			print_help();
			return finish(HW_EXIT_DONE);
		case ':':
			return usage(NULL, "option '%s' needs a value", argv[optind - 1]);
		default:
			if (optopt > 0 && optopt < 256)
				return usage(NULL, "unknown option '-%c'", optopt);
			return usage(NULL, "unknown option '%s'", argv[optind - 1]);
		}
	}
	if (whom.socket && !*whom.socket) /* curl would look a host up */
		return usage(NULL, "the socket's path is empty");
	if (optind == argc)
		return usage(NULL, "which command?");
	const struct command *c = find_command(argv[optind]);
	if (!c)
		return unknown_command(argv[optind]);
	if (c->main)
		return finish(c->main(&whom, argc - optind, argv + optind));
	int rc = read_args(c, argc - optind, argv + optind, &args);
	/* What starts plugins reads 2 as CRITICAL, and standard output alone. */
	if (rc == HW_EXIT_USAGE && c->takes & TAKES_BOUNDS) {
		puts("HEARTWHEEL UNKNOWN - wrong usage: see heartwheelctl check --help");
		rc = HW_EXIT_UNKNOWN;
	}
	return finish(rc >= 0 ? rc : run(whom.socket ? whom.socket : DEFAULT_SOCKET, c, &args));
}

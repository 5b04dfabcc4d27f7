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

/* Which options a command takes. */
enum { TAKES_JSON = 1, TAKES_FILTER = 2, TAKES_ID = 4 };

static const struct command {
	const char *name;
	hw_command *run;
	unsigned takes;
	const char *synopsis;
	const char *brief; /* one line */
	const char *more;  /* "": nothing more to say */
} commands[] = {
	{"status", hw_cmd_status, TAKES_JSON, "status [--json]", "how the daemon is",
         "Shows node, devices, connections, what is owed to the outside, and whether the\n"
         "monitor is blind.\n"},
	{"list", hw_cmd_list, TAKES_JSON | TAKES_FILTER, "list [--state S] [--group G] [--prefix P] [--json]",
         "all devices, or some", "Lists devices in the order in which they became known.\n"},
	{"show", hw_cmd_show, TAKES_JSON | TAKES_ID, "show ID [--json]", "everything about one device", ""},
	{"forget", hw_cmd_forget, TAKES_ID, "forget ID", "forget a device",
         "Takes the device out of the monitor, the store and the broker's retained\n"
         "messages. If it is heard again it is a new device.\n"},
	{"reload", hw_cmd_reload, 0, "reload", "read the configuration again",
         "Prints what changed, and what needs a restart. A file with errors changes\n"
         "nothing: every wrong line is printed.\n"},
	{"version", hw_cmd_version, 0, "version", "the versions of heartwheelctl and of the daemon", ""},
};
#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void print_help(void)
{
	puts("usage: heartwheelctl [-s SOCKET] COMMAND ...\n\ncommands:");
	for (size_t i = 0; i < N_COMMANDS; i++)
		printf("  %-8s %s\n", commands[i].name, commands[i].brief);
	puts("\noptions:\n"
	     "  -s, --socket SOCKET  the daemon's control socket\n"
	     "                       (default " DEFAULT_SOCKET ")\n"
	     "  -V, --version        the version of heartwheelctl\n"
	     "  -h, --help           this text; after a command: that command's\n"
	     "\nexit status: 0 done, 1 failed, 2 wrong usage");
}

static void print_command_help(const struct command *c)
{
	printf("usage: heartwheelctl [-s SOCKET] %s\n\n%s", c->synopsis, c->more);
	if (!*c->more)
		printf("Shows %s.\n", c->brief);
	puts("\noptions:");
	if (c->takes & TAKES_FILTER)
		puts("  --state S   only devices that are online, or offline\n"
		     "  --group G   only devices of that group\n"
		     "  --prefix P  only devices whose id begins with P");
	if (c->takes & TAKES_JSON)
		printf("  --json      %s\n",
		       c->takes & TAKES_FILTER ? "a JSON object for each device, one a line" : "as JSON, on one line");
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

enum { OPT_JSON = 256, OPT_STATE, OPT_GROUP, OPT_PREFIX };

/* Whether the command takes that option. */
static bool takes(const struct command *c, int option)
{
	if (option == OPT_JSON)
		return c->takes & TAKES_JSON;
	return option == 'h' ||
	       ((option == OPT_STATE || option == OPT_GROUP || option == OPT_PREFIX) && (c->takes & TAKES_FILTER));
}

static const struct option command_options[] = {
	{"json", no_argument, NULL, OPT_JSON},
	{"state", required_argument, NULL, OPT_STATE},
	{"group", required_argument, NULL, OPT_GROUP},
	{"prefix", required_argument, NULL, OPT_PREFIX},
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

/* Reads what follows the command's name. -1 if it is to be run, or an exit status. */
static int read_args(const struct command *c, int argc, char **argv, struct hw_args *args)
{
	int o;

	optind = 0; /* GNU: start over, with another array */
	while ((o = getopt_long(argc, argv, ":h", command_options, NULL)) != -1) {
		if (!takes(c, o))
			return bad_option(c, o, argv[optind - 1]);
		if (o == 'h') {
			print_command_help(c);
			return HW_EXIT_DONE;
		}
		args->json |= o == OPT_JSON;
		args->state = o == OPT_STATE ? optarg : args->state;
		args->group = o == OPT_GROUP ? optarg : args->group;
		args->prefix = o == OPT_PREFIX ? optarg : args->prefix;
	}
	if (args->state && strcmp(args->state, "online") != 0 && strcmp(args->state, "offline") != 0)
		return usage(c, "--state is 'online' or 'offline'");
	int wanted = c->takes & TAKES_ID ? 1 : 0;
	if (argc - optind < wanted)
		return usage(c, "which device?");
	if (argc - optind > wanted)
		return usage(c, "too many arguments");
	args->id = wanted ? argv[optind] : NULL;
	if (args->id && !*args->id)
		return usage(c, "an empty id names no device");
	return -1;
}

static int run(const char *socket, const struct command *c, const struct hw_args *args)
{
	struct hw_ctl ctl;

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
		{"version", no_argument, NULL, 'V'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	const char *socket = DEFAULT_SOCKET;
	struct hw_args args = {0};
	int o;

	setlocale(LC_CTYPE, "");
	opterr = 0;
	while ((o = getopt_long(argc, argv, "+:s:Vh", options, NULL)) != -1) {
		switch (o) {
		case 's':
			socket = optarg;
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
	if (!*socket) /* curl would look a host up */
		return usage(NULL, "the socket's path is empty");
	if (optind == argc)
		return usage(NULL, "which command?");
	const struct command *c = find_command(argv[optind]);
	if (!c)
		return usage(NULL, "unknown command '%s'", argv[optind]);
	int rc = read_args(c, argc - optind, argv + optind, &args);
	return finish(rc >= 0 ? rc : run(socket, c, &args));
}

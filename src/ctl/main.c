/* SPDX-License-Identifier: MIT */
/*
 * heartwheelctl: sends requests to a running daemon through its control socket, and shows the answers. One table has
 * all commands, with name, function, options, words and help text. options.c has the options.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/options.h"
#include "ctl/other.h"

#define DEFAULT_SOCKET HW_RUNSTATEDIR "/control.sock"
#define DEFAULT_CONFIG HW_SYSCONFDIR "/monitor.conf"

/* --- the commands ------------------------------------------------------------------------------------------------- */

static const struct hw_command_family
	daemon_family = {.name = NULL},
	history_family = {.program = "heartwheel-history", .section = "history"},
	alert_family = {.program = "heartwheel-alert", .section = "alert"}, broker_family = {.alone = true},
	task_family = {"task",
                       "commands to devices",
                       "send, list, show, cancel, watch or status",
                       "usage: heartwheelctl [-s SOCKET | -c FILE] task send [OPTION]... RECEIVER ACTION [JSON]\n"
                       "       heartwheelctl [-s SOCKET | -c FILE] task list [OPTION]...\n"
                       "       heartwheelctl [-s SOCKET | -c FILE] task show|cancel [OPTION]... TASK\n"
                       "       heartwheelctl [-s SOCKET | -c FILE] task watch|status [OPTION]...\n"
                       "\n"
                       "Sends commands to devices through heartwheel-tasks, and follows them to their end.\n"
                       "\n"
                       "send:\n"
                       "  --at T        not before: Unix seconds, 2026-11-24T12:00:00 (local), or with a Z\n"
                       "  --after D     not before D has passed: 30s, 5m, 2h\n"
                       "  --exp D       expires D later without an acknowledgement\n"
                       "  --no-hold     fails if the device is offline, and does not wait for it\n"
                       "  --id ID       the msg_id; a second send with it is the same task\n"
                       "  --wait D      waits up to D for the end; exit status 0 only if the task is complete\n"
                       "list, watch:\n"
                       "  --receiver R  only tasks to that device\n"
                       "  --state S     only tasks in state S; list: scheduled, held, sent or acked,\n"
                       "                with --watched also complete, failed or expired\n"
                       "  --limit N     list: at most N\n"
                       "  --names       list: only the tasks' names\n"
                       "  --watched     list: tasks between other clients, in any state ([tasks] watch)\n"
                       "cancel:\n"
                       "  --force       also a task that the device has acknowledged\n"
                       "all:\n"
                       "  --json        as JSON; list and watch: one object a line\n"
                       "  -h, --help    this text\n",
                       "heartwheel-tasks",
                       "tasks",
                       false},
	devices_family =
		{"devices", "the inventory: devices that are expected", "import, export, set, remove or unseen",
                 .help = "usage: heartwheelctl [-s SOCKET] devices import [OPTION]... FILE | -\n"
                         "       heartwheelctl [-s SOCKET] devices export [--group G] [--source NAME] [--json]\n"
                         "       heartwheelctl [-s SOCKET] devices set ID NAME=VALUE...\n"
                         "       heartwheelctl [-s SOCKET] devices remove ID...\n"
                         "       heartwheelctl [-s SOCKET] devices unseen [--group G] [--json]\n"
                         "\n"
                         "The inventory: devices that are expected, with their names, labels, timeouts and notes.\n"
                         "A file is CSV as spreadsheets write it (UTF-8, with , or ;) or has a JSON object a line.\n"
                         "Its columns: id name group parent labels label.NAME timeout note. A column that is\n"
                         "missing leaves the value, an empty cell clears it. '-' is standard input.\n"
                         "set takes the same names: name=\"Pump 7\" label.site=north timeout=5m; name= clears it.\n"
                         "\n"
                         "import:\n"
                         "  --dry-run      only shows what would change\n"
                         "  --skip-bad     leaves out wrong rows; otherwise one wrong row stops the import\n"
                         "  --prune        removes the ids of this source that the file does not name\n"
                         "  --force        with --prune: also if these are many\n"
                         "  --source NAME  the name of the import; default: that of the file\n"
                         "export, unseen:\n"
                         "  --group G      only devices that are expected in that group\n"
                         "  --source NAME  export: only entries of that source\n"
                         "  --json         one JSON object a line\n"
                         "  -h, --help     this text\n"},
	user_family = {"user", "users of [http] listen", "add, list or remove",
                       .help = "usage: heartwheelctl user add NAME --role read|operate [--expires D] [--file FILE]\n"
                               "       heartwheelctl user list [--json] [--file FILE]\n"
                               "       heartwheelctl user remove NAME [--file FILE]\n"
                               "\n"
                               "Manages the users of [http] listen. 'user add' prints the user's API token once: the\n"
                               "file keeps only its SHA-256. Changes apply after 'heartwheelctl reload'.\n"
                               "\n"
                               "options:\n"
                               "  --role R     read: all that only reads; operate: everything\n"
                               "  --expires D  how long the token is valid: 90d, 12h, ...; default: for ever\n"
                               "  --file FILE  the file that [http] users names\n"
                               "               (default " HW_SYSCONFDIR "/users"
                               ")\n"
                               "  --json       a JSON object for each, one a line\n"
                               "  -h, --help   this text\n"};

static const struct hw_command_words nothing = {0}, device = {1, 1, "which device?", "the device id is empty"},
				     devices = {1, INT_MAX, "which device?", "the device id is empty"},
				     any_device = {0, 1, NULL, "the device id is empty"},
				     past_device = {1, 1,
                                                    "give a device; for a group use outages --group or uptime --group",
                                                    "the device id is empty"},
				     receiver = {0, 1, NULL, "the receiver's name is empty"},
				     action = {2, 3, "give a receiver and an action", NULL},
				     task = {1, 1, "which task?", NULL},
				     incident = {1, 1, "which incident?", "the incident's id is empty"},
				     silence = {1, 1, "which silence?", "the silence's id is empty"},
				     match = {1, 64, "which devices? give terms such as group:pumps or id:pump-7",
                                              "a term is empty"},
				     user = {1, 1, "which user?", NULL},
				     file = {1, 1, "which file?", "the file's name is empty"},
				     assignments = {2, 64, "give a device, and NAME=VALUE", NULL};

static const char *judge_notify(const struct hw_args *args)
{
	return args->id && !args->test ? "too many arguments" : NULL;
}

static const struct hw_command commands[] = {
	{"status", hw_cmd_status, HW_TAKES(JSON), &nothing, &daemon_family, .synopsis = "status [--json]",
         .brief = "state of the daemon and the fleet",
         .more = "Shows how many devices are online and offline, whether the monitor is blind and\n"
                 "why, the newest open incidents, its connections, and pending writes, on one screen.\n"},
	{"top", hw_cmd_top, 0, &nothing, &daemon_family, .synopsis = "top",
         .brief = "the fleet, live, on the whole terminal",
         .more = "Shows counts, open incidents, groups, offline devices and the last changes, until q\n"
                 "is pressed.\n"
                 "'/' filters by a part of the id, Enter opens a device, 'a' shows all devices.\n"},
	{"list", hw_cmd_list,
         HW_TAKES(STATE) | HW_TAKES(GROUP) | HW_TAKES(PREFIX) | HW_TAKES(SEARCH) | HW_TAKES(LABEL) | HW_TAKES(SORT) |
                 HW_TAKES(COLUMNS) | HW_TAKES(DEVICES) | HW_TAKES(NAMES) | HW_TAKES(JSON) | HW_TAKES(LINES),
         &nothing, &daemon_family, .synopsis = "list [OPTION]...", .brief = "all devices, or some",
         .more = "Lists devices, sorted by id unless --sort is given.\n"},
	{"show", hw_cmd_show, HW_TAKES(JSON), &device, &daemon_family, .synopsis = "show ID [--json]",
         .brief = "everything about one device",
         .more = "Shows a device's state, its last report, its parents and how many devices are behind\n"
                 "it, its recent transitions, and its place in the wheel.\n"},
	{"watch", hw_cmd_watch, HW_TAKES(STATE) | HW_TAKES(GROUP) | HW_TAKES(PREFIX) | HW_TAKES(JSON) | HW_TAKES(LINES),
         &nothing, &daemon_family, .synopsis = "watch [OPTION]...", .brief = "transitions as they happen",
         .more = "Prints a line for each device that goes online, goes offline or is forgotten, until\n"
                 "interrupted. After a restart of the daemon it continues where it stopped. Without\n"
                 "a filter and without --json, it also prints when incidents open, change and close.\n"},
	{"wheel", hw_cmd_wheel, HW_TAKES(JSON), &nothing, &daemon_family, .synopsis = "wheel [--json]",
         .brief = "the timing wheel, drawn",
         .more = "Draws the four levels of the wheel: for each slot a bar that shows its number of\n"
                 "devices, and the cursor. The wheel of keys is below, if [keyspace] is on.\n"},
	{"groups", hw_cmd_groups, HW_TAKES(JSON) | HW_TAKES(NAMES), &nothing, &daemon_family,
         .synopsis = "groups [--json]", .brief = "the groups of devices",
         .more = "Lists the groups with their timeouts and numbers of devices.\n"},
	{"nodes", hw_cmd_nodes, HW_TAKES(JSON), &nothing, &daemon_family, .synopsis = "nodes [--json]",
         .brief = "the nodes that watch this fleet together",
         .more = "Lists the nodes of [cluster] as this node sees them: each node's state, since when,\n"
                 "and its number of partitions; then what is wrong.\n"},
	{"check", hw_cmd_check, HW_TAKES(GROUP) | HW_TAKES(WARNING) | HW_TAKES(CRITICAL) | HW_TAKES(BLIND), &nothing,
         &daemon_family, .synopsis = "check [OPTION]...", .brief = "a line and an exit status for Nagios",
         .more = "Prints one line on the state of the fleet and the monitor, with figures. Exit\n"
                 "status: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.\n"},
	{"forget", hw_cmd_forget, 0, &devices, &daemon_family, .synopsis = "forget ID... | -",
         .brief = "forget devices",
         .more = "Removes the devices from the monitor, the store and the broker's retained messages.\n"
                 "If a heartbeat of such a device arrives, it is a new device. '-' reads ids from\n"
                 "standard input, one a line, as list --names writes them.\n"},
	{"reload", hw_cmd_reload, 0, &nothing, &daemon_family, .synopsis = "reload",
         .brief = "read the configuration again",
         .more = "Prints each change, and which changes need a restart. If the file has errors,\n"
                 "nothing changes, and each wrong line is printed.\n"},
	{"version", hw_cmd_version, 0, &nothing, &daemon_family, .synopsis = "version",
         .brief = "the versions of heartwheelctl and of the daemon",
         .more = "Shows the versions of heartwheelctl and of the daemon.\n"},
	{"discover", hw_cmd_discover,
         HW_TAKES(BROKER) | HW_TAKES(TLS_CA) | HW_TAKES(USER) | HW_TAKES(PASSWORD_FILE) | HW_TAKES(FILTER) |
                 HW_TAKES(LISTEN) | HW_TAKES(WRITE) | HW_TAKES(REPLACE),
         &nothing, &broker_family, .synopsis = "discover [OPTION]...",
         .brief = "finds the devices at a broker, and writes their groups",
         .more = "Listens to a broker, publishes nothing, and prints sections [group NAME] for monitor.conf\n"
                 "with what was seen of each group. Needs no daemon. Exit status 1: no group was found.\n",
         .judge = hw_discover_judge},
	{"history", hw_cmd_history,
         HW_TAKES(SINCE) | HW_TAKES(UNTIL) | HW_TAKES(LIMIT) | HW_TAKES(JSON) | HW_TAKES(CSV) | HW_TAKES(LINES),
         &past_device, &history_family, .synopsis = "history [OPTION]... ID | history status [--json]",
         .brief = "a device's transitions over years",
         .more = "Shows a device's transitions, the latest first, as heartwheel-history keeps them.\n"
                 "'history status' shows heartwheel-history's state: its database, how far it has\n"
                 "read, and lost entries. Write a device named status after '--'.\n",
         .judge = hw_history_judge},
	{"outages", hw_cmd_outages,
         HW_TAKES(GROUP) | HW_TAKES(SINCE) | HW_TAKES(UNTIL) | HW_TAKES(MIN) | HW_TAKES(LIMIT) | HW_TAKES(JSON) |
                 HW_TAKES(CSV) | HW_TAKES(LINES),
         &any_device, &history_family, .synopsis = "outages [OPTION]... [ID]", .brief = "when devices were offline",
         .more = "Shows when devices were offline, the latest first.\n", .judge = hw_history_judge},
	{"uptime", hw_cmd_uptime,
         HW_TAKES(GROUP) | HW_TAKES(MONTH) | HW_TAKES(SINCE) | HW_TAKES(UNTIL) | HW_TAKES(LIMIT) | HW_TAKES(JSON) |
                 HW_TAKES(CSV),
         &any_device, &history_family, .synopsis = "uptime [OPTION]... [ID]", .brief = "share of time online",
         .more = "Shows each device's share of time online, without the time for which no monitor\n"
                 "was watching. The device that was offline longest comes first. The default is this\n"
                 "month.\n",
         .judge = hw_history_judge},
	{"incidents", hw_cmd_incidents, HW_TAKES(ALL) | HW_TAKES(GROUP) | HW_TAKES(JSON) | HW_TAKES(LINES), &nothing,
         &alert_family, .synopsis = "incidents [OPTION]...", .brief = "what is wrong now",
         .more = "Lists the open incidents, the newest first.\n"},
	{"incident", hw_cmd_incident, HW_TAKES(JSON), &incident, &alert_family, .synopsis = "incident ID [--json]",
         .brief = "everything about one incident",
         .more = "Shows an incident, its devices, and what each receiver was sent.\n"},
	{"ack", hw_cmd_ack, HW_TAKES(MESSAGE), &incident, &alert_family, .synopsis = "ack ID [-m NOTE]",
         .brief = "somebody takes care of an incident",
         .more = "Acknowledges an incident: the receivers get to know it, and no reminder follows.\n"},
	{"unack", hw_cmd_unack, 0, &incident, &alert_family, .synopsis = "unack ID",
         .brief = "takes an acknowledgement back", .more = "Takes an acknowledgement back.\n"},
	{"silence", hw_cmd_silence,
         HW_TAKES(FOR) | HW_TAKES(UNTIL_ONLINE) | HW_TAKES(PLANNED) | HW_TAKES(MESSAGE) | HW_TAKES(JSON), &match,
         &alert_family, .synopsis = "silence MATCH... --for D|--until-online [OPTION]...",
         .brief = "no messages about some devices for a while",
         .more = "Begins a silence for the devices that match all terms: group:GLOB, id:GLOB or\n"
                 "label:NAME=GLOB. The end of an incident is sent nevertheless, and what is still\n"
                 "down at the end of the silence. Prints the silence's id.\n",
         .judge = hw_silence_judge},
	{"silences", hw_cmd_silences, HW_TAKES(JSON), &nothing, &alert_family, .synopsis = "silences [--json]",
         .brief = "the silences, also those of the file", .more = "Lists the silences, also those of monitor.conf.\n"},
	{"unsilence", hw_cmd_unsilence, 0, &silence, &alert_family, .synopsis = "unsilence ID",
         .brief = "ends a silence", .more = "Ends a silence.\n"},
	{"notify", hw_cmd_notify, HW_TAKES(JSON) | HW_TAKES(TEST), &receiver, &alert_family,
         .synopsis = "notify [--test [RECEIVER]] [--json]", .brief = "the last notifications; sends a test",
         .more = "Lists the receivers and the last messages of each: when it was sent, its text, and\n"
                 "whether it arrived. --test sends one now to each receiver, or to the named one; the\n"
                 "exit status is its result.\n",
         .judge = judge_notify},
	{"send", hw_cmd_task_send,
         HW_TAKES(AT) | HW_TAKES(AFTER) | HW_TAKES(EXP) | HW_TAKES(NO_HOLD) | HW_TAKES(ID) | HW_TAKES(WAIT) |
                 HW_TAKES(JSON),
         &action, .family = &task_family},
	{"list", hw_cmd_task_list,
         HW_TAKES(RECEIVER) | HW_TAKES(TASK_STATE) | HW_TAKES(LIMIT) | HW_TAKES(NAMES) | HW_TAKES(WATCHED) |
                 HW_TAKES(JSON),
         &nothing, .family = &task_family},
	{"show", hw_cmd_task_show, HW_TAKES(JSON), &task, .family = &task_family},
	{"cancel", hw_cmd_task_cancel, HW_TAKES(FORCE) | HW_TAKES(JSON), &task, .family = &task_family},
	{"watch", hw_cmd_task_watch, HW_TAKES(RECEIVER) | HW_TAKES(TASK_STATE) | HW_TAKES(JSON), &nothing,
         .family = &task_family},
	{"status", hw_cmd_task_status, HW_TAKES(JSON), &nothing, .family = &task_family},
	{"import", hw_cmd_devices_import,
         HW_TAKES(SOURCE) | HW_TAKES(PRUNE) | HW_TAKES(FORCE) | HW_TAKES(SKIP_BAD) | HW_TAKES(DRY_RUN), &file,
         .family = &devices_family},
	{"export", hw_cmd_devices_export, HW_TAKES(GROUP) | HW_TAKES(SOURCE) | HW_TAKES(JSON), &nothing,
         .family = &devices_family},
	{"set", hw_cmd_devices_set, 0, &assignments, .family = &devices_family},
	{"remove", hw_cmd_devices_remove, 0, &devices, .family = &devices_family},
	{"unseen", hw_cmd_devices_unseen, HW_TAKES(GROUP) | HW_TAKES(JSON), &nothing, .family = &devices_family},
	{"add", hw_cmd_user_add, HW_TAKES(ROLE) | HW_TAKES(EXPIRES) | HW_TAKES(FILE) | HW_TAKES(JSON), &user,
         .family = &user_family},
	{"list", hw_cmd_user_list, HW_TAKES(FILE) | HW_TAKES(JSON), &nothing, .family = &user_family},
	{"remove", hw_cmd_user_remove, HW_TAKES(FILE) | HW_TAKES(JSON), &user, .family = &user_family},
	{.name = NULL},
};

/* Returns the word with which the command line begins: that of the family, or the command's own. */
static const char *first_word(const struct hw_command *c)
{
	return c->family->name ? c->family->name : c->name;
}

static const struct hw_command *find_command(const char *name)
{
	const struct hw_command *c = commands;
	while (c->name && strcmp(first_word(c), name) != 0)
		c++;
	return c->name ? c : NULL;
}

static void print_help(void)
{
	puts("usage: heartwheelctl [-s SOCKET] COMMAND ...\n"
	     "\n"
	     "commands:");
	for (const struct hw_command *c = commands; c->name; c++)
		if (c == find_command(first_word(c)))
			printf("  %-9s %s\n", first_word(c), c->family->name ? c->family->brief : c->brief);
	puts("\n"
	     "options:\n"
	     "  -s, --socket SOCKET  the daemon's control socket (default: that in HEARTWHEEL_SOCKET,\n"
	     "                       or " DEFAULT_SOCKET ")\n"
	     "  -c, --config FILE    the file that names the sockets of the other daemons\n"
	     "                       (default " DEFAULT_CONFIG ")\n"
	     "  -V, --version        the version of heartwheelctl\n"
	     "  -h, --help           this text; after a command: help on the command\n"
	     "\n"
	     "exit status: 0 done, 1 failed, 2 wrong usage");
}

/* --- the command line --------------------------------------------------------------------------------------------- */

/* Runs a command with a client of the command's daemon. `given`: the socket in the command line, or NULL. It may be
 * heartwheeld's socket, because heartwheeld forwards requests to the other daemons. Returns the exit status. */
static int run(const struct hw_args *args, const char *given, const char *config)
{
	const struct hw_command_family *f = args->command->family;
	char *found = given || !f->section ? NULL : hw_find_socket(config, f->section);
	struct hw_ctl ctl = {.socket = given ? given : f->section ? found : DEFAULT_SOCKET, .config = config};
	hw_screen_init(&ctl.screen);
	ctl.client = ctl.socket ? hw_client_new(ctl.socket) : NULL;
	if (ctl.client && f->section)
		hw_client_ask_of(ctl.client, given ? "a daemon" : f->program, given ? "http" : f->section);
	int rc = ctl.client ? args->command->run(&ctl, args) : hw_failed(&ctl, "out of memory");
	hw_client_free(ctl.client);
	free(found);
	return rc;
}

/* Fails if the output could not be written. */
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
	const char *socket = named && *named ? named : NULL, *config = DEFAULT_CONFIG;
	struct hw_args args = {0};
	int o;
	setlocale(LC_CTYPE, "");
	opterr = 0;
	while ((o = getopt_long(argc, argv, "+:s:c:Vh", options, NULL)) != -1) {
		switch (o) {
		case 's':
			socket = optarg;
			break;
		case 'c':
			config = optarg;
			socket = socket == named ? NULL : socket;
			break;
		case 'V':
			puts("heartwheelctl " HW_VERSION);
			return finish(HW_EXIT_DONE);
		case 'h':
			print_help();
			return finish(HW_EXIT_DONE);
		case ':':
			return hw_usage(NULL, "option '%s' needs a value", argv[optind - 1]);
		default:
			if (optopt > 0 && optopt < 256)
				return hw_usage(NULL, "unknown option '-%c'", optopt);
			return hw_usage(NULL, "unknown option '%s'", argv[optind - 1]);
		}
	}
	if (socket && !*socket) /* curl would resolve a host */
		return hw_usage(NULL, "the socket's path is empty");
	if (optind == argc)
		return hw_usage(NULL, "which command?");
	const char *name = argv[optind];
	const struct hw_command *c = find_command(name);
	const char *meant = c ? NULL : hw_command_meant(commands, NULL, name);
	if (!c)
		return hw_usage(NULL, meant ? "unknown command '%s'; did you mean '%s'?" : "unknown command '%s'", name,
		                meant);
	int rc = hw_options_read(commands, c, argc - optind, argv + optind, &args);
	/* Monitoring programs take exit status 2 for CRITICAL, and read only standard output. */
	if (rc == HW_EXIT_USAGE && c->run == hw_cmd_check) {
		puts("HEARTWHEEL UNKNOWN - wrong usage: see heartwheelctl check --help");
		rc = HW_EXIT_UNKNOWN;
	}
	return finish(rc >= 0 ? rc : run(&args, socket, config));
}

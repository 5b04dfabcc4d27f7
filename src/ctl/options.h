/* SPDX-License-Identifier: MIT */
/* The command line of heartwheelctl: one table has the options of all commands, and one parser reads them. */
#ifndef HW_CTL_OPTIONS_H
#define HW_CTL_OPTIONS_H

#include "ctl/ctl.h"

/* In the order of the help texts. */
enum hw_option {
	HW_OPT_STATE,
	HW_OPT_TASK_STATE, /* --state of tasks */
	HW_OPT_GROUP,
	HW_OPT_PREFIX,
	HW_OPT_WARNING,
	HW_OPT_CRITICAL,
	HW_OPT_BLIND,
	HW_OPT_SEARCH,
	HW_OPT_LABEL,
	HW_OPT_SORT,
	HW_OPT_COLUMNS,
	HW_OPT_MONTH,
	HW_OPT_SINCE,
	HW_OPT_UNTIL,
	HW_OPT_MIN,
	HW_OPT_LIMIT,
	HW_OPT_DEVICES, /* --limit of devices */
	HW_OPT_NAMES,
	HW_OPT_TEST,
	HW_OPT_JSON,
	HW_OPT_CSV,
	HW_OPT_AT,
	HW_OPT_AFTER,
	HW_OPT_EXP,
	HW_OPT_NO_HOLD,
	HW_OPT_ID,
	HW_OPT_WAIT,
	HW_OPT_RECEIVER,
	HW_OPT_WATCHED,
	HW_OPT_FORCE,
	HW_OPT_ROLE,
	HW_OPT_EXPIRES,
	HW_OPT_FILE,
	HW_OPT_ALL,
	HW_OPT_FOR,
	HW_OPT_UNTIL_ONLINE,
	HW_OPT_PLANNED,
	HW_OPT_MESSAGE,
	HW_OPT_BROKER,
	HW_OPT_TLS_CA,
	HW_OPT_USER,
	HW_OPT_PASSWORD_FILE,
	HW_OPT_FILTER,
	HW_OPT_LISTEN, /* --for of discover */
	HW_OPT_WRITE,
	HW_OPT_REPLACE, /* --force of discover */
	HW_OPT_SOURCE,
	HW_OPT_PRUNE,
	HW_OPT_SKIP_BAD,
	HW_OPT_DRY_RUN,
	HW_OPTIONS,
	/* not an option: marks a command in which --json and --names print a line for each device or row */
	HW_OPT_LINES = HW_OPTIONS
};
#define HW_TAKES(name) (UINT64_C(1) << HW_OPT_##name)

/* Commands of one daemon. Their options follow the same rules. */
struct hw_command_family {
	const char *name;    /* the word before the command's name, such as "task"; NULL: there is none */
	const char *brief;   /* with `name`: one line for the list of commands */
	const char *choices; /* with `name`: the commands */
	const char *help;    /* with `name`: the help text of all commands */
	const char *program,
		*section; /* the daemon, and the section of monitor.conf with its socket; NULL: heartwheeld, [http] */
	bool alone;       /* needs no daemon, but may read monitor.conf */
};

/* A command's words: what follows the options. */
struct hw_command_words {
	int least, most;
	const char *missing; /* the error if there are fewer than `least` */
	const char *empty;   /* the error if a word is empty; NULL: accepted */
};

struct hw_command {
	const char *name;
	hw_command *run;
	uint64_t takes; /* HW_TAKES() of its options */
	const struct hw_command_words *words;
	const struct hw_command_family *family;
	/* Of families without a name: for the help text. */
	const char *synopsis, *brief, *more;
	const char *(*judge)(const struct hw_args *args); /* returns a further error, or NULL. NULL: none */
};

/* Parses the arguments, beginning with the first word of the command. `table` ends with a NULL name. `c` is the command
 * with this word as its name, or any command of the family with this name. If a command is to run, sets *args, with the
 * command in `command`, and returns -1. Otherwise help or an error was printed, and an exit status is returned. */
int hw_options_read(const struct hw_command *table, const struct hw_command *c, int argc, char **argv,
                    struct hw_args *args);

/* Returns the command that a wrong `name` probably means; NULL: there is none. If `family` is not NULL, only its
 * commands are compared; otherwise all words that may begin a command line. */
const char *hw_command_meant(const struct hw_command *table, const struct hw_command_family *family, const char *name);

#endif

/* SPDX-License-Identifier: MIT */
/* The command line, common to all our daemons. */
#ifndef HW_RUN_OPTIONS_H
#define HW_RUN_OPTIONS_H

#include <stdbool.h>

enum {
	HW_EXIT_USAGE = 2, /* wrong usage or configuration */
	HW_EXIT_IN_USE     /* another daemon already does this work */
};

struct hw_options {
	const char *conf;
	bool foreground, test, verbose;
};

/* The program's parts of the help text. */
struct hw_options_help {
	const char *name, *what, *signals;
};

/* Parses the command line. Exits after -h and -V, and with HW_EXIT_USAGE after a wrong option. */
void hw_options_parse(int argc, char **argv, const struct hw_options_help *help, struct hw_options *o);

#endif

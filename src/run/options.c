/* SPDX-License-Identifier: MIT */
/* See options.h. */
#include "run/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static void usage(FILE *to, const struct hw_options_help *help)
{
	fprintf(to,
	        "usage: %s [-c FILE] [-f] [-t] [-v] [-V] [-h]\n"
	        "\n"
	        "%s\n"
	        "\n"
	        "  -c, --config FILE   configuration (default " HW_SYSCONFDIR "/monitor.conf)\n"
	        "  -f, --foreground    stay in the foreground\n"
	        "  -t, --test          check the configuration and exit\n"
	        "  -v, --verbose       log everything, whatever log_level says\n"
	        "  -V, --version       print the version and exit\n"
	        "  -h, --help          print this and exit\n"
	        "\n"
	        "Signals: %s\n"
	        "Exit status: 0 done, 1 failed, 2 wrong usage or configuration. See %s(8), monitor.conf(5).\n",
	        help->name, help->what, help->signals, help->name);
}

void hw_options_parse(int argc, char **argv, const struct hw_options_help *help, struct hw_options *o)
{
	static const struct option longs[] = {{"config", required_argument, NULL, 'c'},
	                                      {"foreground", no_argument, NULL, 'f'},
	                                      {"test", no_argument, NULL, 't'},
	                                      {"verbose", no_argument, NULL, 'v'},
	                                      {"version", no_argument, NULL, 'V'},
	                                      {"help", no_argument, NULL, 'h'},
	                                      {NULL, 0, NULL, 0}};
	int c;
	*o = (struct hw_options){.conf = HW_SYSCONFDIR "/monitor.conf"};
	while ((c = getopt_long(argc, argv, "c:ftvVh", longs, NULL)) != -1) {
		switch (c) {
		case 'c':
			o->conf = optarg;
			break;
		case 'f':
			o->foreground = true;
			break;
		case 't':
			o->test = true;
			break;
		case 'v':
			o->verbose = true;
			break;
		case 'V':
			printf("%s " HW_VERSION "\n", help->name);
			exit(0);
		case 'h':
			usage(stdout, help);
			exit(0);
		default:
			usage(stderr, help);
			exit(HW_EXIT_USAGE);
		}
	}
	if (optind < argc) {
		fprintf(stderr, "%s: unexpected argument '%s'\n", help->name, argv[optind]);
		usage(stderr, help);
		exit(HW_EXIT_USAGE);
	}
}

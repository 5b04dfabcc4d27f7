/* SPDX-License-Identifier: MIT */
/* The options of the simulated fleet's command line. */
#ifndef HW_TEST_FLEET_H
#define HW_TEST_FLEET_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct fleet_options {
	const char *host, *prefix, *heartbeat, *status;
	const char *truth; /* a file for what each device did; NULL: none */
	int port, qos;
	bool demo, json, verbose;
	unsigned devices, conns, silent;
	int64_t interval_ms, timeout_ms, duration_ms, silent_at_ms, silent_spread_ms, return_after_ms;
	unsigned expect_online, expect_offline;
	double max_p99_ms; /* 0: any */
};

/* Fills `o` with the defaults and what the command line says; strings are borrowed from argv. False, having said why
 * where it knows, if that is not usable. */
bool fleet_options_parse(struct fleet_options *o, int argc, char **argv);
void fleet_options_usage(FILE *to);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Replaces what the daemon's wiring (src/daemon) uses and no simulated world has: a log, a configuration file, clients
 * of the API, hooks, keys of other programs, probes. Both simulations that link the wiring link this file.
 */
#ifndef SIM_ABSENT_H
#define SIM_ABSENT_H

#include <stdbool.h>

#include "daemon/config/settings.h"

/* The settings of a simulated daemon, without groups; and a group, without filters and timeouts. The caller owns the
 * name and the topic. */
struct hw_settings absent_settings(void);
struct hw_settings_group absent_group(char *name, char *status);

/* Each world decides whether the daemon's log goes into its trace, and writes it. */
bool absent_traces(void);
void absent_trace(const char *text);

#endif

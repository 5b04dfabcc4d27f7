/* SPDX-License-Identifier: MIT */
/* Converts a configuration for the core, at the start and at a reload. */
#ifndef HW_SPECS_H
#define HW_SPECS_H

#include "heartwheel/monitor.h"
#include "settings.h"

/* Returns the groups, on the heap; NULL if there is no memory. The texts of the groups belong to the configuration. */
struct hw_group_spec *hw_app_group_specs(const struct hw_settings *c);
/* Converts the settings for the core. `probe_answers`: the topic on which this node's probes are answered; borrowed. */
struct hw_monitor_conf hw_app_monitor_conf(const struct hw_settings *c, const char *probe_answers);

#endif

/* SPDX-License-Identifier: MIT */
/* From a configuration to what the core wants to know, at the start and at a reload. */
#ifndef HW_SPECS_H
#define HW_SPECS_H

#include "heartwheel/monitor.h"
#include "settings.h"

/* The groups, on the heap; NULL without memory. Their texts are the configuration's. */
struct hw_group_spec *hw_app_group_specs(const struct hw_settings *c);
/* `probe_answers`: the topic on which this node's probes are answered; borrowed. */
struct hw_monitor_conf hw_app_monitor_conf(const struct hw_settings *c, const char *probe_answers);

#endif

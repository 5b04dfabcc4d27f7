/* SPDX-License-Identifier: MIT */
/* The output of the commands for heartwheel-history. */
#ifndef HW_CTL_HISTORY_H
#define HW_CTL_HISTORY_H

#include "ctl/ctl.h"

/* Print a page of transitions or outages. `before_ms`: time in the row above; 0: there is none. */
void hw_show_device_head(const struct hw_ctl *ctl, const cJSON *answer);
void hw_show_transitions(const struct hw_ctl *ctl, const cJSON *rows, int64_t *before_ms);
void hw_show_outages(const struct hw_ctl *ctl, const cJSON *rows, bool first);
/* Prints a complete uptime report. */
void hw_show_uptime(const struct hw_ctl *ctl, const cJSON *report, bool one_device);
/* Prints the output of `history status`. */
void hw_show_history_status(const struct hw_ctl *ctl, const cJSON *status);

#endif

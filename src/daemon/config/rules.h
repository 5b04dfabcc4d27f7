/* SPDX-License-Identifier: MIT */
/* Rules between several keys of heartwheeld's configuration. */
#ifndef HW_RULES_H
#define HW_RULES_H

#include "conf/draft.h"

/* For hw_settings_table: completes the groups with their presets and defaults. For each broken rule, reports the line
 * that must be changed. */
void hw_settings_judge(struct hw_conf_draft *d);

#endif

/* SPDX-License-Identifier: MIT */
/* Rules between several keys of heartwheeld's configuration. */
#ifndef HW_RULES_H
#define HW_RULES_H

#include "conf/draft.h"

/* Completes the groups with their presets and defaults, for hw_settings_table. For each broken rule, reports the
 * line that must be changed. */
void hw_settings_judge(struct hw_conf_draft *d);

#endif

/* SPDX-License-Identifier: MIT */
/* What must hold between heartwheeld's keys. */
#ifndef HW_RULES_H
#define HW_RULES_H

#include "conf/draft.h"

/* Of hw_settings_table: completes the groups, by their presets and defaults, and says of each rule that is broken the
 * line that has to change. */
void hw_settings_judge(struct hw_conf_draft *d);

#endif

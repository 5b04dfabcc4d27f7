/* SPDX-License-Identifier: MIT */
/* Presets: the configuration lines for a family of devices. */
#ifndef HW_PRESET_H
#define HW_PRESET_H

#include "conf/draft.h"
#include "settings.h"

/* Adds the lines of the group's preset, with the line number of `preset`. The preset's values of a list are added after
 * the file's values, without duplicates. Any other key is added only if the file does not set it. Returns 0 or
 * -ENOMEM. */
int hw_preset_apply(struct hw_conf_draft *d, struct hw_settings_group *g, struct hw_conf_origins *origins);

#endif

/* SPDX-License-Identifier: MIT */
/* Presets: the lines that a convention of devices stands for. */
#ifndef HW_PRESET_H
#define HW_PRESET_H

#include "conf/draft.h"
#include "settings.h"

/*
 * Adds the lines of the group's preset, marked with the preset's line: of a list all that are not there yet, behind
 * those of the file; of any other key only where the file gives none. 0 or -ENOMEM.
 */
int hw_preset_apply(struct hw_conf_draft *d, struct hw_settings_group *g, struct hw_conf_marks *marks);

#endif

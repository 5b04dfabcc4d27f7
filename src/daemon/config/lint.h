/* SPDX-License-Identifier: MIT */
/* Finds settings that are valid but probably a mistake: groups that no message can reach, and a `+` that makes one
 * device of two devices in different places. */
#ifndef HW_LINT_H
#define HW_LINT_H

#include "settings.h"

/* Calls `report` for each finding, with its group, in the order of the file. Returns 0 or -ENOMEM. */
int hw_lint(const struct hw_settings *c, void (*report)(void *arg, const struct hw_settings_group *g, const char *text),
            void *arg);

#endif

/* SPDX-License-Identifier: MIT */
/* What is right in a configuration and hardly meant: groups that can hear nothing, two places' devices that become one.
 */
#ifndef HW_LINT_H
#define HW_LINT_H

#include "settings.h"

/* Calls `say` for each finding, with the group that it is about, in the order of the file. 0 or -ENOMEM. */
int hw_lint(const struct hw_settings *c, void (*say)(void *arg, const struct hw_settings_group *g, const char *text),
            void *arg);

#endif

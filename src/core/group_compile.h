/* SPDX-License-Identifier: MIT */
/* Makes a group from its settings. Private to the core. */
#ifndef HW_GROUP_COMPILE_H
#define HW_GROUP_COMPILE_H

#include "heartwheel/group.h"

/* Makes a group from `spec`, whose texts are copied. Returns 0 and *out, -ENOMEM, or -EINVAL if a text does not
 * compile.
 */
int hw_group_new(const struct hw_group_spec *spec, unsigned rank, struct hw_group **out);
/* `group` may be NULL. */
void hw_group_free(struct hw_group *group);

#endif

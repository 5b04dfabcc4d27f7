/* SPDX-License-Identifier: MIT */
/* Where the other daemons listen. */
#ifndef HW_CTL_OTHER_H
#define HW_CTL_OTHER_H

/* Returns the value of the key `socket` in a section of the configuration. Other keys are not checked. Owned by the
 * caller; NULL if there is no memory. */
char *hw_find_socket(const char *config, const char *section);

#endif

/* SPDX-License-Identifier: MIT */
/* The lines of a file into a draft. Internal to src/conf. */
#ifndef HW_CONF_PARSE_H
#define HW_CONF_PARSE_H

#include <stdio.h>

#include "conf/draft.h"

/* Reads the file through inih, to its end. All that is wrong with single lines is in d->errors afterwards. */
void hw_conf_parse(FILE *file, struct hw_conf_draft *d);

#endif

/* SPDX-License-Identifier: MIT */
/* Parses a file's lines into a draft. Internal to src/conf. */
#ifndef HW_CONF_PARSE_H
#define HW_CONF_PARSE_H

#include <stdio.h>

#include "conf/draft.h"

/* Reads the file to its end. The errors of single lines are in d->errors. */
void hw_conf_parse(FILE *file, struct hw_conf_draft *d);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The daemons beside heartwheeld: a command of theirs asks at the socket that is named, else at that of their section
 * in monitor.conf. heartwheeld's will do as well, which hands on what is asked.
 */
#ifndef HW_CTL_OTHER_H
#define HW_CTL_OTHER_H

#include "ctl/ctl.h"

/* Calls `run` with a client of that program's, whose section of monitor.conf is `section`. Its exit status; or
 * HW_EXIT_FAILED after having said why. */
int hw_ask_other(const struct hw_whom *whom, const char *program, const char *section,
                 int (*run)(struct hw_ctl *ctl, void *arg), void *arg);

#endif

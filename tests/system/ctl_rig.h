/* SPDX-License-Identifier: MIT */
/*
 * Shared by the tests of heartwheelctl: they run the built program ($HW_CTL, or heartwheelctl in $HW_BUILDDIR) against
 * a real control socket that this process serves.
 */
#ifndef HW_TEST_CTL_RIG_H
#define HW_TEST_CTL_RIG_H

#include <check.h>

#include "control_server.h"

extern struct server s;
extern char ctl_program[4096];
extern char out[1 << 20], err[65536]; /* what the program wrote; on a terminal all stands in `out` */

/* Runs the suite. The exit status of the test program: 77, which skips it, if heartwheelctl is not there. */
int ctl_run(Suite *suite);

/* The fixture of a test: a server that sees, by the machine's wall clock. */
void rig_set_up(void);
void rig_tear_down(void);

/* Runs `heartwheelctl -s SOCKET ARGS`; the arguments are the shell's. Its exit status. */
int ctl(const char *args);
/* The same, in a locale other than C.UTF-8. */
int ctl_in(const char *locale, const char *args);
/* The same, on a terminal of that many columns. */
int ctl_on_terminal(const char *args, int columns, const char *locale);
/* Adds to `text` what can be read from a pipe or a terminal; false at its end. */
bool drain(int fd, char *text, size_t cap);

/* The server reports to its clients a transition of five seconds ago. */
void transition(const char *id, enum hw_state state, enum hw_reason reason);

#endif

/* SPDX-License-Identifier: MIT */
/* Going into the background, and telling whoever started the daemon when it is ready. */
#ifndef HW_RUN_BACKGROUND_H
#define HW_RUN_BACKGROUND_H

/*
 * Forks into the background. The parent never returns: it waits for hw_background_ready() and exits 0, or exits with
 * what the child exits with. Returns the child's end of the pipe, or -errno.
 */
int hw_background_enter(void);
/* Lets the parent go; `fd` from hw_background_enter(). Detaches stdin, stdout and stderr. */
void hw_background_ready(int fd);

#endif

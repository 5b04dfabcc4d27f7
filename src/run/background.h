/* SPDX-License-Identifier: MIT */
/* Forking into the background, and reporting readiness to the parent. */
#ifndef HW_RUN_BACKGROUND_H
#define HW_RUN_BACKGROUND_H

/*
 * Forks. The parent never returns: it exits 0 at hw_background_ready(), or with the child's exit status if the child
 * ends. Returns the child's end of the pipe, or -errno.
 */
int hw_background_enter(void);
/* Makes the parent exit 0; `fd` is from hw_background_enter(). Detaches stdin, stdout and stderr. */
void hw_background_ready(int fd);

#endif

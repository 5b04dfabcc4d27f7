/* SPDX-License-Identifier: MIT */
/* Runs a program with a message on its standard input, one at a time. Internal to src/alert/send. */
#ifndef HW_ALERT_SEND_EXEC_H
#define HW_ALERT_SEND_EXEC_H

#include <stdint.h>

#define HW_EXEC_NO_STATUS (-1)

struct event_base;
struct hw_exec;
struct hw_note;

/* Called when the program has ended. `why` is NULL if its exit status is 0. `status`: its exit status, or
 * HW_EXEC_NO_STATUS. Called from the loop, never from a function of this header. May start the next program. */
typedef void hw_exec_done(void *arg, int status, const char *why);

struct hw_exec *hw_exec_new(struct event_base *base, hw_exec_done *done, void *arg);
/* Kills the program if it runs. */
void hw_exec_free(struct hw_exec *p);
/* Runs `path` with the text of `note` on its standard input; `note` must live until done(). `variable`: "NAME=VALUE",
 * one more variable of its environment. Returns 0, or -errno if the program could not be started. */
int hw_exec_start(struct hw_exec *p, const char *path, const struct hw_note *note, char *variable, int64_t timeout_ms);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Delivers one message at a time to its target: a program (exec.c) or a web server (webhook.c). Internal to src/notify.
 */
#ifndef HW_CARRIER_H
#define HW_CARRIER_H

#include <stddef.h>
#include <stdint.h>

struct event_base;

#define HW_CARRIER_NO_CODE (-1)

/*
 * A delivery has ended. `why` is NULL if the message arrived. `code`: the program's exit status, the HTTP status, or
 * HW_CARRIER_NO_CODE. Called from the loop, never from a start function. May start the next delivery.
 */
typedef void hw_carrier_done(void *arg, int code, const char *why);

struct hw_note;
struct hw_exec;
struct hw_webhook;

struct hw_exec *hw_exec_new(struct event_base *base, hw_carrier_done *done, void *arg);
/* Kills the program if it runs. */
void hw_exec_free(struct hw_exec *p);
/* Runs `path` with the text of `note` on its standard input; `note` must live until done(). `variable`: "NAME=VALUE",
 * one more variable of its environment, or NULL. Returns 0, or -errno if the program could not be started. */
int hw_exec_start(struct hw_exec *p, const char *path, const struct hw_note *note, char *variable, int64_t timeout_ms);

struct hw_webhook *hw_webhook_new(struct event_base *base, hw_carrier_done *done, void *arg);
void hw_webhook_free(struct hw_webhook *w);
/* Sends `note` to `url`; `note` must live until done(). Returns 0 or -errno. */
int hw_webhook_start(struct hw_webhook *w, const char *url, const struct hw_note *note, int64_t timeout_ms);

#endif

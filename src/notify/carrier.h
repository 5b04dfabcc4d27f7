/* SPDX-License-Identifier: MIT */
/*
 * What brings one message at a time to its target: a program (exec.c) or a web server (webhook.c). Internal to
 * src/notify.
 */
#ifndef HW_CARRIER_H
#define HW_CARRIER_H

#include <stddef.h>
#include <stdint.h>

struct event_base;

#define HW_CARRIER_NO_CODE (-1)

/*
 * How it ended: `why` is NULL if the message arrived; `code`: the program's exit status, the server's HTTP status, or
 * HW_CARRIER_NO_CODE. Called from the loop, never from start; may start the next.
 */
typedef void hw_carrier_done(void *arg, int code, const char *why);

struct hw_note;
struct hw_exec;
struct hw_webhook;

struct hw_exec *hw_exec_new(struct event_base *base, hw_carrier_done *done, void *arg);
/* Kills it if it runs. */
void hw_exec_free(struct hw_exec *p);
/* Runs `path` with the text of `note` on its standard input; the note stays until done. 0, or -errno: it could not be
 * started. */
int hw_exec_start(struct hw_exec *p, const char *path, const struct hw_note *note, int64_t timeout_ms);

struct hw_webhook *hw_webhook_new(struct event_base *base, hw_carrier_done *done, void *arg);
void hw_webhook_free(struct hw_webhook *w);
/* Sends `note` to `url`; the note stays until done. 0, or -errno. */
int hw_webhook_start(struct hw_webhook *w, const char *url, const struct hw_note *note, int64_t timeout_ms);

#endif

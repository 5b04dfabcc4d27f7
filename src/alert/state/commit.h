/* SPDX-License-Identifier: MIT */
/*
 * Commits: all changes of the engine, the offsets of the streams and the messages that are about to be sent, in one
 * script. One commit is under way at a time. It is repeated until Redis has confirmed it; the script skips a commit
 * that it has already carried out.
 */
#ifndef HW_ALERT_COMMIT_H
#define HW_ALERT_COMMIT_H

#include <stdbool.h>
#include <stdint.h>

struct hw_alert_app;
struct hw_alert_commit;

struct hw_alert_commit *hw_alert_commit_new(struct hw_alert_app *app);
void hw_alert_commit_free(struct hw_alert_commit *c);

/* Begins with a state whose last commit has this number: after a load. */
void hw_alert_commit_reset(struct hw_alert_commit *c, uint64_t number);
/* Redis was emptied or has failed over: the next commit writes all. */
void hw_alert_commit_rewrite(struct hw_alert_commit *c);
/* An incident that has closed, and whose end some receiver still gets: it leaves device:incidents when the engine lets
 * go of it. Returns 0 or -ENOMEM. */
int hw_alert_commit_closing(struct hw_alert_commit *c, const char *id);
/* Builds a commit and sends it, unless one is under way or nothing has changed. Returns 0 or -ENOMEM. */
int hw_alert_commit_send(struct hw_alert_commit *c);
/* The store is up (a commit without an answer is repeated) or down. */
void hw_alert_commit_store(struct hw_alert_commit *c, bool up);
/* Each second: repeats what Redis has refused; removes old incidents. */
void hw_alert_commit_tick(struct hw_alert_commit *c);
/* Whether a commit is built and not confirmed. */
bool hw_alert_commit_is_busy(const struct hw_alert_commit *c);
uint64_t hw_alert_commit_number(const struct hw_alert_commit *c);

#endif

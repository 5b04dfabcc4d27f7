/* SPDX-License-Identifier: MIT */
/*
 * Commits. A commit is one call of a script. It stores all changes of the engine, the offsets of the streams, and the
 * messages that are about to be sent. Only one commit at a time is unconfirmed. It is repeated until Redis has
 * confirmed it. If the script has already carried out a commit, it skips the repetition.
 */
#ifndef HW_ALERT_COMMIT_H
#define HW_ALERT_COMMIT_H

#include <stdbool.h>
#include <stdint.h>

struct hw_alert_app;
struct hw_alert_commit;

struct hw_alert_commit *hw_alert_commit_new(struct hw_alert_app *app);
void hw_alert_commit_free(struct hw_alert_commit *c);

/* Called after a load. `number`: that of the last commit that the loaded state contains. */
void hw_alert_commit_reset(struct hw_alert_commit *c, uint64_t number);
/* Called when Redis was emptied or failed over. The next commit writes everything. */
void hw_alert_commit_rewrite(struct hw_alert_commit *c);
/* Called for a closed incident whose end has not been sent to all receivers yet. A later commit removes the incident
 * from device:incidents, after the engine has removed it. Returns 0 or -ENOMEM. */
int hw_alert_commit_closing(struct hw_alert_commit *c, const char *id);
/* Builds a commit and sends it, unless one is under way or nothing has changed. Returns 0 or -ENOMEM. */
int hw_alert_commit_send(struct hw_alert_commit *c);
/* Called when the store becomes up or down. When it is up, an unconfirmed commit is repeated. */
void hw_alert_commit_store(struct hw_alert_commit *c, bool up);
/* Called each second. Repeats a commit that Redis has refused, and removes old incidents. */
void hw_alert_commit_tick(struct hw_alert_commit *c);
/* Whether a commit is built and not confirmed. */
bool hw_alert_commit_is_busy(const struct hw_alert_commit *c);
/* Whether the last commit was full, so that the next one must write the rest. Until that one is sent, no message may
 * be made. */
bool hw_alert_commit_is_cut(const struct hw_alert_commit *c);
uint64_t hw_alert_commit_number(const struct hw_alert_commit *c);

#endif

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

/* The most items of a commit: a quarter of a second of Redis' time, if all are incidents. If there are more items, the
 * next commits write them, and messages are made only after that. If heartwheel-alert crashes between these commits,
 * the next load repairs the state. */
#ifndef HW_ALERT_ITEMS_MAX /* a test has a smaller one */
#define HW_ALERT_ITEMS_MAX 20000
#endif

/* The most news of a message. A commit with messages also contains what the messages change: three items for each
 * news. Otherwise, after a crash, news could count as sent although their message was not stored. When the
 * messages of a commit have this many news, no further message is made for that commit. */
#define HW_ALERT_NEWS_MOST (HW_ALERT_ITEMS_MAX / 6)

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
/* Builds a commit and sends it, unless one is under way or nothing has changed. Returns 0 or -ENOMEM.
 * hw_alert_commit_begin() adds what has changed so far, up to a limit. Returns 1 if this was all: messages may be made
 * then, and hw_alert_commit_send() adds them and what they have changed. */
int hw_alert_commit_begin(struct hw_alert_commit *c);
int hw_alert_commit_send(struct hw_alert_commit *c);
/* Called when the store becomes up or down. When it is up, an unconfirmed commit is repeated. */
void hw_alert_commit_store(struct hw_alert_commit *c, bool up);
/* Called each second. Repeats a commit that Redis has refused, and removes old incidents. */
void hw_alert_commit_tick(struct hw_alert_commit *c);
/* Whether a commit is built and not confirmed. */
bool hw_alert_commit_is_busy(const struct hw_alert_commit *c);
uint64_t hw_alert_commit_number(const struct hw_alert_commit *c);

#endif

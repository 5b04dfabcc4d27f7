/* SPDX-License-Identifier: MIT */
/*
 * The messages that are not finished. The engine makes a message; a commit stores it; then the senders get it. When the
 * receiver has taken the message, or the senders have given it up, it is finished, and the next commit of its receiver
 * removes it from Redis. So after a crash an unfinished message is sent again, with the same number and content.
 */
#ifndef HW_ALERT_OUTBOX_H
#define HW_ALERT_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hw_alert_app;
struct hw_alert_outbox;

struct hw_alert_outbox *hw_alert_outbox_new(struct hw_alert_app *app);
/* Drops all messages. */
void hw_alert_outbox_free(struct hw_alert_outbox *o);

/* Adds a message; `json` is taken over, also on error. `stored`: Redis has it already. Returns 0 or -ENOMEM. */
int hw_alert_outbox_add(struct hw_alert_outbox *o, const char *receiver, uint64_t number, char *json, bool stored);
/* Removes the receiver's finished messages. Returns its other messages, one a line, as the value of `sending` in the
 * next commit. The text is valid until the next call. NULL without memory. */
const char *hw_alert_outbox_sending(struct hw_alert_outbox *o, const char *receiver);
/* built: a commit was built, which stores all messages added so far. committed: that commit has succeeded. */
void hw_alert_outbox_built(struct hw_alert_outbox *o);
void hw_alert_outbox_committed(struct hw_alert_outbox *o);
/* After a load: the engine learns which messages have ended meanwhile. */
void hw_alert_outbox_loaded(struct hw_alert_outbox *o);
/* Hands messages that no commit has stored to the senders, because Redis is away. */
void hw_alert_outbox_send_unstored(struct hw_alert_outbox *o);
/* A receiver has taken the message, or the senders have given it up. */
void hw_alert_outbox_done(struct hw_alert_outbox *o, const char *receiver, uint64_t number);
/* Drops the messages of receivers that the engine does not have any more. */
void hw_alert_outbox_keep(struct hw_alert_outbox *o, bool (*is_kept)(void *arg, const char *receiver), void *arg);
size_t hw_alert_outbox_count(const struct hw_alert_outbox *o);

#endif

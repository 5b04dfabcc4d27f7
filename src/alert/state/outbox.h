/* SPDX-License-Identifier: MIT */
/*
 * Messages from the moment they are made until a commit has removed them from Redis. A message is stored by a commit,
 * then handed to the senders, then taken or given up, and left out of the next commit of its receiver. So after a crash
 * it is sent again with the same number and content.
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
/* The value of `sending` of a receiver for the next commit: the messages that are not finished, one a line. Those that
 * are finished are removed. Valid until the next call; NULL without memory. */
const char *hw_alert_outbox_sending(struct hw_alert_outbox *o, const char *receiver);
/* A commit has succeeded that stored all messages added before it was built: hw_alert_outbox_built(). */
void hw_alert_outbox_built(struct hw_alert_outbox *o);
void hw_alert_outbox_committed(struct hw_alert_outbox *o);
/* After a load: the engine learns which messages have ended meanwhile. */
void hw_alert_outbox_loaded(struct hw_alert_outbox *o);
/* Hands messages that no commit has stored to the senders, because Redis is away. */
void hw_alert_outbox_send_unstored(struct hw_alert_outbox *o);
/* A receiver has taken a message, or it is given up. */
void hw_alert_outbox_done(struct hw_alert_outbox *o, const char *receiver, uint64_t number);
/* Drops the messages of receivers that the engine does not have any more. */
void hw_alert_outbox_keep(struct hw_alert_outbox *o, bool (*is_kept)(void *arg, const char *receiver), void *arg);
size_t hw_alert_outbox_count(const struct hw_alert_outbox *o);

#endif

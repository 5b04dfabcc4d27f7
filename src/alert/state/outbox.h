/* SPDX-License-Identifier: MIT */
/*
 * The messages that are not finished. The engine makes a message, a commit stores it, and then the senders get it. It
 * is finished when the receiver has accepted it or the senders have given it up. The next commit of its receiver then
 * removes it from Redis. So after a crash, an unfinished message is sent again, with the same number and content.
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

/* Adds a message. Takes over `json`, even on an error. `stored`: Redis already has the message. Returns 0 or
 * -ENOMEM. */
int hw_alert_outbox_add(struct hw_alert_outbox *o, const char *receiver, uint64_t number, char *json, bool stored);
/* Removes the receiver's finished messages from the outbox. Returns the receiver's other messages, one per line. The
 * next commit stores this text in field `sending` of the receiver's hash. The text is valid until the next call.
 * Returns NULL if there is no memory. */
const char *hw_alert_outbox_sending(struct hw_alert_outbox *o, const char *receiver);
/* hw_alert_outbox_built(): a commit was built that stores all messages that were added so far.
 * hw_alert_outbox_committed(): that commit has succeeded. */
void hw_alert_outbox_built(struct hw_alert_outbox *o);
void hw_alert_outbox_committed(struct hw_alert_outbox *o);
/* Called after a load. Reports to the engine which messages were finished before the load ended. */
void hw_alert_outbox_loaded(struct hw_alert_outbox *o);
/* Called when Redis cannot be reached. Passes messages that no commit has stored to the senders. */
void hw_alert_outbox_send_unstored(struct hw_alert_outbox *o);
/* Called when the receiver has accepted the message, or when the senders have given it up. */
void hw_alert_outbox_done(struct hw_alert_outbox *o, const char *receiver, uint64_t number);
/* Drops the messages of receivers that the engine no longer has. */
void hw_alert_outbox_keep(struct hw_alert_outbox *o, bool (*is_kept)(void *arg, const char *receiver), void *arg);
size_t hw_alert_outbox_count(const struct hw_alert_outbox *o);

#endif

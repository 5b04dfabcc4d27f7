/* SPDX-License-Identifier: MIT */
/* Receives the messages to heartwheel-tasks over MQTT: requests on ROOT/NAME/pending[/SENDER], and devices' answers on
 * ROOT/NAME/ack|complete|failed[/RECEIVER]. */
#ifndef HW_TASKS_INBOX_H
#define HW_TASKS_INBOX_H

#include "tasks/mqtt/broker.h"
#include "tasks/mqtt/message.h"

struct hw_tasks_app;
struct hw_tasks_inbox;

/* Subscribes. Returns NULL if there is no memory. */
struct hw_tasks_inbox *hw_tasks_inbox_new(struct hw_tasks_app *app);
void hw_tasks_inbox_free(struct hw_tasks_inbox *b);

/* Registers `fn` for requests with an action (FOLLOW, UNFOLLOW, WILL). `sender` is verified. The arguments are valid
 * during the call. `fn` answers with hw_tasks_inbox_done() or hw_tasks_inbox_refuse(), at once or later. */
typedef void hw_request_fn(void *arg, struct hw_text sender, const struct hw_request *q);
void hw_tasks_inbox_take(struct hw_tasks_inbox *b, enum hw_request_action action, hw_request_fn *fn, void *arg);
/* Registers `fn` for acks whose msg_id names no task, such as followers' acks of events. `from`: the last level of the
 * topic; may be empty. */
typedef void hw_stray_fn(void *arg, struct hw_text from, struct hw_text msg_id);
void hw_tasks_inbox_take_strays(struct hw_tasks_inbox *b, hw_stray_fn *fn, void *arg);

/* Both answer the sender of a request on ROOT/SENDER/... . hw_tasks_inbox_done(): the request was carried out
 * (complete; `value` is JSON, or empty). hw_tasks_inbox_refuse(): it was refused (failed). */
void hw_tasks_inbox_done(struct hw_tasks_inbox *b, struct hw_text sender, struct hw_text msg_id, struct hw_text value);
void hw_tasks_inbox_refuse(struct hw_tasks_inbox *b, struct hw_text sender, struct hw_text msg_id, const char *why);

/* Publishes a notice to a sender on the topic `word` (ACK, COMPLETE, FAILED). Returns 0, or an error of
 * hw_tasks_broker_publish(). */
int hw_tasks_notify(struct hw_tasks_app *app, struct hw_text sender, enum hw_task_topic word, const struct hw_notice *n,
                    hw_put_fn *fn, void *arg);

/* Whether the sender is a client of the API: `local` or `user:NAME`. Such a sender gets no messages over MQTT. */
bool hw_tasks_is_local(struct hw_text sender);

#endif

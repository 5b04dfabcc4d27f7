/* SPDX-License-Identifier: MIT */
/* What comes to us over MQTT: requests on ROOT/NAME/pending[/SENDER], and devices' answers on
 * ROOT/NAME/ack|complete|failed[/RECEIVER]. */
#ifndef HW_TASKS_INBOX_H
#define HW_TASKS_INBOX_H

#include "tasks/broker.h"
#include "tasks/message.h"

struct hw_tasks_app;
struct hw_tasks_inbox;

/* Subscribes. NULL without memory. */
struct hw_tasks_inbox *hw_tasks_inbox_new(struct hw_tasks_app *app);
void hw_tasks_inbox_free(struct hw_tasks_inbox *b);

/* Takes the requests of an action from now on (FOLLOW, UNFOLLOW, WILL). `sender` is believed; all is valid for the
 * call. `fn` answers with hw_tasks_inbox_done() or hw_tasks_inbox_refuse(), now or later. */
typedef void hw_request_fn(void *arg, struct hw_text sender, const struct hw_request *q);
void hw_tasks_inbox_take(struct hw_tasks_inbox *b, enum hw_request_action action, hw_request_fn *fn, void *arg);
/* Takes the acks whose msg_id is no name of a task (ids of events, of follow). `from`: the last level, may be empty. */
typedef void hw_stray_fn(void *arg, struct hw_text from, struct hw_text msg_id);
void hw_tasks_inbox_take_strays(struct hw_tasks_inbox *b, hw_stray_fn *fn, void *arg);

/* Tells the sender of a request, on ROOT/SENDER/...: it is done (complete; `value`: JSON, or empty), or refused. */
void hw_tasks_inbox_done(struct hw_tasks_inbox *b, struct hw_text sender, struct hw_text msg_id, struct hw_text value);
void hw_tasks_inbox_refuse(struct hw_tasks_inbox *b, struct hw_text sender, struct hw_text msg_id, const char *why);

/* Publishes a notice to a sender as `word` (ACK, COMPLETE, FAILED). 0 or as hw_tasks_broker_publish(). */
int hw_tasks_notify(struct hw_tasks_app *app, struct hw_text sender, enum hw_task_topic word, const struct hw_notice *n,
                    hw_put_fn *fn, void *arg);

/* Whether it is the name of one who asks by the API: `local`, `user:NAME`. Nobody is told that over MQTT. */
bool hw_tasks_is_local(struct hw_text sender);

#endif

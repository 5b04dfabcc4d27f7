/* SPDX-License-Identifier: MIT */
/*
 * The connection to Redis: commands, the scripts, task:secret, and task:node:NODE_ID. That key contains the id of this
 * run. By it, this run notices another instance with the same node_id, and a Redis that came back empty.
 *
 * The store is up when the scripts are loaded and the secret is known. It is down when the connection is lost, and when
 * Redis came back empty. Afterwards everything is read from Redis again.
 */
#ifndef HW_TASKS_STORE_H
#define HW_TASKS_STORE_H

#include "link/eval.h"
#include "link/link.h"
#include "tasks/queue/script.h"
#include "tasks/task.h"

struct hw_tasks_app;
struct hw_tasks_store;

/* Connects in the next turn of the loop. `app` is borrowed. Returns NULL if there is no memory. */
struct hw_tasks_store *hw_tasks_store_new(struct hw_tasks_app *app);
/* Each request without an answer gets NULL. */
void hw_tasks_store_free(struct hw_tasks_store *s);
/* Called each second. */
void hw_tasks_store_tick(struct hw_tasks_store *s);

bool hw_tasks_store_is_up(const struct hw_tasks_store *s);
/* Whether Redis has refused all writes in the last seconds, or task:events or task:due cannot be written.
 * hw_tasks_store_why() has the reason. */
bool hw_tasks_store_refuses(const struct hw_tasks_store *s);
/* Returns why the store is down or refuses, as a sentence; "" if the reason is not known yet. */
const char *hw_tasks_store_why(const struct hw_tasks_store *s);
/* Makes the name of a sender's task. Returns 0, -ENOTCONN before the secret is known, or -ENOMEM. */
int hw_tasks_store_name(const struct hw_tasks_store *s, struct hw_text sender, struct hw_text msg_id,
                        struct hw_task_id *out);
/* Writes the key task:REST into `buf`. Returns `buf`. */
#define HW_TASKS_KEY_MAX 400
const char *hw_tasks_store_key(const struct hw_tasks_store *s, const char *rest, char buf[HW_TASKS_KEY_MAX]);
/* Returns the random id of this run. */
const char *hw_tasks_store_run_id(const struct hw_tasks_store *s);
/* Returns an estimate of Redis' clock: wall clock, ms. Before Redis has answered, returns this machine's wall clock. */
int64_t hw_tasks_store_now_ms(const struct hw_tasks_store *s);

/* Called exactly once, from the loop. `reply` is valid during the call. NULL: the connection was lost, and it is
 * unknown whether the command was carried out. The store logs an error reply. */
typedef void hw_tasks_answer_fn(void *arg, const redisReply *reply);

/* Sends any command, in order with the others. Returns 0, or -ENOTCONN or -ENOMEM, and `fn` is then not called. `fn`
 * may be NULL. */
int hw_tasks_store_command(struct hw_tasks_store *s, hw_tasks_answer_fn *fn, void *arg, int argc, const char **argv,
                           const size_t *len);
/* Like hw_tasks_store_command(), for a command of words that ends with NULL. */
int hw_tasks_store_ask(struct hw_tasks_store *s, hw_tasks_answer_fn *fn, void *arg, const char *const *words);
/* Like hw_tasks_store_ask(), but the store neither logs an error reply nor reacts to it. */
int hw_tasks_store_ask_aside(struct hw_tasks_store *s, hw_tasks_answer_fn *fn, void *arg, const char *const *words);
/* Sends the script call that `e` holds. */
int hw_tasks_store_call(struct hw_tasks_store *s, enum hw_tasks_script script, struct hw_eval *e,
                        hw_tasks_answer_fn *fn, void *arg);
/* Closes the connection. Called if commands that belong together could not all be sent. */
void hw_tasks_store_fail(struct hw_tasks_store *s, const char *why);
/* Reacts to an error reply, and logs its meaning at a limited rate. */
void hw_tasks_store_trouble(struct hw_tasks_store *s, const char *error);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Redis, as heartwheel-tasks sees it: the connection, the scripts, task:secret, and this run's mark, by which the
 * instances know each other and by which it is noticed that Redis came back empty.
 *
 * It is up from the moment when the scripts are loaded and the secret is known until the connection is lost, or the
 * mark is; then all that is known of Redis is read anew.
 */
#ifndef HW_TASKS_STORE_H
#define HW_TASKS_STORE_H

#include "link/eval.h"
#include "link/link.h"
#include "tasks/name.h"
#include "tasks/script.h"

struct hw_tasks_app;
struct hw_tasks_store;

/* NULL without memory. `app` is borrowed. Connects on the next turn of the loop. */
struct hw_tasks_store *hw_tasks_store_new(struct hw_tasks_app *app);
/* Calls what waits for an answer with NULL. */
void hw_tasks_store_free(struct hw_tasks_store *s);
/* Each second. */
void hw_tasks_store_tick(struct hw_tasks_store *s);

bool hw_tasks_store_is_up(const struct hw_tasks_store *s);
/* Whether Redis refused all writes in the last seconds, or task:events or task:due cannot be written: why, as
 * hw_tasks_store_why() says. */
bool hw_tasks_store_refuses(const struct hw_tasks_store *s);
/* Why it is not, in words; "" while nobody knows. */
const char *hw_tasks_store_why(const struct hw_tasks_store *s);
/* Names the task of a sender: 0, -ENOTCONN before the secret is known, or -ENOMEM. */
int hw_tasks_store_name(const struct hw_tasks_store *s, struct hw_text sender, struct hw_text msg_id,
                        struct hw_task_id *out);
/* task:REST. Returns `buf`. */
#define HW_TASKS_KEY_MAX 400
const char *hw_tasks_store_key(const struct hw_tasks_store *s, const char *rest, char buf[HW_TASKS_KEY_MAX]);
/* Random, this run's. */
const char *hw_tasks_store_mark(const struct hw_tasks_store *s);
/* The time that Redis has, as far as that can be told: wall clock, ms. */
int64_t hw_tasks_store_now_ms(const struct hw_tasks_store *s);

/* An answer, valid for the call; NULL: the connection was lost, nobody knows whether the command was run. It may be an
 * error (already logged). Called exactly once, from the loop. */
typedef void hw_tasks_answer_fn(void *arg, const redisReply *reply);

/* Any command, in its place among the others. 0; or -ENOTCONN, -ENOMEM and `fn` is not called. `fn` may be NULL. */
int hw_tasks_store_command(struct hw_tasks_store *s, hw_tasks_answer_fn *fn, void *arg, int argc, const char **argv,
                           const size_t *len);
/* The same of texts, ended by NULL. */
int hw_tasks_store_ask(struct hw_tasks_store *s, hw_tasks_answer_fn *fn, void *arg, const char *const *words);
/* The same; an error is nobody's business but the asker's. */
int hw_tasks_store_ask_aside(struct hw_tasks_store *s, hw_tasks_answer_fn *fn, void *arg, const char *const *words);
/* A script's call that `e` holds. */
int hw_tasks_store_call(struct hw_tasks_store *s, enum hw_tasks_script script, struct hw_eval *e,
                        hw_tasks_answer_fn *fn, void *arg);
/* Gives the connection up: commands that belong together could not be sent together. */
void hw_tasks_store_fail(struct hw_tasks_store *s, const char *why);
/* Says once in a while in the log what an error means. */
void hw_tasks_store_trouble(struct hw_tasks_store *s, const char *error);

#endif

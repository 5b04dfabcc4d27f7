/* SPDX-License-Identifier: MIT */
/* The connection to Redis: commands, scripts, and the names of keys. It is up when the scripts are loaded. */
#ifndef HW_ALERT_STORE_H
#define HW_ALERT_STORE_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>

#include "alert/state/script.h"
#include "link/eval.h"
#include "link/link.h"

struct hw_alert_app;
struct hw_keys;
struct hw_alert_store;

/* Connects in the next turn of the loop. `app` is borrowed. Returns NULL if there is no memory. */
struct hw_alert_store *hw_alert_store_new(struct hw_alert_app *app);
/* Each request without an answer gets NULL. */
void hw_alert_store_free(struct hw_alert_store *s);
/* Called each second. */
void hw_alert_store_tick(struct hw_alert_store *s);

bool hw_alert_store_is_up(const struct hw_alert_store *s);
/* Returns why the store is down, or why Redis refuses commands; "": the reason is not known. */
const char *hw_alert_store_why(const struct hw_alert_store *s);
/* The keys in memory, with [store] type = memory; NULL: they are in Redis. */
struct hw_keys *hw_alert_store_keys(struct hw_alert_store *s);
/* The link, for readers of streams, which share it. */
struct hw_redis_link *hw_alert_store_link(struct hw_alert_store *s);

/* Writes the key device:REST. Returns `buf`. */
#define HW_ALERT_KEY_MAX 512
const char *hw_alert_store_key(const struct hw_alert_store *s, const char *rest, char buf[HW_ALERT_KEY_MAX]);

/* Called once, from the loop. `reply` NULL: the connection was lost, and it is unknown whether the command was
 * carried out. The store has logged an error reply. */
typedef void hw_alert_answer_fn(void *arg, const redisReply *reply);

/* Sends a command, given as words with a NULL at the end. `fn` may be NULL. Returns 0, or -ENOTCONN or -ENOMEM
 * without calling `fn`. */
int hw_alert_store_ask(struct hw_alert_store *s, hw_alert_answer_fn *fn, void *arg, const char *const *words);
/* Sends the script call that `e` holds. */
int hw_alert_store_call(struct hw_alert_store *s, enum hw_alert_script script, struct hw_eval *e,
                        hw_alert_answer_fn *fn, void *arg);
/* Closes the connection, which is then made again. */
void hw_alert_store_fail(struct hw_alert_store *s, const char *why);
/* Handles an error reply, and logs its meaning at a limited rate. */
void hw_alert_store_trouble(struct hw_alert_store *s, const char *error);

#endif

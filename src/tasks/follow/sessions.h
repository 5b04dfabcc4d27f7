/* SPDX-License-Identifier: MIT */
/*
 * Followers: clients that only use MQTT, and receive the transitions of devices as tasks (action `transition`; the
 * msg_id is the event's id). An ack acknowledges all events up to its id. Events without an ack are sent again, so each
 * event is sent at least once.
 *
 * A client's session is s:ol:{client}, s:s:{client} (stream -> filter) and s:t:{client} (stream -> offset). It expires
 * 30 days after the client's last ack. task:follow contains the names of the clients, at most `max_followers`.
 * task:follow:new is a sorted set of the clients that have not acknowledged anything; the score is the time at which
 * the session ends, or +inf until something was sent.
 *
 * With several instances, each client is served by the first instance in rendezvous order.
 */
#ifndef HW_TASKS_SESSIONS_H
#define HW_TASKS_SESSIONS_H

#include <stddef.h>

struct hw_tasks_app;
struct hw_tasks_sessions;

/* Registers with the inbox for `follow`, `unfollow`, and acks that name no task. Returns NULL if there is no memory. */
struct hw_tasks_sessions *hw_tasks_sessions_new(struct hw_tasks_app *app);
/* Frees the object. Called after the store is freed, when no call is open. */
void hw_tasks_sessions_free(struct hw_tasks_sessions *f);
/* Called each second. */
void hw_tasks_sessions_tick(struct hw_tasks_sessions *f);
/* Called in each turn of the loop, because the broker may have room again. NULL is allowed. */
void hw_tasks_sessions_turn(struct hw_tasks_sessions *f);
/* hw_tasks_sessions_count(): the number of all sessions. hw_tasks_sessions_count_current(): how many of them have
 * read the stream to its end. */
size_t hw_tasks_sessions_count(const struct hw_tasks_sessions *f);
size_t hw_tasks_sessions_count_current(const struct hw_tasks_sessions *f);

#endif

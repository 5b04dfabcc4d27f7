/* SPDX-License-Identifier: MIT */
/*
 * Followers: clients that only speak MQTT, and get the transitions of devices as tasks (action `transition`, msg_id the
 * event's id). An ack acknowledges all before it; what is not acknowledged is sent again, at least once, from behind
 * the last ack. A client's session is s:ol:{client}, s:s:{client} (stream -> filter) and s:t:{client} (stream ->
 * offset), which end 30 days after its last ack. task:follow names the clients, at most `max_followers`.
 * task:follow:new is a sorted set of those that have acknowledged nothing: the score is the time at which the session
 * ends, or +inf before anything was sent. With several instances each serves those of which it is the first in
 * rendezvous order.
 */
#ifndef HW_TASKS_SESSIONS_H
#define HW_TASKS_SESSIONS_H

#include <stddef.h>

struct hw_tasks_app;
struct hw_tasks_sessions;

/* NULL without memory. Takes the actions `follow` and `unfollow` from the inbox, and the acks of no task. */
struct hw_tasks_sessions *hw_tasks_sessions_new(struct hw_tasks_app *app);
/* After the store: nothing is under way any more. */
void hw_tasks_sessions_free(struct hw_tasks_sessions *f);
/* Each second. */
void hw_tasks_sessions_tick(struct hw_tasks_sessions *f);
/* Each turn of the loop: the broker may have room again. NULL may be given. */
void hw_tasks_sessions_turn(struct hw_tasks_sessions *f);
/* All of them; those that have read as far as the stream goes. */
size_t hw_tasks_sessions_count(const struct hw_tasks_sessions *f);
size_t hw_tasks_sessions_count_current(const struct hw_tasks_sessions *f);

#endif

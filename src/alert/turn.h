/* SPDX-License-Identifier: MIT */
/*
 * A turn of the engine. It carries out the work that is due, makes the messages, and starts the commit that stores
 * both. When the commit is confirmed, the messages are sent. There is a turn after each page of a stream, after each
 * commit, and at the time that hw_incidents_due() returns.
 */
#ifndef HW_ALERT_TURN_H
#define HW_ALERT_TURN_H

struct hw_alert_app;
struct hw_alert_turn;

struct hw_alert_turn *hw_alert_turn_new(struct hw_alert_app *app);
void hw_alert_turn_free(struct hw_alert_turn *t);
/* Schedules one turn, which runs after the current callbacks of the loop. */
void hw_alert_turn_schedule(struct hw_alert_turn *t);

#endif

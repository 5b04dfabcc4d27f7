/* SPDX-License-Identifier: MIT */
/*
 * A turn of the engine: it carries out what is due, makes the messages, and starts the commit that stores both. The
 * messages are sent when the commit is confirmed. A turn follows each page of a stream, each commit, and the time that
 * the engine names.
 */
#ifndef HW_ALERT_TURN_H
#define HW_ALERT_TURN_H

struct hw_alert_app;
struct hw_alert_turn;

struct hw_alert_turn *hw_alert_turn_new(struct hw_alert_app *app);
void hw_alert_turn_free(struct hw_alert_turn *t);
/* Runs after the current callbacks of the loop. */
void hw_alert_turn_schedule(struct hw_alert_turn *t);

#endif

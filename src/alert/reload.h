/* SPDX-License-Identifier: MIT */
/* Reloads the configuration: receivers, silences and the rules of [alert] take effect at once, other settings at a
 * restart. */
#ifndef HW_ALERT_RELOAD_H
#define HW_ALERT_RELOAD_H

struct hw_alert_app;
struct hw_json;

/* Reads the file again. Writes the members of an answer to `j`, which is an open object. Returns the HTTP status:
 * 200; 400 if the file is wrong; 503 if there is no memory. After 400 and 503 nothing has changed. */
int hw_alert_reload(struct hw_alert_app *a, struct hw_json *j);
/* Reloads on SIGHUP, and logs the result. */
void hw_alert_reload_on_signal(struct hw_alert_app *a);

#endif

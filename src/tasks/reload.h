/* SPDX-License-Identifier: MIT */
/* Reloads the configuration: [notify] takes effect at once, any other change needs a restart. */
#ifndef HW_TASKS_RELOAD_H
#define HW_TASKS_RELOAD_H

struct hw_json;
struct hw_tasks_app;

/* Reads the file again. Writes the members of the answer into the open object `j`. Returns the HTTP status: 200, 400 if
 * the file is wrong, or 503 without memory. With 400 and 503 nothing has changed. */
int hw_tasks_reload(struct hw_tasks_app *a, struct hw_json *j);
/* Reloads on SIGHUP, and logs the result. */
void hw_tasks_reload_on_signal(struct hw_tasks_app *a);

#endif

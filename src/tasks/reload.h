/* SPDX-License-Identifier: MIT */
/* A reload of the configuration: [notify] is put in force, everything else that has changed needs a restart. */
#ifndef HW_TASKS_RELOAD_H
#define HW_TASKS_RELOAD_H

struct hw_json;
struct hw_tasks_app;

/* Reads the file again. Puts the members of an answer into an object that is open, and returns its HTTP status: 200,
 * 400 for a file that is wrong, or 503 without memory; with the latter two nothing has changed. */
int hw_tasks_reload(struct hw_tasks_app *a, struct hw_json *j);
/* On SIGHUP: the log says it all. */
void hw_tasks_reload_on_signal(struct hw_tasks_app *a);

#endif

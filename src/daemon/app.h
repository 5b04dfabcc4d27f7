/* SPDX-License-Identifier: MIT */
/* The running daemon, from its making to its end. main() makes one and frees it. */
#ifndef HW_APP_H
#define HW_APP_H

#include <stdbool.h>

struct hw_app;
struct hw_settings;
struct hw_log;

/* Builds what needs no rights and no connection. Owns `conf` from here on. NULL after logging what failed. */
struct hw_app *hw_app_new(struct hw_log *log, struct hw_settings *conf);
void hw_app_free(struct hw_app *a);

/* Opens the control socket; apart, because it may need rights that the rest must not have. 0, or -errno after logging.
 */
int hw_app_listen(struct hw_app *a);
/* Connects to everything. 0, or -errno after logging. */
int hw_app_start(struct hw_app *a);

/*
 * After hw_app_run(): whether it ended only to begin anew, a standby that has lost the fleet. Then hw_app_anew() frees
 * it and makes and starts another in its place, with the configuration in force, and what may have needed rights: its
 * sockets, where clients wait meanwhile, and its passwords. NULL after logging what failed.
 */
bool hw_app_is_anew(const struct hw_app *a);
struct hw_app *hw_app_anew(struct hw_app *a);

#endif

/* SPDX-License-Identifier: MIT */
/* The running daemon, from its start to its end. main() creates it and frees it. */
#ifndef HW_APP_H
#define HW_APP_H

#include <stdbool.h>

struct hw_app;
struct hw_settings;
struct hw_log;

/* Creates the parts that need no rights and no connection. Owns `conf` from now on. Returns NULL after it has logged
 * the failure. */
struct hw_app *hw_app_new(struct hw_log *log, struct hw_settings *conf);
void hw_app_free(struct hw_app *a);

/* Opens the control socket. This is a separate step, because it may need rights that the other steps must not have.
 * Returns 0, or -errno after logging. */
int hw_app_listen(struct hw_app *a);
/* Connects to the broker and Redis. Returns 0, or -errno after logging. */
int hw_app_start(struct hw_app *a);

/*
 * hw_app_is_restarting(): after hw_app_run(), whether a standby node gave the fleet up and must start over. If so,
 * hw_app_restart() frees the daemon, and starts another one with the running configuration. The new daemon takes over
 * the sockets, on which clients wait meanwhile, and the passwords, because the process may no longer have the rights to
 * open the sockets or read the passwords. Returns NULL after it has logged the failure.
 */
bool hw_app_is_restarting(const struct hw_app *a);
struct hw_app *hw_app_restart(struct hw_app *a);

#endif

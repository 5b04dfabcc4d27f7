/* SPDX-License-Identifier: MIT */
/* The service manager. */
#ifndef HW_RUN_MANAGER_H
#define HW_RUN_MANAGER_H

/* sd_notify(3): no-ops without libsystemd or a service manager. `state` such as "READY=1". */
void hw_manager_tell(const char *state);
/* How often the watchdog wants to be fed, in ms; 0: never. */
long hw_manager_watchdog_ms(void);

#endif

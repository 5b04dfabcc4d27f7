/* SPDX-License-Identifier: MIT */
/* The service manager. */
#ifndef HW_RUN_MANAGER_H
#define HW_RUN_MANAGER_H

/* Calls sd_notify(3) with `state`, such as "READY=1". Does nothing without libsystemd or a service manager. */
void hw_manager_notify(const char *state);
/* The watchdog's interval in ms; 0: no watchdog. */
long hw_manager_watchdog_ms(void);

#endif

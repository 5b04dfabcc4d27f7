/* SPDX-License-Identifier: MIT */
/* Devices that are known by another program's key: the functions for door.c and due.c. Private to the core. */
#ifndef HW_KEY_H
#define HW_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "monitor_priv.h"

/* Returns the device's key data, created if missing; NULL: no memory (counted). */
struct hw_key *hw_monitor_key_of(struct hw_monitor *m, uint32_t i);
void hw_monitor_key_due(struct hw_monitor *m, struct hw_now now, uint32_t i);
/* Whether the key of a device keeps it online. Only for a device that has a key (hw_monitor_has_key()) and is silent
 * over MQTT. */
bool hw_monitor_key_lives(struct hw_monitor *m, struct hw_now now, uint32_t i);
/* Called when a device is found silent over MQTT. From now on only its key keeps it online. */
void hw_monitor_key_silent(struct hw_monitor *m, uint32_t i);

#endif

/* SPDX-License-Identifier: MIT */
/* Devices that are known by a key of another program's: what the door and the wheel ask of them. Private to the core.
 */
#ifndef HW_KEY_H
#define HW_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "monitor_priv.h"

/* The key's data, made if need be; NULL without memory, which is counted. */
struct hw_key *hw_monitor_key_of(struct hw_monitor *m, uint32_t i);
/* A device's entry in the keys' wheel came due. */
void hw_monitor_key_due(struct hw_monitor *m, struct hw_now now, uint32_t i);
/* Whether a device that has a key (hw_monitor_has_key()) and is silent over MQTT stays online by it. */
bool hw_monitor_key_lives(struct hw_monitor *m, struct hw_now now, uint32_t i);
/* A device was found silent over MQTT: from now on it is online by its key alone. */
void hw_monitor_key_silent(struct hw_monitor *m, uint32_t i);

#endif

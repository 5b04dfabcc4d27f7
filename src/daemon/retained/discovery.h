/* SPDX-License-Identifier: MIT */
/*
 * Home Assistant's MQTT discovery, as a kind of the retained sink (retained_sink.h). For each device with a status
 * topic, a retained configuration makes the device a binary sensor of class connectivity. The sensor's state is the
 * device's retained status. The sensor is unavailable while the monitor does not run or is blind.
 */
#ifndef HW_DISCOVERY_H
#define HW_DISCOVERY_H

#include "retained_sink.h"

#define HW_SLUG_MAX (HW_ID_MAX + 1 + 8) /* bytes, without the NUL */

/* A topic consists of the prefix in [mqtt] homeassistant_prefix, HW_DISCOVERY_BEFORE, the slug, and HW_DISCOVERY_AFTER.
 */
#define HW_DISCOVERY_BEFORE "/binary_sensor/heartwheel_"
#define HW_DISCOVERY_AFTER  "/config"

extern const struct hw_retained_kind hw_discovery_kind;

/*
 * Writes a device's name for places where only [A-Za-z0-9_-] is allowed: its id, with `_` for each other byte. If a
 * byte was replaced, `_` and a hash of the id (8 hexadecimal digits) follow. So the slug is the same after every
 * restart, whatever other ids exist.
 */
void hw_discovery_slug(struct hw_id id, char slug[HW_SLUG_MAX + 1]);

#endif

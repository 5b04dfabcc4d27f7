/* SPDX-License-Identifier: MIT */
/*
 * Home Assistant's MQTT discovery, as a kind of the retained sink (retained_sink.h). A retained configuration per
 * device with a status topic makes the device a binary sensor of class connectivity. The sensor's state is the device's
 * retained status. The sensor is unavailable while the monitor is away or blind.
 */
#ifndef HW_DISCOVERY_H
#define HW_DISCOVERY_H

#include "retained_sink.h"

#define HW_SLUG_MAX (HW_ID_MAX + 1 + 8) /* bytes, without the NUL */

/* A topic is the prefix of [mqtt] homeassistant_prefix, HW_DISCOVERY_BEFORE, the slug, and HW_DISCOVERY_AFTER. */
#define HW_DISCOVERY_BEFORE "/binary_sensor/heartwheel_"
#define HW_DISCOVERY_AFTER  "/config"

extern const struct hw_retained_kind hw_discovery_kind;

/*
 * Names a device where only [A-Za-z0-9_-] is allowed: its id, with `_` for each other byte. If a byte was replaced, `_`
 * and a hash of the id (8 hexadecimal digits) follow. The slug must be the same after every restart, whatever other ids
 * exist then.
 */
void hw_discovery_slug(struct hw_id id, char slug[HW_SLUG_MAX + 1]);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Home Assistant's MQTT discovery, as a kind of message that is owed (retained_sink.h): a retained configuration for
 * each device that has a status topic, which makes it a binary sensor of class connectivity. Its state is the device's
 * retained status; it is unavailable while the monitor is away or blind.
 */
#ifndef HW_DISCOVERY_H
#define HW_DISCOVERY_H

#include "retained_sink.h"

#define HW_SLUG_MAX (HW_ID_MAX + 1 + 8) /* without the NUL */

extern const struct hw_retained_kind hw_discovery_kind;

/*
 * What names a device where only [A-Za-z0-9_-] may stand: its id, with `_` for everything else. One in which anything
 * was replaced gets `_` and a hash of the id, in 8 hexadecimal digits: it must be the same after every restart,
 * whatever other ids there are by then.
 */
void hw_discovery_slug(struct hw_id id, char slug[HW_SLUG_MAX + 1]);

#endif

/* SPDX-License-Identifier: MIT */
/* Presets: the configuration lines for families of devices. */
#ifndef HW_CONF_PRESETS_H
#define HW_CONF_PRESETS_H

#include <stddef.h>

#include "conf/table.h"

enum hw_preset {
	HW_PRESET_NONE,
	HW_PRESET_TASMOTA,
	HW_PRESET_ESPHOME,
	HW_PRESET_SHELLY,
	HW_PRESET_SHELLY2,
	HW_PRESET_ZIGBEE2MQTT,
	HW_PRESET_OPENMQTTGATEWAY,
	HW_PRESET_FRIGATE,
	HW_PRESET_HOMIE,
	HW_PRESET_HOMIE5
};

/* The values of `preset`, "" for HW_PRESET_NONE. */
extern const struct hw_conf_choice hw_presets[];

/* The lines of all presets. The lines of one preset are in the order in which the file would have them. */
struct hw_preset_line {
	int preset; /* enum hw_preset */
	const char *key, *value;
};
extern const struct hw_preset_line hw_preset_lines[];
extern const size_t hw_preset_n_lines;

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The lines of each preset, as they would stand in the file. Their sources are the public documents about the devices.
 *
 * Timeouts are long enough for a healthy device with usual settings. Most devices that stop are detected much sooner,
 * by their last will. Topics for commands to devices match no filter, or are ignored. Payloads have the devices' own
 * formats, so only fields and goodbyes are read from them (payload = plain).
 */
#include "conf/presets.h"

const struct hw_conf_choice hw_presets[] = {{"", HW_PRESET_NONE},
                                            {"tasmota", HW_PRESET_TASMOTA},
                                            {"esphome", HW_PRESET_ESPHOME},
                                            {"shelly", HW_PRESET_SHELLY},
                                            {"shelly2", HW_PRESET_SHELLY2},
                                            {"zigbee2mqtt", HW_PRESET_ZIGBEE2MQTT},
                                            {"openmqttgateway", HW_PRESET_OPENMQTTGATEWAY},
                                            {"frigate", HW_PRESET_FRIGATE},
                                            {"homie", HW_PRESET_HOMIE},
                                            {"homie5", HW_PRESET_HOMIE5},
                                            {NULL, 0}};

/* clang-format off */
const struct hw_preset_line hw_preset_lines[] = {
	/* Publishes its state every TelePeriod, 300 s. Wifi.RSSI is a quality in percent; Wifi.Signal is in dBm. */
	{HW_PRESET_TASMOTA, "heartbeat", "tele/{id}/+"},
	{HW_PRESET_TASMOTA, "heartbeat", "stat/{id}/+"},
	{HW_PRESET_TASMOTA, "goodbye", "tele/{id}/LWT Offline"},
	{HW_PRESET_TASMOTA, "field", "rssi Wifi.Signal"},
	{HW_PRESET_TASMOTA, "field", "uptime UptimeSec"},
	{HW_PRESET_TASMOTA, "field", "version Info1.Version"},
	{HW_PRESET_TASMOTA, "field", "version Version"},
	{HW_PRESET_TASMOTA, "field", "ip Info2.IPAddress"},
	{HW_PRESET_TASMOTA, "field", "ip IPAddress"},
	{HW_PRESET_TASMOTA, "timeout", "15m"},
	{HW_PRESET_TASMOTA, "payload", "plain"},

	/* NODE/COMPONENT/NAME/state; commands use .../command. A node without sensors may publish nothing for days.
	 * Home Assistant publishes its own status on homeassistant/status with the same values, and is no node. */
	{HW_PRESET_ESPHOME, "heartbeat", "{id}/sensor/+/state"},
	{HW_PRESET_ESPHOME, "heartbeat", "{id}/binary_sensor/+/state"},
	{HW_PRESET_ESPHOME, "heartbeat", "{id}/switch/+/state"},
	{HW_PRESET_ESPHOME, "heartbeat", "{id}/light/+/state"},
	{HW_PRESET_ESPHOME, "heartbeat", "{id}/fan/+/state"},
	{HW_PRESET_ESPHOME, "heartbeat", "{id}/cover/+/state"},
	{HW_PRESET_ESPHOME, "heartbeat", "{id}/cover/+/position/state"},
	{HW_PRESET_ESPHOME, "heartbeat", "{id}/climate/+/+/state"},
	{HW_PRESET_ESPHOME, "heartbeat", "{id}/number/+/state"},
	{HW_PRESET_ESPHOME, "heartbeat", "{id}/select/+/state"},
	{HW_PRESET_ESPHOME, "heartbeat", "{id}/text/+/state"},
	{HW_PRESET_ESPHOME, "heartbeat", "{id}/lock/+/state"},
	{HW_PRESET_ESPHOME, "heartbeat", "{id}/valve/+/state"},
	{HW_PRESET_ESPHOME, "heartbeat", "{id}/valve/+/position/state"},
	{HW_PRESET_ESPHOME, "heartbeat", "{id}/fan/+/+/state"},
	{HW_PRESET_ESPHOME, "heartbeat", "{id}/event/+/state"},
	{HW_PRESET_ESPHOME, "heartbeat", "{id}/update/+/state"},
	{HW_PRESET_ESPHOME, "heartbeat", "{id}/alarm_control_panel/+/state"},
	{HW_PRESET_ESPHOME, "heartbeat", "{id}/datetime/+/state"},
	{HW_PRESET_ESPHOME, "heartbeat", "{id}/date/+/state"},
	{HW_PRESET_ESPHOME, "heartbeat", "{id}/time/+/state"},
	{HW_PRESET_ESPHOME, "goodbye", "{id}/status offline"},
	{HW_PRESET_ESPHOME, "ignore", "homeassistant/#"},
	{HW_PRESET_ESPHOME, "timeout", "1h"},
	{HW_PRESET_ESPHOME, "retained", "count"}, /* a node retains its states by default */
	{HW_PRESET_ESPHOME, "payload", "plain"},

	/* The first generation publishes everything every 30 s. All devices share shellies/command and
	 * shellies/announce. */
	{HW_PRESET_SHELLY, "heartbeat", "shellies/{id}/#"},
	{HW_PRESET_SHELLY, "goodbye", "shellies/{id}/online false"},
	{HW_PRESET_SHELLY, "ignore", "shellies/command"},
	{HW_PRESET_SHELLY, "ignore", "shellies/announce"},
	{HW_PRESET_SHELLY, "ignore", "shellies/{id}/command/#"},
	{HW_PRESET_SHELLY, "ignore", "shellies/{id}/+/+/command/#"},
	{HW_PRESET_SHELLY, "ignore", "shellies/{id}/+/+/set/#"},
	{HW_PRESET_SHELLY, "ignore", "shellies/{id}/sensor/start_self_test"},
	{HW_PRESET_SHELLY, "ignore", "shellies/{id}/sensor/mute"},
	{HW_PRESET_SHELLY, "ignore", "shellies/{id}/sensor/unmute"},
	{HW_PRESET_SHELLY, "field", "rssi wifi_sta.rssi"},
	{HW_PRESET_SHELLY, "field", "ip wifi_sta.ip"},
	{HW_PRESET_SHELLY, "field", "ip ip"},
	{HW_PRESET_SHELLY, "field", "version fw_ver"},
	{HW_PRESET_SHELLY, "field", "uptime uptime"},
	{HW_PRESET_SHELLY, "field", "battery bat.value"},
	{HW_PRESET_SHELLY, "timeout", "3m"},
	{HW_PRESET_SHELLY, "payload", "plain"},

	/* Later generations get requests on PREFIX/rpc and PREFIX/command/..., which match no filter. */
	{HW_PRESET_SHELLY2, "heartbeat", "{id}/events/rpc"},
	{HW_PRESET_SHELLY2, "heartbeat", "{id}/status/+"},
	{HW_PRESET_SHELLY2, "goodbye", "{id}/online false"},
	{HW_PRESET_SHELLY2, "field", "rssi params.wifi.rssi"},
	{HW_PRESET_SHELLY2, "field", "ip params.wifi.sta_ip"},
	{HW_PRESET_SHELLY2, "field", "ip sta_ip"},
	{HW_PRESET_SHELLY2, "field", "uptime params.sys.uptime"},
	{HW_PRESET_SHELLY2, "field", "uptime uptime"},
	{HW_PRESET_SHELLY2, "field", "battery params.devicepower:0.battery.percent"},
	{HW_PRESET_SHELLY2, "field", "battery battery.percent"},
	{HW_PRESET_SHELLY2, "timeout", "1h"},
	{HW_PRESET_SHELLY2, "payload", "plain"},

	/* Names may contain slashes. By zigbee2mqtt's own availability check, battery devices are offline after 25 h,
	 * others after 10 min. */
	{HW_PRESET_ZIGBEE2MQTT, "heartbeat", "zigbee2mqtt/{id...}"},
	{HW_PRESET_ZIGBEE2MQTT, "goodbye", "zigbee2mqtt/{id...}/availability state=offline"},
	{HW_PRESET_ZIGBEE2MQTT, "goodbye", "zigbee2mqtt/{id...}/availability offline"},
	{HW_PRESET_ZIGBEE2MQTT, "ignore", "zigbee2mqtt/bridge/#"},
	{HW_PRESET_ZIGBEE2MQTT, "ignore", "zigbee2mqtt/{id...}/set"},
	{HW_PRESET_ZIGBEE2MQTT, "ignore", "zigbee2mqtt/{id...}/set/+"},
	{HW_PRESET_ZIGBEE2MQTT, "ignore", "zigbee2mqtt/{id...}/get"},
	{HW_PRESET_ZIGBEE2MQTT, "ignore", "zigbee2mqtt/{id...}/get/+"},
	{HW_PRESET_ZIGBEE2MQTT, "ignore", "zigbee2mqtt/{id...}/action"},
	{HW_PRESET_ZIGBEE2MQTT, "while", "zigbee2mqtt/bridge/state online"}, /* or {"state":"online"} */
	{HW_PRESET_ZIGBEE2MQTT, "field", "battery battery"},
	{HW_PRESET_ZIGBEE2MQTT, "timeout", "25h"},
	{HW_PRESET_ZIGBEE2MQTT, "payload", "plain"},

	/* The device is the gateway. A message that it forwards from a sensor is a heartbeat. SYStoMQTT comes every 2
	 * min. */
	{HW_PRESET_OPENMQTTGATEWAY, "heartbeat", "home/{id}/SYStoMQTT"},
	{HW_PRESET_OPENMQTTGATEWAY, "heartbeat", "home/{id}/BTtoMQTT/#"},
	{HW_PRESET_OPENMQTTGATEWAY, "heartbeat", "home/{id}/RTL_433toMQTT/#"},
	{HW_PRESET_OPENMQTTGATEWAY, "heartbeat", "home/{id}/433toMQTT/#"},
	{HW_PRESET_OPENMQTTGATEWAY, "heartbeat", "home/{id}/IRtoMQTT/#"},
	{HW_PRESET_OPENMQTTGATEWAY, "heartbeat", "home/{id}/LORAtoMQTT/#"},
	{HW_PRESET_OPENMQTTGATEWAY, "goodbye", "home/{id}/LWT offline"},
	{HW_PRESET_OPENMQTTGATEWAY, "field", "version version"},
	{HW_PRESET_OPENMQTTGATEWAY, "field", "uptime uptime"},
	{HW_PRESET_OPENMQTTGATEWAY, "field", "ip ip"},
	{HW_PRESET_OPENMQTTGATEWAY, "timeout", "6m"},
	{HW_PRESET_OPENMQTTGATEWAY, "payload", "plain"},

	/* There is one device, the recorder. It publishes its statistics every minute. */
	{HW_PRESET_FRIGATE, "heartbeat", "frigate/stats"},
	{HW_PRESET_FRIGATE, "heartbeat", "frigate/events"},
	{HW_PRESET_FRIGATE, "heartbeat", "frigate/reviews"},
	{HW_PRESET_FRIGATE, "goodbye", "frigate/available offline"},
	{HW_PRESET_FRIGATE, "goodbye", "frigate/available stopped"},
	{HW_PRESET_FRIGATE, "id", "frigate"},
	{HW_PRESET_FRIGATE, "field", "version service.version"},
	{HW_PRESET_FRIGATE, "field", "uptime service.uptime"},
	{HW_PRESET_FRIGATE, "timeout", "3m"},
	{HW_PRESET_FRIGATE, "payload", "plain"},

	/* Homie 3 and 4. Topics of Homie 5, which has the same base topic, are ignored here. The topics of commands to
	 * properties (.../set) have one level more, so the filters do not match them. */
	{HW_PRESET_HOMIE, "heartbeat", "homie/{id}/$state"},
	{HW_PRESET_HOMIE, "heartbeat", "homie/{id}/+/+"},
	{HW_PRESET_HOMIE, "ignore", "homie/5/#"},
	{HW_PRESET_HOMIE, "ignore", "homie/$broadcast/#"},
	{HW_PRESET_HOMIE, "ignore", "homie/{id}/$implementation/#"},
	{HW_PRESET_HOMIE, "timeout", "15m"},
	{HW_PRESET_HOMIE, "retained", "count"}, /* by the convention */
	{HW_PRESET_HOMIE, "payload", "homie"},

	{HW_PRESET_HOMIE5, "heartbeat", "homie/5/{id}/$state"},
	{HW_PRESET_HOMIE5, "heartbeat", "homie/5/{id}/+/+"},
	{HW_PRESET_HOMIE5, "ignore", "homie/5/$broadcast/#"},
	{HW_PRESET_HOMIE5, "timeout", "15m"},
	{HW_PRESET_HOMIE5, "retained", "count"},
	{HW_PRESET_HOMIE5, "payload", "homie"},
};
/* clang-format on */

const size_t hw_preset_n_lines = sizeof(hw_preset_lines) / sizeof(hw_preset_lines[0]);

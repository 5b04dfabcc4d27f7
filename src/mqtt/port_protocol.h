/* SPDX-License-Identifier: MIT */
/* Finds out which protocol the broker's port speaks, to explain a connection that was closed without an answer. */
#ifndef HW_MQTT_PORT_PROTOCOL_H
#define HW_MQTT_PORT_PROTOCOL_H

enum hw_port_protocol { HW_PORT_UNKNOWN, HW_PORT_MQTT, HW_PORT_TLS };

/*
 * Connects, sends a TLS ClientHello (`try` HW_PORT_TLS) or an MQTT 3.1.1 CONNECT without a client id (HW_PORT_MQTT),
 * and reads the first bytes of the answer. Returns `try` if the answer is in that protocol, else HW_PORT_UNKNOWN. After
 * name resolution, blocks for at most a second.
 */
enum hw_port_protocol hw_port_protocol_try(const char *host, int port, enum hw_port_protocol try);

#endif

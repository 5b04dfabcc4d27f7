/* SPDX-License-Identifier: MIT */
/* What a port of the broker speaks, for the sentence about a connection that was closed without an answer. */
#ifndef HW_MQTT_PORT_PROTOCOL_H
#define HW_MQTT_PORT_PROTOCOL_H

enum hw_port_protocol { HW_PORT_UNKNOWN, HW_PORT_MQTT, HW_PORT_TLS };

/*
 * Connects, begins a TLS handshake (`try` HW_PORT_TLS) or sends a CONNECT of MQTT 3.1.1 without a name (HW_PORT_MQTT),
 * and reads the first bytes of the answer. Returns `try` if they are such an answer, else HW_PORT_UNKNOWN. Blocks for a
 * second at most, after the name is resolved.
 */
enum hw_port_protocol hw_port_protocol_try(const char *host, int port, enum hw_port_protocol try);

#endif

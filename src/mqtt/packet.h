/* SPDX-License-Identifier: MIT */
/*
 * As much of MQTT (3.1.1 and 5) as it takes to know where a packet ends and what a QoS 0 message says. Whatever else
 * there is, and whatever is wrong, is left to the library.
 */
#ifndef HW_MQTT_PACKET_H
#define HW_MQTT_PACKET_H

#include <stdbool.h>
#include <stddef.h>

enum hw_packet_kind {
	HW_PACKET_PART,    /* more bytes are needed */
	HW_PACKET_MESSAGE, /* a whole PUBLISH with QoS 0 */
	HW_PACKET_OTHER    /* a whole packet of another kind, or one that breaks the rules */
};

struct hw_packet {
	size_t size; /* of the packet; of a part: how many bytes are needed to know more */
	/* of a message; borrowed from the bytes */
	const char *topic;
	size_t topic_len;
	const void *payload;
	size_t payload_len;
	bool retained;
};

/* What the bytes begin with. `v5`: which of the two versions. */
enum hw_packet_kind hw_packet_look(const void *bytes, size_t n, bool v5, struct hw_packet *p);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * As much of MQTT (3.1.1 and 5) as it takes to know where a packet ends, what a QoS 0 message says and which message is
 * acknowledged; and to write a message. Whatever else there is, and whatever is wrong, is left to the library.
 */
#ifndef HW_MQTT_PACKET_H
#define HW_MQTT_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

enum hw_packet_ack_kind {
	HW_PACKET_ACK_PART, /* more bytes are needed */
	HW_PACKET_ACK,      /* the beginning of a PUBACK, as far as `id` and `reason`: the rest may be still to come */
	HW_PACKET_NO_ACK    /* a packet of another kind, whole or not, or one that breaks the rules or is too long */
};

/* Bytes of a packet on a connection that awaits acknowledgements. The library's packets must lie in the socket as a
 * whole, and a longer packet of any kind delays the acknowledgements that follow it. */
#define HW_PACKET_ACK_MOST (1 << 17)

struct hw_packet_ack {
	size_t size;    /* of the packet, or 0: a length that breaks the rules; of a part: as above */
	uint16_t id;    /* of the message */
	uint8_t reason; /* 0: taken */
};

/* What the bytes begin with, to one who is waiting for acknowledgements. */
enum hw_packet_ack_kind hw_packet_look_ack(const void *bytes, size_t n, bool v5, struct hw_packet_ack *a);

/* One that goes out. All is borrowed. */
struct hw_message {
	const char *topic; /* with a NUL behind it */
	size_t topic_len;  /* at most 65535 */
	const void *payload;
	size_t payload_len;
	uint32_t expiry_s; /* 0: never; told in version 5 alone */
	int qos;           /* 0 or 1 */
	bool retain;
};

/* Of its whole PUBLISH packet, in bytes; what is too long for one has a size of more than HW_PACKET_MOST. */
#define HW_PACKET_MOST 268435460
size_t hw_packet_publish_size(const struct hw_message *m, bool v5);
/* Writes that many bytes. `id`: not 0, if its QoS is not. */
void hw_packet_publish(uint8_t *to, const struct hw_message *m, bool v5, uint16_t id);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Parses as much of MQTT (3.1.1 and 5) as is needed: the end of a packet, the content of a message with QoS 0, and the
 * id of an acknowledgement. Also encodes a message. The library parses all other packets and handles every error.
 */
#ifndef HW_MQTT_PACKET_H
#define HW_MQTT_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hw_packet_kind {
	HW_PACKET_PART,    /* more bytes are needed */
	HW_PACKET_MESSAGE, /* a whole PUBLISH with QoS 0 */
	HW_PACKET_OTHER    /* a whole packet of another kind, or a malformed packet */
};

struct hw_packet {
	size_t size; /* size of the packet; if it is incomplete: bytes needed to continue */
	/* members of a message; borrowed from the bytes */
	const char *topic;
	size_t topic_len;
	const void *payload;
	size_t payload_len;
	bool retained;
};

/* Parses the packet at the start of the bytes. `v5`: MQTT 5, else 3.1.1. */
enum hw_packet_kind hw_packet_peek(const void *bytes, size_t n, bool v5, struct hw_packet *p);

enum hw_packet_ack_kind {
	HW_PACKET_ACK_PART, /* more bytes are needed */
	HW_PACKET_ACK,      /* a PUBACK, complete at least up to `id` and `reason` */
	HW_PACKET_NO_ACK    /* another kind of packet, whole or not; or a malformed or too long packet */
};

/* Longest packet, in bytes, on a connection that waits for acknowledgements. A packet for the library must be in the
 * socket as a whole before it is read. A longer packet of any kind would delay the acknowledgements after it. */
#define HW_PACKET_ACK_MOST (1 << 17)

struct hw_packet_ack {
	size_t size;    /* size of the packet; 0: malformed length; if it is incomplete: bytes needed to continue */
	uint16_t id;    /* of the message */
	uint8_t reason; /* 0: accepted */
};

/* Parses the first packet in `bytes`, which were received on a connection that waits for acknowledgements (PUBACK). */
enum hw_packet_ack_kind hw_packet_peek_ack(const void *bytes, size_t n, bool v5, struct hw_packet_ack *a);

/* A message to send. All pointers are borrowed. */
struct hw_message {
	const char *topic; /* with a NUL */
	size_t topic_len;  /* at most 65535 */
	const void *payload;
	size_t payload_len;
	uint32_t expiry_s; /* 0: never; sent in MQTT 5 only */
	int qos;           /* 0 or 1 */
	bool retain;
};

/* The size of a message's PUBLISH packet. It is greater than HW_PACKET_MOST if MQTT allows no such packet. */
#define HW_PACKET_MOST 268435460
size_t hw_packet_publish_size(const struct hw_message *m, bool v5);
/* Writes the packet. `id`: the packet id, not 0 if the QoS is 1. */
void hw_packet_publish(uint8_t *to, const struct hw_message *m, bool v5, uint16_t id);

#endif

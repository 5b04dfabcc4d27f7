/* SPDX-License-Identifier: MIT */
/*
 * The records in a reader's ring: messages, barriers and events of the connection. The reader's thread adds them, and
 * the loop takes them. The loop sees them only after hw_ring_publish().
 */
#ifndef HW_MQTT_RECORDS_H
#define HW_MQTT_RECORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "mqtt/mqtt.h"
#include "mqtt/packet.h"
#include "mqtt/ring.h"

#define HW_RECORDS_RING_MIN (1 << 20) /* bytes of the smallest ring that can hold every record */

/* For the thread: whether there is room for the largest possible record. */
bool hw_records_have_room(struct hw_ring *ring);
/* Adds a copy of a message, with at most HW_READER_PAYLOAD_MAX bytes of its payload. False if there is no room now. */
bool hw_records_message(struct hw_ring *ring, const struct hw_packet *p);
/* Adds a copy of another event. `data`: a struct hw_barrier, a time in ns, or a text with its NUL. False if there is
 * no room now. */
bool hw_records_event(struct hw_ring *ring, enum hw_reader_event_kind kind, const void *data, size_t size);

/* For the loop: gets the next event, or returns false. The event's pointers are valid until hw_ring_release(). */
bool hw_records_take(struct hw_ring *ring, struct hw_reader_event *ev);

#endif

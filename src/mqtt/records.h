/* SPDX-License-Identifier: MIT */
/*
 * What a reader's ring holds: messages, barriers and what befell the connection, as its thread puts them in and the
 * loop takes them out. Nothing of it is visible to the loop before hw_ring_publish().
 */
#ifndef HW_MQTT_RECORDS_H
#define HW_MQTT_RECORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "mqtt/mqtt.h"
#include "mqtt/packet.h"
#include "mqtt/ring.h"

#define HW_RECORDS_RING_MIN (1 << 20) /* bytes of a ring that takes every record */

/* The thread's side. Whether there is room for the largest record there can be. */
bool hw_records_have_room(struct hw_ring *ring);
/* A message, of whose payload HW_READER_PAYLOAD_MAX bytes are kept; a copy. False if there is no room for it now. */
bool hw_records_message(struct hw_ring *ring, const struct hw_packet *p);
/* Anything else: `data` is a struct hw_barrier, a time in ns, or a text with its NUL; a copy. False as above. */
bool hw_records_event(struct hw_ring *ring, enum hw_reader_event_kind kind, const void *data, size_t size);

/* The loop's side: the next one, or false. What it points to lies in the ring until hw_ring_release(). */
bool hw_records_take(struct hw_ring *ring, struct hw_reader_event *ev);

#endif

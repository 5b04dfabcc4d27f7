/* SPDX-License-Identifier: MIT */
/*
 * Messages taken from the socket ahead of the library.
 *
 * The library takes three system calls and several allocations for each packet. So where it can be, what lies in the
 * socket is looked at while it still lies there (MSG_PEEK), the messages at its beginning are handed to the owner's
 * `take`, and then thrown away there, many at a time. Every other packet is left to the library, which reads it from
 * its beginning and knows of no other: CONNECT, subscriptions, keepalive and errors stay its own.
 *
 * It can be where hw_link_is_bare(), and with QoS 0 (else the library acknowledges).
 */
#ifndef HW_MQTT_AHEAD_H
#define HW_MQTT_AHEAD_H

#include <stdbool.h>

#include "mqtt/link.h"
#include "mqtt/packet.h"

struct hw_ahead;

/*
 * For a link that has been readied, and is borrowed. `take` takes one message, with the link's owner; it is false if
 * there is no room for it now. NULL where the library must read everything, or without memory: then it does. Freed with
 * free().
 */
struct hw_ahead *hw_ahead_new(struct hw_link *l, bool (*take)(void *owner, const struct hw_packet *message));
/* The link has a new connection. */
void hw_ahead_begin(struct hw_ahead *a);
/* As hw_link_read(), once the link is open. */
enum hw_link_read hw_ahead_read(struct hw_ahead *a, unsigned budget);

#endif

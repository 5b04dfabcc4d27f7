/* SPDX-License-Identifier: MIT */
/*
 * Reads messages from the socket ahead of the library.
 *
 * The library needs three system calls and several allocations for each packet. Where possible, this code therefore
 * inspects the bytes in the socket in place (MSG_PEEK). It passes the messages at their start to the owner's `take`,
 * and then discards them from the socket, many at a time. The library reads every other packet from its start. So the
 * library still handles CONNECT, subscriptions, keepalive and errors.
 *
 * This is possible if hw_link_is_bare() and the QoS is 0. With QoS 1, the library must acknowledge messages.
 */
#ifndef HW_MQTT_AHEAD_H
#define HW_MQTT_AHEAD_H

#include <stdbool.h>

#include "mqtt/link.h"
#include "mqtt/packet.h"

struct hw_ahead;

/*
 * Creates the reading ahead for a link. `l` must be initialised, and is borrowed. `take` gets each message, with the
 * owner of the link; it returns false if there is no room now. Returns NULL if the library must read all packets, or if
 * there is no memory; the library then reads all packets too. The caller frees the result with free().
 */
struct hw_ahead *hw_ahead_new(struct hw_link *l, bool (*take)(void *owner, const struct hw_packet *message));
/* The link has a new connection. */
void hw_ahead_begin(struct hw_ahead *a);
/* Like hw_link_read(), for an open link. */
enum hw_link_read hw_ahead_read(struct hw_ahead *a, unsigned budget);

#endif

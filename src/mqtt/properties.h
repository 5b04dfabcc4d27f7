/* SPDX-License-Identifier: MIT */
/*
 * Whether the library may be given a packet of MQTT 5. libmosquitto 2.0.11 aborts the process on a property with an
 * identifier that it does not know (logging_mosq.c:37), so each identifier is checked before the library reads it.
 */
#ifndef HW_MQTT_PROPERTIES_H
#define HW_MQTT_PROPERTIES_H

#include <stddef.h>

enum hw_packet_soundness {
	HW_PACKET_SOUND,  /* the library may read it: of a PUBLISH everything but the payload was checked */
	HW_PACKET_CUT,    /* `need` bytes are needed to know more */
	HW_PACKET_UNSOUND /* the library must not read it */
};

struct hw_packet_check {
	size_t size;  /* of the packet, as soon as its length is known; else 0 */
	size_t need;  /* of a cut one: more than there are */
	int property; /* of an unsound one: the identifier that does not exist; -1: another rule is broken */
};

/* What the bytes of a connection with MQTT 5 begin with. A packet that no broker sends is unsound. */
enum hw_packet_soundness hw_packet_check(const void *bytes, size_t n, struct hw_packet_check *c);

#endif

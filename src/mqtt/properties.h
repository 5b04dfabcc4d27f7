/* SPDX-License-Identifier: MIT */
/*
 * Checks whether the library may read an MQTT 5 packet. libmosquitto 2.0.11 aborts the process on a property with an
 * unknown identifier (logging_mosq.c:37). So each identifier is checked before the library reads it.
 */
#ifndef HW_MQTT_PROPERTIES_H
#define HW_MQTT_PROPERTIES_H

#include <stddef.h>

enum hw_packet_soundness {
	HW_PACKET_SOUND,  /* the library may read the packet; of a PUBLISH, all except the payload was checked */
	HW_PACKET_CUT,    /* incomplete: `need` bytes are needed to continue */
	HW_PACKET_UNSOUND /* the library must not read it */
};

struct hw_packet_check {
	size_t size;  /* of the packet, once its length is known; else 0 */
	size_t need;  /* if incomplete: more than there are */
	int property; /* if unsound: the unknown identifier, or -1 if another rule is broken */
	/* Offsets in the packet, once they are known; else 0. topic_at, topic_len and id are those of a PUBLISH. */
	size_t topic_at, topic_len;
	size_t id; /* 0: QoS 0 */
	size_t properties_end;
};

/* Checks the first packet in the bytes of an MQTT 5 connection. A packet that no broker may send is unsound. */
enum hw_packet_soundness hw_packet_check(const void *bytes, size_t n, struct hw_packet_check *c);

#endif

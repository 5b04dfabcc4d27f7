/* SPDX-License-Identifier: MIT */
/*
 * See properties.h. Section numbers refer to "MQTT Version 5.0" (OASIS). Cost: a few loads and compares for a packet
 * without properties.
 */
#include "mqtt/properties.h"

#include <mqtt_protocol.h>
#include <stdbool.h>
#include <stdint.h>

#define LENGTH_BYTES 4 /* of a variable byte integer, at most (1.5.5) */
#define NO_PROPERTY  (-1)

/* The unread part of a packet. */
struct rest {
	const uint8_t *at;
	size_t n;    /* bytes that are here */
	size_t left; /* bytes that belong to the packet */
};

static enum hw_packet_soundness skip(struct rest *r, size_t bytes)
{
	if (bytes > r->left)
		return HW_PACKET_UNSOUND;
	if (bytes > r->n)
		return HW_PACKET_CUT;
	r->at += bytes;
	r->n -= bytes;
	r->left -= bytes;
	return HW_PACKET_SOUND;
}

static enum hw_packet_soundness take_number(struct rest *r, unsigned bytes, size_t *value)
{
	const uint8_t *at = r->at;
	enum hw_packet_soundness s = skip(r, bytes);
	for (*value = 0; s == HW_PACKET_SOUND && bytes > 0; bytes--)
		*value = *value << 8 | *at++;
	return s;
}

static enum hw_packet_soundness take_length(struct rest *r, size_t *value)
{
	*value = 0;
	for (unsigned i = 0; i < LENGTH_BYTES; i++) {
		size_t b;
		enum hw_packet_soundness s = take_number(r, 1, &b);
		if (s != HW_PACKET_SOUND)
			return s;
		*value |= (b & 127) << (7 * i);
		if (!(b & 128))
			return HW_PACKET_SOUND;
	}
	return HW_PACKET_UNSOUND;
}

/* Skips a string or binary data, both of which begin with their length (1.5.4, 1.5.6). */
static enum hw_packet_soundness skip_string(struct rest *r)
{
	size_t len;
	enum hw_packet_soundness s = take_number(r, 2, &len);
	return s == HW_PACKET_SOUND ? skip(r, len) : s;
}

/* The value of a property (2.2.2.2). */
static enum hw_packet_soundness skip_value(struct rest *r, size_t property)
{
	size_t unused;
	enum hw_packet_soundness s;
	switch (property) {
	case MQTT_PROP_PAYLOAD_FORMAT_INDICATOR:
	case MQTT_PROP_REQUEST_PROBLEM_INFORMATION:
	case MQTT_PROP_REQUEST_RESPONSE_INFORMATION:
	case MQTT_PROP_MAXIMUM_QOS:
	case MQTT_PROP_RETAIN_AVAILABLE:
	case MQTT_PROP_WILDCARD_SUB_AVAILABLE:
	case MQTT_PROP_SUBSCRIPTION_ID_AVAILABLE:
	case MQTT_PROP_SHARED_SUB_AVAILABLE:
		return skip(r, 1);
	case MQTT_PROP_SERVER_KEEP_ALIVE:
	case MQTT_PROP_RECEIVE_MAXIMUM:
	case MQTT_PROP_TOPIC_ALIAS_MAXIMUM:
	case MQTT_PROP_TOPIC_ALIAS:
		return skip(r, 2);
	case MQTT_PROP_MESSAGE_EXPIRY_INTERVAL:
	case MQTT_PROP_SESSION_EXPIRY_INTERVAL:
	case MQTT_PROP_WILL_DELAY_INTERVAL:
	case MQTT_PROP_MAXIMUM_PACKET_SIZE:
		return skip(r, 4);
	case MQTT_PROP_SUBSCRIPTION_IDENTIFIER:
		return take_length(r, &unused);
	case MQTT_PROP_USER_PROPERTY:
		s = skip_string(r);
		return s == HW_PACKET_SOUND ? skip_string(r) : s;
	case MQTT_PROP_CONTENT_TYPE:
	case MQTT_PROP_RESPONSE_TOPIC:
	case MQTT_PROP_CORRELATION_DATA:
	case MQTT_PROP_ASSIGNED_CLIENT_IDENTIFIER:
	case MQTT_PROP_AUTHENTICATION_METHOD:
	case MQTT_PROP_AUTHENTICATION_DATA:
	case MQTT_PROP_RESPONSE_INFORMATION:
	case MQTT_PROP_SERVER_REFERENCE:
	case MQTT_PROP_REASON_STRING:
		return skip_string(r);
	default:
		return HW_PACKET_UNSOUND;
	}
}

static bool exists(size_t property)
{
	static const uint8_t nothing[8];
	struct rest r = {nothing, sizeof(nothing), sizeof(nothing)};
	return skip_value(&r, property) == HW_PACKET_SOUND;
}

/* Checks the length of the properties and each property, and moves `r` past them. */
static enum hw_packet_soundness check_properties(struct rest *r, struct hw_packet_check *c)
{
	size_t length, property;
	enum hw_packet_soundness s = take_length(r, &length);
	if (s == HW_PACKET_SOUND && length > r->left)
		s = HW_PACKET_UNSOUND;
	if (s != HW_PACKET_SOUND)
		return s;
	c->properties_end = c->size - r->left + length;
	struct rest all = {r->at, r->n < length ? r->n : length, length};
	while (all.left > 0 && s == HW_PACKET_SOUND) {
		s = take_length(&all, &property);
		if (s == HW_PACKET_SOUND && !exists(property)) {
			c->property = (int)property;
			return HW_PACKET_UNSOUND;
		}
		if (s == HW_PACKET_SOUND)
			s = skip_value(&all, property);
	}
	return s == HW_PACKET_SOUND ? skip(r, length) : s;
}

/* Checks a reason code and properties, each of which may be absent (3.4, 3.14, 3.15). */
static enum hw_packet_soundness check_reason(struct rest *r, struct hw_packet_check *c)
{
	enum hw_packet_soundness s = r->left > 0 ? skip(r, 1) : HW_PACKET_SOUND;
	return s == HW_PACKET_SOUND && r->left > 0 ? check_properties(r, c) : s;
}

static enum hw_packet_soundness check_publish(struct rest *r, uint8_t head, struct hw_packet_check *c)
{
	unsigned qos = head >> 1 & 3;
	if (qos > 1)
		return HW_PACKET_UNSOUND; /* no subscription of ours has QoS 2 */
	enum hw_packet_soundness s = take_number(r, 2, &c->topic_len);
	if (s == HW_PACKET_SOUND) {
		c->topic_at = c->size - r->left;
		s = skip(r, c->topic_len);
	}
	if (s == HW_PACKET_SOUND && qos > 0)
		s = take_number(r, 2, &c->id);
	return s == HW_PACKET_SOUND ? check_properties(r, c) : s;
}

static enum hw_packet_soundness check_body(struct rest *r, uint8_t head, struct hw_packet_check *c)
{
	enum hw_packet_soundness s;
	switch (head & 0xf0) {
	case CMD_CONNACK: /* a broker that does not support MQTT 5 answers with a CONNACK without properties */
		s = skip(r, 2);
		return s == HW_PACKET_SOUND && r->left > 0 ? check_properties(r, c) : s;
	case CMD_PUBACK:
	case CMD_PUBREC:
	case CMD_PUBREL:
	case CMD_PUBCOMP:
		s = skip(r, 2);
		return s == HW_PACKET_SOUND ? check_reason(r, c) : s;
	case CMD_SUBACK:
	case CMD_UNSUBACK:
		s = skip(r, 2);
		return s == HW_PACKET_SOUND ? check_properties(r, c) : s;
	case CMD_DISCONNECT:
	case CMD_AUTH:
		return check_reason(r, c);
	case CMD_PINGRESP:
		return HW_PACKET_SOUND;
	default:
		return HW_PACKET_UNSOUND;
	}
}

enum hw_packet_soundness hw_packet_check(const void *bytes, size_t n, struct hw_packet_check *c)
{
	struct rest r = {bytes, n, SIZE_MAX};
	size_t head, length;
	*c = (struct hw_packet_check){.need = n + 1, .property = NO_PROPERTY};
	enum hw_packet_soundness s = take_number(&r, 1, &head);
	if (s == HW_PACKET_SOUND)
		s = take_length(&r, &length);
	if (s != HW_PACKET_SOUND)
		return s;
	c->size = n - r.n + length;
	r.left = length;
	if (r.n > length)
		r.n = length;
	bool message = (head & 0xf0) == CMD_PUBLISH;
	s = message ? check_publish(&r, (uint8_t)head, c) : check_body(&r, (uint8_t)head, c);
	if (s == HW_PACKET_SOUND && !message && c->size > n)
		s = HW_PACKET_CUT;
	if (s == HW_PACKET_CUT && !message)
		c->need = c->size;
	return s;
}

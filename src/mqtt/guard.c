/* SPDX-License-Identifier: MIT */
/* See guard.h. Cost: a system call and a copy for up to HW_RECEIVE_PEEK bytes of packets. */
#include "mqtt/guard.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "mqtt/properties.h"
#include "mqtt/receive.h"

/* Most bytes of a packet that are checked. They must all be in the socket, whose buffer has 208 KiB by default. */
#define LONGEST (HW_GUARD_PROPERTIES_KIB << 10)

static enum hw_guard_answer stop(const struct hw_packet_check *c, struct hw_why *why)
{
	const struct hw_mqtt_conf *conf = why->conf;
	if (c->property >= 0)
		hw_why_refuse(why,
		              "%s:%d sent a packet with property %d, which MQTT 5 does not define: connection closed; "
		              "try [mqtt] protocol = 3.1.1",
		              conf->host, conf->port, c->property);
	else
		hw_why_refuse(why, "%s:%d sent a packet that violates MQTT 5: connection closed", conf->host,
		              conf->port);
	return HW_GUARD_STOP;
}

static enum hw_guard_answer stop_long(const struct hw_packet_check *c, struct hw_why *why)
{
	hw_why_refuse(why,
	              "%s:%d sent a packet of %zu bytes that is no message: connection closed; expected at most %d KiB",
	              why->conf->host, why->conf->port, c->size, HW_GUARD_PROPERTIES_KIB);
	return HW_GUARD_STOP;
}

/* Waits until `bytes` bytes are in the socket, where `seen` are now. If the stream has ended, the library is called
 * to read the end. */
static enum hw_guard_answer wait_for(struct hw_guard *g, int fd, size_t seen, size_t bytes)
{
	if (hw_receive_ended(fd))
		return hw_receive_waiting(fd) > seen ? HW_GUARD_WAIT : HW_GUARD_PASS;
	g->awaits = true;
	hw_receive_await(fd, bytes);
	return HW_GUARD_WAIT;
}

/* Checks all whole packets in the `n` bytes. If there is none, returns the result for the incomplete first one. */
static enum hw_packet_soundness check_all(struct hw_guard *g, const uint8_t *bytes, size_t n, struct hw_packet_check *c)
{
	enum hw_packet_soundness s;
	size_t done = 0;
	while ((s = hw_packet_check(bytes + done, n - done, c)) == HW_PACKET_SOUND && c->size <= n - done) {
		g->sound++;
		done += c->size;
	}
	return g->sound > 0 ? HW_PACKET_SOUND : s;
}

static void end_wait(struct hw_guard *g, int fd)
{
	if (g->awaits)
		hw_receive_await(fd, 1);
	g->awaits = false;
}

/* Whether this is a message whose properties never fit in the bytes that are checked. */
static bool is_too_long(const struct hw_packet_check *c)
{
	return c->topic_at > 0 && c->properties_end > LONGEST;
}

/* `bytes`: HW_RECEIVE_PEEK bytes, at the start of the packet. */
static enum hw_guard_answer discard(struct hw_guard *g, int fd, const uint8_t *bytes, const struct hw_packet_check *c)
{
	struct hw_too_long *l = &g->too_long;
	*l = (struct hw_too_long){.retained = bytes[0] & 1, .size = c->size, .left = c->size, .id = (unsigned)c->id};
	bool cut = c->topic_len > HW_TOO_LONG_TOPIC;
	size_t n = cut ? HW_TOO_LONG_TOPIC : c->topic_len;
	while (cut && n > 0 && (bytes[c->topic_at + n] & 0xc0) == 0x80)
		n--; /* a character stays whole */
	snprintf(l->topic, sizeof(l->topic), "%.*s%s", (int)n, (const char *)bytes + c->topic_at, cut ? "..." : "");
	end_wait(g, fd);
	return HW_GUARD_TOO_LONG;
}

/* Checks a packet that is too long to be inspected at once. Sets `n` to the number of bytes that are here. */
static enum hw_packet_soundness check_long(struct hw_guard *g, int fd, struct hw_packet_check *c, ssize_t *n)
{
	uint8_t *bytes = malloc(LONGEST);
	*n = bytes ? recv(fd, bytes, LONGEST, MSG_PEEK | MSG_DONTWAIT) : -1;
	enum hw_packet_soundness s = *n > 0 ? check_all(g, bytes, (size_t)*n, c) : HW_PACKET_UNSOUND;
	free(bytes);
	return s;
}

enum hw_guard_answer hw_guard_check(struct hw_guard *g, int fd, struct hw_why *why)
{
	struct hw_packet_check c;
	uint8_t bytes[HW_RECEIVE_PEEK];
	if (g->midway || g->sound > 0)
		return HW_GUARD_PASS;
	ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return HW_GUARD_WAIT;
	if (n <= 0)
		return HW_GUARD_PASS; /* the library finds the same fault, and reports it */
	enum hw_packet_soundness s = check_all(g, bytes, (size_t)n, &c);
	bool is_long = s == HW_PACKET_CUT && n == sizeof(bytes);
	if (is_long && c.need > sizeof(bytes) && c.need <= LONGEST && !is_too_long(&c))
		s = check_long(g, fd, &c, &n);
	if (s == HW_PACKET_UNSOUND)
		return stop(&c, why);
	if (s == HW_PACKET_CUT && is_long && is_too_long(&c))
		return discard(g, fd, bytes, &c);
	if (s == HW_PACKET_CUT && c.need > LONGEST)
		return stop_long(&c, why);
	if (s == HW_PACKET_CUT)
		return wait_for(g, fd, (size_t)n, c.need);
	end_wait(g, fd);
	g->midway = g->sound == 0;
	return HW_GUARD_PASS;
}

void hw_guard_has_read(struct hw_guard *g, bool progress)
{
	if (progress)
		g->midway = false;
	g->sound -= g->sound > 0;
}

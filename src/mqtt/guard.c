/* SPDX-License-Identifier: MIT */
/* See guard.h. Cost: a system call and a copy for up to HW_RECEIVE_PEEK bytes of packets. */
#include "mqtt/guard.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "mqtt/properties.h"
#include "mqtt/receive.h"

#define LONGEST (1 << 18) /* most bytes of a packet that are checked; its topic and properties never need as many */

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

/* Checks a packet that is too long to be inspected at once. */
static enum hw_packet_soundness check_long(struct hw_guard *g, int fd, struct hw_packet_check *c)
{
	uint8_t *bytes = c->need > LONGEST ? NULL : malloc(LONGEST);
	ssize_t n = bytes ? recv(fd, bytes, LONGEST, MSG_PEEK | MSG_DONTWAIT) : -1;
	enum hw_packet_soundness s = n > 0 ? check_all(g, bytes, (size_t)n, c) : HW_PACKET_UNSOUND;
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
	if (s == HW_PACKET_CUT && c.need > sizeof(bytes) && n == sizeof(bytes))
		s = check_long(g, fd, &c);
	if (s == HW_PACKET_UNSOUND || (s == HW_PACKET_CUT && c.need > LONGEST))
		return stop(&c, why);
	if (s == HW_PACKET_CUT)
		return wait_for(g, fd, (size_t)n, c.need);
	if (g->awaits)
		hw_receive_await(fd, 1);
	g->awaits = false;
	g->midway = g->sound == 0;
	return HW_GUARD_PASS;
}

void hw_guard_has_read(struct hw_guard *g, bool progress)
{
	if (progress)
		g->midway = false;
	g->sound -= g->sound > 0;
}

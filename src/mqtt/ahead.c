/* SPDX-License-Identifier: MIT */
/*
 * See ahead.h.
 *
 * Invariant: the socket stands at the beginning of a packet, unless the library is midway through one. `take` is called
 * in the order of the stream, and what it took is thrown away before anything else is read.
 *
 * Cost: two system calls for up to LOOK bytes of packets, each byte copied once. Not for more at once: a broker writes
 * packet by packet, the kernel keeps them so, and to look at the next one it walks past all before it, so that a look
 * is quadratic in them. Measured behind mosquitto with packets of 36 bytes: 64 KiB cost the thread 1.1 us a message.
 */
#include "mqtt/ahead.h"

#include <errno.h>
#include <mosquitto.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "mqtt/packet.h"
#include "mqtt/receive.h"

#define LOOK    4096 /* bytes that are looked at together */
#define PACKETS 32   /* about as many heartbeats are in there */
#define LONGEST 2048 /* a longer packet is left to the library */

struct hw_ahead {
	bool midway;    /* the library has begun a packet, and not ended it */
	size_t awaited; /* bytes that the socket must hold before it is readable */
	unsigned char seen[LOOK];
};

static bool library_reads_no_further(void)
{
	int major, minor, revision;
	mosquitto_lib_version(&major, &minor, &revision);
	return major < 2 || (major == 2 && minor == 0);
}

void hw_ahead_begin(struct hw_link *l)
{
	if (!l->ahead && l->take && l->conf.qos == 0 && !l->conf.tls_ca[0] && library_reads_no_further())
		l->ahead = malloc(sizeof(*l->ahead)); /* without memory the library does it all */
	if (l->ahead) {
		l->ahead->midway = false;
		l->ahead->awaited = 1;
	}
}

/*
 * Only part of a packet has come: the bytes that are there must not wake the thread again and again. Where no more can
 * come, the library is left to find that out.
 */
static void await(struct hw_link *l, size_t bytes)
{
	int fd = hw_link_socket(l);
	if (bytes > 1 && hw_receive_ended(fd))
		l->ahead->midway = true;
	else if (l->ahead->awaited != bytes)
		hw_receive_await(fd, l->ahead->awaited = bytes);
}

static enum hw_link_read read_midway(struct hw_link *l)
{
	uint64_t before = l->progress;
	enum hw_link_read got = hw_link_read_one(l);
	l->ahead->midway = l->progress == before;
	return got;
}

/* What the bytes that were looked at begin with. */
struct begin {
	size_t messages; /* bytes of those that were handed over */
	bool room;       /* there was room for all of them */
	enum hw_packet_kind kind;
	size_t next; /* size of what comes behind them */
};

static struct begin hand_over(struct hw_link *l, size_t n)
{
	struct begin b = {.room = true};
	struct hw_packet p;
	bool v5 = l->conf.protocol == 5;
	for (;;) {
		b.kind = hw_packet_look(l->ahead->seen + b.messages, n - b.messages, v5, &p);
		b.next = p.size;
		if (b.kind != HW_PACKET_MESSAGE)
			return b;
		b.room = l->take(l->owner, &p);
		if (!b.room)
			return b;
		b.messages += p.size;
	}
}

/* For a stream MSG_TRUNC throws bytes away without copying them: the buffer is not written to. */
static bool throw_away(struct hw_link *l, size_t bytes)
{
	if (bytes == 0 || recv(hw_link_socket(l), l->ahead->seen, bytes, MSG_TRUNC | MSG_DONTWAIT) == (ssize_t)bytes)
		return true;
	hw_link_lost(l, MOSQ_ERR_ERRNO, errno);
	return false;
}

static enum hw_link_read look(struct hw_link *l)
{
	ssize_t n = recv(hw_link_socket(l), l->ahead->seen, LOOK, MSG_PEEK | MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return HW_LINK_DRAINED;
	if (n <= 0)
		return hw_link_read_one(l); /* which finds out the same, and says why */
	struct begin b = hand_over(l, (size_t)n);
	if (!throw_away(l, b.messages))
		return HW_LINK_LOST;
	if (!b.room)
		return HW_LINK_NO_ROOM;
	size_t left = (size_t)n - b.messages;
	if (b.kind == HW_PACKET_OTHER)
		return hw_link_read_one(l);
	if (left > 0 && b.next > LONGEST)
		l->ahead->midway = true;
	else if (n < LOOK)
		await(l, left > 0 ? b.next : 1);
	return n == LOOK || l->ahead->midway ? HW_LINK_MORE : HW_LINK_DRAINED;
}

enum hw_link_read hw_ahead_read(struct hw_link *l, unsigned budget)
{
	for (unsigned done = 0; done < budget; done += PACKETS) {
		if (l->has_room && !l->has_room(l->owner))
			return HW_LINK_NO_ROOM;
		enum hw_link_read got = l->ahead->midway ? read_midway(l) : look(l);
		if (got != HW_LINK_MORE)
			return got;
	}
	return HW_LINK_MORE;
}

/* SPDX-License-Identifier: MIT */
/*
 * See ahead.h.
 *
 * Invariant: the socket stands at the beginning of a packet, unless the library is midway through one. `take` is called
 * in the order of the stream, and what it took is thrown away before anything else is read.
 *
 * Cost: two system calls for up to HW_RECEIVE_LOOK bytes of packets, each byte copied once. Not for more at once: a
 * broker writes packet by packet, the kernel keeps them so, and to look at the next one it walks past all before it, so
 * that a look is quadratic in them. Measured behind mosquitto with packets of 36 bytes: 64 KiB cost the thread 1.1 us a
 * message.
 */
#include "mqtt/ahead.h"

#include <errno.h>
#include <mosquitto.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "mqtt/receive.h"

#define PACKETS 32   /* about as many heartbeats are in there */
#define LONGEST 2048 /* a longer packet is left to the library */

struct hw_ahead {
	struct hw_link *link;
	bool (*take)(void *owner, const struct hw_packet *message);
	bool midway;    /* the library has begun a packet, and not ended it */
	size_t awaited; /* bytes that the socket must hold before it is readable */
	unsigned char seen[HW_RECEIVE_LOOK];
};

struct hw_ahead *hw_ahead_new(struct hw_link *l, bool (*take)(void *owner, const struct hw_packet *message))
{
	bool can = l->conf.qos == 0 && hw_link_is_bare(l);
	struct hw_ahead *a = can ? malloc(sizeof(*a)) : NULL;
	if (!a)
		return NULL;
	a->link = l;
	a->take = take;
	hw_ahead_begin(a);
	return a;
}

void hw_ahead_begin(struct hw_ahead *a)
{
	a->midway = false;
	a->awaited = 1;
}

/*
 * Only part of a packet has come: the bytes that are there must not wake the thread again and again. Where no more can
 * come, the library is left to find that out.
 */
static void await(struct hw_ahead *a, size_t bytes)
{
	int fd = hw_link_socket(a->link);
	if (bytes > 1 && hw_receive_ended(fd))
		a->midway = true;
	else if (a->awaited != bytes)
		hw_receive_await(fd, a->awaited = bytes);
}

static enum hw_link_read read_midway(struct hw_ahead *a)
{
	uint64_t before = a->link->progress;
	enum hw_link_read got = hw_link_read_one(a->link);
	a->midway = a->link->progress == before;
	return got;
}

/* What the bytes that were looked at begin with. */
struct begin {
	size_t messages; /* bytes of those that were handed over */
	bool room;       /* there was room for all of them */
	enum hw_packet_kind kind;
	size_t next; /* size of the packet after them; 1 if no byte of it is here */
};

static struct begin hand_over(struct hw_ahead *a, size_t n)
{
	struct begin b = {.room = true};
	struct hw_packet p;
	bool v5 = a->link->conf.protocol == 5;
	for (;;) {
		b.kind = hw_packet_look(a->seen + b.messages, n - b.messages, v5, &p);
		b.next = p.size;
		if (b.kind != HW_PACKET_MESSAGE)
			return b;
		b.room = a->take(a->link->owner, &p);
		if (!b.room)
			return b;
		b.messages += p.size;
	}
}

static bool throw_away(struct hw_ahead *a, size_t bytes)
{
	if (bytes == 0 || hw_receive_throw_away(hw_link_socket(a->link), bytes) == (ssize_t)bytes)
		return true;
	hw_link_lost(a->link, MOSQ_ERR_ERRNO, errno);
	return false;
}

static enum hw_link_read peek_socket(struct hw_ahead *a)
{
	ssize_t n = recv(hw_link_socket(a->link), a->seen, HW_RECEIVE_LOOK, MSG_PEEK | MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return HW_LINK_DRAINED;
	if (n <= 0)
		return hw_link_read_one(a->link); /* which finds out the same, and says why */
	struct begin b = hand_over(a, (size_t)n);
	if (!throw_away(a, b.messages))
		return HW_LINK_LOST;
	if (!b.room)
		return HW_LINK_NO_ROOM;
	bool is_other = b.kind == HW_PACKET_OTHER;
	if (is_other || b.next > LONGEST)
		await(a, 1); /* The library reads the next packet. A short packet may follow it. */
	if (is_other)
		return hw_link_read_one(a->link);
	if (b.next > LONGEST)
		a->midway = true;
	else if (n < HW_RECEIVE_LOOK)
		await(a, b.next);
	return n == HW_RECEIVE_LOOK || a->midway ? HW_LINK_MORE : HW_LINK_DRAINED;
}

enum hw_link_read hw_ahead_read(struct hw_ahead *a, unsigned budget)
{
	const struct hw_link *l = a->link;
	for (unsigned done = 0; done < budget; done += PACKETS) {
		if (l->has_room && !l->has_room(l->owner))
			return HW_LINK_NO_ROOM;
		enum hw_link_read got = a->midway ? read_midway(a) : peek_socket(a);
		if (got != HW_LINK_MORE)
			return got;
	}
	return HW_LINK_MORE;
}

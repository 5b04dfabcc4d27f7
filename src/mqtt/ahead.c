/* SPDX-License-Identifier: MIT */
/*
 * See ahead.h.
 *
 * Invariant: the next byte of the socket begins a packet, unless the library has read a part of one. `take` is called
 * in the order of the stream. Messages that `take` has accepted are discarded from the socket before anything else is
 * read.
 *
 * Cost: two system calls for up to HW_RECEIVE_PEEK bytes of packets; each byte is copied once. Peeking at more bytes
 * would be slower. A broker writes packet by packet, and the kernel keeps the packets separate. Each peek walks past
 * all packets that were seen before, so its cost grows with the square of its size. Measured with mosquitto, packets of
 * 36 bytes and peeks of 64 KiB: 1.1 us of the thread for each message.
 */
#include "mqtt/ahead.h"

#include <errno.h>
#include <mosquitto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "mqtt/receive.h"

#define PACKETS 32   /* about as many heartbeats fit in HW_RECEIVE_PEEK */
#define LONGEST 2048 /* a longer packet is left to the library */
/* After a packet for the library, a peek has only this many bytes: often more such packets follow. */
#define GLANCE 64

struct hw_ahead {
	struct hw_link *link;
	bool (*take)(void *owner, const struct hw_packet *message);
	bool midway;    /* the library has read only a part of a packet */
	size_t awaited; /* bytes that the socket must hold to be readable */
	size_t peek; /* bytes of the next peek; few while the broker sends packets for the library, such as SUBACKs */
	unsigned char seen[HW_RECEIVE_PEEK];
};

/* Why the library must read everything, or NULL. */
static const char *obstacle(const struct hw_mqtt_conf *conf)
{
	return conf->qos == 0 ? hw_link_layer(conf) : "[mqtt] qos is not 0";
}

void hw_reader_path(const struct hw_mqtt_conf *conf, char *text, size_t size)
{
	int major, minor, revision;
	mosquitto_lib_version(&major, &minor, &revision);
	const char *why = obstacle(conf);
	snprintf(text, size, "%s libmosquitto %d.%d.%d%s%s%s", why ? "read by" : "read from the socket, without", major,
	         minor, revision, why ? ", which takes more processor time (" : "", why ? why : "", why ? ")" : "");
}

struct hw_ahead *hw_ahead_new(struct hw_link *l, bool (*take)(void *owner, const struct hw_packet *message))
{
	struct hw_ahead *a = obstacle(&l->conf) ? NULL : malloc(sizeof(*a));
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
	a->peek = HW_RECEIVE_PEEK;
}

/*
 * Waits until `bytes` bytes are in the socket: called when only a part of a packet is there, so that the thread does
 * not wake up for this part again. If the stream has ended, the library is called to read the end.
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

/* The result of parsing the bytes. */
struct begin {
	size_t messages; /* bytes of the messages that were handed over */
	bool room;       /* there was room for all of them */
	enum hw_packet_kind kind;
	size_t next; /* size of the next packet; 1 if no byte of it is here */
};

static struct begin hand_over(struct hw_ahead *a, size_t n)
{
	struct begin b = {.room = true};
	struct hw_packet p;
	bool v5 = a->link->conf.protocol == 5;
	for (;;) {
		b.kind = hw_packet_peek(a->seen + b.messages, n - b.messages, v5, &p);
		b.next = p.size;
		if (b.kind != HW_PACKET_MESSAGE)
			return b;
		b.room = a->take(a->link->owner, &p);
		if (!b.room)
			return b;
		b.messages += p.size;
	}
}

static bool discard(struct hw_ahead *a, size_t bytes)
{
	if (bytes == 0 || hw_receive_discard(hw_link_socket(a->link), bytes) == (ssize_t)bytes)
		return true;
	hw_link_lost(a->link, MOSQ_ERR_ERRNO, errno);
	return false;
}

static enum hw_link_read peek_socket(struct hw_ahead *a)
{
	size_t most = a->peek;
	ssize_t n = recv(hw_link_socket(a->link), a->seen, most, MSG_PEEK | MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return HW_LINK_DRAINED;
	if (n <= 0)
		return hw_link_read_one(a->link); /* it gets the same error, and reports the reason */
	struct begin b = hand_over(a, (size_t)n);
	if (!discard(a, b.messages))
		return HW_LINK_LOST;
	if (!b.room)
		return HW_LINK_NO_ROOM;
	bool is_other = b.kind == HW_PACKET_OTHER;
	a->peek = is_other && b.messages == 0 ? GLANCE : HW_RECEIVE_PEEK;
	if (is_other || b.next > LONGEST)
		await(a, 1); /* Lets the library read the next packet. After that packet, a short one may follow. */
	if (is_other)
		return hw_link_read_one(a->link);
	if (b.next > LONGEST)
		a->midway = true;
	else if ((size_t)n < most)
		await(a, b.next);
	return (size_t)n == most || a->midway ? HW_LINK_MORE : HW_LINK_DRAINED;
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

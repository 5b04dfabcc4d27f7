/* SPDX-License-Identifier: MIT */
/* See acks.h. Cost: two system calls for all acknowledgements in the socket, up to about a thousand. */
#include "mqtt/acks.h"

#include <errno.h>
#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <sys/socket.h>

#include "mqtt/packet.h"
#include "mqtt/receive.h"

#define READS_A_TURN 16 /* reads of the socket per turn */

void hw_acks_begin(struct hw_acks *a)
{
	a->skip = 0;
	a->awaited = 1;
}

static enum hw_link_read lost(struct hw_acks *a, int rc)
{
	hw_link_lost(a->link, rc, 0);
	return HW_LINK_LOST;
}

static enum hw_link_read failed(struct hw_acks *a, int err)
{
	hw_link_failed(a->link, err);
	return HW_LINK_LOST;
}

/* Gives the connection up because a packet is so long that it would delay all acknowledgements after it. */
static enum hw_link_read too_long(struct hw_acks *a, size_t size)
{
	const struct hw_mqtt_conf *c = &a->link->conf;
	hw_why_set(&a->link->why,
	           "%s:%d began to send a packet of %zu bytes to '%s', which expects only short packets: connection "
	           "closed",
	           c->host, c->port, size, c->client_id);
	return HW_LINK_LOST;
}

/* Lets the library read one packet. The library's answer "more" is ignored, because it is about the library's own data.
 */
static enum hw_link_read leave_to_library(struct hw_acks *a)
{
	return hw_link_read_one(a->link) == HW_LINK_LOST ? HW_LINK_LOST : HW_LINK_MORE;
}

static enum hw_link_read skip(struct hw_acks *a)
{
	ssize_t n = hw_receive_discard(hw_link_socket(a->link), a->skip);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? HW_LINK_DRAINED : failed(a, errno);
	if (n == 0)
		return leave_to_library(a); /* at the end of the stream, the library reads the end and reports the
		                             * reason */
	a->skip -= (size_t)n;
	return HW_LINK_MORE;
}

/* Makes the thread wait for the rest of a packet. `seen` of its `size` bytes are in the socket. The packet is
 * incomplete, or too long to be inspected at once. */
static enum hw_link_read wait_for_rest(struct hw_acks *a, bool is_ack, size_t seen, size_t size)
{
	int fd = hw_link_socket(a->link);
	if (size > HW_PACKET_ACK_MOST)
		return too_long(a, size);
	bool ended = hw_receive_ended(fd);
	size_t waiting = hw_receive_waiting(fd);
	if (!is_ack && waiting >= size)
		return leave_to_library(a);
	if (waiting > seen && seen < HW_RECEIVE_PEEK)
		return HW_LINK_MORE; /* the rest has come meanwhile */
	if (ended)
		return lost(a, MOSQ_ERR_CONN_LOST);
	a->awaited = size;
	return HW_LINK_DRAINED;
}

static bool is_message(unsigned char head)
{
	return (head & 0xf0) == CMD_PUBLISH;
}

static enum hw_link_read peek(struct hw_acks *a)
{
	ssize_t got = recv(hw_link_socket(a->link), a->seen, HW_RECEIVE_PEEK, MSG_PEEK | MSG_DONTWAIT);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? HW_LINK_DRAINED : failed(a, errno);
	if (got == 0)
		return leave_to_library(a); /* at the end of the stream, the library reads the end and reports the
		                             * reason */
	size_t n = (size_t)got, done = 0;
	bool v5 = a->link->conf.protocol == 5;
	struct hw_packet_ack p;
	enum hw_packet_ack_kind kind = HW_PACKET_ACK_PART;
	while (done < n && (kind = hw_packet_peek_ack(a->seen + done, n - done, v5, &p)) == HW_PACKET_ACK) {
		a->take(a->link->owner, p.id, p.reason);
		done += p.size;
	}
	if (done > 0) {
		ssize_t discarded = hw_receive_discard(hw_link_socket(a->link), done < n ? done : n);
		if (discarded < 0)
			return failed(a, errno);
		a->skip = done - (size_t)discarded; /* bytes of the last packet that have not come yet */
		return done == n && n < HW_RECEIVE_PEEK ? HW_LINK_DRAINED : HW_LINK_MORE;
	}
	if (kind == HW_PACKET_NO_ACK && p.size > HW_PACKET_ACK_MOST)
		return too_long(a, p.size);
	if (kind == HW_PACKET_NO_ACK && p.size > 0 && is_message(a->seen[0])) {
		a->skip = p.size;
		return HW_LINK_MORE;
	}
	if (kind == HW_PACKET_NO_ACK && p.size <= n)
		return leave_to_library(a);
	return wait_for_rest(a, kind != HW_PACKET_NO_ACK, n, p.size);
}

enum hw_link_read hw_acks_read(struct hw_acks *a)
{
	a->awaited = 1;
	for (int i = 0; i < READS_A_TURN; i++) {
		enum hw_link_read got = a->skip > 0 ? skip(a) : peek(a);
		if (got != HW_LINK_MORE)
			return got;
	}
	return HW_LINK_MORE;
}

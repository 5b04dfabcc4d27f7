/* SPDX-License-Identifier: MIT */
/* See port_protocol.h. */
#include "mqtt/port_protocol.h"

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define PATIENCE_MS 500 /* for the connect, and for the answer */

/* RFC 5246, 7.4.1.2: a ClientHello of TLS 1.2 without extensions. A server answers with a ServerHello or an alert. */
static const unsigned char
	hello[] = {0x16, 0x03, 0x01, 0,    53,         /* a handshake record */
                   0x01, 0,    0,    49,   0x03, 0x03, /* ClientHello, TLS 1.2 */
                   1,    2,    3,    4,    5,    6,    7,    8,    9,    10,   11,   12,
                   13,   14,   15,   16, /* random; no key is derived from it */
                   1,    2,    3,    4,    5,    6,    7,    8,    9,    10,   11,   12,
                   13,   14,   15,   16,   0,                                              /* no session */
                   0,    10,   0xc0, 0x2f, 0xc0, 0x30, 0xc0, 0x2b, 0xc0, 0x2c, 0x00, 0x2f, /* suites */
                   1,    0};                                                               /* no compression */

/* MQTT 3.1.1, 3.1: clean session, keepalive 5 s, no client id. A server answers with a CONNACK. */
static const unsigned char connect_packet[] = {0x10, 12, 0, 4, 'M', 'Q', 'T', 'T', 4, 2, 0, 5, 0, 0};

static int open_to(const char *host, int port)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	const struct timeval patience = {0, PATIENCE_MS * 1000};
	struct addrinfo *found = NULL;
	char service[16];
	snprintf(service, sizeof(service), "%d", port);
	if (getaddrinfo(host, service, &hints, &found) != 0)
		return -1;
	int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) != 0 ||
	                setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) != 0 ||
	                connect(fd, found->ai_addr, found->ai_addrlen) != 0)) {
		close(fd);
		fd = -1;
	}
	freeaddrinfo(found);
	return fd;
}

enum hw_port_protocol hw_port_protocol_try(const char *host, int port, enum hw_port_protocol try)
{
	bool tls = try == HW_PORT_TLS, is = false;
	const unsigned char *request = tls ? hello : connect_packet;
	size_t len = tls ? sizeof(hello) : sizeof(connect_packet);
	unsigned char answer[4];
	int fd = open_to(host, port);
	if (fd < 0)
		return HW_PORT_UNKNOWN;
	if (send(fd, request, len, MSG_NOSIGNAL) == (ssize_t)len &&
	    recv(fd, answer, sizeof(answer), MSG_WAITALL) == (ssize_t)sizeof(answer))
		is = tls ? (answer[0] == 0x15 || answer[0] == 0x16) && answer[1] == 0x03
		         : answer[0] == 0x20 && answer[1] == 2;
	close(fd);
	return is ?
	try : HW_PORT_UNKNOWN
		;
}

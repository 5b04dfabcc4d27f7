/* SPDX-License-Identifier: MIT */
/*
 * The receive buffer of a socket. If the reader is delayed, the buffer holds the heartbeats, so that the broker does
 * not drop them.
 */
#include "mqtt/receive.h"

#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define WANTED_BYTES (8 << 20)

static size_t granted(int fd)
{
	int bytes = 0;
	socklen_t len = sizeof(bytes);
	return getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &len) || bytes < 0 ? 0 : (size_t)bytes;
}

/*
 * Makes the receive buffer large. The library has no hook before connect(), so this is called directly after connect(),
 * before the first SUBSCRIBE. Older kernels keep the window that was chosen at connect() unless TCP_WINDOW_CLAMP is set
 * too. Without CAP_NET_ADMIN, the limit is net.core.rmem_max.
 */
void hw_receive_widen(int fd)
{
	int bytes = WANTED_BYTES;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	int clamp = (int)(granted(fd) / 2);
	setsockopt(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, &clamp, sizeof(clamp));
}

size_t hw_receive_waiting(int fd)
{
	int n = 0;
	return ioctl(fd, FIONREAD, &n) || n < 0 ? 0 : (size_t)n;
}

/*
 * Returns how full the buffer is, in percent. The kernel stops receiving when the packets use as much memory as
 * getsockopt() reports for the buffer. (This is twice the size that was set, because packets have overhead.) SO_MEMINFO
 * reports the used memory and the limit.
 *
 * Without SO_MEMINFO only the number of payload bytes is known. Over loopback, small messages can fill 99 % of the
 * size; packets from a real network may fill the buffer with half as many bytes. So half of the size counts as full.
 * The warning may then come too early, but not too late.
 */
unsigned hw_receive_percent(int fd, size_t waiting)
{
	uint32_t info[SK_MEMINFO_VARS] = {0};
	socklen_t len = sizeof(info);
	uint64_t used = waiting, size;
	if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &len) == 0 && info[SK_MEMINFO_RCVBUF] > 0) {
		used = info[SK_MEMINFO_RMEM_ALLOC];
		size = info[SK_MEMINFO_RCVBUF];
	} else {
		size = granted(fd) / 2;
	}
	return size ? (unsigned)(used * 100 / size) : 0;
}

void hw_receive_await(int fd, size_t bytes)
{
	int low = (int)bytes;
	setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &low, sizeof(low));
}

bool hw_receive_ended(int fd)
{
	struct pollfd p = {fd, POLLRDHUP, 0};
	return poll(&p, 1, 0) > 0;
}

/*
 * Acknowledges at once what was read. A broker without TCP_NODELAY (mosquitto's default) holds a small packet back
 * until TCP has acknowledged the packets before it. Usually the kernel acknowledges at each read. But of two segments
 * of equal size, the kernel takes the second for a full segment, and acknowledges only after 40 ms. The kernel forgets
 * this option, so it is set after each read.
 */
void hw_receive_acknowledge(int fd)
{
	int on = 1;
	setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
}

/* Discards bytes. With MSG_TRUNC, TCP discards them without copying them, so `buf` stays unused. */
ssize_t hw_receive_discard(int fd, size_t bytes)
{
	unsigned char unused[HW_RECEIVE_PEEK];
	return recv(fd, unused, bytes < sizeof(unused) ? bytes : sizeof(unused), MSG_TRUNC | MSG_DONTWAIT);
}

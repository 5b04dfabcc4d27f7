/* SPDX-License-Identifier: MIT */
/*
 * The receive buffer. It is what stands between a moment's delay here and the broker dropping heartbeats there.
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
 * The MQTT library has no hook before connect(), so this comes right after it, before the first SUBSCRIBE. Older
 * kernels keep the window that they chose at connect() unless the clamp is moved as well. Without CAP_NET_ADMIN
 * net.core.rmem_max is the bound.
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
 * When the kernel closes the window it compares the memory that the packets occupy with the size that getsockopt()
 * tells, which is twice what was set, just because of that overhead. SO_MEMINFO has both. Bytes of payload say less:
 * measured with small messages over loopback they reach 99 % of that size; packets from a real network may fill it at
 * half. So half of it is the measure where SO_MEMINFO is missing: early rather than never.
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

/* For a stream MSG_TRUNC throws bytes away without copying them: the buffer is not written to. */
ssize_t hw_receive_throw_away(int fd, size_t bytes)
{
	unsigned char unused[HW_RECEIVE_LOOK];
	return recv(fd, unused, bytes < sizeof(unused) ? bytes : sizeof(unused), MSG_TRUNC | MSG_DONTWAIT);
}

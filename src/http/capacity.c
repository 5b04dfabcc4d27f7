/* SPDX-License-Identifier: MIT */
/* See capacity.h. The kernel knows how long ago data was last sent on each connection, so this code keeps no list of
 * connections. */
#include "http/capacity.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* The descriptor limit, clamped to an int. */
static int limit(void)
{
	struct rlimit l;
	if (getrlimit(RLIMIT_NOFILE, &l) != 0 || l.rlim_cur > 1 << 30)
		return 1 << 30;
	return (int)l.rlim_cur;
}

bool hw_capacity_is_full(bool reserve)
{
	int most = limit(), kept = most / 4 < HW_CAPACITY_RESERVE ? most / 4 : HW_CAPACITY_RESERVE;
	int next = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); /* takes the descriptor that accept() would take */
	if (next < 0)
		return true;
	close(next);
	return reserve && next >= most - kept;
}

struct idle {
	int fd;
	unsigned ms;
};

/* Sets how long ago the last data was sent on the connection; if none was sent yet, how old the connection is.
 * Returns false if the descriptor is no connection of this port. */
static bool read_idle(int fd, in_port_t port, struct idle *out)
{
	struct sockaddr_storage sa = {0};
	struct tcp_info info = {0};
	socklen_t len = sizeof(sa), n = sizeof(info);
	if (getsockname(fd, (struct sockaddr *)&sa, &len) != 0 ||
	    (sa.ss_family != AF_INET && sa.ss_family != AF_INET6) ||
	    ((const struct sockaddr_in *)&sa)->sin_port != port)
		return false;
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n) != 0 || info.tcpi_state != 1 /* established */)
		return false;
	*out = (struct idle){fd, info.tcpi_last_data_sent};
	return true;
}

/* Keeps the connections that were sent no data for the longest time, sorted, the longest first. */
static void keep(struct idle *list, size_t *n, struct idle one)
{
	size_t at = *n;
	if (one.ms < HW_CAPACITY_IDLE_MS)
		return;
	while (at > 0 && list[at - 1].ms < one.ms) {
		if (at < HW_CAPACITY_CLOSE)
			list[at] = list[at - 1];
		at--;
	}
	if (at < HW_CAPACITY_CLOSE)
		list[at] = one;
	if (*n < HW_CAPACITY_CLOSE)
		++*n;
}

unsigned hw_capacity_make_room(int fd)
{
	struct sockaddr_storage sa = {0};
	socklen_t len = sizeof(sa);
	struct idle list[HW_CAPACITY_CLOSE], one;
	size_t n = 0;
	int end = dup(fd), most = end < 0 ? limit() : end;
	if (end >= 0)
		close(end);
	if (getsockname(fd, (struct sockaddr *)&sa, &len) != 0)
		return 0;
	for (int k = 0; k < most; k++)
		if (k != fd && read_idle(k, ((const struct sockaddr_in *)&sa)->sin_port, &one))
			keep(list, &n, one);
	for (size_t i = 0; i < n; i++)
		shutdown(list[i].fd, SHUT_RDWR);
	return (unsigned)n;
}

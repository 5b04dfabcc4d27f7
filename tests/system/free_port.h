/* SPDX-License-Identifier: MIT */
/*
 * A port of 127.0.0.1 for a server that a test starts. It lies below the ports that the kernel gives to outgoing
 * connections: such a connection would keep the server from its port now and then.
 */
#ifndef HW_TESTS_FREE_PORT_H
#define HW_TESTS_FREE_PORT_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

/* The tests take ports from here on. tests/system/hw_process.py has the same two numbers. */
#define FREE_PORT_FIRST 10240
#define FREE_PORT_COUNT 9760

static inline bool port_is_free(int port)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool is_free = fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
	if (fd >= 0)
		close(fd);
	return is_free;
}

/* Processes begin at different numbers, so that two tests seldom try the same port at the same time. */
static inline int free_port(void)
{
	static int taken;
	for (int i = 0; i < FREE_PORT_COUNT; i++) {
		int port = FREE_PORT_FIRST + (getpid() * 37 + taken++) % FREE_PORT_COUNT;
		if (port_is_free(port))
			return port;
	}
	return 0;
}

#endif

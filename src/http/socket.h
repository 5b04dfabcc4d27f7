/* SPDX-License-Identifier: MIT */
/* The listening sockets of the control API. The mode of the unix socket is never wider than configured, not even while
 * the socket is created. */
#ifndef HW_HTTP_SOCKET_H
#define HW_HTTP_SOCKET_H

#include <stdbool.h>
#include <sys/types.h>

/* A listening socket and its file. The file is removed only if the path still names the file that bind() has
 * created. */
struct hw_socket {
	int fd;
	char *path; /* owned */
	dev_t dev;
	ino_t ino;
};

/* Finds a group by name or number. Returns 0 or -EINVAL. */
int hw_socket_group(const char *name, gid_t *gid);
/*
 * Listens on `path` with mode 0660, and with the group `group` (name or number) unless that is "". Replaces a socket
 * file on which no process answers. Returns 0; -EADDRINUSE if a process answers; -ENAMETOOLONG; -ENOTSOCK if the path
 * is another kind of file; -EINVAL for an unknown group; or -errno.
 */
int hw_socket_listen(struct hw_socket *s, const char *path, const char *group);
/* Listens on "ADDRESS:PORT", with an IPv6 address in brackets. *local: whether the address is loopback. Returns the
 * descriptor, -EINVAL for a malformed address, or -errno. */
int hw_socket_listen_tcp(const char *address, bool *local);
/* Whether `address` is a loopback address. */
bool hw_socket_is_local(const char *address);
/* Whether a listening socket accepts connections to all addresses of the machine. */
bool hw_socket_is_any(int fd);
/* Closes the socket and removes its file. With fd -1, another owner has the socket, and nothing happens to it. */
void hw_socket_fini(struct hw_socket *s);

/* Like strerror(), for an error of hw_socket_listen(). */
const char *hw_socket_error(int error);

#endif

/* SPDX-License-Identifier: MIT */
/* The sockets that the control API listens on. The unix socket is made without a moment in which it is wider open than
 * meant. */
#ifndef HW_HTTP_SOCKET_H
#define HW_HTTP_SOCKET_H

#include <stdbool.h>
#include <sys/types.h>

/* A listening socket, and the file by which it is known: removed only if it is still ours. */
struct hw_socket {
	int fd;
	char *path; /* owned */
	dev_t dev;
	ino_t ino;
};

/* The group of that name or number: 0, or -EINVAL for one that is unknown. */
int hw_socket_group(const char *name, gid_t *gid);
/*
 * Listens on `path`: mode 0660, owned by the group of that name or number unless "". A socket file that nobody answers
 * on is replaced. 0; -EADDRINUSE if somebody answers; -ENAMETOOLONG; -ENOTSOCK if something else is in its place;
 * -EINVAL for an unknown group; or -errno.
 */
int hw_socket_listen(struct hw_socket *s, const char *path, const char *group);
/* Listens on "ADDRESS:PORT"; an IPv6 address stands in brackets. `*local`: a loopback address. The descriptor, -EINVAL
 * if it is no such text, or -errno. */
int hw_socket_listen_tcp(const char *address, bool *local);
/* Whether it is a loopback address. */
bool hw_socket_is_local(const char *address);
/* Whether a listening socket takes connections to every address of the machine. */
bool hw_socket_is_any(int fd);
/* Closes it (unless fd is -1: given away) and removes its file. */
void hw_socket_fini(struct hw_socket *s);

/* As strerror(), for an error of hw_socket_listen(). */
const char *hw_socket_error(int error);

#endif

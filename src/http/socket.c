/* SPDX-License-Identifier: MIT */
/*
 * The listening sockets. Invariant: from bind() on, the file mode of the unix socket is never wider than its final
 * mode. On Linux the socket file gets the mode of the socket, so fchmod() before bind() acts like a umask. The real
 * umask is shared by all threads.
 */
#include "http/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/util.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "conf/file.h"
#include "conf/parent.h"

#define BACKLOG 128

int hw_socket_group(const char *name, gid_t *gid)
{
	char *end;
	struct group *found = getgrnam(name);
	if (found) {
		*gid = found->gr_gid;
		return 0;
	}
	unsigned long number = strtoul(name, &end, 10);
	if (*name < '0' || *name > '9' || *end != '\0' || number >= (gid_t)-1)
		return -EINVAL;
	*gid = (gid_t)number;
	return 0;
}

static int open_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

/* Removes a socket file on which no process answers. Returns an error for any other file. */
static int clear_stale(const struct sockaddr_un *sa)
{
	struct stat st;
	if (lstat(sa->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -ENOTSOCK;
	int fd = open_socket();
	if (fd < 0)
		return fd;
	int rc = connect(fd, (const struct sockaddr *)sa, sizeof(*sa)) < 0 ? errno : 0;
	close(fd);
	/* With EAGAIN, a process listens on the socket, but its queue is full. With EPROTOTYPE, the socket is of
	 * another type. */
	if (rc == 0 || rc == EAGAIN || rc == EPROTOTYPE)
		return -EADDRINUSE;
	if (rc != ECONNREFUSED)
		return rc == ENOENT ? 0 : -rc;
	return unlink(sa->sun_path) < 0 && errno != ENOENT ? -errno : 0;
}

/* Sets the group and mode of the socket's file. `fd`: that file (O_PATH). Its mode can only be changed through
 * /proc. */
static int set_owner(int fd, const char *group)
{
	char path[32];
	if (*group) {
		gid_t gid;
		int rc = hw_socket_group(group, &gid);
		if (rc < 0)
			return rc;
		if (fchownat(fd, "", (uid_t)-1, gid, AT_EMPTY_PATH) < 0)
			return -errno;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return chmod(path, 0660) < 0 ? -errno : 0;
}

/* Opens the socket's directory. If root binds the socket, no other user can redirect the path. */
static int open_parent(const char *path, const char **name)
{
	char dir[sizeof(((struct sockaddr_un *)0)->sun_path) + 1];
	if (geteuid() == 0)
		return hw_parent_open(path, name);
	const char *slash = strrchr(path, '/');
	*name = slash ? slash + 1 : path;
	snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
	int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Checks the file that bind() has created. The directory, or one above it, may belong to another user, who could have
 * replaced the file by a link. */
static int adopt(struct hw_socket *s, int dir, const char *name, const char *group)
{
	struct stat st;
	int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int rc = fstat(fd, &st) < 0 ? -errno : 0;
	if (rc == 0 && (!S_ISSOCK(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1))
		rc = -EPERM;
	if (rc == 0) {
		s->dev = st.st_dev;
		s->ino = st.st_ino;
		rc = set_owner(fd, group);
	}
	close(fd);
	return rc;
}

int hw_socket_listen(struct hw_socket *s, const char *path, const char *group)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	*s = (struct hw_socket){.fd = -1};
	if (strlen(path) >= sizeof(sa.sun_path))
		return -ENAMETOOLONG;
	memcpy(sa.sun_path, path, strlen(path) + 1);
	const char *name;
	int dir = open_parent(path, &name);
	if (dir < 0)
		return dir;
	int rc = clear_stale(&sa);
	if (rc == 0)
		rc = open_socket();
	if (rc < 0)
		goto out;
	s->fd = rc;
	rc = -ENOMEM;
	char *copy = strdup(path);
	if (!copy)
		goto out;
	if (fchmod(s->fd, 0600) < 0 || bind(s->fd, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
		rc = -errno;
		free(copy);
		goto out;
	}
	s->path = copy;
	rc = adopt(s, dir, name, group);
	if (rc == 0 && listen(s->fd, BACKLOG) < 0)
		rc = -errno;
out:
	if (rc < 0)
		hw_socket_fini(s);
	close(dir);
	return rc;
}

static bool is_local(const struct sockaddr_storage *sa)
{
	if (sa->ss_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)sa)->sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)sa)->sin6_addr);
}

static int parse_tcp(const char *address, struct sockaddr_storage *sa, int *len)
{
	*len = sizeof(*sa);
	if (evutil_parse_sockaddr_port(address, (struct sockaddr *)sa, len) < 0 ||
	    ((const struct sockaddr_in *)(const void *)sa)->sin_port == 0)
		return -EINVAL;
	return 0;
}

bool hw_socket_is_local(const char *address)
{
	struct sockaddr_storage sa = {0};
	int len;
	return parse_tcp(address, &sa, &len) == 0 && is_local(&sa);
}

bool hw_socket_is_any(int fd)
{
	struct sockaddr_storage sa = {0};
	socklen_t len = sizeof(sa);
	if (getsockname(fd, (struct sockaddr *)&sa, &len) != 0)
		return false;
	if (sa.ss_family == AF_INET)
		return ((const struct sockaddr_in *)&sa)->sin_addr.s_addr == htonl(INADDR_ANY);
	return sa.ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)&sa)->sin6_addr);
}

int hw_socket_listen_tcp(const char *address, bool *local)
{
	struct sockaddr_storage sa = {0};
	int len, on = 1;
	if (parse_tcp(address, &sa, &len) < 0)
		return -EINVAL;
	*local = is_local(&sa);
	int fd = socket(sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
	    bind(fd, (const struct sockaddr *)&sa, (socklen_t)len) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	int rc = -errno;
	close(fd);
	return rc;
}

void hw_socket_fini(struct hw_socket *s)
{
	struct stat st;
	if (s->fd >= 0)
		close(s->fd);
	/* A successor may have put its own socket there. */
	if (s->path && lstat(s->path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino)
		unlink(s->path);
	free(s->path);
	*s = (struct hw_socket){.fd = -1};
}

const char *hw_socket_error(int error)
{
	return error == EADDRINUSE ? "another process answers on it"
	       : error == ENOTSOCK ? "a file that is not a socket has this path; remove it"
	                           : hw_file_error(error);
}

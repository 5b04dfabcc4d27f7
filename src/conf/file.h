/* SPDX-License-Identifier: MIT */
/*
 * Files that the configuration names, and at a reload the configuration. A FIFO would block open() and read(), and with
 * them the loop; a device may have no end, and a sparse file of gigabytes takes half a minute. Only regular files up to
 * HW_FILE_MAX are read.
 */
#ifndef HW_CONF_FILE_H
#define HW_CONF_FILE_H

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HW_FILE_MAX (16 << 20) /* bytes */

/* Opens a regular file for reading, and never blocks. Returns a descriptor, or -errno: -EISDIR for a directory,
 * -EMEDIUMTYPE for any other kind of file, -EFBIG for more than HW_FILE_MAX bytes. */
static inline int hw_file_open(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return errno == ENXIO ? -EMEDIUMTYPE : -errno; /* ENXIO: a socket */
	int rc = fstat(fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? 0 : S_ISDIR(st.st_mode) ? -EISDIR : -EMEDIUMTYPE;
	if (rc == 0 && st.st_size > HW_FILE_MAX)
		rc = -EFBIG;
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

/* For a library that opens the file by its path: 0 if hw_file_open() can open it, else -errno. */
static inline int hw_file_check(const char *path)
{
	int fd = hw_file_open(path);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* As strerror(), with texts of its own for EMEDIUMTYPE and EFBIG. */
static inline const char *hw_file_error(int error)
{
	if (error == EFBIG)
		return "it has more than 16 MiB";
	return error == EMEDIUMTYPE ? "it is no regular file" : strerror(error);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Opens the files that the configuration names and, at a reload, the configuration itself. Only regular files of at
 * most HW_FILE_MAX are read. A FIFO would block open() or read(), and so the loop. A device may have no end. Reading a
 * sparse file of gigabytes takes half a minute.
 */
#ifndef HW_CONF_FILE_H
#define HW_CONF_FILE_H

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HW_FILE_MAX (16 << 20) /* bytes */

/* Opens a regular file for reading, without blocking. Returns a descriptor or -errno: -EISDIR for a directory,
 * -EMEDIUMTYPE for another kind of file, -EFBIG for more than HW_FILE_MAX bytes. */
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

/* Returns 0 if hw_file_open() would succeed, else -errno. For a library that opens the file itself. */
static inline int hw_file_check(const char *path)
{
	int fd = hw_file_open(path);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* Like strerror(), but with texts of its own for EMEDIUMTYPE, EFBIG and ELOOP. */
static inline const char *hw_file_error(int error)
{
	if (error == EFBIG)
		return "it is larger than 16 MiB";
	if (error == ELOOP)
		return "the path holds a symbolic link that root must not follow, or too many links";
	return error == EMEDIUMTYPE ? "it is not a regular file" : strerror(error);
}

#endif

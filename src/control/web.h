/* SPDX-License-Identifier: MIT */
/* The dashboard's files, embedded by web/embed.sh. */
#ifndef HW_CONTROL_WEB_H
#define HW_CONTROL_WEB_H

#include <stddef.h>

struct hw_web_file {
	const char *name, *type;
	const char *etag; /* with its quotes; changes with the content */
	const unsigned char *bytes;
	size_t len;
};

extern const struct hw_web_file hw_web_files[];
extern const size_t hw_web_n_files;

#endif

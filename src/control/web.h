/* SPDX-License-Identifier: MIT */
/* The dashboard's files, as web/embed.sh put them into the program. */
#ifndef HW_CONTROL_WEB_H
#define HW_CONTROL_WEB_H

#include <stddef.h>

struct hw_web_file {
	const char *name, *type;
	const char *etag; /* with its quotes: another one for other bytes */
	const unsigned char *bytes;
	size_t len;
};

extern const struct hw_web_file hw_web_files[];
extern const size_t hw_web_n_files;

#endif

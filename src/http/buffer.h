/* SPDX-License-Identifier: MIT */
/* The content of an evbuffer as a string. */
#ifndef HW_HTTP_BUFFER_H
#define HW_HTTP_BUFFER_H

struct evbuffer;

/* Moves the content into a NUL-terminated string, which the caller frees with free(). Returns NULL without memory and
 * leaves the buffer unchanged. */
char *hw_buffer_text(struct evbuffer *b);

#endif

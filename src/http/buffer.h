/* SPDX-License-Identifier: MIT */
/* The content of an evbuffer as a string. */
#ifndef HW_HTTP_BUFFER_H
#define HW_HTTP_BUFFER_H

struct evbuffer;

/* Moves the content to a NUL-terminated string, which the caller frees with free(). If there is no memory, returns
 * NULL, with the buffer unchanged. */
char *hw_buffer_text(struct evbuffer *b);

#endif

/* SPDX-License-Identifier: MIT */
/* What a buffer of libevent's holds, as a string. */
#ifndef HW_HTTP_BUFFER_H
#define HW_HTTP_BUFFER_H

struct evbuffer;

/* Takes out all that is in it, whose end is marked by a NUL. Freed with free(); NULL without memory, and the buffer is
 * as before. */
char *hw_buffer_text(struct evbuffer *b);

#endif

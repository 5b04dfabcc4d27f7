/* SPDX-License-Identifier: MIT */
/* See buffer.h. */
#include "http/buffer.h"

#include <event2/buffer.h>
#include <stdlib.h>

char *hw_buffer_text(struct evbuffer *b)
{
	size_t len = evbuffer_get_length(b);
	char *text = malloc(len + 1);
	if (!text)
		return NULL;
	evbuffer_remove(b, text, len);
	text[len] = '\0';
	return text;
}

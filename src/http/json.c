/* SPDX-License-Identifier: MIT */
/* See json.h. Cost: one copy into `room`, and one evbuffer_add() for each 4 KiB. */
#include "http/json.h"

#include <errno.h>
#include <event2/buffer.h>

/* Moves all to the evbuffer. */
static bool flush(struct hw_json *j)
{
	bool done = j->n == 0 || evbuffer_add(j->out, j->buf, j->n) == 0;
	if (!done)
		j->lost += j->n;
	j->n = 0;
	return done;
}

void hw_json_begin(struct hw_json *j, struct evbuffer *out)
{
	hw_json_begin_text(j, j->room, sizeof(j->room));
	j->out = out;
	j->more = flush;
}

void hw_json_append(struct hw_json *j, struct evbuffer *elements)
{
	hw_json_begin(j, elements);
	j->fresh = evbuffer_get_length(elements) == 0;
}

int hw_json_end(struct hw_json *j)
{
	flush(j);
	return j->lost ? -ENOMEM : 0;
}

void hw_json_array(struct hw_json *j, const char *key, struct evbuffer *elements)
{
	hw_json_open_member(j, key, '[');
	flush(j);
	if (elements && evbuffer_add_buffer(j->out, elements) < 0)
		j->lost++;
	hw_json_close(j, ']');
}

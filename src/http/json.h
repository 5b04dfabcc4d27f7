/* SPDX-License-Identifier: MIT */
/* Writes JSON into an evbuffer. The text is gathered in the writer's `room` first, so that an answer with a thousand
 * devices needs few allocations. */
#ifndef HW_HTTP_JSON_H
#define HW_HTTP_JSON_H

#include "heartwheel/json_writer.h"

struct evbuffer;

/* Begins to append to `out`, which is borrowed. */
void hw_json_begin(struct hw_json *j, struct evbuffer *out);
/* Like hw_json_begin(), but for the elements of an array, without its brackets. hw_json_array() writes them into an
 * object later. */
void hw_json_append(struct hw_json *j, struct evbuffer *elements);
/* Writes all to the evbuffer; the writer may still be used. Returns 0, or -ENOMEM if anything was lost since
 * hw_json_begin(): then the text must not be sent. */
int hw_json_end(struct hw_json *j);

/* Writes an array, and takes its elements out of the evbuffer. NULL: an empty array. */
void hw_json_array(struct hw_json *j, const char *key, struct evbuffer *elements);

#endif

/* SPDX-License-Identifier: MIT */
/* See commands.h. */
#include "stream/commands.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static void put(struct hw_stream_command *c, const char *word)
{
	c->argv[c->argc] = word;
	c->len[c->argc++] = strlen(word);
}

static void put_number(struct hw_stream_command *c, size_t n)
{
	snprintf(c->count, sizeof(c->count), "%zu", n);
	put(c, c->count);
}

void hw_stream_range(struct hw_stream_command *c, const char *key, struct hw_stream_id after, size_t count)
{
	c->argc = 0;
	put(c, "XRANGE");
	put(c, key);
	put(c, hw_stream_id_print(after, c->ids[0]));
	put(c, "+");
	put(c, "COUNT");
	put_number(c, count + 1);
}

void hw_stream_range_newest(struct hw_stream_command *c, const char *key, size_t count)
{
	c->argc = 0;
	put(c, "XREVRANGE");
	put(c, key);
	put(c, "+");
	put(c, "-");
	put(c, "COUNT");
	put_number(c, count);
}

void hw_stream_wait(struct hw_stream_command *c, const char *const *keys, const struct hw_stream_id *after, int n)
{
	assert(n <= HW_STREAMS_WAITED);
	c->argc = 0;
	put(c, "XREAD");
	put(c, "COUNT");
	put(c, "1");
	put(c, "BLOCK");
	put_number(c, HW_STREAM_WAIT_MS);
	put(c, "STREAMS");
	for (int i = 0; i < n; i++)
		put(c, keys[i]);
	for (int i = 0; i < n; i++)
		put(c, hw_stream_id_print(after[i], c->ids[i]));
}

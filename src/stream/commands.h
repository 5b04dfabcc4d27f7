/* SPDX-License-Identifier: MIT */
/* The commands that read a stream, as arguments for hiredis. entries.h parses Redis' answers to them. */
#ifndef HW_STREAM_COMMANDS_H
#define HW_STREAM_COMMANDS_H

#include "stream/id.h"

#define HW_STREAM_WAIT_MS 1000 /* how long Redis waits for an entry; much less than HW_LINK_SILENCE_MS */
#define HW_STREAMS_WAITED 4    /* of one command, at most */

/* A command borrows the keys. It must not be copied, because its arguments point to texts inside it. */
struct hw_stream_command {
	int argc;
	const char *argv[6 + 2 * HW_STREAMS_WAITED];
	size_t len[6 + 2 * HW_STREAMS_WAITED];
	char count[24], ids[HW_STREAMS_WAITED][HW_STREAM_ID_TEXT];
};

/* Requests the entry at `after` and `count` entries after it. hw_stream_page_read() parses the answer. */
void hw_stream_range(struct hw_stream_command *c, const char *key, struct hw_stream_id after, size_t count);
/* Requests the newest entries, in reverse order. hw_stream_newest() parses an answer with one. */
void hw_stream_range_newest(struct hw_stream_command *c, const char *key, size_t count);
/* Waits for an entry of one of n streams, after the offset of each. Redis answers nothing else on this connection
 * until an entry comes or HW_STREAM_WAIT_MS are over. */
void hw_stream_wait(struct hw_stream_command *c, const char *const *keys, const struct hw_stream_id *after, int n);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Follows a stream from an offset: reports its entries in their order and without a gap. If a gap cannot be avoided,
 * reports the gap.
 *
 * Each page is requested together with the entry at the offset (XRANGE). If that entry is missing, the stream was
 * trimmed past the offset, was emptied, or was replaced by another one. The reader then requests the end of the stream,
 * and calls on_gap(), which decides where reading continues.
 *
 * At the end of the stream the reader waits in one of three ways:
 *
 * - poll_ms = 0: Redis delays the answer until there is an entry (XREAD). This only wakes the reader, which then
 *   requests a page: XREAD would not notice a stream that begins again with lower ids. XREAD blocks the connection, so
 *   this reader needs one of its own.
 * - poll_ms > 0: the reader requests a page every poll_ms. Others may use the connection too.
 * - HW_STREAM_BY_TICK: the reader requests a page at each hw_stream_reader_tick(), so it never wakes the process by
 *   itself.
 *
 * The caller never blocks.
 *
 * Cost: two commands for each page, or one without XREAD; two in a second while nothing arrives.
 */
#ifndef HW_STREAM_READER_H
#define HW_STREAM_READER_H

#include "link/link.h"
#include "stream/entries.h"

#define HW_STREAM_BY_TICK  (-1)
#define HW_STREAM_RETRY_MS 1000 /* how long to wait after an error, or after a page that was not accepted */

struct hw_stream_reader_conf {
	struct hw_redis_link *link; /* borrowed; its owner calls hw_stream_reader_up() and hw_stream_reader_down() */
	const char *key;            /* borrowed */
	size_t count;               /* entries per page */
	int poll_ms;
};

/* Each callback may call hw_stream_reader_from(), hw_stream_reader_recover() and hw_stream_reader_stop(). */
struct hw_stream_reader_ops {
	/* Called with the entries after the last page, and for each check at the end of the stream that finds no
	 * entries. Returns whether the entries are accepted; if not, they are reported again. */
	bool (*on_page)(void *arg, const struct hw_stream_page *page);
	/* Called when the entry at `offset` is no longer in the stream, or when hw_stream_reader_recover() was
	 * called. `end`: the id of the newest entry; {0, 0}: the stream is empty. Returns the offset after which to
	 * continue. */
	struct hw_stream_id (*on_gap)(void *arg, struct hw_stream_id offset, struct hw_stream_id end);
	/* Called when Redis refuses a command, which is repeated later. `reads`: the command reads entries, and does
	 * not only wait for them. */
	void (*on_refused)(void *arg, const char *error, bool reads);
};

/* Embed it; its members are private. */
struct hw_stream_reader {
	struct hw_stream_reader_conf conf;
	const struct hw_stream_reader_ops *ops;
	void *arg;
	struct event *timer;
	struct hw_stream_id offset;
	bool up, started;
	bool asking;    /* an answer is awaited, or a callback runs */
	bool moved;     /* the offset was set after the request in flight was sent, so its answer is ignored */
	bool in_gap;    /* the reader must find the end of the stream before it reads a page */
	bool unchecked; /* there need be no entry at the offset */
};

/* Returns 0 or -ENOMEM. */
int hw_stream_reader_init(struct hw_stream_reader *r, struct event_base *base, const struct hw_stream_reader_conf *conf,
                          const struct hw_stream_reader_ops *ops, void *arg);
/* Call it after the link has ended. */
void hw_stream_reader_fini(struct hw_stream_reader *r);

/* hw_stream_reader_up(): the connection is ready. hw_stream_reader_down(): the connection is lost; the offset is
 * kept. */
void hw_stream_reader_up(struct hw_stream_reader *r);
void hw_stream_reader_down(struct hw_stream_reader *r);

/* Starts to report the entries after this offset; {0, 0}: from the start. */
void hw_stream_reader_from(struct hw_stream_reader *r, struct hw_stream_id offset);
/* Starts with a gap: on_gap() names the offset. */
void hw_stream_reader_recover(struct hw_stream_reader *r);
void hw_stream_reader_stop(struct hw_stream_reader *r);
/* Called each second: continues to read if no timer is set. With HW_STREAM_BY_TICK, the caller may call it earlier,
 * to read new entries at once. */
void hw_stream_reader_tick(struct hw_stream_reader *r);

/* The offset up to which entries have been reported. */
struct hw_stream_id hw_stream_reader_offset(const struct hw_stream_reader *r);
bool hw_stream_reader_is_started(const struct hw_stream_reader *r);

#endif

/* SPDX-License-Identifier: MIT */
/* See reader.h. One command is in flight at a time. */
#include "stream/reader.h"

#include <errno.h>
#include <event2/event.h>

#include "stream/commands.h"

static void read_on(struct hw_stream_reader *r);

static void request(struct hw_stream_reader *r, redisCallbackFn *fn, struct hw_stream_command *c)
{
	r->moved = false;
	r->asking = hw_redis_link_command(r->conf.link, fn, r, c->argc, c->argv, c->len) == 0;
	if (!r->asking)
		hw_redis_link_fail(r->conf.link, "out of memory");
}

static void read_later(struct hw_stream_reader *r, int ms)
{
	struct timeval tv = {ms / 1000, ms % 1000 * 1000};
	(void)event_add(r->timer, &tv); /* if there is no memory, hw_stream_reader_tick() reads */
}

static void refused(struct hw_stream_reader *r, const redisReply *reply, bool reads)
{
	bool is_error = reply->type == REDIS_REPLY_ERROR;
	r->ops->on_refused(r->arg, is_error ? reply->str : "ERR the answer makes no sense", reads);
	read_later(r, HW_STREAM_RETRY_MS);
}

/* Returns the reply if it is a valid answer. Returns NULL if the connection is lost, or if the answer is an error or
 * belongs to an old offset. In the last two cases, reading continues. */
static const redisReply *answer_of(struct hw_stream_reader *r, const redisReply *reply, bool reads)
{
	r->asking = false;
	if (!reply)
		return NULL;
	hw_redis_link_got(r->conf.link);
	if (r->moved) {
		read_on(r);
		return NULL;
	}
	if (reply->type == REDIS_REPLY_ARRAY || (!reads && reply->type == REDIS_REPLY_NIL))
		return reply;
	refused(r, reply, reads);
	return NULL;
}

static void on_wake(redisAsyncContext *ac, void *answer, void *arg)
{
	(void)ac;
	if (answer_of(arg, answer, false))
		read_on(arg);
}

static void wait_for_more(struct hw_stream_reader *r)
{
	struct hw_stream_command c;
	if (!r->up) /* a callback has ended the link */
		return;
	if (r->conf.poll_ms > 0)
		read_later(r, r->conf.poll_ms);
	if (r->conf.poll_ms)
		return;
	hw_stream_wait(&c, &r->conf.key, &r->offset, 1);
	request(r, on_wake, &c);
}

static void on_end(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_stream_reader *r = arg;
	const redisReply *reply = answer_of(r, answer, true);
	(void)ac;
	if (!reply)
		return;
	struct hw_stream_id end = hw_stream_newest(reply), before = r->offset;
	r->in_gap = false;
	r->offset = end;
	r->asking = true; /* no request from within the callback */
	struct hw_stream_id to = r->ops->on_gap(r->arg, before, end);
	r->asking = false;
	if (!r->moved) {
		r->offset = to;
		r->unchecked = hw_stream_id_compare(to, end) != 0;
	}
	read_on(r);
}

static void find_end(struct hw_stream_reader *r)
{
	struct hw_stream_command c;
	r->in_gap = true;
	hw_stream_range_newest(&c, r->conf.key, 1);
	request(r, on_end, &c);
}

static void on_page(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_stream_reader *r = arg;
	struct hw_stream_page page;
	const redisReply *reply = answer_of(r, answer, true);
	(void)ac;
	if (!reply)
		return;
	if (!hw_stream_page_read(reply, r->offset, r->conf.count, &page)) {
		refused(r, reply, true);
		return;
	}
	if (page.gone && !r->unchecked) {
		find_end(r);
		return;
	}
	struct hw_stream_id before = r->offset;
	r->offset = page.last;
	r->asking = true; /* no request from within the callback */
	bool accepted = r->ops->on_page(r->arg, &page);
	r->asking = false;
	if (!accepted && !r->moved) {
		r->offset = before;
		read_later(r, HW_STREAM_RETRY_MS);
		return;
	}
	r->unchecked &= page.n == 0;
	if (page.more || r->moved)
		read_on(r);
	else
		wait_for_more(r);
}

static void read_on(struct hw_stream_reader *r)
{
	struct hw_stream_command c;
	if (!r->started || !r->up || r->asking)
		return;
	(void)event_del(r->timer);
	if (r->in_gap) {
		find_end(r);
		return;
	}
	hw_stream_range(&c, r->conf.key, r->offset, r->conf.count);
	request(r, on_page, &c);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	read_on(arg);
}

/* --- the interface ------------------------------------------------------------------------------------------------ */

static void start(struct hw_stream_reader *r, struct hw_stream_id offset, bool in_gap)
{
	r->offset = offset;
	r->in_gap = in_gap;
	r->started = r->moved = true;
	r->unchecked = false;
	read_on(r);
}

void hw_stream_reader_from(struct hw_stream_reader *r, struct hw_stream_id offset)
{
	start(r, offset, false);
}

void hw_stream_reader_recover(struct hw_stream_reader *r)
{
	start(r, r->offset, true);
}

void hw_stream_reader_stop(struct hw_stream_reader *r)
{
	r->started = false;
	r->moved = true;
	(void)event_del(r->timer);
}

void hw_stream_reader_tick(struct hw_stream_reader *r)
{
	if (!event_pending(r->timer, EV_TIMEOUT, NULL))
		read_on(r);
}

void hw_stream_reader_up(struct hw_stream_reader *r)
{
	r->up = true;
	read_on(r);
}

void hw_stream_reader_down(struct hw_stream_reader *r)
{
	r->up = r->asking = r->moved = false;
	(void)event_del(r->timer);
}

struct hw_stream_id hw_stream_reader_offset(const struct hw_stream_reader *r)
{
	return r->offset;
}

bool hw_stream_reader_is_started(const struct hw_stream_reader *r)
{
	return r->started;
}

int hw_stream_reader_init(struct hw_stream_reader *r, struct event_base *base, const struct hw_stream_reader_conf *conf,
                          const struct hw_stream_reader_ops *ops, void *arg)
{
	*r = (struct hw_stream_reader){
		.conf = *conf, .ops = ops, .arg = arg, .timer = event_new(base, -1, 0, on_timer, r)};
	return r->timer ? 0 : -ENOMEM;
}

void hw_stream_reader_fini(struct hw_stream_reader *r)
{
	if (r->timer)
		event_free(r->timer);
	r->timer = NULL;
}

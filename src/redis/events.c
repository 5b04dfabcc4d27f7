/* SPDX-License-Identifier: MIT */
/*
 * Reads the event stream, a page at a time.
 *
 * Commands and answers keep their order on the connection. So a transition that on_event() reports before a page
 * arrives is on this page or an earlier one. A transition that on_event() reports afterwards is on a later page.
 *
 * Cost: Redis finds an id in logarithmic time.
 */
#include <errno.h>
#include <stdlib.h>

#include "redis/inner.h"
#include "redis/page.h"
#include "stream/commands.h"

/* A request whose answer has not arrived. Freed when the answer arrives. */
struct asked {
	struct hw_redis *r;
	struct hw_page_asked what;
};

static void take_page(struct hw_redis *r, const struct asked *a, const redisReply *reply)
{
	struct hw_event events[HW_EVENTS_PAGE];
	struct hw_event_page page;
	hw_page_read(&a->what, reply, events, &page);
	r->ops->on_events(r->arg, &page);
}

static void on_page(redisAsyncContext *ac, void *answer, void *arg)
{
	struct asked a = *(struct asked *)arg;
	const redisReply *reply = answer;
	(void)ac;
	free(arg);
	if (!reply)
		return;
	hw_redis_link_got(&a.r->link);
	if (reply->type == REDIS_REPLY_ARRAY) {
		take_page(a.r, &a, reply);
		return;
	}
	if (reply->type == REDIS_REPLY_ERROR)
		hw_refusal_trouble(a.r, reply->str);
	a.r->ops->on_events(a.r->arg, &(struct hw_event_page){.ok = false});
}

static int ask(struct hw_redis *r, const struct hw_page_asked *what, struct hw_stream_command *c)
{
	if (!r->up)
		return -ENOTCONN;
	struct asked *a = malloc(sizeof(*a));
	if (!a)
		return -ENOMEM;
	*a = (struct asked){r, *what};
	a->what.now_ms = hw_clock_now().wall_ms;
	a->what.node = r->ops->owner ? NULL : r->conf.node_id; /* a cluster has one stream for all nodes */
	int rc = hw_redis_link_command(&r->link, on_page, a, c->argc, c->argv, c->len);
	if (rc != 0)
		free(a);
	return rc;
}

int hw_redis_events_after(struct hw_redis *r, struct hw_stream_id after)
{
	struct hw_stream_command c;
	hw_stream_range(&c, r->keys.events, after, HW_EVENTS_PAGE);
	return ask(r, &(struct hw_page_asked){.after = after}, &c);
}

int hw_redis_events_last(struct hw_redis *r)
{
	struct hw_stream_command c;
	hw_stream_range_newest(&c, r->keys.events, HW_EVENTS_PAGE);
	return ask(r, &(struct hw_page_asked){.last = true}, &c);
}

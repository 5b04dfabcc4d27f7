/* SPDX-License-Identifier: MIT */
/*
 * Reads the event stream, a page at a time. Commands and answers keep their order on the link: an edge whose place was
 * told before a page's answer is on that page or before it, one that is told later is behind it.
 *
 * Cost: Redis finds a place in the logarithm of the stream's length.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/inner.h"
#include "redis/page.h"

/* What an answer needs to be understood. One is in flight for each call; freed with its answer. */
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

static int ask(struct hw_redis *r, const struct hw_page_asked *what, const char *command, const char *from,
               const char *to)
{
	char count[16];
	snprintf(count, sizeof(count), "%u", what->count);
	const char *argv[] = {command, r->keys.events, from, to, "COUNT", count};
	size_t len[6];
	for (int i = 0; i < 6; i++)
		len[i] = strlen(argv[i]);
	if (!r->up)
		return -ENOTCONN;
	struct asked *a = malloc(sizeof(*a));
	if (!a)
		return -ENOMEM;
	*a = (struct asked){r, *what};
	a->what.now_ms = hw_clock_now().wall_ms;
	a->what.node = r->ops->owner ? NULL : r->conf.node_id; /* several nodes have one stream */
	int rc = hw_redis_link_command(&r->link, on_page, a, 6, argv, len);
	if (rc != 0)
		free(a);
	return rc;
}

int hw_redis_events_after(struct hw_redis *r, struct hw_event_id after)
{
	char from[HW_EVENT_ID_TEXT];
	hw_event_id_text(after, from);
	return ask(r, &(struct hw_page_asked){.after = after, .count = HW_EVENTS_PAGE}, "XRANGE", from, "+");
}

int hw_redis_events_last(struct hw_redis *r)
{
	return ask(r, &(struct hw_page_asked){.last = true, .count = HW_EVENTS_PAGE}, "XREVRANGE", "+", "-");
}

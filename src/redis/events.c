/* SPDX-License-Identifier: MIT */
/*
 * Reads the event stream, a page at a time. Commands and answers keep their order on the link: an edge whose place was
 * told before a page's answer is on that page or before it, one that is told later is behind it.
 *
 * A page begins with the entry that it goes on from: if that is not there, neither are perhaps those behind it. Cost:
 * Redis finds a place in the logarithm of the stream's length.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/topic.h"
#include "redis/inner.h"

/* What an answer needs to be understood. One is in flight for each call; freed with its answer. */
struct asked {
	struct hw_redis *r;
	struct hw_event_id after;
	bool last; /* the newest entries: in reverse */
	unsigned count;
};

static bool is(const redisReply *field, const char *name)
{
	return field->type == REDIS_REPLY_STRING && strcmp(field->str, name) == 0;
}

static uint64_t number(const redisReply *value)
{
	return strtoull(value->str, NULL, 10);
}

/* Takes a field if it is one that an event has; `*has`: a bit for each without which it is none. */
static void take_field(struct hw_event *e, const redisReply *field, const redisReply *value, unsigned *has, bool *ours,
                       const char *node)
{
	if (value->type != REDIS_REPLY_STRING)
		return;
	if (is(field, "id") && hw_id_valid(value->str, value->len)) {
		e->id = value->str;
		e->id_len = value->len;
		*has |= 1;
	} else if (is(field, "state") && hw_state_parse(value->str, &e->state) == 0) {
		*has |= 2;
	} else if (is(field, "reason") && hw_reason_parse(value->str, &e->reason) == 0) {
		*has |= 4;
	} else if (is(field, "time_ms")) {
		e->time_ms = (int64_t)number(value);
	} else if (is(field, "last_seen_ms")) {
		e->last_seen_ms = (int64_t)number(value);
	} else if (is(field, "group")) {
		e->group = value->str;
		e->group_len = value->len;
	} else if (is(field, "seq")) {
		e->seq = number(value);
	} else if (is(field, "node")) {
		*ours = strcmp(value->str, node) == 0;
	}
}

/* False if the entry is not a transition that this monitor has written. Its place is told in any case. */
static bool read_entry(const struct hw_redis *r, const redisReply *entry, struct hw_event *e)
{
	*e = (struct hw_event){.group = ""};
	unsigned has = 0;
	bool ours = false;
	if (entry->type != REDIS_REPLY_ARRAY || entry->elements != 2 || entry->element[0]->type != REDIS_REPLY_STRING ||
	    hw_event_id_parse(entry->element[0]->str, entry->element[0]->len, &e->at) != 0)
		return false;
	const redisReply *fields = entry->element[1];
	if (fields->type != REDIS_REPLY_ARRAY)
		return false;
	for (size_t i = 0; i + 1 < fields->elements; i += 2)
		take_field(e, fields->element[i], fields->element[i + 1], &has, &ours, r->conf.node_id);
	return has == 7 && ours;
}

static void take_page(struct hw_redis *r, const struct asked *a, const redisReply *reply)
{
	struct hw_event events[HW_EVENTS_PAGE];
	struct hw_event_page page = {.events = events, .last = a->after, .ok = true};
	bool from_start = a->after.ms == 0 && a->after.n == 0;
	page.gone = !a->last && !from_start;
	page.more = !a->last && reply->elements >= a->count;
	for (size_t i = 0; i < reply->elements && page.n < HW_EVENTS_PAGE; i++) {
		const redisReply *entry = reply->element[a->last ? reply->elements - 1 - i : i];
		struct hw_event *e = &events[page.n];
		bool good = read_entry(r, entry, e);
		if (e->at.ms == 0 && e->at.n == 0)
			continue;
		if (i == 0 && page.gone && hw_event_id_compare(e->at, a->after) == 0) {
			page.gone = false;
			continue;
		}
		page.last = e->at;
		page.n += good;
	}
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
		hw_redis_trouble(a.r, reply->str);
	a.r->ops->on_events(a.r->arg, &(struct hw_event_page){.ok = false});
}

static int ask(struct hw_redis *r, const struct asked *what, const char *command, const char *from, const char *to)
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
	*a = *what;
	int rc = hw_redis_link_command(&r->link, on_page, a, 6, argv, len);
	if (rc != 0)
		free(a);
	return rc;
}

int hw_redis_events_after(struct hw_redis *r, struct hw_event_id after)
{
	char from[HW_EVENT_ID_TEXT];
	hw_event_id_text(after, from);
	return ask(r, &(struct asked){.r = r, .after = after, .count = HW_EVENTS_PAGE}, "XRANGE", from, "+");
}

int hw_redis_events_last(struct hw_redis *r)
{
	return ask(r, &(struct asked){.r = r, .last = true, .count = HW_EVENTS_PAGE}, "XREVRANGE", "+", "-");
}

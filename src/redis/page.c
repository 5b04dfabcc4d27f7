/* SPDX-License-Identifier: MIT */
#include "redis/page.h"

#include <string.h>

#include "heartwheel/bounds.h"
#include "heartwheel/entry.h"

static bool is_text(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_STRING;
}

/* A time more than a day ahead of the clock is replaced: by the entry's place, which Redis' clock made, or by now. */
static void correct_times(int64_t now_ms, struct hw_event *e)
{
	bool placed = e->at.ms <= INT64_MAX && hw_bounds_time((int64_t)e->at.ms, now_ms);
	if (now_ms > 0 && !hw_bounds_time(e->time_ms, now_ms))
		e->time_ms = placed ? (int64_t)e->at.ms : now_ms;
	if (now_ms > 0 && !hw_bounds_time(e->last_seen_ms, now_ms))
		e->last_seen_ms = e->time_ms;
}

/* False if the entry is not a transition that counts. Its place is told in any case. */
static bool read_entry(const struct hw_page_asked *asked, const redisReply *entry, struct hw_event *out)
{
	struct hw_entry e;
	*out = (struct hw_event){.group = ""};
	if (entry->type != REDIS_REPLY_ARRAY || entry->elements != 2 || !is_text(entry->element[0]) ||
	    hw_event_id_parse(entry->element[0]->str, entry->element[0]->len, &out->at) != 0)
		return false;
	const redisReply *fields = entry->element[1];
	if (fields->type != REDIS_REPLY_ARRAY)
		return false;
	hw_entry_begin(&e);
	for (size_t i = 0; i + 1 < fields->elements; i += 2) {
		const redisReply *name = fields->element[i], *value = fields->element[i + 1];
		if (is_text(name) && is_text(value))
			hw_entry_field(&e, name->str, name->len, value->str, value->len);
	}
	e.event.at = out->at;
	correct_times(asked->now_ms, &e.event);
	*out = e.event;
	return hw_entry_is_whole(&e) && (!asked->node || (out->node_len == strlen(asked->node) &&
	                                                  memcmp(out->node, asked->node, out->node_len) == 0));
}

void hw_page_read(const struct hw_page_asked *asked, const redisReply *reply, struct hw_event events[HW_EVENTS_PAGE],
                  struct hw_event_page *page)
{
	bool from_start = asked->after.ms == 0 && asked->after.n == 0;
	*page = (struct hw_event_page){.events = events, .last = asked->after, .ok = true};
	page->gone = !asked->last && !from_start;
	page->more = reply->elements >= asked->count;
	for (size_t i = 0; i < reply->elements && page->n < HW_EVENTS_PAGE; i++) {
		const redisReply *entry = reply->element[asked->last ? reply->elements - 1 - i : i];
		struct hw_event *e = &events[page->n];
		bool good = read_entry(asked, entry, e);
		if (e->at.ms == 0 && e->at.n == 0)
			continue;
		if (i == 0 && page->gone && hw_event_id_compare(e->at, asked->after) == 0) {
			page->gone = false;
			continue;
		}
		page->last = e->at;
		page->n += good;
	}
}

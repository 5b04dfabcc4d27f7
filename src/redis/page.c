/* SPDX-License-Identifier: MIT */
#include "redis/page.h"

#include <string.h>

#include "heartwheel/bounds.h"
#include "heartwheel/entry.h"
#include "stream/entries.h"

static bool is_text(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_STRING;
}

/* Corrects a time that is more than a day ahead of the clock: takes the time in the entry's id, which is from Redis'
 * clock. If that time is ahead too, takes the present time. */
static void correct_times(int64_t now_ms, struct hw_event *e)
{
	bool placed = e->at.ms <= INT64_MAX && hw_bounds_time((int64_t)e->at.ms, now_ms);
	if (now_ms > 0 && !hw_bounds_time(e->time_ms, now_ms))
		e->time_ms = placed ? (int64_t)e->at.ms : now_ms;
	if (now_ms > 0 && !hw_bounds_time(e->last_seen_ms, now_ms))
		e->last_seen_ms = e->time_ms;
}

/* Returns false if the entry is malformed, or is of another node than the requested one. Sets out->at in any case. */
static bool read_entry(const struct hw_page_asked *asked, const redisReply *entry, struct hw_event *out)
{
	struct hw_entry e;
	*out = (struct hw_event){.group = ""};
	const redisReply *fields = hw_stream_entry_fields(entry);
	if (!hw_stream_entry_id(entry, &out->at) || !fields)
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

void hw_page_parse(const struct hw_page_asked *asked, redisReply *const *entries, size_t n,
                   struct hw_event events[HW_EVENTS_PAGE], struct hw_event_page *page)
{
	page->events = events;
	page->n = 0;
	page->ok = true;
	for (size_t i = 0; i < n && page->n < HW_EVENTS_PAGE; i++) {
		struct hw_event *e = &events[page->n];
		bool good = read_entry(asked, entries[asked->last ? n - 1 - i : i], e);
		if (e->at.ms == 0 && e->at.seq == 0)
			continue;
		page->last = e->at;
		page->n += good;
	}
}

void hw_page_read(const struct hw_page_asked *asked, const redisReply *reply, struct hw_event events[HW_EVENTS_PAGE],
                  struct hw_event_page *page)
{
	struct hw_stream_page p = {
		.entries = reply->element, .n = reply->elements, .more = reply->elements >= HW_EVENTS_PAGE};
	*page = (struct hw_event_page){.ok = false};
	if (!asked->last && !hw_stream_page_read(reply, asked->after, HW_EVENTS_PAGE, &p))
		return;
	*page = (struct hw_event_page){.last = asked->after, .gone = p.gone, .more = p.more};
	hw_page_parse(asked, p.entries, p.n, events, page);
}

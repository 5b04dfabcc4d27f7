/* SPDX-License-Identifier: MIT */
/* See entries.h. */
#include "stream/entries.h"

#include <string.h>

static bool is_pair(const redisReply *r)
{
	return r->type == REDIS_REPLY_ARRAY && r->elements == 2;
}

static bool is_text(const redisReply *r)
{
	return r->type == REDIS_REPLY_STRING || r->type == REDIS_REPLY_STATUS;
}

bool hw_stream_entry_id(const redisReply *entry, struct hw_stream_id *id)
{
	return is_pair(entry) && is_text(entry->element[0]) &&
	       hw_stream_id_parse(entry->element[0]->str, entry->element[0]->len, id) == 0;
}

const redisReply *hw_stream_entry_fields(const redisReply *entry)
{
	return is_pair(entry) && entry->element[1]->type == REDIS_REPLY_ARRAY ? entry->element[1] : NULL;
}

struct hw_stream_id hw_stream_newest(const redisReply *reply)
{
	struct hw_stream_id id = {0, 0};
	if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 1)
		(void)hw_stream_entry_id(reply->element[0], &id);
	return id;
}

bool hw_stream_page_read(const redisReply *reply, struct hw_stream_id after, size_t count, struct hw_stream_page *page)
{
	struct hw_stream_id first = {0, 0};
	*page = (struct hw_stream_page){.last = after};
	if (reply->type != REDIS_REPLY_ARRAY || (reply->elements > 0 && !hw_stream_entry_id(reply->element[0], &first)))
		return false;
	bool has = reply->elements > 0 && hw_stream_id_compare(first, after) == 0;
	size_t left = reply->elements - has;
	page->gone = !has && (after.ms > 0 || after.seq > 0);
	page->entries = reply->element + has;
	page->n = left < count ? left : count;
	page->more = reply->elements > count;
	return page->n == 0 || hw_stream_entry_id(page->entries[page->n - 1], &page->last);
}

const redisReply *hw_stream_entries(const redisReply *reply, const char *key)
{
	for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++) {
		const redisReply *stream = reply->element[i];
		if (is_pair(stream) && is_text(stream->element[0]) && strcmp(stream->element[0]->str, key) == 0)
			return stream->element[1]->type == REDIS_REPLY_ARRAY ? stream->element[1] : NULL;
	}
	return NULL;
}

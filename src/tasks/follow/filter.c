/* SPDX-License-Identifier: MIT */
/* See filter.h. */
#include "tasks/follow/filter.h"

#include <event2/buffer.h>
#include <string.h>

#include "heartwheel/json.h"
#include "heartwheel/topic.h"
#include "http/buffer.h"
#include "http/json.h"

#define QUOTED_MAX (HW_ID_MAX * 6 + 3)

static bool is_text(const struct hw_json_member *m, struct hw_text t)
{
	char text[QUOTED_MAX];
	int len =
		m->value_len < sizeof(text) && m->value[0] == '"' ? hw_json_unquote(m->value, m->value_len, text) : -1;
	return len >= 0 && (size_t)len == t.len && memcmp(text, t.at, t.len) == 0;
}

static bool is_prefix(const struct hw_json_member *m, struct hw_text t)
{
	char text[QUOTED_MAX];
	int len =
		m->value_len < sizeof(text) && m->value[0] == '"' ? hw_json_unquote(m->value, m->value_len, text) : -1;
	return len >= 0 && (size_t)len <= t.len && memcmp(text, t.at, (size_t)len) == 0;
}

static bool is_among(const struct hw_json_member *ids, struct hw_text t)
{
	struct hw_json_member m;
	size_t at = 0;
	while (hw_json_array_next(ids->value, ids->value_len, &at, &m))
		if (is_text(&m, t) || is_text(&m, (struct hw_text){"*", 1}))
			return true;
	return false;
}

bool hw_filter_matches(const char *filter, const struct hw_device_transition *d)
{
	struct hw_json_member m;
	size_t at = 0, len = strlen(filter);
	while (hw_json_object_next(filter, len, &at, &m)) {
		bool holds = m.key_len == 3                   ? is_among(&m, d->device)
		             : memcmp(m.key, "group", 5) == 0 ? is_text(&m, d->group)
		                                              : is_prefix(&m, d->device);
		if (!holds)
			return false;
	}
	return true;
}

char *hw_filter_of(const struct hw_request *q)
{
	struct evbuffer *b = evbuffer_new();
	struct hw_json j;
	if (!b)
		return NULL;
	hw_json_begin(&j, b);
	hw_json_open(&j, '{');
	if (q->n_ids)
		hw_json_open_member(&j, "ids", '[');
	for (size_t i = 0; i < q->n_ids; i++)
		hw_json_item_bytes(&j, q->ids[i].at, q->ids[i].len);
	if (q->n_ids)
		hw_json_close(&j, ']');
	if (q->group.len)
		hw_json_bytes(&j, "group", q->group.at, q->group.len);
	if (q->prefix.len)
		hw_json_bytes(&j, "prefix", q->prefix.at, q->prefix.len);
	hw_json_close(&j, '}');
	char *text = hw_json_end(&j) == 0 ? hw_buffer_text(b) : NULL;
	evbuffer_free(b);
	return text;
}

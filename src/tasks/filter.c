/* SPDX-License-Identifier: MIT */
/* See filter.h. */
#include "tasks/filter.h"

#include <event2/buffer.h>
#include <string.h>

#include "heartwheel/json.h"
#include "heartwheel/report.h"
#include "heartwheel/topic.h"
#include "http/buffer.h"

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

static void put_quoted(struct evbuffer *b, const char *before, struct hw_text t)
{
	char text[QUOTED_MAX];
	size_t len = hw_json_quote(t.len ? t.at : "", t.len, text, sizeof(text));
	evbuffer_add(b, before, strlen(before));
	evbuffer_add(b, text, len < sizeof(text) ? len : 0);
}

char *hw_filter_of(const struct hw_request *q)
{
	struct evbuffer *b = evbuffer_new();
	const char *comma = "{";
	if (!b)
		return NULL;
	for (size_t i = 0; i < q->n_ids; i++)
		put_quoted(b, i ? "," : "{\"ids\":[", q->ids[i]);
	if (q->n_ids) {
		evbuffer_add(b, "]", 1);
		comma = ",";
	}
	if (q->group.len) {
		evbuffer_add(b, comma, 1);
		put_quoted(b, "\"group\":", q->group);
		comma = ",";
	}
	if (q->prefix.len) {
		evbuffer_add(b, comma, 1);
		put_quoted(b, "\"prefix\":", q->prefix);
		comma = ",";
	}
	evbuffer_add(b, *comma == '{' ? "{}" : "}", *comma == '{' ? 2 : 1);
	char *text = hw_buffer_text(b);
	evbuffer_free(b);
	return text;
}

/* SPDX-License-Identifier: MIT */
/* See copies.h. Cost: nothing where no filters overlap; otherwise a message is matched with every filter. */
#include "mqtt/copies.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/topic.h"

static bool any_overlap(const struct hw_mqtt_filter *filters, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1; k < n; k++)
			if (hw_topic_filters_overlap(filters[i].filter, filters[k].filter))
				return true;
	return false;
}

int hw_copies_set(struct hw_copies *c, const struct hw_mqtt_filter *filters, size_t n)
{
	struct hw_copies made = {0};
	if (any_overlap(filters, n)) {
		made.filters = calloc(n, sizeof(*made.filters));
		if (!made.filters)
			return -ENOMEM;
		for (; made.n < n; made.n++) {
			made.filters[made.n] = strdup(filters[made.n].filter);
			if (!made.filters[made.n]) {
				hw_copies_fini(&made);
				return -ENOMEM;
			}
		}
	}
	hw_copies_fini(c);
	*c = made;
	return 0;
}

void hw_copies_fini(struct hw_copies *c)
{
	for (size_t k = 0; k < c->n; k++)
		free(c->filters[k]);
	free(c->filters);
	*c = (struct hw_copies){0};
}

/* A topic is a filter without wildcards. */
static size_t matches(const struct hw_copies *c, const struct hw_reader_event *message)
{
	char topic[HW_COPIES_BYTES + 1];
	size_t n = 0;
	if (message->topic_len > HW_COPIES_BYTES)
		return 0;
	memcpy(topic, message->topic, message->topic_len);
	topic[message->topic_len] = '\0';
	for (size_t k = 0; k < c->n; k++)
		n += hw_topic_filters_overlap(c->filters[k], topic);
	return n;
}

static bool is_same(const struct hw_copies_of *of, const struct hw_reader_event *message)
{
	return of->topic_len == message->topic_len && of->payload_len == message->payload_len &&
	       memcmp(of->last, message->topic, of->topic_len) == 0 &&
	       (of->payload_len == 0 || memcmp(of->last + of->topic_len, message->payload, of->payload_len) == 0);
}

static void remember(struct hw_copies_of *of, const struct hw_reader_event *message, size_t copies)
{
	of->left = 0;
	if (copies == 0 || message->topic_len + message->payload_len > HW_COPIES_BYTES)
		return;
	if (!of->last)
		of->last = malloc(HW_COPIES_BYTES);
	if (!of->last)
		return;
	memcpy(of->last, message->topic, message->topic_len);
	if (message->payload_len)
		memcpy(of->last + message->topic_len, message->payload, message->payload_len);
	of->topic_len = message->topic_len;
	of->payload_len = message->payload_len;
	of->left = copies;
}

bool hw_copies_is_one(const struct hw_copies *c, struct hw_copies_of *of, const struct hw_reader_event *message,
                      int64_t now_ms)
{
	if (c->n == 0)
		return false;
	if (of->left > 0 && now_ms <= of->until_ms && is_same(of, message)) {
		of->left--;
		return true;
	}
	size_t n = matches(c, message);
	remember(of, message, n > 0 ? n - 1 : 0);
	of->until_ms = now_ms + HW_COPIES_WITHIN_MS;
	return false;
}

void hw_copies_of_fini(struct hw_copies_of *of)
{
	free(of->last);
	*of = (struct hw_copies_of){0};
}

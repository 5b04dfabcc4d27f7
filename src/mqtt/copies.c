/* SPDX-License-Identifier: MIT */
/* See copies.h. Cost: nothing if no filters overlap. If a filter without wildcards is part of each overlap, a
 * message is compared with these filters. Otherwise it is matched with every filter. */
#include "mqtt/copies.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/filter_index.h"
#include "heartwheel/topic.h"

/* Looks for filters that overlap. */
struct overlap {
	const struct hw_mqtt_filter *filters;
	size_t k; /* the filter that is compared with the earlier ones */
	bool any;
	bool wild; /* two with wildcards overlap */
};

static bool is_wild(const char *filter)
{
	return strpbrk(filter, "+#");
}

static bool note(void *arg, size_t i)
{
	struct overlap *o = arg;
	o->any = true;
	o->wild = is_wild(o->filters[i].filter) && is_wild(o->filters[o->k].filter);
	return o->wild;
}

/* Returns 0 or -ENOMEM. */
static int find_overlap(struct overlap *o, size_t n)
{
	struct hw_filter_index earlier = {0};
	int rc = 0;
	for (; o->k < n && !o->wild && rc == 0; o->k++) {
		hw_filter_index_overlaps(&earlier, o->filters[o->k].filter, note, o);
		rc = hw_filter_index_add(&earlier, o->filters[o->k].filter, o->k);
	}
	hw_filter_index_fini(&earlier);
	return rc;
}

int hw_copies_set(struct hw_copies *c, const struct hw_mqtt_filter *filters, size_t n)
{
	struct hw_copies made = {0};
	struct overlap found = {.filters = filters};
	int rc = find_overlap(&found, n);
	if (rc)
		return rc;
	made.wild = found.wild;
	if (found.any) {
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

/* Whether one of the filters is the topic itself. */
static bool is_filter(const struct hw_copies *c, const struct hw_reader_event *message)
{
	for (size_t k = 0; k < c->n; k++)
		if (strncmp(c->filters[k], message->topic, message->topic_len) == 0 &&
		    !c->filters[k][message->topic_len])
			return true;
	return false;
}

/* A topic is a filter without wildcards. */
static size_t matches(const struct hw_copies *c, const struct hw_reader_event *message)
{
	char topic[HW_COPIES_BYTES + 1];
	size_t n = 0;
	if (message->topic_len > HW_COPIES_BYTES || (!c->wild && !is_filter(c, message)))
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

void hw_copies_of_forget(struct hw_copies_of *of)
{
	of->left = 0;
}

void hw_copies_of_fini(struct hw_copies_of *of)
{
	free(of->last);
	*of = (struct hw_copies_of){0};
}

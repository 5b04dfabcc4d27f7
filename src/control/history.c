/* SPDX-License-Identifier: MIT */
/*
 * The last HW_HISTORY transitions, in memory: for clients that request recent transitions, and as the event stream
 * itself if there is no store. Cost: an allocation for each transition, at most about 3 MB in all.
 *
 * With a store, a transition is added at once, without an id. When the store returns the transition's entry, the
 * transition gets the entry's id. So each transition is in this history once and in order. This order holds even if the
 * store cannot be reached, or if a new master returns the entries of the old one again.
 */
#include <event2/buffer.h>
#include <event2/http.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/parts.h"
#include "heartwheel/fnv.h"
#include "http/json.h"
#include "http/query.h"

#define HEADS 4096 /* lists of items by a hash of id and seq; a power of two */

struct item {
	struct hw_event event;
	char *texts;   /* owned: id, group, node and parents */
	bool waits;    /* has no id of the stream yet */
	bool listed;   /* in the list of its head */
	uint32_t next; /* next item of that list: index + 1; 0: none */
};

struct hw_history {
	struct item items[HW_HISTORY];
	uint32_t heads[HEADS];   /* first item of each list, encoded like `next` */
	uint64_t n;              /* number of items ever added; the last HW_HISTORY of them are kept */
	char own[HW_ID_MAX + 1]; /* this node: items of this node wait here */
	bool cut;                /* the stream has older entries, or may have */
	int64_t gave_way_ms;     /* the latest time of an item that was overwritten before it got an id */
};

struct hw_history *hw_history_new(bool cut)
{
	struct hw_history *h = calloc(1, sizeof(*h));
	if (h)
		h->cut = cut;
	return h;
}

void hw_history_set_cut(struct hw_history *h, bool cut)
{
	h->cut = cut;
}

void hw_history_free(struct hw_history *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < HW_HISTORY; i++)
		free(h->items[i].texts);
	free(h);
}

/* Returns the list for a transition. For most devices seq is the wall clock in ms, and it is unique for a device. */
static uint32_t *head_of(struct hw_history *h, const struct hw_event *e)
{
	return &h->heads[(hw_fnv32(e->id, e->id_len) ^ e->seq ^ e->seq >> 12) % HEADS];
}

static void unlist(struct hw_history *h, struct item *item)
{
	uint32_t *at = head_of(h, &item->event), wanted = (uint32_t)(item - h->items) + 1;
	while (*at && *at != wanted)
		at = &h->items[*at - 1].next;
	if (*at)
		*at = item->next;
	item->listed = false;
}

/* Finds the item of a transition that the store has returned; NULL: there is none. */
static struct item *find(struct hw_history *h, const struct hw_event *e)
{
	for (uint32_t at = *head_of(h, e); at; at = h->items[at - 1].next) {
		const struct hw_event *is = &h->items[at - 1].event;
		if (is->seq == e->seq && is->state == e->state && is->id_len == e->id_len &&
		    memcmp(is->id, e->id, e->id_len) == 0)
			return &h->items[at - 1];
	}
	return NULL;
}

void hw_history_append(struct hw_history *h, const struct hw_event *e)
{
	struct item *item = &h->items[h->n % HW_HISTORY];
	char *texts = malloc(e->id_len + e->group_len + e->node_len + e->parents_len + 1);
	if (!texts)
		return;
	memcpy(texts, e->id, e->id_len);
	memcpy(texts + e->id_len, e->group, e->group_len);
	if (e->node_len)
		memcpy(texts + e->id_len + e->group_len, e->node, e->node_len);
	if (e->parents_len)
		memcpy(texts + e->id_len + e->group_len + e->node_len, e->parents, e->parents_len);
	if (item->waits && item->event.time_ms > h->gave_way_ms)
		h->gave_way_ms = item->event.time_ms;
	if (item->listed)
		unlist(h, item);
	free(item->texts);
	*item = (struct item){.event = *e, .texts = texts};
	item->event.id = texts;
	item->event.group = texts + e->id_len;
	item->event.node = texts + e->id_len + e->group_len;
	item->event.parents = item->event.node + e->node_len;
	h->n++;
}

/* Appends an item that find() finds. */
static void append_listed(struct hw_history *h, const struct hw_event *e, bool waits)
{
	uint64_t n = h->n;
	hw_history_append(h, e);
	if (h->n == n)
		return;
	uint32_t *head = head_of(h, e);
	struct item *item = &h->items[n % HW_HISTORY];
	item->waits = waits;
	item->listed = true;
	item->next = *head;
	*head = (uint32_t)(n % HW_HISTORY) + 1;
}

/* Whether the item of this transition may have been overwritten before it got an id. Such a transition must not be
 * added again as a new one. Returns true if this node made the transition, and the transition is not newer than an
 * overwritten item. Returns false for transitions of other nodes, because their clocks differ. */
static bool gave_way(const struct hw_history *h, const struct hw_event *e)
{
	return e->time_ms <= h->gave_way_ms && e->node_len == strlen(h->own) &&
	       (e->node_len == 0 || memcmp(e->node, h->own, e->node_len) == 0);
}

void hw_history_add(struct hw_history *h, const struct hw_event *e)
{
	struct item *item = find(h, e);
	if (!item && gave_way(h, e))
		return;
	if (!item) {
		append_listed(h, e, false);
		return;
	}
	item->waits = false;
	item->event.at = e->at;
}

void hw_history_await(struct hw_history *h, const struct hw_event *e)
{
	snprintf(h->own, sizeof(h->own), "%.*s", (int)e->node_len, e->node_len ? e->node : "");
	append_listed(h, e, true);
}

uint64_t hw_history_end(const struct hw_history *h)
{
	return h->n;
}

/* Number of the oldest item. */
static uint64_t oldest(const struct hw_history *h)
{
	return h->n > HW_HISTORY ? h->n - HW_HISTORY : 0;
}

static const struct hw_event *event_at(const struct hw_history *h, uint64_t number)
{
	return &h->items[number % HW_HISTORY].event;
}

const struct hw_event *hw_history_waiting(const struct hw_history *h, uint64_t *number)
{
	if (*number < oldest(h))
		*number = oldest(h);
	while (*number < h->n) {
		const struct item *item = &h->items[(*number)++ % HW_HISTORY];
		if (item->waits)
			return &item->event;
	}
	return NULL;
}

/* Returns the number of the first item after an id. The items are in the order of their ids. */
static uint64_t first_behind(const struct hw_history *h, struct hw_stream_id at)
{
	uint64_t low = oldest(h), high = h->n;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (hw_stream_id_compare(event_at(h, middle)->at, at) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void hw_history_after(const struct hw_history *h, struct hw_stream_id at, struct hw_event *events, size_t cap,
                      struct hw_event_page *page)
{
	uint64_t first = first_behind(h, at);
	bool from_start = at.ms == 0 && at.seq == 0;
	*page = (struct hw_event_page){.events = events, .last = at, .ok = true};
	page->gone = first == oldest(h) ? !from_start || first > 0
	                                : hw_stream_id_compare(event_at(h, first - 1)->at, at) != 0;
	for (; first < h->n && page->n < cap; first++) {
		events[page->n++] = *event_at(h, first);
		page->last = event_at(h, first)->at;
	}
	page->more = first < h->n;
}

/* --- the API */

static const char *read_limit(struct evhttp_request *req, unsigned *limit)
{
	const char *query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(req)), *why = NULL;
	struct hw_param p;
	int rc;
	*limit = HW_LIMIT_DEFAULT;
	for (query = query ? query : ""; !why && (rc = hw_query_next(&query, &p)) != 0;) {
		if (rc < 0)
			return "the query is malformed";
		if (strcmp(p.key, "limit") != 0)
			return "unknown key in the query: the only key is limit";
		why = hw_query_limit(p.value, p.value_len, limit);
	}
	return why;
}

/* Writes transitions, the newest first. With `id`, writes only the transitions of that device. */
static void serve(struct hw_control *c, struct evhttp_request *req, const char *id, size_t len)
{
	const struct hw_history *h = c->history;
	struct hw_json j;
	unsigned limit, found = 0;
	const char *why = read_limit(req, &limit);
	if (why) {
		hw_reply_error(req, HTTP_BADREQUEST, why);
		return;
	}
	struct evbuffer *body = hw_answer_begin(req, &j);
	if (!body)
		return;
	hw_json_open_member(&j, "transitions", '[');
	uint64_t i = h->n;
	for (; i > oldest(h) && found < limit; i--) {
		const struct hw_event *e = event_at(h, i - 1);
		bool waits = h->items[(i - 1) % HW_HISTORY].waits;
		char at[HW_STREAM_ID_TEXT];
		if (id && (e->id_len != len || memcmp(e->id, id, len) != 0))
			continue;
		hw_stream_id_print(e->at, at);
		hw_json_open(&j, '{');
		hw_write_event(&j, c, e);
		hw_json_text(&j, "event_id", waits ? NULL : at);
		hw_json_close(&j, '}');
		found++;
	}
	hw_json_close(&j, ']');
	hw_json_bool(&j, "complete", !h->cut && i == 0);
	hw_answer_end(req, &j, body);
}

void hw_serve_transitions(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_control *c = arg;
	(void)rest;
	serve(c, req, NULL, 0);
}

void hw_serve_device_events(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_control *c = arg;
	char id[HW_ID_MAX + 1];
	int len = hw_percent_decode(rest, strlen(rest), false, id, sizeof(id));
	if (len < 0 || !hw_id_valid(id, (size_t)len))
		hw_reply_error(req, HTTP_BADREQUEST, "not a valid device id");
	else
		serve(c, req, id, (size_t)len);
}

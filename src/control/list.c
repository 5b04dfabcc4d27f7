/* SPDX-License-Identifier: MIT */
/*
 * The list of devices.
 *
 * The list has the order of the registry's records, which never move. So a device that stays is listed exactly once,
 * even if other devices are added or removed. A client that requests the next page names the last device that it got.
 * The list continues after that device's record. The records of the last pages are kept, so that the list can continue
 * even if the device was forgotten meanwhile. For a page of a sorted list, all records are scanned, and the first
 * devices after the previous page are kept (rank.h).
 *
 * Cost: a filter may skip a million records to find one. A request scans at most a few thousand records at once. A
 * longer scan is queued, and the queue scans a limited number of records in each turn of the loop.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <stdlib.h>
#include <string.h>

#include "control/levels.h"
#include "control/list_query.h"
#include "control/parts.h"
#include "heartwheel/unseen.h"
#include "http/json.h"

#define SCANS_AT_ONCE 2000  /* records that a request scans before it is queued */
#define SCANS_A_TURN  20000 /* how many records all queued requests together scan in one turn of the loop */
#define ENTRY_COST    5     /* a record whose name and labels are searched counts as this many records */
#define CURSORS       256

static const char no_memory[] = "out of memory";

/* A list that is being written. Its owner is the pager's queue, or the function that answers the request at once. */
struct list {
	struct list *next, **prev;
	struct hw_pager *pager;
	struct evhttp_request *req;
	struct evbuffer *body;
	struct hw_json json;
	struct hw_list_query query;
	struct hw_rank rank; /* of a sorted list */
	struct hw_levels *levels;
	uint32_t at; /* the next record to scan */
	unsigned found;
	bool more; /* there is a next page */
	char last[HW_ID_MAX + 1];
	size_t last_len;
	uint32_t last_at;
};

struct cursor {
	uint32_t index;
	uint8_t len;
	char id[HW_ID_MAX];
};

struct hw_pager {
	struct hw_control *c;
	struct event *turn;
	struct list *first, **tail; /* waiting for their turn */
	struct cursor cursors[CURSORS];
	size_t n_cursors; /* number of cursors ever kept */
};

/* --- positions */

static void remember(struct hw_pager *p, const char *id, size_t len, uint32_t index)
{
	struct cursor *at = &p->cursors[p->n_cursors++ % CURSORS];
	memcpy(at->id, id, len);
	at->len = (uint8_t)len;
	at->index = index;
}

/*
 * Returns the record of the last device of a page, or HW_NIL. The kept pages are searched first: if the device was
 * forgotten and came back, it has another record now, but the list must continue at the old one.
 */
static uint32_t position(const struct hw_pager *p, const char *id, size_t len)
{
	size_t oldest = p->n_cursors > CURSORS ? p->n_cursors - CURSORS : 0;
	for (size_t i = p->n_cursors; i > oldest; i--) {
		const struct cursor *at = &p->cursors[(i - 1) % CURSORS];
		if (at->len == len && memcmp(at->id, id, len) == 0)
			return at->index;
	}
	return hw_registry_find(hw_monitor_registry(p->c->monitor), id, len);
}

/* --- the list */

/* Sets the begin of the page, which is after the previous page. Returns NULL, or what is wrong. */
static const char *set_begin(struct list *l)
{
	uint32_t index;
	if (l->query.state == HW_STATE_UNSEEN) {
		if (l->query.level || l->query.order != HW_ORDER_KNOWN || l->query.parent_len > 0)
			return "with state=unseen the list has no 'sort', 'level' or 'parent'";
		l->at = l->query.after_len ? hw_unseen_after(l->pager->c, l->query.after, l->query.after_len) : 0;
		return l->at == HW_NIL
		               ? "the device that 'after' names is no longer unseen: start again without 'after'"
		               : NULL;
	}
	if (l->query.level) {
		l->levels = hw_levels_new(l->query.level);
		return l->levels ? NULL : no_memory;
	}
	if (l->query.order != HW_ORDER_KNOWN) {
		if (hw_rank_init(&l->rank, l->query.order, l->query.back, l->query.limit + 1) < 0)
			return no_memory;
		return l->query.after_len && hw_rank_floor(&l->rank, l->query.after, l->query.after_len) < 0
		               ? "'after' must be the 'next' of an earlier page with the same 'sort'"
		               : NULL;
	}
	if (l->query.after_len == 0)
		return NULL;
	index = position(l->pager, l->query.after, l->query.after_len);
	if (index == HW_NIL)
		return "the device that 'after' names is no longer known: start again without 'after'";
	l->at = index + 1;
	return NULL;
}

static bool has_parent(const struct hw_list_query *f, const struct hw_monitor *m, const struct hw_device *d)
{
	struct hw_parent_view v[HW_PARENTS_MAX];
	for (unsigned n = hw_monitor_parents(m, d, v); n > 0; n--)
		if (v[n - 1].id.len == f->parent_len && memcmp(v[n - 1].id.text, f->parent, f->parent_len) == 0)
			return true;
	return false;
}

/* Whether the id, or its entry in the inventory, matches the filter. */
static bool matches_id(const struct hw_list_query *f, const struct hw_control *c, struct hw_id id)
{
	if (id.len < f->prefix_len || memcmp(id.text, f->prefix, f->prefix_len) != 0)
		return false;
	if (!hw_contains_lower(id.text, id.len, f->search, f->search_len) &&
	    !hw_label_filter_contains(&f->label, c, id))
		return false;
	return !*f->label.name || hw_label_filter_has(&f->label, c, id);
}

static bool matches(const struct hw_list_query *f, const struct hw_control *c, const struct hw_device *d)
{
	const struct hw_monitor *m = c->monitor;
	if (!hw_device_visible(d) || (f->state >= 0 && (int)hw_device_state(d) != f->state) ||
	    (f->group >= 0 && d->group != (unsigned)f->group))
		return false;
	if (f->parent_len > 0 && !has_parent(f, m, d))
		return false;
	return (f->prefix_len + f->search_len == 0 && !*f->label.name) || matches_id(f, c, hw_device_id(d));
}

static void write_one(struct list *l, struct hw_now now, const struct hw_device *d)
{
	hw_json_open(&l->json, '{');
	hw_write_device(&l->json, l->pager->c, now, d);
	hw_write_parent_ids(&l->json, l->pager->c->monitor, d);
	hw_json_close(&l->json, '}');
	l->found++;
}

/* Writes a sorted page when all records were scanned. Skips a device that was removed or no longer matches. */
static void write_ranked(struct list *l, struct hw_now now)
{
	const struct hw_registry *r = hw_monitor_registry(l->pager->c->monitor);
	hw_rank_sort(&l->rank);
	l->more = l->rank.n > l->query.limit;
	for (size_t i = 0; i < l->rank.n && i < l->query.limit; i++) {
		const struct hw_ranked *item = l->rank.heap[i];
		const struct hw_device *d = hw_registry_get(r, item->device);
		if (d && matches(&l->query, l->pager->c, d))
			write_one(l, now, d);
	}
	if (l->more) {
		hw_rank_place(&l->rank, l->rank.heap[l->query.limit - 1], l->last);
		l->last_len = strlen(l->last);
	}
}

/* Takes a record that matches; false: the page is full. */
static bool take(struct list *l, struct hw_now now, const struct hw_device *d)
{
	if (l->levels) {
		hw_levels_count(l->levels, hw_device_id(d), hw_device_state(d));
		return true;
	}
	if (l->query.order != HW_ORDER_KNOWN) {
		hw_rank_offer(&l->rank, d, hw_registry_ref(hw_monitor_registry(l->pager->c->monitor), l->at));
		return true;
	}
	if (l->found == l->query.limit) {
		l->more = true;
		return false;
	}
	write_one(l, now, d);
	struct hw_id id = hw_device_id(d);
	memcpy(l->last, id.text, id.len);
	l->last_len = id.len;
	l->last_at = l->at;
	return true;
}

static bool matches_unseen(const struct hw_list_query *f, const struct hw_control *c, const struct hw_expected_view *v)
{
	const struct hw_group *g = hw_monitor_expected_group(c->monitor, v);
	return (f->group < 0 || hw_monitor_groups(c->monitor)->all[f->group] == g) && matches_id(f, c, v->id);
}

/* Lists the unseen devices, from the last one to the first. When a device is no longer unseen, the last device takes
 * its slot. So a list over several turns may name a device twice, but it leaves none out. */
static bool unseen_go_on(struct list *l, unsigned *budget)
{
	const struct hw_control *c = l->pager->c;
	const struct hw_expected *e = hw_monitor_expected(c->monitor);
	for (uint32_t n = hw_expected_unseen(e); l->at < n; l->at++) {
		struct hw_expected_view v = hw_expected_at(e, hw_expected_unseen_at(e, n - 1 - l->at));
		if (*budget == 0)
			return false;
		--*budget;
		if (!matches_unseen(&l->query, c, &v))
			continue;
		if (l->found == l->query.limit) {
			l->more = true;
			break;
		}
		hw_json_open(&l->json, '{');
		hw_write_unseen(&l->json, c, &v);
		hw_json_close(&l->json, '}');
		l->found++;
		memcpy(l->last, v.id.text, v.id.len);
		l->last_len = v.id.len;
	}
	return true;
}

/* Continues the list; false: the budget is used up. */
static bool list_go_on(struct list *l, unsigned *budget)
{
	if (l->query.state == HW_STATE_UNSEEN)
		return unseen_go_on(l, budget);
	struct hw_control *c = l->pager->c;
	const struct hw_registry *r = hw_monitor_registry(c->monitor);
	struct hw_now now = c->ops->now(c->arg);
	unsigned cost = l->query.search_len || *l->query.label.name ? ENTRY_COST : 1;
	for (uint32_t bound = hw_registry_bound(r); l->at < bound; l->at++) {
		if (*budget == 0)
			return false;
		*budget -= *budget < cost ? *budget : cost;
		const struct hw_device *d = hw_registry_at(r, l->at);
		if (d && matches(&l->query, c, d) && !take(l, now, d))
			return true;
	}
	if (!l->levels && l->query.order != HW_ORDER_KNOWN)
		write_ranked(l, now);
	return true;
}

/* Ends the text. Returns 0 or -ENOMEM. */
static int list_end(struct list *l)
{
	hw_json_close(&l->json, ']');
	if (l->more) {
		hw_json_bytes(&l->json, "next", l->last, l->last_len);
		if (l->query.order == HW_ORDER_KNOWN && l->query.state != HW_STATE_UNSEEN)
			remember(l->pager, l->last, l->last_len, l->last_at);
	}
	if (l->levels)
		hw_levels_write(l->levels, &l->json);
	else if (l->query.order != HW_ORDER_KNOWN)
		hw_json_uint(&l->json, "total", l->rank.offered);
	hw_json_close(&l->json, '}');
	int rc = hw_json_end(&l->json);
	return rc < 0 || evbuffer_add(l->body, "\n", 1) < 0 ? -ENOMEM : 0;
}

static void list_enqueue(struct list *l)
{
	struct hw_pager *p = l->pager;
	l->next = NULL;
	l->prev = p->tail;
	*p->tail = l;
	p->tail = &l->next;
}

static void list_dequeue(struct list *l)
{
	*l->prev = l->next;
	if (l->next)
		l->next->prev = l->prev;
	else
		l->pager->tail = l->prev;
	l->prev = NULL;
}

static void list_free(struct list *l)
{
	if (l->prev)
		list_dequeue(l);
	if (l->body)
		evbuffer_free(l->body);
	hw_rank_fini(&l->rank);
	hw_levels_free(l->levels);
	free(l);
}

/* Called when the client has disconnected, or the server stops, while the list waited. */
static void on_close(struct evhttp_connection *conn, void *arg)
{
	struct list *l = arg;
	(void)conn;
	/* evhttp frees a request that still has its connection. A request that evhttp has detached from its
	 * connection is freed here. */
	if (!evhttp_request_get_connection(l->req))
		evhttp_request_free(l->req);
	list_free(l);
}

/* Answers a list that has waited. The head of the answer was sent before. */
static void list_answer_late(struct list *l)
{
	struct evhttp_request *req = l->req;
	struct evhttp_connection *conn = evhttp_request_get_connection(req);
	evhttp_connection_set_closecb(conn, NULL, NULL);
	if (list_end(l) < 0) {
		/* The status 200 was already sent, so only a closed connection can show the failure. */
		evhttp_connection_free(conn);
	} else {
		evhttp_send_reply_chunk(req, l->body);
		evhttp_send_reply_end(req);
	}
	list_free(l);
}

static int pager_wake(struct hw_pager *p)
{
	struct timeval at_once = {0, 0};
	return event_add(p->turn, &at_once) < 0 ? -ENOMEM : 0;
}

static void pager_turn(struct hw_pager *p)
{
	unsigned budget = SCANS_A_TURN;
	while (p->first && budget > 0) {
		struct list *l = p->first;
		list_dequeue(l);
		if (list_go_on(l, &budget))
			list_answer_late(l);
		else
			list_enqueue(l);
	}
	if (p->first && pager_wake(p) < 0)
		while (p->first) {
			struct evhttp_connection *conn = evhttp_request_get_connection(p->first->req);
			evhttp_connection_free(conn); /* on_close() frees the list */
		}
}

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	pager_turn(arg);
}

/*
 * Queues the list. The head of the answer is sent now, because evhttp notices only after that if the client
 * disconnects. The answer has no length: it is chunked. In HTTP/1.0, the end of the connection ends it, even if the
 * client requested keep-alive.
 */
static void list_wait(struct list *l)
{
	struct evhttp_request *req = l->req;
	if (pager_wake(l->pager) < 0) {
		list_free(l);
		hw_reply_error(req, HTTP_SERVUNAVAIL, "out of memory");
		return;
	}
	list_enqueue(l);
	evhttp_connection_set_closecb(evhttp_request_get_connection(req), on_close, l);
	evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Type", "application/json");
	evhttp_add_header(evhttp_request_get_output_headers(req), "Cache-Control", "no-store");
	if (req->major == 1 && req->minor == 0)
		evhttp_remove_header(evhttp_request_get_input_headers(req), "Connection");
	evhttp_send_reply_start(req, HTTP_OK, NULL);
}

static struct list *list_new(struct hw_pager *p, struct evhttp_request *req)
{
	struct list *l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->pager = p;
	l->req = req;
	l->body = evbuffer_new();
	if (!l->body) {
		free(l);
		return NULL;
	}
	hw_json_begin(&l->json, l->body);
	hw_json_open(&l->json, '{');
	hw_json_key(&l->json, "devices");
	hw_json_open(&l->json, '[');
	return l;
}

void hw_serve_list(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_control *c = arg;
	const char *query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(req));
	unsigned budget = SCANS_AT_ONCE;
	struct list *l = list_new(c->pager, req);
	(void)rest;
	if (!l) {
		hw_reply_error(req, HTTP_SERVUNAVAIL, "out of memory");
		return;
	}
	const char *why = hw_list_query_read(&l->query, hw_monitor_groups(c->monitor), query ? query : "");
	if (!why)
		why = set_begin(l);
	if (why) {
		bool memory = why == no_memory;
		list_free(l);
		hw_reply_error(req, memory ? HTTP_SERVUNAVAIL : HTTP_BADREQUEST, why);
		return;
	}
	if (!list_go_on(l, &budget)) {
		list_wait(l);
		return;
	}
	if (list_end(l) < 0) {
		hw_reply_error(req, HTTP_SERVUNAVAIL, "out of memory");
	} else {
		hw_reply(req, HTTP_OK, l->body);
		l->body = NULL;
	}
	list_free(l);
}

struct hw_pager *hw_pager_new(struct hw_control *c)
{
	struct hw_pager *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->c = c;
	p->tail = &p->first;
	p->turn = event_new(c->base, -1, 0, on_turn, p);
	if (!p->turn) {
		free(p);
		return NULL;
	}
	return p;
}

void hw_pager_free(struct hw_pager *p)
{
	if (!p)
		return;
	event_free(p->turn);
	free(p);
}

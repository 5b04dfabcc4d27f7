/* SPDX-License-Identifier: MIT */
/*
 * The routes of the inventory. A list has the order of the table of expected devices, in which an entry never moves.
 *
 * Cost: a page checks no more than CHECKS_MAX entries, so a page of a filtered list may be short, or empty, although
 * others follow. A change of a single entry is answered when the table has the change. So a client that reads the entry
 * after its change gets the new entry.
 */
#include "control/inventory.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/expected.h"
#include "heartwheel/print.h"
#include "heartwheel/utf8.h"
#include "http/json.h"
#include "http/query.h"

#define CHECKS_MAX   20000
#define CHANGES_MAX  64 /* requests that wait for the store */
#define SETTLE_MS    20
#define SETTLE_TURNS 150
#define RETRIES_MAX  100

const struct hw_expected *hw_inventory_ready(struct hw_control *c, struct evhttp_request *req)
{
	const char *why = c->ops->inventory_why_not ? c->ops->inventory_why_not(c->arg) : "no inventory";
	if (!why)
		return c->ops->expected(c->arg);
	hw_reply_error(req, HTTP_SERVUNAVAIL, why);
	return NULL;
}

const char **hw_inventory_groups(const struct hw_control *c)
{
	const struct hw_groups *g = hw_monitor_groups(c->monitor);
	const char **names = calloc(g->n_order + 1, sizeof(*names));
	for (size_t i = 0; names && i < g->n_order; i++)
		names[i] = g->all[g->order[i]]->name;
	return names;
}

void hw_inventory_read(const struct hw_expected_view *v, struct hw_expected_entry *e)
{
	struct hw_entry_error error;
	hw_entry_init(e);
	if (hw_entry_parse(e, v->text.text, v->text.len, &error) < 0)
		hw_entry_init(e);
	hw_print(e->source, sizeof(e->source), "%s", v->source);
	e->since_ms = v->since_ms;
}

static const char *query_of(struct evhttp_request *req)
{
	const char *query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(req));
	return query ? query : "";
}

/* --- PUT /v1/inventory --- */

static const char *set_flag(const struct hw_param *p, bool *to)
{
	*to = strcmp(p->value, "1") == 0;
	return *to || strcmp(p->value, "0") == 0 || !p->value_len
	               ? NULL
	               : "prune, force, skip_bad, dry_run and last are 1 or 0";
}

static const char *set_source(struct hw_import_query *q, const struct hw_param *p)
{
	if (p->value_len > HW_ENTRY_SOURCE_MAX || p->value_len == 0)
		return "'source' must have 1 to 128 bytes";
	for (size_t i = 0, n; i < p->value_len; i += n) {
		uint32_t c;
		n = hw_utf8_next((const unsigned char *)p->value + i, p->value_len - i, &c);
		if (n == 0 || hw_utf8_is_control(c))
			return "'source' must be UTF-8 without control characters";
	}
	memcpy(q->source, p->value, p->value_len + 1);
	return NULL;
}

static const char *set_import(struct hw_import_query *q, const struct hw_param *p)
{
	if (p->value_len == 0 || p->value_len > HW_IMPORT_ID_MAX)
		return "'import' must have 1 to 64 bytes: any that no other import has";
	memcpy(q->id, p->value, p->value_len + 1);
	return NULL;
}

static const char *set_part(struct hw_import_query *q, const struct hw_param *p)
{
	char *end;
	unsigned long n = strtoul(p->value, &end, 10);
	if (*p->value < '1' || *p->value > '9' || *end || n > 100000000)
		return "'part' must be a number from 1";
	q->part = (unsigned)n;
	return NULL;
}

static const char *set_key(struct hw_import_query *q, const struct hw_param *p)
{
	if (strcmp(p->key, "source") == 0)
		return set_source(q, p);
	if (strcmp(p->key, "import") == 0)
		return set_import(q, p);
	if (strcmp(p->key, "part") == 0)
		return set_part(q, p);
	if (strcmp(p->key, "prune") == 0)
		return set_flag(p, &q->prune);
	if (strcmp(p->key, "force") == 0)
		return set_flag(p, &q->force);
	if (strcmp(p->key, "skip_bad") == 0)
		return set_flag(p, &q->skip_bad);
	if (strcmp(p->key, "dry_run") == 0)
		return set_flag(p, &q->dry_run);
	if (strcmp(p->key, "last") == 0)
		return set_flag(p, &q->last);
	return "unknown key in the query: the keys are source, prune, force, skip_bad, dry_run, import, part and last";
}

static const char *read_import_query(struct hw_import_query *q, const char *query)
{
	struct hw_param p;
	int rc;
	while ((rc = hw_query_next(&query, &p)) > 0) {
		const char *why = set_key(q, &p);
		if (why)
			return why;
	}
	if (rc < 0)
		return rc == -EINVAL ? "the query is malformed" : "a part of the query is too long";
	if (*q->id && !q->part)
		return "'import' needs 'part'";
	if (!*q->id && (q->part || q->last))
		return "'part' and 'last' need 'import'";
	if (q->prune && !*q->source)
		return "'prune' needs 'source'";
	if (!*q->source)
		strcpy(q->source, "import");
	q->last |= !*q->id;
	return NULL;
}

/* Whether the Content-Type is this one, with or without parameters. */
static bool is_type(const char *type, const char *wanted)
{
	size_t n = strcspn(type, "; \t");
	return n == strlen(wanted) && evutil_ascii_strncasecmp(type, wanted, n) == 0;
}

void hw_serve_inventory_put(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_control *c = arg;
	struct hw_import_query q = {0};
	const char *query = query_of(req);
	const char *type = evhttp_find_header(evhttp_request_get_input_headers(req), "Content-Type");
	const char *why = read_import_query(&q, query);
	(void)rest;
	q.format = type && is_type(type, "text/csv") ? HW_ROWS_CSV : HW_ROWS_NDJSON;
	if (!type || (q.format == HW_ROWS_NDJSON && !is_type(type, "application/x-ndjson")))
		hw_reply_error(req, 415, "the Content-Type must be text/csv or application/x-ndjson");
	else if (why)
		hw_reply_error(req, HTTP_BADREQUEST, why);
	else if (hw_inventory_ready(c, req))
		hw_importer_put(c->importer, req, &q);
}

/* --- GET /v1/inventory --- */

struct page {
	char group[HW_ENTRY_GROUP_MAX + 1], source[HW_ENTRY_SOURCE_MAX + 1];
	int group_index; /* -1: none, or monitor.conf has no such group */
	uint32_t at;
	bool first;
	unsigned limit;
	enum hw_rows_format format;
};

static const char *set_page_key(struct page *g, const struct hw_param *p)
{
	char *end;
	if (strcmp(p->key, "limit") == 0)
		return p->value_len ? hw_query_limit(p->value, p->value_len, &g->limit) : NULL;
	if (strcmp(p->key, "group") == 0) {
		hw_print(g->group, sizeof(g->group), "%s", p->value);
		return p->value_len < sizeof(g->group) ? NULL : "no such group";
	}
	if (strcmp(p->key, "source") == 0) {
		hw_print(g->source, sizeof(g->source), "%s", p->value);
		return p->value_len < sizeof(g->source) ? NULL : "'source' is too long";
	}
	if (strcmp(p->key, "after") != 0)
		return "unknown key in the query: the keys are group, source, after and limit";
	if (!p->value_len)
		return NULL;
	unsigned long n = strtoul(p->value, &end, 10);
	if (*p->value < '0' || *p->value > '9' || *end || n > HW_NIL)
		return "'after' must be the Heartwheel-Next of an earlier page";
	g->at = (uint32_t)n;
	g->first = false;
	return NULL;
}

static const char *read_page_query(struct page *g, const char *query)
{
	struct hw_param p;
	int rc;
	while ((rc = hw_query_next(&query, &p)) > 0) {
		const char *why = set_page_key(g, &p);
		if (why)
			return why;
	}
	return rc == -EINVAL ? "the query is malformed" : rc < 0 ? "a part of the query is too long" : NULL;
}

/* Appends the entry to the page, if it matches the filter. Returns 1 if it does, 0 if not, or -ENOMEM. */
static int write_entry(const struct page *g, const struct hw_expected_view *v, struct evbuffer *body)
{
	char line[HW_LINE_MAX], id[HW_ID_MAX + 1];
	struct hw_expected_entry e;
	if (*g->source && strcmp(g->source, v->source) != 0)
		return 0;
	if (g->group_index >= 0 && v->group != g->group_index) /* without parsing the entry */
		return 0;
	hw_inventory_read(v, &e);
	if (*g->group && strcmp(g->group, e.group) != 0)
		return 0;
	hw_print(id, sizeof(id), "%.*s", (int)v->id.len, v->id.text);
	size_t n = g->format == HW_ROWS_CSV ? hw_rows_print_csv(id, &e, line, sizeof(line))
	                                    : hw_rows_print_json(id, &e, line, sizeof(line));
	return evbuffer_add(body, line, n) < 0 ? -ENOMEM : 1;
}

/* Writes the page, and moves g->at to the next entry. Returns 0 or -ENOMEM. */
static int write_page(struct page *g, const struct hw_expected *e, struct evbuffer *body)
{
	char header[128];
	unsigned found = 0;
	if (g->first && g->format == HW_ROWS_CSV &&
	    evbuffer_add(body, header, hw_rows_print_header(header, sizeof(header))) < 0)
		return -ENOMEM;
	for (unsigned checked = 0; checked < CHECKS_MAX && found < g->limit && g->at < hw_expected_bound(e);
	     checked++, g->at++) {
		if (!hw_expected_is_used(e, g->at))
			continue;
		struct hw_expected_view v = hw_expected_at(e, g->at);
		int rc = write_entry(g, &v, body);
		if (rc < 0)
			return rc;
		found += (unsigned)rc;
	}
	return 0;
}

void hw_serve_inventory(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_control *c = arg;
	struct page g = {.first = true, .limit = HW_LIMIT_DEFAULT};
	const char *why = read_page_query(&g, query_of(req));
	const char *accept = evhttp_find_header(evhttp_request_get_input_headers(req), "Accept");
	char next[16];
	(void)rest;
	g.format = accept && strstr(accept, "text/csv") ? HW_ROWS_CSV : HW_ROWS_NDJSON;
	if (why) {
		hw_reply_error(req, HTTP_BADREQUEST, why);
		return;
	}
	g.group_index = *g.group ? hw_groups_find(hw_monitor_groups(c->monitor), g.group) : -1;
	const struct hw_expected *e = hw_inventory_ready(c, req);
	struct evbuffer *body = e ? evbuffer_new() : NULL;
	if (!e)
		return;
	if (!body || write_page(&g, e, body) < 0) {
		if (body)
			evbuffer_free(body);
		hw_reply_error(req, HTTP_SERVUNAVAIL, "out of memory");
		return;
	}
	if (g.at < hw_expected_bound(e)) {
		hw_print(next, sizeof(next), "%u", (unsigned)g.at);
		evhttp_add_header(evhttp_request_get_output_headers(req), "Heartwheel-Next", next);
	}
	hw_reply_as(req, HTTP_OK, g.format == HW_ROWS_CSV ? "text/csv; charset=utf-8" : "application/x-ndjson", body);
}

/* --- PATCH /v1/devices/ID, DELETE /v1/inventory/ID --- */

/* A change of one entry. It waits until the store has written the change, and then until the table has it. The list
 * owns it. */
struct hw_inventory_change {
	struct hw_inventory_change *next, **prev;
	struct hw_control *c;
	struct evhttp_request *req; /* NULL: its client has disconnected */
	struct event *turn;
	bool in_flight, is_new, orphaned;
	unsigned turns;
	int result; /* enum hw_inventory_result; -1: not known yet */
	bool removes;
	struct hw_expected_entry entry;
	char id[HW_ID_MAX + 1];
};

static void change_free(struct hw_inventory_change *x)
{
	if (x->prev) {
		*x->prev = x->next;
		if (x->next)
			x->next->prev = x->prev;
	}
	if (x->turn)
		event_free(x->turn);
	free(x);
}

static void on_close(struct evhttp_connection *conn, void *arg)
{
	struct hw_inventory_change *x = arg;
	struct evhttp_request *req = x->req;
	(void)conn;
	x->req = NULL;
	/* evhttp frees a request that still has its connection. */
	if (req && !evhttp_request_get_connection(req))
		evhttp_request_free(req);
}

static struct evhttp_request *take_request(struct hw_inventory_change *x)
{
	struct evhttp_request *req = x->req;
	struct evhttp_connection *conn = req ? evhttp_request_get_connection(req) : NULL;
	x->req = NULL;
	if (conn)
		evhttp_connection_set_closecb(conn, NULL, NULL);
	return req;
}

/* Answers with the entry: {"id":...} and its members. */
static void reply_entry(struct evhttp_request *req, int code, const struct hw_inventory_change *x)
{
	char line[HW_LINE_MAX];
	struct evbuffer *body = evbuffer_new();
	if (!body || evbuffer_add(body, line, hw_rows_print_json(x->id, &x->entry, line, sizeof(line))) < 0) {
		if (body)
			evbuffer_free(body);
		hw_reply_error(req, HTTP_SERVUNAVAIL, "out of memory");
		return;
	}
	hw_reply(req, code, body);
}

static void change_end(struct hw_inventory_change *x)
{
	struct evhttp_request *req = take_request(x);
	if (req && x->removes && x->result == HW_INVENTORY_ABSENT)
		hw_reply_error(req, HTTP_NOTFOUND, "no such device in the inventory");
	else if (req && x->removes)
		hw_reply(req, HTTP_NOCONTENT, NULL);
	else if (req)
		reply_entry(req, x->result == HW_INVENTORY_ADDED ? 201 : HTTP_OK, x);
	change_free(x);
}

static void change_fail(struct hw_inventory_change *x, int rc)
{
	struct evhttp_request *req = take_request(x);
	if (req && rc == -EIO)
		hw_reply_error(req, HTTP_INTERNAL, "the store refused the change: see the log of heartwheeld");
	else if (req)
		hw_reply_error(req, HTTP_SERVUNAVAIL, "the store cannot be reached: try again");
	change_free(x);
}

static void wait_ms(struct hw_inventory_change *x, int ms)
{
	struct timeval tv = {0, ms * 1000};
	if (event_add(x->turn, &tv) != 0)
		change_fail(x, -ENOMEM);
}

static void on_change_applied(void *arg, int rc, const uint8_t *results, unsigned n)
{
	struct hw_inventory_change *x = arg;
	x->in_flight = false;
	if (x->orphaned) {
		free(x);
		return;
	}
	if (rc && rc != -EAGAIN) {
		change_fail(x, rc);
		return;
	}
	if (rc == 0 && n == 1)
		x->result = results[0];
	x->turns = rc == 0 ? 0 : x->turns;
	wait_ms(x, rc == 0 ? 0 : SETTLE_MS);
}

/* Whether the table has the change. */
static bool is_settled(const struct hw_inventory_change *x)
{
	char values[HW_ENTRY_JSON_MAX];
	const struct hw_expected *e = x->c->ops->expected(x->c->arg);
	uint32_t k = hw_expected_find(e, x->id, strlen(x->id));
	struct hw_expected_entry entry = x->entry;
	if (x->removes || k == HW_NIL)
		return x->removes && k == HW_NIL;
	entry.source[0] = '\0';
	entry.since_ms = 0;
	size_t n = hw_entry_print(&entry, values, sizeof(values));
	struct hw_expected_view v = hw_expected_at(e, k);
	return v.text.len == n && memcmp(v.text.text, values, n) == 0;
}

static void apply(struct hw_inventory_change *x)
{
	char json[HW_ENTRY_JSON_MAX];
	struct hw_inventory_item item = {.kind = x->removes ? HW_INVENTORY_REMOVE : HW_INVENTORY_SET,
	                                 .id = {x->id, strlen(x->id)}};
	if (!x->removes)
		item.entry = (struct hw_id){json, hw_entry_print(&x->entry, json, sizeof(json))};
	int rc = x->c->ops->inventory_apply(x->c->arg, "local", &item, 1, on_change_applied, x);
	if (rc == 0)
		x->in_flight = true;
	else if (rc == -EAGAIN && ++x->turns <= RETRIES_MAX)
		wait_ms(x, SETTLE_MS);
	else
		change_fail(x, rc);
}

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
	struct hw_inventory_change *x = arg;
	(void)fd, (void)what;
	if (x->result < 0)
		apply(x);
	else if (is_settled(x) || ++x->turns > SETTLE_TURNS)
		change_end(x);
	else
		wait_ms(x, SETTLE_MS);
}

/* Decodes the id in the path. If the id is wrong, answers the request and returns false. */
static bool read_id(struct evhttp_request *req, const char *rest, char id[HW_ID_MAX + 1])
{
	int len = hw_percent_decode(rest, strlen(rest), false, id, HW_ID_MAX + 1);
	if (len > 0 && hw_id_valid(id, (size_t)len))
		return true;
	hw_reply_error(req, HTTP_BADREQUEST, "not a valid device id");
	return false;
}

/* Creates a change of the entry. If that is impossible, answers the request and returns NULL. */
static struct hw_inventory_change *change_new(struct hw_control *c, struct evhttp_request *req, const char *id)
{
	unsigned n = 0;
	for (struct hw_inventory_change *x = c->changes; x; x = x->next, n++)
		if (strcmp(x->id, id) == 0) {
			hw_reply_error(req, 409, "another change of this device is being written: try again");
			return NULL;
		}
	struct hw_inventory_change *x = n < CHANGES_MAX ? calloc(1, sizeof(*x)) : NULL;
	if (x)
		x->turn = event_new(c->base, -1, 0, on_turn, x);
	if (!x || !x->turn) {
		free(x);
		hw_reply_error(req, HTTP_SERVUNAVAIL, "too many changes wait for the store");
		return NULL;
	}
	x->c = c;
	x->req = req;
	x->result = -1;
	hw_print(x->id, sizeof(x->id), "%s", id);
	x->next = c->changes;
	x->prev = &c->changes;
	if (x->next)
		x->next->prev = &x->next;
	c->changes = x;
	return x;
}

static void change_begin(struct hw_inventory_change *x)
{
	evhttp_connection_set_closecb(evhttp_request_get_connection(x->req), on_close, x);
	wait_ms(x, 0);
}

static int check_group(struct hw_control *c, const struct hw_expected_entry *e, struct hw_entry_error *error)
{
	if (!*e->group || hw_groups_find(hw_monitor_groups(c->monitor), e->group) >= 0)
		return 0;
	return hw_entry_wrong(error, "group", "monitor.conf has no group '%s'", e->group);
}

static int check_parents(const struct hw_expected_entry *e, const char *id, struct hw_entry_error *error)
{
	for (unsigned i = 0; i < e->n_parents; i++)
		if (strcmp(e->parents[i], id) == 0)
			return hw_entry_wrong(error, "parent", "'%s' cannot be its own parent", id);
	return 0;
}

/* Reads the body into a patch. */
static int read_patch(struct evhttp_request *req, struct hw_patch *p, struct hw_entry_error *error)
{
	struct evbuffer *in = evhttp_request_get_input_buffer(req);
	size_t len = evbuffer_get_length(in);
	const char *text = len ? (const char *)evbuffer_pullup(in, -1) : "";
	return text ? hw_patch_parse(p, text, len, true, NULL, error) : hw_entry_wrong(error, "", "is too long");
}

/* Sets *out to the entry as it is after this request. If the request is wrong, answers it and returns -EINVAL. */
static int patch_entry(struct hw_control *c, struct evhttp_request *req, const struct hw_expected *e, const char *id,
                       struct hw_expected_entry *out)
{
	char why[sizeof(struct hw_entry_error) + 16];
	struct hw_entry_error error;
	struct hw_patch p;
	uint32_t k = hw_expected_find(e, id, strlen(id));
	hw_entry_init(out);
	if (k != HW_NIL) {
		struct hw_expected_view v = hw_expected_at(e, k);
		hw_inventory_read(&v, out);
	} else {
		strcpy(out->source, "local");
	}
	if (!out->since_ms)
		out->since_ms = c->ops->now(c->arg).wall_ms;
	if (read_patch(req, &p, &error) == 0 && hw_entry_merge(out, &p, &error) == 0 &&
	    check_group(c, out, &error) == 0 && check_parents(out, id, &error) == 0)
		return 0;
	if (*error.column)
		hw_print(why, sizeof(why), "column '%s': %s", error.column, error.message);
	else
		hw_print(why, sizeof(why), "the body: %s", error.message);
	hw_reply_error(req, HTTP_BADREQUEST, why);
	return -EINVAL;
}

void hw_serve_device_patch(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_control *c = arg;
	char id[HW_ID_MAX + 1];
	struct hw_expected_entry entry;
	if (!read_id(req, rest, id))
		return;
	const struct hw_expected *e = hw_inventory_ready(c, req);
	if (!e || patch_entry(c, req, e, id, &entry) < 0)
		return;
	struct hw_inventory_change *x = change_new(c, req, id);
	if (!x)
		return;
	x->entry = entry;
	change_begin(x);
}

void hw_serve_inventory_delete(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_control *c = arg;
	char id[HW_ID_MAX + 1];
	if (!read_id(req, rest, id) || !hw_inventory_ready(c, req))
		return;
	struct hw_inventory_change *x = change_new(c, req, id);
	if (!x)
		return;
	x->removes = true;
	change_begin(x);
}

void hw_inventory_changes_free(struct hw_control *c)
{
	while (c->changes) {
		struct hw_inventory_change *x = c->changes;
		c->changes = x->next;
		x->prev = NULL;
		event_free(x->turn);
		x->orphaned = true;
		if (!x->in_flight)
			free(x);
	}
}

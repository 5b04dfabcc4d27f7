/* SPDX-License-Identifier: MIT */
/*
 * The API: lists and shows incidents. Open ones are in memory. Closed ones, members, and what receivers were sent are
 * read from Redis.
 */
#include <event2/buffer.h>
#include <event2/http.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alert/api/api_parts.h"
#include "alert/follow/fields.h"
#include "heartwheel/print.h"
#include "heartwheel/topic.h"
#include "http/query.h"

#define LIST_DEVICES 10 /* ids that a list shows of an incident */
#define SHOW_DEVICES 100

/* What a request asks for. */
struct query {
	bool closed;
	char group[80];
	int kind; /* enum hw_incident_kind; -1: any */
	char after[64];
	unsigned limit;
};

/* --- the query ---------------------------------------------------------------------------------------------------- */

static const char *read_param(struct query *q, const struct hw_param *p)
{
	enum hw_incident_kind kind;
	if (strcmp(p->key, "limit") == 0)
		return hw_query_limit(p->value, p->value_len, &q->limit);
	if (strcmp(p->key, "state") == 0) {
		q->closed = strcmp(p->value, "closed") == 0;
		return q->closed || strcmp(p->value, "open") == 0 ? NULL : "'state' must be open or closed";
	}
	if (strcmp(p->key, "kind") == 0) {
		if (hw_incident_kind_parse(p->value, &kind) != 0)
			return "'kind' must be device, mass, blind, unseen or task";
		q->kind = (int)kind;
		return NULL;
	}
	if (strcmp(p->key, "group") == 0) {
		hw_print(q->group, sizeof(q->group), "%s", p->value);
		return p->value_len < sizeof(q->group) ? NULL : "'group' is too long";
	}
	if (strcmp(p->key, "after") == 0) {
		hw_print(q->after, sizeof(q->after), "%s", p->value);
		return p->value_len < sizeof(q->after) ? NULL : "'after' is too long";
	}
	return "a parameter is unknown: there are state, group, kind, after and limit";
}

/* Returns false after it has answered 400. */
static bool read_query(struct evhttp_request *req, struct query *q)
{
	const char *text = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(req)), *why = NULL;
	struct hw_param p;
	*q = (struct query){.kind = -1, .limit = HW_LIMIT_DEFAULT};
	while (!why && text && *text) {
		if (hw_query_next(&text, &p) < 0)
			why = "the query is malformed";
		else
			why = read_param(q, &p);
	}
	if (why)
		hw_reply_error(req, HTTP_BADREQUEST, why);
	return !why;
}

static bool is_wanted(const struct query *q, const struct hw_incident_view *v)
{
	return (q->kind < 0 || (int)v->kind == q->kind) &&
	       (!*q->group || (v->group && strcmp(v->group, q->group) == 0));
}

/* --- open ones ---------------------------------------------------------------------------------------------------- */

struct ids {
	const struct query *q;
	char (*at)[HW_INCIDENT_ID + 1];
	size_t n, cap;
	bool failed;
};

static bool collect(void *arg, const struct hw_incident_view *v)
{
	struct ids *t = arg;
	if (v->state != HW_INCIDENT_OPEN || !is_wanted(t->q, v) || (*t->q->after && strcmp(v->id, t->q->after) >= 0))
		return true;
	if (t->n == t->cap) {
		size_t cap = t->cap ? 2 * t->cap : 256;
		void *grown = reallocarray(t->at, cap, sizeof(*t->at));
		t->failed = !grown;
		if (!grown)
			return false;
		t->at = grown;
		t->cap = cap;
	}
	memcpy(t->at[t->n++], v->id, sizeof(*t->at));
	return true;
}

/* The newest first: ids begin with the time. */
static int newest_first(const void *a, const void *b)
{
	return strcmp(b, a);
}

static void list_open(struct hw_alert_app *a, struct evhttp_request *req, const struct query *q)
{
	const struct hw_alert_writer w = hw_alert_writer_of(a);
	struct ids ids = {.q = q};
	struct hw_incident_view v;
	struct hw_json j;
	size_t n;
	hw_incidents_list(a->engine, collect, &ids);
	struct evbuffer *body = ids.failed ? NULL : hw_answer_begin(req, &j);
	if (!body) {
		if (ids.failed)
			hw_reply_error(req, HTTP_SERVUNAVAIL, "out of memory");
		free(ids.at);
		return;
	}
	if (ids.n)
		qsort(ids.at, ids.n, sizeof(*ids.at), newest_first);
	n = ids.n < q->limit ? ids.n : q->limit;
	hw_json_open_member(&j, "incidents", '[');
	for (size_t k = 0; k < n; k++) {
		if (!hw_incidents_find(a->engine, ids.at[k], &v))
			continue;
		hw_json_open(&j, '{');
		hw_alert_incident_write(&w, &j, &v, LIST_DEVICES);
		hw_json_close(&j, '}');
	}
	hw_json_close(&j, ']');
	if (n < ids.n)
		hw_json_text(&j, "next", ids.at[n - 1]);
	free(ids.at);
	hw_answer_end(req, &j, body);
}

/* --- requests that read Redis ------------------------------------------------------------------------------------- */

/* A request that waits for Redis. It is freed when all answers of Redis have arrived, even if its client has
 * disconnected. */
struct read {
	struct hw_alert_app *app;
	struct hw_pending pending;
	struct query q;
	char id[HW_INCIDENT_ID + 1]; /* of the incident that is shown */
	char (*ids)[HW_INCIDENT_ID + 1];
	size_t n, next, awaited;
	bool more;
	struct evbuffer *body;
	struct hw_json j;
};

static void read_free(struct read *r)
{
	if (r->body)
		evbuffer_free(r->body);
	free(r->ids);
	r->app->api->n_waits--;
	free(r);
}

static void read_fail(struct read *r, int code, const char *why)
{
	struct evhttp_request *req = hw_pending_take(&r->pending);
	if (req)
		hw_reply_error(req, code, why);
	read_free(r);
}

static void read_done(struct read *r)
{
	struct evhttp_request *req = hw_pending_take(&r->pending);
	if (req) {
		hw_answer_end(req, &r->j, r->body);
		r->body = NULL;
	}
	read_free(r);
}

static struct read *read_new(struct hw_alert_app *a, struct evhttp_request *req, const struct query *q)
{
	struct read *r = a->api->n_waits < HW_ALERT_WAITS_MAX ? calloc(1, sizeof(*r)) : NULL;
	if (!r) {
		hw_reply_error(req, HTTP_SERVUNAVAIL, "too many requests wait for Redis");
		return NULL;
	}
	r->app = a;
	r->q = *q;
	r->body = evbuffer_new();
	a->api->n_waits++;
	if (r->body) {
		hw_json_begin(&r->j, r->body);
		hw_json_open(&r->j, '{');
		hw_pending_begin(&r->pending, req, NULL, NULL);
		return r;
	}
	hw_reply_error(req, HTTP_SERVUNAVAIL, "out of memory");
	read_free(r);
	return NULL;
}

/* Writes an incident that is read from Redis, unless it is unusable. */
static bool write_stored(struct read *r, const char *id, const redisReply *hash, size_t devices, bool is_listed)
{
	struct hw_incident_view v, present;
	const struct hw_alert_writer w = hw_alert_writer_of(r->app);
	if (!r->app->engine || !hw_alert_incident_read(id, hash, hw_alert_bound_ms(r->app), &v) ||
	    (is_listed && !is_wanted(&r->q, &v)))
		return false;
	if (hw_incidents_find(r->app->engine, id, &present)) {
		v.silenced = present.silenced;
		v.online = present.online;
		v.offline = present.offline;
	}
	if (is_listed)
		hw_json_open(&r->j, '{');
	hw_alert_incident_write(&w, &r->j, &v, devices);
	if (is_listed)
		hw_json_close(&r->j, '}');
	return true;
}

static const char *const no_redis = "Redis is away";

/* --- closed ones -------------------------------------------------------------------------------------------------- */

static void on_closed(void *arg, const redisReply *hash)
{
	struct read *r = arg;
	r->awaited--;
	if (hash && hash->type == REDIS_REPLY_ARRAY)
		write_stored(r, r->ids[r->next], hash, 0, true);
	r->next++;
	if (r->awaited > 0)
		return;
	if (!hash) {
		read_fail(r, HTTP_SERVUNAVAIL, no_redis);
		return;
	}
	hw_json_close(&r->j, ']');
	if (r->more)
		hw_json_text(&r->j, "next", r->ids[r->n - 1]);
	read_done(r);
}

static void on_page(void *arg, const redisReply *reply)
{
	struct read *r = arg;
	char rest[HW_INCIDENT_ID + 16], key[HW_ALERT_KEY_MAX];
	if (!reply || reply->type != REDIS_REPLY_ARRAY) {
		read_fail(r, HTTP_SERVUNAVAIL, no_redis);
		return;
	}
	r->ids = calloc(reply->elements + 1, sizeof(*r->ids));
	for (size_t k = 0; r->ids && k < reply->elements && r->n < r->q.limit; k++)
		if (reply->element[k]->type == REDIS_REPLY_STRING && hw_incident_id_is_valid(reply->element[k]->str))
			strcpy(r->ids[r->n++], reply->element[k]->str);
	r->more = reply->elements >= r->q.limit;
	hw_json_open_member(&r->j, "incidents", '[');
	for (size_t k = 0; k < r->n; k++) {
		snprintf(rest, sizeof(rest), "incident:%s", r->ids[k]);
		hw_alert_store_key(r->app->store, rest, key);
		if (hw_alert_store_ask(r->app->store, on_closed, r, (const char *[]){"HGETALL", key, NULL}) == 0)
			r->awaited++;
	}
	if (r->awaited > 0)
		return;
	hw_json_close(&r->j, ']');
	read_done(r);
}

static void ask_page(struct read *r, long long from)
{
	char key[HW_ALERT_KEY_MAX], first[24], last[24];
	hw_alert_store_key(r->app->store, "incidents:closed", key);
	snprintf(first, sizeof(first), "%lld", from);
	snprintf(last, sizeof(last), "%lld", from + r->q.limit - 1);
	if (hw_alert_store_ask(r->app->store, on_page, r, (const char *[]){"ZREVRANGE", key, first, last, NULL}) != 0)
		read_fail(r, HTTP_SERVUNAVAIL, no_redis);
}

static void on_rank(void *arg, const redisReply *reply)
{
	struct read *r = arg;
	if (reply && reply->type == REDIS_REPLY_INTEGER)
		ask_page(r, reply->integer + 1);
	else if (reply && reply->type == REDIS_REPLY_NIL)
		read_fail(r, HTTP_BADREQUEST, "'after' is no closed incident: it may have been removed");
	else
		read_fail(r, HTTP_SERVUNAVAIL, no_redis);
}

static void list_closed(struct hw_alert_app *a, struct evhttp_request *req, const struct query *q)
{
	char key[HW_ALERT_KEY_MAX];
	struct read *r = read_new(a, req, q);
	if (!r)
		return;
	if (!*q->after) {
		ask_page(r, 0);
		return;
	}
	hw_alert_store_key(a->store, "incidents:closed", key);
	if (hw_alert_store_ask(a->store, on_rank, r, (const char *[]){"ZREVRANK", key, q->after, NULL}) != 0)
		read_fail(r, HTTP_SERVUNAVAIL, no_redis);
}

void hw_serve_incidents(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_alert_app *a = arg;
	struct query q;
	(void)rest;
	if (!hw_alert_api_works(a, req) || !read_query(req, &q))
		return;
	if (q.closed)
		list_closed(a, req, &q);
	else
		list_open(a, req, &q);
}

/* --- not open ----------------------------------------------------------------------------------------------------- */

static void on_ended(void *arg, const redisReply *reply)
{
	if (!reply)
		read_fail(arg, HTTP_SERVUNAVAIL, no_redis);
	else if (reply->type == REDIS_REPLY_INTEGER)
		read_fail(arg, 409, HW_ALERT_CLOSED);
	else
		read_fail(arg, HTTP_NOTFOUND, HW_ALERT_NO_INCIDENT);
}

void hw_alert_api_not_open(struct hw_alert_app *a, struct evhttp_request *req, const char *id)
{
	const struct query none = {.limit = 1};
	char key[HW_ALERT_KEY_MAX];
	if (!hw_incident_id_is_valid(id)) {
		hw_reply_error(req, HTTP_NOTFOUND, HW_ALERT_NO_INCIDENT);
		return;
	}
	struct read *r = read_new(a, req, &none);
	hw_alert_store_key(a->store, "incidents:closed", key);
	if (r && hw_alert_store_ask(a->store, on_ended, r, (const char *[]){"ZREVRANK", key, id, NULL}) != 0)
		read_fail(r, HTTP_SERVUNAVAIL, no_redis);
}

/* --- one ---------------------------------------------------------------------------------------------------------- */

static void write_sent(struct read *r, const redisReply *hash)
{
	hw_json_open_member(&r->j, "sent", '[');
	for (size_t i = 0; i + 1 < hash->elements; i += 2) {
		const redisReply *name = hash->element[i], *value = hash->element[i + 1];
		struct hw_alert_sent s;
		if (name->type != REDIS_REPLY_STRING || strncmp(name->str, "to:", 3) != 0 ||
		    value->type != REDIS_REPLY_STRING || !hw_alert_sent_read(value->str, hw_alert_bound_ms(r->app), &s))
			continue;
		hw_json_open(&r->j, '{');
		hw_json_text(&r->j, "receiver", name->str + 3);
		hw_json_text(&r->j, "last", hw_news_name(s.last));
		hw_json_int(&r->j, "at_ms", s.at_ms);
		hw_json_close(&r->j, '}');
	}
	hw_json_close(&r->j, ']');
}

/* Writes the member's name, the parent whose outage makes it unreachable, and whether a silence covers it. */
static void write_place(struct read *r, const char *id)
{
	struct hw_incidents *engine = r->app->engine;
	const char *name = engine ? hw_incidents_name(engine, id) : NULL,
		   *parent = engine ? hw_incidents_parent(engine, id) : NULL;
	if (name)
		hw_json_text(&r->j, "name", name);
	if (parent)
		hw_json_text(&r->j, "parent", parent);
	if (engine && hw_incidents_is_silenced(engine, id))
		hw_json_bool(&r->j, "silenced", true);
}

/* A page of HSCAN: members with their class. */
static void on_members(void *arg, const redisReply *reply)
{
	struct read *r = arg;
	if (!reply || reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
	    reply->element[0]->type != REDIS_REPLY_STRING || reply->element[1]->type != REDIS_REPLY_ARRAY) {
		read_fail(r, HTTP_SERVUNAVAIL, no_redis);
		return;
	}
	const redisReply *list = reply->element[1];
	hw_json_open_member(&r->j, "members", '[');
	for (size_t i = 0; i + 1 < list->elements; i += 2) {
		const redisReply *id = list->element[i], *value = list->element[i + 1];
		enum hw_incident_class class;
		int64_t since_ms;
		uint64_t seq;
		if (id->type != REDIS_REPLY_STRING || !hw_id_valid(id->str, id->len) ||
		    value->type != REDIS_REPLY_STRING ||
		    !hw_alert_member_read(value->str, hw_alert_bound_ms(r->app), &class, &since_ms, &seq))
			continue;
		hw_json_open(&r->j, '{');
		hw_json_text(&r->j, "id", id->str);
		hw_json_text(&r->j, "class", hw_incident_class_name(class));
		hw_json_int(&r->j, "since_ms", since_ms);
		write_place(r, id->str);
		hw_json_close(&r->j, '}');
	}
	hw_json_close(&r->j, ']');
	if (strcmp(reply->element[0]->str, "0") != 0)
		hw_json_text(&r->j, "next", reply->element[0]->str);
	read_done(r);
}

static void on_incident(void *arg, const redisReply *hash)
{
	struct read *r = arg;
	char rest[HW_INCIDENT_ID + 24], key[HW_ALERT_KEY_MAX], count[24];
	if (!hash || hash->type != REDIS_REPLY_ARRAY) {
		read_fail(r, HTTP_SERVUNAVAIL, no_redis);
		return;
	}
	if (!write_stored(r, r->id, hash, SHOW_DEVICES, false)) {
		read_fail(r, HTTP_NOTFOUND, HW_ALERT_NO_INCIDENT);
		return;
	}
	write_sent(r, hash);
	snprintf(rest, sizeof(rest), "incident:%s:members", r->id);
	hw_alert_store_key(r->app->store, rest, key);
	snprintf(count, sizeof(count), "%u", r->q.limit);
	if (hw_alert_store_ask(r->app->store, on_members, r,
	                       (const char *[]){"HSCAN", key, *r->q.after ? r->q.after : "0", "COUNT", count, NULL}) !=
	    0)
		read_fail(r, HTTP_SERVUNAVAIL, no_redis);
}

void hw_serve_incident(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_alert_app *a = arg;
	struct query q;
	char name[HW_INCIDENT_ID + 16], key[HW_ALERT_KEY_MAX];
	if (!hw_alert_api_works(a, req) || !read_query(req, &q))
		return;
	if (!hw_incident_id_is_valid(rest) || strspn(q.after, "0123456789") != strlen(q.after)) {
		hw_reply_error(req, HTTP_NOTFOUND, HW_ALERT_NO_INCIDENT);
		return;
	}
	struct read *r = read_new(a, req, &q);
	if (!r)
		return;
	strcpy(r->id, rest);
	snprintf(name, sizeof(name), "incident:%s", rest);
	hw_alert_store_key(a->store, name, key);
	if (hw_alert_store_ask(a->store, on_incident, r, (const char *[]){"HGETALL", key, NULL}) != 0)
		read_fail(r, HTTP_SERVUNAVAIL, no_redis);
}

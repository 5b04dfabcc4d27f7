/* SPDX-License-Identifier: MIT */
/* See wills.h. Cost: for each page of device:events one XRANGE, one MGET and one SET. */
#include "tasks/follow/wills.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/http.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/json.h"
#include "heartwheel/topic.h"
#include "http/query.h"
#include "http/reply.h"
#include "link/trouble.h"
#include "stream/commands.h"
#include "stream/entries.h"
#include "tasks/allow.h"
#include "tasks/app.h"

#define PAGE    100
#define KEY_MAX (HW_ID_MAX + 8)
/* The name for the rendezvous hash of the instances: only the first instance reads the stream for wills. */
#define OWNER "wills"

struct hw_tasks_wills {
	struct hw_tasks_app *app;
	struct hw_device_hook hook;
	char events[160];
	bool has_offset, asking, again; /* again: more entries may have come meanwhile */
	enum { KEPT_UNKNOWN, KEPT_NONE, KEPT_OFFSET, KEPT_UNUSABLE } kept; /* what task:wills holds in Redis */
	struct hw_stream_id offset, until;
	char (*ids)[HW_ID_MAX + 1]; /* of the page: the devices that went offline */
	size_t n_ids, out;          /* out: messages on their way to the broker */
	struct sent {
		struct hw_tasks_wills *w;
		bool done; /* the broker has the message or has refused it, or it cannot be published */
	} sent[PAGE];      /* for each device of the page */
	bool failed;       /* a message was lost: the next tick sends all messages again that are not done */
};

static void go_on(struct hw_tasks_wills *w);

/* --- one will ----------------------------------------------------------------------------------------------------- */

struct will {
	struct hw_text topic, payload;
	unsigned qos;
	bool retain;
};

static bool is_key(const struct hw_json_member *m, const char *name)
{
	return m->key_len == strlen(name) && memcmp(m->key, name, m->key_len) == 0;
}

/* Takes a value: unquotes a string, and takes any other value unchanged. `memory` has room for the whole text. */
static bool take_value(const struct hw_json_member *m, char **memory, struct hw_text *out)
{
	*out = (struct hw_text){m->value, m->value_len};
	if (m->value[0] != '"')
		return true;
	int len = hw_json_unquote(m->value, m->value_len, *memory);
	if (len < 0)
		return false;
	*out = (struct hw_text){*memory, (size_t)len};
	*memory += len;
	return true;
}

/* Reads a will. Returns the error, or NULL. */
static const char *read_will(struct will *out, const char *text, size_t len, char *memory)
{
	struct hw_json_member m;
	size_t at = 0;
	*out = (struct will){.topic = {"", 0}, .payload = {"", 0}};
	if (len > HW_TASK_BYTES_MAX)
		return "a will may have at most 64 KiB";
	if (!hw_json_object_valid(text, len))
		return "a will must be a JSON object";
	while (hw_json_object_next(text, len, &at, &m)) {
		if (is_key(&m, "topic") && (m.value[0] != '"' || !take_value(&m, &memory, &out->topic)))
			return "topic must be a string";
		if (is_key(&m, "payload") && !take_value(&m, &memory, &out->payload))
			return "payload must be a text";
		if (is_key(&m, "qos") && (m.value_len != 1 || m.value[0] < '0' || m.value[0] > '2'))
			return "qos must be 0, 1 or 2";
		if (is_key(&m, "qos"))
			out->qos = m.value[0] > '0';
		if (is_key(&m, "retain") && m.value[0] != 't' && m.value[0] != 'f')
			return "retain must be true or false";
		if (is_key(&m, "retain"))
			out->retain = m.value[0] == 't';
	}
	return out->topic.len ? NULL : "topic is missing";
}

/* Returns the device's name over MQTT: its id without id_prefix. */
static struct hw_text name_of(const struct hw_tasks_app *a, struct hw_text id)
{
	size_t len = strlen(a->conf->id_prefix);
	if (id.len <= len || memcmp(id.at, a->conf->id_prefix, len) != 0)
		return id;
	return (struct hw_text){id.at + len, id.len - len};
}

/* Checks a will of this device. Returns what is wrong, or NULL. *w borrows from `memory` and the text. */
static const char *judge(const struct hw_tasks_app *a, struct hw_text id, struct hw_text text, char *memory,
                         struct will *w)
{
	const char *wrong = read_will(w, text.at, text.len, memory);
	if (!wrong && !hw_allow_publish(a->conf, name_of(a, id), w->topic))
		return "no [tasks] publish line permits this topic";
	return wrong;
}

static const char *key_of(struct hw_text id, char key[KEY_MAX])
{
	snprintf(key, KEY_MAX, "s:w:%.*s", (int)id.len, id.at);
	return key;
}

/* --- publishing --------------------------------------------------------------------------------------------------- */

static void end_page(struct hw_tasks_wills *w)
{
	char key[HW_TASKS_KEY_MAX], text[HW_STREAM_ID_TEXT];
	w->asking = false;
	if (w->failed)
		return;
	w->offset = w->until;
	hw_tasks_store_key(w->app->store, "wills", key);
	(void)hw_tasks_store_ask(w->app->store, NULL, NULL,
	                         (const char *[]){"SET", key, hw_stream_id_print(w->offset, text), NULL});
	w->again = true;
	go_on(w);
}

static void on_put(void *arg, enum hw_put what, const char *text)
{
	struct sent *sent = arg;
	struct hw_tasks_wills *w = sent->w;
	w->out--;
	sent->done = what != HW_PUT_LOST;
	w->failed |= !sent->done;
	if (what == HW_PUT_REFUSED)
		hw_log_limited(w->app->log, HW_TASKS_LIMIT_FOLLOW, HW_LOG_WARNING,
		               "follow: the broker refused to publish the will of '%.100s': %.200s; the will is "
		               "dropped; check "
		               "the rights of heartwheel-tasks at the broker",
		               w->ids[sent - w->sent], text);
	if (w->out == 0)
		end_page(w);
}

static void publish(struct hw_tasks_wills *w, size_t i, const redisReply *kept)
{
	const char *id = w->ids[i];
	const struct hw_text name = {id, strlen(id)};
	struct will will;
	char *memory = malloc(kept->len + 1);
	const char *wrong = memory ? judge(w->app, name, (struct hw_text){kept->str, kept->len}, memory, &will) : NULL;
	if (wrong) {
		w->sent[i].done = true;
		w->app->counts.refused[HW_REFUSED_ALLOW]++;
		hw_log_limited(w->app->log, HW_TASKS_LIMIT_FOLLOW, HW_LOG_WARNING,
		               "the will of %.100s was not published: %s", id, wrong);
	} else if (!memory ||
	           hw_tasks_broker_publish(
			   w->app->broker,
			   &(struct hw_tasks_put){.topic = will.topic,
	                                          .payload = will.payload,
	                                          .qos = will.qos,
	                                          .retain = will.retain,
	                                          .subject = hw_tasks_subject((struct hw_text){"will", 4}, name)},
			   on_put, &w->sent[i]) != 0) {
		w->failed = true;
	} else {
		w->out++;
	}
	free(memory);
}

static void on_wills(void *arg, const redisReply *reply)
{
	struct hw_tasks_wills *w = arg;
	w->out = 1; /* 1 for this function, so that the page ends once */
	w->failed = !reply || reply->type != REDIS_REPLY_ARRAY || reply->elements != w->n_ids;
	for (size_t i = 0; !w->failed && i < w->n_ids; i++)
		if (reply->element[i]->type == REDIS_REPLY_STRING && !w->sent[i].done)
			publish(w, i, reply->element[i]);
	if (--w->out == 0)
		end_page(w);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static void ask_wills(struct hw_tasks_wills *w)
{
	char keys[PAGE][KEY_MAX];
	const char *argv[1 + PAGE] = {"MGET"};
	size_t len[1 + PAGE] = {4};
	for (size_t i = 0; i < w->n_ids; i++) {
		argv[1 + i] = key_of((struct hw_text){w->ids[i], strlen(w->ids[i])}, keys[i]);
		len[1 + i] = strlen(keys[i]);
	}
	w->asking = hw_tasks_store_command(w->app->store, on_wills, w, 1 + (int)w->n_ids, argv, len) == 0;
}

static void on_page(void *arg, const redisReply *reply)
{
	struct hw_tasks_wills *w = arg;
	struct hw_device_transition d;
	struct hw_stream_page page;
	int64_t now_ms = hw_tasks_store_now_ms(w->app->store);
	w->asking = false;
	if (!reply || !hw_stream_page_read(reply, w->offset, PAGE, &page))
		return;
	w->n_ids = 0;
	w->until = page.last;
	for (size_t i = 0; i < page.n; i++)
		if (hw_device_transition_read(page.entries[i], now_ms, &d) && d.state.len == 7 &&
		    memcmp(d.state.at, "offline", 7) == 0) { /* device_reader.c counts other entries */
			memcpy(w->ids[w->n_ids], d.device.at, d.device.len);
			w->ids[w->n_ids++][d.device.len] = '\0';
		}
	for (size_t i = 0; i < w->n_ids; i++)
		w->sent[i] = (struct sent){.w = w};
	if (w->n_ids) {
		ask_wills(w);
	} else if (page.n) {
		w->offset = w->until;
		w->again = true;
		go_on(w);
	}
}

static bool ask_stream(struct hw_tasks_wills *w, hw_tasks_answer_fn *fn, struct hw_stream_command *c)
{
	return hw_tasks_store_command(w->app->store, fn, w, c->argc, c->argv, c->len) == 0;
}

static void ask_page(struct hw_tasks_wills *w)
{
	struct hw_stream_command c;
	w->again = false;
	hw_stream_range(&c, w->events, w->offset, PAGE);
	w->asking = ask_stream(w, on_page, &c);
}

/* Handles the offset that is stored in Redis. It is checked in on_end(), when the end of the stream is known too. */
static void on_offset(void *arg, const redisReply *reply)
{
	struct hw_tasks_wills *w = arg;
	w->kept = !reply                                              ? KEPT_UNKNOWN
	          : reply->type == REDIS_REPLY_NIL                    ? KEPT_NONE
	          : reply->type != REDIS_REPLY_ERROR                  ? KEPT_UNUSABLE
	          : hw_trouble_of(reply->str) == HW_TROUBLE_WRONGTYPE ? KEPT_UNUSABLE
	                                                              : KEPT_UNKNOWN;
	if (reply && reply->type == REDIS_REPLY_STRING &&
	    hw_stream_id_parse_loose(reply->str, reply->len, &w->offset) == 0)
		w->kept = KEPT_OFFSET;
}

/* Handles the end of the stream. Reading begins with new entries if no offset is stored, if the offset cannot be
 * used, or if it is after this end. */
static void on_end(void *arg, const redisReply *reply)
{
	struct hw_tasks_wills *w = arg;
	char key[HW_TASKS_KEY_MAX], text[HW_STREAM_ID_TEXT];
	w->asking = false;
	if (!reply || reply->type != REDIS_REPLY_ARRAY || w->kept == KEPT_UNKNOWN)
		return;
	struct hw_stream_id end = hw_stream_newest(reply);
	hw_tasks_store_key(w->app->store, "wills", key);
	if (w->kept != KEPT_OFFSET || hw_stream_id_compare(w->offset, end) > 0) {
		hw_tasks_unusable(w->app, HW_UNUSABLE_OFFSET, w->kept != KEPT_NONE,
		                  "%s is not an offset in %s: wills are published from its end on", key, w->events);
		w->offset = end;
		(void)hw_tasks_store_ask(w->app->store, NULL, NULL,
		                         (const char *[]){"SET", key, hw_stream_id_print(end, text), NULL});
	}
	w->has_offset = w->again = true;
	w->failed = false;
	go_on(w);
}

static void ask_offset(struct hw_tasks_wills *w)
{
	struct hw_stream_command c;
	char key[HW_TASKS_KEY_MAX];
	hw_tasks_store_key(w->app->store, "wills", key);
	hw_stream_range_newest(&c, w->events, 1);
	w->kept = KEPT_UNKNOWN;
	w->asking = hw_tasks_store_ask(w->app->store, on_offset, w, (const char *[]){"GET", key, NULL}) == 0 &&
	            ask_stream(w, on_end, &c);
}

static bool is_ours(const struct hw_tasks_wills *w)
{
	return hw_schedule_rank(w->app->schedule, hw_schedule_receiver(OWNER, strlen(OWNER))) == 0;
}

static void go_on(struct hw_tasks_wills *w)
{
	if (w->asking || w->app->life.stopping || !hw_tasks_store_is_up(w->app->store) ||
	    !hw_tasks_broker_publishes(w->app->broker))
		return;
	if (!is_ours(w)) {
		w->has_offset = false;
		return;
	}
	if (!w->has_offset)
		ask_offset(w);
	else if (w->failed)
		ask_wills(w);
	else if (w->again)
		ask_page(w);
}

static void on_device(void *arg, const struct hw_device_transition *d)
{
	struct hw_tasks_wills *w = arg;
	(void)d;
	w->again = true;
	go_on(w);
}

static void on_up(void *arg)
{
	struct hw_tasks_wills *w = arg;
	w->has_offset = false;
	go_on(w);
}

/* --- setting wills ------------------------------------------------------------------------------------------------ */

/* A device's request that waits for Redis. */
struct giving {
	struct hw_tasks_app *app;
	char sender[HW_ID_MAX + 1], msg_id[HW_TASK_MSG_ID_MAX + 1];
};

static void on_given(void *arg, const redisReply *reply)
{
	struct giving *g = arg;
	struct hw_text sender = {g->sender, strlen(g->sender)}, msg_id = {g->msg_id, strlen(g->msg_id)};
	if (reply && reply->type != REDIS_REPLY_ERROR)
		hw_tasks_inbox_done(g->app->inbox, sender, msg_id, (struct hw_text){"", 0});
	free(g);
}

static int keep(struct hw_tasks_app *a, struct hw_text id, struct hw_text raw, hw_tasks_answer_fn *fn, void *arg)
{
	char key[KEY_MAX];
	const char *argv[] = {raw.len ? "SET" : "DEL", key_of(id, key), raw.at};
	const size_t len[] = {3, strlen(key), raw.len};
	return hw_tasks_store_command(a->store, fn, arg, raw.len ? 3 : 2, argv, len);
}

static void on_request(void *arg, struct hw_text sender, const struct hw_request *q)
{
	struct hw_tasks_app *a = ((struct hw_tasks_wills *)arg)->app;
	char id[HW_ID_MAX + 80];
	int len = snprintf(id, sizeof(id), "%s%.*s", a->conf->id_prefix, (int)sender.len, sender.at);
	struct hw_text text = {id, (size_t)len};
	struct will will;
	char *memory = malloc(q->raw.len + 1);
	const char *wrong = NULL;
	if (len > HW_ID_MAX)
		wrong = "the device's id is too long";
	else if (memory && q->topic.len)
		wrong = judge(a, text, q->raw, memory, &will);
	if (wrong) {
		a->counts.refused[HW_REFUSED_ALLOW]++;
		hw_tasks_inbox_refuse(a->inbox, sender, q->msg_id, wrong);
	}
	struct giving *g = wrong || !memory ? NULL : calloc(1, sizeof(*g));
	free(memory);
	if (!g)
		return;
	g->app = a;
	memcpy(g->sender, sender.at, sender.len);
	memcpy(g->msg_id, q->msg_id.at, q->msg_id.len);
	if (keep(a, text, q->topic.len ? q->raw : (struct hw_text){"", 0}, on_given, g) != 0)
		free(g);
}

/* --- the API ------------------------------------------------------------------------------------------------------ */

static bool take_id(struct evhttp_request *req, const char *rest, char id[HW_ID_MAX + 1], struct hw_text *out)
{
	int len = hw_percent_decode(rest, strlen(rest), false, id, HW_ID_MAX + 1);
	if (len < 0 || !hw_id_valid(id, (size_t)len)) {
		hw_reply_error(req, HTTP_BADREQUEST, "not a valid device id");
		return false;
	}
	*out = (struct hw_text){id, (size_t)len};
	return true;
}

/* A request that waits for Redis. */
struct asked {
	struct hw_tasks_app *app;
	struct evhttp_request *req;
};

/* Returns the request, or NULL if the HTTP server has freed it. */
static struct evhttp_request *request_of(struct asked *q, const redisReply *reply)
{
	struct evhttp_request *req = !reply && q->app->life.stopping ? NULL : q->req;
	free(q);
	return req;
}

static struct asked *asked_new(struct hw_tasks_app *a, struct evhttp_request *req)
{
	struct asked *q = malloc(sizeof(*q));
	if (q)
		*q = (struct asked){a, req};
	else
		hw_reply_error(req, HTTP_SERVUNAVAIL, "out of memory");
	return q;
}

static void answer_change(void *arg, const redisReply *reply)
{
	struct evhttp_request *req = request_of(arg, reply);
	if (!req)
		return;
	if (!reply || reply->type == REDIS_REPLY_ERROR)
		hw_reply_error(req, HTTP_SERVUNAVAIL, "Redis has not stored the will");
	else if (reply->type == REDIS_REPLY_INTEGER && reply->integer == 0)
		hw_reply_error(req, HTTP_NOTFOUND, "the device has no will");
	else
		hw_reply(req, HTTP_NOCONTENT, NULL);
}

static void change(struct hw_tasks_app *a, struct evhttp_request *req, struct hw_text name, struct hw_text raw)
{
	struct asked *q = asked_new(a, req);
	if (q && keep(a, name, raw, answer_change, q) != 0) {
		free(q);
		hw_reply_error(req, HTTP_SERVUNAVAIL, "Redis is away");
	}
}

void hw_tasks_serve_will_put(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_tasks_app *a = arg;
	struct evbuffer *body = evhttp_request_get_input_buffer(req);
	size_t len = evbuffer_get_length(body);
	char id[HW_ID_MAX + 1];
	struct hw_text name;
	struct will will;
	if (!take_id(req, rest, id, &name))
		return;
	if (len > HW_TASK_BYTES_MAX) {
		hw_reply_error(req, HTTP_ENTITYTOOLARGE, "a will may have at most 64 KiB");
		return;
	}
	const char *text = len ? (const char *)evbuffer_pullup(body, -1) : "";
	char *memory = malloc(len + 1);
	const char *wrong =
		memory && text ? judge(a, name, (struct hw_text){text, len}, memory, &will) : "out of memory";
	if (wrong)
		hw_reply_error(req, memory ? HTTP_BADREQUEST : HTTP_SERVUNAVAIL, wrong);
	else
		change(a, req, name, (struct hw_text){text, len});
	free(memory);
}

void hw_tasks_serve_will_delete(void *arg, struct evhttp_request *req, const char *rest)
{
	char id[HW_ID_MAX + 1];
	struct hw_text name;
	if (take_id(req, rest, id, &name))
		change(arg, req, name, (struct hw_text){"", 0});
}

static void answer_will(void *arg, const redisReply *reply)
{
	struct evhttp_request *req = request_of(arg, reply);
	struct evbuffer *body = NULL;
	if (!req)
		return;
	if (!reply || reply->type == REDIS_REPLY_ERROR) {
		hw_reply_error(req, HTTP_SERVUNAVAIL, "Redis gave no usable answer");
	} else if (reply->type != REDIS_REPLY_STRING) {
		hw_reply_error(req, HTTP_NOTFOUND, "the device has no will");
	} else if (!(body = evbuffer_new()) || evbuffer_add(body, reply->str, reply->len) != 0) {
		if (body)
			evbuffer_free(body);
		hw_reply_error(req, HTTP_SERVUNAVAIL, "out of memory");
	} else {
		hw_reply(req, HTTP_OK, body);
	}
}

void hw_tasks_serve_will(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_tasks_app *a = arg;
	char id[HW_ID_MAX + 1], key[KEY_MAX];
	struct hw_text name;
	struct asked *q = take_id(req, rest, id, &name) ? asked_new(a, req) : NULL;
	if (q && hw_tasks_store_ask(a->store, answer_will, q, (const char *[]){"GET", key_of(name, key), NULL}) != 0) {
		free(q);
		hw_reply_error(req, HTTP_SERVUNAVAIL, "Redis is away");
	}
}

/* --- start and stop ----------------------------------------------------------------------------------------------- */

void hw_tasks_wills_tick(struct hw_tasks_wills *w)
{
	w->again = true;
	go_on(w);
}

struct hw_tasks_wills *hw_tasks_wills_new(struct hw_tasks_app *app)
{
	struct hw_tasks_wills *w = calloc(1, sizeof(*w));
	if (w)
		w->ids = calloc(PAGE, sizeof(*w->ids));
	if (!w || !w->ids) {
		free(w);
		return NULL;
	}
	w->app = app;
	snprintf(w->events, sizeof(w->events), "%sevents", app->conf->redis.key_prefix);
	w->hook = (struct hw_device_hook){.on_device = on_device, .on_up = on_up, .arg = w};
	hw_device_reader_join(app->device_reader, &w->hook);
	hw_tasks_inbox_take(app->inbox, HW_REQUEST_WILL, on_request, w);
	return w;
}

void hw_tasks_wills_free(struct hw_tasks_wills *w)
{
	if (!w)
		return;
	free(w->ids);
	free(w);
}

/* SPDX-License-Identifier: MIT */
/*
 * GET /v1/incidents/events: the entries of device:incident_events as server-sent events. Each client has an offset, and
 * its pages are read from Redis, one page at a time for all clients. A client that has all entries checks for new ones
 * after each commit, and each second.
 */
#include <event2/buffer.h>
#include <event2/http.h>
#include <stdlib.h>
#include <string.h>

#include "alert/api/api_parts.h"
#include "alert/follow/fields.h"
#include "http/stream.h"
#include "stream/commands.h"
#include "stream/entries.h"

#define CLIENTS_MAX 64
#define PAGE        200
#define WAITING_MAX (256 * 1024) /* more unread bytes: the client gets no further page */
#define COMMENT_S   15

struct client {
	struct client *next, **prev;
	struct hw_alert_feed *feed;
	struct hw_stream stream;
	struct hw_stream_id at;
	bool begun; /* `at` is known; else it begins at the end of the stream */
	bool due;   /* there may be entries after `at` */
	bool any;   /* there need be no entry at `at` */
};

struct hw_alert_feed {
	struct hw_alert_app *app;
	char key[HW_ALERT_KEY_MAX];
	struct client *first, *served; /* served: the client whose page is being read; NULL: none, or it has
	                                * disconnected */
	bool serving;
	unsigned n, seconds;
};

static void pump(struct hw_alert_feed *f);

static void on_gone(void *arg)
{
	struct client *c = arg;
	*c->prev = c->next;
	if (c->next)
		c->next->prev = c->prev;
	if (c->feed->served == c)
		c->feed->served = NULL;
	c->feed->n--;
	free(c);
}

static void on_drained(void *arg)
{
	pump(((struct client *)arg)->feed);
}

static const struct hw_stream_ops stream_ops = {on_drained, on_gone};

/* --- pages -------------------------------------------------------------------------------------------------------- */

static void write_entry(struct evbuffer *out, const redisReply *entry)
{
	char id[HW_STREAM_ID_TEXT];
	struct hw_stream_id at;
	struct hw_json j;
	const redisReply *fields = hw_stream_entry_fields(entry);
	if (!fields || !hw_stream_entry_id(entry, &at))
		return;
	hw_stream_event(out, "incident", hw_stream_id_print(at, id));
	hw_json_begin(&j, out);
	hw_json_open(&j, '{');
	for (const char *const *name = (const char *const[]){"id", "what", "by", "receiver", "kind", "group", "device",
	                                                     "silence", "sentence", NULL};
	     *name; name++) {
		const char *text = hw_field_words(fields, *name, HW_INCIDENT_TEXT);
		if (text)
			hw_json_text(&j, *name, text);
	}
	for (const char *const *name = (const char *const[]){"at_ms", "from_ms", "to_ms", NULL}; *name; name++) {
		int64_t ms = hw_field_number(fields, *name, 0, INT64_MAX / 2, -1);
		if (ms >= 0)
			hw_json_int(&j, *name, ms);
	}
	hw_json_close(&j, '}');
	hw_json_end(&j);
	hw_stream_event_end(out);
}

/* Writes the event `reset`: entries after the client's offset were trimmed, so the client must read the incidents
 * again. */
static void write_reset(struct evbuffer *out, struct hw_stream_id at)
{
	char id[HW_STREAM_ID_TEXT];
	hw_stream_event(out, "reset", hw_stream_id_print(at, id));
	evbuffer_add(out, "{}", 2);
	hw_stream_event_end(out);
}

static void send_page(struct client *c, const redisReply *reply)
{
	struct hw_stream_page page;
	struct evbuffer *out = evbuffer_new();
	if (!out || !hw_stream_page_read(reply, c->at, PAGE, &page)) {
		if (out)
			evbuffer_free(out);
		return;
	}
	if (page.gone && !c->any)
		write_reset(out, page.last);
	c->any = c->any && page.n == 0;
	for (size_t k = 0; k < page.n; k++)
		write_entry(out, page.entries[k]);
	c->at = page.last;
	c->due = page.more;
	if (evbuffer_get_length(out) > 0)
		(void)hw_stream_send(&c->stream, out);
	evbuffer_free(out);
}

static void on_answer(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_alert_feed *f = arg;
	const redisReply *reply = answer;
	struct client *c = f->served;
	(void)ac;
	f->serving = false;
	f->served = NULL;
	if (!reply)
		return;
	hw_redis_link_got(hw_alert_store_link(f->app->store));
	if (reply->type != REDIS_REPLY_ARRAY)
		return; /* the tick repeats it */
	if (c && !c->begun) {
		c->at = hw_stream_newest(reply);
		c->begun = true;
		c->due = false;
	} else if (c) {
		send_page(c, reply);
	}
	pump(f);
}

static void pump(struct hw_alert_feed *f)
{
	struct hw_stream_command command;
	struct client *c = f->first;
	if (f->serving || !hw_alert_store_is_up(f->app->store))
		return;
	while (c && (!c->due || hw_stream_waiting(&c->stream) > WAITING_MAX))
		c = c->next;
	if (!c)
		return;
	if (c->begun)
		hw_stream_range(&command, f->key, c->at, PAGE);
	else
		hw_stream_range_newest(&command, f->key, 1);
	f->served = c;
	f->serving = hw_redis_link_command(hw_alert_store_link(f->app->store), on_answer, f, command.argc, command.argv,
	                                   command.len) == 0;
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

void hw_serve_incident_events(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_alert_app *a = arg;
	struct hw_alert_feed *f = a->api->feed;
	struct hw_stream_id at = {0, 0};
	struct hw_param p;
	const char *after, *why = hw_stream_place(req, &after, &p);
	bool resumes = !why && after && *after;
	(void)rest;
	if (resumes && hw_stream_id_parse_loose(after, strlen(after), &at) < 0)
		why = "'after' must be the id of an event, or a time";
	if (why) {
		hw_reply_error(req, HTTP_BADREQUEST, why);
		return;
	}
	if (!hw_alert_api_works(a, req))
		return;
	if (hw_is_head(req)) {
		hw_stream_head(req);
		return;
	}
	struct client *c = f->n < CLIENTS_MAX ? calloc(1, sizeof(*c)) : NULL;
	if (!c) {
		hw_reply_error(req, HTTP_SERVUNAVAIL, "the limit of clients that read the events is reached");
		return;
	}
	*c = (struct client){.next = f->first, .prev = &f->first, .feed = f, .at = at, .begun = resumes, .due = true};
	c->any = resumes && !strchr(after, '-');
	if (f->first)
		f->first->prev = &c->next;
	f->first = c;
	f->n++;
	hw_stream_begin(&c->stream, req, &stream_ops, c);
	pump(f);
}

void hw_alert_feed_poll(struct hw_alert_feed *f)
{
	for (struct client *c = f->first; c; c = c->next)
		c->due = true;
	pump(f);
}

void hw_alert_feed_tick(struct hw_alert_feed *f)
{
	if (++f->seconds % COMMENT_S == 0)
		for (struct client *c = f->first, *next; c; c = next) {
			next = c->next;
			(void)hw_stream_comment(&c->stream);
		}
	hw_alert_feed_poll(f);
}

unsigned hw_alert_feed_clients(const struct hw_alert_feed *f)
{
	return f->n;
}

struct hw_alert_feed *hw_alert_feed_new(struct hw_alert_app *app)
{
	struct hw_alert_feed *f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->app = app;
	hw_alert_store_key(app->store, "incident_events", f->key);
	return f;
}

void hw_alert_feed_free(struct hw_alert_feed *f)
{
	free(f);
}

/* SPDX-License-Identifier: MIT */
/*
 * See call.h. A call is registered, then published, and then waits. It ends once: by an answer, by its timeout, by a
 * failure, or because its client has disconnected. It is freed when no callback is pending. If calls of this instance
 * wait for a received message, they get it at once. Redis is read only for calls of other instances.
 */
#include "tasks/api/call.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "heartwheel/json.h"
#include "heartwheel/json_writer.h"
#include "link/clock.h"
#include "link/trouble.h"
#include "tasks/allow.h"
#include "tasks/api/api_parts.h"
#include "tasks/queue/places.h"

#define CB_LEN     32
#define CALLBACK   "mqtt:callback:"
#define TOPIC      "mqtt:topic:"
#define NODE       "mqtt:node:"
#define KEPT       3 /* lifetime of a callback, in timeouts */
#define TOPIC_TEXT 1200
#define PING_MS    2000 /* how often this instance publishes to its own channel, to check that it receives */
#define SILENT_MS  7000

/* The script that registers a call. The set of a topic must live as long as each of its members, so it gets the
 * longest TTL of its members. */
static const char register_text[] =
	"redis.call('HSET', KEYS[1], 'callbackId', ARGV[1], 'topic', ARGV[2], 'nodeId', ARGV[3], 'timeoutMs', ARGV[4],"
	" 'registerTime', ARGV[6]) redis.call('PEXPIRE', KEYS[1], ARGV[5]) redis.call('SADD', KEYS[2], ARGV[1])"
	" if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[5]) then redis.call('PEXPIRE', KEYS[2], ARGV[5]) end return 1";

struct call {
	struct call *next, **prev;
	struct hw_tasks_call *all;
	struct hw_pending pending;
	struct event *timer;
	unsigned n_open; /* callbacks that are still to come */
	bool ended, out; /* out: handed to the broker */
	char id[CB_LEN + 1];
	int64_t begun_ms;
	struct hw_text topic, reply, payload;
	unsigned qos;
	unsigned timeout_ms;
	char text[]; /* topic, reply, payload */
};

struct hw_tasks_call {
	struct hw_tasks_app *app;
	struct hw_redis_link ear; /* receives mqtt:node:NODE_ID */
	bool has_ear, hears;
	int64_t heard_ms, pinged_ms;
	struct call *first;
	struct hw_eval eval; /* of look_up() */
	unsigned n, n_look_ups;
	struct hw_call_stats stats;
};

/* --- the end of a call -------------------------------------------------------------------------------------------- */

static void release(struct call *c)
{
	if (c->n_open > 0 || !c->ended)
		return;
	if (c->timer)
		event_free(c->timer);
	free(c);
}

static void unregister(const struct call *c)
{
	char callback[sizeof(CALLBACK) + CB_LEN], topic[TOPIC_TEXT];
	struct hw_tasks_store *s = c->all->app->store;
	snprintf(callback, sizeof(callback), CALLBACK "%s", c->id);
	snprintf(topic, sizeof(topic), TOPIC "%.*s", (int)c->reply.len, c->reply.at);
	if (!hw_tasks_store_is_up(s))
		return; /* the entry of the call expires by itself */
	(void)hw_tasks_store_ask(s, NULL, NULL, (const char *[]){"DEL", callback, NULL});
	(void)hw_tasks_store_ask(s, NULL, NULL, (const char *[]){"SREM", topic, c->id, NULL});
}

/* Ends the call. Returns the request, which the caller must answer now; or NULL. */
static struct evhttp_request *end(struct call *c)
{
	c->ended = true;
	c->all->n--;
	*c->prev = c->next;
	if (c->next)
		c->next->prev = c->prev;
	if (c->timer)
		event_del(c->timer);
	unregister(c);
	return hw_pending_take(&c->pending);
}

static void on_gone(void *arg)
{
	struct call *c = arg;
	(void)end(c);
	release(c);
}

static void fail(struct call *c, int code, const char *why)
{
	if (c->ended)
		return;
	struct evhttp_request *req = end(c);
	c->all->stats.failed += code != 504;
	c->all->stats.timed_out += code == 504;
	if (req)
		hw_reply_error(req, code, why);
}

static void on_time(evutil_socket_t fd, short what, void *arg)
{
	struct call *c = arg;
	(void)fd, (void)what;
	fail(c, 504, "no answer came in time");
	release(c);
}

/* Answers the call. An answer that is JSON is written unchanged, any other text as a string. */
static void answer(struct call *c, struct hw_text body)
{
	struct hw_json j;
	struct evbuffer *out;
	if (c->ended)
		return;
	struct evhttp_request *req = end(c);
	c->all->stats.answered++;
	if (req && (out = hw_answer_begin(req, &j))) {
		hw_json_bytes(&j, "topic", c->reply.at, c->reply.len);
		hw_json_int(&j, "took_ms", hw_clock_mono().ns / HW_NS_PER_MS - c->begun_ms);
		if (hw_json_valid(body.at, body.len))
			hw_json_raw(&j, "payload", body.at, body.len);
		else
			hw_json_bytes(&j, "payload", body.at, body.len);
		hw_answer_end(req, &j, out);
	}
}

/* --- received messages -------------------------------------------------------------------------------------------- */

static void on_looked_up(void *arg, const redisReply *reply)
{
	struct hw_tasks_call *all = arg;
	(void)reply;
	all->n_look_ups--;
}

static int look_up(struct hw_tasks_call *all, struct hw_text topic, struct hw_text body)
{
	char key[TOPIC_TEXT + HW_TASK_TEXT];
	int n = snprintf(key, sizeof(key), TOPIC "%.*s", (int)topic.len, topic.at);
	if (n < 0 || (size_t)n >= sizeof(key))
		return -EINVAL;
	hw_eval_begin(&all->eval);
	hw_eval_key(&all->eval, key, (size_t)n);
	hw_eval_put_text(&all->eval, HW_AT_CALLBACK_KEYS, CALLBACK);
	hw_eval_put_text(&all->eval, HW_AT_CALLBACK_CHANNELS, NODE);
	hw_eval_put_text(&all->eval, HW_AT_CALLBACK_NODE, all->app->rules.node);
	hw_eval_put(&all->eval, HW_AT_CALLBACK_BODY, body.at, body.len);
	return hw_tasks_store_call(all->app->store, HW_TASKS_CALLBACK, &all->eval, on_looked_up, all);
}

static void report(struct hw_tasks_call *all, struct hw_text topic, struct hw_text body)
{
	struct call *next;
	for (struct call *c = all->first; c; c = next) {
		next = c->next;
		/* Skips calls for another topic, and calls whose message is not published yet: an earlier message
		 * cannot be the answer. */
		if (!c->out || c->reply.len != topic.len || memcmp(c->reply.at, topic.at, topic.len) != 0)
			continue;
		answer(c, body);
		release(c);
	}
	if (all->n_look_ups >= HW_CALL_LOOK_UPS_MAX)
		all->stats.unlooked++;
	else if (look_up(all, topic, body) == 0)
		all->n_look_ups++;
}

/* Whether the bytes are the same after they were quoted as JSON and unquoted again. */
static bool is_text(struct hw_text t)
{
	size_t n = hw_json_quote(t.len ? t.at : "", t.len, NULL, 0);
	char *quoted = malloc(2 * n + 2);
	if (!quoted)
		return false;
	hw_json_quote(t.len ? t.at : "", t.len, quoted, n + 1);
	int len = hw_json_unquote(quoted, n, quoted + n + 1);
	bool same = len >= 0 && (size_t)len == t.len && (!t.len || memcmp(quoted + n + 1, t.at, t.len) == 0);
	free(quoted);
	return same;
}

/* Bytes that are no text are passed on as base64. */
static void on_message(void *arg, const struct hw_tasks_got *m)
{
	struct hw_tasks_call *all = arg;
	if (m->retained || m->truncated)
		return;
	all->stats.heard++;
	if (is_text(m->payload)) {
		report(all, m->topic, (struct hw_text){m->payload.len ? m->payload.at : "", m->payload.len});
		return;
	}
	unsigned char *text = malloc(m->payload.len / 3 * 4 + 8);
	if (!text)
		return;
	int n = EVP_EncodeBlock(text, (const unsigned char *)m->payload.at, (int)m->payload.len);
	report(all, m->topic, (struct hw_text){(char *)text, (size_t)n});
	free(text);
}

/* --- messages from other instances -------------------------------------------------------------------------------- */

static struct call *find(const struct hw_tasks_call *all, const char *id, size_t len)
{
	for (struct call *c = all->first; c; c = c->next)
		if (len == CB_LEN && memcmp(c->id, id, CB_LEN) == 0)
			return c;
	return NULL;
}

/* Finds a member that is a string, and unquotes it into `memory`, which has room for the whole object. Returns false if
 * there is none. */
static bool take_text(const char *object, size_t len, const char *name, char *memory, struct hw_text *out)
{
	struct hw_json_member m;
	size_t at = 0;
	while (hw_json_object_next(object, len, &at, &m))
		if (m.key_len == strlen(name) && memcmp(m.key, name, m.key_len) == 0 && m.value[0] == '"') {
			int n = hw_json_unquote(m.value, m.value_len, memory);
			*out = (struct hw_text){memory, n < 0 ? 0 : (size_t)n};
			return n >= 0;
		}
	return false;
}

static void on_reported(struct hw_tasks_call *all, const char *text, size_t len)
{
	struct hw_text id, body;
	char *memory = hw_json_object_valid(text, len) ? malloc(2 * len) : NULL;
	if (memory && take_text(text, len, "callbackId", memory, &id) &&
	    take_text(text, len, "messageBody", memory + len, &body)) {
		struct call *c = find(all, id.at, id.len);
		if (c && c->out) {
			answer(c, body);
			release(c);
		}
	}
	free(memory);
}

static void on_ear(redisAsyncContext *ac, void *reply_, void *arg)
{
	struct hw_tasks_call *all = arg;
	const redisReply *reply = reply_;
	(void)ac;
	if (!reply)
		return;
	hw_redis_link_got(&all->ear);
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3)
		return;
	all->heard_ms = hw_clock_mono().ns / HW_NS_PER_MS;
	const redisReply *what = reply->element[2];
	if (what->type == REDIS_REPLY_INTEGER) { /* subscribed */
		all->hears = true;
		hw_redis_link_settled(&all->ear);
	} else if (what->type == REDIS_REPLY_STRING) {
		on_reported(all, what->str, what->len);
	}
}

static void on_ear_ready(void *arg)
{
	struct hw_tasks_call *all = arg;
	char channel[256];
	snprintf(channel, sizeof(channel), NODE "%s", all->app->rules.node);
	const char *argv[] = {"SUBSCRIBE", channel};
	const size_t len[] = {9, strlen(channel)};
	all->heard_ms = hw_clock_mono().ns / HW_NS_PER_MS;
	if (hw_redis_link_command(&all->ear, on_ear, all, 2, argv, len) != 0)
		hw_redis_link_fail(&all->ear, "out of memory");
}

static void on_ear_lost(void *arg, const char *why)
{
	struct hw_tasks_call *all = arg;
	if (all->hears)
		hw_log_limited(all->app->log, HW_TASKS_LIMIT_CALL, HW_LOG_WARNING,
		               "calls: this instance cannot read the answers that arrive at other instances: %s", why);
	all->hears = false;
}

static const struct hw_redis_link_ops ear_ops = {on_ear_ready, on_ear_lost, NULL};

/* Called each second. Gives the connection up if nothing was received for SILENT_MS, because a connection that only
 * receives does not notice when it breaks. */
void hw_tasks_call_tick(struct hw_tasks_call *all)
{
	int64_t now_ms = hw_clock_mono().ns / HW_NS_PER_MS;
	char channel[256];
	if (!all->has_ear)
		return;
	hw_redis_link_tick(&all->ear);
	if (!hw_tasks_store_is_up(all->app->store)) {
		all->heard_ms = now_ms;
		return;
	}
	if (all->hears && now_ms - all->heard_ms > SILENT_MS) {
		all->hears = false;
		hw_redis_link_fail(&all->ear, "no message arrives on its channel");
		return;
	}
	if (now_ms - all->pinged_ms < PING_MS)
		return;
	all->pinged_ms = now_ms;
	snprintf(channel, sizeof(channel), NODE "%s", all->app->rules.node);
	(void)hw_tasks_store_ask(all->app->store, NULL, NULL, (const char *[]){"PUBLISH", channel, "{}", NULL});
}

/* --- a call ------------------------------------------------------------------------------------------------------- */

static void on_put(void *arg, enum hw_put what, const char *text)
{
	struct call *c = arg;
	char why[300];
	c->n_open--;
	if (what == HW_PUT_NOBODY) {
		fail(c, 504, "no client subscribes to the topic");
	} else if (what == HW_PUT_REFUSED) {
		snprintf(why, sizeof(why), "the broker refused the message: %.200s", text ? text : "");
		fail(c, 502, why);
	} else if (what == HW_PUT_LOST) {
		fail(c, HTTP_SERVUNAVAIL,
		     "the broker went away before it acknowledged: the message may have been published");
	}
	release(c);
}

static void publish(struct call *c)
{
	const struct hw_tasks_put put = {.topic = c->topic,
	                                 .payload = c->payload,
	                                 .qos = c->qos > 1 ? 1 : c->qos,
	                                 .expiry_s = (c->timeout_ms + 999) / 1000};
	int rc = c->all->app->broker ? hw_tasks_broker_publish(c->all->app->broker, &put, on_put, c) : -ENOTCONN;
	c->out = rc == 0;
	if (rc == 0)
		c->n_open++;
	else
		fail(c, HTTP_SERVUNAVAIL,
		     rc == -EBUSY ? "too many messages are waiting for the broker" : "the broker is away");
}

static void on_registered(void *arg, const redisReply *reply)
{
	struct call *c = arg;
	char why[HW_TROUBLE_TEXT];
	c->n_open--;
	if (c->ended) {
		if (reply)
			unregister(c); /* the call ended before it was registered */
	} else if (!reply) {
		fail(c, HTTP_SERVUNAVAIL, "Redis went away: nothing was published");
	} else if (reply->type == REDIS_REPLY_ERROR) {
		hw_trouble_text(reply->str, why);
		fail(c, HTTP_SERVUNAVAIL, why);
	} else {
		publish(c);
	}
	release(c);
}

static int enroll(struct call *c)
{
	char callback[sizeof(CALLBACK) + CB_LEN], topic[TOPIC_TEXT], timeout[24], kept[24], now[24];
	snprintf(callback, sizeof(callback), CALLBACK "%s", c->id);
	snprintf(topic, sizeof(topic), TOPIC "%.*s", (int)c->reply.len, c->reply.at);
	snprintf(timeout, sizeof(timeout), "%u", c->timeout_ms);
	snprintf(kept, sizeof(kept), "%u", c->timeout_ms * KEPT);
	snprintf(now, sizeof(now), "%lld", (long long)hw_tasks_store_now_ms(c->all->app->store));
	return hw_tasks_store_ask(c->all->app->store, on_registered, c,
	                          (const char *[]){"EVAL", register_text, "2", callback, topic, c->id,
	                                           topic + sizeof(TOPIC) - 1, c->all->app->rules.node, timeout, kept,
	                                           now, NULL});
}

static char *copy_text(char *to, struct hw_text *out, struct hw_text from)
{
	if (from.len)
		memcpy(to, from.at, from.len);
	*out = (struct hw_text){to, from.len};
	return to + from.len;
}

static struct call *call_new(struct hw_tasks_call *all, const struct hw_call_request *q)
{
	unsigned char random[CB_LEN / 2];
	struct call *c = malloc(sizeof(*c) + q->topic.len + q->reply.len + q->payload.len);
	if (!c || getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
		free(c);
		return NULL;
	}
	*c = (struct call){.next = all->first, .prev = &all->first, .all = all};
	c->begun_ms = hw_clock_mono().ns / HW_NS_PER_MS;
	c->timeout_ms = (unsigned)q->timeout_ms;
	c->qos = q->qos;
	(void)copy_text(copy_text(copy_text(c->text, &c->topic, q->topic), &c->reply, q->reply), &c->payload,
	                q->payload);
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(c->id + 2 * i, 3, "%02x", random[i]);
	c->timer = evtimer_new(all->app->loop.base, on_time, c);
	const struct timeval tv = {c->timeout_ms / 1000, c->timeout_ms % 1000 * 1000};
	if (!c->timer || event_add(c->timer, &tv) != 0) {
		if (c->timer)
			event_free(c->timer);
		free(c);
		return NULL;
	}
	if (all->first)
		all->first->prev = &c->next;
	all->first = c;
	all->n++;
	return c;
}

/* Returns what prevents the call, with the HTTP status in *code. NULL: the call is possible. */
static const char *not_now(const struct hw_tasks_call *all, const struct hw_call_request *q, struct hw_text sender,
                           int *code)
{
	const struct hw_tasks_settings *s = all->app->conf;
	*code = 403;
	if (!hw_allow_publish(s, sender, q->topic))
		return "no [tasks] publish line permits this topic";
	if (!hw_allow_topic(s->answers, s->n_answers, (struct hw_text){"", 0}, q->reply))
		return "reply must be a topic within [tasks] answers";
	*code = HTTP_SERVUNAVAIL;
	if (!hw_tasks_broker_publishes(all->app->broker) || !hw_tasks_broker_reads(all->app->broker))
		return "the broker is away";
	if (s->several && !all->hears)
		return "the channel for answers that other instances receive is not ready yet";
	return all->n >= HW_CALLS_MAX ? "too many calls are waiting" : NULL;
}

static void begin(struct hw_tasks_app *a, struct evhttp_request *req, const struct hw_call_request *q)
{
	char sender[HW_API_SENDER_MAX];
	int code;
	const char *why = not_now(a->call, q, hw_api_sender(req, sender), &code);
	if (why) {
		hw_reply_error(req, code, why);
		return;
	}
	struct call *c = call_new(a->call, q);
	if (!c) {
		hw_reply_error(req, HTTP_SERVUNAVAIL, "out of memory");
		return;
	}
	hw_pending_begin(&c->pending, req, on_gone, c);
	int rc = enroll(c);
	if (rc == 0) {
		c->n_open++;
		return;
	}
	fail(c, HTTP_SERVUNAVAIL, hw_api_dispatch_error(a, rc));
	release(c);
}

void hw_serve_task_call(void *arg, struct evhttp_request *req, const char *rest)
{
	struct evbuffer *in = evhttp_request_get_input_buffer(req);
	size_t len = evbuffer_get_length(in);
	const char *why = "the message is not a JSON object",
		   *text = len ? (const char *)evbuffer_pullup(in, -1) : NULL;
	struct hw_call_request q = {.memory = NULL};
	(void)rest;
	int rc = text ? hw_call_request_read(&q, text, len, &why) : -EINVAL;
	if (rc)
		hw_reply_error(req, rc == -EINVAL ? HTTP_BADREQUEST : HTTP_SERVUNAVAIL,
		               rc == -EINVAL ? why : "out of memory");
	else
		begin(arg, req, &q);
	hw_call_request_fini(&q);
}

/* --- start and stop ----------------------------------------------------------------------------------------------- */

void hw_call_stats(const struct hw_tasks_call *c, struct hw_call_stats *out)
{
	*out = c->stats;
}

unsigned hw_call_waiting(const struct hw_tasks_call *c)
{
	return c->n;
}

static int listen_to_all(struct hw_tasks_call *all)
{
	const struct hw_tasks_settings *s = all->app->conf;
	struct hw_redis_link_conf link = {.at = hw_redis_address_of(&s->redis, all->app->life.redis_password),
	                                  .seed = (uint64_t)(uintptr_t)all ^ (uint64_t)getpid(),
	                                  .subscriber = true};
	for (size_t i = 0; i < s->n_answers; i++) {
		int rc = hw_tasks_broker_listen(all->app->broker, s->answers[i], false, on_message, all);
		if (rc)
			return rc;
	}
	if (s->n_answers == 0)
		return 0;
	all->has_ear = hw_redis_link_init(&all->ear, all->app->loop.base, &link, &ear_ops, all) == 0;
	return all->has_ear ? 0 : -ENOMEM;
}

struct hw_tasks_call *hw_tasks_call_new(struct hw_tasks_app *app)
{
	struct hw_tasks_call *all = calloc(1, sizeof(*all));
	if (!all)
		return NULL;
	all->app = app;
	if (listen_to_all(all) == 0)
		return all;
	hw_tasks_call_free(all);
	return NULL;
}

void hw_tasks_call_free(struct hw_tasks_call *all)
{
	if (!all)
		return;
	if (all->has_ear)
		hw_redis_link_fini(&all->ear);
	hw_eval_fini(&all->eval);
	free(all);
}

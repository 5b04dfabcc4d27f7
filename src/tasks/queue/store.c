/* SPDX-License-Identifier: MIT */
/* See store.h. Cost when idle: two small commands in a second, or six with several instances. */
#include "tasks/queue/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "link/clock.h"
#include "link/scripts.h"
#include "link/trouble.h"
#include "tasks/app.h"

#define RUN_ID_TTL_S "10" /* TTL of task:node:NODE_ID, which is written each second */
#define LIVE_MS      10000
#define REFUSES_MS   5000 /* a refusal counts for this long; a refused write is tried again each second */
#define RUN_ID_LEN   32
#define WORDS_MAX    16

#define GREATEST_ID "18446744073709551615-18446744073709551615" /* greatest id of an entry */

struct hw_tasks_store {
	struct hw_tasks_app *app;
	struct hw_redis_link link;
	struct hw_scripts scripts;
	struct hw_troubles troubles;
	unsigned char secret[HW_TASKS_SECRET_LEN];
	bool has_secret, linked, loaded, greeted, up;
	bool run_id_written;                                    /* the run id was written on this connection */
	int64_t run_id_written_ms;                              /* monotonic: when the run id was last written */
	int64_t reported_same_ms, reported_type_ms, refused_ms; /* monotonic; 0: never */
	int64_t wrong_type_ms; /* monotonic: when Redis last returned WRONGTYPE, for any key */
	char run_id[RUN_ID_LEN + 1];
	char why[HW_TROUBLE_TEXT + 200];
};

/* --- commands ----------------------------------------------------------------------------------------------------- */

/* A request that waits for its reply. */
struct asked {
	struct hw_tasks_store *s;
	hw_tasks_answer_fn *fn;
	void *arg;
	bool aside;
};

/* Records that Redis refuses all writes for now. */
static void refuse(struct hw_tasks_store *s, const char *why)
{
	snprintf(s->why, sizeof(s->why), "%s", why);
	s->refused_ms = hw_clock_mono().ns / HW_NS_PER_MS;
}

void hw_tasks_store_trouble(struct hw_tasks_store *s, const char *error)
{
	enum hw_trouble k = hw_trouble_of(error);
	char text[HW_TROUBLE_TEXT];
	if (k == HW_TROUBLE_NOSCRIPT) {
		s->loaded = false;
		hw_scripts_load(&s->scripts);
		return;
	}
	if (k == HW_TROUBLE_WRONGTYPE)
		s->wrong_type_ms = hw_clock_mono().ns / HW_NS_PER_MS;
	hw_trouble_text(error, text);
	if (hw_trouble_is_global(k))
		refuse(s, text);
	if (hw_trouble_due(&s->troubles, k, hw_clock_mono().ns / HW_NS_PER_MS))
		hw_log(s->app->log, HW_LOG_ERROR, "Redis: %s", text);
	/* Closes the connection if the server has become a replica; a new connection asks the Sentinels for the
	 * present master. */
	if (k == HW_TROUBLE_READONLY && *s->app->conf->redis.sentinels)
		hw_redis_link_fail(&s->link, error);
}

static void on_answer(redisAsyncContext *ac, void *answer, void *arg)
{
	struct asked *q = arg;
	struct hw_tasks_store *s = q->s;
	const redisReply *reply = answer;
	(void)ac;
	if (reply)
		hw_redis_link_got(&s->link);
	if (q->fn)
		q->fn(q->arg, reply);
	if (reply && reply->type == REDIS_REPLY_ERROR && !q->aside)
		hw_tasks_store_trouble(s, reply->str);
	free(q);
}

void hw_tasks_store_fail(struct hw_tasks_store *s, const char *why)
{
	hw_redis_link_fail(&s->link, why);
}

static struct asked *asked_new(struct hw_tasks_store *s, hw_tasks_answer_fn *fn, void *arg)
{
	struct asked *q = malloc(sizeof(*q));
	if (q)
		*q = (struct asked){s, fn, arg, false};
	return q;
}

static int send_command(struct hw_tasks_store *s, struct asked *q, int argc, const char **argv, const size_t *len)
{
	int rc = q ? hw_redis_link_command(&s->link, on_answer, q, argc, argv, len) : -ENOMEM;
	if (rc)
		free(q);
	return rc;
}

int hw_tasks_store_command(struct hw_tasks_store *s, hw_tasks_answer_fn *fn, void *arg, int argc, const char **argv,
                           const size_t *len)
{
	return send_command(s, asked_new(s, fn, arg), argc, argv, len);
}

static int send_words(struct hw_tasks_store *s, struct asked *q, const char *const *words)
{
	const char *argv[WORDS_MAX];
	size_t len[WORDS_MAX];
	int n = 0;
	for (; n < WORDS_MAX && words[n]; n++) {
		argv[n] = words[n];
		len[n] = strlen(words[n]);
	}
	return send_command(s, q, n, argv, len);
}

int hw_tasks_store_ask(struct hw_tasks_store *s, hw_tasks_answer_fn *fn, void *arg, const char *const *words)
{
	return send_words(s, asked_new(s, fn, arg), words);
}

int hw_tasks_store_ask_aside(struct hw_tasks_store *s, hw_tasks_answer_fn *fn, void *arg, const char *const *words)
{
	struct asked *q = asked_new(s, fn, arg);
	if (q)
		q->aside = true;
	return send_words(s, q, words);
}

int hw_tasks_store_call(struct hw_tasks_store *s, enum hw_tasks_script script, struct hw_eval *e,
                        hw_tasks_answer_fn *fn, void *arg)
{
	struct asked *q = asked_new(s, fn, arg);
	int rc = -ENOMEM;
	if (!s->loaded)
		rc = -ENOTCONN;
	else if (q)
		rc = hw_scripts_call(&s->scripts, script, e, on_answer, q);
	if (rc)
		free(q);
	return rc;
}

/* --- up and down -------------------------------------------------------------------------------------------------- */

/* The answer to XINFO STREAM. */
static void on_stream_info(void *arg, const redisReply *reply)
{
	struct hw_tasks_store *s = arg;
	char error[HW_TASKS_KEY_MAX + 80];
	for (size_t i = 0; reply && reply->type == REDIS_REPLY_ARRAY && i + 1 < reply->elements; i += 2) {
		const redisReply *name = reply->element[i], *v = reply->element[i + 1];
		if (name->type != REDIS_REPLY_STRING || strcmp(name->str, "last-generated-id") != 0 ||
		    v->type != REDIS_REPLY_STRING || strcmp(v->str, GREATEST_ID) != 0)
			continue;
		snprintf(error, sizeof(error), "%sevents has exhausted the last possible ID", s->app->conf->key_prefix);
		hw_tasks_store_trouble(s, error);
	}
}

/* The answer to TYPE of a key that every task needs. */
static void check_type(struct hw_tasks_store *s, const redisReply *reply, const char *name, const char *type)
{
	char why[HW_TASKS_KEY_MAX + 120];
	if (!reply || reply->type != REDIS_REPLY_STATUS || strcmp(reply->str, "none") == 0 ||
	    strcmp(reply->str, type) == 0)
		return;
	snprintf(why, sizeof(why), "the key %s%s holds a %s instead of a %s: rename or delete it",
	         s->app->conf->key_prefix, name, reply->str, type);
	refuse(s, why);
	if (hw_trouble_due_again(&s->reported_type_ms, hw_clock_mono().ns / HW_NS_PER_MS))
		hw_log(s->app->log, HW_LOG_ERROR, "Redis: %s", why);
}

static void on_due_type(void *arg, const redisReply *reply)
{
	check_type(arg, reply, "due", "zset");
}

static void on_events_type(void *arg, const redisReply *reply)
{
	check_type(arg, reply, "events", "stream");
}

/* Checks whether the keys that every task needs can be written, because there may be no write for a long time. Redis
 * adds no entry to a stream that has given out the greatest id, even if that entry was deleted. */
static void check_keys(struct hw_tasks_store *s)
{
	char key[HW_TASKS_KEY_MAX];
	hw_tasks_store_key(s, "due", key);
	hw_tasks_store_ask_aside(s, on_due_type, s, (const char *[]){"TYPE", key, NULL});
	hw_tasks_store_key(s, "events", key);
	hw_tasks_store_ask_aside(s, on_events_type, s, (const char *[]){"TYPE", key, NULL});
	hw_tasks_store_ask_aside(s, on_stream_info, s, (const char *[]){"XINFO", "STREAM", key, NULL});
}

static void be_up(struct hw_tasks_store *s)
{
	if (s->up || !s->loaded || !s->greeted)
		return;
	s->up = true;
	s->why[0] = '\0';
	hw_redis_link_settled(&s->link);
	hw_log(s->app->log, HW_LOG_NOTICE, "Redis: connected to %s", s->link.where);
	hw_tasks_on_store(s->app, true);
	check_keys(s);
}

static void be_down(struct hw_tasks_store *s)
{
	bool was = s->up;
	s->up = s->greeted = s->run_id_written = false;
	if (was)
		hw_tasks_on_store(s->app, false);
}

static void on_run_id_written(void *arg, const redisReply *reply)
{
	struct hw_tasks_store *s = arg;
	if (!reply || reply->type == REDIS_REPLY_ERROR)
		return;
	s->run_id_written = true;
	s->run_id_written_ms = hw_clock_mono().ns / HW_NS_PER_MS;
}

static int write_run_id(struct hw_tasks_store *s)
{
	char key[HW_TASKS_KEY_MAX], name[HW_TASKS_KEY_MAX];
	snprintf(name, sizeof(name), "node:%s", s->app->conf->node_id);
	hw_tasks_store_key(s, name, key);
	return hw_tasks_store_ask(s, on_run_id_written, s,
	                          (const char *[]){"SET", key, s->run_id, "EX", RUN_ID_TTL_S, NULL});
}

static void on_secret(void *arg, const redisReply *reply)
{
	struct hw_tasks_store *s = arg;
	if (!reply || reply->type != REDIS_REPLY_STRING)
		return; /* the tick reads it again */
	if (reply->len != HW_TASKS_SECRET_LEN) {
		snprintf(s->why, sizeof(s->why), "task:secret is not %d bytes long: another program has written it",
		         HW_TASKS_SECRET_LEN);
		hw_log_limited(s->app->log, HW_TASKS_LIMIT_REDIS, HW_LOG_ERROR, "Redis: %s", s->why);
		return;
	}
	memcpy(s->secret, reply->str, HW_TASKS_SECRET_LEN);
	s->has_secret = s->greeted = true;
	be_up(s);
}

/* Reads the secret in Redis. If Redis has none, this run's secret is written, so that the names of tasks stay the
 * same after Redis came back empty. */
static void fetch_secret(struct hw_tasks_store *s)
{
	char key[HW_TASKS_KEY_MAX];
	hw_tasks_store_key(s, "secret", key);
	if (!s->has_secret && getrandom(s->secret, sizeof(s->secret), 0) != sizeof(s->secret))
		return;
	const char *argv[] = {"SET", key, (const char *)s->secret, "NX"};
	const size_t len[] = {3, strlen(key), sizeof(s->secret), 2};
	if (write_run_id(s) != 0 || hw_tasks_store_command(s, NULL, NULL, 4, argv, len) != 0 ||
	    hw_tasks_store_ask(s, on_secret, s, (const char *[]){"GET", key, NULL}) != 0)
		hw_redis_link_fail(&s->link, "out of memory");
}

static void on_ready(void *arg)
{
	struct hw_tasks_store *s = arg;
	s->linked = true;
	s->loaded = false;
	fetch_secret(s);
	hw_scripts_load(&s->scripts);
}

static void on_lost(void *arg, const char *why)
{
	struct hw_tasks_store *s = arg;
	char text[HW_TROUBLE_TEXT];
	s->linked = s->loaded = false;
	hw_scripts_lost(&s->scripts);
	be_down(s);
	if (hw_trouble_of(why) != HW_TROUBLE_OTHER) {
		hw_trouble_text(why, text);
		why = text;
	}
	snprintf(s->why, sizeof(s->why), "%.500s", why);
	hw_log_limited(s->app->log, HW_TASKS_LIMIT_REDIS, HW_LOG_ERROR, "Redis cannot be reached: %.500s", why);
}

static void on_trouble(void *arg, const char *what)
{
	struct hw_tasks_store *s = arg;
	hw_log_limited(s->app->log, HW_TASKS_LIMIT_REDIS, HW_LOG_WARNING, "Redis: %.500s", what);
}

static void on_loaded(void *arg)
{
	struct hw_tasks_store *s = arg;
	s->loaded = true;
	be_up(s);
	hw_tasks_schedule_turn(s->app);
}

static void on_refused(void *arg, const char *error)
{
	struct hw_tasks_store *s = arg;
	hw_tasks_store_trouble(s, error);
	hw_redis_link_fail(&s->link, error);
}

static const struct hw_redis_link_ops link_ops = {on_ready, on_lost, on_trouble};
static const struct hw_scripts_ops scripts_ops = {on_loaded, on_refused};

/* --- this run's id, and the other instances ----------------------------------------------------------------------- */

/* Called when the run id is missing. If the secret is missing too, Redis has lost all data; otherwise the run id has
 * expired too early, because Redis' clock has jumped. */
static void on_secret_there(void *arg, const redisReply *reply)
{
	struct hw_tasks_store *s = arg;
	if (!reply || reply->type != REDIS_REPLY_INTEGER || reply->integer != 0 || !s->up)
		return;
	hw_log(s->app->log, HW_LOG_WARNING,
	       "Redis has lost its data: the tasks in it are lost; check the persistence of Redis");
	be_down(s);
	fetch_secret(s);
}

static void on_run_id(void *arg, const redisReply *reply)
{
	struct hw_tasks_store *s = arg;
	char key[HW_TASKS_KEY_MAX];
	bool recent =
		hw_clock_mono().ns / HW_NS_PER_MS - s->run_id_written_ms < LIVE_MS / 2; /* it cannot have expired */
	if (!reply || reply->type == REDIS_REPLY_ERROR)
		return;
	if (reply->type == REDIS_REPLY_STRING && strcmp(reply->str, s->run_id) != 0 && s->run_id_written &&
	    hw_trouble_due_again(&s->reported_same_ms, hw_clock_mono().ns / HW_NS_PER_MS))
		hw_log(s->app->log, HW_LOG_ERROR,
		       "another heartwheel-tasks has the node_id '%s': give each instance its own name in [monitor]",
		       s->app->conf->node_id);
	if (reply->type == REDIS_REPLY_NIL && s->run_id_written && recent && s->up) {
		hw_tasks_store_key(s, "secret", key);
		hw_tasks_store_ask(s, on_secret_there, s, (const char *[]){"EXISTS", key, NULL});
	}
}

/* Reads which instances run. A running instance has a recent score in task:nodes. */
static void on_nodes(void *arg, const redisReply *reply)
{
	struct hw_tasks_store *s = arg;
	const char *names[HW_INSTANCES_MAX], *self = s->app->conf->node_id;
	size_t n = 0;
	if (!reply || reply->type != REDIS_REPLY_ARRAY)
		return;
	names[n++] = self;
	for (size_t i = 0; i < reply->elements && n < HW_INSTANCES_MAX; i++)
		if (reply->element[i]->type == REDIS_REPLY_STRING && strcmp(reply->element[i]->str, self) != 0)
			names[n++] = reply->element[i]->str;
	hw_schedule_instances(s->app->schedule, names, n, self);
}

/* Counts the members of task:nodes that were removed because their times are in the future. A member with such a time
 * would stay for ever and keep its rank. */
static void on_ahead_removed(void *arg, const redisReply *reply)
{
	struct hw_tasks_store *s = arg;
	if (reply && reply->type == REDIS_REPLY_INTEGER && reply->integer > 0)
		hw_tasks_unusable(s->app, HW_UNUSABLE_NODE, (uint64_t)reply->integer,
		                  "%snodes: %lld members whose times are in the future were removed",
		                  s->app->conf->key_prefix, reply->integer);
}

static void check_run_id(struct hw_tasks_store *s)
{
	char key[HW_TASKS_KEY_MAX], name[HW_TASKS_KEY_MAX], nodes[HW_TASKS_KEY_MAX], now[24], since[24], gone[24],
		ahead[24];
	const char *node = s->app->conf->node_id;
	int64_t now_ms = hw_tasks_store_now_ms(s);
	snprintf(name, sizeof(name), "node:%s", node);
	hw_tasks_store_key(s, name, key);
	hw_tasks_store_key(s, "nodes", nodes);
	snprintf(now, sizeof(now), "%lld", (long long)now_ms);
	snprintf(since, sizeof(since), "%lld", (long long)(now_ms - LIVE_MS));
	snprintf(gone, sizeof(gone), "(%lld", (long long)(now_ms - 10 * LIVE_MS));
	snprintf(ahead, sizeof(ahead), "(%lld", (long long)(now_ms + 10 * LIVE_MS));
	hw_tasks_store_ask(s, on_run_id, s, (const char *[]){"GET", key, NULL});
	write_run_id(s);
	if (!s->app->conf->several)
		return;
	hw_tasks_store_ask(s, NULL, NULL, (const char *[]){"ZADD", nodes, now, node, NULL});
	hw_tasks_store_ask(s, NULL, NULL, (const char *[]){"ZREMRANGEBYSCORE", nodes, "-inf", gone, NULL});
	hw_tasks_store_ask(s, on_ahead_removed, s, (const char *[]){"ZREMRANGEBYSCORE", nodes, ahead, "+inf", NULL});
	hw_tasks_store_ask(s, on_nodes, s, (const char *[]){"ZRANGEBYSCORE", nodes, since, "+inf", NULL});
}

static bool is_recent(int64_t ms)
{
	return ms && hw_clock_mono().ns / HW_NS_PER_MS - ms < REFUSES_MS;
}

void hw_tasks_store_tick(struct hw_tasks_store *s)
{
	hw_redis_link_tick(&s->link);
	if (!s->linked)
		return;
	if (!s->loaded)
		hw_scripts_load(&s->scripts);
	if (!s->greeted)
		fetch_secret(s);
	if (s->up)
		check_run_id(s);
	if (s->up && (hw_tasks_store_refuses(s) || is_recent(s->wrong_type_ms)))
		check_keys(s);
}

/* --- the rest ----------------------------------------------------------------------------------------------------- */

bool hw_tasks_store_is_up(const struct hw_tasks_store *s)
{
	return s->up;
}

bool hw_tasks_store_refuses(const struct hw_tasks_store *s)
{
	return is_recent(s->refused_ms);
}

const char *hw_tasks_store_why(const struct hw_tasks_store *s)
{
	return s->why;
}

int hw_tasks_store_name(const struct hw_tasks_store *s, struct hw_text sender, struct hw_text msg_id,
                        struct hw_task_id *out)
{
	return s->has_secret ? hw_task_name(out, s->secret, sender, msg_id) : -ENOTCONN;
}

const char *hw_tasks_store_key(const struct hw_tasks_store *s, const char *rest, char buf[HW_TASKS_KEY_MAX])
{
	snprintf(buf, HW_TASKS_KEY_MAX, "%s%s", s->app->conf->key_prefix, rest);
	return buf;
}

const char *hw_tasks_store_run_id(const struct hw_tasks_store *s)
{
	return s->run_id;
}

int64_t hw_tasks_store_now_ms(const struct hw_tasks_store *s)
{
	int64_t ms = hw_schedule_redis_ms(s->app->schedule, hw_tasks_now());
	return ms ? ms : hw_clock_now().wall_ms;
}

struct hw_tasks_store *hw_tasks_store_new(struct hw_tasks_app *app)
{
	struct hw_tasks_store *s = calloc(1, sizeof(*s));
	unsigned char random[RUN_ID_LEN / 2];
	uint64_t seed = 1;
	if (!s)
		return NULL;
	s->app = app;
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		memcpy(random, &(struct hw_mono){hw_clock_mono().ns}, sizeof(struct hw_mono));
	memcpy(&seed, random, sizeof(seed));
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(s->run_id + 2 * i, 3, "%02x", random[i]);
	const struct hw_redis_link_conf conf = {.at = hw_redis_address_of(&app->conf->redis, app->life.redis_password),
	                                        .seed = seed};
	hw_scripts_init(&s->scripts, &s->link, hw_tasks_script_texts, HW_TASKS_SCRIPTS, &scripts_ops, s);
	if (hw_redis_link_init(&s->link, app->loop.base, &conf, &link_ops, s) == 0)
		return s;
	free(s);
	return NULL;
}

void hw_tasks_store_free(struct hw_tasks_store *s)
{
	if (!s)
		return;
	s->up = s->loaded = false;
	hw_redis_link_fini(&s->link);
	explicit_bzero(s->secret, sizeof(s->secret));
	free(s);
}

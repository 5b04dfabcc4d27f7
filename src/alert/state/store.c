/* SPDX-License-Identifier: MIT */
/* See store.h. */
#include "alert/state/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "alert/app.h"
#include "alert/memory/memory.h"
#include "link/clock.h"
#include "link/scripts.h"
#include "link/trouble.h"

#define WORDS_MAX 72 /* of a command */

struct hw_alert_store {
	struct hw_alert_app *app;
	struct hw_redis_link link;
	struct hw_scripts scripts;
	struct hw_troubles troubles;
	struct hw_alert_memory *memory; /* NULL: Redis */
	bool linked, up;
	char why[HW_TROUBLE_TEXT + 200];
};

/* --- commands ----------------------------------------------------------------------------------------------------- */

/* A request that waits for its reply. */
struct asked {
	struct hw_alert_store *s;
	hw_alert_answer_fn *fn;
	void *arg;
	char what[]; /* the command and its key, and ": ", to be put before an error's text; "" for a script */
};

/* `what`: as in struct asked. An error of the whole Redis is not about one command. */
static void note_trouble(struct hw_alert_store *s, const char *what, const char *error)
{
	enum hw_trouble k = hw_trouble_of(error);
	char text[HW_TROUBLE_TEXT];
	if (k == HW_TROUBLE_NOSCRIPT) {
		hw_scripts_load(&s->scripts);
		return;
	}
	hw_trouble_text(error, text);
	bool names = k == HW_TROUBLE_NOPERM || !hw_trouble_is_global(k);
	snprintf(s->why, sizeof(s->why), "%.199s%s", names ? what : "", text);
	if (hw_trouble_due(&s->troubles, k, hw_clock_mono().ns / HW_NS_PER_MS))
		hw_log(s->app->log, HW_LOG_ERROR, "Redis: %s", s->why);
	/* Closes the connection if the master has become a replica; a new connection asks the Sentinels for the
	 * present master */
	if (k == HW_TROUBLE_READONLY && *s->app->conf->redis.sentinels)
		hw_redis_link_fail(&s->link, error);
}

void hw_alert_store_trouble(struct hw_alert_store *s, const char *error)
{
	note_trouble(s, "", error);
}

static void on_answer(redisAsyncContext *ac, void *answer, void *arg)
{
	struct asked *q = arg;
	struct hw_alert_store *s = q->s;
	const redisReply *reply = answer;
	(void)ac;
	if (reply)
		hw_redis_link_got(&s->link);
	if (q->fn)
		q->fn(q->arg, reply);
	if (reply && reply->type == REDIS_REPLY_ERROR)
		note_trouble(s, q->what, reply->str);
	free(q);
}

/* `command`, `key`: for `what`, unless `key` is NULL. */
static struct asked *asked_new(struct hw_alert_store *s, hw_alert_answer_fn *fn, void *arg, const char *command,
                               const char *key)
{
	size_t cap = key ? strlen(command) + strlen(key) + sizeof(" : ") : sizeof("");
	struct asked *q = malloc(sizeof(*q) + cap);
	if (!q)
		return NULL;
	*q = (struct asked){s, fn, arg};
	q->what[0] = '\0';
	if (key)
		snprintf(q->what, cap, "%s %s: ", command, key);
	return q;
}

int hw_alert_store_ask(struct hw_alert_store *s, hw_alert_answer_fn *fn, void *arg, const char *const *words)
{
	const char *argv[WORDS_MAX];
	size_t len[WORDS_MAX];
	int argc = 0;
	for (; words[argc]; argc++) {
		argv[argc] = words[argc];
		len[argc] = strlen(words[argc]);
	}
	struct asked *q = asked_new(s, fn, arg, words[0], words[1]);
	int rc = q ? hw_redis_link_command(&s->link, on_answer, q, argc, argv, len) : -ENOMEM;
	if (rc)
		free(q);
	return rc;
}

int hw_alert_store_call(struct hw_alert_store *s, enum hw_alert_script script, struct hw_eval *e,
                        hw_alert_answer_fn *fn, void *arg)
{
	struct asked *q = asked_new(s, fn, arg, NULL, NULL);
	int rc = !q ? -ENOMEM : !s->up ? -ENOTCONN : hw_scripts_call(&s->scripts, script, e, on_answer, q);
	if (rc)
		free(q);
	return rc;
}

/* --- the link ----------------------------------------------------------------------------------------------------- */

static void on_ready(void *arg)
{
	struct hw_alert_store *s = arg;
	s->linked = true;
	hw_scripts_load(&s->scripts);
}

static void on_lost(void *arg, const char *why)
{
	struct hw_alert_store *s = arg;
	char text[HW_TROUBLE_TEXT];
	bool was = s->up;
	s->linked = s->up = false;
	hw_scripts_lost(&s->scripts);
	if (hw_trouble_of(why) != HW_TROUBLE_OTHER) {
		hw_trouble_text(why, text);
		why = text;
	}
	snprintf(s->why, sizeof(s->why), "%.500s", why);
	if (s->memory && strcmp(why, HW_ALERT_NOT_LISTED) == 0)
		hw_log_limited(s->app->log, HW_ALERT_LIMIT_REDIS, HW_LOG_NOTICE,
		               "heartwheel-alert waits until heartwheeld has listed its devices");
	else if (s->memory)
		hw_log_limited(s->app->log, HW_ALERT_LIMIT_REDIS, HW_LOG_ERROR,
		               "heartwheel-alert cannot send notifications: %.500s", why);
	else
		hw_log_limited(s->app->log, HW_ALERT_LIMIT_REDIS, HW_LOG_ERROR, "Redis cannot be reached: %.500s", why);
	if (was)
		hw_alert_on_store(s->app, false);
}

static void on_trouble(void *arg, const char *what)
{
	struct hw_alert_store *s = arg;
	hw_log_limited(s->app->log, HW_ALERT_LIMIT_REDIS, HW_LOG_WARNING, "Redis: %.500s", what);
}

static void on_loaded(void *arg)
{
	struct hw_alert_store *s = arg;
	if (s->up)
		return; /* Redis had lost the scripts */
	s->up = true;
	s->why[0] = '\0';
	hw_redis_link_settled(&s->link);
	if (s->memory)
		hw_log(s->app->log, HW_LOG_NOTICE, "the state is in %s", s->app->conf->state_file);
	else
		hw_log(s->app->log, HW_LOG_NOTICE, "Redis: connected to %s", s->link.where);
	hw_alert_on_store(s->app, true);
}

static void on_refused(void *arg, const char *error)
{
	struct hw_alert_store *s = arg;
	hw_alert_store_trouble(s, error);
	hw_redis_link_fail(&s->link, error);
}

static const struct hw_redis_link_ops link_ops = {on_ready, on_lost, on_trouble};
static const struct hw_scripts_ops scripts_ops = {on_loaded, on_refused};

void hw_alert_store_fail(struct hw_alert_store *s, const char *why)
{
	hw_redis_link_fail(&s->link, why);
}

void hw_alert_store_tick(struct hw_alert_store *s)
{
	hw_redis_link_tick(&s->link);
	if (s->linked && !s->up)
		hw_scripts_load(&s->scripts);
}

/* --- the rest ----------------------------------------------------------------------------------------------------- */

bool hw_alert_store_is_up(const struct hw_alert_store *s)
{
	return s->up;
}

const char *hw_alert_store_why(const struct hw_alert_store *s)
{
	return s->why;
}

struct hw_redis_link *hw_alert_store_link(struct hw_alert_store *s)
{
	return &s->link;
}

const char *hw_alert_store_key(const struct hw_alert_store *s, const char *rest, char buf[HW_ALERT_KEY_MAX])
{
	snprintf(buf, HW_ALERT_KEY_MAX, "%s%s", s->app->conf->redis.key_prefix, rest);
	return buf;
}

struct hw_keys *hw_alert_store_keys(struct hw_alert_store *s)
{
	return s->memory ? hw_alert_memory_keys(s->memory) : NULL;
}

/* Opens the state file if there is no Redis. Returns 0, or -ENODATA after logging the reason. */
static int open_memory(struct hw_alert_store *s)
{
	char why[500];
	if (s->app->conf->store == HW_STORE_REDIS)
		return 0;
	s->memory = hw_alert_memory_new(s->app, &s->link, why, sizeof(why));
	if (!s->memory)
		hw_log(s->app->log, HW_LOG_ERROR, "cannot start: %s", why);
	return s->memory ? 0 : -ENODATA;
}

struct hw_alert_store *hw_alert_store_new(struct hw_alert_app *app)
{
	struct hw_alert_store *s = calloc(1, sizeof(*s));
	uint64_t seed = 1;
	if (!s)
		return NULL;
	s->app = app;
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = (uint64_t)hw_clock_mono().ns;
	int rc = open_memory(s);
	const struct hw_redis_link_conf conf = {.at = hw_redis_address_of(&app->conf->redis, app->redis_password),
	                                        .local = s->memory ? hw_alert_memory_local(s->memory) : NULL,
	                                        .seed = seed};
	hw_scripts_init(&s->scripts, &s->link, hw_alert_script_texts, HW_ALERT_SCRIPTS, &scripts_ops, s);
	if (rc == 0 && hw_redis_link_init(&s->link, app->loop.base, &conf, &link_ops, s) == 0)
		return s;
	hw_alert_memory_free(s->memory);
	free(s);
	return NULL;
}

void hw_alert_store_free(struct hw_alert_store *s)
{
	if (!s)
		return;
	s->up = false;
	hw_redis_link_fini(&s->link);
	hw_alert_memory_free(s->memory);
	free(s);
}

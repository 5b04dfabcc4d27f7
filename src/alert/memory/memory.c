/* SPDX-License-Identifier: MIT */
/* See memory.h. The commands wait in a queue, because a caller expects no answer before its call has returned. */
#include "alert/memory/memory.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alert/app.h"
#include "alert/memory/fleet.h"
#include "alert/memory/keys.h"
#include "alert/memory/state_file.h"
#include "link/link.h"

#define A_TURN 1000 /* commands */

/* A command that waits. */
struct waiting {
	struct waiting *next;
	redisCallbackFn *fn;
	void *arg;
	size_t len;
	char command[];
};

struct hw_alert_memory {
	struct hw_alert_app *app;
	struct hw_redis_link *link; /* borrowed */
	struct hw_redis_local local;
	struct hw_keys *keys;
	struct hw_state_file *file;
	struct event *turn;
	struct waiting *first, **last;
	char why[500]; /* why the link is down */
};

/* --- commands ----------------------------------------------------------------------------------------------------- */

/* Parses a text in the wire format. Returns NULL if there is no memory. */
static redisReply *parse(const char *text, size_t len)
{
	redisReader *reader = redisReaderCreate();
	void *reply = NULL;
	if (reader &&
	    (redisReaderFeed(reader, text, len) != REDIS_OK || redisReaderGetReply(reader, &reply) != REDIS_OK))
		reply = NULL;
	if (reader)
		redisReaderFree(reader);
	return reply;
}

/* Carries out a command. Returns the answer, or NULL if there is no memory. */
static redisReply *run(struct hw_alert_memory *m, const struct waiting *w)
{
	redisReply *command = parse(w->command, w->len), *answer = NULL;
	size_t n = command ? command->elements : 0, len = 0;
	const char **words = calloc(n + 1, sizeof(*words));
	char *text = NULL;
	FILE *out = words ? open_memstream(&text, &len) : NULL;
	for (size_t i = 0; words && i < n; i++)
		words[i] = command->element[i]->str;
	if (out && n > 0)
		hw_keys_run(m->keys, n, words, out);
	if (out && fclose(out) == 0)
		answer = parse(text, len);
	free(text);
	free(words);
	if (command)
		freeReplyObject(command);
	return hw_keys_failed(m->keys) ? NULL : answer;
}

/* Stores the keys if a script has changed them. Returns false if the file cannot be written. */
static bool store(struct hw_alert_memory *m)
{
	return !hw_keys_must_store(m->keys) || hw_state_file_write(m->file, m->keys, m->why, sizeof(m->why)) == 0;
}

static struct waiting *take_first(struct hw_alert_memory *m)
{
	struct waiting *w = m->first;
	m->first = w->next;
	if (!m->first)
		m->last = &m->first;
	return w;
}

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
	struct hw_alert_memory *m = arg;
	(void)fd, (void)what;
	for (int k = 0; k < A_TURN && m->first; k++) {
		redisReply *answer = run(m, m->first);
		if (!answer) {
			hw_alert_on_no_memory(m->app);
			return;
		}
		if (store(m)) {
			struct waiting *w = take_first(m);
			w->fn(NULL, answer, w->arg);
			free(w);
		} else {
			hw_redis_link_fail(m->link, m->why); /* ends the commands that wait */
		}
		freeReplyObject(answer);
	}
	if (m->first)
		event_active(m->turn, EV_TIMEOUT, 0);
}

/* --- what the link calls ------------------------------------------------------------------------------------------ */

static const char *on_open(void *arg)
{
	struct hw_alert_memory *m = arg;
	if (!hw_alert_fleet_is_known(m->keys, m->app))
		return HW_ALERT_NOT_LISTED;
	return store(m) ? NULL : m->why;
}

static int on_send(void *arg, redisCallbackFn *fn, void *fn_arg, const char *command, size_t len)
{
	struct hw_alert_memory *m = arg;
	struct waiting *w = malloc(sizeof(*w) + len);
	if (!w)
		return -ENOMEM;
	*w = (struct waiting){.fn = fn, .arg = fn_arg, .len = len};
	memcpy(w->command, command, len);
	*m->last = w;
	m->last = &w->next;
	event_active(m->turn, EV_TIMEOUT, 0);
	return 0;
}

static void on_close(void *arg)
{
	struct hw_alert_memory *m = arg;
	while (m->first) {
		struct waiting *w = take_first(m);
		if (w->fn)
			w->fn(NULL, NULL, w->arg);
		free(w);
	}
}

/* --- the rest ----------------------------------------------------------------------------------------------------- */

const struct hw_redis_local *hw_alert_memory_local(struct hw_alert_memory *m)
{
	return &m->local;
}

struct hw_keys *hw_alert_memory_keys(struct hw_alert_memory *m)
{
	return m->keys;
}

struct hw_alert_memory *hw_alert_memory_new(struct hw_alert_app *app, struct hw_redis_link *link, char *why, size_t cap)
{
	struct hw_alert_memory *m = calloc(1, sizeof(*m));
	snprintf(why, cap, "not enough memory");
	if (!m)
		return NULL;
	m->app = app;
	m->link = link;
	m->local = (struct hw_redis_local){m, on_open, on_send, on_close};
	m->last = &m->first;
	m->keys = hw_keys_new(hw_alert_seed());
	m->turn = event_new(app->loop.base, -1, 0, on_turn, m);
	if (m->keys && m->turn)
		m->file = hw_state_file_open(app->conf->state_file, m->keys, why, cap);
	if (m->file)
		return m;
	hw_alert_memory_free(m);
	return NULL;
}

void hw_alert_memory_free(struct hw_alert_memory *m)
{
	if (!m)
		return;
	if (m->turn)
		event_free(m->turn);
	hw_state_file_close(m->file);
	hw_keys_free(m->keys);
	free(m);
}

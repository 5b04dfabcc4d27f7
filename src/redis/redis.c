/* SPDX-License-Identifier: MIT */
/*
 * The object: it owns the parts, brings them up and down with the link, and is what redis.h shows of them.
 *
 * The way up: the link is ready (connected, authenticated), the scripts are loaded, the mark has been read; then it is
 * told. The way down is hw_redis_link_ops.on_lost, once for each connection or attempt.
 */
#include "redis/redis.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "redis/inner.h"

/* One script's SCRIPT LOAD. */
struct script_asked {
	struct hw_redis *r;
	enum hw_script script;
};

struct hw_now hw_redis_now(void)
{
	struct timespec mono, wall;
	clock_gettime(CLOCK_MONOTONIC, &mono);
	clock_gettime(CLOCK_REALTIME, &wall);
	return (struct hw_now){{(int64_t)mono.tv_sec * HW_NS_PER_S + mono.tv_nsec},
	                       (int64_t)wall.tv_sec * 1000 + wall.tv_nsec / HW_NS_PER_MS};
}

/* --- telling ----------------------------------------------------------------------------------------------------- */

void hw_redis_tell(struct hw_redis *r, enum hw_trouble kind, const char *text)
{
	if (hw_trouble_due(&r->troubles, kind, hw_redis_now().mono.ns / HW_NS_PER_MS))
		r->ops->on_trouble(r->arg, text);
}

enum hw_trouble hw_redis_trouble(struct hw_redis *r, const char *reply)
{
	enum hw_trouble kind = hw_trouble_of(reply);
	char text[HW_TROUBLE_TEXT];
	hw_trouble_text(reply, text);
	if (kind != HW_TROUBLE_NOSCRIPT)
		hw_redis_tell(r, kind, text);
	return kind;
}

/* --- the way up and down ----------------------------------------------------------------------------------------- */

static void on_lost(void *arg, const char *why)
{
	struct hw_redis *r = arg;
	bool was = r->up;
	char text[HW_TROUBLE_TEXT];
	/* A refusal comes as Redis worded it, anything else is a sentence of the link's. */
	if (hw_trouble_of(why) != HW_TROUBLE_OTHER || strncmp(why, "ERR ", 4) == 0)
		hw_trouble_text(why, text);
	else
		snprintf(text, sizeof(text), "%s", *why ? why : "Redis refuses this connection and does not say why");
	r->up = false;
	r->scripts_awaited = 0;
	if (was)
		r->down_since = hw_redis_now().mono;
	hw_sink_lost(r);
	hw_load_lost(r);
	hw_mark_lost(r);
	if (!was && strcmp(text, r->told) == 0)
		return;
	snprintf(r->told, sizeof(r->told), "%s", text);
	r->ops->on_link(r->arg, false, text);
}

static void on_ready(void *arg)
{
	hw_redis_load_scripts(arg);
}

void hw_redis_settled(struct hw_redis *r)
{
	char text[HW_TROUBLE_TEXT];
	bool again = r->was_up;
	hw_redis_link_settled(&r->link);
	r->up = r->was_up = true;
	r->down_since = (struct hw_mono){0};
	r->told[0] = '\0';
	r->stats->reconnects += again;
	snprintf(text, sizeof(text), "connected to Redis at %s", r->link.where);
	r->ops->on_link(r->arg, true, text);
	hw_load_up(r);
	hw_sink_up(r, again);
}

static const struct hw_redis_link_ops link_ops = {on_ready, on_lost};

/* --- scripts ----------------------------------------------------------------------------------------------------- */

static void script_failed(struct hw_redis *r, const char *error)
{
	if (!r->up) {
		hw_redis_link_fail(&r->link, error);
		return;
	}
	hw_redis_trouble(r, error);
	hw_sink_hold(r, HW_HOLD_ALL); /* the next call meets NOSCRIPT again */
}

static void on_script(redisAsyncContext *ac, void *answer, void *arg)
{
	struct script_asked *a = arg;
	struct hw_redis *r = a->r;
	const redisReply *reply = answer;
	enum hw_script script = a->script;
	(void)ac;
	free(a);
	if (!reply)
		return;
	hw_redis_link_got(&r->link);
	r->scripts_awaited--;
	if (reply->type != REDIS_REPLY_STRING || reply->len != HW_SHA_LEN) {
		script_failed(r, reply->type == REDIS_REPLY_ERROR ? reply->str : "ERR SCRIPT LOAD makes no sense");
		return;
	}
	memcpy(r->sha[script], reply->str, HW_SHA_LEN + 1);
	if (r->scripts_awaited > 0)
		return;
	if (r->up)
		hw_sink_scripts_loaded(r);
	else
		hw_mark_read(r);
}

void hw_redis_load_scripts(struct hw_redis *r)
{
	if (r->scripts_awaited > 0)
		return;
	for (int i = 0; i < HW_SCRIPTS; i++) {
		const char *source = hw_script_text((enum hw_script)i);
		const char *argv[] = {"SCRIPT", "LOAD", source};
		const size_t len[] = {6, 4, strlen(source)};
		struct script_asked *a = malloc(sizeof(*a));
		if (a)
			*a = (struct script_asked){r, (enum hw_script)i};
		if (!a || hw_redis_link_command(&r->link, on_script, a, 3, argv, len) != 0) {
			free(a);
			hw_redis_link_fail(&r->link, "out of memory");
			return;
		}
		r->scripts_awaited++;
	}
}

/* --- what is owed ------------------------------------------------------------------------------------------------ */

void hw_redis_transition(struct hw_redis *r, struct hw_now now, const struct hw_transition *t)
{
	const struct hw_edge e = {.t = *t, .queued_ns = now.mono.ns};
	if (!hw_sink_has_marks(r, t->device.index) || hw_edges_push(&r->sink.edges, &e) != 0) {
		r->stats->edges_dropped++;
		hw_sink_due(r, &r->sink.rewrite, t->device.index);
	}
	hw_sink_wake(r);
}

void hw_redis_refresh(struct hw_redis *r, struct hw_ref device)
{
	hw_sink_due(r, &r->sink.refresh, device.index);
	hw_sink_wake(r);
}

void hw_redis_rewrite(struct hw_redis *r, struct hw_ref device)
{
	hw_sink_due(r, &r->sink.rewrite, device.index);
	hw_sink_wake(r);
}

/* An acknowledgement that finds no room is left out: its payload stays in the outbox and is published once more after
 * the next start. */
void hw_redis_published(struct hw_redis *r, const char *id, size_t id_len, uint64_t seq, bool cleared)
{
	struct hw_edge e = {.t = {.seq = seq}, .queued_ns = hw_redis_now().mono.ns, .cleared = cleared};
	if (id_len == 0 || id_len > HW_ID_MAX)
		return;
	e.id = malloc(id_len + 1);
	if (!e.id)
		return;
	e.id[0] = (uint8_t)id_len;
	memcpy(e.id + 1, id, id_len);
	if (hw_edges_push(&r->sink.edges, &e) != 0)
		free(e.id);
	hw_sink_wake(r);
}

void hw_redis_seen(struct hw_redis *r, struct hw_now now, bool blind)
{
	hw_mark_seen(r, now, blind);
}

/* --- questions --------------------------------------------------------------------------------------------------- */

bool hw_redis_up(const struct hw_redis *r)
{
	return r->up;
}

struct hw_mono hw_redis_down_since(const struct hw_redis *r)
{
	return r->down_since;
}

bool hw_redis_idle(const struct hw_redis *r)
{
	return hw_sink_idle(r) && !r->mark.in_flight && (!r->up || r->link.in_flight == 0);
}

const struct hw_redis_stats *hw_redis_stats(const struct hw_redis *r)
{
	const struct hw_sink *s = &r->sink;
	struct hw_redis_stats *st = r->stats;
	st->commands = r->link.commands;
	st->edges_waiting = s->edges.edges;
	st->waiting = s->edges.tail - s->edges.head;
	st->done = s->edges.head;
	st->refreshes_waiting = s->refresh.len + s->rewrite.len;
	st->oldest_edge_ms = 0;
	if (s->edges.head != s->edges.tail) {
		int64_t ns = hw_redis_now().mono.ns - hw_edges_at(&s->edges, s->edges.head)->queued_ns;
		st->oldest_edge_ms = ns / HW_NS_PER_MS + 1;
	}
	return st;
}

/* --- life -------------------------------------------------------------------------------------------------------- */

static void free_conf(struct hw_redis_conf *c)
{
	if (c->password)
		explicit_bzero((char *)c->password, strlen(c->password));
	free((char *)c->host);
	free((char *)c->unix_socket);
	free((char *)c->username);
	free((char *)c->password);
	free((char *)c->key_prefix);
	free((char *)c->node_id);
}

static int copy_conf(struct hw_redis_conf *to, const struct hw_redis_conf *from)
{
	*to = *from;
	to->host = strdup(from->host);
	to->unix_socket = strdup(from->unix_socket);
	to->username = strdup(from->username);
	to->password = strdup(from->password);
	to->key_prefix = strdup(from->key_prefix);
	to->node_id = strdup(from->node_id);
	return to->host && to->unix_socket && to->username && to->password && to->key_prefix && to->node_id ? 0
	                                                                                                    : -ENOMEM;
}

static int start_link(struct hw_redis *r)
{
	const struct hw_redis_link_conf c = {
		.host = r->conf.host,
		.unix_socket = r->conf.unix_socket,
		.username = r->conf.username,
		.password = r->conf.password,
		.port = r->conf.port,
		.db = r->conf.db,
		.seed = r->conf.run_mark ^ (uint64_t)r->down_since.ns,
	};
	return hw_redis_link_init(&r->link, r->base, &c, &link_ops, r);
}

struct hw_redis *hw_redis_new(struct event_base *base, const struct hw_redis_conf *conf, const struct hw_monitor *m,
                              const struct hw_redis_ops *ops, void *arg)
{
	struct hw_redis *r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->base = base;
	r->m = m;
	r->ops = ops;
	r->arg = arg;
	r->down_since = hw_redis_now().mono;
	r->started_wall_ms = hw_redis_now().wall_ms;
	r->stats = calloc(1, sizeof(*r->stats));
	if (copy_conf(&r->conf, conf) == 0 && r->stats &&
	    (r->self = conf->keyspace ? hw_keys_self(conf->key_prefix, conf->node_id, conf->run_mark) : strdup("")) &&
	    hw_keys_init(&r->keys, conf->key_prefix, conf->node_id) == 0 && hw_sink_init(r) == 0 &&
	    hw_load_init(r) == 0 && start_link(r) == 0)
		return r;
	hw_redis_free(r);
	return NULL;
}

void hw_redis_free(struct hw_redis *r)
{
	if (!r)
		return;
	hw_redis_link_fini(&r->link);
	hw_load_fini(r);
	hw_sink_fini(r);
	hw_keys_fini(&r->keys);
	free_conf(&r->conf);
	free(r->self);
	free(r->stats);
	free(r);
}

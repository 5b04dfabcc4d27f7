/* SPDX-License-Identifier: MIT */
/* See tail.h. After each connect, INFO shows which server this is. Then src/stream/reader.h reads the stream. */
#include "redis/tail.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link/clock.h"
#include "link/link.h"
#include "link/trouble.h"
#include "redis/keys.h"
#include "redis/page.h"
#include "redis/server_run_id.h"
#include "stream/reader.h"

struct hw_tail {
	const struct hw_tail_ops *ops;
	void *arg;
	struct hw_redis_address at;
	struct hw_keys keys;
	struct hw_redis_link link;
	struct hw_stream_reader reader;
	struct hw_troubles troubles;
	bool up, at_end;
	bool other;                        /* the offset belongs to another server, so the reader must report a gap */
	bool denied;                       /* the last attempt to read the stream failed because a right is missing */
	char server[HW_SERVER_RUN_ID + 1]; /* run id of the server to which the offset belongs; "": not known yet */
	struct hw_tail_stats stats;
};

/* --- reading ------------------------------------------------------------------------------------------------------ */

static bool on_page(void *arg, const struct hw_stream_page *entries)
{
	struct hw_tail *t = arg;
	struct hw_event events[HW_EVENTS_PAGE];
	struct hw_event_page page = {.more = entries->more};
	hw_page_parse(&(struct hw_page_asked){.now_ms = hw_clock_now().wall_ms}, entries->entries, entries->n, events,
	              &page);
	bool is_known = !page.more && entries->n == 0 && t->at_end;
	page.last = entries->last;
	t->denied = false;
	t->at_end = !page.more;
	t->stats.pages++;
	t->stats.entries += page.n;
	if (!is_known)
		t->ops->on_page(t->arg, &page);
	return true;
}

static const char *sentence(enum hw_tail_gap gap)
{
	return gap == HW_TAIL_SERVER ? "this is another Redis than before, or it was restarted empty"
	                             : "the last offset read is no longer in the event stream: the stream was trimmed "
	                               "past it, deleted, or restored";
}

static struct hw_stream_id on_gap(void *arg, struct hw_stream_id offset, struct hw_stream_id end)
{
	struct hw_tail *t = arg;
	enum hw_tail_gap gap = t->other ? HW_TAIL_SERVER : HW_TAIL_LOST;
	(void)offset;
	t->at_end = t->other = t->denied = false;
	t->stats.gaps++;
	t->ops->on_gap(t->arg, gap, end, sentence(gap));
	return end;
}

static void on_refused(void *arg, const char *error, bool reads)
{
	struct hw_tail *t = arg;
	char why[HW_TROUBLE_TEXT], text[HW_TROUBLE_TEXT + 300];
	bool denied = reads && hw_trouble_of(error) == HW_TROUBLE_NOPERM, begins = denied && !t->denied;
	bool due = hw_trouble_due(&t->troubles, hw_trouble_of(error), hw_clock_now().mono.ns / HW_NS_PER_MS);
	hw_trouble_text(error, why);
	snprintf(text, sizeof(text), "%.250s cannot be followed: %s", t->keys.events, why);
	t->denied = denied;
	if (denied ? begins : due)
		t->ops->on_trouble(t->arg, text);
}

static const struct hw_stream_reader_ops reader_ops = {on_page, on_gap, on_refused};

/* --- connecting --------------------------------------------------------------------------------------------------- */

/* Handles the answer that names the server. A server that does not report its run id counts as a new server at each
 * connect. */
static void on_server(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_tail *t = arg;
	const redisReply *reply = answer;
	char id[HW_SERVER_RUN_ID + 1], text[HW_TROUBLE_TEXT];
	(void)ac;
	if (!reply)
		return;
	hw_redis_link_got(&t->link);
	if (reply->type == REDIS_REPLY_ERROR && hw_trouble_of(reply->str) != HW_TROUBLE_NOPERM) {
		hw_redis_link_fail(&t->link, reply->str);
		return;
	}
	hw_server_run_id(reply, id);
	bool other = t->server[0] && strcmp(id, t->server) != 0;
	snprintf(t->server, sizeof(t->server), "%s", id[0] ? id : "?");
	if (other && hw_stream_reader_is_started(&t->reader)) {
		t->other = true;
		hw_stream_reader_recover(&t->reader);
	}
	hw_redis_link_settled(&t->link);
	t->up = true;
	t->stats.connects++;
	snprintf(text, sizeof(text), "following %.100s at %.200s", t->keys.events, t->link.where);
	t->ops->on_link(t->arg, true, text);
	hw_stream_reader_up(&t->reader);
}

static void on_ready(void *arg)
{
	struct hw_tail *t = arg;
	const char *argv[] = {"INFO", "server"};
	const size_t len[] = {4, 6};
	if (hw_redis_link_command(&t->link, on_server, t, 2, argv, len) != 0)
		hw_redis_link_fail(&t->link, "out of memory");
}

static void on_lost(void *arg, const char *why)
{
	struct hw_tail *t = arg;
	char text[HW_TROUBLE_TEXT];
	t->up = t->at_end = false;
	hw_stream_reader_down(&t->reader);
	if (hw_trouble_of(why) != HW_TROUBLE_OTHER)
		hw_trouble_text(why, text);
	else
		snprintf(text, sizeof(text), "%s", why);
	t->ops->on_link(t->arg, false, text);
}

static const struct hw_redis_link_ops link_ops = {on_ready, on_lost, NULL};

/* --- the interface ------------------------------------------------------------------------------------------------ */

void hw_tail_from(struct hw_tail *t, struct hw_stream_id offset)
{
	t->at_end = t->other = false;
	hw_stream_reader_from(&t->reader, offset);
}

struct hw_stream_id hw_tail_offset(const struct hw_tail *t)
{
	return hw_stream_reader_offset(&t->reader);
}

const char *hw_tail_server(const struct hw_tail *t)
{
	return t->other ? "" : t->server;
}

bool hw_tail_at_end(const struct hw_tail *t)
{
	return t->up && t->at_end;
}

bool hw_tail_up(const struct hw_tail *t)
{
	return t->up;
}

bool hw_tail_is_denied(const struct hw_tail *t)
{
	return t->denied;
}

void hw_tail_tick(struct hw_tail *t)
{
	hw_redis_link_tick(&t->link);
	hw_stream_reader_tick(&t->reader);
}

const struct hw_tail_stats *hw_tail_stats(const struct hw_tail *t)
{
	return &t->stats;
}

static int start(struct hw_tail *t, struct event_base *base, const struct hw_tail_conf *conf)
{
	struct hw_redis_link_conf c = {.seed = conf->seed};
	int rc = hw_redis_address_copy(&t->at, &conf->at);
	c.at = t->at;
	if (!rc)
		rc = hw_keys_init(&t->keys, conf->key_prefix, "");
	if (!rc)
		rc = hw_stream_reader_init(&t->reader, base,
		                           &(struct hw_stream_reader_conf){&t->link, t->keys.events, HW_EVENTS_PAGE, 0},
		                           &reader_ops, t);
	return rc ? rc : hw_redis_link_init(&t->link, base, &c, &link_ops, t);
}

struct hw_tail *hw_tail_new(struct event_base *base, const struct hw_tail_conf *conf, const struct hw_tail_ops *ops,
                            void *arg)
{
	struct hw_tail *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->ops = ops;
	t->arg = arg;
	if (start(t, base, conf) == 0)
		return t;
	hw_tail_free(t);
	return NULL;
}

void hw_tail_free(struct hw_tail *t)
{
	if (!t)
		return;
	hw_redis_link_fini(&t->link);
	hw_stream_reader_fini(&t->reader);
	hw_keys_fini(&t->keys);
	hw_redis_address_fini(&t->at);
	free(t);
}

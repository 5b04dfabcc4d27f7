/* SPDX-License-Identifier: MIT */
/*
 * See tail.h. One command is in flight at a time: who are you (INFO) after each connect; then a page (XRANGE), and
 * behind the last one the wait (XREAD), in turn. After a gap the stream's end (XREVRANGE) comes first.
 */
#include "redis/tail.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link/clock.h"
#include "link/link.h"
#include "link/trouble.h"
#include "redis/keys.h"
#include "redis/page.h"
#include "redis/run_id.h"

#define WAIT_MS   "1000" /* far below HW_LINK_SILENCE_MS */
#define AGAIN_MS  1000   /* after an error */
#define PAGE_TEXT "200"
_Static_assert(HW_EVENTS_PAGE == 200, "PAGE_TEXT");

struct hw_tail {
	struct event_base *base;
	const struct hw_tail_ops *ops;
	void *arg;
	struct hw_redis_address at;
	struct hw_keys keys;
	struct hw_redis_link link;
	struct hw_troubles troubles;
	bool started, up, at_end;
	bool busy;   /* a command is in flight, or `again` waits */
	bool moved;  /* hw_tail_from() was called meanwhile: the answer is to another question */
	bool in_gap; /* the end is to be found before anything is read */
	bool denied; /* for want of a right the stream was not read when that was tried last */
	enum hw_tail_gap gap;
	struct hw_event_id place;
	char server[HW_RUN_ID + 1]; /* whom the place is of; "": nobody's yet */
	struct event *again;
	struct hw_tail_stats stats;
};

static void read_on(struct hw_tail *t);
static void find_end(struct hw_tail *t, enum hw_tail_gap gap);

/* --- asking ------------------------------------------------------------------------------------------------------- */

static void ask(struct hw_tail *t, redisCallbackFn *fn, int argc, const char **argv)
{
	size_t len[8];
	for (int i = 0; i < argc; i++)
		len[i] = strlen(argv[i]);
	t->moved = false;
	t->busy = hw_redis_link_command(&t->link, fn, t, argc, argv, len) == 0;
	if (!t->busy)
		hw_redis_link_fail(&t->link, "out of memory");
}

/* An error, or what makes no sense: told, and tried again in a moment. `entries`: it was asked for a part of the
 * stream.
 */
static void refused(struct hw_tail *t, const redisReply *reply, bool entries)
{
	struct timeval tv = {AGAIN_MS / 1000, AGAIN_MS % 1000 * 1000};
	const char *error = reply->type == REDIS_REPLY_ERROR ? reply->str : "ERR the answer makes no sense";
	char why[HW_TROUBLE_TEXT], text[HW_TROUBLE_TEXT + 300];
	bool denied = entries && hw_trouble_of(error) == HW_TROUBLE_NOPERM, begins = denied && !t->denied;
	bool due = hw_trouble_due(&t->troubles, hw_trouble_of(error), hw_clock_now().mono.ns / HW_NS_PER_MS);
	hw_trouble_text(error, why);
	snprintf(text, sizeof(text), "%.250s cannot be followed: %s", t->keys.events, why);
	t->denied = denied;
	if (denied ? begins : due)
		t->ops->on_trouble(t->arg, text);
	t->busy = event_add(t->again, &tv) == 0; /* or the next tick */
}

static void on_again(evutil_socket_t fd, short what, void *arg)
{
	struct hw_tail *t = arg;
	(void)fd, (void)what;
	t->busy = false;
	if (t->up)
		read_on(t);
}

/* The reply, or NULL if the link is lost, or it answers what nobody wants to know any more: then it reads on. */
static const redisReply *said(struct hw_tail *t, const redisReply *reply)
{
	if (!reply)
		return NULL;
	hw_redis_link_got(&t->link);
	t->busy = false;
	if (!t->moved)
		return reply;
	read_on(t);
	return NULL;
}

/* The same for a part of the stream. */
static const redisReply *said_entries(struct hw_tail *t, const redisReply *reply)
{
	reply = said(t, reply);
	if (!reply)
		return NULL;
	if (reply->type == REDIS_REPLY_ARRAY) {
		t->denied = false;
		return reply;
	}
	refused(t, reply, true);
	return NULL;
}

/* --- pages -------------------------------------------------------------------------------------------------------- */

static void on_wake(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_tail *t = arg;
	const redisReply *reply = said(t, answer);
	(void)ac;
	if (!reply)
		return;
	if (reply->type == REDIS_REPLY_NIL || reply->type == REDIS_REPLY_ARRAY)
		read_on(t);
	else
		refused(t, reply, false);
}

static void wait_for_more(struct hw_tail *t)
{
	char place[HW_EVENT_ID_TEXT];
	hw_event_id_text(t->place, place);
	const char *argv[] = {"XREAD", "COUNT", "1", "BLOCK", WAIT_MS, "STREAMS", t->keys.events, place};
	ask(t, on_wake, 8, argv);
}

static void on_page(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_tail *t = arg;
	struct hw_event events[HW_EVENTS_PAGE];
	struct hw_event_page page;
	const redisReply *reply = said_entries(t, answer);
	(void)ac;
	if (!reply)
		return;
	hw_page_read(
		&(struct hw_page_asked){.after = t->place, .count = HW_EVENTS_PAGE, .now_ms = hw_clock_now().wall_ms},
		reply, events, &page);
	if (page.gone) {
		find_end(t, HW_TAIL_LOST);
		return;
	}
	bool told = !page.more && page.n == 0 && t->at_end;
	t->busy = true; /* the owner may call us */
	t->place = page.last;
	t->at_end = !page.more;
	t->stats.pages++;
	t->stats.entries += page.n;
	if (!told)
		t->ops->on_page(t->arg, &page);
	t->busy = false;
	if (page.more || t->moved)
		read_on(t);
	else
		wait_for_more(t);
}

static void read_on(struct hw_tail *t)
{
	char place[HW_EVENT_ID_TEXT];
	if (!t->started || t->busy)
		return;
	if (t->in_gap) {
		find_end(t, t->gap);
		return;
	}
	hw_event_id_text(t->place, place);
	const char *argv[] = {"XRANGE", t->keys.events, place, "+", "COUNT", PAGE_TEXT};
	ask(t, on_page, 6, argv);
}

/* --- gaps --------------------------------------------------------------------------------------------------------- */

static const char *sentence(enum hw_tail_gap gap)
{
	return gap == HW_TAIL_SERVER ? "this is another Redis than the one that was followed, or it was started anew"
	                             : "the place that was read last is not in the event stream any more: it was "
	                               "trimmed past it, deleted, or put back as it was before";
}

static void on_end(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_tail *t = arg;
	struct hw_event events[HW_EVENTS_PAGE];
	struct hw_event_page page;
	const redisReply *reply = said_entries(t, answer);
	(void)ac;
	if (!reply)
		return;
	hw_page_read(&(struct hw_page_asked){.last = true, .count = 1}, reply, events, &page);
	t->busy = true; /* the owner may call us */
	t->place = page.last;
	t->at_end = t->in_gap = false;
	t->stats.gaps++;
	t->ops->on_gap(t->arg, t->gap, t->place, sentence(t->gap));
	t->busy = false;
	read_on(t);
}

static void find_end(struct hw_tail *t, enum hw_tail_gap gap)
{
	const char *argv[] = {"XREVRANGE", t->keys.events, "+", "-", "COUNT", "1"};
	t->in_gap = true;
	t->gap = gap;
	ask(t, on_end, 6, argv);
}

/* --- connecting --------------------------------------------------------------------------------------------------- */

/* Who does not say who it is counts as another one each time. */
static void on_server(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_tail *t = arg;
	const redisReply *reply = answer;
	char id[HW_RUN_ID + 1], text[HW_TROUBLE_TEXT];
	(void)ac;
	if (!reply)
		return;
	hw_redis_link_got(&t->link);
	t->busy = false;
	if (reply->type == REDIS_REPLY_ERROR && hw_trouble_of(reply->str) != HW_TROUBLE_NOPERM) {
		hw_redis_link_fail(&t->link, reply->str);
		return;
	}
	hw_run_id(reply, id);
	bool other = t->server[0] && strcmp(id, t->server) != 0;
	snprintf(t->server, sizeof(t->server), "%s", id[0] ? id : "?");
	if (other && t->started) {
		t->gap = HW_TAIL_SERVER; /* also of one that was found at the server before */
		t->in_gap = true;
	}
	hw_redis_link_settled(&t->link);
	t->up = true;
	t->stats.connects++;
	snprintf(text, sizeof(text), "following %.100s at %.200s", t->keys.events, t->link.where);
	t->busy = true; /* the owner may call us */
	t->ops->on_link(t->arg, true, text);
	t->busy = false;
	read_on(t);
}

static void on_ready(void *arg)
{
	const char *argv[] = {"INFO", "server"};
	ask(arg, on_server, 2, argv);
}

static void on_lost(void *arg, const char *why)
{
	struct hw_tail *t = arg;
	char text[HW_TROUBLE_TEXT];
	t->up = t->busy = t->moved = t->at_end = false;
	event_del(t->again);
	if (hw_trouble_of(why) != HW_TROUBLE_OTHER)
		hw_trouble_text(why, text);
	else
		snprintf(text, sizeof(text), "%s", why);
	t->ops->on_link(t->arg, false, text);
}

static const struct hw_redis_link_ops link_ops = {on_ready, on_lost, NULL};

/* --- what is shown of it ------------------------------------------------------------------------------------------ */

void hw_tail_from(struct hw_tail *t, struct hw_event_id place)
{
	t->place = place;
	t->started = true;
	t->at_end = t->in_gap = false;
	t->moved = true;
	if (t->up)
		read_on(t);
}

struct hw_event_id hw_tail_place(const struct hw_tail *t)
{
	return t->place;
}

const char *hw_tail_server(const struct hw_tail *t)
{
	return t->in_gap && t->gap == HW_TAIL_SERVER ? "" : t->server;
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
	if (t->up)
		read_on(t);
}

const struct hw_tail_stats *hw_tail_stats(const struct hw_tail *t)
{
	return &t->stats;
}

static int start(struct hw_tail *t, const struct hw_tail_conf *conf)
{
	struct hw_redis_link_conf c = {.seed = conf->seed};
	int rc = hw_redis_address_copy(&t->at, &conf->at);
	c.at = t->at;
	if (!rc)
		rc = hw_keys_init(&t->keys, conf->key_prefix, "");
	t->again = event_new(t->base, -1, 0, on_again, t);
	if (!rc && !t->again)
		rc = -ENOMEM;
	return rc ? rc : hw_redis_link_init(&t->link, t->base, &c, &link_ops, t);
}

struct hw_tail *hw_tail_new(struct event_base *base, const struct hw_tail_conf *conf, const struct hw_tail_ops *ops,
                            void *arg)
{
	struct hw_tail *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->base = base;
	t->ops = ops;
	t->arg = arg;
	if (start(t, conf) == 0)
		return t;
	hw_tail_free(t);
	return NULL;
}

void hw_tail_free(struct hw_tail *t)
{
	if (!t)
		return;
	hw_redis_link_fini(&t->link);
	if (t->again)
		event_free(t->again);
	hw_keys_fini(&t->keys);
	hw_redis_address_fini(&t->at);
	free(t);
}

/* SPDX-License-Identifier: MIT */
/*
 * The mark in device:monitor:NODE_ID: "RUN MS", this run's random number and until when it has seen, in wall
 * milliseconds. What the run before left there tells for how long nobody listened. What is found in its place each
 * second tells whether Redis is still the one that we wrote to.
 *
 * MS is never later than what the store knows of: it stands still while the monitor is blind and until the load has
 * ended.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/inner.h"

struct found {
	bool any, ours;
	int64_t ms;
};

static struct found parse(const struct hw_redis *r, const redisReply *reply)
{
	struct found f = {.any = reply->type == REDIS_REPLY_STRING};
	uint64_t run;
	int64_t ms;
	int end = 0;
	if (!f.any || sscanf(reply->str, "%16" SCNx64 " %" SCNd64 "%n", &run, &ms, &end) != 2 ||
	    (size_t)end != reply->len)
		return f;
	f.ours = run == r->conf.run_mark;
	f.ms = ms > 0 ? ms : 0;
	return f;
}

/* Compares what was there with what we wrote last; the store is swept where they differ. */
static void compare(struct hw_redis *r, const struct found *f)
{
	struct hw_mark *k = &r->mark;
	if (!k->written)
		return; /* it is still the mark of the run before */
	if (!f->any) {
		k->written = false; /* tell it once */
		r->ops->on_emptied(r->arg);
	} else if (!f->ours) {
		hw_redis_tell(r, HW_TROUBLE_MARK,
		              "another run has written this monitor's mark: either a second monitor has the same "
		              "node_id, or Redis was restored from a copy");
		if (r->sink.sweep)
			return; /* two that fight must not keep it from ending */
	} else if (f->ms >= k->written_ms) {
		return;
	}
	hw_sink_sweep(r);
}

static void on_read(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_redis *r = arg;
	const redisReply *reply = answer;
	(void)ac;
	if (!reply)
		return;
	hw_redis_link_got(&r->link);
	if (reply->type == REDIS_REPLY_ERROR && hw_trouble_of(reply->str) != HW_TROUBLE_WRONGTYPE) {
		hw_redis_link_fail(&r->link, reply->str);
		return;
	}
	struct found f = parse(r, reply);
	if (!r->mark.read) {
		r->mark.read = true;
		r->mark.old_ms = f.ms;
		if (!r->mark.saw_ms)
			r->mark.saw_ms = f.ms;
	}
	hw_redis_settled(r);
	compare(r, &f);
}

void hw_mark_read(struct hw_redis *r)
{
	const char *argv[] = {"GET", r->keys.monitor};
	const size_t len[] = {3, strlen(r->keys.monitor)};
	if (hw_redis_link_command(&r->link, on_read, r, 2, argv, len) != 0)
		hw_redis_link_fail(&r->link, "out of memory");
}

static void on_written(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_redis *r = arg;
	const redisReply *reply = answer;
	struct hw_mark *k = &r->mark;
	(void)ac;
	if (!reply)
		return;
	hw_redis_link_got(&r->link);
	k->in_flight = false;
	if (reply->type == REDIS_REPLY_ERROR) {
		if (hw_redis_trouble(r, reply->str) == HW_TROUBLE_NOSCRIPT)
			hw_redis_load_scripts(r);
		return;
	}
	struct found f = parse(r, reply);
	compare(r, &f);
	k->written = true;
	k->written_ms = k->sent_ms;
}

void hw_mark_seen(struct hw_redis *r, struct hw_now now, bool blind)
{
	struct hw_mark *k = &r->mark;
	char mark[48];
	size_t len = 0;
	if (!blind && !hw_load_pending(r) && k->read)
		k->saw_ms = now.wall_ms;
	if (!r->up || k->in_flight || r->scripts_awaited)
		return;
	int n = snprintf(mark, sizeof(mark), "%016" PRIx64 " %" PRId64, r->conf.run_mark, k->saw_ms);
	struct hw_eval *e = &r->sink.eval;
	hw_eval_begin(e);
	hw_eval_key(e, r->keys.monitor, strlen(r->keys.monitor));
	hw_eval_arg(e, mark, (size_t)n);
	const char *command = hw_eval_end(e, r->sha[HW_SCRIPT_MARK], &len);
	if (!command || hw_redis_link_send(&r->link, on_written, r, command, len) != 0)
		return; /* the next second will do */
	k->in_flight = true;
	k->sent_ms = k->saw_ms;
}

void hw_mark_lost(struct hw_redis *r)
{
	r->mark.in_flight = false;
}

bool hw_redis_is_marked(const struct hw_redis *r)
{
	return r->mark.written;
}

bool hw_redis_is_marking(const struct hw_redis *r)
{
	return r->mark.in_flight;
}

/* --- the fence --------------------------------------------------------------------------------------------------- */

struct fence {
	struct hw_redis *r;
	hw_redis_fenced *fn;
	void *arg;
};

static void on_fence(redisAsyncContext *ac, void *answer, void *arg)
{
	struct fence f = *(struct fence *)arg;
	const redisReply *reply = answer;
	(void)ac;
	free(arg);
	if (reply)
		hw_redis_link_got(&f.r->link);
	bool known = reply && (reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_NIL);
	f.fn(f.arg, known, known && (reply->type == REDIS_REPLY_STRING || !f.r->mark.written));
}

int hw_redis_fence(struct hw_redis *r, hw_redis_fenced *fn, void *arg)
{
	const char *argv[] = {"GET", r->keys.monitor};
	const size_t len[] = {3, strlen(r->keys.monitor)};
	struct fence *f = r->up ? malloc(sizeof(*f)) : NULL;
	if (!f)
		return r->up ? -ENOMEM : -ENOTCONN;
	*f = (struct fence){r, fn, arg};
	int rc = hw_redis_link_command(&r->link, on_fence, f, 2, argv, len);
	if (rc != 0)
		free(f);
	return rc;
}

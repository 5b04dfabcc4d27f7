/* SPDX-License-Identifier: MIT */
/*
 * The mark in device:monitor:NODE_ID: "RUN MS CANARIES", this run's random number; until when it has seen, in wall
 * milliseconds; and hw_monitor_canaries(), left out while it is 0. What the run before left there tells for how long
 * nobody listened. What is found in its place each second tells whether Redis is still the one that we wrote to.
 *
 * MS is never later than what the store knows of: it stands still while the monitor is blind and until the load has
 * ended.
 *
 * Of several nodes it is written by who has the name. A run that waits until its predecessor under it is removed leaves
 * that one's mark, which tells as well whether Redis was emptied.
 *
 * It is also what tells, each second, whether Redis writes at all. Its script has a second key, so that a cluster
 * refuses it as it would a transition: that of the clock of watching (watched.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/print.h"
#include "redis/inner.h"
#include "redis/run_id.h"

struct found {
	bool any, ours;
	int64_t ms;
	uint64_t canaries;
};

static struct found parse(const struct hw_redis *r, const redisReply *reply)
{
	struct found f = {.any = reply->type == REDIS_REPLY_STRING};
	uint64_t run, canaries = 0;
	int64_t ms;
	int end = 0, more = 0;
	if (!f.any || sscanf(reply->str, "%16" SCNx64 " %" SCNd64 "%n", &run, &ms, &end) != 2)
		return f;
	if (sscanf(reply->str + end, " %16" SCNx64 "%n", &canaries, &more) == 1)
		end += more;
	if ((size_t)end != reply->len)
		return f;
	f.canaries = canaries;
	f.ours = run == r->conf.run_mark;
	f.ms = ms > 0 ? ms : 0;
	return f;
}

int64_t hw_mark_ms(const struct hw_redis *r, const redisReply *reply)
{
	return parse(r, reply).ms;
}

/* Compares what was there with what we wrote last; the store is swept where they differ. */
static void compare(struct hw_redis *r, const struct found *f)
{
	struct hw_mark *k = &r->mark;
	if (!k->written && (!k->left || f->any))
		return; /* it is still the mark of the run before */
	if (!f->any) {
		k->written = k->left = false; /* tell it once */
		r->ops->on_emptied(r->arg);
	} else if (!f->ours) {
		k->doubted = true;
		hw_refusal_tell(r, &k->stranger_told_ms,
		                "another run has written this monitor's mark: either a second monitor has the same "
		                "node_id, or Redis was restored from a copy");
		if (r->sink.sweep)
			return; /* two monitors that overwrite each other's mark must not begin the sweep anew for ever
			         */
	} else if (f->ms >= k->written_ms) {
		return;
	} else {
		k->doubted = true;
	}
	hw_plan_sweep(r);
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
		r->mark.old_canaries = f.canaries;
		r->mark.newest_ms = f.ms;
		if (!r->mark.saw_ms)
			r->mark.saw_ms = f.ms;
	}
	if (r->ops->owner && !r->mark.searched) {
		hw_marks_read(r); /* nothing of this run's is there yet to be compared */
		return;
	}
	r->mark.then(r);
	compare(r, &f);
}

void hw_mark_read(struct hw_redis *r, void (*then)(struct hw_redis *r))
{
	r->mark.then = then;
	const char *argv[] = {"GET", r->keys.monitor};
	const size_t len[] = {3, strlen(r->keys.monitor)};
	if (hw_watched_read(r) != 0 || hw_redis_link_command(&r->link, on_read, r, 2, argv, len) != 0)
		hw_redis_link_fail(&r->link, "out of memory");
}

static void refused(struct hw_redis *r, const char *error)
{
	bool again = r->refusal.writes & HW_REFUSED_MARK;
	enum hw_trouble trouble = hw_refusal_begin(r, HW_REFUSED_MARK, error);
	if (trouble == HW_TROUBLE_NOSCRIPT)
		hw_scripts_load(&r->scripts);
	else if (trouble == HW_TROUBLE_READONLY && again)
		hw_redis_link_fail(&r->link, error); /* a new connection may find the new master */
}

/* Another run has the name: its mark is in the place of ours, or none is. Whether Redis writes is not seen by that; but
 * if it has refused a mark, it has written since that who has the name. */
static void on_left(struct hw_redis *r, const redisReply *found)
{
	struct found f = parse(r, found);
	if (!f.any)
		compare(r, &f);
	r->mark.doubted = true;
	r->mark.written = false;
	r->mark.left = f.any;
	hw_refusal_end(r, HW_REFUSED_MARK);
}

static void put(struct hw_redis *r);

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
		refused(r, reply->str);
		return;
	}
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 4) {
		refused(r, "ERR the answer to a mark makes no sense");
		return;
	}
	struct hw_now now = hw_clock_now();
	hw_watched_set(r, now, reply->element[2]->integer);
	hw_watched_compare(r, now, k->asked_ms, reply->element[3]->integer);
	if (reply->element[1]->integer) {
		on_left(r, reply->element[0]);
		return;
	}
	struct found f = parse(r, reply->element[0]);
	bool is_put = f.any || k->sent_new;
	int64_t ms = k->sent_ms;
	compare(r, &f); /* which may send the next one */
	if (!is_put) {
		put(r); /* by a run that has missed its own by now */
		return;
	}
	hw_refusal_end(r, HW_REFUSED_MARK);
	if (k->left && !k->written_ms)
		k->doubted = false; /* it was another's since this run began: there was nothing of ours to miss */
	k->written = true;
	k->left = false;
	k->written_ms = ms;
}

static void put(struct hw_redis *r)
{
	struct hw_mark *k = &r->mark;
	char mark[64];
	if (!r->up || k->in_flight || hw_scripts_loading(&r->scripts))
		return;
	size_t n = hw_print(mark, sizeof(mark), "%016" PRIx64 " %" PRId64, r->conf.run_mark, k->saw_ms);
	if (k->canaries)
		n += hw_print(mark + n, sizeof(mark) - n, " %016" PRIx64, k->canaries);
	bool new = !hw_redis_is_marked(r);
	struct hw_eval *e = &k->eval;
	hw_eval_begin(e);
	hw_eval_key(e, r->keys.monitor, strlen(r->keys.monitor));
	hw_eval_key(e, r->keys.watched, strlen(r->keys.watched));
	if (r->ops->owner)
		hw_eval_key(e, r->keys.nodes, strlen(r->keys.nodes));
	hw_eval_arg(e, mark, n);
	hw_eval_arg(e, new ? "1" : "0", 1);
	hw_eval_arg(e, k->sees ? "1" : "0", 1);
	if (r->ops->owner)
		hw_eval_arg(e, r->conf.node_id, strlen(r->conf.node_id));
	if (hw_scripts_call(&r->scripts, HW_SCRIPT_MARK, e, on_written, r) != 0)
		return; /* the next second will do */
	k->in_flight = true;
	k->asked_ms = hw_clock_mono().ns / HW_NS_PER_MS;
	k->sent_new = new;
	k->sent_ms = k->saw_ms;
}

void hw_redis_seen(struct hw_redis *r, struct hw_now now, bool blind)
{
	struct hw_mark *k = &r->mark;
	k->sees = !blind && !hw_load_pending(r) && k->read;
	if (k->sees)
		k->saw_ms = now.wall_ms;
	put(r);
}

void hw_redis_keep_canaries(struct hw_redis *r, uint64_t canaries)
{
	r->mark.canaries = canaries;
}

uint64_t hw_redis_old_canaries(const struct hw_redis *r)
{
	return r->mark.old_canaries;
}

void hw_mark_lost(struct hw_redis *r)
{
	r->mark.in_flight = false;
}

bool hw_redis_is_marked(const struct hw_redis *r)
{
	return r->mark.written || r->mark.left;
}

bool hw_redis_is_marking(const struct hw_redis *r)
{
	return r->mark.in_flight;
}

bool hw_redis_doubts(struct hw_redis *r)
{
	bool doubted = r->mark.doubted;
	r->mark.doubted = false;
	return doubted;
}

/* --- the fence --------------------------------------------------------------------------------------------------- */

struct fence {
	struct hw_redis *r;
	hw_redis_fenced *fn;
	void *arg;
	unsigned answers; /* that are awaited */
	bool known, there;
};

static void answered(struct fence *f, const char *server)
{
	if (--f->answers > 0)
		return;
	f->fn(f->arg, f->known, f->known && (f->there || !hw_redis_is_marked(f->r)), server);
	free(f);
}

static void on_fence(redisAsyncContext *ac, void *answer, void *arg)
{
	struct fence *f = arg;
	const redisReply *reply = answer;
	(void)ac;
	if (reply)
		hw_redis_link_got(&f->r->link);
	f->known = reply && (reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_NIL);
	if (f->known) {
		struct found found = parse(f->r, reply);
		f->there = found.any && (found.ours || !f->r->mark.written); /* another's says nothing of ours */
	}
	answered(f, "");
}

static void on_server(redisAsyncContext *ac, void *answer, void *arg)
{
	struct fence *f = arg;
	const redisReply *reply = answer;
	char id[HW_RUN_ID + 1] = "";
	(void)ac;
	if (reply) {
		hw_redis_link_got(&f->r->link);
		hw_run_id(reply, id);
	}
	f->known &= reply != NULL;
	answered(f, id);
}

int hw_redis_fence(struct hw_redis *r, bool who, hw_redis_fenced *fn, void *arg)
{
	const char *mark[] = {"GET", r->keys.monitor}, *server[] = {"INFO", "server"};
	const size_t mark_len[] = {3, strlen(r->keys.monitor)}, server_len[] = {4, 6};
	struct fence *f = r->up ? malloc(sizeof(*f)) : NULL;
	if (!f)
		return r->up ? -ENOMEM : -ENOTCONN;
	*f = (struct fence){.r = r, .fn = fn, .arg = arg, .answers = who ? 2 : 1};
	int rc = hw_redis_link_command(&r->link, on_fence, f, 2, mark, mark_len);
	if (rc != 0)
		free(f);
	else if (who && hw_redis_link_command(&r->link, on_server, f, 2, server, server_len) != 0)
		f->answers--;
	return rc;
}

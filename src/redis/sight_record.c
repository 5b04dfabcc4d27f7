/* SPDX-License-Identifier: MIT */
/*
 * The sight record in device:monitor:NODE_ID is "RUN MS CANARIES". RUN is this run's id. MS is the time until which
 * this run has seen the fleet, in wall-clock milliseconds. CANARIES are the parts of hw_monitor_canaries() that are not
 * 0, each with its index; it is omitted if there are none.
 *
 * The sight record of the previous run shows how long no monitor was watching. This run reads its own sight record each
 * second, which shows whether Redis still has our data.
 *
 * Invariant: MS is never later than the last state in the store. MS stands still while the monitor is blind, and until
 * the load has ended.
 *
 * In a cluster, only the run that is a member under the name NODE_ID writes the sight record. A run that waits until
 * its predecessor is removed does not change the predecessor's record, which also shows whether Redis was emptied.
 *
 * Each write also shows whether Redis accepts writes. The script has a second key, that of the clock of watching
 * (watched.c), so that a Redis Cluster refuses it as it would refuse a transition.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/print.h"
#include "redis/inner.h"

struct found {
	bool any, ours;
	int64_t ms;
	struct hw_canaries canaries;
};

#define PART_DIGITS 10 /* two for the index of a part, eight for its value */

/* Parses CANARIES of the sight record. A part that the text does not contain is 0. If the text has another form, *to
 * is not changed. */
static void parse_canaries(const char *text, struct hw_canaries *to)
{
	struct hw_canaries read = {{0}};
	unsigned index, value;
	int n;
	for (; *text; text += PART_DIGITS) {
		n = 0;
		if (strnlen(text, PART_DIGITS) < PART_DIGITS || sscanf(text, "%2x%8x%n", &index, &value, &n) != 2 ||
		    n != PART_DIGITS)
			return;
		read.part[index] = value;
	}
	*to = read;
}

static struct found parse(const struct hw_redis *r, const redisReply *reply)
{
	struct found f = {.any = reply->type == REDIS_REPLY_STRING};
	uint64_t run;
	int64_t ms;
	int end = 0;
	if (!f.any || sscanf(reply->str, "%16" SCNx64 " %" SCNd64 "%n", &run, &ms, &end) != 2)
		return f;
	size_t canaries = (size_t)end + (reply->str[end] == ' ');
	if (canaries + strspn(reply->str + canaries, "0123456789abcdef") != reply->len)
		return f;
	parse_canaries(reply->str + canaries, &f.canaries);
	f.ours = run == r->conf.run_id;
	f.ms = ms > 0 ? ms : 0;
	return f;
}

int64_t hw_sight_record_ms(const struct hw_redis *r, const redisReply *reply)
{
	return parse(r, reply).ms;
}

/* Compares the sight record that was found with the last one that this run wrote. If the store may have lost writes
 * since, starts a sweep, which compares all devices. */
static void compare(struct hw_redis *r, const struct found *f)
{
	struct hw_sight_record *k = &r->sight_record;
	if (!k->written && (!k->left || f->any))
		return; /* it is still the sight record of the previous run */
	if (!f->any) {
		k->written = k->left = false; /* report it once */
		hw_published_again(r);
		r->ops->on_emptied(r->arg);
	} else if (!f->ours) {
		k->doubted = true;
		hw_refusal_log(r, &k->stranger_reported_ms,
		               "another run of this monitor has written its run id: a second monitor has the same "
		               "node_id, or Redis was restored from a copy");
		if (r->sink.sweep)
			return; /* if the sweep restarted here, two monitors that overwrite each other's record would
			           restart it for ever */
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
	if (!r->sight_record.read) {
		r->sight_record.read = true;
		r->sight_record.old_ms = f.ms;
		r->sight_record.old_canaries = f.canaries;
		r->sight_record.newest_ms = f.ms;
		if (!r->sight_record.saw_ms)
			r->sight_record.saw_ms = f.ms;
	}
	if (r->ops->owner && !r->sight_record.searched) {
		hw_sight_records_read(r); /* this run has written no sight record yet, so there is nothing to compare */
		return;
	}
	r->sight_record.then(r);
	compare(r, &f);
}

void hw_sight_record_read(struct hw_redis *r, void (*then)(struct hw_redis *r))
{
	r->sight_record.then = then;
	const char *argv[] = {"GET", r->keys.monitor};
	const size_t len[] = {3, strlen(r->keys.monitor)};
	if (hw_watched_read(r) != 0 || hw_redis_link_command(&r->link, on_read, r, 2, argv, len) != 0)
		hw_redis_link_fail(&r->link, "out of memory");
}

static void refused(struct hw_redis *r, const char *error)
{
	bool again = r->refusal.writes & HW_REFUSED_SIGHT_RECORD;
	enum hw_trouble trouble = hw_refusal_begin(r, HW_REFUSED_SIGHT_RECORD, error);
	if (trouble == HW_TROUBLE_NOSCRIPT)
		hw_scripts_load(&r->scripts);
	else if (trouble == HW_TROUBLE_READONLY && again)
		hw_redis_link_fail(&r->link, error); /* a new connection may reach the new master */
}

/* Called when another run uses our name, so our sight record was not written. The store has that run's record, or
 * none. If Redis refused our last write, the other record proves that Redis accepts writes again. */
static void on_left(struct hw_redis *r, const redisReply *found)
{
	struct found f = parse(r, found);
	if (!f.any)
		compare(r, &f);
	r->sight_record.doubted = true;
	r->sight_record.written = false;
	r->sight_record.left = f.any;
	hw_refusal_end(r, HW_REFUSED_SIGHT_RECORD);
}

static void put(struct hw_redis *r);

static void on_written(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_redis *r = arg;
	const redisReply *reply = answer;
	struct hw_sight_record *k = &r->sight_record;
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
		refused(r, "ERR malformed answer to a check of the run id");
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
	compare(r, &f); /* this may send the next sight record */
	if (!is_put) {
		put(r); /* Redis had confirmed this run's sight record, and it is missing now */
		return;
	}
	hw_refusal_end(r, HW_REFUSED_SIGHT_RECORD);
	if (k->left && !k->written_ms)
		k->doubted = false; /* another run used our name until now, so none of our sight records is missing */
	k->written = true;
	k->left = false;
	k->written_ms = ms;
}

static void put(struct hw_redis *r)
{
	struct hw_sight_record *k = &r->sight_record;
	char sight_record[64 + PART_DIGITS * HW_CANARY_PARTS];
	if (!r->up || k->in_flight || hw_scripts_loading(&r->scripts))
		return;
	size_t n = hw_print(sight_record, sizeof(sight_record), "%016" PRIx64 " %" PRId64, r->conf.run_id, k->saw_ms);
	bool any = false;
	for (unsigned i = 0; i < HW_CANARY_PARTS; i++) {
		if (k->canaries.part[i] == 0)
			continue;
		n += hw_print(sight_record + n, sizeof(sight_record) - n, "%s%02x%08x", any ? "" : " ", i,
		              (unsigned)k->canaries.part[i]);
		any = true;
	}
	bool new = !hw_redis_has_sight_record(r);
	struct hw_eval *e = &k->eval;
	hw_eval_begin(e);
	hw_eval_key(e, r->keys.monitor, strlen(r->keys.monitor));
	hw_eval_key(e, r->keys.watched, strlen(r->keys.watched));
	if (r->ops->owner)
		hw_eval_key(e, r->keys.nodes, strlen(r->keys.nodes));
	hw_eval_arg(e, sight_record, n);
	hw_eval_arg(e, new ? "1" : "0", 1);
	hw_eval_arg(e, k->sees ? "1" : "0", 1);
	if (r->ops->owner)
		hw_eval_arg(e, r->conf.node_id, strlen(r->conf.node_id));
	if (hw_scripts_call(&r->scripts, HW_SCRIPT_SIGHT_RECORD, e, on_written, r) != 0)
		return; /* the next second repeats it */
	k->in_flight = true;
	k->asked_ms = hw_clock_mono().ns / HW_NS_PER_MS;
	k->sent_new = new;
	k->sent_ms = k->saw_ms;
}

void hw_redis_seen(struct hw_redis *r, struct hw_now now, bool blind)
{
	struct hw_sight_record *k = &r->sight_record;
	k->sees = !blind && !hw_load_pending(r) && k->read;
	if (k->sees)
		k->saw_ms = now.wall_ms;
	put(r);
}

void hw_redis_keep_canaries(struct hw_redis *r, const struct hw_canaries *canaries)
{
	r->sight_record.canaries = *canaries;
}

const struct hw_canaries *hw_redis_old_canaries(const struct hw_redis *r)
{
	return &r->sight_record.old_canaries;
}

void hw_sight_record_lost(struct hw_redis *r)
{
	r->sight_record.in_flight = false;
}

bool hw_redis_has_sight_record(const struct hw_redis *r)
{
	return r->sight_record.written || r->sight_record.left;
}

bool hw_redis_is_writing_sight_record(const struct hw_redis *r)
{
	return r->sight_record.in_flight;
}

bool hw_redis_doubts(struct hw_redis *r)
{
	bool doubted = r->sight_record.doubted;
	r->sight_record.doubted = false;
	return doubted;
}

/* --- the fence --------------------------------------------------------------------------------------------------- */

struct fence {
	struct hw_redis *r;
	hw_redis_fenced *fn;
	void *arg;
};

static void on_fence(redisAsyncContext *ac, void *answer, void *arg)
{
	struct fence *f = arg;
	struct hw_redis *r = f->r;
	const redisReply *reply = answer;
	bool known = reply && (reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_NIL), there = false;
	(void)ac;
	if (reply)
		hw_redis_link_got(&r->link);
	if (known) {
		struct found found = parse(r, reply);
		/* another run's sight record proves nothing about ours */
		there = found.any && (found.ours || !r->sight_record.written);
	}
	f->fn(f->arg, known, known && (there || !hw_redis_has_sight_record(r)));
	free(f);
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

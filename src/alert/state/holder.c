/* SPDX-License-Identifier: MIT */
/* See holder.h. Cost: a script every 2 s. */
#include "alert/state/holder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "alert/app.h"
#include "alert/follow/fields.h"
#include "alert/state/commit.h"
#include "alert/state/places.h"

#define RUN_LEN    16
#define EPOCH_LEN  20
#define COMMIT_LEN 20

struct hw_alert_holder {
	struct hw_alert_app *app;
	struct hw_eval eval;
	char run[RUN_LEN + 1], name[HW_ALERT_NODE_TEXT + RUN_LEN + 2], epoch[EPOCH_LEN], other[HW_ALERT_NODE_TEXT];
	bool held, asking, starts;
	bool differs;                   /* this machine's clock differs from Redis' clock, and this was logged */
	int64_t asked_ns, confirmed_ns; /* BOOTTIME */
	int64_t redis_ms, redis_at_ns;  /* Redis' clock, and when it was read */
	unsigned wait_s;                /* until the next request */
	void (*released)(void *arg);
	void *released_arg;
};

enum hw_alert_verdict hw_alert_verdict_of(const char *text)
{
	static const char *const names[] = {[HW_ALERT_OK] = "OK",
	                                    [HW_ALERT_FENCED] = "FENCED",
	                                    [HW_ALERT_GONE] = "GONE",
	                                    [HW_ALERT_BEHIND] = "BEHIND"};
	for (int k = 0; text && k < HW_ALERT_UNKNOWN; k++)
		if (strcmp(text, names[k]) == 0)
			return (enum hw_alert_verdict)k;
	return HW_ALERT_UNKNOWN;
}

/* Returns the text at a place of an answer. The first place is 1. */
static const char *part(const redisReply *r, unsigned place)
{
	bool is = r && r->type == REDIS_REPLY_ARRAY && place <= r->elements &&
	          r->element[place - 1]->type == REDIS_REPLY_STRING;
	return is ? r->element[place - 1]->str : "";
}

static void compare_clocks(struct hw_alert_holder *h)
{
	int64_t ahead_ms = hw_alert_ahead_ms(h->app);
	bool differs = llabs(ahead_ms) >= (h->differs ? HW_ALERT_AGREES_MS : HW_ALERT_DIFFERS_MS);
	if (differs && !h->differs)
		hw_log(h->app->log, HW_LOG_WARNING,
		       "this machine's clock is %.0f s %s Redis' clock; until they agree, heartwheel-alert goes by "
		       "Redis' clock; check NTP on "
		       "both "
		       "machines",
		       (double)llabs(ahead_ms) / 1000, ahead_ms > 0 ? "ahead of" : "behind");
	else if (!differs && h->differs)
		hw_log(h->app->log, HW_LOG_NOTICE, "this machine's clock agrees with Redis' clock again");
	h->differs = differs;
}

static void note_clock(struct hw_alert_holder *h, const char *now)
{
	int64_t ms = hw_number_of(now, 1, INT64_MAX / 2, 0);
	if (ms) {
		h->redis_ms = ms;
		h->redis_at_ns = h->asked_ns;
		compare_clocks(h);
	}
}

/* Stores the node in the text "NODE RUN", or with `has_epoch` in "EPOCH NODE RUN". */
static void note_other(struct hw_alert_holder *h, const char *text, bool has_epoch)
{
	const char *node = has_epoch ? strchr(text, ' ') : text;
	node = node && has_epoch ? node + 1 : node;
	snprintf(h->other, sizeof(h->other), "%.*s", node ? (int)strcspn(node, " ") : 0, node ? node : "");
}

static void lose(struct hw_alert_holder *h, const char *by)
{
	note_other(h, by, false);
	bool ours = strcmp(h->other, h->app->conf->node_id) == 0;
	h->held = false;
	h->wait_s = HW_ALERT_RENEW_S;
	hw_alert_on_fenced(h->app, ours);
}

static void on_taken(void *arg, const redisReply *r)
{
	struct hw_alert_holder *h = arg;
	h->asking = false;
	const char *verdict = part(r, HW_AT_TAKEN_VERDICT);
	if (strcmp(verdict, "HELD") == 0) {
		h->starts = false;
		note_other(h, part(r, HW_AT_TAKEN_EPOCH), true);
		if (h->app->engine) /* Redis was emptied, and another instance was faster */
			hw_alert_on_fenced(h->app, false);
		return;
	}
	if (strcmp(verdict, "TAKEN") != 0)
		return;
	snprintf(h->epoch, sizeof(h->epoch), "%s", part(r, HW_AT_TAKEN_EPOCH));
	h->held = true;
	h->starts = false;
	h->other[0] = '\0';
	h->confirmed_ns = h->asked_ns;
	note_clock(h, part(r, HW_AT_TAKEN_NOW));
	const struct hw_alert_taken taken = {
		.first = strcmp(part(r, HW_AT_TAKEN_HOLDER), "1") != 0,
		.clean = strcmp(part(r, HW_AT_TAKEN_CLEAN), "1") == 0,
		.commits = (uint64_t)hw_number_of(part(r, HW_AT_TAKEN_COMMITS), 0, INT64_MAX / 2, 0)};
	hw_alert_on_taken(h->app, &taken);
}

static void on_renewed(void *arg, const redisReply *r)
{
	struct hw_alert_holder *h = arg;
	h->asking = false;
	if (!r || r->type != REDIS_REPLY_ARRAY || !h->held)
		return;
	enum hw_alert_verdict v = hw_alert_verdict_of(part(r, HW_AT_RENEWED_VERDICT));
	note_clock(h, part(r, HW_AT_RENEWED_NOW));
	if (v != HW_ALERT_OK) {
		hw_alert_holder_refused(h, v, part(r, HW_AT_RENEWED_COMMITS));
		return;
	}
	h->confirmed_ns = h->asked_ns;
	const char *commits = part(r, HW_AT_RENEWED_COMMITS);
	if (h->app->engine &&
	    (uint64_t)hw_number_of(commits, 0, INT64_MAX / 2, 0) < hw_alert_commit_number(h->app->commit))
		hw_alert_holder_refused(h, HW_ALERT_BEHIND, commits);
	hw_alert_on_renewed(h->app);
}

static int ask(struct hw_alert_holder *h, enum hw_alert_script script, bool release, hw_alert_answer_fn *fn)
{
	char key[HW_ALERT_KEY_MAX];
	struct hw_eval *e = &h->eval;
	hw_eval_begin(e);
	hw_alert_store_key(h->app->store, "alert:lease", key);
	hw_eval_key(e, key, strlen(key));
	hw_alert_store_key(h->app->store, "alert", key);
	hw_eval_key(e, key, strlen(key));
	hw_eval_put_text(e, HW_AT_TAKE_NODE, h->app->conf->node_id);
	hw_eval_put_text(e, HW_AT_TAKE_RUN, h->run);
	hw_eval_put_int(e, HW_AT_TAKE_TTL, HW_ALERT_LEASE_MS);
	hw_eval_put_text(e, HW_AT_TAKE_STARTS, h->starts ? "1" : "0");
	hw_eval_put_text(e, HW_AT_TAKE_EPOCH, *h->epoch ? h->epoch : "0");
	hw_eval_put_text(e, HW_AT_TAKE_RELEASE, release ? "1" : "0");
	h->asked_ns = hw_alert_mono().ns;
	return hw_alert_store_call(h->app->store, script, e, fn, h);
}

/* Takes or renews now. */
static void go_on(struct hw_alert_holder *h)
{
	h->wait_s = HW_ALERT_RENEW_S;
	h->asking = ask(h, h->held ? HW_ALERT_RENEW : HW_ALERT_TAKE, false, h->held ? on_renewed : on_taken) == 0;
}

void hw_alert_holder_check(struct hw_alert_holder *h)
{
	h->wait_s = 0;
	if (!h->asking && !h->released)
		go_on(h);
}

void hw_alert_holder_refused(struct hw_alert_holder *h, enum hw_alert_verdict v, const char *text)
{
	if (v == HW_ALERT_FENCED) {
		lose(h, text);
	} else if (v == HW_ALERT_GONE) {
		hw_log(h->app->log, HW_LOG_WARNING,
		       "Redis has lost its data: heartwheel-alert writes the incidents again from memory; check the "
		       "persistence of Redis");
		h->held = false;
		h->wait_s = 0;
		if (!h->asking)
			go_on(h);
	} else if (v == HW_ALERT_BEHIND) {
		hw_log(h->app->log, HW_LOG_WARNING,
		       "Redis has an older state than before (commit %s): heartwheel-alert writes the incidents again "
		       "from memory; check whether Redis was restored from a copy",
		       text);
		hw_alert_on_behind(h->app);
	}
}

void hw_alert_holder_store(struct hw_alert_holder *h, bool up)
{
	h->asking = false;
	if (up && !h->released)
		go_on(h);
}

void hw_alert_holder_tick(struct hw_alert_holder *h)
{
	if (h->wait_s > 0)
		h->wait_s--;
	if (h->wait_s == 0 && !h->asking && !h->released && hw_alert_store_is_up(h->app->store))
		go_on(h);
}

static void on_released(void *arg, const redisReply *r)
{
	struct hw_alert_holder *h = arg;
	(void)r;
	h->held = false;
	h->released(h->released_arg);
}

void hw_alert_holder_release(struct hw_alert_holder *h, void (*done)(void *arg), void *arg)
{
	h->released = done;
	h->released_arg = arg;
	if (!h->held || ask(h, HW_ALERT_RENEW, true, on_released) != 0)
		done(arg);
}

bool hw_alert_holder_is(const struct hw_alert_holder *h)
{
	return h->held;
}

bool hw_alert_holder_is_sure(const struct hw_alert_holder *h)
{
	return h->held && hw_alert_mono().ns - h->confirmed_ns < HW_ALERT_TRY_MS * HW_NS_PER_MS;
}

const char *hw_alert_holder_other(const struct hw_alert_holder *h)
{
	return h->other;
}

const char *hw_alert_holder_name(const struct hw_alert_holder *h)
{
	return h->name;
}

const char *hw_alert_holder_epoch(const struct hw_alert_holder *h)
{
	return h->epoch;
}

int64_t hw_alert_holder_redis_ms(const struct hw_alert_holder *h)
{
	return h->redis_ms ? h->redis_ms + (hw_alert_mono().ns - h->redis_at_ns) / HW_NS_PER_MS : 0;
}

struct hw_alert_holder *hw_alert_holder_new(struct hw_alert_app *app)
{
	struct hw_alert_holder *h = calloc(1, sizeof(*h));
	unsigned char random[RUN_LEN / 2];
	if (!h)
		return NULL;
	h->app = app;
	h->starts = true;
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		memcpy(random, &(int64_t){hw_alert_mono().ns}, sizeof(random));
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(h->run + 2 * i, 3, "%02x", random[i]);
	snprintf(h->name, sizeof(h->name), "%s %s", app->conf->node_id, h->run);
	return h;
}

void hw_alert_holder_free(struct hw_alert_holder *h)
{
	if (!h)
		return;
	hw_eval_fini(&h->eval);
	free(h);
}

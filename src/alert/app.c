/* SPDX-License-Identifier: MIT */
/* See app.h. */
#include "alert/app.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "alert/api/api.h"
#include "alert/follow/follow.h"
#include "alert/follow/watch.h"
#include "alert/memory/fleet.h"
#include "alert/state/commit.h"
#include "alert/state/loader.h"
#include "alert/state/outbox.h"
#include "alert/turn.h"
#include "link/clock.h"

/* After Redis was emptied or failed over, the streams are read again from this long before now. */
#define AGAIN_MS 120000

#define LOAD_FAILS_MAX 4 /* limits the wait for the next load to 2^4 / 2 renewals */

struct hw_mono hw_alert_mono(void)
{
	struct timespec t;
	clock_gettime(CLOCK_BOOTTIME, &t);
	return (struct hw_mono){(int64_t)t.tv_sec * HW_NS_PER_S + t.tv_nsec};
}

int64_t hw_alert_ahead_ms(const struct hw_alert_app *a)
{
	int64_t redis_ms = hw_alert_holder_redis_ms(a->holder);
	return redis_ms ? hw_clock_now().wall_ms - redis_ms : 0;
}

struct hw_now hw_alert_now(const struct hw_alert_app *a)
{
	int64_t ahead_ms = hw_alert_ahead_ms(a);
	return (struct hw_now){hw_alert_mono(),
	                       hw_clock_now().wall_ms - (llabs(ahead_ms) >= HW_ALERT_DIFFERS_MS ? ahead_ms : 0)};
}

int64_t hw_alert_bound_ms(const struct hw_alert_app *a)
{
	int64_t ahead_ms = hw_alert_ahead_ms(a);
	return hw_clock_now().wall_ms - (ahead_ms < 0 ? ahead_ms : 0);
}

uint64_t hw_alert_seed(void)
{
	uint64_t seed;
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = (uint64_t)hw_alert_mono().ns;
	return seed;
}

const char *hw_alert_unusable_name(enum hw_alert_unusable k)
{
	static const char *const names[HW_ALERT_UNUSABLE_KINDS] = {[HW_ALERT_UNUSABLE_ENTRY] = "entry",
	                                                           [HW_ALERT_UNUSABLE_DEVICE] = "device",
	                                                           [HW_ALERT_UNUSABLE_INCIDENT] = "incident",
	                                                           [HW_ALERT_UNUSABLE_SILENCE] = "silence",
	                                                           [HW_ALERT_UNUSABLE_OFFSET] = "offset",
	                                                           [HW_ALERT_UNUSABLE_GROUP] = "group",
	                                                           [HW_ALERT_UNUSABLE_KEY] = "key"};
	return names[k];
}

void hw_alert_unusable(struct hw_alert_app *a, enum hw_alert_unusable kind, const char *format, ...)
{
	char text[400];
	va_list args;
	a->counts.unusable[kind]++;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	hw_log_limited(a->log, HW_ALERT_LIMIT_UNUSABLE, HW_LOG_WARNING, "%s%s", a->fleet ? "" : "Redis: ", text);
}

void hw_alert_schedule_turn(struct hw_alert_app *a)
{
	if (a->turn)
		hw_alert_turn_schedule(a->turn);
}

/* --- the receivers ------------------------------------------------------------------------------------------------ */

static bool try_allowed(void *arg)
{
	struct hw_alert_app *a = arg;
	/* Without Redis, the only news is that Redis does not answer. It may be sent without the lease, because no
	 * other instance can take the lease either. */
	bool away = a->away_news && a->engine && !hw_alert_store_is_up(a->store);
	return away || (a->engine && hw_alert_holder_is_sure(a->holder));
}

static void on_done(void *arg, const char *receiver, uint64_t number, enum hw_send_result result, const char *words)
{
	struct hw_alert_app *a = arg;
	(void)result, (void)words;
	hw_alert_outbox_done(a->outbox, receiver, number);
	if (a->engine)
		hw_incidents_done(a->engine, hw_alert_now(a), receiver, number);
	hw_alert_schedule_turn(a);
}

static void on_trouble(void *arg, const char *receiver, const char *text)
{
	struct hw_alert_app *a = arg;
	hw_log_limited(a->log, HW_ALERT_LIMIT_SEND, HW_LOG_WARNING, "receiver %s: %s", receiver, text);
}

static int make_senders(struct hw_alert_app *a)
{
	const struct hw_senders_calls calls = {a, try_allowed, on_done, on_trouble};
	struct hw_receiver_settings list[HW_INCIDENT_RECEIVERS];
	char why[400];
	a->senders = hw_senders_new(a->loop.base, &calls, a->conf->node_id);
	if (!a->senders)
		return -ENOMEM;
	int rc = hw_senders_configure(a->senders, list, hw_alert_receivers(a->conf, list), why, sizeof(why));
	if (rc)
		hw_log(a->log, HW_LOG_ERROR, "the receivers cannot be set up: %s", why);
	return rc;
}

/* --- the work of the holder --------------------------------------------------------------------------------------- */

static void end_with_failure(struct hw_alert_app *a)
{
	a->failed = true;
	hw_loop_stop(&a->loop);
}

/* Frees the engine. Messages stay in the outbox and with the senders. */
static void drop_engine(struct hw_alert_app *a)
{
	hw_alert_follow_end(a->follow);
	hw_alert_loader_stop(a->loader);
	hw_incidents_free(a->engine);
	a->engine = NULL;
	a->reload = false;
	hw_alert_api_reset(a->api);
}

static int new_outbox(struct hw_alert_app *a)
{
	hw_alert_outbox_free(a->outbox);
	a->outbox = hw_alert_outbox_new(a);
	return a->outbox ? 0 : -ENOMEM;
}

static void load(struct hw_alert_app *a, bool skip)
{
	drop_engine(a);
	if (new_outbox(a)) {
		hw_alert_on_no_memory(a);
		return;
	}
	a->counts.loads++;
	hw_alert_loader_begin(a->loader, &a->taken, skip);
}

/* Writes all from memory. */
static void rewrite(struct hw_alert_app *a)
{
	a->reload = false;
	hw_alert_commit_rewrite(a->commit);
	hw_incidents_rewrite(a->engine);
	hw_alert_follow_again(a->follow, hw_alert_holder_redis_ms(a->holder) - AGAIN_MS);
	hw_alert_schedule_turn(a);
}

void hw_alert_on_taken(struct hw_alert_app *a, const struct hw_alert_taken *taken)
{
	a->counts.takes++;
	a->taken = *taken;
	if (a->engine) {
		rewrite(a);
		return;
	}
	hw_log(a->log, HW_LOG_NOTICE, "this instance sends the notifications");
	a->load_fails = a->load_wait = 0;
	load(a, false);
}

/* Tries a failed load again. After a gap, the running commit must end first. */
void hw_alert_on_renewed(struct hw_alert_app *a)
{
	if (a->engine && a->reload && !hw_alert_commit_is_busy(a->commit))
		load(a, true);
	else if (!a->engine && !hw_alert_loader_is_busy(a->loader) && a->load_wait-- == 0)
		load(a, false);
	else if (a->engine)
		hw_alert_loader_retry(a->loader);
	hw_senders_wake(a->senders);
}

void hw_alert_on_fenced(struct hw_alert_app *a, bool ours)
{
	hw_log(a->log, ours ? HW_LOG_ERROR : HW_LOG_WARNING, "another heartwheel-alert%s has taken over; this one %s",
	       ours ? " with this node_id" : "",
	       ours ? "ends; give each instance its own node_id in [monitor]" : "stands by");
	drop_engine(a);
	hw_senders_reset(a->senders);
	hw_alert_commit_reset(a->commit, 0);
	if (ours || new_outbox(a))
		end_with_failure(a);
}

void hw_alert_on_behind(struct hw_alert_app *a)
{
	if (a->engine)
		rewrite(a);
}

void hw_alert_on_store(struct hw_alert_app *a, bool up)
{
	if (!up) {
		hw_alert_loader_stop(a->loader);
		a->load_fails = a->load_wait = 0;
	}
	hw_alert_commit_store(a->commit, up);
	hw_alert_watch_store(a->watch, up);
	hw_alert_follow_store(a->follow, up);
	hw_alert_holder_store(a->holder, up);
	if (up)
		a->away_news = false;
	hw_alert_schedule_turn(a);
}

void hw_alert_on_loaded(struct hw_alert_app *a, struct hw_incidents *engine)
{
	if (!engine) { /* begins the load again at a later renewal: after 2, 4, 8, then each 16 s */
		a->load_fails += a->load_fails < LOAD_FAILS_MAX;
		a->load_wait = (1U << a->load_fails) / 2 - 1;
		return;
	}
	a->load_fails = 0;
	a->engine = engine;
	struct hw_incidents_count n = hw_incidents_count(engine);
	hw_log(a->log, HW_LOG_NOTICE, "the state is loaded: %llu open incidents, %llu devices",
	       (unsigned long long)n.open, (unsigned long long)n.devices);
	hw_alert_outbox_loaded(a->outbox);
	hw_alert_schedule_turn(a);
}

void hw_alert_on_gap(struct hw_alert_app *a)
{
	a->reload = true;
	hw_alert_holder_check(a->holder); /* Redis may have been emptied: then the state in memory is right, and the
	                                     state in Redis is not */
}

void hw_alert_on_committed(struct hw_alert_app *a)
{
	a->taken.first = false;
	a->taken.clean = true; /* a load of this run knows the numbers of all messages */
	a->taken.commits = hw_alert_commit_number(a->commit);
	hw_alert_outbox_committed(a->outbox);
	hw_alert_follow_resume(a->follow);
	hw_alert_api_committed(a->api);
	hw_alert_schedule_turn(a);
}

void hw_alert_on_no_memory(struct hw_alert_app *a)
{
	hw_log(a->log, HW_LOG_ERROR,
	       "out of memory: heartwheel-alert ends, and its next run continues from the last commit");
	end_with_failure(a);
}

/* --- the life of the process -------------------------------------------------------------------------------------- */

static void on_released(void *arg)
{
	struct hw_alert_app *a = arg;
	a->released = true;
	hw_loop_stop(&a->loop);
}

static bool is_idle(const struct hw_alert_app *a)
{
	return !a->engine || (!hw_alert_commit_is_busy(a->commit) && hw_alert_outbox_count(a->outbox) == 0);
}

void hw_alert_app_tick(struct hw_alert_app *a)
{
	hw_alert_store_tick(a->store);
	hw_alert_holder_tick(a->holder);
	hw_alert_follow_tick(a->follow);
	hw_alert_watch_tick(a->watch);
	if (a->fleet)
		hw_alert_fleet_tick(a->fleet);
	hw_alert_commit_tick(a->commit);
	hw_alert_api_tick(a->api);
	hw_alert_schedule_turn(a);
	if (a->stopping && (is_idle(a) || hw_clock_mono().ns / HW_NS_PER_MS >= a->stop_by_ms) && !a->released) {
		a->released = true;
		if (hw_alert_commit_is_busy(a->commit))
			hw_loop_stop(&a->loop); /* the next run must not take this for a clean stop */
		else
			hw_alert_holder_release(a->holder, on_released, a);
	}
	if (a->stopping && hw_clock_mono().ns / HW_NS_PER_MS >= a->stop_by_ms + 1000)
		hw_loop_stop(&a->loop);
}

void hw_alert_app_stop(struct hw_alert_app *a, int64_t timeout_ms)
{
	a->stopping = true;
	a->stop_by_ms = hw_clock_mono().ns / HW_NS_PER_MS + timeout_ms;
	hw_loop_tick_every(&a->loop, 20);
}

int hw_alert_app_start(struct hw_alert_app *a)
{
	a->started_ms = hw_clock_mono().ns / HW_NS_PER_MS;
	int rc = make_senders(a);
	if (rc)
		return rc;
	a->store = hw_alert_store_new(a);
	if (!a->store)
		return a->conf->store == HW_STORE_MEMORY ? -ENODATA : -ENOMEM;
	struct hw_keys *keys = hw_alert_store_keys(a->store);
	a->holder = hw_alert_holder_new(a);
	a->follow = a->holder ? hw_alert_follow_new(a) : NULL;
	a->watch = a->follow ? hw_alert_watch_new(a) : NULL;
	a->loader = a->watch ? hw_alert_loader_new(a) : NULL;
	a->commit = a->loader ? hw_alert_commit_new(a) : NULL;
	a->outbox = a->commit ? hw_alert_outbox_new(a) : NULL;
	a->turn = a->outbox ? hw_alert_turn_new(a) : NULL;
	a->api = a->turn ? hw_alert_api_new(a) : NULL;
	a->fleet = a->api && keys ? hw_alert_fleet_new(a, keys) : NULL;
	return a->api && !keys == !a->fleet ? 0 : -ENOMEM;
}

void hw_alert_app_fini(struct hw_alert_app *a)
{
	a->stopping = true;
	hw_http_fini(&a->http);
	hw_senders_free(a->senders);
	hw_alert_store_free(a->store); /* ends the requests of all parts below */
	hw_alert_api_free(a->api);
	hw_alert_turn_free(a->turn);
	hw_alert_commit_free(a->commit);
	hw_alert_outbox_free(a->outbox);
	hw_alert_loader_free(a->loader);
	hw_alert_fleet_free(a->fleet);
	hw_alert_watch_free(a->watch);
	hw_alert_follow_free(a->follow);
	hw_alert_holder_free(a->holder);
	hw_incidents_free(a->engine);
	hw_loop_fini(&a->loop);
	free(a->redis_password);
	if (a->first != a->conf)
		hw_conf_free(a->first);
	hw_conf_free(a->conf);
}

/* --- a reload ----------------------------------------------------------------------------------------------------- */

static bool is_kept(void *arg, const char *receiver)
{
	const struct hw_alert_plan *p = arg;
	for (size_t k = 0; k < p->n_receivers; k++)
		if (strcmp(p->receivers[k].name, receiver) == 0)
			return true;
	return false;
}

static void warn(void *arg, unsigned line, const char *text)
{
	struct hw_alert_app *a = arg;
	hw_log(a->log, HW_LOG_WARNING, "%s:%u: a matcher matches nothing: %s", a->conf->head.path, line, text);
}

void hw_alert_app_lint(struct hw_alert_app *a)
{
	hw_alert_lint(a->conf, warn, a);
}

int hw_alert_app_configure(struct hw_alert_app *a, const struct hw_alert_settings *c, char *why, size_t cap)
{
	struct hw_alert_plan p;
	int rc = hw_alert_plan(&p, c);
	snprintf(why, cap, "not enough memory");
	if (rc == 0)
		rc = hw_senders_configure(a->senders, p.receivers, p.n_receivers, why, cap);
	if (rc == 0 && a->engine) {
		p.engine.seed = hw_alert_seed();
		p.engine.news_most = HW_ALERT_NEWS_MOST;
		rc = hw_incidents_configure(a->engine, hw_alert_now(a), &p.engine);
		hw_alert_outbox_keep(a->outbox, is_kept, &p);
		if (rc == -ENOMEM)
			hw_alert_on_no_memory(a);
	}
	hw_alert_plan_fini(&p);
	hw_alert_schedule_turn(a);
	return rc;
}

/* SPDX-License-Identifier: MIT */
/* See app.h. */
#include "tasks/app.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "link/clock.h"
#include "tasks/api/api.h"
#include "tasks/api/call.h"
#include "tasks/follow/sessions.h"
#include "tasks/follow/wills.h"
#include "tasks/queue/advice.h"
#include "tasks/queue/turn.h"
#include "tasks/watch/watch.h"

void hw_tasks_unusable(struct hw_tasks_app *a, enum hw_tasks_unusable kind, uint64_t n, const char *format, ...)
{
	char text[400];
	va_list args;
	if (n == 0)
		return;
	a->counts.unusable[kind] += n;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	hw_log_limited(a->log, HW_TASKS_LIMIT_UNUSABLE, HW_LOG_WARNING, "Redis: %s", text);
}

struct hw_mono hw_tasks_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_BOOTTIME, &t);
	return (struct hw_mono){(int64_t)t.tv_sec * HW_NS_PER_S + t.tv_nsec};
}

void hw_tasks_schedule_turn(struct hw_tasks_app *a)
{
	if (a->turn)
		hw_tasks_turn_schedule(a->turn);
}

/* --- connections -------------------------------------------------------------------------------------------------- */

void hw_tasks_on_store(struct hw_tasks_app *a, bool up)
{
	if (up) {
		hw_schedule_up(a->schedule, hw_tasks_now());
		hw_dispatcher_up(a->dispatcher);
		(void)hw_dispatcher_missed(a->dispatcher); /* the reader begins at task:at anyway */
		hw_device_reader_up(a->device_reader);
		hw_submitters_up(a->submitters);
	} else {
		hw_tasks_advice_down(a->advice);
		hw_schedule_down(a->schedule, hw_tasks_now());
		hw_device_reader_down(a->device_reader);
	}
	hw_tasks_schedule_turn(a);
}

void hw_tasks_on_broker(struct hw_tasks_app *a)
{
	if (hw_tasks_broker_publishes(a->broker))
		hw_submitters_up(a->submitters);
	hw_tasks_schedule_turn(a);
}

/* --- each second -------------------------------------------------------------------------------------------------- */

static bool is_done(struct hw_tasks_app *a)
{
	bool idle = hw_tasks_broker_has_ended(a->broker) && hw_dispatcher_is_idle(a->dispatcher) &&
	            hw_tasks_turn_is_idle(a->turn) && hw_tasks_broker_waiting(a->broker) == 0 &&
	            hw_submitters_is_idle(a->submitters);
	return idle || hw_clock_mono().ns / HW_NS_PER_MS >= a->life.stop_by_ms;
}

static void each_second(struct hw_tasks_app *a)
{
	hw_tasks_store_tick(a->store);
	if (hw_tasks_store_is_up(a->store))
		hw_dispatcher_up(a->dispatcher); /* repeats what was not accepted a second ago */
	if (hw_dispatcher_missed(a->dispatcher))
		hw_device_reader_again(a->device_reader);
	hw_tasks_broker_tick(a->broker);
	hw_device_reader_tick(a->device_reader);
	hw_submitters_tick(a->submitters);
	hw_tasks_api_tick(a->api);
	hw_tasks_call_tick(a->call);
	hw_tasks_wills_tick(a->wills);
	hw_tasks_sessions_tick(a->sessions);
	hw_tasks_watch_tick(a->watch);
	hw_tasks_turn_tick(a->turn);
	hw_tasks_advice_tick(a->advice);
}

/* Called at each tick. During a stop the ticks are shorter, so that the end of all pending work is noticed soon.
 * each_second() still runs once a second. */
void hw_tasks_app_tick(struct hw_tasks_app *a)
{
	int64_t now_ms = hw_clock_mono().ns / HW_NS_PER_MS;
	if (!a->life.stopping || now_ms - a->life.second_ms >= 1000) {
		a->life.second_ms = now_ms;
		each_second(a);
	}
	if (a->life.stopping)
		hw_submitters_flush(a->submitters);
	hw_tasks_schedule_turn(a);
	if (a->life.stopping && is_done(a))
		hw_loop_stop(&a->loop);
}

/* --- start and stop ----------------------------------------------------------------------------------------------- */

static void set_rules(struct hw_tasks_app *a)
{
	const struct hw_tasks_settings *c = a->conf;
	snprintf(a->life.device_prefix, sizeof(a->life.device_prefix), "%sdisconnected:%s", c->redis.key_prefix,
	         c->id_prefix);
	a->rules = (struct hw_task_rules){.prefix = c->key_prefix,
	                                  .device_prefix = a->life.device_prefix,
	                                  .node = c->node_id,
	                                  .ack_wait_ms = c->ack_wait_ms,
	                                  .retry_max_ms = c->retry_max_ms,
	                                  .exp_ms = c->exp_ms,
	                                  .run_ms = c->run_ms,
	                                  .keep_ms = c->keep_ms,
	                                  .window = (unsigned)c->window,
	                                  .max = (unsigned)c->max,
	                                  .max_per_receiver = (unsigned)c->max_per_receiver,
	                                  .events_max = (unsigned)c->redis.events_max};
}

int hw_tasks_app_start(struct hw_tasks_app *a)
{
	const struct hw_schedule_conf schedule = {.horizon_ms = a->conf->horizon_ms,
	                                          .clock_hold_ms = a->conf->clock_hold_ms,
	                                          .rate = (unsigned)a->conf->rate};
	uint64_t seed = 1;
	set_rules(a);
	hw_tasks_counts_init(&a->counts);
	a->life.started_ms = hw_clock_mono().ns / HW_NS_PER_MS;
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		return -EIO;
	a->schedule = hw_schedule_new(&schedule, seed);
	a->turn = hw_tasks_turn_new(a);
	a->dispatcher = hw_dispatcher_new(a);
	a->broker = hw_tasks_broker_new(a);
	a->advice = hw_tasks_advice_new(a);
	if (!a->schedule || !a->turn || !a->dispatcher || !a->broker || !a->advice)
		return -ENOMEM;
	hw_schedule_instances(a->schedule, (const char *const[]){a->conf->node_id}, 1, a->conf->node_id);
	a->store = hw_tasks_store_new(a);
	a->device_reader = a->store ? hw_device_reader_new(a) : NULL;
	a->submitters = a->device_reader ? hw_submitters_new(a) : NULL;
	a->inbox = a->submitters ? hw_tasks_inbox_new(a) : NULL;
	a->call = a->inbox ? hw_tasks_call_new(a) : NULL;
	a->api = a->call ? hw_tasks_api_new(a) : NULL;
	a->wills = a->api ? hw_tasks_wills_new(a) : NULL;
	a->sessions = a->wills ? hw_tasks_sessions_new(a) : NULL;
	a->watch = a->sessions ? hw_tasks_watch_new(a) : NULL;
	return a->watch ? hw_tasks_broker_start(a->broker, a->life.mqtt_password) : -ENOMEM;
}

void hw_tasks_app_stop(struct hw_tasks_app *a, int64_t timeout_ms)
{
	a->life.stopping = true;
	a->life.stop_by_ms = hw_clock_mono().ns / HW_NS_PER_MS + timeout_ms;
	hw_tasks_broker_end(a->broker);
	hw_dispatcher_flush(a->dispatcher);
	hw_loop_tick_every(&a->loop, 20);
}

/* Frees all parts. A part is freed before the parts that it calls. When the broker is freed, it reports lost
 * messages. When the store and the dispatcher are freed, they answer pending requests. */
void hw_tasks_app_fini(struct hw_tasks_app *a, int64_t timeout_ms)
{
	a->life.stopping = true;
	hw_http_fini(&a->http);
	hw_tasks_broker_free(a->broker, timeout_ms);
	a->broker = NULL;
	hw_device_reader_free(a->device_reader);
	hw_tasks_store_free(a->store); /* answers pending requests, those of the inbox included */
	hw_submitters_free(a->submitters);
	hw_tasks_inbox_free(a->inbox);
	hw_tasks_sessions_free(a->sessions);
	hw_tasks_wills_free(a->wills);     /* after the store, which has answered its requests */
	hw_dispatcher_free(a->dispatcher); /* answers pending requests, those of watch included */
	hw_tasks_watch_free(a->watch);
	hw_tasks_call_free(a->call);
	hw_tasks_api_free(a->api);
	hw_tasks_turn_free(a->turn);
	hw_tasks_advice_free(a->advice); /* after the store, which has answered its requests */
	hw_schedule_free(a->schedule);
	hw_loop_fini(&a->loop);
	free(a->life.redis_password);
	free(a->life.mqtt_password);
	hw_conf_free(a->conf);
}

/* SPDX-License-Identifier: MIT */
/* Draws the plan of a seed for a world of tasks, with its troubles. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tasks_world.h"

#define QUIET_MS 180000
#define DAY_MS   INT64_C(86400000)
/* If a clock was back for this long, each instance that did not stand still has seen it: the time between two
 * answers, and the time that one answer takes. */
#define UNSEEN_MS (HW_ORDER_PATIENCE_MS + 5000)

const char *tw_trouble_name(enum tw_trouble k)
{
	static const char *const names[TW_TROUBLES] = {"crash", "pause", "redis", "clock", "back",
	                                               "flush", "flap",  "loss",  "events"};
	return names[k];
}

/* --- the plan ----------------------------------------------------------------------------------------------------- */

static void plan_rules(struct tw_world *w)
{
	struct sim_random *r = &w->random;
	w->rules = (struct hw_task_rules){.prefix = "task:",
	                                  .device_prefix = "",
	                                  .node = "n",
	                                  .ack_wait_ms = sim_between(r, 2000, 10000),
	                                  .exp_ms = sim_between(r, 60000, 150000),
	                                  .run_ms = sim_between(r, 20000, 60000),
	                                  .keep_ms = 10 * QUIET_MS,
	                                  .window = (unsigned)sim_between(r, 1, 4),
	                                  .max = 1000,
	                                  .max_per_receiver = 1000,
	                                  .events_max = 1000000};
	w->rules.retry_max_ms = sim_between(r, w->rules.ack_wait_ms, 60000);
	w->conf = (struct hw_schedule_conf){.horizon_ms = sim_between(r, 10000, 120000),
	                                    .clock_hold_ms = sim_between(r, 30000, 120000),
	                                    .rate = sim_chance(r, 0.5) ? 0 : (unsigned)sim_between(r, 50, 1000)};
}

static void plan_device(struct tw_world *w, unsigned k)
{
	struct sim_random *r = &w->random;
	struct tw_device *d = &w->devices[k];
	*d = (struct tw_device){.online = true, .answers = sim_chance(r, 0.7) ? 1 : sim_unit(r)};
	snprintf(d->name, sizeof(d->name), "d%u", k);
	d->acks = sim_chance(r, 0.7);
	d->slow = sim_chance(r, 0.3);
	d->rogue = sim_chance(r, 0.2);
	d->changes_at = sim_chance(r, 0.4) ? INT64_MAX : sim_between(r, 1000, 100000);
}

static void plan_task(struct tw_world *w, unsigned k, bool burst)
{
	struct sim_random *r = &w->random;
	struct tw_task *t = &w->tasks[k];
	*t = (struct tw_task){.device = burst ? 0 : (unsigned)sim_below(r, w->n_devices)};
	snprintf(t->msg_id, sizeof(t->msg_id), "m%u", k);
	for (size_t b = 0; b < sizeof(t->id.bytes); b++)
		t->id.bytes[b] = (uint8_t)sim_draw(r);
	t->submit_at = t->resubmit_at = burst ? 2000 : sim_between(r, 500, 120000);
	t->s = (struct hw_task_submission){.task = t->id,
	                                   .sender = tw_text("ann"),
	                                   .msg_id = tw_text(t->msg_id),
	                                   .receiver = tw_text(w->devices[t->device].name),
	                                   .action = tw_text("set"),
	                                   .body = tw_text("1"),
	                                   .at_ms = -1,
	                                   .after_ms = -1,
	                                   .exp_ms = -1,
	                                   .run_ms = -1,
	                                   .no_hold = sim_chance(r, 0.1)};
	if (burst || sim_chance(r, 0.3))
		t->s.at_ms = TW_BEGIN_MS + (burst ? 10000 : t->submit_at + sim_between(r, -10000, 60000));
	else if (sim_chance(r, 0.5))
		t->s.after_ms = sim_between(r, 0, 60000);
	if (sim_chance(r, 0.2))
		t->s.exp_ms = TW_BEGIN_MS + t->submit_at + sim_between(r, 70000, 100000);
	if (sim_chance(r, 0.1))
		t->cancel_at = t->submit_at + sim_between(r, 100, 60000);
	t->repeats = sim_chance(r, 0.2);
}

void tw_init(struct tw_world *w, uint64_t seed)
{
	memset(w, 0, offsetof(struct tw_world, packets));
	w->n_active = w->n_spare = 0;
	w->seen_events = 0;
	memset(&w->count, 0, sizeof(w->count));
	for (unsigned k = TW_PACKETS; k > 0; k--)
		w->spare[w->n_spare++] = k - 1;
	w->seed = seed;
	w->random.state = seed;
	w->quiet_from = QUIET_MS;
	plan_rules(w);
	twin_init(&w->twin, &w->rules);
	w->n_instances = (unsigned)sim_between(&w->random, 1, TW_INSTANCES);
	w->n_devices = (unsigned)sim_between(&w->random, 2, TW_DEVICES);
	w->n_tasks = (unsigned)sim_between(&w->random, 8, TW_TASKS);
	for (unsigned k = 0; k < w->n_devices; k++)
		plan_device(w, k);
	bool burst = sim_chance(&w->random, 0.2);
	for (unsigned k = 0; k < w->n_tasks; k++)
		plan_task(w, k, burst && k % 2);
	for (enum tw_trouble k = TW_CRASH; k < TW_TROUBLES; k++)
		w->troubles[k] = sim_chance(&w->random, 0.35);
	w->rate = 0.02 + 0.1 * sim_unit(&w->random);
	w->end = QUIET_MS + 60000 + w->rules.exp_ms + w->rules.run_ms + 120000;
	for (unsigned k = 0; k < w->n_instances; k++) {
		snprintf(w->instances[k].name, sizeof(w->instances[k].name), "n%u", k);
		tw_start(w, k);
	}
}

void tw_only(struct tw_world *w, enum tw_trouble k)
{
	memset(w->troubles, 0, sizeof(w->troubles));
	w->troubles[k] = true;
	w->rate = 0.1;
}

/* --- instances ---------------------------------------------------------------------------------------------------- */

static struct hw_mono mono(const struct tw_world *w)
{
	return (struct hw_mono){(w->now + 1) * HW_NS_PER_MS};
}

void tw_start(struct tw_world *w, unsigned k)
{
	struct tw_instance *i = &w->instances[k];
	struct hw_schedule_conf conf = w->conf;
	if (w->lie == TW_LIE_HOLD)
		conf.clock_hold_ms = 0;
	else if (w->lie == TW_LIE_SHORT)
		conf.clock_hold_ms /= 2;
	hw_schedule_free(i->schedule);
	i->schedule = hw_schedule_new(&conf, sim_draw(&w->random));
	if (!i->schedule)
		abort();
	i->alive = true;
	i->run++;
	i->back_at = i->paused_until = 0;
	if (w->now >= w->redis_until)
		hw_schedule_up(i->schedule, mono(w));
	tw_delay(w);
}

void tw_kill(struct tw_world *w, unsigned k)
{
	w->instances[k].alive = false;
	w->instances[k].back_at = w->now + sim_between(&w->random, 500, 30000);
	w->count.deaths++;
	tw_delay(w);
}

void tw_lie(struct tw_world *w, enum tw_lie lie, enum twin_lie twin)
{
	w->lie = lie;
	w->twin.lie = twin;
	for (unsigned k = 0; k < w->n_instances && (lie == TW_LIE_HOLD || lie == TW_LIE_SHORT); k++)
		tw_start(w, k);
}

/* --- trouble ------------------------------------------------------------------------------------------------------ */

/* An instance that is suspended already does not resume sooner: the answers to it wait for the end of its pause
 * (seed 9490). */
static void trouble_pause(struct tw_world *w, struct tw_instance *i)
{
	int64_t until = w->now + sim_between(&w->random, 200, 30000);
	if (i->paused_until < until)
		i->paused_until = until;
}

static void trouble_redis(struct tw_world *w)
{
	w->redis_until = w->now + sim_between(&w->random, 100, 15000);
	for (unsigned k = 0; k < w->n_instances; k++)
		if (w->instances[k].alive)
			hw_schedule_down(w->instances[k].schedule, mono(w));
}

/*
 * Sets Redis' clock ahead for less than clock_hold, or for good; for good either by a little, or by so much that the
 * instances do not trust it at first.
 *
 * An instance requests Redis' time each HW_CHECK_EVERY_MS, and begins clock_hold again if no answer comes for
 * HW_ORDER_PATIENCE_MS. So if Redis' clock is back for a shorter time, the instances may not notice this, and
 * clock_hold may have begun with the first step (seed 6157: the clock was back for 175 ms). This is no breach.
 */
static void trouble_clock(struct tw_world *w)
{
	struct sim_random *r = &w->random;
	if (w->clock_ms || (w->clock_was_back_at && w->now - w->clock_was_back_at < UNSEEN_MS))
		return;
	for (unsigned k = 0; k < w->n_instances; k++) /* an instance that did not know the time before cannot notice
	                                               * the step */
		if (!w->instances[k].alive || !hw_schedule_redis_ms(w->instances[k].schedule, mono(w)))
			return;
	if (sim_chance(r, 0.3)) {
		w->clock_ms = sim_between(r, 1000, 50000);
		return;
	}
	w->clock_ms = sim_chance(r, 0.5) ? DAY_MS : sim_between(r, 70000, DAY_MS);
	w->clock_back_at = w->now + sim_between(r, 1000, w->conf.clock_hold_ms * 8 / 10);
}

static void trouble_back(struct tw_world *w)
{
	if (w->clock_ms)
		return;
	w->clock_ms = -sim_between(&w->random, 1000, 60000);
	w->calm_since = w->now - w->clock_ms + w->rules.retry_max_ms + w->rules.run_ms;
	w->end -= w->clock_ms;
}

static void trouble_flush(struct tw_world *w)
{
	if (w->flushed)
		return;
	w->flushed = true;
	twin_flush(&w->twin);
	for (unsigned k = 0; k < w->n_devices; k++)
		if (w->devices[k].known_offline)
			twin_set_offline(&w->twin, tw_text(w->devices[k].name), true);
	for (unsigned k = 0; k < w->n_tasks; k++) {
		struct tw_task *t = &w->tasks[k];
		t->flushed |= t->exists || t->told;
		t->exists = false;
		t->state = HW_TASK_SCHEDULED;
		t->tries = 0;
	}
}

static void make(struct tw_world *w, enum tw_trouble k)
{
	unsigned i = (unsigned)sim_below(&w->random, w->n_instances);
	if (w->trace)
		fprintf(w->trace, "%10.3f %s (%u)\n", (double)w->now / 1000, tw_trouble_name(k), i);
	/* While the clock is ahead, no instance starts, since it could not notice. */
	if (w->clock_ms > HW_CLOCK_STEP_MS && k != TW_REDIS)
		return;
	if (k == TW_CRASH && w->instances[i].alive)
		tw_kill(w, i);
	else if (k == TW_PAUSE && w->instances[i].alive)
		trouble_pause(w, &w->instances[i]);
	else if (k == TW_REDIS)
		trouble_redis(w);
	else if (k == TW_CLOCK)
		trouble_clock(w);
	else if (k == TW_BACK)
		trouble_back(w);
	else if (k == TW_FLUSH)
		trouble_flush(w);
}

void tw_between_claim_and_send(struct tw_world *w, unsigned i)
{
	if (w->now >= w->quiet_from || w->clock_ms > HW_CLOCK_STEP_MS || !w->instances[i].alive)
		return;
	if (w->troubles[TW_PAUSE] && sim_chance(&w->random, 0.05))
		trouble_pause(w, &w->instances[i]);
	if (w->troubles[TW_CRASH] && sim_chance(&w->random, 0.01))
		tw_kill(w, i);
}

static void end_trouble(struct tw_world *w)
{
	bool is_there = w->now >= w->redis_until, anybody = false;
	if (w->clock_back_at && w->now >= w->clock_back_at) {
		w->clock_ms = w->clock_back_at = 0;
		w->calm_since = w->clock_was_back_at = w->now;
	}
	for (unsigned k = 0; k < w->n_instances; k++) {
		struct tw_instance *i = &w->instances[k];
		if (!i->alive && i->back_at <= w->now && w->clock_ms <= HW_CLOCK_STEP_MS)
			tw_start(w, k);
		if (i->alive && is_there && w->redis_until)
			hw_schedule_up(i->schedule, mono(w));
		anybody |= i->alive;
		if (i->paused_until > w->now)
			tw_delay(w);
	}
	if (is_there && w->redis_until)
		w->redis_until = 0;
	if (!is_there || !anybody || w->clock_ms > HW_CLOCK_STEP_MS)
		tw_delay(w);
}

void tw_make_trouble(struct tw_world *w)
{
	end_trouble(w);
	if (w->now >= w->quiet_from)
		return;
	for (enum tw_trouble k = TW_CRASH; k < TW_FLAP; k++) {
		double rate = w->rate * (k == TW_CLOCK || k == TW_BACK || k == TW_FLUSH ? 0.3 : 1);
		if (w->troubles[k] && sim_chance(&w->random, rate * TW_STEP_MS / 1000)) {
			make(w, k);
			tw_delay(w);
		}
	}
}

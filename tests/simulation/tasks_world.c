/* SPDX-License-Identifier: MIT */
/* See tasks_world.h: the network, the instances, the devices, the submitters. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tasks_world.h"

#define WATCH_EVERY_MS 500
#define RESUBMIT_MS    5000

int64_t tw_true_ms(const struct tw_world *w)
{
	return TW_BEGIN_MS + w->now;
}

int64_t tw_redis_ms(const struct tw_world *w)
{
	return tw_true_ms(w) + w->clock_ms;
}

static struct hw_mono mono(const struct tw_world *w)
{
	return (struct hw_mono){(w->now + 1) * HW_NS_PER_MS};
}

struct hw_text tw_text(const char *s)
{
	return (struct hw_text){s, strlen(s)};
}

struct tw_task *tw_task_of(struct tw_world *w, const struct hw_task_id *id)
{
	for (unsigned k = 0; k < w->n_tasks; k++)
		if (memcmp(&w->tasks[k].id, id, sizeof(*id)) == 0)
			return &w->tasks[k];
	return NULL;
}

void tw_delay(struct tw_world *w)
{
	if (w->calm_since < w->now)
		w->calm_since = w->now;
}

/* --- packets ------------------------------------------------------------------------------------------------------ */

static int64_t some_delay(struct tw_world *w)
{
	int64_t delay = sim_between(&w->random, 1, 60);
	if (w->troubles[TW_LOSS] && w->now < w->quiet_from && sim_chance(&w->random, 0.02)) {
		delay += sim_between(&w->random, 100, 4000);
		tw_delay(w);
	}
	return delay;
}

static struct tw_packet *new_packet(struct tw_world *w, enum tw_packet_kind kind, unsigned instance)
{
	if (w->n_spare == 0)
		abort();
	unsigned k = w->spare[--w->n_spare];
	struct tw_packet *p = &w->packets[k];
	w->active[w->n_active++] = k;
	p->kind = kind;
	p->at = w->now + some_delay(w);
	p->instance = instance;
	p->run = w->instances[instance].run;
	p->lost = false;
	p->n = 0;
	return p;
}

static struct tw_instance *of_packet(struct tw_world *w, const struct tw_packet *p)
{
	struct tw_instance *i = &w->instances[p->instance];
	return i->alive && i->run == p->run ? i : NULL;
}

/* Returns an instance that runs and is not suspended; TW_INSTANCES: none. */
static unsigned some_instance(struct tw_world *w)
{
	unsigned from = (unsigned)sim_below(&w->random, w->n_instances);
	for (unsigned k = 0; k < w->n_instances; k++) {
		unsigned i = (from + k) % w->n_instances;
		if (w->instances[i].alive && w->instances[i].paused_until <= w->now)
			return i;
	}
	return TW_INSTANCES;
}

static bool redis_is_there(const struct tw_world *w)
{
	return w->now >= w->redis_until;
}

static int64_t latest_of(const struct tw_world *w, const struct tw_instance *i)
{
	return hw_schedule_latest_ms(i->schedule, mono(w));
}

/* What every answer of a script may say. */
static void put_wakes(struct tw_world *w, struct tw_instance *i)
{
	for (size_t k = 0; k < w->twin.n_wakes; k++) {
		const struct twin_wake *x = &w->twin.wakes[k];
		hw_schedule_put(i->schedule, mono(w), x->task, hw_schedule_receiver(x->receiver.at, x->receiver.len),
		                x->due_ms);
	}
	hw_schedule_clock(i->schedule, mono(w), tw_redis_ms(w));
}

/* Tasks that are written while Redis' clock is wrong are late by as much, so the oracle expects nothing of them. */
static void excuse_device(struct tw_world *w, unsigned device)
{
	for (unsigned k = 0; w->clock_ms > HW_CLOCK_STEP_MS && k < w->n_tasks; k++)
		if (w->tasks[k].device == device)
			w->tasks[k].flushed = true;
}

/* --- instance and Redis ------------------------------------------------------------------------------------------- */

static void pull_orders(struct tw_world *w, unsigned k)
{
	struct tw_instance *i = &w->instances[k];
	struct hw_schedule_order o;
	while (hw_schedule_next(i->schedule, mono(w), &o)) {
		struct tw_packet *p = new_packet(w, TW_CALL, k);
		p->order = o;
		p->latest = latest_of(w, i);
		p->asked = w->now;
		w->count.calls++;
	}
}

static void carry_out_claim(struct tw_world *w, struct tw_packet *p)
{
	p->n = p->order.n;
	for (size_t k = 0; k < p->n; k++) {
		struct hw_task_claimed c;
		twin_claim(&w->twin, &p->order.tasks[k], &c);
		struct tw_task *t = tw_task_of(w, &p->order.tasks[k]);
		p->claimed[k] = (struct hw_schedule_claimed){p->order.tasks[k], c.verdict == HW_TASK_SEND, c.due_ms};
		p->send[k] = (struct tw_send){TW_TASKS, c.at_ms, c.exp_ms};
		if (c.verdict == HW_TASK_SEND && t) {
			p->send[k].task = (unsigned)(t - w->tasks);
			tw_saw_send(w, t);
			tw_between_claim_and_send(w, p->instance);
		}
		tw_saw_events(w);
	}
}

static void carry_out(struct tw_world *w, struct tw_packet *call)
{
	if (!redis_is_there(w) && sim_chance(&w->random, 0.5))
		return;
	struct tw_packet *p = new_packet(w, TW_REPLY, call->instance);
	p->run = call->run;
	p->lost = !redis_is_there(w);
	p->order = call->order;
	p->redis_ms = tw_redis_ms(w);
	p->asked = call->asked;
	twin_begin(&w->twin, p->redis_ms, call->latest);
	if (p->order.kind == HW_SCHEDULE_CLAIM)
		carry_out_claim(w, p);
	else
		p->n = twin_page(&w->twin, &p->order, p->found);
}

static void send_message(struct tw_world *w, const struct tw_packet *reply, const struct tw_send *m)
{
	/* Only the daemon can prevent a message after the task's exp: see src/tasks/README. */
	if (reply->redis_ms + (w->now - reply->asked) >= m->exp && w->lie != TW_LIE_EXPIRED)
		return;
	tw_saw_message(w, m);
	struct tw_packet *p = new_packet(w, TW_MESSAGE, reply->instance);
	p->task = m->task;
}

static void hear_page(struct tw_world *w, struct tw_instance *i, const struct tw_packet *p)
{
	struct hw_schedule_found found[TW_TASKS * 2];
	size_t n = w->lie == TW_LIE_LOOK && p->order.until_ms == INT64_MAX ? 0 : p->n;
	for (size_t k = 0; k < n; k++)
		found[k] = (struct hw_schedule_found){
			p->found[k].task, hw_schedule_receiver(p->found[k].receiver.at, p->found[k].receiver.len),
			p->found[k].due_ms, false};
	hw_schedule_page(i->schedule, mono(w), p->order.serial, p->redis_ms, found, n);
}

static void hear_reply(struct tw_world *w, struct tw_packet *p)
{
	struct tw_instance *i = of_packet(w, p);
	if (!i || p->lost)
		return;
	if (p->order.kind == HW_SCHEDULE_READ) {
		hear_page(w, i, p);
		return;
	}
	hw_schedule_claimed(i->schedule, mono(w), p->order.serial, p->redis_ms, p->claimed, p->n);
	for (size_t k = 0; k < p->n; k++)
		if (p->send[k].task < TW_TASKS)
			send_message(w, p, &p->send[k]);
}

/* --- devices ------------------------------------------------------------------------------------------------------ */

static void respond(struct tw_world *w, unsigned task, enum hw_task_answer_kind kind, int64_t delay)
{
	struct tw_packet *p = new_packet(w, TW_RESPONSE, 0);
	p->at += delay;
	p->task = task;
	p->device = w->tasks[task].device;
	p->answer = kind;
}

static void do_task(struct tw_world *w, unsigned task)
{
	struct tw_task *t = &w->tasks[task];
	struct tw_device *d = &w->devices[t->device];
	bool again = t->has_effect;
	if (!again || w->lie == TW_LIE_TWICE)
		tw_saw_effect(w, t);
	if (!again)
		t->said = sim_chance(&w->random, 0.8) ? HW_ANSWER_COMPLETE : HW_ANSWER_FAILED;
	t->has_effect = true;
	int64_t delay = d->slow ? sim_between(&w->random, 1000, 90000) : sim_between(&w->random, 10, 3000);
	if (d->acks && !again)
		respond(w, task, HW_ANSWER_ACK, 0);
	respond(w, task, t->said, again ? 0 : delay);
}

static void arrive(struct tw_world *w, const struct tw_packet *p)
{
	struct tw_task *t = &w->tasks[p->task];
	struct tw_device *d = &w->devices[t->device];
	bool trouble = w->troubles[TW_LOSS] && w->now < w->quiet_from;
	if (!d->online || (trouble && sim_chance(&w->random, 0.2)))
		return;
	if (sim_chance(&w->random, d->answers))
		do_task(w, p->task);
	if (trouble && sim_chance(&w->random, 0.1))
		do_task(w, p->task);
}

/* A malicious device reports the end of tasks that other devices were sent. */
static void hear_response(struct tw_world *w, const struct tw_packet *p)
{
	unsigned k = some_instance(w);
	struct tw_task *t = &w->tasks[p->task];
	struct hw_task_answered out;
	if (k == TW_INSTANCES || !redis_is_there(w))
		return;
	struct hw_task_answer a = {.task = t->id, .kind = p->answer, .from = tw_text(w->devices[p->device].name)};
	twin_begin(&w->twin, tw_redis_ms(w), latest_of(w, &w->instances[k]));
	twin_answer(&w->twin, &a, &out);
	if (out.verdict == HW_TASK_DONE)
		excuse_device(w, t->device);
	tw_saw_events(w);
	put_wakes(w, &w->instances[k]);
}

static void hear_online(struct tw_world *w, const struct tw_packet *p)
{
	unsigned k = some_instance(w);
	struct tw_device *d = &w->devices[p->device];
	/* The event is read later, because the instances keep their offset in the stream. */
	if (k == TW_INSTANCES || !redis_is_there(w)) {
		struct tw_packet *again = new_packet(w, TW_ONLINE, 0);
		again->device = p->device;
		again->at = w->now + 500;
		return;
	}
	twin_begin(&w->twin, tw_redis_ms(w), latest_of(w, &w->instances[k]));
	twin_online(&w->twin, tw_text(d->name));
	excuse_device(w, p->device);
	if (w->trace)
		fprintf(w->trace, "%10.3f %s: the event, %zu wakes\n", (double)w->now / 1000, d->name, w->twin.n_wakes);
	if (!d->known_offline) {
		d->known_online_at = w->now;
		d->unseen_return = false;
	}
	for (unsigned j = 0; j < w->n_tasks; j++)
		w->tasks[j].woken |= w->tasks[j].device == p->device;
	tw_saw_events(w);
	put_wakes(w, &w->instances[k]);
}

/* The device stops or returns, and the monitor notices: a death after its timeout, a return at once. */
static void live(struct tw_world *w, unsigned k)
{
	struct tw_device *d = &w->devices[k];
	bool flaps = w->troubles[TW_FLAP] && w->now < w->quiet_from;
	if (d->changes_at <= w->now) {
		d->online = !d->online;
		d->changes_at =
			w->now + (flaps ? sim_between(&w->random, 500, 20000) : sim_between(&w->random, 20000, 200000));
		d->known_at = w->now + (d->online ? 50 : sim_between(&w->random, 2000, 8000));
		d->known_online_at = INT64_MAX / 2;
	}
	if (!d->known_at || d->known_at > w->now || !redis_is_there(w))
		return;
	d->known_at = 0;
	bool came = d->known_offline && d->online;
	d->unseen_return |= came;
	if (d->online && !d->unseen_return) /* no instance knows that the device was offline */
		d->known_online_at = w->now;
	d->known_offline = !d->online;
	twin_set_offline(&w->twin, tw_text(d->name), d->known_offline);
	if (w->trace)
		fprintf(w->trace, "%10.3f %s is %s\n", (double)w->now / 1000, d->name,
		        d->online ? "online" : "offline");
	if (came && !(w->troubles[TW_EVENTS] && w->now < w->quiet_from && sim_chance(&w->random, 0.5)))
		new_packet(w, TW_ONLINE, 0)->device = k;
}

static void lie_about_others(struct tw_world *w)
{
	unsigned k = (unsigned)sim_below(&w->random, w->n_devices), task = (unsigned)sim_below(&w->random, w->n_tasks);
	if (!w->devices[k].rogue || w->tasks[task].device == k || !w->tasks[task].tries)
		return;
	struct tw_packet *p = new_packet(w, TW_RESPONSE, 0);
	p->task = task;
	p->device = k;
	p->answer = HW_ANSWER_COMPLETE;
}

/* --- submitters --------------------------------------------------------------------------------------------------- */

static void hear_submission(struct tw_world *w, const struct tw_packet *p)
{
	struct tw_instance *i = of_packet(w, p);
	struct tw_task *t = &w->tasks[p->task];
	struct hw_task_submitted out;
	if (!i || !redis_is_there(w) || i->paused_until > w->now)
		return;
	if (w->clock_ms <= HW_CLOCK_STEP_MS)
		twin_forget(&w->twin, tw_redis_ms(w));
	twin_begin(&w->twin, tw_redis_ms(w), latest_of(w, i));
	twin_submit(&w->twin, &t->s, &out);
	excuse_device(w, t->device);
	tw_saw_events(w);
	/* The instance may die before it reports the result, or before it knows it. */
	if (w->troubles[TW_CRASH] && w->now < w->quiet_from && sim_chance(&w->random, 0.02)) {
		tw_kill(w, p->instance);
		return;
	}
	t->told |= out.verdict == HW_TASK_NEW || out.verdict == HW_TASK_KNOWN;
	if (out.verdict == HW_TASK_CONTENT)
		tw_breach(w, t, "a repetition is taken for another");
	if (out.verdict == HW_TASK_NEW)
		hw_schedule_put(i->schedule, mono(w), t->id, hw_schedule_receiver(t->s.receiver.at, t->s.receiver.len),
		                out.at_ms);
	put_wakes(w, i);
}

static void submit(struct tw_world *w, unsigned task)
{
	struct tw_task *t = &w->tasks[task];
	/* A task that is submitted while the clock is ahead has its time by that clock. */
	if (w->now < t->resubmit_at || w->clock_ms > HW_CLOCK_STEP_MS)
		return;
	unsigned k = some_instance(w);
	if (t->told && !t->repeats)
		return;
	t->resubmit_at = w->now + (t->told ? sim_between(&w->random, 10000, 100000) : RESUBMIT_MS);
	if (k < TW_INSTANCES)
		new_packet(w, TW_SUBMIT, k)->task = task;
}

static void cancel(struct tw_world *w, struct tw_task *t)
{
	unsigned k = some_instance(w);
	struct hw_task_cancelled out;
	if (!t->cancel_at || w->now < t->cancel_at || k == TW_INSTANCES || !redis_is_there(w))
		return;
	t->cancel_at = 0;
	struct hw_task_cancel c = {.task = t->id, .sender = t->s.sender, .force = sim_chance(&w->random, 0.5)};
	twin_begin(&w->twin, tw_redis_ms(w), latest_of(w, &w->instances[k]));
	twin_cancel(&w->twin, &c, &out);
	if (out.verdict == HW_TASK_DONE)
		excuse_device(w, t->device);
	tw_saw_events(w);
	put_wakes(w, &w->instances[k]);
}

/* --- the run ------------------------------------------------------------------------------------------------------ */

static void deliver(struct tw_world *w, struct tw_packet *p)
{
	switch (p->kind) {
	case TW_CALL:
		carry_out(w, p);
		break;
	case TW_REPLY:
		hear_reply(w, p);
		break;
	case TW_MESSAGE:
		arrive(w, p);
		break;
	case TW_RESPONSE:
		hear_response(w, p);
		break;
	case TW_SUBMIT:
		hear_submission(w, p);
		break;
	default:
		hear_online(w, p);
	}
}

/* Delivers the packets that have arrived; one for a suspended instance waits until the instance resumes. */
static void deliver_all(struct tw_world *w)
{
	for (unsigned k = 0; k < w->n_active;) {
		struct tw_packet *p = &w->packets[w->active[k]];
		const struct tw_instance *i = &w->instances[p->instance];
		if (p->kind == TW_REPLY && i->paused_until > w->now && p->at <= w->now)
			p->at = i->paused_until;
		if (p->at > w->now) {
			k++;
			continue;
		}
		unsigned which = w->active[k];
		w->active[k] = w->active[--w->n_active];
		deliver(w, p);
		w->spare[w->n_spare++] = which;
	}
}

static void tell_instances(struct tw_world *w)
{
	const char *names[TW_INSTANCES];
	size_t n = 0;
	for (unsigned k = 0; k < w->n_instances; k++)
		if (w->instances[k].alive)
			names[n++] = w->instances[k].name;
	for (unsigned k = 0; k < w->n_instances; k++)
		if (w->instances[k].alive)
			hw_schedule_instances(w->instances[k].schedule, names, n, w->instances[k].name);
}

static void step(struct tw_world *w)
{
	tw_make_trouble(w);
	deliver_all(w);
	for (unsigned k = 0; k < w->n_devices; k++)
		live(w, k);
	if (sim_chance(&w->random, 0.002))
		lie_about_others(w);
	for (unsigned k = 0; k < w->n_tasks; k++) {
		submit(w, k);
		cancel(w, &w->tasks[k]);
	}
	if (w->now % 1000 == 0)
		tell_instances(w);
	for (unsigned k = 0; k < w->n_instances; k++)
		if (w->instances[k].alive && w->instances[k].paused_until <= w->now)
			pull_orders(w, k);
	if (w->now % WATCH_EVERY_MS == 0)
		tw_watch(w);
}

void tw_run(struct tw_world *w)
{
	for (; w->now < w->end; w->now += TW_STEP_MS)
		step(w);
	tw_judge(w);
	for (unsigned k = 0; k < w->n_instances; k++) {
		struct hw_schedule_stats stats = {0};
		if (w->instances[k].schedule)
			hw_schedule_stats(w->instances[k].schedule, &stats);
		w->count.overdue += stats.overdue;
		w->count.holds += stats.clock_holds;
	}
}

void tw_fini(struct tw_world *w)
{
	for (unsigned k = 0; k < TW_INSTANCES; k++) {
		hw_schedule_free(w->instances[k].schedule);
		w->instances[k].schedule = NULL;
	}
}

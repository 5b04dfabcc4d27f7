/* SPDX-License-Identifier: MIT */
/*
 * Watches the promises about tasks. It knows the submissions, the events, the messages, the devices and the true time.
 * Of the scripts' rules it knows only what clients are promised.
 */
#include <inttypes.h>
#include <string.h>

#include "tasks_world.h"

#define FOUND_MS 3000 /* an overdue task is found within this time */
#define SLACK_MS 3000 /* for the ways of answers, the ranks of several instances, and the steps of this world */

void tw_breach(struct tw_world *w, const struct tw_task *t, const char *what)
{
	w->breaches++;
	if (w->tell && w->breaches <= 3)
		fprintf(w->tell, "seed %" PRIu64 " at %.3f s: task %s: %s\n", w->seed, (double)w->now / 1000,
		        t ? t->msg_id : "-", what);
}

static const struct tw_device *device_of(const struct tw_world *w, const struct tw_task *t)
{
	return &w->devices[t->device];
}

static bool has_ended(const struct tw_task *t)
{
	return hw_task_has_ended(t->state);
}

/* Returns by how much an event may be late if only the instance with the highest rank finds the task. */
static int64_t patience(const struct tw_world *w)
{
	return FOUND_MS + SLACK_MS + (int64_t)w->n_instances * HW_RANK_MS;
}

/* Whether nothing that may cause a delay has happened since `since`, nor shortly before now. */
static bool is_calm(const struct tw_world *w, int64_t since)
{
	return w->now - since > patience(w) && w->now - w->calm_since > patience(w);
}

static int64_t wait_of(const struct tw_world *w, unsigned tries)
{
	int64_t wait = w->rules.ack_wait_ms;
	while (--tries > 0 && wait < w->rules.retry_max_ms)
		wait *= 2;
	return wait < w->rules.retry_max_ms ? wait : w->rules.retry_max_ms;
}

/* Returns the time before which no claim and no expiry may be. It is Redis' time. But while Redis' clock is set
 * ahead for less than clock_hold, it is the true time. */
static int64_t believed_ms(const struct tw_world *w)
{
	return w->clock_ms > HW_CLOCK_STEP_MS && w->clock_back_at ? tw_true_ms(w) : tw_redis_ms(w);
}

/* --- what happens ------------------------------------------------------------------------------------------------- */

static unsigned unanswered(const struct tw_world *w, unsigned device)
{
	unsigned n = 0;
	for (unsigned k = 0; k < w->n_tasks; k++)
		n += w->tasks[k].exists && w->tasks[k].device == device && w->tasks[k].state == HW_TASK_SENT;
	return n;
}

/*
 * Returns how long ago the task was sent: by Redis' clock or in truth, whichever is longer. A receiver must not get its
 * messages too fast, so any clock may count. Example: a held task whose wait is over is sent as soon as its window has
 * room. If Redis' clock went back in between, that may be before the time at which the task was last sent, by that
 * clock (seeds 6501 and 7621).
 */
static int64_t waited_ms(const struct tw_world *w, const struct tw_task *t)
{
	int64_t by_redis = tw_redis_ms(w) - t->sent_redis, in_truth = w->now - t->sent_at;
	return by_redis > in_truth ? by_redis : in_truth;
}

void tw_saw_send(struct tw_world *w, struct tw_task *t)
{
	int64_t now = tw_redis_ms(w);
	if (has_ended(t))
		tw_breach(w, t, "claimed after its end");
	if (believed_ms(w) < t->at)
		tw_breach(w, t, "claimed before its time");
	if (now >= t->exp)
		tw_breach(w, t, "claimed after its exp");
	if (twin_is_offline(&w->twin, tw_text(device_of(w, t)->name)))
		tw_breach(w, t, "claimed although its receiver is known offline");
	if (t->state == HW_TASK_ACKED && w->clock_ms == 0 &&
	    w->now + w->rules.ack_wait_ms + SLACK_MS < t->acked_at + t->run)
		tw_breach(w, t, "asked again long before its time is over");
	else if (t->state != HW_TASK_ACKED && t->tries > 0 &&
	         waited_ms(w, t) < (t->woken ? w->rules.ack_wait_ms : wait_of(w, t->tries)) && !w->flushed)
		tw_breach(w, t, "sent again before its wait is over");
	/* If the clock went back, a new task may be older than one that was sent. */
	if (t->state != HW_TASK_SENT && t->tries == 0 && unanswered(w, t->device) >= w->rules.window &&
	    w->clock_ms >= 0)
		tw_breach(w, t, "sent beyond the window");
	if (w->trace)
		fprintf(w->trace, "%10.3f %s claimed, try %u\n", (double)w->now / 1000, t->msg_id, t->tries + 1);
	w->count.sends++;
	w->count.retries += t->tries > 0;
	t->tries++;
	t->sent_at = w->now;
	t->sent_redis = now;
	t->woken = false;
}

/* Compares with the times that were claimed, and not with those of the task. After a flush, the task may be
 * submitted again with a later `at`, while a message of the lost task is still under way (seed 6060). */
void tw_saw_message(struct tw_world *w, const struct tw_send *m)
{
	const struct tw_task *t = &w->tasks[m->task];
	/* A message may be on its way for up to a step of this world; a suspended instance cannot know. */
	if (believed_ms(w) < m->at && w->clock_ms >= 0) /* clock_ms < 0: the clock went back while the message was
	                                                 * under way */
		tw_breach(w, t, "sent before its time");
	if (tw_redis_ms(w) - TW_STEP_MS >= m->exp && w->clock_ms == 0)
		tw_breach(w, t, "sent after its exp");
}

void tw_saw_effect(struct tw_world *w, struct tw_task *t)
{
	if (++t->effects > 1)
		tw_breach(w, t, "done twice");
}

static void see_event(struct tw_world *w, struct tw_task *t, const struct twin_event *e)
{
	enum hw_task_state state = hw_task_state_of(e->state, strlen(e->state));
	if (strcmp(e->why, HW_TASK_WHY_LATE) == 0) {
		w->count.late++;
		if (!has_ended(t))
			tw_breach(w, t, "late before its end");
		return;
	}
	if (t->exists && has_ended(t))
		tw_breach(w, t, "it changes after its end");
	if (state == HW_TASK_SCHEDULED && t->exists)
		tw_breach(w, t, "it is made twice");
	if (state == HW_TASK_COMPLETE && t->effects == 0)
		tw_breach(w, t, "complete, and its device never did it");
	if (state == HW_TASK_EXPIRED && believed_ms(w) < t->exp)
		tw_breach(w, t, "expired before its exp");
	if (state == HW_TASK_ACKED)
		t->acked_at = w->now;
	if (state == HW_TASK_SCHEDULED) {
		const struct twin_task *k = twin_find(&w->twin, &t->id);
		t->at = k->at;
		t->exp = k->exp;
		t->run = k->run;
		t->exists = true;
		w->count.tasks++;
	}
	w->count.held += state == HW_TASK_HELD;
	w->count.complete += state == HW_TASK_COMPLETE;
	w->count.failed += state == HW_TASK_FAILED;
	w->count.expired += state == HW_TASK_EXPIRED;
	w->count.cancelled += state == HW_TASK_CANCELLED;
	t->state = state;
}

void tw_saw_events(struct tw_world *w)
{
	for (; w->seen_events < w->twin.n_events; w->seen_events++) {
		const struct twin_event *e = &w->twin.events[w->seen_events % TWIN_EVENTS];
		struct tw_task *t = tw_task_of(w, &e->task);
		if (t)
			see_event(w, t, e);
		if (w->trace && t)
			fprintf(w->trace, "%10.3f %s %s %s\n", (double)w->now / 1000, t->msg_id, e->state, e->why);
	}
}

/* --- what does not happen ----------------------------------------------------------------------------------------- */

/* Returns how many tasks of the same receiver are before this task in the window. */
static unsigned rank(const struct tw_world *w, const struct tw_task *t)
{
	unsigned n = 0;
	for (unsigned k = 0; k < w->n_tasks; k++) {
		const struct tw_task *o = &w->tasks[k];
		if (!o->exists || o->device != t->device || has_ended(o) || o->state == HW_TASK_ACKED || o == t)
			continue;
		n += o->at < t->at || (o->at == t->at && memcmp(&o->id, &t->id, sizeof(o->id)) < 0);
	}
	return n;
}

/* Returns since when the task's receiver could have got it: the receiver was online, it was known as online, and an
 * instance could know that. */
static int64_t reachable_since(const struct tw_world *w, const struct tw_task *t)
{
	const struct tw_device *d = device_of(w, t);
	if (!d->online || d->known_offline || d->known_at)
		return w->now;
	return d->known_online_at;
}

/* Returns the moment of this world's clock at which Redis' clock shows `redis_ms`. */
static int64_t when(const struct tw_world *w, int64_t redis_ms)
{
	return w->now - (tw_redis_ms(w) - redis_ms);
}

static void watch_task(struct tw_world *w, struct tw_task *t)
{
	if (!t->exists || t->flushed || has_ended(t))
		return;
	int64_t since = when(w, t->at);
	if (t->state == HW_TASK_ACKED) {
		if (is_calm(w, t->acked_at + t->run))
			tw_breach(w, t, "acknowledged, and it runs for ever");
		return;
	}
	if (is_calm(w, when(w, t->exp)))
		tw_breach(w, t, "it does not expire");
	if (since < reachable_since(w, t))
		since = reachable_since(w, t);
	if (t->state == HW_TASK_SENT) {
		if (is_calm(w, t->sent_at + wait_of(w, t->tries)) && is_calm(w, since))
			tw_breach(w, t, "it is not sent again");
	} else if (rank(w, t) < w->rules.window && is_calm(w, since) && is_calm(w, t->sent_at + w->rules.ack_wait_ms)) {
		tw_breach(w, t, "due, and not sent");
	}
}

/* If a window has room again, waiting tasks fill it. The oracle does not know when that happened. So a task that
 * comes into the window may be late by patience() from then on. */
void tw_watch(struct tw_world *w)
{
	for (unsigned k = 0; k < w->n_tasks; k++) {
		struct tw_task *t = &w->tasks[k];
		if (w->now <= TW_STEP_MS || !t->exists || rank(w, t) >= w->rules.window)
			t->window_since = w->now;
		if (is_calm(w, t->window_since) || t->state == HW_TASK_ACKED || t->state == HW_TASK_SENT)
			watch_task(w, t);
	}
}

void tw_judge(struct tw_world *w)
{
	for (unsigned k = 0; k < w->n_tasks; k++) {
		struct tw_task *t = &w->tasks[k];
		const struct twin_task *kept = twin_find(&w->twin, &t->id);
		if (t->told && !t->flushed && !t->exists)
			tw_breach(w, t, "it was taken, and is lost");
		if (t->exists && !t->flushed && !has_ended(t))
			tw_breach(w, t, "it never ended");
		if (t->exists && !t->flushed && kept && kept->state != t->state)
			tw_breach(w, t, "its record says other than the events");
	}
}

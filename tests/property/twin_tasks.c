/* SPDX-License-Identifier: MIT */
/* See twin_tasks.h. */
#include "twin_tasks.h"

#include <stdlib.h>
#include <string.h>

static const char *const lie_names[TWIN_LIES] = {
	[TWIN_HONEST] = "none",       [TWIN_LIE_EARLY] = "early",       [TWIN_LIE_EXP] = "exp",
	[TWIN_LIE_ENDED] = "ended",   [TWIN_LIE_OFFLINE] = "offline",   [TWIN_LIE_WINDOW] = "window",
	[TWIN_LIE_LEASE] = "lease",   [TWIN_LIE_BACKOFF] = "backoff",   [TWIN_LIE_REPEAT] = "repeat",
	[TWIN_LIE_LATE] = "late",     [TWIN_LIE_FOREIGN] = "foreign",   [TWIN_LIE_CANCEL] = "cancel",
	[TWIN_LIE_ONLINE] = "online", [TWIN_LIE_WINDOWED] = "windowed", [TWIN_LIE_RUN] = "run",
	[TWIN_LIE_FORGET] = "forget", [TWIN_LIE_CLOCK] = "clock"};

const char *twin_lie_name(enum twin_lie lie)
{
	return lie_names[lie];
}

struct hw_text twin_span(const struct twin_text *t)
{
	return (struct hw_text){t->at, t->len};
}

bool twin_same(struct hw_text a, struct hw_text b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

static void copy(struct twin_text *to, struct hw_text from)
{
	if (from.len > TWIN_TEXT)
		abort();
	to->len = from.len;
	if (from.len)
		memcpy(to->at, from.at, from.len);
}

static int64_t ahead_ms(const struct twin *t)
{
	return t->rules.keep_ms < HW_TASK_AHEAD_MS ? t->rules.keep_ms : HW_TASK_AHEAD_MS;
}

void twin_init(struct twin *t, const struct hw_task_rules *rules)
{
	memset(t, 0, sizeof(*t));
	t->rules = *rules;
}

bool twin_is_offline(const struct twin *t, struct hw_text receiver)
{
	for (size_t k = 0; k < t->n_offline; k++)
		if (twin_same(twin_span(&t->offline[k]), receiver))
			return true;
	return false;
}

void twin_set_offline(struct twin *t, struct hw_text receiver, bool offline)
{
	size_t n = 0;
	for (size_t k = 0; k < t->n_offline; k++)
		if (!twin_same(twin_span(&t->offline[k]), receiver))
			t->offline[n++] = t->offline[k];
	t->n_offline = n;
	if (offline)
		copy(&t->offline[t->n_offline++], receiver);
}

void twin_flush(struct twin *t)
{
	t->n = t->n_offline = 0;
}

struct twin_task *twin_find(struct twin *t, const struct hw_task_id *task)
{
	for (size_t k = 0; k < t->n; k++)
		if (memcmp(&t->tasks[k].task, task, sizeof(*task)) == 0)
			return &t->tasks[k];
	return NULL;
}

void twin_forget(struct twin *t, int64_t now)
{
	size_t n = 0;
	for (size_t k = 0; k < t->n; k++)
		if (t->tasks[k].forgotten > now)
			t->tasks[n++] = t->tasks[k];
	t->n = n;
}

size_t twin_waiting(const struct twin *t)
{
	size_t n = 0;
	for (size_t k = 0; k < t->n; k++)
		n += t->tasks[k].due >= 0;
	return n;
}

void twin_begin(struct twin *t, int64_t now, int64_t latest)
{
	t->now = now;
	t->latest = latest;
	t->n_wakes = 0;
}

static bool is_believed(const struct twin *t)
{
	return t->now < t->latest || t->lie == TWIN_LIE_CLOCK;
}

static void tell(struct twin *t, const struct twin_task *k, const char *state, const char *why)
{
	t->events[t->n_events++ % TWIN_EVENTS] = (struct twin_event){k->task, state, why, t->now};
}

static void wake(struct twin *t, const struct twin_task *k, int64_t due)
{
	if (t->n_wakes == TWIN_WAKES)
		abort();
	t->wakes[t->n_wakes++] = (struct twin_wake){k->task, k->receiver, due};
}

/* --- the window --------------------------------------------------------------------------------------------------- */

/* Whether `a` comes before `b` in their receiver's set. */
static bool is_before(const struct twin_task *a, const struct twin_task *b)
{
	bool a_behind = a->state == HW_TASK_ACKED, b_behind = b->state == HW_TASK_ACKED;
	if (a_behind != b_behind)
		return b_behind;
	if (a->at != b->at)
		return a->at < b->at;
	return memcmp(&a->task, &b->task, sizeof(a->task)) < 0;
}

static unsigned rank(const struct twin *t, const struct twin_task *k)
{
	unsigned n = 0;
	for (size_t j = 0; j < t->n; j++) {
		const struct twin_task *o = &t->tasks[j];
		n += o->in_set && o != k && twin_same(twin_span(&o->receiver), twin_span(&k->receiver)) &&
		     is_before(o, k);
	}
	return n;
}

static struct twin_task *ranked(struct twin *t, struct hw_text receiver, unsigned r)
{
	for (size_t j = 0; j < t->n; j++)
		if (t->tasks[j].in_set && twin_same(twin_span(&t->tasks[j].receiver), receiver) &&
		    rank(t, &t->tasks[j]) == r)
			return &t->tasks[j];
	return NULL;
}

static void fill_window(struct twin *t, const struct twin_text *receiver)
{
	if (receiver->len == 0 || twin_is_offline(t, twin_span(receiver)) || t->lie == TWIN_LIE_WINDOWED)
		return;
	struct twin_task *k = ranked(t, twin_span(receiver), t->rules.window - 1);
	if (!k || (k->state != HW_TASK_SCHEDULED && k->state != HW_TASK_HELD))
		return;
	int64_t due = k->at > t->now ? k->at : t->now;
	if (k->due <= due)
		return;
	k->due = due;
	wake(t, k, due);
}

/* --- ends --------------------------------------------------------------------------------------------------------- */

static void finish(struct twin *t, struct twin_task *k, enum hw_task_state state, const char *why)
{
	tell(t, k, hw_task_state_name(state), why);
	k->state = state;
	k->ended = t->now;
	k->why = why;
	if (t->lie != TWIN_LIE_CANCEL || state != HW_TASK_CANCELLED)
		k->due = -1;
	k->in_set = false;
	k->forgotten = t->lie == TWIN_LIE_FORGET ? t->now : t->now + t->rules.keep_ms + ahead_ms(t);
	fill_window(t, &k->receiver);
}

static void end_overdue(struct twin *t, struct twin_task *k)
{
	if (!is_believed(t) || hw_task_has_ended(k->state))
		return;
	if (k->state == HW_TASK_ACKED) {
		if (t->now >= k->acked + k->run && t->lie != TWIN_LIE_RUN)
			finish(t, k, HW_TASK_FAILED, HW_TASK_WHY_RUN);
	} else if (t->now >= k->exp && t->lie != TWIN_LIE_EXP) {
		finish(t, k, HW_TASK_EXPIRED, HW_TASK_WHY_EXP);
	}
}

/* Once more before the task's time is over, then at its end. */
static int64_t due_of_acked(const struct twin *t, const struct twin_task *k)
{
	int64_t lead = t->rules.ack_wait_ms < k->run / 2 ? t->rules.ack_wait_ms : k->run / 2;
	return k->acked + k->run - (k->sent > k->acked ? 0 : lead);
}

/* --- submit ------------------------------------------------------------------------------------------------------- */

static bool is_same(const struct twin_task *k, const struct hw_task_submission *s)
{
	int64_t at = s->at_ms > k->created ? s->at_ms : k->created;
	return twin_same(twin_span(&k->receiver), s->receiver) && twin_same(twin_span(&k->action), s->action) &&
	       twin_same(twin_span(&k->topic), s->topic) && k->qos == s->qos && k->retain == s->retain &&
	       k->hold == !s->no_hold && (s->after_ms >= 0 || s->at_ms < 0 || at == k->at) &&
	       (s->exp_ms < 0 || s->exp_ms == k->exp) && (s->run_ms < 0 || s->run_ms == k->run) &&
	       (!k->has_body || twin_same(twin_span(&k->body), s->body));
}

static enum hw_task_verdict judge(const struct twin *t, const struct hw_task_submission *s, int64_t at, int64_t exp)
{
	unsigned mine = 0;
	for (size_t k = 0; k < t->n; k++)
		mine += t->tasks[k].in_set && twin_same(twin_span(&t->tasks[k].receiver), s->receiver);
	if (s->time_ms > 0 && s->time_ms < t->now - t->rules.keep_ms)
		return HW_TASK_OLD;
	if (s->time_ms > t->now + ahead_ms(t))
		return HW_TASK_AHEAD;
	if (at > t->now + HW_TASK_AT_MAX_MS)
		return HW_TASK_AT;
	if (exp <= at || exp > at + HW_TASK_EXP_MAX_MS)
		return HW_TASK_EXP;
	if (twin_waiting(t) >= t->rules.max || (s->receiver.len && mine >= t->rules.max_per_receiver))
		return HW_TASK_FULL;
	return HW_TASK_NEW;
}

static void make(struct twin *t, const struct hw_task_submission *s, int64_t at, int64_t exp, int64_t run)
{
	if (t->n == TWIN_TASKS)
		abort();
	struct twin_task *k = &t->tasks[t->n++];
	*k = (struct twin_task){.task = s->task,
	                        .qos = s->qos,
	                        .retain = s->retain,
	                        .hold = !s->no_hold,
	                        .has_body = true,
	                        .at = at,
	                        .exp = exp,
	                        .run = run,
	                        .created = t->now,
	                        .due = at,
	                        .in_set = s->receiver.len > 0,
	                        .forgotten = INT64_MAX};
	copy(&k->sender, s->sender);
	copy(&k->msg_id, s->msg_id);
	copy(&k->receiver, s->receiver);
	copy(&k->action, s->action);
	copy(&k->topic, s->topic);
	copy(&k->body, s->body);
	tell(t, k, "scheduled", "");
}

void twin_submit(struct twin *t, const struct hw_task_submission *s, struct hw_task_submitted *out)
{
	struct twin_task *k = twin_find(t, &s->task);
	*out = (struct hw_task_submitted){.state = HW_TASK_STATES};
	if (k && t->lie == TWIN_LIE_REPEAT) {
		*k = t->tasks[--t->n];
		k = NULL;
	}
	if (k) {
		out->verdict = is_same(k, s) ? HW_TASK_KNOWN : HW_TASK_CONTENT;
		if (out->verdict == HW_TASK_KNOWN)
			*out = (struct hw_task_submitted){HW_TASK_KNOWN, k->state, k->at, k->exp, {NULL, 0}};
		return;
	}
	if (!is_believed(t)) {
		out->verdict = HW_TASK_ERROR;
		return;
	}
	int64_t at = s->after_ms >= 0 ? t->now + s->after_ms : s->at_ms > t->now ? s->at_ms : t->now;
	int64_t exp = s->exp_ms >= 0 ? s->exp_ms : at + t->rules.exp_ms;
	out->verdict = judge(t, s, at, exp);
	if (out->verdict != HW_TASK_NEW)
		return;
	make(t, s, at, exp, s->run_ms >= 0 ? s->run_ms : t->rules.run_ms);
	*out = (struct hw_task_submitted){HW_TASK_NEW, HW_TASK_SCHEDULED, at, exp, {NULL, 0}};
}

/* --- claim -------------------------------------------------------------------------------------------------------- */

static int64_t wait_of(const struct twin *t, unsigned tries)
{
	int64_t wait = t->rules.ack_wait_ms, most = t->rules.retry_max_ms > wait ? t->rules.retry_max_ms : wait;
	while (--tries > 0 && wait < most && t->lie != TWIN_LIE_BACKOFF)
		wait *= 2;
	return wait < most ? wait : most;
}

static void later(const struct twin *t, struct twin_task *k, enum hw_task_verdict verdict, int64_t wait,
                  struct hw_task_claimed *out)
{
	k->due = t->now + wait < k->exp ? t->now + wait : k->exp;
	*out = (struct hw_task_claimed){.verdict = verdict, .state = k->state, .due_ms = k->due};
}

static void over(const struct twin_task *k, struct hw_task_claimed *out)
{
	*out = (struct hw_task_claimed){.verdict = HW_TASK_OVER, .state = k->state};
}

static void hold(struct twin *t, struct twin_task *k, struct hw_task_claimed *out)
{
	if (!k->hold) {
		finish(t, k, HW_TASK_FAILED, HW_TASK_WHY_OFFLINE);
		over(k, out);
		return;
	}
	if (k->state != HW_TASK_HELD)
		tell(t, k, "held", "");
	k->state = HW_TASK_HELD;
	later(t, k, HW_TASK_HOLD, HW_TASK_CHECK_MS, out);
}

static void message(const struct twin *t, struct twin_task *k, struct hw_task_claimed *out)
{
	k->sent = t->now;
	k->tries++;
	out->tries = k->tries;
	out->sender = twin_span(&k->sender);
	out->msg_id = twin_span(&k->msg_id);
	out->receiver = twin_span(&k->receiver);
	out->action = twin_span(&k->action);
	out->topic = twin_span(&k->topic);
	out->body = twin_span(&k->body);
	out->qos = k->qos;
	out->retain = k->retain;
	out->created_ms = k->created;
	out->at_ms = k->at;
	out->exp_ms = k->exp;
}

static void send(struct twin *t, struct twin_task *k, struct hw_task_claimed *out)
{
	if (!k->has_body) {
		finish(t, k, HW_TASK_FAILED, HW_TASK_WHY_LOST);
		over(k, out);
		return;
	}
	if (k->state != HW_TASK_SENT)
		tell(t, k, "sent", "");
	k->state = HW_TASK_SENT;
	later(t, k, HW_TASK_SEND, wait_of(t, k->tries + 1), out);
	if (t->lie == TWIN_LIE_LEASE)
		k->due = k->exp;
	message(t, k, out);
}

static void ask(struct twin *t, struct twin_task *k, struct hw_task_claimed *out)
{
	bool asked = k->has_body && t->now < k->exp && !twin_is_offline(t, twin_span(&k->receiver));
	k->due = t->lie == TWIN_LIE_RUN ? t->now + HW_TASK_CHECK_MS : k->acked + k->run;
	*out = (struct hw_task_claimed){
		.verdict = asked ? HW_TASK_SEND : HW_TASK_WAIT, .state = HW_TASK_ACKED, .due_ms = k->due};
	if (asked)
		message(t, k, out);
}

static int64_t due_of(const struct twin *t, const struct twin_task *k)
{
	int64_t due = k->due > 0 ? k->due : 0;
	if (k->state == HW_TASK_SCHEDULED && k->at > due)
		due = k->at;
	if (k->state == HW_TASK_ACKED && due_of_acked(t, k) > due)
		due = due_of_acked(t, k);
	return t->lie == TWIN_LIE_EARLY ? 0 : due;
}

void twin_claim(struct twin *t, const struct hw_task_id *task, struct hw_task_claimed *out)
{
	struct twin_task *k = twin_find(t, task);
	*out = (struct hw_task_claimed){.verdict = HW_TASK_GONE, .state = HW_TASK_STATES};
	if (!k)
		return;
	if (hw_task_has_ended(k->state) && t->lie != TWIN_LIE_ENDED && t->lie != TWIN_LIE_CANCEL) {
		k->due = -1;
		over(k, out);
		return;
	}
	if (!is_believed(t)) {
		int64_t due = due_of(t, k) > 1 ? due_of(t, k) : 1;
		*out = (struct hw_task_claimed){.verdict = HW_TASK_EARLY, .state = k->state, .due_ms = due};
		return;
	}
	if (due_of(t, k) > t->now) {
		k->due = due_of(t, k);
		*out = (struct hw_task_claimed){.verdict = HW_TASK_EARLY, .state = k->state, .due_ms = k->due};
		return;
	}
	end_overdue(t, k);
	if (hw_task_has_ended(k->state) && t->lie != TWIN_LIE_ENDED && t->lie != TWIN_LIE_CANCEL)
		over(k, out);
	else if (k->state == HW_TASK_ACKED)
		ask(t, k, out);
	else if (twin_is_offline(t, twin_span(&k->receiver)) && t->lie != TWIN_LIE_OFFLINE)
		hold(t, k, out);
	else if (k->receiver.len && k->tries == 0 && rank(t, k) >= t->rules.window && t->lie != TWIN_LIE_WINDOW)
		later(t, k, HW_TASK_WAIT, HW_TASK_CHECK_MS, out);
	else
		send(t, k, out);
}

/* --- answer ------------------------------------------------------------------------------------------------------- */

static void take_value(struct twin_task *k, struct hw_text value)
{
	if (value.len) {
		copy(&k->value, value);
		k->has_value = true;
	}
}

static const char *kind_name(enum hw_task_answer_kind kind)
{
	return kind == HW_ANSWER_ACK ? "acked" : kind == HW_ANSWER_COMPLETE ? "complete" : "failed";
}

static enum hw_task_verdict late(struct twin *t, struct twin_task *k, const struct hw_task_answer *a)
{
	bool by_device = k->why && strcmp(k->why, HW_TASK_WHY_DEVICE) == 0;
	if (a->kind > HW_ANSWER_FAILED || k->state == HW_TASK_COMPLETE || by_device)
		return HW_TASK_KNOWN;
	if (k->late && (a->kind == HW_ANSWER_ACK || strcmp(k->late, "acked") != 0))
		return HW_TASK_KNOWN;
	k->late = kind_name(a->kind);
	k->late_at = t->now;
	tell(t, k, k->late, HW_TASK_WHY_LATE);
	take_value(k, a->value);
	if (t->lie == TWIN_LIE_LATE && a->kind == HW_ANSWER_COMPLETE)
		k->state = HW_TASK_COMPLETE;
	return HW_TASK_LATE;
}

static enum hw_task_verdict of_broker(struct twin *t, struct twin_task *k, enum hw_task_answer_kind kind)
{
	if (k->state != HW_TASK_SENT || (kind == HW_ANSWER_PUBLISHED && k->receiver.len))
		return HW_TASK_KNOWN;
	if (kind == HW_ANSWER_NOBODY)
		k->why = HW_TASK_WHY_NOBODY;
	else if (kind == HW_ANSWER_REFUSED)
		finish(t, k, HW_TASK_FAILED, HW_TASK_WHY_REFUSED);
	else if (kind == HW_ANSWER_LOST)
		finish(t, k, HW_TASK_FAILED, HW_TASK_WHY_LOST);
	else
		finish(t, k, HW_TASK_COMPLETE, "");
	return HW_TASK_DONE;
}

static enum hw_task_verdict of_device(struct twin *t, struct twin_task *k, const struct hw_task_answer *a)
{
	if (a->kind != HW_ANSWER_ACK) {
		take_value(k, a->value);
		if (a->kind == HW_ANSWER_COMPLETE)
			finish(t, k, HW_TASK_COMPLETE, "");
		else
			finish(t, k, HW_TASK_FAILED, HW_TASK_WHY_DEVICE);
		return HW_TASK_DONE;
	}
	if (k->state == HW_TASK_ACKED)
		return HW_TASK_KNOWN;
	tell(t, k, "acked", "");
	k->state = HW_TASK_ACKED;
	k->acked = t->now;
	k->due = due_of_acked(t, k);
	fill_window(t, &k->receiver);
	return HW_TASK_DONE;
}

void twin_answer(struct twin *t, const struct hw_task_answer *a, struct hw_task_answered *out)
{
	struct twin_task *k = twin_find(t, &a->task);
	bool of_device_kind = a->kind <= HW_ANSWER_FAILED;
	*out = (struct hw_task_answered){.verdict = HW_TASK_GONE, .state = HW_TASK_STATES};
	if (!k || (k->tries == 0 && !hw_task_has_ended(k->state)))
		return;
	out->verdict = HW_TASK_FOREIGN;
	out->state = k->state;
	if (of_device_kind && (k->receiver.len == 0 || (a->from.len && !twin_same(a->from, twin_span(&k->receiver)))) &&
	    t->lie != TWIN_LIE_FOREIGN)
		return;
	end_overdue(t, k);
	if (hw_task_has_ended(k->state))
		out->verdict = late(t, k, a);
	else if (!of_device_kind)
		out->verdict = of_broker(t, k, a->kind);
	else
		out->verdict = of_device(t, k, a);
	out->state = k->state;
}

/* --- cancel, online, pages ---------------------------------------------------------------------------------------- */

void twin_cancel(struct twin *t, const struct hw_task_cancel *c, struct hw_task_cancelled *out)
{
	struct twin_task *k = twin_find(t, &c->task);
	*out = (struct hw_task_cancelled){.verdict = HW_TASK_GONE, .was = HW_TASK_STATES};
	if (!k)
		return;
	if (c->sender.len && !twin_same(c->sender, twin_span(&k->sender))) {
		out->verdict = HW_TASK_FOREIGN;
		return;
	}
	end_overdue(t, k);
	out->was = k->state;
	out->tries = k->tries;
	out->verdict = hw_task_has_ended(k->state)              ? HW_TASK_OVER
	               : k->state == HW_TASK_ACKED && !c->force ? HW_TASK_RUNNING
	                                                        : HW_TASK_DONE;
	if (out->verdict == HW_TASK_DONE)
		finish(t, k, HW_TASK_CANCELLED, "");
}

unsigned twin_online(struct twin *t, struct hw_text receiver)
{
	unsigned n = 0;
	if (twin_is_offline(t, receiver) || t->lie == TWIN_LIE_ONLINE)
		return 0;
	for (unsigned r = 0; r < t->rules.window; r++) {
		struct twin_task *k = ranked(t, receiver, r);
		if (!k || k->state == HW_TASK_ACKED)
			continue;
		int64_t due = k->at > t->now ? k->at : t->now;
		if (k->tries && k->sent + t->rules.ack_wait_ms > due)
			due = k->sent + t->rules.ack_wait_ms;
		if (k->due >= 0 && k->due <= due && k->at > t->now)
			continue;
		if (k->due < 0 || k->due > due)
			k->due = due;
		wake(t, k, k->due);
		n++;
	}
	return n;
}

static int by_due(const void *a, const void *b)
{
	const struct twin_wake *x = a, *y = b;
	if (x->due_ms != y->due_ms)
		return x->due_ms < y->due_ms ? -1 : 1;
	return memcmp(&x->task, &y->task, sizeof(x->task));
}

size_t twin_page(struct twin *t, const struct hw_schedule_order *o, struct twin_wake *out)
{
	struct twin_wake all[TWIN_TASKS];
	int64_t until = o->until_ms == INT64_MAX ? t->now : o->until_ms;
	size_t n = 0, given = 0;
	for (size_t k = 0; k < t->n; k++) {
		const struct twin_task *x = &t->tasks[k];
		if (x->due >= 0 && x->due >= o->from_ms && x->due <= until)
			all[n++] = (struct twin_wake){x->task, x->receiver, x->due};
	}
	qsort(all, n, sizeof(*all), by_due);
	for (size_t k = o->skip; k < n && given < o->count; k++)
		out[given++] = all[k];
	return given;
}

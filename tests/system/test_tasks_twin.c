/* SPDX-License-Identifier: MIT */
/*
 * The scripts of tasks against their naive twin: random operations in virtual time on a real Redis. Each answer, each
 * wake, each event and each key must be what the twin says; and each rule that the twin breaks on purpose must show.
 *
 * HW_SEED sets the seed, which is printed.
 */
#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../property/twin_tasks.h"
#include "../random.h"
#include "tasks/task.h"
#include "tasks_redis.h"

#define STEPS     1200
#define SENDERS   3
#define MSG_IDS   40
#define RECEIVERS 4
#define BEGIN_MS  INT64_C(1790000000000)
#define MINUTE    INT64_C(60000)

static const struct hw_task_rules rules = {.prefix = "task:",
                                           .device_prefix = "device:disconnected:x-",
                                           .node = "node-1",
                                           .ack_wait_ms = 10000,
                                           .retry_max_ms = 60000,
                                           .exp_ms = 30 * MINUTE,
                                           .run_ms = 10 * MINUTE,
                                           .keep_ms = 40 * MINUTE,
                                           .window = 2,
                                           .max = 40,
                                           .max_per_receiver = 12,
                                           .events_max = 100000};

struct given {
	bool is;
	struct hw_task_submission s;
	char body[24];
};

static struct rig rig;
static struct tasks_redis redis;
static struct twin twin;
static struct given given[SENDERS][MSG_IDS];
static char last_event[32];
static bool punctual;       /* now and then, time advances exactly to when a task is due */
static unsigned asked;      /* acknowledged ones that were sent once more */
static char mismatch[1024]; /* the first one; empty: none */

static void differs(const char *format, ...)
{
	va_list ap;
	if (*mismatch)
		return;
	va_start(ap, format);
	vsnprintf(mismatch, sizeof(mismatch), format, ap);
	va_end(ap);
}

static int64_t below(int64_t n)
{
	return sim_below(&random_state, n);
}

static bool chance(double p)
{
	return sim_chance(&random_state, p);
}

static struct hw_text text_of(const char *s)
{
	return (struct hw_text){s, strlen(s)};
}

static const char *const senders[SENDERS] = {"ann", "bob", "user:eve"};
static const char *const receivers[RECEIVERS] = {"pump-1", "pump-2", "t\xc3\xbcr", "valve"};

static struct hw_task_id name_of(unsigned sender, unsigned msg)
{
	static const unsigned char secret[HW_TASKS_SECRET_LEN] = "a secret that is none";
	struct hw_task_id id;
	char msg_id[16];
	snprintf(msg_id, sizeof(msg_id), "m-%u", msg);
	ck_assert_int_eq(hw_task_name(&id, secret, text_of(senders[sender]), text_of(msg_id)), 0);
	return id;
}

static struct hw_task_id some_task(void)
{
	return name_of((unsigned)below(SENDERS), (unsigned)below(MSG_IDS));
}

/* A waiting task, if there is one: most operations are about such a task. */
static struct hw_task_id waiting_task(void)
{
	if (twin.n == 0 || chance(0.1))
		return some_task();
	return twin.tasks[below((int64_t)twin.n)].task;
}

/* The twin's tasks move: so what is compared with later is taken from it at once. */
static struct twin_task *of_twin(const struct hw_task_id *id)
{
	return twin_find(&twin, id);
}

/* --- comparing ---------------------------------------------------------------------------------------------------- */

static void compare_wakes(const struct hw_tasks_reply *r)
{
	if (r->n_wakes != twin.n_wakes) {
		differs("%zu wakes, not %zu", r->n_wakes, twin.n_wakes);
		return;
	}
	for (size_t k = 0; k < r->n_wakes; k++) {
		struct hw_task_wake w;
		const struct twin_wake *t = &twin.wakes[k];
		if (!hw_tasks_wake(r, k, &w) || memcmp(&w.task, &t->task, sizeof(w.task)) != 0 ||
		    w.due_ms != t->due_ms || !twin_same(w.receiver, twin_span(&t->receiver)))
			differs("wake %zu is another", k);
	}
}

static const char *field_of(const redisReply *event, const char *name)
{
	const redisReply *fields = event->element[1];
	for (size_t k = 0; k + 1 < fields->elements; k += 2)
		if (strcmp(fields->element[k]->str, name) == 0)
			return fields->element[k + 1]->str;
	return "(none)";
}

static uint64_t compared_events;

static void compare_events(void)
{
	redisReply *found = rig_ask(&rig, "XRANGE task:events (%s +", last_event);
	ck_assert_int_eq(found->type, REDIS_REPLY_ARRAY);
	if (found->elements != twin.n_events - compared_events)
		differs("%zu events, not %" PRIu64, found->elements, twin.n_events - compared_events);
	for (size_t k = 0; k < found->elements && !*mismatch; k++) {
		const struct twin_event *e = &twin.events[(compared_events + k) % TWIN_EVENTS];
		const redisReply *f = found->element[k];
		char task[HW_TASK_TEXT + 1], time[24];
		hw_task_id_text(&e->task, task);
		snprintf(time, sizeof(time), "%" PRId64, e->time_ms);
		if (strcmp(field_of(f, "task"), task) != 0 || strcmp(field_of(f, "state"), e->state) != 0 ||
		    strcmp(field_of(f, "why"), e->why) != 0 || strcmp(field_of(f, "time_ms"), time) != 0 ||
		    strcmp(field_of(f, "node"), "node-1") != 0)
			differs("event %s %s %s, not %s %s %s", field_of(f, "task"), field_of(f, "state"),
			        field_of(f, "why"), task, e->state, e->why);
		snprintf(last_event, sizeof(last_event), "%s", f->element[0]->str);
	}
	compared_events = twin.n_events;
	freeReplyObject(found);
}

static void compare_text(const char *what, const struct twin_text *t, const char *format, const char *arg)
{
	redisReply *reply = rig_ask(&rig, format, arg);
	struct hw_text got = {reply->str, reply->len};
	if (t ? reply->type != REDIS_REPLY_STRING || !twin_same(got, twin_span(t)) : reply->type != REDIS_REPLY_NIL)
		differs("%s of %s is %s", what, arg, reply->type == REDIS_REPLY_STRING ? reply->str : "not there");
	freeReplyObject(reply);
}

/* A field of the hash; NULL: it must not be there. */
static void compare_field(const redisReply *hash, const char *task, const char *name, const char *want)
{
	const char *got = NULL;
	for (size_t k = 0; k + 1 < hash->elements; k += 2)
		if (strcmp(hash->element[k]->str, name) == 0)
			got = hash->element[k + 1]->str;
	if (!got != !want || (got && strcmp(got, want) != 0))
		differs("%s of %s is %s, not %s", name, task, got ? got : "not there", want ? want : "none");
}

static void compare_number(const redisReply *hash, const char *task, const char *name, int64_t want, bool is_there)
{
	char text[24];
	snprintf(text, sizeof(text), "%" PRId64, want);
	compare_field(hash, task, name, is_there ? text : NULL);
}

/* `want` -1: it must not be there. */
static void compare_score(const char *key, const char *task, int64_t want)
{
	redisReply *reply = rig_ask(&rig, "ZSCORE %s %s", key, task);
	int64_t got = reply->type == REDIS_REPLY_STRING ? (int64_t)strtod(reply->str, NULL) : -1;
	if (got != want)
		differs("%s in %s is at %" PRId64 ", not %" PRId64, task, key, got, want);
	freeReplyObject(reply);
}

/* Keys live on by Redis' own clock, which has gone on a little since. */
static void compare_ttl(const char *task, const struct twin_task *t)
{
	long long ttl = rig_number(&rig, "PTTL task:%s", task), most = t->forgotten - t->ended;
	if (hw_task_has_ended(t->state) ? ttl <= most - MINUTE || ttl > most : ttl != -1)
		differs("%s lives for %lld ms", task, ttl);
}

static void compare_task(const struct twin_task *t)
{
	char task[HW_TASK_TEXT + 1], sender[TWIN_TEXT + 1], receiver[TWIN_TEXT + 1];
	hw_task_id_text(&t->task, task);
	snprintf(sender, sizeof(sender), "%.*s", (int)t->sender.len, t->sender.at);
	snprintf(receiver, sizeof(receiver), "%.*s", (int)t->receiver.len, t->receiver.at);
	redisReply *hash = rig_ask(&rig, "HGETALL task:%s", task);
	compare_field(hash, task, "state", hw_task_state_name(t->state));
	compare_field(hash, task, "sender", sender);
	compare_field(hash, task, "receiver", receiver);
	compare_field(hash, task, "hold", t->hold ? "1" : "0");
	compare_field(hash, task, "why", t->why);
	compare_field(hash, task, "late", t->late);
	compare_number(hash, task, "at", t->at, true);
	compare_number(hash, task, "exp", t->exp, true);
	compare_number(hash, task, "run", t->run, true);
	compare_number(hash, task, "created", t->created, true);
	compare_number(hash, task, "tries", t->tries, true);
	compare_number(hash, task, "sent", t->sent, t->tries > 0);
	compare_number(hash, task, "acked", t->acked, t->acked > 0);
	compare_number(hash, task, "ended", t->ended, hw_task_has_ended(t->state));
	compare_number(hash, task, "late_at", t->late_at, t->late != NULL);
	freeReplyObject(hash);
	compare_text("body", t->has_body ? &t->body : NULL, "GET task:body:%s", task);
	compare_text("value", t->has_value ? &t->value : NULL, "GET task:value:%s", task);
	compare_score("task:due", task, t->due);
	if (t->receiver.len) {
		int64_t behind = t->state == HW_TASK_ACKED ? INT64_C(10000000000000) : 0;
		char key[TWIN_TEXT + 16];
		snprintf(key, sizeof(key), "task:device:%s", receiver);
		compare_score(key, task, t->in_set ? behind + t->at : -1);
	}
	compare_ttl(task, t);
}

static void compare_all(void)
{
	long long keys = rig_number(&rig, "DBSIZE");
	size_t want = 1 + twin.n_offline; /* test:time */
	want += twin_waiting(&twin) > 0;
	want += twin.n_events > 0;
	want += rig_number(&rig, "EXISTS task:at") == 1;
	for (size_t k = 0; k < twin.n; k++) {
		compare_task(&twin.tasks[k]);
		want += 1 + (size_t)twin.tasks[k].has_body + (size_t)twin.tasks[k].has_value;
	}
	for (unsigned r = 0; r < RECEIVERS; r++)
		want += rig_number(&rig, "EXISTS task:device:%s", receivers[r]) == 1;
	if (rig_number(&rig, "ZCARD task:due") != (long long)twin_waiting(&twin))
		differs("%lld in task:due, not %zu", rig_number(&rig, "ZCARD task:due"), twin_waiting(&twin));
	if ((size_t)keys != want)
		differs("%lld keys, not %zu", keys, want);
}

/* --- operations --------------------------------------------------------------------------------------------------- */

/* The call that was built. Its answer says the time that was set. */
static bool call(enum hw_tasks_script script, size_t items, struct hw_tasks_reply *r)
{
	int rc = tasks_redis_call(&redis, script, r);
	if (rc == -EIO)
		ck_abort_msg("script %d: %s", (int)script, redis.reply->str);
	ck_assert_int_eq(rc, 0);
	ck_assert_int_eq(r->now_ms, redis.now_ms);
	if (script != HW_TASKS_PAGE)
		ck_assert_uint_eq(r->n_items, items);
	return true;
}

static void begin(void)
{
	int64_t latest = chance(0.9) ? redis.now_ms + 1 : chance(0.5) ? redis.now_ms : 0;
	hw_tasks_begin(&redis.eval, &rules, latest);
	twin_begin(&twin, redis.now_ms, latest);
}

static int64_t some_time(void)
{
	static const int64_t spans[] = {0, 1, 500, 10000, 60000, 20 * MINUTE, 400 * 24 * 60 * MINUTE};
	return redis.now_ms - 5000 + below(spans[below(7)] + 6000);
}

static struct hw_task_submission make_submission(struct given *g, unsigned sender, unsigned msg)
{
	static char msg_ids[MSG_IDS][8];
	snprintf(msg_ids[msg], sizeof(msg_ids[msg]), "m-%u", msg);
	snprintf(g->body, sizeof(g->body), "{\"n\":%" PRId64 "}", below(3));
	struct hw_task_submission s = {.task = name_of(sender, msg),
	                               .sender = text_of(senders[sender]),
	                               .msg_id = text_of(msg_ids[msg]),
	                               .body = text_of(g->body),
	                               .at_ms = -1,
	                               .after_ms = -1,
	                               .exp_ms = -1,
	                               .run_ms = -1,
	                               .no_hold = chance(0.1)};
	if (chance(0.1)) {
		s.topic = text_of("a/b");
		s.qos = (unsigned)below(3);
		s.retain = chance(0.5);
	} else {
		s.receiver = text_of(receivers[below(RECEIVERS)]);
		s.action = text_of(chance(0.5) ? "set" : "get");
	}
	if (chance(0.3))
		s.at_ms = some_time();
	else if (chance(0.3))
		s.after_ms = below(60000);
	if (chance(0.3))
		s.exp_ms = some_time() + below(60000);
	if (chance(0.3))
		s.run_ms = 1000 + below(60000);
	if (chance(0.3))
		s.time_ms = redis.now_ms + below(4 * rules.keep_ms) - 2 * rules.keep_ms;
	return s;
}

static void submit(void)
{
	struct hw_tasks_reply r;
	struct hw_task_submission s[4];
	size_t n = 0;
	begin();
	for (int64_t k = below(4); k >= 0; k--) {
		unsigned sender = (unsigned)below(SENDERS), msg = (unsigned)below(MSG_IDS);
		struct given *g = &given[sender][msg];
		bool twice = false;
		for (size_t j = 0; j < n; j++) {
			struct hw_task_id name = name_of(sender, msg);
			twice |= memcmp(&s[j].task, &name, sizeof(name)) == 0;
		}
		/* Another one would change the body that is in the call already. */
		if (!twice && (!g->is || chance(0.3)))
			g->s = make_submission(g, sender, msg);
		g->is = true;
		s[n++] = g->s;
		hw_tasks_put_submission(&redis.eval, &g->s);
	}
	if (!call(HW_TASKS_SUBMIT, n, &r))
		return;
	for (size_t k = 0; k < n; k++) {
		struct hw_task_submitted got, want;
		hw_tasks_submitted(&r, k, &got);
		twin_submit(&twin, &s[k], &want);
		if (got.verdict != want.verdict || got.state != want.state || got.at_ms != want.at_ms ||
		    got.exp_ms != want.exp_ms)
			differs("submit: %d %d %" PRId64 " %" PRId64 ", not %d %d %" PRId64 " %" PRId64 " (%.*s)",
			        got.verdict, got.state, got.at_ms, got.exp_ms, want.verdict, want.state, want.at_ms,
			        want.exp_ms, (int)got.error.len, got.error.at);
	}
	compare_wakes(&r);
}

static void compare_claimed(const struct hw_task_claimed *got, const struct hw_task_claimed *want)
{
	if (got->verdict != want->verdict || got->state != want->state || got->due_ms != want->due_ms)
		differs("claim: %d %d %" PRId64 ", not %d %d %" PRId64 " (%.*s)", got->verdict, got->state, got->due_ms,
		        want->verdict, want->state, want->due_ms, (int)got->error.len, got->error.at);
	else if (got->verdict == HW_TASK_SEND &&
	         (got->tries != want->tries || !twin_same(got->sender, want->sender) ||
	          !twin_same(got->msg_id, want->msg_id) || !twin_same(got->receiver, want->receiver) ||
	          !twin_same(got->action, want->action) || !twin_same(got->topic, want->topic) ||
	          !twin_same(got->body, want->body) || got->qos != want->qos || got->retain != want->retain ||
	          got->created_ms != want->created_ms || got->at_ms != want->at_ms || got->exp_ms != want->exp_ms))
		differs("claim: what is to be sent is another");
}

/* Those that are due, and some that are not. */
static void claim(void)
{
	struct hw_tasks_reply r;
	struct hw_task_id ids[8];
	size_t n = 0;
	begin();
	for (size_t k = 0; k < twin.n && n < 6; k++)
		if ((twin.tasks[k].due >= 0 && twin.tasks[k].due <= redis.now_ms && chance(0.8)) || chance(0.01))
			ids[n++] = twin.tasks[k].task;
	if (n == 0 || chance(0.2))
		ids[n++] = waiting_task();
	for (size_t k = 0; k < n; k++)
		hw_tasks_put_claim(&redis.eval, &ids[k]);
	if (!call(HW_TASKS_CLAIM, n, &r))
		return;
	for (size_t k = 0; k < n; k++) {
		struct hw_task_claimed got, want;
		hw_tasks_claimed(&r, k, &got);
		twin_claim(&twin, &ids[k], &want);
		compare_claimed(&got, &want);
		asked += want.verdict == HW_TASK_SEND && want.state == HW_TASK_ACKED;
	}
	compare_wakes(&r);
}

static void answer(void)
{
	struct hw_tasks_reply r;
	struct hw_task_answer a[3];
	size_t n = 1 + (size_t)below(3);
	begin();
	for (size_t k = 0; k < n; k++) {
		a[k] = (struct hw_task_answer){.task = waiting_task(),
		                               .kind = (enum hw_task_answer_kind)below(HW_ANSWER_KINDS)};
		struct twin_task *t = of_twin(&a[k].task);
		if (chance(0.3))
			a[k].from = text_of(receivers[below(RECEIVERS)]);
		else if (chance(0.5) && t && t->receiver.len)
			for (unsigned j = 0; j < RECEIVERS; j++)
				if (twin_same(twin_span(&t->receiver), text_of(receivers[j])))
					a[k].from = text_of(receivers[j]);
		if (a[k].kind == HW_ANSWER_COMPLETE || a[k].kind == HW_ANSWER_FAILED)
			a[k].value = text_of(chance(0.5) ? "{\"v\": 1}" : "");
		hw_tasks_put_answer(&redis.eval, &a[k]);
	}
	if (!call(HW_TASKS_ANSWER, n, &r))
		return;
	for (size_t k = 0; k < n; k++) {
		struct hw_task_answered got, want;
		hw_tasks_answered(&r, k, &got);
		twin_answer(&twin, &a[k], &want);
		if (got.verdict != want.verdict || got.state != want.state)
			differs("answer: %d %d, not %d %d (%.*s)", got.verdict, got.state, want.verdict, want.state,
			        (int)got.error.len, got.error.at);
	}
	compare_wakes(&r);
}

static void cancel(void)
{
	struct hw_tasks_reply r;
	struct hw_task_cancel c[2];
	size_t n = 1 + (size_t)below(2);
	begin();
	for (size_t k = 0; k < n; k++) {
		c[k] = (struct hw_task_cancel){.task = waiting_task(), .force = chance(0.3)};
		if (chance(0.5))
			c[k].sender = text_of(senders[below(SENDERS)]);
		hw_tasks_put_cancel(&redis.eval, &c[k]);
	}
	if (!call(HW_TASKS_CANCEL, n, &r))
		return;
	for (size_t k = 0; k < n; k++) {
		struct hw_task_cancelled got, want;
		hw_tasks_cancelled(&r, k, &got);
		twin_cancel(&twin, &c[k], &want);
		if (got.verdict != want.verdict || got.was != want.was || got.tries != want.tries)
			differs("cancel: %d %d %u, not %d %d %u", got.verdict, got.was, got.tries, want.verdict,
			        want.was, want.tries);
	}
	compare_wakes(&r);
}

static void online(void)
{
	struct hw_tasks_reply r;
	struct hw_text who[2] = {text_of(receivers[below(RECEIVERS)]), text_of(receivers[below(RECEIVERS)])};
	begin();
	hw_tasks_put_offset(&redis.eval, text_of(chance(0.5) ? "1-1" : ""));
	for (size_t k = 0; k < 2; k++)
		hw_tasks_put_online(&redis.eval, who[k]);
	if (!call(HW_TASKS_ONLINE, 2, &r))
		return;
	for (size_t k = 0; k < 2; k++) {
		unsigned want = twin_online(&twin, who[k]);
		if (r.items->element[k]->type != REDIS_REPLY_INTEGER || r.items->element[k]->integer != want)
			differs("online: %lld, not %u", r.items->element[k]->integer, want);
	}
	compare_wakes(&r);
}

static void page(void)
{
	struct hw_tasks_reply r;
	struct twin_wake want[TWIN_TASKS];
	struct hw_schedule_order o = {.from_ms = chance(0.5) ? 0 : some_time(),
	                              .until_ms = chance(0.5) ? INT64_MAX : some_time() + MINUTE,
	                              .skip = (size_t)below(3),
	                              .count = 1 + (size_t)below(40)};
	begin();
	hw_tasks_put_page(&redis.eval, &o);
	if (!call(HW_TASKS_PAGE, 0, &r))
		return;
	size_t n = twin_page(&twin, &o, want);
	if (r.n_items != n)
		differs("page: %zu tasks, not %zu", r.n_items, n);
	for (size_t k = 0; k < n && !*mismatch; k++) {
		struct hw_task_wake w;
		if (!hw_tasks_found(&r, k, &w) || memcmp(&w.task, &want[k].task, sizeof(w.task)) != 0 ||
		    w.due_ms != want[k].due_ms || !twin_same(w.receiver, twin_span(&want[k].receiver)))
			differs("page: task %zu is another", k);
	}
}

static void come_or_go(void)
{
	const char *who = receivers[below(RECEIVERS)];
	bool offline = chance(0.5);
	rig_do(&rig, offline ? "SET device:disconnected:x-%s 1" : "DEL device:disconnected:x-%s", who);
	twin_set_offline(&twin, text_of(who), offline);
}

/* Redis evicts a payload. */
static void lose_body(void)
{
	struct hw_task_id id = waiting_task();
	struct twin_task *t = of_twin(&id);
	char task[HW_TASK_TEXT + 1];
	if (!t)
		return;
	hw_task_id_text(&id, task);
	rig_do(&rig, "DEL task:body:%s", task);
	t->has_body = false;
}

/* Time passes; keys whose time is over are removed, as Redis would remove them. */
static void pass_time(void)
{
	static const int64_t spans[] = {2, 1000, 12000, 70000, 5 * MINUTE};
	int64_t now = redis.now_ms + below(spans[below(5)]);
	char task[HW_TASK_TEXT + 1];
	int64_t next = INT64_MAX;
	for (size_t k = 0; k < twin.n; k++)
		if (twin.tasks[k].due > redis.now_ms && twin.tasks[k].due < next)
			next = twin.tasks[k].due;
	if (punctual && next < redis.now_ms + spans[4] && chance(0.3))
		now = next + below(3); /* the moment itself */
	for (size_t k = 0; k < twin.n; k++) {
		if (twin.tasks[k].forgotten > now)
			continue;
		hw_task_id_text(&twin.tasks[k].task, task);
		rig_do(&rig, "DEL task:%s task:body:%s task:value:%s", task, task, task);
	}
	twin_forget(&twin, now);
	tasks_redis_time(&redis, now);
}

static void step(void)
{
	static void (*const ops[])(void) = {submit, submit, submit, claim,  claim, claim,
	                                    answer, answer, cancel, online, page,  come_or_go};
	if (chance(0.02))
		lose_body();
	ops[below((int64_t)(sizeof(ops) / sizeof(*ops)))]();
	if (chance(0.7))
		pass_time();
	compare_events();
}

static void begin_run(enum twin_lie lie)
{
	rig_do(&rig, "FLUSHALL");
	memset(given, 0, sizeof(given));
	twin_init(&twin, &rules);
	twin.lie = lie;
	punctual = false;
	compared_events = 0;
	snprintf(last_event, sizeof(last_event), "0-0");
	*mismatch = '\0';
	tasks_redis_time(&redis, BEGIN_MS);
}

static void set_up(void)
{
	rig_serve(&rig, NULL);
	tasks_redis_init(&redis, &rig, true);
}

static void tear_down(void)
{
	tasks_redis_fini(&redis);
	rig_kill_server(&rig);
}

/* --- the tests ---------------------------------------------------------------------------------------------------- */

static bool each_is_seen(const unsigned ends[static HW_TASK_STATES])
{
	enum hw_task_state s = HW_TASK_SCHEDULED;
	while (s < HW_TASK_STATES && ends[s] > 0)
		s++;
	return s == HW_TASK_STATES;
}

/* A run goes on until there was a task in each state, which a few seeds have not brought about within the first STEPS.
 */
START_TEST(test_the_scripts_do_what_their_twin_does)
{
	unsigned ends[HW_TASK_STATES] = {0};
	random_begin(random_seed_of_now());
	begin_run(TWIN_HONEST);
	for (unsigned k = 0; k < STEPS || (k < 10 * STEPS && !each_is_seen(ends)); k++) {
		step();
		if (k % 16 == 0)
			compare_all();
		ck_assert_msg(!*mismatch, "step %u: %s", k, mismatch);
		for (size_t j = 0; j < twin.n; j++)
			ends[twin.tasks[j].state]++;
	}
	for (enum hw_task_state s = HW_TASK_SCHEDULED; s < HW_TASK_STATES; s++)
		ck_assert_msg(ends[s] > 0, "no task was ever %s", hw_task_state_name(s)); /* the run is no empty one */
}
END_TEST

/* This is rare: no receiver answers, and a request checks the task just then. So some seeds need many steps. */
START_TEST(test_who_has_acknowledged_is_asked_once_more)
{
	random_begin(7);
	begin_run(TWIN_HONEST);
	punctual = true;
	asked = 0;
	for (unsigned k = 0; k < 200 * STEPS && asked < 3; k++) {
		step();
		if (k % 16 == 0)
			compare_all();
		ck_assert_msg(!*mismatch, "step %u: %s", k, mismatch);
	}
	ck_assert_uint_eq(asked, 3);
}
END_TEST

START_TEST(test_a_twin_that_lies_is_found_out)
{
	random_begin(7);
	begin_run((enum twin_lie)_i);
	for (unsigned k = 0; k < 4 * STEPS && !*mismatch; k++) {
		step();
		if (k % 16 == 0)
			compare_all();
	}
	ck_assert_msg(*mismatch, "nobody noticed the lie: %s", twin_lie_name((enum twin_lie)_i));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("scripts of tasks and their twin");
	TCase *tc = tcase_create("twin");
	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, test_the_scripts_do_what_their_twin_does);
	tcase_add_test(tc, test_who_has_acknowledged_is_asked_once_more);
	tcase_add_loop_test(tc, test_a_twin_that_lies_is_found_out, TWIN_HONEST + 1, TWIN_LIES);
	suite_add_tcase(suite, tc);
	return rig_run(suite);
}

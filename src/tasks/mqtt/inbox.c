/* SPDX-License-Identifier: MIT */
/* See inbox.h. The sender of a request is the last level of its topic, because the broker's ACL binds that level to the
 * client. Without that level, a request is accepted only with `identity = payload`, and the payload names the
 * sender. */
#include "tasks/mqtt/inbox.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/json_writer.h"
#include "heartwheel/print.h"
#include "tasks/allow.h"
#include "tasks/app.h"
#include "tasks/queue/turn.h"

struct hw_tasks_inbox {
	struct hw_tasks_app *app;
	struct hw_message message, topic;
	struct {
		hw_request_fn *fn;
		void *arg;
	} takers[HW_REQUEST_ACTIONS];
	hw_stray_fn *strays;
	void *strays_arg;
};

/* A request that waits for Redis. */
struct asking {
	struct hw_tasks_inbox *inbox;
	struct hw_text sender, msg_id, receiver;
	char text[];
};

static struct asking *asking_new(struct hw_tasks_inbox *b, struct hw_text sender, struct hw_text msg_id,
                                 struct hw_text receiver)
{
	struct asking *q = malloc(sizeof(*q) + sender.len + msg_id.len + receiver.len + 1);
	if (!q)
		return NULL;
	q->inbox = b;
	q->sender = (struct hw_text){q->text, sender.len};
	q->msg_id = (struct hw_text){q->text + sender.len, msg_id.len};
	q->receiver = (struct hw_text){q->text + sender.len + msg_id.len, receiver.len};
	memcpy(q->text, sender.at, sender.len);
	memcpy(q->text + sender.len, msg_id.at, msg_id.len);
	if (receiver.len)
		memcpy(q->text + sender.len + msg_id.len, receiver.at, receiver.len);
	return q;
}

static void count(struct hw_tasks_inbox *b, enum hw_tasks_refusal k)
{
	b->app->counts.refused[k]++;
}

/* --- notices ------------------------------------------------------------------------------------------------------ */

bool hw_tasks_is_local(struct hw_text s)
{
	return (s.len == 5 && memcmp(s.at, "local", 5) == 0) || (s.len >= 5 && memcmp(s.at, "user:", 5) == 0);
}

int hw_tasks_notify(struct hw_tasks_app *a, struct hw_text sender, enum hw_task_topic word, const struct hw_notice *n,
                    hw_put_fn *fn, void *arg)
{
	struct hw_tasks_inbox *b = a->inbox;
	if (!a->broker)
		return -ENOTCONN; /* during the stop */
	int rc = hw_message_topic(&b->topic, a->conf->root, sender, word);
	if (!rc && word == HW_TOPIC_ACK)
		rc = hw_message_ack(&b->message, n);
	else if (!rc && word == HW_TOPIC_COMPLETE)
		rc = hw_message_complete(&b->message, n);
	else if (!rc)
		rc = hw_message_failed(&b->message, n);
	if (rc)
		return rc;
	const struct hw_text topic = {b->topic.at, b->topic.len};
	/* A task gets several acks, one for each state. Each state has a subject of its own, so that the acks are
	 * not confused. */
	const struct hw_tasks_put put = {.topic = topic,
	                                 .payload = {b->message.at, b->message.len},
	                                 .qos = 1,
	                                 .subject = hw_tasks_subject(topic, n->msg_id) + 2 * (uint64_t)n->state};
	return hw_tasks_broker_publish(a->broker, &put, fn, arg);
}

void hw_tasks_inbox_done(struct hw_tasks_inbox *b, struct hw_text sender, struct hw_text msg_id, struct hw_text value)
{
	const struct hw_notice n = {.msg_id = msg_id,
	                            .state = HW_TASK_COMPLETE,
	                            .time_ms = hw_tasks_store_now_ms(b->app->store),
	                            .value = value};
	(void)hw_tasks_notify(b->app, sender, HW_TOPIC_COMPLETE, &n, NULL, NULL);
}

void hw_tasks_inbox_refuse(struct hw_tasks_inbox *b, struct hw_text sender, struct hw_text msg_id, const char *why)
{
	const struct hw_notice n = {.msg_id = msg_id,
	                            .state = HW_TASK_FAILED,
	                            .refused = true,
	                            .time_ms = hw_tasks_store_now_ms(b->app->store),
	                            .why = why};
	hw_log_limited(b->app->log, HW_TASKS_LIMIT_REFUSED, HW_LOG_INFO, "a request of %.*s was refused: %.200s",
	               (int)(sender.len < 64 ? sender.len : 64), sender.at, why);
	if (sender.len && msg_id.len)
		(void)hw_tasks_notify(b->app, sender, HW_TOPIC_FAILED, &n, NULL, NULL);
}

/* --- submissions -------------------------------------------------------------------------------------------------- */

static const char *why_not(enum hw_task_verdict v, enum hw_tasks_refusal *kind)
{
	*kind = HW_REFUSED_TIME;
	switch (v) {
	case HW_TASK_CONTENT:
		*kind = HW_REFUSED_CONTENT;
		return "this msg_id was submitted before with other content";
	case HW_TASK_OLD:
		return "time is older than tasks are kept, so a repetition could not be detected";
	case HW_TASK_AHEAD:
		return "time is ahead of this server's clock";
	case HW_TASK_AT:
		return "at must be within 366 days";
	case HW_TASK_EXP:
		return "exp must be later than at, by at most 30 days";
	case HW_TASK_FULL:
		*kind = HW_REFUSED_FULL;
		return "too many tasks are waiting";
	default:
		return "the task was not accepted";
	}
}

/* Publishes the result of an ended task again: its submission was repeated, so the submitter may have missed the
 * result. */
static void on_record(void *arg, const struct hw_task_id *task, int rc, const struct hw_task_record *r)
{
	struct asking *q = arg;
	struct hw_tasks_app *a = q->inbox->app;
	if (rc == 0) {
		bool complete = r->state == HW_TASK_COMPLETE;
		struct hw_notice n = {.msg_id = q->msg_id,
		                      .task = task,
		                      .receiver = r->receiver,
		                      .state = r->state,
		                      .time_ms = hw_tasks_store_now_ms(a->store),
		                      .why = complete ? "" : r->why.at};
		*(complete ? &n.value : &n.error) = r->value;
		(void)hw_tasks_notify(a, q->sender, complete ? HW_TOPIC_COMPLETE : HW_TOPIC_FAILED, &n, NULL, NULL);
	}
	free(q);
}

static void taken(struct asking *q, const struct hw_dispatch_result *result)
{
	struct hw_tasks_app *a = q->inbox->app;
	const struct hw_task_submitted *s = &result->submitted;
	const struct hw_notice n = {.msg_id = q->msg_id,
	                            .task = &result->task,
	                            .receiver = q->receiver,
	                            .state = s->state,
	                            .time_ms = result->now_ms};
	if (s->verdict == HW_TASK_NEW)
		hw_schedule_put(a->schedule, hw_tasks_now(), result->task,
		                hw_schedule_receiver(q->receiver.at, q->receiver.len), s->at_ms);
	if (s->verdict == HW_TASK_KNOWN && hw_task_has_ended(s->state) &&
	    hw_dispatcher_query(a->dispatcher, &result->task, on_record, q) == 0)
		return;
	(void)hw_tasks_notify(a, q->sender, HW_TOPIC_ACK, &n, NULL, NULL);
	free(q);
}

/* Called with the result of a submission. If Redis does not answer, nothing is published, and the submitter will
 * submit again. */
static void on_submitted(void *arg, const struct hw_dispatch_result *result)
{
	struct asking *q = arg;
	enum hw_tasks_refusal kind;
	if (result->rc == 0 &&
	    (result->submitted.verdict == HW_TASK_NEW || result->submitted.verdict == HW_TASK_KNOWN)) {
		taken(q, result);
		return;
	}
	if (result->rc == 0) {
		const char *why = why_not(result->submitted.verdict, &kind);
		count(q->inbox, kind);
		hw_tasks_inbox_refuse(q->inbox, q->sender, q->msg_id, why);
	}
	free(q);
}

static void submit(struct hw_tasks_inbox *b, struct hw_text sender, struct hw_request *q)
{
	const struct hw_tasks_settings *c = b->app->conf;
	bool allowed = q->task.topic.len
	                       ? hw_allow_publish(c, sender, q->task.topic)
	                       : hw_allow_task(c->allow, c->n_allow, sender, q->task.action, q->task.receiver);
	if (!allowed) {
		count(b, HW_REFUSED_ALLOW);
		hw_tasks_inbox_refuse(b, sender, q->msg_id,
		                      q->task.topic.len ? "no [tasks] publish line permits this topic"
		                                        : "no [tasks] allow line permits this");
		return;
	}
	struct asking *a = asking_new(b, sender, q->msg_id, q->task.receiver);
	q->task.sender = sender;
	q->task.msg_id = q->msg_id;
	if (a && hw_dispatcher_submit(b->app->dispatcher, &q->task, NULL, on_submitted, a) != 0)
		free(a);
}

/* --- cancel, query ------------------------------------------------------------------------------------------------ */

static void on_cancelled(void *arg, const struct hw_dispatch_result *result)
{
	struct asking *q = arg;
	const struct hw_task_cancelled *c = &result->cancelled;
	char value[96];
	struct hw_json j;
	struct hw_notice n = {.msg_id = q->msg_id, .task = &result->task, .state = c->was, .time_ms = result->now_ms};
	if (result->rc == 0 && c->verdict == HW_TASK_DONE) {
		hw_json_begin_text(&j, value, sizeof(value));
		hw_json_open(&j, '{');
		hw_json_text(&j, "was", hw_task_state_name(c->was));
		hw_json_uint(&j, "tries", c->tries);
		hw_json_close(&j, '}');
		n.state = HW_TASK_CANCELLED;
		n.value = (struct hw_text){value, (size_t)hw_json_end_text(&j)};
		(void)hw_tasks_notify(q->inbox->app, q->sender, HW_TOPIC_COMPLETE, &n, NULL, NULL);
	} else if (result->rc == 0 && (c->verdict == HW_TASK_OVER || c->verdict == HW_TASK_RUNNING)) {
		n.why = c->verdict == HW_TASK_OVER ? "the task has ended"
		                                   : "the device has acknowledged the task: cancel it with force";
		(void)hw_tasks_notify(q->inbox->app, q->sender, HW_TOPIC_FAILED, &n, NULL, NULL);
	} else if (result->rc == 0) {
		hw_tasks_inbox_refuse(q->inbox, q->sender, q->msg_id, "no such task");
	}
	free(q);
}

/* Writes a time of a record in seconds; 0: it is missing. */
static void write_seconds(struct hw_json *j, const char *key, int64_t ms)
{
	hw_json_seconds(j, key, ms > 0 ? ms : 0);
}

static void on_queried(void *arg, const struct hw_task_id *task, int rc, const struct hw_task_record *r)
{
	struct asking *q = arg;
	char value[160];
	struct hw_json j;
	if (rc == 0) {
		hw_json_begin_text(&j, value, sizeof(value));
		hw_json_open(&j, '{');
		hw_json_text(&j, "state", hw_task_state_name(r->state));
		hw_json_uint(&j, "tries", r->tries > 0 ? (unsigned)r->tries : 0);
		write_seconds(&j, "at", r->at_ms);
		write_seconds(&j, "exp", r->exp_ms);
		hw_json_close(&j, '}');
		const struct hw_notice n = {.msg_id = q->msg_id,
		                            .task = task,
		                            .receiver = r->receiver,
		                            .state = r->state,
		                            .time_ms = hw_tasks_store_now_ms(q->inbox->app->store),
		                            .value = {value, (size_t)hw_json_end_text(&j)}};
		(void)hw_tasks_notify(q->inbox->app, q->sender, HW_TOPIC_COMPLETE, &n, NULL, NULL);
	} else if (rc == -ENOENT) {
		hw_tasks_inbox_refuse(q->inbox, q->sender, q->msg_id, "no such task");
	}
	free(q);
}

/* Cancels or queries a task. Its sender and msg_id name the task, so a sender cannot name the task of another
 * sender. */
static void ask_about(struct hw_tasks_inbox *b, struct hw_text sender, const struct hw_request *q)
{
	struct hw_task_cancel c = {.sender = sender, .force = q->force};
	struct asking *a = asking_new(b, sender, q->msg_id, (struct hw_text){"", 0});
	int rc = a ? hw_tasks_store_name(b->app->store, sender, q->of, &c.task) : -ENOMEM;
	if (!rc && q->action == HW_REQUEST_CANCEL)
		rc = hw_dispatcher_cancel(b->app->dispatcher, &c, on_cancelled, a);
	else if (!rc)
		rc = hw_dispatcher_query(b->app->dispatcher, &c.task, on_queried, a);
	if (rc)
		free(a);
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

static void serve(struct hw_tasks_inbox *b, struct hw_text sender, struct hw_request *q)
{
	if (b->takers[q->action].fn)
		b->takers[q->action].fn(b->takers[q->action].arg, sender, q);
	else if (q->action == HW_REQUEST_DELIVER)
		submit(b, sender, q);
	else if (q->action == HW_REQUEST_CANCEL || q->action == HW_REQUEST_QUERY)
		ask_about(b, sender, q);
	else
		hw_tasks_inbox_refuse(b, sender, q->msg_id, "heartwheel-tasks does not know this action");
}

/* Whether to read a message: it is neither retained nor truncated. */
static bool is_fit(struct hw_tasks_inbox *b, const struct hw_tasks_got *m)
{
	if (m->retained)
		count(b, HW_REFUSED_RETAINED);
	else if (m->truncated)
		count(b, HW_REFUSED_TOO_LARGE);
	return !m->retained && !m->truncated;
}

static struct hw_text sender_of(const struct hw_tasks_inbox *b, const struct hw_request *q, struct hw_text last)
{
	struct hw_text none = {"", 0};
	if (last.len)
		return hw_tasks_is_local(last) ? none : last;
	if (b->app->conf->identity != HW_IDENTITY_PAYLOAD || hw_tasks_is_local(q->sender))
		return none;
	return q->sender;
}

static void on_request(void *arg, const struct hw_tasks_got *m)
{
	struct hw_tasks_inbox *b = arg;
	struct hw_text name, last;
	struct hw_request q;
	const char *why = NULL;
	if (!is_fit(b, m) ||
	    hw_task_topic_read(b->app->conf->root, m->topic.at, m->topic.len, &name, &last) != HW_TOPIC_PENDING)
		return;
	int rc = hw_request_read(&q, m->payload.at, m->payload.len, &why);
	struct hw_text sender = sender_of(b, &q, last);
	if (!sender.len) {
		count(b, HW_REFUSED_SENDER);
		hw_log_limited(b->app->log, HW_TASKS_LIMIT_REFUSED, HW_LOG_WARNING,
		               "a request on %.*s was ignored: its sender is not proven; see [tasks] identity",
		               (int)(m->topic.len < 200 ? m->topic.len : 200), m->topic.at);
	} else if (rc == -EINVAL) {
		count(b, HW_REFUSED_MALFORMED);
		hw_tasks_inbox_refuse(b, sender, q.msg_id, why);
	} else if (rc == 0) {
		serve(b, sender, &q);
	}
	hw_request_fini(&q);
}

/* --- responses ---------------------------------------------------------------------------------------------------- */

static void on_answered(void *arg, const struct hw_dispatch_result *result)
{
	struct hw_tasks_inbox *b = arg;
	if (result->rc)
		return;
	switch (result->answered.verdict) {
	case HW_TASK_DONE:
		if (result->answered.state == HW_TASK_ACKED)
			hw_tasks_turn_acked(b->app->turn, &result->task);
		if (hw_task_has_ended(result->answered.state))
			hw_schedule_drop(b->app->schedule, result->task);
		break;
	case HW_TASK_LATE:
		b->app->counts.late++;
		break;
	case HW_TASK_FOREIGN:
		b->app->counts.foreign++;
		break;
	case HW_TASK_GONE:
		count(b, HW_REFUSED_UNKNOWN);
		break;
	default:
		break;
	}
}

/* An ack that names no task may name an event. */
static void stray(struct hw_tasks_inbox *b, const struct hw_tasks_got *m, struct hw_text from)
{
	char memory[HW_RESPONSE_ID_MAX];
	struct hw_text id;
	if (b->strays && hw_response_msg_id(m->payload.at, m->payload.len, memory, &id) == 0)
		b->strays(b->strays_arg, from, id);
	else
		count(b, HW_REFUSED_UNKNOWN);
}

static void on_response(void *arg, const struct hw_tasks_got *m)
{
	static const enum hw_task_answer_kind kinds[] = {[HW_TOPIC_ACK] = HW_ANSWER_ACK,
	                                                 [HW_TOPIC_COMPLETE] = HW_ANSWER_COMPLETE,
	                                                 [HW_TOPIC_FAILED] = HW_ANSWER_FAILED};
	struct hw_tasks_inbox *b = arg;
	struct hw_text name, from;
	struct hw_response r;
	const char *why;
	if (!is_fit(b, m))
		return;
	enum hw_task_topic word = hw_task_topic_read(b->app->conf->root, m->topic.at, m->topic.len, &name, &from);
	if (word == HW_TOPIC_PENDING || word == HW_TOPIC_NONE)
		return;
	int rc = hw_response_read(&r, m->payload.at, m->payload.len, kinds[word], &why);
	if (rc == -ENOENT && word == HW_TOPIC_ACK)
		stray(b, m, from);
	else if (rc)
		count(b, rc == -ENOENT ? HW_REFUSED_UNKNOWN : HW_REFUSED_MALFORMED);
	else
		(void)hw_dispatcher_answer(b->app->dispatcher,
		                           &(struct hw_task_answer){r.task, kinds[word], from, r.value}, on_answered,
		                           b);
}

/* --- start and stop ----------------------------------------------------------------------------------------------- */

void hw_tasks_inbox_take(struct hw_tasks_inbox *b, enum hw_request_action action, hw_request_fn *fn, void *arg)
{
	b->takers[action].fn = fn;
	b->takers[action].arg = arg;
}

void hw_tasks_inbox_take_strays(struct hw_tasks_inbox *b, hw_stray_fn *fn, void *arg)
{
	b->strays = fn;
	b->strays_arg = arg;
}

static int listen_to(struct hw_tasks_inbox *b, const char *word, bool bare, hw_got_fn *fn)
{
	const struct hw_tasks_settings *c = b->app->conf;
	char filter[2 * HW_CONF_TEXT_MAX];
	snprintf(filter, sizeof(filter), "%s/%s/%s/+", c->root, c->name, word);
	int rc = hw_tasks_broker_listen(b->app->broker, filter, false, fn, b);
	filter[strlen(filter) - 2] = '\0';
	return rc || !bare ? rc : hw_tasks_broker_listen(b->app->broker, filter, false, fn, b);
}

struct hw_tasks_inbox *hw_tasks_inbox_new(struct hw_tasks_app *app)
{
	struct hw_tasks_inbox *b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->app = app;
	if (listen_to(b, "pending", app->conf->identity == HW_IDENTITY_PAYLOAD, on_request) == 0 &&
	    listen_to(b, "ack", true, on_response) == 0 && listen_to(b, "complete", true, on_response) == 0 &&
	    listen_to(b, "failed", true, on_response) == 0)
		return b;
	free(b);
	return NULL;
}

void hw_tasks_inbox_free(struct hw_tasks_inbox *b)
{
	if (!b)
		return;
	hw_message_fini(&b->message);
	hw_message_fini(&b->topic);
	free(b);
}

/* SPDX-License-Identifier: MIT */
/* See reads.h. Cost: one allocation per request. */
#include "tasks/queue/reads.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "link/scripts.h"
#include "link/trouble.h"

enum { SCRIPT_LIST, SCRIPT_SHOW, SCRIPT_COUNT, SCRIPTS };

struct hw_reads {
	struct hw_redis_link link;
	struct hw_scripts scripts;
	struct hw_eval eval;
	const struct hw_task_rules *rules;
	const struct hw_reads_ops *ops;
	void *arg;
	bool up;
	unsigned asked;
	char why[HW_TROUBLE_TEXT];
};

struct question {
	struct hw_reads *r;
	hw_reads_done *done;
	void *arg;
	size_t n_items; /* of the answer; 0: any number */
};

static void set_up(struct hw_reads *r, bool up)
{
	if (r->up == up)
		return;
	r->up = up;
	r->ops->on_up(r->arg, up);
}

static void set_why(struct hw_reads *r, const char *why)
{
	if (hw_trouble_of(why) != HW_TROUBLE_OTHER)
		hw_trouble_text(why, r->why);
	else
		snprintf(r->why, sizeof(r->why), "%s", why);
}

static void on_ready(void *arg)
{
	struct hw_reads *r = arg;
	hw_scripts_load(&r->scripts);
}

static void on_lost(void *arg, const char *why)
{
	struct hw_reads *r = arg;
	hw_scripts_lost(&r->scripts);
	set_why(r, why);
	set_up(r, false);
}

static const struct hw_redis_link_ops link_ops = {on_ready, on_lost, NULL};

static void on_loaded(void *arg)
{
	struct hw_reads *r = arg;
	hw_redis_link_settled(&r->link);
	*r->why = '\0';
	set_up(r, true);
}

static void on_refused(void *arg, const char *error)
{
	struct hw_reads *r = arg;
	hw_redis_link_fail(&r->link, error);
}

static const struct hw_scripts_ops scripts_ops = {on_loaded, on_refused};

/* --- questions ---------------------------------------------------------------------------------------------------- */

static void on_answer(redisAsyncContext *ac, void *answer, void *arg)
{
	struct question q = *(struct question *)arg;
	const redisReply *reply = answer;
	struct hw_tasks_reply tasks;
	char why[HW_TROUBLE_TEXT];
	(void)ac;
	free(arg);
	q.r->asked--;
	if (!reply) {
		q.done(q.arg, NULL, "Redis went away");
		return;
	}
	hw_redis_link_got(&q.r->link);
	int rc = hw_tasks_reply(reply, &tasks);
	if (rc == 0 && q.n_items > 0 && tasks.n_items != q.n_items)
		rc = -EPROTO;
	if (rc == 0) {
		q.done(q.arg, &tasks, NULL);
		return;
	}
	if (rc == -EIO)
		hw_trouble_text(reply->str, why);
	else
		snprintf(why, sizeof(why), "Redis' answer does not match the request");
	if (rc == -EIO && hw_trouble_of(reply->str) == HW_TROUBLE_NOSCRIPT) {
		set_up(q.r, false);
		hw_scripts_load(&q.r->scripts);
	}
	q.done(q.arg, NULL, why);
}

static int ask(struct hw_reads *r, unsigned script, size_t n_items, hw_reads_done *done, void *arg)
{
	struct question *q = r->up && r->asked < HW_READS_MAX ? malloc(sizeof(*q)) : NULL;
	if (!q)
		return !r->up ? -ENOTCONN : r->asked >= HW_READS_MAX ? -EBUSY : -ENOMEM;
	*q = (struct question){r, done, arg, n_items};
	int rc = hw_scripts_call(&r->scripts, script, &r->eval, on_answer, q);
	if (rc)
		free(q);
	else
		r->asked++;
	return rc;
}

int hw_reads_list(struct hw_reads *r, const struct hw_task_listing *l, hw_reads_done *done, void *arg)
{
	hw_tasks_begin(&r->eval, r->rules, 0);
	hw_tasks_put_listing(&r->eval, l);
	return ask(r, SCRIPT_LIST, 0, done, arg);
}

int hw_reads_show(struct hw_reads *r, const struct hw_task_id *tasks, size_t n, hw_reads_done *done, void *arg)
{
	hw_tasks_begin(&r->eval, r->rules, 0);
	for (size_t i = 0; i < n; i++)
		hw_tasks_put_show(&r->eval, &tasks[i]);
	return ask(r, SCRIPT_SHOW, n, done, arg);
}

int hw_reads_count(struct hw_reads *r, const struct hw_task_place *behind, unsigned limit, hw_reads_done *done,
                   void *arg)
{
	hw_tasks_begin(&r->eval, r->rules, 0);
	hw_tasks_put_count(&r->eval, behind, limit);
	return ask(r, SCRIPT_COUNT, 0, done, arg);
}

const char *hw_reads_error(const struct hw_reads *r, int rc)
{
	if (rc == -ENOTCONN)
		return *r->why ? r->why : "Redis is not connected yet";
	return rc == -EBUSY ? "too many requests are in progress" : "out of memory";
}

/* --- start and stop ----------------------------------------------------------------------------------------------- */

bool hw_reads_are_up(const struct hw_reads *r)
{
	return r->up;
}

const char *hw_reads_why(const struct hw_reads *r)
{
	return r->why;
}

struct hw_redis_link *hw_reads_link(struct hw_reads *r)
{
	return &r->link;
}

void hw_reads_tick(struct hw_reads *r)
{
	hw_redis_link_tick(&r->link);
}

struct hw_reads *hw_reads_new(struct event_base *base, const struct hw_redis_link_conf *conf,
                              const struct hw_task_rules *rules, const struct hw_reads_ops *ops, void *arg)
{
	static const char *const texts[SCRIPTS] = {hw_tasks_script_list_text, hw_tasks_script_show_text,
	                                           hw_tasks_script_count_text};
	struct hw_reads *r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->rules = rules;
	r->ops = ops;
	r->arg = arg;
	hw_scripts_init(&r->scripts, &r->link, texts, SCRIPTS, &scripts_ops, r);
	if (hw_redis_link_init(&r->link, base, conf, &link_ops, r) == 0)
		return r;
	free(r);
	return NULL;
}

void hw_reads_free(struct hw_reads *r)
{
	if (!r)
		return;
	r->up = false;
	hw_redis_link_fini(&r->link);
	hw_eval_fini(&r->eval);
	free(r);
}

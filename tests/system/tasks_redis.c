/* SPDX-License-Identifier: MIT */
/* See tasks_redis.h. */
#include "tasks_redis.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLOCK      "redis.call('TIME')"
#define OTHER_TIME "redis.call('LRANGE','test:time',0,1)"

/* The script with another clock. */
static char *in_other_time(const char *text)
{
	const char *at = strstr(text, CLOCK);
	ck_assert_msg(at && !strstr(at + 1, CLOCK), "the script does not ask for the time exactly once");
	char *out;
	ck_assert_int_ge(asprintf(&out, "%.*s" OTHER_TIME "%s", (int)(at - text), text, at + strlen(CLOCK)), 0);
	return out;
}

void tasks_redis_init(struct tasks_redis *t, struct rig *rig, bool in_virtual_time)
{
	*t = (struct tasks_redis){.rig = rig};
	for (enum hw_tasks_script s = HW_TASKS_SUBMIT; s < HW_TASKS_SCRIPTS; s++) {
		bool asks = s != HW_TASKS_CALLBACK; /* which needs no time */
		char *text = in_virtual_time && asks ? in_other_time(hw_tasks_script_texts[s])
		                                     : strdup(hw_tasks_script_texts[s]);
		redisReply *reply = rig_ask(rig, "SCRIPT LOAD %s", text);
		ck_assert_msg(reply->type == REDIS_REPLY_STRING && reply->len == HW_SHA_LEN, "%s", reply->str);
		memcpy(t->sha[s], reply->str, HW_SHA_LEN + 1);
		freeReplyObject(reply);
		free(text);
	}
}

void tasks_redis_fini(struct tasks_redis *t)
{
	if (t->reply)
		freeReplyObject(t->reply);
	hw_eval_fini(&t->eval);
}

void tasks_redis_time(struct tasks_redis *t, int64_t now_ms)
{
	t->now_ms = now_ms;
	rig_do(t->rig, "DEL test:time");
	rig_do(t->rig, "RPUSH test:time %lld %lld", (long long)(now_ms / 1000), (long long)(now_ms % 1000 * 1000));
}

int tasks_redis_call(struct tasks_redis *t, enum hw_tasks_script script, struct hw_tasks_reply *out)
{
	size_t len;
	const char *command = hw_eval_end(&t->eval, t->sha[script], &len);
	ck_assert_ptr_nonnull(command);
	if (t->reply)
		freeReplyObject(t->reply);
	t->reply = NULL;
	ck_assert_int_eq(redisAppendFormattedCommand(t->rig->look, command, len), REDIS_OK);
	ck_assert_int_eq(redisGetReply(t->rig->look, (void **)&t->reply), REDIS_OK);
	return hw_tasks_reply(t->reply, out);
}

/* SPDX-License-Identifier: MIT */
/* See scripts.h. */
#include "link/scripts.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

void hw_scripts_init(struct hw_scripts *s, struct hw_redis_link *link, const char *const *texts, unsigned n,
                     const struct hw_scripts_ops *ops, void *arg)
{
	assert(n <= HW_SCRIPTS_MAX);
	*s = (struct hw_scripts){.link = link, .ops = ops, .arg = arg, .n = n};
	for (unsigned i = 0; i < n; i++) {
		s->one[i].all = s;
		s->one[i].text = texts[i];
	}
}

static void on_script(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_scripts_one *one = arg;
	struct hw_scripts *s = one->all;
	const redisReply *reply = answer;
	(void)ac;
	if (!reply)
		return;
	hw_redis_link_got(s->link);
	s->awaited--;
	if (reply->type != REDIS_REPLY_STRING || reply->len != HW_SHA_LEN) {
		s->ops->on_refused(s->arg, reply->type == REDIS_REPLY_ERROR ? reply->str
		                                                            : "ERR malformed answer to SCRIPT LOAD");
		return;
	}
	memcpy(one->sha, reply->str, HW_SHA_LEN + 1);
	if (s->awaited == 0)
		s->ops->on_loaded(s->arg);
}

void hw_scripts_load(struct hw_scripts *s)
{
	if (s->awaited > 0)
		return;
	for (unsigned i = 0; i < s->n; i++) {
		const char *argv[] = {"SCRIPT", "LOAD", s->one[i].text};
		const size_t len[] = {6, 4, strlen(s->one[i].text)};
		if (hw_redis_link_command(s->link, on_script, &s->one[i], 3, argv, len) != 0) {
			hw_redis_link_fail(s->link, "out of memory");
			return;
		}
		s->awaited++;
	}
}

bool hw_scripts_loading(const struct hw_scripts *s)
{
	return s->awaited > 0;
}

void hw_scripts_lost(struct hw_scripts *s)
{
	s->awaited = 0;
}

int hw_scripts_call(struct hw_scripts *s, unsigned script, struct hw_eval *e, redisCallbackFn *fn, void *arg)
{
	size_t len = 0;
	const char *command = hw_eval_end(e, s->one[script].sha, &len);
	return command ? hw_redis_link_send(s->link, fn, arg, command, len) : -ENOMEM;
}

/* SPDX-License-Identifier: MIT */
/* See guard.h. Cost: one more call for each object that is read. */
#include "link/guard.h"

#include <stdbool.h>
#include <string.h>

#if HIREDIS_MAJOR >= 1
typedef size_t elements;
#else
typedef int elements;
#endif

static struct hw_guard *guard_of(const redisReadTask *task)
{
	return task->privdata;
}

static bool refuse(const redisReadTask *task)
{
	guard_of(task)->refused = "the server sent an answer without a request: is it Redis?";
	return false;
}

static bool is_subscribed(const redisReadTask *task)
{
	const redisAsyncContext *ac = guard_of(task)->ac;
	return ac->c.flags & REDIS_SUBSCRIBED && !ac->replies.head;
}

/* Accepts an object only if a command's callback waits for it. After SUBSCRIBE, accepts only an array whose first two
 * elements are strings. An error is always accepted: hiredis handles errors, and keeps the text for the log. */
static bool asked_for(const redisReadTask *task)
{
	bool good = task->parent || guard_of(task)->ac->replies.head;
	if (is_subscribed(task))
		good = task->parent ? task->idx > 1 || task->type == REDIS_REPLY_STRING
		                    : task->type == REDIS_REPLY_ARRAY;
	return good || (!task->parent && task->type == REDIS_REPLY_ERROR) || refuse(task);
}

/* Whether hiredis handles a message of this kind safely. After SUBSCRIBE or PSUBSCRIBE, hiredis takes the first
 * string of a message as its kind. */
static bool is_news(const redisReadTask *task, const char *text, size_t len)
{
	static const char *const news[] = {"message", "subscribe", "pmessage", "psubscribe"};
	bool good = !is_subscribed(task) || !task->parent || task->idx > 0;
	for (size_t i = 0; i < sizeof(news) / sizeof(news[0]); i++)
		good |= len == strlen(news[i]) && memcmp(text, news[i], len) == 0;
	return good || refuse(task);
}

static void *string(const redisReadTask *task, char *text, size_t len)
{
	return asked_for(task) && is_news(task, text, len) ? guard_of(task)->real->createString(task, text, len) : NULL;
}

static void *array(const redisReadTask *task, elements n)
{
	if (!asked_for(task) || (n < 2 && !task->parent && is_subscribed(task) && !refuse(task)))
		return NULL;
	if (n > HW_GUARD_ELEMENTS_MAX) {
		guard_of(task)->refused = "the server's answer is too large";
		return NULL;
	}
	return guard_of(task)->real->createArray(task, n);
}

static void *integer(const redisReadTask *task, long long value)
{
	return asked_for(task) ? guard_of(task)->real->createInteger(task, value) : NULL;
}

static void *nil(const redisReadTask *task)
{
	if (is_subscribed(task) && !(task->parent && task->idx > 1) && !refuse(task))
		return NULL;
	return asked_for(task) ? guard_of(task)->real->createNil(task) : NULL;
}

#if HIREDIS_MAJOR >= 1
static void *real(const redisReadTask *task, double value, char *text, size_t len)
{
	return asked_for(task) ? guard_of(task)->real->createDouble(task, value, text, len) : NULL;
}

static void *boolean(const redisReadTask *task, int value)
{
	return asked_for(task) ? guard_of(task)->real->createBool(task, value) : NULL;
}
#endif

void hw_guard_set(struct hw_guard *g, redisAsyncContext *ac)
{
	redisReader *reader = ac->c.reader;
	*g = (struct hw_guard){.ac = ac, .real = reader->fn, .fn = *reader->fn};
	g->fn.createString = string;
	g->fn.createArray = array;
	g->fn.createInteger = integer;
	g->fn.createNil = nil;
#if HIREDIS_MAJOR >= 1
	g->fn.createDouble = real;
	g->fn.createBool = boolean;
#endif
	reader->fn = &g->fn;
	reader->privdata = g;
}

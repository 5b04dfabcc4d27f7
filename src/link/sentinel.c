/* SPDX-License-Identifier: MIT */
/* See sentinel.h. */
#include "link/sentinel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_text(const redisReply *r)
{
	return r->type == REDIS_REPLY_STRING || r->type == REDIS_REPLY_STATUS;
}

enum hw_sentinel_answer hw_sentinel_read_master(const redisReply *reply, struct hw_host *master)
{
	if (reply->type == REDIS_REPLY_NIL)
		return HW_SENTINEL_UNKNOWN;
	if (reply->type == REDIS_REPLY_ERROR &&
	    (strncmp(reply->str, "NOAUTH", 6) == 0 || strncmp(reply->str, "NOPERM", 6) == 0))
		return HW_SENTINEL_PASSWORD;
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2)
		return HW_SENTINEL_STRANGE;
	const redisReply *name = reply->element[0], *port = reply->element[1];
	if (!is_text(name) || !is_text(port) ||
	    !hw_host_set(master, name->str, (size_t)name->len, port->str, (size_t)port->len))
		return HW_SENTINEL_STRANGE;
	return HW_SENTINEL_NAMED;
}

/* The reply has keys and values in turn. */
int64_t hw_sentinel_read_number(const redisReply *reply, const char *key)
{
	if (reply->type != REDIS_REPLY_ARRAY)
		return -1;
	for (size_t i = 0; i + 1 < reply->elements; i += 2) {
		const redisReply *name = reply->element[i], *value = reply->element[i + 1];
		if (!is_text(name) || !is_text(value) || strcmp(name->str, key) != 0)
			continue;
		char *end;
		long n = strtol(value->str, &end, 10);
		return *end || end == value->str || n < 0 ? -1 : n;
	}
	return -1;
}

int64_t hw_sentinel_read_down_after(const redisReply *reply)
{
	return hw_sentinel_read_number(reply, "down-after-milliseconds");
}

bool hw_sentinel_read_role(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 && is_text(reply->element[0]) &&
	       strcmp(reply->element[0]->str, "master") == 0;
}

/* The next word; false at the end of the text. */
static bool next_word(const char **text, const char **word, size_t *len)
{
	*text += strspn(*text, " ");
	*word = *text;
	*len = strcspn(*text, " ");
	*text += *len;
	return *len > 0;
}

/* "NAME OLD-HOST OLD-PORT NEW-HOST NEW-PORT" */
bool hw_sentinel_read_switch(const char *text, const char *name, struct hw_host *master)
{
	enum { NAME, NEW_HOST = 3, NEW_PORT, WORDS };
	const char *word[WORDS];
	size_t len[WORDS];
	for (int i = 0; i < WORDS; i++)
		if (!next_word(&text, &word[i], &len[i]))
			return false;
	return len[NAME] == strlen(name) && memcmp(word[NAME], name, len[NAME]) == 0 &&
	       hw_host_set(master, word[NEW_HOST], len[NEW_HOST], word[NEW_PORT], len[NEW_PORT]);
}

void hw_sentinel_why(enum hw_sentinel_answer what, const struct hw_host *sentinel, const char *name, const char *detail,
                     char why[HW_SENTINEL_WHY])
{
	char at[HW_HOST_TEXT];
	int rest = 100;
	hw_host_text(sentinel, at);
	switch (what) {
	case HW_SENTINEL_NAMED:
		snprintf(why, HW_SENTINEL_WHY, "the Sentinel at %.200s has answered", at);
		break;
	case HW_SENTINEL_UNKNOWN:
		snprintf(
			why, HW_SENTINEL_WHY,
			"the Sentinel at %.200s knows no master '%.*s': see [redis] master, and sentinel monitor there",
			at, rest, name);
		break;
	case HW_SENTINEL_PASSWORD:
		snprintf(why, HW_SENTINEL_WHY,
		         "the Sentinel at %.200s needs a password or denies the query, and heartwheel has no password "
		         "for Sentinels: allow queries without a password there",
		         at);
		break;
	case HW_SENTINEL_STRANGE:
		snprintf(why, HW_SENTINEL_WHY, "the server at %.200s is not a Sentinel (%.*s): see [redis] sentinels",
		         at, rest, detail);
		break;
	case HW_SENTINEL_AWAY:
		snprintf(why, HW_SENTINEL_WHY, "cannot ask the Sentinel at %.200s: %.*s; see [redis] sentinels", at,
		         rest, detail);
		break;
	case HW_SENTINEL_LOST:
		snprintf(why, HW_SENTINEL_WHY, "lost the Sentinel at %.200s: %.*s; asking the next one", at, rest,
		         detail);
		break;
	}
	for (char *c = why; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = ' ';
}

void hw_sentinel_round_begin(struct hw_sentinel_round *r)
{
	r->left = r->n;
}

int hw_sentinel_round_next(struct hw_sentinel_round *r)
{
	if (r->left == 0)
		return -1;
	unsigned next = r->next;
	r->left--;
	r->next = (r->next + 1) % r->n;
	return (int)next;
}

static bool go(struct hw_sentinel_view *v, const struct hw_host *master)
{
	v->in_use = *master;
	v->n_named = 0;
	return true;
}

bool hw_sentinel_view_named(struct hw_sentinel_view *v, const struct hw_host *master, unsigned n, bool wanted)
{
	if (wanted)
		return go(v, master);
	if (hw_host_equal(master, &v->in_use)) {
		v->n_named = 0;
		return false;
	}
	v->n_named = v->n_named && hw_host_equal(master, &v->other) ? v->n_named + 1 : 1;
	v->other = *master;
	return v->n_named >= (n < 2 ? n : 2) && go(v, master);
}

bool hw_sentinel_view_switched(struct hw_sentinel_view *v, const struct hw_host *master)
{
	bool news = !hw_host_equal(master, &v->in_use);
	go(v, master);
	return news;
}

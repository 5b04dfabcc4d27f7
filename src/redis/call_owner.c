/* SPDX-License-Identifier: MIT */
/*
 * The fencing tokens in the calls of a cluster's node. A call contains one token for each partition of its items. Each
 * item contains the letter of its token (scripts/fence.lua). The calls of a standalone monitor have no tokens.
 *
 * A transition is written with the token that was valid when it happened, or not at all. If this node has lost the
 * partition and won it again since, it has another token now. In between, the other owner may have written newer
 * transitions.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nodes/claims.h"
#include "redis/inner.h"
#include "redis/places.h"

#define PLACE_DIGITS 6

void hw_call_owner_begin(struct hw_redis *r)
{
	struct hw_call_owner *t = &r->sink.owner;
	struct hw_eval *e = &r->sink.eval;
	t->n = 0;
	t->epoch = 0;
	if (!r->ops->owner)
		return;
	hw_eval_key(e, r->keys.owners, strlen(r->keys.owners));
	hw_eval_item(e);
	hw_eval_put(e, HW_AT_FENCE_KIND, "T", 1);
	t->letters_at = hw_eval_put_room(e, HW_AT_FENCE_LETTERS, HW_CALL_ITEMS);
	t->tokens_at = hw_eval_put_room(e, HW_AT_FENCE_TOKENS, PLACE_DIGITS);
}

/* Returns the letter of a token. Adds the token to the call if it is not there yet. */
static char letter_of(struct hw_call_owner *t, const struct hw_ownership *o)
{
	unsigned i = 0;
	while (i < t->n && t->at[i].partition != o->partition)
		i++;
	if (i == t->n)
		t->at[t->n++] = *o;
	return (char)('0' + i);
}

static void add(struct hw_redis *r, unsigned item, const struct hw_ownership *o)
{
	struct hw_call_owner *t = &r->sink.owner;
	const char letter = letter_of(t, o);
	hw_eval_fill(&r->sink.eval, t->letters_at + item, &letter, 1);
	t->epoch = o->token.epoch;
}

bool hw_call_owner_add(struct hw_redis *r, unsigned item, const char *id, size_t len, uint64_t epoch)
{
	struct hw_ownership o;
	if (!r->ops->owner)
		return true;
	if (!r->ops->owner(r->arg, id, len, &o) || (epoch && epoch != o.token.epoch))
		return false;
	add(r, item, &o);
	return true;
}

bool hw_call_owner_add_partition(struct hw_redis *r, unsigned item, unsigned partition)
{
	const struct hw_ownership o = {partition, r->ops->token(r->arg, partition)};
	if (o.token.epoch)
		add(r, item, &o);
	return o.token.epoch > 0;
}

void hw_call_owner_end(struct hw_redis *r)
{
	struct hw_call_owner *t = &r->sink.owner;
	struct hw_eval *e = &r->sink.eval;
	char text[HW_RECORD_TEXT];
	if (!r->ops->owner)
		return;
	snprintf(text, sizeof(text), "%0*u", PLACE_DIGITS, e->n_args + 1);
	hw_eval_fill(e, t->tokens_at, text, PLACE_DIGITS);
	for (unsigned i = 0; i < t->n; i++) {
		hw_record_text(&(struct hw_record){.token = t->at[i].token}, text);
		hw_eval_item(e);
		hw_eval_put_int(e, HW_AT_TOKEN_PARTITION, t->at[i].partition);
		hw_eval_put_text(e, HW_AT_TOKEN_TOKEN, text);
	}
}

bool hw_call_owner_epoch(const struct hw_redis *r, const char *id, size_t len, uint64_t *epoch)
{
	struct hw_ownership o = {0};
	bool ours = !r->ops->owner || r->ops->owner(r->arg, id, len, &o);
	*epoch = o.token.epoch;
	return ours;
}

/* Parses "EPOCH partition epoch node". The part after the partition is an owner's record. */
bool hw_call_owner_refused(struct hw_redis *r, const redisReply *item)
{
	static const char word[] = "EPOCH ";
	struct hw_record newer;
	char *end;
	if (!r->ops->owner || item->type != REDIS_REPLY_STRING || strncmp(item->str, word, strlen(word)) != 0)
		return false;
	unsigned long p = strtoul(item->str + strlen(word), &end, 10);
	r->stats->fenced++;
	if (p < HW_PARTITIONS && *end == ' ' && hw_record_parse(end + 1, strlen(end + 1), &newer) == 0)
		r->ops->on_fenced(r->arg, (unsigned)p, &newer.token);
	return true;
}

void hw_call_owner_drop(struct hw_redis *r, struct hw_ref ref, uint64_t seq)
{
	if (r->ops->on_dropped)
		r->ops->on_dropped(r->arg, ref, seq);
}

/* SPDX-License-Identifier: MIT */
/* See cluster.h. Cost: linear in the members and partitions in a call or an answer. */
#include "redis/cluster.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "heartwheel/bounds.h"
#include "heartwheel/json_tree.h"
#include "nodes/claims.h"
#include "redis/places.h"

#define COUNT_MAX    UINT64_C(999999999999999999) /* view.lua has the same limits */
#define RUN_DIGITS   16
#define LEASE_MAX_MS 60000

/* The scripts of a cluster have these arguments at the same positions. */
_Static_assert(HW_AT_ASK_NODE == HW_AT_RENEW_NODE && HW_AT_ASK_DIGEST == HW_AT_RENEW_DIGEST, "scripts/places");
_Static_assert(HW_AT_ASK_NODE == HW_AT_CLAIM_NODE && HW_AT_ASK_DIGEST == HW_AT_CLAIM_DIGEST, "scripts/places");
_Static_assert(HW_AT_ASK_NODE == HW_AT_RELEASE_NODE && HW_AT_ASK_DIGEST == HW_AT_RELEASE_DIGEST, "scripts/places");
_Static_assert(HW_AT_ASK_NODE == HW_AT_REMOVE_NODE && HW_AT_ASK_DIGEST == HW_AT_REMOVE_DIGEST, "scripts/places");

void hw_cluster_init(struct hw_cluster *c, const struct hw_keys *keys, const char *node)
{
	*c = (struct hw_cluster){.keys = keys, .node = node};
}

void hw_cluster_forget(struct hw_cluster *c)
{
	c->digest[0] = '\0';
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

static void begin(const struct hw_cluster *c, struct hw_eval *e, const char *node, uint64_t run)
{
	char text[RUN_DIGITS + 1];
	snprintf(text, sizeof(text), "%016" PRIx64, run);
	hw_eval_begin(e);
	hw_eval_key(e, c->keys->nodes, strlen(c->keys->nodes));
	hw_eval_key(e, c->keys->owners, strlen(c->keys->owners));
	hw_eval_key(e, c->keys->nodes_left, strlen(c->keys->nodes_left));
	hw_eval_put_text(e, HW_AT_ASK_NODE, node);
	hw_eval_put_text(e, HW_AT_ASK_RUN, text);
	hw_eval_put_text(e, HW_AT_ASK_DIGEST, c->digest);
}

static void renew(const struct hw_cluster *c, struct hw_eval *e, const struct hw_nodes_order *o,
                  const struct hw_cluster_with *with)
{
	char claims[HW_CLAIMS_TEXT] = "";
	bool join = o->kind == HW_NODES_JOIN;
	if (!join && with->claims)
		hw_claims_text(with->claims, claims);
	hw_eval_put(e, HW_AT_RENEW_KIND, join ? "J" : "R", 1);
	hw_eval_put_int(e, HW_AT_RENEW_COUNT, (int64_t)o->count);
	hw_eval_put_text(e, HW_AT_RENEW_JSON, with->json);
	hw_eval_put_text(e, HW_AT_RENEW_CLAIMS, claims);
	hw_eval_put_text(e, HW_AT_RENEW_OFFLINE, c->keys->offline);
	hw_eval_put_text(e, HW_AT_RENEW_OUTBOX, c->keys->outbox);
	hw_eval_put_text(e, HW_AT_RENEW_EVENTS, c->keys->events);
	hw_eval_put_text(e, HW_AT_RENEW_CONNECTED, c->keys->no_device[HW_KEY_CONNECTED]);
	hw_eval_put_text(e, HW_AT_RENEW_DISCONNECTED, c->keys->no_device[HW_KEY_DISCONNECTED]);
	hw_eval_put_text(e, HW_AT_RENEW_STATE, c->keys->no_device[HW_KEY_STATE]);
}

static void claim(const struct hw_cluster *c, struct hw_eval *e, const struct hw_nodes_order *o,
                  const struct hw_cluster_with *with)
{
	char text[HW_RECORD_TEXT];
	hw_eval_key(e, c->keys->events, strlen(c->keys->events));
	hw_eval_put_int(e, HW_AT_CLAIM_EPOCH, (int64_t)o->epoch);
	for (unsigned p = 0; p < HW_PARTITIONS; p++) {
		if (!hw_partitions_has(&o->set, p))
			continue;
		hw_record_text(&with->expected[p], text);
		hw_eval_item(e);
		hw_eval_put_int(e, HW_AT_CLAIMED_PARTITION, p);
		hw_eval_put_text(e, HW_AT_CLAIMED_EXPECTED, text);
	}
}

static void release(struct hw_eval *e, const struct hw_nodes_order *o, const struct hw_cluster_with *with)
{
	char text[HW_RECORD_TEXT];
	for (unsigned p = 0; p < HW_PARTITIONS; p++) {
		if (!hw_partitions_has(&o->set, p))
			continue;
		hw_record_text(&(struct hw_record){.token = with->given[p]}, text);
		hw_eval_item(e);
		hw_eval_put_int(e, HW_AT_RELEASED_PARTITION, p);
		hw_eval_put_text(e, HW_AT_RELEASED_TOKEN, text);
		hw_eval_put(e, HW_AT_RELEASED_SUFFIX, hw_partitions_has(&o->clean, p) ? "-" : "~", 1);
	}
}

static void remove_member(struct hw_eval *e, const struct hw_nodes_order *o)
{
	if (o->kind == HW_NODES_LEAVE)
		hw_eval_put_text(e, HW_AT_REMOVE_COUNT, "");
	else
		hw_eval_put_int(e, HW_AT_REMOVE_COUNT, (int64_t)o->count);
}

enum hw_cluster_script hw_cluster_call(const struct hw_cluster *c, struct hw_eval *e, const struct hw_nodes_order *o,
                                       const struct hw_cluster_with *with)
{
	begin(c, e, o->kind == HW_NODES_REMOVE ? o->node : c->node, o->run);
	switch (o->kind) {
	case HW_NODES_JOIN:
	case HW_NODES_RENEW:
		renew(c, e, o, with);
		return HW_CLUSTER_RENEW;
	case HW_NODES_CLAIM:
		claim(c, e, o, with);
		return HW_CLUSTER_CLAIM;
	case HW_NODES_RELEASE:
		release(e, o, with);
		return HW_CLUSTER_RELEASE;
	default:
		remove_member(e, o);
		return HW_CLUSTER_REMOVE;
	}
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

static const redisReply *part(const redisReply *reply, unsigned place)
{
	return reply->element[place - 1];
}

static bool is_text(const redisReply *r)
{
	return r->type == REDIS_REPLY_STRING;
}

static bool is_list(const redisReply *r)
{
	return r->type == REDIS_REPLY_ARRAY;
}

static bool is_answer(const redisReply *r)
{
	const redisReply *owners;
	if (!is_list(r) || r->elements != HW_AT_ANSWER_NEXT - 1)
		return false;
	owners = part(r, HW_AT_ANSWER_OWNERS);
	return is_list(part(r, HW_AT_ANSWER_LEFT)) && is_text(part(r, HW_AT_ANSWER_NOW)) &&
	       is_text(part(r, HW_AT_ANSWER_RESULT)) && is_text(part(r, HW_AT_ANSWER_DIGEST)) &&
	       part(r, HW_AT_ANSWER_DIGEST)->len == HW_DIGEST_LEN && is_list(part(r, HW_AT_ANSWER_MEMBERS)) &&
	       (is_list(owners) || owners->type == REDIS_REPLY_NIL);
}

/* Parses a run id. Accepts only the form that begin() writes: an entry is removed by its run id in that form, so an
 * entry with another form could never be removed. */
static int run_of(const char *text, size_t len, uint64_t *run)
{
	*run = 0;
	for (size_t i = 0; i < RUN_DIGITS; i++) {
		static const char all[] = "0123456789abcdef";
		const char *digit = i < len && text[i] ? strchr(all, text[i]) : NULL;
		if (!digit)
			return -EINVAL;
		*run = *run << 4 | (uint64_t)(digit - all);
	}
	return 0;
}

/* Reads the members of the JSON that src/nodes uses. Ignores a lease of more than LEASE_MAX_MS, which no configuration
 * allows. */
static void read_json(const char *json, size_t len, struct hw_member_entry *m)
{
	cJSON *object = hw_json_tree(json, len);
	const cJSON *state = cJSON_GetObjectItemCaseSensitive(object, "state");
	const cJSON *lease = cJSON_GetObjectItemCaseSensitive(object, "lease_ms");
	m->ready = cJSON_IsString(state) && strcmp(state->valuestring, "ready") == 0;
	m->lease_ns = 0;
	if (cJSON_IsNumber(lease) && lease->valuedouble > 0 && lease->valuedouble <= LEASE_MAX_MS)
		m->lease_ns = (int64_t)lease->valuedouble * HW_NS_PER_MS;
	const char *unable = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "unable"));
	if (!unable || hw_partitions_parse(unable, strlen(unable), &m->unable) < 0)
		m->unable = (struct hw_partitions){{0}};
	cJSON_Delete(object);
}

static int read_member(const redisReply *node, const redisReply *text, struct hw_member_entry *m, const char **json)
{
	if (!is_text(node) || !is_text(text) || !hw_claims_is_node(node->str, node->len) ||
	    run_of(text->str, text->len, &m->run) < 0)
		return -EINVAL;
	const char *at = text->str + RUN_DIGITS, *end = text->str + text->len;
	if (at == end || *at++ != ' ' || hw_claims_number(&at, end, COUNT_MAX, &m->count) < 0)
		return -EINVAL;
	if (end - at < 2 || at[0] != ' ' || at[1] != '{' || !hw_bounds_json(at + 1, (size_t)(end - at - 1)))
		return -EINVAL;
	m->node = node->str;
	read_json(at + 1, (size_t)(end - at - 1), m);
	*json = at + 1;
	return 0;
}

static void read_members(struct hw_cluster_answer *out, const redisReply *list)
{
	size_t n = 0;
	for (size_t i = 0; i + 1 < list->elements; i += 2)
		if (n < HW_CLUSTER_ENTRIES &&
		    read_member(list->element[i], list->element[i + 1], &out->members[n], &out->json[n]) == 0)
			n++;
		else
			out->unusable++;
	out->nodes.members = out->members;
	out->nodes.n_members = n;
}

static int partition_of(const redisReply *r, unsigned *p)
{
	uint64_t n;
	const char *at = r->str;
	if (!is_text(r) || hw_claims_number(&at, r->str + r->len, HW_PARTITIONS - 1, &n) < 0 || at != r->str + r->len)
		return -EINVAL;
	*p = (unsigned)n;
	return 0;
}

static void read_owners(struct hw_cluster_answer *out, const redisReply *list)
{
	unsigned p;
	for (size_t i = 0; i + 1 < list->elements; i += 2) {
		const redisReply *text = list->element[i + 1];
		if (partition_of(list->element[i], &p) < 0 || !is_text(text) ||
		    hw_record_parse(text->str, text->len, &out->owners[p]) < 0) {
			out->unusable++;
		} else if (out->owners[p].token.epoch > out->nodes.now_s + HW_EPOCH_AHEAD_S) {
			out->owners[p] = (struct hw_record){0};
			out->impossible++;
		}
	}
	out->nodes.owners = out->owners;
}

static int read_clock(struct hw_cluster_answer *out, const redisReply *text)
{
	const char *at = text->str, *end = text->str + text->len;
	return hw_claims_number(&at, end, INT32_MAX * UINT64_C(1000), &out->nodes.now_s) < 0 || at != end ? -EINVAL : 0;
}

static void read_left(struct hw_cluster_answer *out, const redisReply *list)
{
	for (size_t i = 0; i + 1 < list->elements; i += 2)
		if (out->nodes.n_left < HW_CLUSTER_ENTRIES && is_text(list->element[i]) &&
		    hw_claims_is_node(list->element[i]->str, list->element[i]->len))
			out->left[out->nodes.n_left++] = list->element[i]->str;
		else
			out->unusable++;
	out->nodes.left = out->left;
}

/* Only partitions that were requested can have been won. */
static void read_claim(struct hw_cluster_answer *out, const struct hw_nodes_order *o, const redisReply *reply)
{
	const redisReply *won = part(reply, HW_AT_ANSWER_WON), *last = part(reply, HW_AT_ANSWER_LAST);
	unsigned p;
	for (size_t i = 0; is_list(won) && i < won->elements; i++)
		if (partition_of(won->element[i], &p) == 0 && hw_partitions_has(&o->set, p))
			hw_partitions_add(&out->nodes.won, p);
	if (!is_text(last) || hw_stream_id_parse(last->str, last->len, &out->nodes.last) < 0)
		out->nodes.last = (struct hw_stream_id){0, 0};
}

static bool read_result(struct hw_cluster_answer *out, const redisReply *text)
{
	static const struct {
		const char *word;
		enum hw_nodes_result result;
	} words[] = {{"DONE", HW_NODES_DONE}, {"TAKEN", HW_NODES_TAKEN}, {"GONE", HW_NODES_GONE}};
	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(text->str, words[i].word) == 0) {
			out->nodes.result = words[i].result;
			return true;
		}
	return false;
}

static void read_denied(struct hw_cluster_answer *out, const redisReply *text)
{
	out->nodes.denied = is_text(text);
	if (out->nodes.denied)
		hw_trouble_text(text->str, out->denied);
}

/* Keeps the digest of an answer. If the answer contains no owners, its digest must be the one that this node knows.
 * Otherwise calls have crossed, and the next answer must contain all owners. */
static void keep_digest(struct hw_cluster *c, const struct hw_cluster_answer *out, const char *digest)
{
	if (out->nodes.owners)
		memcpy(c->digest, digest, HW_DIGEST_LEN + 1);
	else if (strcmp(c->digest, digest) != 0)
		hw_cluster_forget(c);
}

int hw_cluster_read(struct hw_cluster *c, const struct hw_nodes_order *o, const redisReply *reply,
                    struct hw_cluster_answer *out, char error[HW_TROUBLE_TEXT])
{
	memset(out, 0, sizeof(*out));
	if (reply->type == REDIS_REPLY_ERROR) {
		hw_trouble_text(reply->str, error);
		return -EPROTO;
	}
	if (!is_answer(reply) || !read_result(out, part(reply, HW_AT_ANSWER_RESULT)) ||
	    read_clock(out, part(reply, HW_AT_ANSWER_NOW)) < 0) {
		snprintf(error, HW_TROUBLE_TEXT,
		         "the answer about %s and %s is malformed: is there a proxy between heartwheeld and Redis?",
		         c->keys->nodes, c->keys->owners);
		return -EPROTO;
	}
	out->nodes.serial = o->serial;
	read_members(out, part(reply, HW_AT_ANSWER_MEMBERS));
	read_left(out, part(reply, HW_AT_ANSWER_LEFT));
	if (is_list(part(reply, HW_AT_ANSWER_OWNERS)))
		read_owners(out, part(reply, HW_AT_ANSWER_OWNERS));
	if (o->kind == HW_NODES_CLAIM)
		read_claim(out, o, reply);
	if (o->kind == HW_NODES_JOIN || o->kind == HW_NODES_RENEW)
		read_denied(out, part(reply, HW_AT_ANSWER_DENIED));
	keep_digest(c, out, part(reply, HW_AT_ANSWER_DIGEST)->str);
	return 0;
}

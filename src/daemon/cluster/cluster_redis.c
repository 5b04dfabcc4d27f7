/* SPDX-License-Identifier: MIT */
#include "cluster_redis.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster_priv.h"
#include "daemon/loop/turn.h"
#include "daemon/store/prefix_guard.h"
#include "daemon/store/store.h"
#include "heartwheel/print.h"

#define SELF_EVERY_S 5 /* how often a test message shows that messages arrive */
#define SELF_BOUND_S 5

/* Messages to all nodes, "attend NODE_ID" and "left NODE_ID", are published on device:node:*. No node has this name. */
static const char all[] = "*", attend[] = "attend ", left[] = "left ";
static const char self[] = "self"; /* the test message to this node */

static struct hw_cluster_redis *redis_of(const struct hw_app *a)
{
	return &a->cluster->redis;
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

static void fail(struct hw_app *a, const char *why)
{
	struct hw_cluster_redis *r = redis_of(a);
	snprintf(r->why, sizeof(r->why), "%s", why);
	hw_redis_link_fail(&r->link, why);
}

/* Logs when the right to write devices is lost or granted, but not when only the error changes. */
static void report_denied(struct hw_app *a)
{
	struct hw_cluster_redis *r = redis_of(a);
	bool denied = hw_nodes_is_denied(a->cluster->nodes);
	if (denied == (r->denied[0] != '\0'))
		return;
	snprintf(r->denied, sizeof(r->denied), "%s", denied ? r->answer->denied : "");
	if (denied)
		hw_log(a->log, HW_LOG_ERROR,
		       "nodes: Redis refuses this node's writes of devices: %s; this node hands its partitions over to "
		       "nodes that may write, or keeps them while no node may; check the ACL of the Redis user",
		       r->denied);
	else
		hw_log(a->log, HW_LOG_NOTICE, "nodes: this node may write devices again");
}

static void on_answer(redisAsyncContext *ac, void *reply, void *arg)
{
	struct hw_cluster_asked *asked = arg;
	struct hw_app *a = asked->app;
	struct hw_cluster_redis *r = redis_of(a);
	char error[HW_TROUBLE_TEXT];
	(void)ac;
	if (!reply)
		return;
	hw_redis_link_got(&r->link);
	if (hw_cluster_read(&r->cluster, &asked->order, reply, r->answer, error) < 0) {
		snprintf(r->refused, sizeof(r->refused), "%s", error);
		fail(a, error);
		return;
	}
	r->refused[0] = '\0';
	struct hw_now now = hw_app_woke(a);
	hw_monitor_count_refused(a->monitor, HW_REFUSED_EPOCH, r->answer->impossible);
	hw_app_hold_strangers(a, r->answer);
	hw_nodes_answer(a->cluster->nodes, now, &r->answer->nodes);
	report_denied(a);
	hw_app_cluster_saw(a, now, &asked->order, r->answer);
	if (asked->order.kind == HW_NODES_JOIN)
		hw_prefix_guard_check(a);
	hw_app_turn(a);
}

/* --- orders ------------------------------------------------------------------------------------------------------- */

static struct hw_cluster_asked *slot_of(struct hw_cluster_redis *r, enum hw_nodes_kind kind)
{
	switch (kind) {
	case HW_NODES_REMOVE:
		return &r->asked[1];
	case HW_NODES_CLAIM:
		return &r->asked[2];
	case HW_NODES_RELEASE:
		return &r->asked[3];
	default:
		return &r->asked[0];
	}
}

static void call(struct hw_app *a, const struct hw_nodes_order *o, const struct hw_cluster_with *with)
{
	struct hw_cluster_redis *r = redis_of(a);
	struct hw_cluster_asked *asked = slot_of(r, o->kind);
	*asked = (struct hw_cluster_asked){a, *o};
	unsigned script = hw_cluster_call(&r->cluster, &r->eval, o, with);
	if (hw_scripts_call(&r->scripts, script, &r->eval, on_answer, asked) == -ENOMEM)
		fail(a, "out of memory");
}

static void report_all(struct hw_app *a, const char *what)
{
	char text[80];
	size_t n = hw_print(text, sizeof(text), "%s%s", what, a->start->node_id);
	hw_app_cluster_send(a, all, text, n);
}

static void ask_with_tables(struct hw_app *a, const struct hw_nodes_order *o, const char *json)
{
	const struct hw_nodes *n = a->cluster->nodes;
	uint64_t claims[HW_PARTITIONS];
	struct hw_record expected[HW_PARTITIONS];
	struct hw_fencing_token given[HW_PARTITIONS];
	for (unsigned p = 0; p < HW_PARTITIONS; p++) {
		claims[p] = hw_nodes_fencing_token(n, p).epoch;
		expected[p] = *hw_nodes_record(n, p);
		given[p] = *hw_nodes_given(n, p);
	}
	call(a, o, &(struct hw_cluster_with){.json = json, .claims = claims, .expected = expected, .given = given});
}

void hw_app_cluster_ask(struct hw_app *a, struct hw_now now, struct hw_nodes_order *o)
{
	char json[HW_CLUSTER_JSON] = "";
	if (o->kind == HW_NODES_ATTEND) {
		report_all(a, attend);
		return;
	}
	if (o->kind == HW_NODES_JOIN || o->kind == HW_NODES_RENEW)
		hw_app_cluster_json(a, now, o, json);
	if (o->kind == HW_NODES_RELEASE)
		hw_app_cluster_released(a, now, o);
	if (o->kind == HW_NODES_LEAVE)
		report_all(a, left);
	hw_app_cluster_asks(a, o);
	ask_with_tables(a, o, json);
}

/* --- the link ----------------------------------------------------------------------------------------------------- */

/* Without the right to INFO, the server stays unknown. */
static void on_server(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_cluster_redis *r = redis_of(arg);
	(void)ac;
	if (!answer)
		return;
	hw_redis_link_got(&r->link);
	hw_server_run_id(answer, r->server);
}

static void on_ready(void *arg)
{
	static const char *argv[] = {"INFO", "server"};
	static const size_t len[] = {4, 6};
	struct hw_cluster_redis *r = redis_of(arg);
	if (hw_redis_link_command(&r->link, on_server, arg, 2, argv, len) != 0)
		fail(arg, "out of memory");
	else
		hw_scripts_load(&r->scripts);
}

static void on_loaded(void *arg)
{
	struct hw_app *a = arg;
	struct hw_cluster_redis *r = redis_of(a);
	hw_redis_link_settled(&r->link);
	hw_cluster_forget(&r->cluster);
	r->up = true;
	r->why[0] = '\0';
	hw_app_cluster_retry_claims(a);
	hw_app_cluster_sentinel_linked(a);
	hw_app_cluster_join(a);
}

void hw_app_cluster_join(struct hw_app *a)
{
	if (!redis_of(a)->up || !(hw_prefix_guard_lets_join(a) || a->life.stopping || a->life.failed))
		return;
	hw_nodes_redis(a->cluster->nodes, hw_app_now(), true);
	hw_app_schedule_turn(a);
}

static void on_script_refused(void *arg, const char *error)
{
	char text[HW_TROUBLE_TEXT];
	hw_trouble_text(error, text);
	fail(arg, text);
}

static void on_lost(void *arg, const char *why)
{
	struct hw_app *a = arg;
	struct hw_cluster_redis *r = redis_of(a);
	bool was = r->up;
	hw_scripts_lost(&r->scripts);
	r->up = false;
	r->server[0] = '\0';
	if (strcmp(r->refused, why) != 0)
		r->refused[0] = '\0';
	if (!was && strcmp(r->why, why) == 0)
		return;
	snprintf(r->why, sizeof(r->why), "%s", why);
	hw_log_limited(a->log, HW_LIMIT_CLUSTER_REDIS, HW_LOG_WARNING, "nodes: Redis: %s", why);
	if (!was)
		return;
	hw_nodes_redis(a->cluster->nodes, hw_app_now(), false);
	hw_app_schedule_turn(a);
}

/* The devices' own link logs the same trouble. */
static void on_trouble(void *arg, const char *what)
{
	hw_log(((struct hw_app *)arg)->log, HW_LOG_DEBUG, "nodes: Redis: %s", what);
}

static const struct hw_redis_link_ops link_ops = {on_ready, on_lost, on_trouble};
static const struct hw_scripts_ops scripts_ops = {on_loaded, on_script_refused};

/* --- the channels ------------------------------------------------------------------------------------------------- */

static void on_sent(redisAsyncContext *ac, void *reply, void *arg)
{
	struct hw_app *a = arg;
	const redisReply *answer = reply;
	char text[HW_TROUBLE_TEXT];
	(void)ac;
	if (!answer)
		return;
	hw_redis_link_got(&redis_of(a)->link);
	if (answer->type != REDIS_REPLY_ERROR)
		return;
	hw_trouble_text(answer->str, text);
	hw_log_limited(a->log, HW_LIMIT_CLUSTER_REDIS, HW_LOG_WARNING,
	               "nodes: cannot publish on %snode:*: %s; other nodes learn of changes a moment later",
	               redis_of(a)->keys.prefix, text);
}

int hw_app_cluster_send(struct hw_app *a, const char *node, const char *text, size_t len)
{
	struct hw_cluster_redis *r = redis_of(a);
	char channel[256];
	size_t n = hw_print(channel, sizeof(channel), "%snode:%s", r->keys.prefix, node);
	const char *argv[] = {"PUBLISH", channel, text};
	const size_t lens[] = {7, n, len};
	return r->up ? hw_redis_link_command(&r->link, on_sent, a, 3, argv, lens) : -ENOTCONN;
}

bool hw_app_cluster_is_from_member(struct hw_app *a, const char *from)
{
	if (hw_members_find(hw_nodes_members(a->cluster->nodes), from))
		return true;
	hw_log_limited(a->log, HW_LIMIT_CLUSTER_STRANGER, HW_LOG_WARNING,
	               "nodes: a message on %snode:* from '%.64s' was ignored: the sender is not a member; check which "
	               "users may publish there",
	               a->cluster->redis.keys.prefix, from);
	return false;
}

/* Returns the node that sent `word`. NULL: the text is another one, or is this node's own message. */
static const char *sender_of(const struct hw_app *a, const char *text, const char *word)
{
	size_t n = strlen(word);
	return strncmp(text, word, n) == 0 && strcmp(text + n, a->start->node_id) != 0 ? text + n : NULL;
}

/* Called when a message to all nodes has arrived. Its sender may have joined or left, so Redis is checked. Any
 * client of Redis may send such messages. Many such messages do no harm, because at most one check waits. */
static void heard_by_all(struct hw_app *a, const char *text)
{
	const char *leaver = sender_of(a, text, left);
	if (leaver && hw_app_cluster_is_from_member(a, leaver))
		hw_app_cluster_leaves(a, leaver);
	if (!leaver && !sender_of(a, text, attend))
		return;
	hw_nodes_attend(a->cluster->nodes, hw_app_now());
	hw_app_schedule_turn(a);
}

static void heard(struct hw_app *a, const char *channel, const redisReply *text)
{
	if (strcmp(channel, all) == 0)
		heard_by_all(a, text->str);
	else if (strcmp(text->str, self) == 0)
		redis_of(a)->asked_self.ns = 0;
	else
		hw_app_cluster_asked(a, text->str, text->len);
}

static void on_message(redisAsyncContext *ac, void *reply, void *arg)
{
	struct hw_app *a = arg;
	struct hw_cluster_redis *r = redis_of(a);
	const redisReply *answer = reply;
	(void)ac;
	if (!answer)
		return;
	hw_redis_link_got(&r->hear);
	if (answer->type == REDIS_REPLY_ERROR) {
		hw_redis_link_fail(&r->hear, answer->str);
		return;
	}
	if (answer->type != REDIS_REPLY_ARRAY || answer->elements != 3 ||
	    answer->element[1]->type != REDIS_REPLY_STRING)
		return;
	const redisReply *channel = answer->element[1], *text = answer->element[2];
	size_t head = strlen(r->keys.prefix) + strlen("node:");
	if (text->type == REDIS_REPLY_INTEGER) {
		hw_redis_link_settled(&r->hear);
		r->hears = true;
	} else if (text->type == REDIS_REPLY_STRING && channel->len > head) {
		heard(a, channel->str + head, text);
	}
}

static void on_hear_ready(void *arg)
{
	struct hw_app *a = arg;
	struct hw_cluster_redis *r = redis_of(a);
	char ours[256], theirs[256];
	size_t n = hw_print(ours, sizeof(ours), "%snode:%s", r->keys.prefix, a->start->node_id);
	size_t m = hw_print(theirs, sizeof(theirs), "%snode:%s", r->keys.prefix, all);
	const char *argv[] = {"SUBSCRIBE", ours, theirs};
	const size_t len[] = {9, n, m};
	if (hw_redis_link_command(&r->hear, on_message, a, 3, argv, len) != 0)
		hw_redis_link_fail(&r->hear, "out of memory");
}

static void on_hear_lost(void *arg, const char *why)
{
	struct hw_app *a = arg;
	struct hw_cluster_redis *r = redis_of(a);
	r->asked_self.ns = 0;
	r->hears = false;
	if (r->up)
		hw_log_limited(a->log, HW_LIMIT_CLUSTER_REDIS, HW_LOG_WARNING,
		               "nodes: cannot subscribe to %snode:*: %s; this node learns of changes a moment later",
		               r->keys.prefix, why);
}

static const struct hw_redis_link_ops hear_ops = {on_hear_ready, on_hear_lost, on_trouble};

/* Publishes a message that this node itself receives, because a server never tests the connection of a silent
 * subscriber. */
static void prove_hearing(struct hw_app *a, struct hw_now now)
{
	struct hw_cluster_redis *r = redis_of(a);
	if (!r->hears || !r->up)
		return;
	if (r->asked_self.ns && now.mono.ns - r->asked_self.ns > SELF_BOUND_S * HW_NS_PER_S) {
		hw_redis_link_fail(&r->hear, "published messages do not arrive");
	} else if (!r->asked_self.ns && ++r->quiet_s >= SELF_EVERY_S) {
		r->quiet_s = 0;
		if (hw_app_cluster_send(a, a->start->node_id, self, strlen(self)) == 0)
			r->asked_self = now.mono;
	}
}

/* --- start, tick and end ------------------------------------------------------------------------------------------ */

void hw_app_cluster_redis_tick(struct hw_app *a, struct hw_now now)
{
	struct hw_cluster_redis *r = redis_of(a);
	hw_redis_link_tick(&r->link);
	hw_redis_link_tick(&r->hear);
	prove_hearing(a, now);
}

static int start_links(struct hw_app *a)
{
	struct hw_cluster_redis *r = redis_of(a);
	const char *texts[HW_CLUSTER_SCRIPTS];
	struct hw_redis_link_conf c = {.at = hw_app_redis_conf(a)->at, .seed = a->life.run_id ^ 1};
	for (int i = 0; i < HW_CLUSTER_SCRIPTS; i++)
		texts[i] = hw_cluster_script_text((enum hw_cluster_script)i);
	hw_scripts_init(&r->scripts, &r->link, texts, HW_CLUSTER_SCRIPTS, &scripts_ops, a);
	int rc = hw_redis_link_init(&r->link, a->loop.base, &c, &link_ops, a);
	c.subscriber = true;
	c.seed ^= 3;
	if (!rc)
		rc = hw_redis_link_init(&r->hear, a->loop.base, &c, &hear_ops, a);
	r->linked = true;
	return rc;
}

int hw_app_cluster_redis_start(struct hw_app *a)
{
	struct hw_cluster_redis *r = redis_of(a);
	int rc = hw_keys_init(&r->keys, a->start->redis.key_prefix, a->start->node_id);
	if (rc)
		return rc;
	hw_cluster_init(&r->cluster, &r->keys, a->start->node_id);
	r->answer = malloc(sizeof(*r->answer));
	return r->answer ? start_links(a) : -ENOMEM;
}

void hw_app_cluster_redis_free(struct hw_app *a)
{
	struct hw_cluster_redis *r = redis_of(a);
	if (r->linked) {
		hw_redis_link_fini(&r->hear);
		hw_redis_link_fini(&r->link);
	}
	hw_eval_fini(&r->eval);
	hw_keys_fini(&r->keys);
	free(r->answer);
}

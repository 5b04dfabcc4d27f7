/* SPDX-License-Identifier: MIT */
/* Connections to Redis, each with its own wires. Replaces src/link and src/redis/cluster.h for cluster_redis.c. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>

#include "heartwheel/print.h"
#include "nodes_world.h"

#define BOUND_NS (5 * HW_NS_PER_S)

bool nw_redis_reachable(const struct nw_world *w, const struct nw_host *h)
{
	return h->cut_redis <= w->t && w->redis_stands <= w->t;
}

/* --- requests ---------------------------------------------------------------------------------------------------- */

bool nw_link_ask(struct nw_host *h, enum nw_links k, struct nw_msg msg)
{
	struct nw_link *l = &h->link[k];
	if (!l->up && msg.what != NW_HELLO) {
		nw_msg_fini(&msg);
		return false;
	}
	msg.conn = l->conn;
	msg.instance = l->instance;
	if (msg.what != NW_BLOCK && msg.what != NW_SHOUT && l->awaits++ == 0)
		l->asked = h->w->t;
	nw_put(h, NW_TO_REDIS + k, msg);
	return true;
}

/* --- cluster_redis.c's ------------------------------------------------------------------------------------------- */

static struct nw_link *link_of(const struct hw_redis_link *l, enum nw_links *k)
{
	struct nw_host *h = nw_running;
	*k = h->link[NW_L_CLUSTER].l == l ? NW_L_CLUSTER : NW_L_HEAR;
	return &h->link[*k];
}

int hw_redis_link_init(struct hw_redis_link *l, struct event_base *base, const struct hw_redis_link_conf *conf,
                       const struct hw_redis_link_ops *ops, void *arg)
{
	l->ops = ops;
	l->arg = arg;
	base->h->link[conf->subscriber ? NW_L_HEAR : NW_L_CLUSTER].l = l;
	return 0;
}

void hw_redis_link_fini(struct hw_redis_link *l)
{
	enum nw_links k;
	link_of(l, &k)->l = NULL;
}

void hw_redis_link_fail(struct hw_redis_link *l, const char *why)
{
	enum nw_links k;
	link_of(l, &k);
	nw_link_lose(nw_running, k, why);
}

void hw_redis_link_settled(struct hw_redis_link *l)
{
	(void)l;
}

void hw_redis_link_tick(struct hw_redis_link *l)
{
	(void)l;
}

void hw_redis_link_got(struct hw_redis_link *l)
{
	(void)l;
}

/* Answers INFO with the run id of the Redis. */
static int answer_info(const struct nw_link *link, redisCallbackFn *fn, void *arg)
{
	char text[64];
	size_t len = hw_print(text, sizeof(text), "# Server\r\nrun_id:%s\r\n", nw_redis_run(link->instance));
	redisReply reply = {.type = REDIS_REPLY_STRING, .str = text, .len = len};
	fn(NULL, &reply, arg);
	return 0;
}

/* SUBSCRIBE and INFO are answered at once. No caller needs the answer to PUBLISH. */
int hw_redis_link_command(struct hw_redis_link *l, redisCallbackFn *fn, void *arg, int argc, const char **argv,
                          const size_t *len)
{
	enum nw_links k;
	struct nw_link *link = link_of(l, &k);
	if (!link->up)
		return -ENOTCONN;
	if (strcmp(argv[0], "INFO") == 0)
		return answer_info(link, fn, arg);
	if (k == NW_L_CLUSTER) {
		struct nw_text *text = nw_text_new(argv[1], argv[2], len[2]);
		return nw_link_ask(nw_running, k, (struct nw_msg){.what = NW_SHOUT, .text = text}) ? 0 : -ENOTCONN;
	}
	(void)argc;
	redisReply parts[3] = {
		{.type = REDIS_REPLY_STRING, .str = (char[]){"subscribe"}, .len = 9},
		{.type = REDIS_REPLY_STRING, .str = (char *)argv[1], .len = len[1]},
		{.type = REDIS_REPLY_INTEGER, .integer = 1},
	};
	redisReply *list[3] = {&parts[0], &parts[1], &parts[2]};
	redisReply reply = {.type = REDIS_REPLY_ARRAY, .elements = 3, .element = list};
	link->heard = fn;
	fn(NULL, &reply, arg);
	return 0;
}

/* Receives a message of this node's channel, or of the channel of all nodes. */
static void heard(struct nw_host *h, const struct nw_msg *msg)
{
	struct hw_redis_link *l = h->link[NW_L_HEAR].l;
	const char *channel = msg->text->bytes, *node = strrchr(channel, ':') + 1;
	if (strcmp(node, "*") != 0 && strcmp(node, nw_names[h->name]) != 0)
		return;
	redisReply parts[3] = {
		{.type = REDIS_REPLY_STRING, .str = (char[]){"message"}, .len = 7},
		{.type = REDIS_REPLY_STRING, .str = (char *)channel, .len = msg->text->topic_len},
		{.type = REDIS_REPLY_STRING, .str = (char *)nw_payload(msg->text), .len = msg->text->len},
	};
	redisReply *list[3] = {&parts[0], &parts[1], &parts[2]};
	redisReply reply = {.type = REDIS_REPLY_ARRAY, .elements = 3, .element = list};
	h->link[NW_L_HEAR].heard(NULL, &reply, l->arg);
}

void hw_scripts_init(struct hw_scripts *s, struct hw_redis_link *link, const char *const *texts, unsigned n,
                     const struct hw_scripts_ops *ops, void *arg)
{
	(void)texts, (void)n;
	s->link = link;
	s->ops = ops;
	s->arg = arg;
}

void hw_scripts_load(struct hw_scripts *s)
{
	s->ops->on_loaded(s->arg);
}

void hw_scripts_lost(struct hw_scripts *s)
{
	(void)s;
}

int hw_scripts_call(struct hw_scripts *s, unsigned script, struct hw_eval *e, redisCallbackFn *fn, void *arg)
{
	struct nw_host *h = nw_running;
	struct nw_order *o = h->prepared;
	(void)s, (void)script, (void)e;
	h->prepared = NULL;
	o->fn = fn;
	o->arg = arg;
	o->full = !h->link[NW_L_CLUSTER].told;
	h->link[NW_L_CLUSTER].told = true;
	if (o->o.kind == HW_NODES_REMOVE && h->w->lie == NW_LIE_SILENT) {
		free(o);
		return 0;
	}
	return nw_link_ask(h, NW_L_CLUSTER, (struct nw_msg){.what = NW_ORDER, .body = o}) ? 0 : -ENOTCONN;
}

const char *hw_cluster_script_text(enum hw_cluster_script s)
{
	(void)s;
	return "";
}

void hw_cluster_init(struct hw_cluster *c, const struct hw_keys *keys, const char *node)
{
	c->keys = keys;
	c->node = node;
}

void hw_cluster_forget(struct hw_cluster *c)
{
	(void)c;
	nw_running->link[NW_L_CLUSTER].told = false;
}

/* Reads a member's entry as src/redis/cluster.c does. */
static void read_entry(struct nw_order *o, const char *json)
{
	cJSON *entry = cJSON_Parse(json);
	const char *unable = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(entry, "unable"));
	if (!unable || hw_partitions_parse(unable, strlen(unable), &o->unable) < 0)
		o->unable = (struct hw_partitions){{0}};
	snprintf(o->entry, sizeof(o->entry), "%s", json);
	cJSON_Delete(entry);
}

enum hw_cluster_script hw_cluster_call(const struct hw_cluster *c, struct hw_eval *e, const struct hw_nodes_order *o,
                                       const struct hw_cluster_with *with)
{
	struct nw_order *order = nw_running->prepared = nw_alloc(sizeof(*order));
	const char *node = nw_names[nw_running->name];
	(void)c, (void)e;
	order->o = *o;
	if (o->kind == HW_NODES_RELEASE && nw_running->w->lie == NW_LIE_FLUSHED)
		order->o.clean = o->set;
	if (with->json)
		read_entry(order, with->json);
	for (unsigned p = 0; p < HW_PARTITIONS; p++) {
		order->token[p] =
			o->kind == HW_NODES_RELEASE ? with->given[p] : hw_fencing_token_make(with->claims[p], node);
		order->expected[p] = with->expected[p];
	}
	return HW_CLUSTER_RENEW;
}

int hw_cluster_read(struct hw_cluster *c, const struct hw_nodes_order *o, const redisReply *reply,
                    struct hw_cluster_answer *out, char error[HW_TROUBLE_TEXT])
{
	struct nw_order *answered = nw_running->answered;
	(void)c, (void)o, (void)reply, (void)error;
	memset(out, 0, sizeof(*out));
	out->nodes = answered->answer;
	for (size_t i = 0; i < out->nodes.n_members; i++)
		out->json[i] = answered->entries[i];
	if (nw_running->w->lie == NW_LIE_GONE && out->nodes.result == HW_NODES_GONE)
		out->nodes.result = HW_NODES_DONE;
	return 0;
}

static void answer_order(struct nw_host *h, struct nw_msg *msg)
{
	redisReply reply = {.type = REDIS_REPLY_ARRAY};
	h->answered = msg->body;
	h->link[NW_L_CLUSTER].last = msg->instance;
	h->answered->fn(NULL, &reply, h->answered->arg);
	h->answered = NULL;
}

/* --- connecting -------------------------------------------------------------------------------------------------- */

void nw_links_begin(struct nw_world *w, struct nw_host *h)
{
	for (int k = 0; k < NW_LINKS; k++) {
		uint64_t conn = h->link[k].conn;
		h->link[k] = (struct nw_link){.instance = -1, .last = -1, .conn = conn + 1, .redial_at = w->t};
	}
}

/* Ends a connection. What is under way on it may still arrive. */
void nw_link_lose(struct nw_host *h, enum nw_links k, const char *why)
{
	struct nw_link *l = &h->link[k];
	struct nw_world *w = h->w;
	if (l->instance < 0)
		return;
	if (sim_chance(&w->random, 0.5))
		nw_wire_clear(&h->wire[NW_TO_REDIS + k]);
	nw_wire_clear(&h->sent[NW_TO_REDIS + k]);
	w->redis[l->instance].blocked[h->index].conn = 0;
	l->conn++;
	l->instance = -1;
	l->awaits = 0;
	l->leave_at = 0;
	l->up = l->told = false;
	l->redial_at = w->t + sim_between(&w->random, 1, 100) * HW_NS_PER_MS;
	if (k == NW_L_SINK)
		nw_sink_lost(h, why);
	else if (k == NW_L_TAIL)
		nw_tail_lost(h, why);
	else if (l->l)
		l->l->ops->on_lost(l->l->arg, why);
}

static bool in_use(const struct nw_host *h, enum nw_links k)
{
	return k == NW_L_SINK ? h->redis != NULL : k == NW_L_TAIL ? h->tail != NULL : h->link[k].l != NULL;
}

static void step_link(struct nw_world *w, struct nw_host *h, enum nw_links k)
{
	struct nw_link *l = &h->link[k];
	bool late = l->awaits > 0 && w->t - l->asked > BOUND_NS;
	bool gone = l->instance >= 0 && !w->redis[l->instance].up;
	bool leaves = l->leave_at != 0 && w->t >= l->leave_at;
	if (l->instance >= 0 && (late || gone || leaves)) {
		nw_trace(w, "%s: link %d leaves redis %d:%s%s%s", nw_names[h->name], (int)k, l->instance,
		         late ? " late" : "", gone ? " gone" : "", leaves ? " switch" : "");
		nw_link_lose(h, k, "the connection is lost");
	}
	if (l->instance >= 0 || w->t < l->redial_at || !nw_redis_reachable(w, h))
		return;
	l->instance = w->master;
	nw_link_ask(h, k, (struct nw_msg){.what = NW_HELLO, .body = nw_alloc(sizeof(struct nw_mark))});
}

static void greeted(struct nw_world *w, struct nw_host *h, enum nw_links k, struct nw_msg *msg)
{
	struct nw_link *l = &h->link[k];
	l->up = true;
	nw_trace(w, "%s: link %d to redis %d", nw_names[h->name], (int)k, l->instance);
	if (k == NW_L_SINK)
		nw_sink_up(h, msg);
	else if (k == NW_L_TAIL)
		nw_tail_up(h, l->instance);
	else
		l->l->ops->on_ready(l->l->arg);
}

static void take(struct nw_world *w, struct nw_host *h, enum nw_links k, struct nw_msg *msg)
{
	struct nw_link *l = &h->link[k];
	if (msg->what != NW_BLOCK && msg->what != NW_SHOUT) {
		l->awaits--;
		l->asked = w->t;
	}
	if (msg->what == NW_HELLO)
		greeted(w, h, k, msg);
	else if (k == NW_L_SINK)
		nw_sink_answer(h, msg);
	else if (k == NW_L_TAIL)
		nw_tail_answer(h, msg);
	else if (k == NW_L_CLUSTER)
		answer_order(h, msg);
	else
		heard(h, msg);
}

void nw_links_step(struct nw_world *w, struct nw_host *h)
{
	int first = (int)sim_below(&w->random, NW_LINKS);
	for (int i = 0; i < NW_LINKS; i++) {
		enum nw_links k = (enum nw_links)((first + i) % NW_LINKS);
		struct nw_wire *wire = &h->wire[NW_FROM_REDIS + k];
		if (!in_use(h, k))
			continue;
		step_link(w, h, k);
		while (nw_redis_reachable(w, h) && nw_arrived(w, wire)) {
			struct nw_msg msg = nw_wire_pop(wire);
			if (msg.conn == h->link[k].conn)
				take(w, h, k, &msg);
			nw_msg_fini(&msg);
		}
	}
}

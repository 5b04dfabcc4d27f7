/* SPDX-License-Identifier: MIT */
/*
 * The ten invariants of several nodes, checked by what truly happened and by what was sent. The oracle does not ask
 * src/nodes whether it was right. Only for invariants 6 to 9, the oracle asks whether a host believes that it owns a
 * partition.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "daemon/broker/broker.h"
#include "nodes_world.h"

#define STEPS            5 /* the oracle checks after each so many steps */
#define TIMEOUT_SLACK_NS (60 * HW_NS_PER_MS)
#define PAUSES_NS        HW_NS_PER_S /* total length of the pauses of a host that are too short to be noticed */

static int64_t lease_ns(const struct nw_world *w)
{
	return w->plan.lease_ms * HW_NS_PER_MS;
}

static const struct hw_nodes *nodes_of(const struct nw_host *h)
{
	return h->app->cluster->nodes;
}

/* A take-over lasts for 1.4 leases, until a silent member is found, and then for some round trips. The slowest of
 * these take 0.4 s here. */
static int64_t takeover_ns(const struct nw_world *w)
{
	return lease_ns(w) * 7 / 5 + 5 * HW_NS_PER_S;
}

/* --- 1: no false offline, by the announcing host's own sight ------------------------------------------------------ */

/* Returns for how long the broker may send nothing before a host notices: until the next barrier is sent, and until
 * that barrier counts as slow. A barrier may also count as slow only after four round trips. That time is left out,
 * so that the oracle finds what it would hide. */
static int64_t unnoticed_ns(const struct nw_host *h)
{
	int64_t silent = (nw_pace_ms(h) + h->settings.mqtt.barrier_slow_ms) * HW_NS_PER_MS;
	return silent > PAUSES_NS ? silent : PAUSES_NS;
}

void nw_oracle_misses(struct nw_world *w, int name, int host, int device)
{
	for (int i = 0; i < w->plan.hosts; i++) {
		struct nw_host *h = &w->host[i];
		if (!h->app || (host < 0 ? h->name != name : i != host))
			continue;
		h->missed[device] = w->t;
		h->missed_sight[device] = h->sight;
	}
}

/*
 * A host may call a device offline if the device was silent for a timeout of the time in which the host could read. A
 * dead device may also be called offline by the clock alone. A goodbye counts only if the device sent it, and if it is
 * the last goodbye of the device that the host has read.
 *
 * A dead device that was never heard: a cut that no barrier could show, because the publisher was not connected, counts
 * as time in which the host could read. The host believes the silence only when a pair of barriers is back that was
 * sent after the cut, so behind all messages that waited there. A living device would have been heard by then, so this
 * exception is not made for it: a host that missed its heartbeat was blind, and after a lossy blindness silence counts
 * from zero.
 */
static bool has_missed(const struct nw_host *h, const struct nw_life *life, int device, int64_t least)
{
	int64_t at = h->missed[device];
	return life->alive && at > h->heard[device] && at >= life->since && h->sight - h->missed_sight[device] < least;
}

static void check_offline(struct nw_world *w, struct nw_host *h, int device, enum hw_reason reason)
{
	const struct nw_life *life = &w->device[device];
	int64_t timeout = h->groups[0].timeout_ms * HW_NS_PER_MS, heard = h->heard[device];
	int64_t sight = h->sight - h->heard_sight[device], least = timeout - TIMEOUT_SLACK_NS;
	bool lives = life->alive && life->since <= (heard ? heard : h->started);
	int64_t excused = lives ? 0 : unnoticed_ns(h) - TIMEOUT_SLACK_NS + h->unasked;
	if (nw_is_deaf(h, device)) {
		nw_breach(w, "1: %s calls dev-%d offline, which it cannot hear", nw_names[h->name], device);
	} else if (reason == HW_REASON_WILL) {
		if (h->bye[device] <= heard && !(h->bye[device] && h->bye[device] == heard))
			nw_breach(w, "1: %s believes a goodbye that dev-%d did not say", nw_names[h->name], device);
	} else if (heard && w->t - heard < least) {
		nw_breach(w, "1: %s calls dev-%d offline that it heard %.3f s ago, of %.3f s", nw_names[h->name],
		          device, (double)(w->t - heard) / 1e9, (double)timeout / 1e9);
	} else if (has_missed(h, life, device, least)) {
		nw_breach(w, "1: %s calls dev-%d offline, which beats, %.3f s of sight after it missed that",
		          nw_names[h->name], device, (double)(h->sight - h->missed_sight[device]) / 1e9);
	} else if ((lives || !heard) && sight < least - excused) {
		nw_breach(w, "1: %s calls dev-%d (%s) offline, having listened for %.3f s of %.3f s", nw_names[h->name],
		          device, !heard ? "not heard" : "alive", (double)sight / 1e9, (double)timeout / 1e9);
	}
}

/* Returns when the parent went offline, as this host knows it: when the host read the goodbye, or when any host last
 * reported the parent offline. */
static int64_t parent_end(const struct nw_world *w, const struct nw_host *h)
{
	int64_t bye = h->bye[0] > h->false_bye[0] ? h->bye[0] : h->false_bye[0];
	return w->ended_by[0] == HW_REASON_WILL && bye >= h->heard[0] && bye ? bye : w->ended[0];
}

/* A child may follow its parent offline only if the parent is offline, and if the child was not heard after the
 * parent's end. */
static void check_taken(struct nw_world *w, const struct nw_host *h, int device)
{
	if (!nw_is_child(w, device) || w->plan.family != NW_TAKES)
		nw_breach(w, "1: %s takes dev-%d, which no parent takes", nw_names[h->name], device);
	else if (nw_view(h, 0) == HW_STATE_ONLINE)
		nw_breach(w, "1: %s takes dev-%d, whose parent is online", nw_names[h->name], device);
	else if (h->heard[device] > parent_end(w, h))
		nw_breach(w, "1: %s takes dev-%d that it heard %.3f s ago, after its parent's end", nw_names[h->name],
		          device, (double)(w->t - h->heard[device]) / 1e9);
}

/* Whether the child sends, and a host has received its heartbeats for so long that the host's entry in Redis says
 * so. */
static bool is_heard(const struct nw_world *w, const struct nw_host *h, int child)
{
	const struct nw_life *life = &w->device[child];
	int64_t since = life->since > w->began[child] ? life->since : w->began[child];
	return h->app && !h->is_deaf && life->alive && nw_view(h, child) == HW_STATE_ONLINE &&
	       w->t - since > 2 * HW_NS_PER_S + lease_ns(w) && h->heard[child] &&
	       w->t - h->heard[child] < life->interval * 2;
}

/* A parent whose own heartbeats have ended is online as long as this host hears a child of it, or cannot hear the
 * children, but another host hears one. */
static void check_proofs(struct nw_world *w, const struct nw_host *h)
{
	int64_t least = h->groups[0].timeout_ms * HW_NS_PER_MS - TIMEOUT_SLACK_NS;
	for (int c = 1; h->is_deaf && nw_is_child(w, c); c++)
		for (int k = 0; k < w->plan.hosts; k++)
			if (is_heard(w, &w->host[k], c))
				nw_breach(w, "1: %s calls dev-0 offline, whose child dev-%d %s hears",
				          nw_names[h->name], c, nw_names[w->host[k].name]);
	for (int c = 1; c <= NW_CHILDREN; c++)
		if (h->heard[c] && w->t - h->heard[c] < least && nw_view(h, c) == HW_STATE_ONLINE)
			nw_breach(w, "1: %s calls dev-0 offline, whose child dev-%d it heard %.3f s ago",
			          nw_names[h->name], c, (double)(w->t - h->heard[c]) / 1e9);
}

void nw_oracle_offline(struct nw_world *w, struct nw_host *h, int device, enum hw_reason reason, bool overdue)
{
	if (reason == HW_REASON_PARENT)
		check_taken(w, h, device);
	else if (overdue)
		check_offline(w, h, device, reason);
	if (w->plan.family && device == 0 && reason == HW_REASON_TIMEOUT)
		check_proofs(w, h);
	w->ended[device] = w->t;
	w->ended_by[device] = reason;
	w->ended_run[device] = h->run;
}

/* If this host itself has called the device offline, and not because of its parent, the device may come online only
 * after online_after heartbeats in a row. This does not hold if another host has decided in between. */
void nw_oracle_online(struct nw_world *w, struct nw_host *h, int device)
{
	const struct nw_hash *has = &w->redis[w->master].d.device[device];
	uint64_t by = w->ended_run[device];
	w->ended_run[device] = 0;
	w->began[device] = w->t;
	if (by != h->run || w->ended_by[device] == HW_REASON_PARENT || !has->there || has->state != HW_STATE_OFFLINE)
		return;
	if (h->in_a_row[device] < w->plan.online_after)
		nw_breach(w, "1: %s calls dev-%d online after %d heartbeats of %d", nw_names[h->name], device,
		          h->in_a_row[device], w->plan.online_after);
}

/* --- 2: in each store accepted tokens never fall, one node a token ------------------------------------------------ */

void nw_oracle_accepts(struct nw_world *w, int instance, unsigned p, const struct hw_fencing_token *t)
{
	struct hw_fencing_token *most = &w->redis[instance].most[p];
	if (hw_fencing_token_is_less(t, most))
		nw_breach(w, "2: redis %d takes (%" PRIu64 " %s) for %u after (%" PRIu64 " %s)", instance, t->epoch,
		          t->node, p, most->epoch, most->node);
	else
		*most = *t;
}

static void keep_grant(struct nw_world *w, struct nw_grant g)
{
	if (w->n_grants == w->cap_grants) {
		size_t cap = w->cap_grants ? 2 * w->cap_grants : 256;
		struct nw_grant *grant = nw_alloc(cap * sizeof(*grant));
		if (w->n_grants)
			memcpy(grant, w->grant, w->n_grants * sizeof(*grant));
		free(w->grant);
		w->grant = grant;
		w->cap_grants = cap;
	}
	w->grant[w->n_grants++] = g;
}

void nw_oracle_grants(struct nw_world *w, int instance, unsigned p, const struct hw_fencing_token *t, uint64_t run)
{
	for (size_t i = 0; i < w->n_grants; i++) {
		const struct nw_grant *g = &w->grant[i];
		if (g->instance == instance && g->p == p && hw_fencing_token_compare(&g->token, t) == 0 &&
		    g->run != run)
			nw_breach(w, "2: (%" PRIu64 " %s) for %u is given to two runs", t->epoch, t->node, p);
	}
	bool any = false;
	for (int d = 0; d < w->plan.devices; d++)
		any |= w->part[d] == p;
	if (any)
		keep_grant(w, (struct nw_grant){.instance = instance, .p = p, .token = *t, .run = run});
}

/* Copies the grants that the new master knows. Other grants of the old master, also later ones, may be given to
 * another run once more. This is no fault: the run that has such a grant never wrote to the new master, and its own
 * client id disconnects it at the broker. */
static void inherit_grants(struct nw_world *w, int from, int to)
{
	for (size_t i = 0, n = w->n_grants; i < n; i++) {
		struct nw_grant g = w->grant[i];
		if (g.instance != from || hw_fencing_token_is_less(&w->redis[to].d.owner[g.p].token, &g.token))
			continue;
		g.instance = to;
		keep_grant(w, g);
	}
}

static void forget_grants(struct nw_world *w, int instance)
{
	size_t n = 0;
	for (size_t i = 0; i < w->n_grants; i++)
		if (w->grant[i].instance != instance)
			w->grant[n++] = w->grant[i];
	w->n_grants = n;
}

/* A member that renews is not removed. Clocks differ by less than a thousandth. */
void nw_oracle_removes(struct nw_world *w, const char *node, int64_t renewed)
{
	if (w->t - renewed < lease_ns(w) - lease_ns(w) / 1000)
		nw_breach(w, "2: %s is removed that renewed %.3f s ago", node, (double)(w->t - renewed) / 1e9);
}

/* --- 3: at the broker no status with a lesser token after a greater one ------------------------------------------- */

/* The Redis to which the node's link is connected answers the node's renewal. If that Redis is an old master, the
 * node cannot know the owners at the present master. Then only the broker's fence stops the node's statuses. */
void nw_oracle_begins(struct nw_world *w, const struct nw_host *h, uint64_t conn)
{
	struct nw_begun *b = &w->broker.begun[h->name];
	int instance = h->link[NW_L_CLUSTER].instance;
	b->conn = conn;
	b->instance = instance < 0 || instance == w->master ? w->master : -1;
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		b->owner[p] = w->redis[w->master].d.owner[p].token;
}

/* Rule 2 of nodes/fence.h: if Redis had given a partition to another node before the session began, the session
 * publishes nothing for that partition. */
static void check_begun(struct nw_world *w, int name, unsigned p, const struct hw_fencing_token *t)
{
	const struct nw_begun *b = &w->broker.begun[name];
	if (b->instance == w->master && hw_fencing_token_is_less(t, &b->owner[p]))
		nw_breach(w,
		          "3: %s tells of %u with (%" PRIu64 ") in a session that began after (%" PRIu64
		          " %s) was given",
		          nw_names[name], p, t->epoch, b->owner[p].epoch, b->owner[p].node);
}

/* Whether the node `name` cannot know that the claim with this token counts: at the Redis that the node uses, the
 * holder of the token has never been a member, or has become one only now. That Redis is an old master; or that Redis
 * is the present master, which was emptied, and the holder has not joined there yet (docs/nodes.md, Known limits). In
 * this world, no Sentinel reports the new master. */
static bool is_stranger_to(const struct nw_world *w, int name, const struct hw_fencing_token *t)
{
	for (int i = 0; i < w->plan.hosts; i++) {
		const struct nw_host *h = &w->host[i];
		int at = h->link[NW_L_CLUSTER].last;
		if (!h->app || h->name != name || at < 0)
			continue;
		const struct nw_member *m = &w->redis[at].d.member[nw_name_of(t->node, strlen(t->node))];
		return m->there ? at == w->master && w->t - m->joined < lease_ns(w) : !m->left;
	}
	return false;
}

void nw_oracle_status(struct nw_world *w, int name, int device, const struct hw_fencing_token *t)
{
	struct hw_fencing_token *most = &w->broker.most[w->part[device]];
	if (name >= 0)
		check_begun(w, name, w->part[device], t);
	if (hw_fencing_token_is_less(t, most) && name >= 0 && is_stranger_to(w, name, most))
		return;
	if (hw_fencing_token_is_less(t, most))
		nw_breach(w, "3: a status of (%" PRIu64 " %s) for %u after one of (%" PRIu64 " %s)", t->epoch, t->node,
		          w->part[device], most->epoch, most->node);
	else
		*most = *t;
}

/* --- 4: entries of a device alternate, (device, epoch, seq) is unique --------------------------------------------- */

void nw_oracle_entry(struct nw_world *w, int instance, const struct nw_entry *e)
{
	const struct nw_redis *r = &w->redis[instance];
	for (size_t i = r->d.n_entries; i-- > 0;) {
		const struct nw_entry *old = &r->entry[i];
		if (old->device != e->device)
			continue;
		if (old->state == e->state)
			nw_breach(w, "4: dev-%d is %s twice in redis %d", e->device, hw_state_name(e->state), instance);
		if (old->seq >= e->seq)
			nw_breach(w, "4: dev-%d has seq %" PRIu64 " after %" PRIu64, e->device, e->seq, old->seq);
		return;
	}
}

/* --- 5: every death is found in time ------------------------------------------------------------------------------ */

/* Returns the longest timeout of all hosts. */
static int64_t longest_ns(const struct nw_world *w)
{
	return (w->plan.timeout_ms + (w->plan.other_timeouts ? 700 * w->plan.hosts : 0)) * HW_NS_PER_MS;
}

/* Returns when everything must have recovered: after the last trouble, connections are made again, then a lease, a
 * grace and a timeout pass. */
static int64_t recovered(const struct nw_world *w)
{
	int64_t silence = lease_ns(w) * 12 / 5 + w->plan.keepalive_ms * 3 / 2 * HW_NS_PER_MS;
	return w->last_event + silence + longest_ns(w) + 15 * HW_NS_PER_S +
	       (w->plan.denied ? w->plan.keepalive_ms * 3 / 2 * HW_NS_PER_MS + 10 * HW_NS_PER_S : 0);
}

/* Whether no Redis has the device: Redis was emptied, or lost the device at a failover, and the owner ended before it
 * had written the device again. If the device has stopped by then, no node knows the device. */
static bool is_forgotten(const struct nw_world *w, int device)
{
	return !w->redis[w->master].d.device[device].there;
}

/* Returns when the last of device 0 and the children that prove device 0 died; INT64_MAX: one of them has not died. If
 * a goodbye of device 0 was read, both states are right, because a host may have believed the goodbye or not. */
static int64_t family_since(const struct nw_world *w)
{
	int64_t since = w->device[0].since;
	for (int c = 1; nw_is_child(w, c); c++) {
		if (w->device[c].alive)
			return INT64_MAX;
		since = since > w->device[c].since ? since : w->device[c].since;
	}
	return since;
}

static void check_deaths(struct nw_world *w)
{
	const struct nw_data *d = &w->redis[w->master].d;
	int64_t timeout = longest_ns(w);
	for (int i = 0; i < w->plan.devices; i++) {
		const struct nw_life *life = &w->device[i];
		int64_t since = i == 0 ? family_since(w) : life->since;
		if (life->alive || since == INT64_MAX)
			continue;
		int64_t from = since + timeout > recovered(w) ? since + timeout : recovered(w);
		if (w->t < from + takeover_ns(w))
			continue;
		if (is_forgotten(w, i))
			continue;
		if (d->device[i].state == HW_STATE_ONLINE || w->broker.retained[i].what == NW_K_ONLINE)
			nw_breach(w, "5: dev-%d is dead for %.2f s, and not told", i,
			          (double)(w->t - life->since) / 1e9);
	}
}

/* --- 6: no partition unowned longer than T + lease while a ready node reaches Redis ------------------------------- */

static bool is_good(const struct nw_world *w, const struct nw_host *h)
{
	return nw_host_acts(w, h) && h->cut_redis <= w->t && nw_broker_reachable(w, h) && w->redis_stands <= w->t &&
	       h->link[NW_L_CLUSTER].instance == w->master && hw_app_publisher_is_up(h->app) &&
	       hw_app_reader_is_up(h->app, 0) && !h->stopping;
}

static bool is_owned(const struct nw_world *w, unsigned p)
{
	for (int i = 0; i < w->plan.hosts; i++)
		if (nw_host_acts(w, &w->host[i]) && hw_nodes_owns(nodes_of(&w->host[i]), p))
			return true;
	return false;
}

static void check_owned(struct nw_world *w)
{
	bool good = false;
	for (int i = 0; i < w->plan.hosts; i++)
		good |= is_good(w, &w->host[i]);
	if (!good)
		w->good_since = INT64_MAX;
	else if (w->good_since == INT64_MAX)
		w->good_since = w->t;
	for (unsigned p = 0; p < HW_PARTITIONS; p++) {
		if (is_owned(w, p)) {
			w->unowned[p] = 0;
			continue;
		}
		w->unowned[p] = w->unowned[p] ? w->unowned[p] : w->t;
		int64_t from = w->unowned[p] > w->last_event ? w->unowned[p] : w->last_event;
		from = from > w->good_since ? from : w->good_since;
		if (good && w->t - from > takeover_ns(w) + 2 * lease_ns(w) + 5 * HW_NS_PER_S)
			nw_breach(w, "6: nobody owns %u for %.2f s", p, (double)(w->t - from) / 1e9);
	}
}

/* --- 7: in calm nothing moves ------------------------------------------------------------------------------------- */

void nw_oracle_moves(struct nw_world *w, struct nw_host *h, const char *what)
{
	w->moved = w->t;
	/* A gateway that only some hosts can prove may move even then: from a host where it is overdue to a host
	 * that can prove it. */
	if (w->t > w->trouble_end + w->plan.calm_ns * 3 / 4 && w->plan.differs != NW_OTHER_CHILDREN)
		nw_breach(w, "7: %s %s something in calm", nw_names[h->name], what);
}

/* --- 9: a confirmed transition is in the final stream
 * ------------------------------------------------------------------- */

static bool has_entry(const struct nw_redis *r, const struct nw_edge_seen *e)
{
	for (size_t i = r->d.n_entries; i-- > 0;) {
		const struct nw_entry *x = &r->entry[i];
		if (x->device == e->device && x->seq == e->seq && hw_fencing_token_compare(&x->token, &e->token) == 0)
			return true;
	}
	return false;
}

/* Called when a transition was confirmed. If the store had the same state already, the transition is confirmed
 * without an entry, and is not counted. If the host has lost the partition in the meantime, no host keeps the
 * transition, so it counts as forgotten at once. */
void nw_oracle_confirms(struct nw_world *w, struct nw_host *h, const struct nw_item *item)
{
	int instance = h->link[NW_L_SINK].instance;
	struct nw_edge_seen e = {.device = item->device,
	                         .host = h->index,
	                         .seq = item->to.seq,
	                         .token = item->to.token,
	                         .confirmed = w->t,
	                         .lost = INT64_MAX,
	                         .forgotten = INT64_MAX};
	if (!hw_nodes_owns(nodes_of(h), w->part[item->device]))
		e.forgotten = w->t;
	bool entered = has_entry(&w->redis[instance], &e);
	for (size_t i = 0; i < w->n_seen; i++) {
		struct nw_edge_seen *old = &w->seen[i];
		if (old->device != e.device || old->seq != e.seq)
			continue;
		if (!entered && instance == w->master && old->forgotten == INT64_MAX)
			old->forgotten = w->t; /* the transition was sent again, but an entry of another host already
			                          has the same state */
		return;
	}
	if (!entered)
		return;
	if (w->n_seen == w->cap_seen) {
		size_t cap = w->cap_seen ? 2 * w->cap_seen : 256;
		struct nw_edge_seen *seen = nw_alloc(cap * sizeof(*seen));
		if (w->n_seen)
			memcpy(seen, w->seen, w->n_seen * sizeof(*seen));
		free(w->seen);
		w->seen = seen;
		w->cap_seen = cap;
	}
	if (instance != w->master)
		e.lost = w->t;
	w->seen[w->n_seen++] = e;
}

/* Called when a transition was sent again and refused, because the store has a newer entry of another node. The host
 * then uses a greater seq; if its state differs, it makes another transition. So the refused transition counts as
 * forgotten, unless the newer entry has the same token, because that must not happen. */
void nw_oracle_surpassed(struct nw_world *w, struct nw_host *h, const struct nw_item *item)
{
	if (h->link[NW_L_SINK].instance != w->master || hw_fencing_token_compare(&item->newer, &item->to.token) == 0)
		return;
	for (size_t i = 0; i < w->n_seen; i++) {
		struct nw_edge_seen *e = &w->seen[i];
		if (e->device == item->device && e->seq == item->to.seq && e->forgotten == INT64_MAX)
			e->forgotten = w->t;
	}
}

/* The host has lost the partition, or has died: no host keeps the transition any more. */
void nw_oracle_forgets(struct nw_world *w, struct nw_host *h, const struct hw_partitions *set)
{
	for (size_t i = 0; i < w->n_seen; i++) {
		struct nw_edge_seen *e = &w->seen[i];
		if (e->host == h->index && hw_partitions_has(set, w->part[e->device]) && e->forgotten == INT64_MAX)
			e->forgotten = w->t;
	}
}

void nw_oracle_failover(struct nw_world *w)
{
	inherit_grants(w, w->master - 1, w->master);
	for (size_t i = 0; i < w->n_seen; i++) {
		w->seen[i].pending = 0;
		if (w->seen[i].lost == INT64_MAX && !has_entry(&w->redis[w->master], &w->seen[i]))
			w->seen[i].lost = w->t;
	}
}

void nw_oracle_flush(struct nw_world *w)
{
	for (int name = 0; name < NW_HOSTS; name++)
		w->broker.begun[name].instance = -1;
	w->n_seen = 0;
	forget_grants(w, w->master);
}

/* The host connects to the present master and still has the transition: it must be sent again. */
void nw_oracle_connects(struct nw_world *w, struct nw_host *h)
{
	for (size_t i = 0; i < w->n_seen; i++) {
		struct nw_edge_seen *e = &w->seen[i];
		if (e->host == h->index && e->forgotten == INT64_MAX && w->t - e->confirmed < 55 * HW_NS_PER_S)
			e->pending = w->t;
	}
}

/* While the host is suspended, or is cut off again, it cannot send: this time does not count. */
static void wait_for_edges(struct nw_world *w)
{
	for (size_t i = 0; i < w->n_seen; i++) {
		struct nw_edge_seen *e = &w->seen[i];
		const struct nw_host *h = &w->host[e->host];
		if (e->pending && e->forgotten == INT64_MAX && e->lost != INT64_MAX &&
		    (!nw_host_acts(w, h) || h->cut_redis > w->t || w->redis_stands > w->t))
			e->pending += STEPS * NW_STEP_NS;
	}
}

/* The known limits of a failover. An entry may be lost if only a lost master had it, and if its owner died, stood
 * still or lost the partition before the new master could answer. It may also be lost if it was confirmed too long
 * before the failover. */
static bool is_excused(const struct nw_edge_seen *e)
{
	return e->lost != INT64_MAX && (e->pending == 0 || e->forgotten < e->pending + 8 * HW_NS_PER_S);
}

static void check_edges(struct nw_world *w)
{
	for (size_t i = 0; i < w->n_seen; i++) {
		const struct nw_edge_seen *e = &w->seen[i];
		if (!has_entry(&w->redis[w->master], e) && !is_excused(e))
			nw_breach(w, "9: dev-%d's seq %" PRIu64 " was confirmed, and is not in the stream", e->device,
			          e->seq);
	}
}

/* --- 8: in the end one owner, and all views equal the truth ------------------------------------------------------- */

/* Whether the partition may be on its way between two hosts in the end: see nw_oracle_moves(). */
static bool may_move(const struct nw_world *w, unsigned p)
{
	return w->plan.differs == NW_OTHER_CHILDREN && p == w->part[0] && w->t - w->moved < takeover_ns(w);
}

static void check_owners(struct nw_world *w)
{
	const struct nw_data *d = &w->redis[w->master].d;
	for (unsigned p = 0; p < HW_PARTITIONS; p++) {
		int owners = 0;
		if (may_move(w, p))
			continue;
		for (int i = 0; i < w->plan.hosts; i++) {
			const struct nw_host *h = &w->host[i];
			if (!h->app || !hw_nodes_owns(nodes_of(h), p))
				continue;
			struct hw_fencing_token t = hw_nodes_fencing_token(nodes_of(h), p);
			owners++;
			if (hw_fencing_token_compare(&t, &d->owner[p].token) != 0)
				nw_breach(w, "8: in the end %s owns %u, and Redis says %s", nw_names[h->name], p,
				          d->owner[p].token.node);
			if (!hw_nodes_publishes(nodes_of(h), p))
				nw_breach(w, "8: in the end %s owns %u, and may not publish", nw_names[h->name], p);
		}
		if (owners != 1)
			nw_breach(w, "8: in the end %d own %u", owners, p);
	}
}

static const struct hw_device *device_of(const struct nw_host *h, int device)
{
	char id[16];
	int len = snprintf(id, sizeof(id), "dev-%d", device);
	const struct hw_registry *r = hw_monitor_registry(h->app->monitor);
	uint32_t i = hw_registry_find(r, id, (size_t)len);
	return i == HW_NIL ? NULL : hw_registry_at(r, i);
}

enum hw_state nw_view(const struct nw_host *h, int device)
{
	const struct hw_device *d = device_of(h, device);
	return d ? hw_device_state(d) : HW_STATE_FORGOTTEN;
}

static void check_views(struct nw_world *w, int device, enum hw_state truth)
{
	for (int i = 0; i < w->plan.hosts; i++) {
		const struct nw_host *h = &w->host[i];
		if (h->app && hw_nodes_is_member(nodes_of(h)) && nw_view(h, device) != truth)
			nw_breach(w, "8: in the end %s has dev-%d as %s", nw_names[h->name], device,
			          hw_state_name(nw_view(h, device)));
	}
}

/* Whether a Redis has exactly this state of the device. */
static bool is_stored(const struct nw_world *w, int device, uint64_t seq)
{
	bool any = false;
	for (int i = 0; i < w->instances; i++)
		any |= w->redis[i].up && seq != 0 && w->redis[i].d.device[device].seq == seq;
	return any;
}

/* No entry says that a device is to be forgotten. So a node must keep each device that it has, whatever happens to
 * its Redis. */
static void check_memory(struct nw_world *w)
{
	for (int i = 0; i < w->plan.hosts; i++) {
		struct nw_host *h = &w->host[i];
		for (int d = 0; d < w->plan.devices && h->app; d++) {
			const struct hw_device *has = device_of(h, d);
			bool knows = nw_view(h, d) == HW_STATE_ONLINE || nw_view(h, d) == HW_STATE_OFFLINE;
			if (h->knew[d] && !knows)
				nw_breach(w, "8: %s forgets dev-%d", nw_names[h->name], d);
			h->knew[d] |= knows && is_stored(w, d, has->seq);
		}
	}
}

/* P must not be greater than the seq of a state in Redis whose status the broker has never had. */
void nw_oracle_published(struct nw_world *w, int instance)
{
	const struct nw_data *d = &w->redis[instance].d;
	for (int i = 0; i < w->plan.devices; i++) {
		uint64_t p = d->published[w->part[i]];
		if (d->device[i].there && p > 0 && d->device[i].seq > w->broker.most_seq[i] && d->device[i].seq < p - 1)
			nw_breach(w, "10: the broker has no status of dev-%d as of seq %" PRIu64 ", but P is %" PRIu64,
			          i, d->device[i].seq, p - 1);
	}
}

void nw_oracle_end(struct nw_world *w)
{
	const struct nw_data *d = &w->redis[w->master].d;
	check_owners(w);
	for (int i = 0; i < w->plan.devices; i++) {
		bool lives = w->device[i].alive;
		enum hw_state truth = lives ? HW_STATE_ONLINE : HW_STATE_OFFLINE;
		if (!lives && (is_forgotten(w, i) || (i == 0 && family_since(w) == INT64_MAX)))
			continue;
		if (!d->device[i].there || d->device[i].state != truth)
			nw_breach(w, "8: in the end Redis has dev-%d as %s", i, hw_state_name(d->device[i].state));
		if (w->broker.retained[i].what != (lives ? NW_K_ONLINE : NW_K_OFFLINE))
			nw_breach(w, "8: in the end the retained status of dev-%d is %d", i,
			          (int)w->broker.retained[i].what);
		check_views(w, i, truth);
	}
	check_edges(w);
}

void nw_oracle_step(struct nw_world *w)
{
	if (w->t / NW_STEP_NS % STEPS != 0)
		return;
	wait_for_edges(w);
	check_deaths(w);
	check_owned(w);
	check_memory(w);
}

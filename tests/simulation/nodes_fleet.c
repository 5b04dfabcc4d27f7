/* SPDX-License-Identifier: MIT */
/* Models the devices: they send heartbeats, die with or without a goodbye, and come back. When the broker restarts,
 * their connections end, and they connect again soon. */
#include "nodes_world.h"

static struct nw_text *word(bool child, int d, const char *topic, const char *payload, bool genuine)
{
	char at[64];
	snprintf(at, sizeof(at), "%s/dev-%d/%s", child ? "below/dev-0" : "nodes", d, topic);
	struct nw_text *t = nw_text_new(at, payload, strlen(payload));
	t->kind = *payload ? NW_GOODBYE : NW_BEAT;
	t->device = d;
	t->genuine = genuine;
	return t;
}

bool nw_is_child(const struct nw_world *w, int d)
{
	return w->plan.family && d > 0 && d <= NW_CHILDREN && d < w->plan.devices;
}

bool nw_is_deaf(const struct nw_host *h, int d)
{
	return h->is_deaf && (h->w->plan.differs != NW_OTHER_CHILDREN || nw_is_child(h->w, d));
}

void nw_fleet_begin(struct nw_world *w)
{
	for (int d = 0; d < w->plan.devices; d++) {
		struct nw_life *life = &w->device[d];
		char id[16];
		bool child = nw_is_child(w, d);
		int len = snprintf(id, sizeof(id), "dev-%d", d);
		w->part[d] = hw_partition_of(id, (size_t)len);
		w->in_use[w->part[d]] = true;
		life->alive = true;
		life->wills = sim_chance(&w->random, 0.5);
		life->since = w->t;
		life->interval = w->plan.timeout_ms * HW_NS_PER_MS / 3;
		life->next_beat = w->t + sim_below(&w->random, life->interval);
		life->beat = word(child, d, "heartbeat", "", true);
		life->goodbye = word(child, d, "status", "{\"online\":false}", true);
		life->false_goodbye = word(child, d, "status", "{\"online\":false}", false);
	}
}

static void die(struct nw_world *w, int d)
{
	struct nw_life *life = &w->device[d];
	w->count.deaths++;
	bool says = life->wills && sim_chance(&w->random, 0.6);
	nw_trace(w, "dev-%d (%u) dies%s", d, w->part[d], says ? " with a goodbye" : "");
	if (says)
		nw_broker_hears(w, life->goodbye);
}

void nw_fleet_turn(struct nw_world *w, int d)
{
	struct nw_life *life = &w->device[d];
	life->alive = !life->alive;
	life->since = w->t;
	life->next_beat = w->t;
	if (life->alive)
		nw_trace(w, "dev-%d (%u) is back", d, w->part[d]);
	else
		die(w, d);
}

void nw_fleet_torn(struct nw_world *w, bool wills)
{
	for (int d = 0; d < w->plan.devices; d++) {
		struct nw_life *life = &w->device[d];
		if (!life->alive)
			continue;
		if (wills && life->wills)
			nw_broker_hears(w, life->false_goodbye);
		life->next_beat = w->t + sim_between(&w->random, 20, w->plan.grace_ms * 3 / 4) * HW_NS_PER_MS;
	}
}

void nw_fleet_step(struct nw_world *w)
{
	for (int d = 0; d < w->plan.devices; d++) {
		struct nw_life *life = &w->device[d];
		if (!life->alive || w->t < life->next_beat)
			continue;
		nw_broker_hears(w, life->beat);
		life->next_beat = w->t + life->interval;
	}
	if (w->t < w->trouble_end + w->plan.calm_ns / 2 && sim_chance(&w->random, w->plan.turns * NW_STEP_NS / 1e9))
		nw_fleet_turn(w, (int)sim_below(&w->random, w->plan.devices));
}

void nw_fleet_fini(struct nw_world *w)
{
	for (int d = 0; d < NW_DEVICES; d++) {
		nw_text_unref(w->device[d].beat);
		nw_text_unref(w->device[d].goodbye);
		nw_text_unref(w->device[d].false_goodbye);
	}
}

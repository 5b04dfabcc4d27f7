/* SPDX-License-Identifier: MIT */
/*
 * Blindness. While a node is blind, its pending devices do not become down.
 *
 * If heartwheel as a whole is blind, that is an incident. It begins when one of these conditions has lasted for
 * blind_after: no monitor has renewed its sight record; a group is deaf; Redis does not answer. While Redis cannot be
 * reached, no sight record can be read, so that time does not count as time without a renewal.
 */
#include <string.h>

#include "incident/incidents_priv.h"

/* Whether a new node takes the place of `a`, and not that of `b`. The new node takes the place of the node whose last
 * report is older. If both reports are of the same time, the new node takes the place of a blind node; of two blind
 * nodes, of the one that has been blind for longer. */
static bool leaves_before(const struct hw_incident_node *a, const struct hw_incident_node *b)
{
	if (a->reported != b->reported)
		return a->reported < b->reported;
	return a->blind && (!b->blind || a->since < b->since);
}

/* Adds a node. If all places are taken, the new node takes the place of another one. The devices of the old node then
 * wait for the new node. The new node starts with the time for which the old one has seen the fleet. */
static struct hw_incident_node *add_node(struct hw_incidents *e, const char *name)
{
	struct hw_incident_node *n = &e->nodes[0];
	int64_t seen = e->now;
	if (e->n_nodes < HW_INCIDENT_NODES) {
		n = &e->nodes[e->n_nodes++];
	} else {
		for (struct hw_incident_node *k = n; k < e->nodes + e->n_nodes; k++)
			if (leaves_before(k, n))
				n = k;
		seen = hw_blind_seen(e, (unsigned)(n - e->nodes));
	}
	*n = (struct hw_incident_node){.reported = e->now, .blind_ms = e->now - seen};
	memcpy(n->name, name, strlen(name) + 1);
	return n;
}

static struct hw_incident_node *find_node(struct hw_incidents *e, const char *name)
{
	for (size_t k = 0; k < e->n_nodes; k++)
		if (strcmp(e->nodes[k].name, name) == 0)
			return &e->nodes[k];
	return strlen(name) < sizeof(e->nodes->name) ? add_node(e, name) : NULL;
}

unsigned hw_blind_node(struct hw_incidents *e, const char *name)
{
	struct hw_incident_node *n = name ? find_node(e, name) : NULL;
	return n ? (unsigned)(n - e->nodes) : HW_INCIDENT_NODES;
}

int64_t hw_blind_seen(const struct hw_incidents *e, unsigned node)
{
	if (node >= e->n_nodes)
		return e->now;
	const struct hw_incident_node *n = &e->nodes[node];
	return (n->blind ? n->since : e->now) - n->blind_ms;
}

void hw_incidents_sight(struct hw_incidents *e, struct hw_now now, const char *node, bool blind)
{
	hw_incidents_tick(e, now);
	struct hw_incident_node *n = find_node(e, node);
	if (n)
		n->reported = e->now;
	if (!n || n->blind == blind)
		return;
	if (n->blind)
		n->blind_ms += e->now - n->since;
	n->blind = blind;
	n->since = e->now;
}

int hw_incidents_group(struct hw_incidents *e, struct hw_now now, const char *group, uint64_t online, uint64_t offline,
                       int64_t deaf_since_ms)
{
	hw_incidents_tick(e, now);
	struct hw_incident_group *g = hw_incident_group(e, group);
	if (!g)
		return e->failed;
	g->online = online;
	g->offline = offline;
	if (deaf_since_ms == 0)
		g->deaf_at = 0;
	else if (g->deaf_at == 0) /* of another machine's clock: at most the present time */
		g->deaf_at = deaf_since_ms < e->now && deaf_since_ms > 0 ? deaf_since_ms : e->now;
	return 0;
}

void hw_incidents_sight_renewed(struct hw_incidents *e, struct hw_now now)
{
	hw_incidents_tick(e, now);
	e->sight_at = e->now;
}

void hw_incidents_redis(struct hw_incidents *e, struct hw_now now, bool up)
{
	hw_incidents_tick(e, now);
	if (up == (e->redis_at == 0))
		return;
	e->redis_at = up ? 0 : e->now;
	e->sight_at = e->now;
}

/* Opens or closes the incident of one cause. */
static void follow(struct hw_incidents *e, struct hw_incident **i, int64_t since, struct hw_incident_group *g,
                   const char *cause)
{
	bool is = since > 0 && e->conf.blind_after_ms > 0 && e->now - since >= e->conf.blind_after_ms;
	if (is && !*i) {
		*i = hw_incident_open(e, HW_INCIDENT_BLIND, g, NULL, cause);
		if (*i)
			(*i)->since_ms = since;
	} else if (*i && since == 0) {
		hw_incident_end(e, *i, HW_INCIDENT_CLOSED, NULL); /* that clears *i */
	}
}

/* Returns since when no monitor has renewed its sight record; 0: one has renewed it within blind_after. */
static int64_t not_renewed_since(const struct hw_incidents *e)
{
	int64_t after = e->conf.blind_after_ms;
	return after == 0 || e->redis_at || e->now - e->sight_at < after ? 0 : e->sight_at;
}

void hw_blind_step(struct hw_incidents *e)
{
	follow(e, &e->blind_monitor, not_renewed_since(e), NULL, "monitor");
	follow(e, &e->blind_redis, e->redis_at, NULL, e->conf.no_redis ? "state" : "redis");
	for (struct hw_incident_group *g = e->all_groups; g; g = g->next)
		follow(e, &g->deaf, g->deaf_at, g, "deaf");
}

static int64_t sooner(int64_t at, int64_t since, const struct hw_incidents *e)
{
	int64_t end = since + e->conf.blind_after_ms;
	return since > 0 && end > e->now && end < at ? end : at;
}

int64_t hw_blind_due(const struct hw_incidents *e)
{
	int64_t at = HW_DUE_NEVER;
	if (e->conf.blind_after_ms == 0)
		return at;
	at = sooner(at, e->redis_at ? 0 : e->sight_at, e);
	at = sooner(at, e->redis_at, e);
	for (const struct hw_incident_group *g = e->all_groups; g; g = g->next)
		at = sooner(at, g->deaf_at, e);
	return at;
}

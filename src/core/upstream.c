/* SPDX-License-Identifier: MIT */
/* See upstream.h. */
#include "upstream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define INDEXED_FROM 16 /* with fewer topics, an index would not be faster */

void hw_upstream_fini(struct hw_upstream *u)
{
	hw_filter_index_fini(&u->topics);
	free(u->part);
	for (size_t k = 0; k < u->n; k++) {
		free(u->value[k].topic);
		free(u->value[k].last);
	}
	free(u->value);
	*u = (struct hw_upstream){0};
}

/* Compares a payload with the usual value. A condition without a member name compares the whole payload, or the member
 * `state` of a JSON object. */
static bool is_usual(const struct hw_while *w, const char *payload, size_t len)
{
	if (!w->member && len == strlen(w->value) && memcmp(payload, w->value, len) == 0)
		return true;
	return hw_payload_member_is(payload, len, w->member ? w->member : "state", w->value) > 0;
}

static void judge(struct hw_upstream_value *v, const struct hw_groups *groups)
{
	v->differs = v->last && !is_usual(&groups->all[v->of]->whiles[v->index], v->last, v->last_len);
}

/* If there is no memory, the value counts as not received. */
static void keep(struct hw_upstream_value *v, const char *payload, size_t len)
{
	free(v->last);
	v->last = NULL;
	v->last_len = len;
	if (len == 0)
		return;
	v->last = malloc(len);
	if (v->last)
		memcpy(v->last, payload, len);
}

/* What a new table is made of. */
struct making {
	struct hw_upstream *u;
	const struct hw_upstream *old;
	struct hw_filter_index old_topics;
	const struct hw_groups *groups;
	struct hw_filter_index filters; /* the heartbeat filters of all groups of the file that have conditions
	                                 * (`while`) */
	uint16_t group;                 /* the retired group whose conditions are collected */
	bool *in_file;                  /* owned; by group */
	int rc;
};

struct known {
	const struct hw_upstream *u;
	const struct hw_upstream_value *value;
};

static bool is_known(void *arg, size_t i)
{
	struct known *k = arg;
	k->value = &k->u->value[i];
	return k->value->last != NULL;
}

static int add_value(struct making *m, uint16_t group, uint16_t of, uint16_t index)
{
	struct hw_upstream *u = m->u;
	const char *topic = m->groups->all[of]->whiles[index].topic;
	if (u->n == u->cap) {
		size_t cap = u->cap ? 2 * u->cap : 16;
		struct hw_upstream_value *value = reallocarray(u->value, cap, sizeof(*value));
		if (!value)
			return -ENOMEM;
		u->value = value;
		u->cap = cap;
	}
	struct hw_upstream_value *v = &u->value[u->n];
	*v = (struct hw_upstream_value){
		.group = group, .of = of, .index = index, .topic = strdup(topic), .topic_len = strlen(topic)};
	if (!v->topic)
		return -ENOMEM;
	u->n++;
	struct known old = {m->old, NULL};
	if (hw_filter_index_equal(&m->old_topics, topic, is_known, &old)) {
		keep(v, old.value->last, old.value->last_len);
		v->is_old = old.value->is_old;
		v->is_live = old.value->is_live;
		v->renewed = old.value->renewed;
		v->missed = old.value->missed;
	}
	judge(v, m->groups);
	return 0;
}

static int add_values(struct making *m, uint16_t group, uint16_t of)
{
	struct hw_upstream_part *part = &m->u->part[group];
	int rc = 0;
	if (part->n == 0)
		part->first = (uint32_t)m->u->n;
	for (size_t j = 0; j < m->groups->all[of]->n_whiles && rc == 0; j++)
		rc = add_value(m, group, of, (uint16_t)j);
	part->n = (uint32_t)m->u->n - part->first;
	return rc;
}

/* Gives the retired group the conditions of a group that has a filter of the retired group. */
static bool inherit(void *arg, size_t of)
{
	struct making *m = arg;
	const struct hw_upstream_part *part = &m->u->part[m->group];
	for (size_t k = part->first; k < part->first + part->n; k++)
		if (m->u->value[k].of == of)
			return false;
	m->rc = add_values(m, m->group, (uint16_t)of);
	return m->rc != 0;
}

static void add_retired(struct making *m)
{
	for (size_t k = 0; k < m->groups->n; k++) {
		const struct hw_group *g = m->groups->all[k];
		m->group = (uint16_t)k;
		for (size_t j = 0; j < g->n_heartbeat && !m->in_file[k] && m->rc == 0; j++)
			hw_filter_index_equal(&m->filters, g->heartbeat[j].filter, inherit, m);
	}
}

static void add_group(struct making *m, uint16_t group)
{
	const struct hw_group *g = m->groups->all[group];
	m->in_file[group] = true;
	m->rc = m->rc ? m->rc : add_values(m, group, group);
	if (m->groups->n == m->groups->n_order || g->n_whiles == 0)
		return;
	for (size_t j = 0; j < g->n_heartbeat && m->rc == 0; j++)
		m->rc = hw_filter_index_add(&m->filters, g->heartbeat[j].filter, group);
}

int hw_upstream_make(struct hw_upstream *u, const struct hw_upstream *old, const struct hw_groups *groups)
{
	struct making m = {.u = u, .old = old, .groups = groups};
	*u = (struct hw_upstream){.part = calloc(groups->n + 1, sizeof(*u->part)),
	                          .n_parts = groups->n,
	                          .asking = old->asking,
	                          .renewing = old->renewing,
	                          .in_doubt = old->in_doubt,
	                          .after = old->after};
	m.in_file = calloc(groups->n + 1, sizeof(*m.in_file));
	m.rc = u->part && m.in_file ? 0 : -ENOMEM;
	for (size_t i = 0; i < old->n && m.rc == 0; i++)
		m.rc = hw_filter_index_add(&m.old_topics, old->value[i].topic, i);
	for (size_t k = 0; k < groups->n_order && m.rc == 0; k++)
		add_group(&m, groups->order[k]);
	if (m.rc == 0)
		add_retired(&m);
	for (size_t i = 0; u->n >= INDEXED_FROM && i < u->n && m.rc == 0; i++)
		m.rc = hw_filter_index_add(&u->topics, u->value[i].topic, i);
	hw_filter_index_fini(&m.old_topics);
	hw_filter_index_fini(&m.filters);
	free(m.in_file);
	if (m.rc)
		hw_upstream_fini(u);
	return m.rc;
}

/* A message on the topic of some values. */
struct arrival {
	struct hw_upstream *u;
	const struct hw_groups *groups;
	const struct hw_message *msg;
	bool any, awaited;
};

static bool is_same(const struct hw_upstream_value *v, const struct hw_message *msg)
{
	return v->last && v->last_len == msg->payload_len && memcmp(v->last, msg->payload, v->last_len) == 0;
}

static bool take(void *arg, size_t i)
{
	struct arrival *a = arg;
	struct hw_upstream_value *v = &a->u->value[i];
	const struct hw_message *msg = a->msg;
	if (v->topic_len != msg->topic_len || memcmp(v->topic, msg->topic, v->topic_len) != 0)
		return false;
	bool renewal = a->u->asking && a->u->renewing && v->is_old;
	bool answer = msg->retained && (renewal || v->missed);
	a->any = true;
	a->awaited |= renewal || (answer && v->renewed) || (a->u->asking && !a->u->renewing);
	a->u->in_doubt |= a->u->asking && !v->is_old && msg->retained && !is_same(v, msg);
	v->is_old = v->missed = false;
	if (answer && v->is_live && v->last && !is_same(v, msg))
		return false;
	keep(v, msg->payload, msg->payload_len);
	judge(v, a->groups);
	v->is_live = !msg->retained;
	v->renewed = v->last && (answer || v->renewed);
	return false;
}

bool hw_upstream_take(struct hw_upstream *u, const struct hw_groups *groups, const struct hw_message *msg,
                      bool *awaited)
{
	struct arrival a = {u, groups, msg, false, false};
	if (u->topics.n_entries > 0)
		hw_filter_index_topic(&u->topics, msg->topic, msg->topic_len, take, &a);
	else
		for (size_t i = 0; i < u->n; i++)
			take(&a, i);
	*awaited = a.awaited;
	return a.any;
}

void hw_upstream_ask(struct hw_upstream *u)
{
	u->asking = true;
	u->renewing = false;
	u->after = UINT64_MAX;
	for (size_t k = 0; k < u->n; k++)
		u->value[k].is_old = true;
}

bool hw_upstream_renew(struct hw_upstream *u)
{
	if (u->n == 0 || u->asking)
		return false;
	hw_upstream_ask(u);
	u->renewing = true;
	u->in_doubt = false;
	return true;
}

void hw_upstream_granted(struct hw_upstream *u, uint64_t sent)
{
	u->after = sent;
}

/* Whether a value is kept although the broker did not send it again. */
static bool keeps_without_answer(const struct hw_upstream *u, struct hw_upstream_value *v)
{
	bool keeps = u->renewing && !(v->renewed && v->missed);
	if (!keeps)
		return false;
	v->missed = true;
	v->is_old = v->is_live = false;
	return true;
}

bool hw_upstream_barrier(struct hw_upstream *u, const struct hw_groups *groups, uint64_t number)
{
	bool any = false;
	if (!u->asking || number <= u->after)
		return false;
	u->asking = false;
	for (size_t k = 0; k < u->n; k++) {
		struct hw_upstream_value *v = &u->value[k];
		v->is_old = v->is_old && v->last;
		if (!v->is_old || keeps_without_answer(u, v))
			continue;
		keep(v, NULL, 0);
		judge(v, groups);
		v->renewed = v->missed = false;
		any = true;
	}
	return any;
}

const struct hw_upstream_value *hw_upstream_away(const struct hw_upstream *u, size_t group)
{
	if (!hw_upstream_has(u, group))
		return NULL;
	const struct hw_upstream_value *v = &u->value[u->part[group].first], *end = v + u->part[group].n;
	while (v < end && !v->differs)
		v++;
	return v < end ? v : NULL;
}

bool hw_upstream_has(const struct hw_upstream *u, size_t group)
{
	return group < u->n_parts && u->part[group].n > 0;
}

static bool any_unknown(const struct hw_upstream_value *value, size_t n)
{
	size_t i = 0;
	while (i < n && value[i].last)
		i++;
	return i < n;
}

bool hw_upstream_is_unknown(const struct hw_upstream *u, size_t group)
{
	return hw_upstream_has(u, group) && any_unknown(&u->value[u->part[group].first], u->part[group].n);
}

bool hw_upstream_any_unknown(const struct hw_upstream *u)
{
	return any_unknown(u->value, u->n);
}

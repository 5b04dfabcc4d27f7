/* SPDX-License-Identifier: MIT */
/* See upstream.h. */
#include "upstream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void hw_upstream_fini(struct hw_upstream *u)
{
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
	v->differs = v->last && !is_usual(&groups->all[v->group]->whiles[v->index], v->last, v->last_len);
}

/* Without memory, the value counts as not received. */
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

static size_t count(const struct hw_groups *groups)
{
	size_t n = 0;
	for (size_t k = 0; k < groups->n_order; k++)
		n += groups->all[groups->order[k]]->n_whiles;
	return n;
}

int hw_upstream_make(struct hw_upstream *u, const struct hw_upstream *old, const struct hw_groups *groups)
{
	*u = (struct hw_upstream){
		.value = calloc(count(groups) + 1, sizeof(*u->value)), .asking = old->asking, .after = old->after};
	if (!u->value)
		return -ENOMEM;
	for (size_t k = 0; k < groups->n_order; k++) {
		const struct hw_group *g = groups->all[groups->order[k]];
		for (size_t j = 0; j < g->n_whiles; j++) {
			struct hw_upstream_value *v = &u->value[u->n];
			*v = (struct hw_upstream_value){.group = groups->order[k],
			                                .index = (uint16_t)j,
			                                .topic = strdup(g->whiles[j].topic),
			                                .topic_len = strlen(g->whiles[j].topic)};
			if (!v->topic) {
				hw_upstream_fini(u);
				return -ENOMEM;
			}
			u->n++;
			for (size_t i = 0; i < old->n && !v->last; i++) {
				if (!old->value[i].last || strcmp(old->value[i].topic, v->topic) != 0)
					continue;
				keep(v, old->value[i].last, old->value[i].last_len);
				v->is_old = old->value[i].is_old;
			}
			judge(v, groups);
		}
	}
	return 0;
}

bool hw_upstream_take(struct hw_upstream *u, const struct hw_groups *groups, const char *topic, size_t len,
                      const void *payload, size_t payload_len)
{
	bool any = false;
	for (size_t k = 0; k < u->n; k++) {
		struct hw_upstream_value *v = &u->value[k];
		if (v->topic_len != len || memcmp(v->topic, topic, len) != 0)
			continue;
		keep(v, payload, payload_len);
		judge(v, groups);
		v->is_old = false;
		any = true;
	}
	return any;
}

void hw_upstream_ask(struct hw_upstream *u)
{
	u->asking = true;
	u->after = UINT64_MAX;
	for (size_t k = 0; k < u->n; k++)
		u->value[k].is_old = true;
}

void hw_upstream_granted(struct hw_upstream *u, uint64_t sent)
{
	u->after = sent;
}

bool hw_upstream_barrier(struct hw_upstream *u, const struct hw_groups *groups, uint64_t number)
{
	bool any = false;
	if (!u->asking || number <= u->after)
		return false;
	u->asking = false;
	for (size_t k = 0; k < u->n; k++) {
		struct hw_upstream_value *v = &u->value[k];
		if (!v->is_old || !v->last)
			continue;
		keep(v, NULL, 0);
		judge(v, groups);
		any = true;
	}
	return any;
}

bool hw_upstream_is_away(const struct hw_upstream *u, uint16_t group, uint16_t *index)
{
	for (size_t k = 0; k < u->n; k++) {
		if (u->value[k].group != group || !u->value[k].differs)
			continue;
		*index = u->value[k].index;
		return true;
	}
	return false;
}

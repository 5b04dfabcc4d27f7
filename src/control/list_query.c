/* SPDX-License-Identifier: MIT */
/* See list_query.h. */
#include "control/list_query.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "control/levels.h"
#include "http/query.h"

static const char *set_limit(struct hw_list_query *q, const struct hw_param *p)
{
	return hw_query_limit(p->value, p->value_len, &q->limit);
}

static const char *set_state(struct hw_list_query *q, const struct hw_param *p)
{
	enum hw_state s;
	if (hw_state_parse(p->value, &s) < 0 || (s != HW_STATE_ONLINE && s != HW_STATE_OFFLINE && s != HW_STATE_UNSEEN))
		return "'state' must be online, offline or unseen";
	q->state = (int)s;
	return NULL;
}

static const char *set_group(struct hw_list_query *q, const struct hw_param *p)
{
	q->group = hw_groups_find(q->groups, p->value);
	return q->group < 0 ? "no such group" : NULL;
}

static const char *set_prefix(struct hw_list_query *q, const struct hw_param *p)
{
	if (p->value_len > HW_ID_MAX)
		return "'prefix' is longer than any id";
	memcpy(q->prefix, p->value, p->value_len);
	q->prefix_len = p->value_len;
	return NULL;
}

static const char *set_search(struct hw_list_query *q, const struct hw_param *p)
{
	if (p->value_len > HW_ID_MAX)
		return "'search' is longer than any id";
	for (size_t i = 0; i < p->value_len; i++)
		q->search[i] = hw_lower(p->value[i]);
	q->search_len = p->value_len;
	hw_label_filter_search(&q->label, q->search);
	return NULL;
}

static const char *set_label(struct hw_list_query *q, const struct hw_param *p)
{
	return hw_label_filter_label(&q->label, p->value) < 0 ? "'label' must be NAME=GLOB, such as site=nor*" : NULL;
}

static const char *set_parent(struct hw_list_query *q, const struct hw_param *p)
{
	if (!hw_id_valid(p->value, p->value_len))
		return "'parent' must be the id of a device";
	memcpy(q->parent, p->value, p->value_len);
	q->parent_len = p->value_len;
	return NULL;
}

static const char *set_sort(struct hw_list_query *q, const struct hw_param *p)
{
	static const char *const names[] = {"known", "id", "newest", "oldest"};
	size_t len = p->value_len;
	q->back = len > 5 && strcmp(p->value + len - 5, "-back") == 0;
	len -= q->back ? 5 : 0;
	for (size_t i = q->back ? 1 : 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == len && strncmp(p->value, names[i], len) == 0) {
			q->order = (enum hw_order)i;
			return NULL;
		}
	return "'sort' must be known, id, id-back, newest, newest-back, oldest or oldest-back";
}

static const char *set_level(struct hw_list_query *q, const struct hw_param *p)
{
	char *end;
	unsigned long level = strtoul(p->value, &end, 10);
	if (*end || *p->value < '1' || *p->value > '9' || level > HW_LEVEL_DEEP)
		return "'level' must be a number from 1 to 16";
	q->level = (unsigned)level;
	return NULL;
}

static const char *set_after(struct hw_list_query *q, const struct hw_param *p)
{
	q->after_len = p->value_len <= HW_ID_MAX ? p->value_len : 0;
	memcpy(q->after, p->value, q->after_len);
	return q->after_len ? NULL : "'after' must be the 'next' of an earlier page";
}

const char *hw_list_query_read(struct hw_list_query *q, const struct hw_groups *groups, const char *query)
{
	static const struct {
		const char *key;
		const char *(*set)(struct hw_list_query *q, const struct hw_param *p);
	} keys[] = {
		{"state", set_state},   {"group", set_group}, {"prefix", set_prefix}, {"search", set_search},
		{"sort", set_sort},     {"after", set_after}, {"limit", set_limit},   {"level", set_level},
		{"parent", set_parent}, {"label", set_label},
	};
	const size_t n_keys = sizeof(keys) / sizeof(keys[0]);
	struct hw_param p;
	int rc;

	*q = (struct hw_list_query){.groups = groups, .state = -1, .group = -1, .limit = HW_LIMIT_DEFAULT};
	while ((rc = hw_query_next(&query, &p)) > 0) {
		size_t i = 0;
		while (i < n_keys && strcmp(p.key, keys[i].key) != 0)
			i++;
		if (i == n_keys)
			return "unknown key in the query: the keys are state, group, prefix, search, label, parent, "
			       "sort, after, limit and level";
		const char *why = p.value_len ? keys[i].set(q, &p) : NULL;
		if (why)
			return why;
	}
	return rc == -EINVAL ? "the query is malformed" : rc < 0 ? "a part of the query is too long" : NULL;
}

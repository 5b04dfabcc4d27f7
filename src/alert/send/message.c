/* SPDX-License-Identifier: MIT */
/* See message.h. */
#include "alert/send/message.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "alert/send/send.h"
#include "heartwheel/json.h"

#define WALL_MAX INT64_C(253402300799999) /* the end of the year 9999 */

static const char *text_of(const cJSON *object, const char *name)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
	return text ? text : "";
}

/* Returns the number of a member, from 0 to `max`; 0: it is anything else. */
static int64_t number_of(const cJSON *object, const char *name, int64_t max)
{
	const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, name);
	if (!cJSON_IsNumber(v) || !(v->valuedouble >= 0) || v->valuedouble > (double)max)
		return 0;
	return (int64_t)v->valuedouble;
}

static bool is_word(const char *text)
{
	for (; *text; text++)
		if (*text <= ' ' || *text > '~')
			return false;
	return true;
}

int hw_send_incident_parse(struct hw_send_incident *i, const cJSON *object)
{
	const char *id = text_of(object, "id");
	size_t len = strlen(id);
	*i = (struct hw_send_incident){.state = text_of(object, "state"),
	                               .group = text_of(object, "group"),
	                               .device = text_of(object, "device"),
	                               .by = text_of(object, "by"),
	                               .note = text_of(object, "note"),
	                               .sentence = text_of(object, "sentence"),
	                               .labels = cJSON_GetObjectItemCaseSensitive(object, "labels"),
	                               .devices = cJSON_GetObjectItemCaseSensitive(object, "devices"),
	                               .since_ms = number_of(object, "since_ms", WALL_MAX),
	                               .opened_ms = number_of(object, "opened_ms", WALL_MAX),
	                               .closed_ms = number_of(object, "closed_ms", WALL_MAX),
	                               .down = (uint64_t)number_of(object, "down", UINT32_MAX),
	                               .unreachable = (uint64_t)number_of(object, "unreachable", UINT32_MAX)};
	const char *name = text_of(object, "name");
	i->name = strcmp(name, i->device) == 0 ? "" : name;
	if (len == 0 || len > HW_INCIDENT_ID || hw_incident_kind_parse(text_of(object, "kind"), &i->kind))
		return -EINVAL;
	for (size_t k = 0; k < len; k++)
		if (!isalnum((unsigned char)id[k]))
			return -EINVAL;
	memcpy(i->id, id, len + 1);
	return 0;
}

static int parse_news(struct hw_send_news *n, const cJSON *object)
{
	const char *what = text_of(object, "what");
	if (strcmp(what, "test") == 0)
		n->what = HW_NEWS_NONE;
	else if (hw_news_parse(what, &n->what) || n->what == HW_NEWS_NONE)
		return -EINVAL;
	return hw_send_incident_parse(&n->incident, cJSON_GetObjectItemCaseSensitive(object, "incident"));
}

/* Returns the number of further news in "more", which is a number, or an object with a number for each kind of news. */
static uint64_t more_of(const cJSON *tree)
{
	const cJSON *more = cJSON_GetObjectItemCaseSensitive(tree, "more"), *one;
	uint64_t n = (uint64_t)number_of(tree, "more", UINT32_MAX);
	if (cJSON_IsObject(more))
		cJSON_ArrayForEach(one, more) n += (uint64_t)number_of(more, one->string, UINT32_MAX);
	return n;
}

void hw_send_message_fini(struct hw_send_message *m)
{
	cJSON_Delete(m->tree);
	free(m->news);
	*m = (struct hw_send_message){0};
}

int hw_send_message_parse(struct hw_send_message *m, const char *json, size_t len)
{
	*m = (struct hw_send_message){0};
	if (len > HW_SEND_MESSAGE_MAX || !hw_json_object_valid(json, len))
		return -EINVAL;
	m->tree = hw_json_tree(json, len);
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(m->tree, "news"), *one;
	int n = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : 0;
	if (n == 0 || n > HW_INCIDENT_NEWS) {
		hw_send_message_fini(m);
		return -EINVAL;
	}
	m->key = text_of(m->tree, "message");
	m->key = is_word(m->key) ? m->key : "";
	m->node = text_of(m->tree, "node");
	m->summary = text_of(m->tree, "summary");
	m->time_ms = number_of(m->tree, "time_ms", WALL_MAX);
	m->more = more_of(m->tree);
	m->news = calloc((size_t)n, sizeof(*m->news));
	int rc = m->news ? 0 : -ENOMEM;
	cJSON_ArrayForEach(one, list) if (rc == 0) rc = parse_news(&m->news[m->n++], one);
	if (rc)
		hw_send_message_fini(m);
	return rc;
}

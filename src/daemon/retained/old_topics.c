/* SPDX-License-Identifier: MIT */
/* See old_topics.h. */
#include "old_topics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "retained_priv.h"

#define OLD_TOPICS_MAX 2000000

static bool is_ours(uint64_t publish_id)
{
	return (publish_id & ~(HW_OLD_TOPIC_PUBLISH_ID - 1)) == HW_OLD_TOPIC_PUBLISH_ID;
}

void hw_old_topics_fini(struct hw_old_topics *o)
{
	for (size_t k = 0; k < o->n; k++)
		free(o->waiting[(o->head + k) % o->cap].topic);
	free(o->waiting);
	for (size_t k = 0; k < HW_OLD_TOPICS_WINDOW; k++)
		free(o->flight[k].topic);
}

/* --- the topics that wait ----------------------------------------------------------------------------------------- */

static int grow(struct hw_old_topics *o)
{
	size_t cap = o->cap ? 2 * o->cap : 64;
	struct hw_old_topic *grown = malloc(cap * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	for (size_t k = 0; k < o->n; k++)
		grown[k] = o->waiting[(o->head + k) % o->cap];
	free(o->waiting);
	o->waiting = grown;
	o->head = 0;
	o->cap = cap;
	return 0;
}

static int push(struct hw_old_topics *o, struct hw_old_topic e)
{
	if (o->n == o->cap && (o->n >= OLD_TOPICS_MAX || grow(o)))
		return -ENOMEM;
	o->waiting[(o->head + o->n++) % o->cap] = e;
	return 0;
}

static struct hw_old_topic pop(struct hw_old_topics *o)
{
	struct hw_old_topic e = o->waiting[o->head];
	o->head = (o->head + 1) % o->cap;
	o->n--;
	return e;
}

static void add(struct hw_app *a, const struct hw_device *d, const struct hw_group *group, bool swept)
{
	char topic[HW_TOPIC_MAX + 1];
	struct hw_id id = hw_device_id(d);
	int len = hw_group_status_topic(group, id.text, id.len, topic, sizeof(topic));
	if (len <= 0)
		return;
	struct hw_old_topic e = {.topic = calloc(1, (size_t)len + id.len + 2), .swept = swept};
	if (e.topic) {
		memcpy(e.topic, topic, (size_t)len);
		memcpy(e.topic + len + 1, id.text, id.len);
	}
	if (e.topic && push(&a->retained->old, e) == 0)
		return;
	free(e.topic);
	hw_log_limited(
		a->log, HW_LIMIT_STATUS_REFUSED, HW_LOG_WARNING,
		"too many retained statuses are out of date: the status on %.120s stays at the broker; remove it, "
		"because without Redis the next start may take the device's state from it",
		topic);
}

void hw_old_topics_moved(struct hw_app *a, struct hw_now now, struct hw_ref device, uint16_t group)
{
	const struct hw_device *d = hw_app_device(a, device);
	if (!d)
		return;
	hw_app_set_status_pending(a, now, device);
	add(a, d, hw_monitor_groups(a->monitor)->all[group], false);
}

/* Returns whether the settings have the group with another status topic. */
static bool changes(const struct hw_group *g, const struct hw_settings *to)
{
	for (size_t k = 0; k < to->n_groups; k++)
		if (strcmp(to->groups[k].name, g->name) == 0)
			return g->status.filter && strcmp(to->groups[k].status, g->status.filter) != 0;
	return false;
}

void hw_old_topics_reload(struct hw_app *a, const struct hw_settings *to)
{
	const struct hw_registry *r = hw_monitor_registry(a->monitor);
	const struct hw_groups *g = hw_monitor_groups(a->monitor);
	for (size_t k = 0; k < g->n && to->store == HW_STORE_MEMORY; k++) {
		uint32_t bound = changes(g->all[k], to) ? hw_registry_bound(r) : 0;
		for (uint32_t i = 0; i < bound; i++) {
			const struct hw_device *d = hw_registry_at(r, i);
			if (d && d->group == k)
				add(a, d, g->all[k], true);
		}
	}
}

/* --- removing ----------------------------------------------------------------------------------------------------- */

static const struct hw_device *device_of(const struct hw_app *a, const struct hw_old_topic *e)
{
	const char *id = e->topic + strlen(e->topic) + 1;
	uint32_t i = hw_registry_find(hw_monitor_registry(a->monitor), id, strlen(id));
	return i == HW_NIL ? NULL : hw_registry_at(hw_monitor_registry(a->monitor), i);
}

/* Whether the status may be removed. Returns false if the device has returned to the topic. Also returns false if the
 * empty message that removes the status would arrive as a heartbeat. */
static bool is_old(struct hw_app *a, const struct hw_old_topic *e, const struct hw_device *d)
{
	const struct hw_groups *g = hw_monitor_groups(a->monitor);
	char topic[HW_TOPIC_MAX + 1];
	uint16_t group;
	const char *id;
	size_t id_len, len = strlen(e->topic);
	const struct hw_topic *by;
	struct hw_id of = d ? hw_device_id(d) : (struct hw_id){"", 0};
	if (d && hw_group_status_topic(hw_monitor_group_of(a->monitor, d), of.text, of.len, topic, sizeof(topic)) > 0 &&
	    strcmp(topic, e->topic) == 0)
		return false;
	enum hw_match match = hw_groups_match(g, e->topic, len, true, &group, &id, &id_len, &by);
	return match == HW_MATCH_CLEARING || match == HW_MATCH_NONE || match == HW_MATCH_IGNORED;
}

/* Whether the device's present status is not at the broker yet. */
static bool must_wait(const struct hw_app *a, const struct hw_old_topic *e, const struct hw_device *d)
{
	const struct hw_retained_sink *s = &a->retained->status;
	return d && (hw_device_noted(d, HW_PENDING_STATUS) || (e->swept && s->sweeping));
}

/* Returns whether the publisher has taken the message. */
static bool clear(struct hw_app *a, struct hw_old_topic *e)
{
	struct hw_old_topics *o = &a->retained->old;
	struct hw_old_topic *f = &o->flight[o->next_publish_id % HW_OLD_TOPICS_WINDOW];
	const struct hw_publication what = {.topic = e->topic,
	                                    .payload = "",
	                                    .retain = true,
	                                    .qos = 1,
	                                    .publish_id = HW_OLD_TOPIC_PUBLISH_ID | o->next_publish_id};
	if (f->topic || !hw_publisher_publish(a->retained->status.publisher, &what))
		return false;
	o->next_publish_id++;
	*f = *e;
	return true;
}

void hw_old_topics_pump(struct hw_app *a, unsigned *budget)
{
	struct hw_old_topics *o = &a->retained->old;
	struct hw_publisher *p = a->retained->status.publisher;
	for (size_t left = o->n; left > 0 && *budget > 0 && p && hw_publisher_room(p) > 0; left--, (*budget)--) {
		struct hw_old_topic e = pop(o);
		const struct hw_device *d = device_of(a, &e);
		bool old = is_old(a, &e, d), waits = old && must_wait(a, &e, d);
		if (old && !waits && clear(a, &e))
			continue;
		if (!old)
			free(e.topic);
		else
			(void)push(o, e); /* there is room: it was popped */
		if (old && !waits)
			return;
	}
}

void hw_old_topics_down(struct hw_old_topics *o)
{
	for (size_t k = 0; k < HW_OLD_TOPICS_WINDOW; k++) {
		if (o->flight[k].topic && push(o, o->flight[k]))
			free(o->flight[k].topic);
		o->flight[k].topic = NULL;
	}
}

char *hw_old_topics_answered(struct hw_old_topics *o, uint64_t publish_id)
{
	struct hw_old_topic *f = &o->flight[publish_id % HW_OLD_TOPICS_WINDOW];
	if (!is_ours(publish_id))
		return NULL;
	char *topic = f->topic;
	f->topic = NULL;
	return topic;
}

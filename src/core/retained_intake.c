/* SPDX-License-Identifier: MIT */
/* See retained_intake.h. Cost: a look-up of the device; to learn a status, also a walk over the groups. */
#include "retained_intake.h"

#include <string.h>

#include "beat.h"
#include "door.h"
#include "match.h"
#include "out.h"

/* --- statuses of the previous run ---------------------------------------------- */

bool hw_retained_is_adopted(const struct hw_monitor *m, const struct hw_message *msg)
{
	return m->conf.adopt_by && hw_groups_is_status(&m->groups, msg->topic, msg->topic_len);
}

/* Whether the message is on the status topic that this group has for the id. */
static bool is_status_of(const struct hw_group *g, const struct hw_message *msg, struct hw_id id)
{
	char topic[HW_TOPIC_MAX + 1];
	int len = hw_group_status_topic(g, id.text, id.len, topic, sizeof(topic));
	return len > 0 && (size_t)len == msg->topic_len && memcmp(topic, msg->topic, msg->topic_len) == 0;
}

/*
 * Returns the group that a status names. If the file has no such group, the group was renamed or removed. Several
 * groups may share the topic, so the device may belong to any of them. The device then gets the group with the longest
 * timeout, until a heartbeat shows its group. Sets *guessed.
 */
static uint16_t group_of_status(const struct hw_monitor *m, const struct hw_message *msg, const struct hw_intake *in,
                                bool *guessed)
{
	char name[HW_ID_MAX + 1];
	bool named = hw_payload_text(msg->payload, msg->payload_len, "group", name, sizeof(name)) >= 0;
	int k = named ? hw_groups_find(&m->groups, name) : -1;
	*guessed = k < 0 || m->groups.all[k]->retired || !hw_group_fits(m->groups.all[k], in->id, in->id_len);
	if (!*guessed)
		return (uint16_t)k;
	uint16_t longest = in->group;
	for (size_t o = 0; o < m->groups.n_order; o++) {
		const struct hw_group *g = m->groups.all[m->groups.order[o]];
		if (g->timeout_ms > m->groups.all[longest]->timeout_ms &&
		    is_status_of(g, msg, (struct hw_id){in->id, in->id_len}))
			longest = m->groups.order[o];
	}
	return longest;
}

/* Reports a status that is on another topic than that of the device's group. */
static void note_old_topic(struct hw_monitor *m, const struct hw_message *msg, uint32_t i)
{
	const struct hw_device *d = hw_monitor_at(m, i);
	struct hw_id id = hw_device_id(d);
	if (is_status_of(m->groups.all[d->group], msg, id))
		return;
	size_t k = 0;
	while (k < m->groups.n && !is_status_of(m->groups.all[k], msg, id))
		k++;
	if (k < m->groups.n)
		hw_monitor_left_topic(m, i, (uint16_t)k);
}

static void refuse_status(struct hw_monitor *m, const struct hw_intake *in)
{
	memcpy(m->stats.status_id, in->id, in->id_len);
	m->stats.status_id[in->id_len] = '\0';
	hw_intake_refuse(m, HW_REFUSED_STATUS);
}

static void load_status(struct hw_monitor *m, struct hw_now now, const struct hw_message *msg,
                        const struct hw_intake *in, struct hw_payload *p)
{
	char parents[HW_PARENTS_TEXT + 1];
	bool guessed;
	uint16_t group = group_of_status(m, msg, in, &guessed);
	struct hw_stored s = {
		.id = in->id,
		.id_len = in->id_len,
		.state = p->online ? HW_STATE_ONLINE : HW_STATE_OFFLINE,
		.since_ms = p->has_time && p->time_s > 0 && p->time_s < 1e11 ? (int64_t)(p->time_s * 1000) : 0,
		.last_seen_ms = p->last_seen_s > 0 && p->last_seen_s < 1e11 ? (int64_t)(p->last_seen_s * 1000) : 0,
		.down_ms = INT64_MAX / 4, /* unknown: silence and the forget time count from now */
		.own_timeout_ms = p->timeout_s > 0 && p->timeout_s < 1e9 ? (int64_t)(p->timeout_s * 1000 + 0.5) : 0,
		.group = m->groups.all[group]->name,
		.guessed = guessed,
		.seq = (uint64_t)p->seq,
		.report = p->report};
	int len = hw_payload_text(msg->payload, msg->payload_len, "parents", parents, sizeof(parents));
	if (len > 0 && (size_t)len < sizeof(parents))
		s.parents = parents;
	if (hw_reason_parse(p->reason, &s.reason))
		s.reason = p->online ? HW_REASON_HEARTBEAT : HW_REASON_TIMEOUT;
	memset(&p->report, 0, sizeof(p->report));
	hw_monitor_load(m, now, &s);
	hw_report_fini(&s.report);
}

void hw_retained_adopt(struct hw_monitor *m, struct hw_now now, const struct hw_message *msg,
                       const struct hw_intake *in, struct hw_payload *p)
{
	uint32_t i = hw_registry_find(m->registry, in->id, in->id_len);
	bool newer = p->seq > 0 && (i == HW_NIL || (uint64_t)p->seq > hw_monitor_at(m, i)->seq);
	if (!hw_id_valid(in->id, in->id_len))
		return;
	if (newer && m->adopted)
		refuse_status(m, in);
	else if (newer)
		load_status(m, now, msg, in, p);
	i = i == HW_NIL ? hw_registry_find(m->registry, in->id, in->id_len) : i;
	if (i != HW_NIL && !m->adopted)
		note_old_topic(m, msg, i);
}

/* --- messages with the retain flag --------------------------------------------- */

void hw_retained_refuse(struct hw_monitor *m, uint16_t group)
{
	m->stats.flagged_group = group;
	hw_intake_refuse(m, HW_REFUSED_FLAGGED);
}

/* Returns the number of the group's filter that matched a message, in the form that a device's will_on stores. */
static unsigned number_of_filter(const struct hw_monitor *m, const struct hw_message *msg)
{
	uint16_t group = 0;
	const char *id;
	size_t id_len, n = 0;
	const struct hw_topic *by = NULL;
	hw_groups_match(&m->groups, msg->topic, msg->topic_len, msg->payload_len == 0, &group, &id, &id_len, &by);
	const struct hw_group *g = m->groups.all[group];
	while (n < g->n_goodbye && &g->goodbye[n].topic != by)
		n++;
	if (n == g->n_goodbye)
		n += hw_group_heartbeat_like(g, by);
	return n + 1 < HW_WILL_ANYWHERE ? (unsigned)n + 1 : HW_WILL_ANYWHERE;
}

/*
 * Whether a goodbye is one of many that a bridge repeats. The device's goodbye has arrived again with the retain flag,
 * on the same filter and with no other message between. Either the device stopped again, or a bridge has reconnected
 * and repeats many goodbyes. So if goodbyes of several devices arrive within HW_AGAIN_NS, they count as repeated, and
 * their devices are left to their timeouts. This includes the first of these devices: its goodbye is held for
 * HW_AGAIN_NS (hw_monitor_may_be_repeated()).
 */
static bool is_one_of_many(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	struct hw_ref last = m->again.device;
	bool many = now.mono.ns - m->again.at.ns < HW_AGAIN_NS && last.index != i;
	const struct hw_device *d = many ? hw_registry_get(m->registry, last) : NULL;
	if (d && d->flags & HW_FLAG_GOODBYE && hw_device_state(d) == HW_STATE_ONLINE)
		hw_monitor_rule(m, now, last.index, &(struct hw_evidence){.event = HW_EVENT_GOODBYE, .blind = true});
	m->again.at = now.mono;
	m->again.device = hw_registry_ref(m->registry, i);
	return many;
}

/* Whether a goodbye with the retain flag counts. It does not count if the device is unknown, if the device's bridge has
 * just reconnected, or if the goodbye is one of many repeated ones. In the last two cases the goodbye may have replaced
 * the device's retained status, so heartwheel publishes that status again. */
static bool take_flagged_goodbye(struct hw_monitor *m, struct hw_now now, const struct hw_message *msg, uint32_t i)
{
	if (i == HW_NIL || hw_device_state(hw_monitor_at(m, i)) == HW_STATE_FORGOTTEN) {
		hw_intake_refuse(m, HW_REFUSED_RETAINED);
		return false;
	}
	struct hw_device *d = hw_monitor_at(m, i);
	unsigned number = number_of_filter(m, msg);
	bool again = (d->will_on == number || d->will_on == HW_WILL_ANYWHERE) &&
	             hw_device_state(d) == HW_STATE_ONLINE && !(d->flags & HW_FLAG_GOODBYE);
	d->will_on = number & 7U;
	bool returns = m->groups.all[d->group]->bridged && hw_hearing_returns(&m->hearing, d->group);
	if (!returns && !(again && is_one_of_many(m, now, i)))
		return true;
	hw_monitor_emit_device(m, HW_OUT_STATUS, i);
	hw_intake_refuse(m, HW_REFUSED_RETAINED);
	return false;
}

/*
 * Whether a message with the retain flag that is no goodbye counts. It counts if the device is offline by a retained
 * goodbye on the same filter: the message has replaced the goodbye, so the device has reconnected. In any other case
 * the message may be older than the goodbye.
 */
static bool replaces_goodbye(struct hw_monitor *m, const struct hw_message *msg, const struct hw_intake *in, uint32_t i,
                             const struct hw_payload *payload)
{
	if (i == HW_NIL || (in->match != HW_MATCH_GOODBYE && !(payload && payload->birth)))
		return false;
	struct hw_device *d = hw_monitor_at(m, i);
	if (d->will_on != HW_WILL_ANYWHERE && (!d->will_on || d->will_on != number_of_filter(m, msg)))
		return false;
	d->will_on = 0;
	return d->flags & HW_FLAG_GOODBYE ||
	       (hw_device_state(d) == HW_STATE_OFFLINE && hw_device_reason(d) == HW_REASON_WILL);
}

bool hw_retained_counts(struct hw_monitor *m, struct hw_now now, const struct hw_message *msg,
                        const struct hw_intake *in, uint32_t i, const struct hw_payload *payload)
{
	if (i == HW_NIL)
		i = hw_registry_find(m->registry, in->id, in->id_len);
	if (payload && payload->goodbye)
		return take_flagged_goodbye(m, now, msg, i);
	if (replaces_goodbye(m, msg, in, i, payload))
		return true;
	hw_retained_refuse(m, in->group);
	return false;
}

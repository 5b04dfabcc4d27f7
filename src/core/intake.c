/* SPDX-License-Identifier: MIT */
/*
 * Intake: turns a topic and a payload into a heartbeat, a goodbye, or a counted refusal. See monitor.h.
 *
 * Cost: a plain heartbeat of a known device takes a topic match, a look-up and two stores. The cache misses of a batch
 * overlap. The wheel is not touched and no memory is allocated.
 */
#include <errno.h>
#include <string.h>

#include "arm.h"
#include "beat.h"
#include "canary.h"
#include "core/batch.h"
#include "door.h"
#include "form.h"
#include "learning.h"
#include "out.h"
#include "parent_intake.h"
#include "probe.h"
#include "retained_intake.h"

#define BYTES_AN_ELEMENT 1024 /* checking this many bytes of a batch costs as much budget as one element */

/* Counts a message of a monitor. Such a message is never a heartbeat. Messages of this monitor are expected, and so
 * are those of other nodes if there are several. */
static void count_monitors(struct hw_monitor *m, const struct hw_payload *p)
{
	if (m->conf.node && strcmp(p->by, m->conf.node) == 0)
		m->stats.own_messages++;
	else if (m->conf.several)
		m->peer_messages++;
	else
		hw_intake_refuse(m, HW_REFUSED_MONITOR);
}

/* Counts a monitor's message on a heartbeat or goodbye filter of a group. A device may send messages that look like
 * a monitor's, so the driver logs the first one in each group. */
static void leave_out(struct hw_monitor *m, const struct hw_payload *p, uint16_t group)
{
	uint64_t own = m->stats.own_messages;
	count_monitors(m, p);
	if (m->stats.own_messages != own || m->stats.left_out || m->group_stats[group].left_out_logged)
		return;
	m->stats.left_out = true;
	m->stats.left_out_group = group;
	memcpy(m->stats.left_out_by, p->by, sizeof(p->by));
}

void hw_monitor_left_out_logged(struct hw_monitor *m, bool logged)
{
	m->group_stats[m->stats.left_out_group].left_out_logged |= logged;
	m->stats.left_out = false;
}

/* Counts a wrong payload and keeps the device's id, so that the log and the API can name the device. */
static void count_fault(struct hw_monitor *m, const char *id, size_t len, const char *fault)
{
	m->stats.payload_errors++;
	if (!hw_id_valid(id, len))
		len = 0;
	memcpy(m->stats.fault_id, id, len);
	m->stats.fault_id[len] = '\0';
	m->stats.fault = fault;
}

/* --- messages ---------------------------------------------------------------- */

/* Returns the first byte that is not JSON white space; NUL: there is none. */
static char first_byte(const struct hw_message *msg)
{
	const char *b = msg->payload;
	for (size_t k = 0; k < msg->payload_len; k++)
		if (b[k] != ' ' && b[k] != '\t' && b[k] != '\n' && b[k] != '\r')
			return b[k];
	return '\0';
}

static bool looks_like_json(const struct hw_message *msg)
{
	return first_byte(msg) == '{';
}

static bool on_state_topic(const struct hw_message *msg)
{
	static const char end[] = "/$state";
	size_t n = sizeof(end) - 1;
	return msg->topic_len > n && memcmp(msg->topic + msg->topic_len - n, end, n) == 0;
}

/* Reads a message's payload into `p`. Returns `p`, which the caller releases. NULL: the payload has nothing to read,
 * and the message is a plain heartbeat. */
static struct hw_payload *read_payload(struct hw_monitor *m, const struct hw_message *msg, const struct hw_intake *in,
                                       struct hw_payload *p)
{
	const struct hw_group *g = m->groups.all[in->group];
	if (msg->truncated) {
		count_fault(m, in->id, in->id_len, "$size");
		return NULL;
	}
	bool is_read = looks_like_json(msg);
	if (is_read)
		hw_payload_read(p, msg->payload, msg->payload_len, &g->reading);
	/* In Homie, only the topic $state reports on the device. A property that contains JSON is no report. */
	if (g->format == HW_FORMAT_HOMIE && !(is_read && (p->no_memory || p->kind == HW_PAYLOAD_MONITOR))) {
		if (is_read)
			hw_payload_fini(p);
		is_read = on_state_topic(msg);
		if (is_read)
			hw_payload_homie(p, msg->payload, msg->payload_len);
	}
	if (is_read && p->malformed)
		count_fault(m, in->id, in->id_len, p->fault);
	return is_read ? p : NULL;
}

/*
 * Whether to ignore a message whose payload could not be read for lack of memory. It may be a goodbye or this monitor's
 * own offline status, so it must not make an offline device online. For an online device it counts as a heartbeat: if
 * it was a goodbye, the device becomes offline by its timeout.
 */
static bool unread(const struct hw_monitor *m, const struct hw_payload *payload, uint32_t i)
{
	return payload && payload->no_memory &&
	       (i == HW_NIL || hw_device_state(hw_monitor_at(m, i)) != HW_STATE_ONLINE);
}

/* Checks whether a message on a goodbye filter is a goodbye. Returns the payload to apply, or NULL. */
static struct hw_payload *read_goodbye(const struct hw_group *g, const struct hw_message *msg,
                                       struct hw_payload *payload, struct hw_payload *p)
{
	bool no_memory,
		is = hw_group_is_goodbye(g, msg->topic, msg->topic_len, msg->payload, msg->payload_len, &no_memory);
	if (!is && !no_memory)
		return payload;
	if (!payload)
		memset(p, 0, sizeof(*p));
	p->goodbye |= is;
	p->no_memory |= no_memory && !is;
	return p;
}

/* Sets the parents of the device `i` after its heartbeat was applied. If the filter belongs to another group than
 * the device, the captures of the topic do not name the device's parents. */
static void note_parents(struct hw_monitor *m, const struct hw_intake *in, const struct hw_message *msg, uint32_t i,
                         bool was_online)
{
	if (hw_monitor_at(m, i)->group == in->group)
		hw_parent_heartbeat(m, i, &(struct hw_parent_source){in->by, {msg->topic, msg->topic_len}}, was_online);
}

/* Called when a filter has delivered a message: stores the send time of the last barrier that is back. A monitor's
 * messages do not count, because monitors often publish just after a device has stopped. */
static void brought(struct hw_monitor *m, const struct hw_intake *in)
{
	m->hearing.brought[in->filter] = hw_sight_sent_after(&m->sight).ns;
}

static void take_device(struct hw_monitor *m, struct hw_now now, const struct hw_message *msg,
                        const struct hw_intake *in, uint32_t i, struct hw_payload *payload)
{
	brought(m, in);
	if (i == HW_NIL && !hw_id_valid(in->id, in->id_len)) {
		hw_intake_refuse(m, HW_REFUSED_ID); /* Only a new id is checked: the id of each record has been
		                                     * checked before. */
		return;
	}
	/* All messages of a batch are matched before the first is applied. An earlier message of the batch may have
	 * created the record meanwhile. */
	if (i == HW_NIL)
		i = hw_registry_find(m->registry, in->id, in->id_len);
	if (unread(m, payload, i)) {
		hw_intake_refuse(m, HW_REFUSED_MEMORY);
		return;
	}
	bool was_online = i != HW_NIL && hw_device_state(hw_monitor_at(m, i)) == HW_STATE_ONLINE;
	hw_beat_apply(m, now, in->group, (struct hw_id){in->id, in->id_len}, i, payload);
	if (!m->family.any || (payload && payload->goodbye))
		return;
	i = i == HW_NIL ? hw_registry_find(m->registry, in->id, in->id_len) : i;
	if (i != HW_NIL)
		note_parents(m, in, msg, i, was_online);
}

static void take_canary(struct hw_monitor *m, struct hw_now now, const struct hw_message *msg,
                        const struct hw_payload *p)
{
	if (p->canary && !msg->retained)
		hw_canary_back(&m->hearing, now.mono, hw_sight_sent_after(&m->sight), msg->topic, msg->topic_len,
		               p->seq);
}

/* Handles a message on a topic that the configuration ignores, because the topic may be that of a canary. */
static void take_ignored(struct hw_monitor *m, struct hw_now now, const struct hw_message *msg)
{
	struct hw_payload p;
	if (msg->truncated || !hw_canary_is_topic(&m->hearing, msg->topic, msg->topic_len) || !looks_like_json(msg))
		return;
	hw_payload_decode(&p, msg->payload, msg->payload_len);
	if (p.kind == HW_PAYLOAD_MONITOR) {
		take_canary(m, now, msg, &p);
		count_monitors(m, &p);
	}
	hw_payload_fini(&p);
}

static void take_message(struct hw_monitor *m, struct hw_now now, const struct hw_message *msg,
                         const struct hw_intake *in, uint32_t i)
{
	struct hw_payload p, *payload;
	bool history = hw_retained_is_history(m, msg), adopting = history && m->conf.adopt_by;
	if (history && !adopting) {
		hw_intake_refuse(m, HW_REFUSED_RETAINED);
		return;
	}
	payload = read_payload(m, msg, in, &p);
	if (in->match == HW_MATCH_GOODBYE && !history && !(payload && p.kind == HW_PAYLOAD_MONITOR))
		payload = read_goodbye(m->groups.all[in->group], msg, payload, &p);
	if (payload && p.kind == HW_PAYLOAD_MONITOR) {
		if (adopting && strcmp(p.by, m->conf.adopt_by) == 0)
			hw_retained_adopt(m, now, msg, in, &p);
		take_canary(m, now, msg, &p);
		leave_out(m, &p, in->group);
	} else if (history) {
		hw_intake_refuse(m, HW_REFUSED_RETAINED);
	} else if (!hw_retained_is_flagged(m, msg, in->group) || hw_retained_counts(m, now, msg, in, i, payload)) {
		take_device(m, now, msg, in, i, payload);
	}
	if (payload)
		hw_payload_fini(payload);
}

/* Handles a message on a status topic. Only a monitor without a store subscribes to these topics, to read its own
 * statuses. */
static void take_status(struct hw_monitor *m, struct hw_now now, const struct hw_message *msg,
                        const struct hw_intake *in)
{
	struct hw_payload p;
	if (!m->conf.adopt_by || msg->truncated) {
		hw_intake_refuse(m, HW_REFUSED_TOPIC);
		return;
	}
	hw_payload_decode(&p, msg->payload, msg->payload_len);
	bool monitors = p.kind == HW_PAYLOAD_MONITOR;
	if (monitors && msg->retained && strcmp(p.by, m->conf.adopt_by) == 0)
		hw_retained_adopt(m, now, msg, in, &p);
	if (monitors)
		count_monitors(m, &p);
	else
		hw_intake_refuse(m, HW_REFUSED_TOPIC);
	hw_payload_fini(&p);
}

/* --- batches ----------------------------------------------------------------- */

/* A heartbeat of a device in a list. */
static void take_listed(struct hw_monitor *m, struct hw_now now, uint16_t group, struct hw_id id, struct hw_payload *p)
{
	size_t prefix = m->groups.all[group]->id_prefix_len;
	uint32_t i = m->family.any ? hw_registry_find(m->registry, id.text, id.len) : HW_NIL;
	bool was_online = i != HW_NIL && hw_device_state(hw_monitor_at(m, i)) == HW_STATE_ONLINE;
	hw_monitor_heartbeat(m, now, group, id.text, id.len, p);
	if (!m->family.any || p->goodbye)
		return;
	i = hw_registry_find(m->registry, id.text, id.len);
	if (i != HW_NIL && hw_monitor_at(m, i)->group == group)
		hw_parent_heartbeat(m, i, &(struct hw_parent_source){NULL, {id.text + prefix, id.len - prefix}},
		                    was_online);
}

static void take_element(struct hw_monitor *m, struct hw_now now, uint16_t group, const struct hw_element *e)
{
	const struct hw_group *g = m->groups.all[group];
	char id[HW_ID_MAX + 1];
	size_t room = sizeof(id) - g->id_prefix_len;
	struct hw_payload p;
	memcpy(id, g->id_prefix, g->id_prefix_len);
	int n = hw_payload_element(&p, e->text, e->len, &g->reading, id + g->id_prefix_len, room);
	if (p.malformed)
		count_fault(m, id, n > 0 && (size_t)n < room ? g->id_prefix_len + (size_t)n : 0, p.fault);
	if (n < 0)
		hw_intake_refuse(m, n == -ENOMEM ? HW_REFUSED_MEMORY : HW_REFUSED_BATCH);
	else if (p.kind == HW_PAYLOAD_MONITOR)
		leave_out(m, &p, group);
	else if (n == 0 || (size_t)n >= room)
		hw_intake_refuse(m, HW_REFUSED_ID);
	else
		take_listed(m, now, group, (struct hw_id){id, g->id_prefix_len + (size_t)n}, &p);
	hw_payload_fini(&p);
}

/* Whether the elements of a batch may count. A batch is accepted or refused as a whole. */
static bool judge_batch(struct hw_monitor *m, struct hw_now now, const struct hw_message *msg, uint16_t group)
{
	struct hw_payload p;
	if (hw_retained_is_history(m, msg)) {
		hw_intake_refuse(m, HW_REFUSED_RETAINED);
		return false;
	}
	if (hw_retained_is_flagged(m, msg, group)) {
		hw_retained_refuse(m, group);
		return false;
	}
	if (!msg->truncated && hw_batch_valid(msg->payload, msg->payload_len))
		return true;
	bool object = looks_like_json(msg);
	hw_payload_decode(&p, msg->payload, object && !msg->truncated ? msg->payload_len : 0);
	if (p.kind == HW_PAYLOAD_MONITOR) {
		take_canary(m, now, msg, &p);
		leave_out(m, &p, group);
	} else {
		hw_intake_refuse(m, HW_REFUSED_BATCH);
	}
	if (msg->truncated || p.malformed || first_byte(msg) == '[')
		count_fault(m, "", 0, NULL);
	hw_payload_fini(&p);
	return false;
}

/*
 * Applies the elements of a batch while `*budget` lasts. Checking the batch also costs budget, in proportion to its
 * length. Returns whether the batch is finished.
 */
static bool take_batch(struct hw_monitor *m, struct hw_now now, struct hw_message *msg, const struct hw_intake *in,
                       unsigned *budget)
{
	struct hw_element e;
	if (*budget == 0)
		return false;
	if (msg->done == 0) {
		unsigned cost = 1 + (unsigned)(msg->payload_len / BYTES_AN_ELEMENT);
		*budget -= cost < *budget ? cost : *budget;
		if (!judge_batch(m, now, msg, in->group))
			return true;
		brought(m, in);
	}
	while (hw_batch_next(msg->payload, msg->payload_len, &msg->done, &e)) {
		take_element(m, now, in->group, &e);
		*budget -= *budget > 0;
		if (*budget == 0)
			return false;
	}
	return true;
}

/* --- answers to probes -------------------------------------------------------- */

static void take_answer(struct hw_monitor *m, struct hw_now now, const struct hw_message *msg)
{
	uint32_t i = msg->retained ? HW_NIL : hw_probe_answered_by(m, now, msg);
	if (i != HW_NIL)
		hw_beat_answered(m, now, i);
	else
		hw_intake_refuse(m, msg->retained ? HW_REFUSED_RETAINED : HW_REFUSED_PROBE);
}

/* --- dispatch of messages ----------------------------------------------------- */

/* Finds the group and the id of a message. `room` is the memory for an id that gets the group's prefix or consists of
 * captures. */
static void match(struct hw_monitor *m, const struct hw_message *msg, struct hw_intake *in, char room[HW_ID_MAX + 1])
{
	const struct hw_topic *by = NULL;
	in->match = hw_groups_match(&m->groups, msg->topic, msg->topic_len, msg->payload_len == 0, &in->group, &in->id,
	                            &in->id_len, &by);
	if (in->match != HW_MATCH_HEARTBEAT && in->match != HW_MATCH_GOODBYE && in->match != HW_MATCH_STATUS)
		return;
	const struct hw_group *g = m->groups.all[in->group];
	in->by = by;
	in->filter = hw_hearing_filter_of(&m->hearing, in->group, hw_group_heartbeat_of(g, by));
	if (g->as_it_stands)
		return;
	/* An empty $state removes a Homie device, so the message is not a heartbeat. */
	if (in->match == HW_MATCH_HEARTBEAT && g->format == HW_FORMAT_HOMIE && msg->payload_len == 0 &&
	    on_state_topic(msg))
		in->match = HW_MATCH_CLEARING;
	if (g->assembled) {
		in->id_len = hw_group_id(g, by, msg->topic, msg->topic_len, room);
		in->id = room;
		return;
	}
	if (g->id_prefix_len == 0 || (g->batch && in->match == HW_MATCH_HEARTBEAT))
		return;
	if (in->id_len == 0 || g->id_prefix_len + in->id_len > HW_ID_MAX) {
		in->id_len = 0; /* the id check refuses it */
		return;
	}
	memcpy(room, g->id_prefix, g->id_prefix_len);
	memcpy(room + g->id_prefix_len, in->id, in->id_len);
	in->id = room;
	in->id_len += g->id_prefix_len;
}

/* The groups, ids and records of a batch's messages. */
struct batch {
	struct hw_intake in[HW_BATCH];
	struct hw_id ids[HW_BATCH];
	uint32_t asked[HW_BATCH], found[HW_BATCH];
	char room[HW_BATCH][HW_ID_MAX + 1];
};

/* Finds answers to probes. A message on the answer topic is an answer, even if a group's filter matches too. A message
 * to a device, such as a probe, proves nothing about the device, even if a group's filter matches. */
static void find_answers(const struct hw_monitor *m, const struct hw_message *msgs, size_t n, struct batch *b)
{
	size_t len = strlen(m->conf.probe_answers);
	for (size_t k = 0; k < n; k++) {
		bool answer = hw_probe_is_answer(m, len, &msgs[k]);
		if (!answer && !hw_probe_is_asked(&msgs[k]))
			continue;
		b->in[k] = (struct hw_intake){.match = answer ? HW_MATCH_ANSWER : HW_MATCH_IGNORED};
		b->found[k] = HW_NIL;
	}
}

/* Finds the group and the device id of each message, and then all the devices' records. The prefetches fetch the
 * memory of one record while the next message is matched. */
static void look_up(struct hw_monitor *m, const struct hw_message *msgs, size_t n, struct batch *b)
{
	for (size_t k = 0; k < n; k++) {
		struct hw_intake *in = &b->in[k];
		match(m, &msgs[k], in, b->room[k]);
		bool known = in->match == HW_MATCH_HEARTBEAT || in->match == HW_MATCH_GOODBYE;
		bool usable = known && in->id_len > 0 && in->id_len <= HW_ID_MAX;
		b->ids[k] = usable ? (struct hw_id){in->id, in->id_len} : (struct hw_id){"", 0};
		b->asked[k] = hw_registry_prefetch(m->registry, b->ids[k].text, b->ids[k].len);
	}
	hw_registry_find_prefetched(m->registry, b->ids, b->asked, n, b->found);
	for (size_t k = 0; m->learning.gaps && k < n; k++)
		if (b->found[k] != HW_NIL)
			__builtin_prefetch(&m->learning.gaps[b->found[k]]);
	for (size_t k = 0; m->family.any && k < n; k++)
		if (b->found[k] != HW_NIL)
			hw_parent_prefetch(m, b->found[k]);
	if (m->conf.probe_answers)
		find_answers(m, msgs, n, b);
}

/* Called on the fast path for a heartbeat of a device whose group learns. */
static void take_learning(struct hw_monitor *m, struct hw_now now, const struct hw_moment *t, uint32_t i)
{
	bool changed = hw_learning_gap(m, now, t, i);
	hw_beat_heard(m, hw_monitor_at(m, i), t);
	if (changed)
		hw_monitor_arm_earlier(m, now, i);
}

/*
 * The fast path for most messages: an empty payload of an online device in no special condition. It has the same effect
 * as take_message(). Returns false if the message needs take_message(). An array of heartbeats has no id here, so it
 * never takes this path.
 */
static bool take_plain(struct hw_monitor *m, struct hw_now now, const struct hw_moment *t, const struct hw_message *msg,
                       const struct hw_intake *in, uint32_t i)
{
	if (i == HW_NIL || in->match != HW_MATCH_HEARTBEAT || msg->payload_len > 0 || msg->retained || msg->truncated)
		return false;
	struct hw_device *d = hw_monitor_at(m, i);
	const struct hw_form *form = &m->form[d->group];
	if (!hw_device_is_plainly_online(d) || hw_device_source(d) == HW_SOURCE_KEY || d->group != in->group ||
	    d->form == HW_FORM_MOVED ||
	    d->flags & (HW_FLAG_ONCE | HW_FLAG_GOODBYE | HW_FLAG_HELD | HW_FLAG_PACED | HW_FLAG_SILENT) ||
	    d->last_seen_ns < form->heard_ns)
		return false;
	m->hearing.brought[in->filter] = t->sent_after.ns;
	if (form->learns)
		take_learning(m, now, t, i);
	else
		hw_beat_heard(m, d, t);
	m->stats.heartbeats++;
	m->group_stats[in->group].heartbeats++;
	if (m->family.any)
		note_parents(m, in, msg, i, true);
	return true;
}

/* Skips a byte order mark, which RFC 8259, section 8.1, allows a parser to ignore. */
static void skip_byte_order_mark(struct hw_message *msg)
{
	static const char mark[] = {'\xef', '\xbb', '\xbf'};
	if (msg->payload_len < sizeof(mark) || memcmp(msg->payload, mark, sizeof(mark)) != 0)
		return;
	msg->payload = (const char *)msg->payload + sizeof(mark);
	msg->payload_len -= sizeof(mark);
}

/* Handles a message on a topic of a group's `while`. Returns true if no other code has to handle the message: its topic
 * matches no device's filter, or it is an old retained message and not a status that is learned. While the retained
 * values still arrive, the retain flag does not show that a message is old. */
static bool take_upstream(struct hw_monitor *m, struct hw_now now, const struct hw_message *msg,
                          const struct hw_intake *in)
{
	/* A group's filter may match the topic too. Then a connection for heartbeats may deliver an older value
	 * later. So only the connection that subscribed to the topics of `while` counts. */
	if (msg->source != HW_UPSTREAM_SOURCE)
		return false;
	bool awaited;
	if (!hw_upstream_take(&m->upstream, &m->groups, msg, &awaited))
		return false;
	hw_monitor_note_upstream(m, now);
	bool history = msg->retained && (!m->conf.as_published || awaited) && !hw_retained_is_adopted(m, msg);
	return history || in->match == HW_MATCH_NONE || in->match == HW_MATCH_IGNORED;
}

size_t hw_monitor_messages(struct hw_monitor *m, struct hw_now now, struct hw_message *msgs, size_t n)
{
	unsigned budget = HW_ELEMENTS;
	struct batch b;
	struct hw_moment t = hw_moment(m, now);
	t.sent_after = hw_sight_sent_after(&m->sight);
	if (n == 0)
		return 0;
	if (n > HW_BATCH)
		n = HW_BATCH;
	m->sight.news = now.mono;
	look_up(m, msgs, n, &b);
	if (m->hearing.deaf_groups)
		hw_hearing_wake(&m->hearing);
	for (size_t k = 0; k < n; k++) {
		const struct hw_intake *in = &b.in[k];
		if (m->upstream.n > 0 && take_upstream(m, now, &msgs[k], in))
			continue;
		if (take_plain(m, now, &t, &msgs[k], in, b.found[k]) || in->match == HW_MATCH_CLEARING)
			continue;
		skip_byte_order_mark(&msgs[k]);
		if (in->match == HW_MATCH_ANSWER)
			take_answer(m, now, &msgs[k]);
		else if (in->match == HW_MATCH_IGNORED)
			take_ignored(m, now, &msgs[k]);
		else if (in->match == HW_MATCH_NONE)
			hw_intake_refuse(m, HW_REFUSED_TOPIC);
		else if (in->match == HW_MATCH_STATUS)
			take_status(m, now, &msgs[k], in);
		else if (!m->groups.all[in->group]->batch)
			take_message(m, now, &msgs[k], in, b.found[k]);
		else if (!take_batch(m, now, &msgs[k], in, &budget))
			return k;
		t.mono_ms += t.mono_ms == m->family.goodbye_ms; /* as hw_moment_ms() after a goodbye */
	}
	return n;
}

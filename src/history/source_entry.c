/* SPDX-License-Identifier: MIT */
/* See source_entry.h. Cost: each field's name is compared with thirteen names. */
#include "history/source_entry.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/bounds.h"
#include "heartwheel/topic.h"

bool hw_source_is_text(const redisReply *r)
{
	return r->type == REDIS_REPLY_STRING || r->type == REDIS_REPLY_STATUS;
}

void hw_source_read_number(int64_t *to, const redisReply *from)
{
	bool good = from->len > 0 && from->len <= 18 && strspn(from->str, "0123456789") == from->len;
	*to = good ? strtoll(from->str, NULL, 10) : -1;
}

/* Returns false if a text had to be corrected. */
static bool take_field(enum hw_stream stream, struct hw_entry *e, const char *name, const redisReply *v)
{
	static const struct {
		const char *name[HW_STREAMS];
		size_t at, size; /* size 0: the field is a number */
	} fields[] = {
#define TEXT(field)   offsetof(struct hw_entry, field), sizeof(((struct hw_entry *)0)->field)
#define NUMBER(field) offsetof(struct hw_entry, field), 0
		{{"", "id", "receiver", "device"}, TEXT(id)},
		{{"node", "node", "sender", "by"}, TEXT(node)},
		{{"", "group", "task", "group"}, TEXT(group)},
		{{"state", "state", "state", "what"}, TEXT(state)},
		{{"", "reason", "why", "kind"}, TEXT(why)},
		{{"cause", "", "", ""}, offsetof(struct hw_entry, why), HW_ENTRY_WORD + 1},
		{{"", "", "", "silence"}, TEXT(why)},
		{{"", "", "", "id"}, TEXT(incident)},
		{{"", "", "", "receiver"}, TEXT(receiver)},
		{{"from_ms", "time_ms", "time_ms", "at_ms"}, NUMBER(time_ms)},
		{{"", "", "", "from_ms"}, NUMBER(time_ms)},
		{{"to_ms", "last_seen_ms", "", "to_ms"}, NUMBER(last_seen_ms)},
		{{"", "seq", "", ""}, NUMBER(seq)},
	};
	bool same = true;
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		if (!*fields[i].name[stream] || strcmp(fields[i].name[stream], name) != 0)
			continue;
		if (fields[i].size)
			same &= hw_bounds_text((char *)e + fields[i].at, fields[i].size, v->str, v->len);
		else
			hw_source_read_number((int64_t *)((char *)e + fields[i].at), v);
	}
	return same;
}

static bool is_state(const char *state)
{
	return strcmp(state, "online") == 0 || strcmp(state, "offline") == 0 || strcmp(state, "forgotten") == 0 ||
	       strcmp(state, "unseen") == 0;
}

static enum hw_source_odd odd_of_incident(const struct hw_entry *e)
{
	if (strcmp(e->state, "planned") != 0)
		return *e->incident ? HW_ODD_KINDS : HW_ODD_FIELDS;
	if (!hw_id_valid(e->id, strlen(e->id)))
		return HW_ODD_FIELDS;
	return e->time_ms >= HW_EARLIEST_MS && e->last_seen_ms > 0 ? HW_ODD_KINDS : HW_ODD_TIME;
}

/* Returns why an entry is skipped; HW_ODD_KINDS: it is not skipped. An invalid name is not corrected, because the
 * result could be the name of another device. */
static enum hw_source_odd odd_of(enum hw_stream stream, struct hw_entry *e, int64_t now_ms, bool same_names)
{
	if (!*e->state || !same_names)
		return HW_ODD_FIELDS;
	if (e->time_ms <= 0 || !hw_bounds_time(e->time_ms, now_ms))
		return HW_ODD_TIME;
	if (!hw_bounds_time(e->last_seen_ms, now_ms)) {
		if (stream == HW_STREAM_SIGHT)
			return HW_ODD_TIME;
		e->last_seen_ms = 0;
	}
	if (stream == HW_STREAM_SIGHT)
		return *e->node && e->last_seen_ms > 0 ? HW_ODD_KINDS : HW_ODD_FIELDS;
	if (stream == HW_STREAM_TASKS)
		return *e->group && *e->id ? HW_ODD_KINDS : HW_ODD_FIELDS;
	if (stream == HW_STREAM_INCIDENTS)
		return odd_of_incident(e);
	if (!hw_id_valid(e->id, strlen(e->id)) || !is_state(e->state))
		return HW_ODD_FIELDS;
	return e->seq > 0 && hw_bounds_seq((uint64_t)e->seq, now_ms) ? HW_ODD_KINDS : HW_ODD_SEQ;
}

static bool is_name(enum hw_stream stream, const char *field)
{
	static const char *const names[HW_STREAMS][2] = {[HW_STREAM_EVENTS] = {"id", "id"},
	                                                 [HW_STREAM_TASKS] = {"receiver", "task"},
	                                                 [HW_STREAM_INCIDENTS] = {"id", "device"}};
	const char *const *n = names[stream];
	return n[0] && (strcmp(field, n[0]) == 0 || strcmp(field, n[1]) == 0);
}

/* Replaces the time of a transition before the year 2000 by the time in the entry's id. Such a time comes from a clock
 * that was never set, or from another program, and would cause an outage of hundreds of months. Returns whether it was
 * replaced. */
static bool correct_early(struct hw_entry *e, enum hw_stream stream, int64_t now_ms)
{
	bool early = stream == HW_STREAM_EVENTS && e->time_ms > 0 && e->time_ms < HW_EARLIEST_MS;
	if (!early || e->at.ms < HW_EARLIEST_MS || e->at.ms > INT64_MAX || !hw_bounds_time((int64_t)e->at.ms, now_ms))
		return false;
	e->time_ms = (int64_t)e->at.ms;
	return true;
}

enum hw_source_odd hw_source_entry_check(struct hw_entry *e, enum hw_stream stream)
{
	return odd_of(stream, e, e->clock_ms, true);
}

enum hw_source_odd hw_source_entry_read(struct hw_entry *e, enum hw_stream stream, const redisReply *fields,
                                        bool *usable)
{
	bool same_names = true, same = true;
	for (size_t i = 0; fields->type == REDIS_REPLY_ARRAY && i + 1 < fields->elements; i += 2) {
		const redisReply *name = fields->element[i], *value = fields->element[i + 1];
		if (hw_source_is_text(name) && hw_source_is_text(value) && !take_field(stream, e, name->str, value))
			*(is_name(stream, name->str) ? &same_names : &same) = false;
	}
	bool early = correct_early(e, stream, e->clock_ms);
	enum hw_source_odd odd = odd_of(stream, e, e->clock_ms, same_names);
	*usable = odd == HW_ODD_KINDS;
	if (*usable && (early || !same))
		odd = early ? HW_ODD_EARLY : HW_ODD_TEXT;
	return odd;
}

/* SPDX-License-Identifier: MIT */
/* See transition.h. */
#include "tasks/follow/transition.h"

#include <string.h>

#include "heartwheel/bounds.h"
#include "heartwheel/topic.h"
#include "stream/entries.h"
#include "tasks/mqtt/inbox.h"
#include "tasks/mqtt/message.h"

static struct hw_text text_of(const redisReply *r)
{
	return r->type == REDIS_REPLY_STRING ? (struct hw_text){r->str, r->len} : (struct hw_text){"", 0};
}

struct field {
	const char *name;
	struct hw_text *to;
};

static void read_fields(const redisReply *entry, const struct field *fields, size_t n)
{
	const redisReply *all = hw_stream_entry_fields(entry);
	for (size_t i = 0; i + 1 < all->elements; i += 2)
		for (size_t k = 0; k < n; k++)
			if (all->element[i]->type == REDIS_REPLY_STRING &&
			    strcmp(all->element[i]->str, fields[k].name) == 0)
				*fields[k].to = text_of(all->element[i + 1]);
}

/* Returns a decimal number >= 0; -1: the text is none. */
static int64_t number_of(struct hw_text t)
{
	int64_t n = 0;
	if (t.len == 0 || t.len > 18)
		return -1;
	for (size_t k = 0; k < t.len; k++) {
		if (t.at[k] < '0' || t.at[k] > '9')
			return -1;
		n = 10 * n + (t.at[k] - '0');
	}
	return n;
}

/* Returns `ms` if it is valid. Otherwise returns the time in the entry's id, which is from Redis' clock, or, if that
 * is invalid too, the present time. */
static int64_t time_of(struct hw_stream_id id, int64_t ms, int64_t now_ms)
{
	if (hw_bounds_time(ms, now_ms))
		return ms;
	return id.ms <= INT64_MAX && hw_bounds_time((int64_t)id.ms, now_ms) ? (int64_t)id.ms : now_ms;
}

bool hw_task_transition_read(const redisReply *entry, int64_t now_ms, struct hw_task_transition *out)
{
	struct hw_text none = {"", 0}, task = none, state = none, time = none, watched = none, waited = none;
	struct hw_stream_id id;
	if (!hw_stream_entry_id(entry, &id) || !hw_stream_entry_fields(entry))
		return false;
	*out = (struct hw_task_transition){id,          .receiver = none, .sender = none, .msg_id = none,
	                                   .why = none, .node = none,     .action = none};
	const struct field fields[] = {
		{"task", &task},       {"receiver", &out->receiver}, {"sender", &out->sender}, {"msg_id", &out->msg_id},
		{"state", &state},     {"why", &out->why},           {"time_ms", &time},       {"node", &out->node},
		{"watched", &watched}, {"action", &out->action},     {"waited_ms", &waited}};
	read_fields(entry, fields, sizeof(fields) / sizeof(*fields));
	out->state = hw_task_state_of(state.at, state.len);
	out->late = out->why.len == 4 && memcmp(out->why.at, HW_TASK_WHY_LATE, 4) == 0;
	out->watched = watched.len > 0;
	out->time_ms = time_of(id, number_of(time), now_ms);
	out->waited_ms = number_of(waited) > 0 ? number_of(waited) : 0;
	if (!hw_task_name_is_valid(out->receiver))
		out->receiver = none;
	return hw_task_id_parse(&out->task, task.at, task.len) && out->state != HW_TASK_STATES &&
	       (out->sender.len == 0 || hw_task_name_is_valid(out->sender) || hw_tasks_is_local(out->sender)) &&
	       (out->msg_id.len == 0 || hw_task_msg_id_is_valid(out->msg_id));
}

static bool is_word(struct hw_text t, const char *word)
{
	return t.len == strlen(word) && memcmp(t.at, word, t.len) == 0;
}

bool hw_device_transition_read(const redisReply *entry, int64_t now_ms, struct hw_device_transition *out)
{
	struct hw_text none = {"", 0}, time = none, seen = none;
	struct hw_stream_id id;
	if (!hw_stream_entry_id(entry, &id) || !hw_stream_entry_fields(entry))
		return false;
	*out = (struct hw_device_transition){id,           .device = none, .state = none, .reason = none, .group = none,
	                                     .node = none, .seq = none};
	const struct field fields[] = {{"id", &out->device},   {"state", &out->state}, {"reason", &out->reason},
	                               {"group", &out->group}, {"node", &out->node},   {"seq", &out->seq},
	                               {"time_ms", &time},     {"last_seen_ms", &seen}};
	read_fields(entry, fields, sizeof(fields) / sizeof(*fields));
	out->time_ms = time_of(id, number_of(time), now_ms);
	out->last_seen_ms = hw_bounds_time(number_of(seen), now_ms) ? number_of(seen) : out->time_ms;
	bool is_state =
		is_word(out->state, "online") || is_word(out->state, "offline") || is_word(out->state, "forgotten");
	return is_state && hw_id_valid(out->device.at, out->device.len) &&
	       (out->seq.len == 0 || hw_bounds_time(number_of(out->seq), now_ms));
}

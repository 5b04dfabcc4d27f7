/* SPDX-License-Identifier: MIT */
/* See fields.h. */
#include "alert/follow/fields.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "alert/send/words.h"
#include "heartwheel/bounds.h"
#include "heartwheel/json.h"
#include "heartwheel/print.h"
#include "heartwheel/topic.h"
#include "heartwheel/utf8.h"
#include "stream/entries.h"

#define NODE_MAX 64

static bool is_text(const redisReply *r)
{
	return r->type == REDIS_REPLY_STRING && strlen(r->str) == r->len;
}

const char *hw_field_text(const redisReply *fields, const char *name)
{
	for (size_t i = 0; fields->type == REDIS_REPLY_ARRAY && i + 1 < fields->elements; i += 2)
		if (is_text(fields->element[i]) && strcmp(fields->element[i]->str, name) == 0)
			return is_text(fields->element[i + 1]) ? fields->element[i + 1]->str : NULL;
	return NULL;
}

static bool is_words(const char *text, size_t max)
{
	size_t len = strlen(text), n;
	uint32_t c;
	if (len > max)
		return false;
	for (size_t at = 0; at < len; at += n) {
		n = hw_utf8_next((const unsigned char *)text + at, len - at, &c);
		if (n == 0 || (c < ' ' && c != '\n') || c == 0x7f)
			return false;
	}
	return true;
}

const char *hw_field_words(const redisReply *fields, const char *name, size_t max)
{
	const char *text = hw_field_text(fields, name);
	return text && *text && is_words(text, max) ? text : NULL;
}

int64_t hw_number_of(const char *text, int64_t min, int64_t max, int64_t otherwise)
{
	int64_t n = 0;
	size_t len = text ? strlen(text) : 0;
	if (len == 0 || len > 18)
		return otherwise;
	for (size_t k = 0; k < len; k++) {
		if (text[k] < '0' || text[k] > '9')
			return otherwise;
		n = 10 * n + (text[k] - '0');
	}
	return n < min || n > max ? otherwise : n;
}

int64_t hw_field_number(const redisReply *fields, const char *name, int64_t min, int64_t max, int64_t otherwise)
{
	return hw_number_of(hw_field_text(fields, name), min, max, otherwise);
}

bool hw_incident_id_is_valid(const char *id)
{
	for (size_t k = 0; k < HW_INCIDENT_ID; k++)
		if (!((id[k] >= '0' && id[k] <= '9') || (id[k] >= 'a' && id[k] <= 'z')))
			return false;
	return id[HW_INCIDENT_ID] == '\0';
}

/* --- devices ------------------------------------------------------------------------------------------------------ */

/* Returns the ids of the parents; NULL: none, or one of them is not valid. */
static const char *parents_of(const redisReply *fields)
{
	const char *text = hw_field_text(fields, "parent");
	if (!text || !*text || strlen(text) > HW_ALERT_PARENTS_TEXT)
		return NULL;
	for (const char *s = text; s;) {
		size_t len = strcspn(s, "\n");
		if (!hw_id_valid(s, len))
			return NULL;
		s = s[len] ? s + len + 1 : NULL;
	}
	return text;
}

static int64_t time_in(const redisReply *fields, const char *name, int64_t now_ms, int64_t otherwise)
{
	return hw_field_number(fields, name, 0, now_ms + HW_BOUNDS_AHEAD_MS, otherwise);
}

static bool read_fact(const char *state, enum hw_incident_fact *out)
{
	static const struct {
		const char *name;
		enum hw_incident_fact fact;
	} facts[] = {{"online", HW_FACT_ONLINE},
	             {"offline", HW_FACT_OFFLINE},
	             {"unseen", HW_FACT_UNSEEN},
	             {"forgotten", HW_FACT_FORGOTTEN}};
	for (size_t k = 0; state && k < sizeof(facts) / sizeof(*facts); k++)
		if (strcmp(state, facts[k].name) == 0) {
			*out = facts[k].fact;
			return true;
		}
	return false;
}

/* heartwheeld writes labels as a JSON object of texts; the engine compares lines NAME=VALUE. Writes these lines to
 * `to`, which may be the object itself, because the lines are shorter. Returns false if there are none. */
static bool write_labels(const char *json, size_t len, char *to)
{
	size_t n = 0, at = 0;
	struct hw_json_member m;
	char value[HW_ALERT_LABELS_TEXT];
	while (hw_json_object_next(json, len, &at, &m)) {
		int value_len = m.value_len > 1 && m.value_len < sizeof(value) && *m.value == '"'
		                        ? hw_json_unquote(m.value, m.value_len, value)
		                        : -1;
		if (value_len < 0 || memchr(value, '\n', (size_t)value_len))
			continue;
		memmove(to + n, m.key, m.key_len);
		to[n + m.key_len] = '=';
		memcpy(to + n + m.key_len + 1, value, (size_t)value_len);
		n += m.key_len + (size_t)value_len + 1;
		to[n++] = '\n';
	}
	if (n == 0 || n > HW_ALERT_LABELS_TEXT)
		return false;
	to[n - 1] = '\0';
	return true;
}

/* Returns the labels of a device; the lines replace the object in the reply. NULL: none. */
static const char *labels_of(const redisReply *fields)
{
	const char *text = hw_field_text(fields, "labels");
	size_t len = text ? strlen(text) : 0;
	bool is = len > 0 && *text == '{' && hw_json_object_valid(text, len);
	return is && write_labels(text, len, (char *)(uintptr_t)text) ? text : NULL;
}

/* Returns the name of a device; NULL: none, or it has several lines. */
static const char *name_of(const redisReply *fields)
{
	const char *name = hw_field_words(fields, "name", HW_ALERT_NAME_MAX);
	return name && !strchr(name, '\n') ? name : NULL;
}

/* Reads the fields that an entry and a hash have in common. */
static bool read_device(const char *id, const redisReply *fields, int64_t now_ms, struct hw_incident_entry *out)
{
	*out = (struct hw_incident_entry){.id = id,
	                                  .group = hw_field_words(fields, "group", HW_ALERT_GROUP_MAX),
	                                  .labels = labels_of(fields),
	                                  .name = name_of(fields),
	                                  .node = hw_field_words(fields, "node", NODE_MAX),
	                                  .parents = parents_of(fields),
	                                  .wait_ms = -1};
	out->seq = (uint64_t)hw_field_number(fields, "seq", 1, now_ms + HW_BOUNDS_AHEAD_MS, 0);
	return id && hw_id_valid(id, strlen(id)) && read_fact(hw_field_text(fields, "state"), &out->fact);
}

bool hw_alert_entry_read(const redisReply *entry, int64_t now_ms, struct hw_incident_entry *out)
{
	const redisReply *fields = hw_stream_entry_fields(entry);
	struct hw_stream_id at;
	if (!fields || !hw_stream_entry_id(entry, &at))
		return false;
	bool usable = read_device(hw_field_text(fields, "id"), fields, now_ms, out) && out->seq > 0;
	int64_t written_ms = at.ms <= (uint64_t)(now_ms + HW_BOUNDS_AHEAD_MS) ? (int64_t)at.ms : now_ms;
	out->time_ms = time_in(fields, "time_ms", now_ms, written_ms);
	out->timeout_ms = hw_field_number(fields, "timeout_ms", 1, HW_ALERT_WAIT_MAX_MS, -1);
	out->wait_ms = hw_field_number(fields, "wait_ms", 0, HW_ALERT_WAIT_MAX_MS, -1);
	return usable;
}

/* Copies a JSON string that is one line of at most `max` bytes; otherwise the text is empty. */
static void read_line(const struct hw_json_member *m, char *to, size_t max)
{
	char text[6 * HW_ALERT_NAME_MAX + 3];
	int n = *m->value == '"' && m->value_len < sizeof(text) ? hw_json_unquote(m->value, m->value_len, text) : -1;
	text[n > 0 ? n : 0] = '\0';
	bool is = strlen(text) == (size_t)(n > 0 ? n : 0) && is_words(text, max) && !strchr(text, '\n');
	hw_print(to, max + 1, "%s", is ? text : "");
}

void hw_alert_expected_read(const char *json, size_t len, struct hw_alert_expected *out)
{
	struct hw_json_member m;
	size_t at = 0;
	out->group[0] = out->name[0] = out->labels[0] = '\0';
	if (!hw_json_object_valid(json, len))
		return;
	while (hw_json_object_next(json, len, &at, &m)) {
		if (m.key_len == 5 && memcmp(m.key, "group", 5) == 0)
			read_line(&m, out->group, HW_ALERT_GROUP_MAX);
		else if (m.key_len == 4 && memcmp(m.key, "name", 4) == 0)
			read_line(&m, out->name, HW_ALERT_NAME_MAX);
		else if (m.key_len == 6 && memcmp(m.key, "labels", 6) == 0 && *m.value == '{' &&
		         m.value_len <= HW_ALERT_LABELS_TEXT && !write_labels(m.value, m.value_len, out->labels))
			out->labels[0] = '\0';
	}
}

bool hw_alert_state_read(const char *id, const redisReply *hash, int64_t now_ms, struct hw_incident_entry *out)
{
	if (!read_device(id, hash, now_ms, out) || out->fact != HW_FACT_OFFLINE)
		return false;
	out->time_ms = time_in(hash, "since", now_ms, now_ms);
	out->timeout_ms = hw_field_number(hash, "timeout", 1, HW_ALERT_WAIT_MAX_MS, -1);
	if (out->parents)
		out->wait_ms = out->timeout_ms < 0 ? 0 : out->timeout_ms;
	return true;
}

bool hw_parent_heard_read(const redisReply *entry, int64_t now_ms, struct hw_parent_heard *out)
{
	const redisReply *fields = hw_stream_entry_fields(entry);
	if (!fields)
		return false;
	out->id = hw_field_text(fields, "id");
	out->seq = (uint64_t)hw_field_number(fields, "seq", 1, now_ms + HW_BOUNDS_AHEAD_MS, 0);
	out->settle_ms = hw_field_number(fields, "settle_ms", 0, HW_ALERT_WAIT_MAX_MS, -1);
	return out->id && hw_id_valid(out->id, strlen(out->id)) && out->seq > 0 && out->settle_ms >= 0;
}

static bool is_one(const redisReply *hash, const char *name)
{
	const char *text = hw_field_text(hash, name);
	return text && strcmp(text, "1") == 0;
}

/* Writes the end of the sentence, such as "no device accepted it within 1 d". */
static void write_end(const redisReply *fields, const char *state, const char *why, const char *receiver, char *out,
                      size_t cap)
{
	char span[48];
	hw_words_span(hw_field_number(fields, "waited_ms", 0, INT64_MAX / 2, 0), span);
	if (strcmp(state, "expired") == 0)
		hw_print(out, cap, "no device accepted it within %s", span);
	else if (why && strcmp(why, "run") == 0)
		hw_print(out, cap, "accepted, but not finished within %s", span);
	else
		hw_print(out, cap, "%s reports a failure", receiver);
}

bool hw_task_notice_read(const redisReply *entry, struct hw_task_notice *out)
{
	const redisReply *fields = hw_stream_entry_fields(entry);
	const char *state = fields ? hw_field_text(fields, "state") : NULL, *why, *action, *sender;
	if (!state || !is_one(fields, "watched") || (strcmp(state, "failed") != 0 && strcmp(state, "expired") != 0))
		return false;
	out->device = hw_field_text(fields, "receiver");
	why = hw_field_text(fields, "why");
	action = hw_field_words(fields, "action", 200);
	sender = hw_field_words(fields, "sender", 200);
	if (!out->device || !hw_id_valid(out->device, strlen(out->device)) || (why && strcmp(why, "late") == 0))
		return false;
	size_t n =
		hw_print(out->text, sizeof(out->text), "task %s%s%sfrom %s to %s: ", action ? "'" : "",
	                 action ? action : "", action ? "' " : "", sender ? sender : "an unknown sender", out->device);
	write_end(fields, state, why, out->device, out->text + n, sizeof(out->text) - n);
	return true;
}

/* --- what heartwheel-alert itself has written --------------------------------------------------------------------- */

static int64_t own_time(const redisReply *fields, const char *name, int64_t now_ms, int64_t otherwise)
{
	return hw_field_number(fields, name, 0, now_ms + HW_ALERT_OWN_AHEAD_MS, otherwise);
}

bool hw_alert_incident_read(const char *id, const redisReply *hash, int64_t now_ms, struct hw_incident_view *out)
{
	const char *kind = hw_field_text(hash, "kind"), *state = hw_field_text(hash, "state"),
		   *into = hw_field_text(hash, "into");
	*out = (struct hw_incident_view){.flapping = is_one(hash, "flapping"),
	                                 .listed = is_one(hash, "listed"),
	                                 .group = hw_field_words(hash, "group", HW_ALERT_GROUP_MAX),
	                                 .device = hw_field_words(hash, "device", HW_ID_MAX),
	                                 .name = name_of(hash),
	                                 .labels = hw_field_words(hash, "labels", HW_ALERT_LABELS_TEXT),
	                                 .cause = hw_field_words(hash, "cause", HW_INCIDENT_TEXT - 1),
	                                 .ack_by = hw_field_words(hash, "ack_by", HW_INCIDENT_TEXT - 1),
	                                 .note = hw_field_words(hash, "note", HW_INCIDENT_TEXT - 1)};
	if (!hw_incident_id_is_valid(id) || !kind || hw_incident_kind_parse(kind, &out->kind) != 0 || !state ||
	    hw_incident_state_parse(state, &out->state) != 0)
		return false;
	memcpy(out->id, id, sizeof(out->id));
	if (into && hw_incident_id_is_valid(into))
		memcpy(out->into, into, sizeof(out->into));
	out->opened_ms = own_time(hash, "opened_ms", now_ms, -1);
	out->since_ms = own_time(hash, "since_ms", now_ms, out->opened_ms);
	out->closed_ms = own_time(hash, "closed_ms", now_ms, 0);
	out->ack_ms = own_time(hash, "ack_ms", now_ms, 0);
	out->acknowledged = out->ack_ms > 0;
	out->down = (uint32_t)hw_field_number(hash, "down", 0, INT32_MAX, 0);
	out->unreachable = (uint32_t)hw_field_number(hash, "unreachable", 0, INT32_MAX, 0);
	out->most = (uint32_t)hw_field_number(hash, "most", 0, INT32_MAX, 0);
	out->silenced = (uint32_t)hw_field_number(hash, "silenced", 0, INT32_MAX, 0);
	bool has_device =
		out->kind != HW_INCIDENT_DEVICE || (out->device && hw_id_valid(out->device, strlen(out->device)));
	return out->opened_ms >= 0 && has_device;
}

/* Splits `text` at blanks into at most `max` words, in `buf`. Returns the number of words; -1: there are too many,
 * or they are too long. */
static int words_of(const char *text, char *buf, size_t cap, char *words[], int max)
{
	int n = 0;
	char *save = NULL;
	if (strlen(text) >= cap)
		return -1;
	strcpy(buf, text);
	for (char *w = strtok_r(buf, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		if (n == max)
			return -1;
		words[n++] = w;
	}
	return n;
}

bool hw_alert_sent_read(const char *value, int64_t now_ms, struct hw_alert_sent *out)
{
	char buf[96], *w[4];
	int n = words_of(value, buf, sizeof(buf), w, 4);
	*out = (struct hw_alert_sent){0};
	if (n < 3 || hw_news_parse(w[0], &out->last) != 0)
		return false;
	int64_t count = hw_number_of(w[1], 0, INT32_MAX, -1);
	out->count = (uint32_t)count;
	out->at_ms = hw_number_of(w[2], 0, now_ms + HW_ALERT_OWN_AHEAD_MS, -1);
	out->acknowledged = n == 4 && strchr(w[3], 'a');
	out->flapping = n == 4 && strchr(w[3], 'f');
	return count >= 0 && out->at_ms >= 0;
}

bool hw_alert_member_read(const char *value, int64_t now_ms, enum hw_incident_class *class, int64_t *since_ms,
                          uint64_t *seq)
{
	char buf[96], *w[3];
	int n = words_of(value, buf, sizeof(buf), w, 3);
	if (n < 2)
		return false;
	if (strcmp(w[0], "unseen") == 0)
		*class = HW_CLASS_DOWN;
	else if (hw_incident_class_parse(w[0], class) != 0)
		return false;
	*since_ms = hw_number_of(w[1], 0, now_ms + HW_ALERT_OWN_AHEAD_MS, -1);
	*seq = n == 3 ? (uint64_t)hw_number_of(w[2], 0, INT64_MAX, 0) : 0;
	return *since_ms >= 0;
}

bool hw_alert_silence_read(const char *id, const redisReply *hash, int64_t now_ms, struct hw_silence_view *out)
{
	*out = (struct hw_silence_view){.match = hw_field_words(hash, "match", HW_INCIDENT_TEXT - 1),
	                                .reason = hw_field_words(hash, "reason", HW_INCIDENT_TEXT - 1),
	                                .by = hw_field_words(hash, "by", HW_INCIDENT_TEXT - 1),
	                                .until_online = is_one(hash, "until_online"),
	                                .planned = is_one(hash, "planned"),
	                                .was_offline = is_one(hash, "was_offline")};
	out->until_ms = hw_field_number(hash, "until_ms", 0, now_ms + HW_INCIDENT_UNTIL_MAX, -1);
	out->at_ms = own_time(hash, "at_ms", now_ms, now_ms);
	if (!hw_incident_id_is_valid(id))
		return false;
	memcpy(out->id, id, sizeof(out->id));
	return out->match && out->until_ms >= 0;
}

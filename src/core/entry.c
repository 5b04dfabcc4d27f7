/* SPDX-License-Identifier: MIT */
/* See entry.h. Cost: a field's name is compared with at most thirteen names. */
#include "heartwheel/entry.h"

#include <stdlib.h>
#include <string.h>

#include "heartwheel/group.h"
#include "heartwheel/topic.h"
#include "heartwheel/utf8.h"

static const char *const names[HW_ENTRY_NAMES] = {
	[HW_ENTRY_ID] = "id",
	[HW_ENTRY_STATE] = "state",
	[HW_ENTRY_REASON] = "reason",
	[HW_ENTRY_TIME] = "time_ms",
	[HW_ENTRY_LAST_SEEN] = "last_seen_ms",
	[HW_ENTRY_GROUP] = "group",
	[HW_ENTRY_NODE] = "node",
	[HW_ENTRY_SEQ] = "seq",
	[HW_ENTRY_EPOCH] = "epoch",
	[HW_ENTRY_PARENT] = "parent",
	[HW_ENTRY_TIMEOUT] = "timeout_ms",
	[HW_ENTRY_WAIT] = "wait_ms",
	[HW_ENTRY_FORM] = "form",
};

#define WHOLE ((1U << HW_ENTRY_ID) | (1U << HW_ENTRY_STATE) | (1U << HW_ENTRY_REASON))

const char *hw_entry_name(enum hw_entry_name n)
{
	return names[n];
}

bool hw_entry_form(const char *text, size_t len, uint64_t *form)
{
	char buf[9], *end;
	if (len == 0 || len > 8)
		return false;
	memcpy(buf, text, len);
	buf[len] = '\0';
	*form = strtoul(buf, &end, 16);
	return end == buf + len;
}

void hw_entry_begin(struct hw_entry *e)
{
	*e = (struct hw_entry){
		.event = {.id = "", .group = "", .node = "", .parents = "", .timeout_ms = -1, .wait_ms = -1}};
}

static bool take_number(const char *text, size_t len, uint64_t *out)
{
	uint64_t n = 0;
	for (size_t i = 0; i < len; i++)
		if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(text[i] - '0'), &n))
			return false;
	*out = n;
	return len > 0;
}

static bool take_ms(const char *text, size_t len, int64_t *out)
{
	uint64_t n;
	if (!take_number(text, len, &n) || n > INT64_MAX)
		return false;
	*out = (int64_t)n;
	return true;
}

/* Copies a text that may be the name of a state or a reason, and adds a NUL. Returns "" if the text is longer than
 * each of these names. */
static const char *word(const char *text, size_t len, char buf[32])
{
	if (len > 31)
		len = 0;
	memcpy(buf, text, len);
	buf[len] = '\0';
	return buf;
}

/* Whether a text can name a group or a node: its characters are valid, and it is no longer than an id. */
static bool is_name(const char *text, size_t len)
{
	uint32_t c;
	for (size_t i = 0, n; i < len && len <= HW_ID_MAX; i += n)
		if ((n = hw_utf8_next((const unsigned char *)text + i, len - i, &c)) == 0 || hw_utf8_is_control(c))
			return false;
	return len <= HW_ID_MAX;
}

/* Whether the text is a list of at most HW_PARENTS_MAX ids, with newlines between. */
static bool are_ids(const char *text, size_t len)
{
	for (unsigned k = 0; k < HW_PARENTS_MAX; k++) {
		const char *end = memchr(text, '\n', len);
		size_t n = end ? (size_t)(end - text) : len;
		if (!hw_id_valid(text, n))
			return false;
		if (!end)
			return true;
		text += n + 1;
		len -= n + 1;
	}
	return false;
}

static bool take_text(const char *value, size_t len, const char **text, size_t *text_len)
{
	*text = value;
	*text_len = len;
	return true;
}

static bool take(struct hw_event *e, enum hw_entry_name name, const char *value, size_t len)
{
	char buf[32];
	switch (name) {
	case HW_ENTRY_ID:
		return hw_id_valid(value, len) && take_text(value, len, &e->id, &e->id_len);
	case HW_ENTRY_STATE:
		return hw_state_parse(word(value, len, buf), &e->state) == 0;
	case HW_ENTRY_REASON:
		return hw_reason_parse(word(value, len, buf), &e->reason) == 0;
	case HW_ENTRY_TIME:
		return take_ms(value, len, &e->time_ms);
	case HW_ENTRY_LAST_SEEN:
		return take_ms(value, len, &e->last_seen_ms);
	case HW_ENTRY_GROUP:
		return is_name(value, len) && take_text(value, len, &e->group, &e->group_len);
	case HW_ENTRY_NODE:
		return is_name(value, len) && take_text(value, len, &e->node, &e->node_len);
	case HW_ENTRY_PARENT:
		return are_ids(value, len) && take_text(value, len, &e->parents, &e->parents_len);
	case HW_ENTRY_TIMEOUT:
		return take_ms(value, len, &e->timeout_ms);
	case HW_ENTRY_WAIT:
		return take_ms(value, len, &e->wait_ms);
	case HW_ENTRY_FORM:
		return e->has_form = hw_entry_form(value, len, &e->form);
	case HW_ENTRY_EPOCH:
		return take_number(value, len, &e->epoch);
	default:
		return take_number(value, len, &e->seq);
	}
}

void hw_entry_field(struct hw_entry *e, const char *name, size_t name_len, const char *value, size_t len)
{
	for (int i = 0; i < HW_ENTRY_NAMES; i++) {
		if (strlen(names[i]) != name_len || memcmp(names[i], name, name_len) != 0)
			continue;
		if (take(&e->event, (enum hw_entry_name)i, value, len))
			e->has |= 1U << i;
		return;
	}
}

bool hw_entry_is_whole(const struct hw_entry *e)
{
	return (e->has & WHOLE) == WHOLE;
}

/* SPDX-License-Identifier: MIT */
/*
 * Decodes a payload: heartbeat, goodbye, monitor's message, and the reported fields. object.h parses the JSON; this
 * file checks the type of each known member.
 *
 * Cost: if a payload does not begin with '{' after white space, only its first byte is read.
 */
#include "heartwheel/payload.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/object.h"
#include "heartwheel/utf8.h"

/* Up to here, a double holds every integer. */
#define EXACT_MAX 9007199254740992.0

/* The known members. The reported fields come first, in the order of hw_report_fields[]. */
enum field {
	BATTERY,
	RSSI,
	IP,
	VERSION,
	UPTIME,
	DATA,
	TIME = HW_REPORT_FIELDS,
	ONLINE,
	TIMEOUT,
	BY,
	SEQ,
	REASON,
	LAST_SEEN,
	ID,
	CANARY,
	CLUSTER,
	FIELDS
};

static const char *field_name(int f)
{
	static const char *const names[FIELDS] = {
		[TIME] = "time",     [ONLINE] = "online",   [TIMEOUT] = "timeout",     [BY] = "by",
		[SEQ] = "seq",       [REASON] = "reason",   [LAST_SEEN] = "last_seen", [ID] = "id",
		[CANARY] = "canary", [CLUSTER] = "cluster",
	};
	return f < HW_REPORT_FIELDS ? hw_report_fields[f].name : names[f];
}

static bool is_space(unsigned char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Returns the field of this name, or FIELDS if there is none. The length alone excludes most unknown names. */
static int field_of(const char *name, size_t len)
{
	static const struct {
		int n, field[4];
	} of_length[] = {[2] = {3, {IP, BY, ID}},
	                 [3] = {1, {SEQ}},
	                 [4] = {3, {RSSI, DATA, TIME}},
	                 [6] = {4, {UPTIME, ONLINE, REASON, CANARY}},
	                 [7] = {4, {BATTERY, VERSION, TIMEOUT, CLUSTER}},
	                 [9] = {1, {LAST_SEEN}}};
	if (len >= sizeof(of_length) / sizeof(of_length[0]))
		return FIELDS;
	for (int k = 0; k < of_length[len].n; k++) {
		const char *is = field_name(of_length[len].field[k]);
		if (is[0] == name[0] && memcmp(is, name, len) == 0)
			return of_length[len].field[k];
	}
	return FIELDS;
}

/* Finds the known members. Of several with the same name the first counts. */
static void collect(const struct hw_object *object, struct hw_value found[FIELDS])
{
	struct hw_walk w = {.next = 0};
	memset(found, 0, FIELDS * sizeof(found[0]));
	while (hw_object_next(object, &w)) {
		int f = field_of(w.at.name, w.at.len);
		if (f < FIELDS && found[f].kind == HW_VALUE_ABSENT)
			found[f] = w.at.value;
	}
}

static bool is_bool(const struct hw_value *v)
{
	return v->kind == HW_VALUE_TRUE || v->kind == HW_VALUE_FALSE;
}

/* Whether a monitor wrote the message. Each status and presence has the member `online`, each canary has `canary`, and
 * a list of known claims has `cluster`. The members `by` and `seq` are not enough, because a device may use them. */
static bool is_monitors(const struct hw_value found[FIELDS])
{
	return found[BY].kind == HW_VALUE_TEXT && found[SEQ].kind == HW_VALUE_NUMBER &&
	       (is_bool(&found[ONLINE]) || found[CANARY].kind == HW_VALUE_TRUE || found[CLUSTER].kind == HW_VALUE_TEXT);
}

/* Replaces the fields for which the group configures a path by the values at that path. Skips a message that a monitor
 * published, because its fields always have the usual names. */
static void collect_fields(const struct hw_object *object, struct hw_value found[FIELDS], const struct hw_reading *how)
{
	if (!how || (how->n == 0 && !how->plain) || is_monitors(found))
		return;
	for (int f = 0; how->plain && f < FIELDS; f++)
		found[f].kind = HW_VALUE_ABSENT;
	for (int r = 0; r < HW_REPORT_FIELDS; r++) {
		struct hw_value at = {.kind = HW_VALUE_ABSENT};
		bool elsewhere = false;
		for (size_t i = 0; at.kind == HW_VALUE_ABSENT && i < how->n; i++) {
			if (how->fields[i].has != 1U << r)
				continue;
			elsewhere = true;
			at = hw_object_at(object, how->fields[i].path);
			if (at.kind == HW_VALUE_NULL)
				at.kind = HW_VALUE_ABSENT;
		}
		if (elsewhere)
			found[r] = at;
	}
}

static bool is_finite_number(const struct hw_value *v)
{
	return v->kind == HW_VALUE_NUMBER && isfinite(v->number);
}

/* Records the first member with a wrong type or length, for the counter and the log. */
static void blame(struct hw_payload *p, enum field f)
{
	if (!p->malformed)
		p->fault = field_name((int)f);
	p->malformed = true;
}

/* Reads a member that must be a finite number. Returns false if it is absent, which is no fault. */
static bool take_number(struct hw_payload *p, const struct hw_value found[FIELDS], enum field f, double *out)
{
	const struct hw_value *v = &found[f];
	if (v->kind == HW_VALUE_ABSENT)
		return false;
	if (!is_finite_number(v)) {
		blame(p, f);
		return false;
	}
	*out = v->number;
	return true;
}

static bool is_short_text(const struct hw_value *v)
{
	uint32_t c;
	if (v->kind != HW_VALUE_TEXT || v->len > HW_REPORT_TEXT_MAX)
		return false;
	for (size_t i = 0, n; i < v->len; i += n) {
		n = hw_utf8_next((const unsigned char *)v->text + i, v->len - i, &c);
		if (n == 0 || hw_utf8_is_control(c))
			return false;
	}
	return true;
}

static void take_text(struct hw_payload *p, const struct hw_value *v, int k)
{
	char **out = hw_report_string(&p->report, k);
	if (is_short_text(v))
		*out = strndup(v->text, v->len);
	if (*out)
		p->report.has |= 1U << k;
	else
		blame(p, (enum field)k);
}

static void take_json(struct hw_payload *p, const struct hw_value *v, int k)
{
	/* 64 bytes more: before cJSON prints, it requires room for the longest number, and for a NUL on each level */
	char text[HW_REPORT_DATA_MAX + 64], **out = hw_report_string(&p->report, k);
	int n = hw_value_print(v, text, sizeof(text));
	if (n >= 0 && n <= HW_REPORT_DATA_MAX)
		*out = strdup(text);
	if (*out)
		p->report.has |= 1U << k;
	else
		blame(p, (enum field)k);
}

static void take_report(struct hw_payload *p, const struct hw_value found[FIELDS])
{
	for (int k = 0; k < HW_REPORT_FIELDS; k++) {
		if (found[k].kind == HW_VALUE_ABSENT)
			continue;
		if (hw_report_fields[k].kind == HW_REPORT_TEXT)
			take_text(p, &found[k], k);
		else if (hw_report_fields[k].kind == HW_REPORT_JSON)
			take_json(p, &found[k], k);
		else if (take_number(p, found, (enum field)k, hw_report_number(&p->report, k)))
			p->report.has |= 1U << k;
	}
	p->has_time = take_number(p, found, TIME, &p->time_s);
}

static void take_device(struct hw_payload *p, const struct hw_value found[FIELDS])
{
	const struct hw_value *timeout = &found[TIMEOUT], *online = &found[ONLINE];
	p->kind = HW_PAYLOAD_FIELDS;
	if (is_finite_number(timeout) && timeout->number >= 0) {
		p->has_timeout = true;
		p->timeout_s = timeout->number;
	} else if (timeout->kind != HW_VALUE_ABSENT) {
		p->timeout_refused = true;
	}
	if (is_bool(online)) {
		p->goodbye = online->kind == HW_VALUE_FALSE;
		p->birth = !p->goodbye;
	} else if (online->kind != HW_VALUE_ABSENT)
		blame(p, ONLINE);
}

/* Copies a text. If the text is too long, `to` stays empty: a truncated name could be the name of another node. */
static void copy_text(char *to, size_t cap, const struct hw_value *v)
{
	if (v->kind == HW_VALUE_TEXT && v->len < cap)
		memcpy(to, v->text, v->len); /* the rest is zero */
}

static void take_monitor(struct hw_payload *p, const struct hw_value found[FIELDS])
{
	double seq = found[SEQ].number;
	p->kind = HW_PAYLOAD_MONITOR;
	p->malformed = false;
	p->online = found[ONLINE].kind == HW_VALUE_TRUE;
	p->canary = found[CANARY].kind == HW_VALUE_TRUE;
	copy_text(p->by, sizeof(p->by), &found[BY]);
	copy_text(p->reason, sizeof(p->reason), &found[REASON]);
	if (seq >= 0 && seq <= EXACT_MAX)
		p->seq = (int64_t)seq;
	if (is_finite_number(&found[LAST_SEEN]))
		p->last_seen_s = found[LAST_SEEN].number;
	if (is_finite_number(&found[TIMEOUT]))
		p->timeout_s = found[TIMEOUT].number;
}

static void take_object(struct hw_payload *p, const struct hw_value found[FIELDS])
{
	take_report(p, found);
	if (is_monitors(found))
		take_monitor(p, found);
	else
		take_device(p, found);
}

/* Skips white space. Returns the start of the object, or NULL; `*len` becomes the length of the rest. */
static const char *object_in(const void *bytes, size_t *len)
{
	const char *s = bytes;
	while (*len > 0 && is_space((unsigned char)*s)) {
		s++;
		--*len;
	}
	return *len > 0 && *s == '{' ? s : NULL;
}

void hw_payload_decode(struct hw_payload *p, const void *bytes, size_t len)
{
	hw_payload_read(p, bytes, len, NULL);
}

void hw_payload_read(struct hw_payload *p, const void *bytes, size_t len, const struct hw_reading *how)
{
	struct hw_value found[FIELDS];
	struct hw_object object;
	memset(p, 0, sizeof(*p));
	const char *text = object_in(bytes, &len);
	if (!text)
		return;
	int rc = hw_object_open(&object, text, len);
	if (rc) {
		p->no_memory = rc == -ENOMEM;
		p->malformed = p->no_memory || !how || !how->plain;
		return;
	}
	collect(&object, found);
	collect_fields(&object, found, how);
	take_object(p, found);
	hw_object_close(&object);
}

static const struct {
	const char *name;
	enum { ALIVE, ASLEEP, GONE } is;
} homie_states[] = {{"init", ALIVE},      {"ready", ALIVE},       {"alert", ALIVE},
                    {"sleeping", ASLEEP}, {"disconnected", GONE}, {"lost", GONE}};

void hw_payload_homie(struct hw_payload *p, const void *bytes, size_t len)
{
	memset(p, 0, sizeof(*p));
	for (size_t i = 0; i < sizeof(homie_states) / sizeof(homie_states[0]); i++) {
		if (strlen(homie_states[i].name) != len || memcmp(homie_states[i].name, bytes, len) != 0)
			continue;
		p->kind = HW_PAYLOAD_FIELDS;
		p->goodbye = homie_states[i].is == GONE;
		p->has_timeout = !p->goodbye;
		p->timeout_s = homie_states[i].is == ASLEEP ? HUGE_VAL : 0;
		return;
	}
	p->malformed = true;
	p->fault = "$state";
}

int hw_payload_element(struct hw_payload *p, const char *text, size_t len, const struct hw_reading *how, char *id,
                       size_t cap)
{
	struct hw_value found[FIELDS];
	struct hw_object object;
	memset(p, 0, sizeof(*p));
	if (len == 0 || (text[0] != '"' && text[0] != '{'))
		return -EINVAL;
	int rc = hw_object_open(&object, text, len);
	if (rc)
		return rc;
	collect(&object, found);
	const struct hw_value name = text[0] == '"' ? object.root : found[ID];
	rc = name.kind == HW_VALUE_TEXT ? snprintf(id, cap, "%.*s", (int)name.len, name.text) : -EINVAL;
	if (text[0] == '{' && rc >= 0) {
		collect_fields(&object, found, how);
		take_object(p, found);
	}
	hw_object_close(&object);
	return rc;
}

static bool is_written(const struct hw_value *v, const char *text)
{
	char *end;
	switch (v->kind) {
	case HW_VALUE_TEXT:
		return strlen(text) == v->len && memcmp(v->text, text, v->len) == 0;
	case HW_VALUE_TRUE:
		return strcmp(text, "true") == 0;
	case HW_VALUE_FALSE:
		return strcmp(text, "false") == 0;
	case HW_VALUE_NULL:
		return strcmp(text, "null") == 0;
	case HW_VALUE_NUMBER:
		break;
	default:
		return false;
	}
	double number = strtod(text, &end);
	return end != text && !*end && number == v->number;
}

/* As hw_object_open() returns. */
static int open_object(struct hw_object *o, const void *bytes, size_t len)
{
	const char *text = object_in(bytes, &len);
	return text ? hw_object_open(o, text, len) : -EINVAL;
}

int hw_payload_member_is(const void *bytes, size_t len, const char *path, const char *value)
{
	struct hw_object object;
	int rc = open_object(&object, bytes, len);
	if (rc)
		return rc == -ENOMEM ? rc : 0;
	struct hw_value v = hw_object_at(&object, path);
	bool same = is_written(&v, value);
	hw_object_close(&object);
	return same;
}

int hw_payload_text(const void *bytes, size_t len, const char *path, char *text, size_t cap)
{
	struct hw_object object;
	int rc = open_object(&object, bytes, len);
	if (rc)
		return rc;
	struct hw_value v = hw_object_at(&object, path);
	rc = v.kind == HW_VALUE_TEXT ? snprintf(text, cap, "%.*s", (int)v.len, v.text) : -EINVAL;
	hw_object_close(&object);
	return rc;
}

void hw_payload_fini(struct hw_payload *p)
{
	hw_report_fini(&p->report);
}

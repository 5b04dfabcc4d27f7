/* SPDX-License-Identifier: MIT */
/*
 * Alerts for Alertmanager's API v2. Alertmanager allows [a-zA-Z_][a-zA-Z0-9_]* as the name of a label, and refuses the
 * whole request if one name is wrong. A device's labels may have any names. So each byte that is not allowed becomes
 * '_'. A name that heartwheel itself uses gets the prefix "label_".
 */
#include <ctype.h>
#include <errno.h>
#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alert/send/form.h"
#include "alert/send/note.h"
#include "heartwheel/print.h"
#include "heartwheel/utf8.h"
#include "http/buffer.h"
#include "http/json.h"

#define VALUE_MAX  1024 /* bytes of a label's value, or of an annotation */
#define LABEL_MAX  128  /* bytes of a label's name */
#define LABELS_MAX 64   /* of a device */
#define DEVICES    3072 /* bytes of the list of devices */

static void put_text(struct hw_json *j, const char *key, const char *text)
{
	char shown[VALUE_MAX + 1];
	size_t n = hw_utf8_show(text, strlen(text), shown, sizeof(shown));
	if (n > 0) /* to Alertmanager an empty label is none */
		hw_json_bytes(j, key, shown, n);
}

/* Writes the alert's name of a device's label. */
static void label_name(const char *name, char *out, size_t cap)
{
	static const char *const own[] = {"alertname", "incident", "device", "group"};
	bool taken = isdigit((unsigned char)*name) || strncmp(name, "__", 2) == 0;
	for (size_t k = 0; k < sizeof(own) / sizeof(*own); k++)
		taken |= strcmp(own[k], name) == 0;
	snprintf(out, cap, "%s%s", taken ? "label_" : "", name);
	for (char *c = out; *c; c++)
		if (!(isalnum((unsigned char)*c) && (unsigned char)*c < 0x80) && *c != '_')
			*c = '_';
}

/* Writes the labels of a device. If two labels have the same name after label_name(), leaves the second one out: a
 * JSON object with the same key twice is invalid. */
static void put_labels(struct hw_json *j, const cJSON *labels)
{
	char names[LABELS_MAX][LABEL_MAX];
	int n = 0;
	const cJSON *one;
	if (!cJSON_IsObject(labels))
		return;
	cJSON_ArrayForEach(one, labels)
	{
		if (n == LABELS_MAX)
			return;
		if (!cJSON_IsString(one) || !*one->string)
			continue;
		label_name(one->string, names[n], sizeof(names[n]));
		bool twice = false;
		for (int k = 0; k < n; k++)
			twice |= strcmp(names[k], names[n]) == 0;
		if (!twice)
			put_text(j, names[n++], one->valuestring);
	}
}

static const char *alert_name(enum hw_incident_kind kind)
{
	static const char *const names[] = {"HeartwheelDevice", "HeartwheelMass", "HeartwheelBlind", "HeartwheelUnseen",
	                                    "HeartwheelTask"};
	return names[kind];
}

/* Ends a JSON object in `b`, and frees `b`. */
static char *finish(struct hw_json *j, struct evbuffer *b)
{
	hw_json_close(j, '}');
	char *text = hw_json_end(j) == 0 ? hw_buffer_text(b) : NULL;
	evbuffer_free(b);
	return text;
}

char *hw_form_alert_labels(const struct hw_send_incident *i, bool test)
{
	struct hw_json j;
	struct evbuffer *b = evbuffer_new();
	if (!b)
		return NULL;
	hw_json_begin(&j, b);
	hw_json_open(&j, '{');
	hw_json_text(&j, "alertname", test ? "HeartwheelTest" : alert_name(i->kind));
	hw_json_text(&j, "incident", i->id);
	put_text(&j, "device", i->device);
	put_text(&j, "group", i->group);
	put_labels(&j, i->labels);
	return finish(&j, b);
}

/* Writes the ids of the devices, as far as they fit. */
static void put_devices(struct hw_json *j, const struct hw_send_incident *i)
{
	char text[DEVICES] = "";
	size_t n = 0;
	const cJSON *one;
	cJSON_ArrayForEach(one, i->devices)
	{
		if (!cJSON_IsString(one) || n + strlen(one->valuestring) * 6 + 3 > sizeof(text))
			continue;
		n += hw_print(text + n, sizeof(text) - n, "%s", n ? ", " : "");
		n += hw_utf8_show(one->valuestring, strlen(one->valuestring), text + n, sizeof(text) - n);
	}
	if (n > 0)
		hw_json_bytes(j, "devices", text, n);
}

static void put_count(struct hw_json *j, const char *key, uint64_t n)
{
	char text[32];
	snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
	hw_json_text(j, key, text);
}

char *hw_form_alert_notes(const struct hw_send_incident *i)
{
	struct hw_json j;
	struct evbuffer *b = evbuffer_new();
	if (!b)
		return NULL;
	hw_json_begin(&j, b);
	hw_json_open(&j, '{');
	put_text(&j, "summary", i->sentence);
	put_text(&j, "name", i->name);
	put_count(&j, "down", i->down);
	put_count(&j, "unreachable", i->unreachable);
	put_text(&j, "acknowledged_by", i->by);
	put_text(&j, "note", i->note);
	put_devices(&j, i);
	return finish(&j, b);
}

int hw_form_alert(struct evbuffer *b, const char *labels, const char *notes, int64_t since_ms, int64_t ends_ms)
{
	char time[HW_FORM_TIME];
	struct hw_json j;
	hw_json_append(&j, b);
	hw_json_open(&j, '{');
	hw_json_raw(&j, "labels", labels, strlen(labels));
	hw_json_raw(&j, "annotations", notes, strlen(notes));
	hw_json_text(&j, "startsAt", hw_form_time(since_ms < ends_ms ? since_ms : ends_ms, time));
	hw_json_text(&j, "endsAt", hw_form_time(ends_ms, time));
	hw_json_close(&j, '}');
	return hw_json_end(&j);
}

struct hw_note *hw_form_alerts(struct evbuffer *b)
{
	if (evbuffer_prepend(b, "[", 1) || evbuffer_add(b, "]", 1))
		return NULL;
	return hw_note_of(b, "application/json");
}

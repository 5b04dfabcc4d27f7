/* SPDX-License-Identifier: MIT */
/*
 * PagerDuty's Events API v2: one event for each incident, with dedup_key heartwheel/ID. The published schema allows a
 * summary of 1,024 characters, requires a source, and limits an event to 512 KB; our events have a few KB at most.
 * https://developer.pagerduty.com/api-reference/368ae3d938c9e-send-an-event-to-pager-duty
 */
#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alert/send/form.h"
#include "alert/send/note.h"
#include "heartwheel/utf8.h"
#include "http/json.h"

#define SUMMARY_MAX 1024 /* bytes here, so that the limit in characters holds */
#define DETAIL_MAX  1024
#define DEVICES_MAX 100

static const char *severity(const struct hw_send_news *n)
{
	const struct hw_send_incident *i = &n->incident;
	if (n->what == HW_NEWS_NONE)
		return "info";
	if (i->kind == HW_INCIDENT_MASS || i->kind == HW_INCIDENT_BLIND || i->unreachable > 0)
		return "critical";
	return i->kind == HW_INCIDENT_DEVICE ? "error" : "warning";
}

static const char *action(const struct hw_send_news *n, bool resolve)
{
	if (resolve || n->what == HW_NEWS_CLOSED || n->what == HW_NEWS_MERGED)
		return "resolve";
	return n->what == HW_NEWS_ACKNOWLEDGED ? "acknowledge" : "trigger";
}

/* Writes a text without invisible characters, cut after a whole character to at most `max` bytes. `instead` replaces
 * "". */
static void put_text(struct hw_json *j, const char *key, const char *text, size_t max, const char *instead)
{
	char shown[SUMMARY_MAX + 1];
	size_t len = strlen(text), n = hw_utf8_show(text, len, shown, max < sizeof(shown) ? max + 1 : sizeof(shown));
	if (n > 0)
		hw_json_bytes(j, key, shown, n);
	else if (instead)
		hw_json_text(j, key, instead);
}

static void put_details(struct hw_json *j, const struct hw_send_incident *i)
{
	const cJSON *one;
	int n = 0;
	hw_json_open_member(j, "custom_details", '{');
	hw_json_text(j, "incident", i->id);
	put_text(j, "device", i->device, DETAIL_MAX, NULL);
	put_text(j, "name", i->name, DETAIL_MAX, NULL);
	put_text(j, "group", i->group, DETAIL_MAX, NULL);
	hw_json_uint(j, "down", i->down);
	hw_json_uint(j, "unreachable", i->unreachable);
	put_text(j, "note", i->note, DETAIL_MAX, NULL);
	hw_json_open_member(j, "devices", '[');
	cJSON_ArrayForEach(one, i->devices) if (cJSON_IsString(one) && n++ < DEVICES_MAX)
		hw_json_item_bytes(j, one->valuestring, strlen(one->valuestring));
	hw_json_close(j, ']');
	hw_json_close(j, '}');
}

static void put_payload(struct hw_json *j, const struct hw_send_message *m)
{
	const struct hw_send_incident *i = &m->news[0].incident;
	char time[HW_FORM_TIME];
	hw_json_open_member(j, "payload", '{');
	put_text(j, "summary", i->sentence, SUMMARY_MAX, "an incident of heartwheel");
	put_text(j, "source", *i->device ? i->device : *i->group ? i->group : m->node, DETAIL_MAX, "heartwheel");
	hw_json_text(j, "severity", severity(&m->news[0]));
	if (i->since_ms)
		hw_json_text(j, "timestamp", hw_form_time(i->since_ms, time));
	put_text(j, "group", i->group, DETAIL_MAX, NULL);
	hw_json_text(j, "class", hw_incident_kind_name(i->kind));
	put_details(j, i);
	hw_json_close(j, '}');
}

struct hw_note *hw_form_pagerduty(const struct hw_receiver_secrets *s, const struct hw_send_message *m, bool resolve)
{
	struct hw_json j;
	char key[32];
	struct evbuffer *b = evbuffer_new();
	if (!b)
		return NULL;
	const char *what = action(&m->news[0], resolve);
	snprintf(key, sizeof(key), "heartwheel/%s", m->news[0].incident.id);
	hw_json_begin(&j, b);
	hw_json_open(&j, '{');
	hw_json_text(&j, "routing_key", s->key ? s->key : "");
	hw_json_text(&j, "event_action", what);
	hw_json_text(&j, "dedup_key", key);
	if (strcmp(what, "trigger") == 0) {
		hw_json_text(&j, "client", "heartwheel");
		put_payload(&j, m);
	}
	hw_json_close(&j, '}');
	struct hw_note *note = hw_json_end(&j) == 0 ? hw_note_of(b, "application/json") : NULL;
	evbuffer_free(b);
	return note;
}

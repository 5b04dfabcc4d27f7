/* SPDX-License-Identifier: MIT */
/* See message.h. Cost: usually one pass; a message that is too large is written again with less. */
#include "alert/state/message.h"

#include <errno.h>
#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alert/app.h"
#include "alert/follow/fields.h"
#include "alert/send/send.h"
#include "heartwheel/print.h"
#include "http/buffer.h"
#include "http/json.h"

#define IDS_MAX 100

struct hw_alert_writer hw_alert_writer_of(const struct hw_alert_app *a)
{
	return (struct hw_alert_writer){a->engine, a->conf->node_id};
}

static void write_labels(struct hw_json *j, const char *labels)
{
	char name[256];
	hw_json_open_member(j, "labels", '{');
	for (const char *s = labels; s && *s;) {
		size_t len = strcspn(s, "\n"), n = strcspn(s, "=\n");
		bool plain = n > 0 && n < sizeof(name) && s[n] == '=' && !memchr(s, '"', n) && !memchr(s, '\\', n);
		if (plain) {
			memcpy(name, s, n);
			name[n] = '\0';
			hw_json_bytes(j, name, s + n + 1, len - n - 1);
		}
		s += len + (s[len] == '\n');
	}
	hw_json_close(j, '}');
}

static void write_devices(const struct hw_alert_writer *w, struct hw_json *j, const char *incident, size_t max)
{
	const char *ids[IDS_MAX];
	size_t n = hw_incidents_members(w->engine, incident, ids, max < IDS_MAX ? max : IDS_MAX);
	hw_json_open_member(j, "devices", '[');
	for (size_t k = 0; k < n; k++)
		hw_json_item(j, ids[k]);
	hw_json_close(j, ']');
}

void hw_alert_incident_write(const struct hw_alert_writer *w, struct hw_json *j, const struct hw_incident_view *v,
                             size_t max)
{
	char text[HW_INCIDENT_TEXT];
	hw_json_text(j, "id", v->id);
	hw_json_text(j, "kind", hw_incident_kind_name(v->kind));
	hw_json_text(j, "state", hw_incident_state_name(v->state));
	if (v->into[0])
		hw_json_text(j, "into", v->into);
	if (v->flapping)
		hw_json_bool(j, "flapping", true);
	if (v->group)
		hw_json_text(j, "group", v->group);
	if (v->device) {
		hw_json_text(j, "device", v->device);
		hw_json_text(j, "name", v->name ? v->name : v->device);
	}
	write_labels(j, v->labels);
	hw_json_int(j, "since_ms", v->since_ms);
	hw_json_int(j, "opened_ms", v->opened_ms);
	hw_json_int(j, "closed_ms", v->closed_ms);
	hw_json_uint(j, "down", v->down);
	hw_json_uint(j, "unreachable", v->unreachable);
	hw_json_uint(j, "silenced", v->silenced);
	write_devices(w, j, v->id, max);
	if (v->cause)
		hw_json_text(j, "cause", v->cause);
	if (v->acknowledged) {
		hw_json_text(j, "by", v->ack_by ? v->ack_by : "");
		hw_json_text(j, "note", v->note ? v->note : "");
		hw_json_int(j, "ack_ms", v->ack_ms);
	}
	hw_json_text(j, "sentence", hw_incident_sentence(v, NULL, text, sizeof(text)));
}

/* Writes "2 opened, 1 closed: SENTENCE", with the sentence of the first news; if there is only one, its sentence
 * alone. */
static void summarize(const struct hw_incident_message *m, char *buf, size_t cap)
{
	char text[HW_INCIDENT_TEXT];
	uint64_t n[HW_NEWS_KINDS];
	size_t at = 0;
	memcpy(n, m->more, sizeof(n));
	for (size_t k = 0; k < m->n; k++)
		n[m->news[k].what]++;
	buf[0] = '\0';
	for (int k = 0; k < HW_NEWS_KINDS && m->n > 1; k++)
		if (n[k])
			at += hw_print(buf + at, cap - at, "%s%llu %s", at ? ", " : "", (unsigned long long)n[k],
			               hw_news_name((enum hw_news)k));
	if (m->n)
		hw_print(buf + at, cap - at, "%s%s", at ? ": " : "",
		         hw_incident_sentence(&m->news[0].incident, NULL, text, sizeof(text)));
}

/* Writes at most `news` news with `ids` ids each. */
static struct evbuffer *write_message(const struct hw_alert_writer *w, const struct hw_incident_message *m, size_t news,
                                      size_t ids)
{
	struct evbuffer *out = evbuffer_new();
	struct hw_json j;
	char text[HW_INCIDENT_TEXT + 200];
	uint64_t more[HW_NEWS_KINDS];
	if (!out)
		return NULL;
	memcpy(more, m->more, sizeof(more));
	hw_json_begin(&j, out);
	hw_json_open(&j, '{');
	snprintf(text, sizeof(text), "%s-%llu", m->name, (unsigned long long)m->number);
	hw_json_text(&j, "message", text);
	hw_json_text(&j, "node", w->node);
	hw_json_int(&j, "time_ms", m->time_ms);
	summarize(m, text, sizeof(text));
	hw_json_text(&j, "summary", text);
	hw_json_open_member(&j, "news", '[');
	for (size_t k = 0; k < m->n; k++) {
		if (k >= news) {
			more[m->news[k].what]++;
			continue;
		}
		hw_json_open(&j, '{');
		hw_json_text(&j, "what", hw_news_name(m->news[k].what));
		hw_json_open_member(&j, "incident", '{');
		hw_alert_incident_write(w, &j, &m->news[k].incident, ids);
		hw_json_close(&j, '}');
		hw_json_close(&j, '}');
	}
	hw_json_close(&j, ']');
	hw_json_open_member(&j, "more", '{');
	for (int k = 0; k < HW_NEWS_KINDS; k++)
		if (more[k])
			hw_json_uint(&j, hw_news_name((enum hw_news)k), more[k]);
	hw_json_close(&j, '}');
	hw_json_close(&j, '}');
	if (hw_json_end(&j) == 0)
		return out;
	evbuffer_free(out);
	return NULL;
}

char *hw_alert_message_text(const struct hw_alert_writer *w, const struct hw_incident_message *m)
{
	static const size_t ids[] = {IDS_MAX, 20, 5, 1};
	size_t news = m->n;
	for (size_t k = 0;; k++) {
		struct evbuffer *out = write_message(w, m, news, ids[k]);
		if (!out)
			return NULL;
		bool last = k + 1 == sizeof(ids) / sizeof(*ids);
		if (evbuffer_get_length(out) <= HW_SEND_MESSAGE_MAX || (last && news <= 1)) {
			char *text = hw_buffer_text(out);
			evbuffer_free(out);
			return text;
		}
		evbuffer_free(out);
		if (last) {
			news /= 2;
			k--;
		}
	}
}

char *hw_alert_incident_text(const struct hw_alert_writer *w, const struct hw_incident_view *v)
{
	struct evbuffer *out = evbuffer_new();
	struct hw_json j;
	if (!out)
		return NULL;
	hw_json_begin(&j, out);
	hw_json_open(&j, '{');
	hw_alert_incident_write(w, &j, v, IDS_MAX);
	hw_json_close(&j, '}');
	char *text = hw_json_end(&j) == 0 ? hw_buffer_text(out) : NULL;
	evbuffer_free(out);
	return text;
}

int hw_alert_message_number(const char *text, const char *receiver, uint64_t *number, char id[HW_INCIDENT_ID + 1])
{
	static const char begin[] = "{\"message\":\"", incident[] = "\"incident\":{\"id\":\"";
	size_t len = strlen(receiver);
	const char *s = text + sizeof(begin) - 1;
	if (strncmp(text, begin, sizeof(begin) - 1) != 0 || strncmp(s, receiver, len) != 0 || s[len] != '-')
		return -EINVAL;
	char digits[24];
	size_t n = strspn(s + len + 1, "0123456789");
	if (n == 0 || n >= sizeof(digits) || s[len + 1 + n] != '"')
		return -EINVAL;
	memcpy(digits, s + len + 1, n);
	digits[n] = '\0';
	*number = (uint64_t)hw_number_of(digits, 1, INT64_MAX / 2, 0);
	id[0] = '\0';
	/* Searches for the key of an incident. Quotes within a text are escaped, so a match is always a key */
	const char *found = strstr(s, incident);
	if (found) {
		char part[HW_INCIDENT_ID + 1];
		snprintf(part, sizeof(part), "%s", found + sizeof(incident) - 1);
		if (hw_incident_id_is_valid(part))
			memcpy(id, part, sizeof(part));
	}
	return *number ? 0 : -EINVAL;
}

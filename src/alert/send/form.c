/* SPDX-License-Identifier: MIT */
/* Computes the fields of a message (title, list of devices, time, ...). note.c inserts the fields into the
 * receiver's template: a text, a mail or Slack's JSON. */
#include "alert/send/form.h"

#include <errno.h>
#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "alert/send/note.h"
#include "alert/send/words.h"

const char *hw_form_time(int64_t wall_ms, char buf[HW_FORM_TIME])
{
	time_t t = (time_t)(wall_ms / 1000);
	struct tm tm = {0};
	gmtime_r(&t, &tm);
	size_t n = strftime(buf, HW_FORM_TIME, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(buf + n, HW_FORM_TIME - n, ".%03dZ", (int)(wall_ms % 1000));
	return buf;
}

/* --- the fields ------------------------------------------------------------------------------------------------- */

static const char *name_of(enum hw_news what)
{
	return what == HW_NEWS_NONE ? "test" : hw_news_name(what);
}

/* Returns the text before the sentence of an incident. It names the kind of news, such as "still: ". It is "" for an
 * opening and for an end, because the sentence shows these. */
static const char *prefix(enum hw_news what)
{
	switch (what) {
	case HW_NEWS_NONE:
		return "test: ";
	case HW_NEWS_STEADY:
		return "no longer unsteady: ";
	case HW_NEWS_ACKNOWLEDGED:
		return "acknowledged";
	case HW_NEWS_GROWN:
		return "more devices: ";
	case HW_NEWS_REMINDER:
		return "still: ";
	case HW_NEWS_MERGED:
		return "part of a larger incident: ";
	default:
		return "";
	}
}

/* Returns the line of a message about one of its news; NULL if there is no memory. */
static char *line_of(const struct hw_send_news *n)
{
	const struct hw_send_incident *i = &n->incident;
	char *raw, *shown = NULL;
	bool by = n->what == HW_NEWS_ACKNOWLEDGED;
	int rc = asprintf(&raw, "%s%s%s%s%s%s%s%s", prefix(n->what), by && *i->by ? " by " : "", by ? i->by : "",
	                  by ? ": " : "", i->sentence, by && *i->note ? " (" : "", by ? i->note : "",
	                  by && *i->note ? ")" : "");
	if (rc >= 0) {
		shown = hw_words_shown(raw);
		free(raw);
	}
	return shown;
}

static char *list_of(const struct hw_send_message *m)
{
	struct hw_lines lines;
	int rc = hw_lines_init(&lines);
	for (size_t k = 0; rc == 0 && k < m->n; k++) {
		char *line = line_of(&m->news[k]);
		rc = line ? 0 : -ENOMEM;
		if (line)
			hw_lines_add(&lines, line);
		free(line);
	}
	lines.left_out += m->more;
	char *text = rc == 0 ? hw_lines_take(&lines) : NULL;
	hw_lines_fini(&lines);
	return text;
}

static uint64_t devices_of(const struct hw_send_message *m)
{
	uint64_t n = 0;
	for (size_t k = 0; k < m->n; k++)
		if (strcmp(m->news[k].incident.state, "open") == 0)
			n += m->news[k].incident.down + m->news[k].incident.unreachable;
	return n;
}

static char *now_of(const struct hw_send_message *m)
{
	char count[32], *text = NULL;
	uint64_t n = devices_of(m);
	if (n == 0)
		return strdup("none of these devices is offline now");
	if (asprintf(&text, "%s of these devices %s offline now", hw_words_number(n, count), n == 1 ? "is" : "are") < 0)
		return NULL;
	return text;
}

static char *number_text(uint64_t n)
{
	char text[32];
	return strdup(hw_words_number(n, text));
}

/* Returns "Pump 7 (pump-7)", or the id alone if the device has no other name. */
static char *device_text(const struct hw_send_incident *i)
{
	char *raw, *shown;
	if (!*i->name)
		return hw_words_shown(i->device);
	if (asprintf(&raw, "%s (%s)", i->name, i->device) < 0)
		return NULL;
	shown = hw_words_shown(raw);
	free(raw);
	return shown;
}

static char *silent_text(const struct hw_send_message *m)
{
	char text[48];
	const struct hw_send_incident *i = &m->news[0].incident;
	int64_t to_ms = i->closed_ms ? i->closed_ms : m->time_ms;
	return strdup(hw_words_span(to_ms > i->since_ms ? to_ms - i->since_ms : 0, text));
}

static bool is_bad(const struct hw_send_message *m)
{
	for (size_t k = 0; k < m->n; k++)
		if (m->news[k].what != HW_NEWS_CLOSED && m->news[k].what != HW_NEWS_MERGED &&
		    m->news[k].what != HW_NEWS_NONE)
			return true;
	return false;
}

/* Fills in the fields of a message. Returns 0 or -ENOMEM; the caller calls hw_fields_fini() in both cases. */
static int fill_fields(struct hw_fields *f, const struct hw_send_message *m)
{
	const struct hw_send_news *first = &m->news[0];
	*f = (struct hw_fields){.bad = is_bad(m)};
	char *line = *m->summary ? NULL : line_of(first);
	f->of[HW_NOTIFY_SUMMARY] = line ? line : hw_words_shown(m->summary);
	f->of[HW_NOTIFY_LIST] = list_of(m);
	f->of[HW_NOTIFY_NOW] = now_of(m);
	f->of[HW_NOTIFY_NODE] = hw_words_shown(m->node);
	f->of[HW_NOTIFY_TIME] = hw_words_time(m->time_ms);
	f->of[HW_NOTIFY_COUNT] = number_text(devices_of(m));
	f->of[HW_NOTIFY_DEVICE] = device_text(&first->incident);
	f->of[HW_NOTIFY_GROUP] = hw_words_shown(first->incident.group);
	f->of[HW_NOTIFY_STATUS] = strdup(name_of(first->what));
	f->of[HW_NOTIFY_SILENT] = silent_text(m);
	return hw_fields_are_whole(f);
}

/* --- the notes -------------------------------------------------------------------------------------------------- */

static enum hw_notify_template template_of(const struct hw_receiver_settings *c)
{
	return c->type == HW_RECEIVER_NTFY    ? HW_NOTIFY_NTFY
	       : c->type == HW_RECEIVER_SLACK ? HW_NOTIFY_SLACK
	       : c->type == HW_RECEIVER_SMTP  ? HW_NOTIFY_MAIL
	                                      : (enum hw_notify_template)c->template;
}

/* Writes the Message-ID of a mail. A repeated mail has the same Message-ID. The date and the number distinguish it from
 * the Message-IDs of other messages. */
static void message_id(const struct hw_send_message *m, char *id, size_t cap)
{
	snprintf(id, cap, "heartwheel.%.100s.%lld", *m->key ? m->key : "0", (long long)m->time_ms);
}

struct hw_note *hw_form_template(const struct hw_receiver_settings *c, const struct hw_send_message *m,
                                 const char *json, size_t len)
{
	char id[160];
	struct hw_fields f = {0};
	struct hw_note *note = NULL;
	struct evbuffer *text = evbuffer_new();
	message_id(m, id, sizeof(id));
	struct hw_style style = {.as = template_of(c),
	                         .title = c->title,
	                         .text = c->text,
	                         .from = c->mail_from,
	                         .to = c->mail_to,
	                         .id = id};
	if (text && evbuffer_add(text, json, len) == 0 && fill_fields(&f, m) == 0)
		note = hw_note_new(&style, &f, text, m->time_ms);
	hw_fields_fini(&f);
	if (text)
		evbuffer_free(text);
	return note;
}

/* SPDX-License-Identifier: MIT */
/* See message.h: writes messages. Raw values are JSON texts that were checked when they arrived; they are copied
 * unchanged. */
#include "tasks/mqtt/message.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/report.h"

void hw_message_fini(struct hw_message *m)
{
	free(m->at);
	*m = (struct hw_message){0};
}

/* Returns room for `more` bytes and a NUL; NULL without memory. */
static char *room(struct hw_message *m, size_t more)
{
	if (m->failed)
		return NULL;
	if (m->cap - m->len <= more) {
		size_t cap = m->cap ? m->cap : 256;
		while (cap - m->len <= more)
			cap *= 2;
		char *at = realloc(m->at, cap);
		if (!at) {
			m->failed = true;
			return NULL;
		}
		m->at = at;
		m->cap = cap;
	}
	return m->at + m->len;
}

static void put_raw(struct hw_message *m, const char *text, size_t len)
{
	char *to = room(m, len);
	if (!to)
		return;
	if (len)
		memcpy(to, text, len);
	m->len += len;
	m->at[m->len] = '\0';
}

static void put_word(struct hw_message *m, const char *text)
{
	put_raw(m, text, strlen(text));
}

static void put_quoted(struct hw_message *m, struct hw_text t)
{
	size_t len = hw_json_quote(t.len ? t.at : "", t.len, NULL, 0);
	char *to = room(m, len);
	if (!to)
		return;
	hw_json_quote(t.len ? t.at : "", t.len, to, len + 1);
	m->len += len;
}

/* Appends a string after `key`, which contains the JSON around the member's name: `{"sender":`. */
static void put_text(struct hw_message *m, const char *key, struct hw_text t)
{
	put_word(m, key);
	put_quoted(m, t);
}

static void put_task(struct hw_message *m, const char *key, const struct hw_task_id *task)
{
	char text[HW_TASK_TEXT + 1];
	hw_task_id_text(task, text);
	put_text(m, key, (struct hw_text){text, HW_TASK_TEXT});
}

__attribute__((format(printf, 2, 3))) static void put_format(struct hw_message *m, const char *format, ...)
{
	char text[64];
	va_list ap;
	va_start(ap, format);
	int len = vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	put_raw(m, text, len > 0 && (size_t)len < sizeof(text) ? (size_t)len : 0);
}

static int done(const struct hw_message *m)
{
	return m->failed ? -ENOMEM : 0;
}

static void begin(struct hw_message *m)
{
	m->len = 0;
	m->failed = false;
}

/* Writes the message of a task. Its times are whole seconds, because devices may have no other type for them.
 * Cutting off the fraction makes exp earlier, never later. */
int hw_message_pending(struct hw_message *m, const char *name, const struct hw_task_id *task,
                       const struct hw_task_claimed *c, int64_t now_ms)
{
	begin(m);
	put_text(m, "{\"sender\":", (struct hw_text){name, strlen(name)});
	put_text(m, ",\"receiver\":", c->receiver);
	put_task(m, ",\"msg_id\":", task);
	put_text(m, ",\"action\":", c->action);
	put_format(m, ",\"time\":%" PRId64 ",\"exp\":%" PRId64, now_ms / 1000, c->exp_ms / 1000);
	put_word(m, ",\"payload\":");
	put_raw(m, c->body.at, c->body.len);
	put_text(m, ",\"origin\":", c->sender);
	put_word(m, "}");
	return done(m);
}

static void begin_notice(struct hw_message *m, const struct hw_notice *n)
{
	const char *state = n->refused ? "refused" : hw_task_state_name(n->state);
	begin(m);
	put_text(m, "{\"msg_id\":", n->msg_id);
	if (n->task)
		put_task(m, ",\"task\":", n->task);
	if (n->receiver.len)
		put_text(m, ",\"receiver\":", n->receiver);
	put_text(m, ",\"state\":", (struct hw_text){state, strlen(state)});
	put_format(m, ",\"time\":%" PRId64 ".%03d", n->time_ms / 1000, (int)(n->time_ms % 1000));
}

static int end_notice(struct hw_message *m, const struct hw_notice *n)
{
	put_word(m, n->late ? ",\"late\":true}" : "}");
	return done(m);
}

int hw_message_ack(struct hw_message *m, const struct hw_notice *n)
{
	begin_notice(m, n);
	return end_notice(m, n);
}

int hw_message_complete(struct hw_message *m, const struct hw_notice *n)
{
	begin_notice(m, n);
	put_word(m, ",\"value\":");
	if (n->value.len)
		put_raw(m, n->value.at, n->value.len);
	else
		put_word(m, "null");
	return end_notice(m, n);
}

int hw_message_failed(struct hw_message *m, const struct hw_notice *n)
{
	begin_notice(m, n);
	put_word(m, ",\"error\":");
	if (n->error.len)
		put_raw(m, n->error.at, n->error.len);
	else
		put_quoted(m, (struct hw_text){n->why ? n->why : "", n->why ? strlen(n->why) : 0});
	return end_notice(m, n);
}

int hw_message_topic(struct hw_message *m, const char *root, struct hw_text name, enum hw_task_topic word)
{
	static const char *const words[HW_TOPIC_NONE] = {"/pending", "/ack", "/complete", "/failed"};
	begin(m);
	put_word(m, root);
	put_word(m, "/");
	put_raw(m, name.at, name.len);
	put_word(m, words[word]);
	return done(m);
}

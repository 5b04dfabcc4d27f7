/* SPDX-License-Identifier: MIT */
/* See message.h: writes messages. Raw values are JSON texts that were checked when they arrived; they are copied
 * unchanged. */
#include "tasks/mqtt/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/json_writer.h"

void hw_message_fini(struct hw_message *m)
{
	free(m->at);
	*m = (struct hw_message){0};
}

/* Returns room for `more` bytes and a NUL; NULL if there is no memory. */
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

/* Takes the text out of the writer. */
static int done(struct hw_message *m, struct hw_json *j)
{
	free(m->at);
	m->at = hw_json_end_alloc(j, &m->len);
	m->cap = m->at ? m->len + 1 : 0;
	m->failed = !m->at;
	return m->failed ? -ENOMEM : 0;
}

static void write_text(struct hw_json *j, const char *key, struct hw_text t)
{
	hw_json_bytes(j, key, t.at, t.len);
}

static void write_task(struct hw_json *j, const char *key, const struct hw_task_id *task)
{
	char text[HW_TASK_TEXT + 1];
	hw_task_id_text(task, text);
	hw_json_bytes(j, key, text, HW_TASK_TEXT);
}

/* Writes the message of a task. Its times are whole seconds, because devices may have no other type for them.
 * Cutting off the fraction makes exp earlier, never later. */
int hw_message_pending(struct hw_message *m, const char *name, const struct hw_task_id *task,
                       const struct hw_task_claimed *c, int64_t now_ms)
{
	struct hw_json j;
	hw_json_begin_alloc(&j);
	hw_json_open(&j, '{');
	hw_json_text(&j, "sender", name);
	write_text(&j, "receiver", c->receiver);
	write_task(&j, "msg_id", task);
	write_text(&j, "action", c->action);
	hw_json_int(&j, "time", now_ms / 1000);
	hw_json_int(&j, "exp", c->exp_ms / 1000);
	hw_json_raw(&j, "payload", c->body.at, c->body.len);
	write_text(&j, "origin", c->sender);
	hw_json_close(&j, '}');
	return done(m, &j);
}

static void begin_notice(struct hw_json *j, const struct hw_notice *n)
{
	hw_json_begin_alloc(j);
	hw_json_open(j, '{');
	write_text(j, "msg_id", n->msg_id);
	if (n->task)
		write_task(j, "task", n->task);
	if (n->receiver.len)
		write_text(j, "receiver", n->receiver);
	hw_json_text(j, "state", n->refused ? "refused" : hw_task_state_name(n->state));
	hw_json_seconds(j, "time", n->time_ms);
}

static int end_notice(struct hw_message *m, const struct hw_notice *n, struct hw_json *j)
{
	if (n->late)
		hw_json_bool(j, "late", true);
	hw_json_close(j, '}');
	return done(m, j);
}

int hw_message_ack(struct hw_message *m, const struct hw_notice *n)
{
	struct hw_json j;
	begin_notice(&j, n);
	return end_notice(m, n, &j);
}

int hw_message_complete(struct hw_message *m, const struct hw_notice *n)
{
	struct hw_json j;
	begin_notice(&j, n);
	if (n->value.len)
		hw_json_raw(&j, "value", n->value.at, n->value.len);
	else
		hw_json_null(&j, "value");
	return end_notice(m, n, &j);
}

int hw_message_failed(struct hw_message *m, const struct hw_notice *n)
{
	struct hw_json j;
	begin_notice(&j, n);
	if (n->error.len)
		hw_json_raw(&j, "error", n->error.at, n->error.len);
	else
		hw_json_text(&j, "error", n->why ? n->why : "");
	return end_notice(m, n, &j);
}

int hw_message_topic(struct hw_message *m, const char *root, struct hw_text name, enum hw_task_topic word)
{
	static const char *const words[HW_TOPIC_NONE] = {"/pending", "/ack", "/complete", "/failed"};
	m->len = 0;
	m->failed = false;
	put_word(m, root);
	put_word(m, "/");
	put_raw(m, name.at, name.len);
	put_word(m, words[word]);
	return m->failed ? -ENOMEM : 0;
}

/* SPDX-License-Identifier: MIT */
/* See ends.h. Names are written as hw_utf8_show() shows them. The JSON has all members that messages about devices
 * have, so that a program that knows only these finds no device in it. */
#include "tasks/watch/ends.h"

#include <errno.h>
#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/print.h"
#include "heartwheel/utf8.h"
#include "http/json.h"
#include "notify/notification.h"
#include "notify/words.h"
#include "tasks/watch/watch.h"

#define NAME_MAX_SHOWN 200 /* four names fit into a line of HW_NOTIFIER_BYTES, so that none hides the others */
#define SUMMARY_MAX    2400

enum how { UNTAKEN, UNFINISHED, REFUSED, HOWS };

struct hw_tasks_ends {
	struct hw_tasks_watch *const *watch; /* borrowed */
	struct evbuffer *tasks;
	unsigned listed;
	uint64_t left_out, n, of[HOWS];
	struct hw_lines lines;
	int64_t from_ms, to_ms; /* Redis' clock: of the first and of the last end */
	int64_t longest_ms;     /* longest wait for an ack that did not come */
	char first[SUMMARY_MAX], receiver[NAME_MAX_SHOWN];
	bool receivers; /* there are several receivers */
	uint64_t number;
};

/* --- words -------------------------------------------------------------------------------------------------------- */

static enum how how_of(const struct hw_task_transition *t)
{
	if (t->state == HW_TASK_EXPIRED)
		return UNTAKEN;
	return t->why.len == 3 && memcmp(t->why.at, "run", 3) == 0 ? UNFINISHED : REFUSED;
}

static void show(struct hw_text t, char out[NAME_MAX_SHOWN])
{
	hw_utf8_show(t.len ? t.at : "", t.len, out, NAME_MAX_SHOWN);
}

/* "task 'set' from anna to pump-7: no device accepted it within 1 d" */
static void write_end(const struct hw_task_transition *t, char out[SUMMARY_MAX])
{
	char action[NAME_MAX_SHOWN], sender[NAME_MAX_SHOWN], receiver[NAME_MAX_SHOWN], span[48];
	show(t->action, action);
	show(t->sender, sender);
	show(t->receiver, receiver);
	size_t n = hw_print(out, SUMMARY_MAX, "task %s%s%sfrom %s to %s: ", *action ? "'" : "", action,
	                    *action ? "' " : "", sender, receiver);
	char *at = out + n;
	size_t cap = SUMMARY_MAX - n;
	hw_words_span(t->waited_ms, span);
	if (how_of(t) == UNTAKEN)
		snprintf(at, cap, "no device accepted it within %s", span);
	else if (how_of(t) == UNFINISHED)
		snprintf(at, cap, "accepted, but not finished within %s", span);
	else
		snprintf(at, cap, "%s reports a failure", receiver);
}

static const char *const hows[HOWS] = {"not accepted", "not finished", "failed"};

/* "8 not accepted, 3 failed" */
static void write_counts(const struct hw_tasks_ends *e, char *out, size_t cap)
{
	char count[32];
	size_t n = 0;
	out[0] = '\0';
	for (int k = 0; k < HOWS; k++)
		if (e->of[k])
			n += hw_print(out + n, cap - n, "%s%s %s", n ? ", " : "", hw_words_number(e->of[k], count),
			              hows[k]);
}

static void write_summary(const struct hw_tasks_ends *e, char out[SUMMARY_MAX])
{
	char count[32], counts[160], span[48];
	int64_t within_ms = (e->to_ms - e->from_ms + 999) / 1000 * 1000;
	write_counts(e, counts, sizeof(counts));
	if (e->n == 1)
		snprintf(out, SUMMARY_MAX, "%s", e->first);
	else
		snprintf(out, SUMMARY_MAX, "%s tasks to %s failed within %s: %s", hw_words_number(e->n, count),
		         e->receivers ? "several devices" : e->receiver,
		         hw_words_span(within_ms > 1000 ? within_ms : 1000, span), counts);
}

/* --- gathering ---------------------------------------------------------------------------------------------------- */

bool hw_tasks_ends_notifies(const struct hw_task_transition *t)
{
	return t->watched && !t->late && (t->state == HW_TASK_EXPIRED || t->state == HW_TASK_FAILED);
}

static void put(struct hw_json *j, const char *member, struct hw_text t)
{
	hw_json_bytes(j, member, t.len ? t.at : "", t.len);
}

static void list(struct hw_tasks_ends *e, const struct hw_task_transition *t)
{
	char task[HW_TASK_TEXT + 1];
	if (e->listed == HW_NOTIFIER_LIST) {
		e->left_out++;
		return;
	}
	hw_task_id_text(&t->task, task);
	struct hw_json j;
	hw_json_append(&j, e->tasks);
	hw_json_open(&j, '{');
	hw_json_text(&j, "task", task);
	hw_json_text(&j, "state", hw_task_state_name(t->state));
	put(&j, "why", t->why);
	put(&j, "sender", t->sender);
	put(&j, "receiver", t->receiver);
	put(&j, "msg_id", t->msg_id);
	put(&j, "action", t->action);
	hw_json_int(&j, "time_ms", t->time_ms);
	hw_json_int(&j, "waited_ms", t->waited_ms);
	hw_json_close(&j, '}');
	(void)hw_json_end(&j);
	e->listed++;
}

void hw_tasks_ends_add(struct hw_tasks_ends *e, const struct hw_task_transition *t)
{
	char line[SUMMARY_MAX], receiver[NAME_MAX_SHOWN];
	write_end(t, line);
	show(t->receiver, receiver);
	if (e->n++ == 0) {
		memcpy(e->first, line, sizeof(line));
		memcpy(e->receiver, receiver, sizeof(receiver));
		e->from_ms = e->to_ms = t->time_ms;
	}
	e->receivers |= strcmp(receiver, e->receiver) != 0;
	e->from_ms = t->time_ms < e->from_ms ? t->time_ms : e->from_ms;
	e->to_ms = t->time_ms > e->to_ms ? t->time_ms : e->to_ms;
	e->of[how_of(t)]++;
	if (how_of(t) == UNTAKEN && t->waited_ms > e->longest_ms)
		e->longest_ms = t->waited_ms;
	hw_lines_add(&e->lines, t->time_ms, line);
	list(e, t);
}

/* --- the message -------------------------------------------------------------------------------------------------- */

/* The number of watched tasks may be a second old. The tasks in this message are watched too, so it is at least their
 * number. */
static uint64_t known(const struct hw_tasks_ends *e)
{
	uint64_t n;
	(void)hw_tasks_watch_count(*e->watch, &n);
	return n > e->n ? n : e->n;
}

/* Returns 0 or -ENOMEM. */
static int add_json(struct hw_tasks_ends *e, const char *node_id, struct evbuffer *b)
{
	struct hw_json j;
	hw_json_begin(&j, b);
	hw_json_open(&j, '{');
	hw_json_text(&j, "node", node_id);
	hw_json_uint(&j, "number", e->number);
	hw_json_int(&j, "from_ms", e->from_ms);
	hw_json_int(&j, "to_ms", e->to_ms);
	hw_json_uint(&j, "expired", e->of[UNTAKEN]);
	hw_json_uint(&j, "failed", e->of[UNFINISHED] + e->of[REFUSED]);
	hw_json_array(&j, "tasks", e->tasks);
	hw_json_uint(&j, "tasks_left_out", e->left_out);
	/* What a message about devices has. */
	hw_json_int(&j, "online", 0);
	hw_json_int(&j, "offline", 0);
	hw_json_int(&j, "forgotten", 0);
	hw_json_array(&j, "counts", NULL);
	hw_json_array(&j, "devices", NULL);
	hw_json_int(&j, "devices_left_out", 0);
	hw_json_array(&j, "blind", NULL);
	hw_json_int(&j, "blind_left_out", 0);
	hw_json_open_member(&j, "now", '{');
	hw_json_uint(&j, "watched", known(e));
	hw_json_close(&j, '}');
	hw_json_close(&j, '}');
	return hw_json_end(&j);
}

static int fill(struct hw_tasks_ends *e, const char *node_id, struct hw_fields *f)
{
	char text[SUMMARY_MAX], number[32];
	*f = (struct hw_fields){.bad = true};
	write_summary(e, text);
	f->of[HW_NOTIFY_SUMMARY] = strdup(text);
	f->of[HW_NOTIFY_LIST] = hw_lines_take(&e->lines);
	snprintf(text, sizeof(text), "Now %s watched %s known", hw_words_number(known(e), number),
	         known(e) == 1 ? "task is" : "tasks are");
	f->of[HW_NOTIFY_NOW] = strdup(text);
	f->of[HW_NOTIFY_NODE] = hw_words_shown(node_id);
	f->of[HW_NOTIFY_TIME] = hw_words_time(e->from_ms);
	f->of[HW_NOTIFY_COUNT] = strdup(hw_words_number(e->n, number));
	f->of[HW_NOTIFY_DEVICE] = strdup(e->receivers ? "several devices" : e->receiver);
	f->of[HW_NOTIFY_GROUP] = strdup("no group");
	write_counts(e, text, sizeof(text));
	f->of[HW_NOTIFY_STATUS] = strdup(e->of[UNTAKEN] == e->n ? "expired" : e->of[UNTAKEN] == 0 ? "failed" : text);
	f->of[HW_NOTIFY_SILENT] = strdup(e->longest_ms ? hw_words_span(e->longest_ms, text) : "0 s");
	return hw_fields_are_whole(f);
}

static bool any(const void *of)
{
	return ((const struct hw_tasks_ends *)of)->n > 0;
}

static int seal(void *of, const char *node_id, struct hw_notification *out)
{
	struct hw_tasks_ends *e = of;
	*out = (struct hw_notification){.json = evbuffer_new()};
	e->number++;
	int rc = out->json ? add_json(e, node_id, out->json) : -ENOMEM;
	rc = fill(e, node_id, &out->fields) ? -ENOMEM : rc;
	evbuffer_drain(e->tasks, evbuffer_get_length(e->tasks));
	*e = (struct hw_tasks_ends){.watch = e->watch, .tasks = e->tasks, .lines = e->lines, .number = e->number};
	return hw_notification_finish(out, rc);
}

/* --- start and stop ----------------------------------------------------------------------------------------------- */

static void end(void *of)
{
	struct hw_tasks_ends *e = of;
	if (e->tasks)
		evbuffer_free(e->tasks);
	hw_lines_fini(&e->lines);
	free(e);
}

const struct hw_notifier_source hw_tasks_ends_source = {any, seal, NULL, end};

struct hw_tasks_ends *hw_tasks_ends_new(struct hw_tasks_watch *const *watch)
{
	struct hw_tasks_ends *e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->watch = watch;
	e->tasks = evbuffer_new();
	if (hw_lines_init(&e->lines) == 0 && e->tasks)
		return e;
	end(e);
	return NULL;
}

/* SPDX-License-Identifier: MIT */
/* See ends.h. Names stand as hw_words_show() shows them; what programs read has all members that messages about devices
 * have, so that one which knows only those finds none in it. */
#include "tasks/ends.h"

#include <event2/buffer.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/print.h"
#include "heartwheel/report.h"
#include "notify/telling.h"
#include "notify/words.h"
#include "tasks/watch.h"

#define NAME_MAX_SHOWN 200 /* four of them fit into a line of HW_NOTIFIER_BYTES: none hides the others */
#define QUOTED_MAX     (6 * 512 + 3)
#define SUMMARY_MAX    2400

enum how { UNTAKEN, UNFINISHED, REFUSED, HOWS };

struct hw_tasks_ends {
	struct hw_tasks_watch *const *watch; /* borrowed */
	struct evbuffer *tasks;
	unsigned listed;
	uint64_t left_out, n, of[HOWS];
	struct hw_lines lines;
	int64_t from_ms, to_ms; /* Redis' clock, of the first and the last */
	int64_t longest_ms;     /* that nobody took one */
	char first[SUMMARY_MAX], receiver[NAME_MAX_SHOWN];
	bool receivers; /* there are several */
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
	hw_words_show(t.len ? t.at : "", t.len, out, NAME_MAX_SHOWN);
}

/* "task 'set' from anna to pump-7: nobody took it within 1 d" */
static void say(const struct hw_task_transition *t, char out[SUMMARY_MAX])
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
		snprintf(at, cap, "nobody took it within %s", span);
	else if (how_of(t) == UNFINISHED)
		snprintf(at, cap, "taken, but not finished within %s", span);
	else
		snprintf(at, cap, "%s says that it failed", receiver);
}

static const char *const hows[HOWS] = {"nobody took", "nobody finished", "failed"};

/* "8 nobody took, 3 failed" */
static void say_counts(const struct hw_tasks_ends *e, char *out, size_t cap)
{
	char count[32];
	size_t n = 0;
	out[0] = '\0';
	for (int k = 0; k < HOWS; k++)
		if (e->of[k])
			n += hw_print(out + n, cap - n, "%s%s %s", n ? ", " : "", hw_words_number(e->of[k], count),
			              hows[k]);
}

static void say_summary(const struct hw_tasks_ends *e, char out[SUMMARY_MAX])
{
	char count[32], counts[160], span[48];
	int64_t within_ms = (e->to_ms - e->from_ms + 999) / 1000 * 1000;
	say_counts(e, counts, sizeof(counts));
	if (e->n == 1)
		snprintf(out, SUMMARY_MAX, "%s", e->first);
	else
		snprintf(out, SUMMARY_MAX, "%s tasks to %s came to nothing within %s: %s", hw_words_number(e->n, count),
		         e->receivers ? "several devices" : e->receiver,
		         hw_words_span(within_ms > 1000 ? within_ms : 1000, span), counts);
}

/* --- gathering ---------------------------------------------------------------------------------------------------- */

bool hw_tasks_ends_tell(const struct hw_task_transition *t)
{
	return t->watched && !t->late && (t->state == HW_TASK_EXPIRED || t->state == HW_TASK_FAILED);
}

/* `member` and its text, which a comma precedes. */
static void put(struct evbuffer *b, const char *member, struct hw_text t)
{
	char quoted[QUOTED_MAX];
	bool fits = hw_json_quote(t.len ? t.at : "", t.len, quoted, sizeof(quoted)) < sizeof(quoted);
	evbuffer_add_printf(b, ",\"%s\":%s", member, fits ? quoted : "\"\"");
}

static void list(struct hw_tasks_ends *e, const struct hw_task_transition *t)
{
	char task[HW_TASK_TEXT + 1];
	if (e->listed == HW_NOTIFIER_LIST) {
		e->left_out++;
		return;
	}
	hw_task_id_text(&t->task, task);
	evbuffer_add_printf(e->tasks, "%s{\"task\":\"%s\",\"state\":\"%s\"", e->listed ? "," : "", task,
	                    hw_task_state_name(t->state));
	put(e->tasks, "why", t->why);
	put(e->tasks, "sender", t->sender);
	put(e->tasks, "receiver", t->receiver);
	put(e->tasks, "msg_id", t->msg_id);
	put(e->tasks, "action", t->action);
	evbuffer_add_printf(e->tasks, ",\"time_ms\":%" PRId64 ",\"waited_ms\":%" PRId64 "}", t->time_ms, t->waited_ms);
	e->listed++;
}

void hw_tasks_ends_add(struct hw_tasks_ends *e, const struct hw_task_transition *t)
{
	char line[SUMMARY_MAX], receiver[NAME_MAX_SHOWN];
	say(t, line);
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

/* What is known is as of a second ago; those that are told of now are known. */
static uint64_t known(const struct hw_tasks_ends *e)
{
	uint64_t n;
	(void)hw_tasks_watch_count(*e->watch, &n);
	return n > e->n ? n : e->n;
}

static void add_json(struct hw_tasks_ends *e, const char *node_id, struct evbuffer *b)
{
	char node[QUOTED_MAX];
	if (hw_json_quote(node_id, strlen(node_id), node, sizeof(node)) >= sizeof(node))
		snprintf(node, sizeof(node), "\"\"");
	evbuffer_add_printf(b,
	                    "{\"node\":%s,\"number\":%" PRIu64 ",\"from_ms\":%" PRId64 ",\"to_ms\":%" PRId64
	                    ",\"expired\":%" PRIu64 ",\"failed\":%" PRIu64 ",\"tasks\":[",
	                    node, e->number, e->from_ms, e->to_ms, e->of[UNTAKEN], e->of[UNFINISHED] + e->of[REFUSED]);
	evbuffer_add_buffer(b, e->tasks);
	evbuffer_add_printf(
		b,
		"],\"tasks_left_out\":%" PRIu64 ",\"online\":0,\"offline\":0,\"forgotten\":0,\"counts\":[],"
		"\"devices\":[],\"devices_left_out\":0,\"blind\":[],\"blind_left_out\":0,\"now\":{\"watched\":"
		"%" PRIu64 "}}",
		e->left_out, known(e));
}

static int fill(struct hw_tasks_ends *e, const char *node_id, struct hw_fields *f)
{
	char text[SUMMARY_MAX], number[32];
	*f = (struct hw_fields){.bad = true};
	say_summary(e, text);
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
	say_counts(e, text, sizeof(text));
	f->of[HW_NOTIFY_STATUS] = strdup(e->of[UNTAKEN] == e->n ? "expired" : e->of[UNTAKEN] == 0 ? "failed" : text);
	f->of[HW_NOTIFY_SILENT] = strdup(e->longest_ms ? hw_words_span(e->longest_ms, text) : "0 s");
	return hw_fields_are_whole(f);
}

static bool any(const void *of)
{
	return ((const struct hw_tasks_ends *)of)->n > 0;
}

static int seal(void *of, const char *node_id, struct hw_telling *out)
{
	struct hw_tasks_ends *e = of;
	*out = (struct hw_telling){.json = evbuffer_new()};
	e->number++;
	if (out->json)
		add_json(e, node_id, out->json);
	int rc = fill(e, node_id, &out->fields);
	evbuffer_drain(e->tasks, evbuffer_get_length(e->tasks));
	*e = (struct hw_tasks_ends){.watch = e->watch, .tasks = e->tasks, .lines = e->lines, .number = e->number};
	return hw_telling_finish(out, rc);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

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

/* SPDX-License-Identifier: MIT */
/* See task.h. */
#include "ctl/task.h"

#include <inttypes.h>
#include <string.h>

static enum hw_paint paint_of(const char *state)
{
	if (strcmp(state, "complete") == 0)
		return HW_GOOD;
	if (strcmp(state, "failed") == 0 || strcmp(state, "expired") == 0)
		return HW_BAD;
	return strcmp(state, "held") == 0 ? HW_WARN : HW_PLAIN;
}

const char *hw_task_why_means(const char *why)
{
	static const struct {
		const char *why, *means;
	} known[] = {{"device", "the device reports a failure"},
	             {"run", "the device acknowledged the task, and did not finish it in time"},
	             {"offline", "the device is offline, and the task was not to be held"},
	             {"refused", "the broker refused the task"},
	             {"lost", "Redis has lost the task's payload"},
	             {"exp", "no device acknowledged the task in time"},
	             {"nobody", "no client subscribes to the task's topic"},
	             {"late", "an answer that came after the task had ended"}};
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strcmp(known[i].why, why) == 0)
			return known[i].means;
	return "";
}

static void print_state(const struct hw_ctl *ctl, const char *state, int width)
{
	const struct hw_screen *s = &ctl->screen;
	fputs(hw_paint(s, paint_of(state)), stdout);
	hw_text_column(s, width, state);
	fputs(hw_paint(s, HW_PLAIN), stdout);
}

static void print_text(const struct hw_ctl *ctl, const cJSON *task, const char *key, const char *label)
{
	if (!hw_member_has(task, key))
		return;
	printf("%-10s", label);
	hw_text_print(stdout, &ctl->screen, hw_member_text(task, key));
	putchar('\n');
}

static void print_time(const cJSON *task, const char *key, const char *label)
{
	char text[HW_SPAN_MAX];
	if (hw_member_has(task, key))
		printf("%-10s%s\n", label, hw_text_clock(hw_member_int(task, key), text));
}

static void print_json(const struct hw_ctl *ctl, const cJSON *task, const char *key, const char *label)
{
	const cJSON *value = cJSON_GetObjectItemCaseSensitive(task, key);
	char *text = value ? cJSON_PrintUnformatted(value) : NULL;
	if (!text)
		return;
	printf("%-10s", label);
	hw_text_print_json(stdout, &ctl->screen, text);
	putchar('\n');
	cJSON_free(text);
}

void hw_show_task(const struct hw_ctl *ctl, const cJSON *task)
{
	print_text(ctl, task, "task", "task");
	printf("%-10s", "state");
	print_state(ctl, hw_member_text(task, "state"), 0);
	if (*hw_member_text(task, "why")) {
		fputs(", ", stdout);
		hw_text_print(stdout, &ctl->screen, hw_member_text(task, "why"));
		const char *means = hw_task_why_means(hw_member_text(task, "why"));
		printf("%s%s", *means ? ": " : "", means);
	}
	putchar('\n');
	print_text(ctl, task, "receiver", "receiver");
	print_text(ctl, task, "action", "action");
	print_text(ctl, task, "topic", "topic");
	print_text(ctl, task, "sender", "sender");
	print_text(ctl, task, "msg_id", "msg_id");
	print_time(task, "created_ms", "created");
	print_time(task, "at_ms", "at");
	print_time(task, "sent_ms", "sent");
	if (hw_member_int(task, "tries") > 1)
		printf("%-10s%" PRId64 "\n", "tries", hw_member_int(task, "tries"));
	print_time(task, "acked_ms", "acked");
	print_time(task, "ended_ms", "ended");
	print_time(task, "exp_ms", "expires");
	print_text(ctl, task, "late", "late");
	print_json(ctl, task, "payload", "payload");
	print_json(ctl, task, "value", "value");
	print_json(ctl, task, "error", "error");
}

#define WIDE 100 /* terminal width with room for all columns */
/* On a narrower terminal, a task's name has a line of its own, because the whole name is needed to refer to the
 * task. */
#define NARROW 76

static void print_task_head(const struct hw_ctl *ctl)
{
	const char *dim = hw_paint(&ctl->screen, HW_DIM), *plain = hw_paint(&ctl->screen, HW_PLAIN);
	if (hw_screen_narrower(&ctl->screen, NARROW))
		printf("%s%-10s%-12s%s%s\n", dim, "STATE", "AT", "RECEIVER ACTION", plain);
	else if (hw_screen_narrower(&ctl->screen, WIDE))
		printf("%s%-10s%-12s%-37s%s%s\n", dim, "STATE", "AT", "TASK", "RECEIVER ACTION", plain);
	else
		printf("%s%-10s%-20s%-6s%-37s%s%s\n", dim, "STATE", "AT", "TRIES", "TASK", "RECEIVER ACTION", plain);
}

void hw_show_task_line(const struct hw_ctl *ctl, const cJSON *task, bool head)
{
	const struct hw_screen *s = &ctl->screen;
	char when[HW_SPAN_MAX], text[2048];
	bool watched = hw_member_has(task, "watched"); /* seen on the broker, sent by another program */
	bool wide = !hw_screen_narrower(s, WIDE), narrow = hw_screen_narrower(s, NARROW);
	int64_t at_ms = hw_member_int(task, watched ? "sent_ms" : "at_ms");
	if (head)
		print_task_head(ctl);
	print_state(ctl, hw_member_text(task, "state"), 10);
	if (wide)
		printf("%-20s%-6" PRId64, hw_text_clock(at_ms, when), watched ? 1 : hw_member_int(task, "tries"));
	else
		printf("%-12s", hw_text_minute(at_ms, when));
	if (!narrow) {
		hw_text_print(stdout, s, hw_member_text(task, "task"));
		putchar(' ');
	}
	snprintf(text, sizeof(text), "%s %s%s%s",
	         hw_member_text(task, hw_member_has(task, "topic") ? "topic" : "receiver"),
	         hw_member_text(task, "action"), watched ? "  from " : "",
	         watched ? hw_member_text(task, "sender") : "");
	hw_text_print_rest(stdout, s, wide ? 73 : narrow ? 22 : 59, text);
	if (narrow) {
		fputs("\n  ", stdout);
		hw_text_print(stdout, s, hw_member_text(task, "task"));
	}
	putchar('\n');
}

void hw_show_task_event(const struct hw_ctl *ctl, const cJSON *event)
{
	char when[HW_SPAN_MAX];
	printf("%s%s%s  ", hw_paint(&ctl->screen, HW_DIM), hw_text_clock(hw_member_int(event, "time_ms"), when),
	       hw_paint(&ctl->screen, HW_PLAIN));
	print_state(ctl, hw_member_text(event, "state"), 10);
	hw_text_print(stdout, &ctl->screen, hw_member_text(event, "task"));
	fputs("  ", stdout);
	hw_text_print(stdout, &ctl->screen, hw_member_text(event, "receiver"));
	if (*hw_member_text(event, "why")) {
		fputs("  ", stdout);
		hw_text_print(stdout, &ctl->screen, hw_member_text(event, "why"));
	}
	if (hw_member_has(event, "watched")) {
		fputs("  from ", stdout);
		hw_text_print(stdout, &ctl->screen, hw_member_text(event, "sender"));
	}
	putchar('\n');
}

static void print_numbers(const struct hw_ctl *ctl, const cJSON *object)
{
	char count[HW_SPAN_MAX];
	const char *between = "";
	for (const cJSON *one = object ? object->child : NULL; one; one = one->next) {
		printf("%s%s ", between, hw_text_count(hw_number_int(one, 1), count));
		hw_text_print(stdout, &ctl->screen, one->string);
		between = ", ";
	}
}

/* Older counts are shown with their age. */
static void print_waiting(const struct hw_ctl *ctl, const cJSON *status)
{
	char span[HW_SPAN_MAX];
	int64_t ago_s = hw_member_int(status, "counted_ago_s");
	print_numbers(ctl, cJSON_GetObjectItemCaseSensitive(status, "states"));
	if (ago_s > HW_COUNTED_LATELY_S)
		printf("; as counted %s ago", hw_text_span(ago_s * 1000, span));
	putchar('\n');
}

void hw_show_tasks_status(const struct hw_ctl *ctl, const cJSON *status)
{
	char span[HW_SPAN_MAX];
	printf("%-10s", "node");
	hw_text_print(stdout, &ctl->screen, hw_member_text(status, "node"));
	printf(", version ");
	hw_text_print(stdout, &ctl->screen, hw_member_text(status, "version"));
	printf(", up for %s\n", hw_text_span(hw_member_int(status, "uptime_s") * 1000, span));
	print_text(ctl, status, "redis", "Redis");
	print_text(ctl, status, "mqtt", "MQTT");
	if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(status, "clock_held")))
		puts("clock     Redis' clock has jumped ahead: no task is sent until the clock is trusted again");
	printf("%-10s", "waiting");
	if (hw_member_has(status, "waiting"))
		print_waiting(ctl, status);
	else
		puts("not counted yet");
	if (hw_member_has(status, "watched"))
		printf("%-10s%" PRId64 " of other clients\n", "watched", hw_member_int(status, "watched"));
	printf("%-10s", "ended");
	print_numbers(ctl, cJSON_GetObjectItemCaseSensitive(status, "ended"));
	puts(" since it was started");
}

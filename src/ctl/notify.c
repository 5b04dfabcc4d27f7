/* SPDX-License-Identifier: MIT */
/* heartwheelctl notify: the notifications that were sent and their results, of heartwheeld and of heartwheel-tasks if
 * it runs. Also sends a test. */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "ctl/ctl.h"

#define POLL_EVERY_MS 50
#define TASKS_S       4     /* timeout of heartwheel-tasks: it answers from memory */
#define PATIENCE_MS   60000 /* three tries of an earlier message, and the test's own */

static enum hw_paint paint_of(const char *result)
{
	if (strcmp(result, "sent") == 0)
		return HW_GOOD;
	return strcmp(result, "waiting") == 0 ? HW_WARN : HW_BAD;
}

/* "sent (status 200)", "failed after 3 tries: the server answered with status 500". */
static void print_result(const struct hw_ctl *ctl, const cJSON *e)
{
	const char *result = hw_member_text(e, "result"), *error = hw_member_text(e, "error");
	int64_t tries = hw_member_int(e, "tries");
	fputs(hw_paint(&ctl->screen, paint_of(result)), stdout);
	hw_text_print(stdout, &ctl->screen, result);
	fputs(hw_paint(&ctl->screen, HW_PLAIN), stdout);
	if (!*error && hw_member_has(e, "http_status"))
		printf(" (status %" PRId64 ")", hw_member_int(e, "http_status"));
	if (tries > 1 || (*error && tries == 1 && strcmp(result, "waiting") == 0))
		printf(" after %" PRId64 " %s", tries, tries == 1 ? "try" : "tries");
	if (*error) {
		fputs(": ", stdout);
		hw_text_print(stdout, &ctl->screen, error);
	}
}

static void print_channel(const struct hw_ctl *ctl, const cJSON *c)
{
	char count[HW_SPAN_MAX];
	const char *names[] = {"sent", "failed", "waiting"};
	bool failing = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(c, "failing"));
	hw_text_column(&ctl->screen, 9, hw_member_text(c, "name"));
	hw_text_column(&ctl->screen, 7, hw_member_text(c, "template"));
	hw_text_print(stdout, &ctl->screen, hw_member_text(c, "target"));
	for (size_t k = 0; k < 3; k++)
		printf("%s%s %s", k ? ", " : ": ", hw_text_count(hw_member_int(c, names[k]), count), names[k]);
	if (failing)
		printf("; %sthe last one did not arrive%s", hw_paint(&ctl->screen, HW_BAD),
		       hw_paint(&ctl->screen, HW_PLAIN));
	putchar('\n');
}

static void print_entry(const struct hw_ctl *ctl, const cJSON *e)
{
	char when[HW_SPAN_MAX];
	printf("%s  ", hw_text_clock(hw_member_int(e, "time_ms"), when));
	hw_text_column(&ctl->screen, 9, hw_member_text(e, "channel"));
	hw_text_print(stdout, &ctl->screen, hw_member_text(e, "about"));
	fputs("\n                     ", stdout);
	print_result(ctl, e);
	putchar('\n');
}

/* Requests the notifications of heartwheel-tasks through heartwheeld; the caller owns the result. Returns NULL and
 * prints nothing if heartwheel-tasks does not run or has another version. If it does not answer, returns NULL, prints
 * that, and sets *rc to a failure. */
static cJSON *ask_tasks(struct hw_ctl *ctl, int *rc)
{
	struct hw_answer a;
	*rc = HW_EXIT_DONE;
	if (hw_client_get(ctl->client, "/v1/tasks/notify", TASKS_S, &a) != 0) {
		*rc = hw_failed(ctl, "heartwheel-tasks does not answer: its notifications are not shown");
		return NULL;
	}
	const cJSON *channels = cJSON_GetObjectItemCaseSensitive(a.json, "channels");
	cJSON *tasks = a.code == 200 && cJSON_GetArraySize(channels) > 0 ? a.json : NULL;
	if (tasks)
		a.json = NULL;
	hw_answer_fini(&a);
	return tasks;
}

static void show_tasks(const struct hw_ctl *ctl, const cJSON *answer)
{
	const cJSON *past = cJSON_GetObjectItemCaseSensitive(answer, "notifications"), *one;
	if (cJSON_GetArraySize(past) == 0)
		return;
	puts("\nby heartwheel-tasks");
	cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(answer, "channels")) print_channel(ctl, one);
	putchar('\n');
	cJSON_ArrayForEach(one, past) print_entry(ctl, one);
}

static void show(const struct hw_ctl *ctl, const cJSON *answer)
{
	const cJSON *channels = cJSON_GetObjectItemCaseSensitive(answer, "channels"),
		    *past = cJSON_GetObjectItemCaseSensitive(answer, "notifications"), *one;
	cJSON_ArrayForEach(one, channels) print_channel(ctl, one);
	if (cJSON_GetArraySize(channels) == 0)
		puts("no notification is sent: set exec or webhook in [notify] of monitor.conf, then reload");
	if (cJSON_GetArraySize(past) == 0)
		puts("nothing was sent since the daemon was started");
	else
		putchar('\n');
	cJSON_ArrayForEach(one, past) print_entry(ctl, one);
}

static int show_all(struct hw_ctl *ctl, cJSON *answer, bool json)
{
	int rc;
	if (!json) {
		show(ctl, answer);
		fflush(stdout);
	}
	cJSON *tasks = ask_tasks(ctl, &rc);
	if (!json) {
		show_tasks(ctl, tasks);
		cJSON_Delete(tasks);
		return rc;
	}
	if (tasks && !cJSON_AddItemToObject(answer, "tasks", tasks))
		cJSON_Delete(tasks);
	int printed = hw_print_json(ctl, answer);
	return printed ? printed : rc;
}

/* --- a test ----------------------------------------------------------------------------------------------------- */

static const cJSON *find(const cJSON *answer, int64_t number)
{
	const cJSON *one;
	cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(answer, "notifications"))
	{
		if (hw_member_int(one, "number") == number)
			return one;
	}
	return NULL;
}

static int report(struct hw_ctl *ctl, const cJSON *e, bool json)
{
	if (json)
		hw_print_json(ctl, e);
	else {
		hw_text_print(stdout, &ctl->screen, hw_member_text(e, "channel"));
		printf(": ");
		print_result(ctl, e);
		putchar('\n');
	}
	fflush(stdout);
	return strcmp(hw_member_text(e, "result"), "sent") == 0 ? HW_EXIT_DONE : HW_EXIT_FAILED;
}

/* Waits for the result of the test. */
static int await(struct hw_ctl *ctl, const cJSON *test, bool json)
{
	const struct timespec pause = {.tv_nsec = POLL_EVERY_MS * 1000000};
	const char *channel = hw_member_text(test, "channel");
	if (!hw_member_has(test, "number"))
		return hw_failed(ctl, "%s: %s", channel, hw_member_text(test, "error"));
	for (int i = 0; i < PATIENCE_MS / POLL_EVERY_MS; i++) {
		struct hw_answer a;
		if (hw_ask(ctl, "GET", "/v1/notify", 200, &a))
			return HW_EXIT_FAILED;
		const cJSON *e = find(a.json, hw_member_int(test, "number"));
		bool over = !e || strcmp(hw_member_text(e, "result"), "waiting") != 0;
		int rc = over && e ? report(ctl, e, json) : HW_EXIT_FAILED;
		hw_answer_fini(&a);
		if (over)
			return e ? rc : hw_failed(ctl, "%s: the result of the test is no longer known", channel);
		nanosleep(&pause, NULL);
	}
	return hw_failed(ctl, "%s: the test has not been sent yet; see 'heartwheelctl notify'", channel);
}

static int run_tests(struct hw_ctl *ctl, const char *channel, bool json)
{
	struct hw_path path = {0};
	struct hw_answer a;
	const cJSON *one;
	hw_path_add(&path, "/v1/notify/test");
	if (channel) {
		hw_path_add(&path, "?channel=");
		hw_path_add_encoded(&path, channel);
	}
	int rc = path.text ? hw_ask(ctl, "POST", path.text, 200, &a) : hw_failed(ctl, "out of memory");
	hw_path_fini(&path);
	if (rc)
		return rc;
	cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(a.json, "tests"))
	{
		int last = await(ctl, one, json);
		rc = rc ? rc : last;
	}
	hw_answer_fini(&a);
	return rc;
}

int hw_cmd_notify(struct hw_ctl *ctl, const struct hw_args *args)
{
	struct hw_answer a;
	if (args->test)
		return run_tests(ctl, args->id, args->json);
	int rc = hw_ask(ctl, "GET", "/v1/notify", 200, &a);
	if (rc)
		return rc;
	rc = show_all(ctl, a.json, args->json);
	hw_answer_fini(&a);
	return rc;
}

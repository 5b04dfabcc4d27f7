/* SPDX-License-Identifier: MIT */
/* heartwheelctl notify: the receivers of heartwheel-alert, their last messages with the results; sends a test. */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "ctl/ctl.h"

#define POLL_EVERY_MS   50
#define PATIENCE_MS     30000 /* a test is one try of at most 15 s, which begins only after the lease was confirmed */
#define NAME_COLUMN     14
#define HTTP_STATUS_MIN 100

static enum hw_paint paint_of(const char *result)
{
	if (strcmp(result, "sent") == 0)
		return HW_GOOD;
	return strcmp(result, "waiting") == 0 ? HW_WARN : HW_BAD;
}

/* Prints the result of a message: "sent (status 200)", "given up (status 404): no such topic", "given up after 3
 * tries: it ended with status 3". */
static void print_result(const struct hw_ctl *ctl, const cJSON *e)
{
	const char *result = hw_member_text(e, "result"), *words = hw_member_text(e, "words");
	int64_t tries = hw_member_int(e, "tries");
	fputs(hw_paint(&ctl->screen, paint_of(result)), stdout);
	hw_text_print(stdout, &ctl->screen, strcmp(result, "given_up") == 0 ? "given up" : result);
	fputs(hw_paint(&ctl->screen, HW_PLAIN), stdout);
	if (hw_member_int(e, "code") >= HTTP_STATUS_MIN) /* else the exit status, which is in the words */
		printf(" (status %" PRId64 ")", hw_member_int(e, "code"));
	if (tries > 1 || (*words && tries == 1 && strcmp(result, "waiting") == 0))
		printf(" after %" PRId64 " %s", tries, tries == 1 ? "try" : "tries");
	if (*words) {
		fputs(": ", stdout);
		hw_text_print(stdout, &ctl->screen, words);
	}
}

static void print_receiver(const struct hw_ctl *ctl, const cJSON *r)
{
	char count[HW_SPAN_MAX];
	const char *members[] = {"sent", "given_up", "waiting"}, *names[] = {"sent", "given up", "waiting"};
	hw_text_column(&ctl->screen, NAME_COLUMN, hw_member_text(r, "name"));
	hw_text_column(&ctl->screen, NAME_COLUMN, hw_member_text(r, "type"));
	hw_text_print(stdout, &ctl->screen, hw_member_text(r, "target"));
	for (size_t k = 0; k < 3; k++)
		printf("%s%s %s", k ? ", " : ": ", hw_text_count(hw_member_int(r, members[k]), count), names[k]);
	if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(r, "failing")))
		printf("; %sthe last one did not arrive%s", hw_paint(&ctl->screen, HW_BAD),
		       hw_paint(&ctl->screen, HW_PLAIN));
	putchar('\n');
}

static void print_message(const struct hw_ctl *ctl, const char *receiver, const cJSON *e)
{
	char when[HW_SPAN_MAX];
	printf("%s  ", hw_text_clock(hw_member_int(e, "time_ms"), when));
	hw_text_column(&ctl->screen, NAME_COLUMN, receiver);
	hw_text_print(stdout, &ctl->screen, hw_member_text(e, "about"));
	printf("\n%*s", 12 + NAME_COLUMN, "");
	print_result(ctl, e);
	putchar('\n');
}

static void show(const struct hw_ctl *ctl, const cJSON *answer)
{
	const cJSON *receivers = cJSON_GetObjectItemCaseSensitive(answer, "receivers"), *r, *one;
	bool any = false;
	if (cJSON_GetArraySize(receivers) == 0)
		puts("no notification is sent: add a section [receiver NAME] to monitor.conf, then reload "
		     "heartwheel-alert");
	cJSON_ArrayForEach(r, receivers) print_receiver(ctl, r);
	cJSON_ArrayForEach(r, receivers)
	{
		const cJSON *messages = cJSON_GetObjectItemCaseSensitive(r, "messages");
		if (cJSON_GetArraySize(messages) == 0)
			continue;
		any = true;
		putchar('\n');
		cJSON_ArrayForEach(one, messages) print_message(ctl, hw_member_text(r, "name"), one);
	}
	if (!any)
		puts("nothing was sent since heartwheel-alert was started");
}

/* --- a test ----------------------------------------------------------------------------------------------------- */

/* Returns the receiver's message of that number, or NULL. */
static const cJSON *find(const cJSON *answer, const char *receiver, int64_t number)
{
	const cJSON *r, *one;
	cJSON_ArrayForEach(r, cJSON_GetObjectItemCaseSensitive(answer, "receivers"))
	{
		if (strcmp(hw_member_text(r, "name"), receiver) != 0)
			continue;
		cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(r, "messages"))
		{
			if (hw_member_int(one, "number") == number)
				return one;
		}
	}
	return NULL;
}

static int report(struct hw_ctl *ctl, const char *receiver, const cJSON *e, bool json)
{
	if (json)
		hw_print_json(ctl, e);
	else {
		hw_text_print(stdout, &ctl->screen, receiver);
		printf(": ");
		print_result(ctl, e);
		putchar('\n');
	}
	fflush(stdout);
	return strcmp(hw_member_text(e, "result"), "sent") == 0 ? HW_EXIT_DONE : HW_EXIT_FAILED;
}

/* Waits for the result of the test. */
static int await(struct hw_ctl *ctl, const char *receiver, int64_t number, bool json)
{
	const struct timespec pause = {.tv_nsec = POLL_EVERY_MS * 1000000};
	for (int i = 0; i < PATIENCE_MS / POLL_EVERY_MS; i++) {
		struct hw_answer a;
		if (hw_ask(ctl, "GET", "/v1/receivers", 200, &a))
			return HW_EXIT_FAILED;
		const cJSON *e = find(a.json, receiver, number);
		bool over = !e || strcmp(hw_member_text(e, "result"), "waiting") != 0;
		int rc = over && e ? report(ctl, receiver, e, json) : HW_EXIT_FAILED;
		hw_answer_fini(&a);
		if (over)
			return e ? rc : hw_failed(ctl, "%s: the result of the test is no longer known", receiver);
		nanosleep(&pause, NULL);
	}
	return hw_failed(ctl, "%s: the test has not been sent yet; see 'heartwheelctl notify'", receiver);
}

static int run_test(struct hw_ctl *ctl, const char *receiver, bool json)
{
	struct hw_path path = {0};
	struct hw_answer a;
	hw_path_add(&path, "/v1/receivers/");
	hw_path_add_encoded(&path, receiver);
	hw_path_add(&path, "/test");
	int rc = path.text ? hw_ask(ctl, "POST", path.text, 202, &a) : hw_failed(ctl, "out of memory");
	hw_path_fini(&path);
	if (rc)
		return rc;
	int64_t number = hw_member_int(a.json, "number");
	hw_answer_fini(&a);
	return await(ctl, receiver, number, json);
}

static int run_tests(struct hw_ctl *ctl, bool json)
{
	struct hw_answer a;
	const cJSON *r;
	int rc = hw_ask(ctl, "GET", "/v1/receivers", 200, &a);
	if (rc)
		return rc;
	const cJSON *receivers = cJSON_GetObjectItemCaseSensitive(a.json, "receivers");
	if (cJSON_GetArraySize(receivers) == 0)
		rc = hw_failed(ctl, "there is no receiver: add a section [receiver NAME] to monitor.conf, then reload "
		                    "heartwheel-alert");
	cJSON_ArrayForEach(r, receivers)
	{
		int last = run_test(ctl, hw_member_text(r, "name"), json);
		rc = rc ? rc : last;
	}
	hw_answer_fini(&a);
	return rc;
}

int hw_cmd_notify(struct hw_ctl *ctl, const struct hw_args *args)
{
	if (args->test)
		return args->id ? run_test(ctl, args->id, args->json) : run_tests(ctl, args->json);
	return hw_ask_and_show(ctl, "/v1/receivers", args->json, show);
}

/* SPDX-License-Identifier: MIT */
/*
 * heartwheelctl task: sends, lists, shows, cancels and watches tasks. The default socket is the one in section [tasks]
 * of monitor.conf. heartwheeld's socket works too, because heartwheeld forwards the requests.
 *
 * This program makes the msg_id of a new task. So it can submit the task repeatedly to wait for its end, and
 * heartwheel-tasks accepts it only once.
 */
#include "ctl/task.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "conf/conf.h"
#include "heartwheel/json_writer.h"
#include "heartwheel/print.h"

#define WAIT_MAX_S 50 /* longest wait of one request */
#define PATIENCE_S 20 /* timeout beyond the wait */
#define COUNTS_MS  3000
#define RETRY_MS   1000

/* --- sending ---------------------------------------------------------------------------------------------------- */

/* Parses Unix seconds or a date. False: neither. */
static bool parse_time(const char *text, double *s)
{
	struct tm tm = {.tm_isdst = -1};
	char *end;
	*s = strtod(text, &end);
	if (end != text && !*end)
		return *s >= 0;
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	if (!rest || (*rest && strcmp(rest, "Z") != 0))
		return false;
	*s = (double)(*rest ? timegm(&tm) : mktime(&tm));
	return true;
}

static bool make_id(char id[40])
{
	unsigned char random[12];
	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return false;
	size_t n = hw_print(id, 40, "ctl-");
	for (size_t i = 0; i < sizeof(random); i++)
		n += hw_print(id + n, 3, "%02x", random[i]);
	return true;
}

/* Returns the body, which the caller owns; or NULL with an exit status in *rc. */
static char *make_body(const struct hw_ctl *ctl, const struct hw_args *r, const char *id, int *rc)
{
	int64_t after_ms = 0, exp_ms = 0;
	double at = (double)hw_wall_ms() / 1e3;
	*rc = HW_EXIT_USAGE;
	if (r->at && !parse_time(r->at, &at))
		return hw_usage(r->command, "--at must be a time: Unix seconds, or 2026-11-24T12:00:00"), NULL;
	if (r->after && hw_conf_duration_parse(r->after, &after_ms) != 0)
		return hw_usage(r->command, "--after must be a duration such as 30s or 2h"), NULL;
	if (r->exp && (hw_conf_duration_parse(r->exp, &exp_ms) != 0 || exp_ms == 0))
		return hw_usage(r->command, "--exp must be a duration such as 30s or 2h"), NULL;
	cJSON *payload = r->n_words > 2 ? cJSON_ParseWithOpts(r->words[2], NULL, 1) : NULL;
	if (r->n_words > 2 && !payload)
		return hw_usage(r->command, "the payload must be JSON; write a text as '\"text\"', with its quotes"),
		       NULL;
	cJSON_Delete(payload);
	struct hw_json j;
	hw_json_begin_alloc(&j);
	hw_json_open(&j, '{');
	hw_json_text(&j, "msg_id", id);
	hw_json_text(&j, "receiver", r->words[0]);
	hw_json_text(&j, "action", r->words[1]);
	if (r->n_words > 2)
		hw_json_raw(&j, "payload", r->words[2], strlen(r->words[2]));
	if (r->at)
		hw_json_number(&j, "at", at);
	if (r->after)
		hw_json_number(&j, "after", (double)after_ms / 1e3);
	if (r->exp)
		hw_json_number(&j, "exp", at + (double)(after_ms + exp_ms) / 1e3);
	if (r->no_hold)
		hw_json_bool(&j, "hold", false);
	const char *wrong;
	char *text = hw_body_end(&j, &wrong);
	if (!text)
		*rc = hw_failed(ctl, "%s", wrong);
	return text;
}

static bool has_ended(const cJSON *task)
{
	const char *state = hw_member_text(task, "state");
	return strcmp(state, "complete") == 0 || strcmp(state, "failed") == 0 || strcmp(state, "expired") == 0 ||
	       strcmp(state, "cancelled") == 0;
}

/* Reports that it is unknown whether the task was accepted, and shows the msg_id: sent again without this msg_id, the
 * task might be carried out twice. */
static int not_known(const struct hw_ctl *ctl, const char *why, const char *id)
{
	hw_failed(ctl, "%s", why);
	return hw_failed(ctl, "the task may have been accepted; send it again with --id %s, and it remains one task",
	                 id);
}

/* Submits the task repeatedly until it has ended or `wait_ms` have passed. Returns 0 with the last answer, or an exit
 * status. */
static int submit(struct hw_ctl *ctl, const char *body, const char *id, int64_t wait_ms, struct hw_answer *a)
{
	int64_t until_ms = hw_wall_ms() + wait_ms, left_ms = wait_ms;
	char path[64];
	for (;;) {
		int64_t wait_s = (left_ms + 999) / 1000;
		wait_s = wait_s > WAIT_MAX_S ? WAIT_MAX_S : wait_s;
		snprintf(path, sizeof(path), "/v1/tasks?wait=%" PRId64, wait_s);
		if (hw_client_post(ctl->client, path, body, (long)wait_s + PATIENCE_S, a) < 0)
			return hw_client_may_have_asked(ctl->client) ? not_known(ctl, hw_client_why(ctl->client), id)
			                                             : hw_failed(ctl, "%s", hw_client_why(ctl->client));
		if ((a->code != 201 && a->code != 200) || !a->json) {
			const char *why = hw_member_text(a->json, "error");
			why = *why ? why : "heartwheel-tasks' answer is malformed";
			int rc = a->code == 503 ? not_known(ctl, why, id) : hw_failed(ctl, "%s", why);
			hw_answer_fini(a);
			return rc;
		}
		left_ms = until_ms - hw_wall_ms();
		if (has_ended(a->json) || left_ms <= 0)
			return 0;
		hw_answer_fini(a);
	}
}

int hw_cmd_task_send(struct hw_ctl *ctl, const struct hw_args *r)
{
	char id[40];
	int64_t wait_ms = 0;
	struct hw_answer a;
	int rc;
	if (r->wait && hw_conf_duration_parse(r->wait, &wait_ms) != 0)
		return hw_usage(r->command, "--wait must be a duration such as 30s or 5m");
	if (!r->msg_id && !make_id(id))
		return hw_failed(ctl, "the system has no random numbers");
	char *body = make_body(ctl, r, r->msg_id ? r->msg_id : id, &rc);
	if (!body)
		return rc;
	rc = submit(ctl, body, r->msg_id ? r->msg_id : id, wait_ms, &a);
	free(body);
	if (rc)
		return rc;
	if (r->json)
		rc = hw_print_json(ctl, a.json);
	else
		hw_show_task(ctl, a.json);
	fflush(stdout);
	if (!rc && r->wait && !has_ended(a.json))
		rc = hw_failed(ctl, "the task has not ended within %s and continues; see heartwheelctl task show %s",
		               r->wait, hw_member_text(a.json, "task"));
	if (!rc && r->wait && strcmp(hw_member_text(a.json, "state"), "complete") != 0)
		rc = HW_EXIT_FAILED;
	hw_answer_fini(&a);
	return rc;
}

/* --- list, show, cancel, status --------------------------------------------------------------------------------- */

static void add(struct hw_path *path, const char *key, const char *value)
{
	if (!value)
		return;
	hw_path_add(path, key);
	hw_path_add_encoded(path, value);
}

static int show_page(const struct hw_ctl *ctl, const struct hw_args *r, const cJSON *tasks, uint64_t *n)
{
	int rc = 0;
	for (const cJSON *task = tasks ? tasks->child : NULL; task && rc == 0; task = task->next, ++*n)
		if (r->json)
			rc = hw_print_json(ctl, task);
		else if (r->names)
			hw_text_print_name(&ctl->screen, hw_member_text(task, "task"));
		else
			hw_show_task_line(ctl, task, *n == 0);
	return rc;
}

int hw_cmd_task_list(struct hw_ctl *ctl, const struct hw_args *r)
{
	uint64_t limit = r->limit, n = 0;
	char after[128] = "", count[16];
	int rc;
	do {
		struct hw_path path = {0};
		struct hw_answer a;
		uint64_t left = limit ? limit - n : 1000;
		snprintf(count, sizeof(count), "%u", left < 1000 ? (unsigned)left : 1000);
		add(&path, "/v1/tasks?limit=", count);
		add(&path, "&receiver=", r->receiver);
		add(&path, "&state=", r->state);
		add(&path, "&watched=", r->watched ? "1" : NULL);
		add(&path, "&after=", *after ? after : NULL);
		rc = hw_ask_path(ctl, "GET", &path, &a);
		if (rc)
			return rc;
		rc = show_page(ctl, r, cJSON_GetObjectItemCaseSensitive(a.json, "tasks"), &n);
		snprintf(after, sizeof(after), "%s", hw_member_text(a.json, "next"));
		hw_answer_fini(&a);
	} while (rc == 0 && *after && (limit == 0 || n < limit) && !ferror(stdout));
	if (rc == 0 && n == 0 && !r->json && !r->names)
		printf("no%s task %s\n", r->receiver || r->state ? " such" : "",
		       r->watched ? "of others is known" : "waits");
	return rc;
}

/* Returns 0, or prints that `name` is malformed and returns an exit status. Not every path below /v1/tasks/ is a task.
 */
static int need_task(const struct hw_ctl *ctl, const char *name)
{
	if (strlen(name) == 36 && strspn(name, "0123456789abcdef-") == 36)
		return 0;
	return hw_failed(ctl, "no such task: '%s'; 'task list' and 'task send' show the names", name);
}

int hw_cmd_task_show(struct hw_ctl *ctl, const struct hw_args *r)
{
	struct hw_path path = {0};
	struct hw_answer a;
	if (need_task(ctl, r->words[0]))
		return HW_EXIT_FAILED;
	add(&path, "/v1/tasks/", r->words[0]);
	int rc = hw_ask_path(ctl, "GET", &path, &a);
	if (rc)
		return rc;
	if (r->json)
		rc = hw_print_json(ctl, a.json);
	else
		hw_show_task(ctl, a.json);
	hw_answer_fini(&a);
	return rc;
}

int hw_cmd_task_cancel(struct hw_ctl *ctl, const struct hw_args *r)
{
	struct hw_path path = {0};
	struct hw_answer a;
	if (need_task(ctl, r->words[0]))
		return HW_EXIT_FAILED;
	add(&path, "/v1/tasks/", r->words[0]);
	hw_path_add(&path, r->force ? "?force=1" : "");
	int rc = hw_ask_path(ctl, "DELETE", &path, &a);
	if (rc)
		return rc;
	if (r->json)
		rc = hw_print_json(ctl, a.json);
	else {
		printf("cancelled; the task was ");
		hw_text_print(stdout, &ctl->screen, hw_member_text(a.json, "was"));
		puts(hw_member_int(a.json, "tries") > 0 ? ": the device may have executed it" : "");
	}
	hw_answer_fini(&a);
	return rc;
}

/* Whether heartwheel-tasks still updates its counts, which it does only after a request for them. The first answer
 * may have old counts; about a second later the counts are new. */
static bool is_counting(const cJSON *status)
{
	bool old = !hw_member_has(status, "waiting") || hw_member_int(status, "counted_ago_s") > HW_COUNTED_LATELY_S;
	return old && strcmp(hw_member_text(status, "redis"), "up") == 0;
}

int hw_cmd_task_status(struct hw_ctl *ctl, const struct hw_args *r)
{
	static const struct timespec pause = {.tv_nsec = 100 * 1000000};
	int64_t until_ms = hw_wall_ms() + COUNTS_MS;
	struct hw_answer a;
	for (;;) {
		int rc = hw_ask(ctl, "GET", "/v1/tasks/status", 200, &a);
		if (rc)
			return rc;
		if (!is_counting(a.json) || hw_wall_ms() >= until_ms)
			break;
		hw_answer_fini(&a);
		nanosleep(&pause, NULL);
	}
	int rc = r->json ? hw_print_json(ctl, a.json) : HW_EXIT_DONE;
	if (!r->json)
		hw_show_tasks_status(ctl, a.json);
	hw_answer_fini(&a);
	return rc;
}

/* --- watch ------------------------------------------------------------------------------------------------------ */

struct watch {
	struct hw_ctl *ctl;
	const struct hw_args *r;
	char kind[32], place[64], last[64];
	char *data; /* owned */
	bool heard; /* the connection has delivered data */
	int rc;
};

static bool is_wanted(const struct hw_args *r, const cJSON *event)
{
	return (!r->receiver || strcmp(r->receiver, hw_member_text(event, "receiver")) == 0) &&
	       (!r->state || strcmp(r->state, hw_member_text(event, "state")) == 0);
}

static bool end_event(struct watch *w)
{
	cJSON *event = w->data && strcmp(w->kind, "task") == 0 ? cJSON_Parse(w->data) : NULL;
	if (strcmp(w->kind, "reset") == 0)
		fputs("heartwheelctl: the events of the meantime are no longer available\n", stderr);
	if (event && is_wanted(w->r, event)) {
		if (w->r->json)
			w->rc = hw_print_json(w->ctl, event);
		else
			hw_show_task_event(w->ctl, event);
	}
	cJSON_Delete(event);
	if (*w->place)
		snprintf(w->last, sizeof(w->last), "%s", w->place);
	*w->kind = *w->place = '\0';
	free(w->data);
	w->data = NULL;
	return w->rc == 0 && fflush(stdout) == 0;
}

static bool on_line(void *arg, const char *line)
{
	struct watch *w = arg;
	w->heard = true;
	if (!*line)
		return end_event(w);
	if (strncmp(line, "event: ", 7) == 0) {
		snprintf(w->kind, sizeof(w->kind), "%s", line + 7);
	} else if (strncmp(line, "id: ", 4) == 0) {
		snprintf(w->place, sizeof(w->place), "%s", line + 4);
	} else if (strncmp(line, "data: ", 6) == 0) {
		free(w->data);
		w->data = strdup(line + 6);
	}
	return true;
}

int hw_cmd_task_watch(struct hw_ctl *ctl, const struct hw_args *r)
{
	static const struct timespec retry = {RETRY_MS / 1000, RETRY_MS % 1000 * 1000000};
	struct watch w = {.ctl = ctl, .r = r};
	bool ever = false, reported = false;
	long code;
	for (;;) {
		w.heard = false;
		*w.kind = *w.place = '\0';
		int rc = hw_client_stream(ctl->client, "/v1/tasks/events", w.last, on_line, &w, &code);
		if (w.rc || ferror(stdout) || rc == 1 || (!ever && !w.heard))
			break;
		ever = true;
		reported = reported && !w.heard;
		if (!reported)
			fputs("heartwheelctl: lost the connection to heartwheel-tasks; waiting for it to return\n",
			      stderr);
		reported = true;
		nanosleep(&retry, NULL);
	}
	free(w.data);
	return w.rc || ferror(stdout) ? w.rc : hw_failed(ctl, "%s", hw_client_why(ctl->client));
}

/* SPDX-License-Identifier: MIT */
/*
 * heartwheelctl task: tasks are sent, listed, shown, cancelled and watched. The socket is that of [tasks] in
 * monitor.conf, unless one is named: heartwheeld's will do as well, which hands on what is asked.
 *
 * A task that is sent has a msg_id that is made here: so it can be submitted again, to wait on, and is still one task.
 */
#include "ctl/task.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "conf/conf.h"
#include "ctl/other.h"
#include "heartwheel/print.h"

#define WAIT_MAX_S 50 /* of one request */
#define PATIENCE_S 20 /* beyond what it waits by itself */
#define COUNTS_MS  3000
#define RETRY_MS   1000

static const char help[] = "usage: heartwheelctl [-s SOCKET | -c FILE] task send [OPTION]... RECEIVER ACTION [JSON]\n"
			   "       heartwheelctl [-s SOCKET | -c FILE] task list [OPTION]...\n"
			   "       heartwheelctl [-s SOCKET | -c FILE] task show|cancel [OPTION]... TASK\n"
			   "       heartwheelctl [-s SOCKET | -c FILE] task watch|status [OPTION]...\n"
			   "\n"
			   "Sends commands to devices by heartwheel-tasks, and follows them to their end.\n"
			   "\n"
			   "send:\n"
			   "  --at T        not before: Unix seconds, 2026-11-24T12:00:00 (local), or with a Z\n"
			   "  --after D     in so long: 30s, 5m, 2h\n"
			   "  --exp D       expires so long behind that without an acknowledgement\n"
			   "  --no-hold     fails where the device is offline, instead of being held for it\n"
			   "  --id ID       the msg_id: who gives it again gives the same task\n"
			   "  --wait D      waits so long for the end; exit status 0 only if it is complete\n"
			   "list, watch:\n"
			   "  --receiver R  only that device's\n"
			   "  --state S     only those that are so; list: scheduled, held, sent or acked,\n"
			   "                with --watched also complete, failed or expired\n"
			   "  --limit N     list: at most N\n"
			   "  --names       list: nothing but the tasks' names\n"
			   "  --watched     list: those that others sent one another, in any state ([tasks] watch)\n"
			   "cancel:\n"
			   "  --force       also one that the device has acknowledged\n"
			   "all:\n"
			   "  --json        as JSON; list and watch: an object a line\n"
			   "  -h, --help    this text\n";

struct request {
	const char *at, *after, *exp, *id, *wait, *receiver, *state, *limit;
	bool json, names, force, no_hold, watched;
	char **words;
	int n_words;
};

static int __attribute__((format(printf, 1, 2))) usage(const char *format, ...)
{
	va_list args;
	fputs("heartwheelctl: task: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputs("\nTry 'heartwheelctl task --help'.\n", stderr);
	return HW_EXIT_USAGE;
}

/* --- sending ------------------------------------------------------------------------------------------------------ */

/* Unix seconds, or a date. False: it is neither. */
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

/* The body; NULL with *rc an exit status. Owned. */
static char *make_body(const struct hw_ctl *ctl, const struct request *r, const char *id, int *rc)
{
	int64_t after_ms = 0, exp_ms = 0;
	double at = (double)hw_wall_ms() / 1e3;
	*rc = HW_EXIT_USAGE;
	if (r->at && !parse_time(r->at, &at))
		return usage("--at is no time: Unix seconds, or 2026-11-24T12:00:00"), NULL;
	if (r->after && hw_conf_duration_parse(r->after, &after_ms) != 0)
		return usage("--after is a duration such as 30s or 2h"), NULL;
	if (r->exp && (hw_conf_duration_parse(r->exp, &exp_ms) != 0 || exp_ms == 0))
		return usage("--exp is a duration such as 30s or 2h"), NULL;
	cJSON *payload = r->n_words > 2 ? cJSON_ParseWithOpts(r->words[2], NULL, 1) : NULL;
	if (r->n_words > 2 && !payload)
		return usage("the payload is not JSON; a text is '\"text\"', with its quotes"), NULL;
	cJSON_Delete(payload);
	cJSON *body = cJSON_CreateObject();
	bool made = body && cJSON_AddStringToObject(body, "msg_id", id) &&
	            cJSON_AddStringToObject(body, "receiver", r->words[0]) &&
	            cJSON_AddStringToObject(body, "action", r->words[1]) &&
	            (r->n_words < 3 || cJSON_AddRawToObject(body, "payload", r->words[2])) &&
	            (!r->at || cJSON_AddNumberToObject(body, "at", at)) &&
	            (!r->after || cJSON_AddNumberToObject(body, "after", (double)after_ms / 1e3)) &&
	            (!r->exp || cJSON_AddNumberToObject(body, "exp", at + (double)(after_ms + exp_ms) / 1e3)) &&
	            (!r->no_hold || cJSON_AddFalseToObject(body, "hold"));
	char *text = made ? cJSON_PrintUnformatted(body) : NULL;
	cJSON_Delete(body);
	if (!text)
		*rc = hw_failed(ctl, "out of memory");
	return text;
}

static bool has_ended(const cJSON *task)
{
	const char *state = hw_member_text(task, "state");
	return strcmp(state, "complete") == 0 || strcmp(state, "failed") == 0 || strcmp(state, "expired") == 0 ||
	       strcmp(state, "cancelled") == 0;
}

/* It may have been taken: who sends it again without its msg_id has sent two. */
static int not_known(const struct hw_ctl *ctl, const char *why, const char *id)
{
	hw_failed(ctl, "%s", why);
	return hw_failed(ctl, "it may have been taken; send it again with --id %s: that is the same task", id);
}

/* Submits it, and again until it has ended or `wait_ms` are over. 0 with the last answer, or an exit status. */
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
			why = *why ? why : "heartwheel-tasks did not say what it did";
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

static int send_task(struct hw_ctl *ctl, const struct request *r)
{
	char id[40];
	int64_t wait_ms = 0;
	struct hw_answer a;
	int rc;
	if (r->wait && hw_conf_duration_parse(r->wait, &wait_ms) != 0)
		return usage("--wait is a duration such as 30s or 5m");
	if (!r->id && !make_id(id))
		return hw_failed(ctl, "there are no random numbers");
	char *body = make_body(ctl, r, r->id ? r->id : id, &rc);
	if (!body)
		return rc;
	rc = submit(ctl, body, r->id ? r->id : id, wait_ms, &a);
	cJSON_free(body);
	if (rc)
		return rc;
	if (r->json)
		rc = hw_print_json(ctl, a.json);
	else
		hw_show_task(ctl, a.json);
	fflush(stdout);
	if (!rc && r->wait && !has_ended(a.json))
		rc = hw_failed(ctl, "it has not ended within %s, and goes on: heartwheelctl task show %s", r->wait,
		               hw_member_text(a.json, "task"));
	if (!rc && r->wait && strcmp(hw_member_text(a.json, "state"), "complete") != 0)
		rc = HW_EXIT_FAILED;
	hw_answer_fini(&a);
	return rc;
}

/* --- list, show, cancel, status ----------------------------------------------------------------------------------- */

static void add(struct hw_path *path, const char *key, const char *value)
{
	if (!value)
		return;
	hw_path_add(path, key);
	hw_path_add_encoded(path, value);
}

static int show_page(const struct hw_ctl *ctl, const struct request *r, const cJSON *tasks, uint64_t *n)
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

static int list_tasks(struct hw_ctl *ctl, const struct request *r)
{
	uint64_t limit = r->limit ? strtoull(r->limit, NULL, 10) : 0, n = 0;
	char after[128] = "", count[16];
	int rc;
	if (r->limit && (limit == 0 || strspn(r->limit, "0123456789") != strlen(r->limit) || strlen(r->limit) > 9))
		return usage("--limit is a number from 1 on");
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

/* 0; or an exit status, after having said that it is no name: below /v1/tasks/ stands more than tasks. */
static int need_task(const struct hw_ctl *ctl, const char *name)
{
	if (strlen(name) == 36 && strspn(name, "0123456789abcdef-") == 36)
		return 0;
	return hw_failed(ctl, "no such task: '%s' is no name of one, which 'task list' and 'task send' show", name);
}

static int show_task(struct hw_ctl *ctl, const struct request *r)
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

static int cancel_task(struct hw_ctl *ctl, const struct request *r)
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
		printf("cancelled; it was ");
		hw_text_print(stdout, &ctl->screen, hw_member_text(a.json, "was"));
		puts(hw_member_int(a.json, "tries") > 0 ? ": the device may have done it" : "");
	}
	hw_answer_fini(&a);
	return rc;
}

/* It counts only for who asks, so what it has may be of long ago: the next second has it anew. */
static bool is_counting(const cJSON *status)
{
	bool old = !hw_member_has(status, "waiting") || hw_member_int(status, "counted_ago_s") > HW_COUNTED_LATELY_S;
	return old && strcmp(hw_member_text(status, "redis"), "up") == 0;
}

static int show_status(struct hw_ctl *ctl, const struct request *r)
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

/* --- watch -------------------------------------------------------------------------------------------------------- */

struct watch {
	struct hw_ctl *ctl;
	const struct request *r;
	char kind[32], place[64], last[64];
	char *data; /* owned */
	bool heard; /* on this connection */
	int rc;
};

static bool is_wanted(const struct request *r, const cJSON *event)
{
	return (!r->receiver || strcmp(r->receiver, hw_member_text(event, "receiver")) == 0) &&
	       (!r->state || strcmp(r->state, hw_member_text(event, "state")) == 0);
}

static bool end_event(struct watch *w)
{
	cJSON *event = w->data && strcmp(w->kind, "task") == 0 ? cJSON_Parse(w->data) : NULL;
	if (strcmp(w->kind, "reset") == 0)
		fputs("heartwheelctl: what happened meanwhile is not to be had any more\n", stderr);
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

static int watch_tasks(struct hw_ctl *ctl, const struct request *r)
{
	static const struct timespec retry = {RETRY_MS / 1000, RETRY_MS % 1000 * 1000000};
	struct watch w = {.ctl = ctl, .r = r};
	bool ever = false, told = false;
	long code;
	for (;;) {
		w.heard = false;
		*w.kind = *w.place = '\0';
		int rc = hw_client_stream(ctl->client, "/v1/tasks/events", w.last, on_line, &w, &code);
		if (w.rc || ferror(stdout) || rc == 1 || (!ever && !w.heard))
			break;
		ever = true;
		told = told && !w.heard;
		if (!told)
			fputs("heartwheelctl: lost heartwheel-tasks; waiting for it to come back\n", stderr);
		told = true;
		nanosleep(&retry, NULL);
	}
	free(w.data);
	return w.rc || ferror(stdout) ? w.rc : hw_failed(ctl, "%s", hw_client_why(ctl->client));
}

/* --- the command line --------------------------------------------------------------------------------------------- */

enum { TAKES_SEND = 1, TAKES_FILTER = 2, TAKES_LIST = 4, TAKES_FORCE = 8, TAKES_ALL = 16 };

static const struct verb {
	const char *name;
	int (*run)(struct hw_ctl *ctl, const struct request *r);
	int least, most; /* words */
	unsigned takes;
} verbs[] = {{"send", send_task, 2, 3, TAKES_SEND},
             {"list", list_tasks, 0, 0, TAKES_FILTER | TAKES_LIST},
             {"show", show_task, 1, 1, 0},
             {"cancel", cancel_task, 1, 1, TAKES_FORCE},
             {"watch", watch_tasks, 0, 0, TAKES_FILTER},
             {"status", show_status, 0, 0, 0}};

static const struct {
	struct option option;
	unsigned of;
} options[] = {{{"at", required_argument, NULL, 'a'}, TAKES_SEND},
               {{"after", required_argument, NULL, 'A'}, TAKES_SEND},
               {{"exp", required_argument, NULL, 'e'}, TAKES_SEND},
               {{"id", required_argument, NULL, 'i'}, TAKES_SEND},
               {{"wait", required_argument, NULL, 'w'}, TAKES_SEND},
               {{"no-hold", no_argument, NULL, 'H'}, TAKES_SEND},
               {{"receiver", required_argument, NULL, 'r'}, TAKES_FILTER},
               {{"state", required_argument, NULL, 's'}, TAKES_FILTER},
               {{"limit", required_argument, NULL, 'l'}, TAKES_LIST},
               {{"names", no_argument, NULL, 'n'}, TAKES_LIST},
               {{"watched", no_argument, NULL, 'W'}, TAKES_LIST},
               {{"force", no_argument, NULL, 'f'}, TAKES_FORCE},
               {{"json", no_argument, NULL, 'j'}, TAKES_ALL},
               {{"help", no_argument, NULL, 'h'}, TAKES_ALL}};
#define N_OPTIONS (sizeof(options) / sizeof(*options))

static void take_option(struct request *r, int o)
{
	const struct {
		int o;
		const char **text;
	} texts[] = {{'a', &r->at},   {'A', &r->after},    {'e', &r->exp},   {'i', &r->id},
	             {'w', &r->wait}, {'r', &r->receiver}, {'s', &r->state}, {'l', &r->limit}};
	r->json |= o == 'j';
	r->names |= o == 'n';
	r->force |= o == 'f';
	r->no_hold |= o == 'H';
	r->watched |= o == 'W';
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (texts[i].o == o)
			*texts[i].text = optarg;
}

static const struct verb *find_verb(const char *name)
{
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	return NULL;
}

static int unknown_verb(const char *name)
{
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		if (hw_text_may_mean(name, verbs[i].name))
			return usage("unknown command '%s'; did you mean '%s'?", name, verbs[i].name);
	return usage("unknown command '%s'", name);
}

static bool is_state(const char *text)
{
	static const char *const states[] = {"scheduled", "held",   "sent",    "acked",
	                                     "complete",  "failed", "expired", "cancelled"};
	for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++)
		if (strcmp(states[i], text) == 0)
			return true;
	return false;
}

/* What is wrong with what was read, or NULL. */
static const char *judge(const struct verb *v, const struct request *r, unsigned given)
{
	if (given & ~(v->takes | TAKES_ALL))
		return "this command does not take one of these options";
	if (r->n_words < v->least)
		return v->least == 1 ? "which task?" : "a receiver and an action are needed";
	if (r->n_words > v->most)
		return "too many arguments";
	if (r->state && !is_state(r->state))
		return "--state is scheduled, held, sent, acked, complete, failed, expired or cancelled";
	if (r->at && r->after)
		return "--at and --after exclude each other";
	return r->json && r->names ? "--json and --names exclude each other" : NULL;
}

/* -1, or an exit status. */
static int read_args(int argc, char **argv, struct request *r, const struct verb **verb)
{
	struct option known[N_OPTIONS + 1] = {{0}};
	unsigned given = 0;
	int o, which;
	for (size_t i = 0; i < N_OPTIONS; i++)
		known[i] = options[i].option;
	optind = 0; /* GNU: start over, with another array */
	while ((o = getopt_long(argc, argv, ":h", known, &which)) != -1) {
		if (o == 'h')
			return fputs(help, stdout) < 0 ? HW_EXIT_FAILED : HW_EXIT_DONE;
		if (o == ':' || o == '?')
			return usage(o == ':' ? "option '%s' needs a value" : "unknown option '%s'", argv[optind - 1]);
		given |= options[which].of;
		take_option(r, o);
	}
	if (optind == argc)
		return usage("which command: send, list, show, cancel, watch or status?");
	*verb = find_verb(argv[optind]);
	if (!*verb)
		return unknown_verb(argv[optind]);
	r->words = argv + optind + 1;
	r->n_words = argc - optind - 1;
	const char *wrong = judge(*verb, r, given);
	return wrong ? usage("%s", wrong) : -1;
}

struct call {
	const struct verb *verb;
	struct request request;
};

static int run(struct hw_ctl *ctl, void *arg)
{
	const struct call *c = arg;
	return c->verb->run(ctl, &c->request);
}

int hw_task_main(const struct hw_whom *whom, int argc, char **argv)
{
	struct call c = {.verb = NULL};
	int rc = read_args(argc, argv, &c.request, &c.verb);
	return rc >= 0 || !c.verb ? rc : hw_ask_other(whom, "heartwheel-tasks", "tasks", run, &c);
}

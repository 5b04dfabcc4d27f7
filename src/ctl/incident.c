/* SPDX-License-Identifier: MIT */
/* heartwheelctl incidents, incident, ack, unack, silence, silences, unsilence: the answers of heartwheel-alert. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/conf.h"
#include "ctl/ctl.h"
#include "ctl/other.h"
#include "heartwheel/glob.h"
#include "heartwheel/json_writer.h"

#define TIMEOUT_S 15 /* the answer comes when Redis has the change */
#define PAGES_MAX 1000

/* --- incidents ---------------------------------------------------------------------------------------------------- */

static bool is_open(const cJSON *i)
{
	return strcmp(hw_member_text(i, "state"), "open") == 0;
}

/* A silence covers all its devices that are down. */
static bool is_silenced(const cJSON *i)
{
	return hw_member_int(i, "silenced") > 0 && hw_member_int(i, "silenced") >= hw_member_int(i, "down");
}

enum hw_paint hw_incident_paint(const cJSON *incident)
{
	if (!is_open(incident))
		return HW_PLAIN;
	return hw_member_has(incident, "by") || is_silenced(incident) ? HW_DIM : HW_BAD;
}

/* Prints a line: "0mwzeeskwg1a  open          gateway ga is offline since 14:39:16: ...". */
static void print_line(const struct hw_ctl *ctl, const cJSON *i)
{
	bool acknowledged = hw_member_has(i, "by") && is_open(i);
	bool silenced = !acknowledged && is_silenced(i) && is_open(i);
	hw_text_column(&ctl->screen, 14, hw_member_text(i, "id"));
	fputs(hw_paint(&ctl->screen, hw_incident_paint(i)), stdout);
	hw_text_column(&ctl->screen, 14,
	               acknowledged ? "acknowledged"
	               : silenced   ? "silenced"
	                            : hw_member_text(i, "state"));
	fputs(hw_paint(&ctl->screen, HW_PLAIN), stdout);
	hw_text_print(stdout, &ctl->screen, hw_member_text(i, "sentence"));
	putchar('\n');
}

/* Prints all pages of a list. *n counts the incidents. */
static int list(struct hw_ctl *ctl, const char *state, const struct hw_args *args, unsigned *n)
{
	char next[64] = "";
	int rc = HW_EXIT_DONE;
	for (int page = 0; page < PAGES_MAX; page++) {
		struct hw_path path = {0};
		struct hw_answer a;
		const cJSON *one;
		hw_path_add(&path, "/v1/incidents?limit=1000&state=");
		hw_path_add(&path, state);
		hw_path_add(&path, args->group ? "&group=" : "");
		hw_path_add_encoded(&path, args->group ? args->group : "");
		hw_path_add(&path, *next ? "&after=" : "");
		hw_path_add_encoded(&path, next);
		rc = hw_ask_path(ctl, "GET", &path, &a);
		if (rc)
			return rc;
		cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(a.json, "incidents"))
		{
			++*n;
			if (args->json)
				rc = hw_print_json(ctl, one);
			else
				print_line(ctl, one);
		}
		snprintf(next, sizeof(next), "%.63s", hw_member_text(a.json, "next"));
		hw_answer_fini(&a);
		if (!*next || rc)
			break;
	}
	return rc;
}

int hw_cmd_incidents(struct hw_ctl *ctl, const struct hw_args *args)
{
	unsigned n = 0;
	int rc = list(ctl, "open", args, &n);
	if (rc == HW_EXIT_DONE && args->all)
		rc = list(ctl, "closed", args, &n);
	if (rc == HW_EXIT_DONE && n == 0 && !args->json)
		puts(args->all ? "no incident" : "no open incident");
	return rc;
}

/* --- one ---------------------------------------------------------------------------------------------------------- */

static struct hw_path path_of(const char *id, const char *tail)
{
	struct hw_path path = {0};
	hw_path_add(&path, "/v1/incidents/");
	hw_path_add_encoded(&path, id);
	hw_path_add(&path, tail);
	return path;
}

static void print_pair(const struct hw_ctl *ctl, const char *name, const char *value)
{
	if (!*value)
		return;
	hw_text_column(&ctl->screen, 14, name);
	hw_text_print(stdout, &ctl->screen, value);
	putchar('\n');
}

static void print_time(const struct hw_ctl *ctl, const char *name, const cJSON *i, const char *member)
{
	char when[HW_SPAN_MAX];
	if (hw_member_int(i, member) > 0)
		print_pair(ctl, name, hw_text_time(hw_member_int(i, member), when));
}

/* Prints "Pump 7 (pump-7)", or the id alone if the device has no name. */
static void print_device(const struct hw_ctl *ctl, const cJSON *member)
{
	const char *name = hw_member_text(member, "name");
	if (*name) {
		hw_text_print(stdout, &ctl->screen, name);
		fputs(" (", stdout);
	}
	hw_text_print(stdout, &ctl->screen, hw_member_text(member, "id"));
	if (*name)
		putchar(')');
}

/* Prints the members that depend on an offline parent, or the others. */
static void show_members(const struct hw_ctl *ctl, const cJSON *i, bool behind)
{
	const cJSON *one;
	char when[HW_SPAN_MAX];
	cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(i, "members"))
	{
		if (hw_member_has(one, "parent") != behind)
			continue;
		hw_text_column(&ctl->screen, 14, hw_member_text(one, "class"));
		print_device(ctl, one);
		printf(", since %s", hw_text_time(hw_member_int(one, "since_ms"), when));
		if (behind) {
			fputs(", behind ", stdout);
			hw_text_print(stdout, &ctl->screen, hw_member_text(one, "parent"));
		}
		putchar('\n');
	}
}

static void show(const struct hw_ctl *ctl, const cJSON *i)
{
	const cJSON *one;
	char when[HW_SPAN_MAX];
	print_line(ctl, i);
	print_pair(ctl, "kind", hw_member_text(i, "kind"));
	print_pair(ctl, "group", hw_member_text(i, "group"));
	print_pair(ctl, "merged into", hw_member_text(i, "into"));
	print_time(ctl, "since", i, "since_ms");
	print_time(ctl, "opened", i, "opened_ms");
	print_time(ctl, "closed", i, "closed_ms");
	print_pair(ctl, "acknowledged", hw_member_text(i, "by"));
	print_pair(ctl, "note", hw_member_text(i, "note"));
	cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(i, "sent"))
	{
		hw_text_column(&ctl->screen, 14, "sent");
		hw_text_column(&ctl->screen, 14, hw_member_text(one, "receiver"));
		hw_text_column(&ctl->screen, 14, hw_member_text(one, "last"));
		puts(hw_text_time(hw_member_int(one, "at_ms"), when));
	}
	show_members(ctl, i, false);
	show_members(ctl, i, true);
	if (hw_member_has(i, "next"))
		puts("more members follow: GET /v1/incidents/ID?after= has them");
}

int hw_cmd_incident(struct hw_ctl *ctl, const struct hw_args *args)
{
	struct hw_path path = path_of(args->id, "?limit=1000");
	int rc = path.text ? hw_ask_and_show(ctl, path.text, args->json, show) : hw_failed(ctl, "out of memory");
	hw_path_fini(&path);
	return rc;
}

/* --- changes ------------------------------------------------------------------------------------------------------ */

/* Ends and posts the body, and requires the status `want`. The caller frees the answer after 0. */
static int post(struct hw_ctl *ctl, const char *path, struct hw_json *body, long want, struct hw_answer *a)
{
	const char *wrong = "out of memory";
	char *text = hw_body_end(body, &wrong);
	if (!text || !path) {
		free(text);
		return hw_failed(ctl, "%s", wrong);
	}
	int rc = hw_client_post(ctl->client, path, text, TIMEOUT_S, a);
	free(text);
	if (rc < 0)
		return hw_failed(ctl, "%s", hw_client_why(ctl->client));
	if (a->code == want)
		return HW_EXIT_DONE;
	const char *why = hw_member_text(a->json, "error");
	rc = hw_failed(ctl, "%s", *why ? why : "heartwheel-alert's answer is malformed");
	hw_answer_fini(a);
	return rc;
}

static void begin(struct hw_json *body)
{
	hw_json_begin_alloc(body);
	hw_json_open(body, '{');
}

static void write_user(struct hw_json *body)
{
	const char *user = getenv("SUDO_USER");
	user = user && *user ? user : getenv("USER");
	if (user && *user)
		hw_json_text(body, "by", user);
}

int hw_cmd_ack(struct hw_ctl *ctl, const struct hw_args *args)
{
	struct hw_path path = path_of(args->id, "/ack");
	struct hw_json body;
	struct hw_answer a;
	begin(&body);
	write_user(&body);
	if (args->note)
		hw_json_text(&body, "note", args->note);
	int rc = post(ctl, path.text, &body, 204, &a);
	hw_path_fini(&path);
	if (rc == HW_EXIT_DONE)
		hw_answer_fini(&a);
	return rc;
}

/* Requests a deletion. Frees the path. */
static int delete (struct hw_ctl *ctl, struct hw_path *path)
{
	struct hw_answer a;
	int rc = path->text ? hw_ask(ctl, "DELETE", path->text, 204, &a) : hw_failed(ctl, "out of memory");
	hw_path_fini(path);
	if (rc == HW_EXIT_DONE)
		hw_answer_fini(&a);
	return rc;
}

int hw_cmd_unack(struct hw_ctl *ctl, const struct hw_args *args)
{
	struct hw_path path = path_of(args->id, "/ack");
	return delete (ctl, &path);
}

/* --- silences ----------------------------------------------------------------------------------------------------- */

/* Returns the words of the command line as a matcher; the caller frees it. A word with a blank gets its quotes
 * again. */
static char *matcher(const struct hw_args *args)
{
	struct hw_path text = {0};
	for (int k = 0; k < args->n_words; k++) {
		bool blank = strchr(args->words[k], ' ') && !strchr(args->words[k], '"');
		hw_path_add(&text, k ? " " : "");
		hw_path_add(&text, blank ? "\"" : "");
		hw_path_add(&text, args->words[k]);
		hw_path_add(&text, blank ? "\"" : "");
	}
	return text.text;
}

const char *hw_silence_judge(const struct hw_args *args)
{
	int64_t ms;
	if (!args->lasts && !args->until_online)
		return "give --for D, such as --for 2h, or --until-online";
	if (args->lasts && (hw_conf_duration_parse(args->lasts, &ms) != 0 || ms <= 0))
		return "--for must be a duration such as 30m or 2h";
	return NULL;
}

/* Requests `path` of heartwheeld, which may have another socket than heartwheel-alert. Returns false without an answer.
 */
static bool ask_monitor(struct hw_ctl *ctl, struct hw_path *path, struct hw_answer *a)
{
	bool found = path->text && hw_client_get(ctl->client, path->text, TIMEOUT_S, a) == 0;
	if (path->text && !(found && a->code == 200)) {
		char *socket = hw_find_socket(ctl->config, "http");
		struct hw_client *other = socket ? hw_client_new(socket) : NULL;
		if (found)
			hw_answer_fini(a);
		found = other && hw_client_get(other, path->text, TIMEOUT_S, a) == 0;
		hw_client_free(other);
		free(socket);
	}
	hw_path_fini(path);
	if (found && a->code != 200)
		hw_answer_fini(a);
	return found && a->code == 200;
}

static void warn_of_group(struct hw_ctl *ctl, const char *glob)
{
	struct hw_path path = {0};
	struct hw_answer a;
	const cJSON *g;
	const char *meant = NULL;
	bool found = false;
	hw_path_add(&path, "/v1/groups");
	if (!ask_monitor(ctl, &path, &a))
		return;
	cJSON_ArrayForEach(g, cJSON_GetObjectItemCaseSensitive(a.json, "groups"))
	{
		const char *name = hw_member_text(g, "name");
		found |= hw_glob(glob, name, strlen(name));
		if (!meant && hw_text_may_mean(glob, name))
			meant = name;
	}
	if (!found)
		hw_failed(ctl, "warning: no group matches group:%s, so the silence matches no device; %s%s%s", glob,
		          meant ? "did you mean group:" : "'heartwheelctl groups' lists all groups", meant ? meant : "",
		          meant ? "?" : "");
	hw_answer_fini(&a);
}

/* `key` and `value`: a filter of the list that finds each device of the term. */
static void warn_of_devices(struct hw_ctl *ctl, const char *term, const char *key, const char *value)
{
	struct hw_path path = {0};
	struct hw_answer a;
	hw_path_add(&path, "/v1/devices?limit=1&");
	hw_path_add(&path, key);
	hw_path_add(&path, "=");
	hw_path_add_encoded(&path, value);
	if (!ask_monitor(ctl, &path, &a))
		return;
	if (cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(a.json, "devices")) == 0 && !*a.next)
		hw_failed(ctl, "warning: no device matches %s; 'heartwheelctl list' lists all devices", term);
	hw_answer_fini(&a);
}

/* Warns about each term that no group or device matches, because of a typing error for example. */
static void warn_of_terms(struct hw_ctl *ctl, const struct hw_args *args)
{
	for (int k = 0; k < args->n_words; k++) {
		const char *word = args->words[k];
		if (strpbrk(word, "\" "))
			continue;
		if (strncmp(word, "group:", 6) == 0)
			warn_of_group(ctl, word + 6);
		else if (strncmp(word, "label:", 6) == 0)
			warn_of_devices(ctl, word, "label", word + 6);
		else if (strncmp(word, "id:", 3) == 0 && !strpbrk(word, "*?"))
			warn_of_devices(ctl, word, "prefix", word + 3);
	}
}

int hw_cmd_silence(struct hw_ctl *ctl, const struct hw_args *args)
{
	struct hw_json body;
	char *match = matcher(args);
	int64_t ms = 0;
	struct hw_answer a;
	begin(&body);
	if (match)
		hw_json_text(&body, "match", match);
	free(match);
	if (args->lasts && hw_conf_duration_parse(args->lasts, &ms) == 0)
		hw_json_int(&body, "until", hw_wall_ms() + ms);
	hw_json_bool(&body, "until_online", args->until_online);
	hw_json_bool(&body, "planned", args->planned);
	if (args->note)
		hw_json_text(&body, "reason", args->note);
	write_user(&body);
	int rc = post(ctl, "/v1/silences", &body, 201, &a);
	if (rc)
		return rc;
	if (args->json) {
		rc = hw_print_json(ctl, a.json);
	} else {
		hw_text_print(stdout, &ctl->screen, hw_member_text(a.json, "id"));
		putchar('\n');
	}
	hw_answer_fini(&a);
	warn_of_terms(ctl, args);
	return rc;
}

static void show_silences(const struct hw_ctl *ctl, const cJSON *answer)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(answer, "silences"), *s;
	char when[HW_SPAN_MAX];
	if (cJSON_GetArraySize(list) == 0)
		puts("no silence");
	cJSON_ArrayForEach(s, list)
	{
		bool in_force = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(s, "in_force"));
		hw_text_column(&ctl->screen, 14, hw_member_text(s, "id"));
		hw_text_column(&ctl->screen, 12, in_force ? "in force" : "not now");
		hw_text_print(stdout, &ctl->screen, hw_member_text(s, "match"));
		if (hw_member_int(s, "until_ms") > 0)
			printf(", until %s", hw_text_time(hw_member_int(s, "until_ms"), when));
		if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(s, "until_online")))
			fputs(", until the devices are online", stdout);
		if (*hw_member_text(s, "reason")) {
			fputs(": ", stdout);
			hw_text_print(stdout, &ctl->screen, hw_member_text(s, "reason"));
		}
		if (*hw_member_text(s, "by")) {
			fputs(", by ", stdout);
			hw_text_print(stdout, &ctl->screen, hw_member_text(s, "by"));
		}
		putchar('\n');
	}
}

int hw_cmd_silences(struct hw_ctl *ctl, const struct hw_args *args)
{
	return hw_ask_and_show(ctl, "/v1/silences", args->json, show_silences);
}

int hw_cmd_unsilence(struct hw_ctl *ctl, const struct hw_args *args)
{
	struct hw_path path = {0};
	hw_path_add(&path, "/v1/silences/");
	hw_path_add_encoded(&path, args->id);
	return delete (ctl, &path);
}

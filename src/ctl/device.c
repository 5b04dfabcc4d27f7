/* SPDX-License-Identifier: MIT */
/* heartwheelctl show, forget. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"

#define LATELY "/events?limit=10"

static void line(const char *name)
{
	printf("  %-10s ", name);
}

static void print_when(const cJSON *device, const char *key)
{
	char clock[HW_SPAN_MAX], zone[HW_SPAN_MAX], ago[HW_SPAN_MAX];
	int64_t at = hw_member_int(device, key);
	printf("%s %s (%s)", hw_text_clock(at, clock), hw_text_zone(at, zone), hw_text_ago(hw_wall_ms() - at, ago));
}

/* Whether the device is in the wheel of keys. */
static bool in_keys(const cJSON *device)
{
	const char *wheel = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(device, "wheel"));
	return wheel && strcmp(wheel, "keys") == 0;
}

/* Draws the slots of the level of the wheel that contains the device, with its own slot and the cursor. */
static void print_place(struct hw_ctl *ctl, const cJSON *device)
{
	struct hw_answer a;
	int64_t slot = hw_member_int(device, "slot");
	bool ascii = ctl->screen.ascii;
	if (hw_client_ask(ctl->client, "GET", "/v1/wheel", &a) < 0)
		return;
	const cJSON *wheel = in_keys(device) ? cJSON_GetObjectItemCaseSensitive(a.json, "keys") : a.json;
	const cJSON *levels = cJSON_GetObjectItemCaseSensitive(wheel, "levels");
	const cJSON *level = cJSON_GetArrayItem(levels, (int)hw_member_int(device, "level"));
	if (level) {
		int64_t cursor = hw_member_int(level, "cursor");
		line("");
		for (int64_t i = 0; i < 31; i++)
			if (i == slot)
				printf("%s%s%s", hw_paint(&ctl->screen, HW_GOOD), ascii ? "O" : "●",
				       hw_paint(&ctl->screen, HW_PLAIN));
			else if (i == cursor)
				printf("%s%s%s", hw_paint(&ctl->screen, HW_WARN), ascii ? "^" : "▲",
				       hw_paint(&ctl->screen, HW_PLAIN));
			else
				fputs(ascii ? "." : "·", stdout);
		printf("  the cursor is at slot %" PRId64 "\n", cursor);
	}
	hw_answer_fini(&a);
}

static void print_due(struct hw_ctl *ctl, const cJSON *device, bool online)
{
	char span[HW_SPAN_MAX];
	int64_t due = hw_member_int(device, "due_in_ms");
	line(online ? "offline" : "forgotten");
	if (!hw_member_has(device, "due_in_ms"))
		printf("never");
	else if (due <= 0)
		printf("overdue by %s", hw_text_span(-due, span));
	else
		printf("in %s%s", hw_text_span(due, span), online ? ", if no heartbeat arrives" : "");
	fputc('\n', stdout);
	line("wheel");
	if (!hw_member_has(device, "level")) {
		puts(online ? "not in the wheel: waiting for the verdict" : "not in the wheel");
		return;
	}
	printf("level %" PRId64 ", slot %" PRId64 ", rounds %" PRId64 "%s\n", hw_member_int(device, "level"),
	       hw_member_int(device, "slot"), hw_member_int(device, "rounds"),
	       in_keys(device) ? ", in the wheel of keys" : "");
	print_place(ctl, device);
}

/* Prints a reported field: text without quotes, other types as JSON. */
static void print_field(const struct hw_ctl *ctl, const cJSON *device, const char *key, const char *unit)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(device, key);
	if (!item)
		return;
	line(key);
	if (cJSON_IsString(item)) {
		hw_text_print(stdout, &ctl->screen, item->valuestring);
	} else {
		char *text = cJSON_PrintUnformatted(item);
		hw_text_print(stdout, &ctl->screen, text ? text : "?");
		cJSON_free(text);
	}
	printf("%s\n", unit);
}

static void print_report(const struct hw_ctl *ctl, const cJSON *device)
{
	char span[HW_SPAN_MAX];
	print_field(ctl, device, "battery", " %");
	print_field(ctl, device, "rssi", " dBm");
	print_field(ctl, device, "ip", "");
	print_field(ctl, device, "version", "");
	if (hw_member_has(device, "uptime")) {
		line("uptime");
		puts(hw_text_span(hw_member_int(device, "uptime") * 1000, span));
	}
	print_field(ctl, device, "data", "");
}

static void print_text(const struct hw_ctl *ctl, const cJSON *device, const char *key)
{
	line(key);
	hw_text_print(stdout, &ctl->screen, hw_member_text(device, key));
	fputc('\n', stdout);
}

/* Prints the owner if there are several nodes. */
static void print_owner(const struct hw_ctl *ctl, const cJSON *device)
{
	const cJSON *owner = cJSON_GetObjectItemCaseSensitive(device, "node");
	if (!owner)
		return;
	line("owner");
	hw_text_print(stdout, &ctl->screen, cJSON_IsString(owner) ? owner->valuestring : "none");
	fputc('\n', stdout);
}

/* Prints the parents and the number of children, if there are any. */
static void print_family(const struct hw_ctl *ctl, const cJSON *device)
{
	const cJSON *parents = cJSON_GetObjectItemCaseSensitive(device, "parents"), *one;
	char count[HW_SPAN_MAX];
	cJSON_ArrayForEach(one, parents)
	{
		const char *state = hw_member_text(one, "state");
		line(one == parents->child ? "parents" : "");
		hw_text_print(stdout, &ctl->screen, hw_member_text(one, "id"));
		printf(" %s%s%s\n", hw_paint(&ctl->screen, hw_state_paint(state)), *state ? state : "not known",
		       hw_paint(&ctl->screen, HW_PLAIN));
	}
	int64_t n = hw_member_int(device, "children");
	if (n == 0)
		return;
	line("children");
	printf("%s device%s\n", hw_text_count(n, count), n == 1 ? " is behind it" : "s are behind it");
}

static void print_lately(struct hw_ctl *ctl, const cJSON *transitions)
{
	char clock[HW_SPAN_MAX], zone[HW_SPAN_MAX];
	const cJSON *t;
	cJSON_ArrayForEach(t, transitions)
	{
		const char *state = hw_member_text(t, "state");
		int64_t at = hw_member_int(t, "since_ms");
		line(t == transitions->child ? "lately" : "");
		printf("%s %s  %s", hw_text_clock(at, clock), hw_text_zone(at, zone),
		       hw_paint(&ctl->screen, hw_state_paint(state)));
		hw_text_column(&ctl->screen, 9, state);
		printf("%s  ", hw_paint(&ctl->screen, HW_PLAIN));
		hw_text_print(stdout, &ctl->screen, hw_member_text(t, "reason"));
		fputc('\n', stdout);
	}
}

/* The timeout in force, and where it comes from. */
static void print_timeout(const cJSON *device)
{
	static const struct {
		const char *from, *text;
	} texts[] = {{"device", ", for which the device asks"},
	             {"inventory", ", from the inventory"},
	             {"learned", ", learned"}};
	char span[HW_SPAN_MAX];
	const char *from = hw_member_text(device, "timeout_from"), *text = "";
	for (size_t k = 0; k < sizeof(texts) / sizeof(*texts); k++)
		if (strcmp(texts[k].from, from) == 0)
			text = texts[k].text;
	line("timeout");
	printf("%s%s\n", hw_text_span(hw_member_int(device, "timeout_ms"), span), text);
}

/* For a device in a group that learns: prints what was learned from the gaps between the device's heartbeats. */
static void print_learned(const cJSON *device)
{
	char median[HW_SPAN_MAX], span[HW_SPAN_MAX];
	int64_t learned_ms = hw_member_int(device, "learned_ms"), gaps = hw_member_int(device, "gaps_seen");
	int64_t mistakes = hw_member_int(device, "learned_mistakes");
	if (!hw_member_has(device, "learned_ms"))
		return;
	line("learned");
	if (learned_ms == 0)
		puts("nothing yet: too few heartbeats, or too short a time");
	else
		printf("%s%s\n", hw_text_span(learned_ms, span),
		       strcmp(hw_member_text(device, "timeout_from"), "learned") == 0 ? "" : ", not in force");
	if (gaps == 0)
		return;
	line("gaps");
	printf("%d%s: median %s, largest %s; %d%s longer than the learned timeout\n", (int)gaps,
	       gaps < HW_LEARNED_COUNT_MAX ? "" : " or more",
	       hw_text_span(hw_member_int(device, "median_gap_ms"), median),
	       hw_text_span(hw_member_int(device, "largest_gap_ms"), span), (int)mistakes,
	       mistakes < HW_LEARNED_COUNT_MAX ? "" : " or more");
}

/* What the inventory says. */
static void print_inventory(const struct hw_ctl *ctl, const cJSON *device)
{
	const cJSON *labels = cJSON_GetObjectItemCaseSensitive(device, "labels"), *l;
	if (hw_member_has(device, "name"))
		print_text(ctl, device, "name");
	if (labels)
		line("labels");
	cJSON_ArrayForEach(l, labels)
	{
		fputs(l == labels->child ? "" : ", ", stdout);
		hw_text_print(stdout, &ctl->screen, l->string);
		fputc('=', stdout);
		hw_text_print(stdout, &ctl->screen, cJSON_IsString(l) ? l->valuestring : "");
	}
	if (labels)
		fputc('\n', stdout);
	if (hw_member_has(device, "note"))
		print_text(ctl, device, "note");
}

static void print_device(struct hw_ctl *ctl, const cJSON *device)
{
	const char *state = hw_member_text(device, "state");
	bool online = strcmp(state, "online") == 0;
	hw_text_print(stdout, &ctl->screen, hw_member_text(device, "id"));
	fputc('\n', stdout);
	line("state");
	fputs(hw_paint(&ctl->screen, hw_state_paint(state)), stdout);
	hw_text_print(stdout, &ctl->screen, state);
	fputs(hw_paint(&ctl->screen, HW_PLAIN), stdout);
	printf(" since ");
	print_when(device, "since_ms");
	printf(", reason ");
	hw_text_print(stdout, &ctl->screen, hw_member_text(device, "reason"));
	fputc('\n', stdout);
	line("last seen");
	if (hw_member_int(device, "last_seen_ms") != 0)
		print_when(device, "last_seen_ms");
	else
		printf("never");
	fputc('\n', stdout);
	print_inventory(ctl, device);
	print_timeout(device);
	if (hw_member_has(device, "expected_since_ms")) { /* it was never heard */
		line("expected");
		printf("since ");
		print_when(device, "expected_since_ms");
		fputc('\n', stdout);
		print_text(ctl, device, "group");
		return;
	}
	print_learned(device);
	print_due(ctl, device, online);
	print_text(ctl, device, "group");
	print_text(ctl, device, "source");
	print_family(ctl, device);
	print_owner(ctl, device);
	line("seq");
	printf("%" PRId64 "\n", hw_member_int(device, "seq"));
	print_report(ctl, device);
}

static int ask_once(struct hw_ctl *ctl, const char *method, const char *id, struct hw_answer *a)
{
	struct hw_path path = hw_device_path(id);
	*a = (struct hw_answer){0};
	if (!path.text)
		return hw_failed(ctl, "out of memory");
	int rc = hw_client_ask(ctl->client, method, path.text, a);
	hw_path_fini(&path);
	return rc < 0 ? hw_failed(ctl, "%s", hw_client_why(ctl->client)) : 0;
}

/*
 * Requests one device. If the device is unknown, the error names it. `id` may also be an id as it is shown on a
 * terminal: if there is no device `id`, its escapes are decoded, in place.
 */
static int ask_device(struct hw_ctl *ctl, const char *method, char *id, long want, struct hw_answer *a)
{
	int rc = ask_once(ctl, method, id, a);
	if (rc == 0 && a->code == 404 && hw_text_unescape(id)) {
		hw_answer_fini(a);
		rc = ask_once(ctl, method, id, a);
	}
	if (rc)
		return rc;
	if (a->code == want && (a->json || want != 200)) {
		if (a->as_of_ms > 0)
			hw_warn_if_lapsed(ctl);
		return 0;
	}
	const char *why = hw_member_text(a->json, "error");
	rc = hw_failed(ctl, "%s: %s", id, *why ? why : "heartwheeld's answer is malformed");
	hw_answer_fini(a);
	return rc;
}

/* Adds the device's recent transitions, newest first. */
static void add_transitions(struct hw_ctl *ctl, const char *id, cJSON *device)
{
	struct hw_path path = hw_device_path(id);
	struct hw_answer a = {0};
	hw_path_add(&path, LATELY);
	if (path.text && hw_client_ask(ctl->client, "GET", path.text, &a) == 0 && a.code == 200) {
		cJSON *transitions = cJSON_DetachItemFromObjectCaseSensitive(a.json, "transitions");
		if (transitions && !cJSON_AddItemToObject(device, "transitions", transitions))
			cJSON_Delete(transitions);
	}
	hw_path_fini(&path);
	hw_answer_fini(&a);
}

int hw_cmd_show(struct hw_ctl *ctl, const struct hw_args *args)
{
	struct hw_answer a;
	int rc = ask_device(ctl, "GET", args->id, 200, &a);
	if (rc)
		return rc;
	add_transitions(ctl, args->id, a.json);
	if (args->json) {
		rc = hw_print_json(ctl, a.json);
	} else {
		print_device(ctl, a.json);
		print_lately(ctl, cJSON_GetObjectItemCaseSensitive(a.json, "transitions"));
	}
	hw_answer_fini(&a);
	return rc;
}

static int forget(struct hw_ctl *ctl, char *id)
{
	struct hw_answer a;
	int rc = ask_device(ctl, "DELETE", id, 204, &a);
	hw_answer_fini(&a);
	return rc;
}

/* Forgets the devices whose ids are on standard input, one in a line, as list --names writes them. */
static int forget_lines(struct hw_ctl *ctl)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;
	int rc = HW_EXIT_DONE;
	while ((n = getline(&line, &cap, stdin)) > 0) {
		line[strcspn(line, "\r\n")] = '\0';
		if (*line && forget(ctl, line))
			rc = HW_EXIT_FAILED;
	}
	if (ferror(stdin))
		rc = hw_failed(ctl, "cannot read standard input");
	free(line);
	return rc;
}

/* A failure does not stop the other ids. */
int hw_cmd_forget(struct hw_ctl *ctl, const struct hw_args *args)
{
	int rc = HW_EXIT_DONE;
	for (int i = 0; i < args->n_words; i++) {
		bool lines = strcmp(args->words[i], "-") == 0;
		if (lines ? forget_lines(ctl) : forget(ctl, args->words[i]))
			rc = HW_EXIT_FAILED;
	}
	return rc;
}

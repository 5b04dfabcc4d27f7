/* SPDX-License-Identifier: MIT */
/*
 * heartwheelctl watch: the event stream, a line for each transition. After a loss it goes on behind the last event that
 * was printed, so that a restart of the daemon skips nothing.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/ctl.h"

#define RETRY_MS 1000

struct watch {
	struct hw_ctl *ctl;
	const struct hw_args *args;
	char event[32], place[64]; /* of the event being read */
	char *data;                /* owned */
	char last[64];             /* of the last event read */
	bool heard;                /* on this connection */
	int rc;
};

static bool wanted(const struct hw_args *args, const cJSON *device)
{
	const char *id = hw_member_text(device, "id");
	return (!args->state || strcmp(args->state, hw_member_text(device, "state")) == 0) &&
	       (!args->group || strcmp(args->group, hw_member_text(device, "group")) == 0) &&
	       (!args->prefix || strncmp(args->prefix, id, strlen(args->prefix)) == 0);
}

/* On a terminal the time of the day is enough. */
static void print_transition(const struct hw_ctl *ctl, const cJSON *device)
{
	const struct hw_screen *s = &ctl->screen;
	char clock[HW_SPAN_MAX], span[HW_SPAN_MAX];
	const char *state = hw_member_text(device, "state");
	int64_t since = hw_member_int(device, "since_ms"), seen = hw_member_int(device, "last_seen_ms");
	printf("%s%s%s  %s%-9s%s  %-12s  ", hw_paint(s, HW_DIM),
	       s->terminal ? hw_text_time(since, clock) : hw_text_clock(since, clock), hw_paint(s, HW_PLAIN),
	       hw_paint(s, hw_state_paint(state)), state, hw_paint(s, HW_PLAIN), hw_member_text(device, "reason"));
	hw_text_print(stdout, s, hw_member_text(device, "id"));
	printf("%s  ", hw_paint(s, HW_DIM));
	hw_text_print(stdout, s, hw_member_text(device, "group"));
	if (strcmp(state, "offline") == 0 && seen > 0 && since > seen)
		printf(", silent for %s", hw_text_span(since - seen, span));
	printf("%s\n", hw_paint(s, HW_PLAIN));
}

static void on_transition(struct watch *w)
{
	cJSON *device = w->data ? cJSON_Parse(w->data) : NULL;
	if (device && wanted(w->args, device)) {
		if (w->args->json)
			w->rc = hw_print_json(w->ctl, device);
		else
			print_transition(w->ctl, device);
	}
	cJSON_Delete(device);
}

/* An empty line ends an event. */
static bool on_event(struct watch *w)
{
	if (strcmp(w->event, "transition") == 0)
		on_transition(w);
	else if (strcmp(w->event, "reset") == 0)
		fputs("heartwheelctl: what happened meanwhile is not to be had any more\n", stderr);
	if (*w->place)
		snprintf(w->last, sizeof(w->last), "%s", w->place);
	*w->event = *w->place = '\0';
	free(w->data);
	w->data = NULL;
	return w->rc == 0 && fflush(stdout) == 0;
}

static bool on_line(void *arg, const char *line)
{
	struct watch *w = arg;
	w->heard = true;
	if (!*line)
		return on_event(w);
	if (strncmp(line, "event: ", 7) == 0) {
		snprintf(w->event, sizeof(w->event), "%s", line + 7);
	} else if (strncmp(line, "id: ", 4) == 0) {
		snprintf(w->place, sizeof(w->place), "%s", line + 4);
	} else if (strncmp(line, "data: ", 6) == 0) {
		free(w->data);
		w->data = strdup(line + 6);
	}
	return true;
}

static void wait_a_little(void)
{
	struct timespec t = {RETRY_MS / 1000, RETRY_MS % 1000 * 1000000};
	nanosleep(&t, NULL);
}

int hw_cmd_watch(struct hw_ctl *ctl, const struct hw_args *args)
{
	struct watch w = {.ctl = ctl, .args = args};
	bool ever = false, told = false;
	long code;
	do {
		w.heard = false;
		*w.event = *w.place = '\0';
		int rc = hw_client_stream(ctl->client, "/v1/events", w.last, on_line, &w, &code);
		if (w.rc || ferror(stdout) || rc == 1 || (!ever && !w.heard)) {
			w.rc = w.rc || ferror(stdout) ? w.rc : hw_failed(ctl, "%s", hw_client_why(ctl->client));
			break;
		}
		ever = true;
		if (w.heard)
			told = false;
		if (!told)
			fputs("heartwheelctl: lost heartwheeld; waiting for it to come back\n", stderr);
		told = true;
		wait_a_little();
	} while (true);
	free(w.data);
	return w.rc;
}

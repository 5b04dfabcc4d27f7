/* SPDX-License-Identifier: MIT */
/*
 * heartwheelctl watch: prints the event stream, one line for each transition, and for each news about an incident.
 * After a lost connection, the stream continues after the last printed event, so nothing is missed when the daemon
 * restarts. A repeated transition (events.h) is printed once.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/ctl.h"
#include "ctl/events.h"
#include "ctl/words.h"

#define RETRY_MS 1000

struct watch {
	struct hw_ctl *ctl;
	const struct hw_args *args;
	struct hw_event_read event; /* the event being read */
	struct hw_event_read news;  /* of an incident */
	bool heard;                 /* the connection has delivered data */
	bool blind;                 /* the last printed state */
	int64_t blind_since_ms;
	int rc;
};

static bool wanted(const struct hw_args *args, const cJSON *device)
{
	const char *id = hw_member_text(device, "id");
	return (!args->state || strcmp(args->state, hw_member_text(device, "state")) == 0) &&
	       (!args->group || strcmp(args->group, hw_member_text(device, "group")) == 0) &&
	       (!args->prefix || strncmp(args->prefix, id, strlen(args->prefix)) == 0);
}

/* On a terminal, the time is printed without the date. */
static void print_transition(const struct hw_ctl *ctl, const cJSON *device)
{
	const struct hw_screen *s = &ctl->screen;
	char clock[HW_SPAN_MAX], span[HW_SPAN_MAX];
	const char *state = hw_member_text(device, "state");
	int64_t since = hw_member_int(device, "since_ms"), seen = hw_member_int(device, "last_seen_ms");
	printf("%s%s%s  %s", hw_paint(s, HW_DIM),
	       s->terminal ? hw_text_time(since, clock) : hw_text_clock(since, clock), hw_paint(s, HW_PLAIN),
	       hw_paint(s, hw_state_paint(state)));
	hw_text_column(s, 9, state);
	printf("%s  ", hw_paint(s, HW_PLAIN));
	hw_text_column(s, 12, hw_member_text(device, "reason"));
	printf("  ");
	hw_text_print(stdout, s, hw_member_text(device, "id"));
	printf("%s  ", hw_paint(s, HW_DIM));
	hw_text_print(stdout, s, hw_member_text(device, "group"));
	if (strcmp(state, "offline") == 0 && seen > 0 && since > seen)
		printf(", silent for %s", hw_text_span(since - seen, span));
	printf("%s\n", hw_paint(s, HW_PLAIN));
}

static void on_transition(struct watch *w)
{
	cJSON *device = hw_event_transition(&w->event);
	if (device && wanted(w->args, device)) {
		if (w->args->json)
			w->rc = hw_print_json(w->ctl, device);
		else
			print_transition(w->ctl, device);
	}
	cJSON_Delete(device);
}

/* Prints a `sight` event as a line in the same columns; not with --json. */
static void on_sight(struct watch *w)
{
	const struct hw_screen *s = &w->ctl->screen;
	cJSON *sight = w->args->json || !w->event.data ? NULL : cJSON_Parse(w->event.data);
	bool blind = sight && cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(sight, "blind"));
	char words[HW_WORDS_MAX], clock[HW_SPAN_MAX], span[HW_SPAN_MAX];
	int64_t now = hw_wall_ms(), since = hw_member_int(sight, "since_ms");
	if (sight && (blind || w->blind))
		printf("%s%s%s  %s%-9s%s  ", hw_paint(s, HW_DIM),
		       s->terminal ? hw_text_time(blind ? since : now, clock)
		                   : hw_text_clock(blind ? since : now, clock),
		       hw_paint(s, HW_PLAIN), hw_paint(s, blind ? HW_BAD : HW_GOOD), blind ? "blind" : "watching",
		       hw_paint(s, HW_PLAIN));
	if (sight && hw_words_blind(sight, words)) {
		hw_text_column(s, 12, hw_member_text(sight, "blind_cause"));
		printf("  ");
		hw_text_print(stdout, s, words);
		putchar('\n');
	} else if (sight && w->blind)
		printf("heartbeats arrive again after %s\n", hw_text_span(now - w->blind_since_ms, span));
	if (sight) {
		w->blind = blind;
		w->blind_since_ms = since;
	}
	cJSON_Delete(sight);
}

/* Prints that an incident opened, closed or changed, with its sentence. */
static void print_news(const struct hw_ctl *ctl, const cJSON *news)
{
	const struct hw_screen *s = &ctl->screen;
	const char *what = hw_member_text(news, "what"), *sentence = hw_member_text(news, "sentence");
	char clock[HW_SPAN_MAX];
	int64_t at = hw_member_int(news, "at_ms");
	printf("%s%s%s  %sincident %s  ", hw_paint(s, HW_DIM),
	       s->terminal ? hw_text_time(at, clock) : hw_text_clock(at, clock), hw_paint(s, HW_PLAIN),
	       hw_paint(s, strcmp(what, "opened") == 0 ? HW_BAD : HW_DIM), hw_paint(s, HW_PLAIN));
	hw_text_column(s, 12, what);
	printf("  ");
	hw_text_print(stdout, s, *sentence ? sentence : hw_member_text(news, "id"));
	putchar('\n');
}

static bool on_news_line(void *arg, const char *line)
{
	static const char *const shown[] = {"opened", "closed",       "merged",        "flapping",
	                                    "steady", "acknowledged", "unacknowledged"};
	struct watch *w = arg;
	if (!hw_event_read_line(&w->news, line) || strcmp(w->news.name, "incident") != 0 || !w->news.data)
		return true;
	cJSON *news = cJSON_Parse(w->news.data);
	/* If the event names a receiver, it only reports what that receiver was sent. */
	for (size_t k = 0; k < sizeof(shown) / sizeof(*shown) && !hw_member_has(news, "receiver"); k++)
		if (strcmp(hw_member_text(news, "what"), shown[k]) == 0)
			print_news(w->ctl, news);
	cJSON_Delete(news);
	return fflush(stdout) == 0;
}

/* Whether incidents are printed too. Returns false if a filter is given, because filters are about devices. Also
 * returns false with --json, which prints only transitions. */
static bool wants_news(const struct hw_args *args)
{
	return !args->json && !args->state && !args->group && !args->prefix;
}

static bool on_line(void *arg, const char *line)
{
	struct watch *w = arg;
	if (!w->heard)
		hw_warn_if_lapsed(w->ctl);
	w->heard = true;
	if (!hw_event_read_line(&w->event, line))
		return true;
	if (strcmp(w->event.name, "sight") == 0)
		on_sight(w);
	else if (strcmp(w->event.name, "reset") == 0)
		fputs("heartwheelctl: the events of the meantime are no longer available\n", stderr);
	else
		on_transition(w);
	return w->rc == 0 && fflush(stdout) == 0;
}

static void wait_a_little(void)
{
	struct timespec t = {RETRY_MS / 1000, RETRY_MS % 1000 * 1000000};
	nanosleep(&t, NULL);
}

int hw_cmd_watch(struct hw_ctl *ctl, const struct hw_args *args)
{
	struct watch w = {.ctl = ctl, .args = args};
	struct hw_client *second = wants_news(args) ? hw_client_new(ctl->socket) : NULL;
	const struct hw_client_also news = {second, "/v1/incidents/events", w.news.last, on_news_line, &w};
	bool ever = false, reported = false;
	long code;
	int wrong = hw_need_group(ctl, args->group);
	if (wrong)
		return wrong; /* `second` is NULL, because there is a group */
	hw_client_read_also(ctl->client, second ? &news : NULL);
	do {
		w.heard = false;
		hw_event_read_drop(&w.event);
		int rc = hw_client_stream(ctl->client, "/v1/events", w.event.last, on_line, &w, &code);
		if (w.rc || ferror(stdout) || rc == 1 || (!ever && !w.heard)) {
			w.rc = w.rc || ferror(stdout) ? w.rc : hw_failed(ctl, "%s", hw_client_why(ctl->client));
			break;
		}
		ever = true;
		if (w.heard)
			reported = false;
		if (!reported)
			fputs("heartwheelctl: lost the connection to heartwheeld; waiting for it to return\n", stderr);
		reported = true;
		wait_a_little();
	} while (true);
	hw_client_read_also(ctl->client, NULL);
	hw_client_free(second);
	hw_event_read_fini(&w.news);
	hw_event_read_fini(&w.event);
	return w.rc;
}

/* SPDX-License-Identifier: MIT */
/*
 * The receivers of heartwheel-alert without the daemon. Usage: send_messages FILE, a monitor.conf with [receiver NAME]
 * sections. Commands are lines on standard input; a message's JSON is one line.
 *
 *   take RECEIVER NUMBER JSON | known RECEIVER JSON | test RECEIVER | lease yes|no | reset | reload | show
 *
 * Answers are lines on standard output: "ok", "error NAME", "done RECEIVER NUMBER RESULT WORDS",
 * "trouble RECEIVER TEXT", "show JSON".
 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alert/send/send.h"
#include "conf/conf.h"
#include "http/json.h"

struct settings {
	struct hw_conf_head head;
	struct hw_receiver_settings *receivers;
	size_t n_receivers;
};

static const struct hw_conf_option options[] = {HW_RECEIVER_ROWS};

static void judge(struct hw_conf_draft *d)
{
	struct settings *c = (struct settings *)d->conf;
	for (size_t i = 0; i < c->n_receivers; i++) {
		hw_conf_draft_defaults(d, &d->table->named[0], &c->receivers[i], d->named[0][i]);
		hw_receiver_judge(d, &c->receivers[i], d->named[0][i]);
	}
}

static const struct hw_conf_table table = {.options = options,
                                           .n_options = sizeof(options) / sizeof(*options),
                                           .size = sizeof(struct settings),
                                           .named = {{.kind = "receiver",
                                                      .list = offsetof(struct settings, receivers),
                                                      .count = offsetof(struct settings, n_receivers),
                                                      .size = sizeof(struct hw_receiver_settings),
                                                      .line = offsetof(struct hw_receiver_settings, line),
                                                      .max = HW_INCIDENT_RECEIVERS}},
                                           .judge = judge};

static struct {
	const char *path;
	struct event_base *base;
	struct hw_senders *senders;
	struct evbuffer *in;
	bool lease;
} p = {.lease = true};

static void say(const char *first, int error)
{
	printf("%s%s\n", error ? "error " : first, error ? strerrorname_np(-error) : "");
	fflush(stdout);
}

static bool try_allowed(void *arg)
{
	(void)arg;
	return p.lease;
}

static void done(void *arg, const char *receiver, uint64_t number, enum hw_send_result result, const char *words)
{
	(void)arg;
	printf("done %s %" PRIu64 " %s %s\n", receiver, number, hw_send_result_name(result), words);
	fflush(stdout);
}

static void trouble(void *arg, const char *receiver, const char *text)
{
	(void)arg;
	printf("trouble %s %s\n", receiver, text);
	fflush(stdout);
}

/* Returns 0 or -errno, after it has printed why. */
static int configure(void)
{
	struct hw_conf_errors errors = {0};
	char why[1024];
	struct settings *c = hw_conf_load(&table, p.path, &errors);
	for (size_t i = 0; i < errors.n; i++)
		printf("wrong %s\n", errors.lines[i]);
	hw_conf_errors_fini(&errors);
	if (!c)
		return -EINVAL;
	int rc = hw_senders_configure(p.senders, c->receivers, c->n_receivers, why, sizeof(why));
	if (rc)
		printf("wrong %s\n", why);
	hw_conf_free(c);
	return rc;
}

static void show(void)
{
	struct hw_json j;
	struct evbuffer *b = evbuffer_new();
	hw_json_begin(&j, b);
	hw_json_open(&j, '{');
	hw_senders_show(p.senders, &j);
	hw_json_uint(&j, "dropped", hw_senders_dropped(p.senders));
	hw_json_open_member(&j, "stats", '[');
	for (size_t i = 0; i < hw_senders_count(p.senders); i++) {
		struct hw_send_stats s;
		hw_senders_stats(p.senders, i, &s);
		hw_json_open(&j, '{');
		hw_json_text(&j, "name", s.name);
		for (int r = 0; r < HW_SEND_RESULTS; r++)
			hw_json_uint(&j, hw_send_result_name((enum hw_send_result)r), s.result[r]);
		hw_json_uint(&j, "failed_posts", s.failed_posts);
		hw_json_int(&j, "waits_since_ms", s.waits_since_ms);
		hw_json_close(&j, '}');
	}
	hw_json_close(&j, ']');
	hw_json_close(&j, '}');
	hw_json_end(&j);
	printf("show %.*s\n", (int)evbuffer_get_length(b), (char *)evbuffer_pullup(b, -1));
	fflush(stdout);
	evbuffer_free(b);
}

static void obey(char *line)
{
	char *verb = strsep(&line, " "), *name = line ? strsep(&line, " ") : NULL;
	uint64_t number;
	if (strcmp(verb, "take") == 0 && line) {
		number = strtoull(strsep(&line, " "), NULL, 10);
		say("ok", line ? hw_senders_take(p.senders, name, number, line, strlen(line)) : -EINVAL);
	} else if (strcmp(verb, "known") == 0 && line) {
		say("ok", hw_senders_known(p.senders, name, line, strlen(line)));
	} else if (strcmp(verb, "test") == 0 && name) {
		say("ok", hw_senders_test(p.senders, name, &number));
	} else if (strcmp(verb, "lease") == 0 && name) {
		p.lease = strcmp(name, "yes") == 0;
		hw_senders_wake(p.senders);
		say("ok", 0);
	} else if (strcmp(verb, "reset") == 0) {
		hw_senders_reset(p.senders);
		say("ok", 0);
	} else if (strcmp(verb, "reload") == 0) {
		say("ok", configure());
	} else if (strcmp(verb, "show") == 0) {
		show();
	} else {
		say("ok", -EBADMSG);
	}
}

static void on_input(evutil_socket_t fd, short what, void *arg)
{
	char *line;
	(void)what, (void)arg;
	if (evbuffer_read(p.in, fd, -1) <= 0)
		event_base_loopbreak(p.base);
	while ((line = evbuffer_readln(p.in, NULL, EVBUFFER_EOL_LF))) {
		obey(line);
		free(line);
	}
}

int main(int argc, char **argv)
{
	const struct hw_senders_calls calls = {.try_allowed = try_allowed, .done = done, .trouble = trouble};
	if (argc != 2)
		return 2;
	signal(SIGPIPE, SIG_IGN);
	p.path = argv[1];
	p.base = event_base_new();
	p.in = evbuffer_new();
	p.senders = hw_senders_new(p.base, &calls, "hub");
	int rc = configure();
	say("ok", rc);
	struct event *input = event_new(p.base, 0, EV_READ | EV_PERSIST, on_input, NULL);
	if (rc == 0 && event_add(input, NULL) == 0)
		event_base_dispatch(p.base);
	event_free(input);
	hw_senders_free(p.senders);
	evbuffer_free(p.in);
	event_base_free(p.base);
	return rc ? 1 : 0;
}

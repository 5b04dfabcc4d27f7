/* SPDX-License-Identifier: MIT */
/* See send.h: all receivers, their configuration, and the functions that are called for each. */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "alert/send/sender.h"
#include "heartwheel/json.h"
#include "heartwheel/print.h"
#include "http/buffer.h"
#include "http/json.h"

int64_t hw_senders_wall_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void hw_sender_trouble(struct hw_sender *s, const char *format, ...)
{
	char text[HW_SEND_WORDS + 256];
	va_list args;
	va_start(args, format);
	hw_vprint(text, sizeof(text), format, args);
	va_end(args);
	s->all->calls.trouble(s->all->calls.arg, s->conf.name, text);
}

static struct hw_sender *find(const struct hw_senders *s, const char *name)
{
	for (size_t k = 0; k < s->n; k++)
		if (strcmp(s->at[k]->conf.name, name) == 0)
			return s->at[k];
	return NULL;
}

/* --- one receiver ----------------------------------------------------------------------------------------------- */

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	hw_jobs_turn(arg);
}

static void on_minute(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	hw_posts_minute(arg);
}

static void free_sender(struct hw_sender *s)
{
	if (!s)
		return;
	if (s->minute)
		hw_posts_stop(s);
	hw_jobs_drop(s);
	if (s->turn)
		event_free(s->turn);
	if (s->minute)
		event_free(s->minute);
	hw_past_fini(&s->past);
	hw_alerts_fini(&s->alerts);
	hw_receiver_fini(&s->conf);
	hw_receiver_secrets_fini(&s->secrets);
	free(s);
}

/* Creates a receiver, which has no configuration yet. */
static struct hw_sender *make_sender(struct hw_senders *all)
{
	struct hw_sender *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->all = all;
	s->turn = evtimer_new(all->base, on_turn, s);
	s->minute = evtimer_new(all->base, on_minute, s);
	if (s->turn && s->minute && hw_past_init(&s->past) == 0)
		return s;
	free_sender(s);
	return NULL;
}

/* --- all of them ------------------------------------------------------------------------------------------------ */

struct hw_senders *hw_senders_new(struct event_base *base, const struct hw_senders_calls *calls, const char *node)
{
	struct hw_senders *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->base = base;
	s->calls = *calls;
	s->node = strdup(node);
	if (hw_multi_init(&s->multi, base, hw_try_on_done, s) == 0 && s->node)
		return s;
	hw_senders_free(s);
	return NULL;
}

void hw_senders_free(struct hw_senders *s)
{
	if (!s)
		return;
	for (size_t k = 0; k < s->n; k++)
		free_sender(s->at[k]);
	free(s->at);
	hw_multi_fini(&s->multi);
	free(s->node);
	free(s);
}

/* What a reload makes before it changes anything. */
struct prepared {
	struct hw_receiver_settings conf;
	struct hw_receiver_secrets secrets;
	struct hw_sender *made; /* for a name that is new */
};

static void discard(struct prepared *p, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		hw_receiver_fini(&p[k].conf);
		hw_receiver_secrets_fini(&p[k].secrets);
		free_sender(p[k].made);
	}
	free(p);
}

static int prepare(struct hw_senders *s, struct prepared *p, const struct hw_receiver_settings *r, char *why,
                   size_t cap)
{
	const char *key;
	char what[HW_SEND_WORDS + 256];
	int rc = hw_receiver_secrets_read(&p->secrets, r, &key, what, sizeof(what));
	if (rc) {
		hw_print(why, cap, "[receiver %s] %s: %s", r->name, key, what);
		return rc;
	}
	rc = hw_receiver_copy(&p->conf, r);
	if (rc == 0 && !find(s, r->name) && !(p->made = make_sender(s)))
		rc = -ENOMEM;
	if (rc)
		hw_print(why, cap, "[receiver %s]: %s", r->name, strerror(-rc));
	return rc;
}

/* Moves the prepared settings into the receiver of that name. */
static struct hw_sender *apply(struct hw_senders *s, struct prepared *p)
{
	struct hw_sender *to = p->made ? p->made : find(s, p->conf.name);
	if (to->conf.type == HW_RECEIVER_ALERTMANAGER && p->conf.type != HW_RECEIVER_ALERTMANAGER)
		hw_alerts_fini(&to->alerts);
	hw_receiver_fini(&to->conf);
	hw_receiver_secrets_fini(&to->secrets);
	to->conf = p->conf;
	to->secrets = p->secrets;
	return to;
}

int hw_senders_configure(struct hw_senders *s, const struct hw_receiver_settings *list, size_t n, char *why, size_t cap)
{
	struct prepared *p = calloc(n + 1, sizeof(*p));
	struct hw_sender **at = calloc(n + 1, sizeof(struct hw_sender *));
	int rc = p && at ? 0 : -ENOMEM;
	hw_print(why, cap, "%s", rc ? strerror(-rc) : "");
	for (size_t k = 0; rc == 0 && k < n; k++)
		rc = prepare(s, &p[k], &list[k], why, cap);
	if (rc) {
		if (p)
			discard(p, n);
		free(at);
		return rc;
	}
	for (size_t k = 0; k < n; k++)
		at[k] = apply(s, &p[k]);
	for (size_t k = 0; k < s->n; k++) {
		bool kept = false;
		for (size_t i = 0; i < n; i++)
			kept |= at[i] == s->at[k];
		if (kept)
			continue;
		s->dropped += hw_jobs_drop(s->at[k]);
		free_sender(s->at[k]);
	}
	free(s->at);
	free(p);
	s->at = at;
	s->n = n;
	for (size_t k = 0; k < n; k++) {
		hw_posts_restart(at[k]);
		hw_jobs_retry(at[k], false);
	}
	return 0;
}

/* --- messages --------------------------------------------------------------------------------------------------- */

int hw_senders_take(struct hw_senders *s, const char *receiver, uint64_t number, const char *json, size_t len)
{
	struct hw_sender *to = find(s, receiver);
	struct hw_send_message m;
	char key[HW_SEND_KEY];
	if (!to)
		return -ENOENT;
	for (const struct hw_job *job = to->jobs; job; job = job->next)
		if (!job->test && job->number == number)
			return -EEXIST;
	if (to->n_jobs >= HW_SEND_QUEUE)
		return -ENOSPC;
	int rc = hw_send_message_parse(&m, json, len);
	if (rc)
		return rc;
	hw_print(key, sizeof(key), "%s-%llu", receiver, (unsigned long long)number);
	struct hw_job *job = hw_job_add(to, key, json, len, &m);
	hw_send_message_fini(&m);
	if (!job)
		return -ENOMEM;
	job->number = number;
	return 0;
}

int hw_senders_known(struct hw_senders *s, const char *receiver, const char *json, size_t len)
{
	struct hw_sender *to = find(s, receiver);
	struct hw_send_incident i;
	if (!to)
		return -ENOENT;
	if (to->conf.type != HW_RECEIVER_ALERTMANAGER)
		return 0;
	cJSON *tree = len <= HW_SEND_MESSAGE_MAX && hw_json_object_valid(json, len) ? hw_json_tree(json, len) : NULL;
	int rc = tree ? hw_send_incident_parse(&i, tree) : -EINVAL;
	if (rc == 0 && !hw_alerts_put(&to->alerts, &i, hw_senders_wall_ms()))
		rc = -ENOMEM;
	cJSON_Delete(tree);
	return rc;
}

/* Returns the text of a test message, on the heap; NULL if there is no memory. */
static char *test_text(const struct hw_senders *s, const char *key, int64_t now_ms)
{
	struct hw_json j;
	char *text = NULL, sentence[HW_CONF_NAME_MAX + 128];
	struct evbuffer *b = evbuffer_new();
	if (!b)
		return NULL;
	hw_print(sentence, sizeof(sentence), "heartwheel-alert on %s sends this to test the receiver", s->node);
	hw_json_begin(&j, b);
	hw_json_open(&j, '{');
	hw_json_text(&j, "message", key);
	hw_json_text(&j, "node", s->node);
	hw_json_int(&j, "time_ms", now_ms);
	hw_json_text(&j, "summary", sentence);
	hw_json_open_member(&j, "news", '[');
	hw_json_open(&j, '{');
	hw_json_text(&j, "what", "test");
	hw_json_open_member(&j, "incident", '{');
	hw_json_text(&j, "id", "test");
	hw_json_text(&j, "kind", "device");
	hw_json_text(&j, "state", "closed");
	hw_json_int(&j, "since_ms", now_ms);
	hw_json_int(&j, "opened_ms", now_ms);
	hw_json_int(&j, "closed_ms", now_ms);
	hw_json_text(&j, "sentence", sentence);
	hw_json_close(&j, '}');
	hw_json_close(&j, '}');
	hw_json_close(&j, ']');
	hw_json_close(&j, '}');
	if (hw_json_end(&j) == 0)
		text = hw_buffer_text(b);
	evbuffer_free(b);
	return text;
}

int hw_senders_test(struct hw_senders *s, const char *receiver, uint64_t *number)
{
	struct hw_sender *to = find(s, receiver);
	struct hw_send_message m;
	char key[HW_SEND_KEY];
	int64_t now_ms = hw_senders_wall_ms();
	if (!to)
		return -ENOENT;
	for (const struct hw_job *job = to->jobs; job; job = job->next)
		if (job->test)
			return -EBUSY;
	hw_print(key, sizeof(key), "%s-test-%lld", receiver, (long long)now_ms);
	char *text = test_text(s, key, now_ms);
	struct hw_job *job = NULL;
	if (text && hw_send_message_parse(&m, text, strlen(text)) == 0) {
		job = hw_job_add(to, key, text, strlen(text), &m);
		hw_send_message_fini(&m);
	}
	free(text);
	if (!job)
		return -ENOMEM;
	job->test = true;
	*number = job->past;
	hw_past_find(&to->past, job->past)->test = true;
	return 0;
}

void hw_senders_reset(struct hw_senders *s)
{
	for (size_t k = 0; k < s->n; k++) {
		struct hw_sender *of = s->at[k];
		of->stats.result[HW_SEND_DROPPED] += hw_jobs_drop(of);
		of->failing = false;
		hw_alerts_fini(&of->alerts);
		hw_posts_restart(of);
	}
}

void hw_senders_wake(struct hw_senders *s)
{
	for (size_t k = 0; k < s->n; k++)
		hw_jobs_retry(s->at[k], true);
}

/* --- what is shown ---------------------------------------------------------------------------------------------- */

size_t hw_senders_waiting(const struct hw_senders *s)
{
	size_t n = 0;
	for (size_t k = 0; k < s->n; k++)
		n += s->at[k]->n_jobs;
	return n;
}

/* Writes scheme, host and port of each server, because other parts of a URL may be secret. */
static void show_target(const struct hw_sender *s, struct hw_json *j)
{
	char text[HW_RECEIVER_URL_MAX + 1] = "";
	size_t n = 0, len;
	for (const char *at = hw_receiver_url(&s->conf, &s->secrets); *at;) {
		const char *url = hw_receiver_next_url(s->conf.type, &at, &len), *host = strstr(url, "://");
		size_t shown = host ? (size_t)(host - url) + 3 + strcspn(host + 3, "/?#@") : 0;
		n += hw_print(text + n, sizeof(text) - n, "%s%.*s", n ? ", " : "", (int)(shown < len ? shown : len),
		              url);
	}
	hw_json_text(j, "target", s->conf.type == HW_RECEIVER_EXEC ? s->conf.program : text);
}

static void show_receiver(const struct hw_sender *s, struct hw_json *j)
{
	struct hw_past_entry *last = hw_past_find(&s->past, s->past.last);
	hw_json_text(j, "name", s->conf.name);
	hw_json_text(j, "type", hw_receiver_type_name(s->conf.type));
	show_target(s, j);
	hw_json_uint(j, "waiting", s->n_jobs);
	hw_json_uint(j, "sent", s->stats.result[HW_SEND_SENT]);
	hw_json_uint(j, "given_up", s->stats.result[HW_SEND_GIVEN_UP]);
	hw_json_uint(j, "retried", s->stats.retried);
	hw_json_bool(j, "failing", s->failing);
	hw_json_text(j, "words", s->failing && last && last->words[0] ? last->words : NULL);
	hw_json_open_member(j, "messages", '[');
	hw_past_show(&s->past, j);
	hw_json_close(j, ']');
}

void hw_senders_show(const struct hw_senders *s, struct hw_json *j)
{
	hw_json_open_member(j, "receivers", '[');
	for (size_t k = 0; k < s->n; k++) {
		hw_json_open(j, '{');
		show_receiver(s->at[k], j);
		hw_json_close(j, '}');
	}
	hw_json_close(j, ']');
}

int hw_senders_show_one(const struct hw_senders *s, const char *receiver, struct hw_json *j)
{
	const struct hw_sender *of = find(s, receiver);
	if (of)
		show_receiver(of, j);
	return of ? 0 : -ENOENT;
}

size_t hw_senders_count(const struct hw_senders *s)
{
	return s->n;
}

void hw_senders_stats(const struct hw_senders *s, size_t i, struct hw_send_stats *out)
{
	const struct hw_sender *of = s->at[i];
	*out = of->stats;
	out->name = of->conf.name;
	out->type = hw_receiver_type_name(of->conf.type);
	out->result[HW_SEND_WAITING] = of->n_jobs;
	out->waits_since_ms = 0;
	for (const struct hw_job *job = of->jobs; job; job = job->next)
		if (!out->waits_since_ms || job->taken_ms < out->waits_since_ms)
			out->waits_since_ms = job->taken_ms;
}

uint64_t hw_senders_dropped(const struct hw_senders *s)
{
	return s->dropped;
}

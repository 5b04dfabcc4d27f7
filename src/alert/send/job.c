/* SPDX-License-Identifier: MIT */
/*
 * Sends messages, with several tries. Invariant: each message of the list is being sent, has its timer set, or waits
 * for earlier messages of the list. The first messages of a receiver are sent at the same time, as many as its type
 * allows (one for most types). Of the messages about one incident, only the first is sent. A test message is sent at
 * once, even if other messages wait.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "alert/send/exec.h"
#include "alert/send/form.h"
#include "alert/send/note.h"
#include "alert/send/sender.h"

#define EXEC_TRIES 3
#define FIRST_MS   1000
#define HELD_MS    1000
#define OTHERS_MS                                                                                                      \
	1000 /* after one server has accepted the message, the try ends this much later, without the other servers'    \
	        answers */

/* Sets the job's timer. If there is no memory for it, the next try follows at once. */
static void wait_for(struct hw_job *job, int64_t ms)
{
	const struct timeval tv = {ms / 1000, ms % 1000 * 1000};
	if (evtimer_add(job->timer, &tv) && !job->running)
		hw_jobs_schedule(job->sender);
}

/* --- results ---------------------------------------------------------------------------------------------------- */

static void stop_try(struct hw_job *job)
{
	for (unsigned k = 0; k < job->n_at; k++)
		hw_try_free(job->at[k]);
	job->n_at = job->n_ended = 0;
	hw_note_free(job->note);
	job->note = NULL;
	job->running = false;
	evtimer_del(job->timer);
}

static void record(struct hw_job *job, enum hw_send_result result)
{
	struct hw_past_entry *e = hw_past_find(&job->sender->past, job->past);
	if (!e)
		return;
	e->result = result;
	e->tries = job->tries;
	e->code = job->tries > 0 ? job->best.code : -1;
	if (result != HW_SEND_WAITING)
		e->ended_ms = hw_senders_wall_ms();
	memcpy(e->words, job->best.words, sizeof(e->words));
}

static void unlink_job(struct hw_job *job)
{
	struct hw_sender *s = job->sender;
	struct hw_job **at = &s->jobs;
	while (*at != job)
		at = &(*at)->next;
	*at = job->next;
	s->n_jobs--;
	job->next = s->ended;
	s->ended = job;
	job->over = true;
}

/* Called after a test of PagerDuty. Adds the message that resolves the test's incident. */
static void resolve_test(struct hw_job *job)
{
	struct hw_send_message m;
	if (hw_send_message_parse(&m, job->json, job->len))
		return;
	struct hw_job *end = hw_job_add(job->sender, job->key, job->json, job->len, &m);
	hw_send_message_fini(&m);
	if (end)
		end->test = end->resolve = true;
}

static void end_job(struct hw_job *job, enum hw_send_result result)
{
	struct hw_sender *s = job->sender;
	const struct hw_senders_calls *c = &s->all->calls;
	bool was_failing = s->failing;
	record(job, result);
	s->stats.result[result] += !job->test;
	s->failing = result == HW_SEND_GIVEN_UP;
	if (result == HW_SEND_GIVEN_UP)
		hw_sender_trouble(s, "message %s is given up after %u %s: %s", job->key, job->tries,
		                  job->tries == 1 ? "try" : "tries", job->best.words);
	else if (was_failing)
		hw_sender_trouble(s, "works again");
	unlink_job(job);
	if (job->test && !job->resolve && result == HW_SEND_SENT && s->conf.type == HW_RECEIVER_PAGERDUTY)
		resolve_test(job);
	if (!job->test)
		c->done(c->arg, s->conf.name, job->number, result, job->best.words);
	hw_jobs_schedule(s);
}

static int64_t next_wait(const struct hw_job *job)
{
	int64_t ms = FIRST_MS;
	for (unsigned k = 1; k < job->tries && ms < HW_SEND_WAIT_MAX_MS; k++)
		ms *= 2;
	if (ms < job->best.retry_after_ms)
		ms = job->best.retry_after_ms;
	return ms < HW_SEND_WAIT_MAX_MS ? ms : HW_SEND_WAIT_MAX_MS;
}

static void try_later(struct hw_job *job)
{
	struct hw_sender *s = job->sender;
	int64_t ms = next_wait(job);
	record(job, HW_SEND_WAITING);
	s->stats.retried += !job->test;
	if (!s->failing)
		hw_sender_trouble(s, "message %s was not taken: %s; the next try follows in %lld s", job->key,
		                  job->best.words, (long long)(ms + 999) / 1000);
	s->failing = true;
	wait_for(job, ms);
}

/* Called when a try has ended, with the result in job->best. */
static void end_try(struct hw_job *job)
{
	bool exec = job->sender->conf.type == HW_RECEIVER_EXEC;
	stop_try(job);
	job->tries++;
	if (job->best.end == HW_TRY_TAKEN)
		end_job(job, HW_SEND_SENT);
	else if (job->best.end == HW_TRY_REFUSED || job->test || (exec && job->tries >= EXEC_TRIES))
		end_job(job, HW_SEND_GIVEN_UP);
	else
		try_later(job);
}

/* Called with the result of a try. With several servers, the message has arrived if any server has accepted it.
 * Otherwise there is another try, unless every server has refused it for good. */
static void on_try(void *arg, const struct hw_try_result *r)
{
	struct hw_job *job = arg;
	if (job->n_ended == 0 || r->end < job->best.end)
		job->best = *r;
	job->n_ended++;
	if (job->n_ended == job->n_at)
		end_try(job);
	else if (job->best.end == HW_TRY_TAKEN && !evtimer_pending(job->timer, NULL))
		wait_for(job, OTHERS_MS);
}

static void on_program(void *arg, int code, const char *why)
{
	struct hw_job *job = arg;
	job->best = (struct hw_try_result){.end = why ? HW_TRY_AGAIN : HW_TRY_TAKEN, .code = code};
	if (why)
		hw_try_words(job->best.words, why, strlen(why));
	end_try(job);
}

/* --- a try ------------------------------------------------------------------------------------------------------ */

static struct hw_note *render_alert(const struct hw_job *job, const struct hw_send_message *m)
{
	struct evbuffer *b = evbuffer_new();
	struct hw_note *note = NULL;
	int64_t now_ms = hw_senders_wall_ms();
	int rc = b ? 0 : -ENOMEM;
	for (size_t k = 0; rc == 0 && k < m->n; k++) {
		const struct hw_send_incident *i = &m->news[k].incident;
		char *labels = job->test ? hw_form_alert_labels(i, true) : NULL,
		     *notes = job->test ? hw_form_alert_notes(i) : NULL;
		if (job->test)
			rc = labels && notes ? hw_form_alert(b, labels, notes, now_ms, now_ms + 60000) : -ENOMEM;
		free(labels);
		free(notes);
		struct hw_alert *alert = job->test ? NULL : hw_alerts_put(&job->sender->alerts, i, now_ms);
		if (!job->test)
			rc = alert ? hw_alert_write(alert, now_ms, b) : -ENOMEM;
	}
	if (rc == 0)
		note = hw_form_alerts(b);
	if (b)
		evbuffer_free(b);
	return note;
}

static struct hw_note *render(const struct hw_job *job)
{
	const struct hw_sender *s = job->sender;
	struct hw_send_message m;
	if (hw_send_message_parse(&m, job->json, job->len))
		return NULL;
	m.key = job->key;
	struct hw_note *note = s->conf.type == HW_RECEIVER_ALERTMANAGER ? render_alert(job, &m)
	                       : s->conf.type == HW_RECEIVER_PAGERDUTY
	                               ? hw_form_pagerduty(&s->secrets, &m, job->resolve)
	                               : hw_form_template(&s->conf, &m, job->json, job->len);
	hw_send_message_fini(&m);
	return note;
}

static int start_program(struct hw_job *job)
{
	struct hw_sender *s = job->sender;
	char variable[HW_SEND_KEY + 32];
	if (!job->program)
		job->program = hw_exec_new(s->all->base, on_program, job);
	if (!job->program)
		return -ENOMEM;
	snprintf(variable, sizeof(variable), "IDEMPOTENCY_KEY=%s", job->key);
	return hw_exec_start(job->program, s->conf.program, job->note, variable, HW_SEND_TRY_MS);
}

static int start_transfers(struct hw_job *job)
{
	struct hw_sender *s = job->sender;
	struct hw_multi *multi = &s->all->multi;
	struct hw_try_target to = {.conf = &s->conf,
	                           .secrets = &s->secrets,
	                           .path = s->conf.type == HW_RECEIVER_ALERTMANAGER ? "/api/v2/alerts" : "",
	                           .key = job->key};
	for (const char *at = hw_receiver_url(&s->conf, &s->secrets); *at && job->n_at < HW_RECEIVER_URLS;) {
		to.url = hw_receiver_next_url(s->conf.type, &at, &to.len);
		struct hw_try *t = s->conf.type == HW_RECEIVER_SMTP ? hw_try_mail(multi, &to, job->note, on_try, job)
		                                                    : hw_try_post(multi, &to, job->note, on_try, job);
		if (t)
			job->at[job->n_at++] = t;
	}
	return job->n_at > 0 ? 0 : -ENOMEM;
}

static void start(struct hw_job *job)
{
	struct hw_sender *s = job->sender;
	const struct hw_senders_calls *c = &s->all->calls;
	job->held = !c->try_allowed(c->arg);
	if (job->held) {
		wait_for(job, HELD_MS);
		return;
	}
	job->running = true;
	job->best = (struct hw_try_result){.end = HW_TRY_AGAIN, .code = -1};
	job->note = render(job);
	int rc = !job->note ? -ENOMEM : s->conf.type == HW_RECEIVER_EXEC ? start_program(job) : start_transfers(job);
	if (rc == 0)
		return;
	hw_try_words(job->best.words, strerror(-rc), strlen(strerror(-rc)));
	end_try(job);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct hw_job *job = arg;
	(void)fd, (void)what;
	if (job->running)
		end_try(job); /* one server has accepted the message; the others get it with the next post of all alerts
		               */
	else
		start(job);
}

/* --- the list --------------------------------------------------------------------------------------------------- */

static void free_job(struct hw_job *job)
{
	stop_try(job);
	hw_exec_free(job->program);
	event_free(job->timer);
	free(job->json);
	free(job);
}

struct hw_job *hw_job_add(struct hw_sender *s, const char *key, const char *json, size_t len,
                          const struct hw_send_message *m)
{
	struct hw_job *job = calloc(1, sizeof(*job)), **at = &s->jobs;
	if (!job)
		return NULL;
	job->timer = evtimer_new(s->all->base, on_timer, job);
	job->json = malloc(len + 1);
	if (!job->timer || !job->json) {
		if (job->timer)
			event_free(job->timer);
		free(job->json);
		free(job);
		return NULL;
	}
	memcpy(job->json, json, len);
	job->json[len] = '\0';
	job->len = len;
	job->sender = s;
	job->taken_ms = hw_senders_wall_ms();
	snprintf(job->key, sizeof(job->key), "%s", key);
	memcpy(job->incident, m->news[0].incident.id, sizeof(job->incident));
	job->past = hw_past_add(&s->past, key, *m->summary ? m->summary : m->news[0].incident.sentence, false,
	                        job->taken_ms);
	while (*at)
		at = &(*at)->next;
	*at = job;
	s->n_jobs++;
	hw_jobs_schedule(s);
	return job;
}

/* Whether this message must wait: an earlier message in the list is about the same incident. */
static bool follows_its_like(const struct hw_sender *s, const struct hw_job *job)
{
	for (const struct hw_job *k = s->jobs; k != job; k = k->next)
		if (!k->test && strcmp(k->incident, job->incident) == 0)
			return true;
	return false;
}

void hw_jobs_turn(struct hw_sender *s)
{
	unsigned places = hw_receiver_type_parallel(s->conf.type);
	for (struct hw_job *job; (job = s->ended);) {
		s->ended = job->next;
		free_job(job);
	}
	for (struct hw_job *job = s->jobs, *next; job; job = next) {
		next = job->next;
		if (!job->test && (places == 0 || follows_its_like(s, job)))
			continue;
		places -= !job->test;
		if (!job->running && !evtimer_pending(job->timer, NULL))
			start(job); /* may end this job, no other */
	}
}

void hw_jobs_schedule(struct hw_sender *s)
{
	event_active(s->turn, EV_TIMEOUT, 0);
}

void hw_jobs_retry(struct hw_sender *s, bool held_alone)
{
	for (struct hw_job *job = s->jobs; job; job = job->next)
		if (!job->running && evtimer_pending(job->timer, NULL) && (job->held || !held_alone))
			evtimer_del(job->timer);
	hw_jobs_schedule(s);
}

size_t hw_jobs_drop(struct hw_sender *s)
{
	size_t n = 0;
	for (struct hw_job *job; (job = s->jobs ? s->jobs : s->ended);) {
		if (job->over) {
			s->ended = job->next;
		} else {
			s->jobs = job->next;
			n += !job->test;
			record(job, HW_SEND_DROPPED);
		}
		free_job(job);
	}
	s->n_jobs = 0;
	return n;
}

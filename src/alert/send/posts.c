/* SPDX-License-Identifier: MIT */
/*
 * The posts that an alertmanager receiver gets each minute: all of its alerts to each of its servers, one batch at a
 * time. If a server does not answer, its next post is a minute later.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <string.h>

#include "alert/send/form.h"
#include "alert/send/note.h"
#include "alert/send/sender.h"

#define MINUTE_S 60

static void stop(struct hw_poster *p)
{
	hw_try_free(p->at);
	hw_note_free(p->note);
	p->at = NULL;
	p->note = NULL;
}

static void post(struct hw_poster *p);

static void on_posted(void *arg, const struct hw_try_result *r)
{
	struct hw_poster *p = arg;
	struct hw_sender *s = p->sender;
	stop(p);
	if (r->end != HW_TRY_TAKEN) {
		s->stats.failed_posts++;
		if (!p->failing)
			hw_sender_trouble(s, "server %u did not take the open alerts: %s",
			                  (unsigned)(p - s->poster) + 1, r->words);
	}
	p->failing = r->end != HW_TRY_TAKEN;
	if (p->full && r->end != HW_TRY_AGAIN)
		post(p);
}

/* Returns the URL of a poster, or NULL. */
static const char *url_of(const struct hw_poster *p, size_t *len)
{
	const struct hw_sender *s = p->sender;
	const char *at = s->conf.url, *url = NULL;
	for (long k = p - s->poster; k >= 0; k--) {
		if (!*at)
			return NULL;
		url = hw_receiver_next_url(s->conf.type, &at, len);
	}
	return url;
}

/* Posts the next batch. If there is no memory, this minute's further alerts are not posted. */
static void post(struct hw_poster *p)
{
	struct hw_sender *s = p->sender;
	struct evbuffer *b = evbuffer_new();
	struct hw_try_target to = {.conf = &s->conf, .secrets = &s->secrets, .path = "/api/v2/alerts", .key = ""};
	to.url = url_of(p, &to.len);
	int n = b ? hw_alerts_batch(&s->alerts, p->after, hw_senders_wall_ms(), b) : 0;
	p->full = n == HW_ALERT_BATCH;
	if (n > 0 && to.url)
		p->note = hw_form_alerts(b);
	if (p->note)
		p->at = hw_try_post(&s->all->multi, &to, p->note, on_posted, p);
	if (!p->at)
		stop(p);
	if (b)
		evbuffer_free(b);
}

static void arm(struct hw_sender *s, long seconds)
{
	const struct timeval tv = {seconds, 0};
	evtimer_add(s->minute, &tv);
}

void hw_posts_minute(struct hw_sender *s)
{
	const struct hw_senders_calls *c = &s->all->calls;
	size_t len;
	bool allowed = c->try_allowed(c->arg);
	arm(s, allowed ? MINUTE_S : 1);
	if (!allowed)
		return;
	hw_alerts_expire(&s->alerts, hw_senders_wall_ms());
	for (struct hw_poster *p = s->poster; p < s->poster + HW_RECEIVER_URLS && url_of(p, &len); p++) {
		if (p->at)
			continue;
		p->after[0] = '\0';
		post(p);
	}
}

void hw_posts_stop(struct hw_sender *s)
{
	evtimer_del(s->minute);
	for (size_t k = 0; k < HW_RECEIVER_URLS; k++)
		stop(&s->poster[k]);
}

void hw_posts_restart(struct hw_sender *s)
{
	hw_posts_stop(s);
	if (s->conf.type != HW_RECEIVER_ALERTMANAGER)
		return;
	for (size_t k = 0; k < HW_RECEIVER_URLS; k++)
		s->poster[k] = (struct hw_poster){.sender = s};
	arm(s, 1);
}

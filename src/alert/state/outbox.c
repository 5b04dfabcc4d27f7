/* SPDX-License-Identifier: MIT */
/* See outbox.h. The engine limits the messages: at most HW_INCIDENT_PARALLEL for each receiver. */
#include "alert/state/outbox.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "alert/app.h"

struct message {
	struct message *next;
	char *receiver, *json;
	uint64_t number;
	bool built, stored; /* part of a commit; that commit has succeeded */
	bool handed;        /* the senders have it */
	bool finished;
};

struct hw_alert_outbox {
	struct hw_alert_app *app;
	struct message *first, **last;
	char *sending;
	size_t n;
};

static void message_free(struct message *m)
{
	free(m->receiver);
	free(m->json);
	free(m);
}

/* Removes the message at `at`. */
static void take_out(struct hw_alert_outbox *o, struct message **at)
{
	struct message *m = *at;
	*at = m->next;
	if (!m->next)
		o->last = at;
	o->n--;
	message_free(m);
}

int hw_alert_outbox_add(struct hw_alert_outbox *o, const char *receiver, uint64_t number, char *json, bool stored)
{
	struct message *m = json ? calloc(1, sizeof(*m)) : NULL;
	if (m)
		m->receiver = strdup(receiver);
	if (!m || !m->receiver) {
		free(m);
		free(json);
		return -ENOMEM;
	}
	m->json = json;
	m->number = number;
	m->built = m->stored = stored;
	*o->last = m;
	o->last = &m->next;
	o->n++;
	return 0;
}

const char *hw_alert_outbox_sending(struct hw_alert_outbox *o, const char *receiver)
{
	size_t len = 1;
	for (struct message **at = &o->first; *at;) {
		bool ours = strcmp((*at)->receiver, receiver) == 0;
		if (ours && (*at)->finished) {
			take_out(o, at);
			continue;
		}
		len += ours ? strlen((*at)->json) + 1 : 0;
		at = &(*at)->next;
	}
	free(o->sending);
	o->sending = malloc(len);
	char *to = o->sending;
	for (struct message *m = o->first; to && m; m = m->next)
		if (strcmp(m->receiver, receiver) == 0) {
			if (to > o->sending)
				*to++ = '\n';
			to = stpcpy(to, m->json);
		}
	if (to)
		*to = '\0';
	return o->sending;
}

void hw_alert_outbox_built(struct hw_alert_outbox *o)
{
	for (struct message *m = o->first; m; m = m->next)
		m->built = true;
}

/* Passes a message to the senders. If the senders refuse it, it is given up: a reload has removed its receiver, or
 * this program has a fault. */
static void hand_over(struct hw_alert_outbox *o, struct message *m)
{
	int rc = hw_senders_take(o->app->senders, m->receiver, m->number, m->json, strlen(m->json));
	m->handed = true;
	if (rc == 0 || rc == -EEXIST)
		return;
	hw_log_limited(o->app->log, HW_ALERT_LIMIT_SEND, HW_LOG_ERROR, "receiver %s: message %" PRIu64 " is lost: %s",
	               m->receiver, m->number, strerror(-rc));
	m->finished = true;
	hw_incidents_done(o->app->engine, hw_alert_now(o->app), m->receiver, m->number);
	hw_alert_schedule_turn(o->app);
}

void hw_alert_outbox_committed(struct hw_alert_outbox *o)
{
	for (struct message *m = o->first; m; m = m->next) {
		m->stored |= m->built;
		if (m->stored && !m->handed && !m->finished)
			hand_over(o, m);
	}
}

void hw_alert_outbox_loaded(struct hw_alert_outbox *o)
{
	for (struct message *m = o->first; m; m = m->next)
		if (m->finished)
			hw_incidents_done(o->app->engine, hw_alert_now(o->app), m->receiver, m->number);
	hw_alert_outbox_committed(o);
}

void hw_alert_outbox_send_unstored(struct hw_alert_outbox *o)
{
	for (struct message *m = o->first; m; m = m->next)
		if (!m->built && !m->handed)
			hand_over(o, m);
}

void hw_alert_outbox_done(struct hw_alert_outbox *o, const char *receiver, uint64_t number)
{
	for (struct message *m = o->first; m; m = m->next)
		if (m->number == number && strcmp(m->receiver, receiver) == 0)
			m->finished = true;
}

void hw_alert_outbox_keep(struct hw_alert_outbox *o, bool (*is_kept)(void *arg, const char *receiver), void *arg)
{
	for (struct message **at = &o->first; *at;)
		if (is_kept(arg, (*at)->receiver))
			at = &(*at)->next;
		else
			take_out(o, at);
}

size_t hw_alert_outbox_count(const struct hw_alert_outbox *o)
{
	return o->n;
}

struct hw_alert_outbox *hw_alert_outbox_new(struct hw_alert_app *app)
{
	struct hw_alert_outbox *o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	o->app = app;
	o->last = &o->first;
	return o;
}

void hw_alert_outbox_free(struct hw_alert_outbox *o)
{
	if (!o)
		return;
	while (o->first)
		take_out(o, &o->first);
	free(o->sending);
	free(o);
}

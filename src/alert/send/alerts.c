/* SPDX-License-Identifier: MIT */
/* See alerts.h. */
#include "alert/send/alerts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "alert/send/form.h"

/* Returns the index of the first alert whose id is not less than `id`. */
static size_t lower_bound(const struct hw_alerts *a, const char *id)
{
	size_t from = 0, to = a->n;
	while (from < to) {
		size_t middle = from + (to - from) / 2;
		if (strcmp(a->at[middle].id, id) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static void free_alert(struct hw_alert *alert)
{
	free(alert->labels);
	free(alert->notes);
}

/* Ids begin with their time, so a new one nearly always comes last. */
static struct hw_alert *insert(struct hw_alerts *a, size_t at)
{
	if (a->n == a->cap) {
		size_t cap = a->cap ? 2 * a->cap : 64;
		struct hw_alert *more = reallocarray(a->at, cap, sizeof(*more));
		if (!more)
			return NULL;
		a->at = more;
		a->cap = cap;
	}
	memmove(a->at + at + 1, a->at + at, (a->n - at) * sizeof(*a->at));
	a->n++;
	a->at[at] = (struct hw_alert){.since_ms = 0};
	return &a->at[at];
}

/* Returns the time at which an alert ends; 0: it is open. The alert of a task has no end of its own, and ends
 * HW_ALERT_CLOSED_MS after it has opened. */
static int64_t closed_at(const struct hw_send_incident *i, int64_t now_ms)
{
	if (i->kind == HW_INCIDENT_TASK)
		return (i->opened_ms ? i->opened_ms : now_ms) + HW_ALERT_CLOSED_MS;
	if (strcmp(i->state, "open") == 0)
		return 0;
	return i->closed_ms ? i->closed_ms : now_ms;
}

struct hw_alert *hw_alerts_put(struct hw_alerts *a, const struct hw_send_incident *i, int64_t now_ms)
{
	size_t at = lower_bound(a, i->id);
	bool found = at < a->n && strcmp(a->at[at].id, i->id) == 0;
	char *labels = found ? NULL : hw_form_alert_labels(i, false), *notes = hw_form_alert_notes(i);
	struct hw_alert *alert = !notes || (!found && !labels) ? NULL : found ? &a->at[at] : insert(a, at);
	if (!alert) {
		free(labels);
		free(notes);
		return NULL;
	}
	if (!found) {
		alert->labels = labels;
		memcpy(alert->id, i->id, sizeof(alert->id));
		alert->since_ms = i->since_ms ? i->since_ms : now_ms;
	}
	free(alert->notes);
	alert->notes = notes;
	alert->closed_ms = closed_at(i, now_ms);
	return alert;
}

void hw_alerts_expire(struct hw_alerts *a, int64_t now_ms)
{
	size_t kept = 0;
	for (size_t k = 0; k < a->n; k++) {
		struct hw_alert *alert = &a->at[k];
		if (alert->closed_ms && alert->closed_ms + HW_ALERT_CLOSED_MS < now_ms)
			free_alert(alert);
		else
			a->at[kept++] = *alert;
	}
	a->n = kept;
}

int hw_alert_write(const struct hw_alert *alert, int64_t now_ms, struct evbuffer *b)
{
	return hw_form_alert(b, alert->labels, alert->notes, alert->since_ms,
	                     alert->closed_ms ? alert->closed_ms : now_ms + HW_ALERT_ENDS_MS);
}

int hw_alerts_batch(const struct hw_alerts *a, char after[HW_INCIDENT_ID + 1], int64_t now_ms, struct evbuffer *b)
{
	size_t at = lower_bound(a, after);
	int n = 0;
	at += at < a->n && strcmp(a->at[at].id, after) == 0;
	for (; at < a->n && n < HW_ALERT_BATCH; at++, n++) {
		if (hw_alert_write(&a->at[at], now_ms, b))
			return -ENOMEM;
		memcpy(after, a->at[at].id, HW_INCIDENT_ID + 1);
	}
	return n;
}

void hw_alerts_fini(struct hw_alerts *a)
{
	for (size_t k = 0; k < a->n; k++)
		free_alert(&a->at[k]);
	free(a->at);
	*a = (struct hw_alerts){0};
}

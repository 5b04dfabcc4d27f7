/* SPDX-License-Identifier: MIT */
/*
 * The table of news: compares an incident with what a receiver was sent last. hw_news_of() is this table, and no other
 * code decides what is sent. hw_news_check() stores which receivers have news now, and when time alone may make news.
 */
#include <stdlib.h>

#include "incident/incidents_priv.h"

struct hw_sent *hw_news_sent(struct hw_incidents *e, struct hw_incident *i)
{
	if (!i->sent) {
		i->sent = calloc(HW_INCIDENT_RECEIVERS, sizeof(*i->sent));
		if (!i->sent)
			hw_incidents_fail(e);
	}
	return i->sent;
}

static bool has_members(const struct hw_incident *i)
{
	return i->kind != HW_INCIDENT_BLIND && i->kind != HW_INCIDENT_TASK;
}

/* Whether all down devices of the incident are silenced. A flapping device counts as down, even while it is online. */
static bool is_silent(struct hw_incidents *e, struct hw_incident *i)
{
	if (!has_members(i))
		return false;
	hw_incident_survey(e, i);
	if (i->loud > 0)
		return false;
	struct hw_incident_device *d = i->flapping && i->down == 0 ? hw_device_find(e, i->device) : NULL;
	return !d || hw_silence_of(e, d);
}

static enum hw_news opening(struct hw_incidents *e, struct hw_incident *i, unsigned receiver, int64_t *when)
{
	const struct hw_receiver *r = &e->receivers[receiver];
	if (i->state != HW_INCIDENT_OPEN || i->listed || i->opened_ms < r->from_ms || !(r->kinds >> i->kind & 1))
		return HW_NEWS_NONE;
	if (!has_members(i))
		return HW_NEWS_OPENED;
	hw_incident_survey(e, i);
	if (i->loud == 0 || !(i->mask >> receiver & 1))
		return HW_NEWS_NONE;
	if (i->loud_since + r->notify_after_ms > e->now) {
		*when = i->loud_since + r->notify_after_ms;
		return HW_NEWS_NONE;
	}
	return i->flapping ? HW_NEWS_FLAPPING : HW_NEWS_OPENED;
}

/* News that are due by time: grown, reminder. */
static enum hw_news later(struct hw_incidents *e, struct hw_incident *i, unsigned receiver, const struct hw_sent *s,
                          int64_t *when)
{
	const struct hw_receiver *r = &e->receivers[receiver];
	int64_t grown = HW_DUE_NEVER, reminder = HW_DUE_NEVER;
	if (has_members(i) && i->down + i->unreachable >= 2 * (s->count ? s->count : 1))
		grown = s->at_ms + HW_INCIDENT_GROWN;
	if (r->remind_ms > 0 && !i->acknowledged && !i->flapping)
		reminder = s->at_ms + r->remind_ms;
	if ((grown == HW_DUE_NEVER && reminder == HW_DUE_NEVER) || is_silent(e, i))
		return HW_NEWS_NONE;
	if (grown <= e->now)
		return HW_NEWS_GROWN;
	if (reminder <= e->now)
		return HW_NEWS_REMINDER;
	*when = grown < reminder ? grown : reminder;
	return HW_NEWS_NONE;
}

enum hw_news hw_news_of(struct hw_incidents *e, struct hw_incident *i, unsigned receiver, int64_t *when)
{
	const struct hw_sent *s = i->sent ? &i->sent[receiver] : NULL;
	*when = HW_DUE_NEVER;
	if (!e->receivers[receiver].name || i->dropped)
		return HW_NEWS_NONE;
	if (!s || s->last == HW_NEWS_NONE)
		return opening(e, i, receiver, when);
	if (s->last >= HW_NEWS_CLOSED || i->kind == HW_INCIDENT_TASK)
		return HW_NEWS_NONE;
	if (i->state != HW_INCIDENT_OPEN)
		return i->state == HW_INCIDENT_CLOSED ? HW_NEWS_CLOSED : HW_NEWS_MERGED;
	if (i->acknowledged && !s->acknowledged)
		return HW_NEWS_ACKNOWLEDGED;
	if (i->flapping != s->flapping && !is_silent(e, i))
		return i->flapping ? HW_NEWS_FLAPPING : HW_NEWS_STEADY;
	return later(e, i, receiver, s, when);
}

static void list_due(struct hw_incidents *e, struct hw_incident *i, uint32_t mask)
{
	bool was = i->due_mask != 0, is = mask != 0;
	i->due_mask = mask;
	if (was == is)
		return;
	if (is) {
		i->due_prev = NULL;
		i->due_next = e->due_first;
		if (i->due_next)
			i->due_next->due_prev = i;
		e->due_first = i;
	} else {
		*(i->due_prev ? &i->due_prev->due_next : &e->due_first) = i->due_next;
		if (i->due_next)
			i->due_next->due_prev = i->due_prev;
	}
}

void hw_news_check(struct hw_incidents *e, struct hw_incident *i)
{
	uint32_t mask = 0;
	int64_t at = HW_DUE_NEVER;
	for (unsigned k = 0; k < HW_INCIDENT_RECEIVERS; k++) {
		struct hw_receiver *r = &e->receivers[k];
		int64_t when = HW_DUE_NEVER;
		if (!r->name)
			continue;
		if (hw_news_of(e, i, k, &when) != HW_NEWS_NONE) {
			mask |= UINT32_C(1) << k;
			r->waits = false;
			if (r->gather_end == 0)
				r->gather_end = e->now + r->interval_ms;
		}
		at = when < at ? when : at;
	}
	list_due(e, i, mask);
	bool is_task = i->kind == HW_INCIDENT_TASK && i->state == HW_INCIDENT_OPEN;
	if (is_task && (mask == 0 || e->now - i->opened_ms >= HW_INCIDENT_NOTICE)) {
		hw_incident_end(e, i, HW_INCIDENT_CLOSED, NULL);
		list_due(e, i, 0);
		at = HW_DUE_NEVER;
	} else if (is_task && i->opened_ms + HW_INCIDENT_NOTICE < at) {
		at = i->opened_ms + HW_INCIDENT_NOTICE;
	}
	if (i->state != HW_INCIDENT_OPEN)
		at = HW_DUE_NEVER;
	hw_dues_set(&e->check_dues, &i->check_due, at);
}

/* SPDX-License-Identifier: MIT */
/*
 * Receivers and their messages. From the first news on, a receiver gathers news for `interval`. Then its news are
 * determined again. The remaining news are sent in one message, or, for an `each` receiver, in one message for each
 * incident.
 *
 * News count as sent when the message is made. The message is sent only after the commit, at least once, each time with
 * the same number and content. No receiver waits for another one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "incident/incidents_priv.h"

/* --- the configuration ----------------------------------------------------------------------------------------------
 */

static void free_receiver(struct hw_receiver *r)
{
	free(r->name);
	hw_match_free(r->match);
	*r = (struct hw_receiver){0};
}

static struct hw_receiver *find_receiver(struct hw_incidents *e, const char *name)
{
	for (unsigned k = 0; k < HW_INCIDENT_RECEIVERS; k++)
		if (e->receivers[k].name && strcmp(e->receivers[k].name, name) == 0)
			return &e->receivers[k];
	return NULL;
}

static struct hw_receiver *free_slot(struct hw_incidents *e)
{
	for (unsigned k = 0; k < HW_INCIDENT_RECEIVERS; k++)
		if (!e->receivers[k].name)
			return &e->receivers[k];
	return NULL;
}

static void take_conf(struct hw_incidents *e, struct hw_receiver *r, const struct hw_receiver_conf *c,
                      struct hw_match *match, unsigned position)
{
	if (!r->name) {
		r->name = hw_incidents_text(e, c->name);
		r->from_ms = e->now;
		r->changed = true;
	}
	hw_match_free(r->match);
	r->match = match;
	r->kinds = c->kinds;
	r->interval_ms = c->interval_ms;
	r->notify_after_ms = c->notify_after_ms;
	r->remind_ms = c->remind_ms;
	r->each = c->each;
	r->parallel = !c->each || c->parallel == 0         ? 1
	              : c->parallel > HW_INCIDENT_PARALLEL ? HW_INCIDENT_PARALLEL
	                                                   : c->parallel;
	r->position = position;
	r->kept = true;
}

/* Clears the slot of a receiver that was removed. Otherwise the news of the removed receiver would count as sent to the
 * next receiver in this slot. */
static void clear_slot(struct hw_incidents *e, unsigned slot)
{
	for (struct hw_incident *i = e->all; i; i = i->next) {
		if (i->sent)
			i->sent[slot] = (struct hw_sent){0};
		hw_incident_check(e, i);
	}
	free_receiver(&e->receivers[slot]);
}

int hw_receiver_configure(struct hw_incidents *e, const struct hw_incidents_conf *conf)
{
	struct hw_match *match[HW_INCIDENT_RECEIVERS] = {NULL};
	int rc = conf->n_receivers > HW_INCIDENT_RECEIVERS ? -EINVAL : 0;
	for (size_t k = 0; rc == 0 && k < conf->n_receivers; k++)
		if (conf->receivers[k].match)
			rc = hw_match_parse(conf->receivers[k].match, &match[k]);
	if (rc != 0) {
		for (size_t k = 0; k < HW_INCIDENT_RECEIVERS; k++)
			hw_match_free(match[k]);
		return rc;
	}
	for (unsigned k = 0; k < HW_INCIDENT_RECEIVERS; k++)
		e->receivers[k].kept = false;
	for (size_t k = 0; k < conf->n_receivers; k++) {
		struct hw_receiver *r = find_receiver(e, conf->receivers[k].name);
		if (r)
			take_conf(e, r, &conf->receivers[k], match[k], (unsigned)k);
	}
	for (unsigned k = 0; k < HW_INCIDENT_RECEIVERS; k++)
		if (e->receivers[k].name && !e->receivers[k].kept)
			clear_slot(e, k);
	for (size_t k = 0; k < conf->n_receivers; k++)
		if (!find_receiver(e, conf->receivers[k].name))
			take_conf(e, free_slot(e), &conf->receivers[k], match[k], (unsigned)k);
	return 0;
}

/* --- messages -------------------------------------------------------------------------------------------------------
 */

static bool is_sending(const struct hw_receiver *r, const struct hw_incident *i)
{
	for (unsigned k = 0; k < r->n_sending; k++)
		if (strcmp(r->sending[k].id, i->id) == 0)
			return true;
	return false;
}

static void count_as_sent(struct hw_incidents *e, struct hw_incident *i, unsigned receiver, enum hw_news what)
{
	struct hw_sent *s = hw_news_sent(e, i);
	if (!s)
		return;
	s += receiver;
	s->at_ms = e->now;
	s->count = i->down + i->unreachable;
	s->last = (uint8_t)what;
	s->acknowledged = s->acknowledged || what == HW_NEWS_ACKNOWLEDGED;
	s->flapping = what == HW_NEWS_FLAPPING || (s->flapping && what != HW_NEWS_STEADY);
	s->changed = true;
	struct hw_incident_record *r = hw_incidents_record(e, hw_news_name(what), i->id, NULL, NULL);
	if (r)
		strncpy(r->receiver, e->receivers[receiver].name, sizeof(r->receiver) - 1);
	hw_incident_changed(e, i);
}

size_t hw_incidents_message_news(const struct hw_incident_message *m)
{
	size_t n = m->n;
	for (int k = 0; k < HW_NEWS_KINDS; k++)
		n += m->more[k];
	return n;
}

static void take_news(struct hw_incidents *e, struct hw_incident *i, enum hw_news what, struct hw_incident_message *out)
{
	if (out->n == HW_INCIDENT_NEWS) {
		out->more[what]++;
		return;
	}
	struct hw_message_news *n = &e->news[out->n++];
	n->what = what;
	if (i->state == HW_INCIDENT_OPEN)
		hw_incident_survey(e, i);
	hw_incident_view(i, &n->incident);
}

static void unmark(struct hw_incidents *e, struct hw_incident *i, uint32_t bit)
{
	i->due_mask &= ~bit;
	if (i->due_mask)
		return;
	*(i->due_prev ? &i->due_prev->due_next : &e->due_first) = i->due_next;
	if (i->due_next)
		i->due_next->due_prev = i->due_prev;
}

/* Gathers the news for a receiver. Returns whether there are more news for the next message. */
static bool gather(struct hw_incidents *e, unsigned receiver, struct hw_incident_message *out)
{
	const struct hw_receiver *r = &e->receivers[receiver];
	uint32_t bit = UINT32_C(1) << receiver;
	bool left = false;
	for (struct hw_incident *i = e->due_first, *next; i; i = next) {
		next = i->due_next;
		if (!(i->due_mask & bit))
			continue;
		bool waits = (e->behind && i->kind != HW_INCIDENT_BLIND) || (r->each && is_sending(r, i));
		bool full = r->each ? out->n == 1
		                    : e->conf.news_most && hw_incidents_message_news(out) >= e->conf.news_most;
		left |= waits || full;
		if (full)
			break;
		if (waits)
			continue;
		int64_t when;
		enum hw_news what = hw_news_of(e, i, receiver, &when);
		if (what != HW_NEWS_NONE) {
			take_news(e, i, what, out);
			count_as_sent(e, i, receiver, what);
		}
		unmark(e, i, bit);
		hw_incident_check(e, i);
	}
	return left;
}

static bool is_ready(const struct hw_incidents *e, const struct hw_receiver *r)
{
	return r->name && r->gather_end && r->gather_end <= e->now && r->n_sending < r->parallel;
}

static bool compose(struct hw_incidents *e, unsigned receiver, struct hw_incident_message *out)
{
	struct hw_receiver *r = &e->receivers[receiver];
	*out = (struct hw_incident_message){
		.receiver = r->position, .name = r->name, .time_ms = e->wall_ms, .news = e->news};
	bool left = gather(e, receiver, out);
	if (!left)
		r->gather_end = 0;
	r->waits = left && out->n == 0;
	if (out->n == 0)
		return false;
	out->number = ++r->n;
	r->sending[r->n_sending].number = r->n;
	r->sending[r->n_sending].id[0] = '\0';
	if (r->each)
		memcpy(r->sending[r->n_sending].id, e->news[0].incident.id, sizeof(r->sending->id));
	r->n_sending++;
	r->changed = true;
	return true;
}

bool hw_incidents_message(struct hw_incidents *e, struct hw_now now, struct hw_incident_message *out)
{
	hw_incidents_tick(e, now);
	if (e->rechecking || e->loading)
		return false;
	for (unsigned k = 0; k < HW_INCIDENT_RECEIVERS; k++) {
		unsigned receiver = (e->turn + k) % HW_INCIDENT_RECEIVERS;
		if (is_ready(e, &e->receivers[receiver]) && compose(e, receiver, out)) {
			e->turn = receiver + 1;
			return true;
		}
	}
	return false;
}

int64_t hw_message_due(const struct hw_incidents *e)
{
	int64_t at = HW_DUE_NEVER;
	for (unsigned k = 0; k < HW_INCIDENT_RECEIVERS; k++) {
		const struct hw_receiver *r = &e->receivers[k];
		if (r->name && r->gather_end && !r->waits && r->n_sending < r->parallel && r->gather_end < at)
			at = r->gather_end;
	}
	return at;
}

void hw_incidents_done(struct hw_incidents *e, struct hw_now now, const char *receiver, uint64_t number)
{
	hw_incidents_tick(e, now);
	struct hw_receiver *r = find_receiver(e, receiver);
	for (unsigned k = 0; r && k < r->n_sending; k++)
		if (r->sending[k].number == number) {
			r->sending[k] = r->sending[--r->n_sending];
			r->changed = true;
			r->waits = false;
			return;
		}
}

/* --- the state after a start ----------------------------------------------------------------------------------------
 */

int hw_incidents_load_receiver(struct hw_incidents *e, const char *receiver, uint64_t n, int64_t from_ms)
{
	struct hw_receiver *r = find_receiver(e, receiver);
	if (!r)
		return 0;
	r->n = n > r->n ? n : r->n;
	r->from_ms = from_ms < e->now ? from_ms : e->now;
	return 0;
}

int hw_incidents_load_sending(struct hw_incidents *e, const char *receiver, uint64_t number, const char *incident)
{
	struct hw_receiver *r = find_receiver(e, receiver);
	if (!r || r->n_sending == HW_INCIDENT_PARALLEL)
		return 0;
	r->sending[r->n_sending].number = number;
	r->sending[r->n_sending].id[0] = '\0';
	if (incident)
		strncpy(r->sending[r->n_sending].id, incident, HW_INCIDENT_ID);
	r->n_sending++;
	r->n = number > r->n ? number : r->n;
	return 0;
}

int hw_incidents_load_sent(struct hw_incidents *e, const char *incident, const char *receiver, enum hw_news last,
                           bool acknowledged, bool flapping, uint32_t count, int64_t at_ms)
{
	struct hw_incident *i = (struct hw_incident *)(void *)hw_names_find(&e->incidents, incident);
	struct hw_receiver *r = find_receiver(e, receiver);
	if (!i || !r)
		return 0;
	struct hw_sent *s = hw_news_sent(e, i);
	if (!s)
		return e->failed;
	s[r - e->receivers] = (struct hw_sent){.at_ms = at_ms < e->now ? at_ms : e->now,
	                                       .count = count,
	                                       .last = (uint8_t)last,
	                                       .acknowledged = acknowledged,
	                                       .flapping = flapping};
	return 0;
}

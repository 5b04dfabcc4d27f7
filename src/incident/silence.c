/* SPDX-License-Identifier: MIT */
/*
 * Silences: those of operators, and the planned windows of [silence] sections. A silence changes no class; it only
 * decides whether a device counts for news. A device is silenced if a silence in force matches it, or if all its known
 * parents are silenced.
 *
 * Each change of the silences in force has a number, silence_epoch. A device stores the result for that number, so it
 * is matched once for each change. After a change, hw_silence_recheck() visits all devices in limited steps, and no
 * message is made until it has finished.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/print.h"
#include "incident/incidents_priv.h"

#define MINUTE_MS 60000

static struct hw_match_subject subject_of(const struct hw_incident_device *d)
{
	return (struct hw_match_subject){d->text, d->group ? d->group->text : NULL, d->labels};
}

static bool matches(const struct hw_silence *s, const struct hw_incident_device *d)
{
	struct hw_match_subject subject = subject_of(d);
	return hw_match_is(s->match, &subject);
}

uint32_t hw_receiver_mask(const struct hw_incidents *e, const struct hw_incident_device *d)
{
	struct hw_match_subject subject = subject_of(d);
	uint32_t mask = 0;
	for (unsigned k = 0; k < HW_INCIDENT_RECEIVERS; k++)
		if (e->receivers[k].name && hw_match_is(e->receivers[k].match, &subject))
			mask |= UINT32_C(1) << k;
	return mask;
}

/* Returns the silence that matches the device. Prefers a planned silence, because a planned silence is recorded with
 * the outage. */
static struct hw_silence *own_silence(const struct hw_incidents *e, const struct hw_incident_device *d)
{
	struct hw_silence *found = NULL;
	for (int list = 0; list < 2; list++)
		for (struct hw_silence *s = list == 0 ? e->sections : e->adhoc; s; s = s->next)
			if (s->in_force && (!found || (s->planned && !found->planned)) && matches(s, d))
				found = s;
	return found;
}

struct hw_silence *hw_silence_of(struct hw_incidents *e, struct hw_incident_device *d)
{
	if (d->silence_epoch == e->silence_epoch)
		return d->silenced;
	struct hw_silence *found = own_silence(e, d);
	if (!found && d->n_parents > 0) {
		found = hw_silence_of(e, d->parents[0].parent);
		for (unsigned k = 1; k < d->n_parents && found; k++)
			found = hw_silence_of(e, d->parents[k].parent);
	}
	d->silenced = found;
	d->silence_epoch = e->silence_epoch;
	return found;
}

/* Marks the device's incident for a new survey of its members, and determines again which planned silence covers the
 * device. */
static void resurvey(struct hw_incidents *e, struct hw_incident_device *d)
{
	if (d->in) {
		d->in->surveyed = false;
		hw_incident_check(e, d->in);
	}
	if (d->own)
		hw_incident_check(e, d->own);
	hw_silence_plan(e, d, false);
}

void hw_silence_refresh(struct hw_incidents *e, struct hw_incident_device *d)
{
	bool known = d->silence_epoch == e->silence_epoch;
	struct hw_silence *was = d->silenced;
	d->mask = hw_receiver_mask(e, d);
	d->silence_epoch = 0;
	if (hw_silence_of(e, d) != was || !known)
		for (struct hw_link *l = d->children; l; l = l->next)
			hw_silence_refresh(e, l->child);
	resurvey(e, d);
}

void hw_silence_offline(struct hw_incidents *e, struct hw_incident_device *d, bool offline)
{
	for (struct hw_silence *s = e->adhoc; s; s = s->next) {
		if (!s->until_online || !matches(s, d))
			continue;
		s->n_offline += offline ? 1 : -(size_t)1;
		s->quiet_from = s->n_offline ? 0 : e->now;
		if (offline && !s->was_offline)
			s->was_offline = s->changed = true;
	}
}

/* --- planned outages ------------------------------------------------------------------------------------------------
 */

static void write_planned(struct hw_incidents *e, struct hw_incident_device *d, int64_t to_ms)
{
	const struct hw_silence *s = d->planned;
	struct hw_incident_record *r = hw_incidents_record(e, "planned", NULL, d->text, s->name ? s->name : s->id);
	if (!r)
		return;
	r->from_ms = d->planned_from_ms;
	r->to_ms = to_ms > r->from_ms ? to_ms : r->from_ms;
}

void hw_silence_plan(struct hw_incidents *e, struct hw_incident_device *d, bool ends)
{
	struct hw_silence *s = NULL;
	if (!ends && d->fact == HW_FACT_OFFLINE) {
		s = hw_silence_of(e, d);
		s = s && s->planned ? s : NULL;
	}
	if (s == d->planned)
		return;
	int64_t from = !s ? 0 : d->since_ms > s->begin_ms ? d->since_ms : s->begin_ms;
	if (d->planned) {
		/* The planned part of the outage ends. If a transition ends the whole outage (`ends`), both end at
		 * since_ms, which the transition has set (e->now may be a millisecond less: it is the time of another
		 * clock). Otherwise the operator's silence has ended, or another silence has replaced it, and the
		 * planned part ends now. */
		int64_t to = ends ? d->since_ms : e->now;
		write_planned(e, d, to);
		from = to;
	}
	d->planned = s;
	d->planned_from_ms = from;
}

/* --- what is in force -----------------------------------------------------------------------------------------------
 */

static void set_in_force(struct hw_incidents *e, struct hw_silence *s, bool in_force)
{
	if (s->in_force == in_force)
		return;
	s->in_force = in_force;
	e->silence_epoch++;
	e->rechecking = true;
	e->recheck_at = 0;
}

/* Compares a section with the wall clock. */
static void read_clock(struct hw_incidents *e, struct hw_silence *s)
{
	struct tm reads;
	(e->conf.clock ? e->conf.clock : hw_window_libc)(e->wall_ms, s->utc, &reads);
	int64_t age = -1;
	for (size_t k = 0; k < s->n_windows; k++)
		if (hw_window_is_in_force(&s->windows[k], &reads)) {
			int64_t of_this = hw_window_age_ms(&s->windows[k], &reads);
			age = of_this > age ? of_this : age;
		}
	if (age >= 0 && !s->in_force)
		s->begin_ms = e->now - age;
	set_in_force(e, s, age >= 0);
}

static bool is_over(const struct hw_incidents *e, const struct hw_silence *s)
{
	if (e->wall_ms >= (s->until_ms ? s->until_ms : s->at_ms + HW_INCIDENT_ONLINE_MAX))
		return true;
	return s->until_online && s->was_offline && s->n_offline == 0 && e->now - s->quiet_from >= HW_INCIDENT_RETURNED;
}

/* Ends a silence. Its record stays until hw_incidents_change() has returned it and no device refers to it. */
static void end_silence(struct hw_incidents *e, struct hw_silence **at)
{
	struct hw_silence *s = *at;
	set_in_force(e, s, false);
	*at = s->next;
	hw_names_remove(&e->silences, &s->named);
	e->n_adhoc--;
	s->ended = s->changed = true;
	s->next = e->gone;
	e->gone = s;
	hw_incidents_record(e, "unsilenced", s->id, s->by, NULL);
}

void hw_silence_step(struct hw_incidents *e)
{
	int64_t minute = e->wall_ms / MINUTE_MS;
	for (struct hw_silence *s = e->sections; s && minute != e->minute; s = s->next)
		read_clock(e, s);
	e->minute = minute;
	for (struct hw_silence **at = &e->adhoc; *at;)
		if (is_over(e, *at))
			end_silence(e, at);
		else
			at = &(*at)->next;
}

bool hw_silence_recheck(struct hw_incidents *e)
{
	if (!e->rechecking)
		return false;
	size_t end = e->recheck_at + HW_INCIDENT_STEP;
	for (; e->recheck_at < e->devices.n_slots && e->recheck_at < end; e->recheck_at++)
		for (struct hw_named *n = e->devices.slots[e->recheck_at]; n; n = n->next) {
			struct hw_incident_device *d = (struct hw_incident_device *)n;
			d->mask = hw_receiver_mask(e, d);
			resurvey(e, d);
		}
	e->rechecking = e->recheck_at < e->devices.n_slots;
	return true;
}

int64_t hw_silence_due(const struct hw_incidents *e)
{
	int64_t at = HW_DUE_NEVER;
	if (e->sections)
		at = e->now + MINUTE_MS - e->wall_ms % MINUTE_MS;
	for (const struct hw_silence *s = e->adhoc; s; s = s->next) {
		int64_t end = s->until_ms ? s->until_ms : s->at_ms + HW_INCIDENT_ONLINE_MAX;
		end = e->now + end - e->wall_ms;
		if (s->until_online && s->was_offline && s->n_offline == 0 &&
		    s->quiet_from + HW_INCIDENT_RETURNED < end)
			end = s->quiet_from + HW_INCIDENT_RETURNED;
		at = end < at ? end : at;
	}
	return at;
}

/* --- begin and end --------------------------------------------------------------------------------------------------
 */

void hw_silence_free(struct hw_silence *s)
{
	hw_match_free(s->match);
	free(s->match_text);
	free(s->reason);
	free(s->by);
	free(s->name);
	free(s);
}

void hw_silence_view(const struct hw_silence *s, struct hw_silence_view *v)
{
	*v = (struct hw_silence_view){.match = s->match_text,
	                              .reason = s->reason,
	                              .by = s->by,
	                              .until_ms = s->until_ms,
	                              .until_online = s->until_online,
	                              .planned = s->planned,
	                              .was_offline = s->was_offline,
	                              .at_ms = s->at_ms};
	memcpy(v->id, s->id, sizeof(v->id));
}

void hw_incidents_silences(const struct hw_incidents *e,
                           bool (*each)(void *arg, const struct hw_silence_view *v, const struct hw_silence_state *s),
                           void *arg)
{
	struct hw_silence_view v;
	for (int list = 0; list < 2; list++)
		for (const struct hw_silence *s = list == 0 ? e->sections : e->adhoc; s; s = s->next) {
			const struct hw_silence_state state = {s->name, s->in_force};
			hw_silence_view(s, &v);
			if (!each(arg, &v, &state))
				return;
		}
}

static void count_offline(struct hw_incidents *e, struct hw_silence *s)
{
	s->n_offline = 0;
	for (size_t k = 0; k < e->devices.n_slots; k++)
		for (struct hw_named *n = e->devices.slots[k]; n; n = n->next) {
			const struct hw_incident_device *d = (const struct hw_incident_device *)n;
			s->n_offline += d->fact == HW_FACT_OFFLINE && matches(s, d);
		}
	s->was_offline = s->was_offline || s->n_offline > 0;
	s->quiet_from = s->n_offline ? 0 : e->now;
}

int hw_incidents_silence(struct hw_incidents *e, struct hw_now now, struct hw_silence_view *v)
{
	hw_incidents_tick(e, now);
	bool is_new = v->id[0] == '\0';
	if (e->n_adhoc == HW_INCIDENT_SILENCES)
		return -ENOSPC;
	if (!v->match || !*v->match || (!v->until_ms && !v->until_online) ||
	    v->until_ms > e->wall_ms + HW_INCIDENT_UNTIL_MAX)
		return -EINVAL;
	struct hw_silence *s = calloc(1, sizeof(*s));
	if (!s)
		return hw_incidents_fail(e);
	int rc = hw_match_parse(v->match, &s->match);
	if (rc != 0) {
		free(s);
		return rc == -ENOMEM ? hw_incidents_fail(e) : rc;
	}
	s->match_text = hw_incidents_text(e, v->match);
	s->reason = hw_incidents_text(e, v->reason);
	s->by = hw_incidents_text(e, v->by);
	s->until_ms = v->until_ms;
	s->until_online = v->until_online;
	s->planned = v->planned;
	s->was_offline = v->was_offline;
	s->at_ms = is_new ? e->wall_ms : v->at_ms;
	s->begin_ms = is_new ? e->now : v->at_ms;
	s->changed = true;
	if (is_new)
		hw_incidents_new_id(e, v->id);
	memcpy(s->id, v->id, sizeof(s->id));
	s->named.name = s->id;
	if (hw_names_add(&e->silences, &s->named) != 0)
		hw_incidents_fail(e);
	s->next = e->adhoc;
	e->adhoc = s;
	e->n_adhoc++;
	if (s->until_online)
		count_offline(e, s);
	set_in_force(e, s, true);
	if (is_new)
		hw_incidents_record(e, "silenced", s->id, s->by, NULL);
	return e->failed;
}

int hw_incidents_unsilence(struct hw_incidents *e, struct hw_now now, const char *id)
{
	hw_incidents_tick(e, now);
	for (struct hw_silence **at = &e->adhoc; *at; at = &(*at)->next)
		if (strcmp((*at)->id, id) == 0) {
			end_silence(e, at);
			return 0;
		}
	return -ENOENT;
}

/* --- sections -------------------------------------------------------------------------------------------------------
 */

static struct hw_silence *new_section(struct hw_incidents *e, const struct hw_silence_conf *c, int *rc)
{
	struct hw_silence *s = calloc(1, sizeof(*s));
	*rc = -ENOMEM;
	if (!s)
		return NULL;
	*rc = c->n_windows > HW_INCIDENT_WINDOWS ? -EINVAL : hw_match_parse(c->match ? c->match : "", &s->match);
	if (*rc != 0) {
		free(s);
		return NULL;
	}
	s->name = hw_incidents_text(e, c->name);
	s->match_text = hw_incidents_text(e, c->match);
	s->reason = hw_incidents_text(e, c->reason);
	s->planned = true;
	s->utc = c->utc;
	s->n_windows = c->n_windows;
	for (size_t k = 0; k < c->n_windows; k++)
		s->windows[k] = c->windows[k];
	return s;
}

static void retire(struct hw_incidents *e, struct hw_silence *list)
{
	while (list) {
		struct hw_silence *s = list;
		list = s->next;
		set_in_force(e, s, false);
		s->changed = false;
		s->ended = true;
		s->next = e->gone;
		e->gone = s;
	}
}

int hw_silence_configure(struct hw_incidents *e, const struct hw_incidents_conf *conf)
{
	struct hw_silence *list = NULL, **end = &list;
	int rc = conf->n_silences > HW_INCIDENT_SECTIONS ? -EINVAL : 0;
	for (size_t k = 0; rc == 0 && k < conf->n_silences; k++) {
		*end = new_section(e, &conf->silences[k], &rc);
		if (*end)
			end = &(*end)->next;
	}
	while (rc != 0 && list) {
		struct hw_silence *s = list;
		list = s->next;
		hw_silence_free(s);
	}
	if (rc != 0)
		return rc;
	retire(e, e->sections);
	e->sections = list;
	for (struct hw_silence *s = list; s; s = s->next)
		read_clock(e, s);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Returns the changes that must be written. For incidents and members, these are only their present states: an incident
 * that has changed ten times since the last call is returned once. But each event and each planned outage is returned.
 * If an incident or a device is no longer needed, it is freed at the call after the one that returned its last change.
 */
#include <stdlib.h>
#include <string.h>

#include "incident/incidents_priv.h"

/* What the last call gave is no longer borrowed. */
static void let_go(struct hw_incidents *e)
{
	while (e->freed) {
		struct hw_incident *i = e->freed;
		e->freed = i->next;
		hw_incident_free(i);
	}
	free(e->taken);
	e->taken = NULL;
	if (e->released)
		hw_device_settle_record(e, e->released);
	e->released = NULL;
	if (e->spent)
		hw_silence_free(e->spent);
	e->spent = NULL;
}

static bool give_sent(struct hw_incidents *e, struct hw_change *out)
{
	struct hw_incident *i = e->writing;
	for (; i && i->sent && e->writing_slot < HW_INCIDENT_RECEIVERS; e->writing_slot++) {
		struct hw_sent *s = &i->sent[e->writing_slot];
		const char *name = e->receivers[e->writing_slot].name;
		if (!s->changed || !name)
			continue;
		s->changed = false;
		*out = (struct hw_change){.kind = HW_CHANGE_SENT,
		                          .id = i->id,
		                          .receiver = name,
		                          .last = (enum hw_news)s->last,
		                          .acknowledged = s->acknowledged,
		                          .flapping = s->flapping,
		                          .count = s->count,
		                          .at_ms = s->at_ms};
		return true;
	}
	e->writing = NULL;
	if (i)
		hw_incident_reap(e, i);
	return false;
}

static bool give_incident(struct hw_incidents *e, struct hw_change *out)
{
	while (e->changed_incidents) {
		struct hw_incident *i = e->changed_incidents;
		bool was_written = i->written;
		e->changed_incidents = i->changed_next;
		i->changed = false;
		if (i->dropped && !was_written) {
			hw_incident_reap(e, i);
			continue;
		}
		i->written = !i->dropped;
		*out = (struct hw_change){.kind = i->dropped ? HW_CHANGE_DROPPED : HW_CHANGE_INCIDENT, .id = i->id};
		hw_incident_view(i, &out->incident);
		e->writing = i;
		e->writing_slot = i->dropped ? HW_INCIDENT_RECEIVERS : 0;
		return true;
	}
	return false;
}

/* Returns the next change of a member. A device that has moved is returned twice: it has left one incident, and it
 * has joined another. */
static bool give_member(struct hw_incidents *e, struct hw_change *out)
{
	while (e->changed_devices) {
		struct hw_incident_device *d = e->changed_devices;
		struct hw_incident *stored = d->stored;
		e->changed_devices = d->changed_next;
		d->changed = false;
		*out = (struct hw_change){.device = d->text,
		                          .class = (enum hw_incident_class)d->class,
		                          .unseen = d->fact == HW_FACT_UNSEEN,
		                          .since_ms = d->class_since,
		                          .seq = d->seq};
		if (stored && stored != d->in) {
			out->kind = HW_CHANGE_LEFT;
			out->id = stored->id;
			d->stored = NULL;
			stored->n_stored--;
			hw_incident_reap(e, stored);
			if (d->in)
				hw_device_changed(e, d);
			else
				e->released = d;
			return true;
		}
		if (!d->in) {
			hw_device_settle_record(e, d);
			continue;
		}
		d->in->n_stored += stored == NULL;
		d->stored = d->in;
		out->kind = HW_CHANGE_JOINED;
		out->id = d->in->id;
		return true;
	}
	return false;
}

static bool give_receiver(struct hw_incidents *e, struct hw_change *out)
{
	for (unsigned k = 0; k < HW_INCIDENT_RECEIVERS; k++) {
		struct hw_receiver *r = &e->receivers[k];
		if (!r->name || !r->changed)
			continue;
		r->changed = false;
		*out = (struct hw_change){
			.kind = HW_CHANGE_RECEIVER, .receiver = r->name, .number = r->n, .from_ms = r->from_ms};
		return true;
	}
	return false;
}

static bool give_silence(struct hw_incidents *e, struct hw_change *out)
{
	for (struct hw_silence *s = e->adhoc; s; s = s->next)
		if (s->changed) {
			s->changed = false;
			*out = (struct hw_change){.kind = HW_CHANGE_SILENCE, .id = s->id};
			hw_silence_view(s, &out->silence);
			return true;
		}
	if (e->rechecking) /* devices may still have one that has ended */
		return false;
	while (e->gone) {
		struct hw_silence *s = e->gone;
		e->gone = s->next;
		if (s->name) {
			hw_silence_free(s);
			continue;
		}
		e->spent = s;
		*out = (struct hw_change){.kind = HW_CHANGE_UNSILENCE, .id = s->id};
		hw_silence_view(s, &out->silence);
		return true;
	}
	return false;
}

static bool give_record(struct hw_incidents *e, struct hw_change *out)
{
	struct hw_incident_record *r = e->records;
	if (!r)
		return false;
	e->records = r->next;
	if (!e->records)
		e->records_end = &e->records;
	e->taken = r;
	bool planned = strcmp(r->what, "planned") == 0;
	*out = (struct hw_change){.kind = planned ? HW_CHANGE_PLANNED : HW_CHANGE_EVENT,
	                          .what = r->what,
	                          .at_ms = r->at_ms,
	                          .from_ms = r->from_ms,
	                          .to_ms = r->to_ms};
	out->id = planned ? r->text + strlen(r->text) + 1 : r->id;
	*(planned || r->kind ? &out->device : &out->by) = r->text[0] ? r->text : NULL;
	out->receiver = r->receiver[0] ? r->receiver : NULL;
	out->incident_kind = r->kind;
	out->group = r->group;
	return true;
}

bool hw_incidents_change(struct hw_incidents *e, struct hw_change *out)
{
	let_go(e);
	return give_sent(e, out) || give_incident(e, out) || give_member(e, out) || give_receiver(e, out) ||
	       give_silence(e, out) || give_record(e, out);
}

/* SPDX-License-Identifier: MIT */
/*
 * An incident and its members. `down` and `unreachable` always agree with the list of members. Three values (loud,
 * loud_since, mask) describe the members that are not silenced. To compute these values, all members must be visited,
 * so this survey is made only when it is needed. When a device joins, the values are updated in constant time.
 */
#include <stdlib.h>
#include <string.h>

#include "incident/incidents_priv.h"

void hw_incident_free(struct hw_incident *i)
{
	free(i->device);
	free(i->name);
	free(i->labels);
	free(i->cause);
	free(i->ack_by);
	free(i->note);
	free(i->sent);
	free(i);
}

void hw_incident_reap(struct hw_incidents *e, struct hw_incident *i)
{
	bool needed = i->state == HW_INCIDENT_OPEN && !i->dropped;
	if (needed || i->members || i->n_stored || i->changed || i->checked || i->due_mask || i->reaped ||
	    i == e->writing || !hw_incident_is_over(i))
		return;
	hw_dues_set(&e->incident_dues, &i->due, HW_DUE_NEVER);
	hw_dues_set(&e->check_dues, &i->check_due, HW_DUE_NEVER);
	hw_names_remove(&e->incidents, &i->named);
	if (i->prev)
		i->prev->next = i->next;
	else
		e->all = i->next;
	if (i->next)
		i->next->prev = i->prev;
	e->bytes -= sizeof(*i);
	i->reaped = true;
	i->next = e->freed;
	e->freed = i;
}

struct hw_incident *hw_incident_new(struct hw_incidents *e, enum hw_incident_kind kind, struct hw_incident_group *group,
                                    const char *device, const char *cause)
{
	struct hw_incident *i = calloc(1, sizeof(*i));
	if (!i || hw_dues_reserve(&e->incident_dues, e->incidents.n + 1) != 0 ||
	    hw_dues_reserve(&e->check_dues, e->incidents.n + 1) != 0)
		goto fail;
	hw_incidents_new_id(e, i->id);
	i->named.name = i->id;
	i->kind = (uint8_t)kind;
	i->group = group;
	i->device = hw_incidents_text(e, device);
	i->cause = hw_incidents_text(e, cause);
	i->since_ms = i->opened_ms = e->now;
	i->surveyed = true;
	if (hw_names_add(&e->incidents, &i->named) != 0)
		goto fail;
	i->next = e->all;
	if (i->next)
		i->next->prev = i;
	e->all = i;
	e->n_open++;
	e->bytes += sizeof(*i);
	return i;
fail:
	if (i)
		hw_incident_free(i);
	hw_incidents_fail(e);
	return NULL;
}

struct hw_incident *hw_incident_open(struct hw_incidents *e, enum hw_incident_kind kind,
                                     struct hw_incident_group *group, const char *device, const char *cause)
{
	struct hw_incident *i = hw_incident_new(e, kind, group, device, cause);
	if (!i)
		return NULL;
	struct hw_incident_record *r = hw_incidents_record(e, "opened", i->id, device, NULL);
	if (r) {
		r->kind = hw_incident_kind_name(kind);
		r->group = group ? group->text : NULL;
	}
	hw_incident_changed(e, i);
	return i;
}

static void hear(struct hw_incidents *e, struct hw_incident *i, struct hw_incident_device *d)
{
	if (hw_silence_of(e, d))
		return;
	i->mask |= d->mask;
	if (d->class != HW_CLASS_DOWN)
		return;
	if (i->loud++ == 0 || d->class_since < i->loud_since)
		i->loud_since = d->class_since;
}

void hw_incident_survey(struct hw_incidents *e, struct hw_incident *i)
{
	if (i->surveyed)
		return;
	i->loud = i->mask = 0;
	for (struct hw_incident_device *d = i->members; d; d = d->next)
		hear(e, i, d);
	i->surveyed = true;
}

static uint32_t *count_of(struct hw_incident *i, const struct hw_incident_device *d)
{
	return d->class == HW_CLASS_DOWN ? &i->down : &i->unreachable;
}

void hw_incident_join(struct hw_incidents *e, struct hw_incident *i, struct hw_incident_device *d)
{
	d->in = i;
	d->prev = NULL;
	d->next = i->members;
	if (d->next)
		d->next->prev = d;
	i->members = d;
	++*count_of(i, d);
	uint32_t n = i->kind == HW_INCIDENT_DEVICE ? i->unreachable : i->down;
	if (n > i->most)
		i->most = n;
	if (i->surveyed)
		hear(e, i, d);
	hw_device_changed(e, d);
	hw_incident_changed(e, i);
}

void hw_incident_leave(struct hw_incidents *e, struct hw_incident_device *d)
{
	struct hw_incident *i = d->in;
	if (!i)
		return;
	if (d->prev)
		d->prev->next = d->next;
	else
		i->members = d->next;
	if (d->next)
		d->next->prev = d->prev;
	d->in = NULL;
	d->next = d->prev = NULL;
	d->listed = d->listed && i->listed; /* The device was part of an incident that is sent. */
	--*count_of(i, d);
	i->surveyed = false;
	hw_device_changed(e, d);
	hw_incident_changed(e, i);
}

/* No pointer to an open incident stays. */
static void detach(struct hw_incidents *e, struct hw_incident *i)
{
	struct hw_incident_group *g = i->group;
	if (g && g->mass == i)
		g->mass = NULL;
	if (g && g->unseen == i)
		g->unseen = NULL;
	if (g && g->deaf == i)
		g->deaf = NULL;
	if (e->blind_monitor == i)
		e->blind_monitor = NULL;
	if (e->blind_redis == i)
		e->blind_redis = NULL;
	struct hw_incident_device *d = i->kind == HW_INCIDENT_DEVICE ? hw_device_find(e, i->device) : NULL;
	if (d && d->own == i)
		d->own = NULL;
	i->flapping = false;
	e->n_open--;
	hw_dues_set(&e->incident_dues, &i->due, HW_DUE_NEVER);
	hw_incident_changed(e, i);
}

void hw_incident_end(struct hw_incidents *e, struct hw_incident *i, enum hw_incident_state state,
                     const struct hw_incident *into)
{
	detach(e, i);
	i->state = (uint8_t)state;
	i->closed_ms = e->now;
	if (into)
		memcpy(i->into, into->id, sizeof(i->into));
	hw_incidents_record(e, hw_incident_state_name(state), i->id, NULL, NULL);
}

void hw_incident_drop(struct hw_incidents *e, struct hw_incident *i)
{
	detach(e, i);
	i->dropped = true;
	i->state = HW_INCIDENT_CLOSED;
	i->closed_ms = e->now;
	hw_incidents_record(e, "dropped", i->id, NULL, NULL);
}

bool hw_incident_is_known(const struct hw_incident *i)
{
	for (unsigned k = 0; i->sent && k < HW_INCIDENT_RECEIVERS; k++)
		if (i->sent[k].last != HW_NEWS_NONE)
			return true;
	return false;
}

bool hw_incident_is_over(const struct hw_incident *i)
{
	if (i->kind == HW_INCIDENT_TASK)
		return true;
	for (unsigned k = 0; i->sent && k < HW_INCIDENT_RECEIVERS; k++)
		if (i->sent[k].last != HW_NEWS_NONE && i->sent[k].last < HW_NEWS_CLOSED)
			return false;
	return true;
}

void hw_incident_view(const struct hw_incident *i, struct hw_incident_view *v)
{
	*v = (struct hw_incident_view){.kind = (enum hw_incident_kind)i->kind,
	                               .state = (enum hw_incident_state)i->state,
	                               .flapping = i->flapping,
	                               .listed = i->listed,
	                               .acknowledged = i->acknowledged,
	                               .group = i->group ? i->group->text : NULL,
	                               .device = i->device,
	                               .name = i->name,
	                               .labels = i->labels,
	                               .cause = i->cause,
	                               .since_ms = i->since_ms,
	                               .opened_ms = i->opened_ms,
	                               .closed_ms = i->closed_ms,
	                               .down = i->down,
	                               .unreachable = i->unreachable,
	                               .most = i->most,
	                               .silenced = i->surveyed ? i->down - i->loud : 0,
	                               .online = i->group ? i->group->online : 0,
	                               .offline = i->group ? i->group->offline : 0,
	                               .ack_by = i->ack_by,
	                               .note = i->note,
	                               .ack_ms = i->ack_ms};
	memcpy(v->id, i->id, sizeof(v->id));
	memcpy(v->into, i->into, sizeof(v->into));
}

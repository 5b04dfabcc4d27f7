/* SPDX-License-Identifier: MIT */
/*
 * The state after a start. Which devices are offline is read from the present content of Redis. The incidents are those
 * of the last commit. So a member that is no longer offline leaves its incident, and a device without an incident is
 * classified again. Devices that became down within mass_window count for a mass incident, also if they became down
 * before the load. While loading, only incidents that are merged end, and nothing is sent.
 */
#include <stdlib.h>
#include <string.h>

#include "incident/incidents_priv.h"

static int64_t not_later(const struct hw_incidents *e, int64_t ms)
{
	return ms < e->now ? ms : e->now;
}

/* Sets the pointer of the group or the device to its open incident. */
static void attach(struct hw_incidents *e, struct hw_incident *i)
{
	if (i->kind == HW_INCIDENT_DEVICE && i->device) {
		struct hw_incident_device *d = hw_device_get(e, i->device);
		if (d)
			d->own = i;
	} else if (i->kind == HW_INCIDENT_MASS && i->group) {
		i->group->mass = i;
	} else if (i->kind == HW_INCIDENT_UNSEEN_KIND && i->group) {
		i->group->unseen = i;
		i->group->unseen_at = i->opened_ms;
	} else if (i->kind == HW_INCIDENT_BLIND && i->group) {
		i->group->deaf = i;
		i->group->deaf_at = i->since_ms;
	} else if (i->kind == HW_INCIDENT_BLIND && i->cause) {
		bool redis = strcmp(i->cause, "redis") == 0 || strcmp(i->cause, "state") == 0;
		*(redis ? &e->blind_redis : &e->blind_monitor) = i;
	}
}

int hw_incidents_load(struct hw_incidents *e, const struct hw_incident_view *v)
{
	e->loading = true;
	if (hw_names_find(&e->incidents, v->id))
		return e->failed;
	struct hw_incident *i = hw_incident_new(e, v->kind, hw_incident_group(e, v->group), v->device, v->cause);
	if (!i)
		return e->failed;
	hw_names_remove(&e->incidents, &i->named);
	memcpy(i->id, v->id, sizeof(i->id));
	memcpy(i->into, v->into, sizeof(i->into));
	if (hw_names_add(&e->incidents, &i->named) != 0)
		return hw_incidents_fail(e);
	i->state = (uint8_t)v->state;
	i->flapping = v->flapping;
	i->listed = v->listed;
	i->acknowledged = v->acknowledged;
	i->name = hw_incidents_text(e, v->name);
	i->labels = hw_incidents_text(e, v->labels);
	i->ack_by = hw_incidents_text(e, v->ack_by);
	i->note = hw_incidents_text(e, v->note);
	i->ack_ms = v->ack_ms;
	i->since_ms = v->since_ms;
	i->opened_ms = not_later(e, v->opened_ms);
	i->closed_ms = v->closed_ms;
	i->most = v->most;
	i->written = true;
	if (i->state == HW_INCIDENT_OPEN)
		attach(e, i);
	else
		e->n_open--;
	return e->failed;
}

int hw_incidents_load_device(struct hw_incidents *e, const struct hw_incident_entry *entry)
{
	e->loading = true;
	struct hw_incident_device *d = hw_device_get(e, entry->id);
	if (!d)
		return e->failed;
	if (d->fact == HW_FACT_OFFLINE)
		hw_silence_offline(e, d, false);
	d->seq = entry->seq;
	d->since_ms = entry->time_ms;
	d->fact = (uint8_t)entry->fact;
	d->timeout_ms = entry->timeout_ms > 0 ? entry->timeout_ms : 0;
	d->seen_end = entry->wait_ms; /* until hw_incidents_loaded() */
	d->node = (uint8_t)hw_blind_node(e, entry->node);
	d->group = hw_incident_group(e, entry->group);
	free(d->labels);
	d->labels = hw_incidents_text(e, entry->labels);
	hw_device_name(e, d, entry->name);
	hw_device_link(e, d, entry->parents);
	if (d->fact == HW_FACT_OFFLINE)
		hw_silence_offline(e, d, true);
	d->mask = hw_receiver_mask(e, d);
	d->silence_epoch = 0;
	return e->failed;
}

/* Whether the device's outage is another one than the one with which the device became a member, or began after the
 * first start, which listed the incident. Unseen devices have no entry of their own. */
static bool is_later(const struct hw_incident *i, const struct hw_incident_device *d, uint64_t seq)
{
	return (seq > 0 && seq != d->seq && d->seq > 0 && d->fact == HW_FACT_OFFLINE) ||
	       (i->listed && d->since_ms > i->opened_ms);
}

int hw_incidents_load_member(struct hw_incidents *e, const char *incident, const char *device,
                             enum hw_incident_class class, int64_t since_ms, uint64_t seq)
{
	struct hw_incident *i = (struct hw_incident *)(void *)hw_names_find(&e->incidents, incident);
	if (!i)
		return e->failed;
	struct hw_incident_device *d = hw_device_get(e, device);
	if (!d)
		return e->failed;
	if (d->stored) /* another incident has it, too: the first one counts */
		return e->failed;
	d->stored = i;
	i->n_stored++;
	if (i->state != HW_INCIDENT_OPEN || !hw_device_is_away(d) || is_later(i, d, seq)) {
		hw_device_changed(e, d);
		return e->failed;
	}
	d->class = (uint8_t)(class == HW_CLASS_DOWN ? HW_CLASS_DOWN : HW_CLASS_UNREACHABLE);
	d->class_since = not_later(e, since_ms);
	d->listed = i->listed;
	i->surveyed = false;
	e->quiet = true;
	hw_incident_join(e, i, d);
	e->quiet = false;
	return e->failed;
}

int hw_incidents_recall(struct hw_incidents *e, const char *device, int64_t time_ms)
{
	struct hw_incident_device *d = hw_device_get(e, device);
	if (d)
		hw_device_weigh(e, d, not_later(e, time_ms));
	return e->failed;
}

/* Starts a loaded device, whose incident is known, or which is classified for the first time. One of its parents may
 * just have returned, so the device also waits for `settle`. */
static void start_device(struct hw_incidents *e, struct hw_incident_device *d, bool first)
{
	if (hw_device_is_away(d)) {
		if (d->class == HW_CLASS_NONE) {
			int64_t wait_ms = d->seen_end < 0 ? d->seen_end : d->seen_end + hw_device_settle_ms(d);
			d->listed = first;
			hw_class_begin(e, d, wait_ms);
		} else if (d->class == HW_CLASS_UNREACHABLE && hw_device_parents_away(d)) {
			hw_class_place(e, d);
		} else if (d->class == HW_CLASS_UNREACHABLE && !d->class_end) {
			hw_class_settle(e, d);
		}
	}
	hw_silence_refresh(e, d);
	if (d->own)
		hw_class_flaps(e, d);
}

int hw_incidents_loaded(struct hw_incidents *e, struct hw_now now, bool first)
{
	hw_incidents_tick(e, now);
	e->loading = true;
	hw_class_load_windows(e);
	for (size_t k = 0; k < e->devices.n_slots; k++)
		for (struct hw_named *n = e->devices.slots[k]; n; n = n->next)
			start_device(e, (struct hw_incident_device *)n, first);
	for (size_t k = 0; k < e->devices.n_slots; k++) /* A device may be away because of an entry that is not read
	                                                 * again, so its children are classified here. */
		for (struct hw_named *n = e->devices.slots[k]; n; n = n->next)
			if (hw_device_is_away((struct hw_incident_device *)n))
				hw_class_parent_away(e, (struct hw_incident_device *)n);
	for (struct hw_incident *i = e->all; i; i = i->next) {
		hw_incident_check(e, i);
		hw_class_check_end(e, i);
	}
	e->loading = false;
	for (size_t k = 0; k < e->devices.n_slots; k++)
		for (struct hw_named *n = e->devices.slots[k], *next; n; n = next) {
			next = n->next;
			hw_device_settle_record(e, (struct hw_incident_device *)n);
		}
	return e->failed;
}

void hw_incidents_rewrite(struct hw_incidents *e)
{
	for (size_t k = 0; k < e->devices.n_slots; k++)
		for (struct hw_named *n = e->devices.slots[k]; n; n = n->next) {
			struct hw_incident_device *d = (struct hw_incident_device *)n;
			if (d->in)
				hw_device_changed(e, d);
		}
	for (struct hw_incident *i = e->all; i; i = i->next) {
		for (unsigned k = 0; i->sent && k < HW_INCIDENT_RECEIVERS; k++)
			i->sent[k].changed = i->sent[k].last != HW_NEWS_NONE;
		hw_incident_changed(e, i);
	}
	for (struct hw_silence *s = e->adhoc; s; s = s->next)
		s->changed = true;
	for (unsigned k = 0; k < HW_INCIDENT_RECEIVERS; k++)
		e->receivers[k].changed = e->receivers[k].name != NULL;
}

/* SPDX-License-Identifier: MIT */
/* Entries of the streams, and what operators do. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "incident/incidents_priv.h"

/* Applies what an entry contains about a device, except for its state. If the device is in its group's window, its
 * group is not changed. */
static void describe(struct hw_incidents *e, struct hw_incident_device *d, const struct hw_incident_entry *entry)
{
	if (entry->group && (!d->group || !d->in_window))
		d->group = hw_incident_group(e, entry->group);
	if (entry->labels)
		hw_incidents_set_text(e, &d->labels, entry->labels);
	hw_device_name(e, d, entry->name);
}

static void leave_state(struct hw_incidents *e, struct hw_incident_device *d)
{
	if (d->fact == HW_FACT_OFFLINE)
		hw_silence_offline(e, d, false);
	hw_silence_plan(e, d, true);
}

/* The device becomes offline or unseen. */
static void go_away(struct hw_incidents *e, struct hw_incident_device *d, const struct hw_incident_entry *entry)
{
	leave_state(e, d);
	hw_class_end(e, d);
	describe(e, d, entry);
	d->listed = d->listed && d->fact == HW_FACT_UNSEEN && entry->fact == HW_FACT_UNSEEN;
	d->fact = (uint8_t)entry->fact;
	d->node = (uint8_t)hw_blind_node(e, entry->node);
	d->timeout_ms = entry->timeout_ms > 0 ? entry->timeout_ms : 0;
	hw_device_link(e, d, entry->parents);
	if (d->fact == HW_FACT_OFFLINE)
		hw_silence_offline(e, d, true);
	hw_silence_refresh(e, d);
	hw_class_begin(e, d, entry->wait_ms);
	hw_class_parent_away(e, d);
}

static void come_back(struct hw_incidents *e, struct hw_incident_device *d, const struct hw_incident_entry *entry)
{
	leave_state(e, d);
	describe(e, d, entry);
	d->fact = HW_FACT_ONLINE;
	d->listed = false;
	hw_class_flaps(e, d);
	hw_class_end(e, d);
	hw_class_parent_back(e, d);
	hw_device_unlink(e, d);
	hw_silence_refresh(e, d);
}

/* Its children lose this parent. */
static void forget(struct hw_incidents *e, struct hw_incident_device *d)
{
	leave_state(e, d);
	d->fact = HW_FACT_FORGOTTEN;
	d->weight = 0;
	hw_class_flaps(e, d);
	hw_class_end(e, d);
	hw_class_parent_back(e, d);
	while (d->children) {
		struct hw_incident_device *child = d->children->child;
		hw_link_remove(e, d->children);
		hw_silence_refresh(e, child);
		if (hw_device_parents_away(child))
			hw_class_place(e, child);
	}
	hw_device_unlink(e, d);
}

int hw_incidents_entry(struct hw_incidents *e, struct hw_now now, const struct hw_incident_entry *entry)
{
	hw_incidents_tick(e, now);
	struct hw_incident_device *d = hw_device_find(e, entry->id);
	if (!d && entry->fact == HW_FACT_FORGOTTEN)
		return e->failed;
	if (d && d->seq >= entry->seq && entry->seq > 0)
		return e->failed;
	d = hw_device_get(e, entry->id);
	if (!d)
		return e->failed;
	d->seq = entry->seq;
	d->since_ms = entry->time_ms;
	if (entry->fact == HW_FACT_ONLINE || entry->fact == HW_FACT_OFFLINE)
		hw_device_weigh(e, d, e->now);
	if (entry->fact == HW_FACT_ONLINE)
		come_back(e, d, entry);
	else if (entry->fact == HW_FACT_FORGOTTEN)
		forget(e, d);
	else
		go_away(e, d, entry);
	hw_device_settle_record(e, d);
	return e->failed;
}

void hw_incidents_parent_heard(struct hw_incidents *e, struct hw_now now, const char *id, uint64_t seq,
                               int64_t settle_ms)
{
	hw_incidents_tick(e, now);
	struct hw_incident_device *d = hw_device_find(e, id);
	if (!d || d->seq != seq)
		return;
	hw_class_heard(e, d, settle_ms);
	hw_device_settle_record(e, d);
}

void hw_incidents_behind(struct hw_incidents *e, bool behind)
{
	if (e->behind == behind)
		return;
	e->behind = behind;
	for (unsigned k = 0; k < HW_INCIDENT_RECEIVERS; k++)
		e->receivers[k].waits = false;
}

int hw_incidents_task(struct hw_incidents *e, struct hw_now now, const char *device, const char *group,
                      const char *text)
{
	hw_incidents_tick(e, now);
	if (e->n_open >= e->conf.max_incidents) {
		e->refused++;
		return e->failed;
	}
	hw_incident_open(e, HW_INCIDENT_TASK, hw_incident_group(e, group), device, text);
	return e->failed;
}

int hw_incidents_acknowledge(struct hw_incidents *e, struct hw_now now, const char *incident, bool on, const char *by,
                             const char *note)
{
	hw_incidents_tick(e, now);
	struct hw_incident *i = (struct hw_incident *)(void *)hw_names_find(&e->incidents, incident);
	if (!i)
		return -ENOENT;
	if (i->state != HW_INCIDENT_OPEN)
		return -EEXIST;
	i->acknowledged = on;
	i->ack_ms = on ? e->wall_ms : 0;
	hw_incidents_set_text(e, &i->ack_by, on ? by : NULL);
	hw_incidents_set_text(e, &i->note, on ? note : NULL);
	for (unsigned k = 0; !on && i->sent && k < HW_INCIDENT_RECEIVERS; k++) {
		i->sent[k].changed = i->sent[k].changed || i->sent[k].acknowledged;
		i->sent[k].acknowledged = false;
	}
	hw_incidents_record(e, on ? "acknowledged" : "unacknowledged", i->id, by, NULL);
	hw_incident_changed(e, i);
	return e->failed;
}

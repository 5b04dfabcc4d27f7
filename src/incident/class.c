/* SPDX-License-Identifier: MIT */
/*
 * The classes of devices, and the incident to which each device belongs. Invariants, between two calls from outside:
 *
 * - A down device is in exactly one open incident.
 * - If all parents of an unreachable device are away, it is in the incident of the parent that went away last. If that
 *   parent is in no incident, the device is in none.
 * - If a parent has just returned, an unreachable device may be in any open incident until it has settled.
 * - A pending or returned device is in no incident.
 *
 * If a device moves to another incident, the unreachable devices behind it move too. Links form no circle, so these
 * moves end.
 */
#include <stdlib.h>

#include "incident/incidents_priv.h"

/* --- the window of a group's devices that have just become down -----------------------------------------------------
 */

static void window_remove(struct hw_incident_device *d)
{
	struct hw_incident_group *g = d->group;
	if (!d->in_window)
		return;
	*(d->window_prev ? &d->window_prev->window_next : &g->window_first) = d->window_next;
	*(d->window_next ? &d->window_next->window_prev : &g->window_last) = d->window_prev;
	d->window_next = d->window_prev = NULL;
	d->in_window = false;
	g->n_window--;
}

static void window_add(struct hw_incidents *e, struct hw_incident_device *d)
{
	struct hw_incident_group *g = d->group;
	d->window_prev = g->window_last;
	*(d->window_prev ? &d->window_prev->window_next : &g->window_first) = d;
	g->window_last = d;
	d->in_window = true;
	g->n_window++;
	while (g->window_first->class_since < e->now - e->conf.mass_window_ms)
		window_remove(g->window_first);
}

static bool is_mass(const struct hw_incidents *e, const struct hw_incident_group *g)
{
	uint64_t all = g->online + g->offline;
	return e->conf.mass > 0 && g->n_window >= e->conf.mass &&
	       g->n_window * 100 >= (uint64_t)e->conf.mass_share * all;
}

/* --- moving ---------------------------------------------------------------------------------------------------------
 */

/* Puts the children of `d` that are unreachable because of `d` into their incidents again, after `d` has moved. */
static void take_along(struct hw_incidents *e, struct hw_incident_device *d)
{
	for (struct hw_link *l = d->children; l; l = l->next)
		if (l->child->class == HW_CLASS_UNREACHABLE && hw_device_parents_away(l->child) &&
		    hw_device_latest_parent(l->child) == d)
			hw_class_place(e, l->child);
}

/* Whether a mass incident has become so small that it is split. Each of its devices then opens an incident of its
 * own, so there must be room for these incidents. */
static bool is_small(const struct hw_incidents *e, const struct hw_incident *i)
{
	return i->kind == HW_INCIDENT_MASS && i->down < (e->conf.mass ? e->conf.mass : 1) && i->down * 10 < i->most &&
	       e->n_open + i->down < e->conf.max_incidents;
}

/* Moves a member; NULL: it leaves. */
static void move(struct hw_incidents *e, struct hw_incident_device *d, struct hw_incident *to)
{
	if (d->in == to)
		return;
	hw_incident_leave(e, d);
	if (to)
		hw_incident_join(e, to, d);
	if (to && d->class == HW_CLASS_DOWN) {
		/* If the device was online at the first start, its outage is sent, with its own time. */
		if (to->listed && !d->listed && to->kind == HW_INCIDENT_DEVICE)
			to->since_ms = d->since_ms;
		to->listed = to->listed && d->listed;
		to->clear_from = 0;
		to->small_from = is_small(e, to) ? to->small_from : 0;
	}
	take_along(e, d);
}

/* Removes the remaining unreachable devices from the incident. A device with a parent in another incident joins that
 * one. */
static void dismiss(struct hw_incidents *e, struct hw_incident *i)
{
	while (i->members) {
		struct hw_incident_device *d = i->members;
		hw_incident_leave(e, d);
		if (hw_device_parents_away(d) && hw_device_latest_parent(d)->in != i)
			hw_class_place(e, d);
		else
			take_along(e, d);
	}
}

/* Called when down devices have left `i` (`into` NULL), or have moved from it to `into`. If `i` has no down device any
 * more, it is merged into `into`, or ends. */
static void emptied(struct hw_incidents *e, struct hw_incident *i, struct hw_incident *into)
{
	if (!i || i->state != HW_INCIDENT_OPEN || i->down > 0)
		return;
	dismiss(e, i);
	if (hw_incident_is_known(i))
		hw_incident_end(e, i, HW_INCIDENT_MERGED, into);
	else
		hw_incident_drop(e, i);
}

/* --- where a down device belongs ------------------------------------------------------------------------------------
 */

static struct hw_incident *open_mass(struct hw_incidents *e, struct hw_incident_device *d)
{
	struct hw_incident *i = hw_incident_open(e, HW_INCIDENT_MASS, d->group, NULL, NULL);
	if (i) {
		d->group->mass = i;
		i->since_ms = d->since_ms;
		i->listed = d->listed;
	}
	return i;
}

/* Moves a device that has just become down to the mass incident `i`. */
static void gather(struct hw_incidents *e, struct hw_incident_device *d, struct hw_incident *i)
{
	struct hw_incident *from = d->in;
	window_remove(d);
	if (d->since_ms < i->since_ms)
		i->since_ms = d->since_ms;
	move(e, d, i);
	emptied(e, from, i);
}

/* Moves the devices of the group that have just become down (in the group's window) to a new mass incident. */
static void gather_mass(struct hw_incidents *e, struct hw_incident_device *d)
{
	struct hw_incident_group *g = d->group;
	struct hw_incident *i = open_mass(e, d);
	if (!i)
		return;
	while (g->window_first)
		gather(e, g->window_first, i);
}

/* Whether a loaded device was in its group's window: it became down within mass_window, and its own incident began with
 * this outage. */
static bool is_recent(const struct hw_incidents *e, const struct hw_incident_device *d)
{
	return e->conf.mass > 0 && d->group && d->class == HW_CLASS_DOWN && d->in && d->in == d->own &&
	       d->own->since_ms == d->since_ms && d->class_since >= e->now - e->conf.mass_window_ms;
}

static int compare_class_since(const void *a, const void *b)
{
	const struct hw_incident_device *const *x = a, *const *y = b;
	return ((*x)->class_since > (*y)->class_since) - ((*x)->class_since < (*y)->class_since);
}

void hw_class_load_windows(struct hw_incidents *e)
{
	struct hw_incident_device **recent = calloc(e->devices.n + 1, sizeof(struct hw_incident_device *));
	size_t n = 0;
	if (!recent) {
		hw_incidents_fail(e);
		return;
	}
	for (size_t k = 0; k < e->devices.n_slots; k++)
		for (struct hw_named *d = e->devices.slots[k]; d; d = d->next)
			if (is_recent(e, (struct hw_incident_device *)d))
				recent[n++] = (struct hw_incident_device *)d;
	qsort(recent, n, sizeof(struct hw_incident_device *), compare_class_since);
	for (size_t k = 0; k < n; k++)
		if (recent[k]->group->mass)
			gather(e, recent[k], recent[k]->group->mass);
		else
			window_add(e, recent[k]);
	free(recent);
	for (struct hw_incident_group *g = e->all_groups; g; g = g->next)
		if (is_mass(e, g))
			gather_mass(e, g->window_first);
}

static void open_own(struct hw_incidents *e, struct hw_incident_device *d)
{
	if (e->n_open >= e->conf.max_incidents && d->group) {
		e->refused++;
		struct hw_incident *mass = d->group->mass ? d->group->mass : open_mass(e, d);
		if (mass)
			move(e, d, mass);
		return;
	}
	struct hw_incident *i = hw_incident_open(e, HW_INCIDENT_DEVICE, d->group, d->text, NULL);
	if (!i)
		return;
	i->name = hw_incidents_text(e, d->name);
	i->labels = hw_incidents_text(e, d->labels);
	i->since_ms = d->since_ms;
	i->listed = d->listed;
	d->own = i;
	move(e, d, i);
	hw_class_flaps(e, d);
}

static void join_unseen(struct hw_incidents *e, struct hw_incident_device *d)
{
	struct hw_incident_group *g = d->group;
	struct hw_incident *i = g ? g->unseen : NULL;
	if (!i || e->now - g->unseen_at > HW_INCIDENT_UNSEEN) {
		i = hw_incident_open(e, HW_INCIDENT_UNSEEN_KIND, g, g ? NULL : d->text, NULL);
		if (!i)
			return;
		i->since_ms = d->since_ms;
		i->listed = d->listed;
	}
	if (g) {
		g->unseen = i;
		g->unseen_at = e->now;
	}
	move(e, d, i);
}

/* Finds the incident of a down device. `alone`: the device was in a mass incident that has ended, and must not count
 * for a new mass incident. */
static void place_down(struct hw_incidents *e, struct hw_incident_device *d, bool alone)
{
	if (d->fact == HW_FACT_UNSEEN) {
		join_unseen(e, d);
	} else if (d->own) {
		move(e, d, d->own);
		hw_class_flaps(e, d);
	} else if (d->group && d->group->mass) {
		move(e, d, d->group->mass);
	} else {
		if (d->group && !alone)
			window_add(e, d);
		if (d->in_window && is_mass(e, d->group))
			gather_mass(e, d);
		else
			open_own(e, d);
	}
}

void hw_class_place(struct hw_incidents *e, struct hw_incident_device *d)
{
	if (d->class == HW_CLASS_DOWN && !d->in)
		place_down(e, d, false);
	else if (d->class == HW_CLASS_UNREACHABLE && hw_device_parents_away(d))
		move(e, d, hw_device_latest_parent(d)->in);
	else if (d->class == HW_CLASS_NONE || d->class == HW_CLASS_PENDING)
		move(e, d, NULL);
}

/* --- classes --------------------------------------------------------------------------------------------------------
 */

/* Changes the class of a device. Members are counted by class, so the device leaves its incident before its class
 * changes. */
static void set_class(struct hw_incidents *e, struct hw_incident_device *d, enum hw_incident_class class)
{
	struct hw_incident *was = d->in;
	if (d->class == class)
		return;
	hw_incident_leave(e, d);
	window_remove(d);
	d->class = (uint8_t) class;
	d->class_since = e->now;
	d->class_end = 0;
	hw_class_place(e, d);
	if (was && was != d->in)
		take_along(e, d);
}

/* Makes a pending or unreachable device down after `ms`. Time in which the device's node is blind does not count. */
static void wait(struct hw_incidents *e, struct hw_incident_device *d, int64_t ms)
{
	d->class_end = e->now + ms;
	d->seen_end = hw_blind_seen(e, d->node) + ms;
}

void hw_class_settle(struct hw_incidents *e, struct hw_incident_device *d)
{
	wait(e, d, hw_device_settle_ms(d));
	hw_device_settle_record(e, d);
}

void hw_class_begin(struct hw_incidents *e, struct hw_incident_device *d, int64_t wait_ms)
{
	struct hw_incident *was = d->in;
	if (d->class != HW_CLASS_NONE) /* The device already has a class if it was unseen until now, or if the entry
	                                  about its return was lost. */
		set_class(e, d, HW_CLASS_NONE);
	if (hw_device_parents_away(d)) {
		set_class(e, d, HW_CLASS_UNREACHABLE);
	} else if (d->n_parents > 0 && wait_ms >= 0) {
		set_class(e, d, HW_CLASS_PENDING);
		wait(e, d, wait_ms + HW_INCIDENT_WAIT_MORE);
	} else {
		set_class(e, d, HW_CLASS_DOWN);
	}
	if (was && was != d->in)
		hw_class_check_end(e, was);
}

void hw_class_end(struct hw_incidents *e, struct hw_incident_device *d)
{
	struct hw_incident *was = d->in;
	set_class(e, d, HW_CLASS_NONE);
	if (was)
		hw_class_check_end(e, was);
}

void hw_class_heard(struct hw_incidents *e, struct hw_incident_device *d, int64_t settle_ms)
{
	if (d->class != HW_CLASS_PENDING)
		return;
	set_class(e, d, settle_ms > 0 ? HW_CLASS_UNREACHABLE : HW_CLASS_DOWN);
	if (settle_ms > 0)
		wait(e, d, settle_ms);
}

void hw_class_parent_away(struct hw_incidents *e, struct hw_incident_device *parent)
{
	for (struct hw_link *l = parent->children, *next; l; l = next) {
		struct hw_incident_device *d = l->child;
		struct hw_incident *was = d->class == HW_CLASS_DOWN ? d->in : NULL;
		next = l->next;
		if (!hw_device_parents_away(d) || (was && hw_incident_is_known(was)))
			continue;
		if (d->class == HW_CLASS_UNREACHABLE) {
			d->class_end = 0;
			hw_class_place(e, d);
		} else {
			set_class(e, d, HW_CLASS_UNREACHABLE);
		}
		emptied(e, was, d->in);
		hw_device_settle_record(e, d);
	}
}

void hw_class_parent_back(struct hw_incidents *e, struct hw_incident_device *parent)
{
	for (struct hw_link *l = parent->children; l; l = l->next) {
		struct hw_incident_device *d = l->child;
		if (d->class != HW_CLASS_UNREACHABLE)
			continue;
		if (hw_device_parents_away(d))
			hw_class_place(e, d);
		else if (!d->class_end)
			hw_class_settle(e, d);
	}
}

/* --- the end --------------------------------------------------------------------------------------------------------
 */

static struct hw_incident_device *first_down(struct hw_incident_device *d)
{
	while (d && d->class != HW_CLASS_DOWN)
		d = d->next;
	return d;
}

/* Splits a mass incident that has become small: each of its down devices opens an incident of its own. The devices
 * behind it move too. So the next down device is found before the present one moves. */
static void split(struct hw_incidents *e, struct hw_incident *i)
{
	i->group->mass = NULL; /* no device joins it any more */
	for (struct hw_incident_device *d = first_down(i->members), *next; d; d = next) {
		next = first_down(d->next);
		hw_incident_leave(e, d);
		place_down(e, d, true);
	}
}

static void close_it(struct hw_incidents *e, struct hw_incident *i)
{
	if (i->kind == HW_INCIDENT_MASS)
		split(e, i);
	dismiss(e, i);
	hw_incident_end(e, i, HW_INCIDENT_CLOSED, NULL);
}

void hw_class_check_end(struct hw_incidents *e, struct hw_incident *i)
{
	int64_t at = HW_DUE_NEVER;
	if (i->state != HW_INCIDENT_OPEN || i->kind == HW_INCIDENT_BLIND || i->kind == HW_INCIDENT_TASK)
		return;
	if (i->down > 0)
		i->clear_from = 0;
	else if (i->clear_from == 0)
		i->clear_from = e->now;
	if (!is_small(e, i))
		i->small_from = 0;
	else if (i->small_from == 0)
		i->small_from = e->now;
	if (i->clear_from && !i->flapping)
		at = i->clear_from + e->conf.clear_after_ms;
	if (i->small_from && i->small_from + HW_INCIDENT_SMALL < at)
		at = i->small_from + HW_INCIDENT_SMALL;
	if (at <= e->now && !e->loading)
		close_it(e, i);
	else
		hw_dues_set(&e->incident_dues, &i->due, at);
}

/* --- flapping, and what is due --------------------------------------------------------------------------------------
 */

void hw_class_flaps(struct hw_incidents *e, struct hw_incident_device *d)
{
	struct hw_incident *i = d->own;
	if (!i || e->conf.flap_start == 0)
		return;
	double weight = hw_device_weight(e, d);
	if (!i->flapping && weight >= e->conf.flap_start) {
		i->flapping = true;
		hw_incidents_record(e, "flapping", i->id, NULL, NULL);
	} else if (i->flapping && weight < e->conf.flap_end) {
		i->flapping = false;
		hw_incidents_record(e, "steady", i->id, NULL, NULL);
	} else {
		return;
	}
	hw_incident_changed(e, i);
	hw_class_check_end(e, i);
}

static void class_due(struct hw_incidents *e, struct hw_incident_device *d)
{
	int64_t left = d->seen_end - hw_blind_seen(e, d->node);
	if (left > 0) { /* The node was blind, so the wait lasts longer. While the node is blind, the wait is checked at
		           least once a second. */
		d->class_end = e->now + (left > 1000 ? left : 1000);
		return;
	}
	d->class_end = 0;
	if (d->class == HW_CLASS_PENDING || (d->class == HW_CLASS_UNREACHABLE && !hw_device_parents_away(d))) {
		struct hw_incident *was = d->in;
		set_class(e, d, HW_CLASS_DOWN);
		if (was && was != d->in)
			hw_class_check_end(e, was);
	}
}

void hw_class_device_due(struct hw_incidents *e, struct hw_incident_device *d)
{
	if (d->class_end && d->class_end <= e->now)
		class_due(e, d);
	hw_class_flaps(e, d);
	hw_device_settle_record(e, d);
}

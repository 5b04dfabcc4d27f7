/* SPDX-License-Identifier: MIT */
/*
 * Devices, their parents, and their weights. A record exists while its device is offline or unseen, is a parent of such
 * a device, has an incident, or has a weight of at least 1/16.
 *
 * The weight halves in each flap_half. So after a start, each weight is computed from the entries of the last four
 * flap_half. Of the weight that a device had before that, only a sixteenth would be left.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "incident/incidents_priv.h"

#define WEIGHT_LEAST (1.0F / 16)

static struct hw_incident_device *device_of(struct hw_named *n)
{
	return (struct hw_incident_device *)n;
}

struct hw_incident_group *hw_incident_group(struct hw_incidents *e, const char *name)
{
	if (!name)
		return NULL;
	struct hw_named *found = hw_names_find(&e->groups, name);
	if (found)
		return (struct hw_incident_group *)found;
	size_t len = strlen(name);
	struct hw_incident_group *g = calloc(1, sizeof(*g) + len + 1);
	if (!g) {
		hw_incidents_fail(e);
		return NULL;
	}
	memcpy(g->text, name, len);
	g->named.name = g->text;
	if (hw_names_add(&e->groups, &g->named) != 0) {
		free(g);
		hw_incidents_fail(e);
		return NULL;
	}
	g->next = e->all_groups;
	e->all_groups = g;
	return g;
}

struct hw_incident_device *hw_device_find(const struct hw_incidents *e, const char *id)
{
	return device_of(hw_names_find(&e->devices, id));
}

struct hw_incident_device *hw_device_get(struct hw_incidents *e, const char *id)
{
	struct hw_incident_device *d = hw_device_find(e, id);
	if (d)
		return d;
	size_t len = strlen(id);
	d = calloc(1, sizeof(*d) + len + 1);
	if (!d || hw_dues_reserve(&e->device_dues, e->devices.n + 1) != 0)
		goto fail;
	memcpy(d->text, id, len);
	d->named.name = d->text;
	d->fact = HW_FACT_ONLINE;
	if (hw_names_add(&e->devices, &d->named) != 0)
		goto fail;
	e->bytes += sizeof(*d) + len + 1;
	return d;
fail:
	free(d);
	hw_incidents_fail(e);
	return NULL;
}

void hw_device_free(struct hw_incidents *e, struct hw_incident_device *d)
{
	hw_dues_set(&e->device_dues, &d->due, HW_DUE_NEVER);
	hw_names_remove(&e->devices, &d->named);
	e->bytes -= sizeof(*d) + strlen(d->text) + 1;
	free(d->name);
	free(d->labels);
	free(d->parents);
	free(d);
}

static bool is_equal(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

void hw_device_name(struct hw_incidents *e, struct hw_incident_device *d, const char *name)
{
	if (!is_equal(d->name, name))
		hw_incidents_set_text(e, &d->name, name);
	if (!d->own || is_equal(d->own->name, d->name))
		return;
	hw_incidents_set_text(e, &d->own->name, d->name);
	hw_incident_changed(e, d->own);
}

/* Returns when the weight of a device will have fallen below `to`. The result is always later than now; otherwise
 * rounding could make a timer fire without end. */
static int64_t falls_at(const struct hw_incidents *e, const struct hw_incident_device *d, double to)
{
	double ms = (double)d->weight > to ? (double)e->conf.flap_half_ms * log2((double)d->weight / to) : 0;
	int64_t at = d->weighed_ms + (int64_t)ceil(ms) + 1;
	return at > e->now ? at : e->now + 1;
}

static int64_t due_at(const struct hw_incidents *e, const struct hw_incident_device *d)
{
	int64_t at = d->class_end ? d->class_end : HW_DUE_NEVER;
	if (d->own && d->own->flapping) {
		int64_t calm = falls_at(e, d, e->conf.flap_end);
		at = calm < at ? calm : at;
	}
	return at;
}

static bool is_needed(const struct hw_incident_device *d)
{
	return d->fact == HW_FACT_OFFLINE || d->fact == HW_FACT_UNSEEN || d->children || d->own || d->in || d->stored ||
	       d->changed;
}

void hw_device_settle_record(struct hw_incidents *e, struct hw_incident_device *d)
{
	int64_t at = due_at(e, d);
	if (e->loading)
		return;
	if (!is_needed(d)) {
		if (e->conf.flap_start == 0 || hw_device_weight(e, d) < (double)WEIGHT_LEAST) {
			hw_device_free(e, d);
			return;
		}
		at = falls_at(e, d, WEIGHT_LEAST);
	}
	hw_dues_set(&e->device_dues, &d->due, at);
}

/* --- parents ------------------------------------------------------------------------------------------------------ */

bool hw_device_is_away(const struct hw_incident_device *d)
{
	return d->fact == HW_FACT_OFFLINE || d->fact == HW_FACT_UNSEEN;
}

bool hw_device_parents_away(const struct hw_incident_device *d)
{
	for (unsigned k = 0; k < d->n_parents; k++)
		if (!hw_device_is_away(d->parents[k].parent))
			return false;
	return d->n_parents > 0;
}

struct hw_incident_device *hw_device_latest_parent(const struct hw_incident_device *d)
{
	struct hw_incident_device *latest = d->parents[0].parent;
	for (unsigned k = 1; k < d->n_parents; k++)
		if (d->parents[k].parent->since_ms > latest->since_ms)
			latest = d->parents[k].parent;
	return latest;
}

/* Returns how long a device waits after its parent has returned. The parent may return for one heartbeat and fail
 * again; this time is long enough for the parent's new deadline to pass. */
int64_t hw_device_settle_ms(const struct hw_incident_device *d)
{
	int64_t longest = 0;
	for (unsigned k = 0; k < d->n_parents; k++)
		if (d->parents[k].parent->timeout_ms > longest)
			longest = d->parents[k].parent->timeout_ms;
	int64_t ms = d->timeout_ms + longest + 10000;
	return ms > HW_INCIDENT_SETTLE ? ms : HW_INCIDENT_SETTLE;
}

/* Whether `d` is `above`, or an ancestor of `above`. `*left`: how many more devices may be visited. If that is 0,
 * returns true, so that the caller refuses the link. */
static bool is_ancestor(const struct hw_incident_device *d, const struct hw_incident_device *above, int *left)
{
	if (d == above || --*left <= 0)
		return true;
	for (unsigned k = 0; k < above->n_parents; k++)
		if (is_ancestor(d, above->parents[k].parent, left))
			return true;
	return false;
}

static void add_link(struct hw_incidents *e, struct hw_incident_device *d, const char *id, size_t len)
{
	char text[1024];
	if (len == 0 || len >= sizeof(text) || d->n_parents == HW_INCIDENT_PARENTS)
		return;
	memcpy(text, id, len);
	text[len] = '\0';
	struct hw_incident_device *parent = hw_device_get(e, text);
	int left = HW_INCIDENT_ANCESTORS;
	if (!parent)
		return;
	for (unsigned k = 0; k < d->n_parents; k++)
		if (d->parents[k].parent == parent)
			return;
	if (is_ancestor(d, parent, &left)) {
		hw_device_settle_record(e, parent);
		return;
	}
	struct hw_link *l = &d->parents[d->n_parents++];
	*l = (struct hw_link){.parent = parent, .child = d, .next = parent->children};
	if (l->next)
		l->next->prev = l;
	parent->children = l;
	e->n_links++;
}

void hw_device_link(struct hw_incidents *e, struct hw_incident_device *d, const char *parents)
{
	hw_device_unlink(e, d);
	if (!parents || !*parents)
		return;
	if (!d->parents) {
		d->parents = calloc(HW_INCIDENT_PARENTS, sizeof(*d->parents));
		if (!d->parents) {
			hw_incidents_fail(e);
			return;
		}
	}
	for (const char *end; *parents; parents = *end ? end + 1 : end) {
		end = strchrnul(parents, '\n');
		add_link(e, d, parents, (size_t)(end - parents));
	}
}

static void cut(struct hw_incidents *e, struct hw_link *l)
{
	if (l->prev)
		l->prev->next = l->next;
	else
		l->parent->children = l->next;
	if (l->next)
		l->next->prev = l->prev;
	e->n_links--;
}

void hw_device_unlink(struct hw_incidents *e, struct hw_incident_device *d)
{
	for (unsigned k = 0; k < d->n_parents; k++) {
		cut(e, &d->parents[k]);
		hw_device_settle_record(e, d->parents[k].parent);
	}
	d->n_parents = 0;
	free(d->parents);
	d->parents = NULL;
}

/* Removes a link. The parent's record stays, because the caller walks through its children. */
void hw_link_remove(struct hw_incidents *e, struct hw_link *l)
{
	struct hw_incident_device *d = l->child;
	cut(e, l);
	struct hw_link *last = &d->parents[--d->n_parents];
	if (l == last)
		return;
	*l = *last;
	if (l->prev)
		l->prev->next = l;
	else
		l->parent->children = l;
	if (l->next)
		l->next->prev = l;
}

/* --- weights ------------------------------------------------------------------------------------------------------ */

static double weight_at(const struct hw_incidents *e, const struct hw_incident_device *d, int64_t at)
{
	double age = (double)(at - d->weighed_ms);
	return age <= 0 ? (double)d->weight : (double)d->weight * exp2(-age / (double)e->conf.flap_half_ms);
}

double hw_device_weight(const struct hw_incidents *e, const struct hw_incident_device *d)
{
	return weight_at(e, d, e->now);
}

void hw_device_weigh(struct hw_incidents *e, struct hw_incident_device *d, int64_t at_ms)
{
	double weight = weight_at(e, d, at_ms) + 1, most = 2.0 * e->conf.flap_start;
	d->weight = (float)(weight < most ? weight : most);
	if (at_ms > d->weighed_ms)
		d->weighed_ms = at_ms;
}

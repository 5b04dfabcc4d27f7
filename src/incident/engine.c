/* SPDX-License-Identifier: MIT */
/* The object: its configuration, its steps, its queries. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "incident/incidents_priv.h"

/* --- the configuration ----------------------------------------------------------------------------------------------
 */

int hw_incidents_configure(struct hw_incidents *e, struct hw_now now, const struct hw_incidents_conf *conf)
{
	hw_incidents_tick(e, now);
	if (conf->n_receivers > HW_INCIDENT_RECEIVERS)
		return -EINVAL;
	for (size_t k = 0; k < conf->n_receivers; k++) {
		struct hw_match *m = NULL;
		int rc = hw_match_parse(conf->receivers[k].match ? conf->receivers[k].match : "", &m);
		hw_match_free(m);
		if (rc != 0)
			return rc;
	}
	hw_window_clock *was = e->conf.clock;
	e->conf.clock = conf->clock;
	int rc = hw_silence_configure(e, conf);
	if (rc != 0) {
		e->conf.clock = was;
		return rc;
	}
	rc = hw_receiver_configure(e, conf);
	if (rc != 0)
		return hw_incidents_fail(e); /* only memory is left as a reason */
	e->conf = *conf;
	e->conf.receivers = NULL;
	e->conf.silences = NULL;
	e->rechecking = e->devices.n > 0;
	e->recheck_at = 0;
	for (struct hw_incident *i = e->all; i; i = i->next) {
		hw_incident_check(e, i);
		hw_class_check_end(e, i);
	}
	return e->failed;
}

struct hw_incidents *hw_incidents_new(const struct hw_incidents_conf *conf, struct hw_now now)
{
	struct hw_incidents *e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->base_ms = now.wall_ms - now.mono.ns / HW_NS_PER_MS;
	e->random = conf->seed;
	e->records_end = &e->records;
	e->silence_epoch = 1;
	hw_names_init(&e->devices, hw_incidents_draw(e));
	hw_names_init(&e->groups, hw_incidents_draw(e));
	hw_names_init(&e->incidents, hw_incidents_draw(e));
	hw_names_init(&e->silences, hw_incidents_draw(e));
	hw_incidents_tick(e, now);
	e->sight_at = e->now;
	if (hw_incidents_configure(e, now, conf) != 0) {
		hw_incidents_free(e);
		return NULL;
	}
	return e;
}

static void free_silences(struct hw_silence *list)
{
	while (list) {
		struct hw_silence *s = list;
		list = s->next;
		hw_silence_free(s);
	}
}

static void free_incidents(struct hw_incident *list)
{
	while (list) {
		struct hw_incident *i = list;
		list = i->next;
		hw_incident_free(i);
	}
}

void hw_incidents_free(struct hw_incidents *e)
{
	if (!e)
		return;
	for (size_t k = 0; k < e->devices.n_slots; k++)
		while (e->devices.slots[k])
			hw_device_free(e, (struct hw_incident_device *)e->devices.slots[k]);
	free_incidents(e->all);
	free_incidents(e->freed);
	free_silences(e->sections);
	free_silences(e->adhoc);
	free_silences(e->gone);
	if (e->spent)
		hw_silence_free(e->spent);
	while (e->all_groups) {
		struct hw_incident_group *g = e->all_groups;
		e->all_groups = g->next;
		free(g);
	}
	while (e->records) {
		struct hw_incident_record *r = e->records;
		e->records = r->next;
		free(r);
	}
	free(e->taken);
	for (unsigned k = 0; k < HW_INCIDENT_RECEIVERS; k++) {
		free(e->receivers[k].name);
		hw_match_free(e->receivers[k].match);
	}
	hw_names_fini(&e->devices);
	hw_names_fini(&e->groups);
	hw_names_fini(&e->incidents);
	hw_names_fini(&e->silences);
	hw_dues_fini(&e->device_dues);
	hw_dues_fini(&e->incident_dues);
	hw_dues_fini(&e->check_dues);
	free(e);
}

/* --- steps ----------------------------------------------------------------------------------------------------------
 */

static struct hw_due *next_due(const struct hw_incidents *e, const struct hw_dues *q)
{
	struct hw_due *d = hw_dues_first(q);
	return d && d->at <= e->now ? d : NULL;
}

#define OF(type, member, due) ((type *)(void *)((char *)(due)-offsetof(type, member)))

/* Returns how much of the budget is left. */
static int run_dues(struct hw_incidents *e, int left)
{
	struct hw_due *due;
	for (; left > 0 && (due = next_due(e, &e->device_dues)) != NULL; left--)
		hw_class_device_due(e, OF(struct hw_incident_device, due, due));
	for (; left > 0 && (due = next_due(e, &e->incident_dues)) != NULL; left--)
		hw_class_check_end(e, OF(struct hw_incident, due, due));
	for (; left > 0 && (due = next_due(e, &e->check_dues)) != NULL; left--) {
		hw_dues_set(&e->check_dues, due, HW_DUE_NEVER);
		hw_incident_check(e, OF(struct hw_incident, check_due, due));
	}
	return left;
}

static int run_checks(struct hw_incidents *e, int left)
{
	for (; left > 0 && e->checks; left--) {
		struct hw_incident *i = e->checks;
		e->checks = i->check_next;
		i->checked = false;
		hw_news_check(e, i);
		hw_incident_reap(e, i);
	}
	return left;
}

bool hw_incidents_step(struct hw_incidents *e, struct hw_now now)
{
	hw_incidents_tick(e, now);
	if (e->loading)
		return false;
	hw_silence_step(e);
	hw_blind_step(e);
	int left = run_dues(e, HW_INCIDENT_STEP);
	if (left <= 0 || hw_silence_recheck(e))
		return true;
	return run_checks(e, left) <= 0;
}

struct hw_mono hw_incidents_due(const struct hw_incidents *e)
{
	int64_t at = HW_DUE_NEVER;
	const struct hw_dues *all[] = {&e->device_dues, &e->incident_dues, &e->check_dues};
	for (size_t k = 0; k < sizeof(all) / sizeof(*all); k++) {
		const struct hw_due *d = hw_dues_first(all[k]);
		at = d && d->at < at ? d->at : at;
	}
	int64_t others[] = {hw_silence_due(e), hw_blind_due(e), hw_message_due(e)};
	for (size_t k = 0; k < sizeof(others) / sizeof(*others); k++)
		at = others[k] < at ? others[k] : at;
	if (e->checks || e->rechecking)
		at = e->now;
	return at == HW_DUE_NEVER ? HW_MONO_NEVER : (struct hw_mono){(at - e->base_ms) * HW_NS_PER_MS};
}

/* --- queries --------------------------------------------------------------------------------------------------------
 */

void hw_incidents_list(struct hw_incidents *e, bool (*each)(void *arg, const struct hw_incident_view *v), void *arg)
{
	struct hw_incident_view v;
	for (struct hw_incident *i = e->all; i; i = i->next) {
		if (i->dropped)
			continue;
		hw_incident_survey(e, i);
		hw_incident_view(i, &v);
		if (!each(arg, &v))
			return;
	}
}

bool hw_incidents_find(struct hw_incidents *e, const char *id, struct hw_incident_view *out)
{
	struct hw_incident *i = (struct hw_incident *)(void *)hw_names_find(&e->incidents, id);
	if (!i || i->dropped)
		return false;
	hw_incident_survey(e, i);
	hw_incident_view(i, out);
	return true;
}

size_t hw_incidents_members(struct hw_incidents *e, const char *incident, const char **ids, size_t max)
{
	struct hw_incident *i = (struct hw_incident *)(void *)hw_names_find(&e->incidents, incident);
	size_t n = 0;
	if (!i)
		return 0;
	for (int down = 1; down >= 0; down--)
		for (struct hw_incident_device *d = i->members; d && n < max; d = d->next)
			if ((d->class == HW_CLASS_DOWN) == (down == 1) && !hw_silence_of(e, d))
				ids[n++] = d->text;
	return n;
}

enum hw_incident_class hw_incidents_class(const struct hw_incidents *e, const char *device, const char **incident)
{
	const struct hw_incident_device *d = hw_device_find(e, device);
	*incident = d && d->in ? d->in->id : NULL;
	return d ? (enum hw_incident_class)d->class : HW_CLASS_NONE;
}

bool hw_incidents_is_away(const struct hw_incidents *e, const char *device)
{
	const struct hw_incident_device *d = hw_device_find(e, device);
	return d && hw_device_is_away(d);
}

double hw_incidents_weight(const struct hw_incidents *e, const char *device)
{
	const struct hw_incident_device *d = hw_device_find(e, device);
	return d ? hw_device_weight(e, d) : 0;
}

bool hw_incidents_is_silenced(struct hw_incidents *e, const char *device)
{
	struct hw_incident_device *d = hw_device_find(e, device);
	return d && hw_silence_of(e, d) != NULL;
}

const char *hw_incidents_parent(const struct hw_incidents *e, const char *device)
{
	const struct hw_incident_device *d = hw_device_find(e, device);
	return d && hw_device_parents_away(d) ? hw_device_latest_parent(d)->text : NULL;
}

const char *hw_incidents_name(const struct hw_incidents *e, const char *device)
{
	const struct hw_incident_device *d = hw_device_find(e, device);
	return d ? d->name : NULL;
}

struct hw_incidents_count hw_incidents_count(const struct hw_incidents *e)
{
	return (struct hw_incidents_count){.devices = e->devices.n,
	                                   .links = e->n_links,
	                                   .incidents = e->incidents.n,
	                                   .open = e->n_open,
	                                   .refused = e->refused,
	                                   .bytes = e->bytes};
}

/* SPDX-License-Identifier: MIT */
/* What every file of the engine uses: time, texts, ids, events, and the lists of what has changed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "incident/incidents_priv.h"

void hw_incidents_tick(struct hw_incidents *e, struct hw_now now)
{
	int64_t ms = e->base_ms + now.mono.ns / HW_NS_PER_MS;
	e->now = ms > e->now ? ms : e->now;
	e->wall_ms = now.wall_ms;
}

int hw_incidents_fail(struct hw_incidents *e)
{
	return e->failed = -ENOMEM;
}

char *hw_incidents_text(struct hw_incidents *e, const char *text)
{
	char *copy = text ? strdup(text) : NULL;
	if (text && !copy)
		hw_incidents_fail(e);
	return copy;
}

void hw_incidents_set_text(struct hw_incidents *e, char **to, const char *text)
{
	free(*to);
	*to = hw_incidents_text(e, text && *text ? text : NULL);
}

struct hw_incident_record *hw_incidents_record(struct hw_incidents *e, const char *what, const char *id, const char *by,
                                               const char *silence)
{
	size_t by_len = by ? strlen(by) : 0, silence_len = silence ? strlen(silence) : 0;
	struct hw_incident_record *r = calloc(1, sizeof(*r) + by_len + silence_len + 2);
	if (!r) {
		hw_incidents_fail(e);
		return NULL;
	}
	r->what = what;
	r->at_ms = e->wall_ms;
	if (id)
		strncpy(r->id, id, HW_INCIDENT_ID);
	if (by_len)
		memcpy(r->text, by, by_len);
	if (silence_len)
		memcpy(r->text + by_len + 1, silence, silence_len);
	*e->records_end = r;
	e->records_end = &r->next;
	return r;
}

/* splitmix64, as in tests/simulation/sim_random.h. */
uint64_t hw_incidents_draw(struct hw_incidents *e)
{
	uint64_t z = (e->random += UINT64_C(0x9e3779b97f4a7c15));
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static void write_base36(uint64_t value, char *to, size_t n)
{
	while (n > 0) {
		to[--n] = "0123456789abcdefghijklmnopqrstuvwxyz"[value % 36];
		value /= 36;
	}
}

void hw_incidents_new_id(struct hw_incidents *e, char id[HW_INCIDENT_ID + 1])
{
	do {
		write_base36((uint64_t)e->now, id, 9);
		write_base36(hw_incidents_draw(e), id + 9, 3);
		id[HW_INCIDENT_ID] = '\0';
	} while (hw_names_find(&e->incidents, id) || hw_names_find(&e->silences, id));
}

/* --- what has changed -----------------------------------------------------------------------------------------------
 */

void hw_incident_check(struct hw_incidents *e, struct hw_incident *i)
{
	if (i->checked)
		return;
	i->checked = true;
	i->check_next = e->checks;
	e->checks = i;
}

void hw_incident_changed(struct hw_incidents *e, struct hw_incident *i)
{
	hw_incident_check(e, i);
	if (i->changed || e->quiet)
		return;
	i->changed = true;
	i->changed_next = e->changed_incidents;
	e->changed_incidents = i;
}

void hw_device_changed(struct hw_incidents *e, struct hw_incident_device *d)
{
	if (d->changed || e->quiet)
		return;
	d->changed = true;
	d->changed_next = e->changed_devices;
	e->changed_devices = d;
}

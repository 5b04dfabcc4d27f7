/* SPDX-License-Identifier: MIT */
/*
 * The invariants, checked by what the receivers got and what truly failed:
 *
 *   1 at the end, what each receiver got last is true
 *   2 no end without an opening, and exactly one end after each opening
 *   3 no opening for a device that failed only with its parents
 *   4 when a silence ends, incidents that are still open are sent (checked at the end, when all silences are over)
 *   5 no opening for a device that was not offline; and no more messages about a device than its flapping allows
 */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "incident_world.h"

/* An opening is explained if the device itself failed, or a parent of it briefly, at most this long ago. */
#define EXCUSED_MS 900000

void iw_breach(struct iw_world *w, const char *format, ...)
{
	va_list args;
	if (w->breaches++ == 0 && w->tell) {
		fprintf(w->tell, "seed %llu, %lld s: ", (unsigned long long)w->seed, (long long)w->now / 1000);
		va_start(args, format);
		vfprintf(w->tell, format, args);
		va_end(args);
		fputc('\n', w->tell);
	}
	if (w->trace)
		fprintf(w->trace, "BREACH\n");
}

void iw_trace(struct iw_world *w, const char *format, ...)
{
	va_list args;
	if (!w->trace)
		return;
	fprintf(w->trace, "%8.1f ", (double)w->now / 1000);
	va_start(args, format);
	vfprintf(w->trace, format, args);
	va_end(args);
	fputc('\n', w->trace);
}

static struct iw_device *device_of(struct iw_world *w, const char *id)
{
	for (unsigned k = 0; k < w->n_devices; k++)
		if (strcmp(w->devices[k].id, id) == 0)
			return &w->devices[k];
	return NULL;
}

static bool brief_above(const struct iw_world *w, const struct iw_device *d)
{
	for (unsigned p = 0; p < d->n_parents; p++) {
		const struct iw_device *parent = &w->devices[d->parents[p]];
		if (w->now - parent->brief < EXCUSED_MS || brief_above(w, parent))
			return true;
	}
	return false;
}

/* Checks invariants 3 and 5 when a device's own incident is opened. */
static void check_opening(struct iw_world *w, const char *id)
{
	const struct iw_device *d = device_of(w, id);
	if (!d)
		return;
	int64_t slack = EXCUSED_MS;
	for (unsigned r = 0; r < w->n_receivers; r++) /* news of a receiver may wait for its server */
		slack += w->failing ? 2700000 : w->receivers[r].notify_after_ms + w->receivers[r].interval_ms;
	if (w->now - d->was_offline > slack)
		iw_breach(w, "opening for %s, which was not offline", id);
	/* A device that failed by itself and is still offline may by now be kept so by its parents. */
	bool in_outage = iw_is_away(d) && d->own_fault >= d->since_ms - IW_BEGIN_MS - EXCUSED_MS;
	if (w->now - d->own_fault > slack && !in_outage && !brief_above(w, d))
		iw_breach(w, "opening for %s, which failed only with its parents", id);
}

static bool is_end(enum hw_news what)
{
	return what == HW_NEWS_CLOSED || what == HW_NEWS_MERGED;
}

void iw_got(struct iw_world *w, unsigned receiver, const struct iw_message *m)
{
	for (size_t k = 0; k < m->n; k++) {
		enum hw_news what = m->news[k].what;
		struct iw_incident *i = iw_find(w, m->news[k].id);
		if (!i) {
			iw_breach(w, "news of an incident that was not committed");
			continue;
		}
		struct iw_got *got = &i->got[receiver];
		iw_trace(w, "%s gets %s-%llu: %s %s %s (%s)", w->receivers[receiver].name, w->receivers[receiver].name,
		         (unsigned long long)m->number, hw_news_name(what), hw_incident_kind_name(m->news[k].kind),
		         m->news[k].device, m->news[k].id);
		bool opens = !got->opened;
		if (opens && is_end(what))
			iw_breach(w, "an end without an opening");
		if (opens && what != HW_NEWS_OPENED && what != HW_NEWS_FLAPPING)
			iw_breach(w, "%s without an opening", hw_news_name(what));
		if (!opens && what == HW_NEWS_OPENED)
			iw_breach(w, "opened twice");
		if (got->ended)
			iw_breach(w, "%s after the end", hw_news_name(what));
		got->opened = true;
		got->ended = is_end(what);
		got->flapping = what == HW_NEWS_FLAPPING || (got->flapping && what != HW_NEWS_STEADY);
		got->last = what;
		got->at = w->now;
		w->count.opened += opens;
		w->count.ends += got->ended;
		w->count.merged += what == HW_NEWS_MERGED;
		w->count.flapping += what == HW_NEWS_FLAPPING;
		if (m->news[k].kind != HW_INCIDENT_DEVICE)
			continue;
		struct iw_device *d = device_of(w, m->news[k].device);
		if (opens)
			check_opening(w, m->news[k].device);
		if (d && receiver == 0 && what != HW_NEWS_ACKNOWLEDGED && what != HW_NEWS_REMINDER &&
		    what != HW_NEWS_GROWN)
			d->openings++;
	}
}

/* Checks invariant 5. In a flap_half at most flap_start openings are right, and flap_start more once: messages that
 * waited for a server come at once, and a restart loses a part of a weight. */
void iw_oracle_tick(struct iw_world *w)
{
	int64_t half = w->conf.flap_half_ms;
	if (w->now % half >= IW_TICK_MS)
		return;
	for (unsigned k = 0; k < w->n_devices; k++) {
		struct iw_device *d = &w->devices[k];
		if (w->conf.flap_start && !w->failing && d->openings > 2 * w->conf.flap_start)
			iw_breach(w, "%u messages of %s in a flap_half", d->openings, d->id);
		d->openings = 0;
	}
}

/* --- the end --------------------------------------------------------------------------------------------------------
 */

static bool receiver_wants(const struct iw_world *w, unsigned r, const struct iw_device *d)
{
	struct hw_match *m = NULL;
	struct hw_match_subject subject = {d->id, d->group, d->labels};
	if (!w->receivers[r].match)
		return true;
	if (hw_match_parse(w->receivers[r].match, &m) != 0)
		return false;
	bool wants = hw_match_is(m, &subject);
	hw_match_free(m);
	return wants;
}

static void check_device(struct iw_world *w, struct iw_device *d)
{
	const char *id;
	enum hw_incident_class class = hw_incidents_class(w->engine, d->id, &id);
	if (!iw_is_away(d)) {
		if (class != HW_CLASS_NONE || id)
			iw_breach(w, "%s is online, and in class %s", d->id, hw_incident_class_name(class));
		return;
	}
	if (class == HW_CLASS_UNREACHABLE && !iw_parents_away(w, d))
		iw_breach(w, "%s is unreachable, although a parent is online", d->id);
	if (class != HW_CLASS_UNREACHABLE && class != HW_CLASS_DOWN)
		iw_breach(w, "%s is offline, and in class %s", d->id, hw_incident_class_name(class));
	if (!id) {
		iw_breach(w, "%s is offline, and in no incident", d->id);
		return;
	}
	const struct iw_incident *i = iw_find(w, id);
	if (!i || !i->exists || i->view.state != HW_INCIDENT_OPEN) {
		iw_breach(w, "the incident of %s is not open in Redis", d->id);
		return;
	}
	for (unsigned r = 0; r < w->n_receivers && class == HW_CLASS_DOWN; r++)
		if (receiver_wants(w, r, d) && !hw_incidents_is_silenced(w->engine, d->id) && !i->got[r].opened &&
		    !d->listed)
			iw_breach(w, "%s does not know that %s is down", w->receivers[r].name, d->id);
	if (w->has_section == false && hw_incidents_is_silenced(w->engine, d->id))
		iw_breach(w, "%s is silenced after all silences are over", d->id);
}

static unsigned down_of(const struct iw_world *w, const char *id)
{
	unsigned n = 0;
	for (unsigned k = 0; k < w->n_devices; k++) {
		const char *in;
		n += hw_incidents_class(w->engine, w->devices[k].id, &in) == HW_CLASS_DOWN && in &&
		     strcmp(in, id) == 0 && iw_is_away(&w->devices[k]);
	}
	return n;
}

void iw_oracle_end(struct iw_world *w)
{
	for (unsigned k = 0; k < w->n_devices; k++)
		check_device(w, &w->devices[k]);
	for (size_t k = 0; k < w->redis.n_incidents; k++) {
		const struct iw_incident *i = &w->redis.incidents[k];
		bool open = i->exists && i->view.state == HW_INCIDENT_OPEN;
		if (open && down_of(w, i->view.id) == 0)
			iw_breach(w, "incident %s of kind %s is open, and no member is down", i->view.id,
			          hw_incident_kind_name(i->view.kind));
		for (unsigned r = 0; r < w->n_receivers; r++) {
			const struct iw_got *got = &i->got[r];
			if (got->opened && got->ended == open)
				iw_breach(w, "%s believes that %s is %s", w->receivers[r].name, i->view.id,
				          open ? "over" : "open");
			if (got->opened && !got->ended && got->flapping != i->view.flapping)
				iw_breach(w, "%s believes that %s %s", w->receivers[r].name, i->view.id,
				          got->flapping ? "flaps" : "is steady");
		}
	}
}

/* SPDX-License-Identifier: MIT */
/* Draws the plan of a seed. Models the devices, their faults, and what heartwheeld writes about them. */
#include <stdlib.h>
#include <string.h>

#include "heartwheel/print.h"
#include "incident_world.h"

#define SETTLE_MS 60000

static int64_t between(struct iw_world *w, int64_t lo, int64_t hi)
{
	return sim_between(&w->random, lo, hi);
}

static bool chance(struct iw_world *w, double p)
{
	return sim_chance(&w->random, p);
}

/* --- the plan -------------------------------------------------------------------------------------------------------
 */

static void plan_device(struct iw_world *w, unsigned k)
{
	struct iw_device *d = &w->devices[k];
	bool gateway = k < w->n_gateways;
	*d = (struct iw_device){.sends = true,
	                        .returned = INT64_MIN / 2,
	                        .own_fault = INT64_MIN / 2,
	                        .was_offline = INT64_MIN / 2,
	                        .brief = INT64_MIN / 2};
	snprintf(d->id, sizeof(d->id), "%c%u", gateway ? 'g' : 'd', k);
	snprintf(d->group, sizeof(d->group), "%s%u", gateway ? "gates" : "v", gateway ? 0 : k % (IW_GROUPS - 1));
	snprintf(d->labels, sizeof(d->labels), "site=%s", k % 3 ? "north" : "south");
	d->timeout = between(w, 10, 120) * 1000;
	d->interval = d->timeout / 4 / IW_TICK_MS * IW_TICK_MS;
	d->interval = d->interval < IW_TICK_MS ? IW_TICK_MS : d->interval;
	d->phase = between(w, 0, d->interval / IW_TICK_MS - 1) * IW_TICK_MS;
	unsigned above = gateway ? k : w->n_gateways;
	if (above == 0 || chance(w, gateway ? 0.6 : 0.15))
		return;
	d->n_parents = above > 1 && chance(w, 0.2) ? 2 : 1;
	for (unsigned p = 0; p < d->n_parents; p++)
		d->parents[p] = (unsigned)between(w, 0, (int64_t)above - 1);
	if (d->n_parents == 2 && d->parents[0] == d->parents[1])
		d->n_parents = 1;
	size_t at = 0;
	for (unsigned p = 0; p < d->n_parents; p++)
		at += hw_print(d->parents_text + at, sizeof(d->parents_text) - at, "%s%c%u", p ? "\n" : "",
		               d->parents[p] < w->n_gateways ? 'g' : 'd', d->parents[p]);
	d->expected = !gateway && w->unseen && chance(w, 0.1);
	if (d->expected) {
		d->faulty = true;
		d->back_at = chance(w, 0.7) ? between(w, 60000, w->quiet_from) : INT64_MAX;
	}
}

static void plan_receivers(struct iw_world *w)
{
	static const char *const names[IW_RECEIVERS] = {"ops", "night", "site"};
	static const char *const matches[] = {NULL, "group:v*", "label:site=north", "id:g*\nid:d1*", "group:v1 id:d*"};
	w->n_receivers = (unsigned)between(w, 1, IW_RECEIVERS);
	for (unsigned k = 0; k < w->n_receivers; k++)
		w->receivers[k] =
			(struct hw_receiver_conf){.name = names[k],
		                                  .match = matches[chance(w, 0.5) ? 0 : between(w, 0, 4)],
		                                  .kinds = 0x1f,
		                                  .interval_ms = between(w, 0, 20) * 1000 + 100,
		                                  .notify_after_ms = chance(w, 0.3) ? between(w, 1, 300) * 1000 : 0,
		                                  .remind_ms = chance(w, 0.2) ? between(w, 60, 1800) * 1000 : 0,
		                                  .each = chance(w, 0.4),
		                                  .parallel = chance(w, 0.5) ? 1 : (unsigned)between(w, 1, 8)};
	w->conf.receivers = w->receivers;
	w->conf.n_receivers = w->n_receivers;
}

/* The clock of the section's time zone: UTC plus a quarter of an hour. */
static void quarter_ahead(int64_t wall_ms, bool utc, struct tm *out)
{
	hw_window_libc(wall_ms + (utc ? 0 : 900000), true, out);
}

static void plan_section(struct iw_world *w)
{
	struct tm reads;
	w->has_section = w->silences && chance(w, 0.3);
	w->conf.clock = quarter_ahead;
	if (!w->has_section)
		return;
	quarter_ahead(IW_BEGIN_MS + between(w, 0, w->quiet_from), false, &reads);
	unsigned from = (unsigned)(reads.tm_hour * 60 + reads.tm_min);
	w->window = (struct hw_window){.days = 0x7f, .from = (uint16_t)from, .to = (uint16_t)((from + 15) % 1440)};
	w->section = (struct hw_silence_conf){
		.name = "wash", .match = chance(w, 0.5) ? "group:v0" : "id:g*", .windows = &w->window, .n_windows = 1};
	w->conf.silences = &w->section;
	w->conf.n_silences = 1;
}

void iw_plan(struct iw_world *w)
{
	w->quiet_from = between(w, 20, 80) * 60000;
	w->restarts = chance(w, 0.5);
	w->blindness = chance(w, 0.4);
	w->lags = chance(w, 0.4);
	w->silences = chance(w, 0.5);
	w->failing = chance(w, 0.5);
	w->unseen = chance(w, 0.3);
	w->fault_rate = (double)between(w, 1, 20) / 1000;
	w->n_devices = (unsigned)between(w, 4, IW_DEVICES);
	w->n_gateways = (unsigned)between(w, 0, w->n_devices / 4);
	w->conf = (struct hw_incidents_conf){.clear_after_ms = chance(w, 0.3) ? between(w, 1, 120) * 1000 : 0,
	                                     .mass = chance(w, 0.5) ? 0 : (unsigned)between(w, 3, 8),
	                                     .mass_share = (unsigned)between(w, 5, 60),
	                                     .mass_window_ms = between(w, 5, 120) * 1000,
	                                     .flap_start = chance(w, 0.1) ? 0 : 6,
	                                     .flap_end = 2,
	                                     .flap_half_ms = between(w, 2, 20) * 60000,
	                                     .blind_after_ms = 120000,
	                                     .max_incidents = chance(w, 0.9) ? 1000 : 4,
	                                     .news_most = chance(w, 0.7) ? 0 : (size_t)between(w, 1, 4),
	                                     .seed = sim_draw(&w->random)};
	for (unsigned k = 0; k < w->n_devices; k++)
		plan_device(w, k);
	plan_receivers(w);
	plan_section(w);
	int64_t longest = 5 * w->conf.flap_half_ms > 900000 ? 5 * w->conf.flap_half_ms : 900000;
	w->emptied_at = w->seed % 4 ? 0 : w->quiet_from / 2;
	w->end = w->quiet_from + longest + 900000 + 1800000;
}

/* --- what fails -----------------------------------------------------------------------------------------------------
 */

static void fail(struct iw_world *w, struct iw_device *d, int64_t for_ms)
{
	if (d->expected || d->faulty)
		return;
	d->faulty = true;
	d->back_at = w->now + for_ms;
	iw_trace(w, "%s fails for %lld s", d->id, (long long)for_ms / 1000);
}

static void fail_some(struct iw_world *w)
{
	struct iw_device *d = &w->devices[between(w, 0, w->n_devices - 1)];
	if (chance(w, 0.2) && w->n_gateways)
		d = &w->devices[between(w, 0, w->n_gateways - 1)];
	if (chance(w, 0.1)) {
		d->flap_until = w->now + between(w, 3, 30) * 60000;
		d->flap_half = d->timeout + between(w, 10, 40) * 1000;
	} else if (chance(w, 0.1)) {
		int64_t for_ms = between(w, 60, 900) * 1000;
		for (unsigned k = 0; k < w->n_devices; k++)
			if (strcmp(w->devices[k].group, d->group) == 0 && chance(w, 0.9))
				fail(w, &w->devices[k], for_ms + between(w, 0, 60) * 1000);
	} else {
		fail(w, d, chance(w, 0.05) ? INT64_MAX / 4 : sim_spread(&w->random, 10000, 2400000));
	}
}

static void flap(struct iw_world *w, struct iw_device *d)
{
	if (w->now < d->flap_until && !d->faulty && w->now - (d->back_at ? d->back_at : 0) >= d->flap_half)
		fail(w, d, d->flap_half);
}

static void drive(struct iw_world *w)
{
	if (w->now < w->quiet_from && chance(w, w->fault_rate))
		fail_some(w);
	for (unsigned k = 0; k < w->n_devices; k++) {
		struct iw_device *d = &w->devices[k];
		if (w->now < w->quiet_from)
			flap(w, d);
		if (d->faulty && w->now >= d->back_at && w->now < w->quiet_from)
			d->faulty = false;
		bool was = d->sends;
		d->sends = !d->faulty && d->n_parents == 0;
		for (unsigned p = 0; !d->faulty && p < d->n_parents; p++)
			d->sends = d->sends || w->devices[d->parents[p]].sends;
		if (was && !d->sends)
			d->failed_at = w->now;
		if (!was && d->sends && w->now - d->failed_at < d->timeout + 2 * d->interval)
			d->brief = w->now;
		if (d->faulty)
			d->own_fault = w->now;
	}
}

/* --- heartwheeld ----------------------------------------------------------------------------------------------------
 */

bool iw_is_away(const struct iw_device *d)
{
	return d->offline || d->unseen;
}

/* Whether all known parents of the device are offline or unseen. A device that was never heard and is not unseen is no
 * known parent; gateways are always known. */
bool iw_parents_away(const struct iw_world *w, const struct iw_device *d)
{
	for (unsigned p = 0; p < d->n_parents; p++)
		if (!iw_is_away(&w->devices[d->parents[p]]))
			return false;
	return d->n_parents > 0;
}

static int64_t seen_now(const struct iw_world *w)
{
	return (w->blind ? w->blind_since : w->now) - w->blind_ms;
}

static struct iw_entry *append(struct iw_world *w, struct iw_device *d)
{
	if (w->n_entries == IW_ENTRIES)
		abort();
	struct iw_entry *n = &w->entries[w->n_entries++];
	*n = (struct iw_entry){.device = (unsigned)(d - w->devices),
	                       .at = w->now,
	                       .time_ms = IW_BEGIN_MS + w->now,
	                       .wait_ms = -1,
	                       .seq = d->seq};
	return n;
}

static struct iw_entry *transition(struct iw_world *w, struct iw_device *d, enum hw_incident_fact fact)
{
	d->seq = fact == HW_FACT_UNSEEN ? (uint64_t)w->now + 1 : d->seq + 1;
	d->since_ms = IW_BEGIN_MS + w->now;
	d->waits = d->listed = false;
	struct iw_entry *n = append(w, d);
	n->fact = fact;
	w->count.entries++;
	iw_trace(w, "%s is %s", d->id,
	         fact == HW_FACT_ONLINE   ? "online"
	         : fact == HW_FACT_UNSEEN ? "unseen"
	                                  : "offline");
	return n;
}

static int64_t settle_of(const struct iw_world *w, const struct iw_device *d)
{
	int64_t longest = 0;
	for (unsigned p = 0; p < d->n_parents; p++)
		if (w->devices[d->parents[p]].timeout > longest)
			longest = w->devices[d->parents[p]].timeout;
	int64_t ms = d->timeout + longest + 10000;
	return ms > SETTLE_MS ? ms : SETTLE_MS;
}

/* Returns what is left of `settle`, if a parent has returned after the device's last heartbeat. */
static int64_t settle_left(struct iw_world *w, const struct iw_device *d, const struct iw_device *parent)
{
	int64_t left = settle_of(w, d) - (seen_now(w) - parent->returned);
	return parent->returned > d->last_seen && left > 0 ? left : 0;
}

static void hear_parent(struct iw_world *w, struct iw_device *parent)
{
	for (unsigned k = 0; k < w->n_devices; k++) {
		struct iw_device *d = &w->devices[k];
		for (unsigned p = 0; p < d->n_parents && d->waits; p++)
			if (&w->devices[d->parents[p]] == parent) {
				d->waits = false;
				if (sim_chance(&w->random, 0.05))
					continue; /* the entry is lost */
				struct iw_entry *n = append(w, d);
				n->heard = true;
				n->settle_ms = settle_left(w, d, parent);
			}
	}
}

static void beat(struct iw_world *w, struct iw_device *d)
{
	int64_t seen = seen_now(w);
	bool was_long = seen - d->last_seen > d->timeout / 2 || d->offline;
	if (was_long)
		d->returned = seen;
	d->last_seen = seen;
	if (d->expected || iw_is_away(d)) {
		d->offline = d->unseen = d->expected = false;
		transition(w, d, HW_FACT_ONLINE);
	}
	hear_parent(w, d);
}

/* Returns the time until the last deadline of a parent, or what is left of `settle` if that is longer. */
static int64_t wait_of(struct iw_world *w, struct iw_device *d)
{
	int64_t wait = -1;
	for (unsigned p = 0; p < d->n_parents; p++) {
		const struct iw_device *parent = &w->devices[d->parents[p]];
		if (iw_is_away(parent))
			continue;
		int64_t left = parent->last_seen + parent->timeout - seen_now(w), settle = settle_left(w, d, parent);
		left = left > settle ? left : settle;
		wait = left > wait ? left : wait;
	}
	d->waits = wait >= 0;
	return wait;
}

static void judge(struct iw_world *w, struct iw_device *d)
{
	if (w->blind || iw_is_away(d) || seen_now(w) - d->last_seen <= d->timeout)
		return;
	if (d->expected) {
		d->unseen = true;
		transition(w, d, HW_FACT_UNSEEN);
		return;
	}
	d->offline = true;
	struct iw_entry *n = transition(w, d, HW_FACT_OFFLINE);
	n->wait_ms = d->wait_ms = wait_of(w, d);
}

static void sight(struct iw_world *w)
{
	bool blind = w->now < w->blind_until;
	if (w->blindness && w->now < w->quiet_from && !blind && sim_chance(&w->random, 0.0005)) {
		w->blind_until = w->now + between(w, 5, 200) * 1000;
		blind = true;
	}
	if (blind == w->blind)
		return;
	if (w->blind)
		w->blind_ms += w->now - w->blind_since;
	w->blind = blind;
	w->blind_since = w->now;
	iw_trace(w, "%s", blind ? "blind" : "sees");
}

void iw_fleet_tick(struct iw_world *w)
{
	drive(w);
	sight(w);
	unsigned first = (unsigned)between(w, 0, w->n_devices - 1);
	for (unsigned k = 0; k < w->n_devices; k++) {
		struct iw_device *d = &w->devices[(first + k) % w->n_devices];
		if (d->sends && !w->blind && (w->now + d->phase) % d->interval == 0)
			beat(w, d);
		judge(w, d);
		if (iw_is_away(d))
			d->was_offline = w->now;
	}
}

/* SPDX-License-Identifier: MIT */
/* See canary.h. Cost: constant per filter; a returning canary is searched for among all topics. */
#include "canary.h"

#include <string.h>

#include "heartwheel/fnv.h"

#define TICK_NS (HW_NS_PER_S / HW_TICKS_PER_S + 1)
#define US      1000
#define LATE_NS HW_NS_PER_S /* an older canary that a barrier has overtaken is lost */
/* When this time has passed since a canary was lost, it is known whether its loss makes the group deaf. */
#define REPORT_AFTER_NS (4 * HW_NS_PER_S)
/* this many canaries must not come back before one counts as lost; after a reload the first may be sent before the
 * subscription */
#define TRIES 2
/* The most bytes of canaries that are sent before a later barrier is back. With 4 KiB of canaries between two
 * barriers, mosquitto 2.1 reads both barriers in the same turn, and the second one proves nothing. */
#define BURST 3500
/* At most one burst of canaries is sent in this time, because the fleet's traffic has priority. */
#define BURST_EVERY_NS (20 * HW_NS_PER_MS)
#define WAIT_MAX_NS    HW_NS_PER_S

/* --- what comes back ------------------------------------------------------------ */

/* Called when a canary came back that was sent at `sent`. If it is the missed canary, the canary was only slow. If this
 * canary was sent after the missed one, the missed one is lost, although the filter delivers again. */
static void find_missed(struct hw_hearing_filter *f, struct hw_mono sent)
{
	if (!f->missed.ns || sent.ns < f->missed.ns)
		return;
	if (sent.ns < f->missed.ns + US)
		f->missed.ns = 0;
	else
		f->mute = true;
}

static void came_back(struct hw_hearing_filter *f, struct hw_mono sent)
{
	find_missed(f, sent);
	f->proof = hw_mono_later(f->proof, sent);
	f->ever = true;
	f->lost.ns = 0;
	f->reported = false;
	f->report_at.ns = 0;
	f->tries = 0;
	if (f->newest.ns <= sent.ns) {
		f->sent.ns = 0;
	} else if (f->sent.ns && f->sent.ns <= sent.ns) {
		f->sent = sent;
		f->after = f->newest_after;
	}
}

static bool is_topic(const struct hw_hearing_filter *f, const char *topic, size_t len)
{
	return f->canary_len == len && memcmp(f->canary, topic, len) == 0;
}

bool hw_canary_is_topic(const struct hw_hearing *h, const char *topic, size_t len)
{
	for (size_t k = 0; k < h->n; k++)
		if (is_topic(&h->filter[k], topic, len))
			return true;
	return false;
}

void hw_canary_back(struct hw_hearing *h, struct hw_mono now, struct hw_mono sent_after, const char *topic, size_t len,
                    int64_t seq)
{
	struct hw_mono sent = {h->started_ns + (seq - h->base_us) * US};
	bool own = seq >= h->base_us && sent.ns <= now.ns + US;
	for (size_t k = 0; k < h->n; k++) {
		struct hw_hearing_filter *f = &h->filter[k];
		if (!is_topic(f, topic, len))
			continue;
		if (own)
			came_back(f, sent);
		else if (h->brought[k] < sent_after.ns)
			h->brought[k] = sent_after.ns;
	}
	hw_hearing_wake(h);
}

static uint64_t hash_of(const struct hw_hearing_filter *f)
{
	return hw_fnv64(HW_FNV64_BEGIN, f->canary, strlen(f->canary) + 1);
}

static unsigned part_of(uint64_t hash)
{
	return (unsigned)(hash >> 32) % HW_CANARY_PARTS;
}

/* Fills in `all` with the value for the case that the canaries of all filters came back. */
static void all_parts(const struct hw_hearing *h, struct hw_canaries *all)
{
	memset(all, 0, sizeof(*all));
	for (size_t k = 0; k < h->n; k++) {
		uint64_t hash = hash_of(&h->filter[k]);
		if (hw_hearing_may_ask(h, k))
			all->part[part_of(hash)] += (uint32_t)hash | 1;
	}
}

void hw_canary_had(const struct hw_hearing *h, struct hw_canaries *had)
{
	all_parts(h, had);
	for (size_t k = 0; k < h->n; k++)
		if (hw_hearing_may_ask(h, k) && !h->filter[k].ever)
			had->part[part_of(hash_of(&h->filter[k]))] = 0;
}

void hw_canary_recall(struct hw_hearing *h, const struct hw_canaries *had)
{
	struct hw_canaries all;
	all_parts(h, &all);
	for (size_t k = 0; k < h->n; k++) {
		unsigned part = part_of(hash_of(&h->filter[k]));
		if (had->part[part] != 0 && had->part[part] == all.part[part])
			h->filter[k].ever |= hw_hearing_may_ask(h, k);
	}
	hw_hearing_wake(h);
}

/* Called when the broker has answered a canary. If `index` is from before a reload, it may now be the index of
 * another filter. Then nothing is lost, because that filter gets an answer of its own. */
void hw_canary_answered(struct hw_hearing *h, uint16_t group, uint16_t index, enum hw_canary_answer answer)
{
	if (group >= h->n_groups || index >= h->group[group].n)
		return;
	h->filter[h->group[group].first + index].answer = answer;
	hw_hearing_wake(h);
}

/* --- whether one is needed ------------------------------------------------------ */

/* Whether no filter of the group has delivered a device's message in this run. */
static bool was_never_heard(const struct hw_hearing *h, const struct hw_hearing_group *g)
{
	for (size_t k = g->first; k < g->first + g->n; k++)
		if (h->brought[k])
			return false;
	return true;
}

bool hw_canary_can_be_had(const struct hw_hearing *h, size_t k)
{
	const struct hw_hearing_filter *f = &h->filter[k];
	if (!hw_hearing_may_ask(h, k))
		return false;
	return f->ever || (f->answer == HW_CANARY_TAKEN && was_never_heard(h, &h->group[f->group]));
}

int64_t hw_canary_wait(const struct hw_hearing *h, size_t k, struct hw_mono now)
{
	const struct hw_hearing_filter *f = &h->filter[k];
	if (f->due && h->waits)
		return TICK_NS;
	int64_t age_ns = f->sent.ns ? now.ns - f->sent.ns : f->due ? 0 : (now.ns - hw_hearing_last(h, k).ns) / 2;
	if (age_ns < TICK_NS)
		return 0;
	return age_ns / 2 < TICK_NS ? TICK_NS : age_ns / 2 < WAIT_MAX_NS ? age_ns / 2 : WAIT_MAX_NS;
}

bool hw_canary_is_pending(const struct hw_hearing *h, const struct hw_sight *s, struct hw_mono need, size_t k)
{
	const struct hw_hearing_filter *f = &h->filter[k];
	bool late = hw_sight_back(s) >= f->newest_after, serves = f->newest.ns >= need.ns && !late;
	bool out = f->sent.ns && (serves || f->newest.ns > s->out[s->sent % HW_BARRIERS_KEPT].at.ns);
	if (!hw_hearing_may_ask(h, k) || out || hw_hearing_believes(h, k))
		return false;
	return hw_hearing_misses(h, k) || hw_hearing_proven(h, k).ns < need.ns;
}

/* --- out, and given up ---------------------------------------------------------- */

static bool can_send(const struct hw_sight *s)
{
	return s->publisher_up && hw_sight_all_up(s);
}

/* Returns when the next burst may begin. HW_MONO_NEVER: a later barrier must be back first. */
static struct hw_mono burst_at(const struct hw_hearing *h, const struct hw_sight *s)
{
	return hw_sight_back(s) < h->burst ? HW_MONO_NEVER : hw_mono_add(h->burst_since, BURST_EVERY_NS);
}

/* Returns when the bytes of canaries that are already sent leave room for the canary of filter k. */
static struct hw_mono room_at(const struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now, size_t k)
{
	return h->in_burst + h->filter[k].size <= BURST ? now : burst_at(h, s);
}

/* Whether the next canary would fail too. */
static bool is_denied(const struct hw_hearing_filter *f)
{
	return f->answer == HW_CANARY_REFUSED || f->answer == HW_CANARY_UNSENT;
}

/* Returns when a canary that is not back counts as lost. HW_MONO_NEVER: a later barrier must be back first. */
static struct hw_mono late_at(const struct hw_hearing_filter *f, const struct hw_sight *s)
{
	if (is_denied(f))
		return hw_mono_add(f->sent, TICK_NS);
	if (hw_sight_back(s) < f->after)
		return HW_MONO_NEVER;
	return hw_mono_add(f->sent, 4 * s->rtt_ns > LATE_NS ? 4 * s->rtt_ns : LATE_NS);
}

void hw_canary_miss(struct hw_hearing *h, const struct hw_sight *s, size_t k)
{
	struct hw_hearing_filter *f = &h->filter[k];
	bool overtaken = f->sent.ns && hw_sight_back(s) >= f->after;
	bool known = is_denied(f) || (f->reported && !f->reported_denied);
	if (f->missed.ns || !f->ever || known || !overtaken)
		return;
	if (hw_hearing_last(h, k).ns >= f->sent.ns) /* of several canaries one is back */
		return;
	f->missed = f->sent;
	f->mute = false;
}

/* Returns how many canaries are sent before the monitor gives up. If the filter has delivered other messages since a
 * canary was missed, one canary more is sent, because perhaps only the canary's topic does not deliver. */
static unsigned tries_of(const struct hw_hearing *h, size_t k)
{
	const struct hw_hearing_filter *f = &h->filter[k];
	bool moves = f->missed.ns && !f->mute && hw_hearing_last(h, k).ns > f->tried.ns;
	return moves ? TRIES + 1 : TRIES;
}

/* Called when the last try has failed. If the filter has delivered no other message since the first try, the filter
 * is mute. Otherwise only the canary's topic does not deliver. */
static void give_up_missed(struct hw_hearing *h, size_t k)
{
	struct hw_hearing_filter *f = &h->filter[k];
	if (!f->missed.ns || f->mute)
		return;
	f->mute = !is_denied(f) && hw_hearing_last(h, k).ns <= f->tried.ns;
	if (!f->mute)
		f->missed.ns = 0;
}

void hw_canary_give_up(struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now, size_t k)
{
	struct hw_hearing_filter *f = &h->filter[k];
	if (!f->sent.ns || now.ns < late_at(f, s).ns)
		return;
	struct hw_mono sent = f->sent;
	f->sent.ns = 0;
	if (f->tries == 0)
		f->tried = sent;
	f->due = ++f->tries < tries_of(h, k) && !is_denied(f);
	if (f->due)
		return;
	f->lost = sent;
	give_up_missed(h, k);
	if (f->reported && f->reported_denied == is_denied(f))
		return;
	f->reported = true;
	f->reported_denied = is_denied(f);
	f->report_at = hw_mono_add(now, REPORT_AFTER_NS);
}

bool hw_canary_report(struct hw_hearing *h, struct hw_mono now, size_t k)
{
	struct hw_hearing_filter *f = &h->filter[k];
	if (!f->report_at.ns || now.ns < f->report_at.ns)
		return false;
	f->report_at.ns = 0;
	return true;
}

/* Forgets that the broker refused the last canary, so that the next canary is sent. */
static void forget_denial(struct hw_hearing_filter *f)
{
	if (!is_denied(f))
		return;
	f->answer = HW_CANARY_UNKNOWN;
	f->tries = 0;
}

static void join_burst(struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now, size_t k)
{
	if (burst_at(h, s).ns <= now.ns) {
		h->burst_since = now;
		h->in_burst = 0;
		h->waits = false;
	}
	h->in_burst += h->filter[k].size;
	h->burst = s->sent + 1;
	h->sent_last = k;
}

bool hw_canary_send(struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now, size_t k, int64_t *seq)
{
	struct hw_hearing_filter *f = &h->filter[k];
	if (!f->due || !can_send(s))
		return false;
	if (room_at(h, s, now, k).ns > now.ns) {
		h->waits = true;
		return false;
	}
	join_burst(h, s, now, k);
	forget_denial(f);
	f->due = false;
	f->newest = now;
	f->newest_after = s->sent + 1;
	if (!f->sent.ns) {
		f->sent = now;
		f->after = f->newest_after;
		if (!f->missed.ns)
			f->gap = hw_hearing_last(h, k);
	}
	*seq = h->base_us + (now.ns - h->started_ns + US - 1) / US;
	return true;
}

struct hw_mono hw_canary_next(const struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now, size_t k)
{
	const struct hw_hearing_filter *f = &h->filter[k];
	struct hw_mono at = f->sent.ns ? late_at(f, s) : HW_MONO_NEVER;
	if (f->due && can_send(s)) /* if there is no room, a returning barrier wakes it */
		at = hw_mono_sooner(at, room_at(h, s, now, k));
	if (f->report_at.ns)
		at = hw_mono_sooner(at, f->report_at);
	return at;
}

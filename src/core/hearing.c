/* SPDX-License-Identifier: MIT */
/*
 * See hearing.h. Invariants: in each group, deaf_filters is the number of its deaf filters. deaf_groups is the number
 * of groups with a deaf filter. A group's own clock stands still exactly while the group has a deaf filter or its
 * upstream is down.
 */
#include "hearing.h"

#include "canary.h"

#define RETRY_MIN_NS (HW_NS_PER_S / 2)
#define RETRY_MAX_NS (5 * HW_NS_PER_S)

struct hw_mono hw_hearing_bound(const struct hw_hearing *h, size_t k)
{
	return hw_canary_can_be_had(h, k) ? HW_MONO_NEVER : hw_hearing_believed_at(h, k);
}

/* Whether the broker has not confirmed the canary. A missing canary may then be one that was never sent, while the
 * devices' messages still arrive. */
static bool may_be_unsent(const struct hw_hearing_filter *f)
{
	return f->ever && f->answer != HW_CANARY_TAKEN;
}

struct hw_mono hw_hearing_bound_by_others(const struct hw_hearing *h, struct hw_mono now, size_t k)
{
	const struct hw_hearing_filter *f = &h->filter[k];
	const struct hw_hearing_group *g = &h->group[f->group];
	if (g->n < 2 || !may_be_unsent(f))
		return HW_MONO_NEVER;
	return hw_mono_later(hw_mono_add(now, g->timeout_ns), hw_hearing_believed_at(h, k));
}

/* --- begin and end of deafness --------------------------------------------------- */

static void count_deaf(struct hw_hearing *h, struct hw_mono since, struct hw_mono now, bool begins)
{
	if (begins) {
		if (h->deaf_groups++ == 0 || since.ns < h->deaf_since.ns)
			h->deaf_since = since;
	} else if (--h->deaf_groups == 0) {
		h->deaf_ns += now.ns - h->deaf_since.ns;
	}
}

/* Makes the group deaf. Returns whether to report the deafness. No report if the group is deaf already. Also no report
 * if the end of the group's last deafness is not reported yet: both reports are then omitted. */
static bool deafen(struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now, size_t k, struct hw_mono since)
{
	struct hw_hearing_filter *f = &h->filter[k];
	struct hw_hearing_group *g = &h->group[f->group];
	struct hw_seen seen = hw_blind_seen(&s->blind, since);
	if (seen.ns < f->seen.ns) /* For an instant before the last blind periods, hw_blind_seen() returns too little:
	                             the silence begins at the subscription (f->seen) at the earliest */
		seen = f->seen;
	bool is_news = g->deaf_filters == 0 && !g->over;
	g->over = false;
	f->deaf = true;
	f->missed.ns = 0;
	f->last_then = since;
	f->retry = now;
	f->report_at.ns = 0; /* the report of the deafness includes this */
	hw_blind_begin(&g->blind, HW_CAUSE_DEAF, (struct hw_mono){seen.ns}, true);
	if (g->deaf_filters++ == 0) {
		count_deaf(h, since, now, true);
		g->counted.ns = 0;
		g->heard = false;
	}
	g->need.ns = 0;
	h->clocks_differ = true;
	hw_hearing_wake(h);
	return is_news;
}

static void hear_again(struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now, struct hw_hearing_group *g)
{
	hw_blind_end(&g->blind, HW_CAUSE_DEAF, (struct hw_mono){hw_blind_seen(&s->blind, now).ns});
	count_deaf(h, now, now, false);
	g->over = true;
	hw_hearing_wake(h);
}

static void undeafen(struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now, size_t k)
{
	struct hw_hearing_group *g = &h->group[h->filter[k].group];
	h->filter[k].deaf = false;
	if (--g->deaf_filters == 0)
		hear_again(h, s, now, g);
}

/* Ends the deafness of groups whose deaf filter is no longer configured. */
static void recount(struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now)
{
	for (size_t k = 0; k < h->n_groups; k++) {
		struct hw_hearing_group *g = &h->group[k];
		unsigned was = g->deaf_filters;
		g->deaf_filters = 0;
		for (size_t f = g->first; f < g->first + g->n; f++)
			g->deaf_filters += h->filter[f].deaf;
		if (was > 0 && g->deaf_filters == 0)
			hear_again(h, s, now, g);
	}
}

/* Stores the value of the seeing clock for filters that have just been subscribed. */
static void note_clock(struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now)
{
	for (size_t k = 0; k < h->n; k++)
		if (h->filter[k].since.ns == now.ns)
			h->filter[k].seen = hw_blind_seen(&s->blind, now);
}

int hw_hearing_configure(struct hw_hearing *h, const struct hw_sight *s, const struct hw_groups *groups,
                         const char *node, struct hw_mono now)
{
	int rc = hw_hearing_set_filters(h, groups, node, now);
	if (rc)
		return rc;
	note_clock(h, s, now);
	recount(h, s, now);
	return 0;
}

/* --- upstreams ---------------------------------------------------------------- */

bool hw_hearing_upstream(struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now, uint16_t group, bool away,
                         int64_t grace_ns)
{
	struct hw_hearing_group *g = &h->group[group];
	bool begins = away && !g->upstream;
	hw_hearing_wake(h);
	if (g->upstream && !away && !g->returned)
		g->back = hw_mono_add(now, grace_ns);
	g->returned = g->upstream && !away;
	if (!begins)
		return false;
	bool is_news = !g->again;
	g->upstream = true;
	g->again = false;
	g->need.ns = 0;
	hw_blind_begin(&g->blind, HW_CAUSE_UPSTREAM, (struct hw_mono){hw_blind_seen(&s->blind, now).ns}, true);
	h->clocks_differ = true;
	if (h->upstream_groups++ == 0)
		h->upstream_since = now;
	return is_news;
}

static void end_upstreams(struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now)
{
	for (size_t i = 0; h->upstream_groups > 0 && i < h->n_groups; i++) {
		struct hw_hearing_group *g = &h->group[i];
		if (!g->upstream || !g->returned || now.ns < g->back.ns)
			continue;
		g->upstream = g->returned = false;
		g->again = true;
		hw_blind_end(&g->blind, HW_CAUSE_UPSTREAM, (struct hw_mono){hw_blind_seen(&s->blind, now).ns});
		if (--h->upstream_groups == 0)
			h->upstream_ns += now.ns - h->upstream_since.ns;
	}
}

/* --- messages that arrive -------------------------------------------------------- */

void hw_hearing_subscribed(struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now)
{
	for (size_t k = 0; k < h->n; k++) {
		struct hw_hearing_filter *f = &h->filter[k];
		f->since = now;
		f->sent.ns = 0;
		f->tries = 0;
		f->lost.ns = 0;
		f->missed.ns = 0; /* silence counts again from zero */
		f->answer = HW_CANARY_UNKNOWN;
		f->due = hw_hearing_may_ask(h, k);
		/* A deaf filter still waits for a new message. */
		if (f->deaf)
			f->last_then = now;
	}
	note_clock(h, s, now);
	hw_hearing_wake(h);
}

void hw_hearing_interrupted(struct hw_hearing *h)
{
	for (size_t k = 0; k < h->n; k++) {
		struct hw_hearing_filter *f = &h->filter[k];
		f->due |= f->sent.ns != 0;
		f->sent.ns = 0;
	}
	hw_hearing_wake(h);
}

/* --- judging -------------------------------------------------------------------- */

static enum hw_hearing_verdict judge_filter(struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now,
                                            size_t k, struct hw_mono need, uint32_t online)
{
	struct hw_hearing_filter *f = &h->filter[k];
	const struct hw_hearing_group *g = &h->group[f->group];
	if (online == HW_HEARING_EXPECTED && !hw_hearing_may_ask(h, k))
		return HW_HEARING_HEARS;
	if (hw_hearing_misses(h, k))
		return HW_HEARING_UNSURE;
	if (hw_hearing_proven(h, k).ns >= need.ns || hw_hearing_believes(h, k))
		return HW_HEARING_HEARS;
	hw_canary_miss(h, s, k);
	if (hw_hearing_may_ask(h, k) && f->lost.ns < need.ns)
		return HW_HEARING_UNSURE;
	bool had = hw_canary_can_be_had(h, k);
	if (online < 2 && !had)
		return HW_HEARING_HEARS; /* the device's own silence is the only evidence */
	if (now.ns - hw_hearing_last(h, k).ns < g->timeout_ns)
		return HW_HEARING_UNSURE;
	if (had || now.ns < hw_hearing_believed_at(h, k).ns) {
		bool is_news = deafen(h, s, now, k, hw_hearing_last(h, k));
		return is_news ? HW_HEARING_DEAF : HW_HEARING_STILL_DEAF;
	}
	f->believed = hw_hearing_last(h, k);
	return HW_HEARING_HEARS;
}

enum hw_hearing_verdict hw_hearing_judge(struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now,
                                         uint16_t group, struct hw_mono need, uint32_t online, int64_t *wait,
                                         size_t *filter)
{
	const struct hw_hearing_group *g = &h->group[group];
	enum hw_hearing_verdict all = HW_HEARING_HEARS;
	*wait = 0;
	for (size_t k = g->first; k < g->first + g->n && all < HW_HEARING_DEAF; k++) {
		enum hw_hearing_verdict one = judge_filter(h, s, now, k, need, online);
		if (one == HW_HEARING_HEARS)
			continue;
		all = one;
		*filter = k;
		h->filter[k].due |= hw_canary_is_pending(h, s, need, k); /* else its age would set the wait */
		int64_t ns = hw_canary_wait(h, k, now);
		*wait = ns > *wait ? ns : *wait;
	}
	if (all == HW_HEARING_UNSURE)
		hw_hearing_ask(h, group, need);
	return all;
}

bool hw_hearing_has_canaries(const struct hw_hearing *h, uint16_t group)
{
	const struct hw_hearing_group *g = &h->group[group];
	size_t k = g->first;
	while (k < g->first + g->n && hw_canary_can_be_had(h, k))
		k++;
	return k == g->first + g->n;
}

/* Called for a deaf group. Determines whether the group receives at least half of the heartbeats that its online
 * devices should send, one each timeout. If it does, the group is not deaf as a whole. */
void hw_hearing_count(struct hw_hearing *h, struct hw_mono now, uint16_t group, uint64_t heartbeats, uint32_t online)
{
	struct hw_hearing_group *g = &h->group[group];
	int64_t timeouts = g->counted.ns ? (now.ns - g->counted.ns) / g->timeout_ns : 0;
	if (g->counted.ns && timeouts == 0)
		return;
	uint64_t n = heartbeats - g->heartbeats;
	g->heard = timeouts > 0 && n > 0 && 2 * n >= (uint64_t)timeouts * online;
	g->counted = now;
	g->heartbeats = heartbeats;
}

/* --- steps ---------------------------------------------------------------------- */

/* Requests a canary on each filter that a suspect needs. If a canary is already on its way, another canary is due
 * after the next barrier is sent. */
static void take_asks(struct hw_hearing *h, const struct hw_sight *s)
{
	h->asked = false;
	for (size_t i = 0; i < h->n_groups; i++) {
		struct hw_hearing_group *g = &h->group[i];
		bool asked = g->asked;
		g->asked = false;
		for (size_t k = g->first; asked && k < g->first + g->n; k++) {
			struct hw_hearing_filter *f = &h->filter[k];
			f->due |= hw_canary_is_pending(h, s, g->want, k);
			g->asked |= f->sent.ns && !f->due;
		}
		h->asked |= g->asked;
	}
}

/* The interval between canaries of a deaf group. */
static int64_t retry_ns(const struct hw_hearing_group *g)
{
	int64_t half_ns = g->timeout_ns / 2;
	return half_ns < RETRY_MIN_NS ? RETRY_MIN_NS : half_ns < RETRY_MAX_NS ? half_ns : RETRY_MAX_NS;
}

static void end_if_over(struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now, size_t k)
{
	struct hw_hearing_filter *f = &h->filter[k];
	/* If other filters receive the group's devices, this filter's canary is no longer required. */
	if (h->group[f->group].heard && may_be_unsent(f))
		f->ever = false;
	if (hw_hearing_last(h, k).ns > f->last_then.ns) {
		/* The filter delivers again, so canaries are required from now on. */
		f->due |= (!f->ever || f->lost.ns) && hw_hearing_may_ask(h, k);
		undeafen(h, s, now, k);
	} else if (!hw_canary_can_be_had(h, k) && now.ns >= hw_hearing_believed_at(h, k).ns) {
		f->believed = hw_hearing_last(h, k);
		undeafen(h, s, now, k);
	} else if (now.ns >= f->retry.ns && hw_hearing_may_ask(h, k) && !f->sent.ns) {
		f->due = true;
		f->retry = hw_mono_add(now, retry_ns(&h->group[f->group]));
	}
}

/* Makes the group of filter k deaf if the filter has lost a canary for which a device waited. The group counts as
 * deaf from the last message that the filter delivered before that canary. Heartbeats since then may be lost even if
 * the filter delivers now. Returns whether to report the deafness. */
static bool take_mute(struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now, size_t k)
{
	const struct hw_hearing_filter *f = &h->filter[k];
	if (f->deaf || !f->mute || !hw_hearing_misses(h, k))
		return false;
	return deafen(h, s, now, k, f->gap);
}

static struct hw_hearing_do check_filter(struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now, size_t k)
{
	struct hw_hearing_do todo = {.what = HW_HEARING_NOTHING, .filter = k};
	hw_canary_give_up(h, s, now, k);
	if (hw_canary_report(h, now, k)) {
		todo.what = HW_HEARING_MISSING;
		return todo;
	}
	if (take_mute(h, s, now, k)) {
		todo.what = HW_HEARING_MUTE;
		return todo;
	}
	if (h->filter[k].deaf)
		end_if_over(h, s, now, k);
	if (hw_canary_send(h, s, now, k, &todo.seq))
		todo.what = HW_HEARING_CANARY;
	return todo;
}

/* Reports a group whose deafness or lost upstream is over, if there is one. */
static struct hw_hearing_do report_over(struct hw_hearing *h)
{
	for (size_t g = 0; g < h->n_groups; g++) {
		if (h->group[g].again) {
			h->group[g].again = false;
			return (struct hw_hearing_do){.what = HW_HEARING_BACK, .group = (uint16_t)g};
		}
		if (!h->group[g].over)
			continue;
		h->group[g].over = false;
		return (struct hw_hearing_do){.what = HW_HEARING_OVER, .group = (uint16_t)g};
	}
	return (struct hw_hearing_do){.what = HW_HEARING_NOTHING};
}

/* Whether work is left for a later turn. */
static bool is_busy(const struct hw_hearing *h)
{
	if (h->upstream_groups > 0)
		return true;
	for (size_t k = 0; k < h->n; k++)
		if (h->filter[k].due || h->filter[k].deaf || h->filter[k].sent.ns || h->filter[k].report_at.ns)
			return true;
	return false;
}

struct hw_hearing_do hw_hearing_step(struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now)
{
	if (!h->is_busy || h->checked.ns == now.ns)
		return (struct hw_hearing_do){.what = HW_HEARING_NOTHING};
	if (h->asked)
		take_asks(h, s);
	end_upstreams(h, s, now);
	if (h->checking.ns != now.ns)
		h->at = 0;
	h->checking = now;
	if (h->at == 0)
		h->from = h->sent_last + 1;
	for (; h->at < h->n; h->at++) {
		struct hw_hearing_do todo = check_filter(h, s, now, (h->from + h->at) % h->n);
		if (todo.what != HW_HEARING_NOTHING)
			return todo;
	}
	struct hw_hearing_do over = report_over(h);
	if (over.what != HW_HEARING_NOTHING)
		return over;
	h->at = 0;
	h->checked = now;
	h->is_busy = is_busy(h);
	h->waits &= h->is_busy;
	return over;
}

static struct hw_mono next_of(const struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now, size_t k)
{
	const struct hw_hearing_filter *f = &h->filter[k];
	struct hw_mono at = hw_canary_next(h, s, now, k);
	if (f->deaf && hw_hearing_may_ask(h, k) && !f->sent.ns && !f->due)
		at = hw_mono_sooner(at, f->retry);
	if (f->deaf)
		at = hw_mono_sooner(at, hw_hearing_bound(h, k));
	return at;
}

struct hw_mono hw_hearing_next(const struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now)
{
	struct hw_mono at = HW_MONO_NEVER;
	if (!h->is_busy)
		return at;
	if (h->checked.ns == INT64_MIN)
		return now;
	for (size_t k = 0; k < h->n; k++)
		at = hw_mono_sooner(at, next_of(h, s, now, k));
	for (size_t g = 0; h->upstream_groups > 0 && g < h->n_groups; g++)
		if (h->group[g].returned)
			at = hw_mono_sooner(at, h->group[g].back);
	/* At most one pass for each instant. If a barrier comes back in an instant that already had its pass, the
	 * next pass handles the barrier. */
	return hw_mono_later(at, h->checked.ns == now.ns ? hw_mono_add(now, 1) : now);
}

/* SPDX-License-Identifier: MIT */
/* See sim_oracle.h. This file records what happens, and sim_judge.c judges it. */
#include "sim_oracle.h"

#include "sim.h"

#define BARRIERS_A_SECOND                                                                                              \
	1000 /* pairs of barriers; on a fast broker there are more than one in a tick, but not one for each barrier    \
	      * that returns */
#define SUBSCRIBED_NS (4 * HW_NS_PER_S) /* canaries of a new subscription are sent within this time */

int64_t sim_oracle_mono(const struct sim *s)
{
	return sim_host_now(s).mono.ns;
}

void sim_oracle_init(struct sim *s)
{
	struct sim_oracle *o = &s->oracle;
	o->watched = sim_calloc(s->plan.devices, sizeof(*o->watched));
	for (uint32_t i = 0; i < s->plan.devices; i++)
		o->watched[i].goodbye_at = o->watched[i].goodbye_read_at = o->watched[i].mistaken_at =
			o->watched[i].counted_at = o->watched[i].died_at = -1;
	o->lossy_end = o->reloaded_at = INT64_MIN / 4;
	sim_learning_begin(s);
	for (int g = 0; g < SIM_GROUPS_MAX; g++)
		o->deaf_from[g] = o->unanswered[g] = o->away_from[g] = -1;
}

void sim_oracle_fini(struct sim *s)
{
	free(s->oracle.watched);
	free(s->oracle.blind.span);
	for (int g = 0; g < SIM_GROUPS_MAX; g++) {
		free(s->oracle.deaf[g].span);
		free(s->oracle.away[g].span);
	}
}

/* --- clocks ------------------------------------------------------------------ */

int64_t sim_oracle_seen(const struct sim_oracle *o, int64_t t)
{
	if (o->blind_open && t > o->blind_from)
		t = o->blind_from;
	size_t lo = 0, hi = o->blind.n;
	while (lo < hi) { /* the first span that does not begin before t */
		size_t mid = (lo + hi) / 2;
		if (o->blind.span[mid].from < t)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == 0)
		return t;
	const struct sim_span *x = &o->blind.span[lo - 1];
	return t - x->before - ((t < x->to ? t : x->to) - x->from);
}

int64_t sim_oracle_unseen(const struct sim_oracle *o, int64_t seen)
{
	size_t lo = 0, hi = o->blind.n;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		if (o->blind.span[mid].from - o->blind.span[mid].before < seen)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == 0)
		return seen;
	const struct sim_span *x = &o->blind.span[lo - 1];
	return seen + x->before + x->to - x->from;
}

void sim_oracle_link(struct sim *s, uint32_t k, bool up)
{
	sim_world_link(s, k, up);
	if (k < s->plan.readers)
		s->oracle.back[k] = 0;
}

/* --- blindness --------------------------------------------------------------- */

static void close_blind(struct sim *s, const struct hw_blind *b)
{
	struct sim_oracle *o = &s->oracle;
	o->blind_open = false;
	sim_spans_add(&o->blind, o->blind_from, b->until.ns)->put_back = o->put_back;
	if (b->ended_lossy)
		o->lossy_end = b->until.ns;
	sim_trace(s, hw_cause_name(b->first), b->ended_lossy, b->until.ns - o->blind_from);
}

void sim_oracle_watch(struct sim *s)
{
	struct sim_oracle *o = &s->oracle;
	const struct hw_blind *b = hw_monitor_blind(s->host.m);
	if (b->periods != o->periods) {
		/* One period may end at the moment at which the next begins. */
		if (o->blind_open && o->periods)
			close_blind(s, b);
		o->periods = b->periods;
		if (!o->blind_open) {
			o->blind_open = true;
			o->blind_from = b->since.ns;
			o->put_back = sim_oracle_mono(s) - b->since.ns;
		}
	}
	if (!o->blind_open)
		return;
	if (b->since.ns < o->blind_from) {
		o->put_back += o->blind_from - b->since.ns;
		o->blind_from = b->since.ns;
	}
	if (!b->active)
		close_blind(s, b);
}

void sim_oracle_told(struct sim *s, const struct hw_out *out)
{
	struct sim_oracle *o = &s->oracle;
	bool known_better = out->blind.begun && out->blind.cause == HW_CAUSE_BARRIER;
	if (out->blind.begun == o->told_blind && !known_better)
		sim_breach(s, "blindness is said to %s twice", out->blind.begun ? "begin" : "end");
	o->told_blind = out->blind.begun;
	o->periods_told += out->blind.begun;
}

/*
 * A group may be deaf only if a trouble may have kept its messages from the monitor: rights that were lost, or messages
 * that were dropped for a slow reader. The deafness may have begun up to `before_ns` before it is reported.
 */
void sim_oracle_deaf(struct sim *s, uint32_t g, bool begun)
{
	struct sim_oracle *o = &s->oracle;
	int64_t now = sim_oracle_mono(s), before_ns = s->plan.timeout_ns[g] + 60 * HW_NS_PER_S;
	if (begun == (o->deaf_from[g] >= 0))
		sim_breach(s, "deafness is said to %s twice", begun ? "begin" : "end");
	if (begun && !sim_world_may_be_deaf(s, g))
		sim_breach(s, "group %u is deaf, and no trouble explains it", g);
	if (!begun)
		sim_spans_add(&o->deaf[g], o->deaf_from[g], now);
	o->deaf_from[g] = begun ? now - before_ns : -1;
}

void sim_oracle_bridge(struct sim *s, uint32_t g, bool up)
{
	s->oracle.differs[g] = !up;
}

void sim_oracle_upstream(struct sim *s, uint32_t g, bool begun)
{
	struct sim_oracle *o = &s->oracle;
	sim_trace(s, begun ? "upstream away" : "upstream back", g, 0);
	if (!s->plan.bridge[g])
		sim_breach(s, "group %u is blind for a bridge that it does not have", g);
	if (!begun && o->away_from[g] >= 0)
		sim_spans_add(&o->away[g], o->away_from[g], sim_oracle_mono(s));
	o->away_from[g] = begun ? sim_oracle_mono(s) : -1;
}

void sim_oracle_canary(struct sim *s, uint32_t g, bool through)
{
	struct sim_oracle *o = &s->oracle;
	if (through)
		o->unanswered[g] = -1;
	else if (o->unanswered[g] < 0)
		o->unanswered[g] = sim_oracle_mono(s);
}

/*
 * Whether the monitor can know by now that this group's filters deliver nothing: a canary was lost, and two barriers
 * that were sent after that canary are back. A canary of a new subscription does not count, because the monitor does
 * not wait for it.
 */
static bool can_know(const struct sim *s, uint32_t g)
{
	const struct sim_oracle *o = &s->oracle;
	int64_t asked = o->unanswered[g], saw = o->blind.n ? o->blind.span[o->blind.n - 1].to : 0;
	bool there = s->host.m && !s->host.stopped && !s->host.asleep && !o->blind_open;
	return there && asked > saw + SUBSCRIBED_NS && sim_oracle_pair_sent(s) > asked;
}

void sim_oracle_unmuted(struct sim *s, uint32_t g)
{
	bool deaf = s->oracle.deaf_from[g] >= 0 || can_know(s, g);
	for (uint32_t i = 0; i < s->plan.devices; i++)
		for (int k = 0; k < SIM_ARRIVALS && s->fleet.device[i].group == g; k++) {
			enum sim_fate *f = &s->oracle.watched[i].arrival[k].fate;
			if (*f == SIM_UNHEARD)
				*f = deaf ? SIM_HEARD : SIM_LOST;
		}
}

static int64_t within(const struct sim_spans *spans, int64_t from, int64_t to)
{
	int64_t sum = 0;
	for (size_t k = 0; k < spans->n; k++) {
		const struct sim_span *x = &spans->span[k];
		int64_t a = x->from > from ? x->from : from, b = x->to < to ? x->to : to;
		sum += b > a ? b - a : 0;
	}
	return sum;
}

int64_t sim_oracle_deaf_ns(const struct sim_oracle *o, uint32_t g, int64_t from, int64_t to)
{
	return within(&o->deaf[g], from, to) + within(&o->away[g], from, to);
}

void sim_oracle_started(struct sim *s)
{
	struct sim_oracle *o = &s->oracle;
	o->started = s->now;
	o->started_at = sim_oracle_mono(s);
	o->told_blind = true;
	o->amnesia = o->damaged = false;
	o->periods = 0;
	o->periods_told = 1;
	sim_world_started(s);
	sim_oracle_watch(s);
}

void sim_oracle_amnesia(struct sim *s)
{
	s->oracle.amnesia = true;
	for (uint32_t i = 0; i < s->plan.devices; i++)
		if (!s->oracle.watched[i].said_own)
			s->oracle.watched[i].own_ms = 0;
}

void sim_oracle_crashed(struct sim *s)
{
	struct sim_oracle *o = &s->oracle;
	bool stored = !s->store.away && !s->store.full && !o->damaged && !o->amnesia && !s->host.load_wanted;
	if (!o->blind_open) {
		o->blind_open = true;
		o->blind_from = sim_oracle_mono(s);
		o->put_back = 0;
	}
	for (uint32_t r = 0; r <= s->plan.readers; r++)
		sim_oracle_link(s, r, false);
	for (uint32_t g = 0; g < SIM_GROUPS_MAX; g++)
		if (o->deaf_from[g] >= 0)
			sim_oracle_deaf(s, g, false);
	for (uint32_t g = 0; g < SIM_GROUPS_MAX; g++) {
		if (o->away_from[g] >= 0)
			sim_oracle_upstream(s, g, false);
		o->differs[g] = false;
	}
	for (uint32_t i = 0; i < s->plan.devices; i++) {
		struct sim_watched *w = &o->watched[i];
		struct sim_record r = sim_store_newest(s, i);
		int64_t off_ms = r.own_timeout_ms - w->own_ms; /* a rounding in the core is no error */
		if (stored && r.known && w->state != HW_STATE_PROVISIONAL && (off_ms < 0 || off_ms > 1))
			sim_breach(s, "d%u: its own timeout, %lld ms, is on its way to no store (there: %lld)", i,
			           (long long)w->own_ms, (long long)r.own_timeout_ms);
		w->read = w->said_own = false;
		sim_learning_forgotten(s, i);
		w->counted = w->may_count = 0;
		w->goodbye_read_at = -1;
		w->state = HW_STATE_PROVISIONAL;
		w->seq = 0;
	}
}

/* --- heartbeats and barriers ------------------------------------------------- */

static int64_t own_after(int64_t own_ms, int64_t said_ms)
{
	if (said_ms < 0)
		return own_ms;
	return said_ms > 0 && said_ms < HW_TIMEOUT_MIN_MS ? HW_TIMEOUT_MIN_MS : said_ms;
}

uint32_t sim_oracle_arrived(struct sim *s, uint32_t i)
{
	struct sim_watched *w = &s->oracle.watched[i];
	sim_note(s, "arrives", i, 0);
	w->arrival[w->arrivals++ % SIM_ARRIVALS] = (struct sim_arrival){.at = sim_oracle_mono(s)};
	return w->arrivals;
}

void sim_oracle_lost(struct sim *s, uint32_t i, uint32_t number, bool muted)
{
	struct sim_watched *w = &s->oracle.watched[i];
	if (w->arrivals - number < SIM_ARRIVALS)
		w->arrival[(number - 1) % SIM_ARRIVALS].fate = muted ? SIM_UNHEARD : SIM_LOST;
}

void sim_oracle_read(struct sim *s, uint32_t i, int64_t timeout_ms)
{
	struct sim_watched *w = &s->oracle.watched[i];
	sim_note(s, "is read", i, timeout_ms);
	sim_oracle_count_return(s, i);
	sim_learning_read(s, i);
	w->read = true;
	w->read_at = sim_oracle_mono(s);
	w->goodbye_read_at = -1;
	w->own_ms = own_after(w->own_ms, timeout_ms);
	w->said_own |= timeout_ms >= 0;
}

void sim_oracle_read_goodbye(struct sim *s, uint32_t i)
{
	struct sim_watched *w = &s->oracle.watched[i];
	w->counted = 0;
	w->announced |= w->state != HW_STATE_OFFLINE;
	int64_t now = sim_oracle_mono(s), hold_ns = s->plan.goodbye_delay_ms * HW_NS_PER_MS;
	if (w->goodbye_read_at >= 0 && w->goodbye_read_at + w->hold_ns <= now + hold_ns)
		return;
	w->goodbye_read_at = now;
	w->hold_ns = hold_ns;
}

void sim_oracle_unknown(struct sim *s, uint32_t i)
{
	if (!s->oracle.watched[i].said_own)
		s->oracle.watched[i].own_ms = 0;
}

/* Returns for how long the device had been silent when this run began, by the wall clock. Time without a monitor
 * does not count. */
static int64_t silent_before_ns(const struct sim *s, const struct sim_record *r)
{
	int64_t run_ms = (sim_oracle_mono(s) - s->oracle.started_at) / HW_NS_PER_MS;
	int64_t age_ms = sim_host_now(s).wall_ms - run_ms - r->last_seen_ms;
	int64_t down_ms = s->host.mark_found_ms ? s->host.started_wall_ms - s->host.mark_found_ms : 0;
	int64_t silent_ms = age_ms - (down_ms > 0 ? down_ms : 0);
	return silent_ms > 0 ? silent_ms * HW_NS_PER_MS : 0;
}

/* A timeout that a device requested just before a crash, and that had not reached the store, is lost. */
void sim_oracle_loaded(struct sim *s, uint32_t i, const struct sim_record *r)
{
	struct sim_watched *w = &s->oracle.watched[i];
	if (w->state != HW_STATE_PROVISIONAL)
		return; /* what was heard without the store is new, and stays */
	w->state = r->state;
	w->seq = r->seq;
	w->loaded_at = sim_oracle_mono(s);
	w->silent_ns = silent_before_ns(s, r);
	if (!w->said_own)
		w->own_ms = r->own_timeout_ms;
	sim_learning_loaded(s, i, r);
}

void sim_oracle_goodbye(struct sim *s, uint32_t i)
{
	sim_note(s, "says goodbye", i, 0);
	s->oracle.watched[i].goodbye_at = sim_oracle_mono(s);
}

void sim_oracle_barrier(struct sim *s, uint64_t number)
{
	sim_note(s, "barrier", (int64_t)number, 0);
	sim_world_barrier(s, number);
	if (number > BARRIERS_A_SECOND &&
	    sim_oracle_mono(s) - s->oracle.sent_at[(number - BARRIERS_A_SECOND) % SIM_NUMBERS] < HW_NS_PER_S)
		sim_breach(s, "%d barriers in a second", BARRIERS_A_SECOND);
	s->oracle.sent_at[number % SIM_NUMBERS] = sim_oracle_mono(s);
	s->oracle.behind[number % SIM_NUMBERS] = sim_oracle_back_on_all(s);
}

void sim_oracle_back(struct sim *s, uint32_t reader, uint64_t number)
{
	sim_note(s, "back", (int64_t)number, reader);
	sim_world_back(s, reader, number);
	if (number > s->oracle.back[reader])
		s->oracle.back[reader] = number;
}

/* --- lives, for the metrics -------------------------------------------------- */

void sim_oracle_count(struct sim *s, uint32_t i)
{
	struct sim_watched *w = &s->oracle.watched[i];
	if (s->metrics && w->alive && w->counted_at >= 0) {
		double dt = (double)(s->now - w->counted_at) / 1e9;
		s->metrics->alive_s += dt;
		s->metrics->right_s += w->told == HW_STATE_ONLINE ? dt : 0;
	}
	if (w->counted_at >= 0 || w->told == HW_STATE_ONLINE) /* it counts from when it was first heard */
		w->counted_at = s->now;
}

static void end_mistake(struct sim *s, struct sim_watched *w)
{
	if (w->mistaken_at >= 0 && s->metrics)
		sim_samples_add(&s->metrics->mistake, (double)(s->now - w->mistaken_at) / 1e9);
	w->mistaken_at = -1;
}

void sim_oracle_died(struct sim *s, uint32_t i)
{
	struct sim_watched *w = &s->oracle.watched[i];
	sim_oracle_count(s, i);
	sim_trace(s, "dies", i, 0);
	w->alive = false;
	w->died_at = w->told == HW_STATE_ONLINE ? s->now : -1;
	end_mistake(s, w);
	if (s->metrics && w->told == HW_STATE_ONLINE)
		s->metrics->deaths++;
}

void sim_oracle_returned(struct sim *s, uint32_t i)
{
	struct sim_watched *w = &s->oracle.watched[i];
	sim_oracle_count(s, i);
	sim_trace(s, "returns", i, 0);
	w->alive = true;
	w->died_at = -1;
}

void sim_oracle_changed(struct sim *s, uint32_t i, const struct hw_transition *t)
{
	struct sim_watched *w = &s->oracle.watched[i];
	sim_oracle_count(s, i);
	w->told = t->state;
	sim_oracle_count(s, i);
	if (t->state == HW_STATE_ONLINE)
		end_mistake(s, w);
	if (!s->metrics)
		return;
	s->metrics->transitions++;
	if (t->state != HW_STATE_OFFLINE)
		return;
	if (t->delay_ns >= 0)
		sim_samples_add(&s->metrics->delay, (double)t->delay_ns / 1e9);
	if (w->alive && w->counted_at >= 0) {
		s->metrics->mistakes++;
		w->mistaken_at = s->now;
	} else if (w->died_at >= 0) {
		sim_samples_add(&s->metrics->detection, (double)(s->now - w->died_at) / 1e9);
		w->died_at = -1;
	}
}

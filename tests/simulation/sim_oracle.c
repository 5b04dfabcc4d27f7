/* SPDX-License-Identifier: MIT */
/* See sim_oracle.h: what is written down. What is concluded from it is in sim_judge.c. */
#include "sim_oracle.h"

#include "sim.h"

#define RECOVERY_NS (5 * HW_NS_PER_S)

int64_t sim_oracle_mono(const struct sim *s)
{
	return sim_host_now(s).mono.ns;
}

void sim_oracle_init(struct sim *s)
{
	struct sim_oracle *o = &s->oracle;
	o->watched = sim_calloc(s->plan.devices, sizeof *o->watched);
	for (uint32_t i = 0; i < s->plan.devices; i++)
		o->watched[i].goodbye_at = o->watched[i].mistaken_at = o->watched[i].counted_at =
			o->watched[i].died_at = -1;
	for (uint32_t k = 0; k <= SIM_READERS_MAX; k++)
		o->down_at[k] = SIM_BOOTED_NS;
	o->lossy_end = INT64_MIN / 4;
}

void sim_oracle_fini(struct sim *s)
{
	free(s->oracle.watched);
	free(s->oracle.blind.span);
	free(s->oracle.trouble.span);
}

/* --- clocks ------------------------------------------------------------------ */

static struct sim_span *add_span(struct sim_spans *x, int64_t from, int64_t to)
{
	if (x->n == x->cap) {
		size_t cap = x->cap ? 2 * x->cap : 16;
		x->span = realloc(x->span, cap * sizeof *x->span);
		if (!x->span) {
			fprintf(stderr, "simulate: out of memory\n");
			exit(2);
		}
		x->cap = cap;
	}
	const struct sim_span *last = x->n ? &x->span[x->n - 1] : NULL;
	x->span[x->n] =
		(struct sim_span){.from = from, .to = to, .before = last ? last->before + last->to - last->from : 0};
	return &x->span[x->n++];
}

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

int64_t sim_oracle_troubled(const struct sim_oracle *o, int64_t from, int64_t to)
{
	int64_t sum = 0;
	for (size_t k = 0; k < o->trouble.n; k++) {
		const struct sim_span *x = &o->trouble.span[k];
		int64_t a = x->from > from ? x->from : from, b = x->to < to ? x->to : to;
		sum += b > a ? b - a : 0;
	}
	for (uint32_t k = 0; k <= SIM_READERS_MAX; k++)
		if (o->down_at[k] >= 0)
			sum += to - (o->down_at[k] > from ? o->down_at[k] : from);
	return sum;
}

void sim_oracle_trouble(struct sim *s, const struct sim_trouble *t)
{
	int64_t now = sim_oracle_mono(s), length_ns = t->kind == SIM_HOST_SLEEPS ? 0 : t->length_ns;
	if (t->kind == SIM_PIPES_SLOW)
		length_ns += 2 * t->arg;
	add_span(&s->oracle.trouble, now, now + length_ns + RECOVERY_NS);
}

void sim_oracle_link(struct sim *s, uint32_t k, bool up)
{
	struct sim_oracle *o = &s->oracle;
	int64_t now = sim_oracle_mono(s);
	if (up && o->down_at[k] >= 0)
		add_span(&o->trouble, o->down_at[k], now + RECOVERY_NS);
	if (up != (o->down_at[k] < 0))
		o->down_at[k] = up ? -1 : now;
	if (k < s->plan.readers)
		o->back[k] = 0;
}

/* --- blindness --------------------------------------------------------------- */

/* Blind for as long as this: do the troubles of the time explain it? */
static void explain(struct sim *s, int64_t from, int64_t to)
{
	const struct sim_oracle *o = &s->oracle;
	int64_t each_ns = s->plan.conf.grace_ms * HW_NS_PER_MS + 20 * HW_NS_PER_S, may_ns = each_ns;
	for (size_t k = 0; k < o->trouble.n; k++) {
		const struct sim_span *x = &o->trouble.span[k];
		if (x->to > from - 65 * HW_NS_PER_S && x->from < to)
			may_ns += x->to - x->from + each_ns;
	}
	for (uint32_t k = 0; k <= SIM_READERS_MAX; k++)
		if (o->down_at[k] >= 0 && o->down_at[k] < to)
			may_ns += to - o->down_at[k] + each_ns;
	if (to - from > may_ns)
		sim_breach(s, "blind for %.3f s, and no trouble explains more than %.3f s", (double)(to - from) / 1e9,
		           (double)may_ns / 1e9);
}

static void close_blind(struct sim *s, const struct hw_blind *b)
{
	struct sim_oracle *o = &s->oracle;
	o->blind_open = false;
	add_span(&o->blind, o->blind_from, b->until.ns)->put_back = o->put_back;
	explain(s, o->blind_from, b->until.ns);
	if (b->ended_lossy)
		o->lossy_end = b->until.ns;
	sim_trace(s, hw_cause_name(b->first), b->ended_lossy, b->until.ns - o->blind_from);
}

void sim_oracle_watch(struct sim *s)
{
	struct sim_oracle *o = &s->oracle;
	const struct hw_blind *b = hw_monitor_blind(s->host.m);
	if (b->periods != o->periods) {
		/* One may end in the moment in which the next begins. */
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

void sim_oracle_started(struct sim *s)
{
	struct sim_oracle *o = &s->oracle;
	o->started = s->now;
	o->told_blind = true;
	o->amnesia = false;
	o->periods = 0;
	o->periods_told = 1;
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
	bool stored = !s->store.away && !o->amnesia && !s->host.load_wanted;
	if (!o->blind_open) {
		o->blind_open = true;
		o->blind_from = sim_oracle_mono(s);
		o->put_back = 0;
	}
	for (uint32_t r = 0; r <= s->plan.readers; r++)
		sim_oracle_link(s, r, false);
	for (uint32_t i = 0; i < s->plan.devices; i++) {
		struct sim_watched *w = &o->watched[i];
		struct sim_record r = sim_store_newest(s, i);
		int64_t off_ms = r.own_timeout_ms - w->own_ms; /* a rounding in the core is not held against it */
		if (stored && r.known && w->state != HW_STATE_PROVISIONAL && (off_ms < 0 || off_ms > 1))
			sim_breach(s, "d%u: its own timeout, %lld ms, is on its way to no store (there: %lld)", i,
			           (long long)w->own_ms, (long long)r.own_timeout_ms);
		w->read = w->said_own = false;
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

void sim_oracle_arrived(struct sim *s, uint32_t i)
{
	struct sim_watched *w = &s->oracle.watched[i];
	sim_note(s, "arrives", i, 0);
	w->arrival[w->arrivals++ % SIM_ARRIVALS] = sim_oracle_mono(s);
}

void sim_oracle_read(struct sim *s, uint32_t i, int64_t timeout_ms)
{
	struct sim_watched *w = &s->oracle.watched[i];
	sim_note(s, "is read", i, timeout_ms);
	w->read = true;
	w->read_at = sim_oracle_mono(s);
	w->own_ms = own_after(w->own_ms, timeout_ms);
	w->said_own |= timeout_ms >= 0;
}

/* A timeout that a device asked for just before a crash, and that had not reached the store, is not known any more. */
void sim_oracle_loaded(struct sim *s, uint32_t i, const struct sim_record *r)
{
	struct sim_watched *w = &s->oracle.watched[i];
	if (w->state != HW_STATE_PROVISIONAL)
		return; /* what was heard without the store is news, and stays */
	w->state = r->state;
	w->seq = r->seq;
	if (!w->said_own)
		w->own_ms = r->own_timeout_ms;
}

void sim_oracle_goodbye(struct sim *s, uint32_t i)
{
	sim_note(s, "says goodbye", i, 0);
	s->oracle.watched[i].goodbye_at = sim_oracle_mono(s);
}

void sim_oracle_barrier(struct sim *s, uint64_t number)
{
	sim_note(s, "barrier", (int64_t)number, 0);
	s->oracle.sent_at[number % SIM_NUMBERS] = sim_oracle_mono(s);
}

void sim_oracle_back(struct sim *s, uint32_t reader, uint64_t number)
{
	sim_note(s, "back", (int64_t)number, reader);
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

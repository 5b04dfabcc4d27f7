/* SPDX-License-Identifier: MIT */
/* See sim_world.h. */
#include "sim_world.h"

#include <string.h>

#include "sim.h"

#define NEARLY_FULL  90
#define STALL_NS     (500 * HW_NS_PER_MS)
#define SUSPENDED_NS (500 * HW_NS_PER_MS)
#define CANARY_NS    (500 * HW_NS_PER_MS) /* the time until a canary is sent again and is back */
#define LOSSY_NS     (5 * HW_NS_PER_S)
#define PACE_MIN_NS  (250 * HW_NS_PER_MS)
#define PACE_MAX_NS  (5 * HW_NS_PER_S)
#define ROUNDING_NS  HW_NS_PER_MS

void sim_world_init(struct sim *s)
{
	struct sim_world *w = &s->world;
	for (enum sim_hindrance k = 0; k < SIM_HINDRANCES; k++)
		w->from[k] = -1;
	for (int g = 0; g < SIM_GROUPS_MAX; g++)
		w->mute_from[g] = w->lost_of[g] = -1;
}

void sim_world_fini(struct sim *s)
{
	free(s->world.blinding.span);
	free(s->world.hindered.span);
	for (int g = 0; g < SIM_GROUPS_MAX; g++)
		free(s->world.muted[g].span);
}

/* --- lengths ----------------------------------------------------------------- */

static int64_t max64(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t grace_ns(const struct sim *s)
{
	return s->plan.conf.grace_ms * HW_NS_PER_MS;
}

static int64_t timeout_ns(const struct sim *s)
{
	return s->plan.conf.barrier_timeout_ms * HW_NS_PER_MS;
}

static int64_t slow_ns(const struct sim *s)
{
	return s->plan.conf.barrier_slow_ms * HW_NS_PER_MS;
}

/* Returns a group's timeout, or its timeout before a reload if that was longer. */
static int64_t longest_ns(const struct sim *s, uint32_t g)
{
	return max64(s->plan.timeout_ns[g], s->plan.timeout_was_ns[g]);
}

/* Returns the longest time between two barriers. */
static int64_t pace_ns(const struct sim *s)
{
	int64_t shortest_ns = longest_ns(s, 0);
	for (uint32_t g = 1; g < s->plan.groups; g++)
		shortest_ns = longest_ns(s, g) < shortest_ns ? longest_ns(s, g) : shortest_ns;
	return shortest_ns / 4 > PACE_MAX_NS ? PACE_MAX_NS : max64(shortest_ns / 4, PACE_MIN_NS);
}

/* Returns the time of a few round trips, if nothing is slow. */
static int64_t trips_ns(const struct sim *s)
{
	return 50 * HW_NS_PER_MS + 6 * (s->plan.delay_ns + s->plan.service_ns * 40);
}

/* After a silence of this length, the monitor must have noticed that it does not receive. */
static int64_t noticed_ns(const struct sim *s)
{
	return 2 * (pace_ns(s) + timeout_ns(s)) + 2 * HW_NS_PER_S;
}

/* Returns by how much a blindness may begin before its cause: at the last good barrier, or at the last check. */
static int64_t lead_ns(const struct sim *s, enum sim_hindrance k, int64_t length_ns)
{
	switch (k) {
	case SIM_MACHINE:
		return 2 * s->plan.tick_ns + ROUNDING_NS;
	case SIM_SLOWNESS: /* The monitor counts barriers as refused since the last one that returned. Barriers that
	                    * a lost publisher left under way do not count, so that time may be long ago. */
		return length_ns < timeout_ns(s) ? ROUNDING_NS : max64(pace_ns(s) + trips_ns(s), s->world.slow_lead_ns);
	default:
		return ROUNDING_NS;
	}
}

/* Returns by how much a blindness may end after its cause. After a lossy blindness, devices get time to reconnect. */
static int64_t tail_ns(const struct sim *s, enum sim_hindrance k, int64_t length_ns)
{
	switch (k) {
	case SIM_SILENCE:
		return trips_ns(s);
	case SIM_LOAD_HIGH:
		return trips_ns(s) + 2 * s->world.slowest_ns;
	case SIM_LOSS:
		return ROUNDING_NS;
	case SIM_MACHINE:
		return grace_ns(s) + s->plan.tick_ns + ROUNDING_NS;
	case SIM_PROCESS:
	case SIM_THREAD:
		return ROUNDING_NS + (length_ns > LOSSY_NS ? grace_ns(s) : 0);
	case SIM_SLOWNESS:
		return ROUNDING_NS + (length_ns > LOSSY_NS || length_ns > timeout_ns(s) ? grace_ns(s) : 0);
	default:
		return ROUNDING_NS + grace_ns(s);
	}
}

/* --- spans ------------------------------------------------------------------- */

struct sim_span *sim_spans_add(struct sim_spans *x, int64_t from, int64_t to)
{
	if (x->n == x->cap) {
		size_t cap = x->cap ? 2 * x->cap : 16;
		x->span = realloc(x->span, cap * sizeof(*x->span));
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

/* Adds a span, and merges it with those that it overlaps. Spans are added in the order of their ends. */
static void add_merged(struct sim_spans *x, int64_t from, int64_t to)
{
	while (x->n > 0 && x->span[x->n - 1].to >= from) {
		const struct sim_span *last = &x->span[--x->n];
		from = last->from < from ? last->from : from;
		to = max64(last->to, to);
	}
	sim_spans_add(x, from, to);
}

/* Whether the hindrance itself blinds the monitor. Each of the others has one of these as its effect. */
static bool is_reason(enum sim_hindrance k)
{
	return k != SIM_SILENCE && k != SIM_UNSENT && k != SIM_LOAD_HIGH && k != SIM_UNCARRIED;
}

/* Returns until when, from `at` on, there were hindrances without a gap; `at` itself if there was none. */
static int64_t hindered_until(const struct sim *s, int64_t at, int64_t now)
{
	const struct sim_world *w = &s->world;
	int64_t until = at;
	for (enum sim_hindrance k = 0; k < SIM_HINDRANCES; k++)
		if (w->from[k] >= 0 && is_reason(k) && w->from[k] - lead_ns(s, k, now - w->from[k]) <= at)
			until = max64(until, now);
	for (size_t k = w->blinding.n; k > 0 && w->blinding.span[k - 1].to >= at; k--)
		if (w->blinding.span[k - 1].from <= at)
			until = max64(until, w->blinding.span[k - 1].to);
	return until;
}

int64_t sim_world_hindered_ns(const struct sim *s, int64_t from, int64_t to)
{
	const struct sim_world *w = &s->world;
	int64_t sum = 0, open = to;
	for (enum sim_hindrance k = 0; k < SIM_HINDRANCES; k++)
		if (w->from[k] >= 0 && w->from[k] - lead_ns(s, k, to - w->from[k]) < open)
			open = w->from[k] - lead_ns(s, k, to - w->from[k]);
	open = max64(open, from);
	for (size_t k = w->hindered.n; k > 0 && w->hindered.span[k - 1].to > from; k--) {
		const struct sim_span *x = &w->hindered.span[k - 1];
		int64_t a = max64(x->from, from), b = x->to < open ? x->to : open;
		sum += b > a ? b - a : 0;
	}
	return sum + to - open;
}

int64_t sim_world_muted_ns(const struct sim *s, unsigned g, int64_t from, int64_t to)
{
	const struct sim_spans *x = &s->world.muted[g];
	int64_t sum = s->world.mute_from[g] >= 0 ? to - max64(s->world.mute_from[g], from) : 0;
	for (size_t k = x->n; k > 0 && x->span[k - 1].to > from; k--) {
		int64_t a = max64(x->span[k - 1].from, from), b = x->span[k - 1].to < to ? x->span[k - 1].to : to;
		sum += b > a ? b - a : 0;
	}
	return sum;
}

/* Whether the core has reported blindness, by the oracle's record, during all the time between two moments. */
static bool said_blind(const struct sim_oracle *o, int64_t from, int64_t to)
{
	int64_t at = to;
	if (o->blind_open && o->blind_from <= at)
		at = o->blind_from;
	for (size_t k = o->blind.n; k > 0 && at > from && o->blind.span[k - 1].to >= at; k--)
		if (o->blind.span[k - 1].from < at)
			at = o->blind.span[k - 1].from;
	return at <= from;
}

/* --- what must be noticed ---------------------------------------------------- */

static const char *const names[SIM_HINDRANCES] = {
	[SIM_PROCESS] = "its process stood still",    [SIM_MACHINE] = "its machine slept",
	[SIM_READER] = "a reader was not connected",  [SIM_UNSENT] = "its publisher was not connected",
	[SIM_PUBLISHER] = "no barrier had come back", [SIM_SILENCE] = "nothing got through",
	[SIM_SLOWNESS] = "barriers were slow",        [SIM_LOSS] = "messages were dropped",
};

static void must_be_lossy(struct sim *s, enum sim_hindrance k, int64_t from, int64_t to)
{
	if (!s->oracle.blind_open && s->oracle.lossy_end < to)
		sim_breach(s, "it holds for lossless that %s, for %.3f s", names[k], (double)(to - from) / 1e9);
}

static void must_be_blind(struct sim *s, enum sim_hindrance k, int64_t from, int64_t to, bool lossy)
{
	const struct sim_oracle *o = &s->oracle;
	if (from >= to)
		return;
	if (!said_blind(o, from, to))
		sim_breach(s, "it says that it saw at times in which %s, for %.3f s", names[k],
		           (double)(to - from) / 1e9);
	else if (lossy)
		must_be_lossy(s, k, from, to);
}

/* A hindrance that is over must have been noticed. A core that was killed need not have noticed anything. */
static void check_noticed(struct sim *s, enum sim_hindrance k, int64_t from, int64_t to)
{
	int64_t latest_ns = s->plan.tick_ns + ROUNDING_NS;
	if (!s->host.m)
		return;
	if (k == SIM_READER)
		must_be_blind(s, k, from, to, true);
	else if (k == SIM_MACHINE && s->host.slept_ns - s->world.slept_ns > SUSPENDED_NS)
		must_be_lossy(s, k, from, to);
	else if (k == SIM_PROCESS && !s->world.absent && to - from > STALL_NS + latest_ns)
		must_be_blind(s, k, from + latest_ns, to, to - from > LOSSY_NS + latest_ns);
	else if (k == SIM_THREAD && !s->host.stopped && !s->host.asleep && to - from > STALL_NS)
		must_be_blind(s, k, to - ROUNDING_NS, to, to - from > LOSSY_NS);
	else if (k == SIM_SILENCE || k == SIM_UNSENT)
		must_be_blind(s, k, from + noticed_ns(s), to, k == SIM_UNSENT);
}

bool sim_world_is_deafened(const struct sim *s)
{
	const struct sim_world *w = &s->world;
	int64_t now = sim_oracle_mono(s);
	return w->from[SIM_READER] >= 0 || (w->from[SIM_SILENCE] >= 0 && now - w->from[SIM_SILENCE] > noticed_ns(s));
}

/* --- what must have a cause -------------------------------------------------- */

static void check_explained(struct sim *s, int64_t now)
{
	const struct sim_oracle *o = &s->oracle;
	for (; s->world.checked < o->blind.n; s->world.checked++) {
		const struct sim_span *x = &o->blind.span[s->world.checked];
		int64_t at = x->from, until;
		while (at < x->to && (until = hindered_until(s, at, now)) > at)
			at = until;
		if (at < x->to)
			sim_breach(s, "blind from %.6f to %.6f s, and nothing was wrong at %.6f s",
			           (double)(x->from - SIM_BOOTED_NS) / 1e9, (double)(x->to - SIM_BOOTED_NS) / 1e9,
			           (double)(at - SIM_BOOTED_NS) / 1e9);
	}
}

bool sim_world_is_believed(const struct sim *s, unsigned g)
{
	int64_t from = s->world.mute_from[g], bound_ns = max64(3 * s->plan.timeout_ns[g], 30 * HW_NS_PER_S);
	unsigned online = 0;
	for (uint32_t i = 0; i < s->plan.devices; i++)
		online += s->fleet.device[i].group == g && s->oracle.watched[i].state == HW_STATE_ONLINE;
	/* The first part of the silence may have been the devices' own. */
	int64_t silent_ns = sim_oracle_mono(s) - from + s->plan.timeout_ns[g];
	return s->plan.no_canary[g] && from >= 0 && (online < 2 || silent_ns >= bound_ns);
}

/* Whether the monitor may learn only now what happened to a group at `then`. Time in which the monitor was hindered
 * does not count. */
static bool may_be_news(const struct sim *s, uint32_t g, int64_t then)
{
	int64_t now = sim_oracle_mono(s), unhindered_ns = now - then - sim_world_hindered_ns(s, then, now);
	return unhindered_ns < longest_ns(s, g) + trips_ns(s) + pace_ns(s);
}

bool sim_world_may_be_deaf(const struct sim *s, unsigned g)
{
	const struct sim_world *w = &s->world;
	if (s->plan.no_canary[g]) /* such a filter counts as deaf for a while if no device sends on it */
		return true;
	return w->mute_from[g] >= 0 ||
	       (w->muted[g].n > 0 && may_be_news(s, g, w->muted[g].span[w->muted[g].n - 1].to)) ||
	       (w->lost_of[g] >= 0 && may_be_news(s, g, w->lost_of[g]));
}

/* --- looking ----------------------------------------------------------------- */

/* Returns since when a barrier has been under way; `now` if none is. */
static int64_t under_way_since(const struct sim *s, int64_t now)
{
	const struct sim_world *w = &s->world;
	int64_t since = now;
	if (!s->host.link[s->plan.readers].up)
		return now;
	for (uint32_t r = 0; r < s->plan.readers; r++) {
		int64_t sent = s->oracle.sent_at[(w->back[r] + 1) % SIM_NUMBERS];
		if (s->host.link[r].up && w->back[r] < w->sent && sent < since)
			since = sent;
	}
	return since;
}

/* Returns since when messages may have been lost: since the last good barrier. */
static int64_t good_since(const struct sim *s, int64_t now)
{
	int64_t since = now;
	for (uint32_t r = 0; r < s->plan.readers; r++)
		if (s->world.good_at[r] < since)
			since = s->world.good_at[r];
	return since;
}

/* Returns since when a reader has been stopped; -1: none is. */
static int64_t stopped_since(const struct sim *s)
{
	int64_t since = -1;
	for (uint32_t r = 0; r < s->plan.readers; r++)
		if (s->host.m && s->host.reader_stopped[r] >= 0 && (since < 0 || s->host.reader_stopped[r] < since))
			since = s->host.reader_stopped[r];
	return since;
}

static bool all_up(const struct sim *s)
{
	for (uint32_t r = 0; r < s->plan.readers; r++)
		if (!s->host.link[r].up)
			return false;
	return true;
}

/* Returns the last barrier that is back on every reader. */
static uint64_t back_on_all(const struct sim *s)
{
	uint64_t back = s->world.back[0];
	for (uint32_t r = 1; r < s->plan.readers; r++)
		if (s->world.back[r] < back)
			back = s->world.back[r];
	return back;
}

/* Whether a reader's buffer is nearly full. A connection that the broker has closed counts too, because its content
 * is read before its end. */
static bool nearly_full(const struct sim *s)
{
	for (uint32_t r = 0; r < s->plan.readers; r++)
		if (sim_broker_fill(s, r) > NEARLY_FULL)
			return true;
	return false;
}

/* Whether the backlog begins during another hindrance that blinds, or at the end of one. */
static bool is_aftermath(const struct sim_world *w, int64_t now)
{
	return w->from[SIM_BACKLOG] >= 0 || (w->blinding.n > 0 && w->blinding.span[w->blinding.n - 1].to >= now);
}

/* Returns since when this hindrance has lasted; -1: it does not exist now. */
static int64_t since(struct sim *s, enum sim_hindrance k, int64_t now)
{
	struct sim_world *w = &s->world;
	const struct sim_host *h = &s->host;
	int64_t way = under_way_since(s, now);
	switch (k) {
	case SIM_PROCESS:
		return !h->m || h->stopped ? now : -1;
	case SIM_THREAD:
		return stopped_since(s);
	case SIM_MACHINE:
		return h->asleep || h->slept_ns != h->slept_known_ns ? now : -1;
	case SIM_READER:
		return !h->m || !all_up(s) ? now : -1;
	case SIM_UNSENT:
		return h->m && !h->stopped && all_up(s) && !h->link[s->plan.readers].up ? now : -1;
	case SIM_PUBLISHER:
		return !h->m || !h->link[s->plan.readers].up || !w->proven ? now : -1;
	case SIM_SILENCE:
		return h->m && !h->stopped && (s->broker.state != SIM_RUNNING || s->broker.cut) ? now : -1;
	case SIM_BACKLOG:
		return sim_host_is_behind(s) && is_aftermath(w, now) ? now : -1;
	case SIM_UNCARRIED:
		return h->m && h->link[s->plan.readers].up && s->broker.client[s->plan.devices + s->plan.readers].lost
		               ? now
		               : -1;
	case SIM_LOAD_HIGH:
		return s->broker.delay_ns > s->plan.delay_ns || s->broker.service_ns > s->plan.service_ns ? now : -1;
	case SIM_SLOWNESS: /* what a stopped reader has not delivered stays late, even without a publisher */
		return now - way >= slow_ns(s) ? way : w->from[k] >= 0 && stopped_since(s) >= 0 ? now : -1;
	default:
		if (nearly_full(s))
			w->loss_number = w->sent + 1;
		return w->loss_number > back_on_all(s) ? good_since(s, way) : -1;
	}
}

static void begin(struct sim *s, enum sim_hindrance k, int64_t from)
{
	if (s->world.from[k] >= 0)
		return;
	s->world.from[k] = from;
	if (k == SIM_SLOWNESS)
		s->world.slow_lead_ns = from - good_since(s, from) + ROUNDING_NS;
	if (k == SIM_LOAD_HIGH)
		s->world.slowest_ns = s->broker.delay_ns + s->broker.service_ns * 40;
	if (k == SIM_MACHINE)
		s->world.slept_ns = s->host.slept_ns;
}

static void over(struct sim *s, enum sim_hindrance k, int64_t now)
{
	struct sim_world *w = &s->world;
	int64_t from = w->from[k];
	w->from[k] = -1;
	check_noticed(s, k, from, now);
	if (k == SIM_PROCESS)
		w->absent = false;
	if (k == SIM_READER)
		w->up_at = now;
	int64_t first = from - lead_ns(s, k, now - from), last = now + tail_ns(s, k, now - from);
	if (is_reason(k))
		add_merged(&w->blinding, first, last);
	add_merged(&w->hindered, first, last);
}

/* If barriers have been under way for a timeout, the monitor may count them as refused until one is back. */
static void note_slowness(struct sim *s, int64_t now)
{
	int64_t way = under_way_since(s, now);
	if (now - way >= slow_ns(s))
		begin(s, SIM_SLOWNESS, way);
	if (now - way >= timeout_ns(s))
		s->world.proven = false;
}

void sim_world_gives_up(struct sim *s, uint32_t r)
{
	const struct sim_world *w = &s->world;
	int64_t sent = s->oracle.sent_at[(w->back[r] + 1) % SIM_NUMBERS], now = sim_oracle_mono(s);
	if (w->back[r] >= w->sent || now - sent < timeout_ns(s))
		sim_breach(s, "reader %u is to connect anew, and nothing is wrong with it", r);
	note_slowness(s, now);
}

/* Checks that the monitor notices a connection of barriers that carries nothing, even if other packets arrive. */
static void check_uncarried(struct sim *s, int64_t now)
{
	struct sim_world *w = &s->world;
	bool else_hinders = w->from[SIM_UNCARRIED] < 0 || stopped_since(s) >= 0 || nearly_full(s);
	for (enum sim_hindrance k = SIM_PROCESS; k <= SIM_READER; k++)
		else_hinders |= w->from[k] >= 0;
	else_hinders |= w->from[SIM_SILENCE] >= 0 || w->from[SIM_LOAD_HIGH] >= 0 || w->from[SIM_LOSS] >= 0;
	if (else_hinders)
		w->uncarried_alone = now;
	if (now - w->uncarried_alone > noticed_ns(s) + 8 * w->slowest_ns && !s->oracle.blind_open)
		sim_breach(s, "it says that it sees, and for %.3f s its barriers' connection has carried nothing",
		           (double)(now - w->uncarried_alone) / 1e9);
}

void sim_world_look(struct sim *s)
{
	struct sim_world *w = &s->world;
	int64_t now = sim_oracle_mono(s);
	note_slowness(s, now);
	for (enum sim_hindrance k = 0; k < SIM_HINDRANCES; k++) {
		int64_t from = since(s, k, now);
		if (from < 0 && w->from[k] >= 0)
			over(s, k, now);
		else if (from >= 0)
			begin(s, k, from);
	}
	w->absent |= !s->host.m;
	check_uncarried(s, now);
	for (unsigned g = 0; g < s->plan.groups; g++) {
		if (s->broker.mute[g] == 0 && w->mute_from[g] >= 0)
			sim_spans_add(&w->muted[g], w->mute_from[g], now + CANARY_NS);
		w->mute_from[g] = s->broker.mute[g] == 0 ? -1 : w->mute_from[g] < 0 ? now : w->mute_from[g];
	}
	check_explained(s, now);
}

void sim_world_started(struct sim *s)
{
	struct sim_world *w = &s->world;
	w->sent = w->sent_before_up = w->loss_number = 0;
	w->proven = false;
	w->slept_ns = s->host.slept_ns;
	memset(w->back, 0, sizeof(w->back));
}

void sim_world_barrier(struct sim *s, uint64_t number)
{
	s->world.sent = number;
}

void sim_world_back(struct sim *s, uint32_t r, uint64_t number)
{
	if (number <= s->world.back[r])
		return;
	s->world.back[r] = number;
	if (sim_oracle_mono(s) - s->oracle.sent_at[number % SIM_NUMBERS] >= slow_ns(s))
		begin(s, SIM_SLOWNESS, s->oracle.sent_at[number % SIM_NUMBERS]);
	s->world.proven |= number > s->world.sent_before_up;
	s->world.good_at[r] = sim_oracle_mono(s);
}

/* Called when a link is connected or lost. Packets on their way are lost with their connection. */
void sim_world_link(struct sim *s, uint32_t k, bool up)
{
	struct sim_world *w = &s->world;
	if (!up)
		note_slowness(s, sim_oracle_mono(s));
	if (k < s->plan.readers && up) {
		w->back[k] = w->sent;
		w->good_at[k] = sim_oracle_mono(s);
	}
	if (k < s->plan.readers)
		return;
	for (uint32_t r = 0; r < s->plan.readers; r++)
		w->back[r] = w->sent;
	w->sent_before_up = w->sent;
	w->proven = false;
}

void sim_world_loses(struct sim *s, unsigned group)
{
	s->world.loss_number = s->world.sent + 1;
	if (group < SIM_GROUPS_MAX)
		s->world.lost_of[group] = sim_oracle_mono(s);
}

/* SPDX-License-Identifier: MIT */
/*
 * See sight.h. Invariant: sent - back <= HW_BARRIERS_OUT for every reader that is up, so sent_at[] holds the moment of
 * every barrier that is still out. Cost: O(readers) a step.
 */
#include "sight.h"

#include <string.h>

#define TICK_NS (HW_NS_PER_S / HW_TICKS_PER_S + 1)
#define LOSSY_AFTER_NS                                                                                                 \
	(5 * HW_NS_PER_S) /* a pause this long has outlived keepalives: what came meanwhile is not all there */
#define KEEPALIVE_LEAST_NS (3 * HW_NS_PER_S / 2) /* the shortest there is is a second, and half of it is added */
#define RECONNECT_MAX_NS   (60 * HW_NS_PER_S)
#define DENIED_AFTER       12 /* barrier timeouts: no backlog is that old, so barriers that are still out were refused */

static const struct hw_mono FOREVER = {INT64_MAX};

static struct hw_mono sooner(struct hw_mono a, struct hw_mono b)
{
	return a.ns < b.ns ? a : b;
}

static int64_t max64(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

void hw_sight_configure(struct hw_sight *s, const struct hw_monitor_conf *conf)
{
	s->grace_ns = conf->grace_ms * HW_NS_PER_MS;
	s->slow_ns = conf->barrier_slow_ms * HW_NS_PER_MS;
	s->timeout_ns = conf->barrier_timeout_ms * HW_NS_PER_MS;
}

void hw_sight_init(struct hw_sight *s, const struct hw_monitor_conf *conf, struct hw_mono now)
{
	memset(s, 0, sizeof *s);
	hw_blind_init(&s->blind);
	hw_sight_configure(s, conf);
	s->n_readers = conf->readers;
	for (unsigned i = 0; i < s->n_readers; i++)
		s->reader[i].reconnect_wait_ns = s->timeout_ns;
	hw_blind_begin(&s->blind, HW_CAUSE_LINK, now, true);
}

static bool all_up(const struct hw_sight *s)
{
	for (unsigned i = 0; i < s->n_readers; i++)
		if (!s->reader[i].up)
			return false;
	return true;
}

/* The least number that every reader has seen come back. */
static uint64_t back_on_all(const struct hw_sight *s)
{
	uint64_t back = UINT64_MAX;
	for (unsigned i = 0; i < s->n_readers; i++)
		if (s->reader[i].back < back)
			back = s->reader[i].back;
	return back;
}

/* A lossy cause is over once devices have had the time to come back; any other at once. */
static void end_cause(struct hw_sight *s, enum hw_cause cause, struct hw_mono now, bool lossy)
{
	if (!(s->blind.active & 1u << cause))
		return;
	if (lossy && s->grace_ns > 0)
		s->hold[cause] = hw_mono_add(now, s->grace_ns);
	else
		hw_blind_end(&s->blind, cause, now);
}

static void begin_cause(struct hw_sight *s, enum hw_cause cause, struct hw_mono at, bool lossy)
{
	s->hold[cause].ns = 0;
	hw_blind_begin(&s->blind, cause, at, lossy);
}

static struct hw_sight_pause *pause_of(struct hw_sight *s, enum hw_cause cause)
{
	return cause == HW_CAUSE_STALL ? &s->stall : &s->standstill;
}

/* A pause in the grace of an earlier one interrupts that grace, and does not begin it anew: or else short pauses, each
 * within the grace of the one before, would blind for ever. */
static void begin_pause(struct hw_sight *s, enum hw_cause cause, struct hw_mono at, bool lossy)
{
	struct hw_sight_pause *p = pause_of(s, cause);
	bool lasts = s->blind.active & 1u << cause, in_grace = lasts && s->hold[cause].ns;
	if (!lasts || in_grace)
		*p = (struct hw_sight_pause){.since = at, .hold = in_grace ? s->hold[cause] : (struct hw_mono){0}};
	begin_cause(s, cause, at, lossy);
}

/* Goodbyes are doubted until so many more barriers are back; never for fewer than before. */
static void doubt(struct hw_sight *s, unsigned barriers)
{
	if (s->sent + barriers > s->doubt)
		s->doubt = s->sent + barriers;
}

/* A pause is lossless unless it was long. */
static void end_pause(struct hw_sight *s, enum hw_cause cause, struct hw_mono now)
{
	const struct hw_sight_pause *p = pause_of(s, cause);
	if (!(s->blind.active & 1u << cause) || s->hold[cause].ns)
		return;
	bool lossy = now.ns - p->since.ns > LOSSY_AFTER_NS;
	if (lossy) {
		begin_cause(s, cause, now, true);
		doubt(s, 2);
	}
	if (!lossy && p->hold.ns > now.ns)
		s->hold[cause] = p->hold;
	else
		end_cause(s, cause, now, lossy);
}

/* A reader no longer stands still; the standstill is over with the last that did. */
static void moves(struct hw_sight *s, struct hw_sight_reader *r, struct hw_mono now)
{
	if (!r->still)
		return;
	r->still = false;
	for (unsigned i = 0; i < s->n_readers; i++)
		if (s->reader[i].still)
			return;
	/* Past the shortest keepalive the broker may have given devices up: it says so in its next turns. */
	doubt(s, now.ns - s->standstill.since.ns > KEEPALIVE_LEAST_NS ? 2 : 0);
	end_pause(s, HW_CAUSE_STANDSTILL, now);
}

void hw_sight_link(struct hw_sight *s, struct hw_mono now, unsigned reader, bool up)
{
	struct hw_sight_reader *r = &s->reader[reader];
	if (r->up == up)
		return;
	r->up = up;
	s->floor = s->sent;
	if (up) {
		r->back = s->sent;
		r->ever = false;
		r->arrived = r->good = now;
		if (all_up(s))
			end_cause(s, HW_CAUSE_LINK, now, true);
		return;
	}
	begin_cause(s, HW_CAUSE_LINK, now, true);
	moves(s, r, now); /* the link's own blindness goes on where a standstill was */
}

void hw_sight_publisher(struct hw_sight *s, bool up)
{
	s->publisher_up = up;
	if (up)
		return;
	/* What it had not sent is gone: the readers must not take that for a loss of their own, nor wait for it. */
	s->floor = s->sent;
	for (unsigned i = 0; i < s->n_readers; i++)
		s->reader[i].back = s->sent;
}

void hw_sight_arrived(struct hw_sight *s, struct hw_mono now, unsigned reader)
{
	s->reader[reader].arrived = now;
	moves(s, &s->reader[reader], now);
}

/* Blind from `from` until now, all of it past: what was lost in it cannot be told from silence. */
static void lost_between(struct hw_sight *s, struct hw_mono from, struct hw_mono now)
{
	hw_blind_begin(&s->blind, HW_CAUSE_LOSS, from, true);
	hw_blind_end(&s->blind, HW_CAUSE_LOSS, now);
	s->floor = s->sent;
}

void hw_sight_barrier(struct hw_sight *s, struct hw_mono now, unsigned reader, uint64_t number)
{
	struct hw_sight_reader *r = &s->reader[reader];
	hw_sight_arrived(s, now, reader);
	if (!r->up || number <= r->back || number > s->sent)
		return;
	struct hw_mono sent = s->sent_at[number % HW_BARRIERS_OUT];
	int64_t rtt = now.ns - sent.ns;
	if (sent.ns >= s->awake.ns) /* else it has waited for us, not for the broker */
		s->rtt_ns = s->rtt_ns ? s->rtt_ns + (rtt - s->rtt_ns) / 8 : rtt;
	if (number > r->back + 1)
		lost_between(s, r->good, now);
	r->back = number;
	r->good = now;
	r->ever = true;
	r->reconnect_wait_ns = s->timeout_ns;
	s->barriers_back++;
	if (!s->hold[HW_CAUSE_BARRIER].ns)
		end_cause(s, HW_CAUSE_BARRIER, now, true);
}

void hw_sight_loss(struct hw_sight *s, struct hw_mono now, unsigned reader)
{
	lost_between(s, s->reader[reader].good, now);
}

void hw_sight_stall(struct hw_sight *s, struct hw_mono planned, struct hw_mono now)
{
	begin_pause(s, HW_CAUSE_STALL, planned, now.ns - planned.ns > LOSSY_AFTER_NS);
	s->awake = now;
}

void hw_sight_drained(struct hw_sight *s, struct hw_mono now)
{
	end_pause(s, HW_CAUSE_STALL, now);
}

void hw_sight_suspended(struct hw_sight *s, struct hw_mono since, struct hw_mono now)
{
	begin_cause(s, HW_CAUSE_SUSPEND, since, true);
	doubt(s, 1);
	end_cause(s, HW_CAUSE_SUSPEND, now, true);
}

uint64_t hw_sight_tag(const struct hw_sight *s)
{
	return s->sent + 2;
}

/* What was lost on the way proves nothing: later barriers must. */
static uint64_t in_force(const struct hw_sight *s, uint64_t tag)
{
	uint64_t least = s->floor + 2;
	return tag > least ? tag : least;
}

bool hw_sight_doubts_goodbyes(const struct hw_sight *s)
{
	return !s->publisher_up || back_on_all(s) < s->doubt;
}

bool hw_sight_proven(const struct hw_sight *s, uint64_t tag)
{
	return all_up(s) && back_on_all(s) >= in_force(s, tag);
}

struct hw_mono hw_sight_pair_sent(const struct hw_sight *s, uint64_t tag)
{
	uint64_t first = in_force(s, tag) - 1;
	if (first > s->sent || s->sent - first >= HW_BARRIERS_OUT)
		return (struct hw_mono){INT64_MIN / 4};
	return s->sent_at[first % HW_BARRIERS_OUT];
}

/* When the next barrier may be sent; FOREVER if it need not or must not be. */
static struct hw_mono barrier_at(const struct hw_sight *s, uint64_t tag, int64_t pace_ns)
{
	if (!s->publisher_up || !all_up(s))
		return FOREVER;
	uint64_t back = back_on_all(s);
	if (s->sent - back >= HW_BARRIERS_OUT - 1)
		return FOREVER;
	struct hw_mono last = s->sent ? s->sent_at[s->sent % HW_BARRIERS_OUT] : (struct hw_mono){0};
	struct hw_mono steady = hw_mono_add(last, pace_ns);
	if (tag)
		tag = in_force(s, tag);
	if (tag <= s->sent)
		return steady;
	if (back == s->sent)
		return (struct hw_mono){0};
	return sooner(steady, hw_mono_add(last, max64(s->rtt_ns / 4, TICK_NS)));
}

/* Since when a reader that is up has heard nothing although a barrier is out; FOREVER if it is not so. */
static struct hw_mono quiet_since(const struct hw_sight *s, const struct hw_sight_reader *r)
{
	if (!r->up || s->sent <= r->back)
		return FOREVER;
	int64_t sent = s->sent_at[(r->back + 1) % HW_BARRIERS_OUT].ns;
	return (struct hw_mono){max64(max64(sent, r->arrived.ns), s->awake.ns)};
}

/*
 * When barriers are refused on this reader, rather than late: nothing at all came since the subscription, or other
 * things did and for so long no barrier that no backlog explains it.
 */
static struct hw_mono denied_at(const struct hw_sight *s, const struct hw_sight_reader *r, struct hw_mono quiet)
{
	struct hw_mono out = {max64(s->sent_at[(r->back + 1) % HW_BARRIERS_OUT].ns, s->awake.ns)};
	if (r->ever)
		return hw_mono_add(out, DENIED_AFTER * s->timeout_ns);
	return sooner(hw_mono_add(quiet, s->timeout_ns), hw_mono_add(out, 2 * s->timeout_ns));
}

/* Whether that is no news. */
static bool denial_is_known(const struct hw_sight *s)
{
	return s->blind.active & 1u << HW_CAUSE_BARRIER && !s->hold[HW_CAUSE_BARRIER].ns;
}

/* How long nothing comes in a standstill. By when the connection is given up it is one in any case: what is lost then
 * was not seen from the silence on. */
static int64_t still_after(const struct hw_sight *s)
{
	int64_t after_ns = max64(s->slow_ns, 4 * s->rtt_ns);
	return after_ns < s->timeout_ns ? after_ns : s->timeout_ns;
}

/* Finds standstill and refusal on one reader. Returns whether its connection should be opened anew. */
static bool check_reader(struct hw_sight *s, struct hw_sight_reader *r, struct hw_mono now)
{
	struct hw_mono quiet = quiet_since(s, r);
	if (quiet.ns == FOREVER.ns)
		return false;
	int64_t quiet_ns = now.ns - quiet.ns;
	if (!r->still && quiet_ns >= still_after(s)) {
		r->still = true;
		begin_pause(s, HW_CAUSE_STANDSTILL, quiet, false);
	}
	bool refused = now.ns >= denied_at(s, r, quiet).ns;
	if (refused && !denial_is_known(s))
		begin_cause(s, HW_CAUSE_BARRIER, r->good, true);
	if ((!refused && quiet_ns < s->timeout_ns) || now.ns < r->reconnect_at.ns)
		return false;
	r->reconnect_at = hw_mono_add(now, r->reconnect_wait_ns);
	r->reconnect_wait_ns =
		2 * r->reconnect_wait_ns < RECONNECT_MAX_NS ? 2 * r->reconnect_wait_ns : RECONNECT_MAX_NS;
	return true;
}

struct hw_sight_do hw_sight_step(struct hw_sight *s, struct hw_mono now, uint64_t tag, int64_t pace_ns)
{
	struct hw_sight_do todo = {.reconnect = -1};
	for (int c = 0; c < HW_CAUSES; c++)
		if (s->hold[c].ns && s->hold[c].ns <= now.ns) {
			hw_blind_end(&s->blind, (enum hw_cause)c, s->hold[c]);
			s->hold[c].ns = 0;
		}
	for (unsigned i = 0; i < s->n_readers && todo.reconnect < 0; i++)
		if (check_reader(s, &s->reader[i], now))
			todo.reconnect = (int)i;
	if (barrier_at(s, tag, pace_ns).ns <= now.ns) {
		s->sent++;
		s->sent_at[s->sent % HW_BARRIERS_OUT] = now;
		todo.barrier = true;
	}
	return todo;
}

struct hw_mono hw_sight_next(const struct hw_sight *s, struct hw_mono now, uint64_t tag, int64_t pace_ns)
{
	struct hw_mono at = barrier_at(s, tag, pace_ns);
	for (int c = 0; c < HW_CAUSES; c++)
		if (s->hold[c].ns)
			at = sooner(at, s->hold[c]);
	for (unsigned i = 0; i < s->n_readers; i++) {
		const struct hw_sight_reader *r = &s->reader[i];
		struct hw_mono quiet = quiet_since(s, r);
		if (quiet.ns == FOREVER.ns)
			continue;
		if (!r->still)
			at = sooner(at, hw_mono_add(quiet, still_after(s)));
		struct hw_mono refused = denied_at(s, r, quiet);
		if (!denial_is_known(s))
			at = sooner(at, refused);
		struct hw_mono reconnect = sooner(refused, hw_mono_add(quiet, s->timeout_ns));
		at = sooner(at, reconnect.ns > r->reconnect_at.ns ? reconnect : r->reconnect_at);
	}
	return at.ns < now.ns ? now : at;
}

/* SPDX-License-Identifier: MIT */
/*
 * See sight.h.
 *
 * Invariant: sent - back < HW_BARRIERS_OUT for each source that is up. So out[] contains when each barrier that is not
 * back was sent, and when the first barrier of each pair was sent. Cost: O(sources) for each step.
 */
#include "sight.h"

#include <errno.h>
#include <string.h>

#define TICK_NS (HW_NS_PER_S / HW_TICKS_PER_S + 1)
/* If messages may overtake each other, and while messages arrive, a barrier is sent after this time: see
 * hw_sight_unordered_ms(). */
#define ORDER_NS  (50 * HW_NS_PER_MS)
#define ORDER_OUT 4 /* unless more than so many barriers are out */
/* Messages may be lost in a longer pause, because keepalives may have run out. */
#define LOSSY_AFTER_NS     (5 * HW_NS_PER_S)
#define LATE_NS            HW_NS_PER_S           /* after which a barrier that is not back is late */
#define KEEPALIVE_LEAST_NS (3 * HW_NS_PER_S / 2) /* the shortest keepalive is 1 s, and brokers add half of it */
#define RECONNECT_MAX_NS   (60 * HW_NS_PER_S)
/* In barrier timeouts: no backlog is older than this, so a barrier that is not back by then was refused. */
#define DENIED_AFTER 12

static int64_t max64(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

void hw_sight_configure(struct hw_sight *s, const struct hw_monitor_conf *conf)
{
	s->grace_ns = conf->grace_ms * HW_NS_PER_MS;
	s->slow_ns = conf->barrier_slow_ms * HW_NS_PER_MS;
	s->timeout_ns = conf->barrier_timeout_ms * HW_NS_PER_MS;
	s->reopen_wait_ns = s->timeout_ns;
}

void hw_sight_init(struct hw_sight *s, const struct hw_monitor_conf *conf, struct hw_mono now)
{
	memset(s, 0, sizeof(*s));
	hw_blind_init(&s->blind);
	hw_sight_configure(s, conf);
	s->overtakes = conf->qos > 0;
	s->lost = true; /* as after a lost link: devices may be reconnecting too */
	for (s->n_there = 0; s->n_there < conf->readers; s->n_there++)
		s->source[s->n_there] = (struct hw_sight_source){.there = true, .reconnect_wait_ns = s->timeout_ns};
	s->n_sources = s->n_there;
	hw_blind_begin(&s->blind, HW_CAUSE_LINK, now, true);
}

static bool all_up(const struct hw_sight *s)
{
	for (unsigned i = 0; i < s->n_sources; i++)
		if (!s->source[i].up)
			return false;
	return s->n_there > 0;
}

/* The last barrier that is back on every source. */
static uint64_t back_on_all(const struct hw_sight *s)
{
	uint64_t back = UINT64_MAX;
	for (unsigned i = 0; i < s->n_sources; i++)
		if (s->source[i].back < back)
			back = s->source[i].back;
	return back;
}

/* Returns when a barrier was sent. The time is known only for the barriers that are not back, and for the last
 * barrier that came back. */
static struct hw_mono sent_at(const struct hw_sight *s, uint64_t number)
{
	return s->out[number % HW_BARRIERS_KEPT].at;
}

/* Ends a cause of blindness. A lossy cause ends after the grace, in which devices reconnect; any other ends at once. */
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

/* Begins a pause. If it begins in the grace of an earlier pause, that grace is over, and does not begin again when
 * this pause ends. Otherwise repeated short pauses would make the monitor blind for ever. */
static void begin_pause(struct hw_sight *s, enum hw_cause cause, struct hw_mono at, bool lossy)
{
	struct hw_sight_pause *p = pause_of(s, cause);
	bool lasts = s->blind.active & 1u << cause, in_grace = lasts && s->hold[cause].ns;
	if (!lasts || in_grace)
		*p = (struct hw_sight_pause){.since = at, .hold = in_grace ? s->hold[cause] : (struct hw_mono){0}};
	begin_cause(s, cause, at, lossy);
}

/* Doubts goodbyes until `barriers` more barriers are back. Never shortens an earlier doubt. */
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

/* Called when a source delivers again. If no other source stands still, the standstill is over. */
static void moves(struct hw_sight *s, struct hw_sight_source *r, struct hw_mono now)
{
	if (!r->still)
		return;
	r->still = r->lasts = false;
	for (unsigned i = 0; i < s->n_sources; i++)
		if (s->source[i].still)
			return;
	doubt(s, 0); /* goodbyes that come before the barriers that are out */
	end_pause(s, HW_CAUSE_STANDSTILL, now);
}

/* If all sources are up, ends the blindness of lost connections, after a grace if a connection was lost. Returns
 * whether all sources are up again after one was lost. */
static bool end_link(struct hw_sight *s, struct hw_mono now)
{
	bool lost = s->lost;
	if (!all_up(s) || !(s->blind.active & 1u << HW_CAUSE_LINK))
		return false;
	s->lost = false;
	if (s->link_grace.ns > now.ns)
		s->hold[HW_CAUSE_LINK] = s->link_grace;
	else
		hw_blind_end(&s->blind, HW_CAUSE_LINK, now);
	return lost;
}

bool hw_sight_link(struct hw_sight *s, struct hw_mono now, unsigned source, bool up)
{
	struct hw_sight_source *r = &s->source[source];
	if (r->up == up)
		return false;
	r->up = up;
	s->floor = s->sent;
	if (up) {
		r->back = s->sent;
		r->ever = false;
		r->arrived = r->good = r->later = now;
		if (!r->fresh)
			s->link_grace = hw_mono_add(now, s->grace_ns);
		r->fresh = false;
		return end_link(s, now);
	}
	s->lost = true;
	begin_cause(s, HW_CAUSE_LINK, now, true);
	moves(s, r, now); /* the lost connection replaces the standstill as the cause of the blindness */
	return false;
}

void hw_sight_publisher(struct hw_sight *s, bool up)
{
	s->publisher_up = up;
	s->answered.ns = 0;
	s->refused = false;
	if (up)
		return;
	/* The publisher lost the barriers that it had not sent yet. So the sources do not wait for these barriers, and
	 * do not count the missing barriers as a loss. */
	s->floor = s->sent;
	for (unsigned i = 0; i < s->n_sources; i++) {
		s->source[i].lasts = false;
		if (s->source[i].there)
			s->source[i].back = s->sent;
	}
}

void hw_sight_answered(struct hw_sight *s, struct hw_mono at)
{
	s->answered = hw_mono_later(s->answered, at);
}

void hw_sight_refused(struct hw_sight *s, bool refused)
{
	s->refused = refused;
}

/* Whether a barrier that is not back is late. A barrier is late some time before its absence counts as a standstill. */
static bool is_late(const struct hw_sight *s, struct hw_mono now, struct hw_mono sent)
{
	return now.ns - sent.ns > max64(4 * s->rtt_ns, TICK_NS);
}

/*
 * Doubts goodbyes if the broker may have stood still. A broker that stands still for longer than the shortest keepalive
 * disconnects devices, and publishes their wills when it works again.
 *
 * The monitor cannot know how long the broker stood still before a barrier was sent. So it uses the time since the last
 * message. In a silent fleet that time is long before every barrier. So a barrier must be late, too: only this shows
 * that the broker stood still.
 */
static void doubt_after_silence(struct hw_sight *s, const struct hw_sight_source *r, struct hw_mono now)
{
	if (!r->up || s->sent <= r->back)
		return;
	struct hw_mono moved = s->awake, sent = sent_at(s, r->back + 1);
	for (unsigned i = 0; i < s->n_sources; i++)
		moved.ns = max64(moved.ns, s->source[i].arrived.ns);
	if (now.ns - moved.ns > KEEPALIVE_LEAST_NS && is_late(s, now, sent))
		doubt(s, 2);
}

void hw_sight_arrived(struct hw_sight *s, struct hw_mono now, unsigned source)
{
	doubt_after_silence(s, &s->source[source], now);
	s->source[source].arrived = now;
	if (!s->source[source].lasts)
		moves(s, &s->source[source], now);
}

/* Makes the monitor blind for the time from `from` until now. Messages of that time may be lost, and the devices
 * that sent them look silent. */
static void lost_between(struct hw_sight *s, struct hw_mono from, struct hw_mono now)
{
	hw_blind_begin(&s->blind, HW_CAUSE_LOSS, from, true);
	hw_blind_end(&s->blind, HW_CAUSE_LOSS, now);
	s->floor = s->sent;
}

int hw_sight_add(struct hw_sight *s, struct hw_mono now)
{
	unsigned i = 0;
	while (i < s->n_sources && s->source[i].there)
		i++;
	if (i == HW_SOURCES_MAX)
		return -ENOSPC;
	s->n_sources += i == s->n_sources;
	s->n_there++;
	s->source[i] = (struct hw_sight_source){.there = true, .fresh = true, .reconnect_wait_ns = s->timeout_ns};
	s->floor = s->sent;
	begin_cause(s, HW_CAUSE_LINK, now, false); /* a running grace is kept in link_grace */
	return (int)i;
}

bool hw_sight_remove(struct hw_sight *s, struct hw_mono now, unsigned source)
{
	struct hw_sight_source *r = &s->source[source];
	bool last = --s->n_there == 0;
	if (last)
		begin_cause(s, HW_CAUSE_LINK, now, true);
	else if (r->up)
		lost_between(s, now, now);
	else if (!r->fresh)
		s->link_grace = hw_mono_add(now, s->grace_ns);
	s->lost |= last;
	s->floor = s->sent;
	moves(s, r, now);
	*r = (struct hw_sight_source){.up = true, .back = UINT64_MAX, .arrived = {INT64_MIN}};
	return end_link(s, now);
}

void hw_sight_barrier(struct hw_sight *s, struct hw_mono now, unsigned source, uint64_t number)
{
	struct hw_sight_source *r = &s->source[source];
	hw_sight_arrived(s, now, source);
	if (r->up && number <= s->sent && s->sent - number < HW_BARRIERS_OUT) {
		r->later.ns = max64(r->later.ns, sent_at(s, number).ns);
		hw_sight_answered(s, sent_at(s, number)); /* The barrier is back, so the broker has read it, even if the
		                                             broker acknowledges nothing. */
	}
	if (!r->up || number <= r->back || number > s->sent)
		return;
	struct hw_mono sent = sent_at(s, number);
	int64_t rtt = now.ns - sent.ns;
	if (sent.ns >=
	    s->awake.ns) /* A barrier from before this process stood still was delayed by the process itself. */
		s->rtt_ns = s->rtt_ns ? s->rtt_ns + (rtt - s->rtt_ns) / 8 : rtt;
	if (number > r->back + 1)
		lost_between(s, r->good, now);
	r->back = number;
	moves(s, r, now);
	r->good = now;
	r->ever = true;
	r->reconnect_wait_ns = s->timeout_ns;
	s->reopen_wait_ns = s->timeout_ns;
	s->barriers_back++;
	s->mute.ns = 0;
	if (!s->hold[HW_CAUSE_BARRIER].ns)
		end_cause(s, HW_CAUSE_BARRIER, now, true);
}

void hw_sight_loss(struct hw_sight *s, struct hw_mono now, unsigned source)
{
	lost_between(s, s->source[source].good, now);
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

bool hw_sight_in_grace(const struct hw_sight *s)
{
	for (int c = 0; c < HW_CAUSES; c++)
		if (s->blind.active >> c & 1 && !s->hold[c].ns)
			return false;
	return s->blind.active != 0;
}

struct hw_mono hw_sight_grace_end(const struct hw_sight *s)
{
	struct hw_mono end = {0};
	for (int c = 0; c < HW_CAUSES; c++)
		if (s->blind.active >> c & 1)
			end = hw_mono_later(end, s->hold[c]);
	return end;
}

struct hw_mono hw_sight_late_at(const struct hw_sight *s)
{
	uint64_t back = back_on_all(s);
	if (s->mute.ns)
		return hw_mono_add(s->mute, LATE_NS);
	bool is_out = all_up(s) && s->sent > back && s->sent - back < HW_BARRIERS_KEPT;
	return is_out ? hw_mono_add(sent_at(s, back + 1), LATE_NS) : HW_MONO_NEVER;
}

bool hw_sight_all_up(const struct hw_sight *s)
{
	return all_up(s);
}

uint64_t hw_sight_back(const struct hw_sight *s)
{
	return back_on_all(s);
}

struct hw_mono hw_sight_sent_after(const struct hw_sight *s)
{
	uint64_t back = back_on_all(s);
	bool known = back > 0 && back <= s->sent && s->sent - back < HW_BARRIERS_OUT;
	return known ? sent_at(s, back) : (struct hw_mono){0};
}

struct hw_mono hw_sight_later(const struct hw_sight *s)
{
	struct hw_mono least = {INT64_MAX};
	for (unsigned i = 0; i < s->n_sources; i++)
		if (s->source[i].there && s->source[i].later.ns < least.ns)
			least = s->source[i].later;
	return least;
}

uint64_t hw_sight_tag(const struct hw_sight *s)
{
	return s->sent + 2;
}

/* Returns the tag that must be proven instead of `tag`. Barriers up to `floor` may be lost and prove nothing. So if
 * `tag` is one of them, two later barriers must be back. */
static uint64_t in_force(const struct hw_sight *s, uint64_t tag)
{
	uint64_t least = s->floor + 2;
	return tag > least ? tag : least;
}

/* Whether messages may be read in another order than the broker got them. Sources have no common order. With QoS 1, the
 * broker limits how many messages may be unacknowledged. Above the limit, the broker queues messages of QoS 1, also
 * barriers, but sends messages of QoS 0. */
static bool has_several_orders(const struct hw_sight *s)
{
	return s->n_there > 1 || s->overtakes;
}

/* A message that is read now passed the broker after the last barrier that is back on every source was sent. So it is
 * newer than each message that any source had delivered before that barrier was sent. Nothing else shows the order: a
 * source may be late for a moment while no barrier is on its way. */
int64_t hw_sight_unordered_ms(const struct hw_sight *s)
{
	return has_several_orders(s) ? hw_sight_sent_after(s).ns / HW_NS_PER_MS : INT64_MAX;
}

bool hw_sight_is_order_unknown(const struct hw_sight *s, struct hw_mono now, int64_t heard_ms)
{
	return heard_ms != HW_NEVER_MS && heard_ms <= now.ns / HW_NS_PER_MS + 1 && /* +1: hw_moment_ms() */
	       heard_ms >= hw_sight_unordered_ms(s);
}

bool hw_sight_doubts_goodbye(const struct hw_sight *s)
{
	return !s->publisher_up || back_on_all(s) < s->doubt;
}

/* Returns the greatest tag that is proven when this barrier is back. In each pair, the first barrier was back before
 * the second was sent. */
static uint64_t proves(const struct hw_sight *s, uint64_t number)
{
	return s->out[number % HW_BARRIERS_KEPT].behind + 1;
}

bool hw_sight_proven(const struct hw_sight *s, uint64_t tag)
{
	return all_up(s) && proves(s, back_on_all(s)) >= in_force(s, tag);
}

struct hw_mono hw_sight_pair_sent(const struct hw_sight *s, uint64_t tag)
{
	uint64_t first = in_force(s, tag) - 1;
	if (first > s->sent || s->sent - first >= HW_BARRIERS_KEPT)
		return (struct hw_mono){INT64_MIN / 4};
	return sent_at(s, first);
}

/* Whether the next barrier shows the order of messages: they may overtake each other, and messages arrived after the
 * last barrier was sent, or in the same millisecond. While a source is late, more barriers show nothing. */
static bool orders(const struct hw_sight *s, struct hw_mono last, uint64_t back)
{
	return has_several_orders(s) && s->sent - back <= ORDER_OUT &&
	       s->news.ns / HW_NS_PER_MS + 1 >= last.ns / HW_NS_PER_MS; /* +1: hw_moment_ms() */
}

/* Returns when the next barrier is due; HW_MONO_NEVER: none is due, or none may be sent. */
static struct hw_mono barrier_due(const struct hw_sight *s, uint64_t tag, int64_t pace_ns)
{
	if (!all_up(s))
		return HW_MONO_NEVER;
	uint64_t back = back_on_all(s);
	if (s->sent - back >= HW_BARRIERS_OUT - 1)
		return HW_MONO_NEVER;
	struct hw_mono last = s->sent ? sent_at(s, s->sent) : (struct hw_mono){0};
	struct hw_mono steady = hw_mono_add(last, pace_ns > ORDER_NS && orders(s, last, back) ? ORDER_NS : pace_ns);
	if (!tag || proves(s, s->sent) >= in_force(s, tag))
		return steady;
	if (back == s->sent || back + 1 >= in_force(s, tag))
		return (struct hw_mono){0};
	/* The first barrier of this tag's pair is sent and not back, so another barrier would prove nothing for this
	 * tag. But a barrier that came back since the last one was sent may be the first of another tag's pair. The
	 * second barrier of that pair is then sent early, but not at once: otherwise each barrier that is back would
	 * cause another one without end. */
	if (s->sent + 1 >= in_force(s, tag) && back <= s->out[s->sent % HW_BARRIERS_KEPT].behind)
		return steady;
	return hw_mono_sooner(steady, hw_mono_add(last, max64(s->rtt_ns / 4, TICK_NS)));
}

static struct hw_mono barrier_at(const struct hw_sight *s, uint64_t tag, int64_t pace_ns)
{
	return s->publisher_up ? barrier_due(s, tag, pace_ns) : HW_MONO_NEVER;
}

/* Whether the monitor is already blind with the cause that barriers do not come back. */
static bool denial_is_known(const struct hw_sight *s)
{
	return s->blind.active & 1u << HW_CAUSE_BARRIER && !s->hold[HW_CAUSE_BARRIER].ns;
}

/*
 * Returns when to check a publisher that cannot send. The first check is when a barrier is due. The second is
 * barrier_timeout later. If a barrier comes back between the two, there is no second check. A publisher that connects
 * only for a moment does not prevent the second check.
 */
static struct hw_mono mute_at(const struct hw_sight *s, uint64_t tag, int64_t pace_ns)
{
	if (!all_up(s))
		return HW_MONO_NEVER;
	if (s->mute.ns)
		return denial_is_known(s) ? HW_MONO_NEVER : hw_mono_add(s->mute, s->timeout_ns);
	return s->publisher_up ? HW_MONO_NEVER : barrier_due(s, tag, pace_ns);
}

/* Makes the monitor blind if the publisher cannot send: without barriers nothing is proven and no device is judged. */
static void check_publisher(struct hw_sight *s, struct hw_mono now, uint64_t tag, int64_t pace_ns)
{
	if (!all_up(s))
		s->mute.ns = 0;
	if (mute_at(s, tag, pace_ns).ns > now.ns)
		return;
	if (!s->mute.ns)
		s->mute = now;
	else
		begin_cause(s, HW_CAUSE_BARRIER, s->mute, true);
}

/*
 * Returns when the oldest unanswered barrier was sent. A barrier is unanswered if it is not back, and if the broker has
 * sent nothing on the barriers' connection since. HW_MONO_NEVER: there is none. A barrier from before the broker's last
 * answer is only slow.
 */
static struct hw_mono unanswered_at(const struct hw_sight *s)
{
	if (!s->publisher_up || !all_up(s))
		return HW_MONO_NEVER;
	for (uint64_t n = back_on_all(s) + 1; n <= s->sent; n++)
		if (sent_at(s, n).ns > s->answered.ns)
			return sent_at(s, n);
	return HW_MONO_NEVER;
}

/* Returns when the broker counts as silent on the barriers' connection, whatever arrives on other connections.
 * HW_MONO_NEVER: every barrier is answered. */
static struct hw_mono silent_at(const struct hw_sight *s)
{
	struct hw_mono at = unanswered_at(s);
	return at.ns == INT64_MAX ? at : hw_mono_add(hw_mono_later(at, s->awake), max64(s->timeout_ns, 4 * s->rtt_ns));
}

bool hw_sight_is_silent(const struct hw_sight *s, struct hw_mono now)
{
	return now.ns >= silent_at(s).ns;
}

/* Whether a source has delivered a message since the unanswered barrier was sent. If no source has, the broker stands
 * still. */
static bool others_arrive(const struct hw_sight *s)
{
	struct hw_mono since = unanswered_at(s);
	for (unsigned i = 0; i < s->n_sources; i++)
		if (s->source[i].there && s->source[i].arrived.ns > since.ns)
			return true;
	return false;
}

/* Checks whether the broker is silent on the barriers' connection. Returns whether to close and reopen that connection.
 */
static bool check_silence(struct hw_sight *s, struct hw_mono now)
{
	if (now.ns < silent_at(s).ns)
		return false;
	if (others_arrive(s) && !denial_is_known(s))
		begin_cause(s, HW_CAUSE_BARRIER, unanswered_at(s), true);
	if (now.ns < s->reopen_at.ns)
		return false;
	s->reopen_at = hw_mono_add(now, s->reopen_wait_ns);
	s->reopen_wait_ns = 2 * s->reopen_wait_ns < RECONNECT_MAX_NS ? 2 * s->reopen_wait_ns : RECONNECT_MAX_NS;
	return true;
}

static struct hw_mono silence_due(const struct hw_sight *s)
{
	struct hw_mono silent = silent_at(s);
	bool blinds = silent.ns != INT64_MAX && others_arrive(s) && !denial_is_known(s);
	return blinds || silent.ns > s->reopen_at.ns ? silent : s->reopen_at;
}

/* Returns since when a source that is up has delivered nothing while a barrier is not back. HW_MONO_NEVER: the
 * source is down, or all barriers are back. */
static struct hw_mono quiet_since(const struct hw_sight *s, const struct hw_sight_source *r)
{
	if (!r->up || s->sent <= r->back)
		return HW_MONO_NEVER;
	int64_t sent = sent_at(s, r->back + 1).ns;
	return (struct hw_mono){max64(max64(sent, r->arrived.ns), s->awake.ns)};
}

/*
 * Returns when the barriers of a source count as refused, not as late. Case 1: the broker refused the last barrier.
 * Case 2: no barrier has come back since the subscription, after one barrier_timeout of silence or two with traffic.
 * Case 3: a barrier is not back for longer than any backlog explains.
 */
static struct hw_mono denied_at(const struct hw_sight *s, const struct hw_sight_source *r, struct hw_mono quiet)
{
	struct hw_mono out = {max64(sent_at(s, r->back + 1).ns, s->awake.ns)};
	if (s->refused)
		return hw_mono_add(out, s->timeout_ns);
	if (r->ever)
		return hw_mono_add(out, DENIED_AFTER * s->timeout_ns);
	return hw_mono_sooner(hw_mono_add(quiet, s->timeout_ns), hw_mono_add(out, 2 * s->timeout_ns));
}

/* Returns after how long without messages a source stands still. This is at most barrier_timeout: then the
 * connection is reopened and messages of the silence are lost, so the monitor must be blind by then. */
static int64_t still_after(const struct hw_sight *s)
{
	int64_t after_ns = max64(s->slow_ns, 4 * s->rtt_ns);
	return after_ns < s->timeout_ns ? after_ns : s->timeout_ns;
}

/*
 * Called when a source stands still. If the oldest barrier that is not back is the same as in the previous standstill,
 * other messages have arrived since then, and only this barrier has not. Then only this monitor's publishes are stuck,
 * and only a barrier ends the standstill. Otherwise each pause between two heartbeats would be a new standstill.
 */
static void stand_still(struct hw_sight *s, struct hw_sight_source *r, struct hw_mono quiet)
{
	r->still = true;
	r->lasts = r->stood == r->back + 1;
	r->stood = r->back + 1;
	begin_pause(s, HW_CAUSE_STANDSTILL, quiet, false);
}

/* Returns when the monitor becomes blind by the cause `barrier`, because a barrier does not come back while other
 * messages arrive. HW_MONO_NEVER: there is no such barrier. */
static struct hw_mono hangs_at(const struct hw_sight *s, const struct hw_sight_source *r)
{
	if (!r->lasts || s->sent <= r->back)
		return HW_MONO_NEVER;
	int64_t out_ns = max64(sent_at(s, r->back + 1).ns, s->awake.ns);
	return (struct hw_mono){out_ns + s->timeout_ns};
}

/* Checks a source for a standstill and for refused barriers. Returns whether to close and reopen its connection. */
static bool check_source(struct hw_sight *s, struct hw_sight_source *r, struct hw_mono now)
{
	struct hw_mono quiet = quiet_since(s, r);
	if (quiet.ns == INT64_MAX)
		return false;
	int64_t quiet_ns = now.ns - quiet.ns;
	if (!r->still && quiet_ns >= still_after(s))
		stand_still(s, r, quiet);
	bool refused = now.ns >= denied_at(s, r, quiet).ns;
	if ((refused || now.ns >= hangs_at(s, r).ns) && !denial_is_known(s))
		begin_cause(s, HW_CAUSE_BARRIER, r->good, true);
	if ((!refused && quiet_ns < s->timeout_ns) || now.ns < r->reconnect_at.ns)
		return false;
	r->reconnect_at = hw_mono_add(now, r->reconnect_wait_ns);
	r->reconnect_wait_ns =
		2 * r->reconnect_wait_ns < RECONNECT_MAX_NS ? 2 * r->reconnect_wait_ns : RECONNECT_MAX_NS;
	return true;
}

/* Returns when a grace ends. If the check is late, messages may have been read after `at` while the seeing clock
 * stood still. The grace then ends after the last of them. */
static struct hw_mono end_of_grace(const struct hw_sight *s, struct hw_mono at)
{
	for (unsigned i = 0; i < s->n_sources; i++)
		if (s->source[i].there)
			at = hw_mono_later(at, s->source[i].arrived);
	return at;
}

static void end_graces(struct hw_sight *s, struct hw_mono now)
{
	for (int c = 0; c < HW_CAUSES; c++)
		if (s->hold[c].ns && s->hold[c].ns <= now.ns) {
			hw_blind_end(&s->blind, (enum hw_cause)c, end_of_grace(s, s->hold[c]));
			s->hold[c].ns = 0;
		}
}

struct hw_sight_do hw_sight_step(struct hw_sight *s, struct hw_mono now, uint64_t tag, int64_t pace_ns)
{
	struct hw_sight_do todo = {.reconnect = -1};
	end_graces(s, now);
	for (unsigned i = 0; i < s->n_sources && todo.reconnect < 0; i++)
		if (check_source(s, &s->source[i], now))
			todo.reconnect = (int)i;
	todo.reopen = check_silence(s, now);
	check_publisher(s, now, tag, pace_ns);
	if (barrier_at(s, tag, pace_ns).ns <= now.ns) {
		s->sent++;
		s->out[s->sent % HW_BARRIERS_KEPT] = (struct hw_sight_barrier){now, back_on_all(s)};
		todo.barrier = true;
	}
	return todo;
}

struct hw_mono hw_sight_next(const struct hw_sight *s, struct hw_mono now, uint64_t tag, int64_t pace_ns)
{
	struct hw_mono at = hw_mono_sooner(barrier_at(s, tag, pace_ns), mute_at(s, tag, pace_ns));
	at = hw_mono_sooner(at, silence_due(s));
	for (int c = 0; c < HW_CAUSES; c++)
		if (s->hold[c].ns)
			at = hw_mono_sooner(at, s->hold[c]);
	for (unsigned i = 0; i < s->n_sources; i++) {
		const struct hw_sight_source *r = &s->source[i];
		struct hw_mono quiet = quiet_since(s, r);
		if (quiet.ns == INT64_MAX)
			continue;
		if (!r->still)
			at = hw_mono_sooner(at, hw_mono_add(quiet, still_after(s)));
		struct hw_mono refused = denied_at(s, r, quiet);
		if (!denial_is_known(s))
			at = hw_mono_sooner(at, hangs_at(s, r));
		if (!denial_is_known(s))
			at = hw_mono_sooner(at, refused);
		struct hw_mono reconnect = hw_mono_sooner(refused, hw_mono_add(quiet, s->timeout_ns));
		at = hw_mono_sooner(at, reconnect.ns > r->reconnect_at.ns ? reconnect : r->reconnect_at);
	}
	return at.ns < now.ns ? now : at;
}

/* SPDX-License-Identifier: MIT */
/* The oracle's judgement. See sim_oracle.h. */
#include <inttypes.h>

#include "redis/redis.h"
#include "sim.h"

#define TICK_NS     (HW_NS_PER_S / HW_TICKS_PER_S + 1)
#define LATE_NS     (300 * HW_NS_PER_MS) /* added to a tick and the round trips */
#define ROUNDING_NS (2 * HW_NS_PER_MS)

/* Returns the timeout of a device by what the monitor has read. */
static int64_t timeout_ns(const struct sim *s, uint32_t i)
{
	int64_t own_ms = s->oracle.watched[i].own_ms;
	return own_ms > 0 ? own_ms * HW_NS_PER_MS : sim_learning_timeout_ms(s, i) * HW_NS_PER_MS;
}

uint64_t sim_oracle_back_on_all(const struct sim *s)
{
	uint64_t back = UINT64_MAX;
	for (uint32_t r = 0; r < s->plan.readers; r++)
		if (s->oracle.back[r] < back)
			back = s->oracle.back[r];
	return back;
}

int64_t sim_oracle_pair_sent(const struct sim *s)
{
	uint64_t first = s->oracle.behind[sim_oracle_back_on_all(s) % SIM_NUMBERS];
	return first == 0 ? -1 : s->oracle.sent_at[first % SIM_NUMBERS];
}

/* Returns the last arrival not later than `by`; -1: there is none. `lost`: skips heartbeats that the broker has
 * dropped. *next: the arrival after it, or `end`. */
static int64_t last_by(const struct sim_watched *w, int64_t by, int64_t end, bool lost, int64_t *next)
{
	*next = end;
	for (uint32_t k = w->arrivals; k > 0 && w->arrivals - k < SIM_ARRIVALS; k--) {
		int64_t at = w->arrival[(k - 1) % SIM_ARRIVALS].at;
		if (lost && w->arrival[(k - 1) % SIM_ARRIVALS].fate == SIM_LOST)
			continue;
		if (at <= by)
			return at;
		*next = at;
	}
	return -1;
}

static bool was_blind(const struct sim_oracle *o, int64_t at)
{
	return sim_oracle_seen(o, at + 1) == sim_oracle_seen(o, at);
}

/*
 * The monitor may call a device offline after three timeouts of silence in which it saw, however often it was blind in
 * between. Of the silence before this run, as the store has it, at most one timeout counts. This excuses a mistake only
 * if the monitor was blind when the last heartbeat arrived.
 */
static bool is_bounded(const struct sim *s, uint32_t i, int64_t now, int64_t heard)
{
	const struct sim_oracle *o = &s->oracle;
	const struct sim_watched *w = &o->watched[i];
	int64_t timeout = timeout_ns(s, i), before_ns = w->silent_ns < timeout ? w->silent_ns : timeout;
	int64_t from = w->read ? sim_oracle_seen(o, w->read_at) : sim_oracle_seen(o, o->started_at) - before_ns;
	return was_blind(o, heard) && sim_oracle_seen(o, now) - from >= 3 * timeout;
}

/*
 * All heartbeats that arrived before the pair of barriers was sent have been read. So a timeout is right if the gap
 * after the last of these heartbeats, up to the next one or to now, is at least as long as the device's timeout.
 *
 * No monitor can hear a heartbeat that the broker has dropped. That excuses a mistake, which is counted, only if the
 * heartbeat was that of this device.
 */
static void check_silence(struct sim *s, uint32_t i, int64_t now, int64_t sent)
{
	struct sim_oracle *o = &s->oracle;
	int64_t next, at = last_by(&o->watched[i], sent, now, false, &next), timeout = timeout_ns(s, i);
	int64_t gap_ns = sim_oracle_seen(o, next) - sim_oracle_seen(o, at);
	if (at < 0 || gap_ns >= timeout)
		return;
	if (sim_world_is_believed(s, s->fleet.device[i].group))
		return;
	int64_t heard_next, heard = last_by(&o->watched[i], sent, now, true, &heard_next);
	if (heard < 0 || sim_oracle_seen(o, heard_next) - sim_oracle_seen(o, heard) >= timeout)
		o->excused++;
	else if (is_bounded(s, i, now, heard))
		o->bounded++;
	else
		sim_breach(s, "d%u: false offline: a heartbeat got through %.6f s ago, silence %.6f s of %.3f s", i,
		           (double)(now - at) / 1e9, (double)gap_ns / 1e9, (double)timeout / 1e9);
}

/* Returns by how much a deadline may be later because the device's group was deaf, or its bridge away, since
 * `since`: by the length of that time and a timeout more, because silence then counts from zero. With a bridge,
 * silence counts from zero after each absence, for up to three timeouts in all. */
static int64_t deaf_since(const struct sim *s, uint32_t i, int64_t since, int64_t now)
{
	uint32_t g = s->fleet.device[i].group;
	int64_t deaf_ns = sim_oracle_deaf_ns(&s->oracle, g, since, now);
	return deaf_ns > 0 ? deaf_ns + (s->plan.bridge[g] ? 2 : 1) * timeout_ns(s, i) : 0;
}

/*
 * Returns by how much deadlines may be later because the clock was set back. Earlier heartbeats then count as later
 * ones. The wheel does not turn back, so it waits until the clock has reached its old value.
 */
static int64_t put_back_since(const struct sim_oracle *o, int64_t since)
{
	int64_t sum = 0, seen = sim_oracle_seen(o, since);
	for (size_t k = o->blind.n; k > 0; k--) {
		const struct sim_span *x = &o->blind.span[k - 1];
		int64_t before_ns = seen - (x->from - x->before);
		if (before_ns > 120 * HW_NS_PER_S)
			break;
		if (before_ns < x->put_back)
			sum += x->put_back;
	}
	return sum;
}

/* If a group may send no canary, the monitor believes the silence of a filter only after three timeouts, and not
 * before 30 s. */
static int64_t unproven_ns(const struct sim *s, unsigned g)
{
	int64_t longest_ns =
		s->plan.timeout_ns[g] > s->plan.timeout_was_ns[g] ? s->plan.timeout_ns[g] : s->plan.timeout_was_ns[g];
	if (!s->plan.no_canary[g])
		return 0;
	return longest_ns + (longest_ns > 10 * HW_NS_PER_S ? 3 * longest_ns : 30 * HW_NS_PER_S);
}

static void check_time(struct sim *s, uint32_t i, int64_t now, int64_t sent)
{
	const struct sim_oracle *o = &s->oracle;
	const struct sim_watched *w = &o->watched[i];
	int64_t timeout = timeout_ns(s, i), lossy = sim_oracle_seen(o, o->lossy_end);
	int64_t read = w->read ? sim_oracle_seen(o, w->read_at) : INT64_MIN / 4;
	int64_t due = (lossy > read ? lossy : read) + timeout;
	if (w->read && due > read + 3 * timeout)
		due = read + 3 * timeout;
	if (w->read && sim_oracle_seen(o, sent) < due)
		sim_breach(s, "d%u: offline without two barriers sent after its deadline", i);
	if (due < sim_oracle_seen(o, w->loaded_at))
		due = sim_oracle_seen(o, w->loaded_at);
	/* A shorter timeout applies only when the wheel has visited all devices. */
	int64_t reloaded = sim_oracle_seen(o, o->reloaded_at + HW_NS_PER_S);
	if (sim_oracle_seen(o, now) > due && due < reloaded)
		due = reloaded < sim_oracle_seen(o, now) ? reloaded : sim_oracle_seen(o, now);
	int64_t late_ns = sim_oracle_seen(o, now) - due;
	if (w->read && late_ns < 0)
		sim_breach(s, "d%u: offline %.6f s before its deadline", i, (double)-late_ns / 1e9);
	if (late_ns <= 0)
		return;
	int64_t due_at = sim_oracle_unseen(o, due);
	int64_t may_ns = TICK_NS + LATE_NS + ROUNDING_NS + 6 * (s->broker.delay_ns + s->broker.service_ns * 40) +
	                 sim_world_hindered_ns(s, due_at, now) +
	                 sim_world_muted_ns(s, s->fleet.device[i].group, due_at, now) +
	                 put_back_since(o, w->read ? w->read_at : 0) + unproven_ns(s, s->fleet.device[i].group) +
	                 deaf_since(s, i, w->read ? w->read_at : 0, now);
	if (late_ns > may_ns)
		sim_breach(s, "d%u: offline %.6f s after its deadline, %.6f s are explained", i, (double)late_ns / 1e9,
		           (double)may_ns / 1e9);
}

void sim_oracle_took_goodbye(struct sim *s, uint32_t i)
{
	const struct sim_oracle *o = &s->oracle;
	const struct sim_watched *w = &o->watched[i];
	const struct hw_device *d = sim_host_device(s, i);
	int64_t now = sim_oracle_mono(s), timeout = timeout_ns(s, i);
	if (!d || hw_device_state(d) != HW_STATE_ONLINE || !w->read)
		return;
	if (o->blind_open || o->away_from[s->fleet.device[i].group] >= 0 ||
	    o->deaf_from[s->fleet.device[i].group] >= 0) /* how far the clock is put back is not known */
		return;
	int64_t read = sim_oracle_seen(o, w->read_at), lossy = sim_oracle_seen(o, o->lossy_end);
	int64_t due = (lossy > read ? lossy : read) + timeout + put_back_since(o, w->read_at) +
	              deaf_since(s, i, w->read_at, now);
	int64_t late_ns = hw_monitor_due_in_ms(s->host.m, sim_host_now(s), d) * HW_NS_PER_MS - ROUNDING_NS -
	                  (due - sim_oracle_seen(o, now));
	if (late_ns > 0)
		sim_breach(s, "d%u: a goodbye has put its deadline off by %.6f s", i, (double)late_ns / 1e9);
}

/* Checks that a goodbye was held for hold_ns, or until the device's deadline if that was earlier. The deadline may
 * be that of the timeout before a reload. */
static void check_held(struct sim *s, uint32_t i, int64_t now, int64_t sent)
{
	const struct sim_watched *w = &s->oracle.watched[i];
	int64_t was_ns = s->plan.timeout_was_ns[s->fleet.device[i].group], soonest_ns = timeout_ns(s, i);
	int64_t seen = sim_oracle_seen(&s->oracle, now);
	int64_t waited_ns = seen - sim_oracle_seen(&s->oracle, w->goodbye_read_at);
	int64_t silent_ns = seen - sim_oracle_seen(&s->oracle, w->read_at);
	if (was_ns > 0 && was_ns < soonest_ns)
		soonest_ns = was_ns;
	if (w->goodbye_read_at < 0)
		sim_breach(s, "d%u: offline on a goodbye that was not read", i);
	else if (sent < w->goodbye_read_at)
		sim_breach(s, "d%u: offline without two barriers sent after its goodbye was read", i);
	else if (w->read && waited_ns < w->hold_ns && silent_ns < soonest_ns)
		sim_breach(s, "d%u: offline on a goodbye that was held for %.6f s of %.3f s", i,
		           (double)waited_ns / 1e9, (double)w->hold_ns / 1e9);
}

static void check_offline(struct sim *s, uint32_t i, const struct hw_transition *t)
{
	if (s->oracle.differs[s->fleet.device[i].group])
		sim_breach(s, "d%u: judged while its group's bridge is said to be away", i);
	const struct sim_watched *w = &s->oracle.watched[i];
	int64_t now = sim_oracle_mono(s), sent = sim_oracle_pair_sent(s), next;
	if (w->state != HW_STATE_ONLINE)
		return; /* the device's first message was a goodbye */
	if (hw_blind_now(hw_monitor_blind(s->host.m)) || sim_world_is_deafened(s))
		sim_breach(s, "d%u: offline while blind", i);
	if (sent < 0) {
		sim_breach(s, "d%u: offline without two barriers", i);
		return;
	}
	if (t->reason == HW_REASON_TIMEOUT) {
		sim_learning_offline(s, i);
		check_silence(s, i, now, sent);
		check_time(s, i, now, sent);
		return;
	}
	check_held(s, i, now, sent);
	if (w->alive && (w->goodbye_at < 0 || last_by(w, sent, now, true, &next) > w->goodbye_at))
		sim_breach(s, "d%u: offline on a goodbye that is none", i);
}

/* Whether this heartbeat came within one timeout after the one before. *surely: by all clocks and timeouts.
 * *perhaps: by a clock that stood still while the group was deaf, or by the timeout before a reload. */
static void within_timeout(const struct sim *s, uint32_t i, bool *surely, bool *perhaps)
{
	const struct sim_oracle *o = &s->oracle;
	const struct sim_watched *w = &o->watched[i];
	uint32_t g = s->fleet.device[i].group;
	int64_t now = sim_oracle_mono(s), is_ns = timeout_ns(s, i), was_ns = s->plan.timeout_was_ns[g];
	int64_t least_ns = was_ns && was_ns < is_ns ? was_ns : is_ns, most_ns = was_ns > is_ns ? was_ns : is_ns;
	int64_t from = w->may_count ? w->count_at : w->read_at;
	int64_t gap_ns = sim_oracle_seen(o, now) - sim_oracle_seen(o, from);
	bool excused = o->blind_open || o->deaf_from[g] >= 0 || o->away_from[g] >= 0 || put_back_since(o, from);
	*surely = w->read && gap_ns < least_ns - ROUNDING_NS;
	*perhaps = w->read && (excused || gap_ns - deaf_since(s, i, from, now) <= most_ns + ROUNDING_NS);
}

/* Whether a heartbeat may be a copy of the last one that counted. *surely: it is so close that it counts as a copy.
 * *perhaps: it may be one. */
static void is_copy(const struct sim *s, uint32_t i, bool *surely, bool *perhaps)
{
	const struct sim_watched *w = &s->oracle.watched[i];
	int64_t gap_ns = s->now - w->count_true_at, part_ns = timeout_ns(s, i) / 8;
	int64_t most_ns = part_ns < HW_NS_PER_S / 4 ? part_ns : HW_NS_PER_S / 4;
	*surely = w->may_count && gap_ns < most_ns - ROUNDING_NS;
	*perhaps = w->may_count && gap_ns < HW_NS_PER_S / 4 + ROUNDING_NS;
}

void sim_oracle_count_return(struct sim *s, uint32_t i)
{
	struct sim_watched *w = &s->oracle.watched[i];
	unsigned after = s->plan.online_after[s->fleet.device[i].group];
	bool surely, perhaps, copy, perhaps_copy;
	if (after <= 1 || w->state != HW_STATE_OFFLINE)
		return;
	/* The core reads all messages of a turn before it has outputs. */
	if (w->counted >= after && sim_oracle_mono(s) - w->read_at > LATE_NS)
		sim_breach(s, "d%u: offline still, after %u heartbeats of %u", i, w->counted, after);
	is_copy(s, i, &copy, &perhaps_copy);
	if (copy)
		return;
	within_timeout(s, i, &surely, &perhaps);
	w->counted = perhaps_copy ? 0 : surely ? w->counted + 1 : 1;
	w->may_count = perhaps ? w->may_count + 1 : 1;
	w->count_at = sim_oracle_mono(s);
	w->count_true_at = s->now;
}

/* If the record of a device was not read, or was lost with its store, the device counts as new. */
static void check_returned(struct sim *s, uint32_t i)
{
	const struct sim_watched *w = &s->oracle.watched[i];
	unsigned after = s->plan.online_after[s->fleet.device[i].group];
	if (w->state == HW_STATE_OFFLINE && after > 1 && w->may_count < after)
		sim_breach(s, "d%u: online after %u heartbeats of %u", i, w->may_count, after);
}

void sim_oracle_transition(struct sim *s, uint32_t i, const struct hw_transition *t)
{
	struct sim_watched *w = &s->oracle.watched[i];
	sim_trace(s, hw_state_name(t->state), i, (int64_t)t->seq);
	if (t->seq <= w->seq)
		sim_breach(s, "d%u: seq %" PRIu64 " after %" PRIu64, i, t->seq, w->seq);
	if (t->state == w->state)
		sim_breach(s, "d%u: %s twice", i, hw_state_name(t->state));
	if (t->state == HW_STATE_ONLINE && !w->read)
		sim_breach(s, "d%u: online, and no heartbeat was read", i);
	if (t->state == HW_STATE_OFFLINE)
		check_offline(s, i, t);
	else if (t->state == HW_STATE_ONLINE)
		check_returned(s, i);
	if (w->state == HW_STATE_PROVISIONAL) /* no device is judged before the load has ended */
		w->loaded_at = sim_oracle_mono(s);
	w->state = t->state;
	w->seq = t->seq;
	w->counted = w->may_count = 0;
	if (t->state == HW_STATE_FORGOTTEN) /* all that was known about the device is forgotten too */
		w->own_ms = 0, w->seq = 0, sim_learning_forgotten(s, i);
	sim_oracle_changed(s, i, t);
}

/* P must not be greater than the seq of a state in the store whose status the broker has never had. */
void sim_oracle_published(struct sim *s)
{
	if (s->store.published == HW_PUBLISHED_UNKNOWN)
		return;
	for (uint32_t i = 0; i < s->plan.devices; i++) {
		const struct sim_record *r = &s->store.record[i];
		if (r->known && r->seq > s->broker.most_seq[i] && r->seq < s->store.published)
			sim_breach(s, "d%u: the broker has no status as of seq %" PRIu64 ", but P is %" PRIu64, i,
			           r->seq, s->store.published);
	}
}

void sim_oracle_stored(struct sim *s, const struct sim_order *o, const struct sim_record *was)
{
	if (was->known && was->state == o->record.state && !s->oracle.amnesia && !s->oracle.damaged)
		sim_breach(s, "d%u: the store is told twice that it is %s", o->device, hw_state_name(was->state));
}

/* --- in the end -------------------------------------------------------------- */

static void check_kept(struct sim *s, uint32_t i, const struct hw_device *d)
{
	struct sim_record newest = sim_store_newest(s, i), *r = &newest;
	const struct sim_retained *kept = &s->broker.retained[i];
	bool known = d && hw_device_state(d) != HW_STATE_FORGOTTEN;
	if (!known && s->oracle.damaged) /* a forgotten device may have returned with the store, until the next start */
		return;
	if (r->known != known || (known && (r->state != hw_device_state(d) || r->seq != d->seq)))
		sim_breach(s, "d%u: the store has %s, seq %" PRIu64 ", the monitor %s, seq %" PRIu64, i,
		           r->known ? hw_state_name(r->state) : "nothing", r->seq,
		           known ? hw_state_name(hw_device_state(d)) : "nothing", d ? (uint64_t)d->seq : 0);
	bool pending = d && hw_device_noted(d, HW_PENDING_STATUS);
	if (pending && s->host.published_at[i] && s->now - s->host.published_at[i] < HW_NS_PER_S)
		return;
	if (pending && sim_host_now(s).wall_ms - d->since_ms >= 1000)
		sim_breach(s, "d%u: its status is still owed", i);
	if (!known || kept->unheard || pending)
		return;
	if (!kept->any || !kept->by_monitor || kept->seq != d->seq ||
	    kept->online != (hw_device_state(d) == HW_STATE_ONLINE))
		sim_breach(s, "d%u is %s, what is retained says %s%s, seq %" PRIu64, i,
		           hw_state_name(hw_device_state(d)),
		           kept->any ? "" : "nothing: ", kept->online ? "online" : "offline", kept->seq);
}

void sim_oracle_finish(struct sim *s)
{
	if (!s->host.m) {
		sim_breach(s, "the monitor is not there in the end");
		return;
	}
	if (hw_blind_now(hw_monitor_blind(s->host.m)) && s->plan.calm_ns)
		sim_breach(s, "blind in the end: %s", hw_cause_name(hw_monitor_blind(s->host.m)->first));
	for (uint32_t i = 0; i < s->plan.devices; i++) {
		const struct sim_device *f = &s->fleet.device[i], *by = &s->fleet.device[f->gateway];
		const struct hw_device *d = sim_host_device(s, i);
		bool online = d && hw_device_state(d) == HW_STATE_ONLINE;
		bool beats = f->beating && by->beating;
		bool lives = beats && f->reachable && by->reachable && by->connected && f->loss <= 0 && by->loss <= 0;
		sim_oracle_count(s, i);
		if (s->metrics)
			s->metrics->beats += f->beats;
		if (!s->plan.calm_ns)
			continue;
		bool mistaken = s->plan.learns && sim_oracle_mono(s) - s->oracle.watched[i].read_at >=
		                                          sim_learning_timeout_ms(s, i) * HW_NS_PER_MS;
		if (lives && !online && !mistaken)
			sim_breach(s, "d%u lives, and is taken for dead in the end", i);
		if (!beats && online)
			sim_breach(s, "d%u is dead, and is taken for alive in the end", i);
		check_kept(s, i, d);
		sim_trace(s, "end", i, online);
	}
}

/* SPDX-License-Identifier: MIT */
/*
 * What follows from time: the wheel's due entries, the judgement of candidates, forgetting, and the sweeps. See
 * monitor.h.
 *
 * Everything here spends the caller's budget, a unit per device looked at, and goes on where it stopped: if a million
 * devices expire in one tick, a turn of the loop still takes only what its budget allows.
 */
#include "monitor_priv.h"

#define PACE_MIN_NS   (250 * HW_NS_PER_MS)
#define PACE_MAX_NS   (5 * HW_NS_PER_S)
#define REFRESH_CHUNK 256            /* records a step of the sweep while blind */
#define TTL_MIN_MS    INT64_C(10000) /* device:connected keys live at least this long */

/* --- barriers and blindness -------------------------------------------------- */

/* The highest tag that a candidate waits for; 0: there is none. Tags never fall along the queue. */
static uint64_t last_tag(const struct hw_monitor *m)
{
	return m->candidates.length ? hw_wheel_node(&m->wheel, m->candidates.tail)->due : 0;
}

/* The period that was told to begin is over, perhaps with another one begun since. */
static bool told_is_over(const struct hw_monitor *m)
{
	return m->told.begun && (!hw_monitor_is_blind(m) || m->sight.blind.periods != m->told.period);
}

/* One begins, one ends, or the one that lasts turns out to have another cause. */
static bool blind_changed(const struct hw_monitor *m)
{
	const struct hw_blind *b = &m->sight.blind;
	return m->told.begun ? told_is_over(m) || b->first != m->told.cause : b->periods != m->told.period;
}

/* A period that is over before anybody could be told has its begin and its end told all the same. */
static bool tell_blind(struct hw_monitor *m, struct hw_out *out)
{
	const struct hw_blind *b = &m->sight.blind;
	bool over = told_is_over(m);
	if (!blind_changed(m))
		return false;
	*out = (struct hw_out){.kind = HW_OUT_BLIND};
	out->blind.begun = m->told.begun = !over;
	out->blind.lossy = over ? b->ended_lossy : b->lossy;
	if (over) {
		out->blind.length_ns = b->until.ns - m->told.since.ns;
		if (!hw_blind_now(b)) /* of several since, which are told as one */
			m->told.period = b->periods;
	} else {
		m->told.cause = b->first;
		m->told.period = b->periods;
	}
	m->told.since = b->since;
	out->blind.cause = m->told.cause;
	return true;
}

static bool step_sight(struct hw_monitor *m, struct hw_now now, struct hw_out *out)
{
	struct hw_sight_do todo = hw_sight_step(&m->sight, now.mono, last_tag(m), m->pace_ns);
	if (todo.barrier) {
		m->stats.barriers_sent++;
		hw_monitor_emit(m, &(struct hw_out){.kind = HW_OUT_BARRIER, .barrier = m->sight.sent});
	}
	if (todo.reconnect >= 0)
		hw_monitor_emit(m, &(struct hw_out){.kind = HW_OUT_RECONNECT, .reader = (unsigned)todo.reconnect});
	return tell_blind(m, out);
}

/* --- the judgement ----------------------------------------------------------- */

static void rearm(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	m->stats.relinks++;
	hw_monitor_arm(m, now, i);
	hw_monitor_emit_device(m, HW_OUT_REFRESH, i);
}

bool hw_monitor_paced(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	struct hw_device *d = hw_monitor_at(m, i);
	unsigned rate = m->groups.all[d->group]->max_offline_rate;
	if (rate == 0 || d->flags & HW_FLAG_PACED)
		return false;
	int64_t seen = hw_monitor_seen(m, now).ns, *turn = &m->offline_free_ns[d->group];
	bool wait = *turn > seen;
	if (wait) {
		d->flags |= HW_FLAG_PACED;
		if (hw_monitor_is_keyed(m, d))
			hw_monitor_key_arm_at(m, i, hw_seen_add(hw_monitor_key_seen(m, now), *turn - seen));
		else
			hw_monitor_arm_at(m, i, (struct hw_seen){*turn});
	}
	*turn = (wait ? *turn : seen) + HW_NS_PER_S / rate;
	return wait;
}

/*
 * The pair is back: heard since, or touched by blindness, it goes on living; otherwise it is offline.
 *
 * Behind a backlog the deadline may have moved on and passed again before the pair came back: then that pair says
 * nothing of what was sent since it set out, and another must go.
 */
static void judge(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	struct hw_device *d = hw_monitor_at(m, i);
	struct hw_mono sent = hw_sight_pair_sent(&m->sight, d->node.due);
	hw_monitor_unlink(m, i);
	if (d->flags & HW_FLAG_GOODBYE) {
		if (d->epoch == (m->sight.blind.periods & 0xff) && !hw_monitor_key_keeps(m, now, i)) {
			hw_monitor_transition(m, now, i, HW_STATE_OFFLINE, HW_REASON_WILL, -1);
			return;
		}
		d->flags &= (uint16_t) ~(HW_FLAG_GOODBYE | HW_FLAG_HELD);
		m->stats.goodbyes_void++;
		hw_monitor_emit_device(m, HW_OUT_STATUS, i);
		hw_monitor_arm(m, now, i);
		return;
	}
	int64_t deadline_ns = hw_monitor_deadline(m, d).ns, late_ns = hw_monitor_seen(m, now).ns - deadline_ns;
	bool by_key = hw_monitor_key_was_last(m, now, d);
	if (late_ns < 0)
		rearm(m, now, i);
	else if (hw_blind_seen(&m->sight.blind, sent).ns < deadline_ns)
		hw_monitor_candidate(m, i);
	else if (hw_monitor_key_keeps(m, now, i))
		hw_monitor_emit_device(m, HW_OUT_REFRESH, i);
	else if (!hw_monitor_paced(m, now, i))
		hw_monitor_transition(m, now, i, HW_STATE_OFFLINE, by_key ? HW_REASON_KEYSPACE : HW_REASON_TIMEOUT,
		                      by_key ? -1 : late_ns);
}

static bool judge_next(struct hw_monitor *m, struct hw_now now)
{
	uint32_t i = m->candidates.head;
	if (i == HW_NIL || hw_monitor_is_blind(m) || !hw_sight_proven(&m->sight, hw_wheel_node(&m->wheel, i)->due))
		return false;
	judge(m, now, i);
	return true;
}

/* --- due entries ------------------------------------------------------------- */

static void due_online(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	struct hw_device *d = hw_monitor_at(m, i);
	d->flags &= (uint16_t)~HW_FLAG_HELD;
	bool goodbye = d->flags & HW_FLAG_GOODBYE;
	if (!goodbye && hw_monitor_is_keyed(m, d))
		hw_monitor_key_due(m, now, i);
	else if (goodbye || hw_monitor_deadline(m, d).ns <= hw_monitor_seen(m, now).ns)
		hw_monitor_candidate(m, i);
	else
		rearm(m, now, i);
}

static bool take_due(struct hw_monitor *m, struct hw_now now, unsigned *budget)
{
	if (hw_monitor_is_blind(m))
		return false;
	uint32_t i = hw_wheel_take(&m->wheel, hw_tick_floor(hw_monitor_seen(m, now)), budget);
	if (i == HW_NIL)
		return false;
	if (hw_device_state(hw_monitor_at(m, i)) == HW_STATE_ONLINE)
		due_online(m, now, i);
	else
		hw_monitor_transition(m, now, i, HW_STATE_FORGOTTEN, HW_REASON_FORGET_AFTER, -1);
	return true;
}

static bool take_key_due(struct hw_monitor *m, struct hw_now now, unsigned *budget)
{
	if (hw_blind_now(&m->key_blind))
		return false;
	uint32_t i = hw_wheel_take(&m->key_wheel, hw_tick_floor(hw_monitor_key_seen(m, now)), budget);
	if (i == HW_NIL)
		return false;
	hw_monitor_key_due(m, now, i);
	return true;
}

/* --- sweeps ------------------------------------------------------------------ */

/* The next record of a sweep that is not free, or HW_NIL when it is over or the budget is. */
static uint32_t sweep_next(struct hw_monitor *m, struct hw_sweep *s, unsigned *budget)
{
	uint32_t bound = hw_registry_bound(m->registry);
	while (s->active && *budget > 0) {
		if (s->at >= bound) {
			s->active = false;
			break;
		}
		(*budget)--;
		uint32_t i = s->at++;
		if (hw_registry_at(m->registry, i))
			return i;
	}
	return HW_NIL;
}

/* After a reload. An offline device's forgetting moves by as much as the setting did. */
static void relink_forgetting(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	struct hw_device *d = hw_monitor_at(m, i);
	bool once = d->flags & HW_FLAG_ONCE;
	int64_t was = once ? m->forget_once_was_ms : m->forget_was_ms;
	int64_t is = once ? m->conf.forget_once_after_ms : m->conf.forget_after_ms;
	if (was == is)
		return;
	if (was <= 0 || is <= 0 || d->node.place > HW_PLACE_LEVEL3) {
		hw_monitor_arm(m, now, i);
		return;
	}
	int64_t at = hw_tick_start((struct hw_tick){d->node.due}).ns + (is - was) * HW_NS_PER_MS;
	hw_monitor_arm_at(m, i, (struct hw_seen){at});
}

static void relink(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	if (hw_device_state(hw_monitor_at(m, i)) == HW_STATE_OFFLINE)
		relink_forgetting(m, now, i);
	else
		hw_monitor_arm_earlier(m, now, i);
}

static bool sweep(struct hw_monitor *m, struct hw_now now, unsigned *budget)
{
	uint32_t i = sweep_next(m, &m->settle, budget);
	if (i != HW_NIL) {
		hw_monitor_settle(m, now, i);
		return true;
	}
	i = sweep_next(m, &m->relink, budget);
	if (i != HW_NIL)
		relink(m, now, i);
	return i != HW_NIL;
}

/*
 * While blind the wheel stands still, and with it the refreshes; but the keys' time to live does not. So every device
 * is refreshed once in a third of the shortest time to live, in chunks.
 */
static int64_t refresh_chunk_ns(const struct hw_monitor *m)
{
	int64_t shortest_ms = INT64_MAX / HW_NS_PER_MS;
	for (size_t k = 0; k < m->groups.n_order; k++) {
		int64_t ttl = m->groups.all[m->groups.order[k]]->timeout_ms * m->conf.ttl_factor;
		ttl = ttl > TTL_MIN_MS ? ttl : TTL_MIN_MS;
		shortest_ms = ttl < shortest_ms ? ttl : shortest_ms;
	}
	int64_t chunks = hw_registry_bound(m->registry) / REFRESH_CHUNK + 1;
	return shortest_ms * HW_NS_PER_MS / 3 / chunks;
}

static bool refreshing_blind(const struct hw_monitor *m)
{
	return hw_monitor_is_blind(m) && !m->conf.loading && m->stats.count[HW_STATE_ONLINE] > 0;
}

static void refresh_blind(struct hw_monitor *m, struct hw_now now)
{
	uint32_t bound = hw_registry_bound(m->registry);
	if (!refreshing_blind(m) || now.mono.ns < m->refresh_next.ns)
		return;
	m->refresh_next = hw_mono_add(now.mono, refresh_chunk_ns(m));
	for (int k = 0; k < REFRESH_CHUNK && m->refresh_at < bound; k++, m->refresh_at++) {
		const struct hw_device *d = hw_registry_at(m->registry, m->refresh_at);
		if (d && hw_device_state(d) == HW_STATE_ONLINE)
			hw_monitor_emit_device(m, HW_OUT_REFRESH, m->refresh_at);
	}
	if (m->refresh_at >= bound)
		m->refresh_at = 0;
}

/* --- pull -------------------------------------------------------------------- */

static bool pop(struct hw_monitor *m, struct hw_out *out)
{
	if (m->outs_n == 0)
		return false;
	*out = m->outs[m->outs_head];
	m->outs_head = (m->outs_head + 1) % HW_OUTS;
	m->outs_n--;
	return true;
}

/* One unit of work, or false when there is none. What it causes is emitted. */
static bool work(struct hw_monitor *m, struct hw_now now, unsigned *budget)
{
	if (judge_next(m, now)) {
		(*budget)--;
		return true;
	}
	return take_key_due(m, now, budget) || take_due(m, now, budget) || sweep(m, now, budget);
}

static void count_up(struct hw_monitor *m)
{
	m->stats.candidates = m->candidates.length;
	m->stats.barriers_back = m->sight.barriers_back;
	m->stats.barrier_rtt_ns = m->sight.rtt_ns;
}

bool hw_monitor_next(struct hw_monitor *m, struct hw_now now, unsigned *budget, struct hw_out *out)
{
	if (pop(m, out))
		return true;
	/* Sight first, so that nobody is judged in a turn that begins blind; and last, so that those who became
	 * candidates share a barrier. */
	if (m->stepped.ns != now.mono.ns) {
		m->stepped = now.mono;
		if (step_sight(m, now, out))
			return true;
	}
	while (m->outs_n == 0 && *budget > 0 && work(m, now, budget))
		;
	if (pop(m, out) || step_sight(m, now, out))
		return true;
	refresh_blind(m, now);
	count_up(m);
	return pop(m, out);
}

bool hw_monitor_due(const struct hw_monitor *m, struct hw_now now, struct hw_mono *at)
{
	*at = hw_sight_next(&m->sight, now.mono, last_tag(m), m->pace_ns);
	bool blind = hw_monitor_is_blind(m);
	uint32_t head = m->candidates.head;
	bool judging = head != HW_NIL && !blind && hw_sight_proven(&m->sight, hw_wheel_node(&m->wheel, head)->due);
	if (m->outs_n || m->settle.active || m->relink.active || judging || blind_changed(m)) {
		*at = now.mono;
		return true;
	}
	struct hw_tick tick;
	if (!blind && hw_wheel_next(&m->wheel, &tick)) {
		int64_t wait_ns = hw_tick_start(tick).ns - hw_monitor_seen(m, now).ns;
		struct hw_mono due = hw_mono_add(now.mono, wait_ns > 0 ? wait_ns : 0);
		*at = due.ns < at->ns ? due : *at;
	}
	if (!hw_blind_now(&m->key_blind) && hw_wheel_next(&m->key_wheel, &tick)) {
		int64_t wait_ns = hw_tick_start(tick).ns - hw_monitor_key_seen(m, now).ns;
		struct hw_mono due = hw_mono_add(now.mono, wait_ns > 0 ? wait_ns : 0);
		*at = due.ns < at->ns ? due : *at;
	}
	if (refreshing_blind(m) && m->refresh_next.ns < at->ns)
		*at = m->refresh_next;
	return at->ns != INT64_MAX;
}

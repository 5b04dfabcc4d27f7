/* SPDX-License-Identifier: MIT */
/*
 * Does the work that is due at a time: the due entries of the wheels, the judgement of suspects, forgetting, and the
 * sweeps. See monitor.h.
 *
 * Each device that is checked costs one unit of the caller's budget. When the budget is used up, the next call
 * continues at the same place. So a turn of the loop is short even if a million devices expire in one tick.
 */
#include "arm.h"
#include "door.h"
#include "follow.h"
#include "form.h"
#include "key.h"
#include "out.h"
#include "parent_death.h"
#include "parent_intake.h"
#include "parent_wait.h"
#include "probe.h"

#define REFRESH_CHUNK   256 /* records per step of the sweep while blind */
#define REFRESH_LATE_NS (HW_NS_PER_S / 10)

/* --- barriers and blindness -------------------------------------------------- */

/* Returns the highest tag that a suspect waits for; 0: there is no suspect. Tags never decrease along the queue. */
static uint64_t last_tag(const struct hw_monitor *m)
{
	return m->suspects.length ? hw_wheel_node(&m->wheel, m->suspects.tail)->due : 0;
}

/* Whether the blindness that was last reported as begun is over, even if another one has begun since. */
static bool reported_is_over(const struct hw_monitor *m)
{
	return m->reported.begun && (!hw_monitor_is_blind(m) || m->sight.blind.periods != m->reported.period);
}

/* Whether blindness began or ended, or its cause has changed, since the last report. */
static bool blind_changed(const struct hw_monitor *m)
{
	const struct hw_blind *b = &m->sight.blind;
	return m->reported.begun ? reported_is_over(m) || b->first != m->reported.cause
	                         : b->periods != m->reported.period;
}

/* Reports the begin or the end of a blindness. A blindness that ended before it was reported still gets both
 * reports. */
static bool report_blind(struct hw_monitor *m, struct hw_out *out)
{
	const struct hw_blind *b = &m->sight.blind;
	bool over = reported_is_over(m);
	if (!blind_changed(m))
		return false;
	*out = (struct hw_out){.kind = HW_OUT_BLIND};
	out->blind.begun = m->reported.begun = !over;
	out->blind.lossy = over ? b->ended_lossy : b->lossy;
	if (over) {
		out->blind.length_ns = b->until.ns - m->reported.since.ns;
		if (!hw_blind_now(b)) /* several periods since are reported as one */
			m->reported.period = b->periods;
	} else {
		m->reported.cause = b->first;
		m->reported.period = b->periods;
	}
	m->reported.since = b->since;
	out->blind.cause = m->reported.cause;
	return true;
}

/* Returns the interval of barriers. 0: a barrier is sent at once, because canaries wait for one. */
static int64_t pace_of(const struct hw_monitor *m)
{
	return m->hearing.waits && m->sight.sent < m->hearing.burst ? 0 : m->pace_ns;
}

static bool step_sight(struct hw_monitor *m, struct hw_now now, struct hw_out *out)
{
	struct hw_sight_do todo = hw_sight_step(&m->sight, now.mono, last_tag(m), pace_of(m));
	if (todo.barrier) {
		m->stats.barriers_sent++;
		hw_monitor_emit(m, &(struct hw_out){.kind = HW_OUT_BARRIER, .barrier = m->sight.sent});
	}
	if (todo.reconnect >= 0)
		hw_monitor_emit(m, &(struct hw_out){.kind = HW_OUT_RECONNECT, .source = (unsigned)todo.reconnect});
	if (todo.reopen)
		hw_monitor_emit(m, &(struct hw_out){.kind = HW_OUT_REOPEN});
	return report_blind(m, out);
}

/* --- deafness ----------------------------------------------------------------- */

static struct hw_out canary_out(const struct hw_monitor *m, enum hw_out_kind kind, const struct hw_hearing_do *todo)
{
	const struct hw_hearing_filter *f = &m->hearing.filter[todo->filter];
	return (struct hw_out){.kind = kind,
	                       .canary = {.group = f->group,
	                                  .filter = f->index,
	                                  .topic = f->canary,
	                                  .seq = todo->seq,
	                                  .answer = f->answer}};
}

static int64_t until_ns(struct hw_mono then, struct hw_now now)
{
	return then.ns == INT64_MAX ? INT64_MAX : then.ns - now.mono.ns;
}

static struct hw_out deaf_out(const struct hw_monitor *m, struct hw_now now, size_t filter)
{
	const struct hw_hearing_filter *f = &m->hearing.filter[filter];
	struct hw_mono bound = hw_hearing_bound(&m->hearing, filter);
	struct hw_mono others = hw_hearing_bound_by_others(&m->hearing, now.mono, filter);
	return (struct hw_out){.kind = HW_OUT_DEAF,
	                       .deaf = {.begun = true,
	                                .group = f->group,
	                                .filter = f->index,
	                                .bound_ns = until_ns(bound, now),
	                                .others_ns = until_ns(others, now),
	                                .topic = hw_hearing_may_ask(&m->hearing, filter) ? f->canary : NULL,
	                                .answer = f->answer}};
}

/* Determines for each group whether its upstream is down, and reports each upstream that went down. A retired group
 * is not reported: it has only conditions (`while`) that groups of the file have too. */
void hw_monitor_note_upstream(struct hw_monitor *m, struct hw_now now)
{
	for (size_t k = 0; k < m->groups.n; k++) {
		const struct hw_upstream_value *away = hw_upstream_away(&m->upstream, k);
		if (!away && !m->hearing.group[k].upstream)
			continue;
		int64_t grace_ns = hw_upstream_has(&m->upstream, k) ? m->conf.grace_ms * HW_NS_PER_MS : 0;
		bool begins = hw_hearing_upstream(&m->hearing, &m->sight, now.mono, (uint16_t)k, away, grace_ns);
		if (begins && !m->groups.all[k]->retired)
			hw_monitor_emit(
				m, &(struct hw_out){
					   .kind = HW_OUT_UPSTREAM,
					   .upstream = {.begun = true, .group = (uint16_t)k, .index = away->index}});
	}
}

/* Ends the blindness of a group. The silence of another group's devices also counts from now if this group is an heir
 * of that group (hearing_table.h), or if that group was only guessed and this one may be right (form.h). */
static void end_blindness(struct hw_monitor *m, struct hw_now now, uint16_t group)
{
	m->rearm = (struct hw_sweep){.active = true};
	for (size_t g = 0; g < m->groups.n; g++)
		if (hw_hearing_has_heir(&m->hearing, g, group) || (m->conf.adopt_by && hw_form_are_kin(m, g, group)))
			m->form[g].heard_by_heirs_ns = hw_monitor_group_seen(m, now, (uint16_t)g).ns;
}

/* Returns the length of a group's blindness that has ended; -1: the group is still blind for another cause. */
static int64_t blind_ns(const struct hw_monitor *m, uint16_t group)
{
	const struct hw_blind *b = &m->hearing.group[group].blind;
	return hw_blind_now(b) ? -1 : b->until.ns - b->since.ns;
}

static struct hw_out upstream_over(struct hw_monitor *m, struct hw_now now, uint16_t group)
{
	end_blindness(m, now, group);
	return (struct hw_out){.kind = HW_OUT_UPSTREAM, .upstream = {.group = group, .length_ns = blind_ns(m, group)}};
}

/* Ends the deafness of a group. The group's clock runs again, and all its devices are armed again. */
static struct hw_out deaf_over(struct hw_monitor *m, struct hw_now now, uint16_t group)
{
	end_blindness(m, now, group);
	return (struct hw_out){.kind = HW_OUT_DEAF, .deaf = {.group = group, .length_ns = blind_ns(m, group)}};
}

/* Counts the online devices whose heartbeats the group may receive, as their group or as an heir of it. */
static uint32_t count_online(const struct hw_monitor *m, uint16_t group)
{
	uint32_t online = m->group_stats[group].count[HW_STATE_ONLINE];
	for (size_t g = 0; g < m->groups.n; g++)
		if (m->groups.all[g]->retired && hw_hearing_has_heir(&m->hearing, g, group))
			online += m->group_stats[g].count[HW_STATE_ONLINE];
	return online;
}

static void count_heard(struct hw_monitor *m, struct hw_now now)
{
	for (size_t g = 0; m->hearing.deaf_groups && g < m->hearing.n_groups; g++)
		if (hw_hearing_is_deaf(&m->hearing, (uint16_t)g))
			hw_hearing_count(&m->hearing, now.mono, (uint16_t)g, m->group_stats[g].heartbeats,
			                 count_online(m, (uint16_t)g));
}

static bool step_hearing(struct hw_monitor *m, struct hw_now now, struct hw_out *out)
{
	count_heard(m, now);
	struct hw_hearing_do todo = hw_hearing_step(&m->hearing, &m->sight, now.mono);
	while (todo.what == HW_HEARING_BACK && m->groups.all[todo.group]->retired) {
		upstream_over(m, now, todo.group);
		todo = hw_hearing_step(&m->hearing, &m->sight, now.mono);
	}
	if (todo.what == HW_HEARING_NOTHING)
		return false;
	if (todo.what == HW_HEARING_BACK)
		*out = upstream_over(m, now, todo.group);
	else if (todo.what == HW_HEARING_OVER)
		*out = deaf_over(m, now, todo.group);
	else if (todo.what == HW_HEARING_MUTE)
		*out = deaf_out(m, now, todo.filter);
	else
		*out = canary_out(m, todo.what == HW_HEARING_CANARY ? HW_OUT_CANARY : HW_OUT_CANARY_MISSING, &todo);
	return true;
}

/*
 * Returns `need`: the device's silence counts only if its filters have delivered a message that was sent after `need`.
 * `need` is the device's deadline. For a goodbye, it is the time at which the pair of barriers was sent, or the
 * deadline if that has passed and is earlier. `need` is never before the end of the last blindness.
 *
 * The goodbyes of a group share the time of the first one until a device of the group is judged and its filters work.
 * Otherwise `need` would move forward with each pair of barriers, and a canary that returns later than the barriers
 * would always be too old. In a group without canaries, the later goodbyes wait for the filter's next message, but at
 * most until their devices' deadlines.
 */
static struct hw_mono needed(struct hw_monitor *m, struct hw_now now, const struct hw_device *d, struct hw_mono sent,
                             int64_t late_ns)
{
	struct hw_mono need = {now.mono.ns - late_ns}, *first = &m->hearing.group[d->group].need;
	if (d->flags & HW_FLAG_GOODBYE) {
		if (!first->ns)
			*first = hw_mono_add(sent, -(HW_NS_PER_S / HW_TICKS_PER_S));
		need = late_ns > 0 ? hw_mono_sooner(need, *first) : *first;
	}
	return need.ns > m->sight.blind.until.ns ? need : m->sight.blind.until;
}

enum hw_hearing_verdict hw_monitor_hears_group(struct hw_monitor *m, struct hw_now now, uint16_t group,
                                               struct hw_mono need, uint32_t online, int64_t *wait_ns)
{
	size_t filter = 0;
	enum hw_hearing_verdict heard =
		hw_hearing_judge(&m->hearing, &m->sight, now.mono, group, need, online, wait_ns, &filter);
	if (heard == HW_HEARING_DEAF) {
		struct hw_out out = deaf_out(m, now, filter);
		hw_monitor_emit(m, &out);
	}
	return heard;
}

/* Whether the group, its heirs and its kin (form.h) would have received a heartbeat of a device that is about to become
 * offline. If not, sets e->deaf. If the answer is not known yet, sets e->unheard. */
static bool hears(struct hw_monitor *m, struct hw_now now, const struct hw_device *d, struct hw_mono sent,
                  struct hw_evidence *e)
{
	struct hw_mono need = needed(m, now, d, sent, e->late_ns);
	uint32_t online = m->group_stats[d->group].count[HW_STATE_ONLINE];
	const struct hw_hearing_group *g = &m->hearing.group[d->group];
	enum hw_hearing_verdict heard = hw_monitor_hears_group(m, now, d->group, need, online, &e->wait_ns);
	for (size_t k = 0; k < g->n_heirs && heard == HW_HEARING_HEARS && hw_form_may_have_heirs(m, d); k++)
		heard = hw_monitor_hears_group(m, now, m->hearing.heir[g->heir + k], need, online, &e->wait_ns);
	for (size_t k = 0; k < m->groups.n && heard == HW_HEARING_HEARS && hw_form_is_guessed(m, d); k++)
		if (k != d->group && hw_form_are_kin(m, d->group, k))
			heard = hw_monitor_hears_group(m, now, (uint16_t)k, need, online, &e->wait_ns);
	e->unheard = heard == HW_HEARING_UNSURE;
	e->deaf = heard >= HW_HEARING_DEAF;
	if (heard == HW_HEARING_HEARS)
		m->hearing.group[d->group].need.ns = 0;
	return heard == HW_HEARING_HEARS;
}

/* --- the judgement ----------------------------------------------------------- */

/* Whether the group was blind since the device's goodbye. The record stores the number of blind periods modulo 64.
 * So if very many periods have passed since the last heartbeat, the answer is yes without a comparison. */
static bool was_blind_since_goodbye(const struct hw_monitor *m, const struct hw_device *d)
{
	struct hw_mono heard = {d->last_heard_ms * HW_NS_PER_MS};
	return d->goodbye_period != hw_monitor_periods(m, d->group) || hw_blind_many_since(&m->sight.blind, heard) ||
	       hw_blind_many_since(&m->hearing.group[d->group].blind, heard);
}

/* Judges the first suspect, if its barriers are back. */
static bool judge(struct hw_monitor *m, struct hw_now now, unsigned *budget)
{
	uint32_t i = m->suspects.head;
	if (i == HW_NIL || hw_monitor_is_blind(m) || !hw_sight_proven(&m->sight, hw_wheel_node(&m->wheel, i)->due))
		return false;
	struct hw_device *d = hw_monitor_at(m, i);
	struct hw_mono sent = hw_sight_pair_sent(&m->sight, d->node.due);
	struct hw_evidence family = {.event = HW_EVENT_PROVEN};
	if (hw_parent_may_be_proven(m) && !hw_parent_prove(m, now, i, &family, budget))
		return true;
	int64_t deadline_ns = hw_monitor_deadline(m, now, d).ns;
	bool has_key = hw_monitor_has_key(m, d);
	struct hw_evidence e = {.event = HW_EVENT_PROVEN,
	                        .touched = was_blind_since_goodbye(m, d),
	                        .outrun = hw_blind_seen(&m->sight.blind, sent).ns < deadline_ns,
	                        .by_key = has_key && hw_monitor_key_was_last(m, now, d),
	                        .key_lives = has_key && hw_monitor_key_lives(m, now, i),
	                        .deaf = family.deaf || hw_form_is_unheard(m, d),
	                        .unheard = family.unheard,
	                        .wait_ns = family.wait_ns,
	                        .late_ns = hw_monitor_seen(m, now).ns - deadline_ns};
	hw_monitor_unlink(m, i);
	struct hw_verdict v = hw_verdict(d, &e);
	if (v.act == HW_ACT_OFFLINE && !hears(m, now, d, sent, &e))
		v = hw_verdict(d, &e);
	hw_monitor_carry_out(m, now, i, &e, &v);
	return true;
}

/* --- due entries ------------------------------------------------------------- */

static bool take_due(struct hw_monitor *m, struct hw_now now, unsigned *budget)
{
	if (hw_monitor_is_blind(m))
		return false;
	struct hw_seen seen = hw_monitor_seen(m, now);
	uint32_t i = hw_wheel_take(&m->wheel, hw_tick_floor(seen), budget);
	if (i == HW_NIL)
		return false;
	const struct hw_device *d = hw_monitor_at(m, i);
	if ((d->flags & HW_FLAG_HEARD) && hw_gate_is_authoritative(m, d)) {
		hw_follow_take_over(m, now, i); /* before the device is checked, because the check would forget a
		                                 * device that has sent a heartbeat */
		return true;
	}
	struct hw_evidence family = {.event = HW_EVENT_DUE};
	if (hw_parent_may_be_proven(m) && !hw_parent_prove(m, now, i, &family, budget)) {
		hw_monitor_arm_at(m, i, hw_seen_add(seen, HW_NS_PER_S / HW_TICKS_PER_S));
		return true;
	}
	struct hw_evidence e = {.event = HW_EVENT_DUE,
	                        .orphaned = d->flags & HW_FLAG_PACED && hw_parent_orphaned(m, i),
	                        .by_key = hw_monitor_is_keyed(m, d),
	                        .expected = hw_device_state(d) == HW_STATE_OFFLINE && hw_monitor_is_expected(m, d),
	                        .deaf = family.deaf || hw_form_is_unheard(m, d),
	                        .late_ns = seen.ns - hw_monitor_deadline(m, now, d).ns};
	if (!m->groups.all[d->group]->probes || !hw_probe_due(m, now, i, &e))
		hw_monitor_rule(m, now, i, &e);
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

/* Returns the next used record of a sweep; HW_NIL: the sweep is over, or the budget is used up. */
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

/* Called for each device when loading is over. A provisional device goes online if a heartbeat of this run has
 * arrived, else offline. */
static void settle(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	bool heard = hw_monitor_at(m, i)->last_heard_ms != HW_NEVER_MS;
	hw_monitor_rule(m, now, i, &(struct hw_evidence){.event = HW_EVENT_SETTLED, .heard = heard});
}

/*
 * Sets a last_seen_ns that is ahead of the group's clock to the clock's value. When the deafness of a group is found
 * late, the group's clock goes back to the last delivery of the deaf filter, perhaps by hours. A device that was heard
 * on another filter since then has such a last_seen_ns.
 */
static void limit_last_seen(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	struct hw_device *d = hw_monitor_at(m, i);
	struct hw_key *k = hw_device_key(d);
	int64_t seen_ns = hw_monitor_group_seen(m, now, d->group).ns;
	if (d->last_seen_ns <= seen_ns)
		return;
	if (k && k->silent_ns == d->last_seen_ns)
		k->silent_ns = seen_ns;
	d->last_seen_ns = seen_ns;
}

static bool sweep(struct hw_monitor *m, struct hw_now now, unsigned *budget)
{
	uint32_t i = sweep_next(m, &m->settle, budget);
	if (i != HW_NIL) {
		settle(m, now, i);
		return true;
	}
	i = sweep_next(m, &m->rearm, budget);
	if (i != HW_NIL) {
		limit_last_seen(m, now, i);
		hw_monitor_arm_earlier(m, now, i);
		return true;
	}
	i = m->gate.sweep.active ? hw_follow_next(m, budget) : HW_NIL;
	if (i != HW_NIL) {
		hw_follow_take_over(m, now, i);
		return true;
	}
	i = sweep_next(m, &m->relink, budget);
	if (i != HW_NIL) {
		hw_monitor_relink(m, now, i);
		hw_parent_relink(m, i);
		return true;
	}
	if (!m->parents.names)
		return false;
	return hw_parent_take_next(m, now, budget) || hw_parent_check_next(m, now, budget);
}

/*
 * Returns the time within which all online devices are refreshed while the monitor is blind, or while suspects wait for
 * long: a third of the shortest time to live. In blindness the wheel stands still, and so do its refreshes, but the
 * keys still expire. Refreshes are skipped only if the time to live is at least four timeouts. A skipped refresh then
 * leaves at least half of the time to live. A third of it passes until the last device is refreshed, so a sixth is
 * left.
 */
int64_t hw_monitor_refresh_within_ms(const struct hw_monitor *m)
{
	int64_t shortest_ms = INT64_MAX / HW_NS_PER_MS;
	for (size_t k = 0; k < m->groups.n_order; k++) {
		int64_t timeout_ms = hw_group_shortest_ms(m->groups.all[m->groups.order[k]]);
		int64_t ttl = hw_ttl_ms(timeout_ms, m->conf.ttl_factor);
		shortest_ms = ttl < shortest_ms ? ttl : shortest_ms;
	}
	return shortest_ms / 3;
}

static int64_t refresh_chunk_ns(const struct hw_monitor *m, struct hw_now now)
{
	int64_t chunks = hw_registry_bound(m->registry) / REFRESH_CHUNK + 1;
	int64_t within_ms = hw_monitor_refresh_within_ms(m);
	if (now.mono.ns < m->was_until.ns && m->within_was_ms < within_ms)
		within_ms = m->within_was_ms;
	return within_ms * HW_NS_PER_MS / chunks;
}

/* Whether suspects wait for a late barrier. A suspect is not refreshed, whether it sends or not, until its barriers are
 * back. If that takes as long as the key lives, the key of a device that sends would expire. */
static bool waits_long(const struct hw_monitor *m, struct hw_now now)
{
	return m->suspects.head != HW_NIL && now.mono.ns >= hw_sight_late_at(&m->sight).ns;
}

/* Whether the wheel stands still although the monitor is not blind. If the monitor finds out late that it was blind,
 * the seeing clock goes back, and the wheel waits until the clock has reached its former value. */
static bool wheel_waits(const struct hw_monitor *m, struct hw_now now)
{
	return m->wheel.cursor > hw_tick_ceil(hw_monitor_seen(m, now)).n + HW_TICKS_PER_S;
}

/* Whether all online devices are refreshed at a pace of their own. */
static bool refreshing(const struct hw_monitor *m, struct hw_now now)
{
	return m->stats.count[HW_STATE_ONLINE] > 0 && !m->conf.loading &&
	       (hw_monitor_is_blind(m) || waits_long(m, now) || wheel_waits(m, now));
}

/* Refreshes the next chunk. Each chunk's time follows from the planned time of the chunk before, so that slightly
 * late turns do not make the whole round longer. */
static void refresh_all(struct hw_monitor *m, struct hw_now now)
{
	uint32_t bound = hw_registry_bound(m->registry);
	if (!refreshing(m, now))
		return;
	int64_t chunk_ns = refresh_chunk_ns(m, now), late_ns = now.mono.ns - m->refreshed.ns - chunk_ns;
	if (late_ns < 0)
		return;
	m->refreshed = late_ns < REFRESH_LATE_NS ? hw_mono_add(m->refreshed, chunk_ns) : now.mono;
	for (int k = 0; k < REFRESH_CHUNK && m->refresh_at < bound; k++, m->refresh_at++) {
		const struct hw_device *d = hw_registry_at(m->registry, m->refresh_at);
		if (d && hw_device_state(d) == HW_STATE_ONLINE)
			hw_monitor_emit_device(m, HW_OUT_REFRESH, m->refresh_at);
	}
	if (m->refresh_at >= bound)
		m->refresh_at = 0;
}

/* --- pull -------------------------------------------------------------------- */

/* Does one unit of work and emits its results. Returns false if there is none. */
static bool work(struct hw_monitor *m, struct hw_now now, unsigned *budget)
{
	if (judge(m, now, budget)) {
		*budget -= *budget > 0;
		return true;
	}
	return take_key_due(m, now, budget) || take_due(m, now, budget) || sweep(m, now, budget);
}

static void count_up(struct hw_monitor *m)
{
	m->stats.suspects = m->suspects.length;
	m->stats.barriers_back = m->sight.barriers_back;
	m->stats.barrier_rtt_ns = m->sight.rtt_ns;
}

bool hw_monitor_next(struct hw_monitor *m, struct hw_now now, unsigned *budget, struct hw_out *out)
{
	if (hw_monitor_caused(m, out))
		return true;
	/* hw_sight_step() runs before devices are judged, so that no device is judged in a turn that begins blind.
	 * It runs again at the end, so that all suspects of this turn share a barrier. */
	if (m->stepped.ns != now.mono.ns) {
		m->stepped = now.mono;
		if (step_sight(m, now, out) || step_hearing(m, now, out))
			return true;
	}
	while (m->outs_n == 0 && *budget > 0 && work(m, now, budget))
		;
	if (hw_monitor_caused(m, out) || step_sight(m, now, out) || step_hearing(m, now, out))
		return true;
	refresh_all(m, now);
	count_up(m);
	return hw_monitor_caused(m, out);
}

bool hw_monitor_due(const struct hw_monitor *m, struct hw_now now, struct hw_mono *at)
{
	struct hw_mono hearing = hw_hearing_next(&m->hearing, &m->sight, now.mono);
	*at = hw_sight_next(&m->sight, now.mono, last_tag(m), pace_of(m));
	*at = hearing.ns < at->ns ? hearing : *at;
	bool blind = hw_monitor_is_blind(m), taking = m->family.head != HW_NIL && !blind;
	struct hw_mono check = hw_parent_check_at(m, now);
	*at = check.ns < at->ns ? check : *at;
	uint32_t head = m->suspects.head;
	bool judging = head != HW_NIL && !blind && hw_sight_proven(&m->sight, hw_wheel_node(&m->wheel, head)->due);
	if (m->outs_n || m->settle.active || m->gate.sweep.active || m->rearm.active || m->relink.active || judging ||
	    taking || blind_changed(m)) {
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
	if (head != HW_NIL) {
		struct hw_mono late = hw_sight_late_at(&m->sight);
		*at = late.ns > now.mono.ns && late.ns < at->ns ? late : *at;
	}
	if (refreshing(m, now)) {
		struct hw_mono refresh = hw_mono_add(m->refreshed, refresh_chunk_ns(m, now));
		*at = refresh.ns < at->ns ? refresh : *at;
	}
	return at->ns != INT64_MAX;
}

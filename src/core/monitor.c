/* SPDX-License-Identifier: MIT */
/*
 * The monitor: the object, the door through which every change of state goes, arming, and what may be asked of it. See
 * monitor.h.
 *
 * Invariants: a record is in the wheel, on the candidates' queue, or nowhere (provisional, forgotten, or offline and
 * kept for ever); stats.count[] and group_stats[].count[] are the numbers of records in each state, changed here alone.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "monitor_priv.h"

#define PACE_MIN_NS (250 * HW_NS_PER_MS)
#define PACE_MAX_NS (5 * HW_NS_PER_S)

void hw_monitor_emit(struct hw_monitor *m, const struct hw_out *out)
{
	assert(m->outs_n < HW_OUTS); /* the caller drains after each input */
	m->outs[(m->outs_head + m->outs_n++) % HW_OUTS] = *out;
}

void hw_monitor_emit_device(struct hw_monitor *m, enum hw_out_kind kind, uint32_t i)
{
	hw_monitor_emit(m, &(struct hw_out){.kind = kind, .device = hw_registry_ref(m->registry, i)});
}

/* --- configuration ----------------------------------------------------------- */

/* Grows the arrays that go along with the groups. */
static int fit_groups(struct hw_monitor *m, size_t was)
{
	size_t n = m->groups.n;
	struct hw_group_stats *stats = realloc(m->group_stats, n * sizeof *stats);
	if (!stats)
		return -ENOMEM;
	m->group_stats = stats;
	int64_t *pace = realloc(m->offline_free_ns, n * sizeof *pace);
	if (!pace)
		return -ENOMEM;
	m->offline_free_ns = pace;
	memset(stats + was, 0, (n - was) * sizeof *stats);
	memset(pace + was, 0, (n - was) * sizeof *pace);
	return 0;
}

/* A quarter of the shortest timeout in use, within bounds: a standstill is noticed before anybody is judged for it. */
static void set_pace(struct hw_monitor *m)
{
	int64_t shortest_ms = m->own_timeout.in_force_ms;
	for (size_t k = 0; k < m->groups.n_order; k++) {
		int64_t t = m->groups.all[m->groups.order[k]]->timeout_ms;
		shortest_ms = t < shortest_ms ? t : shortest_ms;
	}
	int64_t pace = shortest_ms < 4 * PACE_MAX_NS / HW_NS_PER_MS ? shortest_ms * HW_NS_PER_MS / 4 : PACE_MAX_NS;
	m->pace_ns = pace < PACE_MIN_NS ? PACE_MIN_NS : pace;
}

void hw_monitor_note_own_timeout(struct hw_monitor *m, struct hw_now now, int64_t timeout_ms)
{
	int64_t seen = hw_monitor_seen(m, now).ns, was_ms = m->own_timeout.in_force_ms;
	if (seen >= m->own_timeout.until_ns) {
		m->own_timeout.in_force_ms = m->own_timeout.noted_ms;
		m->own_timeout.noted_ms = INT64_MAX;
		m->own_timeout.until_ns = seen + HW_ARM_MAX_NS + HW_NS_PER_S;
	}
	if (timeout_ms > 0 && timeout_ms < m->own_timeout.noted_ms)
		m->own_timeout.noted_ms = timeout_ms;
	if (m->own_timeout.noted_ms < m->own_timeout.in_force_ms)
		m->own_timeout.in_force_ms = m->own_timeout.noted_ms;
	if (m->own_timeout.in_force_ms != was_ms)
		set_pace(m);
}

static int set_groups(struct hw_monitor *m, const struct hw_group_spec *specs, size_t n)
{
	size_t was = m->groups.n;
	int rc = hw_groups_set(&m->groups, specs, n);
	if (!rc)
		rc = fit_groups(m, was);
	if (!rc)
		set_pace(m);
	return rc;
}

struct hw_monitor *hw_monitor_new(const struct hw_monitor_conf *conf, const struct hw_group_spec *groups, size_t n,
                                  const uint8_t key[16], struct hw_now now)
{
	struct hw_monitor *m = calloc(1, sizeof *m);
	if (!m)
		return NULL;
	m->conf = *conf;
	m->started = now.mono;
	m->own_timeout.in_force_ms = m->own_timeout.noted_ms = INT64_MAX;
	hw_groups_init(&m->groups);
	hw_queue_init(&m->candidates);
	hw_sight_init(&m->sight, conf, now.mono);
	m->told.begun = true;
	m->told.cause = m->sight.blind.first;
	m->told.period = m->sight.blind.periods;
	m->told.since = m->sight.blind.since;
	hw_wheel_init(&m->wheel, NULL, sizeof(struct hw_device), hw_tick_floor(hw_monitor_seen(m, now)));
	hw_blind_init(&m->key_blind);
	hw_blind_begin(&m->key_blind, HW_CAUSE_LINK, now.mono, true);
	hw_wheel_init(&m->key_wheel, NULL, sizeof(struct hw_device), hw_tick_floor(hw_monitor_key_seen(m, now)));
	m->registry = hw_registry_new(key);
	if (!m->registry || set_groups(m, groups, n)) {
		hw_monitor_free(m);
		return NULL;
	}
	return m;
}

void hw_monitor_free(struct hw_monitor *m)
{
	if (!m)
		return;
	hw_registry_free(m->registry);
	hw_groups_fini(&m->groups);
	free(m->group_stats);
	free(m->offline_free_ns);
	free(m);
}

int hw_monitor_reconfigure(struct hw_monitor *m, struct hw_now now, const struct hw_monitor_conf *conf,
                           const struct hw_group_spec *groups, size_t n)
{
	(void)now;
	int rc = set_groups(m, groups, n);
	if (rc)
		return rc;
	bool loading = m->conf.loading;
	/* A sweep that is still under way has not moved every record from the values before the last reload. */
	if (!m->relink.active) {
		m->forget_was_ms = m->conf.forget_after_ms;
		m->forget_once_was_ms = m->conf.forget_once_after_ms;
	}
	unsigned readers = m->conf.readers;
	m->conf = *conf;
	m->conf.loading = loading;
	m->conf.readers = readers;
	hw_sight_configure(&m->sight, conf);
	m->relink = (struct hw_sweep){.active = true};
	return 0;
}

/* --- records ----------------------------------------------------------------- */

static void set_user(struct hw_device *d, enum hw_state state, enum hw_reason reason, unsigned source)
{
	d->node.user = (uint8_t)((unsigned)state | (unsigned)reason << 2 | source << 5);
}

void hw_monitor_place(struct hw_monitor *m, uint32_t i, enum hw_state state, enum hw_reason reason)
{
	struct hw_device *d = hw_monitor_at(m, i);
	enum hw_state was = hw_device_state(d);
	m->stats.count[was]--;
	m->group_stats[d->group].count[was]--;
	m->stats.count[state]++;
	m->group_stats[d->group].count[state]++;
	set_user(d, state, reason, hw_device_source(d));
}

int hw_monitor_add(struct hw_monitor *m, uint16_t group, const char *id, size_t len, uint32_t *i)
{
	if (hw_registry_count(m->registry) >= m->conf.max_devices) {
		m->stats.refused[HW_REFUSED_MAX_DEVICES]++;
		return -ENOSPC;
	}
	int rc = hw_registry_add(m->registry, id, len, i);
	if (rc) {
		m->stats.refused[HW_REFUSED_MEMORY]++;
		return rc;
	}
	hw_wheel_rebase(&m->wheel, hw_registry_base(m->registry));
	hw_wheel_rebase(&m->key_wheel, hw_registry_base(m->registry));
	struct hw_device *d = hw_monitor_at(m, *i);
	d->group = (unsigned)group & (HW_GROUPS_MAX - 1u);
	d->last_heard_ms = HW_NEVER_MS;
	set_user(d, HW_STATE_PROVISIONAL, HW_REASON_HEARTBEAT, HW_SOURCE_MQTT);
	m->stats.count[HW_STATE_PROVISIONAL]++;
	m->group_stats[group].count[HW_STATE_PROVISIONAL]++;
	return 0;
}

void hw_monitor_move(struct hw_monitor *m, uint32_t i, uint16_t group)
{
	struct hw_device *d = hw_monitor_at(m, i);
	enum hw_state state = hw_device_state(d);
	m->group_stats[d->group].count[state]--;
	d->group = (unsigned)group & (HW_GROUPS_MAX - 1u);
	m->group_stats[group].count[state]++;
}

void hw_monitor_reap(struct hw_monitor *m, struct hw_ref ref)
{
	struct hw_device *d = hw_registry_get(m->registry, ref);
	if (!d || hw_device_state(d) != HW_STATE_FORGOTTEN)
		return;
	m->stats.count[HW_STATE_FORGOTTEN]--;
	m->group_stats[d->group].count[HW_STATE_FORGOTTEN]--;
	hw_registry_remove(m->registry, ref.index);
}

bool hw_monitor_forget(struct hw_monitor *m, struct hw_now now, const char *id, size_t len)
{
	uint32_t i = hw_registry_find(m->registry, id, len);
	if (i == HW_NIL)
		return false;
	enum hw_state state = hw_device_state(hw_monitor_at(m, i));
	if (state != HW_STATE_ONLINE && state != HW_STATE_OFFLINE)
		return false;
	hw_monitor_transition(m, now, i, HW_STATE_FORGOTTEN, HW_REASON_OPERATOR, -1);
	return true;
}

/* --- the door ---------------------------------------------------------------- */

/* Whether its last heartbeat is kept by the wall clock. */
static bool is_gone(enum hw_state state)
{
	return state == HW_STATE_OFFLINE || state == HW_STATE_FORGOTTEN;
}

void hw_monitor_transition(struct hw_monitor *m, struct hw_now now, uint32_t i, enum hw_state state,
                           enum hw_reason reason, int64_t delay_ns)
{
	struct hw_device *d = hw_monitor_at(m, i);
	if (!is_gone(hw_device_state(d)) && is_gone(state) && d->last_heard_ms != HW_NEVER_MS)
		hw_device_set_heard_ms(d, hw_device_last_seen_ms(d, now));
	hw_monitor_place(m, i, state, reason);
	uint64_t wall = now.wall_ms > 0 ? (uint64_t)now.wall_ms : 0;
	uint64_t seq = wall > d->seq ? wall : d->seq + 1;
	d->seq = seq & HW_SEQ_MAX;
	d->since_ms = (int64_t)(wall & (HW_SEQ_MAX >> 1));
	d->flags &= (uint16_t) ~(HW_FLAG_GOODBYE | HW_FLAG_HELD | HW_FLAG_PACED);
	hw_monitor_arm(m, now, i);
	m->stats.transitions[reason]++;
	hw_monitor_emit(m, &(struct hw_out){.kind = HW_OUT_TRANSITION,
	                                    .transition = {.device = hw_registry_ref(m->registry, i),
	                                                   .state = state,
	                                                   .reason = reason,
	                                                   .time_ms = d->since_ms,
	                                                   .last_seen_ms = hw_device_last_seen_ms(d, now),
	                                                   .seq = d->seq,
	                                                   .delay_ns = delay_ns}});
}

bool hw_monitor_adopt_seq(struct hw_monitor *m, struct hw_ref ref, uint64_t seq)
{
	struct hw_device *d = hw_registry_get(m->registry, ref);
	if (!d || seq >= HW_SEQ_MAX || d->seq > seq)
		return false;
	d->seq = (seq + 1) & HW_SEQ_MAX;
	return true;
}

/* --- deadlines and arming ---------------------------------------------------- */

int64_t hw_monitor_timeout_ms(const struct hw_monitor *m, const struct hw_device *d)
{
	const struct hw_group *g = m->groups.all[d->group];
	if (!d->extra || d->extra->own_timeout_ms <= 0)
		return g->timeout_ms;
	int64_t own = d->extra->own_timeout_ms;
	if (own > g->timeout_max_ms)
		own = g->timeout_max_ms;
	return own < HW_TIMEOUT_MIN_MS ? HW_TIMEOUT_MIN_MS : own;
}

struct hw_seen hw_monitor_deadline(const struct hw_monitor *m, const struct hw_device *d)
{
	int64_t timeout_ns = hw_monitor_timeout_ms(m, d) * HW_NS_PER_MS;
	int64_t from = d->last_seen_ns, lossy_end = m->sight.blind.lossy_end.ns;
	int64_t anew = (lossy_end > from ? lossy_end : from) + timeout_ns;
	int64_t bound = from + 3 * timeout_ns;
	return (struct hw_seen){anew < bound ? anew : bound};
}

void hw_monitor_unlink(struct hw_monitor *m, uint32_t i)
{
	struct hw_device *d = hw_monitor_at(m, i);
	switch (d->node.place) {
	case HW_PLACE_NONE:
		break;
	case HW_PLACE_QUEUE:
		hw_queue_del(&m->wheel, &m->candidates, i);
		break;
	default:
		hw_wheel_del(d->flags & HW_FLAG_KEYED ? &m->key_wheel : &m->wheel, i);
	}
	d->flags &= (uint16_t)~HW_FLAG_KEYED;
}

void hw_monitor_arm_at(struct hw_monitor *m, uint32_t i, struct hw_seen at)
{
	hw_monitor_unlink(m, i);
	hw_wheel_add(&m->wheel, i, hw_tick_ceil(at));
}

void hw_monitor_candidate(struct hw_monitor *m, uint32_t i)
{
	hw_monitor_unlink(m, i);
	hw_queue_push(&m->wheel, &m->candidates, i, hw_sight_tag(&m->sight));
}

struct hw_seen hw_monitor_arm_point(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d)
{
	struct hw_seen at = hw_monitor_deadline(m, d);
	int64_t latest = hw_monitor_seen(m, now).ns + HW_ARM_MAX_NS;
	return (struct hw_seen){at.ns < latest ? at.ns : latest};
}

static int64_t forget_ms(const struct hw_monitor *m, const struct hw_device *d)
{
	return d->flags & HW_FLAG_ONCE ? m->conf.forget_once_after_ms : m->conf.forget_after_ms;
}

void hw_monitor_arm(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	struct hw_device *d = hw_monitor_at(m, i);
	switch (hw_device_state(d)) {
	case HW_STATE_ONLINE:
		hw_monitor_note_own_timeout(m, now, d->extra ? d->extra->own_timeout_ms : 0);
		if (hw_monitor_has_key(m, d))
			hw_monitor_key_arm(m, now, i);
		else
			hw_monitor_arm_at(m, i, hw_monitor_arm_point(m, now, d));
		break;
	case HW_STATE_OFFLINE:
		hw_monitor_unlink(m, i);
		if (forget_ms(m, d) > 0)
			hw_monitor_arm_at(m, i, hw_seen_add(hw_monitor_seen(m, now), forget_ms(m, d) * HW_NS_PER_MS));
		break;
	default:
		hw_monitor_unlink(m, i);
	}
}

void hw_monitor_arm_earlier(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	struct hw_device *d = hw_monitor_at(m, i);
	if (hw_device_state(d) != HW_STATE_ONLINE || d->node.place > HW_PLACE_LEVEL3)
		return;
	if (d->flags & HW_FLAG_KEYED) {
		hw_monitor_arm(m, now, i);
		return;
	}
	struct hw_seen at = hw_monitor_arm_point(m, now, d);
	if (hw_tick_ceil(at).n < d->node.due)
		hw_monitor_arm_at(m, i, at);
}

/* --- evidence that is not a message ------------------------------------------ */

void hw_monitor_barrier(struct hw_monitor *m, struct hw_now now, unsigned reader, uint64_t number)
{
	if (reader < m->sight.n_readers)
		hw_sight_barrier(&m->sight, now.mono, reader, number);
}

void hw_monitor_arrived(struct hw_monitor *m, struct hw_now now, unsigned reader)
{
	if (reader < m->sight.n_readers)
		hw_sight_arrived(&m->sight, now.mono, reader);
}

void hw_monitor_link(struct hw_monitor *m, struct hw_now now, unsigned reader, bool up)
{
	if (reader < m->sight.n_readers)
		hw_sight_link(&m->sight, now.mono, reader, up);
}

void hw_monitor_publisher(struct hw_monitor *m, struct hw_now now, bool up)
{
	(void)now;
	hw_sight_publisher(&m->sight, up);
}

void hw_monitor_stall(struct hw_monitor *m, struct hw_now now, struct hw_mono planned)
{
	hw_sight_stall(&m->sight, planned, now.mono);
}

void hw_monitor_drained(struct hw_monitor *m, struct hw_now now)
{
	hw_sight_drained(&m->sight, now.mono);
}

void hw_monitor_suspended(struct hw_monitor *m, struct hw_now now, struct hw_mono since)
{
	hw_sight_suspended(&m->sight, since, now.mono);
	hw_monitor_key_loss(m, now); /* their writers may have slept as well */
}

void hw_monitor_loss(struct hw_monitor *m, struct hw_now now, unsigned reader)
{
	if (reader < m->sight.n_readers)
		hw_sight_loss(&m->sight, now.mono, reader);
}

/* --- questions --------------------------------------------------------------- */

struct hw_registry *hw_monitor_registry(const struct hw_monitor *m)
{
	return m->registry;
}

const struct hw_wheel *hw_monitor_wheel(const struct hw_monitor *m)
{
	return &m->wheel;
}

const struct hw_wheel *hw_monitor_key_wheel(const struct hw_monitor *m)
{
	return m->conf.key_group ? &m->key_wheel : NULL;
}

const struct hw_wheel *hw_monitor_wheel_of(const struct hw_monitor *m, const struct hw_device *d)
{
	return d->flags & HW_FLAG_KEYED ? &m->key_wheel : &m->wheel;
}

const struct hw_groups *hw_monitor_groups(const struct hw_monitor *m)
{
	return &m->groups;
}

const struct hw_group *hw_monitor_group_of(const struct hw_monitor *m, const struct hw_device *d)
{
	return m->groups.all[d->group];
}

const struct hw_blind *hw_monitor_blind(const struct hw_monitor *m)
{
	return &m->sight.blind;
}

const struct hw_monitor_stats *hw_monitor_stats(const struct hw_monitor *m)
{
	return &m->stats;
}

const struct hw_group_stats *hw_monitor_group_stats(const struct hw_monitor *m, size_t group)
{
	return &m->group_stats[group];
}

int64_t hw_device_last_seen_ms(const struct hw_device *d, struct hw_now now)
{
	if (d->last_heard_ms == HW_NEVER_MS)
		return 0;
	if (is_gone(hw_device_state(d)))
		return d->last_heard_ms;
	int64_t age_ms = now.mono.ns / HW_NS_PER_MS - d->last_heard_ms;
	return now.wall_ms - age_ms;
}

int64_t hw_monitor_due_in_ms(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d)
{
	int64_t seen = hw_monitor_seen(m, now).ns;
	if (hw_device_state(d) == HW_STATE_ONLINE) {
		int64_t left = hw_monitor_is_keyed(m, d) ? INT64_MIN : hw_monitor_deadline(m, d).ns - seen;
		int64_t key = hw_monitor_has_key(m, d) ? hw_monitor_key_left_ns(m, now, d) : INT64_MIN;
		left = left > key ? left : key; /* known by both, it is offline when both are silent */
		return left > HW_KEY_FOREVER / 2 ? INT64_MAX : left / HW_NS_PER_MS;
	}
	if (d->node.place > HW_PLACE_LEVEL3)
		return INT64_MAX;
	return (hw_tick_start((struct hw_tick){d->node.due}).ns - seen) / HW_NS_PER_MS;
}

const char *hw_refused_name(enum hw_refused k)
{
	static const char *const names[HW_REFUSED_KINDS] = {"id",      "max_devices", "timeout", "stale", "retained",
	                                                    "monitor", "topic",       "memory",  "batch"};
	return (unsigned)k < HW_REFUSED_KINDS ? names[k] : "unknown";
}

/* SPDX-License-Identifier: MIT */
/*
 * The monitor: the object, its records, and its queries. See monitor.h.
 *
 * Invariant: a record is in one of the wheels, in the queue of suspects, or in none of them. It is in none of them if
 * the device is provisional or forgotten, if it is offline without forget_after, or if another node decides for it and
 * this node has found it silent (HW_FLAG_SILENT).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "form.h"
#include "heartwheel/expected.h"
#include "learning.h"
#include "left_out.h"
#include "monitor_priv.h"
#include "out.h"
#include "parent_intake.h"

#define PACE_MIN_NS (250 * HW_NS_PER_MS)
#define PACE_MAX_NS (5 * HW_NS_PER_S)

/* --- configuration ----------------------------------------------------------- */

int hw_monitor_fit_groups(struct hw_monitor *m, size_t n)
{
	size_t was = m->groups.n;
	struct hw_group_stats *stats = realloc(m->group_stats, n * sizeof(*stats));
	if (!stats)
		return -ENOMEM;
	m->group_stats = stats;
	int64_t *pace = realloc(m->offline_free_ns, n * sizeof(*pace));
	if (!pace)
		return -ENOMEM;
	m->offline_free_ns = pace;
	struct hw_form *form = realloc(m->form, n * sizeof(*form));
	if (!form)
		return -ENOMEM;
	m->form = form;
	for (size_t g = was; g < n; g++)
		form[g] = (struct hw_form){.heard_ns = INT64_MIN,
		                           .other_ns = INT64_MIN,
		                           .silent_ns = INT64_MIN,
		                           .heard_by_heirs_ns = INT64_MIN};
	memset(stats + was, 0, (n - was) * sizeof(*stats));
	memset(pace + was, 0, (n - was) * sizeof(*pace));
	return 0;
}

/* Sets the regular interval of barriers to a quarter of the shortest timeout in use, within limits. So a standstill
 * of the broker is detected before the timeout of a device ends because of it. */
static void set_pace(struct hw_monitor *m)
{
	int64_t shortest_ms = m->own_timeout.in_force_ms;
	for (size_t k = 0; k < m->groups.n_order; k++) {
		int64_t t = hw_group_shortest_ms(m->groups.all[m->groups.order[k]]);
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

/* Called when a reload adds topics of `while`: the monitor now expects their retained values. The retained values
 * arrive before the second of the barriers that are sent from now on is back. */
static void expect_upstreams(struct hw_monitor *m)
{
	if (m->upstream.asking && m->upstream.after == UINT64_MAX)
		return;
	m->upstream.renewing = m->upstream.renewing && m->upstream.asking;
	m->upstream.asking = true;
	m->upstream.after = m->sight.sent + 1;
}

/* Sets the groups. Each step that can fail comes before the first change. So if there is no memory, nothing changes. */
static int set_groups(struct hw_monitor *m, struct hw_now now, const struct hw_group_spec *specs, size_t n)
{
	struct hw_groups_draft draft;
	struct hw_form_was *was;
	size_t n_was = m->groups.n;
	int rc = hw_groups_draft(&m->groups, specs, n, &draft);
	if (rc)
		return rc;
	struct hw_upstream upstream;
	rc = hw_upstream_make(&upstream, &m->upstream, &draft.next);
	if (rc) {
		hw_groups_draft_fini(&draft);
		return rc;
	}
	rc = hw_form_begin(m, &was);
	if (!rc)
		rc = hw_monitor_fit_groups(m, draft.next.n);
	if (!rc)
		rc = hw_learning_fit_groups(m, &draft.next);
	if (!rc)
		rc = hw_hearing_configure(&m->hearing, &m->sight, &draft.next, m->conf.canaries ? m->conf.node : NULL,
		                          now.mono);
	if (rc) {
		hw_upstream_fini(&upstream);
		hw_groups_draft_fini(&draft);
		free(was);
		return rc;
	}
	hw_groups_install(&m->groups, &draft);
	hw_upstream_fini(&m->upstream);
	m->upstream = upstream;
	expect_upstreams(m);
	hw_monitor_note_upstream(m, now);
	hw_form_end(m, now, was, n_was);
	free(was);
	hw_parent_configure(m);
	hw_learning_configure(m);
	set_pace(m);
	return 0;
}

/* A single node decides for every partition. */
static void init_gate(struct hw_gate *g, bool several)
{
	g->all = !several;
	for (unsigned p = 0; p < HW_PARTITIONS && !several; p++) {
		hw_partitions_add(&g->owned, p);
		hw_partitions_add(&g->authoritative, p);
	}
}

struct hw_monitor *hw_monitor_new(const struct hw_monitor_conf *conf, const struct hw_group_spec *groups, size_t n,
                                  const uint8_t key[16], struct hw_now now)
{
	struct hw_monitor *m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->conf = *conf;
	memcpy(m->probe.key, key, sizeof(m->probe.key));
	init_gate(&m->gate, conf->several);
	m->started = now.mono;
	m->own_timeout.in_force_ms = m->own_timeout.noted_ms = INT64_MAX;
	hw_groups_init(&m->groups);
	hw_queue_init(&m->suspects);
	m->family.head = HW_NIL;
	m->family.goodbye_ms = INT64_MIN;
	hw_sight_init(&m->sight, conf, now.mono);
	hw_hearing_init(&m->hearing, now);
	m->reported.begun = true;
	m->reported.cause = m->sight.blind.first;
	m->reported.period = m->sight.blind.periods;
	m->reported.since = m->sight.blind.since;
	hw_wheel_init(&m->wheel, NULL, sizeof(struct hw_device), hw_tick_floor(hw_monitor_seen(m, now)));
	hw_blind_init(&m->key_blind);
	hw_blind_begin(&m->key_blind, HW_CAUSE_LINK, now.mono, true);
	hw_wheel_init(&m->key_wheel, NULL, sizeof(struct hw_device), hw_tick_floor(hw_monitor_key_seen(m, now)));
	hw_upstream_ask(&m->upstream);
	m->registry = hw_registry_new(key);
	m->expected = hw_expected_new(key);
	if (!m->registry || !m->expected || set_groups(m, now, groups, n)) {
		hw_monitor_free(m);
		return NULL;
	}
	return m;
}

void hw_monitor_free(struct hw_monitor *m)
{
	if (!m)
		return;
	hw_expected_free(m->expected);
	hw_registry_free(m->registry);
	hw_groups_fini(&m->groups);
	hw_hearing_fini(&m->hearing);
	hw_upstream_fini(&m->upstream);
	free(m->group_stats);
	free(m->offline_free_ns);
	free(m->form);
	free(m->left_out.all);
	free(m->gate.reread.found);
	free(m->gate.reread.missing);
	hw_learning_fini(m);
	hw_parents_fini(&m->parents);
	free(m->family.waits);
	free(m->family.peer_forms);
	free(m);
}

/* Stores the present times to live before a reload changes them: keys that were refreshed before still have these. */
static void note_ttls(struct hw_monitor *m, struct hw_now now)
{
	int64_t within_ms = hw_monitor_refresh_within_ms(m), longest_ms = 0;
	for (size_t k = 0; k < m->groups.n_order; k++) {
		int64_t ttl_ms = hw_ttl_ms(m->groups.all[m->groups.order[k]]->timeout_ms, m->conf.ttl_factor);
		longest_ms = ttl_ms > longest_ms ? ttl_ms : longest_ms;
	}
	struct hw_mono until = hw_mono_add(now.mono, longest_ms * HW_NS_PER_MS);
	if (now.mono.ns >= m->was_until.ns || within_ms < m->within_was_ms)
		m->within_was_ms = within_ms;
	if (until.ns > m->was_until.ns)
		m->was_until = until;
}

void hw_monitor_begin_relink(struct hw_monitor *m)
{
	/* If the sweep of an earlier reload still runs, some records still use the settings from before that reload. */
	if (!m->relink.active) {
		m->forget_was_ms = m->conf.forget_after_ms;
		m->forget_once_was_ms = m->conf.forget_once_after_ms;
	}
	m->relink = (struct hw_sweep){.active = true};
}

void hw_monitor_end_adoption(struct hw_monitor *m)
{
	m->adopted |= m->sight.blind.periods > 1 || !hw_monitor_is_blind(m);
}

int hw_monitor_reconfigure(struct hw_monitor *m, struct hw_now now, const struct hw_monitor_conf *conf,
                           const struct hw_group_spec *groups, size_t n)
{
	hw_monitor_end_adoption(m);
	note_ttls(m, now);
	int rc = set_groups(m, now, groups, n);
	if (rc)
		return rc;
	bool loading = m->conf.loading, several = m->conf.several;
	hw_monitor_begin_relink(m);
	unsigned readers = m->conf.readers;
	if (conf->max_devices > m->conf.max_devices)
		m->left_out.next.ns = 0;
	m->conf = *conf;
	m->conf.loading = loading;
	m->conf.several = several;
	m->conf.readers = readers;
	hw_sight_configure(&m->sight, conf);
	m->skips_from = hw_mono_add(now.mono, HW_ARM_MAX_NS);
	return 0;
}

/* --- records ----------------------------------------------------------------- */

int hw_monitor_add(struct hw_monitor *m, uint16_t group, const char *id, size_t len, uint32_t *i)
{
	bool full = hw_registry_count(m->registry) >= m->conf.max_devices;
	int rc = full ? -ENOSPC : hw_registry_add(m->registry, id, len, i);
	if (!rc && hw_learning_add(m, *i)) {
		hw_registry_remove(m->registry, *i);
		rc = -ENOMEM;
	}
	if (rc) {
		m->stats.refused[full ? HW_REFUSED_MAX_DEVICES : HW_REFUSED_MEMORY]++;
		hw_unseen_refused(m, id, len);
		return rc;
	}
	hw_left_out_remove(m, id, len);
	hw_wheel_rebase(&m->wheel, hw_registry_base(m->registry));
	hw_wheel_rebase(&m->key_wheel, hw_registry_base(m->registry));
	struct hw_device *d = hw_monitor_at(m, *i);
	d->group = (unsigned)group & (HW_GROUPS_MAX - 1u);
	d->last_heard_ms = HW_NEVER_MS;
	hw_device_set_state(d, HW_STATE_PROVISIONAL, HW_REASON_HEARTBEAT);
	hw_device_set_source(d, HW_SOURCE_MQTT);
	m->stats.count[HW_STATE_PROVISIONAL]++;
	m->group_stats[group].count[HW_STATE_PROVISIONAL]++;
	hw_parent_added(m, *i);
	hw_unseen_added(m, *i);
	return 0;
}

void hw_monitor_move(struct hw_monitor *m, struct hw_now now, uint32_t i, uint16_t group)
{
	struct hw_device *d = hw_monitor_at(m, i);
	d->last_seen_ns += hw_monitor_group_seen(m, now, group).ns - hw_monitor_group_seen(m, now, d->group).ns;
	d->skips_refresh = 0;
	hw_learning_move(m, now, i, d->group, group);
	enum hw_state state = hw_device_state(d);
	m->group_stats[d->group].count[state]--;
	d->group = (unsigned)group & (HW_GROUPS_MAX - 1u);
	m->group_stats[group].count[state]++;
}

void hw_monitor_left_topic(struct hw_monitor *m, uint32_t i, uint16_t group)
{
	hw_monitor_emit(
		m, &(struct hw_out){.kind = HW_OUT_MOVED, .left = group, .device = hw_registry_ref(m->registry, i)});
}

void hw_monitor_reap(struct hw_monitor *m, struct hw_ref ref)
{
	struct hw_device *d = hw_registry_get(m->registry, ref);
	if (!d || hw_device_state(d) != HW_STATE_FORGOTTEN)
		return;
	m->stats.count[HW_STATE_FORGOTTEN]--;
	m->group_stats[d->group].count[HW_STATE_FORGOTTEN]--;
	hw_parent_removed(m, ref.index);
	hw_registry_remove(m->registry, ref.index);
}

/* --- queries ----------------------------------------------------------------- */

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

bool hw_monitor_in_grace(const struct hw_monitor *m)
{
	return hw_sight_in_grace(&m->sight);
}

struct hw_mono hw_monitor_barrier_back(const struct hw_monitor *m)
{
	return hw_sight_sent_after(&m->sight);
}

int64_t hw_monitor_grace_left_ms(const struct hw_monitor *m, struct hw_mono now)
{
	struct hw_mono end = hw_sight_grace_end(&m->sight);
	if (!hw_monitor_in_grace(m))
		return -1;
	return end.ns > now.ns ? (end.ns - now.ns + HW_NS_PER_MS - 1) / HW_NS_PER_MS : 0;
}

struct hw_blindness hw_monitor_blindness(const struct hw_monitor *m)
{
	const struct hw_blind *b = &m->sight.blind;
	const struct hw_hearing *h = &m->hearing;
	enum hw_cause own = h->deaf_groups > 0 ? HW_CAUSE_DEAF : HW_CAUSE_UPSTREAM;
	struct hw_mono own_since = h->deaf_groups > 0 ? h->deaf_since : h->upstream_since;
	return (struct hw_blindness){.blind = hw_blind_now(b) || h->deaf_groups > 0 || h->upstream_groups > 0,
	                             .cause = hw_blind_now(b) ? b->first : own,
	                             .since = hw_blind_now(b) ? b->since : own_since,
	                             .upstream_groups = h->upstream_groups,
	                             .upstream_since = h->upstream_since,
	                             .upstream_ns = h->upstream_ns,
	                             .deaf_groups = h->deaf_groups,
	                             .deaf_since = h->deaf_since,
	                             .deaf_ns = h->deaf_ns};
}

bool hw_monitor_group_is_deaf(const struct hw_monitor *m, size_t group)
{
	return hw_hearing_is_deaf(&m->hearing, (uint16_t)group);
}

struct hw_mono hw_monitor_group_deaf_since(const struct hw_monitor *m, size_t group)
{
	return hw_monitor_group_is_deaf(m, group) ? m->hearing.group[group].blind.since : (struct hw_mono){0};
}

static const struct hw_while *while_of(const struct hw_monitor *m, const struct hw_upstream_value *v)
{
	return &m->groups.all[v->of]->whiles[v->index];
}

const struct hw_while *hw_monitor_group_upstream(const struct hw_monitor *m, size_t group)
{
	const struct hw_upstream *u = &m->upstream;
	if (!m->hearing.group[group].upstream || !hw_upstream_has(u, group))
		return NULL;
	const struct hw_upstream_value *away = hw_upstream_away(u, group);
	return while_of(m, away ? away : &u->value[u->part[group].first]); /* in the grace no value differs, so the
	                                                                    * first one is named */
}

const struct hw_while *hw_monitor_group_unknown(const struct hw_monitor *m, size_t group)
{
	const struct hw_upstream *u = &m->upstream;
	for (size_t k = 0; hw_upstream_has(u, group) && k < u->part[group].n; k++)
		if (!u->value[u->part[group].first + k].last)
			return while_of(m, &u->value[u->part[group].first + k]);
	return NULL;
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
	if (hw_state_is_gone(hw_device_state(d)) && !(d->flags & HW_FLAG_HEARD))
		return d->last_heard_ms;
	int64_t age_ms = now.mono.ns / HW_NS_PER_MS - d->last_heard_ms;
	return now.wall_ms - age_ms;
}

const char *hw_refused_name(enum hw_refused k)
{
	static const char *const names[HW_REFUSED_KINDS] = {
		"id",    "max_devices", "timeout",  "stale", "retained", "flagged", "monitor",    "topic", "memory",
		"probe", "batch",       "stranger", "epoch", "parent",   "stored",  "properties", "status"};
	return (unsigned)k < HW_REFUSED_KINDS ? names[k] : "unknown";
}

void hw_monitor_count_refused(struct hw_monitor *m, enum hw_refused k, uint64_t n)
{
	m->stats.refused[k] += n;
}

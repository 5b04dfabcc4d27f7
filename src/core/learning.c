/* SPDX-License-Identifier: MIT */
/* See learning.h. */
#include "learning.h"

#include <errno.h>
#include <stdlib.h>

#include "arm.h"
#include "out.h"
#include "pages.h"

#define DEVICES_MIN 4096 /* room of the array at first */
/* The clocks that measure a gap are in whole milliseconds, so their results may differ by DIFFER_MS. While a device
 * is offline, the wall clock is also corrected; it may differ by DIFFER_WALL_MS. */
#define DIFFER_MS      2
#define DIFFER_WALL_MS 100

static bool learns(const struct hw_group *g)
{
	return g->learn != HW_LEARN_NO;
}

static int grow(struct hw_monitor *m, uint32_t n)
{
	struct hw_learning *l = &m->learning;
	uint32_t cap = l->cap ? l->cap : DEVICES_MIN;
	while (cap < n)
		cap += cap / 2;
	struct hw_gaps *gaps = hw_pages_grow(l->gaps, l->cap * sizeof(*gaps), cap * sizeof(*gaps));
	if (!gaps)
		return -ENOMEM;
	l->gaps = gaps;
	l->cap = cap;
	return 0;
}

int hw_learning_fit_groups(struct hw_monitor *m, const struct hw_groups *groups)
{
	bool any = false;
	for (size_t k = 0; k < groups->n_order; k++)
		any |= learns(groups->all[groups->order[k]]);
	return any && !m->learning.gaps ? grow(m, m->registry ? hw_registry_bound(m->registry) : 0) : 0;
}

static void set_rules(struct hw_form *f, const struct hw_group *g, bool on)
{
	struct hw_learn_rules was = f->rules;
	f->learns = on;
	if (!f->learns)
		return;
	hw_learn_rules_init(&f->rules, g->timeout_min_ms, g->timeout_max_ms, g->mistakes, g->mistakes_per_ms,
	                    g->learn_gaps);
	hw_learn_rules_first(&f->rules, g->timeout_ms);
	f->other_windows = was.unit_ms != f->rules.unit_ms;
}

void hw_learning_configure(struct hw_monitor *m)
{
	bool any = false;
	for (size_t k = 0; k < m->groups.n_order; k++)
		any |= learns(m->groups.all[m->groups.order[k]]);
	/* Retired groups too: the devices of a renamed group stay in the retired group until their next heartbeat, with
	 * their learned timeouts. */
	for (size_t g = 0; g < m->groups.n; g++)
		set_rules(&m->form[g], m->groups.all[g], any && learns(m->groups.all[g]));
	if (!any)
		hw_learning_fini(m);
}

int hw_learning_add(struct hw_monitor *m, uint32_t i)
{
	if (!m->learning.gaps)
		return 0;
	if (i >= m->learning.cap && grow(m, i + 1))
		return -ENOMEM;
	m->learning.gaps[i] = (struct hw_gaps){{0}};
	return 0;
}

void hw_learning_fini(struct hw_monitor *m)
{
	hw_pages_free(m->learning.gaps, m->learning.cap * sizeof(*m->learning.gaps));
	m->learning = (struct hw_learning){0};
}

void hw_learning_forget(struct hw_monitor *m, uint32_t i)
{
	hw_monitor_at(m, i)->flags &= (uint16_t) ~(HW_FLAG_TIMED | HW_FLAG_LEARNED);
	if (m->learning.gaps)
		m->learning.gaps[i] = (struct hw_gaps){{0}};
}

void hw_learning_move(struct hw_monitor *m, struct hw_now now, uint32_t i, uint16_t from, uint16_t to)
{
	struct hw_form *f = &m->form[to];
	if (!m->groups.all[from]->retired || !m->form[from].learns || !f->learns) {
		hw_learning_forget(m, i);
		return;
	}
	hw_monitor_at(m, i)->flags &= (uint16_t)~HW_FLAG_TIMED;
	if (m->form[from].rules.unit_ms != f->rules.unit_ms)
		hw_learn_restart(&m->learning.gaps[i], &f->rules, now.wall_ms);
}

void hw_learning_relink(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	struct hw_form *f = &m->form[hw_monitor_at(m, i)->group];
	if (!f->learns)
		hw_learning_forget(m, i);
	else if (f->other_windows)
		hw_learn_restart(&m->learning.gaps[i], &f->rules, now.wall_ms);
}

void hw_learning_load(struct hw_monitor *m, struct hw_now now, uint32_t i, const char *text, size_t len)
{
	struct hw_gaps gaps;
	struct hw_learn_rules *rules = &m->form[hw_monitor_at(m, i)->group].rules;
	int64_t unit_ms;
	if (!hw_learning_is_on(m, hw_monitor_at(m, i)) || !hw_learn_parse(&gaps, &unit_ms, text, len))
		return;
	int64_t own_ms = hw_learned_ms(&m->learning.gaps[i], rules);
	if (own_ms != 0 && own_ms >= hw_learned_ms(&gaps, rules))
		return;
	m->learning.gaps[i] = gaps;
	if (unit_ms != rules->unit_ms)
		hw_learn_restart(&m->learning.gaps[i], rules, now.wall_ms);
}

/* Returns the begin of the last blindness of the group or of the monitor, whichever is later, on the group's seeing
 * clock. A blindness that is not over counts too. */
static int64_t blind_ns(const struct hw_monitor *m, uint16_t group)
{
	struct hw_seen begun = m->sight.blind.begun;
	if (!m->hearing.clocks_differ)
		return begun.ns;
	int64_t own_ns = m->hearing.group[group].blind.begun.ns;
	begun = hw_hearing_seen(&m->hearing, group, begun);
	return begun.ns > own_ns ? begun.ns : own_ns;
}

/* Whether the device could be heard during the whole silence that ends now. `*gap_ms` is the length of the silence. */
static bool is_seen(const struct hw_monitor *m, struct hw_now now, const struct hw_moment *t, const struct hw_device *d,
                    int64_t *gap_ms)
{
	int64_t gap_ns = hw_hearing_seen(&m->hearing, d->group, t->seen).ns - d->last_seen_ns;
	bool gone = hw_state_is_gone(hw_device_state(d)) && !(d->flags & HW_FLAG_HEARD);
	int64_t clock_ms = (gone ? now.wall_ms : t->mono_ms) - d->last_heard_ms;
	*gap_ms = gap_ns / HW_NS_PER_MS;
	int64_t differ_ms = clock_ms > *gap_ms ? clock_ms - *gap_ms : *gap_ms - clock_ms;
	return gap_ns >= 0 && blind_ns(m, d->group) < d->last_seen_ns &&
	       differ_ms <= (gone ? DIFFER_WALL_MS + *gap_ms / 256 : DIFFER_MS);
}

/* Whether the device itself caused the silence: the device had not announced it, and no other device caused it. */
static bool is_its_own(const struct hw_device *d)
{
	enum hw_state state = hw_device_state(d);
	bool silent = state == HW_STATE_OFFLINE && hw_device_reason(d) == HW_REASON_TIMEOUT;
	return (state == HW_STATE_ONLINE || silent) && !(d->flags & HW_FLAG_GOODBYE);
}

/* Whether the timeout has fallen below a power of two. So the timeouts of several falls cannot add up to more than a
 * factor of two, and no record of the written timeout is necessary. */
static bool has_fallen(const struct hw_learn_rules *rules, const struct hw_gaps *was, const struct hw_gaps *is)
{
	uint64_t was_ms = (uint64_t)hw_learned_ms(was, rules), is_ms = (uint64_t)hw_learned_ms(is, rules);
	return is_ms < was_ms && (is_ms ^ was_ms) > is_ms;
}

bool hw_learning_gap(struct hw_monitor *m, struct hw_now now, const struct hw_moment *t, uint32_t i)
{
	struct hw_device *d = hw_monitor_at(m, i);
	struct hw_gaps *gaps = &m->learning.gaps[i];
	bool timed = d->flags & HW_FLAG_TIMED, after_probe = hw_device_is_probed(d);
	int64_t gap_ms;
	if (after_probe || m->conf.loading || hw_device_own_timeout_ms(d) > 0)
		d->flags &= (uint16_t)~HW_FLAG_TIMED;
	else
		d->flags |= HW_FLAG_TIMED;
	if (!timed || after_probe || !is_its_own(d) || !is_seen(m, now, t, d, &gap_ms))
		return false;
	struct hw_gaps was = *gaps;
	hw_learn_gap(gaps, &m->form[d->group].rules, now.wall_ms, gap_ms);
	if (hw_learn_step(&was) == hw_learn_step(gaps))
		return false;
	d->flags |= HW_FLAG_LEARNED;
	if (has_fallen(&m->form[d->group].rules, &was, gaps) && hw_device_state(d) == HW_STATE_ONLINE)
		hw_monitor_emit_device(m, HW_OUT_REFRESH, i);
	return true;
}

int64_t hw_learning_ms(const struct hw_monitor *m, const struct hw_device *d)
{
	if (m->groups.all[d->group]->learn != HW_LEARN_YES)
		return 0;
	return hw_learned_ms(&m->learning.gaps[hw_monitor_index(m, d)], &m->form[d->group].rules);
}

/* --- for the store and for display --------------------------------------------- */

bool hw_monitor_learns(const struct hw_monitor *m)
{
	return m->learning.gaps != NULL;
}

bool hw_monitor_learned(const struct hw_monitor *m, const struct hw_device *d, struct hw_learned *to)
{
	if (!hw_learning_is_on(m, d))
		return false;
	const struct hw_gaps *g = &m->learning.gaps[hw_monitor_index(m, d)];
	*to = (struct hw_learned){.timeout_ms = hw_learned_ms(g, &m->form[d->group].rules),
	                          .gaps_seen = hw_learn_seen(g),
	                          .mistakes = hw_learn_mistakes(g),
	                          .median_gap_ms = hw_learn_median_ms(g),
	                          .largest_gap_ms = hw_learn_largest_ms(g)};
	return true;
}

bool hw_monitor_gaps(const struct hw_monitor *m, const struct hw_device *d, char text[HW_GAPS_TEXT])
{
	if (!hw_learning_is_on(m, d) || !hw_learn_seen(&m->learning.gaps[hw_monitor_index(m, d)]))
		return false;
	hw_learn_print(&m->learning.gaps[hw_monitor_index(m, d)], m->form[d->group].rules.unit_ms, text);
	return true;
}

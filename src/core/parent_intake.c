/* SPDX-License-Identifier: MIT */
/*
 * Reads the parents of a device from its heartbeats. See parent_intake.h.
 *
 * Rule: a device's parents are those that the inventory names, or else those of its last heartbeat on a filter of its
 * own group. A parent is ignored if its id is invalid, if the parent is the device itself or depends on the device, or
 * if the parent has HW_ANCESTORS_MAX ancestors or more. The ancestors are checked only when a device gets a parent. If
 * an ancestor gets a parent later, a device may have more ancestors than that.
 *
 * Cost: a heartbeat compares a hash. A changed parent costs a look-up and a walk through its ancestors.
 */
#include "parent_intake.h"

#include <errno.h>
#include <string.h>

#include "heartwheel/expected.h"
#include "out.h"

/* The most ancestors that are checked for one parent. A parent with more of them is refused, like a parent whose
 * line of ancestors is too long. */
#define ANCESTORS_CHECKED 256

enum line { LINE_FITS, LINE_CIRCLE, LINE_LONG };

/* Checks the device `record`, which is an ancestor of `child` at this depth, and all its ancestors. */
static enum line check_line(const struct hw_monitor *m, uint32_t record, uint32_t child, unsigned depth, unsigned *left)
{
	enum line line = LINE_FITS;
	if (record == child)
		return LINE_CIRCLE;
	if (depth > HW_ANCESTORS_MAX || (*left)-- == 0)
		return LINE_LONG;
	const struct hw_parent_bond *e = record == HW_NIL ? NULL : hw_parents_first(&m->parents, record);
	for (; e && line == LINE_FITS; e = hw_parents_next(&m->parents, e->next))
		line = check_line(m, m->parents.parent[e->parent].record, child, depth + 1, left);
	return line;
}

static const char *wrong_parent(const struct hw_monitor *m, uint32_t child, struct hw_id id)
{
	unsigned left = ANCESTORS_CHECKED;
	if (!hw_id_valid(id.text, id.len))
		return "its id is no valid id of a device";
	switch (check_line(m, hw_registry_find(m->registry, id.text, id.len), child, 1, &left)) {
	case LINE_CIRCLE:
		return "it depends on the device itself";
	case LINE_LONG:
		return "it has 8 ancestors or more";
	default:
		return NULL;
	}
}

static void ignore(struct hw_monitor *m, uint32_t child, const char *why)
{
	struct hw_id id = hw_device_id(hw_monitor_at(m, child));
	m->stats.refused[HW_REFUSED_PARENT]++;
	m->stats.parent_fault = why;
	memcpy(m->stats.parent_of, id.text, id.len);
	m->stats.parent_of[id.len] = '\0';
}

/* The parents that were found so far. */
struct found {
	struct hw_id ids[HW_PARENTS_MAX];
	unsigned n;
};

static void add(struct hw_monitor *m, uint32_t child, struct found *f, struct hw_id id)
{
	for (unsigned k = 0; k < f->n; k++)
		if (f->ids[k].len == id.len && memcmp(f->ids[k].text, id.text, id.len) == 0)
			return;
	const char *why = wrong_parent(m, child, id);
	if (why)
		ignore(m, child, why);
	else if (f->n < HW_PARENTS_MAX)
		f->ids[f->n++] = id;
}

static bool set(struct hw_monitor *m, uint32_t i, const struct found *f, uint32_t hash)
{
	bool changed;
	int rc = hw_parents_set(&m->parents, m->registry, m->probe.key, i, f->ids, f->n, hash, &changed);
	if (rc != 0)
		m->stats.refused[HW_REFUSED_MEMORY]++;
	return changed;
}

/* Adds the first HW_PARENTS_MAX of these ids, which are separated by newlines. */
static void add_ids(struct hw_monitor *m, uint32_t child, struct found *f, struct hw_id ids)
{
	for (size_t at = 0, k = 0; at < ids.len && k < HW_PARENTS_MAX; k++) {
		const char *end = memchr(ids.text + at, '\n', ids.len - at);
		size_t len = end ? (size_t)(end - ids.text) - at : ids.len - at;
		add(m, child, f, (struct hw_id){ids.text + at, len});
		at += len + 1;
	}
}

/* Returns the parents that the inventory gives to the device; of no length: the inventory gives none. */
static struct hw_id listed_parents(const struct hw_monitor *m, uint32_t i)
{
	struct hw_id id = hw_device_id(hw_monitor_at(m, i));
	uint32_t k = hw_expected_find(m->expected, id.text, id.len);
	return k == HW_NIL ? (struct hw_id){0} : hw_expected_at(m->expected, k).parents;
}

/* Called for a device that has just got parents. If a parent's goodbye was read before the parent had a known child,
 * the index of parents does not have the goodbye. This child's heartbeat was read after the goodbye. So the goodbye
 * gets the time just before the heartbeat. */
static void note_goodbyes(struct hw_monitor *m, uint32_t child)
{
	const struct hw_device *d = hw_monitor_at(m, child);
	const struct hw_parent_bond *e = hw_parents_first(&m->parents, child);
	for (; e && !hw_state_is_gone(hw_device_state(d)); e = hw_parents_next(&m->parents, e->next)) {
		struct hw_parent *p = &m->parents.parent[e->parent];
		if (p->goodbye_ms == INT64_MIN && p->record != HW_NIL &&
		    hw_monitor_at(m, p->record)->flags & HW_FLAG_GOODBYE)
			p->goodbye_ms = p->before_ms = d->last_heard_ms - 1;
	}
}

/* --- captures for labels ------------------------------------------------------ */

static bool store_captured(struct hw_monitor *m, uint32_t i, struct hw_id text)
{
	bool changed;
	if (hw_parents_set_text(&m->parents, m->probe.key, i, text, &changed) != 0)
		m->stats.refused[HW_REFUSED_MEMORY]++;
	return changed;
}

/* Stores the captures of the topic that are labels, as NAME=VALUE with newlines between. Captures beyond HW_ID_MAX
 * bytes are left out. Returns whether this text is new. */
static bool set_captured(struct hw_monitor *m, uint32_t i, const struct hw_group *g,
                         const struct hw_value values[HW_CAPTURES_MAX])
{
	char text[HW_ID_MAX];
	size_t at = 0;
	for (unsigned k = 0; k < g->n_captured; k++) {
		struct hw_value name = g->captured[k], value = values[g->form.n_captures + k];
		size_t need = (at > 0) + name.len + 1 + value.len;
		if (value.len == 0 || need > sizeof(text) - at || !hw_id_valid(value.text, value.len))
			continue;
		if (at > 0)
			text[at++] = '\n';
		memcpy(text + at, name.text, name.len);
		text[at + name.len] = '=';
		memcpy(text + at + name.len + 1, value.text, value.len);
		at += name.len + 1 + value.len;
	}
	return store_captured(m, i, (struct hw_id){text, at});
}

struct hw_id hw_monitor_captured(const struct hw_monitor *m, const struct hw_device *d)
{
	return hw_parents_text(&m->parents, (uint32_t)(d - hw_registry_base(m->registry)));
}

void hw_captures_load(struct hw_monitor *m, uint32_t i, const char *text)
{
	const struct hw_parent_cell *c = hw_parents_cell(&m->parents, i);
	size_t len = text ? strlen(text) : 0;
	if (len > 0 && len <= HW_ID_MAX && !(c && c->hash))
		(void)store_captured(m, i, (struct hw_id){text, len});
}

void hw_parent_change(struct hw_monitor *m, uint32_t i, const struct hw_parent_source *s, uint32_t hash,
                      bool was_online)
{
	const struct hw_group *g = m->groups.all[hw_monitor_at(m, i)->group];
	struct hw_value values[HW_CAPTURES_MAX] = {s->text};
	char text[HW_PARENTS_MAX][HW_ID_MAX];
	struct hw_id listed = listed_parents(m, i);
	struct found f = {.n = 0};
	bool had = hw_parents_first(&m->parents, i);
	if (s->by && !hw_topic_values(s->by, s->text.text, s->text.len, values))
		return;
	add_ids(m, i, &f, listed);
	for (unsigned k = 0; listed.len == 0 && k < g->n_parents; k++) {
		size_t len = hw_pattern_compose(&g->parents[k], values, text[k], sizeof(text[k]));
		add(m, i, &f, (struct hw_id){text[k], len});
	}
	bool relabelled = set_captured(m, i, g, values), changed = set(m, i, &f, hash);
	if (changed)
		note_goodbyes(m, i);
	/* Without a store, only the status keeps the parents, so the first parents of a device are published. Later
	 * ones are not, because a device may move between two gateways again and again. */
	if ((changed || relabelled) && was_online)
		hw_monitor_emit_device(m, m->conf.adopt_by && !had && changed ? HW_OUT_STATUS : HW_OUT_PARENTS, i);
}

void hw_parent_load(struct hw_monitor *m, uint32_t i, const char *ids)
{
	const struct hw_group *g = m->groups.all[hw_monitor_at(m, i)->group];
	const struct hw_parent_cell *c = hw_parents_cell(&m->parents, i);
	struct found f = {.n = 0};
	if (!ids || g->n_parents == 0 || (c && c->hash) || listed_parents(m, i).len > 0)
		return;
	add_ids(m, i, &f, (struct hw_id){ids, strlen(ids)});
	set(m, i, &f, 0);
}

bool hw_parent_is_current(const struct hw_monitor *m, uint32_t i)
{
	const struct hw_parent_cell *c = hw_parents_cell(&m->parents, i);
	return !m->conf.adopt_by || (c && c->hash) || listed_parents(m, i).len > 0;
}

void hw_parent_list(struct hw_monitor *m, uint32_t i)
{
	struct hw_parent_cell *c = hw_parents_cell(&m->parents, i);
	struct hw_id listed = listed_parents(m, i);
	struct found f = {.n = 0};
	if (listed.len == 0 && c)
		c->hash = 0; /* the next heartbeat names the parents */
	if (listed.len == 0 && (!c || m->groups.all[hw_monitor_at(m, i)->group]->n_parents > 0))
		return;
	add_ids(m, i, &f, listed);
	if (!set(m, i, &f, c ? c->hash : 0))
		return;
	enum hw_state state = hw_device_state(hw_monitor_at(m, i));
	if (state == HW_STATE_ONLINE)
		note_goodbyes(m, i);
	if (state == HW_STATE_ONLINE || state == HW_STATE_OFFLINE)
		hw_monitor_emit_device(m, HW_OUT_PARENTS, i);
}

/* Removes the parents of a device if neither its group nor the inventory gives it any. Returns whether it had some. */
static bool unlink_parents(struct hw_monitor *m, uint32_t i)
{
	const struct hw_parent_cell *c = hw_parents_cell(&m->parents, i);
	if (!c || m->groups.all[hw_monitor_at(m, i)->group]->n_parents > 0 || listed_parents(m, i).len > 0)
		return false;
	bool had = c->first;
	hw_parents_clear(&m->parents, i);
	return had;
}

void hw_parent_relink(struct hw_monitor *m, uint32_t i)
{
	const struct hw_device *d = hw_monitor_at(m, i);
	enum hw_state state = hw_device_state(d);
	bool had = unlink_parents(m, i), relabelled = m->groups.all[d->group]->relabelled;
	if ((had && state == HW_STATE_ONLINE) ||
	    (relabelled && (state == HW_STATE_ONLINE || state == HW_STATE_OFFLINE)))
		hw_monitor_emit_device(m, HW_OUT_PARENTS, i);
}

void hw_parent_configure(struct hw_monitor *m)
{
	struct hw_family *f = &m->family;
	f->any = f->proving = f->taking = false;
	for (size_t k = 0; k < m->groups.n_order; k++) {
		const struct hw_group *g = m->groups.all[m->groups.order[k]];
		f->any |= g->n_parents + g->n_captured > 0;
		f->proving |= g->child_proves;
		f->taking |= g->parent_death == HW_PARENT_TAKE;
	}
}

void hw_parent_added(struct hw_monitor *m, uint32_t i)
{
	if (m->parents.names)
		hw_parents_added(&m->parents, i, hw_device_id(hw_monitor_at(m, i)));
}

void hw_parent_removed(struct hw_monitor *m, uint32_t i)
{
	hw_parents_removed(&m->parents, i, hw_device_id(hw_monitor_at(m, i)));
}

/* --- views -------------------------------------------------------------------- */

static uint32_t index_of(const struct hw_monitor *m, const struct hw_device *d)
{
	return (uint32_t)(d - hw_registry_base(m->registry));
}

static bool is_known(const struct hw_device *d)
{
	return hw_device_state(d) == HW_STATE_ONLINE || hw_device_state(d) == HW_STATE_OFFLINE;
}

unsigned hw_monitor_parents(const struct hw_monitor *m, const struct hw_device *d,
                            struct hw_parent_view parents[HW_PARENTS_MAX])
{
	const struct hw_parents *p = &m->parents;
	unsigned n = 0;
	for (const struct hw_parent_bond *e = hw_parents_first(p, index_of(m, d)); e; e = hw_parents_next(p, e->next)) {
		uint32_t record = p->parent[e->parent].record;
		const struct hw_device *is = record == HW_NIL ? NULL : hw_monitor_at(m, record);
		parents[n] = (struct hw_parent_view){.id = hw_parents_id(p, e->parent)};
		if (is && is_known(is)) {
			parents[n].known = true;
			parents[n].state = hw_device_state(is);
			parents[n].since_ms = is->since_ms;
		}
		n++;
	}
	return n;
}

size_t hw_monitor_known_parents(const struct hw_monitor *m, const struct hw_device *d, char text[HW_PARENTS_TEXT])
{
	struct hw_parent_view v[HW_PARENTS_MAX];
	unsigned n = hw_monitor_parents(m, d, v);
	size_t at = 0;
	for (unsigned k = 0; k < n; k++) {
		if (!v[k].known)
			continue;
		if (at > 0)
			text[at++] = '\n';
		memcpy(text + at, v[k].id.text, v[k].id.len);
		at += v[k].id.len;
	}
	return at;
}

bool hw_monitor_dead_parent(const struct hw_monitor *m, const struct hw_device *d, struct hw_parent_view *parent)
{
	struct hw_parent_view v[HW_PARENTS_MAX];
	unsigned n = hw_monitor_parents(m, d, v);
	bool any = false;
	for (unsigned k = 0; k < n; k++) {
		if (v[k].known && v[k].state == HW_STATE_ONLINE)
			return false;
		if (!v[k].known || (any && v[k].since_ms <= parent->since_ms))
			continue;
		*parent = v[k];
		any = true;
	}
	return any;
}

uint32_t hw_monitor_children(const struct hw_monitor *m, const struct hw_device *d)
{
	uint32_t parent = hw_parents_find(&m->parents, hw_device_id(d));
	return parent == HW_NIL ? 0 : m->parents.parent[parent].children;
}

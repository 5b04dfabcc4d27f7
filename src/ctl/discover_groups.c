/* SPDX-License-Identifier: MIT */
/*
 * Turns templates (discover_templates.h) into the groups whose devices follow no preset. Decides which wildcard is the
 * id, and which templates belong to the same devices.
 *
 * If a template has two wildcards, there are two cases. The outer one is a site, and the inner one a device. Or the
 * outer one is a device, and the inner one a part of the device. The decision depends on the following:
 * - whether the values are ids, numbers or words
 * - which level has more values
 * - whether the outer level has topics of its own, such as `../lwt`
 * - whether the messages of all inner values arrive together
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/discover_priv.h"

#define WORDS_MAX   16  /* more different words are ids */
#define TOGETHER_MS 150 /* messages of one device come within this time */
#define PLACE_NONE  UINT32_MAX
#define STRONG_ID   4 /* an id with fewer bytes may name different devices in two groups */

struct decider {
	struct hw_finding *f;
	uint32_t *topics, *begin; /* the topics in the order of their templates; the topics of template i begin at
	                             topics[begin[i]] */
	struct hw_keymap own;     /* prefixes that have topics of their own */
	float *together; /* for each template: the share of messages that arrived together with another message of the
	                    same outer value */
	uint64_t *sorted[3]; /* room for the values of a template's topics */
};

/* --- the values of two levels ------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

/* Removes duplicates. */
static uint32_t sort_unique(uint64_t *list, uint32_t n)
{
	uint32_t kept = 0;
	qsort(list, n, sizeof(*list), compare);
	for (uint32_t i = 0; i < n; i++)
		if (i == 0 || list[i] != list[kept - 1])
			list[kept++] = list[i];
	return kept;
}

struct kind {
	bool words, metrics, indices;
};

/* Returns the kind of the values of a level. `values` has no duplicates. */
static struct kind kind_of(const struct hw_levels *l, const uint64_t *values, uint32_t n)
{
	uint32_t digits = 0, metrics = 0, indices = 0;
	for (uint32_t i = 0; i < n; i++) {
		digits += l->all[values[i]].digit;
		metrics += l->all[values[i]].metric;
		indices += l->all[values[i]].index;
	}
	return (struct kind){
		.words = 2 * digits < n && n <= WORDS_MAX, .metrics = 2 * metrics >= n, .indices = indices == n};
}

/* Whether a level names what kind of part follows. */
static bool is_part_name(const struct hw_level *l)
{
	static const char *const names[] = {"sensor", "sensors", "relay",    "relays", "switch",  "channel", "channels",
	                                    "ch",     "input",   "inputs",   "output", "outputs", "light",   "port",
	                                    "ports",  "pin",     "phase",    "probe",  "button",  "roller",  "cover",
	                                    "emeter", "meter",   "socket",   "zone",   "gpio",    "adc",     "led",
	                                    "motor",  "part",    "register", NULL};
	return hw_word_is_one_of(l->text, l->len, names);
}

static bool is_own(const struct decider *d, const uint32_t *tokens, unsigned level)
{
	return hw_keymap_get(&d->own, hw_levels_key(tokens, level + 1, UINT32_C(1) << level));
}

/* Whether the inner value contains the outer value, as in kitchen/kitchen_door. */
static bool repeats(const struct hw_levels *l, uint32_t outer, uint32_t inner)
{
	const struct hw_level *a = &l->all[outer], *b = &l->all[inner];
	return memmem(b->text, b->len, a->text, a->len) != NULL;
}

/* Decides whether the wildcard `inner` is the id of a device. Otherwise it is a part of the device at `outer`. Sets
 * *unique to whether each inner value occurs with only one outer value. */
static bool is_inner_device(const struct decider *d, uint32_t template, unsigned outer, unsigned inner, bool *unique)
{
	const struct hw_finding *f = d->f;
	const struct hw_template *t = &f->templates.all[template];
	const uint32_t *rep = hw_levels_of(&f->levels, t->topic);
	uint32_t low = t->wild & ((UINT32_C(2) << inner) - 1), n = d->begin[template + 1] - d->begin[template];
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t *tokens = hw_levels_of(&f->levels, d->topics[d->begin[template] + i]);
		uint64_t pair = 0;
		for (unsigned k = 0; k <= inner; k++)
			pair = low >> k & 1 ? (pair ^ tokens[k]) * UINT64_C(0x9e3779b97f4a7c15) + 1 : pair;
		d->sorted[0][i] = tokens[outer];
		d->sorted[1][i] = tokens[inner];
		d->sorted[2][i] = pair;
	}
	uint32_t n_out = sort_unique(d->sorted[0], n), n_in = sort_unique(d->sorted[1], n);
	uint32_t pairs = sort_unique(d->sorted[2], n);
	struct kind out = kind_of(&f->levels, d->sorted[0], n_out), in = kind_of(&f->levels, d->sorted[1], n_in);
	bool part = inner > 0 && is_part_name(&f->levels.all[rep[inner - 1]]), own = is_own(d, rep, outer);
	*unique = pairs == n_in;
	if (in.metrics || in.words || (in.indices && (part || own)))
		return false;
	if (out.words)
		return true;
	if (*unique)
		return n_in > n_out || (n_in == n_out && !repeats(&f->levels, rep[outer], rep[inner]));
	if (part || own)
		return false;
	return n_in > n_out || d->together[template] < 0.5F;
}

/* --- where the id is ---------------------------------------------------------------------------------------------- */

static struct hw_find_place place_of(const struct decider *d, uint32_t template)
{
	const struct hw_template *t = &d->f->templates.all[template];
	unsigned last = (unsigned)__builtin_ctz(t->wild);
	struct hw_find_place p = {.topic = t->topic, .id = UINT32_C(1) << last};
	for (unsigned k = last + 1; k < t->levels; k++) {
		bool unique = false;
		if (!(t->wild >> k & 1) || !is_inner_device(d, template, last, k, &unique))
			continue;
		p.id = (unique ? 0 : t->wild & ((UINT32_C(1) << k) - 1)) | UINT32_C(1) << k;
		last = k;
	}
	p.last = (uint8_t)last;
	p.low = t->wild & ((UINT32_C(2) << last) - 1);
	return p;
}

/* Whether no level before the id is fixed. */
static bool is_rootless(const struct hw_find_place *p)
{
	return p->low == (UINT32_C(2) << p->last) - 1;
}

static uint64_t place_key(const struct hw_finding *f, const struct hw_find_place *p, uint32_t low)
{
	return hw_levels_key(hw_levels_of(&f->levels, p->topic), p->last + 1u, low) ^ ((uint64_t)low << 32) ^ p->id;
}

/* Finds the places of ids: one for each prefix before the id. A template without a fixed level before its id gets a
 * place of its own, because the devices of a/up and b/state need not be of one kind. */
static int find_places(struct decider *d)
{
	struct hw_finding *f = d->f;
	struct hw_keymap known = {0};
	int rc = 0;
	f->places = malloc((f->templates.n + 1) * sizeof(*f->places));
	f->place_of = malloc((f->templates.n + 1) * sizeof(*f->place_of));
	if (!f->places || !f->place_of)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->templates.n && rc == 0; i++) {
		const struct hw_template *t = &f->templates.all[i];
		f->place_of[i] = PLACE_NONE;
		if (!t->wild)
			continue;
		struct hw_find_place p = place_of(d, i);
		uint64_t tail = hw_levels_key(hw_levels_of(&f->levels, t->topic) + p.last + 1, t->levels - p.last - 1u,
		                              t->wild >> p.last >> 1);
		uint64_t key = place_key(f, &p, p.low) ^ (is_rootless(&p) ? tail * 31 : 0);
		uint32_t *at = hw_keymap_put(&known, key);
		if (!at) {
			rc = -ENOMEM;
			break;
		}
		if (!*at) {
			p.joins = (uint32_t)f->n_places;
			f->places[f->n_places++] = p;
			*at = (uint32_t)f->n_places;
		}
		f->places[*at - 1].tails += tail;
		f->place_of[i] = *at - 1;
	}
	hw_keymap_fini(&known);
	return rc;
}

/* --- preparing ---------------------------------------------------------------------------------------------------- */

static int list_topics(struct decider *d)
{
	struct hw_finding *f = d->f;
	size_t n = f->templates.n;
	d->begin = calloc(n + 2, sizeof(*d->begin));
	d->topics = malloc((f->n + 1) * sizeof(*d->topics));
	d->together = calloc(n + 1, sizeof(*d->together));
	for (unsigned k = 0; k < 3; k++)
		d->sorted[k] = malloc((f->n + 1) * sizeof(uint64_t));
	if (!d->begin || !d->topics || !d->together || !d->sorted[0] || !d->sorted[1] || !d->sorted[2])
		return -ENOMEM;
	for (size_t i = 0; i < f->n; i++)
		if (f->templates.of[i] != HW_NO_TEMPLATE)
			d->begin[f->templates.of[i] + 2]++;
	for (size_t i = 2; i <= n; i++)
		d->begin[i] += d->begin[i - 1];
	for (uint32_t i = 0; i < f->n; i++)
		if (f->templates.of[i] != HW_NO_TEMPLATE)
			d->topics[d->begin[f->templates.of[i] + 1]++] = i;
	return 0;
}

/* Finds the levels that have topics of their own: topics that end with that level and one name, such as `lwt`. */
static int find_own(struct decider *d)
{
	struct hw_finding *f = d->f;
	for (size_t i = 0; i < f->n; i++) {
		const struct hw_seen_topic *s = hw_topics_at(f->topics, i);
		uint32_t t = f->templates.of[i];
		bool single = t != HW_NO_TEMPLATE && __builtin_popcount(f->templates.all[t].wild) == 1;
		int level = single ? __builtin_ctz(f->templates.all[t].wild) : -1;
		if (level < 0 && s->levels >= 2 && hw_word_pair(s->words | s->member_words) >= 0)
			level = s->levels - 2;
		if (level < 0 || level != s->levels - 2)
			continue;
		uint32_t *at = hw_keymap_put(
			&d->own, hw_levels_key(hw_levels_of(&f->levels, i), (unsigned)level + 1, UINT32_C(1) << level));
		if (!at)
			return -ENOMEM;
		*at = 1;
	}
	return 0;
}

/* For each template with several wildcards, finds the share of messages that arrived together with another message
 * of the same outer value. */
static int find_together(struct decider *d)
{
	struct hw_finding *f = d->f;
	struct hw_keymap outers = {0};
	struct {
		uint32_t topic, at_ms;
	} *last = calloc(f->n + 1, sizeof(*last));
	uint32_t *outer = calloc(f->n + 1, sizeof(*outer)), *counts = calloc(f->templates.n + 1, sizeof(*counts));
	int rc = last && outer && counts ? 0 : -ENOMEM;
	for (size_t i = 0; i < f->n && rc == 0; i++) {
		uint32_t t = f->templates.of[i];
		if (t == HW_NO_TEMPLATE || __builtin_popcount(f->templates.all[t].wild) < 2)
			continue;
		unsigned level = (unsigned)__builtin_ctz(f->templates.all[t].wild);
		uint32_t *at = hw_keymap_put(&outers, ((uint64_t)t << 32 | hw_levels_of(&f->levels, i)[level]) *
		                                              UINT64_C(0x9e3779b97f4a7c15));
		rc = at ? 0 : -ENOMEM;
		if (at)
			outer[i] = *at = *at ? *at : (uint32_t)outers.n;
	}
	for (size_t i = 0; i < hw_topics_n_beats(f->topics) && rc == 0; i++) {
		struct hw_topics_beat b = hw_topics_beat(f->topics, i);
		if (!outer[b.topic])
			continue;
		uint32_t t = f->templates.of[b.topic], k = outer[b.topic];
		counts[t]++;
		if (last[k].topic && last[k].topic != b.topic + 1 && b.at_ms - last[k].at_ms <= TOGETHER_MS)
			d->together[t] += 1;
		last[k].topic = b.topic + 1;
		last[k].at_ms = b.at_ms;
	}
	for (size_t i = 0; i < f->templates.n && rc == 0; i++)
		d->together[i] /= counts[i] ? (float)counts[i] : 1;
	hw_keymap_fini(&outers);
	free(last);
	free(outer);
	free(counts);
	return rc;
}

/* --- places of the same devices ----------------------------------------------------------------------------------- */

static uint32_t root_of(const struct hw_finding *f, uint32_t place)
{
	while (f->places[place].joins != place)
		place = f->places[place].joins;
	return place;
}

static uint32_t place_of_topic(const struct hw_finding *f, size_t topic)
{
	uint32_t t = f->templates.of[topic];
	return t == HW_NO_TEMPLATE ? PLACE_NONE : f->place_of[t];
}

/* Whether two ids have the same letters before their first digit, as most ids of one kind of devices have. */
static bool same_letters(const struct hw_level *a, const struct hw_level *b)
{
	size_t n = 0;
	while (n < a->len && n < b->len && a->text[n] == b->text[n] && (a->text[n] < '0' || a->text[n] > '9'))
		n++;
	bool a_ends = n == a->len || (a->text[n] >= '0' && a->text[n] <= '9');
	bool b_ends = n == b->len || (b->text[n] >= '0' && b->text[n] <= '9');
	return a_ends && b_ends;
}

/* Whether the places `a` and `b`, which differ in one level before the id, are two sites with devices of one kind. */
static bool are_sites(const struct hw_finding *f, const struct hw_find_place *a, const struct hw_find_place *b)
{
	const struct hw_level *l = f->levels.all;
	const uint32_t *x = hw_levels_of(&f->levels, a->topic), *y = hw_levels_of(&f->levels, b->topic);
	const struct hw_seen_topic *s = hw_topics_at(f->topics, a->topic), *t = hw_topics_at(f->topics, b->topic);
	bool objects = s->shape > HW_SHAPE_TEXT || t->shape > HW_SHAPE_TEXT;
	return a->tails == b->tails && same_letters(&l[x[a->last]], &l[y[b->last]]) &&
	       (!objects || s->shape == t->shape);
}

/* Joins the places of several sites: the level with the site's name becomes a wildcard. */
static int join_sites(struct hw_finding *f)
{
	struct hw_keymap known = {0};
	int rc = 0;
	for (uint32_t i = 0; i < f->n_places && rc == 0; i++) {
		struct hw_find_place *p = &f->places[i];
		/* The first level stays fixed: a filter that begins with a wildcard would take topics of other
		 * groups. */
		for (unsigned k = 1; k < p->last && rc == 0 && p->joins == i; k++) {
			uint32_t low = p->low | UINT32_C(1) << k;
			if (p->low >> k & 1)
				continue;
			uint32_t *at = hw_keymap_put(&known, place_key(f, p, low));
			rc = at ? 0 : -ENOMEM;
			if (!at)
				break;
			if (!*at)
				*at = i + 1;
			else if (are_sites(f, p, &f->places[*at - 1]) && f->places[*at - 1].joins == *at - 1) {
				struct hw_find_place *first = &f->places[*at - 1];
				/* the first one may have joined at another level */
				if (first->low != p->low && first->low != low)
					continue;
				first->low = low;
				p->low = low;
				p->joins = *at - 1;
			}
		}
	}
	hw_keymap_fini(&known);
	return rc;
}

/* If an id occurs at two sites, makes the site a part of the id. */
static int split_sites(struct hw_finding *f)
{
	struct hw_keymap known = {0};
	bool *shared = calloc(f->n_places + 1, sizeof(*shared));
	int rc = shared ? 0 : -ENOMEM;
	for (size_t i = 0; i < f->n && rc == 0; i++) {
		uint32_t p = place_of_topic(f, i);
		if (p == PLACE_NONE)
			continue;
		uint32_t root = root_of(f, p);
		uint64_t id = hw_finding_id_of(f, i, f->places[p].id);
		uint32_t *at = hw_keymap_put(&known, (id ^ root) * UINT64_C(0x9e3779b97f4a7c15));
		rc = at ? 0 : -ENOMEM;
		if (at && *at && *at != p + 1)
			shared[root] = true;
		if (at)
			*at = p + 1;
	}
	for (uint32_t i = 0; i < f->n_places && rc == 0; i++)
		if (shared[root_of(f, i)])
			f->places[i].id = f->places[i].low;
	hw_keymap_fini(&known);
	free(shared);
	return rc;
}

/* --- the same ids in two places ----------------------------------------------------------------------------------- */

struct meeting {
	uint32_t place, ids, strong, with, met; /* `met` of its ids are in the place `with` */
};

static int by_ids(const void *a, const void *b)
{
	const struct meeting *x = a, *y = b;
	return x->ids != y->ids ? (x->ids > y->ids ? -1 : 1) : x->place < y->place ? -1 : x->place > y->place;
}

/* Whether an id is hardly one of two devices. */
static bool is_strong(const struct hw_finding *f, size_t topic, uint32_t levels)
{
	const struct hw_level *l = &f->levels.all[hw_levels_of(&f->levels, topic)[__builtin_ctz(levels)]];
	bool number = true;
	for (size_t i = 0; i < l->len; i++)
		number &= l->text[i] >= '0' && l->text[i] <= '9';
	return l->len >= STRONG_ID && (!number || l->len > 5) && (l->digit || l->len >= 8);
}

/* Joins a place to the place that shares most ids with it, if they share at least half of its ids, as plant/ID/up and
 * alarms/ID may. A short id, or one that is a number, may occur at two places by chance, so most ids must be strong. */
static int meet(struct hw_finding *f, struct meeting *m, size_t n, const uint32_t *by_root, struct decider *d)
{
	struct hw_keymap owner = {0};
	int rc = 0;
	for (size_t k = 0; k < n && rc == 0; k++) {
		uint32_t root = m[k].place, best = 0, best_n = 0;
		struct hw_keymap met = {0};
		for (uint32_t j = by_root[root]; j < by_root[root + 1] && rc == 0; j++) {
			uint32_t topic = d->topics[j], p = place_of_topic(f, topic);
			uint32_t has = hw_keymap_get(&owner, hw_finding_id_of(f, topic, f->places[p].id));
			uint32_t *at = has ? hw_keymap_put(&met, has) : NULL;
			rc = has && !at ? -ENOMEM : 0;
			if (at && ++*at > best_n) {
				best_n = *at;
				best = has - 1;
			}
		}
		hw_keymap_fini(&met);
		uint32_t topics = by_root[root + 1] - by_root[root];
		const struct hw_find_place *p = &f->places[root], *q = &f->places[best];
		bool same = best_n * 2 >= topics && best_n > 0 && __builtin_popcount(p->id) == 1 &&
		            __builtin_popcount(q->id) == 1 &&
		            ((is_rootless(p) && is_rootless(q)) || m[k].strong * 2 >= topics);
		if (same)
			f->places[root].joins = best;
		for (uint32_t j = by_root[root]; j < by_root[root + 1] && rc == 0; j++) {
			uint32_t topic = d->topics[j];
			uint32_t *at = hw_keymap_put(
				&owner, hw_finding_id_of(f, topic, f->places[place_of_topic(f, topic)].id));
			rc = at ? 0 : -ENOMEM;
			if (at && !*at)
				*at = root_of(f, root) + 1;
		}
	}
	hw_keymap_fini(&owner);
	return rc;
}

static int join_same_ids(struct decider *d)
{
	struct hw_finding *f = d->f;
	uint32_t *begin = calloc(f->n_places + 2, sizeof(*begin));
	struct meeting *m = calloc(f->n_places + 1, sizeof(*m));
	size_t n = 0;
	int rc = begin && m ? 0 : -ENOMEM;
	/* d->topics again, now by place */
	for (size_t i = 0; i < f->n && rc == 0; i++)
		if (place_of_topic(f, i) != PLACE_NONE)
			begin[root_of(f, place_of_topic(f, i)) + 1]++;
	for (uint32_t i = 0; i < f->n_places && rc == 0; i++) {
		if (begin[i + 1])
			m[n++] = (struct meeting){.place = i, .ids = begin[i + 1]};
		begin[i + 1] += begin[i];
	}
	uint32_t *at = rc ? NULL : malloc((f->n_places + 1) * sizeof(*at));
	if (at) {
		memcpy(at, begin, (f->n_places + 1) * sizeof(*at));
		for (uint32_t i = 0; i < f->n; i++)
			if (place_of_topic(f, i) != PLACE_NONE)
				d->topics[at[root_of(f, place_of_topic(f, i))]++] = i;
		for (size_t k = 0; k < n; k++)
			for (uint32_t j = begin[m[k].place]; j < begin[m[k].place + 1]; j++)
				m[k].strong +=
					is_strong(f, d->topics[j], f->places[place_of_topic(f, d->topics[j])].id);
		qsort(m, n, sizeof(*m), by_ids);
		rc = meet(f, m, n, begin, d);
	} else {
		rc = -ENOMEM;
	}
	free(begin);
	free(at);
	free(m);
	return rc;
}

/* --- groups ------------------------------------------------------------------------------------------------------- */

/* Makes a group of each root (a place that was not joined to another one), the roots with the most ids first. A root
 * whose ids are mostly those of a preset's devices gets no group: its topics are further topics of these devices. */
static int make_groups(struct hw_finding *f)
{
	struct hw_keymap known = {0}, taken = {0};
	struct meeting *m = calloc(f->n_places + 1, sizeof(*m));
	int rc = m ? 0 : -ENOMEM;
	for (size_t i = 0; i < f->n_devices && rc == 0; i++) {
		uint32_t *at = hw_keymap_put(&taken, f->devices[i].id);
		rc = at ? 0 : -ENOMEM;
		if (at)
			*at = 1;
	}
	for (uint32_t i = 0; i < f->n_places && rc == 0; i++)
		m[i].place = i;
	for (size_t i = 0; i < f->n && rc == 0; i++) {
		uint32_t p = place_of_topic(f, i);
		if (p == PLACE_NONE || !hw_finding_id_valid(f, i, f->places[p].id))
			continue;
		uint32_t root = root_of(f, p);
		uint32_t *at = hw_keymap_put(&known, (hw_finding_id_of(f, i, f->places[p].id) ^ root) *
		                                             UINT64_C(0x9e3779b97f4a7c15));
		rc = at ? 0 : -ENOMEM;
		if (!at || *at)
			continue;
		*at = 1;
		m[root].ids++;
		m[root].met += hw_keymap_get(&taken, hw_finding_id_of(f, i, f->places[p].id));
	}
	if (rc == 0)
		qsort(m, f->n_places, sizeof(*m), by_ids);
	for (size_t k = 0; k < f->n_places && rc == 0 && m[k].ids >= 2 && f->n_groups < HW_FOUND_MAX; k++) {
		if (m[k].met * 2 >= m[k].ids)
			continue;
		f->groups[f->n_groups] = (struct hw_find_group){.deep = is_rootless(&f->places[m[k].place])};
		f->places[m[k].place].group = (uint32_t)++f->n_groups;
	}
	for (size_t i = 0; i < f->n && rc == 0; i++) {
		uint32_t p = place_of_topic(f, i);
		uint32_t group = p == PLACE_NONE ? 0 : f->places[root_of(f, p)].group;
		if (group && hw_finding_id_valid(f, i, f->places[p].id))
			rc = hw_finding_place(f, i, group - 1, hw_finding_id_of(f, i, f->places[p].id));
	}
	for (uint32_t i = 0; i < f->n_places && rc == 0; i++)
		f->places[i].group = f->places[root_of(f, i)].group;
	hw_keymap_fini(&known);
	hw_keymap_fini(&taken);
	free(m);
	return rc;
}

int hw_find_groups(struct hw_finding *f)
{
	struct decider d = {.f = f};
	int rc = list_topics(&d);
	if (rc == 0)
		rc = find_own(&d);
	if (rc == 0)
		rc = find_together(&d);
	if (rc == 0)
		rc = find_places(&d);
	if (rc == 0)
		rc = join_sites(f);
	if (rc == 0)
		rc = split_sites(f);
	if (rc == 0)
		rc = join_same_ids(&d);
	if (rc == 0)
		rc = make_groups(f);
	hw_keymap_fini(&d.own);
	free(d.topics);
	free(d.begin);
	free(d.together);
	for (unsigned k = 0; k < 3; k++)
		free(d.sorted[k]);
	return rc;
}

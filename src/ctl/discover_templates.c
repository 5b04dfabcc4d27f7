/* SPDX-License-Identifier: MIT */
/* See discover_templates.h. */
#include "ctl/discover_templates.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS      8
#define MANY        16 /* more values than this are ids, whatever they are */
#define ROOTS_LEAST 8  /* if fewer first levels have devices, each of these levels is a group */
#define KEYS_MAX    1000000
#define MASKS_MAX   64 /* the most different sets of wildcards among templates with the same number of levels */

/* The values that one level has in templates that are equal in all other levels. */
struct values {
	uint32_t n, digits, metrics, indices;
	uint32_t shape; /* of the payloads, if all are the same */
	bool mixed;
};

struct finder {
	const struct hw_levels *levels;
	const struct hw_topics *topics;
	struct hw_templates *out;
	struct hw_keymap keys; /* to the index in `values`, + 1 */
	struct values *values;
	size_t room;
};

static uint64_t key_of(const struct finder *f, const struct hw_template *t, uint32_t wild)
{
	return hw_levels_key(hw_levels_of(f->levels, t->topic), t->levels, wild);
}

/* --- what the values of a level are ------------------------------------------------------------------------------- */

static int count_value(struct finder *f, const struct hw_template *t, unsigned level)
{
	uint32_t *at = hw_keymap_put(&f->keys, key_of(f, t, t->wild | UINT32_C(1) << level));
	if (!at)
		return f->keys.n == KEYS_MAX ? 0 : -ENOMEM;
	if (!*at) {
		if (f->keys.n > f->room) {
			size_t room = f->room ? f->room * 2 : 4096;
			struct values *more = reallocarray(f->values, room, sizeof(*more));
			if (!more) {
				*at = 1; /* the caller gives up */
				return -ENOMEM;
			}
			f->values = more;
			f->room = room;
		}
		*at = (uint32_t)f->keys.n;
		f->values[*at - 1] = (struct values){0};
	}
	struct values *v = &f->values[*at - 1];
	const struct hw_level *value = &f->levels->all[hw_levels_of(f->levels, t->topic)[level]];
	uint32_t shape = (uint32_t)hw_topics_at(f->topics, t->topic)->shape;
	v->mixed |= v->n > 0 && v->shape != shape;
	v->shape = shape;
	v->n++;
	v->digits += value->digit;
	v->metrics += value->metric;
	v->indices += value->index;
	return 0;
}

static const struct values *values_of(const struct finder *f, const struct hw_template *t, unsigned level)
{
	uint32_t at = hw_keymap_get(&f->keys, key_of(f, t, t->wild | UINT32_C(1) << level));
	return at ? &f->values[at - 1] : NULL;
}

enum rating {
	NO_IDS,
	INDICES, /* short numbers: of devices, or of parts of a device */
	WORDS,
	IDS
};

/* Rates how likely the values of a level are ids. Words at the end of a topic are ids only if the payloads are JSON
 * objects with the same members. Otherwise these words name what is measured. */
static enum rating rate(const struct values *v, bool last)
{
	bool object = v->shape > HW_SHAPE_TEXT && !v->mixed;
	if (v->n < 2 || 2 * v->metrics >= v->n)
		return NO_IDS;
	if (v->indices == v->n)
		return INDICES;
	if (3 * v->digits >= 2 * v->n)
		return IDS;
	if (last && !object)
		return v->n > MANY && v->shape != HW_SHAPE_NUMBER ? WORDS : NO_IDS;
	return v->n > MANY ? IDS : WORDS;
}

/* Returns the level that becomes a wildcard, or -1. A level of words becomes a wildcard in the first round only. In
 * later rounds, words are kinds of devices, or sites, which discover_groups.c compares. */
static int best_level(const struct finder *f, const struct hw_template *t)
{
	int best = -1;
	enum rating best_rating = NO_IDS;
	uint32_t best_n = 0;
	for (unsigned i = 0; i < t->levels; i++) {
		const struct values *v = t->wild >> i & 1 ? NULL : values_of(f, t, i);
		enum rating r = v ? rate(v, i + 1u == t->levels) : NO_IDS;
		if (t->wild && (r == WORDS || (i == 0 && v && v->n < ROOTS_LEAST)))
			continue;
		if (r > best_rating || (r > NO_IDS && r == best_rating && v->n > best_n)) {
			best = (int)i;
			best_rating = r;
			best_n = v->n;
		}
	}
	return best;
}

/* --- rounds ------------------------------------------------------------------------------------------------------- */

/* Merges templates that have become equal. `wild`: the new set of wildcards of each template. */
static int join_equal(struct finder *f, const uint32_t *wild)
{
	struct hw_templates *o = f->out;
	struct hw_keymap known = {0};
	uint32_t *now = malloc((o->n + 1) * sizeof(*now));
	size_t n = 0;
	int rc = now ? 0 : -ENOMEM;
	for (size_t i = 0; rc == 0 && i < o->n; i++) {
		struct hw_template t = o->all[i];
		t.wild = wild[i];
		uint32_t *at = hw_keymap_put(&known, key_of(f, &t, t.wild) ^ t.wild);
		if (!at) {
			rc = -ENOMEM;
			break;
		}
		if (!*at) {
			*at = (uint32_t)++n;
			o->all[n - 1] = t;
		}
		now[i] = *at - 1;
	}
	for (size_t i = 0; rc == 0 && i < hw_topics_n(f->topics); i++)
		if (o->of[i] != HW_NO_TEMPLATE)
			o->of[i] = now[o->of[i]];
	o->n = rc ? o->n : n;
	hw_keymap_fini(&known);
	free(now);
	return rc;
}

/* One round. Sets *changed if there is a new wildcard. */
static int round_once(struct finder *f, uint32_t *wild, bool *changed)
{
	struct hw_templates *o = f->out;
	int rc = 0;
	*changed = false;
	hw_keymap_fini(&f->keys);
	f->keys.limit = KEYS_MAX;
	for (size_t i = 0; i < o->n; i++)
		for (unsigned k = 0; rc == 0 && k < o->all[i].levels; k++)
			if (!(o->all[i].wild >> k & 1))
				rc = count_value(f, &o->all[i], k);
	for (size_t i = 0; rc == 0 && i < o->n; i++) {
		int level = best_level(f, &o->all[i]);
		wild[i] = o->all[i].wild | (level >= 0 ? UINT32_C(1) << level : 0);
		*changed |= level >= 0;
	}
	return rc ? rc : join_equal(f, wild);
}

#define PAIRS_LEAST 3

/* For topics that are in no template yet: finds two levels that only differ together, as in a/gw-1/n-1 and
 * a/gw-2/n-2, and makes both wildcards. Topics of only two levels are left out, because they would have nothing in
 * common then. */
static int pair_levels(struct finder *f, uint32_t *wild)
{
	struct hw_templates *o = f->out;
	struct hw_keymap pairs = {.limit = KEYS_MAX};
	for (unsigned round = 0; round < 2; round++)
		for (size_t i = 0; i < o->n; i++) {
			const struct hw_template *t = &o->all[i];
			const uint32_t *tokens = hw_levels_of(f->levels, t->topic);
			uint32_t best = PAIRS_LEAST - 1;
			if (round == 1)
				wild[i] = t->wild;
			for (unsigned a = 0; a < t->levels && t->levels > 2 && !t->wild; a++)
				for (unsigned b = a + 1; b < t->levels && f->levels->all[tokens[a]].digit; b++) {
					uint32_t both = UINT32_C(1) << a | UINT32_C(1) << b;
					if (!f->levels->all[tokens[b]].digit)
						continue;
					uint64_t key = key_of(f, t, both) ^ both;
					uint32_t *at = round == 0 ? hw_keymap_put(&pairs, key) : NULL;
					if (round == 0 && !at && pairs.n < KEYS_MAX) {
						hw_keymap_fini(&pairs);
						return -ENOMEM;
					}
					if (at)
						++*at;
					if (round == 1 && hw_keymap_get(&pairs, key) > best) {
						best = hw_keymap_get(&pairs, key);
						wild[i] = both;
					}
				}
		}
	hw_keymap_fini(&pairs);
	return join_equal(f, wild);
}

/* Lists the sets of wildcards that templates with `levels` levels have, the largest sets first. */
static size_t list_masks(const struct hw_templates *o, unsigned levels, uint32_t masks[MASKS_MAX])
{
	size_t n = 0;
	for (size_t i = 0; i < o->n; i++) {
		size_t k = 0;
		if (o->all[i].levels != levels || !o->all[i].wild)
			continue;
		while (k < n && masks[k] != o->all[i].wild)
			k++;
		if (k < n || n == MASKS_MAX)
			continue;
		for (k = n++; k > 0 && __builtin_popcount(masks[k - 1]) < __builtin_popcount(o->all[i].wild); k--)
			masks[k] = masks[k - 1];
		masks[k] = o->all[i].wild;
	}
	return n;
}

/* Whether the values of the template at the levels `more` can be values of wildcards. A name such as `lwt` cannot: a
 * topic with such a name is about the device itself, and not about one of its parts. */
static bool may_be_values(const struct finder *f, const struct hw_template *t, uint32_t more)
{
	const uint32_t *tokens = hw_levels_of(f->levels, t->topic);
	for (unsigned i = 0; i < t->levels; i++) {
		const struct hw_level *l = &f->levels->all[tokens[i]];
		if ((more >> i & 1) && !l->digit && (l->metric || l->command || hw_word_is_hint(l->text, l->len)))
			return false;
	}
	return true;
}

/* Merges each template into a template that covers it. A template is covered, for example, if a device has more
 * sensors than there are devices, so that its sensors became a wildcard first. A template with no fixed level covers
 * any topic, so single topics are not merged into it. */
static int join_covered(struct finder *f, uint32_t *wild)
{
	struct hw_templates *o = f->out;
	struct hw_keymap known = {0};
	uint32_t masks[HW_TOPIC_LEVELS + 1][MASKS_MAX];
	size_t n_masks[HW_TOPIC_LEVELS + 1];
	int rc = 0;
	for (unsigned k = 0; k <= HW_TOPIC_LEVELS; k++)
		n_masks[k] = list_masks(o, k, masks[k]);
	for (size_t i = 0; i < o->n && rc == 0; i++) {
		uint32_t *at = hw_keymap_put(&known, key_of(f, &o->all[i], o->all[i].wild) ^ o->all[i].wild);
		rc = at ? 0 : -ENOMEM;
		if (at)
			*at = 1;
	}
	for (size_t i = 0; i < o->n && rc == 0; i++) {
		const struct hw_template *t = &o->all[i];
		wild[i] = t->wild;
		for (size_t k = 0; k < n_masks[t->levels]; k++) {
			uint32_t mask = masks[t->levels][k];
			if ((mask & t->wild) == t->wild && mask != t->wild &&
			    (t->wild || __builtin_popcount(mask) < t->levels) && may_be_values(f, t, mask & ~t->wild) &&
			    hw_keymap_get(&known, key_of(f, t, mask) ^ mask)) {
				wild[i] = mask;
				break;
			}
		}
	}
	hw_keymap_fini(&known);
	return rc ? rc : join_equal(f, wild);
}

static int begin(struct finder *f, const bool *in)
{
	struct hw_templates *o = f->out;
	size_t n = hw_topics_n(f->topics);
	*o = (struct hw_templates){.all = malloc((n + 1) * sizeof(*o->all)), .of = malloc((n + 1) * sizeof(*o->of))};
	if (!o->all || !o->of)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		o->of[i] = in[i] ? (uint32_t)o->n : HW_NO_TEMPLATE;
		if (in[i])
			o->all[o->n++] = (struct hw_template){.topic = (uint32_t)i,
			                                      .levels = hw_topics_at(f->topics, i)->levels};
	}
	return 0;
}

int hw_templates_init(struct hw_templates *out, const struct hw_levels *l, const struct hw_topics *t, const bool *in)
{
	struct finder f = {.levels = l, .topics = t, .out = out};
	uint32_t *wild = malloc((hw_topics_n(t) + 1) * sizeof(*wild));
	bool changed = true;
	int rc = begin(&f, in);
	if (!wild)
		rc = -ENOMEM;
	for (unsigned k = 0; rc == 0 && changed && k < ROUNDS; k++) {
		rc = round_once(&f, wild, &changed);
		if (rc == 0)
			rc = join_covered(&f, wild);
	}
	if (rc == 0)
		rc = pair_levels(&f, wild);
	if (rc == 0)
		rc = join_covered(&f, wild);
	hw_keymap_fini(&f.keys);
	free(f.values);
	free(wild);
	if (rc)
		hw_templates_fini(out);
	return rc;
}

void hw_templates_fini(struct hw_templates *out)
{
	free(out->all);
	free(out->of);
	*out = (struct hw_templates){0};
}

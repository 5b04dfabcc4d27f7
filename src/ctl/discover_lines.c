/* SPDX-License-Identifier: MIT */
/*
 * Finds the filters of each group that follows no preset: heartbeats, goodbyes, and the topics of known devices that
 * are in no template. A topic is in no template if only one device has it, or if no live message came on it.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/discover_priv.h"

#define LINES_MAX 400 /* of a group, before they are made fewer */
#define LINES_FEW 8   /* more heartbeats of a group than this get wildcards */
/* In place of LINES_FEW, for groups whose id is the first level: a wildcard there would match topics of other
 * groups. */
#define LINES_DEEP 24
#define SHAPES_MAX 64
#define FEWEST     2 /* a goodbye line with fewer topics than this is dropped */

/* Where ids were found: the same for many places. */
struct shape {
	uint32_t low, id;
	uint8_t last;
};

struct liner {
	struct hw_finding *f;
	struct hw_keymap known;    /* key of a line: its index in its group, + 1 */
	struct hw_keymap prefixes; /* prefix and id: place + 1 */
	struct hw_keymap owners;   /* id of one level: group + 1 */
	struct shape shapes[SHAPES_MAX];
	size_t n_shapes;
};

/* --- lines -------------------------------------------------------------------------------------------------------- */

static uint64_t line_key(const struct hw_finding *f, const struct hw_find_line *l, unsigned group)
{
	const struct hw_seen_topic *s = hw_topics_at(f->topics, l->topic);
	return (hw_levels_key(hw_levels_of(&f->levels, l->topic), s->levels, l->wild) ^ l->wild) * 31 + group * 8 +
	       l->kind;
}

/* Counts a topic for its line of the group, and adds the line if it is new. Returns 0 or -ENOMEM. */
static int add_line(struct liner *x, unsigned group, struct hw_find_line l)
{
	struct hw_find_group *g = &x->f->groups[group];
	uint32_t *at = hw_keymap_put(&x->known, line_key(x->f, &l, group));
	if (!at)
		return -ENOMEM;
	if (!*at) {
		if (g->n_lines == LINES_MAX) {
			*at = 1; /* an extreme case: it counts for another line */
		} else {
			struct hw_find_line *more = reallocarray(g->lines, g->n_lines + 1, sizeof(*more));
			*at = 1;
			if (!more)
				return -ENOMEM;
			g->lines = more;
			g->lines[g->n_lines++] =
				(struct hw_find_line){.kind = l.kind, .topic = l.topic, .wild = l.wild, .id = l.id};
			*at = (uint32_t)g->n_lines;
		}
	}
	struct hw_find_line *line = &g->lines[*at - 1];
	line->n++;
	line->words |= l.words;
	line->member = l.member ? l.member : line->member;
	return 0;
}

static const char *last_level(const struct hw_seen_topic *s, size_t *len)
{
	const char *slash = memrchr(s->text, '/', s->len);
	const char *last = slash ? slash + 1 : s->text;
	*len = (size_t)(s->text + s->len - last);
	return last;
}

/* Whether these words on a topic are those of goodbyes. */
static bool is_goodbye(const struct hw_seen_topic *s, uint32_t words)
{
	size_t len;
	const char *last = last_level(s, &len);
	int pair = hw_word_pair(words);
	return pair >= 0 && (!hw_word_needs_hint(pair) || hw_word_is_hint(last, len));
}

/* --- what is known about ids -------------------------------------------------------------------------------------- */

static uint64_t prefix_key(const struct hw_finding *f, size_t topic, const struct shape *s)
{
	return hw_levels_key(hw_levels_of(&f->levels, topic), s->last + 1u, s->low) ^
	       hw_finding_id_of(f, topic, s->id) * UINT64_C(0x9e3779b97f4a7c15) ^ s->low;
}

static void learn_shape(struct liner *x, const struct hw_find_place *p)
{
	size_t k = 0;
	while (k < x->n_shapes &&
	       (x->shapes[k].low != p->low || x->shapes[k].id != p->id || x->shapes[k].last != p->last))
		k++;
	if (k == x->n_shapes && k < SHAPES_MAX)
		x->shapes[x->n_shapes++] = (struct shape){p->low, p->id, p->last};
}

/* Learns the ids of a placed topic. */
static int learn(struct liner *x, size_t topic)
{
	struct hw_finding *f = x->f;
	uint32_t place = f->place_of[f->templates.of[topic]];
	const struct hw_find_place *p = &f->places[place];
	struct shape s = {p->low, p->id, p->last};
	uint32_t *at = hw_keymap_put(&x->prefixes, prefix_key(f, topic, &s));
	if (!at)
		return -ENOMEM;
	*at = place + 1;
	if (__builtin_popcount(p->id) > 1)
		return 0;
	at = hw_keymap_put(&x->owners, hw_finding_id_of(f, topic, p->id));
	if (!at)
		return -ENOMEM;
	*at = *at ? *at : p->group;
	return 0;
}

/* Returns the place whose device has this topic; NULL: the topic is not that of a known device. */
static const struct hw_find_place *find_place(const struct liner *x, size_t topic)
{
	unsigned levels = hw_topics_at(x->f->topics, topic)->levels;
	for (size_t k = 0; k < x->n_shapes; k++) {
		uint32_t at = x->shapes[k].last < levels
		                      ? hw_keymap_get(&x->prefixes, prefix_key(x->f, topic, &x->shapes[k]))
		                      : 0;
		if (at)
			return &x->f->places[at - 1];
	}
	return NULL;
}

/* --- topics ------------------------------------------------------------------------------------------------------- */

static void count_goodbye(struct liner *x, unsigned group, uint64_t id)
{
	struct hw_find_device *d = hw_finding_device(x->f, group, id);
	if (d && !d->goodbye) {
		d->goodbye = true;
		x->f->groups[group].goodbyes++;
	}
}

static int add_words(struct liner *x, unsigned group, const struct hw_seen_topic *s, struct hw_find_line l, uint64_t id)
{
	l.member = hw_word_pair(s->words) < 0 && hw_word_pair(s->member_words) >= 0 ? s->member : NULL;
	l.words = l.member ? s->member_words : s->words;
	if (l.member || is_goodbye(s, s->words))
		count_goodbye(x, group, id);
	return add_line(x, group, l);
}

/* A topic of a template. */
static int take_placed(struct liner *x, size_t topic)
{
	const struct hw_finding *f = x->f;
	uint32_t t = f->templates.of[topic];
	const struct hw_find_place *p = &f->places[f->place_of[t]];
	struct hw_find_line l = {
		.topic = f->templates.all[t].topic, .wild = f->templates.all[t].wild | p->low, .id = p->id};
	return add_words(x, f->group[topic] - 1u, hw_topics_at(f->topics, topic), l, hw_finding_id_of(f, topic, p->id));
}

/* A topic in no template: one of a known device, or not. */
static int take_other(struct liner *x, size_t topic)
{
	struct hw_finding *f = x->f;
	const struct hw_seen_topic *s = hw_topics_at(f->topics, topic);
	const struct hw_find_place *p = find_place(x, topic);
	bool goodbye = is_goodbye(s, s->words) || hw_word_pair(s->member_words) >= 0;
	if (p) {
		struct hw_find_line l = {.topic = (uint32_t)topic, .wild = p->low, .id = p->id};
		uint64_t id = hw_finding_id_of(f, topic, p->id);
		if (f->state[topic] == HW_TOPIC_COMMAND) {
			l.kind = HW_LINE_IGNORE;
			return add_line(x, p->group - 1, l);
		}
		if (s->live == 0 && !goodbye)
			return 0;
		l.kind = s->live ? HW_LINE_HEARTBEAT : HW_LINE_GOODBYE;
		if (s->live && hw_finding_place(f, topic, p->group - 1, id))
			return -ENOMEM;
		if (!s->live)
			f->state[topic] = HW_TOPIC_BESIDE;
		return add_words(x, p->group - 1, s, l, id);
	}
	for (unsigned k = 0; goodbye && f->state[topic] == HW_TOPIC_FREE && k < s->levels; k++) {
		uint64_t id = hw_finding_id_of(f, topic, UINT32_C(1) << k);
		uint32_t group = hw_keymap_get(&x->owners, id);
		struct hw_find_line l = {.kind = HW_LINE_GOODBYE, .topic = (uint32_t)topic, .wild = UINT32_C(1) << k};
		l.id = l.wild;
		if (!group || f->levels.all[hw_levels_of(&f->levels, topic)[k]].len < 3)
			continue;
		f->state[topic] = HW_TOPIC_BESIDE;
		return add_words(x, group - 1, s, l, id);
	}
	return 0;
}

/* --- fewer lines -------------------------------------------------------------------------------------------------- */

static unsigned last_of(const struct hw_find_line *l)
{
	return 31u - (unsigned)__builtin_clz(l->id);
}

static size_t count_kind(const struct hw_find_group *g, enum hw_line_kind kind)
{
	size_t n = 0;
	for (size_t i = 0; i < g->n_lines; i++)
		n += g->lines[i].kind == kind;
	return n;
}

/* Whether two lines have the same filter, and are goodbyes with the same payload or no goodbyes. */
static bool is_same_line(const struct hw_finding *f, const struct hw_find_line *a, const struct hw_find_line *b)
{
	if (line_key(f, a, 0) != line_key(f, b, 0))
		return false;
	return a->kind != HW_LINE_GOODBYE ||
	       (a->member == b->member && hw_word_pair(a->words) == hw_word_pair(b->words));
}

/* Joins the lines that have become equal. */
static void join_lines(const struct hw_finding *f, struct hw_find_group *g)
{
	size_t kept = 0;
	for (size_t i = 0; i < g->n_lines; i++) {
		size_t k = 0;
		while (k < kept && !is_same_line(f, &g->lines[k], &g->lines[i]))
			k++;
		if (k == kept)
			g->lines[kept++] = g->lines[i];
		else
			g->lines[k].n += g->lines[i].n;
	}
	g->n_lines = kept;
}

/* Whether a filter with these wildcards would match nearly every topic with as many levels. */
static bool is_too_wide(const struct hw_seen_topic *s, uint32_t wild)
{
	return __builtin_popcount(wild) == s->levels;
}

/* Replaces the levels after the id by wildcards, level by level, until the group has few heartbeat lines. */
static void make_few(const struct hw_finding *f, struct hw_find_group *g)
{
	size_t few = g->deep ? LINES_DEEP : LINES_FEW;
	for (unsigned k = 1; k < HW_TOPIC_LEVELS && count_kind(g, HW_LINE_HEARTBEAT) > few; k++) {
		for (size_t i = 0; i < g->n_lines; i++) {
			struct hw_find_line *l = &g->lines[i];
			const struct hw_seen_topic *s = hw_topics_at(f->topics, l->topic);
			uint32_t wild =
				last_of(l) + k < s->levels ? l->wild | UINT32_C(1) << (last_of(l) + k) : l->wild;
			if (l->kind == HW_LINE_HEARTBEAT && !is_too_wide(s, wild))
				l->wild = wild;
		}
		join_lines(f, g);
	}
}

/* --- what a line is ----------------------------------------------------------------------------------------------- */

/* Adds goodbye lines, which stand before the heartbeat lines. A message on the topic of goodbyes that is no goodbye
 * is a heartbeat. */
static int split_kinds(const struct hw_finding *f, struct hw_find_group *g)
{
	size_t n = g->n_lines;
	for (size_t i = 0; i < n; i++) {
		struct hw_find_line l = g->lines[i];
		const struct hw_seen_topic *s = hw_topics_at(f->topics, l.topic);
		if (l.kind != HW_LINE_HEARTBEAT || (!l.member && !is_goodbye(s, l.words)) || hw_word_pair(l.words) < 0)
			continue;
		struct hw_find_line *more = reallocarray(g->lines, g->n_lines + 1, sizeof(*more));
		if (!more)
			return -ENOMEM;
		g->lines = more;
		l.kind = HW_LINE_GOODBYE;
		if (l.member || count_kind(g, HW_LINE_HEARTBEAT) == 1)
			g->lines[g->n_lines++] = l;
		else
			g->lines[i] = l;
	}
	return 0;
}

/* Removes goodbye lines that prove nothing, because their payloads are of no known pair of words, or because too few
 * devices have such a topic. */
static void drop_few(struct hw_find_group *g)
{
	size_t kept = 0;
	for (size_t i = 0; i < g->n_lines; i++) {
		struct hw_find_line l = g->lines[i];
		bool bad = l.kind == HW_LINE_GOODBYE &&
		           (hw_word_pair(l.words) < 0 || (l.n < FEWEST && g->devices > FEWEST));
		if (!bad)
			g->lines[kept++] = l;
	}
	g->n_lines = kept;
}

/* --- sites -------------------------------------------------------------------------------------------------------- */

/* Returns the levels before the id that are wildcards in each filter of the group. All filters of a group must have the
 * captures of its labels; only `ignore` needs none. */
static uint32_t common_sites(const struct hw_find_group *g)
{
	const struct hw_find_line *l = g->lines;
	uint32_t before = g->n_lines ? (UINT32_C(1) << last_of(l)) - 1 : 0, wild = before ? l->wild & before : 0;
	for (size_t i = 0; i < g->n_lines; i++)
		if (g->lines[i].kind != HW_LINE_IGNORE &&
		    (g->lines[i].id != l->id || (g->lines[i].wild & before) != wild))
			return 0;
	return __builtin_popcount(wild) < HW_CAPTURES_MAX ? wild & ~l->id : 0;
}

/* Finds the sites of each group. If each device has another value at a level, the level names no site. */
static int find_sites(struct hw_finding *f)
{
	struct hw_keymap known = {0};
	uint32_t(*values)[HW_TOPIC_LEVELS] = calloc(f->n_groups + 1, sizeof(*values));
	int rc = values ? 0 : -ENOMEM;
	for (size_t i = 0; i < f->n_groups && rc == 0; i++)
		f->groups[i].sites = f->groups[i].preset ? 0 : common_sites(&f->groups[i]);
	for (size_t i = 0; i < f->n && rc == 0; i++) {
		unsigned group = f->state[i] == HW_TOPIC_PLACED ? f->group[i] - 1u : 0;
		uint32_t sites = f->state[i] == HW_TOPIC_PLACED ? f->groups[group].sites : 0;
		for (unsigned k = 0; sites >> k && k < hw_topics_at(f->topics, i)->levels && rc == 0; k++) {
			if (!(sites >> k & 1))
				continue;
			uint64_t key = (uint64_t)hw_levels_of(&f->levels, i)[k] << 32 | group << 8 | k;
			uint32_t *at = hw_keymap_put(&known, key * UINT64_C(0x9e3779b97f4a7c15));
			rc = at ? 0 : -ENOMEM;
			values[group][k] += at && !*at;
			if (at)
				*at = 1;
		}
	}
	for (size_t i = 0; i < f->n_groups && rc == 0; i++)
		for (unsigned k = 0; k < HW_TOPIC_LEVELS; k++)
			if (values[i][k] >= f->groups[i].devices)
				f->groups[i].sites &= ~(UINT32_C(1) << k);
	hw_keymap_fini(&known);
	free(values);
	return rc;
}

/* --- names -------------------------------------------------------------------------------------------------------- */

/* Writes the letters of a level in lower case, to be used in a name. Returns their number. */
static size_t write_letters(const struct hw_level *level, char *name)
{
	size_t n = 0;
	for (size_t i = 0; i < level->len && n < HW_CAPTURE_NAME - 8; i++) {
		char c = (char)tolower((unsigned char)level->text[i]);
		if (c >= 'a' && c <= 'z')
			name[n++] = c;
	}
	name[n] = '\0';
	return n;
}

/* Writes a name for a level: `line` if its value is line3, and `site` if sites is the level before. */
static void name_level(const struct hw_finding *f, const struct hw_find_line *l, unsigned level, char *name, unsigned k)
{
	const uint32_t *tokens = hw_levels_of(&f->levels, l->topic);
	const struct hw_level *value = &f->levels.all[tokens[level]];
	size_t n = value->digit ? write_letters(value, name) : 0;
	if (n < 2)
		n = level > 0 && !(l->wild >> (level - 1) & 1) ? write_letters(&f->levels.all[tokens[level - 1]], name)
		                                               : 0;
	if (n > 3 && name[n - 1] == 's' && name[n - 2] != 's')
		name[--n] = '\0';
	if (n < 2 || strcmp(name, "id") == 0)
		snprintf(name, HW_CAPTURE_NAME, "level%u", k + 1);
}

static void name_levels(const struct hw_finding *f, struct hw_find_group *g)
{
	const struct hw_find_line *l = g->lines;
	if (g->n_lines == 0)
		return;
	for (unsigned k = 0; k < last_of(l) && g->n_names < HW_CAPTURES_MAX - 1; k++)
		if ((l->id | g->sites) >> k & 1) {
			g->labels |= (g->sites >> k & 1) << g->n_names;
			name_level(f, l, k, g->names[g->n_names], g->n_names);
			for (unsigned j = 0; j < g->n_names; j++)
				if (strcmp(g->names[j], g->names[g->n_names]) == 0)
					snprintf(g->names[g->n_names], HW_CAPTURE_NAME, "level%u", g->n_names + 1);
			g->n_names++;
		}
}

char *hw_line_filter(const struct hw_finding *f, const struct hw_find_group *g, const struct hw_find_line *l)
{
	const struct hw_seen_topic *s = hw_topics_at(f->topics, l->topic);
	const uint32_t *tokens = hw_levels_of(&f->levels, l->topic);
	uint32_t named = l->id | (l->kind == HW_LINE_IGNORE ? 0 : g->sites);
	unsigned name = 0;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	bool good = out != NULL;
	for (unsigned k = 0; good && k < s->levels; k++) {
		const struct hw_level *level = &f->levels.all[tokens[k]];
		if (k > 0)
			putc('/', out);
		if (l->id >> k & 1 && k == last_of(l)) {
			fputs("{id}", out);
		} else if (named >> k & 1) {
			while (l->kind == HW_LINE_IGNORE && g->labels >> name & 1)
				name++;
			good = name < g->n_names;
			fprintf(out, "{%s}", good ? g->names[name++] : "");
		} else if (l->wild >> k & 1) {
			putc('+', out);
		} else {
			good = level->writable;
			fwrite(level->text, 1, level->len, out);
		}
	}
	if (out && fclose(out) != 0)
		good = false;
	if (good)
		return text;
	free(text);
	return NULL;
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

int hw_find_lines(struct hw_finding *f)
{
	struct liner x = {.f = f};
	int rc = 0;
	for (size_t i = 0; i < f->n_places; i++)
		if (f->places[i].group)
			learn_shape(&x, &f->places[i]);
	for (size_t i = 0; i < f->n && rc == 0; i++)
		if (f->templates.of[i] != HW_NO_TEMPLATE && f->state[i] == HW_TOPIC_PLACED)
			rc = learn(&x, i);
	for (size_t i = 0; i < f->n && rc == 0; i++) {
		bool placed = f->templates.of[i] != HW_NO_TEMPLATE && f->state[i] == HW_TOPIC_PLACED;
		if (placed)
			rc = take_placed(&x, i);
		else if (f->state[i] == HW_TOPIC_FREE || f->state[i] == HW_TOPIC_COMMAND)
			rc = take_other(&x, i);
	}
	for (size_t i = 0; i < f->n_groups && rc == 0; i++) {
		struct hw_find_group *g = &f->groups[i];
		if (g->preset)
			continue;
		rc = split_kinds(f, g);
		/* If only the retained message of a will was received, the group may get the same goodbye line
		 * twice. */
		join_lines(f, g);
		drop_few(g);
		make_few(f, g);
	}
	rc = rc ? rc : find_sites(f);
	for (size_t i = 0; i < f->n_groups && rc == 0; i++)
		if (!f->groups[i].preset)
			name_levels(f, &f->groups[i]);
	hw_keymap_fini(&x.known);
	hw_keymap_fini(&x.prefixes);
	hw_keymap_fini(&x.owners);
	return rc;
}

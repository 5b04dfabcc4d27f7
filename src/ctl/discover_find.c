/* SPDX-License-Identifier: MIT */
/*
 * Finds the groups: first the groups of the presets, then the groups of other conventions.
 *
 * Cost: a few look-ups for each level of each topic, and one for each message; 50,000 topics and 3,000,000 messages
 * take less than a second.
 */
#include "ctl/discover_find.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/conf.h"
#include "conf/presets.h"
#include "ctl/discover_priv.h"
#include "heartwheel/fnv.h"
#include "heartwheel/payload.h"
#include "heartwheel/print.h"

#define BURST_MS  1000 /* messages of a device within this time count as one */
#define BUCKETS   512
#define FIELD_MIN 5 /* a field is written for a group if at least this many percent of the group's topics have it */

/* --- shared with the other files ---------------------------------------------------------------------------------- */

uint64_t hw_finding_id(const struct hw_finding *f, const char *id, size_t len)
{
	return hw_fnv64(HW_FNV64_BEGIN ^ f->seed, id, len);
}

uint64_t hw_finding_id_of(const struct hw_finding *f, size_t topic, uint32_t levels)
{
	const uint32_t *tokens = hw_levels_of(&f->levels, topic);
	uint64_t h = HW_FNV64_BEGIN ^ f->seed;
	for (unsigned k = 0, n = 0; levels >> k; k++)
		if (levels >> k & 1) {
			h = n++ ? hw_fnv64(h, "/", 1) : h;
			h = hw_fnv64(h, f->levels.all[tokens[k]].text, f->levels.all[tokens[k]].len);
		}
	return h;
}

bool hw_finding_id_valid(const struct hw_finding *f, size_t topic, uint32_t levels)
{
	const uint32_t *tokens = hw_levels_of(&f->levels, topic);
	char id[HW_ID_MAX + 1];
	size_t at = 0;
	for (unsigned k = 0; levels >> k; k++) {
		const struct hw_level *l = &f->levels.all[tokens[k]];
		if (!(levels >> k & 1))
			continue;
		if (l->len == 0 || at + l->len + 1 > sizeof(id))
			return false;
		if (at > 0)
			id[at++] = '/';
		memcpy(id + at, l->text, l->len);
		at += l->len;
	}
	return hw_id_valid(id, at);
}

static uint64_t device_key(unsigned group, uint64_t id)
{
	return (id ^ (group + 1)) * UINT64_C(0x9e3779b97f4a7c15);
}

struct hw_find_device *hw_finding_device(struct hw_finding *f, unsigned group, uint64_t id)
{
	uint32_t at = hw_keymap_get(&f->device_of, device_key(group, id));
	return at ? &f->devices[at - 1] : NULL;
}

int hw_finding_place(struct hw_finding *f, size_t topic, unsigned group, uint64_t id)
{
	uint32_t *at = hw_keymap_put(&f->device_of, device_key(group, id));
	struct hw_find_group *g = &f->groups[group];
	if (!at)
		return -ENOMEM;
	if (!*at) {
		*at = (uint32_t)f->n_devices + 1; /* there are no more devices than topics */
		f->devices[f->n_devices++] = (struct hw_find_device){.id = id, .group = group};
		g->example = g->devices++ ? g->example : (uint32_t)topic;
	}
	const struct hw_seen_topic *s = hw_topics_at(f->topics, topic);
	struct hw_find_device *d = &f->devices[*at - 1];
	g->flagged += s->flagged && !d->flagged;
	d->flagged |= s->flagged;
	g->own_timeout |= s->own_timeout;
	g->topics++;
	for (unsigned k = 0; k < HW_FOUND_FIELDS; k++)
		g->paths[k][s->path[k]]++;
	f->state[topic] = HW_TOPIC_PLACED;
	f->group[topic] = (uint16_t)(group + 1);
	f->device[topic] = *at;
	return 0;
}

int hw_found_add(struct hw_found_list *list, const char *format, ...)
{
	va_list args;
	char *text, **more = reallocarray(list->at, list->n + 1, sizeof(*more));
	list->at = more ? more : list->at;
	va_start(args, format);
	int n = more ? vasprintf(&text, format, args) : -1;
	va_end(args);
	if (n < 0)
		return -ENOMEM;
	list->at[list->n++] = text;
	return 0;
}

static void free_list(struct hw_found_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->at[i]);
	free(list->at);
	*list = (struct hw_found_list){0};
}

/* --- topics that are not of devices ------------------------------------------------------------------------------- */

static bool has_level(const struct hw_finding *f, size_t topic, const char *name)
{
	const struct hw_level *l = &f->levels.all[hw_levels_of(&f->levels, topic)[0]];
	return l->len == strlen(name) && memcmp(l->text, name, l->len) == 0;
}

static bool is_command(const struct hw_finding *f, size_t topic)
{
	const uint32_t *tokens = hw_levels_of(&f->levels, topic);
	for (unsigned k = 0; k < hw_topics_at(f->topics, topic)->levels; k++)
		if (f->levels.all[tokens[k]].command)
			return true;
	return false;
}

/* Excludes the topics below Home Assistant's root. On these topics, devices and bridges publish descriptions of
 * devices. */
static void exclude_topics(struct hw_finding *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (hw_topics_at(f->topics, i)->text[0] == '$' || has_level(f, i, "heartwheel") ||
		    has_level(f, i, "homeassistant"))
			f->state[i] = HW_TOPIC_EXCLUDED;
}

static int find_own(struct hw_finding *f)
{
	bool *in = calloc(f->n + 1, sizeof(*in));
	if (!in)
		return -ENOMEM;
	for (size_t i = 0; i < f->n; i++) {
		if (f->state[i] == HW_TOPIC_FREE && is_command(f, i))
			f->state[i] = HW_TOPIC_COMMAND;
		in[i] = f->state[i] == HW_TOPIC_FREE && hw_topics_at(f->topics, i)->live > 0;
	}
	int rc = hw_templates_init(&f->templates, &f->levels, f->topics, in);
	free(in);
	if (rc == 0)
		rc = hw_find_groups(f);
	return rc ? rc : hw_find_lines(f);
}

/* --- intervals ---------------------------------------------------------------------------------------------------- */

/* The gaps between the heartbeats of a group, counted by their length in 20 buckets for each factor of e. */
struct gaps {
	double sum[BUCKETS];
	uint32_t n[BUCKETS];
	double total;
};

static unsigned bucket_of(uint32_t ms)
{
	double k = ms > BURST_MS ? log((double)ms / BURST_MS) * 20 : 0;
	return k < BUCKETS - 1 ? (unsigned)k : BUCKETS - 1;
}

/* Returns a quantile of the gaps by time: at a random moment, the present gap has at most this length with probability
 * `share`. A gap counts by its length, so many short gaps within bursts do not hide the long gaps between the bursts.
 */
static int64_t quantile(const struct gaps *g, double share)
{
	double sum = 0;
	for (unsigned k = 0; k < BUCKETS; k++) {
		sum += g->sum[k];
		if (g->n[k] > 0 && sum >= share * g->total)
			return (int64_t)(g->sum[k] / g->n[k] + 0.5);
	}
	return 0;
}

static int64_t round_up(int64_t ms)
{
	static const int64_t steps_s[] = {10, 30, 60, 120, 300, 900, 1800, 3600, 6 * 3600, 24 * 3600};
	for (size_t i = 0; i < sizeof(steps_s) / sizeof(steps_s[0]); i++)
		if (ms <= steps_s[i] * 1000)
			return steps_s[i] * 1000;
	return INT64_C(24) * 3600 * 1000;
}

/* Adds up the gaps of the groups. */
static struct gaps *measure(struct hw_finding *f)
{
	struct gaps *all = calloc(f->n_groups + 1, sizeof(*all));
	for (size_t i = 0; all && i < hw_topics_n_beats(f->topics); i++) {
		struct hw_topics_beat b = hw_topics_beat(f->topics, i);
		struct hw_find_device *d = f->device[b.topic] ? &f->devices[f->device[b.topic] - 1] : NULL;
		uint32_t gap = d ? b.at_ms - d->last_ms : 0;
		if (!d || (d->beats > 0 && (gap < BURST_MS || gap > INT32_MAX)))
			continue;
		if (d->beats == 1)
			f->groups[d->group].twice++;
		if (d->beats > 0) {
			struct gaps *g = &all[d->group];
			unsigned k = bucket_of(gap);
			g->sum[k] += gap;
			g->n[k]++;
			g->total += gap;
		}
		d->beats++;
		d->last_ms = b.at_ms;
	}
	return all;
}

/* --- the result --------------------------------------------------------------------------------------------------- */

/* Whether a group of the file has this name already. The names of the presets count as used, because groups of
 * presets may follow in the file. */
static bool is_name_taken(const struct hw_found *out, const char *name)
{
	for (size_t i = 0; i < out->n; i++)
		if (strcmp(out->groups[i].name, name) == 0)
			return true;
	for (size_t i = 0; hw_presets[i].name; i++)
		if (strcmp(hw_presets[i].name, name) == 0)
			return true;
	return strcmp(name, "default") == 0;
}

/* Names a group after its fixed levels before the id. If no level before the id is fixed, names the group after the
 * fixed levels after the id. */
static char *name_group(const struct hw_finding *f, const struct hw_find_group *g, const struct hw_found *out)
{
	const struct hw_find_line *l = g->lines;
	for (size_t i = g->n_lines; i-- > 0;)
		l = g->lines[i].kind == HW_LINE_HEARTBEAT ? &g->lines[i] : l;
	char base[41], *name = NULL;
	size_t n = 0;
	for (unsigned part = 0; part < 2 && n == 0 && l; part++)
		for (unsigned k = 0; k < hw_topics_at(f->topics, l->topic)->levels; k++) {
			const struct hw_level *level = &f->levels.all[hw_levels_of(&f->levels, l->topic)[k]];
			bool before = k < 31u - (unsigned)__builtin_clz(l->id);
			if ((l->wild >> k & 1) || before != (part == 0))
				continue;
			if (n > 0 && n + 1 < sizeof(base))
				base[n++] = '-';
			for (size_t i = 0; i < level->len && n + 1 < sizeof(base); i++)
				if (isalnum((unsigned char)level->text[i]) || strchr("_-", level->text[i]))
					base[n++] = level->text[i];
		}
	while (n > 0 && base[n - 1] == '-')
		n--;
	memcpy(base + n, n ? "" : "d", n ? 1 : 2);
	const char *root = n ? base : "devices";
	for (unsigned k = 1; k < 1000; k++) {
		if (asprintf(&name, k == 1 ? "%s" : "%s-%u", root, k) < 0)
			return NULL;
		if (!is_name_taken(out, name))
			break;
		free(name);
		name = NULL;
	}
	return name;
}

/* Writes the value of key `id` for an id of several levels, such as {site}/{id}. If the id has one level, the text
 * is empty. */
static void write_id(const struct hw_find_group *g, char *id, size_t room)
{
	size_t at = 0;
	id[0] = '\0';
	for (unsigned k = 0; k < g->n_names; k++)
		if (!(g->labels >> k & 1))
			at += hw_print(id + at, room - at, "{%s}/", g->names[k]);
	if (at > 0)
		hw_print(id + at, room - at, "{id}");
}

static int add_fields(const struct hw_finding *f, const struct hw_find_group *g, struct hw_found_group *o)
{
	int rc = 0;
	for (unsigned k = 0; k < HW_FOUND_FIELDS && rc == 0 && !g->preset; k++) {
		unsigned best = 0;
		const char *why;
		struct hw_field field;
		char line[HW_PATH_TEXT + 16];
		for (unsigned i = 1; i <= HW_TOPICS_PATHS; i++)
			if (g->paths[k][i] > (best ? g->paths[k][best] : 0))
				best = i;
		const char *path = best && g->paths[k][best] * 100 >= g->topics * FIELD_MIN
		                           ? hw_topics_path(f->topics, best)
		                           : NULL;
		if (!path || strcmp(path, hw_discover_field_names[k]) == 0) /* heartwheeld reads it without a line */
			continue;
		hw_print(line, sizeof(line), "%s %s", hw_discover_field_names[k], path);
		if (hw_field_compile(&field, line, &why) == 0)
			rc = hw_found_add(&o->lines, "field = %s", line);
		hw_field_fini(&field);
	}
	return rc;
}

static int add_rest(const struct hw_finding *f, const struct hw_find_group *g, struct hw_found_group *o)
{
	char id[HW_CAPTURES_MAX * (HW_CAPTURE_NAME + 3) + 8];
	int rc = add_fields(f, g, o);
	write_id(g, id, sizeof(id));
	if (rc == 0 && id[0])
		rc = hw_found_add(&o->lines, "id = %s", id);
	for (unsigned k = 0; k < g->n_names && rc == 0; k++)
		if (g->labels >> k & 1)
			rc = hw_found_add(&o->lines, "label = %s {%s}", g->names[k], g->names[k]);
	if (rc == 0 && !g->preset && g->flagged * 2 > g->devices) {
		rc = hw_found_add(
			&o->notes,
			"These devices publish with the retain flag, so that a bridge may repeat old messages.");
		if (rc == 0)
			rc = hw_found_add(&o->lines, "retained = count");
	}
	if (rc == 0 && g->own_timeout && !g->preset)
		rc = hw_found_add(&o->notes,
		                  "Payloads have a number 'timeout', which heartwheeld takes as the device's own "
		                  "timeout in seconds; 'payload = plain' ignores it.");
	if (rc == 0 && g->foreign > 20)
		rc = hw_found_add(&o->notes, "%u topics that are hardly of devices fit these filters: see 'ignore'.",
		                  g->foreign);
	if (rc == 0 && g->shares_ids && g->preset != HW_PRESET_FRIGATE) {
		rc = hw_found_add(&o->notes, "A group above has devices of the same names, so these get a prefix.");
		if (rc == 0)
			rc = hw_found_add(&o->lines, "id_prefix = %s-", o->name);
		if (rc == 0)
			rc = hw_found_add(&o->lines, "status = nodes/%s/%s/status", o->name, id[0] ? id : "{id}");
	}
	return rc;
}

/* Returns the value of the first line of the group, or of its preset, that has this key; NULL: there is none. */
static const char *find_line(const struct hw_find_group *g, const char *key)
{
	size_t n = strlen(key);
	for (size_t i = 0; i < g->out.n; i++)
		if (strncmp(g->out.at[i], key, n) == 0 && strncmp(g->out.at[i] + n, " = ", 3) == 0)
			return g->out.at[i] + n + 3;
	for (size_t i = 0; i < hw_preset_n_lines && g->preset; i++)
		if (hw_preset_lines[i].preset == g->preset && strcmp(hw_preset_lines[i].key, key) == 0)
			return hw_preset_lines[i].value;
	return NULL;
}

/* Returns the topic of a group's goodbyes for a comment. If the heartbeats begin with the same levels, the topic
 * begins with "..". The caller frees the text. NULL: the group has no goodbyes, or there is no memory. */
static char *show_goodbye(const struct hw_find_group *g)
{
	const char *goodbye = find_line(g, "goodbye"), *heartbeat = find_line(g, "heartbeat");
	const char *id = goodbye ? strstr(goodbye, "{id") : NULL, *end = id ? strchr(id, '}') : NULL;
	char *text;
	if (end && heartbeat && end[1] == '/' && strncmp(goodbye, heartbeat, (size_t)(end + 1 - goodbye)) == 0)
		return asprintf(&text, "..%s", end + 1) < 0 ? NULL : text;
	return goodbye ? strdup(goodbye) : NULL;
}

static int64_t preset_timeout_ms(int preset)
{
	int64_t ms = 0;
	for (size_t i = 0; i < hw_preset_n_lines; i++)
		if (hw_preset_lines[i].preset == preset && strcmp(hw_preset_lines[i].key, "timeout") == 0)
			hw_conf_duration_parse(hw_preset_lines[i].value, &ms);
	return ms;
}

static void set_timeout(const struct hw_find_group *g, const struct gaps *gaps, struct hw_found_group *o)
{
	bool enough = g->twice * 2 >= g->devices;
	o->median_ms = quantile(gaps, 0.5);
	o->p90_ms = quantile(gaps, 0.9);
	o->timeout_ms = enough ? round_up(3 * o->p90_ms) : 3600 * 1000;
	/* The timeout of a preset fits devices with usual settings. So a timeout from the observation is written
	 * only if it is longer. */
	if (g->preset && (!enough || o->timeout_ms <= preset_timeout_ms(g->preset)))
		o->timeout_ms = 0;
}

static int add_group(struct hw_finding *f, struct hw_find_group *g, const struct gaps *gaps, struct hw_found *out)
{
	struct hw_found_group *o = &out->groups[out->n];
	*o = (struct hw_found_group){.preset = g->preset ? hw_presets[g->preset].name : NULL,
	                             .example = hw_topics_at(f->topics, g->example)->text,
	                             .devices = g->devices,
	                             .twice = g->twice,
	                             .goodbyes = g->goodbyes,
	                             .name = g->preset ? strdup(hw_presets[g->preset].name) : name_group(f, g, out)};
	out->n++;
	if (!o->name)
		return -ENOMEM;
	o->lines = g->out;
	g->out = (struct hw_found_list){0};
	set_timeout(g, gaps, o);
	return add_rest(f, g, o);
}

static int add_prefix(const struct hw_finding *f, size_t topic, struct hw_keymap *known, struct hw_found *out)
{
	const struct hw_seen_topic *s = hw_topics_at(f->topics, topic);
	uint32_t token = hw_levels_of(&f->levels, topic)[0], *at = hw_keymap_put(known, token);
	if (!at)
		return -ENOMEM;
	if (!*at) {
		*at = UINT32_MAX;
		if (out->n_rest < HW_FOUND_REST) {
			struct hw_found_rest *r = &out->rest[out->n_rest];
			if (!(r->prefix = strndup(f->levels.all[token].text, f->levels.all[token].len)))
				return -ENOMEM;
			*at = (uint32_t)++out->n_rest;
		}
	}
	if (*at == UINT32_MAX) {
		out->more++;
		return 0;
	}
	struct hw_found_rest *r = &out->rest[*at - 1];
	r->topics++;
	r->commands += f->state[topic] == HW_TOPIC_COMMAND;
	r->retained += s->live == 0 && f->state[topic] != HW_TOPIC_COMMAND;
	return 0;
}

static int add_unplaced(const struct hw_finding *f, struct hw_found *out)
{
	struct hw_keymap known = {0};
	int rc = 0;
	for (size_t i = 0; i < f->n && rc == 0; i++)
		if (f->state[i] == HW_TOPIC_FREE || f->state[i] == HW_TOPIC_COMMAND)
			rc = add_prefix(f, i, &known, out);
	hw_keymap_fini(&known);
	return rc;
}

static int write_groups(struct hw_finding *f, struct hw_found *out)
{
	uint16_t order[HW_FOUND_MAX];
	size_t n;
	int rc = hw_find_order(f, order, &n);
	struct gaps *gaps = rc ? NULL : measure(f);
	if (!gaps)
		return -ENOMEM;
	for (size_t i = 0; rc == 0 && i < n; i++) {
		char *goodbye = show_goodbye(&f->groups[order[i]]);
		rc = add_group(f, &f->groups[order[i]], &gaps[order[i]], out);
		out->groups[out->n - 1].goodbye = goodbye;
	}
	free(gaps);
	return rc ? rc : add_unplaced(f, out);
}

static void release(struct hw_finding *f)
{
	for (size_t i = 0; i < f->n_groups; i++) {
		free_list(&f->groups[i].out);
		for (size_t k = 0; k < f->groups[i].n_match; k++)
			hw_topic_fini(&f->groups[i].match[k]);
		free(f->groups[i].match);
		free(f->groups[i].lines);
	}
	hw_templates_fini(&f->templates);
	hw_levels_fini(&f->levels);
	hw_keymap_fini(&f->device_of);
	free(f->groups);
	free(f->devices);
	free(f->state);
	free(f->group);
	free(f->device);
	free(f->places);
	free(f->place_of);
}

int hw_discover_find(const struct hw_topics *t, uint64_t seed, struct hw_found *out)
{
	size_t n = hw_topics_n(t) + 1;
	struct hw_finding f = {.topics = t,
	                       .seed = seed,
	                       .n = hw_topics_n(t),
	                       .state = calloc(n, sizeof(*f.state)),
	                       .group = calloc(n, sizeof(*f.group)),
	                       .device = calloc(n, sizeof(*f.device)),
	                       .devices = malloc(n * sizeof(*f.devices)),
	                       .groups = calloc(HW_FOUND_MAX + 1, sizeof(*f.groups))};
	*out = (struct hw_found){.groups = calloc(HW_FOUND_MAX + 1, sizeof(*out->groups))};
	bool ok = f.state && f.group && f.device && f.devices && f.groups && out->groups;
	int rc = ok ? hw_levels_init(&f.levels, t, seed) : -ENOMEM;
	if (rc == 0)
		exclude_topics(&f);
	if (rc == 0)
		rc = hw_find_presets(&f);
	if (rc == 0)
		rc = find_own(&f);
	if (rc == 0)
		rc = write_groups(&f, out);
	release(&f);
	if (rc)
		hw_found_fini(out);
	return rc;
}

void hw_found_fini(struct hw_found *f)
{
	for (size_t i = 0; i < f->n; i++) {
		free_list(&f->groups[i].lines);
		free_list(&f->groups[i].notes);
		free(f->groups[i].name);
		free(f->groups[i].goodbye);
	}
	for (size_t i = 0; i < f->n_rest; i++)
		free(f->rest[i].prefix);
	free(f->groups);
	*f = (struct hw_found){0};
}

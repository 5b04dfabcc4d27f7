/* SPDX-License-Identifier: MIT */
/*
 * Finds devices that follow the conventions of the presets. If the filters of a preset begin with {id}, a match proves
 * nothing: a/status/17 may be a topic of another convention. With such a preset, only ids count that also have a topic
 * which no other convention uses. discover_order.c finds the other topics that match the preset's filters.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf/presets.h"
#include "ctl/discover_priv.h"
#include "heartwheel/group.h"

#define PRESETS     (HW_PRESET_HOMIE5 + 1)
#define FILTERS_MAX 40
#define OBJECTS_MAX 64 /* an id with more topics of one component is not a node with sensors */

struct filters {
	struct hw_topic ignores[FILTERS_MAX], goodbyes[FILTERS_MAX], heartbeats[FILTERS_MAX];
	size_t n_ignores, n_goodbyes, n_heartbeats;
};

enum role { NOTHING, IGNORED, HEARTBEAT, GOODBYE };

static int compile(struct filters *f, int preset)
{
	const char *why;
	*f = (struct filters){0};
	for (size_t i = 0; i < hw_preset_n_lines; i++) {
		const struct hw_preset_line *l = &hw_preset_lines[i];
		struct hw_goodbye g;
		int rc = 0;
		if (l->preset != preset)
			continue;
		if (strcmp(l->key, "ignore") == 0)
			rc = hw_topic_compile(&f->ignores[f->n_ignores++], l->value, HW_TOPIC_ANY, &why);
		else if (strcmp(l->key, "heartbeat") == 0)
			rc = hw_topic_compile(&f->heartbeats[f->n_heartbeats++], l->value, HW_TOPIC_ANY, &why);
		else if (strcmp(l->key, "goodbye") == 0 && (rc = hw_goodbye_compile(&g, l->value, &why)) == 0) {
			free(g.member);
			free(g.text);
			f->goodbyes[f->n_goodbyes++] = g.topic;
		}
		if (rc == -ENOMEM)
			return rc;
	}
	return 0;
}

static void release(struct filters *f)
{
	for (size_t i = 0; i < FILTERS_MAX; i++) {
		hw_topic_fini(&f->ignores[i]);
		hw_topic_fini(&f->goodbyes[i]);
		hw_topic_fini(&f->heartbeats[i]);
	}
}

static bool match_any(const struct hw_topic *list, size_t n, const struct hw_seen_topic *s, struct hw_value *id)
{
	for (size_t i = 0; i < n; i++)
		if (hw_topic_match(&list[i], s->text, s->len, &id->text, &id->len))
			return true;
	return false;
}

/* What the topic is for the preset. */
static enum role role_of(const struct filters *f, const struct hw_seen_topic *s, struct hw_value *id)
{
	*id = (struct hw_value){"", 0};
	if (match_any(f->ignores, f->n_ignores, s, id))
		return IGNORED;
	if (match_any(f->goodbyes, f->n_goodbyes, s, id))
		return GOODBYE;
	return match_any(f->heartbeats, f->n_heartbeats, s, id) ? HEARTBEAT : NOTHING;
}

static bool ends(const struct hw_seen_topic *s, const char *end)
{
	size_t n = strlen(end);
	return s->len >= n && memcmp(s->text + s->len - n, end, n) == 0;
}

/* Whether the words were seen, and no other. */
static bool only_words(const struct hw_seen_topic *s, const char *word)
{
	int pair = hw_word_pair(hw_word_of(word, strlen(word)));
	return s->words && (s->words & ~(UINT32_C(3) << 2 * pair)) == 0;
}

static bool is_gen2_status(const struct hw_seen_topic *s, size_t id_len)
{
	static const char *const names[] = {"sys", "wifi", "mqtt", "cloud", "ble", "eth", "ws"};
	const char *name = s->text + id_len + strlen("/status/");
	if (s->levels != 3 || s->shape <= HW_SHAPE_TEXT)
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	size_t word = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
	return word > 0 && name[word] == ':' && name[word + 1] &&
	       strspn(name + word + 1, "0123456789") == strlen(name + word + 1);
}

/* Whether the topic proves that its device follows the convention of the preset. */
static bool is_proof(int preset, enum role role, const struct hw_seen_topic *s, struct hw_value id)
{
	switch (preset) {
	case HW_PRESET_TASMOTA:
		return (role == GOODBYE && only_words(s, "Offline")) || ends(s, "/STATE") || ends(s, "/SENSOR") ||
		       ends(s, "/INFO1") || ends(s, "/INFO2");
	case HW_PRESET_SHELLY2:
		return (role == GOODBYE && only_words(s, "false")) ||
		       (ends(s, "/events/rpc") && s->shape > HW_SHAPE_TEXT) ||
		       (role == HEARTBEAT && is_gen2_status(s, id.len));
	case HW_PRESET_ESPHOME:
		return role == GOODBYE && only_words(s, "offline");
	case HW_PRESET_HOMIE:
	case HW_PRESET_HOMIE5:
		return ends(s, "/$state");
	case HW_PRESET_ZIGBEE2MQTT:
		return role == HEARTBEAT && s->shape > HW_SHAPE_TEXT;
	default:
		return role == HEARTBEAT;
	}
}

/* Whether the filters of the preset begin with {id}. */
static bool is_rootless(int preset)
{
	return preset == HW_PRESET_SHELLY2 || preset == HW_PRESET_ESPHOME;
}

/* For each id with a topic that proves the convention, counts those topics. If no ESPHome device has such a topic,
 * because no message is retained, every id with a heartbeat topic counts. */
static int find_ids(struct hw_finding *f, const struct filters *filters, int preset, struct hw_keymap *ids)
{
	struct hw_keymap objects = {0};
	bool proven = false, esphome = preset == HW_PRESET_ESPHOME;
	struct hw_value id;
	int rc = 0;
	for (unsigned round = 0; round < 2 && !proven && rc == 0; round++) {
		for (size_t i = 0; i < f->n && rc == 0; i++) {
			const struct hw_seen_topic *s = hw_topics_at(f->topics, i);
			enum role role = f->state[i] == HW_TOPIC_FREE ? role_of(filters, s, &id) : NOTHING;
			if (role == NOTHING || role == IGNORED)
				continue;
			if (round == 0 ? !is_proof(preset, role, s, id) : !esphome || role != HEARTBEAT)
				continue;
			uint32_t *at = hw_keymap_put(round ? &objects : ids, hw_finding_id(f, id.text, id.len));
			rc = at ? 0 : -ENOMEM;
			if (at)
				++*at;
			proven |= round == 0;
		}
	}
	/* No node has a will. So ids with a few topics count as nodes, if there are at least two such ids. */
	for (size_t i = 0; i < objects.room && rc == 0 && objects.n > 1; i++)
		if (objects.slots[i].value && objects.slots[i].value <= OBJECTS_MAX) {
			uint32_t *at = hw_keymap_put(ids, objects.slots[i].key);
			rc = at ? 0 : -ENOMEM;
			if (at)
				*at = 1;
		}
	hw_keymap_fini(&objects);
	return rc;
}

static int take_topics(struct hw_finding *f, const struct filters *filters, int preset, const struct hw_keymap *ids)
{
	struct hw_find_group *g = &f->groups[f->n_groups];
	struct hw_value id;
	bool heard = false;
	for (size_t i = 0; i < f->n; i++) {
		const struct hw_seen_topic *s = hw_topics_at(f->topics, i);
		enum role role = f->state[i] == HW_TOPIC_FREE ? role_of(filters, s, &id) : NOTHING;
		if (role == NOTHING || role == IGNORED)
			continue;
		uint64_t hash = hw_finding_id(f, id.text, id.len);
		if (is_rootless(preset) && !hw_keymap_get(ids, hash))
			continue;
		if (id.len > 0 && !hw_id_valid(id.text, id.len))
			continue;
		if (s->live > 0 && hw_finding_place(f, i, (unsigned)f->n_groups, hash))
			return -ENOMEM;
		if (s->live == 0)
			f->state[i] = HW_TOPIC_BESIDE;
		f->group[i] = (uint16_t)(f->n_groups + 1);
		heard |= s->live > 0;
	}
	for (size_t i = 0; heard && i < f->n; i++) {
		const struct hw_seen_topic *s = hw_topics_at(f->topics, i);
		enum role role =
			f->group[i] == 0 || f->group[i] == f->n_groups + 1 ? role_of(filters, s, &id) : NOTHING;
		struct hw_find_device *d =
			role == GOODBYE ? hw_finding_device(f, (unsigned)f->n_groups, hw_finding_id(f, id.text, id.len))
					: NULL;
		if (role == IGNORED && f->state[i] == HW_TOPIC_FREE)
			f->state[i] = HW_TOPIC_BESIDE;
		if (d && !d->goodbye && s->words) {
			d->goodbye = true;
			g->goodbyes++;
		}
	}
	if (heard)
		f->n_groups++;
	else /* only retained messages: free for others */
		for (size_t i = 0; i < f->n; i++)
			if (f->group[i] == f->n_groups + 1) {
				f->group[i] = 0;
				f->state[i] = HW_TOPIC_FREE;
			}
	return 0;
}

static int find_preset(struct hw_finding *f, int preset)
{
	static struct filters filters; /* large; heartwheelctl has one thread */
	struct hw_keymap ids = {0};
	int rc = compile(&filters, preset);
	f->groups[f->n_groups] = (struct hw_find_group){.preset = preset, .deep = is_rootless(preset)};
	if (rc == 0)
		rc = find_ids(f, &filters, preset, &ids);
	if (rc == 0 && ids.n > 0)
		rc = take_topics(f, &filters, preset, &ids);
	hw_keymap_fini(&ids);
	release(&filters);
	return rc;
}

int hw_find_presets(struct hw_finding *f)
{
	/* homie5 comes before homie, because its topics are below the root of homie; the filters of the last two
	 * presets begin with the id */
	static const int order[] = {HW_PRESET_TASMOTA,         HW_PRESET_SHELLY,  HW_PRESET_ZIGBEE2MQTT,
	                            HW_PRESET_OPENMQTTGATEWAY, HW_PRESET_FRIGATE, HW_PRESET_HOMIE5,
	                            HW_PRESET_HOMIE,           HW_PRESET_SHELLY2, HW_PRESET_ESPHOME};
	_Static_assert(sizeof(order) / sizeof(order[0]) == PRESETS - 1, "each preset has its place");
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < sizeof(order) / sizeof(order[0]); i++)
		rc = find_preset(f, order[i]);
	return rc;
}

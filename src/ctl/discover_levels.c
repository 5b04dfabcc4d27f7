/* SPDX-License-Identifier: MIT */
/* See discover_levels.h. */
#include "ctl/discover_levels.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/fnv.h"
#include "heartwheel/utf8.h"

/* --- maps --------------------------------------------------------------------------------------------------------- */

static struct hw_keymap_slot *find_slot(const struct hw_keymap *m, uint64_t key)
{
	size_t k = (size_t)(key ^ key >> 29) & (m->room - 1);
	while (m->slots[k].value && m->slots[k].key != key)
		k = (k + 1) & (m->room - 1);
	return &m->slots[k];
}

static int grow(struct hw_keymap *m)
{
	struct hw_keymap wider = {.room = m->room ? m->room * 2 : 1024};
	wider.slots = calloc(wider.room, sizeof(*wider.slots));
	if (!wider.slots)
		return -ENOMEM;
	for (size_t i = 0; i < m->room; i++)
		if (m->slots[i].value)
			*find_slot(&wider, m->slots[i].key) = m->slots[i];
	free(m->slots);
	m->slots = wider.slots;
	m->room = wider.room;
	return 0;
}

uint32_t hw_keymap_get(const struct hw_keymap *m, uint64_t key)
{
	return m->room ? find_slot(m, key)->value : 0;
}

uint32_t *hw_keymap_put(struct hw_keymap *m, uint64_t key)
{
	if (m->n * 2 >= m->room && grow(m))
		return NULL;
	struct hw_keymap_slot *s = find_slot(m, key);
	if (s->value)
		return &s->value;
	if (m->limit && m->n == m->limit)
		return NULL;
	m->n++;
	s->key = key;
	return &s->value;
}

void hw_keymap_fini(struct hw_keymap *m)
{
	free(m->slots);
	*m = (struct hw_keymap){0};
}

/* --- what a level names ------------------------------------------------------------------------------------------- */

/* Measurements and states that devices publish on topics of their own. */
static const char *const metrics[] = {
	"temperature", "temp",        "humidity",   "pressure",    "power",        "energy",       "voltage",
	"current",     "state",       "status",     "battery",     "rssi",         "signal",       "uptime",
	"version",     "ip",          "co2",        "lux",         "illuminance",  "illumination", "motion",
	"occupancy",   "contact",     "brightness", "color",       "colour",       "mode",         "level",
	"flow",        "speed",       "position",   "count",       "counter",      "total",        "value",
	"values",      "data",        "info",       "online",      "lwt",          "availability", "available",
	"connected",   "alive",       "heartbeat",  "telemetry",   "event",        "events",       "log",
	"debug",       "error",       "errors",     "alarm",       "alarms",       "attributes",   "config",
	"frequency",   "weight",      "distance",   "noise",       "pm25",         "pm10",         "pm2_5",
	"voc",         "tvoc",        "dewpoint",   "altitude",    "latitude",     "longitude",    "location",
	"gps",         "linkquality", "memory",     "heap",        "load",         "cpu",          "disk",
	"mac",         "ssid",        "name",       "firmware",    "up",           "ping",         "meta",
	"announce",    "output",      "input",      "smoke",       "water_leak",   "leak",         "tamper",
	"rain",        "wind",        "uv",         "soil",        "moisture",     "vibration",    "torque",
	"rpm",         "reading",     "readings",   "measurement", "measurements", "setpoint",     NULL};

/* From `pending` on, these are the words of heartwheel-tasks and VDA 5050. */
static const char *const commands[] = {
	"set",    "get",      "cmd",      "cmnd",           "command", "commands", "request", "req",
	"rpc",    "control",  "downlink", "config",         "ota",     "update",   "pending", "ack",
	"failed", "complete", "order",    "instantactions", NULL};

static bool is_writable(const char *text, size_t len)
{
	uint32_t c;
	for (size_t i = 0, n; i < len; i += n) {
		n = hw_utf8_next((const unsigned char *)text + i, len - i, &c);
		if (n == 0 || hw_utf8_is_invisible(c) || (c < 0x80 && strchr("{}+#;", (int)c)))
			return false;
	}
	return len == 0 || (text[0] != ' ' && text[len - 1] != ' ');
}

static struct hw_level describe(const char *text, size_t len)
{
	struct hw_level l = {.text = text, .len = (uint16_t)len, .writable = is_writable(text, len)};
	l.index = len == 1 || len == 2;
	for (size_t i = 0; i < len; i++) {
		bool digit = isdigit((unsigned char)text[i]) != 0;
		l.digit |= digit;
		l.index &= digit;
	}
	l.metric = hw_word_is_one_of(text, len, metrics);
	l.command = hw_word_is_one_of(text, len, commands);
	return l;
}

/* --- all topics --------------------------------------------------------------------------------------------------- */

static uint32_t number_level(struct hw_levels *l, size_t *room, struct hw_keymap *known, uint64_t seed,
                             const char *text, size_t len)
{
	uint32_t *at = hw_keymap_put(known, hw_fnv64(HW_FNV64_BEGIN ^ seed, text, len) | 1);
	if (!at)
		return 0;
	if (*at)
		return *at;
	if (l->n + 1 >= *room) {
		size_t more = *room ? *room * 2 : 4096;
		struct hw_level *all = reallocarray(l->all, more, sizeof(*all));
		if (!all) {
			*at = 1; /* the caller gives up */
			return 0;
		}
		l->all = all;
		*room = more;
	}
	*at = (uint32_t)++l->n;
	l->all[*at] = describe(text, len);
	return *at;
}

static int number_topic(struct hw_levels *l, size_t *room, struct hw_keymap *known, uint64_t seed,
                        const struct hw_seen_topic *s, uint32_t *to)
{
	const char *at = s->text, *end = s->text + s->len;
	for (unsigned i = 0; i < s->levels; i++) {
		const char *slash = memchr(at, '/', (size_t)(end - at));
		size_t len = (size_t)((slash ? slash : end) - at);
		to[i] = number_level(l, room, known, seed, at, len);
		if (!to[i])
			return -ENOMEM;
		at += len + 1;
	}
	return 0;
}

int hw_levels_init(struct hw_levels *l, const struct hw_topics *t, uint64_t seed)
{
	struct hw_keymap known = {0};
	size_t n = hw_topics_n(t), total = 0, room = 0;
	int rc = 0;
	*l = (struct hw_levels){.first = malloc((n + 1) * sizeof(*l->first))};
	for (size_t i = 0; l->first && i < n; i++) {
		l->first[i] = (uint32_t)total;
		total += hw_topics_at(t, i)->levels;
	}
	l->tokens = malloc((total + 1) * sizeof(*l->tokens));
	if (!l->first || !l->tokens)
		rc = -ENOMEM;
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = number_topic(l, &room, &known, seed, hw_topics_at(t, i), l->tokens + l->first[i]);
	hw_keymap_fini(&known);
	if (rc)
		hw_levels_fini(l);
	return rc;
}

void hw_levels_fini(struct hw_levels *l)
{
	free(l->all);
	free(l->tokens);
	free(l->first);
	*l = (struct hw_levels){0};
}

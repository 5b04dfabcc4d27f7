/* SPDX-License-Identifier: MIT */
/* See discover_topics.h. An open hash table contains the indices of the topics. Texts and the log are in blocks, so
 * that they are never copied when they grow. */
#include "ctl/discover_topics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/fnv.h"

#define SLOTS       (1u << 18) /* more than twice HW_TOPICS_MAX */
#define TEXT_BLOCK  (1u << 18)
#define TEXT_BLOCKS (HW_TOPICS_BYTES / TEXT_BLOCK)
#define LOG_BLOCK   (1u << 16)
#define LOG_BLOCKS  (HW_TOPICS_LOG / LOG_BLOCK + 1)
#define PARSED      3 /* payloads of a topic that are read as JSON */

struct hw_topics {
	uint64_t seed;
	unsigned replays;
	uint32_t *slots; /* index + 1; 0: empty */
	struct hw_seen_topic *all;
	size_t n, room;
	char *texts[TEXT_BLOCKS];
	size_t n_texts, text_at;
	struct hw_topics_beat *log[LOG_BLOCKS];
	size_t n_log;
	char *paths[HW_TOPICS_PATHS + 1];
	unsigned n_paths;
	struct hw_topics_counts counts;
};

struct hw_topics *hw_topics_new(uint64_t seed)
{
	struct hw_topics *t = calloc(1, sizeof(*t));
	if (t)
		*t = (struct hw_topics){.seed = seed, .replays = 1, .slots = calloc(SLOTS, sizeof(uint32_t))};
	if (t && t->slots)
		return t;
	free(t);
	return NULL;
}

void hw_topics_free(struct hw_topics *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n_texts; i++)
		free(t->texts[i]);
	for (size_t i = 0; i < LOG_BLOCKS; i++)
		free(t->log[i]);
	for (unsigned i = 0; i < t->n_paths; i++)
		free(t->paths[i]);
	free(t->all);
	free(t->slots);
	free(t);
}

void hw_topics_replays(struct hw_topics *t, unsigned n)
{
	t->replays = n;
}

/* --- finding and adding a topic ----------------------------------------------------------------------------------- */

static uint32_t *find_slot(const struct hw_topics *t, const char *topic, size_t len)
{
	uint64_t h = hw_fnv64(HW_FNV64_BEGIN ^ t->seed, topic, len);
	for (size_t k = (h ^ h >> 32) & (SLOTS - 1);; k = (k + 1) & (SLOTS - 1)) {
		uint32_t i = t->slots[k];
		if (i == 0 || (t->all[i - 1].len == len && memcmp(t->all[i - 1].text, topic, len) == 0))
			return &t->slots[k];
	}
}

/* Returns a copy of the text with a NUL. Returns NULL if the limit is reached, or if there is no memory; *rc is then
 * -ENOMEM. */
static const char *keep_text(struct hw_topics *t, const char *text, size_t len, int *rc)
{
	if (t->n_texts == 0 || t->text_at + len + 1 > TEXT_BLOCK) {
		if (t->n_texts == TEXT_BLOCKS)
			return NULL;
		char *block = malloc(TEXT_BLOCK);
		if (!block) {
			*rc = -ENOMEM;
			return NULL;
		}
		t->texts[t->n_texts++] = block;
		t->text_at = 0;
	}
	char *copy = t->texts[t->n_texts - 1] + t->text_at;
	memcpy(copy, text, len);
	copy[len] = '\0';
	t->text_at += len + 1;
	return copy;
}

static size_t count_levels(const char *topic, size_t len)
{
	size_t n = 1;
	for (const char *s = topic; (s = memchr(s, '/', len - (size_t)(s - topic))); s++)
		n++;
	return n;
}

/* Adds a topic and returns it. Returns NULL if a limit is reached, or if there is no memory; *rc is then -ENOMEM. */
static struct hw_seen_topic *add_topic(struct hw_topics *t, uint32_t *slot, const char *topic, size_t len, int *rc)
{
	size_t levels = count_levels(topic, len);
	if (levels > HW_TOPIC_LEVELS) {
		t->counts.deep++;
		return NULL;
	}
	if (t->n == t->room && t->n < HW_TOPICS_MAX) {
		size_t room = t->room ? t->room * 2 : 1024;
		room = room < HW_TOPICS_MAX ? room : HW_TOPICS_MAX;
		struct hw_seen_topic *more = reallocarray(t->all, room, sizeof(*more));
		if (!more) {
			*rc = -ENOMEM;
			return NULL;
		}
		t->all = more;
		t->room = room;
	}
	const char *text = t->n < HW_TOPICS_MAX ? keep_text(t, topic, len, rc) : NULL;
	if (!text) {
		t->counts.many += *rc == 0;
		return NULL;
	}
	struct hw_seen_topic *s = &t->all[t->n++];
	*s = (struct hw_seen_topic){.text = text, .len = (uint16_t)len, .levels = (uint8_t)levels};
	*slot = (uint32_t)t->n;
	return s;
}

/* --- what a message shows ----------------------------------------------------------------------------------------- */

/* Returns the number of a path, which a new path gets here. Returns 0 if there are too many paths or there is no
 * memory: the field is then left out, without an error. */
static uint8_t number_path(struct hw_topics *t, const char *path)
{
	unsigned i = 0;
	while (i < t->n_paths && strcmp(t->paths[i], path) != 0)
		i++;
	if (i == HW_TOPICS_PATHS)
		return 0;
	if (i == t->n_paths && (t->paths[i] = strdup(path)))
		t->n_paths++;
	return i < t->n_paths ? (uint8_t)(i + 1) : 0;
}

static void take_payload(struct hw_topics *t, struct hw_seen_topic *s, const struct hw_payload_seen *p)
{
	s->shape = s->shape ? s->shape : p->shape;
	s->member = p->member ? p->member : s->member;
	s->member_words |= p->words;
	s->own_timeout |= p->own_timeout;
	for (unsigned k = 0; k < HW_FOUND_FIELDS; k++)
		if (p->path[k][0] && !s->path[k])
			s->path[k] = number_path(t, p->path[k]);
}

static bool is_offline(const struct hw_seen_topic *s, uint32_t word)
{
	int pair = hw_word_pair(word);
	const char *last = memrchr(s->text, '/', s->len);
	last = last ? last + 1 : s->text;
	return pair >= 0 && word == UINT32_C(2) << 2 * pair &&
	       (!hw_word_needs_hint(pair) || hw_word_is_hint(last, strlen(last)));
}

static int add_beat(struct hw_topics *t, uint32_t topic, uint32_t at_ms)
{
	size_t block = t->n_log / LOG_BLOCK;
	if (t->n_log == HW_TOPICS_LOG) {
		t->counts.past_log++;
		return 0;
	}
	if (!t->log[block] && !(t->log[block] = malloc(LOG_BLOCK * sizeof(*t->log[block]))))
		return -ENOMEM;
	t->log[block][t->n_log++ % LOG_BLOCK] = (struct hw_topics_beat){topic, at_ms};
	return 0;
}

static int add_message(struct hw_topics *t, struct hw_seen_topic *s, uint32_t word, bool retained, uint32_t at_ms)
{
	s->retained += retained;
	bool live = !retained || s->retained > t->replays;
	if (!live || (word == 0 && s->retained)) /* an empty message clears a retained one */
		return 0;
	s->flagged |= retained;
	if (is_offline(s, word))
		return 0;
	s->live++;
	return add_beat(t, (uint32_t)(s - t->all), at_ms);
}

int hw_topics_add(struct hw_topics *t, const char *topic, size_t len, const void *payload, size_t payload_len,
                  bool retained, uint32_t at_ms)
{
	struct hw_payload_seen p = {0};
	bool read = hw_payload_may_be_monitor(payload, payload_len);
	int rc = 0;
	t->counts.messages++;
	t->counts.retained += retained;
	if (read)
		hw_payload_see(payload, payload_len, &p);
	if (p.by_monitor) {
		t->counts.monitors++;
		return 0;
	}
	if (len == 0 || len > HW_TOPIC_KEPT) {
		t->counts.long_++;
		return 0;
	}
	uint32_t *slot = find_slot(t, topic, len);
	struct hw_seen_topic *s = *slot ? &t->all[*slot - 1] : add_topic(t, slot, topic, len, &rc);
	if (!s)
		return rc;
	uint32_t word = hw_word_of(payload, payload_len);
	s->words |= word;
	if (word == HW_WORD_OTHER ? s->parsed < PARSED : !s->shape) {
		s->parsed++;
		if (!read)
			hw_payload_see(payload, payload_len, &p);
		take_payload(t, s, &p);
	}
	return add_message(t, s, word, retained, at_ms);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

size_t hw_topics_n(const struct hw_topics *t)
{
	return t->n;
}

const struct hw_seen_topic *hw_topics_at(const struct hw_topics *t, size_t i)
{
	return &t->all[i];
}

const char *hw_topics_path(const struct hw_topics *t, unsigned number)
{
	return t->paths[number - 1];
}

size_t hw_topics_n_beats(const struct hw_topics *t)
{
	return t->n_log;
}

struct hw_topics_beat hw_topics_beat(const struct hw_topics *t, size_t i)
{
	return t->log[i / LOG_BLOCK][i % LOG_BLOCK];
}

struct hw_topics_counts hw_topics_counts(const struct hw_topics *t)
{
	return t->counts;
}

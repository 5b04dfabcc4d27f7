/* SPDX-License-Identifier: MIT */
/* See levels.h. A hash table in which a search visits a limited number of slots. If none of these slots is free, the
 * beginning of the id is counted in `rest`. */
#include "control/levels.h"

#include <stdlib.h>
#include <string.h>

#include "heartwheel/topic.h"
#include "http/json.h"

#define PLACES     4096 /* a power of two */
#define PROBES_MAX 16

struct level {
	uint64_t online, offline;
	uint8_t len;
	char text[HW_ID_MAX];
};

struct hw_levels {
	unsigned depth;
	size_t n;
	struct level all[HW_LEVELS_MAX];
	struct level rest;       /* counts the ids that have fewer levels, and the beginnings that found no free slot */
	uint16_t places[PLACES]; /* an index into `all` + 1; 0: free */
};

struct hw_levels *hw_levels_new(unsigned depth)
{
	struct hw_levels *l = calloc(1, sizeof(*l));
	if (l)
		l->depth = depth;
	return l;
}

void hw_levels_free(struct hw_levels *l)
{
	free(l);
}

/* Returns the length of the id's first `depth` levels with the separator after them; 0: the id has fewer levels. */
static size_t beginning(struct hw_id id, unsigned depth)
{
	for (size_t i = 0; i < id.len; i++)
		if (memchr("/.:_-", id.text[i], 5) && --depth == 0)
			return i + 1;
	return 0;
}

static struct level *find(struct hw_levels *l, const char *text, size_t len)
{
	uint32_t hash = 2166136261u;
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)text[i]) * 16777619u;
	for (uint32_t i = 0; i < PROBES_MAX; i++) {
		uint16_t *place = &l->places[(hash + i) % PLACES];
		struct level *is = *place ? &l->all[*place - 1] : NULL;
		if (is && is->len == len && memcmp(is->text, text, len) == 0)
			return is;
		if (is)
			continue;
		if (l->n == HW_LEVELS_MAX)
			break;
		is = &l->all[l->n++];
		*place = (uint16_t)l->n;
		is->len = (uint8_t)len;
		memcpy(is->text, text, len);
		return is;
	}
	return &l->rest;
}

void hw_levels_count(struct hw_levels *l, struct hw_id id, enum hw_state state)
{
	size_t len = beginning(id, l->depth);
	struct level *is = len > 0 ? find(l, id.text, len) : &l->rest;
	if (state == HW_STATE_ONLINE)
		is->online++;
	else
		is->offline++;
}

static int compare(const void *a, const void *b)
{
	const struct level *x = a, *y = b;
	if (x->offline != y->offline)
		return x->offline > y->offline ? -1 : 1;
	int c = memcmp(x->text, y->text, x->len < y->len ? x->len : y->len);
	return c != 0 ? c : (int)x->len - (int)y->len;
}

void hw_levels_write(struct hw_levels *l, struct hw_json *j)
{
	qsort(l->all, l->n, sizeof(*l->all), compare);
	hw_json_open_member(j, "levels", '[');
	for (size_t i = 0; i < l->n; i++) {
		hw_json_open(j, '{');
		hw_json_bytes(j, "prefix", l->all[i].text, l->all[i].len);
		hw_json_uint(j, "online", l->all[i].online);
		hw_json_uint(j, "offline", l->all[i].offline);
		hw_json_close(j, '}');
	}
	hw_json_close(j, ']');
	hw_json_open_member(j, "rest", '{');
	hw_json_uint(j, "online", l->rest.online);
	hw_json_uint(j, "offline", l->rest.offline);
	hw_json_close(j, '}');
}

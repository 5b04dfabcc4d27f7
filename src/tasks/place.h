/* SPDX-License-Identifier: MIT */
/* A place in a stream of Redis: the id of an entry, of which each follows on another. */
#ifndef HW_TASKS_PLACE_H
#define HW_TASKS_PLACE_H

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HW_PLACE_TEXT 48

struct hw_place {
	uint64_t ms, seq;
};

/* From `MS-SEQ`, or `MS` alone; false if it is no id. */
static inline bool hw_place_read(struct hw_place *p, const char *text, size_t len)
{
	char copy[HW_PLACE_TEXT], *end;
	if (len == 0 || len >= sizeof(copy) || text[0] < '0' || text[0] > '9')
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	errno = 0;
	*p = (struct hw_place){strtoull(copy, &end, 10), 0};
	if (*end == '-' && end[1] >= '0' && end[1] <= '9')
		p->seq = strtoull(end + 1, &end, 10);
	return *end == '\0' && errno == 0;
}

static inline const char *hw_place_text(struct hw_place p, char text[HW_PLACE_TEXT])
{
	snprintf(text, HW_PLACE_TEXT, "%" PRIu64 "-%" PRIu64, p.ms, p.seq);
	return text;
}

/* -1, 0 or 1. */
static inline int hw_place_cmp(struct hw_place a, struct hw_place b)
{
	if (a.ms != b.ms)
		return a.ms < b.ms ? -1 : 1;
	return a.seq < b.seq ? -1 : a.seq > b.seq;
}

/* Nothing can follow on the greatest id: a stream that has it takes no entry. */
#define HW_PLACE_GREATEST ((struct hw_place){UINT64_MAX, UINT64_MAX})

/* The greatest id's is itself: to go back to 0-0 would read the whole stream again. */
static inline struct hw_place hw_place_next(struct hw_place p)
{
	if (p.ms == UINT64_MAX && p.seq == UINT64_MAX)
		return p;
	return p.seq == UINT64_MAX ? (struct hw_place){p.ms + 1, 0} : (struct hw_place){p.ms, p.seq + 1};
}

static inline struct hw_place hw_place_before(struct hw_place p)
{
	if (p.seq == 0 && p.ms == 0)
		return p;
	return p.seq == 0 ? (struct hw_place){p.ms - 1, UINT64_MAX} : (struct hw_place){p.ms, p.seq - 1};
}

#endif

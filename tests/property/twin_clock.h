/* SPDX-License-Identifier: MIT */
/*
 * A naive seeing clock: a list of blind periods, which is updated from outside after every call. Header only; each test
 * program has its own copy, and defines MUST().
 */
#ifndef TWIN_CLOCK_H
#define TWIN_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/blind.h"

#define TWIN_SPANS 4096

struct twin_span {
	int64_t from, to, put_back;
};

struct twin_clock {
	struct twin_span blind[TWIN_SPANS];
	size_t n;
	bool open, must_be_lossy; /* a period lasts; it was given a lossy cause */
	int64_t from, put_back;   /* of it */
	int64_t lossy_end;        /* monotonic; INT64_MIN / 4: none yet */
	uint64_t periods;
};

static inline int64_t twin_seen(const struct twin_clock *c, int64_t at)
{
	int64_t blind = c->open && at > c->from ? at - c->from : 0;
	for (size_t k = 0; k < c->n; k++) {
		int64_t to = c->blind[k].to < at ? c->blind[k].to : at;
		blind += to > c->blind[k].from ? to - c->blind[k].from : 0;
	}
	return at - blind;
}

static inline void twin_close(struct twin_clock *c, const struct hw_blind *b)
{
	MUST(c->n < TWIN_SPANS);
	c->blind[c->n++] = (struct twin_span){c->from, b->until.ns, c->put_back};
	c->open = false;
	MUST(b->ended_lossy || !c->must_be_lossy);
	c->must_be_lossy = false;
	if (b->ended_lossy)
		c->lossy_end = b->until.ns;
}

/* After each call; whether a period has begun. */
static inline bool twin_watch(struct twin_clock *c, const struct hw_blind *b, int64_t now)
{
	bool begun = b->periods != c->periods;
	if (begun) {
		if (c->open)
			twin_close(c, b);
		MUST(b->periods == c->periods + 1);
		c->periods = b->periods;
		c->open = true;
		c->from = b->since.ns;
		c->put_back = now - b->since.ns;
	}
	if (c->open && b->since.ns < c->from) {
		c->put_back += c->from - b->since.ns;
		c->from = b->since.ns;
	}
	if (c->open && !b->active)
		twin_close(c, b);
	return begun;
}

/* How far the clock was ever put back: the wheel, which does not turn back, is late by as much. */
static inline int64_t twin_put_back(const struct twin_clock *c)
{
	int64_t sum = 0;
	for (size_t k = 0; k < c->n; k++)
		sum += c->blind[k].put_back;
	return sum;
}

#endif

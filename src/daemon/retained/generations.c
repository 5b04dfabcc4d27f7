/* SPDX-License-Identifier: MIT */
/* See generations.h. */
#include "generations.h"

void hw_generations_init(struct hw_generations *g)
{
	*g = (struct hw_generations){.p = UINT64_MAX, .start = {UINT64_MAX, UINT64_MAX}};
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

bool hw_generations_lower(struct hw_generations *g, uint64_t seq)
{
	if (seq >= g->p)
		return false;
	g->p = lesser(seq, lesser(g->start[0], g->start[1]));
	return true;
}

void hw_generations_found(struct hw_generations *g, uint64_t p)
{
	g->p = lesser(p, lesser(g->start[0], g->start[1]));
}

unsigned hw_generations_add(struct hw_generations *g, uint64_t seq, bool older)
{
	unsigned k = older ? !g->present : g->present;
	g->count[k]++;
	hw_generations_again(g, k, seq);
	return k;
}

void hw_generations_again(struct hw_generations *g, unsigned generation, uint64_t seq)
{
	g->start[generation] = lesser(g->start[generation], seq);
}

static void remove_from(struct hw_generations *g, unsigned generation)
{
	if (--g->count[generation] == 0)
		g->start[generation] = UINT64_MAX;
}

unsigned hw_generations_refused(struct hw_generations *g, unsigned generation)
{
	uint64_t start = g->start[g->present];
	remove_from(g, generation);
	g->count[g->present]++;
	g->start[g->present] = start;
	return g->present;
}

void hw_generations_settle(struct hw_generations *g, unsigned generation)
{
	remove_from(g, generation);
	g->settled = true;
}

bool hw_generations_waits(const struct hw_generations *g)
{
	return g->settled && g->count[!g->present] == 0;
}

bool hw_generations_turn(struct hw_generations *g, uint64_t wall_ms, int64_t now_ms)
{
	bool idle = g->count[g->present] == 0;
	uint64_t before = g->p, start = g->start[g->present];
	if (!hw_generations_waits(g) || (!idle && now_ms - g->began_ms < HW_GENERATION_MS))
		return false;
	/* UINT64_MAX: all devices of the generation were refused, or it has none. A status of this millisecond
	 * may be settled too, so P becomes the next millisecond. */
	g->p = start == UINT64_MAX ? wall_ms + 1 : start;
	if (!idle)
		g->present = !g->present;
	g->began_ms = now_ms;
	g->settled = false;
	return g->p != before;
}

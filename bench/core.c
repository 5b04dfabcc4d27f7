/* SPDX-License-Identifier: MIT */
/*
 * A heartbeat in the core, in rounds, so that other contenders can take turns with it:
 *
 *     core DEVICES HEARTBEATS
 *
 * Of devices in random order, each round says in ns for one heartbeat:
 *   find_one, find_batch          from id to the touched record, one by one, and a batch at a time
 *   messages_one, messages_batch  from topic and empty payload, as the daemon hands them over
 *   eager_one, eager_batch        the wheel that the lazy one replaces: each heartbeat finds its record by its id and
 *                                 links it where its new deadline is; in a batch its neighbours are prefetched, too
 */
#include <stdlib.h>

#include "common.h"
#include "fleet.h"

struct eager {
	struct hw_registry *registry;
	struct hw_wheel wheel;
};

struct core {
	struct fleet fleet;
	struct eager eager;
	struct fleet_chunk chunk;
	uint32_t order[FLEET_CHUNK];
	uint32_t n;
	uint64_t state;
	struct hw_seen now;
};

static void touch(struct hw_registry *r, uint32_t i, struct hw_seen now)
{
	if (i == HW_NIL)
		abort();
	hw_registry_base(r)[i].last_seen_ns = now.ns;
}

static void find_one(struct core *c, unsigned n)
{
	struct hw_registry *r = hw_monitor_registry(c->fleet.m);
	for (unsigned k = 0; k < n; k++)
		touch(r, hw_registry_find(r, c->chunk.ids[k].text, c->chunk.ids[k].len), c->now);
}

static void find_batch(struct core *c, unsigned n)
{
	struct hw_registry *r = hw_monitor_registry(c->fleet.m);
	uint32_t found[FLEET_BATCH];
	for (unsigned k = 0; k < n; k += FLEET_BATCH) {
		unsigned batch = n - k < FLEET_BATCH ? n - k : FLEET_BATCH;
		hw_registry_find_many(r, c->chunk.ids + k, batch, found);
		for (unsigned j = 0; j < batch; j++)
			touch(r, found[j], c->now);
	}
}

static void messages_one(struct core *c, unsigned n)
{
	fleet_beat(&c->fleet, &c->chunk, n, 1);
}

static void messages_batch(struct core *c, unsigned n)
{
	fleet_beat(&c->fleet, &c->chunk, n, FLEET_BATCH);
}

static void relink(struct eager *e, uint32_t i, struct hw_seen now)
{
	touch(e->registry, i, now);
	hw_wheel_del(&e->wheel, i);
	hw_wheel_add(&e->wheel, i, hw_tick_ceil(hw_seen_add(now, FLEET_TIMEOUT_MS * HW_NS_PER_MS)));
}

static void eager_one(struct core *c, unsigned n)
{
	struct hw_registry *r = c->eager.registry;
	for (unsigned k = 0; k < n; k++)
		relink(&c->eager, hw_registry_find(r, c->chunk.ids[k].text, c->chunk.ids[k].len), c->now);
}

static void prefetch(const struct hw_device *base, uint32_t i)
{
	if (i != HW_NIL)
		__builtin_prefetch(&base[i], 1);
}

static void eager_batch(struct core *c, unsigned n)
{
	struct hw_registry *r = c->eager.registry;
	const struct hw_device *base = hw_registry_base(r);
	uint32_t found[FLEET_BATCH];
	for (unsigned k = 0; k < n; k += FLEET_BATCH) {
		unsigned batch = n - k < FLEET_BATCH ? n - k : FLEET_BATCH;
		hw_registry_find_many(r, c->chunk.ids + k, batch, found);
		for (unsigned j = 0; j < batch; j++) {
			prefetch(base, base[found[j]].node.next);
			prefetch(base, base[found[j]].node.prev);
		}
		for (unsigned j = 0; j < batch; j++)
			relink(&c->eager, found[j], c->now);
	}
}

/* What a heartbeat costs, in ns. Writing the messages is not counted. In the eager wheel time passes as it does with
 * a heartbeat per device and interval. */
static double run(struct core *c, void (*some)(struct core *c, unsigned n), uint32_t beats)
{
	int64_t ns = 0;
	for (uint32_t done = 0; done < beats;) {
		unsigned n = beats - done < FLEET_CHUNK ? beats - done : FLEET_CHUNK;
		bench_draw(c->order, n, c->n, &c->state);
		fleet_write(&c->chunk, c->order, n);
		int64_t began = bench_ns();
		some(c, n);
		ns += bench_ns() - began;
		done += n;
		if (some == eager_one || some == eager_batch)
			c->now.ns += FLEET_INTERVAL_MS * HW_NS_PER_MS * n / c->n;
	}
	return (double)ns / beats;
}

static void make_eager(struct core *c, const uint32_t *order)
{
	static const uint8_t key[16] = {1};
	struct eager *e = &c->eager;
	uint32_t i;
	e->registry = hw_registry_new(key);
	if (!e->registry)
		abort();
	for (uint32_t k = 0; k < c->n; k++) {
		fleet_write(&c->chunk, &k, 1);
		if (hw_registry_add(e->registry, c->chunk.ids[0].text, FLEET_ID_LEN, &i))
			abort();
	}
	hw_wheel_init(&e->wheel, hw_registry_base(e->registry), sizeof(struct hw_device), hw_tick_floor(c->now));
	for (uint32_t k = 0; k < c->n; k++)
		hw_wheel_add(&e->wheel, order[k],
		             hw_tick_ceil(hw_seen_add(c->now, FLEET_TIMEOUT_MS * HW_NS_PER_MS * k / c->n)));
}

int main(int argc, char **argv)
{
	static struct core c;
	c.n = (uint32_t)bench_number(argc, argv, 1);
	uint32_t beats = (uint32_t)bench_number(argc, argv, 2);
	uint32_t *order = bench_order(c.n, 0);
	c.state = 1;
	fleet_make(&c.fleet);
	for (int k = 0; k < 2; k++) /* the second heartbeat of a device is not like those that follow, either */
		fleet_beat_all(&c.fleet, &c.chunk, order, c.n, 0);
	make_eager(&c, order);
	free(order);
	while (bench_round()) {
		bench_say("find_one", run(&c, find_one, beats));
		bench_say("find_batch", run(&c, find_batch, beats));
		bench_say("messages_one", run(&c, messages_one, beats));
		bench_say("messages_batch", run(&c, messages_batch, beats));
		bench_say("eager_one", run(&c, eager_one, beats));
		bench_say("eager_batch", run(&c, eager_batch, beats));
	}
	hw_registry_free(c.eager.registry);
	fleet_free(&c.fleet);
	return 0;
}

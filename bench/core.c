/* SPDX-License-Identifier: MIT */
/*
 * Measures a heartbeat in the core, in rounds, so that other contenders can take turns with it:
 *
 *     core DEVICES HEARTBEATS [learn]
 *
 * With `learn`, the devices are in a group that learns their timeouts. Each round prints these times in ns for one
 * heartbeat of a device in random order. Names with _one: the messages come one by one. Names with _batch: a batch at a
 * time.
 *
 *   empty_one, empty_batch: what the daemon does, from the topic and an empty payload to the record
 *   plain_one, plain_batch: the same, with a payload that is no JSON
 *   json_one, json_batch: the same, with a JSON object that contains the time
 *   find_batch: only the look-up of the id, which is a part of these
 *   eager_one, eager_batch: the eager wheel, which the lazy wheel replaces. Each heartbeat finds its record by the id
 *   (no topic, no payload) and moves it to the slot of its new deadline. In a batch, the neighbours in the slot are
 *   prefetched, too.
 *
 * And the time in ns for one device:
 *
 *   relink: the work that the lazy wheel postpones. Once in a timeout each entry is due. Because its device has sent a
 *   heartbeat in the meantime, the entry moves to another slot, and the core returns the refresh of its keys.
 */
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "fleet.h"

#define PLAIN "1700000000 ok"
#define JSON  "{\"time\":1700000000}"

/* The heartbeats of one round begin ROUND_MS after those of the round before, and are spread over BEATS_MS. */
#define ROUND_MS 26000
#define BEATS_MS 3000

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

/* Looks a batch of ids up as the daemon does: while the memory for one id is read, the next id is prefetched. */
static void find_some(const struct hw_registry *r, const struct hw_id *ids, unsigned n, uint32_t *found)
{
	uint32_t asked[FLEET_BATCH];
	for (unsigned k = 0; k < n; k++)
		asked[k] = hw_registry_prefetch(r, ids[k].text, ids[k].len);
	hw_registry_find_prefetched(r, ids, asked, n, found);
}

static void find_batch(struct core *c, unsigned n)
{
	struct hw_registry *r = hw_monitor_registry(c->fleet.m);
	uint32_t found[FLEET_BATCH];
	for (unsigned k = 0; k < n; k += FLEET_BATCH) {
		unsigned batch = n - k < FLEET_BATCH ? n - k : FLEET_BATCH;
		find_some(r, c->chunk.ids + k, batch, found);
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
		find_some(r, c->chunk.ids + k, batch, found);
		for (unsigned j = 0; j < batch; j++) {
			prefetch(base, base[found[j]].node.next);
			prefetch(base, base[found[j]].node.prev);
		}
		for (unsigned j = 0; j < batch; j++)
			relink(&c->eager, found[j], c->now);
	}
}

/* Returns the time of a heartbeat in ns, without the time that writing the messages takes. With the eager wheel,
 * virtual time passes as if each device sent one heartbeat in an interval. */
static double run(struct core *c, void (*some)(struct core *c, unsigned n), uint32_t beats, const char *payload)
{
	int64_t ns = 0;
	for (uint32_t done = 0; done < beats;) {
		unsigned n = beats - done < FLEET_CHUNK ? beats - done : FLEET_CHUNK;
		bench_draw(c->order, n, c->n, &c->state);
		fleet_write(&c->chunk, c->order, n, payload);
		int64_t began = bench_ns();
		some(c, n);
		ns += bench_ns() - began;
		done += n;
		if (some == eager_one || some == eager_batch)
			c->now.ns += FLEET_INTERVAL_MS * HW_NS_PER_MS * n / c->n;
	}
	return (double)ns / beats;
}

/* Measures how entries move: all devices have sent a heartbeat since their entries were linked, and then each entry
 * is due once. */
static double relink_all(struct core *c, const uint32_t *order)
{
	const struct hw_monitor_stats *stats = hw_monitor_stats(c->fleet.m);
	fleet_beat_all(&c->fleet, &c->chunk, order, c->n, BEATS_MS);
	uint64_t before = stats->relinks;
	int64_t ns = fleet_pass(&c->fleet, (ROUND_MS - BEATS_MS) * HW_NS_PER_MS);
	if (stats->relinks - before != c->n || c->fleet.offline > 0)
		abort();
	return (double)ns / c->n;
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
		fleet_write(&c->chunk, &k, 1, "");
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
	bool learns = argc > 3 && strcmp(argv[3], "learn") == 0;
	if (learns)
		fleet_make_learning(&c.fleet);
	else
		fleet_make(&c.fleet);
	for (int k = 0; k < 2; k++) /* a device's second heartbeat still takes another time than later ones */
		fleet_beat_all(&c.fleet, &c.chunk, order, c.n, k * BEATS_MS);
	fleet_pass(&c.fleet, (ROUND_MS - BEATS_MS) * HW_NS_PER_MS);
	make_eager(&c, order);
	while (bench_round()) {
		bench_say("empty_one", run(&c, messages_one, beats, ""));
		bench_say("empty_batch", run(&c, messages_batch, beats, ""));
		bench_say("plain_one", run(&c, messages_one, beats, PLAIN));
		bench_say("plain_batch", run(&c, messages_batch, beats, PLAIN));
		bench_say("json_one", run(&c, messages_one, beats, JSON));
		bench_say("json_batch", run(&c, messages_batch, beats, JSON));
		bench_say("find_batch", run(&c, find_batch, beats, ""));
		bench_say("eager_one", run(&c, eager_one, beats, ""));
		bench_say("eager_batch", run(&c, eager_batch, beats, ""));
		if (!learns) /* otherwise the timeouts are other ones */
			bench_say("relink", relink_all(&c, order));
	}
	free(order);
	hw_registry_free(c.eager.registry);
	fleet_free(&c.fleet);
	return 0;
}

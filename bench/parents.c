/* SPDX-License-Identifier: MIT */
/*
 * Measures devices behind gateways, in the core:
 *
 *     parents DEVICES CHILDREN_A_PARENT
 *
 * Prints, with the same topics without `parent` for comparison:
 *
 *   beat_without, beat_with: a heartbeat of a random device, in batches, in ns
 *   bytes: the memory of the index of parents, for each child
 *   take_s, turn_ms: all parents send a goodbye at once, with parent_death = take: how long it takes until all children
 *   are offline, and the longest turn of 2,048 units, with its outputs
 *   scan_ms: the longest turn in which a parent of all devices is found silent (child_proves)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common.h"
#include "core/monitor_priv.h"
#include "fleet.h"

#define TURN_BUDGET 2048
#define ROUNDS      7

struct rig {
	struct hw_monitor *m;
	struct hw_now now;
	uint32_t devices, per_parent;
	uint64_t taken, barriers[16];
	unsigned n_barriers;
	int64_t longest_ns;
};

static struct hw_monitor *make(struct hw_now now, bool parents, bool take)
{
	static const uint8_t key[16] = {1, 2, 3};
	static const char *const gateways[] = {"gw/{id}/up"}, *const with[] = {"plant/{gw}/{id}/up"},
				 *const without[] = {"plant/+/{id}/up"}, *const parent[] = {"gateway-{gw}"};
	const struct hw_group_spec groups[] = {{.name = "gateways",
	                                        .heartbeat = gateways,
	                                        .n_heartbeat = 1,
	                                        .timeout_ms = 60000,
	                                        .timeout_max_ms = 86400000},
	                                       {.name = "valves",
	                                        .heartbeat = parents ? with : without,
	                                        .n_heartbeat = 1,
	                                        .parents = parent,
	                                        .n_parents = parents,
	                                        .parent_death = take ? HW_PARENT_TAKE : HW_PARENT_NOTE,
	                                        .timeout_ms = 3600000,
	                                        .timeout_max_ms = 86400000}};
	const struct hw_monitor_conf conf = {.max_devices = 20000000,
	                                     .forget_after_ms = INT64_C(30) * 86400000,
	                                     .forget_once_after_ms = 86400000,
	                                     .barrier_slow_ms = 250,
	                                     .barrier_timeout_ms = 5000,
	                                     .readers = 1,
	                                     .ttl_factor = 3};
	struct hw_monitor *m = hw_monitor_new(&conf, groups, 2, key, now);
	if (!m)
		abort();
	hw_monitor_publisher(m, now, true);
	hw_monitor_link(m, now, 0, true);
	return m;
}

/* Returns the CPU time of this thread only, so that a busy machine does not make a turn longer. */
static int64_t cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * HW_NS_PER_S + t.tv_nsec;
}

/* Runs a turn of the loop. Returns whether there may be more to do. */
static bool turn(struct rig *r)
{
	struct hw_out out;
	unsigned budget = TURN_BUDGET;
	int64_t began = cpu_ns();
	hw_monitor_arrived(r->m, r->now, 0);
	for (unsigned k = 0; k < r->n_barriers; k++)
		hw_monitor_barrier(r->m, r->now, 0, r->barriers[k]);
	bool any = r->n_barriers > 0;
	r->n_barriers = 0;
	while (hw_monitor_next(r->m, r->now, &budget, &out)) {
		if (out.kind == HW_OUT_BARRIER && r->n_barriers < 16)
			r->barriers[r->n_barriers++] = out.barrier;
		r->taken += out.kind == HW_OUT_TRANSITION && out.transition.reason == HW_REASON_PARENT;
	}
	int64_t ns = cpu_ns() - began;
	r->longest_ns = ns > r->longest_ns ? ns : r->longest_ns;
	return any || budget == 0 || r->n_barriers > 0;
}

static void pass(struct rig *r, int64_t ns)
{
	int64_t until = r->now.mono.ns + ns;
	struct hw_mono due;
	for (;;) {
		while (turn(r))
			;
		if (!hw_monitor_due(r->m, r->now, &due) || due.ns > until)
			break;
		r->now.mono.ns = due.ns > r->now.mono.ns ? due.ns : r->now.mono.ns;
	}
	r->now.mono.ns = until;
}

static size_t write_topic(const struct rig *r, char text[64], uint32_t device)
{
	return (size_t)snprintf(text, 64, "plant/%06u/v%09u/up", device / r->per_parent, device);
}

/* Returns the time in ns for a heartbeat of each device of order[0 .. n). Writing the topics is not counted. */
static double beat(struct rig *r, const uint32_t *order, uint32_t n)
{
	static char topics[FLEET_BATCH][64];
	struct hw_message msg[FLEET_BATCH];
	int64_t ns = 0;
	for (uint32_t k = 0; k < n;) {
		uint32_t some = n - k < FLEET_BATCH ? n - k : FLEET_BATCH;
		for (uint32_t j = 0; j < some; j++)
			msg[j] = (struct hw_message){.topic = topics[j],
			                             .topic_len = write_topic(r, topics[j], order[k + j]),
			                             .payload = ""};
		int64_t began = bench_ns();
		hw_monitor_messages(r->m, r->now, msg, some);
		struct hw_out out;
		unsigned none = 0;
		while (hw_monitor_next(r->m, r->now, &none, &out))
			;
		ns += bench_ns() - began;
		k += some;
	}
	return (double)ns / n;
}

static void gateways(struct rig *r, const char *payload)
{
	char topic[64];
	for (uint32_t k = 0; k <= (r->devices - 1) / r->per_parent; k++) {
		struct hw_message msg = {.topic = topic,
		                         .topic_len = (size_t)snprintf(topic, sizeof(topic), "gw/gateway-%06u/up", k),
		                         .payload = payload,
		                         .payload_len = strlen(payload)};
		hw_monitor_messages(r->m, r->now, &msg, 1);
		turn(r);
	}
}

static struct rig start(uint32_t devices, uint32_t per_parent, bool parents, bool take)
{
	struct rig r = {.devices = devices,
	                .per_parent = per_parent,
	                .now = {.mono = {INT64_C(1000) * HW_NS_PER_S}, .wall_ms = INT64_C(1700000000000)}};
	r.m = make(r.now, parents, take);
	pass(&r, HW_NS_PER_S);
	return r;
}

int main(int argc, char **argv)
{
	uint32_t devices = (uint32_t)bench_number(argc, argv, 1), per_parent = (uint32_t)bench_number(argc, argv, 2);
	uint32_t *order = bench_order(devices, 0);
	struct rig r[2];
	for (int with = 0; with < 2; with++) {
		r[with] = start(devices, per_parent, with, with);
		gateways(&r[with], "");
		for (int k = 0; k < 3; k++)
			beat(&r[with], order, devices);
	}
	double best[2] = {1e9, 1e9};
	for (int k = 0; k < 2 * ROUNDS; k++) {
		double ns = beat(&r[k % 2], order, devices);
		best[k % 2] = ns < best[k % 2] ? ns : best[k % 2];
	}
	bench_say("beat_without", best[0]);
	bench_say("beat_with", best[1]);
	bench_say("bytes", (double)hw_parents_bytes(&r[1].m->parents) / devices);
	pass(&r[1], HW_NS_PER_S);
	r[1].longest_ns = 0;
	int64_t began = bench_ns();
	gateways(&r[1], "{\"online\":false}");
	pass(&r[1], 10 * HW_NS_PER_S);
	bench_say("take_s", (double)(bench_ns() - began) / 1e9);
	bench_say("taken", (double)r[1].taken);
	bench_say("turn_ms", (double)r[1].longest_ns / 1e6);
	for (int with = 0; with < 2; with++)
		hw_monitor_free(r[with].m);

	struct rig scan = start(devices, devices, true, true);
	gateways(&scan, "");
	beat(&scan, order, devices);
	pass(&scan, 50 * HW_NS_PER_S); /* After this time the children prove nothing, because their last heartbeats
	                                * are older than the parent's timeout. */
	gateways(&scan, "");
	pass(&scan, 30 * HW_NS_PER_S);
	scan.longest_ns = 0;
	pass(&scan, 40 * HW_NS_PER_S);
	bench_say("scan_ms", (double)scan.longest_ns / 1e6);
	bench_say("scan_taken", (double)scan.taken);
	hw_monitor_free(scan.m);
	free(order);
	return 0;
}

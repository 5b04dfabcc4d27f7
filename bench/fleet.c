/* SPDX-License-Identifier: MIT */
/* A fleet of devices in the core: see fleet.h. */
#include "fleet.h"

#include <stdlib.h>
#include <string.h>

#include "common.h"

#define TURN_BUDGET 2048 /* the daemon's */

static void take(struct fleet *f, const struct hw_out *out)
{
	if (out->kind == HW_OUT_BARRIER && f->n_barriers < sizeof(f->barriers) / sizeof(f->barriers[0]))
		f->barriers[f->n_barriers++] = out->barrier;
	else if (out->kind == HW_OUT_REFRESH)
		f->refreshes++;
	else if (out->kind == HW_OUT_TRANSITION)
		*(out->transition.state == HW_STATE_OFFLINE ? &f->offline : &f->online) += 1;
}

static void drain(struct fleet *f, unsigned budget)
{
	struct hw_out out;
	while (hw_monitor_next(f->m, f->now, &budget, &out))
		take(f, &out);
}

/* Lets the barriers that the monitor has sent return. Returns false if there were none. */
static bool answer(struct fleet *f)
{
	bool any = f->n_barriers > 0;
	hw_monitor_arrived(f->m, f->now, 0);
	for (unsigned k = 0; k < f->n_barriers; k++)
		hw_monitor_barrier(f->m, f->now, 0, f->barriers[k]);
	f->n_barriers = 0;
	return any;
}

static void make(struct fleet *f, const char *key_group, enum hw_learn learn)
{
	static const uint8_t key[16] = {0x68, 0x65, 0x61, 0x72, 0x74, 0x77, 0x68, 0x65, 0x65, 0x6c};
	static const char *const heartbeat[] = {"nodes/{id}/heartbeat", "nodes/{id}/status"};
	const struct hw_group_spec group = {.name = "default",
	                                    .heartbeat = heartbeat,
	                                    .n_heartbeat = 2,
	                                    .status = "nodes/{id}/status",
	                                    .timeout_ms = FLEET_TIMEOUT_MS,
	                                    .timeout_max_ms = 86400000,
	                                    .learn = learn,
	                                    .timeout_min_ms = FLEET_TIMEOUT_MS,
	                                    .mistakes = 1,
	                                    .mistakes_per_ms = INT64_C(30) * 86400000,
	                                    .learn_gaps = 2};
	const struct hw_monitor_conf conf = {.max_devices = 20000000,
	                                     .forget_after_ms = INT64_C(30) * 86400000,
	                                     .forget_once_after_ms = 86400000,
	                                     .barrier_slow_ms = 250,
	                                     .barrier_timeout_ms = 5000,
	                                     .readers = 1,
	                                     .ttl_factor = 3,
	                                     .key_group = key_group};
	*f = (struct fleet){.now = {.mono = {INT64_C(1000) * HW_NS_PER_S}, .wall_ms = INT64_C(1700000000000)}};
	f->m = hw_monitor_new(&conf, &group, 1, key, f->now);
	if (!f->m)
		abort();
	hw_monitor_publisher(f->m, f->now, true);
	hw_monitor_link(f->m, f->now, 0, true);
	if (key_group)
		hw_monitor_key_sight(f->m, f->now, true);
	fleet_pass(f, HW_NS_PER_S);
}

void fleet_make(struct fleet *f)
{
	make(f, NULL, HW_LEARN_NO);
}

void fleet_make_learning(struct fleet *f)
{
	make(f, NULL, HW_LEARN_YES);
}

void fleet_make_keyed(struct fleet *f)
{
	make(f, "default", HW_LEARN_NO);
}

void fleet_free(struct fleet *f)
{
	hw_monitor_free(f->m);
}

void fleet_write(struct fleet_chunk *c, const uint32_t *order, unsigned n, const char *payload)
{
	static const char before[] = "nodes/", after[] = "/heartbeat";
	size_t payload_len = strlen(payload);
	for (unsigned k = 0; k < n; k++) {
		char *id = c->topics[k] + sizeof(before) - 1;
		memcpy(c->topics[k], before, sizeof(before) - 1);
		bench_write_id(id, order[k]);
		memcpy(id + FLEET_ID_LEN, after, sizeof(after) - 1);
		c->ids[k] = (struct hw_id){id, FLEET_ID_LEN};
		c->messages[k] = (struct hw_message){.topic = c->topics[k],
		                                     .topic_len = sizeof(before) - 1 + FLEET_ID_LEN + sizeof(after) - 1,
		                                     .payload = payload,
		                                     .payload_len = payload_len};
	}
}

void fleet_drain(struct fleet *f)
{
	drain(f, 0);
}

void fleet_beat(struct fleet *f, struct fleet_chunk *c, unsigned n, unsigned batch)
{
	for (unsigned k = 0; k < n; k += batch) {
		hw_monitor_messages(f->m, f->now, c->messages + k, n - k < batch ? n - k : batch);
		drain(f, 0);
	}
}

void fleet_beat_all(struct fleet *f, struct fleet_chunk *c, const uint32_t *order, uint32_t n, int64_t over_ms)
{
	for (uint32_t k = 0; k < n; k += FLEET_CHUNK) {
		unsigned some = n - k < FLEET_CHUNK ? n - k : FLEET_CHUNK;
		fleet_write(c, order + k, some, "");
		fleet_beat(f, c, some, FLEET_BATCH);
		fleet_pass(f, over_ms * HW_NS_PER_MS * some / n);
	}
}

int64_t fleet_pass(struct fleet *f, int64_t ns)
{
	int64_t began = bench_ns(), until = f->now.mono.ns + ns;
	struct hw_mono due;
	for (;;) {
		do
			drain(f, TURN_BUDGET);
		while (answer(f));
		if (!hw_monitor_due(f->m, f->now, &due) || due.ns > until)
			break;
		int64_t step = due.ns - f->now.mono.ns;
		f->now.mono.ns += step;
		f->now.wall_ms += step / HW_NS_PER_MS;
	}
	f->now.wall_ms += (until - f->now.mono.ns) / HW_NS_PER_MS;
	f->now.mono.ns = until;
	hw_monitor_arrived(f->m, f->now, 0);
	return bench_ns() - began;
}

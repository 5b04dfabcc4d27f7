/* SPDX-License-Identifier: MIT */
/* The world of world.h as one of several nodes, which watches device "a" at first, and a stream that says what others
 * decide. */
#ifndef HW_TEST_GATE_WORLD_H
#define HW_TEST_GATE_WORLD_H

#include "world.h"

#define TIMEOUT (30 * S)

static struct world *w;
static unsigned p; /* the partition of device "a" */

static inline void setup(void)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec g = world_group("default", 30000);
	conf.several = true;
	p = hw_partition_of("a", 1);
	w = world_new(&conf, &g, 1);
	world_connect(w);
}

static inline void teardown(void)
{
	world_free(w);
}

static inline struct hw_event entry(const char *id, enum hw_state state, uint64_t seq)
{
	return (struct hw_event){.id = id,
	                         .id_len = strlen(id),
	                         .group = "default",
	                         .group_len = 7,
	                         .node = "other",
	                         .node_len = 5,
	                         .state = state,
	                         .reason = state == HW_STATE_ONLINE ? HW_REASON_HEARTBEAT : HW_REASON_TIMEOUT,
	                         .time_ms = w->now.wall_ms,
	                         .last_seen_ms = w->now.wall_ms - 1000,
	                         .seq = seq};
}

static inline void stream(const char *id, enum hw_state state, uint64_t seq)
{
	struct hw_event e = entry(id, state, seq);
	ck_assert_int_eq(hw_monitor_stream(w->m, w->now, &e), 0);
	world_drain(w);
}

static inline void role(enum hw_role to)
{
	hw_monitor_role(w->m, p, to, to == HW_ROLE_WATCHES ? 0 : 7);
	world_drain(w);
}

static inline void role_of_all(enum hw_role to)
{
	for (unsigned k = 0; k < HW_PARTITIONS; k++)
		hw_monitor_role(w->m, k, to, 7);
	world_drain(w);
}

static inline size_t transitions(enum hw_state state)
{
	return world_count(w, HW_OUT_TRANSITION, state);
}

static inline size_t outs_of_devices(void)
{
	return transitions(HW_STATE_ONLINE) + transitions(HW_STATE_OFFLINE) + transitions(HW_STATE_FORGOTTEN) +
	       world_count(w, HW_OUT_REFRESH, 0) + world_count(w, HW_OUT_STATUS, 0);
}

#endif

/* SPDX-License-Identifier: MIT */
/* The world of world.h with two groups whose monitor sends canaries, "default" and "slow", and a fleet of three in the
 * first. */
#ifndef HW_TEST_HEARING_WORLD_H
#define HW_TEST_HEARING_WORLD_H

#include "world.h"

/* What the monitor publishes on the topics of "default" itself: its canaries. */
#define HEARTBEAT "nodes/heartwheel-w/heartbeat"
#define STATUS    "nodes/heartwheel-w/status"

static struct hw_group_spec groups[2];
static const char *const fleet[] = {"a", "b", "c", NULL};

static inline struct hw_monitor_conf hearing_conf(void)
{
	struct hw_monitor_conf conf = world_conf();
	conf.node = "w";
	conf.canaries = true;
	return conf;
}

static inline struct world *hearing_world(int64_t timeout_ms, bool canary)
{
	static const char *const slow[] = {"slow/{id}/heartbeat"};
	struct hw_monitor_conf conf = hearing_conf();
	groups[0] = world_group("default", timeout_ms);
	groups[0].canary = canary;
	groups[1] = (struct hw_group_spec){.name = "slow",
	                                   .heartbeat = slow,
	                                   .n_heartbeat = 1,
	                                   .timeout_ms = timeout_ms,
	                                   .timeout_max_ms = 86400000,
	                                   .canary = canary};
	return world_new(&conf, groups, 2);
}

/* The store says that the fleet was online and seen just now. */
static inline void hearing_load_fleet(struct world *v)
{
	for (const char *const *id = fleet; *id; id++) {
		struct hw_stored s = {
			.id = *id, .id_len = 1, .state = HW_STATE_ONLINE, .last_seen_ms = v->now.wall_ms, .seq = 5};
		ck_assert_int_eq(hw_monitor_load(v->m, v->now, &s), 0);
	}
}

/* How many parts of the canaries the next run is to know. */
static inline unsigned canaries_had(const struct world *v)
{
	struct hw_canaries had;
	unsigned n = 0;
	hw_monitor_canaries(v->m, &had);
	for (int k = 0; k < HW_CANARY_PARTS; k++)
		n += had.part[k] != 0;
	return n;
}

/* The last of this kind that the monitor has said, or NULL. */
static inline const struct hw_out *last_in(const struct world *v, enum hw_out_kind kind)
{
	for (size_t k = v->n_log; k-- > 0;)
		if (v->log[k].kind == kind)
			return &v->log[k];
	return NULL;
}

#endif

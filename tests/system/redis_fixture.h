/* SPDX-License-Identifier: MIT */
/* Shared by the programs that test the Redis code: one rig, which is made for each test, and checks that most of
 * them need. */
#ifndef HW_TEST_REDIS_FIXTURE_H
#define HW_TEST_REDIS_FIXTURE_H

#include "redis_rig.h"

#define IDLE_MS 10000 /* the longest wait for a link that is up, or that has no work */
#define OURS    50    /* the epoch of each partition after fixture_node_up() */

extern struct rig *const g;

/* Fixtures of a test: a server and an object with its link up, the same as a node that owns each partition, or the
 * server alone; and the end of both. */
void fixture_up(void);
void fixture_node_up(void);
void fixture_serve(void);
void fixture_down(void);

/* Waits until nothing is pending and nothing is on its way. */
void settle(void);
/* A transition of a device is handed to the sink: heard, or silent for too long. */
struct hw_transition online(uint32_t i);
struct hw_transition offline(uint32_t i);
/* The entries of the event stream. */
long long events(void);
/* `n` devices d0, d1 ..., every third offline, their transitions handed to the sink. */
void make_devices(unsigned n);
/* Every record is in the store as it is here. */
void compare_all(void);

/* For rig_until(): the connection was lost, a trouble was reported, the store has the monitor's sight record. */
bool is_down(struct rig *rig);
bool is_troubled(struct rig *rig);
bool is_marked(struct rig *rig);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * For tests of the Redis code: a redis-server of the test's own on a free port, the tested object on a loop with a
 * monitor, and a plain connection that reads what is stored. Any error fails the test.
 */
#ifndef REDIS_RIG_H
#define REDIS_RIG_H

#include <check.h>
#include <event2/event.h>
#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "heartwheel/topic.h"
#include "redis/redis.h"

#define GROUP_PLAIN 0 /* 30 s, publishes */
#define GROUP_FAST  1 /* 1 s, publishes */
#define GROUP_MUTE  2 /* 30 s, publishes nothing */
#define GROUP_SLOW  3 /* 10 years, publishes */

struct rig {
	char dir[128], socket[160];
	int port;
	pid_t server;
	redisContext *look; /* the test's own connection, db 0 */

	struct event_base *base;
	struct event *tick;
	struct hw_monitor *m;
	struct hw_redis *r;
	struct hw_redis_conf conf; /* change it before rig_start() */
	bool marking;              /* call hw_redis_seen() on each tick */
	bool blind;
	bool several; /* a node among several, which owns the partitions that have an epoch */
	uint64_t epoch[HW_PARTITIONS];

	unsigned sent_again, lacking; /* transitions, after the last reconnect */
	unsigned ups, downs, emptied, troubles;
	char why[512], trouble[512];
	bool loaded;
	unsigned fenced, fenced_partition; /* calls; of the last one */
	struct hw_fencing_token fenced_by;
	unsigned dropped; /* calls; of the last one */
	struct hw_ref dropped_device;
	uint64_t dropped_seq;
	uint64_t devices, unusable;
	unsigned outbox, outbox_statuses; /* entries handed out at load; those of an earlier version */
	unsigned published_answers;
	uint64_t published[HW_PARTITIONS]; /* the last answer */
	char outbox_last[512];
	uint64_t confirmed; /* calls */
	unsigned newer;
	unsigned told, unlooked; /* calls of on_device() and of on_read_device_failed() */
	uint64_t newer_seq;
	int64_t down_ms; /* of the last device loaded */
	unsigned events, pages;
	struct hw_stream_id event_at; /* of the last transition written, and that transition */
	struct hw_transition event;
	struct hw_event_page page; /* the last one; its events below */
	struct hw_event page_events[HW_EVENTS_PAGE];
	char page_ids[HW_EVENTS_PAGE][HW_ID_MAX + 1], page_group[64]; /* of the last of them */
};

/* Only the server; then the object. `extra`: further arguments of redis-server, up to a NULL; may be NULL. */
void rig_serve(struct rig *g, const char *const *extra);
void rig_start(struct rig *g);
void rig_stop(struct rig *g);
/* Everything, with the link up. */
void rig_up(struct rig *g);
/* The server ends, and starts again on the same port. */
void rig_kill_server(struct rig *g);
void rig_serve_again(struct rig *g, const char *const *extra);
/* Starts a Sentinel, which knows no master yet and makes no failover by itself. The test sends it commands through
 * to->look. */
void rig_guard(struct rig *to);

/* Turns the loop until `done` says so; fails the test after `ms`, but not before PATIENCE_MS. */
#define PATIENCE_MS 30000 /* that anything may take on a busy machine */
void rig_until(struct rig *g, bool (*done)(struct rig *g), int ms);
bool rig_is_up(struct rig *g);
bool rig_is_idle(struct rig *g);
bool rig_is_loaded(struct rig *g);

/* A reply, which the caller frees; the test fails if the connection does. */
redisReply *rig_ask(struct rig *g, const char *format, ...);
/* The command must not give an error. */
void rig_do(struct rig *g, const char *format, ...);
long long rig_number(struct rig *g, const char *format, ...);
/* What a string reply must be; NULL: nil. */
void rig_expect(struct rig *g, const char *want, const char *format, ...);

/* A device that has been heard, in HW_STATE_ONLINE with a seq, its transition not handed to the sink. */
uint32_t rig_device(struct rig *g, uint16_t group, const char *id);
/* Changes the record as the monitor would and returns the transition. */
struct hw_transition rig_change(struct rig *g, uint32_t index, enum hw_state state, enum hw_reason reason);
/* The same, handed to the sink. */
struct hw_transition rig_transit(struct rig *g, uint32_t index, enum hw_state state, enum hw_reason reason);
struct hw_device *rig_at(struct rig *g, uint32_t index);

struct hw_now rig_now(void);
/* The seed of random tests, from HW_SEED or the clock; printed. */
uint64_t rig_seed(void);
/* Runs the suite, with a directory that holds all servers' directories. The program's exit status. */
int rig_run(Suite *suite);

#endif

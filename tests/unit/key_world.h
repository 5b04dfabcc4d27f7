/* SPDX-License-Identifier: MIT */
/*
 * The world of world.h with a store of keys that have times to live, and which answers the looks that the monitor asks
 * for. Each test gets a new world, `w`.
 */
#ifndef HW_TEST_KEY_WORLD_H
#define HW_TEST_KEY_WORLD_H

#include "world.h"

#define KEYS    64
#define STEP_NS (2 * MS) /* of pass() */
#define TICK    (S / 31 + 1)
#define SOON    (TICK + 2 * STEP_NS + 4 * MS) /* the last is the margin of the time to live */

struct key {
	char id[16];
	bool there;
	int64_t until_ns; /* monotonic; INT64_MAX: no TTL */
	int64_t written_ns;
};

extern struct world *w;
extern struct key store[KEYS];
extern unsigned checks; /* looks that the monitor asked for */

/* A world with one group, with a broker or without one, whose keys can be seen. */
void key_begin(const struct hw_group_spec *g, bool connect);
/* Fixture of a test: the same with a timeout of 30 s and a broker; and its end. */
void key_set_up(void);
void key_tear_down(void);

/* The place of a device's key in `store`. */
int find(const char *id);
/* Gives the monitor the result of a look at the key, with this reason. */
void look(const char *id, unsigned why);
/* Writes a key: put_quietly() without a notification to the monitor, put() with one. `ttl_ms` below 0: without a time
 * to live. */
void put_quietly(const char *id, int64_t ttl_ms);
void put(const char *id, int64_t ttl_ms);
/* Removes a key, and notifies the monitor of it, with this reason. */
void drop(const char *id, unsigned why);

/* Time passes, and the requested checks of keys are answered. */
void pass(int64_t ns);

/* How many transitions to this state there were. */
size_t transitions(enum hw_state s);
/* When the last transition was, which must be this one; and one to offline by its key within these moments. */
int64_t last_ns(enum hw_state s, enum hw_reason r);
void offline_between(int64_t from, int64_t to);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The names of all keys in Redis. No other file builds one. With the prefix `device:` they are:
 *
 * - of each device: device:connected:ID, device:disconnected:ID, device:state:ID
 * - shared: device:offline, device:outbox, device:events, device:sight, device:watched,
 *   device:parent_heard, device:groups, device:expected, device:unseen, device:inventory
 * - of this monitor: device:monitor:NODE_ID
 * - of standalone monitors: device:monitors
 * - a channel of this run: device:self:NODE_ID:RUN
 * - of a cluster: device:nodes, device:owners, device:nodes_left
 */
#ifndef HW_REDIS_KEYS_H
#define HW_REDIS_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hw_device_key { HW_KEY_CONNECTED, HW_KEY_DISCONNECTED, HW_KEY_STATE };

struct hw_keys {
	char *prefix;
	size_t prefix_len;
	char *offline, *outbox, *published, *events, *sight, *watched, *monitor, *monitors; /* whole names */
	char *state_match;     /* pattern for SCAN that matches all state hashes; the prefix is escaped */
	char *connected_match; /* ... of all connected keys */
	char *self_match;      /* the pattern of the channels device:self:* of all runs */
	char *parent_heard, *groups;
	char *expected, *unseen, *inventory;
	char *nodes, *owners, *nodes_left;
	/* By enum hw_device_key: the key of a device that cannot exist, because no id contains '+'. With these keys,
	 * renew.lua tries whether this node may write devices. */
	char *no_device[3];
};

/* Initialises the caller's storage; the strings are copied. On -ENOMEM nothing is left to free. */
int hw_keys_init(struct hw_keys *k, const char *prefix, const char *node_id);
void hw_keys_fini(struct hw_keys *k);

/* Returns the largest number of bytes that hw_keys_device() writes. */
size_t hw_keys_device_max(const struct hw_keys *k);

/* Writes the name of a device's key, without a NUL, and returns its length. `id_len` is at most HW_ID_MAX. */
size_t hw_keys_device(const struct hw_keys *k, enum hw_device_key key, const char *id, size_t id_len, char *buf);

/* Whether `key` is the name of a state hash. If so, *id points to the id within `key`, and *id_len may be 0. */
bool hw_keys_state_id(const struct hw_keys *k, const char *key, size_t len, const char **id, size_t *id_len);

/* Like hw_keys_state_id(), for a connected or disconnected key. Sets *which to the kind of the key. */
bool hw_keys_device_id(const struct hw_keys *k, const char *key, size_t len, enum hw_device_key *which, const char **id,
                       size_t *id_len);

/* Returns the name of the channel device:self:NODE_ID:RUN, on which this run's scripts announce their own writes. The
 * name is in heap memory; NULL if there is no memory. */
char *hw_keys_self(const char *prefix, const char *node_id, uint64_t run_id);

#endif

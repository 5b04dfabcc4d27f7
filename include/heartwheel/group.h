/* SPDX-License-Identifier: MIT */
/*
 * Groups: which topics' devices share a timeout and a status topic. The table only grows, because devices name their
 * group by its place in it: a reload that drops a group retires it (it takes no new device, those it has keep it), one
 * that brings it back revives it.
 */
#ifndef HEARTWHEEL_GROUP_H
#define HEARTWHEEL_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/topic.h"

#define HW_GROUPS_MAX 4096 /* 12 bits in a record */

/* How the payloads of a group's heartbeats are read. */
enum hw_format {
	HW_FORMAT_JSON, /* hw_payload_decode() */
	HW_FORMAT_HOMIE /* on topics whose last level is $state hw_payload_homie(); any other is a plain heartbeat */
};

/* What the configuration says of a group. All strings are borrowed by hw_groups_set(), which copies them. */
struct hw_group_spec {
	const char *name;
	const char *const *heartbeat; /* templates: with {id}, or without in a group of batches */
	size_t n_heartbeat;
	const char *status;    /* template without wildcards; NULL or "": publish nowhere */
	const char *id_prefix; /* NULL or "": none */
	int64_t timeout_ms;
	int64_t timeout_max_ms;
	int64_t goodbye_delay_ms;
	int64_t max_age_ms;        /* 0: off */
	unsigned max_offline_rate; /* per second; 0: off */
	enum hw_format format;
	bool batch; /* a message is an array of heartbeats */
};

struct hw_group {
	char *name;
	struct hw_topic *heartbeat;
	size_t n_heartbeat;
	struct hw_topic status; /* status.filter == NULL: none */
	char *id_prefix;        /* never NULL */
	size_t id_prefix_len;
	int64_t timeout_ms, timeout_max_ms, goodbye_delay_ms, max_age_ms;
	unsigned max_offline_rate;
	enum hw_format format;
	bool batch;
	unsigned rank; /* its place in the configuration file: the lowest that matches takes a device */
	bool retired;
};

struct hw_groups {
	struct hw_group **all; /* owned, by index; groups never move */
	size_t n;
	uint16_t *order; /* indices of those not retired, in the order of the file */
	size_t n_order;
};

void hw_groups_init(struct hw_groups *g);
void hw_groups_fini(struct hw_groups *g);

/*
 * Makes the table say what `specs` say, in their order. Returns 0; or -EINVAL (a template does not compile, two names
 * are the same), -ENOSPC (more than HW_GROUPS_MAX ever seen) or -ENOMEM with the table as it was. A struct hw_group
 * stays where it is, but pointers into it (its name, its templates) are valid only until the next call.
 */
int hw_groups_set(struct hw_groups *g, const struct hw_group_spec *specs, size_t n);

/* The index of the group of that name, retired ones included, or -1. */
int hw_groups_find(const struct hw_groups *g, const char *name);

enum hw_match {
	HW_MATCH_NONE,
	HW_MATCH_HEARTBEAT,
	HW_MATCH_CLEARING, /* an empty payload on the group's status topic: somebody clears a retained status */
	HW_MATCH_STATUS    /* the group's status topic, on which no group hears heartbeats */
};

/*
 * Which group takes a topic: the first in the file of which a heartbeat template matches. An empty payload on the
 * status topic of any group, also a retired one and whether or not heartbeats are expected there, is that group's
 * clearing. `*id` (not NUL-terminated, without the group's id_prefix, possibly empty, as it is for a batch) points into
 * `topic`.
 */
enum hw_match hw_groups_match(const struct hw_groups *g, const char *topic, size_t len, bool empty_payload,
                              uint16_t *group, const char **id, size_t *id_len);

/*
 * Writes the topic of a device's retained status, with a NUL; `id` is the device's (with the group's id_prefix, which
 * is taken off; an id without it, from before a reload, is used as it is). Returns its length, 0 if the group publishes
 * none, or -ENAMETOOLONG.
 */
int hw_group_status_topic(const struct hw_group *g, const char *id, size_t id_len, char *buf, size_t cap);

#endif

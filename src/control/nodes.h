/* SPDX-License-Identifier: MIT */
/*
 * Several nodes, as the control API shows them: members, lost nodes, and how many partitions each owns. The daemon
 * fills the struct on request with what this node knows, which may be outdated.
 */
#ifndef HW_CONTROL_NODES_H
#define HW_CONTROL_NODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct evbuffer;

#define HW_CONTROL_NODES_MAX 40 /* members, and some lost nodes */

/* Strings are borrowed for the call. */
struct hw_control_node {
	const char *node;
	bool self;
	bool lost;         /* was a member and left without announcing it */
	const char *state; /* the node's state: "joining", "ready", "blind", "leaving", "lapsed" or "lost" */
	const char *json;  /* the node's own data, a JSON object; not trusted */
	int64_t since_ms;  /* wall clock: member, or lost, since then */
	unsigned owns;     /* number of partitions */
};

struct hw_control_nodes {
	const char *mode, *name; /* [cluster] */
	int64_t lease_ms;
	struct hw_control_node at[HW_CONTROL_NODES_MAX];
	size_t n;
	bool member, lapsed;         /* this node */
	int64_t as_of_ms;            /* wall clock of this node's last renewal, if its entry has lapsed; otherwise 0 */
	bool denied;                 /* may not read the event stream */
	bool denied_writes;          /* Redis' ACL denies a write that an owner needs */
	const char *refused;         /* Redis' error for the last renewal; NULL: none */
	bool doubted;                /* too few Sentinels confirm its Redis as master */
	unsigned sentinels, confirm; /* number of Sentinels, and of those that confirm */
	unsigned partitions, owned, unowned;
	unsigned orphans;                            /* unowned for longer than a handover takes */
	uint64_t takeovers_clean, takeovers_unclean; /* in partitions */
	uint64_t claims, releases, evictions, fenced_redis, fenced_broker, peer_messages;
	int64_t stream_lag_ms;
	double takeover_s; /* the last takeover; 0: none */
};

/* The entry of this node; NULL: none. */
const struct hw_control_node *hw_control_nodes_self(const struct hw_control_nodes *n);

/*
 * The differences between the data of two nodes, as bits. hw_control_difference(i) returns the name of bit i; NULL
 * after the last. With a difference of HW_NODES_APART the nodes cannot watch one fleet.
 */
enum {
	HW_DIFFERS_NAME = 1,
	HW_DIFFERS_MODE = 2,
	HW_DIFFERS_PROTOCOL = 4,
	HW_DIFFERS_VERSION = 8,
	HW_DIFFERS_CONFIG = 16
};
#define HW_NODES_APART (HW_DIFFERS_NAME | HW_DIFFERS_MODE | HW_DIFFERS_PROTOCOL)
unsigned hw_control_differs(const char *ours, const char *theirs);
const char *hw_control_difference(unsigned i);

/* Writes the metrics of several nodes. */
void hw_control_nodes_metrics(struct evbuffer *b, const struct hw_control_nodes *n, bool stands_by);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Several nodes, as the control API shows them: who lives, who is gone, who owns how much. The daemon fills this in
 * when it is asked for; what stands in it is its own sight, not the truth.
 */
#ifndef HW_CONTROL_NODES_H
#define HW_CONTROL_NODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct evbuffer;

#define HW_CONTROL_NODES_MAX 40 /* members, and some that are gone */

/* Strings are borrowed for the call. */
struct hw_control_node {
	const char *node;
	bool self;
	bool lost;         /* it was a member, and is gone without having said so */
	const char *state; /* "joining", "ready", "blind", "leaving", "lapsed" or "lost" */
	const char *json;  /* what it says of itself, an object; it is not to be trusted */
	int64_t since_ms;  /* wall clock: a member, or lost, since then */
	unsigned owns;     /* partitions */
};

struct hw_control_nodes {
	const char *mode, *name; /* [cluster] */
	int64_t lease_ms;
	struct hw_control_node at[HW_CONTROL_NODES_MAX];
	size_t n;
	bool member, lapsed;         /* this node */
	int64_t as_of_ms;            /* it has lapsed: wall clock of its last renewal; 0: it has not */
	bool denied;                 /* it may not read the event stream */
	bool doubted;                /* too few Sentinels confirm that its Redis is the master */
	unsigned sentinels, confirm; /* how many there are, and how many confirm it */
	unsigned partitions, owned, unowned;
	unsigned orphans;                            /* of those that are unowned: for longer than a handover takes */
	uint64_t takeovers_clean, takeovers_unclean; /* partitions */
	uint64_t claims, releases, evictions, fenced_redis, fenced_broker, peer_messages;
	int64_t stream_lag_ms;
	double takeover_s; /* the last one; 0: there was none */
};

/* The node itself among them; NULL: it is not there. */
const struct hw_control_node *hw_control_nodes_self(const struct hw_control_nodes *n);

/*
 * In what two nodes differ, by what both say of themselves: bits, whose names hw_control_difference() gives, NULL
 * behind the last. Those of HW_NODES_APART keep them from being members of one fleet.
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

/* The families of metrics that several nodes have. */
void hw_control_nodes_metrics(struct evbuffer *b, const struct hw_control_nodes *n, bool stands_by);

#endif

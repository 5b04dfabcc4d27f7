/* SPDX-License-Identifier: MIT */
/*
 * The members as this node sees them: which nodes are members, and which of these are silent. A member increases a
 * count in Redis to show that it runs. No clock is compared with another machine's.
 *
 * A member is silent if its run id and count stay the same for a whole lease. Only an answer of Redis can show this,
 * and answers must come at least every two renewals. After a longer pause between answers, silence counts from zero,
 * because a node that did not read Redis has observed no silence. If a member has a longer lease, its lease counts,
 * because it renews less often. Otherwise it would be removed again and again while a change of the lease spreads to
 * all nodes.
 *
 * A removed member may still be connected to the broker, so its name stays known. Redis keeps the names of removed
 * members for an hour, and returns them to a node that has just started.
 */
#ifndef HW_NODES_MEMBERS_H
#define HW_NODES_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/time.h"
#include "nodes/fencing_token.h"

#define HW_MEMBERS_MAX      32
#define HW_FORMER_MAX       32
#define HW_LEASE_RENEWALS   5 /* renewals per lease */
#define HW_RENEWALS_PAUSE   2
#define HW_RENEWALS_SETTLED 2 /* a member is given partitions after it has renewed its entry this often as ready */

/* A member's entry in Redis; the texts are borrowed. */
struct hw_member_entry {
	const char *node;
	uint64_t run;   /* run id */
	uint64_t count; /* number of its renewals */
	bool ready;
	int64_t lease_ns;            /* the lease by which it renews; 0: not stated */
	struct hw_partitions unable; /* partitions in which this member cannot judge every device; others are
	                              * preferred there */
};

struct hw_member {
	char node[HW_NODE_ID_MAX + 1];
	uint64_t run, count;
	bool ready;
	int64_t lease_ns;            /* the longer one of its lease and this node's */
	uint64_t ready_from;         /* the count at which it became ready */
	struct hw_mono since;        /* since when run and count are the same */
	struct hw_partitions unable; /* as in struct hw_member_entry */
	bool grew;                   /* its count grew between two answers of the same Redis */
	bool there;                  /* the present answer contains it */
};

struct hw_members {
	struct hw_member all[HW_MEMBERS_MAX];
	size_t n;
	int64_t lease_ns;
	struct hw_mono answered; /* when the last answer came */
	bool continuous;         /* the last answer came without a pause */
	uint64_t refused;        /* members beyond HW_MEMBERS_MAX; this node neither waits for them nor removes them */

	char former[HW_FORMER_MAX][HW_NODE_ID_MAX + 1]; /* a ring of the names of former members */
	size_t former_at;
	uint64_t names; /* number of names that were new */
};

void hw_members_init(struct hw_members *m, int64_t lease_ns);

/* Applies the members in an answer. Refuses a member whose name is longer than HW_NODE_ID_MAX, and members beyond
 * HW_MEMBERS_MAX. */
void hw_members_update(struct hw_members *m, struct hw_mono now, const struct hw_member_entry *entries, size_t n);

/* Called when the next answer comes from another Redis, or over another connection. Silence counts from that answer
 * on. */
void hw_members_forget(struct hw_members *m);

/* Whether a member is silent, as of the last answer. */
bool hw_member_is_silent(const struct hw_members *m, const struct hw_member *member);
bool hw_member_is_settled(const struct hw_member *member);

const struct hw_member *hw_members_find(const struct hw_members *m, const char *node);

/* Called with the nodes that have left or were removed, as Redis reports them. */
void hw_members_left(struct hw_members *m, const char *const *names, size_t n);
/* Whether a node is or was a member. Only the last HW_FORMER_MAX former members are known. */
bool hw_members_knows(const struct hw_members *m, const char *node);

#endif

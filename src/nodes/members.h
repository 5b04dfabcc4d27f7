/* SPDX-License-Identifier: MIT */
/*
 * The members, as a node sees them (10.3): who they are, and who is silent. A member proves itself by a count that
 * grows in Redis; nobody's clock is compared with another's.
 *
 * Silent: its run and count were the same over a whole lease, in answers that came without a pause of more than two
 * renewals. Who could not look himself has seen no silence, so after a pause all silence counts anew. It is found in an
 * answer, never between two. A node whose lease is a longer one renews less often: of the two the longer one counts, or
 * it would be removed again and again for as long as a change of lease is on its way from node to node.
 *
 * A member that is removed may still be connected to the broker. So its name stays known; Redis keeps such names for an
 * hour, and tells them to a node that has just started.
 */
#ifndef HW_NODES_MEMBERS_H
#define HW_NODES_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/time.h"
#include "nodes/token.h"

#define HW_MEMBERS_MAX      32
#define HW_FORMER_MAX       32
#define HW_LEASE_RENEWALS   5 /* a lease is so many renewals */
#define HW_RENEWALS_PAUSE   2
#define HW_RENEWALS_SETTLED 2 /* who was ready for so many is handed partitions */

/* A member as Redis has it; the texts are borrowed. */
struct hw_member_entry {
	const char *node;
	uint64_t run;   /* a random mark of this start of it */
	uint64_t count; /* its renewals so far */
	bool ready;
	int64_t lease_ns;            /* its own, by which it renews; 0: it does not say */
	struct hw_partitions unable; /* it cannot judge every device of these: other nodes go before it */
};

struct hw_member {
	char node[HW_NODE_ID_MAX + 1];
	uint64_t run, count;
	bool ready;
	int64_t lease_ns;            /* of it and of ours the longer one */
	uint64_t ready_from;         /* the count at which it became ready */
	struct hw_mono since;        /* run and count are the same since then */
	struct hw_partitions unable; /* as in struct hw_member_entry */
	bool grew;                   /* its count grew between two answers of one Redis */
	bool there;                  /* of the answer that is being looked at */
};

struct hw_members {
	struct hw_member all[HW_MEMBERS_MAX];
	size_t n;
	int64_t lease_ns;
	struct hw_mono looked; /* the last answer came then */
	bool continuous;       /* it came without a pause */
	uint64_t refused;      /* members beyond HW_MEMBERS_MAX: they are not waited for, nor removed */

	char former[HW_FORMER_MAX][HW_NODE_ID_MAX + 1]; /* a ring: names of those that were members */
	size_t former_at;
	uint64_t names; /* grows with each name that was not known before */
};

void hw_members_init(struct hw_members *m, int64_t lease_ns);

/* An answer of Redis came. Names longer than HW_NODE_ID_MAX are refused like members beyond the bound. */
void hw_members_look(struct hw_members *m, struct hw_mono now, const struct hw_member_entry *entries, size_t n);

/* What was seen so far was another Redis, or over another connection: silence counts anew from the next answer. */
void hw_members_forget(struct hw_members *m);

/* Whether it is silent, as of the last answer. */
bool hw_member_is_silent(const struct hw_members *m, const struct hw_member *member);
/* Whether it was ready for HW_RENEWALS_SETTLED renewals. */
bool hw_member_is_settled(const struct hw_member *member);

const struct hw_member *hw_members_find(const struct hw_members *m, const char *node);

/* These names have left the members, as Redis says. */
void hw_members_left(struct hw_members *m, const char *const *names, size_t n);
/* Whether it is a member, or was one: of the former members the last HW_FORMER_MAX are known. */
bool hw_members_knows(const struct hw_members *m, const char *node);

#endif

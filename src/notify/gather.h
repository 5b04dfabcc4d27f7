/* SPDX-License-Identifier: MIT */
/*
 * A message while it grows: everything is counted, and the first of it named. Internal to src/notify.
 *
 * Cost: a transition is a line of text until HW_NOTIFIER_LIST are named, then an addition.
 */
#ifndef HW_GATHER_H
#define HW_GATHER_H

#include "notify/digest.h"
#include "notify/notify.h"

struct evbuffer;

/* Blindness of the fleet, whose begin waits: it may be over soon. */
struct hw_gather_blindness {
	bool waits, gathered; /* the begin; not both */
	struct hw_out begin;
	struct hw_now at;
};

struct hw_gather {
	const struct hw_monitor *m; /* borrowed */
	struct evbuffer *devices, *blind;
	unsigned listed, blind_listed;
	uint64_t left_out, blind_left_out;
	uint64_t total[HW_STATES];
	uint64_t (*counts)[HW_STATES][HW_REASONS]; /* a group each */
	size_t n_groups;
	bool any;
	int64_t from_ms, to_ms;               /* wall clock, of the first and the last */
	uint64_t number;                      /* of the last message of this run */
	struct hw_gather_blindness blindness; /* is not sealed */
	struct hw_digest digest;              /* the same for people */
};

/* 0 or -ENOMEM. */
int hw_gather_init(struct hw_gather *g, const struct hw_monitor *m);
void hw_gather_fini(struct hw_gather *g);
void hw_gather_transition(struct hw_gather *g, struct hw_now now, const struct hw_transition *t);
void hw_gather_blind(struct hw_gather *g, struct hw_now now, const struct hw_out *out);
/* Makes the message and begins anew. 0; or -ENOMEM with nothing in `out`: what was gathered is lost then. */
int hw_gather_seal(struct hw_gather *g, const char *node_id, struct hw_telling *out);
/* One that an operator has asked for; what is gathered stays. Likewise. */
int hw_gather_test(struct hw_gather *g, const char *node_id, int64_t now_ms, struct hw_telling *out);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A message while it is gathered: all events are counted, and the first ones are listed. Internal to src/notify.
 *
 * Cost: a transition is a line of text until HW_NOTIFIER_LIST are listed; after that it is one addition.
 */
#ifndef HW_GATHER_H
#define HW_GATHER_H

#include "notify/digest.h"
#include "notify/notify.h"

struct evbuffer;

/* A blindness of the fleet. Its begin is not reported at once, because it may be short. */
struct hw_gather_blindness {
	bool waits, gathered; /* the begin is held back, or was gathered; never both */
	struct hw_out begin;
	struct hw_now at;
};

struct hw_gather {
	const struct hw_monitor *m; /* borrowed */
	struct evbuffer *devices, *blind;
	unsigned listed, blind_listed;
	uint64_t left_out, blind_left_out;
	uint64_t total[HW_STATES];
	uint64_t (*counts)[HW_STATES][HW_REASONS]; /* one element per group */
	size_t n_groups;
	bool any;
	int64_t from_ms, to_ms;               /* wall clock of the first and the last event */
	uint64_t number;                      /* number of the last message in this run */
	struct hw_gather_blindness blindness; /* kept when the message is sealed */
	struct hw_digest digest;              /* the same for readers */
};

/* 0 or -ENOMEM. */
int hw_gather_init(struct hw_gather *g, const struct hw_monitor *m);
void hw_gather_fini(struct hw_gather *g);
void hw_gather_transition(struct hw_gather *g, struct hw_now now, const struct hw_transition *t);
void hw_gather_blind(struct hw_gather *g, struct hw_now now, const struct hw_out *out);
/* Makes the message and starts empty again. Returns 0, or -ENOMEM with nothing in `out`; the gathered events are then
 * lost. */
int hw_gather_seal(struct hw_gather *g, const char *node_id, struct hw_notification *out);
/* Makes a test message; the gathered events stay. Returns as above. */
int hw_gather_test(struct hw_gather *g, const char *node_id, int64_t now_ms, struct hw_notification *out);

#endif

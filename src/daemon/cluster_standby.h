/* SPDX-License-Identifier: MIT */
/*
 * [cluster] mode = standby: one node owns all partitions, and it alone hears the fleet. The others stand by: their
 * readers are subscribed to what nodes say of themselves and to nothing else, and the core, whose links they are not
 * yet, knows no device and is blind.
 *
 * Once all partitions are won the fleet begins, as after a start: its filters are subscribed, Redis is read, silence
 * counts from the end of reconnect_grace. Once another node has a part of it, or this one has not heard it for a lease,
 * or has released it, it is over: what this process knows of the fleet is of no use to anybody, so the daemon stops as
 * it does at its end, but for its sockets, and is made anew (hw_app_anew()). Nothing of what was heard, owed or under
 * way can survive that by mistake. What was lost to nobody, because Redis was flushed, is listened to further, and
 * claimed again: nobody else knows it.
 */
#ifndef HW_CLUSTER_STANDBY_H
#define HW_CLUSTER_STANDBY_H

#include <stdbool.h>
#include <stdint.h>

#include "heartwheel/time.h"
#include "nodes/token.h"

struct hw_app;

struct hw_cluster_standby {
	bool is;                /* mode = standby */
	bool fleet;             /* it has begun */
	bool lost;              /* ... and some of it is not this node's any more */
	bool over;              /* ... nor will be */
	bool again;             /* this node has lost it and won it once more, as it knows it */
	bool saw;               /* since it has begun a barrier came back: this node hears what comes on its links */
	bool shy;               /* see hw_app_standby_ready() */
	bool goes_blind;        /* it is over because this node never heard it */
	struct hw_mono at;      /* of the begin */
	struct hw_mono unheard; /* the fleet was not heard at that time; later than that, its grace may have begun */
	struct hw_mono blind_since, shy_until; /* 0: it is not */
	struct hw_mono ending; /* since then nothing is waited for but threads and notifications; or 0 */
};

/* The node that owns the fleet, as far as is known, until the next turn; "": nobody does. */
const char *hw_app_standby_owner(const struct hw_app *a);
/* What a person is told of it; of one that stands by. */
void hw_app_standby_text(const struct hw_app *a, char *text, unsigned cap);

/* Of a time that ends now, what was not spent standing by. */
int64_t hw_app_standby_since(const struct hw_app *a, struct hw_now now, int64_t length_ns);

/*
 * Whether this node could take over. Ready means that a barrier came back lately: a connection that carries nothing
 * stays open for minutes. A node that gave the fleet up because it never heard it, perhaps for want of a right, is not
 * ready for an hour while another node is.
 */
bool hw_app_standby_ready(struct hw_app *a, struct hw_now now);
/* Whether the owner does not hear the fleet. The grace after a loss is no reason to give the fleet away, once a barrier
 * is back: the next owner would begin with a grace of its own. */
bool hw_app_standby_blind(struct hw_app *a, struct hw_now now);

/* Some partitions were won; some were lost; some are about to be released. */
void hw_app_standby_won(struct hw_app *a);
void hw_app_standby_lost(struct hw_app *a);
void hw_app_standby_released(struct hw_app *a);
/* Whether all of Redis was read for what is decided about now: nothing has to be made good. */
bool hw_app_standby_loaded(struct hw_app *a);
/* Once a turn, behind the orders: begins the fleet, or the end of it. */
void hw_app_standby_turn(struct hw_app *a, struct hw_now now);
/*
 * The end before it is made anew, once all else is settled: its publisher's thread is told to go, as its readers' were,
 * and what was announced is notified of. One that is in the resolver or in a connect would say its client id to the
 * broker behind the one that follows it, and throw that out: it is waited for. Meanwhile the loop goes on. Ended: all
 * of that is done, or was waited for long enough.
 */
void hw_app_standby_end(struct hw_app *a, struct hw_now now);
bool hw_app_standby_is_ending(const struct hw_app *a);
bool hw_app_standby_ended(struct hw_app *a, struct hw_now now);
/* This daemon follows on one in the same process, which had lost the fleet; `was_blind`: it had never heard it. */
void hw_app_standby_after(struct hw_app *a, bool was_blind);

#endif

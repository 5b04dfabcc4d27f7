/* SPDX-License-Identifier: MIT */
/*
 * Interprets the answers of Sentinels: which Sentinel to ask next, what an answer means, and whether to move to another
 * master. Pure: no connection and no clock.
 */
#ifndef HW_LINK_SENTINEL_H
#define HW_LINK_SENTINEL_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>

#include "conf/hosts.h"

/* The result of asking a Sentinel. */
enum hw_sentinel_answer {
	HW_SENTINEL_NAMED,
	HW_SENTINEL_UNKNOWN,  /* the Sentinel watches no master of that name */
	HW_SENTINEL_PASSWORD, /* the Sentinel requires a password */
	HW_SENTINEL_STRANGE,  /* the answer is not one of a Sentinel */
	HW_SENTINEL_AWAY,     /* unreachable, or no answer in time */
	HW_SENTINEL_LOST      /* the subscribed connection was lost */
};

/* Reads the reply to SENTINEL GET-MASTER-ADDR-BY-NAME; sets `master` if the result is HW_SENTINEL_NAMED. */
enum hw_sentinel_answer hw_sentinel_read_master(const redisReply *reply, struct hw_host *master);
/* Reads down-after-milliseconds from the reply to SENTINEL MASTER; -1 if it is missing. */
int64_t hw_sentinel_read_down_after(const redisReply *reply);
/* Reads the number of a key from a reply with keys and values (CONFIG GET, SENTINEL MASTER); -1 if it is missing. */
int64_t hw_sentinel_read_number(const redisReply *reply, const char *key);
/* Whether a reply to ROLE is that of a master. */
bool hw_sentinel_read_role(const redisReply *reply);
/* Whether a message of +switch-master is about the master called `name`. If so, sets `master` to the new master. */
bool hw_sentinel_read_switch(const char *text, const char *name, struct hw_host *master);

#define HW_SENTINEL_WHY 400

/* Writes the fault and the remedy as one line without control characters. `detail`: the text of the answer, or the
 * error of the connection. */
void hw_sentinel_why(enum hw_sentinel_answer what, const struct hw_host *sentinel, const char *name, const char *detail,
                     char why[HW_SENTINEL_WHY]);

/* The order in which Sentinels are asked, each once in a round. A round continues where the last one ended. */
struct hw_sentinel_round {
	unsigned n, next, left;
};

void hw_sentinel_round_begin(struct hw_sentinel_round *r);
/* Returns the index of the next Sentinel to ask; -1: each was asked in this round. */
int hw_sentinel_round_next(struct hw_sentinel_round *r);

/*
 * The master in use. A Sentinel that was cut off may still name an old master. So the master in use is replaced only
 * after two answers in a row that name the same other server. The answers must come from two Sentinels, unless only one
 * Sentinel answers. With a single configured Sentinel, one answer is enough. A +switch-master message takes effect at
 * once.
 */
struct hw_sentinel_view {
	struct hw_host in_use, other;
	unsigned n_named; /* how many answers in a row have named `other` */
};

/* Called when one of `n` Sentinels has named a master. `wanted`: no master is in use. Returns whether to connect to
 * the named one. */
bool hw_sentinel_view_named(struct hw_sentinel_view *v, const struct hw_host *master, unsigned n, bool wanted);
/* Called when a +switch-master message has named a master. Returns whether to connect to it. */
bool hw_sentinel_view_switched(struct hw_sentinel_view *v, const struct hw_host *master);

#endif

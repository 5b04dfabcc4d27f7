/* SPDX-License-Identifier: MIT */
/*
 * What Sentinels say, and what follows from it: no connection and no clock here. Whom to ask next, what an answer
 * means, and when what they name is gone to.
 */
#ifndef HW_LINK_SENTINEL_H
#define HW_LINK_SENTINEL_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>

#include "conf/hosts.h"

/* What became of asking a Sentinel. */
enum hw_sentinel_answer {
	HW_SENTINEL_NAMED,
	HW_SENTINEL_UNKNOWN,  /* it watches no master of that name */
	HW_SENTINEL_PASSWORD, /* it wants one */
	HW_SENTINEL_STRANGE,  /* it says what no Sentinel says */
	HW_SENTINEL_AWAY,     /* not to be reached, or silent for too long */
	HW_SENTINEL_LOST      /* the connection to it was, while it was listened to */
};

/* Of SENTINEL GET-MASTER-ADDR-BY-NAME; `master` is set if it is HW_SENTINEL_NAMED. */
enum hw_sentinel_answer hw_sentinel_read_master(const redisReply *reply, struct hw_host *master);
/* Of SENTINEL MASTER: down-after-milliseconds; -1 if it does not say so. */
int64_t hw_sentinel_read_down_after(const redisReply *reply);
/* Of CONFIG GET: the number that a key has; -1 if it does not say so. */
int64_t hw_sentinel_read_number(const redisReply *reply, const char *key);
/* Whether this is ROLE's answer of a master. */
bool hw_sentinel_read_role(const redisReply *reply);
/* Whether a message of +switch-master is about the master of that name; then `master` is the new one. */
bool hw_sentinel_read_switch(const char *text, const char *name, struct hw_host *master);

#define HW_SENTINEL_WHY 400

/* What is wrong and what to do, in a sentence without control characters. `detail`: of the answer or the connection. */
void hw_sentinel_why(enum hw_sentinel_answer what, const struct hw_host *sentinel, const char *name, const char *detail,
                     char why[HW_SENTINEL_WHY]);

/* Whom to ask: one after the other, each once in a round. A round goes on where the last one ended. */
struct hw_sentinel_round {
	unsigned n, next, left;
};

void hw_sentinel_round_begin(struct hw_sentinel_round *r);
/* -1: everyone has been asked. */
int hw_sentinel_round_next(struct hw_sentinel_round *r);

/*
 * The master as this side sees it. A Sentinel that was cut off may still name an old one, so one that is in use is left
 * for another only if two answers in a row name that one, of two Sentinels unless no second one answers; or the only
 * Sentinel there is; or at the word +switch-master.
 */
struct hw_sentinel_view {
	struct hw_host in_use, other;
	unsigned said; /* so many answers in a row have named `other` */
};

/* One of `n` Sentinels has named a master; `wanted`: none is in use now. Whether to go to it. */
bool hw_sentinel_view_named(struct hw_sentinel_view *v, const struct hw_host *master, unsigned n, bool wanted);
/* +switch-master. Whether to go to it. */
bool hw_sentinel_view_switched(struct hw_sentinel_view *v, const struct hw_host *master);

#endif

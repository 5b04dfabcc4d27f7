/* SPDX-License-Identifier: MIT */
/*
 * The connection to Redis: where the master is, if Sentinels know that; name look-up, connect, AUTH, SELECT, and again
 * with back-off (100 ms to 1 s, each time less up to half of it, at random) when it fails or is lost. It is lost too
 * when a connect takes, or a reply does not come for, HW_LINK_SILENCE_MS; a quiet one is asked with PING. It is ready
 * when Redis has answered the last command of the greeting, which is PING, or ROLE with Sentinels; a subscriber's
 * without Sentinels at once.
 *
 * With Sentinels it is lost as soon as one of them says that another is the master now, and made to that one at once;
 * ROLE must say that it is one.
 *
 * Every command's callback is called exactly once: with the reply, or with NULL if the link was lost first and nobody
 * knows whether Redis ran the command. With NULL it may only release what was its own: on_lost() comes after.
 */
#ifndef HW_LINK_LINK_H
#define HW_LINK_LINK_H

#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf/hosts.h"
#include "link/address.h"
#include "link/follow.h"
#include "link/guard.h"
#include "link/resolve.h"

#define HW_LINK_BACKOFF_MIN_MS 100
#define HW_LINK_BACKOFF_MAX_MS 1000 /* a monitor is back soon after its Redis; one connect a second is nothing */
#define HW_LINK_SILENCE_MS     5000
#define HW_LINK_QUIET_MS       2000

struct event;
struct event_base;

enum hw_redis_link_state {
	HW_LINK_DOWN,
	HW_LINK_ASKING,
	HW_LINK_RESOLVING,
	HW_LINK_CONNECTING,
	HW_LINK_GREETING,
	HW_LINK_READY
};

struct hw_redis_link_conf {
	struct hw_redis_address at; /* borrowed texts, never NULL */
	uint64_t seed;              /* of the jitter */
	bool proves;                /* it is ready only after Redis has answered PING */
	bool subscriber;            /* it must not be asked with PING: its owner knows whether it is alive */
};

struct hw_redis_link_ops {
	void (*on_ready)(void *arg);                 /* authenticated, db selected */
	void (*on_lost)(void *arg, const char *why); /* lost, or could not be had */
	/* Something is wrong with one of several ways to it, and what to do. May be NULL. */
	void (*on_trouble)(void *arg, const char *what);
};

struct hw_redis_link {
	struct event_base *base;
	struct hw_redis_link_conf conf;
	const struct hw_redis_link_ops *ops;
	void *arg;
	enum hw_redis_link_state state;
	redisAsyncContext *ac;    /* NULL: none */
	struct hw_guard guard;    /* of ac; not within it, since the reader goes last */
	struct hw_follow *follow; /* NULL: it is where the configuration says */
	struct hw_host master;    /* as a Sentinel named it last */
	char by[HW_HOST_TEXT];    /* and which one did */
	bool named;               /* it is to be tried next, without asking first */
	struct hw_resolve *resolve;
	char addresses[HW_ADDRESSES_MAX][HW_ADDRESS_TEXT]; /* tried in turn */
	size_t n_addresses, address;
	struct event *turn;  /* what a hiredis callback must not do itself */
	struct event *retry; /* the next attempt */
	struct event *alive; /* each second while an answer is awaited, else when it has been quiet for too long */
	bool unarmed;        /* `retry` could not be armed: the next hw_redis_link_tick() starts */
	unsigned tries, overdue, in_flight;
	uint64_t random;
	int64_t since_ms; /* monotonic: the last reply, or when waiting for one began */
	uint64_t commands;
	char where[300];
};

/* Readies caller's storage and starts connecting on the next turn of the loop. 0 or -ENOMEM. */
int hw_redis_link_init(struct hw_redis_link *l, struct event_base *base, const struct hw_redis_link_conf *conf,
                       const struct hw_redis_link_ops *ops, void *arg);
/* Calls what waits for a reply with NULL; not on_lost(). Not from a callback. */
void hw_redis_link_fini(struct hw_redis_link *l);

/* Gives the connection up and starts anew after the back-off; calls on_lost(). May be called from a reply's callback,
 * after which no other one comes with a reply. */
void hw_redis_link_fail(struct hw_redis_link *l, const char *why);

/* The connection has proved useful: the back-off starts from its minimum again. */
void hw_redis_link_settled(struct hw_redis_link *l);

/* Sends a command in the wire format; `fn` must call hw_redis_link_got() for a reply. 0, or -ENOTCONN / -ENOMEM and fn
 * is not called. */
int hw_redis_link_send(struct hw_redis_link *l, redisCallbackFn *fn, void *arg, const char *command, size_t len);
/* The same for arguments. */
int hw_redis_link_command(struct hw_redis_link *l, redisCallbackFn *fn, void *arg, int argc, const char **argv,
                          const size_t *len);

/* Each second: what a timer that found no memory has left undone. */
void hw_redis_link_tick(struct hw_redis_link *l);

/* A reply has come. */
void hw_redis_link_got(struct hw_redis_link *l);

#endif

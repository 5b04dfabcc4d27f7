/* SPDX-License-Identifier: MIT */
/*
 * The connection to Redis.
 *
 * If Sentinels are configured, they are asked for the master first. Then the steps are: resolve the name, connect,
 * AUTH, SELECT. If a step fails or the connection is lost, it is opened again after a delay of 100 ms to 1 s, less a
 * random part of up to half. The connection counts as lost if a connect or a reply takes longer than
 * HW_LINK_SILENCE_MS. A quiet connection is tested with PING, unless conf.subscriber is set.
 *
 * The connection is ready when Redis has answered the last command of the greeting: ROLE with Sentinels; otherwise PING
 * if conf.proves is set; otherwise AUTH or SELECT, if either is sent.
 *
 * With Sentinels, the connection is given up as soon as a Sentinel reports another master, and the new master is
 * connected to at once. The reply to ROLE must confirm that the server is a master.
 *
 * Each command's callback is called exactly once: with the reply, or with NULL if the connection was lost before the
 * reply came. After NULL it is unknown whether Redis has carried out the command. The callback may then only free its
 * own resources; on_lost() follows.
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
/* A short limit, so that a monitor works again soon after Redis does. One attempt to connect in a second costs
 * little. */
#define HW_LINK_BACKOFF_MAX_MS 1000
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

/* Carries out the commands in the place of a server. */
struct hw_redis_local {
	void *arg;
	/* Returns why no commands can be carried out; NULL: commands can be carried out. */
	const char *(*open)(void *arg);
	/* Takes a command in the wire format. `fn` is called later, with a NULL context. Returns 0 or -ENOMEM. */
	int (*send)(void *arg, redisCallbackFn *fn, void *fn_arg, const char *command, size_t len);
	/* Calls the waiting callbacks with NULL. */
	void (*close)(void *arg);
};

struct hw_redis_link_conf {
	struct hw_redis_address at;         /* borrowed texts, never NULL */
	const struct hw_redis_local *local; /* borrowed; NULL: connect to Redis at `at` */
	uint64_t seed;                      /* of the random jitter */
	bool proves;                        /* the link becomes ready only after a reply to PING */
	bool subscriber;                    /* no PING may be sent: the owner checks the connection */
};

struct hw_redis_link_ops {
	void (*on_ready)(void *arg);                 /* authenticated, and the db is selected */
	void (*on_lost)(void *arg, const char *why); /* lost, or could not be opened */
	/* Called when a Sentinel does not answer as it should. `what` names the fault and the remedy. May be NULL. */
	void (*on_trouble)(void *arg, const char *what);
};

struct hw_redis_link {
	struct event_base *base;
	struct hw_redis_link_conf conf;
	const struct hw_redis_link_ops *ops;
	void *arg;
	enum hw_redis_link_state state;
	redisAsyncContext *ac;    /* NULL: none */
	struct hw_guard guard;    /* guard of ac; stored here and not in the context, because the reader is freed
	                           * last */
	struct hw_follow *follow; /* NULL: no Sentinels, the address is configured */
	struct hw_host master;    /* the master that a Sentinel named last */
	char by[HW_HOST_TEXT];    /* the Sentinel that named it */
	bool named;               /* the next attempt uses `master` without asking first */
	struct hw_resolve *resolve;
	char addresses[HW_ADDRESSES_MAX][HW_ADDRESS_TEXT]; /* tried in turn */
	size_t n_addresses, address;
	struct event *turn;  /* runs work that a hiredis callback must not do */
	struct event *retry; /* the next attempt */
	struct event *alive; /* timer of the check: each second while a reply is awaited, else after HW_LINK_QUIET_MS */
	bool unarmed; /* there was no memory for `retry`, so the next hw_redis_link_tick() opens the connection */
	unsigned tries, overdue, in_flight;
	uint64_t random;
	int64_t since_ms; /* monotonic: when the last reply came, or, if later, when the wait for a reply began */
	uint64_t commands;
	char where[300];
};

/* Initialises the caller's storage. Begins to connect in the next turn of the loop. Returns 0 or -ENOMEM. */
int hw_redis_link_init(struct hw_redis_link *l, struct event_base *base, const struct hw_redis_link_conf *conf,
                       const struct hw_redis_link_ops *ops, void *arg);
/* Calls each waiting callback with NULL. Does not call on_lost(). Must not be called from a callback. */
void hw_redis_link_fini(struct hw_redis_link *l);

/* Closes the connection, calls on_lost(), and connects again after the delay. May be called in the callback of a
 * reply; no other callback gets a reply then. */
void hw_redis_link_fail(struct hw_redis_link *l, const char *why);

/* Called when the connection has proved useful. The next delay is then the shortest one again. */
void hw_redis_link_settled(struct hw_redis_link *l);

/* Sends a command in the wire format. `fn` must call hw_redis_link_got() for each reply. Returns 0, or -ENOTCONN or
 * -ENOMEM, and `fn` is then not called. */
int hw_redis_link_send(struct hw_redis_link *l, redisCallbackFn *fn, void *arg, const char *command, size_t len);
/* The same for a list of arguments. */
int hw_redis_link_command(struct hw_redis_link *l, redisCallbackFn *fn, void *arg, int argc, const char **argv,
                          const size_t *len);

/* Called each second: starts timers for which there was no memory before. */
void hw_redis_link_tick(struct hw_redis_link *l);

/* Must be called for each reply. */
void hw_redis_link_got(struct hw_redis_link *l);

#endif

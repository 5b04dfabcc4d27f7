/* SPDX-License-Identifier: MIT */
/*
 * The control API: HTTP on a unix socket, and for reading alone on an address, served by libevent's evhttp on the loop.
 * It reads devices from the core, and asks the daemon through struct hw_control_ops for everything else: it knows
 * neither Redis nor MQTT.
 */
#ifndef HW_CONTROL_H
#define HW_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/event.h"
#include "heartwheel/monitor.h"
#include "http/server.h"

struct event_base;
struct evbuffer;
struct hw_control;
struct hw_control_nodes;
struct hw_http_kept;
struct hw_json;

/* GET /v1/status. Strings are borrowed for the call. */
struct hw_control_status {
	const char *node, *version;
	int64_t uptime_s;
	bool mqtt_up;      /* every reader is subscribed and the publisher is connected */
	const char *mqtt;  /* "up", or what is wrong in a few words */
	const char *redis; /* "up", "off" (memory store), or what is wrong */
	enum { HW_REDIS_OFF, HW_REDIS_AWAY, HW_REDIS_REFUSES, HW_REDIS_WRITES } store;
	bool loading;
	uint64_t pending;          /* devices whose current state some sink has not confirmed */
	int64_t pending_oldest_ms; /* how long the oldest has been owed; 0: nothing is owed */
	const char *broker;        /* its host */
	int broker_port;
};

/* What became of a device that is to be forgotten. */
enum hw_forgotten {
	HW_FORGOTTEN,
	HW_FORGOTTEN_UNKNOWN, /* there is no such device */
	HW_FORGOTTEN_UNOWNED, /* no node owns it now */
	HW_FORGOTTEN_SILENT,  /* the node that owns it does not answer, or cannot be asked */
	HW_FORGOTTEN_ASKED    /* the node that owns it was asked: hw_control_forgotten() says what it answers */
};

struct hw_control_ops {
	struct hw_now (*now)(void *arg);
	void (*status)(void *arg, struct hw_control_status *out);
	/* DELETE. `ticket` names the request to another node. */
	enum hw_forgotten (*forget)(void *arg, uint64_t ticket, const char *id, size_t len);
	/*
	 * POST /v1/reload: appends the answer's JSON body ({"changed":[...],"restart_needed":[...]} or
	 * {"error":...,"lines":[...]}) and returns the HTTP status, 200 or 400.
	 */
	int (*reload)(void *arg, struct evbuffer *body);
	/* GET /v1/notify: writes the members of the answer. */
	void (*notify)(void *arg, struct hw_json *j);
	/* POST /v1/notify/test: likewise; sends a test through that channel, or through each ("") that is set up. 200,
	 * or 404: there is no such channel. */
	int (*notify_test)(void *arg, const char *channel, struct hw_json *j);
	/* GET /metrics: appends, with the helpers of metrics.h, all that is not the core's. */
	void (*metrics)(void *arg, struct evbuffer *body);
	/*
	 * Where a store keeps the event stream (both NULL: nowhere, and hw_control_event() is told of everything).
	 * Ask for what is behind a place in it, or for its end; hw_control_page() answers. 0 or -errno. Never two at
	 * once; one whose answer is outstanding when hw_control_store() says that the store is away has none.
	 */
	int (*events_after)(void *arg, struct hw_event_id at);
	int (*events_last)(void *arg);
	/* One of several nodes (both NULL: it is alone): what it knows of them, and the node that owns a device,
	 * borrowed until the next turn; NULL: nobody does. */
	void (*nodes)(void *arg, struct hw_control_nodes *out);
	const char *(*owner)(void *arg, const struct hw_device *d);
	/* One of several nodes of which one alone knows the fleet (NULL: it is none): the node that does, borrowed
	 * until the next turn, "" while none does; NULL if it is this one. */
	const char *(*standby)(void *arg);
};

/*
 * Listens on the unix socket `path` (mode 0660, group `group` unless ""). A stale socket is replaced; one that answers
 * is -EADDRINUSE; anything else in its place -ENOTSOCK; an unknown group -EINVAL. Other errors: -errno. The process
 * must ignore SIGPIPE: libevent writes to clients that have gone.
 */
int hw_control_new(struct hw_control **out, struct event_base *base, const char *path, const char *group,
                   const struct hw_monitor *m, const struct hw_control_ops *ops, void *arg);
/* Its listening sockets, for another one in the same process: see hw_http_keep(). 0 or -errno. */
int hw_control_keep(struct hw_control *c, struct hw_http_kept *out);
/* As hw_control_new(), with these sockets, which are its own then; after an error what is left is the caller's. */
int hw_control_resume(struct hw_control **out, struct event_base *base, struct hw_http_kept *kept,
                      const struct hw_monitor *m, const struct hw_control_ops *ops, void *arg);
/* What belongs to heartwheel-tasks and heartwheel-history is handed on to their sockets from now on. 0 or -ENOMEM. */
int hw_control_proxy_to(struct hw_control *c, const char *tasks, const char *history);
/* Who is admitted at the address, and its TLS: as hw_http_secure(). */
int hw_control_secure(struct hw_control *c, const struct hw_http_safety *s, hw_http_wrong *wrong, void *arg);
/* The same in two steps, of which the second cannot fail: as hw_http_plan() and hw_http_take(). */
int hw_control_plan(struct hw_control *c, const struct hw_http_safety *s, struct hw_http_plan *out,
                    hw_http_wrong *wrong, void *arg);
struct hw_control_taken {
	char users[512]; /* "+eve -otto": see hw_accounts_diff() */
	unsigned closed; /* streams of users who have lost the right */
};
struct hw_control_taken hw_control_take(struct hw_control *c, struct hw_http_plan *p);
/*
 * Serves a TCP address as well, for reading alone unless it has users: "127.0.0.1:8731" or "[::1]:8731". `*local`: it
 * is a loopback address. 0; -EINVAL if it is none; or -errno (-EADDRINUSE, -EADDRNOTAVAIL, -EACCES).
 */
int hw_control_listen(struct hw_control *c, const char *address, bool *local);

/*
 * The event stream, for /v1/events. With a store: when it comes and goes, each edge that it has written, and the pages
 * that were asked for, in the order in which the store answered. Without one: each transition, whose place is then
 * given here.
 */
void hw_control_store(struct hw_control *c, bool up);
void hw_control_event(struct hw_control *c, const struct hw_event *e);
/*
 * With a store: each transition as it happens, told aside while the store is late, with its place once that is known;
 * and whether the store is late, that is: the outside is told without it.
 */
void hw_control_pending(struct hw_control *c, const struct hw_event *e);
void hw_control_late(struct hw_control *c, bool late);
/* Nothing is owed to the store: what has no place by now is given none any more, or is told by another connection. */
void hw_control_settled(struct hw_control *c);
/* A blindness begins or ends, or its cause changes. */
void hw_control_sight(struct hw_control *c);
/* Of several nodes each entry is told, whoever wrote it, in the order of the stream, but not in step with the pages;
 * and if there was a gap, up to where. */
void hw_control_missed(struct hw_control *c, struct hw_event_id upto);
void hw_control_page(struct hw_control *c, const struct hw_event_page *page);

/* A node that stood by has the fleet from now on. */
void hw_control_begins(struct hw_control *c, struct hw_now now);

/* Once a second: what /v1/samples remembers of the last hour. */
void hw_control_tick(struct hw_control *c, struct hw_now now);
/* A device was found to be silent, so long after its deadline. */
void hw_control_detected(struct hw_control *c, int64_t delay_ns);

/* Another node's answer to a request to forget a device; one that nobody waits for any more is passed over. */
void hw_control_forgotten(struct hw_control *c, uint64_t ticket, enum hw_forgotten what);

/* For the metrics: clients of /v1/events; how many of them do not keep up; clients that were refused or cut off. */
struct hw_control_clients {
	unsigned now, lagging;
	uint64_t refused;
};
struct hw_control_clients hw_control_clients(const struct hw_control *c);

/* For the metrics: requests at the address that were not admitted, by why, and handshakes of TLS. */
struct hw_http_refused hw_control_refused(const struct hw_control *c);

/* Closes the listener and every connection, and removes the socket. */
void hw_control_free(struct hw_control *c);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The control API: HTTP on a unix socket and on an address. The address is read-only unless users are configured.
 * libevent's evhttp serves the API on the loop. The API reads devices from the core, and gets everything else through
 * struct hw_control_ops. It has no code for Redis or MQTT.
 */
#ifndef HW_CONTROL_H
#define HW_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/event.h"
#include "heartwheel/monitor.h"
#include "http/server.h"
#include "inventory/apply.h"

struct event_base;
struct evbuffer;
struct hw_control;
struct hw_control_nodes;
struct hw_expected;
struct hw_http_kept;
struct hw_json;

/* For GET /v1/status. Strings are borrowed for the call. */
struct hw_control_status {
	const char *node, *version;
	int64_t uptime_s;
	bool mqtt_up;      /* every reader is subscribed and the publisher is connected */
	const char *mqtt;  /* "up", or what is wrong */
	const char *redis; /* "up", "off" (memory store), or what is wrong */
	enum { HW_REDIS_OFF, HW_REDIS_AWAY, HW_REDIS_REFUSES, HW_REDIS_WRITES } store;
	bool loading;
	uint64_t pending;          /* devices whose current state is pending at a sink */
	int64_t pending_oldest_ms; /* how long the oldest has been pending; 0: none */
	const char *broker;        /* its host */
	int broker_port;
};

/* Result of a request to forget a device. */
enum hw_forgotten {
	HW_FORGOTTEN,
	HW_FORGOTTEN_UNKNOWN, /* no such device */
	HW_FORGOTTEN_UNOWNED, /* no node owns it now */
	HW_FORGOTTEN_SILENT,  /* the owner does not answer, or cannot be asked */
	HW_FORGOTTEN_ASKED    /* the owner was asked; hw_control_forgotten() will report the answer */
};

struct hw_control_ops {
	struct hw_now (*now)(void *arg);
	void (*status)(void *arg, struct hw_control_status *out);
	/* Forgets a device, for DELETE. `ticket` is the number of the request; an owner's answer to this node
	 * contains it. */
	enum hw_forgotten (*forget)(void *arg, uint64_t ticket, const char *id, size_t len);
	/*
	 * Reloads, for POST /v1/reload. Appends the JSON body ({"changed":[...],"restart_needed":[...]} or
	 * {"error":...,"lines":[...]}) and returns the HTTP status, 200 or 400.
	 */
	int (*reload)(void *arg, struct evbuffer *body);
	/* Appends all metrics that are not the core's, with metrics.h, for GET /metrics. */
	void (*metrics)(void *arg, struct evbuffer *body);
	/*
	 * The event stream, if a store keeps it. NULL: there is no store, and hw_control_event() gets every transition.
	 *
	 * events_after() requests the entries after an id, and events_last() requests the end of the stream;
	 * hw_control_page() brings the answer. Both return 0 or -errno. Only one request is open at a time. If
	 * hw_control_store() reports a lost connection, the open request gets no page.
	 */
	int (*events_after)(void *arg, struct hw_stream_id at);
	int (*events_last)(void *arg);
	/* NULL if there is only this node. `nodes` fills in what this node knows of the nodes. `owner` returns the
	 * name of the device's owner, borrowed until the next turn; NULL: no node owns the device. */
	void (*nodes)(void *arg, struct hw_control_nodes *out);
	const char *(*owner)(void *arg, const struct hw_device *d);
	/* Returns the node that owns the whole fleet, borrowed until the next turn; "": there is no owner; NULL:
	 * this node is the owner. The member is NULL unless one node owns the whole fleet. */
	const char *(*standby)(void *arg);
	/*
	 * The inventory; NULL: this program has none. inventory_why_not() returns NULL, or why the inventory cannot be
	 * read and changed now, borrowed until the next turn. expected() returns the table of expected devices.
	 * inventory_apply() applies at most HW_INVENTORY_ITEMS items (inventory/apply.h), which are borrowed for the
	 * call. It returns 0, or -errno, and then does not call `fn`. If it returns -EAGAIN, the caller tries again
	 * soon.
	 */
	const char *(*inventory_why_not)(void *arg);
	const struct hw_expected *(*expected)(void *arg);
	int (*inventory_apply)(void *arg, const char *source, const struct hw_inventory_item *items, unsigned n,
	                       hw_inventory_applied *fn, void *fn_arg);
};

/*
 * Listens on the unix socket `path` with mode 0660 and with the group `group`, unless that is "". Replaces a stale
 * socket. Returns 0; -EADDRINUSE if a process answers on it; -ENOTSOCK for another kind of file; -EINVAL for an unknown
 * group; or -errno. The process must ignore SIGPIPE, because libevent may write to a closed connection.
 */
int hw_control_new(struct hw_control **out, struct event_base *base, const char *path, const char *group,
                   const struct hw_monitor *m, const struct hw_control_ops *ops, void *arg);
/* Keeps the listening sockets for another server in this process: see hw_http_keep(). Returns 0 or -errno. */
int hw_control_keep(struct hw_control *c, struct hw_http_kept *out);
/* Like hw_control_new(), but uses the sockets in `kept`, which the new server then owns. After an error, the caller
 * still owns the sockets that are left in `kept`. */
int hw_control_resume(struct hw_control **out, struct event_base *base, struct hw_http_kept *kept,
                      const struct hw_monitor *m, const struct hw_control_ops *ops, void *arg);
/* Forwards the paths of heartwheel-tasks, heartwheel-history and heartwheel-alert to their sockets. Returns 0 or
 * -ENOMEM. */
int hw_control_proxy_to(struct hw_control *c, const char *tasks, const char *history, const char *alert);
/* Configures the address's users and TLS: see hw_http_secure(). */
int hw_control_secure(struct hw_control *c, const struct hw_http_safety *s, hw_http_wrong *wrong, void *arg);
/* hw_control_secure() in two steps, of which the second cannot fail: see hw_http_plan() and hw_http_take(). */
int hw_control_plan(struct hw_control *c, const struct hw_http_safety *s, struct hw_http_plan *out,
                    hw_http_wrong *wrong, void *arg);
struct hw_control_taken {
	char users[512]; /* "+eve -otto": see hw_accounts_diff() */
	unsigned closed; /* closed streams of users who have lost the right */
};
struct hw_control_taken hw_control_take(struct hw_control *c, struct hw_http_plan *p);
/*
 * Also serves a TCP address ("127.0.0.1:8731", "[::1]:8731"), which is read-only unless users are configured. Sets
 * *local to whether the address is loopback. Returns 0; -EINVAL for a malformed address; or -errno (-EADDRINUSE,
 * -EADDRNOTAVAIL, -EACCES).
 */
int hw_control_listen(struct hw_control *c, const char *address, bool *local);

/*
 * The input of the event stream, for /v1/events.
 *
 * With a store, the daemon reports: when the connection comes up or is lost; each transition that the store has
 * written; each page that was requested. All are in the order of the store's answers.
 *
 * Without a store, the daemon reports each transition, and the API assigns its id.
 */
void hw_control_store(struct hw_control *c, bool up);
void hw_control_event(struct hw_control *c, const struct hw_event *e);
/* Called when a parent of an offline device was heard (struct hw_out). Clients get the event `parent_heard`. */
void hw_control_parent_heard(struct hw_control *c, struct hw_id id, uint64_t seq, struct hw_id parent,
                             int64_t settle_ms);
/*
 * With a store: hw_control_pending() reports each transition when it happens, before it has an id. hw_control_late()
 * reports whether the store is late. While it is, statuses are published without waiting for the store, and clients get
 * these transitions as `pending`.
 */
void hw_control_pending(struct hw_control *c, const struct hw_event *e);
void hw_control_late(struct hw_control *c, bool late);
/* Called when no write is pending at the store any more. A transition that has no id by then gets none, or gets it
 * over another connection (hw_control_event()). */
void hw_control_settled(struct hw_control *c);
/* Called when a blindness begins or ends, or its cause changes. */
void hw_control_sight(struct hw_control *c);
/* With several nodes, the caller reports the entries of all nodes with hw_control_event(), in the order of the
 * stream. Pages may be ahead of these entries or behind them. hw_control_missed(): some entries are missing, the
 * last of them at `upto`. */
void hw_control_missed(struct hw_control *c, struct hw_stream_id upto);
void hw_control_page(struct hw_control *c, const struct hw_event_page *page);

/* A standby node has become the owner of the fleet. */
void hw_control_begins(struct hw_control *c, struct hw_now now);

/* Called once a second. Updates /v1/samples and the server. */
void hw_control_tick(struct hw_control *c, struct hw_now now);
/* Called when a device is found silent, `delay_ns` after its deadline. For /v1/samples. */
void hw_control_detected(struct hw_control *c, int64_t delay_ns);

/* Called when another node has answered a request to forget a device. Does nothing if no client waits for this answer
 * any more. */
void hw_control_forgotten(struct hw_control *c, uint64_t ticket, enum hw_forgotten what);

/* For the metrics: how many clients /v1/events has now, how many of them lag, and how many were refused or
 * disconnected. */
struct hw_control_clients {
	unsigned now, lagging;
	uint64_t refused;
};
struct hw_control_clients hw_control_clients(const struct hw_control *c);

/* For the metrics: how many requests at the API's address were refused, by reason, and how many TLS handshakes were
 * completed or cut. */
struct hw_http_refused hw_control_refused(const struct hw_control *c);

/* Closes the listeners and all connections, and removes the socket file. */
void hw_control_free(struct hw_control *c);

#endif

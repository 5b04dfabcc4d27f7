/* SPDX-License-Identifier: MIT */
/*
 * Inside of the control API: what its files share. Its table of routes is in control.c.
 */
#ifndef HW_CONTROL_PARTS_H
#define HW_CONTROL_PARTS_H

#include "control/control.h"
#include "http/reply.h"
#include "http/router.h"
#include "http/server.h"

struct hw_asks;
struct hw_control;
struct hw_control_nodes;
struct hw_history;
struct hw_hub;
struct hw_json;
struct hw_pager;
struct hw_proxy;
struct hw_samples;

struct hw_control {
	struct event_base *base; /* borrowed */
	struct hw_http http;
	struct hw_pager *pager;
	struct hw_hub *hub;
	struct hw_history *history;
	struct hw_samples *samples;
	struct hw_asks *asks;
	struct hw_proxy *tasks, *durable; /* NULL: what is theirs is not known here */
	const struct hw_monitor *monitor; /* borrowed */
	const struct hw_control_ops *ops;
	void *arg;
	struct hw_mono begun;        /* of a standby: it has the fleet since then; 0: it was not said */
	int64_t stood_ns[HW_CAUSES]; /* ... and was blind for so long before */
};

/* Handlers take a struct hw_control as their `arg`. */

/* observe.c: the daemon as a whole. */
hw_http_handler hw_serve_status, hw_serve_groups, hw_serve_overview, hw_serve_health, hw_serve_ready, hw_serve_metrics,
	hw_serve_wheel;

/* Whether it has been blind since its start: devices have not yet had the time to report. */
bool hw_is_starting(const struct hw_control *c);
/* While it is blind: since when, for how long, and how long devices have to report. */
void hw_write_blind_times(struct hw_json *j, const struct hw_control *c);

/* devices.c: single devices. */
hw_http_handler hw_serve_device;
/* Whether the outside knows of it: not provisional, not forgotten. */
bool hw_device_visible(const struct hw_device *d);
/* The members of a device. */
void hw_write_device(struct hw_json *j, const struct hw_control *c, struct hw_now now, const struct hw_device *d);
/* The members of a device as they were after a transition. */
void hw_write_event(struct hw_json *j, const struct hw_control *c, const struct hw_event *e);
/* The device that the rest of a path names, or NULL with the request answered. */
struct hw_device *hw_find_device(struct hw_control *c, struct evhttp_request *req, const char *rest, uint32_t *index);

/* forget.c: forgetting a device, which another node may have to be asked for. */
hw_http_handler hw_serve_forget;
struct hw_asks *hw_asks_new(struct hw_control *c);
/* Once all connections are closed. */
void hw_asks_free(struct hw_asks *a);

/* nodes.c: several nodes. */
hw_http_handler hw_serve_nodes;
/* What is known of them. False: this one is alone. */
bool hw_nodes_of(const struct hw_control *c, struct hw_control_nodes *out);
/* Whether another node is to hear the fleet: nothing is known of it here. */
bool hw_stands_by(const struct hw_control *c);
/* The members of /v1/nodes. */
void hw_write_nodes(struct hw_json *j, const struct hw_control *c);
/* The member of /v1/status; nothing is written by one that is alone. */
void hw_write_cluster(struct hw_json *j, const struct hw_control *c);
/* Appends why this node is not ready, as one of several, to what stands in `why`. Its new length. */
size_t hw_nodes_trouble(const struct hw_control *c, char *why, size_t n, size_t cap);

/* notify.c: what was told to whom, and a test of it. */
hw_http_handler hw_serve_notify, hw_serve_notify_test;

/* list.c: the list, which is written over several turns of the loop. */
hw_http_handler hw_serve_list;
struct hw_pager *hw_pager_new(struct hw_control *c);
/* Once all connections are closed. */
void hw_pager_free(struct hw_pager *p);

/* history.c: the last transitions, in memory. */
#define HW_HISTORY 10000
hw_http_handler hw_serve_transitions, hw_serve_device_events;
/* `cut`: see hw_history_set_cut(). */
struct hw_history *hw_history_new(bool cut);
void hw_history_free(struct hw_history *h);
/* Remembers a transition; the oldest gives way. Without memory it is left out. */
void hw_history_append(struct hw_history *h, const struct hw_event *e);
/* ... of a store: one that is here already, by its id and seq, gets its place. */
void hw_history_add(struct hw_history *h, const struct hw_event *e);
/* ... one that waits for the store to give it its place. */
void hw_history_await(struct hw_history *h, const struct hw_event *e);
/* The first that waits of those from `*number` on, and puts `*number` behind it; NULL: none. Valid until the next
 * transition is remembered. */
const struct hw_event *hw_history_waiting(const struct hw_history *h, uint64_t *number);
/* How many were ever remembered: the number of the next. */
uint64_t hw_history_end(const struct hw_history *h);
/* Whether older transitions than those here stand in the stream. */
void hw_history_set_cut(struct hw_history *h, bool cut);
/* What is behind a place, at most `cap` of it, into `page` and `events`. Valid until the next hw_history_add(). */
void hw_history_after(const struct hw_history *h, struct hw_event_id at, struct hw_event *events, size_t cap,
                      struct hw_event_page *page);

/* events.c: the event stream's clients. */
hw_http_handler hw_serve_events;
/* Each second: what a timer that found no memory has left undone. */
void hw_hub_tick(struct hw_hub *h);
/* Cuts the streams of users who have lost the right to them. Returns how many there were. */
unsigned hw_hub_cut_unadmitted(struct hw_hub *h);
/* The same, and answers that are passed on. */
unsigned hw_close_unadmitted(struct hw_control *c);

struct hw_hub *hw_hub_new(struct hw_control *c);
/* Once all connections are closed. */
void hw_hub_free(struct hw_hub *h);

/* passes.c: what other daemons answer: tasks, and what happened long ago. */
hw_http_handler hw_serve_tasks, hw_serve_durable;

/* samples.c: the last hour. */
hw_http_handler hw_serve_samples;
struct hw_samples *hw_samples_new(void);
void hw_samples_free(struct hw_samples *s);
/* Heartbeats a second, over the last few; transitions in the last minute. */
double hw_samples_rate(const struct hw_samples *s);

/* web.c: the dashboard's files. `rest`: a file's name, "" for the page. */
hw_http_handler hw_serve_web;

#endif

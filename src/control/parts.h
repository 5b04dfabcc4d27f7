/* SPDX-License-Identifier: MIT */
/* Internals shared by the files of the control API. The routes are in control.c. */
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
struct hw_importer;
struct hw_inventory_change;
struct hw_json;
struct hw_pager;
struct hw_proxy;
struct hw_samples;

#define HW_CONTROL_BODY_MAX (8 * 1024 * 1024) /* of a request at the unix socket: a part of an import */

struct hw_control {
	struct event_base *base; /* borrowed */
	struct hw_http http;
	struct hw_pager *pager;
	struct hw_hub *hub;
	struct hw_history *history;
	struct hw_samples *samples;
	struct hw_asks *asks;
	struct hw_importer *importer;
	struct hw_inventory_change *changes;      /* owned: requests that wait for the store (inventory.c) */
	struct hw_proxy *tasks, *durable, *alert; /* NULL: that daemon's paths are not forwarded */
	const struct hw_monitor *monitor;         /* borrowed */
	const struct hw_control_ops *ops;
	void *arg;
	struct hw_mono begun;        /* of a former standby: owner since then; 0: unknown */
	int64_t stood_ns[HW_CAUSES]; /* ... and its blindness before that */
};

/* The handlers' `arg` is a struct hw_control. */

/* observe.c: the daemon as a whole. */
hw_http_handler hw_serve_status, hw_serve_groups, hw_serve_overview, hw_serve_health, hw_serve_ready, hw_serve_metrics,
	hw_serve_wheel;

/* Whether the monitor has been blind ever since its start. If so, the devices have not had the time yet to send a
 * heartbeat. */
bool hw_is_starting(const struct hw_control *c);
/* If the monitor is blind, writes since when and for how long. Also writes how much time the devices still have to send
 * a heartbeat. */
void hw_write_blind_times(struct hw_json *j, const struct hw_control *c);

/* devices.c: single devices. */
hw_http_handler hw_serve_device;
/* Whether the device is shown, which means that it is neither provisional nor forgotten. */
bool hw_device_visible(const struct hw_device *d);
/* Writes the members of a device. */
void hw_write_device(struct hw_json *j, const struct hw_control *c, struct hw_now now, const struct hw_device *d);
/* Writes `parents`, the ids of the device's parents, if one of them is known. */
void hw_write_parent_ids(struct hw_json *j, const struct hw_monitor *m, const struct hw_device *d);
/* Writes the members of a device as of a transition. */
void hw_write_event(struct hw_json *j, const struct hw_control *c, const struct hw_event *e);
/* Finds the device whose id is the rest of the path. If there is none, answers the request and returns NULL. */
struct hw_device *hw_find_device(struct hw_control *c, struct evhttp_request *req, const char *rest, uint32_t *index);

/* Writes the members of an unseen device. */
struct hw_expected_view;
void hw_write_unseen(struct hw_json *j, const struct hw_control *c, const struct hw_expected_view *v);
/* Returns where a list of the unseen devices continues after this id: how many unseen devices were listed before,
 * counted from the end of their table. HW_NIL: the id is not unseen. */
uint32_t hw_unseen_after(const struct hw_control *c, const char *id, size_t len);

/* forget.c: forgets a device, or asks the node that owns it. */
hw_http_handler hw_serve_forget;
struct hw_asks *hw_asks_new(struct hw_control *c);
/* Call after all connections are closed. */
void hw_asks_free(struct hw_asks *a);

/* inventory.c, importer.c: the inventory. */
hw_http_handler hw_serve_inventory, hw_serve_inventory_put, hw_serve_inventory_delete, hw_serve_device_patch;
struct hw_importer *hw_importer_new(struct hw_control *c);
/* Call both after all connections are closed. */
void hw_importer_free(struct hw_importer *i);
void hw_inventory_changes_free(struct hw_control *c);

/* nodes.c: several nodes. */
hw_http_handler hw_serve_nodes;
/* Fills in what this node knows of the nodes. Returns false if there is only this node. */
bool hw_nodes_of(const struct hw_control *c, struct hw_control_nodes *out);
/* Whether this node has not reached Redis for a lease. All that it shows is then from the time `as_of_ms`. */
bool hw_nodes_is_lapsed(const struct hw_control_nodes *nodes);
/* Whether another node owns the fleet. This node then has no devices. */
bool hw_stands_by(const struct hw_control *c);
/* Writes the members of /v1/nodes. */
void hw_write_nodes(struct hw_json *j, const struct hw_control *c);
/* If there are several nodes, writes the member `cluster` of /v1/status. */
void hw_write_cluster(struct hw_json *j, const struct hw_control *c);
/* Appends to `why` the reasons why this node is not ready in the cluster. `n` is the length of `why`; returns the
 * new length. */
size_t hw_nodes_trouble(const struct hw_control *c, char *why, size_t n, size_t cap);

/* list.c: the list, written over several turns of the loop. */
hw_http_handler hw_serve_list;
struct hw_pager *hw_pager_new(struct hw_control *c);
/* Call after all connections are closed. */
void hw_pager_free(struct hw_pager *p);

/* history.c: the last transitions, in memory. */
#define HW_HISTORY 10000
hw_http_handler hw_serve_transitions, hw_serve_device_events;
/* `cut`: see hw_history_set_cut(). */
struct hw_history *hw_history_new(bool cut);
void hw_history_free(struct hw_history *h);
/* Adds a transition, overwriting the oldest. Does nothing if there is no memory. */
void hw_history_append(struct hw_history *h, const struct hw_event *e);
/* Adds a transition that the store has returned. If the history already has a transition with this device and seq,
 * gives it the stream id. */
void hw_history_add(struct hw_history *h, const struct hw_event *e);
/* ... that waits for its stream id. */
void hw_history_await(struct hw_history *h, const struct hw_event *e);
/* Returns the first item without an id whose number is at least `*number`, and sets `*number` to the next number.
 * NULL: there is no such item. Valid until the next addition. */
const struct hw_event *hw_history_waiting(const struct hw_history *h, uint64_t *number);
/* The number of the next item. */
uint64_t hw_history_end(const struct hw_history *h);
/* Sets whether the stream has transitions that are older than the oldest one in the history. */
void hw_history_set_cut(struct hw_history *h, bool cut);
/* Copies at most `cap` items after an id into `page` and `events`. Valid until the next hw_history_add(). */
void hw_history_after(const struct hw_history *h, struct hw_stream_id at, struct hw_event *events, size_t cap,
                      struct hw_event_page *page);

/* events.c: clients of the event stream. */
hw_http_handler hw_serve_events;
/* Call once a second: repeats an event_add that failed. */
void hw_hub_tick(struct hw_hub *h);
/* Closes the streams of users who have lost their rights. Returns how many streams it has closed. */
unsigned hw_hub_cut_unadmitted(struct hw_hub *h);
/* The same, including forwarded answers. */
unsigned hw_close_unadmitted(struct hw_control *c);

struct hw_hub *hw_hub_new(struct hw_control *c);
/* Call after all connections are closed. */
void hw_hub_free(struct hw_hub *h);

/* passes.c: handlers for the paths of the other daemons: tasks, history and alert. */
hw_http_handler hw_serve_tasks, hw_serve_durable, hw_serve_alert;

/* samples.c: the last hour. */
hw_http_handler hw_serve_samples;
struct hw_samples *hw_samples_new(void);
void hw_samples_free(struct hw_samples *s);
/* Heartbeats per second, smoothed. */
double hw_samples_rate(const struct hw_samples *s);

/* web.c: the dashboard's files. `rest`: a file's name; "": the page. */
hw_http_handler hw_serve_web;

#endif

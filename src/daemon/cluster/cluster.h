/* SPDX-License-Identifier: MIT */
/*
 * One of several nodes ([cluster] mode = mirror or standby). src/nodes decides, and the files of this folder act. The
 * daemon's other files report events to hw_app_nodes(). hw_app_cluster_turn() takes the orders of src/nodes, and passes
 * them to these files:
 *
 * - cluster_redis: commands to Redis, over a connection of their own
 * - cluster_sentinel: whether Sentinels confirm that this Redis is the master
 * - cluster_gate: partitions that are owned, lost, authoritative, drained or flushed
 * - cluster_stream: the other nodes' writes; not used if mode = standby
 * - cluster_broker: presence, barriers, and evictions at the broker
 * - cluster_standby: mode = standby: when this node receives the fleet's messages
 * - cluster_view: what is logged and shown of the cluster
 *
 * This header is all of the cluster that the daemon's other files include. If mode = off, there is no cluster, and each
 * function returns at once.
 */
#ifndef HW_CLUSTER_DAEMON_H
#define HW_CLUSTER_DAEMON_H

#include "control/nodes.h"
#include "daemon/context.h"
#include "nodes/nodes.h"

struct hw_json;
struct hw_publisher_event;
struct hw_reader_event;

/* --- its life */

/* Called after struct hw_redis was created. Returns 0 or -ENOMEM. */
int hw_app_cluster_start(struct hw_app *a);
/* Closes the cluster's connections. Called before the control API and struct hw_redis are freed, because these may
 * still call functions of this header, and then find no cluster. */
void hw_app_cluster_free(struct hw_app *a);

/* NULL: mode = off. */
struct hw_nodes *hw_app_nodes(const struct hw_app *a);
/* Takes all orders of src/nodes, carries them out, and sets the timer. Called in each turn, before the sinks are
 * pumped. */
void hw_app_cluster_turn(struct hw_app *a, struct hw_now now);
/* Called each second. */
void hw_app_cluster_tick(struct hw_app *a, struct hw_now now);
/* Whether this node may connect to the broker. A node must first join: if another node has the same name, connecting
 * would disconnect that node, because both have the same client ids. */
bool hw_app_cluster_connects(const struct hw_app *a, struct hw_now now);
/* hw_app_cluster_stop(): begins a clean stop. hw_app_cluster_stopped(): whether all partitions are released, and this
 * node has left. */
void hw_app_cluster_stop(struct hw_app *a, struct hw_now now);
bool hw_app_cluster_stopped(const struct hw_app *a);

/* Allows src/nodes to use Redis; its first command is JOIN. Called when the connection is up, unless a monitor without
 * [cluster] is known to use the prefix (prefix_guard.h). */
void hw_app_cluster_join(struct hw_app *a);

/* --- the broker */

/* Greater than the number of any barrier of the core, and less than the numbers from HW_FENCE on (the share topic). */
#define HW_CLUSTER_BARRIER (UINT64_C(1) << 62)

/* These bits are set in the publish ids of a presence that src/nodes has ordered, and of the known fencing tokens that
 * are published before the presence. Any other presence has publish id 0. */
#define HW_CLUSTER_PUBLISH_ID UINT64_C(0xc000000000000000)

/* A session of the publisher begins, or is lost. */
void hw_app_cluster_session(struct hw_app *a, struct hw_now now, bool up);
/* Called when the barriers' connection is up again. Sends the last barrier again if it was not received. */
void hw_app_cluster_barriers_up(struct hw_app *a, struct hw_now now);
/* Handles the publisher's answer (acknowledged or refused) to a publish id with HW_CLUSTER_PUBLISH_ID. */
void hw_app_cluster_answered(struct hw_app *a, struct hw_now now, const struct hw_publisher_event *ev);
/* Called when a barrier of this node is back on a reader. `number` is the barrier's number minus HW_CLUSTER_BARRIER. */
void hw_app_cluster_back(struct hw_app *a, unsigned reader, struct hw_now now, uint64_t number);
/* A reader is subscribed, or its connection is lost. */
void hw_app_cluster_reader(struct hw_app *a, unsigned reader, struct hw_now now, bool up);
/* Called for reader 0 when the broker has sent the retained messages again. */
void hw_app_cluster_replayed(struct hw_app *a, struct hw_now now);
/* Reader 0 may have lost messages. */
void hw_app_cluster_lossy(struct hw_app *a, struct hw_now now);
/* Whether a message is a node's presence, which is never a heartbeat. If so, this function handles it. */
bool hw_app_cluster_message(struct hw_app *a, unsigned reader, struct hw_now now, const struct hw_reader_event *ev);
/* Called when a blindness has ended. If it was lossy, all presences are read again. */
void hw_app_cluster_sees(struct hw_app *a, struct hw_now now, bool lossy);

/* --- presence, and statuses */

/* Whether a presence is due: src/nodes has ordered one, or a refused one must be tried again. */
bool hw_app_cluster_presence_due(const struct hw_app *a, struct hw_now now);
/* Publishes the greatest fencing tokens known, before the presence with number `seq`. Sets *publish_id for that
 * presence. Returns false if the publisher's queue has no room. */
bool hw_app_cluster_publish_known(struct hw_app *a, uint64_t seq, uint64_t *publish_id);
/* The presence with this publish id was queued. */
void hw_app_cluster_published(struct hw_app *a, uint64_t seq, uint64_t publish_id);
/* Writes the members of this node's presence that are about the cluster, such as its claims. Writes nothing if mode =
 * off. */
void hw_app_cluster_presence(const struct hw_app *a, bool online, struct hw_json *j);
#define HW_CLUSTER_PRESENCE_MAX (HW_PARTITIONS * 25 + 512)
/* Whether this device's statuses may be published now. Always true if mode = off. */
bool hw_app_may_publish(const struct hw_app *a, const struct hw_device *d);

/* --- the store */

/* Called when Redis has refused a transition of this device because another node owns the device. The transition
 * will never be written. */
void hw_app_cluster_withdraw(struct hw_app *a, struct hw_ref device);
/* Whether transitions of devices in this partition are still being withdrawn. */
bool hw_app_cluster_withdraws(const struct hw_app *a, unsigned partition);
/* Whether this node owns the device, and has read everything that the previous owner wrote. Always true if mode =
 * off. */
bool hw_app_cluster_has_followed(const struct hw_app *a, const struct hw_device *d);
/* Called when a write of this device has become pending (`pending`), or is no longer pending. */
void hw_app_cluster_pending(struct hw_app *a, const struct hw_device *d, bool pending);
/* Requests that the whole store is read again. `keeps`: devices that are missing in the store are not forgotten.
 * Returns false if this node does not follow the stream of other nodes. */
bool hw_app_cluster_reread(struct hw_app *a, bool keeps);
/* Requests that this device alone is read again. Until it is, this node becomes authoritative for no partition. Returns
 * false if this node does not follow the stream of other nodes. */
bool hw_app_cluster_reread_device(struct hw_app *a, struct hw_id id);
/* Called when the loader has read the whole store. Returns whether this was not the first load. */
bool hw_app_cluster_reloaded(struct hw_app *a, bool complete);
/* Called when the connection that reads the devices' hashes is new. If the connection that reads the stream had already
 * changed to another Redis, the hashes that were read since may be those of the previous Redis. They are then read
 * again. */
void hw_app_cluster_linked(struct hw_app *a);
/* The store was found empty. */
void hw_app_cluster_emptied(struct hw_app *a);

/* --- requests, and what is shown */

/* Forgets a device, or asks its owner to forget it. */
enum hw_forgotten hw_app_forget(struct hw_app *a, uint64_t ticket, const char *id, size_t len);
/* Describes the cluster for the control API. Shows no node before the cluster starts and after it ends. */
void hw_app_show_nodes(const struct hw_app *a, struct hw_control_nodes *out);
/* Returns the node that owns this device; valid until the next turn. NULL: no node owns it, or mode = off. */
const char *hw_app_cluster_owner(const struct hw_app *a, const struct hw_device *d);
/* Returns the last node that sent a message and is no member. NULL: none, or that node has joined since. */
const char *hw_app_cluster_stranger(const struct hw_app *a);
/* Whether this is a node of this cluster, or may be one. */
bool hw_app_cluster_knows(const struct hw_app *a, const char *node);
/* Returns the node that is known to own the fleet; valid until the next turn. "": none. */
const char *hw_app_standby_owner(const struct hw_app *a);
/* A text for people about a node that stands by. */
void hw_app_standby_text(const struct hw_app *a, char *text, unsigned cap);

/* --- mode = standby: the daemon gives the fleet up and starts over */

/* Returns for how much of the last `length_ns` this node did not stand by. */
int64_t hw_app_standby_since(const struct hw_app *a, struct hw_now now, int64_t length_ns);
/*
 * hw_app_standby_end(): the last step before the daemon starts over, when everything else is finished. Orders the
 * publisher's thread to end, as was done with the readers' threads. A thread that is blocked in name resolution or in a
 * connect could connect with its client id later, and so disconnect its successor. So the daemon waits for all threads,
 * while the loop runs. hw_app_standby_ended(): whether all threads have ended, or have taken too long.
 */
void hw_app_standby_end(struct hw_app *a, struct hw_now now);
bool hw_app_standby_is_ending(const struct hw_app *a);
bool hw_app_standby_ended(struct hw_app *a, struct hw_now now);

/* Counters. */
struct hw_cluster_totals {
	uint64_t claims, releases, evictions, joins, removals;
	uint64_t takeovers_clean, takeovers_unclean; /* numbers of partitions */
	uint64_t fenced_redis, fenced_broker;
	double takeover_s_last; /* from the claim until authoritative; 0: none yet */
};

/* Called when a reload was applied: the node may now receive groups for which it was deaf. */
void hw_app_cluster_reconfigured(struct hw_app *a);

/* What the next daemon in this process goes on with. */
struct hw_cluster_kept {
	struct hw_cluster_totals totals;
	bool was_blind; /* this daemon never received its messages */
	bool was_deaf;  /* a group was deaf */
};
void hw_app_cluster_keep(const struct hw_app *a, struct hw_cluster_kept *out);
void hw_app_cluster_go_on(struct hw_app *a, const struct hw_cluster_kept *kept);

#endif

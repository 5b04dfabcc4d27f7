/* SPDX-License-Identifier: MIT */
/*
 * The connections to the broker: the readers, the publisher, and a connection for the monitor's messages to itself. The
 * files:
 *
 * - broker: the publisher's events, and everything that is about all connections
 * - barriers: the monitor's messages to itself, which are barriers and canaries
 * - feed: passes the readers' events to the core
 * - dial: opens the connections
 * - subscriptions: the filters that the readers subscribe to
 * - share: tests shared subscriptions, if there are several readers
 */
#ifndef HW_DAEMON_BROKER_H
#define HW_DAEMON_BROKER_H

#include "daemon/context.h"
#include "mqtt/mqtt.h"

/* Sets a->broker. Returns 0 or -ENOMEM. */
int hw_app_broker_new(struct hw_app *a);
/* Closes the connections. */
void hw_app_broker_close(struct hw_app *a);
void hw_app_broker_free(struct hw_app *a);

/* Starts the publisher and the readers. hw_app_broker_close() frees them, also after an error. Returns 0 or -errno. */
int hw_app_dial(struct hw_app *a);
/* Like hw_app_dial(), but called while the loop runs. Does nothing if the publisher has been started already, or if the
 * daemon is stopping. On an error, stops the daemon. */
void hw_app_dial_late(struct hw_app *a);

/* --- the publisher */

/* NULL: hw_app_dial() was not called yet. */
struct hw_publisher *hw_app_publisher(const struct hw_app *a);
bool hw_app_publisher_is_up(const struct hw_app *a);
/* The time of the last loss; 0: none. */
struct hw_mono hw_app_publisher_lost(const struct hw_app *a);
const struct hw_mqtt_conf *hw_app_publisher_conf(const struct hw_app *a);

/* --- the monitor's messages to itself */

/* Handle the outputs HW_OUT_BARRIER, HW_OUT_REOPEN and HW_OUT_CANARY of the core. */
void hw_app_barrier(struct hw_app *a, struct hw_now now, uint64_t number);
void hw_app_reopen_barriers(struct hw_app *a);
void hw_app_canary(struct hw_app *a, const struct hw_out *out);
/* Sends a barrier that is not the core's. */
void hw_app_send_barrier(struct hw_app *a, uint64_t number);
/* Called when barriers do not come back. Logs which right is missing, as far as the broker shows it. */
void hw_app_log_denied(struct hw_app *a, struct hw_now now);

/* --- the readers */

/* Processes the events that the last turn left in the rings of readers: a reader had used up its share, or the loop
 * woke late. Returns whether there were such events; a turn has then run. */
bool hw_app_read_on(struct hw_app *a);
/* Whether a reader has events left. */
bool hw_app_feed_is_unread(const struct hw_app *a);
/* hw_app_feed_begin_turn(): a turn begins, and each reader has its whole share again. hw_app_feed_is_spent():
 * whether a reader has used up its share of this turn. */
void hw_app_feed_begin_turn(struct hw_app *a);
bool hw_app_feed_is_spent(const struct hw_app *a);
/* Called when the loop woke too late. Everything that the sockets contain is then read before a device is judged. */
void hw_app_feed_stalled(struct hw_app *a);
/* A stop begins: nothing is read any more. */
void hw_app_feed_stop(struct hw_app *a);

bool hw_app_reader_is_up(const struct hw_app *a, unsigned reader);
/* Handles HW_OUT_RECONNECT. */
void hw_app_reopen_reader(struct hw_app *a, unsigned reader);
/* Reader 0 requests the retained messages again. */
void hw_app_replay(struct hw_app *a);
/* Reconnects reader 0, so that it gets the retained messages again. */
void hw_app_reread(struct hw_app *a);
/* Requests the retained messages again if a group has a `while` condition. In a cluster, hw_app_cluster_sees() does
 * this. */
void hw_app_ask_upstreams(struct hw_app *a);
/* Requests the retained values of the topics of `while` alone, to find out whether this node may still read them.
 * Called each second; `is_time` as in hw_monitor_renew_upstreams(). */
void hw_app_renew_upstreams(struct hw_app *a, bool is_time);
/* Changes the readers' subscriptions after the groups have changed. `restarts`: the readers also reconnect. Returns 0,
 * or -ENOMEM, and some readers may then keep the previous subscriptions. */
int hw_app_subscribe(struct hw_app *a, bool restarts);
/* Whether a group's filter also matches the nodes' presences, and delivers new messages with the retain flag (MQTT
 * 5). Returns true if memory cannot be allocated. */
bool hw_app_nodes_are_flagged(struct hw_app *a);

/* --- all of them */

/* Called once a turn. hw_app_broker_answers(): reports to the core which barriers the broker has answered.
 * hw_app_broker_flush(), at the end of the turn: sends what was published. */
void hw_app_broker_answers(struct hw_app *a);
void hw_app_broker_flush(struct hw_app *a);
/* Called each second. */
void hw_app_broker_tick(struct hw_app *a, struct hw_now now);
/* hw_app_links_are_up(): whether all connections are up. hw_app_readers_are_up(): whether the readers are up and
 * shared subscriptions work. */
bool hw_app_links_are_up(const struct hw_app *a);
bool hw_app_readers_are_up(const struct hw_app *a);
bool hw_app_barriers_are_up(const struct hw_app *a);
/* Returns "up", or which connection is down and why. Valid until the next call. */
const char *hw_app_broker_text(struct hw_app *a);

struct hw_app_broker_counts {
	uint64_t reader_reconnects, publisher_reconnects, barriers_reconnects;
	uint64_t reader_wakeups;
	uint64_t waiting; /* messages that were read, and wait for the loop */
};
struct hw_app_broker_counts hw_app_broker_counts(const struct hw_app *a);

/* Called before the daemon starts over in this process. hw_app_readers_end() and, later, hw_app_publishers_end()
 * order the threads to end. hw_app_broker_has_ended(): whether all of them have ended. */
void hw_app_readers_end(struct hw_app *a);
void hw_app_publishers_end(struct hw_app *a, int linger_ms);
bool hw_app_broker_has_ended(const struct hw_app *a);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A daemon's process in virtual time: the real wiring (src/daemon, from hw_app_new() to hw_app_free()) around the real
 * core. These files replace the parts that the wiring uses:
 *
 *     sim_host   the event loop and the clocks, in place of libevent and src/run
 *     sim_mqtt   the readers and the publishers, in place of src/mqtt
 *     sim_redis  the sink, the load and the sight record, in place of src/redis
 *     sim_watch  replaces nothing: it shows the oracle the input and the output of the core (ld --wrap)
 *     absent     what no simulated world has
 *
 * The process can be stopped and resumed, suspended with its machine, killed, and started again. All times that the
 * core and the oracle see are the monotonic clock of the monitor's machine.
 */
#ifndef SIM_HOST_H
#define SIM_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/config/settings.h"
#include "heartwheel/monitor.h"
#include "sim_broker.h"

struct sim;
struct hw_app;
struct hw_loop;
struct hw_redis;

#define SIM_EVENTS_MAX 16

/* A connection to the broker. */
struct sim_link {
	bool up;     /* as the core was told */
	bool open;   /* as its client supposes */
	bool drains; /* of a reader: the loop waits until the socket is empty */
	uint32_t stamp;
	int64_t wait_ns;
	struct sim_fifo signs; /* what the client reports to the loop before the loop gets the packets in the pipe */
};

struct sim_host {
	struct hw_app *app;   /* owned; NULL: not running */
	struct hw_monitor *m; /* the app's; NULL: not running */
	struct hw_redis *redis;
	const struct hw_loop *loop;
	struct hw_settings settings;
	struct hw_settings_group group[SIM_GROUPS_MAX];
	struct event *event[SIM_EVENTS_MAX]; /* owned by the app */
	uint32_t run;
	bool stopped, asleep;                    /* the process; its machine */
	int64_t reader_stopped[SIM_READERS_MAX]; /* this one alone, since then; -1: no */
	int64_t slept_ns, asleep_since;
	int64_t slept_known_ns; /* so much of it the loop has noticed */
	int64_t wall_offset_ms, timer_ns;
	uint32_t tick_stamp, event_stamp, readers_started;
	int64_t answered_ns;                       /* time of the broker's last acknowledgement of a barrier; 0:
	                                            * never */
	struct sim_link link[SIM_READERS_MAX + 2]; /* after the readers: barriers, statuses */
	int64_t *published_at;                     /* owned; for each device the true time at which its last status
	                                            * was sent */
	size_t elements_taken[SIM_READERS_MAX];    /* elements of the list that the core has not finished; see `left` */
	bool left[SIM_READERS_MAX];                /* the core has not finished all that it was given */
	uint64_t leftovers;                        /* so often that was so */
	struct hw_transition shown;                /* the last that came out of the core */
	bool load_wanted;
	bool store_lost; /* the store has changed: the sight record is missing */
	bool cut;        /* the link to the store is lost, and the loop has not noticed this yet */
	int64_t started_wall_ms, mark_found_ms;
	uint64_t to_forge; /* for a lie: the barrier that is reported as returned when the loop wakes; 0: none */
	bool to_blind;     /* for a lie: a stall of the loop is reported when the loop wakes */
	unsigned spins;    /* consecutive turns that did nothing and requested another one at once */
};

void sim_host_init(struct sim *s);
void sim_host_fini(struct sim *s);
struct hw_now sim_host_now(const struct sim *s);
/* Whether read messages wait for the next turn. */
bool sim_host_is_behind(const struct sim *s);
/* Whether the process and its machine run. */
bool sim_host_is_awake(const struct sim *s);
/* A turn of the loop begins: it calls a callback of the app. */
void sim_host_turn_begins(struct sim *s);

void sim_host_on_start(struct sim *s);
void sim_host_on_pipe(struct sim *s, uint32_t link);
void sim_host_on_due(struct sim *s, uint32_t event, uint32_t stamp);
void sim_host_on_tick(struct sim *s, uint32_t stamp);
void sim_host_on_republish(struct sim *s);

void sim_host_freeze(struct sim *s, bool suspended);
void sim_host_thaw(struct sim *s);
/* Kills the process, which sends nothing more. */
void sim_host_crash(struct sim *s);
/* One of the readers stops, and resumes. */
bool sim_host_stop_reader(struct sim *s, uint32_t reader);
void sim_host_go_on_reader(struct sim *s, uint32_t reader);
/* The plan's groups and configuration have changed. */
void sim_host_reload(struct sim *s);
void sim_host_forget(struct sim *s, uint32_t device);

/* The record of a device, or NULL; the device of a record. */
const struct hw_device *sim_host_device(const struct sim *s, uint32_t device);
uint32_t sim_host_number(const struct hw_device *d);

/* --- sim_mqtt.c */
void sim_mqtt_start(struct sim *s);
void sim_mqtt_on_dial(struct sim *s, uint32_t link, uint32_t stamp);
void sim_mqtt_on_closed(struct sim *s, uint32_t link, uint32_t conn);
/* Whether the loop can read something from the link; first does what the client's thread does. */
bool sim_mqtt_is_readable(struct sim *s, uint32_t link);
/* The reader's thread woke late. */
void sim_mqtt_stalled(struct sim *s, uint32_t reader, int64_t since);
/* Ends the connection of barriers, of statuses, or both. */
void sim_mqtt_lose(struct sim *s, bool barriers, bool statuses);
/* If the connection of the barriers is open, closes it for up to an eighth of a timeout. */
void sim_mqtt_rest(struct sim *s);

/* What a message was made from, by its topic. */
struct sim_read {
	struct sim_packet packet;
	uint32_t reader;
	char topic[40], payload[112];
};
const struct sim_read *sim_mqtt_read(const char *topic);

/* --- sim_redis.c: the store's answers */
/* Lets the link follow the state of the store. The store then carries out the orders that it was given. */
void sim_redis_look(struct sim *s);
void sim_redis_on_load(struct sim *s, uint32_t run);
/* The store may be older than the monitor's state, so the monitor writes everything to it. */
void sim_redis_reconcile(struct sim *s);
/* A plain refresh has found no key. */
void sim_redis_without_key(struct sim *s, struct hw_ref ref);
void sim_redis_confirmed(struct sim *s, struct hw_ref ref, uint64_t seq);
void sim_redis_newer(struct sim *s, struct hw_ref ref, uint64_t stored_seq);
void sim_redis_rewrite(struct sim *s, struct hw_ref ref);

#endif

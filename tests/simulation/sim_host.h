/* SPDX-License-Identifier: MIT */
/*
 * What is around the core in a daemon: the loop that wakes it, its connections, what it owes the store and the broker.
 * It does with the core what src/daemon does, in virtual time. What it finds out when it wakes, and how long it sleeps,
 * it shares with the daemon (heartwheel/pace.h); the order of the calls between is like the daemon's, and not shared
 * with it. It can be stopped and go on, be suspended with its machine, be killed and started again.
 *
 * All times that the core and the oracle see are the monotonic clock of the monitor's machine.
 */
#ifndef SIM_HOST_H
#define SIM_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "heartwheel/monitor.h"
#include "heartwheel/pace.h"
#include "sim_broker.h"

struct sim;

struct sim_link {
	bool up;
	uint32_t stamp;
	int64_t wait_ns;
};

struct sim_owed {
	bool store, status;
	bool flies;    /* the status is on its way to the broker, */
	int64_t since; /* ... true time, since then */
};

struct sim_gathered; /* sim_feed.c */

struct sim_host {
	struct hw_monitor *m; /* owned; NULL: not running */
	uint32_t run;
	bool stopped, asleep;                    /* the process; its machine */
	int64_t reader_stopped[SIM_READERS_MAX]; /* this one alone, since then; -1: no */
	int64_t slept_ns, asleep_since;
	struct hw_pace pace;
	int64_t wall_offset_ms;
	uint32_t due_stamp, tick_stamp;
	struct sim_link link[SIM_READERS_MAX + 2]; /* after the readers: barriers, statuses */
	struct sim_owed *pending;                  /* owned; a device */
	struct sim_gathered *gathered;             /* owned; a reader */
	uint64_t leftovers;                        /* so often the core has not worked off all that it was given */
	bool loading, load_wanted;
	bool store_lost; /* the store is not what it was: the mark is not there */
	int64_t started_wall_ms, mark_found_ms, mark_told_ms;
	uint32_t load_at;
	uint64_t to_forge; /* a lie's: the barrier that is said to be back when the loop wakes; 0: none */
	unsigned spins;    /* turns on end that did nothing and asked for another at once */
};

void sim_host_init(struct sim *s);
void sim_host_fini(struct sim *s);
struct hw_now sim_host_now(const struct sim *s);
/* Whether something that was read waits for the next turn. */
bool sim_host_is_behind(const struct sim *s);

void sim_host_on_start(struct sim *s);
void sim_host_on_pipe(struct sim *s, uint32_t reader);
void sim_host_on_due(struct sim *s, uint32_t stamp);
void sim_host_on_tick(struct sim *s, uint32_t stamp);
void sim_host_on_dial(struct sim *s, uint32_t link, uint32_t stamp);
void sim_host_on_closed(struct sim *s, uint32_t link, uint32_t conn);
void sim_host_on_republish(struct sim *s);
void sim_host_on_load(struct sim *s, uint32_t run);

void sim_host_freeze(struct sim *s, bool suspended);
void sim_host_thaw(struct sim *s);
/* Killed: nothing is said to anybody. */
void sim_host_crash(struct sim *s);
/* The connection of barriers, of statuses, or both. */
void sim_host_lose_publisher(struct sim *s, bool barriers, bool statuses);
/* One of its readers stands still, and goes on. */
bool sim_host_stop_reader(struct sim *s, uint32_t reader);
void sim_host_go_on_reader(struct sim *s, uint32_t reader);
/* The plan's groups and configuration are others now. */
void sim_host_reload(struct sim *s);
void sim_host_forget(struct sim *s, uint32_t device);

/* From the store. */
/* It is there again, or has been read: what it holds may be older than what is known. */
void sim_host_reconcile(struct sim *s);
void sim_host_confirmed(struct sim *s, uint32_t device, struct hw_ref ref, uint64_t seq);
void sim_host_newer(struct sim *s, struct hw_ref ref, uint64_t stored_seq);
void sim_host_rewrite(struct sim *s, struct hw_ref ref);

/* The record of a device, or NULL; the device of a record. */
const struct hw_device *sim_host_device(const struct sim *s, uint32_t device);
uint32_t sim_host_number(const struct hw_device *d);

#endif

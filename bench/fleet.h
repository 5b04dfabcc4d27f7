/* SPDX-License-Identifier: MIT */
/*
 * A fleet of devices in the core. The core is driven as the daemon drives it: with batches of messages. After each
 * batch its outputs are drained, and barriers return at once. Time is virtual, and passes only when the caller says so.
 *
 * Ids have 14 bytes. The topics are those of the configuration that heartwheel ships.
 */
#ifndef HEARTWHEEL_BENCH_FLEET_H
#define HEARTWHEEL_BENCH_FLEET_H

#include "heartwheel/monitor.h"

#define FLEET_BATCH       HW_BATCH
#define FLEET_ID_LEN      14
#define FLEET_TIMEOUT_MS  30000
#define FLEET_INTERVAL_MS 10000

struct fleet {
	struct hw_monitor *m;
	struct hw_now now;
	uint64_t online, offline, refreshes; /* came out so far */
	uint64_t barriers[16];               /* sent, and not back yet */
	unsigned n_barriers;
};

/* Room for messages in the form in which the ring returns them: one topic after the other. */
#define FLEET_CHUNK 1024
struct fleet_chunk {
	struct hw_message messages[FLEET_CHUNK];
	struct hw_id ids[FLEET_CHUNK];
	char topics[FLEET_CHUNK][48];
};

/* Creates a monitor that sees, without devices. Ends the program if there is no memory. */
void fleet_make(struct fleet *f);
/* The same, in a group that learns its timeouts. */
void fleet_make_learning(struct fleet *f);
/* The same, which listens to keys as well. */
void fleet_make_keyed(struct fleet *f);
void fleet_free(struct fleet *f);

/* Writes heartbeats of devices order[0 .. n) into the chunk; n is at most FLEET_CHUNK. The caller owns `payload` and
 * keeps it until the chunk is no longer used. */
void fleet_write(struct fleet_chunk *c, const uint32_t *order, unsigned n, const char *payload);

/* Gives the first `n` messages of the chunk to the core, `batch` at a time, and drains the core's outputs after each
 * batch. */
void fleet_beat(struct fleet *f, struct fleet_chunk *c, unsigned n, unsigned batch);

/* Drains the core's outputs that follow from an input of the caller's own. */
void fleet_drain(struct fleet *f);

/* Each device of order[0 .. n) sends one heartbeat, spread over `over_ms` of virtual time; all outputs that become
 * due meanwhile are drained. */
void fleet_beat_all(struct fleet *f, struct fleet_chunk *c, const uint32_t *order, uint32_t n, int64_t over_ms);

/* Lets virtual time pass, and drains all outputs that become due. Returns the real time that this took, in ns. */
int64_t fleet_pass(struct fleet *f, int64_t ns);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A model of the store. It contains exactly what the last transition or refresh that reached it has written. Orders are
 * carried out in their order, each after a delay. Orders that were not sent when the monitor died are lost. A
 * transition is written only over a lesser seq, a refresh only over the same seq.
 *
 * Each online device has a key that expires. A plain refresh extends the key if it exists, and compares nothing.
 * Another program deletes a key now and then.
 */
#ifndef SIM_STORE_H
#define SIM_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/monitor.h"

struct sim;

struct sim_record {
	bool known, once;
	enum hw_state state;
	enum hw_reason reason;
	int64_t since_ms, last_seen_ms, own_timeout_ms;
	char gaps[HW_GAPS_TEXT]; /* "": none */
	uint64_t seq;
	unsigned group;
};

enum sim_order_kind { SIM_EDGE, SIM_REWRITE, SIM_REFRESH, SIM_PLAIN, SIM_MARK, SIM_PUBLISHED };

struct sim_key {
	int64_t until; /* 0: it does not exist */
	int64_t set_at, set_mono;
	bool deleted; /* by another program */
};

struct sim_order {
	int64_t at, given_at;
	enum sim_order_kind kind;
	uint32_t device, run;
	struct hw_ref ref;
	struct sim_record record;
	int64_t mark_ms;
	int64_t ttl_ns;     /* of the device's key */
	bool instead;       /* a full refresh in place of a plain one that found no key */
	uint64_t published; /* P */
};

struct sim_store {
	struct sim_record *record; /* owned; a device */
	struct sim_key *key;       /* owned; a device */
	uint64_t plain;            /* plain refreshes so far */
	int64_t disturbed_at;      /* the last time at which orders may have been late or lost */
	struct sim_order *order;   /* owned: a queue */
	size_t head, n, cap;
	uint64_t edges, edges_done; /* orders of kind SIM_EDGE: in the queue, and carried out */
	int64_t mark_ms;            /* the wall-clock time until which the monitor saw the fleet; 0: never */
	uint64_t published;         /* P; HW_PUBLISHED_UNKNOWN: none */
	bool away, full, half;
	struct sim_record *snapshot; /* owned: what it held a while ago */
	int64_t snapshot_mark_ms;
	uint64_t snapshot_published;
	int64_t away_until, last_at;
};

void sim_store_init(struct sim *s);
void sim_store_fini(struct sim *s);
/* Returns the core's present state of a device. */
struct sim_record sim_store_picture(const struct sim *s, const struct hw_device *d);
void sim_store_give(struct sim *s, struct sim_order order);
void sim_store_on_due(struct sim *s);
void sim_store_leave(struct sim *s, bool away);
/* The present content is what the store may be rolled back to. */
void sim_store_save(struct sim *s);
void sim_store_roll_back(struct sim *s);
void sim_store_empty(struct sim *s);
/* The monitor has died. Some of the orders that it has sent never arrive. */
void sim_store_crash(struct sim *s);
/* If a transition waits, returns for how long the oldest order has waited. */
int64_t sim_store_oldest_ms(const struct sim *s);
/* The newest record of a device that is stored, or on its way to the store. */
struct sim_record sim_store_newest(const struct sim *s, uint32_t device);

#endif

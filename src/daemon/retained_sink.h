/* SPDX-License-Identifier: MIT */
/*
 * A sink of retained messages, one a device: owes the broker each device's current message until the broker has
 * acknowledged it. Level-triggered: what is published is the state at the moment of publishing, and intermediate states
 * are skipped. What the messages are is its kind's business: statuses (status.h), Home Assistant's discovery
 * (discovery.h).
 *
 * Two lines: what is fresh, and behind it the republishing of everybody after a reconnect, paced. A device is in a line
 * at most once (its `queued` flag), so the lines are bounded by the number of devices. A bounded window is in flight.
 *
 * One of several nodes may own a device and yet not publish for it (the fence, design 10.5): what may not go when its
 * turn comes is held apart, and costs nothing until hw_retained_retry().
 */
#ifndef HW_RETAINED_H
#define HW_RETAINED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/monitor.h"
#include "mqtt/mqtt.h"
#include "redis/redis.h"

#define HW_RETAINED_WINDOW 1024 /* a power of two, more than the publisher takes ahead */
#define HW_RETAINED_TOKEN_KIND                                                                                         \
	UINT64_C(0xc000000000000000) /* the bits of a token that tell the sinks apart; 0: none's */

/* Room for a message: the report's texts can be escaped to six times their length. */
#define HW_RETAINED_PAYLOAD_MAX (6 * (HW_REPORT_DATA_MAX + 2 * HW_REPORT_TEXT_MAX) + 1024)

/* Beside HW_PENDING_STORE and HW_PENDING_STATUS. */
enum {
	HW_QUEUED_STATUS = HW_NOTE(3),
	HW_PENDING_DISCOVERY = HW_NOTE(4),
	HW_QUEUED_DISCOVERY = HW_NOTE(5),
	HW_DISCOVERED = HW_NOTE(6) /* the broker has its discovery, or is owed it */
};

struct hw_retained_sink;

/* What one sink does otherwise than another. */
struct hw_retained_kind {
	int pending, queued; /* its notes on a device: HW_NOTE() */
	uint64_t token;      /* one of HW_RETAINED_TOKEN_KIND */
	/* A message that would only remove something is given up when the broker refuses it: else the record of a
	 * forgotten device would stay for ever where the right to publish is missing. */
	bool lenient;
	/* Whether anything at all is published for devices of this group. */
	bool (*wanted)(const struct hw_retained_sink *s, const struct hw_group *g);
	/* Changes when an acknowledged message is no longer what the broker should have. */
	uint64_t (*version)(const struct hw_device *d);
	/* Write it with a NUL, and return its length; 0: of no topic, or of a clearing (forgotten); below 0: there is
	 * none, or it does not fit. */
	int (*topic)(const struct hw_retained_sink *s, const struct hw_device *d, char *buf, size_t cap);
	int (*payload)(const struct hw_retained_sink *s, struct hw_now now, const struct hw_device *d, char *buf,
	               size_t cap);
};

struct hw_retained_entry {
	struct hw_ref device;
	int64_t since_ms; /* monotonic: when it was owed */
};

struct hw_retained_line {
	struct hw_retained_entry *entries; /* owned; a ring */
	size_t head, n, cap;
};

struct hw_retained_flight {
	bool used;
	struct hw_retained_entry entry;
	uint64_t token, version;
};

/* So many a second, in small bursts. */
struct hw_retained_pace {
	int64_t rate;
	double credit; /* how many may go now */
	int64_t ms;    /* monotonic, when the credit was worked out */
};

struct hw_retained_sink {
	const struct hw_retained_kind *kind;
	struct hw_monitor *m;           /* borrowed */
	struct hw_publisher *publisher; /* borrowed; NULL: none, and nothing is published */
	const char *node_id;            /* borrowed */
	/* The broker holds the device's message, or is owed none any more; `cleared`: it was forgotten. Called before
	 * anything is freed. */
	void (*on_published)(void *arg, struct hw_ref device, bool cleared);
	/* What was owed is another node's to publish. Called before anything is freed. */
	void (*on_dropped)(void *arg, struct hw_ref device);
	/* Whether this device's message may go now; NULL: any may. */
	bool (*may_go)(void *arg, const struct hw_device *d);
	void *arg;

	struct hw_retained_line fresh;
	struct hw_retained_line held; /* may not go */
	size_t retry; /* so many of them, from its head on, are asked about again before what is fresh */
	struct hw_retained_pace line; /* of everything; rate 0: as fast as the broker takes it */
	struct hw_retained_flight flight[HW_RETAINED_WINDOW];
	uint64_t next_token;
	unsigned in_flight;

	bool sweeping, everybody; /* republishing; and not only what is in `swept` */
	struct hw_partitions swept;
	bool again;                   /* behind that there is another sweep ... */
	struct hw_partitions waiting; /* ... of these */
	struct hw_partitions cut;     /* hw_retained_end_sweeps() found these before a sweep */
	uint32_t sweep_at;
	struct hw_retained_pace sweep; /* rate 0: never */

	uint64_t pending;     /* devices with the `owed` flag */
	uint32_t *pending_of; /* borrowed: the same of each partition, HW_PARTITIONS of them; NULL: not counted */
	uint64_t published, refused;
	int64_t refused_since_ms; /* 0: nothing refused is still owed */
};

void hw_retained_init(struct hw_retained_sink *s, const struct hw_retained_kind *kind);
void hw_retained_fini(struct hw_retained_sink *s);

/* Marks the device's message as owed; it is published after hw_retained_release(), unless another node owns the device
 * by then. Nothing to do where none is wanted, or another node owns it now. */
void hw_retained_add(struct hw_retained_sink *s, uint32_t index);
/* Puts an owed device in the line. 0, or -ENOMEM: then it stays owed and goes with the next hw_retained_republish(). */
int hw_retained_release(struct hw_retained_sink *s, struct hw_ref device, int64_t now_ms);
/* After a (re)connect: owes everybody's message again, paced. */
void hw_retained_republish(struct hw_retained_sink *s, int64_t now_ms);

/* After a predecessor's unclean end: those of these partitions, which are now owned here; behind what is being sent
 * again already. And, with an empty set, after partitions were lost: what was owed of their devices is given up. */
void hw_retained_republish_of(struct hw_retained_sink *s, const struct hw_partitions *set, int64_t now_ms);

/* A stop begins: no sweep goes on. */
void hw_retained_end_sweeps(struct hw_retained_sink *s);
/* The partitions that a sweep has before it, in whole or in part, or had when the sweeps were ended. */
struct hw_partitions hw_retained_unswept(const struct hw_retained_sink *s);

/* What is held may go now, or is another node's: it is gone through once more. */
void hw_retained_retry(struct hw_retained_sink *s);

/* What is in flight is lost with the connection: it is put back in the line. */
void hw_retained_down(struct hw_retained_sink *s);
/* The publisher's answers to this sink's tokens. */
void hw_retained_acked(struct hw_retained_sink *s, uint64_t token);
void hw_retained_refused(struct hw_retained_sink *s, uint64_t token, int64_t now_ms);

/* Publishes what may be, at most *budget messages, which it takes off. Returns whether there is more to do right away.
 */
bool hw_retained_pump(struct hw_retained_sink *s, struct hw_now now, unsigned *budget);
/* Until it can go on, in ms; -1: nothing waits for time. */
int64_t hw_retained_wait_ms(const struct hw_retained_sink *s);
/* How long the oldest message in line or in flight has been owed, in ms; 0: none. */
int64_t hw_retained_oldest_ms(const struct hw_retained_sink *s, int64_t now_ms);
/* Whether nothing is to be sent or answered; what is held is not counted. */
bool hw_retained_idle(const struct hw_retained_sink *s);

#endif

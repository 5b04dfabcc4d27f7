/* SPDX-License-Identifier: MIT */
/*
 * A sink of retained messages, one for each device. A device's current message is pending until the broker has
 * acknowledged it. The sink publishes the device's state at the moment of publishing, and leaves out the states
 * between. The kind of the sink determines the messages: statuses (status.h), or Home Assistant's discovery
 * (discovery.h).
 *
 * New messages wait in a line. After a reconnect, a sweep publishes the messages of all devices again, at a limited
 * rate and after the new ones. A device is in a line at most once (its flag `queued`), so the number of devices limits
 * the lines. A window limits the messages in flight.
 *
 * A node of a cluster may own a device before it may publish for it (hw_app_may_publish()). When such a message's turn
 * comes, it is held apart, and causes no work until hw_retained_retry().
 */
#ifndef HW_RETAINED_H
#define HW_RETAINED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/monitor.h"
#include "mqtt/mqtt.h"
#include "redis/redis.h"

#define HW_RETAINED_WINDOW 1024 /* a power of two, more than the publisher queues */
/* Bits of a publish id that identify the sink; 0: the id belongs to no sink. */
#define HW_RETAINED_PUBLISH_ID_KIND UINT64_C(0xc000000000000000)

/* Enough for a message: escaping can make a reported text six times as long, and an id twice. */
#define HW_RETAINED_PAYLOAD_MAX (6 * (HW_REPORT_DATA_MAX + 2 * HW_REPORT_TEXT_MAX) + 2 * HW_PARENTS_TEXT + 1024)

/* Flags in a device's record, besides those of redis.h. */
enum {
	HW_QUEUED_STATUS = HW_NOTE(3),
	HW_QUEUED_DISCOVERY = HW_NOTE(5),
	HW_DISCOVERED = HW_NOTE(6) /* the broker has its discovery, or it is pending */
};

struct hw_retained_sink;

/* The differences between the kinds of sinks. */
struct hw_retained_kind {
	int pending, queued; /* the kind's notes on a device: HW_NOTE() */
	uint64_t publish_id; /* one of HW_RETAINED_PUBLISH_ID_KIND */
	/* If the broker refuses to remove a message, the sink does not try again. If it did, a monitor without the
	 * right to publish would keep the record of a forgotten device for ever. */
	bool lenient;
	/* Whether messages are published for devices of this group. */
	bool (*wanted)(const struct hw_retained_sink *s, const struct hw_group *g);
	/* Changes when an acknowledged message is out of date. */
	uint64_t (*version)(const struct hw_device *d);
	/* Each writes the topic or the payload, with a NUL, and returns its length. 0: there is no topic, or a
	 * forgotten device's message is cleared. Less than 0: there is no message, or `buf` is too small. */
	int (*topic)(const struct hw_retained_sink *s, const struct hw_device *d, char *buf, size_t cap);
	int (*payload)(const struct hw_retained_sink *s, struct hw_now now, const struct hw_device *d, char *buf,
	               size_t cap);
};

struct hw_retained_entry {
	struct hw_ref device;
	int64_t since_ms; /* monotonic: pending since then */
};

struct hw_retained_line {
	struct hw_retained_entry *entries; /* owned; a ring */
	size_t head, n, cap;
};

struct hw_retained_flight {
	bool used;
	struct hw_retained_entry entry;
	uint64_t publish_id, version;
};

/* Limits messages to `rate` per second, in small bursts. */
struct hw_retained_pace {
	int64_t rate;
	double credit; /* how many may be sent now */
	int64_t ms;    /* monotonic: the time of `credit` */
};

struct hw_retained_sink {
	const struct hw_retained_kind *kind;
	struct hw_monitor *m;           /* borrowed */
	struct hw_publisher *publisher; /* borrowed; NULL: nothing is published */
	const char *node_id;            /* borrowed */
	bool no_store;                  /* the statuses keep the group, parents and own timeout of each device */
	/* Called when the broker has the device's message, or when no message is pending any more. `cleared`: the
	 * device was forgotten. Called before anything is freed. */
	void (*on_published)(void *arg, struct hw_ref device, bool cleared);
	/* Called whenever a message is not pending any more, and when the broker has refused the device's present
	 * message. NULL: not needed. */
	void (*on_settled)(void *arg, const struct hw_device *d);
	void (*on_refused)(void *arg, const struct hw_device *d);
	/* Called when another node must send the pending message. Called before anything is freed. */
	void (*on_dropped)(void *arg, struct hw_ref device);
	/* Whether this device's message may be sent now. NULL: always. */
	bool (*may_go)(void *arg, const struct hw_device *d);
	void *arg;

	struct hw_retained_line fresh;
	struct hw_retained_line held; /* messages that may not be sent yet */
	size_t retry;                 /* this many of the `held` messages, from the first on, are tried again before
	                               * `fresh` */
	struct hw_retained_pace line; /* of all messages; rate 0: no limit */
	struct hw_retained_flight flight[HW_RETAINED_WINDOW];
	uint64_t next_publish_id;
	unsigned in_flight;

	bool sweeping, all; /* sweeping: messages are published again; all: the messages of all partitions, not only of
	                       the partitions in `swept` */
	struct hw_partitions swept;
	bool again;                   /* another sweep follows ... */
	struct hw_partitions waiting; /* ... for these partitions */
	struct hw_partitions cut;     /* partitions that hw_retained_end_sweeps() left unswept */
	uint32_t sweep_at;
	struct hw_retained_pace sweep; /* rate 0: a sweep publishes only pending messages, without a limit */

	uint64_t pending; /* number of devices whose message is pending */
	/* Borrowed: how many messages are pending in each partition, an array of HW_PARTITIONS. NULL: not counted. */
	uint32_t *pending_of;
	uint64_t published, refused;
	int64_t refused_since_ms; /* 0: no refused message is pending */
};

void hw_retained_init(struct hw_retained_sink *s, const struct hw_retained_kind *kind);
void hw_retained_fini(struct hw_retained_sink *s);

/* Makes the device's message pending. It is published after hw_retained_release(). Does nothing if the group has no
 * such message, or if another node owns the device. */
void hw_retained_add(struct hw_retained_sink *s, uint32_t index);
/* Puts a pending device into the line. Returns 0, or -ENOMEM: the device then stays pending until the next
 * hw_retained_republish(). */
int hw_retained_release(struct hw_retained_sink *s, struct hw_ref device, int64_t now_ms);
/* Called after a connect, and while messages are refused. Makes the messages of all devices pending again, and
 * publishes them at a limited rate. With rate 0, publishes again those that are pending. */
void hw_retained_republish(struct hw_retained_sink *s, int64_t now_ms);

/* Called after the unclean end of a predecessor. Publishes again, like hw_retained_republish(), the messages of the
 * partitions in `set`, which this node owns now; if a sweep runs, they follow after it. If the set is empty, partitions
 * were lost: gives up the pending messages of their devices. */
void hw_retained_republish_of(struct hw_retained_sink *s, const struct hw_partitions *set, int64_t now_ms);

/* A stop begins: ends all sweeps. */
void hw_retained_end_sweeps(struct hw_retained_sink *s);
/* Returns the partitions that no sweep has finished, or, if no sweep runs, those that had not been swept when the
 * last one ended. With rate 0: none. */
struct hw_partitions hw_retained_unswept(const struct hw_retained_sink *s);

/* Tries the held messages again, because they may now be sent, or belong to another node. */
void hw_retained_retry(struct hw_retained_sink *s);

/* Called when the connection is lost. Messages in flight wait in the line again. */
void hw_retained_down(struct hw_retained_sink *s);
/* The publisher's answers to this sink's publish ids. */
void hw_retained_acked(struct hw_retained_sink *s, uint64_t publish_id);
void hw_retained_refused(struct hw_retained_sink *s, uint64_t publish_id, int64_t now_ms);
/* The group of the device of a message in flight. NULL: the message is not in flight, or its device was removed. */
const struct hw_group *hw_retained_group(const struct hw_retained_sink *s, uint64_t publish_id);

/*
 * Publishes messages that may be sent, at most *budget, and subtracts their number from *budget. Returns whether more
 * can be sent at once.
 */
bool hw_retained_pump(struct hw_retained_sink *s, struct hw_now now, unsigned *budget);
/* Returns the time in ms until the sink can continue; -1: it does not wait for a time. */
int64_t hw_retained_wait_ms(const struct hw_retained_sink *s);
/* Returns for how many ms the oldest message in the line or in flight has been pending; 0: there is none. */
int64_t hw_retained_oldest_ms(const struct hw_retained_sink *s, int64_t now_ms);
/* Whether no message waits to be sent or acknowledged. Held messages do not count. */
bool hw_retained_idle(const struct hw_retained_sink *s);

#endif

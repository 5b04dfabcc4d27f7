/* SPDX-License-Identifier: MIT */
/*
 * The status sink: owes the broker each device's current retained status until the broker has acknowledged it.
 * Level-triggered: what is published is the state at the moment of publishing, and intermediate states are skipped.
 *
 * Two lines: fresh transitions, and behind them the republishing of everybody after a reconnect, paced. A device is in
 * a line at most once (HW_FLAG_QUEUED_STATUS), so the lines are bounded by the number of devices. A bounded window is
 * in flight.
 */
#ifndef HW_STATUS_H
#define HW_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/monitor.h"
#include "mqtt/mqtt.h"

#define HW_STATUS_WINDOW 256                          /* a power of two, more than the publisher's window */
#define HW_STATUS_TOKEN  UINT64_C(0x8000000000000000) /* set in this sink's tokens */

/* Room for a status: the report's texts can be escaped to six times their length. */
#define HW_STATUS_PAYLOAD_MAX (6 * (HW_REPORT_DATA_MAX + 2 * HW_REPORT_TEXT_MAX) + 1024)

struct hw_status_entry {
	struct hw_ref device;
	int64_t since_ms; /* monotonic: when it was owed */
};

struct hw_status_line {
	struct hw_status_entry *entries; /* owned; a ring */
	size_t head, n, cap;
};

struct hw_status_flight {
	bool used;
	struct hw_status_entry entry;
	uint64_t token, seq;
};

struct hw_status_sink {
	struct hw_monitor *m;           /* borrowed */
	struct hw_publisher *publisher; /* borrowed; NULL: none */
	const char *node_id;            /* borrowed */
	/* The broker holds the device's status as of `seq`; `cleared`: it was forgotten. Called before anything is
	 * freed. */
	void (*on_published)(void *arg, struct hw_ref device, uint64_t seq, bool cleared);
	void *arg;

	struct hw_status_line fresh;
	struct hw_status_flight flight[HW_STATUS_WINDOW];
	uint64_t next_token;
	unsigned in_flight;

	bool sweeping; /* republishing everybody */
	uint32_t sweep_at;
	int64_t rate;        /* republish_rate; 0: none */
	double sweep_credit; /* statuses that may be republished now */
	int64_t sweep_ms;    /* monotonic, when the credit was worked out */

	uint64_t owed; /* devices with HW_FLAG_OWED_STATUS */
	uint64_t published, refused;
	int64_t refused_since_ms; /* 0: nothing refused is still owed */
};

void hw_status_init(struct hw_status_sink *s);
void hw_status_fini(struct hw_status_sink *s);

/* Marks the device's status as owed; it is published after hw_status_release(). Nothing to do for a group without a
 * status topic. */
void hw_status_owe(struct hw_status_sink *s, uint32_t index);
/* Puts an owed device in the line. 0, or -ENOMEM: then it stays owed and goes with the next hw_status_republish(). */
int hw_status_release(struct hw_status_sink *s, struct hw_ref device, int64_t now_ms);
/* After a (re)connect: owes everybody's status again, paced. */
void hw_status_republish(struct hw_status_sink *s, int64_t now_ms);

/* What is in flight is lost with the connection: it is put back in the line. */
void hw_status_down(struct hw_status_sink *s);
/* The publisher's answers to this sink's tokens. */
void hw_status_acked(struct hw_status_sink *s, uint64_t token);
void hw_status_refused(struct hw_status_sink *s, uint64_t token, int64_t now_ms);

/* Publishes what may be, at most `budget` statuses. Returns whether there is more to do right away. */
bool hw_status_pump(struct hw_status_sink *s, struct hw_now now, unsigned budget);
/* Until the sweep can go on, in ms; -1: nothing waits for time. */
int64_t hw_status_wait_ms(const struct hw_status_sink *s);
/* How long the oldest status in line or in flight has been owed, in ms; 0: none. */
int64_t hw_status_oldest_ms(const struct hw_status_sink *s, int64_t now_ms);
bool hw_status_idle(const struct hw_status_sink *s);

/*
 * The payload of a device's retained status, NUL-terminated. Returns its length; 0 for a clearing (forgotten); -1 if
 * its group publishes none, or it does not fit.
 */
int hw_status_payload(const struct hw_monitor *m, const char *node_id, struct hw_now now, const struct hw_device *d,
                      char *buf, size_t cap);

#endif

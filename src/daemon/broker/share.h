/* SPDX-License-Identifier: MIT */
/*
 * Tests whether shared subscriptions deliver each message to exactly one reader, which several readers need. A broker
 * without this feature treats "$share/GROUP/FILTER" as a plain topic, on which no message ever arrives.
 *
 * After every connect, the monitor publishes a message to itself on a shared topic. Then it sends a fence for each
 * reader: a barrier with a number of its own. When the fence is back on all readers, and the message has arrived on
 * exactly one, the core is informed that the readers are up. Until then the monitor is blind with the cause "link".
 */
#ifndef HW_SHARE_H
#define HW_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "heartwheel/time.h"

struct hw_app;
struct hw_app_reader;

struct hw_share {
	char topic[256];
	bool proven, asking;
	bool reported;      /* logged: shared subscriptions do not work */
	uint64_t number;    /* of the last test message */
	unsigned copies;    /* how many copies of it arrived */
	uint32_t fenced;    /* a bit for each reader that the fence is back on */
	struct hw_mono due; /* when the running test is overdue, or when the next test is due; 0: neither */
	int64_t wait_ms;    /* before the next test, after a failed one */
};

/* Call this once the configuration is known. */
void hw_share_init(struct hw_app *a);
/* Called each second. */
void hw_share_tick(struct hw_app *a, struct hw_now now);

/* hw_share_reader(): a reader is subscribed or lost. hw_share_publisher(): the barriers' connection is up or lost. */
void hw_share_reader(struct hw_app_reader *r, struct hw_now now, bool up);
void hw_share_publisher(struct hw_app *a, struct hw_now now);
/* A message or a fence of this run arrived. */
void hw_share_message(struct hw_app_reader *r, struct hw_now now, uint64_t number);
void hw_share_fence(struct hw_app_reader *r, struct hw_now now, uint64_t number);

/* The fault of shared subscriptions; NULL: none. */
const char *hw_share_why(const struct hw_app *a);

#endif

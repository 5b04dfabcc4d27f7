/* SPDX-License-Identifier: MIT */
/*
 * Whether shared subscriptions do what several readers need: each message reaches exactly one of them. Brokers without
 * them grant "$share/GROUP/FILTER" as a plain topic on which nothing ever comes. So after every (re)connect a message
 * of the monitor to itself goes to a shared topic, and a fence (a barrier with a number of its own) behind it to each
 * reader. The core is told that the readers are up when the fence is back on all of them and the message on one. Until
 * then it is blind, with the cause "link".
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
	bool told;          /* that it does not work */
	uint64_t number;    /* of the last message */
	unsigned copies;    /* of it that came */
	uint32_t fenced;    /* readers that the fence is back on: a bit each */
	struct hw_mono due; /* the last one is overdue, or the next one due; 0: neither */
	int64_t wait_ms;    /* until the next one, after one that proved nothing */
};

/* With the configuration known. */
void hw_share_init(struct hw_app *a);
/* Each second. */
void hw_share_tick(struct hw_app *a, struct hw_now now);

/* A reader is subscribed, or lost; the publisher has come, or gone. */
void hw_share_reader(struct hw_app_reader *r, struct hw_now now, bool up);
void hw_share_publisher(struct hw_app *a, struct hw_now now);
/* What came of this run's numbers. */
void hw_share_message(struct hw_app_reader *r, struct hw_now now, uint64_t number);
void hw_share_fence(struct hw_app_reader *r, struct hw_now now, uint64_t number);

/* What is wrong with it; NULL: nothing. */
const char *hw_share_why(const struct hw_app *a);

#endif

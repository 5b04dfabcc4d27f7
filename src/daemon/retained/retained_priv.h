/* SPDX-License-Identifier: MIT */
/* Shared by retained.c, old_topics.c and presence.c. */
#ifndef HW_RETAINED_PRIV_H
#define HW_RETAINED_PRIV_H

#include "old_topics.h"
#include "retained.h"

struct hw_app_retained {
	struct hw_retained_sink status, discovery;
	struct hw_app_published *published; /* owned: published.h */
	struct hw_old_topics old;

	/* presence.c */
	char presence_topic[256];
	bool presence_due;
	uint64_t presence_seq;
	int64_t presence_ms; /* monotonic time of the last presence; 0: none */
};

#endif

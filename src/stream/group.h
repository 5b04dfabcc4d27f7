/* SPDX-License-Identifier: MIT */
/*
 * A consumer group: each entry of a stream goes to one of several members, at least once. Entries stay pending until
 * they are acknowledged. A member first reads the entries again that it has read before and not acknowledged. It also
 * takes over entries that another member has left pending for idle_ms, because that member has probably crashed.
 *
 * The caller requests each page and never blocks. Redis delays an answer without entries for up to HW_STREAM_WAIT_MS,
 * so nothing urgent may use the same connection. If the stream is emptied or replaced, the group is created again and
 * begins with the stream's first entry. Trimmed entries are not reported.
 *
 * Cost: one command for each page, and one in each HW_STREAM_TAKE_OVER_MS.
 */
#ifndef HW_STREAM_GROUP_H
#define HW_STREAM_GROUP_H

#include "link/link.h"
#include "stream/id.h"

#define HW_STREAM_TAKE_OVER_MS 5000
#define HW_STREAM_ACKS         128 /* of one command */

/* All borrowed. */
struct hw_stream_group_conf {
	struct hw_redis_link *link; /* its owner calls hw_stream_group_up() and _down() */
	const char *key, *group, *member;
	unsigned count; /* entries per page */
	unsigned idle_ms;
};

/* Who has read an entry before. */
enum hw_stream_delivery {
	HW_STREAM_FRESH,     /* no member */
	HW_STREAM_OWN,       /* this one, which may not have received the answer */
	HW_STREAM_TAKEN_OVER /* one that has crashed */
};

struct hw_stream_group_ops {
	/* Called with entries to handle. An entry that was trimmed meanwhile has only its id. The caller
	 * acknowledges each entry. */
	void (*on_entries)(void *arg, redisReply *const *entries, size_t n, enum hw_stream_delivery delivery);
	/* Called when an answer has come, with or without entries. hw_stream_group_read() may be called again. */
	void (*on_idle)(void *arg);
	/* Called when Redis refuses a command. The caller calls hw_stream_group_read() again later. */
	void (*on_refused)(void *arg, const char *error);
};

/* Embed it; its members are private. */
struct hw_stream_group {
	struct hw_stream_group_conf conf;
	const struct hw_stream_group_ops *ops;
	void *arg;
	bool up, made, asking;
	bool own;       /* entries that were read before are read first */
	bool asked_own; /* the last read was for these entries */
	struct hw_stream_id own_at;
	int64_t took_over_ms; /* monotonic */
};

void hw_stream_group_init(struct hw_stream_group *g, const struct hw_stream_group_conf *conf,
                          const struct hw_stream_group_ops *ops, void *arg);
/* Called when the connection is ready, or when entries that were not acknowledged must be reported again. */
void hw_stream_group_up(struct hw_stream_group *g);
void hw_stream_group_down(struct hw_stream_group *g);
/* Requests the next entries, unless an answer is still awaited. */
void hw_stream_group_read(struct hw_stream_group *g);

/* A command that acknowledges entries. The caller sends it on another connection than the reads, because a waiting read
 * would delay it. The struct must not be copied. Zeroed storage is empty. */
struct hw_stream_acks {
	int argc; /* 0: none */
	const char *argv[3 + HW_STREAM_ACKS];
	size_t len[3 + HW_STREAM_ACKS];
	char ids[HW_STREAM_ACKS][HW_STREAM_ID_TEXT];
};
/* Adds an entry. Returns whether the command is full: the caller then sends it and sets argc to 0. */
bool hw_stream_acks_add(struct hw_stream_acks *a, const struct hw_stream_group *g, struct hw_stream_id id);

#endif

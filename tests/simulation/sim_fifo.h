/* SPDX-License-Identifier: MIT */
/* A queue of packets in the order in which they were sent: the packets that wait in a socket. Header only. */
#ifndef SIM_FIFO_H
#define SIM_FIFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define SIM_NEVER INT64_MAX

enum sim_what {
	SIM_HEARTBEAT,
	SIM_GOODBYE,
	SIM_BARRIER,
	SIM_STATUS,   /* a monitor's own retained status */
	SIM_CLEARING, /* ... an empty one */
	SIM_CANARY,   /* .device: twice the number of the group, plus one if it is for the second filter of the group */
	SIM_ACK,      /* to the publisher: the status with this number is retained */
	SIM_TAKEN,    /* ... a barrier was read */
	SIM_STATE,    /* .device: the group whose bridge is .online, or not */
	SIM_LIST,     /* a gateway's: .number says which */
	SIM_DISCONNECT,
	SIM_ABORT,    /* the connection ends without DISCONNECT: the will is published */
	SIM_CLOSE,    /* to a reader: the connection is closed after all packets that were sent before */
	SIM_SHARE,    /* a message that one of the readers gets */
	SIM_REPLAYED, /* to a reader: all states that it requested once more have been sent */
	SIM_RENEWED,  /* the same after a renewal */
	SIM_UP,       /* a client to the loop: it is connected, */
	SIM_STALLED,  /* ... its thread woke too late; .number: the time at which it should have woken */
	SIM_FULL      /* ... its unread packets are near their limit */
};

struct sim_packet {
	int64_t at; /* when it arrives; SIM_NEVER: held up by a cut */
	uint64_t number;
	uint64_t publish_id; /* of a status */
	int64_t timeout_ms;  /* the timeout that a heartbeat requests; -1: none */
	uint32_t device;
	enum sim_what what;
	bool online;
	bool retained; /* delivered for a subscription: history */
	bool again;    /* the second of two of the same */
};

struct sim_fifo {
	struct sim_packet *ring; /* owned */
	size_t head, n, cap;     /* cap: a power of two */
};

static inline void sim_fifo_fini(struct sim_fifo *f)
{
	free(f->ring);
}

static inline struct sim_packet *sim_fifo_at(const struct sim_fifo *f, size_t i)
{
	return &f->ring[(f->head + i) & (f->cap - 1)];
}

static inline void sim_fifo_push(struct sim_fifo *f, const struct sim_packet *p)
{
	if (f->n == f->cap) {
		size_t cap = f->cap ? 2 * f->cap : 8;
		struct sim_packet *ring = malloc(cap * sizeof(*ring));
		if (!ring) {
			fprintf(stderr, "simulate: out of memory\n");
			exit(2);
		}
		for (size_t i = 0; i < f->n; i++)
			ring[i] = *sim_fifo_at(f, i);
		free(f->ring);
		*f = (struct sim_fifo){.ring = ring, .n = f->n, .cap = cap};
	}
	f->n++;
	*sim_fifo_at(f, f->n - 1) = *p;
}

static inline struct sim_packet sim_fifo_pop(struct sim_fifo *f)
{
	struct sim_packet p = *sim_fifo_at(f, 0);
	f->head = (f->head + 1) & (f->cap - 1);
	f->n--;
	return p;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Clients of GET /v1/events on the server of control_rig.h, which read as HTTP/1.0, without chunks. Also makes
 * transitions of the devices d0, d1 and so on, each of them different.
 */
#ifndef HW_TEST_CONTROL_STREAM_H
#define HW_TEST_CONTROL_STREAM_H

#include "control/control.h"

struct stream {
	int fd;
	char *text; /* all that came */
	size_t n;
	bool closed;
	struct stream *beside; /* reads whenever this one does: a client that reads nothing for ten seconds is
	                        * disconnected */
};

/* A client asks for `target`. `place`: its Last-Event-ID, or NULL. */
void stream_open(struct stream *t, const char *target, const char *place);
void stream_close(struct stream *t);
/* Takes what is there now. */
void stream_take(struct stream *t);
/* How often `what` came so far. */
unsigned count(const struct stream *t, const char *what);

/* Turns the loop until `what` came `n` times; it must not come more often. */
void expect_count(struct stream *t, const char *what, unsigned n);
/* Turns the loop until the head is there: then the server has the client. */
void expect_open(struct stream *t);
/* The ids of the events are d`from` to d`to` - 1 and nothing else. */
void expect_devices(struct stream *t, unsigned from, unsigned to);
/* What is under way arrives. */
void settle(struct stream *t);
/* The text after the n-th "id: " of the stream, from 0. */
void text_of(const struct stream *t, unsigned n, char at[HW_STREAM_ID_TEXT]);

/* Where the n-th transition stands in a store. */
struct hw_stream_id place(uint64_t n);
/* Device d`n` goes offline; with a store at place(n). The id is written to `id`. */
struct hw_event event(char id[32], unsigned n);
/* Reports the transitions of d`from` to d`to` - 1 to the server. */
void tell(unsigned from, unsigned to);

/* The ids of the transitions that a GET of `target` answers, with commas between them. Until the next call. */
char *ids_of(const char *target);

#endif

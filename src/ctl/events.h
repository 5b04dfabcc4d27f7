/* SPDX-License-Identifier: MIT */
/* An event of a stream of server-sent events, put together of its lines. */
#ifndef HW_CTL_EVENTS_H
#define HW_CTL_EVENTS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

/* Zeroed at first. */
struct hw_event_read {
	char name[32], place[64];
	char *data;     /* owned; NULL: none */
	bool whole;     /* it was handed out: the next line begins another */
	char last[64];  /* the place of the last event that was whole: where a client goes on */
	uint64_t *told; /* owned: what came before it had a place, by its hash */
};

/* Takes a line. True: it ended an event, which is to be looked at before the next line is taken. */
bool hw_event_read_line(struct hw_event_read *e, const char *line);
/* Forgets what has come of an event; what was told, and `last`, stay. */
void hw_event_read_drop(struct hw_event_read *e);
void hw_event_read_fini(struct hw_event_read *e);

/*
 * The device of a transition, with its new state, for cJSON_Delete(); NULL if the event is none, or one that came
 * before. While Redis is away a transition comes as `pending`, and once more when Redis has it: that is known by its id
 * and seq, unless many thousands came between.
 */
cJSON *hw_event_transition(struct hw_event_read *e);
/* Notes a transition that has no place yet and is known from elsewhere. */
void hw_event_note(struct hw_event_read *e, const cJSON *device);

#endif

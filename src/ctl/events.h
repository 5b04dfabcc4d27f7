/* SPDX-License-Identifier: MIT */
/* An event of a stream of server-sent events, put together of its lines. */
#ifndef HW_CTL_EVENTS_H
#define HW_CTL_EVENTS_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "ctl/recent.h"

/* Zeroed at first. */
struct hw_event_read {
	char name[32], place[64];
	char *data;              /* owned; NULL: none */
	bool whole;              /* it was handed out: the next line begins another */
	char last[64];           /* the place of the last event that was whole: where a client goes on */
	struct hw_recent recent; /* transitions */
};

/* Takes a line. True: it ended an event, which is to be looked at before the next line is taken. */
bool hw_event_read_line(struct hw_event_read *e, const char *line);
/* Forgets what has come of an event; what was told, and `last`, stay. */
void hw_event_read_drop(struct hw_event_read *e);
void hw_event_read_fini(struct hw_event_read *e);

/*
 * The device of a transition, with its new state, for cJSON_Delete(); NULL if the event is none, or one that came
 * before: as `pending`, which is told while Redis is away, and again after a reconnect; then when Redis has it; and
 * once more when a new master is sent what it lacks. That is known by its id and seq, of the last HW_RECENT at least.
 */
cJSON *hw_event_transition(struct hw_event_read *e);
/* Notes a transition that is known from elsewhere. Whether it came before. */
bool hw_event_note(struct hw_event_read *e, const cJSON *device);

#endif

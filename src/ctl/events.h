/* SPDX-License-Identifier: MIT */
/* Parses server-sent events from the lines of a stream. */
#ifndef HW_CTL_EVENTS_H
#define HW_CTL_EVENTS_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "ctl/recent.h"

/* Zeroed at first. */
struct hw_event_read {
	char name[32], place[64];
	char *data;              /* owned; NULL: none */
	bool whole;              /* the event was returned: the next line begins a new one */
	char last[64];           /* id of the last complete event, to resume after */
	struct hw_recent recent; /* transitions already returned */
};

/* Handles a line. Returns true if the event is complete; the caller must use the event before the next line. */
bool hw_event_read_line(struct hw_event_read *e, const char *line);
/* Drops an incomplete event; `recent` and `last` stay. */
void hw_event_read_drop(struct hw_event_read *e);
void hw_event_read_fini(struct hw_event_read *e);

/*
 * Returns the device of a transition, with its new state; the caller frees it with cJSON_Delete(). Returns NULL if the
 * event is no transition, or if the same transition was returned before.
 *
 * A transition may come several times: as `pending` while Redis cannot be reached, when Redis has written it, after a
 * reconnect, and when a new master gets entries that it lacked. Repetitions are recognised by id, seq and state, at
 * least among the last HW_RECENT.
 */
cJSON *hw_event_transition(struct hw_event_read *e);
/* Records a transition from another source. Returns whether it was recorded before. */
bool hw_event_note(struct hw_event_read *e, const cJSON *device);

#endif

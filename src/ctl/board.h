/* SPDX-License-Identifier: MIT */
/*
 * What heartwheelctl top knows: the daemon's answers, and the lists that its events keep up to date. It asks nobody and
 * shows nothing; it says what should be asked again.
 *
 * The list has the newest of the devices that match, newest first; a transition moves its device to the top, or out of
 * the list. That way a fleet of any size costs one list at the start, and as much as changes.
 */
#ifndef HW_CTL_BOARD_H
#define HW_CTL_BOARD_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HW_BOARD_ROWS    1000 /* of the list: a page of the API */
#define HW_BOARD_CHANGES 200
#define HW_BOARD_CUT     1000 /* transitions that are asked for: where these are so many, there may be more */
#define HW_BOARD_SEARCH  128

struct hw_board_row {
	uint32_t hash;
	cJSON *device; /* owned */
};

/* Transitions of a group to one state that followed one another within a second: one entry. */
struct hw_board_change {
	char state[16], reason[16], group[64];
	char *id;                  /* owned: of the last one */
	int64_t first_ms, last_ms; /* wall clock */
	uint64_t count;
	bool at_least; /* there were more, before what the daemon was asked for */
};

enum hw_board_view { HW_VIEW_OFFLINE, HW_VIEW_ALL, HW_VIEW_ONLINE, HW_VIEWS };

struct hw_board {
	cJSON *status, *groups, *tasks, *device, *lately; /* owned; NULL: not known */
	enum hw_board_view view;
	char search[HW_BOARD_SEARCH]; /* what the ids contain; "": all */
	struct hw_board_row rows[HW_BOARD_ROWS];
	size_t n_rows;
	bool more;    /* devices match that the list has no room for */
	bool stale;   /* the list is to be asked for again */
	bool listed;  /* it was, with this view and this search */
	unsigned off; /* status answers in a row that counted other devices than the list */
	struct hw_board_change changes[HW_BOARD_CHANGES]; /* a ring */
	uint64_t n_changes;                               /* so far */
};

void hw_board_init(struct hw_board *b);
void hw_board_fini(struct hw_board *b);

/* Takes over an answer in the place of an earlier one. */
void hw_board_put(cJSON **place, cJSON *json);
/* A status: it also tells whether the list is still true. */
void hw_board_status(struct hw_board *b, cJSON *status);
/* An answer to /v1/devices, for this view and search. Taken over. */
void hw_board_list(struct hw_board *b, cJSON *answer);
/* An answer to /v1/transitions. Borrowed. */
void hw_board_transitions(struct hw_board *b, const cJSON *answer);
/* A transition happened. Taken over. */
void hw_board_transition(struct hw_board *b, cJSON *device);

/* Another view or search: what the list has is not what is wanted any more. */
void hw_board_look(struct hw_board *b, enum hw_board_view view, const char *search);
/* How many devices there are in this view, as the daemon counts. */
int64_t hw_board_total(const struct hw_board *b);
/* Where a device is in the list; n_rows if it is not. */
size_t hw_board_find(const struct hw_board *b, const char *id);
/* The newest change is 0; NULL behind the oldest. */
const struct hw_board_change *hw_board_change(const struct hw_board *b, size_t i);

#endif

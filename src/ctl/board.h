/* SPDX-License-Identifier: MIT */
/*
 * The data of heartwheelctl top: the daemon's answers, and lists that events keep up to date. This file does no I/O. If
 * a list is `stale`, the caller must request it again.
 *
 * The list contains the newest devices that match, the newest first. A transition moves its device to the top, or
 * removes it from the list. So only one list is requested at the start, whatever the size of the fleet; afterwards only
 * changes arrive.
 */
#ifndef HW_CTL_BOARD_H
#define HW_CTL_BOARD_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HW_BOARD_ROWS    1000 /* rows of the list: a page of the API */
#define HW_BOARD_CHANGES 200
#define HW_BOARD_CUT     1000 /* the most transitions in an answer; if there are so many, older ones may be missing */
#define HW_BOARD_SEARCH  128

struct hw_board_row {
	uint32_t hash;
	cJSON *device; /* owned */
};

/* One change: the transitions of a group to the same state, each at most a second after the previous transition. */
struct hw_board_change {
	char state[16], reason[16], group[64];
	char *id;                  /* owned; the last device */
	int64_t first_ms, last_ms; /* wall clock */
	uint64_t count;
	bool at_least; /* earlier transitions may be missing from the answer */
};

enum hw_board_view { HW_VIEW_OFFLINE, HW_VIEW_ALL, HW_VIEW_ONLINE, HW_VIEWS };

struct hw_board {
	cJSON *status, *groups, *tasks, *incidents, *device, *lately; /* owned; NULL: unknown */
	enum hw_board_view view;
	char search[HW_BOARD_SEARCH]; /* text that the ids contain; "": all */
	struct hw_board_row rows[HW_BOARD_ROWS];
	size_t n_rows;
	bool more;    /* more devices match than the list holds */
	bool stale;   /* the list must be requested again */
	bool listed;  /* the list was received for this view and search */
	unsigned off; /* number of successive status answers whose count differs from the list */
	struct hw_board_change changes[HW_BOARD_CHANGES]; /* a ring */
	uint64_t n_changes;                               /* total so far */
};

void hw_board_init(struct hw_board *b);
void hw_board_fini(struct hw_board *b);

/* Replaces an earlier answer; takes ownership. */
void hw_board_put(cJSON **place, cJSON *json);
/* Takes a status, and checks whether the list agrees with its counts. */
void hw_board_status(struct hw_board *b, cJSON *status);
/* Takes an answer of /v1/devices for this view and search. Owns the answer from now on. */
void hw_board_list(struct hw_board *b, cJSON *answer);
/* Takes an answer of /v1/transitions, borrowed. */
void hw_board_transitions(struct hw_board *b, const cJSON *answer);
/* Takes a transition, and its ownership. */
void hw_board_transition(struct hw_board *b, cJSON *device);

/* Sets the view and search, and marks the list stale. */
void hw_board_show(struct hw_board *b, enum hw_board_view view, const char *search);
/* Returns the number of devices in this view, by the daemon's count. */
int64_t hw_board_total(const struct hw_board *b);
/* Returns the index of a device in the list; n_rows if the device is not in the list. */
size_t hw_board_find(const struct hw_board *b, const char *id);
/* Change 0 is the newest. NULL after the oldest. */
const struct hw_board_change *hw_board_change(const struct hw_board *b, size_t i);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Reads device:events. Each instance reads every entry, and passes its transition to the hooks of followers and wills.
 * (For task:events, see submitters.h: each entry is read by only one instance.)
 *
 * The reader stores no offsets for its hooks. A hook that must not miss an entry stores its own offset, and reads from
 * there when `on_up` is called.
 */
#ifndef HW_TASKS_DEVICE_READER_H
#define HW_TASKS_DEVICE_READER_H

#include "stream/id.h"
#include "tasks/follow/transition.h"

struct hw_tasks_app;
struct hw_device_reader;

/* A part that uses device:events has a hook in its struct, and sets the functions that it needs. The hook must live
 * as long as the reader. */
struct hw_device_hook {
	void (*on_device)(void *arg, const struct hw_device_transition *d);
	/* Called when reading begins: at the start, when Redis can be reached again, and when the stream was
	 * replaced. Entries may have been missed. */
	void (*on_up)(void *arg);
	void *arg;
	struct hw_device_hook *next; /* the list's own */
};

struct hw_device_reader *hw_device_reader_new(struct hw_tasks_app *app);
void hw_device_reader_free(struct hw_device_reader *t);
void hw_device_reader_join(struct hw_device_reader *t, struct hw_device_hook *h);

/* Called by app.c. */
void hw_device_reader_up(struct hw_device_reader *t);
void hw_device_reader_down(struct hw_device_reader *t);
void hw_device_reader_again(struct hw_device_reader *t); /* reads again from task:at on */
void hw_device_reader_tick(struct hw_device_reader *t);

/* Returns the id of the last entry of device:events that was read. */
struct hw_stream_id hw_device_reader_offset(const struct hw_device_reader *t);
/* Writes why no transition can be added to device:events, and returns that text. NULL: nothing prevents it. */
#define HW_DEVICE_READER_WHY 400
const char *hw_device_reader_why(const struct hw_device_reader *t, char why[HW_DEVICE_READER_WHY]);

#endif

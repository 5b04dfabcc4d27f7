/* SPDX-License-Identifier: MIT */
/*
 * What happens, as Redis tells it: the entries of task:events and device:events, read by each instance as they come,
 * and handed to who has asked for them here: event streams, waiters, watch, follow, wills. (Submitters are told by
 * submitters.h, once among all instances.)
 *
 * Nothing is remembered: who must not miss an entry keeps its own place, and reads from there at `on_up`.
 */
#ifndef HW_TASKS_STREAM_READER_H
#define HW_TASKS_STREAM_READER_H

#include "tasks/place.h"
#include "tasks/task.h"

struct hw_tasks_app;
struct hw_stream_reader;

/* A transition of a task. */
struct hw_task_transition {
	const char *id; /* of the entry */
	struct hw_task_id task;
	struct hw_text receiver, sender, msg_id, why, node;
	struct hw_text action;    /* of one that is watched, at its end; else empty */
	enum hw_task_state state; /* with why "late": what the answer that came late said */
	bool late;
	bool watched; /* of a task that nodes sent one another: the entry has a field `watched`; nobody is told by
	                 submitters.h */
	int64_t time_ms;
	int64_t waited_ms; /* with `action`: how long for what it was ended for */
};

/* A transition of a device. */
struct hw_device_transition {
	const char *id;        /* of the entry */
	struct hw_text device; /* with its prefix */
	struct hw_text state;  /* online, offline, forgotten */
	struct hw_text reason, group, node, seq;
	int64_t time_ms, last_seen_ms;
};

/* One who is told. Embed it, and fill in the functions that are wanted. Valid until hw_stream_reader_leave(), which may
 * be called from within them. */
struct hw_stream_hook {
	void (*on_task)(void *arg, const struct hw_task_transition *t);
	void (*on_device)(void *arg, const struct hw_device_transition *d);
	/* Reading begins, at the start and whenever Redis is back: entries may have been missed. */
	void (*on_up)(void *arg);
	void *arg;
	struct hw_stream_hook *next; /* the list's own */
};

struct hw_stream_reader *hw_stream_reader_new(struct hw_tasks_app *app);
void hw_stream_reader_free(struct hw_stream_reader *t);
void hw_stream_reader_join(struct hw_stream_reader *t, struct hw_stream_hook *h);
void hw_stream_reader_leave(struct hw_stream_reader *t, struct hw_stream_hook *h);

/* For the wiring. */
void hw_stream_reader_up(struct hw_stream_reader *t);
void hw_stream_reader_down(struct hw_stream_reader *t);
void hw_stream_reader_again(struct hw_stream_reader *t); /* from task:at on */
void hw_stream_reader_tick(struct hw_stream_reader *t);

/*
 * An entry's fields into a transition; false: it is none that heartwheel can have written. A time more than a day after
 * now_ms is replaced by the entry's own, or by now_ms. For who reads the streams himself. Borrows the reply.
 */
struct redisReply;
bool hw_task_transition_read(const struct redisReply *entry, int64_t now_ms, struct hw_task_transition *out);
bool hw_device_transition_read(const struct redisReply *entry, int64_t now_ms, struct hw_device_transition *out);
/* Whether it is an entry: an id, and fields. One that was deleted has none. */
bool hw_is_stream_entry(const struct redisReply *entry);

/* The last place in device:events that was read. */
struct hw_place hw_stream_reader_offset(const struct hw_stream_reader *t);
/* Writes why no transition can come from device:events; NULL: nothing prevents it. */
#define HW_TOLD_WHY 400
const char *hw_stream_reader_why(const struct hw_stream_reader *t, char why[HW_TOLD_WHY]);

#endif

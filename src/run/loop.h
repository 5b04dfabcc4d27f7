/* SPDX-License-Identifier: MIT */
/*
 * A daemon's event loop: the libevent base, a tick each second, signals, and messages to the service manager's
 * watchdog. The watchdog gets messages only while the loop runs.
 */
#ifndef HW_RUN_LOOP_H
#define HW_RUN_LOOP_H

#include <stdbool.h>

struct event;
struct event_base;

/* Callbacks, called on the loop. Only hw_loop_stop() may end the loop. NULL: nothing to do. */
struct hw_loop_ops {
	void (*on_tick)(void *arg);             /* each second */
	void (*on_stop)(void *arg, int signal); /* SIGTERM or SIGINT, each time */
	void (*on_reload)(void *arg);           /* SIGHUP */
	void (*on_reopen)(void *arg);           /* SIGUSR1 */
	/* on_turn() is called before each turn, and on_turned() after it, with the CPU time in seconds that this
	 * thread used. A turn is the work between two polls for readable descriptors. */
	void (*on_turn)(void *arg);
	void (*on_turned)(void *arg, double cpu_s);
};

struct hw_loop {
	struct event_base *base; /* owned */
	const struct hw_loop_ops *ops;
	void *arg;
	struct event *tick, *watchdog;
	struct event *signals[4];
	bool stopped;
};

/* Initialises the caller's storage. Returns 0 or -errno. hw_loop_fini() must be called in both cases. */
int hw_loop_init(struct hw_loop *l, const struct hw_loop_ops *ops, void *arg);
/* Blocks SIGHUP and SIGUSR1 until hw_loop_start(), so that these signals do not kill a starting daemon. */
void hw_loop_hold_signals(void);
/* Starts the tick and the watchdog. From now on the loop handles signals. Returns 0 or -errno. */
int hw_loop_start(struct hw_loop *l);
/* Runs until hw_loop_stop(). Returns 0, or -EIO if libevent failed. */
int hw_loop_run(struct hw_loop *l);
/* Ends the loop after this callback. */
void hw_loop_stop(struct hw_loop *l);
/*
 * Ends the turn after this callback. Other active callbacks run in the next turn. A callback that has used up the
 * turn's budget must call this function. Otherwise, a callback that activates itself would extend the turn without end,
 * because libevent ends a turn only when no callback is active.
 */
void hw_loop_end_turn(struct hw_loop *l);
/* Sets the tick's interval; does nothing if there is no memory. */
void hw_loop_tick_every(struct hw_loop *l, unsigned ms);
/* Frees the object. Called after all events of the base are freed. Zeroed storage is allowed. */
void hw_loop_fini(struct hw_loop *l);

#endif

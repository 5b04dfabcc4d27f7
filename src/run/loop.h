/* SPDX-License-Identifier: MIT */
/*
 * A daemon's event loop: its libevent base, a tick each second, the signals, and the service manager's watchdog, which
 * is fed only while the loop turns.
 */
#ifndef HW_RUN_LOOP_H
#define HW_RUN_LOOP_H

#include <stdbool.h>

struct event;
struct event_base;

/* All from the loop; none may end it but through hw_loop_stop(). NULL: nothing to do. */
struct hw_loop_ops {
	void (*on_tick)(void *arg);             /* each second */
	void (*on_stop)(void *arg, int signal); /* SIGTERM or SIGINT, each time */
	void (*on_reload)(void *arg);           /* SIGHUP */
	void (*on_reopen)(void *arg);           /* SIGUSR1 */
	/* A turn is what happens between two looks at what is readable. Before each; and after it, with the CPU time
	 * that this thread has spent on it, in seconds. */
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

/* Readies caller's storage. 0; or -errno, and hw_loop_fini() is still to be called. */
int hw_loop_init(struct hw_loop *l, const struct hw_loop_ops *ops, void *arg);
/* SIGHUP and SIGUSR1 wait until hw_loop_start(): one that arrives during the start ends no daemon. */
void hw_loop_hold_signals(void);
/* From here on signals are the loop's; the tick and the watchdog begin. 0 or -errno. */
int hw_loop_start(struct hw_loop *l);
/* Turns until hw_loop_stop(). 0, or -EIO if libevent failed. */
int hw_loop_run(struct hw_loop *l);
/* Ends it after this callback. */
void hw_loop_stop(struct hw_loop *l);
/*
 * Ends the turn after this callback; callbacks that are active run in the next one. Call it when the budget of a turn
 * is spent: libevent ends a turn by itself only when no callback is active, which one that activates itself prevents.
 */
void hw_loop_end_turn(struct hw_loop *l);
/* Ticks every `ms` from now on; without memory it stays as it is. */
void hw_loop_tick_every(struct hw_loop *l, unsigned ms);
/* After everything that is on the base is gone. Zeroed storage may be given. */
void hw_loop_fini(struct hw_loop *l);

#endif

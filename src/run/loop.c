/* SPDX-License-Identifier: MIT */
/*
 * See loop.h. Runs turn after turn, to measure each. CPU time is measured, because elapsed time includes the work of
 * other processes.
 */
#include "run/loop.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

#include "run/manager.h"

static const int signal_numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
#define N_SIGNALS (sizeof(signal_numbers) / sizeof(*signal_numbers))

void hw_loop_hold_signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct hw_loop *l = arg;
	(void)fd, (void)what;
	if (l->ops->on_tick)
		l->ops->on_tick(l->arg);
}

static void on_watchdog(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	hw_manager_notify("WATCHDOG=1");
}

static void on_signal(evutil_socket_t number, short what, void *arg)
{
	struct hw_loop *l = arg;
	(void)what;
	if (number == SIGHUP) {
		if (l->ops->on_reload)
			l->ops->on_reload(l->arg);
	} else if (number == SIGUSR1) {
		if (l->ops->on_reopen)
			l->ops->on_reopen(l->arg);
	} else if (l->ops->on_stop) {
		l->ops->on_stop(l->arg, number);
	}
}

/* Creates the event base. On failure sets errno, also to ENOMEM, which libevent does not set. */
static struct event_base *make_base(void)
{
	errno = ENOMEM;
	struct event_config *c = event_config_new();
	if (!c)
		return NULL;
	event_config_set_flag(c, EVENT_BASE_FLAG_PRECISE_TIMER);
	struct event_base *base = event_base_new_with_config(c);
	event_config_free(c);
	return base;
}

int hw_loop_init(struct hw_loop *l, const struct hw_loop_ops *ops, void *arg)
{
	*l = (struct hw_loop){.ops = ops, .arg = arg};
	l->base = make_base();
	if (!l->base)
		return errno ? -errno : -ENOMEM;
	l->tick = event_new(l->base, -1, EV_PERSIST, on_tick, l);
	l->watchdog = event_new(l->base, -1, EV_PERSIST, on_watchdog, NULL);
	bool made = l->tick && l->watchdog;
	for (size_t i = 0; i < N_SIGNALS; i++) {
		l->signals[i] = evsignal_new(l->base, signal_numbers[i], on_signal, l);
		made = made && l->signals[i];
	}
	return made ? 0 : -ENOMEM;
}

int hw_loop_start(struct hw_loop *l)
{
	long feed_ms = hw_manager_watchdog_ms();
	struct timeval second = {1, 0}, feed = {feed_ms / 1000, feed_ms % 1000 * 1000};
	if ((feed_ms > 0 && event_add(l->watchdog, &feed)) || event_add(l->tick, &second))
		return -ENOMEM;
	for (size_t i = 0; i < N_SIGNALS; i++)
		if (event_add(l->signals[i], NULL))
			return -ENOMEM;
	sigset_t all;
	sigemptyset(&all);
	for (size_t i = 0; i < N_SIGNALS; i++)
		sigaddset(&all, signal_numbers[i]);
	return sigprocmask(SIG_UNBLOCK, &all, NULL) ? -errno : 0;
}

static double cpu_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int hw_loop_run(struct hw_loop *l)
{
	int rc = 0;
	double before = cpu_s();
	while (rc == 0 && !l->stopped) {
		if (l->ops->on_turn)
			l->ops->on_turn(l->arg);
		rc = event_base_loop(l->base, EVLOOP_ONCE);
		double after = cpu_s();
		if (l->ops->on_turned)
			l->ops->on_turned(l->arg, after - before);
		before = after;
	}
	return rc < 0 ? -EIO : 0;
}

void hw_loop_stop(struct hw_loop *l)
{
	l->stopped = true;
	event_base_loopbreak(l->base);
}

void hw_loop_end_turn(struct hw_loop *l)
{
	event_base_loopbreak(l->base);
}

void hw_loop_tick_every(struct hw_loop *l, unsigned ms)
{
	struct timeval every = {ms / 1000, ms % 1000 * 1000};
	(void)event_add(l->tick, &every);
}

static void free_event(struct event *e)
{
	if (e)
		event_free(e);
}

void hw_loop_fini(struct hw_loop *l)
{
	free_event(l->tick);
	free_event(l->watchdog);
	for (size_t i = 0; i < N_SIGNALS; i++)
		free_event(l->signals[i]);
	if (l->base)
		event_base_free(l->base);
	*l = (struct hw_loop){0};
}

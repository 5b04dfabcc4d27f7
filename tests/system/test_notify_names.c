/* SPDX-License-Identifier: MIT */
/*
 * A name server that does not answer: the resolver that libcurl calls in a thread of its own is this program's, and
 * blocks until it is told otherwise. Neither a start, nor a time-out, nor the end may wait for it.
 */
#include <check.h>
#include <event2/event.h>
#include <netdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "../suite.h"
#include "notify/devices.h"

#define PATIENCE_MS 15000 /* whoever waits for the name waits for ever */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static bool released;
static int asked;

/* Stands before libc's. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **out)
{
	(void)node;
	(void)service;
	(void)hints;
	*out = NULL;
	pthread_mutex_lock(&lock);
	asked++;
	while (!released)
		pthread_cond_wait(&change, &lock);
	pthread_mutex_unlock(&lock);
	return EAI_AGAIN;
}

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

struct seen {
	int64_t last_ms, longest_ms; /* between two beats of the loop */
	int troubles;
	struct event_base *base;
};

static void on_beat(evutil_socket_t fd, short what, void *arg)
{
	struct seen *s = arg;
	int64_t now = now_ms();
	(void)fd;
	(void)what;
	if (now - s->last_ms > s->longest_ms)
		s->longest_ms = now - s->last_ms;
	s->last_ms = now;
}

static void on_trouble(void *arg, enum hw_notifier_kind kind, const char *text)
{
	struct seen *s = arg;
	ck_assert_int_eq(kind, HW_NOTIFIER_WEBHOOK);
	ck_assert_ptr_nonnull(text);
	s->troubles++;
	event_base_loopbreak(s->base);
}

static const char *const filters[] = {"a/{id}"};

static struct hw_monitor *monitor(void)
{
	static const uint8_t key[16];
	struct hw_monitor_conf conf = {.max_devices = 10, .readers = 1, .ttl_factor = 3, .barrier_timeout_ms = 5000};
	struct hw_group_spec g = {.name = "g", .heartbeat = filters, .n_heartbeat = 1, .timeout_ms = 30000};
	struct hw_monitor *m = hw_monitor_new(&conf, &g, 1, key, (struct hw_now){.mono = {HW_NS_PER_S}});
	ck_assert_ptr_nonnull(m);
	return m;
}

START_TEST(nothing_waits_for_a_name)
{
	struct seen s = {.last_ms = now_ms(), .base = event_base_new()};
	struct hw_monitor *m = monitor();
	struct hw_notifier *n = hw_notifier_of_devices(s.base, m, on_trouble, &s);
	struct hw_notifier_conf conf = {.node_id = "n",
	                                .exec = "",
	                                .webhook = "http://name.invalid/",
	                                .title = "",
	                                .text = "",
	                                .mail_from = "",
	                                .mail_to = "",
	                                .interval_ms = 10,
	                                .timeout_ms = 2000,
	                                .retry_ms = 10};
	struct hw_out blind = {.kind = HW_OUT_BLIND};
	struct timeval beat = {0, 10000};
	struct event *e = event_new(s.base, -1, EV_PERSIST, on_beat, &s);
	ck_assert_int_eq(hw_notifier_configure(n, &conf), 0);
	ck_assert_int_eq(event_add(e, &beat), 0);
	hw_notifier_blind(n, (struct hw_now){.wall_ms = 1}, &blind);
	event_base_dispatch(s.base);
	ck_assert_int_eq(s.troubles, 1);
	ck_assert_int_ge(asked, 3);
	ck_assert_uint_eq(hw_notifier_stats(n)->failed[HW_NOTIFIER_WEBHOOK], 1);
	ck_assert(hw_notifier_idle(n));
	ck_assert_msg(s.longest_ms < PATIENCE_MS, "the loop stood still for %lld ms", (long long)s.longest_ms);
	/* The end, while a name is being resolved. */
	int before = asked;
	hw_notifier_blind(n, (struct hw_now){.wall_ms = 1}, &blind);
	hw_notifier_flush(n);
	while (asked == before)
		event_base_loop(s.base, EVLOOP_ONCE);
	int64_t at = now_ms();
	hw_notifier_free(n);
	ck_assert_int_lt(now_ms() - at, PATIENCE_MS);
	event_free(e);
	event_base_free(s.base);
	hw_monitor_free(m);
	pthread_mutex_lock(&lock);
	released = true;
	pthread_cond_broadcast(&change);
	pthread_mutex_unlock(&lock);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("notify_names");
	TCase *t = tcase_create("all");
	tcase_add_test(t, nothing_waits_for_a_name);
	tcase_set_timeout(t, 20);
	suite_add_tcase(s, t);
	return suite_run(s);
}

/* SPDX-License-Identifier: MIT */
/*
 * A name server that does not answer. libcurl calls the resolver in a thread of its own; this program has its own
 * resolver, which blocks until a test releases it. Neither a start, nor a timeout, nor the end may wait for it.
 */
#include <check.h>
#include <event2/event.h>
#include <netdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../suite.h"
#include "alert/send/send.h"

#define PATIENCE_MS 8000 /* a wait for the name is for ever */

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

static void on_trouble(void *arg, const char *receiver, const char *text)
{
	struct seen *s = arg;
	ck_assert_str_eq(receiver, "hook");
	ck_assert_ptr_nonnull(strstr(text, "given up"));
	s->troubles++;
	event_base_loopbreak(s->base);
}

static bool try_allowed(void *arg)
{
	(void)arg;
	return true;
}

static void on_done(void *arg, const char *receiver, uint64_t number, enum hw_send_result result, const char *words)
{
	(void)arg, (void)receiver, (void)number, (void)result, (void)words;
}

static void free_senders(struct hw_senders *s)
{
	int64_t at = now_ms();
	hw_senders_free(s);
	ck_assert_int_lt(now_ms() - at, PATIENCE_MS);
}

START_TEST(nothing_waits_for_a_name)
{
	static char name[] = "hook", url[] = "http://name.invalid/", none[] = "", title[] = "{summary}";
	struct seen s = {.last_ms = now_ms(), .base = event_base_new()};
	const struct hw_senders_calls calls = {&s, try_allowed, on_done, on_trouble};
	const struct hw_receiver_settings hook = {.name = name,
	                                          .type = HW_RECEIVER_WEBHOOK,
	                                          .url = url,
	                                          .program = none,
	                                          .key_file = none,
	                                          .username = none,
	                                          .password_file = none,
	                                          .title = title,
	                                          .text = none,
	                                          .mail_from = none,
	                                          .mail_to = none,
	                                          .kinds = none};
	struct hw_senders *senders = hw_senders_new(s.base, &calls, "n");
	struct timeval beat = {0, 10000};
	struct event *e = event_new(s.base, -1, EV_PERSIST, on_beat, &s);
	char why[200];
	uint64_t number;
	ck_assert_int_eq(hw_senders_configure(senders, &hook, 1, why, sizeof(why)), 0);
	ck_assert_int_eq(event_add(e, &beat), 0);
	ck_assert_int_eq(hw_senders_test(senders, "hook", &number), 0);
	event_base_dispatch(s.base);
	ck_assert_int_eq(s.troubles, 1);
	ck_assert_int_ge(asked, 1);
	ck_assert_uint_eq(hw_senders_waiting(senders), 0);
	ck_assert_msg(s.longest_ms < PATIENCE_MS, "the loop stood still for %lld ms", (long long)s.longest_ms);
	/* The end, while a name is being resolved. */
	int before = asked;
	ck_assert_int_eq(hw_senders_test(senders, "hook", &number), 0);
	while (asked == before)
		event_base_loop(s.base, EVLOOP_ONCE);
	free_senders(senders);
	event_free(e);
	event_base_free(s.base);
	pthread_mutex_lock(&lock);
	released = true;
	pthread_cond_broadcast(&change);
	pthread_mutex_unlock(&lock);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("send_names");
	TCase *t = tcase_create("all");
	tcase_add_test(t, nothing_waits_for_a_name);
	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);
	return suite_run(s);
}

/* SPDX-License-Identifier: MIT */
/* See voices.h. An answer counts from the time of its question, because the answer does not contain later changes. */
#include "link/voices.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "link/link.h"
#include "link/sentinel.h"

struct voice {
	struct hw_voices *voices;
	struct hw_redis_link link;
	bool begun, ready, waits;
	struct hw_host named; /* the master in the last answer */
	/* monotonic. asked_ms: when the last question was sent. at_ms: when the question was sent whose answer is in
	 * `named`; 0: the last answer named no master */
	int64_t asked_ms, at_ms;
	int64_t down_after_ms; /* -1: not known */
};

struct hw_voices {
	const char *master;
	int64_t pace_ms;
	void (*on_answer)(void *arg);
	void *arg;
	struct event *timer;
	struct hw_hosts list;
	struct voice voice[HW_HOSTS_MAX];
};

static int64_t mono_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void on_answer(redisAsyncContext *ac, void *answer, void *arg)
{
	struct voice *v = arg;
	(void)ac;
	v->waits = false;
	if (!answer)
		return;
	hw_redis_link_got(&v->link);
	hw_redis_link_settled(&v->link);
	v->at_ms = hw_sentinel_read_master(answer, &v->named) == HW_SENTINEL_NAMED ? v->asked_ms : 0;
	v->voices->on_answer(v->voices->arg);
}

static void ask(struct voice *v)
{
	const char *argv[] = {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", v->voices->master};
	const size_t lens[] = {strlen(argv[0]), strlen(argv[1]), strlen(argv[2])};
	if (!v->ready || v->waits || hw_redis_link_command(&v->link, on_answer, v, 3, argv, lens) != 0)
		return;
	v->waits = true;
	v->asked_ms = mono_ms();
}

static void on_details(redisAsyncContext *ac, void *answer, void *arg)
{
	struct voice *v = arg;
	(void)ac;
	if (!answer)
		return;
	hw_redis_link_got(&v->link);
	v->down_after_ms = hw_sentinel_read_down_after(answer);
}

static void on_ready(void *arg)
{
	struct voice *v = arg;
	const char *argv[] = {"SENTINEL", "MASTER", v->voices->master};
	const size_t lens[] = {strlen(argv[0]), strlen(argv[1]), strlen(argv[2])};
	v->ready = true;
	ask(v);
	hw_redis_link_command(&v->link, on_details, v, 3, argv, lens);
}

/* Called when a connection to a Sentinel is lost. Does not report this, because hw_follow reports the faults of
 * Sentinels. */
static void on_lost(void *arg, const char *why)
{
	struct voice *v = arg;
	(void)why;
	v->ready = v->waits = false;
}

static const struct hw_redis_link_ops ops = {on_ready, on_lost, NULL};

static void plan(struct hw_voices *v)
{
	struct timeval in = {(time_t)(v->pace_ms / 1000), (suseconds_t)(v->pace_ms % 1000 * 1000)};
	event_add(v->timer, &in);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct hw_voices *v = arg;
	(void)fd, (void)what;
	for (size_t i = 0; i < v->list.n; i++)
		ask(&v->voice[i]);
	plan(v);
}

static int begin(struct hw_voices *v, struct event_base *base, size_t i)
{
	struct voice *one = &v->voice[i];
	const struct hw_redis_link_conf conf = {.at = {.host = v->list.at[i].name,
	                                               .port = v->list.at[i].port,
	                                               .unix_socket = "",
	                                               .username = "",
	                                               .password = ""},
	                                        .seed = (uint64_t)mono_ms() + i};
	one->voices = v;
	one->down_after_ms = -1;
	int rc = hw_redis_link_init(&one->link, base, &conf, &ops, one);
	one->begun = rc == 0;
	return rc;
}

struct hw_voices *hw_voices_new(struct event_base *base, const char *sentinels, const char *master, int64_t pace_ms,
                                void (*called)(void *arg), void *arg)
{
	char why[160];
	struct hw_voices *v = calloc(1, sizeof(*v));
	if (!v)
		return NULL;
	v->master = master;
	v->pace_ms = pace_ms;
	v->on_answer = called;
	v->arg = arg;
	v->timer = evtimer_new(base, on_timer, v);
	bool made = v->timer && hw_hosts_parse(&v->list, sentinels, why, sizeof(why)) == 0;
	for (size_t i = 0; made && i < v->list.n; i++)
		made = begin(v, base, i) == 0;
	if (!made) {
		hw_voices_free(v);
		return NULL;
	}
	plan(v);
	return v;
}

void hw_voices_free(struct hw_voices *v)
{
	if (!v)
		return;
	for (size_t i = 0; i < v->list.n; i++)
		if (v->voice[i].begun)
			hw_redis_link_fini(&v->voice[i].link);
	if (v->timer)
		event_free(v->timer);
	free(v);
}

unsigned hw_voices_all(const struct hw_voices *v)
{
	return (unsigned)v->list.n;
}

unsigned hw_voices_for(const struct hw_voices *v, const struct hw_host *server, int64_t within_ms)
{
	int64_t now = mono_ms();
	unsigned n = 0;
	for (size_t i = 0; i < v->list.n; i++)
		n += v->voice[i].at_ms && now - v->voice[i].at_ms < within_ms &&
		     hw_host_equal(&v->voice[i].named, server);
	return n;
}

int64_t hw_voices_down_after_ms(const struct hw_voices *v)
{
	int64_t least = -1;
	for (size_t i = 0; i < v->list.n; i++) {
		int64_t ms = v->voice[i].down_after_ms;
		if (ms >= 0 && (least < 0 || ms < least))
			least = ms;
	}
	return least;
}

void hw_voices_tick(struct hw_voices *v)
{
	if (!event_pending(v->timer, EV_TIMEOUT, NULL))
		plan(v);
	for (size_t i = 0; i < v->list.n; i++)
		hw_redis_link_tick(&v->voice[i].link);
}

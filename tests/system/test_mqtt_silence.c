/* SPDX-License-Identifier: MIT */
/* The publisher behind a relay that holds back acknowledgements, or lets only a few of them pass. */
#include <check.h>
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bound.h"
#include "mqtt_broker.h"
#include "mqtt_relay.h"

#define OPEN "allow_anonymous true\n"

static const int protocols[] = {5, 311};

static struct broker broker;

/* How often a socket was told that a single byte shall not wake its reader. */
static atomic_uint gathered;

/* The C library's function, which the publisher calls: what is set for 2 ms cannot be polled on a busy machine. */
int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	if (level == SOL_SOCKET && name == SO_RCVLOWAT && *(const int *)value > 1)
		atomic_fetch_add(&gathered, 1);
	return (int)syscall(SYS_setsockopt, fd, level, name, value, len);
}

static void set_up(void)
{
	broker_init(&broker, OPEN);
	broker_start(&broker);
}

static void tear_down(void)
{
	broker_stop(&broker, SIGTERM);
}

/* At protocols[_i]: mosquitto's default of 20 for MQTT 5, less two for barriers; our own most. */
static const unsigned windows[] = {18, 100};

/* How often the publisher's thread went to sleep of its own accord. */
static unsigned long times_asleep(void)
{
	char path[300], line[200];
	unsigned long n = 0;
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;
	ck_assert_ptr_nonnull(tasks);
	while ((task = readdir(tasks)) != NULL) {
		bool ours = false;
		snprintf(path, sizeof(path), "/proc/self/task/%.200s/status", task->d_name);
		FILE *f = fopen(path, "r");
		while (f && fgets(line, sizeof(line), f)) {
			ours |= strcmp(line, "Name:\thw-publisher\n") == 0;
			if (ours)
				sscanf(line, "voluntary_ctxt_switches: %lu", &n);
		}
		if (f)
			fclose(f);
	}
	closedir(tasks);
	ck_assert_uint_gt(n, 0);
	return n;
}

/* How many bytes must wait in the publisher's socket to wake it. */
static int low_water(int port)
{
	int bytes, fd = socket_to(port);
	socklen_t len = sizeof(bytes);
	ck_assert_int_eq(getsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, &len), 0);
	return bytes;
}

/* Until the thread has slept for 100 ms, and the first byte will wake it. */
static void await_asleep(int port)
{
	int64_t until = now_ms() + PATIENCE;
	unsigned long before;
	do {
		ck_assert_msg(now_ms() < until, "the thread does not come to rest");
		before = times_asleep();
		poll(NULL, 0, 100);
	} while (times_asleep() != before || low_water(port) != 1);
}

static struct hw_publisher *publisher_behind(struct relay *r, int protocol)
{
	struct hw_mqtt_conf conf = conf_for(&broker, protocol, 0, "hw-t-pub");
	relay_start(r, &broker);
	conf.port = r->port;
	return publisher_up(&conf);
}

/* Hands over as many messages as the publisher takes. Returns their number. */
static unsigned fill(struct hw_publisher *p)
{
	unsigned n = hw_publisher_room(p);
	for (unsigned i = 0; i < n; i++)
		ck_assert(publisher_retain(p, "nodes/a/status", "x", 1, i));
	hw_publisher_flush(p);
	return n;
}

/* All of them are answered, and then it is stopped. */
static void end_behind(struct hw_publisher *p, struct relay *r, unsigned from, unsigned statuses)
{
	for (unsigned i = from; i < statuses; i++)
		ck_assert_uint_eq(publisher_await(p, HW_PUBLISHER_ACKED).publish_id, i);
	hw_publisher_stop(p, 1000);
	relay_stop(r);
}

/* A broker that is stopped costs next to nothing meanwhile, and no message is lost when it resumes. */
START_TEST(test_silence_is_quiet)
{
	struct relay r;
	struct hw_publisher *p = publisher_behind(&r, protocols[_i]);
	struct hw_publisher_event ev;
	kill(broker.pid, SIGSTOP);
	unsigned statuses = fill(p);
	relay_await(&r, windows[_i], 0);
	await_asleep(r.port);
	unsigned long before = times_asleep();
	ck_assert(!publisher_next(p, &ev, 2000));
	unsigned long woke = times_asleep() - before;
	printf("  protocol %d: woke %lu times in 2 s of silence\n", protocols[_i], woke);
	ck_assert_uint_le(woke, 20);
	ck_assert_uint_eq(atomic_load(&r.published), windows[_i]);
	kill(broker.pid, SIGCONT);
	end_behind(p, &r, 0, statuses);
}
END_TEST

/* An acknowledgement after a silence is reported, and the thread gathers acknowledgements again, for a while. */
START_TEST(test_silence_broken)
{
	struct relay r;
	struct hw_publisher *p = publisher_behind(&r, protocols[_i]);
	relay_hold(&r, true);
	unsigned statuses = fill(p);
	relay_await(&r, windows[_i], windows[_i]);
	await_asleep(r.port);
	unsigned before = atomic_load(&gathered);
	relay_let_one(&r, false);
	ck_assert_uint_eq(publisher_await(p, HW_PUBLISHER_ACKED).publish_id, 0);
	await_asleep(r.port);
	ck_assert_uint_gt(atomic_load(&gathered), before);
	relay_hold(&r, false);
	end_behind(p, &r, 1, statuses);
}
END_TEST

static int64_t quickest_ns(const struct relay *r, unsigned first, unsigned end)
{
	int64_t ns = INT64_MAX;
	for (unsigned i = first; i < end; i++)
		ns = r->reply_ns[i] < ns ? r->reply_ns[i] : ns;
	return ns;
}

/*
 * One acknowledgement at a time, each when the window has just become full again: less than is waited for. The first
 * breaks a silence. The next three are found by a look. Then it is known that they come so.
 */
START_TEST(test_few_acknowledgements)
{
	struct relay r;
	struct hw_publisher *p = publisher_behind(&r, protocols[_i]);
	relay_hold(&r, true);
	unsigned statuses = fill(p);
	relay_await(&r, windows[_i], windows[_i]);
	await_asleep(r.port);
	relay_let_one(&r, true);
	relay_await(&r, statuses, 0);
	unsigned replies = atomic_load(&r.n_replies);
	ck_assert_uint_ge(replies, 200);
	int64_t look_us = quickest_ns(&r, 1, 4) / 1000, known_us = quickest_ns(&r, 4, replies) / 1000;
	printf("  protocol %d: read after %d us by a look, then after %d us\n", protocols[_i], (int)look_us,
	       (int)known_us);
	relay_hold(&r, false);
	end_behind(p, &r, 0, statuses);
	ck_assert_within(look_us, 100000, "us"); /* a second, when it does not look */
	ck_assert_within(known_us, 1000, "us");  /* two milliseconds, when it goes on to look */
}
END_TEST

static void add(void *suite)
{
	TCase *tc = tcase_create("silence");
	tcase_set_timeout(tc, 90);
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_loop_test(tc, test_silence_is_quiet, 0, 2);
	tcase_add_loop_test(tc, test_silence_broken, 0, 2);
	tcase_add_loop_test(tc, test_few_acknowledgements, 0, 2);
	suite_add_tcase(suite, tc);
}

int main(void)
{
	return test_mqtt_main("mqtt publisher, few acknowledgements", add);
}

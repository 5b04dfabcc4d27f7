/* SPDX-License-Identifier: MIT */
/*
 * The publisher against a real mosquitto: every status handed over gets one answer or a DOWN, nothing more is in flight
 * than may be, barriers go first, and the will is published when it should be and only then.
 */
#include <arpa/inet.h>
#include <check.h>
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mqtt_broker.h"
#include "mqtt_relay.h"

#define OPEN     "allow_anonymous true\n"
#define PRESENCE "heartwheel/t/status"

static const int protocols[] = {5, 311};

static struct broker broker;

static void set_up(void)
{
	broker_init(&broker, OPEN);
	broker_start(&broker);
}

static void tear_down(void)
{
	broker_stop(&broker, SIGTERM);
}

static void send_text(struct hw_publisher *p, const char *topic, const char *text, uint64_t token)
{
	ck_assert(hw_publisher_send(p, topic, text, strlen(text), token));
	hw_publisher_flush(p);
}

/* A reader of retained messages, which come even before it is up. */
static struct hw_reader *replay_reader(const char *pattern)
{
	struct hw_mqtt_conf conf = conf_for(&broker, 5, 1, "hw-t-watch");
	struct hw_mqtt_filter filter = {pattern, true};
	struct hw_reader *r;
	ck_assert_int_eq(hw_reader_start(&r, &conf, &filter, 1, NULL, 0, 500), 0);
	return r;
}

/* --- answers */

START_TEST(test_acked)
{
	struct hw_mqtt_conf conf = conf_for(&broker, protocols[_i], 0, "hw-t-pub");
	struct hw_publisher *p = publisher_up(&conf);
	static const char binary[] = "\0\1\xff";
	send_text(p, "nodes/a/status", "{\"online\":true}", 7);
	ck_assert_uint_eq(publisher_await(p, HW_PUBLISHER_ACKED).token, 7);
	ck_assert(hw_publisher_send(p, "nodes/b/status", binary, 3, UINT64_MAX));
	send_text(p, "nodes/c/status", "gone soon", 1);
	send_text(p, "nodes/c/status", "", 2); /* a clearing */
	ck_assert_uint_eq(publisher_await(p, HW_PUBLISHER_ACKED).token, UINT64_MAX);
	ck_assert_uint_eq(publisher_await(p, HW_PUBLISHER_ACKED).token, 1);
	ck_assert_uint_eq(publisher_await(p, HW_PUBLISHER_ACKED).token, 2);
	struct hw_publisher_event ev;
	ck_assert(!publisher_next(p, &ev, 300));
	struct hw_reader *r = replay_reader("nodes/+/status");
	unsigned seen = 0;
	for (int i = 0; i < 2; i++) {
		struct hw_reader_event msg = reader_await(r, HW_READER_MESSAGE);
		ck_assert(msg.retained);
		seen |= msg.topic[6] == 'a' ? 1u : 2u;
		if (msg.topic[6] == 'b')
			ck_assert(msg.payload_len == 3 && memcmp(msg.payload, binary, 3) == 0);
	}
	ck_assert_uint_eq(seen, 3);
	hw_reader_stop(r);
	hw_publisher_stop(p, 1000);
}
END_TEST

/* 2,000 at once: as many as there is room for, each answered once, in order, and room is bounded. */
START_TEST(test_window)
{
	enum { STATUSES = 2000 };
	struct hw_mqtt_conf conf = conf_for(&broker, protocols[_i], 1, "hw-t-pub");
	struct hw_publisher *p = publisher_up(&conf);
	struct hw_publisher_event ev;
	unsigned sent = 0, acked = 0, room = hw_publisher_room(p);
	ck_assert_uint_eq(room, 512); /* whatever the broker grants */
	int64_t start = now_ms();
	while (acked < STATUSES) {
		char topic[64];
		while (sent < STATUSES && hw_publisher_room(p) > 0) {
			snprintf(topic, sizeof(topic), "nodes/%u/status", sent);
			ck_assert(hw_publisher_send(p, topic, topic, strlen(topic), sent));
			sent++;
		}
		ck_assert_uint_le(sent - acked, room);
		if (sent - acked == room)
			ck_assert(!hw_publisher_send(p, "nodes/x/status", "x", 1, 0));
		hw_publisher_flush(p);
		ck_assert_msg(publisher_next(p, &ev, PATIENCE), "%u of %u answered", acked, sent);
		ck_assert_msg(ev.kind == HW_PUBLISHER_ACKED, "%s", ev.text);
		ck_assert_uint_eq(ev.token, acked++);
	}
	printf("  protocol %d: %d statuses in %d ms\n", conf.protocol, STATUSES, (int)(now_ms() - start));
	ck_assert_uint_eq(hw_publisher_room(p), room);
	struct hw_reader *r = replay_reader("nodes/+/status");
	for (int i = 0; i < 100; i++)
		reader_await(r, HW_READER_MESSAGE);
	hw_reader_stop(r);
	hw_publisher_stop(p, 1000);
}
END_TEST

START_TEST(test_refused_by_rights)
{
	struct broker b;
	char extra[512];
	broker_init(&b, "");
	snprintf(extra, sizeof(extra), "listener %d 127.0.0.1\nuser root\nallow_anonymous true\nacl_file %s\n", b.port,
	         broker_file(&b, "rights"));
	broker_write(&b, "conf", extra);
	broker_write(&b, "rights", "topic readwrite nodes/may/status\n");
	broker_shell(&b, "chmod 600 rights");
	broker_start(&b);
	struct hw_mqtt_conf conf = conf_for(&b, protocols[_i], 0, "hw-t-pub");
	struct hw_publisher *p = publisher_up(&conf);
	send_text(p, "nodes/may/status", "x", 1);
	send_text(p, "nodes/maynot/status", "x", 2);
	send_text(p, "nodes/may/status", "y", 3);
	ck_assert_uint_eq(publisher_await(p, HW_PUBLISHER_ACKED).token, 1);
	/* MQTT 3.1.1 has no way to say it: the broker acknowledges what it throws away */
	struct hw_publisher_event ev =
		publisher_await(p, conf.protocol == 5 ? HW_PUBLISHER_REFUSED : HW_PUBLISHER_ACKED);
	ck_assert_uint_eq(ev.token, 2);
	ck_assert(conf.protocol != 5 || strstr(ev.text, "Not authorized"));
	ck_assert_uint_eq(publisher_await(p, HW_PUBLISHER_ACKED).token, 3);
	hw_publisher_stop(p, 1000);
	broker_stop(&b, SIGTERM);
}
END_TEST

/* The next event about barriers; they are sent until it comes. */
static bool barriers_taken(struct hw_publisher *p)
{
	struct hw_publisher_event ev;
	for (uint64_t number = 1;; number++) {
		ck_assert_uint_lt(number, 1000);
		hw_publisher_barrier(p, 7, number);
		hw_publisher_flush(p);
		if (publisher_next(p, &ev, 20) && ev.kind == HW_PUBLISHER_BARRIERS)
			return ev.token;
	}
}

/* Also with QoS 0, and while it lasts. */
START_TEST(test_barriers_refused_by_rights)
{
	struct broker b;
	char extra[512];
	broker_init(&b, "");
	snprintf(extra, sizeof(extra), "listener %d 127.0.0.1\nuser root\nallow_anonymous true\nacl_file %s\n", b.port,
	         broker_file(&b, "rights"));
	broker_write(&b, "conf", extra);
	broker_write(&b, "rights", "topic readwrite nodes/may/status\n");
	broker_shell(&b, "chmod 600 rights");
	broker_start(&b);
	struct hw_mqtt_conf conf = conf_for(&b, 5, _i, "hw-t-pub");
	struct hw_publisher *p = publisher_up(&conf);
	ck_assert(!barriers_taken(p));
	broker_write(&b, "rights", "topic readwrite #\n");
	kill(b.pid, SIGHUP);
	ck_assert(barriers_taken(p));
	send_text(p, "nodes/may/status", "x", 1); /* they take no place of a status */
	ck_assert_uint_eq(publisher_await(p, HW_PUBLISHER_ACKED).token, 1);
	hw_publisher_stop(p, 1000);
	broker_stop(&b, SIGTERM);
}
END_TEST

/* What the library would not take is answered, and does no harm to what follows. */
START_TEST(test_refused_by_library)
{
	enum { HUGE_LEN = 3 << 20 };
	static char huge[HUGE_LEN];
	struct hw_mqtt_conf conf = conf_for(&broker, protocols[_i], 0, "hw-t-pub");
	struct hw_publisher *p = publisher_up(&conf);
	send_text(p, "nodes/+/status", "x", 1);
	send_text(p, "nodes/\xff/status", "x", 2);
	ck_assert(hw_publisher_send(p, "nodes/a/status", huge, HUGE_LEN, 3));
	ck_assert(hw_publisher_send(p, "nodes/a/status", huge, 200000, 4));
	send_text(p, "nodes/a/status", "x", 5);
	for (uint64_t token = 1; token <= 3; token++) {
		struct hw_publisher_event ev = publisher_await(p, HW_PUBLISHER_REFUSED);
		ck_assert_uint_eq(ev.token, token);
		ck_assert_uint_gt(strlen(ev.text), 10);
	}
	ck_assert_uint_eq(publisher_await(p, HW_PUBLISHER_ACKED).token, 4);
	ck_assert_uint_eq(publisher_await(p, HW_PUBLISHER_ACKED).token, 5);
	hw_publisher_stop(p, 1000);
}
END_TEST

/* --- losses */

/* What was handed over and not answered is forgotten at DOWN: no late answer, and the room is there again. */
START_TEST(test_down_forgets)
{
	struct hw_mqtt_conf conf = conf_for(&broker, protocols[_i], 0, "hw-t-pub");
	struct hw_publisher *p = publisher_up(&conf);
	struct hw_publisher_event ev;
	unsigned room = hw_publisher_room(p);
	kill(broker.pid, SIGSTOP);
	for (unsigned i = 0; i < room; i++)
		ck_assert(hw_publisher_send(p, "nodes/a/status", "x", 1, 1000 + i));
	ck_assert_uint_eq(hw_publisher_room(p), 0);
	hw_publisher_flush(p);
	ck_assert(!publisher_next(p, &ev, 300));
	kill(broker.pid, SIGKILL);
	waitpid(broker.pid, NULL, 0);
	ev = publisher_await(p, HW_PUBLISHER_DOWN);
	ck_assert_msg(strstr(ev.text, "lost") || strstr(ev.text, "failed"), "%s", ev.text);
	ck_assert_uint_eq(hw_publisher_room(p), 0);
	ck_assert(!hw_publisher_send(p, "nodes/a/status", "x", 1, 1));
	hw_publisher_barrier(p, 1, 1); /* dropped */
	hw_publisher_flush(p);
	ev = publisher_await(p, HW_PUBLISHER_DOWN);
	ck_assert_msg(strstr(ev.text, "is the broker running?"), "%s", ev.text);
	ck_assert_msg(!publisher_next(p, &ev, 1000), "event %d '%s'", (int)ev.kind, ev.text);
	broker_start(&broker);
	publisher_await(p, HW_PUBLISHER_UP);
	ck_assert_uint_eq(hw_publisher_room(p), room);
	send_text(p, "nodes/a/status", "x", 1);
	ck_assert_uint_eq(publisher_await(p, HW_PUBLISHER_ACKED).token, 1);
	ck_assert(!publisher_next(p, &ev, 300));
	hw_publisher_stop(p, 1000);
}
END_TEST

/* --- acknowledgements that do not come, or only a few of them */

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

/* How many bytes must wait in the publisher's socket, which is this process's only one to that port, to wake it. */
static int low_water(int port)
{
	for (int fd = 3; fd < 256; fd++) {
		struct sockaddr_in a;
		socklen_t len = sizeof(a);
		int bytes;
		if (getpeername(fd, (struct sockaddr *)&a, &len) || a.sin_family != AF_INET ||
		    ntohs(a.sin_port) != port)
			continue;
		len = sizeof(bytes);
		ck_assert_int_eq(getsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, &len), 0);
		return bytes;
	}
	ck_abort_msg("not connected");
	return 0;
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

/* Hands over all that it takes. Returns how many they are. */
static unsigned fill(struct hw_publisher *p)
{
	unsigned n = hw_publisher_room(p);
	for (unsigned i = 0; i < n; i++)
		ck_assert(hw_publisher_send(p, "nodes/a/status", "x", 1, i));
	hw_publisher_flush(p);
	return n;
}

/* All of them are answered, and then it is stopped. */
static void end_behind(struct hw_publisher *p, struct relay *r, unsigned from, unsigned statuses)
{
	for (unsigned i = from; i < statuses; i++)
		ck_assert_uint_eq(publisher_await(p, HW_PUBLISHER_ACKED).token, i);
	hw_publisher_stop(p, 1000);
	relay_stop(r);
}

/* A broker that stands still costs next to nothing while it does, and nothing is lost when it goes on. */
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

/* Whether more than a byte must wait to wake the thread, at any moment of the next 50 ms. */
static bool gathers(int port)
{
	int64_t until = now_ms() + 50;
	while (low_water(port) == 1)
		if (now_ms() >= until)
			return false;
	return true;
}

/* An acknowledgement in the silence is told, and the thread is ready for many again, for a while. */
START_TEST(test_silence_broken)
{
	struct relay r;
	struct hw_publisher *p = publisher_behind(&r, protocols[_i]);
	relay_hold(&r, true);
	unsigned statuses = fill(p), told = 0;
	relay_await(&r, windows[_i], windows[_i]);
	for (bool gathered = false; !gathered; told++) {
		ck_assert_msg(told < 20,
		              "it does not wait for many again"); /* this thread may miss it, but not always */
		await_asleep(r.port);
		relay_let_one(&r, false);
		gathered = gathers(r.port);
		ck_assert_uint_eq(publisher_await(p, HW_PUBLISHER_ACKED).token, told);
	}
	relay_hold(&r, false);
	end_behind(p, &r, told, statuses);
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
	ck_assert_int_lt(look_us, 100000); /* a second, when it does not look */
	ck_assert_int_lt(known_us, 1000);  /* two milliseconds, when it goes on to look */
	relay_hold(&r, false);
	end_behind(p, &r, 0, statuses);
}
END_TEST

/* --- barriers */

/* Handed over behind a queue of statuses, it leaves before those that have not left yet. */
START_TEST(test_barrier_goes_first)
{
	struct hw_mqtt_conf conf = conf_for(&broker, protocols[_i], 1, "hw-t-pub"), watch = conf;
	watch.client_id = "hw-t-r0";
	struct hw_reader *r = reader_up(&watch, "nodes/+/status", false);
	struct hw_publisher *p = publisher_up(&conf);
	unsigned room = hw_publisher_room(p), before = 0, after = 0;
	bool barrier = false;
	kill(broker.pid, SIGSTOP);
	for (unsigned i = 0; i < room; i++)
		ck_assert(hw_publisher_send(p, "nodes/a/status", "x", 1, i));
	hw_publisher_flush(p);
	hw_publisher_barrier(p, 5, 6);
	hw_publisher_flush(p);
	struct hw_publisher_event none;
	ck_assert(!publisher_next(p, &none, 200));
	kill(broker.pid, SIGCONT);
	while (before + after < room || !barrier) {
		struct hw_reader_event ev;
		ck_assert(reader_next(r, &ev, PATIENCE));
		if (ev.kind == HW_READER_BARRIER) {
			ck_assert(ev.mark == 5 && ev.number == 6);
			barrier = true;
		} else if (ev.kind == HW_READER_MESSAGE) {
			before += !barrier;
			after += barrier;
		}
	}
	ck_assert_msg(after >= room / 2 - 2, "only %u of %u statuses came after the barrier", after, room);
	hw_publisher_stop(p, 5000);
	hw_reader_stop(r);
}
END_TEST

/* --- the end */

START_TEST(test_stop_waits_for_answers)
{
	struct hw_mqtt_conf conf = conf_for(&broker, protocols[_i], 0, "hw-t-pub");
	struct hw_publisher *p = publisher_up(&conf);
	unsigned room = hw_publisher_room(p), n = 0;
	char topic[64];
	for (; n < room; n++) {
		snprintf(topic, sizeof(topic), "nodes/%u/status", n);
		ck_assert(hw_publisher_send(p, topic, "x", 1, n));
	}
	hw_publisher_stop(p, 10000); /* flushes by itself */
	struct hw_reader *r = replay_reader("nodes/+/status");
	for (unsigned i = 0; i < n; i++)
		ck_assert(reader_await(r, HW_READER_MESSAGE).retained);
	hw_reader_stop(r);
}
END_TEST

START_TEST(test_stop_is_bounded)
{
	struct hw_mqtt_conf conf = conf_for(&broker, protocols[_i], 0, "hw-t-pub");
	struct hw_publisher *p = publisher_up(&conf);
	kill(broker.pid, SIGSTOP);
	send_text(p, "nodes/a/status", "x", 1);
	int64_t start = now_ms();
	hw_publisher_stop(p, 700);
	ck_assert_int_ge(now_ms() - start, 600);
	ck_assert_int_lt(now_ms() - start, 1500);
	kill(broker.pid, SIGCONT);
}
END_TEST

/* A process that has a publisher, says so in a pipe, and then sleeps or stops cleanly. */
static pid_t monitor_process(bool stops)
{
	int fds[2];
	char ready;
	ck_assert_int_eq(pipe(fds), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct hw_mqtt_conf conf = conf_for(&broker, protocols[0], 0, "hw-t-pub");
		struct hw_publisher *p;
		struct hw_publisher_event ev;
		if (hw_publisher_start(&p, &conf, PRESENCE, "{\"online\":false}", 16))
			_exit(1);
		if (!publisher_next(p, &ev, PATIENCE) || ev.kind != HW_PUBLISHER_UP)
			_exit(1);
		hw_publisher_send(p, PRESENCE, "{\"online\":true}", 15, 1);
		hw_publisher_flush(p);
		if (!publisher_next(p, &ev, PATIENCE) || ev.kind != HW_PUBLISHER_ACKED || write(fds[1], "y", 1) != 1)
			_exit(1);
		if (stops)
			hw_publisher_stop(p, 1000);
		else
			pause();
		_exit(0);
	}
	close(fds[1]);
	ck_assert_int_eq(read(fds[0], &ready, 1), 1);
	close(fds[0]);
	return pid;
}

START_TEST(test_will)
{
	struct hw_mqtt_conf watch = conf_for(&broker, 5, 1, "hw-t-r0");
	struct hw_reader *r = reader_up(&watch, PRESENCE, false);
	struct hw_reader_event ev;
	int status;
	pid_t pid = monitor_process(false);
	reader_expect(r, PRESENCE, "{\"online\":true}");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	reader_expect(r, PRESENCE, "{\"online\":false}");
	struct hw_reader *late = replay_reader(PRESENCE);
	ev = reader_await(late, HW_READER_MESSAGE);
	ck_assert_msg(ev.retained && ev.payload_len == 16, "the will is retained");
	hw_reader_stop(late);
	pid = monitor_process(true);
	reader_expect(r, PRESENCE, "{\"online\":true}");
	waitpid(pid, &status, 0);
	ck_assert_int_eq(status, 0);
	ck_assert_msg(!reader_next(r, &ev, 1000), "a will although it stopped cleanly");
	hw_reader_stop(r);
}
END_TEST

START_TEST(test_idle_is_quiet_and_alive)
{
	struct hw_mqtt_conf conf = conf_for(&broker, protocols[_i], 0, "hw-t-pub");
	struct hw_publisher_event ev;
	conf.keepalive_s = 5;
	struct hw_publisher *p = publisher_up(&conf);
	ck_assert_msg(!publisher_next(p, &ev, 9000), "event %d '%s'", (int)ev.kind, ev.text);
	send_text(p, "nodes/a/status", "x", 1);
	publisher_await(p, HW_PUBLISHER_ACKED);
	ck_assert_uint_eq(broker_logged(&broker, "exceeded timeout"), 0);
	hw_publisher_stop(p, 1000);
}
END_TEST

/* --- the list */

static void add(void *suite)
{
	TCase *t = tcase_create("publisher");
	tcase_set_timeout(t, 90);
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_loop_test(t, test_acked, 0, 2);
	tcase_add_loop_test(t, test_window, 0, 2);
	tcase_add_loop_test(t, test_refused_by_rights, 0, 2);
	tcase_add_loop_test(t, test_barriers_refused_by_rights, 0, 2);
	tcase_add_loop_test(t, test_refused_by_library, 0, 2);
	tcase_add_loop_test(t, test_down_forgets, 0, 2);
	tcase_add_loop_test(t, test_barrier_goes_first, 0, 2);
	tcase_add_loop_test(t, test_stop_waits_for_answers, 0, 2);
	tcase_add_loop_test(t, test_stop_is_bounded, 0, 2);
	tcase_add_test(t, test_will);
	tcase_add_loop_test(t, test_idle_is_quiet_and_alive, 0, 1);
	suite_add_tcase(suite, t);
	TCase *few = tcase_create("silence");
	tcase_set_timeout(few, 90);
	tcase_add_checked_fixture(few, set_up, tear_down);
	tcase_add_loop_test(few, test_silence_is_quiet, 0, 2);
	tcase_add_loop_test(few, test_silence_broken, 0, 2);
	tcase_add_loop_test(few, test_few_acknowledgements, 0, 2);
	suite_add_tcase(suite, few);
}

int main(void)
{
	return test_mqtt_main("mqtt publisher", add);
}

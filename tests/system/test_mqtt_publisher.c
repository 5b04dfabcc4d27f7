/* SPDX-License-Identifier: MIT */
/*
 * The publisher against a real mosquitto: every status handed over gets one answer or a DOWN, nothing more is in flight
 * than may be, barriers go first, and the will is published when it should be and only then.
 */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mqtt_broker.h"

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

static void send_text(struct hw_publisher *p, const char *topic, const char *text, uint64_t publish_id)
{
	ck_assert(publisher_retain(p, topic, text, strlen(text), publish_id));
	hw_publisher_flush(p);
}

/* A reader of retained messages, which come even before it is up. */
static struct hw_reader *replay_reader(const char *pattern)
{
	struct hw_mqtt_conf conf = conf_for(&broker, 5, 1, "hw-t-watch");
	struct hw_mqtt_filter filter = {.filter = pattern, .replay = true};
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
	ck_assert_uint_eq(publisher_await(p, HW_PUBLISHER_ACKED).publish_id, 7);
	ck_assert(publisher_retain(p, "nodes/b/status", binary, 3, UINT64_MAX));
	send_text(p, "nodes/c/status", "gone soon", 1);
	send_text(p, "nodes/c/status", "", 2); /* a clearing */
	ck_assert_uint_eq(publisher_await(p, HW_PUBLISHER_ACKED).publish_id, UINT64_MAX);
	ck_assert_uint_eq(publisher_await(p, HW_PUBLISHER_ACKED).publish_id, 1);
	ck_assert_uint_eq(publisher_await(p, HW_PUBLISHER_ACKED).publish_id, 2);
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

static void publish(struct hw_publisher *p, const char *topic, bool retain, int qos, uint32_t expiry_s,
                    uint64_t publish_id)
{
	ck_assert(hw_publisher_publish(p, &(struct hw_publication){.topic = topic,
	                                                           .payload = "x",
	                                                           .len = 1,
	                                                           .retain = retain,
	                                                           .qos = qos,
	                                                           .expiry_s = expiry_s,
	                                                           .publish_id = publish_id}));
	hw_publisher_flush(p);
}

/* Bits of the first letters of the retained messages, 'a' the lowest; 'k' is always there, and awaited. */
static unsigned retained(void)
{
	struct hw_reader *r = replay_reader("nodes/+/status");
	struct hw_reader_event ev;
	unsigned seen = 0, k = 1u << ('k' - 'a');
	while (reader_next(r, &ev, seen & k ? 200 : PATIENCE))
		if (ev.kind == HW_READER_MESSAGE)
			seen |= 1u << (ev.topic[6] - 'a');
	ck_assert_uint_ne(seen & k, 0);
	hw_reader_stop(r);
	return seen & ~k;
}

/* A message says itself whether it is retained, its QoS and when it is forgotten; and what the broker said comes back.
 */
START_TEST(test_each_message_says_how)
{
	bool five = protocols[_i] == 5;
	struct hw_mqtt_conf conf = conf_for(&broker, protocols[_i], 0, "hw-t-pub"),
			    live = conf_for(&broker, 5, 1, "hw-t-l");
	struct hw_reader *r = reader_up(&live, "nodes/a/status", false);
	struct hw_publisher *p = publisher_up(&conf);
	for (int qos = 0; qos < 2; qos++) {
		publish(p, "nodes/a/status", false, qos, 0, 7);
		struct hw_publisher_event ev = publisher_await(p, HW_PUBLISHER_ACKED);
		ck_assert_uint_eq(ev.publish_id, 7);
		ck_assert_uint_eq(ev.reason, 0);
		ck_assert_uint_eq(reader_await(r, HW_READER_MESSAGE).payload_len, 1);
	}
	publish(p, "nodes/b/status", true, 1, 1, 8);
	struct hw_publisher_event ev = publisher_await(p, HW_PUBLISHER_ACKED);
	ck_assert_uint_eq(ev.reason, five ? 0x10 : 0); /* nobody is subscribed */
	publish(p, "nodes/k/status", true, 1, 0, 9);
	publisher_await(p, HW_PUBLISHER_ACKED);
	unsigned b = 1u << ('b' - 'a');
	int64_t until = now_ms() + PATIENCE;
	if (five)
		while (retained() == b)
			ck_assert_int_lt(now_ms(), until);
	ck_assert_uint_eq(retained(), five ? 0 : b);
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
			ck_assert(publisher_retain(p, topic, topic, strlen(topic), sent));
			sent++;
		}
		ck_assert_uint_le(sent - acked, room);
		if (sent - acked == room)
			ck_assert(!publisher_retain(p, "nodes/x/status", "x", 1, 0));
		hw_publisher_flush(p);
		ck_assert_msg(publisher_next(p, &ev, PATIENCE), "%u of %u answered", acked, sent);
		ck_assert_msg(ev.kind == HW_PUBLISHER_ACKED, "%s", ev.text);
		ck_assert_uint_eq(ev.publish_id, acked++);
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
	ck_assert_uint_eq(publisher_await(p, HW_PUBLISHER_ACKED).publish_id, 1);
	/* MQTT 3.1.1 has no way to say it: the broker acknowledges what it throws away */
	struct hw_publisher_event ev =
		publisher_await(p, conf.protocol == 5 ? HW_PUBLISHER_REFUSED : HW_PUBLISHER_ACKED);
	ck_assert_uint_eq(ev.publish_id, 2);
	ck_assert(conf.protocol != 5 || strstr(ev.text, "Not authorized"));
	ck_assert_uint_eq(ev.reason, conf.protocol == 5 ? 0x87 : 0);
	ck_assert_uint_eq(publisher_await(p, HW_PUBLISHER_ACKED).publish_id, 3);
	hw_publisher_stop(p, 1000);
	broker_stop(&b, SIGTERM);
}
END_TEST

/* --- what the broker does not take */

struct lack {
	const char *setting, *text;
	bool refuses;      /* statuses, for their size */
	unsigned connects; /* at most, until it is known */
};

static const struct lack lacks[] = {{"retain_available false", "keeps no retained messages", false, 5},
                                    {"max_qos 0", "accepts QoS 0 only", false, 6},
                                    {"retain_available false\nmax_qos 0", "accepts QoS 0 only", false, 7},
                                    {"max_packet_size 100", "last will", true, 8}};

/*
 * Each limit is found within a second or two and reported once; statuses are published as far as the broker allows,
 * each is answered, barriers return, and the connection stays.
 */
START_TEST(test_what_the_broker_does_not_take)
{
	enum { STATUSES = 50 };
	const struct lack *lack = &lacks[_i / 2];
	struct broker b;
	char extra[128], payload[150];
	snprintf(extra, sizeof(extra), OPEN "%s\n", lack->setting);
	broker_init(&b, extra);
	broker_start(&b);
	struct hw_mqtt_conf conf = conf_for(&b, protocols[_i % 2], 0, "hw-t-r0");
	struct hw_reader *r = reader_up(&conf, "nodes/+/status", false);
	struct hw_publisher *p;
	struct hw_publisher_event ev;
	conf.client_id = "hw-t-pub";
	memset(payload, 'x', sizeof(payload));
	ck_assert_int_eq(hw_publisher_start(&p, &conf, PRESENCE, payload, sizeof(payload)), 0);
	unsigned told = 0, answered = 0, sent = 0, refused = 0, barriers = 0;
	int64_t until = now_ms() + PATIENCE;
	while (answered < STATUSES || told == 0) {
		ck_assert_msg(now_ms() < until, "%u told, %u of %u answered", told, answered, sent);
		while (sent < STATUSES && publisher_retain(p, "nodes/a/status", payload, sizeof(payload), 1))
			sent++;
		hw_publisher_flush(p);
		if (!publisher_next(p, &ev, 100))
			continue;
		ck_assert_msg(ev.kind != HW_PUBLISHER_DOWN || lack->refuses, "%s", ev.text);
		told += ev.kind == HW_PUBLISHER_LIMIT && strstr(ev.text, lack->text);
		refused += ev.kind == HW_PUBLISHER_REFUSED;
		answered += ev.kind == HW_PUBLISHER_ACKED || ev.kind == HW_PUBLISHER_REFUSED;
		if (ev.kind == HW_PUBLISHER_DOWN)
			sent = answered = 0;
	}
	ck_assert_uint_eq(told, 1);
	ck_assert_uint_eq(refused, lack->refuses ? STATUSES : 0);
	for (int i = 0; i < 20; i++)
		hw_publisher_barrier(p, 1, (uint64_t)i);
	hw_publisher_flush(p);
	for (; barriers < 20; barriers++)
		ck_assert_uint_eq(reader_await(r, HW_READER_BARRIER).number, barriers);
	while (publisher_next(p, &ev, 1500))
		ck_assert_msg(ev.kind == HW_PUBLISHER_BARRIERS, "event %d '%s'", (int)ev.kind, ev.text);
	ck_assert_uint_le(broker_logged(&b, "New client connected") - 1, lack->connects);
	hw_publisher_stop(p, 1000);
	hw_reader_stop(r);
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
			return ev.publish_id;
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
	ck_assert_uint_eq(publisher_await(p, HW_PUBLISHER_ACKED).publish_id, 1);
	hw_publisher_stop(p, 1000);
	broker_stop(&b, SIGTERM);
}
END_TEST

/* A message that the library refuses is answered, and later messages are unaffected. */
START_TEST(test_refused_by_library)
{
	enum { HUGE_LEN = 3 << 20 };
	static char huge[HUGE_LEN];
	struct hw_mqtt_conf conf = conf_for(&broker, protocols[_i], 0, "hw-t-pub");
	struct hw_publisher *p = publisher_up(&conf);
	send_text(p, "nodes/+/status", "x", 1);
	send_text(p, "nodes/\xff/status", "x", 2);
	ck_assert(publisher_retain(p, "nodes/a/status", huge, HUGE_LEN, 3));
	ck_assert(publisher_retain(p, "nodes/a/status", huge, 200000, 4));
	send_text(p, "nodes/a/status", "x", 5);
	for (uint64_t publish_id = 1; publish_id <= 3; publish_id++) {
		struct hw_publisher_event ev = publisher_await(p, HW_PUBLISHER_REFUSED);
		ck_assert_uint_eq(ev.publish_id, publish_id);
		ck_assert_uint_gt(strlen(ev.text), 10);
	}
	ck_assert_uint_eq(publisher_await(p, HW_PUBLISHER_ACKED).publish_id, 4);
	ck_assert_uint_eq(publisher_await(p, HW_PUBLISHER_ACKED).publish_id, 5);
	hw_publisher_stop(p, 1000);
}
END_TEST

/* --- losses */

/* Unanswered messages are forgotten at DOWN: no late answer, and their room is free again. */
START_TEST(test_down_forgets)
{
	struct hw_mqtt_conf conf = conf_for(&broker, protocols[_i], 0, "hw-t-pub");
	struct hw_publisher *p = publisher_up(&conf);
	struct hw_publisher_event ev;
	unsigned room = hw_publisher_room(p);
	kill(broker.pid, SIGSTOP);
	for (unsigned i = 0; i < room; i++)
		ck_assert(publisher_retain(p, "nodes/a/status", "x", 1, 1000 + i));
	ck_assert_uint_eq(hw_publisher_room(p), 0);
	hw_publisher_flush(p);
	ck_assert(!publisher_next(p, &ev, 300));
	kill(broker.pid, SIGKILL);
	waitpid(broker.pid, NULL, 0);
	ev = publisher_await(p, HW_PUBLISHER_DOWN);
	ck_assert_msg(strstr(ev.text, "lost") || strstr(ev.text, "failed"), "%s", ev.text);
	ck_assert_uint_eq(hw_publisher_room(p), 0);
	ck_assert(!publisher_retain(p, "nodes/a/status", "x", 1, 1));
	hw_publisher_barrier(p, 1, 1); /* dropped */
	hw_publisher_flush(p);
	ev = publisher_await(p, HW_PUBLISHER_DOWN);
	ck_assert_msg(strstr(ev.text, "is the broker running?"), "%s", ev.text);
	ck_assert_msg(!publisher_next(p, &ev, 1000), "event %d '%s'", (int)ev.kind, ev.text);
	broker_start(&broker);
	publisher_await(p, HW_PUBLISHER_UP);
	ck_assert_uint_eq(hw_publisher_room(p), room);
	send_text(p, "nodes/a/status", "x", 1);
	ck_assert_uint_eq(publisher_await(p, HW_PUBLISHER_ACKED).publish_id, 1);
	ck_assert(!publisher_next(p, &ev, 300));
	hw_publisher_stop(p, 1000);
}
END_TEST

/* --- barriers */

/* A barrier that is handed over after a queue of statuses is sent before those that were not sent yet. */
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
		ck_assert(publisher_retain(p, "nodes/a/status", "x", 1, i));
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
			ck_assert(ev.run_id == 5 && ev.number == 6);
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
		ck_assert(publisher_retain(p, topic, "x", 1, n));
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
	ck_assert_int_lt(now_ms() - start, PATIENCE);
	kill(broker.pid, SIGCONT);
}
END_TEST

/* A process with a publisher: it reports the connection in a pipe, and then sleeps or stops cleanly. */
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
		publisher_retain(p, PRESENCE, "{\"online\":true}", 15, 1);
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

/* The broker closes a connection that is silent for half as long again as the keepalive that the broker prescribes. */
START_TEST(test_the_brokers_keepalive_is_kept)
{
	struct broker short_one;
	broker_init(&short_one, OPEN "max_keepalive 10\n");
	broker_start(&short_one);
	struct hw_mqtt_conf conf = conf_for(&short_one, 5, 0, "hw-t-pub");
	struct hw_publisher_event ev;
	conf.keepalive_s = 300;
	struct hw_publisher *p = publisher_up(&conf);
	ck_assert_msg(!publisher_next(p, &ev, 25000), "event %d '%s'", (int)ev.kind, ev.text);
	ck_assert_uint_eq(broker_logged(&short_one, "exceeded timeout"), 0);
	hw_publisher_stop(p, 1000);
	broker_stop(&short_one, SIGTERM);
}
END_TEST

static void add(void *suite)
{
	TCase *tc = tcase_create("publisher");
	tcase_set_timeout(tc, 90);
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_loop_test(tc, test_acked, 0, 2);
	tcase_add_loop_test(tc, test_each_message_says_how, 0, 2);
	tcase_add_loop_test(tc, test_window, 0, 2);
	tcase_add_loop_test(tc, test_refused_by_rights, 0, 2);
	tcase_add_loop_test(tc, test_what_the_broker_does_not_take, 0, 8);
	tcase_add_loop_test(tc, test_barriers_refused_by_rights, 0, 2);
	tcase_add_loop_test(tc, test_refused_by_library, 0, 2);
	tcase_add_loop_test(tc, test_down_forgets, 0, 2);
	tcase_add_loop_test(tc, test_barrier_goes_first, 0, 2);
	tcase_add_loop_test(tc, test_stop_waits_for_answers, 0, 2);
	tcase_add_loop_test(tc, test_stop_is_bounded, 0, 2);
	tcase_add_test(tc, test_will);
	tcase_add_loop_test(tc, test_idle_is_quiet_and_alive, 0, 1);
	tcase_add_test(tc, test_the_brokers_keepalive_is_kept);
	suite_add_tcase(suite, tc);
}

int main(void)
{
	return test_mqtt_main("mqtt publisher", add);
}

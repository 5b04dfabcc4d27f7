/* SPDX-License-Identifier: MIT */
/*
 * Readers against a real mosquitto: what they hand over, in which order, and what happens when the broker, the ring or
 * the thread stands still.
 */
#include <check.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bound.h"
#include "mqtt_broker.h"

#define OPEN "allow_anonymous true\n"

static const struct {
	int protocol, qos;
} ways[] = {{5, 0}, {5, 1}, {311, 0}, {311, 1}};

static struct broker broker;
static struct peer *peer;

static void set_up(void)
{
	broker_init(&broker, OPEN "max_inflight_messages 100\n");
	broker_start(&broker);
	peer = peer_new(&broker);
}

static void tear_down(void)
{
	peer_free(peer);
	broker_stop(&broker, SIGTERM);
}

/* --- what is handed over */

START_TEST(test_receives)
{
	struct hw_mqtt_conf conf = conf_for(&broker, ways[_i].protocol, ways[_i].qos, "hw-t-r0");
	struct hw_reader *r = reader_up(&conf, "nodes/+/heartbeat", false);
	char id[256], topic[300];
	static const char binary[] = "\0\1\xff\0{\"\xfe";
	memset(id, 'x', 255);
	id[255] = '\0';
	snprintf(topic, sizeof(topic), "nodes/%s/heartbeat", id);
	peer_say(peer, "nodes/a/heartbeat", "{\"online\":true}");
	peer_say(peer, "nodes/b/other", "not for us");
	peer_say(peer, "nodes/a/heartbeat", "");
	peer_say(peer, topic, "long id");
	peer_publish(peer, "nodes/b/heartbeat", binary, sizeof(binary), 1, true);
	struct hw_reader_event ev = reader_expect(r, "nodes/a/heartbeat", "{\"online\":true}");
	ck_assert(!ev.retained && !ev.truncated);
	reader_expect(r, "nodes/a/heartbeat", "");
	reader_expect(r, topic, "long id");
	ev = reader_await(r, HW_READER_MESSAGE);
	ck_assert_uint_eq(ev.payload_len, sizeof(binary));
	ck_assert_int_eq(memcmp(ev.payload, binary, sizeof(binary)), 0);
	ck_assert_msg(!ev.retained, "live, although it was published retained");
	struct hw_reader_stats stats = hw_reader_stats(r);
	ck_assert_uint_eq(stats.messages, 4);
	ck_assert_uint_eq(stats.bytes, 15 + 0 + 7 + sizeof(binary));
	hw_reader_stop(r);
}
END_TEST

START_TEST(test_long_ones)
{
	static const struct {
		size_t len, kept;
		bool truncated;
	} cases[] = {{65535, 65535, false}, {65536, 65536, false}, {65537, 65536, true}, {300000, 65536, true}};
	struct hw_mqtt_conf conf = conf_for(&broker, ways[_i].protocol, ways[_i].qos, "hw-t-r0");
	struct hw_reader *r = reader_up(&conf, "#", false);
	static char payload[300000], topic[65001];
	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = (char)(i * 7 + i / 251);
	memset(topic, 't', sizeof(topic) - 1);
	for (int times = 0; times < 8; times++) { /* more than the ring holds at once */
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
			peer_publish(peer, topic, payload, cases[i].len, 1, false);
	}
	for (int times = 0; times < 8; times++) {
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			struct hw_reader_event ev = reader_await(r, HW_READER_MESSAGE);
			ck_assert_uint_eq(ev.topic_len, sizeof(topic) - 1);
			ck_assert_uint_eq(ev.payload_len, cases[i].kept);
			ck_assert_int_eq(ev.truncated, cases[i].truncated);
			ck_assert_int_eq(memcmp(ev.payload, payload, ev.payload_len), 0);
		}
	}
	hw_reader_stop(r);
}
END_TEST

START_TEST(test_retained)
{
	static const struct {
		int protocol;
		bool replay, comes;
	} cases[] = {{5, false, false}, {5, true, true}, {311, false, true}};
	peer_publish(peer, "nodes/a/status", "history", 7, 1, true);
	peer_settle(peer);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hw_mqtt_conf conf = conf_for(&broker, cases[i].protocol, 0, "hw-t-r0");
		struct hw_mqtt_filter filter = {.filter = "nodes/+/status", .replay = cases[i].replay};
		struct hw_reader_event ev = {.kind = HW_READER_UP};
		struct hw_reader *r;
		bool up = false;
		unsigned replayed = 0;
		ck_assert_int_eq(hw_reader_start(&r, &conf, &filter, 1, NULL, 0, 500), 0);
		for (ck_assert(reader_next(r, &ev, PATIENCE)); ev.kind != HW_READER_MESSAGE || ev.retained;
		     ck_assert(reader_next(r, &ev, PATIENCE))) {
			replayed += ev.kind == HW_READER_MESSAGE;
			if (ev.kind == HW_READER_UP && !up) /* the other events may come before or after it */
				peer_say(peer, "nodes/b/status", "now");
			up = up || ev.kind == HW_READER_UP;
		}
		ck_assert_int_eq(memcmp(ev.payload, "now", 3), 0);
		ck_assert_uint_eq(replayed, cases[i].comes);
		hw_reader_stop(r);
	}
}
END_TEST

static unsigned retained_before(struct hw_reader *r, enum hw_reader_event_kind end)
{
	struct hw_reader_event ev;
	unsigned n = 0;
	do {
		ck_assert(reader_next(r, &ev, PATIENCE));
		n += ev.kind == HW_READER_MESSAGE && ev.retained;
		ck_assert(ev.kind != HW_READER_MESSAGE || ev.retained);
	} while (ev.kind != end);
	return n;
}

/* Each reader of a group has its own plain filters; and what is retained there can be had once more. */
START_TEST(test_replayed)
{
	struct hw_mqtt_conf conf = conf_for(&broker, ways[_i].protocol, ways[_i].qos, "hw-t-r0");
	conf.share_topic = "heartwheel/t/share";
	const struct hw_mqtt_filter filters[] = {{.filter = "nodes/+/heartbeat"},
	                                         {.filter = "heartwheel/+/status", .replay = true, .plain = true}};
	struct hw_reader *r[2];
	peer_publish(peer, "heartwheel/a/status", "history", 7, 1, true);
	peer_publish(peer, "nodes/a/heartbeat", "history", 7, 1, true);
	peer_settle(peer);
	for (unsigned i = 0; i < 2; i++) {
		conf.client_id = i ? "hw-t-r1" : "hw-t-r0";
		ck_assert_int_eq(hw_reader_start(&r[i], &conf, filters, 2, "g", 0, 500), 0);
		retained_before(r[i], HW_READER_UP);
	}
	peer_say(peer, "heartwheel/b/status", "now");
	for (unsigned i = 0; i < 2; i++) {
		struct hw_reader_event ev = reader_await(r[i], HW_READER_MESSAGE);
		while (ev.retained) /* may follow UP */
			ev = reader_await(r[i], HW_READER_MESSAGE);
		ck_assert(memcmp(ev.payload, "now", 3) == 0);
	}
	hw_reader_replay(r[0]);
	if (retained_before(r[0], HW_READER_REPLAYED) == 0)
		ck_assert(reader_await(r[0], HW_READER_MESSAGE).retained);
	struct hw_reader_event ev;
	ck_assert(!reader_next(r[0], &ev, 300));
	ck_assert(!reader_next(r[1], &ev, 0));
	for (unsigned i = 0; i < 2; i++)
		hw_reader_stop(r[i]);
}
END_TEST

/* A wake-up for many messages, not one each; and nothing is lost or reordered by it. */
START_TEST(test_batches)
{
	enum { MESSAGES = 20000 };
	struct hw_mqtt_conf conf = conf_for(&broker, 5, 0, "hw-t-r0");
	struct hw_reader *r = reader_up(&conf, "n", false);
	for (int i = 0; i < MESSAGES; i++)
		peer_publish(peer, "n", &i, sizeof(i), 0, false);
	int64_t dropped = 0;
	for (int want = 0; want < MESSAGES; want++) {
		struct hw_reader_event ev = reader_await(r, HW_READER_MESSAGE);
		int got;
		memcpy(&got, ev.payload, sizeof(got));
		ck_assert_int_ge(got, want);
		dropped += got - want;
		want = got;
	}
	struct hw_reader_stats stats = hw_reader_stats(r);
	printf("  %d messages, %llu wake-ups\n", MESSAGES, (unsigned long long)stats.wakeups);
	ck_assert_int_eq(dropped, 0);
	ck_assert_uint_lt(stats.wakeups, MESSAGES / 5);
	hw_reader_stop(r);
}
END_TEST

/* Publishes `n` messages and takes them. Returns how often the reader has let messages gather so far. */
static uint64_t gathered_after(struct hw_reader *r, int n)
{
	for (int i = 0; i < n; i++)
		peer_publish(peer, "n", &i, sizeof(i), 0, false);
	for (int got = -1; got != n - 1;)
		memcpy(&got, reader_await(r, HW_READER_MESSAGE).payload, sizeof(got));
	return hw_reader_stats(r).gathered;
}

/* A goodbye among few others does not wait for more to come. Their number decides, so that no machine is too slow for
 * it. */
START_TEST(test_few_do_not_gather)
{
	struct hw_mqtt_conf conf = conf_for(&broker, 5, 0, "hw-t-r0");
	struct hw_reader *r = reader_up(&conf, "n", false);
	ck_assert_uint_eq(gathered_after(r, 20), 0);
	hw_reader_stop(r);
}
END_TEST

/* While a barrier is on its way a silent device waits for it: nothing gathers. Otherwise what comes thick does. */
/*
 * Each message comes after the one before was read. The kernel takes the second of two segments of one size for a full
 * one. So it would acknowledge it only after 40 ms, and until then mosquitto would hold back the next.
 */
START_TEST(test_messages_do_not_wait_for_tcp)
{
	enum { WARM_UP = 100, ROUNDS = 30 }; /* at first, while its window grows, the kernel acknowledges each */
	static const size_t sizes[] = {1200, 600, 600}; /* a full segment has 536 bytes at least */
	struct hw_mqtt_conf conf = conf_for(&broker, ways[_i].protocol, ways[_i].qos, "hw-t-r0");
	struct hw_reader *r = reader_up(&conf, "nodes/+/heartbeat", false);
	char text[1200];
	int64_t began = 0;
	memset(text, 'x', sizeof(text));
	for (int i = 0; i < WARM_UP + 3 * ROUNDS; i++) {
		began = i == WARM_UP ? now_ms() : began;
		peer_publish(peer, "nodes/a/heartbeat", text, sizes[i % 3], 1, false);
		ck_assert_uint_eq(reader_await(r, HW_READER_MESSAGE).payload_len, sizes[i % 3]);
	}
	ck_assert_within(now_ms() - began, ROUNDS * 20, "ms");
	hw_reader_stop(r);
}
END_TEST

START_TEST(test_gathers_for_no_barrier)
{
	struct hw_mqtt_conf conf = conf_for(&broker, 5, 0, "hw-t-r0");
	struct hw_reader *r = reader_up(&conf, "n", false);
	int64_t until = now_ms() + PATIENCE;
	hw_reader_expect(r, INT64_MAX);
	uint64_t before = gathered_after(r, 1);
	ck_assert_uint_eq(gathered_after(r, 3000), before);
	hw_reader_expect(r, 0);
	while (gathered_after(r, 100) == before)
		ck_assert_msg(now_ms() < until, "it never lets messages gather");
	hw_reader_expect(r, 1); /* over since long */
	before = hw_reader_stats(r).gathered;
	while (gathered_after(r, 100) == before)
		ck_assert_msg(now_ms() < until, "it never lets messages gather again");
	hw_reader_stop(r);
}
END_TEST

/* --- barriers */

START_TEST(test_barriers)
{
	struct hw_mqtt_conf conf = conf_for(&broker, ways[_i].protocol, ways[_i].qos, "hw-t-r0"), pub = conf;
	static const char *junk[] = {"",
	                             "x",
	                             "00000000deadbeef",
	                             "00000000deadbeef ",
	                             "00000000DEADBEEF 1",
	                             "00000000deadbeef 01",
	                             "00000000deadbeef 1 ",
	                             "00000000deadbeef -1",
	                             "00000000deadbeef  1",
	                             "0000000deadbeef 12",
	                             "00000000deadbeef 18446744073709551616",
	                             "00000000deadbeef 99999999999999999999"};
	const unsigned n_junk = sizeof(junk) / sizeof(junk[0]);
	pub.client_id = "hw-t-pub";
	peer_publish(peer, conf.barrier_topic, "00000000deadbeef 4", 18, 1, true); /* history is no barrier */
	peer_settle(peer);
	struct hw_reader *r = reader_up(&conf, "nodes/+", false);
	struct hw_publisher *p = publisher_up(&pub);
	for (unsigned i = 0; i < n_junk; i++)
		peer_say(peer, conf.barrier_topic, junk[i]);
	peer_say(peer, "nodes/a", "before");
	hw_publisher_barrier(p, UINT64_C(0xfedcba9876543210), UINT64_MAX);
	hw_publisher_barrier(p, 1, 0);
	hw_publisher_flush(p);
	reader_expect(r, "nodes/a", "before");
	struct hw_reader_event ev = reader_await(r, HW_READER_BARRIER);
	ck_assert_uint_eq(ev.run_id, UINT64_C(0xfedcba9876543210));
	ck_assert_uint_eq(ev.number, UINT64_MAX);
	ck_assert(reader_next(r, &ev, PATIENCE));
	ck_assert_int_eq(ev.kind, HW_READER_BARRIER);
	ck_assert(ev.run_id == 1 && ev.number == 0);
	uint64_t counted = hw_reader_stats(r).junk_barriers;
	ck_assert(counted == n_junk || (conf.protocol == 311 && counted == n_junk + 1));
	hw_publisher_stop(p, 1000);
	hw_reader_stop(r);
}
END_TEST

/* --- losses */

START_TEST(test_broker_restarts)
{
	struct hw_mqtt_conf conf = conf_for(&broker, ways[_i].protocol, ways[_i].qos, "hw-t-r0");
	struct hw_reader *r = reader_up(&conf, "nodes/+", false);
	struct hw_reader_event ev;
	broker_stop(&broker, SIGKILL);
	ev = reader_await(r, HW_READER_DOWN);
	ck_assert_msg(strstr(ev.text, "lost"), "%s", ev.text);
	ev = reader_await(r, HW_READER_DOWN);         /* the reason has changed: it is reported once more, and only
	                                               * once */
	if (strstr(ev.text, "closed the connection")) /* the broker had not yet ended */
		ev = reader_await(r, HW_READER_DOWN);
	ck_assert_msg(strstr(ev.text, "refused: is the broker running?"), "%s", ev.text);
	ck_assert_msg(!reader_next(r, &ev, 1500), "said again: %s", ev.text);
	broker_start(&broker);
	ck_assert(reader_next(r, &ev, PATIENCE));
	ck_assert_int_eq(ev.kind, HW_READER_UP);
	ck_assert_uint_eq(hw_reader_stats(r).reconnects, 1);
	struct peer *other = peer_new(&broker);
	peer_say(other, "nodes/a", "again");
	reader_expect(r, "nodes/a", "again");
	peer_free(other);
	hw_reader_stop(r);
}
END_TEST

START_TEST(test_reconnect_ordered)
{
	struct hw_mqtt_conf conf = conf_for(&broker, 5, 0, "hw-t-r0");
	struct hw_reader *r = reader_up(&conf, "nodes/+", false);
	int64_t best_ms = INT64_MAX; /* of several: one may have to wait for a processor */
	for (int i = 0; i < 5 && best_ms >= 1000; i++) {
		int64_t start = now_ms();
		hw_reader_reconnect(r);
		struct hw_reader_event ev = reader_await(r, HW_READER_DOWN);
		ck_assert_msg(strstr(ev.text, "by the monitor"), "%s", ev.text);
		reader_await(r, HW_READER_UP);
		best_ms = now_ms() - start < best_ms ? now_ms() - start : best_ms;
	}
	peer_say(peer, "nodes/a", "again");
	reader_expect(r, "nodes/a", "again");
	hw_reader_stop(r);
	ck_assert_within(best_ms, 1000, "ms"); /* the first attempt comes quickly */
}
END_TEST

/* --- filters */

START_TEST(test_other_filters)
{
	static const struct hw_mqtt_filter first[] = {{.filter = "keep/+", .replay = true}, {.filter = "drop/+"}},
					   second[] = {{.filter = "come/+", .replay = true},
	                                               {.filter = "keep/+", .replay = true}};
	struct hw_mqtt_conf conf = conf_for(&broker, ways[_i].protocol, ways[_i].qos, "hw-t-r0");
	struct hw_reader *r;
	peer_publish(peer, "keep/a", "kept", 4, 1, true);
	peer_publish(peer, "come/a", "new", 3, 1, true);
	peer_settle(peer);
	ck_assert_int_eq(hw_reader_start(&r, &conf, first, 2, NULL, 0, 500), 0);
	ck_assert(reader_expect(r, "keep/a", "kept").retained);
	reader_await(r, HW_READER_UP);
	ck_assert_int_eq(hw_reader_set_filters(r, second, 2), 0);
	ck_assert(reader_expect(r, "come/a", "new").retained);
	peer_say(peer, "drop/a", "unheard");
	peer_say(peer, "keep/a", "heard");
	peer_say(peer, "come/a", "heard too");
	reader_expect(r, "keep/a", "heard");
	reader_expect(r, "come/a", "heard too");
	hw_reader_reconnect(r); /* a new connection subscribes to the new set */
	reader_await(r, HW_READER_UP);
	peer_say(peer, "drop/a", "unheard");
	peer_say(peer, "come/b", "after");
	struct hw_reader_event ev;
	do
		ev = reader_await(r, HW_READER_MESSAGE);
	while (ev.retained);
	ck_assert_int_eq(memcmp(ev.topic, "come/b", 6), 0);
	hw_reader_stop(r);
}
END_TEST

/* Each message goes to one reader, each barrier to both. */
START_TEST(test_shared)
{
	static const struct hw_mqtt_filter filter = {.filter = "nodes/+"};
	struct hw_mqtt_conf conf = conf_for(&broker, 5, 1, "hw-t-r0"), second = conf;
	struct hw_reader *r[2];
	struct hw_reader_event ev;
	unsigned got = 0, barriers = 0;
	second.client_id = "hw-t-r1";
	ck_assert_int_eq(hw_reader_start(&r[0], &conf, &filter, 1, "heartwheel-t", 0, 500), 0);
	ck_assert_int_eq(hw_reader_start(&r[1], &second, &filter, 1, "heartwheel-t", 0, 500), 0);
	for (int i = 0; i < 2; i++)
		reader_await(r[i], HW_READER_UP);
	for (int i = 0; i < 100; i++)
		peer_publish(peer, "nodes/a", "x", 1, 1, false);
	peer_say(peer, conf.barrier_topic, "0000000000000001 1");
	for (int i = 0; i < 2; i++) {
		unsigned mine = 0, last = barriers;
		while (barriers == last) {
			ck_assert(reader_next(r[i], &ev, PATIENCE));
			mine += ev.kind == HW_READER_MESSAGE;
			barriers += ev.kind == HW_READER_BARRIER;
		}
		ck_assert_uint_gt(mine, 0);
		got += mine;
	}
	ck_assert_uint_eq(got, 100);
	for (int i = 0; i < 2; i++)
		hw_reader_stop(r[i]);
}
END_TEST

/* --- standing still */

/* Counts messages in order up to `n`, and other events by kind. */
static void take_all(struct hw_reader *r, int n, unsigned kinds[HW_READER_NEARLY_FULL + 1])
{
	for (int want = 0; want < n;) {
		struct hw_reader_event ev;
		ck_assert_msg(reader_next(r, &ev, PATIENCE), "message %d did not come", want);
		kinds[ev.kind]++;
		ck_assert_msg(ev.kind != HW_READER_DOWN, "%s", ev.text);
		if (ev.kind != HW_READER_MESSAGE)
			continue;
		int got;
		memcpy(&got, ev.payload, sizeof(got));
		ck_assert_int_eq(got, want++);
	}
}

static void wait_for_full_ring(struct hw_reader *r)
{
	int64_t until = now_ms() + PATIENCE;
	while (hw_reader_stats(r).ring_waits == 0) {
		ck_assert_msg(now_ms() < until, "the ring does not fill up");
		poll(NULL, 0, 5);
	}
}

START_TEST(test_full_ring_loses_nothing)
{
	enum { MESSAGES = 8000 };
	struct hw_mqtt_conf conf = conf_for(&broker, ways[_i].protocol, 1, "hw-t-r0");
	struct hw_reader *r = reader_up(&conf, "n", false);
	char payload[400] = {0};
	for (int i = 0; i < MESSAGES; i++) {
		memcpy(payload, &i, sizeof(i));
		peer_publish(peer, "n", payload, sizeof(payload), 1, false);
	}
	peer_settle(peer);
	wait_for_full_ring(r);
	ck_assert_uint_lt(hw_reader_stats(r).messages, MESSAGES);
	unsigned kinds[HW_READER_NEARLY_FULL + 1] = {0};
	take_all(r, MESSAGES, kinds);
	ck_assert_uint_eq(hw_reader_stats(r).messages, MESSAGES);
	hw_reader_stop(r);
}
END_TEST

/*
 * The loop stands still for longer than the broker waits for a sign of life (1.5 keepalives, looked at every 6 s): the
 * link lives on. It also was a delay like any other, and is told as one.
 */
START_TEST(test_full_ring_outlives_keepalive)
{
	enum { MESSAGES = 3000, KEEPALIVE = 5, STILL_MS = 15000 };
	struct hw_mqtt_conf conf = conf_for(&broker, 5, 0, "hw-t-r0");
	struct hw_reader_event ev;
	conf.keepalive_s = KEEPALIVE;
	struct hw_reader *r = reader_up(&conf, "n", false);
	char payload[400] = {0};
	for (int i = 0; i < MESSAGES; i++) {
		memcpy(payload, &i, sizeof(i));
		peer_publish(peer, "n", payload, sizeof(payload), 0, false);
	}
	wait_for_full_ring(r);
	int64_t full = now_ms();
	while (now_ms() - full < STILL_MS)
		poll(NULL, 0, 100);
	unsigned kinds[HW_READER_NEARLY_FULL + 1] = {0};
	take_all(r, MESSAGES, kinds);
	while (kinds[HW_READER_DRAINED] == 0) {
		ck_assert(reader_next(r, &ev, PATIENCE));
		kinds[ev.kind]++;
	}
	ck_assert_uint_eq(kinds[HW_READER_STALL], 1);
	ck_assert_uint_eq(kinds[HW_READER_DOWN], 0);
	ck_assert_msg(!reader_next(r, &ev, 1500) || ev.kind != HW_READER_DOWN, "%s", ev.text);
	ck_assert_uint_eq(broker_logged(&broker, "exceeded timeout"), 0);
	hw_reader_stop(r);
}
END_TEST

START_TEST(test_nearly_full)
{
	enum { MESSAGES = 1500, SIZE = 32768 };
	struct hw_mqtt_conf conf = conf_for(&broker, 5, 0, "hw-t-r0");
	struct hw_reader *r = reader_up(&conf, "n", false);
	struct hw_reader_event ev;
	static char payload[SIZE];
	for (int i = 0; i < MESSAGES; i++)
		peer_publish(peer, "n", payload, SIZE, 0, false);
	peer_say(peer, "end", "so that all of them have been sent");
	broker_blocked(&broker);
	unsigned kinds[HW_READER_NEARLY_FULL + 1] = {0};
	for (uint64_t n = 0; n < 2 || kinds[HW_READER_MESSAGE] < MESSAGES; n++) {
		if (!reader_next(r, &ev, 2000))
			break; /* the broker has dropped some */
		kinds[ev.kind]++;
	}
	/* Once each time that it fills, which it may do again while a slow broker has more; not at each of hundreds of
	 * looks. */
	ck_assert_uint_ge(kinds[HW_READER_NEARLY_FULL], 1);
	ck_assert_uint_le(kinds[HW_READER_NEARLY_FULL], 10);
	ck_assert_uint_eq(kinds[HW_READER_DOWN], 0);
	hw_reader_stop(r);
}
END_TEST

/* The whole process is suspended, as in a paused virtual machine, while messages arrive. */
START_TEST(test_stall)
{
	enum { STILL_MS = 1500 };
	struct hw_mqtt_conf conf = conf_for(&broker, 5, 0, "hw-t-r0");
	struct hw_reader *r = reader_up(&conf, "n", false);
	struct hw_reader_event ev;
	peer_publish(peer, "n", "", 0, 0, false);
	ev = reader_await(r, HW_READER_MESSAGE);
	int64_t before = now_ms();
	pid_t pid = fork();
	if (pid == 0) {
		kill(getppid(), SIGSTOP);
		poll(NULL, 0, STILL_MS);
		kill(getppid(), SIGCONT);
		_exit(0);
	}
	ev = reader_await(r, HW_READER_STALL);
	int64_t planned_ms = ev.planned_ns / 1000000, after = now_ms();
	ck_assert_int_ge(planned_ms, before);
	ck_assert_int_ge(after - planned_ms, 500);
	ck_assert(reader_next(r, &ev, PATIENCE));
	ck_assert_int_eq(ev.kind, HW_READER_DRAINED);
	waitpid(pid, NULL, 0);
	ck_assert_msg(!reader_next(r, &ev, 1200), "event %d without a stall", (int)ev.kind);
	hw_reader_stop(r);
}
END_TEST

/* If no message arrives the thread sleeps, except for requests of the loop. */
START_TEST(test_idle)
{
	struct hw_mqtt_conf conf = conf_for(&broker, 5, 0, "hw-t-r0");
	struct hw_reader *r = reader_up(&conf, "n", false);
	struct hw_reader_event ev;
	peer_publish(peer, "n", "", 0, 0, false);
	reader_await(r, HW_READER_MESSAGE);
	ck_assert(!reader_next(r, &ev, 1500));
	uint64_t woken = hw_reader_stats(r).wakeups;
	ck_assert(!reader_next(r, &ev, 2500));
	ck_assert_uint_eq(hw_reader_stats(r).wakeups, woken);
	hw_reader_drain(r);
	ck_assert(reader_next(r, &ev, PATIENCE));
	ck_assert_int_eq(ev.kind, HW_READER_DRAINED);
	ck_assert_msg(!reader_next(r, &ev, 500), "event %d without a reason", (int)ev.kind);
	broker_stop(&broker, SIGKILL);
	reader_await(r, HW_READER_DOWN);
	hw_reader_drain(r);
	reader_await(r, HW_READER_DRAINED);
	hw_reader_stop(r);
	broker_start(&broker);
}
END_TEST

/* --- the list */

static void add(void *suite)
{
	const int n_ways = sizeof(ways) / sizeof(ways[0]);
	TCase *t = tcase_create("reader");
	tcase_set_timeout(t, 90);
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_loop_test(t, test_receives, 0, n_ways);
	tcase_add_loop_test(t, test_long_ones, 0, n_ways);
	tcase_add_test(t, test_retained);
	tcase_add_loop_test(t, test_replayed, 0, n_ways);
	tcase_add_test(t, test_batches);
	tcase_add_test(t, test_few_do_not_gather);
	tcase_add_loop_test(t, test_messages_do_not_wait_for_tcp, 0, n_ways);
	tcase_add_test(t, test_gathers_for_no_barrier);
	tcase_add_loop_test(t, test_barriers, 0, n_ways);
	tcase_add_loop_test(t, test_broker_restarts, 1, 3); /* one of each protocol */
	tcase_add_test(t, test_reconnect_ordered);
	tcase_add_loop_test(t, test_other_filters, 1, 3);
	tcase_add_test(t, test_shared);
	tcase_add_loop_test(t, test_full_ring_loses_nothing, 1, 3);
	tcase_add_test(t, test_full_ring_outlives_keepalive);
	tcase_add_test(t, test_nearly_full);
	tcase_add_test(t, test_stall);
	tcase_add_test(t, test_idle);
	suite_add_tcase(suite, t);
}

int main(void)
{
	return test_mqtt_main("mqtt readers", add);
}

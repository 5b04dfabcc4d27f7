/* SPDX-License-Identifier: MIT */
/*
 * A reader and bytes: what it makes of a stream of packets, however that is cut, and of its end. No broker cuts a
 * stream on request or breaks the rules, so that here the test itself is the other end of the connection.
 */
#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../random.h"
#include "mqtt_broker.h"

#define MARK        "0123456789abcdef "
#define LONG        70000 /* a payload that is cut off when it is handed over */
#define STREAM      (24 << 20)
#define KEEPALIVE_S 30

static const int protocols[] = {5, 311};

/* --- the other end */

struct server {
	int listener, fd;
	bool v5;
	struct broker at; /* its port, for conf_for() */
	uint8_t *bytes;   /* what it is going to send */
	size_t n;
};

static void read_exactly(int fd, void *to, size_t n)
{
	ck_assert_int_eq(recv(fd, to, n, MSG_WAITALL), (ssize_t)n);
}

static void write_all(int fd, const uint8_t *from, size_t n)
{
	for (ssize_t written; n > 0; from += written, n -= (size_t)written) {
		written = send(fd, from, n, MSG_NOSIGNAL);
		ck_assert_int_gt(written, 0);
	}
}

/* The next packet that the server receives: its first byte, and its body of at most 127 bytes. */
static uint8_t hear(struct server *s, uint8_t body[128])
{
	uint8_t head[2];
	read_exactly(s->fd, head, 2);
	ck_assert_uint_lt(head[1], 128);
	read_exactly(s->fd, body, head[1]);
	return head[0];
}

static void listen_on(struct server *s, int protocol)
{
	*s = (struct server){.v5 = protocol == 5};
	s->listener = bound_socket(&s->at.port);
	ck_assert_int_eq(listen(s->listener, 4), 0);
	s->bytes = malloc(STREAM);
	ck_assert_ptr_nonnull(s->bytes);
}

/* Receives a SUBSCRIBE, and answers it with this code. */
static void answer_subscribe(struct server *s, uint8_t code)
{
	uint8_t body[128];
	ck_assert_uint_eq(hear(s, body), 0x82);
	uint8_t answer[] = {0x90, s->v5 ? 4 : 3, body[0], body[1], s->v5 ? 0 : code, code};
	write_all(s->fd, answer, s->v5 ? 6 : 5);
}

/* Accepts the connection with this CONNACK, and grants the heartbeats' filter and the barriers'. */
static void welcome_with(struct server *s, const char *connack, size_t n)
{
	uint8_t body[128];
	int one = 1;
	s->fd = accept(s->listener, NULL, NULL);
	ck_assert_int_ge(s->fd, 0);
	setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	ck_assert_uint_eq(hear(s, body), 0x10);
	write_all(s->fd, (const uint8_t *)connack, n);
	for (int i = 0; i < 2; i++)
		answer_subscribe(s, 0);
}

static void welcome(struct server *s)
{
	welcome_with(s, s->v5 ? "\x20\3\0\0\0" : "\x20\2\0\0", s->v5 ? 5 : 4);
}

static struct hw_reader *meet_with(struct server *s, int protocol, int qos, int keepalive_s)
{
	static const struct hw_mqtt_filter filter = {.filter = "n/+", .renew = true};
	struct hw_reader *r;
	listen_on(s, protocol);
	struct hw_mqtt_conf conf = conf_for(&s->at, protocol, qos, "hw-t-r0");
	conf.keepalive_s = keepalive_s;
	ck_assert_int_eq(hw_reader_start(&r, &conf, &filter, 1, NULL, 0, 30000), 0);
	welcome(s);
	reader_await(r, HW_READER_UP);
	return r;
}

static struct hw_reader *meet(struct server *s, int protocol)
{
	return meet_with(s, protocol, 0, KEEPALIVE_S);
}

static void expect_closed(struct hw_reader *r)
{
	struct hw_reader_event ev = reader_await(r, HW_READER_DOWN);
	ck_assert_msg(strstr(ev.text, "closed by"), "%s", ev.text);
}

static void meet_again(struct server *s, struct hw_reader *r)
{
	hw_reader_retry(r);
	welcome(s);
	reader_await(r, HW_READER_UP);
}

static void part(struct server *s, struct hw_reader *r)
{
	hw_reader_stop(r);
	close(s->fd);
	close(s->listener);
	free(s->bytes);
}

/* --- packets */

static void add(struct server *s, const void *bytes, size_t n)
{
	ck_assert_uint_le(s->n + n, STREAM);
	memcpy(s->bytes + s->n, bytes, n);
	s->n += n;
}

static size_t put_length(uint8_t *to, size_t value)
{
	size_t n = 0;
	for (; value > 127; value >>= 7)
		to[n++] = (uint8_t)(value | 128);
	to[n++] = (uint8_t)value;
	return n;
}

static void add_message(struct server *s, const char *topic, const void *payload, size_t len, bool retained)
{
	size_t topic_len = strlen(topic);
	uint8_t head[8] = {(uint8_t)(0x30 | retained)};
	size_t n = 1 + put_length(head + 1, 2 + topic_len + s->v5 + len);
	head[n++] = (uint8_t)(topic_len >> 8);
	head[n++] = (uint8_t)topic_len;
	add(s, head, n);
	add(s, topic, topic_len);
	add(s, "\0", s->v5);
	add(s, payload, len);
}

/* Everything that a broker may send at any time, and that is no message. */
static void add_other(struct server *s)
{
	if (random_below(2))
		add(s, "\xd0", 2); /* PINGRESP */
	else if (s->v5)
		add(s, "\xb0\4\7\7\0\0", 6); /* UNSUBACK */
	else
		add(s, "\xb0\2\7\7", 4);
}

#define PROPERTY                                                                                                       \
	"\x26\0\1n\0\x10"                                                                                              \
	"0123456789abcdef"

/* A retained message of MQTT 5 on "n/long" with the packet id 258 and this many user properties, of which number `odd`
 * has an identifier that does not exist. */
static void add_properties(struct server *s, int qos, size_t properties, size_t odd)
{
	static const char topic[] = "\0\6n/long", id[] = "\1\2";
	uint8_t head[8] = {(uint8_t)(0x31 | qos << 1)}, length[4];
	size_t one = sizeof(PROPERTY) - 1, n_length = put_length(length, properties * one);
	add(s, head, 1 + put_length(head + 1, 8 + (qos ? 2U : 0U) + n_length + properties * one + 1));
	add(s, topic, 8);
	add(s, id, qos ? 2U : 0U);
	add(s, length, n_length);
	for (size_t i = 0; i < properties; i++) {
		add(s, PROPERTY, one);
		if (i == odd)
			s->bytes[s->n - one] = 0x7f;
	}
	add(s, "x", 1);
}

/* Message number `i`: its length, topic and bytes follow from the number. */
static size_t length_of(int i)
{
	return i % 97 == 96 ? LONG + (size_t)i : i % 31 == 30 ? 5000 + (size_t)i * 7 % 9000 : (size_t)i % 50;
}

static void fill(char *payload, size_t len, int i)
{
	for (size_t k = 0; k < len; k++)
		payload[k] = (char)((size_t)i + k * 7 + k / 251);
}

static void add_numbered(struct server *s, int i)
{
	static char payload[2 * LONG];
	char topic[32];
	snprintf(topic, sizeof(topic), "n/%d", i);
	fill(payload, length_of(i), i);
	add_message(s, topic, payload, length_of(i), i % 3 == 0);
}

static void expect_numbered(struct hw_reader *r, int i)
{
	static char payload[2 * LONG];
	struct hw_reader_event ev;
	char topic[32];
	size_t len = length_of(i), kept = len > HW_READER_PAYLOAD_MAX ? HW_READER_PAYLOAD_MAX : len;
	do
		ck_assert_msg(reader_next(r, &ev, PATIENCE), "message %d did not come", i);
	while (ev.kind == HW_READER_NEARLY_FULL);
	ck_assert_msg(ev.kind == HW_READER_MESSAGE, "event %d '%s' instead of message %d", (int)ev.kind, ev.text, i);
	snprintf(topic, sizeof(topic), "n/%d", i);
	fill(payload, len, i);
	ck_assert_msg(ev.topic_len == strlen(topic) && memcmp(ev.topic, topic, ev.topic_len) == 0, "%.*s instead of %s",
	              (int)ev.topic_len, ev.topic, topic);
	ck_assert_uint_eq(ev.payload_len, kept);
	ck_assert_int_eq(memcmp(ev.payload, payload, kept), 0);
	ck_assert_int_eq(ev.truncated, kept < len);
	ck_assert_int_eq(ev.retained, i % 3 == 0);
}

/* --- tests */

/* A child writes the stream: in pieces that fit no packet, some of them one byte, with moments between some. */
static pid_t send_in_pieces(const struct server *s)
{
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	for (size_t at = 0; at < s->n;) {
		static const uint32_t sizes[] = {1, 3, 40, 1000, 70000, 300000};
		size_t n = 1 + random_below(sizes[random_below(6)]);
		if (n > s->n - at)
			n = s->n - at;
		write_all(s->fd, s->bytes + at, n);
		at += n;
		if (random_below(4) == 0)
			poll(NULL, 0, (int)random_below(5));
	}
	_exit(0);
}

START_TEST(test_any_pieces)
{
	enum { MESSAGES = 3000, BARRIERS = 500 };
	struct server s;
	struct hw_reader *r = meet(&s, protocols[_i]);
	char barrier[64];
	for (int i = 0; i < MESSAGES; i++) {
		add_numbered(&s, i);
		if (random_below(5) == 0)
			add_other(&s);
		if (i % BARRIERS == BARRIERS - 1) {
			snprintf(barrier, sizeof(barrier), MARK "%d", i);
			add_message(&s, "heartwheel/t/barrier", barrier, strlen(barrier), false);
			add_message(&s, "heartwheel/t/barrier", barrier, strlen(barrier), true); /* history */
			add_message(&s, "heartwheel/t/barrier", "junk", 4, false);
		}
	}
	pid_t pid = send_in_pieces(&s);
	for (int i = 0; i < MESSAGES; i++) {
		struct hw_reader_event ev;
		expect_numbered(r, i);
		if (i % BARRIERS != BARRIERS - 1)
			continue;
		do
			ck_assert(reader_next(r, &ev, PATIENCE));
		while (ev.kind == HW_READER_NEARLY_FULL);
		ck_assert_int_eq(ev.kind, HW_READER_BARRIER);
		ck_assert_uint_eq(ev.number, (uint64_t)i);
		ck_assert_uint_eq(ev.run_id, UINT64_C(0x0123456789abcdef));
	}
	ck_assert_uint_eq(hw_reader_stats(r).messages, MESSAGES);
	ck_assert_uint_eq(hw_reader_stats(r).junk_barriers, 2 * MESSAGES / BARRIERS);
	waitpid(pid, NULL, 0);
	part(&s, r);
}
END_TEST

/* The ring is full and the sender continues: no message is lost or repeated. */
START_TEST(test_full_ring)
{
	enum { MESSAGES = 9000 };
	struct server s;
	struct hw_reader *r = meet(&s, protocols[_i]);
	for (int i = 0; i < MESSAGES; i++)
		add_numbered(&s, i);
	pid_t pid = send_in_pieces(&s);
	int64_t until = now_ms() + PATIENCE;
	while (hw_reader_stats(r).ring_waits == 0) {
		ck_assert_msg(now_ms() < until, "the ring does not fill up");
		poll(NULL, 0, 5);
	}
	for (int i = 0; i < MESSAGES; i++)
		expect_numbered(r, i);
	ck_assert_uint_eq(hw_reader_stats(r).messages, MESSAGES);
	waitpid(pid, NULL, 0);
	part(&s, r);
}
END_TEST

static void expect_rest(struct hw_reader *r, int ms, uint64_t most)
{
	uint64_t before = hw_reader_stats(r).wakeups;
	struct hw_reader_event ev;
	ck_assert_msg(!reader_next(r, &ev, ms), "event %d '%s'", (int)ev.kind, ev.text);
	ck_assert_uint_le(hw_reader_stats(r).wakeups - before, most);
}

/* Half a packet wakes the thread once, and not for as long as it stays half; the rest wakes it at once. */
START_TEST(test_half_a_packet)
{
	struct server s;
	struct hw_reader *r = meet(&s, protocols[_i]);
	add_numbered(&s, 10);
	for (size_t cut = 1; cut < s.n; cut += s.n / 3) {
		write_all(s.fd, s.bytes, cut);
		expect_rest(r, 700, 6);
		write_all(s.fd, s.bytes + cut, s.n - cut);
		expect_numbered(r, 10);
	}
	s.n = 0;
	add_numbered(&s, 0); /* shorter than what was awaited */
	write_all(s.fd, s.bytes, s.n);
	expect_numbered(r, 0);
	part(&s, r);
}
END_TEST

/*
 * A message arrives in two pieces. The second piece also holds a packet that the library reads: a short one, or one
 * that is too long to wait for. The reader must not wait for as many bytes again: it reads a shorter message at once.
 */
START_TEST(test_short_after_what_the_library_takes)
{
	struct server s;
	struct hw_reader *r = meet(&s, protocols[_i]);
	for (int is_long = 0; is_long < 2; is_long++) {
		s.n = 0;
		add_numbered(&s, 49);
		size_t cut = s.n - 1;
		write_all(s.fd, s.bytes, cut);
		expect_rest(r, 200, 6); /* it waits for the rest of the packet */
		if (is_long)
			add_numbered(&s, 30);
		else
			add_other(&s);
		write_all(s.fd, s.bytes + cut, s.n - cut);
		expect_numbered(r, 49);
		if (is_long)
			expect_numbered(r, 30);
		s.n = 0;
		add_numbered(&s, 0);
		write_all(s.fd, s.bytes, s.n);
		expect_numbered(r, 0);
	}
	part(&s, r);
}
END_TEST

START_TEST(test_end_in_a_packet)
{
	struct server s;
	struct hw_reader *r = meet(&s, protocols[_i]);
	add_numbered(&s, 10);
	for (int times = 0; times < 2; times++) { /* at once, and after a while */
		add_numbered(&s, 11);
		write_all(s.fd, s.bytes, s.n - 1);
		expect_numbered(r, 10);
		if (times)
			expect_rest(r, 300, 6);
		s.n = 0;
		add_numbered(&s, 10);
		close(s.fd);
		expect_closed(r);
		meet_again(&s, r);
	}
	part(&s, r);
}
END_TEST

/* Bytes that are no MQTT end the connection; what came before them has been read. */
START_TEST(test_broken)
{
	static const struct {
		const char *bytes;
		size_t n;
	} broken[] = {{"\x30\4\0\3ab", 6}, {"\x30\0", 2}, {"\x36\6\0\1a\0\1\0", 8}, {"\x10\2\0\0", 4}};
	struct server s;
	struct hw_reader *r = meet(&s, protocols[_i]);
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		s.n = 0;
		add_numbered(&s, 10);
		add(&s, broken[i].bytes, broken[i].n);
		write_all(s.fd, s.bytes, s.n);
		expect_numbered(r, 10);
		reader_await(r, HW_READER_DOWN);
		close(s.fd);
		meet_again(&s, r);
	}
	part(&s, r);
}
END_TEST

static struct hw_reader_event next_but_full(struct hw_reader *r)
{
	struct hw_reader_event ev;
	do
		ck_assert(reader_next(r, &ev, PATIENCE));
	while (ev.kind == HW_READER_NEARLY_FULL);
	return ev;
}

#define NONE SIZE_MAX

/* A message with more properties than fit in the socket is discarded, and acknowledged. The connection goes on. */
START_TEST(test_many_properties)
{
	enum { MOST = 128 * 1024 / (sizeof(PROPERTY) - 1), TIMES = 5 };
	struct server s;
	struct hw_reader *r = meet_with(&s, 5, _i, KEEPALIVE_S);
	size_t sizes[2];
	char text[80];
	for (int i = 0; i < TIMES; i++) {
		add_numbered(&s, i);
		add_properties(&s, _i, MOST - 1, NONE);
		size_t before = s.n;
		add_properties(&s, _i, MOST + 1, NONE);
		sizes[0] = s.n - before;
		add_properties(&s, _i, 10 * MOST, MOST); /* discarded before the unknown property is seen */
		sizes[1] = s.n - before - sizes[0];
	}
	add_numbered(&s, TIMES);
	pid_t pid = send_in_pieces(&s);
	for (int i = 0; i < TIMES; i++) {
		expect_numbered(r, i);
		struct hw_reader_event ev = next_but_full(r);
		ck_assert_msg(ev.kind == HW_READER_MESSAGE, "event %d '%s'", (int)ev.kind, ev.text);
		ck_assert(ev.topic_len == 6 && ev.payload_len == 1 && ev.retained);
		for (int k = 0; k < 2; k++) {
			ev = next_but_full(r);
			ck_assert_msg(ev.kind == HW_READER_TOO_LONG, "event %d '%s'", (int)ev.kind, ev.text);
			snprintf(text, sizeof(text), "a retained message of %zu bytes on topic 'n/long'", sizes[k]);
			ck_assert_msg(strncmp(ev.text, text, strlen(text)) == 0, "%s instead of %s", ev.text, text);
		}
	}
	expect_numbered(r, TIMES);
	for (int i = 0; _i && i < 3 * TIMES; i++) {
		uint8_t ack[4];
		read_exactly(s.fd, ack, sizeof(ack));
		ck_assert_int_eq(memcmp(ack, "\x40\2\1\2", 4), 0);
	}
	waitpid(pid, NULL, 0);
	part(&s, r);
}
END_TEST

/* The broker closes or resets the connection within properties that the reader waits for, and within properties that it
 * discards. */
START_TEST(test_end_in_properties)
{
	static const size_t properties[] = {5000, 20000};
	struct server s;
	const struct linger reset = {.l_onoff = 1};
	int qos = _i & 1;
	struct hw_reader *r = meet_with(&s, 5, qos, KEEPALIVE_S);
	for (int i = 0; i < 2; i++) {
		s.n = 0;
		add_properties(&s, qos, properties[i], NONE);
		write_all(s.fd, s.bytes, s.n / 2);
		if (i == 1)
			reader_await(r, HW_READER_TOO_LONG);
		expect_rest(r, 200, 20);
		if (_i & 2)
			setsockopt(s.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		close(s.fd);
		expect_closed(r);
		meet_again(&s, r);
	}
	part(&s, r);
}
END_TEST

/* While a message is being discarded, the reader sends an UNSUBSCRIBE in time. A PINGREQ would be answered only after
 * the message, perhaps too late. */
START_TEST(test_keepalive_within_properties)
{
	struct server s;
	uint8_t body[128];
	struct hw_reader *r = meet_with(&s, 5, 0, 5);
	add_properties(&s, 0, 20000, NONE);
	size_t half = s.n / 2;
	write_all(s.fd, s.bytes, half);
	reader_await(r, HW_READER_TOO_LONG);
	ck_assert_uint_eq(hear(&s, body), 0xa2);
	add_numbered(&s, 0);
	write_all(s.fd, s.bytes + half, s.n - half);
	expect_numbered(r, 0);
	part(&s, r);
}
END_TEST

/* The broker prescribes no keepalive, or one that is shorter than the time in which the library is called. The reader
 * does not spin. */
START_TEST(test_least_keepalives)
{
	static const char *const connacks[] = {"\x20\6\0\0\3\x13\0\0", "\x20\6\0\0\3\x13\0\3"};
	struct server s;
	struct hw_reader *r = meet(&s, 5);
	for (int i = 0; i < 2; i++) {
		close(s.fd);
		reader_await(r, HW_READER_DOWN);
		hw_reader_retry(r);
		welcome_with(&s, connacks[i], 8);
		reader_await(r, HW_READER_UP);
		expect_rest(r, 2500, 12);
	}
	part(&s, r);
}
END_TEST

/* Other packets that are too long end the connection, and so do malformed messages. The line gives the right reason. */
START_TEST(test_long_and_unsound)
{
	static const char *const whys[] = {"property 127", "no message", "violates", "violates"};
	struct server s;
	struct hw_reader *r = meet_with(&s, 5, _i, KEEPALIVE_S);
	for (int i = 0; i < 4; i++) {
		s.n = 0;
		add_properties(&s, _i, 10000, i == 0 ? 100 : NONE);
		if (i == 1)
			s.bytes[0] = 0xd0; /* a PINGRESP */
		if (i == 2)
			s.bytes[0] |= 6; /* QoS 3 */
		if (i == 3)
			s.bytes[_i ? 16 : 14] |= 0x40; /* the length of the properties: beyond the end */
		pid_t pid = send_in_pieces(&s);
		struct hw_reader_event ev = reader_await(r, HW_READER_DOWN);
		ck_assert_msg(strstr(ev.text, whys[i]), "case %d: %s", i, ev.text);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		close(s.fd);
		meet_again(&s, r);
	}
	part(&s, r);
}
END_TEST

/* A refused renewal is reported once, until the broker grants a renewal again. The connection stays. */
START_TEST(test_refused_renewals)
{
	static const struct {
		uint8_t code;
		bool is_reported;
	} renewals[] = {{0, false}, {0x80, true}, {0x80, false}, {0, false}, {0x80, true}};
	struct server s;
	struct hw_reader_event ev;
	struct hw_reader *r = meet(&s, protocols[_i]);
	for (size_t i = 0; i < sizeof(renewals) / sizeof(renewals[0]); i++) {
		hw_reader_renew(r);
		answer_subscribe(&s, renewals[i].code);
		ck_assert(reader_next(r, &ev, PATIENCE));
		if (renewals[i].is_reported) {
			ck_assert_msg(ev.kind == HW_READER_REFUSED && strstr(ev.text, "'n/+' refused"),
			              "%zu: event %d '%s'", i, (int)ev.kind, ev.text);
			ck_assert(reader_next(r, &ev, PATIENCE));
		}
		ck_assert_msg(ev.kind == HW_READER_RENEWED, "%zu: event %d '%s'", i, (int)ev.kind, ev.text);
	}
	add_numbered(&s, 0);
	write_all(s.fd, s.bytes, s.n);
	expect_numbered(r, 0);
	part(&s, r);
}
END_TEST

/* --- the list */

static void add_tests(void *suite)
{
	const int n = sizeof(protocols) / sizeof(protocols[0]);
	TCase *t = tcase_create("ahead");
	tcase_set_timeout(t, 90);
	tcase_add_loop_test(t, test_any_pieces, 0, n);
	tcase_add_loop_test(t, test_full_ring, 0, n);
	tcase_add_loop_test(t, test_half_a_packet, 0, n);
	tcase_add_loop_test(t, test_short_after_what_the_library_takes, 0, n);
	tcase_add_loop_test(t, test_end_in_a_packet, 0, n);
	tcase_add_loop_test(t, test_broken, 0, n);
	tcase_add_loop_test(t, test_refused_renewals, 0, n);
	tcase_add_loop_test(t, test_many_properties, 0, 2);
	tcase_add_loop_test(t, test_end_in_properties, 0, 4);
	tcase_add_test(t, test_keepalive_within_properties);
	tcase_add_test(t, test_least_keepalives);
	tcase_add_loop_test(t, test_long_and_unsound, 0, 2);
	suite_add_tcase(suite, t);
}

int main(void)
{
	random_begin(random_seed_of_now());
	return test_mqtt_main("mqtt, ahead of the library", add_tests);
}

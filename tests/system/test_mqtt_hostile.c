/* SPDX-License-Identifier: MIT */
/*
 * A broker that breaks the rules: readers, publishers and evictions end the connection and try again, and the process
 * goes on. No real broker does this on request, so the test itself is the broker: it answers with valid packets, of
 * which it changes some at random.
 */
#include <check.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../random.h"
#include "mqtt/evict.h"
#include "mqtt_broker.h"

#define CONNECTIONS 150
#define QUIET_MS    15 /* after which the broker closes a connection */
#define PIECE       512
#define WAIT_MS     60

struct hostile {
	int listener, port;
	bool v5;
	pthread_t thread;
	struct sim_random random; /* the thread's own */
	atomic_bool end;
	atomic_uint served;
};

static const struct {
	int protocol, qos;
} ways[] = {{5, 0}, {5, 1}, {311, 0}, {311, 1}};

/* The library does not free a packet's properties where a field behind them is wrong (libmosquitto 2.0.11). */
const char *__lsan_default_suppressions(void); /* NOLINT: the sanitizer asks for this name */
const char *__lsan_default_suppressions(void)  /* NOLINT */
{
	return "leak:libmosquitto";
}

/* --- valid packets */

#define BYTES(text) text, sizeof(text) - 1

static const struct packet {
	const char *bytes;
	size_t n;
} extras[2][9] = {
	{
		{BYTES("\x30\x06\0\3n/ax")},
		{BYTES("\x32\x08\0\3n/a\0\7x")},
		{BYTES("\x40\2\0\1")},
		{BYTES("\x50\2\0\1")},
		{BYTES("\x62\2\0\1")},
		{BYTES("\x70\2\0\1")},
		{BYTES("\x90\3\0\1\0")},
		{BYTES("\xb0\2\0\1")},
		{BYTES("\xd0\0")},
	},
	{
		/* payload format, expiry, content type, a user property, subscription identifier */
		{BYTES("\x30\x1b\0\3n/a\x14\1\1\2\0\0\0\x0a\3\0\1t\x26\0\1a\0\1b\x0b\5x")},
		{BYTES("\x32\x0b\0\3n/a\0\7\2\1\1x")},
		{BYTES("\x40\x0b\0\1\0\7\x1f\0\4text")},
		{BYTES("\x50\x0b\0\1\0\7\x1f\0\4text")},
		{BYTES("\x62\x0b\0\1\0\7\x1f\0\4text")},
		{BYTES("\x90\x0b\0\1\7\x1f\0\4text\0")},
		{BYTES("\xb0\x0b\0\1\7\x1f\0\4text\0")},
		{BYTES("\xf0\2\0\0")},
		{BYTES("\xe0\x09\0\7\x1f\0\4text")},
	},
};

/* --- the broker */

static bool draw(struct hostile *h, uint32_t one_in)
{
	return sim_draw(&h->random) % one_in == 0;
}

static size_t below(struct hostile *h, size_t n)
{
	return (size_t)(sim_draw(&h->random) % n);
}

/* Sends the packet, changed or not. False if the connection is over. */
static bool say(struct hostile *h, int fd, const void *packet, size_t n)
{
	uint8_t bytes[PIECE];
	memcpy(bytes, packet, n);
	while (n > 0 && draw(h, 2)) {
		size_t at = below(h, n);
		switch (below(h, 4)) {
		case 0:
			bytes[at] = (uint8_t)below(h, 256);
			break;
		case 1:
			bytes[at] ^= (uint8_t)(1 << below(h, 8));
			break;
		case 2:
			memmove(bytes + at + 1, bytes + at, n - at);
			bytes[at] = (uint8_t)below(h, 256);
			n++;
			break;
		default:
			memmove(bytes + at, bytes + at + 1, n - at - 1);
			n--;
		}
	}
	return send(fd, bytes, n, MSG_NOSIGNAL) == (ssize_t)n;
}

static bool say_extra(struct hostile *h, int fd)
{
	const struct packet *p = &extras[h->v5][below(h, 9)];
	return say(h, fd, p->bytes, p->n);
}

/* A broker's answer to the packet, whose body follows the two bytes. */
static bool answer(struct hostile *h, int fd, uint8_t head, const uint8_t *body)
{
	/* receive maximum 20, a reason */
	static const char welcome_5[] = "\x20\x0d\0\0\x0a\x21\0\x14\x1f\0\4text", welcome_311[] = "\x20\2\0\0";
	uint8_t granted_5[] = {0x90, 11, body[0], body[1], 7, 0x1f, 0, 4, 't', 'e', 'x', 't', 1};
	uint8_t granted_311[] = {0x90, 3, body[0], body[1], 1};
	uint8_t taken[4] = {0x40, 2};
	switch (head & 0xf6) {
	case 0x10:
		return h->v5 ? say(h, fd, welcome_5, sizeof(welcome_5) - 1) : say(h, fd, welcome_311, 4);
	case 0x82:
		return h->v5 ? say(h, fd, granted_5, sizeof(granted_5)) : say(h, fd, granted_311, 5);
	case 0x32: /* behind the topic stands the packet identifier */
		memcpy(taken + 2, body + 2 + (body[0] << 8 | body[1]), 2);
		return say(h, fd, taken, 4);
	case 0xc0:
		return say(h, fd, "\xd0", 2);
	default:
		return true;
	}
}

/* Serves a connection until the client closes it, or no byte arrives for a while. */
static void serve(struct hostile *h, int fd)
{
	uint8_t in[4096];
	size_t have = 0;
	bool goes_on = true;
	while (goes_on && !h->end) {
		struct pollfd p = {fd, POLLIN, 0};
		if (poll(&p, 1, QUIET_MS) == 0) {
			goes_on = draw(h, 2) && say_extra(h, fd);
			continue;
		}
		ssize_t n = recv(fd, in + have, sizeof(in) - have, 0);
		goes_on = n > 0;
		have += n > 0 ? (size_t)n : 0;
		while (goes_on && have >= 2 && in[1] < 128 && have >= 2U + in[1]) {
			size_t size = 2U + in[1];
			goes_on = answer(h, fd, in[0], in + 2);
			if (goes_on && draw(h, 3))
				goes_on = say_extra(h, fd);
			memmove(in, in + size, have -= size);
		}
	}
}

static void *run(void *arg)
{
	struct hostile *h = arg;
	while (!h->end) {
		struct pollfd p = {h->listener, POLLIN, 0};
		if (poll(&p, 1, 20) == 0)
			continue;
		int fd = accept(h->listener, NULL, NULL), one = 1;
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		serve(h, fd);
		close(fd);
		h->served++;
	}
	return NULL;
}

static void hostile_start(struct hostile *h, int protocol)
{
	*h = (struct hostile){.v5 = protocol == 5};
	h->random.state = random64();
	h->listener = bound_socket(&h->port);
	ck_assert_int_eq(listen(h->listener, 8), 0);
	ck_assert_int_eq(pthread_create(&h->thread, NULL, run, h), 0);
}

static void hostile_stop(struct hostile *h)
{
	h->end = true;
	pthread_join(h->thread, NULL);
	close(h->listener);
}

static struct hw_mqtt_conf conf_of(const struct hostile *h, int way, const char *client_id)
{
	const struct broker at = {.port = h->port};
	return conf_for(&at, ways[way].protocol, ways[way].qos, client_id);
}

/* --- tests */

/*
 * Whether the client is to be replaced, since it waits: it takes a connection that is closed early for the work of
 * another client with its id.
 */
static bool waits_long(struct hostile *h, unsigned *served, int64_t *since_ms)
{
	int64_t now = now_ms();
	if (*since_ms == 0 || h->served != *served)
		*since_ms = now;
	*served = h->served;
	bool waits = now - *since_ms > WAIT_MS;
	if (waits)
		*since_ms = 0;
	return waits;
}

START_TEST(test_reader)
{
	static const struct hw_mqtt_filter filter = {.filter = "n/+"};
	struct hostile h;
	struct hw_reader *r = NULL;
	struct hw_reader_event ev;
	unsigned served = 0;
	int64_t since_ms = 0;
	hostile_start(&h, ways[_i].protocol);
	struct hw_mqtt_conf conf = conf_of(&h, _i, "hw-t-r0");
	for (int64_t until = now_ms() + PATIENCE; h.served < CONNECTIONS; reader_next(r, &ev, 5)) {
		ck_assert_msg(now_ms() < until, "only %u connections", h.served);
		if (!r || waits_long(&h, &served, &since_ms)) {
			hw_reader_stop(r);
			ck_assert_int_eq(hw_reader_start(&r, &conf, &filter, 1, NULL, 0, 30000), 0);
		}
		hw_reader_retry(r);
	}
	hw_reader_stop(r);
	hostile_stop(&h);
}
END_TEST

START_TEST(test_publisher)
{
	struct hostile h;
	struct hw_publisher *p = NULL;
	struct hw_publisher_event ev;
	unsigned served = 0;
	int64_t since_ms = 0;
	uint64_t n = 0;
	hostile_start(&h, ways[_i].protocol);
	struct hw_mqtt_conf conf = conf_of(&h, _i, "hw-t-pub");
	for (int64_t until = now_ms() + PATIENCE; h.served < CONNECTIONS; publisher_next(p, &ev, 5)) {
		ck_assert_msg(now_ms() < until, "only %u connections", h.served);
		if (!p || waits_long(&h, &served, &since_ms)) {
			hw_publisher_stop(p, 0);
			ck_assert_int_eq(hw_publisher_start(&p, &conf, "heartwheel/t/status", "gone", 4), 0);
		}
		hw_publisher_barrier(p, 1, ++n);
		publisher_retain(p, "n/a", "x", 1, n);
		hw_publisher_flush(p);
		hw_publisher_retry(p);
	}
	hw_publisher_stop(p, 0);
	hostile_stop(&h);
}
END_TEST

START_TEST(test_eviction)
{
	struct hostile h;
	hostile_start(&h, ways[_i].protocol);
	struct hw_mqtt_conf conf = conf_of(&h, _i, "hw-t-pub");
	for (int i = 0; i < CONNECTIONS / 4; i++) {
		struct hw_evict *e;
		enum hw_eviction how;
		const char *why;
		ck_assert_int_eq(hw_evict_start(&e, &conf, "heartwheel/t/status", "off", 3, PATIENCE), 0);
		struct pollfd over = {hw_evict_fd(e), POLLIN, 0};
		ck_assert_int_eq(poll(&over, 1, PATIENCE), 1);
		ck_assert(hw_evict_is_over(e, &how, &why));
		hw_evict_end(e);
	}
	hostile_stop(&h);
}
END_TEST

/* --- each place of a property */

static void write_all(int fd, const void *bytes, size_t n)
{
	ck_assert_int_eq(send(fd, bytes, n, MSG_NOSIGNAL), (ssize_t)n);
}

static void hear(int fd, uint8_t body[128])
{
	uint8_t head[2];
	ck_assert_int_eq(recv(fd, head, 2, MSG_WAITALL), 2);
	ck_assert_uint_lt(head[1], 128);
	ck_assert_int_eq(recv(fd, body, head[1], MSG_WAITALL), head[1]);
}

/* Property 127 does not exist. The message says so, and names the property. */
START_TEST(test_unknown_property)
{
	static const struct packet unknown[] = {
		{BYTES("\x20\5\0\0\2\x7f\0")},
		{BYTES("\x30\x08\0\3n/a\2\x7f\0")},
		{BYTES("\x32\x0a\0\3n/a\0\7\2\x7f\0")},
		{BYTES("\x40\6\0\1\0\2\x7f\0")},
		{BYTES("\x50\6\0\1\0\2\x7f\0")},
		{BYTES("\x62\6\0\1\0\2\x7f\0")},
		{BYTES("\x70\6\0\1\0\2\x7f\0")},
		{BYTES("\x90\6\0\1\2\x7f\0\0")},
		{BYTES("\xb0\6\0\1\2\x7f\0\0")},
		{BYTES("\xe0\4\0\2\x7f\0")},
		{BYTES("\xf0\4\0\2\x7f\0")},
	};
	static const struct hw_mqtt_filter filter = {.filter = "n/+"};
	struct hw_reader *r;
	uint8_t body[128];
	struct broker at = {0};
	int listener = bound_socket(&at.port);
	ck_assert_int_eq(listen(listener, 4), 0);
	struct hw_mqtt_conf conf = conf_for(&at, 5, 1, "hw-t-r0");
	ck_assert_int_eq(hw_reader_start(&r, &conf, &filter, 1, NULL, 0, 30000), 0);
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		int fd = accept(listener, NULL, NULL);
		ck_assert_int_ge(fd, 0);
		hear(fd, body);
		if (unknown[i].bytes[0] != '\x20') {
			write_all(fd, "\x20\3\0\0\0", 5);
			for (int k = 0; k < 2; k++) {
				hear(fd, body);
				uint8_t granted[] = {0x90, 4, body[0], body[1], 0, 1};
				write_all(fd, granted, 6);
			}
			reader_await(r, HW_READER_UP);
		}
		write_all(fd, unknown[i].bytes, unknown[i].n);
		struct hw_reader_event ev = reader_await(r, HW_READER_DOWN);
		ck_assert_msg(strstr(ev.text, "property 127"), "packet %zu: %s", i, ev.text);
		close(fd);
		hw_reader_retry(r);
	}
	hw_reader_stop(r);
	close(listener);
}
END_TEST

/* The beginning of a packet of 256 MB ends the connection at once, and is named as the cause. */
START_TEST(test_endless_packet)
{
	uint8_t body[128];
	struct broker at = {0};
	struct hw_publisher *p;
	struct hw_publisher_event ev;
	int listener = bound_socket(&at.port), protocol = ways[_i / 4].protocol;
	ck_assert_int_eq(listen(listener, 4), 0);
	struct hw_mqtt_conf conf = conf_for(&at, protocol, ways[_i / 4].qos, "hw-t-pub");
	ck_assert_int_eq(hw_publisher_start(&p, &conf, "heartwheel/t/status", "gone", 4), 0);
	int fd = accept(listener, NULL, NULL);
	hear(fd, body);
	write_all(fd, protocol == 5 ? "\x20\3\0\0\0" : "\x20\2\0\0", protocol == 5 ? 5 : 4);
	publisher_await(p, HW_PUBLISHER_UP);
	ck_assert(publisher_retain(p, "n/a", "x", 1, 1));
	hw_publisher_flush(p);
	hear(fd, body);
	static const uint8_t kinds[] = {0x30, 0x40, 0x50, 0x90};
	uint8_t endless[] = {kinds[_i % 4], 0xff, 0xff, 0xff, 0x7f, 0, 1};
	write_all(fd, endless, sizeof(endless));
	ck_assert_msg(publisher_next(p, &ev, PATIENCE), "the connection goes on");
	ck_assert_int_eq(ev.kind, HW_PUBLISHER_DOWN);
	ck_assert_msg(strstr(ev.text, "packet of 268435460 bytes"), "%s", ev.text);
	close(fd);
	hw_publisher_stop(p, 0);
	close(listener);
}
END_TEST

/* --- the list */

static void add_tests(void *suite)
{
	const int n = sizeof(ways) / sizeof(ways[0]);
	TCase *t = tcase_create("hostile");
	tcase_set_timeout(t, 120);
	tcase_add_test(t, test_unknown_property);
	tcase_add_loop_test(t, test_endless_packet, 0, 4 * n);
	tcase_add_loop_test(t, test_reader, 0, n);
	tcase_add_loop_test(t, test_publisher, 0, n);
	tcase_add_loop_test(t, test_eviction, 0, n);
	suite_add_tcase(suite, t);
}

int main(void)
{
	random_begin(random_seed_of_now());
	return test_mqtt_main("mqtt, a hostile broker", add_tests);
}

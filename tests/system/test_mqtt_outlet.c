/* SPDX-License-Identifier: MIT */
/*
 * A publisher and bytes: what it writes, however slowly that is read, and what it makes of acknowledgements, however
 * they are cut. No broker cuts a stream on request, so that here the test itself is the other end of the connection.
 * It takes whole packets out of what it reads and knows each of them, so that a byte of one within another, a packet id
 * used twice or a message beyond the Receive Maximum fails the test; and every status must get one answer.
 */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../random.h"
#include "bound.h"
#include "mqtt_broker.h"

#define LONG     20000 /* payload: more than the sockets hold here */
#define STATUSES 4000
#define LASTS_MS 6500 /* more than the keepalive */
#define BARRIER  "heartwheel/t/barrier"
#define CANARY   "heartwheel/t/canary"

/* For what holds for each packet: Check writes each assertion of its own that holds to a file, and that is slow. */
#define must(holds)   ((holds) ? (void)0 : ck_abort_msg("%s", #holds))
#define must_eq(a, b) must((long long)(a) == (long long)(b))

static const int protocols[] = {5, 311};

/* --- the other end */

struct server {
	int listener, fd; /* -1: nobody is connected */
	bool v5, qos_0, deaf, welcomed;
	unsigned receive_max;
	struct broker at; /* its port, for conf_for() */
	uint8_t in[1 << 16], out[1 << 20];
	size_t have, to_send;
	uint16_t asked[65536]; /* ids that wait for their acknowledgement */
	int status_of[65536];  /* ... and the number of the status; UNUSED; OTHER: of no status */
	unsigned said_messages, n_asked, pings, connects, barriers, next;
	int64_t deaf_until, said_other_ms;
	uint16_t last_id;
};

enum { UNUSED = -1, OTHER = -2 };

static struct server server;

/* The other end's answer to each status: the reason, or NOT_YET. */
enum { NOT_YET = -1, TOLD = -3 };
static int said[STATUSES + 600];

static void listen_on(struct server *s, int protocol)
{
	int room = 16384;
	memset(s, 0, sizeof(*s));
	s->v5 = protocol == 5;
	s->fd = -1;
	s->listener = bound_socket(&s->at.port);
	setsockopt(s->listener, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	ck_assert_int_eq(listen(s->listener, 4), 0);
	s->receive_max = s->v5 ? 2 + random_below(40) : 1000;
	for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++)
		said[i] = NOT_YET;
}

static void say(struct server *s, const void *bytes, size_t n)
{
	must(s->to_send + n <= sizeof(s->out));
	memcpy(s->out + s->to_send, bytes, n);
	s->to_send += n;
}

static void welcome(struct server *s)
{
	uint8_t five[] = {0x20, 6, 0, 0, 3, 0x21, (uint8_t)(s->receive_max >> 8), (uint8_t)s->receive_max};
	uint8_t no_qos[] = {0x20, 5, 0, 0, 2, 0x24, 0};
	s->connects++;
	s->welcomed = true;
	if (!s->v5)
		say(s, "\x20\2\0\0", 4);
	else if (s->qos_0)
		say(s, no_qos, sizeof(no_qos));
	else
		say(s, five, sizeof(five));
}

static void hang_up(struct server *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

static void answer_call(struct server *s)
{
	int one = 1;
	struct pollfd p = {s->listener, POLLIN, 0};
	if (poll(&p, 1, 0) <= 0)
		return;
	s->fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK);
	ck_assert_int_ge(s->fd, 0);
	setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	s->have = s->to_send = 0;
	s->n_asked = 0;
	s->welcomed = false;
	for (size_t i = 0; i < 65536; i++)
		s->status_of[i] = UNUSED;
}

/* --- what it is sent */

/* Status number `i`: its length and bytes follow from the number. */
static size_t length_of(unsigned i)
{
	return i % 37 == 36 ? LONG + (size_t)i : (size_t)i % 70;
}

static void fill(char *payload, size_t len, unsigned i)
{
	for (size_t k = 0; k < len; k++)
		payload[k] = (char)((size_t)i + k * 7 + k / 251);
}

static bool is_retained(unsigned i)
{
	return i % 3 == 0;
}

static uint32_t expiry_of(unsigned i)
{
	return i % 4 == 1 ? UINT32_C(0x01020304) * (i % 9 + 1) : 0;
}

/* Its properties, whole and nothing else. */
static void check_status(struct server *s, uint8_t flags, unsigned i, const uint8_t *properties, size_t n,
                         const uint8_t *payload, size_t len)
{
	static char expected[LONG + STATUSES + 600];
	uint32_t expiry = s->v5 ? expiry_of(i) : 0;
	uint8_t told[] = {2, (uint8_t)(expiry >> 24), (uint8_t)(expiry >> 16), (uint8_t)(expiry >> 8), (uint8_t)expiry};
	must_eq(i, s->next);
	s->next++;
	must_eq(flags & 1, is_retained(i));
	must_eq(n, expiry ? sizeof(told) : 0);
	must(n == 0 || memcmp(properties, told, n) == 0);
	must_eq(len, length_of(i));
	fill(expected, len, i);
	must_eq(memcmp(payload, expected, len), 0);
}

static void ask(struct server *s, uint16_t id, int status)
{
	must(id != 0);
	must_eq(s->status_of[id], UNUSED); /* or the id is used twice */
	s->status_of[id] = status;
	s->asked[s->n_asked++] = s->last_id = id;
	must(s->n_asked <= s->receive_max);
}

static void take_publish(struct server *s, uint8_t head, const uint8_t *body, size_t n)
{
	const uint8_t *end = body + n;
	size_t topic_len = (size_t)body[0] << 8 | body[1];
	char topic[64] = "";
	bool asks = head & 2;
	must(topic_len < sizeof(topic));
	memcpy(topic, body + 2, topic_len);
	body += 2 + topic_len;
	bool is_status = strncmp(topic, "n/", 2) == 0;
	unsigned i = is_status ? (unsigned)strtoul(topic + 2, NULL, 10) : 0;
	must_eq(head & 0xc, 0);
	if (asks) {
		ask(s, (uint16_t)(body[0] << 8 | body[1]), is_status ? (int)i : OTHER);
		body += 2;
	}
	size_t properties = s->v5 ? *body++ : 0;
	const uint8_t *payload = body + properties;
	must(payload <= end);
	if (is_status) {
		must(asks == !s->qos_0);
		check_status(s, head, i, body, properties, payload, (size_t)(end - payload));
	} else {
		must(strcmp(topic, BARRIER) == 0 || strcmp(topic, CANARY) == 0);
		s->barriers += strcmp(topic, BARRIER) == 0;
	}
}

static void take_packet(struct server *s, const uint8_t *at, size_t head, size_t rest)
{
	switch (at[0] >> 4) {
	case 1:
		welcome(s);
		break;
	case 3:
		take_publish(s, at[0], at + head, rest);
		break;
	case 12:
		ck_assert_uint_eq(rest, 0);
		s->pings++;
		say(s, "\xd0", 2);
		break;
	case 14:
		ck_assert_uint_le(rest, 2);
		break;
	default:
		ck_abort_msg("a packet that begins with %02x", at[0]);
	}
}

static void take_packets(struct server *s)
{
	size_t done = 0;
	for (;;) {
		size_t rest = 0, head = 1;
		uint8_t b = 128;
		while (b & 128 && done + head < s->have && head < 5) {
			b = s->in[done + head];
			rest |= (size_t)(b & 127) << 7 * (head++ - 1);
		}
		must(rest < sizeof(s->in) - 5);
		if (b & 128 || done + head + rest > s->have)
			break;
		take_packet(s, s->in + done, head, rest);
		done += head + rest;
	}
	s->have -= done;
	memmove(s->in, s->in + done, s->have);
}

/* --- what it says */

static void say_ack(struct server *s, uint16_t id, int reason)
{
	uint8_t ack[8192] = {0x40};
	size_t words = random_below(8) ? random_below(20) : 4000 + random_below(3000), n = 1;
	unsigned form = !s->v5 ? 0 : reason ? 1 + random_below(3) : random_below(4);
	size_t properties = form == 3 ? 3 + words : 0, rest = form == 0   ? 2
	                                                      : form == 1 ? 3
	                                                      : form == 2 ? 4
	                                                                  : 5 + properties;
	if (form == 3 && properties < 128)
		rest--;
	for (size_t r = rest; n == 1 || r > 0; r >>= 7)
		ack[n++] = (uint8_t)((r & 127) | (r > 127 ? 128 : 0));
	ack[n++] = (uint8_t)(id >> 8);
	ack[n++] = (uint8_t)id;
	if (form > 0)
		ack[n++] = (uint8_t)reason;
	if (form == 2)
		ack[n++] = 0;
	if (form == 3) {
		for (size_t r = properties; r > 0; r >>= 7)
			ack[n++] = (uint8_t)((r & 127) | (r > 127 ? 128 : 0));
		ack[n++] = 0x1f; /* a reason in words: they look like an acknowledgement of another message */
		ack[n++] = (uint8_t)(words >> 8);
		ack[n++] = (uint8_t)words;
		for (size_t k = 0; k < words; k++)
			ack[n++] = (uint8_t) "\x40\2\0\1"[k % 4];
	}
	say(s, ack, n);
}

/* Acknowledges one of the waiting messages: most often the oldest. */
static void acknowledge(struct server *s)
{
	static const int reasons[] = {0, 0, 0, 0x10, 0x87, 0x97};
	unsigned at = random_below(4) ? 0 : random_below(s->n_asked);
	uint16_t id = s->asked[at];
	int status = s->status_of[id], reason = s->v5 ? reasons[random_below(6)] : 0;
	memmove(&s->asked[at], &s->asked[at + 1], (--s->n_asked - at) * sizeof(s->asked[0]));
	s->status_of[id] = UNUSED;
	if (status >= 0)
		said[status] = reason;
	say_ack(s, id, reason);
}

/* Some brokers subscribe their clients to what these did not ask for. An answer to it would fail the test. */
static void say_message(struct server *s)
{
	uint8_t m[6000] = {0x30};
	unsigned qos = random_below(3);
	size_t rest = random_below(2) ? 10 + random_below(100) : 128 + random_below(sizeof(m) - 200), n = 1;
	m[0] |= (uint8_t)(qos << 1);
	if (rest > 127)
		m[n++] = (uint8_t)(rest | 128);
	m[n++] = (uint8_t)(rest > 127 ? rest >> 7 : rest);
	size_t end = n + rest;
	memcpy(m + n, "\0\1t", 3);
	n += 3;
	if (qos > 0) {
		m[n++] = (uint8_t)(s->said_messages >> 8);
		m[n++] = (uint8_t)++s->said_messages;
	}
	if (s->v5)
		m[n++] = 0;
	for (size_t k = n; k < end; k++)
		m[k] = (uint8_t) "\x40\2\0\1"[k % 4];
	say(s, m, end);
}

/* Sends bytes that acknowledge no waiting message. */
static void say_other(struct server *s)
{
	uint16_t id = (uint16_t)(s->last_id + 20000 + random_below(20000)); /* far from those on their way */
	if (now_ms() - s->said_other_ms < 5)
		return; /* each costs the publisher more than an acknowledgement, and no broker sends many */
	s->said_other_ms = now_ms();
	if (random_below(4) == 0)
		say_message(s);
	else if (random_below(2))
		say(s, "\xd0", 2); /* PINGRESP */
	else if (!s->qos_0 && id > 0 && random_below(2))
		say_ack(s, id, 0);
	else if (s->v5)
		say(s, "\xb0\4\7\7\0\0", 6); /* UNSUBACK */
	else
		say(s, "\xb0\2\7\7", 4);
}

/* --- its turns */

static void hear(struct server *s)
{
	static const uint32_t sizes[] = {1, 5, 100, 3000, sizeof(s->in)};
	size_t most = 1 + random_below(sizes[random_below(5)]), room = sizeof(s->in) - s->have;
	ssize_t n = recv(s->fd, s->in + s->have, most < room ? most : room, 0);
	if (n == 0) {
		hang_up(s);
		return;
	}
	must(n > 0 || errno == EAGAIN || errno == ECONNRESET);
	s->have += n > 0 ? (size_t)n : 0;
	take_packets(s);
}

static void speak(struct server *s)
{
	static const uint32_t sizes[] = {1, 2, 3, 7, 40, 10000};
	size_t n = 1 + random_below(sizes[random_below(6)]);
	ssize_t sent = send(s->fd, s->out, n < s->to_send ? n : s->to_send, MSG_NOSIGNAL);
	if (sent <= 0)
		return;
	s->to_send -= (size_t)sent;
	memmove(s->out, s->out + sent, s->to_send);
}

static void serve(struct server *s)
{
	if (s->fd < 0)
		answer_call(s);
	for (unsigned i = random_below(20); s->fd >= 0 && i > 0; i--) {
		uint32_t what = random_below(8);
		if (what < 3 && !s->deaf && now_ms() >= s->deaf_until)
			hear(s);
		else if (what < 5 && s->n_asked > 0 && s->to_send < sizeof(s->out) / 2)
			acknowledge(s);
		else if (s->to_send > 0)
			speak(s);
		else if (what == 7 && random_below(10) == 0 && s->welcomed && s->have == 0)
			say_other(s);
	}
	uint32_t pause = random_below(400);
	if (pause == 0)
		s->deaf_until = now_ms() + random_below(150);
	else if (pause < 8)
		poll(NULL, 0, (int)random_below(5));
}

/* --- the publisher's side */

struct tally {
	unsigned sent, answered;
	unsigned first; /* of this connection */
	unsigned canaries_sent, canaries, barriers;
	bool up, down;
};

static void take_event(struct server *s, struct tally *t, const struct hw_publisher_event *ev)
{
	bool refused = ev->kind == HW_PUBLISHER_REFUSED;
	if (ev->kind == HW_PUBLISHER_ACKED || refused) {
		int *by = &said[ev->publish_id];
		must(ev->publish_id >= t->first);
		must(ev->publish_id < t->sent);
		int reason = s->qos_0 ? 0 : *by;
		must(reason != NOT_YET);
		must_eq(refused, reason >= 0x80);
		must_eq(ev->reason, reason);
		must(*by != TOLD);
		*by = TOLD;
		t->answered++;
	}
	t->canaries += ev->kind == HW_PUBLISHER_CANARY;
	t->up |= ev->kind == HW_PUBLISHER_UP;
	t->down |= ev->kind == HW_PUBLISHER_DOWN;
}

static bool hand_over_one(struct hw_publisher *p, struct tally *t)
{
	static char payload[LONG + STATUSES + 600];
	char topic[32];
	unsigned i = t->sent;
	snprintf(topic, sizeof(topic), "n/%u", i);
	fill(payload, length_of(i), i);
	if (!hw_publisher_publish(p, &(struct hw_publication){.topic = topic,
	                                                      .payload = payload,
	                                                      .len = length_of(i),
	                                                      .retain = is_retained(i),
	                                                      .qos = 1,
	                                                      .expiry_s = expiry_of(i),
	                                                      .publish_id = i}))
		return false;
	t->sent++;
	return true;
}

static void hand_over(struct server *s, struct hw_publisher *p, struct tally *t, unsigned until)
{
	for (unsigned n = random_below(40); n > 0 && t->sent < until; n--)
		if (!hand_over_one(p, t))
			break;
	if (t->barriers - s->barriers < 20 && random_below(10) == 0) {
		hw_publisher_barrier(p, 7, 9);
		t->barriers++;
	}
	if (s->v5 && !s->qos_0 && t->canaries_sent - t->canaries < 20 && random_below(20) == 0)
		t->canaries_sent += hw_publisher_canary(p, CANARY, "c", 1, 5);
	hw_publisher_flush(p);
}

/* Makes the sockets' buffers small, so that a batch is written in many pieces. */
static void narrow(const struct server *s)
{
	int room = 4096;
	setsockopt(socket_to(s->at.port), SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
}

static struct hw_publisher *meet(struct server *s, int protocol, int qos, int keepalive_s, struct tally *t)
{
	struct hw_publisher *p;
	struct hw_publisher_event ev;
	struct hw_mqtt_conf conf = conf_for(&s->at, protocol, qos, "hw-t-pub");
	conf.keepalive_s = keepalive_s;
	ck_assert_int_eq(hw_publisher_start(&p, &conf, "", "", 0), 0);
	for (int64_t until = now_ms() + PATIENCE; !t->up;) {
		ck_assert_int_lt(now_ms(), until);
		serve(s);
		if (publisher_next(p, &ev, 0))
			take_event(s, t, &ev);
	}
	narrow(s);
	return p;
}

static void part(struct server *s, struct hw_publisher *p)
{
	hang_up(s);
	hw_publisher_stop(p, 0);
	close(s->listener);
}

/* --- tests */

/* Both directions in any pieces, for longer than the keepalive: all that is handed over gets its one answer. */
START_TEST(test_any_pieces)
{
	struct server *s = &server;
	struct tally t = {0};
	struct hw_publisher_event ev;
	int protocol = protocols[_i % 2];
	listen_on(s, protocol);
	s->qos_0 = _i == 4;
	struct hw_publisher *p = meet(s, protocol, _i < 2 ? 1 : 0, 5, &t);
	int64_t began = now_ms(), heard = began;
	while (t.answered < STATUSES || t.canaries < t.canaries_sent || s->pings == 0) {
		int64_t due = STATUSES * (now_ms() - began) / LASTS_MS;
		hand_over(s, p, &t, due < STATUSES ? (unsigned)due : STATUSES);
		serve(s);
		while (publisher_next(p, &ev, 0)) {
			if (ev.kind == HW_PUBLISHER_DOWN)
				ck_abort_msg("%s", ev.text);
			take_event(s, &t, &ev);
			heard = now_ms();
		}
		if (now_ms() - heard >= PATIENCE)
			ck_abort_msg("%u of %u answered, %u canaries of %u", t.answered, t.sent, t.canaries,
			             t.canaries_sent);
	}
	ck_assert_uint_eq(t.answered, STATUSES);
	ck_assert_uint_eq(s->connects, 1);
	ck_assert_uint_ge(s->barriers, 10);
	printf("  protocol %d, Receive Maximum %u: %d ms, %u pings\n", protocol, s->receive_max,
	       (int)(now_ms() - began), s->pings);
	part(s, p);
}
END_TEST

/* The other end has hung up: there is a DOWN, and nothing of before is answered after it. Then it takes the next call.
 */
static void await_return(struct server *s, struct hw_publisher *p, struct tally *t)
{
	struct hw_publisher_event ev;
	for (int64_t until = now_ms() + PATIENCE; !t->down;) {
		ck_assert_msg(now_ms() < until, "no DOWN");
		if (publisher_next(p, &ev, 10))
			take_event(s, t, &ev);
	}
	s->deaf = false;
	t->first = s->next = t->sent;
	t->barriers = s->barriers;
	t->canaries_sent = t->canaries;
	t->up = t->down = false;
	hw_publisher_retry(p);
	for (int64_t until = now_ms() + PATIENCE; !t->up;) {
		ck_assert_msg(now_ms() < until, "it does not come back");
		serve(s);
		while (publisher_next(p, &ev, 0))
			take_event(s, t, &ev);
	}
	narrow(s);
}

/* As many as the window lets go are on their way, or half of it, when the other end is gone. */
static void break_off(struct server *s, struct hw_publisher *p, struct tally *t)
{
	struct hw_publisher_event ev;
	unsigned until = t->sent + 50;
	for (unsigned turns = random_below(200); turns > 0; turns--) {
		hand_over(s, p, t, until);
		serve(s);
		s->deaf |= random_below(40) == 0;
		while (publisher_next(p, &ev, 0))
			take_event(s, t, &ev);
	}
	poll(NULL, 0, (int)random_below(10));
	hang_up(s);
}

/* The end comes anywhere: then there is a DOWN, nothing of before is answered after it, and nothing is left in the way
 * of the next connection. */
START_TEST(test_broken_off)
{
	struct server *s = &server;
	struct tally t = {0};
	listen_on(s, protocols[_i]);
	struct hw_publisher *p = meet(s, protocols[_i], 0, 60, &t);
	for (unsigned times = 0; times < 10; times++) {
		break_off(s, p, &t);
		ck_assert(!t.down);
		ck_assert_uint_eq(s->connects, times + 1);
		await_return(s, p, &t);
	}
	part(s, p);
}
END_TEST

/* One connection after the other, each with as many messages on their way as a broker may allow. */
START_TEST(test_each_receive_maximum)
{
	static const unsigned granted[] = {65535, 1, 2, 3, 4, 20, 101, 999, 1001};
	struct server *s = &server;
	struct tally t = {0};
	struct hw_publisher_event ev;
	listen_on(s, 5);
	s->receive_max = granted[0];
	struct hw_publisher *p = meet(s, 5, _i, 60, &t);
	for (size_t k = 0; k < sizeof(granted) / sizeof(granted[0]); k++) {
		if (k > 0) {
			hang_up(s);
			s->receive_max = granted[k];
			await_return(s, p, &t);
		}
		unsigned all = t.sent + (granted[k] < 20 ? 60 : 300); /* with few on their way each waits for a turn */
		for (int64_t heard = now_ms(); t.answered < all;) {
			if (now_ms() - heard >= PATIENCE)
				ck_abort_msg("Receive Maximum %u: %u of %u answered", granted[k], t.answered, all);
			hand_over(s, p, &t, all);
			serve(s);
			for (; publisher_next(p, &ev, 0); heard = now_ms())
				take_event(s, &t, &ev);
		}
		ck_assert_uint_eq(s->connects, k + 1);
	}
	part(s, p);
}
END_TEST

/* A rival with the same id makes the broker close the connection, which is a reset where something is not read yet. */
START_TEST(test_reset_by_a_rival)
{
	struct server *s = &server;
	struct tally t = {0};
	struct hw_publisher_event ev;
	struct linger at_once = {1, 0};
	listen_on(s, 311);
	struct hw_publisher *p = meet(s, 311, 0, 60, &t);
	for (int times = 1; times <= 3; times++) {
		ck_assert_int_eq(setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
		hang_up(s);
		ev = publisher_await(p, HW_PUBLISHER_DOWN);
		ck_assert_msg(strstr(ev.text, "closed by the broker"), "%s", ev.text);
		ck_assert_msg(!strstr(ev.text, "is another client connected") == (times < 3), "%s", ev.text);
		t.up = false;
		for (int64_t until = now_ms() + PATIENCE; !t.up;) {
			ck_assert_int_lt(now_ms(), until);
			serve(s);
			while (publisher_next(p, &ev, 0))
				take_event(s, &t, &ev);
		}
	}
	part(s, p);
}
END_TEST

static void acknowledge_plainly(struct server *s, unsigned at)
{
	uint16_t id = s->asked[at];
	uint8_t ack[4] = {0x40, 2, (uint8_t)(id >> 8), (uint8_t)id};
	memmove(&s->asked[at], &s->asked[at + 1], (--s->n_asked - at) * sizeof(s->asked[0]));
	if (s->status_of[id] >= 0)
		said[s->status_of[id]] = 0;
	s->status_of[id] = UNUSED;
	say(s, ack, sizeof(ack));
}

static void pause_until(int64_t ms)
{
	while (now_ms() < ms)
		poll(NULL, 0, 1);
}

static int64_t await_ping(struct server *s)
{
	uint8_t byte = 0;
	for (int64_t until = now_ms() + PATIENCE; recv(s->fd, &byte, 1, 0) != 1 || byte != 0xc0;) {
		ck_assert_int_lt(now_ms(), until);
		pause_until(now_ms() + 1);
	}
	return now_ms();
}

/*
 * The connection is given up in the turn in which half a packet came: the next one waits for no more than a byte. The
 * library counts in whole seconds, and sends its PINGREQ 5 s after the beginning: begun in the middle of a second, it
 * finds the keepalive over when it is asked 4.76 s after that, before it would be asked anyhow.
 */
START_TEST(test_half_a_packet_is_forgotten)
{
	struct server *s = &server;
	struct tally t = {0};
	struct hw_publisher_event ev;
	listen_on(s, 5);
	s->receive_max = 20;
	pause_until(now_ms() / 1000 * 1000 + 1400);
	struct hw_publisher *p = meet(s, 5, 0, 5, &t);
	int64_t pinged = await_ping(s);
	pause_until(pinged + 3600);
	hw_publisher_barrier(p, 7, 9); /* for which it looks, and then not again before 1.25 s are over */
	hw_publisher_flush(p);
	pause_until(pinged + 4760);
	/* On a machine that is late it has been given up before. */
	if (send(s->fd, "\xb0\x64", 2, MSG_NOSIGNAL) != 2)
		puts("  too late: nothing was tried");
	publisher_await(p, HW_PUBLISHER_DOWN);
	hang_up(s);
	hw_publisher_retry(p);
	for (t.up = false; !t.up;) {
		ck_assert_int_lt(now_ms(), pinged + PATIENCE);
		serve(s);
		while (publisher_next(p, &ev, 0))
			take_event(s, &t, &ev);
	}
	ck_assert(hand_over_one(p, &t));
	hw_publisher_flush(p);
	while (s->n_asked == 0)
		hear(s);
	poll(NULL, 0, 100);
	int64_t began = now_ms();
	acknowledge_plainly(s, 0);
	while (s->to_send > 0)
		speak(s);
	publisher_await(p, HW_PUBLISHER_ACKED);
	int64_t took_ms = now_ms() - began;
	part(s, p);
	ck_assert_within(took_ms, 500, "ms"); /* a second, when it only looks */
}
END_TEST

/* Statuses are acknowledged, but the messages that hold back barriers are not: barriers are sent again nevertheless. */
START_TEST(test_echoes_unanswered)
{
	struct server *s = &server;
	struct tally t = {0};
	struct hw_publisher_event ev;
	listen_on(s, 5);
	s->receive_max = 20;
	struct hw_publisher *p = meet(s, 5, 0, 240, &t);
	int64_t began = now_ms();
	for (unsigned i = 0; i < 3; i++)
		ck_assert(hw_publisher_canary(p, CANARY, "c", 1, 5));
	while (!t.down) {
		ck_assert_msg(now_ms() < began + 30000, "%u barriers came", s->barriers);
		if (now_ms() > began + 100 * t.sent)
			ck_assert(hand_over_one(p, &t));
		hw_publisher_barrier(p, 7, 9);
		hw_publisher_flush(p);
		pause_until(now_ms() + 10);
		if (s->fd >= 0)
			hear(s);
		for (unsigned i = s->n_asked; i > 0; i--)
			if (s->status_of[s->asked[i - 1]] != OTHER)
				acknowledge_plainly(s, i - 1);
		if (s->fd >= 0 && s->to_send > 0)
			speak(s);
		while (publisher_next(p, &ev, 0))
			take_event(s, &t, &ev);
	}
	ck_assert_int_gt(now_ms() - began, 9000);
	ck_assert_uint_gt(t.answered, 30);
	part(s, p);
}
END_TEST

static int64_t cpu_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

/* Half an acknowledgement wakes the thread once, and not for as long as it stays half; the rest wakes it at once. */
START_TEST(test_half_an_acknowledgement)
{
	struct server *s = &server;
	struct tally t = {0};
	struct hw_publisher_event ev;
	listen_on(s, protocols[_i]);
	s->receive_max = 20;
	struct hw_publisher *p = meet(s, protocols[_i], 0, 60, &t);
	for (unsigned cut = 1; cut < 4; cut++) {
		ck_assert(hand_over_one(p, &t));
		hw_publisher_flush(p);
		while (s->n_asked == 0)
			hear(s);
		uint16_t id = s->asked[0];
		uint8_t ack[4] = {0x40, 2, (uint8_t)(id >> 8), (uint8_t)id};
		s->n_asked = 0;
		s->status_of[id] = UNUSED;
		said[t.sent - 1] = 0;
		ck_assert_int_eq(send(s->fd, ack, cut, 0), cut);
		ck_assert(!publisher_next(p, &ev, 200));
		int64_t before = cpu_ms();
		ck_assert(!publisher_next(p, &ev, 2500));
		ck_assert_int_lt(cpu_ms() - before, 100);
		int64_t began = now_ms();
		ck_assert_int_eq(send(s->fd, ack + cut, 4 - cut, 0), 4 - cut);
		ev = publisher_await(p, HW_PUBLISHER_ACKED);
		take_event(s, &t, &ev);
		printf("  protocol %d, cut at %u: answered after %d ms\n", protocols[_i], cut, (int)(now_ms() - began));
	}
	ck_assert_uint_eq(t.answered, 3);
	part(s, p);
}
END_TEST

/* A message that is never acknowledged keeps its id, however often all other ids were used. */
START_TEST(test_ids_go_round)
{
	enum { ROUND = 66000 };
	struct server *s = &server;
	struct tally t = {0};
	struct hw_publisher_event ev;
	unsigned answered = 0;
	listen_on(s, 311);
	struct hw_publisher *p = meet(s, 311, 1, 60, &t);
	hw_publisher_barrier(p, 7, 9);
	hw_publisher_flush(p);
	for (int64_t heard = now_ms(); answered < ROUND;) {
		for (unsigned n = s->n_asked > 0 ? 200 : 0; n > 0 && publisher_retain(p, CANARY, "c", 1, 1); n--)
			;
		hw_publisher_flush(p);
		hear(s);
		while (s->n_asked > 1 && s->to_send < sizeof(s->out) / 2) {
			uint16_t id = s->asked[--s->n_asked];
			s->status_of[id] = UNUSED;
			say_ack(s, id, 0);
		}
		while (s->to_send > 0)
			speak(s);
		for (; publisher_next(p, &ev, 0); heard = now_ms())
			answered += ev.kind == HW_PUBLISHER_ACKED;
		if (now_ms() - heard >= PATIENCE)
			ck_abort_msg("%u answered", answered);
	}
	ck_assert_uint_eq(s->n_asked, 1);
	ck_assert_uint_eq(s->connects, 1);
	part(s, p);
}
END_TEST

static void add_tests(void *suite)
{
	TCase *t = tcase_create("outlet");
	tcase_set_timeout(t, 600); /* a busy machine is slow: what does not go on fails in PATIENCE */
	tcase_add_loop_test(t, test_any_pieces, 0, 5);
	tcase_add_loop_test(t, test_broken_off, 0, 2);
	tcase_add_loop_test(t, test_each_receive_maximum, 0, 2);
	tcase_add_test(t, test_reset_by_a_rival);
	tcase_add_test(t, test_half_a_packet_is_forgotten);
	tcase_add_test(t, test_echoes_unanswered);
	tcase_add_test(t, test_ids_go_round);
	tcase_add_loop_test(t, test_half_an_acknowledgement, 0, 2);
	suite_add_tcase(suite, t);
}

int main(void)
{
	random_begin(random_seed_of_now());
	return test_mqtt_main("mqtt publisher, past the library", add_tests);
}

/* SPDX-License-Identifier: MIT */
/*
 * GET /v1/events and what stands behind it, with and without a store that keeps the stream: nothing skipped, nothing
 * twice, and clients that do not read, do not stop or do not exist any more. Streams are read as HTTP/1.0, without
 * chunks.
 */
#include <check.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control_server.h"

static struct server s;
static struct reply r;

static void setup(void)
{
	server_start(&s, false);
	server_see(&s);
}

static void setup_store(void)
{
	server_start_with_store(&s);
	server_see(&s);
}

static void teardown(void)
{
	reply_fini(&r);
	server_stop(&s);
}

/* --- a client */

struct stream {
	int fd;
	char *text; /* all that came */
	size_t n;
	bool closed;
};

static void stream_open(struct stream *t, const char *target, const char *place)
{
	char request[512];
	int n = snprintf(request, sizeof(request), "GET %s HTTP/1.0\r\n%s%s%s\r\n", target,
	                 place ? "Last-Event-ID: " : "", place ? place : "", place ? "\r\n" : "");

	*t = (struct stream){.fd = client_connect(&s), .text = calloc(1, 1)};
	ck_assert(client_send(&s, t->fd, request, (size_t)n));
}

static void stream_close(struct stream *t)
{
	close(t->fd);
	free(t->text);
}

/* Takes what is there now. */
static void stream_take(struct stream *t)
{
	char bytes[65536];
	ssize_t got;

	while ((got = recv(t->fd, bytes, sizeof(bytes), 0)) > 0) {
		t->text = realloc(t->text, t->n + (size_t)got + 1);
		memcpy(t->text + t->n, bytes, (size_t)got);
		t->n += (size_t)got;
		t->text[t->n] = '\0';
	}
	t->closed |= got == 0 || errno != EAGAIN;
}

static unsigned count(const struct stream *t, const char *what)
{
	unsigned n = 0;
	for (const char *at = t->text; (at = strstr(at, what)); at += strlen(what))
		n++;
	return n;
}

static void expect_count(struct stream *t, const char *what, unsigned n)
{
	long long since = clock_ms();
	size_t len = strlen(what), from = 0; /* what comes before is counted */
	unsigned found = 0;

	for (;;) {
		for (const char *at; (at = strstr(t->text + from, what)); found++)
			from = (size_t)(at - t->text) + len;
		if (found >= n)
			break;
		if (t->n > from + len)
			from = t->n - len; /* the rest may be its begin */
		server_turn(&s);
		stream_take(t);
		ck_assert_msg(!t->closed && !too_late(since), "%u of %u '%s', closed %d: %.2000s", found, n, what,
		              t->closed, t->text);
	}
	ck_assert_uint_eq(found, n);
}

/* Turns until the head is there: the client is one. */
static void expect_open(struct stream *t)
{
	expect_count(t, "retry: 2000\n\n", 1);
}

/* What is under way arrives. */
static void settle(struct stream *t)
{
	for (int i = 0; i < 20; i++) {
		server_turn(&s);
		stream_take(t);
	}
}

/* The ids of the events are d0, d1 ... and nothing else. */
static void expect_devices(struct stream *t, unsigned from, unsigned to)
{
	char id[32];

	expect_count(t, ",\"seq\":", to - from);
	const char *at = t->text;
	for (unsigned i = from; i < to; i++) {
		at = strstr(at, "\"id\":\"");
		ck_assert_ptr_nonnull(at);
		snprintf(id, sizeof(id), "\"id\":\"d%u\"", i);
		ck_assert_msg(strncmp(at, id, strlen(id)) == 0, "%s: %.60s", id, at);
		at += 6;
	}
}

/* --- events */

static struct hw_event_id place(uint64_t n)
{
	return (struct hw_event_id){1700000000000, n};
}

/* Device dN goes offline; with a store at that place. */
static struct hw_event event(char id[32], unsigned n)
{
	snprintf(id, 32, "d%u", n);
	return (struct hw_event){.at = place(n),
	                         .id = id,
	                         .id_len = strlen(id),
	                         .group = "default",
	                         .group_len = 7,
	                         .state = HW_STATE_OFFLINE,
	                         .reason = HW_REASON_TIMEOUT,
	                         .time_ms = 1234,
	                         .last_seen_ms = 1000,
	                         .seq = n + 1};
}

static void tell(unsigned from, unsigned to)
{
	char id[32];
	for (unsigned i = from; i < to; i++) {
		struct hw_event e = event(id, i);
		hw_control_event(s.control, &e);
	}
}

/* The store answers with what stands from `from` on, up to 200, of `to` in all. */
static void answer(unsigned from, unsigned to, struct hw_event_id after)
{
	static char ids[200][32];
	struct hw_event events[200];
	struct hw_event_page page = {.events = events, .ok = true, .last = after};

	for (; from < to && page.n < 200; from++) {
		events[page.n] = event(ids[page.n], from);
		page.last = events[page.n++].at;
	}
	page.more = from < to;
	hw_control_page(s.control, &page);
}

static void answer_gone(void)
{
	hw_control_page(s.control, &(struct hw_event_page){.ok = true, .gone = true});
}

static void text_of(const struct stream *t, unsigned n, char at[HW_EVENT_ID_TEXT])
{
	const char *id = t->text;
	for (unsigned i = 0; i <= n; i++) {
		id = strstr(id, "\nid: ");
		ck_assert_ptr_nonnull(id);
		id += 5;
	}
	snprintf(at, HW_EVENT_ID_TEXT, "%.*s", (int)strcspn(id, "\n"), id);
}

/* --- without a store */

START_TEST(an_event_says_all)
{
	struct stream t;
	char at[HW_EVENT_ID_TEXT], want[512];

	stream_open(&t, "/v1/events", NULL);
	expect_open(&t);
	ck_assert_ptr_nonnull(strstr(t.text, "Content-Type: text/event-stream\r\n"));
	ck_assert_ptr_nonnull(strstr(t.text, "Cache-Control: no-store\r\n"));
	server_beat(&s, 0, "d0", NULL);
	tell(0, 2);
	expect_devices(&t, 0, 2);
	text_of(&t, 0, at);
	snprintf(want, sizeof(want),
	         "\n\nevent: transition\nid: %s\ndata: {\"id\":\"d0\",\"state\":\"offline\",\"since_ms\":1234,"
	         "\"last_seen_ms\":1000,\"timeout_ms\":30000,\"reason\":\"timeout\",\"group\":\"default\","
	         "\"source\":\"mqtt\",\"seq\":1}\n\n",
	         at);
	ck_assert_msg(strstr(t.text, want) != NULL, "%s\nin %s", want, t.text);
	/* d1 is not known (any more). */
	ck_assert_ptr_nonnull(strstr(t.text, "\"timeout_ms\":null,\"reason\":\"timeout\",\"group\":\"default\","
	                                     "\"source\":null,\"seq\":2}\n\n"));
	stream_close(&t);
}
END_TEST

START_TEST(nobody_hears_the_past)
{
	struct stream t;

	tell(0, 3);
	stream_open(&t, "/v1/events", NULL);
	expect_open(&t);
	tell(3, 5);
	expect_devices(&t, 3, 5);
	stream_close(&t);
}
END_TEST

START_TEST(resumes_where_it_was)
{
	struct stream t;
	char at[HW_EVENT_ID_TEXT], target[128];

	stream_open(&t, "/v1/events", NULL);
	expect_open(&t);
	tell(0, 5);
	expect_devices(&t, 0, 5);
	text_of(&t, 2, at);
	stream_close(&t);
	tell(5, 1000);
	stream_open(&t, "/v1/events", at);
	expect_devices(&t, 3, 1000);
	tell(1000, 1001);
	expect_devices(&t, 3, 1001);
	stream_close(&t);
	snprintf(target, sizeof(target), "/v1/events?after=%s", at);
	stream_open(&t, target, NULL);
	expect_devices(&t, 3, 1001);
	stream_close(&t);
	stream_open(&t, "/v1/events?after=0-0", NULL);
	expect_devices(&t, 0, 1001);
	ck_assert_uint_eq(count(&t, "event: reset"), 0);
	stream_close(&t);
	/* What a browser says counts more than the address that it was given. */
	stream_open(&t, "/v1/events?after=0-0", at);
	expect_devices(&t, 3, 1001);
	stream_close(&t);
}
END_TEST

START_TEST(resumes_at_the_end)
{
	struct stream t;
	char at[HW_EVENT_ID_TEXT];

	stream_open(&t, "/v1/events", NULL);
	expect_open(&t);
	tell(0, 1);
	expect_devices(&t, 0, 1);
	text_of(&t, 0, at);
	stream_close(&t);
	stream_open(&t, "/v1/events", at);
	expect_open(&t);
	settle(&t);
	ck_assert_uint_eq(count(&t, "event: "), 0);
	tell(1, 2);
	expect_devices(&t, 1, 2);
	stream_close(&t);
}
END_TEST

START_TEST(what_is_gone_gives_a_reset)
{
	static const char *const places[] = {"1-1", "nonsense", "9999999999999-1", "1700000000000-99999999", "-"};
	struct stream t;
	char at[HW_EVENT_ID_TEXT];

	tell(0, 3);
	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		stream_open(&t, "/v1/events", places[i]);
		expect_count(&t, "event: reset\nid: ", 1);
		ck_assert_ptr_nonnull(strstr(t.text, "\ndata: {}\n\n"));
		tell(3 + i, 4 + i);
		expect_devices(&t, 3 + i, 4 + i);
		text_of(&t, 0, at); /* and the place that it gives is good */
		stream_close(&t);
		stream_open(&t, "/v1/events", at);
		expect_devices(&t, 3 + i, 4 + i);
		stream_close(&t);
	}
	stream_open(&t, "/v1/events", at);
	expect_open(&t);
	settle(&t);
	stream_close(&t);
	tell(100, 100 + 10001);
	stream_open(&t, "/v1/events", at);
	expect_count(&t, "event: reset\n", 1);
	ck_assert_uint_eq(count(&t, "event: transition"), 0);
	stream_close(&t);
	stream_open(&t, "/v1/events?after=0-0", NULL);
	expect_count(&t, "event: reset\n", 1);
	stream_close(&t);
}
END_TEST

START_TEST(wrong_requests)
{
	ck_assert_int_eq(get(&s, "/v1/events?since=1", &r), 400);
	reply_fini(&r);
	ck_assert_int_eq(get(&s, "/v1/events?after=%zz", &r), 400);
	reply_fini(&r);
	ask(&s, "POST", "/v1/events", NULL, &r);
	ck_assert_int_eq(r.code, 405);
	ck_assert_uint_eq(hw_control_clients(s.control).now, 0);
}
END_TEST

START_TEST(there_is_room_for_64)
{
	struct stream t[64];
	long long since = clock_ms();

	for (int i = 0; i < 64; i++) {
		stream_open(&t[i], "/v1/events", NULL);
		expect_open(&t[i]);
	}
	ck_assert_uint_eq(hw_control_clients(s.control).now, 64);
	ck_assert_int_eq(get(&s, "/v1/events", &r), 503);
	ck_assert_ptr_nonnull(strstr(r.body, "\"error\":"));
	ck_assert_uint_eq(hw_control_clients(s.control).refused, 1);
	tell(0, 10);
	for (int i = 0; i < 64; i++)
		expect_devices(&t[i], 0, 10);
	stream_close(&t[31]);
	stream_close(&t[0]);
	while (hw_control_clients(s.control).now > 62) {
		server_turn(&s);
		ck_assert(!too_late(since));
	}
	stream_open(&t[0], "/v1/events", NULL);
	stream_open(&t[31], "/v1/events", NULL);
	expect_open(&t[0]);
	expect_open(&t[31]);
	tell(10, 11);
	expect_devices(&t[0], 10, 11);
	expect_devices(&t[63], 0, 11);
	for (int i = 0; i < 64; i++)
		stream_close(&t[i]);
}
END_TEST

/* More at once than is kept for one who follows: he falls behind, and gets it all nevertheless. */
START_TEST(a_burst_is_taken_page_by_page)
{
	struct stream t, slow;

	stream_open(&t, "/v1/events", NULL);
	expect_open(&t);
	stream_open(&slow, "/v1/events", NULL);
	expect_open(&slow);
	tell(0, 9000); /* about 2 MB */
	for (int i = 0; i < 200; i++) {
		server_turn(&s);
		stream_take(&t);
	}
	ck_assert_uint_ge(hw_control_clients(s.control).lagging, 1);
	expect_devices(&t, 0, 9000);
	expect_devices(&slow, 0, 9000);
	settle(&slow);
	ck_assert_uint_eq(hw_control_clients(s.control).lagging, 0);
	tell(9000, 9001);
	expect_devices(&t, 0, 9001);
	expect_devices(&slow, 0, 9001);
	stream_close(&t);
	stream_close(&slow);
}
END_TEST

/* It costs no more than a few pages, and goes after ten seconds in which it took nothing. */
START_TEST(who_never_reads_is_cut_off)
{
	struct stream t, deaf;
	long long since = clock_ms();
	unsigned told = 0;

	stream_open(&deaf, "/v1/events", NULL);
	expect_open(&deaf);
	stream_open(&t, "/v1/events", NULL);
	expect_open(&t);
	while (hw_control_clients(s.control).now == 2) {
		struct pollfd wait = {.fd = -1};
		poll(&wait, 1, 20);
		tell(told, told + 20);
		told += 20;
		server_turn(&s);
		stream_take(&t);
		ck_assert(clock_ms() - since < 25000);
	}
	ck_assert_int_ge(clock_ms() - since, 9000);
	expect_devices(&t, 0, told);
	stream_take(&deaf);
	ck_assert_uint_lt(deaf.n, 2 << 20);
	stream_close(&t);
	stream_close(&deaf);
}
END_TEST

START_TEST(who_talks_is_heard_no_further)
{
	struct stream t;
	char junk[4096];

	memset(junk, 'x', sizeof(junk));
	stream_open(&t, "/v1/events", NULL);
	expect_open(&t);
	for (int i = 0; i < 1000; i++) {
		if (send(t.fd, junk, sizeof(junk), MSG_NOSIGNAL) < 0)
			break;
		server_turn(&s);
	}
	tell(0, 1);
	expect_devices(&t, 0, 1);
	stream_close(&t);
}
END_TEST

START_TEST(the_server_stops_with_clients)
{
	struct stream t, late;

	tell(0, 100);
	stream_open(&t, "/v1/events", NULL);
	expect_open(&t);
	stream_open(&late, "/v1/events", "0-0");
	tell(100, 5000);
	server_turn(&s);
	hw_control_free(s.control);
	s.control = NULL;
	stream_take(&t);
	ck_assert(t.closed);
	stream_close(&t);
	stream_close(&late);
}
END_TEST

/* --- what happened lately */

static char *ids_of(const char *target)
{
	static char out[65536];
	const cJSON *one;

	reply_fini(&r);
	ck_assert_msg(get(&s, target, &r) == 200, "%s", r.body);
	cJSON *json = cJSON_Parse(r.body);
	char *at = out;
	*at = '\0';
	cJSON_ArrayForEach(one, cJSON_GetObjectItem(json, "transitions"))
	{
		at += sprintf(at, "%s%s", at == out ? "" : ",", cJSON_GetObjectItem(one, "id")->valuestring);
	}
	cJSON_Delete(json);
	return out;
}

START_TEST(transitions_newest_first)
{
	ck_assert_str_eq(ids_of("/v1/transitions"), "");
	tell(0, 12);
	ck_assert_str_eq(ids_of("/v1/transitions"), "d11,d10,d9,d8,d7,d6,d5,d4,d3,d2,d1,d0");
	ck_assert_str_eq(ids_of("/v1/transitions?limit=2"), "d11,d10");
	tell(5, 6);
	ck_assert_str_eq(ids_of("/v1/devices/d5/events"), "d5,d5");
	ck_assert_str_eq(ids_of("/v1/devices/d5/events?limit=1"), "d5");
	ck_assert_str_eq(ids_of("/v1/devices/nobody/events"), "");
	ck_assert_ptr_nonnull(strstr(r.body, "{\"transitions\":[]}"));
	tell(100, 100 + 10000);
	ck_assert_str_eq(ids_of("/v1/devices/d5/events"), "");
	ck_assert_str_eq(ids_of("/v1/devices/d100/events"), "d100");
	static const char *const bad[] = {"/v1/transitions?limit=0", "/v1/transitions?limit=1001",
	                                  "/v1/transitions?limit=x", "/v1/transitions?a=b",
	                                  "/v1/transitions?a",       "/v1/devices/%ff/events"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		reply_fini(&r);
		ck_assert_int_eq(get(&s, bad[i], &r), 400);
	}
	reply_fini(&r);
	ck_assert_int_eq(get(&s, "/v1/devices/a/event", &r), 404);
}
END_TEST

/* --- with a store */

START_TEST(the_past_comes_from_the_store)
{
	struct stream t;

	stream_open(&t, "/v1/events", NULL); /* before the store is there */
	expect_open(&t);
	hw_control_store(s.control, true);
	ck_assert_uint_eq(s.asked_last, 1);
	answer(0, 50, place(0));
	ck_assert_int_eq(strncmp(ids_of("/v1/transitions"), "d49,d48", 7), 0);
	settle(&t);
	ck_assert_uint_eq(count(&t, "event:"), 0);
	tell(50, 60);
	expect_devices(&t, 50, 60);
	stream_close(&t);
	ck_assert_uint_eq(s.asked_after, 0);
}
END_TEST

START_TEST(what_was_missed_is_read)
{
	struct stream t;

	hw_control_store(s.control, true);
	answer(0, 5, place(0));
	stream_open(&t, "/v1/events", NULL);
	expect_open(&t);
	tell(5, 6);
	expect_devices(&t, 5, 6);
	hw_control_store(s.control, false);
	hw_control_store(s.control, true);
	ck_assert_uint_eq(s.asked_after, 1);
	ck_assert_uint_eq(s.after.n, 5);
	answer(6, 250, s.after);
	ck_assert_uint_eq(s.asked_after, 2); /* there is more */
	ck_assert_uint_eq(s.after.n, 205);
	tell(250, 260); /* they are behind what was asked for, and are in the store */
	answer(206, 260, s.after);
	tell(260, 261);
	expect_devices(&t, 5, 261);
	ck_assert_uint_eq(count(&t, "reset"), 0);
	stream_close(&t);
}
END_TEST

/* The first was written by somebody who did not hear of it any more. */
START_TEST(an_empty_stream_has_a_begin)
{
	struct stream t;

	hw_control_store(s.control, true);
	answer(0, 0, (struct hw_event_id){0, 0});
	stream_open(&t, "/v1/events", NULL);
	expect_open(&t);
	hw_control_store(s.control, false);
	hw_control_store(s.control, true);
	ck_assert_uint_eq(s.asked_last, 1);
	ck_assert_uint_eq(s.asked_after, 1);
	answer(0, 3, s.after);
	expect_devices(&t, 0, 3);
	stream_close(&t);
}
END_TEST

START_TEST(an_emptied_store_resets_all)
{
	struct stream t, u;

	hw_control_store(s.control, true);
	answer(0, 5, place(0));
	stream_open(&t, "/v1/events", NULL);
	expect_open(&t);
	stream_open(&u, "/v1/events", NULL);
	expect_open(&u);
	hw_control_store(s.control, false);
	hw_control_store(s.control, true);
	answer_gone();
	ck_assert_uint_eq(s.asked_last, 2);
	answer(7, 9, place(0));
	expect_count(&t, "event: reset\nid: 1700000000000-8\n", 1);
	expect_count(&u, "event: reset\nid: 1700000000000-8\n", 1);
	tell(9, 10);
	expect_devices(&t, 9, 10);
	stream_close(&t);
	stream_close(&u);
}
END_TEST

START_TEST(a_client_resumes_from_the_store)
{
	struct stream t, u;

	hw_control_store(s.control, true);
	answer(400, 500, place(0));
	stream_open(&t, "/v1/events", "1700000000000-99");
	stream_open(&u, "/v1/events", "1700000000000-499");
	expect_open(&t);
	expect_open(&u);
	settle(&t);
	ck_assert_uint_eq(s.asked_after, 1); /* one at a time */
	ck_assert_uint_eq(s.after.n, 99);
	answer(100, 500, s.after);
	settle(&t);
	ck_assert_uint_eq(s.asked_after, 2);
	ck_assert_uint_eq(s.after.n, 499); /* the other's turn */
	tell(500, 510);
	answer(500, 510, s.after);
	settle(&t);
	ck_assert_uint_eq(s.asked_after, 3);
	ck_assert_uint_eq(s.after.n, 299);
	answer(300, 510, s.after);
	settle(&t);
	answer(500, 510, s.after);
	tell(510, 511);
	expect_devices(&t, 100, 511);
	expect_devices(&u, 500, 511);
	ck_assert_uint_eq(hw_control_clients(s.control).lagging, 0);
	stream_close(&t);
	stream_close(&u);
}
END_TEST

START_TEST(a_client_waits_for_the_store)
{
	struct stream t, u;

	stream_open(&t, "/v1/events", "1700000000000-3");
	expect_open(&t);
	stream_open(&u, "/v1/events", "1700000000000-1");
	expect_open(&u);
	ck_assert_uint_eq(s.asked_after, 0);
	hw_control_store(s.control, true);
	answer(0, 5, place(0));
	ck_assert_uint_eq(s.asked_after, 1);
	ck_assert_uint_eq(s.after.n, 3);
	hw_control_store(s.control, false); /* no answer will come */
	hw_control_store(s.control, true);
	answer(5, 5, s.after); /* for the hub */
	ck_assert_uint_eq(s.asked_after, 3);
	answer(4, 5, s.after);
	expect_devices(&t, 4, 5);
	answer_gone();
	expect_count(&u, "event: reset\n", 1);
	stream_close(&t);
	stream_close(&u);
}
END_TEST

START_TEST(a_client_leaves_while_it_is_asked_for)
{
	struct stream t, u;
	long long since = clock_ms();

	hw_control_store(s.control, true);
	answer(0, 5, place(0));
	stream_open(&t, "/v1/events", "1700000000000-3");
	expect_open(&t);
	settle(&t);
	ck_assert_uint_eq(s.asked_after, 1);
	stream_close(&t);
	while (hw_control_clients(s.control).now > 0) {
		server_turn(&s);
		ck_assert(!too_late(since));
	}
	stream_open(&u, "/v1/events", "1700000000000-2");
	expect_open(&u);
	answer(4, 5, s.after); /* for nobody */
	settle(&u);
	ck_assert_uint_eq(count(&u, "event:"), 0);
	ck_assert_uint_eq(s.after.n, 2);
	answer(3, 5, s.after);
	expect_devices(&u, 3, 5);
	stream_close(&u);
}
END_TEST

START_TEST(a_store_that_refuses)
{
	struct stream t;

	s.store_fails = true;
	hw_control_store(s.control, true);
	stream_open(&t, "/v1/events", NULL);
	expect_open(&t);
	tell(0, 1);
	expect_devices(&t, 0, 1);
	s.store_fails = false;
	hw_control_store(s.control, false);
	hw_control_store(s.control, true);
	ck_assert_uint_eq(s.asked_last, 1);
	hw_control_page(s.control, &(struct hw_event_page){.ok = false});
	tell(1, 2);
	expect_devices(&t, 0, 2);
	stream_close(&t);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("control_events");
	TCase *t = tcase_create("memory");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 40);
	tcase_add_test(t, an_event_says_all);
	tcase_add_test(t, nobody_hears_the_past);
	tcase_add_test(t, resumes_where_it_was);
	tcase_add_test(t, resumes_at_the_end);
	tcase_add_test(t, what_is_gone_gives_a_reset);
	tcase_add_test(t, wrong_requests);
	tcase_add_test(t, there_is_room_for_64);
	tcase_add_test(t, a_burst_is_taken_page_by_page);
	tcase_add_test(t, who_never_reads_is_cut_off);
	tcase_add_test(t, who_talks_is_heard_no_further);
	tcase_add_test(t, the_server_stops_with_clients);
	tcase_add_test(t, transitions_newest_first);
	suite_add_tcase(suite, t);
	t = tcase_create("store");
	tcase_add_checked_fixture(t, setup_store, teardown);
	tcase_set_timeout(t, 40);
	tcase_add_test(t, the_past_comes_from_the_store);
	tcase_add_test(t, what_was_missed_is_read);
	tcase_add_test(t, an_empty_stream_has_a_begin);
	tcase_add_test(t, an_emptied_store_resets_all);
	tcase_add_test(t, a_client_resumes_from_the_store);
	tcase_add_test(t, a_client_waits_for_the_store);
	tcase_add_test(t, a_client_leaves_while_it_is_asked_for);
	tcase_add_test(t, a_store_that_refuses);
	suite_add_tcase(suite, t);
	return suite;
}

int main(void)
{
	SRunner *runner = srunner_create(make_suite());
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

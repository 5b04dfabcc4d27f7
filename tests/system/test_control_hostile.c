/* SPDX-License-Identifier: MIT */
/* The control API with input that is no request, with clients that do not read, and without free descriptors. */
#include <check.h>
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../suite.h"
#include "control_rig.h"

/* --- hostile input */

/* What evhttp refuses by itself. */
static void expect_refused(const char *bytes, size_t n, int code)
{
	int fd = client_connect(&s);
	client_send(&s, fd, bytes, n);
	client_read(&s, fd, NULL, &r);
	ck_assert_msg(r.code == code, "%d for %.60s", r.code, bytes);
	expect_error(code);
	close(fd);
	ck_assert_int_eq(get(&s, "/healthz", &r), 200);
	reply_fini(&r);
}

START_TEST(what_is_not_http)
{
	static const struct {
		const char *text;
		int code;
	} cases[] = {
		{"\r\n\r\n", 400},
		{"GET\r\n\r\n", 400},
		{"GET /v1/status\r\n\r\n", 400},
		{"GET /v1/status HTTP/7.1\r\n\r\n", 400},
		{"GET /v1/status HTTP/1.1\r\nno colon\r\n\r\n", 400},
		{"GET /v1/status HTTP/1.1\r\n folded\r\n\r\n", 400},
		{"POST /v1/reload HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400},
		{"POST /v1/reload HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400},
		{"POST /v1/reload HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n", 400},
		{"POST /v1/reload HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
		{"POST /v1/reload HTTP/1.1\r\ntransfer-ENCODING: chunked\r\n\r\n", 400},
		{"POST /v1/reload HTTP/1.1\nTransfer-Encoding:\n chunked\n\n", 400},
		{"POST /v1/reload HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : x:y\r\nContent-Length: 0\r\n\r\n", 400},
		{"\x16\x03\x01\x02\r\n\xff\xfe\r\n\r\n", 400},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect_refused(cases[i].text, strlen(cases[i].text), cases[i].code);
	expect_refused("GET /v1/\0status HTTP/1.1\r\n\r\n", 28, 400);
}
END_TEST

START_TEST(huge_headers)
{
	size_t n = 40000; /* evhttp does not count line ends */
	char *huge = calloc(1, n + 1);
	memset(huge, 'a', n);
	expect_refused(huge, 20000, 400);
	memcpy(huge, "GET /", 5);
	expect_refused(huge, 20000, 400);
	memcpy(huge, "GET / HTTP/1.1\r\nX: ", 19);
	expect_refused(huge, 20000, 400);
	for (size_t i = 16; i + 4 <= n; i += 4)
		memcpy(huge + i, "a:\r\n", 4);
	expect_refused(huge, n, 400);
	free(huge);
}
END_TEST

static void post(size_t body)
{
	char *more;
	ck_assert_int_gt(asprintf(&more, "Content-Length: %zu\r\n\r\n%0*d", body, (int)body, 0), 0);
	ck_assert(ask(&s, "POST", "/v1/reload", more, &r));
	free(more);
}

START_TEST(large_bodies)
{
	post(65536);
	ck_assert_int_eq(r.code, 200);
	reply_fini(&r);
	post(65537);
	expect_error(413);
	post(3000000); /* is heard to its end: the client reads only then */
	expect_error(413);
	ask(&s, "POST", "/v1/reload", "Expect: something\r\nContent-Length: 1\r\n\r\na", &r);
	expect_error(417);
}
END_TEST

START_TEST(body_on_demand)
{
	int fd = client_connect(&s);
	const char head[] = "POST /v1/reload HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
	client_send(&s, fd, head, strlen(head));
	client_read(&s, fd, NULL, &r);
	ck_assert_int_eq(r.code, 100);
	reply_fini(&r);
	client_send(&s, fd, "abc", 3);
	client_read(&s, fd, NULL, &r);
	ck_assert_int_eq(r.code, 200);
	close(fd);
}
END_TEST

START_TEST(half_a_request)
{
	int fd = client_connect(&s), other = client_connect(&s);
	const char request[] = "GET /healthz HTTP/1.1\r\n\r\n";
	client_send(&s, other, request, 10);
	for (size_t i = 0; i < strlen(request); i++) /* a slow client */
		client_send(&s, fd, request + i, 1);
	client_read(&s, fd, NULL, &r);
	ck_assert_int_eq(r.code, 200);
	close(other); /* never sent the rest */
	server_turn(&s);
	close(fd);
	reply_fini(&r);
	ck_assert_int_eq(get(&s, "/healthz", &r), 200);
}
END_TEST

START_TEST(two_requests_in_one_read)
{
	int fd = client_connect(&s);
	const char three[] = "GET /healthz HTTP/1.1\r\n\r\nPOST /v1/reload HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"
			     "GET /nowhere HTTP/1.1\r\n\r\n";
	static const int codes[] = {200, 200, 404};
	char *rest = NULL;
	client_send(&s, fd, three, strlen(three));
	for (size_t i = 0; i < 3; i++) {
		client_read(&s, fd, rest, &r);
		ck_assert_int_eq(r.code, codes[i]);
		free(rest);
		rest = strdup(r.rest);
		reply_fini(&r);
	}
	ck_assert_str_eq(rest, "");
	free(rest);
	close(fd);
}
END_TEST

START_TEST(ids_of_every_byte)
{
	server_see(&s);
	for (unsigned c = 1; c < 256; c++) {
		char id[3] = {'x', (char)c, '\0'}, path[32];
		bool valid = hw_id_valid(id, 2);
		if (valid)
			server_beat(&s, 0, id, NULL);
		snprintf(path, sizeof(path), "/v1/devices/x%%%02x", c);
		get(&s, path, &r);
		ck_assert_msg(r.code == (valid ? 200 : 400), "%d for byte %u", r.code, c);
		if (valid) {
			cJSON *json = cJSON_Parse(r.body);
			ck_assert_str_eq(text(json, "id"), id);
			cJSON_Delete(json);
		}
		reply_fini(&r);
		/* And not encoded: where a URI may hold it, it means the same; elsewhere it is an answer all the same.
		 */
		int n = snprintf(path, sizeof(path), "/v1/devices/x%c", (int)c);
		ck_assert_int_eq(n, 14);
		if (c != '\r' && c != '\n') {
			get(&s, path, &r);
			ck_assert_msg(r.code == 200 || r.code == 400 || r.code == 404, "%d for raw byte %u", r.code, c);
			reply_fini(&r);
		}
	}
}
END_TEST

START_TEST(broken_ids)
{
	static const char *const ids[] = {
		"%zz",    "%",     "%4",  "a%", "%00",          "a%00b", "%ff", "%c3",    "%ed%a0%80", "%0a", "%7f",
		"%c2%9b", "a%2Bb", "%23", "",   "%f5%80%80%80", "+",     "%-1", "%c0%80", "% 41",      "%4g"};
	char path[1024], *at;
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		snprintf(path, sizeof(path), "/v1/devices/%s", ids[i]);
		get(&s, path, &r);
		if (r.code != 400)
			ck_abort_msg("%d for %s", r.code, path);
		reply_fini(&r);
		ask(&s, "DELETE", path, NULL, &r);
		ck_assert_int_eq(r.code, 400);
		reply_fini(&r);
	}
	/* 255 bytes are an id, 256 are none. */
	at = stpcpy(path, "/v1/devices/");
	memset(at, 'x', 256);
	at[256] = '\0';
	get(&s, path, &r);
	expect_error(400);
	at[255] = '\0';
	get(&s, path, &r);
	expect_error(404);
	server_see(&s);
	server_beat(&s, 0, at, NULL);
	ck_assert_int_eq(get(&s, path, &r), 200);
}
END_TEST

/* If a client sends requests without end and reads no answer, the server stops reading from it. */
START_TEST(what_is_read_ahead_is_bounded)
{
	int fd = client_connect(&s), idle = 0;
	char requests[26 * 1000 + 1] = "";
	size_t total = 0;
	for (char *at = requests; at < requests + 26 * 1000;)
		at = stpcpy(at, "GET /metrics HTTP/1.1\r\n\r\n ");
	while (idle < 100) {
		ssize_t n = send(fd, requests, 25, MSG_NOSIGNAL);
		server_turn(&s);
		idle = n < 0 ? idle + 1 : 0;
		total += n > 0 ? (size_t)n : 0;
		ck_assert_uint_lt(total, 10000000); /* a part of an import has 8 MiB */
	}
	ck_assert_uint_gt(total, 100000);
	close(fd);
	ck_assert_int_eq(get(&s, "/healthz", &r), 200);
}
END_TEST

static void send_bytewise(int fd, const char *text)
{
	for (; *text; text++) {
		ck_assert_int_eq(send(fd, text, 1, MSG_NOSIGNAL), 1);
		server_turn(&s);
	}
}

/* Also where the header comes in parts, of a second request. */
START_TEST(a_body_in_chunks_is_refused)
{
	int fd = client_connect(&s);
	send_bytewise(fd, "GET /healthz HTTP/1.1\r\nX: Transfer-Encoding: chunked\r\n\r\n");
	client_read(&s, fd, NULL, &r);
	ck_assert_int_eq(r.code, 200);
	reply_fini(&r);
	send_bytewise(fd, "POST /v1/reload HTTP/1.1\r\nTransfer-Encoding: chunked\r\n");
	client_read(&s, fd, NULL, &r);
	expect_error(400);
	close(fd);
}
END_TEST

/* The line that announces a chunk, a first line and a header, each without an end: the server neither keeps them, nor
 * turns for ever. */
START_TEST(a_line_without_end)
{
	static const char *const beginnings[] = {
		"GET /v1/devices HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
		"",
		"GET /v1/devices HTTP/1.1\r\nHost: a\r\n",
		"POST /v1/reload HTTP/1.1\r\nContent-Length: 1000000000\r\n\r\n",
	};
	static char endless[4096];
	memset(endless, 'x', sizeof(endless));
	for (size_t i = 0; i < sizeof(beginnings) / sizeof(*beginnings); i++) {
		int fd = client_connect(&s);
		client_send(&s, fd, beginnings[i], strlen(beginnings[i]));
		for (int n = 0; n < 100; n++) {
			(void)!send(fd, endless, sizeof(endless), MSG_NOSIGNAL);
			server_turn(&s);
		}
		close(fd);
		ck_assert_int_eq(get(&s, "/healthz", &r), 200);
		reply_fini(&r);
	}
}
END_TEST

START_TEST(client_leaves_before_the_answer)
{
	for (int i = 0; i < 50; i++) {
		int fd = client_connect(&s);
		client_send(&s, fd, "GET /metrics HTTP/1.1\r\n\r\nGET /v1/status HT", (size_t)(10 + i % 30));
		close(fd);
		server_turn(&s);
	}
	ck_assert_int_eq(get(&s, "/healthz", &r), 200);
}
END_TEST

/* Without free descriptors the loop pauses; it serves again when some are free. */
START_TEST(no_descriptor_left)
{
	struct rlimit was, none;
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	const char request[] = "GET /healthz HTTP/1.1\r\n\r\n";
	int fd = client_connect(&s), spins = 0;
	strcpy(sa.sun_path, s.path);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = (rlim_t)fd + 1;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	long long since = clock_ms();
	while (clock_ms() - since < 300) {
		struct timeval soon = {0, 20000};
		event_base_loopexit(s.base, &soon);
		event_base_loop(s.base, EVLOOP_ONCE);
		spins++;
	}
	ck_assert_int_lt(spins, 60);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &was), 0);
	client_send(&s, fd, request, strlen(request));
	client_read(&s, fd, NULL, &r);
	ck_assert_int_eq(r.code, 200);
	close(fd);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("control_hostile");
	TCase *tc = tcase_create("hostile");
	tcase_add_checked_fixture(tc, rig_set_up_blind, rig_tear_down);
	tcase_set_timeout(tc, 30);
	tcase_add_test(tc, what_is_not_http);
	tcase_add_test(tc, huge_headers);
	tcase_add_test(tc, large_bodies);
	tcase_add_test(tc, body_on_demand);
	tcase_add_test(tc, half_a_request);
	tcase_add_test(tc, two_requests_in_one_read);
	tcase_add_test(tc, ids_of_every_byte);
	tcase_add_test(tc, broken_ids);
	tcase_add_test(tc, what_is_read_ahead_is_bounded);
	tcase_add_test(tc, a_body_in_chunks_is_refused);
	tcase_add_test(tc, a_line_without_end);
	tcase_add_test(tc, client_leaves_before_the_answer);
	tcase_add_test(tc, no_descriptor_left);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

/* SPDX-License-Identifier: MIT */
/* A request that is forwarded, with libcurl as the client. */
#include <check.h>
#include <curl/curl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../suite.h"
#include "http/proxy.h"
#include "pass_servers.h"

/* --- the client */

struct got {
	CURLcode code;
	long status;
	char head[4096], body[4096];
	size_t n_head, n, total;
	bool gives_up; /* at the first byte */
};

static size_t keep_head(char *bytes, size_t size, size_t n, void *arg)
{
	struct got *g = arg;
	if (g->n_head + n < sizeof(g->head))
		memcpy(g->head + g->n_head, bytes, n), g->n_head += n;
	return size * n;
}

static size_t keep(char *bytes, size_t size, size_t n, void *arg)
{
	struct got *g = arg;
	g->total += n;
	if (g->n + n < sizeof(g->body))
		memcpy(g->body + g->n, bytes, n), g->n += n;
	return g->gives_up ? 0 : size * n;
}

static CURL *client(struct got *g, const char *method, const char *path)
{
	CURL *c = curl_easy_init();
	char url[256];
	ck_assert_ptr_nonnull(c);
	snprintf(url, sizeof(url), "http://x%s", path);
	curl_easy_setopt(c, CURLOPT_UNIX_SOCKET_PATH, pass_front_path);
	curl_easy_setopt(c, CURLOPT_URL, url);
	curl_easy_setopt(c, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, method);
	curl_easy_setopt(c, CURLOPT_NOBODY, strcmp(method, "HEAD") == 0 ? 1L : 0L);
	curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, 20000L);
	curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, keep_head);
	curl_easy_setopt(c, CURLOPT_HEADERDATA, g);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, keep);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, g);
	return c;
}

static void perform(CURL *c, struct got *g)
{
	g->code = curl_easy_perform(c);
	curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &g->status);
	g->head[g->n_head] = g->body[g->n] = '\0';
	curl_easy_cleanup(c);
}

static struct got ask(const char *method, const char *path, const char *body)
{
	struct got g = {0};
	CURL *c = client(&g, method, path);
	if (body)
		curl_easy_setopt(c, CURLOPT_POSTFIELDS, body);
	perform(c, &g);
	return g;
}

struct stats {
	unsigned now;
	unsigned long long passed, failed, refused;
	long rss_kib;
};

static struct stats stats(void)
{
	struct stats s;
	struct got g = ask("GET", "/stats", NULL);
	ck_assert_int_eq(g.status, 200);
	ck_assert_int_eq(sscanf(g.body, "%u %llu %llu %llu %ld", &s.now, &s.passed, &s.failed, &s.refused, &s.rss_kib),
	                 5);
	return s;
}

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void until_idle(void)
{
	for (int i = 0; stats().now > 0; i++) {
		ck_assert_int_lt(i, 20000);
		poll(NULL, 0, 1);
	}
}

/* --- what passes */

START_TEST(a_request_passes_with_all_that_matters)
{
	struct got g = ask("GET", "/v1/echo/a%2Fb/../c?x=1&y=%20", NULL);
	ck_assert_int_eq(g.code, CURLE_OK);
	ck_assert_int_eq(g.status, 201);
	ck_assert_str_eq(g.body, "1 /v1/echo/a%2Fb/../c?x=1&y=%20 accept=*/* type= body=");
	ck_assert_ptr_nonnull(strstr(g.head, "ETag: \"abc\""));
	ck_assert_ptr_nonnull(strstr(g.head, "Content-Type: text/plain"));
	ck_assert_ptr_nonnull(strstr(g.head, "Content-Length: "));
	ck_assert_ptr_null(strstr(g.head, "X-Inner"));
	ck_assert_uint_eq(stats().passed, 1);
}
END_TEST

/* What a browser has already, and where its event stream ended; nothing that is between it and us alone. */
START_TEST(what_a_browser_has_passes)
{
	struct curl_slist *headers = curl_slist_append(NULL, "If-None-Match: \"abc\"");
	struct got g = {0};
	CURL *c = client(&g, "GET", "/v1/asked");
	headers = curl_slist_append(headers, "Last-Event-ID: 5-1");
	headers = curl_slist_append(headers, "Cookie: a=b");
	curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
	perform(c, &g);
	curl_slist_free_all(headers);
	ck_assert_str_eq(g.body, "\"abc\" 5-1 -");
	g = ask("GET", "/v1/asked", NULL);
	ck_assert_str_eq(g.body, "- - -");
}
END_TEST

START_TEST(bodies_and_other_methods_pass)
{
	struct got g = ask("POST", "/v1/echo", "{\"a\":1}");
	ck_assert_str_eq(g.body, "2 /v1/echo accept=*/* type=application/x-www-form-urlencoded body={\"a\":1}");
	g = ask("DELETE", "/v1/echo/7", NULL);
	ck_assert_str_eq(g.body, "16 /v1/echo/7 accept=*/* type= body=");
}
END_TEST

START_TEST(a_head_has_no_body)
{
	struct got g = ask("HEAD", "/v1/echo", NULL);
	ck_assert_int_eq(g.code, CURLE_OK);
	ck_assert_int_eq(g.status, 201);
	ck_assert_uint_eq(g.total, 0);
	ck_assert_ptr_nonnull(strstr(g.head, "Content-Length: "));
}
END_TEST

START_TEST(errors_pass_as_they_are)
{
	struct got g = ask("GET", "/v1/no-such-thing", NULL);
	ck_assert_int_eq(g.status, 404);
	ck_assert_str_eq(g.body, "{\"error\":\"no such path\"}\n");
	ck_assert_uint_eq(stats().failed, 0);
}
END_TEST

START_TEST(a_route_below_a_path_has_no_namesakes)
{
	struct got g = ask("GET", "/v1x/echo", NULL);
	ck_assert_int_eq(g.status, 404);
	ck_assert_uint_eq(stats().passed, 0);
}
END_TEST

START_TEST(several_requests_of_a_connection_pass)
{
	for (int i = 0; i < 3; i++) {
		struct got g = {0};
		CURL *c = client(&g, "GET", "/v1/echo");
		ck_assert_int_eq(curl_easy_perform(c), CURLE_OK);
		g.n = 0;
		perform(c, &g);
		ck_assert_int_eq(g.code, CURLE_OK);
		ck_assert_str_eq(g.body, "1 /v1/echo accept=*/* type= body=");
	}
	ck_assert_uint_eq(stats().passed, 6);
}
END_TEST

#ifdef __SANITIZE_ADDRESS__
#define MOST_KIB (1L << 30) /* what is freed is kept for a while: nothing can be said */
#else
#define MOST_KIB (16L * 1024)
#endif

START_TEST(a_large_answer_passes_and_is_not_kept)
{
	struct got g = {0};
	long before = stats().rss_kib;
	CURL *c = client(&g, "GET", "/v1/big");
	curl_easy_setopt(c, CURLOPT_MAX_RECV_SPEED_LARGE, (curl_off_t)PASS_BIG);
	perform(c, &g);
	ck_assert_int_eq(g.code, CURLE_OK);
	ck_assert_uint_eq(g.total, PASS_BIG);
	long after = stats().rss_kib;
	ck_assert_msg(after - before < MOST_KIB, "the front grew by %ld KiB", after - before);
}
END_TEST

/* During a second: after that time the process would hold the whole answer. */
START_TEST(who_does_not_read_is_waited_for)
{
	static const char request[] = "GET /v1/big HTTP/1.1\r\nHost: x\r\n\r\n";
	long before = stats().rss_kib;
	int fd = pass_connect(pass_front_path);
	ck_assert_int_ge(fd, 0);
	int64_t began = now_ms();
	ck_assert_int_eq(write(fd, request, strlen(request)), (ssize_t)strlen(request));
	while (now_ms() - began < 1000) {
		long grown = stats().rss_kib - before;
		ck_assert_msg(grown < MOST_KIB, "the front grew by %ld KiB", grown);
		poll(NULL, 0, 1);
	}
	/* It is waited for, but not for ever. */
	unsigned now = stats().now;
	ck_assert(now == 1 || now_ms() - began >= PASS_PATIENCE_MS);
	close(fd);
	until_idle();
}
END_TEST

START_TEST(an_interim_answer_leaves_nothing)
{
	struct got g = ask("GET", "/v1/interim", NULL);
	ck_assert_int_eq(g.code, CURLE_OK);
	ck_assert_str_eq(g.body, "ok");
	ck_assert_ptr_nonnull(strstr(g.head, "ETag: \"new\""));
	ck_assert_ptr_null(strstr(g.head, "\"old\""));
}
END_TEST

START_TEST(what_is_never_ended_passes_as_it_comes)
{
	struct got g = {.gives_up = true};
	perform(client(&g, "GET", "/v1/stream"), &g);
	ck_assert_int_eq(g.code, CURLE_WRITE_ERROR);
	ck_assert_str_eq(g.body, "data: 1\n\n");
	until_idle(); /* the client went away */
	ck_assert_uint_eq(stats().failed, 0);
}
END_TEST

/* --- what does not */

START_TEST(a_dead_answerer_is_503)
{
	pass_stop(&pass_answerer_pid);
	struct got g = ask("GET", "/v1/echo", NULL);
	ck_assert_int_eq(g.status, 503);
	ck_assert_str_eq(g.body, "{\"error\":\"the answerer is not running\"}\n");
	ck_assert_uint_eq(stats().failed, 1);
	pass_answerer_pid = pass_start(pass_answerer_path, &pass_answerer, false);
	g = ask("GET", "/v1/echo", NULL);
	ck_assert_int_eq(g.status, 201);
}
END_TEST

START_TEST(an_answerer_that_is_silent_is_503)
{
	struct got g = ask("GET", "/v1/nothing", NULL);
	ck_assert_int_eq(g.status, 503);
	ck_assert_str_eq(g.body, "{\"error\":\"the answerer does not answer\"}\n");
	ck_assert_uint_eq(stats().now, 0);
	ck_assert_uint_eq(stats().failed, 1);
}
END_TEST

START_TEST(an_answerer_that_stands_still_is_503)
{
	kill(pass_answerer_pid, SIGSTOP);
	struct got g = ask("GET", "/v1/echo", NULL);
	kill(pass_answerer_pid, SIGCONT);
	ck_assert_int_eq(g.status, 503);
}
END_TEST

START_TEST(a_broken_answer_is_seen_as_one)
{
	struct got g = {0};
	CURL *c = client(&g, "GET", "/v1/stream"); /* begins, and never goes on */
	perform(c, &g);
	ck_assert_int_eq(g.status, 200);
	ck_assert_int_ne(g.code, CURLE_OK);
	until_idle();
	ck_assert_uint_eq(stats().failed, 1);
	g = ask("GET", "/v1/broken", NULL);
	ck_assert_int_ne(g.code, CURLE_OK); /* and as much of it as had gone out by then */
	waitpid(pass_answerer_pid, NULL, 0);
	pass_answerer_pid = 0;
	until_idle();
	ck_assert_uint_eq(stats().failed, 2);
}
END_TEST

START_TEST(a_client_that_goes_away_is_forgotten)
{
	struct got g = {0};
	CURL *c = client(&g, "GET", "/v1/nothing");
	curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, 20L);
	perform(c, &g);
	ck_assert_int_eq(g.code, CURLE_OPERATION_TIMEDOUT);
	until_idle();
	g = ask("GET", "/v1/echo", NULL);
	ck_assert_int_eq(g.status, 201);
}
END_TEST

static void ask_more_than(const char *method, int most)
{
	CURLM *m = curl_multi_init();
	static struct got got[HW_PROXY_MAX + 8];
	CURL *c[HW_PROXY_MAX + 8];
	int running = 1, refused = 0, silent = 0;
	memset(got, 0, sizeof(got));
	for (size_t i = 0; i < HW_PROXY_MAX + 8; i++) {
		c[i] = client(&got[i], method, "/v1/nothing");
		curl_multi_add_handle(m, c[i]);
	}
	while (running > 0) {
		curl_multi_perform(m, &running);
		curl_multi_poll(m, NULL, 0, 100, NULL);
	}
	for (size_t i = 0; i < HW_PROXY_MAX + 8; i++) {
		got[i].body[got[i].n] = '\0';
		refused += strstr(got[i].body, "too many requests") != NULL;
		silent += strstr(got[i].body, "does not answer") != NULL;
		curl_multi_remove_handle(m, c[i]);
		curl_easy_cleanup(c[i]);
	}
	curl_multi_cleanup(m);
	ck_assert_int_eq(refused, HW_PROXY_MAX + 8 - most);
	ck_assert_int_eq(silent, most);
	ck_assert_uint_eq(stats().refused, HW_PROXY_MAX + 8 - (unsigned)most);
}

START_TEST(more_than_are_meant_are_refused)
{
	ask_more_than("POST", HW_PROXY_MAX);
}
END_TEST

/* Clients that listen for hours leave room for clients that change something. */
START_TEST(those_who_only_read_leave_room)
{
	ask_more_than("GET", HW_PROXY_READS_MAX);
}
END_TEST

START_TEST(the_front_stops_with_requests_under_way)
{
	CURLM *m = curl_multi_init();
	struct got g = {0};
	CURL *c = client(&g, "GET", "/v1/nothing");
	int running;
	curl_multi_add_handle(m, c);
	for (int i = 0; stats().now == 0; i++) {
		ck_assert_int_lt(i, 20000);
		curl_multi_perform(m, &running);
		poll(NULL, 0, 1);
	}
	pass_stop(&pass_front_pid);
	curl_multi_remove_handle(m, c);
	curl_easy_cleanup(c);
	curl_multi_cleanup(m);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pass");
	TCase *tc = tcase_create("pass");
	curl_global_init(CURL_GLOBAL_DEFAULT);
	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, pass_setup, pass_teardown);
	tcase_add_test(tc, a_request_passes_with_all_that_matters);
	tcase_add_test(tc, what_a_browser_has_passes);
	tcase_add_test(tc, bodies_and_other_methods_pass);
	tcase_add_test(tc, who_does_not_read_is_waited_for);
	tcase_add_test(tc, an_interim_answer_leaves_nothing);
	tcase_add_test(tc, a_head_has_no_body);
	tcase_add_test(tc, errors_pass_as_they_are);
	tcase_add_test(tc, a_route_below_a_path_has_no_namesakes);
	tcase_add_test(tc, several_requests_of_a_connection_pass);
	tcase_add_test(tc, a_large_answer_passes_and_is_not_kept);
	tcase_add_test(tc, what_is_never_ended_passes_as_it_comes);
	tcase_add_test(tc, a_dead_answerer_is_503);
	tcase_add_test(tc, an_answerer_that_is_silent_is_503);
	tcase_add_test(tc, an_answerer_that_stands_still_is_503);
	tcase_add_test(tc, a_broken_answer_is_seen_as_one);
	tcase_add_test(tc, a_client_that_goes_away_is_forgotten);
	tcase_add_test(tc, more_than_are_meant_are_refused);
	tcase_add_test(tc, those_who_only_read_leave_room);
	tcase_add_test(tc, the_front_stops_with_requests_under_way);
	suite_add_tcase(suite, tc);
	int status = suite_run(suite);
	curl_global_cleanup();
	return status;
}

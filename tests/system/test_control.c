/* SPDX-License-Identifier: MIT */
/* The control API: its routes, and what it reports about the daemon, devices and metrics. */
#include <check.h>
#include <cjson/cJSON.h>
#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../suite.h"
#include "control_rig.h"

/* --- routes */

START_TEST(unknown_paths)
{
	static const char *const paths[] = {
		"/web",         "/web/none",   "/index.html",     "/v1",        "/v1/",        "/v1/status/",
		"/v1/statu",    "/v1/status2", "/v1/devices/a/b", "/v2/status", "//v1/status", "/healthz/x",
		"/v1/events/a", "/metrics%00", "/..%2fhealthz"};
	server_see(&s);
	server_beat(&s, 0, "a/b", NULL); /* its slash has to be encoded */
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		get(&s, paths[i], &r);
		expect_error(404);
	}
}
END_TEST

START_TEST(wrong_methods)
{
	static const struct {
		const char *method, *path, *allow;
	} cases[] = {
		{"POST", "/v1/status", "GET, HEAD"},
		{"DELETE", "/v1/devices", "GET, HEAD"},
		{"PUT", "/v1/devices/a", "GET, HEAD, DELETE, PATCH"},
		{"GET", "/v1/reload", "POST"},
		{"OPTIONS", "/metrics", "GET, HEAD"},
		{"PATCH", "/healthz", "GET, HEAD"},
		{"TRACE", "/readyz", "GET, HEAD"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char allow[64];
		snprintf(allow, sizeof(allow), "\r\nAllow: %s\r\n", cases[i].allow);
		ask(&s, cases[i].method, cases[i].path, NULL, &r);
		ck_assert_msg(strstr(r.head, allow) != NULL, "%s", r.head);
		expect_error(405);
	}
	ask(&s, "POST", "/nowhere", NULL, &r);
	expect_error(404);
	ask(&s, "BREW", "/v1/status", NULL, &r);
	expect_error(405);
	ask(&s, "CONNECT", "x:1", NULL, &r);
	expect_error(404);
}
END_TEST

/* The value of a header, "" if it is not there. */
static const char *header(const char *head, const char *name, char value[64])
{
	const char *at = strstr(head, name);
	snprintf(value, 64, "%.*s", at ? (int)strcspn(at + strlen(name), "\r") : 0, at ? at + strlen(name) : "");
	return value;
}

/* HEAD gets the head that GET gets, without the body, and the connection goes on with the next request. */
START_TEST(head_is_answered_as_get_is)
{
	static const struct {
		const char *path;
		int code;
		bool same_length; /* of a page that does not change, nor grows while it is written */
	} cases[] = {{"/v1/status", 200, false},
	             {"/v1/groups", 200, true},
	             {"/v1/devices", 200, true},
	             {"/v1/devices?sort=id", 200, true},
	             {"/v1/devices/a", 200, false},
	             {"/v1/devices/nobody", 404, true},
	             {"/v1/events", 200, false},
	             {"/v1/transitions", 200, true},
	             {"/v1/wheel", 200, true},
	             {"/healthz", 200, true},
	             {"/readyz", 200, true},
	             {"/metrics", 200, false},
	             {"/nowhere", 404, true},
	             {"/v1/reload", 405, true},
	             {"/", 200, true}};
	char request[200], type[64], length[64], got[64];

	server_see(&s);
	server_beat(&s, 0, "a", NULL);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool events = strcmp(cases[i].path, "/v1/events") == 0;
		snprintf(type, sizeof(type), "text/event-stream");
		*length = '\0';
		if (!events) {
			get(&s, cases[i].path, &r);
			header(r.head, "\r\nContent-Type: ", type);
			header(r.head, "\r\nContent-Length: ", length);
			reply_fini(&r);
		}
		int fd = client_connect(&s);
		snprintf(request, sizeof(request),
		         "HEAD %s HTTP/1.1\r\n\r\nGET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n", cases[i].path);
		client_send(&s, fd, request, strlen(request));
		client_read_all(&s, fd, &r);
		ck_assert_msg(r.code == cases[i].code, "%s: %d", cases[i].path, r.code);
		ck_assert_msg(strncmp(r.body, "HTTP/1.1 200 ", 13) == 0, "%s: %s", cases[i].path, r.body);
		ck_assert_str_eq(header(r.head, "\r\nContent-Type: ", got), type);
		header(r.head, "\r\nContent-Length: ", got);
		ck_assert_msg(!cases[i].same_length || strcmp(got, length) == 0, "%s: %s, not %s", cases[i].path, got,
		              length);
		reply_fini(&r);
		close(fd);
	}
}
END_TEST

/* --- the daemon */

START_TEST(status_says_all)
{
	server_see(&s);
	server_beat(&s, 0, "a", NULL);
	server_beat(&s, 0, "b", NULL);
	server_beat(&s, 1, "f/c", "{\"online\":false}");
	s.status.pending = 7;
	ck_assert_int_eq(get(&s, "/v1/status", &r), 200);
	cJSON *json = cJSON_Parse(r.body);
	expect_keys(json, "node version uptime_s blind blind_cause blind_for_ms judges_in_ms starting mqtt broker "
	                  "broker_port redis redis_writable loading devices "
	                  "online offline unseen unjudged unjudged_groups left_out while_unknown suspects candidates "
	                  "owed owed_oldest_ms "
	                  "heartbeats_total "
	                  "heartbeats_per_s transitions_total "
	                  "barrier_ms now_ms");
	ck_assert_str_eq(text(json, "node"), "node \"1\"");
	ck_assert_str_eq(text(json, "version"), "1.2.3");
	ck_assert_str_eq(text(json, "mqtt"), "up");
	ck_assert_str_eq(text(json, "redis"), "off");
	ck_assert_double_eq(number(json, "uptime_s"), 4711);
	ck_assert_double_eq(number(json, "owed"), 7);
	ck_assert_double_eq(number(json, "devices"), 3);
	ck_assert_double_eq(number(json, "online"), 2);
	ck_assert_double_eq(number(json, "offline"), 1);
	ck_assert_double_eq(number(json, "heartbeats_total"), (double)hw_monitor_stats(s.monitor)->heartbeats);
	ck_assert(cJSON_IsFalse(cJSON_GetObjectItem(json, "blind")));
	ck_assert(cJSON_IsNull(cJSON_GetObjectItem(json, "blind_cause")));
	ck_assert(cJSON_IsFalse(cJSON_GetObjectItem(json, "loading")));
	cJSON_Delete(json);
}
END_TEST

START_TEST(status_says_blind)
{
	s.status.loading = true;
	ck_assert_int_eq(get(&s, "/v1/status", &r), 200);
	cJSON *json = cJSON_Parse(r.body);
	ck_assert(cJSON_IsTrue(cJSON_GetObjectItem(json, "blind")));
	ck_assert_str_eq(text(json, "blind_cause"), "link");
	ck_assert(cJSON_IsTrue(cJSON_GetObjectItem(json, "loading")));
	cJSON_Delete(json);
}
END_TEST

START_TEST(health_and_readiness)
{
	get(&s, "/readyz", &r);
	ck_assert_str_eq(r.body, "{\"error\":\"blind: link\"}\n");
	expect_error(503);
	server_see(&s);
	ck_assert_int_eq(get(&s, "/readyz", &r), 200);
	ck_assert_str_eq(r.body, "{\"status\":\"ok\"}\n");
	reply_fini(&r);
	s.status.store = HW_REDIS_AWAY; /* for a moment without effect; for longer, writes are pending */
	ck_assert_int_eq(get(&s, "/readyz", &r), 200);
	reply_fini(&r);
	s.status.store = HW_REDIS_REFUSES;
	s.status.redis = "no write is accepted: OOM";
	get(&s, "/readyz", &r);
	ck_assert_str_eq(r.body, "{\"error\":\"Redis: no write is accepted: OOM\"}\n");
	expect_error(503);
	s.status.store = HW_REDIS_WRITES;
	s.status.pending = 3;
	s.status.pending_oldest_ms = 10000;
	ck_assert_int_eq(get(&s, "/readyz", &r), 200);
	reply_fini(&r);
	s.status.pending_oldest_ms = 10001;
	s.status.loading = true;
	get(&s, "/readyz", &r);
	ck_assert_str_eq(
		r.body,
		"{\"error\":\"loading devices from the store; 3 states of devices pending, the oldest for 10 s\"}\n");
	expect_error(503);
	ck_assert_int_eq(get(&s, "/healthz", &r), 200);
	ck_assert_str_eq(r.body, "{\"status\":\"ok\"}\n");
	reply_fini(&r);
}
END_TEST

START_TEST(reload_passes_the_answer_on)
{
	s.reload_body = "{\"changed\":[\"monitor.log\"],\"restart_needed\":[]}";
	ask(&s, "POST", "/v1/reload", NULL, &r);
	ck_assert_int_eq(r.code, 200);
	ck_assert_str_eq(r.body, "{\"changed\":[\"monitor.log\"],\"restart_needed\":[]}\n");
	reply_fini(&r);
	s.reload_code = 400;
	s.reload_body = "{\"error\":\"no\",\"lines\":[\"f:1: x\"]}";
	ask(&s, "POST", "/v1/reload", NULL, &r);
	ck_assert_str_eq(r.body, "{\"error\":\"no\",\"lines\":[\"f:1: x\"]}\n");
	expect_error(400);
}
END_TEST

/* --- devices */

START_TEST(device_says_all)
{
	server_see(&s);
	server_beat(&s, 0, "a",
	            "{\"battery\":87,\"rssi\":-60.5,\"ip\":\"10.0.0.1\",\"version\":\"2\",\"uptime\":5,"
	            "\"data\":{\"x\":[1,2]},\"timeout\":60}");
	s.now.mono.ns += 10 * HW_NS_PER_S;
	s.now.wall_ms += 10000;
	ck_assert_int_eq(get(&s, "/v1/devices/a", &r), 200);
	cJSON *json = cJSON_Parse(r.body);
	expect_keys(json, "id state since_ms last_seen_ms timeout_ms timeout_from reason group source seq parents "
	                  "children battery "
	                  "rssi ip version uptime "
	                  "data due_in_ms wheel level slot rounds");
	ck_assert_str_eq(text(json, "wheel"), "heartbeats");
	ck_assert_str_eq(text(json, "id"), "a");
	ck_assert_str_eq(text(json, "state"), "online");
	ck_assert_str_eq(text(json, "reason"), "heartbeat");
	ck_assert_str_eq(text(json, "group"), "default");
	ck_assert_str_eq(text(json, "source"), "mqtt");
	ck_assert_str_eq(text(json, "version"), "2");
	ck_assert_double_eq(number(json, "since_ms"), (double)(s.now.wall_ms - 10000));
	ck_assert_double_eq(number(json, "last_seen_ms"), (double)(s.now.wall_ms - 10000));
	ck_assert_double_eq(number(json, "timeout_ms"), 60000);
	ck_assert_double_eq(number(json, "due_in_ms"), 50000);
	ck_assert_double_eq(number(json, "battery"), 87);
	ck_assert_double_eq(number(json, "level"), 2);
	ck_assert_double_ge(number(json, "slot"), 0);
	ck_assert_double_eq(number(json, "rounds"), 0);
	ck_assert_double_gt(number(json, "seq"), 1e12);
	cJSON_Delete(json);
}
END_TEST

START_TEST(device_without_a_place)
{
	server_see(&s);
	server_beat(&s, 1, "f/a", "{\"online\":false}"); /* a first message that is a goodbye */
	ck_assert_int_eq(get(&s, "/v1/devices/f%2Fa", &r), 200);
	cJSON *json = cJSON_Parse(r.body);
	ck_assert_str_eq(text(json, "id"), "f/a");
	ck_assert_str_eq(text(json, "state"), "offline");
	ck_assert_str_eq(text(json, "reason"), "will");
	ck_assert_str_eq(text(json, "group"), "fast");
	ck_assert_double_eq(number(json, "timeout_ms"), 2000);
	static const char *const nothing[] = {"due_in_ms", "level", "slot", "rounds"};
	ck_assert_double_eq(number(json, "last_seen_ms"), 0);
	for (size_t i = 0; i < 4; i++)
		ck_assert_msg(cJSON_IsNull(cJSON_GetObjectItem(json, nothing[i])), "%s in %s", nothing[i], r.body);
	cJSON_Delete(json);
}
END_TEST

START_TEST(sources_have_names)
{
	static const struct {
		const char *id, *source;
		unsigned bits;
	} cases[] = {{"m", "mqtt", HW_SOURCE_MQTT},
	             {"k", "key", HW_SOURCE_KEY},
	             {"b", "both", HW_SOURCE_MQTT | HW_SOURCE_KEY}};

	for (size_t i = 0; i < 3; i++) {
		char path[32];
		struct hw_stored stored = {.id = cases[i].id,
		                           .id_len = 1,
		                           .state = HW_STATE_OFFLINE,
		                           .reason = HW_REASON_TIMEOUT,
		                           .since_ms = 1,
		                           .last_seen_ms = 1,
		                           .source = cases[i].bits,
		                           .seq = 5};
		ck_assert_int_eq(hw_monitor_load(s.monitor, s.now, &stored), 0);
		snprintf(path, sizeof(path), "/v1/devices/%s", cases[i].id);
		ck_assert_int_eq(get(&s, path, &r), 200);
		cJSON *json = cJSON_Parse(r.body);
		ck_assert_str_eq(text(json, "source"), cases[i].source);
		cJSON_Delete(json);
		reply_fini(&r);
	}
}
END_TEST

START_TEST(forgetting)
{
	server_see(&s);
	server_beat(&s, 0, "a b\xc3\xa4", NULL);
	ask(&s, "DELETE", "/v1/devices/a%20b%c3%a4", NULL, &r);
	ck_assert_int_eq(r.code, 204);
	ck_assert_uint_eq(r.body_len, 0);
	reply_fini(&r);
	/* Not reaped yet, as sinks are still owed it: gone all the same. */
	ck_assert_uint_ne(hw_registry_find(hw_monitor_registry(s.monitor), "a b\xc3\xa4", 5), HW_NIL);
	get(&s, "/v1/devices/a%20b%c3%a4", &r);
	expect_error(404);
	ask(&s, "DELETE", "/v1/devices/a%20b%c3%a4", NULL, &r);
	expect_error(404);
	ck_assert_uint_eq(s.forgets, 1);
	ck_assert_int_eq(get(&s, "/v1/devices", &r), 200);
	ck_assert_str_eq(r.body, "{\"devices\":[]}\n");
}
END_TEST

START_TEST(provisional_devices_are_not_told)
{
	server_stop(&s);
	server_start(&s, true);
	server_see(&s);
	server_beat(&s, 0, "a", NULL);
	ck_assert_uint_eq(hw_monitor_stats(s.monitor)->count[HW_STATE_PROVISIONAL], 1);
	get(&s, "/v1/devices/a", &r);
	expect_error(404);
	ask(&s, "DELETE", "/v1/devices/a", NULL, &r);
	expect_error(404);
	get(&s, "/v1/devices", &r);
	ck_assert_str_eq(r.body, "{\"devices\":[]}\n");
	reply_fini(&r);
	hw_monitor_loaded(s.monitor);
	server_core(&s);
	ck_assert_int_eq(get(&s, "/v1/devices/a", &r), 200);
}
END_TEST

/* --- metrics */

/* Every sample's family is announced right before it, once, and each line is valid for Prometheus. */
static void expect_valid_metrics(char *page)
{
	char seen[100][64], family[64] = "", *save = NULL;
	size_t n = 0;
	ck_assert(page[strlen(page) - 1] == '\n');
	for (char *line = strtok_r(page, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char name[64], *end;
		if (sscanf(line, "# HELP %63s", name) == 1) {
			for (size_t i = 0; i < n; i++)
				ck_assert_str_ne(seen[i], name);
			strcpy(seen[n++], name);
			strcpy(family, name);
			continue;
		}
		if (sscanf(line, "# TYPE %63s", name) == 1) {
			ck_assert_str_eq(name, family);
			continue;
		}
		size_t len = strcspn(line, "{ ");
		ck_assert_msg(strlen(family) == len && strncmp(line, family, len) == 0, "%s under %s", line, family);
		char *value = strrchr(line, ' ');
		ck_assert_ptr_nonnull(value);
		strtod(value + 1, &end);
		ck_assert_msg(end != value + 1 && *end == '\0', "%s", line);
		if (line[len] == '{')
			ck_assert_msg(value[-1] == '}', "%s", line);
	}
}

static void expect_line(const char *line)
{
	ck_assert_int_eq(get(&s, "/metrics", &r), 200);
	ck_assert_msg(strstr(r.body, line) != NULL, "%s is not in\n%s", line, r.body);
	reply_fini(&r);
}

START_TEST(metrics_are_valid)
{
	server_beat(&s, 0, "a", "{broken");
	ck_assert_int_eq(get(&s, "/metrics", &r), 200);
	ck_assert_ptr_nonnull(strstr(r.head, "Content-Type: text/plain; version=0.0.4"));
	ck_assert_ptr_nonnull(strstr(r.body, "heartwheel_more 1\n"));
	expect_valid_metrics(r.body);
}
END_TEST

START_TEST(metrics_count)
{
	s.now.mono.ns += 90 * HW_NS_PER_S; /* blind since the start */
	expect_line("\nheartwheel_blind{cause=\"link\"} 1\n");
	expect_line("\nheartwheel_blind{cause=\"stall\"} 0\n");
	expect_line("heartwheel_blind_seconds_total{cause=\"link\"} 90\n");
	server_see(&s);
	server_beat(&s, 0, "a", NULL);
	server_beat(&s, 0, "a", NULL);
	server_beat(&s, 1, "f/b", "{\"online\":false}");
	expect_line("\nheartwheel_devices{group=\"default\",state=\"online\"} 1\n");
	expect_line("\nheartwheel_devices{group=\"default\",state=\"offline\"} 0\n");
	expect_line("\nheartwheel_devices{group=\"fast\",state=\"offline\"} 1\n");
	expect_line("\nheartwheel_heartbeats_total{group=\"default\"} 2\n");
	expect_line("\nheartwheel_transitions_total{reason=\"heartbeat\"} 1\n");
	expect_line("\nheartwheel_transitions_total{reason=\"will\"} 1\n");
	expect_line("\nheartwheel_refused_total{kind=\"max_devices\"} 0\n");
	expect_line("\nheartwheel_payload_errors_total 0\n");
	expect_line("\nheartwheel_blind{cause=\"link\"} 0\n");
	expect_line("\nheartwheel_blind_seconds_total{cause=\"link\"} 90\n");
}
END_TEST

START_TEST(retired_groups_are_left_out)
{
	const char *const heartbeats[] = {"nodes/{id}/heartbeat"};
	const struct hw_group_spec only[] = {{.name = "default",
	                                      .heartbeat = heartbeats,
	                                      .n_heartbeat = 1,
	                                      .timeout_ms = 30000,
	                                      .timeout_max_ms = 60000}};
	const struct hw_monitor_conf conf = {.max_devices = 10, .readers = 1, .ttl_factor = 3};
	server_see(&s);
	server_beat(&s, 1, "f/a", NULL);
	ck_assert_int_eq(hw_monitor_reconfigure(s.monitor, s.now, &conf, only, 1), 0);
	expect_line("group=\"fast\"");
	server_forget(&s, "f/a");
	ck_assert_int_eq(get(&s, "/metrics", &r), 200);
	ck_assert_ptr_null(strstr(r.body, "group=\"fast\""));
}
END_TEST

/* --- libcurl as a client */

static size_t keep(char *bytes, size_t size, size_t n, void *arg)
{
	strncat(arg, bytes, size * n);
	return size * n;
}

static long with_curl(CURLM *multi, CURL *curl, const char *url, char *body)
{
	long code = 0;
	int running = 1;
	long long since = clock_ms();
	*body = '\0';
	curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, s.path);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, keep);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, body);
	curl_multi_add_handle(multi, curl);
	while (running > 0) {
		server_turn(&s);
		ck_assert_int_eq(curl_multi_perform(multi, &running), CURLM_OK);
		if (running > 0)
			curl_multi_poll(multi, NULL, 0, 1, NULL);
		ck_assert(!too_late(since));
	}
	curl_multi_remove_handle(multi, curl);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
	return code;
}

START_TEST(curl_is_a_client)
{
	char body[4096];
	long connects;
	CURLM *multi = curl_multi_init();
	CURL *curl = curl_easy_init();
	server_see(&s);
	server_beat(&s, 0, "a", NULL);
	ck_assert_int_eq(with_curl(multi, curl, "http://x/v1/devices/a", body), 200);
	ck_assert_ptr_nonnull(strstr(body, "\"id\":\"a\""));
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, "DELETE");
	ck_assert_int_eq(with_curl(multi, curl, "http://x/v1/devices/a", body), 204);
	curl_easy_getinfo(curl, CURLINFO_NUM_CONNECTS, &connects);
	ck_assert_int_eq(connects, 0); /* the connection was kept */
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, NULL);
	curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
	ck_assert_int_eq(with_curl(multi, curl, "http://x/v1/devices", body), 200);
	ck_assert_str_eq(body, "{\"devices\":[]}\n");
	curl_easy_cleanup(curl);
	curl_multi_cleanup(multi);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("control");
	TCase *tc = tcase_create("basic");
	tcase_add_checked_fixture(tc, rig_set_up_blind, rig_tear_down);
	tcase_add_test(tc, unknown_paths);
	tcase_add_test(tc, wrong_methods);
	tcase_add_test(tc, head_is_answered_as_get_is);
	tcase_add_test(tc, status_says_all);
	tcase_add_test(tc, status_says_blind);
	tcase_add_test(tc, health_and_readiness);
	tcase_add_test(tc, reload_passes_the_answer_on);
	tcase_add_test(tc, device_says_all);
	tcase_add_test(tc, device_without_a_place);
	tcase_add_test(tc, sources_have_names);
	tcase_add_test(tc, forgetting);
	tcase_add_test(tc, provisional_devices_are_not_told);
	tcase_add_test(tc, metrics_are_valid);
	tcase_add_test(tc, metrics_count);
	tcase_add_test(tc, retired_groups_are_left_out);
	tcase_add_test(tc, curl_is_a_client);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

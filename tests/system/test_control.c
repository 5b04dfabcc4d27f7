/* SPDX-License-Identifier: MIT */
/* The control API: its socket, its routes, what it says of daemon and devices, and what it does with hostile input. */
#include <check.h>
#include <cjson/cJSON.h>
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "control_server.h"

static struct server s;
static struct reply r;

static void setup(void)
{
	server_start(&s, false);
}

static void teardown(void)
{
	reply_fini(&r);
	server_stop(&s);
}

/* --- the socket */

START_TEST(socket_has_its_mode)
{
	struct stat st;
	static const mode_t masks[] = {0, 077, 0777};

	for (size_t i = 0; i < 3; i++) {
		struct hw_control *c;
		char path[128];
		snprintf(path, sizeof(path), "%s/%zu", s.dir, i);
		mode_t was = umask(masks[i]);
		ck_assert_int_eq(hw_control_new(&c, s.base, path, "", s.monitor, NULL, NULL), 0);
		umask(was);
		ck_assert_int_eq(stat(path, &st), 0);
		ck_assert_uint_eq(st.st_mode & 07777, 0660);
		hw_control_free(c);
		ck_assert_int_eq(stat(path, &st), -1);
	}
}
END_TEST

START_TEST(socket_has_its_group)
{
	struct hw_control *c;
	struct stat st;
	char path[128], group[16];

	snprintf(path, sizeof(path), "%s/g", s.dir);
	snprintf(group, sizeof(group), "%u", geteuid() == 0 ? 12345u : (unsigned)getegid());
	ck_assert_int_eq(hw_control_new(&c, s.base, path, group, s.monitor, NULL, NULL), 0);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_gid, (gid_t)atoi(group));
	ck_assert_uint_eq(st.st_mode & 07777, 0660);
	hw_control_free(c);
	ck_assert_int_eq(hw_control_new(&c, s.base, path, "no such group", s.monitor, NULL, NULL), -EINVAL);
	ck_assert_ptr_null(c);
	ck_assert_int_eq(stat(path, &st), -1);
}
END_TEST

START_TEST(socket_in_use_is_refused)
{
	struct hw_control *c;

	ck_assert_int_eq(hw_control_new(&c, s.base, s.path, "", s.monitor, NULL, NULL), -EADDRINUSE);
	ck_assert_int_eq(get(&s, "/healthz", &r), 200); /* and is still served */
}
END_TEST

START_TEST(stale_socket_is_replaced)
{
	struct hw_control *c;
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/stale", s.dir);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	close(fd);
	ck_assert_int_eq(hw_control_new(&c, s.base, sa.sun_path, "", s.monitor, NULL, NULL), 0);
	hw_control_free(c);
}
END_TEST

START_TEST(other_files_are_left_alone)
{
	struct hw_control *c;
	struct stat st;
	char path[256];

	snprintf(path, sizeof(path), "%s/file", s.dir);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	ck_assert_int_eq(hw_control_new(&c, s.base, path, "", s.monitor, NULL, NULL), -ENOTSOCK);
	ck_assert_int_eq(stat(path, &st), 0);
	unlink(path);
	snprintf(path, sizeof(path), "%s/none/sock", s.dir);
	ck_assert_int_eq(hw_control_new(&c, s.base, path, "", s.monitor, NULL, NULL), -ENOENT);
	memset(path, 'a', 200);
	path[200] = '\0';
	ck_assert_int_eq(hw_control_new(&c, s.base, path, "", s.monitor, NULL, NULL), -ENAMETOOLONG);
}
END_TEST

START_TEST(successors_socket_stays)
{
	struct hw_control *c;
	char moved[128];
	struct stat st;

	/* Somebody takes the file away and puts his own there. */
	snprintf(moved, sizeof(moved), "%s/moved", s.dir);
	ck_assert_int_eq(rename(s.path, moved), 0);
	ck_assert_int_eq(hw_control_new(&c, s.base, s.path, "", s.monitor, NULL, NULL), 0);
	hw_control_free(s.control);
	ck_assert_int_eq(stat(s.path, &st), 0);
	s.control = c;
	unlink(moved);
}
END_TEST

/* --- routes */

static void expect_error(int code)
{
	ck_assert_int_eq(r.code, code);
	ck_assert_msg(strstr(r.head, "Content-Type: application/json\r\n") != NULL, "%s", r.head);
	cJSON *json = cJSON_Parse(r.body);
	ck_assert_ptr_nonnull(cJSON_GetStringValue(cJSON_GetObjectItem(json, "error")));
	cJSON_Delete(json);
	reply_fini(&r);
}

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
		{"POST", "/v1/status", "GET"},
		{"DELETE", "/v1/devices", "GET"},
		{"PUT", "/v1/devices/a", "GET, DELETE"},
		{"GET", "/v1/reload", "POST"},
		{"OPTIONS", "/metrics", "GET"},
		{"PATCH", "/healthz", "GET"},
		{"TRACE", "/readyz", "GET"},
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

START_TEST(head_has_no_body)
{
	int fd = client_connect(&s);
	const char two[] = "HEAD /v1/status HTTP/1.1\r\n\r\nGET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n";

	client_send(&s, fd, two, strlen(two));
	/* The length is that of the body which GET would have: read up to the end. */
	client_read_all(&s, fd, &r);
	ck_assert_int_eq(r.code, 405);
	ck_assert_msg(strncmp(r.body, "HTTP/1.1 200 ", 13) == 0, "%s", r.body);
	close(fd);
}
END_TEST

/* --- the daemon */

static void expect_keys(const cJSON *object, const char *keys)
{
	char got[512] = "";
	const cJSON *item;

	cJSON_ArrayForEach(item, object)
	{
		strcat(got, *got ? " " : "");
		strcat(got, item->string);
	}
	ck_assert_str_eq(got, keys);
}

static double number(const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItem(object, key);
	ck_assert_msg(cJSON_IsNumber(item), "%s", key);
	return item->valuedouble;
}

static const char *text(const cJSON *object, const char *key)
{
	const char *value = cJSON_GetStringValue(cJSON_GetObjectItem(object, key));
	ck_assert_msg(value != NULL, "%s", key);
	return value;
}

START_TEST(status_says_all)
{
	server_see(&s);
	server_beat(&s, 0, "a", NULL);
	server_beat(&s, 0, "b", NULL);
	server_beat(&s, 1, "f/c", "{\"online\":false}");
	s.status.owed = 7;
	ck_assert_int_eq(get(&s, "/v1/status", &r), 200);
	cJSON *json = cJSON_Parse(r.body);
	expect_keys(json, "node version uptime_s blind blind_cause blind_for_ms mqtt redis loading devices online "
	                  "offline candidates owed owed_oldest_ms heartbeats_total heartbeats_per_s transitions_total "
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
	s.status.owed = 3;
	s.status.owed_oldest_ms = 10000;
	ck_assert_int_eq(get(&s, "/readyz", &r), 200);
	reply_fini(&r);
	s.status.owed_oldest_ms = 10001;
	s.status.loading = true;
	get(&s, "/readyz", &r);
	ck_assert_str_eq(
		r.body,
		"{\"error\":\"loading devices from the store; 3 devices' states owed, the oldest for 10 s\"}\n");
	expect_error(503);
	ck_assert_int_eq(get(&s, "/healthz", &r), 200);
	ck_assert_str_eq(r.body, "{\"status\":\"ok\"}\n");
	reply_fini(&r);
	s.healthy = false;
	get(&s, "/healthz", &r);
	expect_error(503);
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
	expect_keys(json,
	            "id state since_ms last_seen_ms timeout_ms reason group source seq battery rssi ip version uptime "
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

/* --- the wheel, the groups, the last hour */

static double element(const cJSON *array, int i)
{
	return cJSON_GetArrayItem(array, i)->valuedouble;
}

START_TEST(wheel_is_shown_as_it_is)
{
	server_see(&s);
	for (int i = 0; i < 5; i++) {
		char id[16];
		snprintf(id, sizeof(id), "d%d", i);
		server_beat(&s, 0, id, NULL); /* in 30 s: level 1 */
	}
	server_beat(&s, 1, "f/x", "{\"timeout\":86400}"); /* armed an hour ahead at most: level 3 */
	server_beat(&s, 1, "f/y", "{\"timeout\":0.5}");
	ck_assert_int_eq(get(&s, "/v1/wheel", &r), 200);
	cJSON *json = cJSON_Parse(r.body);
	expect_keys(json, "ticks_per_s candidates cursor_tick length levels");
	ck_assert_double_eq(number(json, "ticks_per_s"), 31);
	ck_assert_double_eq(number(json, "length"), 7);
	const cJSON *levels = cJSON_GetObjectItem(json, "levels");
	ck_assert_int_eq(cJSON_GetArraySize(levels), 4);
	const double ticks[] = {1, 31, 961, 29791}, loads[] = {1, 5, 0, 1};
	for (int level = 0; level < 4; level++) {
		const cJSON *one = cJSON_GetArrayItem(levels, level), *slots = cJSON_GetObjectItem(one, "slots");
		double sum = 0;
		expect_keys(one, "level slot_ticks cursor length slots");
		ck_assert_double_eq(number(one, "level"), level);
		ck_assert_double_eq(number(one, "slot_ticks"), ticks[level]);
		ck_assert_double_eq(number(one, "length"), loads[level]);
		ck_assert_double_eq(number(one, "cursor"),
		                    (double)((uint64_t)number(json, "cursor_tick") / (uint64_t)ticks[level] % 31));
		ck_assert_int_eq(cJSON_GetArraySize(slots), 31);
		for (int slot = 0; slot < 31; slot++)
			sum += element(slots, slot);
		ck_assert_double_eq(sum, loads[level]);
	}
	reply_fini(&r);
	ck_assert_int_eq(get(&s, "/v1/devices/d0", &r), 200);
	cJSON *device = cJSON_Parse(r.body);
	const cJSON *there = cJSON_GetArrayItem(levels, (int)number(device, "level"));
	ck_assert_double_eq(element(cJSON_GetObjectItem(there, "slots"), (int)number(device, "slot")), 5);
	cJSON_Delete(device);
	cJSON_Delete(json);
}
END_TEST

/* Another wheel, of the same shape; it goes although the broker is away. */
START_TEST(the_wheel_of_keys)
{
	server_stop(&s);
	server_start_with_keys(&s);
	hw_monitor_key_sight(s.monitor, s.now, true);
	server_key(&s, "one", 5000);
	server_key(&s, "two", 5000);
	server_beat(&s, 0, "beats", NULL);
	ck_assert_int_eq(get(&s, "/v1/wheel", &r), 200);
	cJSON *json = cJSON_Parse(r.body);
	expect_keys(json, "ticks_per_s candidates cursor_tick length levels keys");
	ck_assert_double_eq(number(json, "length"), 1);
	const cJSON *keys = cJSON_GetObjectItem(json, "keys"), *levels = cJSON_GetObjectItem(keys, "levels");
	expect_keys(keys, "cursor_tick length levels");
	ck_assert_double_eq(number(keys, "length"), 2);
	ck_assert_int_eq(cJSON_GetArraySize(levels), 4);
	reply_fini(&r);
	ck_assert_int_eq(get(&s, "/v1/devices/one", &r), 200);
	cJSON *device = cJSON_Parse(r.body);
	ck_assert_str_eq(text(device, "wheel"), "keys");
	const cJSON *there = cJSON_GetArrayItem(levels, (int)number(device, "level"));
	expect_keys(there, "level slot_ticks cursor length slots");
	ck_assert_double_eq(element(cJSON_GetObjectItem(there, "slots"), (int)number(device, "slot")), 2);
	cJSON_Delete(device);
	cJSON_Delete(json);
}
END_TEST

START_TEST(groups_are_counted)
{
	server_see(&s);
	server_beat(&s, 0, "a", NULL);
	server_beat(&s, 1, "f/b", "{\"online\":false}");
	ck_assert_int_eq(get(&s, "/v1/groups", &r), 200);
	ck_assert_str_eq(r.body,
	                 "{\"groups\":[{\"name\":\"default\",\"online\":1,\"offline\":0,\"timeout_ms\":30000,"
	                 "\"heartbeats_total\":1,\"retired\":false},{\"name\":\"fast\",\"online\":0,\"offline\":1,"
	                 "\"timeout_ms\":2000,\"heartbeats_total\":0,\"retired\":false}]}\n");
}
END_TEST

static void ticks(int seconds)
{
	for (int i = 0; i < seconds; i++) {
		s.now.mono.ns += HW_NS_PER_S;
		s.now.wall_ms += 1000;
		hw_control_tick(s.control, s.now);
	}
}

static cJSON *samples(void)
{
	reply_fini(&r);
	ck_assert_int_eq(get(&s, "/v1/samples", &r), 200);
	cJSON *json = cJSON_Parse(r.body);
	ck_assert_double_eq(number(json, "period_s"), 10);
	return json;
}

START_TEST(samples_of_the_last_hour)
{
	cJSON *json = samples();
	ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(json, "samples")), 0);
	cJSON_Delete(json);
	ticks(1); /* the first at once, still blind */
	server_see(&s);
	ticks(1);
	server_beat(&s, 0, "a", NULL);
	server_beat(&s, 0, "b", "{\"online\":false}");
	hw_control_detected(s.control, 30 * HW_NS_PER_MS);
	hw_control_detected(s.control, 10 * HW_NS_PER_MS);
	ticks(9);
	json = samples();
	const cJSON *all = cJSON_GetObjectItem(json, "samples"), *one = cJSON_GetArrayItem(all, 1);
	ck_assert_int_eq(cJSON_GetArraySize(all), 2);
	ck_assert(cJSON_IsTrue(cJSON_GetObjectItem(cJSON_GetArrayItem(all, 0), "blind")));
	ck_assert(cJSON_IsNull(cJSON_GetObjectItem(cJSON_GetArrayItem(all, 0), "delay_max_ms")));
	expect_keys(one, "time_ms online offline heartbeats transitions detected delay_mean_ms delay_max_ms blind");
	ck_assert_double_eq(number(one, "time_ms"), (double)s.now.wall_ms);
	ck_assert_double_eq(number(one, "online"), 1);
	ck_assert_double_eq(number(one, "offline"), 1);
	ck_assert_double_eq(number(one, "heartbeats"), 1);
	ck_assert_double_eq(number(one, "transitions"), 2);
	ck_assert_double_eq(number(one, "detected"), 2);
	ck_assert_double_eq(number(one, "delay_mean_ms"), 20);
	ck_assert_double_eq(number(one, "delay_max_ms"), 30);
	ck_assert(cJSON_IsFalse(cJSON_GetObjectItem(one, "blind")));
	cJSON_Delete(json);
	ticks(4000);
	json = samples();
	all = cJSON_GetObjectItem(json, "samples");
	ck_assert_int_eq(cJSON_GetArraySize(all), 360);
	ck_assert_double_eq(number(cJSON_GetArrayItem(all, 359), "time_ms") -
	                            number(cJSON_GetArrayItem(all, 0), "time_ms"),
	                    3590000);
	cJSON_Delete(json);
}
END_TEST

START_TEST(rate_of_heartbeats)
{
	server_see(&s);
	ticks(1);
	for (int i = 0; i < 100; i++) {
		for (int k = 0; k < 50; k++)
			server_beat(&s, 0, "a", NULL);
		ticks(1);
	}
	ck_assert_int_eq(get(&s, "/v1/status", &r), 200);
	cJSON *json = cJSON_Parse(r.body);
	ck_assert_double_eq(number(json, "heartbeats_per_s"), 50);
	cJSON_Delete(json);
}
END_TEST

/* --- an address for reading alone */

static int tcp_port(int family)
{
	struct sockaddr_storage sa = {.ss_family = (sa_family_t)family};
	socklen_t len = sizeof(sa);
	int fd = socket(family, SOCK_STREAM, 0);

	if (fd < 0 ||
	    bind(fd, (struct sockaddr *)&sa,
	         family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6)) < 0 ||
	    getsockname(fd, (struct sockaddr *)&sa, &len) < 0)
		return -1;
	close(fd);
	return ntohs(((struct sockaddr_in *)(void *)&sa)->sin_port);
}

/* One request to 127.0.0.1; the status, and the answer in `r`. */
static int tcp_ask(int port, const char *method, const char *target)
{
	struct sockaddr_in sa = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char request[256];

	ck_assert_int_eq(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	int n = snprintf(request, sizeof(request), "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", method,
	                 target);
	ck_assert(client_send(&s, fd, request, (size_t)n));
	reply_fini(&r);
	client_read(&s, fd, NULL, &r);
	close(fd);
	return r.code;
}

START_TEST(an_address_reads_alone)
{
	char address[64];
	int port = tcp_port(AF_INET);
	bool local = false;

	server_see(&s);
	server_beat(&s, 0, "a", NULL);
	snprintf(address, sizeof(address), "127.0.0.1:%d", port);
	ck_assert_int_eq(hw_control_listen(s.control, address, &local), 0);
	ck_assert(local);
	ck_assert_int_eq(tcp_ask(port, "GET", "/v1/status"), 200);
	ck_assert_int_eq(tcp_ask(port, "GET", "/v1/devices/a"), 200);
	ck_assert_int_eq(tcp_ask(port, "GET", "/metrics"), 200);
	ck_assert_int_eq(tcp_ask(port, "DELETE", "/v1/devices/a"), 405);
	ck_assert_ptr_nonnull(strstr(r.body, "{\"error\":\"this address is for reading alone"));
	ck_assert_ptr_nonnull(strstr(r.head, "\r\nAllow: GET\r\n"));
	ck_assert_uint_eq(s.forgets, 0);
	ck_assert_int_eq(tcp_ask(port, "DELETE", "/v1/devices"), 405);
	ck_assert_int_eq(tcp_ask(port, "POST", "/v1/reload"), 405);
	ck_assert_ptr_nonnull(strstr(r.body, "{\"error\":\"this address is for reading alone"));
	ck_assert_int_eq(tcp_ask(port, "GET", "/v1/reload"), 405);
	ck_assert_int_eq(tcp_ask(port, "GET", "/none"), 404);
	reply_fini(&r);
	ask(&s, "DELETE", "/v1/devices/a", NULL, &r);
	ck_assert_int_eq(r.code, 204);
	/* Twice is once too often. */
	struct hw_control *c;
	char path[128];
	snprintf(path, sizeof(path), "%s/other", s.dir);
	ck_assert_int_eq(hw_control_new(&c, s.base, path, "", s.monitor, NULL, NULL), 0);
	ck_assert_int_eq(hw_control_listen(c, address, &local), -EADDRINUSE);
	hw_control_free(c);
}
END_TEST

START_TEST(addresses_of_every_kind)
{
	static const struct {
		const char *host;
		int family;
		bool local;
	} cases[] = {{"127.0.0.1", AF_INET, true},
	             {"127.9.9.9", AF_INET, true},
	             {"0.0.0.0", AF_INET, false},
	             {"[::1]", AF_INET6, true},
	             {"[::]", AF_INET6, false}};
	static const char *const wrong[] = {"", "127.0.0.1", "x:1", "127.0.0.1:0", "[::1]", "127.0.0.1:99999"};
	char path[128], address[64];

	snprintf(path, sizeof(path), "%s/other", s.dir);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hw_control *c;
		bool local = !cases[i].local;
		int port = tcp_port(cases[i].family);
		if (port < 0)
			continue; /* no IPv6 here */
		ck_assert_int_eq(hw_control_new(&c, s.base, path, "", s.monitor, NULL, NULL), 0);
		snprintf(address, sizeof(address), "%s:%d", cases[i].host, port);
		int rc = hw_control_listen(c, address, &local);
		ck_assert(rc == 0 || (cases[i].family == AF_INET6 && rc == -EADDRNOTAVAIL));
		if (rc == 0)
			ck_assert_msg(local == cases[i].local, "%s", address);
		hw_control_free(c);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		bool local;
		ck_assert_int_eq(hw_control_listen(s.control, wrong[i], &local), -EINVAL);
	}
}
END_TEST

/* --- metrics */

/* Every sample has its family announced right before, once, and is a line that Prometheus takes. */
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
	expect_line("heartwheel_blind 1\n");
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
	expect_line("\nheartwheel_blind 0\n");
	int64_t ns = hw_monitor_blind(s.monitor)->cause_ns[HW_CAUSE_LINK];
	char line[100];
	snprintf(line, sizeof(line), "\nheartwheel_blind_seconds_total{cause=\"link\"} %g\n", (double)ns / 1e9);
	expect_line(line);
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
		{"POST /v1/reload HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n", 413},
		{"POST /v1/reload HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 413},
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
	ask(&s, "POST", "/v1/reload", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", &r);
	ck_assert_int_eq(r.code, 200);
	ck_assert_str_eq(r.rest, "");
	reply_fini(&r);
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

/* A client that pours requests in and reads no answer is not read for ever. */
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
		ck_assert_uint_lt(total, 2000000);
	}
	ck_assert_uint_gt(total, 100000);
	close(fd);
	ck_assert_int_eq(get(&s, "/healthz", &r), 200);
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

/* Out of descriptors: the loop rests, and goes on serving when there are some again. */
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

static void add_basic(Suite *suite)
{
	TCase *tc = tcase_create("basic");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, socket_has_its_mode);
	tcase_add_test(tc, wheel_is_shown_as_it_is);
	tcase_add_test(tc, the_wheel_of_keys);
	tcase_add_test(tc, groups_are_counted);
	tcase_add_test(tc, samples_of_the_last_hour);
	tcase_add_test(tc, rate_of_heartbeats);
	tcase_add_test(tc, an_address_reads_alone);
	tcase_add_test(tc, addresses_of_every_kind);
	tcase_add_test(tc, socket_has_its_group);
	tcase_add_test(tc, socket_in_use_is_refused);
	tcase_add_test(tc, stale_socket_is_replaced);
	tcase_add_test(tc, other_files_are_left_alone);
	tcase_add_test(tc, successors_socket_stays);
	tcase_add_test(tc, unknown_paths);
	tcase_add_test(tc, wrong_methods);
	tcase_add_test(tc, head_has_no_body);
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
}

int main(void)
{
	Suite *suite = suite_create("control");
	TCase *tc = tcase_create("hostile");

	add_basic(suite);
	tcase_add_checked_fixture(tc, setup, teardown);
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
	tcase_add_test(tc, client_leaves_before_the_answer);
	tcase_add_test(tc, no_descriptor_left);
	suite_add_tcase(suite, tc);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* SPDX-License-Identifier: MIT */
/* The control API of one of several nodes: what it reports about them, and devices that another node owns. */
#include <check.h>
#include <cjson/cJSON.h>
#include <string.h>
#include <unistd.h>

#include "../suite.h"
#include "control_rig.h"

static void set_up(void)
{
	server_start_with_nodes(&s);
	server_see(&s);
}

/* --- what it says of them */

START_TEST(nodes_says_all)
{
	ck_assert_int_eq(get(&s, "/v1/nodes", &r), 200);
	cJSON *json = cJSON_Parse(r.body);
	expect_keys(json,
	            "mode name lease_ms member lapsed as_of_ms sentinels sentinels_confirm partitions owned unowned "
	            "stream_lag_ms nodes now_ms");
	ck_assert_str_eq(text(json, "mode"), "mirror");
	ck_assert_double_eq(number(json, "lease_ms"), 5000);
	ck_assert_double_eq(number(json, "stream_lag_ms"), 250);
	const cJSON *nodes = cJSON_GetObjectItem(json, "nodes"), *b = cJSON_GetArrayItem(nodes, 1);
	ck_assert_int_eq(cJSON_GetArraySize(nodes), 3);
	expect_keys(b, "node self state since_ms owns mode name version blind_cause config listen url devices online "
	               "offline owed unjudged unjudged_groups differs");
	ck_assert_str_eq(text(b, "node"), "b");
	ck_assert_str_eq(text(b, "state"), "blind");
	ck_assert_str_eq(text(b, "blind_cause"), "link");
	ck_assert_str_eq(text(b, "listen"), "127.0.0.1:8731");
	ck_assert_double_eq(number(b, "owns"), 125);
	ck_assert_double_eq(number(b, "offline"), 1);
	const cJSON *differs = cJSON_GetObjectItem(b, "differs");
	ck_assert_int_eq(cJSON_GetArraySize(differs), 2);
	ck_assert_str_eq(cJSON_GetStringValue(cJSON_GetArrayItem(differs, 0)), "version");
	ck_assert_str_eq(cJSON_GetStringValue(cJSON_GetArrayItem(differs, 1)), "config");
	/* A node that is gone and whose last presence is unknown. */
	const cJSON *c = cJSON_GetArrayItem(nodes, 2);
	ck_assert_str_eq(text(c, "state"), "lost");
	ck_assert(cJSON_IsNull(cJSON_GetObjectItem(c, "version")));
	ck_assert(cJSON_IsNull(cJSON_GetObjectItem(c, "devices")));
	ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(c, "differs")), 0);
	cJSON_Delete(json);
}
END_TEST

START_TEST(nodes_are_in_the_order_of_their_names)
{
	struct hw_control_node first = s.nodes.at[0];
	s.nodes.at[0] = s.nodes.at[2];
	s.nodes.at[2] = first;
	ck_assert_int_eq(get(&s, "/v1/nodes", &r), 200);
	cJSON *json = cJSON_Parse(r.body);
	static const char *const names[] = {"a", "b", "c"};
	for (int i = 0; i < 3; i++)
		ck_assert_str_eq(text(cJSON_GetArrayItem(cJSON_GetObjectItem(json, "nodes"), i), "node"), names[i]);
	cJSON_Delete(json);
}
END_TEST

/* Anybody may have written it. */
START_TEST(foreign_bytes_are_not_passed_on)
{
	static const char *const said[] = {"",
	                                   "x",
	                                   "[]",
	                                   "{\"version\":[1],\"devices\":\"9\",\"mode\":{\"a\":1}}",
	                                   "{\"devices\":-1,\"owed\":1e300,\"listen\":null,\"extra\":\"<b>\"}",
	                                   "{\"version\":\"\\u0000\\u001b[31m\\ud800\"}"};
	for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++) {
		s.nodes.at[1].json = said[i];
		ck_assert_int_eq(get(&s, "/v1/nodes", &r), 200);
		cJSON *json = cJSON_Parse(r.body);
		const cJSON *b = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "nodes"), 1);
		ck_assert_msg(b != NULL, "%s: %s", said[i], r.body);
		ck_assert(cJSON_IsNull(cJSON_GetObjectItem(b, "devices")));
		ck_assert(cJSON_IsNull(cJSON_GetObjectItem(b, "owed")));
		ck_assert_ptr_null(strstr(r.body, "<b>"));
		cJSON_Delete(json);
		reply_fini(&r);
		ck_assert_int_eq(get(&s, "/v1/status", &r), 200);
		reply_fini(&r);
	}
}
END_TEST

START_TEST(status_has_the_cluster)
{
	ck_assert_int_eq(get(&s, "/v1/status", &r), 200);
	cJSON *json = cJSON_Parse(r.body);
	const cJSON *cluster = cJSON_GetObjectItem(json, "cluster");
	expect_keys(cluster, "mode name member lapsed as_of_ms state nodes ready lost partitions owned unowned");
	ck_assert_str_eq(text(cluster, "state"), "ready");
	ck_assert_double_eq(number(cluster, "nodes"), 2);
	ck_assert_double_eq(number(cluster, "ready"), 1);
	ck_assert_double_eq(number(cluster, "lost"), 1);
	ck_assert_double_eq(number(cluster, "owned"), 131);
	cJSON_Delete(json);
}
END_TEST

static void expect_ready(const char *body)
{
	get(&s, "/readyz", &r);
	ck_assert_str_eq(r.body, body);
	reply_fini(&r);
}

START_TEST(readiness)
{
	expect_ready("{\"status\":\"ok\"}\n"); /* also with one that is blind, or lost, or of another version */
	s.nodes.member = false;
	expect_ready("{\"error\":\"not a member of the nodes 'heartwheel'\"}\n");
	s.nodes.member = true;
	s.nodes.at[0].state = "lapsed";
	s.nodes.as_of_ms = s.now.wall_ms - 12500;
	expect_ready("{\"error\":\"Redis was not reached for 12 s, longer than the lease: all that is shown is from "
	             "then\"}\n");
	s.nodes.at[0].state = "ready";
	s.nodes.orphans = 3;
	expect_ready("{\"error\":\"3 of 256 partitions have no owner\"}\n");
	s.nodes.orphans = 0;
	s.nodes.at[1].json = "{\"mode\":\"standby\",\"name\":\"heartwheel\"}";
	expect_ready("{\"error\":\"node 'b' has another mode\"}\n");
	s.nodes.at[1].json = "{\"mode\":\"mirror\",\"name\":\"other\"}";
	expect_ready("{\"error\":\"node 'b' has another name\"}\n");
	s.nodes.at[1].lost = true;
	expect_ready("{\"status\":\"ok\"}\n");
	s.nodes.member = false;
	s.status.loading = true;
	expect_ready("{\"error\":\"loading devices from the store; not a member of the nodes 'heartwheel'\"}\n");
}
END_TEST

START_TEST(metrics)
{
	ck_assert_int_eq(get(&s, "/metrics", &r), 200);
	static const char *const lines[] = {"heartwheel_nodes{state=\"ready\"} 1",
	                                    "heartwheel_nodes{state=\"blind\"} 1",
	                                    "heartwheel_nodes{state=\"joining\"} 0",
	                                    "heartwheel_nodes{state=\"leaving\"} 0",
	                                    "heartwheel_nodes{state=\"lapsed\"} 0",
	                                    "heartwheel_nodes{state=\"lost\"} 1",
	                                    "heartwheel_partitions_owned 131",
	                                    "heartwheel_partitions_unowned 0",
	                                    "heartwheel_takeovers_total{kind=\"clean\"} 7",
	                                    "heartwheel_takeovers_total{kind=\"unclean\"} 131",
	                                    "heartwheel_takeover_seconds 0.125",
	                                    "heartwheel_fenced_total{by=\"redis\"} 2",
	                                    "heartwheel_fenced_total{by=\"broker\"} 3",
	                                    "heartwheel_evictions_total 1",
	                                    "heartwheel_peer_messages_total 9",
	                                    "heartwheel_stream_lag_seconds 0.25"};
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		char line[128];
		snprintf(line, sizeof(line), "\n%s\n", lines[i]);
		ck_assert_msg(strstr(r.body, line) != NULL, "%s", lines[i]);
	}
}
END_TEST

START_TEST(alone)
{
	server_stop(&s);
	server_start(&s, false);
	server_see(&s);
	server_beat(&s, 0, "d", NULL);
	ck_assert_int_eq(get(&s, "/v1/nodes", &r), 200);
	char body[128];
	snprintf(body, sizeof(body), "{\"mode\":\"off\",\"nodes\":[],\"now_ms\":%lld}\n", (long long)s.now.wall_ms);
	ck_assert_str_eq(r.body, body);
	reply_fini(&r);
	static const char *const paths[] = {"/v1/status", "/v1/devices/d", "/metrics"};
	for (size_t i = 0; i < 3; i++) {
		ck_assert_int_eq(get(&s, paths[i], &r), 200);
		ck_assert_ptr_null(strstr(r.body, "cluster"));
		ck_assert_ptr_null(strstr(r.body, "\"node\":\"a\""));
		ck_assert_ptr_null(strstr(r.body, "partitions"));
		reply_fini(&r);
	}
}
END_TEST

/* --- devices */

static void expect_owner(const char *target, const char *at)
{
	ck_assert_int_eq(get(&s, target, &r), 200);
	ck_assert_msg(strstr(r.body, at) != NULL, "%s", r.body);
	reply_fini(&r);
}

START_TEST(a_device_names_its_owner)
{
	server_beat(&s, 0, "d", NULL);
	expect_owner("/v1/devices/d", "\"source\":\"mqtt\",\"node\":\"a\",\"seq\":");
	s.owner = "b";
	expect_owner("/v1/devices/d", "\"source\":\"mqtt\",\"node\":\"b\",\"seq\":");
	expect_owner("/v1/devices", "\"node\":\"b\"");
	s.owner = "";
	expect_owner("/v1/devices/d", "\"source\":\"mqtt\",\"node\":null,\"seq\":");
	const struct hw_event e = {.at = {1, 1},
	                           .id = "d",
	                           .id_len = 1,
	                           .group = "default",
	                           .group_len = 7,
	                           .node = "b",
	                           .node_len = 1,
	                           .state = HW_STATE_ONLINE,
	                           .seq = 1};
	hw_control_event(s.control, &e);
	expect_owner("/v1/transitions", "\"node\":\"b\""); /* who made it */
}
END_TEST

START_TEST(what_is_ours_is_forgotten_at_once)
{
	server_beat(&s, 0, "d", NULL);
	ask(&s, "DELETE", "/v1/devices/d", NULL, &r);
	ck_assert_int_eq(r.code, 204);
	reply_fini(&r);
	ask(&s, "DELETE", "/v1/devices/d", NULL, &r);
	expect_error(404);
	server_beat(&s, 0, "e", NULL);
	s.owner = "";
	ask(&s, "DELETE", "/v1/devices/e", NULL, &r);
	ck_assert_str_eq(r.body, "{\"error\":\"no node owns this device now: try again\"}\n");
	expect_error(503);
}
END_TEST

/* Sends a DELETE that another node has to carry out; its ticket is s.ticket. */
static int begin_delete(void)
{
	static const char request[] = "DELETE /v1/devices/d HTTP/1.1\r\nHost: x\r\n\r\n";
	unsigned before = s.forgets;
	long long since = clock_ms();
	int fd = client_connect(&s);
	ck_assert(client_send(&s, fd, request, sizeof(request) - 1));
	while (s.forgets == before) {
		server_turn(&s);
		ck_assert(!too_late(since));
	}
	return fd;
}

START_TEST(the_owner_is_asked)
{
	static const struct {
		enum hw_forgotten what;
		int code;
	} cases[] = {{HW_FORGOTTEN, 204}, {HW_FORGOTTEN_UNKNOWN, 404}, {HW_FORGOTTEN_UNOWNED, 503}};
	server_beat(&s, 0, "d", NULL);
	s.owner = "b";
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int fd = begin_delete();
		hw_control_forgotten(s.control, s.ticket + 1, HW_FORGOTTEN); /* nobody's */
		hw_control_forgotten(s.control, s.ticket, cases[i].what);
		client_read(&s, fd, NULL, &r);
		ck_assert_int_eq(r.code, cases[i].code);
		reply_fini(&r);
		hw_control_forgotten(s.control, s.ticket, HW_FORGOTTEN); /* twice */
		close(fd);
	}
}
END_TEST

START_TEST(several_wait_at_once)
{
	uint64_t tickets[3];
	int fds[3];
	server_beat(&s, 0, "d", NULL);
	s.owner = "b";
	for (int i = 0; i < 3; i++) {
		fds[i] = begin_delete();
		tickets[i] = s.ticket;
	}
	ck_assert(tickets[0] != tickets[1] && tickets[1] != tickets[2] && tickets[0] != tickets[2]);
	hw_control_forgotten(s.control, tickets[1], HW_FORGOTTEN);
	hw_control_forgotten(s.control, tickets[2], HW_FORGOTTEN_UNKNOWN);
	hw_control_forgotten(s.control, tickets[0], HW_FORGOTTEN);
	static const int codes[] = {204, 204, 404};
	for (int i = 0; i < 3; i++) {
		client_read(&s, fds[i], NULL, &r);
		ck_assert_int_eq(r.code, codes[i]);
		reply_fini(&r);
		close(fds[i]);
	}
}
END_TEST

START_TEST(an_owner_that_does_not_answer)
{
	server_beat(&s, 0, "d", NULL);
	s.owner = "b";
	long long since = clock_ms();
	int fd = begin_delete();
	client_read(&s, fd, NULL, &r);
	ck_assert_str_eq(r.body, "{\"error\":\"node 'b' owns this device and does not answer\"}\n");
	ck_assert_int_ge(clock_ms() - since, 1900);
	expect_error(503);
	close(fd);
}
END_TEST

START_TEST(a_client_that_does_not_wait)
{
	server_beat(&s, 0, "d", NULL);
	s.owner = "b";
	close(begin_delete());
	for (int i = 0; i < 20; i++)
		server_turn(&s);
	hw_control_forgotten(s.control, s.ticket, HW_FORGOTTEN);
	ck_assert_int_eq(get(&s, "/healthz", &r), 200);
	reply_fini(&r);
}
END_TEST

START_TEST(the_server_stops_while_one_waits)
{
	server_beat(&s, 0, "d", NULL);
	s.owner = "b";
	int fd = begin_delete();
	close(begin_delete());
	server_stop(&s);
	char byte;
	ck_assert_int_eq(recv(fd, &byte, 1, MSG_DONTWAIT), 0);
	server_start_with_nodes(&s);
	close(fd);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("control_nodes");
	TCase *tc = tcase_create("nodes");
	tcase_add_checked_fixture(tc, set_up, rig_tear_down);
	tcase_add_test(tc, nodes_says_all);
	tcase_add_test(tc, nodes_are_in_the_order_of_their_names);
	tcase_add_test(tc, foreign_bytes_are_not_passed_on);
	tcase_add_test(tc, status_has_the_cluster);
	tcase_add_test(tc, readiness);
	tcase_add_test(tc, metrics);
	tcase_add_test(tc, alone);
	tcase_add_test(tc, a_device_names_its_owner);
	tcase_add_test(tc, what_is_ours_is_forgotten_at_once);
	tcase_add_test(tc, the_owner_is_asked);
	tcase_add_test(tc, several_wait_at_once);
	tcase_add_test(tc, an_owner_that_does_not_answer);
	tcase_add_test(tc, a_client_that_does_not_wait);
	tcase_add_test(tc, the_server_stops_while_one_waits);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

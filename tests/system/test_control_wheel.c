/* SPDX-License-Identifier: MIT */
/* What the control API reports about the wheel, the groups and the last hour. */
#include <check.h>
#include <cjson/cJSON.h>

#include "../suite.h"
#include "control_rig.h"

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
	expect_keys(json, "ticks_per_s suspects candidates cursor_tick length levels");
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
	expect_keys(json, "ticks_per_s suspects candidates cursor_tick length levels keys");
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
	ck_assert_str_eq(
		r.body,
		"{\"groups\":[{\"name\":\"default\",\"online\":1,\"offline\":0,\"unseen\":0,\"timeout_ms\":30000,"
		"\"heartbeats_total\":1,\"retired\":false,\"deaf\":false,\"upstream\":null,\"upstream_unknown\":null,"
		"\"unjudged\":0,"
		"\"filters\":[\"nodes/+/heartbeat\"]},{\"name\":\"fast\",\"online\":0,\"offline\":1,\"unseen\":0,"
		"\"timeout_ms\":2000,\"heartbeats_total\":0,\"retired\":false,\"deaf\":false,\"upstream\":"
		"null,\"upstream_unknown\":null,\"unjudged\":0,"
		"\"filters\":[\"fast/+\"]}]}\n");
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
	expect_keys(one, "time_ms online offline heartbeats transitions detected delay_mean_ms delay_max_ms blind "
	                 "blind_from_ms blind_ms");
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

int main(void)
{
	Suite *suite = suite_create("control_wheel");
	TCase *tc = tcase_create("basic");
	tcase_add_checked_fixture(tc, rig_set_up_blind, rig_tear_down);
	tcase_add_test(tc, wheel_is_shown_as_it_is);
	tcase_add_test(tc, the_wheel_of_keys);
	tcase_add_test(tc, groups_are_counted);
	tcase_add_test(tc, samples_of_the_last_hour);
	tcase_add_test(tc, rate_of_heartbeats);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

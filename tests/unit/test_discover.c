/* SPDX-License-Identifier: MIT */
/* What heartwheelctl discover finds in topics. Each case has its messages and the sections that must result, which
 * heartwheeld must accept. */
#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../suite.h"
#include "conf_rig.h"
#include "ctl/discover_find.h"
#include "ctl/discover_write.h"

static struct hw_topics *topics;
static char *written;

/* Messages that come three times, every 20 s. */
static struct {
	char *topic;
	const char *payload;
} beats[2000];
static size_t n_beats;

static void setup(void)
{
	topics = hw_topics_new(1);
	ck_assert_ptr_nonnull(topics);
}

static void teardown(void)
{
	hw_topics_free(topics);
	for (; n_beats > 0; n_beats--)
		free(beats[n_beats - 1].topic);
	free(written);
	written = NULL;
}

static void __attribute__((format(printf, 4, 5)))
say(bool retained, uint32_t at_ms, const char *payload, const char *format, ...)
{
	char topic[2048];
	va_list args;
	va_start(args, format);
	int n = vsnprintf(topic, sizeof(topic), format, args);
	va_end(args);
	ck_assert_int_lt(n, (int)sizeof(topic));
	ck_assert_int_eq(hw_topics_add(topics, topic, (size_t)n, payload, strlen(payload), retained, at_ms), 0);
}

static void __attribute__((format(printf, 2, 3))) beat(const char *payload, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	ck_assert_uint_lt(n_beats, sizeof(beats) / sizeof(beats[0]));
	ck_assert_int_ge(vasprintf(&beats[n_beats].topic, format, args), 0);
	va_end(args);
	beats[n_beats++].payload = payload;
}

static void send_beats(void)
{
	for (uint32_t round = 1; round <= 3; round++)
		for (size_t i = 0; i < n_beats; i++)
			say(false, round * 20000, beats[i].payload, "%s", beats[i].topic);
}

#define keep(payload, ...) say(true, 1, payload, __VA_ARGS__)

/* Finds, writes, and lets heartwheeld's parser read the result. Returns the text after the head. */
static const char *found(void)
{
	struct hw_found f;
	struct hw_listen how = {.conf = {.host = "broker", .port = 1883, .username = ""}, .listened_ms = 60000};
	size_t len = 0;
	send_beats();
	ck_assert_int_eq(hw_discover_find(topics, 7, &f), 0);
	free(written);
	FILE *out = open_memstream(&written, &len);
	ck_assert_ptr_nonnull(out);
	hw_discover_write(out, &f, topics, &how, 0);
	fclose(out);
	if (f.n > 0)
		hw_conf_free(rig_load(&hw_settings_table, written));
	hw_found_fini(&f);
	const char *body = strstr(written, "\n\n");
	if (getenv("SHOW"))
		puts(written);
	return body ? body + 2 : "";
}

START_TEST(test_one_convention)
{
	for (int i = 0; i < 12; i++) {
		beat("{\"w\":3,\"bat\":80}", "plant/meters/m-%04d/power", i);
		keep(i == 3 ? "offline" : "online", "plant/meters/m-%04d/lwt", i);
	}
	ck_assert_str_eq(
		found(),
		"# 12 devices like plant/meters/m-0000/power, every 20s (p90 20s); 12 goodbyes on ../lwt offline\n"
		"[group plant-meters]\n"
		"heartbeat = plant/meters/{id}/power\n"
		"goodbye = plant/meters/{id}/lwt offline\n"
		"field = battery bat\n"
		"timeout = 1m\n");
}
END_TEST

START_TEST(test_sites_with_the_same_ids)
{
	static const char *const sites[] = {"north", "south", "west"};
	for (int s = 0; s < 3; s++)
		for (int i = 0; i < 30; i++)
			beat("{\"on\":true}", "sites/%s/lamps/%d/state", sites[s], i);
	ck_assert_str_eq(found(), "# 90 devices like sites/north/lamps/0/state, every 20s (p90 20s)\n"
	                          "[group sites-lamps]\n"
	                          "heartbeat = sites/{site}/lamps/{id}/state\n"
	                          "id = {site}/{id}\n"
	                          "timeout = 1m\n");
}
END_TEST

START_TEST(test_gateways_with_unique_ids)
{
	for (int i = 0; i < 60; i++)
		beat("x", "radio/gw-%d/node-%d/up", i % 5, i);
	ck_assert_str_eq(found(), "# 60 devices like radio/gw-0/node-0/up, every 20s (p90 20s)\n"
	                          "[group radio]\n"
	                          "heartbeat = radio/{gw}/{id}/up\n"
	                          "label = gw {gw}\n"
	                          "timeout = 1m\n");
}
END_TEST

/* Each id occurs at one site only. The goodbyes have the site, too. */
START_TEST(test_sites_are_labels)
{
	for (int i = 0; i < 60; i++) {
		beat("{\"on\":true}", "acme/sites/site-%d/lamp-%d/state", i % 4, i);
		keep(i == 3 ? "offline" : "online", "acme/sites/site-%d/lamp-%d/lwt", i % 4, i);
		beat("{\"v\":1}", "grid/area%d/line%d/m-%03d/up", i % 2, i % 6, i);
		beat("{}", "grid/area%d/line%d/m-%03d/set", i % 2, i % 6, i);
	}
	found();
	ck_assert_msg(strstr(written, "[group acme-sites]\n"
	                              "heartbeat = acme/sites/{site}/{id}/state\n"
	                              "goodbye = acme/sites/{site}/{id}/lwt offline\n"
	                              "label = site {site}\n"
	                              "timeout = 1m\n") != NULL,
	              "%s", written);
	ck_assert_msg(strstr(written, "heartbeat = grid/{area}/{line}/{id}/up\n"
	                              "label = area {area}\n"
	                              "label = line {line}\n"
	                              "timeout = 1m\n") != NULL,
	              "%s", written);
}
END_TEST

/* All filters of a group must have the captures of its labels. Here the goodbyes, or a part of the heartbeats, have no
 * site. */
START_TEST(test_no_labels_without_the_site)
{
	for (int i = 0; i < 60; i++) {
		beat("{\"on\":true}", "acme/site-%d/lamp-%04d/state", i % 4, i);
		keep(i == 3 ? "offline" : "online", "wills/lamp-%04d/lwt", i);
		beat("{\"v\":1}", "grid/area%d/meter-%04d/up", i % 4, i);
		beat("{\"v\":1}", "alarms/meter-%04d", i);
	}
	found();
	ck_assert_msg(strstr(written, "heartbeat = acme/+/{id}/state\n"
	                              "goodbye = wills/{id}/lwt offline\n"
	                              "timeout") != NULL,
	              "%s", written);
	ck_assert_msg(strstr(written, "heartbeat = grid/+/{id}/up\n") != NULL, "%s", written);
	ck_assert_ptr_null(strstr(written, "label"));
}
END_TEST

/* One device at each gateway, and parts that are named after their device. */
START_TEST(test_levels_that_differ_together)
{
	for (int i = 0; i < 6; i++) {
		beat("x", "radio/gw-%d/node-%d/up", i, 100 + i);
		beat("3", "lab/box%d/box%d_door/state", i, i);
	}
	found();
	ck_assert_msg(strstr(written, "heartbeat = radio/+/{id}/up\n") != NULL, "%s", written);
	ck_assert_msg(strstr(written, "heartbeat = lab/{id}/+/state\n") != NULL, "%s", written);
}
END_TEST

/* Plants, lines and machines; the master's orders are no heartbeats. */
START_TEST(test_three_levels)
{
	for (int i = 0; i < 64; i++) {
		beat("{\"p\":2}", "acme/plant%d/line%d/press-%02d/telemetry", i % 2 + 1, i / 2 % 4, i / 8);
		keep("{\"state\":\"online\"}", "acme/plant%d/line%d/press-%02d/state", i % 2 + 1, i / 2 % 4, i / 8);
	}
	for (int i = 0; i < 12; i++) {
		beat("{\"n\":1}", "agv/AGV-%02d/v2/state", i);
		keep("{\"connectionState\":\"ONLINE\"}", "agv/AGV-%02d/v2/connection", i);
	}
	beat("{}", "agv/AGV-03/v2/order");
	found();
	ck_assert_msg(strstr(written, "64 goodbyes on ../state state=offline\n") &&
	                      strstr(written, "heartbeat = acme/{plant}/{line}/{id}/telemetry\n") &&
	                      strstr(written, "id = {plant}/{line}/{id}\n"),
	              "%s", written);
	ck_assert_ptr_nonnull(strstr(written, "goodbye = agv/{id}/v2/connection connectionState=OFFLINE\n"));
	ck_assert_ptr_null(strstr(written, "heartbeat = agv/{id}/v2/order"));
}
END_TEST

START_TEST(test_parts_of_a_device)
{
	for (int i = 0; i < 20; i++)
		for (int k = 0; k < 6; k++)
			beat("21.5", "hall/unit-%02d/sensor/%d/value", i, k);
	ck_assert_ptr_nonnull(strstr(found(), "# 20 devices like hall/unit-00/sensor/0/value,"));
	ck_assert_ptr_nonnull(strstr(written, "heartbeat = hall/{id}/sensor/+/value\n"));
}
END_TEST

START_TEST(test_rooms_and_what_they_measure)
{
	static const char *const rooms[] = {"kitchen", "bath", "hall"};
	for (int i = 0; i < 3; i++) {
		beat("21.5", "home/%s/temperature", rooms[i]);
		beat("40", "home/%s/humidity", rooms[i]);
		beat("700", "home/%s/co2", rooms[i]);
		beat("3", "home/%s/lux", rooms[i]);
	}
	ck_assert_ptr_nonnull(strstr(found(), "# 3 devices like home/kitchen/temperature,"));
	ck_assert_ptr_nonnull(strstr(written, "heartbeat = home/{id}/temperature\n"));
	ck_assert_ptr_nonnull(strstr(written, "heartbeat = home/{id}/lux\n"));
}
END_TEST

/* One device that measures, an application, a command: no group. */
START_TEST(test_nothing_is_invented)
{
	beat("21.5", "pump/temperature");
	beat("3", "pump/pressure");
	beat("{\"n\":1}", "app/users");
	beat("{\"open\":[1]}", "app/orders");
	beat("44", "ebusd/bai/FlowTemp");
	beat("1", "ebusd/bai/Status01");
	beat("1", "ebusd/700/Hc1");
	beat("1", "ebusd/700/Date");
	beat("1", "single"); /* one level */
	keep("online", "alone");
	beat("{\"by\":\"a\",\"seq\":1}", "app/x1");
	beat("{\"by\":\"a\",\"seq\":1}", "app/x2");
	for (int i = 0; i < 100; i++) {
		keep("{\"on\":1}", "old/devices/d-%d/state", i);
		beat("ON", "cmnd/plug-%d/POWER", i);
		beat("{}", "homeassistant/sensor/s%d/config", i);
		beat("{}", "$SYS/broker/clients/c%d", i);
		beat("{}", "heartwheel/node%d/status", i);
	}
	ck_assert_ptr_nonnull(strstr(found(), "# No group was found"));
	ck_assert_ptr_null(strstr(written, "[group"));
	ck_assert_ptr_nonnull(strstr(written, "#   100 topics like cmnd/...; 100 to devices, or answers\n"));
	ck_assert_ptr_nonnull(strstr(written, "#   100 topics like old/...; 100 retained only\n"));
}
END_TEST

/* Topics that have nothing in common but their two levels. */
START_TEST(test_two_levels)
{
	beat("3", "pump1/t2");
	beat("5", "valve3/p4");
	beat("on", "gw5/x6");
	ck_assert_ptr_nonnull(strstr(found(), "# No group was found"));
	for (int i = 0; i < 36; i++)
		beat("on", "room%d/lamp%d", i / 4, i % 4);
	beat("on", "room3/heater"); /* of a known device */
	ck_assert_ptr_nonnull(strstr(found(), "# 9 devices like room0/lamp0,"));
	ck_assert_ptr_nonnull(strstr(written, "ignore = pump1/#\nignore = valve3/#\nignore = gw5/#\n"));
	ck_assert_ptr_null(strstr(written, "ignore = room"));
}
END_TEST

START_TEST(test_presets)
{
	for (int i = 0; i < 3; i++) {
		beat("{\"UptimeSec\":1}", "tele/plug_%d/STATE", i);
		keep("Online", "tele/plug_%d/LWT", i);
		beat("1", "node%d/sensor/uptime/state", i);
		keep("online", "node%d/status", i);
		beat("{\"src\":\"x\"}", "shellyplus1-%d/events/rpc", i);
		beat("{\"state\":\"ON\"}", "zigbee2mqtt/room/lamp%d", i);
		beat("off", "shellies/shelly1-%d/relay/0", i);
	}
	const char *text = found();
	static const char *const names[] = {"tasmota", "shelly", "zigbee2mqtt", "shelly2", "esphome"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char section[64];
		snprintf(section, sizeof(section), "[group %s]\npreset = %s\n", names[i], names[i]);
		ck_assert_msg(strstr(text, section) != NULL, "%s is missing in:\n%s", names[i], text);
		text = strstr(text, section);
	}
	ck_assert_ptr_null(strstr(written, "timeout"));
	ck_assert_ptr_null(strstr(written, "ignore"));
}
END_TEST

/* The filters of shelly2 and esphome begin with {id}, so others' topics fit them. */
START_TEST(test_a_preset_takes_no_topics_of_others)
{
	for (int i = 0; i < 40; i++)
		beat("1", "yard/sensor/s-%02d/state", i);
	ck_assert_ptr_null(strstr(found(), "preset"));
	for (int i = 0; i < 3; i++) {
		beat("1", "node%d/sensor/uptime/state", i);
		keep("online", "node%d/status", i);
	}
	beat("1", "scripts/sensor/x/state");
	const char *text = found();
	const char *yard = strstr(text, "heartbeat = yard/sensor/{id}/state\n"),
		   *esphome = strstr(text, "preset = esphome\n");
	ck_assert_msg(yard && esphome && yard < esphome, "%s", text);
	ck_assert_ptr_nonnull(strstr(esphome, "ignore = scripts/#\n"));
	ck_assert_ptr_null(strstr(esphome, "ignore = yard/#\n"));
}
END_TEST

/* ESPHome's group is the last of the file, because its filters begin with {id}. */
static void beat_esphome(void)
{
	for (int i = 0; i < 5; i++) {
		beat("1", "node%d/sensor/uptime/state", i);
		keep("online", "node%d/status", i);
	}
}

START_TEST(test_a_name_is_given_once)
{
	for (int i = 0; i < 4; i++)
		beat("x", "esphome/dev-%d/up", i);
	beat_esphome();
	ck_assert_ptr_nonnull(strstr(found(), "[group esphome-2]\nheartbeat = esphome/{id}/up\n"));
	ck_assert_ptr_nonnull(strstr(written, "[group esphome]\npreset = esphome\n"));
}
END_TEST

START_TEST(test_a_long_topic_is_not_ignored)
{
	char name[300] = "";
	memset(name, 'y', sizeof(name) - 1);
	beat("1", "other/sensor/%s/state", name);
	beat("1", "other/sensor/short/state");
	for (int i = 0; i < 4; i++)
		beat("x", "other/dev-%d/up", i);
	beat_esphome();
	ck_assert_ptr_nonnull(strstr(found(), "ignore = other/sensor/short/state\n"));
	ck_assert_ptr_null(strstr(written, "yyy"));
}
END_TEST

START_TEST(test_goodbyes_elsewhere_and_in_json)
{
	for (int i = 0; i < 5; i++) {
		beat("{\"v\":1}", "data/dev-%04d/reading", i);
		keep("alive", "wills/dev-%04d", i);
		beat("{\"status\":\"online\"}", "lab/box-%d/state", i);
	}
	found();
	ck_assert_ptr_nonnull(strstr(written, "5 goodbyes on wills/{id} dead\n"));
	ck_assert_ptr_nonnull(strstr(written, "goodbye = wills/{id} dead\n"));
	ck_assert_ptr_nonnull(strstr(written, "goodbye = lab/{id}/state status=offline\n"));
}
END_TEST

START_TEST(test_too_short)
{
	for (int i = 0; i < 10; i++)
		say(false, 1000, "x", "a/dev-%d/up", i);
	ck_assert_str_eq(found(), "# 10 devices like a/dev-0/up\n"
	                          "# None of them was heard twice: --for was too short to see their interval.\n"
	                          "[group a]\n"
	                          "heartbeat = a/{id}/up\n"
	                          "timeout = 1h\n");
}
END_TEST

/* Bursts of many messages do not make the interval short. */
START_TEST(test_bursts)
{
	for (int i = 0; i < 4; i++)
		for (uint32_t round = 0; round < 3; round++)
			for (uint32_t k = 0; k < 50; k++)
				say(false, round * 90000 + k, "1", "a/dev-%d/v%u", i, k);
	found();
	ck_assert_msg(strstr(written, "every 1m30s (p90 1m30s)") && strstr(written, "timeout = 5m\n"), "%s", written);
	ck_assert_ptr_nonnull(strstr(written, "# 4 devices like a/dev-0/v0,"));
}
END_TEST

/* A live message with the retain flag: the first may be a stored one, the second is not. */
START_TEST(test_flagged)
{
	for (int i = 0; i < 4; i++)
		for (uint32_t round = 1; round < 4; round++)
			say(true, round * 10000, "{\"v\":1}", "a/dev-%d/up", i);
	found();
	ck_assert_msg(strstr(written, "retained = count\n") != NULL, "%s", written);
	ck_assert_ptr_nonnull(strstr(written, "# 4 devices like a/dev-0/up"));
}
END_TEST

START_TEST(test_same_ids_in_two_groups)
{
	for (int i = 10; i < 16; i++) {
		beat("{\"w\":1}", "plant/meters/%d/power", i);
		beat("{\"open\":1}", "yard/x/gates/%d", i);
	}
	found();
	ck_assert_msg(strstr(written, "id_prefix = ") && strstr(written, "status = nodes/"), "%s", written);
}
END_TEST

/* The devices of one kind also send on topics with another root. */
START_TEST(test_one_device_with_two_roots)
{
	for (int i = 0; i < 6; i++) {
		beat("{\"w\":1}", "data/pump-%02d/power", i);
		beat("x", "alarms/pump-%02d", i);
	}
	found();
	ck_assert_msg(strstr(written, "# 6 devices") != NULL, "%s", written);
	ck_assert_ptr_nonnull(strstr(written, "heartbeat = alarms/{id}\n"));
	ck_assert_ptr_null(strstr(written, "id_prefix"));
}
END_TEST

START_TEST(test_hostile_topics)
{
	static const char *const names[] = {"\x1b[31mred",
	                                    "a]b",
	                                    "x\ny",
	                                    "c ;d",
	                                    "e#f",
	                                    "\xff\xfe",
	                                    "{id}",
	                                    "[group x]",
	                                    "q\tz",
	                                    " lead",
	                                    "\xe2\x80\xae"
	                                    "rev",
	                                    "+",
	                                    "a{b}",
	                                    ""};
	for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
		for (int i = 0; i < 5; i++) {
			beat("{\"v\":1}", "%s/dev-%d/up", names[k], i);
			beat("{\"v\":1}", "fine/%s-%d/up", names[k], i);
			beat("online", "%s/dev-%d/lwt", names[k], i);
			beat("{\"a b\":{\"rssi\":-3},\"x]\\n\":{\"ip\":\"1.2.3.4\"}}", "fine2/d%d/%s", i, names[k]);
		}
	found();
	for (const char *c = written; *c; c++)
		ck_assert_msg((unsigned char)*c >= ' ' || *c == '\n', "byte %d in:\n%s", *c, written);
	ck_assert_ptr_null(strstr(written, "[group x]\n"));
	ck_assert_msg(strstr(written, "heartbeat = fine/{id}/up\n") != NULL, "%s", written);
}
END_TEST

START_TEST(test_limits)
{
	char deep[200] = "", huge[3000];
	for (int i = 0; i < 60; i++)
		strcat(deep, "a/");
	memset(huge, 'x', sizeof(huge));
	say(false, 1, "x", "%s", deep);
	ck_assert_int_eq(hw_topics_add(topics, huge, sizeof(huge), "x", 1, false, 1), 0);
	for (int i = 0; i < HW_TOPICS_MAX + 7; i++)
		say(false, 1, "x", "t/%d", i);
	struct hw_topics_counts c = hw_topics_counts(topics);
	ck_assert_uint_eq(c.deep, 1);
	ck_assert_uint_eq(c.long_, 1);
	ck_assert_uint_eq(c.many, 7);
	ck_assert_uint_eq(hw_topics_n(topics), HW_TOPICS_MAX);
	found();
	ck_assert_ptr_nonnull(strstr(written, "# 7 messages of further topics are left out"));
	ck_assert_ptr_nonnull(
		strstr(written, "# 2 messages are left out: their topics have over 32 levels or 1024 bytes.\n"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("discover");
	TCase *all = tcase_create("all");
	tcase_add_checked_fixture(all, setup, teardown);
	tcase_add_test(all, test_one_convention);
	tcase_add_test(all, test_sites_with_the_same_ids);
	tcase_add_test(all, test_gateways_with_unique_ids);
	tcase_add_test(all, test_sites_are_labels);
	tcase_add_test(all, test_no_labels_without_the_site);
	tcase_add_test(all, test_levels_that_differ_together);
	tcase_add_test(all, test_three_levels);
	tcase_add_test(all, test_parts_of_a_device);
	tcase_add_test(all, test_rooms_and_what_they_measure);
	tcase_add_test(all, test_nothing_is_invented);
	tcase_add_test(all, test_two_levels);
	tcase_add_test(all, test_presets);
	tcase_add_test(all, test_a_preset_takes_no_topics_of_others);
	tcase_add_test(all, test_a_name_is_given_once);
	tcase_add_test(all, test_a_long_topic_is_not_ignored);
	tcase_add_test(all, test_goodbyes_elsewhere_and_in_json);
	tcase_add_test(all, test_too_short);
	tcase_add_test(all, test_bursts);
	tcase_add_test(all, test_flagged);
	tcase_add_test(all, test_same_ids_in_two_groups);
	tcase_add_test(all, test_one_device_with_two_roots);
	tcase_add_test(all, test_hostile_topics);
	tcase_add_test(all, test_limits);
	suite_add_tcase(suite, all);
	return suite_run(suite);
}

/* SPDX-License-Identifier: MIT */
/* What the monitor makes of devices that a store or retained statuses hold. */
#include "../suite.h"
#include "world.h"

static struct world *w;

static void setup(void)
{
	struct hw_monitor_conf conf = world_conf();
	w = world_of_one(&conf);
	world_connect(w);
}

static void teardown(void)
{
	world_free(w);
}

/* What was heard since the start goes over what is stored; what was not heard of is filled in. */
START_TEST(test_reports_heard_while_loading)
{
	char ip[] = "192.0.2.1", version[] = "1.2";
	struct hw_stored s = {.id = "woke", .id_len = 4, .state = HW_STATE_ONLINE, .seq = 5, .since_ms = 5};
	s.report = (struct hw_report){.has = HW_HAS_BATTERY | HW_HAS_IP | HW_HAS_VERSION, .battery = 7};
	s.report.ip = strdup(ip);
	s.report.version = strdup(version);
	struct hw_monitor_conf conf = world_conf();
	conf.loading = true;
	struct world *v = world_of_one(&conf);
	world_connect(v);
	world_beat(v, "woke", "{\"battery\":5,\"ip\":\"192.0.2.7\"}");
	ck_assert_int_eq(hw_monitor_load(v->m, v->now, &s), 0);
	hw_report_fini(&s.report);
	struct hw_report is = hw_device_report(world_device(v, "woke"));
	ck_assert_uint_eq(is.has, HW_HAS_BATTERY | HW_HAS_IP | HW_HAS_VERSION);
	ck_assert_double_eq(is.battery, 5);
	ck_assert_str_eq(is.ip, "192.0.2.7");
	ck_assert_str_eq(is.version, version);
	world_free(v);
}
END_TEST

START_TEST(test_loading)
{
	struct hw_monitor_conf conf = world_conf();
	conf.loading = true;
	struct world *v = world_of_one(&conf);
	world_connect(v);
	world_beat(v, "known-online", "");
	world_beat(v, "known-offline", "");
	world_beat(v, "new", "");
	world_beat(v, "new-goodbye", "{\"online\":false}");
	ck_assert_uint_eq(v->n_log, 1); /* the end of the start's blindness */
	struct hw_stored s = {.id = "known-online",
	                      .id_len = 12,
	                      .state = HW_STATE_ONLINE,
	                      .seq = 5,
	                      .since_ms = 5,
	                      .last_seen_ms = 1699999990000};
	ck_assert_int_eq(hw_monitor_load(v->m, v->now, &s), 0);
	s.id = "known-offline";
	s.id_len = 13;
	s.state = HW_STATE_OFFLINE;
	ck_assert_int_eq(hw_monitor_load(v->m, v->now, &s), 0);
	s.id = "silent";
	s.id_len = 6;
	s.state = HW_STATE_ONLINE;
	ck_assert_int_eq(hw_monitor_load(v->m, v->now, &s), 0);
	s.id_len = 0;
	ck_assert_int_eq(hw_monitor_load(v->m, v->now, &s), -EINVAL);
	world_drain(v);
	ck_assert_uint_eq(world_count(v, HW_OUT_TRANSITION, HW_STATE_ONLINE), 1);
	ck_assert(world_is(v, "known-online", HW_STATE_ONLINE));
	ck_assert_uint_eq(world_device(v, "known-online")->seq, 5);
	ck_assert(world_is(v, "known-offline", HW_STATE_ONLINE));
	ck_assert(world_is(v, "new", HW_STATE_PROVISIONAL));
	hw_monitor_loaded(v->m);
	world_drain(v);
	ck_assert(world_is(v, "new", HW_STATE_ONLINE));
	ck_assert(world_is(v, "new-goodbye", HW_STATE_OFFLINE));
	/* Silent for 10 s when this run began, so 20 s are left: but the start was lossy, so the timeout starts again.
	 */
	int64_t at;
	world_pass(v, 31 * S);
	ck_assert(world_is(v, "silent", HW_STATE_OFFLINE));
	ck_assert_int_eq(world_last(v, &at)->last_seen_ms > 0, 1);
	world_free(v);
}
END_TEST

/* A record without a usable state or seq is a device that is online until it is judged. What is known of a device
 * stays.
 */
START_TEST(test_broken_records)
{
	struct hw_monitor_conf conf = world_conf();
	conf.loading = true;
	struct world *v = world_of_one(&conf);
	world_connect(v);
	const struct hw_stored all[] = {
		{.id = "s", .id_len = 1, .state = HW_STATE_PROVISIONAL, .seq = 5},
		{.id = "f", .id_len = 1, .state = HW_STATE_FORGOTTEN, .seq = 5},
		{.id = "n", .id_len = 1, .state = HW_STATE_ONLINE, .seq = 0},
		{.id = "b", .id_len = 1, .state = HW_STATE_PROVISIONAL, .seq = 0, .own_timeout_ms = 1, .group = ""},
	};
	for (size_t k = 0; k < sizeof(all) / sizeof(*all); k++) {
		struct hw_stored s = all[k];
		ck_assert_int_eq(hw_monitor_load(v->m, v->now, &s), 0);
		ck_assert(world_is(v, s.id, HW_STATE_ONLINE));
		ck_assert_uint_gt(world_device(v, s.id)->seq, 0);
		ck_assert_int_eq(hw_monitor_timeout_ms(v->m, world_device(v, s.id)), 30000);
	}
	ck_assert_uint_eq(hw_monitor_stats(v->m)->refused[HW_REFUSED_STORED], 1 + 1 + 1 + 4);
	hw_monitor_loaded(v->m);
	world_drain(v);
	ck_assert_uint_eq(world_count(v, HW_OUT_REFRESH, HW_STATE_ONLINE), 4);
	world_pass(v, 29 * S);
	ck_assert_uint_eq(world_count(v, HW_OUT_TRANSITION, HW_STATE_OFFLINE), 0);
	world_pass(v, 2 * S);
	ck_assert_uint_eq(world_count(v, HW_OUT_TRANSITION, HW_STATE_OFFLINE), 4);
	struct hw_stored again = all[0];
	ck_assert_int_eq(hw_monitor_load(v->m, v->now, &again), 0);
	ck_assert(world_is(v, "s", HW_STATE_OFFLINE));
	world_free(v);
}
END_TEST

/* A timeout in the store has the bounds of one that a payload asks for. */
START_TEST(test_stored_timeouts_out_of_bounds)
{
	const int64_t ms[] = {
		-1, 1, HW_TIMEOUT_MIN_MS - 1, HW_TIMEOUT_MIN_MS, HW_TIMEOUT_MAX_MS, HW_TIMEOUT_MAX_MS + 1};
	const unsigned refused[] = {1, 2, 3, 3, 3, 4};
	for (int k = 0; k < 6; k++) {
		const char id[] = {(char)('a' + k), '\0'};
		struct hw_stored s = {
			.id = id, .id_len = 1, .state = HW_STATE_ONLINE, .seq = 5, .own_timeout_ms = ms[k]};
		ck_assert_int_eq(hw_monitor_load(w->m, w->now, &s), 0);
		ck_assert_uint_eq(hw_monitor_stats(w->m)->refused[HW_REFUSED_STORED], refused[k]);
		ck_assert_int_eq(hw_device_own_timeout_ms(world_device(w, id)), k == 3 || k == 4 ? ms[k] : 0);
	}
}
END_TEST

/* A device that has gone an hour ago was not watched for longer, whatever the store says. */
START_TEST(test_watched_for_longer_than_offline)
{
	const int64_t hour_ms = 3600000, gone_ms[] = {-1, hour_ms / 2, 2 * hour_ms, 26 * hour_ms};
	const int64_t is_ms[] = {0, hour_ms / 2, hour_ms, 0};
	for (int k = 0; k < 4; k++) {
		const char id[] = {(char)('a' + k), '\0'};
		struct hw_stored s = {
			.id = id, .id_len = 1, .state = HW_STATE_OFFLINE, .seq = 5, .gone_ms = gone_ms[k]};
		s.since_ms = w->now.wall_ms - hour_ms;
		ck_assert_int_eq(hw_monitor_load(w->m, w->now, &s), 0);
		int64_t is = hw_monitor_gone_ms(w->m, w->now, world_device(w, id));
		ck_assert_msg(is >= is_ms[k] - 100 && is <= is_ms[k], "%s: %lld", id, (long long)is);
	}
	ck_assert_uint_eq(hw_monitor_stats(w->m)->refused[HW_REFUSED_STORED], 2);
}
END_TEST

START_TEST(test_forgetting)
{
	world_beat(w, "a", "");
	world_beat(w, "b", "");
	world_beat(w, "b", "");
	ck_assert(hw_monitor_forget(w->m, w->now, "a", 1));
	world_drain(w);
	const struct hw_transition *t = world_last(w, NULL);
	ck_assert_int_eq(t->state, HW_STATE_FORGOTTEN);
	ck_assert_int_eq(t->reason, HW_REASON_OPERATOR);
	world_say(w, "nodes/a/status", "", false); /* our own clearing comes back */
	ck_assert(world_is(w, "a", HW_STATE_FORGOTTEN));
	ck_assert(!hw_monitor_forget(w->m, w->now, "a", 1));
	hw_monitor_reap(w->m, t->device);
	ck_assert_ptr_null(world_device(w, "a"));
	ck_assert(!hw_monitor_forget(w->m, w->now, "a", 1));
	hw_monitor_reap(
		w->m, hw_registry_ref(hw_monitor_registry(w->m), hw_registry_find(hw_monitor_registry(w->m), "b", 1)));
	ck_assert(world_is(w, "b", HW_STATE_ONLINE));
}
END_TEST

/* The record of a forgotten device is still there when it is heard again: nothing is left of what it once said. */
START_TEST(test_who_is_heard_again_after_being_forgotten_is_new)
{
	int64_t at;
	world_beat(w, "a", "{\"timeout\":100,\"battery\":87,\"ip\":\"10.0.0.1\"}");
	ck_assert(hw_monitor_forget(w->m, w->now, "a", 1));
	world_drain(w);
	world_beat(w, "a", "{\"rssi\":-60}");
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert_uint_eq(hw_device_report(world_device(w, "a")).has, HW_HAS_RSSI);
	int64_t heard_ns = w->now.mono.ns;
	world_pass(w, 99 * S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	world_last(w, &at);
	ck_assert_int_le(at - heard_ns, 30 * S + 50 * MS);
}
END_TEST

START_TEST(test_forget_after)
{
	struct hw_monitor_conf conf = world_conf();
	conf.forget_after_ms = 600000;
	conf.forget_once_after_ms = 60000;
	struct hw_group_spec g = world_group("default", 30000);
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &g, 1), 0);
	world_beat(w, "once", "");
	world_beat(w, "twice", "");
	world_pass(w, S);
	world_beat(w, "twice", "");
	world_pass(w, 95 * S);
	ck_assert(world_is(w, "once", HW_STATE_FORGOTTEN));
	ck_assert(world_is(w, "twice", HW_STATE_OFFLINE));
	ck_assert_int_eq(world_last(w, NULL)->reason, HW_REASON_FORGET_AFTER);
	conf.forget_after_ms = 120000;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &g, 1), 0);
	world_pass(w, 50 * S);
	ck_assert(world_is(w, "twice", HW_STATE_OFFLINE));
	world_pass(w, 10 * S);
	ck_assert(world_is(w, "twice", HW_STATE_FORGOTTEN));
}
END_TEST

START_TEST(test_without_a_store_own_statuses_are_adopted)
{
	struct hw_monitor_conf conf = world_conf();
	conf.adopt_by = conf.node = "me";
	struct world *v = world_of_one(&conf);
	world_connect(v);
	world_say(v, "nodes/a/status",
	          "{\"time\":1699990000,\"online\":true,\"reason\":\"heartbeat\",\"last_seen\":1699990000,\"by\":"
	          "\"me\",\"seq\":7}",
	          true);
	world_say(v, "nodes/b/status",
	          "{\"time\":1699990000,\"online\":false,\"reason\":\"timeout\",\"last_seen\":1699990000,\"by\":\"me\","
	          "\"seq\":8}",
	          true);
	world_say(v, "nodes/c/status", "{\"time\":1699990000,\"online\":false,\"by\":\"other\",\"seq\":8}", true);
	ck_assert(world_is(v, "a", HW_STATE_ONLINE));
	ck_assert(world_is(v, "b", HW_STATE_OFFLINE));
	ck_assert_ptr_null(world_device(v, "c"));
	world_say(v, "nodes/d/heartbeat", "{\"time\":1699990000}", true); /* history, whatever is adopted */
	ck_assert_ptr_null(world_device(v, "d"));
	ck_assert_uint_eq(world_count(v, HW_OUT_TRANSITION, HW_STATE_ONLINE) +
	                          world_count(v, HW_OUT_TRANSITION, HW_STATE_OFFLINE),
	                  0);
	world_pass(v, 31 * S);
	ck_assert(world_is(v, "a", HW_STATE_OFFLINE));
	world_free(v);
}
END_TEST

START_TEST(test_own_statuses_are_adopted_where_no_heartbeat_comes)
{
	static const char *const hb[] = {"hb/{id}"};
	struct hw_monitor_conf conf = world_conf();
	conf.adopt_by = conf.node = "me";
	struct hw_group_spec g = world_group("default", 30000);
	g.heartbeat = hb;
	g.n_heartbeat = 1;
	g.id_prefix = "p-";
	struct world *v = world_new(&conf, &g, 1);
	world_connect(v);
	world_say(v, "nodes/a/status", "{\"time\":1699990000,\"online\":true,\"by\":\"me\",\"seq\":7}", true);
	world_say(v, "nodes/b/status", "{\"time\":1699990000,\"online\":true,\"by\":\"me\",\"seq\":7}", false);
	world_say(v, "nodes/c/status", "{\"online\":true}", false);
	ck_assert(world_is(v, "p-a", HW_STATE_ONLINE));
	ck_assert_uint_eq(hw_registry_count(hw_monitor_registry(v->m)), 1);
	ck_assert_uint_eq(hw_monitor_stats(v->m)->own_messages, 2);
	ck_assert_uint_eq(hw_monitor_stats(v->m)->refused[HW_REFUSED_TOPIC], 1);
	world_free(v);
}
END_TEST

/* Returns how many devices have left a group of this number. */
static size_t left(const struct world *v, unsigned group)
{
	size_t n = 0;
	for (size_t k = 0; k < v->n_log; k++)
		n += v->log[k].kind == HW_OUT_MOVED && v->log[k].left == group;
	return n;
}

/* Two groups share a status topic. A device whose status names no group of the file has the longer of their timeouts.
 * When a heartbeat has moved the device, its status is published again. */
START_TEST(test_own_statuses_name_the_group)
{
	static const char *const fast[] = {"fast/{id}"}, *const slow[] = {"slow/{id}"};
	static const struct {
		const char *topic, *group, *is;
	} all[] = {{"nodes/a/status", "slow", "slow"},
	           {"nodes/b/status", "none", "slow"},
	           {"nodes/c/status", "other", "other"},
	           {"other/d", "slow", "slow"},
	           {"other/e", "none", "other"}};
	struct hw_monitor_conf conf = world_conf();
	conf.adopt_by = conf.node = "me";
	struct hw_group_spec g[] = {world_group("fast", 30000), world_group("slow", 60000),
	                            world_group("other", 60000)};
	for (int k = 0; k < 3; k++)
		g[k].n_heartbeat = 1;
	g[0].heartbeat = fast;
	g[1].heartbeat = slow;
	g[2].timeout_ms = 40000;
	g[2].status = "other/{id}";
	struct world *v = world_new(&conf, g, 3);
	world_connect(v);
	for (size_t k = 0; k < sizeof(all) / sizeof(*all); k++) {
		char text[100], id[] = {(char)('a' + k), '\0'};
		snprintf(text, sizeof(text), "{\"online\":true,\"by\":\"me\",\"seq\":7,\"group\":\"%s\"}",
		         all[k].group);
		world_say(v, all[k].topic, text, true);
		ck_assert_str_eq(hw_monitor_group_of(v->m, world_device(v, id))->name, all[k].is);
	}
	world_say(v, "slow/a", "", false);
	ck_assert(left(v, 0) == 1 && left(v, 2) == 1); /* the statuses of c and d are on the topics of other groups */
	ck_assert_uint_eq(world_count(v, HW_OUT_MOVED, 0), 2);
	world_pass(v, 50 * S);
	ck_assert(world_is(v, "b", HW_STATE_ONLINE) && world_is(v, "e", HW_STATE_OFFLINE));
	world_say(v, "fast/b", "", false);
	ck_assert_str_eq(hw_monitor_group_of(v->m, world_device(v, "b"))->name, "fast");
	ck_assert_uint_eq(left(v, 1), 1);
	ck_assert_uint_eq(world_device(v, "b")->seq, 8); /* the status on another topic has 7 */
	world_free(v);
}
END_TEST

static void say_status(struct world *v, const char *topic, bool online, int seq, const char *group)
{
	char text[100];
	snprintf(text, sizeof(text), "{\"online\":%s,\"by\":\"me\",\"seq\":%d,\"group\":\"%s\"}",
	         online ? "true" : "false", seq, group);
	world_say(v, topic, text, true);
}

/* Without a store: the groups a and b, each with a status topic of its own. */
static struct world *world_of_two_status_topics(void)
{
	static const char *const a[] = {"a/{id}"}, *const b[] = {"b/{id}"};
	struct hw_monitor_conf conf = world_conf();
	conf.adopt_by = conf.node = "me";
	struct hw_group_spec g[] = {world_group("a", 30000), world_group("b", 60000)};
	g[0].heartbeat = a;
	g[1].heartbeat = b;
	g[0].n_heartbeat = g[1].n_heartbeat = 1;
	g[0].status = "sa/{id}";
	g[1].status = "sb/{id}";
	struct world *v = world_new(&conf, g, 2);
	world_connect(v);
	return v;
}

/* Devices have moved from the group a to the group b. Each group has a status topic of its own, and the broker still
 * has the status on the old one. It delivers the old ones first (0) or last (1). */
START_TEST(test_the_newest_of_own_statuses_counts)
{
	struct world *v = world_of_two_status_topics();
	for (int k = 0; k < 2; k++) {
		bool old = k == _i;
		say_status(v, old ? "sa/dead" : "sb/dead", old, old ? 7 : 9, old ? "a" : "b");
		say_status(v, old ? "sa/lives" : "sb/lives", true, old ? 7 : 8, old ? "a" : "b");
		say_status(v, old ? "sa/back" : "sb/back", !old, old ? 7 : 8, old ? "a" : "b");
		say_status(v, old ? "sa/heard" : "sb/heard", old, old ? 7 : 30, old ? "a" : "b");
		if (k == 0)
			world_say(v, "b/heard", "", false);
	}
	ck_assert(world_is(v, "dead", HW_STATE_OFFLINE) && world_is(v, "heard", HW_STATE_ONLINE));
	ck_assert(world_is(v, "back", HW_STATE_ONLINE));
	ck_assert_str_eq(hw_monitor_group_of(v->m, world_device(v, "dead"))->name, "b");
	ck_assert_str_eq(hw_monitor_group_of(v->m, world_device(v, "lives"))->name, "b");
	ck_assert_str_eq(hw_monitor_group_of(v->m, world_device(v, "heard"))->name, "b");
	ck_assert_uint_eq(world_device(v, "dead")->seq, 9);
	ck_assert_uint_ge(world_device(v, "heard")->seq, 31);
	ck_assert_uint_eq(hw_monitor_group_stats(v->m, 0)->count[HW_STATE_ONLINE], 0);
	ck_assert_uint_eq(hw_monitor_group_stats(v->m, 1)->count[HW_STATE_OFFLINE], 1);
	ck_assert(left(v, 0) == 4 && left(v, 1) == 0); /* the old statuses are to be removed */
	world_pass(v, 50 * S);
	ck_assert(world_is(v, "lives", HW_STATE_ONLINE) && world_is(v, "back", HW_STATE_ONLINE));
	world_pass(v, 15 * S);
	ck_assert(world_is(v, "lives", HW_STATE_OFFLINE) && world_is(v, "dead", HW_STATE_OFFLINE));
	world_free(v);
}
END_TEST

/* A client that may write status topics publishes statuses of this node. They arrive when the connection is new (0), or
 * when a reload subscribes again (1). They change nothing, unless the start is not over (2, 3). */
START_TEST(test_own_statuses_after_the_start_change_nothing)
{
	struct hw_monitor_conf conf = world_conf();
	conf.adopt_by = conf.node = "me";
	conf.grace_ms = 5000;
	struct hw_group_spec g = world_group("default", 30000);
	struct world *v = world_new(&conf, &g, 1);
	bool over = _i < 2;
	world_connect(v);
	say_status(v, "nodes/dead/status", false, 7, "default");
	world_pass(v, over ? 20 * S : 2 * S);
	world_beat(v, "lives", "");
	uint64_t seq = world_device(v, "lives")->seq;
	if (_i % 2)
		ck_assert_int_eq(hw_monitor_reconfigure(v->m, v->now, &conf, &g, 1), 0);
	else
		hw_monitor_link(v->m, v->now, 0, false);
	world_connect(v);
	say_status(v, "nodes/dead/status", false, 7, "default");
	for (int k = 0; k < 2; k++) {
		say_status(v, "nodes/dead/status", true, 9, "default");
		say_status(v, "nodes/new/status", true, 9, "default");
		say_status(v, "nodes/lives/status", false, 2000000000, "default");
	}
	ck_assert(world_is(v, "dead", over ? HW_STATE_OFFLINE : HW_STATE_ONLINE) &&
	          world_is(v, "lives", HW_STATE_ONLINE));
	ck_assert((world_device(v, "new") == NULL) == over);
	ck_assert_uint_eq(world_device(v, "lives")->seq, seq);
	ck_assert_uint_eq(hw_monitor_stats(v->m)->refused[HW_REFUSED_STATUS], over ? 4 : 0);
	ck_assert_str_eq(hw_monitor_stats(v->m)->status_id, over ? "new" : "");
	world_free(v);
}
END_TEST

/* The newest status also has the newest fields and timeout, in whichever order the broker delivers the statuses: 0: the
 * older status first. 1: the newer one. */
START_TEST(test_the_newest_of_own_statuses_has_the_fields)
{
	static const char *const state[] = {"true", "false"};
	struct world *v = world_of_two_status_topics();
	for (int k = 0; k < 4; k++) {
		bool old = k / 2 == _i;
		char topic[16], text[200];
		snprintf(topic, sizeof(topic), "%s/d%d", old ? "sa" : "sb", k % 2);
		snprintf(text, sizeof(text),
		         "{\"online\":%s,\"by\":\"me\",\"group\":\"%s\",\"seq\":%d,\"last_seen\":%d,%s}", state[k % 2],
		         old ? "a" : "b", old ? 7 : 9, old ? 1699990000 : 1699995000,
		         old ? "\"timeout\":600,\"ip\":\"192.0.2.1\"" : "\"ip\":\"192.0.2.2\"");
		world_say(v, topic, text, true);
	}
	for (int k = 0; k < 2; k++) {
		const struct hw_device *d = world_device(v, k == 0 ? "d0" : "d1");
		ck_assert_str_eq(hw_device_report(d).ip, "192.0.2.2");
		ck_assert_int_eq(hw_monitor_timeout_ms(v->m, d), 60000);
		ck_assert_int_eq(hw_device_last_seen_ms(d, v->now) / 1000, 1699995000);
	}
	world_pass(v, 61 * S);
	ck_assert(world_is(v, "d0", HW_STATE_OFFLINE));
	world_free(v);
}
END_TEST

/* A gateway stops after a restart. Its devices go offline with it, except one whose status alone names the gateway: the
 * device may have moved to another gateway since that was published. */
START_TEST(test_parents_of_a_status_take_nobody)
{
	static const char *const gw[] = {"gw/{id}"}, *const hb[] = {"plant/{gw}/{id}"}, *const parents[] = {"{gw}"};
	struct hw_monitor_conf conf = world_conf();
	conf.adopt_by = conf.node = "me";
	struct hw_group_spec g[] = {world_group("gateways", 30000), world_group("valves", 60000)};
	g[0].heartbeat = gw;
	g[1].heartbeat = hb;
	g[0].n_heartbeat = g[1].n_heartbeat = 1;
	g[1].parents = parents;
	g[1].n_parents = 1;
	g[1].parent_death = HW_PARENT_TAKE;
	struct world *v = world_new(&conf, g, 2);
	world_connect(v);
	say_status(v, "nodes/g1/status", true, 7, "gateways");
	world_say(v, "nodes/silent/status",
	          "{\"online\":true,\"by\":\"me\",\"seq\":7,\"group\":\"valves\",\"parents\":\"g1\"}", true);
	world_say(v, "nodes/heard/status",
	          "{\"online\":true,\"by\":\"me\",\"seq\":7,\"group\":\"valves\",\"parents\":\"g1\"}", true);
	ck_assert_str_eq(world_parents(v, "silent"), "g1");
	world_pass(v, 10 * S);
	world_say(v, "plant/g1/heard", "", false);
	world_say(v, "gw/g1", "", false);
	world_pass(v, 5 * S);
	world_say(v, "gw/g1", "{\"online\":false}", false);
	world_pass(v, 5 * S);
	ck_assert(world_is(v, "g1", HW_STATE_OFFLINE));
	ck_assert(world_is(v, "heard", HW_STATE_OFFLINE));
	ck_assert_int_eq(hw_device_reason(world_device(v, "heard")), HW_REASON_PARENT);
	ck_assert(world_is(v, "silent", HW_STATE_ONLINE));
	world_free(v);
}
END_TEST

/* A status without parents is published once more when a heartbeat names them. */
START_TEST(test_own_statuses_name_the_parents)
{
	static const char *const hb[] = {"plant/{gw}/{id}/up"}, *const parents[] = {"{gw}"};
	struct hw_monitor_conf conf = world_conf();
	conf.adopt_by = conf.node = "me";
	struct hw_group_spec g = world_group("valves", 30000);
	g.heartbeat = hb;
	g.n_heartbeat = 1;
	g.parents = parents;
	g.n_parents = 1;
	struct world *v = world_new(&conf, &g, 1);
	world_connect(v);
	world_say(v, "nodes/a/status", "{\"online\":true,\"by\":\"me\",\"seq\":7,\"parents\":\"g1\\ng2\"}", true);
	world_say(v, "nodes/old/status", "{\"online\":true,\"by\":\"me\",\"seq\":7}", true);
	ck_assert_str_eq(world_parents(v, "a"), "g1? g2?");
	ck_assert_str_eq(world_parents(v, "old"), "");
	world_say(v, "plant/g1/a/up", "", false);
	ck_assert_str_eq(world_parents(v, "a"), "g1?");
	ck_assert_uint_eq(world_count(v, HW_OUT_STATUS, 0), 0);
	world_say(v, "plant/g1/old/up", "", false);
	ck_assert_str_eq(world_parents(v, "old"), "g1?");
	ck_assert_uint_eq(world_count(v, HW_OUT_STATUS, 0), 1);
	world_say(v, "plant/g2/old/up", "", false);
	ck_assert_uint_eq(world_count(v, HW_OUT_STATUS, 0), 1);
	world_free(v);
}
END_TEST

/* Without a store: a group was renamed by a restart, and two groups have the same status topics. The retained status of
 * `a` names the old group (0) or the group `near` (1). */
static struct world *world_of_a_renamed_group(bool canaries, const char *deny, bool near_named)
{
	static const char *const near[] = {"n/{id}"}, *const far[] = {"f/{id}"}, *const whiles[] = {"br 1"};
	struct hw_monitor_conf conf = world_conf();
	conf.adopt_by = conf.node = "me";
	conf.canaries = canaries;
	struct hw_group_spec g[] = {world_group("near", 30000), world_group("faraway", 20000)};
	g[0].heartbeat = near;
	g[1].heartbeat = far;
	g[0].n_heartbeat = g[1].n_heartbeat = 1;
	g[0].status = g[1].status = "st/{id}";
	g[0].canary = g[1].canary = canaries;
	g[1].whiles = whiles;
	g[1].n_whiles = !canaries;
	struct world *v = world_new(&conf, g, 2);
	world_connect(v);
	world_pass(v, S);
	v->deny = deny;
	world_say(v, "br", "0", true);
	say_status(v, "st/a", true, 7, near_named ? "near" : "far");
	return v;
}

/* The bridge of a group is away. A device may be in any group with the same status topics (0). If the status names a
 * group of the file, the device is in that group (1). */
START_TEST(test_a_device_of_a_renamed_group_waits_for_each_group_of_its_status)
{
	struct world *v = world_of_a_renamed_group(false, NULL, _i);
	world_pass(v, 75 * S);
	ck_assert(world_is(v, "a", _i == 0 ? HW_STATE_ONLINE : HW_STATE_OFFLINE));
	world_say(v, "br", "1", false);
	world_pass(v, 29 * S);
	ck_assert(world_is(v, "a", _i == 0 ? HW_STATE_ONLINE : HW_STATE_OFFLINE));
	world_pass(v, 60 * S);
	ck_assert(world_is(v, "a", HW_STATE_OFFLINE));
	world_free(v);
}
END_TEST

/* The filter of a group delivers nothing any more, which shows only when a canary is sent. */
START_TEST(test_a_device_of_a_renamed_group_waits_for_the_canaries_of_each_group)
{
	struct world *v = world_of_a_renamed_group(true, "f/", _i);
	world_pass(v, 75 * S);
	ck_assert(world_is(v, "a", _i == 0 ? HW_STATE_ONLINE : HW_STATE_OFFLINE));
	world_free(v);
}
END_TEST

/* The status of a gateway is also a topic of `while` of another group. Then it is a value and a state. */
START_TEST(test_an_own_status_is_adopted_on_a_topic_of_while)
{
	static const char *const hb[] = {"hb/{id}"}, *const whiles[] = {"nodes/gw/status online=true"};
	struct hw_monitor_conf conf = world_conf();
	conf.adopt_by = conf.node = "me";
	conf.as_published = _i == 1;
	struct hw_group_spec groups[2] = {world_group("default", 30000), world_group("behind", 30000)};
	groups[1].heartbeat = hb;
	groups[1].n_heartbeat = 1;
	groups[1].status = NULL;
	groups[1].whiles = whiles;
	groups[1].n_whiles = 1;
	struct world *v = world_new(&conf, groups, 2);
	world_connect(v);
	world_say(v, "nodes/gw/status", "{\"time\":1699990000,\"online\":false,\"by\":\"me\",\"seq\":7}", true);
	ck_assert(world_is(v, "gw", HW_STATE_OFFLINE));
	ck_assert_int_eq(hw_monitor_blindness(v->m).cause, HW_CAUSE_UPSTREAM);
	/* any other old message on that topic is a value alone */
	world_say(v, "nodes/gw/status", "{\"online\":true}", true);
	ck_assert(world_is(v, "gw", HW_STATE_OFFLINE));
	world_free(v);
}
END_TEST

/* What an earlier run has left: a device that was heard, or went offline, so long ago. Nobody listened for `down_ms`.
 */
static void load_old(struct world *v, const char *id, bool online, int64_t age_ms, int64_t down_ms)
{
	struct hw_stored s = {.id = id,
	                      .id_len = strlen(id),
	                      .state = online ? HW_STATE_ONLINE : HW_STATE_OFFLINE,
	                      .seq = 5,
	                      .since_ms = v->now.wall_ms - age_ms,
	                      .last_seen_ms = v->now.wall_ms - age_ms,
	                      .down_ms = down_ms,
	                      .gone_ms = online ? 0 : age_ms - down_ms};
	ck_assert_int_eq(hw_monitor_load(v->m, v->now, &s), 0);
}

static void load(struct world *v, const char *id, int64_t last_seen_ms, int64_t own_timeout_ms)
{
	struct hw_stored s = {.id = id,
	                      .id_len = strlen(id),
	                      .state = HW_STATE_ONLINE,
	                      .seq = 5,
	                      .last_seen_ms = last_seen_ms,
	                      .own_timeout_ms = own_timeout_ms};
	ck_assert_int_eq(hw_monitor_load(v->m, v->now, &s), 0);
}

/* The age of what is stored may be blindness or a step of the wall clock: one timeout of sight is left in any case. */
START_TEST(test_a_stored_device_has_one_timeout_to_be_heard)
{
	struct hw_monitor_conf conf = world_conf();
	conf.loading = true;
	struct world *v = world_of_one(&conf);
	load(v, "beats", v->now.wall_ms - 86400000, 0);
	load(v, "sleeps", v->now.wall_ms - 86400000, 300000);
	load(v, "dead", v->now.wall_ms - 86400000, 0);
	hw_monitor_loaded(v->m);
	world_connect(v);
	world_pass(v, 29 * S);
	ck_assert_uint_eq(world_count(v, HW_OUT_TRANSITION, HW_STATE_OFFLINE), 0);
	world_beat(v, "beats", "");
	world_pass(v, 2 * S);
	ck_assert(world_is(v, "dead", HW_STATE_OFFLINE));
	ck_assert(world_is(v, "beats", HW_STATE_ONLINE));
	world_pass(v, 268 * S);
	ck_assert(world_is(v, "sleeps", HW_STATE_ONLINE));
	world_pass(v, 2 * S);
	ck_assert(world_is(v, "sleeps", HW_STATE_OFFLINE));
	world_free(v);
}
END_TEST

/* ... also when a reload makes the timeout shorter before the monitor sees. */
START_TEST(test_a_shorter_timeout_leaves_one_to_be_heard)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec g = world_group("default", 30000);
	conf.loading = true;
	struct world *v = world_new(&conf, &g, 1);
	load(v, "beats", v->now.wall_ms - 86400000, 0);
	load(v, "dead", v->now.wall_ms - 86400000, 0);
	hw_monitor_loaded(v->m);
	g.timeout_ms = 10000;
	ck_assert_int_eq(hw_monitor_reconfigure(v->m, v->now, &conf, &g, 1), 0);
	world_connect(v);
	world_pass(v, 9 * S);
	ck_assert_uint_eq(world_count(v, HW_OUT_TRANSITION, HW_STATE_OFFLINE), 0);
	world_beat(v, "beats", "");
	world_pass(v, 2 * S);
	ck_assert(world_is(v, "dead", HW_STATE_OFFLINE));
	ck_assert(world_is(v, "beats", HW_STATE_ONLINE));
	world_free(v);
}
END_TEST

/* Redis may come late; the blindness there was since the run began is no silence. */
START_TEST(test_loaded_late)
{
	struct hw_monitor_conf conf = world_conf();
	struct world *v = world_of_one(&conf);
	world_connect(v);
	for (int k = 0; k < 5; k++) {
		world_pass(v, 5 * S);
		hw_monitor_link(v->m, v->now, 0, false);
		v->n_out = 0;
		world_pass(v, 100 * S);
		hw_monitor_link(v->m, v->now, 0, true);
	}
	load(v, "a", v->now.wall_ms, 0);
	world_pass(v, 29 * S);
	ck_assert(world_is(v, "a", HW_STATE_ONLINE));
	world_pass(v, 2 * S);
	ck_assert(world_is(v, "a", HW_STATE_OFFLINE));
	world_free(v);
}
END_TEST

/* A sleeper that wakes before its record is read says so once. */
START_TEST(test_what_is_said_in_the_load_goes_over_what_is_stored)
{
	struct hw_monitor_conf conf = world_conf();
	conf.loading = true;
	struct world *v = world_of_one(&conf);
	world_connect(v);
	world_beat(v, "woke", "{\"timeout\":0}");
	world_beat(v, "naps", "{\"timeout\":400}");
	world_beat(v, "silent", "");
	world_beat(v, "new", "{\"timeout\":0}");
	load(v, "woke", v->now.wall_ms, 310000);
	load(v, "naps", v->now.wall_ms, 310000);
	load(v, "silent", v->now.wall_ms, 310000);
	hw_monitor_loaded(v->m);
	world_drain(v);
	ck_assert_int_eq(hw_monitor_timeout_ms(v->m, world_device(v, "woke")), 30000);
	ck_assert_int_eq(hw_device_own_timeout_ms(world_device(v, "woke")), 0);
	ck_assert_int_eq(hw_device_own_timeout_ms(world_device(v, "new")), 0);
	ck_assert_int_eq(hw_monitor_timeout_ms(v->m, world_device(v, "naps")), 400000);
	ck_assert_int_eq(hw_monitor_timeout_ms(v->m, world_device(v, "silent")), 310000);
	world_free(v);
}
END_TEST

/* The load may take longer than a timeout: its silence begins with what was heard meanwhile. And twice is not once. */
START_TEST(test_what_is_heard_in_the_load_is_newer_than_what_is_stored)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_stored s = {.id = "a", .id_len = 1, .state = HW_STATE_ONLINE, .seq = 5, .once = true};
	conf.loading = true;
	struct world *v = world_of_one(&conf);
	s.last_seen_ms = v->now.wall_ms - 20000;
	world_connect(v);
	world_pass(v, 60 * S);
	world_beat(v, "a", "");
	int64_t heard_ms = v->now.wall_ms;
	world_pass(v, S);
	ck_assert_int_eq(hw_monitor_load(v->m, v->now, &s), 0);
	hw_monitor_loaded(v->m);
	ck_assert_int_eq(hw_device_last_seen_ms(world_device(v, "a"), v->now), heard_ms);
	ck_assert(!(world_device(v, "a")->flags & HW_FLAG_ONCE));
	world_pass(v, 28 * S);
	ck_assert(world_is(v, "a", HW_STATE_ONLINE));
	world_pass(v, 2 * S);
	ck_assert(world_is(v, "a", HW_STATE_OFFLINE));
	world_free(v);
}
END_TEST

/* What nobody listened to counts for nothing: after a second blindness there is a whole timeout again. */
START_TEST(test_the_monitors_own_down_time_is_no_silence)
{
	struct hw_monitor_conf conf = world_conf();
	conf.loading = true;
	struct world *v = world_of_one(&conf);
	load_old(v, "a", true, 3600000, 3599000);
	hw_monitor_loaded(v->m);
	world_connect(v);
	world_pass(v, 20 * S);
	hw_monitor_link(v->m, v->now, 0, false);
	world_pass(v, S);
	hw_monitor_link(v->m, v->now, 0, true);
	world_pass(v, 29 * S);
	ck_assert(world_is(v, "a", HW_STATE_ONLINE));
	world_pass(v, 2 * S);
	ck_assert(world_is(v, "a", HW_STATE_OFFLINE));
	world_free(v);
}
END_TEST

START_TEST(test_who_is_offline_is_forgotten_in_time_across_restarts)
{
	struct hw_monitor_conf conf = world_conf();
	conf.loading = true;
	conf.forget_after_ms = 3600000;
	struct world *v = world_of_one(&conf);
	load_old(v, "a", false, 3600000 - 10000 + 5000, 5000);
	hw_monitor_loaded(v->m);
	world_connect(v);
	world_pass(v, 9 * S);
	ck_assert(world_is(v, "a", HW_STATE_OFFLINE));
	world_pass(v, 2 * S);
	ck_assert_uint_eq(world_count(v, HW_OUT_TRANSITION, HW_STATE_FORGOTTEN), 1);
	world_free(v);
}
END_TEST

/* The clock of this machine, or of the one that wrote it, may be wrong by any time. */
START_TEST(test_no_wall_clock_forgets)
{
	struct hw_monitor_conf conf = world_conf();
	conf.loading = true;
	conf.forget_after_ms = 3600000;
	struct world *v = world_of_one(&conf);
	struct hw_stored s = {.id = "old", .id_len = 3, .state = HW_STATE_OFFLINE, .seq = 5, .since_ms = 1};
	ck_assert_int_eq(hw_monitor_load(v->m, v->now, &s), 0);
	s.id = "new";
	s.since_ms = v->now.wall_ms + INT64_C(4000) * 86400 * 1000;
	ck_assert_int_eq(hw_monitor_load(v->m, v->now, &s), 0);
	hw_monitor_loaded(v->m);
	world_connect(v);
	v->now.wall_ms += INT64_C(400) * 86400 * 1000;
	world_pass(v, 3590 * S);
	ck_assert_uint_eq(world_count(v, HW_OUT_TRANSITION, HW_STATE_FORGOTTEN), 0);
	ck_assert_int_eq(hw_monitor_gone_ms(v->m, v->now, world_device(v, "old")) / 1000, 3590);
	world_pass(v, 11 * S);
	ck_assert_uint_eq(world_count(v, HW_OUT_TRANSITION, HW_STATE_FORGOTTEN), 2);
	world_free(v);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stored");
	TCase *tc = tcase_create("rules");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 20);
	tcase_add_test(tc, test_reports_heard_while_loading);
	tcase_add_test(tc, test_loading);
	tcase_add_test(tc, test_broken_records);
	tcase_add_test(tc, test_watched_for_longer_than_offline);
	tcase_add_test(tc, test_stored_timeouts_out_of_bounds);
	tcase_add_test(tc, test_forgetting);
	tcase_add_test(tc, test_who_is_heard_again_after_being_forgotten_is_new);
	tcase_add_test(tc, test_forget_after);
	tcase_add_test(tc, test_without_a_store_own_statuses_are_adopted);
	tcase_add_test(tc, test_own_statuses_are_adopted_where_no_heartbeat_comes);
	tcase_add_loop_test(tc, test_own_statuses_after_the_start_change_nothing, 0, 4);
	tcase_add_test(tc, test_own_statuses_name_the_group);
	tcase_add_test(tc, test_own_statuses_name_the_parents);
	tcase_add_loop_test(tc, test_the_newest_of_own_statuses_counts, 0, 2);
	tcase_add_loop_test(tc, test_the_newest_of_own_statuses_has_the_fields, 0, 2);
	tcase_add_test(tc, test_parents_of_a_status_take_nobody);
	tcase_add_loop_test(tc, test_an_own_status_is_adopted_on_a_topic_of_while, 0, 2);
	tcase_add_loop_test(tc, test_a_device_of_a_renamed_group_waits_for_each_group_of_its_status, 0, 2);
	tcase_add_loop_test(tc, test_a_device_of_a_renamed_group_waits_for_the_canaries_of_each_group, 0, 2);
	tcase_add_test(tc, test_a_stored_device_has_one_timeout_to_be_heard);
	tcase_add_test(tc, test_a_shorter_timeout_leaves_one_to_be_heard);
	tcase_add_test(tc, test_loaded_late);
	tcase_add_test(tc, test_what_is_said_in_the_load_goes_over_what_is_stored);
	tcase_add_test(tc, test_what_is_heard_in_the_load_is_newer_than_what_is_stored);
	tcase_add_test(tc, test_the_monitors_own_down_time_is_no_silence);
	tcase_add_test(tc, test_who_is_offline_is_forgotten_in_time_across_restarts);
	tcase_add_test(tc, test_no_wall_clock_forgets);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

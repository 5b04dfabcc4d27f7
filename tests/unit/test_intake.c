/* SPDX-License-Identifier: MIT */
/* What the monitor makes of messages: payloads, batches, topics of groups, and what it refuses. */
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

/* What is expected is not refused: its own statuses come back to it all the time, and so do those of its peers, if it
 * is one of several nodes. */
START_TEST(test_own_messages_are_not_refused)
{
	struct hw_monitor_conf conf = world_conf();
	conf.node = "me";
	conf.several = _i == 1;
	struct world *v = world_of_one(&conf);
	const struct hw_monitor_stats *s = hw_monitor_stats(v->m);
	world_connect(v);
	world_say(v, "nodes/a/status", "{\"by\":\"me\",\"seq\":5,\"online\":true}", false);
	world_say(v, "nodes/a/status", "{\"by\":\"me\",\"seq\":6,\"online\":false}", false);
	world_say(v, "nodes/a/status", "{\"by\":\"mea\",\"seq\":6,\"online\":false}", false);
	ck_assert_uint_eq(s->own_messages, 2);
	for (int k = 0; k < HW_REFUSED_KINDS; k++)
		ck_assert_uint_eq(s->refused[k], k == HW_REFUSED_MONITOR && !conf.several);
	ck_assert_uint_eq(hw_monitor_peer_messages(v->m), conf.several);
	ck_assert_uint_eq(hw_registry_count(hw_monitor_registry(v->m)), 0);
	world_free(v);
}
END_TEST

START_TEST(test_a_payload_error_names_its_device)
{
	static const struct {
		const char *topic, *payload, *id, *fault;
	} wrong[] = {{"nodes/a/heartbeat", "{\"online\":0}", "a", "online"},
	             {"nodes/b/heartbeat", "{\"online\":\"false\"}", "b", "online"},
	             {"nodes/c/heartbeat", "{\"rssi\":\"-60\",\"battery\":\"full\"}", "c", "battery"},
	             {"nodes/d/heartbeat", "{\"uptime\":true}", "d", "uptime"},
	             {"nodes/e/heartbeat", "{\"ip\":1}", "e", "ip"},
	             {"nodes/f/heartbeat", "{\"data\":1e999}", "f", "data"},
	             {"nodes/g/heartbeat", "{\"time\":\"now\"}", "g", "time"},
	             {"nodes/h/heartbeat", "{broken", "h", NULL}};
	const struct hw_monitor_stats *s = hw_monitor_stats(w->m);
	for (size_t k = 0; k < sizeof(wrong) / sizeof(*wrong); k++) {
		uint64_t before = s->payload_errors;
		world_say(w, wrong[k].topic, wrong[k].payload, false);
		ck_assert_msg(s->payload_errors == before + 1, "%s", wrong[k].payload);
		ck_assert_msg(strcmp(s->fault_id, wrong[k].id) == 0, "%s: %s", wrong[k].payload, s->fault_id);
		ck_assert_msg(wrong[k].fault ? s->fault && strcmp(s->fault, wrong[k].fault) == 0 : !s->fault, "%s: %s",
		              wrong[k].payload, s->fault ? s->fault : "none");
		ck_assert_msg(world_is(w, wrong[k].id, HW_STATE_ONLINE), "%s", wrong[k].payload);
	}
	/* An id that is none is not repeated to anybody. */
	world_say(w, "nodes/\x7f/heartbeat", "{\"online\":0}", false);
	ck_assert_str_eq(s->fault_id, "");
}
END_TEST

START_TEST(test_a_byte_order_mark_says_nothing)
{
	const struct hw_monitor_stats *s = hw_monitor_stats(w->m);
	world_say(w, "nodes/a/heartbeat", "\xef\xbb\xbf{\"timeout\":7}", false);
	ck_assert_int_eq(hw_monitor_timeout_ms(w->m, world_device(w, "a")), 7000);
	world_say(w, "nodes/a/heartbeat", "\xef\xbb\xbf{\"online\":false}", false);
	world_pass(w, S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	world_say(w, "nodes/a/heartbeat", "\xef\xbb\xbf", false);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	world_say(w, "nodes/a/status", "\xef\xbb\xbf{\"by\":\"x\",\"seq\":5,\"online\":true}", false);
	ck_assert_uint_eq(s->refused[HW_REFUSED_MONITOR], 1);
	ck_assert_uint_eq(s->payload_errors, 0);
}
END_TEST

/* The flag is as it was published: only a goodbye counts with it, or everything where the group says so. */
START_TEST(test_the_retain_flag_as_published)
{
	struct hw_group_spec groups[2] = {world_group("default", 10000), world_group("counts", 10000)};
	static const char *const other[] = {"counts/{id}/heartbeat"};
	struct hw_monitor_conf conf = world_conf();
	conf.as_published = true;
	groups[1].heartbeat = other;
	groups[1].n_heartbeat = 1;
	groups[1].status = NULL;
	groups[1].retained = true;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, groups, 2), 0);
	const struct hw_monitor_stats *s = hw_monitor_stats(w->m);
	world_say(w, "nodes/a/heartbeat", "", true);
	world_say(w, "nodes/a/heartbeat", "{\"battery\":5}", true);
	ck_assert_uint_eq(hw_registry_count(hw_monitor_registry(w->m)), 0);
	ck_assert_uint_eq(s->refused[HW_REFUSED_FLAGGED], 2);
	ck_assert_uint_eq(s->flagged_group, 0);
	world_say(w, "nodes/a/heartbeat", "", false);
	world_say(w, "nodes/a/status", "{\"online\":false}", true);
	world_pass(w, S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	world_say(w, "nodes/a/heartbeat", "", true);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	/* What is retained in the place of a will is younger than the will: but not if that was a timeout. */
	world_say(w, "nodes/a/status", "{\"online\":true}", true);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	world_pass(w, 11 * S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	world_say(w, "nodes/a/status", "{\"online\":true}", true);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	world_say(w, "counts/b/heartbeat", "", true);
	ck_assert(world_is(w, "b", HW_STATE_ONLINE));
	world_say(w, "nodes/a/status", "{\"by\":\"x\",\"seq\":5,\"online\":true}", true);
	ck_assert_uint_eq(s->refused[HW_REFUSED_MONITOR], 1);
	ck_assert_uint_eq(s->refused[HW_REFUSED_RETAINED], 0);
	/* Without a store, what comes with the flag on a status topic is retained there. */
	conf.adopt_by = "w";
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, groups, 2), 0);
	world_say(w, "nodes/b/status", "{\"online\":false}", true);
	world_pass(w, S);
	ck_assert(world_is(w, "b", HW_STATE_ONLINE));
	ck_assert_uint_eq(s->refused[HW_REFUSED_RETAINED], 1);
}
END_TEST

/* A bridge that reconnects publishes retained messages again, with the flag. Whether they are older than a will can be
 * told only on the filter that brought the will, if the will had the flag itself. */
START_TEST(test_history_does_not_take_a_will_back)
{
	struct hw_group_spec g = world_group("default", 3600000);
	static const char *const goodbye[] = {"nodes/{id}/lwt gone"};
	struct hw_monitor_conf conf = world_conf();
	conf.as_published = true;
	g.goodbye = goodbye;
	g.n_goodbye = 1;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &g, 1), 0);
	world_say(w, "nodes/a/heartbeat", "{\"online\":true}", true);
	world_say(w, "nodes/b/lwt", "here", true);
	world_beat(w, "a", "");
	world_beat(w, "b", "");
	world_say(w, "nodes/a/lwt", "gone", true);
	world_say(w, "nodes/b/lwt", "gone", false);
	world_pass(w, S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE) && world_is(w, "b", HW_STATE_OFFLINE));
	world_say(w, "nodes/a/heartbeat", "{\"online\":true}", true);
	world_say(w, "nodes/a/status", "{\"online\":true}", true);
	world_say(w, "nodes/b/lwt", "here", true);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE) && world_is(w, "b", HW_STATE_OFFLINE));
	world_say(w, "nodes/a/lwt", "here", true);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	/* The will has been replaced: the next one has no flag, and what replaced the first says nothing of it. */
	world_say(w, "nodes/a/lwt", "gone", false);
	world_pass(w, S);
	world_say(w, "nodes/a/lwt", "here", true);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
}
END_TEST

/* Only the number of devices shows whether a bridge brings a repeated goodbye: also if the goodbyes do not arrive in
 * one read (1). */
START_TEST(test_goodbyes_that_come_again)
{
	struct hw_group_spec g = world_group("default", 3600000);
	struct hw_monitor_conf conf = world_conf();
	conf.as_published = true;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &g, 1), 0);
	static const char *const ids[] = {"a", "b", "c"};
	char topic[64];
	for (int round = 0; round < 3; round++) {
		for (int k = 0; k < 3; k++)
			world_beat(w, ids[k], "");
		world_pass(w, S);
		for (int k = 0; k < 3; k++) {
			snprintf(topic, sizeof(topic), "nodes/%s/status", ids[k]);
			world_say(w, topic, "{\"online\":false}", true);
			world_pass(w, _i == 1 ? 100 * MS : 0);
		}
		world_pass(w, 10 * S);
		for (int k = 0; k < 3;
		     k++) /* nothing is doubted of the first ones, nor after something replaced them */
			ck_assert(world_is(w, ids[k], round == 1 ? HW_STATE_ONLINE : HW_STATE_OFFLINE));
		for (int k = 0; k < 3 && round == 1; k++) {
			snprintf(topic, sizeof(topic), "nodes/%s/status", ids[k]);
			world_say(w, topic, "{\"online\":true}", true);
		}
	}
	for (int k = 0; k < 2; k++)
		world_beat(w, ids[k], "");
	world_say(w, "nodes/a/status", "{\"online\":false}", true); /* one alone is news */
	world_pass(w, S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	world_say(w, "nodes/b/status", "{\"online\":false}", true);
	world_pass(w, S);
	ck_assert(world_is(w, "b", HW_STATE_OFFLINE));
}
END_TEST

#define ORDERS 625 /* five steps, four of them */

/* Whatever came before, a retained will of a device that is alone counts when the group's goodbye_delay is over. */
START_TEST(test_a_held_goodbye_with_the_flag_counts)
{
	static const struct {
		const char *topic, *payload;
		bool flag;
		int64_t pass_ns;
	} steps[] = {
		{"nodes/a/heartbeat", "", false, 100 * MS}, {"nodes/a/lwt", "here", true, 100 * MS},
		{"nodes/a/lwt", "gone", true, 100 * MS},    {"nodes/a/lwt", "gone", false, 100 * MS},
		{"nodes/a/heartbeat", "", true, 1900 * MS},
	};
	static const char *const goodbye[] = {"nodes/{id}/lwt gone"};
	struct hw_group_spec g = world_group("default", 3600000);
	struct hw_monitor_conf conf = world_conf();
	conf.as_published = true;
	g.goodbye = goodbye;
	g.n_goodbye = 1;
	g.goodbye_delay_ms = 2000;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &g, 1), 0);
	for (unsigned order = 0; order < ORDERS; order++) {
		world_beat(w, "a", "");
		for (unsigned rest = order, k = 0; k < 4; k++, rest /= 5) {
			world_say(w, steps[rest % 5].topic, steps[rest % 5].payload, steps[rest % 5].flag);
			world_pass(w, steps[rest % 5].pass_ns);
		}
		world_beat(w, "a", "");
		ck_assert(world_is(w, "a", HW_STATE_ONLINE));
		world_say(w, "nodes/a/lwt", "gone", true);
		world_pass(w, 1900 * MS);
		ck_assert_msg(world_is(w, "a", HW_STATE_ONLINE), "after %u", order);
		world_pass(w, 300 * MS);
		ck_assert_msg(world_is(w, "a", HW_STATE_OFFLINE), "after %u", order);
	}
	ck_assert_uint_ge(world_count(w, HW_OUT_TRANSITION, HW_STATE_OFFLINE), ORDERS);
}
END_TEST

START_TEST(test_a_goodbye_with_the_flag_makes_no_device)
{
	struct hw_group_spec g = world_group("default", 3600000);
	struct hw_monitor_conf conf = world_conf();
	conf.as_published = true;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &g, 1), 0);
	world_say(w, "nodes/a/status", "{\"online\":false}", true);
	ck_assert_uint_eq(hw_registry_count(hw_monitor_registry(w->m)), 0);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->refused[HW_REFUSED_RETAINED], 1);
	world_beat(w, "a", "");
	ck_assert(hw_monitor_forget(w->m, w->now, "a", 1));
	world_drain(w);
	uint64_t before = world_count(w, HW_OUT_TRANSITION, HW_STATE_OFFLINE);
	world_say(w, "nodes/a/status", "{\"online\":false}", true);
	ck_assert_uint_eq(world_count(w, HW_OUT_TRANSITION, HW_STATE_OFFLINE), before);
	world_say(w, "nodes/b/status", "{\"online\":false}", false);
	ck_assert(world_is(w, "b", HW_STATE_OFFLINE));
}
END_TEST

START_TEST(test_what_is_no_heartbeat)
{
	world_say(w, "nodes/a/heartbeat", "", true); /* history */
	world_say(w, "nodes/a/status", "", false);   /* a clearing */
	world_say(w, "nodes/a/status", "{\"by\":\"x\",\"seq\":5,\"online\":true}", false);
	world_say(w, "other/a", "", false);
	world_say(w, "nodes//heartbeat", "", false);
	world_say(w, "nodes/\xff/heartbeat", "", false);
	ck_assert_uint_eq(hw_registry_count(hw_monitor_registry(w->m)), 0);
	const struct hw_monitor_stats *s = hw_monitor_stats(w->m);
	ck_assert_uint_eq(s->refused[HW_REFUSED_RETAINED], 1);
	ck_assert_uint_eq(s->refused[HW_REFUSED_MONITOR], 1);
	ck_assert_uint_eq(s->refused[HW_REFUSED_TOPIC], 1);
	ck_assert_uint_eq(s->refused[HW_REFUSED_ID], 2);
	world_beat(w, "a", "{broken");
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert_uint_eq(s->payload_errors, 1);
}
END_TEST

START_TEST(test_max_devices)
{
	struct hw_monitor_conf conf = world_conf();
	conf.max_devices = 10;
	struct hw_group_spec g = world_group("default", 30000);
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &g, 1), 0);
	char id[16];
	for (int k = 0; k < 1000; k++) {
		snprintf(id, sizeof(id), "d%d", k);
		world_beat(w, id, "");
	}
	ck_assert_uint_eq(hw_registry_count(hw_monitor_registry(w->m)), 10);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->refused[HW_REFUSED_MAX_DEVICES], 990);
	world_beat(w, "d3", "");
	ck_assert(world_is(w, "d3", HW_STATE_ONLINE));
}
END_TEST

START_TEST(test_max_age)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec g = world_group("default", 30000);
	g.max_age_ms = 60000;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &g, 1), 0);
	world_beat(w, "a", "{\"time\":1699999939}");
	ck_assert_ptr_null(world_device(w, "a"));
	ck_assert_uint_eq(hw_monitor_stats(w->m)->refused[HW_REFUSED_STALE], 1);
	world_beat(w, "a", "{\"time\":1699999941}");
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	world_beat(w, "a", "{\"time\":1,\"online\":false}");
	world_pass(w, S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
}
END_TEST

/* A step of the wall clock makes no heartbeat old: neither forward nor back. */
START_TEST(test_max_age_across_a_step)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec g = world_group("default", 30000);
	g.max_age_ms = 60000;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &g, 1), 0);
	hw_monitor_trust_wall(w->m, w->now, w->now.wall_ms);
	w->now.wall_ms += 3600000;
	world_beat(w, "a", "{\"time\":1700000000}");
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	world_pass(w, 50 * S);
	world_beat(w, "b", "{\"time\":1699999989}");
	ck_assert_ptr_null(world_device(w, "b"));
	w->now.wall_ms -= 2 * 3600000;
	world_beat(w, "b", "{\"time\":1700000050}");
	ck_assert(world_is(w, "b", HW_STATE_ONLINE));
	hw_monitor_trust_wall(w->m, w->now, w->now.wall_ms);
	w->now.wall_ms += 3600000;
	hw_monitor_trust_wall(w->m, w->now, w->now.wall_ms);
	world_beat(w, "c", "{\"time\":1699999989}");
	ck_assert_ptr_null(world_device(w, "c"));
	ck_assert_uint_eq(hw_monitor_stats(w->m)->refused[HW_REFUSED_STALE], 2);
}
END_TEST

START_TEST(test_max_offline_rate)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec g = world_group("default", 30000);
	g.max_offline_rate = 10;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, &g, 1), 0);
	char id[16];
	for (int k = 0; k < 100; k++) {
		snprintf(id, sizeof(id), "d%d", k);
		world_beat(w, id, "");
	}
	world_pass(w, 32 * S);
	size_t n = world_count(w, HW_OUT_TRANSITION, HW_STATE_OFFLINE);
	ck_assert_uint_ge(n, 18);
	ck_assert_uint_le(n, 21);
	world_beat(w, "d99", "");
	world_pass(w, 10 * S);
	ck_assert_uint_eq(world_count(w, HW_OUT_TRANSITION, HW_STATE_OFFLINE), 99);
	ck_assert(world_is(w, "d99", HW_STATE_ONLINE));
}
END_TEST

START_TEST(test_groups_by_file_order)
{
	static const char *const fast[] = {"fast/{id}/hb"};
	struct hw_group_spec g[2] = {world_group("default", 30000), world_group("fast", 1000)};
	g[1].heartbeat = fast;
	g[1].n_heartbeat = 1;
	g[1].id_prefix = "f-";
	struct hw_monitor_conf conf = world_conf();
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, g, 2), 0);
	world_say(w, "fast/a/hb", "", false);
	world_beat(w, "a", "");
	ck_assert(world_is(w, "f-a", HW_STATE_ONLINE));
	world_pass(w, 2 * S);
	ck_assert(world_is(w, "f-a", HW_STATE_OFFLINE));
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	/* Known to the second group, then heard on the first: the first in the file takes it. */
	world_beat(w, "f-a", "");
	ck_assert_int_eq(hw_monitor_timeout_ms(w->m, world_device(w, "f-a")), 30000);
	world_say(w, "fast/a/hb", "", false);
	ck_assert_int_eq(hw_monitor_timeout_ms(w->m, world_device(w, "f-a")), 30000);
	ck_assert_uint_eq(hw_monitor_group_stats(w->m, 0)->count[HW_STATE_ONLINE], 2);
	ck_assert_uint_eq(hw_monitor_group_stats(w->m, 1)->count[HW_STATE_ONLINE], 0);
}
END_TEST

/* A monitor with one group that is not the usual one. */
static void world_of(struct hw_group_spec g)
{
	struct hw_monitor_conf conf = world_conf();
	world_free(w);
	w = world_new(&conf, &g, 1);
	world_connect(w);
}

static const char *const homie_filters[] = {"homie/{id}/$state", "homie/{id}/+/+"};

START_TEST(test_homie)
{
	struct hw_group_spec g = world_group("homie", 30000);
	g.heartbeat = homie_filters;
	g.status = "hw/{id}";
	g.format = HW_FORMAT_HOMIE;
	g.timeout_max_ms = 3600000;
	world_of(g);
	const struct hw_monitor_stats *stats = hw_monitor_stats(w->m);
	world_say(w, "homie/a/$state", "init", false);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	world_say(w, "homie/a/$state", "lost", false);
	world_pass(w, S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	ck_assert_int_eq(world_last(w, NULL)->reason, HW_REASON_WILL);
	world_say(w, "homie/a/$state", "ready", true); /* history */
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	world_say(w, "homie/a/$state", "", false); /* cleared */
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	ck_assert_uint_eq(stats->payload_errors, 0);
	/* A property is a heartbeat, whatever it says, and says nothing of the device. */
	world_say(w, "homie/a/lamp/power", "lost", false);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	world_say(w, "homie/a/lamp/state", "{\"online\":false,\"timeout\":3600}", false);
	world_say(w, "homie/a/lamp/state", "{", false);
	world_pass(w, S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert_int_eq(hw_monitor_timeout_ms(w->m, world_device(w, "a")), 30000);
	ck_assert_uint_eq(stats->payload_errors, 0);
	world_say(w, "homie/a/$state", "dancing", false);
	world_say(w, "homie/a/$state", "{\"by\":\"m\",\"seq\":5,\"online\":true}", false);
	ck_assert_uint_eq(stats->payload_errors, 1);
	ck_assert_uint_eq(stats->refused[HW_REFUSED_MONITOR], 1);
	ck_assert_uint_eq(stats->heartbeats, 5);
	/* A sleeper may be silent for as long as the group allows, and its waking ends that. */
	world_say(w, "homie/a/$state", "sleeping", false);
	ck_assert_int_eq(hw_monitor_timeout_ms(w->m, world_device(w, "a")), 3600000);
	world_pass(w, 3599 * S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	world_say(w, "homie/a/$state", "disconnected", false);
	world_pass(w, S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
	world_say(w, "homie/a/$state", "ready", false);
	ck_assert_int_eq(hw_monitor_timeout_ms(w->m, world_device(w, "a")), 30000);
	world_pass(w, 31 * S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
}
END_TEST

static const char *const batch_filters[] = {"gw/+/heard"};

static void batch_world(void)
{
	struct hw_group_spec g = world_group("radio", 30000);
	g.heartbeat = batch_filters;
	g.n_heartbeat = 1;
	g.id_prefix = "r-";
	g.batch = true;
	world_of(g);
}

START_TEST(test_batch)
{
	batch_world();
	const struct hw_monitor_stats *stats = hw_monitor_stats(w->m);
	world_say(w, "gw/1/heard", " [\"a\", {\"id\":\"b\",\"battery\":7}, {\"id\":\"c\",\"online\":false}, \"a\"] ",
	          false);
	ck_assert(world_is(w, "r-a", HW_STATE_ONLINE));
	ck_assert(world_is(w, "r-b", HW_STATE_ONLINE));
	ck_assert(world_is(w, "r-c", HW_STATE_OFFLINE));
	ck_assert_uint_eq(hw_device_report(world_device(w, "r-b")).has, HW_HAS_BATTERY);
	ck_assert_uint_eq(stats->heartbeats, 3);
	/* What names no device is refused by itself. */
	world_say(w, "gw/1/heard", "[5,null,[\"x\"],{},{\"id\":1},\"\",\"a+\",{\"id\":\"d\",\"timeout\":-1,\"ip\":5}]",
	          false);
	ck_assert_uint_eq(stats->refused[HW_REFUSED_BATCH], 5);
	ck_assert_uint_eq(stats->refused[HW_REFUSED_ID], 2);
	ck_assert_uint_eq(stats->refused[HW_REFUSED_TIMEOUT], 1);
	ck_assert_uint_eq(stats->payload_errors, 1);
	ck_assert(world_is(w, "r-d", HW_STATE_ONLINE));
	ck_assert_uint_eq(stats->heartbeats, 4);
	ck_assert_str_eq(stats->fault_id, "r-d");
	ck_assert_str_eq(stats->fault, "ip");
	world_say(w, "gw/1/heard", "\xef\xbb\xbf[\"d\"]", false);
	ck_assert_uint_eq(stats->heartbeats, 5);
	world_say(w, "gw/1/heard", "[]", false);
	ck_assert_uint_eq(stats->refused[HW_REFUSED_BATCH], 5);
	world_pass(w, 31 * S);
	ck_assert(world_is(w, "r-a", HW_STATE_OFFLINE));
	world_say(w, "gw/1/heard", "[{\"id\":\"a\",\"by\":\"m\",\"seq\":4,\"online\":false}]", false);
	world_say(w, "gw/1/heard", "[\"a\"]", true);
	ck_assert(world_is(w, "r-a", HW_STATE_OFFLINE));
	ck_assert_uint_eq(stats->refused[HW_REFUSED_MONITOR], 1);
	ck_assert_uint_eq(stats->refused[HW_REFUSED_RETAINED], 1);
}
END_TEST

/* A batch is taken whole or not at all. */
START_TEST(test_batch_that_is_none)
{
	static const struct {
		const char *payload;
		unsigned errors;
	} none[] = {{"[\"a\"", 1},
	            {"[\"a\",]", 1},
	            {"[\"a\"] x", 1},
	            {"[\"a\",{\"id\":\"b\",}]", 1},
	            {"{\"id\":\"a\"", 1},
	            {"{\"id\":\"a\"}", 0},
	            {"\"a\"", 0},
	            {"a", 0},
	            {"", 0},
	            {"7", 0}};
	batch_world();
	const struct hw_monitor_stats *stats = hw_monitor_stats(w->m);
	for (size_t k = 0; k < sizeof(none) / sizeof(*none); k++) {
		uint64_t errors = stats->payload_errors;
		world_say(w, "gw/1/heard", none[k].payload, false);
		ck_assert_msg(stats->refused[HW_REFUSED_BATCH] == k + 1, "%s", none[k].payload);
		ck_assert_msg(stats->payload_errors == errors + none[k].errors, "%s", none[k].payload);
	}
	world_say(w, "gw/1/heard", "{\"by\":\"m\",\"seq\":4,\"online\":true}", false);
	ck_assert_uint_eq(stats->refused[HW_REFUSED_MONITOR], 1);
	struct hw_message cut = {
		.topic = "gw/1/heard", .topic_len = 10, .payload = "[\"a\"]", .payload_len = 5, .truncated = true};
	uint64_t errors = stats->payload_errors;
	ck_assert_uint_eq(hw_monitor_messages(w->m, w->now, &cut, 1), 1);
	ck_assert_uint_eq(stats->payload_errors, errors + 1);
	ck_assert_uint_eq(hw_registry_count(hw_monitor_registry(w->m)), 0);
}
END_TEST

/* More elements than the core takes in one go: nothing is lost, and what is read behind it waits. */
START_TEST(test_large_batches)
{
	enum { N = 6000 };
	char *text = malloc(N * 10), id[16];
	size_t len = 1;
	ck_assert_ptr_nonnull(text);
	text[0] = '[';
	for (int k = 0; k < N; k++)
		len += (size_t)sprintf(text + len, "%s\"%d\"", k ? "," : "", k);
	text[len++] = ']';
	batch_world();
	struct hw_message both[2];
	for (int k = 0; k < 2; k++)
		both[k] = (struct hw_message){
			.topic = "gw/1/heard", .topic_len = 10, .payload = text, .payload_len = len};
	both[1].payload = "[\"last\"]";
	both[1].payload_len = 8;
	size_t done = 0, calls = 0;
	while (done < 2) {
		size_t log = w->n_log, k = hw_monitor_messages(w->m, w->now, both + done, 2 - done);
		ck_assert(done + k == 2 || !world_device(w, "r-last"));
		done += k;
		world_drain(w);
		ck_assert_uint_le(w->n_log - log, 256);
		calls++;
	}
	ck_assert_uint_ge(calls, N / 256);
	ck_assert_uint_eq(world_count(w, HW_OUT_TRANSITION, HW_STATE_ONLINE), N + 1);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->heartbeats, N + 1);
	for (int k = 0; k < N; k += 599) {
		snprintf(id, sizeof(id), "r-%d", k);
		ck_assert(world_is(w, id, HW_STATE_ONLINE));
	}
	free(text);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("intake");
	TCase *tc = tcase_create("rules");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 20);
	tcase_add_test(tc, test_what_is_no_heartbeat);
	tcase_add_test(tc, test_the_retain_flag_as_published);
	tcase_add_test(tc, test_history_does_not_take_a_will_back);
	tcase_add_loop_test(tc, test_goodbyes_that_come_again, 0, 2);
	tcase_add_test(tc, test_a_held_goodbye_with_the_flag_counts);
	tcase_add_test(tc, test_a_goodbye_with_the_flag_makes_no_device);
	tcase_add_loop_test(tc, test_own_messages_are_not_refused, 0, 2);
	tcase_add_test(tc, test_a_payload_error_names_its_device);
	tcase_add_test(tc, test_a_byte_order_mark_says_nothing);
	tcase_add_test(tc, test_max_devices);
	tcase_add_test(tc, test_max_age);
	tcase_add_test(tc, test_max_age_across_a_step);
	tcase_add_test(tc, test_max_offline_rate);
	tcase_add_test(tc, test_groups_by_file_order);
	tcase_add_test(tc, test_homie);
	tcase_add_test(tc, test_batch);
	tcase_add_test(tc, test_batch_that_is_none);
	tcase_add_test(tc, test_large_batches);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

/* SPDX-License-Identifier: MIT */
/* Parents of devices in the core: how they follow from heartbeats, and what follows from their states
 * (src/core/parent_*.c). */
#include "../suite.h"
#include "gate_world.h"

static const char *const gateways[] = {"gw/{id}/up"};
static const char *const valves[] = {"plant/{gw}/{id}/up", "plant/{gw}/{id}/temp"};
static const char *const one_parent[] = {"gateway-{gw}"};
static const char *const two_parents[] = {"gateway-{gw}", "backup"};
static const char *const own_prefix[] = {"{id}"};

static struct hw_group_spec groups[2];

static void make_groups(enum hw_parent_death death, bool proves)
{
	groups[0] = world_group("gateways", 30000);
	groups[0].heartbeat = gateways;
	groups[0].n_heartbeat = 1;
	groups[0].status = "gw/{id}/status";
	groups[1] = world_group("valves", 20000);
	groups[1].heartbeat = valves;
	groups[1].n_heartbeat = 2;
	groups[1].status = "valves/{id}/status";
	groups[1].parents = one_parent;
	groups[1].n_parents = 1;
	groups[1].parent_death = death;
	groups[1].child_proves = proves;
}

static void start(const struct hw_monitor_conf *conf)
{
	w = world_new(conf, groups, 2);
	world_connect(w);
}

static void begin(enum hw_parent_death death, bool proves)
{
	struct hw_monitor_conf conf = world_conf();
	make_groups(death, proves);
	start(&conf);
}

static void gateway(const char *id)
{
	char topic[64];
	snprintf(topic, sizeof(topic), "gw/%s/up", id);
	world_say(w, topic, "", false);
}

static void valve(const char *gw, const char *id)
{
	char topic[64];
	snprintf(topic, sizeof(topic), "plant/%s/%s/up", gw, id);
	world_say(w, topic, "", false);
}

static uint64_t ignored(void)
{
	return hw_monitor_stats(w->m)->refused[HW_REFUSED_PARENT];
}

/* --- from heartbeats ------------------------------------------------------------ */

START_TEST(test_the_last_heartbeat_names_the_parent)
{
	begin(HW_PARENT_NOTE, false);
	valve("a", "v");
	ck_assert_str_eq(world_parents(w, "v"), "gateway-a?");
	gateway("gateway-a");
	ck_assert_str_eq(world_parents(w, "v"), "gateway-a");
	ck_assert_uint_eq(hw_monitor_children(w->m, world_device(w, "gateway-a")), 1);
	ck_assert_uint_eq(world_count(w, HW_OUT_PARENTS, 0), 0); /* the transition writes the first */
	valve("b", "v");
	ck_assert_str_eq(world_parents(w, "v"), "gateway-b?");
	ck_assert_uint_eq(hw_monitor_children(w->m, world_device(w, "gateway-a")), 0);
	ck_assert_uint_eq(world_count(w, HW_OUT_PARENTS, 0), 1);
	world_say(w, "plant/b/v/temp", "21", false); /* the other filter has the same captures */
	ck_assert_uint_eq(world_count(w, HW_OUT_PARENTS, 0), 1);
	world_say(w, "plant/c/v/up", "{\"online\":false}", false); /* a goodbye is no heartbeat */
	ck_assert_str_eq(world_parents(w, "v"), "gateway-b?");
}
END_TEST

START_TEST(test_a_device_is_no_ancestor_of_itself)
{
	static const char *const chain[] = {"chain/{up}/{id}"};
	static const char *const up[] = {"{up}"};
	begin(HW_PARENT_NOTE, false);
	teardown();
	groups[1].heartbeat = chain;
	groups[1].n_heartbeat = 1;
	groups[1].parents = up;
	struct hw_monitor_conf conf = world_conf();
	start(&conf);
	world_say(w, "chain/x/x", "", false);
	ck_assert_str_eq(world_parents(w, "x"), "");
	ck_assert_uint_eq(ignored(), 1);
	world_say(w, "chain/x/x", "", false); /* it is known by now */
	ck_assert_uint_eq(ignored(), 1);
	world_say(w, "chain/b/a", "", false);
	world_say(w, "chain/c/b", "", false);
	world_say(w, "chain/a/c", "", false); /* closes a circle of three */
	ck_assert_str_eq(world_parents(w, "c"), "");
	ck_assert_str_eq(world_parents(w, "b"), "c");
	ck_assert_uint_eq(ignored(), 2);
	ck_assert_str_eq(hw_monitor_stats(w->m)->parent_of, "c");
	for (int k = 0; k < 12; k++) { /* a line grows downwards: 8 ancestors are the most */
		char topic[32], id[8];
		snprintf(topic, sizeof(topic), "chain/l%d/l%d", k, k + 1);
		world_say(w, topic, "", false);
		snprintf(id, sizeof(id), "l%d", k + 1);
		ck_assert_msg((*world_parents(w, id) != '\0') == (k % 9 != 8), "%d", k);
	}
}
END_TEST

START_TEST(test_hostile_captures)
{
	begin(HW_PARENT_NOTE, false);
	valve("", "v");
	ck_assert_str_eq(world_parents(w, "v"), "");
	char topic[512], gw[400];
	memset(gw, 'g', sizeof(gw));
	snprintf(topic, sizeof(topic), "plant/%.*s/u/up", 300, gw);
	world_say(w, topic, "", false);
	ck_assert_str_eq(world_parents(w, "u"), "");
	ck_assert_uint_eq(ignored(), 2);
	valve("\xff", "x");
	ck_assert_str_eq(world_parents(w, "x"), "");
	ck_assert_uint_eq(ignored(), 3);
}
END_TEST

START_TEST(test_a_reload_takes_parents_away)
{
	struct hw_monitor_conf conf = world_conf();
	begin(HW_PARENT_NOTE, false);
	valve("a", "v");
	groups[1].parents = two_parents;
	groups[1].n_parents = 2;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, groups, 2), 0);
	world_drain(w);
	valve("a", "v");
	ck_assert_str_eq(world_parents(w, "v"), "gateway-a? backup?");
	static const char *const plain[] = {"plant/+/{id}/up"};
	groups[1].heartbeat = plain;
	groups[1].n_heartbeat = 1;
	groups[1].n_parents = 0;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, groups, 2), 0);
	world_pass(w, S);
	ck_assert_str_eq(world_parents(w, "v"), "");
	ck_assert_uint_eq(world_count(w, HW_OUT_PARENTS, 0), 2);
}
END_TEST

/* After a reload, the device's heartbeats arrive on a filter of a group without parents. 1: it is offline. */
START_TEST(test_another_group_has_no_parents)
{
	struct hw_monitor_conf conf = world_conf();
	begin(HW_PARENT_NOTE, false);
	valve("a", "v");
	if (_i == 1)
		world_pass(w, 30 * S);
	ck_assert_str_eq(world_parents(w, "v"), "gateway-a?");
	static const char *const plain[] = {"gw/{id}/up", "plant/+/{id}/up"}, *const other[] = {"other/{gw}/{id}"};
	groups[0].heartbeat = plain;
	groups[0].n_heartbeat = 2;
	groups[1].heartbeat = other;
	groups[1].n_heartbeat = 1;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, groups, 2), 0);
	world_pass(w, S);
	valve("a", "v");
	world_pass(w, S);
	ck_assert_str_eq(hw_monitor_group_of(w->m, world_device(w, "v"))->name, "gateways");
	ck_assert_str_eq(world_parents(w, "v"), "");
	ck_assert_uint_eq(world_count(w, HW_OUT_PARENTS, 0), _i == 0);
}
END_TEST

START_TEST(test_the_parents_of_a_batch)
{
	static const char *const lists[] = {"lists/+/up"};
	begin(HW_PARENT_NOTE, false);
	teardown();
	struct hw_monitor_conf conf = world_conf();
	groups[1].heartbeat = lists;
	groups[1].n_heartbeat = 1;
	groups[1].batch = true;
	groups[1].parents = own_prefix;
	groups[1].id_prefix = "unit-";
	start(&conf);
	world_say(w, "lists/x/up", "[\"a\",\"b\"]", false);
	ck_assert_str_eq(world_parents(w, "unit-a"), "a?");
	ck_assert_str_eq(world_parents(w, "unit-b"), "b?");
}
END_TEST

START_TEST(test_stored_parents)
{
	struct hw_monitor_conf conf = world_conf();
	make_groups(HW_PARENT_NOTE, false);
	start(&conf);
	struct hw_stored s = {.id = "v",
	                      .id_len = 1,
	                      .group = "valves",
	                      .state = HW_STATE_OFFLINE,
	                      .reason = HW_REASON_TIMEOUT,
	                      .parents = "gateway-a\n+bad\nv\ngateway-a\nb\nc\nd\ne",
	                      .seq = 5};
	ck_assert_int_eq(hw_monitor_load(w->m, w->now, &s), 0);
	ck_assert_str_eq(world_parents(w, "v"), "gateway-a?");
	ck_assert_uint_eq(ignored(), 2);
	valve("z", "v");
	ck_assert_str_eq(world_parents(w, "v"), "gateway-z?");
}
END_TEST

START_TEST(test_a_forgotten_parent_is_unknown)
{
	begin(HW_PARENT_NOTE, false);
	gateway("gateway-a");
	valve("a", "v");
	ck_assert(hw_monitor_forget(w->m, w->now, "gateway-a", 9));
	world_drain(w);
	ck_assert_str_eq(world_parents(w, "v"), "gateway-a?");
	struct hw_ref ref = world_last(w, NULL)->device;
	hw_monitor_reap(w->m, ref);
	ck_assert_str_eq(world_parents(w, "v"), "gateway-a?");
	gateway("gateway-a");
	ck_assert_str_eq(world_parents(w, "v"), "gateway-a");
}
END_TEST

/* --- waiting --------------------------------------------------------------------- */

static const struct hw_out *heard(void)
{
	for (size_t k = w->n_log; k-- > 0;)
		if (w->log[k].kind == HW_OUT_PARENT_HEARD)
			return &w->log[k];
	return NULL;
}

/* The gateway beats each 5 s, and the valve stops: it is offline by itself with the next heartbeat of the gateway. */
START_TEST(test_a_heard_parent_ends_the_wait)
{
	begin(HW_PARENT_NOTE, false);
	gateway("gateway-a");
	world_pass(w, 61 * S); /* it has not just come back */
	gateway("gateway-a");
	valve("a", "v");
	for (int k = 0; k < 5; k++) {
		world_pass(w, 5 * S);
		ck_assert(k == 4 || world_is(w, "v", k < 4 ? HW_STATE_ONLINE : HW_STATE_OFFLINE));
		gateway("gateway-a");
	}
	world_pass(w, 2 * S);
	ck_assert(world_is(w, "v", HW_STATE_OFFLINE));
	const struct hw_out *out = heard();
	ck_assert_ptr_nonnull(out);
	ck_assert_int_eq(out->parent_heard.settle_ms, 0);
	ck_assert_uint_eq(out->parent_heard.seq, world_device(w, "v")->seq);
	ck_assert_int_eq((int)world_count(w, HW_OUT_PARENT_HEARD, 0), 1);
}
END_TEST

START_TEST(test_wait_until_the_parents_deadline)
{
	begin(HW_PARENT_NOTE, false);
	gateway("gateway-a");
	world_pass(w, 65 * S);
	gateway("gateway-a");
	world_pass(w, S);
	gateway("gateway-a"); /* both are silent from here on */
	valve("a", "v");
	world_pass(w, 21 * S);
	ck_assert(world_is(w, "v", HW_STATE_OFFLINE));
	ck_assert_int_ge(world_last(w, NULL)->wait_ms, 9900);
	ck_assert_int_le(world_last(w, NULL)->wait_ms, 10000);
	world_pass(w, 11 * S);
	ck_assert(world_is(w, "gateway-a", HW_STATE_OFFLINE));
	ck_assert_int_eq(world_last(w, NULL)->wait_ms, -1); /* the gateway has no parent */
	gateway("gateway-a");
	world_pass(w, 3 * S);
	ck_assert_ptr_null(heard()); /* the parent was offline: that ended the wait */
}
END_TEST

/* The parent has ended a silence of over half its timeout: the device may come back with it. */
START_TEST(test_a_long_silence_leaves_time_to_settle)
{
	begin(HW_PARENT_NOTE, false);
	gateway("gateway-a");
	world_pass(w, 65 * S);
	gateway("gateway-a");
	world_pass(w, 2 * S);
	valve("a", "v");
	world_pass(w, 16 * S);
	gateway("gateway-a"); /* after 18 s of 30 s */
	world_pass(w, 6 * S);
	ck_assert(world_is(w, "v", HW_STATE_OFFLINE));
	/* settle = max(60 s, 20 s + 30 s + 10 s), less the 4 s since */
	ck_assert_int_ge(world_last(w, NULL)->wait_ms, 55000);
	ck_assert_int_le(world_last(w, NULL)->wait_ms, 56100);
	/* The next heartbeat of the gateway leaves the rest of this time. */
	gateway("gateway-a");
	world_pass(w, 2 * S);
	ck_assert_int_ge(heard()->parent_heard.settle_ms, 52000);
	ck_assert_int_le(heard()->parent_heard.settle_ms, 54100);
}
END_TEST

/* The gateway beats each 0.3 s and has a timeout of 2 s. Its last heartbeats at two checks are over a second apart, but
 * it was never silent for a second. */
START_TEST(test_many_heartbeats_between_two_checks_are_no_silence)
{
	struct hw_monitor_conf conf = world_conf();
	make_groups(HW_PARENT_NOTE, false);
	groups[0].timeout_ms = 2000;
	start(&conf);
	for (int k = 0; k < 300; k++) {
		gateway("gateway-a");
		if (k == 220)
			valve("a", "v");
		world_pass(w, 3 * S / 10);
	}
	ck_assert(world_is(w, "v", HW_STATE_OFFLINE));
	ck_assert_int_ge(world_last(w, NULL)->wait_ms, 1000);
	ck_assert_int_le(world_last(w, NULL)->wait_ms, 2000);
	ck_assert_int_eq(heard()->parent_heard.settle_ms, 0);
}
END_TEST

START_TEST(test_a_long_silence_that_ends_later)
{
	begin(HW_PARENT_NOTE, false);
	gateway("gateway-a");
	world_pass(w, 65 * S);
	gateway("gateway-a");
	valve("a", "v");
	world_pass(w, 22 * S);
	ck_assert(world_is(w, "v", HW_STATE_OFFLINE));
	gateway("gateway-a");
	world_pass(w, 2 * S);
	ck_assert_int_ge(heard()->parent_heard.settle_ms, 58000);
	ck_assert_int_le(heard()->parent_heard.settle_ms, 60000);
}
END_TEST

START_TEST(test_without_a_known_parent_nothing_is_written)
{
	begin(HW_PARENT_NOTE, false);
	valve("a", "v");
	world_pass(w, 21 * S);
	ck_assert_int_eq(world_last(w, NULL)->wait_ms, -1);
	ck_assert_int_eq(world_last(w, NULL)->state, HW_STATE_OFFLINE);
}
END_TEST

/* --- children that prove ------------------------------------------------------------ */

START_TEST(test_a_child_proves_its_parent)
{
	begin(HW_PARENT_NOTE, true);
	gateway("gateway-a");
	int64_t heard_ms = w->now.wall_ms;
	valve("a", "v");
	valve("a", "u");
	for (int k = 0; k < 10; k++) {
		world_pass(w, 10 * S);
		valve("a", "v");
	}
	ck_assert(world_is(w, "gateway-a", HW_STATE_ONLINE));
	ck_assert_int_eq(hw_device_last_seen_ms(world_device(w, "gateway-a"), w->now), heard_ms);
	ck_assert(world_is(w, "u", HW_STATE_OFFLINE));
	world_pass(w, 29 * S);
	ck_assert(world_is(w, "gateway-a", HW_STATE_ONLINE));
	world_pass(w, 2 * S);
	ck_assert(world_is(w, "gateway-a", HW_STATE_OFFLINE));
	world_pass(w, 10 * S);
	valve("a", "v"); /* a child brings no parent back */
	world_pass(w, S);
	ck_assert(world_is(w, "gateway-a", HW_STATE_OFFLINE));
}
END_TEST

/* A reload gives the filter of a parent that its children prove to a later group. The proofs are no heartbeats on the
 * filters of its old group: the parent's next heartbeat moves it. */
START_TEST(test_a_proved_parent_moves_with_its_filter)
{
	static const char *const both[] = {"near/{id}/up", "gw/{id}/up"};
	struct hw_monitor_conf conf = world_conf();
	make_groups(HW_PARENT_NOTE, true);
	groups[0].heartbeat = both;
	groups[0].n_heartbeat = 2;
	start(&conf);
	gateway("gateway-a");
	valve("a", "v");
	world_pass(w, 5 * S);
	struct hw_group_spec next[] = {groups[0], groups[1], groups[0]};
	next[0].n_heartbeat = 1;
	next[2].name = "far";
	next[2].heartbeat = gateways;
	next[2].n_heartbeat = 1;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, next, 3), 0);
	for (int k = 0; k < 8; k++) {
		valve("a", "v");
		world_pass(w, 10 * S);
	}
	ck_assert(world_is(w, "gateway-a", HW_STATE_ONLINE));
	gateway("gateway-a");
	ck_assert_str_eq(hw_monitor_group_of(w->m, world_device(w, "gateway-a"))->name, "far");
}
END_TEST

START_TEST(test_a_child_voids_no_goodbye)
{
	begin(HW_PARENT_NOTE, true);
	gateway("gateway-a");
	valve("a", "v");
	world_say(w, "gw/gateway-a/up", "{\"online\":false}", false);
	valve("a", "v");
	world_pass(w, S);
	ck_assert(world_is(w, "gateway-a", HW_STATE_OFFLINE));
}
END_TEST

/* The child's heartbeat is read just before the parent's last barrier. 1: in the millisecond of another gateway's
 * goodbye. */
START_TEST(test_a_child_proves_its_parent_at_the_last_moment)
{
	begin(HW_PARENT_NOTE, true);
	teardown();
	struct hw_monitor_conf conf = world_conf();
	groups[1].timeout_ms = 60000;
	start(&conf);
	w->rtt_ns = 2 * MS + MS / 4;
	gateway("gateway-b");
	valve("b", "other");
	world_pass(w, 5 * S);
	gateway("gateway-a");
	valve("a", "v");
	world_pass(w, 30 * S + 2 * w->rtt_ns - MS / 4);
	if (_i == 1)
		world_say(w, "gw/gateway-b/up", "{\"online\":false}", false);
	valve("a", "v");
	world_pass(w, S);
	ck_assert(world_is(w, "gateway-a", HW_STATE_ONLINE));
}
END_TEST

START_TEST(test_without_child_proves_a_child_proves_nothing)
{
	begin(HW_PARENT_NOTE, false);
	gateway("gateway-a");
	for (int k = 0; k < 4; k++) {
		valve("a", "v");
		world_pass(w, 10 * S);
	}
	ck_assert(world_is(w, "gateway-a", HW_STATE_OFFLINE));
}
END_TEST

static const char *const bridge[] = {"$SYS/bridge on"};

/* The gateway has a timeout of 30 s and its devices 20 s. A monitor that sends canaries. */
static void begin_heard(bool takes, bool bridged)
{
	struct hw_monitor_conf conf = world_conf();
	conf.node = "w";
	conf.canaries = true;
	make_groups(takes ? HW_PARENT_TAKE : HW_PARENT_NOTE, !takes);
	groups[0].canary = groups[1].canary = true;
	groups[1].whiles = bridge;
	groups[1].n_whiles = bridged;
	start(&conf);
}

static void beat_for(int seconds)
{
	for (int k = 0; k < seconds; k += 5) {
		valve("a", "v");
		valve("a", "u");
		world_pass(w, 5 * S);
	}
}

/* The children's group is deaf: the right to read is lost (0, 2), or its upstream is away (1, 3). A parent that they
 * prove is not judged meanwhile, and its silence counts from the return. */
START_TEST(test_a_parent_whose_children_cannot_be_heard)
{
	bool bridged = _i % 2;
	begin_heard(_i >= 2, bridged);
	gateway("gateway-a");
	world_say(w, "$SYS/bridge", "on", false);
	beat_for(100);
	ck_assert(world_is(w, "gateway-a", HW_STATE_ONLINE));
	w->deny = bridged ? NULL : "plant/";
	world_say(w, "$SYS/bridge", "off", false);
	for (int k = 0; k < 60; k++) { /* others of its group are heard all the time */
		gateway("gateway-b");
		world_pass(w, 5 * S);
	}
	ck_assert_uint_eq(transitions(HW_STATE_OFFLINE), 0);
	ck_assert(hw_monitor_group_is_deaf(w->m, 1) == !bridged);
	w->deny = NULL;
	world_say(w, "$SYS/bridge", "on", false);
	world_pass(w, 15 * S);
	ck_assert_uint_eq(transitions(HW_STATE_OFFLINE), 0);
	beat_for(100);
	ck_assert(world_is(w, "gateway-a", HW_STATE_ONLINE));
	world_pass(w, 40 * S);
	ck_assert(world_is(w, "gateway-a", HW_STATE_OFFLINE));
}
END_TEST

/* A parent that is dead when its children can be heard again goes offline one timeout later. */
START_TEST(test_a_parent_that_dies_while_its_children_cannot_be_heard)
{
	begin_heard(false, true);
	gateway("gateway-a");
	world_say(w, "$SYS/bridge", "on", false);
	beat_for(50);
	world_say(w, "$SYS/bridge", "off", false);
	world_pass(w, 200 * S);
	world_say(w, "$SYS/bridge", "on", false);
	world_pass(w, 29 * S);
	ck_assert(world_is(w, "gateway-a", HW_STATE_ONLINE));
	world_pass(w, 3 * S);
	ck_assert(world_is(w, "gateway-a", HW_STATE_OFFLINE));
}
END_TEST

/* While the right to read the children's topics is lost and nothing shows it yet, the parent's deadline passes first:
 * the children have a timeout of an hour. */
START_TEST(test_the_childrens_group_must_hear_before_a_parent_goes_offline)
{
	begin_heard(false, false);
	groups[1].timeout_ms = 3600000;
	struct hw_monitor_conf conf = world_conf();
	conf.node = "w";
	conf.canaries = true;
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, groups, 2), 0);
	gateway("gateway-a");
	beat_for(100);
	w->deny = "plant/";
	world_pass(w, 120 * S);
	ck_assert(world_is(w, "gateway-a", HW_STATE_ONLINE));
	w->deny = NULL;
	beat_for(100);
	ck_assert(world_is(w, "gateway-a", HW_STATE_ONLINE));
}
END_TEST

/* A mirror: while this node cannot hear the children of a parent, its partition counts as one in which this node does
 * not judge, so that a node that hears them takes it. */
START_TEST(test_a_resting_parent_counts_as_unjudged)
{
	struct hw_monitor_conf conf = world_conf();
	make_groups(HW_PARENT_NOTE, true);
	groups[1].whiles = bridge;
	groups[1].n_whiles = 1;
	conf.several = true;
	conf.blind_lasts_ms = 4000;
	start(&conf);
	role_of_all(HW_ROLE_AUTHORITATIVE);
	unsigned at = hw_partition_of("gateway-a", 9);
	gateway("gateway-a");
	beat_for(20);
	world_say(w, "$SYS/bridge", "off", false);
	world_pass(w, 5 * S);
	ck_assert(hw_monitor_count_unjudged(w->m, w->now, 1000));
	struct hw_group_judging is = hw_monitor_judging(w->m, 0);
	ck_assert(!hw_partitions_has(&is.online, at));
	world_pass(w, 60 * S);
	ck_assert(world_is(w, "gateway-a", HW_STATE_ONLINE));
	ck_assert(hw_monitor_may_be_unjudged(w->m));
	ck_assert(hw_monitor_count_unjudged(w->m, w->now, 1000));
	is = hw_monitor_judging(w->m, 0);
	ck_assert(hw_partitions_has(&is.online, at));
	ck_assert(hw_partitions_has(&is.late, at));
	world_say(w, "$SYS/bridge", "on", false);
	beat_for(100);
	ck_assert(hw_monitor_count_unjudged(w->m, w->now, 1000));
	is = hw_monitor_judging(w->m, 0);
	ck_assert(!hw_partitions_has(&is.online, at));
}
END_TEST

/* --- take --------------------------------------------------------------------------- */

static void many(int n, const char *gw)
{
	char id[16];
	for (int k = 0; k < n; k++) {
		snprintf(id, sizeof(id), "v%d", k);
		valve(gw, id);
	}
}

static unsigned taken(void)
{
	return (unsigned)hw_monitor_stats(w->m)->transitions[HW_REASON_PARENT];
}

START_TEST(test_a_dead_parent_takes_its_children)
{
	begin(HW_PARENT_TAKE, false);
	gateway("gateway-a");
	gateway("gateway-b");
	many(100, "a");
	valve("b", "other");
	world_say(w, "gw/gateway-a/up", "{\"online\":false}", false);
	world_pass(w, S);
	ck_assert_uint_eq(taken(), 100);
	ck_assert(world_is(w, "other", HW_STATE_ONLINE));
	ck_assert_int_eq(hw_device_reason(world_device(w, "v7")), HW_REASON_PARENT);
	valve("a", "v7"); /* its next heartbeat brings it back, and it stays */
	world_pass(w, 5 * S);
	ck_assert(world_is(w, "v7", HW_STATE_ONLINE));
	ck_assert_uint_eq(taken(), 100);
}
END_TEST

START_TEST(test_a_child_that_was_heard_since_stays)
{
	begin(HW_PARENT_TAKE, false);
	gateway("gateway-a");
	many(3, "a");
	world_say(w, "gw/gateway-a/up", "{\"online\":false}", false);
	world_until(w, w->now.mono.ns + MS); /* its barriers are not back yet */
	valve("a", "v1");
	world_pass(w, S);
	ck_assert_uint_eq(taken(), 2);
	ck_assert(world_is(w, "v1", HW_STATE_ONLINE));
}
END_TEST

/* The goodbye and the heartbeats around it are read in one millisecond. 1: in one batch of messages. */
START_TEST(test_a_child_that_was_heard_in_the_millisecond_of_the_goodbye)
{
	static const char *const topics[] = {"plant/a/before/up", "gw/gateway-a/up", "plant/a/after/up",
	                                     "gw/gateway-b/up", "plant/b/other/up"};
	struct hw_message msgs[5];
	begin(HW_PARENT_TAKE, false);
	for (int k = 0; k < 2; k++) { /* a device's first heartbeats are not on the fast path */
		gateway("gateway-a");
		gateway("gateway-b");
		valve("a", "before");
		valve("a", "after");
		valve("b", "other");
	}
	world_until(w, w->now.mono.ns + 5 * MS);
	for (int k = 0; k < 5; k++) {
		const char *payload = k % 2 ? "{\"online\":false}" : "";
		msgs[k] = (struct hw_message){.topic = topics[k],
		                              .topic_len = strlen(topics[k]),
		                              .payload = payload,
		                              .payload_len = strlen(payload)};
		if (_i == 0)
			world_say(w, topics[k], payload, false);
	}
	if (_i == 1)
		ck_assert_uint_eq(hw_monitor_messages(w->m, w->now, msgs, 5), 5);
	world_pass(w, S);
	ck_assert(world_is(w, "gateway-a", HW_STATE_OFFLINE));
	ck_assert(world_is(w, "gateway-b", HW_STATE_OFFLINE));
	ck_assert_uint_eq(taken(), 1);
	ck_assert(world_is(w, "before", HW_STATE_OFFLINE));
	world_pass(w, 20 * S); /* each stays until its own deadline */
	ck_assert(world_is(w, "after", HW_STATE_OFFLINE));
	ck_assert_uint_eq(taken(), 1);
}
END_TEST

/* The device's heartbeat and its own goodbye are read in the millisecond of another device's goodbye. With two readers,
 * the device's goodbye may be older than its heartbeat, and is held. */
START_TEST(test_a_goodbye_in_the_millisecond_of_another_one)
{
	struct hw_monitor_conf conf = world_conf();
	conf.readers = 2;
	make_groups(HW_PARENT_TAKE, false);
	start(&conf);
	hw_monitor_link(w->m, w->now, 1, true);
	gateway("gateway-a");
	gateway("gateway-b");
	valve("a", "v");
	valve("b", "u");
	world_until(w, w->now.mono.ns + 5 * MS);
	world_say(w, "gw/gateway-a/up", "{\"online\":false}", false);
	gateway("gateway-b");
	world_say(w, "gw/gateway-b/up", "{\"online\":false}", false);
	ck_assert(world_device(w, "gateway-b")->flags & HW_FLAG_HELD);
}
END_TEST

/* The goodbye may be older than a heartbeat that the other reader has read before it. 0: both are read at nearly the
 * same time. 1: the second reader is behind. */
START_TEST(test_a_child_that_another_reader_may_have_heard_since_stays)
{
	struct hw_monitor_conf conf = world_conf();
	conf.readers = 2;
	make_groups(HW_PARENT_TAKE, false);
	start(&conf);
	hw_monitor_link(w->m, w->now, 1, true);
	w->back_on = 3;
	gateway("gateway-a");
	valve("a", "before");
	valve("a", "near");
	world_pass(w, 7 * S);
	valve("a", "before");
	uint64_t sent = hw_monitor_stats(w->m)->barriers_sent;
	while (hw_monitor_stats(w->m)->barriers_sent == sent)
		world_pass(w, 10 * MS);
	world_pass(w, 10 * MS);
	uint64_t back = hw_monitor_stats(w->m)->barriers_sent;
	if (_i == 1)
		w->back_on = 1;
	while (_i == 1 && hw_monitor_stats(w->m)->barriers_sent == back)
		world_pass(w, 10 * MS);
	valve("a", "near");
	world_pass(w, _i == 1 ? 100 * MS : 4 * MS);
	world_say(w, "gw/gateway-a/up", "{\"online\":false}", false);
	while (++back <= hw_monitor_stats(w->m)->barriers_sent)
		hw_monitor_barrier(w->m, w->now, 1, back);
	w->back_on = 3;
	world_pass(w, S);
	ck_assert(world_is(w, "gateway-a", HW_STATE_OFFLINE));
	ck_assert_uint_eq(taken(), 1);
	ck_assert(world_is(w, "near", HW_STATE_ONLINE));
	world_pass(w, 20 * S);
	ck_assert_int_eq(hw_device_reason(world_device(w, "near")), HW_REASON_TIMEOUT);
}
END_TEST

START_TEST(test_another_parent_keeps_a_child)
{
	struct hw_monitor_conf conf = world_conf();
	make_groups(HW_PARENT_TAKE, false);
	groups[1].parents = two_parents;
	groups[1].n_parents = 2;
	start(&conf);
	gateway("gateway-a");
	gateway("backup");
	many(3, "a");
	world_say(w, "gw/gateway-a/up", "{\"online\":false}", false);
	world_pass(w, S);
	ck_assert_uint_eq(taken(), 0);
	world_say(w, "gw/backup/up", "{\"online\":false}", false);
	world_pass(w, S);
	ck_assert_uint_eq(taken(), 3);
}
END_TEST

START_TEST(test_a_taken_parent_takes_its_own_children)
{
	static const char *const chain[] = {"chain/{up}/{id}"};
	static const char *const up[] = {"{up}"};
	struct hw_monitor_conf conf = world_conf();
	make_groups(HW_PARENT_TAKE, false);
	groups[1].heartbeat = chain;
	groups[1].n_heartbeat = 1;
	groups[1].parents = up;
	start(&conf);
	gateway("top");
	world_say(w, "chain/top/middle", "", false);
	world_say(w, "chain/middle/leaf", "", false);
	world_say(w, "gw/top/up", "{\"online\":false}", false);
	world_pass(w, S);
	ck_assert(world_is(w, "middle", HW_STATE_OFFLINE));
	ck_assert(world_is(w, "leaf", HW_STATE_OFFLINE));
}
END_TEST

/* The sweep obeys max_offline_rate; a child that is heard before its turn stays. */
START_TEST(test_a_sweep_is_paced)
{
	struct hw_monitor_conf conf = world_conf();
	make_groups(HW_PARENT_TAKE, false);
	groups[1].max_offline_rate = 10;
	groups[1].timeout_ms = 60000;
	start(&conf);
	gateway("gateway-a");
	many(50, "a");
	world_say(w, "gw/gateway-a/up", "{\"online\":false}", false);
	world_pass(w, 2 * S);
	ck_assert_uint_ge(taken(), 18);
	ck_assert_uint_le(taken(), 22);
	many(50, "a"); /* all of them live */
	world_pass(w, S);
	unsigned before = taken();
	world_pass(w, 10 * S);
	ck_assert_uint_eq(taken(), before);
	world_pass(w, 45 * S);
	ck_assert_uint_eq(taken(), before);
	world_pass(w, 12 * S); /* their own deadlines are found in time, though turns were reserved later */
	ck_assert(world_is(w, "v49", HW_STATE_OFFLINE));
}
END_TEST

START_TEST(test_a_lossy_blindness_ends_a_sweep)
{
	struct hw_monitor_conf conf = world_conf();
	make_groups(HW_PARENT_TAKE, false);
	groups[1].max_offline_rate = 10;
	groups[1].timeout_ms = 60000;
	start(&conf);
	gateway("gateway-a");
	many(50, "a");
	world_say(w, "gw/gateway-a/up", "{\"online\":false}", false);
	world_pass(w, S);
	unsigned before = taken();
	ck_assert_uint_gt(before, 0);
	hw_monitor_link(w->m, w->now, 0, false);
	world_pass(w, 3 * S);
	ck_assert_uint_eq(taken(), before);
	hw_monitor_link(w->m, w->now, 0, true);
	world_pass(w, 30 * S);
	ck_assert_uint_eq(taken(), before);
}
END_TEST

START_TEST(test_a_parent_that_returns_ends_a_sweep)
{
	struct hw_monitor_conf conf = world_conf();
	make_groups(HW_PARENT_TAKE, false);
	groups[1].max_offline_rate = 10;
	groups[1].timeout_ms = 60000;
	start(&conf);
	gateway("gateway-a");
	many(50, "a");
	world_say(w, "gw/gateway-a/up", "{\"online\":false}", false);
	world_pass(w, S);
	gateway("gateway-a");
	unsigned before = taken();
	world_pass(w, 20 * S);
	ck_assert_uint_eq(taken(), before);
}
END_TEST

static void load(const char *id, const char *group, enum hw_state state, const char *parents)
{
	struct hw_stored s = {.id = id,
	                      .id_len = strlen(id),
	                      .group = group,
	                      .state = state,
	                      .reason = state == HW_STATE_ONLINE ? HW_REASON_HEARTBEAT : HW_REASON_TIMEOUT,
	                      .since_ms = w->now.wall_ms - 5000,
	                      .last_seen_ms = w->now.wall_ms - 4000,
	                      .parents = parents,
	                      .seq = 5};
	ck_assert_int_eq(hw_monitor_load(w->m, w->now, &s), 0);
	world_drain(w);
}

START_TEST(test_loaded_states_take_no_child)
{
	begin(HW_PARENT_TAKE, false);
	load("gateway-a", "gateways", HW_STATE_OFFLINE, NULL);
	load("v", "valves", HW_STATE_ONLINE, "gateway-a");
	world_pass(w, 5 * S);
	ck_assert(world_is(w, "v", HW_STATE_ONLINE));
}
END_TEST

static void own(const char *id)
{
	hw_monitor_role(w->m, hw_partition_of(id, strlen(id)), HW_ROLE_AUTHORITATIVE, 7);
	world_drain(w);
}

static struct hw_event other(const char *id, enum hw_state state, uint64_t seq)
{
	struct hw_event e = entry(id, state, seq);
	e.group = "gateways";
	e.group_len = 8;
	return e;
}

/* Another node decides about the gateway, this one about a valve: the stream reports the gateway. */
START_TEST(test_the_owner_of_the_child_decides)
{
	struct hw_monitor_conf conf = world_conf();
	make_groups(HW_PARENT_TAKE, false);
	conf.several = true;
	start(&conf);
	own("v1");
	ck_assert_uint_ne(hw_partition_of("v1", 2), hw_partition_of("v2", 2));
	ck_assert_uint_ne(hw_partition_of("v1", 2), hw_partition_of("gateway-a", 9));
	gateway("gateway-a");
	struct hw_event e = other("gateway-a", HW_STATE_ONLINE, 1);
	ck_assert_int_eq(hw_monitor_stream(w->m, w->now, &e), 0);
	valve("a", "v1");
	valve("a", "v2");
	world_pass(w, S);
	e = other("gateway-a", HW_STATE_OFFLINE, 2);
	ck_assert_int_eq(hw_monitor_stream(w->m, w->now, &e), 0);
	world_pass(w, S);
	ck_assert(world_is(w, "v1", HW_STATE_OFFLINE));
	ck_assert_uint_eq(taken(), 1);
	own("v2"); /* a takeover takes no child */
	world_pass(w, S);
	ck_assert_uint_eq(taken(), 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("family");
	TCase *t = tcase_create("heartbeats");
	tcase_add_checked_fixture(t, NULL, teardown);
	tcase_add_test(t, test_the_last_heartbeat_names_the_parent);
	tcase_add_test(t, test_a_device_is_no_ancestor_of_itself);
	tcase_add_test(t, test_hostile_captures);
	tcase_add_test(t, test_a_reload_takes_parents_away);
	tcase_add_loop_test(t, test_another_group_has_no_parents, 0, 2);
	tcase_add_test(t, test_the_parents_of_a_batch);
	tcase_add_test(t, test_stored_parents);
	tcase_add_test(t, test_a_forgotten_parent_is_unknown);
	suite_add_tcase(s, t);
	t = tcase_create("waiting");
	tcase_add_checked_fixture(t, NULL, teardown);
	tcase_add_test(t, test_a_heard_parent_ends_the_wait);
	tcase_add_test(t, test_wait_until_the_parents_deadline);
	tcase_add_test(t, test_a_long_silence_leaves_time_to_settle);
	tcase_add_test(t, test_many_heartbeats_between_two_checks_are_no_silence);
	tcase_add_test(t, test_a_long_silence_that_ends_later);
	tcase_add_test(t, test_without_a_known_parent_nothing_is_written);
	suite_add_tcase(s, t);
	t = tcase_create("proofs");
	tcase_add_checked_fixture(t, NULL, teardown);
	tcase_add_test(t, test_a_child_proves_its_parent);
	tcase_add_test(t, test_a_proved_parent_moves_with_its_filter);
	tcase_add_test(t, test_a_child_voids_no_goodbye);
	tcase_add_loop_test(t, test_a_child_proves_its_parent_at_the_last_moment, 0, 2);
	tcase_add_test(t, test_without_child_proves_a_child_proves_nothing);
	tcase_add_loop_test(t, test_a_parent_whose_children_cannot_be_heard, 0, 4);
	tcase_add_test(t, test_a_parent_that_dies_while_its_children_cannot_be_heard);
	tcase_add_test(t, test_the_childrens_group_must_hear_before_a_parent_goes_offline);
	tcase_add_test(t, test_a_resting_parent_counts_as_unjudged);
	suite_add_tcase(s, t);
	t = tcase_create("take");
	tcase_add_checked_fixture(t, NULL, teardown);
	tcase_add_test(t, test_a_dead_parent_takes_its_children);
	tcase_add_test(t, test_a_child_that_was_heard_since_stays);
	tcase_add_loop_test(t, test_a_child_that_was_heard_in_the_millisecond_of_the_goodbye, 0, 2);
	tcase_add_test(t, test_a_goodbye_in_the_millisecond_of_another_one);
	tcase_add_loop_test(t, test_a_child_that_another_reader_may_have_heard_since_stays, 0, 2);
	tcase_add_test(t, test_another_parent_keeps_a_child);
	tcase_add_test(t, test_a_taken_parent_takes_its_own_children);
	tcase_add_test(t, test_a_sweep_is_paced);
	tcase_add_test(t, test_a_lossy_blindness_ends_a_sweep);
	tcase_add_test(t, test_a_parent_that_returns_ends_a_sweep);
	tcase_add_test(t, test_loaded_states_take_no_child);
	tcase_add_test(t, test_the_owner_of_the_child_decides);
	suite_add_tcase(s, t);
	return suite_run(s);
}

/* SPDX-License-Identifier: MIT */
/* Parents on several nodes: their children prove them on other nodes only (src/core/parent_peers.h), or another node
 * believes their goodbye. */
#include "../suite.h"
#include "gate_world.h"

static const char *const gateways[] = {"gw/{id}/up"};
static const char *const valves[] = {"plant/{gw}/{id}/up"};
static const char *const parent[] = {"gateway-{gw}"};

static struct hw_group_spec groups[2];

static struct hw_monitor_conf mirror_conf(void)
{
	struct hw_monitor_conf conf = world_conf();
	conf.several = true;
	conf.blind_lasts_ms = 4000;
	return conf;
}

/* A node of a mirror that owns all partitions. It has the groups `gateways` and, if `n` is 2, `valves`. */
static void begin(size_t n)
{
	struct hw_monitor_conf conf = mirror_conf();
	groups[0] = world_group("gateways", 30000);
	groups[0].heartbeat = gateways;
	groups[0].n_heartbeat = 1;
	groups[1] = world_group("valves", 20000);
	groups[1].heartbeat = valves;
	groups[1].n_heartbeat = 1;
	groups[1].parents = parent;
	groups[1].n_parents = 1;
	groups[1].child_proves = true;
	w = world_new(&conf, groups, n);
	world_connect(w);
	role_of_all(HW_ROLE_AUTHORITATIVE);
}

static void reconfigure(size_t n)
{
	struct hw_monitor_conf conf = mirror_conf();
	ck_assert_int_eq(hw_monitor_reconfigure(w->m, w->now, &conf, groups, n), 0);
}

/* The groups of another node that has both, with child_proves: its form of the valves differs by `other`. It proves
 * gateway-a, of its group `name`, unless `name` is NULL. */
static bool peer_of(uint64_t other, const char *name)
{
	struct hw_group_spec theirs[2] = {groups[0], groups[1]};
	struct hw_groups both;
	theirs[1].child_proves = true;
	hw_groups_init(&both);
	ck_assert_int_eq(hw_groups_set(&both, theirs, 2), 0);
	struct hw_peer_group peers[2];
	for (int k = 0; k < 2; k++)
		peers[k] = (struct hw_peer_group){.name = both.all[k]->name,
		                                  .form = both.all[k]->form_hash + (k ? other : 0),
		                                  .proves = hw_group_proves(both.all[k])};
	if (name) {
		peers[0].name = name;
		hw_partitions_add(&peers[0].proven, hw_partition_of("gateway-a", 9));
	}
	bool reread = hw_monitor_peer_proofs(w->m, w->now, peers, 2);
	hw_groups_fini(&both);
	return reread;
}

static bool peer(uint64_t other, bool proves)
{
	return peer_of(other, proves ? "gateways" : NULL);
}

static bool is_late(void)
{
	ck_assert(hw_monitor_count_unjudged(w->m, w->now, 1000));
	struct hw_group_judging is = hw_monitor_judging(w->m, 0);
	return hw_partitions_has(&is.late, hw_partition_of("gateway-a", 9));
}

static void up(void)
{
	world_say(w, "gw/gateway-a/up", "", false);
	world_say(w, "gw/gateway-b/up", "", false);
	ck_assert_uint_ne(hw_partition_of("gateway-a", 9), hw_partition_of("gateway-b", 9));
}

/* This node lacks the children's group (0), has it in another form (1), or without child_proves (2). */
START_TEST(test_a_parent_that_another_node_proves_is_unjudged)
{
	begin(_i == 0 ? 1 : 2);
	if (_i == 2) {
		groups[1].child_proves = false;
		reconfigure(2);
	}
	uint64_t other = _i == 1;
	peer(other, true);
	up();
	world_pass(w, 31 * S);
	ck_assert(world_is(w, "gateway-b", HW_STATE_OFFLINE));
	ck_assert(!is_late());
	ck_assert_uint_eq(hw_monitor_unjudged_of(w->m, 0), 1);
	world_pass(w, 5 * S);
	ck_assert(is_late());
	world_pass(w, 60 * S);
	ck_assert(world_is(w, "gateway-a", HW_STATE_ONLINE));
	peer(other, false); /* the other node no longer proves the gateway */
	world_pass(w, 31 * S);
	ck_assert(world_is(w, "gateway-a", HW_STATE_OFFLINE));
	ck_assert_uint_eq(hw_monitor_stats(w->m)->transitions[HW_REASON_TIMEOUT], 2);
	ck_assert(!is_late());
}
END_TEST

/* The other node proves a device of another group, in the same partition. */
START_TEST(test_a_proof_counts_for_its_group)
{
	begin(1);
	peer_of(0, "cellars");
	up();
	world_pass(w, 31 * S);
	ck_assert(world_is(w, "gateway-a", HW_STATE_OFFLINE));
}
END_TEST

START_TEST(test_a_goodbye_counts_all_the_same)
{
	begin(1);
	peer(0, true);
	up();
	world_say(w, "gw/gateway-a/up", "{\"online\":false}", false);
	world_pass(w, S);
	ck_assert(world_is(w, "gateway-a", HW_STATE_OFFLINE));
}
END_TEST

START_TEST(test_nodes_with_the_same_groups_judge)
{
	begin(2);
	ck_assert(!peer(0, true));
	up();
	world_pass(w, 31 * S);
	ck_assert(world_is(w, "gateway-a", HW_STATE_OFFLINE));
}
END_TEST

/* A reload adds the group. The children become known with their next heartbeats; until then the parent is not judged:
 * its deadline passes before the nodes' groups are compared (0), or after that (1). */
START_TEST(test_the_children_of_a_new_group_have_time_to_be_heard)
{
	begin(1);
	peer(0, true);
	up();
	world_pass(w, 29 * S);
	reconfigure(2);
	if (_i == 0)
		world_pass(w, 10 * S);
	ck_assert(peer(0, true)); /* read the store again */
	ck_assert(!peer(0, true));
	world_pass(w, 19 * S);
	ck_assert(world_is(w, "gateway-a", HW_STATE_ONLINE));
	world_say(w, "plant/a/v/up", "", false);
	world_pass(w, 19 * S);
	world_say(w, "plant/a/v/up", "", false);
	world_pass(w, 29 * S);
	ck_assert(world_is(w, "gateway-a", HW_STATE_ONLINE));
	world_pass(w, 31 * S);
	ck_assert(world_is(w, "gateway-a", HW_STATE_OFFLINE));
}
END_TEST

/* A reload removes the group. This node rests at once, before the other nodes' groups are compared again. */
START_TEST(test_a_removed_group)
{
	begin(2);
	peer(0, true);
	up();
	world_say(w, "plant/a/v/up", "", false);
	world_pass(w, 15 * S);
	reconfigure(1);
	world_pass(w, 40 * S);
	ck_assert(world_is(w, "gateway-a", HW_STATE_ONLINE));
	ck_assert(world_is(w, "gateway-b", HW_STATE_OFFLINE));
}
END_TEST

/* The set that this node publishes: partitions of online parents with an online child that proves them. */
START_TEST(test_the_proven_partitions)
{
	begin(2);
	unsigned at = hw_partition_of("gateway-a", 9);
	ck_assert(hw_monitor_proven_known(w->m));
	up();
	for (int k = 0; k < 40; k++) {
		char topic[32];
		snprintf(topic, sizeof(topic), "plant/a/v%d/up", k);
		world_say(w, topic, "", false);
	}
	world_pass(w, 2 * S);
	struct hw_partitions in = hw_monitor_proven_in(w->m, 0);
	ck_assert(hw_partitions_has(&in, at));
	ck_assert_uint_eq(hw_partitions_count(&in), 1);
	world_pass(w, 15 * S);
	world_say(w, "plant/a/v17/up", "", false);
	world_pass(w, 10 * S); /* the others are offline */
	ck_assert(world_is(w, "v18", HW_STATE_OFFLINE));
	in = hw_monitor_proven_in(w->m, 0);
	ck_assert(hw_partitions_has(&in, at));
	world_pass(w, 12 * S);
	ck_assert(world_is(w, "gateway-a", HW_STATE_ONLINE));
	in = hw_monitor_proven_in(w->m, 0);
	ck_assert(!hw_partitions_any(&in));
	world_say(w, "plant/a/v17/up", "", false);
	world_pass(w, 2 * S);
	in = hw_monitor_proven_in(w->m, 0);
	ck_assert(hw_partitions_has(&in, at));
	world_say(w, "gw/gateway-a/up", "{\"online\":false}", false);
	world_pass(w, 2 * S);
	ck_assert(world_is(w, "v17", HW_STATE_ONLINE));
	in = hw_monitor_proven_in(w->m, 0);
	ck_assert(!hw_partitions_any(&in));
}
END_TEST

/* Before the store is read, the children are not known, so no set is published. */
START_TEST(test_the_proven_partitions_are_known_after_loading)
{
	begin(2);
	world_free(w);
	struct hw_monitor_conf conf = mirror_conf();
	conf.loading = true;
	w = world_new(&conf, groups, 2);
	world_connect(w);
	ck_assert(!hw_monitor_proven_known(w->m));
	up();
	world_say(w, "plant/a/v/up", "", false);
	world_pass(w, 5 * S);
	ck_assert(!hw_monitor_proven_known(w->m));
	hw_monitor_loaded(w->m);
	ck_assert(!hw_monitor_proven_known(w->m));
	world_pass(w, 5 * S);
	ck_assert(hw_monitor_proven_known(w->m));
}
END_TEST

/* A child that this node knows from the store, and that was heard in another form. If another node has that form, that
 * node proves the parent. Otherwise no node hears the child, and the parent must not go offline on any. */
START_TEST(test_a_child_that_is_heard_elsewhere_is_no_proof)
{
	begin(2);
	peer(1, false);
	up();
	struct hw_stored child = {.id = "v",
	                          .id_len = 1,
	                          .group = "valves",
	                          .state = HW_STATE_ONLINE,
	                          .reason = HW_REASON_HEARTBEAT,
	                          .since_ms = w->now.wall_ms - 5000,
	                          .last_seen_ms = w->now.wall_ms - 4000,
	                          .seq = 5,
	                          .parents = "gateway-a",
	                          .form = hw_monitor_groups(w->m)->all[1]->form_hash + (_i == 0 ? 1 : 2)};
	ck_assert_int_eq(hw_monitor_load(w->m, w->now, &child), 0);
	world_drain(w);
	world_pass(w, 2 * S);
	struct hw_partitions in = hw_monitor_proven_in(w->m, 0);
	ck_assert_uint_eq(hw_partitions_count(&in), _i == 0 ? 0 : 1);
}
END_TEST

/* The goodbye was read in a blindness, so it is void here. Its time counts all the same: a child that was heard since
 * then stays. 1: as above, but the entry that the gateway is online, as of a heartbeat before the goodbye, is read only
 * after the goodbye. 2: the gateway was heard again before this node reads that the other one believes the goodbye.
 * 3: the gateway and its child were heard again for longer than a timeout, so the goodbye that the other node believes
 * is a later one. 4: as in 1, but without the blindness, and the clock of the other node is ahead. */
START_TEST(test_a_goodbye_that_only_another_node_believes)
{
	begin(2);
	groups[1].parent_death = HW_PARENT_TAKE;
	reconfigure(2);
	hw_monitor_role(w->m, hw_partition_of("gateway-a", 9), HW_ROLE_WATCHES, 0);
	struct hw_event e = entry("gateway-a", _i % 3 == 1 ? HW_STATE_OFFLINE : HW_STATE_ONLINE, 1);
	e.group = "gateways";
	e.group_len = 8;
	ck_assert_int_eq(hw_monitor_stream(w->m, w->now, &e), 0);
	up();
	world_say(w, "plant/a/v1/up", "", false);
	world_say(w, "plant/a/v2/up", "", false);
	hw_monitor_link(w->m, w->now, 0, _i == 4);
	world_pass(w, S);
	world_say(w, "gw/gateway-a/up", "{\"online\":false}", false);
	ck_assert_uint_eq(hw_monitor_stats(w->m)->goodbyes_void, _i % 3 != 1);
	hw_monitor_link(w->m, w->now, 0, true);
	world_pass(w, S);
	if (_i == 2 || _i == 3) /* it has returned, which the other node writes next */
		world_say(w, "gw/gateway-a/up", "", false);
	world_say(w, "plant/a/v1/up", "", false);
	world_pass(w, S);
	for (int k = 0; k < 4 && _i == 3; k++) {
		world_pass(w, 10 * S);
		world_say(w, "gw/gateway-a/up", "", false);
		world_say(w, "plant/a/v1/up", "", false);
		world_say(w, "plant/a/v2/up", "", false);
	}
	e.state = HW_STATE_ONLINE;
	e.seq = 2;
	e.last_seen_ms += _i == 4 ? 40000 : 0;
	if (_i % 3 == 1)
		ck_assert_int_eq(hw_monitor_stream(w->m, w->now, &e), 0);
	ck_assert(world_is(w, "gateway-a", HW_STATE_ONLINE));
	e.state = HW_STATE_OFFLINE;
	e.reason = HW_REASON_WILL;
	e.seq = 3;
	ck_assert_int_eq(hw_monitor_stream(w->m, w->now, &e), 0);
	world_pass(w, S);
	ck_assert(world_is(w, "gateway-a", HW_STATE_OFFLINE));
	ck_assert(world_is(w, "v1", _i == 3 ? HW_STATE_OFFLINE : HW_STATE_ONLINE));
	ck_assert(world_is(w, "v2", HW_STATE_OFFLINE));
}
END_TEST

/* Redis fails over to a replica that lacks the gateway's death, and its owner writes the same entry again. A child that
 * was heard after the death stays online. */
START_TEST(test_a_death_that_is_read_again)
{
	unsigned budget = 1000;
	struct hw_ref gone;
	begin(2);
	groups[1].parent_death = HW_PARENT_TAKE;
	reconfigure(2);
	hw_monitor_role(w->m, hw_partition_of("gateway-a", 9), HW_ROLE_WATCHES, 0);
	up();
	struct hw_event online = entry("gateway-a", HW_STATE_ONLINE, 1),
			death = entry("gateway-a", HW_STATE_OFFLINE, 2);
	online.group = death.group = "gateways";
	online.group_len = death.group_len = 8;
	ck_assert_int_eq(hw_monitor_stream(w->m, w->now, &online), 0);
	world_say(w, "plant/a/v1/up", "", false);
	world_say(w, "plant/a/v2/up", "", false);
	world_pass(w, S);
	ck_assert_int_eq(hw_monitor_stream(w->m, w->now, &death), 0);
	world_pass(w, S);
	ck_assert(world_is(w, "v1", HW_STATE_OFFLINE));
	world_say(w, "plant/a/v1/up", "", false);
	ck_assert(world_is(w, "v1", HW_STATE_ONLINE));
	world_pass(w, S);
	ck_assert_int_eq(hw_monitor_reread_begin(w->m, true), 0);
	ck_assert_int_eq(hw_monitor_stream(w->m, w->now, &online), 0);
	ck_assert(!hw_monitor_reread_end(w->m, w->now, &budget, &gone));
	ck_assert(world_is(w, "gateway-a", HW_STATE_ONLINE));
	ck_assert_int_eq(hw_monitor_stream(w->m, w->now, &death), 0);
	world_pass(w, S);
	ck_assert(world_is(w, "gateway-a", HW_STATE_OFFLINE));
	ck_assert(world_is(w, "v1", HW_STATE_ONLINE));
	death.seq = 4; /* another death takes the child, too */
	online.seq = 3;
	ck_assert_int_eq(hw_monitor_stream(w->m, w->now, &online), 0);
	ck_assert_int_eq(hw_monitor_stream(w->m, w->now, &death), 0);
	world_pass(w, S);
	ck_assert(world_is(w, "v1", HW_STATE_OFFLINE));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("parent_peers");
	TCase *t = tcase_create("core");
	tcase_add_checked_fixture(t, NULL, teardown);
	tcase_add_loop_test(t, test_a_parent_that_another_node_proves_is_unjudged, 0, 3);
	tcase_add_test(t, test_a_proof_counts_for_its_group);
	tcase_add_test(t, test_a_goodbye_counts_all_the_same);
	tcase_add_test(t, test_nodes_with_the_same_groups_judge);
	tcase_add_loop_test(t, test_the_children_of_a_new_group_have_time_to_be_heard, 0, 2);
	tcase_add_test(t, test_a_removed_group);
	tcase_add_test(t, test_the_proven_partitions);
	tcase_add_test(t, test_the_proven_partitions_are_known_after_loading);
	tcase_add_loop_test(t, test_a_child_that_is_heard_elsewhere_is_no_proof, 0, 2);
	tcase_add_loop_test(t, test_a_goodbye_that_only_another_node_believes, 0, 5);
	tcase_add_test(t, test_a_death_that_is_read_again);
	suite_add_tcase(s, t);
	return suite_run(s);
}

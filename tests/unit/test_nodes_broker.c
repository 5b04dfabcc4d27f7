/* SPDX-License-Identifier: MIT */
/* One node among others: the fence at the broker, with a test for each rule; and what a standby does differently. */
#include "../suite.h"
#include "nodes_rig.h"

/* --- the fence at the broker ------------------------------------------------------------------------------------- */

/* What the set says is what is said one by one. */
static unsigned publishing(void)
{
	const struct hw_partitions set = hw_nodes_publishing(n);
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		ck_assert(hw_partitions_has(&set, p) == hw_nodes_publishes(n, p));
	return hw_partitions_count(&set);
}

START_TEST(what_is_proven_is_published)
{
	begin_owner();
	ck_assert(!hw_nodes_publishes(n, 3));
	ck_assert_uint_eq(publishing(), 0);
	prove();
	ck_assert(hw_nodes_publishes(n, 3));
	ck_assert_uint_eq(publishing(), HW_PARTITIONS);
	hw_nodes_redis(n, now, false);
	pass(10 * LEASE_MS, NULL);
	ck_assert(hw_nodes_publishes(n, 3)); /* with Redis away it goes on as one node does */
	hw_nodes_session(n, now, false);
	hw_nodes_session(n, now, true);
	turn();
	prove();
	ck_assert(!hw_nodes_publishes(n, 3)); /* but a new session needs a renewal */
	ck_assert_uint_eq(publishing(), 0);
}
END_TEST

START_TEST(a_greater_token_is_yielded_to_at_once)
{
	uint64_t claims[HW_PARTITIONS];
	struct hw_fencing_token known[HW_PARTITIONS] = {{0}};
	begin_owner();
	prove();
	claims_of(claims, 3, last(HW_NODES_CLAIM)->epoch);
	hw_nodes_presence(n, now, "a", claims, NULL); /* the same epoch, and a lesser name */
	ck_assert(hw_nodes_owns(n, 3));
	hw_nodes_presence(n, now, "z", claims, NULL);
	ck_assert(!hw_nodes_owns(n, 3) && !hw_nodes_publishes(n, 3));
	ck_assert_uint_eq(publishing(), HW_PARTITIONS - 1);
	known[4] = hw_fencing_token_make(last(HW_NODES_CLAIM)->epoch + 1, "gone");
	hw_nodes_presence(n, now, "a", NULL, known);
	ck_assert(!hw_nodes_owns(n, 4));
	hw_nodes_refused(n, now, 5, &known[4]);
	ck_assert(!hw_nodes_owns(n, 5));
	turn();
	ck_assert_uint_eq(ordered(HW_NODES_LOSE), 3);
}
END_TEST

static void begin_blocked(bool lives)
{
	uint64_t claims[HW_PARTITIONS];
	if (lives)
		enter("b", 7, false);
	claims_of(claims, 3, 1);
	begin();
	hw_nodes_presence(n, now, "b", claims, NULL);
	pass(LEASE_MS + 1200, NULL);
	prove();
	ck_assert(!hw_nodes_publishes(n, 3));
	ck_assert(hw_nodes_publishes(n, 4));
	ck_assert_uint_eq(publishing(), HW_PARTITIONS - 1);
}

START_TEST(who_is_no_member_is_evicted_at_once)
{
	begin_blocked(false);
	ck_assert_str_eq(last(HW_NODES_EVICT)->node, "b");
	uint64_t claims[HW_PARTITIONS] = {0};
	hw_nodes_presence(n, now, "b", claims, NULL);
	ck_assert(hw_nodes_publishes(n, 3));
}
END_TEST

START_TEST(of_a_live_member_the_withdrawal_is_awaited)
{
	begin_blocked(true);
	ck_assert_ptr_null(last(HW_NODES_EVICT));
	pass(HW_WITHDRAWAL_MS - 100, NULL);
	ck_assert_ptr_null(last(HW_NODES_EVICT));
	pass(200, NULL);
	ck_assert_uint_eq(hw_nodes_stats(n)->evictions, 1);
	pass(HW_EVICT_AGAIN_MS, NULL);
	ck_assert_uint_eq(hw_nodes_stats(n)->evictions, 2);
}
END_TEST

START_TEST(who_may_not_evict_waits_for_the_keepalive)
{
	begin_blocked(false);
	hw_nodes_not_evicted(n, now, "b");
	pass(15000 + 4900, NULL);
	ck_assert(!hw_nodes_publishes(n, 3));
	ck_assert_uint_eq(hw_nodes_stats(n)->evictions, 1);
	pass(200, NULL);
	ck_assert(hw_nodes_publishes(n, 3));
}
END_TEST

/* --- standby ----------------------------------------------------------------------------------------------------- */

static void setup_standby(void)
{
	struct hw_nodes_conf conf = {
		.node = "m", .run = 1, .mode = HW_NODES_STANDBY, .lease_ms = LEASE_MS, .keepalive_ms = 10000};
	setup();
	hw_nodes_free(n);
	n = hw_nodes_new(&conf, now);
}

START_TEST(a_standby_claims_everything_or_nothing)
{
	enter("b", 7, false);
	owner[17].token = hw_fencing_token_make(1700000000, "b");
	begin();
	pass(3 * LEASE_MS, NULL);
	ck_assert_ptr_null(last(HW_NODES_CLAIM));
	owner[17].released = true;
	pass(1100, NULL);
	ck_assert_uint_eq(owned(), HW_PARTITIONS);
}
END_TEST

/* A node that the fleet is given to rather than to "m", or the other way round. */
static const char *peer(bool preferred)
{
	static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
	size_t i = 0;
	while ((hw_partition_weight(0, names[i]) > hw_partition_weight(0, "m")) != preferred)
		i++;
	return names[i];
}

/* While one partition is not flushed, the node releases no other partition. */
START_TEST(a_standby_releases_the_fleet_as_a_whole)
{
	begin_owner();
	prove();
	enter(peer(true), 8, true);
	pass(2 * LEASE_MS, NULL);
	logged = 0;
	for (unsigned p = 1; p < HW_PARTITIONS; p++)
		hw_nodes_flushed(n, now, p, true);
	turn();
	prove();
	pass(1000, NULL);
	ck_assert_ptr_null(last(HW_NODES_RELEASE));
	hw_nodes_flushed(n, now, 0, true);
	turn();
	prove();
	ck_assert_uint_eq(ordered(HW_NODES_RELEASE), HW_PARTITIONS);
	ck_assert_uint_eq(owned(), 0);
}
END_TEST

/* Owner of the fleet, which it has not heard yet; and another node is ready. */
static void begin_unheard(void)
{
	begin();
	pass(LEASE_MS + 100, NULL);
	hw_nodes_blind(n, now, true);
	while (!owned())
		pass(100, NULL);
	enter(peer(false), 8, true);
}

/* It subscribes only when it owns: what it needs for that, longer than the lease, must not hand the fleet on. */
START_TEST(a_standby_that_begins_is_not_blind_for_a_lease)
{
	begin_unheard();
	pass(HW_BEGIN_LEASES * LEASE_MS - 300, NULL);
	ck_assert_uint_eq(owned(), HW_PARTITIONS);
	pass(400, NULL);
	ck_assert_uint_eq(owned(), 0);
}
END_TEST

/* It is the preferred owner still, and its driver takes it for ready. */
START_TEST(a_node_that_gave_up_blind_claims_only_once_it_sees)
{
	begin_owner();
	hw_nodes_blind(n, now, false);
	enter(peer(false), 8, true);
	pass(2500, NULL);
	hw_nodes_blind(n, now, true);
	pass(LEASE_MS + 100, NULL);
	ck_assert_uint_eq(owned(), 0);
	ck_assert_uint_eq(ordered(HW_NODES_RELEASE), HW_PARTITIONS);
	logged = 0;
	pass(20 * LEASE_MS, NULL);
	ck_assert_ptr_null(last(HW_NODES_CLAIM));
	hw_nodes_blind(n, now, false);
	pass(1100, NULL);
	ck_assert_uint_eq(owned(), HW_PARTITIONS);
}
END_TEST

/* What it cannot flush is given up with the membership: no renewal keeps the others waiting for it. */
START_TEST(a_node_that_abandons_what_it_has_leaves_at_once)
{
	begin_owner();
	hw_nodes_stop(n, now);
	pass(2000, NULL);
	ck_assert_uint_eq(owned(), HW_PARTITIONS);
	ck_assert_ptr_null(last(HW_NODES_LEAVE));
	logged = 0;
	hw_nodes_abandon(n, now);
	turn();
	ck_assert_uint_eq(owned(), 0);
	ck_assert_uint_eq(ordered(HW_NODES_RELEASE), HW_PARTITIONS);
	ck_assert_ptr_nonnull(last(HW_NODES_LEAVE));
	ck_assert_ptr_nonnull(last(HW_NODES_STOPPED));
	ck_assert_ptr_null(last(HW_NODES_RENEW));
}
END_TEST

/* ... nor does a claim that was under way, and that its answer says was won. */
START_TEST(a_node_that_abandons_takes_nothing_that_was_asked_for)
{
	struct hw_nodes_order o;
	begin();
	pass(LEASE_MS - 500, NULL);
	deaf = true;
	pass(700, NULL);
	ck_assert_ptr_nonnull(last(HW_NODES_CLAIM));
	o = *last(HW_NODES_CLAIM);
	hw_nodes_stop(n, now);
	hw_nodes_abandon(n, now);
	logged = 0;
	pass(5000, NULL);
	ck_assert_ptr_null(last(HW_NODES_RENEW));
	deaf = false;
	struct hw_nodes_answer a = {
		.serial = o.serial, .owners = owner, .now_s = (uint64_t)(now.wall_ms + redis_ahead_ms) / 1000};
	a.result = serve(&o, &a);
	a.members = entry;
	a.n_members = n_entries;
	hw_nodes_answer(n, now, &a);
	turn();
	ck_assert_uint_eq(owned(), 0);
	ck_assert_uint_eq(ordered(HW_NODES_RELEASE), HW_PARTITIONS);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("nodes: broker, standby");
	TCase *tc = tcase_create("the broker");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, what_is_proven_is_published);
	tcase_add_test(tc, a_greater_token_is_yielded_to_at_once);
	tcase_add_test(tc, who_is_no_member_is_evicted_at_once);
	tcase_add_test(tc, of_a_live_member_the_withdrawal_is_awaited);
	tcase_add_test(tc, who_may_not_evict_waits_for_the_keepalive);
	suite_add_tcase(suite, tc);
	tc = tcase_create("standby");
	tcase_add_checked_fixture(tc, setup_standby, teardown);
	tcase_add_test(tc, a_standby_claims_everything_or_nothing);
	tcase_add_test(tc, a_standby_releases_the_fleet_as_a_whole);
	tcase_add_test(tc, a_standby_that_begins_is_not_blind_for_a_lease);
	tcase_add_test(tc, a_node_that_gave_up_blind_claims_only_once_it_sees);
	tcase_add_test(tc, a_node_that_abandons_what_it_has_leaves_at_once);
	tcase_add_test(tc, a_node_that_abandons_takes_nothing_that_was_asked_for);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

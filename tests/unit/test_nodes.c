/* SPDX-License-Identifier: MIT */
/* One node among others: membership and ownership, with a test for each rule. */
#include "../suite.h"
#include "nodes_rig.h"

/* --- membership -------------------------------------------------------------------------------------------------- */

START_TEST(it_joins_before_it_connects)
{
	ck_assert(!hw_nodes_connects(n, now));
	hw_nodes_redis(n, now, true);
	deaf = true;
	turn();
	ck_assert_int_eq(log_[0].kind, HW_NODES_JOIN);
	ck_assert(!hw_nodes_connects(n, now));
	deaf = false;
	hw_nodes_redis(n, now, false);
	hw_nodes_redis(n, now, true);
	turn();
	ck_assert(hw_nodes_connects(n, now));
}
END_TEST

START_TEST(without_redis_it_connects_after_5_s)
{
	pass(4900, NULL);
	ck_assert(!hw_nodes_connects(n, now));
	pass(100, NULL);
	ck_assert(hw_nodes_connects(n, now));
}
END_TEST

START_TEST(a_living_namesake_is_told)
{
	enter("m", 99, true);
	begin();
	ck_assert(!hw_nodes_is_member(n));
	member("m")->count++;
	pass(1000, NULL);
	ck_assert_ptr_nonnull(last(HW_NODES_NAMESAKE));
	ck_assert(!hw_nodes_connects(n, now));
}
END_TEST

/* The first Redis was behind: the count is greater in the second, and no node renews. */
START_TEST(a_count_of_another_redis_is_no_living_namesake)
{
	enter("m", 99, true);
	begin();
	hw_nodes_redis(n, now, false);
	member("m")->count += 7;
	hw_nodes_redis(n, now, true);
	pass(1000, NULL);
	ck_assert_ptr_null(last(HW_NODES_NAMESAKE));
	member("m")->count++;
	pass(1000, NULL);
	ck_assert_ptr_nonnull(last(HW_NODES_NAMESAKE));
}
END_TEST

START_TEST(a_silent_namesake_is_replaced_after_a_lease)
{
	enter("m", 99, true);
	begin();
	pass(LEASE_MS - 100, NULL);
	ck_assert_ptr_null(last(HW_NODES_REMOVE));
	pass(1200, NULL);
	ck_assert_uint_eq(last(HW_NODES_REMOVE)->run, 99);
	ck_assert(hw_nodes_is_member(n));
	ck_assert_ptr_null(last(HW_NODES_NAMESAKE));
}
END_TEST

START_TEST(a_silent_member_is_removed_by_run_and_count)
{
	enter("b", 7, true);
	member("b")->count = 5;
	begin();
	pass(LEASE_MS - 100, "b");
	ck_assert_ptr_null(last(HW_NODES_REMOVE));
	pass(1200, "b");
	ck_assert_str_eq(last(HW_NODES_REMOVE)->node, "b");
	ck_assert_uint_eq(last(HW_NODES_REMOVE)->run, 7);
	ck_assert_uint_eq(last(HW_NODES_REMOVE)->count, 5);
}
END_TEST

/* Run and count of two entries are never the same: who saw the first one last would take the second one for silent. */
START_TEST(who_joins_anew_counts_on)
{
	begin();
	pass(LEASE_MS, NULL);
	const uint64_t joined = last(HW_NODES_JOIN)->count, renewed = last(HW_NODES_RENEW)->count;
	leave("m");
	pass(LEASE_MS, NULL);
	ck_assert(hw_nodes_is_member(n));
	ck_assert_uint_gt(last(HW_NODES_JOIN)->count, renewed);
	ck_assert_uint_gt(renewed, joined);
}
END_TEST

/* 1.4 leases: a lease, its last renewal before, and the looker's next look. */
START_TEST(a_dead_owners_partitions_are_ours_within_the_bound)
{
	unsigned p;
	enter("b", 7, true);
	p = wanted_of("b", "m");
	owner[p].token = hw_fencing_token_make(1700000000, "b");
	begin();
	pass(2 * LEASE_MS, NULL);
	ck_assert(!hw_nodes_owns(n, p));
	pass(LEASE_MS * 14 / 10, "b");
	ck_assert(hw_nodes_owns(n, p));
	ck_assert(!hw_partitions_has(&last(HW_NODES_OWN)->clean, p));
}
END_TEST

START_TEST(a_lapsed_node_removes_and_claims_nothing)
{
	begin();
	ck_assert(!hw_nodes_lapsed(n, now));
	deaf = true;
	pass(1100, NULL); /* a renewal is out that is not answered */
	pass(LEASE_MS * 3 / 5, NULL);
	ck_assert(hw_nodes_lapsed(n, now));
	ck_assert_ptr_null(last(HW_NODES_CLAIM));
	pass(LEASE_MS, NULL);
	ck_assert_ptr_null(last(HW_NODES_CLAIM));
	ck_assert_ptr_null(last(HW_NODES_REMOVE));
}
END_TEST

/* It keeps what it owns, blind or not: another node that uses this Redis could not claim that either. */
START_TEST(a_node_in_doubt_claims_removes_and_gives_nothing)
{
	unsigned has;
	enter("b", 7, true);
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		if (hw_partition_weight(p, "b") > hw_partition_weight(p, "m"))
			owner[p].token = hw_fencing_token_make(1700000000, "b");
	begin_owner();
	has = owned();
	hw_nodes_doubt(n, now, true);
	ck_assert(hw_nodes_lapsed(n, now));
	logged = 0;
	pass(3 * LEASE_MS, "b");
	enter("c", 9, true); /* some of them are for this one rather */
	pass(LEASE_MS, NULL);
	hw_nodes_blind(n, now, true);
	pass(3 * LEASE_MS, NULL);
	ck_assert_uint_eq(owned(), has);
	ck_assert_ptr_null(last(HW_NODES_CLAIM));
	ck_assert_ptr_null(last(HW_NODES_REMOVE));
	ck_assert_ptr_null(last(HW_NODES_DRAIN));
	leave("c");
	hw_nodes_blind(n, now, false);
	hw_nodes_doubt(n, now, false);
	pass(2 * LEASE_MS, "b");
	ck_assert_uint_eq(owned(), HW_PARTITIONS);
}
END_TEST

START_TEST(who_was_removed_owns_nothing_and_joins_anew)
{
	begin_owner();
	leave("m");
	pass(1000, NULL);
	ck_assert_uint_gt(ordered(HW_NODES_LOSE), 0);
	ck_assert_uint_eq(hw_nodes_stats(n)->joins, 2);
}
END_TEST

START_TEST(a_stop_drains_releases_and_leaves)
{
	begin_owner();
	prove();
	hw_nodes_stop(n, now);
	turn();
	ck_assert_uint_eq(ordered(HW_NODES_DRAIN), HW_PARTITIONS); /* at once, whatever the pace */
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		hw_nodes_flushed(n, now, p, true);
	turn();
	ck_assert_ptr_null(last(HW_NODES_RELEASE));
	hw_nodes_acked(n, now, last(HW_NODES_PRESENCE)->serial);
	pass(1100, NULL);
	ck_assert_uint_eq(hw_partitions_count(&last(HW_NODES_RELEASE)->clean), HW_PARTITIONS);
	ck_assert_ptr_nonnull(last(HW_NODES_ATTEND));
	ck_assert_ptr_null(member("m"));
	ck_assert_ptr_nonnull(last(HW_NODES_STOPPED));
	pass(1100, NULL);
	ck_assert_int_gt(hw_nodes_due(n, now).ns,
	                 now.mono.ns); /* otherwise the loop would spin while there is work left */
}
END_TEST

/* --- ownership --------------------------------------------------------------------------------------------------- */

START_TEST(an_epoch_is_greater_than_all_that_is_known)
{
	struct hw_fencing_token known[HW_PARTITIONS] = {{0}};
	owner[1] = (struct hw_record){.token = hw_fencing_token_make(1700000010, "x"), .released = true};
	known[2] = hw_fencing_token_make(1700000020, "y");
	hw_nodes_presence(n, now, "z", NULL, known);
	begin();
	ck_assert_uint_eq(last(HW_NODES_CLAIM)->epoch, 1700000021);
	ck_assert_uint_eq(owned(), 1);
}
END_TEST

/* An epoch that is further ahead of Redis' clock than a day counts nowhere: not before that clock is known, and not in
 * what a member says. */
START_TEST(an_epoch_that_is_impossible)
{
	struct hw_fencing_token known[HW_PARTITIONS] = {{0}};
	known[2] = hw_fencing_token_make(UINT64_MAX / 2, "zz");
	hw_nodes_presence(n, now, "m", NULL, known);
	begin_owner();
	ck_assert_uint_eq(owned(), HW_PARTITIONS);
	ck_assert_uint_le(last(HW_NODES_CLAIM)->epoch, (uint64_t)now.wall_ms / 1000);
	uint64_t claims[HW_PARTITIONS] = {[3] = UINT64_MAX / 2, [4] = 1700000000 + HW_EPOCH_AHEAD_S + 60};
	hw_nodes_presence(n, now, "m2", claims, known);
	turn();
	ck_assert_uint_eq(owned(), HW_PARTITIONS);
	ck_assert_uint_eq(hw_nodes_stats(n)->impossible, 4);
	claims[3] = 1700000000 + HW_EPOCH_AHEAD_S - 60;
	hw_nodes_presence(n, now, "m2", claims, NULL);
	turn();
	ck_assert_uint_eq(owned(), HW_PARTITIONS - 1);
}
END_TEST

/* A node whose clock is wrong claims partitions by Redis' clock, and keeps them when its own clock is set. When Redis'
 * clock is set back, the node claims its partitions again. */
START_TEST(clocks_that_are_wrong)
{
	const int64_t days = INT64_C(40) * 86400000;
	redis_ahead_ms = -days;
	begin_owner();
	ck_assert_uint_eq(owned(), HW_PARTITIONS);
	ck_assert_uint_lt(last(HW_NODES_CLAIM)->epoch, 1700000000 - 39 * 86400);
	now.wall_ms += days;
	redis_ahead_ms -= days;
	pass(2 * LEASE_MS, NULL);
	ck_assert_uint_eq(owned(), HW_PARTITIONS);
	ck_assert_uint_eq(hw_nodes_stats(n)->claims, HW_PARTITIONS);
	redis_ahead_ms -= days;
	pass(3 * LEASE_MS, NULL);
	ck_assert_uint_eq(owned(), HW_PARTITIONS);
	ck_assert_uint_lt(last(HW_NODES_CLAIM)->epoch, 1700000000 - 79 * 86400);
}
END_TEST

/* Only members count at the broker, or those that were: of the last HW_FORMER_MAX the names are known. */
START_TEST(who_is_known)
{
	static const char *const left[] = {"l"};
	ck_assert(hw_nodes_knows(n, "m") && !hw_nodes_knows(n, "a"));
	hw_nodes_passed_over(n, now);
	ck_assert(!hw_nodes_rereads(n));
	enter("a", 2, true);
	begin();
	ck_assert(hw_nodes_knows(n, "a") && !hw_nodes_knows(n, "l"));
	ck_assert(hw_nodes_rereads(n) && !hw_nodes_rereads(n));
	leave("a");
	pass(2000, NULL);
	ck_assert(hw_nodes_knows(n, "a"));
	struct hw_members members;
	hw_members_init(&members, 1);
	hw_members_left(&members, left, 1);
	ck_assert(hw_members_knows(&members, "l") && members.names == 1);
	for (unsigned i = 0; i < HW_FORMER_MAX; i++) {
		char name[8];
		const char *names = name;
		snprintf(name, sizeof(name), "x%u", i);
		hw_members_left(&members, &names, 1);
	}
	ck_assert(!hw_members_knows(&members, "l") && hw_members_knows(&members, "x0"));
}
END_TEST

/* Too few Sentinels confirm this master: a node that joined at another one counts, and ends what this node owns. */
START_TEST(in_doubt_each_node_is_known)
{
	uint64_t claims[HW_PARTITIONS];
	begin_owner();
	hw_nodes_passed_over(n, now);
	ck_assert(!hw_nodes_knows(n, "a") && !hw_nodes_rereads(n));
	hw_nodes_doubt(n, now, true);
	ck_assert(hw_nodes_knows(n, "a") && hw_nodes_rereads(n) && !hw_nodes_rereads(n));
	claims_of(claims, 3, hw_nodes_fencing_token(n, 3).epoch + 1);
	hw_nodes_presence(n, now, "a", claims, NULL);
	turn();
	ck_assert(!hw_nodes_owns(n, 3) && hw_nodes_owns(n, 4));
	hw_nodes_doubt(n, now, false);
	ck_assert(!hw_nodes_knows(n, "a"));
}
END_TEST

START_TEST(an_epoch_is_no_less_than_the_clock)
{
	begin();
	pass(LEASE_MS + 1200, NULL);
	ck_assert_uint_ge(last(HW_NODES_CLAIM)->epoch, 1700000005);
	ck_assert_uint_le(last(HW_NODES_CLAIM)->epoch, 1700000006);
}
END_TEST

/* A Redis that came back empty: the owner, if there is one, gets a lease to store its token again. */
START_TEST(an_absent_record_is_waited_for)
{
	begin();
	pass(LEASE_MS - 1000, NULL);
	ck_assert_uint_eq(owned(), 0);
	pass(2200, NULL);
	ck_assert_uint_eq(owned(), HW_PARTITIONS);
}
END_TEST

START_TEST(a_record_behind_what_was_heard_is_waited_for)
{
	struct hw_fencing_token known[HW_PARTITIONS] = {{0}};
	for (unsigned p = 0; p < HW_PARTITIONS; p++) {
		owner[p] = (struct hw_record){.token = hw_fencing_token_make(1700000000, "x"), .released = true};
		known[p] = hw_fencing_token_make(1700000001, "y");
	}
	known[9].epoch = 0;
	hw_nodes_presence(n, now, "z", NULL, known);
	begin();
	ck_assert_uint_eq(owned(), 1);
	pass(LEASE_MS + 1200, NULL);
	ck_assert_uint_eq(owned(), HW_PARTITIONS);
}
END_TEST

START_TEST(what_another_is_wanted_for_is_left_to_it)
{
	unsigned theirs, ours;
	enter("b", 7, true);
	theirs = wanted_of("b", "m");
	ours = wanted_of("m", "b");
	begin();
	pass(LEASE_MS + 1200, NULL);
	ck_assert(hw_nodes_owns(n, ours));
	ck_assert(!hw_nodes_owns(n, theirs));
}
END_TEST

START_TEST(who_is_not_ready_claims_nothing)
{
	begin();
	hw_nodes_ready(n, now, false);
	pass(3 * LEASE_MS, NULL);
	ck_assert_ptr_null(last(HW_NODES_CLAIM));
}
END_TEST

START_TEST(a_handover_waits_for_two_renewals_and_keeps_its_pace)
{
	begin_owner();
	prove();
	enter("b", 7, true);
	pass(100, NULL);
	ck_assert_ptr_null(last(HW_NODES_DRAIN));
	pass(2100, NULL);
	ck_assert_uint_eq(ordered(HW_NODES_DRAIN), HW_HANDOVERS_A_SECOND);
	unsigned p = 0;
	while (!hw_partitions_has(&last(HW_NODES_DRAIN)->set, p))
		p++;
	ck_assert(hw_nodes_owns(n, p) && !hw_nodes_is_authoritative(n, p));
	hw_nodes_flushed(n, now, p, true);
	turn();
	ck_assert_ptr_null(last(HW_NODES_RELEASE));
	ck_assert_uint_eq(hw_nodes_claims(n)[p], 0);
	hw_nodes_acked(n, now, last(HW_NODES_PRESENCE)->serial);
	turn();
	ck_assert(hw_partitions_has(&last(HW_NODES_RELEASE)->set, p));
	ck_assert(hw_partitions_has(&last(HW_NODES_RELEASE)->clean, p));
	ck_assert(!hw_nodes_owns(n, p));
}
END_TEST

/* What was acknowledged before a broker restarted may be forgotten by it; a will may be where it was. */
START_TEST(what_was_settled_before_something_was_missed_is_not_clean)
{
	begin_owner();
	prove();
	hw_nodes_stop(n, now);
	turn();
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		hw_nodes_flushed(n, now, p, true);
	if (_i) {
		hw_nodes_reader(n, now, false);
		turn();
		hw_nodes_acked(n, now, last(HW_NODES_PRESENCE)->serial);
	} else {
		hw_nodes_session(n, now, false);
	}
	turn();
	ck_assert_uint_eq(ordered(HW_NODES_RELEASE), HW_PARTITIONS);
	ck_assert(!hw_partitions_any(&last(HW_NODES_RELEASE)->clean));
}
END_TEST

/* A predecessor may have owed something that was not looked for to the end. */
START_TEST(what_is_settled_in_part_is_not_clean)
{
	begin_owner();
	prove();
	hw_nodes_stop(n, now);
	turn();
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		hw_nodes_flushed(n, now, p, p % 2);
	turn();
	hw_nodes_acked(n, now, last(HW_NODES_PRESENCE)->serial);
	turn();
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		ck_assert(hw_partitions_has(&last(HW_NODES_RELEASE)->clean, p) == p % 2);
}
END_TEST

START_TEST(what_is_not_settled_in_10_s_is_kept)
{
	begin_owner();
	prove();
	enter("b", 7, true);
	pass(2200, NULL);
	unsigned p = 0;
	while (!hw_partitions_has(&last(HW_NODES_DRAIN)->set, p))
		p++;
	pass(HW_HANDOVER_BOUND_MS - 500, NULL);
	ck_assert(!hw_nodes_is_authoritative(n, p));
	pass(1000, NULL);
	ck_assert(hw_nodes_is_authoritative(n, p));
	ck_assert_uint_gt(ordered(HW_NODES_RESUME), 0);
}
END_TEST

/* After each renewal the daemon does so (cluster_forms.c). */
static void be_unable_if_denied(void)
{
	static const struct hw_partitions none, all = {{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}};
	hw_nodes_unable(n, hw_nodes_is_denied(n) ? &all : &none);
}

static void pass_denied(int64_t ms)
{
	for (; ms > 0; ms -= 100) {
		pass(100, NULL);
		be_unable_if_denied();
	}
}

/* 0: another node may write. 1: no node may. */
START_TEST(a_node_that_may_not_write_releases_if_another_may)
{
	static const struct hw_partitions all = {{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}};
	enter("b", 7, true);
	begin_owner();
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		if (!hw_nodes_owns(n, p))
			owner[p] = (struct hw_record){.token = hw_fencing_token_make(5, "b")};
	pass(1000, NULL);
	logged = 0;
	const unsigned before = owned();
	denied = true;
	if (_i)
		member("b")->unable = all;
	pass_denied(LEASE_MS);
	ck_assert_uint_eq(owned(), before); /* a handover would wait for what cannot be written */
	ck_assert_ptr_null(last(HW_NODES_DRAIN));
	pass_denied(1500);
	if (_i) {
		pass_denied(3 * LEASE_MS);
		ck_assert_uint_eq(owned(), before);
		leave("b");
		pass_denied(2 * LEASE_MS);
		ck_assert_ptr_nonnull(last(HW_NODES_CLAIM));
		ck_assert_uint_eq(owned(), HW_PARTITIONS);
		return;
	}
	ck_assert_uint_eq(owned(), 0);
	ck_assert_uint_eq(ordered(HW_NODES_RELEASE), before);
	ck_assert(!hw_partitions_any(&last(HW_NODES_RELEASE)->clean));
	pass_denied(3 * LEASE_MS);
	ck_assert_ptr_null(last(HW_NODES_CLAIM));
	denied = false;
	pass_denied(3000);
	ck_assert_ptr_nonnull(last(HW_NODES_CLAIM));
}
END_TEST

START_TEST(a_blind_owner_releases_if_another_is_ready)
{
	begin_owner();
	hw_nodes_blind(n, now, true);
	hw_nodes_ready(n, now, false);
	pass(2 * LEASE_MS, NULL);
	ck_assert_uint_eq(owned(), HW_PARTITIONS); /* nobody else sees either */
	enter("b", 7, true);
	pass(1100, NULL);
	ck_assert_uint_eq(owned(), 0);
	ck_assert_uint_eq(ordered(HW_NODES_RELEASE), HW_PARTITIONS);
	ck_assert(!hw_partitions_any(&last(HW_NODES_RELEASE)->clean));
}
END_TEST

/* What Redis has with our name on it is nobody's if we do not own it. */
START_TEST(a_left_over_record_is_released)
{
	unsigned p;
	enter("b", 7, true);
	p = wanted_of("b", "m");
	owner[p].token = hw_fencing_token_make(1600000000, "m");
	begin();
	pass(1100, NULL);
	ck_assert(owner[p].released && !owner[p].clean);
}
END_TEST

/* A broker that restarted since the release has forgotten what its last owner published. And who heard nothing for a
 * while may have missed a will, which stands where a status of what nobody owned was. */
START_TEST(a_clean_end_is_one_only_if_nothing_was_missed_since)
{
	uint64_t claims[HW_PARTITIONS];
	for (int again = 0; again < 5; again++) {
		if (again) {
			teardown();
			setup();
		}
		for (unsigned p = 0; p < HW_PARTITIONS; p++)
			owner[p].token = hw_fencing_token_make(1700000000, "b");
		enter("b", 7, true);
		begin();
		pass(1000, NULL);
		for (unsigned p = 0; p < HW_PARTITIONS; p++)
			claims[p] = again == 3 ? 1600000000 : 1700000000;
		if (again < 4) /* its release is on its way for so long that its claim was never read */
			hw_nodes_presence(n, now, "b", claims, NULL);
		pass(1000, NULL);
		if (again == 1) {
			hw_nodes_session(n, now, false);
			hw_nodes_session(n, now, true);
		} else if (again == 2) {
			hw_nodes_reader(n, now, false);
			hw_nodes_reader(n, now, true);
		}
		for (unsigned p = 0; p < HW_PARTITIONS; p++)
			owner[p].released = owner[p].clean = true;
		leave("b");
		turn();
		pass(1100, NULL);
		ck_assert_uint_eq(owned(), HW_PARTITIONS);
		ck_assert_uint_eq(hw_partitions_count(&last(HW_NODES_OWN)->clean), again ? 0 : HW_PARTITIONS);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("nodes");
	TCase *tc = tcase_create("membership");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, it_joins_before_it_connects);
	tcase_add_test(tc, without_redis_it_connects_after_5_s);
	tcase_add_test(tc, a_living_namesake_is_told);
	tcase_add_test(tc, a_count_of_another_redis_is_no_living_namesake);
	tcase_add_test(tc, in_doubt_each_node_is_known);
	tcase_add_test(tc, a_silent_namesake_is_replaced_after_a_lease);
	tcase_add_test(tc, a_silent_member_is_removed_by_run_and_count);
	tcase_add_test(tc, who_joins_anew_counts_on);
	tcase_add_test(tc, a_dead_owners_partitions_are_ours_within_the_bound);
	tcase_add_test(tc, a_lapsed_node_removes_and_claims_nothing);
	tcase_add_test(tc, a_node_in_doubt_claims_removes_and_gives_nothing);
	tcase_add_test(tc, who_was_removed_owns_nothing_and_joins_anew);
	tcase_add_test(tc, a_stop_drains_releases_and_leaves);
	suite_add_tcase(suite, tc);
	tc = tcase_create("ownership");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, an_epoch_is_greater_than_all_that_is_known);
	tcase_add_test(tc, an_epoch_that_is_impossible);
	tcase_add_test(tc, clocks_that_are_wrong);
	tcase_add_test(tc, who_is_known);
	tcase_add_test(tc, an_epoch_is_no_less_than_the_clock);
	tcase_add_test(tc, an_absent_record_is_waited_for);
	tcase_add_test(tc, a_record_behind_what_was_heard_is_waited_for);
	tcase_add_test(tc, what_another_is_wanted_for_is_left_to_it);
	tcase_add_test(tc, who_is_not_ready_claims_nothing);
	tcase_add_test(tc, a_handover_waits_for_two_renewals_and_keeps_its_pace);
	tcase_add_loop_test(tc, what_was_settled_before_something_was_missed_is_not_clean, 0, 2);
	tcase_add_test(tc, what_is_settled_in_part_is_not_clean);
	tcase_add_test(tc, what_is_not_settled_in_10_s_is_kept);
	tcase_add_loop_test(tc, a_node_that_may_not_write_releases_if_another_may, 0, 2);
	tcase_add_test(tc, a_blind_owner_releases_if_another_is_ready);
	tcase_add_test(tc, a_left_over_record_is_released);
	tcase_add_test(tc, a_clean_end_is_one_only_if_nothing_was_missed_since);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

/* SPDX-License-Identifier: MIT */
/* The parts of src/nodes, each by itself: tokens, places, claims, members, who goes on alone, the fence at the broker.
 */
#include <check.h>
#include <stdlib.h>

#include "../suite.h"
#include "nodes/claims.h"
#include "nodes/exclusive.h"
#include "nodes/fence.h"
#include "nodes/judging.h"
#include "nodes/members.h"
#include "nodes/place.h"

#define S HW_NS_PER_S

static struct hw_mono at(int64_t ns)
{
	return (struct hw_mono){ns};
}

/* --- tokens ------------------------------------------------------------------------------------------------------ */

START_TEST(tokens_compare_by_epoch_then_node)
{
	struct hw_fencing_token a7 = hw_fencing_token_make(7, "a"), b7 = hw_fencing_token_make(7, "b"),
				a8 = hw_fencing_token_make(8, "a");
	struct hw_fencing_token none = hw_fencing_token_make(0, "z");
	ck_assert_int_lt(hw_fencing_token_compare(&a7, &b7), 0);
	ck_assert_int_lt(hw_fencing_token_compare(&b7, &a8), 0);
	ck_assert_int_eq(hw_fencing_token_compare(&a8, &a8), 0);
	ck_assert_int_lt(hw_fencing_token_compare(&none, &a7), 0);
	ck_assert_str_eq(none.node, "");
}
END_TEST

/* An older token is refused. A newer one is stored, and ends a release; the released token itself does not. */
START_TEST(a_record_admits_what_is_not_older)
{
	struct hw_fencing_token a7 = hw_fencing_token_make(7, "a"), b7 = hw_fencing_token_make(7, "b"),
				b9 = hw_fencing_token_make(9, "b");
	struct hw_record r = {.token = b7, .released = true, .clean = true};
	ck_assert(!hw_record_admits(&r, &a7));
	ck_assert(hw_record_admits(&r, &b7));
	ck_assert(r.released && r.clean);
	ck_assert(hw_record_admits(&r, &b9));
	ck_assert(!r.released && !r.clean);
	ck_assert(!hw_record_admits(&r, &b7));
}
END_TEST

/* --- places ------------------------------------------------------------------------------------------------------ */

/* Redis: CLUSTER KEYSLOT foo, bar, 123456789. */
START_TEST(partitions_are_blocks_of_redis_slots)
{
	ck_assert_uint_eq(hw_partition_of("foo", 3), 12182 / 64);
	ck_assert_uint_eq(hw_partition_of("bar", 3), 5061 / 64);
	ck_assert_uint_eq(hw_partition_of("123456789", 9), 12739 / 64);
	ck_assert_uint_ne(hw_partition_of("{foo}x", 6), hw_partition_of("foo", 3)); /* the whole id */
}
END_TEST

START_TEST(xxh64_is_the_published_one)
{
	static const char text[] = "Nobody inspects the spammish repetition";
	ck_assert_uint_eq(hw_xxh64("", 0), UINT64_C(0xef46db3751d8e999));
	ck_assert_uint_eq(hw_xxh64("a", 1), UINT64_C(0xd24ec4f1a98c6e5b));
	ck_assert_uint_eq(hw_xxh64("abc", 3), UINT64_C(0x44bc2cf5ad770999));
	ck_assert_uint_eq(hw_xxh64(text, sizeof(text) - 1), UINT64_C(0xfbcea83c8a378bf1));
}
END_TEST

/* --- claims ------------------------------------------------------------------------------------------------------ */

START_TEST(claims_are_ranges)
{
	uint64_t epochs[HW_PARTITIONS] = {0}, back[HW_PARTITIONS];
	char buf[HW_CLAIMS_TEXT];
	for (unsigned p = 0; p <= 84; p++)
		epochs[p] = 1700000001;
	epochs[90] = 7;
	ck_assert_uint_eq(hw_claims_text(epochs, buf), strlen("0-84:1700000001,90:7"));
	ck_assert_str_eq(buf, "0-84:1700000001,90:7");
	ck_assert_int_eq(hw_claims_parse(buf, strlen(buf), back), 0);
	ck_assert_mem_eq(epochs, back, sizeof(back));
}
END_TEST

START_TEST(malformed_claims_are_refused)
{
	static const char *const wrong[] = {"1",       "1:",      "1:0",     "256:1",   "2-1:1",
	                                    "1-1:1",   "1:1,",    "1:1,1:2", "2:1,1:2", ",1:1",
	                                    "1:1 2:2", "1-256:1", "01:1",    "-1:1",    "1:99999999999999999999",
	                                    "1:1x"};
	uint64_t epochs[HW_PARTITIONS];
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		ck_assert_msg(hw_claims_parse(wrong[i], strlen(wrong[i]), epochs) < 0, "%s", wrong[i]);
	ck_assert_int_eq(hw_claims_parse("", 0, epochs), 0);
}
END_TEST

START_TEST(what_is_known_names_its_nodes)
{
	static const char *const wrong[] = {"1:1", "1:1:", "1:1:a ", "1:1:a  2:1:b", "2:1:a 1:1:b"};
	struct hw_fencing_token tokens[HW_PARTITIONS] = {{0}}, back[HW_PARTITIONS];
	static char buf[HW_KNOWN_TEXT];
	tokens[3] = tokens[4] = hw_fencing_token_make(9, "host,1:x");
	tokens[5] = hw_fencing_token_make(9, "b");
	hw_known_text(tokens, buf);
	ck_assert_str_eq(buf, "3-4:9:host,1:x 5:9:b");
	ck_assert_int_eq(hw_known_parse(buf, strlen(buf), back), 0);
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		ck_assert_int_eq(hw_fencing_token_compare(&tokens[p], &back[p]), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		ck_assert_msg(hw_known_parse(wrong[i], strlen(wrong[i]), back) < 0, "%s", wrong[i]);
}
END_TEST

/* --- members ----------------------------------------------------------------------------------------------------- */

static struct hw_members members;

static void look(int64_t ns, uint64_t run, uint64_t count, bool ready)
{
	struct hw_member_entry e = {.node = "a", .run = run, .count = count, .ready = ready};
	hw_members_update(&members, at(ns), &e, 1);
}

static bool silent(void)
{
	return hw_member_is_silent(&members, hw_members_find(&members, "a"));
}

START_TEST(who_does_not_count_for_a_lease_is_silent)
{
	hw_members_init(&members, 5 * S);
	for (int k = 0; k <= 4; k++)
		look(k * S, 1, 10, true);
	ck_assert(!silent());
	look(5 * S, 1, 10, true);
	ck_assert(silent());
	look(6 * S, 1, 11, true);
	ck_assert(!silent());
	look(7 * S, 2, 11, true); /* another run is another member */
	ck_assert(!silent());
}
END_TEST

/* A change of lease goes from node to node: who has the longer one renews less often, and waits longer for others. */
START_TEST(of_two_leases_the_longer_one_counts)
{
	static const int64_t leases[] = {0, 2 * S, 5 * S, 9 * S};
	struct hw_member_entry e = {.node = "a", .run = 1, .count = 10, .lease_ns = leases[_i]};
	int64_t longer = _i == 3 ? 9 : 5;
	hw_members_init(&members, 5 * S);
	for (int k = 0; k < longer; k++) {
		hw_members_update(&members, at(k * S), &e, 1);
		ck_assert(!silent());
	}
	hw_members_update(&members, at(longer * S), &e, 1);
	ck_assert(silent());
}
END_TEST

/* A node that could not read Redis has observed no silence. */
START_TEST(after_a_pause_silence_counts_anew)
{
	hw_members_init(&members, 5 * S);
	for (int k = 0; k <= 4; k++)
		look(k * S, 1, 10, true);
	look(6 * S, 1, 10, true); /* two renewals: no pause yet */
	ck_assert(silent());
	look(6 * S + 2 * S + 1, 1, 10, true);
	ck_assert(!silent());
	for (int k = 9; k <= 12; k++)
		look(k * S, 1, 10, true);
	ck_assert(!silent());
	look(13 * S + 1, 1, 10, true);
	ck_assert(silent());
}
END_TEST

START_TEST(after_another_redis_silence_counts_anew)
{
	hw_members_init(&members, 5 * S);
	for (int k = 0; k <= 4; k++)
		look(k * S, 1, 10, true);
	hw_members_forget(&members);
	look(5 * S, 1, 10, true);
	ck_assert(!silent());
}
END_TEST

START_TEST(settled_is_ready_for_two_renewals)
{
	hw_members_init(&members, 5 * S);
	look(0, 1, 10, false);
	look(S, 1, 11, true);
	look(2 * S, 1, 12, true);
	ck_assert(!hw_member_is_settled(hw_members_find(&members, "a")));
	look(3 * S, 1, 13, true);
	ck_assert(hw_member_is_settled(hw_members_find(&members, "a")));
	look(4 * S, 1, 14, false);
	ck_assert(!hw_member_is_settled(hw_members_find(&members, "a")));
	look(5 * S, 1, 15, true);
	ck_assert(!hw_member_is_settled(hw_members_find(&members, "a")));
}
END_TEST

START_TEST(members_beyond_the_bound_are_refused)
{
	static char names[HW_MEMBERS_MAX + 1][16];
	struct hw_member_entry e[HW_MEMBERS_MAX + 1];
	hw_members_init(&members, S);
	for (int i = 0; i <= HW_MEMBERS_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "n%d", i);
		e[i] = (struct hw_member_entry){.node = names[i], .run = 1};
	}
	hw_members_update(&members, at(0), e, HW_MEMBERS_MAX + 1);
	ck_assert_uint_eq(members.n, HW_MEMBERS_MAX);
	ck_assert_uint_eq(members.refused, 1);
	hw_members_update(&members, at(1), e, 1); /* a member that is not in the answer is gone */
	ck_assert_uint_eq(members.n, 1);
}
END_TEST

/* --- one monitor on a prefix ------------------------------------------------------------------------------------- */

static size_t older;

/* What run 2, born 20, says of another one. */
static enum hw_exclusive_verdict meet(struct hw_exclusive *x, int64_t ns, uint64_t born, uint64_t count)
{
	const struct hw_exclusive_entry both[] = {{.run = 2, .born = 20, .count = (uint64_t)(ns / S)},
	                                          {.run = 1, .born = born, .count = count}};
	return hw_exclusive_check(x, at(ns), both, 2, &older);
}

START_TEST(the_first_one_goes_on)
{
	struct hw_exclusive x;
	const struct hw_exclusive_entry own = {.run = 2, .born = 1};
	hw_exclusive_init(&x, 2);
	ck_assert_int_eq(hw_exclusive_check(&x, at(0), &own, 1, &older), HW_EXCLUSIVE_FIRST);
	for (int k = 1; k < 20; k++)
		ck_assert_int_eq(meet(&x, k * S, 21, (uint64_t)k), HW_EXCLUSIVE_FIRST);
}
END_TEST

/* Not for one growth, which may have been on its way when the other one was killed. */
START_TEST(the_later_one_ends_when_the_older_one_has_grown_twice)
{
	struct hw_exclusive x;
	hw_exclusive_init(&x, 2);
	ck_assert_int_eq(meet(&x, 0, 19, 7), HW_EXCLUSIVE_WAIT);
	ck_assert_uint_eq(older, 1);
	ck_assert_int_eq(meet(&x, S, 19, 8), HW_EXCLUSIVE_WAIT);
	ck_assert_int_eq(meet(&x, 2 * S, 19, 8), HW_EXCLUSIVE_WAIT);
	ck_assert_int_eq(meet(&x, 3 * S, 19, 9), HW_EXCLUSIVE_LATER);
	ck_assert_uint_eq(older, 1);
}
END_TEST

/* A node of a cluster has no entry. */
START_TEST(each_one_is_older_than_what_has_no_entry)
{
	struct hw_exclusive x;
	struct hw_exclusive_entry other = {.run = 1, .born = 5};
	hw_exclusive_init(&x, 0);
	ck_assert_int_eq(hw_exclusive_check(&x, at(0), NULL, 0, &older), HW_EXCLUSIVE_FIRST);
	for (; other.count < 3; other.count++)
		ck_assert_int_eq(hw_exclusive_check(&x, at((int64_t)other.count * S), &other, 1, &older),
		                 other.count < 2 ? HW_EXCLUSIVE_WAIT : HW_EXCLUSIVE_LATER);
	ck_assert_uint_eq(older, 0);
	hw_exclusive_check(&x, at(8 * S), &other, 1, &older);
	ck_assert(!hw_exclusive_is_dead(&x, &other));
}
END_TEST

/* Two that were given the same number, by two masters: the run decides, for both the same way. */
START_TEST(of_two_one_goes_on)
{
	for (uint64_t run = 1; run <= 2; run++) {
		struct hw_exclusive x;
		enum hw_exclusive_verdict verdict = HW_EXCLUSIVE_WAIT;
		hw_exclusive_init(&x, run);
		for (uint64_t k = 0; k < 4; k++) {
			const struct hw_exclusive_entry both[] = {{.run = 1, .born = 5, .count = k},
			                                          {.run = 2, .born = 5, .count = k}};
			verdict = hw_exclusive_check(&x, at((int64_t)k * S), both, 2, &older);
		}
		ck_assert_int_eq(verdict, run == 1 ? HW_EXCLUSIVE_FIRST : HW_EXCLUSIVE_LATER);
	}
}
END_TEST

/* It is removed then, and waited for until that is done. */
START_TEST(one_that_stands_still_is_dead)
{
	const struct hw_exclusive_entry other = {.run = 1}, own = {.run = 2};
	struct hw_exclusive x;
	hw_exclusive_init(&x, 2);
	for (int k = 0; k < 5; k++) {
		ck_assert_int_eq(meet(&x, k * S, 19, 7), HW_EXCLUSIVE_WAIT);
		ck_assert(!hw_exclusive_is_dead(&x, &other));
	}
	ck_assert_int_eq(meet(&x, 5 * S, 19, 7), HW_EXCLUSIVE_WAIT);
	ck_assert(hw_exclusive_is_dead(&x, &other) && !hw_exclusive_is_dead(&x, &own));
}
END_TEST

/* Redis was away, or this run was suspended: what stood still then proves nothing. */
START_TEST(without_answers_none_is_dead)
{
	const struct hw_exclusive_entry other = {.run = 1};
	struct hw_exclusive x;
	hw_exclusive_init(&x, 2);
	for (int k = 0; k < 4; k++)
		meet(&x, k * S, 19, 7);
	if (_i)
		hw_exclusive_forget(&x);
	meet(&x, (_i ? 5 : 60) * S, 19, 7);
	ck_assert(!hw_exclusive_is_dead(&x, &other));
}
END_TEST

/* --- the fence --------------------------------------------------------------------------------------------------- */

static struct hw_fence fence;
static uint64_t numbers;

static void fence_setup(void)
{
	hw_fence_init(&fence, "m");
	hw_fence_reader(&fence, true);
	hw_fence_session(&fence, true);
	ck_assert(hw_fence_ask_barrier(&fence, at(0)));
	hw_fence_barrier_sent(&fence, 1);
	hw_fence_barrier_back(&fence, at(0), 1);
	hw_fence_confirm(&fence, fence.sessions);
	hw_fence_claim(&fence, 5, 100);
	numbers = 0;
}

static void say(void)
{
	ck_assert(hw_fence_must_publish(&fence));
	hw_fence_acked(&fence, hw_fence_publish(&fence));
}

static void barrier(void)
{
	hw_fence_barrier_sent(&fence, ++numbers);
	hw_fence_barrier_back(&fence, at(0), numbers);
}

static void read_claim(const char *node, uint64_t epoch)
{
	uint64_t claims[HW_PARTITIONS] = {[5] = epoch};
	hw_fence_read(&fence, node, claims);
}

START_TEST(it_passes_after_acknowledgement_and_barrier)
{
	uint64_t number = hw_fence_publish(&fence);
	hw_fence_barrier_sent(&fence, 1); /* before the acknowledgement: it may have overtaken the presence */
	hw_fence_acked(&fence, number);
	hw_fence_barrier_back(&fence, at(0), 1);
	ck_assert(!hw_fence_passes(&fence, 5));
	ck_assert(hw_fence_ask_barrier(&fence, at(0)));
	ck_assert(!hw_fence_ask_barrier(&fence, at(1)));
	hw_fence_barrier_sent(&fence, 2);
	ck_assert(!hw_fence_passes(&fence, 5));
	hw_fence_barrier_back(&fence, at(0), 1);
	ck_assert(!hw_fence_passes(&fence, 5));
	hw_fence_barrier_back(&fence, at(0), 2);
	ck_assert(hw_fence_passes(&fence, 5));
	ck_assert(!hw_fence_passes(&fence, 6));
}
END_TEST

/* Only what is sent over both is behind what was retained. */
START_TEST(what_is_known_is_said_once_it_was_recalled)
{
	hw_fence_init(&fence, "m");
	hw_fence_claim(&fence, 5, 100);
	hw_fence_session(&fence, true);
	hw_fence_confirm(&fence, fence.sessions);
	ck_assert(!hw_fence_ask_barrier(&fence, at(0))); /* reader 0 is not there */
	say();                                           /* what is claimed, without what is known */
	hw_fence_barrier_sent(&fence, 1);
	hw_fence_reader(&fence, true);
	hw_fence_barrier_back(&fence, at(0), 1);
	ck_assert(!hw_fence_recalled(&fence));
	ck_assert(hw_fence_ask_barrier(&fence, at(1)));
	hw_fence_barrier_sent(&fence, 2);
	hw_fence_session(&fence, true);
	hw_fence_barrier_back(&fence, at(1), 2);
	ck_assert(!hw_fence_recalled(&fence));
	say();
	hw_fence_barrier_sent(&fence, 3);
	hw_fence_barrier_back(&fence, at(2), 2);
	ck_assert(!hw_fence_recalled(&fence) && !hw_fence_must_publish(&fence));
	hw_fence_barrier_back(&fence, at(2), 3);
	ck_assert(hw_fence_recalled(&fence));
	hw_fence_confirm(&fence, fence.sessions);
	ck_assert(!hw_fence_passes(&fence, 5) && !hw_fence_ask_barrier(&fence, at(3)));
	say(); /* all, once more */
	ck_assert(hw_fence_ask_barrier(&fence, at(3)));
	hw_fence_barrier_sent(&fence, 4);
	hw_fence_barrier_back(&fence, at(4), 4);
	ck_assert(hw_fence_passes(&fence, 5));
	hw_fence_reader(&fence, false);
	hw_fence_session(&fence, false);
	ck_assert(hw_fence_recalled(&fence)); /* once a life */
}
END_TEST

START_TEST(a_session_needs_its_own_renewal)
{
	hw_fence_session(&fence, true);
	hw_fence_confirm(&fence, fence.sessions - 1);
	say();
	barrier();
	ck_assert(!hw_fence_passes(&fence, 5));
	hw_fence_confirm(&fence, fence.sessions);
	ck_assert(hw_fence_passes(&fence, 5));
}
END_TEST

START_TEST(a_lesser_claim_read_before_the_barrier_blocks)
{
	read_claim("old", 99);
	read_claim("equal", 100); /* "equal" is less than "m" */
	say();
	barrier();
	ck_assert(!hw_fence_passes(&fence, 5));
	ck_assert_str_eq(hw_fence_blocker(&fence, 0)->node, "old");
	read_claim("old", 0);
	ck_assert(!hw_fence_passes(&fence, 5));
	ck_assert_ptr_null(hw_fence_blocker(&fence, 0));
	hw_fence_peer_closed(&fence, 1);
	ck_assert(hw_fence_passes(&fence, 5));
}
END_TEST

START_TEST(a_lesser_claim_read_after_the_barrier_does_not)
{
	say();
	barrier();
	read_claim("late", 99);
	ck_assert(hw_fence_passes(&fence, 5));
}
END_TEST

START_TEST(a_lost_session_and_reader_begin_anew)
{
	say();
	barrier();
	hw_fence_reader(&fence, false);
	ck_assert(!hw_fence_passes(&fence, 5));
	hw_fence_reader(&fence, true);
	ck_assert(!hw_fence_passes(&fence, 5));
	ck_assert(!hw_fence_must_publish(&fence)); /* it was acknowledged in this session: a barrier is enough */
	ck_assert(hw_fence_ask_barrier(&fence, at(0)));
	barrier();
	ck_assert(hw_fence_passes(&fence, 5));
	hw_fence_session(&fence, false);
	hw_fence_session(&fence, true);
	hw_fence_confirm(&fence, fence.sessions);
	ck_assert(!hw_fence_passes(&fence, 5));
	say();
	barrier();
	ck_assert(hw_fence_passes(&fence, 5));
}
END_TEST

START_TEST(an_acknowledgement_of_an_earlier_session_is_none)
{
	uint64_t number = hw_fence_publish(&fence);
	hw_fence_session(&fence, true);
	hw_fence_confirm(&fence, fence.sessions);
	hw_fence_publish(&fence);
	hw_fence_acked(&fence, number);
	barrier();
	ck_assert(!hw_fence_passes(&fence, 5));
}
END_TEST

START_TEST(other_changes_do_not_keep_it_from_being_proven)
{
	uint64_t number = hw_fence_publish(&fence);
	hw_fence_claim(&fence, 6, 101);
	uint64_t next = hw_fence_publish(&fence);
	hw_fence_acked(&fence, number);
	hw_fence_barrier_sent(&fence, 1);
	hw_fence_barrier_back(&fence, at(0), 1);
	ck_assert(hw_fence_passes(&fence, 5));
	ck_assert(!hw_fence_passes(&fence, 6));
	hw_fence_acked(&fence, next);
	hw_fence_barrier_sent(&fence, 2);
	hw_fence_barrier_back(&fence, at(0), 2);
	ck_assert(hw_fence_passes(&fence, 6));
}
END_TEST

START_TEST(withdrawn_is_acknowledged_without_it)
{
	say();
	hw_fence_claim(&fence, 5, 0);
	ck_assert(!hw_fence_withdrawn(&fence, 5));
	uint64_t number = hw_fence_publish(&fence);
	ck_assert(!hw_fence_withdrawn(&fence, 5));
	hw_fence_acked(&fence, number);
	ck_assert(hw_fence_withdrawn(&fence, 5));
	hw_fence_session(&fence, false);
	ck_assert(hw_fence_withdrawn(&fence, 5));
}
END_TEST

START_TEST(more_peers_than_places_pass_nothing)
{
	char name[16];
	for (int i = 0; i < HW_PEERS_MAX; i++) {
		snprintf(name, sizeof(name), "z%d", i);
		read_claim(name, 100);
	}
	say();
	barrier();
	ck_assert(hw_fence_passes(&fence, 5));
	read_claim("one too many", 1);
	ck_assert(!hw_fence_passes(&fence, 5));
	hw_fence_reader(&fence, true);
	ck_assert(hw_fence_ask_barrier(&fence, at(0)));
	barrier();
	ck_assert(hw_fence_passes(&fence, 5));
}
END_TEST

/* --- who can judge more ------------------------------------------------------------------------------------------ */

static struct hw_node_group has_x[] = {{.name = "plain", .form = 1}, {.name = "x", .form = 2}},
			    has_y[] = {{.name = "plain", .form = 1}, {.name = "y", .form = 3}},
			    has_both[] = {{.name = "plain", .form = 1},
                                          {.name = "x", .form = 2},
                                          {.name = "y", .form = 3}},
			    has_other[] = {{.name = "plain", .form = 1}, {.name = "x", .form = 9}};

/* This node judges `plain` and `x`, and knows a device of `y` in partition 7. */
static struct hw_group_use of_x[] = {{.name = "plain", .form = 1, .judged = true},
                                     {.name = "x", .form = 2, .judged = true},
                                     {.name = "y", .form = 3, .unjudged = {{3, {{1 << 7}}}, {4, {{0}}}}}};

static const struct {
	struct hw_node_group *groups;
	size_t n;
	bool more, all;
} others[] = {
	{NULL, 0, false, false},   {has_x, 2, false, true},      {has_y, 2, true, false},
	{has_both, 3, true, true}, {has_other, 2, false, false},
};

START_TEST(a_node_judges_more_with_the_form_of_an_unjudged_device)
{
	const struct hw_partitions more = hw_judging_more(of_x, 3, others[_i].groups, others[_i].n);
	ck_assert_uint_eq(hw_partitions_has(&more, 7), others[_i].more);
	ck_assert_uint_eq(hw_partitions_count(&more), others[_i].more);
	ck_assert(hw_judging_all(of_x, 3, others[_i].groups, others[_i].n) == others[_i].all);
}
END_TEST

/* The name alone counts if the form is not known. */
START_TEST(a_group_of_that_name_in_another_form_does_not_judge_the_device)
{
	struct hw_group_use use = {.name = "x", .unjudged = {{0, {{0}}}, {2, {{1}}}}};
	struct hw_partitions more = hw_judging_more(&use, 1, has_other, 2);
	ck_assert(!hw_partitions_any(&more));
	use.unjudged[1].form = 0;
	more = hw_judging_more(&use, 1, has_other, 2);
	ck_assert(hw_partitions_has(&more, 0));
}
END_TEST

/* This node has not heard a device of `x` in partition 7 with its filters. Another node with the same filters has,
 * unless it says that it cannot judge a device there either. */
START_TEST(a_node_judges_more_with_the_devices_that_it_has_heard)
{
	struct hw_node_group peer = {.name = "x", .form = 2};
	struct hw_group_use use = {.name = "x", .form = 2, .unjudged = {{0}, {5, {{1 << 7 | 1 << 8}}}}};
	struct hw_partitions more = hw_judging_more(&use, 1, &peer, 1);
	ck_assert(!hw_partitions_any(&more)); /* it is not past its deadline */
	use.late = (struct hw_partitions){{1 << 7}};
	more = hw_judging_more(&use, 1, &peer, 1);
	ck_assert(hw_partitions_has(&more, 7) && hw_partitions_count(&more) == 1);
	more = hw_judging_more(&use, 1, has_y, 2); /* it lacks the group */
	ck_assert(!hw_partitions_any(&more));
	peer.unjudged = use.late;
	more = hw_judging_more(&use, 1, &peer, 1);
	ck_assert(!hw_partitions_any(&more));
	peer.unjudged = (struct hw_partitions){{1 << 8}};
	more = hw_judging_more(&use, 1, &peer, 1);
	ck_assert(hw_partitions_has(&more, 7) && hw_partitions_count(&more) == 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("nodes: parts");
	TCase *tc = tcase_create("tokens, places, claims, members");
	tcase_add_test(tc, tokens_compare_by_epoch_then_node);
	tcase_add_test(tc, a_record_admits_what_is_not_older);
	tcase_add_test(tc, partitions_are_blocks_of_redis_slots);
	tcase_add_test(tc, xxh64_is_the_published_one);
	tcase_add_test(tc, claims_are_ranges);
	tcase_add_test(tc, malformed_claims_are_refused);
	tcase_add_test(tc, what_is_known_names_its_nodes);
	tcase_add_test(tc, who_does_not_count_for_a_lease_is_silent);
	tcase_add_loop_test(tc, of_two_leases_the_longer_one_counts, 0, 4);
	tcase_add_test(tc, after_a_pause_silence_counts_anew);
	tcase_add_test(tc, after_another_redis_silence_counts_anew);
	tcase_add_test(tc, settled_is_ready_for_two_renewals);
	tcase_add_test(tc, members_beyond_the_bound_are_refused);
	tcase_add_test(tc, the_first_one_goes_on);
	tcase_add_test(tc, the_later_one_ends_when_the_older_one_has_grown_twice);
	tcase_add_test(tc, each_one_is_older_than_what_has_no_entry);
	tcase_add_test(tc, of_two_one_goes_on);
	tcase_add_test(tc, one_that_stands_still_is_dead);
	tcase_add_loop_test(tc, without_answers_none_is_dead, 0, 2);
	suite_add_tcase(suite, tc);
	tc = tcase_create("the fence at the broker");
	tcase_add_checked_fixture(tc, fence_setup, NULL);
	tcase_add_test(tc, it_passes_after_acknowledgement_and_barrier);
	tcase_add_test(tc, what_is_known_is_said_once_it_was_recalled);
	tcase_add_test(tc, a_session_needs_its_own_renewal);
	tcase_add_test(tc, a_lesser_claim_read_before_the_barrier_blocks);
	tcase_add_test(tc, a_lesser_claim_read_after_the_barrier_does_not);
	tcase_add_test(tc, a_lost_session_and_reader_begin_anew);
	tcase_add_test(tc, an_acknowledgement_of_an_earlier_session_is_none);
	tcase_add_test(tc, other_changes_do_not_keep_it_from_being_proven);
	tcase_add_test(tc, withdrawn_is_acknowledged_without_it);
	tcase_add_test(tc, more_peers_than_places_pass_nothing);
	suite_add_tcase(suite, tc);
	tc = tcase_create("who can judge more");
	tcase_add_loop_test(tc, a_node_judges_more_with_the_form_of_an_unjudged_device, 0,
	                    sizeof(others) / sizeof(*others));
	tcase_add_test(tc, a_group_of_that_name_in_another_form_does_not_judge_the_device);
	tcase_add_test(tc, a_node_judges_more_with_the_devices_that_it_has_heard);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

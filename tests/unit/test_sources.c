/* SPDX-License-Identifier: MIT */
/* Sources of evidence that come and go while the monitor runs. A new source is blind until barriers prove it. A source
 * that goes leaves no evidence behind that is wrong or blocks judgements. */
#include "../suite.h"
#include "world.h"

#define TIMEOUT_MS 30000

static struct world *w;

static void setup(void)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec g = world_group("default", TIMEOUT_MS);
	conf.grace_ms = 15000;
	w = world_new(&conf, &g, 1);
	world_connect(w);
	world_pass(w, 16 * S);
	ck_assert(!hw_blind_now(hw_monitor_blind(w->m)));
}

static void teardown(void)
{
	world_free(w);
}

static bool is_blind(void)
{
	return hw_blind_now(hw_monitor_blind(w->m));
}

/* A source more, which barriers come back on once it is up. */
static unsigned comes(void)
{
	int source = hw_monitor_add_source(w->m, w->now);
	ck_assert_int_ge(source, 0);
	w->back_on |= 1U << source;
	world_drain(w);
	return (unsigned)source;
}

static void links(unsigned source, bool up)
{
	hw_monitor_link(w->m, w->now, source, up);
	world_drain(w);
}

static void goes(unsigned source)
{
	hw_monitor_remove_source(w->m, w->now, source);
	w->back_on &= ~(1U << source);
	world_drain(w);
}

/* How long device "a" is called online from now on. */
static int64_t lives_ms(void)
{
	int64_t from = w->now.mono.ns;
	while (world_is(w, "a", HW_STATE_ONLINE) && w->now.mono.ns - from < 1000 * S)
		world_pass(w, 50 * MS);
	return (w->now.mono.ns - from) / MS;
}

static void assert_lives(int64_t ms)
{
	int64_t lived = lives_ms();
	ck_assert_int_ge(lived, ms);
	ck_assert_int_le(lived, ms + 200);
}

START_TEST(test_until_it_is_up_nobody_is_judged_and_no_silence_counts_anew)
{
	world_beat(w, "a", "");
	world_pass(w, 10 * S);
	unsigned peer = comes();
	ck_assert(is_blind());
	ck_assert_int_eq(hw_monitor_blind(w->m)->first, HW_CAUSE_LINK);
	world_pass(w, 60 * S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	links(peer, true);
	ck_assert(!is_blind());
	ck_assert(!hw_monitor_blind(w->m)->ended_lossy);
	assert_lives(20000);
}
END_TEST

START_TEST(test_who_waits_is_proven_through_it_as_well)
{
	world_beat(w, "a", "");
	world_pass(w, 29 * S);
	unsigned peer = comes();
	uint64_t k = w->barriers;
	links(peer, true);
	w->back_on = 1;
	world_pass(w, 3 * S);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE)); /* its heartbeat may be in the new one's socket */
	while (k < w->barriers)
		hw_monitor_barrier(w->m, w->now, peer, ++k);
	w->back_on = 3;
	world_pass(w, 2 * S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
}
END_TEST

START_TEST(test_barriers_of_before_it_came_prove_nothing)
{
	world_beat(w, "a", "");
	w->rtt_ns = 400 * MS; /* the pair is on its way when the new one comes */
	world_pass(w, 30 * S + 500 * MS);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	uint64_t before = w->barriers;
	links(comes(), true);
	world_pass(w, 700 * MS);
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert_uint_gt(w->barriers, before);
	world_pass(w, 2 * S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
}
END_TEST

/* A source goes. Nobody knows which messages it had read and not handed on: silent devices get a whole timeout more. */
START_TEST(test_one_that_goes_takes_with_it_what_was_on_its_way)
{
	unsigned peer = comes();
	links(peer, true);
	world_beat(w, "a", "");
	world_pass(w, 20 * S);
	w->back_on = 1;
	world_pass(w, 100 * MS);
	goes(peer);
	ck_assert(!is_blind());
	ck_assert(hw_monitor_blind(w->m)->ended_lossy);
	assert_lives(TIMEOUT_MS);
}
END_TEST

/* A broker that takes QoS 0 only acknowledges nothing. What it brings to one source it has read. */
START_TEST(test_barriers_that_one_brings_were_read)
{
	w->silent = true;
	links(comes(), true);
	world_pass(w, 20 * S);
	w->back_on = 1;
	w->n_log = 0;
	for (int k = 0; k < 80; k++) {
		world_beat(w, "a", "");
		world_pass(w, 100 * MS);
	}
	ck_assert_uint_eq(world_count(w, HW_OUT_REOPEN, 0), 0);
	ck_assert(!hw_monitor_barriers_silent(w->m, w->now));
	w->back_on = 0; /* none is back: so it may read none */
	for (int k = 0; k < 110; k++) {
		world_beat(w, "a", "");
		world_pass(w, 100 * MS);
	}
	ck_assert_uint_eq(world_count(w, HW_OUT_REOPEN, 0), 1);
}
END_TEST

START_TEST(test_one_that_goes_blocks_nobody)
{
	unsigned peer = comes();
	links(peer, true);
	world_beat(w, "a", "");
	w->back_on = 1; /* from now on it is silent: a standstill, then refused barriers */
	world_pass(w, 120 * S);
	ck_assert(is_blind());
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	goes(peer);
	world_pass(w, 20 * S);
	ck_assert(!is_blind());
	world_pass(w, TIMEOUT_MS * MS + S);
	ck_assert(world_is(w, "a", HW_STATE_OFFLINE));
}
END_TEST

START_TEST(test_one_that_goes_before_it_was_up_leaves_nothing)
{
	world_beat(w, "a", "");
	world_pass(w, 10 * S);
	unsigned peer = comes();
	world_pass(w, 5 * S);
	goes(peer);
	ck_assert(!is_blind());
	ck_assert(!hw_monitor_blind(w->m)->ended_lossy);
	assert_lives(20000);
}
END_TEST

/* As if it had come back: devices that it brought may be looking for another way. */
START_TEST(test_one_that_goes_after_it_was_lost_leaves_a_grace)
{
	unsigned peer = comes();
	links(peer, true);
	world_beat(w, "a", "");
	links(peer, false);
	world_pass(w, 60 * S);
	ck_assert(is_blind());
	goes(peer);
	world_pass(w, 14 * S);
	ck_assert(is_blind());
	world_pass(w, 2 * S);
	ck_assert(!is_blind());
	ck_assert(hw_monitor_blind(w->m)->ended_lossy);
	assert_lives(TIMEOUT_MS - 1000);
}
END_TEST

START_TEST(test_a_grace_that_lasts_is_neither_cut_nor_begun_anew)
{
	links(0, false);
	world_pass(w, S);
	links(0, true);
	world_pass(w, 5 * S);
	unsigned peer = comes();
	world_pass(w, 3 * S);
	links(peer, true);
	world_pass(w, 6 * S);
	ck_assert(is_blind());
	world_pass(w, 2 * S);
	ck_assert(!is_blind());
}
END_TEST

START_TEST(test_without_any_there_is_no_sight)
{
	world_beat(w, "a", "");
	goes(0);
	ck_assert(is_blind());
	world_pass(w, 300 * S);
	ck_assert(is_blind());
	ck_assert(world_is(w, "a", HW_STATE_ONLINE));
	ck_assert_uint_eq(comes(), 0);
	world_pass(w, 20 * S);
	ck_assert(is_blind());
	links(0, true);
	ck_assert(!is_blind());
	ck_assert(hw_monitor_blind(w->m)->ended_lossy);
	assert_lives(TIMEOUT_MS);
}
END_TEST

/* With one source the order is known; test_goodbye.c has two. */
START_TEST(test_a_goodbye_right_after_a_heartbeat_counts_with_one)
{
	world_beat(w, "a", "");
	world_beat(w, "a", "{\"online\":false}");
	ck_assert_int_le(lives_ms(), 1000);
}
END_TEST

/* What is reported of a number that no source has is ignored. There is a limit of sources. A number is used again,
 * without what was known of the source before. */
START_TEST(test_numbers)
{
	unsigned peer = comes();
	links(peer, true);
	links(peer, false);
	goes(peer);
	hw_monitor_barrier(w->m, w->now, peer, w->barriers);
	hw_monitor_arrived(w->m, w->now, HW_SOURCES_MAX);
	hw_monitor_loss(w->m, w->now, peer);
	hw_monitor_link(w->m, w->now, peer, false);
	hw_monitor_remove_source(w->m, w->now, peer);
	world_pass(w, 20 * S);
	ck_assert(!is_blind());
	ck_assert_uint_eq(comes(), peer);
	links(peer, true);
	ck_assert(!is_blind());
	for (int k = 2; k < HW_SOURCES_MAX; k++)
		ck_assert_int_eq(hw_monitor_add_source(w->m, w->now), k);
	ck_assert_int_eq(hw_monitor_add_source(w->m, w->now), -ENOSPC);
	for (unsigned k = 2; k < HW_SOURCES_MAX; k++)
		hw_monitor_remove_source(w->m, w->now, k);
	ck_assert(!is_blind());
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sources");
	TCase *tc = tcase_create("sources");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, test_until_it_is_up_nobody_is_judged_and_no_silence_counts_anew);
	tcase_add_test(tc, test_who_waits_is_proven_through_it_as_well);
	tcase_add_test(tc, test_barriers_of_before_it_came_prove_nothing);
	tcase_add_test(tc, test_one_that_goes_takes_with_it_what_was_on_its_way);
	tcase_add_test(tc, test_barriers_that_one_brings_were_read);
	tcase_add_test(tc, test_one_that_goes_blocks_nobody);
	tcase_add_test(tc, test_one_that_goes_before_it_was_up_leaves_nothing);
	tcase_add_test(tc, test_one_that_goes_after_it_was_lost_leaves_a_grace);
	tcase_add_test(tc, test_a_grace_that_lasts_is_neither_cut_nor_begun_anew);
	tcase_add_test(tc, test_without_any_there_is_no_sight);
	tcase_add_test(tc, test_a_goodbye_right_after_a_heartbeat_counts_with_one);
	tcase_add_test(tc, test_numbers);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

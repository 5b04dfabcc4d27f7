/* SPDX-License-Identifier: MIT */
/* P in Redis: its order before the transitions, its repetition, its bounds, and the fence of several nodes. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "../sink_state.h"
#include "redis_fixture.h"

#define A 17 /* a partition */

static bool is_idle(struct rig *r)
{
	return rig_is_idle(r) && hw_redis_published_idle(r->r);
}

static void settle_p(void)
{
	rig_until(g, is_idle, IDLE_MS);
}

static bool is_emptied(struct rig *r)
{
	return r->emptied > 0;
}

static bool outbox_has_one_id(struct rig *r)
{
	return rig_number(r, "HLEN device:outbox") == 1;
}

static bool has_published(struct rig *r)
{
	return r->published_answers > 0;
}

static void read_published(void)
{
	g->published_answers = 0;
	ck_assert_int_eq(hw_redis_read_published(g->r), 0);
	rig_until(g, has_published, IDLE_MS);
}

START_TEST(p_is_written_before_the_transition_that_lowers_it)
{
	uint32_t i = rig_device(g, GROUP_PLAIN, "a");
	hw_redis_write_published(g->r, 0, 2000);
	settle_p();
	rig_expect(g, "2000", "HGET device:published all");
	redisContext *watch = redisConnect("127.0.0.1", g->port);
	freeReplyObject(redisCommand(watch, "MONITOR"));
	online(i); /* in the order of the daemon: P first, and both in one turn */
	hw_redis_write_published(g->r, 0, 1000);
	settle_p();
	rig_expect(g, "1000", "HGET device:published all");
	bool lowered = false, written = false;
	while (!written) {
		redisReply *line;
		ck_assert_int_eq(redisGetReply(watch, (void **)&line), REDIS_OK);
		lowered |= strstr(line->str, "\"HSET\" \"device:published\" \"all\" \"1000\"") != NULL;
		written = strstr(line->str, "\"EVALSHA\"") != NULL && strstr(line->str, "device:state:a") != NULL;
		freeReplyObject(line);
	}
	ck_assert(lowered);
	redisFree(watch);
	ck_assert(hw_redis_published_idle(g->r));
}
END_TEST

START_TEST(p_is_written_again_after_a_lost_connection_and_after_a_loss_of_all_data)
{
	hw_redis_write_published(g->r, 0, 1000);
	settle_p();
	rig_do(g, "DEL device:published");
	rig_do(g, "CLIENT KILL TYPE normal SKIPME yes");
	rig_until(g, is_down, IDLE_MS);
	hw_redis_write_published(g->r, 0, 1001);
	rig_until(g, rig_is_up, IDLE_MS);
	settle_p();
	rig_expect(g, "1001", "HGET device:published all");
	g->marking = true;
	rig_until(g, is_marked, IDLE_MS);
	rig_do(g, "FLUSHALL");
	rig_until(g, is_emptied, IDLE_MS);
	settle_p();
	rig_expect(g, "1001", "HGET device:published all");
}
END_TEST

START_TEST(p_of_partitions_counts_for_a_monitor_without_nodes)
{
	read_published();
	ck_assert_uint_eq(g->published[0], HW_PUBLISHED_UNKNOWN);
	rig_do(g, "HSET device:published all 900 7 800 255 1000");
	read_published();
	ck_assert_uint_eq(g->published[0], 800);
	hw_redis_write_published(g->r, 0, 1000);
	settle_p();
	ck_assert_int_eq(rig_number(g, "HLEN device:published"), 1);
	rig_expect(g, "1000", "HGET device:published all");
}
END_TEST

START_TEST(a_p_out_of_bounds_counts_as_0_and_is_reported)
{
	static const char *const values[] = {"", "x", "-1", "12x", "99999999999999999999", "4102444800000000", "007"};
	unsigned before = g->troubles;
	for (size_t k = 0; k < sizeof(values) / sizeof(*values); k++) {
		rig_do(g, "HSET device:published all %s", values[k]);
		read_published();
		ck_assert_msg(g->published[0] == 0, "%s", values[k]);
		ck_assert_ptr_nonnull(
			strstr(g->trouble, "the value of field 'all' of device:published cannot be used"));
		ck_assert_uint_eq(g->troubles, before + 1); /* one report */
	}
	rig_do(g, "HSET device:published all 900 7 x");
	read_published();
	ck_assert_uint_eq(g->published[0], 0);
	rig_do(g, "HDEL device:published 7");
	rig_do(g, "HSET device:published b x"); /* a field that heartwheel does not write */
	read_published();
	ck_assert_uint_eq(g->published[0], 900);
	rig_do(g, "HSET device:published all 4102444800000"); /* years ahead: our clock may be wrong */
	read_published();
	ck_assert_uint_eq(g->published[0], UINT64_C(4102444800000));
	rig_do(g, "SET device:published x");
	read_published();
	ck_assert_uint_eq(g->published[0], HW_PUBLISHED_UNKNOWN);
	before = g->troubles;
	hw_redis_write_published(g->r, 0, 1000);
	settle_p();
	ck_assert_uint_eq(g->troubles, before + 1);
	ck_assert_ptr_nonnull(strstr(g->trouble, "device:published cannot be written"));
	rig_do(g, "DEL device:published");
	hw_redis_tick(g->r);
	settle_p();
	rig_expect(g, "1000", "HGET device:published all");
}
END_TEST

/* As after an upgrade with the ACL of an earlier version. A node that waited for P would never decide about its
 * devices. */
START_TEST(without_the_right_to_p_the_monitor_works_and_reports_it)
{
	rig_do(g, "HSET device:published all 900");
	rig_do(g, "ACL SETUSER default resetkeys ~device:[^p]*");
	read_published();
	ck_assert_uint_eq(g->published[0], HW_PUBLISHED_UNKNOWN);
	hw_redis_write_published(g->r, 0, 1000);
	settle_p();
	ck_assert_ptr_nonnull(strstr(g->trouble, "device:published cannot be written"));
	rig_do(g, "ACL SETUSER default allkeys");
	hw_redis_tick(g->r);
	settle_p();
	rig_expect(g, "1000", "HGET device:published all");
}
END_TEST

/* The entries of an earlier version end when P is written, whatever else is in the outbox. */
START_TEST(old_entries_of_the_outbox_end_with_the_first_p)
{
	for (int k = 0; k < 1200; k++)
		rig_do(g, "HSET device:outbox d%d {}", k);
	rig_do(g, "HSET device:outbox gone %s", "");
	hw_redis_load(g->r);
	rig_until(g, rig_is_loaded, IDLE_MS);
	ck_assert_uint_ge(g->outbox_statuses, 1200);
	ck_assert_int_eq(rig_number(g, "HLEN device:outbox"), 1201);
	hw_redis_write_published(g->r, 0, 1000);
	rig_until(g, outbox_has_one_id, IDLE_MS);
	rig_expect(g, "", "HGET device:outbox gone");
}
END_TEST

/* An owner that was replaced must not raise P of its successor. */
START_TEST(p_is_fenced)
{
	rig_do(g, "HSET device:owners %u %s", A, "51 node-2");
	rig_do(g, "HSET device:published %u 1000", A);
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		hw_redis_write_published(g->r, p, 2000);
	settle_p();
	ck_assert_int_eq(rig_number(g, "HGET device:published %u", A), 1000);
	ck_assert_int_eq(rig_number(g, "HLEN device:published"), HW_PARTITIONS);
	ck_assert_uint_eq(g->fenced, 1);
	ck_assert_uint_eq(g->fenced_partition, A);
	rig_expect(g, "50 node-1", "HGET device:owners %u", A + 1); /* as with a transition, a newer token is stored */
	rig_do(g, "HSET device:owners %u %s", A, "50 node-1");
	g->epoch[A] = 0; /* lost, so P is not sent any more */
	hw_redis_write_published(g->r, A, 3000);
	settle_p();
	ck_assert_int_eq(rig_number(g, "HGET device:published %u", A), 1000);
	ck_assert(hw_redis_published_idle(g->r));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("redis_published");
	TCase *tc = tcase_create("a monitor by itself");
	tcase_add_checked_fixture(tc, fixture_up, fixture_down);
	tcase_set_timeout(tc, 30);
	tcase_add_test(tc, p_is_written_before_the_transition_that_lowers_it);
	tcase_add_test(tc, p_is_written_again_after_a_lost_connection_and_after_a_loss_of_all_data);
	tcase_add_test(tc, p_of_partitions_counts_for_a_monitor_without_nodes);
	tcase_add_test(tc, a_p_out_of_bounds_counts_as_0_and_is_reported);
	tcase_add_test(tc, without_the_right_to_p_the_monitor_works_and_reports_it);
	tcase_add_test(tc, old_entries_of_the_outbox_end_with_the_first_p);
	suite_add_tcase(suite, tc);
	tc = tcase_create("a node");
	tcase_add_checked_fixture(tc, fixture_node_up, fixture_down);
	tcase_set_timeout(tc, 30);
	tcase_add_test(tc, p_is_fenced);
	suite_add_tcase(suite, tc);
	return rig_run(suite);
}

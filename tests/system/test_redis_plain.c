/* SPDX-License-Identifier: MIT */
/* Plain refreshes of the Redis sink: PEXPIRE without a script, many in one write, and what follows any other answer
 * than 1. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../sink_state.h"
#include "heartwheel/partition.h"
#include "redis_fixture.h"

#define MANY    300 /* more than one write, and no multiple of it */
#define TURN_NS (30 * HW_NS_PER_S)

static uint32_t plain[MANY];

static bool is_plain(uint32_t i, struct hw_now now)
{
	return hw_item_is_plain(g->r, rig_at(g, i), i, now);
}

/* Makes `n` devices whose next refresh is plain, also if the next turn of last_seen begins meanwhile. */
static void make_plain(unsigned n)
{
	char id[16];
	struct hw_now now = rig_now(), later = now;
	later.mono.ns += TURN_NS;
	for (unsigned k = 0, made = 0; made < n; k++) {
		snprintf(id, sizeof(id), "d%u", k);
		uint32_t i = rig_device(g, GROUP_PLAIN, id);
		rig_at(g, i)->flags &= (uint16_t)~HW_FLAG_ONCE;
		online(i);
		if (k % 32 == 0)
			settle();
		hw_redis_rewrite(g->r, hw_registry_ref(hw_monitor_registry(g->m), i));
		settle();
		if (is_plain(i, now) && is_plain(i, later))
			plain[made++] = i;
	}
}

static struct hw_id id_of(unsigned k)
{
	return hw_device_id(rig_at(g, plain[k]));
}

static long long pttl(unsigned k)
{
	return rig_number(g, "PTTL device:connected:%b", id_of(k).text, id_of(k).len);
}

static void shorten(unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		rig_do(g, "PEXPIRE device:connected:%b 20000", id_of(k).text, id_of(k).len);
}

static void refresh_first(unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		hw_redis_refresh(g->r, hw_registry_ref(hw_monitor_registry(g->m), plain[k]));
}

static void expect_extended(unsigned n)
{
	for (unsigned k = 0; k < n; k++) {
		ck_assert_int_gt(pttl(k), 85000);
		ck_assert_int_le(pttl(k), 90000);
	}
}

/* How often Redis has carried out a command since CONFIG RESETSTAT. */
static long long calls(const char *command)
{
	char name[32];
	redisReply *reply = rig_ask(g, "INFO commandstats");
	snprintf(name, sizeof(name), "cmdstat_%s:calls=", command);
	const char *at = strstr(reply->str, name);
	long long n = at ? strtoll(at + strlen(name), NULL, 10) : 0;
	freeReplyObject(reply);
	return n;
}

static void turn_loop(int n)
{
	for (; n > 0; n--)
		event_base_loop(g->base, EVLOOP_NONBLOCK);
}

static uint32_t queued(void)
{
	return g->r->sink.refresh.len;
}

static bool is_sent(struct rig *rig)
{
	return rig->r->sink.refresh.len == 0;
}

static bool is_swept(struct rig *rig)
{
	return !rig->r->sink.sweep;
}

START_TEST(a_plain_refresh_needs_no_script)
{
	make_plain(MANY);
	shorten(MANY);
	rig_do(g, "CONFIG RESETSTAT");
	uint64_t before = hw_redis_stats(g->r)->refreshes, confirmed = g->confirmed;
	refresh_first(MANY);
	refresh_first(MANY); /* the same ones */
	settle();
	ck_assert_int_eq(calls("pexpire"), MANY);
	ck_assert_int_eq(calls("evalsha"), 0);
	ck_assert_uint_eq(hw_redis_stats(g->r)->refreshes, before + MANY);
	ck_assert_uint_eq(g->confirmed, confirmed); /* PEXPIRE compares no seq */
	expect_extended(MANY);
}
END_TEST

/* Redis wakes once for many, and a few wait for a quarter of a second. */
START_TEST(refreshes_gather)
{
	make_plain(MANY);
	refresh_first(HW_GATHER_ITEMS - 1);
	turn_loop(5);
	ck_assert_uint_eq(queued(), HW_GATHER_ITEMS - 1);
	refresh_first(HW_GATHER_ITEMS);
	turn_loop(2);
	ck_assert_uint_eq(queued(), 0);
	settle();
	struct hw_now begin = rig_now();
	refresh_first(3);
	rig_until(g, is_sent, IDLE_MS);
	ck_assert_int_ge(rig_now().mono.ns - begin.mono.ns, (HW_GATHER_MS - 20) * HW_NS_PER_MS);
	settle();
	expect_extended(MANY);
}
END_TEST

/* A device whose hash has to be written does not wait, and takes those along that do. */
START_TEST(an_urgent_refresh_does_not_wait)
{
	make_plain(4);
	refresh_first(3);
	turn_loop(5);
	ck_assert_uint_eq(queued(), 3);
	hw_redis_rewrite(g->r, hw_registry_ref(hw_monitor_registry(g->m), plain[3]));
	turn_loop(2);
	ck_assert_uint_eq(queued(), 0);
	refresh_first(3);
	turn_loop(5);
	ck_assert_uint_eq(queued(), 3);
	hw_plan_sweep(g->r);
	rig_until(g, is_swept, IDLE_MS);
	turn_loop(2);
	ck_assert_uint_eq(queued(), 0);
	settle();
}
END_TEST

/* Otherwise a crash meanwhile would lose it. */
START_TEST(a_timeout_of_its_own_does_not_wait)
{
	make_plain(1);
	struct hw_extra *x = hw_registry_extra(hw_monitor_registry(g->m), plain[0]);
	for (int64_t own_ms = 310000; own_ms >= 0; own_ms -= 155000) { /* new, changed, and gone */
		x->own_timeout_ms = own_ms;
		refresh_first(1);
		turn_loop(2);
		ck_assert_uint_eq(queued(), 0);
		settle();
	}
	rig_expect(g, NULL, "HGET device:state:%b own_timeout", id_of(0).text, id_of(0).len);
}
END_TEST

/* A key that is missing is written again, and so is all of a Redis that was emptied. */
START_TEST(a_missing_key_is_written_in_full)
{
	make_plain(MANY);
	rig_do(g, "DEL device:connected:%b", id_of(7).text, id_of(7).len);
	rig_do(g, "HSET device:state:%b last_seen 1", id_of(7).text, id_of(7).len);
	refresh_first(20);
	settle();
	expect_extended(20);
	ck_assert_int_gt(rig_number(g, "HGET device:state:%b last_seen", id_of(7).text, id_of(7).len), 1);
	rig_do(g, "FLUSHALL");
	refresh_first(MANY);
	settle();
	expect_extended(MANY);
	for (unsigned k = 0; k < MANY; k++)
		ck_assert_int_eq(rig_number(g, "HGET device:state:%b seq", id_of(k).text, id_of(k).len),
		                 (long long)rig_at(g, plain[k])->seq);
}
END_TEST

static void fixture_without_pexpire(void)
{
	static const char *const extra[] = {"--rename-command", "PEXPIRE", "renamed", NULL};
	rig_serve(g, extra);
	rig_start(g);
	rig_until(g, rig_is_up, IDLE_MS);
}

/* After an error that is about one command, the script refreshes the device. */
START_TEST(an_error_of_one_command)
{
	make_plain(20);
	for (unsigned k = 0; k < 20; k++)
		rig_do(g, "renamed device:connected:%b 20000", id_of(k).text, id_of(k).len);
	refresh_first(20);
	settle();
	expect_extended(20);
	ck_assert_uint_eq(g->troubles, 1); /* one line for all of them */
	ck_assert_ptr_null(hw_redis_refusal(g->r));
}
END_TEST

/* What Redis refuses as a whole is tried again. */
START_TEST(redis_refuses_all)
{
	make_plain(MANY);
	shorten(MANY);
	rig_do(g, "ACL SETUSER default -pexpire");
	refresh_first(MANY);
	rig_until(g, is_troubled, IDLE_MS);
	ck_assert_ptr_nonnull(hw_redis_refusal(g->r));
	rig_do(g, "ACL SETUSER default +pexpire");
	settle();
	ck_assert_ptr_null(hw_redis_refusal(g->r));
	expect_extended(MANY);
	shorten(MANY);
	refresh_first(MANY);
	settle();
	expect_extended(MANY);
}
END_TEST

/* Refreshes whose answers are lost are pending again, apart from what every reconnect compares. */
START_TEST(answers_that_are_lost)
{
	make_plain(MANY);
	shorten(MANY);
	rig_do(g, "CLIENT PAUSE 60000 WRITE");
	refresh_first(MANY);
	turn_loop(5);
	ck_assert_uint_gt(g->r->sink.in_flight[HW_CALL_REFRESH], 0);
	ck_assert_uint_eq(queued(), 0);
	rig_do(g, "CLIENT KILL TYPE normal SKIPME yes");
	rig_until(g, is_down, IDLE_MS);
	ck_assert_uint_eq(queued(), MANY);
	ck_assert_uint_eq(g->r->sink.in_flight[HW_CALL_REFRESH], 0);
	rig_do(g, "CLIENT UNPAUSE");
	rig_until(g, rig_is_up, IDLE_MS);
	settle();
	expect_extended(MANY);
	make_plain(MANY);
	refresh_first(MANY);
	settle();
	expect_extended(MANY);
}
END_TEST

/* --- with several nodes ------------------------------------------------------------------------------------------- */

static unsigned part_of(unsigned k)
{
	return hw_partition_of(id_of(k).text, id_of(k).len);
}

/* Another node has taken the partitions over, and this node does not know that yet. */
START_TEST(a_stale_owner_brings_no_key_back)
{
	make_plain(2);
	shorten(2);
	for (unsigned k = 0; k < 2; k++)
		rig_do(g, "HSET device:owners %u %s", part_of(k), "51 node-2");
	rig_do(g, "DEL device:connected:%b", id_of(0).text, id_of(0).len);
	rig_do(g, "HSET device:state:%b state offline", id_of(0).text, id_of(0).len);
	refresh_first(2);
	settle();
	ck_assert_int_eq(pttl(0), -2);
	rig_expect(g, "offline", "HGET device:state:%b state", id_of(0).text, id_of(0).len);
	ck_assert_uint_eq(g->fenced, 1); /* the full refresh */
	ck_assert_uint_eq(g->fenced_by.epoch, OURS + 1);
	ck_assert_int_gt(pttl(1), 20000); /* online at the new owner, too */
	ck_assert_int_le(pttl(1), 90000);
}
END_TEST

/* A node that knows that it owns a device no more sends nothing. */
START_TEST(another_nodes_device_is_left_alone)
{
	make_plain(2);
	shorten(2);
	g->epoch[part_of(0)] = 0;
	refresh_first(2);
	settle();
	ck_assert_int_le(pttl(0), 20000);
	ck_assert_int_eq(pttl(1) > 20000, part_of(0) != part_of(1));
	ck_assert_uint_gt(g->dropped, 0);
}
END_TEST

static void add(Suite *suite, const char *name, void (*up)(void), const TTest *const tests[])
{
	TCase *tc = tcase_create(name);
	tcase_add_checked_fixture(tc, up, fixture_down);
	tcase_set_timeout(tc, 60);
	for (; *tests; tests++)
		tcase_add_test(tc, *tests);
	suite_add_tcase(suite, tc);
}

int main(void)
{
	const TTest *const one[] = {a_plain_refresh_needs_no_script,
	                            refreshes_gather,
	                            an_urgent_refresh_does_not_wait,
	                            a_timeout_of_its_own_does_not_wait,
	                            a_missing_key_is_written_in_full,
	                            redis_refuses_all,
	                            answers_that_are_lost,
	                            NULL};
	const TTest *const renamed[] = {an_error_of_one_command, NULL};
	const TTest *const several[] = {a_stale_owner_brings_no_key_back, another_nodes_device_is_left_alone, NULL};
	Suite *suite = suite_create("redis_plain");
	add(suite, "alone", fixture_up, one);
	add(suite, "renamed", fixture_without_pexpire, renamed);
	add(suite, "several nodes", fixture_node_up, several);
	return rig_run(suite);
}

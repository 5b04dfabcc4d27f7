/* SPDX-License-Identifier: MIT */
/* Redis refuses all writes, or some: refused writes stay pending, and are written once Redis accepts them. */
#include <check.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../sink_state.h"
#include "redis_fixture.h"

/* Writes that were pending during the refusal are written after it, and the refusal was reported once. */
static void owe_through(const char *refuse, const char *word, const char *allow)
{
	make_devices(200);
	settle();
	rig_do(g, refuse);
	make_devices(200);
	hw_redis_refresh(g->r, hw_registry_ref(hw_monitor_registry(g->m), 5));
	sink_rewrite(g->r, hw_registry_ref(hw_monitor_registry(g->m), 6));
	g->marking = true;
	rig_until(g, is_troubled, IDLE_MS);
	int64_t until = rig_now().mono.ns + HW_NS_PER_S / 2;
	while (rig_now().mono.ns < until)
		event_base_loop(g->base, EVLOOP_ONCE);
	ck_assert(!sink_is_idle(g->r));
	ck_assert_uint_eq(hw_redis_stats(g->r)->transitions_waiting, 200);
	ck_assert_msg(strstr(g->trouble, word), "%s", g->trouble);
	ck_assert_uint_eq(g->troubles, 1);
	rig_do(g, allow);
	settle();
	compare_all();
	ck_assert_int_eq(events(), 400);
	ck_assert_uint_eq(hw_redis_stats(g->r)->transitions_dropped, 0);
	ck_assert_uint_eq(g->newer, 0);
}

START_TEST(out_of_memory)
{
	owe_through("CONFIG SET maxmemory 1", "maxmemory", "CONFIG SET maxmemory 0");
}
END_TEST

#define FLEET  6000
#define TTL_MS 90000 /* of GROUP_PLAIN's keys */

static struct hw_ref fleet[FLEET];
static unsigned not_refreshed;

/* `n` online devices d0, d1 ... */
static void make_fleet(unsigned n)
{
	char id[16];
	for (unsigned k = 0; k < n; k++) {
		snprintf(id, sizeof(id), "d%u", k);
		fleet[k] = online(rig_device(g, GROUP_PLAIN, id)).device;
	}
	settle();
}

/* By the times to live: those that were given by hand are longer. */
static bool all_are_refreshed(struct rig *r)
{
	while (not_refreshed > 0) {
		if (rig_number(r, "PTTL device:connected:d%u", not_refreshed - 1) > TTL_MS)
			return false;
		not_refreshed--;
	}
	return true;
}

static void refresh_fleet(unsigned n)
{
	for (unsigned k = 0; k < n; k++) {
		ck_assert_int_eq(rig_number(g, "PEXPIRE device:connected:d%u %d", k, 10 * TTL_MS), 1);
		hw_redis_refresh(g->r, fleet[k]);
	}
	not_refreshed = n;
	rig_until(g, all_are_refreshed, IDLE_MS);
}

static void fill_memory(void)
{
	rig_do(g, "CONFIG SET maxmemory 1");
	redisReply *reply = rig_ask(g, "SET other x");
	ck_assert_ptr_nonnull(strstr(reply->str, "OOM"));
	freeReplyObject(reply);
}

static bool has_reconnected(struct rig *r)
{
	return hw_redis_stats(r->r)->reconnects > 0 && rig_is_idle(r);
}

/* The first after a transition is a full one, as are those after a new connection; others are light. */
START_TEST(a_refresh_takes_no_memory)
{
	make_fleet(5);
	uint32_t off = rig_device(g, GROUP_PLAIN, "off");
	rig_transit(g, off, HW_STATE_OFFLINE, HW_REASON_TIMEOUT);
	settle();
	fill_memory();
	for (int k = 0; k < 3; k++) {
		refresh_fleet(5);
		hw_redis_refresh(g->r, hw_registry_ref(hw_monitor_registry(g->m), off));
		settle();
	}
	rig_do(g, "CLIENT KILL TYPE normal SKIPME yes");
	rig_until(g, has_reconnected, IDLE_MS);
	rig_do(g, "DEL device:connected:d0");
	hw_redis_refresh(g->r, fleet[0]);
	settle();
	ck_assert_uint_eq(g->troubles, 0);
	compare_all();
	ck_assert_int_eq(events(), 6);
}
END_TEST

/* A transition that is owed is tried once a second; refreshes do not wait for that. Of all of them it would take
 * minutes. */
START_TEST(refreshes_overtake_what_is_refused)
{
	make_fleet(FLEET);
	fill_memory();
	rig_transit(g, rig_device(g, GROUP_PLAIN, "off"), HW_STATE_OFFLINE, HW_REASON_TIMEOUT);
	rig_until(g, is_troubled, IDLE_MS);
	refresh_fleet(FLEET);
	refresh_fleet(FLEET);
	ck_assert_uint_eq(hw_redis_stats(g->r)->transitions_waiting, 1);
	rig_do(g, "CONFIG SET maxmemory 0");
	settle();
	compare_all();
	ck_assert_int_eq(events(), FLEET + 1);
}
END_TEST

START_TEST(read_only)
{
	owe_through("REPLICAOF 127.0.0.1 1", "replica", "REPLICAOF NO ONE");
}
END_TEST

/* Its name may mean the new master by now. */
START_TEST(a_replica_is_left)
{
	rig_do(g, "REPLICAOF 127.0.0.1 1");
	make_devices(10);
	rig_until(g, is_down, IDLE_MS);
	ck_assert_ptr_nonnull(strstr(g->why, "replica"));
	rig_do(g, "REPLICAOF NO ONE");
	settle();
	compare_all();
	ck_assert_int_eq(events(), 10);
}
END_TEST

START_TEST(cannot_save)
{
	rig_do(g, "CONFIG SET save %s", "3600 1");
	rig_do(g, "SET other 1");
	char log[200];
	snprintf(log, sizeof(log), "%s/log", g->dir);
	unlink(log);
	unlink(g->socket);
	ck_assert_int_eq(rmdir(g->dir), 0); /* it cannot write there any more */
	freeReplyObject(rig_ask(g, "BGSAVE"));
	redisReply *reply;
	int64_t end = rig_now().mono.ns + 5 * HW_NS_PER_S;
	do {
		reply = rig_ask(g, "SET other 2");
		bool refused = reply->type == REDIS_REPLY_ERROR;
		freeReplyObject(reply);
		if (refused)
			break;
	} while (rig_now().mono.ns < end);
	rig_do(g, "CONFIG SET stop-writes-on-bgsave-error no");
	owe_through("CONFIG SET stop-writes-on-bgsave-error yes", "save", "CONFIG SET stop-writes-on-bgsave-error no");
}
END_TEST

START_TEST(not_permitted)
{
	rig_do(g, "CONFIG RESETSTAT");
	owe_through("ACL SETUSER default -zadd -set", "ACL", "ACL SETUSER default +zadd +set");
}
END_TEST

/* Refused at the last write of an item: its seq is taken back, so that it does not count as written. */
START_TEST(no_stream_permitted)
{
	owe_through("ACL SETUSER default -xadd", "ACL", "ACL SETUSER default +xadd");
}
END_TEST

START_TEST(a_shared_key_of_another_type)
{
	make_devices(10);
	settle();
	rig_do(g, "RENAME device:offline kept");
	rig_do(g, "SET device:offline x");
	make_devices(10);
	rig_until(g, is_troubled, IDLE_MS);
	ck_assert_ptr_nonnull(strstr(g->trouble, "device:offline"));
	ck_assert_int_eq(events(), 10);
	rig_do(g, "RENAME kept device:offline");
	settle();
	compare_all();
	ck_assert_int_eq(events(), 20);
}
END_TEST

/*
 * One transition that Redis can never take (a TTL beyond its clock) does not hold up the others for ever; but nothing
 * of its own device overtakes it, neither in the same call nor in a later one.
 */
static void never(unsigned between)
{
	char id[16];
	g->conf.ttl_factor = 29247120;
	rig_start(g);
	rig_until(g, rig_is_up, IDLE_MS);
	online(rig_device(g, GROUP_FAST, "before"));
	uint32_t i = rig_device(g, GROUP_SLOW, "never");
	online(i);
	for (unsigned k = 0; k < between; k++) {
		snprintf(id, sizeof(id), "d%u", k);
		online(rig_device(g, GROUP_FAST, id));
	}
	rig_transit(g, i, HW_STATE_OFFLINE, HW_REASON_TIMEOUT);
	online(rig_device(g, GROUP_FAST, "after"));
	settle();
	ck_assert_uint_eq(hw_redis_stats(g->r)->transitions_dropped, 1);
	ck_assert_int_eq(events(), between + 3);
	rig_expect(g, "online", "HGET device:state:after state");
	rig_expect(g, "offline", "HGET device:state:never state");
	ck_assert_uint_eq(g->newer, 0);
}

START_TEST(one_that_never_works)
{
	never(0);
}
END_TEST

START_TEST(one_that_never_works_in_another_call)
{
	never(200);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("redis_refusals");
	TCase *tc = tcase_create("live");
	tcase_add_checked_fixture(tc, fixture_up, fixture_down);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, out_of_memory);
	tcase_add_test(tc, read_only);
	tcase_add_test(tc, a_replica_is_left);
	tcase_add_test(tc, no_stream_permitted);
	tcase_add_test(tc, cannot_save);
	tcase_add_test(tc, not_permitted);
	tcase_add_test(tc, a_shared_key_of_another_type);
	suite_add_tcase(suite, tc);
	tc = tcase_create("memory");
	tcase_add_checked_fixture(tc, fixture_up, fixture_down);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_refresh_takes_no_memory);
	tcase_add_test(tc, refreshes_overtake_what_is_refused);
	suite_add_tcase(suite, tc);
	tc = tcase_create("start");
	tcase_add_checked_fixture(tc, fixture_serve, fixture_down);
	tcase_set_timeout(tc, 90);
	tcase_add_test(tc, one_that_never_works);
	tcase_add_test(tc, one_that_never_works_in_another_call);
	suite_add_tcase(suite, tc);
	return rig_run(suite);
}

/* SPDX-License-Identifier: MIT */
/* Redis that goes, forgets, refuses or stands still: nothing owed is lost, and no edge is written twice. */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "redis_rig.h"

#define IDLE_MS 10000

static struct rig rig, *const g = &rig;

static void up(void)
{
	rig_up(g);
}

static void serve(void)
{
	rig_serve(g, NULL);
}

static void down(void)
{
	rig_stop(g);
}

static void settle(void)
{
	rig_until(g, rig_is_idle, IDLE_MS);
}

static bool is_troubled(struct rig *r)
{
	return r->troubles > 0;
}

static bool is_down(struct rig *r)
{
	return r->downs > 0;
}

static bool is_emptied(struct rig *r)
{
	return r->emptied > 0;
}

static bool is_marked(struct rig *r)
{
	return rig_number(r, "EXISTS device:monitor:node-1") == 1;
}

static long long events(void)
{
	return rig_number(g, "XLEN device:events");
}

static struct hw_transition online(uint32_t i)
{
	return rig_transit(g, i, HW_STATE_ONLINE, HW_REASON_HEARTBEAT);
}

/* `n` devices d0, d1 ..., every third offline. */
static void make_devices(unsigned n)
{
	char id[16];
	for (unsigned k = 0; k < n; k++) {
		snprintf(id, sizeof(id), "d%u", k);
		uint32_t i = rig_device(g, GROUP_PLAIN, id);
		rig_transit(g, i, k % 3 ? HW_STATE_ONLINE : HW_STATE_OFFLINE,
		            k % 3 ? HW_REASON_HEARTBEAT : HW_REASON_TIMEOUT);
	}
}

/* Every record is in the store as it is here. */
static void compare_all(void)
{
	const struct hw_registry *devices = hw_monitor_registry(g->m);
	long long offline = 0;
	for (uint32_t i = 0; i < hw_registry_bound(devices); i++) {
		const struct hw_device *d = hw_registry_at(devices, i);
		struct hw_id id = hw_device_id(d);
		bool is_online = hw_device_state(d) == HW_STATE_ONLINE;
		offline += !is_online;
		redisReply *reply = rig_ask(g, "HMGET device:state:%b seq state", id.text, id.len);
		ck_assert_ptr_nonnull(reply->element[0]->str);
		ck_assert_uint_eq(strtoull(reply->element[0]->str, NULL, 10), d->seq);
		ck_assert_str_eq(reply->element[1]->str, hw_state_name(hw_device_state(d)));
		freeReplyObject(reply);
		ck_assert_int_eq(rig_number(g, "EXISTS device:connected:%b", id.text, id.len), is_online);
		ck_assert_int_eq(rig_number(g, "EXISTS device:disconnected:%b", id.text, id.len), !is_online);
	}
	ck_assert_int_eq(rig_number(g, "ZCARD device:offline"), offline);
}

/* --- forgetting ----------------------------------------------------------------------------------------------------
 */

START_TEST(scripts_are_loaded_again)
{
	make_devices(3);
	settle();
	g->marking = true;
	for (int k = 0; k < 3; k++) {
		rig_do(g, "SCRIPT FLUSH");
		make_devices(300);
		hw_redis_refresh(g->r, hw_registry_ref(hw_monitor_registry(g->m), 1));
		settle();
	}
	compare_all();
	ck_assert_int_eq(events(), 903);
	ck_assert_uint_eq(g->troubles, 0);
	ck_assert_uint_eq(g->downs, 0);
}
END_TEST

START_TEST(emptied_under_a_live_link)
{
	make_devices(3000);
	g->marking = true;
	rig_until(g, is_marked, IDLE_MS);
	settle();
	rig_do(g, "FLUSHALL");
	rig_until(g, is_emptied, IDLE_MS);
	settle();
	compare_all();
	ck_assert_uint_eq(g->emptied, 1);
	ck_assert_uint_eq(hw_redis_stats(g->r)->rewrites, 3000);
	ck_assert_int_eq(rig_number(g, "EXISTS device:events device:outbox"), 0);
}
END_TEST

START_TEST(restarted_empty)
{
	make_devices(300);
	g->marking = true;
	rig_until(g, is_marked, IDLE_MS);
	settle();
	rig_kill_server(g);
	rig_until(g, is_down, IDLE_MS);
	ck_assert(!hw_redis_up(g->r));
	ck_assert_int_gt(hw_redis_down_since(g->r).ns, 0);
	/* Edges wait for it meanwhile; those of the time before are gone with the stream. */
	struct hw_transition t = online(0);
	ck_assert(!hw_redis_idle(g->r));
	ck_assert_uint_eq(hw_redis_stats(g->r)->edges_waiting, 1);
	ck_assert_int_gt(hw_redis_stats(g->r)->oldest_edge_ms, 0);
	rig_serve_again(g, NULL);
	rig_until(g, rig_is_up, 15000);
	settle();
	compare_all();
	ck_assert_uint_eq(g->emptied, 1);
	ck_assert_int_eq(events(), 1);
	ck_assert_int_eq(rig_number(g, "HLEN device:outbox"), 1);
	ck_assert_int_eq(rig_number(g, "HGET device:state:d0 seq"), (long long)t.seq);
	ck_assert_uint_eq(hw_redis_stats(g->r)->reconnects, 1);
	ck_assert_int_eq(hw_redis_down_since(g->r).ns, 0);
}
END_TEST

/* --- a link that is cut again and again ----------------------------------------------------------------------------
 */

#define CUT_EDGES   5000
#define CUT_DEVICES 150

static uint64_t random_state;

static unsigned dice(unsigned n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (unsigned)(random_state % n);
}

/* The stream holds exactly `want`, each device's entries in their order. */
static void compare_stream(const struct hw_transition *want, size_t n)
{
	char id[16];
	redisReply *reply = rig_ask(g, "XRANGE device:events - +");
	ck_assert_uint_eq(reply->elements, n);
	size_t *next = calloc(CUT_DEVICES, sizeof(*next));
	for (size_t k = 0; k < n; k++) {
		const redisReply *fields = reply->element[k]->element[1];
		unsigned device = (unsigned)strtoul(fields->element[1]->str + 1, NULL, 10);
		size_t *at = &next[device];
		while (*at < n && want[*at].device.index != device)
			++*at;
		snprintf(id, sizeof(id), "%llu", *at < n ? (unsigned long long)want[*at].seq : 0);
		ck_assert_str_eq(fields->element[15]->str, id);
		++*at;
	}
	free(next);
	freeReplyObject(reply);
}

START_TEST(cut_at_random)
{
	struct hw_transition *made = calloc(CUT_EDGES, sizeof(*made));
	size_t n = 0;
	random_state = rig_seed();
	make_devices(CUT_DEVICES);
	settle();
	rig_do(g, "DEL device:events");
	while (n < CUT_EDGES) {
		for (unsigned burst = 1 + dice(600); burst && n < CUT_EDGES; burst--) {
			uint32_t i = dice(CUT_DEVICES);
			bool to = dice(2);
			made[n++] = rig_transit(g, i, to ? HW_STATE_ONLINE : HW_STATE_OFFLINE,
			                        to ? HW_REASON_HEARTBEAT : HW_REASON_TIMEOUT);
			if (dice(4) == 0)
				hw_redis_refresh(g->r, made[n - 1].device);
		}
		for (unsigned turns = dice(6); turns; turns--)
			event_base_loop(g->base, EVLOOP_NONBLOCK);
		rig_do(g, "CLIENT KILL TYPE normal SKIPME yes");
		if (dice(2))
			rig_until(g, rig_is_up, IDLE_MS);
	}
	settle();
	ck_assert_uint_gt(hw_redis_stats(g->r)->reconnects, 2);
	compare_stream(made, n);
	compare_all();
	ck_assert_uint_eq(g->newer, 0);
	ck_assert_uint_eq(hw_redis_stats(g->r)->edges_dropped, 0);
	ck_assert_int_eq(rig_number(g, "HLEN device:outbox"), CUT_DEVICES);
	free(made);
}
END_TEST

/* --- refusals ------------------------------------------------------------------------------------------------------
 */

/* What was owed while Redis refused is written when it no longer does, and it was told once. */
static void owe_through(const char *refuse, const char *word, const char *allow)
{
	make_devices(200);
	settle();
	rig_do(g, refuse);
	make_devices(200);
	hw_redis_refresh(g->r, hw_registry_ref(hw_monitor_registry(g->m), 5));
	hw_redis_rewrite(g->r, hw_registry_ref(hw_monitor_registry(g->m), 6));
	g->marking = true;
	rig_until(g, is_troubled, IDLE_MS);
	int64_t until = rig_now().mono.ns + HW_NS_PER_S / 2;
	while (rig_now().mono.ns < until)
		event_base_loop(g->base, EVLOOP_ONCE);
	ck_assert(!hw_redis_idle(g->r));
	ck_assert_uint_eq(hw_redis_stats(g->r)->edges_waiting, 200);
	ck_assert_msg(strstr(g->trouble, word), "%s", g->trouble);
	ck_assert_uint_eq(g->troubles, 1);
	rig_do(g, allow);
	settle();
	compare_all();
	ck_assert_int_eq(events(), 400);
	ck_assert_uint_eq(hw_redis_stats(g->r)->edges_dropped, 0);
	ck_assert_uint_eq(g->newer, 0);
}

START_TEST(out_of_memory)
{
	owe_through("CONFIG SET maxmemory 1", "maxmemory", "CONFIG SET maxmemory 0");
}
END_TEST

/* A device that beats keeps its key alive, however long there is no memory, as far as the store knows of it. */

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

/* An edge that is owed is tried once a second; refreshes do not wait for that. Of all of them it would take minutes. */
START_TEST(refreshes_overtake_what_is_refused)
{
	make_fleet(FLEET);
	fill_memory();
	rig_transit(g, rig_device(g, GROUP_PLAIN, "off"), HW_STATE_OFFLINE, HW_REASON_TIMEOUT);
	rig_until(g, is_troubled, IDLE_MS);
	refresh_fleet(FLEET);
	refresh_fleet(FLEET);
	ck_assert_uint_eq(hw_redis_stats(g->r)->edges_waiting, 1);
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
 * One edge that Redis can never take (a TTL beyond its clock) does not hold up the others for ever; but nothing of its
 * own device overtakes it, neither in the same call nor in a later one.
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
	ck_assert_uint_eq(hw_redis_stats(g->r)->edges_dropped, 1);
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

/* --- standing still ------------------------------------------------------------------------------------------------
 */

START_TEST(a_pause_is_waited_for)
{
	make_devices(10);
	settle();
	rig_do(g, "CLIENT PAUSE 1200");
	make_devices(10);
	g->marking = true;
	settle();
	ck_assert_uint_eq(g->downs, 0);
	ck_assert_int_eq(events(), 20);
	ck_assert_int_gt(hw_redis_stats(g->r)->script_ns, 0);
}
END_TEST

START_TEST(a_standstill_drops_the_link)
{
	make_devices(10);
	settle();
	kill(g->server, SIGSTOP);
	make_devices(10); /* with nothing else to do, PING would tell */
	rig_until(g, is_down, IDLE_MS);
	ck_assert_ptr_nonnull(strstr(g->why, "5 s"));
	kill(g->server, SIGCONT);
	rig_until(g, rig_is_up, IDLE_MS);
	settle();
	compare_all();
	ck_assert_int_eq(events(), 20);
}
END_TEST

START_TEST(a_quiet_link_is_asked)
{
	rig_do(g, "CONFIG RESETSTAT");
	int64_t until = rig_now().mono.ns + 3500 * HW_NS_PER_MS;
	while (rig_now().mono.ns < until)
		event_base_loop(g->base, EVLOOP_ONCE);
	redisReply *reply = rig_ask(g, "INFO commandstats");
	ck_assert_ptr_nonnull(strstr(reply->str, "cmdstat_ping"));
	freeReplyObject(reply);
}
END_TEST

/* --- more than the ring holds --------------------------------------------------------------------------------------
 */

START_TEST(overflow_is_counted_and_made_good)
{
	const unsigned mark = 262144;
	g->conf.events_max = 1000;
	rig_start(g);
	uint32_t a = rig_device(g, GROUP_PLAIN, "a"), b = rig_device(g, GROUP_PLAIN, "b");
	for (unsigned k = 0; k < mark; k++)
		online(a);
	rig_transit(g, b, HW_STATE_OFFLINE, HW_REASON_WILL);
	rig_transit(g, a, HW_STATE_OFFLINE, HW_REASON_WILL);
	ck_assert_uint_eq(hw_redis_stats(g->r)->edges_dropped, 2);
	ck_assert_uint_eq(hw_redis_stats(g->r)->edges_waiting, mark);
	rig_until(g, rig_is_idle, 60000);
	compare_all();
	ck_assert_uint_eq(hw_redis_stats(g->r)->edges_written, mark);
	ck_assert_uint_eq(hw_redis_stats(g->r)->edges_waiting, 0);
	ck_assert_uint_eq(g->newer, 0);
	ck_assert_int_ge(events(), 1000); /* the rewrites came after the edges */
	ck_assert_int_lt(events(), 2000);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("redis_faults");
	TCase *t = tcase_create("live");
	tcase_add_checked_fixture(t, up, down);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, scripts_are_loaded_again);
	tcase_add_test(t, emptied_under_a_live_link);
	tcase_add_test(t, restarted_empty);
	tcase_add_test(t, cut_at_random);
	tcase_add_test(t, out_of_memory);
	tcase_add_test(t, read_only);
	tcase_add_test(t, a_replica_is_left);
	tcase_add_test(t, no_stream_permitted);
	tcase_add_test(t, cannot_save);
	tcase_add_test(t, not_permitted);
	tcase_add_test(t, a_shared_key_of_another_type);
	tcase_add_test(t, a_pause_is_waited_for);
	tcase_add_test(t, a_standstill_drops_the_link);
	tcase_add_test(t, a_quiet_link_is_asked);
	suite_add_tcase(s, t);
	t = tcase_create("memory");
	tcase_add_checked_fixture(t, up, down);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, a_refresh_takes_no_memory);
	tcase_add_test(t, refreshes_overtake_what_is_refused);
	suite_add_tcase(s, t);
	t = tcase_create("start");
	tcase_add_checked_fixture(t, serve, down);
	tcase_set_timeout(t, 90);
	tcase_add_test(t, one_that_never_works);
	tcase_add_test(t, one_that_never_works_in_another_call);
	tcase_add_test(t, overflow_is_counted_and_made_good);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	SRunner *r = srunner_create(suite());
	rig_begin();
	srunner_run_all(r, CK_NORMAL);
	rig_end();
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

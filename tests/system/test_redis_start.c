/* SPDX-License-Identifier: MIT */
/* Getting to Redis (addresses, passwords, databases, prefixes) and loading what it holds. */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link/link.h"
#include "redis_fixture.h"

static bool has_failed_thrice(struct rig *r)
{
	return rig_number(r, "EVAL %s 0",
	                  "local s = redis.call('INFO', 'commandstats') "
	                  "return tonumber(string.match(s, 'cmdstat_auth:calls=(%d+)') or 0)") >= 3;
}

/* The link comes up, and a transition is written. */
static void works(void)
{
	rig_until(g, rig_is_up, IDLE_MS);
	rig_transit(g, rig_device(g, GROUP_PLAIN, "a"), HW_STATE_ONLINE, HW_REASON_HEARTBEAT);
	settle();
	rig_expect(g, "online", "HGET %sstate:a state", g->conf.key_prefix);
}

/* --- ways to it ----------------------------------------------------------------------------------------------------
 */

START_TEST(by_address)
{
	rig_start(g);
	works();
	ck_assert_uint_eq(g->ups, 1);
	ck_assert_uint_eq(g->downs, 0);
}
END_TEST

START_TEST(by_name)
{
	g->conf.at.host = "localhost"; /* perhaps ::1 first, where nobody listens */
	rig_start(g);
	works();
	ck_assert_uint_eq(g->downs, 0);
}
END_TEST

static void count_ready(void *arg)
{
	++*(unsigned *)arg;
}

static void must_not_be_lost(void *arg, const char *why)
{
	(void)arg;
	ck_abort_msg("%s", why);
}

/* Of a name's addresses the first that answers is used; the others are no failure. */
START_TEST(by_the_second_address)
{
	static const struct hw_redis_link_ops ops = {count_ready, must_not_be_lost, NULL};
	const struct hw_redis_link_conf conf = {
		.at = {.host = "name", .unix_socket = "", .username = "", .password = "", .port = g->port}, .seed = 1};
	struct hw_redis_link link;
	unsigned n = 0;
	rig_start(g);
	ck_assert_int_eq(hw_redis_link_init(&link, g->base, &conf, &ops, &n), 0);
	snprintf(link.addresses[0], HW_ADDRESS_TEXT, "127.0.0.2"); /* nobody listens there */
	snprintf(link.addresses[1], HW_ADDRESS_TEXT, "127.0.0.1");
	link.n_addresses = 2;
	for (int64_t end = rig_now().mono.ns + 5 * HW_NS_PER_S; n == 0 && rig_now().mono.ns < end;)
		event_base_loop(g->base, EVLOOP_ONCE);
	ck_assert_uint_eq(n, 1);
	hw_redis_link_fini(&link);
}
END_TEST

START_TEST(by_unix_socket)
{
	g->conf.at.unix_socket = g->socket;
	g->conf.at.host = "unused.invalid";
	rig_start(g);
	works();
	ck_assert_uint_eq(g->downs, 0);
}
END_TEST

START_TEST(in_another_database)
{
	g->conf.at.db = 3;
	rig_start(g);
	rig_do(g, "SELECT 3");
	works();
	rig_do(g, "SELECT 0");
	ck_assert_int_eq(rig_number(g, "DBSIZE"), 0);
}
END_TEST

START_TEST(in_no_database)
{
	g->conf.at.db = 99;
	rig_start(g);
	rig_until(g, is_down, IDLE_MS);
	ck_assert_msg(strstr(g->why, "[redis] db"), "%s", g->why);
}
END_TEST

/* Each reason is reported once, and the attempts never end. */
START_TEST(nobody_there)
{
	int port = g->port;
	rig_kill_server(g);
	rig_start(g);
	rig_until(g, is_down, IDLE_MS);
	ck_assert_msg(strstr(g->why, "Connection refused") && strstr(g->why, "[redis] host, port"), "%s", g->why);
	int64_t until = rig_now().mono.ns + HW_NS_PER_S;
	while (rig_now().mono.ns < until)
		event_base_loop(g->base, EVLOOP_ONCE);
	ck_assert_uint_eq(g->downs, 1);
	ck_assert_int_eq(port, g->port);
	rig_serve_again(g, NULL);
	works();
}
END_TEST

START_TEST(no_such_name)
{
	g->conf.at.host = "name.invalid";
	rig_start(g);
	rig_until(g, is_down, 30000);
	ck_assert_msg(strstr(g->why, "name.invalid") && strstr(g->why, "[redis] host"), "%s", g->why);
}
END_TEST

static void on_no_link(void *arg, bool is_up, const char *why)
{
	(void)arg, (void)is_up, (void)why;
}

/* Freed during a name look-up, and during a connect. */
START_TEST(freed_in_the_middle)
{
	rig_start(g);
	for (int turns = 0; turns < 12; turns++) {
		g->conf.at.host = turns % 2 ? "localhost" : "127.0.0.1";
		struct event_base *base = event_base_new();
		static const struct hw_redis_ops deaf = {.on_link = on_no_link};
		struct hw_redis *r = hw_redis_new(base, &g->conf, g->m, &deaf, NULL);
		ck_assert_ptr_nonnull(r);
		for (int k = 0; k < turns / 2; k++)
			event_base_loop(base, EVLOOP_NONBLOCK);
		hw_redis_free(r);
		event_base_loop(base, EVLOOP_NONBLOCK);
		event_base_free(base);
	}
	works();
}
END_TEST

/* --- passwords -----------------------------------------------------------------------------------------------------
 */

static const char refused[] = "Redis refused the password: check [redis] username and password_file";

START_TEST(a_password)
{
	rig_do(g, "CONFIG SET requirepass %s", "right one");
	g->conf.at.password = "right one";
	rig_start(g);
	works();
}
END_TEST

START_TEST(a_wrong_password)
{
	rig_do(g, "CONFIG SET requirepass right");
	g->conf.at.password = "wrong";
	rig_start(g);
	rig_until(g, has_failed_thrice, IDLE_MS);
	ck_assert_str_eq(g->why, refused);
	ck_assert_uint_eq(g->downs, 1);
	ck_assert_uint_eq(g->ups, 0);
	rig_do(g, "CONFIG SET requirepass wrong");
	works();
}
END_TEST

START_TEST(a_missing_password)
{
	rig_do(g, "CONFIG SET requirepass right");
	rig_start(g);
	rig_until(g, is_down, IDLE_MS);
	ck_assert_str_eq(g->why, "Redis needs a password: set [redis] username and password_file");
}
END_TEST

START_TEST(a_password_too_many)
{
	g->conf.at.password = "any";
	rig_start(g);
	rig_until(g, is_down, IDLE_MS);
	ck_assert_msg(strstr(g->why, "Redis has no password, but"), "%s", g->why);
}
END_TEST

START_TEST(a_user)
{
	rig_do(g, "ACL SETUSER wheel on >secret ~device:* +@all -@dangerous -@admin");
	g->conf.at.username = "wheel";
	g->conf.at.password = "secret";
	rig_start(g);
	works();
	hw_redis_load(g->r);
	rig_until(g, rig_is_loaded, IDLE_MS);
}
END_TEST

START_TEST(a_user_without_rights)
{
	rig_do(g, "ACL SETUSER wheel on >secret ~device:* +@all -script");
	g->conf.at.username = "wheel";
	g->conf.at.password = "secret";
	rig_start(g);
	rig_until(g, is_down, IDLE_MS);
	ck_assert_msg(strstr(g->why, "ACL") && strstr(g->why, "script"), "%s", g->why);
	rig_do(g, "ACL SETUSER wheel +script");
	works();
}
END_TEST

/* --- loading -------------------------------------------------------------------------------------------------------
 */

START_TEST(a_prefix_of_glob_characters)
{
	g->conf.key_prefix = "h*[a-z]?\\^w:";
	rig_start(g);
	works();
	/* What the same prefix would match as a glob. */
	rig_do(g, "HSET %s state online seq 5", "hxxbx^w:state:stranger");
	rig_do(g, "HSET %s state online seq 5", "device:state:stranger");
	rig_do(g, "HSET %s state online seq 5", "hstate:stranger");
	hw_redis_load(g->r);
	rig_until(g, rig_is_loaded, IDLE_MS);
	ck_assert_uint_eq(g->devices, 1);
	ck_assert_uint_eq(g->unusable, 0);
}
END_TEST

static bool is_told_of_all(struct rig *rig)
{
	return rig->told + rig->unlooked == HW_READ_DEVICES_MAX;
}

/* As many as may be under way; the next ones are read with all the others, as the caller sees to. */
START_TEST(looks_at_devices_are_bounded)
{
	g->several = true;
	rig_do(g, "HSET device:state:a state online seq 5");
	rig_start(g);
	ck_assert_int_eq(hw_redis_read_device(g->r, "a", 1, _i), -ENOTCONN);
	rig_until(g, rig_is_up, IDLE_MS);
	for (int round = 0; round < 2; round++) {
		g->told = g->unlooked = 0;
		for (int i = 0; i < HW_READ_DEVICES_MAX; i++)
			ck_assert_int_eq(hw_redis_read_device(g->r, "a", 1, _i), 0);
		ck_assert_int_eq(hw_redis_read_device(g->r, "a", 1, _i), -ENOBUFS);
		ck_assert(hw_redis_is_reading_again(g->r) == (_i == 1));
		if (round == 1)
			rig_kill_server(g);
		rig_until(g, is_told_of_all, IDLE_MS);
		ck_assert((g->told == 0) == (round == 1));
		ck_assert(!hw_redis_is_reading_again(g->r));
	}
}
END_TEST

#define MANY 20000

static void fill(unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		redisAppendCommand(
			g->look,
			"HSET device:state:d%u state %s since %u last_seen 1700000000000 timeout 30000 reason %s "
			"group %s node other source mqtt seq %u",
			k, k % 4 ? "online" : "offline", 1000 + k, k % 4 ? "heartbeat" : "will",
			k % 2 ? "plain" : "slow", 1 + k);
	for (unsigned k = 0; k < n; k++) {
		redisReply *reply = NULL;
		ck_assert_int_eq(redisGetReply(g->look, (void **)&reply), REDIS_OK);
		freeReplyObject(reply);
	}
}

static const struct hw_device *find(const char *id)
{
	uint32_t i = hw_registry_find(hw_monitor_registry(g->m), id, strlen(id));
	return i == HW_NIL ? NULL : rig_at(g, i);
}

START_TEST(twenty_thousand_and_garbage)
{
	char invalid[300];
	memset(invalid, 'x', sizeof(invalid));
	fill(MANY);
	rig_do(g, "HSET device:state:no-seq state online");
	rig_do(g, "HSET device:state:bad-seq state online seq -5");
	rig_do(g, "HSET device:state:bad-state state asleep seq 5");
	rig_do(g, "HSET device:state:gone state forgotten seq 5");
	rig_do(g, "SET device:state:string x");
	rig_do(g, "HSET device:state:other group x");
	rig_do(g, "HSET device:state: state online seq 5");
	rig_do(g, "HSET device:state:a/+ state online seq 5");
	rig_do(g, "HSET device:state:%b state online seq 5", invalid, (size_t)256);
	rig_do(g, "HSET device:state:%b state online seq 5", "\xff\xfe", (size_t)2);
	rig_do(g, "HSET device:outbox d1 %s d2 %s", "{\"online\":true}", "");
	rig_do(g, "SET device:monitor:node-1 %s", "00000000000000aa 1");
	rig_start(g);
	hw_redis_load(g->r); /* before the link is up */
	rig_until(g, rig_is_loaded, 20000);
	ck_assert_uint_eq(g->devices, MANY + 4);
	ck_assert_uint_eq(g->unusable, 6);
	ck_assert_uint_eq(hw_monitor_stats(g->m)->refused[HW_REFUSED_STORED], 4);
	ck_assert_int_eq(hw_device_state(find("no-seq")), HW_STATE_ONLINE);
	ck_assert_int_eq(hw_device_state(find("bad-state")), HW_STATE_ONLINE);
	ck_assert_uint_eq(hw_registry_count(hw_monitor_registry(g->m)), MANY + 4);
	ck_assert_uint_eq(g->outbox, 2);
	ck_assert_uint_eq(g->outbox_statuses, 1);
	const struct hw_device *d = find("d4");
	ck_assert_int_eq(hw_device_state(d), HW_STATE_OFFLINE);
	ck_assert_int_eq(hw_device_reason(d), HW_REASON_WILL);
	ck_assert_int_eq((int)d->since_ms, 1004);
	ck_assert_uint_eq(d->seq, 5);
	ck_assert_str_eq(hw_monitor_group_of(g->m, d)->name, "slow");
	ck_assert_int_eq(hw_device_state(find("d5")), HW_STATE_ONLINE);
	ck_assert_str_eq(hw_monitor_group_of(g->m, find("d5"))->name, "plain");
}
END_TEST

/* What the clock of watching showed when a device went counts with the seq of its hash alone. */
START_TEST(how_long_devices_are_gone)
{
	const struct {
		const char *id, *watched;
		int64_t gone_ms;
	} of[] = {{"a", "1000000 5", 4000000}, {"b", "1000000 4", 0}, {"c", "9000000 5", 0}, {"d", "1000000", 0},
	          {"e", "1000000 5x", 0},      {"f", "-1 5", 0},      {"g", "99999999 5", 0}};
	rig_do(g, "SET device:watched %s", "5000000 1");
	for (size_t k = 0; k < sizeof(of) / sizeof(*of); k++)
		rig_do(g, "HSET device:state:%s state offline seq 5 since 1 watched %s", of[k].id, of[k].watched);
	rig_do(g, "HSET device:state:z state offline seq 5 since 1");
	rig_start(g);
	hw_redis_load(g->r);
	rig_until(g, rig_is_loaded, IDLE_MS);
	for (size_t k = 0; k < sizeof(of) / sizeof(*of); k++) {
		int64_t gone_ms = hw_monitor_gone_ms(g->m, rig_now(), find(of[k].id));
		ck_assert_msg(gone_ms >= of[k].gone_ms - 50 && gone_ms < of[k].gone_ms + 60000, "%s: %lld", of[k].id,
		              (long long)gone_ms);
	}
	ck_assert_int_lt(hw_monitor_gone_ms(g->m, rig_now(), find("z")), 60000);
	ck_assert_uint_eq(hw_monitor_stats(g->m)->refused[HW_REFUSED_STORED], 4); /* of d, e, f and g */
	ck_assert_uint_eq(g->troubles, 0);
}
END_TEST

/* If the clock of watching starts again, a device may be offline for longer than the clock shows. */
START_TEST(gone_for_longer_than_the_clock_shows)
{
	rig_do(g, "SET device:watched %s", "5000000 1");
	rig_do(g, "HSET device:state:a state offline seq 5 since 1 watched %s", "1000000 5");
	rig_start(g);
	hw_redis_load(g->r);
	rig_until(g, rig_is_loaded, IDLE_MS);
	rig_do(g, "SET device:watched %s", "1000 1");
	rig_do(g, "CLIENT KILL TYPE normal SKIPME yes");
	rig_until(g, is_down, IDLE_MS);
	rig_until(g, rig_is_up, IDLE_MS);
	hw_redis_refresh(g->r, hw_registry_ref(hw_monitor_registry(g->m), 0));
	rig_until(g, rig_is_idle, IDLE_MS);
	rig_expect(g, "0 5", "HGET device:state:a watched");
}
END_TEST

/* No program makes a monitor forget by a clock of watching that cannot be: the devices count as offline since now. */
START_TEST(a_clock_of_watching_that_is_far_ahead)
{
	rig_do(g, "SET device:watched %s", _i ? "34000000000000 1" : "-5 1");
	rig_do(g, "HSET device:state:a state offline seq 5 since 1 watched %s", "1000000 5");
	rig_start(g);
	hw_redis_load(g->r);
	rig_until(g, rig_is_loaded, IDLE_MS);
	ck_assert_int_lt(hw_monitor_gone_ms(g->m, rig_now(), find("a")), 60000);
	ck_assert_uint_eq(g->troubles, 1);
}
END_TEST

/* Times and seqs that no clock can have made are replaced, and such a device's next word counts in the store again. */
START_TEST(times_and_seqs_that_are_far_ahead)
{
	int64_t now = rig_now().wall_ms;
	rig_do(g, "HSET device:state:a state online reason heartbeat seq %lld since %lld", (long long)(now + 3600000),
	       (long long)(now + 3600000));
	rig_do(g, "HSET device:state:b state online reason heartbeat seq 281474976710655 since %lld last_seen %lld",
	       (long long)HW_SINCE_MAX + 2, (long long)HW_SINCE_MAX + 2);
	rig_do(g, "HSET device:state:c state offline reason will seq 18446744073709551615 since 5");
	rig_start(g);
	hw_redis_load(g->r);
	rig_until(g, rig_is_loaded, IDLE_MS);
	ck_assert_uint_eq(g->devices, 3);
	ck_assert_uint_eq(hw_monitor_stats(g->m)->refused[HW_REFUSED_STORED], 4);
	ck_assert_int_eq((int64_t)find("a")->seq, now + 3600000);
	ck_assert_int_eq(find("a")->since_ms, now + 3600000);
	ck_assert_int_le(llabs(find("b")->since_ms - now), 60000);
	ck_assert_int_le(llabs((int64_t)find("b")->seq - now), 60000);
	ck_assert_int_eq(hw_device_state(find("c")), HW_STATE_OFFLINE);
	ck_assert_int_le(llabs((int64_t)find("c")->seq - now), 60000);
	/* The core has asked for a refresh, which corrects the store. */
	rig_until(g, rig_is_idle, IDLE_MS);
	ck_assert_int_le(rig_number(g, "HGET device:state:b seq"), now + 60000);
	static const char *const ids[] = {"b", "c"};
	for (int i = 0; i < 2; i++) {
		uint32_t at = hw_registry_find(hw_monitor_registry(g->m), ids[i], 1);
		struct hw_transition t = rig_transit(g, at, HW_STATE_OFFLINE, HW_REASON_TIMEOUT);
		rig_until(g, rig_is_idle, IDLE_MS);
		ck_assert_int_eq(rig_number(g, "HGET device:state:%s seq", ids[i]), (long long)t.seq);
	}
	ck_assert_uint_eq(g->newer, 0);
}
END_TEST

/* The same of a record that another program overwrites while it is known: it freezes nothing. */
START_TEST(a_seq_that_another_program_makes_absurd)
{
	rig_start(g);
	rig_until(g, rig_is_up, IDLE_MS);
	uint32_t i = rig_device(g, 0, "a");
	rig_transit(g, i, HW_STATE_ONLINE, HW_REASON_HEARTBEAT);
	rig_until(g, rig_is_idle, IDLE_MS);
	static const char *const seqs[] = {"281474976710655", "281474976710654", "99999999999999",
	                                   "9223372036854775807"};
	for (int k = 0; k < 4; k++) {
		rig_do(g, "HSET device:state:a seq %s", seqs[k]);
		struct hw_transition t = rig_transit(g, i, k % 2 ? HW_STATE_ONLINE : HW_STATE_OFFLINE,
		                                     k % 2 ? HW_REASON_HEARTBEAT : HW_REASON_TIMEOUT);
		rig_until(g, rig_is_idle, IDLE_MS);
		ck_assert_int_eq(rig_number(g, "HGET device:state:a seq"), (long long)t.seq);
		ck_assert_int_eq(rig_number(g, "EXISTS device:disconnected:a"), k % 2 == 0);
	}
	ck_assert_uint_eq(g->newer, 0);
}
END_TEST

static int64_t loaded_down_ms(void)
{
	rig_do(g, "HSET device:state:a state online seq 7 last_seen 1600000000000");
	rig_start(g);
	hw_redis_load(g->r);
	rig_until(g, rig_is_loaded, IDLE_MS);
	return g->down_ms - (rig_now().wall_ms - 1600000000000);
}

static void mark(const char *node, long long ms)
{
	rig_do(g, "SET device:monitor:%s %s%lld", node, "00000000000000aa ", ms);
}

/* Of several nodes one may have seen when this one was down: one that is a member, or one that has ended. */
START_TEST(down_is_when_no_node_saw)
{
	static const struct {
		const char *member, *owner;
		long long ms; /* the newest */
	} cases[] = {{NULL, NULL, 3000},           {"node-2", NULL, 9000},       {NULL, "5 node-2", 9000},
	             {NULL, "5 node-2 -", 9000},   {"node-3", "5 node-2", 9000}, {"node-3", "5 node-4 -", 3000},
	             {"no node", "nonsense", 3000}};
	g->several = _i < 7;
	rig_do(g, "FLUSHALL");
	mark("node-1", 1600000003000);
	mark("node-2", 1600000009000);
	mark("node-3", 1600000001000);
	rig_do(g, "SET device:monitor:node-4 junk");
	const unsigned k = (unsigned)_i % 7;
	if (cases[k].member)
		rig_do(g, "HSET device:nodes %s %s", cases[k].member, "00000000000000aa 7 {}");
	if (cases[k].owner)
		rig_do(g, "HSET device:owners 17 %s 18 %s", cases[k].owner, "3 node-1");
	long long ms = _i < 7 ? cases[k].ms : 3000; /* by itself: its own */
	int64_t off = loaded_down_ms() + ms;
	ck_assert_int_ge(off, -2000);
	ck_assert_int_le(off, 0);
}
END_TEST

START_TEST(the_fields_of_one)
{
	static const char data[] = "{\"t\":[1,2.5,\"x\"]}";
	rig_do(g,
	       "HSET device:state:a state online since 5 last_seen 1600000000000 reason heartbeat group plain source "
	       "both "
	       "seq 77 once 1 own_timeout 310000 battery 87 rssi -60.5 uptime 12 ip 10.0.0.1 version %s data %s",
	       "1.2+git #5", data);
	rig_do(g,
	       "HSET device:state:b state offline since x last_seen x reason x group x source x seq 78 once x "
	       "own_timeout -1 battery nan rssi inf uptime 1x ip %b version %b data %s",
	       "\xff", (size_t)1, "a\nb", (size_t)3, "1},\"online\":false");
	rig_do(g, "SET device:monitor:node-1 %s", "00000000000000aa 1600000003000");
	rig_start(g);
	hw_redis_load(g->r);
	int64_t down_ms = rig_now().wall_ms - 1600000003000;
	rig_until(g, rig_is_loaded, IDLE_MS);
	ck_assert_int_ge(g->down_ms, down_ms - 2000);
	ck_assert_int_le(g->down_ms, down_ms);
	const struct hw_device *a = find("a"), *b = find("b");
	ck_assert_uint_eq(hw_device_source(a), HW_SOURCE_MQTT | HW_SOURCE_KEY);
	ck_assert(a->flags & HW_FLAG_ONCE);
	ck_assert_int_eq(hw_monitor_timeout_ms(g->m, a), 310000);
	const struct hw_report p = hw_device_report(a);
	ck_assert_uint_eq(p.has, 0x3f);
	ck_assert_double_eq(p.battery, 87);
	ck_assert_double_eq(p.rssi, -60.5);
	ck_assert_double_eq(p.uptime, 12);
	ck_assert_str_eq(p.ip, "10.0.0.1");
	ck_assert_str_eq(p.version, "1.2+git #5");
	ck_assert_str_eq(p.data, data);
	ck_assert_int_eq(hw_device_reason(b), HW_REASON_TIMEOUT);
	ck_assert_uint_eq(hw_device_source(b), HW_SOURCE_MQTT);
	ck_assert(!(b->flags & HW_FLAG_ONCE));
	ck_assert(hw_device_report(b).has == 0);
}
END_TEST

static bool is_half_loaded(struct rig *r)
{
	return hw_registry_count(hw_monitor_registry(r->m)) > MANY / 2;
}

/* The link is cut in the middle: it begins again and misses nothing; the mark stands still until then. */
START_TEST(cut_while_loading)
{
	fill(MANY);
	rig_do(g, "SET device:monitor:node-1 %s", "00000000000000aa 1600000003000");
	rig_start(g);
	g->marking = true;
	hw_redis_load(g->r);
	rig_until(g, is_half_loaded, IDLE_MS);
	rig_do(g, "CLIENT KILL TYPE normal SKIPME yes");
	rig_until(g, is_down, IDLE_MS);
	ck_assert(!g->loaded);
	redisReply *mark = rig_ask(g, "GET device:monitor:node-1");
	ck_assert_ptr_nonnull(strstr(mark->str, " 1600000003000"));
	freeReplyObject(mark);
	rig_until(g, rig_is_loaded, 20000);
	ck_assert_uint_eq(g->devices, MANY);
	ck_assert_uint_eq(hw_registry_count(hw_monitor_registry(g->m)), MANY);
}
END_TEST

START_TEST(the_mark_keeps_the_canaries)
{
	rig_do(g, "SET device:monitor:node-1 %s", "00000000000000aa 1600000003000 07000000bb");
	rig_start(g);
	hw_redis_load(g->r);
	rig_until(g, rig_is_loaded, IDLE_MS);
	ck_assert_uint_eq(hw_redis_old_canaries(g->r)->part[7], 0xbb);
	hw_redis_keep_canaries(g->r, &(struct hw_canaries){.part = {[1] = 0xaa, [255] = UINT32_MAX}});
	for (int written = 0; !written;) {
		hw_redis_seen(g->r, rig_now(), false);
		event_base_loop(g->base, EVLOOP_NONBLOCK);
		redisReply *mark = rig_ask(g, "GET device:monitor:node-1");
		written = strstr(mark->str, " 01000000aaffffffffff") != NULL;
		freeReplyObject(mark);
	}
}
END_TEST

START_TEST(an_outbox_of_another_type)
{
	fill(3);
	rig_do(g, "SET device:outbox x");
	rig_start(g);
	hw_redis_load(g->r);
	rig_until(g, rig_is_loaded, IDLE_MS);
	ck_assert_uint_eq(g->devices, 3);
	ck_assert_uint_eq(g->troubles, 1);
}
END_TEST

/* After a restart of this monitor the sink goes on where the store is. */
START_TEST(goes_on_from_what_was_loaded)
{
	fill(3);
	rig_start(g);
	hw_redis_load(g->r);
	rig_until(g, rig_is_loaded, IDLE_MS);
	uint32_t i = hw_registry_find(hw_monitor_registry(g->m), "d1", 2);
	hw_redis_refresh(g->r, hw_registry_ref(hw_monitor_registry(g->m), i));
	settle();
	/* The one asked for, and each once by the sweep after the load; the two may fall together. */
	ck_assert_uint_ge(hw_redis_stats(g->r)->refreshes, 3);
	ck_assert_uint_le(hw_redis_stats(g->r)->refreshes, 4);
	ck_assert_uint_eq(hw_redis_stats(g->r)->snapshots, 0);
	rig_transit(g, i, HW_STATE_OFFLINE, HW_REASON_TIMEOUT);
	settle();
	rig_expect(g, "offline", "HGET device:state:d1 state");
	ck_assert_uint_eq(g->newer, 0);
}
END_TEST

/* The reading of all devices waits for that of the outbox, or each would take the other's answers for its own. */
START_TEST(again_while_the_outbox_is_gone_through)
{
	fill(3000);
	for (int i = 0; i < 3000; i++)
		rig_do(g, "HSET device:outbox d%d {}", i);
	rig_start(g);
	hw_redis_load(g->r);
	rig_until(g, rig_is_loaded, 20000);
	settle();
	g->loaded = false;
	g->outbox = 0;
	hw_redis_compare(g->r);
	hw_redis_load(g->r);
	rig_until(g, rig_is_loaded, 20000);
	ck_assert_uint_eq(g->devices, 3000);
	ck_assert_uint_eq(g->unusable, 0);
	ck_assert_uint_ge(g->outbox, 2 * 3000);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("redis_start");
	TCase *t = tcase_create("start");
	tcase_add_checked_fixture(t, fixture_serve, fixture_down);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, by_address);
	tcase_add_test(t, by_name);
	tcase_add_test(t, by_the_second_address);
	tcase_add_test(t, by_unix_socket);
	tcase_add_test(t, in_another_database);
	tcase_add_test(t, in_no_database);
	tcase_add_test(t, nobody_there);
	tcase_add_test(t, no_such_name);
	tcase_add_test(t, freed_in_the_middle);
	tcase_add_test(t, a_password);
	tcase_add_test(t, a_wrong_password);
	tcase_add_test(t, a_missing_password);
	tcase_add_test(t, a_password_too_many);
	tcase_add_test(t, a_user);
	tcase_add_test(t, a_user_without_rights);
	tcase_add_test(t, a_prefix_of_glob_characters);
	tcase_add_test(t, twenty_thousand_and_garbage);
	tcase_add_test(t, times_and_seqs_that_are_far_ahead);
	tcase_add_test(t, a_seq_that_another_program_makes_absurd);
	tcase_add_test(t, how_long_devices_are_gone);
	tcase_add_test(t, gone_for_longer_than_the_clock_shows);
	tcase_add_loop_test(t, a_clock_of_watching_that_is_far_ahead, 0, 2);
	tcase_add_loop_test(t, looks_at_devices_are_bounded, 0, 2);
	tcase_add_loop_test(t, down_is_when_no_node_saw, 0, 14);
	tcase_add_test(t, the_fields_of_one);
	tcase_add_test(t, cut_while_loading);
	tcase_add_test(t, the_mark_keeps_the_canaries);
	tcase_add_test(t, an_outbox_of_another_type);
	tcase_add_test(t, goes_on_from_what_was_loaded);
	tcase_add_test(t, again_while_the_outbox_is_gone_through);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return rig_run(suite());
}

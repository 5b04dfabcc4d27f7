/* SPDX-License-Identifier: MIT */
/* The fence of several nodes in the scripts that write: a newer state than ours is not overwritten. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../simulation/sim_random.h"
#include "../sink_state.h"
#include "heartwheel/partition.h"
#include "nodes/claims.h"
#include "redis/script.h"
#include "redis_fixture.h"

static unsigned part_of(const char *id)
{
	return hw_partition_of(id, strlen(id));
}

/* Redis' record of the owner of this device's partition. */
static void own(const char *id, const char *record)
{
	rig_do(g, "HSET device:owners %u %s", part_of(id), record);
}

static void expect_owner(const char *id, const char *record)
{
	rig_expect(g, record, "HGET device:owners %u", part_of(id));
}

static void expect_calm(void)
{
	ck_assert_msg(g->troubles == 0, "%s", g->trouble);
	ck_assert_uint_eq(hw_redis_stats(g->r)->transitions_dropped, 0);
	ck_assert_ptr_null(hw_redis_refusal(g->r));
}

static struct hw_ref ref(uint32_t i)
{
	return hw_registry_ref(hw_monitor_registry(g->m), i);
}

static void refresh(uint32_t i)
{
	hw_redis_refresh(g->r, ref(i));
	settle();
}

/* --- a token that is not older ------------------------------------------------------------------------------------ */

START_TEST(what_is_ours_is_written_with_our_epoch)
{
	uint32_t i = rig_device(g, GROUP_PLAIN, "a");
	online(i);
	settle();
	expect_owner("a", "50 node-1");
	rig_expect(g, "50", "HGET device:state:a epoch");
	redisReply *reply = rig_ask(g, "XREVRANGE device:events + - COUNT 1");
	const redisReply *fields = reply->element[0]->element[1];
	ck_assert_uint_eq(fields->elements, 18);
	ck_assert_str_eq(fields->element[16]->str, "epoch");
	ck_assert_str_eq(fields->element[17]->str, "50");
	freeReplyObject(reply);
	ck_assert_int_eq(rig_number(g, "HLEN device:state:a"), 12); /* with `once` and `form` */
	own("a", "50 node-1 ~");                                    /* one that is released is as old as it was */
	offline(i);
	settle();
	expect_owner("a", "50 node-1 ~");
	rig_expect(g, "offline", "HGET device:state:a state");
	expect_calm();
}
END_TEST

/* The other nodes assume our form of the group, unless the entry has another form. */
START_TEST(an_entry_has_the_form_that_is_not_ours)
{
	static const char *const id = "a", *const forms[] = {"00000000", "0abc0def"}; /* unknown; another node's */
	uint32_t i = rig_device(g, GROUP_PLAIN, id);
	rig_at(g, i)->form = HW_FORM_OTHER;
	for (int k = 0; k < 2; k++) {
		struct hw_stored s = {.id = "b", .id_len = 1, .state = HW_STATE_ONLINE, .seq = 5, .group = "plain"};
		s.form = 0x0abc0def;
		if (k)
			ck_assert_int_eq(hw_monitor_load(g->m, rig_now(), &s), 0);
		if (k)
			offline(i);
		else
			online(i);
		settle();
		redisReply *reply = rig_ask(g, "XREVRANGE device:events + - COUNT 1");
		const redisReply *fields = reply->element[0]->element[1];
		ck_assert_uint_eq(fields->elements, 20);
		ck_assert_str_eq(fields->element[18]->str, "form");
		ck_assert_str_eq(fields->element[19]->str, forms[k]);
		freeReplyObject(reply);
		rig_expect(g, k ? forms[k] : NULL, "HGET device:state:a form");
	}
	expect_calm();
}
END_TEST

START_TEST(a_newer_token_is_stored)
{
	static const char *const older[] = {"49 node-1", "9 z", "50 Node-1", "50 node", "49 z ~", "nothing", "5 a b"};
	uint32_t i = rig_device(g, GROUP_PLAIN, "a");
	for (unsigned k = 0; k < sizeof(older) / sizeof(older[0]); k++) {
		own("a", older[k]);
		if (k % 2)
			online(i);
		else
			offline(i);
		settle();
		expect_owner("a", "50 node-1");
		ck_assert_int_eq(events(), k + 1);
	}
	own("a", "49 node-1");
	refresh(i);
	expect_owner("a", "50 node-1");
	expect_calm();
}
END_TEST

/* A lone monitor leaves no trace of nodes, and removes those that several nodes left. */
START_TEST(one_by_itself)
{
	uint32_t i = rig_device(g, GROUP_PLAIN, "a");
	rig_do(g, "HSET device:state:a epoch 9");
	own("a", "99 node-2");
	online(i);
	settle();
	rig_expect(g, NULL, "HGET device:state:a epoch");
	rig_expect(g, "online", "HGET device:state:a state");
	expect_owner("a", "99 node-2");
	refresh(i);
	redisReply *reply = rig_ask(g, "XREVRANGE device:events + - COUNT 1");
	ck_assert_uint_eq(reply->element[0]->element[1]->elements, 16);
	freeReplyObject(reply);
	rig_do(g, "DEL device:state:a");
	refresh(i);
	rig_expect(g, "online", "HGET device:state:a state");
	ck_assert_int_eq(events(), 1); /* nobody else follows */
}
END_TEST

/* --- one that is -------------------------------------------------------------------------------------------------- */

START_TEST(what_is_older_is_not_written)
{
	uint32_t a = rig_device(g, GROUP_PLAIN, "a"), b = rig_device(g, GROUP_PLAIN, "b");
	ck_assert_uint_ne(part_of("a"), part_of("b"));
	own("a", "51 node-0");
	for (unsigned k = 1; k <= 2 * HW_POISON_TRIES; k++) {
		online(a);
		online(b);
		settle();
		ck_assert_uint_eq(g->fenced, k);
	}
	ck_assert_uint_eq(g->fenced_partition, part_of("a"));
	ck_assert_uint_eq(g->fenced_by.epoch, 51);
	ck_assert_str_eq(g->fenced_by.node, "node-0");
	ck_assert_int_eq(rig_number(g, "EXISTS device:state:a device:connected:a"), 0);
	rig_expect(g, "online", "HGET device:state:b state");
	ck_assert_int_eq(events(), 1);
	expect_owner("a", "51 node-0");
	ck_assert_uint_eq(hw_redis_stats(g->r)->fenced, 2 * HW_POISON_TRIES);
	ck_assert_uint_eq(hw_redis_stats(g->r)->waiting, 0);
	expect_calm();
}
END_TEST

/* The same epoch twice, of two masters: the node's name decides, byte by byte. */
START_TEST(the_name_decides)
{
	uint32_t i = rig_device(g, GROUP_PLAIN, "a");
	own("a", "50 node-10");
	online(i);
	settle();
	ck_assert_uint_eq(g->fenced, 1);
	own("a", "50 node-");
	online(i);
	settle();
	ck_assert_uint_eq(g->fenced, 1);
	own("a", "99999 -");
	online(i);
	settle();
	ck_assert_uint_eq(g->fenced_by.epoch, 99999);
}
END_TEST

/* An epoch of tomorrow counts; one that is further ahead of Redis' clock than a day is none, whoever has it. */
START_TEST(an_epoch_that_is_impossible)
{
	static const unsigned long long impossible[] = {9223372036854775807, 9223372036854775806, 0};
	uint32_t i = rig_device(g, GROUP_PLAIN, "a");
	unsigned long long tomorrow = (unsigned long long)time(NULL) + 86400;
	char record[64];
	for (unsigned k = 0; k < sizeof(impossible) / sizeof(impossible[0]); k++) {
		snprintf(record, sizeof(record), "%llu zz", impossible[k] ? impossible[k] : tomorrow + 60);
		own("a", record);
		if (k % 2)
			offline(i);
		else
			online(i);
		settle();
		expect_owner("a", "50 node-1");
		ck_assert_int_eq(events(), k + 1);
	}
	ck_assert_uint_eq(g->fenced, 0);
	snprintf(record, sizeof(record), "%llu zz", tomorrow - 60);
	own("a", record);
	offline(i);
	settle();
	ck_assert_uint_eq(g->fenced, 1);
	expect_owner("a", record);
	g->epoch[part_of("a")] = tomorrow + 60; /* ours is: what is stored stands */
	offline(i);
	settle();
	ck_assert_uint_eq(g->fenced, 2);
	expect_owner("a", record);
	ck_assert_int_eq(events(), 3);
}
END_TEST

START_TEST(nor_refreshed_nor_written_anew)
{
	uint32_t a = rig_device(g, GROUP_PLAIN, "a"), b = rig_device(g, GROUP_PLAIN, "b");
	online(a);
	online(b);
	settle();
	refresh(a); /* the next one is a light one */
	refresh(b);
	own("a", "51 node-2");
	for (int k = 0; k < 3; k++) {
		rig_do(g, "PEXPIRE device:connected:a 20000");
		rig_do(g, "PEXPIRE device:connected:b 20000");
		hw_redis_refresh(g->r, ref(b));
		hw_redis_refresh(g->r, ref(a));
		settle();
		ck_assert_int_le(rig_number(g, "PTTL device:connected:a"), 20000);
		ck_assert_int_gt(rig_number(g, "PTTL device:connected:b"), 20000);
	}
	rig_do(g, "HSET device:state:a since 1");
	sink_rewrite(g->r, ref(a));
	settle();
	rig_expect(g, "1", "HGET device:state:a since");
	ck_assert_uint_eq(g->fenced, 4);
	expect_calm();
}
END_TEST

START_TEST(nor_acknowledged_nor_forgotten)
{
	uint32_t i = rig_device(g, GROUP_PLAIN, "a");
	online(i);
	settle();
	own("a", "51 node-2");
	hw_device_note(rig_at(g, i), HW_PENDING_STATUS, true);
	rig_transit(g, i, HW_STATE_FORGOTTEN, HW_REASON_OPERATOR);
	hw_redis_cleared(g->r, "a", 1);
	settle();
	ck_assert_int_eq(rig_number(g, "EXISTS device:outbox"), 0);
	ck_assert_int_eq(rig_number(g, "EXISTS device:state:a"), 1);
	ck_assert_int_eq(events(), 1);
	own("a", "50 node-1");
	rig_transit(g, i, HW_STATE_FORGOTTEN, HW_REASON_OPERATOR);
	settle();
	ck_assert_int_eq(rig_number(g, "EXISTS device:state:a"), 0);
	ck_assert_int_eq(events(), 2);
}
END_TEST

/* --- what is not ours to say -------------------------------------------------------------------------------------- */

START_TEST(what_was_lost_meanwhile_is_dropped)
{
	uint32_t a = rig_device(g, GROUP_PLAIN, "a"), b = rig_device(g, GROUP_PLAIN, "b");
	online(a);
	online(b);
	g->epoch[part_of("a")] = 0;
	settle();
	ck_assert_int_eq(rig_number(g, "EXISTS device:state:a"), 0);
	online(a); /* nor is it taken */
	hw_redis_refresh(g->r, ref(a));
	settle();
	ck_assert_int_eq(rig_number(g, "EXISTS device:state:a"), 0);
	g->epoch[part_of("a")] = OURS;
	online(a);
	g->epoch[part_of("a")] = OURS + 2; /* lost, and won again: others may have written in between */
	settle();
	ck_assert_int_eq(rig_number(g, "EXISTS device:state:a"), 0);
	online(a);
	settle();
	rig_expect(g, "52", "HGET device:state:a epoch");
	ck_assert_int_eq(events(), 2);
	expect_calm();
}
END_TEST

/* So whoever owes it waits for no confirmation. */
static void expect_dropped(unsigned calls, uint32_t i, uint64_t seq)
{
	ck_assert_uint_eq(g->dropped, calls);
	ck_assert_uint_eq(g->dropped_device.index, i);
	ck_assert_uint_eq(g->dropped_seq, seq);
	ck_assert_uint_eq(g->confirmed, 0);
}

START_TEST(what_is_dropped_is_told)
{
	uint32_t a = rig_device(g, GROUP_PLAIN, "a");
	struct hw_transition t = online(a); /* lost before it is sent */
	g->epoch[part_of("a")] = 0;
	settle();
	expect_dropped(1, a, t.seq);
	t.seq++; /* lost before it is owed */
	ck_assert(!hw_redis_transition(g->r, rig_now(), &t));
	ck_assert_uint_eq(hw_redis_stats(g->r)->waiting, 0);
	g->epoch[part_of("a")] = OURS;
	own("a", "51 node-2"); /* lost when it is there */
	t = offline(a);
	hw_redis_write_published(g->r, part_of("a"), t.seq);
	settle();
	ck_assert_uint_eq(g->fenced, 2);
	ck_assert_int_eq(rig_number(g, "EXISTS device:published"), 0);
	expect_dropped(2, a, t.seq);
	sink_rewrite(g->r, ref(a));
	settle();
	expect_dropped(3, a, t.seq);
	g->epoch[part_of("a")] = 0; /* lost while it waits to be reconciled; then also by the monitor's own word */
	sink_rewrite(g->r, ref(a));
	settle();
	expect_dropped(4, a, t.seq);
	hw_monitor_role(g->m, part_of("a"), HW_ROLE_WATCHES, 0);
	sink_rewrite(g->r, ref(a));
	settle();
	expect_dropped(5, a, t.seq);
}
END_TEST

/* A transition that found no room was left to its device's rewrite, and lost before its turn came: no later one is it.
 */
START_TEST(what_found_no_room_is_lost_for_good)
{
	uint32_t a = rig_device(g, GROUP_PLAIN, "a");
	sink_fill(g->r);
	struct hw_transition t = online(a);
	if (_i == 1)
		hw_monitor_role(g->m, part_of("a"), HW_ROLE_WATCHES, 0); /* the monitor says so, */
	else
		g->epoch[part_of("a")] = 0; /* or who asks for tokens */
	settle();
	ck_assert_int_eq(events(), 0);
	ck_assert_uint_eq(g->dropped_seq, t.seq);
	hw_monitor_role(g->m, part_of("a"), HW_ROLE_AUTHORITATIVE, OURS);
	g->epoch[part_of("a")] = OURS;
	sink_rewrite(g->r, ref(a));
	settle();
	ck_assert_uint_eq(hw_redis_stats(g->r)->snapshots, 1);
	ck_assert_uint_eq(hw_redis_stats(g->r)->transitions_written, 0);
	online(a);
	settle();
	expect_calm();
}
END_TEST

START_TEST(an_edge_to_the_same_state_has_no_entry)
{
	uint32_t i = rig_device(g, GROUP_PLAIN, "a");
	online(i);
	settle();
	g->epoch[part_of("a")] = OURS + 1;
	online(i);
	settle();
	ck_assert_int_eq(events(), 1);
	ck_assert_int_eq((int)g->confirmed, 2);
	rig_expect(g, "51", "HGET device:state:a epoch");
	offline(i);
	settle();
	ck_assert_int_eq(events(), 2);
}
END_TEST

/* The other nodes know nothing but what the stream says: a store that went back, or is empty, is told of. */
START_TEST(what_is_written_anew_has_an_entry)
{
	static const char *const wrong[] = {"HSET device:state:a state offline seq 1", "DEL device:state:a"};
	uint32_t i = rig_device(g, GROUP_PLAIN, "a");
	struct hw_transition t = online(i);
	settle();
	for (int k = 0; k < 2; k++) {
		rig_do(g, wrong[k]);
		g->confirmed = 0;
		refresh(i);
		ck_assert_int_eq(events(), k + 2);
		ck_assert_uint_eq(g->confirmed, 1);
		rig_expect(g, "online", "HGET device:state:a state");
		ck_assert_int_eq(rig_number(g, "HGET device:state:a seq"), (long long)t.seq);
	}
	rig_do(g, "HSET device:state:a seq 1"); /* the state that is stored already */
	refresh(i);
	ck_assert_int_eq(events(), 3);
	ck_assert_int_eq(rig_number(g, "HGET device:state:a seq"), (long long)t.seq);
	expect_calm();
}
END_TEST

/* Another node decided in the same millisecond: our transition is not taken for written. */
START_TEST(the_same_seq_of_another)
{
	uint32_t i = rig_device(g, GROUP_PLAIN, "a");
	struct hw_transition t = online(i);
	settle();
	hw_redis_transition(g->r, rig_now(), &t); /* our own, sent again */
	settle();
	ck_assert_uint_eq(g->newer_seq, 0);
	ck_assert_int_eq(rig_number(g, "HSET device:state:a node node-2 state offline"), 0);
	hw_redis_transition(g->r, rig_now(), &t);
	settle();
	ck_assert_uint_eq(g->newer_seq, t.seq);
	rig_expect(g, "online", "HGET device:state:a state");
	rig_expect(g, "node-1", "HGET device:state:a node");
	ck_assert_int_gt(rig_number(g, "HGET device:state:a seq"), (long long)t.seq);
}
END_TEST

/* --- a Redis in trouble ------------------------------------------------------------------------------------------- */

START_TEST(owners_that_are_no_hash_are_named)
{
	rig_do(g, "SET device:owners x");
	uint32_t i = rig_device(g, GROUP_PLAIN, "a");
	online(i);
	rig_until(g, is_troubled, IDLE_MS);
	ck_assert_msg(strstr(g->trouble, "device:owners is not a hash"), "%s", g->trouble);
	rig_do(g, "DEL device:owners");
	settle();
	rig_expect(g, "online", "HGET device:state:a state");
	ck_assert_int_eq(events(), 1);
}
END_TEST

/* The stream refuses an entry: the transition that is sent again is not taken for one to the state that is stored. */
START_TEST(an_entry_that_was_refused_is_written_later)
{
	uint32_t i = rig_device(g, GROUP_PLAIN, "a");
	online(i);
	settle();
	rig_do(g, "XSETID device:events 18446744073709551615-18446744073709551615");
	offline(i);
	rig_until(g, is_troubled, IDLE_MS);
	rig_do(g, "DEL device:events");
	settle();
	ck_assert_int_eq(events(), 1);
	rig_expect(g, "50", "HGET device:state:a epoch");
}
END_TEST

/* Without memory a refresh still stores a token that Redis lost, and keeps what beats alive. */
START_TEST(no_memory)
{
	uint32_t i = rig_device(g, GROUP_PLAIN, "a");
	online(i);
	settle();
	refresh(i);
	rig_do(g, "DEL device:owners");
	rig_do(g, "PEXPIRE device:connected:a 20000");
	rig_do(g, "CONFIG SET maxmemory 1");
	refresh(i);
	ck_assert_int_gt(rig_number(g, "PTTL device:connected:a"), 20000);
	expect_owner("a", "50 node-1");
	rig_do(g, "CONFIG SET maxmemory 0");
}
END_TEST

static bool is_refused(struct rig *rig)
{
	return hw_redis_refusal(rig->r) != NULL;
}

static bool is_not_refused(struct rig *rig)
{
	return !is_refused(rig);
}

/* A mark was refused, and by then another run has the name, which could be entered: Redis writes. */
START_TEST(a_mark_that_was_refused_and_is_left)
{
	g->marking = true;
	rig_until(g, is_marked, IDLE_MS);
	rig_do(g, "CONFIG SET maxmemory 1");
	rig_until(g, is_refused, IDLE_MS);
	rig_do(g, "CONFIG SET maxmemory 0");
	rig_do(g, "HSET device:nodes node-1 %s", "00000000000000aa 7 {}");
	rig_until(g, is_not_refused, IDLE_MS);
}
END_TEST

/* --- whether the store was emptied -------------------------------------------------------------------------------- */

/* Writes a sight record, and expects the one that was there before. */
static void put_mark(const char *was, const char *mark, const char *may_be_new)
{
	redisReply *reply = rig_ask(g, "EVAL %s 2 device:monitor:node-1 device:watched %s %s 1",
	                            hw_script_text(HW_SCRIPT_SIGHT_RECORD), mark, may_be_new);
	ck_assert_uint_eq(reply->elements, 4);
	ck_assert_pstr_eq(reply->element[0]->str, was);
	ck_assert_int_eq(reply->element[1]->integer, 0);
	freeReplyObject(reply);
}

/* A sight record that was sent earlier, and arrives after that, is not written. */
START_TEST(a_mark_is_no_new_one_where_there_was_one)
{
	put_mark(NULL, "00000000000000aa 7", "0");
	rig_expect(g, NULL, "GET device:monitor:node-1");
	put_mark(NULL, "00000000000000aa 7", "1");
	put_mark("00000000000000aa 7", "00000000000000aa 8", "0");
	rig_expect(g, "00000000000000aa 8", "GET device:monitor:node-1");
}
END_TEST

/* A replica refuses the mark, although no mark is to be put, and no time of watching: a master that became a replica,
 * and lacks the mark, is no store that was emptied. */
START_TEST(a_mark_is_refused_by_a_replica)
{
	const char *script = hw_script_text(HW_SCRIPT_SIGHT_RECORD);
	rig_do(g, "REPLICAOF 127.0.0.1 1");
	redisReply *reply = rig_ask(g, "EVAL %s 2 device:monitor:node-1 x %s 0 0", script, "00000000000000aa 7");
	ck_assert_int_eq(reply->type, REDIS_REPLY_ERROR);
	ck_assert(strstr(reply->str, "READONLY"));
	freeReplyObject(reply);
}
END_TEST

static struct {
	unsigned calls;
	bool known, marked;
} fence;

static void on_fence(void *arg, bool known, bool marked)
{
	(void)arg;
	fence.calls++;
	fence.known = known;
	fence.marked = marked;
}

static bool is_fenced(struct rig *rig)
{
	(void)rig;
	return fence.calls > 0;
}

static void ask_fence(void)
{
	fence.calls = 0;
	ck_assert_int_eq(hw_redis_fence(g->r, on_fence, NULL), 0);
	rig_until(g, is_fenced, IDLE_MS);
	ck_assert_uint_eq(fence.calls, 1);
}

static void mark(void)
{
	g->marking = true;
	rig_until(g, is_marked, IDLE_MS);
	g->marking = false;
	rig_until(g, rig_is_idle, IDLE_MS);
}

static void reconnect(void)
{
	rig_do(g, "CLIENT KILL TYPE normal SKIPME yes");
	rig_until(g, is_down, IDLE_MS);
	ck_assert_str_eq(hw_redis_server(g->r), "");
	rig_until(g, rig_is_up, IDLE_MS);
}

START_TEST(the_server_is_known)
{
	char want[128];
	ck_assert_uint_eq(strlen(hw_redis_server(g->r)), 40);
	redisReply *info = rig_ask(g, "INFO server");
	snprintf(want, sizeof(want), "run_id:%s", hw_redis_server(g->r));
	ck_assert(strstr(info->str, want));
	freeReplyObject(info);
	rig_do(g, "ACL SETUSER default -info");
	reconnect();
	ck_assert_str_eq(hw_redis_server(g->r), "");
}
END_TEST

START_TEST(the_fence_finds_the_mark)
{
	mark();
	ask_fence();
	ck_assert(fence.known && fence.marked);
}
END_TEST

/* The sight record is missing; or another run has written its own there since. */
START_TEST(the_fence_misses_the_mark)
{
	mark();
	if (_i)
		rig_do(g, "SET device:monitor:node-1 %s", "00000000000000aa 7");
	else
		rig_do(g, "FLUSHALL");
	ask_fence();
	ck_assert(fence.known && !fence.marked);
}
END_TEST

START_TEST(a_fence_whose_link_is_lost)
{
	mark();
	fence.calls = 0;
	ck_assert_int_eq(hw_redis_fence(g->r, on_fence, NULL), 0);
	rig_kill_server(g);
	rig_until(g, is_fenced, IDLE_MS);
	ck_assert_uint_eq(fence.calls, 1);
	ck_assert(!fence.known);
}
END_TEST

static bool doubts(struct rig *rig)
{
	return hw_redis_doubts(rig->r);
}

/* The store may have been emptied before the other run's record was written. */
START_TEST(anothers_mark_in_its_place_is_doubted)
{
	mark();
	ck_assert(!hw_redis_doubts(g->r));
	if (_i == 0) {
		rig_do(g, "SET device:monitor:node-1 %s", "00000000000000aa 7");
	} else {
		rig_do(g, "HSET device:nodes node-1 %s", "00000000000000aa 7 {}");
		rig_do(g, "SET device:monitor:node-1 %s", "00000000000000aa 7");
	}
	g->marking = true;
	rig_until(g, doubts, IDLE_MS);
	g->marking = false;
	ck_assert(_i == 1 || !hw_redis_doubts(g->r));
}
END_TEST

static bool is_left(struct rig *rig)
{
	(void)rig;
	return hw_redis_has_sight_record(g->r);
}

static bool has_our_mark(struct rig *rig)
{
	redisReply *mark = rig_ask(rig, "GET device:monitor:node-1");
	bool ours = mark->type == REDIS_REPLY_STRING && strcmp(mark->str, "00000000000000aa 7") != 0;
	freeReplyObject(mark);
	return ours;
}

/* Another run has had the name since this one began, and the name is ours at last: nothing of ours was there to miss.
 */
START_TEST(a_name_that_is_waited_for_is_not_doubted)
{
	rig_do(g, "HSET device:nodes node-1 %s", "00000000000000aa 7 {}");
	rig_do(g, "SET device:monitor:node-1 %s", "00000000000000aa 7");
	g->marking = true;
	rig_until(g, is_left, IDLE_MS);
	rig_do(g, "DEL device:nodes");
	rig_until(g, has_our_mark, IDLE_MS);
	g->marking = false;
	rig_until(g, rig_is_idle, IDLE_MS);
	ask_fence();
	ck_assert(fence.known && fence.marked);
	ck_assert(!hw_redis_doubts(g->r));
}
END_TEST

/* --- against a naive twin ----------------------------------------------------------------------------------------- */

#define DEVICES 48
#define ROUNDS  60

static struct sim_random chance;
static struct hw_record stored[HW_PARTITIONS];
static char state[DEVICES][8];
static long long entries;

static uint64_t draw(uint64_t below)
{
	return sim_draw(&chance) % below;
}

/* Other nodes claim and release; our partitions are others from now on. */
static void others(void)
{
	char text[HW_RECORD_TEXT];
	for (unsigned p = 0; p < HW_PARTITIONS; p++) {
		if (draw(4) == 0)
			g->epoch[p] = draw(8) == 0 ? 0 : 90 + draw(20);
		if (draw(4))
			continue;
		stored[p].token = hw_fencing_token_make(90 + draw(20), draw(2) ? "node-0" : "node-2");
		stored[p].released = draw(2);
		stored[p].clean = stored[p].released && draw(2);
		hw_record_text(&stored[p], text);
		rig_do(g, "HSET device:owners %u %s", p, text);
	}
}

static void twin_edge(unsigned k, unsigned p, bool is_online)
{
	const char *to = is_online ? "online" : "offline";
	struct hw_fencing_token t = hw_fencing_token_make(g->epoch[p], "node-1");
	if (t.epoch == 0 || !hw_record_admits(&stored[p], &t))
		return;
	entries += strcmp(state[k], to) != 0;
	snprintf(state[k], sizeof(state[k]), "%s", to);
}

static void compare_with_twin(void)
{
	char id[16], text[HW_RECORD_TEXT];
	for (unsigned k = 0; k < DEVICES; k++) {
		snprintf(id, sizeof(id), "d%u", k);
		rig_expect(g, state[k][0] ? state[k] : NULL, "HGET device:state:%s state", id);
		hw_record_text(&stored[part_of(id)], text);
		rig_expect(g, text[0] ? text : NULL, "HGET device:owners %u", part_of(id));
	}
	ck_assert_int_eq(events(), entries);
}

START_TEST(random_edges_do_what_the_twin_does)
{
	uint32_t index[DEVICES];
	char id[16];
	chance.state = rig_seed();
	for (unsigned k = 0; k < DEVICES; k++) {
		snprintf(id, sizeof(id), "d%u", k);
		index[k] = rig_device(g, GROUP_PLAIN, id);
	}
	for (int round = 0; round < ROUNDS; round++) {
		others();
		for (unsigned n = 0; n < DEVICES; n++) {
			unsigned k = (unsigned)draw(DEVICES);
			bool is_online = draw(2);
			snprintf(id, sizeof(id), "d%u", k);
			twin_edge(k, part_of(id), is_online);
			if (is_online)
				online(index[k]);
			else
				offline(index[k]);
		}
		settle();
		compare_with_twin();
	}
	expect_calm();
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("redis fence");
	TCase *one = tcase_create("fence"), *self = tcase_create("by itself");
	tcase_add_checked_fixture(one, fixture_node_up, fixture_down);
	tcase_add_test(one, what_is_ours_is_written_with_our_epoch);
	tcase_add_test(one, an_entry_has_the_form_that_is_not_ours);
	tcase_add_test(one, a_newer_token_is_stored);
	tcase_add_test(one, what_is_older_is_not_written);
	tcase_add_test(one, the_name_decides);
	tcase_add_test(one, an_epoch_that_is_impossible);
	tcase_add_test(one, nor_refreshed_nor_written_anew);
	tcase_add_test(one, nor_acknowledged_nor_forgotten);
	tcase_add_test(one, what_was_lost_meanwhile_is_dropped);
	tcase_add_test(one, what_is_dropped_is_told);
	tcase_add_loop_test(one, what_found_no_room_is_lost_for_good, 0, 2);
	tcase_add_test(one, an_edge_to_the_same_state_has_no_entry);
	tcase_add_test(one, what_is_written_anew_has_an_entry);
	tcase_add_test(one, the_same_seq_of_another);
	tcase_add_test(one, owners_that_are_no_hash_are_named);
	tcase_add_test(one, an_entry_that_was_refused_is_written_later);
	tcase_add_test(one, no_memory);
	tcase_add_test(one, a_mark_that_was_refused_and_is_left);
	tcase_add_test(one, a_mark_is_no_new_one_where_there_was_one);
	tcase_add_test(one, a_mark_is_refused_by_a_replica);
	tcase_add_test(one, the_server_is_known);
	tcase_add_test(one, the_fence_finds_the_mark);
	tcase_add_loop_test(one, the_fence_misses_the_mark, 0, 2);
	tcase_add_test(one, a_fence_whose_link_is_lost);
	tcase_add_loop_test(one, anothers_mark_in_its_place_is_doubted, 0, 2);
	tcase_add_test(one, a_name_that_is_waited_for_is_not_doubted);
	tcase_add_test(one, random_edges_do_what_the_twin_does);
	tcase_set_timeout(one, 60);
	suite_add_tcase(suite, one);
	tcase_add_checked_fixture(self, fixture_up, fixture_down);
	tcase_add_test(self, one_by_itself);
	suite_add_tcase(suite, self);
	return suite;
}

int main(void)
{
	return rig_run(make_suite());
}

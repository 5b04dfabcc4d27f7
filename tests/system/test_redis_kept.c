/* SPDX-License-Identifier: MIT */
/*
 * Confirmed transitions over a change of the master: a real master, a replica that is promoted, and a Sentinel that is
 * notified. In the end the transitions that the replica never received are in its stream, in order; those that it had
 * are there once.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "../sink_state.h"
#include "heartwheel/partition.h"
#include "redis_fixture.h"

static struct rig next, guard;
static char sentinels[32];

static void make_next_a_replica(void)
{
	rig_serve(&next, NULL);
	rig_do(&next, "REPLICAOF 127.0.0.1 %d", g->port);
}

/* The replica has all that was written so far. */
static void replicate(void)
{
	ck_assert_int_eq(rig_number(g, "WAIT 1 %d", PATIENCE_MS), 1);
}

/* ... and gets nothing more. */
static void cut_off(void)
{
	replicate();
	rig_do(&next, "REPLICAOF NO ONE");
}

static void tell_guard(const struct rig *master)
{
	freeReplyObject(rig_ask(&guard, "SENTINEL REMOVE mymaster"));
	rig_do(&guard, "SENTINEL MONITOR mymaster 127.0.0.1 %d 1", master->port);
	rig_do(&guard, "SENTINEL SET mymaster down-after-milliseconds 3600000");
}

/* From here on `g` looks at the new master. */
static void change_master(void)
{
	g->sent_again = g->lacking = 0;
	tell_guard(&next);
	rig_kill_server(g);
	rig_until(g, is_down, IDLE_MS);
	g->downs = 0;
	g->server = next.server;
	g->port = next.port;
	g->look = next.look;
	snprintf(g->socket, sizeof(g->socket), "%s", next.socket);
	settle();
}

static void begin(bool several)
{
	rig_serve(g, NULL);
	make_next_a_replica();
	rig_guard(&guard);
	tell_guard(g);
	snprintf(sentinels, sizeof(sentinels), "127.0.0.1:%d", guard.port);
	g->conf.at.sentinels = sentinels;
	g->conf.at.master = "mymaster";
	g->several = several;
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		g->epoch[p] = 50;
	rig_start(g);
	rig_until(g, rig_is_up, IDLE_MS);
}

static void alone(void)
{
	begin(false);
}

static void one_of_several(void)
{
	begin(true);
}

static void tear_down(void)
{
	rig_kill_server(&guard);
	rig_stop(g);
}

/* "a+ a-": the devices' transitions in the stream; "a!" is a forgetting. */
static void expect_stream(const char *want)
{
	char have[600] = "";
	redisReply *all = rig_ask(g, "XRANGE device:events - +");
	for (size_t i = 0; i < all->elements; i++) {
		const redisReply *fields = all->element[i]->element[1];
		const char *state = fields->element[3]->str, *id = fields->element[1]->str;
		const char *mark = strcmp(state, "online") == 0 ? "+" : strcmp(state, "offline") == 0 ? "-" : "!";
		size_t at = strlen(have);
		snprintf(have + at, sizeof(have) - at, "%s%s%s", at ? " " : "", id, mark);
	}
	freeReplyObject(all);
	ck_assert_str_eq(have, want);
}

static void expect_again(unsigned n, unsigned lacking)
{
	ck_assert_uint_eq(g->sent_again, n);
	ck_assert_uint_eq(g->lacking, lacking);
	ck_assert_msg(g->troubles == 0, "%s", g->trouble);
	ck_assert_uint_eq(hw_redis_stats(g->r)->transitions_dropped, 0);
}

static void owe_forgotten(uint32_t i)
{
	struct hw_id id = hw_device_id(rig_at(g, i));
	struct hw_out out;
	unsigned budget = 100;
	ck_assert(hw_monitor_forget(g->m, rig_now(), id.text, id.len));
	while (hw_monitor_next(g->m, rig_now(), &budget, &out))
		if (out.kind == HW_OUT_TRANSITION)
			hw_redis_transition(g->r, rig_now(), &out.transition);
}

static void forget(uint32_t i)
{
	owe_forgotten(i);
	settle();
}

/* As the daemon does it once all have confirmed. */
static void reap(uint32_t i)
{
	hw_monitor_reap(g->m, hw_registry_ref(hw_monitor_registry(g->m), i));
}

START_TEST(what_only_the_old_master_had)
{
	uint32_t a = rig_device(g, GROUP_PLAIN, "a"), b = rig_device(g, GROUP_FAST, "b");
	online(a);
	settle();
	cut_off();
	online(b);
	settle();
	offline(b);
	offline(a);
	online(b);
	settle();
	change_master();
	expect_stream("a+ b+ b- a- b+");
	expect_again(5, 4);
	compare_all();
}
END_TEST

/* What is owed comes behind it. */
START_TEST(what_was_not_confirmed_yet_comes_behind)
{
	uint32_t a = rig_device(g, GROUP_PLAIN, "a"), b = rig_device(g, GROUP_PLAIN, "b");
	cut_off();
	online(a);
	settle();
	online(b);
	offline(a);
	change_master();
	expect_stream("a+ b+ a-");
	compare_all();
}
END_TEST

START_TEST(what_the_new_master_has_is_there_once)
{
	char want[600] = "";
	make_devices(60);
	settle();
	replicate();
	for (unsigned k = 0; k < 60; k++)
		snprintf(want + strlen(want), 8, "%sd%u%s", k ? " " : "", k, k % 3 ? "+" : "-");
	cut_off();
	change_master();
	expect_stream(want);
	expect_again(60, 0);
	compare_all();
}
END_TEST

/* It is unknown what happened to a master that could not be reached. */
START_TEST(the_same_master)
{
	uint32_t a = rig_device(g, GROUP_PLAIN, "a");
	online(a);
	offline(a);
	settle();
	rig_do(g, "CLIENT KILL TYPE normal SKIPME yes");
	rig_until(g, is_down, IDLE_MS);
	settle();
	expect_stream("a+ a-");
	expect_again(2, 0);
}
END_TEST

START_TEST(two_changes)
{
	static struct rig third;
	uint32_t a = rig_device(g, GROUP_PLAIN, "a");
	cut_off();
	online(a);
	settle();
	rig_serve(&third, NULL);
	rig_do(&third, "REPLICAOF 127.0.0.1 %d", next.port); /* nothing yet */
	ck_assert_int_eq(rig_number(&next, "WAIT 1 %d", PATIENCE_MS), 1);
	rig_do(&third, "REPLICAOF NO ONE");
	change_master();
	expect_stream("a+");
	next = third;
	change_master();
	expect_stream("a+");
	expect_again(1, 1);
}
END_TEST

START_TEST(what_was_forgotten)
{
	uint32_t a = rig_device(g, GROUP_PLAIN, "a"), b = rig_device(g, GROUP_PLAIN, "b"),
		 c = rig_device(g, GROUP_PLAIN, "c");
	online(a);
	online(b);
	online(c);
	settle();
	forget(c);
	cut_off();
	offline(a);
	offline(b);
	settle();
	forget(a);
	forget(b);
	reap(a);
	reap(c); /* and `b` is kept, as long as the broker has not confirmed it */
	change_master();
	expect_stream("a+ b+ c+ c! a! b!");
	ck_assert_int_eq(rig_number(g, "EXISTS device:state:a device:state:b device:state:c"), 0);
	ck_assert_int_eq(rig_number(g, "EXISTS device:connected:a device:disconnected:a"), 0);
	ck_assert_int_eq(rig_number(g, "ZCARD device:offline"), 0);
}
END_TEST

/* Its rewrite was the transition, and is sent again as that. */
START_TEST(what_found_no_room)
{
	uint32_t a = rig_device(g, GROUP_PLAIN, "a"), b = rig_device(g, GROUP_PLAIN, "b");
	online(a);
	settle();
	cut_off();
	sink_fill(g->r);
	online(b);
	owe_forgotten(a);
	settle();
	reap(a);
	offline(b);
	settle();
	expect_stream("a+ b+ a! b-");
	change_master();
	expect_stream("a+ b+ a! b-");
	expect_again(4, 3);
	rig_expect(g, "offline", "HGET device:state:b state");
}
END_TEST

/* A device that came back is not forgotten because of an earlier entry. */
START_TEST(what_came_back_after_it_was_forgotten)
{
	uint32_t a = rig_device(g, GROUP_PLAIN, "a");
	online(a);
	settle();
	forget(a);
	reap(a);
	a = rig_device(g, GROUP_PLAIN, "a");
	struct hw_device *d = rig_at(g, a);
	d->seq += 10;
	online(a);
	settle();
	cut_off();
	change_master();
	expect_stream("a+ a! a+");
	compare_all();
}
END_TEST

/* A clearing that the broker has acknowledged is not in the outbox of the new master. */
START_TEST(the_outbox)
{
	uint32_t a = rig_device(g, GROUP_PLAIN, "a"), b = rig_device(g, GROUP_PLAIN, "b");
	cut_off();
	online(a);
	online(b);
	hw_device_note(rig_at(g, a), HW_PENDING_STATUS, true);
	hw_device_note(rig_at(g, b), HW_PENDING_STATUS, true);
	rig_transit(g, a, HW_STATE_FORGOTTEN, HW_REASON_OPERATOR);
	rig_transit(g, b, HW_STATE_FORGOTTEN, HW_REASON_OPERATOR);
	settle();
	hw_device_note(rig_at(g, a), HW_PENDING_STATUS, false);
	hw_redis_cleared(g->r, "a", 1);
	settle();
	change_master();
	rig_expect(g, NULL, "HGET device:outbox a");
	ck_assert_int_eq(rig_number(g, "HEXISTS device:outbox b"), 1);
}
END_TEST

START_TEST(many_keep_their_order)
{
	enum { DEVICES = 300, ROUNDS = 6 };
	uint32_t at[DEVICES];
	cut_off();
	for (unsigned k = 0; k < DEVICES; k++) {
		char id[16];
		snprintf(id, sizeof(id), "d%u", k);
		at[k] = rig_device(g, GROUP_PLAIN, id);
	}
	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned k = 0; k < DEVICES; k++)
			(void)(round % 2 ? offline(at[k]) : online(at[k]));
	settle();
	change_master();
	expect_again(DEVICES * ROUNDS, DEVICES * ROUNDS);
	redisReply *all = rig_ask(g, "XRANGE device:events - +");
	ck_assert_uint_eq(all->elements, DEVICES * ROUNDS);
	for (size_t i = 0; i < all->elements; i++) {
		const redisReply *fields = all->element[i]->element[1];
		char id[16];
		snprintf(id, sizeof(id), "d%zu", i % DEVICES);
		ck_assert_str_eq(fields->element[1]->str, id);
		ck_assert_str_eq(fields->element[3]->str, i / DEVICES % 2 ? "offline" : "online");
	}
	freeReplyObject(all);
	compare_all();
}
END_TEST

/* Only transitions of our partitions, with the token with which they were decided. */
START_TEST(with_the_token_that_it_was_decided_with)
{
	uint32_t a = rig_device(g, GROUP_PLAIN, "a"), b = rig_device(g, GROUP_PLAIN, "b"),
		 c = rig_device(g, GROUP_PLAIN, "c");
	cut_off();
	online(a);
	online(b);
	online(c);
	settle();
	g->epoch[hw_partition_of("b", 1)] = 0;  /* it is another's now */
	g->epoch[hw_partition_of("c", 1)] = 51; /* it was, meanwhile */
	change_master();
	expect_stream("a+ c+"); /* the latter as what is written anew: its own is not sent */
	rig_expect(g, "50 node-1", "HGET device:owners %u", hw_partition_of("a", 1));
	rig_expect(g, "50", "HGET device:state:a epoch");
	rig_expect(g, NULL, "HGET device:owners %u", hw_partition_of("b", 1));
	rig_expect(g, "51", "HGET device:state:c epoch"); /* its state is written all the same */
}
END_TEST

START_TEST(without_sentinels_nothing_is_kept)
{
	make_devices(100);
	settle();
	ck_assert_ptr_null(g->r->sink.kept.at);
	rig_do(g, "CLIENT KILL TYPE normal SKIPME yes");
	rig_until(g, is_down, IDLE_MS);
	settle();
	expect_again(0, 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("redis_kept");
	TCase *c = tcase_create("alone"), *n = tcase_create("several"), *w = tcase_create("without");
	tcase_add_checked_fixture(c, alone, tear_down);
	tcase_add_test(c, what_only_the_old_master_had);
	tcase_add_test(c, what_was_not_confirmed_yet_comes_behind);
	tcase_add_test(c, what_the_new_master_has_is_there_once);
	tcase_add_test(c, the_same_master);
	tcase_add_test(c, two_changes);
	tcase_add_test(c, what_was_forgotten);
	tcase_add_test(c, what_found_no_room);
	tcase_add_test(c, what_came_back_after_it_was_forgotten);
	tcase_add_test(c, the_outbox);
	tcase_add_test(c, many_keep_their_order);
	tcase_add_checked_fixture(n, one_of_several, tear_down);
	tcase_add_test(n, with_the_token_that_it_was_decided_with);
	tcase_add_test(n, what_only_the_old_master_had);
	tcase_add_test(n, what_found_no_room);
	tcase_add_test(n, many_keep_their_order);
	tcase_add_checked_fixture(w, fixture_up, fixture_down);
	tcase_add_test(w, without_sentinels_nothing_is_kept);
	TCase *cases[] = {c, n, w};
	for (unsigned i = 0; i < 3; i++) {
		tcase_set_timeout(cases[i], 120);
		suite_add_tcase(s, cases[i]);
	}
	return rig_run(s);
}

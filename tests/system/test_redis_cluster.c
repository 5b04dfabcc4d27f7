/* SPDX-License-Identifier: MIT */
/* The scripts of several nodes on a real Redis, against a naive twin and alone. */
#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../simulation/sim_random.h"
#include "redis/cluster.h"
#include "redis_fixture.h"

#define NAMES 5
#define STEPS 3000
#define FEW   6 /* partitions that most steps are about */

/* In the order of their bytes "B" is the least: a server's locale may think otherwise. */
static const char *const names[NAMES] = {"a", "B", "node-10", "node-2", "\xc3\xa9"};

struct node {
	struct hw_cluster cluster;
	uint64_t run;
	struct hw_record owners[HW_PARTITIONS]; /* as in the last answer */
};

static struct hw_keys keys;
static char sha[HW_CLUSTER_SCRIPTS][HW_SHA_LEN + 1];
static struct node nodes[NAMES];
static struct hw_cluster_answer answer;
static char error[HW_TROUBLE_TEXT];

/* The naive twin: what Redis should hold. */
static struct {
	struct hw_member_entry member[NAMES];
	bool there[NAMES];
	struct hw_record owner[HW_PARTITIONS];
} twin;

static struct sim_random chance;

static void set_up(void)
{
	fixture_serve();
	ck_assert_int_eq(hw_keys_init(&keys, "device:", "a"), 0);
	for (int s = 0; s < HW_CLUSTER_SCRIPTS; s++) {
		redisReply *reply = rig_ask(g, "SCRIPT LOAD %s", hw_cluster_script_text((enum hw_cluster_script)s));
		ck_assert_msg(reply->type == REDIS_REPLY_STRING, "%s", reply->str);
		snprintf(sha[s], sizeof(sha[s]), "%s", reply->str);
		freeReplyObject(reply);
	}
	for (int i = 0; i < NAMES; i++) {
		hw_cluster_init(&nodes[i].cluster, &keys, names[i]);
		nodes[i].run = (uint64_t)i + 1;
	}
	memset(&twin, 0, sizeof(twin));
}

static void tear_down(void)
{
	hw_keys_fini(&keys);
	rig_kill_server(g);
}

/* Sends the request and reads its answer, which borrows from the reply. The reply is valid until the next request. */
static int ask(struct node *n, const struct hw_nodes_order *o, const struct hw_cluster_with *with)
{
	static redisReply *reply;
	struct hw_eval e = {0};
	size_t len;
	enum hw_cluster_script script = hw_cluster_call(&n->cluster, &e, o, with);
	const char *command = hw_eval_end(&e, sha[script], &len);
	ck_assert_ptr_nonnull(command);
	freeReplyObject(reply);
	ck_assert_int_eq(redisAppendFormattedCommand(g->look, command, len), REDIS_OK);
	ck_assert_int_eq(redisGetReply(g->look, (void **)&reply), REDIS_OK);
	hw_eval_fini(&e);
	int rc = hw_cluster_read(&n->cluster, o, reply, &answer, error);
	if (rc == 0 && answer.nodes.owners)
		memcpy(n->owners, answer.owners, sizeof(n->owners));
	return rc;
}

static const char *json_of(bool ready)
{
	return ready ? "{\"state\":\"ready\",\"owns\":3}" : "{\"state\":\"joining\"}";
}

/* --- the twin ----------------------------------------------------------------------------------------------------- */

static bool twin_has(const char *name)
{
	for (int i = 0; i < NAMES; i++)
		if (twin.there[i] && strcmp(names[i], name) == 0)
			return true;
	return false;
}

static void twin_enter(int i, const struct hw_nodes_order *o)
{
	twin.there[i] = true;
	twin.member[i] =
		(struct hw_member_entry){.node = names[i], .run = o->run, .count = o->count, .ready = o->ready};
}

static enum hw_nodes_result twin_renew(int i, const struct hw_nodes_order *o, const uint64_t *claims)
{
	if (!twin.there[i] || twin.member[i].run != o->run)
		return HW_NODES_GONE;
	twin_enter(i, o);
	for (unsigned p = 0; p < HW_PARTITIONS; p++) {
		struct hw_fencing_token t = hw_fencing_token_make(claims[p], names[i]);
		if (claims[p])
			hw_record_admits(&twin.owner[p], &t);
	}
	return HW_NODES_DONE;
}

static bool same_record(const struct hw_record *a, const struct hw_record *b)
{
	return hw_fencing_token_compare(&a->token, &b->token) == 0 && a->released == b->released &&
	       a->clean == b->clean;
}

static enum hw_nodes_result twin_claim(int i, const struct hw_nodes_order *o, const struct hw_record *expected,
                                       struct hw_partitions *won)
{
	struct hw_fencing_token t = hw_fencing_token_make(o->epoch, names[i]);
	if (!twin.there[i] || twin.member[i].run != o->run)
		return HW_NODES_GONE;
	for (unsigned p = 0; p < HW_PARTITIONS; p++) {
		struct hw_record *r = &twin.owner[p];
		bool free = r->token.epoch == 0 || r->released || strcmp(r->token.node, names[i]) == 0 ||
		            !twin_has(r->token.node);
		if (!hw_partitions_has(&o->set, p) || !free || !same_record(r, &expected[p]) ||
		    !hw_fencing_token_is_less(&r->token, &t))
			continue;
		hw_partitions_add(won, p);
	}
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		if (hw_partitions_has(won, p))
			twin.owner[p] = (struct hw_record){.token = t};
	return HW_NODES_DONE;
}

static void twin_release(const struct hw_nodes_order *o, const struct hw_fencing_token *given)
{
	for (unsigned p = 0; p < HW_PARTITIONS; p++) {
		struct hw_record *r = &twin.owner[p];
		if (!hw_partitions_has(&o->set, p) || r->released ||
		    hw_fencing_token_compare(&r->token, &given[p]) != 0)
			continue;
		r->released = r->token.epoch != 0;
		r->clean = r->released && hw_partitions_has(&o->clean, p);
	}
}

/* Each answer shows all that the twin holds. */
static void compare(const struct node *n)
{
	size_t members = 0;
	for (int i = 0; i < NAMES; i++)
		members += twin.there[i];
	ck_assert_uint_eq(answer.nodes.n_members, members);
	for (size_t k = 0; k < answer.nodes.n_members; k++) {
		const struct hw_member_entry *m = &answer.nodes.members[k];
		int i = 0;
		while (i < NAMES && strcmp(names[i], m->node) != 0)
			i++;
		ck_assert(i < NAMES && twin.there[i]);
		ck_assert_uint_eq(m->run, twin.member[i].run);
		ck_assert_uint_eq(m->count, twin.member[i].count);
		ck_assert(m->ready == twin.member[i].ready);
		ck_assert(answer.json[k][0] == '{');
	}
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		ck_assert_msg(same_record(&n->owners[p], &twin.owner[p]),
		              "partition %u: %" PRIu64 " %s, not %" PRIu64 " %s", p, n->owners[p].token.epoch,
		              n->owners[p].token.node, twin.owner[p].token.epoch, twin.owner[p].token.node);
}

/* --- random operations of several nodes --------------------------------------------------------------------------- */

static uint64_t draw(uint64_t below)
{
	return sim_draw(&chance) % below;
}

static uint64_t random_epoch(void)
{
	const uint64_t tomorrow = (uint64_t)time(NULL) + HW_EPOCH_AHEAD_S;
	const uint64_t transitions[] = {9, 10, 99, 100, 1700000000, tomorrow - 3600, tomorrow - 3601};
	return draw(20) == 0 ? transitions[draw(7)] : 1 + draw(30);
}

static struct hw_partitions random_set(void)
{
	struct hw_partitions s = {{0}};
	unsigned n = draw(50) == 0 ? HW_PARTITIONS : FEW;
	for (unsigned p = 0; p < n; p++)
		if (draw(2))
			hw_partitions_add(&s, p);
	return s;
}

static void step_renew(int i, struct hw_nodes_order *o)
{
	uint64_t claims[HW_PARTITIONS] = {0};
	bool join = draw(3) == 0;
	o->kind = join ? HW_NODES_JOIN : HW_NODES_RENEW;
	o->count = join ? 0 : draw(5);
	o->ready = draw(2);
	for (unsigned p = 0; !join && p < HW_PARTITIONS; p++)
		if (p < FEW ? draw(3) == 0 : draw(400) == 0)
			claims[p] = random_epoch();
	ck_assert_int_eq(ask(&nodes[i], o, &(struct hw_cluster_with){.json = json_of(o->ready), .claims = claims}), 0);
	if (!join) {
		ck_assert_int_eq(answer.nodes.result, twin_renew(i, o, claims));
	} else if (twin.there[i] && twin.member[i].run != o->run) {
		ck_assert_int_eq(answer.nodes.result, HW_NODES_TAKEN);
	} else {
		ck_assert_int_eq(answer.nodes.result, HW_NODES_DONE);
		twin_enter(i, o);
	}
}

static void step_claim(int i, struct hw_nodes_order *o)
{
	struct hw_record expected[HW_PARTITIONS];
	struct hw_partitions won = {{0}};
	o->kind = HW_NODES_CLAIM;
	o->set = random_set();
	o->epoch = random_epoch();
	memcpy(expected, twin.owner, sizeof(expected));
	for (unsigned p = 0; p < FEW; p++)
		if (draw(4) == 0)
			expected[p] = twin.owner[draw(FEW)];
		else if (draw(8) == 0 && expected[p].released)
			expected[p].clean = !expected[p].clean;
	ck_assert_int_eq(ask(&nodes[i], o, &(struct hw_cluster_with){.expected = expected}), 0);
	ck_assert_int_eq(answer.nodes.result, twin_claim(i, o, expected, &won));
	ck_assert_mem_eq(&answer.nodes.won, &won, sizeof(won));
}

static void step_release(int i, struct hw_nodes_order *o)
{
	struct hw_fencing_token given[HW_PARTITIONS];
	o->kind = HW_NODES_RELEASE;
	o->set = random_set();
	o->clean = random_set();
	for (unsigned p = 0; p < HW_PARTITIONS; p++) {
		given[p] = twin.owner[p].token;
		if (draw(4) == 0)
			given[p] = hw_fencing_token_make(random_epoch(), names[i]);
	}
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		if (given[p].epoch == 0)
			hw_partitions_del(&o->set, p);
	ck_assert_int_eq(ask(&nodes[i], o, &(struct hw_cluster_with){.given = given}), 0);
	twin_release(o, given);
}

static void step_remove(int i, struct hw_nodes_order *o)
{
	int whom = (int)draw(NAMES);
	bool leave = draw(2);
	o->kind = leave ? HW_NODES_LEAVE : HW_NODES_REMOVE;
	if (leave)
		whom = i;
	snprintf(o->node, sizeof(o->node), "%s", names[whom]);
	if (draw(2) || leave)
		o->run = nodes[whom].run;
	o->count = draw(5);
	ck_assert_int_eq(ask(&nodes[i], o, NULL), 0);
	if (twin.there[whom] && twin.member[whom].run == o->run && (leave || twin.member[whom].count == o->count))
		twin.there[whom] = false;
}

/* Unexpected events: a Redis that comes back empty, and values that others write there. */
static void trouble(void)
{
	static const char *const foreign[] = {"",
	                                      "x",
	                                      "007 a",
	                                      "5",
	                                      "5 ",
	                                      "5  -",
	                                      "5 a ?",
	                                      "5 a  -",
	                                      "-1 a",
	                                      "9223372036854775808 a",
	                                      "9223372036854775807 a",
	                                      "9999999999 b -",
	                                      "0 a",
	                                      "5 a b",
	                                      "0x5 a",
	                                      " 5 a",
	                                      "99999999999999999999 a",
	                                      "5\ta -",
	                                      "1700000000"};
	unsigned p = (unsigned)draw(FEW);
	switch (draw(4)) {
	case 0:
		rig_do(g, "FLUSHALL");
		memset(&twin, 0, sizeof(twin));
		break;
	case 1:
		rig_do(g, "HSET device:owners %u %s", p, foreign[draw(sizeof(foreign) / sizeof(foreign[0]))]);
		twin.owner[p] = (struct hw_record){0};
		break;
	case 2:
		rig_do(g, "HSET device:nodes %s %s", names[p % NAMES], draw(2) ? "1 2 {}" : "000000000000000A 2 {}");
		twin.there[p % NAMES] = false;
		break;
	default:
		nodes[p % NAMES].run += NAMES;
		hw_cluster_forget(&nodes[p % NAMES].cluster);
	}
}

static void step(void)
{
	int i = (int)draw(NAMES);
	struct hw_nodes_order o = {.serial = sim_draw(&chance), .run = nodes[i].run};
	unsigned what = (unsigned)draw(10);
	if (draw(40) == 0)
		trouble();
	if (draw(10) == 0)
		o.run += NAMES;
	if (what < 4)
		step_renew(i, &o);
	else if (what < 7)
		step_claim(i, &o);
	else if (what < 9)
		step_release(i, &o);
	else
		step_remove(i, &o);
	ck_assert_uint_eq(answer.nodes.serial, o.serial);
	compare(&nodes[i]);
}

START_TEST(random_operations_do_what_the_twin_does)
{
	chance.state = rig_seed();
	for (int k = 0; k < STEPS; k++)
		step();
}
END_TEST

/* --- by themselves ------------------------------------------------------------------------------------------------ */

static void join(int i)
{
	struct hw_nodes_order o = {.kind = HW_NODES_JOIN, .run = nodes[i].run, .ready = true};
	ck_assert_int_eq(ask(&nodes[i], &o, &(struct hw_cluster_with){.json = json_of(true)}), 0);
	ck_assert_int_eq(answer.nodes.result, HW_NODES_DONE);
}

static void claim_all(int i, uint64_t epoch)
{
	struct hw_nodes_order o = {.kind = HW_NODES_CLAIM, .run = nodes[i].run, .epoch = epoch};
	memset(&o.set, 0xff, sizeof(o.set));
	ck_assert_int_eq(ask(&nodes[i], &o, &(struct hw_cluster_with){.expected = nodes[i].owners}), 0);
}

START_TEST(what_they_leave)
{
	join(0);
	long long ttl = rig_number(g, "PTTL device:nodes");
	ck_assert_msg(ttl > 3500000 && ttl <= 3600000, "TTL %lld", ttl);
	rig_expect(g, "0000000000000001 0 {\"state\":\"ready\",\"owns\":3}", "HGET device:nodes a");
	claim_all(0, 7);
	ck_assert_uint_eq(hw_partitions_count(&answer.nodes.won), HW_PARTITIONS);
	ck_assert(answer.nodes.last.ms == 0 && answer.nodes.last.seq == 0);
	rig_expect(g, "7 a", "HGET device:owners 255");
	struct hw_nodes_order o = {.kind = HW_NODES_RELEASE, .run = 1, .set = {{6}}, .clean = {{2}}};
	struct hw_fencing_token given[HW_PARTITIONS];
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		given[p] = hw_fencing_token_make(7, "a");
	ck_assert_int_eq(ask(&nodes[0], &o, &(struct hw_cluster_with){.given = given}), 0);
	rig_expect(g, "7 a", "HGET device:owners 0");
	rig_expect(g, "7 a -", "HGET device:owners 1");
	rig_expect(g, "7 a ~", "HGET device:owners 2");
}
END_TEST

/* An epoch that is further ahead of Redis' clock than a day: nobody wins by one, and nobody stores one; a record that
 * has one is replaced by any claim. */
START_TEST(an_epoch_that_is_impossible)
{
	const uint64_t impossible = (uint64_t)time(NULL) + HW_EPOCH_AHEAD_S + 60;
	struct hw_nodes_order o = {.kind = HW_NODES_RENEW, .run = nodes[0].run};
	uint64_t claims[HW_PARTITIONS] = {[4] = impossible, [5] = impossible - 120};
	join(0);
	ck_assert_uint_ge(answer.nodes.now_s + 60, (uint64_t)time(NULL));
	claim_all(0, impossible);
	ck_assert(!hw_partitions_any(&answer.nodes.won));
	rig_do(g, "HSET device:owners 0 %s", "9223372036854775807 zz");
	rig_do(g, "HSET device:owners 1 %s", "9223372036854775807 a");
	ck_assert_int_eq(ask(&nodes[0], &o, &(struct hw_cluster_with){.json = json_of(true), .claims = claims}), 0);
	ck_assert_uint_eq(answer.impossible, 2);
	ck_assert_uint_eq(answer.owners[0].token.epoch, 0);
	ck_assert_uint_eq(answer.owners[4].token.epoch, 0);
	ck_assert_uint_eq(answer.owners[5].token.epoch, impossible - 120);
	claim_all(0, impossible - 60);
	ck_assert_uint_eq(hw_partitions_count(&answer.nodes.won), HW_PARTITIONS);
}
END_TEST

START_TEST(those_that_have_left_are_told)
{
	struct hw_nodes_order o = {.kind = HW_NODES_REMOVE, .run = nodes[0].run};
	join(0);
	join(1);
	ck_assert_uint_eq(answer.nodes.n_left, 0);
	snprintf(o.node, sizeof(o.node), "%s", names[0]);
	rig_do(g, "HSET device:nodes_left old 1 newer %u", (unsigned)time(NULL) - 3000);
	ck_assert_int_eq(ask(&nodes[1], &o, NULL), 0);
	ck_assert_uint_eq(answer.nodes.n_left, 2); /* `old` was for too long */
	ck_assert_str_eq(answer.nodes.left[0], "newer");
	ck_assert_str_eq(answer.nodes.left[1], "a");
	ck_assert_int_gt(rig_number(g, "PTTL device:nodes_left"), 3500000);
	join(0);
	ck_assert_uint_eq(answer.nodes.n_left, 1);
}
END_TEST

START_TEST(owners_are_told_when_they_changed)
{
	struct hw_nodes_order o = {.kind = HW_NODES_RENEW, .run = nodes[0].run, .ready = true};
	const struct hw_cluster_with with = {.json = json_of(true)};
	join(0);
	ck_assert_ptr_nonnull(answer.nodes.owners);
	ck_assert_int_eq(ask(&nodes[0], &o, &with), 0);
	ck_assert_ptr_null(answer.nodes.owners);
	join(1);
	claim_all(1, 3);
	ck_assert_int_eq(ask(&nodes[0], &o, &with), 0);
	ck_assert_ptr_nonnull(answer.nodes.owners);
	ck_assert_str_eq(answer.nodes.owners[200].token.node, "B");
	hw_cluster_forget(&nodes[0].cluster);
	ck_assert_int_eq(ask(&nodes[0], &o, &with), 0);
	ck_assert_ptr_nonnull(answer.nodes.owners);
}
END_TEST

/* An answer says that records are unchanged, but the node has others: the next answer has all records. */
START_TEST(calls_that_cross)
{
	struct hw_nodes_order o = {.kind = HW_NODES_RENEW, .run = nodes[0].run};
	const struct hw_cluster_with with = {.json = json_of(true)};
	join(0);
	struct hw_cluster before = nodes[0].cluster;
	claim_all(0, 9);
	rig_do(g, "DEL device:owners");
	snprintf(nodes[0].cluster.digest, sizeof(nodes[0].cluster.digest), "%s", before.digest);
	struct hw_eval e = {0};
	size_t len;
	const char *command =
		hw_eval_end((hw_cluster_call(&nodes[0].cluster, &e, &o, &with), &e), sha[HW_CLUSTER_RENEW], &len);
	redisReply *reply = NULL;
	snprintf(nodes[0].cluster.digest, sizeof(nodes[0].cluster.digest), "%040d", 1); /* another answer came first */
	ck_assert_int_eq(redisAppendFormattedCommand(g->look, command, len), REDIS_OK);
	ck_assert_int_eq(redisGetReply(g->look, (void **)&reply), REDIS_OK);
	ck_assert_int_eq(hw_cluster_read(&nodes[0].cluster, &o, reply, &answer, error), 0);
	ck_assert_ptr_null(answer.nodes.owners);
	freeReplyObject(reply);
	hw_eval_fini(&e);
	ck_assert_int_eq(ask(&nodes[0], &o, &with), 0);
	ck_assert_ptr_nonnull(answer.nodes.owners);
}
END_TEST

START_TEST(a_claim_tells_the_streams_end)
{
	rig_do(g, "XADD device:events 5-1 id x");
	rig_do(g, "XADD device:events 5-7 id y");
	join(0);
	claim_all(0, 1);
	ck_assert(answer.nodes.last.ms == 5 && answer.nodes.last.seq == 7);
	rig_do(g, "DEL device:events");
	rig_do(g, "SET device:events x");
	claim_all(0, 2);
	ck_assert_uint_eq(hw_partitions_count(&answer.nodes.won), HW_PARTITIONS);
}
END_TEST

START_TEST(another_type_is_named)
{
	struct hw_nodes_order o = {.kind = HW_NODES_RENEW, .run = 1};
	const struct hw_cluster_with with = {.json = json_of(true)};
	rig_do(g, "SET device:owners x");
	ck_assert_int_eq(ask(&nodes[0], &o, &with), -EPROTO);
	ck_assert_msg(strstr(error, "device:owners is not a hash"), "%s", error);
	rig_do(g, "DEL device:owners");
	rig_do(g, "RPUSH device:nodes x");
	ck_assert_int_eq(ask(&nodes[0], &o, &with), -EPROTO);
	ck_assert_msg(strstr(error, "device:nodes is not a hash"), "%s", error);
}
END_TEST

/* The nodes need this key only for an hour, so another program's key there does not stop them. */
START_TEST(another_type_of_those_that_left_is_deleted)
{
	rig_do(g, "SET device:nodes_left x");
	join(0);
	ck_assert_uint_eq(answer.nodes.n_left, 0);
	rig_do(g, "RPUSH device:nodes_left x");
	const struct hw_nodes_order o = {.kind = HW_NODES_RENEW, .run = nodes[0].run};
	const struct hw_cluster_with with = {.json = json_of(true)};
	ck_assert_int_eq(ask(&nodes[0], &o, &with), 0);
	ck_assert_int_eq(rig_number(g, "EXISTS device:nodes_left"), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("redis cluster");
	TCase *one = tcase_create("scripts");
	tcase_add_checked_fixture(one, set_up, tear_down);
	tcase_set_timeout(one, 60);
	tcase_add_test(one, random_operations_do_what_the_twin_does);
	tcase_add_test(one, what_they_leave);
	tcase_add_test(one, an_epoch_that_is_impossible);
	tcase_add_test(one, those_that_have_left_are_told);
	tcase_add_test(one, owners_are_told_when_they_changed);
	tcase_add_test(one, calls_that_cross);
	tcase_add_test(one, a_claim_tells_the_streams_end);
	tcase_add_test(one, another_type_is_named);
	tcase_add_test(one, another_type_of_those_that_left_is_deleted);
	suite_add_tcase(suite, one);
	return rig_run(suite);
}

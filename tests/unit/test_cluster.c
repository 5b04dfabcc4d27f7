/* SPDX-License-Identifier: MIT */
/* What Redis may answer to several nodes, and what it is taken for: records, sound answers, and any bytes at all. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../random.h"
#include "../suite.h"
#include "redis/cluster.h"

static struct hw_keys keys;
static struct hw_cluster cluster;
static struct hw_cluster_answer answer;
static char error[HW_TROUBLE_TEXT];
static struct hw_nodes_order order;

static void set_up(void)
{
	ck_assert_int_eq(hw_keys_init(&keys, "device:", "a"), 0);
	hw_cluster_init(&cluster, &keys, "a");
	order = (struct hw_nodes_order){.kind = HW_NODES_CLAIM, .serial = 5, .set = {{0xf}}};
}

static void tear_down(void)
{
	hw_keys_fini(&keys);
}

/* --- records ------------------------------------------------------------------------------------------------------ */

static void expect_record(const char *text, uint64_t epoch, const char *node, bool released, bool clean)
{
	struct hw_record r;
	char again[HW_RECORD_TEXT];
	ck_assert_int_eq(hw_record_parse(text, strlen(text), &r), 0);
	ck_assert_uint_eq(r.token.epoch, epoch);
	ck_assert_str_eq(r.token.node, node);
	ck_assert(r.released == released && r.clean == clean);
	ck_assert_uint_eq(hw_record_text(&r, again), strlen(text));
	ck_assert_str_eq(again, text);
}

START_TEST(records)
{
	expect_record("1 a", 1, "a", false, false);
	expect_record("1700000000 node-1 -", 1700000000, "node-1", true, true);
	expect_record("1700000000 node-1 ~", 1700000000, "node-1", true, false);
	expect_record("9223372036854775807 x", UINT64_MAX / 2, "x", false, false);
	expect_record("5 -", 5, "-", false, false);
	expect_record("5 - -", 5, "-", true, true);
	char text[HW_RECORD_TEXT] = "x";
	ck_assert_uint_eq(hw_record_text(&(struct hw_record){0}, text), 0);
	ck_assert_str_eq(text, "");
}
END_TEST

START_TEST(what_is_no_record)
{
	static const char *const none[] = {
		"",     "x",     "0 a",   "01 a",   "5",      "5 ",   "5  a",
		"5 a ", "5 a b", "5 a ?", "5 a  -", "5 a -x", "-5 a", "9223372036854775808 a",
		" 5 a"};
	char text[HW_NODE_ID_MAX + 8];
	for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		struct hw_record r = {.released = true};
		ck_assert_msg(hw_record_parse(none[i], strlen(none[i]), &r) == -EINVAL, "\"%s\"", none[i]);
		ck_assert(r.token.epoch == 0 && !r.released);
	}
	struct hw_record r;
	int len = snprintf(text, sizeof(text), "5 %0*d", HW_NODE_ID_MAX + 1, 0);
	ck_assert_int_eq(hw_record_parse(text, (size_t)len, &r), -EINVAL);
	ck_assert_int_eq(hw_record_parse(text, (size_t)len - 1, &r), 0);
	ck_assert_int_eq(hw_record_parse("5 a\0b", 5, &r), -EINVAL);
}
END_TEST

/* --- answers ------------------------------------------------------------------------------------------------------ */

#define DIGEST "$40\r\n0123456789abcdef0123456789abcdef01234567\r\n"
#define MEMBERS                                                                                                        \
	"*4\r\n$1\r\na\r\n$52\r\n000000000000000f 3 "                                                                  \
	"{\"state\":\"ready\",\"lease_ms\":9000}\r\n$1\r\nb\r\n$20\r\n0000000000000010 7 "                             \
	"{\r\n"
#define OWNERS  "*4\r\n$1\r\n3\r\n$5\r\n7 b -\r\n$3\r\n255\r\n$3\r\n9 a\r\n"
#define CLAIMED "*3\r\n$1\r\n0\r\n$1\r\n3\r\n$1\r\n4\r\n$4\r\n12-3\r\n"
#define CLOCK   "$2\r\n99\r\n"
#define ALLOWED "$-1\r\n"
#define LEFT    "*2\r\n$1\r\nc\r\n$1\r\n9\r\n"
static const char sound[] = "*9\r\n$4\r\nDONE\r\n" DIGEST MEMBERS OWNERS CLOCK LEFT CLAIMED ALLOWED;

/* What the bytes answer to `order`; -EAGAIN: no complete reply. */
static int take(const char *bytes, size_t len)
{
	redisReader *reader = redisReaderCreate();
	redisReply *reply = NULL;
	int rc = -EAGAIN;
	ck_assert_ptr_nonnull(reader);
	if (redisReaderFeed(reader, bytes, len) == REDIS_OK &&
	    redisReaderGetReply(reader, (void **)&reply) == REDIS_OK && reply) {
		rc = hw_cluster_read(&cluster, &order, reply, &answer, error);
		for (size_t i = 0; rc == 0 && i < answer.nodes.n_members; i++) {
			size_t node = strlen(answer.nodes.members[i].node);
			ck_assert(node > 0 && node <= HW_NODE_ID_MAX && answer.json[i][0] == '{');
		}
		for (size_t i = 0; rc == 0 && i < answer.nodes.n_left; i++)
			ck_assert(hw_claims_is_node(answer.nodes.left[i], strlen(answer.nodes.left[i])));
		freeReplyObject(reply);
	}
	redisReaderFree(reader);
	return rc;
}

START_TEST(a_sound_answer)
{
	ck_assert_int_eq(take(sound, sizeof(sound) - 1), 0);
	ck_assert_int_eq(answer.nodes.result, HW_NODES_DONE);
	ck_assert_uint_eq(answer.nodes.serial, 5);
	ck_assert_uint_eq(answer.nodes.n_members, 2);
	ck_assert_uint_eq(answer.members[0].run, 15);
	ck_assert_uint_eq(answer.members[0].count, 3);
	ck_assert(answer.members[0].ready && !answer.members[1].ready);
	ck_assert_int_eq(answer.members[0].lease_ns, 9 * HW_NS_PER_S);
	ck_assert_int_eq(answer.members[1].lease_ns, 0);
	ck_assert_uint_eq(answer.unusable, 0);
	ck_assert_uint_eq(answer.nodes.now_s, 99);
	ck_assert_uint_eq(answer.nodes.n_left, 1);
	ck_assert_str_eq(answer.nodes.owners[3].token.node, "b");
	ck_assert(answer.nodes.owners[3].clean && answer.nodes.owners[4].token.epoch == 0);
	ck_assert_uint_eq(answer.nodes.owners[255].token.epoch, 9);
	ck_assert_uint_eq(answer.nodes.won.bits[0], 9); /* 4 was not asked for */
	ck_assert(answer.nodes.last.ms == 12 && answer.nodes.last.seq == 3);
	ck_assert_str_eq(cluster.digest, "0123456789abcdef0123456789abcdef01234567");
}
END_TEST

/* Redis denies a write: the answer to a renewal reports it, and no other answer does. */
START_TEST(a_denied_write)
{
	static const char denied[] =
		"*9\r\n$4\r\nDONE\r\n" DIGEST MEMBERS OWNERS CLOCK LEFT CLAIMED "$10\r\nNOPERM zad\r\n";
	static const enum hw_nodes_kind kinds[] = {HW_NODES_JOIN, HW_NODES_RENEW, HW_NODES_CLAIM};
	for (int i = 0; i < 3; i++) {
		order.kind = kinds[i];
		ck_assert_int_eq(take(denied, sizeof(denied) - 1), 0);
		ck_assert(answer.nodes.denied == (i < 2));
		ck_assert(i == 2 || strstr(answer.denied, "NOPERM zad"));
		ck_assert_int_eq(take(sound, sizeof(sound) - 1), 0);
		ck_assert(!answer.nodes.denied);
	}
}
END_TEST

static void expect_nonsense(const char *bytes)
{
	error[0] = '\0';
	ck_assert_msg(take(bytes, strlen(bytes)) == -EPROTO, "%s", bytes);
	ck_assert_msg(error[0] && !strpbrk(error, "\r\n"), "%s: %s", bytes, error);
}

START_TEST(what_is_no_answer)
{
	expect_nonsense("+OK\r\n");
	expect_nonsense("$-1\r\n");
	expect_nonsense(":1\r\n");
	expect_nonsense("*0\r\n");
	expect_nonsense("*-1\r\n");
	expect_nonsense("*9\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n");
	expect_nonsense("*9\r\n$4\r\nWHAT\r\n" DIGEST MEMBERS OWNERS CLOCK LEFT CLAIMED ALLOWED);
	expect_nonsense("*9\r\n$4\r\nDONE\r\n$1\r\nx\r\n" MEMBERS OWNERS CLOCK LEFT CLAIMED ALLOWED);
	ck_assert_ptr_nonnull(strstr(error, "device:owners"));
	expect_nonsense("*9\r\n$4\r\nDONE\r\n" DIGEST MEMBERS OWNERS "$2\r\n9x\r\n" LEFT CLAIMED ALLOWED);
	expect_nonsense("*9\r\n$4\r\nDONE\r\n" DIGEST MEMBERS OWNERS CLOCK "*-1\r\n" CLAIMED ALLOWED);
	expect_nonsense("-OOM command not allowed\r\n");
	ck_assert_ptr_nonnull(strstr(error, "maxmemory"));
	expect_nonsense("-WRONGTYPE device:nodes is not a hash\r\n");
	ck_assert_ptr_nonnull(strstr(error, "device:nodes"));
	ck_assert_str_eq(cluster.digest, "");
}
END_TEST

/* Invalid entries are counted, and the others are read. */
START_TEST(odd_entries)
{
	static const char odd[] =
		"*9\r\n$4\r\nGONE\r\n" DIGEST
		"*6\r\n$1\r\na\r\n$2\r\n{}\r\n$3\r\na b\r\n$20\r\n0000000000000010 7 {\r\n"
		"$1\r\nb\r\n$20\r\n0000000000000010 7 {\r\n"
		"*8\r\n$3\r\n256\r\n$3\r\n7 b\r\n$1\r\n1\r\n$3\r\n7 c\r\n$1\r\n2\r\n*-1\r\n$1\r\n9\r\n$7\r\n86500 "
		"c\r\n" CLOCK "*4\r\n$3\r\na b\r\n$1\r\n9\r\n$1\r\nd\r\n$1\r\n9\r\n*-1\r\n$-1\r\n" ALLOWED;
	ck_assert_int_eq(take(odd, sizeof(odd) - 1), 0);
	ck_assert_int_eq(answer.nodes.result, HW_NODES_GONE);
	ck_assert_uint_eq(answer.nodes.n_members, 1);
	ck_assert_str_eq(answer.members[0].node == answer.nodes.members[0].node ? "same" : "", "same");
	ck_assert_uint_eq(answer.unusable, 5);
	ck_assert_uint_eq(answer.impossible, 1);
	ck_assert_uint_eq(answer.owners[9].token.epoch, 0);
	ck_assert_uint_eq(answer.nodes.n_left, 1);
	ck_assert_str_eq(answer.owners[1].token.node, "c");
	ck_assert(!hw_partitions_any(&answer.nodes.won) && answer.nodes.last.ms == 0);
}
END_TEST

/* A member's object that nests deeper than any node writes is none, and the others are read. */
START_TEST(an_object_that_nests_too_deep)
{
	char bytes[512], nested[128];
	int deep = snprintf(nested, sizeof(nested), "0000000000000010 7 {\"name\":%s1%s}",
	                    "{\"a\":{\"a\":{\"a\":{\"a\":{"
	                    "\"a\":{\"a\":{\"a\":{\"a\":",
	                    "}}}}}}}}");
	int len = snprintf(bytes, sizeof(bytes),
	                   "*9\r\n$4\r\nDONE\r\n" DIGEST "*4\r\n$1\r\na\r\n$%d\r\n%s\r\n"
	                   "$1\r\nb\r\n$21\r\n0000000000000010 7 {}\r\n*-1\r\n" CLOCK "*0\r\n*-1\r\n*-1\r\n" ALLOWED,
	                   deep, nested);
	ck_assert_int_eq(take(bytes, (size_t)len), 0);
	ck_assert_uint_eq(answer.nodes.n_members, 1);
	ck_assert_uint_eq(answer.unusable, 1);
}
END_TEST

START_TEST(more_members_than_there_is_room_for)
{
	char bytes[8192];
	int len = snprintf(bytes, sizeof(bytes), "*9\r\n$4\r\nDONE\r\n" DIGEST "*%d\r\n", 2 * (HW_CLUSTER_ENTRIES + 3));
	for (int i = 0; i < HW_CLUSTER_ENTRIES + 3; i++)
		len += snprintf(bytes + len, sizeof(bytes) - (size_t)len,
		                "$3\r\n%03d\r\n$21\r\n0000000000000010 7 {}\r\n", i);
	len += snprintf(bytes + len, sizeof(bytes) - (size_t)len, "*-1\r\n" CLOCK "*0\r\n*-1\r\n*-1\r\n" ALLOWED);
	ck_assert_int_eq(take(bytes, (size_t)len), 0);
	ck_assert_uint_eq(answer.nodes.n_members, HW_CLUSTER_ENTRIES);
	ck_assert_uint_eq(answer.unusable, 3);
	ck_assert_ptr_null(answer.nodes.owners);
}
END_TEST

/* Of a list that is said to be longer than anybody sends, src/link/guard.c would not let it make room. */
static bool has_long_list(const char *bytes)
{
	for (const char *at = bytes; (at = strchr(at, '*')); at++)
		if (strspn(at + 1, "0123456789") > 3)
			return true;
	return false;
}

/* Any bytes: nothing is read beyond them, and what comes out is within its bounds. */
START_TEST(bytes_that_are_changed_at_random)
{
	static const char likely[] = "*$:-+0123456789\r\n {}~ab";
	char bytes[sizeof(sound)];
	const unsigned rounds = getenv("HW_FEW_ROUNDS") ? 250 : 5000;
	unsigned whole = 0;
	random_begin(random_seed_of_now());
	for (unsigned k = 0; k < rounds; k++) {
		memcpy(bytes, sound, sizeof(sound));
		for (unsigned n = 1 + (unsigned)(random64() % 3); n > 0; n--)
			bytes[random64() % (sizeof(sound) - 1)] = likely[random64() % (sizeof(likely) - 1)];
		if (has_long_list(bytes))
			continue;
		order.kind = random64() % 2 ? HW_NODES_CLAIM : HW_NODES_RENEW;
		int rc = take(bytes, sizeof(sound) - 1);
		whole += rc == 0;
		if (rc != 0)
			continue;
		ck_assert_uint_le(answer.nodes.n_members, 2);
		ck_assert_uint_eq(answer.nodes.won.bits[0] & ~order.set.bits[0], 0);
		for (unsigned p = 0; p < HW_PARTITIONS; p++)
			ck_assert_uint_le(answer.owners[p].token.epoch, UINT64_MAX / 2);
	}
	ck_assert_uint_gt(whole, rounds / 50);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cluster");
	TCase *one = tcase_create("answers");
	tcase_set_timeout(one, 60);
	tcase_add_checked_fixture(one, set_up, tear_down);
	tcase_add_test(one, records);
	tcase_add_test(one, what_is_no_record);
	tcase_add_test(one, a_sound_answer);
	tcase_add_test(one, a_denied_write);
	tcase_add_test(one, what_is_no_answer);
	tcase_add_test(one, odd_entries);
	tcase_add_test(one, an_object_that_nests_too_deep);
	tcase_add_test(one, more_members_than_there_is_room_for);
	tcase_add_test(one, bytes_that_are_changed_at_random);
	suite_add_tcase(suite, one);
	return suite_run(suite);
}

/* SPDX-License-Identifier: MIT */
/* What nodes say of themselves over the broker, written and read; and what others say there, which says nothing here.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../suite.h"
#include "daemon/cluster/peers.h"
#include "heartwheel/payload.h"

#define LONG "heartwheel/12345678901234567890123456789012345678901234567890123456789012345/status"

static enum hw_peer_topic topic(const char *text, char *node)
{
	node[0] = '\0';
	return hw_peer_topic(text, strlen(text), node);
}

START_TEST(topics)
{
	static const char *const none[] = {"",
	                                   "heartwheel",
	                                   "heartwheel/",
	                                   "heartwheel/status",
	                                   "heartwheel//status",
	                                   "heartwheel/a/barrier",
	                                   "heartwheel/a/b/status",
	                                   "heartwheel/a/statu",
	                                   "heartwheel/a/statuses",
	                                   "heartwheel/a b/status",
	                                   "nodes/heartwheel/a/status",
	                                   LONG};
	char node[HW_NODE_ID_MAX + 1];
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		ck_assert_msg(topic(none[i], node) == HW_PEER_NONE, "%s", none[i]);
	ck_assert_int_eq(topic("heartwheel/node-1/status", node), HW_PEER_STATUS);
	ck_assert_str_eq(node, "node-1");
	ck_assert_int_eq(topic("heartwheel/known/known", node), HW_PEER_KNOWN);
	ck_assert_str_eq(node, "known");
	ck_assert_int_eq(hw_peer_topic("heartwheel/a/statusx", 19, node), HW_PEER_STATUS); /* no NUL behind it */
}
END_TEST

static uint64_t claims[HW_PARTITIONS], seq;

static int read_claims(const char *text)
{
	memset(claims, 0xff, sizeof(claims));
	return hw_peer_claims(text, strlen(text), "fleet", claims, &seq);
}

static unsigned claimed(void)
{
	unsigned n = 0;
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		n += claims[p] != 0;
	return n;
}

START_TEST(presences)
{
	ck_assert_int_eq(read_claims("{\"online\":true,\"seq\":7,\"cluster\":\"fleet\",\"claims\":\"0-84:17,90:18\"}"),
	                 0);
	ck_assert_uint_eq(seq, 7);
	ck_assert_uint_eq(claimed(), 86);
	ck_assert(claims[84] == 17 && claims[90] == 18);
	static const char *const nothing[] = {
		"",
		"{}",
		"{\"online\":false,\"cluster\":\"fleet\",\"claims\":\"0-84:17\"}",
		"{\"online\":true,\"cluster\":\"other\",\"claims\":\"0-84:17\"}",
		"{\"online\":true,\"claims\":\"0-84:17\"}",
		"{\"online\":true,\"cluster\":\"fleet\"}",
		"{\"online\":true,\"cluster\":\"fleet\",\"claims\":\"\"}",
	};
	for (size_t i = 0; i < sizeof(nothing) / sizeof(nothing[0]); i++)
		ck_assert_msg(read_claims(nothing[i]) == 0 && claimed() == 0, "%s", nothing[i]);
	static const char *const wrong[] = {"offline", "[]", "{\"online\":true",
	                                    "{\"online\":true,\"cluster\":\"fleet\",\"claims\":\"84-0:17\"}"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ck_assert_msg(read_claims(wrong[i]) == -EINVAL, "%s", wrong[i]);
}
END_TEST

/* A message between nodes must not be a device's heartbeat, whatever filter matches its topic. */
static bool is_monitors(const char *text)
{
	struct hw_payload p;
	hw_payload_decode(&p, text, strlen(text));
	bool is = p.kind == HW_PAYLOAD_MONITOR;
	hw_payload_fini(&p);
	return is;
}

START_TEST(in_the_place_of_another)
{
	char text[1024];
	int len = hw_peer_print_offline("fleet", "a\"b", "me", 1700000000123, text, sizeof(text));
	ck_assert_int_eq(len, (int)strlen(text));
	ck_assert_int_eq(read_claims(text), 0);
	ck_assert_uint_eq(claimed(), 0);
	ck_assert_uint_eq(seq, 1700000000123);
	ck_assert_ptr_nonnull(strstr(text, "\"online\":false"));
	ck_assert_ptr_nonnull(strstr(text, "\"by\":\"a\\\"b\""));
	ck_assert_ptr_nonnull(strstr(text, "\"evicted_by\":\"me\""));
	ck_assert(is_monitors(text));
	ck_assert_int_eq(hw_peer_print_offline("fleet", "a", "me", 1, text, (size_t)len / 2), -1);
}
END_TEST

/* All that can be: a token of its own for each partition, of nodes with the longest names. */
START_TEST(what_is_known)
{
	static struct hw_fencing_token known[HW_PARTITIONS], back[HW_PARTITIONS];
	static char text[HW_PEER_KNOWN_MAX];
	for (unsigned p = 0; p < HW_PARTITIONS; p++) {
		known[p].epoch = UINT64_MAX / 2 - p;
		memset(known[p].node, p % 2 ? 'x' : '"', HW_NODE_ID_MAX);
	}
	int len = hw_peer_print_known("fleet", "me", 9, known, text, sizeof(text));
	ck_assert_int_eq(len, (int)strlen(text));
	ck_assert_int_lt(len, 65536);
	ck_assert(is_monitors(text));
	ck_assert_int_eq(hw_peer_known(text, (size_t)len, "fleet", back, &seq), 0);
	ck_assert_uint_eq(seq, 9);
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		ck_assert_int_eq(hw_fencing_token_compare(&known[p], &back[p]), 0);
	ck_assert_int_eq(hw_peer_known(text, (size_t)len, "other", back, &seq), 0);
	ck_assert_uint_eq(back[0].epoch, 0);
	ck_assert_int_eq(hw_peer_known("", 0, "fleet", back, &seq), 0);
	ck_assert_uint_eq(back[0].epoch, 0);
	ck_assert_int_eq(hw_peer_known(text, (size_t)len - 1, "fleet", back, &seq), -EINVAL);
	ck_assert_int_eq(hw_peer_print_known("fleet", "me", 9, known, text, (size_t)len), -1);
	ck_assert_int_eq(hw_peer_print_known("fleet", "me", 9, known, text, (size_t)len + 1), len);
}
END_TEST

/* A payload has no NUL, and the byte behind it may be on no page. */
START_TEST(nothing_is_read_behind_a_payload)
{
	static const char *const texts[] = {"{\"online\":true,",
	                                    "{\"known\":\"\", \n",
	                                    "{\"a\":1",
	                                    "{\"a",
	                                    "{\"a\\",
	                                    "{\"a\\u12",
	                                    "{",
	                                    "[1,",
	                                    "1,",
	                                    "1",
	                                    "-",
	                                    "tru",
	                                    "\"",
	                                    "\xef\xbb",
	                                    "\xef\xbb\xbf",
	                                    " ",
	                                    ",",
	                                    ",,"};
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct hw_fencing_token known[HW_PARTITIONS];
	ck_assert(pages != MAP_FAILED && mprotect(pages + page, page, PROT_NONE) == 0);
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		size_t len = strlen(texts[i]);
		char *at = pages + page - len;
		memcpy(at, texts[i], len);
		ck_assert_int_eq(hw_peer_claims(at, len, "fleet", claims, &seq), -EINVAL);
		ck_assert_int_eq(hw_peer_known(at, len, "fleet", known, &seq), -EINVAL);
	}
	munmap(pages, 2 * page);
}
END_TEST

static bool of_another(const char *payload)
{
	return hw_peer_is_of_another(payload, strlen(payload), "fleet");
}

/* Only a payload that names this cluster, or that is no object, counts as a stranger's. */
START_TEST(presences_of_other_fleets)
{
	ck_assert(of_another("{\"cluster\":\"fleet2\",\"online\":true,\"claims\":\"0-255:1\"}"));
	ck_assert(of_another("{\"online\":true}"));
	ck_assert(of_another("{\"cluster\":1}"));
	ck_assert(!of_another("{\"cluster\":\"fleet\",\"online\":true,\"claims\":\"0-255:1\"}"));
	ck_assert(!of_another("[]"));
	ck_assert(!of_another("x"));
	ck_assert(!of_another(""));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("peers");
	TCase *t = tcase_create("all");
	tcase_add_test(t, topics);
	tcase_add_test(t, presences);
	tcase_add_test(t, in_the_place_of_another);
	tcase_add_test(t, what_is_known);
	tcase_add_test(t, presences_of_other_fleets);
	tcase_add_test(t, nothing_is_read_behind_a_payload);
	suite_add_tcase(s, t);
	return suite_run(s);
}

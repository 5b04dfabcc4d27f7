/* SPDX-License-Identifier: MIT */
/* Lists of servers, what Sentinels say, and what follows from it. */
#include <check.h>
#include <hiredis/hiredis.h>
#include <string.h>

#include "../suite.h"
#include "conf/hosts.h"
#include "link/sentinel.h"

static struct hw_host host(const char *name, int port)
{
	struct hw_host h = {.port = port};
	memcpy(h.name, name, strlen(name) + 1);
	return h;
}

static void expect_host(const struct hw_host *h, const char *text)
{
	char buf[HW_HOST_TEXT];
	ck_assert_str_eq(hw_host_text(h, buf), text);
}

/* --- lists ------------------------------------------------------------------------------------------------------- */

START_TEST(a_list_is_read)
{
	struct hw_hosts h;
	char why[160];
	ck_assert_int_eq(hw_hosts_parse(&h, " a.example:26379 ,[::1]:1,10.0.0.1:65535", why, sizeof(why)), 0);
	ck_assert_uint_eq(h.n, 3);
	expect_host(&h.at[0], "a.example:26379");
	expect_host(&h.at[1], "[::1]:1");
	ck_assert_str_eq(h.at[1].name, "::1");
	expect_host(&h.at[2], "10.0.0.1:65535");
}
END_TEST

START_TEST(a_bad_list_says_where)
{
	static const char *const bad[] = {"",        "a",    "a:",   "a:0",     "a:65536",   "a:123456",
	                                  "a:1,",    ",a:1", ":1",   "a:1 b:2", "::1:26379", "[]:1",
	                                  "a:x1",    "a:1x", "a:-1", "a/b:1",   "[a:1",      "a]:1",
	                                  "a:1;b:2", "a: 1", "a :1", "a:1,,b:1"};
	struct hw_hosts h;
	char why[160];
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		*why = '\0';
		ck_assert_msg(hw_hosts_parse(&h, bad[i], why, sizeof(why)) != 0, "%s", bad[i]);
		ck_assert_msg(strstr(why, "is not host:port"), "%s: %s", bad[i], why);
	}
	ck_assert_int_ne(hw_hosts_parse(&h, "a:1, b:1, A:1", why, sizeof(why)), 0);
	ck_assert_str_eq(why, "'A:1' is listed twice: remove one");
}
END_TEST

START_TEST(a_list_is_bounded)
{
	struct hw_hosts h;
	char text[512] = "", why[160];
	for (int i = 1; i <= HW_HOSTS_MAX; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%sh:%d", i > 1 ? "," : "", i);
	ck_assert_int_eq(hw_hosts_parse(&h, text, why, sizeof(why)), 0);
	ck_assert_uint_eq(h.n, HW_HOSTS_MAX);
	strcat(text, ",h:99");
	ck_assert_int_ne(hw_hosts_parse(&h, text, why, sizeof(why)), 0);
	ck_assert_ptr_nonnull(strstr(why, "more than 16"));
}
END_TEST

START_TEST(a_name_is_bounded)
{
	struct hw_host h;
	char name[HW_HOST_NAME_MAX + 1];
	memset(name, 'n', sizeof(name));
	ck_assert(hw_host_set(&h, name, HW_HOST_NAME_MAX, "1", 1));
	ck_assert_uint_eq(strlen(h.name), HW_HOST_NAME_MAX);
	ck_assert(!hw_host_set(&h, name, HW_HOST_NAME_MAX + 1, "1", 1));
}
END_TEST

/* --- answers ----------------------------------------------------------------------------------------------------- */

static redisReply *reply_of(const char *wire)
{
	redisReader *r = redisReaderCreate();
	void *reply = NULL;
	ck_assert_int_eq(redisReaderFeed(r, wire, strlen(wire)), REDIS_OK);
	ck_assert_int_eq(redisReaderGetReply(r, &reply), REDIS_OK);
	ck_assert_ptr_nonnull(reply);
	redisReaderFree(r);
	return reply;
}

static enum hw_sentinel_answer read_master(const char *wire, struct hw_host *h)
{
	redisReply *reply = reply_of(wire);
	enum hw_sentinel_answer a = hw_sentinel_read_master(reply, h);
	freeReplyObject(reply);
	return a;
}

START_TEST(an_answer_names_the_master)
{
	struct hw_host h;
	ck_assert_int_eq(read_master("*2\r\n$9\r\n127.0.0.1\r\n$4\r\n6380\r\n", &h), HW_SENTINEL_NAMED);
	expect_host(&h, "127.0.0.1:6380");
	ck_assert_int_eq(read_master("*2\r\n$3\r\n::2\r\n$4\r\n6380\r\n", &h), HW_SENTINEL_NAMED);
	expect_host(&h, "[::2]:6380");
}
END_TEST

START_TEST(other_answers_name_none)
{
	static const char *const strange[] = {"+OK\r\n",
	                                      ":1\r\n",
	                                      "*0\r\n",
	                                      "*1\r\n$1\r\na\r\n",
	                                      "*3\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\n1\r\n",
	                                      "*2\r\n$1\r\na\r\n:6379\r\n",
	                                      "*2\r\n$-1\r\n$1\r\n1\r\n",
	                                      "*2\r\n$0\r\n\r\n$1\r\n1\r\n",
	                                      "*2\r\n$1\r\na\r\n$5\r\n65536\r\n",
	                                      "-ERR unknown command 'SENTINEL'\r\n"};
	struct hw_host h;
	ck_assert_int_eq(read_master("*-1\r\n", &h), HW_SENTINEL_UNKNOWN);
	ck_assert_int_eq(read_master("$-1\r\n", &h), HW_SENTINEL_UNKNOWN);
	ck_assert_int_eq(read_master("-NOAUTH Authentication required.\r\n", &h), HW_SENTINEL_PASSWORD);
	ck_assert_int_eq(read_master("-NOPERM this user has no permissions\r\n", &h), HW_SENTINEL_PASSWORD);
	for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++)
		ck_assert_msg(read_master(strange[i], &h) == HW_SENTINEL_STRANGE, "%s", strange[i]);
}
END_TEST

static bool is_master(const char *wire)
{
	redisReply *reply = reply_of(wire);
	bool is = hw_sentinel_read_role(reply);
	freeReplyObject(reply);
	return is;
}

static int64_t number(const char *wire, const char *key)
{
	redisReply *reply = reply_of(wire);
	int64_t n = hw_sentinel_read_number(reply, key);
	freeReplyObject(reply);
	return n;
}

START_TEST(a_number_is_read)
{
	ck_assert_int_eq(number("*4\r\n$1\r\na\r\n$1\r\n7\r\n$1\r\nb\r\n$2\r\n10\r\n", "b"), 10);
	ck_assert_int_eq(number("*4\r\n$1\r\na\r\n$1\r\n7\r\n$1\r\nb\r\n$2\r\n10\r\n", "c"), -1);
	ck_assert_int_eq(number("*3\r\n$1\r\na\r\n$1\r\n7\r\n$1\r\nb\r\n", "b"), -1);
	ck_assert_int_eq(number("*2\r\n$1\r\nb\r\n$2\r\n1x\r\n", "b"), -1);
	ck_assert_int_eq(number("*2\r\n$1\r\nb\r\n$0\r\n\r\n", "b"), -1);
	ck_assert_int_eq(number("*2\r\n$1\r\nb\r\n$2\r\n-1\r\n", "b"), -1);
	ck_assert_int_eq(number("*2\r\n$1\r\nb\r\n:1\r\n", "b"), -1);
	ck_assert_int_eq(number("-NOPERM it may not\r\n", "b"), -1);
}
END_TEST

START_TEST(a_role_says_master)
{
	ck_assert(is_master("*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"));
	ck_assert(!is_master("*5\r\n$5\r\nslave\r\n$1\r\na\r\n:1\r\n$9\r\nconnected\r\n:0\r\n"));
	ck_assert(!is_master("*2\r\n$8\r\nsentinel\r\n*0\r\n"));
	ck_assert(!is_master("*0\r\n"));
	ck_assert(!is_master("*1\r\n:1\r\n"));
	ck_assert(!is_master("$6\r\nmaster\r\n"));
}
END_TEST

START_TEST(a_switch_is_of_one_name)
{
	struct hw_host h;
	ck_assert(hw_sentinel_read_switch("mine 10.0.0.1 6379 10.0.0.2 6380", "mine", &h));
	expect_host(&h, "10.0.0.2:6380");
	ck_assert(!hw_sentinel_read_switch("mine2 10.0.0.1 6379 10.0.0.2 6380", "mine", &h));
	ck_assert(!hw_sentinel_read_switch("mine 10.0.0.1 6379 10.0.0.2 6380", "mine2", &h));
	ck_assert(!hw_sentinel_read_switch("mine 10.0.0.1 6379 10.0.0.2", "mine", &h));
	ck_assert(!hw_sentinel_read_switch("mine 10.0.0.1 6379 10.0.0.2 x", "mine", &h));
	ck_assert(!hw_sentinel_read_switch("", "mine", &h));
}
END_TEST

START_TEST(what_is_wrong_is_said_with_what_to_do)
{
	static const char *const says[] = {[HW_SENTINEL_UNKNOWN] = "knows no master 'mine': see [redis] master",
	                                   [HW_SENTINEL_PASSWORD] = "needs a password",
	                                   [HW_SENTINEL_STRANGE] = "(de tail): see [redis] sentinels",
	                                   [HW_SENTINEL_AWAY] = "cannot ask the Sentinel at [::1]:7: de tail; see",
	                                   [HW_SENTINEL_LOST] = "lost the Sentinel at [::1]:7: de tail"};
	const struct hw_host at = host("::1", 7);
	char why[HW_SENTINEL_WHY];
	for (unsigned i = HW_SENTINEL_UNKNOWN; i <= HW_SENTINEL_LOST; i++) {
		hw_sentinel_why(i, &at, "mine", "de\ntail", why);
		ck_assert_msg(strstr(why, says[i]) && strstr(why, "[::1]:7"), "%s", why);
	}
}
END_TEST

/* --- whom to ask, and whom to believe ---------------------------------------------------------------------------- */

START_TEST(a_round_asks_each_once_and_goes_on)
{
	struct hw_sentinel_round r = {.n = 3};
	ck_assert_int_eq(hw_sentinel_round_next(&r), -1);
	hw_sentinel_round_begin(&r);
	ck_assert_int_eq(hw_sentinel_round_next(&r), 0);
	ck_assert_int_eq(hw_sentinel_round_next(&r), 1);
	hw_sentinel_round_begin(&r);
	ck_assert_int_eq(hw_sentinel_round_next(&r), 2);
	ck_assert_int_eq(hw_sentinel_round_next(&r), 0);
	ck_assert_int_eq(hw_sentinel_round_next(&r), 1);
	ck_assert_int_eq(hw_sentinel_round_next(&r), -1);
}
END_TEST

START_TEST(a_master_in_use_is_left_at_the_word_of_two)
{
	const struct hw_host a = host("a", 1), b = host("b", 1), c = host("c", 1);
	struct hw_sentinel_view v = {0};
	ck_assert(hw_sentinel_view_named(&v, &a, 3, true));
	ck_assert(!hw_sentinel_view_named(&v, &a, 3, false));
	ck_assert(!hw_sentinel_view_named(&v, &b, 3, false));
	ck_assert(!hw_sentinel_view_named(&v, &a, 3, false)); /* b is one that was cut off */
	ck_assert(!hw_sentinel_view_named(&v, &b, 3, false));
	ck_assert(!hw_sentinel_view_named(&v, &c, 3, false)); /* not two of one mind */
	ck_assert(hw_sentinel_view_named(&v, &c, 3, false));
	ck_assert(hw_host_equal(&v.in_use, &c));
	ck_assert(!hw_sentinel_view_named(&v, &c, 3, false));
}
END_TEST

START_TEST(a_single_sentinel_is_believed)
{
	const struct hw_host a = host("a", 1), b = host("a", 2);
	struct hw_sentinel_view v = {0};
	ck_assert(hw_sentinel_view_named(&v, &a, 1, true));
	ck_assert(hw_sentinel_view_named(&v, &b, 1, false));
}
END_TEST

START_TEST(without_a_master_anyone_is_believed)
{
	const struct hw_host a = host("a", 1), b = host("b", 1);
	struct hw_sentinel_view v = {0};
	ck_assert(hw_sentinel_view_named(&v, &a, 3, true));
	ck_assert(hw_sentinel_view_named(&v, &a, 3, true)); /* it was lost: to be tried again */
	ck_assert(hw_sentinel_view_named(&v, &b, 3, true));
	ck_assert(!hw_sentinel_view_named(&v, &b, 3, false));
}
END_TEST

START_TEST(a_switch_is_news_once)
{
	const struct hw_host a = host("a", 1), b = host("b", 1);
	struct hw_sentinel_view v = {0};
	hw_sentinel_view_named(&v, &a, 3, true);
	hw_sentinel_view_named(&v, &b, 3, false);
	ck_assert(hw_sentinel_view_switched(&v, &b));
	ck_assert(!hw_sentinel_view_switched(&v, &b));
	ck_assert(!hw_sentinel_view_named(&v, &a, 3, false)); /* one that does not know yet */
	ck_assert(!hw_sentinel_view_named(&v, &b, 3, false));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sentinel");
	TCase *t = tcase_create("all");
	tcase_add_test(t, a_list_is_read);
	tcase_add_test(t, a_bad_list_says_where);
	tcase_add_test(t, a_list_is_bounded);
	tcase_add_test(t, a_name_is_bounded);
	tcase_add_test(t, an_answer_names_the_master);
	tcase_add_test(t, other_answers_name_none);
	tcase_add_test(t, a_number_is_read);
	tcase_add_test(t, a_role_says_master);
	tcase_add_test(t, a_switch_is_of_one_name);
	tcase_add_test(t, what_is_wrong_is_said_with_what_to_do);
	tcase_add_test(t, a_round_asks_each_once_and_goes_on);
	tcase_add_test(t, a_master_in_use_is_left_at_the_word_of_two);
	tcase_add_test(t, a_single_sentinel_is_believed);
	tcase_add_test(t, without_a_master_anyone_is_believed);
	tcase_add_test(t, a_switch_is_news_once);
	suite_add_tcase(s, t);
	return suite_run(s);
}

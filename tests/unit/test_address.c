/* SPDX-License-Identifier: MIT */
/* The address of Redis: from the section of the configuration to the text that is shown. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "../suite.h"
#include "link/address.h"

static char host[] = "redis.example", six[] = "::1", path[] = "/run/r.sock", user[] = "me", none[] = "",
	    list[] = "s:1, t:2", name[] = "mine";

static void expect_text(const struct hw_conf_redis *c, const char *text, const char *keys)
{
	struct hw_redis_address a = hw_redis_address_of(c, NULL);
	char buf[512];
	hw_redis_address_text(&a, buf, sizeof(buf));
	ck_assert_str_eq(buf, text);
	ck_assert_str_eq(hw_redis_address_keys(&a), keys);
	ck_assert_str_eq(a.password, "");
}

START_TEST(an_address_is_shown_as_it_is_configured)
{
	struct hw_conf_redis c = {.host = host, .port = 6379, .unix_socket = none, .username = none};
	expect_text(&c, "redis.example:6379", "host, port");
	c.host = six;
	expect_text(&c, "[::1]:6379", "host, port");
	c.unix_socket = path;
	expect_text(&c, "/run/r.sock", "unix_socket");
}
END_TEST

START_TEST(a_master_that_is_asked_for_is_shown_by_its_name)
{
	struct hw_conf_redis c = {.host = host, .port = 1, .unix_socket = none, .username = none};
	struct hw_redis_address a = hw_redis_address_of(&c, NULL), copy;
	ck_assert(!hw_redis_address_is_asked_for(&a));
	c.sentinels = none;
	c.master = none;
	expect_text(&c, "redis.example:1", "host, port");
	c.sentinels = list;
	c.master = name;
	expect_text(&c, "the master mine", "sentinels, master");
	a = hw_redis_address_of(&c, NULL);
	ck_assert(hw_redis_address_is_asked_for(&a));
	ck_assert_int_eq(hw_redis_address_copy(&copy, &a), 0);
	ck_assert(copy.sentinels != a.sentinels && copy.master != a.master);
	ck_assert_str_eq(copy.sentinels, "s:1, t:2");
	ck_assert_str_eq(copy.master, "mine");
	hw_redis_address_fini(&copy);
}
END_TEST

START_TEST(keys_events_are_of_the_database)
{
	struct hw_conf_redis c = {.host = host, .port = 1, .unix_socket = none, .db = 15, .username = none};
	struct hw_redis_address a = hw_redis_address_of(&c, NULL);
	char buf[64];
	hw_redis_address_keyevents(&a, buf, sizeof(buf));
	ck_assert_str_eq(buf, "__keyevent@15__:");
}
END_TEST

START_TEST(a_copy_stands_by_itself)
{
	struct hw_conf_redis c = {.host = host, .port = 7, .unix_socket = path, .db = 3, .username = user};
	char secret[] = "pass";
	struct hw_redis_address a = hw_redis_address_of(&c, secret), copy;
	ck_assert_int_eq(hw_redis_address_copy(&copy, &a), 0);
	memset(secret, 'x', 4);
	ck_assert_str_eq(copy.password, "pass");
	ck_assert_str_eq(copy.username, "me");
	ck_assert_str_eq(copy.host, "redis.example");
	ck_assert_str_eq(copy.unix_socket, "/run/r.sock");
	ck_assert_int_eq(copy.port, 7);
	ck_assert_int_eq(copy.db, 3);
	hw_redis_address_fini(&copy);
	ck_assert_ptr_null(copy.host);
	hw_redis_address_fini(&copy);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("address");
	TCase *t = tcase_create("all");
	tcase_add_test(t, an_address_is_shown_as_it_is_configured);
	tcase_add_test(t, a_master_that_is_asked_for_is_shown_by_its_name);
	tcase_add_test(t, keys_events_are_of_the_database);
	tcase_add_test(t, a_copy_stands_by_itself);
	suite_add_tcase(s, t);
	return suite_run(s);
}

/* SPDX-License-Identifier: MIT */
/* The file of users, the owner of each token, and addresses that guess. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../suite.h"
#include "conf/conf.h"
#include "http/accounts.h"
#include "http/attempts.h"

/* SHA-256 of "alpha" and "beta", by another program. */
#define ALPHA "8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8"
#define BETA  "f44e64e75f3948e9f73f8dfa94721c4ce8cbb4f265c4790c702b2d41cfbf2753"

static char path[] = "/tmp/hw-accounts.XXXXXX";
static char told[1024];
static unsigned n_reported, last_line;
static char last_reported[64];

static void on_wrong(void *arg, unsigned line, const char *what)
{
	size_t n = strlen(told);
	(void)arg;
	snprintf(told + n, sizeof(told) - n, "%u: %.20s\n", line, what);
	n_reported++;
	last_line = line;
	snprintf(last_reported, sizeof(last_reported), "%s", what);
}

static int load(struct hw_accounts *a, const char *text)
{
	int fd = mkstemp(memcpy(path, "/tmp/hw-accounts.XXXXXX", sizeof(path)));
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	told[0] = '\0';
	n_reported = 0;
	int rc = hw_accounts_load(a, path, on_wrong, NULL);
	unlink(path);
	return rc;
}

START_TEST(test_whose_token)
{
	struct hw_accounts a;
	ck_assert_int_eq(load(&a, "# users\n\notto:operate:" ALPHA "\r\nrita:read:" BETA ":1700000000"), 0);
	ck_assert_uint_eq(a.n, 2);
	const struct hw_account *otto = hw_accounts_find(&a, NULL, 0, "alpha", 5);
	ck_assert_ptr_nonnull(otto);
	ck_assert_str_eq(otto->name, "otto");
	ck_assert_int_eq(otto->role, HW_USER_ROLE_OPERATE);
	ck_assert_int_eq(otto->expires_s, 0);
	const struct hw_account *rita = hw_accounts_find(&a, "rita", 4, "beta", 4);
	ck_assert_ptr_nonnull(rita);
	ck_assert_int_eq(rita->role, HW_USER_ROLE_READ);
	ck_assert_int_eq(rita->expires_s, 1700000000);
	ck_assert_ptr_null(hw_accounts_find(&a, "otto", 4, "beta", 4));
	ck_assert_ptr_null(hw_accounts_find(&a, "rit", 3, "beta", 4));
	ck_assert_ptr_null(hw_accounts_find(&a, NULL, 0, "alph", 4));
	ck_assert_ptr_null(hw_accounts_find(&a, NULL, 0, "", 0));
	hw_accounts_fini(&a);
}
END_TEST

START_TEST(test_every_wrong_line_is_told)
{
	struct hw_accounts a;
	ck_assert_int_eq(load(&a, "otto:operate:" ALPHA "\notto:read:" BETA "\nx:read:" ALPHA "\ny:root:" BETA
	                          "\nz:read:12\n"
	                          "a b:read:" BETA "\nw:read:" BETA ":soon\nv:read:" BETA ":1:2\nonly\n"),
	                 -EINVAL);
	ck_assert_str_eq(
		told,
		"2: an earlier line has \n3: an earlier user has \n4: a role must be 'read\n5: SHA256 must be 64 he\n"
		"6: a name must be 1 to \n7: EXPIRES must be a ti\n8: a line must be NAME:\n9: a line must be NAME:\n");
	ck_assert_uint_eq(a.n, 0);
	ck_assert_int_eq(hw_accounts_load(&a, "/nonexistent/users", on_wrong, NULL), -ENOENT);
	ck_assert_int_eq(hw_accounts_load(&a, "/dev/null", on_wrong, NULL), -EMEDIUMTYPE);
	ck_assert_int_eq(hw_accounts_load(&a, "/tmp", on_wrong, NULL), -EISDIR);
}
END_TEST

static char *repeat(char *at, const char *line, unsigned n)
{
	while (n-- > 0)
		at = stpcpy(at, line);
	return at;
}

START_TEST(test_very_many_wrong_lines_are_counted)
{
	struct hw_accounts a;
	char *text = malloc(2 * HW_CONF_ERRORS_MAX + 64);
	repeat(text, "x\n", HW_CONF_ERRORS_MAX);
	ck_assert_int_eq(load(&a, text), -EINVAL);
	ck_assert_uint_eq(n_reported, HW_CONF_ERRORS_MAX);
	ck_assert_uint_eq(last_line, HW_CONF_ERRORS_MAX);
	repeat(repeat(text, "x\n", HW_CONF_ERRORS_MAX), "y\n", 23);
	ck_assert_int_eq(load(&a, text), -EINVAL);
	ck_assert_uint_eq(n_reported, HW_CONF_ERRORS_MAX + 1);
	ck_assert_uint_eq(last_line, 0);
	ck_assert_str_eq(last_reported, "23 more errors; is it the right file?");
	free(text);
}
END_TEST

/* A search of all earlier users for each line needs 1.5 thousand million comparisons: some 10 s. */
START_TEST(test_a_long_file_of_repeated_lines)
{
	enum { SAME = 150000 };
	struct hw_accounts a;
	char line[128], *text = malloc((HW_ACCOUNTS_MAX + (size_t)SAME) * sizeof(line)), *at = text;
	for (unsigned i = 1; i < HW_ACCOUNTS_MAX; i++) {
		snprintf(line, sizeof(line), "u%u:read:%064x\n", i, i);
		at = stpcpy(at, line);
	}
	ck_assert_int_eq(load(&a, text), 0);
	ck_assert_uint_eq(a.n, HW_ACCOUNTS_MAX - 1);
	hw_accounts_fini(&a);
	repeat(at, line, SAME);
	ck_assert_int_eq(load(&a, text), -EINVAL);
	ck_assert_str_eq(last_reported, "149000 more errors; is it the right file?");
	free(text);
}
END_TEST

START_TEST(test_many_users)
{
	struct hw_accounts a;
	char *text = malloc(1000 * 100), *at = text, token[32];
	unsigned char hash[HW_API_TOKEN_HASH];
	for (int i = 0; i < 1000; i++) {
		snprintf(token, sizeof(token), "token%d", i);
		ck_assert(hw_api_token_hash(token, strlen(token), hash));
		at += sprintf(at, "u%d:read:", i);
		for (size_t k = 0; k < sizeof(hash); k++)
			at += sprintf(at, "%02X", hash[k]);
		*at++ = '\n';
	}
	*at = '\0';
	ck_assert_int_eq(load(&a, text), 0);
	for (int i = 0; i < 1000; i++) {
		char name[32];
		snprintf(token, sizeof(token), "token%d", i);
		snprintf(name, sizeof(name), "u%d", i);
		const struct hw_account *found = hw_accounts_find(&a, NULL, 0, token, strlen(token));
		ck_assert_ptr_nonnull(found);
		ck_assert_str_eq(found->name, name);
	}
	hw_accounts_fini(&a);
	free(text);
}
END_TEST

static void differ(const char *from, const char *to, size_t cap, const char *wanted)
{
	struct hw_accounts a, b;
	char text[64];
	ck_assert_int_eq(load(&a, from), 0);
	ck_assert_int_eq(load(&b, to), 0);
	hw_accounts_diff(&a, &b, text, cap);
	ck_assert_str_eq(text, wanted);
	hw_accounts_fini(&a);
	hw_accounts_fini(&b);
}

START_TEST(test_what_differs)
{
	char text[32];
	struct hw_accounts a;
	differ("", "", 64, "");
	differ("otto:read:" ALPHA "\nrita:read:" BETA, "rita:read:" BETA "\notto:read:" ALPHA, 64, "");
	differ("otto:read:" ALPHA, "eve:read:" ALPHA, 64, "+eve -otto");
	differ("otto:read:" ALPHA, "otto:read:" BETA, 64, "~otto");
	differ("otto:read:" ALPHA, "otto:operate:" ALPHA, 64, "~otto");
	differ("otto:read:" ALPHA, "otto:read:" ALPHA ":9", 64, "~otto");
	differ("", "otto:read:" ALPHA "\nrita:read:" BETA, 26, "+otto and 1 more");
	ck_assert_int_eq(load(&a, "otto:read:" ALPHA ":9"), 0);
	hw_accounts_diff(NULL, &a, text, sizeof(text));
	ck_assert_str_eq(text, "+otto");
	hw_accounts_diff(&a, NULL, text, sizeof(text));
	ck_assert_str_eq(text, "-otto");
	ck_assert(!hw_accounts_expire(&a, 7, 8) && hw_accounts_expire(&a, 8, 9) && !hw_accounts_expire(&a, 9, 10));
	hw_accounts_fini(&a);
}
END_TEST

/* --- addresses that guess ----------------------------------------------------------------------------------------- */

static void key(const char *address, unsigned char from[16])
{
	unsigned char bytes[HW_IP_BYTES];
	ck_assert(hw_ip_parse(address, strlen(address), bytes));
	hw_attempts_key(bytes, from);
}

START_TEST(test_ten_wrong_tokens_close_an_address)
{
	struct hw_attempts a = {0};
	unsigned char bad[16], good[16];
	key("192.0.2.1", bad);
	key("192.0.2.2", good);
	for (int i = 1; i < HW_ATTEMPTS_MAX; i++)
		ck_assert(!hw_attempts_wrong(&a, bad, i));
	ck_assert_int_eq(hw_attempts_closed(&a, bad, 10), 0);
	ck_assert(hw_attempts_wrong(&a, bad, 10));
	ck_assert_int_eq(hw_attempts_closed(&a, bad, 10), HW_ATTEMPTS_CLOSED_MS);
	ck_assert_int_eq(hw_attempts_closed(&a, bad, 9 + HW_ATTEMPTS_CLOSED_MS), 1);
	ck_assert_int_eq(hw_attempts_closed(&a, bad, 10 + HW_ATTEMPTS_CLOSED_MS), 0);
	ck_assert_int_eq(hw_attempts_closed(&a, good, 10), 0);
	/* The count of wrong passwords starts at 0 again. */
	ck_assert(!hw_attempts_wrong(&a, bad, 10 + HW_ATTEMPTS_CLOSED_MS));
	ck_assert_int_eq(hw_attempts_closed(&a, bad, 10 + HW_ATTEMPTS_CLOSED_MS), 0);
}
END_TEST

/* One customer's network is one; an IPv4 address is the same however it is written. */
START_TEST(test_addresses)
{
	unsigned char a[16], b[16];
	key("2001:db8:1:2::1", a);
	key("2001:db8:1:2:ffff::9%eth0", b);
	ck_assert_mem_eq(a, b, 16);
	key("2001:db8:1:3::1", b);
	ck_assert_mem_ne(a, b, 16);
	key("::ffff:192.0.2.1", a);
	key("192.0.2.1", b);
	ck_assert_mem_eq(a, b, 16);
	key("192.0.2.2", b);
	ck_assert_mem_ne(a, b, 16);
	ck_assert(!hw_ip_parse("example.org", 11, a));
	ck_assert(!hw_ip_parse("", 0, a));
}
END_TEST

/* A flood from many addresses does not admit one that keeps guessing. */
START_TEST(test_a_flood_of_addresses)
{
	struct hw_attempts *a = calloc(1, sizeof(*a));
	unsigned char bad[16], other[16];
	char text[32];
	key("192.0.2.1", bad);
	for (int i = 0; i < 5 * HW_ATTEMPTS_ADDRESSES; i++) {
		snprintf(text, sizeof(text), "10.0.%d.%d", i / 256 % 256, i % 256);
		key(text, other);
		hw_attempts_wrong(a, other, i);
		hw_attempts_wrong(a, bad, i);
		ck_assert_int_eq(hw_attempts_closed(a, bad, i) > 0, i + 1 >= HW_ATTEMPTS_MAX);
	}
	ck_assert_uint_eq(a->n, HW_ATTEMPTS_ADDRESSES);
	free(a);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("accounts");
	TCase *t = tcase_create("accounts");
	tcase_add_test(t, test_whose_token);
	tcase_add_test(t, test_what_differs);
	tcase_add_test(t, test_every_wrong_line_is_told);
	tcase_add_test(t, test_very_many_wrong_lines_are_counted);
	tcase_add_test(t, test_a_long_file_of_repeated_lines);
	tcase_add_test(t, test_many_users);
	tcase_add_test(t, test_ten_wrong_tokens_close_an_address);
	tcase_add_test(t, test_addresses);
	tcase_add_test(t, test_a_flood_of_addresses);
	suite_add_tcase(s, t);
	return suite_run(s);
}

/* SPDX-License-Identifier: MIT */
/* Which Host and Origin are this server's, and the address of a client behind proxies. */
#include <stdio.h>
#include <string.h>

#include "../suite.h"
#include "http/ip.h"
#include "http/origin.h"
#include "http/proxies.h"

static const char names[] = "fleet.example, Monitor";

START_TEST(test_hosts)
{
	static const struct {
		const char *host, *local;
		bool any, is;
	} cases[] = {
		{"localhost", "127.0.0.1", false, true},
		{"LocalHost:8731", "10.0.0.5", false, true},
		{"localhost.", "10.0.0.5", false, true},
		{"fleet.example:443", "10.0.0.5", false, true},
		{"monitor", "10.0.0.5", false, true},
		{"10.0.0.5:8731", "10.0.0.5", false, true},
		{"::ffff:10.0.0.5", "10.0.0.5", false, false},
		{"[::ffff:10.0.0.5]", "10.0.0.5", false, true},
		{"127.0.0.2", "127.0.0.1", false, true},
		{"[::1]:80", "127.0.0.1", false, true},
		{"10.0.0.6", "10.0.0.5", false, false},
		{"10.0.0.6", "10.0.0.5", true, true},
		{"127.0.0.1", "10.0.0.5", false, false},
		{"[2001:db8::1]", "2001:db8::1%eth0", false, true},
		{"evil.example", "127.0.0.1", true, false},
		{"", "127.0.0.1", true, false},
		{"fleet", "127.0.0.1", true, false},
		{"fleet.example.org", "127.0.0.1", true, false},
		{"xfleet.example", "127.0.0.1", true, false},
		{"[::1", "127.0.0.1", false, false},
		{".", "127.0.0.1", true, false},
		{",", "127.0.0.1", true, false},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_msg(hw_origin_is_host(cases[i].host, names, cases[i].local, cases[i].any) == cases[i].is,
		              "'%s' at %s", cases[i].host, cases[i].local);
	ck_assert(!hw_origin_is_host("fleet.example", "", "127.0.0.1", false));
}
END_TEST

START_TEST(test_writers)
{
	ck_assert(hw_origin_may_write("http://127.0.0.1:8731", "127.0.0.1:8731", ""));
	ck_assert(hw_origin_may_write("https://Fleet.example:8443", "127.0.0.1:8731", names));
	ck_assert(!hw_origin_may_write("https://fleet.example", "127.0.0.1:8731", ""));
	ck_assert(!hw_origin_may_write("http://127.0.0.1:80", "127.0.0.1:8731", names));
	ck_assert(!hw_origin_may_write("null", "null", names));
	ck_assert(!hw_origin_may_write("", "", names));
	ck_assert(hw_origin_is_json("application/json"));
	ck_assert(hw_origin_is_json("Application/JSON; charset=utf-8"));
	ck_assert(!hw_origin_is_json("application/jsonp"));
	ck_assert(!hw_origin_is_json("text/plain, application/json"));
}
END_TEST

START_TEST(test_wrong_names)
{
	size_t len = 0;
	ck_assert_ptr_null(hw_origin_wrong_name("", &len));
	ck_assert_ptr_null(hw_origin_wrong_name(" a,b-c.d  e_f ", &len));
	const char *wrong = hw_origin_wrong_name("good, http://bad", &len);
	ck_assert_str_eq(wrong, "http://bad");
	ck_assert_uint_eq(len, strlen("http://bad"));
	ck_assert_ptr_nonnull(hw_origin_wrong_name("a:80", &len));
	ck_assert_ptr_nonnull(hw_origin_wrong_name("-a", &len));
}
END_TEST

static void client_is(const struct hw_proxies *p, const char *peer, const char *forwarded, const char *wanted)
{
	unsigned char client[HW_IP_BYTES];
	char text[64];
	ck_assert(hw_proxies_client(p, peer, forwarded, client));
	hw_ip_text(client, text, sizeof(text));
	ck_assert_str_eq(text, wanted);
}

START_TEST(test_clients_behind_proxies)
{
	struct hw_proxies p;
	unsigned char client[HW_IP_BYTES];
	ck_assert_ptr_null(hw_proxies_parse(&p, "127.0.0.1, 10.0.0.0/9 fd00::/8"));
	ck_assert_uint_eq(p.n, 3);
	client_is(&p, "127.0.0.1", NULL, "127.0.0.1");
	client_is(&p, "127.0.0.1", "192.0.2.1", "192.0.2.1");
	client_is(&p, "127.0.0.1", "198.51.100.1, 192.0.2.1", "192.0.2.1");
	client_is(&p, "::ffff:127.0.0.1", "192.0.2.1,10.127.0.1 , fd12::1", "192.0.2.1");
	client_is(&p, "127.0.0.1", "192.0.2.1, 10.128.0.1", "10.128.0.1");
	client_is(&p, "127.0.0.1", "10.0.0.1, 10.0.0.2", "10.0.0.1");
	client_is(&p, "127.0.0.1", "192.0.2.1, unknown, 10.0.0.2", "10.0.0.2");
	client_is(&p, "127.0.0.1", " , ", "127.0.0.1");
	client_is(&p, "192.0.2.9", "192.0.2.1", "192.0.2.9");
	ck_assert(!hw_proxies_client(&p, "", NULL, client));
	ck_assert_ptr_null(hw_proxies_parse(&p, ""));
	client_is(&p, "127.0.0.1", "192.0.2.1", "127.0.0.1");
	ck_assert_ptr_null(hw_proxies_parse(&p, "0.0.0.0/0"));
	client_is(&p, "192.0.2.9", "2001:db8::1", "2001:db8::1");
	client_is(&p, "2001:db8::9", "192.0.2.1", "2001:db8::9");
}
END_TEST

START_TEST(test_wrong_proxies)
{
	static const char *const wrong[] = {"nginx",       "10.0.0.0/33", "::/129", "10.0.0.0/",
	                                    "10.0.0.0/8x", "/8",          "1.2.3"};
	struct hw_proxies p;
	char many[HW_PROXIES_TEXT_MAX] = "";
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ck_assert_msg(hw_proxies_parse(&p, wrong[i]) != NULL, "%s", wrong[i]);
	for (int i = 0; i < HW_PROXIES_MAX; i++)
		strcat(many, "10.0.0.1 ");
	ck_assert_ptr_null(hw_proxies_parse(&p, many));
	ck_assert_ptr_nonnull(hw_proxies_parse(&p, strcat(many, "10.0.0.1")));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("origin");
	TCase *t = tcase_create("origin");
	tcase_add_test(t, test_hosts);
	tcase_add_test(t, test_writers);
	tcase_add_test(t, test_wrong_names);
	tcase_add_test(t, test_clients_behind_proxies);
	tcase_add_test(t, test_wrong_proxies);
	suite_add_tcase(s, t);
	return suite_run(s);
}

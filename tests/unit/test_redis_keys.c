/* SPDX-License-Identifier: MIT */
/* The names of keys, the ring of pending writes, what error replies mean: the parts of the Redis side that need no
 * Redis. */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../suite.h"
#include "heartwheel/entry.h"
#include "link/eval.h"
#include "link/resolve.h"
#include "link/trouble.h"
#include "redis/flags.h"
#include "redis/keys.h"
#include "redis/pending_writes.h"
#include "redis/script.h"

/* --- keys ----------------------------------------------------------------------------------------------------------
 */

static void expect_device_key(const struct hw_keys *k, enum hw_device_key key, const char *want)
{
	char buf[512];
	ck_assert_uint_le(hw_keys_device_max(k), sizeof(buf));
	size_t len = hw_keys_device(k, key, "x:1", 3, buf);
	ck_assert_uint_eq(len, strlen(want));
	ck_assert_mem_eq(buf, want, len);
}

START_TEST(names)
{
	struct hw_keys k;
	ck_assert_int_eq(hw_keys_init(&k, "device:", "node-1"), 0);
	ck_assert_str_eq(k.offline, "device:offline");
	ck_assert_str_eq(k.outbox, "device:outbox");
	ck_assert_str_eq(k.events, "device:events");
	ck_assert_str_eq(k.sight, "device:sight");
	ck_assert_str_eq(k.monitor, "device:monitor:node-1");
	ck_assert_str_eq(k.state_match, "device:state:*");
	expect_device_key(&k, HW_KEY_CONNECTED, "device:connected:x:1");
	expect_device_key(&k, HW_KEY_DISCONNECTED, "device:disconnected:x:1");
	expect_device_key(&k, HW_KEY_STATE, "device:state:x:1");
	hw_keys_fini(&k);
}
END_TEST

/* The script writes the fields that the codec reads, in its order. */
START_TEST(the_stream_has_the_codecs_fields)
{
	const char *at = strstr(hw_script_transition_text, "'MAXLEN'");
	for (int i = 0; i < HW_ENTRY_NAMES; i++) {
		char quoted[32];
		if (i >= HW_ENTRY_PARENT) { /* those of a child alone stand before */
			snprintf(quoted, sizeof(quoted), "'%s'", hw_entry_name((enum hw_entry_name)i));
			ck_assert_ptr_nonnull(strstr(hw_script_transition_text, quoted));
			continue;
		}
		ck_assert_ptr_nonnull(at);
		snprintf(quoted, sizeof(quoted), "'%s',", hw_entry_name((enum hw_entry_name)i));
		at = strstr(at, quoted);
	}
	ck_assert_ptr_nonnull(at);
}
END_TEST

START_TEST(glob_characters_are_escaped)
{
	struct hw_keys k;
	ck_assert_int_eq(hw_keys_init(&k, "a*b?c[d]e\\f{g}", ""), 0);
	ck_assert_str_eq(k.state_match, "a\\*b\\?c\\[d\\]e\\\\f{g}state:*");
	ck_assert_str_eq(k.monitor, "a*b?c[d]e\\f{g}monitor:");
	hw_keys_fini(&k);
	ck_assert_int_eq(hw_keys_init(&k, "", "n"), 0);
	ck_assert_str_eq(k.state_match, "state:*");
	ck_assert_str_eq(k.offline, "offline");
	hw_keys_fini(&k);
}
END_TEST

START_TEST(longest_id_fits)
{
	struct hw_keys k;
	char id[255], *buf;
	memset(id, 'i', sizeof(id));
	ck_assert_int_eq(hw_keys_init(&k, "p:", "n"), 0);
	buf = malloc(hw_keys_device_max(&k));
	ck_assert_ptr_nonnull(buf);
	ck_assert_uint_eq(hw_keys_device(&k, HW_KEY_DISCONNECTED, id, sizeof(id), buf), hw_keys_device_max(&k));
	free(buf);
	hw_keys_fini(&k);
}
END_TEST

START_TEST(id_of_a_state_key)
{
	struct hw_keys k;
	const char *id;
	size_t len;
	ck_assert_int_eq(hw_keys_init(&k, "device:", "n"), 0);
	ck_assert(hw_keys_state_id(&k, "device:state:a:b", 16, &id, &len));
	ck_assert_uint_eq(len, 3);
	ck_assert_mem_eq(id, "a:b", 3);
	ck_assert(hw_keys_state_id(&k, "device:state:", 13, &id, &len));
	ck_assert_uint_eq(len, 0);
	ck_assert(!hw_keys_state_id(&k, "device:state", 12, &id, &len));
	ck_assert(!hw_keys_state_id(&k, "device:stats:a", 14, &id, &len));
	ck_assert(!hw_keys_state_id(&k, "Device:state:a", 14, &id, &len));
	ck_assert(!hw_keys_state_id(&k, "", 0, &id, &len));
	hw_keys_fini(&k);
}
END_TEST

/* --- the ring ------------------------------------------------------------------------------------------------------
 */

static void push(struct hw_pending_writes *q, uint64_t seq)
{
	struct hw_pending_write e = {.t = {.seq = seq}};
	if (seq % 3 == 0) {
		e.acknowledges = true;
		e.id = malloc(2);
		ck_assert_ptr_nonnull(e.id);
	}
	ck_assert_int_eq(hw_pending_writes_push(q, &e), 0);
}

START_TEST(id_of_a_key_that_others_touch)
{
	struct hw_keys k;
	enum hw_device_key which;
	const char *id;
	size_t len;
	ck_assert_int_eq(hw_keys_init(&k, "device:", "n"), 0);
	ck_assert(hw_keys_device_id(&k, "device:connected:a:b", 20, &which, &id, &len));
	ck_assert(which == HW_KEY_CONNECTED && len == 3 && memcmp(id, "a:b", 3) == 0);
	ck_assert(hw_keys_device_id(&k, "device:disconnected:x", 21, &which, &id, &len));
	ck_assert(which == HW_KEY_DISCONNECTED && len == 1 && *id == 'x');
	ck_assert(!hw_keys_device_id(&k, "device:state:a", 14, &which, &id, &len));
	ck_assert_str_eq(k.connected_match, "device:connected:*");
	hw_keys_fini(&k);
	char *self = hw_keys_self("device:", "n", 0xabc);
	ck_assert_str_eq(self, "device:self:n:0000000000000abc");
	free(self);
}
END_TEST

/* What is missing of Exg$e is put behind what is there, which stays. */
START_TEST(notification_flags)
{
	static const struct {
		const char *have, *want;
	} cases[] = {{"", "Exg$e"},    {"Exg$e", NULL}, {"AKE", NULL},      {"AK", "AKE"},
	             {"Kx", "KxEg$e"}, {"xE", "xEg$e"}, {"gxElKn$e", NULL}, {"E", "Exg$e"}};
	char buf[HW_FLAGS_MAX];
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool missing = hw_flags_complete(cases[i].have, buf);
		ck_assert_int_eq(missing, cases[i].want != NULL);
		ck_assert_str_eq(buf, missing ? cases[i].want : cases[i].have);
	}
	char junk[200];
	memset(junk, 'z', sizeof(junk));
	junk[sizeof(junk) - 1] = '\0';
	ck_assert(hw_flags_complete(junk, buf));
}
END_TEST

START_TEST(ring_keeps_the_order_while_it_grows)
{
	struct hw_pending_writes q = {0};
	uint64_t in = 0, out = 0;
	while (in < 20000) {
		for (int k = 0; k < 7; k++)
			push(&q, in++);
		for (int k = 0; k < 4; k++, out++) {
			ck_assert_uint_eq(hw_pending_writes_at(&q, q.head)->t.seq, out);
			q.sent = q.head + 1;
			hw_pending_writes_confirm(&q, q.sent);
		}
	}
	uint32_t transitions = 0;
	for (uint64_t at = q.head; at != q.tail; at++, out++) {
		ck_assert_uint_eq(hw_pending_writes_at(&q, at)->t.seq, out);
		transitions += out % 3 != 0;
	}
	ck_assert_uint_eq(out, in);
	ck_assert_uint_eq(q.transitions, transitions);
	q.sent = q.tail;
	hw_pending_writes_confirm(&q, q.tail);
	ck_assert_uint_eq(q.transitions, 0);
	push(&q, 1);
	push(&q, 3); /* and what is left is freed with it */
	hw_pending_writes_fini(&q);
}
END_TEST

START_TEST(ring_ends_at_its_mark)
{
	struct hw_pending_writes q = {0};
	const struct hw_pending_write e = {.t = {.seq = 1}};
	for (uint32_t k = 0; k < HW_PENDING_WRITES_MAX; k++)
		ck_assert_int_eq(hw_pending_writes_push(&q, &e), 0);
	ck_assert_int_eq(hw_pending_writes_push(&q, &e), -ENOBUFS);
	ck_assert_uint_eq(q.transitions, HW_PENDING_WRITES_MAX);
	q.sent = 1;
	hw_pending_writes_confirm(&q, 1);
	ck_assert_int_eq(hw_pending_writes_push(&q, &e), 0);
	hw_pending_writes_fini(&q);
}
END_TEST

/* --- calls ---------------------------------------------------------------------------------------------------------
 */

START_TEST(a_call_in_the_wire_format)
{
	static const char sha[] = "0123456789012345678901234567890123456789";
	static const char want[] = "*6\r\n$7\r\nEVALSHA\r\n$40\r\n0123456789012345678901234567890123456789\r\n"
				   "$1\r\n1\r\n$3\r\nkey\r\n$0\r\n\r\n$3\r\n-42\r\n";
	struct hw_eval e = {0};
	size_t len = 0;
	for (int twice = 0; twice < 2; twice++) {
		hw_eval_begin(&e);
		hw_eval_arg(&e, "", 0);
		hw_eval_key(&e, "key", 3);
		hw_eval_arg_int(&e, -42);
		const char *command = hw_eval_end(&e, sha, &len);
		ck_assert_ptr_nonnull(command);
		ck_assert_uint_eq(len, sizeof(want) - 1);
		ck_assert_mem_eq(command, want, len);
	}
	hw_eval_begin(&e);
	hw_eval_arg_int(&e, INT64_MIN);
	size_t at = hw_eval_put_count(&e, 2);
	hw_eval_arg_int(&e, INT64_MAX);
	hw_eval_arg_int(&e, 0);
	hw_eval_set_count(&e, at, 105);
	ck_assert_mem_eq(e.args.at,
	                 "$20\r\n-9223372036854775808\r\n$3\r\n105\r\n$19\r\n9223372036854775807\r\n$1\r\n0\r\n",
	                 hw_eval_size(&e));
	hw_eval_begin(&e);
	for (int k = 0; k < 1000; k++)
		hw_eval_arg_text(&e, "0123456789");
	ck_assert_uint_eq(hw_eval_size(&e), 17000);
	ck_assert_ptr_nonnull(hw_eval_end(&e, sha, &len));
	hw_eval_fini(&e);
}
END_TEST

/* --- error replies -------------------------------------------------------------------------------------------------
 */

static const struct {
	const char *reply;
	enum hw_trouble kind;
	bool global;
} replies[] = {
	{"NOSCRIPT No matching script. Please use EVAL.", HW_TROUBLE_NOSCRIPT, true},
	{"OOM command not allowed when used memory > 'maxmemory'.", HW_TROUBLE_OOM, true},
	{"ERR Error running script (call to f_0): @user_script:1: -OOM command not allowed", HW_TROUBLE_OOM, true},
	{"READONLY You can't write against a read only replica.", HW_TROUBLE_READONLY, true},
	{"LOADING Redis is loading the dataset in memory", HW_TROUBLE_LOADING, true},
	{"MISCONF Redis is configured to save RDB snapshots, but", HW_TROUBLE_MISCONF, true},
	{"NOPERM this user has no permissions to run the 'set' command", HW_TROUBLE_NOPERM, true},
	{"ERR The user executing the script can't run this command or subcommand", HW_TROUBLE_NOPERM, true},
	{"BUSY Redis is busy running a script.", HW_TROUBLE_BUSY, true},
	{"NOAUTH Authentication required.", HW_TROUBLE_NOAUTH, true},
	{"WRONGPASS invalid username-password pair or user is disabled.", HW_TROUBLE_PASSWORD, true},
	{"ERR invalid password", HW_TROUBLE_PASSWORD, true},
	{"ERR Client sent AUTH, but no password is set", HW_TROUBLE_NO_PASSWORD, true},
	{"DENIED Redis is running in protected mode because", HW_TROUBLE_PROTECTED, true},
	{"MASTERDOWN Link with MASTER is down", HW_TROUBLE_MASTERDOWN, true},
	{"NOREPLICAS Not enough good replicas to write.", HW_TROUBLE_NOREPLICAS, true},
	{"ERR DB index is out of range", HW_TROUBLE_DB, true},
	{"MOVED 3999 127.0.0.1:6381", HW_TROUBLE_MOVED, true},
	{"WRONGTYPE Operation against a key holding the wrong kind of value", HW_TROUBLE_WRONGTYPE, false},
	{"ERR invalid expire time in 'set' command", HW_TROUBLE_OTHER, false},
};

/* A place that scripts/places moved, and the C side did not follow. */
START_TEST(an_argument_out_of_its_place)
{
	struct hw_eval e = {0};
	hw_eval_begin(&e);
	hw_eval_put_text(&e, 1, "head");
	hw_eval_put_int(&e, 2, 5);
	hw_eval_item(&e);
	hw_eval_put_text(&e, 0, "A");
	hw_eval_put_text(&e, 2, "seq");
	hw_eval_fini(&e);
}
END_TEST

START_TEST(replies_and_their_kinds)
{
	ck_assert_int_eq(hw_trouble_of(replies[_i].reply), replies[_i].kind);
	ck_assert_int_eq(hw_trouble_is_global(replies[_i].kind), replies[_i].global);
}
END_TEST

START_TEST(texts_are_one_bounded_line)
{
	char text[HW_TROUBLE_TEXT], reply[2000];
	memset(reply, '\n', sizeof(reply));
	reply[sizeof(reply) - 1] = '\0';
	hw_trouble_text(reply, text);
	ck_assert_uint_lt(strlen(text), HW_TROUBLE_TEXT);
	ck_assert_ptr_null(strchr(text, '\n'));
	hw_trouble_text("OOM x", text);
	ck_assert_str_eq(text, "Redis is out of memory: raise its maxmemory (OOM x)");
	hw_trouble_text("WRONGPASS x", text);
	ck_assert_str_eq(text, "Redis refused the password: check [redis] username and password_file");
	hw_trouble_text(
		"DENIED Redis is running in protected mode because protected mode is enabled and no password is set "
		"for the default user.",
		text);
	ck_assert_str_eq(text,
	                 "Redis is in protected mode and accepts only clients of its own machine: set a password in "
	                 "Redis and [redis] password_file, or protected-mode no in Redis");
}
END_TEST

START_TEST(each_kind_once_in_ten_seconds)
{
	struct hw_troubles t = {0};
	ck_assert(hw_trouble_due(&t, HW_TROUBLE_OOM, 5));
	ck_assert(hw_trouble_due(&t, HW_TROUBLE_BUSY, 6));
	ck_assert(!hw_trouble_due(&t, HW_TROUBLE_OOM, 10004));
	ck_assert(hw_trouble_due(&t, HW_TROUBLE_OOM, 10005));
	ck_assert(!hw_trouble_due(&t, HW_TROUBLE_OOM, 10006));
}
END_TEST

START_TEST(literal_addresses)
{
	ck_assert(hw_resolve_literal("127.0.0.1"));
	ck_assert(hw_resolve_literal("::1"));
	ck_assert(hw_resolve_literal("fe80::1%eth0"));
	ck_assert(!hw_resolve_literal("localhost"));
	ck_assert(!hw_resolve_literal("1.2.3"));
	ck_assert(!hw_resolve_literal(""));
	ck_assert(!hw_resolve_literal("a-very-long-name-that-cannot-be-an-address-of-any-kind.example.invalid"));
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("redis_keys");
	TCase *t = tcase_create("keys");
	tcase_add_test(t, names);
	tcase_add_test(t, the_stream_has_the_codecs_fields);
	tcase_add_test(t, glob_characters_are_escaped);
	tcase_add_test(t, longest_id_fits);
	tcase_add_test(t, id_of_a_state_key);
	tcase_add_test(t, id_of_a_key_that_others_touch);
	tcase_add_test(t, notification_flags);
	tcase_add_test(t, ring_keeps_the_order_while_it_grows);
	tcase_add_test(t, ring_ends_at_its_mark);
	tcase_add_test(t, a_call_in_the_wire_format);
	tcase_add_test_raise_signal(t, an_argument_out_of_its_place, SIGABRT);
	tcase_add_loop_test(t, replies_and_their_kinds, 0, sizeof(replies) / sizeof(replies[0]));
	tcase_add_test(t, texts_are_one_bounded_line);
	tcase_add_test(t, each_kind_once_in_ten_seconds);
	tcase_add_test(t, literal_addresses);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return suite_run(suite());
}

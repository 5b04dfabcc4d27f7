/* SPDX-License-Identifier: MIT */
/* FD messages: what is read of them, what is refused and with which words, and what goes out. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../suite.h"
#include "heartwheel/json.h"
#include "tasks/allow.h"
#include "tasks/mqtt/message.h"

static struct hw_request q;
static const char *why;

static int read_text(const char *text)
{
	return hw_request_read(&q, text, strlen(text), &why);
}

static void expect_text(struct hw_text got, const char *want)
{
	ck_assert_msg(got.len == strlen(want) && (got.len == 0 || memcmp(got.at, want, got.len) == 0),
	              "'%.*s', not '%s'", (int)got.len, got.at, want);
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

START_TEST(test_a_submission_is_read)
{
	ck_assert_int_eq(
		read_text("{\"msg_id\":\"m.1\",\"sender\":\"ann\",\"action\":\"deliver\",\"time\":1790000000.25,"
	                  "\"payload\":{\"receiver\":\"pump-7\",\"action\":\"set\",\"payload\": {\"b\" : [1, 2.50] } ,"
	                  "\"at\":1790000060,\"exp\":1790000120.5,\"run\":2.5,\"hold\":false}}"),
		0);
	ck_assert_int_eq(q.action, HW_REQUEST_DELIVER);
	expect_text(q.sender, "ann");
	expect_text(q.msg_id, "m.1");
	expect_text(q.task.msg_id, "m.1");
	expect_text(q.task.receiver, "pump-7");
	expect_text(q.task.action, "set");
	expect_text(q.task.body, "{\"b\" : [1, 2.50] }"); /* byte for byte */
	expect_text(q.task.topic, "");
	ck_assert_int_eq(q.task.time_ms, 1790000000250);
	ck_assert_int_eq(q.task.at_ms, 1790000060000);
	ck_assert_int_eq(q.task.after_ms, -1);
	ck_assert_int_eq(q.task.exp_ms, 1790000120500);
	ck_assert_int_eq(q.task.run_ms, 2500);
	ck_assert(q.task.no_hold);
	hw_request_fini(&q);
}
END_TEST

START_TEST(test_what_is_not_given_is_not_there)
{
	ck_assert_int_eq(
		read_text("{\"msg_id\":\"1\",\"action\":\"deliver\",\"payload\":{\"receiver\":\"p\",\"action\":\"a\","
	                  "\"after\":0.5,\"exp\":null,\"at\":null}}"),
		0);
	expect_text(q.sender, "");
	expect_text(q.task.body, "null");
	ck_assert_int_eq(q.task.time_ms, 0);
	ck_assert_int_eq(q.task.at_ms, -1);
	ck_assert_int_eq(q.task.after_ms, 500);
	ck_assert_int_eq(q.task.exp_ms, -1);
	ck_assert_int_eq(q.task.run_ms, -1);
	ck_assert(!q.task.no_hold);
	hw_request_fini(&q);
}
END_TEST

START_TEST(test_of_several_members_the_first_counts_and_escapes_are_read)
{
	ck_assert_int_eq(
		read_text("{\"\\u006dsg_id\":\"one\",\"msg_id\":\"two\",\"action\":\"de\\u006civer\",\"x\":{\"msg_id\":"
	                  "3},"
	                  "\"payload\":{\"receiver\":\"t\\u00fcr\\ud83d\\ude00\",\"action\":\"a\\\\b\\/\\\"\"}}"),
		0);
	expect_text(q.msg_id, "one");
	expect_text(q.task.receiver, "t\xc3\xbcr\xf0\x9f\x98\x80");
	expect_text(q.task.action, "a\\b/\"");
	hw_request_fini(&q);
}
END_TEST

START_TEST(test_a_topic_is_published_on)
{
	static const char bytes[] = "a\0\n";
	ck_assert_int_eq(read_text("{\"msg_id\":\"1\",\"action\":\"deliver\",\"payload\":{\"topic\":\"a/b\",\"qos\":1,"
	                           "\"retain\":true,\"payload\":\"a\\u0000\\n\"}}"),
	                 0);
	expect_text(q.task.topic, "a/b");
	expect_text(q.task.receiver, "");
	ck_assert_uint_eq(q.task.qos, 1);
	ck_assert(q.task.retain);
	ck_assert_uint_eq(q.task.body.len, 3);
	ck_assert_mem_eq(q.task.body.at, bytes, 3);
	hw_request_fini(&q);
	ck_assert_int_eq(
		read_text("{\"msg_id\":\"1\",\"action\":\"deliver\",\"payload\":{\"topic\":\"a\",\"payload\":[ 1]}}"),
		0);
	expect_text(q.task.body, "[ 1]");
	hw_request_fini(&q);
	ck_assert_int_eq(read_text("{\"msg_id\":\"1\",\"action\":\"deliver\",\"payload\":{\"topic\":\"a\"}}"), 0);
	expect_text(q.task.body, "");
	hw_request_fini(&q);
}
END_TEST

START_TEST(test_the_other_actions_are_read)
{
	ck_assert_int_eq(
		read_text("{\"msg_id\":\"1\",\"action\":\"cancel\",\"payload\":{\"msg_id\":\"m\",\"force\":true}}"), 0);
	ck_assert_int_eq(q.action, HW_REQUEST_CANCEL);
	expect_text(q.msg_id, "1");
	expect_text(q.of, "m");
	ck_assert(q.force);
	hw_request_fini(&q);
	ck_assert_int_eq(read_text("{\"msg_id\":\"1\",\"action\":\"query\",\"payload\":{\"msg_id\":\"m\"}}"), 0);
	ck_assert_int_eq(q.action, HW_REQUEST_QUERY);
	ck_assert(!q.force);
	hw_request_fini(&q);
	ck_assert_int_eq(read_text("{\"msg_id\":\"1\",\"action\":\"follow\",\"payload\":{\"ids\":[\"a\", \"b/c\"],"
	                           "\"group\":\"g\",\"prefix\":\"p-\",\"from\":\"1700-2\"}}"),
	                 0);
	ck_assert_int_eq(q.action, HW_REQUEST_FOLLOW);
	ck_assert_uint_eq(q.n_ids, 2);
	expect_text(q.ids[0], "a");
	expect_text(q.ids[1], "b/c");
	expect_text(q.group, "g");
	expect_text(q.prefix, "p-");
	expect_text(q.from, "1700-2");
	hw_request_fini(&q);
	ck_assert_int_eq(read_text("{\"msg_id\":\"1\",\"action\":\"unfollow\"}"), 0);
	ck_assert_int_eq(q.action, HW_REQUEST_UNFOLLOW);
	hw_request_fini(&q);
	ck_assert_int_eq(read_text("{\"msg_id\":\"1\",\"action\":\"will\",\"payload\":{\"topic\":\"w\",\"payload\":{},"
	                           "\"qos\":2}}"),
	                 0);
	ck_assert_int_eq(q.action, HW_REQUEST_WILL);
	expect_text(q.topic, "w");
	expect_text(q.raw, "{\"topic\":\"w\",\"payload\":{},\"qos\":2}");
	ck_assert_uint_eq(q.qos, 2);
	hw_request_fini(&q);
	ck_assert_int_eq(read_text("{\"msg_id\":\"1\",\"action\":\"will\",\"payload\":null}"), 0);
	expect_text(q.topic, "");
	hw_request_fini(&q);
}
END_TEST

#define DELIVER(payload) "{\"msg_id\":\"1\",\"action\":\"deliver\",\"payload\":" payload "}"
#define TO(rest)         DELIVER("{\"receiver\":\"p\",\"action\":\"a\"," rest "}")

static const struct {
	const char *text, *why; /* a part of it */
} refused[] = {
	{"", "not a JSON object"},
	{"[]", "not a JSON object"},
	{"{\"msg_id\":\"1\"", "not a JSON object"},
	{"{\"msg_id\":\"1\",}", "not a JSON object"},
	{"{\"msg_id\":\"\xff\"}", "not a JSON object"},
	{"{} {}", "not a JSON object"},
	{"{}", "msg_id is missing"},
	{"{\"msg_id\":7}", "msg_id must be"},
	{"{\"msg_id\":\"\"}", "msg_id must be"},
	{"{\"msg_id\":\"a b\"}", "msg_id must be"},
	{"{\"msg_id\":\"a\\u0000\"}", "msg_id must be"},
	{"{\"msg_id\":\"01234567890123456789012345678901234567890123456789012345678901234\"}", "msg_id must be"},
	{"{\"msg_id\":\"1\",\"sender\":1}", "sender must be a string"},
	{"{\"msg_id\":\"1\",\"sender\":\"a/b\"}", "sender must be"},
	{"{\"msg_id\":\"1\"}", "action must be deliver"},
	{"{\"msg_id\":\"1\",\"action\":\"fly\"}", "action must be deliver"},
	{"{\"msg_id\":\"1\",\"action\":[]}", "action must be a string"},
	{"{\"msg_id\":\"1\",\"action\":\"deliver\",\"time\":\"1\"}", "time must be Unix seconds"},
	{"{\"msg_id\":\"1\",\"action\":\"deliver\",\"time\":-1}", "time must be Unix seconds"},
	{"{\"msg_id\":\"1\",\"action\":\"deliver\",\"time\":1e999}", "time must be Unix seconds"},
	{"{\"msg_id\":\"1\",\"action\":\"deliver\"}", "payload must be an object"},
	{DELIVER("[]"), "payload must be an object"},
	{DELIVER("{}"), "receiver is missing"},
	{DELIVER("{\"receiver\":\"a/b\",\"action\":\"a\"}"), "receiver is missing"},
	{DELIVER("{\"receiver\":\"+\",\"action\":\"a\"}"), "receiver is missing"},
	{DELIVER("{\"receiver\":\"p\"}"), "action must be 1 to 255"},
	{DELIVER("{\"receiver\":\"p\",\"action\":\"\\n\"}"), "action must be 1 to 255"},
	{DELIVER("{\"receiver\":\"p\",\"action\":\"a\",\"topic\":\"t\"}"), "excludes receiver"},
	{DELIVER("{\"topic\":\"a/#\"}"), "topic cannot"},
	{DELIVER("{\"topic\":\"a/+\"}"), "topic cannot"},
	{DELIVER("{\"topic\":\"\"}"), "topic cannot"},
	{DELIVER("{\"topic\":\"$SYS/a\"}"), "topic cannot"},
	{DELIVER("{\"topic\":\"a\",\"qos\":3}"), "qos must be"},
	{DELIVER("{\"topic\":\"a\",\"retain\":1}"), "retain must be"},
	{DELIVER("{\"topic\":\"a\",\"payload\":\"\\ud800\"}"), "payload must be a text"},
	{DELIVER("{\"topic\":\"a\",\"payload\":\"\\ud800\\u0041\"}"), "payload must be a text"},
	{TO("\"at\":1,\"after\":1"), "exclude each other"},
	{TO("\"at\":\"tomorrow\""), "at must be a time"},
	{TO("\"at\":0x10"), "not a JSON object"},
	{TO("\"after\":-1"), "after must be a number"},
	{TO("\"after\":99999999"), "after must be a number"},
	{TO("\"exp\":true"), "exp must be a time"},
	{TO("\"run\":{}"), "run must be a number"},
	{TO("\"hold\":0"), "hold must be"},
	{"{\"msg_id\":\"1\",\"action\":\"cancel\",\"payload\":{}}", "msg_id is missing"},
	{"{\"msg_id\":\"1\",\"action\":\"cancel\",\"payload\":{\"msg_id\":\"m\",\"force\":\"yes\"}}", "force must be"},
	{"{\"msg_id\":\"1\",\"action\":\"query\",\"payload\":{\"msg_id\":null}}", "msg_id is missing"},
	{"{\"msg_id\":\"1\",\"action\":\"follow\",\"payload\":{\"ids\":\"a\"}}", "ids must be an array"},
	{"{\"msg_id\":\"1\",\"action\":\"follow\",\"payload\":{\"ids\":[\"a\",1]}}", "must be a device id"},
	{"{\"msg_id\":\"1\",\"action\":\"follow\",\"payload\":{\"from\":\"then\"}}", "from must be"},
	{"{\"msg_id\":\"1\",\"action\":\"follow\",\"payload\":{\"from\":\"1-2-3\"}}", "from must be"},
	{"{\"msg_id\":\"1\",\"action\":\"will\",\"payload\":{\"topic\":\"#\"}}", "topic cannot"},
};

START_TEST(test_bad_input_is_told_what_is_wrong)
{
	why = NULL;
	ck_assert_int_eq(read_text(refused[_i].text), -EINVAL);
	ck_assert_ptr_nonnull(why);
	ck_assert_msg(strstr(why, refused[_i].why), "%s: '%s', not '%s'", refused[_i].text, why, refused[_i].why);
	hw_request_fini(&q);
}
END_TEST

START_TEST(test_who_is_wrong_can_be_told_so)
{
	ck_assert_int_eq(read_text("{\"msg_id\":\"m\",\"sender\":\"ann\",\"action\":\"fly\"}"), -EINVAL);
	expect_text(q.msg_id, "m");
	expect_text(q.sender, "ann");
	hw_request_fini(&q);
	ck_assert_int_eq(read_text("{\"msg_id\":\"/\",\"sender\":\"ann\",\"action\":\"fly\"}"), -EINVAL);
	expect_text(q.msg_id, "");
	expect_text(q.sender, "ann");
	hw_request_fini(&q);
}
END_TEST

START_TEST(test_a_message_has_at_most_64_kib)
{
	static const char head[] = "{\"msg_id\":\"1\",\"action\":\"deliver\",\"payload\":{\"receiver\":\"p\","
				   "\"action\":\"a\",\"payload\":\"";
	char *text = malloc(HW_TASK_BYTES_MAX + 2);
	ck_assert_ptr_nonnull(text);
	memset(text, 'x', HW_TASK_BYTES_MAX + 1);
	memcpy(text, head, strlen(head));
	memcpy(text + HW_TASK_BYTES_MAX - 3, "\"}}", 4);
	ck_assert_int_eq(read_text(text), 0);
	hw_request_fini(&q);
	memcpy(text + HW_TASK_BYTES_MAX - 3, "x\"}}", 5);
	ck_assert_int_eq(read_text(text), -EINVAL);
	ck_assert_ptr_nonnull(strstr(why, "64 KiB"));
	hw_request_fini(&q);
	free(text);
}
END_TEST

/* --- as the API takes them ---------------------------------------------------------------------------------------- */

static int read_api(const char *text)
{
	return hw_request_read_task(&q, text, strlen(text), &why);
}

START_TEST(test_a_task_of_the_api_is_flat)
{
	ck_assert_int_eq(read_api(" {\"receiver\":\"p\",\"action\":\"set\",\"payload\":{ \"a\":1.50},\"after\":2,"
	                          "\"time\":1790000000,\"hold\":false} "),
	                 0);
	expect_text(q.msg_id, "");
	expect_text(q.task.receiver, "p");
	expect_text(q.task.body, "{ \"a\":1.50}");
	ck_assert_int_eq(q.task.after_ms, 2000);
	ck_assert_int_eq(q.task.time_ms, 1790000000000);
	ck_assert(q.task.no_hold);
	hw_request_fini(&q);
	ck_assert_int_eq(read_api("{\"msg_id\":\"m\",\"topic\":\"a/b\",\"payload\":\"x\",\"qos\":1}"), 0);
	expect_text(q.msg_id, "m");
	expect_text(q.task.msg_id, "m");
	expect_text(q.task.body, "x");
	hw_request_fini(&q);
}
END_TEST

START_TEST(test_what_the_api_refuses)
{
	static const char *const wrong[] = {
		"",
		"[]",
		"{}",
		"{\"receiver\":\"p\"}",
		"{\"receiver\":\"p/q\",\"action\":\"a\"}",
		"{\"receiver\":\"p\",\"action\":\"a\",\"msg_id\":\"a b\"}",
		"{\"receiver\":\"p\",\"action\":\"a\",\"msg_id\":7}",
		"{\"receiver\":\"p\",\"action\":\"a\",\"time\":-1}",
		"{\"receiver\":\"p\",\"action\":\"a\",\"topic\":\"t\"}",
	};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		why = NULL;
		ck_assert_msg(read_api(wrong[i]) == -EINVAL, "%s", wrong[i]);
		ck_assert_msg(why && *why, "%s", wrong[i]);
		hw_request_fini(&q);
	}
}
END_TEST

START_TEST(test_a_call_is_read)
{
	static const char *const wrong[] = {"{}",
	                                    "{\"topic\":\"a\"}",
	                                    "{\"reply\":\"a\"}",
	                                    "{\"topic\":\"a/+\",\"reply\":\"b\"}",
	                                    "{\"topic\":\"a\",\"reply\":\"#\"}",
	                                    "{\"topic\":\"a\",\"reply\":\"b\",\"retain\":true}",
	                                    "{\"topic\":\"a\",\"reply\":\"b\",\"timeout\":51}",
	                                    "{\"topic\":\"a\",\"reply\":\"b\",\"timeout\":\"1\"}"};
	static const char text[] = "{\"topic\":\"a/b\",\"reply\":\"c/d\",\"payload\": [1, 2],\"timeout\":2.5}";
	struct hw_call_request c;
	ck_assert_int_eq(hw_call_request_read(&c, text, strlen(text), &why), 0);
	expect_text(c.topic, "a/b");
	expect_text(c.reply, "c/d");
	expect_text(c.payload, "[1, 2]");
	ck_assert_int_eq(c.timeout_ms, 2500);
	ck_assert_uint_eq(c.qos, 1);
	hw_call_request_fini(&c);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		ck_assert_msg(hw_call_request_read(&c, wrong[i], strlen(wrong[i]), &why) == -EINVAL, "%s", wrong[i]);
		hw_call_request_fini(&c);
	}
}
END_TEST

/* --- responses ---------------------------------------------------------------------------------------------------- */

#define TASK "0f1e2d3c-4b5a-8978-8695-a4b3c2d1e0ff"

static int respond(struct hw_response *p, const char *text, enum hw_task_answer_kind kind)
{
	return hw_response_read(p, text, strlen(text), kind, &why);
}

START_TEST(test_responses_are_read)
{
	struct hw_response p;
	char name[HW_TASK_TEXT + 1];
	ck_assert_int_eq(respond(&p, "{\"msg_id\":\"" TASK "\",\"value\":1}", HW_ANSWER_ACK), 0);
	hw_task_id_text(&p.task, name);
	ck_assert_str_eq(name, TASK);
	expect_text(p.value, "");
	ck_assert_int_eq(
		respond(&p, "{\"msg_id\":\"" TASK "\",\"error\":1,\"value\": {\"a\":1e2} }", HW_ANSWER_COMPLETE), 0);
	expect_text(p.value, "{\"a\":1e2}");
	ck_assert_int_eq(respond(&p, "{\"msg_id\":\"" TASK "\",\"error\":\"YQ==\",\"value\":2}", HW_ANSWER_FAILED), 0);
	expect_text(p.value, "\"YQ==\"");
	ck_assert_int_eq(respond(&p, "{\"msg_id\":\"a1\"}", HW_ANSWER_ACK), -ENOENT);
	ck_assert_int_eq(respond(&p, "{\"msg_id\":\"0F1E2D3C-4b5a-8978-8695-a4b3c2d1e0ff\"}", HW_ANSWER_ACK), -ENOENT);
	ck_assert_int_eq(respond(&p, "{\"msg_id\":\"0f1e2d3c-4b5a-8978-8695+a4b3c2d1e0ff\"}", HW_ANSWER_ACK), -ENOENT);
	ck_assert_int_eq(respond(&p, "{\"msg_id\":1}", HW_ANSWER_ACK), -EINVAL);
	ck_assert_int_eq(respond(&p, "{}", HW_ANSWER_ACK), -EINVAL);
	ck_assert_int_eq(respond(&p, "nonsense", HW_ANSWER_ACK), -EINVAL);
	ck_assert_int_eq(respond(&p, "", HW_ANSWER_ACK), -EINVAL);
}
END_TEST

/* --- what others say ---------------------------------------------------------------------------------------------- */

static int overhear(struct hw_overheard *o, const char *text)
{
	return hw_overheard_read(o, text, strlen(text));
}

START_TEST(test_what_others_say_is_read)
{
	struct hw_overheard o;
	ck_assert_int_eq(
		overhear(&o, "{\"sender\":\"A\",\"receiver\":\"B\",\"msg_id\":\"m1\",\"action\":\"test\",\"time\":1,"
	                     "\"exp\":9.5,\"payload\":{\"msg_id\":\"x\"}}"),
		0);
	expect_text(o.sender, "A");
	expect_text(o.msg_id, "m1");
	expect_text(o.action, "test");
	ck_assert_int_eq(o.exp_ms, 9500);
	ck_assert(!o.is_ours);
	hw_overheard_fini(&o);
	/* What is not as it should be is not there; only without a msg_id it cannot be followed. */
	ck_assert_int_eq(
		overhear(&o, "{\"sender\":1,\"msg_id\":\"m1\",\"action\":\"a#\",\"exp\":\"soon\",\"task\":\"m1\"}"), 0);
	expect_text(o.sender, "");
	expect_text(o.action, "");
	ck_assert_int_eq(o.exp_ms, -1);
	ck_assert(!o.is_ours);
	hw_overheard_fini(&o);
	ck_assert_int_eq(overhear(&o, "{\"sender\":\"A\",\"msg_id\":\"m1\",\"time\":0,\"exp\":0}"), 0);
	ck_assert_int_eq(o.exp_ms, -1); /* not at once: it was not said */
	hw_overheard_fini(&o);
	ck_assert_int_eq(overhear(&o, "{\"msg_id\":\"m1\",\"task\":\"" TASK "\"}"), 0);
	ck_assert(o.is_ours);
	hw_overheard_fini(&o);
	ck_assert_int_eq(overhear(&o, "{\"sender\":\"A\"}"), -EINVAL);
	hw_overheard_fini(&o);
	ck_assert_int_eq(overhear(&o, "{\"msg_id\":\"a b\"}"), -EINVAL);
	hw_overheard_fini(&o);
	ck_assert_int_eq(overhear(&o, "[]"), -EINVAL);
	hw_overheard_fini(&o);
}
END_TEST

START_TEST(test_a_filter_covers_another)
{
	static const struct {
		const char *wide, *narrow;
		bool covers;
	} filters[] = {{"n/+/ack/+", "n/hw/ack/+", true},
	               {"n/hw/ack/+", "n/+/ack/+", false},
	               {"n/+/ack", "n/hw/ack/+", false},
	               {"n/#", "n/+/ack", true},
	               {"n/#", "n/a/#", true},
	               {"n/+", "n/#", false},
	               {"n/a/#", "n/#", false},
	               {"n/+/#", "n/#", false},
	               {"#", "n/#", true},
	               {"#", "$x/y", false}};
	for (size_t i = 0; i < sizeof(filters) / sizeof(*filters); i++)
		ck_assert_msg(hw_filter_covers(filters[i].wide, filters[i].narrow) == filters[i].covers, "%s and %s",
		              filters[i].wide, filters[i].narrow);
}
END_TEST

/* --- topics ------------------------------------------------------------------------------------------------------- */

static const struct {
	const char *topic;
	enum hw_task_topic word;
	const char *name, *last;
} topics[] = {
	{"my/nodes/hw/pending/ann", HW_TOPIC_PENDING, "hw", "ann"},
	{"my/nodes/hw/pending", HW_TOPIC_PENDING, "hw", ""},
	{"my/nodes/hw/ack/p", HW_TOPIC_ACK, "hw", "p"},
	{"my/nodes/hw/complete", HW_TOPIC_COMPLETE, "hw", ""},
	{"my/nodes/x/failed/y", HW_TOPIC_FAILED, "x", "y"},
	{"my/nodes/hw/status", HW_TOPIC_NONE, NULL, NULL},
	{"my/nodes/hw/ack/", HW_TOPIC_NONE, NULL, NULL},
	{"my/nodes/hw/ack/a/b", HW_TOPIC_NONE, NULL, NULL},
	{"my/nodes/hw", HW_TOPIC_NONE, NULL, NULL},
	{"my/nodes//ack", HW_TOPIC_NONE, NULL, NULL},
	{"my/nodes", HW_TOPIC_NONE, NULL, NULL},
	{"my/nodesx/hw/ack", HW_TOPIC_NONE, NULL, NULL},
	{"your/nodes/hw/ack", HW_TOPIC_NONE, NULL, NULL},
};

START_TEST(test_topics_are_read)
{
	struct hw_text name, last;
	ck_assert_int_eq(hw_task_topic_read("my/nodes", topics[_i].topic, strlen(topics[_i].topic), &name, &last),
	                 topics[_i].word);
	if (topics[_i].name) {
		expect_text(name, topics[_i].name);
		expect_text(last, topics[_i].last);
	}
}
END_TEST

/* --- what goes out ------------------------------------------------------------------------------------------------ */

static struct hw_text text_of(const char *s)
{
	return (struct hw_text){s, strlen(s)};
}

START_TEST(test_what_goes_out)
{
	struct hw_message m = {0};
	struct hw_task_id task;
	ck_assert(hw_task_id_parse(&task, TASK, HW_TASK_TEXT));
	const struct hw_task_claimed c = {.sender = text_of("an\"n"),
	                                  .receiver = text_of("p"),
	                                  .action = text_of("set"),
	                                  .body = text_of("{\"b\" : 2.50}"),
	                                  .exp_ms = 1790000009999};
	ck_assert_int_eq(hw_message_pending(&m, "hw", &task, &c, 1790000000999), 0);
	ck_assert_str_eq(m.at, "{\"sender\":\"hw\",\"receiver\":\"p\",\"msg_id\":\"" TASK
	                       "\",\"action\":\"set\",\"time\":1790000000,"
	                       "\"exp\":1790000009,\"payload\":{\"b\" : 2.50},\"origin\":\"an\\\"n\"}");
	ck_assert(hw_json_object_valid(m.at, m.len));
	struct hw_notice n = {.msg_id = text_of("m"),
	                      .receiver = text_of("p"),
	                      .task = &task,
	                      .state = HW_TASK_ACKED,
	                      .time_ms = 1790000000007};
	ck_assert_int_eq(hw_message_ack(&m, &n), 0);
	ck_assert_str_eq(m.at, "{\"msg_id\":\"m\",\"task\":\"" TASK
	                       "\",\"receiver\":\"p\",\"state\":\"acked\",\"time\":1790000000.007}");
	n.state = HW_TASK_COMPLETE;
	n.value = text_of("[1 ]");
	n.late = true;
	ck_assert_int_eq(hw_message_complete(&m, &n), 0);
	ck_assert_str_eq(m.at, "{\"msg_id\":\"m\",\"task\":\"" TASK "\",\"receiver\":\"p\",\"state\":\"complete\","
	                       "\"time\":1790000000.007,\"value\":[1 ],\"late\":true}");
	n = (struct hw_notice){.msg_id = text_of("m"), .refused = true, .why = "no \"action\"", .time_ms = 1000};
	ck_assert_int_eq(hw_message_failed(&m, &n), 0);
	ck_assert_str_eq(m.at,
	                 "{\"msg_id\":\"m\",\"state\":\"refused\",\"time\":1.000,\"error\":\"no \\\"action\\\"\"}");
	ck_assert_int_eq(hw_message_topic(&m, "a/nodes", text_of("ann"), HW_TOPIC_FAILED), 0);
	ck_assert_str_eq(m.at, "a/nodes/ann/failed");
	hw_message_fini(&m);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("messages of tasks");
	TCase *tc = tcase_create("messages");
	tcase_add_test(tc, test_a_submission_is_read);
	tcase_add_test(tc, test_what_is_not_given_is_not_there);
	tcase_add_test(tc, test_of_several_members_the_first_counts_and_escapes_are_read);
	tcase_add_test(tc, test_a_topic_is_published_on);
	tcase_add_test(tc, test_the_other_actions_are_read);
	tcase_add_loop_test(tc, test_bad_input_is_told_what_is_wrong, 0, (int)(sizeof(refused) / sizeof(*refused)));
	tcase_add_test(tc, test_who_is_wrong_can_be_told_so);
	tcase_add_test(tc, test_a_message_has_at_most_64_kib);
	tcase_add_test(tc, test_a_task_of_the_api_is_flat);
	tcase_add_test(tc, test_what_the_api_refuses);
	tcase_add_test(tc, test_a_call_is_read);
	tcase_add_test(tc, test_responses_are_read);
	tcase_add_test(tc, test_what_others_say_is_read);
	tcase_add_test(tc, test_a_filter_covers_another);
	tcase_add_loop_test(tc, test_topics_are_read, 0, (int)(sizeof(topics) / sizeof(*topics)));
	tcase_add_test(tc, test_what_goes_out);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

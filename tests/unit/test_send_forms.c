/* SPDX-License-Identifier: MIT */
/* A message in the form of each receiver: whatever a device is named, it stays in its place, and within the receiver's
 * limits. */
#include <check.h>
#include <errno.h>
#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../suite.h"
#include "alert/send/alerts.h"
#include "alert/send/form.h"
#include "alert/send/note.h"
#include "alert/send/transfer.h"
#include "heartwheel/json.h"
#include "http/buffer.h"
#include "http/json.h"

#define NOW_MS INT64_C(1700000000000)

static struct hw_receiver_settings conf;
static char key[] = "R1", from[] = "Hub <hub@example.org>", to[] = "ops@example.org", none[] = "";
static struct hw_receiver_secrets secrets = {.key = key};
static struct hw_send_message m;
static char *json;

/* What a news says, for message_of(). Zero and NULL are left out. */
struct news {
	const char *what, *kind, *state, *device, *name, *group, *sentence, *by, *note, *labels;
	int down, unreachable, devices;
};

static void put_news(struct hw_json *j, const struct news *n, int k)
{
	char id[16];
	snprintf(id, sizeof(id), "0abcdefgh%03d", k);
	hw_json_open(j, '{');
	hw_json_text(j, "what", n->what ? n->what : "opened");
	hw_json_open_member(j, "incident", '{');
	hw_json_text(j, "id", id);
	hw_json_text(j, "kind", n->kind ? n->kind : "device");
	hw_json_text(j, "state", n->state ? n->state : "open");
	hw_json_text(j, "device", n->device);
	hw_json_text(j, "name", n->name ? n->name : n->device);
	hw_json_text(j, "group", n->group);
	hw_json_text(j, "by", n->by);
	hw_json_text(j, "note", n->note);
	hw_json_text(j, "sentence", n->sentence ? n->sentence : "device d is offline");
	hw_json_int(j, "since_ms", NOW_MS - 90000);
	hw_json_int(j, "opened_ms", NOW_MS - 80000);
	hw_json_int(j, "down", n->down);
	hw_json_int(j, "unreachable", n->unreachable);
	if (n->labels)
		hw_json_raw(j, "labels", n->labels, strlen(n->labels));
	hw_json_open_member(j, "devices", '[');
	for (int i = 0; i < n->devices; i++)
		hw_json_item(j, n->device ? n->device : "d");
	hw_json_close(j, ']');
	hw_json_close(j, '}');
	hw_json_close(j, '}');
}

/* Parses a message with these news into `m`. */
static void message_of(const struct news *news, size_t n, int more)
{
	struct hw_json j;
	struct evbuffer *b = evbuffer_new();
	hw_json_begin(&j, b);
	hw_json_open(&j, '{');
	hw_json_text(&j, "message", "ops-17");
	hw_json_text(&j, "node", "hub");
	hw_json_int(&j, "time_ms", NOW_MS);
	hw_json_text(&j, "summary", news->sentence ? news->sentence : "s");
	hw_json_int(&j, "more", more);
	hw_json_open_member(&j, "news", '[');
	for (size_t k = 0; k < n; k++)
		put_news(&j, &news[k], (int)k);
	hw_json_close(&j, ']');
	hw_json_close(&j, '}');
	ck_assert_int_eq(hw_json_end(&j), 0);
	hw_send_message_fini(&m);
	free(json);
	json = hw_buffer_text(b);
	evbuffer_free(b);
	ck_assert_int_eq(hw_send_message_parse(&m, json, strlen(json)), 0);
}

#define MESSAGE(...) message_of(&(struct news){__VA_ARGS__}, 1, 0)

static struct hw_note *form(enum hw_receiver_type type, enum hw_notify_template as)
{
	conf.type = (int)type;
	conf.template = (int)as;
	struct hw_note *note = hw_form_template(&conf, &m, json, strlen(json));
	ck_assert_ptr_nonnull(note);
	return note;
}

static char *words(const char *text)
{
	return (char *)(uintptr_t)text;
}

static void set_up(void)
{
	setenv("TZ", "UTC", 1);
	tzset();
	conf = (struct hw_receiver_settings){
		.title = words("{summary}"), .text = words("{list}"), .mail_from = from, .mail_to = to, .url = none};
}

static void tear_down(void)
{
	hw_send_message_fini(&m);
	free(json);
	json = NULL;
}

/* --- reading */

START_TEST(only_messages_are_read)
{
	static const char *const wrong[] = {
		"",
		"[]",
		"{}",
		"{\"news\":[]}",
		"{\"news\":{}}",
		"{\"news\":[1]}",
		"{\"news\":[{\"what\":\"opened\"}]}",
		"{\"news\":[{\"what\":\"none\",\"incident\":{\"id\":\"a\",\"kind\":\"device\"}}]}",
		"{\"news\":[{\"what\":\"opened\",\"incident\":{\"id\":\"\",\"kind\":\"device\"}}]}",
		"{\"news\":[{\"what\":\"opened\",\"incident\":{\"id\":\"a\\nb\",\"kind\":\"device\"}}]}",
		"{\"news\":[{\"what\":\"opened\",\"incident\":{\"id\":\"0123456789abc\",\"kind\":\"device\"}}]}",
		"{\"news\":[{\"what\":\"opened\",\"incident\":{\"id\":\"a\",\"kind\":\"parent\"}}]}",
		"{\"news\":[{\"what\":\"opened\",\"incident\":{\"id\":\"a\",\"kind\":\"device\"}}],\"x\":\"\xff\"}",
	};
	for (size_t k = 0; k < sizeof(wrong) / sizeof(*wrong); k++)
		ck_assert_msg(hw_send_message_parse(&m, wrong[k], strlen(wrong[k])) == -EINVAL, "%s", wrong[k]);
	/* Values of a wrong type, and beyond their bounds, are as if they were missing. */
	static const char odd[] =
		"{\"message\":\"a b\",\"time_ms\":1e300,\"summary\":3,\"more\":{\"opened\":2,\"closed\":3,"
		"\"grown\":-1},\"news\":[{\"what\":\"opened\",\"incident\":{\"id\":\"a\",\"kind\":\"mass\","
		"\"down\":-1,\"unreachable\":\"x\",\"devices\":7,\"labels\":[1]}}]}";
	ck_assert_int_eq(hw_send_message_parse(&m, odd, strlen(odd)), 0);
	ck_assert_str_eq(m.key, "");
	ck_assert_str_eq(m.summary, "");
	ck_assert_int_eq(m.time_ms, 0);
	ck_assert_uint_eq(m.more, 5);
	ck_assert_uint_eq(m.news[0].incident.down + m.news[0].incident.unreachable, 0);
}
END_TEST

/* --- templates */

START_TEST(json_is_passed_on)
{
	MESSAGE(.device = "a\"\\\n");
	struct hw_note *note = form(HW_RECEIVER_WEBHOOK, HW_NOTIFY_JSON);
	ck_assert_str_eq(note->text, json);
	ck_assert_str_eq(note->type, "application/json");
	hw_note_free(note);
}
END_TEST

START_TEST(each_news_is_a_line)
{
	static const struct news news[] = {
		{.sentence = "gateway ga is offline: 25 devices behind it", .down = 1, .unreachable = 25},
		{.what = "closed", .state = "closed", .sentence = "device b was offline"},
		{.what = "acknowledged",
	         .sentence = "device c is offline",
	         .by = "anna",
	         .note = "on my way\nsoon",
	         .down = 1},
		{.what = "merged", .state = "merged", .sentence = "device d was offline"},
		{.what = "reminder", .sentence = "device e is offline", .down = 1},
		{.what = "grown", .sentence = "2,000 devices are offline", .down = 2000},
		{.what = "steady", .sentence = "device f is offline", .down = 1},
	};
	message_of(news, sizeof(news) / sizeof(*news), 3);
	conf.title = words("{count} {now}; {node} {time} {device}{group} {status} {silent}");
	struct hw_note *note = form(HW_RECEIVER_EXEC, HW_NOTIFY_TEXT);
	ck_assert_str_eq(note->text,
	                 "2,029 2,029 of these devices are offline now; hub 2023-11-14 22:13:20 +0000  opened "
	                 "1 min 30 s\n\ngateway ga is offline: 25 devices behind it\n"
	                 "device b was offline\n"
	                 "acknowledged by anna: device c is offline (on my way\\u000asoon)\n"
	                 "part of a larger incident: device d was offline\n"
	                 "still: device e is offline\n"
	                 "more devices: 2,000 devices are offline\n"
	                 "no longer unsteady: device f is offline\n"
	                 "... and 3 more\n");
	hw_note_free(note);
}
END_TEST

/* {device} has the name first. A name cannot begin a header, end a JSON string, or call people. */
START_TEST(names)
{
	MESSAGE(.device = "d", .name = "Pump 7\r\nBcc: x@y <!channel> \"q\" @here \u00e4", .sentence = "s");
	conf.title = words("{device}");
	conf.text = words("");
	struct hw_note *note = form(HW_RECEIVER_EXEC, HW_NOTIFY_TEXT);
	ck_assert_str_eq(note->text, "Pump 7\\u000d\\u000aBcc: x@y <!channel> \"q\" @here \u00e4 (d)\n");
	hw_note_free(note);
	note = form(HW_RECEIVER_NTFY, HW_NOTIFY_JSON);
	ck_assert_ptr_nonnull(strstr(note->headers, "Title: =?UTF-8?B?"));
	ck_assert_ptr_null(strstr(note->headers, "Bcc"));
	hw_note_free(note);
	note = form(HW_RECEIVER_SMTP, HW_NOTIFY_JSON);
	ck_assert_ptr_null(strstr(note->text, "\nBcc:"));
	hw_note_free(note);
	note = form(HW_RECEIVER_SLACK, HW_NOTIFY_JSON);
	ck_assert_ptr_nonnull(strstr(note->text, "&lt;!channel&gt; \\\"q\\\" @\u200bhere"));
	hw_note_free(note);
	MESSAGE(.device = "d", .name = "d");
	note = form(HW_RECEIVER_EXEC, HW_NOTIFY_TEXT);
	ck_assert_str_eq(note->text, "d\n");
	hw_note_free(note);
}
END_TEST

START_TEST(a_long_list_is_cut_with_a_count)
{
	struct news news[100];
	for (size_t k = 0; k < 100; k++)
		news[k] = (struct news){.sentence = "device d is offline", .down = 1};
	message_of(news, 100, 900);
	struct hw_note *note = form(HW_RECEIVER_NTFY, HW_NOTIFY_JSON);
	ck_assert_ptr_nonnull(strstr(note->text, "\n... and 980 more"));
	ck_assert_uint_lt(note->len, 2000);
	hw_note_free(note);
}
END_TEST

START_TEST(slack_calls_nobody)
{
	MESSAGE(.sentence = "device <!channel> <@U1> &amp; \"q\"\\ @here\n\u202e\u00e4 is offline");
	conf.text = words("");
	struct hw_note *note = form(HW_RECEIVER_SLACK, HW_NOTIFY_JSON);
	ck_assert_str_eq(note->text, "{\"text\":\"device &lt;!channel&gt; &lt;@\u200bU1&gt; &amp;amp; \\\"q\\\"\\\\ "
	                             "@\u200bhere\\\\u000a\\\\u202e\u00e4 is offline\"}");
	hw_note_free(note);
}
END_TEST

START_TEST(ntfy_has_its_headers)
{
	MESSAGE(.sentence = "device a\r\nX-Evil: 1 is offline");
	struct hw_note *note = form(HW_RECEIVER_NTFY, HW_NOTIFY_JSON);
	ck_assert_str_eq(note->headers,
	                 "Title: device a\\u000d\\u000aX-Evil: 1 is offline\nPriority: high\nTags: warning\n");
	hw_note_free(note);
	MESSAGE(.what = "closed", .state = "closed", .sentence = "\u00e4");
	note = form(HW_RECEIVER_NTFY, HW_NOTIFY_JSON);
	ck_assert_str_eq(note->headers, "Title: =?UTF-8?B?w6Q=?=\nPriority: default\nTags: white_check_mark\n");
	hw_note_free(note);
}
END_TEST

START_TEST(a_mail_is_the_same_when_repeated)
{
	MESSAGE(.sentence = "device a\r\nBcc: x@y\r\n\r\nbody \u20ac is offline");
	struct hw_note *first = form(HW_RECEIVER_SMTP, HW_NOTIFY_JSON), *again = form(HW_RECEIVER_SMTP, HW_NOTIFY_JSON);
	ck_assert_str_eq(first->text, again->text);
	ck_assert_ptr_nonnull(strstr(first->text, "\r\nMessage-ID: <heartwheel.ops-17.1700000000000@example.org>\r\n"));
	ck_assert_ptr_nonnull(strstr(first->text, "\r\nDate: Tue, 14 Nov 2023 22:13:20 +0000\r\n"));
	ck_assert_ptr_null(strstr(first->text, "\r\nBcc:"));
	for (const char *c = first->text; *c; c++)
		ck_assert_msg((*c >= ' ' && *c <= '~') || *c == '\r' || *c == '\n', "%02x", (unsigned char)*c);
	hw_note_free(first);
	hw_note_free(again);
}
END_TEST

/* --- PagerDuty */

/* Checks an event by the published schema of Events v2. The caller frees the tree. */
static cJSON *event(bool resolve)
{
	struct hw_note *note = hw_form_pagerduty(&secrets, &m, resolve);
	ck_assert_ptr_nonnull(note);
	ck_assert_uint_le(note->len, 512 << 10);
	ck_assert(hw_json_object_valid(note->text, note->len));
	cJSON *e = hw_json_tree(note->text, note->len);
	hw_note_free(note);
	const char *action = cJSON_GetStringValue(cJSON_GetObjectItem(e, "event_action"));
	ck_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(e, "routing_key")), "R1");
	ck_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(e, "dedup_key")), "heartwheel/0abcdefgh000");
	const cJSON *payload = cJSON_GetObjectItem(e, "payload");
	ck_assert(!payload == (strcmp(action, "trigger") != 0));
	if (payload) {
		const char *summary = cJSON_GetStringValue(cJSON_GetObjectItem(payload, "summary"));
		ck_assert_uint_ge(strlen(summary), 1);
		ck_assert_uint_le(strlen(summary), 1024);
		ck_assert_uint_ge(strlen(cJSON_GetStringValue(cJSON_GetObjectItem(payload, "source"))), 1);
		ck_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(payload, "timestamp")),
		                 "2023-11-14T22:11:50.000Z");
	}
	return e;
}

static void expect_event(const char *action, const char *severity)
{
	cJSON *e = event(false);
	ck_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(e, "event_action")), action);
	if (severity)
		ck_assert_str_eq(
			cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetObjectItem(e, "payload"), "severity")),
			severity);
	cJSON_Delete(e);
}

START_TEST(pagerduty_actions)
{
	MESSAGE(.device = "d", .down = 1);
	expect_event("trigger", "error");
	MESSAGE(.device = "d", .down = 1, .unreachable = 3);
	expect_event("trigger", "critical");
	MESSAGE(.kind = "mass", .group = "g", .down = 20);
	expect_event("trigger", "critical");
	MESSAGE(.kind = "blind");
	expect_event("trigger", "critical");
	MESSAGE(.kind = "unseen", .down = 1);
	expect_event("trigger", "warning");
	MESSAGE(.kind = "task");
	expect_event("trigger", "warning");
	MESSAGE(.what = "flapping", .device = "d");
	expect_event("trigger", "error");
	MESSAGE(.what = "reminder", .device = "d");
	expect_event("trigger", "error");
	MESSAGE(.what = "acknowledged");
	expect_event("acknowledge", NULL);
	MESSAGE(.what = "closed", .state = "closed");
	expect_event("resolve", NULL);
	MESSAGE(.what = "merged", .state = "merged");
	expect_event("resolve", NULL);
	MESSAGE(.what = "test", .state = "closed");
	expect_event("trigger", "info");
	cJSON *e = event(true);
	ck_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(e, "event_action")), "resolve");
	cJSON_Delete(e);
}
END_TEST

START_TEST(pagerduty_limits)
{
	char text[3001] = "", id[513] = "";
	while (strlen(text) + 3 < sizeof(text))
		strcat(text, "\u20ac");
	while (strlen(id) + 1 < sizeof(id))
		strcat(id, "\"");
	MESSAGE(.sentence = text, .device = id, .name = "a\nb", .group = "a\nb\x01", .note = text, .devices = 30);
	cJSON *e = event(false);
	const cJSON *payload = cJSON_GetObjectItem(e, "payload"),
		    *details = cJSON_GetObjectItem(payload, "custom_details");
	ck_assert_uint_ge(strlen(cJSON_GetStringValue(cJSON_GetObjectItem(payload, "summary"))), 1020);
	ck_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(payload, "source")), id);
	ck_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(payload, "group")), "a\\u000ab\\u0001");
	ck_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(details, "name")), "a\\u000ab");
	ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(details, "devices")), 30);
	cJSON_Delete(e);
	MESSAGE(.sentence = "");
	e = event(false);
	ck_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetObjectItem(e, "payload"), "summary")),
	                 "an incident of heartwheel");
	ck_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetObjectItem(e, "payload"), "source")), "hub");
	cJSON_Delete(e);
}
END_TEST

/* --- Alertmanager */

START_TEST(alert_labels)
{
	MESSAGE(.device = "d\n1", .group = "g\u00e4",
	        .labels = "{\"site\":\"north\",\"a.b\":\"1\",\"a-b\":\"2\",\"9\":\"3\",\"group\":\"4\",\"__x\":\"5\","
	                  "\"e\":\"\","
	                  "\"n\":6,\"\":\"7\",\"\u00e4\":\"8\"}");
	char *labels = hw_form_alert_labels(&m.news[0].incident, false);
	ck_assert_str_eq(
		labels,
		"{\"alertname\":\"HeartwheelDevice\",\"incident\":\"0abcdefgh000\",\"device\":\"d\\\\u000a1\","
		"\"group\":\"g\u00e4\",\"site\":\"north\",\"a_b\":\"1\",\"label_9\":\"3\",\"label_group\":\"4\","
		"\"label___x\":\"5\",\"__\":\"8\"}");
	free(labels);
	labels = hw_form_alert_labels(&m.news[0].incident, true);
	ck_assert_ptr_nonnull(strstr(labels, "\"alertname\":\"HeartwheelTest\""));
	free(labels);
}
END_TEST

static char *written(const struct hw_alerts *a, char *after, int expected)
{
	struct evbuffer *b = evbuffer_new();
	ck_assert_int_eq(hw_alerts_batch(a, after, NOW_MS, b), expected);
	char *text = hw_buffer_text(b);
	evbuffer_free(b);
	return text;
}

START_TEST(alerts_end_as_their_incidents)
{
	struct hw_alerts a = {0};
	char after[HW_INCIDENT_ID + 1] = "", *text;
	MESSAGE(.device = "d", .labels = "{\"site\":\"north\"}", .sentence = "one");
	ck_assert_ptr_nonnull(hw_alerts_put(&a, &m.news[0].incident, NOW_MS));
	text = written(&a, after, 1);
	ck_assert_str_eq(
		text, "{\"labels\":{\"alertname\":\"HeartwheelDevice\",\"incident\":\"0abcdefgh000\",\"device\":\"d\","
		      "\"site\":\"north\"},\"annotations\":{\"summary\":\"one\",\"down\":\"0\",\"unreachable\":\"0\"},"
		      "\"startsAt\":\"2023-11-14T22:11:50.000Z\",\"endsAt\":\"2023-11-15T22:13:20.000Z\"}");
	free(text);
	/* The labels are the identity: they stay, while the annotations follow. The name is an annotation. */
	MESSAGE(.what = "closed", .state = "closed", .device = "d", .name = "a\nb", .labels = "{\"site\":\"south\"}",
	        .sentence = "two");
	ck_assert_ptr_nonnull(hw_alerts_put(&a, &m.news[0].incident, NOW_MS));
	after[0] = '\0';
	text = written(&a, after, 1);
	ck_assert_ptr_nonnull(strstr(text, "\"site\":\"north\""));
	ck_assert_ptr_nonnull(
		strstr(text, "\"device\":\"d\",\"site\":\"north\"},\"annotations\":{\"summary\":\"two\",\"name\":"
	                     "\"a\\\\u000ab\","));
	ck_assert_ptr_nonnull(strstr(text, "\"endsAt\":\"2023-11-14T22:13:20.000Z\""));
	free(text);
	hw_alerts_expire(&a, NOW_MS + HW_ALERT_CLOSED_MS);
	ck_assert_uint_eq(a.n, 1);
	hw_alerts_expire(&a, NOW_MS + HW_ALERT_CLOSED_MS + 1);
	ck_assert_uint_eq(a.n, 0);
	/* A task is a notice: its alert ends by itself. */
	MESSAGE(.kind = "task");
	ck_assert_int_gt(hw_alerts_put(&a, &m.news[0].incident, NOW_MS)->closed_ms, NOW_MS);
	hw_alerts_fini(&a);
}
END_TEST

/* Against a plain list: ids in any order, each posted once in a round of batches. */
START_TEST(batches_have_each_alert_once)
{
	struct hw_alerts a = {0};
	unsigned seed = 7, n = 0;
	char id[1000][HW_INCIDENT_ID + 1], after[HW_INCIDENT_ID + 1] = "", *text;
	MESSAGE(.device = "d");
	for (size_t k = 0; k < 1000; k++) {
		struct hw_send_incident i = m.news[0].incident;
		snprintf(i.id, sizeof(i.id), "%09u", (unsigned)rand_r(&seed) % 700);
		memcpy(id[k], i.id, sizeof(i.id));
		ck_assert_ptr_nonnull(hw_alerts_put(&a, &i, NOW_MS));
	}
	for (size_t k = 0; k < 1000; k++) {
		bool first = true;
		for (size_t i = 0; i < k; i++)
			first &= strcmp(id[i], id[k]) != 0;
		n += first;
	}
	ck_assert_uint_eq(a.n, n);
	for (unsigned left = n; left > 0; left -= left < HW_ALERT_BATCH ? left : HW_ALERT_BATCH) {
		text = written(&a, after, left < HW_ALERT_BATCH ? (int)left : HW_ALERT_BATCH);
		free(text);
	}
	text = written(&a, after, 0);
	free(text);
	for (size_t k = 1; k < a.n; k++)
		ck_assert_int_lt(strcmp(a.at[k - 1].id, a.at[k].id), 0);
	hw_alerts_fini(&a);
}
END_TEST

/* --- what a server says */

START_TEST(answers_are_printable)
{
	char shown[HW_SEND_WORDS], longest[2000];
	static const struct {
		const char *text, *words;
	} cases[] = {
		{"", ""},
		{"  \r\n ", ""},
		{"{\"a\":\n  1}\r\n", "{\"a\": 1}"},
		{"\x1b[31mred\x07", "\\u001b[31mred\\u0007"},
		{"\xff\xc3", "\\xff\\xc3"},
		{"\u202eolleh", "\\u202eolleh"},
	};
	for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
		hw_try_words(shown, cases[k].text, strlen(cases[k].text));
		ck_assert_str_eq(shown, cases[k].words);
	}
	hw_try_words(shown, "a\0b", 3);
	ck_assert_str_eq(shown, "a b");
	for (size_t at = 0; at < 3; at++) {
		memset(longest, 'x', at);
		for (size_t k = at; k + 3 <= sizeof(longest); k += 3)
			memcpy(longest + k, "\u20ac", 3);
		hw_try_words(shown, longest, sizeof(longest) - 3);
		ck_assert_uint_lt(strlen(shown), sizeof(shown));
		ck_assert_ptr_null(strchr(shown, '\\'));
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("send_forms");
	TCase *t = tcase_create("all");
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, only_messages_are_read);
	tcase_add_test(t, json_is_passed_on);
	tcase_add_test(t, each_news_is_a_line);
	tcase_add_test(t, names);
	tcase_add_test(t, a_long_list_is_cut_with_a_count);
	tcase_add_test(t, slack_calls_nobody);
	tcase_add_test(t, ntfy_has_its_headers);
	tcase_add_test(t, a_mail_is_the_same_when_repeated);
	tcase_add_test(t, pagerduty_actions);
	tcase_add_test(t, pagerduty_limits);
	tcase_add_test(t, alert_labels);
	tcase_add_test(t, alerts_end_as_their_incidents);
	tcase_add_test(t, batches_have_each_alert_once);
	tcase_add_test(t, answers_are_printable);
	suite_add_tcase(s, t);
	return suite_run(s);
}

/* SPDX-License-Identifier: MIT */
/*
 * What payloads say, as tables; then anything at all, which must be safe. Payloads are handed over in blocks that end
 * where they do, so that valgrind and the sanitizers see a read past them.
 */
#include <check.h>
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../random.h"
#include "../suite.h"
#include "heartwheel/json_writer.h"
#include "heartwheel/payload.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static struct hw_payload p;

static void decode(const void *bytes, size_t len)
{
	unsigned char *exact = malloc(len ? len : 1);
	ck_assert_ptr_nonnull(exact);
	memcpy(exact, bytes, len);
	memset(&p, 0xa5, sizeof(p)); /* nothing may be left as it was */
	hw_payload_decode(&p, exact, len);
	memset(exact, 0, len);
	free(exact);
}

static void teardown(void)
{
	hw_payload_fini(&p);
	ck_assert_uint_eq(p.report.has, 0);
}

/* What kind of payload it is, and whether it is malformed. */
#define PLAIN   HW_PAYLOAD_PLAIN
#define FIELDS  HW_PAYLOAD_FIELDS
#define MONITOR HW_PAYLOAD_MONITOR
#define B(s)    s, sizeof(s) - 1
static const struct {
	const char *bytes;
	size_t len;
	enum hw_payload_kind kind;
	bool malformed;
} kinds[] = {
	{B(""), PLAIN, false},
	{B("   "), PLAIN, false},
	{B("alive"), PLAIN, false},
	{B("87"), PLAIN, false},
	{B("[1,2]"), PLAIN, false},
	{B("\"{}\""), PLAIN, false},
	{B("\0{}"), PLAIN, false},
	{B("\v{}"), PLAIN, false}, /* no JSON white space */
	{B("\xef\xbb\xbf{}"), PLAIN, false},
	{B("\xff\xfe\x00\x01"), PLAIN, false},
	{B("{}"), FIELDS, false},
	{B(" \t\r\n{} \t\r\n"), FIELDS, false},
	{B("{ \"a\" : [ { } , null , \"}\" ] }"), FIELDS, false},
	{B("{\"\":1}"), FIELDS, false},
	{B("{\"a\\\"}\":\"\\\\\"}"), FIELDS, false},
	{B("{\"a\":\"caf\xc3\xa9 \\u00e9 \\ud83d\\ude00\"}"), FIELDS, false},
	{B("{"), PLAIN, true},
	{B(" {"), PLAIN, true},
	{B("{ \n"), PLAIN, true},
	{B("}{"), PLAIN, false},
	{B("{}}"), PLAIN, true},
	{B("{}{}"), PLAIN, true},
	{B("{}x}"), PLAIN, true},
	{B("{} garbage"), PLAIN, true},
	{B("{}\0"), PLAIN, true},
	{B("{\0}"), PLAIN, true},
	{B("{\"a\":1\0}"), PLAIN, true},
	{B("{\v}"), PLAIN, true},
	{B("{online:false}"), PLAIN, true},
	{B("{\"a\"}"), PLAIN, true},
	{B("{\"a\":}"), PLAIN, true},
	{B("{\"a\":1,}"), PLAIN, true},
	{B("{\"a\":1,"), PLAIN, true},
	{B("{\"1\":1,"), PLAIN, true},
	{B("{\"a\":{}"), PLAIN, true},
	{B("{\"a\":[}"), PLAIN, true},
	{B("{\"a\":[1,}"), PLAIN, true},
	{B("{\"a\":\"}"), PLAIN, true},
	{B("{\"a\":\"\\}"), PLAIN, true},
	{B("{\"a\":\"\\"), PLAIN, true},
	{B("{\"a\":tru}"), PLAIN, true},
	{B("{\"a\":True}"), PLAIN, true},
	{B("{\"a\":nan}"), PLAIN, true},
	{B("{\"a\":'x'}"), PLAIN, true},
	{B("{\"a\":\"\\x\"}"), PLAIN, true},
	{B("{\"a\":\"\\\xc3\xa9\"}"), PLAIN, true},
	{B("{\"a\":\"\\ud83d\"}"), PLAIN, true},
	{B("{\"a\":\"\\u00zz\"}"), PLAIN, true},
	{B("{\"a\":\"\xc3\"}"), PLAIN, true},
	{B("{\"a\":\"\xed\xa0\x80\"}"), PLAIN, true},
	{B("{\"a\":\"x\ny\"}"), PLAIN, true}, /* a control character must be escaped */
	{B("{\"a\":\"x\\ny\"}"), FIELDS, false},
	{B("{\"online\\u0000x\":false}"), PLAIN, true},
	{B("{\"a\":\"\\\\u0000\"}"), FIELDS, false}, /* an escaped backslash, then text */
	{B("{\"by\":\"m\",\"seq\":1,\"online\":false}"), MONITOR, false},
	{B("{\"by\":\"m\",\"seq\":1,\"canary\":true}"), MONITOR, false},
	{B("{\"by\":\"m\",\"seq\":1,\"cluster\":\"heartwheel\",\"known\":\"0-255:1:m\"}"), MONITOR, false},
	{B("{\"online\":true,\"seq\":1,\"by\":\"\"}"), MONITOR, false},
	{B("{\"by\":\"m\",\"seq\":1,\"battery\":\"x\",\"time\":[],\"timeout\":-1,\"online\":true}"), MONITOR, false},
	{B("{\"by\":\"m\",\"seq\":1}"), FIELDS, false},
	{B("{\"by\":\"m\",\"seq\":1,\"online\":3}"), FIELDS, true},
	{B("{\"by\":\"m\",\"seq\":1,\"canary\":false,\"cluster\":7}"), FIELDS, false},
	{B("{\"by\":\"m\",\"online\":true}"), FIELDS, false},
	{B("{\"by\":\"m\"}"), FIELDS, false},
	{B("{\"seq\":1}"), FIELDS, false},
	{B("{\"by\":\"m\",\"seq\":\"1\",\"online\":true}"), FIELDS, false},
	{B("{\"by\":1,\"seq\":1,\"online\":true}"), FIELDS, false},
	{B("{\"by\":1,\"by\":\"m\",\"seq\":1,\"online\":true}"), FIELDS, false}, /* the first counts */
};

START_TEST(kind)
{
	decode(kinds[_i].bytes, kinds[_i].len);
	ck_assert_msg(p.kind == kinds[_i].kind && p.malformed == kinds[_i].malformed, "%s: kind %d malformed %d",
	              kinds[_i].bytes, p.kind, p.malformed);
	ck_assert(!p.goodbye && !p.timeout_refused && !p.has_timeout && !p.has_time);
	if (p.kind != MONITOR)
		ck_assert(p.report.has == 0 && !p.online && p.by[0] == '\0' && p.reason[0] == '\0' && p.seq == 0);
}
END_TEST

/* What is in force, as one text: goodbye, time, timeout, report, then `!` if malformed, `?` if the timeout is refused.
 */
static const struct {
	const char *text, *says;
} fields[] = {
	{"{}", ""},
	{"{\"online\":true}", ""},
	{"{\"online\":false}", "goodbye"},
	{"{\"online\":0}", "!"},
	{"{\"online\":\"false\"}", "!"},
	{"{\"online\":null}", "!"},
	{"{\"Online\":false}", ""},
	{"{\"online\":true,\"online\":false}", ""},
	{"{\"online\":false,\"online\":true}", "goodbye"},
	{"{\"online\":\"no\",\"online\":false}", "!"},
	{"{\"data\":{\"online\":false}}", ",\"data\":{\"online\":false}"},
	{"{\"time\":1234567890}", "time=1234567890"},
	{"{\"time\":1234567890.25}", "time=1234567890.25"},
	{"{\"time\":0}", "time=0"},
	{"{\"time\":-1}", "time=-1"},
	{"{\"time\":\"12:00\"}", "!"},
	{"{\"time\":1e999}", "!"},
	{"{\"timeout\":310}", "timeout=310"},
	{"{\"timeout\":0.25}", "timeout=0.25"},
	{"{\"timeout\":0}", "timeout=0"},
	{"{\"timeout\":1e300}", "timeout=1e+300"},
	{"{\"timeout\":-0.001}", "?"},
	{"{\"timeout\":1e999}", "?"},
	{"{\"timeout\":-1e999}", "?"},
	{"{\"timeout\":\"30\"}", "?"},
	{"{\"timeout\":null}", "?"},
	{"{\"timeout\":true}", "?"},
	{"{\"timeout\":[30]}", "?"},
	{"{\"timeout\":-1,\"timeout\":5}", "?"},
	{"{\"timeout\":-1,\"battery\":5,\"online\":false}", "goodbye,\"battery\":5?"},
	{"{\"battery\":87}", ",\"battery\":87"},
	{"{\"battery\":87,\"battery\":12}", ",\"battery\":87"},
	{"{\"battery\":\"87\"}", "!"},
	{"{\"battery\":null}", "!"},
	{"{\"battery\":1e999}", "!"},
	{"{\"rssi\":-60.5}", ",\"rssi\":-60.5"},
	{"{\"rssi\":false}", "!"},
	{"{\"rssi\":-1e999}", "!"},
	{"{\"uptime\":1e3}", ",\"uptime\":1000"},
	{"{\"uptime\":{}}", "!"},
	{"{\"ip\":\"192.0.2.7\"}", ",\"ip\":\"192.0.2.7\""},
	{"{\"ip\":\"\"}", ",\"ip\":\"\""},
	{"{\"ip\":7}", "!"},
	{"{\"ip\":\"a\\u0007\"}", "!"},
	{"{\"ip\":\"a\\u007f\"}", "!"},
	{"{\"ip\":\"a\\u0085\"}", "!"},
	{"{\"version\":\"1.2-\\u00e9\\\"\"}", ",\"version\":\"1.2-\xc3\xa9\\\"\""},
	{"{\"version\":[\"1\"]}", "!"},
	{"{\"data\":null}", ",\"data\":null"},
	{"{\"data\":[1, 2.5 ,{ \"a\":\"b c\" }]}", ",\"data\":[1,2.5,{\"a\":\"b c\"}]"},
	{"{\"data\":\"x\\ny\"}", ",\"data\":\"x\\ny\""},
	{"{\"data\":[{\"a\":[1e999]}]}", "!"},
	{"{\"data\":1,\"data\":2}", ",\"data\":1"},
	{"{\"battery\":\"x\",\"rssi\":-1,\"ip\":7,\"version\":\"v\",\"time\":5}",
         "time=5,\"rssi\":-1,\"version\":\"v\"!"},
	{"{\"data\":1,\"uptime\":2,\"version\":\"v\",\"ip\":\"i\",\"rssi\":3,\"battery\":4}",
         ",\"battery\":4,\"rssi\":3,\"ip\":\"i\",\"version\":\"v\",\"uptime\":2,\"data\":1"},
	{"{\"reason\":5,\"last_seen\":\"x\",\"temperature\":\"warm\"}", ""}, /* not ours: no error */
};

/* The report's fields as in a status, after a field that is always there. Returns the length that they need. */
static size_t print_report(const struct hw_report *r, char *buf, size_t cap)
{
	struct hw_json j;
	hw_json_begin_text(&j, buf, cap);
	j.fresh = false;
	hw_json_report(&j, r);
	hw_json_end_text(&j);
	return j.n + j.lost;
}

static void say(char *out, size_t cap)
{
	char number[32], report[2 * HW_REPORT_DATA_MAX];
	*out = '\0';
	if (p.goodbye)
		strcat(out, "goodbye");
	if (p.has_time) {
		hw_number_text(p.time_s, number, sizeof(number));
		strcat(strcat(out, "time="), number);
	}
	if (p.has_timeout) {
		hw_number_text(p.timeout_s, number, sizeof(number));
		strcat(strcat(out, "timeout="), number);
	}
	ck_assert_uint_lt(strlen(out) + print_report(&p.report, report, sizeof(report)) + 3, cap);
	strcat(out, report);
	if (p.malformed)
		strcat(out, "!");
	if (p.timeout_refused)
		strcat(out, "?");
}

START_TEST(field)
{
	char says[512];
	decode(fields[_i].text, strlen(fields[_i].text));
	ck_assert_int_eq(p.kind, HW_PAYLOAD_FIELDS);
	say(says, sizeof(says));
	ck_assert_msg(strcmp(says, fields[_i].says) == 0, "%s says %s, not %s", fields[_i].text, says, fields[_i].says);
	/* What is not there is not half there. */
	ck_assert((p.report.ip != NULL) == !!(p.report.has & HW_HAS_IP));
	ck_assert((p.report.version != NULL) == !!(p.report.has & HW_HAS_VERSION));
	ck_assert((p.report.data != NULL) == !!(p.report.has & HW_HAS_DATA));
}
END_TEST

/* Wraps `n` times `c` in `before` and `after` and decodes that. */
static void decode_long(const char *before, char c, size_t n, const char *after)
{
	char *text = malloc(strlen(before) + n + strlen(after) + 1);
	ck_assert_ptr_nonnull(text);
	strcpy(text, before);
	memset(text + strlen(before), c, n);
	strcpy(text + strlen(before) + n, after);
	decode(text, strlen(text));
	free(text);
}

START_TEST(lengths)
{
	char text[HW_REPORT_DATA_MAX];
	decode_long("{\"ip\":\"", 'i', HW_REPORT_TEXT_MAX, "\"}");
	ck_assert(!p.malformed && p.report.has == HW_HAS_IP && strlen(p.report.ip) == HW_REPORT_TEXT_MAX);
	hw_payload_fini(&p);
	decode_long("{\"ip\":\"", 'i', HW_REPORT_TEXT_MAX + 1, "\",\"battery\":1}");
	ck_assert(p.malformed && p.report.has == HW_HAS_BATTERY);
	hw_payload_fini(&p);
	decode_long("{\"version\":\"", 'v', HW_REPORT_TEXT_MAX + 1, "\"}");
	ck_assert(p.malformed && p.report.has == 0);
	hw_payload_fini(&p);
	decode_long("{\"data\":\"", 'd', HW_REPORT_DATA_MAX - 2, "\"}");
	ck_assert(!p.malformed && p.report.has == HW_HAS_DATA && strlen(p.report.data) == HW_REPORT_DATA_MAX);
	hw_payload_fini(&p);
	decode_long("{\"data\":\"", 'd', HW_REPORT_DATA_MAX - 1, "\",\"battery\":1}");
	ck_assert(p.malformed && p.report.has == HW_HAS_BATTERY);
	hw_payload_fini(&p);
	/* Long in the payload, short in force. */
	decode_long("{\"data\":[1,", ' ', 60000, "2]}");
	ck_assert(!p.malformed);
	ck_assert_str_eq(p.report.data, "[1,2]");
	hw_payload_fini(&p);
	/* Short in the payload, long in force: 1e+15. */
	strcpy(text, "{\"data\":[1");
	for (int i = 0; i < 690; i++)
		strcat(text, ",1e15");
	strcat(text, "]}");
	ck_assert_uint_lt(strlen(text), HW_REPORT_DATA_MAX);
	decode(text, strlen(text));
	ck_assert(p.malformed && p.report.has == 0);
}
END_TEST

START_TEST(monitor)
{
	const char *text = "{\"time\":1234567890,\"online\":true,\"reason\":\"heartbeat\",\"last_seen\":1234567860.5,"
			   "\"by\":\"node-1\",\"seq\":1234567890123,\"battery\":87,\"data\":{\"x\":[]}}";
	decode(text, strlen(text));
	ck_assert_int_eq(p.kind, HW_PAYLOAD_MONITOR);
	ck_assert(!p.malformed && p.online && !p.goodbye && p.has_time);
	ck_assert_double_eq(p.time_s, 1234567890);
	ck_assert_str_eq(p.by, "node-1");
	ck_assert_str_eq(p.reason, "heartbeat");
	ck_assert_int_eq(p.seq, INT64_C(1234567890123));
	ck_assert_double_eq(p.last_seen_s, 1234567860.5);
	ck_assert_uint_eq(p.report.has, HW_HAS_BATTERY | HW_HAS_DATA);
	ck_assert_str_eq(p.report.data, "{\"x\":[]}");
	hw_payload_fini(&p);

	text = "{\"online\":false,\"timeout\":5,\"reason\":\"0123456789abcdef\",\"last_seen\":1e999,\"by\":\"x\","
	       "\"seq\":1}";
	decode(text, strlen(text));
	ck_assert_int_eq(p.kind, HW_PAYLOAD_MONITOR);
	ck_assert(!p.goodbye && !p.online && !p.has_timeout && !p.malformed);
	ck_assert_str_eq(p.reason, ""); /* one byte too long */
	ck_assert_double_eq(p.last_seen_s, 0);
}
END_TEST

START_TEST(monitor_names)
{
	decode_long("{\"seq\":1,\"online\":true,\"by\":\"", 'n', 64, "\"}");
	ck_assert_uint_eq(strlen(p.by), 64);
	decode_long("{\"seq\":1,\"online\":true,\"by\":\"", 'n', 65, "\"}");
	ck_assert_int_eq(p.kind, HW_PAYLOAD_MONITOR);
	ck_assert_str_eq(p.by, "");
}
END_TEST

static const struct {
	const char *text;
	int64_t seq;
} seqs[] = {
	{"0", 0},
	{"1.9", 1},
	{"281474976710655", (INT64_C(1) << 48) - 1},
	{"9007199254740992", INT64_C(1) << 53},
	{"9007199254740994", 0},
	{"1e300", 0},
	{"1e999", 0},
	{"-1e999", 0},
	{"-1", 0},
};

START_TEST(monitor_seq)
{
	char text[64];
	snprintf(text, sizeof(text), "{\"by\":\"m\",\"online\":true,\"seq\":%s}", seqs[_i].text);
	decode(text, strlen(text));
	ck_assert_int_eq(p.kind, HW_PAYLOAD_MONITOR);
	ck_assert_int_eq(p.seq, seqs[_i].seq);
}
END_TEST

static unsigned taken;

static void *count_taken(size_t size)
{
	taken++;
	return malloc(size);
}

/* cJSON's hooks belong to the whole process. Reading a payload does not change them. */
START_TEST(hooks_are_left_alone)
{
	cJSON_InitHooks(&(cJSON_Hooks){count_taken, free});
	decode("{\"a\":\"\\n\"}", 10);
	ck_assert_int_eq(p.kind, HW_PAYLOAD_FIELDS);
	ck_assert_uint_gt(taken, 0);
	taken = 0;
	cJSON_Delete(cJSON_CreateNull());
	ck_assert_uint_eq(taken, 1);
}
END_TEST

START_TEST(deep_nesting)
{
	enum { DEEP = 30000 };
	static char text[2 * DEEP + 16];

	/* Deeper than the parser goes: refused, whole or cut off. */
	memcpy(text, "{\"data\":", 8);
	memset(text + 8, '[', DEEP);
	memset(text + 8 + DEEP, ']', DEEP);
	text[8 + 2 * DEEP] = '}';
	decode(text, 9 + 2 * DEEP);
	ck_assert(p.kind == HW_PAYLOAD_PLAIN && p.malformed);
	decode(text, 8 + DEEP);
	ck_assert(p.kind == HW_PAYLOAD_PLAIN && p.malformed);
	/* Deep, but not too deep. */
	memset(text + 8 + 500, ']', 500);
	text[8 + 1000] = '}';
	decode(text, 9 + 1000);
	ck_assert(p.kind == HW_PAYLOAD_FIELDS && !p.malformed);
	ck_assert_uint_eq(strlen(p.report.data), 1000);
}
END_TEST

START_TEST(any_bytes)
{
	static unsigned char bytes[65536];
	static const char *const pieces[] = {"{",        "}",      "\"",        ",",       ":",     "[",
	                                     "]",        "\\",     "\\u0000",   "null",    "false", "\"by\"",
	                                     "\"seq\":", "1e999",  "-",         "9",       "\xc3",  " ",
	                                     "\n",       "\"a\":", "\"data\":", "\"ip\":", "\x1f",  "\\ud800"};
	for (int round = 0; round < 3000; round++) {
		size_t len = 0, want = 1 + random64() % (round % 500 == 0 ? sizeof(bytes) - 16 : 80);
		bytes[len++] = '{';
		while (len < want) {
			const char *piece = pieces[random64() % (uint64_t)COUNT(pieces)];
			if (random64() % 16 == 0) {
				bytes[len++] = (unsigned char)random64();
				continue;
			}
			memcpy(bytes + len, piece, strlen(piece));
			len += strlen(piece);
		}
		if (random64() % 2)
			bytes[len++] = '}';
		decode(bytes, len);
		hw_payload_fini(&p);
	}
}
END_TEST

START_TEST(broken_json)
{
	const char *good =
		"{\"time\":1.5,\"online\":false,\"battery\":87,\"ip\":\"a\\u00e9\",\"data\":[{\"k\":[null]},\"\\\\\"],"
		"\"timeout\":3,\"by\":\"m\",\"seq\":12}";
	char text[256];
	size_t len = strlen(good);
	/* Cut off anywhere it is no JSON any more. */
	for (size_t n = 1; n < len; n++) {
		decode(good, n);
		ck_assert_msg(p.kind == HW_PAYLOAD_PLAIN && p.malformed && !p.goodbye, "cut at %zu", n);
	}
	/* With bytes exchanged it may be, or not. */
	for (int round = 0; round < 3000; round++) {
		memcpy(text, good, len);
		for (uint64_t k = random64() % 3; k < 3; k++)
			text[random64() % len] = random64() % 2 ? (char)random64() : good[random64() % len];
		decode(text, len);
		hw_payload_fini(&p);
	}
}
END_TEST

/* Puts the report in `text` over the packed report `kept`. Returns the result as JSON. */
static const char *keep(uint8_t *kept, const char *text)
{
	static char json[512];
	uint8_t news[512];
	decode(text, strlen(text));
	struct hw_report was = hw_report_view(kept), is = hw_report_over(&was, &p.report);
	size_t size = hw_report_packed_size(&is);
	ck_assert_uint_le(size, sizeof(news));
	hw_report_pack(&is, news);
	/* If the kept report can be renewed in place, it has the same bytes as one that is packed from scratch. */
	bool renewed = hw_report_renew(kept, &p.report);
	ck_assert(!renewed || memcmp(kept, news, size) == 0);
	memcpy(kept, news, size);
	is = hw_report_view(kept);
	ck_assert_uint_eq(hw_report_packed_size(&is), size);
	print_report(&is, json, sizeof(json));
	hw_payload_fini(&p);
	return json;
}

/* Over what is there; what is not reported stays. */
START_TEST(kept_report)
{
	uint8_t kept[512] = {0};
	ck_assert_str_eq(keep(kept, "{}"), "");
	ck_assert_str_eq(
		keep(kept, "{\"battery\":1,\"rssi\":2,\"uptime\":3,\"ip\":\"i\",\"version\":\"v\",\"data\":4}"),
		",\"battery\":1,\"rssi\":2,\"ip\":\"i\",\"version\":\"v\",\"uptime\":3,\"data\":4");
	ck_assert_str_eq(keep(kept, "{\"rssi\":5,\"version\":\"w\"}"),
	                 ",\"battery\":1,\"rssi\":5,\"ip\":\"i\",\"version\":\"w\",\"uptime\":3,\"data\":4");
	ck_assert_str_eq(keep(kept, "{\"battery\":6,\"uptime\":7,\"ip\":\"jj\",\"data\":[]}"),
	                 ",\"battery\":6,\"rssi\":5,\"ip\":\"jj\",\"version\":\"w\",\"uptime\":7,\"data\":[]");
	ck_assert_str_eq(keep(kept, "{\"battery\":0.1,\"ip\":\"\"}"),
	                 ",\"battery\":0.1,\"rssi\":5,\"ip\":\"\",\"version\":\"w\",\"uptime\":7,\"data\":[]");
}
END_TEST

/* Every number comes back as it was, in 4 bytes if they are enough. */
START_TEST(kept_numbers)
{
	static const struct {
		double v;
		size_t size;
	} numbers[] = {{87, 4},       {-67.5, 4},    {0.1, 8},         {16777216, 4},         {16777217, 8},
	               {-0.0, 4},     {1e300, 8},    {-1e300, 8},      {3.5e38, 8},           {0x1p127, 4},
	               {0x1p-149, 4}, {0x1p-150, 8}, {(double)NAN, 8}, {(double)INFINITY, 8}, {1e-320, 8}};
	for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++) {
		struct hw_report r = {.has = HW_HAS_RSSI, .rssi = numbers[k].v};
		uint8_t kept[HW_REPORT_PACKED_MIN + 8];
		ck_assert_uint_eq(hw_report_packed_size(&r), HW_REPORT_PACKED_MIN + numbers[k].size);
		hw_report_pack(&r, kept);
		struct hw_report back = hw_report_view(kept);
		ck_assert_uint_eq(back.has, HW_HAS_RSSI);
		ck_assert_mem_eq(&back.rssi, &r.rssi, sizeof(r.rssi));
	}
}
END_TEST

START_TEST(dropped_fields)
{
	decode(B("{\"battery\":1,\"rssi\":2,\"ip\":\"i\",\"version\":\"v\",\"data\":4}"));
	hw_report_drop(&p.report, HW_HAS_BATTERY | HW_HAS_IP | HW_HAS_UPTIME);
	ck_assert_uint_eq(p.report.has, HW_HAS_RSSI | HW_HAS_VERSION | HW_HAS_DATA);
	ck_assert_ptr_null(p.report.ip);
	ck_assert_str_eq(p.report.version, "v");
	hw_report_fini(&p.report);
	ck_assert(p.report.has == 0 && !p.report.version && !p.report.data);
	hw_report_fini(&p.report);
}
END_TEST

START_TEST(report_room)
{
	const char *whole = ",\"battery\":87,\"ip\":\"a\\\"b\"";
	size_t len = strlen(whole);
	char *buf;
	decode(B("{\"battery\":87,\"ip\":\"a\\\"b\"}"));
	for (size_t cap = 1; cap < len + 4; cap++) {
		buf = malloc(cap);
		memset(buf, 'z', cap);
		ck_assert_uint_eq(print_report(&p.report, buf, cap), len);
		ck_assert_mem_eq(buf, whole, cap <= len ? cap - 1 : len + 1);
		ck_assert_int_eq(buf[cap <= len ? cap - 1 : len], '\0');
		free(buf);
	}
	buf = malloc(1);
	hw_payload_fini(&p);
	ck_assert_uint_eq(print_report(&p.report, buf, 1), 0);
	ck_assert_str_eq(buf, "");
	free(buf);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("payload");
	TCase *tc = tcase_create("decode");
	random_begin(random_seed_of_now());
	tcase_set_timeout(tc, 120); /* under valgrind */
	tcase_add_checked_fixture(tc, NULL, teardown);
	tcase_add_loop_test(tc, kind, 0, COUNT(kinds));
	tcase_add_loop_test(tc, field, 0, COUNT(fields));
	tcase_add_test(tc, lengths);
	tcase_add_test(tc, monitor);
	tcase_add_test(tc, monitor_names);
	tcase_add_loop_test(tc, monitor_seq, 0, COUNT(seqs));
	tcase_add_test(tc, hooks_are_left_alone);
	tcase_add_test(tc, deep_nesting);
	tcase_add_test(tc, any_bytes);
	tcase_add_test(tc, broken_json);
	tcase_add_test(tc, kept_report);
	tcase_add_test(tc, kept_numbers);
	tcase_add_test(tc, dropped_fields);
	tcase_add_test(tc, report_room);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

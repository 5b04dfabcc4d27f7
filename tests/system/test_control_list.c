/* SPDX-License-Identifier: MIT */
/* GET /v1/devices: filters, paging while devices come and go, and long scans that must not delay the loop. */
#include <check.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../suite.h"
#include "control_rig.h"

/* Devices from PREFIX0000FROM on; `digits`: at least so many. */
static void add(const char *prefix, int digits, int from, int to)
{
	for (int i = from; i < to; i++) {
		char id[64];
		snprintf(id, sizeof(id), "%s%0*d", prefix, digits, i);
		server_beat(&s, 0, id, NULL);
	}
}

/* Asks for a page: its ids, comma-separated, behind them the `next` after a '>'. */
static const char *page(const char *query)
{
	static char out[65536];
	char target[512];
	const cJSON *device;
	reply_fini(&r);
	snprintf(target, sizeof(target), "/v1/devices%s%s", *query ? "?" : "", query);
	ck_assert_msg(get(&s, target, &r) == 200, "%d %s for %s", r.code, r.body, query);
	cJSON *json = cJSON_Parse(r.body), *next = cJSON_GetObjectItem(json, "next");
	ck_assert_ptr_nonnull(json);
	char *at = out;
	*at = '\0';
	cJSON_ArrayForEach(device, cJSON_GetObjectItem(json, "devices"))
	{
		at += sprintf(at, "%s%s", at == out ? "" : ",", cJSON_GetObjectItem(device, "id")->valuestring);
	}
	if (next)
		sprintf(at, ">%s", next->valuestring);
	cJSON_Delete(json);
	return out;
}

static const char *refused(const char *query)
{
	static char why[512];
	char target[2048];
	reply_fini(&r);
	snprintf(target, sizeof(target), "/v1/devices?%s", query);
	ck_assert_msg(get(&s, target, &r) == 400, "%d for %s", r.code, query);
	cJSON *json = cJSON_Parse(r.body);
	snprintf(why, sizeof(why), "%s", cJSON_GetStringValue(cJSON_GetObjectItem(json, "error")));
	cJSON_Delete(json);
	return why;
}

START_TEST(a_device_in_the_list)
{
	server_beat(&s, 1, "f/1", "{\"battery\":5}");
	ck_assert_int_eq(get(&s, "/v1/devices", &r), 200);
	char want[512];
	const struct hw_device *d = hw_registry_at(hw_monitor_registry(s.monitor), 0);
	snprintf(want, sizeof(want),
	         "{\"devices\":[{\"id\":\"f/1\",\"state\":\"online\",\"since_ms\":%lld,\"last_seen_ms\":%lld,"
	         "\"timeout_ms\":2000,\"timeout_from\":\"group\",\"reason\":\"heartbeat\",\"group\":\"fast\","
	         "\"source\":\"mqtt\",\"seq\":%llu}]}\n",
	         (long long)s.now.wall_ms, (long long)s.now.wall_ms, (unsigned long long)d->seq);
	ck_assert_str_eq(r.body, want);
}
END_TEST

START_TEST(filters)
{
	add("a", 1, 0, 3);
	server_beat(&s, 0, "b0", "{\"online\":false}");
	server_beat(&s, 1, "f/a", NULL);
	server_beat(&s, 1, "f/\xc3\xa4", "{\"online\":false}");
	ck_assert_str_eq(page(""), "a0,a1,a2,b0,f/a,f/\xc3\xa4");
	ck_assert_str_eq(page("state=online"), "a0,a1,a2,f/a");
	ck_assert_str_eq(page("state=offline"), "b0,f/\xc3\xa4");
	ck_assert_str_eq(page("group=default"), "a0,a1,a2,b0");
	ck_assert_str_eq(page("group=fast&state=offline"), "f/\xc3\xa4");
	ck_assert_str_eq(page("prefix=a"), "a0,a1,a2");
	ck_assert_str_eq(page("prefix=f%2F"), "f/a,f/\xc3\xa4");
	ck_assert_str_eq(page("prefix=f/%C3"), "f/\xc3\xa4"); /* by bytes */
	ck_assert_str_eq(page("prefix=a0&prefix=b0"), "b0");
	ck_assert_str_eq(page("prefix=a00"), "");
	ck_assert_str_eq(page("state=&group=&prefix=&after=&limit="), "a0,a1,a2,b0,f/a,f/\xc3\xa4");
	ck_assert_str_eq(page("%73tate=offline&&"), "b0,f/\xc3\xa4");
	/* Longer than an id: what follows in memory, most likely the next id, does not count. */
	add("xxxxxx", 1, 1, 4);
	ck_assert_str_eq(page("prefix=xxxxxx1%07xxxxxx2"), "");
	ck_assert_str_eq(page("prefix=xxxxxx2%07xxxxxx1"), "");
}
END_TEST

START_TEST(search_finds_parts)
{
	add("Pump-", 1, 7, 9);
	server_beat(&s, 0, "hall/pump", "{\"online\":false}");
	server_beat(&s, 1, "f/p\xc3\xa4mp", NULL);
	ck_assert_str_eq(page("search=pump"), "Pump-7,Pump-8,hall/pump");
	ck_assert_str_eq(page("search=PUMP-8"), "Pump-8");
	ck_assert_str_eq(page("search=mp&prefix=Pump"), "Pump-7,Pump-8");
	ck_assert_str_eq(page("search=pump&state=offline"), "hall/pump");
	ck_assert_str_eq(page("search=%C3%A4"), "f/p\xc3\xa4mp");
	ck_assert_str_eq(page("search=hall/pump"), "hall/pump");
	ck_assert_str_eq(page("search=hall/pumps"), "");
	ck_assert_str_eq(page("search=mpx"), "");
}
END_TEST

START_TEST(sorted_by_id)
{
	static const char *const ids[] = {"b", "a", "c", "ab", "aa", "B", "\xc3\xa4", "b1"};
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		server_beat(&s, 0, ids[i], NULL);
	ck_assert_str_eq(page("sort=id"), "B,a,aa,ab,b,b1,c,\xc3\xa4");
	ck_assert_str_eq(page("sort=known"), "b,a,c,ab,aa,B,\xc3\xa4,b1");
	ck_assert_str_eq(page("sort=id-back"), "\xc3\xa4,c,b1,b,ab,aa,a,B");
	ck_assert_str_eq(page("sort=id-back&limit=3&after=b"), "ab,aa,a>a");
	refused("sort=known-back");
	ck_assert_str_eq(page("sort=id&limit=3"), "B,a,aa>aa");
	ck_assert_str_eq(page("sort=id&limit=3&after=aa"), "ab,b,b1>b1");
	ck_assert_str_eq(page("sort=id&limit=3&after=b1"), "c,\xc3\xa4");
	ck_assert_str_eq(page("after=b1&sort=id&limit=2"), "c,\xc3\xa4");
	ck_assert_str_eq(page("sort=id&after=nobody"), "\xc3\xa4"); /* a place needs nobody */
	ck_assert_str_eq(page("sort=id&prefix=a&limit=2"), "a,aa>aa");
	ck_assert_str_eq(page("sort=id&after=\x7f&limit=2"), "\xc3\xa4");
}
END_TEST

/* The body of an answer that is no list of devices. */
static const char *levels(const char *query)
{
	static char out[4096];
	char target[512];
	reply_fini(&r);
	snprintf(target, sizeof(target), "/v1/devices?%s", query);
	ck_assert_int_eq(get(&s, target, &r), 200);
	snprintf(out, sizeof(out), "%s", strstr(r.body, "\"levels\":") + 9);
	return out;
}

START_TEST(counted_by_a_level)
{
	add("hall-1/pump_", 1, 0, 3);
	add("hall-2/fan_", 1, 0, 2);
	server_beat(&s, 0, "hall-2/pump_9", "{\"online\":false}");
	server_beat(&s, 0, "gate", NULL);
	ck_assert_str_eq(levels("level=2"), "[{\"prefix\":\"hall-2/\",\"online\":2,\"offline\":1},"
	                                    "{\"prefix\":\"hall-1/\",\"online\":3,\"offline\":0}],"
	                                    "\"rest\":{\"online\":1,\"offline\":0}}\n");
	ck_assert_str_eq(levels("level=3&prefix=hall-2/"), "[{\"prefix\":\"hall-2/pump_\",\"online\":0,\"offline\":1},"
	                                                   "{\"prefix\":\"hall-2/fan_\",\"online\":2,\"offline\":0}],"
	                                                   "\"rest\":{\"online\":0,\"offline\":0}}\n");
	refused("level=0");
	refused("level=17");
	refused("level=1x");
}
END_TEST

/* More values than are counted separately: each device is counted nevertheless. */
START_TEST(counted_by_too_many)
{
	for (int i = 0; i < 1500; i++) {
		char id[64];
		snprintf(id, sizeof(id), "h%d/x", i);
		server_beat(&s, 0, id, NULL);
	}
	reply_fini(&r);
	ck_assert_int_eq(get(&s, "/v1/devices?level=1", &r), 200);
	cJSON *json = cJSON_Parse(r.body), *all = cJSON_GetObjectItem(json, "levels");
	int n = cJSON_GetArraySize(all);
	const cJSON *rest = cJSON_GetObjectItem(cJSON_GetObjectItem(json, "rest"), "online");
	ck_assert_int_ge(n, 900);
	ck_assert_int_le(n, 1000);
	ck_assert_int_eq(n + rest->valueint, 1500);
	cJSON_Delete(json);
}
END_TEST

START_TEST(total_of_a_sorted_list)
{
	add("a", 1, 0, 5);
	ck_assert_str_eq(page("sort=id&limit=2&after=a0"), "a1,a2>a2");
	ck_assert_ptr_nonnull(strstr(r.body, "\"total\":5}"));
}
END_TEST

static void age(int s_more)
{
	s.now.mono.ns += s_more * HW_NS_PER_S;
	s.now.wall_ms += s_more * 1000;
}

START_TEST(sorted_by_time)
{
	add("d", 1, 0, 3); /* all at once */
	age(5);
	server_beat(&s, 0, "d1", "{\"online\":false}");
	server_beat(&s, 0, "e", "{\"online\":false}");
	age(1);
	server_beat(&s, 0, "f", "{\"online\":false}");
	ck_assert_str_eq(page("sort=newest&state=offline"), "f,d1,e");
	ck_assert_str_eq(page("sort=newest-back&state=offline"), "e,d1,f");
	ck_assert_str_eq(page("sort=oldest-back&state=offline"), "f,e,d1");
	ck_assert_str_eq(page("sort=oldest&state=offline"), "d1,e,f");
	const char *got = page("sort=newest&limit=2");
	ck_assert_int_eq(strncmp(got, "f,d1>", 5), 0);
	char query[256];
	snprintf(query, sizeof(query), "sort=newest&limit=3&after=%s", got + 5);
	got = page(query);
	ck_assert_int_eq(strncmp(got, "e,d0,d2", 7), 0);
	ck_assert_int_eq(got[7], '\0');
	/* The device at which a page ended may be removed and added again. */
	server_beat(&s, 0, "d1", NULL);
	ck_assert_str_eq(page(query), "e,d0,d2");
	refused("sort=newest&after=d1");
	refused("sort=oldest&after=12");
	refused("sort=oldest&after=12.-1");
	refused("sort=oldest&after=12.1x");
	refused("sort=age");
}
END_TEST

/* Every device once, whatever the size of the pages and of the scan. */
START_TEST(sorted_pages_are_whole)
{
	char query[512], after[HW_ID_MAX + 1] = "", want[16];
	int n = 0;
	add("d", 5, 0, 30000);
	do {
		snprintf(query, sizeof(query), "sort=id&limit=1000%s%s", *after ? "&after=" : "", after);
		char *got = (char *)page(query), *next = strchr(got, '>');
		snprintf(after, sizeof(after), "%s", next ? next + 1 : "");
		if (next)
			*next = '\0';
		for (char *id = strtok(got, ","); id; id = strtok(NULL, ",")) {
			snprintf(want, sizeof(want), "d%05d", n++);
			ck_assert_str_eq(id, want);
		}
	} while (*after);
	ck_assert_int_eq(n, 30000);
}
END_TEST

START_TEST(bad_queries)
{
	static const char *const queries[] = {
		"state=gone",
		"state=forgotten",
		"state=provisional",
		"group=none",
		"limit=0",
		"limit=1001",
		"limit=-1",
		"limit=1x",
		"limit=99999999999999999999",
		"limit=%201",
		"x=1",
		"State=online",
		"state",
		"=",
		"=x",
		"prefix=%zz",
		"prefix=%00",
		"after=%",
		"after=nobody",
		"limit=10;x=1",
		"prefix",
	};
	char query[1100];
	for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++)
		refused(queries[i]);
	ck_assert_ptr_nonnull(strstr(refused("after=nobody"), "start again"));
	/* Too long for an id, and for a query. */
	strcpy(query, "prefix=");
	memset(query + 7, 'x', 256);
	query[7 + 256] = '\0';
	refused(query);
	query[7 + 255] = '\0';
	ck_assert_str_eq(page(query), "");
	memset(query + 7, 'x', 1050);
	query[7 + 1050] = '\0';
	refused(query);
	memcpy(query, "after=x", 7);
	refused(query);
	memset(query, 'x', 100);
	strcpy(query + 100, "=1");
	refused(query);
}
END_TEST

START_TEST(pages_end_where_devices_do)
{
	add("d", 1, 0, 6);
	ck_assert_str_eq(page("limit=3"), "d0,d1,d2>d2");
	ck_assert_str_eq(page("limit=3&after=d2"), "d3,d4,d5");
	ck_assert_str_eq(page("limit=5&after=d0"), "d1,d2,d3,d4,d5");
	ck_assert_str_eq(page("limit=6"), "d0,d1,d2,d3,d4,d5");
	ck_assert_str_eq(page("after=d5"), "");
	/* What follows does not match: no next page either. */
	server_beat(&s, 1, "f/1", NULL);
	ck_assert_str_eq(page("limit=6&group=default"), "d0,d1,d2,d3,d4,d5");
	ck_assert_str_eq(page("limit=6"), "d0,d1,d2,d3,d4,d5>d5");
}
END_TEST

START_TEST(limits)
{
	add("d", 4, 0, 1001);
	const char *got = page("");
	ck_assert_ptr_nonnull(strstr(got, ",d0099>d0099"));
	got = page("limit=1000");
	ck_assert_ptr_nonnull(strstr(got, ",d0999>d0999"));
	ck_assert_str_eq(page("limit=1000&after=d0999"), "d1000");
}
END_TEST

START_TEST(position_outlives_its_device)
{
	add("d", 1, 0, 6);
	ck_assert_str_eq(page("limit=3"), "d0,d1,d2>d2");
	server_forget(&s, "d2");
	ck_assert_str_eq(page("limit=2&after=d2"), "d3,d4>d4");
	/* It comes back, in a record behind: the position is where it was. */
	server_forget(&s, "d4");
	add("d", 1, 9, 10);
	add("d", 1, 4, 5);
	const char *got = page("after=d4");
	ck_assert_msg(strstr(got, "d5") != NULL && strstr(got, "d3") == NULL, "%s", got);
	/* Shown last without a next page: nobody was told to go on from there. */
	server_forget(&s, "d5");
	ck_assert_ptr_nonnull(strstr(refused("after=d5"), "start again"));
}
END_TEST

START_TEST(old_positions_are_lost)
{
	char query[64];
	add("d", 3, 0, 300);
	ck_assert_str_eq(page("limit=1"), "d000>d000");
	server_forget(&s, "d000");
	for (int i = 1; i <= 255; i++) {
		snprintf(query, sizeof(query), "limit=1&after=d%03d", i);
		page(query); /* hands d(i+1) out */
	}
	ck_assert_str_eq(page("limit=1&after=d000"), "d001>d001"); /* the 256th back; its own next is the 257th */
	refused("limit=1&after=d000");
}
END_TEST

/* Devices come and go between pages; those that stay are shown exactly once. */
START_TEST(churn)
{
	const char *env = getenv("HW_SEED");
	unsigned seed = env ? (unsigned)strtoul(env, NULL, 0) : (unsigned)clock_ms();
	bool gone[500] = {false};
	int shown[500] = {0}, fresh = 1000;
	char query[128] = "limit=7&prefix=d", *next;
	printf("churn: HW_SEED=%u\n", seed);
	srand(seed);
	add("d", 1, 0, 500);
	do {
		char *ids = strdup(page(query)), *save = NULL;
		next = strchr(ids, '>');
		if (next)
			*next++ = '\0';
		for (char *id = strtok_r(ids, ",", &save); id; id = strtok_r(NULL, ",", &save))
			if (atoi(id + 1) < 500)
				shown[atoi(id + 1)]++;
		if (next)
			snprintf(query, sizeof(query), "limit=7&prefix=d&after=%s", next);
		for (int i = 0; i < 4 && next; i++) {
			char id[16];
			/* Now and then the very device that the position names. */
			int victim = i == 0 ? atoi(next + 1) : rand() % 500;
			if (victim < 500 && !gone[victim] && rand() % 2) {
				snprintf(id, sizeof(id), "d%d", victim);
				server_forget(&s, id);
				gone[victim] = true;
			}
			if (rand() % 2)
				add("d", 1, fresh, fresh + 1);
			fresh++;
		}
		bool more = next != NULL;
		free(ids);
		next = more ? query : NULL;
	} while (next);
	for (int i = 0; i < 500; i++)
		if (!gone[i])
			ck_assert_msg(shown[i] == 1, "d%d was shown %d times", i, shown[i]);
}
END_TEST

/* --- long scans */

#define MANY 100000

static void fill(void)
{
	char id[32];
	for (int i = 0; i < MANY; i++) {
		int n = snprintf(id, sizeof(id), "%s%d", i < MANY - 3 ? "d" : "z", i);
		struct hw_stored stored = {.id = id,
		                           .id_len = (size_t)n,
		                           .state = HW_STATE_OFFLINE,
		                           .reason = HW_REASON_TIMEOUT,
		                           .since_ms = 1,
		                           .last_seen_ms = 1,
		                           .seq = 5};
		ck_assert_int_eq(hw_monitor_load(s.monitor, s.now, &stored), 0);
	}
}

static void request(int fd, const char *target, const char *version, const char *headers)
{
	char text[512];
	int n = snprintf(text, sizeof(text), "GET %s HTTP/%s\r\n%s\r\n", target, version, headers);
	client_send(&s, fd, text, (size_t)n);
}

START_TEST(long_scan_yields)
{
	int slow = client_connect(&s), turns = 0;
	char byte;
	fill();
	request(slow, "/v1/devices?prefix=z", "1.1", "");
	/* Another client is served while it goes on. */
	ck_assert_int_eq(get(&s, "/healthz", &r), 200);
	reply_fini(&r);
	while (recv(slow, &byte, 1, MSG_PEEK) < 1 && turns++ < 1000)
		server_turn(&s);
	client_read(&s, slow, NULL, &r);
	ck_assert_int_eq(r.code, 200);
	ck_assert_ptr_nonnull(strstr(r.head, "Transfer-Encoding: chunked\r\n"));
	cJSON *json = cJSON_Parse(r.body);
	ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(json, "devices")), 3);
	cJSON_Delete(json);
	/* The connection goes on. */
	reply_fini(&r);
	request(slow, "/healthz", "1.1", "");
	client_read(&s, slow, NULL, &r);
	ck_assert_int_eq(r.code, 200);
	close(slow);
}
END_TEST

START_TEST(long_scan_takes_many_turns)
{
	int fds[4], turns = 0, done = 0;
	fill();
	for (int i = 0; i < 4; i++)
		fds[i] = client_connect(&s);
	for (int i = 0; i < 4; i++) {
		const char text[] = "GET /v1/devices?prefix=none HTTP/1.1\r\nConnection: close\r\n\r\n";
		ck_assert_int_eq(send(fds[i], text, strlen(text), 0), (ssize_t)strlen(text));
	}
	/* Four scans of 100,000 records with 20,000 looks a turn for all. */
	while (done < 4 && turns < 1000) {
		char bytes[4096];
		server_turn(&s);
		turns++;
		for (int i = 0; i < 4; i++)
			if (fds[i] >= 0 && recv(fds[i], bytes, sizeof(bytes), 0) == 0) {
				close(fds[i]);
				fds[i] = -1;
				done++;
			}
	}
	ck_assert_int_eq(done, 4);
	ck_assert_int_ge(turns, 4 * (MANY - 2000) / 20000);
}
END_TEST

START_TEST(long_scan_pages_on)
{
	char query[64] = "prefix=z&limit=2";
	fill();
	ck_assert_str_eq(page(query), "z99997,z99998>z99998");
	ck_assert_str_eq(page("prefix=z&limit=2&after=z99998"), "z99999");
	ck_assert_str_eq(page("prefix=none"), "");
}
END_TEST

/* HTTP/1.0 knows no chunks: the end is told by closing, also if the client would rather keep the connection. */
START_TEST(long_scan_for_an_old_client)
{
	int fd = client_connect(&s);
	fill();
	request(fd, "/v1/devices?prefix=z99999", "1.0", "Connection: keep-alive\r\n");
	client_read_all(&s, fd, &r);
	ck_assert_int_eq(r.code, 200);
	ck_assert_ptr_null(strstr(r.head, "Content-Length"));
	cJSON *json = cJSON_Parse(r.body);
	ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(json, "devices")), 1);
	cJSON_Delete(json);
	close(fd);
}
END_TEST

START_TEST(client_leaves_a_long_scan)
{
	fill();
	for (int i = 0; i < 20; i++) {
		int fd = client_connect(&s);
		request(fd, "/v1/devices?prefix=none", "1.1", "");
		for (int turns = i % 4; turns > 0; turns--)
			server_turn(&s);
		close(fd);
		server_turn(&s);
	}
	ck_assert_int_eq(get(&s, "/healthz", &r), 200);
}
END_TEST

/* A thousand clients that request everything and leave cost little: an abandoned scan ends. */
START_TEST(abandoned_scans_end)
{
	struct timespec from, to;
	fill();
	for (int i = 0; i < 200; i++) {
		int fd = client_connect(&s);
		request(fd, "/v1/devices?prefix=none", "1.1", "");
		close(fd);
	}
	int turns = 0;
	clock_gettime(CLOCK_MONOTONIC, &from);
	while (event_base_get_num_events(s.base, EVENT_BASE_COUNT_ADDED) > 3 && turns < 5000) {
		server_turn(&s);
		turns++;
	}
	clock_gettime(CLOCK_MONOTONIC, &to);
	/* All of them to the end would be 200 x 5 turns. */
	ck_assert_int_lt(turns, 200);
}
END_TEST

/* How many bytes the server sent before it closed the connection. */
static size_t rest_of(int fd)
{
	char bytes[4096];
	size_t all = 0;
	ssize_t n;
	while ((n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		all += (size_t)n;
	ck_assert(n == 0 || errno == ECONNRESET);
	close(fd);
	return all;
}

START_TEST(server_stops_amid_scans)
{
	int fds[5];
	fill();
	for (int i = 0; i < 5; i++) {
		fds[i] = client_connect(&s);
		request(fds[i], "/v1/devices?prefix=none", "1.1", "");
		server_turn(&s);
	}
	hw_control_free(s.control);
	s.control = NULL;
	for (int i = 0; i < 4; i++)
		(void)rest_of(fds[i]);
	ck_assert_uint_eq(rest_of(fds[4]), 0); /* its scan had not come to its end */
}
END_TEST

/* Records are freed, reused and added during a scan that waits. */
START_TEST(devices_change_under_a_scan)
{
	int fd = client_connect(&s);
	fill();
	request(fd, "/v1/devices?limit=1000&prefix=z", "1.1", "");
	server_turn(&s);
	server_forget(&s, "z99998");
	for (int i = 0; i < 50000; i += 10) {
		char id[32];
		snprintf(id, sizeof(id), "d%d", i);
		server_forget(&s, id);
	}
	add("y", 1, 0, 10000);
	client_read(&s, fd, NULL, &r);
	ck_assert_int_eq(r.code, 200);
	ck_assert_ptr_nonnull(strstr(r.body, "z99997"));
	ck_assert_ptr_null(strstr(r.body, "z99998"));
	ck_assert_ptr_nonnull(strstr(r.body, "z99999"));
	close(fd);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("control_list");
	TCase *tc = tcase_create("list");
	tcase_add_checked_fixture(tc, rig_set_up, rig_tear_down);
	tcase_set_timeout(tc, 30);
	tcase_add_test(tc, a_device_in_the_list);
	tcase_add_test(tc, filters);
	tcase_add_test(tc, search_finds_parts);
	tcase_add_test(tc, sorted_by_id);
	tcase_add_test(tc, counted_by_a_level);
	tcase_add_test(tc, counted_by_too_many);
	tcase_add_test(tc, total_of_a_sorted_list);
	tcase_add_test(tc, sorted_by_time);
	tcase_add_test(tc, sorted_pages_are_whole);
	tcase_add_test(tc, bad_queries);
	tcase_add_test(tc, pages_end_where_devices_do);
	tcase_add_test(tc, limits);
	tcase_add_test(tc, position_outlives_its_device);
	tcase_add_test(tc, old_positions_are_lost);
	tcase_add_test(tc, churn);
	suite_add_tcase(suite, tc);
	tc = tcase_create("scans");
	tcase_add_checked_fixture(tc, rig_set_up, rig_tear_down);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, long_scan_yields);
	tcase_add_test(tc, long_scan_takes_many_turns);
	tcase_add_test(tc, long_scan_pages_on);
	tcase_add_test(tc, long_scan_for_an_old_client);
	tcase_add_test(tc, client_leaves_a_long_scan);
	tcase_add_test(tc, abandoned_scans_end);
	tcase_add_test(tc, server_stops_amid_scans);
	tcase_add_test(tc, devices_change_under_a_scan);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

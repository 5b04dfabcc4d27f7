/* SPDX-License-Identifier: MIT */
#include "control_stream.h"

#include <check.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control_rig.h"

void stream_open(struct stream *t, const char *target, const char *place)
{
	char request[512];
	int n = snprintf(request, sizeof(request), "GET %s HTTP/1.0\r\n%s%s%s\r\n", target,
	                 place ? "Last-Event-ID: " : "", place ? place : "", place ? "\r\n" : "");
	*t = (struct stream){.fd = client_connect(&s), .text = calloc(1, 1)};
	ck_assert(client_send(&s, t->fd, request, (size_t)n));
}

void stream_close(struct stream *t)
{
	close(t->fd);
	free(t->text);
}

void stream_take(struct stream *t)
{
	char bytes[65536];
	ssize_t got;
	if (t->beside)
		stream_take(t->beside);
	while ((got = recv(t->fd, bytes, sizeof(bytes), 0)) > 0) {
		t->text = realloc(t->text, t->n + (size_t)got + 1);
		memcpy(t->text + t->n, bytes, (size_t)got);
		t->n += (size_t)got;
		t->text[t->n] = '\0';
	}
	t->closed |= got == 0 || errno != EAGAIN;
}

unsigned count(const struct stream *t, const char *what)
{
	unsigned n = 0;
	for (const char *at = t->text; (at = strstr(at, what)); at += strlen(what))
		n++;
	return n;
}

/* strstr() from `from` on. The sanitizers' own strstr() reads all text after that, each time, and a stream has
 * megabytes. */
static const char *find(const struct stream *t, size_t from, const char *what, size_t len)
{
	const char *at = t->text + from, *end = t->text + t->n;
	for (; (size_t)(end - at) >= len && (at = memchr(at, what[0], (size_t)(end - at) - len + 1)); at++)
		if (memcmp(at, what, len) == 0)
			return at;
	return NULL;
}

void expect_count(struct stream *t, const char *what, unsigned n)
{
	long long since = clock_ms();
	size_t len = strlen(what), from = 0; /* what comes before is counted */
	unsigned found = 0;
	for (;;) {
		for (const char *at; (at = find(t, from, what, len)); found++)
			from = (size_t)(at - t->text) + len;
		if (found >= n)
			break;
		if (t->n > from + len)
			from = t->n - len; /* the rest may be its begin */
		server_turn(&s);
		stream_take(t);
		ck_assert_msg(!t->closed && !too_late(since), "%u of %u '%s', closed %d: %.2000s", found, n, what,
		              t->closed, t->text);
	}
	ck_assert_uint_eq(found, n);
}

void expect_open(struct stream *t)
{
	expect_count(t, "retry: 2000\n\n", 1);
}

void settle(struct stream *t)
{
	for (int i = 0; i < 20; i++) {
		server_turn(&s);
		stream_take(t);
	}
}

void expect_devices(struct stream *t, unsigned from, unsigned to)
{
	static const char key[] = "\"id\":\"";
	char id[32];
	expect_count(t, ",\"seq\":", to - from);
	size_t place = 0;
	for (unsigned i = from; i < to; i++) {
		const char *at = find(t, place, key, strlen(key));
		ck_assert_ptr_nonnull(at);
		snprintf(id, sizeof(id), "\"id\":\"d%u\"", i);
		ck_assert_msg(strncmp(at, id, strlen(id)) == 0, "%s: %.60s", id, at);
		place = (size_t)(at - t->text) + strlen(key);
	}
}

struct hw_stream_id place(uint64_t n)
{
	return (struct hw_stream_id){1700000000000, n};
}

struct hw_event event(char id[32], unsigned n)
{
	snprintf(id, 32, "d%u", n);
	return (struct hw_event){.at = place(n),
	                         .id = id,
	                         .id_len = strlen(id),
	                         .group = "default",
	                         .group_len = 7,
	                         .state = HW_STATE_OFFLINE,
	                         .reason = HW_REASON_TIMEOUT,
	                         .time_ms = 1234,
	                         .last_seen_ms = 1000,
	                         .seq = n + 1};
}

void tell(unsigned from, unsigned to)
{
	char id[32];
	for (unsigned i = from; i < to; i++) {
		struct hw_event e = event(id, i);
		hw_control_event(s.control, &e);
	}
}

void text_of(const struct stream *t, unsigned n, char at[HW_STREAM_ID_TEXT])
{
	const char *id = t->text;
	for (unsigned i = 0; i <= n; i++) {
		id = strstr(id, "\nid: ");
		ck_assert_ptr_nonnull(id);
		id += 5;
	}
	snprintf(at, HW_STREAM_ID_TEXT, "%.*s", (int)strcspn(id, "\n"), id);
}

char *ids_of(const char *target)
{
	static char out[65536];
	const cJSON *one;
	reply_fini(&r);
	ck_assert_msg(get(&s, target, &r) == 200, "%s", r.body);
	cJSON *json = cJSON_Parse(r.body);
	char *at = out;
	*at = '\0';
	cJSON_ArrayForEach(one, cJSON_GetObjectItem(json, "transitions"))
	{
		at += sprintf(at, "%s%s", at == out ? "" : ",", cJSON_GetObjectItem(one, "id")->valuestring);
	}
	cJSON_Delete(json);
	return out;
}

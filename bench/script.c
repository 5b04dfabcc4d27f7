/* SPDX-License-Identifier: MIT */
/*
 * Measures how many transitions to offline Redis can write with transition.lua alone. The client does nothing else.
 *
 *     script fill PORT PREFIX DEVICES
 *
 * writes DEVICES devices as online, in the form in which transition.lua would write them.
 *
 *     script die PORT PREFIX FIRST DEVICES PER_CALL DEPTH
 *
 * reports DEVICES devices offline, from device FIRST on: PER_CALL devices in one call of the script, and at most DEPTH
 * calls under way. Prints `rate`: devices per second. Redis never waits for this program, as far as possible: the
 * program builds the next call while earlier calls are under way, and reads an answer only when DEPTH calls are
 * unanswered, or when all calls are sent.
 *
 *     script call PORT PREFIX PER_CALL
 *
 * loads the script, and prints the command of a call for redis-benchmark, one word in each line. redis-benchmark
 * replaces `__rand_int__` in each id with a random number.
 *
 *     script stream PORT PREFIX ID_PREFIX DEVICES
 *
 * reads the event stream. Prints how many of the devices ID_PREFIX0, ID_PREFIX1 and so on went offline (`died`), and
 * how many more than once (`twice`).
 */
#include <hiredis/hiredis.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "redis/places.h"
#include "redis/script.h"

#define NODE       "bench"
#define TTL_MS     "1800000"
#define SHARED     6 /* number of arguments before those of the devices: the command and the shared keys */
#define KEYS_EACH  3
#define ARGS_EACH  HW_AT_ROW_NEXT
#define COMMON     (3 + HW_AT_WRITE_NEXT + 4) /* those of the call, and those that the devices have in common */
#define PER_CALL   1024
#define FILL_DEPTH 256
#define ANY        UINT_MAX /* in place of a device number: redis-benchmark draws the ids */
#define PAGE       10000

struct call {
	const char *argv[SHARED + COMMON + PER_CALL * (KEYS_EACH + ARGS_EACH)];
	size_t len[SHARED + COMMON + PER_CALL * (KEYS_EACH + ARGS_EACH)];
	int n;
	char keys[16];              /* the number of keys, as text */
	char count[16];             /* the number of devices */
	char text[PER_CALL][5][96]; /* three keys, the id, the time */
};

_Noreturn static void die(const char *what)
{
	fprintf(stderr, "script: %s\n", what);
	exit(1);
}

static double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static redisReply *answer(redisContext *c)
{
	void *reply;
	if (redisGetReply(c, &reply) != REDIS_OK || ((redisReply *)reply)->type == REDIS_REPLY_ERROR)
		die(c->err ? c->errstr : ((redisReply *)reply)->str);
	return reply;
}

/* --- the start --------------------------------------------------------------------------------------------------- */

static void fill(redisContext *c, const char *prefix, unsigned devices)
{
	unsigned out = 0;
	for (unsigned i = 0; i < devices; i++) {
		redisAppendCommand(c, "SET %sconnected:d%012u d%012u PX " TTL_MS, prefix, i, i);
		redisAppendCommand(
			c,
			"HSET %sstate:d%012u state online since 1700000000000 last_seen 1700000000000 reason "
			"heartbeat group default node " NODE " seq 1700000000000 timeout 600000 source mqtt",
			prefix, i);
		for (out += 2; out >= FILL_DEPTH; out--)
			freeReplyObject(answer(c));
	}
	for (; out > 0; out--)
		freeReplyObject(answer(c));
}

/* --- the end ----------------------------------------------------------------------------------------------------- */

static void add(struct call *k, const char *text)
{
	k->len[k->n] = strlen(text);
	k->argv[k->n++] = text;
}

static void build(struct call *k, const char *sha, const char *prefix, char (*shared)[96], unsigned first, unsigned n)
{
	static const char *const kinds[] = {"connected", "disconnected", "state"};
	snprintf(k->keys, sizeof(k->keys), "%u", 3 + n * KEYS_EACH);
	k->n = 0;
	add(k, "EVALSHA");
	add(k, sha);
	add(k, k->keys);
	for (int i = 0; i < 3; i++)
		add(k, shared[i]);
	for (unsigned i = 0; i < n; i++) {
		if (first == ANY)
			snprintf(k->text[i][3], 96, "d__rand_int__");
		else
			snprintf(k->text[i][3], 96, "d%012u", first + i);
		for (int j = 0; j < KEYS_EACH; j++) {
			snprintf(k->text[i][j], 96, "%s%s:%s", prefix, kinds[j], k->text[i][3]);
			add(k, k->text[i][j]);
		}
		snprintf(k->text[i][4], 96, "%lld", (long long)time(NULL) * 1000);
	}
	const char *const head[] = {"1000000", NODE, ""};
	for (int i = 0; i < 3; i++)
		add(k, head[i]);
	snprintf(k->count, sizeof(k->count), "%u", n);
	const char *const common[] = {"E", k->count, "offline", "timeout", "default", TTL_MS,   "1",   "0",
	                              "",  "",       "4",       "timeout", "600000",  "source", "mqtt"};
	_Static_assert(sizeof(common) / sizeof(*common) == HW_AT_WRITE_NEXT + 4, "scripts/places");
	for (size_t j = 0; j < sizeof(common) / sizeof(*common); j++)
		add(k, common[j]);
	for (unsigned i = 0; i < n; i++) {
		const char *const row[] = {k->text[i][3], k->text[i][4], k->text[i][4], k->text[i][4], ""};
		_Static_assert(sizeof(row) / sizeof(*row) == ARGS_EACH, "scripts/places");
		for (int j = 0; j < ARGS_EACH; j++)
			add(k, row[j]);
	}
}

static char *load(redisContext *c)
{
	redisReply *r = redisCommand(c, "SCRIPT LOAD %s", hw_script_transition_text);
	if (!r || r->type != REDIS_REPLY_STRING)
		die(r && r->str ? r->str : "SCRIPT LOAD fails");
	char *sha = strdup(r->str);
	freeReplyObject(r);
	return sha;
}

static void take(redisContext *c, unsigned n)
{
	redisReply *r = answer(c);
	if (r->type != REDIS_REPLY_ARRAY || r->elements != n)
		die("the script's answer makes no sense");
	for (size_t i = 0; i < r->elements; i++)
		if (r->element[i]->type != REDIS_REPLY_STRING)
			die(r->element[i]->str ? r->element[i]->str : "a device was not written");
	freeReplyObject(r);
}

static void name_shared(char (*shared)[96], const char *prefix)
{
	static const char *const names[] = {"offline", "outbox", "events"};
	for (int i = 0; i < 3; i++)
		snprintf(shared[i], sizeof(shared[i]), "%s%s", prefix, names[i]);
}

static double mark(redisContext *c, const char *sha, const char *prefix, unsigned first, unsigned devices, unsigned per,
                   unsigned depth)
{
	static struct call k;
	char shared[3][96];
	unsigned sent = 0, got = 0;
	name_shared(shared, prefix);
	double began = now_s();
	while (got < devices) {
		unsigned n = devices - sent < per ? devices - sent : per;
		if (n > 0) {
			build(&k, sha, prefix, shared, first + sent, n);
			redisAppendCommandArgv(c, k.n, k.argv, k.len);
			sent += n;
		}
		int done = 0;
		while (n > 0 && !done && (sent - got) / per % 16 == 0) /* 16 calls in one write */
			redisBufferWrite(c, &done);
		if (n == 0 || sent - got >= per * depth) {
			unsigned one = devices - got < per ? devices - got : per;
			take(c, one);
			got += one;
		}
	}
	return devices / (now_s() - began);
}

static void print_call(const char *sha, const char *prefix, unsigned per)
{
	static struct call k;
	char shared[3][96];
	name_shared(shared, prefix);
	build(&k, sha, prefix, shared, ANY, per);
	for (int i = 0; i < k.n; i++)
		printf("%s\n", k.argv[i]);
}

/* --- what the stream has ----------------------------------------------------------------------------------------- */

/* How often each device died, by the stream. */
struct deaths {
	unsigned char *of;
	unsigned devices;
	const char *id_prefix;
};

static void count_entry(struct deaths *d, const redisReply *fields)
{
	const char *id = NULL, *state = NULL;
	for (size_t i = 0; i + 1 < fields->elements; i += 2) {
		const char *name = fields->element[i]->str;
		if (strcmp(name, "id") == 0)
			id = fields->element[i + 1]->str;
		else if (strcmp(name, "state") == 0)
			state = fields->element[i + 1]->str;
	}
	size_t n = strlen(d->id_prefix);
	if (!id || !state || strcmp(state, "offline") != 0 || strncmp(id, d->id_prefix, n) != 0)
		return;
	unsigned long device = strtoul(id + n, NULL, 10);
	if (device < d->devices && d->of[device] < UCHAR_MAX)
		d->of[device]++;
}

static void read_stream(redisContext *c, const char *prefix, struct deaths *d)
{
	char from[64] = "-";
	for (size_t n = PAGE; n == PAGE;) {
		redisReply *page = redisCommand(c, "XRANGE %sevents %s + COUNT %d", prefix, from, PAGE);
		if (!page || page->type != REDIS_REPLY_ARRAY)
			die("XRANGE fails");
		n = page->elements;
		for (size_t i = 0; i < n; i++)
			count_entry(d, page->element[i]->element[1]);
		if (n > 0)
			snprintf(from, sizeof(from), "(%s", page->element[n - 1]->element[0]->str);
		freeReplyObject(page);
	}
}

static void tell_deaths(redisContext *c, const char *prefix, const char *id_prefix, unsigned devices)
{
	struct deaths d = {calloc(devices, 1), devices, id_prefix};
	unsigned died = 0, twice = 0;
	if (!d.of)
		die("no memory");
	read_stream(c, prefix, &d);
	for (unsigned i = 0; i < devices; i++) {
		died += d.of[i] > 0;
		twice += d.of[i] > 1;
	}
	printf("died %u\ntwice %u\n", died, twice);
	free(d.of);
}

/* --- main -------------------------------------------------------------------------------------------------------- */

static unsigned number(const char *text)
{
	return (unsigned)strtoul(text, NULL, 10);
}

static bool run(redisContext *c, int argc, char **argv)
{
	const char *what = argv[1], *prefix = argv[3];
	if (argc == 5 && strcmp(what, "fill") == 0) {
		fill(c, prefix, number(argv[4]));
	} else if (argc == 6 && strcmp(what, "stream") == 0) {
		tell_deaths(c, prefix, argv[4], number(argv[5]));
	} else if (argc == 5 && strcmp(what, "call") == 0 && number(argv[4]) <= PER_CALL) {
		char *sha = load(c);
		print_call(sha, prefix, number(argv[4]));
		free(sha);
	} else if (argc == 8 && strcmp(what, "die") == 0 && number(argv[6]) - 1 < PER_CALL) {
		char *sha = load(c);
		printf("rate %.0f\n",
		       mark(c, sha, prefix, number(argv[4]), number(argv[5]), number(argv[6]), number(argv[7])));
		free(sha);
	} else {
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	redisContext *c = argc > 4 ? redisConnect("127.0.0.1", atoi(argv[2])) : NULL;
	if (c && c->err)
		die(c->errstr);
	if (!c || !run(c, argc, argv)) {
		fprintf(stderr, "usage: see the head of bench/script.c\n");
		return 2;
	}
	redisFree(c);
	return 0;
}

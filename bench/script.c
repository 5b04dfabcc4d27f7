/* SPDX-License-Identifier: MIT */
/*
 * What Redis can do with the transition script alone: deaths of devices, as many a call and as many calls in flight as
 * asked for, by a client that does nothing else.
 *
 *     script fill PORT PREFIX DEVICES                            all of them online, as the script leaves them
 *     script die PORT PREFIX FILE FIRST DEVICES PER_CALL DEPTH   the next DEVICES die; FILE is the script
 *
 * `die` prints how many it marked a second. Redis must have all the time that there is: a call is built while those
 * before it are under way, and an answer is read when DEPTH calls wait.
 */
#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NODE       "bench"
#define TTL_MS     "1800000"
#define SHARED     6 /* arguments of the command and keys before those of the devices */
#define KEYS_EACH  3
#define ARGS_EACH  17 /* without a status; the last four are timeout and source */
#define PER_CALL   1024
#define FILL_DEPTH 256

struct call {
	const char *argv[SHARED + 4 + PER_CALL * (KEYS_EACH + ARGS_EACH)];
	size_t len[SHARED + 4 + PER_CALL * (KEYS_EACH + ARGS_EACH)];
	int n;
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
		redisAppendCommand(c, "SET %sconnected:d%u d%u PX " TTL_MS, prefix, i, i);
		redisAppendCommand(c,
		                   "HSET %sstate:d%u state online since 1700000000000 last_seen 1700000000000 reason "
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
	char keys[16];
	snprintf(keys, sizeof(keys), "%u", 3 + n * KEYS_EACH);
	k->n = 0;
	add(k, "EVALSHA");
	add(k, sha);
	add(k, keys);
	for (int i = 0; i < 3; i++)
		add(k, shared[i]);
	for (unsigned i = 0; i < n; i++) {
		for (int j = 0; j < KEYS_EACH; j++) {
			snprintf(k->text[i][j], 96, "%s%s:d%u", prefix, kinds[j], first + i);
			add(k, k->text[i][j]);
		}
		snprintf(k->text[i][3], 96, "d%u", first + i);
		snprintf(k->text[i][4], 96, "%lld", (long long)time(NULL) * 1000);
	}
	const char *const head[] = {"1000000", NODE, ""};
	for (int i = 0; i < 3; i++)
		add(k, head[i]);
	for (unsigned i = 0; i < n; i++) {
		const char *id = k->text[i][3], *at = k->text[i][4];
		const char *const args[ARGS_EACH] = {"E", id,        at,       "offline", "timeout", at,
		                                     at,  "default", TTL_MS,   "1",       "0",       "",
		                                     "4", "timeout", "600000", "source",  "mqtt"};
		for (int j = 0; j < ARGS_EACH; j++)
			add(k, args[j]);
	}
}

static char *load(redisContext *c, const char *path)
{
	static char text[65536];
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	if (n == 0)
		die("cannot read the script");
	fclose(f);
	redisReply *r = redisCommand(c, "SCRIPT LOAD %b", text, n);
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
		if (r->element[i]->type != REDIS_REPLY_STATUS)
			die(r->element[i]->str ? r->element[i]->str : "a device was not written");
	freeReplyObject(r);
}

static double mark(redisContext *c, const char *sha, const char *prefix, unsigned first, unsigned devices, unsigned per,
                   unsigned depth)
{
	static struct call k;
	static const char *const names[] = {"offline", "outbox", "events"};
	char shared[3][96];
	unsigned sent = 0, got = 0;
	for (int i = 0; i < 3; i++)
		snprintf(shared[i], sizeof(shared[i]), "%s%s", prefix, names[i]);
	double began = now_s();
	while (got < devices) {
		unsigned n = devices - sent < per ? devices - sent : per;
		if (n > 0) {
			build(&k, sha, prefix, shared, first + sent, n);
			redisAppendCommandArgv(c, k.n, k.argv, k.len);
			sent += n;
		}
		int done = 0;
		while (n > 0 && !done && (sent - got) / per % 16 == 0) /* some at a time: no system call for each */
			redisBufferWrite(c, &done);
		if (n == 0 || sent - got >= per * depth) {
			unsigned one = devices - got < per ? devices - got : per;
			take(c, one);
			got += one;
		}
	}
	return devices / (now_s() - began);
}

int main(int argc, char **argv)
{
	redisContext *c = argc > 4 ? redisConnect("127.0.0.1", atoi(argv[2])) : NULL;
	if (c && c->err)
		die(c->errstr);
	if (argc == 5 && strcmp(argv[1], "fill") == 0) {
		fill(c, argv[3], (unsigned)atoi(argv[4]));
	} else if (argc == 9 && strcmp(argv[1], "die") == 0 && atoi(argv[7]) <= PER_CALL && atoi(argv[7]) > 0) {
		char *sha = load(c, argv[4]);
		printf("rate %.0f\n", mark(c, sha, argv[3], (unsigned)atoi(argv[5]), (unsigned)atoi(argv[6]),
		                           (unsigned)atoi(argv[7]), (unsigned)atoi(argv[8])));
		free(sha);
	} else {
		fprintf(stderr, "usage: see the head of bench/script.c\n");
		return 2;
	}
	redisFree(c);
	return 0;
}

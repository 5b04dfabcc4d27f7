/* SPDX-License-Identifier: MIT */
/*
 * Measures how late a death is reported. A fleet sends heartbeats at a steady rate through a real broker. Outside
 * observers note when each silent device is reported. For comparison, the same fleet also exists as Redis keys with a
 * time to live, which are refreshed at the same rate.
 *
 *     detect BROKER_PORT REDIS_PORT ROOT PREFIX DEVICES INTERVAL_MS TIMEOUT_MS DEAD LEAVING SECONDS
 *            [RAW_REDIS_PORT ...]
 *
 * Device i sends a heartbeat at start + place(i) * INTERVAL / DEVICES and then each INTERVAL. Places are random. DEAD
 * random devices fall silent after their second heartbeat, so their timeouts end within one INTERVAL. A delay is
 * counted from just before that heartbeat was written, plus TIMEOUT, on one clock. So a measured delay is never too
 * short, and a delay below 0 means that a device was called offline too early. A device that was never reported counts
 * with the time until the end, so percentiles are lower bounds then. NAME_missing is the number of these devices.
 * LEAVING other devices send a goodbye in place of their third heartbeat. Their delay is counted from just before the
 * goodbye was written, without a timeout.
 *
 *   status   the PUBLISH, as a subscriber gets it
 *   mark     Redis' key PREFIXdisconnected:ID, as seen by a client that the event stream woke
 *   rawN     the `expired` notification of the N-th raw Redis
 *   goodbye, goodbye_mark   the first two for the devices that left
 */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <mosquitto.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common.h"

#define NS_PER_S  INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)
#define SLICE_NS  NS_PER_MS
#define CONNS     16
#define RAW_MAX   4
#define LAST      1 /* the dead are silent after this round; those that leave send their goodbye in the next one */
#define HOST      "127.0.0.1"

enum fate { BEATS, DIES, LEAVES };

/* When each device was reported, and wrong reports. */
struct sight {
	int64_t *at_ns;
	uint64_t wrong; /* reports about devices that send heartbeats all the time */
};

/* Each member is written by one thread only, and is read when that thread has ended. */
struct bench {
	int port, redis_port;
	const char *root, *prefix;
	uint32_t devices, n_dead, n_leaving;
	int64_t interval_ns, timeout_ms, start_ns, end_ns;
	uint32_t *order; /* device of each place */
	enum fate *fate;
	int64_t *sent_ns;
	uint64_t beats, online;
	int64_t behind_ns;
	struct mosquitto *conns[CONNS];
	struct sight status, mark;
};

struct raw {
	struct bench *b;
	int port;
	int64_t *sent_ns;
	struct sight seen;
};

_Noreturn static void die(const char *what)
{
	fprintf(stderr, "detect: %s\n", what);
	exit(1);
}

static void *zeroed(size_t n, size_t size)
{
	void *p = calloc(n, size);
	if (!p)
		die("no memory");
	return p;
}

static redisContext *dial(int port)
{
	redisContext *c = redisConnect(HOST, port);
	if (!c || c->err)
		die("no Redis");
	return c;
}

static void saw(const struct bench *b, struct sight *s, uint32_t device)
{
	if (device >= b->devices)
		die("an unknown device");
	if (b->fate[device] == BEATS)
		s->wrong++;
	else if (s->at_ns[device] == 0)
		s->at_ns[device] = bench_ns();
}

/* --- the fleet */

static int64_t last_round(const struct bench *b, uint32_t device)
{
	return b->fate[device] == BEATS ? INT64_MAX : b->fate[device] == DIES ? LAST : LAST + 1;
}

/* Sends one heartbeat. `device` equal to the number of devices: a slice of time has ended. */
typedef void (*beat_fn)(void *arg, uint32_t device, int64_t round);

/* Sends in each slice of time what is due, until the end. Returns the greatest delay that occurred. */
static int64_t keep_pace(const struct bench *b, beat_fn beat, void *arg)
{
	int64_t sent = 0, woken = b->start_ns, behind = 0;
	for (int64_t now = bench_ns(); now < b->end_ns; now = bench_ns()) {
		behind = now - woken > behind ? now - woken : behind;
		int64_t due = (int64_t)((double)(now - b->start_ns) * b->devices / (double)b->interval_ns);
		for (; sent < due; sent++) {
			uint32_t device = b->order[sent % b->devices];
			if (sent / b->devices <= last_round(b, device))
				beat(arg, device, sent / b->devices);
		}
		beat(arg, b->devices, 0);
		woken += SLICE_NS;
		struct timespec at = {woken / NS_PER_S, woken % NS_PER_S};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
	}
	return behind;
}

static void beat_mqtt(void *arg, uint32_t device, int64_t round)
{
	struct bench *b = arg;
	char topic[128];
	bool leaves = device < b->devices && b->fate[device] == LEAVES && round == LAST + 1;
	const char *payload = leaves ? "{\"online\":false}" : "{\"time\":1800000000}";
	if (device == b->devices)
		return;
	snprintf(topic, sizeof(topic), "%s/d%" PRIu32 "/heartbeat", b->root, device);
	b->sent_ns[device] = bench_ns();
	if (mosquitto_publish(b->conns[device % CONNS], NULL, topic, (int)strlen(payload), payload, 0, false))
		die("cannot publish");
	b->beats++;
}

static void *send_mqtt(void *arg)
{
	struct bench *b = arg;
	b->behind_ns = keep_pace(b, beat_mqtt, b);
	return NULL;
}

struct pipe {
	struct raw *raw;
	redisContext *c;
	unsigned waiting;
};

static void beat_raw(void *arg, uint32_t device, int64_t round)
{
	struct pipe *p = arg;
	struct bench *b = p->raw->b;
	void *reply;
	if (device < b->devices) {
		p->raw->sent_ns[device] = bench_ns();
		int rc = round == 0 ? redisAppendCommand(p->c, "SET d%u x PX %lld", device, (long long)b->timeout_ms)
		                    : redisAppendCommand(p->c, "PEXPIRE d%u %lld", device, (long long)b->timeout_ms);
		if (rc != REDIS_OK)
			die("cannot refresh");
		p->waiting++;
		return;
	}
	for (; p->waiting > 0; p->waiting--) {
		if (redisGetReply(p->c, &reply) != REDIS_OK)
			die("the raw Redis is gone");
		freeReplyObject(reply);
	}
}

static void *send_raw(void *arg)
{
	struct raw *r = arg;
	struct pipe p = {.raw = r, .c = dial(r->port)};
	keep_pace(r->b, beat_raw, &p);
	redisFree(p.c);
	return NULL;
}

/* --- observers */

static void on_status(struct mosquitto *m, void *arg, const struct mosquitto_message *msg)
{
	struct bench *b = arg;
	char text[512];
	(void)m;
	size_t len = (size_t)msg->payloadlen < sizeof(text) ? (size_t)msg->payloadlen : sizeof(text) - 1;
	memcpy(text, msg->payload, len);
	text[len] = '\0';
	if (strstr(text, "\"canary\":true")) /* the monitor's message to itself */
		return;
	const char *device = msg->topic + strlen(b->root) + strlen("/d");
	if (strstr(text, "\"online\":false"))
		saw(b, &b->status, (uint32_t)strtoul(device, NULL, 10));
	else
		b->online++;
}

static struct mosquitto *connected(struct bench *b, const char *id)
{
	struct mosquitto *m = mosquitto_new(id, true, b);
	if (!m || mosquitto_int_option(m, MOSQ_OPT_TCP_NODELAY, 1))
		die("no memory");
	mosquitto_message_callback_set(m, on_status);
	if (mosquitto_connect(m, HOST, b->port, 600))
		die("no broker");
	return m;
}

static void *watch_status(void *arg)
{
	struct bench *b = arg;
	char filter[128];
	struct mosquitto *m = connected(b, "detect-observer");
	snprintf(filter, sizeof(filter), "%s/+/status", b->root);
	if (mosquitto_subscribe(m, NULL, filter, 0))
		die("cannot subscribe");
	while (bench_ns() < b->end_ns)
		if (mosquitto_loop(m, 100, 1))
			die("the broker is gone");
	mosquitto_destroy(m);
	return NULL;
}

static const char *field(const redisReply *fields, const char *name)
{
	for (size_t i = 0; i + 1 < fields->elements; i += 2)
		if (strcmp(fields->element[i]->str, name) == 0)
			return fields->element[i + 1]->str;
	die("an entry without a field");
}

/* Reads the entries in an answer to XREAD. For each device that an entry reports offline, queries its key. Stores
 * the last id. */
static void read_entries(struct bench *b, redisContext *c, const redisReply *entries, char last[64])
{
	uint32_t *devices = zeroed(entries->elements, sizeof(*devices));
	size_t n = 0;
	for (size_t i = 0; i < entries->elements; i++) {
		const redisReply *fields = entries->element[i]->element[1];
		const char *id = field(fields, "id");
		snprintf(last, 64, "%s", entries->element[i]->element[0]->str);
		if (strcmp(field(fields, "state"), "offline") != 0)
			continue;
		devices[n++] = (uint32_t)strtoul(id + 1, NULL, 10);
		redisAppendCommand(c, "EXISTS %sdisconnected:%s", b->prefix, id);
	}
	for (size_t i = 0; i < n; i++) {
		redisReply *r = NULL;
		if (redisGetReply(c, (void **)&r) != REDIS_OK || r->integer != 1)
			die("an event without its mark");
		saw(b, &b->mark, devices[i]);
		freeReplyObject(r);
	}
	free(devices);
}

/* Begins with the second round, because each device comes online in the first round. */
static void *watch_marks(void *arg)
{
	struct bench *b = arg;
	int64_t from_ns = b->start_ns + b->interval_ns + b->interval_ns / 5;
	struct timespec at = {from_ns / NS_PER_S, from_ns % NS_PER_S};
	char last[64] = "0-0";
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
	redisContext *c = dial(b->redis_port);
	redisReply *r = redisCommand(c, "XREVRANGE %sevents + - COUNT 1", b->prefix);
	if (r && r->type == REDIS_REPLY_ARRAY && r->elements == 1)
		snprintf(last, sizeof(last), "%s", r->element[0]->element[0]->str);
	freeReplyObject(r);
	while (bench_ns() < b->end_ns) {
		r = redisCommand(c, "XREAD COUNT 10000 BLOCK 100 STREAMS %sevents %s", b->prefix, last);
		if (!r)
			die("Redis is gone");
		if (r->type == REDIS_REPLY_ARRAY)
			read_entries(b, c, r->element[0]->element[1], last);
		freeReplyObject(r);
	}
	redisFree(c);
	return NULL;
}

static void *watch_raw(void *arg)
{
	struct raw *raw = arg;
	redisContext *c = dial(raw->port);
	redisReply *r = redisCommand(c, "SUBSCRIBE __keyevent@0__:expired");
	if (!r)
		die("cannot subscribe to the raw Redis");
	freeReplyObject(r);
	while (bench_ns() < raw->b->end_ns) {
		struct pollfd fd = {c->fd, POLLIN, 0};
		if (poll(&fd, 1, 100) > 0 && redisBufferRead(c) != REDIS_OK)
			die("the raw Redis is gone");
		while (redisGetReplyFromReader(c, (void **)&r) == REDIS_OK && r) {
			saw(raw->b, &raw->seen, (uint32_t)strtoul(r->element[2]->str + 1, NULL, 10));
			freeReplyObject(r);
		}
	}
	redisFree(c);
	return NULL;
}

/* --- the account */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void say(const char *name, const char *what, double value)
{
	char key[64];
	snprintf(key, sizeof(key), "%s_%s", name, what);
	bench_say(key, value);
}

static void account(const struct bench *b, const char *name, const struct sight *s, const int64_t *sent_ns,
                    enum fate fate)
{
	double *late = zeroed(b->devices, sizeof(*late));
	size_t n = 0, missing = 0;
	int64_t after_ns = fate == DIES ? b->timeout_ms * NS_PER_MS : 0;
	for (uint32_t i = 0; i < b->devices; i++) {
		if (b->fate[i] != fate)
			continue;
		int64_t due = sent_ns[i] + after_ns, at = s->at_ns[i] ? s->at_ns[i] : b->end_ns;
		missing += s->at_ns[i] == 0;
		late[n++] = (double)(at - due) / (double)NS_PER_MS;
	}
	qsort(late, n, sizeof(*late), by_value);
	say(name, "min", late[0]);
	say(name, "p50", late[n / 2]);
	say(name, "p99", late[n * 99 / 100]);
	say(name, "max", late[n - 1]);
	say(name, "missing", (double)missing);
	say(name, "wrong", (double)s->wrong);
	free(late);
}

/* --- start */

static void prepare(struct bench *b, uint64_t seconds)
{
	uint32_t *who = bench_order(b->devices, 2);
	b->order = bench_order(b->devices, 1);
	b->fate = zeroed(b->devices, sizeof(*b->fate));
	b->sent_ns = zeroed(b->devices, sizeof(*b->sent_ns));
	b->status.at_ns = zeroed(b->devices, sizeof(int64_t));
	b->mark.at_ns = zeroed(b->devices, sizeof(int64_t));
	for (uint32_t i = 0; i < b->n_dead + b->n_leaving; i++)
		b->fate[who[i]] = i < b->n_dead ? DIES : LEAVES;
	free(who);
	for (int i = 0; i < CONNS; i++) {
		char id[32];
		snprintf(id, sizeof(id), "detect-%d", i);
		b->conns[i] = connected(b, id);
		if (mosquitto_loop(b->conns[i], 1000, 1))
			die("no CONNACK");
	}
	b->start_ns = bench_ns() + NS_PER_S / 2;
	b->end_ns = b->start_ns + (int64_t)seconds * NS_PER_S;
}

static void run(struct bench *b, struct raw *raws, int n_raws)
{
	pthread_t threads[3 + 2 * RAW_MAX];
	int n = 0, rc = pthread_create(&threads[n++], NULL, watch_status, b);
	rc |= pthread_create(&threads[n++], NULL, watch_marks, b);
	rc |= pthread_create(&threads[n++], NULL, send_mqtt, b);
	for (int i = 0; i < n_raws; i++) {
		raws[i].b = b;
		raws[i].sent_ns = zeroed(b->devices, sizeof(int64_t));
		raws[i].seen.at_ns = zeroed(b->devices, sizeof(int64_t));
		rc |= pthread_create(&threads[n++], NULL, watch_raw, &raws[i]);
		rc |= pthread_create(&threads[n++], NULL, send_raw, &raws[i]);
	}
	if (rc)
		die("no threads");
	while (n > 0)
		pthread_join(threads[--n], NULL);
}

int main(int argc, char **argv)
{
	struct raw raws[RAW_MAX] = {0};
	if (argc < 11 || argc > 11 + RAW_MAX) {
		fprintf(stderr, "usage: see the head of detect.c\n");
		return 2;
	}
	struct bench b = {.port = (int)bench_number(argc, argv, 1),
	                  .redis_port = (int)bench_number(argc, argv, 2),
	                  .root = argv[3],
	                  .prefix = argv[4],
	                  .devices = (uint32_t)bench_number(argc, argv, 5),
	                  .interval_ns = (int64_t)bench_number(argc, argv, 6) * NS_PER_MS,
	                  .timeout_ms = (int64_t)bench_number(argc, argv, 7),
	                  .n_dead = (uint32_t)bench_number(argc, argv, 8),
	                  .n_leaving = (uint32_t)bench_number(argc, argv, 9)};
	int n_raws = argc - 11;
	if (b.n_dead < 1 || b.n_dead > b.devices || b.n_leaving > b.devices - b.n_dead)
		return 2;
	for (int i = 0; i < n_raws; i++)
		raws[i].port = (int)bench_number(argc, argv, 11 + i);
	mosquitto_lib_init();
	prepare(&b, bench_number(argc, argv, 10));
	run(&b, raws, n_raws);
	bench_say("beats", (double)b.beats);
	bench_say("online", (double)b.online);
	bench_say("behind_ms", (double)b.behind_ns / (double)NS_PER_MS);
	account(&b, "status", &b.status, b.sent_ns, DIES);
	account(&b, "mark", &b.mark, b.sent_ns, DIES);
	if (b.n_leaving > 0) {
		account(&b, "goodbye", &b.status, b.sent_ns, LEAVES);
		account(&b, "goodbye_mark", &b.mark, b.sent_ns, LEAVES);
	}
	for (int i = 0; i < n_raws; i++) {
		char name[16];
		snprintf(name, sizeof(name), "raw%d", i);
		account(&b, name, &raws[i].seen, raws[i].sent_ns, DIES);
	}
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * The scheme that the wheel replaces, in its fastest form. For every heartbeat it sends
 *
 *     SETEX device:connected:ID TIMEOUT ID
 *     DEL device:disconnected:ID
 *
 * and a subscriber of __keyevent@0__:expired sends SET device:disconnected:ID for each device whose key has expired.
 *
 *     oldway BROKER_PORT REDIS_PORT ROOT TIMEOUT_S GATHER_MS BATCH
 *
 * One thread takes heartbeats (ROOT/ID/heartbeat) from libmosquitto and writes their commands into one buffer. The
 * buffer is sent as one pipeline when it contains BATCH heartbeats, or when its oldest one is BATCH_MS old. The answers
 * are read when the next pipeline is sent. They have arrived by then, so the thread never waits for Redis. The program
 * writes the commands itself, because hiredis' formatting would take more time than everything else. GATHER_MS: how
 * long the program waits before it reads when there is something to read; 0 is libmosquitto's own way. BATCH 1 is how
 * the scheme is usually written: each command is sent at once. The program ends on SIGTERM.
 */
#include <errno.h>
#include <hiredis/hiredis.h>
#include <mosquitto.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#define BATCH_MAX 256
#define BATCH_MS  20
#define ID_MAX    64
#define CONNECTED "device:connected:"
#define GONE      "device:disconnected:"

struct oldway {
	redisContext *redis;
	char ttl[12];
	size_t root_len;
	char *out;
	size_t len;
	unsigned batch;
	unsigned n;          /* heartbeats in `out` */
	unsigned unanswered; /* commands of the pipeline before */
	int64_t since_ms;    /* when the first heartbeat was written to `out` */
	int redis_port;
};

static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
	(void)sig;
	stopped = 1;
}

_Noreturn static void die(const char *what)
{
	fprintf(stderr, "oldway: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static redisContext *connect_redis(int port)
{
	redisContext *c = redisConnect("127.0.0.1", port);
	if (!c || c->err)
		die("redis");
	return c;
}

/* --- the pipeline ------------------------------------------------------------------------------------------------- */

static void take_answers(struct oldway *o)
{
	for (; o->unanswered > 0; o->unanswered--) {
		redisReply *reply;
		if (redisGetReply(o->redis, (void **)&reply) != REDIS_OK || reply->type == REDIS_REPLY_ERROR)
			die("answer");
		freeReplyObject(reply);
	}
}

static void flush(struct oldway *o)
{
	int done = 0;
	take_answers(o);
	if (o->n == 0)
		return;
	redisAppendFormattedCommand(o->redis, o->out, o->len);
	while (!done)
		if (redisBufferWrite(o->redis, &done) != REDIS_OK)
			die("redis");
	o->unanswered = 2 * o->n;
	o->n = 0;
	o->len = 0;
}

static char *put(char *to, const char *text, size_t len)
{
	memcpy(to, text, len);
	return to + len;
}

/* Writes "$LEN\r\n" for a length below 1000. */
static char *put_len(char *to, size_t len)
{
	*to++ = '$';
	if (len >= 100)
		*to++ = (char)('0' + len / 100);
	if (len >= 10)
		*to++ = (char)('0' + len / 10 % 10);
	*to++ = (char)('0' + len % 10);
	return put(to, "\r\n", 2);
}

static void heartbeat(struct oldway *o, const char *id, size_t len)
{
	char *to = o->out + o->len;
	size_t ttl = strlen(o->ttl);
	to = put(to, "*4\r\n$5\r\nSETEX\r\n", 15);
	to = put_len(to, strlen(CONNECTED) + len);
	to = put(to, CONNECTED, strlen(CONNECTED));
	to = put(to, id, len);
	to = put(to, "\r\n", 2);
	to = put_len(to, ttl);
	to = put(to, o->ttl, ttl);
	to = put(to, "\r\n", 2);
	to = put_len(to, len);
	to = put(to, id, len);
	to = put(to, "\r\n*2\r\n$3\r\nDEL\r\n", 15);
	to = put_len(to, strlen(GONE) + len);
	to = put(to, GONE, strlen(GONE));
	to = put(to, id, len);
	to = put(to, "\r\n", 2);
	o->len = (size_t)(to - o->out);
	if (o->n++ == 0)
		o->since_ms = now_ms();
	if (o->n == o->batch)
		flush(o);
}

static void on_message(struct mosquitto *m, void *arg, const struct mosquitto_message *msg)
{
	struct oldway *o = arg;
	(void)m;
	const char *id = msg->topic + o->root_len + 1, *end = strchr(id, '/');
	if (end && end - id < ID_MAX)
		heartbeat(o, id, (size_t)(end - id));
}

/* --- who is dead -------------------------------------------------------------------------------------------------- */

static void *listen_expired(void *arg)
{
	struct oldway *o = arg;
	redisContext *c = connect_redis(o->redis_port), *writer = connect_redis(o->redis_port);
	redisReply *reply = redisCommand(c, "PSUBSCRIBE __keyevent@0__:expired");
	size_t head = strlen(CONNECTED);
	freeReplyObject(reply);
	while (redisGetReply(c, (void **)&reply) == REDIS_OK) {
		const char *key = reply->elements == 4 ? reply->element[3]->str : NULL;
		if (key && strncmp(key, CONNECTED, head) == 0)
			freeReplyObject(redisCommand(writer, "SET " GONE "%s %s", key + head, key + head));
		freeReplyObject(reply);
	}
	return NULL;
}

/* --- the loop ----------------------------------------------------------------------------------------------------- */

static void gather(int ms)
{
	struct timespec t = {0, ms * 1000000L};
	if (ms > 0)
		nanosleep(&t, NULL);
}

static void run(struct oldway *o, struct mosquitto *m, int gather_ms)
{
	while (!stopped) {
		int fd = mosquitto_socket(m), waiting = 0;
		struct pollfd p = {fd, (short)(POLLIN | (mosquitto_want_write(m) ? POLLOUT : 0)), 0};
		int64_t left = o->n ? o->since_ms + BATCH_MS - now_ms() : 1000;
		int n = poll(&p, 1, left < 0 ? 0 : (int)left);
		if (n > 0 && p.revents & POLLIN) {
			gather(gather_ms);
			do {
				if (mosquitto_loop_read(m, 1))
					die("broker");
			} while (ioctl(fd, FIONREAD, &waiting) == 0 && waiting > 0 && !stopped);
		}
		if (p.revents & POLLOUT)
			mosquitto_loop_write(m, 1);
		if (n <= 0)
			mosquitto_loop_misc(m);
		if (o->n && now_ms() - o->since_ms >= BATCH_MS)
			flush(o);
	}
}

int main(int argc, char **argv)
{
	static struct oldway o;
	pthread_t listener;
	char filter[100];
	if (argc != 7) {
		fprintf(stderr, "usage: oldway BROKER_PORT REDIS_PORT ROOT TIMEOUT_S GATHER_MS BATCH\n");
		return 2;
	}
	struct sigaction stop = {.sa_handler = on_signal};
	sigaction(SIGTERM, &stop, NULL);
	o.redis_port = atoi(argv[2]);
	o.batch = (unsigned)atoi(argv[6]);
	if (o.batch < 1 || o.batch > BATCH_MAX)
		return 2;
	o.root_len = strlen(argv[3]);
	snprintf(o.ttl, sizeof(o.ttl), "%s", argv[4]);
	snprintf(filter, sizeof(filter), "%s/+/heartbeat", argv[3]);
	o.redis = connect_redis(o.redis_port);
	o.out = malloc(BATCH_MAX * (2 * sizeof(GONE) + 3 * ID_MAX + 100));
	freeReplyObject(redisCommand(o.redis, "CONFIG SET notify-keyspace-events Ex"));
	mosquitto_lib_init();
	struct mosquitto *m = mosquitto_new("oldway", true, &o);
	if (!o.out || !m || pthread_create(&listener, NULL, listen_expired, &o))
		die("start");
	mosquitto_message_callback_set(m, on_message);
	if (mosquitto_connect(m, "127.0.0.1", atoi(argv[1]), 60) || mosquitto_subscribe(m, NULL, filter, 0))
		die("broker");
	run(&o, m, atoi(argv[5]));
	flush(&o);
	take_answers(&o);
	return 0;
}
